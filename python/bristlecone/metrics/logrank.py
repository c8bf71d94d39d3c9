"""Log-rank test between groups, for instance the leaves of a tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc

from bristlecone.curves import _event_and_time


class LogrankResult(NamedTuple):
    """Result of :func:`logrank_test`.

    Attributes
    ----------
    statistic, p_value : float
        χ² statistic and its upper tail.
    degrees_of_freedom : int
        One less than the number of groups at risk at the first event.
    groups : ndarray of shape (n_groups,)
        Labels in sorted order.
    observed, expected : ndarray of shape (n_groups,)
        Events, and those expected under equal hazards.
    """

    statistic: float
    p_value: float
    degrees_of_freedom: int
    groups: NDArray
    observed: NDArray[np.float64]
    expected: NDArray[np.float64]


def logrank_test(event: ArrayLike, time: ArrayLike, group: ArrayLike) -> LogrankResult:
    """k-sample log-rank test of equal hazards; O(n log n + times · k²).

    Parameters
    ----------
    event : array-like of shape (n,)
        Whether the event was observed, boolean or 0/1.
    time : array-like of shape (n,)
        Time of event or censoring.
    group : array-like of shape (n,)
        Label of each row.

    Returns
    -------
    LogrankResult
        Named tuple (statistic, p_value, degrees_of_freedom, groups, observed, expected).
        Groups without a row at risk at the first event do not count as degrees of freedom.

    Raises
    ------
    ValueError
        If there is no event, or no event time with rows of two groups at risk and a
        survivor; if ``group`` contains NaN or differs in length.

    References
    ----------
    Peto, Peto, "Asymptotically efficient rank invariant test procedures", JRSS A 135 (1972).
    """
    event, time = _event_and_time(event, time)
    labels = np.asarray(group)
    if labels.shape != time.shape:
        raise ValueError(f"group has shape {labels.shape} for {time.size} rows")
    if (labels != labels).any():
        raise ValueError(f"group is NaN in row {int((labels != labels).argmax())}")
    groups, member = np.unique(labels, return_inverse=True)
    if not event.any():
        raise ValueError("there is no event to compare groups by")
    event_times = np.unique(time[event])
    shape = (event_times.size, groups.size)
    last_at_risk = np.searchsorted(event_times, time, side="right") - 1
    known = last_at_risk >= 0  # censored before the first event otherwise
    cell = last_at_risk * groups.size + member
    size = shape[0] * shape[1]
    events = np.bincount(cell[event], minlength=size).reshape(shape)
    leaving = np.bincount(cell[known], minlength=size).reshape(shape)
    at_risk = leaving[::-1].cumsum(axis=0)[::-1]

    d, n = events.sum(axis=1), at_risk.sum(axis=1)
    share = at_risk / n[:, np.newaxis]
    expected = d @ share
    hypergeometric = d * (n - d) / np.maximum(n - 1, 1)
    covariance = np.diag(hypergeometric @ share) - share.T @ (hypergeometric[:, np.newaxis] * share)
    observed = events.sum(axis=0).astype(np.float64)
    # Without delayed entry a group at risk at some event is at risk at the first, which makes
    # the covariance of all such groups but one non-singular.
    compared = np.flatnonzero(at_risk[0])
    if compared.size < 2 or hypergeometric[0] == 0:
        raise ValueError("no event time has rows of two groups at risk and a survivor")
    free = compared[:-1]
    z = (observed - expected)[free]
    statistic = float(z @ np.linalg.solve(covariance[np.ix_(free, free)], z))
    return LogrankResult(
        statistic, float(chdtrc(free.size, statistic)), free.size, groups, observed, expected
    )
