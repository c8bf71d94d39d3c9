"""Likelihood loss of competing risks: one of proportional hazards per cause."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.outcomes import Survival, as_structured
from bristlecone._data.survival import TrainingData
from bristlecone._data.texts import counted
from bristlecone._leaves.causes import IncidenceLeaves
from bristlecone._leaves.statistics import SurvivalRows
from bristlecone._leaves.survival import StepLeaves
from bristlecone._objectives.base import TaskObjective
from bristlecone._objectives.likelihood import Likelihood
from bristlecone._search.engine import Problem, Task
from bristlecone._tree import Tree
from bristlecone._types import Floats


@dataclass(frozen=True, kw_only=True)
class CauseLikelihood(TaskObjective[TrainingData, IncidenceLeaves]):
    """Sum over the causes of their weight times their likelihood loss (docs/maths).

    Parameters
    ----------
    curve : {"aalen-johansen", "proportional"}
        Curves of a leaf.
    prior : float
        Pseudo-events of the prior on every θ.
    shrinkage : float
        λ of the predicted θ.
    cause_weights : tuple of float
        Weight of every cause; empty for 1 each.
    """

    curve: str
    prior: float
    shrinkage: float
    cause_weights: tuple[float, ...]

    def task(self, data: TrainingData) -> Task:
        of_causes = {"cause": data.cause, "cause_weights": self._weights(data)}
        return Task("competing-risks", {**data.outcomes, **of_causes, "prior": self.prior})

    def _weights(self, data: TrainingData) -> Floats:
        """Weights of the causes in the loss; a cause without an event adds nothing to it."""
        weights = np.array(self.cause_weights) if self.cause_weights else np.ones(data.n_causes)
        assert data.cause is not None
        return np.where(np.isin(np.arange(data.n_causes) + 1, data.cause), weights, 0.0)

    def target(self, data: TrainingData) -> NDArray[np.void]:
        return as_structured(Survival(data.event, data.time, data.entry))

    @property
    def _of_cause(self) -> Likelihood:
        """The loss of a single cause."""
        return Likelihood(curve="proportional", prior=self.prior, shrinkage=self.shrinkage)

    def leaves(self, tree: Tree, problem: Problem[TrainingData], solution: Any) -> IncidenceLeaves:
        data, leaf = problem.data, tree.leaves[problem.leaf_index(tree)]
        # Those of one problem are shared by all its trees, as of a size path.
        if "rows" not in problem.memo:
            causes = range(1, data.n_causes + 1)
            problem.memo["rows"] = [
                SurvivalRows(one, self.prior, problem.count)
                for one in (data, *(_alone(data, k) for k in causes))
            ]
        first, *others = problem.memo["rows"]

        def grown(rows: SurvivalRows, curve: str, shrinkage: float) -> StepLeaves:
            statistics = rows.statistics(tree, leaf)
            more: dict[str, Any] = {"curve": curve, "by_theta": True, "shrinkage": shrinkage}
            return StepLeaves.grown(tree, leaf, rows, statistics, **more)

        of_cause = tuple(grown(rows, "proportional", self.shrinkage) for rows in others)
        return IncidenceLeaves(grown(first, "kaplan-meier", 0.0), of_cause, self.curve)

    def losses(self, tree: Tree, problem: Problem[TrainingData], leaves: IncidenceLeaves) -> Floats:
        total = np.zeros(tree.node_count)
        for weight, alone, own in self._by_cause(problem, leaves):
            total += weight * self._of_cause.losses(tree, alone, own)
        return total

    def value(self, tree: Tree, problem: Problem[TrainingData], leaves: IncidenceLeaves) -> float:
        return sum(
            weight * self._of_cause.value(tree, alone, own)
            for weight, alone, own in self._by_cause(problem, leaves)
        )

    def _by_cause(
        self, problem: Problem[TrainingData], leaves: IncidenceLeaves
    ) -> Iterator[tuple[float, Problem[TrainingData], StepLeaves]]:
        """Weight, problem and leaves of every cause that counts."""
        weights = self._weights(problem.data).tolist()
        for k, (weight, own) in enumerate(zip(weights, leaves.of_cause, strict=True), start=1):
            if weight > 0:
                yield weight, replace(problem, data=_alone(problem.data, k)), own

    def aim(self, problem: Problem[TrainingData], leaves: IncidenceLeaves) -> str:
        summed = f"summed over {counted(leaves.n_causes, 'cause')}"
        if self.cause_weights:
            summed += f", with the weights {', '.join(f'{u:g}' for u in self.cause_weights)}"
        prior = ""
        if self.prior:
            prior = f", with a prior of {self.prior:g} pseudo-events per cause in every leaf"
        return (
            f"the least mean likelihood loss {summed}: saturated minus fitted log-likelihood of "
            "cause-specific proportional hazards, with one relative hazard per leaf and cause and "
            "the Nelson–Aalen estimate of the cause in all training rows as its baseline (Prentice "
            f"et al., Biometrics 34, 1978; LeBlanc and Crowley, Biometrics 48, 1992){prior}"
        )


def _alone(data: TrainingData, cause: int) -> TrainingData:
    """The rows with events of one cause, which those of other causes are censored by."""
    assert data.cause is not None
    return data._replace(event=np.equal(data.cause, cause))
