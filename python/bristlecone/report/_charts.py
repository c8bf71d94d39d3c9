"""Geometry of charts: scales, and paths of step functions.

A screen shows one value per pixel, however many steps a curve has. Paths are sampled there, which
limits the size of a page.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from bristlecone._types import Floats, Integers

# Font size of names and numbers.
TEXT = 10.5

Curve = Callable[[Floats], Any]


@dataclass(frozen=True)
class Area:
    """Position of a chart, and the ranges of its axes.

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
        """Position of a number on the horizontal axis."""
        low, high = self.x
        return round(self.left + self.width * (value - low) / (high - low or 1.0), 1)

    def down(self, value: float) -> float:
        """Position of a number on the vertical axis."""
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
        # Back from the right: a step keeps its height until the next one.
        back = _stairs(places[::-1], low[::-1], falls_first=True)
        return f"{there}v{_tenths(low[-1] - high[-1])}{back}z"

    def _sampled(self, curve: Curve, end: float | None) -> tuple[Integers, Integers]:
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


def _stairs(places: Integers, heights: Integers, *, falls_first: bool = False) -> str:
    """Steps in relative coordinates, which are short.

    ``heights`` start at their position; with ``falls_first`` they end there.
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
