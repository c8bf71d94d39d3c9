"""Binary features: each is a condition on one column, with its record in a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, ClassVar, Literal

import numpy as np
from msgspec.structs import replace

from bristlecone._data.records import Finite, Record
from bristlecone._encoder.columns import Category
from bristlecone._types import Bools

ROUNDING = 1e-12
"""Shares of the weight that differ by less are equal: last digits depend on the order of rows."""

# Number of levels of a set that are named; the others are counted.
_MOST_NAMED = 3


class _Question(Record, frozen=True, kw_only=True):
    """Base of all binary features.

    Attributes
    ----------
    column : str
        Name of the column.
    condition : str
        What follows the column's name in the name of the feature.
    asks : {"at most", "flag", "level", "missing"}
        Whether a number is at most a bound, a boolean is true, a category is one of some, or a
        value is missing.
    """

    asks: ClassVar[Literal["at most", "flag", "level", "missing"]]
    column: str
    condition: str

    @property
    def name(self) -> str:
        """Readable name, such as "age <= 52.5"."""
        return f"{self.column} {self.condition}" if self.condition else self.column


def _with_missing(answer: Bools, missing: Bools | None, fill: bool | Bools) -> Bools:
    """The answers, with ``fill`` for missing values."""
    return answer if missing is None else np.where(missing, fill, answer)


class Threshold(_Question, frozen=True, kw_only=True, tag="threshold"):
    """True if the number is at most ``value``; ``missing`` if there is none."""

    asks = "at most"
    value: Finite
    missing: bool

    def evaluate(self, column: Any) -> Bools:
        """Answer for each row of a NumericColumn or RankedColumn, bool (n,)."""
        return _with_missing(column.at_most(self.value), column.missing, self.missing)


class Flag(_Question, frozen=True, kw_only=True, tag="flag"):
    """True if a boolean is true, or a 0/1 integer is 1 (or more); ``missing`` if missing."""

    asks = "flag"
    missing: bool

    def evaluate(self, column: Any) -> Bools:
        """Answer for each row of a NumericColumn, bool (n,)."""
        answer = column.values if column.is_flag else column.values > 0.5
        return _with_missing(answer, column.missing, self.missing)


class Level(_Question, frozen=True, kw_only=True, tag="level"):
    """True if the category is ``level``."""

    asks = "level"
    level: Category
    missing: ClassVar[bool] = False

    def evaluate(self, column: Any) -> Bools:
        """Answer for each row of a CategoricalColumn, bool (n,)."""
        if self.level not in column.levels:
            return np.zeros(column.n_rows, dtype=bool)
        return column.codes == column.levels.index(self.level)


class Levels(_Question, frozen=True, kw_only=True):
    """Base of features that are true if the category is one of ``levels``."""

    asks = "level"
    levels: tuple[Category, ...]
    missing: ClassVar[bool] = False

    def evaluate(self, column: Any) -> Bools:
        """Answer for each row of a CategoricalColumn, bool (n,)."""
        wanted = frozenset(self.levels)
        answer = np.array([*(level in wanted for level in column.levels), False])
        return answer[column.codes]  # the last entry serves code -1


class Other(Levels, frozen=True, kw_only=True, tag="other"):
    """True if the category is one of the rare ``levels`` that were merged."""


class AtMost(Levels, frozen=True, kw_only=True, tag="at most"):
    """True if the ordered category is one of ``levels``, the first ones in its order."""


class OneOf(Levels, frozen=True, kw_only=True, tag="one of"):
    """True if the category is one of ``levels``, which have the lowest or the highest risk."""


class Missing(_Question, frozen=True, kw_only=True, tag="missing"):
    """True if the column has no value."""

    asks = "missing"
    missing: ClassVar[bool] = True

    def evaluate(self, column: Any) -> Bools:
        """Answer for each row of a column of either kind, bool (n,)."""
        missing = column.missing
        return np.zeros(column.n_rows, dtype=bool) if missing is None else missing


Feature = Threshold | Flag | Level | Other | AtMost | OneOf | Missing
"""A binary feature; its ``missing`` is the answer for a row without a value."""


def sides(answers: Bools) -> Bools:
    """Answers of shape (n,) or (k, n), negated if the first row's answer is true.

    They are the same for a feature and its complement.
    """
    return answers ^ answers[..., :1]


def level_text(level: Category) -> str:
    """A level as shown in a name: quoted only if its ends could not be recognised otherwise."""
    if isinstance(level, str) and level and level == level.strip():
        return level
    return repr(level)


def subset_text(levels: Sequence[Category]) -> str:
    """A set of levels: "{A, B, C and 12 more}"; if only one would be left over, it is named."""
    named = len(levels) if len(levels) <= _MOST_NAMED + 1 else _MOST_NAMED
    text = ", ".join(map(level_text, levels[:named]))
    return f"{{{text} and {len(levels) - named} more}}" if levels[named:] else f"{{{text}}}"


def most_balanced(
    features: list[Feature], balance: Sequence[float], most: int | None
) -> list[Feature]:
    """At most ``most`` features: columns take turns and give their most balanced ones first."""
    if most is None or len(features) <= most:
        return features
    turn: Counter[str] = Counter()
    queue: list[tuple[int, int, int]] = []
    for index in sorted(range(len(features)), key=lambda i: -round(balance[i] / ROUNDING)):
        column = features[index].column
        queue.append((turn[column], len(queue), index))
        turn[column] += 1
    kept = sorted(index for _, _, index in sorted(queue)[:most])
    return [features[index] for index in kept]


def with_distinct_names(features: Sequence[Feature], names: Collection[str] = ()) -> list[Feature]:
    """The same features, with changed conditions if two would have the same name.

    Levels are quoted first ("grade = '1'" next to the number 1, "site = 'other'" next to the merged
    levels). Names that are still equal are numbered. ``names`` are already in use.
    """
    own = [feature.name for feature in features]
    if len({*own, *names}) == len(own) + len(names):
        return list(features)
    count = Counter([*own, *names])
    quoted = [
        replace(feature, condition=f"= {feature.level!r}")
        if isinstance(feature, Level) and count[feature.name] > 1
        else feature
        for feature in features
    ]
    taken = set(names)
    result: list[Feature] = []
    for feature in quoted:
        number, distinct = 1, feature
        while distinct.name in taken:
            number += 1
            distinct = replace(feature, condition=f"{feature.condition} ({number})".lstrip())
        taken.add(distinct.name)
        result.append(distinct)
    return result
