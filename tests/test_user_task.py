"""``OptimalTree``: optimal for any task, exact for weights and limits."""

import json
import math
import re
import threading
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from user_tasks import (
    AtLeastTwo,
    BoundedSquaredError,
    Odd,
    PricedSquaredError,
    SquaredError,
    instance,
)

from bristlecone import BinaryEncoder, OptimalTree, OptimalTreeRegressor, Task
from bristlecone.datasets import load
from bristlecone.exceptions import (
    ConstantFeatureWarning,
    InfeasibleError,
    InfeasibleWarning,
    InvalidParameterError,
    SearchCostWarning,
    SearchLimitWarning,
)
from bristlecone.export import (
    export_dict,
    export_onnx,
    export_python,
    export_r,
    export_rules,
    export_sql,
    export_text,
)
from bristlecone.trust import alternatives, near_optimal_trees, threshold_gap

TASKS = [SquaredError(), BoundedSquaredError(), PricedSquaredError(), Odd(), AtLeastTwo()]


def least_cost(task, X, y, weight, depth, leaves, min_rows, penalty):
    """Least objective of all trees; ``leaves=None`` is no limit."""
    statistics = np.asarray(task.statistics(X, y)) * weight[:, np.newaxis]
    price = penalty * weight.sum()
    known = {}

    def least(rows, depth, leaves):
        shares = [(None, None)] if leaves is None else [(a, leaves - a) for a in range(1, leaves)]
        if len(rows) < min_rows:
            return math.inf
        key = rows, depth, leaves
        if key not in known:
            sums = statistics[list(rows)].sum(axis=0, keepdims=True)
            best = float(task.leaf_cost(sums)[0]) + price
            split = getattr(task, "split_cost", None)
            own = float(split(sums)[0]) if split else 0.0
            for column, (left, right) in product(range(X.shape[1]), shares):
                if depth == 0:
                    break
                yes = tuple(row for row in rows if X[row, column])
                no = tuple(row for row in rows if not X[row, column])
                sides = least(yes, depth - 1, left) + least(no, depth - 1, right)
                best = min(best, sides + own)
            known[key] = best
        return known[key]

    return least(tuple(range(len(X))), depth, leaves) / weight.sum()


@pytest.mark.parametrize("task", TASKS, ids=lambda task: type(task).__name__)
@pytest.mark.parametrize(
    ("depth", "leaves", "min_rows", "penalty"),
    [(0, None, 1, 0.0), (1, None, 1, 0.0), (2, None, 3, 0.0), (3, None, 1, 0.02), (3, 5, 2, 0.0)],
)
def test_optimum_is_that_of_trying_every_tree(task, depth, leaves, min_rows, penalty):
    for seed in range(3):
        X, y, weight = instance(seed)
        model = OptimalTree(
            task=task,
            max_depth=depth,
            max_leaf_nodes=leaves,
            min_samples_leaf=min_rows,
            leaf_penalty=penalty,
        ).fit(X, y, weight)
        expected = least_cost(task, X, y, weight, depth, leaves, min_rows, penalty)
        assert model.objective_value_ == pytest.approx(expected, rel=1e-12, abs=1e-12)
        assert model.status_ == "optimal"
        assert model.gap_ <= 1e-9 * abs(model.objective_value_)
        assert model.depth_ <= depth and model.n_leaves_ <= (leaves or 8)
        assert model.tree_.n_node_samples[model.tree_.is_leaf].min() >= min_rows


def test_trees_deeper_than_one_lattice_are_optimal():
    X, y, weight = instance(5, n=40, columns=6)
    for task in (BoundedSquaredError(), Odd()):
        deep = OptimalTree(task=task, max_depth=6).fit(X, y, weight)
        expected = least_cost(task, X, y, weight, 6, None, 1, 0.0)
        assert deep.status_ == "optimal"
        assert deep.objective_value_ == pytest.approx(expected, rel=1e-12)
    free = OptimalTree(task=BoundedSquaredError(), max_depth=None, leaf_penalty=0.1)
    expected = least_cost(BoundedSquaredError(), X, y, weight, 6, None, 1, 0.1)
    assert free.fit(X, y, weight).objective_value_ == pytest.approx(expected, rel=1e-12)


def test_objective_is_that_of_its_leaves():
    X, y, weight = instance(1)
    task = PricedSquaredError()
    model = OptimalTree(task=task, max_depth=2, leaf_penalty=0.01).fit(X, y, weight)
    statistics = task.statistics(X, y) * weight[:, np.newaxis]
    leaves = [statistics[model.apply(X) == leaf].sum(axis=0) for leaf in model.tree_.leaves]
    assert np.array_equal(model.leaf_sums_, leaves)
    assert np.array_equal(model.leaf_costs_, task.leaf_cost(model.leaf_sums_))
    inner = model.tree_.weighted_n_node_samples[~model.tree_.is_leaf]
    total = model.leaf_costs_.sum() + 0.1 * inner.sum()
    expected = total / weight.sum() + 0.01 * model.n_leaves_
    assert model.objective_value_ == pytest.approx(expected, rel=1e-13)


def test_the_built_in_regression_finds_the_same_optimum():
    data = load("gbsg2")
    y = data.y[data.y.dtype.names[1]] / 100
    for parameters in ({"max_depth": 3}, {"max_depth": 3, "max_leaf_nodes": 5}):
        own = OptimalTree(task=BoundedSquaredError(), min_samples_leaf=7, **parameters)
        built_in = OptimalTreeRegressor(min_samples_leaf=7, **parameters).fit(data.X, y)
        assert own.fit(data.X, y).objective_value_ == pytest.approx(
            built_in.objective_value_, rel=1e-12
        )


def test_integer_weights_equal_repetition_and_zero_leaves_rows_out():
    X, y, weight = instance(2)
    weight[::5] = 0
    times = weight.astype(int)
    weighted = OptimalTree(task=SquaredError(), max_depth=2).fit(X, y, weight)
    repeated = OptimalTree(task=SquaredError(), max_depth=2).fit(
        X.repeat(times, axis=0), y.repeat(times)
    )
    assert weighted.objective_value_ == repeated.objective_value_
    assert np.array_equal(weighted.tree_.feature, repeated.tree_.feature)
    assert weighted.tree_.n_node_samples[0] == np.count_nonzero(weight)
    y = np.where(weight == 0, np.nan, y)
    ignored = OptimalTree(task=SquaredError(), max_depth=2).fit(X, y, weight)
    assert ignored.objective_value_ == weighted.objective_value_


def test_threads_share_the_work_and_change_nothing(as_many_threads_as_asked_for):
    class Seen(SquaredError):
        def __init__(self, n_jobs):
            self.threads, self.met = set(), threading.Event()
            if n_jobs == 1:
                self.met.set()

        def leaf_cost(self, sums):
            if threading.current_thread() is not threading.main_thread():
                self.threads.add(threading.get_ident())
            if len(self.threads) > 1:
                self.met.set()
            if len(sums) > 10_000:  # a part of what threads share
                # Let another thread begin, which may take long on a busy machine.
                self.met.wait(10)
            return super().leaf_cost(sums)

    X, y, weight = instance(3, n=200, columns=40)
    one, *others = (OptimalTree(task=Seen(n), n_jobs=n).fit(X, y, weight) for n in (1, 2, 3))
    for model in others:
        # In addition to the caller's thread, which checks the task, and that of the search.
        assert len(model.task.threads) > len(one.task.threads)
        assert model.objective_value_ == one.objective_value_
        assert np.array_equal(model.tree_.feature, one.tree_.feature)


def test_the_order_of_rows_and_threads_change_nothing():
    X, y, weight = instance(3, n=200, columns=12)
    y = y * 0.1  # not exact in binary
    first = OptimalTree(task=SquaredError()).fit(X, y, weight)
    order = np.random.default_rng(0).permutation(len(y))
    second = OptimalTree(task=SquaredError(), n_jobs=2).fit(X[order], y[order], weight[order])
    assert first.objective_value_ == second.objective_value_
    assert np.array_equal(first.tree_.feature, second.tree_.feature)
    assert np.array_equal(first.leaf_sums_, second.leaf_sums_)


def test_predictions_follow_the_leaves():
    X, y, _ = instance(4)
    model = OptimalTree(task=SquaredError(), max_depth=2).fit(pd.DataFrame(X), y)
    frame = pd.DataFrame(X)
    means = {leaf: y[model.apply(frame) == leaf].mean() for leaf in model.tree_.leaves}
    assert model.predict(frame) == pytest.approx([means[leaf] for leaf in model.apply(frame)])
    assert model.decision_path(frame).shape == (len(y), model.tree_.node_count)
    assert model.n_features_in_ == X.shape[1]

    class Both(SquaredError):
        def leaf_value(self, sums):
            return sums[:, :2] / sums[:, :1]

    both = OptimalTree(task=Both(), max_depth=2).fit(frame, y).predict(frame)
    assert np.array_equal(both[:, 1], model.predict(frame))
    assert (both[:, 0] == 1).all()

    class Words(SquaredError):
        def leaf_value(self, sums):
            return np.where(sums[:, 1] > sums[:, 0], "high", "low")

    assert set(OptimalTree(task=Words()).fit(X, y).predict(X)) == {"high", "low"}


def test_score_refuses_rows_in_another_order_as_fit_does():
    X, y, _ = instance(4)

    class Scored(SquaredError):
        def score(self, y, predicted, sample_weight):
            return -float(np.average((y - predicted) ** 2, weights=sample_weight))

    frame, order = pd.DataFrame(X), range(len(y))[::-1]
    model = OptimalTree(task=Scored(), max_depth=2).fit(frame, pd.Series(y))
    assert model.score(frame, pd.Series(y)) == pytest.approx(-model.objective_value_)
    for wrong in ({"y": pd.Series(y, order)}, {"sample_weight": pd.Series(1.0, order)}):
        for ask in (model.score, model.fit):
            with pytest.raises(ValueError, match="have the same index in another order"):
                ask(frame, **{"y": y, **wrong})


def test_without_leaf_values_there_is_no_predict():
    X, y, _ = instance(4)

    class Bare:
        def statistics(self, X, y):
            return np.column_stack([y, np.ones(len(y))])

        def leaf_cost(self, sums):
            return -(sums[:, 0] ** 2)

    model = OptimalTree(task=Bare(), max_depth=1).fit(X, y)
    assert not hasattr(model, "predict")
    assert not hasattr(model, "leaf_values_")
    assert "cost=" in export_text(model)


def test_text_and_dictionary_tell_value_and_cost():
    X, y = np.array([[0], [0], [1], [1]], dtype=bool), np.array([1.0, 2.0, 7.0, 8.0])
    model = OptimalTree(task=SquaredError(), max_depth=1).fit(X, y)
    lines = ["x0", "|-- yes: [1] n=2, value=7.5, cost=0.5", "`-- no:  [2] n=2, value=1.5, cost=0.5"]
    assert export_text(model).splitlines()[1:] == lines[1:]
    assert export_dict(model)["yes"]["value"] == 7.5


def predicting(values):
    """A tree of two leaves whose task predicts these values."""
    task = SquaredError()
    task.leaf_value = lambda sums: values
    return OptimalTree(task=task, max_depth=1).fit([[0.0], [2.0]], np.array([1.0, 3.0]))


def test_programs_and_dictionaries_have_dates_as_text():
    model = predicting(np.array(["2030-01-31", "2031-02-28"], "M8[D]"))
    assert model.predict([[2.0]])[0] == np.datetime64("2031-02-28")
    assert json.loads(json.dumps(export_dict(model)))["no"]["value"] == "2031-02-28"
    program = {}
    exec(export_python(model), program)
    assert program["predict"]({"x0": 0})["value"] == "2030-01-31"
    assert "'2030-01-31'" in export_sql(model)
    assert '"2030-01-31"' in export_r(model)
    assert b"2030-01-31" in export_onnx(model)
    assert export_rules(model)["value"].tolist() == ["2030-01-31", "2031-02-28"]


@pytest.mark.parametrize("export", [export_python, export_r, export_sql, export_onnx, export_rules])
def test_programs_refuse_predictions_that_they_cannot_return(export):
    for value in (1j, {"a": 1}):
        message = f"{export.__name__}: the leaves predict {re.escape(repr(value))}; programs"
        with pytest.raises(TypeError, match=message):
            export(predicting(np.array([value, value])))


def test_y_may_be_anything_or_nothing():
    class Spread(Task):
        def statistics(self, X, y):
            assert y is None
            return np.column_stack([np.ones(len(X)), X[:, 0], X[:, 0] ** 2])

        def leaf_cost(self, sums):
            return sums[:, 2] - sums[:, 1] ** 2 / sums[:, 0]

    X = np.array([[1.0], [2.0], [9.0], [10.0]])
    assert OptimalTree(task=Spread(), max_depth=1).fit(X).objective_value_ == 0.25


def test_the_task_sees_no_node_with_too_few_rows():
    class Counting(PricedSquaredError):
        fewest = math.inf

        def leaf_cost(self, sums):
            self.see(sums)
            return super().leaf_cost(sums)

        def split_cost(self, sums):
            self.see(sums)
            return super().split_cost(sums)

        def lower_bound(self, sums):
            self.see(sums)
            return super().lower_bound(sums)

        def see(self, sums):
            assert sums.flags.f_contiguous and sums.dtype == np.float64
            self.fewest = min(self.fewest, sums[:, 0].min())

    X, y, _ = instance(6, n=60, columns=7)
    for least in (1, 4):
        task = Counting()
        OptimalTree(task=task, max_depth=6, min_samples_leaf=least, leaf_penalty=0.1).fit(X, y)
        assert task.fewest == least


def test_an_infinite_cost_forbids_a_leaf():
    X, y, _ = instance(7)
    model = OptimalTree(task=AtLeastTwo(), max_depth=3).fit(X, y)
    assert (model.leaf_sums_[:, 1] >= 2).all()
    free = OptimalTree(task=SquaredError(), max_depth=3).fit(X, y)
    assert (free.leaf_sums_[:, 1] < 2).any()

    class Never(SquaredError):
        def leaf_cost(self, sums):
            return np.full(len(sums), np.inf)

    with pytest.warns(InfeasibleWarning):
        none = OptimalTree(task=Never()).fit(X, y)
    assert none.status_ == "infeasible"
    with pytest.raises(InfeasibleError):
        none.predict(X)
    for name in ("leaf_sums_", "leaf_values_"):
        with pytest.raises(InfeasibleError):
            getattr(none, name)

    class OnlySmallLeaves(SquaredError):
        """Neither the root nor a side of a split may be a leaf, so greedy searches find no tree."""

        def leaf_cost(self, sums):
            return np.where(sums[:, 0] > 5, np.inf, super().leaf_cost(sums))

    B, z = (
        np.array([[a, b, c] for a in (0, 1) for b in (0, 1) for c in (0, 1)] * 3),
        np.arange(24.0),
    )
    with pytest.raises(InfeasibleError, match="time_limit"):
        OptimalTree(task=OnlySmallLeaves(), time_limit=0.0).fit(B, z)
    assert OptimalTree(task=OnlySmallLeaves()).fit(B, z).n_leaves_ == 8


def test_what_a_search_did_not_meet_is_of_the_fit_whatever_was_set_since():
    class SingleRows(SquaredError):
        def leaf_cost(self, sums):
            return np.where(sums[:, 0] > 1, np.inf, 0.0)

    X, y = np.array([[a, b] for a in (0, 1) for b in (0, 1)]), np.arange(4.0)
    model = OptimalTree(task=SingleRows(), time_limit=0)
    reported = r"stopped \(time_limit\) before it found a tree without a leaf of cost inf"
    with pytest.raises(InfeasibleError, match=reported):
        model.fit(X, y)
    model.set_params(leaf_penalty="none")
    with pytest.raises(InfeasibleError, match=reported):
        model.predict(X)


@pytest.mark.parametrize("task", [SquaredError(), BoundedSquaredError()])
def test_a_limit_leaves_a_tree_and_an_honest_gap(task):
    X, y, _ = instance(8, n=300, columns=40)
    with pytest.warns(SearchLimitWarning, match="time_limit"):
        model = OptimalTree(task=task, max_depth=7, time_limit=0).fit(X, y)
    assert model.status_ == "time_limit"
    single = OptimalTree(task=task, max_depth=0).fit(X, y).objective_value_
    assert model.objective_value_ <= single
    bounded = hasattr(task, "lower_bound")
    assert model.lower_bound_ == (0 if bounded else -math.inf)
    assert model.gap_ == model.objective_value_ - model.lower_bound_
    with pytest.warns(SearchLimitWarning, match="memory_limit"):
        OptimalTree(task=task, memory_limit=1000).fit(X, y)


def test_the_cost_is_forecast():
    X, y, _ = instance(10, n=60, columns=6)
    model = OptimalTree(task=SquaredError(), max_depth=2)
    cost = model.estimate_cost(X, y)
    assert (cost.n_features, cost.max_depth) == (6, 2)
    assert 0 < cost.seconds < np.inf
    with pytest.warns(SearchCostWarning):
        assert clone(model).set_params(time_limit=1e-9).estimate_cost(X, y).seconds > 1e-9


def test_constant_features_give_a_single_leaf():
    with pytest.warns(ConstantFeatureWarning):
        model = OptimalTree(task=SquaredError()).fit(np.ones((3, 2)), np.arange(3.0))
    assert model.n_leaves_ == 1 and model.objective_value_ == pytest.approx(2 / 3)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_exception_during_the_search_is_passed_on_and_an_earlier_fit_kept(n_jobs):
    X, y, _ = instance(0, n=200, columns=10)

    class Fails(SquaredError):
        limit = math.inf

        def leaf_cost(self, sums):
            if len(sums) > self.limit:
                raise ZeroDivisionError("in the task")
            return super().leaf_cost(sums)

    model = OptimalTree(task=Fails(), n_jobs=n_jobs).fit(X, y)
    before = dict(vars(model))
    model.task.limit = 100  # more than the checks ask for, fewer than the search
    with pytest.raises(ZeroDivisionError, match="in the task"):
        model.fit(X, y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


class MinusSquares(Task):
    """Row count and sum; the objective improves with the differences between leaves."""

    def statistics(self, X, y):
        return np.column_stack([np.ones(len(y)), y])

    def leaf_cost(self, sums):
        return -(sums[:, 1] ** 2) / sums[:, 0]


def test_statistics_of_too_different_size_are_refused():
    X = np.array([[0], [0], [1], [1]], dtype=bool)
    with pytest.raises(ValueError, match="differ too much in size"):
        OptimalTree(task=MinusSquares(), max_depth=1).fit(X, np.array([1e20, -1e20, 1.0, 0.75]))


def test_large_numbers_that_cancel_are_summed_exactly():
    X = np.array([[0], [0], [1], [1]], dtype=bool)
    y = np.array([1e15, -1e15, 1.0, -0.5])
    model = OptimalTree(task=MinusSquares(), max_depth=1).fit(X, y)
    assert sorted(model.leaf_sums_[:, 1]) == [0.0, 0.5]
    assert model.objective_value_ == -0.125 / 4


def test_a_task_is_asked_about_thousands_of_nodes_at_once():
    data = load("gbsg2")
    y = data.y[data.y.dtype.names[1]] / 100
    asked = []

    class Counted(SquaredError):
        def leaf_cost(self, sums):
            asked.append(len(sums))
            return super().leaf_cost(sums)

    OptimalTree(task=Counted(), max_depth=4).fit(data.X, y)
    assert sum(asked) > 1000 * len(asked)


def test_what_does_not_support_custom_tasks_says_so():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.normal(size=40)
    tree = OptimalTree(task=SquaredError(), max_depth=1).fit(X, y)
    for use in (alternatives, partial(near_optimal_trees, epsilon=0.1), threshold_gap):
        with pytest.raises((TypeError, ValueError), match="does not support custom tasks"):
            use(tree, X, y)
    every = OptimalTree(task=SquaredError(), encoder=BinaryEncoder(thresholds="all"))
    with pytest.raises(InvalidParameterError, match="objective: custom tasks are not supported"):
        every.fit(X, y)
