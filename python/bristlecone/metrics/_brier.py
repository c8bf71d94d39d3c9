"""Brier score under censoring, its integral over time, and the ratio to Kaplan–Meier."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from bristlecone._data.checks import check_choice, check_times
from bristlecone._data.outcomes import Outcome, check_survival
from bristlecone._types import Floats
from bristlecone.curves import StepFunction, censoring_survival, kaplan_meier
from bristlecone.metrics._inputs import (
    Curves,
    ScoredRows,
    as_curves,
    check_end,
    check_test_rows,
    have_steps,
    inverse_censoring_at,
    inverse_or_zero,
    sums_after,
    sums_before,
    sums_by_cell,
)

# Number of pieces on which a smooth curve is taken as constant.
_PIECES = 256


def brier_score(
    survival_train: Outcome,
    survival_test: Outcome,
    estimate: ArrayLike | Sequence[Callable],
    times: ArrayLike,
    *,
    ties: str = "sksurv",
    sample_weight: ArrayLike | None = None,
) -> tuple[Floats, Floats]:
    """Brier score at given times, with inverse probability of censoring weights (IPCW).

    BS(t) = mean of S_i(t)² 1{t_i <= t, event} / G(t_i) + (1 − S_i(t))² 1{t_i > t} / G(t), where 1/G
    counts as 0 if G ends at 0 (Zhang et al., AISTATS 2024, eq. 2). The cost is O(n · n_times).

    Parameters
    ----------
    survival_train : structured array, DataFrame or pair (event, time)
        Training outcomes, from which G, the censoring distribution, is estimated.
    survival_test : structured array, DataFrame or pair (event, time), n rows
        Outcomes of the rows to score.
    estimate : array-like of shape (n, n_times), or sequence of n callables
        Predicted survival probabilities at ``times``; for a single time, shape (n,) is accepted.
    times : array-like of shape (n_times,)
        Strictly ascending. With ``ties="sksurv"`` within [min, max) of the test times, as in
        scikit-survival; with "paper" within [0, max].
    ties : {"sksurv", "paper"}, default="sksurv"
        Risk sets of G, see :func:`bristlecone.curves.censoring_survival`.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows to score, finite and not negative. The mean is weighted, and rows of
        weight zero are left out. G gives all training rows the same weight.

    Returns
    -------
    times : ndarray of shape (n_times,)
        As given.
    scores : ndarray of shape (n_times,)
        Brier score at each time.

    Raises
    ------
    ValueError
        If a time is out of range; if G is needed after the last training time, where it is unknown
        (rows censored later do not need their own G), or where it is zero before that time, as may
        happen with delayed entry; or if an argument is not as described.

    See Also
    --------
    integrated_brier_score : Its integral over time.

    References
    ----------
    Graf et al., "Assessment and comparison of prognostic classification schemes for survival
    data", Statistics in Medicine 18 (1999).

    Examples
    --------
    >>> from bristlecone.metrics import brier_score
    >>> y = [True, False, True, True], [1.0, 2.0, 3.0, 4.0]
    >>> brier_score(y, y, [0.2, 0.5, 0.6, 0.9], times=2.5)[1].round(4).tolist()
    [0.0738]
    """
    rows = check_test_rows(survival_test, sample_weight, estimate=estimate)
    times = check_times(np.atleast_1d(times), ascending=True)
    curves = as_curves(estimate, times, rows.kept.size, "estimate", times).of_rows(rows.kept)
    censoring = censoring_survival(check_survival(survival_train, "survival_train"), ties=ties)
    _check_follow_up(times, rows.time, ties)
    return times, _scores(rows, curves, censoring)


def integrated_brier_score(
    survival_train: Outcome,
    survival_test: Outcome,
    estimate: ArrayLike | Sequence[Callable],
    times: ArrayLike | None = None,
    *,
    ties: str = "sksurv",
    method: str = "trapezoid",
    limits: tuple[float, float] | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """Integral of the Brier score over time, divided by the length of the interval.

    Parameters
    ----------
    survival_train, survival_test, ties, sample_weight
        As in :func:`brier_score`.
    estimate : array-like of shape (n, n_times), or sequence of n callables
        Predicted survival probabilities at ``times``. For ``method="step"`` they hold from each
        time to the next, and S is 1 before the first.
    times : array-like of shape (n_times,), optional
        Strictly ascending. By default, step functions are evaluated at their own steps ``.x``: at
        all of them with ``method="step"``, which is exact; with "trapezoid" at those within the
        follow-up of the test rows, as in :func:`brier_score`. Other callables, and the smooth
        curves of a ``SoftSurvivalTree``, are evaluated in the middle of 256 equal intervals of
        time; with "trapezoid" at the times of the test rows.
    method : {"trapezoid", "step"}, default="trapezoid"
        "trapezoid" joins the scores at ``times`` (at least two) by straight lines, as
        scikit-survival does. "step" is the exact integral of the step functions S and G (Zhang et
        al., eq. 1; Huisman et al., eq. 25); its cost is O(n log n + n_curves · n_times).
    limits : tuple of (float, float), optional
        Interval of the exact integral, by default [0, last test time] as in Zhang et al. Huisman et
        al. use the 10% and 90% quantiles of the test times, and the test rows for G.

    Returns
    -------
    float
        Integrated Brier score.

    Raises
    ------
    ValueError
        As in :func:`brier_score`; also if ``limits`` are given without ``method="step"`` or do not
        satisfy 0 <= lower < upper.

    See Also
    --------
    brier_score : The score at given times.
    ibs_ratio : Relative to Kaplan–Meier.

    References
    ----------
    Zhang, Xin, Seltzer, Rudin, "Optimal Sparse Survival Trees", AISTATS 2024, eqs. 1–2.
    Huisman, van der Linden, Demirović, "Optimal Survival Trees", AAAI 2024, eq. 25.

    Examples
    --------
    >>> from bristlecone.curves import kaplan_meier
    >>> from bristlecone.metrics import integrated_brier_score
    >>> y = [True, False, True, True], [1.0, 2.0, 3.0, 4.0]
    >>> integrated_brier_score(y, y, [kaplan_meier(y)] * 4, method="step")
    0.15234375
    """
    curves, integral = _prepared(
        survival_train, survival_test, estimate, times, ties, method, limits, sample_weight
    )
    return integral(curves)


def ibs_ratio(
    survival_train: Outcome,
    survival_test: Outcome,
    estimate: ArrayLike | Sequence[Callable],
    times: ArrayLike | None = None,
    *,
    ties: str = "sksurv",
    method: str = "trapezoid",
    limits: tuple[float, float] | None = None,
    sample_weight: ArrayLike | None = None,
) -> float:
    """1 − IBS/IBS_KM, a measure like R² (Zhang et al., AISTATS 2024, eq. 42).

    IBS_KM is the score if every row gets the Kaplan–Meier curve of the training data. Higher is
    better; a model with ratio 0 is no better than that curve.

    Parameters
    ----------
    survival_train, survival_test, estimate, times, ties, method, limits, sample_weight
        As in :func:`integrated_brier_score`.

    Returns
    -------
    float
        The ratio, at most 1.

    Raises
    ------
    ValueError
        As in :func:`integrated_brier_score`, or if IBS_KM is zero.

    See Also
    --------
    integrated_brier_score : The score itself.

    Examples
    --------
    >>> from bristlecone.curves import kaplan_meier
    >>> from bristlecone.metrics import ibs_ratio
    >>> y = [True, False, True, True], [1.0, 2.0, 3.0, 4.0]
    >>> ibs_ratio(y, y, [kaplan_meier(y)] * 4)
    0.0
    """
    curves, integral = _prepared(
        survival_train, survival_test, estimate, times, ties, method, limits, sample_weight
    )
    baseline = kaplan_meier(check_survival(survival_train, "survival_train"))
    x = curves.x if method == "trapezoid" else baseline.x
    same = np.zeros(curves.index.size, dtype=np.intp)
    score = integral(curves)
    reference = integral(Curves(same, x, np.atleast_2d(baseline(x))))
    if not reference > 0:
        raise ValueError("the Kaplan–Meier curve scores zero: the ratio is not defined")
    return float(1 - score / reference)


def _prepared(
    survival_train: Outcome,
    survival_test: Outcome,
    estimate: ArrayLike | Sequence[Callable],
    times: ArrayLike | None,
    ties: str,
    method: str,
    limits: tuple[float, float] | None,
    sample_weight: ArrayLike | None,
) -> tuple[Curves, Callable[[Curves], float]]:
    """Predicted curves, and the integrated score of curves at the same times."""
    rows = check_test_rows(survival_test, sample_weight, estimate=estimate)
    _check_method(method, limits)
    within = limits or (0.0, float(rows.time.max()))
    if method == "step":
        check_end(within[1])
    edges = np.linspace(*within, _PIECES + 1)
    step = method == "step"
    smooth_at = (edges[1:] + edges[:-1]) / 2 if step else rows.time
    curves = as_curves(estimate, times, rows.kept.size, "estimate", smooth_at).of_rows(rows.kept)
    if times is None and step and not have_steps(estimate):
        curves = Curves(curves.index, edges[:-1], curves.y)
    if times is None and not step:
        first, beyond = _follow_up(rows.time, ties)
        inside = (curves.x >= first) & (curves.x < beyond)
        curves = Curves(curves.index, curves.x[inside], curves.y[:, inside])
    censoring = censoring_survival(check_survival(survival_train, "survival_train"), ties=ties)

    def integral(curves: Curves) -> float:
        if step:
            return _step_integral(rows, curves, censoring, within)
        x = curves.x
        if x.size < 2:
            raise ValueError("the trapezoid rule needs at least two times within the follow-up")
        _check_follow_up(x, rows.time, ties)
        scores = _scores(rows, curves, censoring)
        return float(np.diff(x) @ (scores[1:] + scores[:-1]) / 2 / (x[-1] - x[0]))

    return curves, integral


def _check_method(method: str, limits: tuple[float, float] | None) -> None:
    check_choice("method", method, ("trapezoid", "step"))
    if limits is None:
        return
    if method != "step":
        raise ValueError("limits needs method='step'; the trapezoid rule integrates over times")
    lower, upper = limits
    if not 0 <= lower < upper < np.inf:
        raise ValueError(f"limits must be finite with 0 <= lower < upper, got {limits}")


def _follow_up(time: Floats, ties: str) -> tuple[float, float]:
    """First time at which a score is defined, and the first at which it no longer is."""
    if ties == "sksurv":
        return float(time.min()), float(time.max())
    return 0.0, float(np.nextafter(time.max(), np.inf))


def _check_follow_up(times: Floats, test_time: Floats, ties: str) -> None:
    first, beyond = _follow_up(test_time, ties)
    if first <= times[0] and times[-1] < beyond:
        return
    last = test_time.max()
    if ties == "sksurv":
        raise ValueError(
            f"times must lie within [{first:g}, {last:g}), the follow-up of the test rows"
        )
    raise ValueError(f"times must not exceed the last test time {last:g}")


def _event_weight(rows: ScoredRows, last: float, censoring: StepFunction) -> Floats:
    """w_i/G(t_i) at the events up to ``last`` (0 where G is), 0 elsewhere."""
    needed = rows.event & (rows.time <= last)
    weight = np.zeros(rows.time.size)
    weight[needed] = inverse_censoring_at(censoring, rows.time[needed], "test event time")
    return weight * rows.weight


def _scores(scored: ScoredRows, curves: Curves, censoring: StepFunction) -> Floats:
    """BS at ``curves.x``: only sums over the rows of a curve are needed."""
    times = curves.x
    weight = _event_weight(scored, times[-1], censoring)
    alive_weight = inverse_censoring_at(censoring, times, "time")
    column = np.searchsorted(times, scored.time, side="left")  # the first time with t_i <= t
    total = np.zeros(times.size)
    for rows, index, survival in curves.blocks():
        shape = len(survival), times.size + 1
        summed = partial(sums_by_cell, index, column[rows], shape=shape)
        died = summed(weight[rows]).cumsum(axis=1)[:, :-1]
        alive = sums_after(summed(scored.weight[rows]))[:, :-1]
        total += (survival**2 * died + (1 - survival) ** 2 * alive * alive_weight).sum(axis=0)
    return total / scored.weight.sum()


def _step_integral(
    scored: ScoredRows, curves: Curves, censoring: StepFunction, limits: tuple[float, float]
) -> float:
    """Mean of ∫ S_i² 1{t >= t_i} v_i dt + ∫ (1 − S_i)² 1{t < t_i} / G(t) dt over ``limits``.

    v_i is 1/G(t_i) for an event and 0 for a censored row; the mean is weighted by row. S is
    constant between two steps of the predictions, so for each such piece only its length after t_i
    and ∫ 1/G over its part before t_i are needed.
    """
    lower, upper = limits
    time = scored.time
    weight = _event_weight(scored, upper, censoring)
    own = np.clip(time, lower, upper)
    inverse_censoring_at(censoring, own[time > lower], "time at risk")
    # A power of two keeps the areas within range and changes no digit.
    unit = -math.frexp(upper)[1]
    knots = np.union1d([0.0, upper], censoring.x[censoring.x < upper])
    slope = inverse_or_zero(np.asarray(censoring(knots)))
    area = np.concatenate([[0.0], np.cumsum(slope[:-1] * np.ldexp(np.diff(knots), unit))])

    def integral(t: Floats) -> Floats:
        return np.interp(t, knots, area)

    edges = np.clip(np.concatenate([[0.0], curves.x, [np.inf]]), lower, upper)
    piece = np.searchsorted(curves.x, time, side="right")
    length, inverse_g = np.ldexp(np.diff(edges), unit), np.diff(integral(edges))
    after = weight * np.ldexp(edges[piece + 1] - own, unit)
    before = scored.weight * (integral(own) - integral(edges[piece]))
    total = 0.0
    for rows, index, survival in curves.blocks():
        survival = np.concatenate([np.ones((len(survival), 1)), survival], axis=1)
        summed = partial(sums_by_cell, index, piece[rows], shape=survival.shape)
        dead = sums_before(summed(weight[rows]))[:, :-1] * length + summed(after[rows])
        alive = sums_after(summed(scored.weight[rows])) * inverse_g + summed(before[rows])
        total += float((survival**2 * dead + (1 - survival) ** 2 * alive).sum())
    return total / float(scored.weight.sum() * np.ldexp(upper - lower, unit))
