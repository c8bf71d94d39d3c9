"""Metrics of predictions for one of several causes."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._data.checks import check_integer, check_real, check_times
from bristlecone._data.outcomes import Outcome, Survival, read_causes
from bristlecone._data.rows import check_row_labels, check_sample_weight
from bristlecone.curves import censoring_survival
from bristlecone.metrics._concordance import amount_from, count_below
from bristlecone.metrics._inputs import censoring_at, positive_censoring_at, row_values

Floats = NDArray[np.float64]


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
    after t_i, and with every row that had an event of another cause before: it will never have
    this one. Pairs are weighted by the inverse probability of not being censored, 1/G(t_i−)² for
    the former and 1/(G(t_i−) G(t_j−)) for the latter, with G from the same rows. A row that is
    censored at t_i was at risk after the event, as in :func:`concordance_index_censored`.

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
    rows = _scored(y, sample_weight, estimate=estimate)
    risk = row_values(estimate, "estimate", rows.kept.size)[rows.kept]
    at = np.flatnonzero(rows.cause == cause)
    uncensored = rows.uncensored(rows.time[at], before=True)

    def pairs(order: NDArray[np.intp], start: NDArray[np.intp], amount: Floats) -> Floats:
        """Concordant and all pairs of every event with ``order[start:]``, by their weights."""
        values, code = np.unique(risk[order], return_inverse=True)
        lower = np.searchsorted(values, risk[at] - tied_tol, side="left")
        upper = np.searchsorted(values, risk[at] + tied_tol, side="right")
        own = amount[order]
        below = count_below(code, start, lower, own)
        tied = count_below(code, start, upper, own) - below
        return np.stack([below + 0.5 * tied, amount_from(start, order.size, own)])

    # At one time, a censored row was at risk after the event.
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
        Training outcomes, from which G, the censoring distribution, is estimated.
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
    rows = _scored(y_test, sample_weight, incidence=incidence)
    predicted = np.asarray(incidence, dtype=np.float64)
    if predicted.shape != (rows.kept.size, at.size):
        raise ValueError(
            f"incidence has shape {predicted.shape}; expected one row per outcome and one column "
            f"per time, {(rows.kept.size, at.size)}"
        )
    if not ((predicted >= 0) & (predicted <= 1)).all():
        row = int(np.argmax(~((predicted >= 0) & (predicted <= 1)).all(axis=1)))
        raise ValueError(f"incidence is outside [0, 1] in row {row}")
    predicted = predicted[rows.kept]
    train = _scored(y_train, None)
    happened = np.flatnonzero(rows.cause > 0)
    happened = happened[rows.time[happened] <= at.max(initial=0.0)]
    own = np.zeros(rows.time.size)
    own[happened] = 1 / train.uncensored(rows.time[happened], before=True)
    scores = np.zeros(at.size)
    for k, t in enumerate(at.tolist()):
        left = (rows.time <= t) & (rows.cause > 0)
        staying = rows.time > t
        weight = np.where(left, own, 0.0)
        if staying.any():
            weight[staying] = 1 / train.uncensored(np.array([t]))[0]
        observed = left & (rows.cause == cause)
        squares = (observed - predicted[:, k]) ** 2
        scores[k] = (rows.weight * weight) @ squares / rows.weight.sum()
    return scores


class _Scored:
    """Rows of positive weight, and the distribution of their censoring."""

    def __init__(self, outcomes: Survival, weight: Floats | None) -> None:
        self.kept = np.ones(outcomes.time.size, dtype=bool) if weight is None else weight > 0
        self.cause, self.time = outcomes.event[self.kept], outcomes.time[self.kept]
        self.weight = np.ones(self.time.size) if weight is None else weight[self.kept]
        happened = Survival(self.cause > 0, self.time)
        self._censoring = censoring_survival(happened, None if weight is None else self.weight)

    def uncensored(self, times: Floats, before: bool = False) -> Floats:
        """G at times, or just before them."""
        if not before:
            return positive_censoring_at(self._censoring, times, "time")
        censoring_at(self._censoring, times, "time")  # an error where G is not known
        at, values = self._censoring.x, self._censoring.y
        return np.append(1.0, values)[np.searchsorted(at, times, side="left")]


def _scored(y: Outcome, sample_weight: ArrayLike | None, **by_row: ArrayLike) -> _Scored:
    check_row_labels(y, of="y", sample_weight=sample_weight, **by_row)
    outcomes = read_causes(y)
    if outcomes.entry is not None:
        raise ValueError("y has delayed entry, which is not supported here")
    return _Scored(outcomes, check_sample_weight(sample_weight, outcomes.time.size))
