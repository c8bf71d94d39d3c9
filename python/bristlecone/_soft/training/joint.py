"""All parameters at once by L-BFGS."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bristlecone._soft import routing
from bristlecone._soft.training.optimise import minimise
from bristlecone._soft.training.problem import Parameters, Problem


class Trained(NamedTuple):
    """Result of a restart: parameters, E, accepted values of E in order, and convergence."""

    parameters: Parameters
    value: float
    trace: list[float]
    converged: bool


def fit_joint(problem: Problem, start: Parameters, *, max_iter: int, tol: float) -> Trained:
    """Minimise E over splits and leaves together, from ``start``."""
    n_splits = routing.n_splits(problem.depth)
    low, high = problem.leaf_bounds(routing.n_leaves(problem.depth))
    free = np.full(n_splits * problem.width, np.inf)
    lasso = np.concatenate([problem.lasso(n_splits), np.zeros(len(low))])
    found = minimise(
        problem.joint,
        problem.vector(start),
        max_iter=max_iter,
        tol=tol,
        bounds=(np.concatenate([-free, low]), np.concatenate([free, high])),
        l1=lasso,
    )
    first = problem.objective(start)
    if not found.value <= first:  # bounds may have moved the start
        return Trained(start, first, [first], found.converged)
    return Trained(problem.parameters(found.x), found.value, [first, *found.trace], found.converged)
