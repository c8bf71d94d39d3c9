"""Panels of leaves that predict survival."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._leaves.survival import StepLeaves
from bristlecone._view.fitted import FittedTree
from bristlecone._view.palette import INK
from bristlecone.plot._axes import steps, visible_marks
from bristlecone.plot._panels.base import Axis, Panels, Place, number_text
from bristlecone.plot._sheet import Ruler, Sheet

__all__ = ["SurvivalPanels"]

Floats = NDArray[np.float64]


class SurvivalPanels(Panels):
    """Kaplan–Meier with its band and censored rows, and the curve that is predicted."""

    tall, low = 0.8, 0.28
    has_vertical_axis = True

    def __init__(self, tree: FittedTree, confidence: float, time_label: str) -> None:
        super().__init__(tree)
        self.leaves: Any
        self.confidence, self.time_label = confidence, time_label
        self.end = float(self.leaves.unique_times[-1]) or 1.0
        self.models = self._models()
        # Where it is the Kaplan–Meier curve there is nothing to add.
        self.has_model = not all(
            self.n[k] and np.allclose(self._at(k, x), y, rtol=0, atol=1e-9)
            for k, (x, y) in enumerate(self.models)
        )

    def _models(self) -> list[tuple[Floats, ...]]:
        leaves = self.leaves
        if isinstance(leaves, StepLeaves):
            times = leaves.unique_times
            return [steps(times, curve, self.end) for curve in leaves.typical_survival(times)]
        times = np.linspace(0.0, self.end, 200)
        return [(times, curve) for curve in leaves.typical_survival(times)]

    def _at(self, k: int, times: Floats) -> Floats:
        return np.asarray(self.leaves.kaplan_meier[k](times))

    def _median(self, k: int) -> tuple[str, str]:
        """Median and its interval in words, the latter empty where neither limit is reached."""
        if not self.n[k]:
            return "–", ""
        curve = self.leaves.kaplan_meier[k]
        limits = curve.median_interval(self.confidence)
        texts = [number_text(value) if np.isfinite(value) else "–" for value in limits]
        told = "" if texts == ["–", "–"] else f"({texts[0]} to {texts[1]})"
        return (number_text(curve.median) if np.isfinite(curve.median) else "not reached"), told

    def _events(self, k: int) -> int:
        return int(self.leaves.follow_up[k].events.sum()) if self.n[k] else 0

    def lines(self, k: int) -> list[str]:
        if not self.n[k]:
            return ["no rows"]
        median, interval = self._median(k)
        rows = f"{self.rows(k)}, events {self._events(k)}".replace(" ", "\xa0")
        told = f"KM median {median}".replace(" ", "\xa0")
        lines = [rows.replace(",\xa0", ", "), told.replace("median\xa0", "median ")]
        return [*lines, interval] if interval else lines

    def columns(self, *, narrow: bool) -> list[tuple[str, list[str]]]:
        everyone = range(len(self.n))
        medians = [" ".join(self._median(k)).strip() for k in everyone]
        events = [str(self._events(k)) for k in everyone]
        columns = [*super().columns(narrow=narrow), ("events", events)]
        if narrow:
            pairs = zip(events, self.n, strict=True)
            columns[0] = "events\xa0/\xa0n", [f"{count} / {n}" for count, n in pairs]
            columns.pop()
        return [
            *columns,
            (f"KM\xa0median ({100 * self.confidence:g}\xa0%\xa0CI)", medians),
        ]

    @property
    def axis(self) -> Axis:
        return Axis.over(0.0, self.end, 5, inside=True)

    def at_risk(self, axis: Axis) -> list[list[int]]:
        times = np.array(axis.ticks)
        return [
            [int(n) for n in leaf.at_risk(times)] if self.n[k] else [0] * len(times)
            for k, leaf in enumerate(self.leaves.follow_up)
        ]

    def draw(self, sheet: Sheet, ruler: Ruler, k: int, place: Place) -> None:
        self._draw(sheet, k, place, sheet.scale)

    def draw_in_row(self, sheet: Sheet, ruler: Ruler, k: int, place: Place) -> None:
        self._draw(sheet, k, place, 0.7 * sheet.scale)

    def _draw(self, sheet: Sheet, k: int, place: Place, scale: float) -> None:
        inset = sheet.inset(place.left, place.top, place.width, place.height)
        inset.set_xlim(0.0, self.end)
        inset.set_ylim(0.0, 1.04)
        inset.set_xticks(self.axis.ticks)
        inset.set_yticks([0.0, 0.5, 1.0])
        colour = self.colours[k]
        if self.n[k]:
            self._draw_own(inset, k, colour, scale)
        if self.has_model:
            is_step = isinstance(self.leaves, StepLeaves)
            inset.plot(
                *self.models[k],
                drawstyle="steps-post" if is_step else "default",
                color=INK,
                linewidth=0.9 * scale,
                linestyle=(0, (3, 1.5)),
                zorder=4,
            )

    def _draw_own(self, inset: Any, k: int, colour: str, scale: float) -> None:
        curve, follow_up = self.leaves.kaplan_meier[k], self.leaves.follow_up[k]
        left = follow_up.times
        last = float(left[-1]) if len(left) else self.end
        limits = curve.confidence_interval(self.confidence)
        x, y, lower, upper = steps(curve.x, curve.y, last, *limits)
        inset.fill_between(
            x, lower, upper, step="post", color=colour, alpha=0.2, linewidth=0, zorder=2
        )
        inset.plot(x, y, drawstyle="steps-post", color=colour, linewidth=1.5 * scale, zorder=3)
        censored = visible_marks(left[follow_up.censored > 0], self.end)
        if len(censored):
            inset.plot(
                censored,
                np.asarray(curve(censored)),
                "|",
                color=colour,
                markersize=3.5 * scale,
                markeredgewidth=0.6 * scale,
                zorder=3,
            )

    @property
    def caption(self) -> str:
        of = " of a typical row" if not isinstance(self.leaves, StepLeaves) else ""
        model = f" Dashed: survival that the tree predicts{of}." if self.has_model else ""
        return (
            f"Survival (0 to 1) over {self.time_label}. Solid: Kaplan–Meier (KM) with "
            f"{100 * self.confidence:g} % confidence band; ticks: censored rows.{model}"
        )
