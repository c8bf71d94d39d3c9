"""Squared error about the mean of a leaf."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeRegressor

from bristlecone.leaves.means import LEVELS, MeanLeaves, weighted_quantiles
from bristlecone.objectives.base import TaskObjective
from bristlecone.search.cuts import SklearnTree
from bristlecone.search.engine import Problem, Task
from bristlecone.tree import Tree

__all__ = ["SquaredError"]


@dataclass(frozen=True, kw_only=True)
class SquaredError(TaskObjective):
    """Mean squared error.

    Parameters
    ----------
    shrinkage : float
        λ of the predictions.
    """

    shrinkage: float

    def target(self, data: Any) -> NDArray[np.float64]:
        return data.target

    def task(self, data: Any) -> Task:
        return Task("regression", {"target": data.target, "weight": data.weight})

    def sklearn_tree(self, data: Any) -> SklearnTree:
        return SklearnTree(DecisionTreeRegressor(), data.target, data.weight, by_label=False)

    def leaves(self, tree: Tree, problem: Problem, solution: Any) -> MeanLeaves:
        leaf = tree.leaf_index(problem.features)
        target, weight = problem.data.target, problem.data.weight

        means, variance = _spread(target, weight, np.arange(tree.n_leaves)[:, None] == leaf)
        predicted = MeanLeaves.shrunk(tree, means, self.shrinkage)
        quantiles = np.empty((tree.n_leaves, len(LEVELS)))
        for k in range(tree.n_leaves):
            rows = leaf == k
            quantiles[k] = weighted_quantiles(
                target[rows], None if weight is None else weight[rows]
            )
        return MeanLeaves(means, variance, quantiles, self.shrinkage, predicted)

    def losses(self, tree: Tree, problem: Problem, leaves: MeanLeaves) -> NDArray[np.float64]:
        """Squared error of every node about its own mean."""
        leaf, data = tree.leaf_index(problem.features), problem.data
        below = tree.node_sums(np.eye(tree.n_leaves, dtype=np.int64)) > 0
        _, variance = _spread(data.target, data.weight, below[:, leaf])
        size = tree.weighted_n_node_samples
        return variance * (size / size[0])

    def aim(self, problem: Problem, leaves: MeanLeaves) -> str:
        return "the least mean squared error"


def _spread(
    target: NDArray[np.float64], weight: NDArray[np.float64] | None, members: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weighted mean and variance of groups of rows (m, n).

    Differences from a row of the group are exact where its targets are close to each other, however
    far from zero, and what is left of their mean is taken off the mean square. Both are in units of
    the largest difference, whose square times a weight may be beyond the largest number.
    """
    found = np.empty((2, len(members)))
    for k, group in enumerate(members):
        own, share = target[group], None if weight is None else weight[group] / weight[group].max()
        differ = own - own[0]
        unit = np.frexp(np.abs(differ).max())[1]
        differ = np.ldexp(differ, -unit)
        middle = np.average(differ, weights=share)
        left = differ - middle
        square, rest = (np.average(left**power, weights=share) for power in (2, 1))
        variance = np.ldexp(max(square - rest**2, 0.0), 2 * unit)
        found[:, k] = own[0] + np.ldexp(middle, unit), variance
    return found[0], found[1]
