"""Rows for the estimators of the contract: columns, and outcomes of every kind.

Outcomes are functions of a generator and the effects of the rows: ``y``, and other arguments of
``fit`` with one value per row.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Study:
    """Rows for a fit; ``rows`` are arguments of ``fit`` by row besides ``X`` and ``y``."""

    X: Any
    y: Any
    rows: dict[str, Any] = field(default_factory=dict)

    def fit(self, model, **options):
        return model.fit(self.X, self.y, **self.rows, **options)

    def of(self, X):
        """The same outcomes, with the features in another container."""
        return replace(self, X=X)

    def take(self, places):
        rows = {name: values[places] for name, values in self.rows.items()}
        return Study(self.X.iloc[places].reset_index(drop=True), self.y[places], rows)


def mixed_columns(rng, n):
    """Numbers with and without missing values, counts, flags and text, and effects of three."""
    age, nodes = np.round(rng.normal(60, 10, n), 1), rng.integers(0, 20, n)
    treated, stage = rng.random(n) < 0.5, rng.choice(["I", "II", "III"], n)
    effect = 1.2 * (age > 62) - 0.9 * treated + 0.6 * (stage == "III") + 0.02 * nodes
    age[rng.random(n) < 0.1] = np.nan
    X = pd.DataFrame({"age": age, "nodes": nodes, "treated": treated, "stage": stage})
    return X, effect


def lifetimes(rng, effect):
    n = len(effect)
    lived = np.ceil(20 * rng.exponential(size=n) / np.exp(effect))
    followed = np.ceil(rng.uniform(0, 60, size=n))
    y = np.empty(n, dtype=[("dead", bool), ("months", float)])
    y["dead"], y["months"] = lived <= followed, np.minimum(lived, followed)
    return y, {}


def causes(rng, effect):
    n = len(effect)
    lived = np.ceil(20 * rng.exponential(size=(2, n)) / np.exp([effect, -0.5 * effect]))
    followed = np.ceil(rng.uniform(0, 60, size=n))
    y = np.empty(n, dtype=[("cause", int), ("months", float)])
    y["months"] = np.minimum(lived.min(axis=0), followed)
    y["cause"] = np.where(lived.min(axis=0) <= followed, 1 + lived.argmin(axis=0), 0)
    return y, {}


def labels(rng, effect):
    return np.where(effect + rng.normal(0, 0.6, len(effect)) > 0.1, "yes", "no"), {}


def priced_labels(rng, effect):
    y, _ = labels(rng, effect)
    costs = rng.uniform(0.5, 1.5, (len(y), 2)) * (y[:, None] != np.array(["no", "yes"]))
    return y, {"costs": costs}


def grouped_labels(rng, effect):
    y, _ = labels(rng, effect)
    return y, {"sensitive_features": np.where(rng.random(len(y)) < 0.5, "a", "b")}


def numbers(rng, effect):
    return effect + rng.normal(0, 0.4, len(effect)), {}


def counts(rng, effect):
    exposure = rng.uniform(0.2, 3.0, len(effect))
    return rng.poisson(3 * exposure * np.abs(effect)).astype(float), {"exposure": exposure}


def treated(rng, effect):
    n = len(effect)
    arm = rng.choice(["drug", "none"], n)
    y = np.where(arm == "drug", effect, 0.2) + rng.normal(0, 0.3, n)
    expected = np.column_stack([effect, np.full(n, 0.2)]) + rng.normal(0, 0.1, (n, 2))
    share = rng.uniform(0.3, 0.7, n)
    return y, {"treatment": arm, "propensity": share, "predicted_outcomes": expected}
