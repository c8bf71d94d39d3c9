"""Likelihood loss of proportional hazards (Huisman, van der Linden, Demirović, AAAI-24, eq. 20)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bristlecone.data.checks import TrainingData
from bristlecone.errors import InvalidParameterError
from bristlecone.leaves.minimum import prior_events
from bristlecone.leaves.survival import LeafStatistics
from bristlecone.objectives.base import Objective

if TYPE_CHECKING:
    from bristlecone.estimators.survival import OptimalSurvivalTree

__all__ = ["Likelihood"]


class Likelihood(Objective):
    """One relative hazard θ per leaf, which is also its risk."""

    name = "likelihood"
    leaf_curves = ("proportional", "kaplan-meier")
    has_forecast = True
    auto_shrinkage = 0.0
    predicts_theta = True

    @staticmethod
    def check_parameters(tree: OptimalSurvivalTree) -> None:
        if tree.time_grid is not None:
            raise InvalidParameterError(
                "time_grid needs objective='brier': the likelihood is not an integral over time"
            )

    @staticmethod
    def prepare(tree: OptimalSurvivalTree, data: TrainingData) -> TrainingData:
        return data

    @staticmethod
    def engine_options(tree: OptimalSurvivalTree, data: TrainingData) -> dict[str, Any]:
        return {"entry": data.entry, "prior": tree._prior()}

    @staticmethod
    def fair_options(tree: OptimalSurvivalTree, data: TrainingData) -> dict[str, Any]:
        return {"entry": data.entry, "prior": tree._prior()}

    @staticmethod
    def prior(value: float | str) -> float:
        return prior_events(value)

    @staticmethod
    def finish_leaves(
        tree: OptimalSurvivalTree,
        leaves: tuple[LeafStatistics, ...],
        leaf: NDArray[np.int64],
        data: TrainingData,
    ) -> tuple[LeafStatistics, ...]:
        return leaves

    @staticmethod
    def aim(tree: OptimalSurvivalTree) -> str:
        return (
            "the least mean likelihood loss: saturated minus fitted log-likelihood of a "
            "proportional hazards model with one relative hazard per leaf and the Nelson–Aalen "
            "estimate of all training rows as its baseline (Huisman, van der Linden and "
            "Demirović, AAAI 2024, eq. 20; LeBlanc and Crowley, Biometrics 48, 1992)"
            + (
                f", with a prior of {tree.prior_:g} pseudo-events at the baseline hazard in every "
                "leaf (maximum a posteriori)"
                if tree.prior_
                else ""
            )
        )

    @staticmethod
    def leaf_risk(tree: OptimalSurvivalTree) -> NDArray[np.float64]:
        return tree._theta()
