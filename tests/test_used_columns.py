"""The columns that a tree needs, in cases that the contract of all trees does not cover."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import KBinsDiscretizer

from bristlecone import (
    OptimalSurvivalTree,
    SoftSurvivalTree,
)
from bristlecone._encoder.binary import BinaryEncoder


def study(n=200, seed=0):
    """The time depends only on b and d."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 5)), columns=list("abcde"))
    rate = np.exp(2.0 * (X["b"] > 0) + 1.0 * (X["d"] > 0.3))
    time = np.ceil(50 * rng.exponential(size=n) / rate)
    return X, (rng.random(n) < 0.9, time)


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
    tree.leaves_.linear[:, 2] = 0
    assert "c" not in tree.features_used_
    assert np.array_equal(tree.predict(X.drop(columns="c")), tree.predict(X.assign(c="any")))
