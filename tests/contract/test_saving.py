"""Copies, pickles and files have the same predictions as the fitted tree, to the last bit."""

import copy
import io
import json
import pickle
import re

import joblib
import numpy as np
import pandas as pd
import pytest
from pace import slow_but
from sklearn.base import BaseEstimator

from bristlecone import (
    CompetingRisksTree,
    CostSensitiveTreeClassifier,
    OptimalSurvivalTree,
    OptimalTreeRegressor,
    SoftSurvivalTree,
    load_model,
    save_model,
)
from bristlecone.exceptions import ModelFormatError
from bristlecone.export import export_dict, export_text
from bristlecone.trust import verify
from contract.subjects import same


def fitted_names(model):
    """Fitted attributes that are plain values or arrays."""
    names = [name for name in dir(model) if re.fullmatch(r"[a-z]\w*[a-z]_", name)]
    # In older releases of scikit-learn, names include attributes that do not exist.
    names = [name for name in names if hasattr(model, name)]
    plain = (bool, int, float, str, list, np.ndarray)
    return {name for name in names if isinstance(getattr(model, name), plain)}


def same_model(subject, model, other, study):
    assert type(other) is type(model)
    same(subject.predicted(other, study.X), subject.predicted(model, study.X))
    names = fitted_names(model)
    assert {"n_leaves_", "objective_value_", "fit_time_"} <= names
    for name in names - {"leaf_statistics_"}:
        np.testing.assert_array_equal(getattr(other, name), getattr(model, name), err_msg=name)
    assert export_text(other) == export_text(model)
    assert export_dict(other) == export_dict(model)
    assert other.describe() == model.describe()


def joblib_copy(model):
    stream = io.BytesIO()
    joblib.dump(model, stream)
    stream.seek(0)
    return joblib.load(stream)


@pytest.mark.parametrize(
    "copied",
    [
        copy.copy,
        copy.deepcopy,
        joblib_copy,
        *[lambda m, k=k: pickle.loads(pickle.dumps(m, k)) for k in (2, pickle.HIGHEST_PROTOCOL)],
    ],
    ids=["copy", "deepcopy", "joblib", "pickle 2", "pickle"],
)
def test_copies_predict_the_same(subject, copied):
    model, study = subject.fitted()
    again = copied(model)
    same_model(subject, model, again, study)
    assert repr(again) == repr(model)
    unfitted = copied(subject.make())
    assert unfitted.get_params() == subject.make().get_params()
    assert not hasattr(unfitted, "tree_")


def test_a_copy_is_fitted_on_its_own(subject):
    model, study = subject.fitted()
    before = subject.predicted(model, study.X)
    for twin in (copy.copy(model), copy.deepcopy(model)):
        subject.study(seed=5).fit(twin)
        same(subject.predicted(model, study.X), before)


def test_pickles_are_small(subject):
    model, _ = subject.fitted()
    pickled = pickle.dumps(model)
    assert len(pickled) < 60_000
    again = pickle.loads(pickled)
    assert pickle.dumps(again) == pickle.dumps(pickle.loads(pickle.dumps(again)))


def test_files_predict_the_same_to_the_last_bit(subject, tmp_path):
    path = tmp_path / "model.json"
    study, weight = subject.study(), np.random.default_rng(5).uniform(0.1, 1.0, 80)
    model = study.fit(subject.make(), sample_weight=weight)
    if "files" in subject.cannot:
        for save in (model.to_json, lambda: save_model(model, path)):
            with pytest.raises(TypeError, match=subject.cannot["files"]):
                save()
        assert not list(tmp_path.iterdir())
        return
    save_model(model, path)
    assert path.read_text(encoding="utf-8") == model.to_json()
    for again in (load_model(path), type(model).from_json(model.to_json())):
        same_model(subject, model, again, study)
        assert again.get_params() == model.get_params()
        assert again.to_json() == model.to_json()
        used = model.features_used_[0]
        with pytest.raises(ValueError, match=f"missing: '{used}'"):
            again.apply(study.X.drop(columns=used))
        assert study.fit(again).n_leaves_ > 1


def test_scalars_and_arrays_of_numpy_and_pandas_are_saved_as_plain_values(subject):
    if "files" in subject.cannot:
        pytest.skip("cannot be saved")
    plain = subject.make()
    kinds = {str: np.str_, bool: bool, int: np.int64, float: np.float64, list: pd.Series}
    numpy = {
        name: kinds[type(value)](value)
        for name, value in plain.get_params(deep=False).items()
        if type(value) in kinds
    }
    saved = json.loads(subject.study().fit(subject.make(**numpy)).to_json())
    assert saved["parameters"] == json.loads(subject.study().fit(plain).to_json())["parameters"]


@pytest.mark.parametrize("teacher", slow_but({None}, [None, "auto"]))
def test_a_random_generator_is_saved_as_the_seed_that_it_has_drawn(teacher):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(80, 2)), rng.normal(size=80)
    model = OptimalTreeRegressor(
        max_depth=1, teacher=teacher, random_state=np.random.RandomState(3)
    ).fit(X, y)
    again = OptimalTreeRegressor.from_json(model.to_json())
    assert isinstance(again.random_state, int)
    assert verify(again, X, y).ok
    assert again.to_json() == model.to_json()


def test_frames_and_series_are_saved_as_lists():
    rng = np.random.default_rng(0)
    X, time = rng.normal(size=(80, 2)), rng.exponential(size=80)
    costs = CostSensitiveTreeClassifier(max_depth=1, cost_matrix=pd.DataFrame([[0, 1], [2, 0]]))
    text = costs.fit(X, time > 1).to_json()
    assert CostSensitiveTreeClassifier.from_json(text).cost_matrix == [[0, 1], [2, 0]]
    tree = OptimalSurvivalTree(objective="brier", max_depth=1, time_grid=pd.Series([0.5, 1.0]))
    text = tree.fit(X, (np.ones(80, bool), time)).to_json()
    assert OptimalSurvivalTree.from_json(text).time_grid == [0.5, 1.0]


def test_frames_and_series_keep_the_names_of_classes_columns_and_causes_in_files():
    rng = np.random.default_rng(0)
    X, time = pd.DataFrame(rng.normal(size=(80, 2)), columns=["a", "b"]), rng.exponential(size=80)
    y = np.where(X["a"] + rng.normal(size=80) > 0, "yes", "no")
    matrix = pd.DataFrame([[0, 5], [1, 0]], index=["yes", "no"], columns=["yes", "no"])
    tree = CostSensitiveTreeClassifier(
        max_depth=1, cost_matrix=matrix, feature_costs=pd.Series({"b": 0.5, "a": 0.01})
    ).fit(X, y)
    again = CostSensitiveTreeClassifier.from_json(tree.to_json())
    assert again.cost_matrix == {"yes": [0, 5], "no": [1, 0]}
    assert again.feature_costs == {"b": 0.5, "a": 0.01}
    assert again.mean_cost(X, y) == tree.mean_cost(X, y)
    assert again.reestimate(X, y).objective_value_ == pytest.approx(tree.objective_value_)
    assert verify(again, X, y).ok
    causes = CompetingRisksTree(max_depth=1, cause_weights=pd.Series({2: 1.0, 1: 3.0}))
    text = causes.fit(X, (np.resize([0, 1, 2], 80), time)).to_json()
    assert CompetingRisksTree.from_json(text).cause_weights == [3.0, 1.0]


def test_files_of_mixed_columns_and_of_arrays_predict_the_same(subject):
    if "files" in subject.cannot:
        pytest.skip("cannot be saved")
    studies = [subject.study(), subject.study(mixed=True)]
    studies[0] = studies[0].of(studies[0].X.to_numpy())
    for study in studies[: 1 if "categories" in subject.cannot else 2]:
        model = study.fit(subject.make())
        same_model(subject, model, type(model).from_json(model.to_json()), study)


def test_files_are_json_without_training_rows(subject):
    if "files" in subject.cannot:
        pytest.skip("cannot be saved")
    model, study = subject.fitted()
    document = json.loads(model.to_json())
    assert document["estimator"] == type(model).__name__
    assert str(study.X["x0"][3]) not in model.to_json()


def test_files_of_another_class_or_changed_are_refused(subject):
    if "files" in subject.cannot:
        pytest.skip("cannot be saved")
    model, _ = subject.fitted()
    text = model.to_json()
    other = SoftSurvivalTree if subject.cls is OptimalTreeRegressor else OptimalTreeRegressor
    with pytest.raises(ModelFormatError, match=f"{subject.cls.__name__}.*{other.__name__}"):
        other.from_json(text)
    with pytest.raises(ModelFormatError, match="truncated"):
        type(model).from_json(text[:-20])
    seconds = re.search(r'"seconds": ?[\d.e-]+', text).group()
    with pytest.raises(ModelFormatError, match="checksum"):
        type(model).from_json(text.replace(seconds, '"seconds":0.125'))
    for field in json.loads(text):
        with pytest.raises(ModelFormatError):
            type(model).from_json(text.replace(f'"{field}":', f'"{field}s":', 1))


def test_an_encoder_of_ones_own_is_refused_by_name(subject):
    if "encoder" not in subject.make().get_params() or "files" in subject.cannot:
        pytest.skip("takes no encoder, or cannot be saved")

    class Signs(BaseEstimator):
        def fit(self, X):
            self.n_features_in_ = X.shape[1]
            return self

        def transform(self, X):
            return np.asarray(X) > 0

        def get_feature_names_out(self):
            return np.array([f"x{j} > 0" for j in range(4)])

    study = subject.study()
    model = study.fit(subject.make(encoder=Signs()))
    with pytest.raises(TypeError, match="encoder"):
        model.to_json()
