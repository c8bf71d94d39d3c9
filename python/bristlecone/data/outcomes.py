"""Right-censored outcomes in the forms users have them, checked once."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from numbers import Real
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from bristlecone.data.arrays import as_array, check_names, check_not_negative, listed, unmasked

__all__ = ["Survival", "check_survival"]

_FORMS = (
    "a structured array with one boolean and one float field, a DataFrame with columns "
    "'event' and 'time', or a pair (event, time)"
)

# Name of the field or column of delayed entry.
_ENTRY = "entry"

# Columns of a frame that hold where a row's time begins and ends, besides ('entry', time).
_INTERVALS = (("start", "stop"), ("entry", "exit"))

_DAY = np.timedelta64(1, "D")

# No more codes than these are taken for kinds of events.
_MOST_CODES = 10


class Survival(NamedTuple):
    """Right-censored outcomes: ``event`` bool (n,), ``time`` float64 (n,), finite, >= 0.

    ``entry`` float64 (n,) is the time from which a row was observed, 0 <= entry < time; None when
    every row was from the start.
    """

    event: NDArray[np.bool_]
    time: NDArray[np.float64]
    entry: NDArray[np.float64] | None = None


def check_survival(y: Any) -> Survival:
    """Event indicators and times from any accepted form of ``y``.

    Parameters
    ----------
    y : structured array, DataFrame or pair
        * structured array: one boolean field (the event) and one real field (the time), of any
          names;
        * DataFrame (pandas, polars, ...): columns ``event`` and ``time``, or exactly one
          two-valued column (the event) and one column of times;
        * pair ``(event, time)`` of array-likes.

        A further field or column ``entry`` is the time from which a row was observed (delayed
        entry, left truncation). A DataFrame may call entry and time ``start`` and ``stop`` or
        ``entry`` and ``exit``.

        Times are numbers of any unit, or durations (timedelta), which count in days. Where entry
        and time are both dates, as in registries, the time is the days between them and nobody
        enters late.

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
        return _from_fields(unmasked(y, "y"))
    if isinstance(y, (tuple, list)) and len(y) in (2, 3) and all(map(_is_column, y)):
        if len(y) == 3:
            raise ValueError(
                f"y is a {type(y).__name__} of three; expected a pair (event, time). For delayed "
                "entry pass a DataFrame with columns 'event', 'entry' and 'time', or a structured "
                "array with a field 'entry'"
            )
        labels = "event, the first of the pair y,", "time, the second of the pair y,"
        event = _as_event(as_array(y[0], labels[0]), labels[0])
        time = _as_time(as_array(y[1], labels[1]), labels[1])
        if len(event) != len(time):
            raise ValueError(f"y: event has {len(event)} rows but time has {len(time)}")
        return Survival(event, time)
    if nw.dependencies.is_into_dataframe(y):
        names = check_names(y, "y")
        series = nw.from_native(y, eager_only=True).iter_columns()
        return _from_columns(dict(zip(names, series, strict=True)))
    shape = f" of shape {y.shape}" if isinstance(y, np.ndarray) else ""
    raise ValueError(f"y is a {type(y).__name__}{shape}; expected {_FORMS}")


def _is_column(values: Any) -> bool:
    """Whether it may be a column; two tuples are two rows."""
    return not (np.isscalar(values) or isinstance(values, tuple))


def _from_fields(y: NDArray[Any]) -> Survival:
    fields = y.dtype.names or ()
    names = [name for name in fields if name != _ENTRY]
    events = [name for name in names if y.dtype[name].kind == "b"]
    times = [name for name in names if y.dtype[name].kind in "iufmM"]
    if len(names) != 2 or len(events) != 1 or len(times) != 1:
        shown = ", ".join(f"{name!r} ({y.dtype[name]})" for name in names)
        codes = {name: y[name] for name in names if y.dtype[name].kind in "iu"}
        raise ValueError(
            f"y has the fields {shown}; expected one boolean field (event) and one float "
            f"field (time), and at most {_ENTRY!r} besides{_told_codes(codes)}"
        )
    labels = {name: f"field {name!r} of y" for name in fields}
    event = _as_event(y[events[0]], labels[events[0]])
    entry = (y[_ENTRY], labels[_ENTRY]) if _ENTRY in fields else None
    return _outcome(event, (y[times[0]], labels[times[0]]), entry)


def _from_columns(columns: Mapping[Any, nw.Series[Any]]) -> Survival:
    event, entry, time = _roles(columns)

    def values_of(name: Any) -> tuple[NDArray[Any], str]:
        label = f"column {name!r} of y"
        return as_array(columns[name], label), label

    return _outcome(
        _as_event(*values_of(event)), values_of(time), None if entry is None else values_of(entry)
    )


def _roles(columns: Mapping[Any, nw.Series[Any]]) -> tuple[Any, Any, Any]:
    """Names of the columns of event, entry (or None) and time."""
    for entry, time in _INTERVALS:
        if entry in columns and time in columns:
            rest = [name for name in columns if name not in (entry, time)]
            if len(rest) == 1:
                return rest[0], entry, time
    late = _ENTRY if _ENTRY in columns else None
    rest = [name for name in columns if name != late]
    if set(rest) == {"event", "time"}:
        return "event", late, "time"
    two_valued = [name for name in rest if _is_two_valued(columns[name])]
    times = [name for name in rest if name not in two_valued and _is_of_times(columns[name])]
    if len(rest) != 2 or len(two_valued) != 1 or len(times) != 1:
        codes = {
            name: columns[name].to_numpy()
            for name in rest
            if name != "time" and columns[name].dtype.is_integer()
        }
        raise ValueError(
            f"y has the columns {listed(columns)}; expected 'event' and 'time', or exactly one "
            f"two-valued column and one numeric column, and at most {_ENTRY!r} besides"
            f"{_told_codes(codes)}"
        )
    return two_valued[0], late, times[0]


def _is_two_valued(column: nw.Series[Any]) -> bool:
    return column.dtype == nw.Boolean or (column.dtype.is_numeric() and column.n_unique() == 2)


def _is_of_times(column: nw.Series[Any]) -> bool:
    return column.dtype.is_numeric() or column.dtype.is_temporal()


def _outcome(
    event: NDArray[np.bool_],
    time: tuple[NDArray[Any], str],
    entry: tuple[NDArray[Any], str] | None,
) -> Survival:
    """Outcome of arrays and what messages call them."""
    if entry is None:
        return Survival(event, _as_time(*time))
    values, label = _as_dates(*time)
    start, start_label = _as_dates(*entry)
    if values.dtype.kind == start.dtype.kind == "M":
        return Survival(event, _days_between(start, start_label, values, label))
    if (values.dtype.kind == "m") != (start.dtype.kind == "m"):
        raise ValueError(f"{start_label} and {label} must both be durations, or both numbers")
    until = _as_time(values, label)
    return Survival(event, until, _as_entry(start, start_label, until))


def _as_event(values: NDArray[Any], label: str) -> NDArray[np.bool_]:
    _check_one_dimensional(values, label)
    if values.dtype == np.bool_:
        return np.ascontiguousarray(values)
    if values.dtype.kind not in "iuf":
        shown = list(dict.fromkeys(values.tolist()))
        raise ValueError(
            f"{label} has dtype {values.dtype} and holds {listed(shown)}; expected True/False "
            "or 0/1"
        )
    found = np.unique(values)
    if np.isnan(found).any():
        raise ValueError(f"{label} is missing in row {int(np.argmax(np.isnan(values)))}")
    if not np.isin(found, (0, 1)).all():
        raise ValueError(
            f"{label} holds {listed(found.tolist())}; expected True/False or 0/1"
            + _told_codes({label: values})
        )
    return np.ascontiguousarray(values == 1)


def _told_codes(columns: Mapping[Any, NDArray[Any]]) -> str:
    """What to do where a column seems to hold kinds of events; empty where none does."""
    for name, values in columns.items():
        codes = np.unique(values)
        if not 2 <= len(codes) <= _MOST_CODES or np.isin(codes, (0, 1)).all():
            continue
        if not (np.isfinite(codes).all() and (codes == np.floor(codes)).all()):
            continue
        if len(codes) == 2:
            return f". If {codes[1]:g} marks an event, pass event == {codes[1]:g}"
        told = f" ({name!r} has {len(codes)} codes)" if len(columns) > 1 else ""
        return (
            f". Competing risks are not supported{told}; for a cause-specific analysis, where "
            "other causes count as censored, pass event == 1"
        )
    return ""


def _as_dates(values: NDArray[Any], label: str) -> tuple[NDArray[Any], str]:
    """Objects that are all dates or all durations as datetime64 or timedelta64."""
    if values.dtype == object and values.size:
        items = values.tolist()
        if all(isinstance(x, datetime.timedelta) for x in items):
            values = np.array(items, dtype="timedelta64[us]")
        elif all(isinstance(x, datetime.date) for x in items):
            values = np.array([_without_zone(x) for x in items], dtype="datetime64[us]")
    if values.dtype.kind in "mM":
        _check_one_dimensional(values, label)
        missing = np.isnat(values)
        if missing.any():
            raise ValueError(f"{label} is missing in row {int(np.argmax(missing))}")
    return values, label


def _without_zone(moment: datetime.date) -> datetime.date:
    if isinstance(moment, datetime.datetime) and moment.tzinfo is not None:
        return moment.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return moment


def _days_between(
    start: NDArray[Any], start_label: str, stop: NDArray[Any], label: str
) -> NDArray[np.float64]:
    """Days from a date to a later one, with their fractions."""
    days = (stop - start) / _DAY
    if (days < 0).any():
        row = int(np.argmax(days < 0))
        raise ValueError(f"{label} is {stop[row]} in row {row}, before {start_label}, {start[row]}")
    return np.ascontiguousarray(days, dtype=np.float64)


def _as_time(values: NDArray[Any], label: str) -> NDArray[np.float64]:
    _check_one_dimensional(values, label)
    values, _ = _as_dates(values, label)
    if values.dtype.kind == "m":
        values = _in_days(values, label)
    if values.dtype.kind == "M":
        raise ValueError(
            f"{label} holds dates; expected numbers or durations. A date needs the one where the "
            "time begins: a DataFrame with columns 'event', 'entry' and 'exit'"
        )
    if values.dtype == object:
        row = next((row for row, x in enumerate(values) if not isinstance(x, Real)), 0)
        raise ValueError(f"{label} holds {values[row]!r} in row {row}; expected numbers")
    if values.dtype.kind not in "iuf":
        shown = f", such as {values[0]!r};" if values.dtype.kind in "US" and len(values) else ";"
        raise ValueError(f"{label} has dtype {values.dtype}{shown} expected numbers")
    time = np.ascontiguousarray(values, dtype=np.float64)
    check_not_negative(time, label, "times")
    return time


def _in_days(values: NDArray[Any], label: str) -> NDArray[np.float64]:
    unit, _ = np.datetime_data(values.dtype)
    if unit in ("generic", "Y", "M"):
        raise ValueError(
            f"{label} has dtype {values.dtype}, which is no fixed number of days; expected numbers"
        )
    return values / _DAY


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
