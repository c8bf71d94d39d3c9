"""Outcomes from the columns that the options name."""

from __future__ import annotations

from collections.abc import Collection
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._cli.tables import absent, listed, spells
from bristlecone._data.outcome_names import INTERVALS
from bristlecone._data.outcomes import as_cause, as_structured, as_survival
from bristlecone._types import Bools


def default_columns(columns: Collection[str]) -> dict[str, str]:
    """Time and entry columns by role, if no option names them."""
    for entry, time in (("entry", "time"), *INTERVALS):
        if entry in columns and time in columns:
            return {"time": time, "entry": entry}
    return {"time": "time"}


def survival(
    frame: Any,
    time_name: str,
    event_name: str,
    entry_name: str | None = None,
    *,
    event_value: str | None = None,
    has_causes: bool = False,
) -> NDArray[np.void]:
    """Outcomes in the form of the estimators."""

    def named(name: str) -> tuple[Any, str]:
        check_present(frame[name], name)
        return frame[name], f"column {name!r}"

    event, time = named(event_name), named(time_name)
    entry = None if entry_name is None else named(entry_name)
    if entry is None and isinstance(time[0].iloc[0], date):
        raise ValueError(f"{time[1]} holds dates: name the column of the start dates with --entry")
    if has_causes:
        return as_structured(as_survival(event, time, entry, as_cause))
    event = _event(frame[event_name], event_name, event_value), event[1]
    return as_structured(as_survival(event, time, entry))


def _event(values: Any, name: str, wanted: str | None) -> Bools:
    found = values.unique().tolist()
    if wanted is None:
        if not all(isinstance(value, (bool, int, float)) and value in (0, 1) for value in found):
            advice = "name the value of an event with --event-value"
            if {0, 1, 2} <= set(found):
                advice += "; for several causes, pass --estimator competing-risks"
            raise ValueError(
                f"--event: column {name!r} holds {listed(found)}, not 0 and 1 or true and false; "
                f"{advice}"
            )
        return np.asarray(values, dtype=bool)
    meant = [value for value in found if spells(wanted, value)]
    if not meant:
        raise absent("--event-value", wanted, name, found)
    return np.asarray(values.isin(meant))


def check_present(values: Any, name: str) -> None:
    """Raise ValueError for a column with a missing value."""
    missing = values.isna().to_numpy()
    if missing.any():
        raise ValueError(f"column {name!r} has no value in row {int(np.argmax(missing))}")
