"""Concordance of predictions with observed times: Harrell, Uno, and time-dependent variants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._data.checks import check_choice, check_real
from bristlecone._data.outcomes import Outcome, check_survival
from bristlecone._data.rows import check_sample_weight
from bristlecone._types import Bools, Floats
from bristlecone.curves import censoring_survival
from bristlecone.exceptions import InvalidParameterError
from bristlecone.metrics._inputs import (
    BLOCK_CELLS,
    Curves,
    ScoredRows,
    as_curves,
    check_test_rows,
    of_outcome,
    positive_censoring_at,
    row_values,
)

Places = NDArray[np.intp]

# Fixed cost of a step in _pairs_by_step, in units of the cost of a row.
_STEP_COST = 4096


class Concordance(NamedTuple):
    """Result of the concordance indices.

    Attributes
    ----------
    cindex : float
        Share of the (weighted) comparable pairs that are concordant; tied predictions count 0.5.
    concordant, discordant, tied_risk : int
        Number of comparable pairs, unweighted.
    tied_time : int
        Number of comparable pairs of an event and a censoring at the same time (0 with
        ``ties="paper"``).
    """

    cindex: float
    concordant: int
    discordant: int
    tied_risk: int
    tied_time: int


@of_outcome("estimate", "sample_weight")
def concordance_index_censored(
    event: Bools,
    time: Floats,
    estimate: ArrayLike,
    tied_tol: float = 1e-8,
    *,
    ties: str = "sksurv",
    entry: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Concordance:
    """Harrell's concordance index; O(n log n).

    A pair (i, j) is comparable if t_i < t_j and i has an event. It is concordant if the estimate of
    i is higher. With delayed entry, j must be under observation at t_i: entry_j < t_i.

    Parameters
    ----------
    event, time : array-like of shape (n,)
        Whether the event was observed, boolean or 0/1, and the time of event or censoring. You can
        also pass one outcome in place of both, in any form that ``fit`` takes, with its delayed
        entry.
    estimate : array-like of shape (n,)
        Risk score, higher = earlier event.
    tied_tol : float, default=1e-8
        Estimates that differ by at most this (up to rounding) are tied; 0 ties only equal values.
    ties : {"sksurv", "paper"}, default="sksurv"
        With "sksurv" an event and a censoring at the same time are comparable (the censored row
        lived longer); with "paper" they are not.
    entry : array-like of shape (n,), optional
        Time at which a row came under observation; earlier than its ``time``.
    sample_weight : array-like of shape (n,), optional
        Row weights, finite and not negative. In ``cindex`` a pair counts the product of its two
        weights, so integer weights are the same as repeated rows. Rows of weight zero are left out.

    Returns
    -------
    Concordance
        Named tuple (cindex, concordant, discordant, tied_risk, tied_time).

    Raises
    ------
    ValueError
        If no pair is comparable, or an argument is not as described.

    See Also
    --------
    concordance_index_ipcw : Uno's index, with censoring weights.

    References
    ----------
    Harrell, Lee, Mark, "Multivariable prognostic models", Statistics in Medicine 15 (1996).

    Examples
    --------
    >>> from bristlecone.metrics import concordance_index_censored
    >>> y = [True, False, True, True], [1.0, 2.0, 3.0, 4.0]
    >>> concordance_index_censored(y, [4.0, 2.0, 3.0, 3.0]).cindex
    0.875
    """
    estimate = row_values(estimate, "estimate", time.size)
    rows, kept = _weighted(event, time, entry, sample_weight)
    return _concordance(rows, _by_risk(rows, estimate[kept], tied_tol), ties)


def concordance_index_ipcw(
    survival_train: Outcome,
    survival_test: Outcome,
    estimate: ArrayLike,
    tau: float | None = None,
    tied_tol: float = 1e-8,
    *,
    ties: str = "sksurv",
    sample_weight: ArrayLike | None = None,
) -> Concordance:
    """Uno's concordance index, with pairs weighted by 1/G(t_i)²; O(n log n).

    Parameters
    ----------
    survival_train : structured array, DataFrame or pair (event, time)
        Training outcomes, from which G, the censoring distribution, is estimated.
    survival_test : structured array, DataFrame or pair (event, time), n rows
        Outcomes of the rows to compare.
    estimate : array-like of shape (n,)
        Risk score, higher = earlier event.
    tau : float, optional
        Only pairs with t_i < tau have weight; the counts in the result include all pairs.
    tied_tol : float, default=1e-8
        As in :func:`concordance_index_censored`.
    ties : {"sksurv", "paper"}, default="sksurv"
        As in :func:`concordance_index_censored`, and the risk sets of G as in
        :func:`bristlecone.curves.censoring_survival`.
    sample_weight : array-like of shape (n,), optional
        Weights of the rows to compare, as in :func:`concordance_index_censored`. G gives all
        training rows the same weight.

    Returns
    -------
    Concordance
        Named tuple (cindex, concordant, discordant, tied_risk, tied_time).

    Raises
    ------
    ValueError
        If no pair with weight is comparable; if G is zero, or unknown (after the last training
        time), at a test event before ``tau``; or if an argument is not as described.

    See Also
    --------
    concordance_index_censored : Harrell's index, without censoring weights.

    References
    ----------
    Uno et al., "On the C-statistics for evaluating overall adequacy of risk prediction
    procedures with censored survival data", Statistics in Medicine 30 (2011).

    Examples
    --------
    >>> from bristlecone.metrics import concordance_index_ipcw
    >>> y = [True, False, True, True], [1.0, 2.0, 3.0, 4.0]
    >>> round(concordance_index_ipcw(y, y, [3.0, 2.0, 4.0, 1.0]).cindex, 3)
    0.81
    """
    scored = check_test_rows(survival_test, sample_weight, estimate=estimate)
    estimate = row_values(estimate, "estimate", scored.kept.size)[scored.kept]
    rows = _with_censoring(scored, sample_weight is not None, survival_train, tau, ties)
    return _concordance(rows, _by_risk(rows, estimate, tied_tol), ties)


@of_outcome("survival", "sample_weight")
def concordance_index_td(
    event: Bools,
    time: Floats,
    survival: ArrayLike | Sequence[Callable],
    times: ArrayLike | None = None,
    tied_tol: float = 1e-12,
    *,
    ties: str = "sksurv",
    entry: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
) -> Concordance:
    """Harrell's concordance index with time-dependent predictions (Zhang et al., eq. 43).

    Pairs are comparable as in :func:`concordance_index_censored`, and concordant if
    S_i(t_i) < S_j(t_i).

    Parameters
    ----------
    event, time : array-like of shape (n,)
        Event and time, or one outcome in place of both, with its delayed entry.
    survival : array-like of shape (n, n_times), or sequence of n callables
        Predicted survival of each row: at ``times``, right-continuous between them and 1 before
        the first; or functions of time. The cost is O(m · k) for k distinct curves and m distinct
        pairs (curve, time) of an event, or O(n_times · n log n) if that is less.
    times : array-like of shape (n_times,), optional
        Ascending. By default, step functions are evaluated at their own steps ``.x``, and other
        functions at the times of the rows.
    tied_tol : float, default=1e-12
        Probabilities that differ by at most this are tied. The default allows only for rounding,
        because small probabilities differ by little.
    ties : {"sksurv", "paper"}, default="sksurv"
        As in :func:`concordance_index_censored`; "paper" is eq. 43.
    entry, sample_weight : array-like of shape (n,), optional
        As in :func:`concordance_index_censored`.

    Returns
    -------
    Concordance
        Named tuple (cindex, concordant, discordant, tied_risk, tied_time).

    Raises
    ------
    ValueError
        If no pair is comparable, or an argument is not as described.

    See Also
    --------
    concordance_index_censored : The index of a risk score.

    Examples
    --------
    >>> from bristlecone.metrics import concordance_index_td
    >>> y = [True, False, True, True], [1.0, 2.0, 3.0, 4.0]
    >>> survival = [[0.5, 0.1], [0.6, 0.2], [0.9, 0.3], [0.9, 0.7]]
    >>> concordance_index_td(y, survival, times=[1.0, 3.0]).cindex
    1.0
    """
    curves = as_curves(survival, times, time.size, "survival", time)
    rows, kept = _weighted(event, time, entry, sample_weight)
    return _concordance(rows, _by_curves(rows, curves.of_rows(kept), tied_tol), ties)


def concordance_index_td_ipcw(
    survival_train: Outcome,
    survival_test: Outcome,
    survival: ArrayLike | Sequence[Callable],
    times: ArrayLike | None = None,
    tau: float | None = None,
    tied_tol: float = 1e-12,
    *,
    ties: str = "sksurv",
    sample_weight: ArrayLike | None = None,
) -> Concordance:
    """Uno's concordance index with time-dependent predictions (Zhang et al., eq. 44).

    Parameters
    ----------
    survival_train, survival_test, tau, sample_weight
        As in :func:`concordance_index_ipcw`.
    survival, times, tied_tol
        As in :func:`concordance_index_td`.
    ties : {"sksurv", "paper"}, default="sksurv"
        As in :func:`concordance_index_ipcw`; "paper" is eq. 44.

    Returns
    -------
    Concordance
        Named tuple (cindex, concordant, discordant, tied_risk, tied_time).

    Raises
    ------
    ValueError
        As in :func:`concordance_index_ipcw`.

    See Also
    --------
    concordance_index_td : The same without censoring weights.

    Examples
    --------
    >>> from bristlecone.metrics import concordance_index_td_ipcw
    >>> y = [True, False, True, True], [1.0, 2.0, 3.0, 4.0]
    >>> survival = [[0.5, 0.1], [0.6, 0.2], [0.9, 0.3], [0.9, 0.7]]
    >>> concordance_index_td_ipcw(y, y, survival, times=[1.0, 3.0]).cindex
    1.0
    """
    scored = check_test_rows(survival_test, sample_weight, survival=survival)
    n_rows = scored.kept.size
    curves = as_curves(survival, times, n_rows, "survival", scored.time).of_rows(scored.kept)
    rows = _with_censoring(scored, sample_weight is not None, survival_train, tau, ties)
    return _concordance(rows, _by_curves(rows, curves, tied_tol), ties)


class _Rows(NamedTuple):
    """Rows to compare, all of positive weight.

    ``weight`` is that of an event's pairs. ``own`` is the weight of the other row of a pair; None
    counts the pairs.
    """

    event: Bools
    time: Floats
    entry: Floats | None
    weight: Floats
    own: Floats | None


def _weighted(event: Bools, time: Floats, entry: Any, sample_weight: Any) -> tuple[_Rows, Bools]:
    """Rows without censoring weights, and which of the given ones they are."""
    own = check_sample_weight(sample_weight, time.size)
    if own is None:
        return _Rows(event, time, entry, np.ones(time.size), None), np.ones(time.size, dtype=bool)
    kept = own > 0
    late = None if entry is None else entry[kept]
    return _Rows(event[kept], time[kept], late, own[kept], own[kept]), kept


def check_tau(tau: float | None) -> None:
    """Raise InvalidParameterError unless ``tau`` is None or a number greater than zero."""
    if tau is not None and not (isinstance(tau, Real) and tau > 0):
        raise InvalidParameterError(f"tau must be a number greater than 0 or None; got {tau!r}")


def _with_censoring(
    scored: ScoredRows, is_weighted: bool, survival_train: Outcome, tau: float | None, ties: str
) -> _Rows:
    """Rows whose events before tau are weighted by 1/G(t_i)², the others by 0."""
    event, time, own, _ = scored
    check_tau(tau)
    counted = event if tau is None else event & (time < tau)
    censoring = censoring_survival(check_survival(survival_train, "survival_train"), ties=ties)
    weight = np.zeros(time.size)
    weight[counted] = positive_censoring_at(censoring, time[counted], "test event time") ** -2.0
    return _Rows(event, time, None, own * weight, own if is_weighted else None)


def _times_in_order(event: Bools, time: Floats, ties: str) -> Places:
    """Integer keys: j is comparable with the event i when ``key[j] > key[i]``."""
    rank = 2 * np.unique(time, return_inverse=True)[1]
    check_choice("ties", ties, ("sksurv", "paper"))
    return rank + ~event if ties == "sksurv" else rank


class Pairs(NamedTuple):
    """Later rows per event, as counts or sums: the concordant ones, the tied ones, and all."""

    concordant: NDArray[Any]
    tied: NDArray[Any]
    later: NDArray[Any]


# Counts the pairs of every event with the rows of a greater key. It takes the keys of all rows,
# those of the events in the order of the rows, weights of the rows or None, and whether the keys
# are entries instead of times.
_Counter: TypeAlias = Callable[[Places, Places, Floats | None, bool], Pairs]


def _concordance(rows: _Rows, pairs: _Counter, ties: str) -> Concordance:
    """Sums over the events, weighted, of their pairs or of the weights of the pairs."""
    key = _times_in_order(rows.event, rows.time, ties)
    at = np.flatnonzero(rows.event)

    def compared(own: Floats | None) -> Pairs:
        found = pairs(key, key[at], own, False)
        if rows.entry is None:
            return found
        # Rows that enter at or after an event are all among the rows after it.
        rank = np.unique(np.concatenate([rows.time[at], rows.entry]), return_inverse=True)[1]
        waiting = pairs(2 * rank[at.size :] + 1, 2 * rank[: at.size], own, True)
        return Pairs(*(every - late for every, late in zip(found, waiting, strict=True)))

    counts = compared(None)
    concordant, tied, later = counts if rows.own is None else compared(rows.own)
    weight = rows.weight[at]
    total = weight @ later
    if not total > 0:
        raise ValueError("no pair is comparable: the concordance index is not defined")
    ordered = np.sort(key)
    # Keys of one time are consecutive: the even one, and the odd one for its censorings.
    ends = [np.searchsorted(ordered, key[at] + k, side="right") for k in (0, 1)]
    return Concordance(
        cindex=float(weight @ (concordant + 0.5 * tied) / total),
        concordant=int(counts.concordant.sum()),
        discordant=int((counts.later - counts.concordant - counts.tied).sum()),
        tied_risk=int(counts.tied.sum()),
        tied_time=int((ends[1] - ends[0]).sum()),
    )


def _by_risk(rows: _Rows, estimate: Floats, tied_tol: float) -> _Counter:
    """Pairs by risk scores."""
    check_real("tied_tol", tied_tol, 0.0)
    of_events = estimate[rows.event]

    def pairs(keys: Places, events: Places, own: Floats | None, late: bool) -> Pairs:
        order = np.argsort(keys, kind="stable")
        start = np.searchsorted(keys[order], events, side="right")
        amount = None if own is None else own[order]
        return count_pairs(estimate[order], start, of_events, tied_tol, amount)

    return pairs


def count_pairs(
    estimate: Floats, start: Places, of_events: Floats, tied_tol: float, amount: Floats | None
) -> Pairs:
    """Pairs of every event with ``estimate[start:]``, by their number or amount."""
    values, code = np.unique(estimate, return_inverse=True)
    lower = np.searchsorted(values, of_events - tied_tol, side="left")
    upper = np.searchsorted(values, of_events + tied_tol, side="right")
    concordant = count_below(code, start, lower, amount)
    tied = count_below(code, start, upper, amount) - concordant
    return Pairs(concordant, tied, amount_from(start, code.size, amount))


def amount_from(start: Places, n: int, amount: Floats | None) -> NDArray[Any]:
    """Number, or sum of the amounts, of the rows from every start on."""
    if amount is None:
        return n - start
    return np.append(amount[::-1].cumsum()[::-1], 0.0)[start]


def count_below(
    values: Places, start: Places, bound: Places, amount: Floats | None = None
) -> NDArray[Any]:
    """For every query, the number (or amount) of k >= start with values[k] < bound.

    A wavelet matrix: the values are partitioned by one bit after the other, from the highest, and
    every query follows its interval; O((values + queries) log max).
    """
    count: NDArray[Any] = np.zeros(start.size, dtype=np.int64 if amount is None else np.float64)
    low, high = start, np.full(start.size, values.size)
    for bit in reversed(range(int(values.size).bit_length())):
        zero = (values >> bit) & 1 == 0
        rank = np.concatenate([[0], np.cumsum(zero)])
        total = rank if amount is None else np.concatenate([[0.0], np.cumsum(amount * zero)])
        low_zero, high_zero = rank[low], rank[high]
        above = (bound >> bit) & 1 == 1
        count += np.where(above, total[high] - total[low], 0)
        low = np.where(above, rank[-1] + low - low_zero, low_zero)
        high = np.where(above, rank[-1] + high - high_zero, high_zero)
        values = np.concatenate([values[zero], values[~zero]])
        if amount is not None:
            amount = np.concatenate([amount[zero], amount[~zero]])
    return count


def _by_curves(rows: _Rows, curves: Curves, tied_tol: float) -> _Counter:
    """Pairs by predicted curves."""
    check_real("tied_tol", tied_tol, 0.0)
    curves = curves.merged()
    n_curves = len(curves.y)
    at = np.flatnonzero(rows.event)
    step = np.searchsorted(curves.x, rows.time, side="right")
    n_steps = np.unique(step[at]).size

    def pairs(keys: Places, events: Places, own: Floats | None, late: bool) -> Pairs:
        # Events with the same time and curve have the same pairs: one cell, in the order of time.
        _, first, cell = np.unique(
            events * n_curves + curves.index[at], return_index=True, return_inverse=True
        )
        few_steps = n_steps * (step.size + _STEP_COST) < first.size * n_curves
        # Steps are in the order of times, but not of entries.
        count = _pairs_by_step if few_steps and not late else _pairs_by_curve
        concordant, tied = count(keys, events[first], at[first], step, curves, tied_tol, own)
        order = np.argsort(keys, kind="stable")
        start = np.searchsorted(keys[order], events, side="right")
        amount = None if own is None else own[order]
        return Pairs(concordant[cell], tied[cell], amount_from(start, keys.size, amount))

    return pairs


def _pairs_by_curve(
    key: Places,
    event_key: Places,
    rows: Places,
    step: Places,
    curves: Curves,
    tied_tol: float,
    own: Floats | None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Concordant and tied pairs of the events ``rows``, in the order of ``event_key``.

    Pairs are with the rows of a greater ``key``. For every event, these rows or their weights
    ``own`` are summed by curve; O(events · curves).
    """
    n_curves = len(curves.y)
    step = step[rows]
    concordant = np.zeros(rows.size, dtype=np.int64 if own is None else np.float64)
    tied = np.zeros_like(concordant)
    by_key = np.argsort(key, kind="stable")
    left = np.searchsorted(key[by_key], event_key, side="right")
    comparable = np.bincount(curves.index, own, minlength=n_curves)  # of a curve, not yet left
    size = max(1, BLOCK_CELLS // n_curves)
    gone = 0
    for start in range(0, rows.size, size):
        block = slice(start, start + size)
        width = left[block].size
        leaving = by_key[gone : left[block][-1]]
        gone = left[block][-1]
        when = np.searchsorted(event_key[block], key[leaving], side="left")
        where = when * n_curves + curves.index[leaving]
        amount = None if own is None else own[leaving]
        left_by_then = np.bincount(where, amount, width * n_curves).reshape(width, n_curves)
        remaining = comparable - left_by_then.cumsum(axis=0)
        comparable = remaining[-1]
        survival = np.where(step[block] > 0, curves.y[:, np.maximum(step[block] - 1, 0)], 1.0).T
        above = survival - survival[np.arange(width), curves.index[rows[block]], np.newaxis]
        concordant[block] = (remaining * (above > tied_tol)).sum(axis=1)
        tied[block] = (remaining * (np.abs(above) <= tied_tol)).sum(axis=1)
    return concordant, tied


def _pairs_by_step(
    key: Places,
    event_key: Places,
    rows: Places,
    step: Places,
    curves: Curves,
    tied_tol: float,
    own: Floats | None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """As :func:`_pairs_by_curve`; O(steps · n log n).

    Between two steps every curve has one value. Rows of later steps are sorted by it; rows of the
    same step, for which the order of time matters, go through :func:`count_below`.
    """
    concordant = np.zeros(rows.size, dtype=np.int64 if own is None else np.float64)
    tied = np.zeros_like(concordant)
    by_key = np.argsort(key, kind="stable")  # and so by step
    ordered = step[by_key]
    steps, begin = np.unique(step[rows], return_index=True)
    end = np.append(begin[1:], rows.size)
    for k, block in zip(steps, map(slice, begin, end), strict=True):
        column = curves.y[:, k - 1] if k > 0 else np.ones(len(curves.y))
        value = column[curves.index[rows[block]]]
        bounds = value - tied_tol, value + tied_tol

        first, last = np.searchsorted(ordered, [k, k + 1])
        after = by_key[last:]
        later = column[curves.index[after]]
        order = np.argsort(later, kind="stable")
        amount = None if own is None else own[after[order]]
        later = later[order]
        above = amount_from(np.searchsorted(later, bounds[1], side="right"), later.size, amount)
        equal = (
            amount_from(np.searchsorted(later, bounds[0], side="left"), later.size, amount) - above
        )

        within = by_key[first:last]
        amount = None if own is None else own[within]
        values, code = np.unique(column[curves.index[within]], return_inverse=True)
        start = np.searchsorted(key[within], event_key[block], side="right")
        lower = count_below(code, start, np.searchsorted(values, bounds[0], side="left"), amount)
        upper = count_below(code, start, np.searchsorted(values, bounds[1], side="right"), amount)
        concordant[block] = above + amount_from(start, within.size, amount) - upper
        tied[block] = equal + upper - lower
    return concordant, tied
