"""``OptimalTreeClassifier``: objectives against every tree, classes, weights, sizes, bad input."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import accuracy_score, balanced_accuracy_score
from trees_plainly import least_objective

from bristlecone import OptimalTreeClassifier
from bristlecone.exceptions import InvalidParameterError
from bristlecone.export import export_dict, export_text


def sample(n=40, n_features=5, n_classes=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(n, n_features)).astype(bool)
    y = (X[:, 0] + 2 * (X[:, 1] & X[:, 2]) + rng.integers(0, 2, size=n)) % n_classes
    weight = rng.integers(1, 5, size=n) / 2.0
    return X, y, weight


def leaf_losses(objective, y, weight):
    """Loss of a leaf by the documentation of the class, divided by the total weight."""
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


def test_class_weights_multiply_row_weights():
    X, y, weight = sample()
    factor = {0: 3.0, 2: 0.25}
    model = OptimalTreeClassifier(class_weight=factor).fit(X, y, weight)
    product = weight * np.array([factor.get(k, 1.0) for k in y])
    same = OptimalTreeClassifier().fit(X, y, product)
    assert model.objective_value_ == same.objective_value_
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    for own in (None, weight):
        balanced = OptimalTreeClassifier(class_weight="balanced").fit(X, y, own)
        means = OptimalTreeClassifier(objective="balanced-accuracy").fit(X, y, own)
        assert balanced.objective_value_ == pytest.approx(means.objective_value_, abs=1e-12)
        totals = balanced.leaf_values_.sum(axis=0)
        np.testing.assert_allclose(totals, totals.sum() / 3)


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


@pytest.mark.parametrize("noise", [0.0, 0.02])
def test_threads_that_look_for_a_perfect_tree_do_not_change_it(noise):
    rng = np.random.default_rng(0)
    X = rng.random((2000, 60)) < np.where(np.arange(60) < 2, 0.3, 0.5)
    y = X[:, 2] ^ X[:, 3] ^ (X[:, 0] & X[:, 1]) ^ (rng.random(2000) < noise)
    one, two = (OptimalTreeClassifier(max_depth=4, n_jobs=n).fit(X, y) for n in (1, 2))
    assert (one.objective_value_ == 0) == (noise == 0)
    assert one.objective_value_ == two.objective_value_
    assert np.array_equal(one.tree_.feature, two.tree_.feature)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("objective", ["gini", "entropy"])
def test_of_the_trees_without_loss_one_with_the_fewest_leaves_is_kept(objective, seed):
    rng = np.random.default_rng(seed)
    X = rng.random((500, 12)) < rng.uniform(0.2, 0.8, 12)
    a, b, c = X[:, rng.permutation(12)[:3]].T
    y = np.where(a, b ^ c, b)
    weight = rng.integers(1, 5, 500)
    # Errors are whole numbers. Of equally good trees, the search prefers fewer leaves, then early
    # columns.
    errors, impurity = (
        OptimalTreeClassifier(objective=of, max_depth=3, leaf_penalty=0.0).fit(X, y, weight)
        for of in ("accuracy", objective)
    )
    assert errors.objective_value_ == impurity.objective_value_ == 0.0
    assert 4 < errors.n_leaves_ < 8
    assert np.array_equal(errors.tree_.feature, impurity.tree_.feature)


@pytest.mark.parametrize("objective", ["gini", "entropy"])
def test_a_tree_without_loss_ends_the_search(objective):
    rng = np.random.default_rng(0)
    X = rng.random((150, 40)) < 0.5
    y = X[:, 2] ^ X[:, 3] ^ (X[:, 0] & X[:, 1])
    model = OptimalTreeClassifier(objective=objective, max_depth=6, leaf_penalty=0.0).fit(X, y)
    assert (model.status_, model.objective_value_) == ("optimal", 0.0)
    assert model.n_nodes_explored_ < 1e8


def test_the_cost_is_forecast():
    X, y, _ = sample(n=90)
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


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({5: 1.0}, "class_weight names 5"),
        ({1: -1.0}, r"class_weight\[1\] is -1.0"),
        ({0: "a"}, r"class_weight\[0\] holds something else than numbers"),
        ({0: [1.0]}, r"class_weight\[0\] has shape \(1,\)"),
        ({0: 0.0, 1: 0.0, 2: 0.0}, "^class_weight leaves no row of positive weight"),
    ],
)
def test_class_weights_that_fit_no_class_are_named(class_weight, message):
    X, y, _ = sample()
    with pytest.raises(ValueError, match=message):
        OptimalTreeClassifier(class_weight=class_weight).fit(X, y)


@pytest.mark.parametrize(
    ("wrong", "reported"),
    [
        ({"y": pd.Series(list("abab")[::-1], index=[3, 2, 1, 0])}, "X and y have the same index"),
        ({"y": ["a", None, "a", "b"]}, "y is missing in row 1"),
        ({"y": ["a", "b"]}, "X has 4 rows but y has 2"),
        ({"sample_weight": [1.0, -1.0, 1.0, 1.0]}, "sample_weight is -1.0 in row 1"),
        ({"sample_weight": pd.Series(1.0, index=[3, 2, 1, 0])}, "X and sample_weight have the"),
        ({"sample_weight": ["a"] * 4}, "sample_weight has dtype"),
    ],
)
def test_score_refuses_the_labels_and_weights_that_fit_refuses(wrong, reported):
    X = pd.DataFrame({"x": [0.0, 1.0, 0.0, 1.0]})
    given = {"y": list("abab"), **wrong}
    tree = OptimalTreeClassifier(max_depth=1).fit(X, list("abab"))
    for ask in (tree.score, OptimalTreeClassifier(max_depth=1).fit):
        with pytest.raises(ValueError, match=reported):
            ask(X, **given)


def test_score_is_the_weighted_accuracy_of_scikit_learn():
    X, y, weight = sample()
    tree = OptimalTreeClassifier(max_depth=2).fit(X, y)
    right = tree.predict(X) == y
    assert tree.score(X, y) == accuracy_score(y, tree.predict(X)) == right.mean()
    assert tree.score(X, y, weight) == pytest.approx(np.average(right, weights=weight))
    y[:3] = 7  # a label without rows in the fit
    assert tree.score(X, y) == right[3:].sum() / len(y)
