"""Log-likelihood of outcomes under the curves of any survival model (docs/guide/metrics.md)."""

from __future__ import annotations

import numpy as np

from bristlecone._data.outcomes import Survival
from bristlecone._foreign import SteppedCurves
from bristlecone._types import Floats
from bristlecone.curves import nelson_aalen

# Intervals of time in which the hazard of a model is assumed proportional to the baseline hazard:
# their largest number, and the smallest number of training events in each, if there are that many.
_MOST_INTERVALS, _EVENTS = 10, 20


def log_likelihood(train: Survival, test: Survival, hazard: SteppedCurves, model: str) -> Floats:
    """δ + δ ln(r Λ) − H of every row, with the baseline Λ of the training rows.

    H is the predicted cumulative hazard at the ends of the intervals, joined in proportion to Λ,
    and r = ΔH/ΔΛ is its rate in the interval of the row's time, so r dΛ is the hazard there. Rates
    below 1/(n + 1), with n training rows, are replaced by it: no model is ruined by one event. If H
    is θΛ, this is the definition of trees with proportional curves.

    Raises
    ------
    ValueError
        If a row outlives its predicted curve, which reached zero before.
    """
    baseline = nelson_aalen(train)
    ends = _ends(train)
    # The first interval includes time 0.
    edges = np.concatenate([[-1.0], ends])
    level = np.concatenate([[0.0], baseline(ends)])
    known = np.column_stack([np.zeros(len(hazard.y)), hazard.at(ends)])
    floor = 1 / (len(train.time) + 1)
    with np.errstate(invalid="ignore"):
        rate = np.fmax(np.diff(known, axis=1) / np.diff(level), floor)
    known = np.column_stack([np.zeros(len(rate)), np.cumsum(rate * np.diff(level), axis=1)])

    def reached(times: Floats) -> tuple[Floats, Floats, Floats]:
        """Λ and H at a time of every row, and the rate there."""
        rows = np.arange(len(times))
        place = np.clip(np.searchsorted(edges, times, side="left") - 1, 0, rate.shape[1] - 1)
        at = np.asarray(baseline(times))
        own = rate[rows, place]
        return at, known[rows, place] + own * (at - level[place]), own

    event, time, entry = test
    exposure, expected, own = reached(time)
    if entry is not None:
        before, unseen, _ = reached(entry)
        exposure, expected = exposure - before, expected - unseen
    early = exposure <= 0
    exposure = np.where(early, floor, exposure)
    expected = np.where(early, own * exposure, expected)
    wrong = ~np.isfinite(expected)
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"{model} predicts a survival of zero before time {time[row]:g}, which row {row} "
            "reached: the likelihood is zero; the metric ibs can score the model"
        )
    logs = np.log(np.where(event, own * exposure, 1.0))
    return np.asarray(event + logs - expected)


def _ends(train: Survival) -> Floats:
    """Ends of the intervals: event times of the training rows, evenly spread over the events."""
    happened = np.sort(train.time[train.event])
    count = int(np.clip(happened.size // _EVENTS, 1, _MOST_INTERVALS))
    places = np.ceil(np.arange(1, count + 1) * happened.size / count).astype(np.int64) - 1
    return np.unique(happened[places])
