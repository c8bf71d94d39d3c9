"""Calibration: what was predicted against what was observed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import binomtest, t

from bristlecone._data.checks import check_integer, check_real
from bristlecone._leaves.base import SurvivalLeaves
from bristlecone._leaves.labels import ClassLeaves
from bristlecone._leaves.means import MeanLeaves
from bristlecone._tree import Tree
from bristlecone._view.fitted import FittedTree, check_tree
from bristlecone._view.palette import FAINT, INK, RULE, label_colour, leaf_colours
from bristlecone.curves import StepFunction, kaplan_meier
from bristlecone.exceptions import InvalidParameterError
from bristlecone.metrics._calibration import prediction_groups
from bristlecone.metrics._inputs import as_float, check_test_rows
from bristlecone.plot._axes import dressed, legend_beside, on_axes, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_calibration"]

Floats = NDArray[np.float64]

# Groups of the predictions of a soft tree.
_GROUPS = 10


class _Point(NamedTuple):
    """Rows that belong together: mean prediction, what was observed, its interval."""

    predicted: float
    observed: float
    lower: float
    upper: float
    rows: int
    colour: str
    text: str = ""


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
    """Predictions against what was observed of rows that are alike, with confidence intervals.

    Survival trees: predicted survival at a time against the Kaplan–Meier estimate (log-log
    intervals). Classifiers: predicted share of every class (of two classes the second) against its
    frequency (Wilson intervals). Regressors: prediction against the mean (t intervals).

    Parameters
    ----------
    tree : fitted survival tree, classifier or regressor
    X : DataFrame or array, shape (n, n_features_in_)
        Rows, best such as were not used for training.
    y : structured array, DataFrame, or array of shape (n,)
        Their outcomes, labels or numbers; outcomes without delayed entry.
    time : float, optional
        When survival is compared; survival trees need it.
    n_groups : int, optional
        Rows are put together by their predictions, cut at quantiles into at most this many groups.
        By default rows of a leaf belong together, and those of a soft tree in ten groups.
    confidence : float, default=0.95
        Level of the intervals.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        On the diagonal predictions are right. Points that are leaves bear their numbers.

    Raises
    ------
    TypeError
        When the tree predicts neither survival nor shares nor means.
    ValueError
        When ``time`` is missing, or given to a tree without survival; when the rows of a group are
        followed up only to an earlier time, so that their survival is unknown; and for outcomes
        that do not fit the rows.
    NotFittedError, InfeasibleError
        When there is no tree.

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
    ('predicted', 'mean of the rows')
    """
    fitted = check_tree(tree, "plot_calibration")
    check_integer("n_groups", n_groups, 1, optional=True)
    if not 0 < confidence < 1:
        raise InvalidParameterError(f"confidence must lie in (0, 1); got {confidence!r}")
    leaves = fitted.leaves_
    if not isinstance(leaves, (SurvivalLeaves, ClassLeaves, MeanLeaves)):
        raise TypeError(
            "plot_calibration compares predicted survival, shares or means; a "
            f"{type(tree).__name__} predicts none"
        )
    if (time is not None) != isinstance(leaves, SurvivalLeaves):
        need = "needs time=, at which survival is compared" if time is None else "takes no time"
        raise ValueError(f"plot_calibration of a {type(tree).__name__} {need}")
    rows = _Rows(fitted, X, n_groups)
    if isinstance(leaves, SurvivalLeaves):
        points = _survival(tree, rows, y, time, confidence)
        labels = f"predicted survival at {time:g}", f"Kaplan–Meier survival at {time:g}"
    elif isinstance(leaves, ClassLeaves):
        points = _shares(tree, rows, y, confidence)
        labels = "predicted share", "frequency"
        if len(leaves.labels) == 2:
            labels = f"predicted share of {leaves.labels[1]}", f"frequency of {leaves.labels[1]}"
    else:
        points = _means(tree, rows, y, confidence)
        labels = "predicted", "mean of the rows"
    ax = on_axes(ax, 4.6, 4.2)
    _draw(ax, points, shares=not isinstance(leaves, MeanLeaves))
    dressed(ax, *labels)
    if isinstance(leaves, ClassLeaves) and len(leaves.labels) > 2:
        for k, label in enumerate(leaves.labels):
            ax.plot([], [], "o", color=label_colour(k), label=f" {plain(label)}")
        legend_beside(ax)
    return ax


class _Rows:
    """Rows and how they are put together."""

    def __init__(self, tree: FittedTree, X: Any, n_groups: int | None) -> None:
        self.X, self.leaf = X, tree.apply(X)
        if not len(self.leaf):
            raise ValueError("plot_calibration compares predictions of rows; X has none")
        self.by_leaf = n_groups is None and isinstance(tree.tree_, Tree)
        self.n_groups = _GROUPS if n_groups is None else n_groups
        self.colours = leaf_colours(tree)

    def groups(self, predicted: Floats) -> list[tuple[NDArray[np.int64], str, str]]:
        """Rows, name and colour of every group of rows with these predictions."""
        if self.by_leaf:
            nodes = np.unique(self.leaf).tolist()
            return [
                (np.flatnonzero(self.leaf == node), f"leaf {node}", self.colours[node])
                for node in nodes
            ]
        group = prediction_groups(predicted, self.n_groups)
        return [
            (np.flatnonzero(group == k), f"group {k}", label_colour(0))
            for k in range(int(group.max()) + 1)
        ]

    def check(self, count: int) -> None:
        """Raise ValueError unless there are so many outcomes as rows."""
        if count != len(self.leaf):
            raise ValueError(f"X has {len(self.leaf)} rows but y has {count}")

    def text(self, name: str) -> str:
        """What stands at the point of a group."""
        return name.removeprefix("leaf ") if self.by_leaf else ""


def _survival(
    tree: Any, rows: _Rows, y: Any, time: float | None, confidence: float
) -> list[_Point]:
    check_real("time", time, 0.0)
    at = float(time)  # type: ignore[arg-type]
    event, last, *_ = check_test_rows(y, X=rows.X)
    rows.check(len(last))
    predicted = tree.predict_survival_function(rows.X, times=[at])[:, 0]
    points = []
    for own, name, colour in rows.groups(predicted):
        curve = kaplan_meier((event[own], last[own]))
        if at > curve.x[-1] and curve.y[-1] > 0:
            raise ValueError(
                f"{name} is followed up to {curve.x[-1]:g} only: its survival at {at:g} is unknown"
            )
        low, high = (
            float(StepFunction(curve.x, limit, before=1.0)(at))
            for limit in curve.confidence_interval(confidence)
        )
        mean = float(predicted[own].mean())
        points.append(_Point(mean, float(curve(at)), low, high, len(own), colour, rows.text(name)))
    return points


def _shares(tree: Any, rows: _Rows, y: Any, confidence: float) -> list[_Point]:
    labels = tree.leaves_.labels
    given = np.asarray(y)
    rows.check(len(given))
    shares = tree.predict_proba(rows.X)
    points = []
    # Of two classes one tells everything.
    for k in range(1 if len(labels) == 2 else 0, len(labels)):
        hits = given == labels[k]
        for own, name, colour in rows.groups(shares[:, k]):
            test = binomtest(int(hits[own].sum()), len(own))
            interval = test.proportion_ci(confidence, method="wilson")
            colour = colour if len(labels) == 2 else label_colour(k)
            text = rows.text(name) if len(labels) == 2 else ""
            mean = float(shares[own, k].mean())
            points.append(
                _Point(mean, test.statistic, interval.low, interval.high, len(own), colour, text)
            )
    return points


def _means(tree: Any, rows: _Rows, y: ArrayLike, confidence: float) -> list[_Point]:
    values = as_float(y, "y")
    rows.check(len(values))
    predicted = tree.predict(rows.X)
    points = []
    for own, name, colour in rows.groups(predicted):
        mean, half = float(values[own].mean()), np.nan
        if len(own) > 1:
            error = values[own].std(ddof=1) / np.sqrt(len(own))
            half = float(t.ppf((1 + confidence) / 2, len(own) - 1) * error)
        limits = mean - half, mean + half
        at = float(predicted[own].mean())
        points.append(_Point(at, mean, *limits, len(own), colour, rows.text(name)))
    return points


def _draw(ax: Axes, points: list[_Point], *, shares: bool) -> None:
    ends = np.array([(p.predicted, p.observed, p.lower, p.upper) for p in points])
    low, high = (0.0, 1.0) if shares else (np.nanmin(ends), np.nanmax(ends))
    pad = 0.02 if shares else 0.04 * ((high - low) or 1.0)
    ax.plot([low, high], [low, high], color=RULE, linewidth=1.2, zorder=1)
    for point in points:
        if np.isfinite(point.lower):
            bar = [point.lower, point.upper]
            ax.plot([point.predicted] * 2, bar, color=point.colour, linewidth=1.2, zorder=2)
        ax.plot(point.predicted, point.observed, "o", color=point.colour, markersize=6, zorder=3)
        if point.text:
            ax.annotate(
                point.text,
                (point.predicted, point.observed),
                xytext=(5, -3),
                textcoords="offset points",
                ha="left",
                va="top",
                fontsize="small",
                color=INK,
            )
    ax.set_xlim(low - pad, high + pad)
    ax.set_ylim(low - pad, high + pad)
    ax.set_aspect("equal")
    ax.tick_params(color=FAINT)
