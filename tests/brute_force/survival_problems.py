"""Random problems of survival trees."""

import inspect
import itertools
import math
from dataclasses import replace
from fractions import Fraction

import exhaustive as plain
import numpy as np
import shrunk_plainly
from drawing import (
    Chosen,
    Problem,
    Ranges,
    at_least,
    balanced,
    front_size,
    one_of,
    prepared,
    remembering,
    rows,
    shared_parameters,
    shrinkage,
    weights,
)
from number_problems import exact_sum

from bristlecone import (
    BinaryEncoder,
    GreedySurvivalTree,
    OptimalSurvivalTree,
    RmstParity,
)


def survival(rng, objective=None):
    objective = objective or one_of(rng, "likelihood", "brier")
    fair = rng.random() < 0.25
    parameters = shared_parameters(rng)
    X = rows(rng, front_size(rng, parameters, False) if fair else 5)
    n = len(X)
    given, kept = weights(rng, n)
    ranges = Ranges(rng)
    given = ranges.weights(given, n)
    kept, weight = prepared(rng, parameters, X, given)
    time = one_of(
        rng,
        rng.integers(1, 5, n).astype(float),
        rng.integers(0, 9, n).astype(float),
        rng.exponential(10.0, n),
        np.round(rng.exponential(2.0, n), 1) + 0.1,
    )
    time = ranges.values(time)
    event = rng.random(n) < one_of(rng, 0.3, 0.7, 1.0)
    first = int(np.flatnonzero(kept)[0])
    event[first], time[first] = True, max(time[first], 1.0)
    fit = {"y": (event, time), "sample_weight": given}
    entry = np.full(n, -1.0)
    if objective == "likelihood" and rng.random() < 0.4:
        entry = np.floor(time * rng.uniform(0, 0.9, n))
        entry = np.where(entry < time, entry, 0.0)
        time = np.where(time > entry, time, entry + 1)
        y = np.empty(n, dtype=[("dead", bool), ("until", float), ("entry", float)])
        y["dead"], y["until"], y["entry"] = event, time, entry
        fit["y"] = y
    grid = None
    t, e, v = time[kept], event[kept], entry[kept]
    if objective == "brier" and rng.random() < 0.3:
        grid = np.unique(rng.choice(np.concatenate([time[kept] + 0.5, time[kept]]), 3))
        grid = np.append(grid[grid < time[first]], np.unique([time[first], time[first] + 2.0]))
        above = np.searchsorted(grid, t)
        e = e & (above < len(grid))
        t = grid[np.minimum(above, len(grid) - 1)]
    min_events, least = minimum_of_events(rng, int(e.sum()))
    prior = one_of(rng, 0.0, 0, 0.5, 3, 20.0, "auto") if objective == "likelihood" else 0.0
    if objective == "brier":
        prior = one_of(rng, 0.0, 0, "auto")
    pseudo = 10.0 if prior == "auto" else float(prior)
    curves = {"likelihood": ("auto", "proportional", "kaplan-meier"),
              "brier": ("auto", "kaplan-meier", "brier-optimal")}[objective]  # fmt: skip
    curve = one_of(rng, *(curves[:2] if fair else curves))
    group, fairness = None, None
    if fair:
        fairness, group = parity(rng, X, kept, fit, t)
    parameters |= {
        "objective": objective,
        "leaf_curve": curve,
        "min_events_leaf": min_events,
        "prior": prior,
        "shrinkage": one_of(rng.spawn(1)[0], 0, "auto") if fair else shrinkage(rng, "auto"),
        "time_grid": grid if grid is None or rng.random() < 0.5 else grid.tolist(),
        "fairness": fairness,
    }
    leaf_terms = None
    if objective == "likelihood":
        exact_hazard, exact_steps = plain.hazards(t, e, v, weight)
        hazard = np.array([float(value) for value in exact_hazard])
        steps = {time: float(value) for time, value in exact_steps.items()}
        likeness = plain.Likelihood(exact_hazard, e, weight, pseudo)
        leaf_cost, leaf_terms = likeness.cost, likeness.terms
        total_steps = list(itertools.accumulate(map(plain.decimal_of, exact_steps.values())))

        def mean(rows, tau):
            theta = likeness.theta(rows)
            survival = [(-theta * total).exp() for total in total_steps]
            return plain.restricted_mean(np.array(list(steps)), survival, tau)
    else:
        brier = plain.Brier(t, e, weight)
        best = curve == "brier-optimal"

        def leaf_cost(rows):
            return brier.loss(rows, brier.best_curve(rows) if best else brier.kaplan_meier(rows))

        def mean(rows, tau):
            return plain.restricted_mean(brier.times, brier.kaplan_meier(rows), tau)

    cost_of = remembering(lambda rows: leaf_cost(rows) if e[rows].sum() >= least else math.inf)
    likelihood = objective == "likelihood"
    amount = parameters["shrinkage"]
    if amount == "auto":
        amount = 0.0 if fair or likelihood else 20.0
    times = np.unique(t)

    def theta_of(path):
        if amount == 0:
            return float(likeness.theta(path[-1]))
        events, sums = weight * e, weight * hazard
        return shrunk_plainly.mean(
            path, lambda r: events[r].sum(), lambda r: sums[r].sum(), amount, above=1.0
        )

    def terms(rows):
        return [part.astype(float) for part in brier.terms(rows)]

    def curve_of(path):
        """Survival and cumulative hazard that leaves predict at the training times."""
        if likelihood and curve != "kaplan-meier":
            total = np.cumsum([steps.get(u, 0.0) for u in times])
            return np.exp(-theta_of(path) * total), theta_of(path) * total
        if curve != "brier-optimal":
            return shrunk_plainly.kaplan_meier(path, t, e, v, weight, times, amount)
        survival = shrunk_plainly.brier_optimal(path, terms, brier.share.astype(float), amount)
        before = np.append(1.0, survival[:-1])
        falls = np.where(before > 0, 1 - survival / np.where(before > 0, before, 1), 0.0)
        return survival, np.cumsum(falls)

    def predictions(model):
        """Predictions in every leaf, true values, and terms; both are differences of terms.

        Survival is stored as doubles near 1, and a small hazard is a difference of them.
        """
        near_one = 1e-6
        pairs = [(model.shrinkage_, amount)]
        for path in shrunk_plainly.paths(model, X[kept]):
            first = X[kept][path[-1][:1]]
            survival, total = curve_of(path)
            risk = theta_of(path) if likelihood else total[np.isin(times, t[e])].sum()
            said = model.predict_survival_function(first, times=times)[0]
            pairs += [(*both, near_one) for both in zip(said, survival, strict=True)]
            said = model.predict_cumulative_hazard_function(first, times=times)[0]
            pairs += [(*both, near_one) for both in zip(said, total, strict=True)]
            pairs.append((model.predict(first)[0], risk, near_one))
        return pairs

    common = dict(
        constant=frozenset(["objective", "time_grid"] if likelihood else ["objective"]),
        elsewhere=frozenset(["reference_loss"] if likelihood else []),
        estimator=OptimalSurvivalTree, parameters=parameters, X=X, fit=fit, kept=kept,
        weight=weight, leaf_cost=cost_of, total=exact_sum(weight), also=predictions,
        wide=ranges.wide, leaf_terms=leaf_terms,
    )  # fmt: skip
    if fairness is None:
        problem = Problem(**common)
        if objective == "brier" and rng.random() < 0.2:
            loss = np.zeros(n)
            loss[kept] = rng.uniform(0, 0.3, kept.sum())
            fit["reference_loss"] = loss
            problem.reference = float(np.average(loss[kept], weights=weight))
        return problem
    tau = float(t.max()) if fairness.tau is None else fairness.tau
    side = group[kept]
    w, _ = plain.whole(weight)
    masses = [int(w[side == g].sum()) for g in (0, 1)]
    share = plain.signed_shares(w, side, masses)
    parts = plain.decimal_of(masses[0] * masses[1])

    def outcome(rows):
        differ = mean(rows, tau) * plain.decimal_of(int(share[rows].sum())) / parts
        terms = leaf_terms(rows) if leaf_terms else cost_of(rows)
        return (cost_of(rows), plain.units(differ)), terms

    def score(outcome, tolerance):
        # The limit holds up to rounding of the curves (docs/maths/fair-survival.md).
        rounding = Fraction(8 * len(np.unique(t)) + 128, 2**53) * Fraction(tau)
        most = Fraction(fairness.limit) + tolerance * rounding
        fine = outcome[0] < math.inf and abs(plain.amount(outcome[1])) <= most
        return plain.amount(outcome[0]) / exact_sum(weight) if fine else math.inf

    def row_outcome(model):
        node = model.apply(X)[kept]
        of_leaves = [outcome(np.flatnonzero(node == leaf)) for leaf in np.unique(node)]
        costs, terms = zip(*of_leaves, strict=True)
        return [sum(parts) for parts in zip(*costs, strict=True)], sum(terms)

    def also(model):
        of_tree = float(plain.amount(row_outcome(model)[0][1]))
        reported = (model.group_rmst_[1] - model.group_rmst_[0], of_tree, tau)
        return [reported, *predictions(model)]

    return Chosen(
        **{**common, "also": also},
        leaf_outcomes=lambda rows: [outcome(rows)] if cost_of(rows) < math.inf else [],
        unit=Fraction(1, plain.UNIT),
        score=score,
        row_outcome=row_outcome,
    )


def greedy(rng):
    """A greedy tree, without a proof, whose leaves and numbers can be verified."""
    while True:
        problem = survival(rng, "likelihood")
        # It does not support delayed entry.
        if problem.parameters["fairness"] is None and isinstance(problem.fit["y"], tuple):
            break
    names = set(inspect.signature(GreedySurvivalTree).parameters)
    known = {name: value for name, value in problem.parameters.items() if name in names}
    encoder = one_of(rng, "auto", None, BinaryEncoder(thresholds="all"))
    known |= {"criterion": one_of(rng, "likelihood", "logrank"), "encoder": encoder}
    X = problem.X if isinstance(encoder, str) else problem.X.astype(float)
    return replace(problem, estimator=GreedySurvivalTree, parameters=known, X=X)


def minimum_of_events(rng, n_events):
    """A minimum of events as a parameter, and the count that it means."""
    choices = [1, 2, 3, 0.2, 0.4, "auto"]
    value = one_of(rng, None, None, *choices)
    if isinstance(value, int):
        value = min(value, n_events)
    if value is None:
        return value, 0
    return value, min(5, n_events) if value == "auto" else at_least(value, n_events)


def listed(rng, objective):
    """A problem with few trees, for lists of optimal trees."""
    while True:
        problem = survival(rng, objective)
        columns = problem.features.shape[1]
        few = columns <= 3 or problem.depth <= 2
        if few and problem.parameters["fairness"] is None and "reference_loss" not in problem.fit:
            return problem


def parity(rng, X, kept, fit, time):
    """A limit and its groups, 0 or 1 for every row."""
    named, group = None, None
    for column in rng.permutation(X.shape[1]):
        if rng.random() < 0.4 and len(np.unique(X[kept, column])) == 2:
            named, group = int(column), X[:, column].astype(int)
            break
    if group is None:
        group = balanced(rng, len(X))
        group[np.flatnonzero(kept)[:2]] = [0, 1]
        fit["sensitive_features"] = np.array(["a", "b"])[group]
    tau = one_of(rng, None, float(time.max()) / 2, float(time.max()) * 1.5)
    limit = one_of(rng, 0.0, 0, 0.05, 0.2, 1.0, 100.0) * one_of(rng, 1, float(time.max()))
    return RmstParity(limit, tau=tau, sensitive_feature=named), group
