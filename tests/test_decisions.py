"""Splits of exported programs give the answers of the fitted encoder for every value."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from contract.subjects import SUBJECTS
from decisions_plainly import decide
from hypothesis import given
from hypothesis import strategies as st
from sklearn.preprocessing import KBinsDiscretizer

from bristlecone import GreedySurvivalTree, OptimalTreeRegressor
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.decisions import Decision, tree_decisions
from bristlecone._tree import Tree

NEXT = math.nextafter(0.1, 1)


def every_feature(encoder):
    """The decision of every feature, from a tree that is a chain of all of them."""
    count = encoder.n_features_out_
    nodes = np.arange(2 * count + 1)
    split = nodes % 2 == 0
    split[-1] = False
    chain = Tree(
        np.where(split, nodes + 1, -1),
        np.where(split, nodes + 2, -1),
        np.where(split, nodes // 2, -2),
        nodes,
        nodes,
    )
    decisions = tree_decisions(encoder, chain)
    return [decisions[2 * index] for index in range(count)]


def agree(encoder, X):
    """Assert that every feature and its decision give the same answer for every row."""
    expected = encoder.transform(X)
    decisions = every_feature(encoder)
    for decision, answers in zip(decisions, expected.T, strict=True):
        assert [decide(decision, value) for value in X[decision.column].tolist()] == list(answers)
    return decisions


def odd_columns(n, seed):
    """Columns of all kinds under odd names, with missing values."""
    rng = np.random.default_rng(seed)
    mixed = np.array(["1", 1, 2.5, True, "II", "it's", 'a "b"', "größer"], dtype=object)
    X = pd.DataFrame(
        {
            'it\'s "age"': rng.normal(60, 10, n),
            "select": rng.integers(0, 9, n),
            "größe 身長": rng.normal(size=n).astype(np.float32),
            "flag": rng.random(n) < 0.4,
            "0/1": rng.integers(0, 2, n),
            "); DROP TABLE x; --": rng.choice(mixed, n),
            "grade": pd.Categorical(
                rng.choice(["I", "II", "III", "IV"], n), ["I", "II", "III", "IV"], ordered=True
            ),
            "site": rng.choice([f"s{k}" for k in range(20)], n),
            "number of kind": pd.Categorical(rng.choice([3, 5, 7], n)),
        }
    )
    for place in (0, 2, 5, 6, 7):
        X.iloc[rng.random(n) < 0.1, place] = None
    return X


@pytest.mark.parametrize("missing", ["impute", "branch"])
@pytest.mark.parametrize("max_categories", [4, None])
def test_decisions_answer_as_the_encoder_on_thousands_of_rows(missing, max_categories):
    encoder = BinaryEncoder(missing=missing, max_categories=max_categories, categories="levels")
    decisions = agree(encoder.fit(odd_columns(300, 0)), odd_columns(3000, 1))
    assert {decision.kind for decision in decisions} == {"at most", "level", "flag", "missing"}
    assert {decision.missing for decision in decisions} == {True, False}


def test_rows_without_any_value_and_unknown_levels():
    X = odd_columns(200, 0)
    encoder = BinaryEncoder(max_categories=3, categories="levels").fit(X)
    new = X[:4].astype(object)
    new.iloc[0] = None
    new.iloc[1] = float("nan")
    new.loc[2, ["site", "grade", "); DROP TABLE x; --"]] = ["never seen", "V", "other"]
    agree(encoder, new)


@pytest.mark.parametrize("missing", ["impute", "branch"])
def test_nullable_columns_of_pandas_and_polars(missing):
    flags = [True, None, False, True, False, None]
    X = pd.DataFrame(
        {
            "whole": pd.array([1, 5, None, 7, 9, 2], dtype="Int64"),
            "flag": pd.array(flags, dtype="boolean"),
            "text": pd.array(["a", None, "b", "a", "c", "b"], dtype="string"),
        }
    )
    agree(BinaryEncoder(missing=missing).fit(X), X)
    frame = pl.DataFrame(
        {"whole": [1, 5, None, 7], "flag": flags[:4], "text": ["a", None, "b", "c"]}
    )
    encoder = BinaryEncoder(missing=missing).fit(frame)
    for decision, answers in zip(every_feature(encoder), encoder.transform(frame).T, strict=True):
        values = frame[decision.column].to_list()
        assert [decide(decision, value) for value in values] == answers.tolist()


@pytest.mark.filterwarnings(r"ignore:column .* contains integers beyond 2\*\*53")
@pytest.mark.parametrize(
    "values",
    [
        [0.1, NEXT, math.nextafter(NEXT, 1), math.nextafter(0.1, 0)],
        [-0.0, 0.0, 5e-324, -5e-324],
        [2**53 - 1, 2**53, 2**53 + 1, 2**53 + 2, 2**53 + 4, -(2**53) - 1],
        [1.7e308, -1.7e308, 1e-308],
        np.array([0.1, 0.2, 0.3, 1 / 3], dtype=np.float32),
        np.array([0, 255, 254, 1], dtype=np.uint8),
    ],
)
def test_edges_of_the_numbers(values):
    X = pd.DataFrame({"x": values})
    agree(BinaryEncoder(thresholds="midpoints", min_support=0).fit(X), X)


@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=12),
    st.lists(st.floats(allow_infinity=False), min_size=1, max_size=12),
)
def test_any_numbers(fitted, new):
    agree(BinaryEncoder(min_support=0).fit(pd.DataFrame({"x": fitted})), pd.DataFrame({"x": new}))


@given(
    st.lists(st.text(max_size=5), min_size=3, max_size=12),
    st.lists(st.text(max_size=5) | st.none(), min_size=1, max_size=12),
)
def test_any_text(fitted, new):
    encoder = BinaryEncoder(min_support=0, max_categories=2, categories="levels").fit(
        pd.DataFrame({"x": fitted})
    )
    agree(encoder, pd.DataFrame({"x": pd.Series([*fitted, *new], dtype=object)}))


def test_flags_take_other_numbers_too():
    encoder = BinaryEncoder().fit(pd.DataFrame({"flag": [True, False, True]}))
    agree(encoder, pd.DataFrame({"flag": [0.0, 0.5, 0.51, 1.0, 2.0, -1.0, float("nan")]}))
    agree(encoder, pd.DataFrame({"flag": [0, 1, 2, -1]}))


def leaf_of(tree, decisions, row):
    node = 0
    while node in decisions:
        yes = decide(decisions[node], row[decisions[node].place])
        node = int((tree.children_left if yes else tree.children_right)[node])
    return node


def test_rows_reach_the_leaf_of_apply():
    X, rng = odd_columns(400, 3), np.random.default_rng(3)
    y = rng.normal(size=400) + (X["site"] == "s3") + X["select"] / 3
    encoder = BinaryEncoder(n_thresholds=3, categories="levels")
    tree = OptimalTreeRegressor(max_depth=4, encoder=encoder).fit(X, y)
    new = odd_columns(3000, 4)
    decisions = tree_decisions(tree.encoder_, tree.tree_)
    rows = new.astype(object).itertuples(index=False, name=None)
    found = [leaf_of(tree.tree_, decisions, row) for row in rows]
    assert found == tree.apply(new).tolist()
    assert len(set(found)) == tree.n_leaves_


def test_a_tree_over_every_threshold():
    study = SUBJECTS["GreedySurvivalTree"].study(300)
    tree = GreedySurvivalTree(max_depth=3, encoder=None).fit(study.X, study.y)
    decisions = tree_decisions(tree.encoder_, tree.tree_)
    assert decisions[0] == Decision(
        column=study.X.columns[decisions[0].place],
        place=decisions[0].place,
        kind="at most",
        numeric=True,
        missing=decisions[0].missing,
        bound=tree.tree_.threshold[0],
    )
    found = [leaf_of(tree.tree_, decisions, row) for row in study.X.to_numpy()]
    assert found == tree.apply(study.X).tolist()


def test_what_decisions_say():
    X = pd.DataFrame({"age": [50, 55, 61, 70], "stage": ["I", None, "III", "III"]})
    X.loc[4] = [80, "II"]
    encoder = BinaryEncoder(max_categories=1, categories="levels", thresholds="midpoints").fit(X)
    age = Decision(column="age", place=0, kind="at most", numeric=True, missing=False, bound=52.5)
    other = Decision(
        column="stage", place=1, kind="level", numeric=False, missing=False, levels=("I", "II")
    )
    decisions = every_feature(encoder)
    assert decisions[0] == age
    # A missing age is replaced by the mean, 63.2.
    assert [d.missing for d in decisions if d.kind == "at most"] == [False, False, True, True]
    assert [d for d in decisions if len(d.levels) > 1] == [other]


def test_what_has_no_decisions_says_why():
    study = SUBJECTS["OptimalTreeRegressor"].study()
    own = KBinsDiscretizer(n_bins=2, encode="onehot-dense", quantile_method="averaged_inverted_cdf")
    tree = OptimalTreeRegressor(max_depth=1, encoder=own).fit(study.X, study.y)
    with pytest.raises(TypeError, match="KBinsDiscretizer does not report the conditions"):
        tree_decisions(tree.encoder_, tree.tree_)
    soft, _ = SUBJECTS["SoftSurvivalTree"].fitted()
    with pytest.raises(TypeError, match="soft tree has no splits on single columns"):
        tree_decisions(soft.encoder_, soft.tree_)
