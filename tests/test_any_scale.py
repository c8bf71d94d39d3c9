"""Certificates for data of wide range: the right tree and objective, or an error with the reason.

True values are computed in fractions, which are exact.
"""

import itertools
import math
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from trees_plainly import least_objective

from bristlecone import (
    BinaryEncoder,
    CostSensitiveTreeClassifier,
    DemographicParity,
    FairTreeClassifier,
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    PolicyTree,
    RmstParity,
)
from bristlecone._leaves.policies import covariance_of_mean
from bristlecone.scale import fit_partitions
from bristlecone.trust import alternatives, near_optimal_trees, verify

# x0 separates an outlier; x1 and x2 compete for the other rows.
X = np.array([[1, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1]], dtype=bool)
NEAR = Fraction(1, 10**9)
# Largest relative error of rounding to a double.
TINY = Fraction(5e-324)


def exactly(values):
    """The values as fractions, in nested lists."""
    return [exactly(row) for row in values] if np.ndim(values) else Fraction(float(values))


def check_proof(model, optimum, scale=None):
    """Check that the model reports the optimum, and a bound not above it."""
    scale = abs(optimum) if scale is None else scale
    objective, bound = Fraction(model.objective_value_), Fraction(model.lower_bound_)
    assert model.status_ == "optimal"
    assert abs(objective - optimum) <= NEAR * scale + TINY, (model.objective_value_, float(optimum))
    assert bound - optimum <= scale / 10**12 + TINY, (model.lower_bound_, float(optimum))
    assert objective - bound <= NEAR * abs(objective) + TINY
    for _, found, proven in model.trace_:
        assert Fraction(proven) - optimum <= scale / 10**12 + TINY
        assert math.isinf(found) or optimum - Fraction(found) <= NEAR * scale + TINY


def leaves(model, features):
    """Rows of every leaf."""
    node = model.apply(features)
    return [np.flatnonzero(node == leaf) for leaf in np.unique(node)]


def or_clear_error(model, words, *arguments, **more):
    """The fitted model; None if ``fit`` names the values whose range is too wide."""
    try:
        return model.fit(*arguments, **more)
    except ValueError as error:
        assert any(word in str(error) for word in words), error
        return None


def test_weights_of_too_wide_a_range_are_named_and_not_the_outcomes_that_they_multiply():
    random = np.random.default_rng(0)
    features, weight = random.random((200, 8)) < 0.5, 10.0 ** random.uniform(-90, 90, 200)
    y = random.random(200) < 0.5, random.exponential(size=200)
    with pytest.raises(ValueError, match=r"^sample_weight: the values span .*e-.* to .*e\+"):
        OptimalSurvivalTree(max_depth=2).fit(features, y, sample_weight=weight)


# --- regression --------------------------------------------------------------------------------


def squared_errors(y):
    """Mean squared error of rows as one leaf, in fractions."""
    target = exactly(y)

    def loss(rows):
        total = sum(target[i] for i in rows)
        mean = total / len(rows)
        return sum((target[i] - mean) ** 2 for i in rows) / len(target)

    return loss


def least_error(y, max_depth=2):
    return least_objective(X, squared_errors(y), max_depth=max_depth)


@pytest.mark.parametrize("outlier", [1e4, 1e6, 1e8, 1e10, 1e12, -1e12])
def test_regression_sees_the_other_rows_beside_an_outlier(outlier):
    y = [outlier, 0, 1, 1.5, 3]
    best = least_error(y)
    assert best == Fraction(1, 10)
    model = OptimalTreeRegressor(max_depth=2).fit(X, y)
    check_proof(model, best)
    own = squared_errors(y)
    assert sum(own(rows) for rows in leaves(model, X)) == best
    assert verify(model, X, y).ok


def test_second_opinions_agree_with_a_fit_beside_an_outlier():
    y = [1e8, 0, 1, 1.5, 3]
    model = OptimalTreeRegressor(max_depth=2).fit(X, y)
    near = near_optimal_trees(model, X, y, epsilon=0)
    assert [tree.objective_value_ for tree in near] == [model.objective_value_]
    assert min(alternatives(model, X, y)["difference"]) >= 0


@pytest.mark.parametrize("outlier", [1e10, 1e16, 1e23])
def test_every_alternative_is_best_whether_or_not_it_separates_an_outlier(outlier):
    rng = np.random.default_rng(6)
    rows, y = rng.integers(0, 2, (12, 4)), rng.integers(0, 2, 12).astype(float)
    y[2] = outlier
    model = OptimalTreeRegressor(max_depth=2).fit(rows, y)
    table = alternatives(model, rows, y)
    loss = squared_errors(y)
    root = table[table.node == 0]
    assert len(root) == 4 and root.objective.max() > 1e9 * root.objective.min()
    for alternative, objective in zip(root.alternative, root.objective, strict=True):
        yes = rows[:, int(alternative[1])] == 1
        sides = [np.flatnonzero(side) for side in (yes, ~yes)]
        best = sum(
            least_objective(rows[side], lambda own, side=side: loss(side[own]), max_depth=1)
            for side in sides
        )
        assert objective == pytest.approx(float(best), rel=1e-9)


def test_every_size_of_a_path_is_best_beside_an_outlier():
    y = [1e8, 0, 1, 1.5, 3]
    path = OptimalTreeRegressor(max_depth=3).size_path(X, y)
    loss = squared_errors(y)
    assert len(path) == 5
    for most, model in enumerate(path, start=1):
        sizes = range(1, most + 1)
        best = min(least_objective(X, loss, max_depth=3, leaves=size) for size in sizes)
        check_proof(model, best)


def test_regression_of_many_rows_is_exact_beside_an_outlier():
    rows = np.arange(1000)
    y = (rows % 2).astype(float)
    y[0] = 3e9
    features = np.column_stack([rows == 0, rows % 2 == 1])
    model = OptimalTreeRegressor(max_depth=2).fit(features, y)
    check_proof(model, 0)
    assert model.objective_value_ == model.lower_bound_ == 0.0


@pytest.mark.parametrize("offset", [1e6, 1e9, 1e13, -1e13])
def test_an_offset_of_all_targets_changes_no_error(offset):
    y = np.array([0.0, 1.0, 2.0, 0.0, 2.0])
    for max_depth in (0, 1, 2):
        best = least_error(y, max_depth)
        assert best == least_error(y + offset, max_depth)
        model = OptimalTreeRegressor(max_depth=max_depth).fit(X, y + offset)
        check_proof(model, best)


@pytest.mark.parametrize("power", [-308, -300, -160, -150, -147, 0, 147, 150, 153, 155, 300])
def test_a_unit_of_the_targets_changes_no_tree_or_is_refused(power):
    y = np.array([0, 0, 1, 1, 9]) * 10.0**power
    regressor = OptimalTreeRegressor(max_depth=1)
    model = regressor.fit(X, y) if abs(power) < 140 else or_clear_error(regressor, ["y"], X, y)
    if model is not None:
        best = least_error(y, max_depth=1)
        check_proof(model, best)
        assert sum(squared_errors(y)(rows) for rows in leaves(model, X)) <= best * (1 + NEAR)


def test_targets_near_the_largest_have_weights_of_any_range():
    # There is no overflow warning, and the improvement of every split is finite.
    X, y = np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([1.0, 2.0, 4.0, 9.0]) * 1e149
    weight = [1e12, 1e12, 1.0, 1e-12]
    model = OptimalTreeRegressor(max_depth=2).fit(X, y, sample_weight=weight)
    assert model.status_ == "optimal" and np.isfinite(model.tree_.improvement).all()
    share = np.array(weight) / sum(weight)
    mean = share @ y
    assert model.tree_.improvement.sum() == pytest.approx(share @ (y - mean) ** 2, rel=1e-9)


# --- costs and policies ------------------------------------------------------------------------


def rival_costs(outlier, difference):
    d = difference
    return np.array([[0, outlier], [0.1, 0.9], [0.4, 0.4 + d / 2], [0.4 + d / 2, 0.4], [0.9, 0.1]])


def cheapest(costs):
    """Mean cost of rows with their best label, in fractions."""
    table = exactly(costs)
    labels = range(len(table[0]))
    return lambda rows: min(sum(table[i][k] for i in rows) for k in labels) / len(table)


@pytest.mark.parametrize("outlier", [1e5, 1e8, 1e11, 1e14, 1e70, 1e300])
@pytest.mark.parametrize("priced", [False, True])
def test_costs_see_the_other_rows_beside_an_outlier(outlier, priced):
    costs = rival_costs(outlier, 0.01)
    price = 2.0**-20 if priced else 0.0

    def paid(asked, feature):
        return 0 if feature in asked else Fraction(price) / len(X)

    best = least_objective(X, cheapest(costs), max_depth=2, price=paid)
    model = CostSensitiveTreeClassifier(
        max_depth=2, feature_costs=[price] * 3 if priced else None
    ).fit(X, [0, 0, 0, 1, 1], costs=costs)
    check_proof(model, best)
    assert priced or abs(best - Fraction(1, 5)) < Fraction(1, 10**15)


@pytest.mark.parametrize("lost", ["costs", "feature_costs"])
def test_costs_lost_beside_the_largest_are_refused(lost):
    costs, prices = rival_costs(1e300, 0.01), [0.0, 0.0, 0.01]
    if lost == "costs":
        costs[3, 1] = 1e-12
    else:
        prices[1] = 1e-12
    model = CostSensitiveTreeClassifier(max_depth=2, feature_costs=prices)
    with pytest.raises(
        ValueError, match=f"^{lost}: 1e-12.* is lost beside the largest cost, 1e300"
    ):
        model.fit(X, [0, 0, 0, 1, 1], costs=costs)


def test_costs_that_no_mean_holds_are_refused():
    costs = rival_costs(1.0, 0.01)
    costs[3, 1] = 1e-323
    with pytest.raises(ValueError, match=r"^costs: 1e-323 in row 3 adds less than 1e-290 to"):
        CostSensitiveTreeClassifier(max_depth=2).fit(X, [0, 0, 0, 1, 1], costs=costs)


def test_labels_of_leaves_are_right_where_sums_of_costs_are_infinite():
    costs, weight = np.array([[2e298, 0.0], [0.0, 2e298], [1e298, 1e298]]), [1e12, 1e10, 1.0]
    model = CostSensitiveTreeClassifier(max_depth=0)
    model.fit(X[:3], [0, 1, 1], costs=costs, sample_weight=weight)
    assert model.predict(X[:1]).tolist() == [1]
    assert model.tree_.improvement.tolist() == [0.0]


@pytest.mark.parametrize("outlier", [1e5, 1e8, 1e11, 1e14])
def test_policies_see_the_other_rows_beside_an_outlier(outlier):
    rewards = -rival_costs(outlier, 0.01)
    model = PolicyTree(max_depth=2, reward="direct").fit(
        X, np.zeros(5), treatment=[0, 1, 0, 1, 0], predicted_outcomes=rewards
    )
    check_proof(model, least_objective(X, cheapest(-rewards), max_depth=2))


def test_a_forbidden_label_hides_no_better_tree():
    features = np.array([[1, 0], [1, 1], [0, 0], [0, 1]], dtype=bool)
    costs = np.array([[0.4, 0.1, 1e13], [0.1, 0.4, 1e13]] * 2)
    model = CostSensitiveTreeClassifier(max_depth=1).fit(features, [0, 1, 2, 0], costs=costs)
    best = least_objective(features, cheapest(costs), max_depth=1)
    assert best == Fraction(0.1)
    check_proof(model, best)


@pytest.mark.parametrize("forbidden", [1e9, 1e12])
def test_a_forbidden_entry_among_many_rows_hides_no_better_tree(forbidden):
    rng = np.random.default_rng(0)
    features = rng.random((3000, 4)) < 0.5
    costs = rng.integers(0, 4, (3000, 2)) / 4
    costs[0] = [0, forbidden]
    model = CostSensitiveTreeClassifier(max_depth=2).fit(
        features, rng.integers(0, 2, 3000), costs=costs
    )
    # Multiples of a quarter are summed exactly.
    best = least_objective(
        features, lambda rows: Fraction(costs[rows].sum(axis=0).min()) / 3000, max_depth=2
    )
    check_proof(model, best)


@pytest.mark.parametrize("unit", [1e-310, 1e-300, 1e-150, 1e150, 1e300])
def test_a_unit_of_costs_changes_no_tree_or_is_refused(unit):
    costs = rival_costs(1.0, 0.01) * unit
    model = or_clear_error(
        CostSensitiveTreeClassifier(max_depth=2), ["cost"], X, [0, 0, 0, 1, 1], costs=costs
    )
    if model is not None:
        check_proof(model, least_objective(X, cheapest(costs), max_depth=2))


@pytest.mark.parametrize("unit", [1e-310, 1e-300, 1e-150, 1e150, 1e300])
def test_a_unit_of_rewards_changes_no_tree_or_is_refused(unit):
    rewards = -rival_costs(1.0, 0.01) * unit
    model = or_clear_error(
        PolicyTree(max_depth=2, reward="direct"),
        ["reward", "predicted_outcomes"],
        X, np.zeros(5), treatment=[0, 1, 0, 1, 0], predicted_outcomes=rewards,
    )  # fmt: skip
    if model is not None:
        check_proof(model, least_objective(X, cheapest(-rewards), max_depth=2))


def test_costs_near_the_largest_number_are_no_constraint():
    features = np.array([[0], [1], [0], [1]], dtype=bool)
    costs = np.array([[0, 1e308], [1e308, 0]] * 2)
    model = or_clear_error(
        CostSensitiveTreeClassifier(max_depth=1), ["cost"], features, [0, 1, 0, 1], costs=costs
    )
    if model is not None:
        check_proof(model, 0)
        assert model.objective_value_ == model.lower_bound_ == 0.0


def best_within_capacity(features, rewards, capacity, max_depth):
    """Least negative sum of rewards if at most this many rows receive arm 1."""
    table = exactly(rewards)

    def outcomes(rows, depth):
        found = {(0, -sum(table[i][0] for i in rows)), (len(rows), -sum(table[i][1] for i in rows))}
        for feature in range(features.shape[1]) if depth else ():
            yes, no = rows[features[rows, feature]], rows[~features[rows, feature]]
            if len(yes) and len(no):
                sides = outcomes(yes, depth - 1), outcomes(no, depth - 1)
                found |= {(a + b, v + w) for (a, v), (b, w) in itertools.product(*sides)}
        # For each number of rows only the best matters.
        least = {}
        for given, value in found:
            least[given] = min(value, least.get(given, value))
        return set(least.items())

    every = outcomes(np.arange(len(features)), max_depth)
    return min(value for given, value in every if given <= capacity)


@pytest.mark.parametrize("outlier", [-1e4, -1e8, -1e10, -1e12])
def test_the_value_under_capacities_is_that_of_the_rows(outlier):
    rng = np.random.default_rng(0)
    rewards = rng.random((40, 2))
    rewards[0, 1] = outlier
    features = rng.random((40, 4)) < 0.5
    model = or_clear_error(
        PolicyTree(reward="direct", capacities={1: 0.5}, max_depth=2),
        ["reward", "predicted_outcomes", "capacities"],
        features, np.zeros(40), treatment=np.arange(40) % 2, predicted_outcomes=rewards,
    )  # fmt: skip
    if model is None:
        return
    chosen = rewards[np.arange(40), model.predict(features)]
    assert Fraction(model.policy_value_) == pytest.approx(math.fsum(chosen) / 40, rel=1e-9)
    assert (model.predict(features) == 1).mean() <= 0.5
    best = best_within_capacity(features, rewards, 20, 2) / 40
    check_proof(model, best, Fraction(math.fsum(abs(chosen))) / 40)
    assert verify(
        model, features, np.zeros(40), treatment=np.arange(40) % 2, predicted_outcomes=rewards
    ).ok


# --- classes -----------------------------------------------------------------------------------


@pytest.mark.parametrize("heavy", [1e6, 1e9, 1e12, 1e15])
def test_errors_of_light_rows_count_beside_a_heavy_one(heavy):
    weight = np.array([heavy, 1, 0.8, 0.8, 1])
    y = np.array([0, 0, 0, 1, 1])
    light = exactly(weight)

    def wrong(rows):
        classes = (sum(light[i] for i in rows if y[i] != k) for k in (0, 1))
        return min(classes) / sum(light)

    for max_depth in (1, 2):
        model = OptimalTreeClassifier(max_depth=max_depth).fit(X, y, weight)
        check_proof(model, least_objective(X, wrong, max_depth=max_depth))


def test_no_bound_is_above_a_tree_of_many_weighted_rows():
    rng = np.random.default_rng(0)
    n = 1 << 18
    features = rng.random((n, 1)) < 0.5
    y = (features[:, 0] ^ (rng.random(n) < 0.001)).astype(int)
    weight = rng.uniform(0.1, 3.0, n)
    # ``fsum`` rounds correctly.
    best = Fraction(math.fsum(weight[y != features[:, 0]])) / Fraction(math.fsum(weight))
    check_proof(OptimalTreeClassifier(max_depth=1).fit(features, y, weight), best)


def test_no_bound_of_a_measure_is_above_a_tree_of_many_weighted_rows():
    rng = np.random.default_rng(0)
    n = 1 << 18
    features = rng.random((n, 1)) < 0.5
    y = (features[:, 0] ^ (rng.random(n) < 0.001)).astype(int)
    weight = rng.uniform(0.1, 3.0, n)
    wrong = Fraction(math.fsum(weight[y != features[:, 0]]))
    right = Fraction(math.fsum(weight[(y == 1) & features[:, 0]]))
    best = wrong / (2 * right + wrong)
    model = OptimalTreeClassifier(max_depth=1, objective="f1").fit(features, y, weight)
    check_proof(model, best)


def loss_of_measure(name, y, weight, said):
    """1 − F1 or 1 − MCC of these labels; only the root in the latter is not exact."""
    w = exactly(weight)
    tp, fp, fn, tn = (
        sum((w[i] for i in range(len(y)) if (said[i], y[i]) == of), Fraction(0))
        for of in ((1, 1), (1, 0), (0, 1), (0, 0))
    )
    if name == "f1":
        return 1 - 2 * tp / (2 * tp + fp + fn)
    above, below = tp * tn - fp * fn, (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    if below == 0:
        return Fraction(1)
    # Truncated after 60 digits.
    digits = 10**60
    root = Fraction(math.isqrt(below.numerator * below.denominator * digits**2), digits)
    root /= below.denominator
    return (below - above**2) / root / (root + above) if above > 0 else 1 - above / root


def best_measure(name, features, y, weight, max_depth):
    """Least 1 − measure over all trees and all labels of their leaves."""

    def labelled(rows, depth):
        found = {tuple((i, k) for i in rows.tolist()) for k in (0, 1)}
        for feature in range(features.shape[1]) if depth else ():
            yes, no = rows[features[rows, feature]], rows[~features[rows, feature]]
            if len(yes) and len(no):
                sides = labelled(yes, depth - 1), labelled(no, depth - 1)
                found |= {tuple(sorted(a + b)) for a, b in itertools.product(*sides)}
        return found

    every = labelled(np.arange(len(features)), max_depth)
    return min(loss_of_measure(name, y, weight, [k for _, k in said]) for said in every)


@pytest.mark.parametrize("name", ["f1", "mcc"])
@pytest.mark.parametrize("heavy", [1e2, 1e6, 1e12, 1e13])
def test_measures_count_light_rows_beside_a_heavy_one(name, heavy):
    features = np.concatenate([X, X[1:]])
    y = np.array([0, 0, 0, 1, 1, 1, 1, 0, 0])
    weight = np.array([heavy, 1, 0.8, 0.8, 1, 0.4, 0.7, 0.7, 0.4])
    model = or_clear_error(
        OptimalTreeClassifier(max_depth=2, objective=name), ["sample_weight"], features, y, weight
    )
    if model is not None:
        check_proof(model, best_measure(name, features, y, weight, max_depth=2))
        own = loss_of_measure(name, y, weight, model.predict(features))
        assert abs(Fraction(model.objective_value_) - own) <= NEAR * own


@pytest.mark.parametrize("name", ["f1", "mcc"])
@pytest.mark.parametrize("y", [[0, 0, 1, 1], [0, 1, 1, 0], [1, 1, 1, 0]])
def test_a_perfect_tree_of_uneven_weights_loses_nothing(name, y):
    features, weight = np.array(y, dtype=bool)[:, None], np.array([1, 1e5, 1, 1e-5])
    model = or_clear_error(
        OptimalTreeClassifier(max_depth=1, objective=name), ["sample_weight"], features, y, weight
    )
    if model is not None:
        assert model.objective_value_ == model.lower_bound_ == 0.0


@pytest.mark.filterwarnings("ignore::bristlecone.exceptions.SmallSampleWarning")
@pytest.mark.parametrize("seed", range(12))
def test_a_limit_holds_for_a_light_group(seed):
    rng = np.random.default_rng(seed)
    n, delta = 12, 0.1
    features = rng.random((n, 3)) < 0.5
    y, group = rng.integers(0, 2, n), np.arange(n) % 2
    weight = rng.uniform(0.5, 2.0, n) * np.where(group == 1, 1e-12, 1.0)
    model = or_clear_error(
        FairTreeClassifier(max_depth=2, fairness=DemographicParity(delta)),
        ["sample_weight"], features, y, weight, sensitive_features=group,
    )  # fmt: skip
    if model is None:
        return
    w, said = exactly(weight), model.predict(features)
    of_group = [[i for i in range(n) if group[i] == g] for g in (0, 1)]
    rates = [sum(w[i] * int(said[i]) for i in of) / sum(w[i] for i in of) for of in of_group]
    assert abs(rates[1] - rates[0]) <= Fraction(delta) + Fraction(1, 2**51)
    assert verify(model, features, y, sample_weight=weight, sensitive_features=group).ok


def fair_tree(limit):
    """Trees with a limit on the difference of restricted means up to time 2; x1 is the group."""
    features = [[0, 1, 1], [0, 1, 0], [0, 0, 0], [0, 0, 1], [1, 0, 1]]
    y = (np.array([False, True, True, True, True]), np.array([4.0, 1.0, 4.0, 1.0, 3.0]))
    fairness = RmstParity(limit, tau=2.0, sensitive_feature=1)
    model = OptimalSurvivalTree(
        objective="brier", max_depth=2, fairness=fairness, min_events_leaf=None
    )
    return model.fit(np.array(features, bool), y, sample_weight=[900.0, 8.0, 6.0, 7.0, 5.0])


# In units of 2^-50 of the time. Rows may exceed a limit by 19 units, and windows by more.
@pytest.mark.parametrize("units", [20, 22, 24, 30, 50])
def test_a_tree_a_little_beyond_a_limit_hides_no_other(units):
    loose, tight = fair_tree(0.381), fair_tree(0.375)
    assert loose.objective_value_ < tight.objective_value_
    attained = abs(np.diff(loose.group_rmst_)[0])
    model = fair_tree(attained - units * 2**-49)
    best = min(model.objective_value_, tight.objective_value_)
    check_proof(model, Fraction(best))
    assert abs(np.diff(model.group_rmst_)[0]) < attained


@pytest.mark.parametrize("seed", range(8))
def test_fair_survival_trees_are_proven_for_weights_of_any_range(seed):
    rng = np.random.default_rng(seed)
    features, group = rng.random((12, 3)) < 0.5, np.arange(12) % 2
    y = (rng.random(12) < 0.7, rng.integers(1, 5, 12).astype(float))
    weight = 10.0 ** rng.integers(-12, 13, 12)
    model = OptimalSurvivalTree(
        objective="brier", max_depth=2, fairness=RmstParity(0.2), min_events_leaf=None
    )
    model.fit(features, y, sample_weight=weight, sensitive_features=group)
    assert model.status_ == "optimal"
    assert abs(np.diff(model.group_rmst_)[0]) <= 0.2 + 1e-9
    assert verify(model, features, y, sample_weight=weight, sensitive_features=group).ok


def test_prices_that_no_tree_pays_do_not_blur_a_fit_over_partitions():
    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.random((16, 3)) < 0.5, columns=["a", "b", "c"])
    y, weight = rng.integers(0, 2, 16), rng.integers(1, 4, 16) / 7
    tree = CostSensitiveTreeClassifier(
        max_depth=3,
        cost_matrix=[[0.0, 1.0], [2.0, 0.0]],
        feature_costs=[1960.4362502838324, 2254.896932150984, 0.01],
        encoder=BinaryEncoder(),
    )
    whole = clone(tree).fit(table, y, weight)
    fit_partitions(tree, [table.assign(y=y, w=weight)], target="y", weight="w")
    assert tree.status_ == "optimal"
    assert tree.objective_value_ == pytest.approx(whole.objective_value_, rel=1e-12)
    assert tree.n_leaves_ == whole.n_leaves_ == 2


def test_a_perfect_tree_is_proven_by_its_leaves_where_a_penalty_is_finer_than_the_loss():
    table, y = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0]}), [51.0, 52.0, 52.0, 51.0]
    tree = OptimalTreeRegressor(max_depth=2, leaf_penalty=1e-12, min_samples_leaf=1)
    every = clone(tree).set_params(encoder=BinaryEncoder(thresholds="all")).fit(table, y)
    parts = fit_partitions(clone(tree), [table.assign(y=y)], target="y")
    for fitted in (every, parts):
        assert (fitted.status_, fitted.n_leaves_) == ("optimal", 3)
        assert fitted.objective_value_ == pytest.approx(3e-12, rel=1e-9)


def test_alternatives_to_a_perfect_tree_are_resolved_whatever_the_weights():
    rows = ["0111", "1111", "0100", "1010", "0001", "1110"]
    X = np.array([[value == "1" for value in row] for row in rows])
    y = np.array([50.4, 52.0, 51.6, 48.8, 48.3, 51.7])
    weight = np.array([1e4, 1e-10, 1e4, 1e-4, 1e7, 1e3])
    model = OptimalTreeRegressor(max_depth=None, max_leaf_nodes=6, leaf_penalty=0.0, n_jobs=1)
    model.fit(X, y, sample_weight=weight)
    assert model.objective_value_ == 0.0
    table = alternatives(model, X, y, sample_weight=weight)
    assert (table.difference[table.is_chosen] == 0.0).all()
    assert (table.difference >= 0.0).all()


def test_errors_of_rewards_up_to_the_largest_number_are_kept():
    largest = np.sqrt(8) * np.sqrt(1.5e308)
    found = covariance_of_mean(np.array([[0.0], [largest]]), None)
    assert found[0, 0] == pytest.approx(1.5e308)
