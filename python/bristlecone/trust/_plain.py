"""Survival estimates straight from their definitions, in plain NumPy.

This is deliberately a second implementation: :mod:`bristlecone.trust` shares no code with the fit,
so an error there is not repeated here. Definitions: docs/maths/likelihood.md and
docs/maths/brier.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bristlecone._types import Bools, Floats, Integers
from bristlecone.trust._exact import Column


@dataclass(frozen=True, eq=False)
class Lifetimes:
    """Rows with time, event, weight and perhaps entry, each of shape (n,)."""

    time: Floats
    event: Bools
    weight: Floats
    entry: Floats | None = None

    def of(self, rows: Bools) -> Lifetimes:
        """Some of the rows."""
        entry = None if self.entry is None else self.entry[rows]
        return Lifetimes(self.time[rows], self.event[rows], self.weight[rows], entry)

    @cached_property
    def times(self) -> Floats:
        """Distinct times."""
        return np.unique(self.time)

    @cached_property
    def place(self) -> Integers:
        """Position of the time of every row among the distinct times."""
        return np.searchsorted(self.times, self.time)

    @cached_property
    def start(self) -> Integers:
        """Position of the first time at which every row is at risk."""
        if self.entry is None:
            return np.zeros(self.time.size, dtype=np.int64)
        return np.searchsorted(self.times, self.entry, side="right")

    def left(self, weight: Floats) -> Floats:
        """Sum of ``weight`` over the rows that leave at each time."""
        return np.bincount(self.place, weight, self.times.size).astype(np.float64)

    def at_risk(self, weight: Floats) -> Floats:
        """Sum of ``weight`` over the rows with entry < t <= time."""
        if self.entry is None:
            return np.asarray(self.left(weight)[::-1].cumsum()[::-1])
        return self._at_risk(Column.of(weight)).floats()

    def _at_risk(self, weight: Column) -> Column:
        """The same exactly, because heavy rows that enter late cancel."""
        n = self.times.size
        left = weight.by_group(self.place, n).whole
        late = weight.by_group(self.start, n + 1).whole
        return Column(left[::-1].cumsum()[::-1] - late[:0:-1].cumsum()[::-1], weight.unit)

    @cached_property
    def hazard(self) -> Floats:
        """Share of the risk set with the event at each time."""
        died = self.left(self.weight * self.event)
        at_risk = self.at_risk(self.weight)
        return np.minimum(np.divide(died, at_risk, out=np.zeros_like(died), where=died > 0), 1.0)

    @cached_property
    def happened(self) -> Bools:
        """Whether there is an event at each time."""
        return self.left(self.event.astype(float)) > 0

    @property
    def nelson_aalen(self) -> Floats:
        """Λ at each time."""
        return self.hazard.cumsum()

    @property
    def kaplan_meier(self) -> Floats:
        """S at each time."""
        if self.entry is None:
            return self._staying(self.event).cumprod()
        weight = Column.of(self.weight)
        died = weight.where(self.event).by_group(self.place, self.times.size)
        at_risk = self._at_risk(weight)
        staying = Column(at_risk.whole - died.whole, weight.unit).floats()
        some = died.whole > 0
        share = np.divide(staying, at_risk.floats(), out=np.ones_like(staying), where=some)
        return np.asarray(share.cumprod())

    @property
    def censoring(self) -> Floats:
        """G at each time: Kaplan–Meier of the censoring; rows with time >= t are at risk at t."""
        return self._staying(~self.event).cumprod()

    def _staying(self, leaves: Bools) -> Floats:
        """Share of the risk set that does not leave in this way at each time, without entry.

        Computed from what stays, because differences cancel if weights differ in size.
        """
        gone, others = self.left(self.weight * leaves), self.left(self.weight * ~leaves)
        later = np.append((gone + others)[:0:-1].cumsum()[::-1], 0.0)
        at_risk = gone + others + later
        return np.divide(others + later, at_risk, out=np.ones_like(gone), where=at_risk > 0)

    @property
    def effective_at_risk(self) -> Floats:
        """(Σw)² / Σw² of the risk set, between one row and all."""
        at_risk = self.at_risk(self.weight)
        squares = self.at_risk(self.weight**2)
        ratio = np.divide(at_risk**2, squares, out=np.ones_like(at_risk), where=squares > 0)
        return np.clip(ratio, 1.0, self.time.size)


def _antitonic(values: Floats, weight: Floats) -> Floats:
    """Non-increasing values nearest in weighted squares; pools adjacent violators."""
    means: list[float] = []
    sizes: list[float] = []
    counts: list[int] = []
    for value, size in zip(values.tolist(), weight.tolist(), strict=True):
        count = 1
        while means and means[-1] < value:
            total = sizes[-1] + size
            value = (means.pop() * sizes[-1] + value * size) / total
            size, count = total, count + counts.pop()
            sizes.pop()
        means.append(value)
        sizes.append(size)
        counts.append(count)
    return np.repeat(np.array(means), counts)


def antitonic_curve(dead: Floats, alive: Floats, share: Floats) -> Floats:
    """Non-increasing S with the least Σ share (S² dead + (1 − S)² alive).

    If both terms are zero, S keeps its previous value. All have shape (n_times,).
    """
    weight = (dead + alive) * share
    counts = weight > 0
    values = alive[counts] / (dead + alive)[counts]
    return np.append(1.0, _antitonic(values, weight[counts]))[np.cumsum(counts)]


def restricted_mean(times: Floats, survival: Floats, tau: float) -> Floats:
    """∫ from 0 to τ of step curves, shape (..., n_times) to (...)."""
    before = times[times < tau]
    knots = np.concatenate([[0.0], before, [tau]])
    inside = survival[..., : before.size]
    steps = np.concatenate([np.ones((*survival.shape[:-1], 1)), inside], axis=-1)
    return np.asarray(steps @ np.diff(knots))
