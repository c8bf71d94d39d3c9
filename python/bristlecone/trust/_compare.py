"""Comparison of the values that a tree reports with those computed from its rows."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._types import Bools
from bristlecone.trust._optimality import RELATIVE
from bristlecone.trust._verification import Check

Pairs = list[tuple[Any, ...]]
"""A comparison: a name, the expected and the reported value, and the size of their terms."""

# Relative rounding error of the terms of a sum, which counts if positive and negative ones cancel.
OF_TERMS = 1e-12


class Checks:
    """Checks as they are made."""

    def __init__(self) -> None:
        self.made: list[Check] = []

    def holds(self, name: str, holds: bool, expected: Any, found: Any, reason: str = "") -> None:
        """Check a statement."""
        passed = Check(name, shown(expected), shown(found), "passed")
        self.made.append(passed if holds else replace(passed, result="failed", reason=reason))

    def skip(self, name: str, found: str, reason: str) -> None:
        """Record what is not checked, and why."""
        self.made.append(Check(name, "", found, "not checked", reason))

    def same(
        self,
        name: str,
        summary: str,
        pairs: Iterable[tuple[Any, ...]],
        *,
        scale: Any = 0.0,
    ) -> None:
        """Check (what, expected, found) one after the other; the first that differs is reported.

        Numbers count as equal if they differ by at most a factor of 1e-9. If positive and negative
        terms cancel, a pair may have a fourth entry, the size of these terms; ``scale`` sets this
        size for all pairs.
        """
        for what, expected, found, *terms in pairs:
            size = terms[0] if terms else scale
            if not close(expected, found, size):
                computed, reported = _difference(expected, found, size)
                self.holds(name, False, f"{what} {computed}", f"{what} {reported}")
                return
        self.holds(name, True, summary, summary)


def close(expected: Any, found: Any, scale: Any = 0.0) -> bool:
    """Whether two values are the same; numbers may differ by a factor of 1e-9."""
    one, other = np.asarray(expected), np.asarray(found)
    return one.shape == other.shape and bool(_alike(one, other, scale).all())


def _alike(one: NDArray[Any], other: NDArray[Any], scale: Any) -> Bools:
    """Whether the values of two arrays of one shape are the same, each."""
    if one.dtype.kind not in "fc" and other.dtype.kind not in "fc":
        return np.asarray(one == other)
    # `rtol` of isclose is relative to the second number. Numbers below the normal range have fewer
    # digits than it requires, and each term of a sum may have lost one; they count as the smallest
    # normal number.
    atol = OF_TERMS * np.asarray(scale, dtype=np.float64) + RELATIVE * np.finfo(np.float64).tiny
    return np.asarray(np.isclose(other, one, rtol=RELATIVE, atol=atol, equal_nan=True))


def _difference(expected: Any, found: Any, scale: Any) -> tuple[str, str]:
    """The first values that differ, or the shapes."""
    one, other = np.asarray(expected), np.asarray(found)
    if one.shape != other.shape:
        return f"of shape {one.shape}", f"of shape {other.shape}"
    place = tuple(int(k) for k in np.argwhere(~_alike(one, other, scale))[0])
    at = f"[{', '.join(map(str, place))}] " if place else ""
    return f"{at}{shown(one[place])}", f"{at}{shown(other[place])}"


def shown(value: Any) -> str:
    """A value as text."""
    if isinstance(value, (np.generic, np.ndarray)) and value.ndim == 0:
        value = value.item()
    return f"{value:.10g}" if isinstance(value, float) else str(value)
