"""Panels of leaves that predict a mean."""

from __future__ import annotations

from typing import Any

from bristlecone._view.fitted import FittedTree
from bristlecone._view.palette import INK
from bristlecone.plot._panels.base import Axis, Panels, Place, number_text
from bristlecone.plot._sheet import Ruler, Sheet

__all__ = ["MeanPanels"]


class MeanPanels(Panels):
    """Box plots of the training values on one axis."""

    tall, low, narrowest = 0.7, 0.18, 0.5
    has_vertical_axis = True

    def __init__(self, tree: FittedTree) -> None:
        super().__init__(tree)
        self.leaves: Any
        self.values = Axis.over(
            float(self.leaves.quantiles.min()), float(self.leaves.quantiles.max()), 5, inside=False
        )

    def lines(self, k: int) -> list[str]:
        lines = [self.rows(k), f"mean {number_text(self.leaves.mean[k])}"]
        if self.leaves.shrinkage > 0:
            lines.append(f"predicted {number_text(self.leaves.predicted[k])}")
        return lines

    def columns(self, *, narrow: bool) -> list[tuple[str, list[str]]]:
        columns = [
            *super().columns(narrow=narrow),
            ("mean", [number_text(mean) for mean in self.leaves.mean]),
        ]
        if self.leaves.shrinkage > 0:
            columns.append(("predicted", [number_text(value) for value in self.leaves.predicted]))
        return columns

    @property
    def axis(self) -> Axis:
        return self.values

    def _draw(self, sheet: Sheet, k: int, place: Place, *, vertical: bool) -> None:
        inset = sheet.inset(place.left, place.top, place.width, place.height)
        least, low, first, median, third, high, most = self.leaves.quantiles[k].tolist()
        colour, scale = self.colours[k], sheet.scale
        inset.bxp(
            [
                {
                    "whislo": low,
                    "q1": first,
                    "med": median,
                    "q3": third,
                    "whishi": high,
                    "mean": float(self.leaves.predicted[k]),
                    "fliers": [least, most],
                }
            ],
            positions=[0],
            widths=0.5,
            showmeans=True,
            patch_artist=True,
            boxprops={"facecolor": f"{colour}44", "edgecolor": colour, "linewidth": 0.9 * scale},
            medianprops={"color": colour, "linewidth": 1.6 * scale},
            whiskerprops={"color": colour, "linewidth": 0.9 * scale},
            capprops={"color": colour, "linewidth": 0.9 * scale},
            flierprops={
                "marker": ".",
                "markersize": 2.5 * scale,
                "markerfacecolor": colour,
                "markeredgecolor": colour,
            },
            meanprops={
                "marker": "D",
                "markersize": 2.6 * scale,
                "markerfacecolor": INK,
                "markeredgecolor": INK,
            },
            **_orientation(vertical=vertical),
        )
        if vertical:
            inset.set_xticks([])
            inset.set_xlim(-1.0, 1.0)
            inset.set_yticks(self.values.ticks)
            inset.set_ylim(self.values.low, self.values.high)
            inset.spines["bottom"].set_visible(False)
        else:
            inset.set_yticks([])
            inset.set_xticks([])
            inset.set_ylim(-0.5, 0.5)
            inset.set_xlim(self.values.low, self.values.high)
            inset.spines[["left", "bottom"]].set_visible(False)

    def draw(self, sheet: Sheet, ruler: Ruler, k: int, place: Place) -> None:
        self._draw(sheet, k, place, vertical=True)

    def draw_in_row(self, sheet: Sheet, ruler: Ruler, k: int, place: Place) -> None:
        self._draw(sheet, k, place, vertical=False)

    @property
    def caption(self) -> str:
        return (
            "Boxes: quartiles of the training values; whiskers: 5 % and 95 %; dots: least and "
            "greatest; diamond: prediction."
        )


def _orientation(*, vertical: bool) -> dict[str, Any]:
    """Option of ``bxp``, whose name depends on the version of matplotlib."""
    import matplotlib

    version = tuple(int(part) for part in matplotlib.__version__.split(".")[:2])
    if version >= (3, 10):
        return {"orientation": "vertical" if vertical else "horizontal"}
    return {"vert": vertical}
