"""Ordered categories, and columns whose type may be a mistake."""

import json
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bristlecone import OptimalSurvivalTree, OptimalTreeClassifier
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.features import AtMost, Missing
from bristlecone.exceptions import ColumnWarning
from bristlecone.export import export_text

GRADES = ["I", "II", "III", "IV"]


def names(encoder):
    return encoder.get_feature_names_out().tolist()


def grades(values, levels=GRADES):
    return pd.DataFrame({"grade": pd.Categorical(values, categories=levels, ordered=True)})


# --- ordered categories -------------------------------------------------------------------------


def test_ordered_categories_are_cut_in_their_order():
    levels = ["low", "mid", "high"]  # not the order of the alphabet
    values = ["high", "low", "mid", "low"]
    arrow = pa.Table.from_pandas(grades(values, levels))
    parts = pa.concat_tables([arrow.slice(0, 1), arrow.slice(1)])
    for X in (
        grades(values, levels),
        pl.DataFrame({"grade": pl.Series(values, dtype=pl.Enum(levels))}),
        arrow,
        parts,
        arrow.to_pandas(types_mapper=pd.ArrowDtype),
    ):
        encoder = BinaryEncoder().fit(X)
        assert names(encoder) == ["grade <= low", "grade <= mid"]
        assert encoder.features_[1] == AtMost(
            column="grade", condition="<= mid", levels=("low", "mid")
        )
        assert encoder.columns_[0].levels == ("low", "mid", "high")
        assert encoder.transform(X).astype(int).tolist() == [[0, 0], [1, 1], [0, 1], [1, 1]]


def test_ordered_numbers_are_cut_in_their_declared_order():
    encoder = BinaryEncoder().fit(grades([1, 2, 3, 1], [3, 1, 2]))
    assert names(encoder) == ["grade <= 3", "grade <= 1"]
    plain = pd.DataFrame({"grade": [3, 1, 2]})
    assert encoder.transform(plain).astype(int).tolist() == [[1, 1], [0, 1], [0, 0]]


def test_unordered_categories_stay_one_feature_per_level():
    X = pd.DataFrame({"grade": pd.Categorical(["I", "II", "III"], categories=GRADES)})
    assert names(BinaryEncoder().fit(X)) == ["grade = I", "grade = II", "grade = III"]
    X = pl.DataFrame({"grade": pl.Series(["I", "II", "III"], dtype=pl.Categorical)})
    assert names(BinaryEncoder().fit(X)) == ["grade = I", "grade = II", "grade = III"]


def test_a_declared_level_without_rows_keeps_its_place():
    encoder = BinaryEncoder(handle_unknown="error").fit(grades(["I", "III", "IV", "III"]))
    assert names(encoder) == ["grade <= I", "grade <= III"]
    answers = encoder.transform(grades(["I", "II", "III", "IV"]))
    assert answers.astype(int).tolist() == [[1, 1], [0, 1], [0, 1], [0, 0]]


@pytest.mark.parametrize("form", ["text", "ordered otherwise", "polars"])
def test_levels_at_prediction_are_known_by_name(form):
    encoder = BinaryEncoder().fit(grades(GRADES))
    values = ["III", "V", None]
    X = {
        "text": pd.DataFrame({"grade": values}),
        "ordered otherwise": grades(values, ["V", "III"]),
        "polars": pl.DataFrame({"grade": values}),
    }[form]
    # neither an unknown level nor a missing one is at most any level
    assert encoder.transform(X).astype(int).tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]
    strict = BinaryEncoder(handle_unknown="error").fit(grades(GRADES))
    with pytest.raises(ValueError, match="column 'grade' holds the unknown category 'V' in row 1"):
        strict.transform(X)


def test_many_ordered_levels_are_cut_at_quantiles():
    levels = [f"level {k:02}" for k in range(40)]
    X = grades(np.repeat(levels, 5), levels)
    encoder = BinaryEncoder(n_thresholds=4).fit(X)
    assert [len(feature.levels) for feature in encoder.features_] == [9, 17, 24, 32]
    assert encoder.n_features_out_ == 4
    rank = pd.DataFrame({"grade": np.repeat(np.arange(40.0), 5)})
    numbers = BinaryEncoder(n_thresholds=4).fit_transform(rank)
    assert np.array_equal(encoder.transform(X), numbers)
    assert BinaryEncoder(thresholds="midpoints").fit(X).n_features_out_ == 39


def test_missing_ordered_categories_are_a_question_of_their_own():
    X = grades(["I", None, "II", "III"])
    encoder = BinaryEncoder().fit(X)
    assert names(encoder) == ["grade <= I", "grade <= II", "grade is missing"]
    assert encoder.transform(X).astype(int).tolist() == [[1, 1, 0], [0, 0, 1], [0, 1, 0], [0, 0, 0]]
    assert isinstance(encoder.features_[2], Missing)
    assert encoder.missing_goes_ == [False, False, True]


def test_rows_of_weight_zero_leave_the_order_as_it_is():
    X = grades(["II", "I", "III", "IV", "IV"])
    encoder = BinaryEncoder().fit(X, sample_weight=[1, 0, 2, 1, 1])
    assert names(encoder) == ["grade <= II", "grade <= III"]
    assert encoder.columns_[0].levels == tuple(GRADES)


def test_ordered_categories_are_saved():
    X = grades([*GRADES, None])
    encoder = BinaryEncoder().fit(X)
    again = BinaryEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert again.columns_ == encoder.columns_
    assert again.features_ == encoder.features_
    assert np.array_equal(again.transform(X), encoder.transform(X))
    rng = np.random.default_rng(0)
    X = grades(rng.choice(GRADES, 80))
    time = np.where(X["grade"] <= "II", 9.0, 2.0) + rng.integers(0, 3, 80)
    tree = OptimalSurvivalTree(max_depth=1).fit(X, (np.ones(80, dtype=bool), time))
    assert export_text(tree).startswith("grade <= II\n")
    loaded = OptimalSurvivalTree.from_json(tree.to_json())
    assert loaded.to_json() == tree.to_json()
    assert np.array_equal(loaded.predict(X), tree.predict(X))


# --- columns whose type may be a mistake --------------------------------------------------------


@pytest.mark.parametrize("values", [["31", "45", "45.5"], ["1e3", " 2", "-7", None]])
def test_text_of_nothing_but_numbers_is_warned_about(values):
    X = pd.DataFrame({"age": values, "sex": pd.Series(["f"] + ["m"] * (len(values) - 1))})
    with pytest.warns(
        ColumnWarning,
        match=r"column 'age' contains only numbers stored as text.* convert it to "
        "numbers",
    ) as reported:
        BinaryEncoder().fit(X)
    assert len(reported) == 1
    with pytest.warns(ColumnWarning, match="column 'age' contains only numbers stored as text"):
        OptimalTreeClassifier(max_depth=1).fit(X, [0, *[1] * (len(values) - 1)])


@pytest.mark.parametrize(
    "column",
    [
        ["0", "1", "1", "0"],  # with two levels, a threshold would be the same feature
        ["1", "2", "3", "A"],
        ["1", "2", "3", 4],
        ["I", "II", "nan", "inf"],
        pd.Categorical(["1", "2", "3", "4"]),
        pd.Categorical([1, 2, 3, 4]),
        grades(["1", "2", "3", "4"], ["1", "2", "3", "4"])["grade"],
        [1, 2, 3, 4],
    ],
)
def test_ordinary_columns_are_not_warned_about(column):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BinaryEncoder().fit(pd.DataFrame({"a": column}))


def test_many_rare_levels_are_warned_about():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"site": rng.permutation(np.arange(686) % 150).astype(str)})
    X["site"] = "s" + X["site"]
    message = "column 'site' has 150 levels, and none of them .* min_support=0.01 .* group its "
    "levels"
    with pytest.warns(ColumnWarning, match=message):
        BinaryEncoder().fit(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        BinaryEncoder(min_support=0.005, categories="levels").fit(X)
        X.loc[:20, "site"] = "s0"  # one level is frequent enough
        BinaryEncoder(categories="levels").fit(X)
