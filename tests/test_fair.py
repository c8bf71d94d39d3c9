"""``FairTreeClassifier``: the constraint holds, nothing fair is better, bad input."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bristlecone import BristleconeWarning, FairTreeClassifier, OptimalTreeClassifier

CONSTRAINTS = ["demographic-parity", "equality-of-opportunity"]


def sample(n=60, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 2, size=n)
    X = rng.integers(0, 2, size=(n, n_features)).astype(bool)
    X[:, 0] = np.where(rng.random(n) < 0.7, group, X[:, 0])
    y = (X[:, 0] | (X[:, 1] & X[:, 2])).astype(int)
    flipped = rng.random(n) < 0.2
    return X, np.where(flipped, 1 - y, y), group, rng.integers(1, 4, size=n) / 2.0


def rates(predicted, y, group, weight, constraint):
    compared = np.ones(len(y), bool) if constraint == CONSTRAINTS[0] else y == 1
    return [
        np.average(predicted[compared & (group == g)], weights=weight[compared & (group == g)])
        for g in (0, 1)
    ]


def least_fair_error(X, y, group, weight, constraint, delta):
    """Error of the best of all trees of depth two with all labels of their leaves."""
    found = np.inf
    features = range(X.shape[1])
    for root, yes, no in itertools.product(features, features, features):
        leaf = np.where(X[:, root], X[:, yes] * 1, 2 + X[:, no])
        for labels in itertools.product((0, 1), repeat=4):
            predicted = np.array(labels)[leaf]
            low, high = sorted(rates(predicted, y, group, weight, constraint))
            if high - low <= delta + 1e-9:
                found = min(found, np.average(predicted != y, weights=weight))
    return found


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("delta", [0.0, 0.05, 0.2, 1.0])
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_no_fair_tree_is_better(constraint, delta, weighted):
    X, y, group, weight = sample()
    if not weighted:
        weight = np.ones(len(y))
    model = FairTreeClassifier(constraint=constraint, delta=delta, max_depth=2)
    model.fit(X, y, weight if weighted else None, sensitive=group)
    assert model.status_ == "optimal"
    error = np.average(model.predict(X) != y, weights=weight)
    assert model.objective_value_ == pytest.approx(error, abs=1e-9)
    best = least_fair_error(X, y, group, weight, constraint, delta)
    assert model.objective_value_ == pytest.approx(best, abs=1e-9)
    reached = rates(model.predict(X), y, group, weight, constraint)
    assert abs(reached[1] - reached[0]) <= delta + 1e-9
    np.testing.assert_allclose(model.group_rates_, reached, atol=1e-12)


def test_the_constraint_costs_accuracy_and_a_loose_one_nothing():
    X, y, group, _ = sample()
    free = OptimalTreeClassifier(max_depth=2).fit(X, y)
    loose = FairTreeClassifier(delta=1.0, max_depth=2).fit(X, y, sensitive=group)
    tight = FairTreeClassifier(delta=0.0, max_depth=2).fit(X, y, sensitive=group)
    assert loose.objective_value_ == pytest.approx(free.objective_value_, abs=1e-12)
    assert tight.objective_value_ > free.objective_value_ + 0.01


def test_the_group_may_be_named_in_any_table():
    X, y, group, _ = sample()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(sex=np.where(group, "m", "f"))
    passed = FairTreeClassifier(max_depth=2).fit(frame, y, sensitive=frame["sex"])
    named = FairTreeClassifier(max_depth=2, sensitive_feature="sex")
    for table in (frame, pl.from_pandas(frame)):
        named.fit(table, y)
        assert named.objective_value_ == passed.objective_value_
        assert named.groups_.tolist() == ["f", "m"]
    array = np.column_stack([X, group])
    by_position = FairTreeClassifier(max_depth=2, sensitive_feature=4).fit(array, y)
    assert by_position.objective_value_ == pytest.approx(passed.objective_value_, abs=1e-12)


def test_without_groups_a_warning_says_that_nothing_is_constrained():
    X, y, _, _ = sample()
    with pytest.warns(BristleconeWarning, match="no groups are given") as caught:
        model = FairTreeClassifier(max_depth=2).fit(X, y)
        FairTreeClassifier(max_depth=1).size_path(X, y)
    assert [warning.filename for warning in caught] == [__file__] * 2
    free = OptimalTreeClassifier(max_depth=2).fit(X, y)
    assert model.objective_value_ == free.objective_value_
    assert model.group_rates_.size == model.groups_.size == 0


@pytest.mark.parametrize(
    ("parameters", "changed", "message"),
    [
        ({"constraint": "equalised-odds"}, {}, "^constraint must be one of"),
        ({"delta": -0.1}, {}, "^delta must be"),
        ({"delta": 1.5}, {}, "^delta must be at most 1"),
        ({"sensitive_feature": "sex"}, {"sensitive": None}, "sensitive_feature='sex' is no column"),
        ({"sensitive_feature": 9}, {"sensitive": None}, "sensitive_feature=9 is no column"),
        ({}, {"sensitive": np.zeros(60, int)}, r"sensitive has one value, \[0\]"),
        ({}, {"sensitive": np.arange(60) % 3}, "sensitive has 3 values"),
        ({}, {"sensitive": np.zeros(59, int)}, "X has 60 rows but sensitive has 59"),
        ({}, {"y": np.arange(60) % 3}, "Only binary classification is supported"),
        (
            {"constraint": "equality-of-opportunity"},
            {"sensitive": np.repeat(["a", "b"], 30), "y": np.repeat([1, 0], 30)},
            "group 'b' has no row of the positive class 1",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_input_is_named(parameters, changed, message):
    X, y, group, _ = sample()
    given = {"y": y, "sensitive": group, **changed}
    with pytest.raises(ValueError, match=message):
        FairTreeClassifier(**parameters).fit(X, **given)
