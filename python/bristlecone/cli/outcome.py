"""Times and events from their columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone.cli.tables import listed, shown
from bristlecone.data.frame import Frame

__all__ = ["survival"]


def survival(
    frame: Frame,
    time_name: str,
    event_name: str,
    entry_name: str | None = None,
    *,
    event_value: str | None,
) -> NDArray[np.void]:
    """Outcomes as the estimators take them."""
    event = _event(frame[event_name], event_name, event_value)
    time = _time(frame[time_name], time_name, "--time")
    columns: dict[str, NDArray[Any]] = {"event": event, "time": time}
    if entry_name is not None:
        entry = columns["entry"] = _time(frame[entry_name], entry_name, "--entry")
        late = entry >= time
        if late.any():
            row = int(np.argmax(late))
            raise ValueError(
                f"column {entry_name!r} is {entry[row]:g} in row {row}, where {time_name!r} is "
                f"{time[row]:g}; a row must enter before its time"
            )
    y = np.empty(len(event), dtype=[(name, values.dtype) for name, values in columns.items()])
    for name, values in columns.items():
        y[name] = values
    return y


def _time(values: NDArray[Any], name: str, option: str) -> NDArray[np.float64]:
    _check_present(values, name)
    if values.dtype.kind not in "iuf":
        row = next((k for k, value in enumerate(values) if not _is_number(value)), 0)
        raise ValueError(
            f"{option}: column {name!r} is not numeric; row {row} holds {shown(values[row])}"
        )
    time = values.astype(np.float64)
    wrong = ~(np.isfinite(time) & (time >= 0))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"column {name!r} is {time[row]:g} in row {row}; times must be finite and not negative"
        )
    return time


def _event(values: NDArray[Any], name: str, wanted: str | None) -> NDArray[np.bool_]:
    _check_present(values, name)
    found = dict.fromkeys(values.tolist())
    if wanted is None:
        if not all(isinstance(value, (bool, int, float)) and value in (0, 1) for value in found):
            raise ValueError(
                f"--event: column {name!r} holds {listed(found)}, not 0 and 1 or true and false; "
                "say with --event-value which one is the event"
            )
        return values.astype(bool)
    meant = [value for value in found if _is_written(value, wanted)]
    if not meant:
        raise ValueError(
            f"--event-value: {wanted} does not occur in column {name!r}, which holds "
            f"{listed(found)}"
        )
    return np.array([value in meant for value in values.tolist()])


def _check_present(values: NDArray[Any], name: str) -> None:
    for row, value in enumerate(values.tolist()):
        if value is None or value != value:
            raise ValueError(f"column {name!r} has no value in row {row}")


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _is_written(value: Any, text: str) -> bool:
    """Whether the text stands for the value: 1 and 1.0 are the same number."""
    if isinstance(value, bool):
        return shown(value) == text.lower()
    if isinstance(value, (int, float)):
        return _is_number(text) and value == float(text)
    return bool(value == text)
