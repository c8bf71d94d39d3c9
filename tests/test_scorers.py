"""Scorers: metrics with the censoring of the training rows, in scikit-learn's model selection."""

import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.inspection import permutation_importance
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import (
    GridSearchCV,
    KFold,
    RandomizedSearchCV,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from survival_rows import sample

import bristlecone
from bristlecone import (
    GreedySurvivalTree,
    OptimalSurvivalTree,
    OptimalTreeRegressor,
    SoftSurvivalTree,
    metrics,
)
from bristlecone._model.registry import dumps, loads
from bristlecone.curves import censoring_survival, nelson_aalen
from bristlecone.exceptions import InvalidParameterError
from bristlecone.metrics._scorers import SCORERS

FREE = {"prior": 0, "shrinkage": 0, "min_events_leaf": None}


@pytest.fixture(scope="module")
def halves():
    X, y = sample(200)
    return X[:120], y[:120], X[120:], y[120:]


@pytest.fixture(scope="module")
def tree(halves):
    X, y, *_ = halves
    return OptimalSurvivalTree(max_depth=2).fit(X, y)


def test_scorers_are_the_metrics_with_the_training_rows(halves, tree):
    _, y, Z, z = halves
    risk, curves = tree.predict(Z), tree.predict_survival_function(Z)
    times = np.unique(z["months"][z["dead"]])
    times = times[times < min(z["months"].max(), y["months"].max())]
    end = float(min(z["months"].max(), y["months"].max()))
    expected = {
        "concordance": metrics.concordance_index_censored(z, risk).cindex,
        "uno": metrics.concordance_index_ipcw(y, z, risk, tau=np.nextafter(end, 99)).cindex,
        "ibs": -metrics.integrated_brier_score(y, z, curves, method="step", limits=(0.0, end)),
        "auc": metrics.cumulative_dynamic_auc(y, z, risk, times)[1],
        "likelihood": tree.log_likelihood(Z, z).mean(),
    }
    # Calibration is compared in test_foreign_models.py.
    scorers = {name: scorer for name, scorer in SCORERS.items() if name in expected}
    assert {name: scorer(tree, Z, z) for name, scorer in scorers.items()} == pytest.approx(
        expected, rel=1e-12
    )


def test_scorers_agree_with_those_of_scikit_survival(halves):
    peers = pytest.importorskip("sksurv.metrics")
    X, y, Z, z = halves
    z = z[z["months"] < y["months"].max()]
    Z = Z[: len(z)]
    times = np.quantile(z["months"], [0.2, 0.4, 0.6, 0.8])
    model = OptimalSurvivalTree(max_depth=2)
    fitted = OptimalSurvivalTree(max_depth=2).fit(X, y)
    for wrap, scorer, ours, theirs in [
        (peers.as_concordance_index_ipcw_scorer, metrics.uno_scorer, "tau", times[-1]),
        (peers.as_integrated_brier_score_scorer, metrics.ibs_scorer, "times", times),
        (peers.as_cumulative_dynamic_auc_scorer, metrics.auc_scorer, "times", times),
    ]:
        expected = wrap(model, theirs).fit(X, y).score(Z, z)
        assert scorer(fitted, Z, z, **{ours: theirs}) == pytest.approx(expected, rel=1e-9)


def test_concordance_also_scores_pipelines_and_models_of_scikit_survival(halves):
    linear = pytest.importorskip("sksurv.linear_model")
    X, y, Z, z = halves
    pipeline = make_pipeline(FunctionTransformer(), linear.CoxPHSurvivalAnalysis()).fit(X, y)
    assert metrics.concordance_scorer(pipeline, Z, z) == pytest.approx(pipeline.score(Z, z))


@pytest.mark.parametrize("name", SCORERS)
def test_follow_up_beyond_the_training_rows_ends_the_window_and_raises_nothing(name, tree, halves):
    _, y, Z, z = halves
    late = z.copy()
    late["months"][:3] = y["months"].max() * np.array([1.5, 2.0, 3.0])
    late["dead"][:3] = True, False, True
    assert np.isfinite(SCORERS[name](tree, Z, late))


def test_events_after_the_training_rows_begin_no_pair_of_uno(tree, halves):
    _, y, Z, z = halves
    late = z.copy()
    last = y["months"].max()
    late["months"][:2], late["dead"][:2] = (last + 1, last + 2), True
    expected = metrics.concordance_index_ipcw(y, late, tree.predict(Z), tau=last + 0.5).cindex
    assert metrics.uno_scorer(tree, Z, late) == expected
    assert metrics.uno_scorer(tree, Z, late, tau=last + 5) == expected


def test_weights_of_zero_end_the_window_too():
    # Only the last training row is censored, so G is 0 from time 9 on.
    X = np.array([[0.0], [0.0], [1.0], [1.0], [0.0], [1.0]])
    y = bristlecone.outcome([1, 1, 1, 1, 0, 0], [1, 2, 5, 6, 3, 9])
    tree = OptimalSurvivalTree(max_depth=1, **FREE).fit(X, y)
    z = bristlecone.outcome([1, 1, 1, 0, 1, 0], [1, 2, 6, 7, 9, 12])
    assert metrics.uno_scorer(tree, X, z) == (
        metrics.concordance_index_ipcw(y, z, tree.predict(X), tau=9).cindex
    )
    assert (
        metrics.auc_scorer(tree, X, z)
        == (metrics.cumulative_dynamic_auc(y, z, tree.predict(X), [1, 2, 6])[1])
    )


@pytest.mark.parametrize("seed", range(3))
def test_censoring_of_late_entries_is_that_of_the_rows(seed):
    X, y = sample(150, seed)
    late = np.random.default_rng(seed).uniform(0, 1, 150) * (y["months"] - 0.5)
    y = bristlecone.outcome(y["dead"], y["months"], entry=np.maximum(late, 0))
    tree = OptimalSurvivalTree(max_depth=2).fit(X[:100], y[:100])
    z = bristlecone.outcome(y["event"][100:], y["time"][100:])
    own = censoring_survival(y[:100])
    end = own.x[own.y <= 0].min(initial=np.nextafter(own.x[-1], np.inf))
    expected = metrics.concordance_index_ipcw(y[:100], z, tree.predict(X[100:]), end).cindex
    assert metrics.uno_scorer(tree, X[100:], z) == pytest.approx(expected, rel=1e-12)
    # Rows to score may enter late if the metric is defined for them; otherwise there is an error.
    assert metrics.concordance_scorer(tree, X[100:], y[100:]) == tree.score(X[100:], y[100:])
    assert np.isfinite(metrics.likelihood_scorer(tree, X[100:], y[100:]))
    for name in ("uno", "ibs", "auc"):
        with pytest.raises(ValueError, match="delayed entry, for which censoring weights"):
            SCORERS[name](tree, X[100:], y[100:])


@pytest.mark.parametrize("name", SCORERS)
def test_integer_weights_are_repetition(name, tree, halves):
    *_, Z, z = halves
    weight = np.random.default_rng(0).integers(0, 3, len(z))
    many = np.repeat(np.arange(len(z)), weight)
    repeated = SCORERS[name](tree, Z.iloc[many], z[many])
    assert SCORERS[name](tree, Z, z, weight) == pytest.approx(repeated, rel=1e-12)
    assert SCORERS[name](tree, Z, z, sample_weight=weight) == SCORERS[name](tree, Z, z, weight)


def test_training_weights_do_not_change_the_censoring(halves):
    X, y, Z, z = halves
    weight = np.random.default_rng(0).uniform(0.5, 2, len(y))
    tree = OptimalSurvivalTree(max_depth=2).fit(X, y, weight)
    expected = metrics.concordance_index_ipcw(
        y, z, tree.predict(Z), np.nextafter(y["months"].max(), 99)
    )
    assert metrics.uno_scorer(tree, Z, z) == expected.cindex


def test_a_saved_tree_has_the_same_scores(tree, halves):
    *_, Z, z = halves
    saved = loads(dumps(tree))
    for scorer in SCORERS.values():
        assert scorer(saved, Z, z) == pytest.approx(scorer(tree, Z, z), rel=1e-12)


# --- likelihood ---


@pytest.mark.parametrize("weighted", [False, True])
def test_likelihood_of_the_training_rows_is_minus_the_objective(weighted):
    X, y = sample(150)
    y["months"][:5], y["dead"][:5] = 0.0, False  # before the first event
    weight = np.random.default_rng(0).uniform(0.5, 2.0, 150) if weighted else None
    for parameters in ({}, {"leaf_penalty": 0.01}):
        tree = OptimalSurvivalTree(max_depth=2, **FREE, **parameters).fit(X, y, weight)
        loss = tree.objective_value_ - tree.n_leaves_ * parameters.get("leaf_penalty", 0)
        assert -metrics.likelihood_scorer(tree, X, y, weight) == pytest.approx(loss, rel=1e-12)


def test_likelihood_of_late_entries_is_minus_the_objective():
    X, y = sample(150)
    entry = np.where(y["months"] > 4, np.random.default_rng(0).integers(0, 4, 150), 0)
    y = bristlecone.outcome(y["dead"], y["months"], entry=entry)
    tree = OptimalSurvivalTree(max_depth=2, prior=0, min_events_leaf=1).fit(X, y)
    assert -metrics.likelihood_scorer(tree, X, y) == pytest.approx(tree.objective_value_, rel=1e-12)


@pytest.mark.parametrize("leaf_curve", ["proportional", "kaplan-meier"])
def test_likelihood_of_other_rows_follows_its_definition(halves, leaf_curve):
    X, y, Z, z = halves
    z = z.copy()
    z["months"][0], z["dead"][0] = 0.0, True  # before any training event
    tree = OptimalSurvivalTree(max_depth=2, leaf_curve=leaf_curve).fit(X, y)
    baseline, leaf = nelson_aalen(y), tree.apply(Z)
    theta = dict(zip(tree.tree_.leaves, [s.theta for s in tree.leaf_statistics_], strict=True))
    own = {node: nelson_aalen(y[tree.apply(X) == node]) for node in tree.tree_.leaves}
    for i in range(len(z)):
        if leaf_curve == "proportional":
            hazard = theta[leaf[i]] * (baseline(z["months"][i]) or 1 / (len(y) + 1))
        else:
            hazard = own[leaf[i]](z["months"][i]) or 1 / (len(y) + 1)
        expected = z["dead"][i] * (1 + np.log(hazard)) - hazard
        found = tree.log_likelihood(Z.iloc[[i]], z[[i]])
        np.testing.assert_allclose(found, [expected], rtol=1e-12)


def test_likelihood_of_soft_trees_is_that_of_the_density(halves):
    X, y, Z, z = halves
    tree = SoftSurvivalTree(depth=1, n_restarts=1, random_state=0).fit(X, y)
    step = 1e-5
    found = tree.log_likelihood(Z, z)
    for i in range(0, len(z), 7):
        (hazard,) = tree.predict_cumulative_hazard_function(Z.iloc[[i]])
        t = z["months"][i]
        slope = (hazard(t * (1 + step)) - hazard(t * (1 - step))) / (2 * step * t)
        expected = z["dead"][i] * np.log(slope) - hazard(t)
        assert found[i] == pytest.approx(expected, rel=1e-6)
    alone = SoftSurvivalTree(depth=0, l2=0, n_restarts=1, random_state=0).fit(X, y)
    assert -metrics.likelihood_scorer(alone, X, y) == pytest.approx(
        alone.objective_value_, rel=1e-9
    )
    years = z.copy()
    years["months"] /= 12
    yearly = y.copy()
    yearly["months"] /= 12
    other = SoftSurvivalTree(depth=0, l2=0, n_restarts=1, random_state=0).fit(X, yearly)
    shift = np.log(12) * z["dead"].mean()
    expected = metrics.likelihood_scorer(alone, Z, z) + shift
    assert metrics.likelihood_scorer(other, Z, years) == pytest.approx(expected, rel=1e-6)


def test_every_scorer_takes_soft_trees(halves):
    X, y, Z, z = halves
    tree = SoftSurvivalTree(depth=1, n_restarts=1, random_state=0).fit(X, y)
    found = {name: scorer(tree, Z, z) for name, scorer in SCORERS.items()}
    assert found["concordance"] == tree.score(Z, z)
    # Smooth curves, on a fine grid.
    end = float(min(z["months"].max(), y["months"].max()))
    grid = np.linspace(0, end, 5001)
    curves = tree.predict_survival_function(Z, times=(grid[1:] + grid[:-1]) / 2)
    fine = metrics.integrated_brier_score(y, z, curves, grid[:-1], method="step", limits=(0.0, end))
    assert found["ibs"] == pytest.approx(-fine, rel=1e-5)


# --- model selection ---


def test_cross_validation_takes_several_at_once_without_a_warning():
    X, y = sample(200)
    found = cross_validate(
        OptimalSurvivalTree(max_depth=2),
        X,
        y,
        cv=KFold(4, shuffle=True, random_state=0),
        scoring=SCORERS,
        error_score="raise",
    )
    for name in SCORERS:
        assert np.isfinite(found[f"test_{name}"]).all()
    alone = cross_val_score(
        OptimalSurvivalTree(max_depth=2), X, y, cv=KFold(4, shuffle=True, random_state=0)
    )
    np.testing.assert_array_equal(found["test_concordance"], alone)


def test_options_are_fixed_by_partial():
    X, y = sample(200)
    scorer = partial(metrics.uno_scorer, tau=10.0)
    tree, folds = OptimalSurvivalTree(max_depth=1), list(KFold(3).split(X))
    found = cross_val_score(tree, X, y, cv=folds, scoring=scorer, error_score="raise")
    for score, (train, test) in zip(found, folds, strict=True):
        risk = tree.fit(X.iloc[train], y[train]).predict(X.iloc[test])
        expected = metrics.concordance_index_ipcw(y[train], y[test], risk, tau=10.0)
        assert score == pytest.approx(expected.cindex, rel=1e-12)


@pytest.mark.parametrize("search", [GridSearchCV, RandomizedSearchCV])
def test_searches_take_a_scorer_and_can_be_nested(search):
    X, y = sample(150)
    options = {"n_iter": 2, "random_state": 0} if search is RandomizedSearchCV else {}
    inner = search(
        OptimalSurvivalTree(),
        {"max_depth": [1, 2]},
        scoring=metrics.ibs_scorer,
        cv=3,
        error_score="raise",
        **options,
    )
    scores = cross_val_score(inner, X, y, cv=3, scoring=metrics.uno_scorer, error_score="raise")
    assert np.isfinite(scores).all()
    inner.fit(X, y)
    assert inner.score(X, y) == metrics.ibs_scorer(inner.best_estimator_, X, y)
    assert metrics.ibs_scorer(inner, X, y) == inner.score(X, y)


def test_pipelines_are_scored_as_their_tree():
    X, y = sample(150)
    pipeline = make_pipeline(FunctionTransformer(np.asarray), OptimalSurvivalTree(max_depth=1))
    tree = OptimalSurvivalTree(max_depth=1).fit(np.asarray(X), y)
    for scorer in SCORERS.values():
        assert scorer(pipeline.fit(X, y), X, y) == scorer(tree, np.asarray(X), y)
        assert scorer(make_pipeline(tree), np.asarray(X), y) == scorer(tree, np.asarray(X), y)


def test_permutation_importance_is_by_a_scorer_and_weights():
    X, y = sample(150)
    weight = np.random.default_rng(0).uniform(0.5, 2, 150)
    tree = OptimalSurvivalTree(max_depth=1, max_leaf_nodes=2).fit(X, y)
    found = permutation_importance(
        tree, X, y, scoring=metrics.uno_scorer, n_repeats=3, random_state=0, sample_weight=weight
    )
    used = [name in tree.features_used_ for name in X.columns]
    assert (found.importances_mean[used] > 0).all()
    assert (found.importances_mean[np.logical_not(used)] == 0).all()


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.parametrize("name", ["sample_weight", "exposure"])
def test_metadata_routing_brings_the_weights_to_the_scorer(routing, name):
    X, y = sample(150)
    weight = np.random.default_rng(0).integers(0, 3, 150).astype(float)
    tree = OptimalSurvivalTree(max_depth=2).set_fit_request(sample_weight=False)
    folds = list(KFold(3).split(X))
    wish = True if name == "sample_weight" else name
    for scorer in SCORERS.values():
        asking = scorer.set_score_request(sample_weight=wish)
        assert scorer.request is None
        found = cross_val_score(
            tree, X, y, cv=folds, scoring=asking, params={name: weight}, error_score="raise"
        )
        expected = [
            scorer(
                OptimalSurvivalTree(max_depth=2).fit(X.iloc[a], y[a]), X.iloc[b], y[b], weight[b]
            )
            for a, b in folds
        ]
        np.testing.assert_array_equal(found, expected)
        mean = cross_validate(
            tree, X, y, cv=folds, scoring={"a": asking}, params={name: weight}, error_score="raise"
        )
        np.testing.assert_array_equal(mean["test_a"], expected)


def test_weights_that_no_scorer_has_decided_about_are_refused(routing):
    X, y = sample(60)
    tree = OptimalSurvivalTree(max_depth=1).set_fit_request(sample_weight=True)
    with pytest.raises(sklearn.exceptions.UnsetMetadataPassedError, match="set_score_request"):
        cross_val_score(
            tree, X, y, scoring=metrics.uno_scorer, params={"sample_weight": np.ones(60)}
        )
    quiet = metrics.uno_scorer.set_score_request(sample_weight=False)
    cross_val_score(tree, X, y, cv=3, scoring=quiet, params={"sample_weight": np.ones(60)})


@pytest.mark.parametrize("scorer", SCORERS.values(), ids=SCORERS)
def test_scorers_are_pickled_and_cloned(scorer):
    assert pickle.loads(pickle.dumps(scorer)) is scorer
    asking = pickle.loads(pickle.dumps(scorer.set_score_request(sample_weight="w")))
    assert (asking.request, asking.function) == ("w", scorer.function)
    assert sklearn.clone(GridSearchCV(OptimalSurvivalTree(), {}, scoring=scorer)).scoring is scorer
    assert repr(scorer) == f"bristlecone.metrics.{scorer.__name__}"


# --- errors ---


@pytest.mark.parametrize("name", [name for name in SCORERS if name != "concordance"])
def test_what_is_no_survival_tree_is_refused(name, halves):
    X, y, *_ = halves
    message = f"{name}_scorer needs a fitted survival model; got"
    others = LinearRegression().fit(X, y["months"]), OptimalTreeRegressor().fit(X, y["months"])
    for other in others:
        with pytest.raises(TypeError, match=f"{message} an? {type(other).__name__}"):
            SCORERS[name](other, X, y)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        SCORERS[name](GreedySurvivalTree(), X, y)


def test_a_window_without_times_is_refused(tree, halves):
    *_, Z, z = halves
    with pytest.raises(ValueError, match="fewer than two of times are within the follow-up"):
        metrics.ibs_scorer(tree, Z, z, times=[1e6, 2e6])
    with pytest.raises(ValueError, match="the AUC is not defined at any time"):
        metrics.auc_scorer(tree, Z, z, times=[1e6])
    censored = bristlecone.outcome(np.zeros(len(z), bool), z["months"])
    with pytest.raises(ValueError, match="the AUC is not defined at any time"):
        metrics.auc_scorer(tree, Z, censored)


def test_rows_are_taken_in_every_form(tree, halves):
    *_, Z, z = halves
    frame = pd.DataFrame({"event": z["dead"], "time": z["months"]})
    for scorer in SCORERS.values():
        assert scorer(tree, Z, frame) == scorer(tree, Z, z)
    with pytest.raises(ValueError, match="expected a structured array"):
        metrics.concordance_scorer(OptimalTreeRegressor().fit(Z, z["months"]), Z, z["months"])


@pytest.mark.parametrize("name", SCORERS)
def test_rows_of_x_and_y_must_match(name, tree, halves):
    X, y, Z, z = halves
    outcomes = pd.DataFrame({"event": z["dead"], "time": z["months"]}, index=Z.index)
    linear = pytest.importorskip("sksurv.linear_model")
    cox = linear.CoxPHSurvivalAnalysis(alpha=1.0).fit(X, y)
    more = {} if name == "concordance" else {"survival_train": y}
    for score in (partial(SCORERS[name], tree), partial(SCORERS[name], cox, **more)):
        with pytest.raises(ValueError, match="X and y have the same index in another order"):
            score(Z, outcomes[::-1])
        with pytest.raises(ValueError, match=r"\b80\b.*\b79\b|\b79\b.*\b80\b"):
            score(Z, z[:-1])


def test_tau_is_a_number(tree, halves):
    *_, Z, z = halves
    with pytest.raises(InvalidParameterError, match="tau must be a number"):
        metrics.uno_scorer(tree, Z, z, tau="late")
