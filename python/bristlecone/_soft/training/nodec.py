"""NODEC-DR-SST: one subtree at a time, with the reassignment of rows (paper, section 4 and C.0.2).

What differs from the paper is explained in docs/maths/soft.md.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bristlecone._soft import routing
from bristlecone._soft.training.initialise import weighted_logistic
from bristlecone._soft.training.joint import Trained, fit_joint
from bristlecone._soft.training.optimise import Minimum, minimise
from bristlecone._soft.training.problem import Parameters, Problem, Rows
from bristlecone._types import Bools, Floats, Integers

# ε1, ε2 and ε3 (imbalanced, strongly imbalanced, flipped), and the factor ζ after each macro
# iteration.
_THRESHOLDS, _SHRINK = np.array([0.3, 0.1, 0.4]), 0.8
# Steps of the inner minimisations; more would refine what the next step moves again.
_SPLIT_STEPS, _LEAF_STEPS = 15, 15
_INNER_TOL = 1e-4
# A macro iteration that gains less than this, relative to the objective, is the last.
_GAIN = 1e-5


def fit_nodec(
    problem: Problem, start: Parameters, *, n_macro: int, max_iter: int, tol: float
) -> Trained:
    """Decomposition over the splits, then a joint refinement of the best parameters found."""
    now = best = start
    least = problem.objective(start)
    trace = [least]
    thresholds = _THRESHOLDS
    for _ in range(n_macro):
        before = least
        for split in range(routing.n_splits(problem.depth)):
            now = _step(problem, now, split, thresholds)
            value = problem.objective(now)
            if value < least:
                best, least = now, value
                trace.append(value)
        thresholds = _SHRINK * thresholds
        if before - least <= _GAIN * max(1.0, abs(least)) and trace[1:]:
            break
    if problem.fairness is None:
        refined = fit_joint(problem, best, max_iter=max_iter, tol=tol)
    else:
        # The penalty of one-leaf curves is discontinuous in the splits, which therefore stay fixed.
        refined = _refine_leaves(problem, best, max_iter, tol)
    return refined._replace(trace=[*trace, *refined.trace[1:]])


def _refine_leaves(problem: Problem, best: Parameters, max_iter: int, tol: float) -> Trained:
    """Minimise over the parameters of all leaves, with fixed splits."""
    first = problem.objective(best)
    found = _fair_leaves(problem, best, range(len(best.linear)), max_iter, tol)
    linear, shape = problem.unpack(found.x)
    refined = Parameters(best.splits, linear, shape)
    value = problem.objective(refined)
    if not value <= first:
        return Trained(best, first, [first], found.converged)
    gone = value - found.value  # The part that the leaves do not change.
    return Trained(refined, value, [first, *(step + gone for step in found.trace)], found.converged)


def _fair_leaves(
    problem: Problem, now: Parameters, leaves: Sequence[int], max_iter: int, tol: float
) -> Minimum:
    """Minimum over the parameters of some leaves under the penalty of one-leaf curves."""
    logit = now.splits @ problem.rows.design
    path = routing.hard_leaf(logit)
    member = routing.leaf_probabilities(logit) * problem.rows.weight
    whole = problem.pack(now.linear, now.shape).reshape(len(now.linear), -1)
    moved = list(leaves)

    def fused(vector: Floats) -> tuple[float, Floats]:
        whole[moved] = vector.reshape(len(moved), -1)
        value, slope = problem.leaves_alone(whole.ravel(), member, path)
        return value, slope.reshape(whole.shape)[moved].ravel()

    return minimise(
        fused,
        whole[moved].ravel(),
        max_iter=max_iter,
        tol=tol,
        bounds=problem.leaf_bounds(len(moved)),
    )


def _step(problem: Problem, now: Parameters, split: int, thresholds: Floats) -> Parameters:
    """Run a branch step and a leaf step at one split."""
    depth = problem.depth
    path = routing.hard_leaf(now.splits @ problem.rows.design)
    rows = problem.rows.take(routing.passes(path, depth, split))
    total = float(rows.weight.sum())
    if not total > 0:
        return now
    rows = rows._replace(weight=rows.weight / total)
    below, leaves = routing.subtree(depth, split)
    losses = problem.loss(now.linear[leaves], now.shape[leaves], rows).value
    splits = now.splits.copy()
    goes_left = splits[split] @ rows.design >= 0
    share = float(rows.weight @ goes_left)
    minority = min(share, 1 - share)
    imbalanced, strongly, flipped = thresholds.tolist()
    if minority <= imbalanced and imbalanced * len(problem.rows.event) >= 1:
        fraction = flipped if minority <= strongly else 0.0
        splits[split] = _rebalanced(problem, splits[below], rows, losses, goes_left, fraction)
    else:
        working = below if split > 0 or depth == 1 else below[:1]
        splits[working] = _branch_step(problem, splits, working, below, rows, losses, total)
    linear, shape = now.linear.copy(), now.shape.copy()
    if problem.fairness is not None and (split > 0 or depth == 1):
        found = _fair_leaves(
            problem, Parameters(splits, linear, shape), leaves.tolist(), _LEAF_STEPS, _INNER_TOL
        )
        linear[leaves], shape[leaves] = problem.unpack(found.x)
    elif split > 0 or depth == 1:
        member = routing.leaf_probabilities(splits[below] @ rows.design) * rows.weight
        whole = problem.pack(linear, shape).reshape(len(linear), -1)
        for k, leaf in enumerate(leaves):
            whole[leaf] = _leaf_step(problem, whole, leaf, rows, member[k], total)
        linear, shape = problem.unpack(whole.ravel())
    return Parameters(splits, linear, shape)


def _branch_step(
    problem: Problem,
    splits: Floats,
    working: Integers,
    below: Integers,
    rows: Rows,
    losses: Floats,
    total: float,
) -> Floats:
    """Splits of the working set that minimise the loss of the subtree's rows."""
    part = len(losses) / routing.n_leaves(problem.depth)
    if len(working) < len(below):
        # Only the root moves, so the expected losses on its two sides are fixed.
        halves = [splits[routing.subtree(problem.depth, child)[0]] for child in (1, 2)]
        losses = np.stack(
            [
                routing.expected(half @ rows.design, own)[0]
                for half, own in zip(halves, np.split(losses, 2), strict=True)
            ]
        )
    found = minimise(
        lambda vector: problem.split_objective(vector, rows, losses, total, part),
        splits[working].ravel(),
        max_iter=_SPLIT_STEPS,
        tol=_INNER_TOL * total,
        l1=problem.lasso(len(working)),
    )
    return found.x.reshape(-1, problem.width)


def _leaf_step(
    problem: Problem, whole: Floats, leaf: int, rows: Rows, member: Floats, total: float
) -> Floats:
    """Parameters of one leaf that minimise E, with those of the others fixed."""
    # A row with a tiny probability here cannot move the leaf.
    kept = member > 1e-9 * rows.weight
    rows, member = rows.take(kept), member[kept][np.newaxis] * total
    among = whole.copy()

    def fused(vector: Floats) -> tuple[float, Floats]:
        among[leaf] = vector
        value, slope = problem.leaf_loss(vector, rows, member)
        penalty, by_penalty = problem.penalty(among.ravel())
        return value + penalty, slope + by_penalty.reshape(whole.shape)[leaf]

    return minimise(
        fused,
        whole[leaf],
        max_iter=_LEAF_STEPS,
        tol=_INNER_TOL * total,
        bounds=problem.leaf_bounds(1),
    ).x


def _rebalanced(
    problem: Problem, splits: Floats, rows: Rows, losses: Floats, goes_left: Bools, fraction: float
) -> Floats:
    """Logit of the first split from a weighted regression on where its rows go (eq. 8).

    Of the rows sent to the larger child, the ``fraction`` with the largest error (eq. 9) is
    labelled for the other child.
    """
    label = goes_left.astype(np.float64)
    share = float(rows.weight @ label)
    weight = rows.weight * np.where(goes_left, 0.5 / max(share, 1e-12), 0.5 / max(1 - share, 1e-12))
    if fraction > 0:
        error = routing.expected(splits @ rows.design, losses)[0]
        crowd = np.flatnonzero(goes_left == (share >= 0.5))
        worst = crowd[np.argsort(-error[crowd], kind="stable")]
        worst = worst[: int(np.ceil(fraction * len(crowd)))]
        label[worst] = 1 - label[worst]
    return weighted_logistic(rows, label, weight, splits[0])
