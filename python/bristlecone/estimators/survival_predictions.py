"""Predictions that every survival tree shares: all follow from the tree and its leaves."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from bristlecone import curves
from bristlecone.curves import StepFunction
from bristlecone.data.checks import TrainingData, check_survival
from bristlecone.estimators.base import TreeMixin
from bristlecone.leaves.minimum import least_events
from bristlecone.leaves.shrinkage import LeafCurves, shrunk_curves, shrunk_means
from bristlecone.leaves.survival import Baseline, LeafStatistics, SurvivalRows
from bristlecone.metrics import concordance_index_censored
from bristlecone.model import registry as serialise
from bristlecone.tree import Tree

__all__ = ["SurvivalTreeMixin", "median_text", "median_texts", "model_median_text"]


class SurvivalTreeMixin(TreeMixin):
    """Prediction, scoring and saving of a fitted survival tree.

    An estimator calls ``_set_leaves`` at the end of ``fit``. Its
    parameter ``leaf_curve`` chooses the curve of a leaf: "proportional" is exp(−θΛ) with the
    baseline Λ of all training rows, "kaplan-meier" the leaf's own Kaplan–Meier estimate (and
    Nelson–Aalen for the cumulative hazard), "brier-optimal" a curve fitted to the leaf.

    Curves are computed once per leaf and shared by its rows. Every curve is a right-continuous
    step function, 1 (hazard: 0) before the first event and constant after the last training
    time. ``leaf_curve_`` and ``shrinkage_`` are those of the fit, whatever is set later.
    ``leaf_statistics_`` is of the rows of each leaf; what shrinkage makes of them is computed from
    it or, for step curves, kept as ``_shrunk``.
    """

    leaf_statistics_: tuple[LeafStatistics, ...]
    min_events_leaf: Any
    baseline_: Baseline
    leaf_curve: str
    leaf_curve_: str
    prior_: float
    min_events_leaf_: int
    shrinkage: float | str
    shrinkage_: float
    _shrunk: LeafCurves | None

    def _set_leaves(self, tree: Tree, features: NDArray[Any], rows: SurvivalRows) -> None:
        """Set the tree and what follows from it and its training rows."""
        leaf = tree.apply(features)
        self.prior_, self.min_events_leaf_ = self._prior(), self._least_events(rows.data)
        self.leaf_statistics_ = self._statistics(tree, leaf, rows)
        self.baseline_ = rows.baseline
        self.leaf_curve_ = self._curve()
        self.shrinkage_ = self._shrinkage()
        self._shrunk = None
        if self.shrinkage_ > 0 and self.leaf_curve_ != "proportional":
            self._shrunk = shrunk_curves(
                self.leaf_curve_, tree, leaf[rows.order], rows.ordered, self.shrinkage_
            )
        self.tree_ = tree

    def _statistics(
        self, tree: Tree, leaf: NDArray[np.int64], rows: SurvivalRows
    ) -> tuple[LeafStatistics, ...]:
        """Statistics of the leaves; ``leaf`` is the node id of the leaf of every row."""
        return rows.statistics(tree, leaf)

    @abstractmethod
    def _prior(self) -> float:
        """Pseudo-events of the prior that the parameter ``prior`` means."""

    def _least_events(self, data: TrainingData) -> int:
        """Fewest events of a leaf that the parameter ``min_events_leaf`` means."""
        return least_events(self.min_events_leaf, data)

    def _saved_regularisation(self) -> dict[str, Any]:
        """What the parameters meant to the fit; nothing where they are neutral."""
        if not self.prior_ and not self.min_events_leaf_:
            return {}
        meant = {"prior": self.prior_, "min_events_leaf": self.min_events_leaf_}
        return {"regularisation": meant}

    def _read_regularisation(self, fields: serialise.Fields) -> None:
        self.prior_, self.min_events_leaf_ = 0.0, 0
        if "regularisation" in fields.names():
            meant = fields.object("regularisation")
            self.prior_ = meant.number("prior")
            self.min_events_leaf_ = meant.integer("min_events_leaf")
            meant.finish()

    @property
    def unique_times_(self) -> NDArray[np.float64]:
        """Distinct training times, ascending."""
        check_is_fitted(self)
        return self.baseline_.unique_times

    @property
    def event_times_(self) -> NDArray[np.float64]:
        """Distinct training times at which an event happened, ascending."""
        check_is_fitted(self)
        return self.baseline_.event_times

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Risk score of every row, that of its leaf.

        It is θ, the hazard of the leaf relative to the baseline; under the Brier objective the
        cumulative hazard of the leaf summed over ``event_times_``, as in scikit-survival.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.

        Returns
        -------
        array of float, shape (n,)
            Not negative; higher means an earlier event.
        """
        leaf = self._leaf_of(X)
        return self._leaf_risk()[leaf]

    def predict_survival_function(
        self, X: Any, return_array: bool = False, times: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Survival function of every row.

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
            ``StepFunction`` objects (rows of one leaf share one), or float values.

        Raises
        ------
        ValueError
            When a time is negative or not finite.
        """
        return self._predict_curves(X, return_array, times, self._leaf_survival, before=1.0)

    def predict_cumulative_hazard_function(
        self, X: Any, return_array: bool = False, times: ArrayLike | None = None
    ) -> NDArray[Any]:
        """Cumulative hazard function of every row.

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
            ``StepFunction`` objects (rows of one leaf share one), or float values.

        Raises
        ------
        ValueError
            When a time is negative or not finite.
        """
        return self._predict_curves(X, return_array, times, self._leaf_hazard, before=0.0)

    def predict_quantile(self, X: Any, q: ArrayLike) -> NDArray[np.float64]:
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
            First time with S(t) <= 1 − q; inf where it is not reached in the training times.

        Raises
        ------
        ValueError
            When ``q`` is not strictly between 0 and 1.
        """
        leaf = self._leaf_of(X)
        levels = np.asarray(q, dtype=np.float64)
        if levels.ndim > 1 or levels.size == 0:
            raise ValueError(f"q has shape {levels.shape}; expected a number or a list of numbers")
        if levels.ndim == 0:
            return self._leaf_quantiles(float(levels))[leaf]
        return np.stack([self._leaf_quantiles(level)[leaf] for level in levels.tolist()], axis=1)

    def predict_median(self, X: Any) -> NDArray[np.float64]:
        """Median survival time of every row by the curve that the tree predicts for it.

        With the curve "proportional" this is not the Kaplan–Meier median of the leaf, which
        ``leaf_statistics_`` and texts have.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.

        Returns
        -------
        array of float, shape (n,)
            First time with S(t) <= 1/2; inf where it is not reached in the training times.
        """
        return self.predict_quantile(X, 0.5)

    def predict_rmst(self, X: Any, tau: float | None = None) -> NDArray[np.float64]:
        """Restricted mean survival time of every row: the integral of S from 0 to ``tau``.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        tau : float, optional
            End of the integral, finite and not negative; the last training time by default.
            After the last training time S is constant.

        Returns
        -------
        array of float, shape (n,)
            In the unit of time.

        Raises
        ------
        ValueError
            When ``tau`` is negative or not finite.
        """
        leaf = self._leaf_of(X)
        times = self.unique_times_
        end = times[-1] if tau is None else tau
        return np.asarray(curves.rmst(times, self._leaf_survival(times), end))[leaf]

    def score(self, X: Any, y: Any) -> float:
        """Harrell's concordance index of ``predict(X)``.

        With delayed entry, an event is compared with the rows under observation at its time.

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
        return float(concordance_index_censored(event, time, risk, entry=entry).cindex)

    def _saved_leaves(self) -> dict[str, Any]:
        saved = {**serialise.survival_leaves(self), "shrinkage": self.shrinkage_}
        if self._shrunk is not None:
            saved["shrunk_hazard"] = self._shrunk.hazard.tolist()
        return saved

    def _read_leaves(self, fields: serialise.Fields) -> None:
        self.baseline_ = serialise.read_baseline(fields.object("baseline"))
        self.leaf_curve_ = self._curve()
        self.leaf_statistics_ = serialise.read_leaves(
            fields, self.tree_, self.baseline_, self.leaf_curve_, self.prior_
        )
        self.shrinkage_ = fields.number("shrinkage")
        if self.shrinkage != "auto" and self.shrinkage_ != self._shrinkage():
            raise fields.fail("shrinkage", "is not the parameter")
        self._shrunk = self._read_curves(fields)

    def _read_curves(self, fields: serialise.Fields) -> LeafCurves | None:
        if self.shrinkage_ == 0 or self.leaf_curve_ == "proportional":
            return None
        times = self.event_times_ if self.leaf_curve_ == "kaplan-meier" else self.unique_times_
        hazard = np.array(fields.rows("shrunk_hazard", len(times)))
        if len(hazard) != self.tree_.n_leaves:
            raise fields.fail("shrunk_hazard", f"is not that of {self.tree_.n_leaves} leaves")
        if (hazard < 0).any() or (hazard > 1).any():
            raise fields.fail("shrunk_hazard", "is outside [0, 1]")
        return LeafCurves(times, hazard)

    def _leaf_facts(self) -> list[dict[str, Any]]:
        facts: list[dict[str, Any]] = [
            {
                "n_events": leaf.n_events,
                "event_weight": leaf.events,
                "theta": leaf.theta,
                "median": _or_none(leaf.curve.median),
                "median_interval": [_or_none(limit) for limit in leaf.curve.median_interval()],
                "model_median": _or_none(median),
            }
            for leaf, median in zip(
                self.leaf_statistics_, self._leaf_quantiles(0.5).tolist(), strict=True
            )
        ]
        if self.shrinkage_ > 0 and self._predicts_theta():
            for fact, theta in zip(facts, self._theta().tolist(), strict=True):
                fact["shrunk_theta"] = theta
        return facts

    def _leaf_text(self, facts: dict[str, Any]) -> str:
        events = f"events={facts['n_events']}"
        if self._is_weighted:
            events += f" (weight {facts['event_weight']:.6g})"
        theta = f"theta={facts['theta']:.4g}"
        if "shrunk_theta" in facts:
            theta += f" (shrunk {facts['shrunk_theta']:.4g})"
        text = f"{events}, {theta}, median={median_text(facts)}"
        if self._shrunk is not None:
            text += f", model median={model_median_text(facts)}"
        return text

    def _theta(self) -> NDArray[np.float64]:
        """θ of every leaf as it is predicted."""
        leaves = self.leaf_statistics_
        if self.shrinkage_ == 0:
            return np.array([leaf.theta for leaf in leaves])
        events = np.array([leaf.events for leaf in leaves])
        hazard = np.array([leaf.hazard for leaf in leaves])
        return shrunk_means(self.tree_, events, hazard, self.shrinkage_, above=1.0)

    def _predicts_theta(self) -> bool:
        """Whether anything that is predicted follows from θ."""
        return True

    @abstractmethod
    def _shrinkage(self) -> float:
        """Pseudo-events or pseudo-rows that ``shrinkage`` means to a fit."""

    def _leaf_risk(self) -> NDArray[np.float64]:
        """Risk score of every leaf."""
        return self._theta()

    def _curve(self) -> str:
        """Curve that ``leaf_curve`` means to a fit."""
        return "proportional" if self.leaf_curve == "auto" else self.leaf_curve

    def _leaf_hazard(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Cumulative hazard of every leaf at ``times``, shape (n_leaves, n_times)."""
        if self._shrunk is not None:
            return self._shrunk.cumulative_hazard_at(times)
        curve = self.leaf_curve_
        if curve != "proportional":
            steps = [leaf.hazard_steps(curve) for leaf in self.leaf_statistics_]
            return np.stack([StepFunction(x, y, before=0.0)(times) for x, y in steps])
        baseline = StepFunction(
            self.baseline_.unique_times, self.baseline_.cumulative_hazard, before=0.0
        )
        return np.outer(self._theta(), baseline(times))

    def _leaf_survival(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        """Survival of every leaf at ``times``, shape (n_leaves, n_times)."""
        if self._shrunk is not None:
            return self._shrunk.survival_at(times)
        curve = self.leaf_curve_
        if curve != "proportional":
            steps = [leaf.survival_steps(curve) for leaf in self.leaf_statistics_]
            return np.stack([StepFunction(x, y, before=1.0)(times) for x, y in steps])
        return np.exp(-self._leaf_hazard(times))

    def _leaf_quantiles(self, q: float) -> NDArray[np.float64]:
        times = self.unique_times_
        return np.asarray(curves.quantile(times, self._leaf_survival(times), q))

    def _predict_curves(
        self,
        X: Any,
        return_array: bool,
        times: ArrayLike | None,
        leaf_values: Callable[[NDArray[np.float64]], NDArray[np.float64]],
        before: float,
    ) -> NDArray[Any]:
        leaf = self._leaf_of(X)
        if times is not None:
            return leaf_values(_check_times(times))[leaf]
        values = leaf_values(self.unique_times_)
        if return_array:
            return values[leaf]
        functions = np.empty(len(values), dtype=object)
        functions[:] = [StepFunction(self.unique_times_, y, before=before) for y in values]
        return functions[leaf]


def median_texts(facts: Mapping[str, Any]) -> list[str]:
    """Kaplan–Meier median, and its confidence interval unless neither limit is reached."""
    median = "not reached" if facts["median"] is None else f"{facts['median']:g}"
    limits = ["-" if limit is None else f"{limit:g}" for limit in facts["median_interval"]]
    return [median] if limits == ["-", "-"] else [median, f"{limits[0]} to {limits[1]}"]


def median_text(facts: Mapping[str, Any]) -> str:
    """Both in one: "1036 (679 to 1388)"."""
    median, *interval = median_texts(facts)
    return f"{median} ({interval[0]})" if interval else median


def model_median_text(facts: Mapping[str, Any]) -> str:
    """Median of the curve that the tree predicts."""
    return "not reached" if facts["model_median"] is None else f"{facts['model_median']:g}"


def _or_none(time: float) -> float | None:
    return time if np.isfinite(time) else None


def _check_times(times: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(times, dtype=np.float64)
    if array.ndim != 1:
        raise ValueError(f"times has shape {array.shape}; expected one dimension")
    wrong = ~(np.isfinite(array) & (array >= 0))
    if wrong.any():
        raise ValueError(f"times must be finite and not negative; got {array[wrong][0]}")
    return array
