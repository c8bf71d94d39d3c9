"""``trust.verify`` for outcomes of wide range: false certificates fail, and every tree is tried."""

import math
import os
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest
from pace import slow_but
from tampering import changed, claimed_optimal, claiming

from bristlecone import (
    BinaryEncoder,
    CostSensitiveTreeClassifier,
    DemographicParity,
    FairTreeClassifier,
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    PolicyTree,
)
from bristlecone._model.registry import dumps, loads
from bristlecone.datasets import list_datasets, load
from bristlecone.exceptions import CertificateError
from bristlecone.trust import alternatives, near_optimal_trees, verify
from bristlecone.trust._exhaustive import Limits, better_tree
from bristlecone.trust._kinds import statement_of
from bristlecone.trust._optimality import is_optimal
from bristlecone.trust._rows import Rows

# The first row is an outlier; x1 and x2 compete for the others.
X = np.array([[1, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 1]], dtype=bool)


def failed(found):
    return [check.name for check in found.failed]


def costs(outlier, less):
    """Label costs with which x2 is better than x1 if ``less`` is positive."""
    rival = 0.4 + less / 2
    return np.array([[0, outlier], [0.1, 0.9], [0.4, rival], [rival, 0.4], [0.9, 0.1]])


@pytest.mark.parametrize("outlier", [1e4, 1e8, 1e12])
def test_a_worse_tree_beside_an_outlier_is_found_out(outlier):
    y = np.array([outlier, 0, 1, 1.5, 3])
    other = OptimalTreeRegressor(max_depth=2).fit(X, np.array([10, 0, 1, 0.1, 3]))
    worse = claiming(claimed_optimal(other, X, y), 0.225)
    found = verify(worse, X, y)
    assert failed(found) == ["lower bound"]
    assert "0.1, which one tree reaches" in found["lower bound"].expected
    best = OptimalTreeRegressor(max_depth=2).fit(X, np.array([10, 0, 0.1, 1, 3]))
    assert verify(claiming(claimed_optimal(best, X, y), 0.1), X, y).ok


@pytest.mark.parametrize("unit", [1e-150, 1e-9, 1e9, 1e150])
def test_a_leaf_in_any_unit_is_no_optimum(unit):
    y = np.array([0, 0, 1, 1, 9]) * unit
    leaf = OptimalTreeRegressor(max_depth=2).fit(X, np.zeros(5))
    assert leaf.n_leaves_ == 1
    assert failed(verify(claimed_optimal(leaf, X, y), X, y)) == ["lower bound"]


def test_numbers_of_a_leaf_are_compared_with_its_own_rows():
    y = np.array([1e7, 0, 1, 1.5, 3])
    other = OptimalTreeRegressor(max_depth=2).fit(X, np.array([10, 0, 0.1, 1, 3]))
    tree = claiming(claimed_optimal(other, X, y), 0.1)
    assert verify(tree, X, y).ok
    leaves = tree.leaves_
    for name, check in (("variance", "variances"), ("mean", "means")):
        values = getattr(leaves, name).copy()
        at = int(np.argmax((leaves.variance > 0.2) & (leaves.variance < 1)))
        values[at] = 0.0
        tree.leaves_ = replace(leaves, **{name: values})
        assert check in failed(verify(tree, X, y))


def test_a_flipped_label_beside_a_large_reward_is_noticed():
    rewards = np.array([[1e9, 0], [0.1, 0.9], [0.4, 0.5], [0.5, 0.4], [0.9, 0.1]])
    data = {"treatment": np.array(list("ababa")), "predicted_outcomes": rewards}
    tree = PolicyTree(reward="direct", max_depth=2).fit(X, np.zeros(5), **data)
    leaves = tree.apply(X)
    at = int(np.flatnonzero(tree.tree_.leaves == leaves[4])[0])
    labels = tree.leaves_.label.copy()
    labels[at] = 1 - labels[at]
    tree.leaves_ = replace(tree.leaves_, label=labels)
    assert "labels" in failed(verify(tree, X, np.zeros(5), **data))


@pytest.mark.parametrize("outlier", [1e7, 1e9])
def test_a_file_with_a_leaf_without_variance_fails_beside_an_outlier(outlier):
    y = np.array([outlier, 0, 1, 1.5, 3])
    tree = OptimalTreeRegressor(max_depth=2).fit(X, y)
    at = int(np.argmax(tree.leaves_.variance))
    assert tree.leaves_.variance[at] == 0.25
    edited = changed(dumps(tree), {("leaves", "variance", at): 0.0})
    assert "variances" in failed(verify(loads(edited), X, y))


def test_a_file_with_a_flipped_label_fails_beside_a_large_reward():
    rewards = np.array([[1e9, 0], [0.1, 0.9], [0.4, 0.5], [0.5, 0.4], [0.9, 0.1]])
    data = {"treatment": np.array(list("ababa")), "predicted_outcomes": rewards}
    tree = PolicyTree(reward="direct", max_depth=2).fit(X, np.zeros(5), **data)
    at = int(np.flatnonzero(tree.tree_.leaves == tree.apply(X)[4])[0])
    edited = changed(dumps(tree), {("leaves", "label", at): lambda label: 1 - label})
    assert "labels" in failed(verify(loads(edited), X, np.zeros(5), **data))


def test_a_file_that_requires_more_rows_of_a_treatment_than_a_leaf_has_fails():
    data = {"treatment": np.array(list("ababa")), "predicted_outcomes": np.eye(5)[:, :2]}
    tree = PolicyTree(reward="direct", max_depth=1).fit(X, np.zeros(5), **data)
    assert tree.n_leaves_ == 2
    edited = changed(dumps(tree), {("parameters", "min_samples_treatment"): 3})
    wrong = failed(verify(loads(edited), X, np.zeros(5), **data))
    assert {"rows of a treatment in a leaf", "objective value", "lower bound"} <= set(wrong)


def test_the_objective_of_a_policy_with_capacities_comes_from_its_rows():
    rng = np.random.default_rng(0)
    rewards = rng.random((40, 2))
    rewards[0, 1] = -1e10
    columns = rng.random((40, 4)) < 0.5
    data = {"treatment": rng.integers(0, 2, 40), "predicted_outcomes": rewards}
    tree = PolicyTree(reward="direct", capacities={1: 0.5}, max_depth=2)
    tree.fit(columns, np.zeros(40), **data)
    given = rewards[np.arange(40), tree.predict(columns)]
    own = float(-sum(map(Fraction, given.tolist())) / 40)
    tree = claiming(tree, own)
    assert "objective value" not in failed(verify(tree, columns, np.zeros(40), **data))
    for off in (2.8e-5, -1e-8):
        found = verify(claiming(tree, own + off), columns, np.zeros(40), **data)
        assert "objective value" in failed(found)


@pytest.mark.parametrize("outlier", [1e5, 1e11])
@pytest.mark.parametrize("more", [{}, {"feature_costs": [0.001, 0.001, 0.001]}])
def test_forbidden_labels_do_not_hide_a_worse_tree(outlier, more):
    given, y = costs(outlier, 0.01), [0, 1, 0, 1, 0]
    model = CostSensitiveTreeClassifier(max_depth=2, **more)
    worse = model.fit(X, y, costs=costs(1.0, -0.01))
    worse = claimed_optimal(worse, X, y, costs=given)
    assert worse.objective_value_ == pytest.approx(0.202 + 0.002 * bool(more), rel=0.01)
    assert failed(verify(worse, X, y, costs=given)) == ["lower bound"]


ROWS = np.concatenate([X, X[1:]])
LABELS = np.array([0, 0, 0, 1, 1, 1, 1, 0, 0])
RIVALS = np.array([1, 0.8, 0.8, 1, 0.4, 0.7, 0.7, 0.4])


@pytest.mark.parametrize("objective", ["f1", "mcc"])
@pytest.mark.parametrize("outlier", [1.0, 1e6, 4e12])
def test_measures_of_a_heavy_row_are_exact(objective, outlier):
    weight = np.append(outlier, RIVALS)
    other = np.array([1, 1, 0.1, 0.1, 1, 0.4, 2, 2, 0.4])
    model = OptimalTreeClassifier(objective=objective, max_depth=2)
    worse = model.fit(ROWS, LABELS, sample_weight=other)
    worse = claimed_optimal(worse, ROWS, LABELS, sample_weight=weight)
    assert "lower bound" in failed(verify(worse, ROWS, LABELS, sample_weight=weight))


def test_the_correlation_of_a_perfect_tree_is_not_rounded():
    columns, y = np.array([[0], [0], [1], [1]], dtype=bool), [0, 0, 1, 1]
    weight = np.array([1, 1e5, 1, 1e-5])
    tree = OptimalTreeClassifier(objective="mcc", max_depth=1)
    tree.fit(columns, y, sample_weight=weight)
    assert verify(claiming(tree, 0.0), columns, y, sample_weight=weight).ok
    found = verify(claiming(tree, 1.7e-7), columns, y, sample_weight=weight)
    assert failed(found) == ["objective value", "lower bound"]


def test_a_limit_that_a_light_group_breaks_is_noticed():
    rng = np.random.default_rng(0)
    columns = rng.random((60, 3)) < 0.5
    group, y = np.arange(60) % 2, columns[:, 0] ^ (rng.random(60) < 0.1)
    weight = np.where(group == 1, 1e-12, 1.0) * rng.integers(1, 9, 60)
    data = {"sensitive_features": group, "sample_weight": weight}
    tree = FairTreeClassifier(fairness=DemographicParity(1.0), max_depth=2).fit(columns, y, **data)
    chosen = tree.predict(columns)
    shares = [np.average(chosen[group == k], weights=weight[group == k]) for k in (0, 1)]
    differ = abs(shares[1] - shares[0])
    assert differ > 0.01
    for limit, holds in ((differ * 1.0001, True), (differ * 0.9999, False), (differ - 0.01, False)):
        claimed = {**tree.certificate_.parameters, "fairness": DemographicParity(limit)}
        tree.certificate_ = replace(tree.certificate_, parameters=claimed)
        assert ("limits of the objective" not in failed(verify(tree, columns, y, **data))) == holds


def test_an_objective_far_from_zero_is_that_of_its_rows():
    y = 1e13 + np.array([0, 1, 2, 0, 2])
    other = OptimalTreeRegressor(max_depth=1).fit(X, y - 1e13)
    tree = claimed_optimal(other, X, y)
    exact = [list(map(Fraction, y[tree.apply(X) == leaf].tolist())) for leaf in tree.tree_.leaves]
    own = sum(sum((one - sum(leaf) / len(leaf)) ** 2 for one in leaf) for leaf in exact) / 5
    assert verify(claiming(tree, float(own)), X, y).ok
    found = verify(claiming(tree, float(own) * (1 + 2e-6)), X, y)
    assert failed(found) == ["objective value", "lower bound"]


def test_optimal_is_relative_to_the_objective_and_exact_at_zero():
    assert is_optimal(2.0, 2.0 - 1.9e-9, 2.0) and not is_optimal(2.0, 2.0 - 2.1e-9, 2.0)
    assert is_optimal(0.0, 0.0, 0.0) and not is_optimal(0.0, -5e-324, 0.0)
    # Rewards cancel, so the check is relative to their size.
    assert is_optimal(0.0, -1e-10, 1.0)


@pytest.mark.parametrize("off", [1e-6, 0.1])
def test_other_searches_contradict_a_false_certificate(off):
    y = np.array([10, 0, 1, 1.5, 3])
    tree = OptimalTreeRegressor(max_depth=2).fit(X, y)
    least = tree.objective_value_
    assert (alternatives(tree, X, y)["difference"] >= -1e-9 * least).all()
    assert (near_optimal_trees(tree, X, y, epsilon=0).objective_values <= least * (1 + 1e-9)).all()
    claiming(tree, least + off)
    with pytest.raises(CertificateError, match="below the lower bound"):
        alternatives(tree, X, y)
    with pytest.raises(CertificateError, match=r"below the lower bound .* OptimalTreeRegressor"):
        near_optimal_trees(tree, X, y, epsilon=0)
    claiming(tree, least - off)
    with pytest.raises(CertificateError, match="the fitted tree reports"):
        alternatives(tree, X, y)
    with pytest.raises(CertificateError, match="the fitted OptimalTreeRegressor reports"):
        near_optimal_trees(tree, X, y, epsilon=0)


# Every tree, by its definition, in fractions.


def squares(facts, weight, rows):
    mass = sum(weight[rows])
    mean = sum(weight[rows] * facts["target"][rows]) / mass
    return sum(weight[rows] * (facts["target"][rows] - mean) ** 2)


def errors(facts, weight, rows):
    return sum(weight[rows]) - max(by_class(facts, weight, rows))


def gini(facts, weight, rows):
    mass = sum(weight[rows])
    return sum(one * (mass - one) for one in by_class(facts, weight, rows)) / mass


def entropy(facts, weight, rows):
    mass = sum(weight[rows])
    return sum(
        -one * Fraction(math.log(one / mass) if 2 * one < mass else math.log1p((one - mass) / mass))
        for one in by_class(facts, weight, rows)
        if one
    )


def balanced(facts, weight, rows):
    every = by_class(facts, weight, np.arange(len(weight)))
    parts = [one / of for one, of in zip(by_class(facts, weight, rows), every, strict=True)]
    return sum(parts) - max(parts)


def by_class(facts, weight, rows):
    return [sum(weight[rows] * (facts["labels"][rows] == k)) for k in range(2)]


def least_cost(facts, weight, rows):
    return min(sum(weight[rows] * facts["costs"][rows, k]) for k in range(2))


def least_reward(facts, weight, rows):
    return -max(sum(weight[rows] * facts["rewards"][rows, k]) for k in range(2))


KINDS = {
    "regression": ("OptimalTreeRegressor", {"objective": "squared-error"}, squares),
    "accuracy": ("OptimalTreeClassifier", {"objective": "accuracy"}, errors),
    "gini": ("OptimalTreeClassifier", {"objective": "gini"}, gini),
    "entropy": ("OptimalTreeClassifier", {"objective": "entropy"}, entropy),
    "balanced": ("OptimalTreeClassifier", {"objective": "balanced-accuracy"}, balanced),
    "costs": ("CostSensitiveTreeClassifier", {"feature_costs": None}, least_cost),
    "rewards": ("PolicyTree", {"capacities": None, "min_samples_treatment": 0}, least_reward),
}


def least_tree(answers, rows, depth, leaves, leaf):
    """Cost of the best tree with at most this many leaves; infinite if there is none."""
    best = leaf(rows)
    for feature in range(answers.shape[1]) if depth and leaves > 1 else ():
        yes = answers[rows, feature]
        if yes.all() or not yes.any():
            continue
        for few in range(1, leaves):
            left = least_tree(answers, rows[yes], depth - 1, few, leaf)
            right = least_tree(answers, rows[~yes], depth - 1, leaves - few, leaf)
            best = min(best, left + right)
    return best


def exact(values):
    return np.array([Fraction(one) for one in np.ravel(values)]).reshape(np.shape(values))


def drawn(rng, kind, n=9):
    """Rows with an outcome whose numbers span up to 24 orders of magnitude."""

    def wide(*shape):
        sizes = 10.0 ** rng.integers(-12, 13, shape) if rng.random() < 0.5 else 1.0
        return sizes * rng.integers(0, 4, shape)

    labels = np.append([0, 1], rng.integers(0, 2, n - 2))
    weight = 1.0 + wide(n) if rng.random() < 0.5 else np.ones(n)
    target = wide(n) + rng.choice([0.0, 1e13])
    facts = {"target": target, "labels": labels, "classes": np.arange(2)}
    facts |= {"costs": wide(n, 2), "rewards": wide(n, 2) - wide(n, 2)}
    answers = rng.random((n, 3)) < 0.5
    return Rows(answers, weight, [], (), facts)


@pytest.mark.parametrize("kind", KINDS)
def test_the_search_is_that_of_every_tree_in_fractions(kind):
    cls, parameters, cost = KINDS[kind]
    rng = np.random.default_rng(1)
    for _ in range(min(25, int(os.environ.get("BRISTLECONE_CASES", "25")))):
        rows = drawn(rng, kind)
        stub = type(cls, (), {"certificate_": SimpleNamespace(parameters=parameters)})()
        statement = statement_of(stub, rows)
        depth, leaves = int(rng.integers(1, 4)), int(rng.choice([2, 3, 4, 9]))
        least, penalty = int(rng.integers(1, 3)), float(rng.choice([0.0, 0.01]))
        facts = {name: exact(value) for name, value in rows.facts.items() if name != "labels"}
        facts["labels"], weight = rows.facts["labels"], exact(rows.weight)
        total = sum(weight) if kind != "balanced" else 2

        def leaf(members, least=least, facts=facts, weight=weight, total=total, fee=penalty):
            if len(members) < least:
                return math.inf
            return cost(facts, weight, members) / total + Fraction(fee)

        every = np.arange(len(weight))
        best = least_tree(rows.answers, every, depth, leaves, leaf)
        limits = Limits(depth, leaves, least, 0, penalty)
        # Logarithms have the digits of float64.
        off = abs(best) * Fraction(1, 10**14) if kind == "entropy" else 0
        assert better_tree(statement, rows.answers, None, limits, best - off, 0.0) is None
        more = best + (abs(best) or 1) * Fraction(1, 10**12)
        found = better_tree(statement, rows.answers, None, limits, more, 0.0)
        assert found == pytest.approx(float(best), rel=1e-13)


@pytest.mark.slow
@pytest.mark.parametrize("prior", slow_but({10.0}, [0.0, 10.0]))
def test_every_survival_tree_is_tried(prior):
    rng = np.random.default_rng(2)
    for depth in (2, 3):
        columns = rng.random((40, 4)) < 0.5
        y = np.empty(40, dtype=[("dead", bool), ("days", float)])
        y["dead"], y["days"] = rng.random(40) < 0.8, rng.integers(1, 30, 40)
        weight = 10.0 ** rng.integers(-3, 4, 40)
        tree = OptimalSurvivalTree(
            max_depth=depth, prior=prior, encoder=BinaryEncoder(), min_events_leaf=2
        ).fit(columns, y, sample_weight=weight)
        rows = Rows(columns, weight, [], (), {"event": y["dead"], "time": y["days"], "entry": None})
        statement = statement_of(tree, rows)
        event = y["dead"]

        def leaf(members, event=event, statement=statement):
            if event[members].sum() < 2:
                return math.inf
            group = np.isin(np.arange(40), members)[None, :]
            own = statement.candidates(statement.sums(group))[0, 0, 0]
            return own / statement.total

        best = least_tree(columns, np.arange(40), depth, 9, leaf)
        limits = Limits(depth, 9, 1, 2, 0.0)
        off = Fraction(1, 10**11) * abs(best)
        assert better_tree(statement, columns, event, limits, best - off, 0.0) is None
        found = better_tree(statement, columns, event, limits, best + off, 0.0)
        assert found == pytest.approx(float(best), rel=1e-10)


@pytest.mark.parametrize("name", slow_but({"veterans"}, list_datasets()))
def test_depth_three_of_every_bundled_data_set_is_proven_again(name):
    data = load(name)
    tree = OptimalSurvivalTree(max_depth=3).fit(data.X, data.y)
    found = verify(tree, data.X, data.y)
    assert found.ok and found["lower bound"].result == "passed"
    assert "every tree of depth 3 over" in found["lower bound"].found


def test_a_bound_that_is_slightly_too_high_is_found_out():
    data = load("veterans")
    tree = OptimalSurvivalTree(max_depth=3).fit(data.X, data.y)
    found = verify(claiming(tree, tree.objective_value_), data.X, data.y)
    assert found.ok
    claiming(tree, tree.objective_value_, tree.objective_value_ * (1 + 1e-8))
    assert failed(verify(tree, data.X, data.y)) == ["lower bound"]


def test_trees_whose_rounding_decides_are_summed_in_fractions():
    rng = np.random.default_rng(3)
    columns = rng.random((60, 8)) < 0.5
    y = rng.normal(size=60) + 1e9 * (np.arange(60) == 0)
    tree = OptimalTreeRegressor(max_depth=2).fit(columns, np.where(y > 1e8, 0, y))
    found = verify(claimed_optimal(tree, columns, y), columns, y)
    assert found["lower bound"].result == "failed"


def test_sums_over_many_distinct_rows_are_exact():
    # So many rows that sums of the digits of their weights do not fit into float64.
    n = 2**16
    answers = (np.arange(n)[:, None] >> np.arange(16)) % 2 == 1
    rng = np.random.default_rng(3)
    facts = {"labels": rng.integers(0, 2, n), "classes": np.arange(2)}
    rows = Rows(answers, rng.uniform(0.5, 1.0, n), [], (), facts)
    certificate = SimpleNamespace(parameters={"objective": "f1"})
    stub = type("OptimalTreeClassifier", (), {"certificate_": certificate})()
    statement = statement_of(stub, rows)
    whole = statement.candidates(statement.sums(np.ones((1, n), dtype=bool)))[0]
    best = min(statement.value(whole, 0.0).tolist())
    limits = Limits(0, 1, 1, 0, 0.0)
    assert better_tree(statement, answers, None, limits, best, 0.0) is None
    found = better_tree(statement, answers, None, limits, best * (1 + Fraction(1, 2**100)), 0.0)
    assert found == float(best)


@pytest.mark.parametrize("missing", ["impute", "branch"])
def test_a_search_over_every_threshold_is_proven_again_over_all_of_them(missing, monkeypatch):
    X, y = np.arange(40.0)[:, None], np.repeat(["a", "b"], [17, 23])
    X[::7] = np.nan
    encoder = BinaryEncoder(thresholds="all", missing=missing)
    limits = {"max_depth": 2, "encoder": encoder, "min_samples_leaf": 13}
    tree = OptimalTreeClassifier(**limits).fit(X, y)
    check = verify(tree, X, y)["lower bound"]
    n_features = 33 + (missing == "branch")
    assert check.result == "passed"
    assert f"every tree of depth 2 over {n_features} binary features" in check.found
    # A worse tree over a threshold that the search would not have chosen.
    worse = OptimalTreeClassifier(**{**limits, "min_samples_leaf": 17}).fit(X, y)
    assert worse.objective_value_ > tree.objective_value_
    worse.certificate_ = replace(worse.certificate_, settings=tree.certificate_.settings)
    worse.set_params(min_samples_leaf=13)
    check = verify(worse, X, y)["lower bound"]
    assert (check.result, check.expected[:7]) == ("failed", "at most")
    monkeypatch.setattr("bristlecone.trust._proof._MOST_ANSWERS", 100)
    check = verify(tree, X, y)["lower bound"]
    assert (check.result, check.reason[:16]) == ("not checked", "not proven again")


def test_the_bound_of_a_stopped_search_is_proven_again():
    X, y = np.arange(40.0)[:, None], np.repeat(["a", "b"], [17, 23])
    stopped = OptimalTreeClassifier(max_depth=1, min_samples_leaf=19).fit(X, y)
    stopped.certificate_ = replace(stopped.certificate_, status="time_limit", lower_bound=0.0)
    assert verify(stopped, X, y)["lower bound"].found.endswith("none is below the bound")
