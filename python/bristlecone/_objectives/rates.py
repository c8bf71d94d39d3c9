"""Poisson deviance of counts, with a rate per leaf."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import xlogy

from bristlecone._data.targets import NumericData
from bristlecone._leaves.means import MeanLeaves
from bristlecone._leaves.rates import RateLeaves
from bristlecone._objectives.means import SquaredError, described
from bristlecone._search.engine import Problem, Task
from bristlecone._teacher.outcomes import Rates
from bristlecone._tree import Tree
from bristlecone._types import Floats, Integers


@dataclass(frozen=True, kw_only=True)
class PoissonDeviance(SquaredError):
    """Half the mean Poisson deviance of counts given exposure.

    A leaf of counts y and exposures m has the rate Y/M, the sum of the counts over that of the
    exposures. This is the mean of the rates y/m with weights m, and that is how leaves describe it.
    """

    def target(self, data: NumericData) -> Floats:
        rates: Floats = data.rates
        return rates

    def outcomes(self, data: NumericData) -> Rates:
        return Rates(data.weight, data.target, _exposure(data.exposure, len(data.target)))

    def task(self, data: NumericData) -> Task:
        counts = {"target": data.sought.target, "exposure": data.exposure}
        return Task("poisson", {**counts, "weight": data.weight})

    def leaves(self, tree: Tree, problem: Problem[NumericData], solution: Any) -> RateLeaves:
        data, leaf = problem.data, problem.leaf_index(tree)
        rates = data._replace(target=data.rates, weight=data.rate_weight)
        mean, variance, quantiles = described(tree, replace(problem, data=rates))
        size, predicted = None, mean
        if self.shrinkage > 0:
            # The counts that the rate of all rows predicts do not depend on the unit of exposure.
            overall = np.average(rates.target, weights=rates.weight)
            size = _summed(_exposure(data.rate_weight, len(leaf)), leaf, tree) * overall
            predicted = MeanLeaves.shrunk(tree, mean, self.shrinkage, size)
        rows = np.ones(len(leaf)) if problem.count is None else problem.count
        return RateLeaves(
            mean,
            variance,
            quantiles,
            self.shrinkage,
            predicted,
            count=_summed(rows * data.target, leaf, tree),
            exposure=_summed(rows * _exposure(data.exposure, len(leaf)), leaf, tree),
            size=size,
        )

    def losses(self, tree: Tree, problem: Problem[NumericData], leaves: MeanLeaves) -> Floats:
        """−Y ln(Y/M) of every node; Σ y ln(y/m) is the same sum over rows in any tree."""
        counts, exposure, _ = self._sums(tree, problem)
        rate = tree.node_sums(counts) / tree.node_sums(exposure)
        return -xlogy(tree.node_sums(counts), rate) / tree.weighted_n_node_samples[0]

    def value(self, tree: Tree, problem: Problem[NumericData], leaves: MeanLeaves) -> float:
        counts, exposure, saturated = self._sums(tree, problem)
        # Both are large compared with their difference if the leaves explain much; fsum rounds
        # once.
        fitted = xlogy(counts, counts / exposure)
        loss = math.fsum([*saturated.tolist(), *(-fitted).tolist()])
        return loss / float(tree.weighted_n_node_samples[0])

    @staticmethod
    def _sums(tree: Tree, problem: Problem[NumericData]) -> tuple[Floats, Floats, Floats]:
        """Counts and exposure of every leaf, and y ln(y/m) of every row, all weighted."""
        data, leaf = problem.data.sought, problem.leaf_index(tree)
        counts = data.target if data.weight is None else data.weight * data.target
        exposure = _exposure(data.rate_weight, len(leaf))
        of_leaves = (_summed(values, leaf, tree) for values in (counts, exposure))
        return *of_leaves, xlogy(counts, data.rates)

    def aim(self, problem: Problem[NumericData], leaves: MeanLeaves) -> str:
        return "half the least mean Poisson deviance, with one rate per leaf"


def _exposure(values: Floats | None, n_rows: int) -> Floats:
    """Exposures of the rows: 1 each if none are given."""
    return np.ones(n_rows) if values is None else values


def _summed(values: Floats, leaf: Integers, tree: Tree) -> Floats:
    """Sum over the rows of every leaf."""
    return np.bincount(leaf, values, tree.n_leaves).astype(np.float64)
