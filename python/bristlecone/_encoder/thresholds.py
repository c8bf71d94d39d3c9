"""Thresholds of a numeric column: all or some of the gaps between its distinct values."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bristlecone import _core
from bristlecone._encoder.columns import RankedColumn
from bristlecone._encoder.features import Threshold
from bristlecone._types import Floats, Integers

Scalar = TypeVar("Scalar", bound=np.generic)

# Most rounds of Lloyd's algorithm; later rounds hardly move the clusters.
_MOST_ROUNDS = 300


def weighted_distinct(
    values: NDArray[Scalar], weight: Floats | None
) -> tuple[NDArray[Scalar], Floats]:
    """Distinct values in ascending order and the weight of each, both of shape (k,).

    The sums do not depend on the order of the rows, not even in the last bit, so everything that
    follows from them is the same after a permutation.
    """
    if weight is None:
        distinct, count = np.unique(values, return_counts=True)
        return distinct, count.astype(np.float64)
    order = np.lexsort((weight, values))
    values, weight = values[order], weight[order]
    start = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    return values[start], np.add.reduceat(weight, start)


def weighted_mean(distinct: Floats, total: Floats) -> float:
    """Mean of the distinct values, which are ascending; it lies between the first and the last."""
    low, high = float(distinct[0]), float(distinct[-1])
    # a power of two keeps the sum within range and changes no digit
    exponent = math.frexp(max(-low, high))[1]
    mean = math.ldexp((np.ldexp(distinct, -exponent) * total).sum() / total.sum(), exponent)
    return min(max(mean, low), high)


def midpoints(distinct: Floats) -> Floats:
    """Threshold of each gap: ``distinct[i] <= t[i] < distinct[i + 1]``."""
    return midway(distinct[:-1], distinct[1:])


def midway(low: Floats | float, high: Floats | float) -> Floats:
    """Thresholds between pairs of values: at least the lower value, and below the higher one."""
    middle = low / 2 + high / 2  # the sum of the two could overflow
    # between neighbouring floats the middle may round up to the higher one
    return np.where(middle < high, middle, low) + 0.0


def ranks_with_fill(column: RankedColumn, fill: float | None) -> NDArray[np.uint32]:
    """Position of every row's value among the distinct values of its column.

    Rows without a value are placed with rows that every cut puts on the side of ``fill``, so that
    they add no cut. Without a fill they come after all others.
    """
    if column.missing is None or fill is None:
        return column.ranks
    # The first cut that has the fill on its left is the one after this rank.
    above = np.count_nonzero(midpoints(column.distinct) < fill)
    return np.where(column.missing, np.uint32(above), column.ranks)


def choose_gaps(
    distinct: Floats, total: Floats, method: str, n_thresholds: int, unit: float
) -> Integers:
    """Indices of the gaps between distinct values at which a column is cut, ascending.

    "midpoints" and "all" take every gap, and so do the others if there are at most
    ``n_thresholds``. "quantiles" takes the first midpoint not below each i/(n_thresholds + 1)
    quantile, or the last (the binarisation of Huisman, van der Linden & Demirović, AAAI-24), and so
    does "ensemble" for levels: its gaps between numbers are chosen elsewhere. "kmeans" takes the
    gaps between neighbours of ``n_thresholds + 1`` clusters. ``total`` contains the weights of the
    values, and ``unit`` is at most the smallest weight of a row; integer weights equal repeated
    rows.
    """
    n_gaps = len(distinct) - 1
    if method in ("midpoints", "all") or n_gaps <= n_thresholds:
        return np.arange(n_gaps)
    if method == "kmeans":
        return _cluster_gaps(distinct, total, n_thresholds + 1)
    return _core.quantile_gaps(distinct, total, n_thresholds, unit)


def _cluster_gaps(distinct: Floats, total: Floats, n_clusters: int) -> Integers:
    """Gaps between the clusters of Lloyd's algorithm, which are intervals on a line.

    A cluster that loses all its values disappears, which leaves fewer gaps.
    """
    # a power of two keeps the sums within range and changes no digit
    position = np.ldexp(distinct, -math.frexp(np.abs(distinct).max())[1])
    position -= position[0]
    # first centres evenly spaced in rank: distinct, near the data, and no randomness
    rank = (np.arange(n_clusters) + 0.5) / n_clusters * len(distinct)
    centres = position[rank.astype(np.int64)]
    start = np.zeros(1, dtype=np.int64)
    for _ in range(_MOST_ROUNDS):
        border = np.searchsorted(position, midpoints(centres), side="right")
        previous, start = start, np.unique(np.append(0, border[border < len(position)]))
        if np.array_equal(previous, start):
            break
        centres = np.add.reduceat(total * position, start) / np.add.reduceat(total, start)
    return start[1:] - 1


def threshold(column: str, value: float, low: float, high: float, fill: float | None) -> Threshold:
    """The feature "column <= value" between two numbers; ``fill`` replaces missing values."""
    condition = f"<= {format_threshold(value, low, high)}"
    missing = fill is not None and fill <= value
    return Threshold(column=column, condition=condition, value=value, missing=missing)


def format_threshold(value: float, low: float, high: float) -> str:
    """Short text for a threshold: itself if seven digits suffice, else a number in [low, high).

    Either way the text separates the same training values as ``value`` does, so no two
    thresholds of a column look alike and a rule read off the page is right.

    Examples
    --------
    >>> format_threshold(52.5, 52.0, 53.0)
    '52.5'
    >>> format_threshold(1 / 3, 0.3, 0.4)
    '0.333333'
    """
    text = f"{value:.7g}"
    if float(text) != value:
        text, digits = f"{value:.6g}", 6
        while not low <= float(text) < high:
            digits += 1
            text = f"{value:.{digits}g}"
    if "e" in text and 1e-5 <= abs(value) < 1e15:
        return np.format_float_positional(float(text), trim="-")
    return text
