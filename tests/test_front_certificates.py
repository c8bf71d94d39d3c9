"""Certificates of constrained searches and of F1 and MCC hold at the end and on the way."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bristlecone import (
    DemographicParity,
    EqualityOfOpportunity,
    FairTreeClassifier,
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    PolicyTree,
    RmstParity,
)
from bristlecone.exceptions import InfeasibleError, SearchLimitWarning


def _checked(model, seen):
    """The model, after a check of its trace and of the reports to its callback."""
    for points in (model.trace_, seen):
        objectives = [objective for _, objective, _ in points]
        bounds = [bound for *_, bound in points]
        assert objectives == sorted(objectives, reverse=True)
        assert bounds == sorted(bounds)
        assert max(bounds) <= model.objective_value_ <= min(objectives)
    assert model.trace_[-1][1:] == (model.objective_value_, model.lower_bound_)
    met = model.gap_ <= 1e-9 * abs(model.objective_value_)
    assert (model.status_ == "optimal") == met
    return model


def _fit(model, X, y, **data):
    seen = []
    record = lambda p: seen.append((p.seconds, p.objective, p.lower_bound))  # noqa: E731
    return _checked(model.fit(X, y, callback=record, **data), seen)


def _rewards(seed, n=40):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4)) < 0.5
    treatment = rng.integers(0, 2, n)
    y = (rng.random(n) < 0.5).astype(float)
    return X, y, {"treatment": treatment, "propensity": np.full(n, 0.5)}


@pytest.mark.parametrize("leaf_penalty", [0.0, 0.005, 0.01, 0.02, 1000.0])
@pytest.mark.parametrize("seed", range(4))
def test_a_capacity_of_everything_changes_nothing(leaf_penalty, seed):
    X, y, data = _rewards(seed)
    settings = {"reward": "inverse-propensity", "max_depth": 3, "leaf_penalty": leaf_penalty}
    free = PolicyTree(**settings).fit(X, y, **data)
    limited = _fit(PolicyTree(**settings, capacities={1: 1.0}), X, y, **data)
    assert limited.status_ == "optimal"
    assert limited.objective_value_ == pytest.approx(free.objective_value_, abs=1e-12)
    rewards = np.where(data["treatment"] == limited.predict(X), y / 0.5, 0.0)
    assert limited.policy_value_ == pytest.approx(rewards.mean(), abs=1e-9)


def test_a_hopeless_penalty_is_counted_in_full():
    rng = np.random.default_rng(1)
    X, group = rng.random((60, 4)) < 0.5, rng.integers(0, 2, 60)
    y = (rng.random(60) < 0.4).astype(int)
    fair = _fit(
        FairTreeClassifier(fairness=DemographicParity(0.2), leaf_penalty=1000.0),
        X,
        y,
        sensitive_features=group,
    )
    assert fair.objective_value_ == pytest.approx(1000 + np.mean(y != fair.predict(X)))
    time = rng.exponential(size=60)
    for objective in ("likelihood", "brier"):
        model = OptimalSurvivalTree(objective=objective, max_depth=2, leaf_penalty=1000.0)
        expected = model.fit(X, (y, time)).objective_value_
        limited = model.set_params(fairness=RmstParity(limit=0.2))
        _fit(limited, X, (y, time), sensitive_features=group)
        assert limited.n_leaves_ == 1
        assert limited.objective_value_ == pytest.approx(expected, abs=1e-9)
    # Splits that a constraint requires are charged in full, too.
    treatment = np.array([0, 0, 1, 1])
    split = PolicyTree(
        reward="direct", capacities={0: 0.5, 1: 0.5}, leaf_penalty=1000.0, max_depth=2
    ).fit(
        [[0], [1], [0], [1]],
        [0.0] * 4,
        treatment=treatment,
        predicted_outcomes=np.eye(4)[:, :2],
    )
    assert split.n_leaves_ == 2
    assert split.objective_value_ == pytest.approx(2000 - split.policy_value_)


def test_a_tie_of_mcc_is_no_proof():
    X = np.array([[1, 1], [0, 1], [1, 1], [1, 0], [0, 1], [0, 1]], bool)
    y = [0, 0, 1, 1, 0, 1]
    model = _fit(OptimalTreeClassifier(objective="mcc", max_depth=1), X, y)
    assert model.status_ == "optimal"
    assert model.objective_value_ == pytest.approx(1 - 0.4472135955)
    assert OptimalTreeClassifier.from_json(model.to_json()).gap_ == model.gap_


@pytest.mark.parametrize("objective", ["f1", "mcc"])
@pytest.mark.parametrize("leaf_penalty", [0.0, 0.02])
@pytest.mark.parametrize("max_leaf_nodes", [None, 3])
def test_measures_tell_true_bounds_on_their_way(objective, leaf_penalty, max_leaf_nodes):
    rng = np.random.default_rng(0)
    X = rng.random((60, 5)) < 0.5
    y = ((X[:, 0] & X[:, 1]) | (rng.random(60) < 0.2)).astype(int)
    model = OptimalTreeClassifier(
        objective=objective, leaf_penalty=leaf_penalty, max_leaf_nodes=max_leaf_nodes
    )
    assert _fit(model, X, y).status_ == "optimal"


@pytest.mark.parametrize("constraint", [DemographicParity, EqualityOfOpportunity])
def test_fair_trees_tell_true_bounds_on_their_way(constraint):
    rng = np.random.default_rng(3)
    X, group = rng.random((80, 6)) < 0.5, rng.integers(0, 2, 80)
    y = (rng.random(80) < 0.2 + 0.3 * X[:, 0] + 0.3 * group).astype(int)
    model = FairTreeClassifier(fairness=constraint(0.02), max_depth=3)
    assert _fit(model, X, y, sensitive_features=group).status_ == "optimal"


def test_a_loose_constraint_is_proven_by_the_search_without_it():
    rng = np.random.default_rng(4)
    X, group = rng.random((300, 8)) < 0.5, rng.integers(0, 2, 300)
    y = (rng.random(300) < 0.2 + 0.3 * X[:, 0] + 0.2 * X[:, 1]).astype(int)
    fair = _fit(
        FairTreeClassifier(fairness=DemographicParity(1.0), max_depth=4),
        X,
        y,
        sensitive_features=group,
    )
    free = OptimalTreeClassifier(max_depth=4).fit(X, y)
    assert fair.status_ == "optimal"
    assert fair.objective_value_ == pytest.approx(free.objective_value_, abs=1e-12)


def test_a_stopped_fair_tree_has_a_bound_that_no_loss_is_below():
    rng = np.random.default_rng(5)
    X, group = rng.random((200, 8)) < 0.5, rng.integers(0, 2, 200)
    time = rng.exponential(np.where(X[:, 0], 1.0, 3.0))
    model = OptimalSurvivalTree(fairness=RmstParity(limit=0.05), time_limit=0.0, leaf_penalty=0.01)
    with pytest.warns(SearchLimitWarning):
        model.fit(X, (np.ones(200, bool), time), sensitive_features=group)
    assert model.status_ == "time_limit"
    assert model.lower_bound_ >= 0.01
    _checked(model, model.trace_)


def test_a_limit_before_any_admissible_tree_is_named():
    X, y = [[0], [1], [0], [1]], [0.0] * 4
    data = {"treatment": [0, 0, 1, 1], "predicted_outcomes": np.eye(4)[:, :2]}
    model = PolicyTree(reward="direct", capacities={0: 0.5, 1: 0.5}, time_limit=0)
    with pytest.raises(InfeasibleError, match=r"stopped \(time_limit\) before it found"):
        model.fit(X, y, **data)
    assert model.status_ == "time_limit"
    assert not hasattr(model, "tree_")
    assert math.isinf(model.gap_) and math.isfinite(model.lower_bound_)
    with pytest.raises(InfeasibleError, match="time_limit"):
        model.predict(X)
    with pytest.warns(SearchLimitWarning, match="2 of 2 searches.*time_limit"):
        path = model.size_path(X, y, **data)
    assert [tree.status_ for tree in path] == ["time_limit"] * 2
    assert PolicyTree(reward="direct", capacities={0: 0.5}).fit(X, y, **data).n_leaves_ > 1


def test_what_a_callback_raises_ends_the_fit_before_any_tree():
    rng = np.random.default_rng(6)
    X = rng.random((40, 5)) < 0.5
    model = PolicyTree(reward="direct", capacities={0: 0.0, 1: 0.0})

    def stop(progress):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        model.fit(
            X,
            np.zeros(40),
            treatment=rng.integers(0, 2, 40),
            predicted_outcomes=rng.random((40, 2)),
            callback=stop,
        )


def test_a_single_leaf_is_kept_where_it_is_admissible():
    X, y, data = _rewards(0)
    model = PolicyTree(reward="inverse-propensity", capacities={1: 0.0}, time_limit=0)
    with pytest.warns(SearchLimitWarning):
        model.fit(X, y, **data)
    assert (model.status_, model.n_leaves_) == ("time_limit", 1)
    assert set(model.predict(X)) == {0}


def test_a_front_under_a_leaf_budget_holds_no_dominated_tree():
    rows = ["0110", "0101", "1111", "1100", "1100", "1010", "0010", "1110", "1111", "1100"]
    X, y = np.array([[int(v) for v in row] for row in rows]), [0, 0, 1, 0, 1, 0, 1, 1, 0, 1]
    model = OptimalTreeClassifier(max_depth=3, min_samples_leaf=2, max_leaf_nodes=4)
    costs = model.pareto_front(X, y).costs
    assert (np.diff(costs[:, 0]) > 0).all() and (np.diff(costs[:, 1]) < 0).all()


def test_tables_that_do_not_fit_leave_a_tree_and_a_bound():
    rng = np.random.default_rng(7)
    X, group = rng.random((200, 300)) < 0.5, rng.integers(0, 2, 200)
    y = (rng.random(200) < 0.2 + 0.5 * X[:, 0]).astype(int)
    model = FairTreeClassifier(fairness=DemographicParity(0.001), max_depth=2, memory_limit=200_000)
    with pytest.warns(SearchLimitWarning, match="memory_limit"):
        model.fit(X, y, sensitive_features=group)
    assert model.status_ == "memory_limit"
    _checked(model, model.trace_)
