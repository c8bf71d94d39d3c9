"""Base of the objectives of survival trees."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._data.outcomes import Survival, as_structured
from bristlecone._data.survival import TrainingData
from bristlecone._leaves.statistics import SurvivalRows
from bristlecone._leaves.survival import StepLeaves
from bristlecone._objectives.base import TaskObjective
from bristlecone._search.engine import Problem, Task
from bristlecone._tree import Tree


@dataclass(frozen=True, kw_only=True)
class SurvivalObjective(TaskObjective[TrainingData, StepLeaves]):
    """Loss of survival trees.

    Parameters
    ----------
    curve : str
        Curve of a leaf.
    prior : float
        Pseudo-events of the prior on θ.
    shrinkage : float
        λ of the predictions.
    """

    curve: str
    prior: float
    shrinkage: float

    # Values of the parameter leaf_curve in addition to "auto", which means the first of them.
    curves: ClassVar[tuple[str, ...]]
    # Whether the risk of a leaf is θ, and predictions follow from it.
    by_theta: ClassVar[bool]
    # Value of shrinkage="auto": pseudo-events, or pseudo-rows for step curves.
    auto_shrinkage: ClassVar[float]

    @classmethod
    @abstractmethod
    def of(
        cls, *, leaf_curve: str, prior: Any, shrinkage: Any, time_grid: ArrayLike | None
    ) -> SurvivalObjective:
        """Objective for parameters of an estimator, checked one by one.

        Raises
        ------
        InvalidParameterError
            For parameters that do not go with the objective.
        """

    @classmethod
    def curve_of(cls, leaf_curve: str) -> str:
        """Curve for a value of the parameter ``leaf_curve``."""
        return cls.curves[0] if leaf_curve == "auto" else leaf_curve

    @classmethod
    def shrinkage_of(cls, shrinkage: Any) -> float:
        """λ for a value of the parameter ``shrinkage``."""
        return cls.auto_shrinkage if isinstance(shrinkage, str) else float(shrinkage)

    def prepare(self, data: TrainingData) -> TrainingData:
        """Training rows of the objective; ValueError for outcomes that it cannot score."""
        return data

    def target(self, data: TrainingData) -> NDArray[np.void]:
        return as_structured(Survival(data.event, data.time, data.entry))

    @abstractmethod
    def fair_task(self, data: TrainingData) -> Task:
        """Task of the engine's fair trees, without the limit."""

    def leaves(self, tree: Tree, problem: Problem[TrainingData], solution: Any) -> StepLeaves:
        # One for all trees of the problem, as of a size path.
        if "rows" not in problem.memo:
            problem.memo["rows"] = SurvivalRows(problem.data, self.prior, problem.count)
        rows: SurvivalRows = problem.memo["rows"]
        leaf = tree.leaves[problem.leaf_index(tree)]
        return StepLeaves.grown(
            tree,
            leaf,
            rows,
            rows.statistics(tree, leaf),
            curve=self.curve,
            by_theta=self.by_theta,
            shrinkage=self.shrinkage,
        )
