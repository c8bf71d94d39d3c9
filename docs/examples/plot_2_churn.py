"""
Customers who leave
===================

Which of 2,000 customers of a software service leave early? A survival tree also uses the customers
who are still active, because they have stayed at least as long as they were observed.
"""

from sklearn.model_selection import train_test_split

from bristlecone import OptimalSurvivalTree
from bristlecone.datasets import load
from bristlecone.export import export_sql
from bristlecone.plot import plot_calibration, plot_tree

churn = load("churn")
X_train, X_test, y_train, y_test = train_test_split(churn.X, churn.y, random_state=0)
tree = OptimalSurvivalTree(max_depth=3, max_leaf_nodes=4, min_samples_leaf=50)
tree.fit(X_train, y_train)
ax = plot_tree(tree, time_label="months")

# %%
# To check the tree on new customers, compare the predicted and the observed survival of each leaf.
# The points should lie near the diagonal.

print(f"concordance on new customers: {tree.score(X_test, y_test):.3f}")
ax = plot_calibration(tree, X_test, y_test, time=6)

# %%
# The tree can also be exported as an SQL query that runs in the database.

print(export_sql(tree, times=[6], table="customers"))
