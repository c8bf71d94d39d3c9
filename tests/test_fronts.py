"""Fronts of the engine are complete, agree with their trees, and report if they were stopped."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from engine_settings import SETTINGS

from bristlecone import BinaryEncoder, OptimalTreeClassifier
from bristlecone._search.front import ParetoFront, solve_front
from bristlecone.export import export_text
from bristlecone.trust import verify


def _problem(n: int = 80, features: int = 5, seed: int = 0):
    rng = np.random.default_rng(seed)
    X = (rng.random((n, features)) < 0.5).astype(np.uint8)
    labels = (rng.random(n) < 0.2 + 0.3 * X[:, 0] + 0.3 * X[:, 1]).astype(np.int64)
    return X, labels


def _f1(labels):
    positives = labels.sum()
    return lambda fp, fn: 2 * (positives - fn) / (2 * positives - fn + fp)


def _matthews(labels):
    p, n = labels.sum(), (1 - labels).sum()

    def measure(fp, fn):
        q = p - fn + fp
        product = p * n * q * (p + n - q)
        return (n * p - p * fp - n * fn) / np.sqrt(product) if product else 0.0

    return measure


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("leaves", [None, 3])
def test_a_measure_is_best_on_the_front(depth, leaves):
    X, labels = _problem(seed=depth)
    size = {"max_depth": depth, "max_leaf_nodes": leaves}
    front = OptimalTreeClassifier(**size).pareto_front(X, labels)
    for task, data, measure in [
        ("f-measure", {"beta": 1.0}, _f1(labels)),
        ("matthews", {}, _matthews(labels)),
    ]:
        solution = solve_front(task, {"labels": labels, **data}, X, **{**SETTINGS, **size})
        best = front.best(measure)
        assert solution.status == "optimal"
        assert 1 - solution.objective == pytest.approx(measure(*best.costs), abs=1e-12)
        assert solution.lower_bound == pytest.approx(solution.objective, abs=1e-9)


@pytest.mark.parametrize("time_limit", [0.0, 0.05, None])
def test_a_front_holds_trees_that_do_not_dominate_one_another(time_limit):
    X, labels = _problem(300, 8)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        front = OptimalTreeClassifier(time_limit=time_limit).pareto_front(X, labels)
    assert len(caught) == (front.status != "optimal")
    # A machine may be fast enough for the second limit, but not for the first.
    expected = {0.0: {"time_limit"}, 0.05: {"time_limit", "optimal"}, None: {"optimal"}}
    assert front.status in expected[time_limit]
    assert len(front) > (front.status == "optimal")
    assert (np.diff(front.costs[:, 0]) > 0).all() and (np.diff(front.costs[:, 1]) < 0).all()
    for point in front:
        assert point.estimator.status_ in (front.status, "near_optimal")
        assert point.estimator.lower_bound_ <= point.estimator.objective_value_


OBJECTIVES = ["accuracy", "balanced-accuracy", "gini", "f1", "mcc"]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_trees_of_a_front_are_fits_of_the_estimator(objective):
    X, labels = _problem()
    named = np.where(labels, "yes", "no")
    model = OptimalTreeClassifier(objective=objective, max_depth=2, random_state=0)
    front = model.pareto_front(X, named)
    assert front.status == "optimal" and front.costs.shape == (len(front), 2)
    assert front.cost_names == ("false positives", "false negatives")
    assert not hasattr(model, "tree_")
    if objective == "gini":
        model.set_params(objective="accuracy")
    least = model.fit(X, named).objective_value_
    values = []
    for point in front:
        tree, predicted = point.estimator, point.predict(X)
        errors = ((predicted == "yes") & ~labels).sum(), ((predicted == "no") & labels).sum()
        assert point.costs == errors
        assert tree.get_params() == model.get_params() and not hasattr(tree, "pareto_front_")
        is_best = tree.objective_value_ == pytest.approx(least, abs=1e-12)
        assert tree.status_ == ("optimal" if is_best else "near_optimal")
        assert tree.lower_bound_ == pytest.approx(least, abs=1e-12)
        values.append(tree.objective_value_)
        assert verify(tree, X, named).ok
        again = OptimalTreeClassifier.from_json(tree.to_json())
        np.testing.assert_array_equal(again.predict(X), predicted)
        np.testing.assert_array_equal(point.labels, tree.leaves_.label)
        half = tree.reestimate(X[::2], named[::2])
        np.testing.assert_array_equal(half.predict(X), predicted)
        assert verify(half, X[::2], named[::2]).ok
        assert point.tree is tree.tree_
    assert min(values) == pytest.approx(least, abs=1e-12) and max(values) > least


def test_trees_of_a_front_count_missing_values():
    X, labels = _problem()
    X = np.where(np.arange(80)[:, None] % 9 == 0, np.nan, X)
    front = OptimalTreeClassifier(max_depth=2, encoder=BinaryEncoder(missing="branch"))
    trees = [point.estimator for point in front.pareto_front(X, labels)]
    fit = OptimalTreeClassifier(max_depth=2, encoder=BinaryEncoder(missing="branch")).fit(X, labels)
    same = [tree for tree in trees if tree.status_ == "optimal"]
    assert same[0].objective_value_ == fit.objective_value_
    text = [export_text(tree) for tree in trees]
    assert any("missing" in one for one in text)


def test_capacities_limit_the_labels_and_may_be_out_of_reach():
    X, labels = _problem()
    rewards = -np.column_stack([labels, 1.0 - labels]).astype(float)
    data = {"rewards": rewards, "capacity": np.array([np.inf, 10.0])}
    solution = solve_front("capacity", data, X, **SETTINGS)
    assert solution.status == "optimal" and solution.costs[1] <= 10
    free = solve_front("capacity", {**data, "capacity": np.full(2, np.inf)}, X, **SETTINGS)
    assert free.objective < solution.objective
    none = solve_front("capacity", {**data, "capacity": np.array([10.0, 10.0])}, X, **SETTINGS)
    assert none.status == "infeasible" and none.front.points == []
    assert not hasattr(none, "feature")


def test_the_front_needs_a_measure_that_is_a_number():
    X, labels = _problem()
    front = OptimalTreeClassifier(max_depth=2).pareto_front(X, labels)
    with pytest.raises(ValueError, match="NaN"):
        front.best(lambda fp, fn: np.nan)
    with pytest.raises(ValueError, match="no points"):
        ParetoFront([], ("a", "b"), "optimal").best(lambda a, b: 0.0)


@pytest.mark.parametrize(
    ("task", "data", "message"),
    [
        ("gini", {"labels": np.zeros(80, np.int64), "n_classes": 2}, "has no front"),
        ("confusion", {}, "labels is missing"),
        ("confusion", {"labels": np.full(80, 2)}, "row 0 is not 0 or 1"),
        ("confusion", {"labels": np.zeros(3, np.int64)}, "labels has 3 rows"),
        ("f-measure", {"beta": -1.0}, "beta"),
        ("demographic-parity", {"group": np.zeros(80, np.int64), "delta": 0.1}, "single value"),
        ("capacity", {"rewards": np.ones((80, 2)), "capacity": np.ones(3)}, "capacity"),
        ("capacity", {"rewards": np.full((80, 2), np.inf), "capacity": np.ones(2)}, "rewards"),
    ],
)
def test_bad_data_are_named(task, data, message):
    X, labels = _problem()
    if task not in ("confusion", "gini", "capacity"):
        data = {"labels": labels, **data}
    with pytest.raises(ValueError, match=message):
        solve_front(task, data, X, **SETTINGS)


def test_points_that_differ_only_by_the_rounding_of_weights_are_one():
    labels, weight = np.array([0, 1, 0, 0, 1, 0, 1]), np.array([0.3, 2, 0.1, 0.2, 1, 5, 1])
    X = np.array([[1, 0]] * 2 + [[0, 1]] * 3 + [[0, 0]] * 2, dtype=np.uint8)
    data = {"labels": labels, "weight": weight}
    costs = solve_front("confusion", data, X, **{**SETTINGS, "max_depth": 1}).front.points
    costs = np.array([point.costs for point in costs])
    assert costs == pytest.approx(np.array([[0, 4], [0.3, 2], [5.3, 1], [5.6, 0]]), abs=1e-9)


def test_trees_of_the_same_errors_but_for_the_order_of_sums_are_one_point():
    labels = np.array([0] * 4 + [1] * 6)
    rows = "000 101 100 001 000 100 011 000 101 001"
    X = np.array([[int(digit) for digit in row] for row in rows.split()], dtype=np.uint8)
    data = {"labels": labels, "weight": np.array([1.6] * 4 + [8 / 11] * 6)}
    settings = {**SETTINGS, "max_depth": 3, "max_leaf_nodes": 4, "leaf_penalty": 1e-3}
    points = solve_front("matthews", data, X, **settings).front.points
    errors = np.array([point.costs for point in points])
    assert len(np.unique(errors.round(9), axis=0)) == len(points)


@pytest.mark.parametrize("scale", [1, 0.1, 0.7, 2.0**-20, 1e-9])
def test_equal_rates_are_equal_whatever_weights_are_counted_in(scale):
    labels, group = np.array([0, 1, 1, 0, 0]), np.array([1, 0, 1, 1, 0])
    X = np.array([[0], [1], [1], [1], [0]], dtype=np.uint8)
    weight = np.array([3.0, 1, 2, 1, 1]) * scale
    data = {"labels": labels, "group": group, "delta": 0.0, "weight": weight}
    settings = {**SETTINGS, "max_depth": 1}
    solution = solve_front("demographic-parity", data, X, **settings)
    assert solution.objective == pytest.approx(0.125, abs=1e-12)
