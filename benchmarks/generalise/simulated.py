"""Survival times whose true risk is known: a tree, a linear risk, interactions.

A set is named truth-rows-censored, for example tree-200-30: 200 training rows, 30% of them censored
by exponential times. Twelve columns: eight standard normal ones that matter in at least one truth,
two that never do, and two of noise in 0 and 1.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq

from benchmarks.generalise.frames import agreement, means
from benchmarks.generalise.survival import Outcome, fitted
from bristlecone.metrics import concordance_index_censored

SCORES = {
    "c": "C",
    "ise": "ISE × 1000",
    "stability": "stability",
    "leaves": "leaves",
    "proven": "proven",
    "seconds": "s",
}
ABOUT = (
    "C: Harrell's concordance on 4,000 new rows without censoring. ISE: squared error of the "
    "predicted survival function, mean over these rows and over time, until 90% of the training "
    "rows have left. The model “truth” knows the hazard of each row."
)
TEST_ROWS, TIMES, SHAPE = 4000, 50, 1.5


class Setting(NamedTuple):
    """Training rows, the rate of censoring, and the test rows that all samples share."""

    truth: str
    n_rows: int
    censoring: float
    X: pd.DataFrame
    log_hazard: np.ndarray
    when: np.ndarray
    last: float


def log_hazard(truth: str, x: np.ndarray) -> np.ndarray:
    """Standard deviation about 1 in each of them."""
    if truth == "linear":
        return x[:, :8].sum(axis=1) / math.sqrt(8)
    if truth == "interactions":
        return 0.8 * np.sign(x[:, 0] * x[:, 1]) + 0.6 * x[:, 2] * x[:, 3]
    if truth != "tree":
        raise ValueError(f"unknown truth {truth!r}")
    left, right = x[:, 1] <= 0.5, x[:, 2] <= -0.3
    ends = np.where(
        x[:, 0] <= 0,
        np.where(left, np.where(x[:, 3] <= 0, -1.5, 0.0), np.where(x[:, 4] <= 0.5, -0.5, 1.0)),
        np.where(right, np.where(x[:, 5] <= 0, -1.0, 0.5), np.where(x[:, 6] <= 0, 0.4, 1.8)),
    )
    return ends


def columns(n_rows: int, rng: np.random.Generator) -> np.ndarray:
    return np.column_stack([rng.normal(size=(n_rows, 10)), rng.integers(0, 2, (n_rows, 2))])


def survival_times(log_hazard: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """S(t) = exp(-exp(log_hazard) t^SHAPE)."""
    return (rng.exponential(size=len(log_hazard)) / np.exp(log_hazard)) ** (1 / SHAPE)


def framed(x: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(x, columns=[f"x{k}" for k in range(x.shape[1])])


def load(name: str, most_rows: int, seed: int) -> Setting:
    """The setting of this name; all settings of a truth share their test rows."""
    truth, n_rows, percent = name.split("-")
    share, rng = int(percent) / 100, np.random.default_rng(seed)
    x = columns(TEST_ROWS, rng)
    risk = log_hazard(truth, x)
    when = survival_times(risk, rng)
    # The mean over the rows of P(exponential censoring comes before the event), given its time.
    censoring = brentq(lambda rate: (1 - np.exp(-rate * when)).mean() - share, 1e-9, 1e6)
    seen = np.minimum(when, rng.exponential(1 / censoring, TEST_ROWS))
    last = float(np.quantile(seen, 0.9))
    return Setting(truth, int(n_rows), censoring, framed(x), risk, when, last)


def sample(data: Setting, seed: list[int]) -> tuple[pd.DataFrame, Outcome]:
    """Training rows of a setting."""
    rng = np.random.default_rng(seed)
    x = columns(data.n_rows, rng)
    when = survival_times(log_hazard(data.truth, x), rng)
    left = rng.exponential(1 / data.censoring, data.n_rows)
    return framed(x), (when <= left, np.minimum(when, left))


def run_cell(data: Setting, parameters: dict[str, Any], folds: int, seed: int) -> dict[str, float]:
    """Mean scores over so many training samples; stability is the agreement of their trees."""
    found: dict[str, list[float]] = {name: [] for name in SCORES}
    times = np.linspace(0.0, data.last, TIMES + 1)[1:]
    truth = np.exp(-np.exp(data.log_hazard)[:, None] * times**SHAPE)
    happened, leaves = np.ones(TEST_ROWS, bool), []
    for k in range(folds):
        if parameters.get("estimator") == "truth":
            risk, survival = data.log_hazard, truth
        else:
            X, y = sample(data, [seed, k])
            predicted, seconds = fitted(parameters, X, y, data.X, data.when, times)
            risk, survival = predicted.risk, predicted.survival
            found["seconds"].append(seconds)
            found["leaves"].append(float(predicted.n_leaves))
            found["proven"].append(predicted.proven)
            if predicted.apply is not None:
                leaves.append(predicted.apply(data.X))
        found["c"].append(float(concordance_index_censored(happened, data.when, risk).cindex))
        found["ise"].append(1000 * float(((survival - truth) ** 2).mean()))
    found["stability"] = [agreement(leaves)]
    return means(found)
