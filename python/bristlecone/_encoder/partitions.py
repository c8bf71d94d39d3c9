"""``BinaryEncoder`` over partitions: features of the whole table, whose rows are not stored."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bristlecone._data.arrays import type_name
from bristlecone._data.exact import ExactValues
from bristlecone._data.mixing import mixed
from bristlecone._encoder.binary import BinaryEncoder, keeps_transform
from bristlecone._encoder.choice import choose, choose_of_columns, has_many_levels
from bristlecone._encoder.columns import CategoricalColumn, Column
from bristlecone._encoder.counts import CountedColumn, ValueCounts
from bristlecone._encoder.features import Feature
from bristlecone._encoder.schema import describe
from bristlecone._encoder.table import read_table
from bristlecone._types import Bools, Floats, Integers
from bristlecone.exceptions import InvalidParameterError

Bits = NDArray[np.uint64]

# Most distinct values of all columns together that are stored at once: about a gigabyte.
_MOST_VALUES = 1 << 25

_READER = "BinaryEncoder"

# Kinds of thresholds that only depend on the counts of values.
_COUNTED = "quantiles", "midpoints", "kmeans"


class ColumnCounts:
    """Values of all columns, counted partition by partition.

    Parameters
    ----------
    names : sequence of str
        The columns, in their order.
    weighted : bool
        Whether rows have weights.
    """

    def __init__(self, names: Sequence[str], weighted: bool) -> None:
        self.names = list(names)
        self.columns = [CountedColumn(name, weighted) for name in names]
        self.least_weight = np.inf

    def add(self, X: Any, weight: Floats | None, present: Bools | None) -> dict[str, int]:
        """Count the ``present`` rows of a partition (None: all), and return its checksums.

        Raises
        ------
        ValueError, TypeError
            As ``BinaryEncoder.fit``; if a column has another type than in other partitions; and if
            there are more distinct values than are held.
        """
        table = read_table(X, _READER)
        checks = {}
        exact = None if weight is None else ExactValues(weight)
        for counted, column in zip(self.columns, table.one_by_one(), strict=True):
            checks[column.name] = checksum(column)
            counted.add(column if present is None else column.take(present), exact)
        if weight is not None and len(weight):
            self.least_weight = min(self.least_weight, float(weight.min()))
        self._check_size()
        return checks

    def merge(self, other: ColumnCounts) -> None:
        """Add the counts of other partitions."""
        for own, theirs in zip(self.columns, other.columns, strict=True):
            own.merge(theirs)
        self.least_weight = min(self.least_weight, other.least_weight)
        self._check_size()

    def _check_size(self) -> None:
        sizes = [column.n_values for column in self.columns]
        if sum(sizes) > _MOST_VALUES:
            most = int(np.argmax(sizes))
            raise ValueError(
                f"the columns have more than {_MOST_VALUES:,} distinct values, of which column "
                f"{self.names[most]!r} has {sizes[most]:,}; round it (exact quantiles need every "
                "distinct value once), or leave it out"
            )

    def counts(self) -> list[ValueCounts]:
        """The counts of the columns over all partitions."""
        return [column.counts() for column in self.columns]


class RowsDivided:
    """Identifies how features divide the rows of partitions.

    Every row has a random number of 128 bits, and a feature the sum of the numbers of the rows for
    which it is true. Two features that are true for different rows have the same sum with a
    probability of 2**-128.

    Parameters
    ----------
    features : sequence of features
        The features to distinguish.
    """

    def __init__(self, features: Sequence[Feature]) -> None:
        self.features = list(features)
        self.sums = np.zeros((len(self.features) + 1, 2), dtype=np.uint64)

    def add(self, answers: Bools, part: int, present: Bools | None) -> None:
        """Add the rows of partition number ``part``.

        ``answers`` (n_features, n) are those of ``part_answers``; only the ``present`` rows count
        (None: all).
        """
        row = np.arange(answers.shape[1], dtype=np.uint64) + (np.uint64(part) << np.uint64(40))
        numbers = [mixed(row * np.uint64(2) + np.uint64(lane)) for lane in (0, 1)]
        for lane, number in enumerate(numbers):
            shown = number if present is None else np.where(present, number, np.uint64(0))
            own = [*(shown[answer].sum(dtype=np.uint64) for answer in answers), shown.sum()]
            self.sums[:, lane] += np.array(own, dtype=np.uint64)

    def merge(self, other: RowsDivided) -> None:
        """Add the rows of other partitions."""
        self.sums += other.sums

    def keys(self) -> list[tuple[int, ...]]:
        """A value for every feature, equal for features that divide the rows in the same way."""
        own, complement = self.sums[:-1], self.sums[-1] - self.sums[:-1]
        pairs = zip(own.tolist(), complement.tolist(), strict=True)
        return [tuple(min(pair)) for pair in pairs]


def fit_counts(
    encoder: Any,
    counts: Sequence[ValueCounts],
    least_weight: float,
    divided: Callable[[BinaryEncoder, Sequence[Feature]], Sequence[Hashable]],
) -> BinaryEncoder:
    """A fitted clone of an encoder, from the counts of all columns.

    ``divided`` receives an encoder that can answer some features, and returns a value for each of
    these, equal for features that divide the rows in the same way.

    Raises
    ------
    InvalidParameterError
        If the encoder learns from single rows or outcomes.
    """
    fitted: BinaryEncoder = check_for_partitions(encoder)
    many = [one.column for one in counts if has_many_levels(one.column, fitted.max_categories)]
    if many and fitted.categories == "risk":
        raise InvalidParameterError(
            f"column {many[0].name!r} has {len(many[0].levels)} levels, and "
            "BinaryEncoder(categories='risk') orders them by the outcomes of all rows, which are "
            "not kept here; pass encoder=BinaryEncoder(categories='levels') to merge the rarest, "
            "or a larger max_categories"
        )

    def asked(features: Sequence[Feature]) -> Sequence[Hashable]:
        draft = clone(fitted)
        schemas = [describe(one.column) for one in counts]
        draft._remember(schemas, list(features), [], named=True)
        return divided(draft, features)

    unit = min(1.0, least_weight)
    parameters = fitted._parameters()
    choices = choose_of_columns(parameters, counts, unit, {}, {})
    fitted._take(choose(choices, asked, fitted.max_features), named=True)
    return fitted


def rows_that_hold(encoder: BinaryEncoder, counts: Sequence[ValueCounts]) -> Integers:
    """Number of rows in which each feature is true, from the counts of the columns."""
    known = {one.name: one for one in counts}
    held = [
        known[feature.column].rows[feature.evaluate(known[feature.column].column)].sum()
        for feature in encoder.features_
    ]
    return np.array(held, dtype=np.int64)


def check_for_partitions(encoder: Any) -> BinaryEncoder:
    """A clone of an encoder whose features only depend on counts; "auto" is ``BinaryEncoder()``.

    Raises
    ------
    InvalidParameterError
        For any other, with the reason.
    """
    if isinstance(encoder, str):
        return BinaryEncoder()
    if encoder is None:
        raise InvalidParameterError(
            "encoder=None (every threshold) needs all rows at once; pass a BinaryEncoder"
        )
    if type(encoder).fit is not BinaryEncoder.fit or not keeps_transform(encoder):
        raise InvalidParameterError(
            f"encoder is {type_name(encoder)}, whose fit needs all rows at once; partitions "
            "need a BinaryEncoder"
        )
    fitted: BinaryEncoder = clone(encoder)
    fitted._check_parameters()
    if fitted.thresholds not in _COUNTED:
        raise InvalidParameterError(
            f"BinaryEncoder(thresholds={fitted.thresholds!r}) learns from all rows at once; with "
            f"partitions thresholds must be one of {', '.join(map(repr, _COUNTED))}"
        )
    return fitted


def part_answers(
    encoder: BinaryEncoder, X: Any, features: Sequence[Feature]
) -> tuple[Bools, dict[str, int]]:
    """Answers of the rows of a partition, bool (n_features, n), and checksums of their columns."""
    answers, columns = encoder._answers(X, features)
    return answers, {name: checksum(column) for name, column in columns.items()}


def checksum(column: Column) -> int:
    """A number that identifies a column by its values and their order."""
    missing = column.missing
    if missing is not None and missing.all():
        return -len(missing)
    if isinstance(column, CategoricalColumn):
        return checksum_of(column.codes, crc32(repr(column.levels).encode()))
    if column.is_flag:
        mask = None if missing is None else np.packbits(missing)
        return checksum_of(np.packbits(column.values), 0 if mask is None else crc32(mask.tobytes()))
    return checksum_of(column.values)


def checksum_of(values: NDArray[Any], start: int = 0) -> int:
    """The same for an array, after what ``start`` identifies."""
    bits: Any = np.ascontiguousarray(values).view(np.uint8).data
    return crc32(bits, start)
