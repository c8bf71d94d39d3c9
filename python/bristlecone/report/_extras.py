"""Optional sections: the size path, and held-out rows."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import UndefinedMetricWarning

from bristlecone._data.arrays import type_name
from bristlecone._data.outcomes import read_causes
from bristlecone._data.texts import number, percent, round_numbers
from bristlecone._leaves.shown import interval
from bristlecone._search.certificate import STATUSES
from bristlecone._view.calibration import calibrations
from bristlecone._view.fitted import FittedTree
from bristlecone._view.ruler import Ruler
from bristlecone._view.sizes import Scores, scores_of, trees_of
from bristlecone.exceptions import InvalidParameterError
from bristlecone.report._charts import TEXT, Area

_CHOSEN, _OTHER = "#0b5cad", "#55636f"


class Point(NamedTuple):
    """A point of a chart, with the limits of its height if they are known."""

    x: float
    y: float
    low: float | None
    high: float | None
    colour: str
    label: str
    is_marked: bool = False


class Extra(NamedTuple):
    """A section: text, charts and table."""

    title: str
    text: str
    charts: list[dict[str, Any]]
    heads: list[str]
    rows: list[list[str]]


def _chart(
    labels: tuple[str, str],
    points: list[tuple[Any, ...]],
    x: tuple[float, float],
    y: tuple[float, float],
    *,
    diagonal: bool,
) -> dict[str, Any]:
    """Chart of points (x, y, low, high, colour, label, is marked), for the template.

    Its line connects them, or shows where both numbers are equal.
    """
    area = Area(66.0, 10.0, 300.0 if diagonal else 380.0, 300.0 if diagonal else 230.0, x, y)
    placed = []
    for at, height, low, high, *rest in points:
        ends = [area.down(float(np.clip(limit, *y))) for limit in (low, high)]
        known = ends if np.isfinite(low) else [None, None]
        placed.append(Point(area.across(at), area.down(height), *known, *rest))
    line = "M" + "L".join(f"{point.x:g} {point.y:g}" for point in placed)
    if diagonal:
        line = f"M{area.left:g} {area.bottom:g}L{area.right:g} {area.top:g}"
    return {
        "area": area,
        "width": area.right + 16,
        "height": area.bottom + 42,
        "ticks": [
            (area.across(value), number(value)) for value in Ruler().ticks(*x, area.width, TEXT)
        ],
        "heights": [(area.down(value), number(value)) for value in round_numbers(*y, 6)],
        "labels": labels,
        "points": placed,
        "line": line,
    }


def _padded(values: Any) -> tuple[float, float]:
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    room = 0.05 * (high - low) or 0.05 * abs(high) or 1.0
    return low - room, high + room


def size_path(path: Any, shown: FittedTree) -> Extra:
    """Objective by number of leaves of a size path, or the scores that chose the size."""
    scores = scores_of(path)
    if scores is not None:
        return _scores(scores)
    trees = trees_of(path, "size_path")
    values = [tree.certificate_.objective_value for _, tree in trees]
    own = int(shown.tree_.n_leaves)
    points, rows = [], []
    for (size, tree), value in zip(trees, values, strict=True):
        leaves, status = int(tree.tree_.n_leaves), tree.certificate_.status
        colour = _CHOSEN if leaves == own else _OTHER
        label = f"{leaves} leaves: {number(value, 6)}"
        points.append((size, value, np.nan, np.nan, colour, label, leaves == own))
        depth = str(tree.tree_.max_depth)
        rows.append([str(leaves), depth, number(value, 6), STATUSES.get(status, status)])
    labels = "maximum number of leaves", "objective"
    ends = _sizes([size for size, _ in trees])
    return Extra(
        "Size path",
        "The best tree found for each number of leaves. More leaves never increase the objective "
        "on the training rows; held-out rows show whether they improve predictions.",
        [_chart(labels, points, ends, _padded(values), diagonal=False)],
        ["leaves", "depth", "objective", "status"],
        rows,
    )


def _sizes(sizes: list[int]) -> tuple[float, float]:
    return (sizes[0] - 1.0, sizes[0] + 1.0) if len(sizes) == 1 else (sizes[0], sizes[-1])


def _scores(scores: Scores) -> Extra:
    known = [k for k, mean in enumerate(scores.mean) if np.isfinite(mean)]
    points, rows, ends = [], [], []
    for k in known:
        size, mean, error = scores.sizes[k], float(scores.mean[k]), float(scores.error[k])
        is_chosen = size == scores.chosen
        colour, label = _CHOSEN if is_chosen else _OTHER, f"{size} leaves: {number(mean)}"
        points.append((size, mean, mean - error, mean + error, colour, label, is_chosen))
        ends += [mean, mean - error, mean + error]
        rows.append([str(size), number(mean), number(error, 2), "chosen" if is_chosen else ""])
    return Extra(
        "Choice of the size",
        f"Mean {scores.name} over the folds of a cross-validation, by the maximum number of "
        "leaves; bars show the standard error.",
        [
            _chart(
                ("maximum number of leaves", scores.name),
                points,
                _sizes([scores.sizes[k] for k in known]),
                _padded(ends),
                diagonal=False,
            )
        ],
        ["maximum number of leaves", "mean score", "standard error", ""],
        rows,
    )


def held_out(tree: Any, X: Any, y: Any, times: Sequence[float], confidence: float) -> Extra:
    """Predicted against observed values in every leaf, on rows that were not part of the fit."""
    if X is None or y is None:
        raise InvalidParameterError("pass both X and y of the held-out rows, or neither")
    tree = getattr(tree, "best_estimator_", tree)
    kind = tree.leaves_.compared
    if not kind:
        raise TypeError(
            "held-out rows X and y are compared with trees for survival, competing risks, classes "
            f"and numbers; got {type_name(tree)}"
        )
    found = calibrations(tree, X, y, times=times, confidence=confidence, by_leaf=True)
    charts, heads = [], ["leaf", "rows"]
    rows = [[point.name.removeprefix("leaf "), f"{point.n:,}"] for point in found[0].points]
    for quantity, points, _ in found:
        drawn = []
        for row, point in zip(rows, points, strict=True):
            limits = interval(point.lower, point.upper, 3)
            shown = number(point.predicted, 3), number(point.observed, 3)
            row += [shown[0], f"{shown[1]} {limits}".strip()]
            if np.isfinite(point.observed):
                text = f"{point.name}: predicted {shown[0]}, observed {shown[1]}"
                drawn.append((*point[2:6], point.colour, text))
        ends = (0.0, 1.0)
        if kind == "means":
            ends = _padded([value for one in drawn for value in one[:4]])
        labels = f"predicted {quantity}", f"observed {quantity}"
        heads += labels
        charts.append(_chart(labels, drawn, ends, ends, diagonal=True))
    return Extra(
        "Calibration on held-out rows",
        "Held-out rows, grouped by leaf: the prediction of the tree, and what was observed. On the "
        f"line both are equal. Brackets and bars are {percent(confidence)} confidence limits. "
        f"Score of these {sum(p.n for p in found[0].points):,} rows, "
        f"{_score(tree, X, y)}.",
        charts,
        heads,
        rows,
    )


def _score(tree: Any, X: Any, y: Any) -> str:
    """Name and value of the score of rows, which may be too few for one."""
    if tree.leaves_.compared == "incidences" and read_causes(y).entry is not None:
        # With delayed entry, the concordance index of a cause is not defined.
        return f"mean log-likelihood: {tree.log_likelihood(X, y).mean():.3f}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UndefinedMetricWarning)
        try:
            value = tree.score(X, y)
        except ValueError:  # no two rows can be compared
            value = np.nan
    return f"{tree._score_name}: {'not defined' if np.isnan(value) else f'{value:.3f}'}"
