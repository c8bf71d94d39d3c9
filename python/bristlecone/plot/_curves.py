"""Survival curves: of the rows of every leaf, and of single rows."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bristlecone._data.arrays import type_name
from bristlecone._data.checks import check_integer, check_real, check_times
from bristlecone._data.texts import counted, number
from bristlecone._encoder.rules import leaf_rules, rule_text
from bristlecone._leaves.follow_up import hazard_ratios
from bristlecone._leaves.shown import interval
from bristlecone._types import Floats, Integers
from bristlecone._view.fitted import check_tree
from bristlecone._view.palette import FAINT, INK, label_colour, leaf_colours
from bristlecone._view.view import View
from bristlecone.exceptions import InvalidParameterError
from bristlecone.plot._axes import (
    check_survival_tree,
    draw_estimate,
    dressed,
    in_lines,
    legend,
    on_any_background,
    on_axes,
    steps,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_N_TIMES = 200
# Most lines of rows that a picture can distinguish and a legend can hold.
_MOST_ROWS = 20
_MOST_RUNS = 6
_MOST_LINES = 8
# Characters of a line of a legend, and the inches that there are for them.
_TEXT_WIDTH, _TEXT_INCHES = 84, 5.3
# Height of a line of a legend or of numbers at risk, in inches.
_LINE = 0.2


@on_any_background
def plot_leaf_curves(
    estimator: Any,
    X: Any = None,
    *,
    times: ArrayLike | None = None,
    max_curves: int = 100,
    kaplan_meier: bool = False,
    at_risk: bool = False,
    reference: int | None = None,
    confidence: float = 0.95,
    time_label: str = "time",
    ax: Axes | None = None,
) -> Axes:
    """Survival curves by leaf: Kaplan–Meier estimates, or predictions for rows.

    Without ``X``, this is the figure for a paper: the Kaplan–Meier estimate of the training rows
    of every leaf, with confidence band and ticks where rows were censored. With ``X``, it shows
    the curves that are predicted for these rows.

    Parameters
    ----------
    estimator : fitted survival tree
        Rows of a leaf share one step curve, except in a ``SoftSurvivalTree``.
    X : DataFrame or array, shape (n, n_features_in_), optional
        Rows whose predicted curves are drawn.
    times : array-like of float, shape (n_times,), optional
        Where smooth curves are evaluated, by default 200 times up to the last training time. Step
        curves are drawn with all their steps up to the last of ``times``.
    max_curves : int, default=100
        Largest number of smooth curves drawn for a leaf: its rows are spread evenly by their
        survival at the last of ``times``. The legend counts all rows.
    kaplan_meier : bool, default=False
        Whether to add the Kaplan–Meier estimate of the training rows of every leaf, dotted, to the
        curves predicted for ``X``.
    at_risk : bool, default=False
        Whether to write the numbers of training rows at risk below the axes.
    reference : int, optional
        Node id of a leaf. The legend then has the hazard ratio of every other leaf to it, with
        confidence interval: Cox's model of the training rows with the leaf as its only factor,
        ties by Efron, without row weights. A ratio without a finite estimate is "–", such as that
        of a leaf without events, or of one whose last row had its event before the first event of
        the reference.
    confidence : float, default=0.95
        Level of bands and intervals.
    time_label : str, default="time"
        Label of the time axis, such as "days".
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default, large enough for table and legend.

    Returns
    -------
    matplotlib Axes
        For a soft tree, the pointwise median curve of each leaf is drawn thick. The legend is next
        to the axes, or below them if it has the rules of the leaves (without ``X``).

    Raises
    ------
    TypeError
        If the estimator does not predict survival.
    ValueError
        If ``reference`` is not a leaf, or another parameter is not as described.
    ImportError
        If matplotlib is not installed.
    NotFittedError
        As from the predictions of the estimator.

    See Also
    --------
    plot_survival : The curves of single rows, with their paths.
    plot_tree : The tree with the curves of its leaves.

    Notes
    -----
    Bands, intervals and hazard ratios treat the leaves as fixed. The splits were chosen to separate
    these rows, so differences are exaggerated.

    Examples
    --------
    >>> from bristlecone import GreedySurvivalTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.plot import plot_leaf_curves
    >>> veterans = load("veterans")
    >>> tree = GreedySurvivalTree(max_depth=1).fit(veterans.X, veterans.y)
    >>> ax = plot_leaf_curves(tree, at_risk=True, reference=1, time_label="days")
    >>> [text.get_text() for text in ax.get_legend().get_texts()][1]
    'leaf 2, hazard ratio 0.27 (0.18 to 0.406): Karnofsky_score >= 46'
    """
    tree = check_survival_tree(estimator, "plot_leaf_curves")
    check_integer("max_curves", max_curves, 1)
    view = View(tree, confidence, time_label)
    if reference is not None and reference not in view.nodes:
        known = ", ".join(map(str, view.nodes))
        raise InvalidParameterError(f"reference must be a leaf ({known}); got {reference!r}")
    at = _times(times, estimator.leaves_.unique_times)
    end, n_leaves = float(at[-1]), len(view.nodes)
    texts = _hazard_ratios(view, reference)
    counts = n_leaves if at_risk else 0
    if X is None:
        rules = [""] * n_leaves if view.is_soft else list(map(rule_text, leaf_rules(tree)))
        labels = [
            f"leaf {node}{f', {ratio}' if ratio else ''}{f': {rule}' if rule else ''}"
            for node, rule, ratio in zip(view.nodes, rules, texts, strict=True)
        ]
        labels = list(map(_wrapped, labels))
        lines = sum(label.count("\n") + 1 for label in labels)
        ax = on_axes(ax, height=3.6 + _LINE * (lines + counts))
        _draw_estimates(ax, view, labels, end)
    else:
        leaf = tree.apply(X)
        found = {node: int((leaf == node).sum()) for node in view.nodes}
        labels = [
            f"leaf {node} ({', '.join(filter(None, (counted(found[node], 'row'), ratio)))})"
            for node, ratio in zip(view.nodes, texts, strict=True)
        ]
        height = max(3.8 + _LINE * counts, 0.4 + 1.2 * _LINE * sum(map(bool, found.values())))
        ax = on_axes(ax, height=height)
        _draw_predictions(ax, estimator, X, leaf, at, labels, max_curves)
        if kaplan_meier:
            style: dict[str, Any] = {"linestyle": ":", "linewidth": 1.2}
            for shown, colour in zip(view.leaves, view.colours, strict=True):
                curve: Any = shown.panel
                if curve.estimate is not None:
                    dotted = steps(curve.estimate.x, curve.estimate.y, end)
                    ax.plot(*dotted, drawstyle="steps-post", color=colour, **style)
            ax.plot([], [], color=INK, label="Kaplan–Meier", **style)
    dressed(ax, time_label, "survival")
    ax.set_ylim(0.0, 1.02)
    ax.set_xlim(0.0, end)
    if at_risk:
        _draw_at_risk(ax, view, end)
    if X is None:
        legend(ax, below=True, lines=counts + 1.5 * bool(counts))
    else:
        legend(ax)
    return ax


def _hazard_ratios(view: View, reference: int | None) -> list[str]:
    """Text for the hazard ratio of every leaf to one of them."""
    if reference is None:
        return [""] * len(view.nodes)
    follow_up = [leaf.panel.follow_up for leaf in view.leaves]  # type: ignore[union-attr]
    found = hazard_ratios(follow_up, view.nodes.index(reference), view.confidence)
    texts = []
    for node, (ratio, low, high) in zip(view.nodes, found.tolist(), strict=True):
        text = f"hazard ratio {number(ratio, 3)} {interval(low, high, 3)}".strip()
        texts.append("reference" if node == reference else text)
    return texts


def _draw_estimates(ax: Axes, view: View, labels: list[str], end: float) -> None:
    """Kaplan–Meier estimates of the leaves that have rows."""
    inches = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted()).width
    for leaf, colour, label in zip(view.leaves, view.colours, labels, strict=True):
        curve: Any = leaf.panel
        if curve.estimate is not None:
            draw_estimate(ax, curve, colour, end, inches).set_label(label)


def _draw_predictions(
    ax: Axes, tree: Any, X: Any, leaf: Any, at: Floats, labels: list[str], max_curves: int
) -> None:
    """Draw predicted curves of rows, one bundle per leaf with its median."""
    curves = _step_curves(tree.leaves_, float(at[-1]))
    survival = None if curves else tree.predict_survival_function(X, times=at)
    for k, (node, colour) in enumerate(leaf_colours(tree).items()):
        rows = np.flatnonzero(leaf == node)
        if not len(rows):
            continue
        style: dict[str, Any] = {"color": colour, "label": labels[k]}
        if survival is None:
            ax.plot(*curves[k], drawstyle="steps-post", linewidth=2.0, **style)
            continue
        bundle = survival[rows]
        order = np.argsort(bundle[:, -1], kind="stable")
        shown = np.unique(np.linspace(0, len(order) - 1, max_curves).round().astype(np.int64))
        ax.plot(at, bundle[order[shown]].T, color=colour, alpha=0.15, linewidth=0.8)
        ax.plot(at, np.median(bundle, axis=0), linewidth=2.5, **style)


def _draw_at_risk(ax: Axes, view: View, end: float) -> None:
    """Numbers at risk below the axes, a row per leaf at the ticks of the time axis."""
    from matplotlib.transforms import ScaledTranslation

    ticks = [float(tick) for tick in ax.get_xticks() if 0 <= tick <= end]
    style: dict[str, Any] = {"fontsize": "small", "va": "top", "parse_math": False}

    def write(x: float, line: float, text: str, dx: float = 0.0, **more: Any) -> None:
        line += ax.get_xlabel().count("\n")
        shift = ScaledTranslation(dx, -0.55 - line * _LINE, ax.figure.dpi_scale_trans)
        ax.text(x, 0.0, text, transform=ax.get_xaxis_transform() + shift, **style, **more)

    write(0.0, 0, "At risk", -0.2, ha="right", color=FAINT)
    for k, counts in enumerate(view.at_risk(ticks)):
        colour = view.colours[k]
        write(0.0, k + 1, f"leaf {view.nodes[k]}", -0.2, ha="right", color=colour)
        for tick, count in zip(ticks, counts, strict=True):
            write(tick, k + 1, f"{count:,}", ha="center", color=INK)


@on_any_background
def plot_survival(
    tree: Any,
    X: Any,
    *,
    cause: int | None = None,
    times: ArrayLike | None = None,
    time_label: str = "time",
    ax: Axes | None = None,
) -> Axes:
    """Predicted survival of rows, each with its path through the tree.

    Rows of one leaf share a curve: there is one line per leaf that is reached, and the legend names
    its rows and its rule. In a soft tree every row has its own line, with the probability of the
    branch taken at every split.

    Parameters
    ----------
    tree : fitted survival tree, or tree for competing risks
    X : DataFrame or array, shape (n, n_features_in_)
        The rows, at most 20 for a soft tree. The legend gives their positions, from 0.
    cause : int, optional
        Number of the cause whose cumulative incidence is drawn, for a ``CompetingRisksTree``. By
        default it is the probability of no event of any cause.
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
        The legend with the paths is below the axes.

    Raises
    ------
    TypeError
        If the tree does not predict survival.
    ValueError
        If ``X`` has no rows, or more than 20 for a soft tree; if the tree has no such ``cause``;
        and as from the predictions of the tree.
    NotFittedError, InfeasibleError
        If there is no tree.

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
    fitted = check_tree(tree, "plot_survival")
    leaves: Any = fitted.leaves_
    has_causes = leaves.compared == "incidences"
    if not has_causes:
        check_survival_tree(tree, "plot_survival")
    if cause is not None:
        if not has_causes:
            raise ValueError(f"cause={cause!r} is given, but {type_name(tree)} has no causes")
        leaves.check_cause(cause)
    at = _times(times, leaves.unique_times)
    leaf, end = fitted.apply(X), float(at[-1])
    if not len(leaf):
        raise ValueError("plot_survival draws the curves of rows; X has none")
    curves = _step_curves(leaves, end, cause)
    if not curves and len(leaf) > _MOST_ROWS:
        raise ValueError(
            f"plot_survival draws a line per row of a soft tree, at most {_MOST_ROWS}; X has "
            f"{len(leaf)} rows (plot_leaf_curves draws many)"
        )
    lines: list[tuple[Any, str, str]] = []
    if curves:
        colours = leaf_colours(tree)
        for node, rule, curve in zip(colours, leaf_rules(fitted), curves, strict=True):
            rows = np.flatnonzero(leaf == node)
            if len(rows):
                label = f"{_rows_named(rows)}: leaf {node}, {rule_text(rule)}"
                lines.append((curve, colours[node], _wrapped(label)))
    else:
        survival = tree.predict_survival_function(X, times=at)
        paths = _soft_paths(fitted.tree_, leaf, tree.predict_proba_branch(X))
        for row, path in enumerate(paths):
            lines.append(((at, survival[row]), label_colour(row), _wrapped(f"row {row}: {path}")))
    # The legend takes no space from the curves.
    ax = on_axes(ax, height=3.6 + _LINE * sum(label.count("\n") + 1 for *_, label in lines))
    style: dict[str, Any] = {"drawstyle": "steps-post"} if curves else {}
    for curve, colour, label in lines:
        ax.plot(*curve, color=colour, label=label, linewidth=2.0, **style)
    free = "predicted probability of no event" if has_causes else "predicted survival"
    dressed(ax, time_label, free if cause is None else f"predicted incidence of cause {cause}")
    ax.set_ylim(0.0, 1.02)
    ax.set_xlim(0.0, end)
    legend(ax, below=True)
    return ax


def _times(times: ArrayLike | None, unique: Floats) -> Floats:
    if times is None:
        return np.linspace(0.0, float(unique[-1]), _N_TIMES)
    at = np.sort(check_times(times))
    if not at.size:
        raise ValueError("times is empty")
    check_real("the last of times", float(at[-1]), np.finfo(float).tiny)
    return at


def _step_curves(leaves: Any, end: float, cause: int | None = None) -> list[tuple[Floats, ...]]:
    """Steps of every leaf as drawn; empty for leaves with smooth curves."""
    if not leaves.has_steps:
        return []
    times = leaves.unique_times
    if cause is not None:
        drawn = (
            steps(times, 1 - incidence, end) for incidence in leaves.incidence_at(cause, times)
        )
        return [(x, 1 - free) for x, free in drawn]
    return [steps(times, survival, end) for survival in leaves.survival_at(times)]


def _rows_named(rows: Integers) -> str:
    """Such as "row 3", "rows 0–4, 7", "38 rows"."""
    if len(rows) == 1:
        return f"row {rows[0]}"
    runs = np.split(rows, np.flatnonzero(np.diff(rows) > 1) + 1)
    if len(runs) > _MOST_RUNS:
        return f"{len(rows)} rows"
    shown = (str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)
    return f"rows {', '.join(shown)}"


def _soft_paths(tree: Any, leaf: Integers, branch: Floats) -> list[str]:
    """Branches that the rows take, with their probabilities, and the leaf at the end."""
    place = {node: k for k, node in enumerate(np.sort(tree.splits).tolist())}
    paths = []
    for end, left in zip(leaf.tolist(), branch, strict=True):
        node, steps = 0, []
        while node in place:
            share = left[place[node]]
            children = tree.children_right if share < 0.5 else tree.children_left
            way = f"right {1 - share:.2f}" if share < 0.5 else f"left {share:.2f}"
            steps.append(way)
            node = int(children[node])
        paths.append(", ".join([*steps, f"leaf {end}"]))
    return paths


def _wrapped(text: str) -> str:
    lines = textwrap.wrap(text, _TEXT_WIDTH, max_lines=_MOST_LINES, placeholder=" …")
    return "\n".join(in_lines(line, _TEXT_INCHES, "small") for line in lines)
