"""Survival trees: leaves, curves, times, scores, scikit-survival."""

import pickle
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
from papers import PAPERS
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from survival_rows import assert_same_predictions, hazard, sample, survival

from bristlecone import GreedySurvivalTree, OptimalSurvivalTree, curves, load_model, save_model
from bristlecone.datasets import load
from bristlecone.metrics import concordance_index_censored
from contract.subjects import SUBJECTS


@dataclass(frozen=True)
class Steps:
    """Trees whose leaves share a step curve, and the leaf curves that they support."""

    cls: type
    fixed: dict[str, Any] = field(default_factory=dict)
    leaf_curves: tuple[str, ...] = ("proportional", "kaplan-meier")

    def make(self, **parameters):
        return self.cls(**{"max_depth": 2, **self.fixed, **parameters})


BRIER = "kaplan-meier", "brier-optimal"
FITTED = {"objective": "brier", "leaf_curve": "brier-optimal"}
STEPS = {
    "optimal": Steps(OptimalSurvivalTree),
    "optimal as in the papers": Steps(OptimalSurvivalTree, PAPERS),
    "brier": Steps(OptimalSurvivalTree, {"objective": "brier"}, BRIER),
    "brier as in the papers": Steps(OptimalSurvivalTree, {"objective": "brier", **PAPERS}, BRIER),
    "brier of fitted curves": Steps(OptimalSurvivalTree, FITTED, BRIER),
    "greedy": Steps(GreedySurvivalTree),
    "greedy as in the papers": Steps(GreedySurvivalTree, PAPERS),
    "greedy by log-rank": Steps(GreedySurvivalTree, {"criterion": "logrank"}),
    "greedy over thresholds": Steps(GreedySurvivalTree, {"encoder": None}),
}
PROPORTIONAL = [name for name, steps in STEPS.items() if "proportional" in steps.leaf_curves]
SURVIVAL = [name for name, described in SUBJECTS.items() if described.survival]
FOLDS = KFold(3, shuffle=True, random_state=0)


@pytest.fixture(params=STEPS)
def steps(request):
    return STEPS[request.param]


@pytest.fixture(scope="module")
def rows():
    return sample()


# Leaves and their curves


def test_leaves_hold_the_statistics_of_their_rows(steps, rows):
    X, y = rows
    weight = np.random.default_rng(4).uniform(0.5, 2.0, size=len(X))
    model = steps.make().fit(X, y, sample_weight=weight)
    assert len(model.leaf_statistics_) == model.n_leaves_ > 2
    baseline = curves.nelson_aalen(y, weight)(y["months"])
    floored = np.where(baseline > 0, baseline, 1 / (weight.sum() + 1))
    for leaf in model.leaf_statistics_:
        inside = model.apply(X) == leaf.node
        assert leaf.n_samples == inside.sum()
        assert leaf.n_events == y["dead"][inside].sum()
        assert leaf.weight == pytest.approx(weight[inside].sum(), rel=1e-12)
        assert leaf.events == pytest.approx((weight * y["dead"])[inside].sum(), rel=1e-12)
        assert leaf.hazard == pytest.approx((weight * floored)[inside].sum(), rel=1e-12)
        theta = (leaf.events + model.prior_) / (leaf.hazard + model.prior_)
        assert leaf.theta == (theta or 0.5 / leaf.hazard)
        for name in ("kaplan_meier", "nelson_aalen"):
            own = getattr(curves, name)(y[inside], weight[inside])
            np.testing.assert_array_equal(getattr(leaf, name), own(leaf.event_times))
        np.testing.assert_array_equal(leaf.event_times, np.unique(y["months"][inside & y["dead"]]))


@pytest.mark.parametrize("name", PROPORTIONAL)
def test_risk_is_theta_and_orders_the_curves(name, rows):
    X, y = rows
    model = STEPS[name].make().fit(X, y)
    theta = {leaf.node: leaf.theta for leaf in model.leaf_statistics_}
    risk = model.predict(X)
    np.testing.assert_array_equal(risk, [theta[node] for node in model.apply(X)])
    by_risk = survival(model, X)[np.argsort(risk)]
    assert (np.diff(by_risk, axis=0) <= 0).all()


@pytest.mark.parametrize("name", PROPORTIONAL)
def test_proportional_curves_are_those_of_the_baseline(name, rows):
    X, y = rows
    model = STEPS[name].make(leaf_curve="proportional").fit(X, y)
    baseline = curves.nelson_aalen(y)(model.unique_times_)
    np.testing.assert_array_equal(hazard(model, X), np.outer(model.predict(X), baseline))
    np.testing.assert_array_equal(survival(model, X), np.exp(-hazard(model, X)))
    assert_same_predictions(STEPS[name].make(leaf_curve="auto").fit(X, y), model, X)


def test_kaplan_meier_curves_are_those_of_the_leaf(steps, rows):
    X, y = rows
    model = steps.make(leaf_curve="kaplan-meier", shrinkage=0).fit(X, y)
    times = np.linspace(0, 100, 200)
    for node in model.tree_.leaves:
        inside = model.apply(X) == node
        expected = curves.kaplan_meier(y[inside])(times)
        np.testing.assert_array_equal(survival(model, X[inside], times=times)[0], expected)
        expected = curves.nelson_aalen(y[inside])(times)
        np.testing.assert_array_equal(hazard(model, X[inside], times=times)[0], expected)


def test_curves_are_monotone_and_start_before_the_first_event(steps, rows):
    X, y = rows
    for leaf_curve in steps.leaf_curves:
        model = steps.make(leaf_curve=leaf_curve).fit(X, y)
        times = np.linspace(0, 2 * y["months"].max(), 300)
        early = times < model.event_times_[0]
        S, H = survival(model, X, times=times), hazard(model, X, times=times)
        assert S.shape == H.shape == (len(X), 300)
        assert (S[:, early] == 1).all() and (H[:, early] == 0).all() and early.any()
        assert (np.diff(S, axis=1) <= 0).all() and (np.diff(H, axis=1) >= 0).all()
        assert (S >= 0).all()


def test_functions_arrays_and_times_agree(steps, rows):
    X, y = rows
    for leaf_curve in steps.leaf_curves:
        model = steps.make(leaf_curve=leaf_curve).fit(X, y)
        for predict, of_array in (
            (model.predict_survival_function, survival),
            (model.predict_cumulative_hazard_function, hazard),
        ):
            functions, values = predict(X), of_array(model, X)
            assert functions.shape == (len(X),)
            assert values.shape == (len(X), len(model.unique_times_))
            assert len(set(map(id, functions))) == model.n_leaves_
            for function, row in zip(functions, values, strict=True):
                np.testing.assert_array_equal(function.x, model.unique_times_)
                np.testing.assert_array_equal(function.y, row)
            times = [3.5, 0.0, 1e6, 12.0]
            expected = np.stack([function(times) for function in functions])
            np.testing.assert_array_equal(predict(X, times=times), expected)


def test_summaries_are_those_of_the_curves(steps, rows):
    X, y = rows
    for leaf_curve in steps.leaf_curves:
        model = steps.make(leaf_curve=leaf_curve).fit(X, y)
        S, times = survival(model, X), model.unique_times_
        levels = [0.1, 0.5, 0.99]
        found = model.predict_quantile(X, levels)
        assert found.shape == (len(X), 3)
        for column, level in enumerate(levels):
            expected = curves.quantile(times, S, level)
            np.testing.assert_array_equal(found[:, column], expected)
            np.testing.assert_array_equal(model.predict_quantile(X, level), expected)
        assert np.isinf(found).any() and np.isfinite(found).any()
        np.testing.assert_array_equal(model.predict_median(X), found[:, 1])
        expected = curves.rmst(times, S, 20.0)
        np.testing.assert_allclose(model.predict_rmst(X, 20.0), expected, rtol=1e-14)
        whole = curves.rmst(times, S, times[-1])
        np.testing.assert_allclose(model.predict_rmst(X), whole, rtol=1e-14)


def test_every_leaf_curve_is_saved_to_the_last_bit_and_kept(steps, rows, tmp_path):
    X, y = rows
    weight = np.random.default_rng(5).uniform(0.1, 1.0, size=len(X))
    for leaf_curve in ("auto", *steps.leaf_curves):
        model = steps.make(leaf_curve=leaf_curve).fit(X, y, sample_weight=weight)
        fitted, said, curve = model.get_params(), model.to_json(), survival(model, X)
        for other in ("auto", *steps.leaf_curves):
            model.set_params(leaf_curve=other, max_depth=9)
            np.testing.assert_array_equal(survival(model, X), curve)
            assert model.to_json() == said
        save_model(model, tmp_path / "model.json")
        again = load_model(tmp_path / "model.json")
        assert again.get_params() == fitted
        assert_same_predictions(model, again, X)


def test_pickles_of_many_times_are_small(steps):
    data = load("gbsg2")
    X, y = data.X.select_dtypes("number"), data.y
    model = steps.make().fit(X, y)
    # Shrunk step curves have a value at every distinct time in every leaf.
    assert len(pickle.dumps(model)) < (50_000 if not getattr(model, "shrinkage_", 0) else 100_000)
    assert_same_predictions(model, pickle.loads(pickle.dumps(model)), X)


# All survival trees


@pytest.mark.parametrize("name", SURVIVAL)
def test_times_are_those_of_the_training_rows(name):
    model, study = SUBJECTS[name].fitted()
    np.testing.assert_array_equal(model.unique_times_, np.unique(study.y["months"]))
    events = study.y["months"][study.y["dead"]]
    np.testing.assert_array_equal(model.event_times_, np.unique(events))


@pytest.mark.parametrize("name", SURVIVAL)
def test_curves_of_no_rows_are_none(name):
    model, study = SUBJECTS[name].fitted()
    for method in ("predict_survival_function", "predict_cumulative_hazard_function"):
        predict = getattr(model, method)
        assert predict(study.X[:0]).shape == (0,)
        assert predict(study.X[:0]).dtype == object
        assert predict(study.X[:0], return_array=True).shape == (0, len(model.unique_times_))
    assert model.predict_quantile(study.X[:0], 0.5).shape == (0,)


@pytest.mark.parametrize("name", SURVIVAL)
def test_wrong_times_and_shares_are_refused(name):
    model, study = SUBJECTS[name].fitted()
    for wrong in ([-1.0], [np.nan], [np.inf], [[1.0]]):
        with pytest.raises(ValueError, match="times"):
            model.predict_survival_function(study.X, times=wrong)
    for wrong in (0.0, 1.0, np.nan):
        with pytest.raises(ValueError, match="q must"):
            model.predict_quantile(study.X, wrong)
    for wrong in (-1.0, np.inf, [1, 2], "late"):
        with pytest.raises(ValueError, match="tau"):
            model.predict_rmst(study.X, wrong)


@pytest.mark.parametrize("name", SURVIVAL)
def test_the_score_is_harrells_concordance(name):
    model, study = SUBJECTS[name].fitted()
    X, y = study.X, study.y
    expected = concordance_index_censored(y["dead"], y["months"], model.predict(X)).cindex
    assert model.score(X, y) == pytest.approx(expected, rel=1e-12) and expected > 0.6
    outcomes = pd.DataFrame({"event": y["dead"], "time": y["months"]})
    assert model.score(X, outcomes) == model.score(X, y)


def concordance(y, risk, weight):
    """Harrell's index, pair by pair; the weight of a pair is the product of its rows' weights."""
    together = right = 0.0
    for i, j in np.ndindex(len(y), len(y)):
        later = y["months"][i] < y["months"][j]
        later |= y["months"][i] == y["months"][j] and not y["dead"][j]
        if i != j and y["dead"][i] and later:
            pair = weight[i] * weight[j]
            together += pair
            right += pair * (1.0 if risk[i] > risk[j] else 0.5 * (risk[i] == risk[j]))
    return right / together


@pytest.mark.parametrize("subject", SURVIVAL)
def test_the_score_is_harrells_concordance_with_weights_of_pairs(subject):
    model, study = SUBJECTS[subject].fitted()
    risk, weight = model.predict(study.X), np.random.default_rng(6).uniform(0, 2, 80)
    plain = concordance(study.y, risk, np.ones(80))
    assert model.score(study.X, study.y) == pytest.approx(plain, rel=1e-12)
    expected = concordance(study.y, risk, weight)
    found = model.score(study.X, study.y, sample_weight=weight)
    assert found == pytest.approx(expected, rel=1e-12) != pytest.approx(plain, rel=1e-6)


@pytest.mark.parametrize("name", SURVIVAL)
def test_cross_validation_takes_outcomes_as_a_frame(name):
    described = SUBJECTS[name]
    study = described.study()
    outcomes = pd.DataFrame({"event": study.y["dead"], "time": study.y["months"]})
    structured, framed = (
        cross_val_score(described.make(), study.X, y, cv=FOLDS, error_score="raise")
        for y in (study.y, outcomes)
    )
    np.testing.assert_array_equal(framed, structured)


# scikit-survival


@pytest.fixture(scope="module")
def sksurv():
    return pytest.importorskip("sksurv.metrics", reason="scikit-survival is not installed")


SCORERS = {
    "as_concordance_index_ipcw_scorer": ({"tau": 25.0}, "concordance_index_ipcw"),
    "as_cumulative_dynamic_auc_scorer": ({"times": [5.0, 12.0, 20.0]}, "cumulative_dynamic_auc"),
    "as_integrated_brier_score_scorer": ({"times": [5.0, 12.0, 20.0]}, "integrated_brier_score"),
}


def expected_score(sksurv, metric, options, model, train, test):
    times = options.get("times")
    if metric == "integrated_brier_score":
        estimate = model.predict_survival_function(test.X, times=times)
        return -sksurv.integrated_brier_score(train.y, test.y, estimate, times)
    risk = model.predict(test.X)
    if metric == "cumulative_dynamic_auc":
        return sksurv.cumulative_dynamic_auc(train.y, test.y, risk, times)[1]
    return sksurv.concordance_index_ipcw(train.y, test.y, risk, **options)[0]


@pytest.mark.parametrize("scorer", SCORERS)
@pytest.mark.parametrize("name", SURVIVAL)
def test_scorers_of_scikit_survival_score_its_metrics(name, scorer, sksurv):
    described = SUBJECTS[name]
    study = described.study(n=150)
    options, metric = SCORERS[scorer]
    wrapped = getattr(sksurv, scorer)(described.make(), **options)
    found = cross_val_score(wrapped, study.X, study.y, cv=FOLDS, error_score="raise")
    expected = []
    for train, test in FOLDS.split(study.X):
        rows, rest = study.take(train), study.take(test)
        model = rows.fit(described.make())
        expected.append(expected_score(sksurv, metric, options, model, rows, rest))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("name", SURVIVAL)
def test_a_search_through_a_scorer_of_scikit_survival_refits(name, sksurv):
    described = SUBJECTS[name]
    study = described.study(n=150)
    wrapped = sksurv.as_concordance_index_ipcw_scorer(described.make(), tau=25.0)
    grid = {f"estimator__{described.depth}": [0, 1]}
    search = GridSearchCV(wrapped, grid, cv=FOLDS, error_score="raise").fit(study.X, study.y)
    best = search.best_params_[f"estimator__{described.depth}"]
    alone = study.fit(described.make(**{described.depth: best}))
    np.testing.assert_array_equal(search.predict(study.X), alone.predict(study.X))


@pytest.mark.parametrize("name", SURVIVAL)
def test_pipelines_of_scikit_survival_take_structured_outcomes(name, sksurv):
    del sksurv
    from sksurv.util import Surv

    described = SUBJECTS[name]
    study = described.study()
    y = Surv.from_arrays(study.y["dead"], study.y["months"])
    pipeline = make_pipeline(StandardScaler(), described.make()).fit(study.X, y)
    scaled = StandardScaler().fit_transform(study.X)
    alone = described.make().fit(scaled, y)
    np.testing.assert_array_equal(pipeline.predict(study.X), alone.predict(scaled))
    assert pipeline.score(study.X, y) == alone.score(scaled, y)
    at = [f(10.0) for f in pipeline.predict_survival_function(study.X)]
    np.testing.assert_array_equal(at, alone.predict_survival_function(scaled, times=[10.0])[:, 0])
