"""Decimals that other languages read back exactly."""

from __future__ import annotations

import math
from fractions import Fraction

# A decimal that is off by more than this share of the distance to the next float is too close to
# the midpoint of two floats.
_NEAR = Fraction(49, 100)
# Integers and powers of ten that are exact in float64: their ratio is rounded only once.
_MOST_DIGITS, _MOST_TENS = 2**53, 22


def decimal(value: float) -> str:
    """Decimal of a finite number that languages with slightly inexact readers read correctly.

    SQLite and R read decimals with more digits than float64 has, and round twice. One in ten
    thousand of the shortest decimals is so close to the midpoint of two floats that the result is
    wrong. Such numbers are written with seventeen digits, which are always read correctly.

    Examples
    --------
    >>> decimal(52.5), decimal(1e-7)
    ('52.5', '1e-07')
    """
    shortest = repr(value)
    away = abs(Fraction(shortest) - Fraction(value))
    return shortest if away <= _NEAR * Fraction(math.ulp(value)) else f"{value:.17g}"


def is_short(text: str) -> bool:
    """Whether a decimal is one division or product of numbers that are exact in float64."""
    digits, _, exponent = text.lower().lstrip("+-").partition("e")
    whole, _, part = digits.partition(".")
    tens = int(exponent or 0) - len(part)
    return int(whole + part) <= _MOST_DIGITS and abs(tens) <= _MOST_TENS
