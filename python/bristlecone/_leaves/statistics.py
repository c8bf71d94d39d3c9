"""Baseline hazard of the training rows, and statistics of every leaf.

The formulas are those of Huisman, van der Linden and Demirović (AAAI-24, section 3) and LeBlanc and
Crowley (1992). The nonparametric curves come from ``RiskTable``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bristlecone import _core
from bristlecone._core import RiskTable
from bristlecone._data.exact import ExactValues
from bristlecone._data.survival import TrainingData
from bristlecone._leaves.brier import brier_score_of
from bristlecone._leaves.follow_up import FollowUp
from bristlecone._tree import Tree
from bristlecone._types import Floats, Integers
from bristlecone.curves import KaplanMeier, StepFunction, effective_at_risk


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

    unique_times: Floats
    event_times: Floats
    cumulative_hazard: Floats


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
        Sum of weight times the baseline hazard of the row: Λ at its time, less Λ at its entry.
    theta : float
        Hazard relative to the baseline, ``events / hazard``; ``0.5 / hazard`` without events. Under
        a prior of a pseudo-events ``(events + a) / (hazard + a)``.
    event_times, kaplan_meier, nelson_aalen : array of float, shape (n_event_times,)
        Distinct event times of the leaf, its Kaplan–Meier survival and Nelson–Aalen cumulative
        hazard at them.
    at_risk : array of float, shape (n_event_times,)
        Rows at risk just before them; with row weights their effective number, see
        :class:`~bristlecone.curves.KaplanMeier`.
    follow_up : FollowUp
        Its rows by the times at which they left.
    brier_times, brier_survival : array of float, shape (n_steps,), or None
        Times at which the curve with the least Brier score falls, and its value from each on; only
        with ``leaf_curve="brier-optimal"``.
    """

    node: int
    n_samples: int
    n_events: int
    weight: float
    events: float
    hazard: float
    theta: float
    event_times: Floats
    kaplan_meier: Floats
    nelson_aalen: Floats
    at_risk: Floats
    follow_up: FollowUp
    brier_times: Floats | None = None
    brier_survival: Floats | None = None

    def __repr__(self) -> str:
        counts = f"node={self.node}, n_samples={self.n_samples}, n_events={self.n_events}"
        return f"LeafStatistics({counts}, theta={self.theta:.4g}, median={self.curve.median:g})"

    @cached_property
    def curve(self) -> KaplanMeier:
        """Kaplan–Meier estimate with variance, confidence limits and quantiles."""
        hazard = np.diff(self.nelson_aalen, prepend=0.0)
        return KaplanMeier(self.event_times, self.kaplan_meier, hazard=hazard, at_risk=self.at_risk)

    def survival_steps(self, curve: str) -> tuple[Floats, Floats]:
        """Times and values of the curve "kaplan-meier" or "brier-optimal"; 1 before."""
        if curve == "kaplan-meier":
            return self.event_times, self.kaplan_meier
        assert self.brier_times is not None and self.brier_survival is not None
        return self.brier_times, self.brier_survival

    def hazard_steps(self, curve: str) -> tuple[Floats, Floats]:
        """Cumulative hazard of the curve; 0 before.

        A decrease of the survival from S to S' adds 1 − S'/S, as in the Nelson–Aalen estimate, so
        it stays finite if the survival ends at 0.
        """
        if curve == "kaplan-meier":
            return self.event_times, self.nelson_aalen
        times, survival = self.survival_steps(curve)
        before = np.concatenate([[1.0], survival[:-1]])
        return times, np.cumsum(1 - survival / before)


def hazard_ratio(events: float, hazard: float, prior: float = 0.0) -> float:
    """θ of a leaf, with half an event if it has none (LeBlanc and Crowley 1992, p. 416).

    A prior of ``prior`` pseudo-events pulls it towards one. Without rows it is 1.
    """
    if hazard == 0:
        return 1.0
    if prior > 0:
        return (events + prior) / (hazard + prior)
    return (events if events > 0 else 0.5) / hazard


def baseline_hazard(data: TrainingData) -> Baseline:
    """Baseline of the training rows; O(n log n)."""
    table = RiskTable(data.time, data.event, data.weight, data.entry, data.place)
    times = table.time
    return Baseline(times, times[table.events > 0], table.nelson_aalen())


def row_hazard(data: TrainingData, baseline: Baseline) -> Floats:
    """Baseline hazard of every row between its entry and its time, shape (n,).

    If that is zero, it is 1/(W + 1) with W the total weight, so that no hazard sum is zero and
    every logarithm is finite; the engine's search has the same floor. If no row has an event, which
    is possible for one of several causes, all hazards are 0.
    """
    if data.entry is not None and baseline.event_times.size:
        # After a late entry little of the hazard remains, and it must keep all its digits.
        return _core.row_hazard(data.time, data.event, data.weight, data.entry, data.place)
    cumulative = StepFunction(baseline.unique_times, baseline.cumulative_hazard, before=0.0)
    return _with_floor(np.asarray(cumulative(data.time)), data, baseline)


def _with_floor(hazard: Floats, data: TrainingData, baseline: Baseline) -> Floats:
    if not baseline.event_times.size:
        return hazard
    total = len(data.time) if data.weight is None else np.sum(data.weight)
    return np.where(hazard > 0, hazard, 1 / (total + 1))


class SurvivalRows:
    """Training rows with their baseline, and statistics that trees over them share.

    No sum depends on the order of the rows.

    Parameters
    ----------
    data : TrainingData
        The rows.
    prior : float
        Pseudo-events of the prior on θ.
    count : array of int, shape (n,), optional
        Rows that each entry of ``data`` stands for, whose weight together is its weight.

    Attributes
    ----------
    data : TrainingData
    prior : float
        As given.
    baseline : Baseline
        Of all rows.
    """

    def __init__(
        self, data: TrainingData, prior: float = 0.0, count: Integers | None = None
    ) -> None:
        self.data = data
        self.prior = prior
        self.baseline = baseline_hazard(data)
        self._count = count
        self._known: dict[frozenset[tuple[int, bool]], LeafStatistics] = {}

    def statistics(self, tree: Tree, leaf: Integers) -> tuple[LeafStatistics, ...]:
        """Statistics of every leaf, left to right; ``leaf`` is the node id of every row's leaf.

        Leaves with the same answers, in any tree over the same features, are computed once.
        """
        answers, nodes = tree.leaf_answers(), tree.leaves
        new = [place for place, own in enumerate(answers) if own not in self._known]
        for place, found in zip(new, self.every(nodes[new], leaf), strict=True):
            self._known[answers[place]] = found
        known = [self._known[own] for own in answers]
        return tuple(
            one if one.node == node else replace(one, node=node)
            for one, node in zip(known, nodes.tolist(), strict=True)
        )

    def every(self, nodes: Integers, leaf: Integers) -> tuple[LeafStatistics, ...]:
        """Statistics of leaves with these node ids; ``leaf`` is that of every row."""
        if not nodes.size:
            return ()
        data, n = self.data, nodes.size
        # Rows of other leaves do not belong to any group.
        group_of = np.full(max(leaf.max(initial=0), nodes.max()) + 1, n, dtype=np.uint32)
        group_of[nodes] = np.arange(n)
        group = group_of[leaf]
        outcomes = group, n, data.time, data.event
        tables = RiskTable.by_group(*outcomes, data.weight, data.entry, data.place)
        counted: Sequence[RiskTable] = tables
        squares: Sequence[RiskTable | None] = [None] * n
        if data.weight is not None:
            rows = np.ones(len(leaf)) if self._count is None else self._count.astype(np.float64)
            squares = RiskTable.by_group(*outcomes, data.weight**2 / rows, data.entry, data.place)
            counted = RiskTable.by_group(*outcomes, rows, place=data.place)
        hazards, entries = self._hazards(group, tables), self._entries(group, n)
        every = nodes.tolist(), tables, squares, counted, hazards, entries
        return tuple(self._leaf(*one) for one in zip(*every, strict=True))

    def _hazards(self, group: NDArray[np.uint32], tables: Sequence[RiskTable]) -> list[float]:
        """Sums of weight times baseline hazard."""
        data = self.data
        if data.entry is not None:
            hazard = row_hazard(data, self.baseline)
            weighted = hazard if data.weight is None else data.weight * hazard
            sums = ExactValues(weighted).sums(group, len(tables) + 1)
            return sums.totals()[:-1].tolist()
        at_times = _with_floor(self.baseline.cumulative_hazard, data, self.baseline)
        return [table.sum_of(at_times) for table in tables]

    def _entries(self, group: NDArray[np.uint32], n: int) -> Sequence[Floats | None]:
        """Entry times of the rows of every group, ascending."""
        entry = self.data.entry
        if entry is None:
            return [None] * n
        if self._count is not None:
            entry, group = entry.repeat(self._count), group.repeat(self._count)
        return [np.sort(entry[group == k]) for k in range(n)]

    def _leaf(
        self,
        node: int,
        table: RiskTable,
        squares: RiskTable | None,
        counted: RiskTable,
        hazard: float,
        entries: Floats | None,
    ) -> LeafStatistics:
        """Statistics of rows by their table, and those of their squared weights and counts."""
        n_died, n_censored = counted.counts()
        n_events = int(n_died.sum())
        n_samples = n_events + int(n_censored.sum())
        events, weight = float(n_events), float(n_samples)
        event_times, at_risk, kaplan_meier, nelson_aalen = table.at_events()
        if squares is not None:
            events = float(table.events.sum())
            weight = events + float(table.censored.sum())
            at_risk = effective_at_risk(table, squares, n_samples)[table.events > 0]
        return LeafStatistics(
            node=node,
            n_samples=n_samples,
            n_events=n_events,
            weight=weight,
            events=events,
            hazard=hazard,
            theta=hazard_ratio(events, hazard, self.prior),
            event_times=event_times,
            kaplan_meier=kaplan_meier,
            nelson_aalen=nelson_aalen,
            at_risk=at_risk,
            follow_up=FollowUp(table.time, n_died, n_censored, entries),
        )


def statistics_of(
    nodes: Integers, follow_up: Sequence[FollowUp], prior: float = 0.0
) -> tuple[SurvivalRows, Integers, tuple[LeafStatistics, ...]]:
    """Statistics of leaves from counts, with rows of weight one and the leaf of each."""
    outcomes = [one.rows() for one in follow_up]
    event = np.concatenate([event for event, _ in outcomes])
    time = np.concatenate([time for _, time in outcomes])
    leaf = nodes.repeat([one.n_rows for one in follow_up])
    rows = SurvivalRows(TrainingData(None, event, time, None), prior)
    return rows, leaf, rows.every(nodes, leaf)


def with_best_curves(
    statistics: tuple[LeafStatistics, ...], leaf: Integers, data: TrainingData
) -> tuple[LeafStatistics, ...]:
    """Statistics with the curve of least Brier score; ``leaf`` is every row's leaf."""
    score = brier_score_of(data.time, data.event, data.weight)
    finished = []
    for one in statistics:
        rows = np.flatnonzero(leaf == one.node)
        weight = None if data.weight is None else data.weight[rows]
        times, survival = score.best_curve(data.time[rows], data.event[rows], weight)
        finished.append(replace(one, brier_times=times, brier_survival=survival))
    return tuple(finished)
