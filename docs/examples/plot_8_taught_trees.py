"""
Trees that learn from a teacher
===============================

The outcome of one patient says little about that patient's risk. With a teacher, half of each
outcome is replaced by the prediction of a flexible model that has not seen the row. The search then
fits less noise, and finds the same splits more often in other samples.
"""

import matplotlib.pyplot as plt
from sklearn.ensemble import HistGradientBoostingRegressor

from bristlecone import OptimalSurvivalTree
from bristlecone.datasets import load
from bristlecone.plot import plot_stability, plot_tree
from bristlecone.trust import stability

gbsg2 = load("gbsg2")
X, y = gbsg2.X.select_dtypes("number"), gbsg2.y
boosting = HistGradientBoostingRegressor(loss="poisson", max_depth=2, max_iter=30)
plain = OptimalSurvivalTree(max_depth=2).fit(X, y)
taught = OptimalSurvivalTree(max_depth=2, teacher=boosting, random_state=0).fit(X, y)

fig, axes = plt.subplots(1, 2, figsize=(13, 3.7), layout="constrained")
for ax, tree, title in zip(axes, (plain, taught), ("plain", "taught"), strict=True):
    plot_tree(tree, ax=ax, time_label="days")
    ax.set_title(title)

# %%
# Both searches are repeated in ten bootstrap samples. The bars show how often each column is used
# at each split.

fig, axes = plt.subplots(1, 2, figsize=(11, 3), layout="constrained")
for ax, tree, title in zip(axes, (plain, taught), ("plain", "taught"), strict=True):
    found = stability(tree, X, y, n_resamples=10, random_state=0)
    plot_stability(found, ax=ax)
    ax.set_title(title, loc="right")
