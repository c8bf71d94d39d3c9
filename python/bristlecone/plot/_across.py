"""A tree across, with a table at its right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bristlecone._view.palette import FAINT, RULE, label_colour
from bristlecone.plot._arrange import MANY, Arrangement
from bristlecone.plot._panels import Axis, Place
from bristlecone.plot._sheet import Sheet

_AT_RISK = "rows at risk at"
# Heading, lines by leaf, and width of a column.
_Column = tuple[list[str], list[list[str]], float]


class Across(Arrangement):
    """Root at the left, one row per leaf with its panel and facts as a table.

    Splits and leaves have separate rows, with each split between its two sides, so no texts
    overlap, however many leaves there are.
    """

    flat = True
    _top = 0.03

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        painter = self.painter
        is_long = len(self.view.n) > MANY
        self._row_gap = 0.015 if is_long else 0.025
        self.low = min(painter.low, 0.24) if is_long else painter.low
        self.axis = painter.axis
        depth = max(self.structure.max_depth, 1)
        answers = self.ruler.widest(self.splits.answers, self.small) + 0.1
        self.step = float(np.clip(0.3 * self.width / depth, 0.03, answers + 0.06))
        self.has_answers = self.step >= answers
        # The table gets the width of its facts, the tree what it needs of the rest or a share of
        # the total, and numbers at risk and wider panels what is left.
        self.tree_width = np.inf
        natural = max(self._right(node) for node in range(self.structure.node_count)) + 0.08
        self.panel_width = 0.0 if not self.low else 0.5 if self.is_narrow else 0.9
        facts, numbers = self._columns()
        room = self.width - self.panel_width - 0.22
        wanted = sum(width for _, _, width in facts)
        share = 0.42 if self.is_narrow and not is_long else 0.6
        self.tree_width = min(natural, max(share * self.width, room - wanted))
        room -= self.tree_width
        while facts and sum(width for _, _, width in facts) > room + 1e-9:
            facts.pop()
        room -= sum(width for _, _, width in facts)
        while numbers and sum(width for _, _, width in numbers) > room:
            # At every second time; with a single time they show nothing.
            numbers = numbers[::2] if len(numbers) > 3 else []
        room -= sum(width for _, _, width in numbers)
        self.columns, self.first_at_risk = [*facts, *numbers], len(facts)
        if self.panel_width:
            grown = min(room, 1.9 - self.panel_width)
            self.panel_width, room = self.panel_width + grown, room - grown
        self.tree_width += room
        self.tops, self.heights, self.bottom = self._rows()

    def _right(self, node: int) -> float:
        """Right end of the text of a node."""
        if self.structure.children_left[node] >= 0:
            return self._x(node) + self.splits.box(node, self._most(node), self.size)[0]
        k = self.view.nodes.index(node)
        return self._x(node) + self.ruler.widest(self._title(k), self.size, bold=True) + 0.05

    def _columns(self) -> tuple[list[_Column], list[_Column]]:
        """Heading, lines by leaf and width of every column: facts, and numbers at risk."""
        facts = [
            self._column(heading, [_cell(text, self.is_narrow) for text in texts])
            for heading, texts in self.view.columns(narrow=self.is_narrow)
        ]
        if self.axis is None:
            return facts, []
        at_risk = self.view.at_risk(self.axis.ticks)
        ticks = self.axis.texts if at_risk else []
        least = self.ruler.width(_AT_RISK, self.small) / max(len(ticks), 1)
        return facts, [
            self._column(tick, [[f"{row[j]:,}"] for row in at_risk], least)
            for j, tick in enumerate(ticks)
        ]

    def _column(self, heading: str, cells: list[list[str]], least: float = 0.0) -> _Column:
        inner = self.ruler.widest([line for cell in cells for line in cell], self.small)
        inner = max(inner, least, self.ruler.widest(heading.split(" "), self.small))
        return self.ruler.wrap(heading, inner, self.small), cells, inner + 0.12

    def _x(self, node: int) -> float:
        return 0.04 + float(self.structure.node_depth[node]) * self.step

    def _most(self, node: int) -> float:
        return max(self.tree_width - self._x(node), 0.4)

    def _title(self, k: int) -> list[str]:
        most = self._most(self.view.nodes[k]) - 0.05
        return self.ruler.wrap(self.view.title(k), most, self.size, bold=True)

    def _rows(self) -> tuple[list[float], list[float], float]:
        """Top and height of the row of every node, and the end of the rows.

        Panels and cells may be higher than the row of their leaf, because there is room beside
        splits.
        """
        tree = self.structure
        tops, heights = [0.0] * tree.node_count, [0.0] * tree.node_count
        leaf_of = {node: k for k, node in enumerate(self.view.nodes)}
        y = self._top + self.ruler.height(self._heading_lines, self.small) + 0.03
        free = y
        for node in _in_order(tree):
            if node in leaf_of:
                k = leaf_of[node]
                height = self.ruler.height(len(self._title(k)), self.size)
                cells = max((len(cells[k]) for _, cells, _ in self.columns), default=1)
                beside = max(height, self.low, self.ruler.height(cells, self.small))
                y = max(y, free + (beside - height) / 2)
                free = y + (height + beside) / 2 + 0.04
            else:
                height = self.splits.box(node, self._most(node), self.size)[1]
            tops[node], heights[node] = y, height
            y += height + self._row_gap
        return tops, heights, max(y, free)

    @property
    def _heading_lines(self) -> int:
        lines = max((len(heading) for heading, _, _ in self.columns), default=0)
        return max(lines, 2) if len(self.columns) > self.first_at_risk else lines

    @property
    def _axis_height(self) -> float:
        return self.ruler.height(1, self.small) + 0.03 if self.axis and self.panel_width else 0.0

    def _key_rows(self) -> list[list[tuple[str, str, float]]]:
        """Colours, names and widths, in rows."""
        rows: list[list[tuple[str, str, float]]] = [[]]
        left = self.width - 0.1
        for place, name in enumerate(self.view.labels):
            cut = self.ruler.cut(name, self.width - 0.4, self.small)
            width = self.ruler.width(cut, self.small) + 0.28
            if width > left and rows[-1]:
                rows.append([])
                left = self.width - 0.1
            left -= width
            rows[-1].append((label_colour(place), cut, width))
        return rows if rows[0] else []

    @property
    def height(self) -> float:
        """Height that it needs, in inches."""
        key = self.ruler.height(len(self._key_rows()), self.size)
        return self.bottom + self._axis_height + key + self._caption_height + 0.02

    @property
    def caption(self) -> str:
        """Sentence that explains lines and numbers."""
        upper, lower = self.splits.answers
        answers = "" if self.has_answers else f" Branches: {upper} above, {lower} below."
        return f"{self.view.shown.caption}{answers} {self.splits.caption}".strip()

    def draw(self, sheet: Sheet) -> None:
        """Draw it on a sheet of its size, or a higher one."""
        tree = self.structure
        for node in np.flatnonzero(~tree.is_leaf).tolist():
            self._draw_split(sheet, node)
        left = self.tree_width + 0.08
        for k, node in enumerate(self.view.nodes):
            self._draw_leaf(sheet, k, node, left)
        self._draw_headings(sheet, left + self.panel_width + 0.08)
        if self.axis is not None and self.panel_width:
            self._draw_axis(sheet, left)
        y = self.bottom + self._axis_height
        for row in self._key_rows():
            x, middle = 0.05, y + self.ruler.height(1, self.size) / 2
            for colour, name, width in row:
                sheet.bar(x, x + 0.1, middle, 0.08, colour)
                sheet.text(x + 0.14, middle, name, self.small, ha="left")
                x += width
            y += self.ruler.height(1, self.size)
        self._draw_caption(sheet)

    def _draw_headings(self, sheet: Sheet, x: float) -> None:
        line = self.ruler.height(1, self.small)
        below = self._top + self._heading_lines * line
        for j, (heading, _, width) in enumerate(self.columns):
            top = below - len(heading) * line
            sheet.lines(x + width, top, heading, self.small, ha="right", colour=FAINT)
            x += width
            if j == len(self.columns) - 1 and j >= self.first_at_risk:
                above = below - 1.5 * line
                sheet.text(x, above, _AT_RISK, self.small, ha="right", colour=FAINT)

    def _draw_split(self, sheet: Sheet, node: int) -> None:
        tree, left, top = self.structure, self._x(node), self.tops[node]
        x, bottom = left + min(0.06, self.step / 2), top + self.heights[node]
        for side, children in enumerate((tree.children_left, tree.children_right)):
            child = int(children[node])
            y = self.tops[child] + self.heights[child] / 2
            end = self._x(child)
            sheet.line([x, x], [bottom if side else top, y])
            if not self.has_answers:
                sheet.line([x, end], [y, y])
                continue
            # The answer interrupts the line.
            answer = self.splits.answers[side]
            half = self.ruler.width(answer, self.small) / 2 + 0.01
            middle = (x + end) / 2
            sheet.line([x, middle - half], [y, y])
            sheet.line([middle + half, end], [y, y])
            sheet.text(middle, y, answer, self.small, colour=FAINT)
        self.splits.draw(sheet, node, left, top, self._most(node), self.size)

    def _draw_leaf(self, sheet: Sheet, k: int, node: int, left: float) -> None:
        top, height = self.tops[node], self.heights[node]
        middle, title = top + height / 2, self._title(k)
        x = self._x(node) + 0.03
        start = middle - self.ruler.height(len(title), self.size) / 2
        style = {"ha": "left", "bold": True, "colour": self.view.colours[k]}
        sheet.lines(x, start, title, self.size, **style)
        end = x + self.ruler.widest(title, self.size, bold=True) + 0.05
        if end < left - 0.06:
            sheet.line([end, left - 0.03], [middle] * 2, color=RULE, linewidth=0.5)
        if self.panel_width:
            low = self.low
            panel = Place(left, middle - low / 2, self.panel_width, low, self.size)
            self.painter.draw(sheet, k, panel, in_row=True)
        x = left + self.panel_width + 0.08
        for _, cells, width in self.columns:
            start = middle - self.ruler.height(len(cells[k]), self.small) / 2
            sheet.lines(x + width, start, cells[k], self.small, ha="right")
            x += width

    def _draw_axis(self, sheet: Sheet, left: float) -> None:
        axis = self.axis
        assert isinstance(axis, Axis)
        y = self.bottom + self.ruler.height(1, self.small) / 2 - 0.02
        sheet.line([left, left + self.panel_width], [self.bottom - 0.03] * 2, linewidth=0.6)
        end = -np.inf
        for tick, text in zip(axis.ticks, axis.texts, strict=True):
            half = self.ruler.width(text, self.small) / 2
            x = left + axis.at(tick) * self.panel_width
            x = float(np.clip(x, left - 0.06 + half, left + self.panel_width + 0.1 - half))
            if x - half > end + 0.04:
                sheet.text(x, y, text, self.small, colour=FAINT)
                end = x + half


def _cell(text: str, is_narrow: bool) -> list[str]:
    """Lines of a cell; in a narrow table an interval is below its value."""
    return text.replace(" (", "\n(").split("\n") if is_narrow else [text]


def _in_order(tree: Any) -> Iterator[int]:
    """Nodes in order, with every split between its two sides."""
    path: list[int] = []
    node = 0
    while path or node >= 0:
        while node >= 0:
            path.append(node)
            node = int(tree.children_left[node])
        node = path.pop()
        yield node
        node = int(tree.children_right[node])
