"""Searches: objective and bound over time and over sizes, and fronts of costs."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bristlecone._data.arrays import type_name
from bristlecone._data.texts import counted
from bristlecone._search.certificate import Certificate
from bristlecone._search.front import ParetoFront
from bristlecone._types import Floats
from bristlecone._view.fitted import check_tree
from bristlecone._view.palette import FAINT, INK, LABELS, ramp
from bristlecone._view.sizes import Scores, scores_of, trees_of
from bristlecone.plot._axes import dressed, legend, legend_above, on_any_background, on_axes, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_OBJECTIVE, _BOUND, _SCORE = LABELS[0], LABELS[2], LABELS[1]
# A logarithmic axis is used if times differ by more than this factor.
_WIDE = 50.0


@on_any_background
def plot_trace(tree: Any, *, ax: Axes | None = None) -> Axes:
    """Objective and lower bound of a search over time.

    Parameters
    ----------
    tree : fitted tree that was found by search
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The gap between the two is shaded, and the title states what was proven. The time axis is
        logarithmic if the times differ by a factor of fifty or more.

    Raises
    ------
    TypeError
        If the tree was not found by search; greedy and soft trees have no bounds.
    NotFittedError, InfeasibleError
        If there is no tree.

    See Also
    --------
    plot_size_path : Objective and bound by number of leaves.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> from bristlecone.plot import plot_trace
    >>> tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])
    >>> plot_trace(tree).get_title("left")
    'optimal among trees over these 2 binary features'
    """
    found = check_tree(tree, "plot_trace").certificate_
    if not found.is_searched:
        raise TypeError(
            f"plot_trace draws the bounds of a search; {type_name(tree)} was {found.status}, "
            "not searched for"
        )
    seconds, objective, bound = _trace(found)
    ax = on_axes(ax)
    wide = seconds[-1] > _WIDE * seconds[0] > 0
    post: dict[str, Any] = {"drawstyle": "steps-post"}
    known = np.isfinite(objective)
    ax.fill_between(
        seconds, bound, objective, where=known, step="post", color=FAINT, alpha=0.15, linewidth=0
    )
    ax.plot(
        seconds[known], objective[known], color=_OBJECTIVE, linewidth=2.0, label="objective", **post
    )
    ax.plot(
        seconds, bound, color=_BOUND, linewidth=1.5, linestyle="--", label="lower bound", **post
    )
    if wide:
        ax.set_xscale("log")
    first, last = (seconds[0], 1.2 * seconds[-1]) if wide else (0.0, 1.02 * seconds[-1])
    ax.set_xlim(first, last)
    dressed(ax, "seconds", "objective")
    gap = f"; gap {found.gap:.3g} ({found.relative_gap:.1%})" if found.status != "optimal" else ""
    _entitle(ax, found.sentence + gap)
    legend(ax)
    return ax


def _trace(found: Certificate) -> tuple[Floats, Floats, Floats]:
    """Seconds, objective and bound at every change, and at the end of the search."""
    end = (found.seconds, found.objective_value, found.lower_bound)
    trace = [entry[:3] for entry in found.trace if entry[0] < found.seconds]
    seconds, objective, bound = np.array([*trace, end], dtype=np.float64).T
    if len(seconds) == 1:
        seconds, objective, bound = np.array([0.0, seconds[0]]), objective[[0, 0]], bound[[0, 0]]
    return seconds, objective, bound


@on_any_background
def plot_size_path(
    path: Sequence[Any], X: Any = None, y: Any = None, *, ax: Axes | None = None
) -> Axes:
    """Objective and lower bound of the best tree of every size, and its score on other rows.

    Parameters
    ----------
    path : sequence of fitted trees, or a fitted TreeSizeCV
        What ``size_path`` returns: entry k is a best tree of at most k + 1 leaves. For a
        ``TreeSizeCV``, the mean score of every size is drawn with its standard error over the
        folds, and the chosen size is marked.
    X, y : optional
        Rows, such as held-out ones, whose ``score`` is drawn for every tree, on a second axis at
        the right.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        The axes of the objective; scores are on a second axis. A bar shows the gap of a tree that
        is not proven optimal. Sizes at which no tree satisfies the constraints are left out.

    Raises
    ------
    TypeError
        If ``path`` is not a sequence of trees that were found by search.
    ValueError
        If it is empty or has no tree; if only one of ``X`` and ``y`` is passed, or both with a
        ``TreeSizeCV``; and as from ``score``.

    See Also
    --------
    plot_trace : Objective and bound over time.

    Examples
    --------
    >>> from bristlecone import OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.plot import plot_size_path
    >>> veterans = load("veterans")
    >>> path = OptimalSurvivalTree(max_depth=2).size_path(veterans.X, veterans.y)
    >>> plot_size_path(path).lines[0].get_xdata().tolist()
    [1, 2, 3, 4]
    """
    scores = scores_of(path)
    if scores is not None:
        if X is not None or y is not None:
            raise ValueError("plot_size_path has the scores of a TreeSizeCV: it needs no X and y")
        return _draw_scores(scores, on_axes(ax))
    if (X is None) != (y is None):
        raise ValueError("plot_size_path scores trees on rows: it needs both X and y, or neither")
    trees = trees_of(path, "plot_size_path")
    sizes = [size for size, _ in trees]
    certificates = [tree.certificate_ for _, tree in trees]
    objective = np.array([found.objective_value for found in certificates])
    bound = np.array([found.lower_bound for found in certificates])
    held_out = None if X is None else [float(tree.score(X, y)) for _, tree in trees]
    ax = on_axes(ax)
    line: dict[str, Any] = {"marker": "o", "markersize": 5}
    ax.plot(sizes, objective, color=_OBJECTIVE, label="objective", **line)
    open_ = np.array([found.status != "optimal" for found in certificates])
    if open_.any():
        at = np.array(sizes)
        gap: dict[str, Any] = {"color": FAINT, "alpha": 0.4, "linewidth": 3.0, "zorder": 1}
        ax.vlines(at[open_], bound[open_], objective[open_], **gap)
        ax.plot(sizes, bound, "_", color=_BOUND, markersize=9, label="lower bound")
    _dressed(ax, "objective")
    lines = ax.get_lines()
    if held_out is not None:
        right = ax.twinx()
        label = f"{trees[0][1]._score_name} of the given rows"
        right.plot(sizes, held_out, "--", color=_SCORE, label=label, marker="s", markersize=5)
        right.set_ylabel(label)
        right.spines["top"].set_visible(False)
        right.spines["left"].set_visible(False)
        lines = [*lines, *right.get_lines()]
    if len(lines) > 1:
        legend_above(ax, handles=lines, ncols=len(lines))
    return ax


def _draw_scores(scores: Scores, ax: Axes) -> Axes:
    """Scores by number of leaves of a cross-validation, with the size that it chose."""
    line: dict[str, Any] = {"color": _OBJECTIVE, "marker": "o", "markersize": 5, "capsize": 3}
    label = "mean over the folds ± standard error"
    ax.errorbar(scores.sizes, scores.mean, yerr=scores.error, label=label, **line)
    chosen = f"chosen: {counted(scores.chosen, 'leaf')}"
    ax.axvline(scores.chosen, color=_SCORE, linestyle="--", label=chosen)
    _dressed(ax, scores.name)
    legend_above(ax, ncols=2)
    return ax


def _dressed(ax: Axes, y: str) -> None:
    """Labels of a picture over sizes, and whole numbers at its horizontal axis."""
    # Imported here, because matplotlib is only imported when something is drawn.
    from matplotlib.ticker import MaxNLocator

    dressed(ax, "maximum number of leaves", y)
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))


@on_any_background
def plot_front(front: ParetoFront, *, ax: Axes | None = None) -> Axes:
    """Plot a Pareto front of trees by their costs.

    Parameters
    ----------
    front : ParetoFront
        What ``pareto_front`` returns, with two or three costs.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        One point per tree, by its first two costs. No tree within the limits of the search is below
        the staircase of a complete front. If the front is incomplete, the staircase is dashed and
        the title says so. A third cost is shown by colour.

    Raises
    ------
    TypeError
        If ``front`` is not a ParetoFront.
    ValueError
        If the front has no points, or another number of costs.

    See Also
    --------
    OptimalTreeClassifier : Its method ``pareto_front`` returns the front of both kinds of errors.
    FairTreeClassifier : Its method returns the front of error and difference between groups.

    Examples
    --------
    >>> from bristlecone import OptimalTreeClassifier
    >>> from bristlecone.plot import plot_front
    >>> front = OptimalTreeClassifier(max_depth=1).pareto_front([[0], [1], [1]], [0, 1, 0])
    >>> plot_front(front).get_xlabel()
    'false positives'
    """
    if not isinstance(front, ParetoFront):
        raise TypeError(f"plot_front takes a ParetoFront; got {type_name(front)}")
    if not len(front):
        raise ValueError("the front has no points")
    names, costs = front.cost_names, front.costs
    if len(names) not in (2, 3):
        raise ValueError(f"plot_front draws two or three costs; the front has {len(names)}")
    ax = on_axes(ax, 5.0, 3.8)
    complete = front.status == "optimal"
    if len(names) == 2:
        ax.plot(
            *costs.T,
            drawstyle="steps-post",
            color=FAINT,
            linewidth=1.2,
            linestyle="-" if complete else "--",
        )
        ax.plot(*costs.T, "o", color=_OBJECTIVE, markersize=5)
    else:
        from matplotlib.colors import LinearSegmentedColormap

        colours = LinearSegmentedColormap.from_list("risk", ramp(np.linspace(0, 1, 16)))
        points = ax.scatter(costs[:, 0], costs[:, 1], c=costs[:, 2], cmap=colours, s=24)
        ax.figure.colorbar(points, ax=ax, label=plain(names[2]))
    dressed(ax, names[0], names[1])
    kept = "1 tree" if len(front) == 1 else f"{len(front)} trees"
    title = f"{kept}, none dominated by any other within the limits"
    if not complete:
        title = f"incomplete ({front.status}): the {kept} found so far"
    _entitle(ax, title)
    return ax


def _entitle(ax: Axes, text: str) -> None:
    title = plain("\n".join(textwrap.wrap(text, 72)))
    ax.set_title(title, fontsize="medium", color=INK, loc="left")
