"""Leaves of survival trees with yes-no questions: one step curve for all rows of a leaf."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone import curves
from bristlecone._data.outcomes import Survival
from bristlecone._data.texts import plain_number
from bristlecone._leaves.base import Columns, SurvivalLeaves, median_text, time_text
from bristlecone._leaves.shrinkage import LeafCurves, shrunk_curves, shrunk_means, step_functions
from bristlecone._leaves.statistics import (
    Baseline,
    LeafStatistics,
    SurvivalRows,
    with_best_curves,
)
from bristlecone._tree import Tree
from bristlecone._types import Floats, Integers
from bristlecone.curves import StepFunction


@dataclass(frozen=True, eq=False)
class StepLeaves(SurvivalLeaves):
    """Training rows of every leaf, and the step curve that is predicted for such rows.

    Every curve is right-continuous, 1 (hazard: 0) before the first event and constant after the
    last training time.

    Parameters
    ----------
    statistics : tuple of LeafStatistics
        Of the leaves' own rows.
    baseline : Baseline
        Of all training rows.
    curve : {"proportional", "kaplan-meier", "brier-optimal"}
        "proportional" is exp(−θΛ) with the baseline Λ, "kaplan-meier" the leaf's own Kaplan–Meier
        and Nelson–Aalen estimates, "brier-optimal" a curve fitted to the leaf.
    by_theta : bool
        Whether the risk of a leaf is θ; otherwise it is the cumulative hazard of its curve summed
        over the event times, as in scikit-survival.
    prior : float
        Pseudo-events of the prior on θ.
    shrinkage : float
        λ of the predictions.
    theta : array of float, shape (n_leaves,)
        θ as it is predicted, shrunk.
    shrunk : LeafCurves or None
        Shrunk step curves; None where nothing is shrunk but θ.
    """

    statistics: tuple[LeafStatistics, ...]
    baseline: Baseline
    curve: str
    by_theta: bool
    prior: float
    shrinkage: float
    theta: Floats
    shrunk: LeafCurves | None

    @classmethod
    def grown(
        cls,
        tree: Tree,
        leaf: Integers,
        rows: SurvivalRows,
        statistics: tuple[LeafStatistics, ...],
        *,
        curve: str,
        by_theta: bool,
        shrinkage: float,
    ) -> StepLeaves:
        """Leaves of a tree; ``leaf`` is the node id of the leaf of every training row."""
        if curve == "brier-optimal":
            statistics = with_best_curves(statistics, leaf, rows.data)
        shrunk = None
        if shrinkage > 0 and curve != "proportional":
            shrunk = shrunk_curves(curve, tree, leaf, rows.data, shrinkage)
        theta = predicted_theta(tree, statistics, shrinkage if by_theta else 0.0)
        return cls(statistics, rows.baseline, curve, by_theta, rows.prior, shrinkage, theta, shrunk)

    @property
    def typical(self) -> Integers:
        return np.arange(len(self.statistics))

    def survival_at(self, times: Floats) -> Floats:
        """S of every leaf at ``times``, shape (n_leaves, n_times)."""
        if self.shrunk is not None:
            return self.shrunk.survival_at(times)
        if self.curve == "proportional":
            return np.exp(-self.hazard_at(times))
        steps = [leaf.survival_steps(self.curve) for leaf in self.statistics]
        return np.stack([StepFunction(x, y, before=1.0)(times) for x, y in steps])

    def hazard_at(self, times: Floats) -> Floats:
        """H of every leaf at ``times``, shape (n_leaves, n_times)."""
        if self.shrunk is not None:
            return self.shrunk.cumulative_hazard_at(times)
        if self.curve == "proportional":
            baseline = StepFunction(
                self.baseline.unique_times, self.baseline.cumulative_hazard, before=0.0
            )
            return np.outer(self.theta, baseline(times))
        steps = [leaf.hazard_steps(self.curve) for leaf in self.statistics]
        return np.stack([StepFunction(x, y, before=0.0)(times) for x, y in steps])

    def risk(self, rows: Integers) -> Floats:
        return self._risks[rows]

    @cached_property
    def _risks(self) -> Floats:
        return self.theta if self.by_theta else self.hazard_at(self.event_times).sum(axis=1)

    def ranks(self, rows: Integers) -> Floats:
        return self.risk(rows)

    def survival(self, rows: Integers, times: Floats) -> Floats:
        return self.survival_at(times)[rows]

    def cumulative_hazard(self, rows: Integers, times: Floats) -> Floats:
        return self.hazard_at(times)[rows]

    def functions(self, rows: Integers, *, survival: bool) -> NDArray[np.object_]:
        times = self.unique_times
        values = self.survival_at(times) if survival else self.hazard_at(times)
        return step_functions(times, values, 1.0 if survival else 0.0)[rows]

    def quantiles(self, rows: Integers, levels: Floats) -> Floats:
        return np.stack([self.quantile(level)[rows] for level in levels.tolist()], axis=1)

    def quantile(self, level: float) -> Floats:
        """First time at which a share ``level`` has had the event, shape (n_leaves,)."""
        times = self.unique_times
        return np.asarray(curves.quantile(times, self.survival_at(times), level))

    def rmst(self, rows: Integers, tau: float) -> Floats:
        times = self.unique_times
        return np.asarray(curves.rmst(times, self.survival_at(times), tau))[rows]

    def log_likelihood(self, rows: Integers, outcomes: Survival) -> Floats:
        """δ + δ ln H − H per row, with H the hazard from its entry to its time.

        This is the fitted minus the saturated log-likelihood. For proportional curves H is θΛ,
        where Λ has the floor of the training rows; for others H has the floor.
        """
        event, time, entry = outcomes
        hazard = self._hazard_of(rows, time)
        if entry is not None:
            hazard = hazard - self._hazard_of(rows, entry)
        floor: Any = 1 / (sum(leaf.weight for leaf in self.statistics) + 1)
        if self.curve == "proportional":
            floor = self.theta[rows] * floor
        hazard = np.where(hazard > 0, hazard, floor)
        return np.asarray(event + event * np.log(hazard) - hazard)

    def _hazard_of(self, rows: Integers, times: Floats) -> Floats:
        """H of every row at its own time."""
        distinct, place = np.unique(times, return_inverse=True)
        return self.hazard_at(distinct)[rows, place]

    def facts(self) -> list[dict[str, Any]]:
        facts = super().facts()
        for fact, leaf, theta in zip(facts, self.statistics, self.theta.tolist(), strict=True):
            fact["theta"] = leaf.theta
            if self.shrinkage > 0 and self.by_theta:
                fact["shrunk_theta"] = theta
        return facts

    @cached_property
    def _is_weighted(self) -> bool:
        return any(leaf.weight != leaf.n_samples for leaf in self.statistics)

    def text(self, facts: Mapping[str, Any]) -> str:
        events = f"events={facts['n_events']}"
        if self._is_weighted:
            events += f" (weight {plain_number(facts['event_weight'], 6)})"
        theta = f"theta={facts['theta']:.4g}"
        if "shrunk_theta" in facts:
            theta += f" (shrunk {facts['shrunk_theta']:.4g})"
        text = f"{events}, {theta}, median={median_text(facts)}"
        if self.shrunk is not None:
            text += f", model median={time_text(facts['model_median'])}"
        return text

    def heading(self, column: str, time_label: str) -> str:
        if column == "risk" and self.by_theta:
            return "predicted θ"
        return super().heading(column, time_label)

    def own_columns(self) -> Columns:
        return [("theta", np.array([leaf.theta for leaf in self.statistics]))]


def predicted_theta(tree: Tree, statistics: tuple[LeafStatistics, ...], shrinkage: float) -> Floats:
    """Predicted θ of every leaf, pulled towards those of the nodes above it."""
    if shrinkage == 0:
        return np.array([leaf.theta for leaf in statistics])
    events = np.array([leaf.events for leaf in statistics])
    hazard = np.array([leaf.hazard for leaf in statistics])
    return shrunk_means(tree, events, hazard, shrinkage, above=1.0)
