"""What a leaf shows: survival curves, bars of labels, the spread of numbers, or text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._leaves.base import SurvivalLeaves
from bristlecone._leaves.labels import ClassLeaves, LabelLeaves, plain_labels
from bristlecone._leaves.means import LEVELS, MeanLeaves
from bristlecone._leaves.survival import StepLeaves
from bristlecone._view.fitted import FittedTree
from bristlecone._view.palette import label_colour, leaf_colours
from bristlecone.curves import StepFunction
from bristlecone.report._charts import Area, number, round_numbers

__all__ = [
    "LARGE",
    "ROW",
    "SMALL",
    "Bar",
    "Curves",
    "Panel",
    "Panels",
    "Size",
    "SurvivalCurves",
    "panels",
]

Floats = NDArray[np.float64]
Panel = dict[str, Any]


@dataclass(frozen=True)
class Size:
    """Of a panel.

    Parameters
    ----------
    width, height : float
        Of the whole panel.
    left, bottom : float
        Room for the labels of the axes; none of an axis without room.
    counts : bool
        Whether the numbers at risk are shown.
    """

    width: float
    height: float
    left: float = 0.0
    bottom: float = 0.0
    counts: bool = False

    def area(self, x: tuple[float, float], y: tuple[float, float] = (0.0, 1.0)) -> Area:
        """What is left for the chart."""
        right = 16.0 if self.counts else 8.0 if self.left else 1.0
        top = 7.0 if self.left else 2.0
        width = self.width - self.left - right
        return Area(self.left, top, width, self.height - self.bottom - top, x, y)


SMALL = Size(144, 98, left=30, bottom=16)
ROW = Size(132, 40)
LARGE = Size(380, 236, left=46, bottom=66, counts=True)
# Height of a bar, and how many there are at most; what the leaf gives is always among them.
_BAR = 18
_MOST_LARGE, _MOST_SMALL, _MOST_ROW = 12, 5, 3


@dataclass(frozen=True)
class Bar:
    """A bar with its name and number; ``start`` and ``width`` are shares of the room for bars."""

    name: str
    value: str
    start: float
    width: float
    colour: str
    is_chosen: bool = False


@dataclass(frozen=True)
class Curves:
    """Curves of one leaf as functions of time.

    Parameters
    ----------
    model : callable
        What the tree predicts; of leaves with a curve for every row, that of a typical one.
    estimate, lower, upper : callable or None
        Kaplan–Meier estimate of the leaf's own rows with its limits; None without rows.
    end : float
        Last time of these rows.
    censored : array of float
        Times at which rows left without an event.
    at_risk : callable
        Rows at risk at times.
    """

    model: Callable[[Floats], Floats]
    estimate: Callable[[Floats], Any] | None
    lower: Callable[[Floats], Any] | None
    upper: Callable[[Floats], Any] | None
    end: float
    censored: Floats
    at_risk: Callable[[Floats], Any]


@dataclass(frozen=True)
class SurvivalCurves:
    """Curves of all leaves and the axes they share.

    Parameters
    ----------
    leaves : tuple of Curves
    last : float
        Last training time.
    time_label : str
    has_both : bool
        Whether the model's curves differ from the Kaplan–Meier estimates, so that both are drawn.
    confidence : float
        Of the bands.
    """

    leaves: tuple[Curves, ...]
    last: float
    time_label: str
    has_both: bool
    confidence: float

    @classmethod
    def of(cls, leaves: SurvivalLeaves, time_label: str, confidence: float) -> SurvivalCurves:
        """Curves of the leaves of a survival tree."""
        last = float(leaves.unique_times[-1])
        found = []
        for place, (estimate, follow_up) in enumerate(
            zip(leaves.kaplan_meier, leaves.follow_up, strict=True)
        ):
            lower, upper = estimate.confidence_interval(confidence)
            left = follow_up.times.size > 0
            found.append(
                Curves(
                    model=_model(leaves, place),
                    estimate=estimate if left else None,
                    lower=StepFunction(estimate.x, lower, before=1.0) if left else None,
                    upper=StepFunction(estimate.x, upper, before=1.0) if left else None,
                    end=float(follow_up.times[-1]) if left else 0.0,
                    censored=follow_up.times[follow_up.censored > 0],
                    at_risk=follow_up.at_risk,
                )
            )
        times = np.linspace(0.0, last, 512)
        differs = (
            one.estimate is not None
            and np.abs(one.estimate(times) - one.model(times))[times <= one.end].max() > 1e-6
            for one in found
        )
        return cls(tuple(found), last, time_label, any(differs), confidence)

    @property
    def times(self) -> list[float]:
        """Two round times at which tables tell the survival, where there are as many."""
        ticks = [time for time in round_numbers(0.0, self.last, 6) if time > 0]
        return [ticks[len(ticks) // 3], ticks[2 * len(ticks) // 3]] if len(ticks) > 2 else ticks

    def paths(self, place: int, area: Area) -> dict[str, str]:
        """Paths of a leaf: model, estimate, band, marks; empty where there is nothing to draw."""
        one = self.leaves[place]
        paths = {"model": area.steps(one.model), "estimate": "", "band": "", "marks": ""}
        if one.estimate is None:
            return paths
        assert one.lower is not None and one.upper is not None
        paths["band"] = area.between(one.lower, one.upper, one.end)
        paths["estimate"] = area.steps(one.estimate, one.end)
        if not self.has_both:
            paths["model"] = ""
        paths["marks"] = _marks(one, area)
        return paths

    def panel(self, place: int, size: Size, colour: str) -> Panel:
        """Chart of one leaf."""
        area = size.area((0.0, self.last))
        one = self.leaves[place]
        ticks = round_numbers(0.0, self.last, 6 if size.counts else 3) if size.bottom else []
        heights = [0.0, 0.25, 0.5, 0.75, 1.0] if size.counts else [0.0, 1.0] * bool(size.left)
        counts = one.at_risk(np.array(ticks)) if size.counts else []
        return {
            "kind": "curves",
            "size": size,
            "area": area,
            "colour": colour,
            "ticks": [(area.across(time), number(time)) for time in ticks],
            "heights": [(area.down(height), number(height)) for height in heights],
            "counts": [(area.across(t), int(n)) for t, n in zip(ticks, counts, strict=False)],
            "label": self.time_label,
            **self.paths(place, area),
            **({} if size.left else {"marks": ""}),
        }


def _model(leaves: SurvivalLeaves, place: int) -> Callable[[Floats], Floats]:
    def curve(times: Floats) -> Floats:
        return np.asarray(leaves.typical_survival(times))[place]

    return curve


def _marks(one: Curves, area: Area) -> str:
    """Ticks on the estimate where rows were censored, one for every five pixels at most."""
    assert one.estimate is not None
    low, high = area.x
    pixel = (one.censored - low) * area.width / (high - low or 1.0)
    first = np.unique(np.floor(pixel / 5), return_index=True)[1]
    times = one.censored[first]
    heights = np.asarray(one.estimate(times)).tolist()
    return "".join(
        f"M{area.across(time):g} {area.down(height) - 2.5:g}v5"
        for time, height in zip(times.tolist(), heights, strict=True)
    )


@dataclass(frozen=True)
class Panels:
    """Panels of the leaves by their place.

    Parameters
    ----------
    make : callable
        Panel of a leaf in a size.
    height : float
        Of the small ones.
    survival : SurvivalCurves or None
        The curves, where there are any.
    legend : str
        What they show.
    """

    make: Callable[[int, Size], Panel]
    height: float = SMALL.height
    survival: SurvivalCurves | None = None
    legend: str = ""


def panels(tree: FittedTree, time_label: str, confidence: float = 0.95) -> Panels:
    """What the leaves of a tree show, whatever they predict."""
    leaves = tree.leaves_
    colours = list(leaf_colours(tree).values())
    if isinstance(leaves, SurvivalLeaves):
        curves = SurvivalCurves.of(leaves, time_label, confidence)
        return Panels(
            lambda k, size: curves.panel(k, size, colours[k]),
            survival=curves,
            legend=_legend(curves, isinstance(leaves, StepLeaves)),
        )
    if isinstance(leaves, LabelLeaves):
        is_class = isinstance(leaves, ClassLeaves)
        return Panels(
            lambda k, size: _bars(_label_bars(leaves, k), size),
            _BAR * min(_MOST_SMALL, len(leaves.labels)) + 6.0,
            legend="Shares of the classes, as they are predicted."
            if is_class
            else "Estimated mean outcome of every treatment.",
        )
    if isinstance(leaves, MeanLeaves):
        values = float(leaves.quantiles.min()), float(leaves.quantiles.max())
        flat = {LARGE: replace(LARGE, left=12, height=150)}
        return Panels(
            lambda k, size: _box(leaves, k, values, flat.get(size, size), colours[k]),
            legend="Training values: quartiles and median (box), 5 and 95 % (whiskers), all (thin "
            "line). Dot: what is predicted.",
        )
    facts = leaves.facts()
    return Panels(
        lambda k, size: {"kind": "text", "size": size, "text": leaves.text(facts[k])}, 0.0
    )


def _legend(curves: SurvivalCurves, is_step: bool) -> str:
    band = f"{100 * curves.confidence:g} % confidence band; ticks: censored rows."
    if not curves.has_both:
        return f"Kaplan–Meier estimate of the leaf's rows with its {band}"
    typical = "" if is_step else ", for a typical row"
    return (
        f"Solid: Kaplan–Meier estimate of the leaf's own rows with its {band} Dashed: survival "
        f"that the tree predicts{typical}."
    )


def _bars(bars: Sequence[Bar], size: Size) -> Panel:
    most = _MOST_LARGE if size.counts else _MOST_SMALL if size.left else _MOST_ROW
    shown = sorted(bars, key=lambda bar: not bar.is_chosen)[:most]
    shown = [bar for bar in bars if bar in shown]
    hidden = len(bars) - len(shown)
    panel = {"kind": "bars", "size": size, "bars": shown, "hidden": hidden}
    return panel | ({"height": _BAR * (len(shown) + bool(hidden)) + 6} if size.counts else {})


def _label_bars(leaves: LabelLeaves, place: int) -> list[Bar]:
    """Shares of classes, or values of treatments on a scale that all leaves share."""
    is_class = isinstance(leaves, ClassLeaves)
    table = leaves.shares if isinstance(leaves, ClassLeaves) else leaves.values
    known = table[np.isfinite(table)]
    low = 0.0 if is_class else min(0.0, float(known.min(initial=0.0)))
    high = 1.0 if is_class else max(0.0, float(known.max(initial=0.0)))
    span = high - low or 1.0
    bars = []
    for label, (name, value) in enumerate(
        zip(plain_labels(leaves.labels), table[place].tolist(), strict=True)
    ):
        first, last = sorted((0.0, value if np.isfinite(value) else 0.0))
        bars.append(
            Bar(
                name=str(name),
                value=f"{100 * value:.3g} %" if is_class else number(value, 3),
                start=round((first - low) / span, 4),
                width=round((last - first) / span, 4),
                colour=label_colour(label),
                is_chosen=label == int(leaves.label[place]),
            )
        )
    return bars


def _box(
    leaves: MeanLeaves, place: int, values: tuple[float, float], size: Size, colour: str
) -> Panel:
    """Box of the training values: quartiles, whiskers of 5 and 95 %, the mean that is predicted."""
    area = size.area(values)
    at = dict(zip(LEVELS, leaves.quantiles[place].tolist(), strict=True))
    ticks = round_numbers(*area.x, 5 if size.counts else 3) if size.bottom else []
    return {
        "kind": "box",
        "size": size,
        "area": area,
        "colour": colour,
        "ends": [area.across(at[0]), area.across(at[1])],
        "whiskers": [area.across(at[0.05]), area.across(at[0.95])],
        "box": [area.across(at[0.25]), area.across(at[0.75])],
        "median": area.across(at[0.5]),
        "mean": area.across(float(leaves.predicted[place])),
        "ticks": [(area.across(value), number(value)) for value in ticks],
    }
