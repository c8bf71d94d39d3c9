"""``RmstParity``: predicted curves keep the limit, no fair tree is better, and bad input."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from papers import PAPERS

from bristlecone import BinaryEncoder, OptimalSurvivalTree, RmstParity
from bristlecone._leaves.brier import brier_score_of
from bristlecone.curves import rmst
from bristlecone.datasets import load
from bristlecone.exceptions import InvalidParameterError, SearchLimitWarning
from bristlecone.trust import near_optimal_trees


def _study(n: int = 60, seed: int = 0, features: int = 4):
    rng = np.random.default_rng(seed)
    X = rng.random((n, features)) < 0.5
    group = np.where(rng.random(n) < 0.3 + 0.4 * X[:, 0], "b", "a")
    time = np.round(rng.exponential(10.0, n) * np.where(X[:, 0], 2.0, 0.7), 1) + 0.1
    event = rng.random(n) < 0.7
    return X, (event, time), group


def _means(tree, X, group, tau, weight=None):
    mean = tree.predict_rmst(X, tau)
    weight = np.ones(len(X)) if weight is None else weight
    return [np.average(mean[group == g], weights=weight[group == g]) for g in "ab"]


def _objective(model, X, y, leaf, weight):
    """Objective, and mean per group, of the partition of the rows into ``leaf``."""
    event, time = y
    total = weight.sum()
    order = np.unique(time[event])
    risk = np.array([weight[time >= t].sum() for t in order])
    events = np.array([weight[event & (time == t)].sum() for t in order])
    steps = np.cumsum(events / risk)
    hazard = np.concatenate([[0.0], steps])[np.searchsorted(order, time, side="right")]
    floored = np.where(hazard > 0, hazard, 1 / (total + 1))
    value, mean = 0.0, np.zeros(len(time))
    score = brier_score_of(time, event, weight)
    for node in np.unique(leaf):
        rows = leaf == node
        if model.objective == "likelihood":
            es = weight[rows & event].sum()
            hs = (weight * floored)[rows].sum()
            if es > 0:
                nlhs = -(weight * np.log(floored))[rows & event].sum()
                value += (nlhs - es * np.log(es / hs)) / total
            survival = np.exp(-(es if es > 0 else 0.5) / hs * steps)
        else:
            at_risk = np.array([weight[rows & (time >= t)].sum() for t in order])
            gone = np.array([weight[rows & event & (time == t)].sum() for t in order])
            survival = np.cumprod(1 - np.divide(gone, at_risk, out=0 * gone, where=at_risk > 0))
            value += _brier(score, time, event, weight, rows, order, survival)
        tau = model.fairness.tau or time.max()
        mean[rows] = rmst(order, survival, tau)
    return value, mean


def _brier(score, time, event, weight, rows, order, survival):
    """Integrated Brier score of a curve on some rows, per total weight, by its definition."""
    grid = np.unique(time)
    at_risk = np.array([weight[time >= t].sum() for t in grid])
    censored = np.array([weight[~event & (time == t)].sum() for t in grid])
    inverse = np.cumprod(1 - censored / at_risk)
    inverse = np.divide(1, inverse, out=0 * inverse, where=inverse > 1e-12)
    curve = np.concatenate([[1.0], survival])[np.searchsorted(order, grid, side="right")]
    loss = 0.0
    for i in np.flatnonzero(rows):
        own = inverse[np.searchsorted(grid, time[i])]
        at = np.where(time[i] > grid, (1 - curve) ** 2 * inverse, curve**2 * own * event[i])
        loss += weight[i] * (at[:-1] * np.diff(grid)).sum()
    return loss / (weight.sum() * grid[-1])


def _partitions(X):
    """Leaves of every tree of depth two or less."""
    columns = range(X.shape[1])
    yield np.zeros(len(X), dtype=int)
    for root, yes, no in itertools.product(columns, [None, *columns], [None, *columns]):
        leaf = X[:, root] * 2
        for side, inner in ((True, yes), (False, no)):
            if inner is not None:
                leaf = leaf + ((X[:, root] == side) & X[:, inner])
        yield leaf


@pytest.mark.parametrize("objective", ["likelihood", "brier"])
@pytest.mark.parametrize("weighted", [False, True])
def test_no_fair_tree_is_better(objective, weighted):
    X, y, group = _study(40, features=3)
    weight = np.random.default_rng(1).integers(1, 4, len(X)).astype(float)
    weight = weight if weighted else np.ones(len(X))
    for limit in (0.0, 0.4, 3.0):
        model = OptimalSurvivalTree(
            objective=objective, max_depth=2, fairness=RmstParity(limit, tau=12.0), **PAPERS
        ).fit(X, y, weight if weighted else None, sensitive_features=group)
        assert model.status_ == "optimal"
        assert abs(np.diff(_means(model, X, group, 12.0, weight))[0]) <= limit + 1e-9
        least = np.inf
        for leaf in _partitions(X):
            value, mean = _objective(model, X, y, leaf, weight)
            means = [np.average(mean[group == g], weights=weight[group == g]) for g in "ab"]
            if abs(means[1] - means[0]) <= limit + 1e-9:
                least = min(least, value)
        assert model.objective_value_ == pytest.approx(least, abs=1e-9)


@pytest.mark.parametrize("objective", ["likelihood", "brier"])
def test_the_limit_costs_what_it_must_and_is_reported(objective):
    X, y, group = _study()
    free = OptimalSurvivalTree(objective=objective).fit(X, y)
    loose = OptimalSurvivalTree(objective=objective, fairness=RmstParity(1e6))
    loose.fit(X, y, sensitive_features=group)
    tight = OptimalSurvivalTree(objective=objective, fairness=RmstParity(0.1))
    tight.fit(X, y, sensitive_features=group)
    assert loose.objective_value_ == pytest.approx(free.objective_value_, abs=1e-9)
    assert tight.objective_value_ > free.objective_value_ + 1e-6
    assert tight.groups_.tolist() == ["a", "b"]
    tau = y[1].max()
    assert tight.group_rmst_ == pytest.approx(_means(tight, X, group, tau), abs=1e-9)
    assert abs(np.diff(tight.group_rmst_)[0]) <= 0.1 + 1e-9
    assert abs(np.diff(_means(free, X, group, tau))[0]) > 0.1
    assert free.groups_ is None and free.group_rmst_ is None


def test_a_column_of_X_can_name_the_groups():
    X, y, group = _study()
    codes = np.column_stack([X, group == "b"])
    named = OptimalSurvivalTree(max_depth=2, fairness=RmstParity(0.5, sensitive_feature=4))
    passed = OptimalSurvivalTree(max_depth=2, fairness=RmstParity(0.5))
    assert named.fit(codes, y).objective_value_ == pytest.approx(
        passed.fit(codes, y, sensitive_features=group).objective_value_, abs=1e-12
    )


def test_every_size_and_a_saved_model_keep_the_groups():
    X, y, group = _study()
    model = OptimalSurvivalTree(max_depth=2, fairness=RmstParity(0.5, tau=10.0))
    path = model.size_path(X, y, sensitive_features=group)
    assert [tree.max_leaf_nodes for tree in path] == list(range(1, len(path) + 1))
    values = [tree.objective_value_ for tree in path]
    assert values == sorted(values, reverse=True)
    last = path[-1]
    loaded = OptimalSurvivalTree.from_json(last.to_json())
    assert loaded.fairness.get_params() == last.fairness.get_params()
    assert loaded.groups_.tolist() == last.groups_.tolist()
    assert loaded.group_rmst_.tolist() == last.group_rmst_.tolist()
    assert (loaded.predict(X) == last.predict(X)).all()


def test_a_stopped_search_is_fair_and_says_how_far_it_got():
    X, y, group = _study(400, features=24)
    model = OptimalSurvivalTree(max_depth=5, time_limit=0, fairness=RmstParity(0.2))
    with pytest.warns(SearchLimitWarning):
        model.fit(X, y, sensitive_features=group)
    assert model.status_ == "time_limit" and model.gap_ > 0
    assert abs(np.diff(model.group_rmst_)[0]) <= 0.2 + 1e-9


@pytest.mark.slow
def test_a_first_tree_far_from_the_best_is_no_reason_to_list_all_between():
    # The gap of the first tree is ten times that of the best: millions of subtrees, 600 MiB at
    # most.
    study = load("whas500")
    X = BinaryEncoder(n_thresholds=3).fit_transform(study.X, study.y)
    model = OptimalSurvivalTree(max_depth=4, memory_limit=64 << 20, fairness=RmstParity(20.0))
    model.fit(X, study.y, sensitive_features=study.X["gender"])
    assert model.status_ == "optimal"


@pytest.mark.parametrize(
    ("parameters", "sensitive", "message"),
    [
        ({"fairness": 0.5}, "ab", "fairness must be None or RmstParity"),
        ({"fairness": RmstParity(-1.0)}, "ab", "fairness.limit"),
        ({"fairness": RmstParity(1.0, tau=0.0)}, "ab", "fairness.tau must be positive"),
        ({"fairness": RmstParity(1.0)}, None, "fairness needs groups"),
        ({"fairness": RmstParity(1.0)}, "aa", "sensitive_features has one value"),
        ({"fairness": RmstParity(1.0)}, "abc", "sensitive_features has 3 values"),
        ({"fairness": RmstParity(1.0, sensitive_feature="sex")}, None, "not a column of X"),
        ({"fairness": RmstParity(1.0), "leaf_curve": "kaplan-meier"}, "ab", "leaf_curve"),
        ({}, "ab", "sensitive_features needs fairness"),
    ],
)
def test_bad_input_is_named(parameters, sensitive, message):
    X, y, _ = _study(12)
    group = None if sensitive is None else np.resize(list(sensitive), 12)
    with pytest.raises((ValueError, InvalidParameterError), match=message):
        OptimalSurvivalTree(**parameters).fit(X, y, sensitive_features=group)


def test_near_optimal_trees_rejects_fairness():
    X, y, group = _study(60)
    groups = {"sensitive_features": group}
    tree = OptimalSurvivalTree(fairness=RmstParity(1.0)).fit(X, y, **groups)
    with pytest.raises(TypeError, match="near_optimal_trees needs an objective that is a sum"):
        near_optimal_trees(tree, X, y, epsilon=0, **groups)
