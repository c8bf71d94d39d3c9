"""The objective value of a tree from its rows, and its lower bound from every tree there is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone.trust.compare import Checks, close
from bristlecone.trust.exhaustive import (
    Limits,
    distinct_questions,
    estimated_work,
    least_objectives,
)
from bristlecone.trust.losses import ALLOWED, Statement
from bristlecone.trust.rows import Rows

__all__ = ["check_objective", "check_proof"]

Floats = NDArray[np.float64]

# A limit is certainly kept by what exceeds it by no more than rounding.
_EXACT = 1e-12


def check_objective(
    tree: Any, rows: Rows, statement: Statement, reached: NDArray[np.bool_], checks: Checks
) -> None:
    """Objective, limits that are kept by labels or curves, and improvements of the splits."""
    nodes, found = tree.tree_, tree.certificate_
    sums = np.asarray(reached.T.astype(np.float64) @ statement.statistics)
    candidates = statement.candidates(sums)
    label = _labels(tree, candidates)
    costs = candidates[nodes.leaves, label].sum(axis=0)
    costs[0] += _split_costs(tree, statement, sums)
    value = _value(tree, statement, costs, math.inf)
    scale = max(_scale(statement, candidates[0]), statement.summed)
    same = close(value, found.objective_value, scale)
    checks.holds("objective value", same, value, found.objective_value)
    if statement.is_limited and found.status != "reestimated":
        kept = math.isfinite(_value(tree, statement, costs, ALLOWED))
        told = ", ".join(f"{cost:.6g}" for cost in costs[1:].tolist())
        checks.holds("limits of the objective", kept, "kept", f"{told} in all")
    if nodes.n_leaves > 1:
        losses = candidates[:, :, 0].min(axis=1) / statement.total
        expected = np.zeros(nodes.node_count)
        if not statement.is_sum or not np.isfinite(losses).all():
            expected[:] = math.nan
        else:
            split = ~nodes.is_leaf
            children = losses[nodes.children_left[split]] + losses[nodes.children_right[split]]
            expected[split] = losses[split] - children
        pairs = [("of node", expected, nodes.improvement)]
        checks.same("improvements", "of every split", pairs, scale=scale)


def check_proof(
    tree: Any, rows: Rows, statement: Statement, checks: Checks, most_work: float
) -> None:
    """The lower bound, by a search through every tree where that is small."""
    found = tree.certificate_
    if not found.is_searched:
        checks.skip("lower bound", "none", f"nothing is claimed of a {found.status} tree")
        return
    told = f"{found.lower_bound:.10g} ({found.status}, gap {found.gap:.3g})"
    limits = _limits(tree, rows)
    answers = rows.answers
    if getattr(statement, "prices", None) is None:
        answers = answers[:, distinct_questions(answers)]
    work = estimated_work(statement, answers.shape[1], len(answers), limits)
    if work > most_work:
        why = (
            f"not re-proven: {answers.shape[1]} questions at depth {limits.depth} are about "
            f"{work:.2g} units of work, more than most_work={most_work:.2g}"
        )
        checks.skip("lower bound", told, why)
        return
    event = rows.facts.get("event")
    exact, loose = least_objectives(statement, answers, event, limits, (_EXACT, ALLOWED))
    whole = statement.root
    rounding = 1e-9 * max(_scale(statement, whole), abs(found.objective_value))
    rounding = max(rounding, 1e-12 * statement.summed)
    holds = found.lower_bound <= exact + rounding and found.objective_value >= loose - rounding
    if found.status == "optimal":
        holds = holds and found.objective_value <= exact + rounding
    if found.status == "reference_optimal":
        holds = holds and found.objective_value - found.guarantee <= exact + rounding
    checks.holds("lower bound", holds, f"least objective of every tree {exact:.10g}", told)


def _scale(statement: Statement, whole: Floats) -> float:
    """Size of the loss, that rounding is relative to; ``whole`` are costs of the root as a leaf."""
    loss = float(np.abs(whole[0, 0])) / statement.total
    # All rows may be no leaf.
    return max(statement.unit, loss if math.isfinite(loss) else 0.0)


def _value(tree: Any, statement: Statement, costs: Floats, allowed: float) -> float:
    """Objective of summed costs, with the penalty."""
    penalty = float(tree.certificate_.parameters.get("leaf_penalty", 0.0))
    return float(statement.value(costs[None, :], allowed)[0]) + penalty * tree.tree_.n_leaves


def _labels(tree: Any, candidates: Floats) -> NDArray[np.int64]:
    """Candidate that each leaf takes: the label it gives."""
    nothing: NDArray[np.int64] = np.zeros(tree.tree_.n_leaves, dtype=np.int64)
    label: NDArray[np.int64] = getattr(tree.leaves_, "label", nothing)
    return label if candidates.shape[1] > 1 else nothing


def _split_costs(tree: Any, statement: Statement, sums: Floats) -> float:
    """What the questions of the tree cost its rows."""
    nodes = tree.tree_
    n_features = len(tree.certificate_.questions)
    total, asked = 0.0, {0: ()}
    for node in np.flatnonzero(~nodes.is_leaf).tolist():
        feature, above = int(nodes.feature[node]), asked[node]
        total += float(statement.split_costs(sums[node], above, n_features)[feature])
        for child in (int(nodes.children_left[node]), int(nodes.children_right[node])):
            asked[child] = (*above, feature)  # type: ignore[assignment]
    return total


def _limits(tree: Any, rows: Rows) -> Limits:
    """Limits of the search, as its parameters and settings state them."""
    found = tree.certificate_
    parameters, n = found.parameters, len(rows.weight)
    leaves = parameters["max_leaf_nodes"]
    most = n if leaves is None else min(int(leaves), n)
    depth = min(most - 1, rows.answers.shape[1])
    if parameters["max_depth"] is not None:
        depth = min(depth, int(parameters["max_depth"]))
    return Limits(
        depth,
        most,
        int(found.settings.get("min_samples_leaf", 1)),
        int(found.settings.get("min_events_leaf", 0)),
        float(parameters["leaf_penalty"]),
    )
