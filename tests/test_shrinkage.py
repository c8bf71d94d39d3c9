"""Shrinkage along the path: properties of the predictions; nothing else changes."""

import copy
import pickle
from dataclasses import fields

import numpy as np
import pytest
import shrunk_plainly
from sklearn.base import clone

from bristlecone import (
    CostSensitiveTreeClassifier,
    DemographicParity,
    FairTreeClassifier,
    GreedySurvivalTree,
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
)
from bristlecone._model.registry import dumps, loads
from bristlecone._objectives.parity import RmstParity
from bristlecone.exceptions import InvalidParameterError, ModelFormatError
from bristlecone.export import export_dict, export_text
from bristlecone.report import html_report


def survival_rows(seed=0, n=80, entry=False):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4)) < 0.5
    time = np.ceil(rng.exponential(8.0, n) * np.where(X[:, 0], 1, 3))
    event = rng.random(n) < 0.7
    if not entry:
        return X, (event, time)
    y = np.empty(n, dtype=[("event", bool), ("time", float), ("entry", float)])
    y["event"], y["time"], y["entry"] = event, time, np.floor(time * rng.uniform(0, 0.9, n))
    return X, y


def labelled_rows(seed=0, n=80):
    rng = np.random.default_rng(seed)
    X = rng.random((n, 4)) < 0.5
    return X, np.where(rng.random(n) < 0.25, rng.integers(0, 2, n), X[:, 0] | (X[:, 1] & X[:, 2]))


def number_rows(seed=0, n=80):
    X, y = labelled_rows(seed, n)
    return X, y * 3.0 + np.random.default_rng(seed).normal(size=n)


def curves(model, X):
    """All predictions of a survival tree, with one row of numbers per row of X."""
    return np.column_stack(
        [
            model.predict(X),
            model.predict_survival_function(X, return_array=True),
            model.predict_cumulative_hazard_function(X, return_array=True),
            np.nan_to_num(model.predict_quantile(X, [0.2, 0.5]), posinf=1e6),
            model.predict_rmst(X),
        ]
    )


# Estimator with its parameters, rows, and all its predictions.
FREE = {"min_events_leaf": None, "prior": 0}
OWN, BRIER = {**FREE, "leaf_curve": "kaplan-meier"}, {**FREE, "objective": "brier"}
SURVIVAL = {
    "likelihood": (OptimalSurvivalTree, FREE),
    "likelihood, kaplan-meier": (OptimalSurvivalTree, OWN),
    "brier": (OptimalSurvivalTree, BRIER),
    "brier-optimal": (OptimalSurvivalTree, {**BRIER, "leaf_curve": "brier-optimal"}),
    "greedy": (GreedySurvivalTree, FREE),
    "greedy, kaplan-meier": (GreedySurvivalTree, OWN),
}
CLASSES = {
    "classes": (OptimalTreeClassifier, {}),
    "balanced": (OptimalTreeClassifier, {"objective": "balanced-accuracy"}),
    "mcc": (OptimalTreeClassifier, {"objective": "mcc"}),
    "costs": (CostSensitiveTreeClassifier, {"cost_matrix": [[0, 3], [1, 0]]}),
    "fair": (FairTreeClassifier, {"fairness": DemographicParity(0.2, sensitive_feature=3)}),
}
CASES = {
    **{name: (*case, survival_rows, curves) for name, case in SURVIVAL.items()},
    **{
        name: (*case, labelled_rows, lambda model, X: model.predict_proba(X))
        for name, case in CLASSES.items()
    },
    "numbers": (OptimalTreeRegressor, {}, number_rows, lambda model, X: model.predict(X)[:, None]),
}


@pytest.fixture(params=CASES)
def case(request):
    """A function of λ (and changes) that fits a tree, its rows, and all its predictions."""
    estimator, parameters, rows, predicted = CASES[request.param]
    X, y = rows()

    def fitted(shrinkage, weight=None, X=X, y=y, **more):
        options = {"max_depth": 2, "shrinkage": shrinkage, **parameters, **more}
        return estimator(**options).fit(X, y, weight)

    return fitted, X, y, predicted


def test_nothing_but_the_predictions_depends_on_it(case):
    fitted, X, _, predicted = case
    plain = fitted(0.0)
    for amount in (0.5, 10, 1e6):
        model = fitted(amount)
        assert model.shrinkage_ == amount
        for name in ("objective_value_", "lower_bound_", "status_", "classes_"):
            assert np.array_equal(getattr(model, name, None), getattr(plain, name, None)), name
        for name in ("children_left", "feature", "n_node_samples", "weighted_n_node_samples"):
            assert np.array_equal(getattr(model.tree_, name), getattr(plain.tree_, name)), name
        for one, other in zip(
            getattr(model, "leaf_statistics_", ()),
            getattr(plain, "leaf_statistics_", ()),
            strict=True,
        ):
            for field in fields(one):
                ours, theirs = getattr(one, field.name), getattr(other, field.name)
                if field.name == "follow_up":
                    ours, theirs = ours.rows(), theirs.rows()
                assert np.array_equal(ours, theirs), field.name
        for name in ("leaf_values_", "leaf_means_", "leaf_labels_"):
            assert np.array_equal(getattr(model, name, None), getattr(plain, name, None)), name
        if hasattr(model, "leaf_labels_"):
            assert np.array_equal(model.predict(X), plain.predict(X))
        assert not np.array_equal(predicted(model, X), predicted(plain, X))


def test_none_is_none_to_the_last_digit(case):
    fitted, X, _, predicted = case
    model, whole = fitted(0.0), fitted(0)
    assert np.array_equal(predicted(model, X), predicted(whole, X))
    leaf = model.tree_.leaf_index(model._rows(X))
    if hasattr(model, "predict_proba"):
        shares = model.leaf_values_ / model.leaf_values_.sum(axis=1, keepdims=True)
        assert np.array_equal(model.predict_proba(X), shares[leaf])
    elif hasattr(model, "leaf_means_"):
        assert np.array_equal(model.predict(X), model.leaf_means_[leaf])
    else:
        assert model.leaves_.shrunk is None
        theta = np.array([one.theta for one in model.leaf_statistics_])
        assert np.array_equal(model.leaves_.theta, theta)


@pytest.mark.parametrize("amount", [1e12, 1.7e308])
def test_without_end_every_leaf_is_the_root(case, amount):
    fitted, X, _, predicted = case
    root, model = fitted(amount, max_depth=0), fitted(amount)
    assert model.n_leaves_ > 1 and np.isfinite(predicted(model, X)).all()
    assert np.allclose(predicted(model, X), predicted(root, X), rtol=1e-9, atol=1e-9)


def test_more_draws_every_leaf_of_one_split_nearer_to_the_root(case):
    fitted, X, _, predicted = case
    points = slice(0, 1) if predicted is curves else slice(None)
    root = predicted(fitted(1e15, max_depth=0), X)[:, points]
    amounts = (0.1, 1, 5, 50, 1e4)
    steps = [predicted(fitted(amount, max_depth=1), X)[:, points] for amount in amounts]
    distances = np.array([np.abs(step - root) for step in steps])
    moving = distances[0] > 0
    assert moving.any()
    assert (np.diff(distances, axis=0)[:, moving] < 0).all()
    sides = np.sign(np.array(steps) - root)
    assert (sides[:, moving] == sides[0][moving]).all()


def test_integer_weights_are_repeated_rows(case):
    fitted, X, y, predicted = case
    times = np.random.default_rng(1).integers(0, 3, len(X))
    parts = tuple(np.repeat(part, times) for part in y) if isinstance(y, tuple) else None
    repeated = np.repeat(y, times) if parts is None else parts
    weighted = fitted(4.0, weight=times.astype(float))
    again = fitted(4.0, X=np.repeat(X, times, axis=0), y=repeated)
    assert np.array_equal(weighted.tree_.feature, again.tree_.feature)
    assert np.allclose(predicted(weighted, X), predicted(again, X), rtol=1e-9, atol=1e-12)


def test_the_order_of_the_rows_does_not_matter(case):
    fitted, X, y, predicted = case
    rng = np.random.default_rng(2)
    order, weight = rng.permutation(len(X)), rng.uniform(0.2, 2.0, len(X))
    other = tuple(part[order] for part in y) if isinstance(y, tuple) else y[order]
    model = fitted(3.0, weight=weight)
    again = fitted(3.0, weight=weight[order], X=X[order], y=other)
    if predicted is curves:
        assert np.array_equal(predicted(model, X), predicted(again, X))
    else:  # sums of weights per leaf depend on the order of the rows
        assert np.allclose(predicted(model, X), predicted(again, X), rtol=1e-12)


def test_what_is_set_later_changes_nothing_and_copies_and_files_keep_it(case):
    fitted, X, _, predicted = case
    model = fitted(3.0)
    expected, saved = predicted(model, X), dumps(model)
    model.set_params(shrinkage=50.0)
    others = [model, copy.deepcopy(model), pickle.loads(pickle.dumps(model)), loads(saved)]
    for other in others:
        assert other.shrinkage_ == 3.0
        assert np.array_equal(predicted(other, X), expected)
        assert dumps(other) == saved
        assert "adds 3 pseudo-" in " ".join(other.describe().split())
    assert "pseudo-" not in fitted(0.0).describe()
    assert clone(model).shrinkage == 50.0


def test_text_and_report_show_the_leaf_and_what_is_predicted(case):
    fitted, _, _, _ = case
    plain, model = fitted(0.0), fitted(3.0)
    text = export_text(model)
    for line, other in zip(text.splitlines(), export_text(plain).splitlines(), strict=True):
        if "[" in line:  # values of the leaf alone are unchanged
            word = "model median=" if "theta" in line and "(shrunk" not in line else "shrunk"
            assert word in line and word not in other
            head = other.partition(", theta")[0].partition(" (variance")[0]
            assert line.startswith(head)
    assert "shrunk" not in export_text(plain)
    assert html_report(model) != html_report(plain)


def test_the_leaf_facts_tell_both():
    X, y = survival_rows()
    model = OptimalSurvivalTree(max_depth=1, shrinkage=5.0).fit(X, y)
    facts = export_dict(model)["yes"]
    leaf = model.leaf_statistics_[0]
    assert facts["theta"] == leaf.theta != facts["shrunk_theta"]
    assert facts["shrunk_theta"] == model.predict(X)[model.apply(X) == facts["node"]][0]
    assert facts["median"] == leaf.curve.median
    page = html_report(model)
    assert f"<dt>relative hazard θ</dt><dd>{leaf.theta:.4g}</dd>" in page
    assert f"<dt>predicted θ</dt><dd>{facts['shrunk_theta']:.4g}</dd>" in page
    X, y = number_rows()
    model = OptimalTreeRegressor(max_depth=1, shrinkage=5.0).fit(X, y)
    facts = export_dict(model)["yes"]
    assert (facts["value"], facts["shrunk_value"]) == (
        model.leaf_means_[0],
        model.predict(X)[model.apply(X) == facts["node"]][0],
    )


@pytest.mark.parametrize("curve", ["proportional", "kaplan-meier"])
@pytest.mark.parametrize("weighted", [False, True])
def test_delayed_entry_counts_in_the_risk_sets(curve, weighted):
    X, y = survival_rows(3, entry=True)
    weight = np.random.default_rng(4).uniform(0.1, 3.0, len(X)) if weighted else None
    model = OptimalSurvivalTree(max_depth=3, shrinkage=2.5, leaf_curve=curve, **FREE)
    model.fit(X, y, weight)
    w = np.ones(len(X)) if weight is None else weight
    times = np.unique(y["time"])
    at_risk = (y["entry"][:, None] < times) & (times <= y["time"][:, None])
    died = y["event"][:, None] & (times == y["time"][:, None])
    baseline = (w @ died) / (w @ at_risk)
    total = at_risk @ baseline
    total = np.where(total > 0, total, 1 / (w.sum() + 1))
    for path in shrunk_plainly.paths(model, X):
        first = X[path[-1][:1]]
        theta = shrunk_plainly.mean(
            path,
            lambda rows: w[rows] @ y["event"][rows],
            lambda rows: w[rows] @ total[rows],
            2.5,
            above=1.0,
        )
        assert np.isclose(model.predict(first)[0], theta, rtol=1e-12)
        survival = np.exp(-theta * np.cumsum(baseline))
        if curve == "kaplan-meier":
            survival, _ = shrunk_plainly.kaplan_meier(
                path, y["time"], y["event"], y["entry"], w, times, 2.5
            )
        said = model.predict_survival_function(first, times=times)[0]
        assert np.allclose(said, survival, rtol=0, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_where_all_who_are_at_risk_have_died_nobody_is_left_whatever_the_weights(seed):
    rng = np.random.default_rng(seed)
    X = rng.random((12, 1)) < 0.5
    y = np.empty(12, dtype=[("event", bool), ("time", float), ("entry", float)])
    y["event"], y["entry"] = True, rng.integers(2, 6, 12)
    y["time"] = y["entry"] + rng.integers(1, 6, 12)
    # The first row dies before another one enters.
    y[0] = True, 1.0, 0.0
    parameters = {"max_depth": 1, "leaf_curve": "kaplan-meier", "shrinkage": 0.5, **FREE}
    model = OptimalSurvivalTree(**{**parameters, "encoder": "auto"})
    model.fit(X, y, rng.uniform(0.1, 3.0, 12))
    assert (model.predict_cumulative_hazard_function(X, times=[1.0]) == 1.0).all()
    assert (model.predict_survival_function(X, times=[1.0, 30.0]) == 0.0).all()


@pytest.mark.parametrize("estimator", [OptimalSurvivalTree, GreedySurvivalTree])
def test_a_curve_does_not_end_at_zero_with_the_last_row_of_its_leaf(estimator):
    X = np.array([[True]] * 4 + [[False]] * 4)
    y = np.array([True] * 6 + [False] * 2), np.array([1.0, 2, 3, 4, 3, 5, 8, 9])
    for amount, zero in ((0.0, True), (1.0, False)):
        model = estimator(max_depth=1, shrinkage=amount, **OWN).fit(X, y)
        survival = model.predict_survival_function(X[:1], times=[4.0, 9.0])[0]
        assert (survival == 0).all() == zero
        assert (np.diff(survival) < 0).all() == (not zero)  # the parent still has events


def test_brier_optimal_is_least_score_and_distance_to_the_parent():
    """The curve minimises the sum of the leaf's score and λ ∫ (S − S_p)² / y_max."""
    X, y = survival_rows(5)
    event, time = y
    model = OptimalSurvivalTree(
        objective="brier", leaf_curve="brier-optimal", max_depth=1, shrinkage=6.0
    ).fit(X, y)
    from bristlecone._leaves.brier import brier_score_of

    score = brier_score_of(time, event)
    everyone = np.zeros(len(time), dtype=np.int64)
    leaf = model.tree_.leaf_index(model._rows(X))
    (root,) = (
        OptimalSurvivalTree(objective="brier", leaf_curve="brier-optimal", max_depth=0)
        .fit(X, y)
        .predict_survival_function(X[:1], times=score.times)
    )
    A, B = (
        x[0]
        for x in score.leaf_terms(everyone[leaf == 0], 1, time[leaf == 0], event[leaf == 0], None)
    )

    def loss(S):
        own = S**2 * A + (1 - S) ** 2 * B
        return (score.share * (own + 6.0 * (S - root) ** 2)).sum()

    best = model.predict_survival_function(X[leaf == 0][:1], times=score.times)[0]
    rng = np.random.default_rng(0)
    for _ in range(200):
        other = np.minimum.accumulate(np.clip(best + rng.normal(0, 0.03, best.size), 0, 1))
        assert loss(other) >= loss(best)
    (unshrunk,) = (
        clone(model)
        .set_params(shrinkage=0.0)
        .fit(X, y)
        .predict_survival_function(X[leaf == 0][:1], times=score.times)
    )
    assert loss(best) < loss(unshrunk) and loss(best) < loss(root)


def test_auto_is_what_the_objective_says_and_stays_what_it_was():
    X, y = survival_rows()
    group = np.arange(len(X)) % 2
    for parameters, amount in (
        ({}, 0.0),
        ({"objective": "brier"}, 20.0),
        ({"objective": "brier", "fairness": RmstParity(100.0)}, 0.0),
    ):
        model = OptimalSurvivalTree(max_depth=1, shrinkage="auto", **parameters)
        model.fit(X, y, sensitive_features=group if "fairness" in parameters else None)
        assert model.shrinkage_ == amount == loads(dumps(model)).shrinkage_
    assert GreedySurvivalTree(shrinkage="auto").fit(X, y).shrinkage_ == 0.0


@pytest.mark.parametrize("value", [-0.1, np.nan, np.inf, 10**400, None, "much", True, [1.0]])
def test_bad_values_name_the_parameter(case, value):
    with pytest.raises(InvalidParameterError, match=r"^shrinkage must be"):
        case[0](value)


def test_auto_is_of_survival_trees_only():
    with pytest.raises(InvalidParameterError, match=r"^shrinkage must be a finite number"):
        OptimalTreeRegressor(shrinkage="auto").fit(*number_rows())


def test_fair_curves_are_not_shrunk():
    X, y = survival_rows()
    model = OptimalSurvivalTree(fairness=RmstParity(1.0), shrinkage=1.0)
    with pytest.raises(
        InvalidParameterError, match=r"^shrinkage must be 0 or 'auto' with fairness"
    ):
        model.fit(X, y, sensitive_features=np.arange(len(X)) % 2)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (('"shrinkage":3.0,"shrunk"', '"shrinkage":4.0,"shrunk"'), r"leaves\.shrinkage is not"),
        (('"hazard":[[', '"hazard":[[1.5,'), r"leaves\.shrunk\.hazard\[0\]"),
        (('"hazard":[[0.', '"hazard":[[7.'), r"leaves\.shrunk\.hazard is outside"),
    ],
)
def test_a_file_that_was_changed_is_refused_by_field(change, named):
    X, y = survival_rows()
    model = OptimalSurvivalTree(objective="brier", max_depth=1, shrinkage=3.0)
    text = dumps(model.fit(X, y, sample_weight=1 + np.arange(len(X)) % 3))
    assert change[0] in text
    with pytest.raises(ModelFormatError, match=named):
        loads(text.replace(*change))


def test_trees_of_a_path_share_leaves_and_tell_what_separate_fits_do():
    X, y = survival_rows(6, n=200, entry=True)
    weight = np.random.default_rng(7).uniform(0.5, 2.0, len(X))
    path = OptimalSurvivalTree(max_depth=3, shrinkage=2.0).size_path(X, y, weight)
    assert len(path) > 4
    for model in path:
        again = OptimalSurvivalTree(
            max_depth=3, max_leaf_nodes=model.max_leaf_nodes, shrinkage=2.0
        ).fit(X, y, weight)
        assert np.array_equal(again.tree_.feature, model.tree_.feature)
        assert (
            dumps(again).partition('"tree"')[2].partition('"certificate"')[0]
            == dumps(model).partition('"tree"')[2].partition('"certificate"')[0]
        )
