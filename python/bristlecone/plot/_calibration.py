"""Calibration: predictions compared with observations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bristlecone._data.arrays import type_name
from bristlecone._data.checks import check_integer, check_real
from bristlecone._data.texts import number, one_line
from bristlecone._view.calibration import Compared, calibrations
from bristlecone._view.fitted import check_tree
from bristlecone._view.palette import INK, RULE, label_colour, label_marker
from bristlecone.plot._axes import dressed, in_lines, legend, on_any_background, on_axes
from bristlecone.plot._sheet import InchRuler

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Inches for the names of classes.
_NAME = 1.3
# Places of a name beside its point, in points: right below, left above, and farther away.
_PLACES = [
    side * np.array(place)
    for place in ((5, -3), (5, 3), (5, -14), (5, 14), (18, -3), (18, 3), (18, -14), (18, 14))
    for side in (1, -1)
]


@on_any_background
def plot_calibration(
    tree: Any,
    X: Any,
    y: Any,
    *,
    time: float | None = None,
    n_groups: int | None = None,
    confidence: float = 0.95,
    ax: Axes | None = None,
) -> Axes:
    """Predictions against observations in groups of similar rows, with confidence intervals.

    For survival trees, predicted survival at a time is compared with the Kaplan–Meier estimate
    (log-log intervals), and with competing risks the incidence of every cause with the
    Aalen–Johansen estimate. For classifiers, the predicted share of every class (the second one of
    two) is compared with its frequency (Wilson's intervals). For regressors, the prediction is
    compared with the mean (Student's t). A group in which nothing varies has no interval.

    Parameters
    ----------
    tree : fitted survival tree, tree for competing risks, classifier or regressor
    X : DataFrame or array, shape (n, n_features_in_)
        Rows, preferably held out from training.
    y : structured array, DataFrame, or array of shape (n,)
        Their outcomes, labels or numbers.
    time : float, optional
        Time at which survival or incidences are compared; required for trees that predict them.
    n_groups : int, optional
        Group the rows by quantiles of their predictions, into at most this many groups. By default
        every leaf is a group; rows of a soft tree form ten groups.
    confidence : float, default=0.95
        Level of the intervals.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        Perfect predictions lie on the diagonal. Points of leaves have their node id.

    Raises
    ------
    TypeError
        If the tree predicts neither survival nor incidences nor shares nor means.
    ValueError
        If ``time`` is missing, or given to a tree that does not predict survival; when no row of
        a group is observed up to ``time``; and for outcomes that do not match the rows.
    NotFittedError, InfeasibleError
        If there is no tree.

    See Also
    --------
    bristlecone.metrics.one_time_calibration : The test at one time.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> from bristlecone.plot import plot_calibration
    >>> X, y = [[1.0], [2.0], [8.0], [9.0]], [1.0, 3.0, 11.0, 12.0]
    >>> tree = OptimalTreeRegressor(max_depth=1).fit(X, y)
    >>> ax = plot_calibration(tree, X, y)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('predicted mean', 'observed mean')
    """
    fitted = check_tree(tree, "plot_calibration")
    check_integer("n_groups", n_groups, 1, optional=True)
    kind = fitted.leaves_.compared
    if not kind:
        raise TypeError(
            "plot_calibration compares predicted survival, incidences, shares or means; "
            f"{type_name(tree)} predicts none"
        )
    if (time is not None) != (kind in ("survival", "incidences")):
        need = f"needs time=, at which to compare {kind}" if time is None else "takes no time"
        raise ValueError(f"plot_calibration of {type_name(tree)} {need}")
    check_real("time", time, 0.0, optional=True)
    times = [] if time is None else [float(time)]
    found = calibrations(tree, X, y, times=times, confidence=confidence, n_groups=n_groups)
    for point in found[0].points:
        if point.n and not np.isfinite(point.observed):
            raise ValueError(
                f"{point.name} has no row that is observed up to {time:g}: what happened by then "
                "is unknown"
            )
    ax = on_axes(ax, 4.6, 4.2)
    # Of classes, the shares of a leaf would have too many names.
    named = len(found) == 1 or kind == "incidences"
    shown = [(p, label_marker(max(one.label, 0))) for one in found for p in one.points if p.n]
    _draw(ax, shown, named=named, kind=kind)
    quantity, names = found[0].quantity, []
    if kind == "incidences":
        quantity = f"incidence by {number(times[0])}"
        names = [f"cause {one.label + 1}" for one in found]
    elif len(found) > 1:
        quantity = "share"
        names = [in_lines(str(label), _NAME) for label in tree.leaves_.labels]
    quantity = one_line(quantity)
    dressed(ax, f"predicted {quantity}", f"observed {quantity}")
    for one, name in zip(found, names, strict=False):
        marker, colour = label_marker(one.label), label_colour(one.label)
        ax.plot([], [], marker, color=colour, label=f" {name}")
    if names:
        legend(ax)
    return ax


def _draw(ax: Axes, shown: list[tuple[Compared, str]], *, named: bool, kind: str) -> None:
    points = [point for point, _ in shown]
    ends = np.array([point[2:6] for point in points])
    low, high = (np.nanmin(ends), np.nanmax(ends)) if kind == "means" else (0.0, 1.0)
    pad = 0.04 * ((high - low) or 1.0) if kind == "means" else 0.02
    ax.plot([low, high], [low, high], color=RULE, linewidth=1.2, zorder=1)
    named = named and all(point.name.startswith("leaf") for point in points)
    side = 72 * min(ax.bbox.size) / ax.figure.dpi / (high - low + 2 * pad)
    places = _places(points, side) if named else _PLACES[:1] * len(points)
    for (point, marker), place in zip(shown, places, strict=True):
        if np.isfinite(point.lower):
            bar = [point.lower, point.upper]
            ax.plot([point.predicted] * 2, bar, color=point.colour, linewidth=1.2, zorder=2)
        ax.plot(point.predicted, point.observed, marker, color=point.colour, markersize=6, zorder=3)
        if named:
            ax.annotate(
                point.name.removeprefix("leaf "),
                (point.predicted, point.observed),
                xytext=place,
                textcoords="offset points",
                ha="left" if place[0] > 0 else "right",
                va="top" if place[1] < 0 else "bottom",
                fontsize="small",
                color=INK,
            )
    ax.set_xlim(low - pad, high + pad)
    ax.set_ylim(low - pad, high + pad)
    ax.set_aspect("equal")


def _places(points: list[Compared], unit: float) -> list[Any]:
    """Where names stand beside their points: if there is room, so that none meets another.

    ``unit`` is the length of 1 on either axis, in points of print. The names of neighbours are on
    opposite sides of the diagonal.
    """
    from matplotlib.font_manager import FontProperties

    size, ruler = FontProperties(size="small").get_size_in_points(), InchRuler()
    rank = np.argsort(np.argsort([point.predicted for point in points]))
    chosen: list[Any] = []
    taken: list[tuple[Any, Any]] = []
    for point, sign in zip(points, np.where(rank % 2, -1, 1), strict=True):
        half = np.array([72 * ruler.width(point.name.removeprefix("leaf "), size), size]) / 2
        at = unit * np.array([point.predicted, point.observed])
        offsets = [sign * place for place in _PLACES]
        middles = [at + offset + np.sign(offset) * half for offset in offsets]
        free = [
            all((abs(middle - other) >= half + wide).any() for other, wide in taken)
            for middle in middles
        ]
        k = int(np.argmax(free))
        chosen.append(offsets[k])
        taken.append((middles[k], half))
    return chosen
