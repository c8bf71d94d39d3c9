"""Finds the event, time and entry columns of a DataFrame by their names, never by their values.

Values are ambiguous: an indicator of censoring looks like one of events and would invert the
outcome. A name is only accepted if it can mean one thing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from bristlecone._data.arrays import listed

INTERVALS = (("start", "stop"), ("entry", "exit"))
"""Columns that hold where a row's time begins and ends, besides ('entry', time)."""


def _words(column: Any) -> frozenset[str]:
    parts = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(column)).casefold()
    return frozenset(re.findall(r"[^\W_]+", re.sub(r"follow[\W_]up", "followup", parts)))


EVENTS = _words(
    "event status observed uncensored death died dead deceased failure failed fail relapse "
    "relapsed recurrence recurred progression progressed churn churned arrest delta fstat fustat"
)
TIMES = _words(
    "time duration tenure lifetime followup survtime futime rfstime lenfol hours days weeks "
    "months years stop tstop exit"
)
ENTRIES = _words("entry start tstart")
REVERSED = _words("censored censor censoring cens alive survived")
"""Words for the opposite of an event."""

LETTERS = {"e": "event", "d": "event", "t": "time"}
"""Names of a single letter; within longer names a letter may mean anything."""

# Words that may accompany another without changing its meaning.
_BESIDE_EVENT = EVENTS | _words("is has had was indicator flag occurred")
_BESIDE_TIME = TIMES | EVENTS | _words("survival to in until date")
_BESIDE_ENTRY = ENTRIES | _words("time date")

# An interval that begins at one of these ends at one of those; "entry" goes with every time.
_STARTS = frozenset({"start", "tstart"})
_STOPS = frozenset({"stop", "tstop", "exit"})


class Columns(NamedTuple):
    """Names of the columns of an outcome; ``entry`` is None if there is none."""

    event: Any
    time: Any
    entry: Any


def columns_of(columns: Mapping[Any, Any], name: str) -> Columns:
    """Columns of event, time and entry among columns of a DataFrame that messages call ``name``.

    ``columns`` has a narwhals series by the name of every column.

    Raises
    ------
    ValueError
        If a column's name is unknown or means the opposite of an event, or if several
        columns have one role, or none is the event or the time. The message says what to rename.
    """
    by_role: dict[str | None, list[Any]] = {}
    for column in columns:
        by_role.setdefault(role_of(column), []).append(column)
    events, times, entries = (by_role.get(role, []) for role in ("event", "time", "entry"))
    if len(events) == len(times) == 1 and len(entries) <= 1 and len(columns) == 2 + len(entries):
        entry = entries[0] if entries else None
        if entry is None or _agree(entry, times[0]):
            return Columns(events[0], times[0], entry)
        raise ValueError(
            f"{name} has the columns {listed(columns)}: it is not clear that {entry!r} and "
            f"{times[0]!r} start at the same moment. If they do, rename them to 'entry' and 'time'"
        )
    if not events and (reverse := by_role.get("reversed")):
        raise ValueError(_turned(reverse[0], columns[reverse[0]], name))
    unclear = [
        *_unclear("event", events),
        *_unclear("time", times),
        *([_twice("entry", entries)] if len(entries) > 1 else []),
    ]
    unknown = [*by_role.get(None, []), *by_role.get("reversed", [])]
    if unknown and not unclear:
        unclear = [f"drop {listed(unknown)}"]
    raise ValueError(
        f"{name} has the columns {listed(columns)}; expected 'event' and 'time', and at most "
        f"'entry' besides: {'; '.join(unclear)}. Columns are recognised by their names, not by "
        "their values"
    )


def role_of(column: Any) -> str | None:
    """Meaning of a column's name: "event", "time", "entry", "reversed" or None."""
    words = _words(column)
    if len(words) == 1 and (word := next(iter(words))) in LETTERS:
        return LETTERS[word]
    for role, known, beside in (
        ("entry", ENTRIES, _BESIDE_ENTRY),
        ("time", TIMES, _BESIDE_TIME),
        ("event", EVENTS, _BESIDE_EVENT),
        ("reversed", REVERSED, _BESIDE_EVENT | REVERSED),
    ):
        if words & known and words <= beside:
            return role
    return None


def _agree(entry: Any, time: Any) -> bool:
    return not _words(entry) & _STARTS or bool(_words(time) & _STOPS)


def _unclear(role: str, found: Collection[Any]) -> list[str]:
    if len(found) > 1:
        return [_twice(role, found)]
    return [] if found else [f"rename the column of the {role} to {role!r}"]


def _twice(role: str, found: Collection[Any]) -> str:
    return f"{listed(found)} are all names of the {role}, drop all except one"


def _turned(column: Any, values: Any, name: str) -> str:
    opposite = f"~{column}" if str(values.dtype) == "Boolean" else f"1 - {column}"
    return (
        f"column {column!r} of {name} reads as the opposite of an event. Pass event = {opposite} "
        f"as a column 'event' instead, or rename it to 'event' if {column!r} is true when the "
        "event was observed"
    )
