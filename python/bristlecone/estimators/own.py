"""``OptimalTree``: the provably best tree for an objective of one's own."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if

from bristlecone import _core
from bristlecone.data.checks import check_sample_weight, row_count, take_rows
from bristlecone.encoder.cuts import Cut, RankedColumns
from bristlecone.errors import InvalidParameterError
from bristlecone.estimators.searched import Callback, Engine, Problem, SolverMixin
from bristlecone.leaves.minimum import least_rows
from bristlecone.model.registry import Fields
from bristlecone.objectives.own_checks import (
    check_statistics,
    check_task,
    costs_of,
    optional_costs_of,
)
from bristlecone.search.cuts import Growth, cuts_by_costs
from bristlecone.tree import Tree

__all__ = ["OptimalTree", "Task"]


class Task(ABC):
    """An objective of one's own: what a leaf costs, as a function of sums over its rows.

    A tree costs what its leaves cost together, and the best tree is the one that costs least. All
    that the engine knows of a task are two methods, ``statistics`` and ``leaf_cost``. Any object
    that has them is a task; this class only says what they are.

    Three more are optional; a task that has no use for one does not define it:

    * ``split_cost(sums)``: cost of a split of each node, shape (m,), finite and not negative,
      whatever the question asked. The ``leaf_penalty`` comes on top.
    * ``lower_bound(sums)``: what the leaf costs of no partition of the rows of each node add up to
      less than, shape (m,). Deep trees are searched for faster with it, and a search that a limit
      stopped has a finite ``gap_``. Zeros will do when no leaf costs less than zero.
    * ``leaf_value(sums)``: what each leaf predicts, shape (m,) or (m, p), of any dtype. It makes
      ``predict``.

    ``sums`` are always float64 of shape (m, k), each column contiguous: row j holds the statistics
    of one node, summed over its rows. No node is empty, and none has fewer than
    ``min_samples_leaf`` rows; m is anything from 1 to some ten thousand. An answer may depend on
    the sums of its own node alone. The methods are called from threads of the search, one call at a
    time.

    Notes
    -----
    Separable in the sense of van der Linden, de Weerdt and Demirović, "Necessary and Sufficient
    Conditions for Optimal Decision Trees using Dynamic Programming" (NeurIPS 2023), theorem 4.6:
    statistics add up, and costs of leaves add up.
    """

    @abstractmethod
    def statistics(self, X: Any, y: Any) -> ArrayLike:
        """Statistics of every row, per unit of its weight.

        Parameters
        ----------
        X, y
            As given to ``fit``.

        Returns
        -------
        array-like, shape (n, k)
            Finite numbers. The engine multiplies row i by its ``sample_weight``.
        """

    @abstractmethod
    def leaf_cost(self, sums: NDArray[np.float64]) -> ArrayLike:
        """Cost of each node as a leaf.

        Parameters
        ----------
        sums : array of float, shape (m, k)
            Statistics of each node, summed over its rows.

        Returns
        -------
        array-like, shape (m,)
            Finite, or +inf where the node may not be a leaf; any sign.
        """


class _UserData(NamedTuple):
    """Checked rows of a fit, all of positive weight; ``statistics`` float64 (n, k), weighted."""

    X: Any
    statistics: NDArray[np.float64]
    weight: NDArray[np.float64] | None

    @property
    def total_weight(self) -> float:
        return float(len(self.statistics)) if self.weight is None else math.fsum(self.weight)


def _predicts(estimator: OptimalTree) -> bool:
    if getattr(estimator.task, "leaf_value", None) is None:
        raise AttributeError("predict needs a task with the method leaf_value")
    return True


class OptimalTree(SolverMixin, BaseEstimator):
    """Tree of least cost for a task of one's own, among all trees over the binary features.

    The search is exact, and the task is asked for the costs of tens of thousands of nodes at once,
    so that a few lines of NumPy are fast enough.

    Parameters
    ----------
    task : Task
        Statistics of the rows and cost of a leaf; see :class:`Task`.
    max_depth : int or None, default=3
        Most questions from the root to a leaf; 0 is a single leaf. None is no limit and needs
        ``leaf_penalty > 0`` or ``max_leaf_nodes``.
    max_leaf_nodes : int or None, default=None
        Most leaves.
    min_samples_leaf : int or float, default=1
        Fewest training rows in a leaf, whatever their weights; a float between 0 and 1 is a share
        of the training rows, rounded up.
    leaf_penalty : float, default=0.0
        Added to the mean cost per leaf.
    time_limit : float or None, default=None
        Seconds after which the search stops with the best tree so far.
    memory_limit : int or None, default=None
        Bytes the tables of the search may take; None is 600 MiB. With less it is slower, and with
        too little for any table it stops likewise.
    n_jobs : int or None, default=None
        Threads: None is one, -1 all. The methods of the task still run one at a time.
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
        Costs of leaves and splits per unit of weight, plus ``leaf_penalty`` times the number of
        leaves.
    lower_bound_ : float
        No tree over the binary features is below this; ``-inf`` after a stopped search for a task
        without ``lower_bound``.
    gap_, relative_gap_ : float
        ``objective_value_ - lower_bound_``, and the same as a share of ``|objective_value_|``.
    status_ : {"optimal", "time_limit", "memory_limit", "interrupted", "infeasible"}
        "optimal" means optimal among trees over the ``n_binary_features_`` binary features;
        "infeasible" that each of them has a leaf that costs inf.
    tree_ : Tree
        Structure as parallel arrays in preorder; ``feature`` counts binary features.
    leaf_sums_ : array of float, shape (n_leaves, k)
        Statistics of every leaf, left to right.
    leaf_costs_ : array of float, shape (n_leaves,)
        Cost of every leaf, as the task gives it.
    leaf_values_ : array, shape (n_leaves,) or (n_leaves, p)
        What the task predicts in every leaf; only when it has ``leaf_value``.
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

    Notes
    -----
    Sums are those of integers: statistics are scaled by a power of two and rounded to 60 bits of
    the total of their column. Integers up to 2**53, and anything else that floats add up without
    rounding, are exact. The costs of the tree are computed again from its rows, and ``fit`` raises
    an error when they differ from those of the search by more than 1e-9.

    Of trees that cost the same, a leaf goes before a split and the first question before others.

    ``O(C(F, d) 2^d)`` costs for depth d <= 5 and F features; deeper trees are branched on.

    A fitted tree can be pickled as far as its task can, but not saved as JSON: a task is code.

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

    _admissible = "a tree without a leaf of cost inf"

    def __init__(
        self,
        *,
        task: Any,
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int | float = 1,
        leaf_penalty: float = 0.0,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        n_jobs: int | None = None,
        encoder: Any = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.task = task
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.leaf_penalty = leaf_penalty
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.encoder = encoder
        self.random_state = random_state
        self.verbose = verbose

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
            Numbers, booleans, categories; missing values as the encoder allows.
        y : any, optional
            Whatever the task makes its statistics of.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative; rows of weight zero are left out once the task
            has seen them. Integer weights equal repetition of rows (with
            ``min_samples_leaf=1``).
        callback : callable, optional
            Called with a :class:`~bristlecone.SearchProgress` whenever the best tree or
            the lower bound may have improved, and every quarter of a second, on the thread of
            ``fit``. An exception it raises ends the search and ``fit``.

        Returns
        -------
        OptimalTree
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            For unknown values of parameters, columns that cannot be read, and methods of the task
            that return what they should not (NaN, another shape or type), or costs that are no
            function of the sums, as far as a few samples show. An earlier fit is kept.
        InfeasibleError
            When a limit or Ctrl-C, which ``status_`` names, stopped the search before it met a tree
            without a leaf of cost inf.
        Exception
            What a method of the task raises; an earlier fit is kept.
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
        InfeasibleWarning
            When every tree has a leaf of cost inf.
        """
        start = time.perf_counter()
        problem = self._problem(X, y, sample_weight)
        self._search(problem, start, callback)
        self._announce([self])
        return self

    @available_if(_predicts)
    def predict(self, X: Any) -> NDArray[Any]:
        """What the task predicts in the leaf of every row.

        Only for a task with ``leaf_value``.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.

        Returns
        -------
        array, shape (n,) or (n, p)
        """
        leaf = self._leaf_of(X)
        return self.leaf_values_[leaf]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        return tags

    def _check_parameters(self) -> None:
        super()._check_parameters()
        methods = ("statistics", "leaf_cost")
        if isinstance(self.task, type) or not all(
            callable(getattr(self.task, name, None)) for name in methods
        ):
            raise InvalidParameterError(
                "task must be an object with the methods statistics and leaf_cost, such as an "
                f"instance of a subclass of Task; got {self.task!r}"
            )
        for name in ("split_cost", "lower_bound", "leaf_value"):
            method = getattr(self.task, name, None)
            if method is not None and not callable(method):
                raise InvalidParameterError(f"task.{name} must be a method; got {method!r}")

    def _training_data(self, X: Any, y: Any, sample_weight: Any) -> _UserData:
        n_samples = row_count(X)
        if n_samples == 0:
            raise ValueError("X has no rows")
        weight = check_sample_weight(sample_weight, n_samples)
        kept = None if weight is None or weight.all() else weight > 0
        statistics = check_statistics(self.task.statistics(X, y), n_samples, kept)
        if weight is not None and kept is not None:
            X, weight = take_rows(X, kept), weight[kept]
        if weight is not None:
            statistics = statistics * weight[:, np.newaxis]
        data = _UserData(X, np.ascontiguousarray(statistics), weight)
        fewest = least_rows(self.min_samples_leaf, len(data.statistics))
        check_task(self.task, data.statistics, data.total_weight, fewest)
        return data

    def _engine(self, problem: Problem) -> Engine:
        data = problem.data
        solve = partial(
            _core.solve_user,
            problem.features,
            data.statistics,
            costs_of(self.task, "leaf_cost"),
            optional_costs_of(self.task, "split_cost"),
            optional_costs_of(self.task, "lower_bound"),
            total_weight=data.total_weight,
        )
        return Engine(solve, None, partial(self._cost_of_search, problem))

    def _greedy_cuts(self, data: _UserData, columns: RankedColumns, growth: Growth) -> list[Cut]:
        costs = costs_of(self.task, "leaf_cost"), optional_costs_of(self.task, "split_cost")
        return cuts_by_costs(data.statistics, *costs, data.total_weight, columns, growth)

    def _cost_of_search(self, problem: Problem, **settings: Any) -> dict[str, float]:
        """Forecast of the engine, and the task's own time for so many leaf costs."""
        statistics, leaf_cost = problem.data.statistics, costs_of(self.task, "leaf_cost")
        forecast = _core.forecast_user(problem.features, statistics, **settings)
        sums = np.tile(statistics.sum(axis=0), (1 << 14, 1)).copy(order="F")
        start = time.perf_counter()
        leaf_cost(sums)
        per_cell = (time.perf_counter() - start) / len(sums)
        return {**forecast, "seconds": forecast["seconds"] + forecast["cells"] * per_cell}

    def _set_found(self, tree: Tree, problem: Problem, solution: Any) -> None:
        data = problem.data
        sums = _node_sums(tree, problem.features, data.statistics)
        costs = costs_of(self.task, "leaf_cost")(sums[tree.is_leaf])
        split_cost = optional_costs_of(self.task, "split_cost")
        total = math.fsum(costs)
        if split_cost is not None and tree.n_leaves > 1:
            total += math.fsum(split_cost(sums[~tree.is_leaf]))
        objective = total / data.total_weight + self.leaf_penalty * tree.n_leaves
        if not abs(objective - solution.objective) <= 1e-9 * max(1.0, abs(objective)):
            raise ValueError(
                f"the tree costs {objective!r} by its rows, {solution.objective!r} by the sums of "
                "the search: the statistics of one column differ too much in size, or "
                "task.leaf_cost makes much of the last digits of the sums"
            )
        values = None
        if getattr(self.task, "leaf_value", None) is not None:
            values = np.array(self.task.leaf_value(sums[tree.is_leaf]))
            if values.ndim not in (1, 2) or len(values) != tree.n_leaves:
                raise ValueError(
                    f"task.leaf_value returned an array of shape {values.shape} for "
                    f"{tree.n_leaves} leaves; expected one value, or row of values, per leaf"
                )
        self.leaf_sums_, self.leaf_costs_ = sums[tree.is_leaf], costs
        self.__dict__.pop("leaf_values_", None)
        if values is not None:
            self.leaf_values_ = values

    def _aim(self) -> str:
        task = self._fitted_parameters()["task"]
        return f"the least mean cost by the task {type(task).__name__}"

    def _leaf_facts(self) -> list[dict[str, Any]]:
        facts: list[dict[str, Any]] = [{"cost": cost} for cost in self.leaf_costs_.tolist()]
        values = getattr(self, "leaf_values_", None)
        if values is not None:
            for fact, value in zip(facts, values.tolist(), strict=True):
                fact["value"] = value
        return facts

    def _leaf_text(self, facts: dict[str, Any]) -> str:
        cost = f"cost={facts['cost']:.6g}"
        if "value" not in facts:
            return cost
        value = facts["value"]
        values = value if isinstance(value, list) else [value]
        shown = ", ".join(f"{v:.6g}" if isinstance(v, float) else str(v) for v in values)
        return f"value={f'[{shown}]' if isinstance(value, list) else shown}, {cost}"

    def _saved_leaves(self) -> dict[str, Any]:
        raise TypeError("an OptimalTree cannot be saved as JSON: its task is code")

    def _read_leaves(self, fields: Fields) -> None:
        raise TypeError("an OptimalTree cannot be saved as JSON: its task is code")


def _node_sums(
    tree: Tree, rows: NDArray[np.uint8], statistics: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Statistics summed over the rows of every node, each rounded once, (node_count, k)."""
    passes = tree.decision_path(rows).tocsc()
    sums = np.empty((tree.node_count, statistics.shape[1]), order="F")
    for node in range(tree.node_count):
        of_node = statistics[passes.indices[passes.indptr[node] : passes.indptr[node + 1]]]
        sums[node] = [math.fsum(column) for column in of_node.T]
    return sums
