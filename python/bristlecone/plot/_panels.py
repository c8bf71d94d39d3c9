"""Panels of leaves: a painter for every kind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bristlecone._data.texts import number, round_numbers
from bristlecone._leaves.shown import Bars, Box, Curve, Incidences
from bristlecone._view.palette import FAINT, INK, label_colour
from bristlecone._view.view import View, bar_rows
from bristlecone.plot._axes import draw_estimate, steps
from bristlecone.plot._sheet import InchRuler, Sheet

# Most bars for which a leaf has room.
_MOST_BARS = 6
_MOST_TICKS = 5
# Smallest height of an area that has room for a number.
_READABLE = 0.15


@dataclass(frozen=True)
class Place:
    """Position of a panel on the sheet, in inches, and its font size."""

    left: float
    top: float
    width: float
    height: float
    size: float


@dataclass(frozen=True)
class Axis:
    """The axis that all panels share."""

    low: float
    high: float
    ticks: list[float]

    @property
    def texts(self) -> list[str]:
        """Texts of the ticks."""
        return [number(tick, 10) for tick in self.ticks]

    def at(self, value: float) -> float:
        """Position of a value, from 0 to 1."""
        return (value - self.low) / ((self.high - self.low) or 1.0)


class Painter:
    """Painter of leaves that have no panel; their facts are text."""

    #: Height of a panel when panels are side by side and in a row, in inches; 0 for none.
    tall, low = 0.0, 0.0
    #: Smallest legible width of a panel, in inches.
    narrowest = 0.7
    #: Whether panels side by side share a vertical axis.
    has_vertical_axis = False
    #: Whether the horizontal axis is time.
    is_over_time = False

    def __init__(self, view: View, ruler: InchRuler) -> None:
        self.view, self.ruler = view, ruler

    @property
    def axis(self) -> Axis | None:
        """Horizontal axis of the panels, if they have one."""
        return None

    def draw(self, sheet: Sheet, k: int, place: Place, *, in_row: bool) -> None:
        """Draw a panel among others side by side, or in a row of a table."""


class _OverTime(Painter):
    """Panel over time whose values are between 0 and 1."""

    tall, low = 0.8, 0.28
    has_vertical_axis = is_over_time = True

    @property
    def axis(self) -> Axis:
        return Axis(*self.view.shown.span, self.view.ticks(_MOST_TICKS))

    def inset(self, sheet: Sheet, place: Place) -> Any:
        """Empty axes of a panel."""
        inset = sheet.inset(place.left, place.top, place.width, place.height)
        inset.set_xlim(0.0, self.axis.high)
        inset.set_ylim(0.0, 1.04)
        inset.set_xticks(self.axis.ticks)
        inset.set_yticks([0.0, 0.5, 1.0])
        return inset


class _Curves(_OverTime):
    """Kaplan–Meier estimate with its band and censored rows, and the predicted curve."""

    def draw(self, sheet: Sheet, k: int, place: Place, *, in_row: bool) -> None:
        curve: Any = self.view.leaves[k].panel
        end, scale = self.axis.high, (0.7 if in_row else 1.0) * sheet.scale
        inset = self.inset(sheet, place)
        if curve.estimate is not None:
            draw_estimate(inset, curve, self.view.colours[k], end, place.width, scale)
        if self.view.shown.has_model:
            points = curve.times, curve.survival
            inset.plot(
                *(steps(*points, end) if curve.is_step else points),
                drawstyle="steps-post" if curve.is_step else "default",
                color=INK,
                linewidth=0.9 * scale,
                linestyle=(0, (3, 1.5)),
                zorder=4,
            )


class _Incidences(_OverTime):
    """Incidences of the causes, stacked, with their numbers."""

    def draw(self, sheet: Sheet, k: int, place: Place, *, in_row: bool) -> None:
        panel: Any = self.view.leaves[k].panel
        end = self.axis.high
        inset = self.inset(sheet, place)
        x = np.concatenate([[0.0], panel.times, [end]])
        for cause, edges in enumerate(panel.layers):
            low, high = (np.concatenate([[0.0], edge, edge[-1:]]) for edge in edges)
            inset.fill_between(
                x, low, high, step="post", color=label_colour(cause), alpha=0.8, linewidth=0
            )
            if high[-1] - low[-1] > _READABLE:
                inset.text(
                    0.97 * end,
                    (low[-1] + high[-1]) / 2,
                    str(cause + 1),
                    fontsize=(place.size - 1.0) * sheet.scale,
                    color="white",
                    ha="right",
                    va="center_baseline",
                )


class _Bars(Painter):
    """Bars of the shares of classes, or of the values of treatments."""

    def __init__(self, view: View, ruler: InchRuler) -> None:
        super().__init__(view, ruler)
        self.tall = 0.13 * min(len(view.labels), _MOST_BARS)
        self.stacked = view.tree.leaves_.compared == "shares"
        self.low = 0.16 if self.stacked else max(0.16, 0.07 * len(view.labels) + 0.04)

    def draw(self, sheet: Sheet, k: int, place: Place, *, in_row: bool) -> None:
        if in_row:
            return self._draw_row(sheet, k, place)
        size, right = place.size - 0.5, place.left + place.width
        bars = self.view.bars(k, _MOST_BARS)
        rows, zero = bar_rows(bars, self.view.shown.span, place.width, self.ruler, size)
        step = place.height / len(rows)
        for j, row in enumerate(rows):
            y = place.top + (j + 0.5) * step
            style: dict[str, Any] = {"ha": "right", "bold": row.is_chosen}
            sheet.text(place.left + row.name_end, y, row.name, size, **style)
            sheet.bar(place.left + row.start, place.left + row.end, y, 0.62 * step, row.colour)
            sheet.text(right, y, row.text, size, **style)
        return self._draw_zero(sheet, place, zero)

    def _draw_row(self, sheet: Sheet, k: int, place: Place) -> None:
        bars, (low, high) = self.view.bars(k, len(self.view.labels)), self.view.shown.span
        unit, step = place.width / ((high - low) or 1.0), place.height / len(bars)
        zero = end = -low * unit
        for j, bar in enumerate(bars):
            length = bar.value * unit if np.isfinite(bar.value) else 0.0
            start = place.left + (end if self.stacked else zero)
            y, thickness = place.top + (j + 0.5) * step, 0.7 * step
            if self.stacked:
                y, thickness = place.top + place.height / 2, 0.7 * place.height
            sheet.bar(start, start + length, y, thickness, label_colour(bar.place))
            end += length
        if not self.stacked:
            self._draw_zero(sheet, place, zero)

    @staticmethod
    def _draw_zero(sheet: Sheet, place: Place, zero: float) -> None:
        x, edge = [place.left + zero] * 2, [place.top, place.top + place.height]
        sheet.line(x, edge, color=FAINT, linewidth=0.6)


class _Boxes(Painter):
    """Box plots of the training values on one axis."""

    tall, low, narrowest = 0.7, 0.18, 0.5
    has_vertical_axis = True

    @property
    def axis(self) -> Axis:
        low, high = self.view.shown.span
        pad = 0.04 * (high - low) or 0.1 * abs(low) or 0.5
        low, high = low - pad, high + pad
        return Axis(low, high, round_numbers(low, high, _MOST_TICKS))

    def draw(self, sheet: Sheet, k: int, place: Place, *, in_row: bool) -> None:
        inset = sheet.inset(place.left, place.top, place.width, place.height)
        box: Any = self.view.leaves[k].panel
        least, low, first, median, third, high, most = box.levels
        colour, scale = self.view.colours[k], sheet.scale
        numbers = {"whislo": low, "q1": first, "med": median, "q3": third, "whishi": high}
        line = {"color": colour, "linewidth": 0.9 * scale}
        inset.bxp(
            [numbers | {"mean": box.predicted, "fliers": [least, most]}],
            positions=[0],
            widths=0.5,
            showmeans=True,
            patch_artist=True,
            boxprops={"facecolor": f"{colour}44", "edgecolor": colour, "linewidth": 0.9 * scale},
            medianprops={"color": colour, "linewidth": 1.6 * scale},
            whiskerprops=line,
            capprops=line,
            flierprops=_marker(".", 2.5 * scale, colour),
            meanprops=_marker("D", 2.6 * scale, INK),
            **_orientation(vertical=not in_row),
        )
        axis = self.axis
        inset.set_xticks([])
        inset.set_yticks([] if in_row else axis.ticks)
        (inset.set_xlim if in_row else inset.set_ylim)(axis.low, axis.high)
        (inset.set_ylim if in_row else inset.set_xlim)(*((-0.5, 0.5) if in_row else (-1.0, 1.0)))
        inset.spines[["left", "bottom"] if in_row else ["bottom"]].set_visible(False)


def _marker(marker: str, size: float, colour: str) -> dict[str, Any]:
    both = {"markerfacecolor": colour, "markeredgecolor": colour}
    return {"marker": marker, "markersize": size, **both}


def _orientation(*, vertical: bool) -> dict[str, Any]:
    """Option of ``bxp``, whose name depends on the version of matplotlib."""
    import matplotlib

    version = tuple(int(part) for part in matplotlib.__version__.split(".")[:2])
    if version >= (3, 10):
        return {"orientation": "vertical" if vertical else "horizontal"}
    return {"vert": vertical}


_PAINTERS: dict[type, type[Painter]] = {
    Curve: _Curves,
    Incidences: _Incidences,
    Bars: _Bars,
    Box: _Boxes,
}


def painter_of(view: View, ruler: InchRuler) -> Painter:
    """Painter for the panels of these leaves."""
    return _PAINTERS.get(type(view.leaves[0].panel), Painter)(view, ruler)
