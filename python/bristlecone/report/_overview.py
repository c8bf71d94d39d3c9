"""Curves of all leaves in one chart, with the numbers at risk below."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bristlecone.report._charts import Area, number, round_numbers
from bristlecone.report._drawing import Drawing
from bristlecone.report._panels import SurvivalCurves

__all__ = ["Overview", "overview"]

_AREA = (56.0, 10.0, 650.0, 300.0)
# Leaves with numbers at risk below the chart.
_MOST_ROWS = 12
_ROW = 17.0


@dataclass(frozen=True)
class Overview:
    """One chart.

    Parameters
    ----------
    area : Area
    height, counts_height : float
        Of the chart, and of the numbers below it.
    ticks, heights : list of (float, str)
        Labels of the axes and their places.
    label : str
        Of the time axis.
    leaves : list of dict
        Paths of every leaf, left to right.
    counts : list of list of (float, int)
        Numbers at risk of every leaf; empty where there are too many.
    note : str
        What is drawn.
    """

    area: Area
    height: float
    counts_height: float
    ticks: list[tuple[float, str]]
    heights: list[tuple[float, str]]
    label: str
    leaves: list[dict[str, Any]]
    counts: list[list[tuple[float, int]]]
    note: str

    @property
    def width(self) -> float:
        """Of the whole picture."""
        return self.area.right + 14


def overview(curves: SurvivalCurves, drawing: Drawing) -> Overview:
    """Chart of all leaves."""
    area = Area(*_AREA, (0.0, curves.last))
    times = round_numbers(0.0, curves.last, 9)
    leaves = [
        {
            "node": node.node,
            "colour": node.colour,
            "line": area.steps(_line(curves, k), _end(curves, k)),
            **curves.paths(k, area),
        }
        for k, node in enumerate(drawing.leaves)
    ]
    counts = []
    if len(leaves) <= _MOST_ROWS:
        for one in curves.leaves:
            at_risk = one.at_risk(np.array(times)).tolist()
            places = (area.across(time) for time in times)
            counts.append([(place, int(n)) for place, n in zip(places, at_risk, strict=True)])
    return Overview(
        area=area,
        height=area.bottom + 42,
        counts_height=_ROW * (len(counts) + 1) + 4,
        ticks=[(area.across(time), number(time)) for time in times],
        heights=[(area.down(s), number(s)) for s in (0.0, 0.25, 0.5, 0.75, 1.0)],
        label=curves.time_label,
        leaves=leaves,
        counts=counts,
        note="Survival that the tree predicts in every leaf."
        if curves.has_both
        else "Kaplan–Meier estimates of the leaves, which are what the tree predicts; ticks mark "
        "censored rows.",
    )


def _line(curves: SurvivalCurves, place: int) -> Any:
    """What stands for the leaf: the model's curve where it differs from the estimate."""
    one = curves.leaves[place]
    return one.model if curves.has_both or one.estimate is None else one.estimate


def _end(curves: SurvivalCurves, place: int) -> float | None:
    one = curves.leaves[place]
    return None if curves.has_both or one.estimate is None else one.end
