"""Comparing what a tree says with what its rows say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from bristlecone.trust.verification import Check

__all__ = ["Checks", "close", "shown"]

# Two ways to the same sum differ by rounding; no effect is as small.
_RELATIVE, _OF_SCALE = 1e-9, 1e-12


class Checks:
    """Checks as they are made."""

    def __init__(self) -> None:
        self.made: list[Check] = []

    def holds(self, name: str, holds: bool, expected: Any, found: Any, reason: str = "") -> None:
        """Check a statement."""
        result: Literal["passed", "failed"] = "passed" if holds else "failed"
        told = "" if holds else reason
        self.made.append(Check(name, shown(expected), shown(found), result, told))

    def skip(self, name: str, found: str, reason: str) -> None:
        """Say what is not checked, and why."""
        self.made.append(Check(name, "", found, "not checked", reason))

    def same(
        self,
        name: str,
        summary: str,
        pairs: Iterable[tuple[str, Any, Any]],
        *,
        scale: float = 0.0,
    ) -> None:
        """Check (what, expected, found) one after the other; the first that differs is told.

        Numbers are the same but for rounding; ``scale`` is the size of what they were summed from.
        """
        for what, expected, found in pairs:
            if not close(expected, found, scale):
                told, says = _difference(expected, found, scale)
                self.holds(name, False, f"{what} {told}", f"{what} {says}")
                return
        self.holds(name, True, summary, summary)


def close(expected: Any, found: Any, scale: float = 0.0) -> bool:
    """Whether two values are the same, numbers but for rounding."""
    one, other = np.asarray(expected), np.asarray(found)
    if one.shape != other.shape:
        return False
    if one.dtype.kind not in "fc" and other.dtype.kind not in "fc":
        return bool((one == other).all())
    return bool(_alike(one, other, scale).all())


def _alike(one: Any, other: Any, scale: float) -> Any:
    finite = np.abs(one[np.isfinite(one)])
    atol = _OF_SCALE * max(float(finite.max(initial=0.0)), scale)
    return np.isclose(one, other, rtol=_RELATIVE, atol=atol, equal_nan=True)


def _difference(expected: Any, found: Any, scale: float) -> tuple[str, str]:
    """The first values that differ, or the shapes."""
    one, other = np.asarray(expected), np.asarray(found)
    if one.shape != other.shape:
        return f"of shape {one.shape}", f"of shape {other.shape}"
    numbers = one.dtype.kind in "fc" or other.dtype.kind in "fc"
    same = _alike(one, other, scale) if numbers else one == other
    place = tuple(int(k) for k in np.argwhere(~same)[0])
    at = f"[{', '.join(map(str, place))}] " if place else ""
    return f"{at}{shown(one[place])}", f"{at}{shown(other[place])}"


def shown(value: Any) -> str:
    """A value as text."""
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    return f"{value:.10g}" if isinstance(value, float) else str(value)
