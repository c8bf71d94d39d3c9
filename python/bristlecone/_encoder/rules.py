"""Splits and paths of a tree in words: the conditions on the rows of a leaf, column by column.

A rule describes exactly the training rows of a leaf. If all training values of a column are whole
numbers, the rule names the whole numbers next to a threshold: "age <= 52" or "age >= 53" for the
threshold 52.5. A category that was not seen in training matches no level, so a rule says
"grade != II" and does not list the remaining levels.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bristlecone._data.arrays import type_name
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.columns import Category
from bristlecone._encoder.features import AtMost, Feature, Missing, OneOf, Threshold, subset_text
from bristlecone._tree import Tree

# Whole numbers beyond this are not exact, or too long to read.
_MOST_WHOLE = 1e15
_OR_MISSING = " (or missing)"
_SIGNS = {"at most": "<=", "level": "=", "one of": "in"}


@dataclass(frozen=True, kw_only=True)
class Question:
    """A split on one column, in words.

    Parameters
    ----------
    kind : {"at most", "flag", "level", "one of", "missing", "own"}
        "own" is a feature of a custom encoder; only its name is known.
    column : str
        Name of the column; for "own", the whole text.
    text : str
        The bound, level or set of levels as it is printed.
    value : float
        The bound of "at most"; splits of a column are sorted by it. 0 for other kinds.
    whole : bool
        Whether the column contains only whole numbers.
    levels : tuple of str, bool, int or float
        The set of "one of", the most extreme level first.
    missing : bool or None
        Answer for rows in which the column is missing; None if no training value was missing.
    """

    kind: str
    column: str
    text: str = ""
    value: float = 0.0
    whole: bool = False
    levels: tuple[Category, ...] = ()
    missing: bool | None = None

    @property
    def name(self) -> str:
        """The split as a tree shows it."""
        if self.kind == "missing":
            return f"{self.column} is missing"
        name = self.column
        if self.kind in _SIGNS:
            name += f" {_SIGNS[self.kind]} {_bound(self)}"
        return f"{name}{_OR_MISSING}" if self.missing else name


def questions(encoder: Any) -> list[Question]:
    """Splits of a fitted encoder, in the order of its features."""
    if not isinstance(encoder, BinaryEncoder):
        return [Question(kind="own", column=str(name)) for name in encoder.get_feature_names_out()]
    whole = _whole(encoder)
    return [
        _question(feature, feature.column in whole, answer)
        for feature, answer in zip(encoder.features_, encoder.missing_goes_, strict=True)
    ]


def question_names(encoder: Any) -> tuple[str, ...]:
    """Splits as trees show them."""
    if not isinstance(encoder, BinaryEncoder):
        return tuple(encoder.get_feature_names_out())
    whole = _whole(encoder)
    return tuple(
        feature.name
        if answer is None and feature.column not in whole
        else _question(feature, feature.column in whole, answer).name
        for feature, answer in zip(encoder.features_, encoder.missing_goes_, strict=True)
    )


def _whole(encoder: BinaryEncoder) -> set[str]:
    """Columns whose thresholds are shown as the whole numbers below them."""
    whole = {schema.name for schema in encoder.columns_ if schema.whole}
    if not whole:
        return whole
    # Two thresholds between the same whole numbers differ only in the thresholds themselves.
    cuts = Counter(
        (feature.column, math.floor(feature.value))
        for feature in encoder.features_
        if feature.column in whole and isinstance(feature, Threshold)
    )
    return whole - {column for (column, _), count in cuts.items() if count > 1}


def _question(feature: Feature, whole: bool, missing: bool | None) -> Question:
    if isinstance(feature, Missing):
        return Question(kind="missing", column=feature.column)
    kind: str = feature.asks
    more: dict[str, Any] = {}
    if isinstance(feature, Threshold):
        more = {"value": feature.value, "whole": whole and abs(feature.value) < _MOST_WHOLE}
    elif isinstance(feature, AtMost):  # the first levels of an order
        kind, more = "at most", {"value": float(len(feature.levels))}
    elif isinstance(feature, OneOf):
        kind, more = "one of", {"levels": feature.levels}
    _, _, text = feature.condition.partition(" ")
    return Question(kind=kind, column=feature.column, text=text, missing=missing, **more)


def conditions(path: Iterable[tuple[Question, bool]]) -> list[str]:
    """Conditions of a path from the root, one per column.

    Such as "3.5 < nodes <= 8.5", "4 <= nodes <= 8" (whole numbers), "stage = II", "stage != II",
    "stage not in {I, II}", "site in {A, B, C and 9 more}", "smokes", "not smokes", "age is
    missing", with " (or missing)" where rows without a value take the path, too; "own" splits with
    "not (...)" for no. They are in the order in which the path first uses the columns.
    """
    by_column: dict[tuple[bool, str], list[tuple[Question, bool]]] = {}
    for question, yes in path:
        key = question.kind == "own", question.column
        by_column.setdefault(key, []).append((question, yes))
    return [_condition(column, answers) for (_, column), answers in by_column.items()]


def rule_text(parts: Sequence[str]) -> str:
    """Conditions joined by "and"; "every row" when there is none."""
    return " and ".join(parts) or "every row"


def split_questions(encoder: Any, tree: Tree) -> dict[int, Question]:
    """Every split of a tree as text, by node id."""
    asked = questions(encoder)
    return {node: asked[tree.feature[node]] for node in np.flatnonzero(~tree.is_leaf).tolist()}


def leaf_rules(estimator: Any) -> list[list[str]]:
    """Conditions of every leaf of a fitted tree, left to right; see :func:`conditions`.

    Raises
    ------
    TypeError
        If the tree is a soft tree, whose splits use many columns at once.
    NotFittedError, InfeasibleError
        If there is no tree.
    """
    estimator._check_fitted()
    tree = estimator.tree_
    if not isinstance(tree, Tree):
        raise TypeError(f"{type_name(estimator)} has no rules: its splits use many columns at once")
    asked = split_questions(estimator.encoder_, tree)
    return [conditions((asked[node], yes) for node, yes in path) for path in tree.paths()]


def list_questions(asked: Sequence[Question]) -> list[str]:
    """All splits in few lines, one per column and kind: "age <= 46, 50, 53".

    The lines do not contain the answers for missing values.
    """
    groups: dict[tuple[str, str], list[Question]] = {}
    for question in asked:
        groups.setdefault((question.column, question.kind), []).append(question)
    lines = []
    for (column, kind), group in groups.items():
        bounds = ", ".join(_bound(question) for question in group)
        if kind in _SIGNS:
            lines.append(f"{column} {_SIGNS[kind]} {bounds}")
        else:
            lines.append(f"{column} is missing" if kind == "missing" else column)
    return lines


def _bound(question: Question) -> str:
    return str(math.floor(question.value)) if question.whole else question.text


def _condition(column: str, answers: Sequence[tuple[Question, bool]]) -> str:
    by_kind: dict[str, list[tuple[Question, bool]]] = {}
    for question, yes in answers:
        by_kind.setdefault(question.kind, []).append((question, yes))
    found_missing = [yes for _, yes in by_kind.pop("missing", [])]
    if any(found_missing):
        return f"{column} is missing"
    if not by_kind:
        return f"{column} is not missing"
    words = " and ".join(_of_kind(kind, column, rest) for kind, rest in by_kind.items())
    # Rows without a value take the path if their answer agrees with it at every split.
    asked = [question.missing is yes for rest in by_kind.values() for question, yes in rest]
    return f"{words}{_OR_MISSING}" if all(asked) and not found_missing else words


def _of_kind(kind: str, column: str, answers: Sequence[tuple[Question, bool]]) -> str:
    if kind == "at most":
        return _interval(column, answers)
    if kind == "level":
        return _levels(column, answers)
    if kind == "one of":
        return _sets(column, answers)
    if answers[0][1]:
        return column
    return f"not ({column})" if kind == "own" and " " in column else f"not {column}"


def _interval(column: str, answers: Sequence[tuple[Question, bool]]) -> str:
    upper = min((q for q, yes in answers if yes), key=lambda q: q.value, default=None)
    lower = max((q for q, yes in answers if not yes), key=lambda q: q.value, default=None)
    if lower is None:
        assert upper is not None
        return f"{column} <= {_bound(upper)}"
    if not lower.whole:
        if upper is None:
            return f"{column} > {lower.text}"
        return f"{lower.text} < {column} <= {upper.text}"
    least = str(math.floor(lower.value) + 1)
    if upper is None:
        return f"{column} >= {least}"
    most = _bound(upper)
    return f"{column} = {least}" if least == most else f"{least} <= {column} <= {most}"


def _levels(column: str, answers: Sequence[tuple[Question, bool]]) -> str:
    for question, yes in answers:
        if yes:
            return f"{column} = {question.text}"
    texts = [question.text for question, _ in answers]
    return (
        f"{column} != {texts[0]}" if len(texts) == 1 else f"{column} not in {{{', '.join(texts)}}}"
    )


def _sets(column: str, answers: Sequence[tuple[Question, bool]]) -> str:
    """Levels that are possible after all answers: sets of yes, or all except the sets of no."""
    excluded = dict.fromkeys(x for question, yes in answers if not yes for x in question.levels)
    wanted = [question for question, yes in answers if yes]
    if not wanted:
        return f"{column} not in {subset_text(list(excluded))}"
    least = min(wanted, key=lambda question: len(question.levels)).levels
    within = [
        x for x in least if x not in excluded and all(x in question.levels for question in wanted)
    ]
    return f"{column} in {subset_text(within)}"
