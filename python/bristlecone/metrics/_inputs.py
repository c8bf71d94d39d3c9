"""Outcomes, predictions and censoring weights in the form the metrics need."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, NamedTuple, ParamSpec, Protocol, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._data.arrays import as_floats, type_name
from bristlecone._data.checks import check_times
from bristlecone._data.frame import columns_by_name
from bristlecone._data.outcomes import Outcome, check_columns, check_survival, is_outcome
from bristlecone._data.rows import check_row_labels, check_sample_weight
from bristlecone._types import Bools, Floats
from bristlecone.curves import StepFunction

# Most (curve, time) cells that are processed at once.
BLOCK_CELLS = 1 << 21
# Rounding may put a probability this far outside [0, 1].
_PROBABILITY_TOLERANCE = 1e-9

P = ParamSpec("P")
R = TypeVar("R", covariant=True)
Metric: TypeAlias = Callable[Concatenate[Bools, Floats, P], R]


class OfOutcome(Protocol[P, R]):
    """Function of event and time, or of one outcome that replaces them."""

    @overload
    def __call__(
        self, event: ArrayLike, time: ArrayLike, *args: P.args, **kwargs: P.kwargs
    ) -> R: ...

    @overload
    def __call__(self, event: Outcome, *args: P.args, **kwargs: P.kwargs) -> R: ...


def of_outcome(*by_row: str) -> Callable[[Metric[P, R]], OfOutcome[P, R]]:
    """Let a function of checked events and times take outcomes in every form that ``fit`` takes.

    The function is called with two columns ``event, time``, or with one outcome in place of both;
    no column can be mistaken for an outcome. Delayed entry is passed to the parameter ``entry``;
    without this parameter it raises an error. The parameters ``by_row`` have one entry per row of
    the outcome.
    """

    def decorate(function: Metric[P, R]) -> OfOutcome[P, R]:
        signature = inspect.signature(function)
        late = "entry" in signature.parameters

        @wraps(function)
        def metric(*args: Any, **kwargs: Any) -> R:
            first = args[0] if args else kwargs.get("event")
            one = is_outcome(first)
            if one:
                if "time" in kwargs or kwargs.get("entry") is not None:
                    raise TypeError("an outcome includes times and entries; do not pass them again")
                args = (first, None, *args[1:])
                kwargs.pop("event", None)
            bound = signature.bind(*args, **kwargs)
            given = bound.arguments
            values = {name: given.get(name) for name in by_row}
            if one:
                check_row_labels(first, of="y", **values)
                without = "" if late else function.__name__
                survival = check_survival(first, without_entry=without)
            else:
                columns = {name: given.get(name) for name in ("event", "time", "entry")}
                survival = check_survival(check_columns(**columns))
                for name, column in columns.items():
                    check_row_labels(column, of=name, **values)
            given["event"], given["time"] = survival.event, survival.time
            if late:
                given["entry"] = survival.entry
            return function(*bound.args, **bound.kwargs)

        return metric

    return decorate


class ScoredRows(NamedTuple):
    """Rows to score, all of positive weight; ``kept`` marks them among the rows that were given."""

    event: Bools
    time: Floats
    weight: Floats
    kept: Bools


def check_test_rows(
    survival_test: Outcome,
    sample_weight: Any = None,
    *,
    name: str = "survival_test",
    instead: str = "concordance_index_censored",
    **by_row: Any,
) -> ScoredRows:
    """Outcomes of the rows to score, without delayed entry; ``by_row`` has one value per row.

    Messages call the outcomes ``name``, and point to ``instead`` for delayed entry.
    """
    check_row_labels(survival_test, of=name, sample_weight=sample_weight, **by_row)
    event, time, entry = check_survival(survival_test, name)
    if entry is not None:
        raise ValueError(
            f"{name} has delayed entry, for which censoring weights are not defined; use {instead}"
        )
    own = check_sample_weight(sample_weight, time.size)
    weight = np.ones(time.size) if own is None else own
    kept = weight > 0
    return ScoredRows(event[kept], time[kept], weight[kept], kept)


@dataclass(frozen=True)
class Curves:
    """Survival curves of ``n`` rows that share ``n_curves`` step functions.

    ``y[c, k]`` is curve c from ``x[k]`` on; before ``x[0]`` it is 1. Row i has the curve
    ``index[i]``.
    """

    index: NDArray[np.intp]
    x: Floats
    y: Floats

    def at_own_time(self, time: Floats) -> Floats:
        """S_i(t_i) of every row."""
        step = np.searchsorted(self.x, time, side="right")
        return np.where(step > 0, self.y[self.index, np.maximum(step - 1, 0)], 1.0)

    def of_rows(self, kept: Bools) -> Curves:
        """Curves of these rows alone."""
        return self if kept.all() else Curves(self.index[kept], self.x, self.y)

    def merged(self) -> Curves:
        """The same with equal curves stored once; O(n_curves · n_times)."""
        first: dict[bytes, int] = {}
        new = np.array([first.setdefault(curve.tobytes(), len(first)) for curve in self.y])
        kept = np.zeros(len(first), dtype=np.intp)
        kept[new] = np.arange(new.size)  # any of the equal ones
        return Curves(new[self.index], self.x, self.y[kept])

    def blocks(self) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp], Floats]]:
        """Blocks of limited size: rows, their curve within the block, and the curves."""
        order = np.argsort(self.index, kind="stable")
        size = max(1, BLOCK_CELLS // (self.x.size + 1))
        for start in range(0, len(self.y), size):
            curves = self.y[start : start + size]
            ends = np.searchsorted(self.index[order], [start, start + len(curves)])
            rows = order[slice(*ends)]
            yield rows, self.index[rows] - start, curves


def as_curves(
    survival: Any, times: ArrayLike | None, n: int, name: str, smooth_at: Floats
) -> Curves:
    """Curves of ``n`` rows from a matrix at ``times``, or from callables.

    The columns of a data frame may have the times as names, in any order. One callable shared by
    several rows is evaluated once. Without ``times``, step functions are taken at their own steps
    ``.x``, and other callables at ``smooth_at``.
    """
    if callable(survival):
        raise TypeError(f"{name} must hold one curve per row, got a single callable")
    if not hasattr(survival, "__len__"):
        raise TypeError(f"{name} must hold one curve per row, got {type_name(survival)}")
    if len(survival) != n:
        raise ValueError(f"{name} has {len(survival)} rows, the outcome has {n}")
    if all(callable(curve) for curve in survival):
        x, index, y = _evaluate(survival, times, name, smooth_at)
    else:
        if times is None:
            raise ValueError(f"times is needed when {name} is an array")
        x = check_times(np.atleast_1d(times), ascending=True)
        y = finite_floats(columns_by_name(survival, x.tolist(), name), name)
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


def have_steps(curves: Any) -> bool:
    """Whether all these callables are step functions, with their times in ``.x``."""
    return all(hasattr(curve, "x") and not getattr(curve, "smooth", False) for curve in curves)


def _evaluate(
    curves: Sequence[Any], times: ArrayLike | None, name: str, smooth_at: Floats
) -> tuple[Floats, NDArray[np.intp], Floats]:
    first: dict[int, int] = {}
    index = np.array([first.setdefault(id(curve), len(first)) for curve in curves])
    distinct = list({id(curve): curve for curve in curves}.values())
    if times is not None:
        x = check_times(np.atleast_1d(times), ascending=True)
    elif have_steps(distinct):
        steps = {id(curve.x): curve.x for curve in distinct}.values()
        x = np.unique(np.concatenate([np.asarray(s, dtype=np.float64) for s in steps]))
        x = x if x.size else np.zeros(1)  # all curves are constant
    else:
        x = np.unique(smooth_at)
    y = finite_floats([curve(x) for curve in distinct], name)
    if y.shape != (len(distinct), x.size):
        raise ValueError(
            f"a function in {name} must return one value per time; for {x.size} times its result "
            f"has shape {y.shape[1:]}"
        )
    return x, index, y


def finite_floats(values: ArrayLike, name: str) -> Floats:
    """Finite float array."""
    array = as_floats(values, name)
    if array.ndim == 0:
        raise ValueError(f"{name} must have one value per row, got {type_name(values)}")
    if not np.isfinite(array).all():
        row = int(np.argwhere(~np.isfinite(array))[0, 0])
        raise ValueError(f"{name} is NaN or infinite in row {row}")
    return array


def row_values(values: ArrayLike, name: str, n: int) -> Floats:
    """Finite float array of one value per row."""
    array = finite_floats(values, name)
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}; expected ({n},), one per row")
    return array


def censoring_at(censoring: StepFunction, times: Floats, what: str) -> Floats:
    """G at ``times``; after the last training time G is 0 if it ended at 0, else unknown."""
    last = censoring.x[-1]
    if times.size and censoring.y[-1] > 0 and times.max() > last:
        raise ValueError(
            f"{what} {times.max():g} is after the last training time {last:g}; the censoring "
            "distribution is unknown there"
        )
    return np.asarray(censoring(times))


def positive_censoring_at(censoring: StepFunction, times: Floats, what: str) -> Floats:
    """As :func:`censoring_at`, but zeros raise a ValueError."""
    values = censoring_at(censoring, times, what)
    check_positive_censoring(values, times, what)
    return values


def check_end(end: float) -> None:
    """Raise if there is no time from 0 to ``end`` over which to integrate the Brier score."""
    if not end > 0:
        raise ValueError("the Brier score cannot be integrated: every row leaves at time 0")


def check_positive_censoring(values: Floats, times: Floats, what: str) -> None:
    """Raise a ValueError if G is zero at one of these times."""
    if not (values > 0).all():
        raise ValueError(
            f"the censoring distribution of the training data is zero at the {what} "
            f"{times[values <= 0].min():g}: its inverse is not defined"
        )


def inverse_censoring_at(censoring: StepFunction, times: Floats, what: str) -> Floats:
    """1/G at ``times``, and 0 after the last training time if G ended at 0.

    Raises
    ------
    ValueError
        If G is unknown, or zero before the last training time: with delayed entry, all of the few
        rows at risk may be censored early.
    """
    values = censoring_at(censoring, times, what)
    if (censoring.y[:-1] <= 0).any():
        check_positive_censoring(values, times, what)
    return inverse_or_zero(values)


def end_of_weights(censoring: StepFunction) -> float:
    """First time at which 1/G is not defined: G is 0, or every training row has left."""
    zero = censoring.x[censoring.y <= 0]
    return float(zero[0] if zero.size else np.nextafter(censoring.x[-1], np.inf))


def times_followed(times: ArrayLike, test_time: Floats, censoring: StepFunction) -> Floats:
    """Those of ``times`` within the follow-up of both test and training rows, two at least."""
    at = check_times(np.atleast_1d(times), ascending=True)
    at = at[(at >= test_time.min()) & (at < min(test_time.max(), end_of_weights(censoring)))]
    if at.size < 2:
        raise ValueError(
            "fewer than two of times are within the follow-up of test and training rows"
        )
    return at


def inverse_or_zero(values: Floats) -> Floats:
    """1/G, and 0 where G is 0."""
    return np.divide(1.0, values, out=np.zeros_like(values), where=values > 0)


def sums_by_cell(
    row: NDArray[Any], column: NDArray[Any], values: NDArray[Any] | None, shape: tuple[int, ...]
) -> Floats:
    """Table with the sums of the values that have the same row and column; None counts them."""
    cells = np.bincount(row * shape[1] + column, values, shape[0] * shape[1])
    return cells.reshape(shape).astype(np.float64, copy=False)


def sums_before(values: Floats) -> Floats:
    """Sums over the last axis of all values before each position, and of all values."""
    total = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
    np.cumsum(values, axis=-1, out=total[..., 1:])
    return total


def sums_after(values: NDArray[Any]) -> Floats:
    """Sums over the last axis of all values behind each position.

    They are added from the end, because differences of sums cancel if values differ in size.
    """
    total = np.zeros_like(values, dtype=np.float64)
    np.cumsum(values[..., :0:-1], axis=-1, out=total[..., -2::-1])
    return total
