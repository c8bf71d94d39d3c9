"""Survival trees that may differ little between two groups: problems, and the limit plainly.

A difference is that of the groups' means of the restricted mean survival time up to the last time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

# What rounding may add to a difference, as a share of the last time.
ROUNDING = 1e-9

# Of every leaf, from the events and times of all rows and the rows of the leaf.
Curve = Callable[[np.ndarray, np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]]


def packaged(name: str, thresholds: int, group: str, limit: float) -> tuple[np.ndarray, Any]:
    """Return a set of the package: features of so many thresholds a column, and the outcome."""
    from bristlecone import BinaryEncoder
    from bristlecone.datasets import load

    study = load(name)
    X = BinaryEncoder(n_thresholds=thresholds).fit_transform(study.X, study.y)
    event, time = (study.y[field] for field in study.y.dtype.names)
    _, groups = np.unique(np.asarray(study.X[group]), return_inverse=True)
    target = {"event": event.astype(bool), "time": time.astype(np.float64), "group": groups}
    return np.asarray(X, dtype=np.uint8), target | {"limit": np.array([limit])}


def within_limit(target: dict[str, np.ndarray], leaves: np.ndarray, curve: Curve) -> bool:
    """Return whether the curves of the leaves differ little enough between the groups."""
    event, time, group = (target[key] for key in ("event", "time", "group"))
    starts = np.append(0.0, np.unique(time))
    mean = np.empty(len(time))
    for leaf in np.unique(leaves):
        rows = leaves == leaf
        survival = curve(event, time, rows)(starts[:-1])
        mean[rows] = np.sum(np.diff(starts) * survival)
    means = [mean[group == side].mean() for side in (0, 1)]
    return bool(abs(means[1] - means[0]) <= target["limit"][0] + ROUNDING * time.max())


def proportional(event: np.ndarray, time: np.ndarray, rows: np.ndarray) -> Any:
    """Return the curve exp(-θΛ) of a leaf; without events it has half an event."""
    times = np.unique(time)
    deaths = np.array([np.sum(event & (time == t)) for t in times])
    hazard = np.cumsum(deaths / np.array([np.sum(time >= t) for t in times]))
    own = hazard[np.searchsorted(times, time[rows])]
    own[own == 0] = 1 / (len(time) + 1)
    theta = max(event[rows].sum(), 0.5) / own.sum()
    return lambda at: np.exp(-theta * _step(times, hazard, 0.0)(at))


def kaplan_meier(event: np.ndarray, time: np.ndarray, rows: np.ndarray) -> Any:
    """Return the Kaplan-Meier curve of a leaf."""
    event, time = event[rows], time[rows]
    times = np.unique(time)
    left = [1 - np.sum(event & (time == t)) / np.sum(time >= t) for t in times]
    return _step(times, np.cumprod(left), 1.0)


def _step(times: np.ndarray, values: np.ndarray, first: float) -> Callable[..., np.ndarray]:
    values = np.append(first, values)
    return lambda at: values[np.searchsorted(times, at, side="right")]
