"""
A clinical trial
================

The second trial of the German Breast Cancer Study Group followed 686 women after surgery. The tree
divides them into four groups by their time to recurrence or death.
"""

from bristlecone import OptimalSurvivalTree
from bristlecone.datasets import load
from bristlecone.plot import plot_leaf_curves, plot_tree

gbsg2 = load("gbsg2")
tree = OptimalSurvivalTree(max_depth=2).fit(gbsg2.X, gbsg2.y)
ax = plot_tree(tree, time_label="days")

# %%
# The tree has the least loss among all trees of depth two over its binary features. The description
# includes the proof:

print(tree.describe())

# %%
# For a paper, draw all leaves on one pair of axes, with the numbers at risk. The legend shows the
# hazard ratios against a leaf of your choice.

ax = plot_leaf_curves(tree, kaplan_meier=True, at_risk=True, reference=2, time_label="days")

# %%
# ``leaf_table`` returns the same groups as a data frame.

table = tree.leaf_table(times=[365, 1095])
print(table[["leaf", "rule", "n_samples", "n_events", "median"]].to_string(index=False))
