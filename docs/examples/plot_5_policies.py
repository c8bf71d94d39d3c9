"""
Who should be treated?
======================

A policy tree prescribes a treatment to each group. In this simulated trial the drug helps older
people who do not smoke, and harms younger people. Treatments were randomised, so their
probabilities are known.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bristlecone import PolicyTree
from bristlecone.plot import plot_tree

rng = np.random.default_rng(0)
n = 2000
patients = pd.DataFrame({"age": rng.uniform(20, 80, n).round(), "smokes": rng.random(n) < 0.3})
older = patients["age"] > 50
drug = rng.random(n) < 0.5
gain = 0.3 * (older & ~patients["smokes"]) - 0.2 * ~older
outcome = 0.5 + gain * drug + rng.normal(0, 0.1, n)
treatment = np.where(drug, "drug", "none")

tree = PolicyTree(reward="inverse-propensity", max_depth=2, min_samples_leaf=50)
tree.fit(patients, outcome, treatment=treatment, propensity={"drug": 0.5, "none": 0.5})
ax = plot_tree(tree)

# %%
# If the drug is scarce, ``capacities`` limits the share of the people who get it. The search then
# finds the best policy within the limit.

shares = [0.05, 0.1, 0.2, 0.3, 0.4, 0.5]
values = []
for share in shares:
    scarce = PolicyTree(reward="inverse-propensity", max_depth=2, capacities={"drug": share})
    scarce.fit(patients, outcome, treatment=treatment, propensity={"drug": 0.5, "none": 0.5})
    values.append((0.5 + gain * (scarce.predict(patients) == "drug")).mean())
fig, ax = plt.subplots(figsize=(5, 3))
ax.plot(shares, values, marker="o")
ax.set(xlabel="largest share that may get the drug", ylabel="true mean outcome")
fig.tight_layout()
