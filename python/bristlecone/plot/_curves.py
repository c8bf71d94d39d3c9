"""Survival curves: of the rows of every leaf, and of single rows."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._data.checks import check_integer, check_real, check_times
from bristlecone._data.texts import counted
from bristlecone._encoder.rules import leaf_rules, rule_text
from bristlecone._view.palette import INK, label_colour, leaf_colours
from bristlecone.plot._axes import (
    check_survival_tree,
    dressed,
    legend_below,
    legend_beside,
    on_axes,
    plain,
    steps,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_leaf_curves", "plot_survival"]

Floats = NDArray[np.float64]

_N_TIMES = 200
# Lines of rows that a picture can tell apart and a legend can hold.
_MOST_ROWS = 20
_MOST_RUNS = 6
_MOST_LINES = 8
_TEXT_WIDTH = 76


def plot_leaf_curves(
    estimator: Any,
    X: Any,
    *,
    times: ArrayLike | None = None,
    max_curves: int = 100,
    kaplan_meier: bool = False,
    time_label: str = "time",
    ax: Axes | None = None,
) -> Axes:
    """Survival curves of rows, one bundle and colour per leaf.

    Parameters
    ----------
    estimator : fitted survival tree
        Rows of a leaf share one step curve, but in a ``SoftSurvivalTree``.
    X : DataFrame or array, shape (n, n_features_in_)
        Rows whose curves are drawn.
    times : array-like of float, shape (n_times,), optional
        Where smooth curves are evaluated, by default 200 times up to the last training time. Step
        curves are drawn with all their steps up to the last of ``times``.
    max_curves : int, default=100
        Most smooth curves drawn of a leaf: its rows evenly spread by their survival at the last of
        ``times``. The legend counts all rows.
    kaplan_meier : bool, default=False
        Whether to draw the Kaplan–Meier estimate of the training rows of every leaf, dotted.
    time_label : str, default="time"
        Label of the time axis, such as "days".
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        With the median curve of each bundle drawn thick: at each time the median of its rows. The
        legend stands beside the axes.

    Raises
    ------
    TypeError
        When the estimator does not predict survival.
    ImportError
        When matplotlib is not installed.
    NotFittedError, ValueError
        As from the predictions of the estimator.

    See Also
    --------
    plot_survival : The curves of single rows, with their paths.
    plot_tree : The tree with the curves of its leaves.

    Examples
    --------
    >>> from bristlecone import GreedySurvivalTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.plot import plot_leaf_curves
    >>> veterans = load("veterans")
    >>> tree = GreedySurvivalTree(max_depth=1).fit(veterans.X, veterans.y)
    >>> plot_leaf_curves(tree, veterans.X).get_ylabel()
    'survival'
    """
    tree = check_survival_tree(estimator, "plot_leaf_curves")
    check_integer("max_curves", max_curves, 1)
    leaves: Any = tree.leaves_
    at = _times(times, leaves.unique_times)
    leaf, end = tree.apply(X), float(at[-1])
    curves = _step_curves(leaves, end)
    survival = None if curves else estimator.predict_survival_function(X, times=at)
    ax = on_axes(ax)
    colours = leaf_colours(tree)
    for k, node in enumerate(tree.tree_.leaves.tolist()):
        rows = np.flatnonzero(leaf == node)
        if not len(rows):
            continue
        colour = colours[node]
        style: dict[str, Any] = {
            "color": colour,
            "label": f"leaf {node} ({counted(len(rows), 'row')})",
        }
        if survival is None:
            ax.plot(*curves[k], drawstyle="steps-post", linewidth=2.0, **style)
        else:
            bundle = survival[rows]
            order = np.argsort(bundle[:, -1], kind="stable")
            shown = np.unique(np.linspace(0, len(order) - 1, max_curves).round().astype(np.int64))
            ax.plot(at, bundle[order[shown]].T, color=colour, alpha=0.15, linewidth=0.8)
            ax.plot(at, np.median(bundle, axis=0), linewidth=2.5, **style)
        if kaplan_meier:
            own = leaves.kaplan_meier[k]
            dotted: dict[str, Any] = {"drawstyle": "steps-post", "linestyle": ":", "linewidth": 1.2}
            ax.plot(*steps(own.x, own.y, end), color=colour, **dotted)
    dressed(ax, time_label, "survival")
    ax.set_ylim(0.0, 1.02)
    ax.set_xlim(0.0, end)
    if kaplan_meier:
        ax.plot([], [], ":", color=INK, linewidth=1.2, label="Kaplan–Meier")
    legend_beside(ax)
    return ax


def plot_survival(
    tree: Any,
    X: Any,
    *,
    times: ArrayLike | None = None,
    time_label: str = "time",
    ax: Axes | None = None,
) -> Axes:
    """Predicted survival of rows, each with its path through the tree.

    Rows that share a leaf of yes-no questions share a curve: there is one line per leaf that is
    reached, with the rows and their rule. Of a soft tree every row has a line, with the
    probability of the branch taken at every split.

    Parameters
    ----------
    tree : fitted survival tree
    X : DataFrame or array, shape (n, n_features_in_)
        The rows; of a soft tree at most 20. The legend tells their positions, from 0.
    times : array-like of float, shape (n_times,), optional
        Where smooth curves are evaluated, by default 200 times up to the last training time. Step
        curves are drawn with all their steps up to the last of ``times``.
    time_label : str, default="time"
        Label of the time axis, such as "days".
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The legend with the paths stands below the axes.

    Raises
    ------
    TypeError
        When the tree does not predict survival.
    ValueError
        For no rows, for more than 20 of a soft tree, and as from the predictions of the tree.
    NotFittedError, InfeasibleError
        When there is no tree.

    See Also
    --------
    plot_leaf_curves : The curves of many rows.

    Examples
    --------
    >>> from bristlecone import OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.plot import plot_survival
    >>> veterans = load("veterans")
    >>> tree = OptimalSurvivalTree(max_depth=1).fit(veterans.X, veterans.y)
    >>> ax = plot_survival(tree, veterans.X[:3])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['rows 0–2: leaf 2, Karnofsky_score >= 46']
    """
    fitted = check_survival_tree(tree, "plot_survival")
    leaves: Any = fitted.leaves_
    at = _times(times, leaves.unique_times)
    leaf, end = fitted.apply(X), float(at[-1])
    if not len(leaf):
        raise ValueError("plot_survival draws the curves of rows; X has none")
    curves = _step_curves(leaves, end)
    if not curves and len(leaf) > _MOST_ROWS:
        raise ValueError(
            f"plot_survival draws a line per row of a soft tree, at most {_MOST_ROWS}; X has "
            f"{len(leaf)} rows (plot_leaf_curves draws many)"
        )
    ax = on_axes(ax, 6.0, 4.2)
    if curves:
        colours = leaf_colours(tree)
        nodes = fitted.tree_.leaves.tolist()
        for node, rule, curve in zip(nodes, leaf_rules(fitted), curves, strict=True):
            rows = np.flatnonzero(leaf == node)
            if len(rows):
                label = _wrapped(f"{_rows_named(rows)}: leaf {node}, {rule_text(rule)}")
                style: dict[str, Any] = {"color": colours[node], "label": label, "linewidth": 2.0}
                ax.plot(*curve, drawstyle="steps-post", **style)
    else:
        survival = tree.predict_survival_function(X, times=at)
        paths = _soft_paths(fitted.tree_, leaf, tree.predict_proba_branch(X))
        for row, path in enumerate(paths):
            label = _wrapped(f"row {row}: {path}")
            ax.plot(at, survival[row], color=label_colour(row), linewidth=1.8, label=label)
    dressed(ax, time_label, "predicted survival")
    ax.set_ylim(0.0, 1.02)
    ax.set_xlim(0.0, end)
    legend_below(ax)
    return ax


def _times(times: ArrayLike | None, unique: Floats) -> Floats:
    if times is None:
        return np.linspace(0.0, float(unique[-1]), _N_TIMES)
    at = np.sort(check_times(times))
    if not at.size:
        raise ValueError("times is empty")
    check_real("the last of times", float(at[-1]), np.finfo(float).tiny)
    return at


def _step_curves(leaves: Any, end: float) -> list[tuple[Floats, ...]]:
    """Steps of every leaf as they are drawn; none for leaves of smooth curves."""
    if not leaves.has_steps:
        return []
    times = leaves.unique_times
    return [steps(times, survival, end) for survival in leaves.survival_at(times)]


def _rows_named(rows: NDArray[np.int64]) -> str:
    """Such as "row 3", "rows 0–4, 7", "38 rows"."""
    if len(rows) == 1:
        return f"row {rows[0]}"
    runs = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)
    if len(runs) > _MOST_RUNS:
        return f"{len(rows)} rows"
    told = (str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)
    return f"rows {', '.join(told)}"


def _soft_paths(tree: Any, leaf: NDArray[np.int64], branch: Floats) -> list[str]:
    """Branches that the rows take, with their probabilities, and the leaf at the end."""
    place = {node: k for k, node in enumerate(np.sort(tree.splits).tolist())}
    paths = []
    for end, left in zip(leaf.tolist(), branch, strict=True):
        node, told = 0, []
        while node in place:
            share = left[place[node]]
            children = tree.children_right if share < 0.5 else tree.children_left
            way = f"right {1 - share:.2f}" if share < 0.5 else f"left {share:.2f}"
            told.append(way)
            node = int(children[node])
        paths.append(", ".join([*told, f"leaf {end}"]))
    return paths


def _wrapped(text: str) -> str:
    lines = textwrap.wrap(text, _TEXT_WIDTH, max_lines=_MOST_LINES, placeholder=" …")
    return plain("\n".join(lines))
