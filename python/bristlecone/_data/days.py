"""Times that are durations or dates: durations become days, and dates need another date."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._data.arrays import check_none_missing
from bristlecone._types import Floats

DAY = np.timedelta64(1, "D")


def as_dates(values: NDArray[Any], label: str) -> NDArray[Any]:
    """Objects as datetime64 or timedelta64 if all are dates or all are durations.

    Raises
    ------
    ValueError
        If a date or a duration is missing; the row is named.
    """
    if values.dtype == object and values.size:
        items = values.ravel().tolist()
        if all(isinstance(x, datetime.timedelta) for x in items):
            values = np.array(items, dtype="timedelta64[us]").reshape(values.shape)
        elif all(isinstance(x, datetime.date) for x in items):
            moments = [_without_zone(x) for x in items]
            values = np.array(moments, dtype="datetime64[us]").reshape(values.shape)
    if values.dtype.kind in "mM":
        check_none_missing(np.isnat(values), label)
    return values


def as_times(times: ArrayLike, label: str) -> Floats:
    """Times as float64, in any shape; durations in days.

    Raises
    ------
    ValueError
        As ``in_days``, and if the times are not numbers.
    """
    values = in_days(np.asarray(times), label)
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{label} must be numbers or durations; got {values.ravel().tolist()[:5]}")
    return np.asarray(values, dtype=np.float64)


def in_days(values: NDArray[Any], label: str, advice: str = "") -> NDArray[Any]:
    """Durations in days, with fractions; other values unchanged.

    Raises
    ------
    ValueError
        If the values are dates (the message ends with ``advice``), or durations in months or years,
        or one is missing.
    """
    values = as_dates(values, label)
    if values.dtype.kind == "M":
        raise ValueError(f"{label} holds dates; expected numbers or durations{advice}")
    if values.dtype.kind != "m":
        return values
    if np.datetime_data(values.dtype)[0] in ("generic", "Y", "M"):
        raise ValueError(
            f"{label} has dtype {values.dtype}, which is not a fixed number of days; expected "
            "numbers"
        )
    days: Floats = values / DAY
    return days


def _without_zone(moment: datetime.date) -> datetime.date:
    if isinstance(moment, datetime.datetime) and moment.tzinfo is not None:
        return moment.astimezone(datetime.timezone.utc).replace(tzinfo=None)
    return moment
