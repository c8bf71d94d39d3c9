"""Parts that all pictures share: new figures, steps, texts, legends outside the axes."""

from __future__ import annotations

import colorsys
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ParamSpec

import numpy as np

from bristlecone._data.arrays import type_name
from bristlecone._data.texts import number, printable
from bristlecone._leaves.shown import Curve
from bristlecone._types import Floats
from bristlecone._view.fitted import FittedTree, check_tree
from bristlecone._view.palette import FAINT, INK
from bristlecone._view.ruler import Ruler
from bristlecone.plot._sheet import InchRuler

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Most ticks of censored rows per inch; more could not be distinguished.
_MARKS = 24
# Half the most points of a step curve; more could not be distinguished.
_LEVELS = 250
# Shortest line of a label of an axis, in inches, and how much longer than the axis it may be: there
# are margins at both ends.
_SHORTEST, _BEYOND = 1.5, 1.2

# Parts of artists that have a colour.
_COLOURS = "color", "facecolor", "edgecolor", "markerfacecolor", "markeredgecolor"

P = ParamSpec("P")


def on_any_background(plot: Callable[P, Axes]) -> Callable[P, Axes]:
    """A plot that can be read on a dark figure, too.

    The colours are made for white paper. On a dark figure their lightness is inverted, except the
    colours of the style and of what was on the axes before.
    """

    @wraps(plot)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> Axes:
        given: Any = kwargs.get("ax")
        before = set(given.findobj(_is_drawn)) if hasattr(given, "findobj") else set()
        ax = plot(*args, **kwargs)
        if _is_dark(ax.figure.get_facecolor()):
            _invert(ax, before)
        return ax

    return drawn


def _is_drawn(artist: Any) -> bool:
    return not hasattr(artist, "get_text") or artist.get_text() != ""


def _is_dark(colour: Any) -> bool:
    from matplotlib.colors import to_rgba

    *rgb, alpha = to_rgba(colour)
    return alpha > 0 and colorsys.rgb_to_hls(*rgb)[1] < 0.5


def _invert(ax: Axes, kept: set[Any]) -> None:
    """Invert the lightness of all colours but those of the style and of the artists ``kept``.

    Colours of middle lightness can be read on both backgrounds.
    """
    from matplotlib import rcParams
    from matplotlib.axes import Axes as AnyAxes
    from matplotlib.colors import to_rgb, to_rgba_array

    for axes in ax.findobj(AnyAxes):
        # Axes have the colour of their patch, too.
        kept.update([axes, axes.patch, *axes.xaxis.findobj(), *axes.yaxis.findobj()])
    style = to_rgb(rcParams["text.color"])
    for artist in set(ax.findobj()) - kept:
        parts = [part for part in _COLOURS if hasattr(artist, f"get_{part}")]
        # All colours are read before any is set, because some follow others.
        found = [to_rgba_array(getattr(artist, f"get_{part}")()) for part in parts]
        for part, colours in zip(parts, found, strict=True):
            for colour in colours:
                hue, light, saturation = colorsys.rgb_to_hls(*colour[:3])
                if tuple(colour[:3]) != style and not 0.5 <= light <= 0.7:
                    colour[:3] = colorsys.hls_to_rgb(hue, 1.0 - light, saturation)
            if len(colours):
                getattr(artist, f"set_{part}")(colours if len(colours) > 1 else colours[0])


def new_figure(width: float, height: float, **options: Any) -> Any:
    """A pyplot figure of this size in inches; ImportError names the extra."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError(
            "plots need matplotlib: python -m pip install 'bristlecone[plot]'"
        ) from None
    return pyplot.figure(figsize=(width, height), **options)


def check_axes(ax: Axes) -> Axes:
    """The given axes; TypeError for anything else."""
    if not hasattr(ax, "transData"):
        raise TypeError(f"ax must be a matplotlib Axes or None; got {type_name(ax)}")
    return ax


def on_axes(ax: Axes | None, width: float = 6.5, height: float = 3.8) -> Axes:
    """The given axes, or those of a new figure with room for a legend."""
    if ax is not None:
        return check_axes(ax)
    return new_figure(width, height, layout="constrained").add_subplot()


def check_survival_tree(tree: Any, what: str) -> FittedTree:
    """The tree itself; TypeError unless it predicts survival."""
    fitted = check_tree(tree, what)
    if fitted.leaves_.compared == "incidences":
        raise TypeError(
            f"{what} draws survival trees; for {type_name(tree)}, plot_tree draws the "
            "incidences of the leaves, plot_survival the curves of rows, and plot_calibration "
            "compares incidences with observations"
        )
    if fitted.leaves_.compared != "survival":
        raise TypeError(f"{what} draws survival curves, which {type_name(tree)} does not predict")
    return fitted


def plain(text: object) -> str:
    """Text that matplotlib shows literally: a dollar does not start a formula."""
    return printable(str(text)).replace("$", r"\$")


def in_lines(text: str, inches: float, size: str = "medium", most: int = 2) -> str:
    """As ``plain``, on a few lines of this width, without the middle of what does not fit."""
    from matplotlib.font_manager import FontProperties

    points = FontProperties(size=size).get_size_in_points()
    return plain("\n".join(InchRuler().wrap(text, inches, points, most=most)))


def in_legend(text: str, inches: float, size: str = "small") -> str:
    """As ``in_lines``, for a legend: matplotlib leaves out labels that start with "_"."""
    label = in_lines(text, inches, size)
    return f" {label}" if label.startswith("_") else label


def dressed(ax: Axes, x: str, y: str) -> Axes:
    """The axes with labels and without a box."""
    dpi = ax.figure.dpi
    ax.set_xlabel(_label(x, ax.bbox.width / dpi))
    ax.set_ylabel(_label(y, ax.bbox.height / dpi))
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["bottom", "left"]].set_color(FAINT)
    ax.tick_params(color=FAINT)
    for axis in (ax.xaxis, ax.yaxis):
        if axis.get_scale() == "linear":
            axis.set_major_formatter(lambda value, _: number(value, 10))
    _space_ticks(ax)
    return ax


def _label(text: str, inches: float) -> str:
    """Label of an axis: its own lines, broken where they are too long for the axis."""
    from matplotlib import rcParams

    inches = max(_BEYOND * inches, _SHORTEST)
    lines = text.split("\n")
    return "\n".join(in_lines(line, inches, rcParams["axes.labelsize"]) for line in lines)


def _space_ticks(axes: Axes) -> None:
    """Leave out ticks of the horizontal axis, unless they were set, until their texts fit."""
    from matplotlib import rcParams
    from matplotlib.font_manager import FontProperties
    from matplotlib.ticker import AutoLocator, MaxNLocator

    class SideBySide(AutoLocator):
        def tick_values(self, vmin: float, vmax: float) -> Any:
            length = 72 * axes.bbox.width / axes.figure.dpi
            size = FontProperties(size=rcParams["xtick.labelsize"]).get_size_in_points()
            ticks = super().tick_values(vmin, vmax)
            for most in range(len(ticks), 1, -1):
                text = Ruler().widest((number(tick, 10) for tick in ticks), size)
                if text <= length * (ticks[1] - ticks[0]) / (vmax - vmin):
                    break
                ticks = MaxNLocator(most - 1, steps=[1, 2, 2.5, 5, 10]).tick_values(vmin, vmax)
            return ticks

    if type(axes.xaxis.get_major_locator()) is AutoLocator:
        axes.xaxis.set_major_locator(SideBySide())


def legend(ax: Axes, *, below: bool = False, lines: float = 0.0) -> Any:
    """Legend to the right of the axes, outside the plot.

    Long texts go ``below`` the axes, their label and this many lines of numbers.
    """
    from matplotlib.transforms import ScaledTranslation

    lines += ax.get_xlabel().count("\n")
    shift = ScaledTranslation(0.0, -0.55 - 0.2 * lines if below else 0.0, ax.figure.dpi_scale_trans)
    return ax.legend(
        loc="upper left",
        bbox_to_anchor=(0.0, 0.0) if below else (1.01, 1.0),
        bbox_transform=ax.transAxes + shift,
        borderaxespad=0.0,
        frameon=False,
        labelcolor=INK,
        fontsize="small" if below else None,
    )


def legend_above(ax: Axes, **more: Any) -> None:
    """Legend above the axes, where it takes no space from what is drawn."""
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False, **more)


def steps(x: Floats, y: Floats, end: float, *more: Floats) -> tuple[Floats, ...]:
    """Points of a survival curve for ``drawstyle="steps-post"``: from (0, 1) to ``end``.

    Only decreases get a point, and of those too small to be seen only some. ``more`` are values at
    the same points (1 at 0), such as confidence limits.
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


def draw_estimate(
    ax: Axes, curve: Curve, colour: str, end: float, inches: float, scale: float = 1.0
) -> Any:
    """Draw a Kaplan–Meier estimate with band and ticks of censored rows; return the line.

    If there are many censored times, only as many are marked as can be distinguished.
    """
    estimate, last = curve.estimate, min(curve.end, end)
    assert estimate is not None
    x, y, lower, upper = steps(estimate.x, estimate.y, last, curve.lower, curve.upper)
    ax.fill_between(x, lower, upper, step="post", color=colour, alpha=0.2, linewidth=0, zorder=2)
    (line,) = ax.plot(x, y, drawstyle="steps-post", color=colour, linewidth=1.5 * scale, zorder=3)
    censored = curve.censored[curve.censored <= last]
    many = len(censored) > _MARKS * inches
    if many:
        places = np.floor(censored / end * _MARKS * inches)
        censored = censored[np.unique(places, return_index=True)[1]]
    if len(censored):
        style: dict[str, Any] = {"markersize": 3.5 * scale, "alpha": 0.7 if many else 1.0}
        style["markeredgewidth"] = (0.4 if many else 0.6) * scale
        marks = censored, np.asarray(estimate(censored))
        ax.plot(*marks, "|", color=colour, zorder=3, **style)
    return line
