"""
Machines that fail
==================

1,000 machines are described by their manufacturer, their team and three sensors. When should each
group be inspected? This depends on a low quantile of the lifetime, not on its mean.
"""

from bristlecone import OptimalSurvivalTree
from bristlecone.datasets import load
from bristlecone.plot import plot_leaf_curves, plot_tree

maintenance = load("maintenance")
X, y = maintenance.X, maintenance.y
tree = OptimalSurvivalTree(
    max_depth=3, max_leaf_nodes=5, min_samples_leaf=30, leaf_curve="kaplan-meier"
).fit(X, y)
ax = plot_tree(tree, time_label="weeks")

# %%
# The table shows the week by which 5% of the machines of each group have failed.

table = tree.leaf_table()[["leaf", "rule", "n_samples", "n_events"]]
week = dict(zip(tree.apply(X), tree.predict_quantile(X, 0.05), strict=True))
table["inspect in week"] = [week[leaf] for leaf in table["leaf"]]
print(table.to_string(index=False))

# %%
# The curves of the groups fall late and steeply, because the machines wear out.

ax = plot_leaf_curves(tree, kaplan_meier=True, time_label="weeks")
