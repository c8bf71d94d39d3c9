"""Baseline hazard of the training rows and what every leaf knows about its own.

The formulas are those of Huisman, van der Linden and Demirović (AAAI-24, section 3) and LeBlanc
and Crowley (1992); the nonparametric curves come from ``_core.risk_table``, their one definition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bristlecone import _core

__all__ = ["Baseline", "LeafStatistics", "baseline_hazard", "hazard_ratio", "leaf_statistics"]


@dataclass(frozen=True, eq=False)
class Baseline:
    """Nelson–Aalen estimate of all training rows.

    Parameters
    ----------
    unique_times : array of float, shape (n_times,)
        Distinct training times, ascending.
    event_times : array of float, shape (n_event_times,)
        Those at which an event happened.
    cumulative_hazard : array of float, shape (n_times,)
        Λ at ``unique_times``; 0 before the first event.
    """

    unique_times: NDArray[np.float64]
    event_times: NDArray[np.float64]
    cumulative_hazard: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LeafStatistics:
    """Training rows of one leaf.

    Parameters
    ----------
    node : int
        Node id of the leaf.
    n_samples, n_events : int
        Rows, and rows with an event.
    weight, events : float
        The same two, weighted.
    hazard : float
        Sum of weight times the baseline Λ at the row's time.
    theta : float
        Hazard relative to the baseline, ``events / hazard``; ``0.5 / hazard`` without events.
    event_times, kaplan_meier, nelson_aalen : array of float, shape (n_event_times,)
        Distinct event times of the leaf, its Kaplan–Meier survival and Nelson–Aalen cumulative
        hazard at them.
    """

    node: int
    n_samples: int
    n_events: int
    weight: float
    events: float
    hazard: float
    theta: float
    event_times: NDArray[np.float64]
    kaplan_meier: NDArray[np.float64]
    nelson_aalen: NDArray[np.float64]


def hazard_ratio(events: float, hazard: float) -> float:
    """θ of a leaf; LeBlanc and Crowley (1992, p. 416) put half an event in a leaf without."""
    return (events if events > 0 else 0.5) / hazard


def baseline_hazard(
    time: NDArray[np.float64],
    event: NDArray[np.bool_],
    weight: NDArray[np.float64] | None = None,
) -> Baseline:
    """Baseline of the training rows; all arrays of shape (n,), weights positive."""
    table = _core.risk_table(time, event, weight)
    return Baseline(table["time"], table["time"][table["events"] > 0], table["nelson_aalen"])


def leaf_statistics(
    leaf: NDArray[np.int64],
    time: NDArray[np.float64],
    event: NDArray[np.bool_],
    weight: NDArray[np.float64] | None,
    baseline: Baseline,
) -> tuple[LeafStatistics, ...]:
    """Statistics of every leaf, in the order of the node ids.

    Sums run over distinct times, so that they do not depend on the order of the rows.

    Parameters
    ----------
    leaf : array of int, shape (n,)
        Leaf of every training row; every leaf has at least one.
    time, event, weight : array, shape (n,)
        The rows the baseline was made of.
    baseline : Baseline
        Of all rows.
    """
    total = float(len(time)) if weight is None else float(np.sum(weight))
    # Before the first event Λ is 0; with the floor no leaf has a hazard sum of zero.
    floored = np.where(baseline.cumulative_hazard > 0, baseline.cumulative_hazard, 1 / (total + 1))
    leaves = []
    for node in np.unique(leaf):
        rows = np.flatnonzero(leaf == node)
        table = _core.risk_table(time[rows], event[rows], None if weight is None else weight[rows])
        at = np.searchsorted(baseline.unique_times, table["time"])
        leaving = table["events"] + table["censored"]
        events, hazard = float(table["events"].sum()), float(np.sum(leaving * floored[at]))
        happened = table["events"] > 0
        leaves.append(
            LeafStatistics(
                node=int(node),
                n_samples=rows.size,
                n_events=int(event[rows].sum()),
                weight=float(leaving.sum()),
                events=events,
                hazard=hazard,
                theta=hazard_ratio(events, hazard),
                event_times=table["time"][happened],
                kaplan_meier=table["kaplan_meier"][happened],
                nelson_aalen=table["nelson_aalen"][happened],
            )
        )
    return tuple(leaves)
