"""Predictions shared by all kinds of survival trees, computed from the tree and its leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._data.checks import check_real, check_times
from bristlecone._data.outcomes import Survival, check_survival
from bristlecone._data.rows import check_length, check_row_labels, row_count
from bristlecone._leaves.base import SurvivalLeaves, view
from bristlecone._leaves.statistics import Baseline
from bristlecone._types import Floats
from bristlecone.metrics import concordance_index_censored


class SurvivalPredictions:
    """Predictions and score of a fitted tree with survival leaves.

    All rows of a step leaf share one curve; in a smooth leaf every row has its own curve.
    """

    # Returns the leaves of the tree, and the argument ``rows`` of their predictions for ``X``.
    _located: Callable[[Any], tuple[SurvivalLeaves, Any]]

    unique_times_ = view("leaves_", "unique_times", "Distinct training times, ascending.", Floats)
    event_times_ = view("leaves_", "event_times", "Distinct times of events, ascending.", Floats)

    def predict(self, X: Any) -> Floats:
        """Predict a risk score for every row.

        It is θ, the hazard of the leaf relative to the baseline, whatever the ``leaf_curve``. For a
        tree with ``objective="brier"`` and a soft tree, it is the cumulative hazard of the row,
        summed over ``event_times_`` as in scikit-survival (for a soft tree over at most 200 of
        them, evenly spread by rank).

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.

        Returns
        -------
        array of float, shape (n,)
            Not negative; higher means an earlier event.
        """
        leaves, rows = self._located(X)
        return leaves.risk(rows)

    def predict_survival_function(
        self, X: Any, return_array: bool = False, times: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Predict the survival function of every row.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        return_array : bool
            Return values at ``unique_times_`` instead of functions.
        times : array-like of float, shape (n_times,), optional
            Return values at these times instead of functions; finite, not negative.

        Returns
        -------
        array, shape (n,), (n, len(unique_times_)) or (n, n_times)
            Functions of time with ``x``, ``y`` and ``domain``, as in scikit-survival (rows with
            the same curve share one), or float values.

        Raises
        ------
        ValueError
            If a time is negative or not finite.
        """
        leaves, rows = self._located(X)
        if times is None and not return_array:
            return leaves.functions(rows, survival=True)
        return leaves.survival(rows, leaves.unique_times if times is None else check_times(times))

    def predict_cumulative_hazard_function(
        self, X: Any, return_array: bool = False, times: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Predict the cumulative hazard function of every row.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        return_array : bool
            Return values at ``unique_times_`` instead of functions.
        times : array-like of float, shape (n_times,), optional
            Return values at these times instead of functions; finite, not negative.

        Returns
        -------
        array, shape (n,), (n, len(unique_times_)) or (n, n_times)
            As from ``predict_survival_function``.

        Raises
        ------
        ValueError
            If a time is negative or not finite.
        """
        leaves, rows = self._located(X)
        if times is None and not return_array:
            return leaves.functions(rows, survival=False)
        at = leaves.unique_times if times is None else check_times(times)
        return leaves.cumulative_hazard(rows, at)

    def predict_quantile(self, X: Any, q: ArrayLike) -> Floats:
        """Predict quantiles of the survival time of every row.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        q : float or array-like of float, shape (n_quantiles,)
            Levels: the probability of an event by the quantile, strictly between 0 and 1.

        Returns
        -------
        array of float, shape (n,) or (n, n_quantiles)
            First time with S(t) <= 1 − q. For a step curve, inf if it is not reached within the
            training times; a smooth curve extends beyond them.

        Raises
        ------
        ValueError
            If ``q`` is not strictly between 0 and 1.
        """
        leaves, rows = self._located(X)
        try:
            levels = np.asarray(q, dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"q must be a number or a list of numbers; got {q!r}") from None
        if levels.ndim > 1 or levels.size == 0:
            raise ValueError(f"q has shape {levels.shape}; expected a number or a list of numbers")
        wrong = ~((levels > 0) & (levels < 1))
        if wrong.any():
            value = np.atleast_1d(levels[wrong])[0]
            raise ValueError(f"q must lie strictly between 0 and 1, got {value}")
        found = leaves.quantiles(rows, np.atleast_1d(levels))
        return found[:, 0] if levels.ndim == 0 else found

    def predict_median(self, X: Any) -> Floats:
        """Predict the median survival time of every row, from its predicted curve.

        For a tree with proportional curves this differs from the Kaplan–Meier median of the leaf,
        which ``leaf_table`` and ``export_text`` show.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.

        Returns
        -------
        array of float, shape (n,)
            As from ``predict_quantile`` with q = 0.5.
        """
        return self.predict_quantile(X, 0.5)

    def predict_rmst(self, X: Any, tau: float | None = None) -> Floats:
        """Predict the restricted mean survival time of every row: the integral of S up to ``tau``.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        tau : float, optional
            End of the integral, finite and not negative; the last training time by default. After
            the last training time a step curve is constant.

        Returns
        -------
        array of float, shape (n,)
            In the unit of time.

        Raises
        ------
        ValueError
            If ``tau`` is negative or not finite.
        """
        leaves, rows = self._located(X)
        end = leaves.unique_times[-1] if tau is None else tau
        check_real("tau", end, 0.0)
        return leaves.rmst(rows, float(end))

    def log_likelihood(self, X: Any, y: Any) -> Floats:
        """Log-likelihood of the outcome of every row under its predicted curve.

        For a step curve it is δ + δ ln H − H, with H the predicted cumulative hazard from the row's
        entry to its time and δ = 1 for an event. This is the fitted minus the saturated
        log-likelihood, at most 0. Its mean over the training rows of an ``OptimalSurvivalTree``
        without prior, shrinkage, penalty and event-free leaves is ``-objective_value_`` (Huisman et
        al. 2024, eq. 20). If H is 0, because no training event happened so early, it is replaced by
        1/(W + 1), multiplied by θ for proportional curves, with W the training weight.

        For the smooth curve of a soft tree it is the logarithm of the density for an event, and of
        the survival probability otherwise, with time in the unit of ``y``; a time of 0 is replaced
        by the smallest training time. The two kinds cannot be compared with each other; the first
        compares trees by their relative hazards.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        y : structured array or DataFrame, n rows
            Outcomes in any form that ``fit`` takes.

        Returns
        -------
        array of float, shape (n,)
            Higher is better.

        Raises
        ------
        ValueError
            If the numbers of rows differ.
        """
        leaves, rows = self._located(X)
        return leaves.log_likelihood(rows, _outcomes(X, y, row_count(X)))

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Harrell's concordance index of ``predict(X)``.

        With delayed entry, an event is compared with the rows under observation at its time.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        y : structured array or DataFrame, n rows
            Outcomes in any form that ``fit`` takes.
        sample_weight : array-like of float, shape (n,), optional
            Row weights; a pair counts the product of its two weights.

        Returns
        -------
        float
            Between 0 and 1; 0.5 for a constant prediction.

        Raises
        ------
        ValueError
            If no two rows can be compared.
        """
        leaves, rows = self._located(X)
        risk = leaves.ranks(rows)
        check_row_labels(X, sample_weight=sample_weight)
        event, time, entry = _outcomes(X, y, len(risk))
        found = concordance_index_censored(
            event, time, risk, entry=entry, sample_weight=sample_weight
        )
        return float(found.cindex)


def _outcomes(X: Any, y: Any, n_rows: int) -> Survival:
    """Outcomes of the rows of ``X``."""
    check_row_labels(X, y=y)
    outcomes = check_survival(y)
    check_length(outcomes.event, "y", n_rows)
    return outcomes


class StepPredictions(SurvivalPredictions):
    """Predictions and leaf statistics of a fitted tree with step leaves."""

    leaf_statistics_ = view("leaves_", "statistics", "Statistics of every leaf.", tuple)
    baseline_ = view("leaves_", "baseline", "Training times and baseline hazard.", Baseline)
    leaf_curve_ = view("leaves_", "curve", "Kind of curve that a leaf predicts.", str)
    prior_ = view("leaves_", "prior", "Pseudo-events added to every leaf.", float)
    shrinkage_ = view("leaves_", "shrinkage", "Strength λ of the shrinkage.", float)
    min_events_leaf_ = view(
        "certificate_", "min_events_leaf", "Minimum number of events per leaf; 0 for none.", int
    )
