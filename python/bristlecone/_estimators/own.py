"""``OptimalTree``: the provably best tree for a custom objective."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from bristlecone._data.rows import check_row_labels, check_sample_weight, row_count, take_rows
from bristlecone._data.targets import OwnData
from bristlecone._estimators.parameters import check_parameters
from bristlecone._estimators.searched import Callback, SearchedTree
from bristlecone._leaves.base import view
from bristlecone._leaves.minimum import least_rows
from bristlecone._leaves.own import OwnLeaves
from bristlecone._objectives.own import OwnObjective
from bristlecone._objectives.own_checks import check_statistics, check_task
from bristlecone._types import Floats
from bristlecone.exceptions import InvalidParameterError


def _predicts(estimator: OptimalTree) -> bool:
    if getattr(_task(estimator), "leaf_value", None) is None:
        raise AttributeError("OptimalTree can predict only if its task has leaf_value")
    return True


def _scores(estimator: OptimalTree) -> bool:
    if not _predicts(estimator) or getattr(_task(estimator), "score", None) is None:
        raise AttributeError(
            "OptimalTree has a score only if its task has leaf_value and score(y, predicted, "
            "sample_weight)"
        )
    return True


def _task(estimator: OptimalTree) -> Any:
    """Task of the fit; before a fit, that of the parameters."""
    found = getattr(estimator, "certificate_", None)
    return estimator.task if found is None else found.parameters["task"]


@dataclass(kw_only=True, eq=False, repr=False)
class OptimalTree(SearchedTree):
    """Tree with the least cost for a custom task, among all trees over the binary features.

    The search is exact. It computes the costs of tens of thousands of nodes in one call of the
    task, so a few lines of NumPy are fast enough.

    Parameters
    ----------
    task : Task
        Statistics of the rows and cost of a leaf; see :class:`Task`.
    max_depth : int or None, default=3
        Maximum number of splits from the root to a leaf; 0 is a single leaf. None means no
        limit and needs ``leaf_penalty > 0`` or ``max_leaf_nodes``.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves.
    min_samples_leaf : int or float, default=1
        Minimum number of training rows in a leaf, regardless of their weights. A float
        between 0 and 1 is a share of the training rows, rounded up.
    leaf_penalty : float, default=0.0
        Penalty for each leaf: the objective is the mean cost plus this times the number of leaves.
    time_limit : float or None, default=None
        Seconds after which the search stops with the best tree so far.
    memory_limit : int or None, default=None
        Bytes that the tables of the search may take; None is 600 MiB. With less memory the
        search is slower; if no table fits, it stops with the best tree so far.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all cores. The tree of a completed search does
        not depend on it.
        The methods of the task still run one at a time.
    encoder : "auto" or transformer, default="auto"
        Turns ``X`` into binary features. "auto" is ``BinaryEncoder()`` plus the thresholds
        of greedy trees over all thresholds (docs/guide/encoder.md). A clone is fitted to
        the training rows, and to their outcomes if its ``fit`` takes ``y``. Any transformer
        works whose output is two-dimensional and contains only 0 and 1, and which has
        ``get_feature_names_out``.
    verbose : int, default=0
        If positive, fits are logged at level INFO of the logger "bristlecone", otherwise at DEBUG.

    Attributes
    ----------
    objective_value_ : float
        Costs of leaves and splits per unit of weight, plus ``leaf_penalty`` times the number of
        leaves.
    lower_bound_ : float
        No tree over the binary features has a smaller objective.
        ``-inf`` after a stopped search for a task without ``lower_bound``.
    gap_, relative_gap_ : float
        ``objective_value_ - lower_bound_``, and the same as a share of ``|objective_value_|``.
    status_ : {"optimal", "time_limit", "memory_limit", "interrupted", "infeasible"}
        "optimal" means optimal among trees over the ``n_binary_features_`` binary features;
        "infeasible" means that each of them has a leaf of cost inf.
    tree_ : Tree
        Structure as parallel arrays in preorder; ``feature`` is the index of a binary feature.
    leaf_sums_ : array of float, shape (n_leaves, k)
        Statistics of every leaf, left to right.
    leaf_costs_ : array of float, shape (n_leaves,)
        Cost of every leaf, as computed by the task.
    leaf_values_ : array, shape (n_leaves,) or (n_leaves, p)
        Prediction of the task for every leaf; only if it has ``leaf_value``.
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
    Task : Base class of tasks.

    Notes
    -----
    Statistics are summed as integers: they are scaled by a power of two and rounded to 60 bits of
    the total of their column. Integers up to 2**53, and other values that floats add without
    rounding, are exact. The costs of the tree are computed again from its rows, and ``fit`` raises
    an error if they differ from those of the search by more than 1e-9.

    If several trees cost the same, a leaf is preferred to a split, and earlier binary features to
    later ones.

    The search computes ``O(C(F, d) 2^d)`` costs for depth d <= 5 and F features; deeper trees use
    branch and bound.

    A fitted tree can be pickled if its task can. It cannot be saved as JSON, because a task is
    Python code.

    Examples
    --------
    >>> import numpy as np
    >>> from bristlecone import OptimalTree, Task
    >>> class SquaredError(Task):
    ...     def statistics(self, X, y):
    ...         return np.column_stack([np.ones(len(y)), y, y**2])
    ...
    ...     def leaf_cost(self, sums):
    ...         n, total, squares = sums.T
    ...         return squares - total**2 / n
    ...
    ...     def leaf_value(self, sums):
    ...         return sums[:, 1] / sums[:, 0]
    >>> tree = OptimalTree(task=SquaredError(), max_depth=1)
    >>> tree.fit([[1.0], [2.0], [8.0]], np.array([1.0, 3.0, 11.0])).predict([[0.0], [9.0]]).tolist()
    [2.0, 11.0]
    """

    task: Any
    max_depth: int | None = 3
    max_leaf_nodes: int | None = None
    min_samples_leaf: int | float = 1
    leaf_penalty: float = 0.0
    time_limit: float | None = None
    memory_limit: int | None = None
    n_jobs: int | None = None
    encoder: Any = "auto"
    verbose: int = 0

    leaves_: OwnLeaves = field(init=False)

    leaf_sums_ = view("leaves_", "sums", "Statistics of the rows of every leaf, summed.", Floats)
    leaf_costs_ = view("leaves_", "cost", "Cost of every leaf, as computed by the task.", Floats)

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: ArrayLike | None = None,
        *,
        callback: Callback | None = None,
    ) -> OptimalTree:
        """Find the best tree.

        Parameters
        ----------
        X : DataFrame (pandas, polars, ...) or array, shape (n, n_features)
            Numeric, boolean or categorical columns; convert dates to numbers first. The default
            encoder accepts missing values; a custom encoder may not.
        y : any, optional
            Any value from which the task computes its statistics.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative. The task gets rows of weight zero, too; then they
            are left out. An integer weight k has the effect of k copies of the row (with
            ``min_samples_leaf=1``).
        callback : callable, optional
            Called as ``callback(progress)`` whenever the best tree or the lower bound improves, and
            every quarter of a second, in the thread of ``fit``. The attributes of ``progress`` are
            seconds, objective, lower_bound, gap, n_nodes_explored and, if there is a forecast,
            share and seconds_left. An exception that it raises ends the search and ``fit``.

        Returns
        -------
        OptimalTree
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            If a parameter is invalid, a column cannot be read, a method of the task returns an
            invalid value (NaN, another shape or type), or a few samples show that the costs do not
            depend on the sums alone. An earlier fit is kept.
        InfeasibleError
            If a limit or Ctrl-C (see ``status_``) stopped the search before it found a tree
            without a leaf of cost inf.
        Exception
            Any exception that a method of the task raises. An earlier fit is kept.
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
            If ``min_samples_leaf`` is too large for any split, so the tree is a single leaf.
        ColumnWarning
            If a column has no values, or may be read differently from what you meant, such as
            numbers stored as text.
        InfeasibleWarning
            If every tree has a leaf of cost inf.
        """
        return self._fit(X, y, sample_weight, callback)

    @available_if(_predicts)
    def predict(self, X: Any) -> NDArray[Any]:
        """Return the prediction of the task for the leaf of every row.

        Available only if the task has ``leaf_value``.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.

        Returns
        -------
        array, shape (n,) or (n, p)
        """
        leaves, rows = self._located(X)
        return leaves.predict(rows)

    @available_if(_scores)
    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Return the score of the task for predictions of other rows.

        Available only if the task has ``leaf_value`` and ``score``.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        y : any
            Outcomes, in the form that the task takes.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative.

        Returns
        -------
        float
            Greater is better: ``task.score(y, predicted, sample_weight)``.

        Raises
        ------
        ValueError
            If a weight is invalid, or ``y`` or the weights have the index of ``X`` in another
            order.
        """
        predicted = self.predict(X)
        check_row_labels(X, y=y, sample_weight=sample_weight)
        weight = check_sample_weight(sample_weight, len(predicted))
        return float(self.certificate_.parameters["task"].score(y, predicted, weight))

    @property
    def leaf_values_(self) -> NDArray[Any]:
        """Prediction of the task for every leaf; only if it has ``leaf_value``."""
        self._check_fitted()
        value = self.leaves_.value
        if value is None:
            raise AttributeError("leaf_values_ needs a task with leaf_value")
        return value.copy()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags

    def _check_parameters(self) -> None:
        check_parameters(self, task=_check_task)

    def _training_data(self, X: Any, y: Any, sample_weight: Any) -> OwnData:
        n_samples = row_count(X)
        if n_samples == 0:
            raise ValueError("X has no rows")
        check_row_labels(X, y=y, sample_weight=sample_weight)
        weight = check_sample_weight(sample_weight, n_samples)
        kept = None if weight is None or weight.all() else weight > 0
        statistics = check_statistics(self.task.statistics(X, y), n_samples, kept)
        if weight is not None and kept is not None:
            X, weight = take_rows(X, kept), weight[kept]
        if weight is not None:
            statistics = statistics * weight[:, np.newaxis]
        data = OwnData(X, np.ascontiguousarray(statistics), weight)
        fewest = least_rows(self.min_samples_leaf, len(data.statistics))
        check_task(self.task, data.statistics, data.total_weight, fewest)
        return data

    def _objective(self) -> OwnObjective:
        return OwnObjective(own=self.task, leaf_penalty=float(self.leaf_penalty))


def _check_task(name: str, value: Any) -> None:
    methods = ("statistics", "leaf_cost")
    if isinstance(value, type) or not all(
        callable(getattr(value, method, None)) for method in methods
    ):
        raise InvalidParameterError(
            f"{name} must be an object with the methods statistics and leaf_cost, such as an "
            f"instance of a subclass of Task; got {value!r}"
        )
    for optional in ("split_cost", "lower_bound", "leaf_value"):
        method = getattr(value, optional, None)
        if method is not None and not callable(method):
            raise InvalidParameterError(f"{name}.{optional} must be a method; got {method!r}")
