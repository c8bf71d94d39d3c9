"""Which columns a tree asks about, and that no others are needed at prediction."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import KBinsDiscretizer

from bristlecone import (
    GreedySurvivalTree,
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    SoftSurvivalTree,
)
from bristlecone.data.frame import Frame
from bristlecone.encoder import BinaryEncoder
from bristlecone.model.registry import load_model, save_model


def study(n=200, seed=0):
    """Time depends on b and d alone."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 5)), columns=list("abcde"))
    rate = np.exp(2.0 * (X["b"] > 0) + 1.0 * (X["d"] > 0.3))
    time = np.ceil(50 * rng.exponential(size=n) / rate)
    return X, (rng.random(n) < 0.9, time)


TREES = {
    "optimal": OptimalSurvivalTree(max_depth=2),
    "brier": OptimalSurvivalTree(max_depth=2, objective="brier"),
    "greedy": GreedySurvivalTree(max_depth=2),
    "greedy over thresholds": GreedySurvivalTree(max_depth=2, encoder=None),
}


@pytest.mark.parametrize("name", TREES)
def test_only_the_columns_that_the_tree_asks_are_needed(name, tmp_path):
    X, y = study()
    tree = TREES[name].fit(X, y)
    assert tree.features_used_ == ["b", "d"]
    expected = tree.predict(X)
    save_model(tree, tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.features_used_ == ["b", "d"]
    for frame in (
        X[["d", "b"]],
        X.assign(a=np.nan, c="text", e=pd.Timestamp("2020-01-01"), extra=[[1]] * len(X)),
        pl.from_pandas(X[["b", "d"]]).with_columns(a=pl.lit("old"), new=pl.lit(None)),
        Frame((column, X[column].to_numpy()) for column in ("d", "b")),
    ):
        assert np.array_equal(tree.predict(frame), expected)
        assert np.array_equal(loaded.predict(frame), expected)
        assert np.array_equal(tree.apply(frame), tree.apply(X))
    with pytest.raises(ValueError, match=r"missing: 'b'$"):
        tree.predict(X.drop(columns="b"))
    with pytest.raises(ValueError, match="missing: 'b', 'd'; not seen in training: 'B'"):
        tree.predict(X[["a"]].assign(B=1.0))


@pytest.mark.parametrize("name", TREES)
def test_arrays_keep_their_columns_and_may_hold_anything_where_nothing_is_asked(name):
    X, y = study()
    array = X.to_numpy()
    tree = TREES[name].fit(array, y)
    assert tree.features_used_ == [1, 3]
    expected = tree.predict(array)
    changed = array.copy()
    changed[:, 0], changed[:, 2], changed[:, 4] = np.nan, np.inf, -np.inf
    assert np.array_equal(tree.predict(changed), expected)
    mixed = array.astype(object)
    mixed[:, 0] = "text"
    assert np.array_equal(tree.predict(mixed), expected)
    for wrong in (array[:, :4], np.hstack([array, array])):
        with pytest.raises(
            ValueError, match=f"X has {wrong.shape[1]} features, but .* expecting 5"
        ):
            tree.predict(wrong)
    with pytest.raises(ValueError, match=r"X has 2 features, but .* expecting 5"):
        tree.predict(X[["b", "d"]])


def test_a_single_leaf_needs_no_column():
    X, y = study()
    tree = OptimalSurvivalTree(max_depth=0).fit(X, y)
    assert tree.features_used_ == []
    assert np.array_equal(tree.predict(pd.DataFrame({"z": [1, 2]})), tree.predict(X[:2]))


def test_classifiers_and_regressors_tell_their_columns_too():
    X, _ = study()
    labels = (X["c"] > 0.2).to_numpy()
    for tree in (OptimalTreeClassifier(max_depth=1), OptimalTreeRegressor(max_depth=1)):
        tree.fit(X, labels.astype(int))
        assert tree.features_used_ == ["c"]
        assert np.array_equal(tree.predict(X[["c"]]), tree.predict(X))


def test_a_category_that_no_question_is_about_may_be_unknown():
    X, y = study()
    X["site"] = np.where(np.arange(len(X)) % 2, "u", "v")
    tree = OptimalSurvivalTree(max_depth=2, encoder=BinaryEncoder(handle_unknown="error"))
    tree.fit(X, y)
    assert tree.features_used_ == ["b", "d"]
    assert np.array_equal(tree.predict(X.assign(site="w")), tree.predict(X))


def test_of_a_transformer_of_ones_own_every_column_is_needed():
    X, y = study()
    encoder = make_column_transformer(
        (KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"), ["b", "d"])
    )
    tree = OptimalSurvivalTree(max_depth=2, encoder=encoder).fit(X, y)
    assert tree.features_used_ == list("abcde")
    assert np.array_equal(tree.predict(X), tree.predict(X.copy()))


def test_soft_trees_need_the_columns_that_have_a_weight():
    X, y = study()
    tree = SoftSurvivalTree(depth=1, l1=0.02, n_restarts=1, min_leaf_share=0, random_state=0).fit(
        X, y
    )
    needed = (tree.coef_ != 0).any(axis=0) | (tree.leaf_coef_ != 0).any(axis=0)
    weighed = [column for column, is_needed in zip(X, needed, strict=True) if is_needed]
    assert set(tree.features_used_) <= set(weighed)
    expected = tree.predict(X)
    assert np.array_equal(tree.predict(X[weighed].assign(extra="any")), expected)
    with pytest.raises(ValueError, match=f"missing: '{weighed[0]}'"):
        tree.predict(X.drop(columns=weighed[0]))
    # a column without any weight
    tree.tree_.weights[:, 2] = 0
    tree._linear[:, 2] = 0
    assert "c" not in tree.features_used_
    assert np.array_equal(tree.predict(X.drop(columns="c")), tree.predict(X.assign(c="any")))
