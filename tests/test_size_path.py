"""``OptimalSurvivalTree.size_path``: the best tree for every number of leaves, from one search."""

import os
import signal
import threading
import warnings

import numpy as np
import pytest
from papers import PAPERS
from survival_rows import assert_same_predictions, sample

from bristlecone._core import BinaryMatrix
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.use import count_distinct
from bristlecone._estimators.classifier import OptimalTreeClassifier
from bristlecone._estimators.fair import DemographicParity, FairTreeClassifier
from bristlecone._estimators.survival import OptimalSurvivalTree
from bristlecone._model.registry import dumps, loads
from bristlecone.datasets import load
from bristlecone.exceptions import ConstantFeatureWarning, SearchLimitWarning


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_depth": 3},
        {"max_depth": 3, "max_leaf_nodes": 5, "min_samples_leaf": 10},
        {"max_depth": 3, "leaf_penalty": 0.01},
        {"max_depth": None, "max_leaf_nodes": 4},
        {"max_depth": 0},
    ],
    ids=str,
)
def test_every_entry_is_the_separate_fit_of_its_size(parameters):
    X, y = sample()
    weight = np.random.default_rng(0).uniform(0.5, 2.0, size=len(X))
    # The thresholds of "auto" include those of a greedy tree of the largest size.
    model = OptimalSurvivalTree(**parameters, encoder=BinaryEncoder())
    path = model.size_path(X, y, weight)
    assert len(path) == parameters.get("max_leaf_nodes") or 2 ** parameters["max_depth"]
    for leaves, tree in enumerate(path, start=1):
        own = {"max_leaf_nodes": leaves, "encoder": tree.encoder}  # one clone per tree
        assert tree.get_params() == {**path[0].get_params(), **own}
        alone = OptimalSurvivalTree(**tree.get_params(deep=False))
        alone.fit(X, y, sample_weight=weight)
        assert tree.status_ == alone.status_ == "optimal"
        assert tree.objective_value_ == pytest.approx(alone.objective_value_, rel=1e-12)
        assert tree.lower_bound_ == pytest.approx(alone.lower_bound_, rel=1e-9)
        assert tree.n_leaves_ <= leaves
        assert_same_predictions(tree, alone, X)


def test_more_leaves_are_never_worse():
    data = load("gbsg2")
    path = OptimalSurvivalTree(max_depth=4, **PAPERS).size_path(data.X, data.y)
    objective = [tree.objective_value_ for tree in path]
    assert len(path) == 16
    assert (np.diff(objective) < 0).all()
    assert [tree.n_leaves_ for tree in path] == list(range(1, 17))
    assert all(tree.relative_gap_ <= 1e-9 for tree in path)
    full = OptimalSurvivalTree(max_depth=4, **PAPERS).fit(data.X, data.y)
    assert objective[-1] == pytest.approx(full.objective_value_, rel=1e-12)


def test_trees_deeper_than_one_lattice_are_found_too():
    X, y = sample()
    model = OptimalSurvivalTree(
        max_depth=6, max_leaf_nodes=8, encoder=BinaryEncoder(n_thresholds=2)
    )
    path = model.size_path(X, y)
    last = model.fit(X, y)
    assert path[-1].status_ == last.status_ == "optimal"
    assert path[-1].objective_value_ == pytest.approx(last.objective_value_, rel=1e-12)


def test_the_sizes_end_at_the_distinct_rows():
    X = np.array([[0, 0], [0, 1], [1, 0], [0, 0]], dtype=bool)
    path = OptimalSurvivalTree(**PAPERS).size_path(X, ([True] * 4, [1.0, 2.0, 3.0, 4.0]))
    assert [tree.n_leaves_ for tree in path] == [1, 2, 3]


def test_distinct_rows_are_counted_as_far_as_needed():
    rng = np.random.default_rng(0)
    for columns in (0, 1, 5, 31, 32, 33, 70):
        for share in (0.5, 0.02):
            X = (rng.random((60, columns)) < share).astype(np.uint8)
            X = X[rng.integers(0, 60, 90)]
            distinct = len({tuple(row) for row in X.tolist()})
            for most in (1, 3, distinct, 1000):
                assert count_distinct(BinaryMatrix(X), most) == min(distinct, most)


def test_the_estimator_is_left_alone_and_the_encoder_is_shared():
    X, y = sample()
    model = OptimalSurvivalTree(max_depth=2, encoder=BinaryEncoder(n_thresholds=4))
    path = model.size_path(X, y)
    assert not hasattr(model, "tree_")
    assert model.max_leaf_nodes is None
    assert len({id(tree.encoder_) for tree in path}) == 1
    assert all(tree.fit_time_ > 0 for tree in path)
    assert_same_predictions(path[2], loads(dumps(path[2])), X)


def test_a_limit_is_reported_once_and_every_entry_keeps_its_bound():
    X, y = sample()
    proven = OptimalSurvivalTree(max_depth=3).size_path(X, y)
    with pytest.warns(SearchLimitWarning, match=r"time_limit.* of 8 trees are not pro") as caught:
        path = OptimalSurvivalTree(max_depth=3, time_limit=0).size_path(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert len(path) == 8
    assert path[-1].status_ == "time_limit"
    for tree, best in zip(path, proven, strict=True):
        assert tree.lower_bound_ <= best.objective_value_ + 1e-12
        assert tree.objective_value_ >= best.objective_value_ - 1e-12
        assert tree.predict(X).shape == (len(X),)


def test_a_callback_is_refused_rather_than_never_called():
    X, y = sample(60)
    model = OptimalSurvivalTree(max_depth=1)
    for ask in (model.size_path, model.estimate_cost):
        with pytest.raises(TypeError, match="'callback' is no argument here"):
            ask(X, y, callback=print)


def test_bad_input_and_constant_columns_are_reported_as_by_fit():
    X, y = sample()
    with pytest.raises(ValueError, match="max_depth"):
        OptimalSurvivalTree(max_depth=-1).size_path(X, y)
    with pytest.raises(ValueError, match="X has 150 rows but y has 149"):
        OptimalSurvivalTree().size_path(X, y[:-1])
    with pytest.warns(ConstantFeatureWarning, match="'hospital'; nothing") as caught:
        OptimalSurvivalTree(max_depth=1).size_path(X[[]].assign(hospital=3), y)
    assert [warning.filename for warning in caught] == [__file__]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OptimalSurvivalTree(max_depth=1).size_path(X, y)


@pytest.mark.usefixtures("lone_ctrl_c")
@pytest.mark.parametrize(
    "model",
    [
        OptimalTreeClassifier(encoder=BinaryEncoder(thresholds="all")),
        pytest.param(OptimalTreeClassifier(objective="f1"), marks=pytest.mark.slow),
        pytest.param(FairTreeClassifier(fairness=DemographicParity(0.05)), marks=pytest.mark.slow),
    ],
    ids=["all", "f1", "fair"],
)
def test_one_ctrl_c_stops_every_search_of_a_path(model):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 10))
    y, group = (X[:, :2] + rng.normal(size=(1000, 2)) > 0).T.astype(int)
    data = {"sensitive_features": group} if hasattr(model, "fairness") else {}
    model.set_params(max_depth=6, max_leaf_nodes=20, time_limit=60)
    timer = threading.Timer(0.7, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.warns(SearchLimitWarning, match="interrupted"):
        path = model.size_path(X, y, **data)
    timer.join()
    statuses = [tree.status_ for tree in path]
    stopped = statuses.index("interrupted")
    assert set(statuses[:stopped]) <= {"optimal", "time_limit"}
    assert set(statuses[stopped:]) == {"interrupted"}
    assert path[-1].fit_time_ < 10
