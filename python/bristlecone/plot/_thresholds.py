"""Thresholds over the histogram of their column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bristlecone._data.arrays import type_name
from bristlecone._data.texts import one_line
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.columns import NumericColumn
from bristlecone._encoder.features import Threshold
from bristlecone._encoder.rules import split_questions
from bristlecone._encoder.table import read_table
from bristlecone._tree import Tree
from bristlecone._types import Floats
from bristlecone._view.fitted import FittedTree, check_tree
from bristlecone._view.palette import FAINT, INK, LABELS, RULE
from bristlecone.plot._axes import (
    dressed,
    in_lines,
    legend_above,
    on_any_background,
    on_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_BINS = 40
# Inches for the list of thresholds.
_LIST = 4.6
# Largest shares of the rows at either end that may be cut off as far away.
_FAR = 0.02


@on_any_background
def plot_thresholds(
    tree: Any, X: Any, column: str | int | None = None, *, ax: Axes | None = None
) -> Axes:
    """Histogram of a column with its candidate thresholds, and those that the tree uses.

    Parameters
    ----------
    tree : fitted tree with yes-no splits
    X : DataFrame or array, shape (n, n_features_in_)
        Rows, such as those of the fit.
    column : str or int, optional
        Name or position of a numeric column; by default the first one that the tree splits on.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        Thresholds of the encoder are thin lines, and those of the tree thick ones. For trees over
        every threshold, only those of the tree are drawn.

    Raises
    ------
    TypeError
        For a soft tree, and for a custom encoder, whose thresholds are unknown.
    ValueError
        If there is no such column, if it is not numeric, or if no column is given and the tree
        splits on no numeric column.
    NotFittedError, InfeasibleError
        If there is no tree.

    See Also
    --------
    bristlecone.BinaryEncoder : Chooses the thresholds.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> from bristlecone.plot import plot_thresholds
    >>> X = [[1.0], [2.0], [8.0]]
    >>> tree = OptimalTreeRegressor(max_depth=1).fit(X, [1.0, 3.0, 11.0])
    >>> ax = plot_thresholds(tree, X)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['used by the tree: 5', 'offered by the encoder (2)']
    """
    fitted = check_tree(tree, "plot_thresholds")
    name = _column(tree, fitted, column)
    values = _numbers(fitted, X, name)
    asked = {
        question.value: question.name.rpartition(" <= ")[2]
        for question in split_questions(fitted.encoder_, fitted.tree_).values()
        if question.kind == "at most" and question.column == name
    }
    features = [] if fitted.encoder_.thresholds == "all" else fitted.encoder_.features_
    offered = [
        feature.value
        for feature in features
        if isinstance(feature, Threshold) and feature.column == name
    ]
    ax = on_axes(ax)
    shown, hidden = _shown(values, [*asked, *offered])
    ax.hist(shown, bins=_edges(shown), color=RULE, edgecolor="white", linewidth=0.4)
    texts = ", ".join(asked[value] for value in sorted(asked))
    listed = in_lines(f"used by the tree: {texts}", _LIST, most=3)
    for k, value in enumerate(sorted(asked)):
        label = listed if k == 0 else None
        ax.axvline(value, color=LABELS[1], linewidth=2.2, label=label)
    for k, value in enumerate(offered):
        label = f"offered by the encoder ({len(offered)})" if k == 0 else None
        ax.axvline(value, color=FAINT, linewidth=0.8, linestyle=(0, (4, 2)), label=label)
    dressed(ax, one_line(f"{name} ({hidden})" if hidden else name), "rows")
    if asked or offered:
        legend_above(ax, labelcolor=INK)
    return ax


def _shown(values: Floats, thresholds: list[float]) -> tuple[Floats, str]:
    """Values without distant ones, which would hide the thresholds, and a note about these."""
    low, high = np.quantile(values, [_FAR, 1 - _FAR])
    # Unlike those of numpy, floats become infinite without a warning.
    low, high = float(min([low, *thresholds])), float(max([high, *thresholds]))
    pad = high / 2 - low / 2
    low, high = max(low - pad, values.min()), min(high + pad, values.max())
    counts = {f"below {low:.4g}": (values < low).sum(), f"above {high:.4g}": (values > high).sum()}
    left_out = ", ".join(f"{count} {where}" for where, count in counts.items() if count)
    shown = values[(values >= low) & (values <= high)]
    return shown, f"not shown: {left_out}" if left_out else ""


def _edges(values: Floats) -> list[float]:
    """Edges of equal bins; fewer if the values are neighbouring numbers."""
    low, high = float(values.min()), float(values.max())
    if low == high:
        pad = max(0.5, abs(low) / 4)
        return [low - pad, low + pad]
    share = np.linspace(0, 1, int(np.clip(np.sqrt(values.size), 1, _MOST_BINS)) + 1)
    return sorted(set(((1 - share) * low + share * high).tolist()))


def _column(tree: Any, fitted: FittedTree, column: str | int | None) -> str:
    """Name of the column that is drawn."""
    encoder = fitted.encoder_
    if not isinstance(fitted.tree_, Tree):
        raise TypeError(
            f"{type_name(tree)} has no thresholds: its splits weigh many columns at once"
        )
    if not isinstance(encoder, BinaryEncoder):
        raise TypeError(
            f"plot_thresholds needs the thresholds of columns, which {type_name(encoder)} "
            "does not report"
        )
    names = [schema.name for schema in encoder.columns_]
    if column is None:
        cut = fitted.tree_.column[~np.isnan(fitted.tree_.threshold)]
        if not len(cut):
            raise ValueError("the tree splits on no numeric column; pass column=")
        return names[cut[0]]
    if isinstance(column, str):
        if column not in names:
            raise ValueError(f"there is no column {column!r}; the columns are {', '.join(names)}")
        return column
    if isinstance(column, bool) or not isinstance(column, int | np.integer):
        raise TypeError(f"column must be a name or a position; got {column!r}")
    if not 0 <= column < len(names):
        raise ValueError(f"column must lie between 0 and {len(names) - 1}; got {column}")
    return names[column]


def _numbers(fitted: FittedTree, X: Any, name: str) -> Floats:
    """Values of the column that are not missing."""
    names = [schema.name for schema in fitted.encoder_.columns_]
    named = hasattr(fitted.encoder_, "feature_names_in_")
    column = read_table(X, "plot_thresholds").aligned(names, named, "the tree", [name])[name]
    if not isinstance(column, NumericColumn):
        raise ValueError(f"column {name!r} holds categories, which have no thresholds")
    values = np.asarray(column.values, dtype=np.float64)
    values = values if column.missing is None else values[~column.missing]
    if not len(values):
        raise ValueError(f"column {name!r} has no values")
    return values
