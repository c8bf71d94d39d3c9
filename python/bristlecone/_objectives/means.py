"""Squared error about the mean of a leaf."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bristlecone._data.exact import product_sum
from bristlecone._data.targets import NumericData
from bristlecone._leaves.means import MeanLeaves, weighted_quantiles
from bristlecone._objectives.base import TaskObjective
from bristlecone._search.engine import Problem, Task
from bristlecone._teacher.outcomes import Numbers, Outcomes
from bristlecone._tree import Tree
from bristlecone._types import Floats

# Binary exponents of differences whose squares stay well within range.
_ORDINARY = 200


@dataclass(frozen=True, kw_only=True)
class SquaredError(TaskObjective[NumericData, MeanLeaves]):
    """Mean squared error.

    Parameters
    ----------
    shrinkage : float
        λ of the predictions.
    """

    shrinkage: float

    def target(self, data: NumericData) -> Floats:
        return data.target

    def outcomes(self, data: NumericData) -> Outcomes:
        return Numbers(data.weight, data.target)

    def task(self, data: NumericData) -> Task:
        return Task("regression", {"target": data.sought.target, "weight": data.weight})

    def leaves(self, tree: Tree, problem: Problem[NumericData], solution: Any) -> MeanLeaves:
        mean, variance, quantiles = described(tree, problem)
        predicted = MeanLeaves.shrunk(tree, mean, self.shrinkage)
        return MeanLeaves(mean, variance, quantiles, self.shrinkage, predicted)

    def losses(self, tree: Tree, problem: Problem[NumericData], leaves: MeanLeaves) -> Floats:
        """Squared error of every node about its own mean."""
        if problem.data.smoothed is None:
            groups, of_leaves = _Groups.of(tree, problem), leaves.variance
        else:
            groups = _Groups(tree, replace(problem, data=problem.data.sought))
            of_leaves = np.array([groups.variance(leaf, leaf) for leaf in range(tree.n_leaves)])
        # In preorder the leaves below a node follow it.
        first = np.searchsorted(tree.leaves, np.arange(tree.node_count))
        last = first + tree.node_sums(np.ones(tree.n_leaves, dtype=np.int64)) - 1
        variance = np.empty(tree.node_count)
        variance[tree.leaves] = of_leaves
        for node in np.flatnonzero(~tree.is_leaf):
            variance[node] = groups.variance(first[node], last[node])
        size = tree.weighted_n_node_samples
        return variance * (size / size[0])

    def aim(self, problem: Problem[NumericData], leaves: MeanLeaves) -> str:
        return "the least mean squared error"


def described(tree: Tree, problem: Problem[NumericData]) -> tuple[Floats, Floats, Floats]:
    """Mean, variance and quantiles of the rows of every leaf, as ``MeanLeaves`` has them."""
    groups = _Groups.of(tree, problem)
    leaves = range(tree.n_leaves)
    mean = np.array([groups.mean(leaf) for leaf in leaves])
    variance = np.array([groups.variance(leaf, leaf) for leaf in leaves])
    return mean, variance, np.array([weighted_quantiles(*groups.rows(k, k)) for k in leaves])


class _Groups:
    """The rows sorted by leaf, so that those below a node are adjacent."""

    @classmethod
    def of(cls, tree: Tree, problem: Problem[NumericData]) -> _Groups:
        """The groups of a tree, kept until another one is requested."""
        known: tuple[Tree, _Groups] | None = problem.memo.get("groups")
        if known is None or known[0] is not tree:
            known = problem.memo["groups"] = tree, cls(tree, problem)
        return known[1]

    def __init__(self, tree: Tree, problem: Problem[NumericData]) -> None:
        leaf = problem.leaf_index(tree)
        # Numbers of 16 bits are sorted digit by digit.
        short = leaf.astype(np.uint16) if tree.n_leaves < 2**16 else leaf
        order = np.argsort(short, kind="stable")
        weight = problem.data.weight
        self.target = problem.data.target[order]
        self.weight = None if weight is None else weight[order]
        self.begin = np.concatenate([[0], np.bincount(leaf, minlength=tree.n_leaves).cumsum()])

    def rows(self, first: int, last: int) -> tuple[Floats, Floats | None]:
        """Targets and weights of the rows of some consecutive leaves."""
        rows = slice(self.begin[first], self.begin[last + 1])
        return self.target[rows], None if self.weight is None else self.weight[rows]

    def mean(self, leaf: int) -> float:
        """Weighted mean of the rows of a leaf."""
        own, weight = self.rows(leaf, leaf)
        if weight is None:
            return math.fsum(own.tolist()) / own.size
        share = _shares(weight)
        return product_sum(own, share) / float(share.sum())

    def variance(self, first: int, last: int) -> float:
        """Weighted variance of the rows of some consecutive leaves.

        Differences from one row are exact if targets are close to each other, however far from
        zero, and the remaining mean is subtracted from the mean square. This row is the heaviest,
        because others may weigh almost nothing in comparison. If the squares could overflow, both
        are in units of the largest difference.
        """
        own, weight = self.rows(first, last)
        differ = own - own[0 if weight is None else weight.argmax()]
        unit = math.frexp(max(float(differ.max()), -float(differ.min())))[1]
        if abs(unit) < _ORDINARY:
            unit = 0
        else:
            differ = np.ldexp(differ, -unit)
        if weight is None:
            left = differ - differ.sum() / own.size
            square, rest = left @ left / own.size, left.sum() / own.size
        else:
            share = _shares(weight)
            total = share.sum()
            left = differ - share @ differ / total
            square, rest = (share * left) @ left / total, share @ left / total
        return float(np.ldexp(max(float(square - rest**2), 0.0), 2 * unit))


def _shares(weight: Floats) -> Floats:
    """Weights scaled by a power of two so that the largest is about 1; nothing is rounded."""
    return np.asarray(np.ldexp(weight, -int(np.frexp(weight.max())[1])))
