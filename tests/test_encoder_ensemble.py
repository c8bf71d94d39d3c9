"""Thresholds that boosted trees choose: their places, what they depend on, and who passes y."""

import inspect
import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from contract.subjects import SUBJECTS
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.feature_selection import SelectKBest, chi2
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from bristlecone import (
    GreedySurvivalTree,
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    load_model,
    outcome,
    save_model,
)
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.ensemble import guess_gaps
from bristlecone._encoder.features import Missing, Threshold
from bristlecone._encoder.scores import outcome_scores
from bristlecone.exceptions import ConstantFeatureWarning, InvalidParameterError
from bristlecone.trust import stability, verify
from bristlecone.tune import TreeSizeCV

SEARCHED = {
    name: subject
    for name, subject in SUBJECTS.items()
    if "encoder" in inspect.signature(subject.cls).parameters
}


def guessing(**parameters):
    return BinaryEncoder(thresholds="ensemble", **parameters)


def names(encoder):
    return encoder.get_feature_names_out().tolist()


def cuts(encoder, column):
    features = [f for f in encoder.features_ if isinstance(f, Threshold)]
    return [feature.value for feature in features if feature.column == column]


def planted(n=500, seed=0, at=37.3):
    """Columns. Only "dose" matters: the hazard changes at one of its thresholds."""
    rng = np.random.default_rng(seed)
    columns = {name: rng.uniform(0, 100, n) for name in ("age", "dose", "size")}
    X = pd.DataFrame(columns).round(1)
    time = rng.exponential(np.where(X["dose"] <= at, 1.0, 8.0))
    limit = rng.uniform(0, 10, n)
    return X, outcome(time <= limit, np.minimum(time, limit))


def mixed(n=240, seed=0):
    """Numbers with gaps, flags, text and an ordered column, and survival outcomes."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(
        {
            "age": rng.normal(60, 10, n).round(),
            "count": rng.integers(0, 30, n),
            "flag": rng.random(n) < 0.4,
            "text": rng.choice(["u", "v", "w"], n),
            "grade": pd.Categorical(rng.choice(["I", "II", "III"], n), ordered=True),
        }
    )
    rate = np.exp(0.05 * (X["age"] - 60) - 1.0 * X["flag"] + (X["count"] > 11))
    time, limit = rng.exponential(1 / rate), rng.exponential(1.5, n)
    X.loc[rng.random(n) < 0.2, "age"] = np.nan
    return X, outcome(time <= limit, np.minimum(time, limit).round(2) + 0.01)


# --- where the thresholds are ---------------------------------------------------------------------


def test_thresholds_are_midpoints_of_neighbouring_training_values():
    X, y = mixed()
    encoder = guessing(n_thresholds=100).fit(X, y)
    every = set(names(BinaryEncoder(thresholds="midpoints", min_support=0).fit(X)))
    found = [f for f in encoder.features_ if isinstance(f, Threshold)]
    assert 0 < len(found) < 30
    assert {feature.name for feature in found} <= every
    for feature in found:
        values = np.unique(X[feature.column].dropna())
        below, above = values[values <= feature.value].max(), values[values > feature.value].min()
        assert feature.value == (below + above) / 2


def test_other_columns_are_encoded_as_always():
    X, y = mixed()
    numeric = ["age", "count"]
    for settings in (
        {},
        {"missing": "branch"},
        {"max_categories": 2, "categories": "levels", "n_thresholds": 1},
    ):
        encoder, plain = guessing(**settings).fit(X, y), BinaryEncoder(**settings).fit(X)
        rest, usual = (
            [f.name for f in one.features_ if not isinstance(f, Threshold)]
            for one in (encoder, plain)
        )
        assert rest == usual
        assert encoder.columns_ == plain.columns_
        assert cuts(encoder, numeric[0]) != cuts(plain, numeric[0])


@pytest.mark.parametrize("seed", range(4))
def test_a_planted_threshold_is_found_among_few_features(seed):
    X, y = planted(seed=seed)
    encoder = guessing().fit(X, y)
    values = np.unique(X["dose"])
    low, high = values[values <= 37.3].max(), values[values > 37.3].min()
    assert (low + high) / 2 in cuts(encoder, "dose")
    assert encoder.n_features_out_ < BinaryEncoder().fit(X).n_features_out_
    assert cuts(guessing(n_thresholds=1).fit(X, y), "dose") == [(low + high) / 2]
    stump = OptimalSurvivalTree(max_depth=1, encoder=guessing()).fit(X, y)
    assert stump.tree_.threshold[0] == (low + high) / 2
    plain = OptimalSurvivalTree(max_depth=1, encoder=BinaryEncoder()).fit(X, y)
    assert stump.objective_value_ < plain.objective_value_


def test_the_ensemble_is_gradient_boosting_of_squared_error():
    rng = np.random.default_rng(1)
    ranks = [rng.permutation(200) for _ in range(3)]
    score = (ranks[0] > 120) + 0.5 * (ranks[1] > 50) + rng.normal(0, 0.2, 200)
    boosted = GradientBoostingRegressor(
        n_estimators=40, max_depth=1, learning_rate=0.1, min_weight_fraction_leaf=0.05,
        random_state=0,
    ).fit(np.column_stack(ranks), score)  # fmt: skip
    expected = [set(), set(), set()]
    for tree in boosted.estimators_[:, 0]:
        for column, cut in zip(tree.tree_.feature, tree.tree_.threshold, strict=True):
            if column >= 0:
                expected[column].add(int(np.floor(cut)))
    found = guess_gaps(ranks, [199] * 3, score[:, None], None, most=200, min_support=0.05)
    kept = [set(gaps.tolist()) for gaps in found]
    assert all(own <= whole for own, whole in zip(kept, expected, strict=True))
    assert 120 in kept[0]
    assert 50 in kept[1]


def test_a_column_beside_one_that_says_it_all_is_not_cut():
    rng = np.random.default_rng(0)
    number = rng.normal(size=300)
    X = pd.DataFrame({"flag": number > 0.3, "number": number, "noise": rng.normal(size=300)})
    encoder = guessing().fit(X, np.where(X["flag"], "yes", "no"))
    assert names(encoder) == ["flag"]
    assert encoder.constant_features_in_ == []


def test_most_thresholds_and_features_are_respected():
    X, y = planted()
    for most in (1, 2, 5):
        encoder = guessing(n_thresholds=most).fit(X, y)
        assert max(len(cuts(encoder, column)) for column in X) <= most
    assert guessing(max_features=3).fit(X, y).n_features_out_ == 3
    share = guessing(min_support=0.2).fit(X, y).transform(X).mean(axis=0)
    assert ((share >= 0.2) & (share <= 0.8)).all()


def test_equal_outcomes_give_no_threshold_and_a_tree_of_one_leaf():
    X = pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20.0) % 3})
    encoder = guessing().fit(X, np.ones(20))
    assert (names(encoder), encoder.constant_features_in_) == ([], [])
    with pytest.warns(ConstantFeatureWarning, match="nothing is left to split on"):
        tree = OptimalTreeRegressor(encoder=guessing()).fit(X, np.ones(20))
    assert tree.n_leaves_ == 1


def test_a_single_value_is_a_constant_column():
    X = pd.DataFrame({"a": np.arange(20.0), "b": 1.5})
    encoder = guessing().fit(X, np.arange(20) > 8)
    assert encoder.constant_features_in_ == ["b"]


# --- weights, order, missing values ---------------------------------------------------------------


def test_weights_count_as_repetition_and_the_order_of_rows_does_not_matter():
    X, y = mixed()
    rng = np.random.default_rng(0)
    weight = rng.integers(0, 4, len(X))
    repeated = rng.permutation(np.repeat(np.arange(len(X)), weight))
    weighted = guessing().fit(X, y, sample_weight=weight)
    again = guessing().fit(X.iloc[repeated].reset_index(drop=True), y[repeated])
    assert names(weighted) == names(again)
    assert names(weighted) != names(guessing().fit(X, y))
    shuffled = rng.permutation(len(X))
    own = rng.uniform(0.5, 2, len(X))
    one = guessing().fit(X, y, sample_weight=own)
    other = guessing().fit(X.iloc[shuffled].reset_index(drop=True), y[shuffled], own[shuffled])
    assert names(one) == names(other)


def test_fits_are_deterministic():
    X, y = mixed()
    np.random.seed(0)  # noqa: NPY002 (nothing may depend on it)
    first = guessing().fit(X, y).to_dict()
    np.random.seed(1)  # noqa: NPY002 (nothing may depend on it)
    assert guessing().fit(X, y).to_dict() == first


def test_imputed_values_place_no_threshold():
    rng = np.random.default_rng(0)
    n = 400
    number = rng.permutation(np.arange(n, dtype=float))
    gap = rng.random(n) < 0.3
    # The hazard depends on whether the value is missing, which no threshold may express.
    y = np.where(gap, "ill", "well")
    X = pd.DataFrame({"number": np.where(gap, np.nan, number), "flag": rng.random(n) < 0.5})
    encoder = guessing(n_thresholds=50).fit(X, y)
    fill = encoder.columns_[0].fill
    values = np.unique(X["number"].dropna())
    around = [values[values < fill].max(), values[values > fill].min()]
    inside = [cut for cut in cuts(encoder, "number") if around[0] < cut < around[1]]
    assert len(inside) <= 1
    asked = guessing(missing="branch").fit(X, y)
    assert names(asked) == ["number is missing", "flag"]
    assert isinstance(asked.features_[0], Missing)


def test_thresholds_of_a_column_with_gaps_are_between_observed_values():
    X, y = mixed()
    for missing in ("impute", "branch"):
        encoder = guessing(missing=missing).fit(X, y)
        values = np.unique(X["age"].dropna())
        middle = (values[:-1] + values[1:]) / 2
        assert cuts(encoder, "age")
        assert set(cuts(encoder, "age")) <= set(middle)
        answers = encoder.transform(pd.DataFrame({name: [None] for name in X}))
        reported = [bool(feature.missing) for feature in encoder.features_]
        assert answers[0].tolist() == reported


# --- outcomes -------------------------------------------------------------------------------------


def test_survival_scores_are_martingale_residuals_with_delayed_entry():
    event = np.array([True, False, True, True])
    time, entry = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 0.0, 1.5, 2.0])
    hazard = {1.0: 1 / 2, 3.0: 1 / 2, 4.0: 1.0}
    expected = [
        event[i] - sum(h for t, h in hazard.items() if entry[i] < t <= time[i]) for i in range(4)
    ]
    found = outcome_scores(outcome(event, time, entry), 4, None)
    assert found[:, 0] == pytest.approx(expected, abs=1e-12)
    without = outcome_scores((event, time), 4, None)
    assert without.sum() == pytest.approx(0.0, abs=1e-12)
    assert not np.allclose(found, without)


def test_survival_outcomes_of_every_form_give_the_same():
    X, y = mixed()
    expected = names(guessing().fit(X, y))
    frame = pd.DataFrame({"event": y["event"], "time": y["time"]})
    for form in (frame, pl.from_pandas(frame), (y["event"], y["time"])):
        assert names(guessing().fit(X, form)) == expected


def test_labels_of_every_form_give_the_same():
    X, y = mixed()
    label = y["event"]
    expected = names(guessing().fit(X, label))
    text = np.where(label, "yes", "no")
    forms = (
        label.astype(int), label.astype(float), text, text.astype(object), pd.Series(text),
        pd.DataFrame({"y": text}), pl.Series(text), label.tolist(),
    )  # fmt: skip
    for form in forms:
        assert names(guessing().fit(X, form)) == expected


def test_scores_of_labels_and_numbers():
    three = outcome_scores(["b", "a", "c", "a"], 4, None)
    assert three.tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 1], [1, 0, 0]]
    assert outcome_scores([3, 1, 3], 3, None).tolist() == [[1], [0], [1]]
    assert outcome_scores([3.0, 1.5, 3.0], 3, None).tolist() == [[3], [1.5], [3]]
    many = np.arange(25)
    assert outcome_scores(many, 25, None).tolist() == many[:, None].tolist()
    text = np.array([f"class {k:02}" for k in many])
    weight = np.where(many < 5, 1.0, 2.0)
    frequent = outcome_scores(text, 25, weight)
    assert frequent.shape == (25, 20)
    assert frequent.sum(axis=1).tolist() == [0.0] * 5 + [1.0] * 20
    table = np.arange(6.0).reshape(3, 2)
    assert outcome_scores(table, 3, None).tolist() == table.tolist()


@pytest.mark.parametrize(
    ("y", "reported"),
    [
        (None, "thresholds='ensemble' requires y to be passed"),
        (np.zeros(3), "X has 4 rows but y has 3"),
        (outcome([1, 0], [1.0, 2.0]), "X has 4 rows but y has 2"),
        ([1.0, np.nan, 2.0, 3.0], "y contains NaN or infinity: nan in row 1"),
        (np.array(["a", None, "b", "a"], dtype=object), "y is missing in row 1"),
        (np.zeros((3, 2)), r"y has shape \(3, 2\); expected \(4, 2\)"),
        (pd.DataFrame({"a": [1.5] * 4, "b": [2.5] * 4}), "y has the columns 'a', 'b'"),
    ],
)
def test_outcomes_that_do_not_fit_are_reported(y, reported):
    with pytest.raises(ValueError, match=reported):
        guessing().fit(np.arange(4.0)[:, None], y)


def test_rows_in_another_order_and_unknown_methods_are_reported():
    X, y = pd.DataFrame({"a": [1.0, 2.0, 3.0]}), pd.Series([1.0, 2.0, 3.0], index=[2, 1, 0])
    with pytest.raises(ValueError, match="X and sample_weight have the same index in another"):
        BinaryEncoder().fit(X, sample_weight=y)
    with pytest.raises(ValueError, match="X and y have the same index in another order"):
        guessing().fit(X, y)
    with pytest.raises(InvalidParameterError, match=r"thresholds must be .*'ensemble'"):
        BinaryEncoder(thresholds="ensembles").fit(X)


# --- with trees -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SEARCHED)
def test_every_estimator_hands_its_outcomes_over(name, tmp_path):
    subject = SEARCHED[name]
    study = subject.study(mixed=True)
    tree = study.fit(subject.make(encoder=guessing(n_thresholds=4)))
    assert tree.encoder_.thresholds == "ensemble"
    every = BinaryEncoder(thresholds="midpoints", min_support=0).fit(study.X)
    assert 0 < len([f for f in tree.encoder_.features_ if isinstance(f, Threshold)]) < 20
    assert set(names(tree.encoder_)) <= set(names(every))
    assert names(study.fit(clone(tree)).encoder_) == names(tree.encoder_)
    if "files" in subject.cannot:
        return
    save_model(tree, tmp_path / "tree.json")
    loaded = load_model(tmp_path / "tree.json")
    assert loaded.encoder_.to_dict() == tree.encoder_.to_dict()
    for method, found in subject.predicted(tree, study.X).items():
        np.testing.assert_array_equal(found, subject.predicted(loaded, study.X)[method])


def test_trees_guess_as_the_encoder_does_alone():
    X, y = mixed()
    alone = names(guessing().fit(X, y))
    for tree in (
        OptimalSurvivalTree(max_depth=1, encoder=guessing()),
        OptimalSurvivalTree(max_depth=1, encoder=guessing(), objective="brier"),
        GreedySurvivalTree(max_depth=1, encoder=guessing()),
    ):
        assert names(tree.fit(X, y).encoder_) == alone
    label = np.where(y["event"], 7, 3)
    tree = OptimalTreeClassifier(max_depth=1, encoder=guessing()).fit(X, label)
    assert names(tree.encoder_) == names(guessing().fit(X, label))
    tree = OptimalTreeRegressor(max_depth=1, encoder=guessing()).fit(X, y["time"])
    assert names(tree.encoder_) == names(guessing().fit(X, y["time"]))


def test_weights_and_rows_of_weight_zero_reach_the_encoder():
    X, y = mixed()
    weight = np.random.default_rng(0).integers(0, 4, len(X))
    tree = OptimalSurvivalTree(max_depth=1, encoder=guessing()).fit(X, y, sample_weight=weight)
    assert names(tree.encoder_) == names(guessing().fit(X, y, sample_weight=weight))


class Recorder(TransformerMixin, BaseEstimator):
    """A custom transformer that learns from outcomes."""

    def fit(self, X, y=None):
        self.y_ = y
        return self

    def transform(self, X):
        return np.asarray(X) > 0

    def get_feature_names_out(self, names=None):
        return np.array(["positive"], dtype=object)


def test_transformers_of_the_users_own_get_the_outcomes():
    X = np.linspace(-1, 1, 40)[:, None]
    y = outcome([1, 0] * 20, np.arange(1.0, 41.0))
    tree = OptimalSurvivalTree(max_depth=1, encoder=Recorder()).fit(X, y)
    np.testing.assert_array_equal(tree.encoder_.y_, y)
    tree = OptimalTreeRegressor(max_depth=1, encoder=Recorder()).fit(X, y["time"])
    np.testing.assert_array_equal(tree.encoder_.y_, y["time"])
    chosen = make_pipeline(guessing(), SelectKBest(chi2, k=2))
    X, y = mixed()
    tree = OptimalTreeClassifier(max_depth=2, encoder=chosen).fit(X, y["event"])
    assert tree.n_binary_features_ == 2


def test_pipelines_and_cross_validation_fit_the_encoder_to_the_training_rows():
    X, y = mixed()
    tree = OptimalSurvivalTree(max_depth=2, encoder=guessing())
    assert cross_val_score(tree, X, y, cv=3).shape == (3,)
    search = TreeSizeCV(tree, cv=3).fit(X, y)
    assert names(search.best_estimator_.encoder_) == names(guessing().fit(X, y))
    pipeline = make_pipeline(guessing(), OptimalTreeClassifier(max_depth=2, encoder="auto"))
    pipeline.fit(X, y["event"])
    assert pipeline.predict(X).shape == (len(X),)


def test_trust_and_texts_know_guessed_thresholds():
    X, y = mixed()
    tree = OptimalSurvivalTree(max_depth=2, encoder=guessing()).fit(X, y)
    assert verify(tree, X, y).ok
    assert stability(tree, X, y, n_resamples=3).n_resamples == 3
    text = " ".join(tree.describe().split())
    assert "boosted trees fitted to the outcomes" in text
    assert "optimal among trees over these" in text


def test_new_rows_and_files():
    X, y = mixed()
    encoder = guessing(missing="branch").fit(X, y)
    again = BinaryEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert again.get_params() == encoder.get_params()
    new, _ = mixed(seed=9)
    np.testing.assert_array_equal(again.transform(new), encoder.transform(new))
    np.testing.assert_array_equal(guessing().fit_transform(X, y), guessing().fit(X, y).transform(X))
    for feature, answer in zip(encoder.features_, encoder.transform(new).T, strict=True):
        if isinstance(feature, Threshold):
            np.testing.assert_array_equal(answer, new[feature.column] <= feature.value)


def test_only_guessed_thresholds_require_outcomes():
    assert guessing().__sklearn_tags__().target_tags.required
    assert not BinaryEncoder().__sklearn_tags__().target_tags.required
