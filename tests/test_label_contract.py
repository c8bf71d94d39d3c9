"""What the classifiers, the policy and the regressor have in common with survival trees."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from bristlecone import (
    BinaryEncoder,
    ConstantFeatureWarning,
    CostSensitiveTreeClassifier,
    FairTreeClassifier,
    InvalidParameterError,
    ModelFormatError,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    PolicyTree,
    SearchLimitWarning,
    load_model,
    save_model,
)


def table(n=80, seed=0):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "age": rng.integers(20, 80, n).astype(float),
            "stage": rng.choice(["I", "II", "III"], n),
            "smokes": rng.random(n) < 0.4,
        }
    )
    y = (frame["age"] > 50) ^ (frame["stage"] == "II") ^ (rng.random(n) < 0.15)
    return frame, y.to_numpy().astype(int)


def known(n=80, seed=1):
    rng = np.random.default_rng(seed)
    return {
        "treatment": rng.integers(0, 2, n),
        "propensity": rng.uniform(0.3, 0.7, n),
        "predicted_outcomes": rng.random((n, 2)),
    }


# Estimator, and what its fit needs besides X and y.
ESTIMATORS = {
    "accuracy": (OptimalTreeClassifier(), {}),
    "f1": (OptimalTreeClassifier(objective="f1"), {}),
    "costs": (CostSensitiveTreeClassifier(feature_costs={"age": 0.01}), {}),
    "fair": (FairTreeClassifier(), {"sensitive": np.arange(80) % 2}),
    "policy": (PolicyTree(), known()),
    "regression": (OptimalTreeRegressor(), {}),
}


@pytest.fixture(params=ESTIMATORS)
def case(request):
    blank, extra = ESTIMATORS[request.param]
    return clone(blank), extra


def test_parameters_are_stored_untouched_and_a_clone_forgets_the_fit(case):
    model, extra = case
    before = model.get_params()
    X, y = table()
    model.fit(X, y, **extra)
    assert all(model.get_params()[name] is value for name, value in before.items())
    assert not hasattr(clone(model), "tree_")


def test_the_certificate_is_complete(case):
    model, extra = case
    X, y = table()
    model.set_params(max_depth=2, verbose=1).fit(X, y, **extra)
    assert model.status_ == "optimal"
    assert 0 <= model.gap_ <= 1e-9
    assert model.relative_gap_ <= 1e-8
    assert model.trace_[-1][1] == pytest.approx(model.objective_value_, abs=1e-9)
    assert model.n_nodes_explored_ > 0
    assert model.fit_time_ > 0
    assert (model.n_features_in_, model.feature_names_in_.tolist()) == (3, list(X))
    assert model.n_leaves_ <= 4
    assert model.depth_ <= 2


def test_files_and_pickles_give_the_same_predictions(case, tmp_path):
    model, extra = case
    X, y = table()
    model.fit(X, y, **extra)
    save_model(model, tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert type(loaded) is type(model)
    for other in (loaded, pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        np.testing.assert_array_equal(other.apply(X), model.apply(X))
        assert other.objective_value_ == model.objective_value_
        assert other.status_ == model.status_


def test_a_file_that_was_changed_is_refused(case):
    model, extra = case
    X, y = table()
    text = model.fit(X, y, **extra).to_json()
    fields = [f'"{name}":' for name in ("label", "values", "type", "mean", "variance")]
    found = [field for field in fields if field in text]
    assert len(found) >= 2
    for field in found:
        with pytest.raises(ModelFormatError):
            type(model).from_json(text.replace(field, field.replace('":', 's":'), 1))


def test_an_error_keeps_the_earlier_fit(case):
    model, extra = case
    X, y = table()
    predicted = model.fit(X, y, **extra).predict(X)

    def stop(progress):
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        model.fit(X.assign(age=1.0 * X["smokes"]), y, callback=stop, **extra)
    np.testing.assert_array_equal(model.predict(X), predicted)


def test_a_limit_leaves_a_tree_with_a_valid_bound(case):
    model, extra = case
    X, y = table()
    # Without time there would be no greedy cuts, and the bound is one over the features.
    model.set_params(max_depth=4, encoder=BinaryEncoder())
    best = clone(model).fit(X, y, **extra)
    with pytest.warns(SearchLimitWarning, match="time_limit"):
        model.set_params(time_limit=0).fit(X, y, **extra)
    assert model.status_ == "time_limit"
    assert model.lower_bound_ <= best.objective_value_ + 1e-9
    assert model.objective_value_ >= best.objective_value_ - 1e-9
    assert len(model.predict(X)) == 80


def test_constant_columns_alone_are_told(case):
    model, extra = case
    X, y = table()
    with pytest.warns(ConstantFeatureWarning, match="'age'.*; nothing is left") as caught:
        model.fit(X.assign(**dict.fromkeys(X, 3)), y, **extra)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_depth": -1},
        {"max_depth": None},
        {"max_leaf_nodes": 0},
        {"min_samples_leaf": 0},
        {"leaf_penalty": -0.1},
        {"time_limit": -1},
        {"memory_limit": 0},
        {"n_jobs": 0},
        {"encoder": "quantiles"},
        {"random_state": "seed"},
        {"verbose": -1},
    ],
    ids=str,
)
def test_parameters_out_of_range_are_named(case, parameters):
    model, extra = case
    X, y = table()
    (name,) = parameters
    with pytest.raises(InvalidParameterError, match=f"^{name}"):
        model.set_params(**parameters).fit(X, y, **extra)


def test_leaves_hold_the_rows_that_are_asked_for(case):
    model, extra = case
    X, y = table()
    model.set_params(
        min_samples_leaf=15, max_leaf_nodes=3, encoder=BinaryEncoder(n_thresholds=5)
    ).fit(X, y, **extra)
    count = np.bincount(model.apply(X))
    assert count[count > 0].min() >= 15
    assert model.n_leaves_ <= 3
