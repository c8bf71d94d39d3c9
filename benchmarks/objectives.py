"""Objectives, written again and plainly, to score every library's tree in the same run.

Nothing here calls the engine: a benchmark that trusted the program it measures would check nothing.
An objective takes the problem and the leaf number of each row, and returns the mean loss.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.problems import Problem


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


OBJECTIVES: dict[str, Callable[[Problem, np.ndarray], float]] = {"likelihood": likelihood}
