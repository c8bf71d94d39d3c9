"""
Fair trees
==========

A tree that decides about people should not favour one of two groups. ``FairTreeClassifier`` finds
the best tree within a limit on the difference between the groups. In this simulated example men and
women with equal incomes, debts and years repay equally often, but men earn more.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bristlecone import DemographicParity, FairTreeClassifier, OptimalTreeClassifier
from bristlecone.plot import plot_tree

rng = np.random.default_rng(0)
n = 800
sex = np.where(rng.random(n) < 0.5, "f", "m")
people = pd.DataFrame(
    {
        "income": (rng.normal(30, 8, n) + 6 * (sex == "m")).round(1),
        "debt": rng.exponential(10, n).round(1),
        "years": rng.integers(0, 20, n),
    }
)
score = people["income"] - 0.8 * people["debt"] + 0.5 * people["years"]
repaid = np.where(score + rng.normal(0, 6, n) > 25, "yes", "no")

free = OptimalTreeClassifier(max_depth=2, min_samples_leaf=20).fit(people, repaid)
ax = plot_tree(free)

# %%
# With a limit of 0.02, the predicted shares of men and women who repay differ by at most two
# percentage points on the training rows.

limited = FairTreeClassifier(fairness=DemographicParity(0.02), max_depth=2, min_samples_leaf=20)
limited.fit(people, repaid, sensitive_features=sex)
ax = plot_tree(limited)

# %%
# A stricter limit increases the error of the best tree.

limits = [0.0, 0.02, 0.05, 0.1, 0.15, 0.2]
errors = []
for limit in limits:
    fair = FairTreeClassifier(fairness=DemographicParity(limit), max_depth=2, min_samples_leaf=20)
    fair.fit(people, repaid, sensitive_features=sex)
    errors.append(1 - fair.score(people, repaid))
fig, ax = plt.subplots(figsize=(5, 3))
ax.plot(limits, errors, marker="o")
ax.set(xlabel="largest difference between the groups", ylabel="share of errors")
fig.tight_layout()
