"""Integrated Brier score (Zhang, Xin, Seltzer, Rudin, "Optimal Sparse Survival Trees", 2024)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike

from bristlecone._data.survival import TrainingData
from bristlecone._leaves.brier import BrierScore, brier_score_of, check_time_grid, on_time_grid
from bristlecone._leaves.minimum import prior_events
from bristlecone._leaves.survival import StepLeaves
from bristlecone._objectives.survival import SurvivalObjective
from bristlecone._search.engine import Problem, Task
from bristlecone._tree import Tree
from bristlecone._types import Floats
from bristlecone.exceptions import InvalidParameterError

_AIMS = {
    "kaplan-meier": "the Kaplan–Meier curve of each leaf",
    "brier-optimal": "the curve of least score of each leaf",
}


@dataclass(frozen=True, kw_only=True)
class Brier(SurvivalObjective):
    """One survival curve per leaf, scored over time with weights for the censoring.

    Parameters
    ----------
    curve, prior, shrinkage
        As in SurvivalObjective; there is no prior.
    grid : array of float, shape (n_times,), or None
        Coarser times.
    """

    grid: Floats | None

    curves = ("kaplan-meier", "brier-optimal")
    by_theta = False
    auto_shrinkage = 20.0

    @classmethod
    def of(
        cls, *, leaf_curve: str, prior: Any, shrinkage: Any, time_grid: ArrayLike | None
    ) -> Brier:
        grid = check_time_grid(time_grid)
        if not isinstance(prior, str) and prior_events(prior) > 0:
            raise InvalidParameterError(
                f"prior={prior!r} needs objective='likelihood': it is a prior of the relative "
                "hazard, which leaves of objective='brier' do not have"
            )
        curve, amount = cls.curve_of(leaf_curve), cls.shrinkage_of(shrinkage)
        return cls(curve=curve, prior=0.0, shrinkage=amount, grid=grid)

    def prepare(self, data: TrainingData) -> TrainingData:
        if data.entry is not None:
            raise ValueError(
                "y has an 'entry': objective='brier' does not support delayed entry, because its "
                "weights 1/G are valid only for rows observed from time 0; use "
                "objective='likelihood'"
            )
        if self.grid is not None:
            time, event = on_time_grid(data.time, data.event, self.grid)
            data = data._replace(time=time, event=event)
        if not data.time.max() > 0:
            raise ValueError(
                "y has no time after 0, and objective='brier' is a mean over time up to the last "
                "one"
            )
        return data

    def task(self, data: TrainingData) -> Task:
        return Task("brier", {**data.outcomes, "leaf_curve": self.curve})

    def fair_task(self, data: TrainingData) -> Task:
        return Task("fair-brier", data.outcomes)

    def task_of(self, problem: Problem[TrainingData]) -> Task:
        name, arrays = self.task(problem.data)
        return Task(name, {**arrays, "reference_loss": problem.reference_loss})

    def losses(self, tree: Tree, problem: Problem[TrainingData], leaves: StepLeaves) -> Floats:
        data = problem.data
        # One for all trees of the problem, as of a size path.
        if "score" not in problem.memo:
            problem.memo["score"] = brier_score_of(data.time, data.event, data.weight)
        score: BrierScore = problem.memo["score"]
        rows = tree.leaves[problem.leaf_index(tree)], data.time, data.event, data.weight
        return score.node_losses(tree, *rows, self.curve) / tree.weighted_n_node_samples[0]

    def aim(self, problem: Problem[TrainingData], leaves: StepLeaves) -> str:
        times = "all times up to the last" if self.grid is None else "the time grid"
        return (
            f"the least integrated Brier score of {_AIMS[self.curve]} over {times}, weighted "
            "by the inverse probability of censoring (Zhang, Xin, Seltzer and Rudin, AISTATS 2024, "
            "eqs. 1–2)"
        )

    def remarks(self) -> tuple[tuple[str, str], ...]:
        loss, grid = "integrated Brier score", self.grid
        if grid is None:
            return (("loss", loss),)
        loss += f" over a time grid of {grid.size} ({grid[0]:g} to {grid[-1]:g})"
        rounded = f"times are rounded up to it, and rows beyond {grid[-1]:g} are censored there"
        return ("loss", loss), ("time grid", rounded)
