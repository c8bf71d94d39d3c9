"""Sections that are made where more is given: the size path, and rows held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.outcomes import as_structured, check_survival
from bristlecone._leaves.base import SurvivalLeaves
from bristlecone._leaves.labels import ClassLeaves
from bristlecone._leaves.means import MeanLeaves
from bristlecone._view.fitted import FittedTree, check_tree
from bristlecone._view.palette import leaf_colours
from bristlecone.curves import kaplan_meier
from bristlecone.exceptions import InvalidParameterError
from bristlecone.report._charts import Area, number, round_numbers

__all__ = ["Extra", "held_out", "size_path"]

Floats = NDArray[np.float64]

_SHORT = {
    "optimal": "optimal",
    "reference_optimal": "best with respect to the reference model",
    "time_limit": "stopped at the time limit",
    "memory_limit": "stopped at the memory limit",
    "interrupted": "interrupted",
}


@dataclass(frozen=True)
class Point:
    """A point of a chart, with the limits of its height where they are known."""

    x: float
    y: float
    low: float | None
    high: float | None
    colour: str
    label: str
    is_marked: bool = False


@dataclass(frozen=True)
class Chart:
    """Points over two axes, and a line: through them, or where both numbers are equal."""

    area: Area
    ticks: list[tuple[float, str]]
    heights: list[tuple[float, str]]
    x_label: str
    y_label: str
    points: list[Point]
    line: str

    @property
    def width(self) -> float:
        """Of the whole picture."""
        return self.area.right + 12

    @property
    def height(self) -> float:
        """Of the whole picture."""
        return self.area.bottom + 42


@dataclass(frozen=True)
class Extra:
    """A section: text, chart and table."""

    title: str
    text: str
    chart: Chart
    heads: list[str]
    rows: list[list[str]] = field(default_factory=list)


def _chart(
    x: tuple[float, float], y: tuple[float, float], labels: tuple[str, str], square: bool
) -> Chart:
    area = Area(62.0, 10.0, 300.0 if square else 380.0, 300.0 if square else 230.0, x, y)
    return Chart(
        area=area,
        ticks=[(area.across(value), number(value)) for value in round_numbers(*x, 6)],
        heights=[(area.down(value), number(value)) for value in round_numbers(*y, 6)],
        x_label=labels[0],
        y_label=labels[1],
        points=[],
        line="",
    )


def size_path(trees: Any, shown: FittedTree) -> Extra:
    """Objective by number of leaves, of trees from ``size_path`` or of a fitted TreeSizeCV."""
    trees = getattr(trees, "size_path_", trees)
    if not isinstance(trees, Sequence):
        raise InvalidParameterError(
            "size_path must be the list that size_path returns, or a fitted TreeSizeCV; got a "
            f"{type(trees).__name__}"
        )
    if not trees:
        raise InvalidParameterError("size_path holds no tree")
    paths = [check_tree(tree, "size_path") for tree in trees]
    leaves = [int(tree.tree_.n_leaves) for tree in paths]
    values = [tree.certificate_.objective_value for tree in paths]
    statuses = [tree.certificate_.status for tree in paths]
    low, high = min(values), max(values)
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    limits = float(min(leaves)), float(max(leaves))
    if limits[0] == limits[1]:
        limits = limits[0] - 1, limits[1] + 1
    chart = _chart(limits, (low - room, high + room), ("leaves", "objective"), square=False)
    own = int(shown.tree_.n_leaves)
    points = [
        Point(
            x=chart.area.across(n),
            y=chart.area.down(value),
            low=None,
            high=None,
            colour="#0b5cad" if n == own else "#55636f",
            label=f"{n} leaves: {number(value, 6)}",
            is_marked=n == own,
        )
        for n, value in zip(leaves, values, strict=True)
    ]
    chart.points.extend(points)
    line = "M" + "L".join(f"{point.x:g} {point.y:g}" for point in points)
    return Extra(
        "Size path",
        "The best tree found of every number of leaves. More leaves never have a greater objective "
        "on the training rows; whether they are worth it, rows that were held out tell.",
        Chart(**{**chart.__dict__, "line": line}),
        ["leaves", "depth", "objective", "status"],
        [
            [str(n), str(tree.tree_.max_depth), number(value, 6), _SHORT.get(status, status)]
            for n, tree, value, status in zip(leaves, paths, values, statuses, strict=True)
        ],
    )


def held_out(tree: Any, X: Any, y: Any, times: Sequence[float], confidence: float) -> Extra:
    """Predicted against observed in every leaf, on rows that the fit has not seen."""
    if X is None or y is None:
        raise InvalidParameterError("X and y of held-out rows go together")
    leaves = tree.leaves_
    if isinstance(leaves, SurvivalLeaves):
        return _survival(tree, X, y, times, confidence)
    if isinstance(leaves, ClassLeaves):
        return _classes(tree, X, np.asarray(y))
    if isinstance(leaves, MeanLeaves):
        return _means(tree, X, np.asarray(y, dtype=np.float64))
    raise TypeError(
        "held-out rows X and y are compared with trees for survival, classes and numbers; got a "
        f"{type(tree).__name__}"
    )


_TEXT = (
    "Rows that were held out, by the leaf they fall into: what the tree predicts, and what was "
    "observed. On the line both are equal. {}"
)


def _survival(tree: Any, X: Any, y: Any, times: Sequence[float], confidence: float) -> Extra:
    outcome = as_structured(check_survival(y))
    leaf = tree.apply(X)
    _check_length(len(leaf), len(outcome))
    predicted = tree.predict_survival_function(X, times=list(times))
    first = f"{number(times[0])}"
    chart = _chart(
        (0.0, 1.0),
        (0.0, 1.0),
        (f"predicted survival at {first}", f"observed survival at {first}"),
        square=True,
    )
    heads = ["leaf", "rows", "events"]
    for time in times:
        heads += [f"predicted at {number(time)}", f"observed at {number(time)}"]
    rows = []
    for node, colour in leaf_colours(tree).items():
        own = leaf == node
        cells = [str(node), str(int(own.sum())), str(int(outcome["event"][own].sum()))]
        curve = kaplan_meier(outcome[own]) if own.any() else None
        for k, time in enumerate(times):
            if curve is None or (time > curve.x[-1] and curve.y[-1] > 0):
                cells += ["-", "-"]
                continue
            mean, observed = float(predicted[own, k].mean()), float(curve(time))
            at = int(np.searchsorted(curve.x, time, side="right")) - 1
            limits = curve.confidence_interval(confidence)
            low, high = (float(limit[at]) if at >= 0 else 1.0 for limit in limits)
            cells += [number(mean, 3), f"{number(observed, 3)} ({low:.3g} to {high:.3g})"]
            if k == 0:
                chart.points.append(_compared(chart, mean, observed, low, high, colour, node))
        rows.append(cells)
    text = _TEXT.format(
        f"Brackets and bars: {100 * confidence:g} % confidence limits. Harrell's concordance index "
        f"of these {len(outcome)} rows: {tree.score(X, outcome):.3f}."
    )
    return Extra("Calibration on held-out rows", text, _with_diagonal(chart), heads, rows)


def _classes(tree: Any, X: Any, y: NDArray[Any]) -> Extra:
    leaf = tree.apply(X)
    _check_length(len(leaf), len(y))
    shares, leaves = tree.predict_proba(X), tree.leaves_
    chart = _chart((0.0, 1.0), (0.0, 1.0), ("predicted share", "observed share"), square=True)
    rows = []
    for k, (node, colour) in enumerate(leaf_colours(tree).items()):
        own, label = leaf == node, leaves.labels[leaves.label[k]]
        cells = [str(node), str(label), str(int(own.sum()))]
        if own.any():
            predicted = float(shares[own, leaves.label[k]].mean())
            observed = float((y[own] == label).mean())
            low, high = _wilson(observed, int(own.sum()))
            cells += [number(predicted, 3), f"{number(observed, 3)} ({low:.3g} to {high:.3g})"]
            chart.points.append(_compared(chart, predicted, observed, low, high, colour, node))
        else:
            cells += ["-", "-"]
        rows.append(cells)
    text = _TEXT.format(
        "Shares are those of the leaf's own class, with 95 % limits of Wilson (1927). Mean "
        f"accuracy of these {len(y)} rows: {tree.score(X, y):.3f}."
    )
    heads = ["leaf", "class", "rows", "predicted share", "observed share"]
    return Extra("Calibration on held-out rows", text, _with_diagonal(chart), heads, rows)


def _wilson(share: float, n: int, z: float = 1.959964) -> tuple[float, float]:
    """Limits of a share; Wilson, Journal of the American Statistical Association 22 (1927)."""
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return max(0.0, float(middle - half)), min(1.0, float(middle + half))


def _means(tree: Any, X: Any, y: Floats) -> Extra:
    leaf = tree.apply(X)
    _check_length(len(leaf), len(y))
    predicted, found = tree.leaves_.predicted, []
    for node, mean in zip(tree.tree_.leaves.tolist(), predicted.tolist(), strict=True):
        own = y[leaf == node]
        if own.size:
            error = float(own.std(ddof=1) / np.sqrt(own.size)) if own.size > 1 else np.nan
            found.append((node, mean, float(own.mean()), error, own.size))
    observed = [value for _, _, value, *_ in found]
    values = [*predicted.tolist(), *observed]
    room = 0.05 * (max(values) - min(values)) or 1.0
    limits = min(values) - room, max(values) + room
    chart = _chart(limits, limits, ("predicted mean", "observed mean"), square=True)
    colours = leaf_colours(tree)
    rows = []
    for node, mean, value, error, n in found:
        low, high = (value - 1.96 * error, value + 1.96 * error) if error == error else (None, None)
        chart.points.append(_compared(chart, mean, value, low, high, colours[node], node))
        told = f"{number(value)} ± {number(error, 3)}"
        rows.append([str(node), str(n), number(mean), told])
    text = _TEXT.format(
        "± is the standard error, bars are 1.96 of it. R² of these "
        f"{len(y)} rows: {tree.score(X, y):.3f}."
    )
    heads = ["leaf", "rows", "predicted mean", "observed mean"]
    return Extra("Calibration on held-out rows", text, _with_diagonal(chart), heads, rows)


def _compared(
    chart: Chart,
    predicted: float,
    observed: float,
    low: float | None,
    high: float | None,
    colour: str,
    node: int,
) -> Point:
    least, most = chart.area.y
    ends = [
        None if end is None else chart.area.down(min(max(end, least), most)) for end in (low, high)
    ]
    label = f"leaf {node}: predicted {number(predicted)}, observed {number(observed)}"
    x, y = chart.area.across(predicted), chart.area.down(observed)
    return Point(x, y, ends[0], ends[1], colour, label)


def _with_diagonal(chart: Chart) -> Chart:
    area = chart.area
    line = f"M{area.left:g} {area.bottom:g}L{area.right:g} {area.top:g}"
    return Chart(**{**chart.__dict__, "line": line})


def _check_length(rows: int, outcomes: int) -> None:
    if rows != outcomes:
        raise InvalidParameterError(f"X has {rows} held-out rows, but y has {outcomes} outcomes")
