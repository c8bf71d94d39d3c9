"""Likelihood loss of proportional hazards (Huisman, van der Linden, Demirović, AAAI-24, eq. 20)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import xlogy

from bristlecone._data.survival import TrainingData
from bristlecone._leaves.minimum import prior_events
from bristlecone._leaves.statistics import baseline_hazard, row_hazard
from bristlecone._leaves.survival import StepLeaves
from bristlecone._objectives.survival import SurvivalObjective
from bristlecone._search.engine import Problem, Task
from bristlecone._teacher.outcomes import Survivals
from bristlecone._tree import Tree
from bristlecone._types import Floats
from bristlecone.exceptions import InvalidParameterError


@dataclass(frozen=True, kw_only=True)
class Likelihood(SurvivalObjective):
    """One relative hazard θ per leaf, which is also its risk."""

    curves = ("proportional", "kaplan-meier")
    by_theta = True
    auto_shrinkage = 0.0

    @classmethod
    def of(
        cls, *, leaf_curve: str, prior: Any, shrinkage: Any, time_grid: ArrayLike | None
    ) -> Likelihood:
        if time_grid is not None:
            raise InvalidParameterError(
                "time_grid needs objective='brier': the likelihood is not an integral over time"
            )
        return cls(
            curve=cls.curve_of(leaf_curve),
            prior=prior_events(prior),
            shrinkage=cls.shrinkage_of(shrinkage),
        )

    def task(self, data: TrainingData) -> Task:
        more = {"smoothed": data.smoothed, "prior": self.prior}
        return Task("likelihood", {**data.outcomes, **more})

    def fair_task(self, data: TrainingData) -> Task:
        return Task("fair-likelihood", self.task(data).data)

    def outcomes(self, data: TrainingData) -> Survivals:
        hazard = row_hazard(data, baseline_hazard(data))
        return Survivals(data.weight, data.event.astype(np.float64), hazard, self.target(data))

    def losses(self, tree: Tree, problem: Problem[TrainingData], leaves: StepLeaves) -> Floats:
        """−(E + a) ln θ; the other terms of the loss are the same sum over rows in any tree."""
        events, hazard = (tree.node_sums(sums) for sums in self._sums(tree, problem, leaves))
        return self._fit(events, hazard) / tree.weighted_n_node_samples[0]

    @staticmethod
    def _sums(
        tree: Tree, problem: Problem[TrainingData], leaves: StepLeaves
    ) -> tuple[Floats, Floats]:
        """Events, smoothed or not, and hazard of every leaf."""
        one, data = leaves.statistics, problem.data
        hazard = np.array([leaf.hazard for leaf in one])
        if data.smoothed is None:
            return np.array([leaf.events for leaf in one]), hazard
        events = data.smoothed if data.weight is None else data.weight * data.smoothed
        summed = np.bincount(problem.leaf_index(tree), events, tree.n_leaves)
        return summed.astype(np.float64), hazard

    def _fit(self, events: Floats, hazard: Floats) -> Floats:
        """−(E + a) ln θ, accurate even if the prior is large compared with the sums."""
        counted, expected = events + self.prior, hazard + self.prior
        theta = np.divide(counted, expected, out=np.ones_like(counted), where=counted > 0)
        # Next to a large prior, both sums have lost the last digits of θ, but not their difference.
        excess = np.zeros_like(counted)
        exact = (theta > 0.5) & (counted > 0)
        np.divide(events - hazard, expected, out=excess, where=exact)
        return -counted * np.where(exact, np.log1p(excess), np.log(theta))

    def value(self, tree: Tree, problem: Problem[TrainingData], leaves: StepLeaves) -> float:
        data = problem.data
        hazard = row_hazard(data, leaves.baseline)
        if data.smoothed is None:
            saturated = -np.log(hazard[data.event])
            weight = None if data.weight is None else data.weight[data.event]
        else:
            saturated, weight = xlogy(data.smoothed, data.smoothed / hazard), data.weight
        if weight is not None:
            saturated = weight * saturated
        fitted = self._fit(*self._sums(tree, problem, leaves))
        # Both are large compared with their difference if the leaves explain much; fsum rounds
        # once.
        loss = math.fsum([*fitted.tolist(), *saturated.tolist()])
        return loss / float(tree.weighted_n_node_samples[0])

    def aim(self, problem: Problem[TrainingData], leaves: StepLeaves) -> str:
        return (
            "the least mean likelihood loss: saturated minus fitted log-likelihood of a "
            "proportional hazards model with one relative hazard per leaf and the Nelson–Aalen "
            "estimate of all training rows as its baseline (Huisman, van der Linden and "
            "Demirović, AAAI 2024, eq. 20; LeBlanc and Crowley, Biometrics 48, 1992)"
            + (
                f", with a prior of {self.prior:g} pseudo-events at the baseline hazard in every "
                "leaf (maximum a posteriori)"
                if self.prior
                else ""
            )
        )
