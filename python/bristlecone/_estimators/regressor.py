"""``OptimalTreeRegressor``: the provably best regression tree over binary features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import RegressorMixin

from bristlecone._data.targets import NumericData, check_numeric_data
from bristlecone._estimators.docstrings import documented
from bristlecone._estimators.reestimate import Reestimation
from bristlecone._estimators.searched import Callback, SearchedTree
from bristlecone._leaves.base import view
from bristlecone._objectives.means import SquaredError

__all__ = ["OptimalTreeRegressor"]


@documented
class OptimalTreeRegressor(RegressorMixin, Reestimation, SearchedTree):
    """Regression tree of least squared error among all trees over the binary features.

    A leaf predicts the mean of its training rows, with ``shrinkage`` pulled towards that of all.

    Parameters
    ----------
    {max_depth, max_leaf_nodes, min_samples_leaf}
    leaf_penalty : float
        Added to the mean squared error per leaf, in the unit of ``y`` squared.
    shrinkage : float
        λ >= 0 of hierarchical shrinkage of the predictions, after [Agarwal2022]_: from the root
        down, every node counts λ pseudo-rows at the value of its parent. Tree, objective and bound
        do not depend on it.
    {time_limit, memory_limit, n_jobs, encoder, random_state, verbose}

    Attributes
    ----------
    objective_value_ : float
        Mean squared error plus ``leaf_penalty`` times the number of leaves.
    {lower_bound_, gap_, status_, tree_}
    leaf_means_, leaf_variances_ : array of float, shape (n_leaves,)
        Weighted mean and variance of the training rows of every leaf, left to right.
    {shrinkage_, n_leaves_, n_binary_features_, n_nodes_explored_, trace_, fit_time_, encoder_}
    {n_features_in_, feature_names_in_, features_used_}
    {questions_, feature_importances_, leaves_, certificate_}

    See Also
    --------
    OptimalTree : Any objective that is a sum over leaves.

    References
    ----------
    {Agarwal2022}

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])
    >>> tree.predict([[0.0], [9.0]]).tolist()
    [2.0, 11.0]
    """

    leaf_means_ = view("leaves_", "mean", "Mean of the training rows of every leaf.")
    leaf_variances_ = view("leaves_", "variance", "Variance of the training rows of every leaf.")
    shrinkage_ = view("leaves_", "shrinkage", "Pseudo-rows of the fit.")

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
        {X}
        y : array-like of float, shape (n,)
            Finite numbers.
        {sample_weight, callback}

        Returns
        -------
        {self}

        Raises
        ------
        {ValueError, KeyboardInterrupt}

        Warns
        -----
        {SearchLimitWarning, SearchCostWarning, ConstantFeatureWarning}
        """
        return self._fit(X, y, sample_weight, callback)

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
        leaves, rows = self._located(X)
        return leaves.predict(rows)

    def _training_data(self, X: Any, y: Any, sample_weight: Any) -> NumericData:
        return check_numeric_data(X, y, sample_weight)

    def _objective(self) -> SquaredError:
        return SquaredError(shrinkage=float(self.shrinkage))
