"""The objective value of a tree from its rows, and its lower bound from a search of all trees."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from bristlecone._data.arrays import with_article
from bristlecone._encoder.decisions import feature_decisions
from bristlecone._search.certificate import ERRORS
from bristlecone._types import Bools, Floats, Integers
from bristlecone.trust._cells import TooManyTies
from bristlecone.trust._columns import midpoint
from bristlecone.trust._compare import OF_TERMS, Checks
from bristlecone.trust._exhaustive import Limits, better_tree, distinct_features, estimated_work
from bristlecone.trust._kinds import read_rows, statement_of
from bristlecone.trust._optimality import is_optimal, tolerance
from bristlecone.trust._rows import Rows, asked_above, reached_nodes
from bristlecone.trust._statement import Statement, like
from bristlecone.trust._teacher import drift_of

# Most answers of all rows to every threshold. Each takes about twenty bytes: half a gigabyte.
_MOST_ANSWERS = 25_000_000


class Value:
    """The objective of a tree by its rows.

    Parameters
    ----------
    tree : fitted tree
    statement : Statement
        The objective.
    reached : array of bool, shape (n, n_nodes)
        Rows of every node.
    drift : float, optional
        For outcomes smoothed by a teacher: the share by which the objective may differ, because
        they were computed again. Every leaf then takes its best label by these outcomes, whatever
        it gives by the real ones.

    Attributes
    ----------
    costs : array of Fraction or float, shape (n_components,)
        Total cost of the leaves and splits.
    objective : Fraction or float
        Objective value, including the penalty.
    terms : float
        Mean absolute term, to which "optimal" is relative.
    doubt : float
        Largest error because sums of a custom task, or smoothed outcomes, are rounded.
    """

    def __init__(
        self,
        tree: Any,
        statement: Statement,
        reached: Bools,
        drift: float | None = None,
    ) -> None:
        nodes = tree.tree_
        self.statement = statement
        self.sums = statement.sums(reached.T)
        self.candidates = statement.candidates(self.sums)
        self.label = _labels(tree, self.candidates)
        if drift is not None:
            self.label = self.candidates[nodes.leaves, :, 0].argmin(axis=1)
        leaf = nodes.leaves, self.label
        self.costs = self.candidates[leaf].sum(axis=0)
        asked = _split_costs(tree, statement, self.sums)
        self.costs[0] += asked
        penalty = Fraction(float(tree.certificate_.parameters.get("leaf_penalty", 0.0)))
        self.penalty = penalty * nodes.n_leaves
        self.objective = self.value(math.inf)
        self.sizes = statement.magnitudes(self.sums, reached.T)
        if statement.is_sum:
            size = self.sizes[leaf].sum() + asked
            self.terms = float(size * statement.factor / statement.total) or statement.least_term
            self.terms += float(self.penalty)
        else:
            self.terms = abs(float(self.objective))
        self.doubt = statement.doubt(self.sums[nodes.leaves]) / float(statement.total)
        self.doubt += (drift or 0.0) * abs(self.terms)

    def value(self, allowed: float) -> Any:
        """Objective; infinite if a limit is exceeded by more than ``allowed``."""
        own = self.statement.value(self.costs[None, :], allowed)[0]
        return own + (self.penalty if isinstance(own, Fraction) else float(self.penalty))


def value_of(tree: Any, rows: Rows, reached: Bools, smoothed: Floats | None = None) -> Value:
    """Value of a tree by its rows, with outcomes that a teacher smoothed, if any."""
    drift = None
    if smoothed is not None:
        drift = drift_of(tree, rows, smoothed)
        # Leaves keep the real outcomes.
        rows = replace(rows, facts={**rows.facts, "smoothed": smoothed})
    statement = statement_of(tree, rows)
    assert statement is not None
    return Value(tree, statement, reached, drift)


def slack_of(tree: Any, X: Any, y: Any, problem: Any = None, **given: Any) -> float:
    """Largest difference between objectives of a fitted tree's problem that is ignored.

    ``problem`` is that of the search; its outcomes may be smoothed by a teacher.
    """
    rows = read_rows(tree, X, y, given)
    smoothed = None if problem is None else getattr(problem.data, "smoothed", None)
    with np.errstate(all="ignore"):
        own = value_of(tree, rows, reached_nodes(tree, rows.answers), smoothed)
    return tolerance(own.terms) + own.doubt


def check_objective(tree: Any, own: Value, checks: Checks) -> None:
    """The objective value."""
    found, same = tree.certificate_, False
    # A leaf that is not allowed makes the objective infinite.
    if math.isfinite(own.objective):
        off = abs(Fraction(found.objective_value) - Fraction(own.objective))
        # Below the normal range of float64 there are no more digits than this.
        same = off <= tolerance(own.terms) + own.doubt + 16 * math.ulp(0.0)
    checks.holds("objective value", same, float(own.objective), found.objective_value)


def check_training_loss(tree: Any, real: Value, checks: Checks) -> None:
    """Loss of a taught tree on the real outcomes."""
    stated, loss = tree.certificate_.teacher.training_loss, real.objective - real.penalty
    same = abs(Fraction(stated) - Fraction(loss)) <= tolerance(real.terms)
    checks.holds("training loss", same, float(loss), stated)


def check_labels(tree: Any, own: Value, checks: Checks) -> None:
    """Labels of the leaves, and the limits on labels or curves."""
    nodes, found, candidates = tree.tree_, tree.certificate_, own.candidates
    statement = own.statement
    # Labels under a limit on groups, and those of a front, stay those of the search.
    if statement.is_scalar and candidates.shape[1] > 1 and ERRORS not in found.facts:
        given = candidates[nodes.leaves, own.label, 0]
        least = candidates[nodes.leaves, :, 0].min(axis=1)
        sizes = np.max(own.sizes[nodes.leaves], axis=1)
        places = zip(nodes.leaves.tolist(), given - least, sizes, strict=True)
        wrong = [node for node, off, size in places if not float(off) <= tolerance(size)]
        shown = f"not the best of leaf {wrong[0]}" if wrong else f"of {nodes.n_leaves} leaves"
        checks.holds("labels", not wrong, "the best of each leaf", shown)
    if statement.is_limited and found.status != "reestimated":
        kept = math.isfinite(own.value(statement.room[0]))
        totals = ", ".join(f"{float(cost):.6g}" for cost in own.costs[1:].tolist())
        checks.holds("limits of the objective", kept, "kept", f"totals {totals}")


def check_improvements(tree: Any, own: Value, checks: Checks) -> None:
    """By how much each split reduces the loss of its node."""
    nodes, statement = tree.tree_, own.statement
    if nodes.n_leaves == 1:
        return
    expected, terms = np.zeros(nodes.node_count), np.zeros(nodes.node_count)
    share = statement.factor / statement.total
    losses = own.candidates[:, :, 0].min(axis=1) * like(share, own.candidates)
    if not statement.is_sum or not all(map(math.isfinite, losses.tolist())):
        expected[:] = math.nan
    else:
        split = ~nodes.is_leaf
        left, right = nodes.children_left[split], nodes.children_right[split]
        expected[split] = (losses[split] - losses[left] - losses[right]).astype(np.float64)
        sizes = own.sizes.max(axis=1)
        sizes = (sizes * like(share, sizes)).astype(np.float64)
        doubts = [
            statement.doubt(own.sums[[at]]) / float(statement.total) for at in range(len(split))
        ]
        terms[split] = sizes[split] + (np.array(doubts)[split] + own.doubt) / OF_TERMS
    checks.same("improvements", "of every split", [("of node", expected, nodes.improvement, terms)])


def check_proof(tree: Any, rows: Rows, own: Value, checks: Checks, most_work: float) -> None:
    """The lower bound, by a search of every tree if that is small enough."""
    found, statement = tree.certificate_, own.statement
    if not found.is_searched:
        checks.skip("lower bound", "none", f"{with_article(found.status)} tree has no lower bound")
        return
    gap = 0.0 if found.status == "optimal" else found.gap
    shown = f"{found.lower_bound:.10g} ({found.status}, gap {gap:.3g})"
    off = tolerance(own.terms) + own.doubt
    objective, bound = own.objective, found.lower_bound
    # A claim of optimality refers to the true objective of the tree, not to the reported one.
    proven = is_optimal(objective, bound + own.doubt, own.terms)
    if bound > objective + off or (found.status == "optimal" and not proven):
        checks.holds("lower bound", False, f"the objective {float(objective):.17g}", shown)
        return
    # By its status, no tree has an objective below this value.
    claimed = max(bound, objective) if found.status == "optimal" else bound
    if found.status == "reference_optimal":
        claimed = max(bound, objective - found.guarantee)
    if not math.isfinite(claimed):
        checks.skip("lower bound", shown, "the tree claims no lower bound")
        return
    n, answers = len(rows.weight), rows.answers
    every = "thresholds" in found.facts
    if not every and getattr(statement, "prices", None) is None:
        answers = answers[:, distinct_features(answers)]
    n_features = int(found.facts["thresholds"]) if every else answers.shape[1]
    limits, which = _limits(tree, n_features, n)
    work = estimated_work(statement, n_features, n, limits)
    too_large = math.isinf(work) or (every and n_features * n > _MOST_ANSWERS)
    if too_large or work > most_work:
        cost = f"about {work:.2g} units of work, more than most_work={most_work:.2g}"
        cost = "too much memory" if too_large else cost
        checks.skip("lower bound", shown, f"not proven again: trying {which} would take {cost}")
        return
    if every:  # the encoder only has the thresholds that the tree uses
        answers = every_question(tree, rows)
        answers = answers[:, distinct_features(answers)]
        limits, which = _limits(tree, answers.shape[1], n)
    event = rows.facts.get("event")
    value = Fraction(claimed) - Fraction(off)
    try:
        better = better_tree(statement, answers, event, limits, value, statement.room[1])
    except TooManyTies:
        why = f"not proven again: too many trees differ only by rounding; {which}"
        checks.skip("lower bound", shown, why)
        return
    if better is not None:
        checks.holds("lower bound", False, f"at most {better:.10g}, which one tree reaches", shown)
        return
    none = "none is better" if found.status == "optimal" else "none is below the bound"
    checks.holds("lower bound", True, shown, f"{shown}; {which} was tried, and {none}")


def every_question(tree: Any, rows: Rows) -> Bools:
    """Answers to every question of a search over every threshold, shape (n, n_questions)."""
    encoder, weight = tree.encoder_, rows.weight
    decided = zip(feature_decisions(encoder), rows.answers.T, strict=True)
    found = [answer for decision, answer in decided if decision.kind != "at most"]
    for schema, column in zip(encoder.columns_, rows.columns, strict=True):
        if schema.kind == "number" and column.numbers is not None:
            observed = column.numbers[~np.isnan(column.numbers)]
            numbers = column.numbers
            if schema.fill is not None:
                numbers = np.where(np.isnan(numbers), schema.fill, numbers)
            for low, high in pairwise(np.unique(observed).tolist()):
                answer = numbers <= midpoint(low, high)
                share = weight[answer].sum() / weight.sum()
                if min(share, 1 - share) >= encoder.min_support - OF_TERMS:
                    found.append(answer)
    return np.array(found, dtype=bool).reshape(-1, len(weight)).T


def _labels(tree: Any, candidates: Any) -> Integers:
    """Candidate of each leaf: the label that it assigns."""
    nothing: Integers = np.zeros(tree.tree_.n_leaves, dtype=np.int64)
    label: Integers = getattr(tree.leaves_, "label", nothing)
    return label if candidates.shape[1] > 1 else nothing


def _split_costs(tree: Any, statement: Statement, sums: Any) -> Any:
    """Total cost of the splits of the tree, over its rows."""
    nodes = tree.tree_
    n_features = len(tree.certificate_.binary_features)
    above = asked_above(tree)
    total: Any = 0
    for node in np.flatnonzero(~nodes.is_leaf).tolist():
        cost = statement.split_costs(sums[node], above[node], n_features)[nodes.feature[node]]
        total += Fraction(cost) if sums.dtype == object else float(cost)
    return total


def _limits(tree: Any, n_features: int, n: int) -> tuple[Limits, str]:
    """Limits of a search over these features of n rows, and its trees in words."""
    found = tree.certificate_
    parameters = found.parameters
    leaves = parameters["max_leaf_nodes"]
    most = n if leaves is None else min(int(leaves), n)
    depth = min(most - 1, n_features)
    if parameters["max_depth"] is not None:
        depth = min(depth, int(parameters["max_depth"]))
    which = f"every tree of depth {depth} over {n_features} binary feature{'s' * (n_features != 1)}"
    if most < min(2 ** min(depth, 30), n):
        which += f" and at most {most} leaves"
    limits = Limits(
        depth,
        most,
        int(found.settings.get("min_samples_leaf", 1)),
        int(found.settings.get("min_events_leaf", 0)),
        float(parameters["leaf_penalty"]),
    )
    return limits, which
