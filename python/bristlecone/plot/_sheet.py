"""A sheet of paper in inches: texts that are measured before they are drawn, lines, boxes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from bristlecone._view.palette import FAINT, INK, RULE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Ruler", "Sheet", "shortened"]

# Of the font size, between the bases of two lines.
_LEADING = 1.28
# Renderers round the advance of characters differently.
_SPARE = 1.05
_BOX = "#f3f6f9"
# Characters of a user's text: no picture has room for more.
_LONGEST = 160
_SIGNS = {"<=", ">=", "<", ">", "=", "!="}


class Ruler:
    """Widths and heights of texts, in inches."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, float, bool], float] = {}

    def width(self, text: str, size: float, *, bold: bool = False) -> float:
        """Width of one line, with a little to spare."""
        key = text, size, bold
        if key not in self._known:
            from matplotlib.font_manager import FontProperties
            from matplotlib.textpath import text_to_path

            font = FontProperties(size=size, weight="bold" if bold else "normal")
            points = text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]
            self._known[key] = _SPARE * points / 72
        return self._known[key]

    def widest(self, texts: Iterable[str], size: float, *, bold: bool = False) -> float:
        """Width of the widest of several lines."""
        return max((self.width(text, size, bold=bold) for text in texts), default=0.0)

    @staticmethod
    def height(lines: int, size: float) -> float:
        """Height of so many lines."""
        return lines * size * _LEADING / 72

    def wrap(self, text: str, width: float, size: float, *, bold: bool = False) -> list[str]:
        """Lines of at most this width: broken between words, a bound beside its sign.

        Words that are too long are broken after marks such as "_", or where they must be. What is
        joined by no-break spaces stays together, if it can.
        """
        lines = [""]
        for word in _words(text):
            joined = f"{lines[-1]} {word}" if lines[-1] else word
            if self.width(joined, size, bold=bold) <= width:
                lines[-1] = joined
                continue
            if not lines[-1]:
                lines.pop()
            lines += self._broken(word, width, size, bold)
        return [line.replace("\xa0", " ") for line in lines]

    def _broken(self, word: str, width: float, size: float, bold: bool) -> list[str]:
        parts = re.findall(r"[^_\-./:\s]*[_\-./:\s]+|[^_\-./:\s]+", word) or [word]
        lines = [""]
        for part in parts:
            if self.width((lines[-1] + part).rstrip(), size, bold=bold) <= width:
                lines[-1] += part
                continue
            if lines[-1]:
                lines.append("")
            for letter in part:
                longer = lines[-1] + letter
                if lines[-1] and self.width(longer, size, bold=bold) > width:
                    lines.append(letter)
                else:
                    lines[-1] = longer
        return [line.strip() for line in lines if line.strip()]

    def cut(self, text: str, width: float, size: float, *, bold: bool = False) -> str:
        """The text, or as much of it as fits, with an ellipsis."""
        if len(text) <= _LONGEST and self.width(text, size, bold=bold) <= width:
            return text
        kept = min(len(text), _LONGEST)
        while kept > 1 and self.width(f"{text[:kept]}…", size, bold=bold) > width:
            kept -= 1
        return f"{text[:kept].rstrip()}…"


def shortened(text: str) -> str:
    """A user's text without the middle of what is too long to be drawn.

    Names of columns differ at their beginning, and conditions stand at the end.
    """
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST // 2].rstrip()}…{text[-_LONGEST // 2 :].lstrip()}"


def _words(text: str) -> list[str]:
    words: list[str] = []
    for word in re.split(r"[^\S\xa0]+", text.strip()):
        if words and words[-1] in _SIGNS:
            words[-1] += f" {word}"
        else:
            words.append(word)
    return words


class Sheet:
    """Axes as paper: x runs right and y down, both in inches of a sheet that may be scaled.

    Parameters
    ----------
    ax : matplotlib Axes
        What is drawn on; its own axis is put away.
    width, height : float
        Of the sheet.
    scale : float
        Inches of the axes for one of the sheet.
    """

    def __init__(self, ax: Axes, width: float, height: float, scale: float) -> None:
        self.ax, self.width, self.height, self.scale = ax, width, height, scale
        ax.set_axis_off()
        ax.set_xlim(0.0, width)
        ax.set_ylim(0.0, height)

    def text(
        self,
        x: float,
        y: float,
        text: str,
        size: float,
        *,
        ha: str = "center",
        bold: bool = False,
        colour: str = INK,
    ) -> None:
        """One line whose middle is at y."""
        self.ax.text(
            x,
            self.height - y,
            text,
            fontsize=size * self.scale,
            fontweight="bold" if bold else "normal",
            ha=ha,
            va="center_baseline",
            color=colour,
            parse_math=False,
        )

    def lines(self, x: float, top: float, lines: Sequence[str], size: float, **style: Any) -> float:
        """Lines below one another; returns where they end."""
        for line in lines:
            self.text(x, top + Ruler.height(1, size) / 2, line, size, **style)
            top += Ruler.height(1, size)
        return top

    def line(self, xs: Sequence[float], ys: Sequence[float], **style: Any) -> None:
        """Connected straight lines."""
        style = {"color": RULE, "linewidth": 0.9, "zorder": 1, **style}
        style["linewidth"] *= self.scale
        drawn = self.ax.plot(xs, [self.height - y for y in ys], **style)
        drawn[0].set_solid_capstyle("butt")

    def box(self, left: float, top: float, width: float, height: float) -> None:
        """A box with round corners."""
        from matplotlib.patches import FancyBboxPatch

        self.ax.add_patch(
            FancyBboxPatch(
                (left, self.height - top - height),
                width,
                height,
                boxstyle="round,pad=0,rounding_size=0.04",
                facecolor=_BOX,
                edgecolor=FAINT,
                linewidth=0.6 * self.scale,
                zorder=2,
            )
        )

    def bar(self, left: float, right: float, y: float, thickness: float, colour: str) -> None:
        """A horizontal bar whose middle is at y."""
        from matplotlib.patches import Rectangle

        corner = min(left, right), self.height - y - thickness / 2
        self.ax.add_patch(
            Rectangle(corner, abs(right - left), thickness, color=colour, linewidth=0, zorder=3)
        )

    def inset(self, left: float, top: float, width: float, height: float) -> Axes:
        """Axes on the sheet, without ticks, with spines at the left and below."""
        bounds = (left, self.height - top - height, width, height)
        inset = self.ax.inset_axes(bounds, transform=self.ax.transData)
        inset.set_xticks([])
        inset.set_yticks([])
        inset.patch.set_alpha(0.0)
        inset.spines[["top", "right"]].set_visible(False)
        inset.spines[["left", "bottom"]].set_color(FAINT)
        inset.spines[["left", "bottom"]].set_linewidth(0.6 * self.scale)
        inset.tick_params(
            length=2.0 * self.scale,
            width=0.6 * self.scale,
            color=FAINT,
            labelbottom=False,
            labelleft=False,
        )
        return inset
