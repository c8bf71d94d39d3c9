"""Forecasts of searches that are no single pass over a lattice, from counts of the features.

The engine forecasts the others itself. Constants are measured on GBSG2 and whas500 at depths
three to five, one thread (``benchmarks/records/2026-11-22-fallback.md``).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bristlecone import _core
from bristlecone._core import BinaryMatrix
from bristlecone._encoder.ranked import RankedFeatures
from bristlecone._types import Floats, Integers

# Seconds per row and set of questions of a search over curves, and per pair of features that
# hold for a row, or of cells, in a search under limits.
_CURVE, _PAIR, _CELL = 1e-9, 4e-9, 2e-8

# Seconds per row of the curves and losses of the leaves, after a search over curves.
_LEAVES = 3e-6

# A search takes _OPTIMAL times as long if the curves of the leaves are optimal, and once more for
# every _TIMES distinct event times, up to _MOST_TIMES of them.
_OPTIMAL, _TIMES, _MOST_TIMES = 3, 50, 2000

# Weighted searches that a measure takes, and a search under limits; and how much longer a measure
# takes with a leaf penalty, because the sizes of trees are searched one after the other (measured:
# one to five times as long).
_OF_MEASURE, _OF_LIMITS, _PRICED = 10, 5, 2

# Seconds per row, column and threshold of a search over all thresholds to depth two, where it takes
# longer than the seconds or the share of the time limit after these. The roots that it tries, over
# the number last named, are the factor by which every further level takes longer
# (``benchmarks/records/2026-11-25-every-threshold.md``).
_THRESHOLD, _TRIAL, _SHARE_OF_LIMIT, _TRIED = 6e-11, 1.0, 0.1, 2.2
# Quick ones are repeated as often, since the first in a process is slower.
_QUICK = 3

# Share of a search under limits that threads do not share.
_SERIAL = 0.2

# Searches without limits that one under a limit takes at most, if the weighted costs of labels are
# linear in the sums: their bounds leave few of the questions above.
_MOST_OF_LIMIT = 50


def curve_forecast(
    data: dict[str, Any], features: BinaryMatrix, **settings: Any
) -> dict[str, float]:
    """Forecast of a search whose leaves need their rows in the order of time.

    A set of d - 1 questions is met once, and then all single splits of its rows are looked at;
    without the memo of sets, which keeps to the limit of memory.
    """
    counts = _counts(features, settings)
    n_rows, n_features = len(features), counts["n_active_features"]
    depth = min(settings["max_depth"], n_features)
    questions = depth * _log(n_features) - math.lgamma(max(depth, 1))
    threads = max(1, min(settings["n_threads"], n_features))
    seconds = _exp(math.log(_CURVE * n_rows / threads) + questions)
    if data["leaf_curve"] == "brier-optimal":
        n_times = len(np.unique(data["time"][data["event"]]))
        seconds *= _OPTIMAL + min(n_times, _MOST_TIMES) / _TIMES
    seconds += _LEAVES * n_rows
    return {**counts, **_by_rows(seconds), "bytes": n_rows * (n_features / 4 + 64)}


def ranked_forecast(
    solve: Callable[..., Any], ranked: RankedFeatures, **settings: Any
) -> dict[str, float]:
    """Forecast of a search over every threshold, from one to depth two.

    On every level above two, about as many roots are tried as in that search, and on both sides of
    each it is repeated.
    """
    (n_rows, n_questions), n_columns = ranked.shape, len(ranked.ranks)
    depth, leaves = settings["max_depth"], settings["max_leaf_nodes"]
    limit = _TRIAL if settings["time_limit"] is None else _SHARE_OF_LIMIT * settings["time_limit"]
    settings |= {"max_depth": min(depth, 2), "max_leaf_nodes": leaves and min(leaves, 4)}
    settings |= {"time_limit": min(limit, _TRIAL)}
    seconds = math.inf
    for _ in range(_QUICK):
        start = time.perf_counter()
        found = solve(**settings | {"n_threads": 1})
        seconds = min(seconds, time.perf_counter() - start)
        if seconds > _TRIAL / 10:
            break
    # Four leaf values for each question below each root.
    tried = found.n_nodes_explored / (4 * max(1, n_questions))
    if found.status == "time_limit":
        whole = _THRESHOLD * n_rows * n_columns * n_questions
        tried, seconds = tried * max(1.0, whole / seconds), max(whole, seconds)
    above = max(0, depth - 2)
    seconds *= _exp(above * _log(max(1.0, tried / _TRIED)))
    if above:
        seconds /= max(1, settings["n_threads"])
    counts = {"n_distinct_rows": float(n_rows), "n_active_features": float(n_questions)}
    return {**counts, **_by_rows(seconds), "bytes": 12.0 * n_rows * n_columns}


def limited_forecast(
    features: BinaryMatrix, *, n_limits: int = 1, is_linear: bool = False, **settings: Any
) -> dict[str, float]:
    """Forecast of the search for the best tree under limits on the whole tree.

    The search without limits comes first. Then trees of two levels follow from sums over pairs of
    features; above them every question is tried. All that for each of some weightings of the
    limits, the more the more limits there are: measured at depth four, equalized odds of two groups
    takes up to four times as long as demographic parity, and so does demographic parity of three
    groups. If the weighted costs of labels are linear, the time is limited to that of so many
    searches without limits.
    """
    counts = _counts(features, settings)
    first, first_rows = counts["seconds"], counts["row_seconds"]
    n_features = counts["n_active_features"]
    above = max(0, min(settings["max_depth"], n_features) - 2)
    by_column = features.count_true() / len(features)
    true = float(np.minimum(by_column, 1.0 - by_column).sum())
    pairs = counts["n_distinct_rows"] * true**2 / 2
    # Each level halves the rows of a node and has two nodes per question; the order of the
    # questions above does not matter.
    nodes = above * _log(n_features) - math.lgamma(above + 1)
    left = _SERIAL + (1.0 - _SERIAL) / max(1, settings["n_threads"])
    left *= _OF_LIMITS * n_limits
    rows = left * _PAIR * pairs * _exp(nodes)
    cells = left * _CELL * n_features**2 / 2 * _exp(nodes + above * math.log(2))
    most = _MOST_OF_LIMIT * n_limits * first if is_linear else math.inf
    share = min(1.0, most / (rows + cells)) if rows + cells else 1.0
    seconds, rows = first + share * (rows + cells), first_rows + share * rows
    size = 32.0 * n_features**2 + 16.0 * counts["n_distinct_rows"]
    return {**counts, "seconds": seconds, "row_seconds": rows, "bytes": size}


def measure_forecast(
    labels: Integers,
    weight: Floats | None,
    features: BinaryMatrix,
    **settings: Any,
) -> dict[str, float]:
    """Forecast of the search for the best measure of two labels: some weighted searches.

    The weighted searches have no leaf penalty: that of a measure is not in units of errors.
    """
    data = {"labels": labels, "n_classes": 2, "weight": weight}
    one = _core.forecast("accuracy", data, features, **settings | {"leaf_penalty": 0.0})
    searches = _OF_MEASURE * (_PRICED if settings["leaf_penalty"] else 1)
    return {**one, **{name: searches * one[name] for name in ("seconds", "row_seconds")}}


def _counts(features: BinaryMatrix, settings: dict[str, Any]) -> dict[str, float]:
    """Features and rows that differ, as any search counts them, and the seconds of sums alone."""
    labels = np.zeros(len(features), dtype=np.int64)
    data = {"labels": labels, "n_classes": 1, "weight": None}
    # A penalty would rule out every split, because one class has no errors.
    return _core.forecast("accuracy", data, features, **settings | {"leaf_penalty": 0.0})


def _by_rows(seconds: float) -> dict[str, float]:
    return {"seconds": seconds, "row_seconds": seconds}


def _log(value: float) -> float:
    return math.log(max(value, 1.0))


def _exp(value: float) -> float:
    return math.exp(value) if value < 700.0 else math.inf
