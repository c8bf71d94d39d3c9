"""Paths in words: merged per column, exact for whole numbers, levels and missing values."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import KBinsDiscretizer

from bristlecone import (
    GreedySurvivalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    SoftSurvivalTree,
)
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.rules import (
    Question,
    conditions,
    leaf_rules,
    list_questions,
    questions,
    rule_text,
)
from bristlecone.export import export_text


def at_most(value, *, whole=False, missing=None, column="nodes"):
    return Question(
        kind="at most",
        column=column,
        text=f"{value:g}",
        value=value,
        whole=whole,
        missing=missing,
    )


def level(text, missing=None):
    return Question(kind="level", column="stage", text=text, missing=missing)


FLAG = Question(kind="flag", column="smokes")
ABSENT = Question(kind="missing", column="nodes")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ([(8.5, True)], "nodes <= 8.5"),
        ([(8.5, False)], "nodes > 8.5"),
        ([(8.5, True), (3.5, False)], "3.5 < nodes <= 8.5"),
        ([(3.5, False), (8.5, True), (6.0, True), (1.0, False)], "3.5 < nodes <= 6"),
    ],
)
def test_cuts_of_a_column_are_merged(path, expected):
    assert conditions([(at_most(value), yes) for value, yes in path]) == [expected]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ([(8.5, True)], "nodes <= 8"),
        ([(60.5, False)], "nodes >= 61"),
        ([(8.5, True), (3.5, False)], "4 <= nodes <= 8"),
        ([(3.5, False), (4.5, True)], "nodes = 4"),
        # A threshold midway between -3 and 0.
        ([(-1.5, True)], "nodes <= -2"),
        ([(-1.5, False)], "nodes >= -1"),
    ],
)
def test_whole_numbers_have_no_halves(path, expected):
    assert conditions([(at_most(value, whole=True), yes) for value, yes in path]) == [expected]


def test_levels_and_flags():
    assert conditions([(level("II"), True)]) == ["stage = II"]
    assert conditions([(level("II"), False)]) == ["stage != II"]
    assert conditions([(level("I"), False), (level("III"), False)]) == ["stage not in {I, III}"]
    assert conditions([(level("I"), False), (level("II"), True)]) == ["stage = II"]
    assert conditions([(FLAG, True)]) == ["smokes"]
    assert conditions([(FLAG, False)]) == ["not smokes"]


def test_conditions_come_in_the_order_of_the_path():
    path = [(level("I"), False), (at_most(8.5), True), (FLAG, False), (at_most(3.5), False)]
    assert rule_text(conditions(path)) == "stage != I and 3.5 < nodes <= 8.5 and not smokes"
    assert rule_text([]) == "every row"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ([(at_most(8.5, missing=True), True)], "nodes <= 8.5 (or missing)"),
        ([(at_most(8.5, missing=True), False)], "nodes > 8.5"),
        ([(at_most(8.5, missing=False), True)], "nodes <= 8.5"),
        ([(at_most(8.5, missing=False), False)], "nodes > 8.5 (or missing)"),
        # The mean, 5, is between the thresholds.
        (
            [(at_most(8.5, missing=True), True), (at_most(3.5, missing=False), False)],
            "3.5 < nodes <= 8.5 (or missing)",
        ),
        (
            [(at_most(8.5, missing=True), True), (at_most(3.5, missing=False), True)],
            "nodes <= 3.5",
        ),
        ([(level("II", missing=False), False)], "stage != II (or missing)"),
        ([(ABSENT, True)], "nodes is missing"),
        ([(ABSENT, False)], "nodes is not missing"),
        ([(at_most(8.5, missing=False), False), (ABSENT, True)], "nodes is missing"),
        ([(at_most(8.5, missing=False), False), (ABSENT, False)], "nodes > 8.5"),
    ],
)
def test_where_rows_without_a_value_go_is_said(path, expected):
    assert conditions(path) == [expected]


def test_questions_say_where_rows_without_a_value_go():
    assert at_most(8.5, missing=True).name == "nodes <= 8.5 (or missing)"
    assert at_most(8.5, missing=False).name == "nodes <= 8.5"
    assert ABSENT.name == "nodes is missing"


def test_ordered_levels_are_merged_like_numbers():
    grades = [
        Question(kind="at most", column="grade", text=text, value=float(k))
        for k, text in enumerate(("I", "II", "III"), start=1)
    ]
    assert conditions([(grades[0], False), (grades[2], True)]) == ["I < grade <= III"]
    assert conditions([(grades[1], False)]) == ["grade > II"]
    assert list_questions(grades) == ["grade <= I, II, III"]


def test_questions_of_an_encoder_of_ones_own_stay_as_they_are():
    X = pd.DataFrame({"age": np.arange(20.0)})
    bins = KBinsDiscretizer(2, encode="onehot-dense", strategy="uniform", random_state=0)
    tree = OptimalTreeClassifier(encoder=bins, max_depth=1).fit(X, X["age"] > 9)
    name = tree.splits_[0]
    assert name in bins.fit(X).get_feature_names_out()
    assert leaf_rules(tree) == [[name], [f"not {name}"]]
    own = Question(kind="own", column="a or b")
    assert conditions([(own, False)]) == ["not (a or b)"]


def test_questions_of_the_encoder_of_the_package():
    X = pd.DataFrame(
        {
            "nodes": [1, 2, 4, 9] * 5,
            "size": [1.5, 2.0, 4.0, 9.0] * 5,
            "years": [1.0, 2.0, 4.0, 9.0] * 5,
            "stage": ["I", "II", None, "III"] * 5,
            "smokes": [True, False, False, True] * 5,
        }
    )
    encoder = BinaryEncoder().fit(X)
    asked = questions(encoder)
    assert len(asked) == encoder.n_features_out_
    # The encoder drops features that repeat an earlier one.
    lines = list_questions(asked)
    assert lines[0] == "nodes <= 1, 3, 6"
    assert not any(question.whole for question in asked if question.column == "size")
    encoder = BinaryEncoder().fit(X[["size"]])
    assert list_questions(questions(encoder)) == ["size <= 1.75, 3, 6.5"]
    encoder = BinaryEncoder().fit(X[["years"]])
    assert list_questions(questions(encoder)) == ["years <= 1, 3, 6"]
    encoder = BinaryEncoder(missing="branch").fit(X[["stage", "smokes"]])
    assert list_questions(questions(encoder)) == [
        "stage = I, II, III",
        "stage is missing",
        "smokes",
    ]
    again = BinaryEncoder.from_dict(encoder.to_dict())
    assert questions(again) == questions(encoder)


def test_a_column_with_two_cuts_between_the_same_whole_numbers_keeps_its_cuts():
    X = pd.DataFrame({"nodes": [1.0, 2.0, 4.0, np.nan] * 5})
    encoder = BinaryEncoder().fit(X)
    values = [feature.value for feature in encoder.features_ if hasattr(feature, "value")]
    floors = np.floor(values)
    printed = list_questions(questions(encoder))[0]
    assert len(set(printed.partition("<= ")[2].split(", "))) == len(values)
    assert all(q.whole for q in questions(encoder)) == (len(set(floors)) == len(floors))


def holds(rule, frame):
    """Whether rows satisfy the conditions of a leaf, by the text."""
    answer = np.ones(len(frame), dtype=bool)
    for part in rule:
        if part.startswith("not in {", part.find(" ") + 1):
            column, _, levels = part.partition(" not in {")
            answer &= ~frame[column].isin(levels.rstrip("}").split(", ")).to_numpy()
        elif " != " in part:
            column, _, value = part.partition(" != ")
            answer &= (frame[column] != value).to_numpy()
        elif part in frame:
            answer &= frame[part].to_numpy()
        elif part.removeprefix("not ") in frame:
            answer &= ~frame[part.removeprefix("not ")].to_numpy()
        elif " = " in part:
            column, _, value = part.partition(" = ")
            values = frame[column]
            value = float(value) if pd.api.types.is_numeric_dtype(values) else value
            answer &= (values == value).to_numpy()
        else:
            words = part.split(" ")
            if len(words) == 5:
                low, first, column, second, high = words
                answer &= compare(float(low), first, frame[column]) & compare(
                    frame[column], second, float(high)
                )
            else:
                column, sign, bound = words
                answer &= compare(frame[column], sign, float(bound))
    return answer


def compare(left, sign, right):
    found = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[sign](
        left, right
    )
    return np.asarray(found)


@pytest.mark.parametrize("seed", range(8))
def test_rules_say_of_every_training_row_what_the_tree_does(seed):
    rng = np.random.default_rng(seed)
    n = 120
    X = pd.DataFrame(
        {
            "nodes": rng.integers(-3, 12, n),
            "size": rng.normal(size=n).round(2),
            "stage": rng.choice(["I", "II", "III", "IV"], n).astype(object),
            "smokes": rng.random(n) < 0.5,
        }
    )
    y = rng.normal(size=n) + (X["nodes"] > 3) * (X["stage"] == "II") - X["smokes"] * X["size"]
    for model in (
        OptimalTreeRegressor(max_depth=4, min_samples_leaf=3).fit(X, y),
        OptimalTreeRegressor(
            max_depth=4, min_samples_leaf=3, encoder=BinaryEncoder(n_thresholds=2)
        ).fit(X, y),
    ):
        leaf = model.apply(X)
        assert model.n_leaves_ > 8
        for node, rule in zip(model.tree_.leaves, leaf_rules(model), strict=True):
            np.testing.assert_array_equal(holds(rule, X), leaf == node, err_msg=rule_text(rule))


def test_a_tree_without_rules_says_so():
    X, y = np.arange(20.0)[:, None], (np.ones(20, bool), np.arange(1.0, 21.0))
    soft = SoftSurvivalTree(depth=1, n_restarts=1, random_state=0).fit(X, y)
    with pytest.raises(TypeError, match="a SoftSurvivalTree has no rules"):
        leaf_rules(soft)
    with pytest.raises(NotFittedError):
        leaf_rules(OptimalTreeRegressor())


def test_rules_of_a_tree_that_cuts_numbers_itself():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"nodes": rng.integers(0, 9, 80), "size": rng.normal(size=80).round(3)})
    y = rng.random(80) < 0.8, rng.exponential(size=80) * (1 + X["nodes"].to_numpy())
    model = GreedySurvivalTree(encoder=None, max_depth=3).fit(X, y)
    leaf = model.apply(X)
    for node, rule in zip(model.tree_.leaves, leaf_rules(model), strict=True):
        np.testing.assert_array_equal(holds(rule, X), leaf == node, err_msg=rule_text(rule))
    again = GreedySurvivalTree.from_json(model.to_json())
    assert leaf_rules(again) == leaf_rules(model)
    assert export_text(again) == export_text(model)
    assert ".5" not in "".join(
        part for rule in leaf_rules(model) for part in rule if "nodes" in part
    )
