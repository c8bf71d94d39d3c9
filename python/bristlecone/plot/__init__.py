"""Pictures of fitted trees, of searches and of scores; needs the extra ``bristlecone[plot]``.

Every function draws on ``ax``, or on a new figure, and returns the matplotlib Axes, so you can set
titles and limits and save the figure. No figure is shown, and no setting of matplotlib is changed.
matplotlib is imported when something is drawn, not with the package.
"""

from bristlecone.plot._calibration import plot_calibration
from bristlecone.plot._curves import plot_leaf_curves, plot_survival
from bristlecone.plot._policies import plot_overlap, plot_treatment_curves
from bristlecone.plot._scores import plot_auc, plot_brier
from bristlecone.plot._searches import plot_front, plot_size_path, plot_trace
from bristlecone.plot._stability import plot_stability
from bristlecone.plot._thresholds import plot_thresholds
from bristlecone.plot._tree import plot_tree

__all__ = [
    "plot_auc",
    "plot_brier",
    "plot_calibration",
    "plot_front",
    "plot_leaf_curves",
    "plot_overlap",
    "plot_size_path",
    "plot_stability",
    "plot_survival",
    "plot_thresholds",
    "plot_trace",
    "plot_treatment_curves",
    "plot_tree",
]
