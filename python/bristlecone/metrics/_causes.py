"""Metrics of predictions for one of several causes."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._data.checks import check_integer, check_real, check_times
from bristlecone._data.frame import columns_by_name
from bristlecone._data.outcomes import Outcome, Survival, read_causes
from bristlecone._data.rows import check_length, check_row_labels, check_sample_weight
from bristlecone._types import Floats
from bristlecone.curves import censoring_survival
from bristlecone.metrics._concordance import count_pairs
from bristlecone.metrics._inputs import (
    Curves,
    censoring_at,
    check_end,
    check_positive_censoring,
    positive_censoring_at,
    row_values,
    sums_after,
    sums_by_cell,
    times_followed,
)


def concordance_index_cause(
    y: Outcome,
    estimate: ArrayLike,
    cause: int = 1,
    tied_tol: float = 1e-8,
    *,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Concordance index of a risk score with the events of one cause; O(n log n).

    A row i with an event of the cause at t_i is compared with every row j that is still at risk
    after t_i, and with every row j that had an event of another cause by t_i and so can no longer
    have this one. Pairs are weighted by the inverse probability of not being censored: 1/G(t_i−)²
    for the former and 1/(G(t_i−) G(t_j−)) for the latter, with G from the same rows. A row that is
    censored at t_i counts as at risk after the event, as in :func:`concordance_index_censored`.

    Parameters
    ----------
    y : structured array, DataFrame or pair (event, time), n rows
        The event is the number of its cause, 0 if censored. Without delayed entry.
    estimate : array-like of float, shape (n,)
        Risk score of the cause, higher = earlier event.
    cause : int, default=1
        Number of the cause.
    tied_tol : float, default=1e-8
        Scores that differ by at most this are tied, and their pairs count 0.5.
    sample_weight : array-like of float, shape (n,), optional
        Weights of the rows to compare; rows of weight zero are left out.

    Returns
    -------
    float
        Share of the weighted pairs that are concordant.

    Raises
    ------
    ValueError
        If no pair is comparable, or an argument is not as described.

    See Also
    --------
    concordance_index_censored : The index of a single kind of event.
    brier_score_cause : The error of predicted incidences.

    References
    ----------
    Wolbers, Koller, Witteman, Steyerberg, "Prognostic models with competing risks: methods and
    application to coronary risk prediction", Epidemiology 20 (2009); with the weights of Wolbers,
    Blanche, Koller, Witteman, Gerds, "Concordance for prognostic models with competing risks",
    Biostatistics 15 (2014).

    Examples
    --------
    >>> from bristlecone.metrics import concordance_index_cause
    >>> y = [1, 2, 1, 0], [1.0, 2.0, 3.0, 4.0]
    >>> concordance_index_cause(y, [4.0, 1.0, 3.0, 2.0])
    1.0
    """
    check_integer("cause", cause, 1)
    check_real("tied_tol", tied_tol, 0.0)
    rows = _scored(y, sample_weight, "concordance_index_cause", estimate=estimate)
    risk = row_values(estimate, "estimate", rows.kept.size)[rows.kept]
    at = np.flatnonzero(rows.cause == cause)
    uncensored = rows.uncensored(rows.time[at], before=True)

    def pairs(order: NDArray[np.intp], start: NDArray[np.intp], amount: Floats) -> Floats:
        """Concordant and all pairs of every event with ``order[start:]``, by their weights."""
        below, tied, later = count_pairs(risk[order], start, risk[at], tied_tol, amount[order])
        return np.stack([below + 0.5 * tied, later])

    # At the same time, a censored row counts as at risk after the event.
    key = 2 * np.unique(rows.time, return_inverse=True)[1] + (rows.cause == 0)
    by_time = np.argsort(key, kind="stable")
    later = pairs(by_time, np.searchsorted(key[by_time], key[at], side="right"), rows.weight)
    found = later / uncensored
    other = np.flatnonzero((rows.cause > 0) & (rows.cause != cause))
    if other.size:
        amount = np.zeros(rows.time.size)
        amount[other] = rows.weight[other] / rows.uncensored(rows.time[other], before=True)
        back = other[np.argsort(-rows.time[other], kind="stable")]
        found += pairs(back, np.searchsorted(-rows.time[back], -rows.time[at]), amount)
    weight = rows.weight[at] / uncensored
    concordant, compared = found @ weight
    if not compared > 0:
        raise ValueError("no pair is comparable: the concordance index is not defined")
    return float(concordant / compared)


def brier_score_cause(
    y_train: Outcome,
    y_test: Outcome,
    incidence: ArrayLike,
    times: ArrayLike,
    cause: int = 1,
    *,
    sample_weight: ArrayLike | None = None,
) -> Floats:
    """Brier score of the predicted incidence of one cause at each time.

    The mean of (1{t_i <= t, event of the cause} − F_i(t))², where rows are weighted by the inverse
    probability of not being censored: 1/G(t_i−) after an event, 1/G(t) if still at risk, and 0 if
    censored before.

    Parameters
    ----------
    y_train : structured array, DataFrame or pair (event, time)
        Training outcomes, from which G, the censoring distribution, is estimated. They may have
        delayed entry.
    y_test : structured array, DataFrame or pair (event, time), n rows
        Outcomes to score; the event is the number of its cause, 0 if censored.
    incidence : array-like of float, shape (n, n_times)
        Predicted probability of an event of the cause by each time.
    times : array-like of float, shape (n_times,)
        Finite, not negative.
    cause : int, default=1
        Number of the cause.
    sample_weight : array-like of float, shape (n,), optional
        Weights of the rows to score; rows of weight zero are left out.

    Returns
    -------
    array of float, shape (n_times,)
        0 is best.

    Raises
    ------
    ValueError
        If G is zero or unknown where it is needed, or an argument is not as described.

    See Also
    --------
    brier_score : The score of survival curves, for a single kind of event.
    concordance_index_cause : The order of predictions.

    References
    ----------
    Schoop, Beyersmann, Schumacher, Binder, "Quantifying the predictive accuracy of time-to-event
    models in the presence of competing risks", Biometrical Journal 53 (2011).

    Examples
    --------
    >>> from bristlecone.metrics import brier_score_cause
    >>> y = [1, 2, 1, 1], [1.0, 2.0, 3.0, 4.0]
    >>> brier_score_cause(y, y, [[1.0], [0.0], [1.0], [0.0]], times=[3.0]).tolist()
    [0.0]
    """
    check_integer("cause", cause, 1)
    at = check_times(times)
    rows = _scored(y_test, sample_weight, "brier_score_cause", incidence=incidence)
    incidence = columns_by_name(incidence, at.tolist(), "incidence")
    predicted = np.asarray(incidence, dtype=np.float64)
    if predicted.shape != (rows.kept.size, at.size):
        raise ValueError(
            f"incidence has shape {predicted.shape}; expected one row per outcome and one column "
            f"per time, {(rows.kept.size, at.size)}"
        )
    if not ((predicted >= 0) & (predicted <= 1)).all():
        row = int(np.argmax(~((predicted >= 0) & (predicted <= 1)).all(axis=1)))
        raise ValueError(f"incidence is outside [0, 1] in row {row}")
    order = np.argsort(at)
    curves = Curves(np.arange(len(predicted)), at[order], predicted[:, order])
    curves = curves.of_rows(rows.kept).merged()
    scores = np.empty(at.size)
    scores[order] = _brier_scores(_Scored(read_causes(y_train), None), rows, curves, cause)
    return scores


def brier_score_of_tree(
    tree: Any,
    X: Any,
    y_train: Outcome,
    y_test: Outcome,
    cause: int,
    times: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Mean over time of ``brier_score_cause`` for the incidences of a tree; 0 is best.

    The trapezoid rule runs over those of ``times`` within the follow-up of both test and training
    rows. By default the mean is exact, from 0 to the last test or training time, whichever is
    earlier: the score is constant between steps of the curves, events and censorings, and G is
    known and positive before the last training time.
    """
    leaves, test = tree.leaves_, _scored(y_test, sample_weight, "the metric ibs")
    leaves.check_cause(cause)
    index = np.searchsorted(tree.tree_.leaves, tree.apply(X))
    check_length(test.kept, "y", index.size)
    train, end = _Scored(read_causes(y_train), None), test.time.max()

    def scores(at: Floats) -> Floats:
        curves = Curves(index, at, leaves.incidence_at(cause, at)).of_rows(test.kept)
        return _brier_scores(train, test, curves, cause)

    if times is not None:
        at = times_followed(times, test.time, train.censoring)
        found = scores(at)
        return float((found[1:] + found[:-1]) / 2 @ np.diff(at) / (at[-1] - at[0]))
    end = min(end, train.time.max())
    check_end(end)
    at = np.unique(np.concatenate([[0.0], leaves.unique_times, test.time, train.time]))
    at = at[at < end]
    return float(scores(at) @ np.diff(at, append=end) / end)


def _brier_scores(train: _Scored, rows: _Scored, incidence: Curves, cause: int) -> Floats:
    """Brier score at the times of the curves, which ascend.

    The rows of a curve are added up by what was observed by each time: O(n log n) and O(n_times)
    per curve.
    """
    at = incidence.x
    happened = (rows.cause > 0) & (rows.time <= at.max(initial=0.0))
    own = np.zeros(rows.time.size)
    own[happened] = rows.weight[happened] / train.uncensored(rows.time[happened], before=True)
    at_risk = at < rows.time.max()
    inverse = np.zeros(at.size)
    inverse[at_risk] = 1 / train.uncensored(at[at_risk])
    amounts = np.where(rows.cause == cause, own, 0.0), np.where(rows.cause == cause, 0.0, own)
    column = np.searchsorted(at, rows.time, side="left")  # the first time with t_i <= t
    total = np.zeros(at.size)
    for part, index, predicted in incidence.blocks():
        summed = partial(sums_by_cell, index, column[part], shape=(len(predicted), at.size + 1))
        observed, others = (summed(amount[part]).cumsum(axis=1)[:, :-1] for amount in amounts)
        later = sums_after(summed(rows.weight[part]))[:, :-1]
        scores = observed * (1 - predicted) ** 2 + (others + later * inverse) * predicted**2
        total += scores.sum(axis=0)
    return total / rows.weight.sum()


class _Scored:
    """Rows of positive weight, and the distribution of their censoring."""

    def __init__(self, outcomes: Survival, weight: Floats | None) -> None:
        self.kept = np.ones(outcomes.time.size, dtype=bool) if weight is None else weight > 0
        self.cause, self.time = outcomes.event[self.kept], outcomes.time[self.kept]
        self.weight = np.ones(self.time.size) if weight is None else weight[self.kept]
        entry = None if outcomes.entry is None else outcomes.entry[self.kept]
        happened = Survival(self.cause > 0, self.time, entry)
        self.censoring = censoring_survival(happened, None if weight is None else self.weight)

    def uncensored(self, times: Floats, before: bool = False) -> Floats:
        """G at times, or just before them."""
        if not before:
            return positive_censoring_at(self.censoring, times, "time")
        censoring_at(self.censoring, times, "time")  # an error where G is not known
        at, values = self.censoring.x, self.censoring.y
        found = np.append(1.0, values)[np.searchsorted(at, times, side="left")]
        check_positive_censoring(found, times, "time just before")
        return found


def _scored(y: Outcome, sample_weight: ArrayLike | None, what: str, **by_row: ArrayLike) -> _Scored:
    check_row_labels(y, of="y", sample_weight=sample_weight, **by_row)
    outcomes = read_causes(y)
    if outcomes.entry is not None:
        raise ValueError(
            f"y has delayed entry, which is not supported by {what}; use log_likelihood of a "
            "CompetingRisksTree, in model selection the metric likelihood"
        )
    return _Scored(outcomes, check_sample_weight(sample_weight, outcomes.time.size))
