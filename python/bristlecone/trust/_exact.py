"""Exact sums: whole numbers in a common unit, fractions, and logarithms of fractions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._types import Bools, Floats, Integers

Objects = NDArray[Any]

# Sums of whole numbers stay below this in 64 bits.
_WHOLE = 2**62


@dataclass(frozen=True, eq=False)
class Column:
    """One exact number per row.

    Parameters
    ----------
    whole : array of int64 or of Python integers, shape (n,)
        Integers of 64 bits where the sum of all sizes fits.
    unit : Fraction
        What they are multiples of.
    """

    whole: Objects
    unit: Fraction

    @staticmethod
    def of(values: Any) -> Column:
        """Column of finite float64 values, without rounding."""
        values = np.asarray(values, dtype=np.float64).ravel()
        share, exponent = np.frexp(values)
        mantissa = np.ldexp(share, 53).astype(np.int64)
        used = mantissa != 0
        if not used.any():
            return Column(np.zeros(values.size, dtype=np.int64), Fraction(1))
        # Without the zeros at their ends, mantissas stay small.
        lowest = np.where(used, mantissa & -mantissa, 1)
        zeros = np.frexp(lowest.astype(np.float64))[1] - 1
        exponent = exponent - 53 + zeros
        least = int(exponent[used].min())
        shift = np.where(used, exponent - least, 0)
        whole = (mantissa >> zeros).astype(object) << shift.astype(object)
        return Column.fitting(whole, Fraction(2) ** least)

    @staticmethod
    def fitting(whole: Objects, unit: Fraction) -> Column:
        """The column as 64-bit integers if their sums fit."""
        if whole.dtype == object and sum(map(abs, whole.tolist())) < _WHOLE:
            whole = whole.astype(np.int64)
        return Column(whole, unit)

    def __mul__(self, other: Column) -> Column:
        product = self.whole.astype(object) * other.whole.astype(object)
        return Column.fitting(product, self.unit * other.unit)

    def minus(self, value: float) -> Column:
        """Each number minus one value."""
        # Units of floats are powers of two, so the smaller one divides the other.
        unit = min(self.unit, Column.of([value]).unit)
        whole = self.whole.astype(object) * int(self.unit / unit) - int(Fraction(value) / unit)
        return Column.fitting(whole, unit)

    def scaled(self, factor: Fraction) -> Column:
        """The same integers in another unit."""
        return Column(self.whole, self.unit * factor)

    def where(self, some: Bools) -> Column:
        """The column with zeros elsewhere."""
        return Column(np.where(some, self.whole, 0), self.unit)

    def sum(self, rows: Any = slice(None)) -> Fraction:
        """Sum over some rows."""
        return int(self.whole[rows].sum()) * self.unit if len(self.whole) else Fraction(0)

    def by_group(self, place: Integers, n: int) -> Column:
        """Sums of the rows of each group."""
        sums = np.zeros(n, dtype=self.whole.dtype)
        np.add.at(sums, place, self.whole)
        return Column(sums, self.unit)

    def floats(self) -> Floats:
        """Nearest float64 of each number."""
        up, down = self.unit.numerator, self.unit.denominator
        return np.array([x * up / down for x in self.whole.tolist()], dtype=np.float64)

    @property
    def largest(self) -> Fraction:
        """Largest absolute value."""
        return max(map(abs, self.whole.tolist()), default=0) * self.unit


def fractions(values: Any) -> Objects:
    """Array of the same shape whose floats are fractions."""
    made: Objects = np.frompyfunc(Fraction, 1, 1)(np.asarray(values, dtype=object))
    return made


def log_ratio(above: Any, below: Any) -> Any:
    """Logarithm of a ratio of positive numbers: of fractions to the last digit, as fractions."""
    if np.asarray(above).dtype != object:
        return np.log(above / below)
    return fractions(np.frompyfunc(log_of, 2, 1)(above, below))


def log_of(above: Fraction, below: Fraction) -> float:
    """Logarithm of a ratio of positive fractions, to the last digit."""
    off = (above - below) / below
    if abs(off) < Fraction(1, 2):
        return math.log1p(off)
    ratio = above / below
    if abs(ratio.numerator.bit_length() - ratio.denominator.bit_length()) < 1000:
        return math.log(ratio)
    # Float64 cannot represent the ratio.
    return math.log(ratio.numerator) - math.log(ratio.denominator)


def of_size_one(column: Column) -> tuple[Column, Fraction]:
    """A column divided by a power of two that makes its numbers about 1, and that power."""
    largest = column.largest
    power = largest.numerator.bit_length() - largest.denominator.bit_length() if largest else 0
    factor = Fraction(2) ** power
    return column.scaled(1 / factor), factor


def weighted(values: Floats, weight: Column) -> tuple[list[Column], Fraction]:
    """Columns of values times the weight, divided by one power of two, and that power."""
    _, factor = of_size_one(Column.of([np.abs(values).max(initial=0.0)]))
    # All in one unit, because sums may mix them.
    every = Column.of(values.T).scaled(1 / factor)
    parts = np.split(every.whole, values.shape[1])
    return [weight * Column(part, every.unit) for part in parts], factor


def exact_means(values: Floats, weight: Floats, members: Bools) -> tuple[Floats, Floats]:
    """Weighted mean and mean size of values in groups of rows (m, n), summed exactly."""
    mass, own = Column.of(weight), Column.of(values)
    first, size = mass * own, mass * Column(np.abs(own.whole), own.unit)
    found = []
    for group in members:
        total = mass.sum(group)
        found.append((float(first.sum(group) / total), float(size.sum(group) / total)))
    means, sizes = np.array(found).T
    return means, sizes
