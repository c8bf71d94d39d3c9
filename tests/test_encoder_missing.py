"""Missing values: imputed as in the fit, without thresholds of their own, counted and reported."""

import json
import logging
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.model_selection import KFold, cross_val_score

from bristlecone import (
    GreedySurvivalTree,
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    SoftSurvivalTree,
)
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.decisions import feature_decisions
from bristlecone._encoder.features import Missing, Threshold
from bristlecone._model.registry import dumps, loads
from bristlecone.exceptions import ColumnWarning, ModelFormatError
from bristlecone.export import export_text
from bristlecone.report import html_report


def names(encoder):
    return encoder.get_feature_names_out().tolist()


def some_columns(n=60, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "count": rng.integers(0, 9, n),
            "flag": rng.random(n) < 0.3,
            "often": rng.random(n) < 0.7,
            "text": rng.choice(["u", "v", "w"], n),
            "grade": pd.Categorical(rng.choice(["I", "II", "III"], n), ordered=True),
        }
    )


def without_values(X):
    """Two rows: one with no value, and one with all values."""
    empty = X.astype({"count": float, "flag": object, "often": object})[:2]
    empty.iloc[0] = None
    return empty


# --- at prediction ------------------------------------------------------------------------------


def test_a_value_missing_first_at_prediction_is_imputed_by_what_fit_stored():
    X = some_columns()
    encoder = BinaryEncoder().fit(X)
    fill = {schema.name: schema.fill for schema in encoder.columns_}
    assert fill["number"] == pytest.approx(X["number"].mean(), abs=1e-12)
    assert fill["count"] == pytest.approx(X["count"].mean(), abs=1e-12)
    assert (fill["flag"], fill["often"]) == (False, True)
    assert (fill["text"], fill["grade"]) == (None, None)
    answers = encoder.transform(without_values(X))[0]
    for feature, answer in zip(encoder.features_, answers, strict=True):
        if isinstance(feature, Threshold):
            assert answer == (fill[feature.column] <= feature.value)
        else:
            assert answer == (feature.column == "often")


def test_branch_imputes_values_that_are_first_missing_at_prediction():
    X = some_columns()
    encoder = BinaryEncoder(missing="branch").fit(X)
    assert not any(isinstance(feature, Missing) for feature in encoder.features_)
    imputed = BinaryEncoder().fit(X)
    assert imputed.features_ == encoder.features_ and imputed.columns_ == encoder.columns_
    assert imputed.transform(without_values(X))[0].any()


@pytest.mark.parametrize("missing", ["impute", "branch"])
def test_missing_integers_beside_zeros_and_ones_are_not_zero(missing):
    # the column is a flag at prediction, and a number in training
    encoder = BinaryEncoder(missing=missing).fit(pd.DataFrame({"a": [0, 4, 9, 8]}))
    later = pl.DataFrame({"a": [0, 1, None]})
    expected = [[True] * 3] * 2 + [[False, True, True]]
    assert encoder.transform(later).tolist() == expected


@pytest.mark.filterwarnings("ignore::bristlecone.exceptions.ColumnWarning")
@settings(deadline=None, max_examples=25, derandomize=True)
@given(
    st.lists(st.none() | st.integers(-4, 4), min_size=3, max_size=30),
    st.sampled_from(["quantiles", "midpoints", "kmeans"]),
    st.integers(0, 2**31),
)
def test_imputed_rows_answer_as_a_row_of_the_mean_and_move_no_cut(values, thresholds, seed):
    X = pd.DataFrame({"a": np.array(values, dtype=float)})
    weight = np.random.default_rng(seed).integers(1, 4, len(X)).astype(float)
    encoder = BinaryEncoder(thresholds=thresholds, n_thresholds=3, min_support=0.0)
    encoder.fit(X, sample_weight=weight)
    observed = X["a"].notna().to_numpy()
    if not observed.any():
        assert encoder.features_ == []
        return
    complete = BinaryEncoder(thresholds=thresholds, n_thresholds=3, min_support=0.0)
    complete.fit(X[observed], sample_weight=weight[observed])
    assert names(encoder) == names(complete)
    mean = encoder.columns_[0].fill
    assert mean == pytest.approx(np.average(X["a"][observed], weights=weight[observed]), abs=1e-12)
    filled = encoder.transform(X.fillna(mean))
    assert np.array_equal(encoder.transform(X), filled)
    assert np.array_equal(complete.transform(X), filled)


def test_support_counts_imputed_rows():
    # 3 of 10 observed rows are at most 0.5, but 3 of all 100
    X = pd.DataFrame({"a": [0.0] * 3 + [1.0] * 7 + [None] * 90})
    assert names(BinaryEncoder(min_support=0.03).fit(X)) == ["a <= 0.5"]
    assert names(BinaryEncoder(min_support=0.031).fit(X)) == []


# --- counts and reports -------------------------------------------------------------------------


def gaps():
    X = some_columns()
    X.loc[:4, "number"] = np.nan
    X.loc[7, "text"] = None
    X["often"] = X["often"].astype("boolean")
    X.loc[[1, 2], "often"] = pd.NA
    X.loc[[3, 5, 8], "grade"] = None
    return X


def test_missing_and_imputed_rows_are_counted_and_where_they_go_is_known():
    encoder = BinaryEncoder().fit(gaps())
    assert encoder.n_missing_.tolist() == [5, 0, 0, 2, 1, 3]
    assert encoder.n_imputed_.tolist() == [5, 0, 0, 2, 0, 0]
    goes = dict(zip(names(encoder), encoder.missing_goes_, strict=True))
    for feature in encoder.features_:
        expected = {
            "number": isinstance(feature, Threshold) and feature.value >= encoder.columns_[0].fill,
            "count": None,
            "flag": None,
            "often": True,
            "text": isinstance(feature, Missing),
            "grade": isinstance(feature, Missing),
        }[feature.column]
        assert goes[feature.name] is expected
    branch = BinaryEncoder(missing="branch").fit(gaps())
    assert branch.n_missing_.tolist() == encoder.n_missing_.tolist()
    assert branch.n_imputed_.sum() == 0
    for feature, goes in zip(branch.features_, branch.missing_goes_, strict=True):
        if feature.column in ("count", "flag"):
            assert goes is None
        else:
            assert goes is isinstance(feature, Missing)


def test_where_missing_rows_go_is_what_transform_answers():
    X = gaps()
    for missing in ("impute", "branch"):
        encoder = BinaryEncoder(missing=missing).fit(X)
        answers = encoder.transform(X)
        for feature, goes, answer in zip(
            encoder.features_, encoder.missing_goes_, answers.T, strict=True
        ):
            found = set(answer[X[feature.column].isna().to_numpy()].tolist())
            assert found == (set() if goes is None else {goes})


def test_counts_and_fills_are_saved():
    encoder = BinaryEncoder().fit(gaps())
    again = BinaryEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert again.columns_ == encoder.columns_
    assert again.n_missing_.tolist() == encoder.n_missing_.tolist()
    assert again.n_imputed_.tolist() == encoder.n_imputed_.tolist()
    assert again.missing_goes_ == encoder.missing_goes_


@pytest.mark.parametrize(
    ("field", "value"),
    [("n_missing", -1), ("n_missing", True), ("n_missing", 0.5), ("fill", "x"), ("fill", math.nan)],
)
def test_impossible_counts_and_fills_are_refused(field, value):
    data = BinaryEncoder().fit(gaps()).to_dict()
    data["columns"][0][field] = value
    with pytest.raises(ModelFormatError, match=rf"columns\[0\].{field}"):
        BinaryEncoder.from_dict(data)


def outcome(X, seed=1):
    rng = np.random.default_rng(seed)
    rate = np.exp(1.5 * (X["number"].fillna(X["number"].mean()) > 0.4))
    return rng.random(len(X)) < 0.8, np.ceil(30 * rng.exponential(size=len(X)) / rate)


@pytest.mark.parametrize(
    "tree",
    [
        OptimalSurvivalTree(max_depth=1),
        GreedySurvivalTree(),
        # With few rows a leaf may be below its share, which warns; the start decides which rows.
        SoftSurvivalTree(n_restarts=1, min_leaf_share=0.0, random_state=0),
    ],
    ids=lambda tree: type(tree).__name__,
)
@pytest.mark.parametrize("verbose", [0, 1])
def test_one_line_of_the_log_reports_missing_values(tree, verbose, caplog):
    X = gaps()
    with caplog.at_level(logging.DEBUG, logger="bristlecone"):
        tree.set_params(verbose=verbose).fit(X, outcome(X))
    reported = [record for record in caplog.records if "missing" in record.getMessage()]
    assert [record.levelno for record in reported] == [logging.INFO if verbose else logging.DEBUG]
    mean = f"{X['number'].mean():.6g}"
    assert reported[0].getMessage() == (
        f"missing values: number in 5 rows (imputed: {mean}), often in 2 rows (imputed: yes), "
        "text in 1 row, grade in 3 rows"
    )


def test_nothing_is_reported_where_nothing_is_missing(caplog):
    X = some_columns()
    with caplog.at_level(logging.DEBUG, logger="bristlecone"):
        tree = OptimalSurvivalTree(max_depth=1).fit(X, outcome(X))
    assert "missing" not in caplog.text
    assert "missing" not in export_text(tree)


def test_text_and_report_tell_where_missing_values_went():
    X = gaps()[["number"]]
    tree = OptimalSurvivalTree(max_depth=1).fit(X, outcome(X))
    feature = tree.encoder_.features_[tree.tree_.feature[0]]
    assert feature.missing  # most numbers are below the threshold, and so is the mean
    text = export_text(tree)
    assert text.startswith(f"{feature.name} (or missing)\n")
    rows = tree.tree_.n_node_samples[1]
    reported = (
        f"number in 5 rows (imputed: {X['number'].mean():.6g}); by leaf: 5 of {rows} rows of leaf 1"
    )
    assert text.endswith(f"\nmissing in training: {reported}\n")
    report = html_report(tree)
    assert f"Missing values in the training data: {reported}." in report
    assert "(or missing)" in report
    branch = OptimalSurvivalTree(max_depth=1, encoder=BinaryEncoder(missing="branch"))
    text = export_text(branch.fit(X, outcome(X)))
    assert "(or missing)" not in text
    rows = branch.tree_.n_node_samples[2]
    reported = f"number in 5 rows; by leaf: 5 of {rows} rows of leaf 2"
    assert text.endswith(f"\nmissing in training: {reported}\n")


@pytest.mark.parametrize("kind", [OptimalSurvivalTree, GreedySurvivalTree])
@pytest.mark.parametrize("treatment", ["impute", "branch"])
def test_rows_without_a_tested_value_are_counted_in_every_node(kind, treatment):
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(200, 3)), columns=list("abc"))
    hazard = np.exp(X["a"] + X["b"] * (X["a"] > 0))
    y = np.rec.fromarrays([rng.random(200) < 0.8, rng.exponential(1 / hazard)], names="e,t")
    X = X.mask(rng.random(X.shape) < 0.2)
    weight = rng.integers(0, 3, 200).astype(float)
    tree = kind(max_depth=3, encoder=BinaryEncoder(missing=treatment)).fit(X, y, weight)
    known, lacks = X[weight > 0].reset_index(drop=True), X[weight > 0].isna().to_numpy()
    found, path = tree.tree_, tree.decision_path(known).toarray().astype(bool)
    asks_whether = [d.kind == "missing" for d in feature_decisions(tree.encoder_)]
    expected = np.zeros(found.node_count, dtype=int)
    without = np.zeros(path.shape, dtype=bool)
    for node in np.flatnonzero(~found.is_leaf):
        if not asks_whether[found.feature[node]]:
            without[:, node] = path[:, node] & lacks[:, found.column[node]]
        expected[node] = without[:, node].sum()
    for leaf in found.leaves:
        expected[leaf] = without[path[:, leaf]].any(axis=1).sum()
    assert found.n_missing.tolist() == expected.tolist()
    assert expected[found.leaves].sum() > 5
    table = tree.leaf_table()
    assert table["n_missing"].tolist() == expected[found.leaves].tolist()
    first = found.leaves[np.flatnonzero(expected[found.leaves])[0]]
    reported = f"{expected[first]} of {found.n_node_samples[first]} rows of leaf {first}"
    for text in (export_text(tree), html_report(tree), " ".join(tree.describe().split())):
        assert reported in text
    again = loads(dumps(tree)).tree_
    assert again.n_missing.tolist() == found.n_missing.tolist()
    # New rows are counted separately.
    twice = tree.reestimate(pd.concat([known, known]), np.tile(y[weight > 0], 2))
    assert twice.tree_.n_missing.tolist() == (2 * expected).tolist()


# --- cross-validation ---------------------------------------------------------------------------


def test_folds_whose_training_rows_are_complete_are_scored():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=50), "b": rng.normal(size=50)})
    X.loc[9, "a"] = np.nan  # in one fold only, missing first at prediction
    y = (X["b"] > 0).to_numpy()
    for missing in ("impute", "branch"):
        tree = OptimalTreeClassifier(max_depth=1, encoder=BinaryEncoder(missing=missing))
        assert np.isfinite(cross_val_score(tree, X, y, cv=KFold(5), error_score="raise")).all()


QUICK = ("prostate", "cancer", "mgus")


def survset():
    return pytest.importorskip("SurvSet.data", reason="SurvSet is not installed").SurvLoader()


def check_folds(loader, name):
    frame = loader.load_dataset(ds_name=name)["df"]
    X = frame.drop(columns=["pid", "event", "time", "time2"], errors="ignore")
    # wide sets are reduced, but every column with missing values is kept
    X = X[[c for k, c in enumerate(X) if k < 60 or X[c].isna().any()]]
    y = np.empty(len(X), dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = frame["event"] == 1, frame["time"]
    tree = OptimalSurvivalTree(max_depth=1, encoder=BinaryEncoder(n_thresholds=4))
    cv = KFold(5, shuffle=True, random_state=0)
    scores = cross_val_score(tree, X, y, cv=cv, error_score="raise")
    assert np.isfinite(scores).all()
    return bool(X.isna().any(axis=None))


old_pickles = pytest.mark.filterwarnings("ignore:numpy.core:DeprecationWarning")


@old_pickles
@pytest.mark.filterwarnings("ignore::bristlecone.exceptions.ColumnWarning")
@pytest.mark.parametrize("name", QUICK)
def test_cross_validation_of_a_set_with_missing_values(name):
    assert check_folds(survset(), name)


@old_pickles
@pytest.mark.slow
# If there are many levels, rare ones are merged or count as average.
@pytest.mark.filterwarnings("ignore::bristlecone.exceptions.ColumnWarning")
@pytest.mark.filterwarnings("ignore::bristlecone.exceptions.ConstantFeatureWarning")
# Folds of the smallest sets cannot be split into leaves with five events.
@pytest.mark.filterwarnings("ignore::bristlecone.exceptions.SmallSampleWarning")
@pytest.mark.filterwarnings("ignore::bristlecone.exceptions.EventFreeWarning")
def test_cross_validation_of_every_set():
    loader = survset()
    with_gaps = [name for name in loader.df_ds["ds"] if check_folds(loader, name)]
    assert len(with_gaps) >= 16


def test_a_column_without_values_gives_a_warning():
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "b": [math.nan] * 4})
    with pytest.warns(ColumnWarning, match="these columns have no values and cannot be split: 'b'"):
        OptimalTreeClassifier(max_depth=1).fit(X, [0, 0, 1, 1])


def test_a_warning_names_a_column_whose_single_value_replaces_its_missing_ones():
    flag = pd.array([True, None, True, None], dtype="boolean")
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0, 4.0], "k": flag, "n": [2.5, None, None, 2.5]})
    with pytest.warns(ColumnWarning) as caught:
        BinaryEncoder().fit(X)
    assert [str(one.message).split(" has ")[0] for one in caught] == ["column 'k'", "column 'n'"]
    said = str(caught[0].message)
    assert "the single value True, which also replaces the missing value of 2 rows" in said
    assert "missing='branch'" in said
    assert {"k", "n is missing"} <= set(names(BinaryEncoder(missing="branch").fit(X)))
    rare = pd.DataFrame({"k": pd.array([True] * 199 + [None], dtype="boolean")})
    assert names(BinaryEncoder().fit(rare)) == []  # too few for the feature "is missing"
