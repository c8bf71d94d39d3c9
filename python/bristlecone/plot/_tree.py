"""The tree itself, with a panel for every leaf."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bristlecone._data.checks import check_choice, check_real
from bristlecone._view.fitted import check_tree
from bristlecone._view.view import View
from bristlecone.plot._across import Across
from bristlecone.plot._arrange import Arrangement
from bristlecone.plot._axes import check_axes, new_figure, on_any_background
from bristlecone.plot._down import Down
from bristlecone.plot._panels import painter_of
from bristlecone.plot._sheet import InchRuler, Sheet

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# In inches: a full page, and the default width per leaf.
_PAGE, _LEAF = 7.0, 1.75
# Text of six points is legible on screens, too.
_DPI = 200
# A sheet that does not fit its axes is reduced in steps of this size.
_STEP = 0.96


@on_any_background
def plot_tree(
    tree: Any,
    *,
    width: float | None = None,
    direction: str = "auto",
    confidence: float = 0.95,
    time_label: str = "time",
    ax: Axes | None = None,
) -> Axes:
    """A fitted tree with its splits and a panel for every leaf.

    For survival, a panel has the Kaplan–Meier estimate with confidence band and censored rows, and
    the curve that the tree predicts. Next to it are rows, events, the median with its confidence
    interval, and numbers at risk. For labels there are bars of the shares of the classes, or of the
    values of the treatments; for numbers a box plot; for a custom task cost and value as text. A
    soft split shows its largest weights. Colours follow the risk, the prediction, or the label.

    Parameters
    ----------
    tree : fitted tree
        Any estimator of this package.
    width : float, optional
        Width of a new figure in inches, such as 3.35 for a column and 7 for a page. By default at
        most 7, or what leaves side by side need for ``direction="down"``. The height follows from
        the tree.
    direction : {"auto", "down", "across"}, default="auto"
        "down" has the root at the top and the leaves side by side. "across" has the root at the
        left and a row per leaf, with its numbers in a table; if there is no room, numbers at risk
        are left out first, then medians. "auto" is "across" if leaves side by side would be too
        narrow.
    confidence : float, default=0.95
        Level of bands and intervals.
    time_label : str, default="time"
        Label of the time axis, such as "days from surgery".
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default. A tree that does not fit is drawn smaller, with
        its text.

    Returns
    -------
    matplotlib Axes
        Axes whose data coordinates are inches; each panel of a leaf is a child axes.

    Raises
    ------
    TypeError
        If the estimator is not a tree of this package.
    ValueError
        If a parameter is not as described.
    ImportError
        If matplotlib is not installed.
    NotFittedError, InfeasibleError
        If there is no tree.

    See Also
    --------
    plot_leaf_curves : The curves of all leaves on one pair of axes.
    bristlecone.export.export_text : The tree in words.

    Notes
    -----
    All text stays text in PDF files; in SVG files with matplotlib's setting
    ``svg.fonttype="none"``.

    Examples
    --------
    >>> from bristlecone import OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.plot import plot_tree
    >>> veterans = load("veterans")
    >>> tree = OptimalSurvivalTree(max_depth=1).fit(veterans.X, veterans.y)
    >>> ax = plot_tree(tree, width=3.35, time_label="days")
    >>> [text.get_text() for text in ax.texts][:2]
    ['yes', 'no']
    """
    fitted = check_tree(tree, "plot_tree")
    if width is not None:
        check_real("width", width, 1.0)
    check_choice("direction", direction, ("auto", "down", "across"))
    if ax is not None and width is not None:
        raise ValueError("width is that of a new figure; it does not go with ax")
    view = View(fitted, confidence, str(time_label))
    painter = painter_of(view, InchRuler())
    # Width that leaves side by side need.
    needed = len(view.n) * painter.narrowest + 0.4

    def arranged(wide: float) -> Arrangement:
        is_down = direction == "down" or (direction == "auto" and needed <= wide)
        return (Down if is_down else Across)(painter, wide)

    if ax is None:
        wide = min(_PAGE, _LEAF * max(2, len(view.n))) if width is None else float(width)
        if width is None and direction == "down":
            wide = max(wide, needed)
        arrangement = arranged(wide)
        figure = new_figure(wide, arrangement.height, dpi=_DPI)
        axes: Axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        arrangement.draw(Sheet(axes, wide, arrangement.height, 1.0))
        return axes
    box = check_axes(ax).get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    scale = 1.0
    while (arrangement := arranged(box.width / scale)).height > box.height / scale:
        scale *= _STEP
    arrangement.draw(Sheet(ax, box.width / scale, box.height / scale, scale))
    return ax
