"""Numbers, counts and names in texts that people read."""

from __future__ import annotations

import math

import numpy as np


def number(value: float | None, digits: int = 4) -> str:
    """A number with this many significant digits, or all before the point; "–" for none."""
    if value is None or not math.isfinite(value):
        return "–"
    if abs(value) < 1e15 and (value == int(value) or abs(value) >= 10.0**digits):
        return f"{value:,.0f}"
    return f"{value:,.{digits}g}"


def plain_number(value: float, digits: int = 4) -> str:
    """As ``number``, without separators of thousands: for lists, whose items commas separate."""
    return number(value, digits).replace(",", "")


def printable(text: str) -> str:
    """A user's text without signs that fonts do not have, or that change the order of the others.

    Such are the bell and the marks that turn the text after them from right to left.
    """
    return "".join(sign for sign in text if sign.isprintable() or sign.isspace())


def one_line(text: str) -> str:
    """A user's text for a picture: line breaks and tabs, which fonts do not have, are spaces."""
    return " ".join(printable(text).split())


def counted(count: int, noun: str) -> str:
    """Such as "1 row", "2,440 rows", "2 leaves"."""
    plural = "leaves" if noun == "leaf" else f"{noun}s"
    return f"{count:,} {noun if count == 1 else plural}"


def percent(share: float, digits: int = 3) -> str:
    """A share as a percentage."""
    return f"{100 * share:.{digits}g}%"


def round_numbers(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers from ``low`` to ``high``, evenly spaced: at most ``most``, if possible."""
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low] if math.isfinite(low) else []
    decade = 10.0 ** math.floor(math.log10(span / most))
    for part in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0):
        step = part * decade
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            break
    # Through text: 3 * 0.1 reads 0.3.
    return [float(f"{k * step:.12g}") for k in np.arange(first, last + 1)]
