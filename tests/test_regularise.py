"""Minimum sizes of leaves and the prior on their hazard ratios."""

import warnings

import numpy as np
import pandas as pd
import pytest
from papers import PAPERS

from bristlecone import (
    BinaryEncoder,
    GreedySurvivalTree,
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    RmstParity,
    datasets,
)
from bristlecone._model.registry import dumps, loads
from bristlecone.exceptions import EventFreeWarning, InvalidParameterError, SmallSampleWarning
from bristlecone.trust import verify

TREES = (OptimalSurvivalTree, GreedySurvivalTree)


@pytest.fixture(scope="module")
def data():
    """Few rows, 30 of which have an event. The first column separates the censored rows."""
    rng = np.random.default_rng(0)
    X = rng.random((90, 4)) < 0.4
    event = np.zeros(90, dtype=bool)
    event[np.flatnonzero(~X[:, 0])[:30]] = True
    return X, (event, rng.exponential(5.0, 90) + 0.5)


def least_events(model):
    return min(leaf.n_events for leaf in model.leaf_statistics_)


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize(("value", "least"), [(4, 4), (0.1, 3), (0.11, 4), ("auto", 5)])
def test_every_leaf_has_its_events(tree, value, least, data):
    free = tree(max_depth=4, **PAPERS).fit(*data)
    model = tree(max_depth=4, **{**PAPERS, "min_events_leaf": value}).fit(*data)
    assert least_events(free) == 0
    assert model.min_events_leaf_ == least
    assert model.n_leaves_ > 1 and least_events(model) >= least
    assert free.objective_value_ < model.objective_value_


@pytest.mark.parametrize("tree", TREES)
def test_events_count_as_rows_whatever_their_weight(tree, data):
    X, y = data
    weight = np.where(np.arange(len(X)) % 2, 0.01, 7.0)
    model = tree(max_depth=4, min_events_leaf=6).fit(X, y, weight)
    assert least_events(model) >= 6 and model.n_leaves_ > 1


@pytest.mark.parametrize("objective", ["likelihood", "brier"])
def test_fair_trees_keep_the_events(objective, data):
    X, y = data
    group = np.arange(len(X)) % 2
    model = OptimalSurvivalTree(
        objective=objective, min_events_leaf=5, fairness=RmstParity(0.05), max_depth=2
    )
    model.fit(X, y, sensitive_features=group)
    assert least_events(model) >= 5


def test_a_minimum_of_rows_that_the_events_imply_changes_nothing(data):
    events = OptimalSurvivalTree(min_events_leaf=5).fit(*data)
    both = OptimalSurvivalTree(min_events_leaf=5, min_samples_leaf=5).fit(*data)
    assert np.array_equal(events.tree_.feature, both.tree_.feature)


@pytest.mark.parametrize("tree", TREES)
def test_more_events_than_there_are_is_an_error(tree, data):
    with pytest.raises(InvalidParameterError, match=r"min_events_leaf=31 is more than the 30"):
        tree(min_events_leaf=31).fit(*data)


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("min_events_leaf", value) for value in (0, -1, 0.0, 1.0, 1.5, "five", True, np.nan)),
        *(("min_samples_leaf", value) for value in (0, 0.0, 1.0, -0.5, "auto", None, np.inf)),
        *(("prior", value) for value in (-1, np.nan, np.inf, "none", None, True, 1e10)),
    ],
)
def test_values_that_mean_nothing_are_errors(tree, name, value, data):
    with pytest.raises(InvalidParameterError, match=name):
        tree(**{name: value}).fit(*data)


@pytest.mark.parametrize("tree", TREES)
@pytest.mark.parametrize(
    "limits",
    [
        {"min_events_leaf": 0.6},
        {"min_samples_leaf": 0.7},
        {"min_samples_leaf": 240},
        {"min_samples_leaf": 10_000},
    ],
)
def test_a_minimum_that_nothing_can_meet_is_one_leaf_and_a_warning(tree, limits, data):
    with pytest.warns(SmallSampleWarning, match=next(iter(limits))):
        model = tree(**limits).fit(*data)
    assert model.n_leaves_ == 1
    assert verify(model, *data).ok


@pytest.mark.parametrize("least", [0.7, 70, 101])
@pytest.mark.parametrize("thresholds", ["quantiles", "all"])
def test_smallest_leaves_are_checked_for_every_outcome(least, thresholds):
    X = np.arange(100.0)[:, None]
    encoder = BinaryEncoder(thresholds=thresholds)
    with pytest.warns(SmallSampleWarning, match=rf"^min_samples_leaf={least}.* a single leaf"):
        model = OptimalTreeClassifier(min_samples_leaf=least, encoder=encoder).fit(X, X[:, 0] > 30)
    assert model.n_leaves_ == 1


def test_auto_is_capped_at_the_events(data):
    X, (event, time) = data
    event = event & (np.cumsum(event) <= 3)
    with pytest.warns(SmallSampleWarning, match="min_events_leaf='auto' means at least 3 events"):
        model = OptimalSurvivalTree(min_events_leaf="auto").fit(X, (event, time))
    assert (model.min_events_leaf_, model.n_leaves_) == (3, 1)


@pytest.mark.parametrize("tree", TREES)
def test_a_share_that_can_be_met_does_not_warn(tree, data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tree(min_events_leaf=0.2, min_samples_leaf=0.1).fit(*data)


@pytest.mark.parametrize("tree", [OptimalTreeClassifier, OptimalTreeRegressor])
def test_a_share_of_the_rows_is_that_number(tree):
    rng = np.random.default_rng(1)
    X, y = rng.random((30, 4)) < 0.5, rng.integers(0, 2, 30)
    share, number = (tree(min_samples_leaf=least).fit(X, y) for least in (0.1, 3))
    assert np.array_equal(share.tree_.feature, number.tree_.feature)
    assert share.tree_.n_node_samples.min() >= 3
    weight = (np.arange(30) < 20).astype(float)
    assert tree(min_samples_leaf=0.3).fit(X, y, weight).tree_.n_node_samples.min() >= 6


@pytest.mark.parametrize("tree", TREES)
def test_a_prior_draws_theta_to_one_and_is_part_of_the_objective(tree, data):
    X, (event, time) = data
    model = tree(prior=3.0).fit(*data)
    loss = 0.0
    order = np.unique(time)
    at = np.searchsorted(order, time)
    steps = [event[at == k].sum() / (at >= k).sum() for k in range(len(order))]
    hazard = np.cumsum(steps)[at]
    hazard = np.where(hazard > 0, hazard, 1 / (len(X) + 1))
    for leaf in model.leaf_statistics_:
        rows = model.apply(X) == leaf.node
        e, h = event[rows].sum(), hazard[rows].sum()
        theta = (e + 3.0) / (h + 3.0)
        assert leaf.theta == pytest.approx(theta, rel=1e-12)
        deviance = theta * hazard[rows] - event[rows] * (1 + np.log(theta * hazard[rows]))
        loss += deviance.sum() + 3.0 * (theta - 1 - np.log(theta))
    assert model.objective_value_ == pytest.approx(loss / len(X), abs=1e-12)


def test_the_optimal_tree_under_a_prior_is_no_worse_than_the_greedy_one():
    gbsg2 = datasets.load("gbsg2")
    for prior in (0.0, 1.0, 10.0, "auto"):
        limits = {"max_depth": 3, "prior": prior, "min_events_leaf": 5}
        encoder = BinaryEncoder(n_thresholds=4)
        best = OptimalSurvivalTree(**limits, encoder=encoder).fit(gbsg2.X, gbsg2.y)
        greedy = GreedySurvivalTree(**limits, encoder=encoder).fit(gbsg2.X, gbsg2.y)
        assert best.status_ == "optimal"
        assert best.objective_value_ <= greedy.objective_value_ + 1e-12


def test_brier_has_no_prior(data):
    with pytest.raises(InvalidParameterError, match="prior=2 needs objective='likelihood'"):
        OptimalSurvivalTree(objective="brier", prior=2).fit(*data)
    assert OptimalSurvivalTree(objective="brier", prior="auto").fit(*data).prior_ == 0


@pytest.mark.parametrize("tree", TREES)
def test_what_was_fitted_survives_saving_and_other_parameters(tree, data):
    X, _ = data
    model = tree(prior="auto", min_events_leaf="auto").fit(*data)
    text, reported, risk = dumps(model), model.describe(), model.predict(X)
    model.set_params(prior=0.0, min_events_leaf=None)
    assert dumps(model) == text and model.describe() == reported
    again = loads(text)
    assert (again.prior_, again.min_events_leaf_) == (10.0, 5)
    assert dumps(again) == text and again.describe() == reported
    assert np.array_equal(again.predict(X), risk)


@pytest.mark.parametrize("tree", TREES)
def test_the_description_names_prior_and_sizes(tree, data):
    model = tree(prior=3, min_events_leaf=4, min_samples_leaf=0.05).fit(*data)
    reported = " ".join(model.describe().split())
    for text in (
        "at least 5% of the training rows in each leaf",
        "at least 4 training events in each leaf",
        "with a prior of 3 pseudo-events at the baseline hazard in every leaf",
    ):
        assert text in reported


def cause_of_death(n=400):
    """Rows of survivors have no cause, so the column reveals the outcome."""
    rng = np.random.default_rng(5)
    time = rng.exponential(10.0, n)
    event = rng.random(n) < 0.5
    age = rng.normal(60, 10, n)
    return pd.DataFrame({"age": age, "cause": np.where(event, "some", "none")}), (event, time)


@pytest.mark.parametrize("Tree", TREES)
def test_rows_without_events_that_one_question_separates_may_be_a_leaf(Tree):
    X, y = cause_of_death()
    n_free = int((~y[0]).sum())
    with pytest.warns(EventFreeWarning, match=f"'cause = none' holds for {n_free} rows without ev"):
        tree = Tree(max_depth=2).fit(X, y)
    assert tree.min_events_leaf_ == 0
    assert min(leaf.n_events for leaf in tree.leaf_statistics_) == 0
    free = Tree(max_depth=2, min_events_leaf=None).fit(X, y)
    assert free.objective_value_ == tree.objective_value_


@pytest.mark.parametrize("Tree", TREES)
def test_a_minimum_of_ones_own_is_kept(Tree):
    X, y = cause_of_death()
    tree = Tree(max_depth=2, min_events_leaf=5).fit(X, y)
    assert all(leaf.n_events >= 5 for leaf in tree.leaf_statistics_)


@pytest.mark.parametrize("tree", TREES)
def test_the_defaults_are_five_events_and_ten_pseudo_events(tree):
    gbsg2 = datasets.load("gbsg2")
    defaults = {"min_events_leaf": 5, "prior": 10, "shrinkage": 0}
    model, same = (tree(**given).fit(gbsg2.X, gbsg2.y) for given in ({}, defaults))
    assert (model.min_events_leaf_, model.prior_, model.shrinkage_) == (5, 10.0, 0.0)
    assert model.objective_value_ == same.objective_value_
    assert np.array_equal(model.apply(gbsg2.X), same.apply(gbsg2.X))
    assert np.array_equal(model.predict(gbsg2.X), same.predict(gbsg2.X))
    papers = tree(**PAPERS).fit(gbsg2.X, gbsg2.y)
    assert not np.array_equal(model.predict(gbsg2.X), papers.predict(gbsg2.X))


def test_the_defaults_by_brier_score_are_five_events_and_twenty_pseudo_rows(data):
    defaults = {"min_events_leaf": 5, "prior": 0, "shrinkage": 20}
    model, same, papers = (
        OptimalSurvivalTree(objective="brier", **given).fit(*data)
        for given in ({}, defaults, PAPERS)
    )
    assert (model.min_events_leaf_, model.prior_, model.shrinkage_) == (5, 0.0, 20.0)
    assert model.objective_value_ == same.objective_value_ > papers.objective_value_
    curves, expected = (
        each.predict_survival_function(data[0], return_array=True) for each in (model, same)
    )
    assert np.array_equal(curves, expected)
    unshrunk = OptimalSurvivalTree(objective="brier", shrinkage=0).fit(*data)
    assert np.array_equal(unshrunk.apply(data[0]), model.apply(data[0]))
    plain = unshrunk.predict_survival_function(data[0], return_array=True)
    assert not np.array_equal(curves, plain)


def test_the_first_tree_of_the_readme_has_five_events_in_every_leaf():
    gbsg2 = datasets.load("gbsg2")
    model = OptimalSurvivalTree(max_depth=3).fit(gbsg2.X, gbsg2.y)
    assert model.n_leaves_ == 8 and least_events(model) >= 5
    papers = OptimalSurvivalTree(max_depth=3, **PAPERS).fit(gbsg2.X, gbsg2.y)
    assert least_events(papers) < 5


def test_the_settings_of_the_papers_give_their_optimum_over_quantiles():
    gbsg2 = datasets.load("gbsg2")
    model = OptimalSurvivalTree(max_depth=3, encoder=BinaryEncoder(), **PAPERS)
    assert model.fit(gbsg2.X, gbsg2.y).objective_value_ == pytest.approx(0.5910615981, abs=5e-11)
    assert (model.status_, model.n_binary_features_) == ("optimal", 52)
