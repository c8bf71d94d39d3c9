"""Sums of weights that do not depend on the order of the rows or on how they are divided."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Bits of a digit: sums of 2**37 digits fit in 64 bits, and those of a call in doubles.
_BITS = 26
_MOST_ROWS = 1 << 26


class ExactSums:
    """Sums of float64 >= 0 at ``size`` places, as exact sums of their digits to base 2**26.

    Every number is Σ digit · 2**(26 j) with at most three digits, and the digits of each j are
    summed as integers, so sums of parts add up to the very sums of the whole.

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

    @classmethod
    def of(cls, place: NDArray[np.integer], values: Floats, size: int) -> ExactSums:
        """Sums of the values by their place, an integer from 0 to ``size - 1``."""
        sums = cls(size)
        for start in range(0, len(values), _MOST_ROWS):
            part = slice(start, start + _MOST_ROWS)
            sums._add(place[part], values[part])
        return sums

    def _add(self, place: NDArray[np.integer], values: Floats) -> None:
        shown = values > 0
        if not shown.all():
            place, values = place[shown], values[shown]
        rest = values
        exponent = (np.frexp(rest)[1].astype(np.int64) - 1) // _BITS
        for _ in range(3):
            digit = np.floor(np.ldexp(rest, -_BITS * exponent))
            for j in np.unique(exponent[digit > 0]).tolist():
                of_j = (exponent == j) & (digit > 0)
                every = bool(of_j.all())
                total = np.bincount(
                    place if every else place[of_j],
                    weights=digit if every else digit[of_j],
                    minlength=self.size,
                ).astype(np.int64)
                known = self.digits.get(j)
                self.digits[j] = total if known is None else known + total
            rest = rest - np.ldexp(digit, _BITS * exponent)
            if not rest.any():
                break
            exponent = exponent - 1

    def at(self, place: NDArray[np.integer]) -> ExactSums:
        """The sums at these places."""
        return ExactSums(len(place), {j: digit[place] for j, digit in self.digits.items()})

    def plus(self, other: ExactSums, place: NDArray[np.integer]) -> ExactSums:
        """These sums with those of ``other`` added at distinct places."""
        digits = dict(self.digits)
        for j, digit in other.digits.items():
            own = digits.get(j)
            own = np.zeros(self.size, dtype=np.int64) if own is None else own.copy()
            own[place] += digit
            digits[j] = own
        return ExactSums(self.size, digits)

    def totals(self) -> Floats:
        """The sums as float64, of the same digits always the same."""
        total = np.zeros(self.size)
        for j in sorted(self.digits):
            total += np.ldexp(self.digits[j].astype(np.float64), _BITS * j)
        return total


def product_sum(values: Floats, times: ArrayLike) -> float:
    """Σ values · times, rounded once.

    Every product is split into its double and the rounding error of that (Dekker, "A
    floating-point technique for extending the available precision", Numerische Mathematik 18,
    1971), so whole ``times`` give the very sum of values that are repeated as often.
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
