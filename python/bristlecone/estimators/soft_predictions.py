"""Predictions of a fitted soft tree: every row has a curve of its own, that of its leaf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit

from bristlecone import curves
from bristlecone.data.checks import check_survival
from bristlecone.data.frame import Frame
from bristlecone.encoder.design import DesignEncoder
from bristlecone.encoder.missing import missing_text
from bristlecone.estimators.base import TreeMixin
from bristlecone.estimators.describe import describe_soft
from bristlecone.leaves.survival import Baseline
from bristlecone.metrics import concordance_index_censored
from bristlecone.soft.curve import SmoothCurve, cumulative_hazard
from bristlecone.soft.models import LeafModel
from bristlecone.soft.tree import SoftTree, linear_predictor

__all__ = ["SoftPredictions"]

Floats = NDArray[np.float64]

# Event times over which the risk is summed, at most.
_RISK_TIMES = 200
# Cells of a table of curves worked on at once.
_CELLS = 1 << 20
# Nodes between two quantiles, and the shares of the quantiles.
_RMST_NODES = 16
_RMST_SHARES = np.array([1e-4, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 0.9999, 1 - 1e-6])
# Terms of a split that its text shows.
_TERMS = 4


class SoftPredictions(TreeMixin):
    """Predictions, leaf table and scoring; the estimator sets what is declared here."""

    tree_: SoftTree  # type: ignore[assignment]
    encoder_: DesignEncoder
    baseline_: Baseline
    _model: LeafModel
    _linear: Floats  # (n_leaves, n_design + 1) over the design and ones
    _shape: Floats  # (n_leaves, q)
    _log_unit: float
    _leaf_events: NDArray[np.int64]
    _leaf_medians: Floats

    @property
    def n_features_in_(self) -> int:
        """Number of columns of ``X``, that of the fairness group left out."""
        return len(self.encoder_.columns_)

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of these columns, if they had names."""
        if not self.encoder_.named_:
            raise AttributeError("the columns of X had no names")
        return np.array([schema.name for schema in self.encoder_.columns_], dtype=object)

    @property
    def unique_times_(self) -> Floats:
        """Distinct training times, ascending."""
        self._check_fitted()
        return self.baseline_.unique_times

    @property
    def event_times_(self) -> Floats:
        """Distinct training times at which an event happened, ascending."""
        self._check_fitted()
        return self.baseline_.event_times

    @property
    def leaf_shares_(self) -> Floats:
        """Share of the training weight in every leaf, by the most probable paths."""
        self._check_fitted()
        weight = self.tree_.weighted_n_node_samples
        return weight[self.tree_.leaves] / weight[0]

    @property
    def n_effective_leaves_(self) -> float:
        """Number of equal leaves whose shares have the same entropy; between 1 and the leaves."""
        shares = self.leaf_shares_[self.leaf_shares_ > 0]
        return float(np.exp(-(shares @ np.log(shares))))

    @property
    def design_names_(self) -> list[str]:
        """Names of the design columns, such as "age" and "stage = II"."""
        self._check_fitted()
        return self.encoder_.names

    @property
    def coef_(self) -> Floats:
        """Weights of the splits in the user's units, shape (n_splits, n_design), in preorder.

        A row goes left with probability 1/(1 + exp(−(coef · x + intercept))).
        """
        self._check_fitted()
        return self.encoder_.per_unit(self.tree_.weights[self._split_order])

    @property
    def intercept_(self) -> Floats:
        """Intercepts of the splits in the user's units, shape (n_splits,); −ω₀ of the paper."""
        self._check_fitted()
        at_zero = self.tree_.intercepts + self.tree_.weights @ self.encoder_.zero
        return at_zero[self._split_order]

    @property
    def leaf_coef_(self) -> Floats:
        """Weights of the leaves' linear predictors in the user's units, (n_leaves, n_design)."""
        self._check_fitted()
        return self.encoder_.per_unit(self._linear[:, :-1])

    @property
    def leaf_intercept_(self) -> Floats:
        """Intercepts of the leaves' linear predictors in the user's units, shape (n_leaves,)."""
        self._check_fitted()
        at_zero = self._linear[:, -1] + self._linear[:, :-1] @ self.encoder_.zero
        return self._model.in_unit(at_zero, self._log_unit)

    @property
    def leaf_parameters_(self) -> dict[str, Floats]:
        """Further parameters of the leaves, such as "alpha", each of shape (n_leaves,)."""
        self._check_fitted()
        return self._model.parameters(self._shape)

    def _used_columns(self) -> list[int]:
        used = (self.tree_.weights != 0).any(axis=0)
        weighed = {
            part.column
            for part, is_used in zip(self.encoder_.design_, used, strict=True)
            if is_used
        }
        return [j for j, column in enumerate(self.encoder_.columns_) if column.name in weighed]

    def _missing_text(self) -> str:
        return missing_text(self.encoder_.columns_)

    @property
    def n_features_used_(self) -> int:
        """Number of columns with a weight other than 0 in a split."""
        return len(self.features_used_)

    def predict_proba_leaf(self, X: Any) -> Floats:
        """Soft memberships: probability of every leaf, Σ 1.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.

        Returns
        -------
        array of float, shape (n, n_leaves_)
            Leaves from left to right, as in ``tree_.leaves``. The leaf of ``apply`` is at the
            end of the more probable branches and need not have the largest.
        """
        self._check_fitted()
        return self.tree_.probabilities(self._tree_rows(X))

    def predict_proba_branch(self, X: Any) -> Floats:
        """Probability to go left at every split.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.

        Returns
        -------
        array of float, shape (n, n_splits)
            Splits in preorder; the row goes left where it is at least 1/2.
        """
        self._check_fitted()
        logit = self.tree_.logits(self._tree_rows(X))
        return np.ascontiguousarray(expit(logit[self._split_order]).T)

    def predict(self, X: Any) -> Floats:
        """Risk of every row: its cumulative hazard summed over the event times.

        Over 200 of them, evenly spread by rank, when there are more.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.

        Returns
        -------
        array of float, shape (n,)
            Higher means an earlier event.
        """
        times = self.event_times_
        if times.size > _RISK_TIMES:
            times = times[np.linspace(0, times.size - 1, _RISK_TIMES).round().astype(np.int64)]
        leaf, linear = self._located(X)
        risk = np.empty(len(leaf))
        for rows in _blocks(len(leaf), times.size):
            risk[rows] = self._hazards(leaf[rows], linear[rows], times).sum(axis=1)
        return risk

    def predict_survival_function(
        self, X: Any, return_array: bool = False, times: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Survival function of every row: that of its leaf at its own features.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        return_array : bool
            Values at ``unique_times_`` in place of function objects.
        times : array-like of float, shape (n_times,), optional
            Values at these times in place of function objects; finite, not negative.

        Returns
        -------
        array, shape (n,), (n, len(unique_times_)) or (n, n_times)
            ``SmoothCurve`` objects, or float values.

        Raises
        ------
        ValueError
            When a time is negative or not finite.
        """
        return self._predict_curves(X, return_array, times, survival=True)

    def predict_cumulative_hazard_function(
        self, X: Any, return_array: bool = False, times: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Cumulative hazard function of every row; arguments as ``predict_survival_function``.

        Parameters
        ----------
        X, return_array, times
            As in ``predict_survival_function``.

        Returns
        -------
        array, shape (n,), (n, len(unique_times_)) or (n, n_times)
            ``SmoothCurve`` objects, or float values.
        """
        return self._predict_curves(X, return_array, times, survival=False)

    def predict_quantile(self, X: Any, q: ArrayLike) -> Floats:
        """Quantiles of the survival time of every row.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        q : float or array-like of float, shape (n_quantiles,)
            Share of the rows that has had the event, between 0 and 1 (exclusive).

        Returns
        -------
        array of float, shape (n,) or (n, n_quantiles)
            Time with S(t) = 1 − q; may lie after the last training time, where the curve is
            extrapolated, and is inf beyond the range of float64.

        Raises
        ------
        ValueError
            When ``q`` is not strictly between 0 and 1.
        """
        levels = np.asarray(q, dtype=np.float64)
        if levels.ndim > 1 or levels.size == 0:
            raise ValueError(f"q has shape {levels.shape}; expected a number or a list of numbers")
        wrong = ~((levels > 0) & (levels < 1))
        if wrong.any():
            raise ValueError(
                f"q must lie strictly between 0 and 1, got {np.atleast_1d(levels[wrong])[0]}"
            )
        leaf, linear = self._located(X)
        found = self._quantiles(leaf, linear, np.atleast_1d(levels))
        return found[:, 0] if levels.ndim == 0 else found

    def predict_median(self, X: Any) -> Floats:
        """Median survival time of every row.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.

        Returns
        -------
        array of float, shape (n,)
            As ``predict_quantile`` with q = 1/2.
        """
        return self.predict_quantile(X, 0.5)

    def predict_rmst(self, X: Any, tau: float | None = None) -> Floats:
        """Restricted mean survival time of every row: the integral of S from 0 to ``tau``.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        tau : float, optional
            End of the integral, finite and not negative; the last training time by default.

        Returns
        -------
        array of float, shape (n,)
            In the unit of time.

        Raises
        ------
        ValueError
            When ``tau`` is negative or not finite.

        Notes
        -----
        Gauss–Legendre between quantiles of the row's own curve.
        """
        end = float(self.unique_times_[-1] if tau is None else tau)
        if not (np.isfinite(end) and end >= 0):
            raise ValueError(f"tau must be finite and non-negative, got {tau}")
        leaf, linear = self._located(X)
        result = np.empty(len(leaf))
        node, weight = np.polynomial.legendre.leggauss(_RMST_NODES)
        for rows in _blocks(len(leaf), _RMST_NODES * (_RMST_SHARES.size + 1)):
            cuts = np.minimum(self._quantiles(leaf[rows], linear[rows], _RMST_SHARES), end)
            edges = np.hstack([np.zeros((len(cuts), 1)), cuts, np.full((len(cuts), 1), end)])
            half = np.diff(edges)[:, :, np.newaxis] / 2
            times = edges[:, :-1, np.newaxis] + half * (node + 1)
            hazard = cumulative_hazard(
                self._model,
                linear[rows],
                self._shape[leaf[rows]],
                times.reshape(len(cuts), -1),
                self._log_unit,
            )
            steps = (half * weight).reshape(len(cuts), -1)
            result[rows] = (np.exp(-hazard) * steps).sum(axis=1)
        return result

    def score(self, X: Any, y: Any) -> float:
        """Harrell's concordance index of ``predict(X)``.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        y : structured array or DataFrame, n rows
            Outcomes in any form that ``fit`` takes.

        Returns
        -------
        float
            Between 0 and 1; 1/2 for a constant prediction.

        Raises
        ------
        ValueError
            When no two rows can be compared.
        """
        risk = self.predict(X)
        event, time, entry = check_survival(y)
        if len(event) != len(risk):
            raise ValueError(f"X has {len(risk)} rows but y has {len(event)}")
        # Ranks, because small risks differ by less than a tolerance of the index.
        rank = np.unique(risk, return_inverse=True)[1]
        return float(concordance_index_censored(event, time, rank, entry=entry).cindex)

    def leaf_table(self) -> Frame:
        """Training rows of every leaf, by their most probable paths.

        Returns
        -------
        Frame
            Columns ``node``, ``n_samples``, ``n_events``, ``weight`` and ``median``, the
            Kaplan–Meier median of these rows: inf where it is not reached, NaN without rows.
        """
        self._check_fitted()
        leaves = self.tree_.leaves
        return Frame(
            [
                ("node", leaves),
                ("n_samples", self.tree_.n_node_samples[leaves]),
                ("n_events", self._leaf_events),
                ("weight", self.tree_.weighted_n_node_samples[leaves]),
                ("median", self._leaf_medians),
            ]
        )

    @property
    def _split_order(self) -> NDArray[np.int64]:
        """Splits in preorder, as positions level by level."""
        return np.argsort(self.tree_.splits)

    def _described(self) -> str:
        return describe_soft(self)

    def _split_names(self) -> list[str]:
        return self.encoder_.names

    def _split_texts(self) -> dict[int, str]:
        return {node: self._question(node) for node in self.tree_.splits.tolist()}

    def _question(self, node: int) -> str:
        row = int(np.flatnonzero(self.tree_.splits == node)[0])
        scaled = self.tree_.weights[row]
        weights = self.encoder_.per_unit(scaled)
        order = np.argsort(-np.abs(scaled), kind="stable")
        shown = [j for j in order[:_TERMS].tolist() if scaled[j] != 0]
        terms = " ".join(f"{weights[j]:+.3g} [{self.encoder_.names[j]}]" for j in shown)
        hidden = int((scaled != 0).sum()) - len(shown)
        more = f" and {hidden} more" if hidden else ""
        intercept = self.tree_.intercepts[row] + scaled @ self.encoder_.zero
        return f"{intercept:+.3g} {terms}{more} >= 0"

    def _leaf_facts(self) -> list[dict[str, Any]]:
        return [
            {
                "n_events": int(events),
                "median": float(median) if np.isfinite(median) else None,
                "share": float(share),
            }
            for events, median, share in zip(
                self._leaf_events, self._leaf_medians, self.leaf_shares_, strict=True
            )
        ]

    def _leaf_text(self, facts: dict[str, Any]) -> str:
        if facts["share"] == 0:
            return "empty"
        median = "not reached" if facts["median"] is None else f"{facts['median']:g}"
        return f"events={facts['n_events']}, median={median}"

    def _set_leaf_facts(
        self, leaf: NDArray[np.int64], event: NDArray[np.bool_], time: Floats, weight: Floats
    ) -> None:
        medians = np.full(self.tree_.n_leaves, np.nan)
        for k in range(len(medians)):
            rows = leaf == k
            if rows.any():
                survival = curves.kaplan_meier((event[rows], time[rows]), weight[rows])
                medians[k] = curves.median(survival.x, survival.y)
        self._leaf_medians = medians
        self._leaf_events = np.bincount(leaf, event, len(medians)).astype(np.int64)

    def _located(self, X: Any) -> tuple[NDArray[np.int64], Floats]:
        """Leaf of every row and its linear predictor there, both of shape (n,)."""
        self._check_fitted()
        return self._located_rows(self._tree_rows(X))

    def _located_rows(self, design: Floats) -> tuple[NDArray[np.int64], Floats]:
        leaf = self.tree_.leaf_index(design)
        predictors = linear_predictor(design, self._linear[:, :-1], self._linear[:, -1])
        return leaf, predictors[leaf, np.arange(len(leaf))]

    def _hazards(self, leaf: NDArray[np.int64], linear: Floats, times: Floats) -> Floats:
        return cumulative_hazard(self._model, linear, self._shape[leaf], times, self._log_unit)

    def _quantiles(self, leaf: NDArray[np.int64], linear: Floats, levels: Floats) -> Floats:
        found = self._model.log_time(levels, linear[:, np.newaxis], self._shape[leaf])
        with np.errstate(over="ignore"):
            return np.exp(found + self._log_unit)

    def _predict_curves(
        self, X: Any, return_array: bool, times: ArrayLike | None, *, survival: bool
    ) -> NDArray[Any]:
        leaf, linear = self._located(X)
        if times is None and not return_array:
            functions = np.empty(len(leaf), dtype=object)
            functions[:] = [
                SmoothCurve(
                    self.unique_times_,
                    self._model,
                    predictor,
                    self._shape[k],
                    self._log_unit,
                    survival=survival,
                )
                for k, predictor in zip(leaf, linear.tolist(), strict=True)
            ]
            return functions
        at = self.unique_times_ if times is None else _check_times(times)
        values = np.empty((len(leaf), at.size))
        for rows in _blocks(len(leaf), at.size):
            hazard = self._hazards(leaf[rows], linear[rows], at)
            values[rows] = np.exp(-hazard) if survival else hazard
        return values


def _blocks(n_rows: int, n_times: int) -> Iterator[slice]:
    size = max(1, _CELLS // max(1, n_times))
    for start in range(0, n_rows, size):
        yield slice(start, start + size)


def _check_times(times: ArrayLike) -> Floats:
    array = np.asarray(times, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"times has shape {array.shape}; expected one dimension")
    wrong = ~(np.isfinite(array) & (array >= 0))
    if wrong.any():
        raise ValueError(f"times must be finite and not negative; got {array[wrong][0]}")
    return array
