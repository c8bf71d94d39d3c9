"""``evaluate`` compares estimators on the same folds."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer, max_error
from sklearn.model_selection import (
    RepeatedStratifiedKFold,
)
from survival_rows import sample
from tuned_trees import numbers, plain_folds, policy_case

from bristlecone import (
    GreedySurvivalTree,
    OptimalSurvivalTree,
    OptimalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    Task,
    metrics,
)
from bristlecone.exceptions import InvalidParameterError
from bristlecone.tune import TreeSizeCV, evaluate


def test_evaluate_scores_every_estimator_on_the_same_folds():
    X, y = sample(150)
    models = {
        "optimal": OptimalSurvivalTree(max_depth=2),
        "greedy": GreedySurvivalTree(max_depth=2),
        "tuned": TreeSizeCV(OptimalSurvivalTree(max_depth=2), cv=3),
    }
    scoring = {"C": None, "ibs": "ibs", "leaves": lambda tree, X, y: tree.n_leaves_}
    table = evaluate(models, X, y, cv=4, scoring=scoring, against="greedy")
    assert table["metric"].tolist() == ["C"] * 3 + ["ibs"] * 3 + ["leaves"] * 3
    assert table["estimator"].tolist() == list(models) * 3
    folds = plain_folds(y["dead"], 150, 4)
    for k, (train, test) in enumerate(folds):
        for name, model in models.items():
            fitted = clone(model).fit(X.iloc[train], y[train])
            row = table[(table["estimator"] == name)].set_index("metric")[f"split{k}"]
            tree = getattr(fitted, "best_estimator_", fitted)
            assert row["C"] == tree.score(X.iloc[test], y[test])
            assert row["ibs"] == metrics.ibs_scorer(tree, X.iloc[test], y[test])
            assert row["leaves"] == tree.n_leaves_
    splits = table[[f"split{k}" for k in range(4)]].to_numpy()
    np.testing.assert_allclose(table["mean"], splits.mean(axis=1))
    np.testing.assert_allclose(table["standard_error"], splits.std(axis=1, ddof=1) / 2)
    difference = splits - splits[[1, 1, 1, 4, 4, 4, 7, 7, 7]]
    np.testing.assert_allclose(table["difference"], difference.mean(axis=1), atol=1e-15)
    share = np.mean([len(test) / len(train) for train, test in folds])
    error = np.sqrt((1 / 4 + share) * difference.var(axis=1, ddof=1))
    np.testing.assert_allclose(table["nadeau_bengio_error"], error, atol=1e-15)
    assert table["difference"][1] == table["nadeau_bengio_error"][1] == 0
    alone = evaluate(OptimalSurvivalTree(max_depth=2), X, y, cv=4)
    assert alone["estimator"].tolist() == ["OptimalSurvivalTree"]
    assert alone["mean"][0] == table["mean"][0]


def test_evaluate_takes_models_of_scikit_survival_and_weights():
    tree = pytest.importorskip("sksurv.tree")
    X, y = sample(150)
    weight = np.random.default_rng(0).uniform(0.5, 2, 150)
    models = {"ours": OptimalSurvivalTree(max_depth=2), "theirs": tree.SurvivalTree(max_depth=2)}
    table = evaluate(models, X, y, weight, cv=3, scoring="concordance")
    for k, (train, test) in enumerate(plain_folds(y["dead"], 150)):
        for row, model in enumerate(models.values()):
            fitted = clone(model).fit(X.iloc[train], y[train], sample_weight=weight[train])
            expected = metrics.concordance_index_censored(
                y[test], fitted.predict(X.iloc[test]), sample_weight=weight[test]
            )
            assert table[f"split{k}"][row] == pytest.approx(expected.cindex, rel=1e-12)


def test_evaluate_compares_classifiers_and_policies():
    X, score, _ = numbers()
    y = score > 0
    models = {"tree": OptimalTreeClassifier(max_depth=2), "linear": LogisticRegression()}
    table = evaluate(models, X, y, scoring=["accuracy", "roc_auc"], n_repeats=2)
    assert type(table) is pd.DataFrame
    assert table.shape == (4, 16)
    folds = list(RepeatedStratifiedKFold(n_splits=5, n_repeats=2, random_state=0).split(X, y))
    train, test = folds[7]
    fitted = LogisticRegression().fit(X[train], y[train])
    assert table["split7"][1] == fitted.score(X[test], y[test])
    tree, X, gain, more, _ = policy_case()
    found = evaluate({"depth 2": tree, "tuned": TreeSizeCV(tree, cv=3)}, X, gain, **more)
    assert np.isfinite(found["mean"]).all()


def test_tables_are_of_the_library_of_the_rows():
    X, y = sample(80)
    for kind, rows in ((pd.DataFrame, X), (pl.DataFrame, pl.from_pandas(X))):
        assert isinstance(evaluate(OptimalSurvivalTree(max_depth=1), rows, y, cv=2), kind)


@pytest.mark.parametrize(
    ("models", "options", "reported"),
    [
        ({}, {}, "estimators is empty"),
        ([OptimalSurvivalTree()], {}, "estimators is a list; expected an estimator or a mapping"),
        ({"a": OptimalSurvivalTree()}, {"against": "b"}, "against must be one of"),
        ({"a": OptimalSurvivalTree()}, {"treatment": np.ones(60)}, "no estimator's fit takes"),
        ({"a": OptimalSurvivalTree()}, {"scoring": "speed"}, "'speed' is not a metric"),
    ],
)
def test_wrong_arguments_of_evaluate_are_named(models, options, reported):
    X, y = sample(60)
    with pytest.raises(InvalidParameterError, match=reported):
        evaluate(models, X, y, **options)


def test_a_tree_without_a_score_needs_a_metric_before_any_search():
    class Silent(Task):
        def statistics(self, X, y):
            return np.column_stack([y, y**2, np.ones(len(y))])

        def leaf_cost(self, sums):
            return sums[:, 1] - sums[:, 0] ** 2 / sums[:, 2]

    tree, X, y = (
        OptimalTree(task=Silent(), max_depth=1),
        np.arange(20)[:, None] % 2,
        np.arange(20.0),
    )
    for search in (TreeSizeCV(tree).fit, lambda X, y: evaluate(tree, X, y)):
        with pytest.raises(
            InvalidParameterError, match=r"if its task has leaf_value\); pass scoring"
        ):
            search(X, y)


def test_sizes_of_infinite_score_are_not_chosen():
    # A leaf without events predicts none, but some other row in it has one.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)), rng.poisson(0.5, 40).astype(float)
    tree = OptimalTreeRegressor(objective="poisson", max_depth=3)
    found = TreeSizeCV(tree, cv=3).fit(X, y)
    mean = found.cv_results_["mean_test_score"]
    assert mean[0] > -np.inf == mean[-1] and found.best_n_leaves_ == 1
    assert np.isnan(found.cv_results_["se_test_score"][-1])
    table = evaluate({"one": tree, "other": tree}, X, y, cv=3, against="one")
    assert (table["mean"] == -np.inf).all() and table["difference"].isna().all()


@pytest.mark.parametrize("scoring", ["neg_max_error", make_scorer(max_error)])
def test_metrics_that_take_no_weights_get_none(scoring):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.normal(size=60)
    weight = np.full(60, 2.0)
    tree = OptimalTreeRegressor(max_depth=1)
    TreeSizeCV(tree, cv=3, scoring=scoring).fit(X, y, sample_weight=weight)
    evaluate(tree, X, y, sample_weight=weight, scoring=scoring)


@pytest.mark.parametrize("scoring", ["roc_auc", "r2", "accuracy"])
def test_metrics_of_other_outcomes_are_refused_by_name(scoring):
    tree, (X, y) = OptimalSurvivalTree(max_depth=1), sample(60)
    message = f"scoring='{scoring}' cannot score an OptimalSurvivalTree on these rows: "
    with pytest.raises(InvalidParameterError, match=message):
        TreeSizeCV(tree, scoring=scoring, cv=3).fit(X, y)
    with pytest.raises(InvalidParameterError, match=message):
        evaluate(tree, X, y, scoring=[scoring], cv=3)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.DataConversionWarning")
@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_the_only_column_of_a_frame_is_no_outcome_with_times(frame):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    tree = OptimalTreeClassifier(max_depth=2)
    expected, found = (evaluate(tree, X, given)["mean"][0] for given in (y, frame({"y": y})))
    assert found == expected
    assert TreeSizeCV(tree).fit(X, frame({"y": y})).best_score_ == (
        TreeSizeCV(tree).fit(X, y).best_score_
    )


def test_arrays_of_arrow_are_given_by_row():
    rng = np.random.default_rng(0)
    X, y, exposure = rng.normal(size=(60, 2)), rng.poisson(2.0, 60), rng.uniform(0.5, 2.0, 60)
    tree = OptimalTreeRegressor(objective="poisson", max_depth=2)
    expected, found = (
        evaluate(tree, X, y, convert(exposure), exposure=convert(exposure))["mean"][0]
        for convert in (np.asarray, pa.array)
    )
    assert found == expected
