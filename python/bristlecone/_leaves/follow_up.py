"""How long the training rows of a leaf were observed, for the counts below survival curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components
from scipy.special import chdtrc, ndtri

from bristlecone._types import Bools, Floats, Integers

# Most Newton steps; the likelihood is concave, so a few suffice.
_MOST_STEPS = 100


@dataclass(frozen=True, eq=False)
class FollowUp:
    """Rows of one leaf, counted regardless of their weight.

    Parameters
    ----------
    times : array of float, shape (n_times,)
        Distinct times at which rows had the event or were censored, ascending.
    events, censored : array of int, shape (n_times,)
        How many had and were.
    entry_times : array of float, shape (n_rows,), or None
        With delayed entry, when rows came under observation, ascending.
    """

    times: Floats
    events: Integers
    censored: Integers
    entry_times: Floats | None = None

    @classmethod
    def of(cls, event: Bools, time: Floats, entry: Floats | None = None) -> FollowUp:
        """Counts of rows; O(n log n)."""
        times, place = np.unique(time, return_inverse=True)
        events = np.bincount(place, event, times.size).astype(np.int64)
        left = np.bincount(place, minlength=times.size)
        return cls(times, events, left - events, None if entry is None else np.sort(entry))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.events.sum() + self.censored.sum())

    @cached_property
    def _left(self) -> Integers:
        """Number of rows that have left before each time, and before infinity."""
        return np.concatenate([[0], np.cumsum(self.events + self.censored)])

    def at_risk(self, times: ArrayLike) -> Integers:
        """Number of rows at risk at each time: ``entry < t <= time``, or ``t <= time``."""
        at = np.asarray(times, dtype=np.float64)
        left = self._left[np.searchsorted(self.times, at, side="left")]
        if self.entry_times is None:
            return np.asarray(self.n_rows - left)
        return np.asarray(np.searchsorted(self.entry_times, at, side="left") - left)

    def rows(self) -> tuple[Bools, Floats]:
        """Event and time of every row, in the order of time."""
        both = np.stack([self.events, self.censored], axis=1).ravel()
        event = np.tile([True, False], self.times.size).repeat(both)
        return event, self.times.repeat(self.events + self.censored)

    def thinned(self, times: Floats) -> FollowUp:
        """Keeps only ``times``: rows that leave between two of these leave at the earlier one.

        The numbers at risk at these times do not change. The first of ``times`` is kept.
        """
        place = np.searchsorted(times, self.times, side="right") - 1
        kept, cell = np.unique(place, return_inverse=True)
        events, censored = (
            np.bincount(cell, counts, kept.size).astype(np.int64)
            for counts in (self.events, self.censored)
        )
        return FollowUp(times[kept], events, censored, self.entry_times)


def logrank_p_values(leaves: Sequence[FollowUp]) -> Floats:
    """p-value of the log-rank test of every leaf against all other rows, shape (n_leaves,).

    Computed from counts of rows; NaN if there is nothing to compare. One degree of freedom.
    """
    at_risk, events = _by_event_time(leaves)
    n, d = at_risk.sum(axis=0), events.sum(axis=0)
    share = at_risk / n
    variance = (d * (n - d) / np.maximum(n - 1, 1) * share * (1 - share)).sum(axis=1)
    difference = events.sum(axis=1) - (d * share).sum(axis=1)
    statistic = np.full(len(leaves), np.nan)
    np.divide(difference**2, variance, out=statistic, where=variance > 0)
    return np.asarray(chdtrc(1, statistic))


def hazard_ratios(leaves: Sequence[FollowUp], reference: int, confidence: float) -> Floats:
    """Hazard of every leaf relative to one of them, with limits, shape (n_leaves, 3).

    Cox's model with one coefficient per leaf, from counts of rows. Ties are treated as by Efron
    ("The Efficiency of Cox's Likelihood Function for Censored Data", JASA 72, 1977): with n_k rows
    at risk and d_k events in leaf k, and d events in total, the partial likelihood at one time is
    Π_k exp(β_k)^d_k / Π_{l<d} Σ_k (n_k − d_k l/d) exp(β_k). The limits are Wald's. Leaves without
    a finite estimate are NaN, such as those without events, and those whose rows all had the event
    before the first event of the reference. If the reference has no event, all are NaN.
    """
    found = np.full((len(leaves), 3), np.nan)
    if not leaves[reference].events.any():
        return found
    at_risk, events = _by_event_time(leaves)
    # A ratio is finite if each of the two leaves is linked to the other, directly or by a chain of
    # leaves: a leaf is linked to those that had rows at risk at one of its events.
    linked = (events > 0).astype(np.float64) @ (at_risk > 0).T > 0
    _, part = connected_components(linked, connection="strong")
    known = np.flatnonzero(part == part[reference]).tolist()
    at_risk, events = at_risk[known], events[known]
    total = events.sum(axis=0).astype(np.int64)
    # Every event has its own term. Of d events at one time, earlier ones are counted partially.
    share = np.concatenate([np.arange(d) / d for d in total.tolist()])
    risk = at_risk.repeat(total, axis=1) - share * events.repeat(total, axis=1)
    beta, free = np.zeros(len(known)), [k != known.index(reference) for k in range(len(known))]
    for _ in range(_MOST_STEPS):
        weighted = risk * np.exp(beta)[:, None]
        p = weighted / weighted.sum(axis=0)
        slope = (events.sum(axis=1) - p.sum(axis=1))[free]
        information = (np.diag(p.sum(axis=1)) - p @ p.T)[free][:, free]
        step = np.linalg.solve(information, slope)
        # Long steps are shortened, so that exponentials stay finite.
        beta[free] += step / max(1.0, float(np.abs(step).max(initial=0.0)))
        if np.abs(step).max(initial=0.0) < 1e-10:
            break
    error = np.zeros(len(known))
    error[free] = np.sqrt(np.diag(np.linalg.inv(information)))
    width = ndtri((1 + confidence) / 2) * error
    found[known] = np.exp(np.stack([beta, beta - width, beta + width], axis=1))
    found[reference, 1:] = np.nan
    return found


def _by_event_time(leaves: Sequence[FollowUp]) -> tuple[Floats, Floats]:
    """Rows at risk and events of every leaf at all event times, shape (n_leaves, n_times)."""
    times = np.unique(np.concatenate([leaf.times[leaf.events > 0] for leaf in leaves]))
    at_risk = np.stack([leaf.at_risk(times) for leaf in leaves]).astype(np.float64)
    events = np.zeros((len(leaves), times.size))
    for k, leaf in enumerate(leaves):
        happened = leaf.events > 0
        events[k, np.searchsorted(times, leaf.times[happened])] = leaf.events[happened]
    return at_risk, events
