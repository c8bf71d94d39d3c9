"""How often columns recur in searches over resampled rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bristlecone._data.arrays import type_name
from bristlecone._view.palette import FAINT, LABELS
from bristlecone.plot._axes import (
    dressed,
    in_lines,
    legend_above,
    on_any_background,
    on_axes,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 25
# Inches for their names.
_NAME = 2.4


@on_any_background
def plot_stability(found: Any, *, ax: Axes | None = None) -> Axes:
    """Shares of the resamples whose tree splits on each column, at the root and anywhere.

    Parameters
    ----------
    found : Stability
        What ``bristlecone.trust.stability`` returns.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        One bar per column, the most frequent first: at most 25, and only those that some tree
        splits on. Names of columns that the fitted tree uses are bold.

    Raises
    ------
    TypeError
        If ``found`` is not a Stability.

    See Also
    --------
    bristlecone.trust.stability : Computes it.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> from bristlecone.plot import plot_stability
    >>> from bristlecone.trust import stability
    >>> X, y = [[0.0], [0.0], [1.0], [1.0]], [1.0, 2.0, 8.0, 9.0]
    >>> tree = OptimalTreeRegressor(max_depth=1).fit(X, y)
    >>> ax = plot_stability(stability(tree, X, y, n_resamples=10, random_state=0))
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['x0']
    """
    if not hasattr(found, "n_resamples") or not hasattr(found, "columns"):
        raise TypeError(f"plot_stability takes what stability returns; got {type_name(found)}")
    table = {name: np.asarray(found.columns[name]) for name in ("column", "root", "anywhere")}
    shown = np.flatnonzero(table["anywhere"] > 0)[:_MOST]
    ax = on_axes(ax, height=1.4 + 0.27 * max(1, shown.size))
    place = np.arange(shown.size)
    ax.barh(place, table["anywhere"][shown], color=FAINT, alpha=0.45, label="anywhere")
    ax.barh(place, table["root"][shown], height=0.4, color=LABELS[0], label="at the root")
    names = [in_lines(str(name), _NAME, most=1) for name in table["column"][shown]]
    dressed(ax, f"share of {found.n_resamples} resamples whose tree splits on the column", "")
    ax.set_yticks(place, names)
    is_used = np.asarray(found.columns["is_used"])[shown]
    for label, used in zip(ax.get_yticklabels(), is_used, strict=True):
        label.set_fontweight("bold" if used else "normal")
    ax.invert_yaxis()
    ax.set_xlim(0.0, 1.0)
    legend_above(ax, ncols=2)
    return ax
