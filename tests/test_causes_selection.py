"""Competing risks: scorers, folds that lack a cause, and files with thinned curves."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from pace import slow_but
from sklearn.model_selection import cross_val_score
from test_competing_risks import study, weights

from bristlecone import CompetingRisksTree, OptimalSurvivalTree, load_model, save_model
from bristlecone.exceptions import InvalidParameterError, ModelFormatError
from bristlecone.metrics import (
    auc_scorer,
    brier_score_cause,
    calibration_scorer,
    concordance_index_cause,
    concordance_scorer,
    ibs_scorer,
    likelihood_scorer,
    uno_scorer,
)
from bristlecone.trust import stability, verify
from bristlecone.tune import TreeSizeCV, evaluate

TRAIN, TEST = slice(0, 150), slice(150, None)


def untied(n=250, **options):
    X, y = study(n, **options)
    y["time"] += np.random.default_rng(3).uniform(0, 0.04, n)
    return X, y


@pytest.mark.parametrize("scorer", [ibs_scorer, likelihood_scorer])
@pytest.mark.parametrize("weighted", [False, True])
def test_with_one_cause_scores_are_those_of_the_survival_tree(scorer, weighted):
    X, y = untied()
    y["event"] = y["event"].clip(upper=1)
    weight = weights(250)[TEST] if weighted else None
    tree = CompetingRisksTree(max_depth=2, leaf_curve="proportional").fit(X[TRAIN], y[TRAIN])
    other = OptimalSurvivalTree(max_depth=2).fit(X[TRAIN], y[TRAIN])
    options = [{}] if scorer is likelihood_scorer else [{}, {"times": [0.1, 0.4, 0.9]}]
    for more in options:
        ours = scorer(tree, X[TEST], y[TEST], weight, **more)
        assert ours == pytest.approx(scorer(other, X[TEST], y[TEST], weight, **more), rel=1e-12)


@pytest.mark.parametrize("curve", ["aalen-johansen", "proportional"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_integrated_brier_score_is_the_mean_over_time(curve, weighted):
    X, y = study(250)
    known, held = y[TRAIN], y[TEST]
    weight = weights(250)[TEST] if weighted else None
    tree = CompetingRisksTree(max_depth=2, leaf_curve=curve).fit(X[TRAIN], known)
    end = min(known["time"].max(), held["time"].max())
    at = np.unique([0.0, *known["time"], *held["time"]])
    at = at[at < end]
    incidence = tree.predict_cumulative_incidence(X[TEST], 2, times=at)
    scores = brier_score_cause(known, held, incidence, at, 2, sample_weight=weight)
    expected = scores @ np.diff(at, append=end) / end
    found = ibs_scorer(tree, X[TEST], held, weight, cause=2)
    assert found == pytest.approx(-expected, rel=1e-12)
    given = ibs_scorer(tree, X[TEST], held, weight, cause=2, survival_train=known)
    assert given == pytest.approx(found, rel=1e-12)
    assert found != pytest.approx(ibs_scorer(tree, X[TEST], held, weight), rel=1e-3)


def test_scores_of_training_rows_are_the_objective():
    X, y = study(250)
    tree = CompetingRisksTree(max_depth=2, prior=0).fit(X, y, weights(250))
    assert likelihood_scorer(tree, X, y, weights(250)) == pytest.approx(
        -tree.objective_value_, rel=1e-12
    )
    each = [tree.log_likelihood(X, y, cause) for cause in (1, 2)]
    np.testing.assert_allclose(sum(each), tree.log_likelihood(X, y), rtol=1e-12)
    assert likelihood_scorer(tree, X, y, cause=2) == pytest.approx(each[1].mean(), rel=1e-12)


def test_the_likelihood_is_that_of_its_definition_with_delayed_entry():
    X, y = study(120, entry=True)
    tree = CompetingRisksTree(max_depth=1).fit(X, y)
    entry, time, cause = (y[name].to_numpy() for name in ("entry", "time", "event"))
    expected = np.zeros(len(y))
    for k in (1, 2):
        hazard = np.zeros(len(y))
        for u in np.unique(time[cause == k]):
            at_risk = (entry < u) & (u <= time)
            hazard[at_risk] += ((cause == k) & (time == u)).sum() / at_risk.sum()
        theta = tree.predict(X, k)
        hazard = theta * np.where(hazard > 0, hazard, 1 / (len(y) + 1))
        expected += np.where(cause == k, 1 + np.log(hazard), 0.0) - hazard
    np.testing.assert_allclose(tree.log_likelihood(X, y), expected, rtol=1e-9)


def test_scorers_take_a_cause():
    X, y = study()
    tree = CompetingRisksTree(max_depth=2).fit(X, y)
    assert concordance_scorer(tree, X, y) == tree.score(X, y)
    second = concordance_index_cause(y, tree.predict(X, 2), 2)
    assert concordance_scorer(tree, X, y, cause=2) == second != tree.score(X, y)
    outcomes = np.array(
        list(zip(y["event"], y["time"], strict=True)), dtype=[("event", int), ("time", float)]
    )
    scorer = partial(concordance_scorer, cause=2)
    scores = cross_val_score(CompetingRisksTree(max_depth=1), X, outcomes, cv=3, scoring=scorer)
    assert np.isfinite(scores).all()


def test_scorers_say_what_they_cannot_score():
    X, y = study()
    tree = CompetingRisksTree(max_depth=1).fit(X, y)
    for scorer in (uno_scorer, auc_scorer, calibration_scorer):
        with pytest.raises(TypeError, match=r"not defined for a CompetingRisksTree.*ibs"):
            scorer(tree, X, y)
    single = y.assign(event=y["event"].clip(upper=1))
    other = OptimalSurvivalTree(max_depth=1).fit(X, single)
    for scorer in (concordance_scorer, ibs_scorer, likelihood_scorer):
        with pytest.raises(TypeError, match="cause=2 needs a CompetingRisksTree"):
            scorer(other, X, single, cause=2)
        with pytest.raises(InvalidParameterError, match=r"cause is 3.*2 causes"):
            scorer(tree, X, y, cause=3)
    late = y.assign(entry=y["time"] / 2)
    with pytest.raises(ValueError, match=r"delayed entry.*likelihood"):
        ibs_scorer(tree, X, late)
    with pytest.raises(ValueError, match=r"cause 9 in row 4, but the tree was fitted to 2"):
        tree.log_likelihood(X, y.assign(event=np.where(np.arange(len(y)) == 4, 9, y["event"])))
    with pytest.raises(ValueError, match="150 rows but y has 149"):
        tree.log_likelihood(X, y[:149])


@pytest.mark.parametrize("scoring", ["concordance", "ibs", "likelihood"])
def test_the_size_is_chosen_by_scores_of_causes(scoring):
    X, y = study()
    search = TreeSizeCV(CompetingRisksTree(max_depth=2), cv=3, scoring=scoring).fit(X, y)
    means = search.cv_results_["mean_test_score"]
    assert search.best_score_ == means.max() > means[0]
    times = [0.5, 1.0]
    np.testing.assert_array_equal(
        search.predict_cumulative_incidence(X, 2, times=times),
        search.best_estimator_.predict_cumulative_incidence(X, 2, times=times),
    )


def rare():
    """Rows with three causes; the second has only one event."""
    X, y = study(n_causes=3)
    rows = np.flatnonzero(y["event"] == 2)
    y.loc[rows[1:], "event"] = 0
    return X, y, rows[0]


@pytest.mark.parametrize("cause_weights", slow_but({None}, [None, (1.0, 2.0, 0.5)]))
def test_folds_may_lack_a_cause(cause_weights):
    X, y, only = rare()
    tree = CompetingRisksTree(max_depth=2, cause_weights=cause_weights)
    metrics = {
        "first": "concordance",
        "third": partial(concordance_scorer, cause=3),
        "brier": partial(ibs_scorer, cause=2),
        "likelihood": "likelihood",
    }
    search = TreeSizeCV(tree, cv=3, scoring=metrics).fit(X, y)
    assert search.best_estimator_.n_causes_ == 3
    assert search.best_estimator_.n_causes is None
    table = evaluate({"tree": tree, "search": search}, X, y, cv=3, scoring=metrics)
    assert np.isfinite(table[["mean", "split0", "split1", "split2"]]).all(axis=None)
    # The fold without the only event of a cause gives the tree with three declared causes.
    folds = [(np.delete(np.arange(len(y)), only), np.array([only, *range(20)]))]
    found = evaluate(tree, X, y, cv=folds, scoring="likelihood")["mean"].iloc[0]
    again = tree.set_params(n_causes=3).fit(X.drop(index=only), y.drop(index=only))
    assert found == likelihood_scorer(again, X.iloc[folds[0][1]], y.iloc[folds[0][1]])
    assert stability(tree.fit(X, y), X, y, n_resamples=10, random_state=0).n_resamples == 10


def test_a_gap_in_all_rows_is_an_error_in_cross_validation():
    X, y, only = rare()
    y.loc[only, "event"] = 0
    for run in (
        TreeSizeCV(CompetingRisksTree(), cv=3).fit,
        partial(evaluate, CompetingRisksTree()),
    ):
        with pytest.raises(ValueError, match=r"no event of cause 2.*n_causes"):
            run(X, y)


@pytest.mark.parametrize("curve", ["aalen-johansen", "proportional"])
@pytest.mark.parametrize("prior", [0, 10])
@pytest.mark.parametrize("entry", [False, True])
def test_a_cause_without_an_event_changes_nothing_else(curve, prior, entry, tmp_path):
    X, y = study(n_causes=3, entry=entry)
    y.loc[y["event"] == 2, "event"] = 0
    common = {"max_depth": 2, "leaf_curve": curve, "prior": prior}
    tree = CompetingRisksTree(n_causes=4, **common).fit(X, y)
    near = y.assign(event=np.where(y["event"] == 3, 2, y["event"]))
    other = CompetingRisksTree(**common).fit(X, near)
    assert tree.n_causes_ == 4
    assert tree.objective_value_ == other.objective_value_
    assert tree.splits_ == other.splits_
    for ours, theirs in ((1, 1), (3, 2)):
        np.testing.assert_array_equal(tree.predict(X, ours), other.predict(X, theirs))
        np.testing.assert_array_equal(
            tree.predict_cumulative_incidence(X, ours),
            other.predict_cumulative_incidence(X, theirs),
        )
    for absent in (2, 4):
        assert (tree.predict(X, absent) == 1).all()
        assert (tree.predict_cumulative_incidence(X, absent) == 0).all()
        if not entry:
            assert tree.score(X, y.assign(event=absent), cause=absent) == 0.5
    assert verify(tree, X, y).ok
    save_model(tree, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(again.theta_, tree.theta_)
    assert again.n_causes == 4
    text = tree.to_json().replace('"n_causes":4', '"n_causes":null')
    with pytest.raises(ModelFormatError, match=r"no event|event_times is empty"):
        CompetingRisksTree.from_json(text)


def test_wrong_numbers_of_causes_are_named():
    X, y = study(n_causes=3)
    row = int(np.argmax(y["event"] > 2))
    with pytest.raises(ValueError, match=f"cause 3 in row {row}, but n_causes is 2"):
        CompetingRisksTree(n_causes=2).fit(X, y)
    with pytest.raises(InvalidParameterError, match="3 values, but the number of causes is 4"):
        CompetingRisksTree(n_causes=4, cause_weights=[1, 1, 1]).fit(X, y)
    with pytest.raises(ValueError, match="no event of a cause with a positive weight"):
        CompetingRisksTree(n_causes=4, cause_weights=[0, 0, 0, 1]).fit(X, y)


def fine(curve, *, entry, weighted, n=400):
    X, y = study(n, n_causes=3)
    rng = np.random.default_rng(5)
    y["time"] += rng.uniform(0, 0.04, n)
    if entry:
        y["entry"] = y["time"] * rng.uniform(0, 0.5, n)
    weight = weights(n) if weighted else None
    return X, y, weight, CompetingRisksTree(max_depth=2, leaf_curve=curve).fit(X, y, weight)


@pytest.mark.parametrize("curve", ["aalen-johansen", "proportional"])
@pytest.mark.parametrize(("entry", "weighted"), [(False, False), (True, True)])
@pytest.mark.parametrize("points", [1, 4, 15])
def test_thinned_curves_state_their_largest_error(curve, entry, weighted, points, tmp_path):
    X, y, weight, tree = fine(curve, entry=entry, weighted=weighted)
    path, whole = tmp_path / "thin.json", tmp_path / "whole.json"
    save_model(tree, path, curve_points=points)
    save_model(tree, whole)
    thin = load_model(path)
    # Counts of a few rows without weights take less space than the steps.
    if weighted or points < 15:
        assert path.stat().st_size < 0.7 * whole.stat().st_size
    at = np.unique(y["time"])
    at = np.concatenate([[0.0], at, np.nextafter(at, 0), at + 1e-6])
    survival = thin.predict_survival_function(X, times=at)
    worst, total = np.abs(survival - tree.predict_survival_function(X, times=at)).max(), survival
    for k in (1, 2, 3):
        incidence = thin.predict_cumulative_incidence(X, k, times=at)
        assert (np.diff(thin.predict_cumulative_incidence(X, k)) >= 0).all()
        off = np.abs(incidence - tree.predict_cumulative_incidence(X, k, times=at)).max()
        worst, total = max(worst, off), total + incidence
        np.testing.assert_array_equal(thin.predict(X, k), tree.predict(X, k))
    np.testing.assert_allclose(total, 1.0, atol=1e-12)
    stated = thin.certificate_.facts["curve_error"]
    # The error is rounded up to two digits.
    assert worst <= stated <= 1.11 * worst
    assert stated < (1.0 if curve == "aalen-johansen" else 1.6) / points
    assert "survival and incidences are off by at most" in dict(thin.certificate_.remarks)["curves"]
    for leaf in thin.leaves_.any_cause.statistics:
        assert leaf.event_times.size <= points
    result = verify(thin, X, y, sample_weight=weight)
    assert result.ok
    assert "thinned" in str(result)


@pytest.mark.parametrize("points", [2, 5])
def test_no_division_of_a_leaf_is_nearer(points):
    """For one leaf, no partition with as many pieces has a smaller largest error."""
    from itertools import combinations

    X, y, _, tree = fine("aalen-johansen", entry=False, weighted=False, n=26)
    tree = CompetingRisksTree(max_depth=0).fit(X, y)
    times = np.unique(y["time"][y["event"] > 0])
    falls = [1 - tree.predict_survival_function(X[:1], times=times)[0]]
    falls += [tree.predict_cumulative_incidence(X[:1], k, times=times)[0] for k in (1, 2, 3)]
    falls = np.stack(falls)
    best = np.inf
    for starts in combinations(range(times.size), points):
        ends = np.array([*starts[1:], times.size]) - 1
        off = (falls[:, ends] - falls[:, list(starts)]).max() / 2
        first = falls[:, starts[0] - 1].max() if starts[0] else 0.0
        best = min(best, max(off, first))
    text = tree.to_json(curve_points=points)
    stated = CompetingRisksTree.from_json(text).certificate_.facts["curve_error"]
    assert best <= stated * (1 + 1e-9)
    assert stated <= 1.11 * best


def test_curves_of_few_steps_are_not_thinned():
    _, _, _, tree = fine("aalen-johansen", entry=False, weighted=False)
    assert tree.to_json(curve_points=10_000) == tree.to_json()
    again = CompetingRisksTree.from_json(tree.to_json(curve_points=20))
    # Thinning to the same number of steps again does not increase the error.
    twice = CompetingRisksTree.from_json(again.to_json(curve_points=20))
    assert twice.certificate_.facts == again.certificate_.facts
    assert isinstance(again.leaf_table([0.5]), pd.DataFrame)
