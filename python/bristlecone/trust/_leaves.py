"""What leaves know and predict, from their rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._leaves.base import SurvivalLeaves
from bristlecone._leaves.causes import IncidenceLeaves
from bristlecone._leaves.labels import ClassLeaves, LabelLeaves
from bristlecone._leaves.means import LEVELS, MeanLeaves
from bristlecone._leaves.own import OwnLeaves
from bristlecone._leaves.survival import StepLeaves
from bristlecone._model.survival import CURVE_ERROR
from bristlecone.trust._compare import Checks
from bristlecone.trust._exact import Column
from bristlecone.trust._losses import fair_limit, path_prices
from bristlecone.trust._plain import Lifetimes, antitonic_curve, restricted_mean
from bristlecone.trust._rows import Rows
from bristlecone.trust._survival import brier_terms, lifetimes, of_cause, prior_of, row_hazards

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Pairs = list[tuple[Any, ...]]


def check_leaves(tree: Any, rows: Rows, reached: Bools, checks: Checks) -> None:
    """Check the leaves of a tree, whatever their kind; ``reached`` are the rows of every node."""
    leaves = tree.leaves_
    if isinstance(leaves, SurvivalLeaves):
        _check_survival(tree, rows, reached, checks)
    elif isinstance(leaves, ClassLeaves):
        _check_classes(tree, rows, reached, checks)
    elif isinstance(leaves, LabelLeaves):
        _check_outcomes(tree, rows, reached, checks)
    elif isinstance(leaves, MeanLeaves):
        _check_means(tree, rows, reached, checks)
    elif isinstance(leaves, OwnLeaves):
        _check_own(tree, rows, reached, checks)
    elif isinstance(leaves, IncidenceLeaves):
        _check_causes(tree, rows, reached, checks)


def _check_causes(tree: Any, rows: Rows, reached: Bools, checks: Checks) -> None:
    """Check the leaves as those of survival trees, one per cause, and the incidences."""
    leaves, found = tree.leaves_, tree.certificate_.parameters
    parts = [(rows, leaves.any_cause, "kaplan-meier", 0.0, "any cause")]
    for k, one in enumerate(leaves.of_cause, start=1):
        parts.append((of_cause(rows, k), one, "proportional", found["shrinkage"], f"cause {k}"))
    for own, part, curve, shrinkage, which in parts:
        parameters = {"leaf_curve": curve, "shrinkage": shrinkage, "prior": found["prior"]}
        certificate = SimpleNamespace(parameters=parameters, facts={}, groups=None)
        alone = SimpleNamespace(tree_=tree.tree_, leaves_=part, certificate_=certificate)
        first = len(checks.made)
        _check_survival(alone, own, reached, checks)
        checks.made[first:] = [
            replace(check, name=f"{check.name}, {which}") for check in checks.made[first:]
        ]
    times = np.unique(rows.facts["time"])
    pairs: Pairs = [("curve", found["leaf_curve"], leaves.curve)]
    for place, node in enumerate(tree.tree_.leaves.tolist()):
        if leaves.curve == "proportional":
            own_hazard = [
                float(one.theta[place]) * np.diff(lifetimes(own).nelson_aalen, prepend=0.0)
                for (own, *_), one in zip(parts[1:], leaves.of_cause, strict=True)
            ]
            total = np.sum(own_hazard, axis=0)
            survival = np.exp(-total.cumsum())
            falls = -np.diff(survival, prepend=1.0)
            share = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
            rises = [hazard * share * falls for hazard in own_hazard]
        else:
            inside = [lifetimes(own).of(reached[:, node]) for own, *_ in parts]
            survival = inside[0].kaplan_meier
            before = np.append(1.0, survival[:-1])
            rises = [_spread(one.times, before * one.hazard, times) for one in inside[1:]]
        for k, rise in enumerate(rises, start=1):
            expected = rise.cumsum()
            pairs.append(
                (f"cause {k} in leaf {node}:", expected, leaves.incidence_at(k, times)[place])
            )
    checks.same("incidences", f"{leaves.curve} curves", pairs, scale=1.0)


def _spread(times: Floats, values: Floats, among: Floats) -> Floats:
    """Values at some of the times, 0 at the others."""
    found = np.zeros(among.size)
    found[np.searchsorted(among, times)] = values
    return found


def down(tree: Any, root: Any, value: Callable[[int, Any], Any]) -> list[Any]:
    """Values of the leaves: ``value(node, value of the parent)`` from the root down."""
    nodes, of_node = tree.tree_, {0: root}
    for node in np.flatnonzero(~nodes.is_leaf).tolist():
        for child in (int(nodes.children_left[node]), int(nodes.children_right[node])):
            of_node[child] = value(child, of_node[node])
    return [of_node[node] for node in nodes.leaves.tolist()]


def _check_survival(tree: Any, rows: Rows, reached: Bools, checks: Checks) -> None:
    leaves, lives = tree.leaves_, lifetimes(rows)
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
        ratios += [(f"theta {at}", _theta(events, total, prior), leaf.theta)]
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
        _check_predictions(tree, rows, lives, hazard, reached, checks, thinned)
    else:
        checks.skip("predictions", "", "models of the leaves were trained by optimisation")


def _theta(events: float, hazard: float, prior: float) -> float:
    if hazard == 0:
        return 1.0
    if prior > 0:
        return (events + prior) / (hazard + prior)
    return (events or 0.5) / hazard


def _check_predictions(
    tree: Any,
    rows: Rows,
    lives: Lifetimes,
    hazard: Floats,
    reached: Bools,
    checks: Checks,
    thinned: bool,
) -> None:
    """Curves that are predicted, at all training times, and the groups they are compared by."""
    leaves, parameters = tree.leaves_, tree.certificate_.parameters
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
    if not thinned:
        if curve == "proportional":
            survival = np.exp(-np.outer(theta, lives.nelson_aalen))
        elif curve == "kaplan-meier":
            survival = _kaplan_meier(tree, lives, reached, float(shrinkage))
        else:
            survival = _brier_optimal(tree, lives, reached, float(shrinkage))
            # In steps so short that they are no share of the score a curve may be anything.
            lasting = np.append(brier_terms(lives)[0][:-1] > 0, True)
        pairs.append(("survival", survival[:, lasting], leaves.survival_at(lives.times[lasting])))
    checks.same("predictions", f"{curve} curves", pairs, scale=1.0)
    groups = tree.certificate_.groups
    if groups is not None and survival is not None:
        tau = parameters["fairness"].tau
        tau = float(lives.time.max() if tau is None else tau)
        mean = restricted_mean(lives.times, survival, tau)
        of_row = reached[:, tree.tree_.leaves] @ mean
        _check_groups(rows, of_row, np.ones(len(of_row), dtype=bool), groups, checks)


def _check_groups(rows: Rows, of_row: Floats, compared: Bools, groups: Any, checks: Checks) -> None:
    sides = [rows.weight * (compared & (rows.facts["group"] == side)) for side in (0, 1)]
    means = [of_row @ weight / weight.sum() for weight in sides]
    pairs: Pairs = [("", rows.facts["groups"], groups.groups)]
    pairs.append(("value of group", np.array(means), groups.values))
    checks.same("groups", ", ".join(map(str, rows.facts["groups"].tolist())), pairs)


def _thetas(
    tree: Any, rows: Rows, hazard: Floats, reached: Bools, shrinkage: float, prior: float
) -> Floats:
    """θ as it is predicted."""
    events = (rows.weight * rows.facts["event"]) @ reached
    sums = hazard @ reached
    if shrinkage == 0:
        return np.array(
            [_theta(events[node], sums[node], prior) for node in tree.tree_.leaves.tolist()]
        )

    def value(node: int, parent: float) -> float:
        count = sums[node] + shrinkage
        return float(events[node] / count + shrinkage / count * parent)

    return np.array(down(tree, value(0, 1.0), value))


def _kaplan_meier(tree: Any, lives: Lifetimes, reached: Bools, shrinkage: float) -> Floats:
    """Kaplan–Meier of the leaves, shrunk: λ pseudo-rows with the curve of the parent."""
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
    """Curves of least Brier score, shrunk: λ times the squared distance to the parent's."""
    share, inverse = brier_terms(lives)

    def terms(node: int) -> tuple[Floats, Floats]:
        weight = lives.weight * reached[:, node]
        at_risk = lives.at_risk(weight)
        dead = (lives.left(weight * lives.event) * inverse).cumsum()
        return dead, np.append(at_risk[1:], 0.0) * inverse

    def value(node: int, parent: Floats) -> Floats:
        dead, alive = terms(node)
        return antitonic_curve(dead + shrinkage * (1 - parent), alive + shrinkage * parent, share)

    return np.array(down(tree, antitonic_curve(*terms(0), share), value))


def _check_classes(tree: Any, rows: Rows, reached: Bools, checks: Checks) -> None:
    leaves, parameters = tree.leaves_, tree.certificate_.parameters
    codes, n_classes = rows.facts["labels"], len(rows.facts["classes"])
    nodes = tree.tree_
    weights = (reached * rows.weight[:, None]).T @ (codes[:, None] == np.arange(n_classes))
    balanced = parameters.get("objective") == "balanced-accuracy"
    if balanced:
        weights = weights / np.where(weights[0] > 0, weights[0], 1.0)
    size = weights.sum(axis=1, keepdims=True)
    shrinkage = float(parameters["shrinkage"])
    share = weights / size
    if shrinkage > 0:
        unit = rows.total / size[0] if balanced else 1.0

        def value(node: int, parent: Floats) -> Floats:
            count = size[node] * unit + shrinkage
            return np.asarray(weights[node] * unit / count + shrinkage / count * parent)

        share = np.array(down(tree, share[0], value))
    else:
        share = share[nodes.leaves]
    pairs: Pairs = [
        ("weight of [leaf, class]", weights[nodes.leaves], leaves.values),
        ("shrinkage", shrinkage, float(leaves.shrinkage)),
        ("share of [leaf, class]", share, leaves.shares),
    ]
    if type(tree).__name__ == "CostSensitiveTreeClassifier":
        pairs.append(("price of leaf", path_prices(tree), leaves.prices))
    checks.same("shares of classes", f"{n_classes} classes", pairs)
    objective = parameters.get("objective")
    if objective in ("gini", "entropy"):
        # Other objectives follow from the labels.
        best = weights[nodes.leaves].max(axis=1)
        given = weights[nodes.leaves, leaves.label]
        checks.same("labels", "the most frequent class", [("weight of its label", best, given)])
    groups = tree.certificate_.groups
    if groups is not None:
        compared = np.ones(len(codes), dtype=bool)
        if fair_limit(parameters)[0] == "equality-of-opportunity":
            compared = codes == 1
        predicted = reached[:, nodes.leaves] @ leaves.label.astype(np.float64)
        _check_groups(rows, predicted, compared, groups, checks)


def _means(values: Floats, weight: Floats, members: Bools) -> tuple[Floats, Floats]:
    """Weighted mean and mean size of values in groups of rows (m, n), summed exactly."""
    mass, own = Column.of(weight), Column.of(values)
    first, size = mass * own, mass * Column(np.abs(own.whole), own.unit)
    found = []
    for group in members:
        total = mass.sum(group)
        found.append((float(first.sum(group) / total), float(size.sum(group) / total)))
    means, sizes = np.array(found).T
    return means, sizes


def _variances(values: Floats, weight: Floats, members: Bools) -> Floats:
    """Weighted variance of values in groups of rows (m, n), summed exactly."""
    mass, own = Column.of(weight), Column.of(values)
    first = mass * own
    second, found = first * own, []
    for group in members:
        total = mass.sum(group)
        found.append(float(second.sum(group) / total - (first.sum(group) / total) ** 2))
    return np.array(found)


def _check_outcomes(tree: Any, rows: Rows, reached: Bools, checks: Checks) -> None:
    inside, rewards = reached[:, tree.tree_.leaves].T, rows.facts["rewards"]
    found = [_means(one, rows.weight, inside) for one in rewards.T]
    values, sizes = (np.stack(of_treatment, axis=1) for of_treatment in zip(*found, strict=True))
    pairs: Pairs = [("mean outcome of [leaf, treatment]", values, tree.leaves_.values, sizes)]
    checks.same("mean outcomes", f"{values.shape[1]} treatments", pairs)


def _check_means(tree: Any, rows: Rows, reached: Bools, checks: Checks) -> None:
    leaves, nodes, target = tree.leaves_, tree.tree_, rows.facts["target"]
    shrinkage = float(tree.certificate_.parameters["shrinkage"])
    size = rows.weight @ reached
    # Rates count by what they were exposed to.
    weight = rows.weight * rows.facts.get("exposure", 1.0)
    means, sizes = _means(target, weight, reached.T)
    variance = _variances(target, weight, reached[:, nodes.leaves].T)
    predicted, scale = means[nodes.leaves], sizes[nodes.leaves]
    if shrinkage > 0:

        def value(node: int, parent: float) -> float:
            count = size[node] + shrinkage
            return float(means[node] * size[node] / count + shrinkage / count * parent)

        predicted = np.array(down(tree, means[0], value))
        scale = np.maximum(scale, sizes[0])
    quantiles = [_quantiles(target[inside], weight[inside]) for inside in reached.T]
    pairs: Pairs = [
        ("mean of leaf", means[nodes.leaves], leaves.mean, sizes[nodes.leaves]),
        ("shrinkage", shrinkage, float(leaves.shrinkage)),
        ("prediction of leaf", predicted, leaves.predicted, scale),
        ("quantile of [leaf, level]", np.array(quantiles)[nodes.leaves], leaves.quantiles),
    ]
    checks.same("means", f"of {nodes.n_leaves} leaves", pairs)
    pairs = [("of leaf", variance, leaves.variance)]
    checks.same("variances", f"of {nodes.n_leaves} leaves", pairs)


def _quantiles(values: Floats, weight: Floats) -> list[float]:
    """Least value at or below which each share of the weight lies."""
    order = np.argsort(values, kind="stable")
    values, reached = values[order], np.cumsum(weight[order])
    found = []
    for level in LEVELS:
        wanted = level * reached[-1] * (1 - 1e-12)
        found.append(float(values[reached >= wanted][0]))
    return found


def _check_own(tree: Any, rows: Rows, reached: Bools, checks: Checks) -> None:
    leaves, task = tree.leaves_, tree.certificate_.parameters["task"]
    statistics = rows.facts["statistics"]
    sums = np.asfortranarray(reached[:, tree.tree_.leaves].T @ statistics)
    cost = np.asarray(task.leaf_cost(sums), dtype=np.float64)
    pairs: Pairs = [("sum of [leaf, statistic]", sums, leaves.sums), ("cost", cost, leaves.cost)]
    if leaves.value is not None:
        pairs.append(("value of leaf", np.asarray(task.leaf_value(sums)), leaves.value))
    # Code of the user's own may magnify the rounding of its sums.
    scale = np.abs(statistics).sum(axis=0)
    pairs[0] = (*pairs[0], scale)
    checks.same("leaves of the task", f"{len(cost)} leaves", pairs, scale=float(scale.max()))
