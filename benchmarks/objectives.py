"""Objectives, written again and plainly, to score every library's tree in the same run.

Nothing here calls the engine: a benchmark that trusted the program it measures would check nothing.
An objective takes the problem and what a library found, and returns the mean loss. Studies
give penalties in the unit of the paper that has the objective; `own_penalty` converts.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks import fair_survival, label_objectives
from benchmarks.adapters import Outcome
from benchmarks.problems import Problem

Objective = Callable[[Problem, Outcome], float]


def likelihood(problem: Problem, leaves: np.ndarray) -> float:
    """Return the proportional-hazards loss of LeBlanc & Crowley (1992), per row.

    Huisman et al. (AAAI-24), eq. 20; a leaf without events costs nothing.
    """
    event, time = problem.target["event"], problem.target["time"]
    hazard = baseline_hazard(event, time)
    _, leaf = np.unique(leaves, return_inverse=True)
    events = np.bincount(leaf, weights=event)
    hazards = np.bincount(leaf, weights=hazard)
    some = events > 0
    fitted = np.sum(events[some] * np.log(events[some] / hazards[some]))
    return float((-np.sum(np.log(hazard[event])) - fitted) / len(time))


def baseline_hazard(event: np.ndarray, time: np.ndarray) -> np.ndarray:
    """Return each row's Nelson-Aalen cumulative hazard, 1 / (n + 1) before the first event."""
    _, position, count = np.unique(time, return_inverse=True, return_counts=True)
    at_risk = np.cumsum(count[::-1])[::-1]
    hazard = np.cumsum(np.bincount(position, weights=event) / at_risk)[position]
    return np.where(hazard == 0, 1 / (len(time) + 1), hazard)


def brier(problem: Problem, leaves: np.ndarray) -> float:
    """Return the integrated Brier score of the leaves' Kaplan-Meier curves over [0, y_max].

    Zhang et al. (AISTATS 2024), eqs. 1-2; every row with time >= t is at risk of censoring at t.
    """
    event, time = problem.target["event"], problem.target["time"]
    times, position, count = np.unique(time, return_inverse=True, return_counts=True)
    length = np.append(np.diff(times), 0.0)
    at_risk = np.cumsum(count[::-1])[::-1]
    censoring = np.cumprod(1 - np.bincount(position, weights=~event) / at_risk)
    weight = np.divide(1.0, censoring, out=np.zeros(len(times)), where=censoring > 0)
    total = 0.0
    for leaf in np.unique(leaves):
        rows = leaves == leaf
        own, died = position[rows], event[rows]
        left = np.bincount(own, minlength=len(times))
        at_risk = np.cumsum(left[::-1])[::-1]
        events = np.bincount(own, weights=died, minlength=len(times))
        survival = np.cumprod(1 - events / np.maximum(at_risk, 1))
        dead = np.cumsum(np.bincount(own, weights=died * weight[own], minlength=len(times)))
        alive = (at_risk - left) * weight
        total += np.sum(length * (survival**2 * dead + (1 - survival) ** 2 * alive))
    return float(total / (len(time) * times[-1]))


def own_penalty(objective: str, problem: Problem, penalty: float) -> float:
    """Return a study's penalty in the unit of the objective: OSST divides by y_max - y_min."""
    if objective != "brier":
        return penalty
    return penalty / _published_scale(problem)


def published_penalty(problem: Problem, penalty: float) -> float:
    """Return the inverse of `own_penalty` for "brier"."""
    return penalty * _published_scale(problem)


def _published_scale(problem: Problem) -> float:
    time = problem.target["time"]
    return float(time.max() / (time.max() - time.min()))


def _of_leaves(loss: Callable[[Problem, np.ndarray], float]) -> Objective:
    return lambda problem, outcome: loss(problem, outcome.leaves)


def _fair(loss: Callable[[Problem, np.ndarray], float], curve: fair_survival.Curve) -> Objective:
    """Return the loss of the leaves, inf where the groups differ by more than the limit."""

    def fair(problem: Problem, outcome: Outcome) -> float:
        fits = fair_survival.within_limit(problem.target, outcome.leaves, curve)
        return loss(problem, outcome.leaves) if fits else float("inf")

    return fair


OBJECTIVES: dict[str, Objective] = {
    "likelihood": _of_leaves(likelihood),
    "brier": _of_leaves(brier),
    "fair-likelihood": _fair(likelihood, fair_survival.proportional),
    "fair-brier": _fair(brier, fair_survival.kaplan_meier),
    **label_objectives.OBJECTIVES,
}
