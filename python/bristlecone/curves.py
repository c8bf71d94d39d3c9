"""Step functions of time, and nonparametric curves of a censored sample.

An invalid argument raises a ValueError that names it.
"""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from bristlecone._core import RiskTable
from bristlecone._data.arrays import as_floats
from bristlecone._data.checks import check_choice, check_confidence, check_real, check_times
from bristlecone._data.days import as_times
from bristlecone._data.outcomes import Outcome, check_survival
from bristlecone._data.rows import check_row_labels, check_sample_weight
from bristlecone._types import Bools, Floats, Integers

__all__ = [
    "KaplanMeier",
    "StepFunction",
    "censoring_survival",
    "kaplan_meier",
    "median",
    "nelson_aalen",
    "numbers_at_risk",
    "quantile",
    "rmst",
]

# The rounding error of a product of n ratios is about n ulp: 0.5 may become 0.5000000000000001.
_LEVEL_TOLERANCE = 1e-12


class StepFunction:
    """Right-continuous step function of time.

    ``f(t)`` is ``y[k]`` for ``x[k] <= t < x[k + 1]``, ``y[-1]`` from the last time on and
    ``before`` to the left of the first. Attributes and calls follow scikit-survival's class
    of the same name, with two differences: its class returns ``y[0]`` to the left of ``x[0]``, and
    rejects times after ``x[-1]``.

    Parameters
    ----------
    x : array-like of shape (n_times,)
        Times of the steps, finite and strictly ascending; may be empty.
    y : array-like of shape (n_times,)
        Value from each step on, finite.
    domain : tuple of (float, float or None), default=(0.0, None)
        Smallest and largest time at which the function may be evaluated; ``None`` means no limit.
    before : float
        Value to the left of ``x[0]``: 1 for a survival curve, 0 for a cumulative hazard.

    Attributes
    ----------
    x, y : ndarray of shape (n_times,)
        The steps, read-only views.
    domain : tuple of (float, float)
        As given, ``None`` replaced by infinity.
    before : float
        As given.

    Raises
    ------
    ValueError
        If ``x`` and ``y`` differ in shape, are not finite, ``x`` does not ascend, or the
        domain is empty.

    See Also
    --------
    KaplanMeier : A step function with variance and confidence limits.

    Examples
    --------
    >>> from bristlecone.curves import StepFunction
    >>> StepFunction([1.0, 3.0], [0.5, 0.2], before=1.0)([0.0, 1.0, 4.0]).tolist()
    [1.0, 0.5, 0.2]
    """

    def __init__(
        self,
        x: ArrayLike,
        y: ArrayLike,
        *,
        domain: tuple[float, float | None] = (0.0, None),
        before: float,
    ) -> None:
        self.x = _read_only(x, "x")
        self.y = _read_only(y, "y")
        if self.x.ndim != 1 or self.x.shape != self.y.shape:
            raise ValueError(
                "x and y must be one-dimensional and of equal length, "
                f"got shapes {self.x.shape} and {self.y.shape}"
            )
        if not (np.isfinite(self.x).all() and np.isfinite(self.y).all()):
            raise ValueError("x and y must be finite")
        if not (np.diff(self.x) > 0).all():
            raise ValueError("x must be strictly ascending")
        try:
            lower, upper = domain
            self.domain = (float(lower), np.inf if upper is None else float(upper))
        except (TypeError, ValueError, OverflowError):
            self.domain = (np.nan, np.nan)
        if not self.domain[0] <= self.domain[1]:
            raise ValueError(f"domain must be (lower, upper) with lower <= upper, got {domain!r}")
        value = as_floats(before, "before")
        if value.ndim or not np.isfinite(value):
            raise ValueError(f"before must be a finite number, got {before!r}")
        self.before = float(value)

    def __call__(self, t: ArrayLike) -> float | Floats:
        """Evaluate the function; O(log n_times) per time.

        Parameters
        ----------
        t : float or array-like
            Times within ``domain``.

        Returns
        -------
        float or ndarray
            Values, in the shape of ``t``.

        Raises
        ------
        ValueError
            If a time is NaN or outside ``domain`` (with the default domain: negative).
        """
        t = as_times(t, "t")
        lower, upper = self.domain
        inside = (t >= lower) & (t <= upper)
        if not inside.all():
            raise ValueError(
                f"times must lie within [{lower:g}, {upper:g}], got {t[~inside].flat[0]:g}"
            )
        values = np.concatenate([[self.before], self.y])[np.searchsorted(self.x, t, side="right")]
        return float(values) if t.ndim == 0 else values

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(<{self.x.size} steps>, domain={self.domain}, "
            f"before={self.before:g})"
        )


class KaplanMeier(StepFunction):
    """Kaplan–Meier estimate with its variance and confidence limits; see :func:`kaplan_meier`.

    Parameters
    ----------
    x : array-like of shape (n_times,)
        Distinct times, ascending.
    y : array-like of shape (n_times,)
        Survival from each time on.
    hazard : array-like of shape (n_times,)
        Share of the risk set that has the event at each time, by weight.
    at_risk : array-like of shape (n_times,)
        Number at risk: rows in the risk set just before each time. With row weights w, the
        effective number (Σw)² / Σw².

    Attributes
    ----------
    x, y, hazard, at_risk : ndarray of shape (n_times,)
        As given, read-only views.
    log_variance : ndarray of shape (n_times,)
        Estimated variance of log S, Greenwood's Σ h / (n (1 − h)) over the times so far, with n the
        number at risk and h the hazard. Infinite once S is 0.

    See Also
    --------
    kaplan_meier : Estimate the curve from outcomes.

    Notes
    -----
    With weights, n is the effective number at risk [2]_. It does not change if all weights are
    multiplied by a constant, and with equal weights it is the number of rows. A weight is how much
    a row counts, not a number of identical rows; repeat the row if it stands for several.

    References
    ----------
    .. [1] Greenwood, "The natural duration of cancer", Reports on Public Health and Medical
       Subjects 33 (1926).
    .. [2] Xie, Liu, "Adjusted Kaplan–Meier estimator and log-rank test with inverse probability of
       treatment weighting for survival data", Statistics in Medicine 24 (2005).
    .. [3] Brookmeyer, Crowley, "A confidence interval for the median survival time", Biometrics 38
       (1982).

    Examples
    --------
    >>> from bristlecone.curves import KaplanMeier
    >>> curve = KaplanMeier([1.0, 2.0], [0.75, 0.5], hazard=[1 / 4, 1 / 3], at_risk=[4, 3])
    >>> curve.variance.round(4).tolist()
    [0.0469, 0.0625]
    """

    def __init__(
        self, x: ArrayLike, y: ArrayLike, *, hazard: ArrayLike, at_risk: ArrayLike
    ) -> None:
        super().__init__(x, y, before=1.0)
        self.hazard = _read_only(hazard, "hazard")
        self.at_risk = _read_only(at_risk, "at_risk")
        for name, values in (("hazard", self.hazard), ("at_risk", self.at_risk)):
            if values.shape != self.x.shape:
                raise ValueError(f"{name} has shape {values.shape}, but x has {self.x.shape}")
        if np.isnan(self.hazard).any() or not (self.at_risk > 0).all():
            raise ValueError("hazard must not be NaN, and at_risk must be positive")
        left = (self.y > 0) & (self.hazard < 1)
        steps = np.full(self.y.shape, np.inf)
        np.divide(self.hazard, (1 - self.hazard) * self.at_risk, out=steps, where=left)
        self.log_variance = _read_only(np.cumsum(steps), "log_variance")

    @property
    def variance(self) -> Floats:
        """Greenwood's variance of S, S² times ``log_variance``; NaN once S is 0."""
        positive = self.y > 0
        return np.where(positive, self.y**2 * np.where(positive, self.log_variance, 0.0), np.nan)

    def confidence_interval(
        self, confidence: float = 0.95, *, method: str = "log-log"
    ) -> tuple[Floats, Floats]:
        """Pointwise confidence limits of S.

        Parameters
        ----------
        confidence : float, default=0.95
            Level, strictly between 0 and 1.
        method : {"log-log", "log", "plain"}, default="log-log"
            Scale on which the limits are symmetric: log(−log S), log S (the default of R's
            ``survfit``), or S itself. The last two are clipped to [0, 1].

        Returns
        -------
        lower, upper : ndarray of shape (n_times,)
            Limits at ``x``. Both are 1 before the first event. Once S is 0 its variance is unknown:
            the lower limit is 0, and the upper one keeps its last value.
        """
        check_confidence(confidence)
        check_choice("method", method, ("log-log", "log", "plain"))
        positive = self.y > 0
        survival = self.y[positive]
        error = ndtri((1 + confidence) / 2) * np.sqrt(self.log_variance[positive])
        if method == "plain":
            limits = [np.clip(survival * (1 + side * error), 0.0, 1.0) for side in (-1, 1)]
        elif method == "log":
            with np.errstate(over="ignore"):
                limits = [np.minimum(survival * np.exp(side * error), 1.0) for side in (-1, 1)]
        else:
            # Before the first event S is 1, for any exponent.
            width = np.zeros_like(error)
            np.divide(error, -np.log(survival), out=width, where=survival < 1)
            with np.errstate(over="ignore"):
                limits = [survival ** np.exp(-side * width) for side in (-1, 1)]
        zeros = np.zeros(self.y.size - survival.size)
        last = limits[1][-1] if survival.size else 1.0
        return np.concatenate([limits[0], zeros]), np.concatenate([limits[1], zeros + last])

    def quantile(self, q: float) -> float:
        """First time at which a share ``q`` had the event, see :func:`quantile`."""
        return float(quantile(self.x, self.y, q))

    def quantile_interval(
        self, q: float, confidence: float = 0.95, *, method: str = "log-log"
    ) -> tuple[float, float]:
        """Confidence interval of a quantile: the same quantile of the confidence limits of S.

        This is the interval of Brookmeyer and Crowley (Biometrics 38, 1982).

        Parameters
        ----------
        q : float
            Level of the quantile, strictly between 0 and 1.
        confidence, method
            As in :meth:`confidence_interval`.

        Returns
        -------
        lower, upper : float
            Infinity if a limit of S stays above 1 − q.
        """
        lower, upper = self.confidence_interval(confidence, method=method)
        return float(_quantile(self.x, lower, q)), float(_quantile(self.x, upper, q))

    @property
    def median(self) -> float:
        """Median; infinity if it is not reached."""
        return self.quantile(0.5)

    def median_interval(
        self, confidence: float = 0.95, *, method: str = "log-log"
    ) -> tuple[float, float]:
        """Confidence interval of the median, see :meth:`quantile_interval`."""
        return self.quantile_interval(0.5, confidence, method=method)

    def restricted_mean(self, tau: float) -> tuple[float, float]:
        """Restricted mean survival time, see :func:`rmst`, and its standard error.

        Parameters
        ----------
        tau : float
            End of the integral, finite and non-negative.

        Returns
        -------
        mean, standard_error : float
            In the unit of time. The variance is Σ A² h / (n (1 − h)) over the times up to ``tau``,
            with A the area under S from each of them to ``tau`` (Greenwood's formula).
        """
        mean = float(rmst(self.x, self.y, tau))
        seen = self.x <= tau
        areas = self.y[seen] * np.diff(np.append(self.x[seen], tau))
        beyond = np.cumsum(areas[::-1])[::-1]
        # Once S is 0, no area is left and the variance is unknown. With delayed entry, rows may
        # still enter and have events later.
        known = np.where(beyond > 0, self.log_variance[seen], 0.0)
        steps = np.where(beyond > 0, np.diff(known, prepend=0.0), 0.0)
        # As a share of the largest, whose square neither overflows nor vanishes.
        unit = float(beyond.max(initial=0.0)) or 1.0
        return mean, unit * float(np.sqrt((beyond / unit) ** 2 @ steps))


def kaplan_meier(y: Outcome, sample_weight: ArrayLike | None = None) -> KaplanMeier:
    """Kaplan–Meier estimate of the survival function, with Greenwood's variance.

    Parameters
    ----------
    y : structured array, DataFrame or pair (event, time), n rows
        Outcomes in any form that ``fit`` takes, see :func:`bristlecone.outcome`. With delayed
        entry (left truncation) a row is in the risk set of t when ``entry < t <= time``.
    sample_weight : array-like of shape (n,), optional
        Row weights, finite and non-negative; rows of weight zero are left out. A weight of 2
        changes S like a second copy of the row, but not the variance, which uses the effective
        number at risk.

    Returns
    -------
    KaplanMeier
        S with steps at the distinct times, events and censorings alike; its variance, confidence
        limits and quantiles.

    See Also
    --------
    nelson_aalen : Cumulative hazard.
    censoring_survival : The censoring distribution.

    Examples
    --------
    >>> from bristlecone.curves import kaplan_meier
    >>> curve = kaplan_meier(([True, False, True, True], [1.0, 2.0, 3.0, 4.0]))
    >>> curve.y.tolist(), curve.at_risk.tolist()
    ([0.75, 0.75, 0.375, 0.0], [4.0, 3.0, 2.0, 1.0])
    >>> curve.median, curve.median_interval()
    (3.0, (1.0, inf))
    """
    time, event, weight, entry = _rows(y, sample_weight)
    table = RiskTable(time, event, weight, entry)
    squares = None if weight is None else RiskTable(time, event, weight**2, entry)
    return KaplanMeier(
        table.time,
        table.kaplan_meier(),
        hazard=table.events / table.at_risk,
        at_risk=effective_at_risk(table, squares, time.size),
    )


def numbers_at_risk(y: Outcome, times: ArrayLike) -> Integers:
    """Sizes of the risk sets at given times, as printed below survival curves.

    Parameters
    ----------
    y : structured array, DataFrame or pair (event, time), n rows
        As in :func:`kaplan_meier`.
    times : array-like of shape (n_times,)
        Any times.

    Returns
    -------
    ndarray of int, shape (n_times,)
        Rows with ``entry < t <= time``; without delayed entry those with ``t <= time``.

    See Also
    --------
    kaplan_meier : The survival curve.

    Examples
    --------
    >>> from bristlecone.curves import numbers_at_risk
    >>> numbers_at_risk(([True, False, True], [1.0, 2.0, 3.0]), times=[0, 2, 3]).tolist()
    [3, 2, 1]
    """
    _, time, entry = check_survival(y)
    at = as_times(times, "times")
    if at.ndim != 1 or np.isnan(at).any():
        raise ValueError(f"times must be one-dimensional numbers, got {times!r}")
    left = np.searchsorted(np.sort(time), at, side="left")
    entered = time.size if entry is None else np.searchsorted(np.sort(entry), at, side="left")
    return np.asarray(entered - left, dtype=np.int64)


def nelson_aalen(y: Outcome, sample_weight: ArrayLike | None = None) -> StepFunction:
    """Nelson–Aalen estimate of the cumulative hazard.

    Parameters
    ----------
    y : structured array, DataFrame or pair (event, time), n rows
        As in :func:`kaplan_meier`.
    sample_weight : array-like of shape (n,), optional
        As in :func:`kaplan_meier`.

    Returns
    -------
    StepFunction
        The cumulative hazard with steps at the distinct times, 0 before the first.

    See Also
    --------
    kaplan_meier : Survival.

    Examples
    --------
    >>> from bristlecone.curves import nelson_aalen
    >>> nelson_aalen(([True, False, True], [1.0, 2.0, 4.0]))([2.0, 4.0]).round(3).tolist()
    [0.333, 1.333]
    """
    table = RiskTable(*_rows(y, sample_weight))
    return StepFunction(table.time, table.nelson_aalen(), before=0.0)


def censoring_survival(
    y: Outcome, sample_weight: ArrayLike | None = None, *, ties: str = "sksurv"
) -> StepFunction:
    """Kaplan–Meier estimate G of the censoring distribution, right-continuous.

    Parameters
    ----------
    y : structured array, DataFrame or pair (event, time), n rows
        As in :func:`kaplan_meier`.
    sample_weight : array-like of shape (n,), optional
        As in :func:`kaplan_meier`.
    ties : {"sksurv", "paper"}, default="sksurv"
        Risk set for a censoring at t. With "sksurv", rows with an event at t have left it, as in
        scikit-survival. With "paper", it contains every row with time >= t, as in OSST (Zhang et
        al. 2024).

    Returns
    -------
    StepFunction
        G with steps at the distinct times.

    See Also
    --------
    kaplan_meier : The survival function.

    Examples
    --------
    >>> from bristlecone.curves import censoring_survival
    >>> censoring_survival(([True, False, True], [1.0, 2.0, 4.0])).y.tolist()
    [1.0, 0.5, 0.5]
    """
    check_choice("ties", ties, ("sksurv", "paper"))
    table = RiskTable(*_rows(y, sample_weight))
    survival = table.censoring(events_leave_first=ties == "sksurv")
    return StepFunction(table.time, survival, before=1.0)


def quantile(times: ArrayLike, survival: ArrayLike, q: float) -> float | Floats:
    """Quantile of the event time: the first of ``times`` by which a share ``q`` had the event.

    Parameters
    ----------
    times : array-like of shape (n_times,)
        Times of the steps, strictly ascending, finite and not negative.
    survival : array-like of shape (n_times,) or (n_curves, n_times)
        Survival from each time on, between 0 and 1, non-increasing.
    q : float
        Level, 0 < q < 1. The quantile is the smallest t with S(t) <= 1 − q, up to 1e-12 for
        the rounding of the curve.

    Returns
    -------
    float or ndarray of shape (n_curves,)
        Quantile of each curve; infinity if the curve stays above 1 − q.

    Raises
    ------
    ValueError
        If ``q`` is not within (0, 1), shapes differ, times do not ascend, or a curve rises or has
        a value outside [0, 1].

    See Also
    --------
    median : The 0.5 quantile.

    Examples
    --------
    >>> from bristlecone.curves import quantile
    >>> quantile([1.0, 3.0], [[0.7, 0.2], [0.9, 0.8]], 0.25).tolist()
    [1.0, inf]
    """
    return _quantile(*_curves(times, survival), q)


def _quantile(times: Floats, survival: Floats, q: float) -> float | Floats:
    """Quantile of checked curves, or of limits of confidence, which may rise."""
    if not (isinstance(q, Real) and 0 < q < 1):
        raise ValueError(f"q must lie strictly between 0 and 1, got {q}")
    reached = survival <= 1 - q + _LEVEL_TOLERANCE
    # A last column that is always reached stands for "never".
    never = np.ones((*reached.shape[:-1], 1), dtype=bool)
    first = np.concatenate([reached, never], axis=-1).argmax(axis=-1)
    result = np.append(times, np.inf)[first]
    return float(result) if survival.ndim == 1 else result


def median(times: ArrayLike, survival: ArrayLike) -> float | Floats:
    """Median event time, see :func:`quantile`.

    Parameters
    ----------
    times : array-like of shape (n_times,)
        Times of the steps, strictly ascending, finite and not negative.
    survival : array-like of shape (n_times,) or (n_curves, n_times)
        Survival from each time on, between 0 and 1, non-increasing.

    Returns
    -------
    float or ndarray of shape (n_curves,)
        Median of each curve; infinity if it is not reached.

    See Also
    --------
    quantile : A quantile of any level.
    rmst : Restricted mean.

    Examples
    --------
    >>> from bristlecone.curves import median
    >>> median([1.0, 3.0], [[0.7, 0.2], [0.9, 0.8]]).tolist()
    [3.0, inf]
    """
    return quantile(times, survival, 0.5)


def rmst(times: ArrayLike, survival: ArrayLike, tau: float) -> float | Floats:
    """Restricted mean survival time, the area under S from 0 to ``tau``.

    S is 1 before the first time and constant after the last.

    Parameters
    ----------
    times : array-like of shape (n_times,)
        Times of the steps, strictly ascending, finite and not negative.
    survival : array-like of shape (n_times,) or (n_curves, n_times)
        Survival from each time on, between 0 and 1, non-increasing.
    tau : float
        End of the integral, finite and non-negative.

    Returns
    -------
    float or ndarray of shape (n_curves,)
        Restricted mean of each curve, in the unit of ``times``.

    Raises
    ------
    ValueError
        If ``tau`` is negative or not finite, and as in :func:`quantile`.

    See Also
    --------
    median : Median event time.

    Examples
    --------
    >>> from bristlecone.curves import rmst
    >>> rmst([1.0, 3.0], [0.5, 0.25], tau=4.0)
    2.25
    """
    times, survival = _curves(times, survival)
    check_real("tau", tau, 0.0)
    edges = np.minimum(np.append(times, tau), tau)
    result = edges[0] + (survival * np.diff(edges)).sum(axis=-1)
    return float(result) if survival.ndim == 1 else result


def _curves(times: ArrayLike, survival: ArrayLike) -> tuple[Floats, Floats]:
    """Times and survival curves as arrays, checked."""
    times = check_times(times)
    survival = as_floats(survival, "survival")
    if not (np.diff(times) > 0).all():
        raise ValueError("times must be strictly ascending")
    if survival.ndim not in (1, 2) or survival.shape[-1] != times.size:
        raise ValueError(
            "survival must have shape (n_times,) or (n_curves, n_times), "
            f"got {survival.shape} for {times.size} times"
        )
    # Rounding may exceed the limits by a little.
    if not ((survival >= -_LEVEL_TOLERANCE) & (survival <= 1 + _LEVEL_TOLERANCE)).all():
        raise ValueError("survival must lie between 0 and 1, without missing values")
    if (np.diff(survival, axis=-1) > _LEVEL_TOLERANCE).any():
        raise ValueError("survival must not rise with time")
    return times, survival


def _read_only(values: ArrayLike, name: str) -> Floats:
    view = as_floats(values, name).view()
    view.flags.writeable = False
    return view


def _rows(
    y: Outcome, sample_weight: ArrayLike | None
) -> tuple[Floats, Bools, Floats | None, Floats | None]:
    """Times, events, weights and entries of the rows that have a weight."""
    check_row_labels(y, of="y", sample_weight=sample_weight)
    event, time, entry = check_survival(y)
    weight = check_sample_weight(sample_weight, time.size)
    if weight is not None and not weight.all():
        kept = weight > 0
        event, time, weight = event[kept], time[kept], weight[kept]
        entry = None if entry is None else entry[kept]
    return time, event, weight, entry


def effective_at_risk(table: RiskTable, squares: RiskTable | None, n_rows: int) -> Floats:
    """Effective numbers at risk (Σw)² / Σw², where another table has the squared weights."""
    if squares is None:
        return table.at_risk
    # Rounding must not lead outside the range from one row to all of them.
    return np.asarray(np.clip(table.at_risk**2 / squares.at_risk, 1.0, n_rows))
