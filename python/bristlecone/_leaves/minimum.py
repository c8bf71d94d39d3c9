"""Minimum sizes of leaves and the prior, as the user gives them."""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Integral
from typing import Any

import numpy as np

from bristlecone._core import BinaryMatrix
from bristlecone._data.rows import row_count
from bristlecone._data.survival import TrainingData
from bristlecone._encoder.use import AnswerCounts
from bristlecone._leaves.statistics import baseline_hazard, row_hazard
from bristlecone._log import warn
from bristlecone._types import Integers
from bristlecone.exceptions import EventFreeWarning, InvalidParameterError, SmallSampleWarning

AUTO_EVENTS = 5
AUTO_PRIOR = 10.0

# A side of a question without events is allowed if the events expected there (by the baseline
# hazard) are this many times the minimum of a leaf.
_CLEARLY = 4


def smallest_leaf(parameters: Any, data: Any, count: Integers | None = None) -> dict[str, int]:
    """Minimum rows of a leaf and, for survival data, minimum events, by their names.

    ``parameters`` contains ``min_samples_leaf`` and ``min_events_leaf``. ``data`` are training
    rows; each may stand for ``count`` rows.

    Raises
    ------
    InvalidParameterError
        If ``min_events_leaf`` is a number above that of the events.
    """
    n_rows = row_count(data.X) if count is None else int(count.sum())
    least = {"min_samples_leaf": least_rows(parameters.min_samples_leaf, n_rows)}
    if isinstance(data, TrainingData):
        n_events = int((data.event if count is None else count[data.event]).sum())
        least["min_events_leaf"] = _least_events(parameters.min_events_leaf, data, n_events)
    return least


def least_rows(value: Any, n_rows: int) -> int:
    """Minimum number of rows of a leaf for this number of training rows, at most all of them."""
    return min(int(value), n_rows) if isinstance(value, Integral) else _share_of(value, n_rows)


def _least_events(value: Any, data: TrainingData, n_events: int) -> int:
    """Minimum number of events of a leaf; 0 without a minimum."""
    if value is None:
        return 0
    if isinstance(value, str):
        return 0 if data.event_free else min(AUTO_EVENTS, n_events)
    if not isinstance(value, Integral):
        return _share_of(value, n_events)
    if int(value) > n_events:
        raise InvalidParameterError(
            f"min_events_leaf={value!r} is more than the {n_events} events of the training rows"
        )
    return int(value)


def prior_events(value: Any) -> float:
    """Pseudo-events of a prior for the likelihood."""
    return AUTO_PRIOR if isinstance(value, str) else float(value)


def _share_of(share: Any, total: int) -> int:
    # A product such as 0.1 · 30 = 3.0000000000000004 is meant to be whole.
    return max(1, math.ceil(round(float(share) * total, 9)))


def warn_of_small_sample(
    counted: Callable[[], AnswerCounts] | None,
    rows: tuple[Any, int, int],
    events: tuple[Any, int, int] | None = None,
) -> None:
    """Warn if a minimum rules out every split.

    ``counted`` contains the rows and events for which each binary feature is true; None for
    numbers, for which only the totals are known. ``rows`` is ``min_samples_leaf``, its value here
    and the number of rows, ``events`` the same for ``min_events_leaf`` and events.
    """
    limits = [("min_samples_leaf", "rows", rows)]
    if events is not None:
        limits.append(("min_events_leaf", "events", events))
    for name, what, (value, least, total) in limits:
        whole = isinstance(value, Integral)
        if not least or (whole and least == 1):
            continue  # rules out nothing but constant columns, which have their own warning
        splits = total >= 2 * least
        if counted is not None:
            answers = counted()
            yes = answers.holds if what == "rows" else answers.among
            splits = bool((np.minimum(yes, total - yes) >= least).any())
            # Constant columns have their own warning.
            splits |= not ((answers.holds > 0) & (answers.holds < answers.n_rows)).any()
        if not splits:
            means = "" if whole else f" means at least {least} {what} in a leaf"
            warn(
                f"{name}={value!r}{means}: no binary feature leaves as many {what} on each side, "
                "so the tree is a single leaf",
                SmallSampleWarning,
            )


def event_free_rows(
    encoder: Any, features: BinaryMatrix, answers: AnswerCounts, data: TrainingData
) -> str:
    """The question with a side that has no events, although many are expected there.

    Many means ``AUTO_EVENTS`` or more expected by the baseline. Of several questions it is the one
    with the most expected events; empty if there is none. ``features`` are those of the fitted
    ``encoder``, and ``answers`` theirs, counted among the events. O(n) per question that isolates
    rows without events.
    """
    sides = event_free_sides(answers, int(data.event.sum()))
    if not sides:
        return ""
    # Quick checks come first, because every fit runs them and few need the rest.
    hazard = row_hazard(data, baseline_hazard(data))
    return worst_side(
        encoder,
        answers,
        sides,
        lambda answer, feature: math.fsum(hazard[features.column(feature) == answer].tolist()),
    )


def event_free_sides(answers: AnswerCounts, n_events: int) -> list[tuple[bool, int]]:
    """Sides of features (answer and position) without events but with enough rows to expect some.

    ``n_events`` is the number of events of all rows.
    """
    events = np.stack([n_events - answers.among, answers.among])
    rows = np.stack([answers.n_rows - answers.holds, answers.holds])
    sides, features = np.nonzero((events == 0) & (rows >= _CLEARLY * AUTO_EVENTS))
    return [(bool(side), int(k)) for side, k in zip(sides, features, strict=True)]


def worst_side(
    encoder: Any,
    answers: AnswerCounts,
    sides: list[tuple[bool, int]],
    expected: Callable[[bool, int], float],
) -> str:
    """Text for the side with the most ``expected`` events, if these are many; otherwise empty."""
    names = encoder.get_feature_names_out()
    worst, found = float(_CLEARLY * AUTO_EVENTS), ""
    for answer, feature in sides:
        events = expected(answer, feature)
        if events >= worst:
            worst, holds = events, answers.holds[feature]
            found = (
                f"{str(names[feature])!r} {'holds' if answer else 'does not hold'} for "
                f"{holds if answer else answers.n_rows - holds} rows without events, "
                f"although {events:.0f} events are expected"
            )
    return found


def warn_of_event_free_rows(found: str) -> None:
    """Warn of the question that ``event_free_rows`` found: leaves may have no events."""
    if found:
        warn(
            f"{found}: min_events_leaf='auto' therefore sets no minimum. Leave the column out "
            f"if it reveals the outcome; min_events_leaf={AUTO_EVENTS} excludes leaves without "
            "events",
            EventFreeWarning,
        )
