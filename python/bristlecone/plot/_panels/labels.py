"""Panels of leaves that give a label."""

from __future__ import annotations

from typing import Any

import numpy as np

from bristlecone._leaves.labels import ClassLeaves, plain_labels
from bristlecone._view.fitted import FittedTree
from bristlecone._view.palette import FAINT, label_colour
from bristlecone.plot._panels.base import Panels, Place
from bristlecone.plot._sheet import Ruler, Sheet, shortened

__all__ = ["LabelPanels"]

# Bars that a leaf has room for.
_MOST_BARS = 6


class LabelPanels(Panels):
    """Bars of the shares of classes, or of the values of treatments."""

    low = 0.16

    def __init__(self, tree: FittedTree) -> None:
        super().__init__(tree)
        self.leaves: Any
        self.names = [str(name) for name in plain_labels(self.leaves.labels)]
        self.is_shares = isinstance(self.leaves, ClassLeaves)
        self.values = self.leaves.shares if self.is_shares else self.leaves.values
        finite = self.values[np.isfinite(self.values)]
        self.scale = (
            (0.0, 1.0)
            if self.is_shares
            else (min(0.0, float(finite.min())), max(0.0, float(finite.max())))
        )
        bars = min(len(self.names), _MOST_BARS)
        self.tall = 0.13 * bars
        if not self.is_shares:
            self.low = max(self.low, 0.07 * len(self.names) + 0.04)

    def title(self, k: int) -> str:
        return f"{super().title(k)}: {shortened(self.names[self.leaves.label[k]])}"

    def lines(self, k: int) -> list[str]:
        return [self.rows(k)]

    def columns(self, *, narrow: bool) -> list[tuple[str, list[str]]]:
        label = self.leaves.label
        values = self.values[np.arange(len(label)), label]
        told = [self._text(value) for value in values]
        return [*super().columns(narrow=narrow), ("share" if self.is_shares else "value", told)]

    def _text(self, value: float) -> str:
        if not np.isfinite(value):
            return "–"
        return f"{value:.2f}" if self.is_shares else f"{value:.3g}"

    def _bars(self, k: int) -> list[tuple[str, float, str, bool]]:
        """Name, value, colour and whether it is the leaf's label; at most so many."""
        values, chosen = self.values[k], int(self.leaves.label[k])
        bars = [
            (name, float(values[j]), label_colour(j), j == chosen)
            for j, name in enumerate(self.names)
        ]
        if len(bars) <= _MOST_BARS:
            return bars
        order = sorted(range(len(bars)), key=lambda j: (j != chosen, -np.nan_to_num(values[j])))
        kept = sorted(order[: _MOST_BARS - 1])
        rest = float(np.sum(values[order[_MOST_BARS - 1 :]])) if self.is_shares else np.nan
        others = f"{len(bars) - len(kept)} others"
        return [*(bars[j] for j in kept), (others, rest, FAINT, False)]

    def draw(self, sheet: Sheet, ruler: Ruler, k: int, place: Place) -> None:
        bars = self._bars(k)
        size = place.size - 0.5
        texts = [self._text(value) for _, value, _, _ in bars]
        side = ruler.widest(texts, size, bold=True) + 0.03
        names = ruler.widest([bar[0] for bar in bars], size, bold=True)
        names = min(names, max(place.width - side - 0.25, 0.1))
        left, right = place.left + names + 0.05, place.left + place.width - side
        low, high = self.scale
        unit = max(right - left, 0.05) / ((high - low) or 1.0)
        zero, step = left - low * unit, place.height / len(bars)
        for j, (name, value, colour, chosen) in enumerate(bars):
            y = place.top + (j + 0.5) * step
            cut = ruler.cut(name, names, size, bold=chosen)
            sheet.text(place.left + names, y, cut, size, ha="right", bold=chosen)
            if np.isfinite(value):
                sheet.bar(zero, zero + value * unit, y, 0.62 * step, colour)
            sheet.text(place.left + place.width, y, texts[j], size, ha="right", bold=chosen)
        edge = [place.top, place.top + place.height]
        sheet.line([zero, zero], edge, color=FAINT, linewidth=0.6)

    def draw_in_row(self, sheet: Sheet, ruler: Ruler, k: int, place: Place) -> None:
        middle = place.top + place.height / 2
        low, high = self.scale
        unit = place.width / ((high - low) or 1.0)
        zero = place.left - low * unit
        if self.is_shares:
            end = place.left
            for j, share in enumerate(self.values[k].tolist()):
                sheet.bar(end, end + share * unit, middle, 0.7 * place.height, label_colour(j))
                end += share * unit
            return
        step = place.height / len(self.names)
        for j, value in enumerate(self.values[k].tolist()):
            if np.isfinite(value):
                y = place.top + (j + 0.5) * step
                sheet.bar(zero, zero + value * unit, y, 0.7 * step, label_colour(j))
        edge = [place.top, place.top + place.height]
        sheet.line([zero, zero], edge, color=FAINT, linewidth=0.6)

    @property
    def key(self) -> list[tuple[str, str]]:
        return [(label_colour(j), name) for j, name in enumerate(self.names)]

    @property
    def caption(self) -> str:
        return (
            "Bars: share of every class."
            if self.is_shares
            else "Bars: estimated mean outcome of every treatment."
        )
