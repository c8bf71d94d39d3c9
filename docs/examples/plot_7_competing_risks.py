"""
Competing risks
===============

After a transplant a patient can relapse, or die without a relapse. If deaths are treated as
censored, Kaplan–Meier predicts too many relapses. ``CompetingRisksTree`` finds the best tree for
both kinds of events. The data are simulated.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from bristlecone import CompetingRisksTree
from bristlecone.curves import kaplan_meier
from bristlecone.plot import plot_tree

rng = np.random.default_rng(0)
n = 1500
patients = pd.DataFrame(
    {"age": rng.integers(18, 80, n), "risk": rng.choice(["low", "high"], n)},
)
relapse = rng.exponential(np.where(patients["risk"] == "high", 4.0, 12.0))
death = rng.exponential(np.where(patients["age"] > 55, 5.0, 20.0))
years = np.minimum.reduce([relapse, death, rng.uniform(1, 8, n)]).round(2)
cause = np.select([years == relapse.round(2), years == death.round(2)], [1, 2], 0)

tree = CompetingRisksTree(max_depth=2).fit(patients, (cause, years))
ax = plot_tree(tree, time_label="years")

# %%
# For older patients at low risk, compare the cumulative incidence of a relapse with one minus
# Kaplan–Meier. The latter is too high, because it treats patients who have died as if they could
# still relapse.

patient = pd.DataFrame({"age": [62], "risk": ["low"]})
times = np.linspace(0, 7, 71)
inside = tree.apply(patients) == tree.apply(patient)[0]
wrong = kaplan_meier((cause[inside] == 1, years[inside]))
fig, ax = plt.subplots(figsize=(5, 3))
incidence = tree.predict_cumulative_incidence(patient, cause=1, times=times)[0]
ax.step(times, incidence, where="post", label="cumulative incidence")
ax.step(times, 1 - wrong(times), where="post", label="one minus Kaplan–Meier")
ax.set(xlabel="years", ylabel="share with a relapse")
ax.legend(frameon=False)
fig.tight_layout()
