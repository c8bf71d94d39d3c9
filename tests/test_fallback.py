"""Warnings and results of fits whose search is too large for its limits."""

import ast
import re
import warnings
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from contract.subjects import SquaredError
from pace import slow_but
from sklearn.base import clone
from sklearn.metrics import mean_squared_error
from sklearn.tree import DecisionTreeRegressor

from bristlecone import (
    BinaryEncoder,
    CostSensitiveTreeClassifier,
    DemographicParity,
    FairTreeClassifier,
    OptimalSurvivalTree,
    OptimalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    PolicyTree,
    RmstParity,
)
from bristlecone._estimators import searched
from bristlecone._objectives import own
from bristlecone.exceptions import SearchCostWarning, SearchLimitWarning


class Case(NamedTuple):
    model: object
    y: object
    more: dict


def cases(n=400, p=8, seed=0):
    """Rows and an estimator for every kind of search, with settings that take minutes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    effect = (X[:, 0] > 0) * (X[:, 1] > 0.3) - (X[:, 2] > 0.5) * 1.0
    lifetimes = rng.random(n) < 0.7, rng.exponential(np.exp(effect)) + 0.01
    labels = (effect + rng.normal(0, 0.7, n) > 0).astype(int)
    numbers = effect + rng.normal(0, 0.5, n)
    group = {"sensitive_features": np.where(rng.random(n) < 0.5, "a", "b")}
    arm = rng.integers(0, 2, n)
    rewards = np.column_stack([numbers, effect * 0.5])
    treated = {"treatment": arm, "predicted_outcomes": rewards}
    parameters = {"max_depth": 7, "encoder": BinaryEncoder()}
    survival, fair = OptimalSurvivalTree, {"fairness": RmstParity(0.05)}
    classes, policy = OptimalTreeClassifier, PolicyTree(reward="direct", **parameters)
    found = {
        "likelihood": Case(survival(**parameters), lifetimes, {}),
        "brier": Case(survival(objective="brier", **parameters), lifetimes, {}),
        "fair likelihood": Case(survival(**fair, **parameters), lifetimes, group),
        "fair brier": Case(survival(objective="brier", **fair, **parameters), lifetimes, group),
        "accuracy": Case(classes(**parameters), labels, {}),
        "f1": Case(classes(objective="f1", **parameters), labels, {}),
        "mcc": Case(classes(objective="mcc", **parameters), labels, {}),
        "fair labels": Case(
            FairTreeClassifier(fairness=DemographicParity(0.01), **parameters), labels, group
        ),
        "costs": Case(
            CostSensitiveTreeClassifier(cost_matrix=[[0, 1], [3, 0]], **parameters), labels, {}
        ),
        "policy": Case(policy, numbers, treated),
        "capacities": Case(clone(policy).set_params(capacities={0: 0.3}), numbers, treated),
        "numbers": Case(OptimalTreeRegressor(**parameters), numbers, {}),
        "own task": Case(OptimalTree(task=SquaredError(), **parameters), numbers, {}),
    }
    return X, found


X, CASES = cases()


@pytest.fixture(autouse=True)
def no_encoding_time(monkeypatch):
    """Forecasts include measured times, which must not depend on the load of the machine here."""
    still = SimpleNamespace(perf_counter=lambda: 0.0)
    monkeypatch.setattr(searched, "time", still)
    monkeypatch.setattr(own, "time", still)


def settings_in(suggestion):
    """Parameters of every suggested setting, as a user would write them."""
    for text in re.findall(r"((?:max_depth|encoder)=.*?) \([\d.]+ \w+, [\d.]+ \w+\)", suggestion):
        call = ast.parse(f"f({text.removeprefix(' or ')})", mode="eval").body
        yield {
            keyword.arg: keyword.value.value
            if isinstance(keyword.value, ast.Constant)
            else BinaryEncoder(**{k.arg: ast.literal_eval(k.value) for k in keyword.value.keywords})
            for keyword in call.keywords
        }


@pytest.mark.parametrize("name", CASES)
def test_every_search_is_forecast_and_grows_with_its_depth(name):
    model, y, more = CASES[name]
    seconds = []
    for depth in (2, 3, 4):
        cost = clone(model).set_params(max_depth=depth, time_limit=1e9).estimate_cost(X, y, **more)
        assert cost.max_depth == depth
        assert cost.n_distinct_rows <= len(X)
        assert cost.n_features == BinaryEncoder().fit(X).transform(X).shape[1]
        assert 0 < cost.memory < 1e9
        seconds.append(cost.seconds)
    assert 0 < seconds[0] < seconds[1] < seconds[2]


@pytest.mark.parametrize("name", ["f1", "mcc"])
def test_a_leaf_penalty_does_not_make_the_search_for_a_measure_shorter(name):
    # In units of errors, a penalty above their share of one in twenty would rule out every split.
    model, y = clone(CASES[name].model).set_params(max_depth=3), np.arange(len(X)) % 20 == 0
    free, priced = (
        model.set_params(leaf_penalty=penalty).estimate_cost(X, y) for penalty in (0.0, 0.06)
    )
    assert priced.row_seconds > free.row_seconds
    assert priced.memory > 0.1 * free.memory


def test_optimal_curves_are_forecast_to_take_longer_the_more_times_there_are():
    model, (event, time), _ = CASES["brier"]
    model = clone(model).set_params(max_depth=4, time_limit=1e9)
    seconds = [
        model.set_params(leaf_curve=curve).estimate_cost(X, (event, rounded)).seconds
        for curve, rounded in (
            ("kaplan-meier", time),
            ("brier-optimal", np.ceil(time)),
            ("brier-optimal", time),
        )
    ]
    assert 2 * seconds[0] < seconds[1] < 0.6 * seconds[2]


def test_leaves_of_a_small_search_over_curves_take_time_for_every_row():
    rng = np.random.default_rng(0)
    y = np.ones(20_000, dtype=bool), rng.random(20_000)
    model = OptimalSurvivalTree(objective="brier", max_depth=1)
    assert model.estimate_cost(rng.random((20_000, 2)) < 0.5, y).seconds > 0.05


@pytest.mark.parametrize("name", ["fair labels", "capacities"])
def test_a_limit_is_forecast_to_cost_some_searches_without_it(name):
    model, y, more = CASES[name]
    limited = clone(model).set_params(max_depth=5, time_limit=1e9).estimate_cost(X, y, **more)
    free = clone(CASES["accuracy"].model).set_params(max_depth=5, time_limit=1e9)
    free = free.estimate_cost(X, CASES["accuracy"].y)
    assert free.seconds < limited.seconds < 60 * free.seconds


@pytest.mark.parametrize("name", CASES)
def test_what_is_suggested_is_forecast_within_the_limit(name):
    model, y, more = CASES[name]
    model = clone(model).set_params(time_limit=1.0)
    with pytest.warns(SearchCostWarning) as caught:
        cost = model.estimate_cost(X, y, **more)
    assert cost.seconds > 1.0
    assert cost.suggestion in str(caught[0].message)
    found = list(settings_in(cost.suggestion))
    assert found
    for settings in found:
        smaller = clone(model).set_params(**settings).estimate_cost(X, y, **more)
        assert smaller.suggestion is None
        assert smaller.seconds <= 1.0


@pytest.mark.parametrize(
    "name", slow_but({"likelihood", "brier", "f1", "capacities", "own task"}, CASES)
)
def test_a_fit_that_the_clock_stops_has_said_that_it_would_be(name):
    model, y, more = CASES[name]
    model = clone(model).set_params(time_limit=0.2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y, **more)
    reported = [warning.category for warning in caught]
    assert reported[0] is SearchCostWarning
    assert caught[0].filename == __file__
    # A search that prunes much may still end.
    assert reported[1:] == [SearchLimitWarning] * (model.status_ == "time_limit")


@pytest.mark.parametrize("name", CASES)
def test_a_search_of_no_time_at_all_is_no_search_and_says_no_more(name):
    model, y, more = CASES[name]
    model = clone(model).set_params(time_limit=0, max_depth=3)
    with pytest.warns(SearchLimitWarning) as caught:
        model.fit(X, y, **more)
    assert len(caught) == 1


def test_a_fit_that_fits_says_nothing():
    for name, (model, y, more) in CASES.items():
        model = clone(model).set_params(time_limit=1e9, max_depth=1)
        assert model.fit(X, y, **more).status_ == "optimal", name


@pytest.mark.parametrize("depth", [2, 4, 6])
def test_what_is_left_is_no_worse_than_the_tree_of_scikit_learn(depth):
    # No two splits of these numbers are equally good, so there is only one greedy tree.
    bits = BinaryEncoder().fit(X).transform(X)
    _, numbers, _ = CASES["numbers"]
    limits = {"max_depth": depth, "memory_limit": 1, "time_limit": 1e9}
    with pytest.warns(SearchLimitWarning):
        tree = OptimalTreeRegressor(encoder=BinaryEncoder(), **limits).fit(X, numbers)
    assert tree.status_ == "memory_limit"
    greedy = DecisionTreeRegressor(max_depth=depth, random_state=0).fit(bits, numbers)
    assert tree.objective_value_ <= mean_squared_error(numbers, greedy.predict(bits)) + 1e-9
