"""Cumulative/dynamic area under the ROC curve."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bristlecone._data.checks import check_choice, check_real, check_times
from bristlecone._data.frame import columns_by_name
from bristlecone._data.outcomes import Outcome, check_survival
from bristlecone._types import Floats
from bristlecone.curves import censoring_survival, kaplan_meier
from bristlecone.metrics._inputs import check_test_rows, finite_floats, positive_censoring_at


def cumulative_dynamic_auc(
    survival_train: Outcome,
    survival_test: Outcome,
    estimate: ArrayLike,
    times: ArrayLike,
    tied_tol: float = 1e-8,
    *,
    ties: str = "sksurv",
    sample_weight: ArrayLike | None = None,
) -> tuple[Floats, float]:
    """Area under the ROC curve at given times, and its mean over time.

    At time t, the cases are the rows with an event up to t, weighted by 1/G(t_i); the controls are
    the rows with t_i > t. The cost is O(n · n_times) after sorting; a two-dimensional estimate is
    sorted at each time.

    Parameters
    ----------
    survival_train : structured array, DataFrame or pair (event, time)
        Training outcomes, from which G, the censoring distribution, is estimated.
    survival_test : structured array, DataFrame or pair (event, time), n rows
        Outcomes of the rows to rank; their Kaplan–Meier curve S weights the mean.
    estimate : array-like of shape (n,) or (n, n_times)
        Risk score, higher = earlier event. If predictions depend on time, pass one column per time
        (the cumulative hazard, or 1 − S).
    times : array-like of shape (n_times,)
        Strictly ascending.
    sample_weight : array-like of shape (n,), optional
        Weights of the test rows, finite and non-negative.
    tied_tol : float, default=1e-8
        Neighbours in sorted order that differ by at most this are tied; 0 ties only equal values.
    ties : {"sksurv", "paper"}, default="sksurv"
        With "sksurv" a tied pair counts 0.5, and the mean starts at S = 1. With "paper" it counts 0
        (Zhang et al., AISTATS 2024, eq. 47), the mean starts at ``times[0]`` (eq. 48), and the risk
        sets of G are as in :func:`bristlecone.curves.censoring_survival`.

    Returns
    -------
    auc : ndarray of shape (n_times,)
        Area at each time.
    mean_auc : float
        Mean of ``auc``, each value weighted by the decrease of S since the time before. For a
        single time, its area.

    Raises
    ------
    ValueError
        If a time has no case or no control; if G is zero, or unknown (after the last training
        time), at an event up to the last of ``times``; if S does not decrease over ``times``
        ("paper"); or if an argument is not as described.

    See Also
    --------
    concordance_index_ipcw : Over all times at once.

    References
    ----------
    Uno et al., "Evaluating prediction rules for t-year survivors with censored regression models",
    JASA 102 (2007). Lambert, Chevret, "Summary measure of discrimination in survival
    models based on cumulative/dynamic time-dependent ROC curves", SMMR 25 (2016).
    Zhang, Xin, Seltzer, Rudin, "Optimal Sparse Survival Trees", AISTATS 2024, appendix C.3.

    Examples
    --------
    >>> from bristlecone.metrics import cumulative_dynamic_auc
    >>> y = [True, False, True, True], [1.0, 2.0, 3.0, 4.0]
    >>> auc, mean_auc = cumulative_dynamic_auc(y, y, [4.0, 2.0, 1.0, 3.0], times=[1.5, 3.5])
    >>> auc.tolist()
    [1.0, 0.4]
    """
    event, time, own, kept = check_test_rows(survival_test, sample_weight, estimate=estimate)
    times = check_times(np.atleast_1d(times), ascending=True)
    estimate = finite_floats(columns_by_name(estimate, times.tolist(), "estimate"), "estimate")
    if estimate.shape not in ((kept.size,), (kept.size, times.size)):
        raise ValueError(
            f"estimate must have shape ({kept.size},) or ({kept.size}, {times.size}), "
            f"got {estimate.shape}"
        )
    estimate = estimate[kept]
    check_real("tied_tol", tied_tol, 0.0)
    check_choice("ties", ties, ("sksurv", "paper"))
    tied_worth = 0.5 if ties == "sksurv" else 0.0
    needed = event & (time <= times[-1])
    weight = np.zeros(time.size)
    censoring = censoring_survival(check_survival(survival_train, "survival_train"), ties=ties)
    weight[needed] = own[needed] / positive_censoring_at(censoring, time[needed], "test event time")

    auc = np.empty(times.size)
    for k, t in enumerate(times):
        if k == 0 or estimate.ndim == 2:
            score = estimate if estimate.ndim == 1 else estimate[:, k]
            order = np.argsort(score, kind="stable")
            rank = np.concatenate([[0], np.cumsum(np.diff(score[order]) > tied_tol)])
        cases = np.bincount(rank, np.where(time <= t, weight, 0.0)[order])
        controls = np.bincount(rank, np.where(time > t, own, 0.0)[order])
        pairs = cases.sum() * controls.sum()
        if not pairs > 0:
            missing = "control (a row observed after it)" if cases.sum() > 0 else "case (an event)"
            raise ValueError(f"no {missing} at time {t:g}: the AUC is not defined")
        lower = np.cumsum(controls) - controls
        auc[k] = cases @ (lower + tied_worth * controls) / pairs
    return auc, _mean(auc, np.asarray(kaplan_meier((event, time), own)(times)), ties)


def _mean(auc: Floats, survival: Floats, ties: str) -> float:
    if auc.size == 1:
        return float(auc[0])
    start = 1.0 if ties == "sksurv" else survival[0]
    if not start > survival[-1]:
        raise ValueError(
            "no event between the first and the last of times: the mean AUC is not defined"
        )
    decrease = -np.diff(survival, prepend=start)
    return float(auc @ decrease / (start - survival[-1]))
