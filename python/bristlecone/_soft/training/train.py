"""Turns rows and settings into a trained soft tree, in the units of the design."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from bristlecone._soft import routing
from bristlecone._soft.models import MODELS, LeafModel, Sample
from bristlecone._soft.training.balance import leaf_shares
from bristlecone._soft.training.fairness import Fairness, quadrature
from bristlecone._soft.training.initialise import initial
from bristlecone._soft.training.joint import Trained, fit_joint
from bristlecone._soft.training.nodec import fit_nodec
from bristlecone._soft.training.problem import Problem, Rows
from bristlecone._soft.training.rows import distinct_rows
from bristlecone._soft.tree import SoftTree
from bristlecone._types import Bools, Floats, Integers


@dataclass(frozen=True, kw_only=True)
class SoftSettings:
    """Parameters of :class:`~bristlecone.SoftSurvivalTree` that its training depends on."""

    depth: int
    leaf: str
    n_knots: int
    solver: str
    n_restarts: int
    l2: float
    pooling: float | None
    split_l2: float
    l1: float
    balance: float
    min_leaf_share: float
    fairness_penalty: float
    n_jobs: int | None
    random_state: Any
    # Options of the solver.
    init: str = "kmeans"
    n_macro: int = 10
    max_iter: int = 1000
    tol: float = 1e-4

    @property
    def floor(self) -> float:
        """Share of the weight that every leaf should hold."""
        return min(float(self.min_leaf_share), 1 / (2 * routing.n_leaves(self.depth)))


class TrainingRows(NamedTuple):
    """Training rows: design (n, n_design), outcomes with positive times, weights.

    ``group`` says whether a row is in the second of two groups; None without groups. ``names`` are
    those of the design columns; None if the columns of ``X`` had none.
    """

    design: Floats
    event: Bools
    time: Floats
    weight: Floats
    group: Bools | None
    names: list[str] | None


class TrainedTree(NamedTuple):
    """The tree and the parameters of its leaves, over the design, and how the minimisation ended.

    ``unfinished`` names the parts whose gradient is not small; empty if there are none.
    """

    tree: SoftTree
    model: LeafModel
    linear: Floats
    shape: Floats
    log_unit: float
    objective: float
    trace: list[float]
    restart_objectives: Floats
    converged: bool
    unfinished: str


class _Scaled(NamedTuple):
    """The problem, and the constants that convert its parameters to those over the design."""

    problem: Problem
    columns: Integers  # position in the problem of every design column
    centre: Floats
    spread: Floats
    log_unit: float
    mean_event: float


def train(rows: TrainingRows, settings: SoftSettings) -> TrainedTree:
    """Best of the restarts; O(rows · (columns + leaves)) per step of each."""
    scaled = _scaled(rows, settings)
    problem = scaled.problem
    trained = _restarts(problem, settings)
    best = chosen(problem, trained, settings.floor)

    def in_design(weights: Floats) -> Floats:
        unscaled = weights[:, :-1] / scaled.spread
        intercept = weights[:, -1] - unscaled @ scaled.centre
        placed = np.column_stack([unscaled[:, scaled.columns], intercept])
        return np.ascontiguousarray(placed)

    splits = in_design(best.parameters.splits)
    weights, intercepts = (np.ascontiguousarray(x) for x in (splits[:, :-1], splits[:, -1]))
    tree = SoftTree.grown(settings.depth, weights, intercepts, rows.design, rows.weight)
    shift = scaled.mean_event * scaled.log_unit
    return TrainedTree(
        tree,
        problem.model,
        in_design(best.parameters.linear),
        np.ascontiguousarray(best.parameters.shape),
        scaled.log_unit,
        best.value + shift,
        [value + shift for value in best.trace],
        np.array([restart.value for restart in trained]) + shift,
        best.converged,
        "" if best.converged else _unfinished(tree, problem, best, settings.tol),
    )


def _unfinished(tree: SoftTree, problem: Problem, best: Trained, tol: float) -> str:
    """Text that names the splits and leaves whose gradient is larger than ``tol``."""
    size = problem.steepness(best.parameters)
    names = [f"split {node}" for node in tree.splits] + [f"leaf {node}" for node in tree.leaves]
    return ", ".join(
        f"{name} ({steep:.2g})" for name, steep in zip(names, size, strict=True) if steep > tol
    )


def chosen(problem: Problem, trained: list[Trained], floor: float) -> Trained:
    """The restart with the least objective, if possible among those with well-filled leaves."""

    def rank(restart: Trained) -> tuple[bool, float]:
        logit = restart.parameters.splits @ problem.rows.design
        shares = leaf_shares(logit, problem.rows.weight)
        return bool(shares.min() < floor), restart.value

    return min(trained, key=rank)


def _scaled(rows: TrainingRows, settings: SoftSettings) -> _Scaled:
    """The problem over distinct rows, in a canonical order.

    So neither the order of the rows nor that of named columns matters, and whole weights equal
    repetition.
    """
    design, times = rows.design, rows.time
    columns = np.arange(design.shape[1])
    if rows.names is not None:
        columns = np.argsort(np.array(rows.names, dtype=object), kind="stable")
    keys = [*design.T[columns], rows.event.astype(np.float64), times]
    if rows.group is not None:
        keys.append(rows.group.astype(np.float64))
    chosen, total = distinct_rows(keys, rows.weight)
    scaled, event = design[chosen][:, columns], rows.event[chosen]
    share = total / total.sum()
    centre = share @ scaled
    spread = np.sqrt(share @ (scaled - centre) ** 2)
    spread[spread == 0] = 1.0
    y = np.log(times[chosen])
    log_unit = float(share[event] @ y[event] / share[event].sum())
    sample = Sample(y - log_unit, event, share)
    model = MODELS[settings.leaf].prepare(sample, settings.n_knots)
    matrix = np.vstack([((scaled - centre) / spread).T, np.ones(len(chosen))])
    fairness = None
    if rows.group is not None and settings.fairness_penalty > 0:
        at, step = quadrature(times)
        fairness = Fairness(
            rho=float(settings.fairness_penalty),
            model=model,
            design=matrix,
            inside=total * rows.group[chosen],
            outside=total * ~rows.group[chosen],
            clock=model.clock(np.log(at) - log_unit),
            step=step,
            mixture=settings.solver == "joint",
        )
    problem = Problem(
        rows=Rows(matrix, model.clock(sample.y), event.astype(np.float64), share),
        scale=spread,
        model=model,
        depth=settings.depth,
        l2=settings.l2,
        split_l2=float(settings.split_l2),
        l1=float(settings.l1),
        fairness=fairness,
        pooling=None if settings.pooling is None else float(settings.pooling),
        balance=float(settings.balance),
    )
    place = np.empty(len(columns), dtype=np.int64)
    place[columns] = np.arange(len(columns))
    return _Scaled(problem, place, centre, spread, log_unit, float(share @ event))


def _restarts(problem: Problem, settings: SoftSettings) -> list[Trained]:
    random = check_random_state(settings.random_state)
    seeds = random.randint(np.iinfo(np.int32).max, size=settings.n_restarts)
    if settings.depth == 0 or problem.width == 1:
        seeds = seeds[:1]  # nothing is random
    parallel = Parallel(n_jobs=settings.n_jobs)
    return list(parallel(delayed(_restart)(problem, settings, int(seed)) for seed in seeds))


def _restart(problem: Problem, settings: SoftSettings, seed: int) -> Trained:
    """One restart; depends only on its arguments, in any process."""
    ends: Any = {"max_iter": settings.max_iter, "tol": settings.tol}
    # One thread: the matrices are narrow, and sums are then the same under any load.
    with threadpool_limits(limits=1):
        start = initial(problem, settings.init, np.random.RandomState(seed))
        if settings.solver == "joint" or problem.depth == 0:
            return fit_joint(problem, start, **ends)
        return fit_nodec(problem, start, n_macro=settings.n_macro, **ends)
