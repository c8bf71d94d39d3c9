"""What all pictures share: new figures, steps, texts, legends beside the lines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._leaves.base import SurvivalLeaves
from bristlecone._view.fitted import FittedTree, check_tree
from bristlecone._view.palette import FAINT, INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "check_survival_tree",
    "dressed",
    "legend_below",
    "legend_beside",
    "new_figure",
    "on_axes",
    "plain",
    "rows_text",
    "steps",
    "visible_marks",
]

Floats = NDArray[np.float64]

# Points of a step curve that are drawn at most, twice: more cannot be told apart.
_LEVELS = 250


def new_figure(width: float, height: float, **options: Any) -> Any:
    """A pyplot figure of this size in inches; ImportError names the extra."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError(
            "plots need matplotlib: python -m pip install 'bristlecone[plot]'"
        ) from None
    return pyplot.figure(figsize=(width, height), **options)


def on_axes(ax: Axes | None, width: float = 6.5, height: float = 3.8) -> Axes:
    """The axes themselves, or those of a new figure that makes room for what stands beside."""
    if ax is not None:
        return ax
    return new_figure(width, height, layout="constrained").add_subplot()


def check_survival_tree(tree: Any, what: str) -> FittedTree:
    """The tree itself; TypeError unless it predicts survival."""
    fitted = check_tree(tree, what)
    if not isinstance(fitted.leaves_, SurvivalLeaves):
        raise TypeError(
            f"{what} draws survival curves, which a {type(tree).__name__} does not predict"
        )
    return fitted


def plain(text: object) -> str:
    """Text that matplotlib shows as it is: a dollar does not begin a formula."""
    return str(text).replace("$", r"\$")


def rows_text(count: int) -> str:
    """Such as "1 row", "20 rows"."""
    return f"{count} row" if count == 1 else f"{count} rows"


def dressed(ax: Axes, x: str, y: str) -> Axes:
    """The axes with labels and without a box."""
    ax.set_xlabel(plain(x))
    ax.set_ylabel(plain(y))
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["bottom", "left"]].set_color(FAINT)
    ax.tick_params(color=FAINT)
    return ax


def legend_beside(ax: Axes, **options: Any) -> Any:
    """Legend to the right of the axes, where no line is."""
    return ax.legend(
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0.0,
        frameon=False,
        labelcolor=INK,
        **options,
    )


def legend_below(ax: Axes, **options: Any) -> Any:
    """Legend below the axes and their label, for long texts."""
    from matplotlib.transforms import ScaledTranslation

    below = ScaledTranslation(0.0, -0.55, ax.figure.dpi_scale_trans)
    return ax.legend(
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0),
        bbox_transform=ax.transAxes + below,
        borderaxespad=0.0,
        frameon=False,
        labelcolor=INK,
        **options,
    )


def steps(x: Floats, y: Floats, end: float, *more: Floats) -> tuple[Floats, ...]:
    """Points of a survival curve for ``drawstyle="steps-post"``: from (0, 1) to ``end``.

    Where the curve does not fall there is no point, and of falls too small to be seen only some;
    ``more`` are values at the same points (1 at 0), such as confidence limits.
    """
    inside = x <= end
    columns = [np.concatenate([[1.0], values[inside]]) for values in (y, *more)]
    at = np.concatenate([[0.0], x[inside]])
    kept = np.append(True, np.diff(columns[0]) != 0)
    if kept.sum() > 2 * _LEVELS:
        kept = np.append(True, np.diff(np.round(columns[0] * _LEVELS)) != 0)
    kept[-1] = True
    if at[-1] < end:
        at, kept = np.append(at, end), np.append(kept, True)
        columns = [np.append(column, column[-1]) for column in columns]
    return (at[kept], *(column[kept] for column in columns))


def visible_marks(x: Floats, end: float, most: int = 200) -> Floats:
    """Of the times ``x`` those that can be told apart on an axis up to ``end``, if many."""
    if len(x) <= most:
        return x
    return x[np.unique(np.floor(x / end * most), return_index=True)[1]]
