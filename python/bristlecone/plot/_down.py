"""A tree from top to bottom, with its panels side by side below."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from bristlecone._view.layout import edge, place
from bristlecone._view.palette import FAINT
from bristlecone.plot._arrange import Arrangement
from bristlecone.plot._panels import Place
from bristlecone.plot._sheet import Sheet


class Down(Arrangement):
    """Root above, leaves side by side below, each with its panel."""

    widest = 2.4
    _edge, _gap, _top = 0.3, 0.14, 0.04

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        painter, axis = self.painter, self.painter.axis
        left = 0.04
        if painter.has_vertical_axis:
            left = self.ruler.widest(self._vertical()[1], self.small) + 0.08
        # The horizontal axis is time; the axis of box plots is vertical here.
        self.axis = axis if painter.is_over_time else None
        self.at_risk = self.view.at_risk(axis.ticks) if axis is not None else []
        if self.at_risk:
            left = max(left, self.ruler.width("at risk", self.small) + 0.1)
        n = len(self.view.n)
        self.slot = min((self.width - left - 0.04) / n, self.widest)
        self.left = left + (self.width - left - 0.04 - n * self.slot) / 2
        self.layout = place(self.structure, self.slot)
        self.panel_width = self.slot - self._gap
        self._ticks = self._shown_ticks() if self.axis is not None else []
        self.heads = [self._head(k) for k in range(n)]
        head = max(len(title) for title, _ in self.heads), max(len(low) for _, low in self.heads)
        self.head = head
        self.head_height = self.ruler.height(head[0], self.size) + self.ruler.height(
            head[1], self.small
        )
        self.levels = self._levels()
        self.panel_height = painter.tall
        if painter.has_vertical_axis:
            self.panel_height = float(np.clip(0.6 * self.panel_width, painter.tall, 1.25))

    def _vertical(self) -> tuple[list[float], list[str]]:
        """Ticks of the vertical axis, as shares of its height, and their texts."""
        axis = self.painter.axis
        if axis is None or self.painter.is_over_time:
            return [0.0, 0.5 / 1.04, 1 / 1.04], ["0", "0.5", "1"]
        return [axis.at(tick) for tick in axis.ticks], axis.texts

    def _head(self, k: int) -> tuple[list[str], list[str]]:
        wrap, most = self.ruler.wrap, self.slot - 0.06
        title = wrap(self.view.title(k), most, self.size, bold=True)
        lines = [part for line in self.view.lines(k) for part in wrap(line, most, self.small)]
        return title, [line.rstrip(",") for line in lines]

    def _levels(self) -> list[tuple[float, float]]:
        """Top and height of every level of splits."""
        tree, heights = self.structure, [0.0] * self.structure.max_depth
        for node in np.flatnonzero(~tree.is_leaf).tolist():
            depth = int(self.structure.node_depth[node])
            box = self.splits.box(node, self._most(node), self.size)
            heights[depth] = max(heights[depth], box[1])
        levels, top = [], self._top
        for height in heights:
            levels.append((top, height))
            top += height + self._edge
        return levels

    @property
    def _leaf_top(self) -> float:
        if not self.levels:
            return self._top
        top, height = self.levels[-1]
        return top + height + self._edge

    def _most(self, node: int) -> float:
        """Largest width of a split's box, so that it stays above its own leaves."""
        tree = self.structure
        first = last = node
        while tree.children_left[first] >= 0:
            first = tree.children_left[first]
        while tree.children_left[last] >= 0:
            last = tree.children_right[last]
        x = self.layout.x
        side = min(x[node] - x[first], x[last] - x[node]) + self.slot / 2
        return float(min(2 * side - 0.1, 2.2))

    @property
    def _below(self) -> float:
        """Height of the part below the panels."""
        rows = 0 if self.axis is None else 1 + bool(self.at_risk)
        return self.ruler.height(rows, self.small) + (0.06 if rows else 0.0)

    @property
    def height(self) -> float:
        """Height that it needs, in inches."""
        rest = self.head_height + 0.03 + self._below + self._caption_height + 0.04
        return self._leaf_top + rest + self.panel_height

    def _shown_ticks(self) -> list[tuple[int, float]]:
        """Ticks whose texts, including numbers at risk, fit below a panel: place and middle."""
        assert self.axis is not None
        texts = self.axis.texts
        columns = [[texts[j], *(f"{row[j]:,}" for row in self.at_risk)] for j in range(len(texts))]
        widths = [self.ruler.widest(column, self.small) for column in columns]
        low, high = -self._gap / 2 + 0.02, self.panel_width + self._gap / 2 - 0.02
        shown: list[tuple[int, float]] = []
        for stride in range(1, len(texts) + 1):
            shown = []
            for j in range(0, len(texts), stride):
                middle = self.axis.at(self.axis.ticks[j]) * self.panel_width
                half = widths[j] / 2
                shown.append((j, float(np.clip(middle, low + half, max(high - half, low + half)))))
            apart = all(
                b - a >= (widths[i] + widths[j]) / 2 + 0.04 for (i, a), (j, b) in pairwise(shown)
            )
            if apart:
                return shown
        return shown[:1]

    @property
    def caption(self) -> str:
        """Sentence that explains lines and numbers."""
        below = " Below: time and rows at risk." if self.at_risk else ""
        return f"{self.view.shown.caption}{below} {self.splits.caption}".strip()

    def draw(self, sheet: Sheet) -> None:
        """Draw it on a sheet of its size, or a higher one."""
        # A higher sheet has higher panels.
        spare = sheet.height - self.height
        if self.painter.has_vertical_axis:
            self.panel_height += min(max(spare, 0.0), self.panel_height)
        self._draw_edges(sheet)
        for node in np.flatnonzero(~self.structure.is_leaf).tolist():
            most = self._most(node)
            width, _ = self.splits.box(node, most, self.size)
            left = self.left + self.layout.x[node] - width / 2
            top = self.levels[int(self.structure.node_depth[node])][0]
            self.splits.draw(sheet, node, float(left), top, most, self.size)
        for k in range(len(self.view.n)):
            self._draw_leaf(sheet, k)
        self._draw_margin(sheet)
        self._draw_caption(sheet)

    def _draw_edges(self, sheet: Sheet) -> None:
        tree, x = self.structure, self.left + self.layout.x
        for node in np.flatnonzero(~tree.is_leaf).tolist():
            depth = int(self.structure.node_depth[node])
            top, height = self.levels[depth]
            start = top + self.splits.box(node, self._most(node), self.size)[1]
            bend = top + height + 0.1
            for side, children in enumerate((tree.children_left, tree.children_right)):
                child = int(children[node])
                end = self._leaf_top if tree.is_leaf[child] else self.levels[depth + 1][0]
                corners = edge((start, x[node]), (end, x[child]), bend - start)
                ys, xs = zip(*corners, strict=True)
                sheet.line(xs, ys)
                ha, shift = ("right", -0.03) if side == 0 else ("left", 0.03)
                sheet.text(
                    float(x[child]) + shift,
                    bend + 0.1,
                    self.splits.answers[side],
                    self.small,
                    ha=ha,
                    colour=FAINT,
                )

    def _draw_leaf(self, sheet: Sheet, k: int) -> None:
        middle = self.left + (k + 0.5) * self.slot
        title, lines = self.heads[k]
        top = self._leaf_top + self.ruler.height(self.head[0] - len(title), self.size)
        colour = self.view.colours[k]
        top = sheet.lines(middle, top, title, self.size, bold=True, colour=colour)
        sheet.lines(middle, top, lines, self.small)
        panel = self._panel(k)
        if not panel.height:
            return
        self.painter.draw(sheet, k, panel, in_row=False)
        if self.axis is None:
            return
        y = panel.top + panel.height + 0.05 + self.ruler.height(1, self.small) / 2
        for j, x in self._ticks:
            sheet.text(panel.left + x, y, self.axis.texts[j], self.small, colour=FAINT)
            if self.at_risk:
                below = y + self.ruler.height(1, self.small)
                sheet.text(panel.left + x, below, f"{self.at_risk[k][j]:,}", self.small)

    def _panel(self, k: int) -> Place:
        left = self.left + k * self.slot + self._gap / 2
        top = self._leaf_top + self.head_height + 0.03
        return Place(left, top, self.panel_width, self.panel_height, self.size)

    def _draw_margin(self, sheet: Sheet) -> None:
        """Draw the labels that all panels share, at the left of the first."""
        panel = self._panel(0)
        if self.painter.has_vertical_axis:
            for share, text in zip(*self._vertical(), strict=True):
                y = panel.top + (1 - share) * panel.height
                sheet.text(panel.left - 0.05, y, text, self.small, ha="right", colour=FAINT)
        if self.at_risk and self._ticks:
            y = panel.top + panel.height + 0.05 + 1.5 * self.ruler.height(1, self.small)
            end = min(panel.left, panel.left + self._first_text()) - 0.04
            sheet.text(end, y, "at risk", self.small, ha="right", colour=FAINT)

    def _first_text(self) -> float:
        """Left end of the first number at risk, from the left of its panel."""
        j, x = self._ticks[0]
        return x - self.ruler.width(f"{self.at_risk[0][j]:,}", self.small) / 2
