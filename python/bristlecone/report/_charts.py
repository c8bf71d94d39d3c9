"""Geometry of charts: scales, round numbers, paths of step functions, widths of text.

However many steps a curve has, a screen shows one value per pixel: paths are sampled there, which
bounds the size of a page.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Area", "number", "round_numbers", "text_width", "wrapped"]

Floats = NDArray[np.float64]
Tenths = NDArray[np.int64]
Curve = Callable[[Floats], Any]

# Advance of characters, in units of the font size; wide enough for every font asked for.
_NARROW, _USUAL, _CAPITAL, _WIDE = 0.4, 0.65, 0.78, 1.05


@dataclass(frozen=True)
class Area:
    """Where a chart is drawn, and the ranges of its axes.

    Parameters
    ----------
    left, top, width, height : float
    x : tuple of (float, float)
        Least and greatest number of the horizontal axis.
    y : tuple of (float, float)
        Of the vertical axis, upwards.
    """

    left: float
    top: float
    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float] = (0.0, 1.0)

    @property
    def right(self) -> float:
        """Right edge."""
        return self.left + self.width

    @property
    def bottom(self) -> float:
        """Lower edge."""
        return self.top + self.height

    def across(self, value: float) -> float:
        """Place of a number of the horizontal axis."""
        low, high = self.x
        return round(self.left + self.width * (value - low) / (high - low or 1.0), 1)

    def down(self, value: float) -> float:
        """Place of a number of the vertical axis."""
        low, high = self.y
        return round(self.bottom - self.height * (value - low) / (high - low or 1.0), 1)

    def steps(self, curve: Curve, end: float | None = None) -> str:
        """Path of a step function from the left edge to ``end`` (by default the right edge)."""
        places, heights = self._sampled(curve, end)
        return _moved(places[0], heights[0]) + _stairs(places, heights)

    def between(self, lower: Curve, upper: Curve, end: float | None = None) -> str:
        """Outline of the band between two step functions."""
        places, low = self._sampled(lower, end)
        _, high = self._sampled(upper, end)
        there = _moved(places[0], high[0]) + _stairs(places, high)
        # Back from the right: a step has its height up to the next one.
        back = _stairs(places[::-1], low[::-1], falls_first=True)
        return f"{there}v{_tenths(low[-1] - high[-1])}{back}z"

    def _sampled(self, curve: Curve, end: float | None) -> tuple[Tenths, Tenths]:
        low, high = self.x
        last = high if end is None else min(max(end, low), high)
        share = (last - low) / (high - low or 1.0)
        times = np.linspace(low, last, max(2, math.ceil(self.width * share) + 1))
        values = np.asarray(curve(times), dtype=np.float64)
        bottom, top = self.y
        heights = self.bottom - self.height * (values - bottom) / (top - bottom or 1.0)
        places = self.left + np.linspace(0.0, self.width * share, times.size)
        return (10 * places).round().astype(np.int64), (10 * heights).round().astype(np.int64)


def _moved(place: int, height: int) -> str:
    return f"M{_tenths(place)} {_tenths(height)}"


def _stairs(places: Tenths, heights: Tenths, *, falls_first: bool = False) -> str:
    """Steps in relative coordinates, which are short.

    ``heights`` begin at their place; with ``falls_first`` they end there.
    """
    path, at = [], 0
    for k in (np.flatnonzero(np.diff(heights)) + 1).tolist():
        turn = k - 1 if falls_first else k
        path.append(f"h{_tenths(places[turn] - places[at])}")
        path.append(f"v{_tenths(heights[k] - heights[k - 1])}")
        at = turn
    return "".join([*path, f"h{_tenths(places[-1] - places[at])}"])


def _tenths(value: int) -> str:
    """A number of tenths in as few characters as possible."""
    text = f"{value / 10:g}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def number(value: float, digits: int = 4) -> str:
    """A number to be read: the whole part as it is, others with so many significant digits."""
    if not math.isfinite(value):
        return "-"
    if value == int(value) and abs(value) < 1e15:
        return str(int(value))
    if 10.0**digits <= abs(value) < 1e15:
        return f"{value:.0f}"
    return f"{value:.{digits}g}"


def round_numbers(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers from ``low`` to ``high``, evenly spaced: at most ``most``, where possible."""
    span = high - low
    if not span > 0 or not math.isfinite(span):
        return [low] if math.isfinite(low) else []
    decade = 10.0 ** math.floor(math.log10(span / most))
    steps = [part * decade for part in (1.0, 2.0, 2.5, 5.0, 10.0, 20.0)]
    for step in steps:
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
        if last - first < most:
            break
    # Through text: 3 * 0.1 reads 0.3.
    return [float(f"{k * step:.12g}") for k in range(first, last + 1)]


def text_width(text: str, size: float) -> float:
    """About how wide a text is when it is printed."""
    return size * sum(map(_advance, text))


def _advance(character: str) -> float:
    if character in "iljtfrI.,:;'|![]() ":
        return _NARROW
    if unicodedata.combining(character):
        return 0.0
    if unicodedata.east_asian_width(character) in "WF" or character in "mwMW@%…":
        return _WIDE
    return _CAPITAL if character.isupper() else _USUAL


def wrapped(text: str, width: float, size: float, most: int = 3) -> list[str]:
    """The text in at most so many lines no wider than ``width``.

    Lines end between words, else after an underscore, else anywhere. Of what is too long the middle
    is left out, since names of columns differ at their beginning and conditions stand at the end.
    """
    text = " ".join(text.split())
    # No line holds more characters, however narrow they are.
    kept = most * (2 + int(max(width, 0.0) / (_NARROW * size)))
    lines = _lines(text, width, size) if len(text) <= kept else []
    kept = min(kept, len(text))
    while (len(lines) > most or not lines) and kept > 1:
        kept -= 1
        end = kept // 2
        lines = _lines(f"{text[: kept - end]}…{text[len(text) - end :]}", width, size)
    return lines or [""]


def _lines(text: str, width: float, size: float) -> list[str]:
    lines, line = [], ""
    for part in re.findall(r"\s+|[^\s_]*_+|[^\s_]+", " ".join(text.split())):
        if text_width(line + part.rstrip(), size) <= width:
            line += part
            continue
        if line.strip():
            lines.append(line.strip())
        line = part.lstrip()
        while (fits := _fitting(line, width, size)) < len(line):
            lines.append(line[:fits])
            line = line[fits:]
    return [*lines, line.strip()] if line.strip() else lines


def _fitting(text: str, width: float, size: float) -> int:
    """How many characters fit, at least one of a text that has any."""
    total = 0.0
    for count, character in enumerate(text):
        total += _advance(character)
        if size * total > width:
            return max(count, 1)
    return len(text)
