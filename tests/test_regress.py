"""``OptimalTreeRegressor``: squared error compared with every tree, weights, sizes, bad input."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import mean_squared_error
from trees_plainly import least_objective

from bristlecone import OptimalTreeRegressor
from bristlecone.export import export_dict, export_text


def sample(n=40, n_features=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(n, n_features)).astype(bool)
    y = 3.0 * X[:, 0] - 2.0 * (X[:, 1] & X[:, 2]) + rng.normal(size=n)
    return X, y, rng.uniform(0.5, 2.0, size=n)


def leaf_loss(y, weight):
    def loss(rows):
        mean = np.average(y[rows], weights=weight[rows])
        return weight[rows] @ (y[rows] - mean) ** 2 / weight.sum()

    return loss


@pytest.mark.parametrize(
    ("scale", "shift"), [(1.0, 0.0), (1e-6, 0.0), (1e6, 0.0), (1.0, 1e5)], ids=str
)
@pytest.mark.parametrize(
    "parameters",
    [
        {"max_depth": 2},
        {"max_depth": 2, "leaf_penalty": 0.3},
        {"max_depth": 3, "min_samples_leaf": 4},
    ],
    ids=str,
)
def test_objective_is_that_of_the_best_of_all_trees(parameters, scale, shift):
    X, y, weight = sample()
    y = scale * y + shift
    if "leaf_penalty" in parameters:
        parameters = {**parameters, "leaf_penalty": parameters["leaf_penalty"] * scale**2}
    model = OptimalTreeRegressor(**parameters).fit(X, y, weight)
    best = least_objective(X, leaf_loss(y, weight), **parameters)
    assert model.status_ == "optimal"
    assert model.objective_value_ == pytest.approx(best, rel=1e-9)
    predicted = model.predict(X)
    error = mean_squared_error(y, predicted, sample_weight=weight)
    penalty = parameters.get("leaf_penalty", 0.0) * model.n_leaves_
    assert model.objective_value_ == pytest.approx(error + penalty, rel=1e-9)


def test_a_leaf_predicts_the_weighted_mean_of_its_rows():
    X, y, weight = sample()
    model = OptimalTreeRegressor(max_depth=2).fit(X, y, weight)
    leaf, predicted = model.apply(X), model.predict(X)
    for node in np.unique(leaf):
        rows = leaf == node
        mean = np.average(y[rows], weights=weight[rows])
        np.testing.assert_allclose(predicted[rows], mean, rtol=1e-12)


def test_sizes_are_those_of_separate_fits():
    X, y, weight = sample()
    path = OptimalTreeRegressor(max_depth=2).size_path(X, y, weight)
    assert [tree.n_leaves_ for tree in path] == [1, 2, 3, 4]
    for leaves, tree in enumerate(path, start=1):
        best = least_objective(X, leaf_loss(y, weight), max_depth=2, leaves=leaves)
        assert tree.objective_value_ == pytest.approx(best, rel=1e-9)


def test_a_constant_target_is_a_single_leaf_without_error():
    X, _, _ = sample()
    model = OptimalTreeRegressor().fit(X, np.full(40, 2.5))
    assert (model.n_leaves_, model.objective_value_) == (1, 0.0)
    assert set(model.predict(X)) == {2.5}


def test_text_and_dictionary_tell_mean_and_variance():
    model = OptimalTreeRegressor().fit([[0], [0], [1]], [1.0, 3.0, 8.0])
    assert export_text(model) == (
        "x0\n|-- yes: [1] n=1, 8 (variance 0)\n`-- no:  [2] n=2, 2 (variance 1)\n"
    )
    assert export_dict(model)["no"]["value"] == 2.0
    assert export_dict(model)["no"]["variance"] == 1.0


def test_numbers_whose_squares_overflow_are_refused():
    X, _, _ = sample()
    with pytest.raises(ValueError, match="change their unit"):
        OptimalTreeRegressor().fit(X, [3e150] * 20 + [-3e150] * 20)
    for constant in (1e200, 1.7e308):
        with pytest.raises(ValueError, match=r"y is 1\S+ in row 1; change its unit"):
            OptimalTreeRegressor().fit(X, [0.0] + [constant] * 39, [0] + [1] * 39)


def test_score_reads_outcomes_as_fit_does():
    X, y, _ = sample()
    model = OptimalTreeRegressor().fit(X, y)
    with pytest.raises(ValueError, match="y is masked in row 3"):
        model.score(X, np.ma.masked_array(y, mask=np.arange(40) == 3))
    with pytest.raises(ValueError, match="y is missing in row 3"):
        model.score(X, pd.Series(y).astype("Float64").where(np.arange(40) != 3))


@pytest.mark.slow
def test_verbose_is_seen_without_any_set_up_of_logging():
    code = (
        "from bristlecone import OptimalTreeRegressor\n"
        "OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0]], [1.0, 3.0])\n"
        "OptimalTreeRegressor(max_depth=1, verbose=1).fit([[1.0], [2.0]], [1.0, 3.0])\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == ""
    assert run.stderr.count("\n") == 1 and run.stderr.startswith("bristlecone: optimal: objective")
