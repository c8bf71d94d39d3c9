"""What every survival tree of the package promises, as checks that take an estimator factory.

``make(**parameters)`` returns an unfitted estimator with these parameters, of which
``make.leaf_curves`` are the leaf curves it permits and ``make.papers`` what it needs to be that of
the papers: a prior counts pseudo-events, a minimum of events rows, whatever the rows weigh. The
shared rows are numeric and continuous, so that no two splits are equally good.
"""

import inspect
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from bristlecone import curves
from bristlecone.datasets import load
from bristlecone.metrics import concordance_index_censored
from bristlecone.model.registry import load_model, save_model

PREDICTIONS = (
    "apply",
    "decision_path",
    "predict",
    "predict_cumulative_hazard_function",
    "predict_median",
    "predict_rmst",
    "predict_survival_function",
)


def sample(n=150, seed=0):
    """Numeric frame X and structured y with ties, early censorings and an effect of x0 and x1."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["x0", "x1", "x2", "x3"])
    rate = np.exp(1.2 * (X["x0"] > 0.2) - 0.9 * (X["x1"] > -0.4) + 0.3 * X["x2"])
    lived = np.ceil(20 * rng.exponential(size=n) / rate)
    followed = np.ceil(rng.uniform(0, 60, size=n))
    y = np.empty(n, dtype=[("dead", bool), ("months", float)])
    y["dead"], y["months"] = lived <= followed, np.minimum(lived, followed)
    return X, y


def survival(model, X, **options):
    return model.predict_survival_function(X, return_array=True, **options)


def hazard(model, X, **options):
    return model.predict_cumulative_hazard_function(X, return_array=True, **options)


def assert_same_predictions(one, other, X, Z=None, rtol=0.0):
    Z = X if Z is None else Z
    np.testing.assert_array_equal(one.apply(X), other.apply(Z))
    np.testing.assert_allclose(one.predict(X), other.predict(Z), rtol=rtol)
    times = np.linspace(0, 100, 37)
    for curve in ("predict_survival_function", "predict_cumulative_hazard_function"):
        ours, theirs = getattr(one, curve)(X, times=times), getattr(other, curve)(Z, times=times)
        np.testing.assert_allclose(ours, theirs, rtol=rtol)


# Parameters


def check_constructor_stores_keyword_only_parameters_untouched(make):
    cls = type(make())
    for parameter in list(inspect.signature(cls.__init__).parameters.values())[1:]:
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        assert getattr(cls(), parameter.name) is parameter.default


def check_clone_keeps_parameters_and_forgets_the_fit(make):
    X, y = sample()
    model = make(leaf_curve="kaplan-meier").fit(X, y)
    twin = clone(model)
    assert twin.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        twin.predict(X)
    assert_same_predictions(model, twin.fit(X, y), X)


def check_set_params_returns_the_estimator_and_is_used(make):
    X, y = sample()
    model = make()
    assert model.set_params(max_depth=0) is model
    assert model.fit(X, y).n_leaves_ == 1


# Fit


def check_fit_returns_the_estimator_and_is_repeatable(make):
    X, y = sample()
    model = make()
    assert model.fit(X, y) is model
    assert_same_predictions(model, make().fit(X, y), X)


def check_integer_weights_equal_repetition(make):
    X, y = sample()
    times = np.random.default_rng(1).integers(0, 4, size=len(X))
    weighted = make(**make.papers).fit(X, y, sample_weight=times)
    repeated = make(**make.papers).fit(
        X.iloc[np.repeat(np.arange(len(X)), times)], np.repeat(y, times)
    )
    assert weighted.n_leaves_ > 2
    assert_same_predictions(weighted, repeated, X, rtol=1e-12)
    np.testing.assert_allclose(
        weighted.tree_.weighted_n_node_samples, repeated.tree_.n_node_samples, rtol=1e-12
    )


def check_the_scale_of_the_weights_does_not_move_the_tree(make):
    X, y = sample()
    weight = np.random.default_rng(2).uniform(0.5, 2.0, size=len(X))
    one, other = (make(**make.papers).fit(X, y, sample_weight=w) for w in (weight, 8 * weight))
    np.testing.assert_array_equal(one.apply(X), other.apply(X))


def check_rows_of_weight_zero_count_as_absent(make):
    X, y = sample()
    kept = np.arange(len(X)) % 3 > 0
    weighted = make().fit(X, y, sample_weight=kept.astype(float))
    assert_same_predictions(weighted, make().fit(X[kept], y[kept]), X)
    assert weighted.tree_.n_node_samples[0] == kept.sum()


def check_row_order_does_not_matter(make):
    X, y = sample()
    order = np.random.default_rng(3).permutation(len(X))
    assert_same_predictions(make().fit(X, y), make().fit(X.iloc[order], y[order]), X, rtol=1e-12)


def check_column_order_does_not_matter(make):
    X, y = sample()
    Z = X[["x2", "x0", "x3", "x1"]]
    assert_same_predictions(make().fit(X, y), make().fit(Z, y), X, Z, rtol=1e-12)


def check_containers_give_the_same_tree(make):
    X, y = sample()
    names = list(X.columns)
    reference = make().fit(X, y)
    outcomes = pd.DataFrame({"time": y["months"], "event": y["dead"]})
    flags = pl.DataFrame({"status": y["dead"].astype(int), "days": y["months"]})
    values = X.to_numpy()
    for Z, outcome in (
        (X, outcomes),
        (pl.DataFrame(values, schema=names), flags),
        (values, (y["dead"], y["months"])),
        (np.asfortranarray(values), y),
        (values.tolist(), (y["dead"].tolist(), y["months"].tolist())),
    ):
        assert_same_predictions(reference, make().fit(Z, outcome), X, Z)


def check_fit_and_predict_leave_their_input_alone(make):
    X, y = sample()
    weight = np.ones(len(X))
    copies = X.copy(), y.copy(), weight.copy()
    make().fit(X, y, sample_weight=weight).predict_survival_function(X)
    pd.testing.assert_frame_equal(X, copies[0])
    np.testing.assert_array_equal(y, copies[1])
    np.testing.assert_array_equal(weight, copies[2])


def check_a_failed_fit_keeps_the_earlier_one(make):
    X, y = sample()
    model = make().fit(X, y)
    before = model.predict(X)
    hopeless = y.copy()
    hopeless["dead"] = False
    with pytest.raises(ValueError, match="no event"):
        model.fit(X, hopeless)
    np.testing.assert_array_equal(model.predict(X), before)


def check_bad_rows_raise_errors_that_say_what_is_wrong(make):
    X, y = sample(n=20)
    bad_time = y.copy()
    bad_time["months"][7] = np.nan
    weight = np.ones(20)
    weight[3] = -1.0
    infinite = X.copy()
    infinite.loc[4, "x2"] = np.inf
    twice = pd.concat([X, X[["x1"]]], axis=1)
    for message, arguments in (
        ("n_samples=0", (X[:0], y[:0])),
        ("n_samples=1:", (X[:1], y[:1])),
        ("X has 20 rows but y has 19", (X, y[:19])),
        ("'months'.* nan in row 7", (X, bad_time)),
        ("one boolean field", (X, y.astype([("dead", float), ("months", float)]))),
        ("sample_weight is -1.0 in row 3", (X, y, weight)),
        (r"sample_weight has shape \(19,\)", (X, y, weight[:19])),
        ("sample_weight is zero in every row", (X, y, np.zeros(20))),
        ("x2.*row 4", (infinite, y)),
        ("duplicate column names: 'x1'", (twice, y)),
        ("empty name", (X.rename(columns={"x1": ""}), y)),
        ("Series", (X["x0"], y)),
        (r"ndarray of shape \(20,\)", (X, y["months"])),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            make().fit(*arguments)


# Prediction


def check_unfitted_estimators_say_so(make):
    X, y = sample(n=10)
    for name in PREDICTIONS:
        with pytest.raises(NotFittedError):
            getattr(make(), name)(X)
    with pytest.raises(NotFittedError):
        make().score(X, y)
    with pytest.raises(NotFittedError):
        make().to_json()


def check_columns_at_prediction_are_those_of_the_fit(make):
    X, y = sample()
    model = make().fit(X, y)
    assert model.n_features_in_ == 4
    assert model.feature_names_in_.tolist() == ["x0", "x1", "x2", "x3"]
    shuffled = X[["x3", "x1", "x0", "x2"]]
    np.testing.assert_array_equal(model.predict(shuffled), model.predict(X))
    np.testing.assert_array_equal(model.predict(X.assign(extra="any")), model.predict(X))
    used = model.features_used_[0]
    with pytest.raises(ValueError, match=f"missing: '{used}'"):
        model.predict(X.drop(columns=used))
    with pytest.raises(ValueError, match="3 features"):
        make().fit(X.to_numpy(), y).predict(X.to_numpy()[:, :3])


def check_missing_values_new_at_prediction_count_as_the_mean(make):
    X, y = sample()
    model = make().fit(X, y)
    used = model.features_used_[0]
    without, filled = X.copy(), X.copy()
    without.loc[5, used], filled.loc[5, used] = np.nan, X[used].mean()
    if getattr(model, "encoder", "auto") is None:  # numbers as they are, and complete
        with pytest.raises(ValueError, match=f"'{used}'.*row 5"):
            model.predict(without)
    else:
        # sums in another order may differ in the last bit
        np.testing.assert_allclose(model.predict(without), model.predict(filled), rtol=1e-12)


def check_rows_fall_into_leaves(make):
    X, y = sample()
    model = make().fit(X, y)
    tree, leaf = model.tree_, model.apply(X)
    assert set(leaf) == set(tree.leaves)
    assert model.n_leaves_ == tree.n_leaves == len(model.leaf_statistics_)
    assert model.depth_ == tree.max_depth
    path = model.decision_path(X)
    assert path.shape == (len(X), tree.node_count)
    np.testing.assert_array_equal(np.asarray(path.sum(axis=0)).ravel(), tree.n_node_samples)
    np.testing.assert_array_equal(path[np.arange(len(X)), leaf], 1)
    np.testing.assert_array_equal(np.asarray(path.sum(axis=1)).ravel() - 1, tree.node_depth[leaf])


def check_leaves_hold_the_statistics_of_their_rows(make):
    X, y = sample()
    weight = np.random.default_rng(4).uniform(0.5, 2.0, size=len(X))
    model = make().fit(X, y, sample_weight=weight)
    baseline = curves.nelson_aalen(y, weight)(y["months"])
    floored = np.where(baseline > 0, baseline, 1 / (weight.sum() + 1))
    for leaf in model.leaf_statistics_:
        rows = model.apply(X) == leaf.node
        assert leaf.n_samples == rows.sum()
        assert leaf.n_events == y["dead"][rows].sum()
        assert leaf.weight == pytest.approx(weight[rows].sum(), rel=1e-12)
        assert leaf.events == pytest.approx((weight * y["dead"])[rows].sum(), rel=1e-12)
        assert leaf.hazard == pytest.approx((weight * floored)[rows].sum(), rel=1e-12)
        theta = (leaf.events + model.prior_) / (leaf.hazard + model.prior_)
        assert leaf.theta == (theta or 0.5 / leaf.hazard)
        own = curves.kaplan_meier(y[rows], weight[rows]), curves.nelson_aalen(y[rows], weight[rows])
        np.testing.assert_array_equal(leaf.kaplan_meier, own[0](leaf.event_times))
        np.testing.assert_array_equal(leaf.nelson_aalen, own[1](leaf.event_times))
        np.testing.assert_array_equal(leaf.event_times, np.unique(y["months"][rows & y["dead"]]))


def check_times_are_those_of_the_training_rows(make):
    X, y = sample()
    model = make().fit(X, y)
    np.testing.assert_array_equal(model.unique_times_, np.unique(y["months"]))
    np.testing.assert_array_equal(model.event_times_, np.unique(y["months"][y["dead"]]))


def check_risk_is_theta_and_orders_the_curves(make):
    X, y = sample()
    model = make().fit(X, y)
    theta = {leaf.node: leaf.theta for leaf in model.leaf_statistics_}
    risk = model.predict(X)
    np.testing.assert_array_equal(risk, [theta[node] for node in model.apply(X)])
    by_risk = survival(model, X)[np.argsort(risk)]
    assert (np.diff(by_risk, axis=0) <= 0).all()


def check_proportional_curves_are_those_of_the_baseline(make):
    X, y = sample()
    model = make(leaf_curve="proportional").fit(X, y)
    baseline = curves.nelson_aalen(y)(model.unique_times_)
    np.testing.assert_array_equal(hazard(model, X), np.outer(model.predict(X), baseline))
    np.testing.assert_array_equal(survival(model, X), np.exp(-hazard(model, X)))
    assert_same_predictions(make(leaf_curve="auto").fit(X, y), model, X)


def check_kaplan_meier_curves_are_those_of_the_leaf(make):
    X, y = sample()
    model = make(leaf_curve="kaplan-meier", shrinkage=0).fit(X, y)
    times = np.linspace(0, 100, 200)
    for node in model.tree_.leaves:
        rows = model.apply(X) == node
        of_leaf = X[rows]
        expected = curves.kaplan_meier(y[rows])(times)
        np.testing.assert_array_equal(survival(model, of_leaf, times=times)[0], expected)
        expected = curves.nelson_aalen(y[rows])(times)
        np.testing.assert_array_equal(hazard(model, of_leaf, times=times)[0], expected)


def check_curves_are_monotone_and_start_before_the_first_event(make):
    X, y = sample()
    for leaf_curve in make.leaf_curves:
        model = make(leaf_curve=leaf_curve).fit(X, y)
        times = np.linspace(0, 2 * y["months"].max(), 300)
        early = times < model.event_times_[0]
        S, H = survival(model, X, times=times), hazard(model, X, times=times)
        assert S.shape == H.shape == (len(X), 300)
        assert (S[:, early] == 1).all() and (H[:, early] == 0).all() and early.any()
        assert (np.diff(S, axis=1) <= 0).all() and (np.diff(H, axis=1) >= 0).all()
        assert (S >= 0).all()


def check_functions_arrays_and_times_agree(make):
    X, y = sample()
    for leaf_curve in make.leaf_curves:
        model = make(leaf_curve=leaf_curve).fit(X, y)
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
    for wrong in ([-1.0], [np.nan], [np.inf], [[1.0]]):
        with pytest.raises(ValueError, match="times"):
            model.predict_survival_function(X, times=wrong)


def check_summaries_are_those_of_the_curves(make):
    X, y = sample()
    for leaf_curve in make.leaf_curves:
        model = make(leaf_curve=leaf_curve).fit(X, y)
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
        np.testing.assert_allclose(
            model.predict_rmst(X, 20.0), curves.rmst(times, S, 20.0), rtol=1e-14
        )
        whole = curves.rmst(times, S, times[-1])
        np.testing.assert_allclose(model.predict_rmst(X), whole, rtol=1e-14)
    for wrong in (0.0, 1.0, np.nan):
        with pytest.raises(ValueError, match="q must"):
            model.predict_quantile(X, wrong)
    for wrong in (-1.0, np.inf):
        with pytest.raises(ValueError, match="tau"):
            model.predict_rmst(X, wrong)


def check_score_is_harrells_concordance(make):
    X, y = sample()
    model = make().fit(X, y)
    expected = concordance_index_censored(y["dead"], y["months"], model.predict(X)).cindex
    assert model.score(X, y) == expected > 0.6
    outcomes = pd.DataFrame({"event": y["dead"], "time": y["months"]})
    assert model.score(X, outcomes) == expected
    with pytest.raises(ValueError, match="X has 150 rows but y has 149"):
        model.score(X, y[:-1])


# scikit-learn


def check_works_in_cross_validation_pipeline_and_grid_search(make):
    X, y = sample()
    folds = KFold(3, shuffle=True, random_state=0)
    scores = cross_val_score(make(), X, y, cv=folds, error_score="raise")
    train, test = next(folds.split(X))
    assert scores[0] == make().fit(X.iloc[train], y[train]).score(X.iloc[test], y[test])
    outcomes = pd.DataFrame({"event": y["dead"], "time": y["months"]})
    by_frame = cross_val_score(make(), X, outcomes, cv=folds, error_score="raise")
    np.testing.assert_array_equal(by_frame, scores)
    pipeline = make_pipeline(FunctionTransformer(lambda frame: 2 * frame), make())
    np.testing.assert_array_equal(
        pipeline.fit(X, y).predict(X), make().fit(2 * X, y).predict(2 * X)
    )
    search = GridSearchCV(make(), {"max_depth": [0, 1, 2]}, cv=folds, error_score="raise")
    search.fit(X, y)
    assert search.best_params_["max_depth"] > 0
    assert search.best_estimator_.depth_ == search.best_params_["max_depth"]


# Saving


def check_pickles_are_small_and_predict_the_same(make):
    data = load("gbsg2", as_frame="pandas")
    X, y = data.X.select_dtypes("number"), data.y
    model = make().fit(X, y)
    pickled = pickle.dumps(model)
    # Shrunk step curves have a value at every distinct time, in every leaf.
    assert len(pickled) < (50_000 if getattr(model, "_shrunk", None) is None else 100_000)
    again = pickle.loads(pickled)
    assert_same_predictions(model, again, X)
    assert pickle.dumps(again) == pickle.dumps(pickle.loads(pickle.dumps(again)))


def check_what_is_set_after_the_fit_changes_nothing(make, path):
    X, y = sample()
    for leaf_curve in make.leaf_curves:
        model = make(leaf_curve=leaf_curve).fit(X, y)
        fitted, text, file = model.get_params(), model.describe(), model.to_json()
        curve, facts = survival(model, X), model._leaf_facts()
        for other in ("auto", *make.leaf_curves):
            model.set_params(leaf_curve=other, max_depth=9)
            np.testing.assert_array_equal(survival(model, X), curve)
            assert (model.describe(), model.to_json(), model._leaf_facts()) == (text, file, facts)
        save_model(model, path)
        assert load_model(path).get_params() == fitted


def check_saved_models_predict_the_same_to_the_last_bit(make, path):
    X, y = sample()
    weight = np.random.default_rng(5).uniform(0.1, 1.0, size=len(X))
    for leaf_curve in ("auto", *make.leaf_curves):
        model = make(leaf_curve=leaf_curve).fit(X, y, sample_weight=weight)
        save_model(model, path)
        again = load_model(path)
        assert type(again) is type(model)
        assert again.get_params() == model.get_params()
        assert_same_predictions(model, again, X)
        assert again.to_json() == model.to_json()
        assert_same_predictions(model, type(model).from_json(model.to_json()), X)
        assert again.feature_names_in_.tolist() == X.columns.tolist()
        used = model.features_used_[0]
        with pytest.raises(ValueError, match=f"missing: '{used}'"):
            again.predict(X.drop(columns=used))


# What a check presumes of the leaf curves.
CURVES_NEEDED = {
    "check_risk_is_theta_and_orders_the_curves": "proportional",
    "check_proportional_curves_are_those_of_the_baseline": "proportional",
}
CHECKS = [check for name, check in sorted(globals().items()) if name.startswith("check_")]
