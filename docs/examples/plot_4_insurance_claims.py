"""
Insurance claims
================

Policies differ in how long they were observed. ``objective="poisson"`` with ``exposure`` finds the
tree of claim rates with the least Poisson deviance. The data are simulated: young drivers of
powerful cars have about three times as many claims.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bristlecone import OptimalTreeRegressor
from bristlecone.plot import plot_tree

rng = np.random.default_rng(0)
n = 5000
policies = pd.DataFrame(
    {
        "age": rng.integers(18, 80, n),
        "kilowatts": rng.integers(40, 200, n),
        "area": rng.choice(["city", "town", "country"], n),
    }
)
years = rng.uniform(0.1, 3, n)
young, strong = policies["age"] < 26, policies["kilowatts"] > 110
rate = 0.06 + 0.03 * (policies["area"] == "city") + 0.14 * (young & strong)
claims = rng.poisson(rate * years)

tree = OptimalTreeRegressor(objective="poisson", max_depth=3, min_samples_leaf=100)
tree.fit(policies, claims, exposure=years)
ax = plot_tree(tree)

# %%
# The fitted rates of the leaves, against the true rates of their policies:

leaf, fitted = tree.apply(policies), tree.predict(policies)
groups = pd.DataFrame({"leaf": leaf, "fitted": fitted, "true": rate}).groupby("leaf").mean()
fig, ax = plt.subplots(figsize=(4, 4))
ax.plot([0, 0.25], [0, 0.25], color="0.7")
ax.scatter(groups["fitted"], groups["true"])
ax.set(xlabel="claims per year, fitted", ylabel="claims per year, true")
fig.tight_layout()
