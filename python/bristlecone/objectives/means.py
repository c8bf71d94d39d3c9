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

        def mean(values: NDArray[np.float64]) -> NDArray[np.float64]:
            weighted = values if weight is None else values * weight
            total = np.bincount(leaf, weights=weight)
            return np.bincount(leaf, weights=weighted) / total

        means = mean(target)
        variance = mean((target - means[leaf]) ** 2)
        predicted = MeanLeaves.shrunk(tree, means, self.shrinkage)
        quantiles = np.empty((tree.n_leaves, len(LEVELS)))
        for k in range(tree.n_leaves):
            rows = leaf == k
            quantiles[k] = weighted_quantiles(
                target[rows], None if weight is None else weight[rows]
            )
        return MeanLeaves(means, variance, quantiles, self.shrinkage, predicted)

    def losses(self, tree: Tree, problem: Problem, leaves: MeanLeaves) -> NDArray[np.float64]:
        """Within the leaves and between them, about the mean of all rows."""
        weight = tree.weighted_n_node_samples
        of_leaf = weight[tree.leaves]
        centred = leaves.mean - of_leaf @ leaves.mean / weight[0]
        first = tree.node_sums(of_leaf * centred)
        second = tree.node_sums(of_leaf * (centred**2 + leaves.variance))
        return (second - first**2 / weight) / weight[0]

    def aim(self, problem: Problem, leaves: MeanLeaves) -> str:
        return "the least mean squared error"
