"""What is drawn of a split: its question in a box, or the largest weights of a soft one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np

from bristlecone._tree import Tree
from bristlecone._view.fitted import FittedTree
from bristlecone._view.palette import FAINT, LABELS
from bristlecone.plot._sheet import Ruler, Sheet, shortened

__all__ = ["Splits", "splits_of"]

_PAD = 0.05
# Weights of a soft split that are drawn, and in a low box of a large tree.
_WEIGHTS, _FEW_WEIGHTS, _LARGE = 4, 2, 8


class Splits(ABC):
    """Boxes of the splits of a tree, by node id.

    ``flat`` boxes are low: what can stand beside something else does.
    """

    #: Words beside the branches to the children.
    answers = "yes", "no"
    #: What a box shows.
    caption = ""

    def __init__(self, tree: FittedTree, ruler: Ruler, *, flat: bool) -> None:
        self.tree, self.ruler, self.flat = tree, ruler, flat
        self.n = tree.tree_.n_node_samples.tolist()

    @abstractmethod
    def box(self, node: int, most: float, size: float) -> tuple[float, float]:
        """Width and height of a box that may be so wide."""

    @abstractmethod
    def draw(
        self, sheet: Sheet, node: int, left: float, top: float, most: float, size: float
    ) -> None:
        """Draw the box with its left upper corner there."""


class _Questions(Splits):
    """Yes-no questions in the words of the user's columns."""

    @cached_property
    def _questions(self) -> dict[int, str]:
        return {node: shortened(text) for node, text in self.tree.splits_.items()}

    def _lines(self, node: int, most: float, size: float) -> list[str]:
        return self.ruler.wrap(self._questions[node], most - 2 * _PAD, size, bold=True)

    def _count(self, node: int, size: float) -> tuple[str, float]:
        """Number of rows, and the width of its text."""
        text = f"n = {self.n[node]}"
        return text, self.ruler.width(text, size - 0.5)

    def _is_beside(self, node: int, lines: list[str], most: float, size: float) -> bool:
        """Whether the number of rows stands beside the last line."""
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
    """Bars of the largest weights, those of the scaled columns."""

    answers = "left", "right"
    caption = (
        "Bars: the largest weights of a split, for columns scaled to [0, 1]; a bar points to the "
        "side to which larger values lead."
    )

    def __init__(self, tree: FittedTree, ruler: Ruler, *, flat: bool) -> None:
        super().__init__(tree, ruler, flat=flat)
        soft = tree.tree_
        self.most = _FEW_WEIGHTS if flat and soft.n_leaves > _LARGE else _WEIGHTS
        self.weights = dict(zip(soft.splits.tolist(), soft.weights, strict=True))
        self.greatest = float(np.abs(soft.weights).max()) or 1.0
        self.names = [str(name) for name in tree.encoder_.names]

    def _bars(self, node: int) -> tuple[list[tuple[str, float]], str]:
        """Names and weights, and what is left out."""
        weights = self.weights[node]
        order = np.argsort(-np.abs(weights), kind="stable")
        used = [j for j in order.tolist() if weights[j] != 0]
        bars = [(self.names[j], float(weights[j])) for j in used[: self.most]]
        n = f"n = {self.n[node]}"
        more = len(used) - len(bars)
        return bars, f"{n}, {more} more" if more else n

    def box(self, node: int, most: float, size: float) -> tuple[float, float]:
        bars, _ = self._bars(node)
        height = self.ruler.height(len(bars) + 1, size)
        return min(most, 1.9), height + 1.4 * _PAD

    def draw(
        self, sheet: Sheet, node: int, left: float, top: float, most: float, size: float
    ) -> None:
        width, height = self.box(node, most, size)
        sheet.box(left, top, width, height)
        bars, note = self._bars(node)
        inner = width - 2 * _PAD
        names = min(self.ruler.widest([name for name, _ in bars], size), 0.6 * inner)
        half = (inner - names - 0.04) / 2
        zero, line = left + width - _PAD - half, self.ruler.height(1, size)
        y = top + 0.7 * _PAD
        for name, weight in bars:
            cut = self.ruler.cut(name, names, size)
            sheet.text(left + _PAD + names, y + line / 2, cut, size, ha="right")
            # A positive weight sends larger values to the left.
            end = zero - half * weight / self.greatest
            sheet.bar(zero, end, y + line / 2, 0.62 * line, LABELS[0 if weight > 0 else 1])
            y += line
        if bars:
            edge = [top + 0.7 * _PAD, y]
            sheet.line([zero, zero], edge, color=FAINT, linewidth=0.6, zorder=4)
        sheet.text(left + width / 2, y + line / 2, note, size - 0.5, colour=FAINT)


def splits_of(tree: FittedTree, ruler: Ruler, *, flat: bool) -> Splits:
    """Boxes that fit the splits of a tree."""
    kind = _Questions if isinstance(tree.tree_, Tree) else _Weights
    return kind(tree, ruler, flat=flat)
