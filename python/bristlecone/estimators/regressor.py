"""``OptimalTreeRegressor``: the provably best regression tree over binary features."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.tree import DecisionTreeRegressor

from bristlecone.data.targets import NumericData, check_numeric_data
from bristlecone.encoder.cuts import RankedColumns
from bristlecone.estimators.searched import Callback, Engine, Problem, task_engine
from bristlecone.leaves.shrinkage import ShrinkageMixin, shrunk_means
from bristlecone.model.registry import Fields, register
from bristlecone.search.cuts import SklearnTree
from bristlecone.tree import Tree

__all__ = ["OptimalTreeRegressor"]


@register
class OptimalTreeRegressor(ShrinkageMixin, RegressorMixin, BaseEstimator):
    """Regression tree of least squared error among all trees over the binary features.

    A leaf predicts the mean of its training rows, with ``shrinkage`` pulled towards that of all.

    Parameters
    ----------
    max_depth : int or None, default=3
        Most questions from the root to a leaf; 0 is a single leaf. None is no limit and needs
        ``leaf_penalty > 0`` or ``max_leaf_nodes``.
    max_leaf_nodes : int or None, default=None
        Most leaves.
    min_samples_leaf : int or float, default=1
        Fewest training rows in a leaf, whatever their weights; a float between 0 and 1 is a share
        of the training rows, rounded up.
    leaf_penalty : float, default=0.0
        Added to the mean squared error per leaf, in the unit of ``y`` squared.
    shrinkage : float, default=0.0
        λ >= 0 of hierarchical shrinkage of the predictions, after [1]_: from the root down, every
        node counts λ pseudo-rows at the value of its parent. Tree, objective and bound do not
        depend on it.
    time_limit : float or None, default=None
        Seconds after which the search stops with the best tree so far.
    memory_limit : int or None, default=None
        Bytes the tables of the search may take; None is 600 MiB. With less it is slower, and with
        too little for any table it stops likewise.
    n_jobs : int or None, default=None
        Threads: None is one, -1 all. The tree of a completed search does not depend on it.
    encoder : "auto" or transformer, default="auto"
        Turns ``X`` into binary features; "auto" is ``BinaryEncoder()`` with the cuts of
        greedy trees over every threshold (docs/guide/encoder.md). A clone is fitted to the
        training rows. Any transformer will do whose output is two-dimensional and holds nothing
        but 0 and 1, and which has ``get_feature_names_out``.
    random_state : int, RandomState or None, default=None
        Accepted for uniformity; the search is deterministic and does not use it.
    verbose : int, default=0
        1 or more reports a fit at level INFO of the logger "bristlecone", else DEBUG.

    Attributes
    ----------
    objective_value_ : float
        Mean squared error plus ``leaf_penalty`` times the number of leaves.
    lower_bound_ : float
        No tree over the binary features is below this.
    gap_, relative_gap_ : float
        ``objective_value_ - lower_bound_``, and the same as a share of ``objective_value_``.
    status_ : {"optimal", "time_limit", "memory_limit", "interrupted"}
        "optimal" means optimal among trees over the ``n_binary_features_`` binary features.
    tree_ : Tree
        Structure as parallel arrays in preorder; ``feature`` counts binary features.
    leaf_means_, leaf_variances_ : array of float, shape (n_leaves,)
        Weighted mean and variance of the training rows of every leaf, left to right.
    shrinkage_ : float
        λ of the fit.
    n_leaves_, depth_ : int
        Size of the tree.
    n_binary_features_ : int
        Binary features the encoder made.
    n_nodes_explored_ : int
        Work of the search.
    trace_ : list of (float, float, float)
        Seconds, objective and lower bound at each improvement.
    fit_time_ : float
        Seconds ``fit`` took.
    encoder_ : transformer
        The fitted encoder.
    n_features_in_ : int
        Columns of ``X``.
    feature_names_in_ : array of str
        Their names; only when ``X`` had names.
    features_used_ : list of str or int
        The columns that the tree asks about; no others are needed at prediction.

    References
    ----------
    .. [1] Agarwal, Tan, Ronen, Singh, Yu, "Hierarchical shrinkage: improving the accuracy and
       interpretability of tree-based methods", ICML 2022.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])
    >>> tree.predict([[0.0], [9.0]]).tolist()
    [2.0, 11.0]
    """

    def __init__(
        self,
        *,
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int | float = 1,
        leaf_penalty: float = 0.0,
        shrinkage: float = 0.0,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        n_jobs: int | None = None,
        encoder: Any = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.leaf_penalty = leaf_penalty
        self.shrinkage = shrinkage
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.encoder = encoder
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        callback: Callback | None = None,
    ) -> OptimalTreeRegressor:
        """Find the best tree.

        Parameters
        ----------
        X : DataFrame (pandas, polars, ...) or array, shape (n, n_features)
            Numbers, booleans, categories; missing values as the encoder allows.
        y : array-like of float, shape (n,)
            Finite numbers.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative; rows of weight zero are left out. Integer
            weights equal repetition of rows (with ``min_samples_leaf=1``).
        callback : callable, optional
            Called with a :class:`~bristlecone.SearchProgress` whenever the best tree or
            the lower bound may have improved, and every quarter of a second, on the thread of
            ``fit``. An exception it raises ends the search and ``fit``.

        Returns
        -------
        OptimalTreeRegressor
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            For unknown values of parameters, rows that do not fit together, and columns that
            cannot be read; parameter, column or row is named, and an earlier fit is kept.
        KeyboardInterrupt
            At a second Ctrl-C within a second; an earlier fit is kept.

        Warns
        -----
        SearchLimitWarning
            When a limit or Ctrl-C stopped the search; the gap is given.
        SearchCostWarning
            At the start of a search without ``time_limit`` that is forecast to take more than ten
            minutes.
        ConstantFeatureWarning
            When every column of ``X`` takes a single value.
        """
        start = time.perf_counter()
        problem = self._problem(X, y, sample_weight)
        self._search(problem, start, callback)
        self._announce([self])
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Mean of the training rows in the leaf of every row, shrunk along the path.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.

        Returns
        -------
        array of float, shape (n,)
            In the unit of ``y``.
        """
        leaf = self._leaf_of(X)
        return self._predicted_means()[leaf]

    def _predicted_means(self) -> NDArray[np.float64]:
        """What is predicted in every leaf."""
        if self.shrinkage_ == 0:
            return self.leaf_means_
        weight = self.tree_.weighted_n_node_samples[self.tree_.leaves]
        return shrunk_means(self.tree_, self.leaf_means_ * weight, weight, self.shrinkage_)

    def _training_data(self, X: Any, y: Any, sample_weight: Any) -> NumericData:
        return check_numeric_data(X, y, sample_weight)

    def _engine(self, problem: Problem) -> Engine:
        return task_engine(*self._sum_task(problem.data), problem.features)

    def _sum_task(
        self, data: NumericData, columns: RankedColumns | None = None
    ) -> tuple[str, dict[str, Any]]:
        return "regression", {"target": data.target, "weight": data.weight}

    def _sklearn_tree(self, data: NumericData) -> SklearnTree:
        return SklearnTree(DecisionTreeRegressor(), data.target, data.weight, by_label=False)

    def _set_found(self, tree: Tree, problem: Problem, solution: Any) -> None:
        leaf = tree.leaf_index(problem.features)
        target, weight = problem.data.target, problem.data.weight

        def mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
            weighted = values if weight is None else values * weight
            total = np.bincount(leaf, weights=weight)
            return np.bincount(leaf, weights=weighted) / total

        self.leaf_means_ = mean(target)
        self.leaf_variances_ = mean((target - self.leaf_means_[leaf]) ** 2)

    def _aim(self) -> str:
        return "the least mean squared error"

    def _leaf_facts(self) -> list[dict[str, Any]]:
        pairs = zip(self.leaf_means_.tolist(), self.leaf_variances_.tolist(), strict=True)
        facts = [{"value": mean, "variance": variance} for mean, variance in pairs]
        if self.shrinkage_ > 0:
            for fact, shrunk in zip(facts, self._predicted_means().tolist(), strict=True):
                fact["shrunk_value"] = shrunk
        return facts

    def _leaf_text(self, facts: dict[str, Any]) -> str:
        text = f"{facts['value']:.6g} (variance {facts['variance']:.4g})"
        return text + (f", shrunk {facts['shrunk_value']:.6g}" if "shrunk_value" in facts else "")

    def _saved_leaves(self) -> dict[str, Any]:
        return {
            "leaves": {
                "mean": self.leaf_means_.tolist(),
                "variance": self.leaf_variances_.tolist(),
            }
        }

    def _read_leaves(self, fields: Fields) -> None:
        leaves = fields.object("leaves")
        self.leaf_means_ = leaves.numbers("mean")
        self.leaf_variances_ = leaves.numbers("variance")
        leaves.finish()
        for name, values in (("mean", self.leaf_means_), ("variance", self.leaf_variances_)):
            if values.shape != (self.tree_.n_leaves,):
                raise leaves.fail(name, f"has not one value for each of {self.tree_.n_leaves}")
        if (self.leaf_variances_ < 0).any():
            raise leaves.fail("variance", "is negative")
