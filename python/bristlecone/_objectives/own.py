"""Custom objectives: the cost of a leaf as a function of sums over its rows."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._data.arrays import unmasked
from bristlecone._data.targets import OwnData
from bristlecone._encoder.cuts import Cut
from bristlecone._encoder.ranks import RankedColumns
from bristlecone._leaves.own import OwnLeaves
from bristlecone._objectives.base import Objective
from bristlecone._objectives.own_checks import costs_of, optional_costs_of
from bristlecone._search.cuts import Growth, cuts_by_costs
from bristlecone._search.engine import Engine, Problem, engine_of
from bristlecone._search.engine import Task as EngineTask
from bristlecone._tree import Tree
from bristlecone._types import Floats


class Task(ABC):
    """A custom objective: the cost of a leaf as a function of sums over its rows.

    The cost of a tree is the sum of the costs of its leaves, and the best tree has the least cost.
    A task needs two methods, ``statistics`` and ``leaf_cost``. Any object with these methods is a
    task; you need not inherit from this class.

    You can define four more methods:

    * ``split_cost(sums)``: cost of a split of each node, shape (m,), finite and not negative. It
      does not depend on the binary feature. The ``leaf_penalty`` is added to it.
    * ``lower_bound(sums)``: lower bound on the total leaf cost of any partition of the rows of each
      node, shape (m,). With it, searches for deep trees are faster, and a stopped search has a
      finite ``gap_``. If no leaf costs less than zero, you can return zeros.
    * ``leaf_value(sums)``: prediction of each leaf, shape (m,) or (m, p), of any dtype. It enables
      ``predict``.
    * ``score(y, predicted, sample_weight)``: score of predictions for other rows; greater is
      better. It enables ``score``.

    ``sums`` is always float64 of shape (m, k), each column contiguous. Row j has the statistics of
    one node, summed over its rows. No node is empty, and none has fewer than ``min_samples_leaf``
    rows. The number m of nodes in a call ranges from 1 to tens of thousands. Each result may depend
    only on the sums of its node. The methods are called from threads of the search, one call at a
    time.

    See Also
    --------
    OptimalTree : Find the best tree for a task.

    Notes
    -----
    A task is separable in the sense of van der Linden, de Weerdt and Demirović, "Necessary and
    Sufficient Conditions for Optimal Decision Trees using Dynamic Programming" (NeurIPS 2023),
    theorem 4.6: both the statistics and the costs of leaves are added.

    Examples
    --------
    >>> import numpy as np
    >>> from bristlecone import OptimalTree, Task
    >>> class Errors(Task):
    ...     def statistics(self, X, y):
    ...         return np.column_stack([y == 0, y == 1])
    ...
    ...     def leaf_cost(self, sums):
    ...         return sums.min(axis=1)
    >>> X, y = [[0], [1], [1]], np.array([0, 1, 1])
    >>> OptimalTree(task=Errors(), max_depth=1).fit(X, y).leaf_costs_.tolist()
    [0.0, 0.0]
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
    def leaf_cost(self, sums: Floats) -> ArrayLike:
        """Cost of each node as a leaf.

        Parameters
        ----------
        sums : array of float, shape (m, k)
            Statistics of each node, summed over its rows.

        Returns
        -------
        array-like, shape (m,)
            Finite numbers of any sign, or +inf for nodes that may not be leaves.
        """


@dataclass(frozen=True, kw_only=True, eq=False)
class OwnObjective(Objective[OwnData, OwnLeaves]):
    """Mean cost by a task.

    Parameters
    ----------
    own : Task
        The task.
    leaf_penalty : float
        Added per leaf, for the check of what the search found.
    """

    own: Any
    leaf_penalty: float

    admissible = "a tree without a leaf of cost inf"
    infeasible = "every tree has a leaf of cost inf (perhaps from a division by zero)"

    def engine(self, problem: Problem[OwnData]) -> Engine:
        data = problem.data
        task = EngineTask(
            "own",
            {
                "statistics": data.statistics,
                "leaf_cost": costs_of(self.own, "leaf_cost"),
                "split_cost": optional_costs_of(self.own, "split_cost"),
                "lower_bound": optional_costs_of(self.own, "lower_bound"),
                "total_weight": data.total_weight,
            },
        )
        engine = engine_of(task, problem.features)
        return engine._replace(forecast=partial(self._forecast, engine.forecast, data.statistics))

    def target(self, data: OwnData) -> Floats:
        """Statistics of every row, on a common scale."""
        own = data.statistics
        if data.weight is not None:
            own = own / data.weight[:, None]
        mean = np.average(own, axis=0, weights=data.weight)
        spread = np.sqrt(np.average((own - mean) ** 2, axis=0, weights=data.weight))
        return own / np.where(spread > 0, spread, 1.0)

    def cuts(self, data: OwnData, columns: RankedColumns, growth: Growth) -> list[Cut]:
        costs = costs_of(self.own, "leaf_cost"), optional_costs_of(self.own, "split_cost")
        return cuts_by_costs(data.statistics, *costs, data.total_weight, columns, growth)

    def _forecast(
        self, forecast: Callable[..., dict[str, float]], statistics: Floats, **settings: Any
    ) -> dict[str, float]:
        """Forecast of the engine, plus the task's own time for this many leaf costs."""
        leaf_cost = costs_of(self.own, "leaf_cost")
        expected = forecast(**settings)
        sums = np.tile(statistics.sum(axis=0), (1 << 14, 1))
        start = time.perf_counter()
        leaf_cost(sums)
        per_cell = (time.perf_counter() - start) / len(sums)
        return {**expected, "seconds": expected["seconds"] + expected["cells"] * per_cell}

    def leaves(self, tree: Tree, problem: Problem[OwnData], solution: Any) -> OwnLeaves:
        data = problem.data
        sums = _node_sums(tree, problem.features, data.statistics)
        costs = costs_of(self.own, "leaf_cost")(sums[tree.is_leaf])
        split_cost = optional_costs_of(self.own, "split_cost")
        asked = 0.0
        if split_cost is not None and tree.n_leaves > 1:
            asked = math.fsum(split_cost(sums[~tree.is_leaf]))
        penalty = self.leaf_penalty * tree.n_leaves
        objective = (math.fsum(costs) + asked) / data.total_weight + penalty
        terms = (math.fsum(abs(costs)) + asked) / data.total_weight + penalty
        off = abs(objective - solution.objective) - 1e-9 * terms
        if off > 0:
            # Costs that cancel amplify the last digit of a sum.
            off -= _moved(self.own, sums[tree.is_leaf]) / data.total_weight
        if not off <= 0:
            raise ValueError(
                f"the tree costs {objective!r} by its rows, but {solution.objective!r} by the sums "
                "of the search: the statistics of one column differ too much in size, or "
                "task.leaf_cost depends strongly on the last digits of the sums"
            )
        values = None
        if getattr(self.own, "leaf_value", None) is not None:
            values = self.own.leaf_value(sums[tree.is_leaf])
            values = np.array(unmasked(values, "task.leaf_value"))
            if values.ndim not in (1, 2) or len(values) != tree.n_leaves:
                raise ValueError(
                    f"task.leaf_value returned an array of shape {values.shape} for "
                    f"{tree.n_leaves} leaves; expected one value, or row of values, per leaf"
                )
        return OwnLeaves(sums[tree.is_leaf], costs, values)

    def losses(self, tree: Tree, problem: Problem[OwnData], leaves: OwnLeaves) -> Floats | None:
        costs = costs_of(self.own, "leaf_cost")(tree.node_sums(leaves.sums))
        return costs / problem.data.total_weight if np.isfinite(costs).all() else None

    def aim(self, problem: Problem[OwnData], leaves: OwnLeaves) -> str:
        return f"the least mean cost by the task {type(self.own).__name__}"


def _moved(task: Any, sums: Floats) -> float:
    """Change of the leaves' costs if each sum is off by its last digit."""
    found = 0.0
    with np.errstate(all="ignore"):
        exact = np.array(task.leaf_cost(np.array(sums, order="F")))
        for k in range(sums.shape[1]):
            for by in (-(2.0**-52), 2.0**-52):
                moved = np.array(sums, order="F")
                moved[:, k] *= 1 + by
                differ = np.abs(np.asarray(task.leaf_cost(moved)) - exact)
                found += float(differ[np.isfinite(differ)].sum())
    return found


def _node_sums(tree: Tree, rows: NDArray[np.uint8], statistics: Floats) -> Floats:
    """Statistics summed over the rows of every node, each rounded once, (node_count, k)."""
    passes = tree.decision_path(rows).tocsc()
    sums = np.empty((tree.node_count, statistics.shape[1]), order="F")
    for node in range(tree.node_count):
        of_node = statistics[passes.indices[passes.indptr[node] : passes.indptr[node + 1]]]
        sums[node] = [math.fsum(column) for column in of_node.T]
    return sums
