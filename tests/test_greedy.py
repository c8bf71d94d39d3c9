"""Greedy trees: the split of every node, compared with slow definitions and scikit-survival."""

import logging
import os
import signal
import threading
from dataclasses import replace
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from papers import PAPERS
from sklearn.base import clone
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sksurv.compare import compare_survival
from sksurv.tree import SurvivalTree
from sksurv.util import Surv

from bristlecone import curves
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._estimators.greedy import GreedySurvivalTree
from bristlecone._estimators.survival import OptimalSurvivalTree
from bristlecone._model.registry import loads
from bristlecone.datasets import load
from bristlecone.exceptions import ColumnWarning, ConstantFeatureWarning
from bristlecone.export import export_text
from bristlecone.metrics import logrank_test
from bristlecone.trust import verify

CRITERIA = ("likelihood", "logrank")


def sample(n=120, seed=0):
    """Columns with and without ties, y with ties, and integer weights."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=n), rng.integers(0, 5, size=n), rng.normal(size=n) > 0.3])
    X = X.astype(np.float32).astype(float)  # scikit-survival converts to single precision
    lived = np.ceil(10 * rng.exponential(np.exp(-0.8 * X[:, 0] - 0.4 * (X[:, 1] == 2))))
    followed = np.ceil(rng.uniform(0, 40, size=n))
    y = Surv.from_arrays(lived <= followed, np.minimum(lived, followed))
    return X, y, rng.integers(1, 4, size=n)


def log_rank(rows, left, y, weight):
    """Statistic of ``bristlecone.metrics``; 0 if it is undefined."""
    rows = np.repeat(rows, weight[rows])
    side = left[rows]
    try:
        return logrank_test(y["event"][rows], y["time"][rows], side).statistic
    except ValueError:
        return 0.0


def likelihood_gain(rows, left, y, weight):
    """Decrease of the likelihood loss."""
    hazard = curves.nelson_aalen(y, weight.astype(float))(y["time"])
    hazard = weight * np.where(hazard > 0, hazard, 1 / (weight.sum() + 1))

    def fit(part):
        events = (weight * y["event"])[part].sum()
        return events * np.log(events / hazard[part].sum()) if events else 0.0

    return fit(rows[left[rows]]) + fit(rows[~left[rows]]) - fit(rows)


GAIN = {"likelihood": likelihood_gain, "logrank": log_rank}


def rows_of_nodes(model, X):
    path = model.decision_path(X).toarray().astype(bool)
    return [np.flatnonzero(column) for column in path.T]


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("encoder", ["auto", None])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_split_is_the_best_of_its_node(criterion, encoder, weighted):
    X, y, weight = sample()
    weight = weight if weighted else np.ones(len(X), dtype=int)
    model = GreedySurvivalTree(
        criterion=criterion, encoder=encoder, max_depth=3, min_samples_leaf=4, **PAPERS
    ).fit(X, y, sample_weight=weight)
    tree = model.tree_
    # Without an encoder, every value of every column is a possible threshold.
    columns = X if encoder is None else ~model.encoder_.transform(X)
    asked = tree.column if encoder is None else tree.feature
    assert model.n_leaves_ > 4
    for node, rows in enumerate(rows_of_nodes(model, X)):
        gains = [0.0]
        for column in columns.T:
            for cut in np.unique(column[rows])[:-1]:
                left = column <= cut
                if min(left[rows].sum(), (~left[rows]).sum()) >= 4:
                    gains.append(GAIN[criterion](rows, left, y, weight))
        if tree.is_leaf[node]:
            assert tree.node_depth[node] == 3 or max(gains) < 1e-9
            continue
        cut = tree.threshold[node] if encoder is None else 0.0
        left = columns[:, asked[node]] <= cut
        gain = GAIN[criterion](rows, left, y, weight)
        assert gain == pytest.approx(max(gains), rel=1e-9)
        assert gain > 1e-6


def test_log_rank_of_the_root_is_that_of_scikit_survival():
    X, y, _ = sample()
    model = GreedySurvivalTree(criterion="logrank", encoder=None, max_depth=1, **PAPERS)
    model.fit(X, y)
    column, threshold = X[:, model.tree_.column[0]], model.tree_.threshold[0]
    found = compare_survival(y, (column <= threshold).astype(int))[0]
    every = [
        compare_survival(y, (values <= cut).astype(int))[0]
        for values in X.T
        for cut in np.unique(values)[:-1]
    ]
    assert found == pytest.approx(max(every), rel=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_log_rank_trees_are_those_of_scikit_survival(seed):
    X, y, _ = sample(n=300, seed=seed)
    # Leaves are so large that no two splits divide a node in the same way; scikit-survival would
    # choose at random.
    limits = {"max_depth": 3, "min_samples_leaf": 15}
    theirs = SurvivalTree(**limits, min_samples_split=30).fit(X, y).tree_
    ours = GreedySurvivalTree(**limits, criterion="logrank", encoder=None, **PAPERS)
    ours = ours.fit(X, y).tree_
    np.testing.assert_array_equal(ours.children_left, theirs.children_left)
    np.testing.assert_array_equal(ours.children_right, theirs.children_right)
    np.testing.assert_array_equal(ours.column, theirs.feature)
    inner = ~ours.is_leaf
    np.testing.assert_allclose(ours.threshold[inner], theirs.threshold[inner], rtol=1e-6)


@pytest.mark.parametrize(
    ("name", "single_leaf", "one_split"),
    [
        ("gbsg2", 0.6965823489590519, 0.6497759197081169),
        ("veterans", 0.5748456947359405, 0.4639605931766774),
    ],
)
def test_one_split_by_likelihood_has_the_published_optimum(name, single_leaf, one_split):
    data = load(name)
    for depth, value in ((0, single_leaf), (1, one_split)):
        model = GreedySurvivalTree(max_depth=depth, **PAPERS).fit(data.X, data.y)
        assert model.objective_value_ == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("name", ["gbsg2", "lung", "veterans"])
def test_no_greedy_tree_is_better_than_the_optimal_one(name):
    data = load(name)
    for depth in (1, 2, 3):
        best = OptimalSurvivalTree(max_depth=depth).fit(data.X, data.y).objective_value_
        by_likelihood, by_logrank = (
            GreedySurvivalTree(criterion=criterion, max_depth=depth)
            .fit(data.X, data.y)
            .objective_value_
            for criterion in CRITERIA
        )
        assert min(by_likelihood, by_logrank) > best - 1e-12
        if depth == 1:
            assert by_likelihood == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_objective_is_the_mean_likelihood_loss(criterion):
    X, y, weight = sample()
    model = GreedySurvivalTree(criterion=criterion, encoder=None, **PAPERS)
    model.fit(X, y, sample_weight=weight)
    hazard = curves.nelson_aalen(y, weight.astype(float))(y["time"])
    floored = np.where(hazard > 0, hazard, 1 / (weight.sum() + 1))
    theta = model.predict(X)
    loss = theta * floored - y["event"] * (1 + np.log(theta * floored))
    # A leaf without events has half an event in θ, but none in its loss.
    barren = {leaf.node for leaf in model.leaf_statistics_ if leaf.events == 0}
    loss[np.isin(model.apply(X), list(barren))] = 0.0
    expected = (weight * loss).sum() / weight.sum()
    assert model.objective_value_ == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("criterion", CRITERIA)
def test_thresholds_are_midway_between_neighbours_in_the_node(criterion):
    X, y, _ = sample()
    model = GreedySurvivalTree(criterion=criterion, encoder=None).fit(X, y)
    tree = model.tree_
    for node, rows in enumerate(rows_of_nodes(model, X)):
        if not tree.is_leaf[node]:
            values = np.unique(X[rows, tree.column[node]])
            assert tree.threshold[node] in (values[:-1] + values[1:]) / 2


def test_neighbouring_floats_and_extreme_values_are_separated():
    event, time = np.ones(4, dtype=bool), np.array([1.0, 2.0, 8.0, 9.0])
    huge = np.finfo(float).max
    for low, high in ((1.0, np.nextafter(1.0, 2.0)), (-0.0, 5e-324), (-huge, huge)):
        X = np.array([[low], [low], [high], [high]])
        model = GreedySurvivalTree(max_depth=1, encoder=None, **PAPERS).fit(X, (event, time))
        assert model.apply(X).tolist() == [1, 1, 2, 2]


@pytest.mark.parametrize("criterion", CRITERIA)
def test_leaf_budget_splits_the_most_valuable_node_first(criterion):
    X, y, _ = sample()
    weight = np.ones(len(X), dtype=int)
    free = GreedySurvivalTree(criterion=criterion, encoder=None, max_depth=None, **PAPERS)
    trees = [clone(free).set_params(max_leaf_nodes=k).fit(X, y) for k in range(1, 7)]
    assert [model.n_leaves_ for model in trees] == [1, 2, 3, 4, 5, 6]
    for smaller, larger in pairwise(trees):
        before, after = smaller.apply(X), larger.apply(X)
        split = [node for node in np.unique(before) if len(set(after[before == node])) == 2]
        assert len(split) == 1
        gains = {}
        for node in np.unique(before):
            rows = np.flatnonzero(before == node)
            gains[node] = max(
                (
                    GAIN[criterion](rows, column <= cut, y, weight)
                    for column in X.T
                    for cut in np.unique(column[rows])[:-1]
                ),
                default=0.0,
            )
        assert gains[split[0]] == pytest.approx(max(gains.values()), rel=1e-9)
    budget = clone(free).set_params(max_leaf_nodes=10_000).fit(X, y)
    np.testing.assert_array_equal(budget.apply(X), free.fit(X, y).apply(X))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_unlimited_trees_stop_where_nothing_is_gained(criterion):
    X, y, _ = sample()
    model = GreedySurvivalTree(criterion=criterion, encoder=None, max_depth=None, **PAPERS)
    model.fit(X, y)
    weight = np.ones(len(X), dtype=int)
    assert model.depth_ > 5
    for leaf in model.leaf_statistics_:
        rows = np.flatnonzero(model.apply(X) == leaf.node)
        for column in X.T:
            for cut in np.unique(column[rows])[:-1]:
                assert GAIN[criterion](rows, column <= cut, y, weight) < 1e-9


@pytest.mark.parametrize("scale", [1e-99, 1e-14])
def test_log_rank_trees_do_not_depend_on_the_scale_of_the_weights(scale):
    X, y, weight = sample()
    # Weights are at most one: for others the factor for ties depends on their scale.
    model = GreedySurvivalTree(criterion="logrank", encoder=None, max_depth=4)
    expected = clone(model).fit(X, y, sample_weight=weight * 1e-3)
    found = model.fit(X, y, sample_weight=weight * scale)
    assert expected.n_leaves_ > 8
    np.testing.assert_array_equal(found.apply(X), expected.apply(X))


@pytest.mark.parametrize("criterion", CRITERIA)
def test_leaves_have_the_fewest_rows_asked_for(criterion):
    X, y, weight = sample()
    model = GreedySurvivalTree(
        criterion=criterion, encoder=None, max_depth=None, min_samples_leaf=7, **PAPERS
    ).fit(X, y, sample_weight=weight)
    assert min(leaf.n_samples for leaf in model.leaf_statistics_) == 7


@pytest.mark.parametrize("criterion", CRITERIA)
def test_of_equal_columns_the_first_is_asked_about(criterion):
    X, y, _ = sample()
    X = np.column_stack([X[:, 0], X, -X])
    model = GreedySurvivalTree(criterion=criterion, encoder=None).fit(X, y)
    # Column 1 repeats column 0; the last three exchange the sides of the others.
    assert model.n_leaves_ > 4
    assert set(model.tree_.column) <= {-2, 0, 2, 3}


@pytest.mark.parametrize("criterion", CRITERIA)
def test_equal_outcomes_give_a_single_leaf(criterion):
    X, _, _ = sample()
    outcome = np.ones(len(X), dtype=bool), np.full(len(X), 3.0)
    model = GreedySurvivalTree(criterion=criterion, encoder=None, max_depth=None).fit(X, outcome)
    assert model.n_leaves_ == 1


def test_booleans_are_features_as_they_are():
    X, y, _ = sample()
    flags = pd.DataFrame({"high": X[:, 0] > 0, "two": X[:, 1] == 2})
    model = GreedySurvivalTree(max_depth=1).fit(flags, y)
    chosen = flags.iloc[:, model.tree_.feature[0]]
    np.testing.assert_array_equal(model.apply(flags), np.where(chosen, 1, 2))


def test_transformers_stand_in_for_the_encoder():
    X, y, _ = sample()

    def halves(X):
        return np.greater(X, np.median(X, axis=0)).astype(int)

    encoder = FunctionTransformer(halves, feature_names_out="one-to-one")
    model = GreedySurvivalTree(encoder=encoder).fit(X, y)
    same = GreedySurvivalTree(encoder=None).fit(halves(X), y)
    assert model.objective_value_ == pytest.approx(same.objective_value_, rel=1e-12)
    with pytest.raises(ValueError, match="only 0 and 1"):
        GreedySurvivalTree(encoder=StandardScaler()).fit(X, y)
    with pytest.raises(TypeError, match="parameter encoder is a FunctionTransformer"):
        model.to_json()


def test_no_encoder_is_every_threshold_of_any_support():
    X, y, weight = sample()
    frame = pd.DataFrame(X, columns=["age", "grade", "sex"])
    frame.loc[::7, "age"] = np.nan
    frame["grade"] = frame["grade"].astype(int).map(dict(enumerate("abcde")))
    model = GreedySurvivalTree(encoder=None, max_depth=4, **PAPERS).fit(frame, y, weight)
    every = BinaryEncoder(thresholds="all", min_support=0)
    same = clone(model).set_params(encoder=every).fit(frame, y, weight)
    assert export_text(model) == export_text(same)
    assert model.encoder is None and same.encoder is every


@pytest.mark.parametrize("encoder", ["auto", None])
def test_constant_columns_are_logged_and_warn_where_nothing_else_is(encoder, caplog):
    X, y, _ = sample()
    frame = pd.DataFrame(X, columns=["age", "grade", "sex"]).assign(site=1.0)
    with caplog.at_level(logging.INFO):
        model = GreedySurvivalTree(encoder=encoder).fit(frame, y)
    assert "these columns are constant and cannot be split: 'site'" in caplog.messages
    assert model.n_leaves_ > 1
    with pytest.warns(ConstantFeatureWarning, match="single leaf"):
        assert GreedySurvivalTree(encoder=encoder).fit(frame[["site"]], y).n_leaves_ == 1


def test_text_shows_thresholds_in_the_names_of_the_columns():
    X, y, _ = sample()
    frame = pd.DataFrame(X, columns=["age", "grade", "sex"])
    model = GreedySurvivalTree(encoder=None, max_depth=1).fit(frame, y)
    name = frame.columns[model.tree_.column[0]]
    shown, threshold = export_text(model).splitlines()[0], model.tree_.threshold[0]
    assert shown.startswith(f"{name} <= ")
    assert float(shown.removeprefix(f"{name} <= ")) == pytest.approx(threshold, rel=1e-5)


def test_encoder_parameters_are_those_of_the_tree():
    X, y, _ = sample()
    model = GreedySurvivalTree(encoder=BinaryEncoder(n_thresholds=1)).fit(X, y)
    again = loads(model.to_json())
    assert again.encoder_.n_thresholds == 1
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


@pytest.mark.parametrize("rounded", [-1e-16, 0.0, 1e-16])
def test_a_loss_of_zero_is_saved_to_whichever_side_it_is_rounded(rounded):
    model = GreedySurvivalTree(**PAPERS).fit(np.eye(3), ([True, True, True], [1.0, 2.0, 3.0]))
    assert model.objective_value_ == pytest.approx(0, abs=1e-15)
    model.certificate_ = replace(model.certificate_, objective_value=rounded)
    assert loads(model.to_json()).objective_value_ == rounded


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs POSIX signals")
def test_an_interrupt_ends_a_fit_and_keeps_the_earlier_one():
    X, y, _ = sample()
    model = GreedySurvivalTree(criterion="logrank", encoder=None, max_depth=None).fit(X, y)
    before = model.predict(X)
    rng = np.random.default_rng(0)
    many = rng.normal(size=(100_000, 10))
    outcome = np.ones(len(many), dtype=bool), rng.exponential(size=len(many))
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        model.fit(many, outcome)
    timer.join()
    np.testing.assert_array_equal(model.predict(X), before)


def as_decimal(value):
    return Decimal(value.numerator) / Decimal(value.denominator)


def exact_loss(leaf, time, event, weight, prior):
    """Equation 20 of the paper with a prior, in fractions and with 60 digits."""
    weight = [Fraction(w) for w in weight]
    rows = range(len(weight))
    hazard, total = {}, Fraction(0)
    for t in sorted(set(time)):
        died = sum(weight[i] for i in rows if time[i] == t and event[i])
        total += died / sum(weight[i] for i in rows if time[i] >= t)
        hazard[t] = total or 1 / (sum(weight) + 1)
    with localcontext(Context(prec=60)):
        terms = [(weight[i], hazard[time[i]]) for i in rows if event[i]]
        for node in set(leaf):
            inside = [i for i in rows if leaf[i] == node]
            events = Fraction(prior) + sum(weight[i] for i in inside if event[i])
            expected = Fraction(prior) + sum(weight[i] * hazard[time[i]] for i in inside)
            terms += [(events, events / expected)] if events else []
        loss = -sum(as_decimal(factor) * as_decimal(value).ln() for factor, value in terms)
        return float(loss / as_decimal(sum(weight)))


@pytest.mark.parametrize("prior", [0, 0.5, 10, 1e6])
@pytest.mark.parametrize("unit", [1e-12, 1e-8, 1, 1e8])
def test_the_objective_is_exact_whatever_the_prior_and_the_unit_of_weights(unit, prior):
    rng = np.random.default_rng(0)
    X, time = rng.normal(size=(40, 3)), rng.integers(1, 30, 40).astype(float)
    event, weight = rng.random(40) < 0.7, unit * rng.uniform(0.5, 2, 40)
    model = GreedySurvivalTree(max_depth=3, prior=prior, min_events_leaf=None)
    model.fit(X, (event, time), sample_weight=weight)
    rows = (model.apply(X).tolist(), time.tolist(), event.tolist(), weight.tolist())
    np.testing.assert_allclose(model.objective_value_, exact_loss(*rows, prior), rtol=1e-12)
    assert verify(model, X, (event, time), sample_weight=weight).ok


@pytest.mark.parametrize("unit", [1e-12, 1e6])
def test_a_unit_of_weights_changes_no_tree_where_it_is_that_of_the_prior_too(unit):
    # A prior is a number of events, next to which light rows do not count.
    X, y, weight = sample()
    for prior in (0.0, 10.0):
        grower = GreedySurvivalTree(encoder=None, max_depth=3)
        tree = clone(grower).set_params(prior=prior).fit(X, y, weight)
        scaled = grower.set_params(prior=prior * unit).fit(X, y, weight * unit)
        np.testing.assert_array_equal(scaled.tree_.feature, tree.tree_.feature)
        np.testing.assert_array_equal(scaled.tree_.threshold, tree.tree_.threshold)
        assert scaled.objective_value_ == pytest.approx(tree.objective_value_, rel=1e-12)


def test_a_size_path_reads_the_rows_once():
    X, y, _ = sample()
    X = pd.DataFrame(X, columns=["a", "b", "c"]).assign(code=np.arange(120).astype(str))
    tree = GreedySurvivalTree(max_depth=2, encoder=BinaryEncoder(), teacher="auto")
    with pytest.warns(ColumnWarning) as caught:
        path = tree.size_path(X, y)
    assert len(path) > 2
    messages = [str(one.message) for one in caught]
    assert len(messages) == len(set(messages))
