"""``OptimalTreeRegressor``: the provably best regression tree over binary features."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from bristlecone._data.targets import NumericData, check_counts, check_numeric_data
from bristlecone._estimators.base import Taught
from bristlecone._estimators.parameters import check_parameters, choice
from bristlecone._estimators.reestimate import Reestimation
from bristlecone._estimators.searched import Callback, SearchedTree
from bristlecone._leaves.base import view
from bristlecone._log import warn
from bristlecone._objectives.means import SquaredError
from bristlecone._objectives.rates import PoissonDeviance
from bristlecone._types import Floats
from bristlecone.exceptions import BristleconeWarning, InvalidParameterError


@dataclass(kw_only=True, eq=False, repr=False)
class OptimalTreeRegressor(RegressorMixin, Reestimation, Taught, SearchedTree):
    """Regression tree with the least loss among all trees over the binary features of the encoder.

    A leaf predicts the mean of its training rows, or for counts their rate per unit of exposure.

    Parameters
    ----------
    objective : {"squared-error", "poisson"}, default="squared-error"
        "squared-error": mean squared error. "poisson": half the mean Poisson deviance. Summed over
        a leaf, it is Σ y ln(y/m) − Y ln(Y/M), with counts y, exposures m and their sums Y and M.
    max_depth : int or None, default=3
        Maximum number of splits from the root to a leaf; 0 is a single leaf. None means no
        limit and needs ``leaf_penalty > 0`` or ``max_leaf_nodes``.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves.
    min_samples_leaf : int or float, default=1
        Minimum number of training rows in a leaf, regardless of their weights. A float
        between 0 and 1 is a share of the training rows, rounded up.
    leaf_penalty : float, default=0.0
        Penalty for each leaf: the objective is the mean loss plus this times the number of leaves.
        For "squared-error" its unit is that of ``y`` squared.
    shrinkage : float, default=0.0
        Strength λ >= 0 of the hierarchical shrinkage of predictions [Agarwal2022]_: from the root
        down, each node adds λ pseudo-rows with the value of its parent. The tree, its objective and
        bound do not change. With "poisson" λ is a number of counts: each node adds the
        exposure λ / overall rate, at the rate of its parent.
    teacher : "auto", estimator or None, default=None
        Model that smooths the outcomes before the search: its cross-fitted predictions are mixed
        into them, so the tree fits less noise. Statistics and predictions of the leaves use the
        real outcomes (docs/guide/teacher.md). "auto" combines ridge regression, a forest and
        boosting. An estimator is a regressor of ``y``, or with "poisson" of ``y`` per unit of
        exposure.
    teacher_weight : float, default=0.5
        Share of the teacher's predictions in the smoothed outcomes, between 0 and 1.
    time_limit : float or None, default=None
        Seconds after which the search stops with the best tree so far.
    memory_limit : int or None, default=None
        Bytes that the tables of the search may take; None is 600 MiB. With less memory the
        search is slower; if no table fits, it stops with the best tree so far.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all cores. The tree of a completed search does
        not depend on it.
    encoder : "auto" or transformer, default="auto"
        Turns ``X`` into binary features. "auto" is ``BinaryEncoder()`` plus the thresholds
        of greedy trees over all thresholds (docs/guide/encoder.md). A clone is fitted to
        the training rows, and to their outcomes if its ``fit`` takes ``y``. Any transformer
        works whose output is two-dimensional and contains only 0 and 1, and which has
        ``get_feature_names_out``.
    random_state : int, RandomState or None, default=None
        Seed of the teacher's folds and models; None is 0. Nothing else is random.
    verbose : int, default=0
        If positive, fits are logged at level INFO of the logger "bristlecone", otherwise at DEBUG.

    Attributes
    ----------
    objective_value_ : float
        Mean loss per unit of weight plus ``leaf_penalty`` times the number of leaves.
    lower_bound_ : float
        No tree over the binary features has a smaller objective.
    gap_, relative_gap_ : float
        ``objective_value_ - lower_bound_``, and the same divided by ``abs(objective_value_)``.
    status_ : {"optimal", "time_limit", "memory_limit", "interrupted"}
        "optimal" means optimal among trees over the ``n_binary_features_`` binary features.
    training_loss_ : float
        Loss of the tree on the real outcomes, without ``leaf_penalty``.
    tree_ : Tree
        Structure as parallel arrays in preorder; ``feature`` is the index of a binary feature.
    leaf_means_, leaf_variances_ : array of float, shape (n_leaves,)
        Weighted mean and variance of the training rows of every leaf, left to right.
    shrinkage_ : float
        Strength of the shrinkage, as set in ``shrinkage``.
    n_leaves_, depth_ : int
        Size of the tree.
    n_binary_features_ : int
        Number of binary features that were searched.
    n_nodes_explored_ : int
        Number of nodes that the search visited.
    trace_ : list of TracePoint
        Named tuples (seconds, objective, lower_bound), one per improvement.
    fit_time_ : float
        Seconds that ``fit`` took.
    encoder_ : transformer
        The fitted encoder.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : array of str
        Their names; only if ``X`` had names.
    features_used_ : list of str or int
        Columns in the splits of the tree. Predictions need no others.
    splits_ : dict
        Splits in words, by node id.
    feature_importances_ : array of float, shape (n_features_in_,)
        Share of each column in the improvement of the loss; see the property.
    leaves_ : Leaves
        Object with the statistics and predictions of all leaves.
    certificate_ : Certificate
        Record of the fit: the binary features and parameters, the result, the time, the version,
        and a fingerprint of the training rows. It includes the lower bound that proves the result.

    See Also
    --------
    OptimalTree : Takes any objective that is a sum over leaves.

    References
    ----------
    .. [Agarwal2022] Agarwal, Tan, Ronen, Singh, Yu, "Hierarchical shrinkage: improving the accuracy
        and interpretability of tree-based methods", ICML 2022.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])
    >>> tree.predict([[0.0], [9.0]]).tolist()
    [2.0, 11.0]
    """

    objective: Literal["squared-error", "poisson"] = "squared-error"
    max_depth: int | None = 3
    max_leaf_nodes: int | None = None
    min_samples_leaf: int | float = 1
    leaf_penalty: float = 0.0
    shrinkage: float = 0.0
    teacher: Any = None
    teacher_weight: float = 0.5
    time_limit: float | None = None
    memory_limit: int | None = None
    n_jobs: int | None = None
    encoder: Any = "auto"
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    leaf_means_ = view("leaves_", "mean", "Mean of the training rows of every leaf.", Floats)
    leaf_variances_ = view("leaves_", "variance", "Variance of the rows of every leaf.", Floats)
    shrinkage_ = view("leaves_", "shrinkage", "Strength λ of the shrinkage.", float)

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        exposure: ArrayLike | None = None,
        callback: Callback | None = None,
    ) -> OptimalTreeRegressor:
        """Find the best tree.

        Parameters
        ----------
        X : DataFrame (pandas, polars, ...) or array, shape (n, n_features)
            Numeric, boolean or categorical columns; convert dates to numbers first. The default
            encoder accepts missing values; a custom encoder may not.
        y : array-like of float, shape (n,)
            Finite numbers; with "poisson" counts, which may be fractions but not negative.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative. Rows with weight zero are left out. A row with an
            integer weight k has the effect of k copies, except that minimum numbers of rows count
            it once, and that a teacher may treat it differently.
        exposure : array-like of float, shape (n,), optional
            For "poisson": time, area or population in which the events of each row were counted,
            positive. 1 by default.
        callback : callable, optional
            Called as ``callback(progress)`` whenever the best tree or the lower bound improves, and
            every quarter of a second, in the thread of ``fit``. The attributes of ``progress`` are
            seconds, objective, lower_bound, gap, n_nodes_explored and, if there is a forecast,
            share and seconds_left. An exception that it raises ends the search and ``fit``.

        Returns
        -------
        OptimalTreeRegressor
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            If a parameter is invalid, the numbers of rows differ, or a column cannot be read.
            The message names the parameter, column or row. An earlier fit is kept.
        KeyboardInterrupt
            If Ctrl-C is pressed twice within a second; an earlier fit is kept. A single Ctrl-C
            stops the search and keeps the best tree so far.

        Warns
        -----
        SearchLimitWarning
            If a limit or Ctrl-C stopped the search. The message reports the gap.
        SearchCostWarning
            As soon as the search is forecast to exceed ``time_limit`` (ten minutes without one).
            The message suggests smaller settings. Never with ``time_limit=0``.
        ConstantFeatureWarning
            If every column of ``X`` is constant.
        SmallSampleWarning
            If ``min_samples_leaf`` is too large for any split, so the tree is a single leaf, or if
            a fold of the teacher has few rows.
        ColumnWarning
            If a column has no values, or may be read differently from what you meant, such as
            numbers stored as text.
        """
        return self._fit(X, y, sample_weight, callback, exposure=exposure)

    def predict(self, X: Any) -> Floats:
        """Predict the mean of the training rows in the leaf, shrunk along the path.

        With "poisson", the rate per unit of exposure: multiply by an exposure for expected counts.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.

        Returns
        -------
        array of float, shape (n,)
            In the unit of ``y``.
        """
        leaves, rows = self._located(X)
        return leaves.predict(rows)

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        exposure: ArrayLike | None = None,
    ) -> float:
        """R²; with "poisson" D², the share of the deviance that the tree explains.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        y : array-like of float, shape (n,)
            Numbers or counts.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative.
        exposure : array-like of float, shape (n,), optional
            Exposure of each row, for "poisson". If the fit had exposures, pass them here, too:
            without them, counts are compared with rates.

        Returns
        -------
        float
            1 is best; the mean, or a single rate, scores 0.

        Raises
        ------
        ValueError
            For negative counts, an exposure without "poisson" or that is not positive, and values
            that ``fit`` rejects.

        Warns
        -----
        BristleconeWarning
            If the fit had exposures and ``exposure`` is None.
        """
        predicted = self.predict(X)
        if self.certificate_.parameters["objective"] != "poisson":
            if exposure is not None:
                raise InvalidParameterError("exposure needs objective='poisson'")
            rows = check_numeric_data(X, y, sample_weight)
            return float(r2_score(rows.target, predicted[rows.kept], sample_weight=rows.weight))
        data = check_counts(X, y, sample_weight, exposure)
        leaves: Any = self.leaves_
        if exposure is None and leaves.exposure.sum() != self.tree_.n_node_samples[0]:
            text = "the fit had exposures: without them, score compares counts with rates"
            warn(text, BristleconeWarning)
        return explained_deviance(data, predicted[data.kept])

    def _check_parameters(self) -> None:
        check_parameters(self, objective=choice("squared-error", "poisson"))

    def _training_data(
        self, X: Any, y: Any, sample_weight: Any, *, exposure: Any = None
    ) -> NumericData:
        if self.objective == "poisson":
            return check_counts(X, y, sample_weight, exposure)
        if exposure is not None:
            raise InvalidParameterError("exposure needs objective='poisson'")
        return check_numeric_data(X, y, sample_weight)

    def _objective(self) -> SquaredError:
        kind = PoissonDeviance if self.objective == "poisson" else SquaredError
        return kind(shrinkage=float(self.shrinkage))


def explained_deviance(data: NumericData, predicted: Floats) -> float:
    """D² of predicted rates of counts; 1 for no deviance at all."""
    rates = data.rates
    exposed = np.ones(len(rates)) if data.rate_weight is None else data.rate_weight
    rate = np.average(rates, weights=exposed)
    left, whole = (_deviance(rates, one, exposed) for one in (predicted, np.full_like(rates, rate)))
    if whole == 0:
        return 1.0 if left == 0 else 0.0
    return 1.0 - left / whole


def _deviance(rates: Floats, predicted: Floats, weight: Floats) -> float:
    """Half the Poisson deviance of rates; infinite if a count was predicted to be impossible."""
    with np.errstate(divide="ignore", invalid="ignore"):
        saturated = xlogy(rates, rates / predicted)
    return float(weight @ (np.where(rates > 0, saturated, 0.0) - rates + predicted))
