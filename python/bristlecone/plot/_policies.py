"""Pictures of policies: overlap of propensity scores, and survival by treatment in every leaf."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from bristlecone._data.arrays import type_name
from bristlecone._data.checks import check_confidence
from bristlecone._data.outcomes import check_survival
from bristlecone._data.rows import check_length, check_row_labels
from bristlecone._data.targets import known_codes
from bristlecone._encoder.rules import leaf_rules, rule_text
from bristlecone._leaves.follow_up import FollowUp
from bristlecone._leaves.labels import plain_labels
from bristlecone._leaves.shown import Curve
from bristlecone._types import Floats
from bristlecone._view.fitted import check_tree
from bristlecone._view.palette import FAINT, INK, RULE, label_colour
from bristlecone.curves import kaplan_meier
from bristlecone.plot._axes import (
    draw_estimate,
    dressed,
    in_legend,
    in_lines,
    legend,
    on_any_background,
    on_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Bars of a histogram of propensity scores.
_BINS = 25
# Leaves side by side, and their size in inches.
_MOST_ACROSS, _WIDTH, _HEIGHT = 3, 3.0, 2.7
# Characters of the rule above a leaf, on at most three lines.
_RULE_WIDTH, _RULE_LINES = 40, 3
# Inches for the names of treatments beside the axes, and for texts above and within a leaf.
_NAME, _TITLE, _LABEL = 1.3, 2.5, 1.9


@on_any_background
def plot_overlap(estimates: Any, *, ax: Axes | None = None) -> Axes:
    """Estimated propensity scores of every treatment, by the treatment that the rows had.

    Treatments overlap if, for each treatment, the histograms of the rows that had it and of the
    other rows cover the same range, and no score is near 0. Otherwise rewards rely on a few rows or
    only on the outcome model.

    Parameters
    ----------
    estimates : EstimatedRewards
        What ``PolicyTree.estimate_rewards`` returned.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        A band for each treatment. The histograms of a band are the shares of the rows that had each
        treatment, over its propensity score; the dotted line is ``min_propensity``.

    Raises
    ------
    TypeError
        If ``estimates`` is not an EstimatedRewards.
    ValueError
        If the propensity scores of all treatments are not known.
    ImportError
        If matplotlib is not installed.

    See Also
    --------
    bristlecone.PolicyTree : Its method ``estimate_rewards`` estimates the propensity scores.

    Examples
    --------
    >>> import numpy as np
    >>> from bristlecone import PolicyTree
    >>> from bristlecone.plot import plot_overlap
    >>> X = np.arange(40.0)[:, None]
    >>> treatment = np.tile(["a", "b"], 20)
    >>> tree = PolicyTree(reward="inverse-propensity")
    >>> ax = plot_overlap(tree.estimate_rewards(X, X[:, 0], treatment=treatment))
    >>> ax.get_xlabel()
    'propensity score'
    """
    if not hasattr(estimates, "propensity") or not hasattr(estimates, "lacks_overlap"):
        raise TypeError(
            "plot_overlap needs what PolicyTree.estimate_rewards returns; got "
            f"{type_name(estimates)}"
        )
    if estimates.propensity is None:
        raise ValueError(
            "plot_overlap needs the propensity score of every treatment; those of the treatments "
            "that the rows had are not enough"
        )
    names = [str(name) for name in plain_labels(estimates.treatments)]
    ax = on_axes(ax, height=1.2 + 0.9 * len(names))
    edges = np.linspace(0.0, 1.0, _BINS + 1)
    for band in range(len(names)):
        base = len(names) - 1 - band
        shares = [
            _shares(estimates.propensity[estimates.treatment == group, band], edges)
            for group in range(len(names))
        ]
        unit = 0.85 / max(float(np.max(shares)), 1e-12)
        ax.axhline(base, color=RULE, linewidth=0.8, zorder=1)
        for group, share in enumerate(shares):
            heights = base + unit * np.append(share, share[-1])
            style: dict[str, Any] = {"drawstyle": "steps-post", "linewidth": 1.5, "zorder": 3}
            label = in_lines(f"rows with {names[group]}", _NAME) if band == 0 else None
            colour = label_colour(group)
            ax.plot(edges, heights, color=colour, label=label, **style)
            ax.fill_between(
                edges, base, heights, step="post", color=colour, alpha=0.15, linewidth=0
            )
    ax.axvline(estimates.min_propensity, color=FAINT, linestyle=":", linewidth=1.0)
    dressed(ax, "propensity score", "treatment")
    places = [len(names) - 1 - band for band in range(len(names))]
    ax.set_yticks(places, [in_lines(name, _NAME) for name in names])
    ax.set_xlim(0.0, 1.0)
    ax.set_ylim(-0.05, len(names))
    legend(ax)
    return ax


def _shares(values: Floats, edges: Floats) -> Floats:
    counts = np.histogram(values[np.isfinite(values)], edges)[0]
    return np.asarray(counts / max(counts.sum(), 1))


@on_any_background
def plot_treatment_curves(
    tree: Any,
    X: Any,
    y: Any,
    *,
    treatment: ArrayLike,
    confidence: float = 0.95,
    time_label: str = "time",
    ax: Axes | None = None,
) -> Axes:
    """Kaplan–Meier curves of the rows of each treatment, in every leaf of a policy.

    The rows may be those of the fit or others. The curves are not adjusted: outside a randomised
    trial, the rows of a leaf that had different treatments may also differ in other ways.

    Parameters
    ----------
    tree : fitted PolicyTree
    X : DataFrame or array, shape (n, n_features_in_)
        Rows with the columns of the fit.
    y : structured array, DataFrame or pair
        Event and time of the rows, as for survival trees, without delayed entry.
    treatment : array-like, shape (n,)
        Treatment that every row had, all among ``treatments_``.
    confidence : float, default=0.95
        Confidence level of the bands (log-log).
    time_label : str, default="time"
        Label of the time axis, such as "days".
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        Its ``child_axes`` are the leaves, left to right, with their rule and the treatment that
        they prescribe, whose curve is thick. The legends have the rows and events of the
        treatments. The dashed line is the horizon of the tree.

    Raises
    ------
    TypeError
        If the tree is not a policy.
    ValueError
        If ``y`` has no event and time, and if treatments or numbers of rows do not match.
    NotFittedError, InfeasibleError
        If there is no tree.
    ImportError
        If matplotlib is not installed.

    See Also
    --------
    plot_tree : The tree with the estimated reward of each treatment.

    Examples
    --------
    >>> import numpy as np
    >>> from bristlecone import PolicyTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.plot import plot_treatment_curves
    >>> aids = load("aids")
    >>> X, arm = aids.X[["cd4", "age"]], aids.X["tx"]
    >>> tree = PolicyTree(horizon=270, max_depth=1, min_samples_leaf=200)
    >>> tree = tree.fit(X, aids.y, treatment=arm, propensity={0: 0.5, 1: 0.5})
    >>> ax = plot_treatment_curves(tree, X, aids.y, treatment=arm, time_label="days")
    >>> len(ax.child_axes) == tree.n_leaves_
    True
    """
    fitted: Any = check_tree(tree, "plot_treatment_curves")
    if not hasattr(fitted.leaves_, "treated"):
        raise TypeError(
            f"plot_treatment_curves draws policies; {type_name(tree)} prescribes no treatment"
        )
    check_confidence(confidence)
    check_row_labels(X, y=y, treatment=treatment)
    leaf = fitted.apply(X)
    event, time, _ = check_survival(y, without_entry="plot_treatment_curves")
    check_length(time, "y", len(leaf))
    labels = fitted.leaves_.labels
    arm = known_codes("treatment", treatment, labels, len(leaf))
    names = fitted.leaves_.names
    nodes = fitted.tree_.leaves.tolist()
    across = 2 if len(nodes) == 4 else min(len(nodes), _MOST_ACROSS)
    down = -(-len(nodes) // across)
    ax = on_axes(ax, _WIDTH * across + 0.4, _HEIGHT * down + 0.3)
    ax.set_axis_off()
    end = float(time.max()) or 1.0
    rules = list(map(rule_text, leaf_rules(fitted)))
    horizon = fitted.certificate_.parameters["horizon"]
    for k, node in enumerate(nodes):
        inset = ax.inset_axes(_place(k, across, down))
        own = int(fitted.leaves_.label[k])
        for code, name in enumerate(names):
            rows = (leaf == node) & (arm == code)
            if not rows.any():
                continue
            estimate = kaplan_meier((event[rows], time[rows]))
            lower, upper = estimate.confidence_interval(confidence)
            follow_up = FollowUp.of(event[rows], time[rows])
            curve = Curve(estimate.x, estimate.y, True, estimate, lower, upper, follow_up)
            line = draw_estimate(inset, curve, label_colour(code), end, _WIDTH)
            line.set_linewidth(2.4 if code == own else 1.2)
            label = f"{name}: {rows.sum():,} rows, {event[rows].sum():,} events"
            line.set_label(in_legend(label, _LABEL, "x-small"))
        if horizon is not None:
            inset.axvline(horizon, color=FAINT, linestyle="--", linewidth=0.8)
        dressed(inset, time_label, "survival" if k % across == 0 else "")
        inset.set_xlim(0.0, end)
        inset.set_ylim(0.0, 1.02)
        rule = textwrap.wrap(rules[k], _RULE_WIDTH, max_lines=_RULE_LINES, placeholder=" …")
        rule = [in_lines(line, _TITLE, "small", 1) for line in rule]
        title = "\n".join([*rule, in_lines(f"leaf {node}: {names[own]}", _TITLE, "small", 1)])
        inset.set_title(title, fontsize="small", loc="left", color=INK)
        if inset.lines:
            inset.legend(
                loc="lower left", frameon=False, fontsize="x-small", labelcolor=INK, borderpad=0.2
            )
    return ax


def _place(k: int, across: int, down: int) -> tuple[float, float, float, float]:
    """Left, bottom, width and height of the leaf in this place, as shares of the whole."""
    row, column = divmod(k, across)
    width, height = 1.0 / across, 1.0 / down
    left = column * width + 0.13 * width
    bottom = 1.0 - (row + 1) * height + 0.17 * height
    return left, bottom, 0.82 * width, 0.56 * height
