"""Calibration: agreement of predicted probabilities with observed survival."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc

from bristlecone._data.checks import check_integer
from bristlecone._types import Bools, Floats, Integers
from bristlecone.curves import kaplan_meier
from bristlecone.metrics._inputs import as_curves, of_outcome, row_values


class DCalibration(NamedTuple):
    """Result of :func:`d_calibration`.

    Attributes
    ----------
    statistic, p_value : float
        χ² statistic, with ``n_bins − 1`` degrees of freedom, and its p-value.
    bins : ndarray of shape (n_bins,)
        Number of rows in each bin of S_i(t_i), the lowest probabilities first. Censored rows are
        divided among bins, so these need not be integers.
    """

    statistic: float
    p_value: float
    bins: Floats


class OneTimeCalibration(NamedTuple):
    """Result of :func:`one_time_calibration`.

    Attributes
    ----------
    statistic, p_value : float
        χ² statistic, with one degree of freedom less than there are groups, and its p-value.
    n_rows : ndarray of shape (n_groups,)
        Rows per group, the lowest predictions first.
    predicted : ndarray of shape (n_groups,)
        Mean predicted survival.
    observed : ndarray of shape (n_groups,)
        Kaplan–Meier survival.
    """

    statistic: float
    p_value: float
    n_rows: NDArray[np.intp]
    predicted: Floats
    observed: Floats


@of_outcome("survival")
def d_calibration(
    event: Bools,
    time: Floats,
    survival: ArrayLike | Sequence[Callable],
    times: ArrayLike | None = None,
    *,
    n_bins: int = 10,
) -> DCalibration:
    """Test of distributional calibration.

    If a model is calibrated, S_i(t_i) is uniform on [0, 1] among rows with an event. The test
    counts these values in bins [b, b') of equal width; the last bin includes 1. A row censored at s
    = S_i(t_i) counts (s − b)/s in the bin of s and (b' − b)/s in each bin below. The test is meant
    for continuous curves; the few values of a step function are not uniform even if the model is
    calibrated.

    Parameters
    ----------
    event, time : array-like of shape (n,)
        Event and time, or one outcome in place of both, without delayed entry.
    survival : array-like of shape (n, n_times), or sequence of n callables
        Predicted survival of each row: at ``times``, right-continuous between them and 1 before
        the first; or functions of time.
    times : array-like of shape (n_times,), optional
        Ascending. By default, step functions are evaluated at their own steps ``.x``, and other
        functions at the times of the rows.
    n_bins : int, default=10
        Number of bins, at least 2.

    Returns
    -------
    DCalibration
        Named tuple (statistic, p_value, bins). A small p-value is evidence against calibration.

    Raises
    ------
    ValueError
        If an argument is not as described.

    See Also
    --------
    one_time_calibration : Calibration at one time.

    References
    ----------
    Haider, Hoehn, Davis, Greiner, "Effective ways to build and evaluate individual survival
    distributions", JMLR 21 (2020), section 3.5.

    Examples
    --------
    >>> from bristlecone.metrics import d_calibration
    >>> y = [True, False, True, True], [1.0, 2.0, 3.0, 4.0]
    >>> survival = [[0.9, 0.8], [0.8, 0.4], [0.7, 0.3], [0.6, 0.1]]
    >>> d_calibration(y, survival, times=[1.0, 3.0], n_bins=2).bins.tolist()
    [2.625, 1.375]
    """
    check_integer("n_bins", n_bins, 2)
    reached = as_curves(survival, times, time.size, "survival", time).at_own_time(time).clip(0, 1)
    edges = np.linspace(0, 1, n_bins + 1)
    own = np.minimum(np.searchsorted(edges, reached, side="right") - 1, n_bins - 1)
    bins = np.bincount(own[event], minlength=n_bins).astype(np.float64)
    s, bin_of_s = reached[~event], own[~event]
    positive = s > 0
    # A row censored at s = 0 can only be in the first bin.
    in_own = np.divide(s - edges[bin_of_s], s, out=np.ones_like(s), where=positive)
    in_each_below = np.divide(1 / n_bins, s, out=np.zeros_like(s), where=positive)
    bins += np.bincount(bin_of_s, in_own, n_bins)
    at_or_above = np.bincount(bin_of_s, in_each_below, n_bins)[::-1].cumsum()[::-1]
    bins[:-1] += at_or_above[1:]
    expected = time.size / n_bins
    statistic = float(((bins - expected) ** 2).sum() / expected)
    return DCalibration(statistic, float(chdtrc(n_bins - 1, statistic)), bins)


@of_outcome("survival_at")
def one_time_calibration(
    event: Bools, time: Floats, survival_at: ArrayLike, at: float, *, n_groups: int = 10
) -> OneTimeCalibration:
    """Compare predicted with observed survival at one time, in groups of similar prediction.

    The statistic of D'Agostino and Nam is Σ n_g (KM_g − p_g)² / (p_g (1 − p_g)), with p_g the mean
    prediction and KM_g the Kaplan–Meier survival of the group at that time.

    Parameters
    ----------
    event, time : array-like of shape (n,)
        Event and time, or one outcome in place of both, without delayed entry.
    survival_at : array-like of shape (n,)
        Predicted probability S_i(at) of survival past ``at``.
    at : float
        The time, finite and non-negative.
    n_groups : int, default=10
        Number of groups, at least 2, divided at the quantiles of the predictions. Equal predictions
        stay together, so a tree with few leaves gives fewer groups.

    Returns
    -------
    OneTimeCalibration
        Named tuple (statistic, p_value, n_rows, predicted, observed). A group with p_g of 0 or 1
        adds 0 to the statistic if KM_g is equal to it, and infinity otherwise.

    Raises
    ------
    ValueError
        If all predictions fall into one group; if the last row of a group is censored before
        ``at``, which leaves KM_g unknown; or if an argument is not as described.

    See Also
    --------
    d_calibration : Calibration over all times.

    References
    ----------
    D'Agostino, Nam, "Evaluation of the performance of survival analysis models: discrimination and
    calibration measures", Handbook of Statistics 23 (2003).

    Examples
    --------
    >>> from bristlecone.metrics import one_time_calibration
    >>> y = [True, False, True, True], [1.0, 2.0, 3.0, 4.0]
    >>> found = one_time_calibration(y, [0.2, 0.2, 0.7, 0.7], at=2.0, n_groups=2)
    >>> found.predicted.tolist(), found.observed.tolist()
    ([0.2, 0.7], [0.5, 1.0])
    """
    predictions = row_values(survival_at, "survival_at", time.size)
    if predictions.min() < 0 or predictions.max() > 1:
        raise ValueError("survival_at must lie within [0, 1]")
    if not (isinstance(at, Real) and 0 <= at < np.inf):
        raise ValueError(f"at must be finite and non-negative, got {at!r}")
    check_integer("n_groups", n_groups, 2)
    group = prediction_groups(predictions, n_groups)
    n_rows = np.bincount(group)
    if n_rows.size < 2:
        raise ValueError("all predictions fall into one group: nothing to compare")
    predicted = np.bincount(group, predictions) / n_rows
    observed = np.empty(n_rows.size)
    for g in range(n_rows.size):
        curve = kaplan_meier((event[group == g], time[group == g]))
        if at > curve.x[-1] and curve.y[-1] > 0:
            raise ValueError(
                f"group {g} is followed up only until {curve.x[-1]:g}: its survival at {at:g} is "
                "unknown"
            )
        observed[g] = curve(at)
    error = n_rows * (observed - predicted) ** 2
    variance = predicted * (1 - predicted)
    impossible = np.where(error > 0, np.inf, 0.0)
    terms = np.divide(error, variance, out=impossible, where=variance > 0)
    statistic = float(terms.sum())
    p_value = float(chdtrc(n_rows.size - 1, statistic))
    return OneTimeCalibration(statistic, p_value, n_rows, predicted, observed)


def prediction_groups(predictions: Floats, n_groups: int) -> Integers:
    """Group of every prediction, lowest first: divided at quantiles, with equal values together."""
    bounds = np.quantile(predictions, np.arange(1, n_groups) / n_groups)
    return np.unique(np.searchsorted(bounds, predictions, side="left"), return_inverse=True)[1]
