"""Log-rank test between groups, for instance the leaves of a tree."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc

from bristlecone._data.groups import codes_of
from bristlecone._types import Bools, Floats, Integers
from bristlecone.metrics._inputs import BLOCK_CELLS, of_outcome


class LogrankResult(NamedTuple):
    """Result of :func:`logrank_test`.

    Attributes
    ----------
    statistic, p_value : float
        χ² statistic and its p-value.
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
    observed: Floats
    expected: Floats


@of_outcome("group")
def logrank_test(event: Bools, time: Floats, group: ArrayLike) -> LogrankResult:
    """k-sample log-rank test of equal hazards; O(n log n + times · k²), memory O(n + k²).

    Parameters
    ----------
    event, time : array-like of shape (n,)
        Event and time, or one outcome in place of both, without delayed entry.
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
        If there are fewer than two groups, no event, or no event time with rows of two groups at
        risk and a survivor; if ``group`` contains NaN or differs in length.

    See Also
    --------
    bristlecone.curves.kaplan_meier : The curves that are compared.

    References
    ----------
    Peto, Peto, "Asymptotically efficient rank invariant test procedures", JRSS A 135 (1972).

    Examples
    --------
    >>> from bristlecone.metrics import logrank_test
    >>> y = [True, False, True, True], [1.0, 2.0, 3.0, 4.0]
    >>> found = logrank_test(y, ["a", "a", "b", "b"])
    >>> found.observed.tolist(), found.expected.tolist()
    ([1.0, 2.0], [0.5, 2.5])
    """
    groups, member = codes_of(group, len(time), "group", rows_of="the outcome")
    if groups.size < 2:
        raise ValueError(f"group holds only {groups[0]!s}; the test compares at least two groups")
    if not event.any():
        raise ValueError("there is no event, so the groups cannot be compared")
    observed = np.bincount(member[event], minlength=groups.size).astype(np.float64)
    expected, covariance, at_risk = _moments(event, time, member, groups.size)
    # Without delayed entry, a group at risk at some event is at risk at the first one. The
    # covariance is therefore non-singular if one of these groups is left out.
    compared = np.flatnonzero(at_risk)
    n_first = np.count_nonzero(time[event] == time[event].min())
    if compared.size < 2 or n_first == at_risk.sum():
        raise ValueError("no event time has rows of two groups at risk and a survivor")
    free = compared[:-1]
    z = (observed - expected)[free]
    statistic = float(z @ np.linalg.solve(covariance[np.ix_(free, free)], z))
    return LogrankResult(
        statistic, float(chdtrc(free.size, statistic)), free.size, groups, observed, expected
    )


def _moments(
    event: Bools, time: Floats, member: NDArray[np.intp], n_groups: int
) -> tuple[Floats, Floats, Integers]:
    """Expected events of every group, their covariance, and the rows at risk at the first event.

    To limit the memory, event times are processed in blocks, starting with the last.
    """
    event_times, happened = np.unique(time[event], return_counts=True)
    # Event time at which a row is at risk for the last time; -1 if censored before the first.
    last = np.searchsorted(event_times, time, side="right") - 1
    by_time = np.argsort(last, kind="stable")
    expected = np.zeros(n_groups)
    covariance = np.zeros((n_groups, n_groups))
    risk = np.zeros((1, n_groups), dtype=np.int64)
    size = max(1, BLOCK_CELLS // n_groups)
    for stop in range(event_times.size, 0, -size):
        start = max(0, stop - size)
        rows = by_time[slice(*np.searchsorted(last[by_time], [start, stop]))]
        cell = (last[rows] - start) * n_groups + member[rows]
        leaving = np.bincount(cell, minlength=(stop - start) * n_groups).reshape(-1, n_groups)
        risk = risk[0] + leaving[::-1].cumsum(axis=0)[::-1]
        d, n = happened[start:stop], risk.sum(axis=1)
        share = risk / n[:, np.newaxis]
        hypergeometric = d * (n - d) / np.maximum(n - 1, 1)
        expected += d @ share
        covariance -= share.T @ (hypergeometric[:, np.newaxis] * share)
        covariance[np.diag_indices(n_groups)] += hypergeometric @ share
    return expected, covariance, risk[0]
