"""Distinct values of a column, with their rows and weights, on which most features depend.

A single frame is counted at once. Partitions are counted one by one and their counts added, which
gives exactly the same values, rows and weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.exact import ExactSums, ExactValues
from bristlecone._encoder.columns import (
    CategoricalColumn,
    Category,
    Column,
    NumericColumn,
    RankedColumn,
    TrainingColumn,
)
from bristlecone._encoder.schema import sort_key
from bristlecone._types import Floats, Integers


@dataclass(eq=False)
class _Tally:
    """Rows of several values, and their exact weights, which are 0 if rows have none."""

    rows: Integers
    weights: ExactSums

    @classmethod
    def of(cls, column: TrainingColumn, weight: ExactValues | None) -> _Tally:
        """Rows of the values of a column (of levels: their codes), and last those without one."""
        missing = column.missing
        if isinstance(column, RankedColumn):
            place, n_values, missing = column.ranks.astype(np.int64), len(column.distinct), None
        elif isinstance(column, CategoricalColumn):
            place, n_values = column.codes, len(column.levels)
        else:
            place, n_values = column.values.astype(np.int64), 2
        if missing is not None:
            place = np.where(missing, n_values, place)
        rows = np.bincount(place, minlength=n_values + 1).astype(np.int64)
        sums = ExactSums(n_values + 1) if weight is None else weight.sums(place, n_values + 1)
        return cls(rows, sums)

    @classmethod
    def empty(cls, size: int) -> _Tally:
        """No rows yet."""
        return cls(np.zeros(size, dtype=np.int64), ExactSums(size))

    def at(self, place: Integers) -> _Tally:
        """The rows at these positions."""
        return _Tally(self.rows[place], self.weights.at(place))

    def add(self, other: _Tally, place: Integers) -> None:
        """Add rows at distinct positions."""
        self.rows[place] += other.rows
        self.weights = self.weights.plus(other.weights, place)

    def total(self, weighted: bool) -> Floats:
        """Weight of the rows, one each if they have none."""
        return self.weights.totals() if weighted else self.rows.astype(np.float64)


@dataclass(frozen=True, eq=False)
class ValueCounts:
    """A column with one row per distinct value, and the rows that these stand for.

    Attributes
    ----------
    column : RankedColumn, NumericColumn or CategoricalColumn
        The distinct values in rising order (of levels: their codes), and then one row without a
        value if any row of the data has none.
    rows : int64 ndarray of shape (k,)
        Rows of the data that each stands for.
    weight : float64 ndarray of shape (k,)
        Their weight; the same as ``rows`` without weights.
    """

    column: TrainingColumn
    rows: Integers
    weight: Floats

    @classmethod
    def of(cls, column: TrainingColumn, weight: ExactValues | None) -> ValueCounts:
        """Count the rows of a column; O(n)."""
        every = _Tally.of(column, weight)
        (shown,) = every.rows.nonzero()
        is_missing = bool(every.rows[-1])
        found = shown[:-1] if is_missing else shown
        own = every.at(shown)
        return cls(_distinct(column, found, is_missing), own.rows, own.total(weight is not None))

    @property
    def name(self) -> str:
        """Name of the column."""
        return self.column.name

    @cached_property
    def n_rows(self) -> int:
        """Number of rows of the data."""
        return int(self.rows.sum())

    @cached_property
    def total_weight(self) -> float:
        """Total weight of the rows."""
        return float(self.weight.sum())

    @property
    def n_missing(self) -> int:
        """Number of rows without a value."""
        return 0 if self.column.missing is None else int(self.rows[-1])

    @cached_property
    def observed(self) -> tuple[NDArray[Any], Floats]:
        """Distinct values (codes of levels) without missing ones, and their weights."""
        column, missing = self.column, self.column.missing
        if isinstance(column, RankedColumn):
            return column.distinct, self.weight[: len(column.distinct)]
        values = column.codes if isinstance(column, CategoricalColumn) else column.values
        shown = slice(None) if missing is None else ~missing
        return values[shown], self.weight[shown]


def _distinct(column: TrainingColumn, found: Integers, is_missing: bool) -> TrainingColumn:
    """The column with one row per value that was found, and then perhaps one without a value.

    ``found`` are the codes of levels, 0 and 1 of flags; of numbers all are found.
    """
    if isinstance(column, CategoricalColumn):
        return replace(column, codes=np.append(found, -1) if is_missing else found)
    missing = np.arange(len(found) + 1) == len(found) if is_missing else None
    if isinstance(column, RankedColumn):
        ranks = np.arange(len(found) + is_missing, dtype=np.uint32)
        return RankedColumn(column.name, column.distinct, ranks, missing)
    flags = found > 0
    return replace(column, values=np.append(flags, False) if is_missing else flags, missing=missing)


# Position of the rows without a value in their tally.
_ONLY = np.zeros(1, dtype=np.int64)


@dataclass(eq=False)
class CountedColumn:
    """Counts of one column over partitions, which are added and merged in any order.

    Parameters
    ----------
    name : str
        Of the column.
    weighted : bool
        Whether rows have weights.
    """

    name: str
    weighted: bool
    # Numbers, or levels; None as long as no value was seen.
    _is_numeric: bool | None = None
    _integral: bool = True
    _declared: bool = False
    _order: tuple[Category, ...] | None = None
    _levels: dict[tuple[type, Category], int] = field(default_factory=dict)
    _numbers: Floats = field(default_factory=lambda: np.zeros(0))
    # Rows of the numbers or levels, and rows without a value.
    _known: _Tally = field(default_factory=lambda: _Tally.empty(0))
    _missing: _Tally = field(default_factory=lambda: _Tally.empty(1))
    # Counts that are not yet merged with those above, and their number of distinct numbers.
    _waiting: list[tuple[Floats, _Tally]] = field(default_factory=list)
    _n_waiting: int = 0

    @property
    def n_values(self) -> int:
        """Number of values in memory; some distinct values may be stored twice."""
        return len(self._numbers) + len(self._levels) + self._n_waiting

    def add(self, column: Column, weight: ExactValues | None) -> None:
        """Count the rows of a partition.

        Raises
        ------
        TypeError
            If the column has numbers here and levels elsewhere, or another order of its levels.
        """
        own: TrainingColumn = column
        if isinstance(column, NumericColumn) and not column.is_flag:
            own = RankedColumn.of(column)
        every = _Tally.of(own, weight)
        found = np.flatnonzero(every.rows[:-1])
        tally = every.at(found)
        self._missing.add(every.at(np.array([-1])), _ONLY)
        if isinstance(column, CategoricalColumn):
            levels = [column.levels[code] for code in found]
            order = column.levels if column.ordered else None
            self._add_levels(levels, tally, column.declared, order)
        else:
            values = own.distinct if isinstance(own, RankedColumn) else found.astype(np.float64)
            self._add_numbers(values, tally, column.integral)

    def merge(self, other: CountedColumn) -> None:
        """Add the counts of other partitions; raises as ``add``."""
        other._settle()
        self._missing.add(other._missing, _ONLY)
        if other._is_numeric:
            self._add_numbers(other._numbers, other._known, other._integral)
        elif other._is_numeric is not None:
            levels = [level for _, level in other._levels]
            self._add_levels(levels, other._known, other._declared, other._order)

    def counts(self) -> ValueCounts:
        """The counts of all partitions, independent of their order."""
        self._settle()
        values, known = self._numbers, self._known
        found = np.arange(len(values))
        column: TrainingColumn
        if self._is_numeric is False:
            seen = [level for _, level in self._levels]
            levels = tuple(sorted(seen, key=sort_key)) if self._order is None else self._order
            place = {(type(level), level): code for code, level in enumerate(levels)}
            codes = np.array([place[key] for key in self._levels], dtype=np.int64)
            order = np.argsort(codes)
            found, known = codes[order], known.at(order)
            column = CategoricalColumn(
                self.name, found, levels, self._declared, self._order is not None
            )
        elif self._is_numeric and self._integral and values[0] >= 0 and values[-1] <= 1:
            found = values.astype(np.int64)
            column = NumericColumn(self.name, values > 0, None, integral=True)
        else:
            column = RankedColumn(self.name, values, found.astype(np.uint32), None)
        parts = [known, self._missing] if self._missing.rows.any() else [known]
        rows = np.concatenate([part.rows for part in parts])
        weight = np.concatenate([part.total(self.weighted) for part in parts])
        return ValueCounts(_distinct(column, found, len(parts) > 1), rows, weight)

    def _add_numbers(self, values: Floats, tally: _Tally, integral: bool) -> None:
        if not len(values):
            return  # Without values the type of the column is unknown.
        self._check_kind(True)
        self._integral &= integral
        self._waiting.append((values, tally))
        self._n_waiting += len(values)
        # Merge once as much waits as is merged, so that every value is merged only a few times.
        if self._n_waiting > len(self._numbers):
            self._settle()

    def _settle(self) -> None:
        """Merge the numbers that are waiting."""
        if not self._waiting:
            return
        parts = [(self._numbers, self._known), *self._waiting]
        every = np.concatenate([values for values, _ in parts])
        self._numbers, place = np.unique(every, return_inverse=True)
        self._known = _Tally.empty(len(self._numbers))
        start = 0
        for values, tally in parts:
            self._known.add(tally, place[start : start + len(values)])
            start += len(values)
        self._waiting, self._n_waiting = [], 0

    def _add_levels(
        self,
        levels: Sequence[Category],
        tally: _Tally,
        declared: bool,
        order: tuple[Category, ...] | None,
    ) -> None:
        if order is not None:
            if self._order is not None and self._order != order:
                raise TypeError(
                    f"column {self.name!r} is ordered as {list(order)[:5]} here, and as "
                    f"{list(self._order)[:5]} in other partitions; use one order of its levels"
                )
            self._order = order
        if not levels:
            return
        self._check_kind(False)
        self._declared |= declared
        keys = [(type(level), level) for level in levels]
        for key in keys:
            self._levels.setdefault(key, len(self._levels))
        before, self._known = self._known, _Tally.empty(len(self._levels))
        self._known.add(before, np.arange(len(before.rows)))
        self._known.add(tally, np.array([self._levels[key] for key in keys]))

    def _check_kind(self, numeric: bool) -> None:
        if self._is_numeric not in (None, numeric):
            here, there = ("numbers", "text or categories")[:: 1 if numeric else -1]
            raise TypeError(
                f"column {self.name!r} holds {here} here and {there} in other partitions; write "
                "it with one type"
            )
        self._is_numeric = numeric
