"""What the soft tree does besides the contract of all trees."""

import json
import re
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import rankdata
from survival_rows import assert_same_predictions, hazard, sample, survival

from bristlecone import SoftSurvivalTree, curves, load_model, outcome, save_model
from bristlecone._objectives.parity import CurveParity
from bristlecone._soft.models import MODELS
from bristlecone._soft.tree import SoftTree
from bristlecone.exceptions import (
    BristleconeWarning,
    ColumnWarning,
    ConstantFeatureWarning,
    EmptyLeafWarning,
    ModelFormatError,
)
from bristlecone.export import export_dict, export_text
from bristlecone.metrics import (
    concordance_index_censored,
    concordance_index_td,
    d_calibration,
    integrated_brier_score,
)
from bristlecone.reference import brier_losses
from bristlecone.trust._rows import reached_nodes


def make(**parameters):
    # With one start and few rows, a leaf may be below its share. The warning is tested separately.
    few = {"n_restarts": 1, "random_state": 0, "min_leaf_share": 0.0}
    return SoftSurvivalTree(**{**few, **parameters})


def test_the_default_solver_sees_weights_and_neither_order():
    X, y = sample(n=80)
    times = np.random.default_rng(1).integers(0, 4, size=80)
    every, turned = np.repeat(np.arange(80), times), X[["x2", "x0", "x3", "x1"]]
    model = make(l2=0.1).fit(X, y, sample_weight=times)
    for again, Z in (
        (make(l2=0.1).fit(X.iloc[every], y[every]), X),
        (make(l2=0.1).fit(X[::-1], y[::-1], sample_weight=times[::-1]), X),
        (make(l2=0.1).fit(turned, y, sample_weight=times), turned),
    ):
        assert_same_predictions(model, again, X, Z, rtol=1e-12)


@pytest.mark.parametrize(("n_events", "l2"), [(1, 30.0), (12, 2.5), (300, 0.1), (350, 0.1)])
def test_the_default_penalty_of_leaves_grows_as_events_become_few(n_events, l2):
    X, y = sample(n=400)
    y["dead"] = np.arange(400) < n_events
    weight = 3.0 * np.ones(400)
    options = {"depth": 0, "n_restarts": 1}
    model = make(**options).fit(X, y, sample_weight=weight)
    assert (model.l2, model.l2_) == ("auto", l2)
    same = make(**options, l2=l2).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(model.predict(X), same.predict(X))


def test_every_split_is_there_whatever_falls_into_it():
    X, y = sample()
    model = make().fit(X, y)
    assert model.n_leaves_ == model.tree_.n_leaves == 4 and model.depth_ == 2
    assert model.tree_.children_left.tolist() == [1, 2, -1, -1, 5, -1, -1]
    assert model.tree_.children_right.tolist() == [4, 3, -1, -1, 6, -1, -1]


def test_memberships_are_probabilities_and_the_path_follows_the_larger_branch():
    X, y = sample()
    model = make(depth=3).fit(X, y)
    member, branch = model.predict_proba_leaf(X), model.predict_proba_branch(X)
    assert member.shape == (len(X), 8) and branch.shape == (len(X), 7)
    np.testing.assert_allclose(member.sum(axis=1), 1, rtol=1e-12)
    tree = model.tree_
    order = np.sort(tree.splits).tolist()
    for row in range(20):
        node = 0
        while not tree.is_leaf[node]:
            left = branch[row, order.index(node)] >= 0.5
            node = (tree.children_left if left else tree.children_right)[node]
        assert node == model.apply(X)[row]


@pytest.mark.slow
def test_a_row_has_the_same_leaf_and_curve_alone_and_in_a_batch():
    X, y = sample(n=60)
    for leaf in MODELS:
        model = make(leaf=leaf).fit(X, y)
        Z = np.vstack([X.to_numpy()] * 3)
        Z[60:120] = (Z[:60] + Z[1:61]) / 2
        frame = pd.DataFrame(Z, columns=X.columns)
        whole = model.apply(frame), model.predict(frame), survival(model, frame)
        for row in range(0, 180, 7):
            alone = frame.iloc[[row]]
            assert model.apply(alone)[0] == whole[0][row]
            assert model.predict(alone)[0] == whole[1][row]
            np.testing.assert_array_equal(survival(model, alone)[0], whole[2][row])


def test_rows_on_a_boundary_are_verified():
    rng = np.random.default_rng(0)
    design = (rng.random((500, 13)) < 0.5).astype(float)
    weights = rng.integers(-9, 10, (1, 13)) / 10
    # Without rounding many rows would have the logit 0.
    tree = SoftTree.grown(1, weights, np.array([0.3]), design, np.ones(500))
    found = reached_nodes(SimpleNamespace(tree_=tree), design)
    np.testing.assert_array_equal(found, tree.decision_path(design).toarray())


def test_functions_arrays_and_times_agree():
    X, y = sample()
    for leaf in MODELS:
        model = make(leaf=leaf).fit(X, y)
        for name in ("predict_survival_function", "predict_cumulative_hazard_function"):
            predict = getattr(model, name)
            functions, values = predict(X), predict(X, return_array=True)
            assert values.shape == (len(X), len(model.unique_times_))
            times = [3.5, 0.0, 1e6, 12.0]
            at = predict(X, times=times)
            for function, row, more in zip(functions[:9], values, at, strict=False):
                np.testing.assert_array_equal(function.x, model.unique_times_)
                np.testing.assert_array_equal(function.y, row)
                np.testing.assert_array_equal(function(times), more)
                assert isinstance(function(2.0), float) and function.domain == (0.0, np.inf)
            assert (at[:, 1] == (1.0 if "survival" in name else 0.0)).all()
        np.testing.assert_array_equal(survival(model, X), np.exp(-hazard(model, X)))
        times = np.linspace(0, 200, 300)
        assert (np.diff(survival(model, X, times=times), axis=1) <= 0).all()
    with pytest.raises(ValueError, match="times must lie within"):
        functions[0](-1.0)


def test_risk_is_the_summed_hazard_and_scores():
    X, y = sample()
    model = make().fit(X, y)
    risk = hazard(model, X, times=model.event_times_).sum(axis=1)
    np.testing.assert_allclose(model.predict(X), risk, rtol=1e-12)
    expected = concordance_index_censored(y["dead"], y["months"], rankdata(risk)).cindex
    assert model.score(X, y) == expected > 0.6
    with pytest.raises(ValueError, match="X has 150 rows but y has 149"):
        model.score(X, y[:-1])


def test_metrics_evaluate_smooth_curves_at_the_times_of_the_rows():
    X, y = sample()
    model = make(leaf="weibull").fit(X[:40], y[:40])
    test, times = y[40:], np.unique(y["months"][40:])
    curves = model.predict_survival_function(X[40:])
    exact = model.predict_survival_function(X[40:], times=times)
    assert concordance_index_td(test, curves) == concordance_index_td(test, exact, times)
    assert d_calibration(test, curves).p_value == d_calibration(test, exact, times).p_value
    plain = [curve.__call__ for curve in curves]
    assert d_calibration(test, plain).p_value == d_calibration(test, curves).p_value
    fine = np.linspace(0, times[-1], 4001)
    midway = model.predict_survival_function(X[40:], times=(fine[1:] + fine[:-1]) / 2)
    expected = integrated_brier_score(y, test, midway, fine[:-1], method="step")
    found = integrated_brier_score(y, test, curves, method="step")
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    losses = brier_losses(test, curves)
    at_all = model.predict_survival_function(X[40:], times=times)
    np.testing.assert_allclose(losses, brier_losses(test, at_all, times), rtol=1e-12)


def test_the_likelihood_of_a_time_of_zero_is_that_of_the_fit():
    X, y = sample(n=60)
    y["months"][:4] = 0.0
    half = y["months"][4:].min() / 2
    with pytest.warns(BristleconeWarning, match="half the smallest positive time"):
        model = make(depth=1).fit(X, y)
    replaced = y.copy()
    replaced["months"][:4] = half
    assert y["dead"][:4].any()
    assert np.array_equal(model.log_likelihood(X, y), model.log_likelihood(X, replaced))


def test_the_likelihood_of_a_late_row_lacks_the_hazard_before_its_entry():
    X, y = sample(n=60)
    model = make(depth=1).fit(X, y)
    entry = y["months"] / 2
    late = model.log_likelihood(X, outcome(y["dead"], y["months"], entry=entry))
    functions = model.predict_cumulative_hazard_function(X)
    before = [float(of_row(v)) for of_row, v in zip(functions, entry, strict=True)]
    np.testing.assert_allclose(late, model.log_likelihood(X, y) + before, rtol=1e-9)


def test_leaf_table_has_size_events_and_median_of_every_leaf():
    X, y = sample()
    weight = np.random.default_rng(0).uniform(0.5, 2, size=len(X))
    model = make(split_l2=0.0).fit(X, y, sample_weight=weight)
    table, leaf = model.leaf_table(), model.apply(X)
    assert isinstance(table, pd.DataFrame)
    assert table["leaf"].tolist() == model.tree_.leaves.tolist()
    for k, node in enumerate(table["leaf"]):
        rows = leaf == node
        assert table["n_samples"][k] == rows.sum()
        assert table["n_events"][k] == y["dead"][rows].sum()
        assert table["weight"][k] == pytest.approx(weight[rows].sum())
        if rows.any():
            km = curves.kaplan_meier(y[rows], weight[rows])
            assert table["median"][k] == curves.median(km.x, km.y)
        else:
            assert np.isnan(table["median"][k])
    assert table["n_samples"].sum() == len(X)


def test_text_shows_weights_that_compare_and_the_dictionary_those_of_the_users_units():
    X, y = sample()
    X = X.assign(x0=1000 * X["x0"])
    model = make(depth=1).fit(X, y)
    text, tree = export_text(model), export_dict(model)
    assert text.count("\n") == 4 and ">= 0" in text
    assert text.endswith("weights: over the range of each column in training, largest first\n")
    span = np.ptp(X.to_numpy(), axis=0)
    over_range = dict(zip(X.columns, model.coef_[0] * span, strict=True))
    terms = re.findall(r"([+-][\d.e-]+) \[(x\d)\]", tree["split"])
    assert [f"{over_range[name]:+.3g}" for _, name in terms] == [weight for weight, _ in terms]
    shown = [abs(over_range[name]) for _, name in terms]
    assert shown == sorted(map(abs, over_range.values()), reverse=True)[: len(shown)]
    assert tree["coefficients"] == dict(zip(X.columns, model.coef_[0].tolist(), strict=True))
    assert tree["yes"]["n_samples"] + tree["no"]["n_samples"] == 150


def test_text_marks_empty_leaves():
    X, y = sample()
    with pytest.warns(EmptyLeafWarning, match="1 of 2 leaves is empty .*use depth=0"):
        model = make(depth=1, l1=10.0, min_leaf_share=0.05).fit(X, y)
    lines = export_text(model).splitlines()
    assert sum(line.endswith("n=0, empty") for line in lines) == 1
    assert sum("n=150, events=" in line for line in lines) == 1
    leaves = [export_dict(model)[side] for side in ("yes", "no")]
    assert sorted(leaf["share"] for leaf in leaves) == [0.0, 1.0]
    assert model.n_effective_leaves_ == 1.0


def test_the_table_of_an_empty_leaf_has_no_median_and_no_mean():
    X, y = sample()
    with pytest.warns(EmptyLeafWarning):
        model = make(depth=1, l1=10.0, min_leaf_share=0.05).fit(X, y)
    table = model.leaf_table(times=[10.0]).set_index("n_samples")
    of_rows = ["median", "median_lower", "median_upper", "kaplan_meier_10", "rmst", "hazard_ratio"]
    assert table.loc[0, of_rows].isna().all()
    assert np.isfinite(table.loc[150, of_rows]).all()
    assert table.loc[0, "n_events"] == 0


# Columns


def mixed(n=120):
    random = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "age": random.normal(60, 10, size=n),
            "stage": random.choice(["I", "II", "III"], size=n),
            "treated": random.random(n) < 0.5,
            "sex": random.choice(["f", "m"], size=n),
            "same": 1.0,
        }
    )
    frame.loc[3, "age"] = np.nan
    frame["stage"] = frame["stage"].where(frame.index != 5)
    rate = np.exp(0.05 * (frame["age"].fillna(60) - 60) + (frame["stage"] == "III"))
    time = random.exponential(size=n) / rate
    return frame, (random.random(n) < 0.8, time)


def test_categories_flags_and_missing_values_have_columns_with_names():
    X, y = mixed()
    with pytest.warns(ConstantFeatureWarning, match="'same'"):
        model = make().fit(X, y)
    assert model.design_names_ == [
        "age",
        "stage = I",
        "stage = II",
        "stage = III",
        "stage is missing",
        "treated",
        "sex = f",
    ]
    mean = X.assign(age=X["age"].fillna(X["age"].mean()))
    np.testing.assert_allclose(model.predict(mean), model.predict(X), rtol=1e-13)
    unknown = X.assign(stage="IV")
    design = model.encoder_.transform(unknown)
    assert (design[:, 1:5] == 0).all()
    with pytest.warns(ConstantFeatureWarning):
        strict = make(handle_unknown="error").fit(X, y)
    with pytest.raises(ValueError, match="unknown category 'IV' in row 0"):
        strict.predict(unknown)
    merged = "the 2 rarest levels of column 'stage' are merged"
    with pytest.warns(ConstantFeatureWarning), pytest.warns(ColumnWarning, match=merged):
        few = make(max_categories=1).fit(X, y)
    assert "stage = other" in few.design_names_
    # Coefficients are per year of age: the logit is that of the user's columns.
    values = np.column_stack(
        [
            mean["age"],
            *(X["stage"] == stage for stage in ("I", "II", "III")),
            X["stage"].isna(),
            X["treated"],
            X["sex"] == "f",
        ]
    ).astype(float)
    logit = values @ model.coef_.T + model.intercept_
    np.testing.assert_allclose(model.predict_proba_branch(X), 1 / (1 + np.exp(-logit)), rtol=1e-9)


def test_delayed_entry_is_refused():
    X, y = sample(n=30)
    late = np.empty(30, dtype=[("dead", bool), ("months", float), ("entry", float)])
    late["dead"], late["months"], late["entry"] = y["dead"], y["months"], 0.5
    with pytest.raises(ValueError, match="delayed entry"):
        make().fit(X, late)


# Saving


@pytest.mark.parametrize("leaf", sorted(MODELS))
def test_saved_models_predict_the_same_to_the_last_bit(leaf, tmp_path):
    X, y = sample()
    group = X["x3"] > 0
    model = make(leaf=leaf, fairness=CurveParity(0.0), split_l2=0.0)
    model.fit(X, y, sensitive_features=group)
    save_model(model, tmp_path / "model.json")
    again = load_model(tmp_path / "model.json")
    assert again.get_params() == model.get_params() and again.to_json() == model.to_json()
    assert_same_predictions(model, again, X)
    for name in ("coef_", "leaf_coef_", "leaf_intercept_"):
        np.testing.assert_allclose(getattr(again, name), getattr(model, name), rtol=1e-14)
    assert again.leaf_gini_ == model.leaf_gini_ and again.trace_ == model.trace_
    np.testing.assert_array_equal(again.leaf_table()["median"], model.leaf_table()["median"])
    assert again.feature_names_in_.tolist() == X.columns.tolist()


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("tree", "weights"), [1.0], "tree.weights\\[0\\] is float; expected array"),
        (("tree", "n_node_samples"), [5, 1, 1], "n_node_samples of a node"),
        (("leaves", "linear"), [], "leaves.linear has 0"),
        (("leaves", "median"), ["x", 1.0], "leaves.median"),
        (("certificate", "trace"), [[1.0], [2.0]], "certificate.trace rises"),
        (("certificate", "facts", "converged"), {}, "certificate.facts"),
        (("leaves", "prepared"), {"knots": [1.0, 0.0]}, "leaves.prepared: knots"),
        (("encoder", "design", 0, "high"), -1e9, "design\\[0\\].high is not above low"),
        (("encoder", "design", 0, "column"), "x9", "design\\[0\\] does not fit"),
        (("leaves", "log_unit"), "1", "leaves.log_unit"),
        (("certificate", "seconds"), 0.25, "checksum"),
    ],
)
def test_damaged_files_are_refused_and_the_field_is_named(path, value, message):
    X, y = sample(n=40)
    document = json.loads(make(depth=1, leaf="spline-ph").fit(X, y).to_json())
    *way, last = path
    place = document
    for name in way:
        place = place[name]
    place[last] = value
    with pytest.raises(ModelFormatError, match=message):
        SoftSurvivalTree.from_json(json.dumps(document))


def test_a_model_with_groups_of_rows_is_saved_without_them():
    X, y = sample(n=40)
    group = (X["x0"] > 0).to_numpy()
    model = make(depth=1, fairness=CurveParity(0.0)).fit(X, y, sensitive_features=group)
    again = SoftSurvivalTree.from_json(model.to_json())
    assert again.fairness_distance_ == model.fairness_distance_
    assert again.compare_groups(X, group) == model.compare_groups(X, group)
