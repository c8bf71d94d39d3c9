"""Predicted curves and censoring weights in the form the metrics need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone.curves import StepFunction
from bristlecone.data.arrays import unmasked

# Largest number of (curve, time) cells worked on at once.
BLOCK_CELLS = 1 << 21
# A probability may leave [0, 1] by rounding, not by more.
_PROBABILITY_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Curves:
    """Survival curves of ``n`` rows that share ``n_curves`` step functions.

    ``y[c, k]`` is curve c from ``x[k]`` on; before ``x[0]`` it is 1. Row i has the curve
    ``index[i]``.
    """

    index: NDArray[np.intp]
    x: NDArray[np.float64]
    y: NDArray[np.float64]

    def at_own_time(self, time: NDArray[np.float64]) -> NDArray[np.float64]:
        """S_i(t_i) of every row."""
        step = np.searchsorted(self.x, time, side="right")
        return np.where(step > 0, self.y[self.index, np.maximum(step - 1, 0)], 1.0)

    def merged(self) -> Curves:
        """The same with equal curves stored once; O(n_curves · n_times)."""
        first: dict[bytes, int] = {}
        new = np.array([first.setdefault(curve.tobytes(), len(first)) for curve in self.y])
        kept = np.zeros(len(first), dtype=np.intp)
        kept[new] = np.arange(new.size)  # any of the equal ones
        return Curves(new[self.index], self.x, self.y[kept])

    def blocks(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]]:
        """Rows, their curve within the block, and the curves, of bounded size."""
        order = np.argsort(self.index, kind="stable")
        size = max(1, BLOCK_CELLS // (self.x.size + 1))
        for start in range(0, len(self.y), size):
            curves = self.y[start : start + size]
            ends = np.searchsorted(self.index[order], [start, start + len(curves)])
            rows = order[slice(*ends)]
            yield rows, self.index[rows] - start, curves


def as_curves(survival: Any, times: ArrayLike | None, n: int, name: str) -> Curves:
    """Curves of ``n`` rows from a matrix at ``times``, or from callables.

    One callable shared by several rows is evaluated once. Callables without ``times`` are taken
    at their own steps ``.x``.
    """
    if callable(survival):
        raise TypeError(f"{name} must hold one curve per row, got a single callable")
    if len(survival) != n:
        raise ValueError(f"{name} has {len(survival)} rows, the outcome has {n}")
    if all(callable(curve) for curve in survival):
        x, index, y = _evaluate(survival, times, name)
    else:
        if times is None:
            raise ValueError(f"times is needed when {name} is an array")
        x = check_times(times)
        y = as_float(survival, name)
        if x.size == 1 and y.ndim == 1:
            y = y[:, np.newaxis]
        if y.shape != (n, x.size):
            raise ValueError(f"{name} must have shape ({n}, {x.size}), got {y.shape}")
        index = np.arange(n)
    outside = (y < -_PROBABILITY_TOLERANCE) | (y > 1 + _PROBABILITY_TOLERANCE)
    if outside.any():
        row = int(np.isin(index, np.flatnonzero(outside.any(axis=1))).argmax())
        raise ValueError(f"{name} of row {row} is not a probability of survival within [0, 1]")
    return Curves(index, x, y)


def _evaluate(
    curves: Sequence[Any], times: ArrayLike | None, name: str
) -> tuple[NDArray[np.float64], NDArray[np.intp], NDArray[np.float64]]:
    first: dict[int, int] = {}
    index = np.array([first.setdefault(id(curve), len(first)) for curve in curves])
    distinct = list({id(curve): curve for curve in curves}.values())
    if times is not None:
        x = check_times(times)
    else:
        if not all(hasattr(curve, "x") for curve in distinct):
            raise ValueError(f"times is needed when the callables of {name} have no steps .x")
        steps = {id(curve.x): curve.x for curve in distinct}.values()
        x = np.unique(np.concatenate([np.asarray(s, dtype=np.float64) for s in steps]))
    return x, index, as_float([curve(x) for curve in distinct], name)


def as_float(values: ArrayLike, name: str) -> NDArray[np.float64]:
    """Finite float array."""
    values = unmasked(values, name)
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be numeric: {error}") from error
    if not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0, 0])
        raise ValueError(f"{name} is NaN or infinite in row {row}")
    return array


def check_times(times: ArrayLike) -> NDArray[np.float64]:
    """Times as a strictly ascending, finite, non-negative array of at least one value."""
    array = np.atleast_1d(as_float(times, "times"))
    if array.ndim != 1 or array.size == 0:
        raise ValueError(f"times must be one-dimensional and not empty, got {array.shape}")
    if not (np.diff(array) > 0).all() or array[0] < 0:
        raise ValueError("times must be non-negative and strictly ascending")
    return array


def censoring_at(
    censoring: StepFunction, times: NDArray[np.float64], what: str
) -> NDArray[np.float64]:
    """G at ``times``; after the last training time G is 0 if it ended at 0, else unknown."""
    last = censoring.x[-1]
    if times.size and censoring.y[-1] > 0 and times.max() > last:
        raise ValueError(
            f"{what} {times.max():g} is after the last training time {last:g}, where the "
            "censoring distribution is unknown"
        )
    return np.asarray(censoring(times))


def positive_censoring_at(
    censoring: StepFunction, times: NDArray[np.float64], what: str
) -> NDArray[np.float64]:
    """As :func:`censoring_at`, refusing zeros."""
    values = censoring_at(censoring, times, what)
    if not (values > 0).all():
        raise ValueError(
            f"the censoring distribution of the training data is zero at the {what} "
            f"{times[values <= 0].min():g}: its inverse is not defined"
        )
    return values


def inverse_or_zero(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """1/G, and 0 where G is 0."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)
