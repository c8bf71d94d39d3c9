"""Panels of leaves as content for the templates: curves, bars, a box, or text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bristlecone._data.texts import number
from bristlecone._leaves.shown import Bars, Box, Curve, Incidences
from bristlecone._types import Floats
from bristlecone._view.palette import label_colour
from bristlecone._view.ruler import Ruler
from bristlecone._view.view import View, bar_rows
from bristlecone.curves import StepFunction
from bristlecone.report._charts import TEXT, Area

Panel = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """Size of a panel.

    Parameters
    ----------
    width, height : float
        Of the whole panel.
    left, bottom : float
        Room for the labels of the axes; none of an axis without room.
    bars, bar : int
        How many bars there are at most, and the height of one.
    counts : bool
        Whether the numbers at risk are shown.
    """

    width: float
    height: float
    left: float = 0.0
    bottom: float = 0.0
    bars: int = 3
    bar: int = 13
    counts: bool = False

    def area(self, x: tuple[float, float]) -> Area:
        """The space for the chart."""
        right = 20.0 if self.counts else 8.0 if self.left else 1.0
        top = 7.0 if self.left else 2.0
        width = self.width - self.left - right
        return Area(self.left, top, width, self.height - self.bottom - top, x)


BAR = 18
SMALL = Size(144, 98, left=30, bottom=16, bars=5, bar=BAR)
ROW = Size(132, 40)
LARGE = Size(380, 236, left=46, bottom=66, bars=12, bar=BAR, counts=True)
# Ticks of survival and incidences.
_HEIGHTS = [0.0, 0.25, 0.5, 0.75, 1.0]
# Area of the chart of all leaves, and the most leaves with numbers at risk below it.
_OVERVIEW, _MOST_ROWS, _ROW = (70.0, 17.0, 640.0, 300.0), 12, 17.0
# Font size of its numbers; narrow screens show every second one at less than twice the size.
_WIDE_TEXT = 12.0


def height_of(view: View) -> float:
    """Height of a panel in the diagram from top to bottom."""
    panel = view.leaves[0].panel
    if isinstance(panel, Bars):
        return BAR * min(SMALL.bars, len(panel)) + 6.0
    return SMALL.height if panel is not None else 0.0


def panel_of(view: View, k: int, size: Size) -> Panel:
    """Panel of a leaf."""
    panel = view.leaves[k].panel
    kind = _KINDS.get(type(panel), _text)
    return {"size": size, "colour": view.colours[k], **kind(view, k, size)}


def _text(view: View, k: int, size: Size) -> Panel:
    facts = (fact.line for fact in view.leaves[k].facts)
    return {"kind": "text", "text": ", ".join(facts)}


def _curves(view: View, k: int, size: Size) -> Panel:
    area = size.area(view.shown.span)
    paths = _paths(view, k, area)
    return {
        "kind": "curves",
        **_axes(view, size, area),
        "counts": _counts(view, k, area, _ticks(view, size)) if size.counts else [],
        **(paths if size.left else paths | {"marks": ""}),
    }


def _incidences(view: View, k: int, size: Size) -> Panel:
    """Stacked incidences of the causes, with the number of each if there is room."""
    panel: Any = view.leaves[k].panel
    area = size.area(view.shown.span)
    layers = []
    for cause, edges in enumerate(panel.layers):
        low, high = (StepFunction(panel.times, edge, before=0.0) for edge in edges)
        last = [float(edge[-1]) for edge in edges]
        layers.append(
            {
                "path": area.between(low, high),
                "colour": label_colour(cause),
                "name": str(cause + 1) if area.height * (last[1] - last[0]) > TEXT else "",
                "middle": area.down(sum(last) / 2),
            }
        )
    return {"kind": "incidences", **_axes(view, size, area), "layers": layers}


def _axes(view: View, size: Size, area: Area) -> Panel:
    """Axes of a panel over time, whose values are between 0 and 1."""
    heights = _HEIGHTS if size.counts else [0.0, 1.0] * bool(size.left)
    return {
        "area": area,
        "ticks": _at(area.across, _ticks(view, size)),
        "heights": _at(area.down, heights),
        "label": view.time_label if size.counts else "",
    }


def _ticks(view: View, size: Size) -> list[float]:
    if not size.bottom:
        return []
    return Ruler().ticks(*view.shown.span, size.width, TEXT, 6 if size.counts else 3)


def _at(place: Callable[[float], float], values: list[float]) -> list[tuple[float, str]]:
    return [(place(value), number(value)) for value in values]


def _counts(view: View, k: int, area: Area, times: list[float]) -> list[tuple[float, str]]:
    at_risk = view.at_risk(times)[k]
    return [(area.across(t), f"{n:,}") for t, n in zip(times, at_risk, strict=True)]


def _paths(view: View, k: int, area: Area) -> dict[str, str]:
    """Paths of a leaf: model, estimate, band, marks; empty if there is nothing to draw."""
    curve: Any = view.leaves[k].panel
    if curve.estimate is None:
        return {"model": area.steps(_model(curve)), "estimate": "", "band": "", "marks": ""}
    x, end = curve.estimate.x, curve.end
    lower, upper = (StepFunction(x, y, before=1.0) for y in (curve.lower, curve.upper))
    return {
        "model": area.steps(_model(curve)) if view.shown.has_model else "",
        "estimate": area.steps(curve.estimate, end),
        "band": area.between(lower, upper, end),
        "marks": _marks(curve, area),
    }


def _model(curve: Curve) -> Callable[[Floats], Any]:
    if curve.is_step:
        return StepFunction(curve.times, curve.survival, before=1.0)
    return lambda times: np.interp(times, curve.times, curve.survival)


def _marks(curve: Any, area: Area) -> str:
    """Ticks on the estimate where rows were censored, at most one for every five pixels."""
    pixel = curve.censored * area.width / area.x[1]
    times = curve.censored[np.unique(np.floor(pixel / 5), return_index=True)[1]]
    heights = np.asarray(curve.estimate(times)).tolist()
    return "".join(
        f"M{area.across(time):g} {area.down(height) - 2.5:g}v5"
        for time, height in zip(times.tolist(), heights, strict=True)
    )


def _bars(view: View, k: int, size: Size) -> Panel:
    bars = view.bars(k, size.bars)
    rows, _ = bar_rows(bars, view.shown.span, size.width - 10, Ruler(), TEXT)
    height = {"height": size.bar * len(rows) + 6} if size.counts else {}
    return {"kind": "bars", "rows": rows, "width": size.width - 10, **height}


def _box(view: View, k: int, size: Size) -> Panel:
    """Box of the training values, as in ``plot_tree``."""
    size = replace(size, left=12, height=150) if size.counts else size
    box: Any = view.leaves[k].panel
    area = size.area(view.shown.span)
    ticks = Ruler().ticks(*area.x, area.width, TEXT, 5 if size.counts else 3)
    names = ("least", "low", "first", "median", "third", "high", "most")
    return {
        "kind": "box",
        "size": size,
        "area": area,
        "predicted": area.across(box.predicted),
        "ticks": _at(area.across, ticks) if size.bottom else [],
        **{name: area.across(at) for name, at in zip(names, box.levels, strict=True)},
    }


_KINDS: dict[type, Callable[[View, int, Size], Panel]] = {
    Curve: _curves,
    Incidences: _incidences,
    Bars: _bars,
    Box: _box,
}


def overview(view: View) -> dict[str, Any]:
    """Curves of all leaves in one chart, with the numbers at risk below."""
    area = Area(*_OVERVIEW, view.shown.span)
    times = Ruler().ticks(*view.shown.span, area.width, _WIDE_TEXT, 7)
    leaves = []
    for k, (node, colour) in enumerate(zip(view.nodes, view.colours, strict=True)):
        paths = _paths(view, k, area)
        line = paths["model"] or paths["estimate"]
        leaves.append({"node": node, "colour": colour, "line": line, **paths})
    n_leaves = len(leaves)
    counts = [_counts(view, k, area, times) for k in range(n_leaves * (n_leaves <= _MOST_ROWS))]
    return {
        "area": area,
        "width": area.right + 22,
        "height": area.bottom + 56,
        "counts_height": _ROW * (len(counts) + 1) + 4,
        "ticks": _at(area.across, times),
        "heights": _at(area.down, _HEIGHTS),
        "label": view.time_label,
        "leaves": leaves,
        "counts": counts,
        "note": "Survival that the tree predicts in every leaf."
        if view.shown.has_model
        else "Kaplan–Meier estimates of the leaves, which are what the tree predicts; ticks mark "
        "censored rows.",
    }
