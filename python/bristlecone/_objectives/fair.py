"""Objectives under a limit on the difference between two groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.survival import TrainingData
from bristlecone._data.targets import GroupedData
from bristlecone._encoder.cuts import Cut, RankedColumns
from bristlecone._leaves.labels import ClassLeaves
from bristlecone._leaves.survival import StepLeaves
from bristlecone._objectives.base import Objective
from bristlecone._objectives.labels import AIMS, ClassObjective
from bristlecone._objectives.survival import SurvivalObjective
from bristlecone._search.certificate import GroupValues
from bristlecone._search.cuts import Growth
from bristlecone._search.engine import Engine, Problem, Task, engine_of
from bristlecone._tree import Tree
from bristlecone.curves import rmst

PARITY, EQUAL_OPPORTUNITY = "demographic-parity", "equality-of-opportunity"

_COMPARED = {PARITY: "the rows", EQUAL_OPPORTUNITY: "the rows of the positive class"}


@dataclass(frozen=True, kw_only=True)
class FairLabels(ClassObjective[GroupedData]):
    """Misclassified share of two classes, where two groups are predicted positive alike.

    Parameters
    ----------
    shrinkage : float
        As in ClassObjective.
    constraint : {"demographic-parity", "equality-of-opportunity"}
        Whose shares are compared: of all rows, or of those of the positive class.
    limit : float
        Largest difference of the shares.
    """

    constraint: str
    limit: float

    @property
    def chooses_labels(self) -> bool:
        return True

    def engine(self, problem: Problem[GroupedData]) -> Engine:
        data = problem.data
        arrays = {"labels": data.labels, "weight": data.weight, "group": data.group}
        task = Task(self.constraint, {**arrays, "delta": float(self.limit)})
        return engine_of(task, problem.features)

    def groups(self, tree: Tree, problem: Problem[GroupedData], leaves: ClassLeaves) -> GroupValues:
        data = problem.data
        predicted = leaves.label[problem.leaf_index(tree)]
        compared = np.ones(len(predicted), dtype=bool)
        if self.constraint == EQUAL_OPPORTUNITY:
            compared = data.labels == 1
        rates = []
        for side in (0, 1):
            rows = compared & (data.group == side)
            weight = None if data.weight is None else data.weight[rows]
            rates.append(np.average(predicted[rows], weights=weight))
        return GroupValues(data.groups, np.array(rates))

    def aim(self, problem: Problem[GroupedData], leaves: ClassLeaves) -> str:
        one, other = problem.data.groups.tolist()
        return (
            f"{AIMS['accuracy']}, among trees for which the shares of {_COMPARED[self.constraint]} "
            f"of {one} and of {other} that are predicted to be positive differ by at most "
            f"{self.limit:g} (van der Linden, de Weerdt and Demirović, NeurIPS 2023)"
        )


@dataclass(frozen=True, kw_only=True)
class FairSurvival(Objective[TrainingData, StepLeaves]):
    """A survival objective, where two groups' mean restricted survival times differ little.

    Parameters
    ----------
    inner : SurvivalObjective
        What is minimised.
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

    def _end(self, time: NDArray[np.float64]) -> float:
        return float(time.max() if self.tau is None else self.tau)

    def leaves(self, tree: Tree, problem: Problem[TrainingData], solution: Any) -> StepLeaves:
        return self.inner.leaves(tree, problem, solution)

    def losses(
        self, tree: Tree, problem: Problem[TrainingData], leaves: StepLeaves
    ) -> NDArray[np.float64] | None:
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
        # Shares first: products of times and weights may be out of range.
        means = np.bincount(data.group, weights=weight / total[data.group] * of_row)
        return GroupValues(data.groups, means.astype(np.float64))

    def aim(self, problem: Problem[TrainingData], leaves: StepLeaves) -> str:
        assert problem.data.groups is not None
        one, other = problem.data.groups.tolist()
        end = "the last time" if self.tau is None else f"{self.tau:g}"
        return (
            f"{self.inner.aim(problem, leaves)}, among trees for which the mean restricted "
            f"survival time up to {end} that is predicted for {one} and for {other} differs by at "
            f"most {self.limit:g}"
        )

    def remarks(self) -> tuple[tuple[str, str], ...]:
        return self.inner.remarks()
