"""Trees over every threshold of numeric columns, compared with trees over all midpoints."""

from __future__ import annotations

import json
import pickle
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from pace import slow_but
from sklearn.model_selection import GridSearchCV

from bristlecone import (
    BinaryEncoder,
    CompetingRisksTree,
    CostSensitiveTreeClassifier,
    GreedySurvivalTree,
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
)
from bristlecone._model.registry import dumps, loads
from bristlecone.exceptions import (
    ConstantFeatureWarning,
    InvalidParameterError,
    SearchLimitWarning,
)
from bristlecone.trust import (
    alternatives,
    near_optimal_trees,
    stability,
    threshold_gap,
    verify,
)

# Largest relative difference between the objective and the bound of a proven tree, and so of two
# optima.
CERTIFIED = 1e-9


def table(rng, n):
    """Numeric columns with and without ties, flags, categories and missing values."""
    number = rng.normal(size=n)
    holes = np.where(rng.uniform(size=n) < 0.2, np.nan, rng.integers(0, 9, n))
    return pd.DataFrame(
        {
            "number": number,
            "holes": holes,
            "flag": rng.uniform(size=n) < 0.5,
            "stage": rng.choice(["I", "II", "III"], n),
        }
    )


def survival(rng, X):
    rate = np.exp(0.8 * X["number"].to_numpy() + 0.3 * X["flag"].to_numpy())
    time = np.ceil(10 * rng.exponential(1 / rate)) / 10
    return rng.uniform(size=len(X)) < 0.7, time


def labels(rng, X):
    noisy = X["number"].to_numpy() + rng.normal(scale=0.5, size=len(X))
    return np.digitize(noisy, [-0.5, 0.8])


SUBJECTS = {
    "survival": (OptimalSurvivalTree, survival),
    "classes": (OptimalTreeClassifier, labels),
    "gini": (lambda **p: OptimalTreeClassifier(objective="gini", **p), labels),
    "numbers": (OptimalTreeRegressor, lambda rng, X: labels(rng, X) + rng.normal(size=len(X))),
    "counts": (lambda **p: OptimalTreeRegressor(objective="poisson", **p), labels),
    "causes": (
        CompetingRisksTree,
        lambda rng, X: (rng.integers(0, 3, len(X)), survival(rng, X)[1]),
    ),
}


@pytest.mark.parametrize("subject", SUBJECTS)
def test_the_optimum_is_that_over_all_midpoints(subject):
    make, outcome = SUBJECTS[subject]
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = table(rng, int(rng.integers(30, 70)))
        y = outcome(rng, X)
        encoder = {
            "missing": ["impute", "branch"][seed % 2],
            "min_support": [0.0, 0.1, 0.2][seed % 3],
        }
        limits = {
            "max_depth": 1 + seed % 3,
            "min_samples_leaf": [1, 3][seed // 3],
            "max_leaf_nodes": [None, 3][seed % 2],
        }
        found = [
            make(encoder=BinaryEncoder(thresholds=thresholds, **encoder), **limits).fit(X, y)
            for thresholds in ("all", "midpoints")
        ]
        every, features = found
        assert every.status_ == features.status_ == "optimal"
        size = max(1.0, abs(features.objective_value_))
        assert abs(every.objective_value_ - features.objective_value_) <= CERTIFIED * size
        # Thresholds midway between values of their nodes divide the rows as those of the search do.
        leaf = every.tree_.leaf_index(every.encoder_.transform(X).view(np.uint8))
        assert np.bincount(leaf).min() >= limits["min_samples_leaf"]
        assert np.array_equal(np.asarray(every.apply(X)), every.tree_.leaves[leaf])


@pytest.mark.parametrize("criterion", ["likelihood", "logrank"])
@pytest.mark.parametrize("missing", ["impute", "branch"])
def test_a_greedy_tree_is_that_over_all_midpoints(missing, criterion):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = table(rng, int(rng.integers(20, 120)))
        y = survival(rng, X)
        weight = rng.integers(1, 4, len(X)).astype(float) if seed % 2 else None
        encoder = {"missing": missing, "min_support": [0.0, 0.1][seed // 4]}
        every, features = (
            GreedySurvivalTree(
                criterion=criterion,
                max_depth=1 + seed % 4,
                min_events_leaf=[None, 2][seed % 2],
                encoder=BinaryEncoder(thresholds=thresholds, **encoder),
            ).fit(X, y, sample_weight=weight)
            for thresholds in ("all", "midpoints")
        )
        assert every.n_leaves_ > 1
        assert np.array_equal(every.apply(X), features.apply(X))
        assert every.objective_value_ == features.objective_value_
        assert verify(every, X, y, sample_weight=weight).ok
        assert loads(dumps(every)).apply(X).tolist() == every.apply(X).tolist()


def over_all_and_midpoints(make, outcome, seed, n, **limits):
    """Rows, outcomes and trees over every threshold and over all midpoints."""
    rng = np.random.default_rng(seed)
    X = table(rng, n)
    y = outcome(rng, X)
    encoders = [
        BinaryEncoder(thresholds=thresholds, missing=["impute", "branch"][seed % 2])
        for thresholds in ("all", "midpoints")
    ]
    return X, y, [make(encoder=encoder, **limits).fit(X, y) for encoder in encoders]


@pytest.mark.parametrize("subject", slow_but({"gini", "numbers"}, SUBJECTS))
def test_trees_close_to_the_optimum_split_at_any_threshold(subject):
    make, outcome = SUBJECTS[subject]
    n_trees = 0
    for seed in range(4):
        X, y, trees = over_all_and_midpoints(
            make, outcome, seed, 40, max_depth=2, min_samples_leaf=8
        )
        # Few trees are much worse than the best one for several causes.
        epsilon = (0.01 if subject == "causes" else 0.05) * abs(trees[0].objective_value_)
        near = [near_optimal_trees(tree, X, y, epsilon=epsilon, limit=10_000) for tree in trees]
        every, features = (
            sorted((np.asarray(tree.apply(X)).tolist(), tree.objective_value_) for tree in found)
            for found in near
        )
        n_trees += len(every)
        assert [leaves for leaves, _ in every] == [leaves for leaves, _ in features]
        assert_allclose([value for _, value in every], [value for _, value in features])
        assert near[0].complete and verify(near[0][-1], X, y).ok
    assert n_trees > 30


@pytest.mark.parametrize("subject", slow_but({"classes", "counts"}, SUBJECTS))
def test_alternatives_are_at_any_threshold(subject):
    make, outcome = SUBJECTS[subject]
    compared = 0
    for seed in range(4):
        X, y, (every, features) = over_all_and_midpoints(make, outcome, seed, 50, max_depth=2)
        if not np.array_equal(every.apply(X), features.apply(X)):
            continue
        compared += 1
        found = []
        for tree in (every, features):
            rows = alternatives(tree, X, y)
            found.append(set(map(tuple, rows[["node", "objective"]].round(9).to_numpy().tolist())))
        assert found[0] == found[1]
        (own,) = alternatives(every, X, y).query("node == 0 and is_chosen")["alternative"]
        assert own == every.splits_[0]
    assert compared


@pytest.mark.parametrize("subject", SUBJECTS)
def test_resamples_search_any_threshold(subject):
    make, outcome = SUBJECTS[subject]
    X, y, trees = over_all_and_midpoints(make, outcome, 1, 60, max_depth=2, min_samples_leaf=5)
    every, features = (stability(tree, X, y, n_resamples=15, random_state=0) for tree in trees)
    assert every.columns.equals(features.columns)
    assert np.array_equal(every.splits["same_column"][:1], features.splits["same_column"][:1])
    assert 0 < every.splits["same_split"][0] < every.splits["same_column"][0]


def test_neighbours_use_the_columns_of_the_fit():
    rng = np.random.default_rng(0)
    X = table(rng, 50)
    X["stage"] = pd.Categorical(X["stage"], ["III", "I", "II"], ordered=True)
    y = X["number"] + 2.0 * X["flag"] + 3.0 * (X["stage"] == "II") + rng.normal(size=50)
    tree = OptimalTreeRegressor(max_depth=2, encoder=BinaryEncoder(thresholds="all")).fit(X, y)
    others = [
        X[X.columns[::-1]],
        X.assign(extra=y)[["extra", *X.columns]],
        X.assign(stage=X["stage"].astype(str)),
    ]
    expected = alternatives(tree, X, y)
    resampled = stability(tree, X, y, n_resamples=10, random_state=0)
    near = near_optimal_trees(tree, X, y, epsilon=0.05)
    for other in others:
        pd.testing.assert_frame_equal(alternatives(tree, other, y), expected)
        found = stability(tree, other, y, n_resamples=10, random_state=0)
        pd.testing.assert_frame_equal(found.columns, resampled.columns)
        found = near_optimal_trees(tree, other, y, epsilon=0.05)
        assert [one.splits_ for one in found] == [one.splits_ for one in near]
        assert threshold_gap(tree, other, y).gap == pytest.approx(0.0, abs=1e-9)


def test_a_leaf_has_no_alternatives_and_texts_are_those_of_the_tree():
    X = pd.DataFrame({"k": [-3.0, -2.0, np.nan, 0.0, 1.0, 2.0] * 5})
    y = (X["k"] > -3).to_numpy(float)
    encoder = BinaryEncoder(thresholds="all")
    leaf = OptimalTreeRegressor(max_depth=0, encoder=encoder).fit(X, y)
    assert len(alternatives(leaf, X, y)) == 0
    y = (X["k"].fillna(0) > -2).to_numpy(float)
    tree = OptimalTreeRegressor(max_depth=1, encoder=encoder).fit(X, y)
    (own,) = alternatives(tree, X, y).query("is_chosen")["alternative"]
    assert own == tree.splits_[0] == "k <= -1"


def test_a_tree_that_fits_almost_perfectly_is_certified():
    # Squares in 64-bit integers are too coarse to rank such trees.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2)).round(1)
    y = np.where(X[:, 0] > 0, 3.0, np.where(X[:, 1] > 0.2, 1.0, 5.0)) + 1e-6 * rng.normal(size=40)
    found = [
        OptimalTreeRegressor(
            max_depth=2, encoder=BinaryEncoder(thresholds=thresholds, min_support=0)
        ).fit(X, y)
        for thresholds in ("all", "midpoints")
    ]
    every, features = found
    assert every.status_ == features.status_ == "optimal"
    assert 0 < every.objective_value_ < 1e-11
    assert every.objective_value_ == pytest.approx(features.objective_value_, rel=CERTIFIED)


def test_thresholds_are_midway_between_values_of_their_node():
    x = np.array([0.0, 1.0, 2.0, 10.0, 11.0, 20.0])
    z = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    y = np.array([0, 0, 0, 1, 1, 2])
    X = pd.DataFrame({"z": z + 0.5, "x": x})
    tree = OptimalTreeClassifier(
        max_depth=2, encoder=BinaryEncoder(thresholds="all", min_support=0)
    ).fit(X, y)
    assert tree.objective_value_ == 0
    names = tree.encoder_.get_feature_names_out().tolist()
    # The root splits on the first column; below it, x has the values 10, 11 and 20.
    assert names == ["z <= 1", "x <= 15.5"]
    assert tree.tree_.threshold[tree.tree_.feature >= 0].tolist() == [1.0, 15.5]


def test_certificate_and_tree_are_those_of_any_other_tree(tmp_path):
    rng = np.random.default_rng(3)
    X = table(rng, 120)
    y = survival(rng, X)
    encoder = BinaryEncoder(thresholds="all", min_support=0.05)
    tree = OptimalSurvivalTree(max_depth=2, encoder=encoder, n_jobs=2).fit(X, y)
    assert tree.certificate_.sentence == (
        "optimal among all trees of depth 2 over every threshold of the numeric columns and the "
        "categories as encoded (at least 6 rows a side)"
    )
    assert dict(tree.certificate_.numbers)["thresholds"] == str(
        tree.certificate_.facts["thresholds"]
    )
    assert verify(tree, X, y).ok
    again = pickle.loads(pickle.dumps(tree))
    assert np.array_equal(again.predict(X), tree.predict(X))
    path = OptimalSurvivalTree(max_depth=2, encoder=encoder).size_path(X, y)
    assert path[-1].objective_value_ == pytest.approx(tree.objective_value_, rel=CERTIFIED)
    values = [one.objective_value_ for one in path]
    assert values == sorted(values, reverse=True)


def test_it_is_an_encoder_like_any_other():
    rng = np.random.default_rng(4)
    X = table(rng, 80)
    y = labels(rng, X)
    tree = OptimalTreeClassifier(max_depth=2, encoder=BinaryEncoder())
    grid = GridSearchCV(tree, {"encoder__thresholds": ["quantiles", "all"]}, cv=2).fit(X, y)
    assert set(grid.cv_results_["param_encoder__thresholds"]) == {"quantiles", "all"}
    encoder = BinaryEncoder(thresholds="all").fit(X)
    with pytest.raises(ValueError, match="chosen by the search of a tree"):
        encoder.transform(X)
    # Without numeric columns there are no thresholds to choose.
    assert BinaryEncoder(thresholds="all").fit_transform(X[["flag"]]).shape == (80, 1)


def test_objectives_without_sums_say_why():
    rng = np.random.default_rng(5)
    X = table(rng, 40)
    encoder = BinaryEncoder(thresholds="all")
    tree = OptimalSurvivalTree(objective="brier", max_depth=2, encoder=encoder)
    with pytest.raises(InvalidParameterError, match="is not a function of sums over"):
        tree.fit(X, survival(rng, X))
    costs = CostSensitiveTreeClassifier(encoder=encoder, feature_costs={"number": 1.0})
    with pytest.raises(InvalidParameterError, match="features have prices"):
        costs.fit(X, labels(rng, X))


@pytest.mark.parametrize("n", [1, 2])
def test_few_rows_and_constant_columns(n):
    X = pd.DataFrame({"x": np.arange(n) + 0.5, "same": np.ones(n)})
    tree = OptimalTreeClassifier(encoder=BinaryEncoder(thresholds="all"))
    with pytest.warns(ConstantFeatureWarning) if n == 1 else nullcontext():
        tree.fit(X, np.arange(n))
    assert (tree.n_leaves_, tree.objective_value_) == (n, 0)


def test_infinite_values_name_their_column():
    X = pd.DataFrame({"x": [1.0, np.inf]})
    with pytest.raises(ValueError, match="column 'x' is infinite"):
        OptimalTreeClassifier(encoder=BinaryEncoder(thresholds="all")).fit(X, [0, 1])


def test_a_threshold_is_verified_by_the_values_of_the_node_that_it_splits():
    X = pd.DataFrame({"a": [0, 0, 0, 1, 1, 1, 1], "x": [0.5, 2.2, 5.0, 1.0, 1.0, 4.0, 4.0]})
    y = [5, 5, 5, 0, 0, 1, 1]
    tree = OptimalTreeRegressor(max_depth=2, encoder=BinaryEncoder(thresholds="all")).fit(X, y)
    # Midway between 1 and 4, which are neighbours in the node, but not among all rows.
    assert list(tree.encoder_.get_feature_names_out()) == ["a", "x <= 2.5"]
    assert verify(tree, X, y).ok


def test_the_gap_of_quantiles_is_that_to_all_thresholds():
    rng = np.random.default_rng(6)
    X = table(rng, 150)
    y = survival(rng, X)
    tree = OptimalSurvivalTree(max_depth=2).fit(X, y)
    gap, bound, own, status = threshold_gap(tree, X, y, time_limit=None)
    every = OptimalSurvivalTree(
        max_depth=2, encoder=BinaryEncoder(thresholds="all", min_support=0)
    ).fit(X, y)
    assert status == "optimal"
    assert own == tree.objective_value_
    assert bound == pytest.approx(every.objective_value_, rel=CERTIFIED)
    assert gap == own - bound
    stopped = threshold_gap(tree, X, y, time_limit=0)
    assert stopped.lower_bound <= bound
    assert stopped.gap >= gap
    brier = OptimalSurvivalTree(objective="brier", max_depth=1).fit(X, y)
    with pytest.raises(InvalidParameterError, match=r"^threshold_gap needs an objective of sums"):
        threshold_gap(brier, X, y)


def test_a_limit_keeps_a_tree_and_a_bound():
    rng = np.random.default_rng(7)
    X = pd.DataFrame(rng.normal(size=(400, 4)))
    y = rng.integers(0, 2, 400)
    encoder = BinaryEncoder(thresholds="all")
    tree = OptimalTreeClassifier(max_depth=3, encoder=encoder, time_limit=0)
    with pytest.warns(SearchLimitWarning):
        tree.fit(X, y)
    assert tree.status_ == "time_limit"
    assert 0 <= tree.lower_bound_ <= tree.objective_value_


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_a_search_without_time_returns_the_greedy_tree(depth):
    rng = np.random.default_rng(8)
    X = pd.DataFrame(rng.normal(size=(300, 4)))
    y = rng.normal(size=300) + X[0] * X[1]
    encoder = BinaryEncoder(thresholds="all")
    tree = OptimalTreeRegressor(max_depth=depth, encoder=encoder, time_limit=0)
    with pytest.warns(SearchLimitWarning):
        tree.fit(X, y)
    # Its first split is the best single one.
    stump = OptimalTreeRegressor(max_depth=1, encoder=encoder).fit(X, y)
    assert tree.n_leaves_ > 1 and tree.objective_value_ <= stump.objective_value_
    assert (tree.n_leaves_ > 2) == (depth > 1)


def test_the_methods_text_says_that_every_threshold_was_searched():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    tree = OptimalTreeRegressor(max_depth=1, encoder=BinaryEncoder(thresholds="all")).fit(X, y)
    text = " ".join(tree.describe().split())
    assert "searched all trees of depth at most 1 over every threshold of the numeric" in text
    assert "The thresholds of numeric columns were chosen among all of them" in text


def test_the_forecast_grows_with_depth_and_with_noise():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(300, 4))
    signal = X[:, 0] > 0.3
    noise = rng.uniform(size=300) < 0.5

    def seconds(y, depth):
        tree = OptimalTreeClassifier(max_depth=depth, encoder=BinaryEncoder(thresholds="all"))
        return tree.estimate_cost(X, y).seconds

    assert seconds(noise, 2) < seconds(noise, 3) < seconds(noise, 4)
    assert seconds(signal, 4) < seconds(noise, 4)


ROOT = Path(__file__).parents[1]
PUBLISHED = ROOT.parent / "shared" / "data" / "continuous"


def counts_of_pycontree():
    """Data set, depth and errors of the trees that pycontree has proven, from the record."""
    path = max((ROOT / "benchmarks" / "records").glob("*-every-threshold.json"))
    for run in json.loads(path.read_text(encoding="utf-8"))["runs"]:
        if run["program"] == "pycontree" and run["status"] == "optimal" and run["seconds"] < 1:
            yield pytest.param(run["data"][0], run["depth"], run["errors"], id=str(run["data"][0]))


@pytest.mark.skipif(not PUBLISHED.exists(), reason="the sets are not beside the repository")
@pytest.mark.parametrize(("name", "depth", "errors"), list(counts_of_pycontree()))
def test_errors_are_as_few_as_those_of_pycontree(name, depth, errors):
    values = np.loadtxt(PUBLISHED / f"{name}.txt.gz")
    tree = OptimalTreeClassifier(
        max_depth=depth, min_samples_leaf=1, encoder=BinaryEncoder(thresholds="all", min_support=0)
    ).fit(values[:, 1:], values[:, 0].astype(int))
    assert tree.status_ == "optimal"
    assert round(tree.objective_value_ * len(values)) == errors
