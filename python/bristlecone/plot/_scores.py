"""Predictions compared with outcomes: calibration, and scores over time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bristlecone._data.checks import check_times
from bristlecone._data.outcomes import Outcome, check_survival
from bristlecone._data.rows import check_row_labels
from bristlecone._types import Floats
from bristlecone._view.palette import FAINT, label_colour
from bristlecone.curves import kaplan_meier
from bristlecone.metrics import brier_score, cumulative_dynamic_auc, integrated_brier_score
from bristlecone.metrics._inputs import check_test_rows
from bristlecone.plot._axes import (
    check_survival_tree,
    dressed,
    in_legend,
    legend,
    on_any_background,
    on_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_N_TIMES = 100
# Inches for a line of the legend.
_TEXT_INCHES = 5.3
# Quantiles of the test times between which scores are drawn by default. Beyond them few rows are
# left, or few have had an event.
_FROM, _TO = 0.1, 0.9


@on_any_background
def plot_brier(
    trees: Any,
    y_train: Outcome,
    X: Any,
    y: Outcome,
    *,
    times: ArrayLike | None = None,
    time_label: str = "time",
    ax: Axes | None = None,
) -> Axes:
    """Brier score over time, next to that of the Kaplan–Meier curve of the training rows.

    Parameters
    ----------
    trees : fitted survival tree, or mapping from names to them
        The name of a single one is its class.
    y_train : structured array, DataFrame or pair (event, time)
        Training outcomes, which give the censoring weights and the Kaplan–Meier reference.
    X : DataFrame or array, shape (n, n_features_in_)
        Rows to score.
    y : structured array, DataFrame or pair (event, time), n rows
        Their outcomes, without delayed entry.
    times : array-like of float, shape (n_times,), optional
        Strictly ascending; by default 100 times between the 10% and 90% quantiles of the times
        in ``y``.
    time_label : str, default="time"
        Label of the time axis, such as "days".
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        0 is perfect. The legend has the score integrated over ``times`` by the trapezoid rule.

    Raises
    ------
    TypeError
        If an estimator does not predict survival.
    ValueError
        If the mapping is empty, and as from :func:`bristlecone.metrics.brier_score`.
    NotFittedError, InfeasibleError
        If there is no tree.

    See Also
    --------
    plot_auc : How well risks are ordered at every time.
    bristlecone.metrics.brier_score : The score.

    Examples
    --------
    >>> from bristlecone import OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.plot import plot_brier
    >>> veterans = load("veterans")
    >>> X, y = veterans.X, veterans.y
    >>> tree = OptimalSurvivalTree(max_depth=2).fit(X, y)
    >>> ax = plot_brier({"depth 2": tree}, y, X, y)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['Kaplan–Meier (integrated 0.189)', 'depth 2 (integrated 0.154)']
    """
    named = _named(trees, "plot_brier")
    check_row_labels(X, y=y)
    at = _times(times, y)
    reference = np.asarray(kaplan_meier(check_survival(y_train, "y_train"))(at))
    n_rows = len(check_test_rows(y).time)
    curves = [("Kaplan–Meier", np.tile(reference, (n_rows, 1)))]
    curves += [(name, tree.predict_survival_function(X, times=at)) for name, tree in named]
    lines = []
    for name, survival in curves:
        scores = brier_score(y_train, y, survival, at)[1]
        label = name
        if len(at) > 1:
            label += f" (integrated {integrated_brier_score(y_train, y, survival, at):.3f})"
        lines.append((scores, label))
    # Scores that are not defined must not leave an empty figure behind.
    ax = on_axes(ax, height=_height(len(lines)))
    for k, (scores, label) in enumerate(lines):
        _line(ax, at, scores, label, k - 1)
    dressed(ax, time_label, "Brier score")
    ax.set_ylim(bottom=0.0)
    legend(ax, below=True)
    return ax


@on_any_background
def plot_auc(
    trees: Any,
    y_train: Outcome,
    X: Any,
    y: Outcome,
    *,
    times: ArrayLike | None = None,
    time_label: str = "time",
    ax: Axes | None = None,
) -> Axes:
    """Cumulative/dynamic area under the ROC curve over time.

    At every time t rows are ranked by 1 − S(t), the share that is predicted to have had the event.

    Parameters
    ----------
    trees : fitted survival tree, or mapping from names to them
    y_train : structured array, DataFrame or pair (event, time)
        Training outcomes, which give the censoring weights.
    X : DataFrame or array, shape (n, n_features_in_)
        Rows to score.
    y : structured array, DataFrame or pair (event, time), n rows
        Their outcomes, without delayed entry.
    times : array-like of float, shape (n_times,), optional
        Strictly ascending; by default 100 times between the 10% and 90% quantiles of the times
        in ``y``.
    time_label : str, default="time"
        Label of the time axis, such as "days".
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        1 is perfect, and the faint line at 0.5 is chance. The legend has the mean over time.

    Raises
    ------
    TypeError
        If an estimator does not predict survival.
    ValueError
        If the mapping is empty, and as from :func:`bristlecone.metrics.cumulative_dynamic_auc`.
    NotFittedError, InfeasibleError
        If there is no tree.

    See Also
    --------
    plot_brier : How far probabilities are off at every time.
    bristlecone.metrics.cumulative_dynamic_auc : The score.

    Examples
    --------
    >>> from bristlecone import OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.plot import plot_auc
    >>> veterans = load("veterans")
    >>> X, y = veterans.X, veterans.y
    >>> tree = OptimalSurvivalTree(max_depth=2).fit(X, y)
    >>> plot_auc(tree, y, X, y).get_legend().get_texts()[0].get_text()
    'OptimalSurvivalTree (mean 0.791)'
    """
    named = _named(trees, "plot_auc")
    check_row_labels(X, y=y)
    at = _times(times, y)
    lines = []
    for name, tree in named:
        event_share = 1 - tree.predict_survival_function(X, times=at)
        auc, mean = cumulative_dynamic_auc(y_train, y, event_share, at)
        lines.append((auc, f"{name} (mean {mean:.3f})"))
    # Scores that are not defined must not leave an empty figure behind.
    ax = on_axes(ax, height=_height(len(lines)))
    ax.axhline(0.5, color=FAINT, linewidth=0.8, linestyle=(0, (4, 2)))
    for k, (auc, label) in enumerate(lines):
        _line(ax, at, auc, label, k)
    dressed(ax, time_label, "AUC")
    ax.set_ylim(top=1.0)
    legend(ax, below=True)
    return ax


def _named(trees: Any, what: str) -> list[tuple[str, Any]]:
    """Names and trees; the default name of a single tree is its class."""
    if not isinstance(trees, Mapping):
        trees = {type(trees).__name__: trees}
    if not trees:
        raise ValueError(f"{what} got no tree: the mapping is empty")
    return [(str(name), check_survival_tree(tree, what)) for name, tree in trees.items()]


def _height(n_curves: int) -> float:
    """Height of a figure with room for a legend of this many curves, in inches."""
    return max(3.8, 2.6 + 0.4 * n_curves)


def _times(times: ArrayLike | None, y: Outcome) -> Floats:
    if times is not None:
        return check_times(np.atleast_1d(np.asarray(times)), ascending=True)
    time = check_test_rows(y).time
    first, last = np.quantile(time, [_FROM, _TO])
    if not first < last:
        raise ValueError("the times of y are too alike to draw scores over time; give times=")
    return np.linspace(first, last, _N_TIMES)


def _line(ax: Axes, at: Floats, values: Floats, label: str, place: int) -> None:
    """A line with its colour; the reference, place -1, is grey and dashed."""
    style: dict[str, Any] = {"color": label_colour(place), "linewidth": 1.8}
    if place < 0:
        style = {"color": FAINT, "linewidth": 1.4, "linestyle": "--"}
    (line,) = ax.plot(at, values, marker="o" if len(at) == 1 else None, **style)
    line.set_label(in_legend(label, _TEXT_INCHES))
