"""Boxes of splits: a question, or the largest weights of a soft split."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

from bristlecone._tree import Tree
from bristlecone._view.fitted import FittedTree
from bristlecone._view.palette import FAINT
from bristlecone._view.ruler import shortened
from bristlecone._view.view import bar_rows, split_weights
from bristlecone.plot._sheet import InchRuler, Sheet

_PAD = 0.05
# Number of weights of a soft split that are drawn, also in a low box of a large tree.
_WEIGHTS, _FEW_WEIGHTS, _LARGE = 4, 2, 8


class Splits(ABC):
    """Boxes of the splits of a tree, by node id.

    ``flat`` boxes are low: text is placed side by side if possible.
    """

    #: Texts next to the branches to the children.
    answers = "yes", "no"
    #: What a box shows.
    caption = ""

    def __init__(self, tree: FittedTree, ruler: InchRuler, *, flat: bool) -> None:
        self.tree, self.ruler, self.flat = tree, ruler, flat
        self.n = tree.tree_.n_node_samples.tolist()

    @abstractmethod
    def box(self, node: int, most: float, size: float) -> tuple[float, float]:
        """Width and height of a box with this maximum width."""

    @abstractmethod
    def draw(
        self, sheet: Sheet, node: int, left: float, top: float, most: float, size: float
    ) -> None:
        """Draw the box with its upper left corner at this point."""


class _Questions(Splits):
    """Yes-no questions with the names of the user's columns."""

    @cached_property
    def _questions(self) -> dict[int, str]:
        return {node: shortened(text) for node, text in self.tree.splits_.items()}

    def _lines(self, node: int, most: float, size: float) -> list[str]:
        return self.ruler.wrap(self._questions[node], most - 2 * _PAD, size, bold=True)

    def _count(self, node: int, size: float) -> tuple[str, float]:
        """Number of rows, and the width of its text."""
        text = f"n = {self.n[node]:,}"
        return text, self.ruler.width(text, size - 0.5)

    def _is_beside(self, node: int, lines: list[str], most: float, size: float) -> bool:
        """Whether the number of rows is on the last line."""
        last = self.ruler.width(lines[-1], size, bold=True)
        return self.flat and last + 0.08 + self._count(node, size)[1] <= most - 2 * _PAD

    def box(self, node: int, most: float, size: float) -> tuple[float, float]:
        lines, count = self._lines(node, most, size), self._count(node, size)[1]
        width = self.ruler.widest(lines, size, bold=True)
        height = self.ruler.height(len(lines), size) + (0.6 if self.flat else 1.4) * _PAD
        if self._is_beside(node, lines, most, size):
            last = self.ruler.width(lines[-1], size, bold=True)
            return max(width, last + 0.08 + count) + 2 * _PAD, height
        return max(width, count) + 2 * _PAD, height + self.ruler.height(1, size - 0.5)

    def draw(
        self, sheet: Sheet, node: int, left: float, top: float, most: float, size: float
    ) -> None:
        width, height = self.box(node, most, size)
        sheet.box(left, top, width, height)
        lines, (count, _) = self._lines(node, most, size), self._count(node, size)
        inside = top + (0.3 if self.flat else 0.7) * _PAD
        if self.flat:
            below = sheet.lines(left + _PAD, inside, lines, size, ha="left", bold=True)
            beside = self._is_beside(node, lines, most, size)
            y = below + self.ruler.height(1, size) / (-2 if beside else 2)
            end = left + width - _PAD
            sheet.text(end, y, count, size - 0.5, ha="right", colour=FAINT)
            return
        middle = left + width / 2
        below = sheet.lines(middle, inside, lines, size, bold=True)
        sheet.lines(middle, below, [count], size - 0.5, colour=FAINT)


class _Weights(Splits):
    """Bars of the largest weights, for the scaled columns."""

    answers = "left", "right"
    caption = (
        "Bars: the largest weights of a split, for columns scaled to [0, 1]; a bar points to the "
        "side to which larger values lead."
    )

    def __init__(self, tree: FittedTree, ruler: InchRuler, *, flat: bool) -> None:
        super().__init__(tree, ruler, flat=flat)
        most = _FEW_WEIGHTS if flat and tree.tree_.n_leaves > _LARGE else _WEIGHTS
        self.weights = split_weights(tree, most)

    def box(self, node: int, most: float, size: float) -> tuple[float, float]:
        weights, _ = self.weights[node]
        return min(most, 1.9), self.ruler.height(len(weights) + 1, size) + 1.4 * _PAD

    def draw(
        self, sheet: Sheet, node: int, left: float, top: float, most: float, size: float
    ) -> None:
        width, height = self.box(node, most, size)
        sheet.box(left, top, width, height)
        weights, more = self.weights[node]
        inner, line = width - 2 * _PAD, self.ruler.height(1, size)
        bars = [bar._replace(text="") for bar in weights]
        rows, zero = bar_rows(bars, (-1.0, 1.0), inner, self.ruler, size)
        x, y = left + _PAD, top + 0.7 * _PAD
        for row in rows:
            sheet.text(x + row.name_end, y + line / 2, row.name, size, ha="right")
            sheet.bar(x + row.start, x + row.end, y + line / 2, 0.62 * line, row.colour)
            y += line
        if rows:
            edge = [top + 0.7 * _PAD, y]
            sheet.line([x + zero] * 2, edge, color=FAINT, linewidth=0.6, zorder=4)
        note = f"n = {self.n[node]:,}"
        others = f"{note}; {more} more column{'s' if more > 1 else ''}"
        if more and self.ruler.width(others, size - 0.5) <= inner:
            note = others
        sheet.text(left + width / 2, y + line / 2, note, size - 0.5, colour=FAINT)


def splits_of(tree: FittedTree, ruler: InchRuler, *, flat: bool) -> Splits:
    """Boxes that fit the splits of a tree."""
    kind = _Questions if isinstance(tree.tree_, Tree) else _Weights
    return kind(tree, ruler, flat=flat)
