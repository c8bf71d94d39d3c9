"""``OptimalTreeClassifier``: objectives against every tree, classes, weights, sizes, bad input."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV
from trees_plainly import least_objective

from bristlecone import InvalidParameterError, OptimalTreeClassifier, SearchLimitWarning
from bristlecone.export import export_dict, export_text
from bristlecone.search.progress import SearchProgress


def sample(n=40, n_features=5, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(n, n_features)).astype(bool)
    y = (X[:, 0] + 2 * (X[:, 1] & X[:, 2]) + rng.integers(0, 2, size=n)) % n_classes
    weight = rng.integers(1, 5, size=n) / 2.0
    return X, y, weight


def leaf_losses(objective, y, weight):
    """Loss of a leaf, as the class says it, over the total weight."""
    classes = np.unique(y)
    share = np.array([weight[y == k].sum() for k in classes]) / weight.sum()

    def weights(rows):
        return np.array([weight[rows][y[rows] == k].sum() for k in classes]) / weight.sum()

    def loss(rows):
        w = weights(rows)
        total = w.sum()
        if objective == "accuracy":
            return total - w.max()
        if objective == "balanced-accuracy":
            w = w / share / len(classes)
            return w.sum() - w.max()
        p = w[w > 0] / total
        return total * (1 - p @ p if objective == "gini" else -p @ np.log(p))

    return loss


@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("objective", ["accuracy", "balanced-accuracy", "gini", "entropy"])
@pytest.mark.parametrize(
    "parameters",
    [
        {"max_depth": 2},
        {"max_depth": 2, "leaf_penalty": 0.05},
        {"max_depth": 3, "min_samples_leaf": 4},
    ],
    ids=str,
)
def test_objective_is_that_of_the_best_of_all_trees(objective, n_classes, parameters):
    X, y, weight = sample(n_classes=n_classes)
    model = OptimalTreeClassifier(objective=objective, **parameters).fit(X, y, weight)
    best = least_objective(X, leaf_losses(objective, y, weight), **parameters)
    assert model.status_ == "optimal"
    assert model.objective_value_ == pytest.approx(best, abs=1e-9)
    assert model.lower_bound_ == pytest.approx(best, abs=1e-9)
    assert model.depth_ <= parameters["max_depth"]


@pytest.mark.parametrize("objective", ["accuracy", "balanced-accuracy", "gini", "entropy"])
def test_the_objective_is_that_of_the_rows_of_the_tree(objective):
    X, y, weight = sample(n=90)
    model = OptimalTreeClassifier(objective=objective, leaf_penalty=0.01).fit(X, y, weight)
    leaf, loss = model.apply(X), leaf_losses(objective, y, weight)
    scored = sum(loss(np.flatnonzero(leaf == node)) for node in np.unique(leaf))
    assert model.objective_value_ == pytest.approx(scored + 0.01 * model.n_leaves_, abs=1e-9)


def test_accuracy_and_balanced_accuracy_are_those_of_scikit_learn():
    X, y, weight = sample(n=90)
    plain = OptimalTreeClassifier().fit(X, y, weight)
    assert plain.objective_value_ == pytest.approx(1 - plain.score(X, y, weight), abs=1e-12)
    balanced = OptimalTreeClassifier(objective="balanced-accuracy").fit(X, y, weight)
    score = balanced_accuracy_score(y, balanced.predict(X), sample_weight=weight)
    assert balanced.objective_value_ == pytest.approx(1 - score, abs=1e-12)


@pytest.mark.parametrize("labels", [["no", "yes", "maybe"], [10, -3, 7], [5.0, 1.0, 2.0]])
def test_labels_of_any_kind_come_back(labels):
    X, y, _ = sample()
    named = np.array(labels)[y]
    model = OptimalTreeClassifier().fit(X, named)
    reference = OptimalTreeClassifier().fit(X, y)
    assert model.classes_.tolist() == sorted(labels)
    assert set(model.predict(X)) <= set(labels)
    assert model.objective_value_ == reference.objective_value_
    np.testing.assert_array_equal(
        model.predict(X), model.classes_[model.predict_proba(X).argmax(1)]
    )


def test_a_data_frame_and_a_series_are_read():
    X, y, _ = sample()
    frame = pd.DataFrame(X, columns=list("abcde"))
    model = OptimalTreeClassifier().fit(frame, pd.Series(y, name="class"))
    lazy = OptimalTreeClassifier().fit(pl.from_pandas(frame), pl.Series(y))
    assert model.feature_names_in_.tolist() == list("abcde")
    np.testing.assert_array_equal(model.predict(frame), lazy.predict(frame))


def test_probabilities_are_the_weighted_shares_of_the_leaf():
    X, y, weight = sample()
    model = OptimalTreeClassifier(max_depth=1).fit(X, y, weight)
    shares = model.predict_proba(X)
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-12)
    leaf = model.apply(X)
    for row in range(len(X)):
        same = leaf == leaf[row]
        expected = [weight[same & (y == k)].sum() / weight[same].sum() for k in range(3)]
        np.testing.assert_allclose(shares[row], expected, atol=1e-12)


def test_integer_weights_are_repeated_rows():
    X, y, _ = sample(n=60)
    count = np.random.default_rng(1).integers(0, 4, size=60)
    weighted = OptimalTreeClassifier(objective="gini").fit(X, y, count)
    repeated = OptimalTreeClassifier(objective="gini").fit(
        np.repeat(X, count, axis=0), np.repeat(y, count)
    )
    assert weighted.objective_value_ == pytest.approx(repeated.objective_value_, abs=1e-12)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-12)


def test_class_weights_multiply_row_weights():
    X, y, weight = sample()
    factor = {0: 3.0, 2: 0.25}
    model = OptimalTreeClassifier(class_weight=factor).fit(X, y, weight)
    product = weight * np.array([factor.get(k, 1.0) for k in y])
    same = OptimalTreeClassifier().fit(X, y, product)
    assert model.objective_value_ == same.objective_value_
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    balanced = OptimalTreeClassifier(class_weight="balanced").fit(X, y)
    means = OptimalTreeClassifier(objective="balanced-accuracy").fit(X, y)
    assert balanced.objective_value_ == pytest.approx(means.objective_value_, abs=1e-12)


@pytest.mark.parametrize("objective", ["accuracy", "balanced-accuracy"])
def test_a_class_of_weight_zero_is_known_but_not_predicted(objective):
    X, y, _ = sample()
    model = OptimalTreeClassifier(objective=objective, class_weight={1: 0.0}).fit(X, y)
    assert model.classes_.tolist() == [0, 1, 2]
    assert 1 not in model.predict(X)
    without = OptimalTreeClassifier(objective=objective).fit(X[y != 1], y[y != 1])
    assert model.objective_value_ == pytest.approx(without.objective_value_, abs=1e-12)
    assert (model.predict_proba(X)[:, 1] == 0).all()


def test_sizes_are_those_of_separate_fits():
    X, y, weight = sample(n=90)
    path = OptimalTreeClassifier(max_depth=3).size_path(X, y, weight)
    assert len(path) == 8
    for leaves, tree in enumerate(path, start=1):
        alone = OptimalTreeClassifier(max_depth=3, max_leaf_nodes=leaves).fit(X, y, weight)
        assert tree.max_leaf_nodes == leaves
        assert tree.n_leaves_ <= leaves
        assert tree.objective_value_ == pytest.approx(alone.objective_value_, abs=1e-12)
        best = least_objective(
            X, leaf_losses("accuracy", y, weight), max_depth=3, leaves=min(leaves, 4)
        )
        assert tree.objective_value_ <= best + 1e-12
    with pytest.raises(TypeError, match="costs"):
        OptimalTreeClassifier().size_path(X, y, costs=1)


def test_a_sparse_tree_needs_no_depth_limit():
    X, y, weight = sample(n=90)
    model = OptimalTreeClassifier(max_depth=None, leaf_penalty=0.03).fit(X, y, weight)
    best = least_objective(X, leaf_losses("accuracy", y, weight), max_depth=5, leaf_penalty=0.03)
    assert model.objective_value_ == pytest.approx(best, abs=1e-12)
    with pytest.raises(InvalidParameterError, match="max_depth=None"):
        OptimalTreeClassifier(max_depth=None).fit(X, y)


def test_a_limit_leaves_a_tree_and_a_valid_bound():
    X, y, _ = sample(n=400, n_features=12)
    best = OptimalTreeClassifier(max_depth=4).fit(X, y)
    with pytest.warns(SearchLimitWarning, match="time_limit") as caught:
        model = OptimalTreeClassifier(max_depth=4, time_limit=0).fit(X, y)
    assert [warning.filename for warning in caught] == [__file__]
    assert model.status_ == "time_limit"
    assert model.lower_bound_ <= best.objective_value_ + 1e-12
    assert model.objective_value_ >= best.objective_value_ - 1e-12
    assert model.predict(X).shape == (400,)


def test_progress_and_cost_are_told():
    X, y, _ = sample(n=90)
    seen = []
    model = OptimalTreeClassifier(max_depth=4).fit(X, y, callback=seen.append)
    assert seen
    assert all(isinstance(point, SearchProgress) for point in seen)
    assert seen[-1].objective == pytest.approx(model.objective_value_, abs=1e-12)
    cost = OptimalTreeClassifier(max_depth=4).estimate_cost(X, y)
    assert cost.max_depth == 4
    assert cost.n_features == 5


def test_text_and_dictionary_tell_the_label_and_the_weights():
    X, y = [[0], [0], [1]], ["no", "no", "yes"]
    model = OptimalTreeClassifier().fit(X, y)
    assert export_text(model) == (
        "x0\n|-- yes: [1] n=1, yes (no: 0, yes: 1)\n`-- no:  [2] n=2, no (no: 2, yes: 0)\n"
    )
    assert export_dict(model)["no"] == {
        "node": 2,
        "n_samples": 2,
        "weight": 2.0,
        "label": "no",
        "values": {"no": 2.0, "yes": 0.0},
    }


def test_paths_end_in_the_leaves():
    X, y, _ = sample()
    model = OptimalTreeClassifier().fit(X, y)
    paths = model.decision_path(X)
    assert paths.shape == (40, model.tree_.node_count)
    np.testing.assert_array_equal(paths.indices[paths.indptr[1:] - 1], model.apply(X))


def test_a_search_over_parameters_works():
    X, y, _ = sample(n=90)
    found = GridSearchCV(
        OptimalTreeClassifier(), {"max_depth": [1, 2], "objective": ["accuracy", "gini"]}, cv=3
    ).fit(X, y)
    assert found.best_score_ > 0.4


@pytest.mark.parametrize(
    ("parameters", "y", "message"),
    [
        ({"objective": "auc"}, None, "^objective must be one of"),
        ({"objective": 3}, None, "^objective"),
        ({"class_weight": "even"}, None, "^class_weight must be"),
        ({"class_weight": {5: 1.0}}, None, "class_weight names 5"),
        ({"class_weight": {0: -1.0}}, None, "class_weight.* is -1.0"),
        ({}, np.linspace(0, 1, 40), "Unknown label type"),
        ({}, [0, 1], "X has 40 rows but y has 2"),
        ({}, [None] * 40, "y is missing in row 0"),
        ({}, np.array(["a", 1] * 20, dtype=object), "several types"),
        ({}, np.full(40, np.nan), "NaN"),
    ],
)
def test_bad_input_is_named(parameters, y, message):
    X, labels, _ = sample()
    model = OptimalTreeClassifier(**parameters)
    with pytest.raises((ValueError, TypeError), match=message):
        model.fit(X, labels if y is None else y)
    assert not hasattr(model, "tree_")
