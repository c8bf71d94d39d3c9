"""A sheet in inches: texts that are measured before they are drawn, lines, boxes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bristlecone._view.palette import FAINT, INK, RULE
from bristlecone._view.ruler import LEADING, Ruler

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Renderers round the widths of characters differently.
_SPARE = 1.05
_BOX = "#f3f6f9"


class InchRuler(Ruler):
    """Widths and heights of texts in the font of matplotlib, in inches."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, float, bool], float] = {}

    def width(self, text: str, size: float, *, bold: bool = False) -> float:
        """Width of one line, with a small margin."""
        key = text, size, bold
        if key not in self._known:
            from matplotlib.font_manager import FontProperties
            from matplotlib.textpath import text_to_path

            font = FontProperties(size=size, weight="bold" if bold else "normal")
            points = text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]
            self._known[key] = _SPARE * points / 72
        return self._known[key]

    @staticmethod
    def height(lines: int, size: float) -> float:
        """Height of this many lines."""
        return lines * size * LEADING / 72


class Sheet:
    """Axes as a sheet: x runs right and y down, both in inches; the sheet may be scaled.

    Parameters
    ----------
    ax : matplotlib Axes
        Axes to draw on. Their own axis lines and ticks are hidden.
    width, height : float
        Size of the sheet.
    scale : float
        Inches on the axes per inch of the sheet.
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
        """Draw one line of text whose middle is at y."""
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
        """Draw lines below each other; returns their lower end."""
        for line in lines:
            self.text(x, top + InchRuler.height(1, size) / 2, line, size, **style)
            top += InchRuler.height(1, size)
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
