"""What comes from the user is checked here, once; everything behind relies on it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from bristlecone.errors import InvalidParameterError

__all__ = [
    "Survival",
    "TrainingData",
    "as_array",
    "check_choice",
    "check_integer",
    "check_real",
    "check_row_losses",
    "check_sample_weight",
    "check_seed",
    "check_survival",
    "check_training_data",
    "row_count",
    "take_rows",
    "thread_count",
]

_FORMS = (
    "a structured array with one boolean and one float field, a DataFrame with columns "
    "'event' and 'time', or a pair (event, time)"
)

# Name of the field or column of delayed entry.
_ENTRY = "entry"

# Between these no sum, product or ratio of weights overflows or vanishes.
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-100, 1e100


class Survival(NamedTuple):
    """Right-censored outcomes: ``event`` bool (n,), ``time`` float64 (n,), finite, >= 0.

    ``entry`` float64 (n,) is the time from which a row was observed, 0 <= entry < time; None when
    every row was from the start.
    """

    event: NDArray[np.bool_]
    time: NDArray[np.float64]
    entry: NDArray[np.float64] | None = None


class TrainingData(NamedTuple):
    """Checked rows of a fit: all of positive weight, at least two, at least one event.

    ``kept`` (one boolean per row given) says which those are; None when all are. ``group`` is 0
    or 1 per row, of the two values ``groups``, where trees are to be fair to two groups.
    """

    X: Any
    event: NDArray[np.bool_]
    time: NDArray[np.float64]
    weight: NDArray[np.float64] | None
    entry: NDArray[np.float64] | None = None
    kept: NDArray[np.bool_] | None = None
    group: NDArray[np.int64] | None = None
    groups: NDArray[Any] | None = None


def check_survival(y: Any) -> Survival:
    """Event indicators and times from any accepted form of ``y``.

    Parameters
    ----------
    y : structured array, DataFrame or pair
        * structured array: one boolean field (the event) and one real field (the time), of any
          names;
        * DataFrame (pandas, polars, ...): columns ``event`` and ``time``, or exactly one
          two-valued column (the event) and one numeric column (the time);
        * pair ``(event, time)`` of array-likes.

        A further field or column ``entry`` of numbers is the time from which a row was observed
        (delayed entry, left truncation).

    Returns
    -------
    Survival

    Raises
    ------
    ValueError
        When the form is not recognised, the event is not two-valued, a time is missing,
        infinite or negative, or an entry is not before its time; the column and row are named.
    """
    if isinstance(y, np.ndarray) and y.dtype.names:
        return _from_fields(y)
    if nw.dependencies.is_into_dataframe(y):
        return _from_frame(nw.from_native(y, eager_only=True))
    # Two tuples are two rows, not two columns.
    if (
        isinstance(y, (tuple, list))
        and len(y) == 2
        and not (np.isscalar(y[0]) or isinstance(y[0], tuple))
    ):
        labels = "event, the first of the pair y,", "time, the second of the pair y,"
        event = _as_event(as_array(y[0], labels[0]), labels[0])
        time = _as_time(as_array(y[1], labels[1]), labels[1])
        if len(event) != len(time):
            raise ValueError(f"y: event has {len(event)} rows but time has {len(time)}")
        return Survival(event, time)
    shape = f" of shape {y.shape}" if isinstance(y, np.ndarray) else ""
    raise ValueError(f"y is a {type(y).__name__}{shape}; expected {_FORMS}")


def _from_fields(y: NDArray[Any]) -> Survival:
    names = [name for name in y.dtype.names or () if name != _ENTRY]
    events = [name for name in names if y.dtype[name].kind == "b"]
    times = [name for name in names if y.dtype[name].kind in "iuf"]
    if len(names) != 2 or len(events) != 1 or len(times) != 1:
        fields = ", ".join(f"{name!r} ({y.dtype[name]})" for name in names)
        raise ValueError(
            f"y has the fields {fields}; expected one boolean field (event) and one float "
            f"field (time), and at most {_ENTRY!r} besides"
        )
    label = f"field {_ENTRY!r} of y"
    time = _as_time(y[times[0]], f"field {times[0]!r} of y")
    return Survival(
        _as_event(y[events[0]], f"field {events[0]!r} of y"),
        time,
        _as_entry(y[_ENTRY], label, time) if _ENTRY in (y.dtype.names or ()) else None,
    )


def _from_frame(frame: nw.DataFrame[Any]) -> Survival:
    entry_label = f"column {_ENTRY!r} of y"
    entry = as_array(frame[_ENTRY], entry_label) if _ENTRY in frame.columns else None
    frame = frame.drop(_ENTRY, strict=False)
    if set(frame.columns) == {"event", "time"}:
        event_name, time_name = "event", "time"
    else:
        event_name, time_name = _recognise_columns(frame)
    event_label, time_label = f"column {event_name!r} of y", f"column {time_name!r} of y"
    time = _as_time(as_array(frame[time_name], time_label), time_label)
    return Survival(
        _as_event(as_array(frame[event_name], event_label), event_label),
        time,
        None if entry is None else _as_entry(entry, entry_label, time),
    )


def _recognise_columns(frame: nw.DataFrame[Any]) -> tuple[str, str]:
    names = frame.columns
    two_valued = [
        name
        for name in names
        if frame[name].dtype == nw.Boolean
        or (frame[name].dtype.is_numeric() and frame[name].n_unique() == 2)
    ]
    others = [name for name in names if name not in two_valued and frame[name].dtype.is_numeric()]
    if len(names) != 2 or len(two_valued) != 1 or len(others) != 1:
        raise ValueError(
            f"y has the columns {_listed(names)}; expected 'event' and 'time', or exactly one "
            f"two-valued column and one numeric column, and at most {_ENTRY!r} besides"
        )
    return two_valued[0], others[0]


def as_array(values: Any, label: str) -> NDArray[Any]:
    """Array of a series or array-like; objects that are all numbers become numbers."""
    if nw.dependencies.is_into_series(values):
        values = nw.from_native(values, series_only=True)
    if isinstance(values, nw.Series):
        missing = values.is_null().to_numpy()
        if missing.any():
            raise ValueError(f"{label} is missing in row {int(np.argmax(missing))}")
        values = values.to_numpy()
    array = np.asarray(values)
    if array.dtype == object and all(isinstance(x, (Real, np.bool_)) for x in array.flat):
        return np.array(array.tolist())
    return array


def _as_event(values: NDArray[Any], label: str) -> NDArray[np.bool_]:
    _check_one_dimensional(values, label)
    if values.dtype.kind not in "biuf":
        shown = list(dict.fromkeys(values.tolist()))
        raise ValueError(
            f"{label} has dtype {values.dtype} and holds {_listed(shown)}; expected True/False "
            "or 0/1"
        )
    found = np.unique(values)
    if np.isnan(found).any():
        raise ValueError(f"{label} is missing in row {int(np.argmax(np.isnan(values)))}")
    if not np.isin(found, (0, 1)).all():
        raise ValueError(f"{label} holds {_listed(found.tolist())}; expected True/False or 0/1")
    return np.ascontiguousarray(values == 1)


def _as_time(values: NDArray[Any], label: str) -> NDArray[np.float64]:
    _check_one_dimensional(values, label)
    if values.dtype == object:
        row = next((row for row, x in enumerate(values) if not isinstance(x, Real)), 0)
        raise ValueError(f"{label} holds {values[row]!r} in row {row}; expected numbers")
    if values.dtype.kind not in "iuf":
        raise ValueError(f"{label} has dtype {values.dtype}; expected numbers")
    time = np.ascontiguousarray(values, dtype=np.float64)
    wrong = ~(np.isfinite(time) & (time >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{label} is {time[row]} in row {row}; times must be finite and not negative"
        )
    return time


def _as_entry(values: NDArray[Any], label: str, time: NDArray[np.float64]) -> NDArray[np.float64]:
    entry = _as_time(values, label)
    late = entry >= time
    if late.any():
        row = int(np.argmax(late))
        raise ValueError(
            f"{label} is {entry[row]} in row {row}, where the time is {time[row]}; a row must "
            "enter before its time"
        )
    return entry


def _check_one_dimensional(values: NDArray[Any], label: str) -> None:
    if values.ndim != 1:
        raise ValueError(f"{label} has shape {values.shape}; expected one value per row")


def _listed(values: Iterable[Any], most: int = 5) -> str:
    shown = [repr(value) for value in values]
    return ", ".join(shown[:most]) + (", ..." if len(shown) > most else "")


def check_sample_weight(sample_weight: Any, n_samples: int) -> NDArray[np.float64] | None:
    """Row weights as float64 (n_samples,), or None when none are given.

    Raises
    ------
    ValueError
        When the length differs, or a weight is missing, infinite, negative or positive but
        outside [1e-100, 1e100] (the row is named), or no weight is positive.
    """
    if sample_weight is None:
        return None
    values = as_array(sample_weight, "sample_weight")
    if values.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has shape {values.shape}; expected ({n_samples},), one per row"
        )
    if values.dtype.kind not in "biuf":
        raise ValueError(f"sample_weight has dtype {values.dtype}; expected numbers")
    weight = np.ascontiguousarray(values, dtype=np.float64)
    wrong = ~(np.isfinite(weight) & (weight >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"sample_weight is {weight[row]} in row {row}; weights must be finite and not negative"
        )
    extreme = (weight > _MOST_WEIGHT) | ((weight < _LEAST_WEIGHT) & (weight > 0))
    if extreme.any():
        row = int(np.argmax(extreme))
        raise ValueError(
            f"sample_weight is {weight[row]} in row {row}; weights must be zero or lie between "
            f"{_LEAST_WEIGHT} and {_MOST_WEIGHT}"
        )
    if not weight.any():
        raise ValueError("sample_weight is zero in every row")
    return weight


def check_training_data(X: Any, y: Any, sample_weight: Any = None) -> TrainingData:
    """Check the rows of a survival fit and leave out those of weight zero.

    The columns of ``X`` are checked by whoever reads them (encoder or estimator).

    Raises
    ------
    ValueError
        For no rows, one row, lengths that differ, no event, and all of ``check_survival`` and
        ``check_sample_weight``.
    """
    n_samples = row_count(X)
    event, time, entry = check_survival(y)
    if len(event) != n_samples:
        raise ValueError(f"X has {n_samples} rows but y has {len(event)}")
    weight = check_sample_weight(sample_weight, n_samples)
    kept = None
    if weight is not None and not weight.all():
        kept = weight > 0
        X, event, time, weight = take_rows(X, kept), event[kept], time[kept], weight[kept]
        entry = None if entry is None else entry[kept]
    if len(event) < 2:
        raise ValueError(
            f"n_samples={len(event)}: a survival tree needs at least two rows of positive weight"
        )
    if not event.any():
        raise ValueError("y has no event: every row is censored")
    return TrainingData(X, event, time, weight, entry, kept)


def check_row_losses(name: str, losses: Any, data: TrainingData) -> NDArray[np.float64]:
    """Losses per row as float64, those of the rows kept for the fit.

    Raises
    ------
    ValueError
        When the number differs from that of the rows given, or one is not a finite number >= 0.
    """
    values = as_array(losses, name)
    expected = (len(data.time) if data.kept is None else len(data.kept),)
    if values.shape != expected:
        raise ValueError(f"{name} has shape {values.shape}; expected {expected}, one per row")
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{name} has dtype {values.dtype}; expected numbers")
    values = np.ascontiguousarray(values, dtype=np.float64)
    wrong = ~(np.isfinite(values) & (values >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{name} is {values[row]} in row {row}; must be finite and not negative")
    return values if data.kept is None else values[data.kept]


def row_count(X: Any) -> int:
    """Number of rows of a data frame or of a two-dimensional array-like."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if isinstance(X, (list, tuple)):
        try:
            shape = np.shape(X)
        except ValueError:
            raise ValueError("the rows of X differ in length or hold lists") from None
    elif _is_only_array_like(X):
        shape = np.asarray(X).shape
    if len(shape) != 2:
        raise InvalidParameterError(
            f"X is a {type(X).__name__}{f' of shape {shape}' if shape else ''}; expected a "
            "DataFrame or an array of rows and columns"
        )
    return int(shape[0])


def take_rows(X: Any, kept: NDArray[np.bool_]) -> Any:
    """Only the rows where the mask is true, in the container they came in."""
    if nw.dependencies.is_into_dataframe(X):
        return nw.from_native(X, eager_only=True).filter(kept.tolist()).to_native()
    if isinstance(X, (list, tuple)):
        return [row for row, keep in zip(X, kept, strict=True) if keep]
    return np.asarray(X)[kept] if _is_only_array_like(X) else X[kept]


def _is_only_array_like(X: Any) -> bool:
    """Whether ``X`` turns into an array but has nothing else of one."""
    return hasattr(X, "__array__") and not hasattr(X, "shape")


def check_integer(name: str, value: Any, minimum: int, *, optional: bool = False) -> None:
    """Raise InvalidParameterError unless ``value`` is an int64 >= minimum (or None)."""
    if optional and value is None:
        return
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral) or value < minimum:
        raise InvalidParameterError(
            f"{name} must be an integer of at least {minimum}{' or None' if optional else ''}; "
            f"got {value!r}"
        )
    if int(value) >= 2**63:
        raise InvalidParameterError(f"{name} must be less than 2**63; got {value!r}")


def check_real(name: str, value: Any, minimum: float, *, optional: bool = False) -> None:
    """Raise InvalidParameterError unless ``value`` is a finite number >= minimum (or None)."""
    if optional and value is None:
        return
    try:
        number = float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        number = math.inf
    if isinstance(value, (bool, np.bool_)) or not math.isfinite(number) or number < minimum:
        raise InvalidParameterError(
            f"{name} must be a finite number of at least {minimum}"
            f"{' or None' if optional else ''}; got {value!r}"
        )


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise InvalidParameterError unless ``value`` is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidParameterError(f"{name} must be one of {_listed(choices)}; got {value!r}")


def check_seed(name: str, value: Any) -> None:
    """Raise InvalidParameterError unless scikit-learn accepts ``value`` as a random state."""
    try:
        check_random_state(value)
    except ValueError as error:
        raise InvalidParameterError(f"{name} must be an integer or None: {error}") from None


def thread_count(n_jobs: int | None) -> int:
    """Threads that ``n_jobs`` asks for: None is one, -1 all, -2 all but one.

    Raises
    ------
    InvalidParameterError
        When ``n_jobs`` is 0 or not an integer.
    """
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, (bool, np.bool_)) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise InvalidParameterError(
            f"n_jobs must be an integer other than 0 or None; got {n_jobs!r}"
        )
    check_integer("n_jobs", n_jobs, -(2**63))
    if n_jobs > 0:
        return int(n_jobs)
    return max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))
