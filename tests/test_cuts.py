"""With the thresholds of greedy trees in ``encoder="auto"``, optimal trees are never worse."""

import time

import numpy as np
import pandas as pd
import pytest
from brier_plainly import kaplan_meier, row_losses
from contract.subjects import SquaredError
from pace import slow_but
from papers import PAPERS
from sklearn import datasets
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from bristlecone import DemographicParity, OptimalTree
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.cuts import Cut, add_cuts
from bristlecone._encoder.features import Threshold
from bristlecone._estimators.classifier import OptimalTreeClassifier
from bristlecone._estimators.cost_sensitive import CostSensitiveTreeClassifier
from bristlecone._estimators.fair import FairTreeClassifier
from bristlecone._estimators.greedy import GreedySurvivalTree
from bristlecone._estimators.regressor import OptimalTreeRegressor
from bristlecone._estimators.survival import OptimalSurvivalTree
from bristlecone._model.registry import dumps, loads
from bristlecone._objectives.parity import RmstParity
from bristlecone._search.cuts import Growth, cuts_by_gini
from bristlecone.datasets import load
from bristlecone.exceptions import SearchLimitWarning


def table(seed, n=60):
    """Numbers with ties and gaps, flags, categories."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "tied": rng.integers(0, 15, n).astype(float),
            "free": rng.normal(size=n),
            "skewed": np.exp(3 * rng.normal(size=n)),
            "flag": rng.random(n) < 0.3,
            "kind": rng.choice(list("abcd"), n),
        }
    )
    X.loc[rng.random(n) < 0.2, "free"] = np.nan
    X.loc[rng.random(n) < 0.1, "kind"] = None
    return X, rng


def greedy_objective(X, loss, *, max_depth, min_samples_leaf=1, leaf_penalty=0.0, price=None):
    """Objective of the tree that splits every node at the largest decrease of the loss.

    ``X`` contains ranks of shape (n, k), ``loss(rows)`` is the loss of a leaf, ``price(column,
    path, rows)`` the price of a split.
    """

    def grow(rows, depth, path):
        own, best, split = loss(rows), 1e-11, None
        for column in range(X.shape[1] if depth else 0):
            asked = 0.0 if price is None else price(column, path, rows)
            for value in np.unique(X[rows, column])[:-1]:
                left = X[rows, column] <= value
                if min(left.sum(), (~left).sum()) < min_samples_leaf:
                    continue
                gain = own - loss(rows[left]) - loss(rows[~left]) - asked
                if gain > best * (1 + 1e-10):
                    best, split = gain, (column, rows[left], rows[~left], asked)
        if split is None:
            return own + leaf_penalty
        column, *sides, asked = split
        return asked + sum(grow(side, depth - 1, (*path, column)) for side in sides)

    return grow(np.arange(len(X)), max_depth, ())


def ranked(encoder, X, weight=None):
    return encoder._fit_columns(X, sample_weight=weight)().columns


def ranks_of(X, weight=None):
    return np.column_stack(ranked(BinaryEncoder(), X, weight).ranks).astype(int)


@pytest.mark.parametrize("settings", [{}, PAPERS], ids=["defaults", "papers"])
@pytest.mark.parametrize("seed", range(12))
def test_likelihood_is_never_worse_than_the_greedy_tree_over_every_threshold(seed, settings):
    X, rng = table(seed, 40 + 20 * seed)
    X = X[["tied", "skewed", "flag"]].assign(wide=rng.normal(size=len(X)))
    time = rng.exponential(np.exp(0.2 * X["tied"] - (X["wide"] > 1)))
    y = rng.random(len(X)) < 0.7, np.ceil(time * 5)
    weight = rng.integers(1, 4, len(X)).astype(float) if seed % 2 else None
    parameters = {
        "max_depth": 1 + seed % 3,
        "max_leaf_nodes": [None, 3, 5][seed % 3],
        "min_samples_leaf": 1 + seed % 4,
        **settings,
    }
    greedy = GreedySurvivalTree(encoder=None, **parameters).fit(X, y, sample_weight=weight)
    tree = OptimalSurvivalTree(**parameters).fit(X, y, sample_weight=weight)
    assert tree.objective_value_ <= greedy.objective_value_ + 1e-12
    penalty = 0.01
    tree.set_params(leaf_penalty=penalty).fit(X, y, sample_weight=weight)
    expected = greedy.objective_value_ + penalty * greedy.n_leaves_
    assert tree.objective_value_ <= expected + 1e-12


@pytest.mark.parametrize("name", ["gbsg2", "whas500", "lung", "veterans"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_likelihood_of_real_data_is_never_worse_than_greedy(name, depth):
    data = load(name)
    X = pd.DataFrame(data.X).select_dtypes("number")
    X = X.loc[:, X.notna().all()]
    greedy = GreedySurvivalTree(encoder=None, max_depth=depth).fit(X, data.y)
    tree = OptimalSurvivalTree(max_depth=depth).fit(X, data.y)
    assert tree.objective_value_ <= greedy.objective_value_ + 1e-12


@pytest.mark.parametrize("curve", ["kaplan-meier", "brier-optimal"])
@pytest.mark.parametrize("seed", slow_but({0}, range(3)))
def test_brier_is_never_worse_than_greedy(curve, seed):
    X, rng = table(seed, 24)
    X = X[["tied", "free", "kind"]]
    time, event = np.ceil(8 * rng.random(len(X))), rng.random(len(X)) < 0.7
    weight = rng.integers(1, 3, len(X)).astype(float)

    def loss(rows):
        of_leaf = time[rows], event[rows], weight[rows]
        curves = [lambda at: kaplan_meier(*of_leaf, at)] * len(X)
        return (row_losses(time, event, curves, weight) * weight)[rows].sum() / weight.sum()

    parameters = {"max_depth": 2, "min_samples_leaf": 1 + seed}
    tree = OptimalSurvivalTree(objective="brier", leaf_curve=curve, **parameters, **PAPERS)
    tree.fit(X, (event, time), sample_weight=weight)
    # The loss of the best curves is at most that of Kaplan-Meier curves.
    assert tree.objective_value_ <= greedy_objective(ranks_of(X), loss, **parameters) + 1e-12


def labelled(seed):
    """Data, and estimators with the loss of a leaf and further arguments of ``fit``."""
    X, rng = table(seed, 80)
    signal = (X["tied"] > 12) + (X["skewed"] > 20) + X["flag"].astype(int)
    labels = np.where(rng.random(len(X)) < 0.8, np.minimum(signal, 2), rng.integers(0, 3, len(X)))
    weight = rng.integers(1, 4, len(X)).astype(float)
    share = weight / weight.sum()
    target = np.round(5 * signal + 3 * rng.normal(size=len(X)))
    costs = rng.integers(0, 9, (len(X), 3)).astype(float)
    of_class = np.eye(3)[labels] * share[:, np.newaxis]
    binary = np.minimum(labels, 1)

    def errors(rows):
        sums = of_class[rows].sum(axis=0)
        return sums.sum() - sums.max()

    def two(rows):
        ones = share[rows][binary[rows] == 1].sum()
        return min(ones, share[rows].sum() - ones)

    def balanced(rows):
        sums = of_class[rows].sum(axis=0) / of_class.sum(axis=0) / 3
        return sums.sum() - sums.max()

    def gini(rows):
        sums = of_class[rows].sum(axis=0)
        return sums.sum() - (sums**2).sum() / sums.sum()

    def squares(rows):
        mean = np.average(target[rows], weights=share[rows])
        return (share[rows] * (target[rows] - mean) ** 2).sum()

    def cost(rows):
        return (costs[rows] * share[rows, np.newaxis]).sum(axis=0).min()

    group = np.where(rng.random(len(X)) < 0.5, "a", "b")
    return (
        X,
        weight,
        [
            (OptimalTreeClassifier(), labels, {}, errors),
            (OptimalTreeClassifier(objective="balanced-accuracy"), labels, {}, balanced),
            (OptimalTreeClassifier(objective="gini"), labels, {}, gini),
            (
                FairTreeClassifier(fairness=DemographicParity(1.0)),
                binary,
                {"sensitive_features": group},
                two,
            ),
            (CostSensitiveTreeClassifier(), labels, {"costs": costs}, cost),
            (OptimalTreeRegressor(), target, {}, squares),
            (OptimalTree(task=SquaredError()), target, {}, squares),
        ],
    )


@pytest.mark.parametrize("seed", slow_but([0], range(4)))
@pytest.mark.parametrize("which", range(7))
def test_every_estimator_is_never_worse_than_greedy(which, seed):
    X, weight, estimators = labelled(seed)
    tree, y, more, loss = estimators[which]
    parameters = {"max_depth": 1 + seed % 3, "min_samples_leaf": 1 + 2 * (seed % 2)}
    parameters["leaf_penalty"] = [0.0, 0.003][seed // 2]
    tree.set_params(**parameters).fit(X, y, sample_weight=weight, **more)
    assert tree.status_ == "optimal"
    assert tree.objective_value_ <= greedy_objective(ranks_of(X), loss, **parameters) + 1e-11


def test_prices_of_questions_are_the_greedy_trees_too():
    X, rng = table(1, 80)
    X = X[["tied", "skewed", "flag"]]
    labels = np.where(X["tied"] > 12, 1, 0) ^ (rng.random(80) < 0.2)
    price = [0.05, 0.02, 0.01]
    tree = CostSensitiveTreeClassifier(max_depth=2, feature_costs=price).fit(X, labels)

    def loss(rows):
        return np.bincount(labels[rows], minlength=2).min() / 80

    def asked(column, path, rows):
        return 0.0 if column in path else price[column] * len(rows) / 80

    expected = greedy_objective(ranks_of(X), loss, max_depth=2, price=asked)
    assert expected < loss(np.arange(80))
    assert tree.objective_value_ <= expected + 1e-12


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize("name", ["iris", "wine", "breast_cancer"])
def test_training_accuracy_is_never_below_that_of_cart(name, depth):
    X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    cart = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y)
    tree = OptimalTreeClassifier(max_depth=depth).fit(X, y)
    assert 1 - tree.objective_value_ >= cart.score(X, y) - 1e-12


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_squared_error_is_never_above_that_of_cart(depth):
    X, y = datasets.load_diabetes(return_X_y=True)
    cart = DecisionTreeRegressor(max_depth=depth, random_state=0).fit(X, y)
    tree = OptimalTreeRegressor(max_depth=depth).fit(X, y)
    assert tree.objective_value_ <= np.mean((cart.predict(X) - y) ** 2) + 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_classes_of_tied_numbers_are_never_worse_than_with_cart(seed):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 40, (150, 4)).astype(float)
    labels = (X[:, 0] > 17).astype(int) + (X[:, 1] * X[:, 2] > 500) ^ (rng.random(150) < 0.2)
    weight = rng.integers(1, 4, 150)
    cart = DecisionTreeClassifier(max_depth=3, min_samples_leaf=4, random_state=0)
    share = cart.fit(X, labels, sample_weight=weight).score(X, labels, sample_weight=weight)
    tree = OptimalTreeClassifier(max_depth=3, min_samples_leaf=4).fit(X, labels, weight)
    assert 1 - tree.objective_value_ >= share - 1e-12


@pytest.mark.parametrize("weighted", [False, True])
def test_cuts_by_gini_are_those_of_cart(weighted):
    rng = np.random.default_rng(5)
    X = np.column_stack([rng.normal(size=(200, 3)), rng.random(200) < 0.4])
    labels = np.where(X[:, 0] > 0.3, X[:, 3] > 0, 2 * (X[:, 1] > X[:, 2])).astype(int)
    labels = np.where(rng.random(200) < 0.2, rng.integers(0, 3, 200), labels)
    weight = rng.random(200) + 0.5 if weighted else None
    frame = pd.DataFrame(X, columns=list("abcd")).astype({"d": bool})
    columns, _, _ = BinaryEncoder()._fit_columns(frame, whole=True)()
    growth = Growth(3, None, 0.01, None, 5)
    cart = DecisionTreeClassifier(max_depth=3, min_samples_leaf=5).fit(X, labels, weight).tree_
    # Children follow their parents: prune from the last node to the first.
    errors = cart.weighted_n_node_samples * (1 - cart.value[:, 0].max(axis=1))
    least, kept = errors.copy(), set()
    for node in reversed(range(cart.node_count)):
        if cart.children_left[node] >= 0:
            sides = cart.children_left[node], cart.children_right[node]
            split = least[list(sides)].sum() + 0.01 * cart.weighted_n_node_samples[0]
            if split < errors[node]:
                least[node] = split
                kept.add(node)
    expected, waiting = set(), [0]
    while waiting:
        node = waiting.pop()
        if node in kept:
            expected.add(
                (cart.feature[node], cart.threshold[node] if cart.feature[node] < 3 else 0)
            )
            waiting += [cart.children_left[node], cart.children_right[node]]
    assert len(expected) > 2

    def middle(cut):
        values = columns.values[cut.column]
        return 0 if values is None else (values[cut.below] + values[cut.above]) / 2

    data = {"labels": labels, "n_classes": 3, "weight": weight}
    found = {(cut.column, middle(cut)) for cut in cuts_by_gini(data, columns, growth)}
    assert {column for column, _ in found} == {column for column, _ in expected}
    assert sorted(at for _, at in found) == pytest.approx(sorted(at for _, at in expected))
    assert cuts_by_gini(data, columns, growth._replace(seconds=0.0)) == []


def test_seconds_of_a_second_tree_are_those_that_the_first_one_left():
    now = time.perf_counter()
    assert 4.0 < Growth(3, None, 0.0, 10.0, 1).after(now - 5.0).seconds <= 5.0
    assert Growth(3, None, 0.0, 10.0, 1).after(now - 20.0).seconds == 0.0
    assert Growth(3, None, 0.0, None, 1).after(now).seconds is None


def with_cuts(encoder, X, cuts):
    columns, questions, features = encoder._fit_columns(X)()
    added = add_cuts(encoder, columns, questions, features.count_true(), cuts)
    assert (added or questions) == columns.questions(encoder.features_)


def test_cuts_are_added_and_many_take_the_places_of_quantiles():
    X = np.arange(1000.0)[:, np.newaxis]
    before = [feature.value for feature in BinaryEncoder().fit(X).features_]
    last = int(before[-1])
    few = [Cut(0, at, at + 1) for at in (3, 50, 150, 250, 350, 450, 550, 650)]
    encoder = BinaryEncoder().fit(X)
    with_cuts(encoder, X, few)
    after = [feature.value for feature in encoder.features_]
    assert after == sorted(before + [cut.below + 0.5 for cut in few])
    assert encoder.transform(X).sum(axis=0)[0] == 4
    encoder = BinaryEncoder().fit(X)
    with_cuts(encoder, X, [*few, Cut(0, last + 20, last + 21)])
    many = [feature.value for feature in encoder.features_]
    assert many == [*after[:-1], last + 20.5]


def test_a_cut_that_a_feature_makes_in_the_node_adds_nothing():
    X = np.arange(1000.0)[:, np.newaxis]
    encoder = BinaryEncoder().fit(X)
    before = list(encoder.features_)
    with_cuts(encoder, X, [Cut(0, 80, 100)])
    assert encoder.features_ == before


def test_imputed_rows_place_no_cut():
    X, _ = table(3, 200)
    X = X[["free", "tied"]]
    y = np.where(X["free"].isna(), 0, 1)
    tree = OptimalTreeClassifier(max_depth=2).fit(X, y)
    values = np.unique(X["free"].dropna())
    for feature in tree.encoder_.features_:
        if isinstance(feature, Threshold) and feature.column == "free":
            gap = np.searchsorted(values, feature.value, side="right")
            assert 0 < gap < len(values)
            assert feature.value == pytest.approx((values[gap - 1] + values[gap]) / 2)
            assert feature.missing == (X["free"].mean() <= feature.value)
    # Two thresholds of the column cannot separate the rows without a value.
    assert tree.objective_value_ > 0


def test_an_encoder_of_ones_own_is_left_alone():
    X, y = datasets.load_iris(return_X_y=True)
    tree = OptimalTreeClassifier(max_depth=2, encoder=BinaryEncoder()).fit(X, y)
    assert tree.encoder_.features_ == BinaryEncoder().fit(X).features_


def test_saving_keeps_the_cuts():
    data = load("gbsg2")
    tree = OptimalSurvivalTree(max_depth=2).fit(data.X, data.y)
    again = loads(dumps(tree))
    assert again.encoder_.features_ == tree.encoder_.features_
    names = tree.encoder_.get_feature_names_out().tolist()
    assert names != BinaryEncoder().fit(data.X).get_feature_names_out().tolist()
    assert len(set(names)) == len(names)
    np.testing.assert_array_equal(again.apply(data.X), tree.apply(data.X))


def test_without_time_there_are_no_cuts():
    data = load("gbsg2")
    with pytest.warns(SearchLimitWarning):
        tree = OptimalSurvivalTree(max_depth=3, time_limit=0).fit(data.X, data.y)
    assert tree.encoder_.features_ == BinaryEncoder().fit(data.X).features_


def test_fair_trees_and_policies_have_the_cuts_of_the_sum():
    data = load("gbsg2")
    group = np.where(data.X["horTh"] == data.X["horTh"].iloc[0], "a", "b")
    free = OptimalSurvivalTree(max_depth=2).fit(data.X, data.y)
    fair = OptimalSurvivalTree(max_depth=2, fairness=RmstParity(1e6))
    fair.fit(data.X, data.y, sensitive_features=group)
    assert fair.encoder_.features_ == free.encoder_.features_
    assert fair.objective_value_ == pytest.approx(free.objective_value_, rel=1e-9)


def test_every_size_of_a_path_is_never_worse_than_the_greedy_tree_of_the_largest():
    data = load("whas500")
    X = pd.DataFrame(data.X).select_dtypes("number")
    X = X.loc[:, X.notna().all()]
    path = OptimalSurvivalTree(max_depth=3).size_path(X, data.y)
    greedy = GreedySurvivalTree(encoder=None, max_depth=3).fit(X, data.y)
    assert path[greedy.n_leaves_ - 1].objective_value_ <= greedy.objective_value_ + 1e-12
