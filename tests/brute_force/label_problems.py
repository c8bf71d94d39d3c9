"""Random problems of trees with labels: classes, costs, fairness, policies."""

import math
import re
import warnings
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import exhaustive as plain
import numpy as np
import shrunk_plainly
from drawing import (
    Chosen,
    Problem,
    Ranges,
    balanced,
    distinct_columns,
    few_weights,
    front_size,
    numbers,
    one_of,
    prepared,
    related,
    rows,
    shared_parameters,
    shrinkage,
    weights,
)
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression
from sklearn.naive_bayes import BernoulliNB

from bristlecone import (
    CostSensitiveTreeClassifier,
    DemographicParity,
    EqualityOfOpportunity,
    EqualizedOdds,
    FairTreeClassifier,
    OptimalTreeClassifier,
    PolicyTree,
)
from bristlecone.exceptions import OverlapWarning

NAMES = (
    lambda labels: labels,
    lambda labels: np.array(["a", "b", "c", "d"])[labels],
    lambda labels: labels * 2 - 1,
)

# Propensity scores of a trial, by the number of its treatments.
SHARES = {2: ([0.5, 0.5], [0.25, 0.75]), 3: ([0.25, 0.25, 0.5], [0.5, 0.25, 0.25])}

# Largest change of a share of weights by rounding a limit and the weights to doubles.
ROUNDED = Fraction(1, 2**51)


def classes_kept(rng, X, given, n_classes):
    """Labels such that every class has a kept row; else weights are omitted."""
    y = related(rng, X, n_classes)
    kept = np.ones(len(X), dtype=bool) if given is None else given > 0
    y[np.flatnonzero(kept)[:n_classes]] = np.arange(n_classes)
    return y


def shares(amount, X, labels, weight, n_classes):
    """A function of a model that returns predicted and true shares in every leaf."""

    def inside(rows):
        return np.bincount(labels[rows], weight[rows], n_classes)

    def reported(model):
        pairs = [(model.shrinkage_, amount)]
        for path in shrunk_plainly.paths(model, X):
            first = X[path[-1][:1]]
            true = shrunk_plainly.mean(path, inside, lambda rows: weight[rows].sum(), amount)
            pairs += zip(model.predict_proba(first)[0], true, strict=True)
        return pairs

    return reported


def classification(rng, objectives):
    objective = one_of(rng, *objectives)
    parameters = shared_parameters(rng)
    by_front = objective in ("f1", "mcc")
    n_classes = 2 if by_front else one_of(rng, 2, 2, 3)
    # Two classes have equal weights, and nothing else breaks the tie.
    even = rng.random() < 0.5
    counted = even or rng.random() < 0.6
    X = rows(rng, front_size(rng, parameters, counted) if by_front else 5)
    given, kept = few_weights(rng, X) if by_front and counted else weights(rng, len(X))
    if even:
        X = X[len(X) % 2 :]
        given, parameters["leaf_penalty"] = None, one_of(rng, 0.0, 0.0, 0.02)
        parameters["max_depth"] = 2 if parameters["max_depth"] is None else parameters["max_depth"]
    ranges = Ranges(rng)
    given = ranges.weights(given, len(X), few=by_front)
    kept, weight = prepared(rng, parameters, X, given)
    labels = classes_kept(rng, X, given, n_classes)
    if even:
        labels = rng.permutation(np.arange(len(X)) % n_classes)
    y = one_of(rng, *NAMES)(labels)
    classes = np.unique(y).tolist()
    chosen = {classes[0]: 2.0} if counted else {classes[0]: 0.7, classes[1]: 1.9}
    class_weight = one_of(rng, None, None, None, "balanced", chosen)
    class_weight = None if even else class_weight
    amount = shrinkage(rng)
    parameters |= {"objective": objective, "class_weight": class_weight, "shrinkage": amount}
    labels = labels[kept]
    if class_weight == "balanced":
        of_class = np.bincount(labels, weight)
        weight = weight * (of_class.sum() / (n_classes * of_class))[labels]
    elif class_weight:
        weight = weight * np.array([class_weight.get(name, 1.0) for name in classes])[labels]
    w, unit = plain.whole(weight)

    def inside(rows):
        return [int(w[rows][labels[rows] == k].sum()) for k in range(n_classes)]

    mass = inside(np.arange(len(labels)))

    def leaf_cost(rows):
        of_class = inside(rows)
        own = sum(of_class)
        if objective == "balanced-accuracy":
            errors = [Fraction(one, all_of) for one, all_of in zip(of_class, mass, strict=True)]
            return plain.units((sum(errors) - max(errors)) / n_classes)
        if objective == "gini":
            return plain.units(unit * Fraction(own**2 - sum(one**2 for one in of_class), own))
        if objective == "entropy":
            parts = [-one * (Decimal(one) / own).ln() for one in of_class if one]
            return plain.units(sum(parts) * plain.decimal_of(unit))
        return plain.units(unit * (own - max(of_class)))

    total = Fraction(1) if objective == "balanced-accuracy" else sum(mass) * unit
    # With balanced classes, the rows of each class have the same total weight.
    alike = weight
    if objective == "balanced-accuracy":
        of_class = np.bincount(labels, weight, n_classes)
        alike = (weight / of_class[labels]) * (weight.sum() / n_classes)
    fit = {"y": y, "sample_weight": given}
    features = X[kept]
    if parameters["encoder"] == "auto":
        features = features[:, distinct_columns(features)]
    common = dict(
        features=features, estimator=OptimalTreeClassifier, parameters=parameters, X=X, fit=fit,
        kept=kept, weight=weight, leaf_cost=leaf_cost, total=total, wide=ranges.wide,
        also=shares(amount, X[kept], labels, alike, n_classes),
    )  # fmt: skip
    if not by_front:
        return Problem(**common)
    measure = plain.f1 if objective == "f1" else plain.matthews

    def score(outcome, tolerance):
        return measure(*outcome, mass[1], mass[0])

    def wrong(said):
        return [(said == 1) & (labels == 0), (said == 0) & (labels == 1)]

    def leaf_outcomes(rows):
        negative, positive = inside(rows)
        return [((negative, 0), 0), ((0, positive), 0)]

    def costs_of(said):
        return [int(w[rows].sum()) for rows in wrong(said)]

    def row_outcome(model):
        return costs_of(np.searchsorted(model.classes_, model.predict(X)[kept])), 0

    return Chosen(
        **common,
        leaf_outcomes=leaf_outcomes,
        score=score,
        row_outcome=row_outcome,
        costs_of=costs_of,
        count=unit,
    )


def front(rng):
    """Two classes for ``pareto_front``, which is the same for every objective."""
    while True:
        problem = classification(rng, ("f1", "mcc"))
        if rng.random() < 0.1 or (problem.features.shape[1] > 2 and problem.depth > 1):
            break
    objective = one_of(rng, "accuracy", "balanced-accuracy", "gini", "f1", "mcc")
    changes = {"leaf_penalty": 0.0, "objective": objective}
    if problem.parameters["max_depth"] is None or rng.random() < 0.7:
        changes["max_leaf_nodes"] = one_of(rng, 3, 4, 5, 6)
    return replace(problem, parameters={**problem.parameters, **changes}, cache={})


def costs(rng):
    parameters = shared_parameters(rng)
    X = rows(rng)
    n, columns = X.shape
    n_classes = one_of(rng, 2, 3)
    given, kept = weights(rng, n)
    ranges = Ranges(rng)
    given = ranges.weights(given, n)
    kept, weight = prepared(rng, parameters, X, given)
    labels = classes_kept(rng, X, given, n_classes)
    fit = {"y": one_of(rng, *NAMES)(labels), "sample_weight": given}
    labels = labels[kept]
    matrix = one_of(rng, None, numbers(rng, (n_classes, n_classes)))
    matrix = None if matrix is None else ranges.values(matrix)
    table = (1 - np.eye(n_classes) if matrix is None else matrix)[labels]
    if rng.random() < 0.3 or ranges.wide:
        fit["costs"] = ranges.values(numbers(rng, (n, n_classes)))
        table = fit["costs"][kept]
    features, asks = X[kept], list(range(columns))
    if parameters["encoder"] == "auto":
        asks = distinct_columns(features)
        features = features[:, asks]
    paid, price = prices(rng, columns, ranges)
    amount = shrinkage(rng)
    if matrix is not None and rng.random() < 0.4:
        # By name, with classes in any order.
        names, order = np.unique(np.asarray(fit["y"])[kept]).tolist(), rng.permutation(n_classes)
        matrix = {names[k]: matrix[k, order].tolist() for k in order}
    parameters |= {"cost_matrix": matrix, "shrinkage": amount, **paid}
    predicted = shares(amount, X[kept], labels, weight, n_classes)
    (c, cost_unit), (w, weight_unit) = plain.whole(table), plain.whole(weight)
    unit = cost_unit * weight_unit

    def leaf_cost(rows):
        return plain.units(unit * (c[rows] * w[rows, None]).sum(axis=0).min())

    def said_cost(model):
        said = np.searchsorted(model.classes_, model.predict(X)[kept])
        cost = plain.units(unit * (c[np.arange(len(said)), said] * w).sum())
        return cost, cost

    def split_cost(rows, asked, column):
        each = Fraction(price({asks[c] for c in asked}, asks[column]))
        return plain.units(w[rows].sum() * weight_unit * each)

    def also(model):
        paid = model.objective_value_ - parameters["leaf_penalty"] * model.n_leaves_
        known = model.mean_cost(X[kept], fit["y"][kept], weight, costs=table)
        return [(known, paid), *predicted(model)]

    return Problem(
        CostSensitiveTreeClassifier, parameters, X, fit, kept, weight, leaf_cost,
        split_cost if paid["feature_costs"] is not None else None, w.sum() * weight_unit,
        features=features, also=also, wide=ranges.wide, said_cost=said_cost,
    )  # fmt: skip


def prices(rng, columns, ranges):
    """Parameters of prices, and the price of a column below splits on other columns."""
    if rng.random() < 0.3:
        return {"feature_costs": None}, lambda asked, column: 0.0
    scale = one_of(rng, 0.02, 0.2, 1.0)
    cost = scale * ranges.values(numbers(rng, columns), offset=False)
    cost[cost < 1e-280] = 0.0  # `fit` rejects such costs
    discount, group, origin = cost.copy(), [None] * columns, [None] * columns
    given = {"cost": cost.tolist()}
    if rng.random() < 0.7:
        group = given["group"] = [one_of(rng, None, "blood", "urine") for _ in range(columns)]
        if rng.random() < 0.8:
            discount = cost * one_of(rng, 0.0, 0.5, rng.random(columns))
            given["discounted_cost"] = discount.tolist()
    if rng.random() < 0.4:
        origin = given["origin"] = [one_of(rng, None, "x", "y") for _ in range(columns)]
    entries = [{key: values[k] for key, values in given.items()} for k in range(columns)]
    plain = [entry["cost"] if rng.random() < 0.9 else entry for entry in entries]
    paid = {"feature_costs": by_column(rng, plain if len(given) == 1 else entries, 0.0)}

    def price(asked, column):
        same = origin[column] is not None and origin[column] in {origin[c] for c in asked}
        if column in asked or same:
            return 0.0
        if group[column] is not None and group[column] in {group[c] for c in asked}:
            return discount[column]
        return cost[column]

    return paid, price


def by_column(rng, values, absent):
    """One entry per column, or a mapping from names or positions without missing entries."""
    named = {k: value for k, value in enumerate(values) if value != absent}
    return one_of(rng, values, named, {f"x{k}": value for k, value in named.items()})


PARITIES = {
    DemographicParity: (None,),
    EqualityOfOpportunity: (1,),
    EqualizedOdds: (1, 0),
}


def fair_labels(rng):
    parameters = shared_parameters(rng, seeded=False)
    counted = rng.random() < 0.6
    X = rows(rng, front_size(rng, parameters, counted))
    n = len(X)
    given, kept = few_weights(rng, X) if counted else weights(rng, n)
    ranges = Ranges(rng)
    given = ranges.weights(given, n, few=counted)
    kept, weight = prepared(rng, parameters, X, given)
    labels = classes_kept(rng, X, given, 2)
    constraint = one_of(rng, *PARITIES)
    delta = one_of(rng, 0.0, 0, 0.05, 0.1, 0.25, 1 / 3, 0.5, 1)
    fit, named, group, n_groups = {}, None, None, 2
    if rng.random() < 0.3:
        column = int(rng.integers(X.shape[1]))
        needed = (1, 0) if constraint is EqualizedOdds else (1,)
        if all(len(np.unique(X[kept & (labels == k), column])) == 2 for k in needed):
            named, group = column, X[:, column].astype(int)
    if group is None:
        first = np.flatnonzero(kept)
        n_groups = min(one_of(rng, 2, 2, 3, 4), len(first) // 2)
        group = balanced(rng, n, n_groups)
        # Every group has a row of each class.
        labels[first[: 2 * n_groups]] = np.arange(2 * n_groups) // n_groups
        group[first[: 2 * n_groups]] = np.arange(2 * n_groups) % n_groups
        names = np.array(["a", "b", "c", "d"])[group]
        forms = [group, names] + ([group == 1] if n_groups == 2 else [])
        fit["sensitive_features"] = one_of(rng, *forms)
    amount = shrinkage(rng)
    parameters["fairness"] = constraint(delta, sensitive_feature=named)
    parameters["shrinkage"] = amount
    y = one_of(rng, *NAMES)(labels)
    classes = np.unique(y).tolist()
    chosen = {classes[0]: 2.0} if counted else {classes[0]: 0.7, classes[1]: 1.9}
    class_weight = one_of(rng, None, None, "balanced", chosen)
    parameters["class_weight"] = class_weight
    fit |= {"y": y, "sample_weight": given}
    labels, group = labels[kept], group[kept]
    u, _ = plain.whole(weight)
    if class_weight == "balanced":
        of_class = np.bincount(labels, weight)
        weight = weight * (of_class.sum() / (2 * of_class))[labels]
    elif class_weight:
        weight = weight * np.array([class_weight.get(name, 1.0) for name in classes])[labels]
    predicted = shares(amount, X[kept], labels, weight, 2)
    w, unit = plain.whole(weight)
    all_rows = np.arange(len(labels))
    total = w.sum() * unit
    # By row and rate: contribution of predicting 1 to the difference between each other group and
    # the first one, in units of 1 / ``masses``.
    differences = []
    for of_class in PARITIES[constraint]:
        compared = u if of_class is None else u * (labels == of_class)
        masses = [compared[group == g].sum() for g in range(n_groups)]
        share = [
            plain.signed_shares(compared, group, [masses[0], masses[g]], (0, g))
            for g in range(1, n_groups)
        ]
        differences.append((share, [masses[0] * mass for mass in masses[1:]]))

    def outcome(rows, said):
        wrong = int(w[rows][labels[rows] != said].sum())
        of_rates = [int((one[rows] * said).sum()) for share, _ in differences for one in share]
        return (wrong, *of_rates), 0

    def rates(outcome):
        """For every rate and group: its difference from the first group."""
        sums = iter(outcome[1:])
        return [
            [Fraction(0), *(Fraction(next(sums), of) for of in parts)] for _, parts in differences
        ]

    def largest(outcome):
        return max(max(of_groups) - min(of_groups) for of_groups in rates(outcome))

    def score(outcome, tolerance):
        return (
            outcome[0] * unit / total if largest(outcome) <= Fraction(delta) + ROUNDED else math.inf
        )

    def row_outcome(model):
        return outcome(all_rows, np.searchsorted(model.classes_, model.predict(X)[kept]))

    def also(model):
        true = row_outcome(model)[0]
        of_rates = model.group_rates_.reshape(n_groups, -1).T
        pairs = [
            (rate - of_groups[0], float(one), 1e-6)
            for of_groups, own in zip(of_rates, rates(true), strict=True)
            for rate, one in zip(of_groups, own, strict=True)
        ]
        pairs.append((model.group_difference_, float(largest(true)), 1e-6))
        return [*pairs, *predicted(model)]

    return Chosen(
        FairTreeClassifier, parameters, X, fit, kept, weight, wide=ranges.wide,
        leaf_outcomes=lambda rows: [outcome(rows, 0), outcome(rows, 1)],
        score=score, row_outcome=row_outcome, also=also,
        costs_of=lambda outcome: (float(outcome[0] * unit / total), float(largest(outcome))),
    )  # fmt: skip


def fair_front(rng):
    """Groups for ``pareto_front``, whose limit is the end of the front."""
    problem = fair_labels(rng)
    changes = {"leaf_penalty": 0.0}
    if problem.parameters["max_depth"] is None:
        changes["max_leaf_nodes"] = one_of(rng, 3, 4, 5, 6)
    return replace(problem, parameters={**problem.parameters, **changes}, cache={})


def policy(rng):
    """A policy with given propensity scores and predicted outcomes."""
    return policies(rng)


def estimated_policy(rng):
    """A policy that estimates some of them, for numbers or lifetimes."""
    while True:
        try:
            return policies(rng, estimated=True)
        except ValueError as error:
            # With so few rows, all rows of a treatment may be equal, or censored too early.
            assert re.search("no two different rows|beyond the last|no event", str(error)), error


def lifetimes_of(rng, n):
    """Events, times with few distinct values, and a horizon."""
    time = rng.integers(1, one_of(rng, 4, 9), n) / 2
    event = rng.random(n) < one_of(rng, 0.3, 0.5)
    return (event, time), float(rng.choice(time))


def policies(rng, estimated=False):
    parameters = shared_parameters(rng, seeded=False)
    parameters["random_state"] = one_of(rng, None, 7, np.random.RandomState(0))
    limited = rng.random() < 0.8
    n_arms = one_of(rng, 2, 2, 3)
    # Rewards that are whole numbers, as for outcomes of 0 or 1.
    counted = rng.random() < 0.6
    X = rows(rng, front_size(rng, parameters, counted and n_arms == 2) if limited else 5)
    n = len(X)
    given, kept = few_weights(rng, X) if counted else weights(rng, n)
    ranges = Ranges(rng)
    if estimated:
        ranges.wide = False
    given = ranges.weights(given, n, few=counted)
    kept, weight = prepared(rng, parameters, X, given)
    arm = classes_kept(rng, X, given, n_arms)
    reward = one_of(rng, "direct", "inverse-propensity", "doubly-robust")
    outcome, predicted = numbers(rng, n, least=-1), numbers(rng, (n, n_arms), least=-1)
    share = rng.uniform(0.2, 1.0, (n, n_arms))
    share /= share.sum(axis=1, keepdims=True)
    if counted:
        outcome = rng.integers(0, one_of(rng, 2, 2, 3), n).astype(float)
        predicted = rng.integers(0, 2, (n, n_arms)).astype(float)
        share = np.tile(one_of(rng, *SHARES[n_arms]), (n, 1))
        if rng.random() < 0.5:
            parameters["leaf_penalty"] = one_of(rng, 0.003, 0.01, 0.02, 0.04)
    outcome, predicted = ranges.values(outcome), ranges.values(predicted)
    # By row; by row and treatment; and for a trial, one share for all or one per treatment.
    form = one_of(rng, "rows", "table", "number", "mapping")
    if form == "number":
        share[:] = 1 / n_arms
    elif form == "mapping":
        share[:] = share[0]
    own = share[np.arange(n), arm]
    fit = {"y": outcome, "sample_weight": given, "treatment": one_of(rng, *NAMES)(arm)}
    names = np.unique(fit["treatment"]).tolist()
    forms = {
        "rows": own,
        "table": share,
        "number": 1 / n_arms,
        "mapping": dict(zip(names, share[0].tolist(), strict=True)),
    }
    if reward != "inverse-propensity" or rng.random() < 0.3:
        fit["predicted_outcomes"] = predicted
    if reward != "direct" or rng.random() < 0.3:
        fit["propensity"] = forms[form]
    parameters |= {
        "reward": reward,
        "outcome_model": one_of(rng, "auto", None),
        "propensity_model": one_of(rng, "auto", None),
        "min_propensity": one_of(rng, 0.01, 0.1, 0.5),
        "horizon": None,
        "estimand": one_of(rng, "restricted-mean", "survival"),
    }
    if estimated:
        parameters |= {
            # Boosting takes a hundred times as long as everything else.
            "outcome_model": one_of(rng, *5 * [LinearRegression(), DummyRegressor()], "auto"),
            "propensity_model": one_of(rng, *8 * [BernoulliNB(), DummyClassifier()], "auto"),
        }
        if rng.random() < 0.5:
            fit["y"], parameters["horizon"] = lifetimes_of(rng, n)
            parameters["outcome_model"] = "auto"
        for name in ("propensity", "predicted_outcomes"):
            if parameters["horizon"] or rng.random() < 0.6:
                fit.pop(name, None)
        whole = PolicyTree(**{**parameters, "capacities": None})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", OverlapWarning)
            rewards = whole.estimate_rewards(X, **fit).rewards
    else:
        rewards = np.zeros((n, n_arms)) if reward == "inverse-propensity" else predicted.copy()
        if reward != "direct":
            rewards[np.arange(n), arm] += (outcome - rewards[np.arange(n), arm]) / own
    rewards = rewards[kept]
    capacity = np.full(n_arms, np.inf)
    capacities = one_of(rng, None, {})
    if limited:
        for k in rng.permutation(n_arms)[: rng.integers(1, n_arms + 1)]:
            capacity[k] = one_of(rng, 0, 0.25, 1 / 3, 0.5, 0.5, 0.75, 1.0, 1)
        capacities = {names[k]: float(c) for k, c in enumerate(capacity) if c <= 1}
    parameters["capacities"] = capacities
    of_arm = np.bincount(arm[kept], minlength=n_arms)
    fewest = 0
    if not limited:
        fewest = min(one_of(rng, 0, 0, 1, 2, 3), int(of_arm.min()))
    parameters["min_samples_treatment"] = fewest
    had = arm[kept]
    (w, weight_unit), (value, value_unit) = plain.whole(weight), plain.whole(rewards)
    unit, total = weight_unit * value_unit, w.sum() * weight_unit
    of_rows = -value * w[:, None]
    arms = [k for k in range(n_arms) if capacity[k] < math.inf]

    def given_to(rows, k):
        own = int(w[rows].sum())
        return [own if k == arm else 0 for arm in arms]

    def leaf_outcomes(rows):
        return [
            ((int(of_rows[rows, k].sum()), *given_to(rows, k)), int(abs(of_rows[rows, k]).sum()))
            for k in range(n_arms)
        ]

    def score(outcome, tolerance):
        limits = [(Fraction(capacity[k]) + ROUNDED) * total for k in arms]
        fine = all(
            part * weight_unit <= most for part, most in zip(outcome[1:], limits, strict=True)
        )
        return outcome[0] * unit / total if fine else math.inf

    def row_outcome(model):
        said = np.searchsorted(model.treatments_, model.predict(X)[kept])
        own = of_rows[np.arange(len(said)), said]
        return (int(own.sum()), *(int(w[said == k].sum()) for k in arms)), int(abs(own).sum())

    def policy_value(model):
        earned, terms = row_outcome(model)
        value, size = -earned[0] * unit / total, terms * unit / total
        return [(model.policy_value_, float(value), float(size))]

    common = dict(
        estimator=PolicyTree, parameters=parameters, X=X, fit=fit, kept=kept, weight=weight,
        total=total, also=policy_value, wide=ranges.wide,
        least_term=Fraction(min(abs(rewards[rewards != 0]), default=0)),
        constant=frozenset() if estimated else frozenset({"horizon"}),
    )  # fmt: skip
    if limited:
        return Chosen(
            **common, leaf_outcomes=leaf_outcomes, score=score, row_outcome=row_outcome, unit=unit
        )

    def best(rows):
        return min((value, terms) for (value, *_), terms in leaf_outcomes(rows))

    def said_cost(model):
        (value, *_), terms = row_outcome(model)
        return plain.units(unit * value), plain.units(unit * terms)

    return Problem(
        **common,
        leaf_cost=lambda rows: (
            math.inf
            if np.bincount(had[rows], minlength=n_arms).min() < fewest
            else plain.units(unit * best(rows)[0])
        ),
        leaf_terms=lambda rows: plain.units(unit * best(rows)[1]),
        said_cost=said_cost,
    )
