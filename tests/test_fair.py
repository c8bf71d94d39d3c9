"""``FairTreeClassifier``: the constraint holds, nothing fair is better, bad input."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest

from bristlecone import (
    DemographicParity,
    EqualityOfOpportunity,
    FairTreeClassifier,
    OptimalTreeClassifier,
)

PARITY = {
    "demographic-parity": DemographicParity,
    "equality-of-opportunity": EqualityOfOpportunity,
}
CONSTRAINTS = list(PARITY)
LOOSE = DemographicParity(0.05)


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
    model = FairTreeClassifier(fairness=PARITY[constraint](delta), max_depth=2)
    model.fit(X, y, weight if weighted else None, sensitive_features=group)
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
    loose = FairTreeClassifier(fairness=DemographicParity(1.0), max_depth=2).fit(
        X, y, sensitive_features=group
    )
    tight = FairTreeClassifier(fairness=DemographicParity(0.0), max_depth=2).fit(
        X, y, sensitive_features=group
    )
    assert loose.objective_value_ == pytest.approx(free.objective_value_, abs=1e-12)
    assert tight.objective_value_ > free.objective_value_ + 0.01


def test_the_group_may_be_named_in_any_table():
    X, y, group, _ = sample()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(sex=np.where(group, "m", "f"))
    passed = FairTreeClassifier(fairness=DemographicParity(0.05), max_depth=2).fit(
        frame, y, sensitive_features=frame["sex"]
    )
    parity = DemographicParity(0.05, sensitive_feature="sex")
    named = FairTreeClassifier(fairness=parity, max_depth=2)
    for table in (frame, pl.from_pandas(frame)):
        named.fit(table, y)
        assert named.objective_value_ == passed.objective_value_
        assert named.groups_.tolist() == ["f", "m"]
    array = np.column_stack([X, group])
    parity = DemographicParity(0.05, sensitive_feature=4)
    by_position = FairTreeClassifier(fairness=parity, max_depth=2).fit(array, y)
    assert by_position.objective_value_ == pytest.approx(passed.objective_value_, abs=1e-12)


def test_a_column_named_in_the_constraint_stays_a_feature():
    X, y, group, _ = sample()
    y = group ^ (np.arange(60) % 10 == 0)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(sex=np.where(group, "m", "f"))
    parity = DemographicParity(1.0, sensitive_feature="sex")
    tree = FairTreeClassifier(fairness=parity, max_depth=1).fit(frame, y)
    assert tree.features_used_ == ["sex"]
    without = FairTreeClassifier(fairness=DemographicParity(1.0), max_depth=1)
    without.fit(frame.drop(columns="sex"), y, sensitive_features=frame["sex"])
    assert "sex" not in without.feature_names_in_


@pytest.mark.parametrize(
    ("fairness", "changed", "message"),
    [
        (None, {}, "^fairness must be DemographicParity.* got None"),
        ("demographic-parity", {}, "^fairness must be DemographicParity"),
        (DemographicParity(-0.1), {}, "^fairness.limit must be"),
        (DemographicParity(1.5), {}, "^fairness.limit must be at most 1"),
        (
            DemographicParity(0.1, sensitive_feature="sex"),
            {"sensitive_features": None},
            "fairness.sensitive_feature='sex' is not a column",
        ),
        (
            DemographicParity(0.1, sensitive_feature=9),
            {"sensitive_features": None},
            "fairness.sensitive_feature=9 is not a column",
        ),
        (DemographicParity(0.1), {"sensitive_features": None}, "^fairness needs groups"),
        (
            DemographicParity(0.05),
            {"sensitive_features": np.zeros(60, int)},
            r"sensitive_features has one value, \[0\]",
        ),
        (
            DemographicParity(0.05),
            {"sensitive_features": np.arange(60) % 3},
            "sensitive_features has 3 values",
        ),
        (
            DemographicParity(0.05),
            {"sensitive_features": np.zeros(59, int)},
            "X has 60 rows but sensitive_features has 59",
        ),
        (
            DemographicParity(0.05),
            {"y": np.arange(60) % 3},
            "Only binary classification is supported",
        ),
        (
            EqualityOfOpportunity(0.1),
            {"sensitive_features": np.repeat(["a", "b"], 30), "y": np.repeat([1, 0], 30)},
            "group 'b' has no row of the positive class 1",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_input_is_named(fairness, changed, message):
    X, y, group, _ = sample()
    given = {"y": y, "sensitive_features": group, **changed}
    with pytest.raises(ValueError, match=message):
        FairTreeClassifier(fairness=fairness).fit(X, **given)
