"""How a tree is laid out on a sheet."""

from __future__ import annotations

from abc import ABC, abstractmethod

from bristlecone._view.palette import FAINT
from bristlecone.plot._panels import Painter
from bristlecone.plot._sheet import Sheet
from bristlecone.plot._splits import splits_of

# Widths, in inches, from which a sheet has larger text.
ROOMY = 5.0
# With more leaves than this, rows are lower.
MANY = 16


class Arrangement(ABC):
    """A tree on a sheet of this width, from which the height follows."""

    #: Whether boxes of splits are low.
    flat = False

    def __init__(self, painter: Painter, width: float) -> None:
        self.painter, self.view, self.ruler = painter, painter.view, painter.ruler
        self.structure, self.width = self.view.structure, width
        self.splits = splits_of(self.view.tree, self.ruler, flat=self.flat)
        self.is_narrow = width < ROOMY
        self.size = 5.8 if self.is_narrow else 6.0 if len(self.view.n) > MANY else 6.5
        self.small = self.size - 0.5

    @property
    @abstractmethod
    def height(self) -> float:
        """Height that it needs, in inches."""

    @abstractmethod
    def draw(self, sheet: Sheet) -> None:
        """Draw it on a sheet of its size, or a higher one."""

    @property
    @abstractmethod
    def caption(self) -> str:
        """Sentence that explains lines and numbers."""

    def _caption_lines(self) -> list[str]:
        if not self.caption:
            return []
        # At low resolutions, the characters of a long line are wider than the ruler measures.
        return self.ruler.wrap(self.caption, 0.95 * self.width - 0.1, self.small)

    @property
    def _caption_height(self) -> float:
        lines = len(self._caption_lines())
        return self.ruler.height(lines, self.small) + (0.08 if lines else 0.0)

    def _draw_caption(self, sheet: Sheet) -> None:
        top = sheet.height - self._caption_height + 0.04
        sheet.lines(0.05, top, self._caption_lines(), self.small, ha="left", colour=FAINT)
