"""Integrated Brier score (Zhang, Xin, Seltzer, Rudin, "Optimal Sparse Survival Trees", 2024)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bristlecone.data.checks import TrainingData
from bristlecone.errors import InvalidParameterError
from bristlecone.leaves.brier import brier_score_of, check_time_grid, on_time_grid
from bristlecone.leaves.minimum import prior_events
from bristlecone.leaves.survival import LeafStatistics
from bristlecone.objectives.base import Objective

if TYPE_CHECKING:
    from bristlecone.estimators.survival import OptimalSurvivalTree

__all__ = ["Brier"]


class Brier(Objective):
    """One survival curve per leaf, scored over time with weights for the censoring."""

    name = "brier"
    leaf_curves = ("kaplan-meier", "brier-optimal")
    # What a search takes is what its bounds leave, which only the search finds out.
    has_forecast = False
    auto_shrinkage = 20.0
    predicts_theta = False

    @staticmethod
    def check_parameters(tree: OptimalSurvivalTree) -> None:
        check_time_grid(tree.time_grid)
        if prior_events(tree.prior) > 0 and not isinstance(tree.prior, str):
            raise InvalidParameterError(
                f"prior={tree.prior!r} needs objective='likelihood': it is on a relative hazard, "
                "and leaves of objective='brier' have none"
            )

    @staticmethod
    def prepare(tree: OptimalSurvivalTree, data: TrainingData) -> TrainingData:
        if data.entry is not None:
            raise ValueError(
                "y has an 'entry': objective='brier' has no delayed entry, because its weights 1/G "
                "hold only for rows observed from time 0 on; objective='likelihood' has it"
            )
        grid = check_time_grid(tree.time_grid)
        if grid is not None:
            time, event = on_time_grid(data.time, data.event, grid)
            data = data._replace(time=time, event=event)
        if not data.time.max() > 0:
            raise ValueError(
                "y has no time after 0: objective='brier' is a mean over the times up to the last"
            )
        return data

    @staticmethod
    def engine_options(tree: OptimalSurvivalTree, data: TrainingData) -> dict[str, Any]:
        return {"leaf_curve": tree._curve()}

    @staticmethod
    def fair_options(tree: OptimalSurvivalTree, data: TrainingData) -> dict[str, Any]:
        return {"curve": "kaplan-meier"}

    @staticmethod
    def prior(value: float | str) -> float:
        return 0.0

    @staticmethod
    def finish_leaves(
        tree: OptimalSurvivalTree,
        leaves: tuple[LeafStatistics, ...],
        leaf: NDArray[np.int64],
        data: TrainingData,
    ) -> tuple[LeafStatistics, ...]:
        if tree._curve() != "brier-optimal":
            return leaves
        score = brier_score_of(data.time, data.event, data.weight)
        finished = []
        for one in leaves:
            rows = np.flatnonzero(leaf == one.node)
            weight = None if data.weight is None else data.weight[rows]
            times, survival = score.best_curve(data.time[rows], data.event[rows], weight)
            finished.append(replace(one, brier_times=times, brier_survival=survival))
        return tuple(finished)

    @staticmethod
    def aim(tree: OptimalSurvivalTree) -> str:
        curve = {
            "kaplan-meier": "the Kaplan–Meier curve of each leaf",
            "brier-optimal": "the curve of least score of each leaf",
        }[tree.leaf_curve_]
        return (
            f"the least integrated Brier score of {curve} over all times up to the last, weighted "
            "by the inverse probability of censoring (Zhang, Xin, Seltzer and Rudin, AISTATS 2024, "
            "eqs. 1–2)"
        )

    @staticmethod
    def leaf_risk(tree: OptimalSurvivalTree) -> NDArray[np.float64]:
        return tree._leaf_hazard(tree.event_times_).sum(axis=1)

    @staticmethod
    def remarks(tree: OptimalSurvivalTree) -> list[tuple[str, str]]:
        loss = "integrated Brier score"
        grid = check_time_grid(tree._fitted_parameters()["time_grid"])
        if grid is not None:
            loss += f" over a time grid of {grid.size} ({grid[0]:g} to {grid[-1]:g})"
        return [("loss", loss)]
