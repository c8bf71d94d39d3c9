"""What a task returns is checked: shapes, types, values, functions of the sums, bounds."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import xlogy
from user_tasks import PricedSquaredError, SquaredError, instance, masked

from bristlecone import OptimalTree, Task
from bristlecone.exceptions import (
    InvalidParameterError,
)
from bristlecone.export import export_text
from bristlecone.trust import verify


@pytest.mark.parametrize(
    ("returned", "error", "message"),
    [
        (lambda y: y, ValueError, r"shape \(24,\); expected \(24, k\)"),
        (lambda y: np.ones((3, 2)), ValueError, r"expected \(24, k\)"),
        (lambda y: np.ones((24, 0)), ValueError, r"expected \(24, k\)"),
        (lambda y: np.full((24, 1), "a"), TypeError, "dtype <U1"),
        (lambda y: np.full((24, 2), 1j), TypeError, "complex"),
        (lambda y: np.where(np.eye(24, 2), np.nan, 1.0), ValueError, "nan in row 0, column 0"),
        (lambda y: np.full((24, 1), 1e200), ValueError, r"1e\+200 in row 0"),
        (lambda y: masked(np.ones((24, 2))), ValueError, "task.statistics is masked in row 1"),
    ],
)
def test_wrong_statistics_are_named(returned, error, message):
    X, y, _ = instance(0)
    task = SquaredError()
    task.statistics = lambda X, y: returned(y)
    with pytest.raises(error, match=message):
        OptimalTree(task=task).fit(X, y)


@pytest.mark.parametrize(
    ("name", "returned", "error", "message"),
    [
        ("leaf_cost", lambda s: s, ValueError, "leaf_cost returned an array of shape"),
        ("leaf_cost", lambda s: s[:, 0].sum(), ValueError, r"leaf_cost returned .* shape \(\)"),
        ("leaf_cost", lambda s: s[:, 1] * np.nan, ValueError, "leaf_cost returned nan for the sum"),
        ("leaf_cost", lambda s: np.full(len(s), -np.inf), ValueError, "leaf_cost returned -inf"),
        ("leaf_cost", lambda s: ["a"] * len(s), TypeError, "leaf_cost returned dtype"),
        ("split_cost", lambda s: -s[:, 0], ValueError, "split_cost returned -"),
        ("split_cost", lambda s: s[:, 0] * np.inf, ValueError, "split_cost returned inf"),
        ("lower_bound", lambda s: s[:, 0] * np.nan, ValueError, "lower_bound returned nan"),
        ("lower_bound", lambda s: s[:, 2] + 1, ValueError, "but leaves of these rows cost"),
        ("leaf_value", lambda s: 1.0, ValueError, "leaf_value returned"),
        ("leaf_value", lambda s: s[:1], ValueError, "leaf_value returned"),
        ("leaf_cost", lambda s: masked(s[:, 0]), ValueError, "task.leaf_cost is masked in row 1"),
        ("leaf_value", lambda s: masked(s[:, 0]), ValueError, "task.leaf_value is masked in row 1"),
        ("leaf_value", "mean", InvalidParameterError, "leaf_value must be a method"),
    ],
)
def test_wrong_answers_of_the_task_are_named(name, returned, error, message):
    X, y, _ = instance(0)
    task = SquaredError()
    model = OptimalTree(task=task).fit(X, y)
    before = dict(vars(model))
    setattr(task, name, returned)
    with pytest.raises(error, match=message):
        model.fit(X, y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


def test_statistics_may_be_a_frame_of_nullable_numbers():
    X, y, _ = instance(0)
    task = SquaredError()
    expected = OptimalTree(task=task).fit(X, y)
    frame = pd.DataFrame(task.statistics(X, y)).astype({0: "Int64"})
    task.statistics = lambda X, y: frame
    model = OptimalTree(task=task).fit(X, y)
    np.testing.assert_array_equal(model.leaf_sums_, expected.leaf_sums_)
    assert verify(model, X, y).ok


class OneBuffer(PricedSquaredError):
    """Every answer is written to the same array, and the sums are overwritten."""

    def __init__(self):
        self.buffer = np.empty(1 << 20)

    def answer(self, method, sums):
        found = self.buffer[: len(sums)]
        found[:] = method(sums)
        sums[:] = np.nan
        return found

    def leaf_cost(self, sums):
        return self.answer(super().leaf_cost, sums)

    def split_cost(self, sums):
        return self.answer(super().split_cost, sums)

    def lower_bound(self, sums):
        return self.answer(super().lower_bound, sums)


@pytest.mark.parametrize(("depth", "penalty"), [(2, 0.0), (6, 0.05)])
def test_a_task_may_use_its_arrays_again(depth, penalty):
    X, y, _ = instance(0)
    settings = {"max_depth": depth, "leaf_penalty": penalty}
    expected = OptimalTree(task=PricedSquaredError(), **settings).fit(X, y)
    model = OptimalTree(task=OneBuffer(), **settings).fit(X, y)
    assert model.objective_value_ == expected.objective_value_
    assert verify(model, X, y).ok

    class Wandering(OneBuffer):
        calls = 0

        def leaf_cost(self, sums):
            self.calls += 1
            return self.answer(lambda sums: sums[:, 0] * self.calls, sums)

    with pytest.raises(ValueError, match="when computed again"):
        OptimalTree(task=Wandering()).fit(X, y)


def wandering(sums):
    wandering.calls += 1
    return sums[:, 0] * wandering.calls


wandering.calls = 0


@pytest.mark.parametrize(
    ("leaf_cost", "message"),
    [
        (wandering, "when computed again"),
        (lambda s: s[:, 0] / s[:, 0].sum(), "among fewer"),
        (lambda s: s[:, 0] - s[0, 0], "in another order"),
        (lambda s: np.arange(len(s)), "in another order"),
    ],
)
def test_costs_that_are_no_function_of_the_sums_are_noticed(leaf_cost, message):
    X, y, _ = instance(0)
    task = SquaredError()
    task.leaf_cost = leaf_cost
    with pytest.raises(ValueError, match=f"not a function of the sums: .* {message}"):
        OptimalTree(task=task).fit(X, y)


class PoissonDeviance(Task):
    """As in the guide, the cost of equal rows is zero except for rounding."""

    def statistics(self, X, y):
        return np.column_stack([y, np.ones(len(y)), xlogy(y, y)])

    def leaf_cost(self, sums):
        events, exposure, saturated = sums.T
        return 2 * (saturated - xlogy(events, events / exposure))

    def lower_bound(self, sums):
        return np.zeros(len(sums))


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_a_right_bound_is_not_refused_for_its_rounding(size):
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, y = np.arange(12) % 3 < [[1], [2]], 3.0 - np.arange(12) % 2 * (seed % 2)
        tree = OptimalTree(task=PoissonDeviance(), max_depth=1)
        tree.fit(X.T, y, size * rng.uniform(0.1, 3.0, 12))
        assert tree.status_ == "optimal" and tree.gap_ >= 0


@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_a_bound_that_is_too_high_is_noticed_whatever_the_weights(size):
    class TooHigh(PoissonDeviance):
        def lower_bound(self, sums):
            return self.leaf_cost(sums) + 1e-6 * sums[:, 1]

    y = np.random.default_rng(0).integers(0, 3, 12)
    with pytest.raises(ValueError, match="lower_bound returned"):
        OptimalTree(task=TooHigh()).fit(np.arange(12)[:, None] % 2, y, np.full(12, size))


def test_a_leaf_may_predict_several_numbers():
    class Centres(Task):
        def statistics(self, X, y):
            return np.column_stack([np.ones(len(y)), y, (y**2).sum(axis=1)])

        def leaf_cost(self, sums):
            return sums[:, 3] - (sums[:, 1:3] ** 2).sum(axis=1) / sums[:, 0]

        def leaf_value(self, sums):
            return sums[:, 1:3] / sums[:, :1]

    X, y, _ = instance(0)
    y = np.column_stack([X[:, 0], 2.0 * X[:, 1] + X[:, 0]])
    tree = OptimalTree(task=Centres(), max_depth=2).fit(X, y)
    np.testing.assert_allclose(tree.predict(X), y)
    leaves = tree.leaf_table().set_index("leaf")
    assert [*leaves.loc[2, ["value_0", "value_1"]]] == [1, 3]
    assert "[2] n=8, value=[1, 3], cost=0" in export_text(tree)
