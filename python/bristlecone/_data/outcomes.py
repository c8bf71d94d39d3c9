"""Right-censored outcomes in the usual forms, checked once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._data.arrays import (
    as_array,
    as_flags,
    check_in_memory,
    check_names,
    check_no_objects,
    check_none_missing,
    check_not_negative,
    listed,
    missing_objects,
    refuse,
    type_name,
    unmasked,
)
from bristlecone._data.days import DAY, as_dates, in_days
from bristlecone._data.outcome_names import columns_of, role_of
from bristlecone._data.rows import check_length, check_row_labels
from bristlecone._types import Bools, Floats

if TYPE_CHECKING:
    from narwhals.typing import IntoDataFrame

Outcome: TypeAlias = "NDArray[np.void] | IntoDataFrame | tuple[ArrayLike, ArrayLike] | Survival"
"""Forms of y that ``fit`` accepts, see :func:`check_survival`."""

AsEvent: TypeAlias = Callable[[NDArray[Any], str], NDArray[Any]]
"""Reads the column of the event; the text is its name in messages."""

_FORMS = (
    "a structured array with one boolean and one float field (bristlecone.outcome makes one), a "
    "DataFrame with columns 'event' and 'time', or a pair (event, time)"
)

# Name of the field or column of delayed entry.
_ENTRY = "entry"

_ENTRY_DATE = (
    ". A date also needs the date at which the time starts: pass outcome(event, exit, entry), or a "
    "DataFrame with columns 'event', 'entry' and 'exit'"
)

# An event column with at most this many codes is assumed to contain competing risks.
_MOST_CODES = 10


class Survival(NamedTuple):
    """Right-censored outcomes: ``event`` bool (n,), ``time`` float64 (n,), finite, >= 0.

    ``entry`` float64 (n,) is the time from which a row was observed, 0 <= entry < time; None if
    every row was observed from the start.
    """

    event: Bools
    time: Floats
    entry: Floats | None = None


def outcome(event: ArrayLike, time: ArrayLike, entry: ArrayLike | None = None) -> NDArray[np.void]:
    """Return outcomes as one structured array, for ``fit``, metrics, curves and cross-validation.

    Parameters
    ----------
    event : array-like of shape (n,)
        Whether the event was observed: booleans or 0/1, in a list, array or series. For competing
        risks the number of the cause: 0 if censored, 1, 2, ... If the codes are 1 (censored) and 2
        (event), as often in R, pass ``status == 2``: as they are, they mean two causes.
    time : array-like of shape (n,)
        Time of event or censoring: numbers in any unit, durations (timedelta), which are converted
        to days, or dates if ``entry`` has dates.
    entry : array-like of shape (n,), optional
        Time at which a row came under observation (delayed entry, left truncation), in the unit of
        ``time``. If both are dates, the time is the number of days between them, and there is no
        delayed entry.

    Returns
    -------
    structured array of shape (n,)
        Fields ``event`` (bool, or int64 with several causes), ``time`` (float64) and, if ``entry``
        has numbers or durations, ``entry`` (float64).

    Raises
    ------
    ValueError
        If the event contains anything else, a time is missing, infinite or negative, an entry is
        not before its time, lengths differ, or pandas indices contain the same labels in another
        order. The message names the argument and row.

    See Also
    --------
    bristlecone.curves.kaplan_meier : Survival curve of outcomes.

    Examples
    --------
    >>> import bristlecone
    >>> bristlecone.outcome([1, 0], [3, 4.5])
    array([( True, 3. ), (False, 4.5)],
          dtype=[('event', '?'), ('time', '<f8')])
    >>> from datetime import date
    >>> exits = [date(2024, 3, 1), date(2024, 2, 2)]
    >>> bristlecone.outcome([True, False], exits, entry=[date(2024, 2, 1)] * 2)["time"]
    array([29.,  1.])
    """
    return as_structured(check_columns(event, time, entry, _as_event_or_cause))


def check_columns(
    event: Any, time: Any, entry: Any = None, as_event: AsEvent | None = None
) -> Survival:
    """Outcomes of arguments called event, time and entry; raises as :func:`outcome`."""
    check_row_labels(event, of="event", time=time, entry=entry)
    late = None if entry is None else (entry, "entry")
    return as_survival((event, "event"), (time, "time"), late, as_event)


def as_structured(survival: Survival) -> NDArray[np.void]:
    """Checked outcomes as one array with the fields ``event``, ``time`` and perhaps ``entry``."""
    columns = {name: values for name, values in survival._asdict().items() if values is not None}
    y = np.empty(len(survival.time), dtype=[(name, x.dtype) for name, x in columns.items()])
    for name, values in columns.items():
        y[name] = values
    return y


def check_survival(y: Any, name: str = "y", *, without_entry: str = "") -> Survival:
    """Event indicators and times from any form of ``y`` that :func:`outcome` and ``fit`` describe.

    ``name`` is the name of ``y`` in messages. Checked outcomes are returned unchanged. The columns
    of a DataFrame are recognised by their names (outcome_names.py), the fields of a structured
    array by their types.

    Raises
    ------
    ValueError
        If the form is not recognised, there are no rows, the event is not two-valued, a time is
        missing, infinite or negative, an entry is not before its time, or a row enters late and
        ``without_entry`` says what does not support this; the column and row are named.
    """
    survival = y if isinstance(y, Survival) else _read(y, name)
    survival = survival._replace(entry=delayed(survival.entry))
    if survival.entry is not None and without_entry:
        raise ValueError(f"{name} has delayed entry, which is not supported by {without_entry}")
    return survival


def delayed(entry: Floats | None) -> Floats | None:
    """The times of entry; None if no row enters late."""
    return entry if entry is not None and entry.any() else None


def read_causes(y: Any) -> Survival:
    """Outcomes with several causes: ``event`` is int64, the cause of the event, 0 if censored.

    Accepts the forms of ``check_survival``. In a structured array the event is the field of
    integers (or booleans), and the time that of floats; two fields of integers are recognised by
    their names.

    Raises
    ------
    ValueError
        As ``check_survival``, and for a cause that is missing, negative or not whole.
    """
    survival = _read(y, "y", as_cause)
    return survival._replace(entry=delayed(survival.entry))


def either_outcome(y: Any) -> Survival:
    """Outcomes as in ``check_survival`` (with its errors), or else as in ``read_causes``."""
    try:
        return check_survival(y)
    except ValueError:
        with suppress(ValueError):
            return read_causes(y)
        raise


def check_causes(y: Any, n_causes: int | None = None) -> Survival:
    """As ``read_causes`` for a fit, in which every cause occurs unless their number is given.

    Raises
    ------
    ValueError
        As ``read_causes``, and if there is no event at all, or none of a cause below the largest,
        or one of a cause above ``n_causes``.
    """
    survival = read_causes(y)
    cause: NDArray[Any] = survival.event
    found = np.unique(cause[cause > 0])
    if not found.size:
        raise ValueError("y has no event: every row is censored")
    if n_causes is not None:
        if found[-1] > n_causes:
            row = int(np.argmax(cause > n_causes))
            raise ValueError(
                f"y has an event of cause {cause[row]} in row {row}, but n_causes is {n_causes}"
            )
        return survival
    # Checked before the range is made, because a cause may be of any size.
    if found[-1] != found.size:
        unused = next(k for k, code in enumerate(found.tolist(), start=1) if k != code)
        raise ValueError(
            f"y has no event of cause {unused}, but one of cause {found[-1]} in row "
            f"{int(cause.argmax())}; number the causes from 1 without gaps (0 is censored), or "
            "pass n_causes if some may have no event"
        )
    return survival


def is_outcome(values: Any) -> bool:
    """Whether these are outcomes in a form of ``check_survival``, and not a single column."""
    if isinstance(values, np.ndarray):
        return bool(values.dtype.names)
    return (
        isinstance(values, Survival)
        or _is_pair(values)
        or (nw.dependencies.is_into_dataframe(values) and values.shape[1] > 1)
    )


def as_survival(
    event: tuple[Any, str],
    time: tuple[Any, str],
    entry: tuple[Any, str] | None = None,
    as_event: AsEvent | None = None,
) -> Survival:
    """Outcomes from columns, each with its name in messages.

    ``as_event`` reads the event; by default it has two values.

    Raises
    ------
    ValueError
        As ``check_survival``.
    """
    observed = (as_event or _as_event)(as_array(*event), event[1])
    until, late = _times(
        (as_array(*time), time[1]), None if entry is None else (as_array(*entry), entry[1])
    )
    check_length(until, time[1], len(observed), of=event[1])
    if not len(observed):
        raise ValueError(f"{event[1]} has no rows: n_samples=0")
    return Survival(observed, until, late)


def _read(y: Any, name: str, as_event: AsEvent | None = None) -> Survival:
    if isinstance(y, np.ndarray) and y.dtype.names:
        return _from_fields(unmasked(y, name), name, as_event)
    if _is_pair(y):
        if len(y) == 3:
            raise ValueError(
                f"{name} is {type_name(y)} of three; expected a pair (event, time). For "
                "delayed entry pass bristlecone.outcome(event, time, entry), or a DataFrame with "
                "columns 'event', 'entry' and 'time'"
            )
        event, time = (
            f"event, the first of the pair {name},",
            f"time, the second of the pair {name},",
        )
        check_row_labels(y[0], of=f"the event of {name}", **{f"the time of {name}": y[1]})
        return as_survival((y[0], event), (y[1], time), as_event=as_event)
    if nw.dependencies.is_into_dataframe(y):
        names = check_names(y, name)
        series = nw.from_native(y, eager_only=True).iter_columns()
        return _from_columns(dict(zip(names, series, strict=True)), name, as_event)
    check_in_memory(y, name)
    shape = f" of shape {y.shape}" if isinstance(y, np.ndarray) else ""
    raise ValueError(f"{name} is {type_name(y)}{shape}; expected {_FORMS}")


def _is_pair(y: Any) -> bool:
    """Whether there are two columns, or three."""
    return isinstance(y, (tuple, list)) and len(y) in (2, 3) and all(map(_is_column, y))


def _is_column(values: Any) -> bool:
    """Whether this may be a column; two tuples are two rows."""
    return not (np.isscalar(values) or isinstance(values, tuple))


def _from_fields(y: NDArray[Any], name: str, as_event: AsEvent | None) -> Survival:
    fields = y.dtype.names or ()
    names = [field for field in fields if field != _ENTRY]
    events = [field for field in names if y.dtype[field].kind == "b"]
    times = [field for field in names if y.dtype[field].kind in "iufmM"]
    if as_event is not None:
        events = events or [field for field in names if y.dtype[field].kind in "iu"]
        if len(events) == 2:
            events = [field for field in events if role_of(field) == "event"]
        times = [field for field in times if field not in events]
    if len(names) != 2 or len(events) != 1 or len(times) != 1:
        shown = ", ".join(f"{field!r} ({y.dtype[field]})" for field in names)
        codes = {field: y[field] for field in names if y.dtype[field].kind in "iu"}
        wanted = "boolean" if as_event is None else "integer"
        about = _about_codes(codes) if as_event is None else ""
        raise ValueError(
            f"{name} has the fields {shown}; expected one {wanted} field (event) and one float "
            f"field (time), and at most {_ENTRY!r} besides{about}"
        )

    def named(field: str) -> tuple[Any, str]:
        return y[field], f"field {field!r} of {name}"

    return as_survival(
        named(events[0]), named(times[0]), named(_ENTRY) if _ENTRY in fields else None, as_event
    )


def _from_columns(
    columns: Mapping[Any, nw.Series[Any]], name: str, as_event: AsEvent | None
) -> Survival:
    event, time, entry = columns_of(columns, name)

    def named(column: Any) -> tuple[Any, str]:
        return columns[column], f"column {column!r} of {name}"

    late = None if entry is None else named(entry)
    return as_survival(named(event), named(time), late, as_event)


def _times(
    time: tuple[NDArray[Any], str], entry: tuple[NDArray[Any], str] | None
) -> tuple[Floats, Floats | None]:
    """Times and entries (or None) from arrays with their names in messages."""
    if entry is None:
        return _as_time(*time), None
    (values, label), (start, start_label) = time, entry
    _check_one_dimensional(values, label)
    _check_one_dimensional(start, start_label)
    values, start = as_dates(values, label), as_dates(start, start_label)
    check_length(start, start_label, len(values), of=label)
    if values.dtype.kind == start.dtype.kind == "M":
        return _days_between(start, start_label, values, label), None
    if any((values.dtype.kind == kind) != (start.dtype.kind == kind) for kind in "Mm"):
        raise ValueError(
            f"{start_label} and {label} must both be dates, both be durations, or both be numbers"
        )
    until = _as_time(values, label)
    return until, _as_entry(start, start_label, until)


def _as_event(values: NDArray[Any], label: str) -> Bools:
    _check_codes(values, label, "True/False or 0/1")
    if values.dtype == np.bool_:
        return as_flags(values)
    found = np.unique(values)
    if not np.isin(found, (0, 1)).all():
        raise ValueError(
            f"{label} holds {listed(found.tolist())}; expected True/False or 0/1"
            + _about_codes({label: values})
        )
    return np.ascontiguousarray(values == 1)


def _as_event_or_cause(values: NDArray[Any], label: str) -> NDArray[Any]:
    numeric = values.dtype.kind in "iuf" and not np.isnan(values).any()
    several = numeric and not np.isin(values, (0, 1)).all()
    return as_cause(values, label) if several else _as_event(values, label)


def as_cause(values: NDArray[Any], label: str, most: int = 2**31 - 1) -> NDArray[Any]:
    """Causes as int64, at most ``most``."""
    expected = "the number of the cause: 0 if censored, 1, 2, ..."
    _check_codes(values, label, expected)
    # A type of few bytes could not be compared with a larger number.
    number = values.astype(np.float64)
    wrong = (number < 0) | (number != np.floor(number)) | (number > most)
    refuse(wrong, values, label, f"expected {expected}, each with an event")
    return np.ascontiguousarray(values, dtype=np.int64)


def _check_codes(values: NDArray[Any], label: str, expected: str) -> None:
    """Raise ValueError unless there is one number per row; ``expected`` says which numbers."""
    _check_one_dimensional(values, label)
    if values.dtype == object:
        check_none_missing(missing_objects(values), label)
    if values.dtype.kind not in "biuf":
        shown = list(dict.fromkeys(values.tolist()))
        raise ValueError(
            f"{label} has dtype {values.dtype} and holds {listed(shown)}; expected {expected}"
            + _about_texts(shown)
        )
    check_none_missing(np.isnan(values), label)


def _about_texts(shown: list[Any]) -> str:
    """Advice if a column has texts, such as the levels of a factor of R; otherwise empty."""
    if not 2 <= len(shown) <= _MOST_CODES or not all(isinstance(text, str) for text in shown):
        return ""
    if len(shown) == 2:
        return ". Compare the column with the text of an event, as in event == 'dead'"
    return (
        ". To number the causes, list the texts with that of censored rows first: "
        "pandas.Categorical(event, ['censored', ...]).codes"
    )


def _about_codes(columns: Mapping[Any, NDArray[Any]]) -> str:
    """Advice if a column seems to contain several kinds of events; otherwise empty."""
    for name, values in columns.items():
        codes = np.unique(values)
        if not 2 <= len(codes) <= _MOST_CODES or np.isin(codes, (0, 1)).all():
            continue
        if not (np.isfinite(codes).all() and (codes == np.floor(codes)).all()):
            continue
        if len(codes) == 2:
            return f". If {codes[1]:g} marks an event, pass event == {codes[1]:g}"
        which = f" ({name!r} has {len(codes)} codes)" if len(columns) > 1 else ""
        return (
            f". Competing risks need a CompetingRisksTree and the metrics of a cause{which}; for a "
            "cause-specific analysis, in which other causes count as censored, pass event == 1"
        )
    return ""


def _days_between(start: NDArray[Any], start_label: str, stop: NDArray[Any], label: str) -> Floats:
    """Days from a date to a later one, including fractions."""
    days = (stop - start) / DAY
    if (days < 0).any():
        row = int(np.argmax(days < 0))
        left, entered = (_date_text(dates[row]) for dates in (stop, start))
        raise ValueError(f"{label} is {left} in row {row}, before {start_label}, {entered}")
    return np.ascontiguousarray(days, dtype=np.float64)


def _date_text(date: np.datetime64) -> str:
    """A date, without the time of day if this is midnight."""
    day = date.astype("M8[D]")
    return str(day if day == date else date)


def _as_time(values: NDArray[Any], label: str) -> Floats:
    _check_one_dimensional(values, label)
    values = in_days(values, label, _ENTRY_DATE)
    check_no_objects(values, label)
    if values.dtype.kind not in "iuf":
        shown = f", such as {values[0]!r};" if values.dtype.kind in "US" and len(values) else ";"
        raise ValueError(f"{label} has dtype {values.dtype}{shown} expected numbers")
    # A field of a packed structured array need not be aligned.
    time = np.require(values, np.float64, ["C_CONTIGUOUS", "ALIGNED"])
    check_not_negative(time, label, "times")
    return time


def _as_entry(values: NDArray[Any], label: str, time: Floats) -> Floats:
    entry = _as_time(values, label)
    late = entry >= time
    if late.any():
        row = int(np.argmax(late))
        raise ValueError(
            f"{label} is {entry[row]} in row {row}, but the time is {time[row]}; a row must "
            "enter before its time"
        )
    return entry


def _check_one_dimensional(values: NDArray[Any], label: str) -> None:
    if values.ndim != 1:
        raise ValueError(f"{label} has shape {values.shape}; expected one value per row")
