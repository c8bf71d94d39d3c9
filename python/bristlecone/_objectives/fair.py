"""Objectives under a limit on the differences between groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.groups import (
    EQUAL_ODDS,
    EQUAL_OPPORTUNITY,
    PARITY,
    group_confusion,
    group_rates,
)
from bristlecone._data.survival import TrainingData
from bristlecone._data.targets import GroupedData
from bristlecone._encoder.cuts import Cut
from bristlecone._encoder.ranks import RankedColumns
from bristlecone._leaves.labels import ClassLeaves
from bristlecone._leaves.survival import StepLeaves
from bristlecone._objectives.base import Objective
from bristlecone._objectives.labels import (
    AIMS,
    ClassObjective,
    misclassified,
    sums_of_others,
)
from bristlecone._objectives.survival import SurvivalObjective
from bristlecone._search.certificate import GroupValues
from bristlecone._search.cuts import Growth
from bristlecone._search.engine import Engine, Problem, Task, engine_of
from bristlecone._tree import Tree
from bristlecone._types import Floats
from bristlecone.curves import rmst

_ROWS = {
    PARITY: "the rows",
    EQUAL_OPPORTUNITY: "the rows of the positive class",
    EQUAL_ODDS: "the rows of either class",
}


@dataclass(frozen=True, kw_only=True)
class FairLabels(ClassObjective[GroupedData]):
    """Misclassified share of two classes, with a limit on the difference of groups' rates.

    Parameters
    ----------
    shrinkage : float
        As in ClassObjective.
    constraint : {"demographic-parity", "equality-of-opportunity", "equalized-odds"}
        Rows whose shares are compared: all rows, those of the positive class, or those of each
        class.
    limit : float
        Largest difference of the shares between any two groups.
    """

    constraint: str
    limit: float

    @property
    def chooses_labels(self) -> bool:
        return True

    def task_of(self, problem: Problem[GroupedData]) -> Task:
        data = problem.data
        arrays = {"labels": data.labels, "weight": data.weight, "group": data.group}
        if data.group_weight is not None:
            arrays["group_weight"] = data.group_weight
        return Task(self.constraint, {**arrays, "delta": float(self.limit)})

    def value(self, tree: Tree, problem: Problem[GroupedData], leaves: ClassLeaves) -> float:
        return misclassified(leaves)

    def losses(self, tree: Tree, problem: Problem[GroupedData], leaves: ClassLeaves) -> Floats:
        values = tree.node_sums(leaves.values)
        return sums_of_others(values).min(axis=1) / values[0].sum()

    def groups(self, tree: Tree, problem: Problem[GroupedData], leaves: ClassLeaves) -> GroupValues:
        data, predicted = problem.data, leaves.label[problem.leaf_index(tree)]
        weight = data.weight if data.group_weight is None else data.group_weight
        confusion = group_confusion(data.group, data.labels, predicted, weight, len(data.groups))
        return GroupValues(data.groups, group_rates(self.constraint, confusion), confusion)

    def aim(self, problem: Problem[GroupedData], leaves: ClassLeaves) -> str:
        *others, last = map(str, problem.data.groups.tolist())
        groups = f"{', '.join(others)} and {'of ' if len(others) == 1 else ''}{last}"
        any_two = "" if len(others) == 1 else " between any two of them"
        errors = AIMS["accuracy"]
        if problem.data.group_weight is not None:
            errors += ", where the weight of each row is multiplied by that of its class"
        return (
            f"{errors}, among trees for which the shares of {_ROWS[self.constraint]} "
            f"of {groups} that are predicted to be positive differ by at most "
            f"{self.limit:g}{any_two} (van der Linden, de Weerdt and Demirović, NeurIPS 2023)"
        )


@dataclass(frozen=True, kw_only=True)
class FairSurvival(Objective[TrainingData, StepLeaves]):
    """A survival objective with a limit on the difference of two groups' restricted means.

    Parameters
    ----------
    inner : SurvivalObjective
        The objective to minimise.
    limit : float
        Largest difference, in the unit of time.
    tau : float or None
        End of the restricted mean; None is the last training time.
    """

    inner: SurvivalObjective
    limit: float
    tau: float | None

    def engine(self, problem: Problem[TrainingData]) -> Engine:
        data = problem.data
        name, arrays = self.inner.fair_task(data)
        limits = {"group": data.group, "delta": float(self.limit), "tau": self._end(data.time)}
        return engine_of(Task(name, {**arrays, **limits}), problem.features)

    def target(self, data: TrainingData) -> NDArray[np.void]:
        return self.inner.target(data)

    def cuts(self, data: TrainingData, columns: RankedColumns, growth: Growth) -> list[Cut]:
        return self.inner.cuts(data, columns, growth)

    def _end(self, time: Floats) -> float:
        return float(time.max() if self.tau is None else self.tau)

    def leaves(self, tree: Tree, problem: Problem[TrainingData], solution: Any) -> StepLeaves:
        return self.inner.leaves(tree, problem, solution)

    def losses(
        self, tree: Tree, problem: Problem[TrainingData], leaves: StepLeaves
    ) -> Floats | None:
        return self.inner.losses(tree, problem, leaves)

    def value(self, tree: Tree, problem: Problem[TrainingData], leaves: StepLeaves) -> float:
        return self.inner.value(tree, problem, leaves)

    def groups(self, tree: Tree, problem: Problem[TrainingData], leaves: StepLeaves) -> GroupValues:
        data = problem.data
        assert data.group is not None and data.groups is not None
        leaf = problem.leaf_index(tree)
        times = leaves.unique_times
        of_row = np.asarray(rmst(times, leaves.survival_at(times), self._end(data.time)))[leaf]
        weight = np.ones(len(of_row)) if data.weight is None else data.weight
        total = np.bincount(data.group, weights=weight)
        # Shares first, because products of times and weights may be out of range.
        means = np.bincount(data.group, weights=weight / total[data.group] * of_row)
        return GroupValues(data.groups, means.astype(np.float64))

    def aim(self, problem: Problem[TrainingData], leaves: StepLeaves) -> str:
        assert problem.data.groups is not None
        one, other = problem.data.groups.tolist()
        end = "the last time" if self.tau is None else f"{self.tau:g}"
        return (
            f"{self.inner.aim(problem, leaves)}, among trees for which the average restricted mean "
            f"survival time up to {end} that is predicted for {one} and for {other} differs by at "
            f"most {self.limit:g}"
        )

    def remarks(self) -> tuple[tuple[str, str], ...]:
        return self.inner.remarks()
