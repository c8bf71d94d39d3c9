"""Turns the solution of a search into a tree with its leaves and its certificate."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bristlecone._core import Solution
from bristlecone._data.rows import RowsT
from bristlecone._encoder.ranked import RankedFeatures
from bristlecone._encoder.rules import question_names
from bristlecone._encoder.use import binary_features, split_columns, warn_of_constants
from bristlecone._fit.search import Search
from bristlecone._leaves.base import Leaves
from bristlecone._leaves.minimum import warn_of_event_free_rows
from bristlecone._log import warn
from bristlecone._objectives.base import LeavesT, Objective
from bristlecone._search.certificate import Certificate, Teaching, fingerprint, report
from bristlecone._search.engine import Changed, Problem
from bristlecone._tree import Tree
from bristlecone.exceptions import (
    InfeasibleError,
    InfeasibleWarning,
    SearchLimitWarning,
)

# Name of a fact in a certificate without a tree: what the search was to satisfy.
_UNMET = "unmet"


@dataclass(frozen=True)
class Fitted:
    """Tree, leaves and certificate of a search; without tree and leaves if none was found."""

    tree: Tree | None
    leaves: Leaves | None
    certificate: Certificate


def settle(problem: Problem[RowsT], solution: Any) -> tuple[Problem[RowsT], Any]:
    """After a search over thresholds, the problem and the solution over binary features.

    The features are those of the encoder with the thresholds of the tree. Other problems do not
    change.
    """
    ranked = problem.features
    if not isinstance(ranked, RankedFeatures):
        return problem, solution
    encoder, feature = ranked.settle(
        problem.encoder, solution.children_left, solution.children_right, solution.feature
    )
    features = binary_features(encoder, problem.data.X)
    memo = {"thresholds": (ranked.shape[1], ranked.n_side)}
    settled = replace(problem, encoder=encoder, features=features, memo=memo)
    return settled, Changed(solution, feature=feature)


def assemble(
    search: Search,
    problem: Problem,
    solution: Solution,
    parameters: Mapping[str, Any],
    start: float,
) -> Fitted:
    """Make the tree of a solution from a fit with these ``parameters`` that began at ``start``."""
    objective, memo = search.objective, problem.memo
    if "fingerprint" not in memo:
        memo["binary_features"] = question_names(problem.encoder)
        memo["fingerprint"] = fingerprint(problem.features, problem.data)
    losses = problem.reference_loss
    reference = None
    if losses is not None:
        reference = float(np.average(losses, weights=problem.data.weight))
    treeless = math.isinf(solution.objective)
    tree = leaves = groups = None
    teaching = problem.teaching
    aim, remarks = "", objective.remarks()
    if not treeless:
        tree, leaves = with_leaves(objective, _tree(solution, problem), problem, solution)
        groups, aim = objective.groups(tree, problem, leaves), objective.aim(problem, leaves)
        teaching = with_loss(objective, tree, problem, leaves)
        remarks += _disputed(objective, tree, problem, leaves)
    facts: dict[str, Any] = {_UNMET: objective.admissible} if treeless else {}
    if "thresholds" in memo:
        facts["thresholds"], facts["rows_per_side"] = memo["thresholds"]
    certificate = Certificate(
        aim=aim,
        status=solution.status,
        objective_value=solution.objective,
        lower_bound=solution.lower_bound,
        binary_features=memo["binary_features"],
        parameters=parameters,
        settings=dict(problem.least),
        trace=tuple(solution.trace),
        n_nodes_explored=solution.n_nodes_explored,
        seconds=time.perf_counter() - start,
        n_samples=len(problem.features),
        fingerprint=memo["fingerprint"],
        remarks=remarks,
        reference_loss=reference,
        groups=groups,
        teacher=teaching,
        facts=facts,
    )
    return Fitted(tree, leaves, certificate)


def with_leaves(
    objective: Objective[RowsT, LeavesT], tree: Tree, problem: Problem[RowsT], solution: Any
) -> tuple[Tree, LeavesT]:
    """The tree with the improvements of its splits, and its leaves."""
    leaves = objective.leaves(tree, problem, solution)
    if tree.n_leaves > 1:
        tree = tree.with_losses(objective.losses(tree, problem, leaves))
    return tree, leaves


def with_loss(
    objective: Objective[RowsT, LeavesT], tree: Tree, problem: Problem[RowsT], leaves: LeavesT
) -> Teaching | None:
    """The record of the teacher, with the loss of the tree on the real outcomes."""
    if problem.teaching is None:
        return None
    taught: Any = problem.data
    real = replace(problem, data=taught._replace(smoothed=None))
    return replace(problem.teaching, training_loss=objective.value(tree, real, leaves))


def _disputed(
    objective: Objective, tree: Tree, problem: Problem, leaves: Any
) -> tuple[tuple[str, str], ...]:
    """Remark on leaves whose label would differ by the smoothed outcomes."""
    favoured = None
    if problem.teaching is not None:
        favoured = objective.favoured(tree, problem, leaves)
    if favoured is None:
        return ()
    texts = [
        f"{leaves.labels[label]} in leaf {node}, whose rows favour {leaves.labels[own]}"
        for node, label, own in zip(tree.leaves, favoured, leaves.label, strict=True)
        if label != own
    ]
    return (("smoothed outcomes favour", "; ".join(texts)),) if texts else ()


def _tree(solution: Solution, problem: Problem) -> Tree:
    column, threshold = split_columns(problem.encoder, solution.feature)
    tree = Tree.bare(
        solution.children_left,
        solution.children_right,
        solution.feature,
        threshold=threshold,
        column=column,
    )
    return tree.counted(problem.leaf_index(tree), problem.data.weight, problem.count)


def unmet(certificate: Certificate) -> InfeasibleError:
    """The error of a search that a limit stopped before it found a tree."""
    return InfeasibleError(
        f"the search stopped ({certificate.status}) before it found {certificate.facts[_UNMET]}; "
        "a longer search may find one"
    )


def announce(search: Search, problem: Problem, fits: Sequence[Fitted]) -> None:
    """Log fits and issue warnings."""
    warn_of_constants(problem.encoder)
    warn_of_event_free_rows(getattr(problem.data, "event_free", ""))
    found = [
        (fit.certificate, fit.tree.n_leaves, fit.tree.max_depth)
        for fit in fits
        if fit.tree is not None
    ]
    report(found, search.verbose)
    treeless = [fit.certificate for fit in fits if fit.tree is None]
    infeasible = [one for one in treeless if one.is_infeasible]
    if infeasible:
        searches = f" in {len(infeasible)} of {len(fits)} searches"
        warn(search.objective.infeasible + (searches if fits[1:] else ""), InfeasibleWarning)
    stopped = [one for one in treeless if not one.is_infeasible]
    if stopped:
        warn(f"in {len(stopped)} of {len(fits)} searches: {unmet(stopped[0])}", SearchLimitWarning)
