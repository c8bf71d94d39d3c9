"""The rows of a survival fit, checked once; later steps rely on it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bristlecone._core import rank_values
from bristlecone._data.arrays import check_not_negative
from bristlecone._data.outcomes import check_causes, check_survival, delayed
from bristlecone._data.rows import (
    check_length,
    check_row_labels,
    check_sample_weight,
    row_count,
    row_numbers,
    take_rows,
)
from bristlecone._types import Bools, Floats, Integers


class TrainingData(NamedTuple):
    """Checked rows of a fit: all of positive weight, at least two, at least one event.

    ``kept`` (one boolean per given row) says which rows these are; None for all. ``group`` is 0 or
    1 per row, for the two values ``groups``, if trees are to be fair to two groups. ``event_free``
    is the split that isolates rows without events, if there is one. ``smoothed`` are the events
    that the search uses, if a teacher has smoothed them. With competing risks, ``cause`` is the
    cause of the event, 0 if censored, and ``n_causes`` their number. ``place`` is the position of
    each time among the distinct times, if known; the engine checks it.
    """

    X: Any
    event: Bools
    time: Floats
    weight: Floats | None
    entry: Floats | None = None
    kept: Bools | None = None
    group: Integers | None = None
    groups: NDArray[Any] | None = None
    event_free: str = ""
    smoothed: Floats | None = None
    cause: Integers | None = None
    n_causes: int = 0
    place: Integers | None = None

    @property
    def outcomes(self) -> dict[str, NDArray[Any] | None]:
        """Outcomes and weights in the form of the engine's tasks."""
        return {
            "time": self.time,
            "event": self.event,
            "weight": self.weight,
            "entry": self.entry,
            "place": self.place,
        }


def check_training_data(X: Any, y: Any, sample_weight: Any = None) -> TrainingData:
    """Check the rows of a survival fit and leave out those of weight zero.

    The columns of ``X`` are checked by the encoder or estimator that reads them.

    Raises
    ------
    ValueError
        For no rows, one row, lengths that differ, no event, pandas indices as in
        ``check_row_labels``, and all of ``check_survival`` and ``check_sample_weight``.
    """
    n_samples = row_count(X)
    check_row_labels(X, y=y, sample_weight=sample_weight)
    event, time, entry = check_survival(y)
    check_length(event, "y", n_samples)
    weight = check_sample_weight(sample_weight, n_samples)
    kept = None
    if weight is not None and not weight.all():
        kept = weight > 0
        X, event, time, weight = take_rows(X, kept), event[kept], time[kept], weight[kept]
        # If no row enters late, continue as if no entry times had been given.
        entry = None if entry is None else delayed(entry[kept])
    if len(event) < 2:
        raise ValueError(
            f"n_samples={len(event)}: a survival tree needs at least two rows of positive weight"
        )
    if not event.any():
        raise ValueError("y has no event: every row is censored")
    # The times are sorted once for all steps of a fit.
    place = rank_values(time)[0].astype(np.int64)
    return TrainingData(X, event, time, weight, entry, kept, place=place)


def check_cause_data(
    X: Any, y: Any, sample_weight: Any = None, n_causes: int | None = None
) -> TrainingData:
    """Check the rows of a fit with competing risks; ``event`` is an event of any cause.

    Raises
    ------
    ValueError
        As ``check_training_data`` and ``check_causes``, the latter of the rows with a weight.
    """
    check_row_labels(X, y=y, sample_weight=sample_weight)
    survival = check_causes(y, n_causes)
    cause: NDArray[Any] = survival.event
    number = int(cause.max()) if n_causes is None else n_causes
    data = check_training_data(X, survival._replace(event=cause > 0), sample_weight)
    if data.kept is None:
        return data._replace(cause=cause, n_causes=number)
    missing = np.setdiff1d(cause, cause[data.kept])
    if missing.any() and n_causes is None:
        raise ValueError(f"y has no event of cause {missing.max()} in a row of positive weight")
    return data._replace(cause=cause[data.kept], n_causes=number)


def check_row_losses(name: str, losses: Any, data: TrainingData) -> Floats:
    """Losses per row as float64, for the rows that the fit keeps.

    Raises
    ------
    ValueError
        If the number differs from that of the rows given, or one is not a finite number >= 0.
    """
    n_samples = len(data.time) if data.kept is None else len(data.kept)
    values = row_numbers(losses, name, n_samples)
    check_not_negative(values, name, "losses")
    return values if data.kept is None else values[data.kept]
