"""Costs of labels: of errors, and of the questions asked on the path."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.targets import CostlyData
from bristlecone._encoder.cuts import Cut
from bristlecone._encoder.ranks import RankedColumns
from bristlecone._leaves.labels import ClassLeaves, sum_by_leaf
from bristlecone._objectives.labels import ClassObjective
from bristlecone._objectives.prices import Prices, binary_prices, column_prices, path_prices
from bristlecone._search.cuts import Growth, cuts_of_task
from bristlecone._search.engine import Problem, Task
from bristlecone._teacher.outcomes import Costs
from bristlecone._tree import Tree
from bristlecone._types import Floats, Integers


@dataclass(frozen=True, kw_only=True)
class LabelCosts(ClassObjective[CostlyData]):
    """Mean cost of the assigned labels and of the questions asked.

    Parameters
    ----------
    shrinkage : float
        As in ClassObjective.
    feature_costs : mapping, sequence or None
        Prices of the questions, as the user gives them; None means that they are free.
    """

    feature_costs: Any = None

    def target(self, data: CostlyData) -> Floats:
        return data.costs

    def outcomes(self, data: CostlyData) -> Costs:
        return Costs(data.weight, data.costs)

    def task(self, data: CostlyData, prices: Prices | None = None) -> Task:
        costs = {"costs": np.ascontiguousarray(_sought(data)), "weight": data.weight}
        if prices is None:
            return Task("label-costs", costs)
        own = {f"feature_{name}": array for name, array in prices._asdict().items()}
        return Task("priced-costs", {**costs, **own})

    def task_of(self, problem: Problem[CostlyData]) -> Task:
        return self.task(problem.data, self._prices(problem))

    def _prices(self, problem: Problem[CostlyData]) -> Prices | None:
        # One for all trees of the problem, as of a size path.
        if "prices" not in problem.memo:
            problem.memo["prices"] = binary_prices(problem.encoder, self.feature_costs)
        prices: Prices | None = problem.memo["prices"]
        return prices

    def cuts(self, data: CostlyData, columns: RankedColumns, growth: Growth) -> list[Cut]:
        prices = None
        if self.feature_costs is not None:
            whole = column_prices(columns.columns, self.feature_costs)
            prices = whole.of(np.array(columns.places))
        return cuts_of_task(*self.task(data, prices), columns, growth)

    def best_labels(self, leaf: Integers, values: Floats, data: CostlyData) -> NDArray[Any]:
        return _shares(leaf, len(values), data.costs, data.weight).argmin(axis=1)

    def prices(self, tree: Tree, problem: Problem[CostlyData]) -> Floats:
        return path_prices(tree, self._prices(problem))

    def losses(self, tree: Tree, problem: Problem[CostlyData], leaves: ClassLeaves) -> Floats:
        data, leaf = problem.data, problem.leaf_index(tree)
        costs = tree.node_sums(_shares(leaf, tree.n_leaves, _sought(data), data.weight))
        means: Floats = costs.min(axis=1) / _unit_total(data.weight, len(leaf))[1]
        return means

    def favoured(self, tree: Tree, problem: Problem[CostlyData], leaves: ClassLeaves) -> Integers:
        data, leaf = problem.data, problem.leaf_index(tree)
        return _shares(leaf, tree.n_leaves, _sought(data), data.weight).argmin(axis=1)

    def value(self, tree: Tree, problem: Problem[CostlyData], leaves: ClassLeaves) -> float:
        weight = tree.weighted_n_node_samples[tree.leaves]
        asked = float(np.average(leaves.prices, weights=weight))
        return super().value(tree, problem, leaves) + asked

    def aim(self, problem: Problem[CostlyData], leaves: ClassLeaves) -> str:
        prices = self._prices(problem)
        priced = prices is not None and prices.cost.any()
        asked = ", including the costs of the features used" if priced else ""
        return (
            f"the least mean cost of the predicted labels{asked} (van der Linden, de Weerdt and "
            "Demirović, NeurIPS 2023)"
        )


def _sought(data: CostlyData) -> Floats:
    """Costs that the search uses."""
    costs: Floats = data.costs if data.smoothed is None else data.smoothed
    return costs


def _unit_total(weight: NDArray[Any] | None, n_rows: int) -> tuple[int, float]:
    """Exponent of a power of two, and the total weight divided by it, between 0.5 and 1."""
    total, exponent = np.frexp(n_rows if weight is None else weight.sum())
    return int(exponent), float(total)


def _shares(leaf: Integers, n_leaves: int, costs: Floats, weight: Any) -> Floats:
    """Costs of the labels in every leaf, divided by a power of two, because sums may overflow."""
    exponent, _ = _unit_total(weight, len(leaf))
    weight = np.ones(len(leaf)) if weight is None else weight
    return sum_by_leaf(leaf, n_leaves, costs, np.ldexp(weight, -exponent))
