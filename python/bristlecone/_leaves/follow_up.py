"""How long the training rows of a leaf were observed: the counts below survival curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import chdtrc

__all__ = ["FollowUp", "logrank_p_values"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FollowUp:
    """Rows of one leaf, counted whatever they weigh.

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
    def of(cls, event: NDArray[np.bool_], time: Floats, entry: Floats | None = None) -> FollowUp:
        """Counts of rows; O(n log n)."""
        times, place = np.unique(time, return_inverse=True)
        events = np.bincount(place, event, times.size).astype(np.int64)
        left = np.bincount(place, minlength=times.size)
        return cls(times, events, left - events, None if entry is None else np.sort(entry))

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._left[-1])

    @cached_property
    def _left(self) -> Integers:
        """Rows that have left before each time, and before infinity."""
        return np.concatenate([[0], np.cumsum(self.events + self.censored)])

    def at_risk(self, times: ArrayLike) -> Integers:
        """Rows in the risk set of each time: ``entry < t <= time``, or ``t <= time``."""
        at = np.asarray(times, dtype=np.float64)
        left = self._left[np.searchsorted(self.times, at, side="left")]
        if self.entry_times is None:
            return np.asarray(self.n_rows - left)
        return np.asarray(np.searchsorted(self.entry_times, at, side="left") - left)

    def rows(self) -> tuple[NDArray[np.bool_], Floats]:
        """Event and time of every row, in the order of time."""
        both = np.stack([self.events, self.censored], axis=1).ravel()
        event = np.tile([True, False], self.times.size).repeat(both)
        return event, self.times.repeat(self.events + self.censored)

    def thinned(self, times: Floats) -> FollowUp:
        """Rows that leave between two of ``times`` leave at the earlier; the first is kept.

        At these times the numbers at risk stay what they were.
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

    By counts of rows; NaN where there is nothing to compare. One degree of freedom.
    """
    times = np.unique(np.concatenate([leaf.times[leaf.events > 0] for leaf in leaves]))
    at_risk = np.stack([leaf.at_risk(times) for leaf in leaves]).astype(np.float64)
    events = np.zeros((len(leaves), times.size))
    for k, leaf in enumerate(leaves):
        happened = leaf.events > 0
        events[k, np.searchsorted(times, leaf.times[happened])] = leaf.events[happened]
    n, d = at_risk.sum(axis=0), events.sum(axis=0)
    share = at_risk / n
    variance = (d * (n - d) / np.maximum(n - 1, 1) * share * (1 - share)).sum(axis=1)
    difference = events.sum(axis=1) - (d * share).sum(axis=1)
    statistic = np.full(len(leaves), np.nan)
    np.divide(difference**2, variance, out=statistic, where=variance > 0)
    return np.asarray(chdtrc(1, statistic))
