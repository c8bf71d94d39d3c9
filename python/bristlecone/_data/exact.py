"""Sums of weights that do not depend on the order of the rows or on how these are divided."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._types import Floats, Integers

# Bits of a digit. Sums of 2**37 digits fit into 64 bits, and those of one call into doubles.
_BITS = 26
_MOST_ROWS = 1 << 26


class ExactValues:
    """Numbers that are summed exactly and repeatedly: float64 >= 0 as digits to base 2**26.

    Every number is Σ digit · 2**(26 j) with at most three digits.

    Parameters
    ----------
    values : float64 ndarray of shape (n,)
        The numbers.
    """

    def __init__(self, values: Floats) -> None:
        self.values = values
        found: dict[int, list[tuple[Integers, Floats]]] = defaultdict(list)
        rows = np.flatnonzero(values)
        rest = values[rows]
        exponent = (np.frexp(rest)[1].astype(np.int64) - 1) // _BITS
        while rows.size:
            digit = np.floor(np.ldexp(rest, -_BITS * exponent))
            for j in np.unique(exponent).tolist():
                of_j = exponent == j
                found[j].append((rows[of_j], digit[of_j]))
            rest = rest - np.ldexp(digit, _BITS * exponent)
            kept = rest > 0
            rows, rest, exponent = rows[kept], rest[kept], exponent[kept] - 1
        # For every exponent: the rows that have the digit (None for all), and the digits.
        self._digits: dict[int, tuple[Integers | None, NDArray[np.uint32]]] = {}
        for j, parts in found.items():
            rows, digit = (np.concatenate(of) for of in zip(*parts, strict=True))
            if rows.size < values.size:
                self._digits[j] = rows, digit.astype(np.uint32)
                continue
            dense = np.empty(values.size, dtype=np.uint32)
            dense[rows] = digit
            self._digits[j] = None, dense

    def sums(self, place: NDArray[np.integer], size: int) -> ExactSums:
        """Sums of the numbers by the position of each, an integer from 0 to ``size - 1``; O(n)."""
        digits = {}
        for j, (rows, digit) in self._digits.items():
            at = place if rows is None else place[rows]
            total = np.zeros(size, dtype=np.int64)
            for start in range(0, len(at), _MOST_ROWS):
                part = slice(start, start + _MOST_ROWS)
                total += np.bincount(at[part], digit[part], size).astype(np.int64)
            digits[j] = total
        return ExactSums(size, digits)


class ExactSums:
    """Sums of float64 >= 0 at ``size`` positions, as exact sums of their digits to base 2**26.

    The digits of each exponent are summed as integers, so the sums of parts add up exactly to the
    sums of the whole.

    Parameters
    ----------
    size : int
        Number of sums, all 0.
    digits : mapping of int to int64 ndarray of shape (size,), optional
        Sums of the digits by their exponent j.
    """

    def __init__(self, size: int, digits: Mapping[int, Integers] | None = None) -> None:
        self.size = size
        self.digits: dict[int, Integers] = dict(digits or {})

    def at(self, place: NDArray[np.integer]) -> ExactSums:
        """The sums at these positions."""
        return ExactSums(len(place), {j: digit[place] for j, digit in self.digits.items()})

    def plus(self, other: ExactSums, place: NDArray[np.integer]) -> ExactSums:
        """These sums, with those of ``other`` added at distinct positions."""
        digits = dict(self.digits)
        for j, digit in other.digits.items():
            own = digits.get(j)
            own = np.zeros(self.size, dtype=np.int64) if own is None else own.copy()
            own[place] += digit
            digits[j] = own
        return ExactSums(self.size, digits)

    def totals(self) -> Floats:
        """The sums as float64; equal digits always give equal numbers."""
        total = np.zeros(self.size)
        for j in sorted(self.digits):
            total += np.ldexp(self.digits[j].astype(np.float64), _BITS * j)
        return total


def product_sum(values: Floats, times: ArrayLike) -> float:
    """Σ values · times, rounded once.

    Every product is split into its double and the rounding error (Dekker, "A floating-point
    technique for extending the available precision", Numerische Mathematik 18, 1971), so whole
    ``times`` give exactly the sum of values that are repeated as often.
    """
    factor = np.asarray(times, dtype=np.float64)
    product = values * factor
    a, b = _halves(values), _halves(factor)
    error = a[1] * b[1] - (((product - a[0] * b[0]) - a[1] * b[0]) - a[0] * b[1])
    if not np.isfinite(error).all():  # the splitting overflows beyond 2**996
        error = np.zeros_like(product)
    return math.fsum([*product.tolist(), *error.tolist()])


def _halves(values: Floats) -> tuple[Floats, Floats]:
    """Two numbers of at most 26 bits whose sum is each value (Veltkamp)."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = values * 134217729.0  # 2**27 + 1
        high = scaled - (scaled - values)
    return high, values - high
