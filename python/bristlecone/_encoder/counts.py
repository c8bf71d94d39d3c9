"""Distinct values of a column, with their rows and weights, on which most features depend.

A single frame is counted at once. Partitions are counted one by one and their counts added, which
gives exactly the same values, rows and weights.
"""

from __future__ import annotations

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

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


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
        place, n_values = _places(column)
        rows = np.bincount(place, minlength=n_values + 1)
        total = rows.astype(np.float64)
        if weight is not None:
            total = weight.sums(place, n_values + 1).totals()
        if isinstance(column, RankedColumn):  # every one of its values is found
            k = n_values + int(rows[n_values] > 0)
            missing = np.arange(k) == n_values if k > n_values else None
            ranks = np.arange(k, dtype=np.uint32)
            numbers = RankedColumn(column.name, column.distinct, ranks, missing)
            return cls(numbers, rows[:k], total[:k])
        found = np.flatnonzero(rows[:n_values])
        kept = np.append(found, n_values) if rows[n_values] else found
        own = _distinct(column, found, bool(rows[n_values]))
        return cls(own, rows[kept].astype(np.int64), total[kept])

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

    @property
    def observed(self) -> tuple[NDArray[Any], Floats]:
        """Distinct values (codes of levels) without missing ones, and their weights."""
        column, missing = self.column, self.column.missing
        if isinstance(column, RankedColumn):
            return column.distinct, self.weight[: len(column.distinct)]
        values = column.codes if isinstance(column, CategoricalColumn) else column.values
        shown = slice(None) if missing is None else ~missing
        return values[shown], self.weight[shown]


def _distinct(
    column: NumericColumn | CategoricalColumn, found: Integers, is_missing: bool
) -> TrainingColumn:
    """The column with one row per distinct value, and one row without a value."""
    if isinstance(column, CategoricalColumn):
        return replace(column, codes=np.append(found, -1) if is_missing else found)
    values, missing = found > 0, None
    if is_missing:
        values = np.append(values, False)
        missing = np.arange(len(values)) == len(found)
    return NumericColumn(column.name, values, missing, column.integral)


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
    _rows: Integers = field(default_factory=lambda: np.zeros(1, dtype=np.int64))
    _weights: ExactSums = field(default_factory=lambda: ExactSums(1))
    # Counts that are not yet merged with those above, and their number of distinct numbers.
    _waiting: list[tuple[Floats, Integers, ExactSums]] = field(default_factory=list)
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
        place, n_values = _places(own)
        rows = np.bincount(place, minlength=n_values + 1).astype(np.int64)
        kept = np.append(np.flatnonzero(rows[:n_values]), n_values)
        sums = ExactSums(len(kept))
        if weight is not None:
            sums = weight.sums(place, n_values + 1).at(kept)
        if isinstance(own, CategoricalColumn):
            self._take_levels(replace(own, codes=kept[:-1]), rows[kept], sums)
        else:
            values = own.distinct if isinstance(own, RankedColumn) else kept[:-1].astype(np.float64)
            integral = isinstance(column, NumericColumn) and column.integral
            self._take_numbers(values, rows[kept], sums, integral)

    def merge(self, other: CountedColumn) -> None:
        """Add the counts of other partitions; raises as ``add``."""
        other._settle()
        if other._is_numeric is None:
            self._add_missing(other._rows, other._weights)
        elif other._is_numeric:
            self._take_numbers(other._numbers, other._rows, other._weights, other._integral)
        else:
            codes = np.arange(len(other._levels))
            levels = tuple(level for _, level in other._levels)
            column = CategoricalColumn(
                self.name, codes, levels, other._declared, other._order is not None
            )
            if other._order is not None:
                place = {level: code for code, level in enumerate(other._order)}
                column = replace(
                    column,
                    levels=other._order,
                    codes=np.array([place[level] for level in levels], dtype=np.int64),
                )
            self._take_levels(column, other._rows, other._weights)

    def counts(self) -> ValueCounts:
        """The counts of all partitions, independent of their order."""
        self._settle()
        is_missing = bool(self._rows[-1])
        if self._is_numeric is False:
            return self._counts_of_levels(is_missing)
        values = self._numbers
        flags = self._is_numeric is True and self._integral and _are_flags(values)
        missing = np.arange(len(values) + 1) == len(values) if is_missing else None
        column: TrainingColumn
        if flags:
            own = values > 0.0
            own = np.append(own, False) if is_missing else own
            column = NumericColumn(self.name, own, missing, integral=True)
        else:
            ranks = np.arange(len(values) + is_missing, dtype=np.uint32)
            column = RankedColumn(self.name, values, ranks, missing)
        return self._finished(column, np.arange(len(values)), is_missing)

    def _counts_of_levels(self, is_missing: bool) -> ValueCounts:
        found = [level for _, level in self._levels]
        levels = tuple(sorted(found, key=sort_key)) if self._order is None else self._order
        place = {(type(level), level): code for code, level in enumerate(levels)}
        codes = np.array([place[key] for key in self._levels], dtype=np.int64)
        order = np.argsort(codes)
        codes = codes[order]
        own = np.append(codes, -1) if is_missing else codes
        column = CategoricalColumn(self.name, own, levels, self._declared, self._order is not None)
        return self._finished(column, order, is_missing)

    def _finished(
        self, column: TrainingColumn, order: NDArray[np.int64], is_missing: bool
    ) -> ValueCounts:
        kept = np.append(order, len(order)) if is_missing else order
        rows = self._rows[kept]
        weight = self._weights.totals()[kept] if self.weighted else rows.astype(np.float64)
        return ValueCounts(column, rows, weight)

    def _add_missing(self, rows: Integers, sums: ExactSums) -> None:
        self._rows[-1] += rows[-1]
        if self.weighted:
            place = np.array([len(self._rows) - 1])
            self._weights = self._weights.plus(sums.at(np.array([len(rows) - 1])), place)

    def _take_numbers(
        self, values: Floats, rows: Integers, sums: ExactSums, integral: bool
    ) -> None:
        self._add_missing(rows, sums)
        if not len(values):
            return  # Without values the type of the column is unknown.
        self._check_kind(True)
        self._integral &= integral
        self._waiting.append((values, rows[:-1], sums.at(np.arange(len(values)))))
        self._n_waiting += len(values)
        # Merge once as much waits as is merged, so that every value is merged only a few times.
        if self._n_waiting > len(self._numbers):
            self._settle()

    def _settle(self) -> None:
        """Merge the numbers that are waiting."""
        if not self._waiting:
            return
        parts = [(self._numbers, self._rows[:-1], self._weights), *self._waiting]
        values, place = np.unique(np.concatenate([part[0] for part in parts]), return_inverse=True)
        last = len(values)
        rows = np.zeros(last + 1, dtype=np.int64)
        sums = ExactSums(last + 1)
        start = 0
        for own, count, weights in parts:
            at = place[start : start + len(own)]
            start += len(own)
            rows[at] += count  # the values of a part are distinct
            if self.weighted:
                sums = sums.plus(weights.at(np.arange(len(own))), at)
        rows[last] = self._rows[-1]
        if self.weighted:
            sums = sums.plus(self._weights.at(np.array([len(self._numbers)])), np.array([last]))
        self._numbers, self._rows, self._weights = values, rows, sums
        self._waiting, self._n_waiting = [], 0

    def _take_levels(self, column: CategoricalColumn, rows: Integers, sums: ExactSums) -> None:
        self._add_missing(rows, sums)
        codes = column.codes[column.codes >= 0]
        if column.ordered:
            if self._order is not None and self._order != column.levels:
                raise TypeError(
                    f"column {self.name!r} is ordered as {list(column.levels)[:5]} here, and as "
                    f"{list(self._order)[:5]} in other partitions; use one order of its levels"
                )
            self._order = column.levels
        if not len(codes):
            return
        self._check_kind(False)
        self._declared |= column.declared
        keys = [(type(level), level) for level in (column.levels[code] for code in codes)]
        new = [key for key in keys if key not in self._levels]
        for key in new:
            self._levels[key] = len(self._levels)
        at = np.array([self._levels[key] for key in keys], dtype=np.int64)
        self._grow(len(self._levels))
        self._rows[at] += rows[:-1]
        if self.weighted:
            self._weights = self._weights.plus(sums.at(np.arange(len(codes))), at)

    def _grow(self, n_values: int) -> None:
        """Make room for more levels; the last entry stays that of missing values."""
        known = len(self._rows) - 1
        place = np.append(np.arange(known), n_values)
        rows = np.zeros(n_values + 1, dtype=np.int64)
        rows[place] = self._rows
        if self.weighted:
            self._weights = ExactSums(n_values + 1).plus(self._weights, place)
        self._rows = rows

    def _check_kind(self, numeric: bool) -> None:
        if self._is_numeric not in (None, numeric):
            here, there = ("numbers", "text or categories")[:: 1 if numeric else -1]
            raise TypeError(
                f"column {self.name!r} holds {here} here and {there} in other partitions; write "
                "it with one type"
            )
        self._is_numeric = numeric


def _are_flags(values: Floats) -> bool:
    return not len(values) or bool(values[0] >= 0 and values[-1] <= 1)


def _places(column: TrainingColumn) -> tuple[Integers, int]:
    """Position of every row's value (the last for missing ones), and the number of the others."""
    if isinstance(column, RankedColumn):
        return column.ranks.astype(np.int64), len(column.distinct)
    if isinstance(column, CategoricalColumn):
        place, n_values = column.codes, len(column.levels)
    else:
        place, n_values = column.values.astype(np.int64), 2
    missing = column.missing
    return (place if missing is None else np.where(missing, n_values, place)), n_values
