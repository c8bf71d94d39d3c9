"""``TreeSizeCV``: every score equals that of a single fit."""

import logging
import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from pace import slow_but
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    cross_val_score,
)
from sklearn.pipeline import make_pipeline
from survival_rows import sample
from tuned_trees import (
    CASES,
    PLAIN,
    classifier_case,
    numbers,
    plain_folds,
    plain_score,
    taken,
)

import bristlecone
from bristlecone import (
    BinaryEncoder,
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    PolicyTree,
    SoftSurvivalTree,
    metrics,
)
from bristlecone.exceptions import InfeasibleError, InvalidParameterError
from bristlecone.metrics._scorers import SCORERS
from bristlecone.tune import TreeSizeCV, evaluate
from bristlecone.tune._folds import corrected_error, standard_error


@pytest.mark.parametrize("case", CASES)
def test_scores_are_those_of_single_fits_of_every_size(case):
    tree, X, y, more, strata = case()
    search = TreeSizeCV(tree, cv=3).fit(X, y, **more)
    results = search.cv_results_
    assert results["n_leaves"].tolist() == list(range(1, len(search.size_path_) + 1))
    assert len(results["n_leaves"]) >= 3
    for fold, (train, test) in enumerate(plain_folds(strata, len(X))):
        for place, leaves in enumerate(results["n_leaves"]):
            alone = clone(tree).set_params(max_leaf_nodes=int(leaves))
            known, held = (
                {name: values[rows] for name, values in more.items()} for rows in (train, test)
            )
            alone.fit(taken(X, train), y[train], **known)
            expected = plain_score(alone, taken(X, test), y[test], held)
            assert results[f"split{fold}_test_score"][place] == pytest.approx(expected, rel=1e-12)
    for place, leaves in enumerate(results["n_leaves"]):
        alone = clone(tree).set_params(max_leaf_nodes=int(leaves)).fit(X, y, **more)
        assert results["objective"][place] == pytest.approx(alone.objective_value_, rel=1e-12)


@pytest.mark.parametrize("case", CASES)
def test_the_chosen_tree_is_the_single_fit_of_its_size(case):
    tree, X, y, more, _ = case()
    search = TreeSizeCV(tree, cv=3, rule="best").fit(X, y, **more)
    mean = search.cv_results_["mean_test_score"]
    assert search.best_index_ == int(np.argmax(mean))
    assert (search.best_n_leaves_, search.best_score_) == (search.best_index_ + 1, mean.max())
    assert search.best_estimator_ is search.size_path_[search.best_index_]
    alone = clone(tree).set_params(max_leaf_nodes=search.best_n_leaves_).fit(X, y, **more)
    np.testing.assert_array_equal(search.apply(X), alone.apply(X))
    np.testing.assert_array_equal(search.predict(X), alone.predict(X))
    assert search.score(X, y, **more) == pytest.approx(plain_score(alone, X, y, more), rel=1e-12)
    assert search.tree_ is search.best_estimator_.tree_
    assert list(search.leaf_table()["leaf"]) == alone.tree_.leaves.tolist()
    methods = " ".join(search.describe().split())
    assert search.describe() == search.best_estimator_.describe()
    assert f"Size: at most {search.best_n_leaves_} lea" in methods
    assert "120 rows with 3 folds; metric: the score of the estimator; rule: the size" in methods
    assert f"mean score of the chosen size: {mean.max():.4g}" in methods
    assert search.get_n_leaves() == search.n_leaves_ == alone.n_leaves_


def test_folds_do_not_warn_of_columns_that_differ_from_those_of_all_rows():
    X, y = sample(90)
    # In a fold that leaves out the first row, the column contains only numbers stored as text.
    X = X.assign(grade=["missing", *(str(k % 3) for k in range(1, 90))])
    search = TreeSizeCV(OptimalSurvivalTree(max_depth=1), cv=3).fit(X, y)
    assert search.n_splits_ == 3


@pytest.mark.slow
def test_every_metric_has_its_columns_and_one_of_them_chooses():
    X, y = sample(200)
    search = TreeSizeCV(OptimalSurvivalTree(**PLAIN), scoring=SCORERS, cv=4, rule="best")
    found = clone(search).fit(X, y)
    for name in SCORERS:
        values = np.array([found.cv_results_[f"split{k}_test_{name}"] for k in range(4)])
        np.testing.assert_allclose(found.cv_results_[f"mean_test_{name}"], values.mean(axis=0))
        np.testing.assert_allclose(found.cv_results_[f"std_test_{name}"], values.std(axis=0))
        np.testing.assert_allclose(
            found.cv_results_[f"se_test_{name}"], values.std(axis=0, ddof=1) / 2
        )
        alone = TreeSizeCV(OptimalSurvivalTree(**PLAIN), scoring=name, cv=4, rule="best").fit(X, y)
        if name == "likelihood":
            likely = alone
        np.testing.assert_array_equal(
            alone.cv_results_["mean_test_score"], found.cv_results_[f"mean_test_{name}"]
        )
    chosen = clone(search).set_params(refit="likelihood").fit(X, y)
    assert chosen.best_index_ == likely.best_index_
    assert chosen.score(X, y) == metrics.likelihood_scorer(chosen.best_estimator_, X, y)
    assert found.best_score_ == found.cv_results_["mean_test_concordance"].max()
    frame = pd.DataFrame(found.cv_results_)
    assert frame.shape == (4, 2 + len(SCORERS) * (4 + 4))


def test_the_rule_takes_the_smallest_size_within_one_standard_error(monkeypatch):
    X, y = sample(200)
    # Scores by number of leaves, which differ between folds only by a shift.
    curve = {1: 0.5, 2: 0.57, 3: 0.6, 4: 0.61}
    shifts = iter(np.repeat([-0.02, -0.01, 0.0, 0.01, 0.02], 4))

    def score(tree, X, y):
        return curve[tree.max_leaf_nodes] + next(shifts)

    rule = "one-standard-error"
    search = TreeSizeCV(OptimalSurvivalTree(**PLAIN), scoring=score, rule=rule).fit(X, y)
    assert search.best_n_leaves_ == 4
    # The standard error, 0.0158 / sqrt(5) = 0.0071, is less than the step to three leaves.
    np.testing.assert_allclose(search.cv_results_["se_test_score"], 0.01 * np.sqrt(0.5))
    curve[3] = 0.6035
    shifts = iter(np.repeat([-0.02, -0.01, 0.0, 0.01, 0.02], 4))
    search.fit(X, y)
    assert search.best_n_leaves_ == 3
    assert search.best_score_ == pytest.approx(0.6035)
    assert search.cv_results_["rank_test_score"].tolist() == [4, 3, 2, 1]


def test_standard_errors_of_repeats_know_no_more_rows():
    rng = np.random.default_rng(0)
    n, scores = 60, rng.normal(size=(15, 2))
    strata = rng.integers(0, 2, n)
    cv = RepeatedStratifiedKFold(n_splits=5, n_repeats=3, random_state=0)
    folds = list(cv.split(np.zeros(n), strata))
    variance = np.mean([scores[k : k + 5].var(axis=0, ddof=1) for k in (0, 5, 10)], axis=0)
    np.testing.assert_allclose(standard_error(scores, folds, n), np.sqrt(variance / 5))
    splits = list(ShuffleSplit(15, test_size=0.5, random_state=0).split(np.zeros(n)))
    np.testing.assert_allclose(
        standard_error(scores, splits, n), scores.std(axis=0, ddof=1) / np.sqrt(15)
    )
    assert np.isnan(standard_error(scores[:1], folds[:1], n)).all()
    differences = scores[:, 0]
    expected = np.sqrt((1 / 15 + 12 / 48) * differences.var(ddof=1))
    assert corrected_error(differences, folds) == pytest.approx(expected)


def test_repeats_are_those_of_scikit_learn_and_other_seeds_other_folds():
    X, y = sample(120)
    tree = OptimalSurvivalTree(max_depth=1)
    repeated = TreeSizeCV(tree, cv=3, n_repeats=2, random_state=5).fit(X, y)
    splitter = RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=5)
    same = TreeSizeCV(tree, cv=splitter).fit(X, y)
    pairs = TreeSizeCV(tree, cv=list(splitter.split(X, y["dead"]))).fit(X, y)
    for other in (same, pairs):
        assert other.n_splits_ == repeated.n_splits_ == 6
        for name, values in repeated.cv_results_.items():
            np.testing.assert_array_equal(values, other.cv_results_[name])
    assert "120 rows with 2 repeats of 3 folds; metric" in " ".join(repeated.describe().split())
    again, other = (TreeSizeCV(tree, cv=3, random_state=seed).fit(X, y) for seed in (0, 1))
    default = TreeSizeCV(tree, cv=3).fit(X, y)
    assert default.best_score_ == again.best_score_
    assert (
        default.cv_results_["split0_test_score"] != other.cv_results_["split0_test_score"]
    ).any()


def test_groups_go_to_the_splitter():
    X, y = sample(120)
    groups = np.arange(120) // 10
    search = TreeSizeCV(OptimalSurvivalTree(max_depth=1), cv=GroupKFold(3))
    found = search.fit(X, y, groups=groups)
    folds = list(GroupKFold(3).split(X, groups=groups))
    same = clone(search).set_params(cv=folds).fit(X, y)
    assert found.best_score_ == same.best_score_
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(clone(search)).fit(X, y, groups=groups)
        assert pipeline[0].best_score_ == same.best_score_
    with pytest.raises(InvalidParameterError, match="groups need a splitter"):
        TreeSizeCV(OptimalSurvivalTree()).fit(X, y, groups=groups)


def test_folds_may_be_masks():
    X, y = sample(60)
    test = np.arange(60) % 3 == 0
    masks, places = [(~test, test)], [(np.flatnonzero(~test), np.flatnonzero(test))]
    for rows in (X, X.to_numpy().tolist()):
        found, expected = (
            evaluate(OptimalSurvivalTree(max_depth=1), rows, y, cv=cv) for cv in (masks, places)
        )
        pd.testing.assert_frame_equal(found, expected)


def test_rows_are_divided_in_every_form():
    X, y = sample(90)
    weight = pd.Series(np.random.default_rng(0).uniform(1, 2, 90))
    tree = OptimalSurvivalTree(max_depth=2)
    expected = TreeSizeCV(tree, cv=3).fit(X, y, sample_weight=weight)
    frame = pd.DataFrame({"event": y["dead"], "time": y["months"]})
    forms = [
        (X, frame, weight),
        (X, (y["dead"], y["months"]), weight.to_numpy()),
        (pl.from_pandas(X), pl.from_pandas(frame), pl.Series(weight.to_numpy())),
        (X.to_numpy().tolist(), y, weight.tolist()),
    ]
    other = TreeSizeCV(tree, cv=3).fit(X, y, sample_weight=np.arange(1, 91)).cv_results_
    found = TreeSizeCV(tree, cv=3).fit(X, y, sample_weight=range(1, 91)).cv_results_
    np.testing.assert_array_equal(found["mean_test_score"], other["mean_test_score"])
    for columns, outcome, weights in forms:
        found = TreeSizeCV(tree, cv=3).fit(columns, outcome, sample_weight=weights)
        for name, values in expected.cv_results_.items():
            np.testing.assert_array_equal(values, found.cv_results_[name])
    assert isinstance(TreeSizeCV(tree, cv=3).fit(pl.from_pandas(X), y).leaf_table(), pl.DataFrame)


def test_a_path_that_ends_early_goes_on_with_its_largest_tree():
    # Only the test rows of the last fold have a row of the third kind, so its trees have two
    # leaves.
    X = np.array([[0, 0], [1, 0]] * 6 + [[1, 1]] * 3, dtype=bool)
    y = np.array([0.0, 1.0] * 6 + [5.0] * 3) + np.arange(15) / 100
    folds = [(np.arange(12), np.arange(12, 15)), (np.arange(3, 15), np.arange(3))]
    search = TreeSizeCV(OptimalTreeRegressor(max_depth=2), cv=folds).fit(X, y)
    assert len(search.size_path_) == 3
    first = search.cv_results_["split0_test_score"]
    assert first[1] == first[2] != first[0]
    assert search.cv_results_["split1_test_score"][1] != search.cv_results_["split1_test_score"][2]


def test_sizes_without_an_admissible_tree_are_left_out():
    X, gain, rng = numbers()
    treatment = rng.choice(["a", "b"], 120)
    tree = PolicyTree(reward="inverse-propensity", capacities={"a": 0.6, "b": 0.6}, max_depth=1)
    with pytest.warns(bristlecone.exceptions.InfeasibleWarning):
        search = TreeSizeCV(tree, cv=3).fit(X, gain, treatment=treatment, propensity=0.5)
    assert np.isnan(search.cv_results_["mean_test_score"]).tolist() == [True, False]
    assert search.cv_results_["rank_test_score"].tolist() == [2, 1]
    assert search.best_n_leaves_ == 2
    never = clone(tree).set_params(max_leaf_nodes=1)
    with (
        pytest.warns(bristlecone.exceptions.InfeasibleWarning),
        pytest.raises(InfeasibleError, match="no size has a tree that satisfies the constraints"),
    ):
        TreeSizeCV(never, cv=3).fit(X, gain, treatment=treatment, propensity=0.5)


def test_progress_is_reported_after_every_search():
    X, y = sample(80)
    reported = []
    TreeSizeCV(OptimalSurvivalTree(max_depth=1), cv=3).fit(
        X, y, callback=lambda done, total: reported.append((done, total))
    )
    assert reported == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.slow
def test_folds_in_processes_give_the_same_and_report_in_order(caplog):
    X, y = sample(80)
    reported = []
    alone = TreeSizeCV(OptimalSurvivalTree(max_depth=1), cv=3, scoring="ibs").fit(X, y)
    search = clone(alone).set_params(n_jobs=2, verbose=1)
    with caplog.at_level(logging.INFO, logger="bristlecone"):
        search.fit(X, y, callback=lambda done, total: reported.append((done, total)))
    assert reported == [(1, 4), (2, 4), (3, 4), (4, 4)]
    searches = [text for text in caplog.messages if text.startswith("TreeSizeCV")]
    assert searches == [f"TreeSizeCV: search {k} of 4" for k in (1, 2, 3, 4)]
    for name, values in alone.cv_results_.items():
        np.testing.assert_array_equal(search.cv_results_[name], values)
    with pytest.raises(InvalidParameterError, match="n_jobs must be an integer other than 0"):
        search.set_params(n_jobs=0).fit(X, y)


class Interrupted(OptimalSurvivalTree):
    """A tree whose searches are stopped by Ctrl-C."""

    def size_path(self, X, y, sample_weight=None, **data):
        path = super().size_path(X, y, sample_weight, **data)
        for tree in path:
            tree.certificate_ = replace(tree.certificate_, status="interrupted")
        return path

    def fit(self, X, y, sample_weight=None, **data):
        super().fit(X, y, sample_weight, **data)
        self.certificate_ = replace(self.certificate_, status="interrupted")
        return self


def test_ctrl_c_ends_a_comparison():
    X, y = sample(60)
    for model in (Interrupted(max_depth=1), make_pipeline("passthrough", Interrupted(max_depth=1))):
        with pytest.raises(KeyboardInterrupt):
            evaluate(model, X, y, cv=2)


def test_ctrl_c_ends_the_fit_and_keeps_an_earlier_one():
    X, y = sample(60)
    search = TreeSizeCV(OptimalSurvivalTree(max_depth=1), cv=2).fit(X, y)
    earlier = search.best_estimator_
    search.set_params(estimator=Interrupted(max_depth=1))
    with pytest.raises(KeyboardInterrupt):
        search.fit(X, y)
    assert search.best_estimator_ is earlier


# --- with scikit-learn ---


@pytest.mark.slow
def test_depth_penalty_and_encoder_are_searched_around_it():
    X, y = sample(120)
    grid = {
        "estimator__max_depth": [1, 2],
        "estimator__leaf_penalty": [0.01],
        "estimator__encoder__n_thresholds": [3, 5],
        "rule": ["best"],
    }
    search = TreeSizeCV(OptimalSurvivalTree(encoder=BinaryEncoder()), cv=3)
    outer = GridSearchCV(search, grid, cv=2, error_score="raise").fit(X, y)
    assert isinstance(outer.best_estimator_, TreeSizeCV)
    assert outer.predict(X).shape == (120,)
    assert metrics.uno_scorer(outer, X, y) == metrics.uno_scorer(
        outer.best_estimator_.best_estimator_, X, y
    )
    scores = cross_val_score(search, X, y, cv=3, scoring=metrics.ibs_scorer, error_score="raise")
    assert np.isfinite(scores).all()


def test_it_is_what_its_tree_is():
    assert is_classifier(TreeSizeCV(OptimalTreeClassifier()))
    assert is_regressor(TreeSizeCV(OptimalTreeRegressor()))
    survival = TreeSizeCV(OptimalSurvivalTree())
    assert not is_classifier(survival)
    assert not is_regressor(survival)
    for name in ("predict_survival_function", "leaf_table", "apply"):
        assert hasattr(survival, name)
    for name in ("predict_proba", "mean_cost", "tree_", "classes_"):
        assert not hasattr(survival, name)
    with pytest.raises(sklearn.exceptions.NotFittedError):
        survival.predict([[1.0]])
    X, y = sample(80)
    fitted = TreeSizeCV(OptimalSurvivalTree(max_depth=1), cv=2).fit(X, y)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    assert fitted.feature_names_in_.tolist() == list(X)
    assert fitted.estimator.get_params() == OptimalSurvivalTree(max_depth=1).get_params()
    assert not hasattr(fitted.estimator, "tree_")


def test_classifiers_score_by_names_of_scikit_learn():
    tree, X, y, _, strata = classifier_case()
    scoring = ["accuracy", "neg_log_loss", "roc_auc_ovr"]
    search = TreeSizeCV(tree, cv=3, scoring=scoring).fit(X, y)
    for name in scoring:
        for fold, (train, test) in enumerate(plain_folds(strata, len(X))):
            alone = clone(tree).set_params(max_leaf_nodes=3).fit(X[train], y[train])
            expected = sklearn.metrics.get_scorer(name)(alone, X[test], y[test])
            assert search.cv_results_[f"split{fold}_test_{name}"][2] == pytest.approx(expected)
    assert search.predict_proba(X).shape == (120, 3)
    assert search.classes_.tolist() == ["high", "low", "mid"]


def test_metadata_is_routed_by_the_request_of_the_tree():
    X, gain, rng = numbers()
    treatment = rng.choice(["a", "b"], 120)
    with sklearn.config_context(enable_metadata_routing=True):
        tree = PolicyTree(reward="inverse-propensity", max_depth=1)
        tree.set_fit_request(treatment=True, propensity=True)
        tree.set_score_request(treatment=True, propensity=True)
        search = TreeSizeCV(tree, cv=3)
        params = {"treatment": treatment, "propensity": np.full(120, 0.5)}
        found = cross_val_score(search, X, gain, cv=3, params=params, error_score="raise")
    for score, (train, test) in zip(found, KFold(3).split(X), strict=True):
        known, held = ({name: x[rows] for name, x in params.items()} for rows in (train, test))
        alone = TreeSizeCV(PolicyTree(reward="inverse-propensity", max_depth=1), cv=3)
        assert alone.fit(X[train], gain[train], **known).score(
            X[test], gain[test], **held
        ) == pytest.approx(score)


@pytest.mark.parametrize(
    ("parameters", "reported"),
    [
        ({"estimator": SoftSurvivalTree()}, "size_path; SoftSurvivalTree has none"),
        ({"estimator": LogisticRegression()}, "LogisticRegression has none"),
        ({"estimator": OptimalSurvivalTree}, r"is the class .*; pass OptimalSurvivalTree\(\)"),
        ({"rule": "least"}, "rule must be one of 'best', 'one-standard-error'"),
        ({"scoring": "c-index"}, "'c-index' is not a metric; pass one of concordance, uno"),
        ({"scoring": {}}, "scoring must be"),
        ({"scoring": 3}, "scoring must be"),
        ({"refit": "uno"}, "refit must be one of 'score'"),
        ({"cv": 1}, "cv must be an integer of at least 2"),
        ({"cv": True}, "cv must be a number of folds"),
        ({"cv": 2.5}, "cv must be a number of folds"),
        ({"cv": "x"}, "cv must be a number of folds.*got 'x'"),
        ({"cv": b"x"}, "cv must be a number of folds"),
        ({"cv": np.array(3)}, "cv must be a number of folds"),
        ({"cv": KFold}, "cv must be a number of folds"),
        ({"cv": [([0], [1], [2])]}, "cv must be .* pairs of training and test rows"),
        ({"cv": []}, "yields no folds"),
        ({"cv": [([0, 1], [60])]}, "cv: the test rows of fold 1 include row 60.* 60 rows"),
        ({"cv": [([0, 1], [2]), ([-61], [3])]}, "training rows of fold 2 include row -61"),
        ({"cv": [([0, 1], [])]}, "cv: there are no test rows of fold 1"),
        ({"cv": [([0.0, 1.0], [2])]}, "cv: the training rows of fold 1 must be positions"),
        ({"cv": [([0, 1], [[2]])]}, "cv: the test rows of fold 1 must be positions"),
        ({"cv": [([True, False], [2])]}, "training rows of fold 1 must be .* or a mask of X"),
        ({"scoring": [None, partial(len)]}, "several metrics of the same name"),
        ({"cv": 61}, "cv=61 yields no folds: .*n_samples=60"),
        ({"cv": KFold(3), "n_repeats": 2}, "n_repeats needs a number of folds"),
        ({"n_repeats": 0}, "n_repeats must be an integer"),
        ({"verbose": "loud"}, "verbose must be an integer"),
        ({"random_state": "a"}, "random_state must be an integer, a RandomState or None"),
    ],
)
def test_wrong_parameters_are_named(parameters, reported):
    X, y = sample(60)
    search = TreeSizeCV(OptimalSurvivalTree(max_depth=1)).set_params(**parameters)
    with pytest.raises(InvalidParameterError, match=reported):
        search.fit(X, y)
    assert not hasattr(search, "best_estimator_")


def test_rows_that_do_not_fit_together_are_refused():
    X, y = sample(60)
    with pytest.raises(ValueError, match="X has 60 rows but y has 50"):
        TreeSizeCV(OptimalSurvivalTree()).fit(X, y[:50])
    for fit in (TreeSizeCV(OptimalSurvivalTree()).fit, partial(evaluate, OptimalSurvivalTree())):
        with pytest.raises(ValueError, match=r"sample_weight has shape \(50,\); expected \(60,\)"):
            fit(X, y, sample_weight=np.ones(50))
        with pytest.raises(ValueError, match=r"groups must have one entry per row of X \(60\)"):
            fit(X, y, groups=np.ones(50))
        # As many as a fold has training rows, which could be taken for these.
        with pytest.raises(ValueError, match="sensitive_features must have one entry per row"):
            fit(X, y, sensitive_features=["a", "b"] * 24)


def test_unknown_arguments_of_score_are_refused():
    X, y = sample(60)
    search = TreeSizeCV(OptimalSurvivalTree(max_depth=1), cv=2).fit(X, y)
    with pytest.raises(TypeError, match="'weight' is no argument of the metric or of fit"):
        search.score(X, y, weight=np.ones(60))


@pytest.mark.parametrize("n_jobs", slow_but({None}, [None, 2]))
def test_errors_of_metrics_name_the_fold(n_jobs):
    X, y = sample(60)
    rare = y.copy()
    rare["dead"] = np.arange(60) % 20 == 0
    tree = OptimalSurvivalTree(max_depth=1, min_events_leaf=1)
    for fit in (TreeSizeCV(tree, n_jobs=n_jobs).fit, partial(evaluate, tree)):
        with pytest.raises(ValueError, match=r"^fold \d of 5: no pair is comparable"):
            fit(X, rare)


def test_a_metric_returns_a_number():
    X, y = sample(60)
    search = TreeSizeCV(OptimalSurvivalTree(max_depth=1), scoring=lambda *_: np.ones(3))
    with pytest.raises(TypeError, match="scoring: a metric must return a number; got an ndarray"):
        search.fit(X, y)


def test_a_metric_that_is_nan_for_every_tree_is_named():
    X, y = sample(60)
    search = TreeSizeCV(OptimalSurvivalTree(max_depth=1), scoring=lambda *_: np.nan)
    with pytest.raises(
        ValueError, match=r"scoring: the metric 'score' is NaN for the trees of every size"
    ):
        search.fit(X, y)
    # Another metric chooses.
    scoring = {"none": lambda *_: np.nan, "own": None}
    search.set_params(scoring=scoring, refit="own").fit(X, y)
    assert np.isnan(search.cv_results_["mean_test_none"]).all()


def test_parameters_of_the_default_encoder_cannot_be_searched():
    X, y = np.arange(40)[:, None] % 7, np.arange(40) % 2
    search = GridSearchCV(OptimalTreeClassifier(), {"encoder__n_thresholds": [2, 3]}, cv=2)
    with pytest.raises(InvalidParameterError, match="encoder__n_thresholds needs an encoder obj"):
        search.fit(X, y)
    search.set_params(estimator__encoder=BinaryEncoder())
    assert search.fit(X, y).best_params_["encoder__n_thresholds"] in (2, 3)


def test_a_search_is_saved_by_its_best_estimator(tmp_path):
    X, y = np.arange(40)[:, None] % 7, np.arange(40) % 2
    search = TreeSizeCV(OptimalTreeClassifier(max_depth=1), cv=2).fit(X, y)
    with pytest.raises(TypeError, match="a TreeSizeCV cannot be saved; save its best_estimator_"):
        bristlecone.save_model(search, tmp_path / "m.json")
