"""``CostSensitiveTreeClassifier``: costs of labels and features, compared with every tree."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer
from trees_plainly import least_objective

from bristlecone import BinaryEncoder, CostSensitiveTreeClassifier, OptimalTreeClassifier
from bristlecone.exceptions import InvalidParameterError
from bristlecone.export import export_text
from bristlecone.plot import plot_size_path
from bristlecone.trust import verify
from bristlecone.tune import evaluate

MATRIX = np.array([[0.0, 5.0, 2.0], [1.0, 0.0, 1.5], [4.0, 0.25, 0.0]])


def sample(n=40, n_features=5, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(n, n_features)).astype(bool)
    y = (X[:, 0] + 2 * (X[:, 1] & X[:, 2]) + rng.integers(0, 2, size=n)) % 3
    return X, y, rng.integers(1, 5, size=n) / 2.0


def leaf_loss(costs, weight):
    return lambda rows: (weight[rows] @ costs[rows]).min() / weight.sum()


@pytest.mark.parametrize(
    "parameters",
    [
        {"max_depth": 2},
        {"max_depth": 2, "leaf_penalty": 0.1},
        {"max_depth": 3, "min_samples_leaf": 4},
    ],
    ids=str,
)
def test_objective_is_that_of_the_best_of_all_trees(parameters):
    X, y, weight = sample()
    model = CostSensitiveTreeClassifier(cost_matrix=MATRIX, **parameters).fit(X, y, weight)
    best = least_objective(X, leaf_loss(MATRIX[y], weight), **parameters)
    assert model.status_ == "optimal"
    assert model.objective_value_ == pytest.approx(best, abs=1e-9)
    penalty = parameters.get("leaf_penalty", 0.0) * model.n_leaves_
    assert model.mean_cost(X, y, weight) + penalty == pytest.approx(best, abs=1e-9)


def test_without_costs_errors_are_counted():
    X, y, weight = sample()
    counted = CostSensitiveTreeClassifier().fit(X, y, weight)
    plain = OptimalTreeClassifier().fit(X, y, weight)
    assert counted.objective_value_ == pytest.approx(plain.objective_value_, abs=1e-12)


def test_costs_by_row():
    X, y, weight = sample()
    costs = np.random.default_rng(2).uniform(0, 9, size=(40, 3))
    model = CostSensitiveTreeClassifier(max_depth=2).fit(X, y, weight, costs=costs)
    best = least_objective(X, leaf_loss(costs, weight), max_depth=2)
    assert model.objective_value_ == pytest.approx(best, abs=1e-9)
    assert model.mean_cost(X, y, weight, costs=costs) == pytest.approx(best, abs=1e-9)
    from_matrix = CostSensitiveTreeClassifier(max_depth=2).fit(X, y, costs=MATRIX[y])
    as_matrix = CostSensitiveTreeClassifier(max_depth=2, cost_matrix=MATRIX).fit(X, y)
    assert from_matrix.objective_value_ == as_matrix.objective_value_


# Prices: columns 0 and 1 come from one measurement, and 1, 2 and 3 share a group.
COSTS = [
    {"cost": 0.3, "origin": "scan"},
    {"cost": 0.3, "origin": "scan", "group": "blood", "discounted_cost": 0.1},
    {"cost": 0.2, "group": "blood", "discounted_cost": 0.05},
    {"cost": 0.4, "group": "blood", "origin": None},
    0.0,
]
PRICES = {"feature_costs": COSTS}


def price(asked, f):
    costs, discounts = [0.3, 0.3, 0.2, 0.4, 0.0], [0.3, 0.1, 0.05, 0.4, 0.0]
    origins, groups = [0, 0, 2, 3, 4], [None, "blood", "blood", "blood", None]
    if origins[f] in [origins[above] for above in asked]:
        return 0.0
    discounted = groups[f] is not None and groups[f] in [groups[above] for above in asked]
    return (discounts if discounted else costs)[f]


@pytest.mark.parametrize("max_depth", [1, 2, 3])
def test_questions_cost_what_was_not_asked_before(max_depth):
    X, y, _ = sample(n=60)
    model = CostSensitiveTreeClassifier(
        cost_matrix=MATRIX, max_depth=max_depth, min_samples_leaf=3, **PRICES
    ).fit(X, y)
    best = least_objective(
        X,
        leaf_loss(MATRIX[y], np.ones(60)),
        max_depth=max_depth,
        min_samples_leaf=3,
        price=lambda asked, f: price(asked, f) / 60,
    )
    assert model.objective_value_ == pytest.approx(best, abs=1e-9)
    assert model.mean_cost(X, y) == pytest.approx(best, abs=1e-9)


def test_a_column_costs_once_whatever_is_asked_about_it():
    frame = pd.DataFrame({"age": np.arange(40.0), "flag": [0, 1] * 20})
    y = (frame["age"] // 10 % 2).astype(int)
    model = CostSensitiveTreeClassifier(feature_costs={"age": 0.1}).fit(frame, y)
    assert model.n_leaves_ == 4
    np.testing.assert_allclose(model.leaf_prices_, 0.1)
    assert "price 0.1" in export_text(model)
    dear = CostSensitiveTreeClassifier(feature_costs={"age": 0.6}).fit(frame, y)
    assert dear.n_leaves_ == 1
    # The proof is about prices even if the tree asks for nothing that has one.
    assert "including the costs of the features used" in dear.certificate_.aim
    free = CostSensitiveTreeClassifier(feature_costs={"age": 0.0}).fit(frame, y)
    assert "prices" not in free.certificate_.aim
    by_position = CostSensitiveTreeClassifier(feature_costs={0: 0.1}).fit(frame, y)
    assert by_position.objective_value_ == model.objective_value_


@pytest.mark.parametrize("costs", [[0.3, 0.1, 0.2], [0.3, 0.2, 0.1], [0.1, 0.2, 0.3]])
def test_of_columns_that_are_alike_the_cheapest_is_asked(costs):
    y = np.array([0, 1] * 20)
    X = np.column_stack([y, y, 1 - y]).astype(bool)
    every_column = FunctionTransformer(feature_names_out="one-to-one")
    model = CostSensitiveTreeClassifier(feature_costs=costs, encoder=every_column).fit(X, y)
    assert model.objective_value_ == pytest.approx(0.1, abs=1e-12)
    assert model.tree_.feature[0] == costs.index(0.1)


def test_sizes_with_prices_are_those_of_separate_fits():
    X, y, _ = sample()
    make = {"cost_matrix": MATRIX, "max_depth": 2, **PRICES}
    path = CostSensitiveTreeClassifier(**make).size_path(X, y)
    assert len(path) == 4
    for leaves, tree in enumerate(path, start=1):
        alone = CostSensitiveTreeClassifier(max_leaf_nodes=leaves, **make).fit(X, y)
        assert tree.objective_value_ == pytest.approx(alone.objective_value_, abs=1e-12)


def test_a_saved_model_keeps_costs_and_prices():
    X, y, _ = sample()
    model = CostSensitiveTreeClassifier(cost_matrix=MATRIX, **PRICES).fit(X, y)
    loaded = CostSensitiveTreeClassifier.from_json(model.to_json())
    assert loaded.mean_cost(X, y) == model.mean_cost(X, y)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    named = CostSensitiveTreeClassifier(feature_costs={2: 0.5}).fit(X, y)
    assert CostSensitiveTreeClassifier.from_json(named.to_json()).feature_costs == {2: 0.5}


def test_a_mapping_names_the_classes_of_the_costs():
    X, codes, weight = sample()
    names = np.array(["ill", "dead", "well"])
    y = names[codes]
    order = [2, 0, 1]
    named = {names[k]: MATRIX[k][order].tolist() for k in order}
    model = CostSensitiveTreeClassifier(cost_matrix=named, max_depth=2).fit(X, y, weight)
    ascending = np.argsort(names)
    plain = MATRIX[np.ix_(ascending, ascending)]
    same = CostSensitiveTreeClassifier(cost_matrix=plain, max_depth=2).fit(X, y, weight)
    assert model.objective_value_ == same.objective_value_
    np.testing.assert_array_equal(model.predict(X), same.predict(X))
    assert model.mean_cost(X, y, weight) == pytest.approx(model.objective_value_, abs=1e-12)
    verify(model, X, y, sample_weight=weight)
    loaded = CostSensitiveTreeClassifier.from_json(model.to_json())
    assert loaded.cost_matrix == named
    assert loaded.mean_cost(X, y) == model.mean_cost(X, y)


def test_a_fold_may_lack_a_class_that_the_costs_name():
    X, y, _ = sample()
    fold = y != 1
    named = {k: MATRIX[k].tolist() for k in range(3)}
    model = CostSensitiveTreeClassifier(cost_matrix=named, max_depth=2).fit(X[fold], y[fold])
    rest = CostSensitiveTreeClassifier(cost_matrix=MATRIX[np.ix_([0, 2], [0, 2])], max_depth=2)
    assert model.classes_.tolist() == [0, 2]
    assert model.objective_value_ == rest.fit(X[fold], y[fold]).objective_value_
    predicted = model.predict(X)
    assert model.mean_cost(X, y) == pytest.approx(MATRIX[y, predicted].mean(), abs=1e-12)
    verify(model, X[fold], y[fold])
    with pytest.raises(ValueError, match="cost_matrix lacks 1, which is a class of y"):
        CostSensitiveTreeClassifier(cost_matrix={0: [0, 1], 2: [1, 0]}).fit(X, y)
    with pytest.raises(ValueError, match="y holds 3, which is not among those of the fit"):
        model.mean_cost(X, y + 1)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"cost_matrix": MATRIX[:2]}, r"cost_matrix has shape \(2, 3\); expected \(3, 3\)"),
        ({"cost_matrix": np.eye(4)}, r"cost_matrix has shape \(4, 4\)"),
        ({"cost_matrix": -MATRIX}, r"cost_matrix\[0, 1\] is -5.0"),
        ({"cost_matrix": MATRIX * np.nan}, r"cost_matrix\[0, 0\] is nan"),
        ({"cost_matrix": {0: [0], 1: [1], 2: [1]}}, r"cost_matrix has shape \(3, 1\)"),
        ({"cost_matrix": "dear"}, "cost_matrix holds something else than numbers"),
        ({"feature_costs": [1.0]}, "feature_costs has 1 entries for 5 columns"),
        ({"feature_costs": {"age": 1.0}}, "feature_costs names 'age'"),
        ({"feature_costs": {7: 1.0}}, "feature_costs names column 7"),
        ({"feature_costs": [0, 0, -1, 0, 0]}, r"feature_costs\['x2'\] is -1.0"),
        ({"feature_costs": {2: "dear"}}, r"feature_costs\['x2'\] holds something else than numbe"),
        ({"feature_costs": {2: {"cost": None}}}, r"feature_costs\['x2'\]\['cost'\] is nan"),
        (
            {"feature_costs": {2: {"cost": 1, "discounted_cost": -1}}},
            r"feature_costs\['x2'\]\['discounted_cost'\] is -1.0",
        ),
        ({"feature_costs": {2: {"group": "a"}}}, "feature_costs has no 'cost' for column 'x2'"),
        (
            {"feature_costs": {2: 1e-300}},
            "feature_costs: 1e-300 of column 'x2' is less than 1e-290",
        ),
        (
            {"feature_costs": {2: {"cost": 1, "grup": "a"}}},
            "feature_costs has an unknown key 'grup' for column 'x2'",
        ),
        (
            {"feature_costs": {2: {"cost": 1.0, "discounted_cost": 3.0}}},
            "the discounted cost of column 'x2' is 3, more than its cost of 1",
        ),
        (
            {
                "feature_costs": [1.0] * 5,
                "encoder": KBinsDiscretizer(2, strategy="uniform"),
            },
            "feature_costs needs the column of every binary feature",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_costs_are_named(parameters, message):
    X, y, _ = sample()
    with pytest.raises(ValueError, match=message):
        CostSensitiveTreeClassifier(**parameters).fit(X.astype(float), y)


def test_bad_costs_by_row_are_named():
    X, y, _ = sample()
    model = CostSensitiveTreeClassifier(encoder=BinaryEncoder())
    with pytest.raises(ValueError, match=r"costs has shape \(40, 2\); expected \(40, 3\), one row"):
        model.fit(X, y, costs=np.ones((40, 2)))
    costs = np.ones((40, 3))
    costs[7, 1] = -2
    with pytest.raises(ValueError, match=r"costs\[7, 1\] is -2.0"):
        model.fit(X, y, costs=costs)
    with pytest.raises(ValueError, match="y holds 9"):
        model.fit(X, y).mean_cost(X, np.full(40, 9))
    with pytest.warns(DataConversionWarning):  # as in fit
        assert model.mean_cost(X, pd.DataFrame({"y": y})) == model.mean_cost(X, y)
    with pytest.raises(ValueError, match="y holds 'a', which is not among those of the fit, "):
        model.mean_cost(X, pd.Series(["a"] * 40))


@pytest.mark.parametrize("feature_costs", [None, {"a": 0.01, "b": 0.02}])
def test_there_may_be_32_labels_whatever_questions_cost(feature_costs):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((320, 5)) < 0.5, columns=list("abcde"))
    y = np.arange(320) % 32
    model = CostSensitiveTreeClassifier(max_depth=2, feature_costs=feature_costs).fit(X, y)
    assert model.n_leaves_ > 1 and verify(model, X, y).ok
    with pytest.raises(ValueError, match="y has 33 values; at most 32 are supported"):
        model.fit(X, np.arange(320) % 33)


def test_a_table_of_costs_is_read_by_the_names_of_the_classes():
    a = np.random.default_rng(0).random((200, 1))
    labels = np.where(a[:, 0] > 0.6, "pos", "neg")
    # A missed "pos" costs 5, and a false one 1; the classes are not in sorted order.
    named = pd.DataFrame([[0, 5], [1, 0]], index=["pos", "neg"], columns=["pos", "neg"])
    of_rows = pd.DataFrame(named.to_numpy(), index=named.index)
    of_columns = pd.DataFrame(named.to_numpy(), columns=named.columns)
    expected = CostSensitiveTreeClassifier(cost_matrix=[[0, 1], [5, 0]], max_depth=1)
    expected.fit(a, labels)
    for matrix in (named, named.loc[["neg", "pos"]], of_rows, of_columns, pl.DataFrame(of_columns)):
        tree = CostSensitiveTreeClassifier(cost_matrix=matrix, max_depth=1).fit(a, labels)
        assert tree.objective_value_ == expected.objective_value_
        assert tree.mean_cost(a, labels) == pytest.approx(tree.objective_value_, rel=1e-12)
        assert verify(tree, a, labels).ok
    by_row = pd.DataFrame(
        np.where(labels == "pos", [[0], [5]], [[1], [0]]).T, columns=["pos", "neg"]
    )
    tree = CostSensitiveTreeClassifier(max_depth=1).fit(a, labels, costs=by_row)
    assert tree.objective_value_ == expected.objective_value_
    assert tree.mean_cost(a, labels, costs=by_row) == pytest.approx(tree.objective_value_)
    assert verify(tree, a, labels, costs=by_row).ok
    with pytest.raises(
        ValueError, match=r"^costs has the columns 'pos', 'c'; expected 'neg', 'pos'"
    ):
        tree.fit(a, labels, costs=by_row.set_axis(["pos", "c"], axis=1))
    wrong = named.set_axis(["pos", "other"], axis=0)
    with pytest.raises(
        InvalidParameterError, match=r"^cost_matrix has the rows 'pos', 'other' and"
    ):
        CostSensitiveTreeClassifier(cost_matrix=wrong).fit(a, labels)


def test_classes_that_are_numbers_name_the_rows_and_columns_of_a_table_of_costs():
    a = np.random.default_rng(0).random((200, 1))
    labels = (a[:, 0] > 0.6).astype(int)
    expected = CostSensitiveTreeClassifier(cost_matrix=[[0, 1], [5, 0]], max_depth=1)
    expected.fit(a, labels)
    for rows, columns in (([1, 0], [0, 1]), ([0, 1], [1, 0]), ([1, 0], [1, 0])):
        matrix = pd.DataFrame([[0, 1], [5, 0]], index=[0, 1], columns=[0, 1]).loc[rows, columns]
        tree = CostSensitiveTreeClassifier(cost_matrix=matrix, max_depth=1).fit(a, labels)
        assert tree.objective_value_ == expected.objective_value_
        assert tree.mean_cost(a, labels) == pytest.approx(expected.objective_value_, rel=1e-12)
    counted = pd.DataFrame([[0, 1], [5, 0]], index=range(1, 3), columns=range(1, 3))
    tree = CostSensitiveTreeClassifier(cost_matrix=counted, max_depth=1).fit(a, labels + 1)
    assert tree.objective_value_ == expected.objective_value_
    # It is not known whether the other side has names.
    for unclear in ({"index": [1, 0]}, {"columns": [1, 0]}):
        matrix = pd.DataFrame([[0, 5], [1, 0]], **unclear)
        with pytest.raises(InvalidParameterError, match="name both by the classes, or neither"):
            CostSensitiveTreeClassifier(cost_matrix=matrix).fit(a, labels)


def test_a_series_of_feature_costs_is_read_by_the_names_of_the_columns():
    X, y, _ = sample()
    X = pd.DataFrame(X.astype(float)).rename(columns="c{}".format)
    prices = {name: 0.02 * place for place, name in enumerate(X)}
    turned = pd.Series(prices)[::-1]
    expected = CostSensitiveTreeClassifier(max_depth=2, feature_costs=prices).fit(X, y)
    for costs in (turned, turned.set_axis([*range(X.shape[1])][::-1])):
        tree = CostSensitiveTreeClassifier(max_depth=2, feature_costs=costs).fit(X, y)
        assert tree.objective_value_ == expected.objective_value_
        assert tree.splits_ == expected.splits_
        assert verify(tree, X, y).ok
    for unnamed in (turned[::-1].reset_index(drop=True), pl.Series(turned[::-1].to_numpy())):
        tree.set_params(feature_costs=unnamed).fit(X, y)
        assert tree.objective_value_ == expected.objective_value_
    twice = pd.Series([1.0, 2.0], index=["c0", "c0"])
    with pytest.raises(InvalidParameterError, match=r"^feature_costs has duplicate labels: 'c0'"):
        tree.set_params(feature_costs=twice).fit(X, y)


def test_score_is_minus_the_mean_cost():
    X, y, weight = sample(n=90)
    tree = CostSensitiveTreeClassifier(cost_matrix=MATRIX, max_depth=2)
    scores = cross_val_score(tree, X, y, cv=3)
    assert (scores < 0).all()
    tree.fit(X, y)
    assert tree.score(X, y) == -tree.objective_value_
    assert tree.score(X, y, weight, costs=MATRIX[y]) == -tree.mean_cost(X, y, weight)
    with pytest.raises(ValueError, match="n_samples=0"):
        tree.score(X[:0], y[:0])
    every = np.arange(len(y))
    (found,) = evaluate(tree, X, y, cv=[(every, every)])["mean"]
    assert found == pytest.approx(-tree.objective_value_, rel=1e-12)
    axes = plot_size_path(tree.size_path(X, y), X, y).get_figure().axes
    assert axes[1].get_ylabel() == "minus the mean cost of the given rows"
