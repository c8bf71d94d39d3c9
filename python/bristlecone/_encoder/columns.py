"""Columns of numbers and of levels, and numbers of training rows as ranks or bins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bristlecone import _core
from bristlecone._types import Bools, Floats, Integers

FEW_ROWS = 1 << 14
"""Rows from which values are hashed if few of them differ."""

# From here on, not every integer is a float64.
_MOST_EXACT = 2**53

# Size of the sample that shows whether a column has few distinct values.
_SAMPLE = 1 << 12

Category = str | bool | int | float
"""A value of a categorical column: the types that JSON keeps apart."""


@dataclass(frozen=True, eq=False)
class NumericColumn:
    """Numbers, or flags when ``values`` is boolean.

    Attributes
    ----------
    name : str
    values : ndarray of shape (n,), bool or float64
        Boolean for boolean input and for integers that are all 0 or 1. Where missing: NaN in a
        float column, False in a boolean one.
    missing : bool ndarray of shape (n,) or None
        None when no value is missing.
    integral : bool
        Whether the input was boolean or integer: then 0 and 1 alone make a flag.
    integers : ndarray of shape (n,) or None
        The integers of the input if float64 does not represent all of them.
    """

    name: str
    values: NDArray[Any]
    missing: Bools | None
    integral: bool
    integers: NDArray[Any] | None = None

    @classmethod
    def of_integers(cls, name: str, values: NDArray[Any], missing: Bools | None) -> NumericColumn:
        """From booleans, or integers of any dtype; flags if all values are 0 or 1."""
        shown = values if missing is None else values[~missing]
        if values.dtype == np.bool_ or not len(shown) or (shown.min() >= 0 and shown.max() <= 1):
            flags = values > 0 if missing is None else (values > 0) & ~missing
            return cls(name, flags, missing, integral=True)
        numbers = values.astype(np.float64)
        integers = None
        if shown.max() > _MOST_EXACT or shown.min() < -_MOST_EXACT:
            with np.errstate(invalid="ignore"):  # the largest are rounded beyond the integers
                if (shown.astype(np.float64).astype(values.dtype) != shown).any():
                    integers = values
        if missing is not None:
            numbers[missing] = np.nan
        return cls(name, numbers, missing, True, integers)

    @property
    def rounded(self) -> bool:
        """Whether float64 does not represent all integers of the input."""
        return self.integers is not None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.values)

    @property
    def is_flag(self) -> bool:
        """Whether the values are boolean."""
        return self.values.dtype == np.bool_

    def at_most(self, value: float) -> Bools:
        """Whether the number of each row is at most ``value``; False if missing."""
        answer: Bools = self.values <= value
        return answer

    def take(self, rows: Bools) -> NumericColumn:
        """The column with only the rows where the mask is true."""
        values = self.values[rows]
        missing = None if self.missing is None else mask_if_any(self.missing[rows])
        if self.integral:
            return NumericColumn.of_integers(self.name, values, missing)
        return NumericColumn(self.name, values, missing, integral=False)

    def as_categorical(self) -> CategoricalColumn:
        """The same column with each distinct number as a level."""
        codes = np.full(len(self.values), -1)
        present = slice(None) if self.missing is None else ~self.missing
        values = self.values if self.integers is None else self.integers
        distinct, codes[present] = np.unique(values[present], return_inverse=True)
        return CategoricalColumn(self.name, codes, tuple(distinct.tolist()))


@dataclass(frozen=True, eq=False)
class CategoricalColumn:
    """Levels.

    Attributes
    ----------
    name : str
    codes : int64 ndarray of shape (n,)
        Index into ``levels``, -1 where missing.
    levels : tuple of str, bool, int or float
        Distinct values, in order of first appearance or of value; of an ordered column all that
        its type declares, in their order.
    declared : bool
        Whether the input was of a categorical type; else it was text.
    ordered : bool
        Whether that type has an order.
    """

    name: str
    codes: Integers
    levels: tuple[Category, ...]
    declared: bool = False
    ordered: bool = False

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.codes)

    @property
    def missing(self) -> Bools | None:
        """Mask of the missing rows; None if there are none."""
        return mask_if_any(self.codes < 0)

    def first_text(self) -> tuple[int, Category]:
        """Row and level that show best that these are not numbers: the first text, or any level."""
        text = np.array([*(isinstance(level, str) for level in self.levels), False])
        row = int(np.argmax(text[self.codes] if text.any() else self.codes >= 0))
        return row, self.levels[self.codes[row]]

    def take(self, rows: Bools) -> CategoricalColumn:
        """The column with only the rows where the mask is true, and the levels that occur in them.

        An ordered column keeps all its levels, which have a place in the order even without rows.
        """
        codes = self.codes[rows]
        if self.ordered:
            return replace(self, codes=codes)
        kept = np.unique(codes[codes >= 0])
        position = np.full(len(self.levels) + 1, -1)  # the last entry serves code -1
        position[kept] = np.arange(len(kept))
        return replace(
            self, codes=position[codes], levels=tuple(self.levels[code] for code in kept)
        )


class _Ordinal:
    """A column whose rows have places in an order, and which is not a flag."""

    ranks: NDArray[Any]

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.ranks)

    @property
    def is_flag(self) -> bool:
        """Whether the values are boolean."""
        return False


@dataclass(frozen=True, eq=False)
class RankedColumn(_Ordinal):
    """Numbers of training rows, sorted once: everything that ``fit`` needs follows from the ranks.

    Attributes
    ----------
    name : str
    distinct : float64 ndarray of shape (k,)
        The observed values, rising.
    ranks : uint32 ndarray of shape (n,)
        Place of every row's value among them; ``k`` where missing.
    missing : bool ndarray of shape (n,) or None
        None when no value is missing.
    """

    name: str
    distinct: Floats
    ranks: NDArray[np.uint32]
    missing: Bools | None

    @classmethod
    def of(cls, column: NumericColumn) -> RankedColumn:
        """Ranks of a column that is not a flag; O(n)."""
        ranks, distinct = _ranks_of_few(column.values) or _core.rank_values(column.values)
        return cls(column.name, distinct, ranks, column.missing)

    def at_most(self, value: float) -> Bools:
        """Whether the number of each row is at most ``value``; False if missing."""
        return self.ranks < self.distinct.searchsorted(value, side="right").astype(np.uint32)


@dataclass(frozen=True, eq=False)
class BinnedColumn(_Ordinal):
    """Numbers once the thresholds of their column are chosen: one byte each, if these are few.

    Attributes
    ----------
    name : str
    cuts : float64 ndarray of shape (k,)
        The thresholds, rising.
    ranks : uint8 or, with more than ``FEW`` thresholds, uint32 ndarray of shape (n,)
        Number of thresholds below the value of each row; for a row without one, below that which
        stands for it, or ``k``.
    missing : bool ndarray of shape (n,) or None
        None when no value is missing.
    """

    FEW: ClassVar[int] = 255

    name: str
    cuts: Floats
    ranks: NDArray[np.uint8] | NDArray[np.uint32]
    missing: Bools | None

    @classmethod
    def of(
        cls, column: RankedColumn | NumericColumn, cuts: Floats, fill: float | None
    ) -> BinnedColumn:
        """Bins of a column between these thresholds; O(n) if it is ranked."""
        kind = np.uint8 if len(cuts) <= cls.FEW else np.uint32
        absent = len(cuts) if fill is None else int(np.searchsorted(cuts, fill))
        if isinstance(column, RankedColumn):
            bins = np.searchsorted(cuts, column.distinct).astype(kind)
            ranks = np.append(bins, kind(absent))[column.ranks]
        else:
            ranks = np.searchsorted(cuts, column.values).astype(kind)
            if column.missing is not None:
                ranks[column.missing] = absent
        return cls(column.name, cuts, ranks, column.missing)


def _ranks_of_few(
    values: Floats,
) -> tuple[NDArray[np.uint32], Floats] | None:
    """As ``_core.rank_values`` by hashing, which is ten times as fast for few distinct values.

    None for few rows, and if a sample of them has many distinct values.
    """
    if len(values) < FEW_ROWS or len(np.unique(values[:: len(values) // _SAMPLE])) > _SAMPLE // 8:
        return None
    from pandas import factorize

    codes, found = factorize(values)  # missing values have code -1
    order = np.argsort(found)
    rank = np.empty(len(found) + 1, dtype=np.uint32)
    rank[order] = np.arange(len(found), dtype=np.uint32)
    rank[-1] = len(found)
    return rank[codes], found[order] + 0.0


Column = NumericColumn | CategoricalColumn
TrainingColumn = RankedColumn | NumericColumn | CategoricalColumn
"""A column as ``BinaryEncoder.fit`` reads it: numbers are ranked, and only flags have values."""

EncodedColumn = TrainingColumn | BinnedColumn
"""The same once its features are chosen."""


def training_columns(columns: Iterable[Column], present: Bools | None) -> Iterator[TrainingColumn]:
    """The columns of the rows that are present, with numbers as ranks."""
    for column in columns:
        own = column if present is None else column.take(present)
        if isinstance(own, NumericColumn) and not own.is_flag:
            yield RankedColumn.of(own)
        else:
            yield own


def mask_if_any(missing: Bools) -> Bools | None:
    """The mask of missing rows; None if no row is missing."""
    return missing if missing.any() else None
