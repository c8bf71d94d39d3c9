"""Rows of survival trees, and the statistics and predictions of their leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from bristlecone._data.days import as_times
from bristlecone._data.outcomes import check_survival
from bristlecone._data.rows import check_length, row_numbers
from bristlecone._leaves.survival import StepLeaves
from bristlecone._model.survival import CURVE_ERROR
from bristlecone._types import Bools, Floats
from bristlecone.trust._columns import Table
from bristlecone.trust._compare import Checks, Pairs
from bristlecone.trust._plain import Lifetimes, antitonic_curve, restricted_mean
from bristlecone.trust._rows import Rows, check_groups, down, groups_of, kept_rows, rows_of
from bristlecone.trust._survival import Brier, brier_terms, lifetimes, prior_of, row_hazards, thetas


def read_rows(tree: Any, table: Table, y: Any, weight: Any, more: Mapping[str, Any]) -> Rows:
    """Rows of a tree that predicts survival, with the groups that a limit compares."""
    return read_lifetimes(
        tree, table, y, weight, more, tree.certificate_.parameters.get("fairness")
    )


def read_lifetimes(
    tree: Any,
    table: Table,
    y: Any,
    weight: Any,
    more: Mapping[str, Any],
    fairness: Any = None,
) -> Rows:
    """Event, time and entry of each row, and its group if a limit on groups is given."""
    event, time, entry = check_survival(y)
    parameters = tree.certificate_.parameters
    check_length(time, "y", table.n_rows)
    kept = kept_rows(table, weight)
    some = None if kept.all() else kept
    event, time = event[kept], time[kept]
    entry = None if entry is None or not entry[kept].any() else entry[kept]
    grid = parameters.get("time_grid")
    if grid is not None:
        grid = as_times(grid, "time_grid")
        next_one = np.searchsorted(grid, time)
        event = event & (next_one < grid.size)
        time = grid[np.minimum(next_one, grid.size - 1)]
    facts: dict[str, Any] = {"event": event, "time": time, "entry": entry}
    if "reference_loss" in more:
        losses = row_numbers(more["reference_loss"], "reference_loss", table.n_rows)
        facts["reference_loss"] = losses[kept]
    groups = codes = None
    if fairness is not None:
        groups, codes = groups_of(table, more, fairness.sensitive_feature, kept)
        facts |= {"groups": groups, "group": codes}
    own = None if weight is None else weight[kept]
    outcomes = (event, time, own, entry, some, codes, groups)
    return rows_of(tree, table, weight, kept, outcomes, facts)


def read_soft_rows(tree: Any, table: Table, y: Any, weight: Any, more: Mapping[str, Any]) -> Rows:
    """Rows of a soft tree, which penalises a distance of groups and has no limit to check."""
    rows = read_lifetimes(tree, table, y, weight, {})
    time = rows.facts["time"]
    # A time of 0 has no logarithm and is replaced by half the smallest positive time.
    rows.facts["time"] = np.where(time > 0, time, time[time > 0].min(initial=np.inf) / 2)
    return rows


def check_leaves(tree: Any, rows: Rows, reached: Bools, checks: Checks) -> None:
    """Counts, relative hazards, curves, follow-up, and predictions from these."""
    check_one_cause(tree, tree.leaves_, tree.certificate_.parameters, rows, reached, checks)


def check_one_cause(
    tree: Any,
    leaves: Any,
    parameters: Mapping[str, Any],
    rows: Rows,
    reached: Bools,
    checks: Checks,
) -> None:
    """The same for leaves of one cause, or of any, with these parameters."""
    lives = lifetimes(rows)
    thinned = CURVE_ERROR in tree.certificate_.facts
    hazard = rows.weight * row_hazards(lives)
    prior = getattr(leaves, "prior", 0.0)
    counts: Pairs = []
    ratios: Pairs = []
    curves: Pairs = []
    follow_up: Pairs = []
    for node, leaf in zip(tree.tree_.leaves.tolist(), leaves.statistics, strict=True):
        inside = reached[:, node]
        own, at = lives.of(inside), f"of leaf {node}:"
        events = float((own.weight * own.event).sum())
        counts += [
            (f"node {at}", node, leaf.node),
            (f"rows {at}", int(inside.sum()), leaf.n_samples),
            (f"events {at}", int(own.event.sum()), leaf.n_events),
            (f"weight {at}", float(own.weight.sum()), leaf.weight),
            (f"weight of events {at}", events, leaf.events),
        ]
        total = float(hazard[inside].sum())
        ratios += [(f"hazard {at}", total, leaf.hazard)]
        ratios += [(f"theta {at}", thetas(events, total, prior), leaf.theta)]
        stored = leaf.follow_up
        if not thinned:
            happened = own.happened
            curves += [
                (f"event times {at}", own.times[happened], leaf.event_times),
                (f"Kaplan–Meier {at}", own.kaplan_meier[happened], leaf.kaplan_meier),
                (f"Nelson–Aalen {at}", own.nelson_aalen[happened], leaf.nelson_aalen),
                (f"at risk {at}", own.effective_at_risk[happened], leaf.at_risk),
            ]
            deaths = own.left(own.event.astype(np.float64)).astype(int)
            gone = own.left(np.ones(own.time.size)).astype(int)
            follow_up += [
                (f"times {at}", own.times, stored.times),
                (f"events at times {at}", deaths, stored.events),
                (f"censored at times {at}", gone - deaths, stored.censored),
            ]
            if stored.entry_times is not None and own.entry is not None:
                follow_up.append((f"entries {at}", np.sort(own.entry), stored.entry_times))
    checks.same("events", f"{int(lives.event.sum())} events", counts)
    checks.same("relative hazards", f"theta of {len(leaves.statistics)} leaves", ratios)
    if thinned:
        why = "the file keeps thinned curves: " + dict(tree.certificate_.remarks)["curves"]
        for name in ("baseline", "curves of leaves", "follow-up"):
            checks.skip(name, "", why)
    else:
        baseline = leaves.baseline
        pairs: Pairs = [
            ("times", lives.times, baseline.unique_times),
            ("event times", lives.times[lives.happened], baseline.event_times),
            ("Nelson–Aalen", lives.nelson_aalen, baseline.cumulative_hazard),
        ]
        checks.same("baseline", f"at {lives.times.size} times", pairs)
        checks.same(
            "curves of leaves", "Kaplan–Meier, Nelson–Aalen, numbers at risk", curves, scale=1.0
        )
        checks.same("follow-up", "events and censorings at all times", follow_up)
    if isinstance(leaves, StepLeaves):
        _check_predictions(tree, leaves, parameters, rows, hazard, reached, checks)
    else:
        checks.skip("predictions", "", "models of the leaves were trained by optimisation")


def _check_predictions(
    tree: Any,
    leaves: Any,
    parameters: Mapping[str, Any],
    rows: Rows,
    hazard: Floats,
    reached: Bools,
    checks: Checks,
) -> None:
    """Predicted curves at all training times, and the values that compare groups."""
    lives = lifetimes(rows)
    brier = parameters.get("objective") == "brier"
    curve = parameters["leaf_curve"]
    if curve == "auto":
        curve = "kaplan-meier" if brier else "proportional"
    shrinkage = parameters["shrinkage"]
    if isinstance(shrinkage, str):
        shrinkage = 20.0 if brier and parameters["fairness"] is None else 0.0
    prior = 0.0 if brier else prior_of(parameters["prior"])
    pairs: Pairs = [
        ("curve", curve, leaves.curve),
        ("shrinkage", float(shrinkage), float(leaves.shrinkage)),
        ("prior", prior, float(leaves.prior)),
        ("risk by theta", not brier, bool(leaves.by_theta)),
    ]
    theta = _thetas(tree, rows, hazard, reached, 0.0 if brier else float(shrinkage), prior)
    pairs.append(("theta", theta, leaves.theta))
    survival, lasting = None, np.ones(lives.times.size, dtype=bool)
    if CURVE_ERROR not in tree.certificate_.facts:
        if curve == "proportional":
            survival = np.exp(-np.outer(theta, lives.nelson_aalen))
        elif curve == "kaplan-meier":
            survival = _kaplan_meier(tree, lives, reached, float(shrinkage))
        else:
            survival = _brier_optimal(tree, lives, reached, float(shrinkage))
            # In steps too short to affect the score, a curve may have any value.
            lasting = np.append(brier_terms(lives)[0][:-1] > 0, True)
        pairs.append(("survival", survival[:, lasting], leaves.survival_at(lives.times[lasting])))
    checks.same("predictions", f"{curve} curves", pairs, scale=1.0)
    groups = tree.certificate_.groups
    if groups is not None and survival is not None:
        tau = parameters["fairness"].tau
        tau = float(lives.time.max() if tau is None else tau)
        mean = restricted_mean(lives.times, survival, tau)
        of_row = reached[:, tree.tree_.leaves] @ mean
        check_groups(rows, of_row, [np.ones(len(of_row), dtype=bool)], groups, checks)


def _thetas(
    tree: Any, rows: Rows, hazard: Floats, reached: Bools, shrinkage: float, prior: float
) -> Floats:
    """The predicted θ."""
    events = (rows.weight * rows.facts["event"]) @ reached
    sums = hazard @ reached
    if shrinkage == 0:
        return thetas(events, sums, prior)[tree.tree_.leaves]

    def value(node: int, parent: float) -> float:
        count = sums[node] + shrinkage
        return float(events[node] / count + shrinkage / count * parent)

    return np.array(down(tree, value(0, 1.0), value))


def _kaplan_meier(tree: Any, lives: Lifetimes, reached: Bools, shrinkage: float) -> Floats:
    """Kaplan–Meier of the leaves, shrunk by λ pseudo-rows with the curve of the parent."""
    if shrinkage == 0:
        of_leaves = (replace(lives, weight=lives.weight * reached[:, k]) for k in tree.tree_.leaves)
        return np.array([leaf.kaplan_meier for leaf in of_leaves])
    times = lives.times

    def counts(node: int) -> tuple[Floats, Floats]:
        weight = lives.weight * reached[:, node]
        died, at_risk = lives.left(weight * lives.event), lives.at_risk(weight)
        return died, np.maximum(at_risk, died)

    def hazard(died: Floats, at_risk: Floats) -> Floats:
        share = np.divide(died, at_risk, out=np.zeros(times.size), where=died > 0)
        return np.minimum(share, 1.0)

    def value(node: int, parent: Floats) -> Floats:
        died, at_risk = counts(node)
        pseudo = shrinkage * np.append(1.0, np.cumprod(1 - parent)[:-1])
        return hazard(died + pseudo * parent, at_risk + pseudo)

    hazards = down(tree, hazard(*counts(0)), value)
    return np.cumprod(1 - np.array(hazards), axis=1)


def _brier_optimal(tree: Any, lives: Lifetimes, reached: Bools, shrinkage: float) -> Floats:
    """Curves of least Brier score, shrunk by λ times the squared distance to the parent's."""
    score = Brier(lives, "brier-optimal")
    every_dead, every_alive = score.terms(score.sums(reached.T))

    def value(node: int, parent: Floats) -> Floats:
        dead = every_dead[node] + shrinkage * (1 - parent)
        return antitonic_curve(dead, every_alive[node] + shrinkage * parent, score.share)

    root = antitonic_curve(every_dead[0], every_alive[0], score.share)
    return np.array(down(tree, root, value))
