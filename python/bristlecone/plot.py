"""Plots of fitted trees; needs the extra ``bristlecone[plot]``.

matplotlib is imported when a plot is drawn, never with the package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone.data.checks import check_integer

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_leaf_curves"]

# Okabe and Ito's colours, told apart by colour-blind readers, too.
_COLOURS = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#E69F00",
    "#56B4E9",
    "#000000",
    "#F0E442",
)
_N_TIMES = 200


def plot_leaf_curves(
    estimator: Any,
    X: Any,
    *,
    times: ArrayLike | None = None,
    max_curves: int = 100,
    ax: Axes | None = None,
) -> Axes:
    """Survival curves of rows, one bundle and colour per leaf.

    Parameters
    ----------
    estimator : fitted survival tree
        Rows of a leaf share one curve, but in a ``SoftSurvivalTree``.
    X : DataFrame or array, shape (n, n_features_in_)
        Rows whose curves are drawn.
    times : array-like of float, shape (n_times,), optional
        Where the curves are evaluated; 200 times up to the last training time by default.
    max_curves : int, default=100
        Most curves drawn of a leaf: its rows evenly spread by their survival at the last of
        ``times``. The legend counts all rows.
    ax : matplotlib Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    matplotlib Axes
        With the median curve of each bundle drawn thick: at each time the median of its rows.

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
    bristlecone.report.html_report : Curves of all leaves on a page.

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
    if not hasattr(estimator, "predict_survival_function"):
        raise TypeError(
            "plot_leaf_curves draws survival curves, which a "
            f"{type(estimator).__name__} does not predict"
        )
    check_integer("max_curves", max_curves, 1)
    leaf = estimator.apply(X)
    if times is None:
        at: NDArray[np.float64] = np.linspace(0.0, estimator.unique_times_[-1], _N_TIMES)
    else:
        at = np.sort(np.asarray(times, dtype=np.float64))
    survival = estimator.predict_survival_function(X, times=at)
    ax = _axes() if ax is None else ax
    for k, node in enumerate(estimator.tree_.leaves.tolist()):
        bundle = survival[leaf == node]
        if not len(bundle):
            continue
        colour = _COLOURS[k % len(_COLOURS)]
        order = np.argsort(bundle[:, -1], kind="stable")
        shown = np.unique(np.linspace(0, len(order) - 1, max_curves).round().astype(np.int64))
        ax.plot(at, bundle[order[shown]].T, color=colour, alpha=0.15, linewidth=0.8)
        ax.plot(
            at,
            np.median(bundle, axis=0),
            color=colour,
            linewidth=2.5,
            label=f"leaf {node} ({len(bundle)} rows)",
        )
    ax.set_xlabel("time")
    ax.set_ylabel("survival")
    ax.set_ylim(0.0, 1.02)
    ax.set_xlim(0.0, float(at[-1]))
    ax.legend(loc="best", frameon=False)
    return ax


def _axes() -> Axes:
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError(
            "plots need matplotlib: python -m pip install 'bristlecone[plot]'"
        ) from None
    return pyplot.subplots(layout="constrained")[1]
