"""Baseline hazard of the training rows and what every leaf knows about its own.

The formulas are those of Huisman, van der Linden and Demirović (AAAI-24, section 3) and LeBlanc
and Crowley (1992); the nonparametric curves come from ``_core.risk_table``, their one definition.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from bristlecone import _core
from bristlecone._data.exact import product_sum
from bristlecone._data.survival import TrainingData
from bristlecone._leaves.brier import brier_score_of
from bristlecone._leaves.follow_up import FollowUp
from bristlecone._tree import Tree
from bristlecone.curves import KaplanMeier, StepFunction, risk_table


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
        Where the curve of least Brier score falls, and its value from there on; only of a fit with
        ``leaf_curve="brier-optimal"``.
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
    at_risk: NDArray[np.float64]
    follow_up: FollowUp
    brier_times: NDArray[np.float64] | None = None
    brier_survival: NDArray[np.float64] | None = None

    def __repr__(self) -> str:
        counts = f"node={self.node}, n_samples={self.n_samples}, n_events={self.n_events}"
        return f"LeafStatistics({counts}, theta={self.theta:.4g}, median={self.curve.median:g})"

    @cached_property
    def curve(self) -> KaplanMeier:
        """Kaplan–Meier estimate with variance, confidence limits and quantiles."""
        hazard = np.diff(self.nelson_aalen, prepend=0.0)
        return KaplanMeier(self.event_times, self.kaplan_meier, hazard=hazard, at_risk=self.at_risk)

    def survival_steps(self, curve: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Times and values of the curve "kaplan-meier" or "brier-optimal"; 1 before."""
        if curve == "kaplan-meier":
            return self.event_times, self.kaplan_meier
        assert self.brier_times is not None and self.brier_survival is not None
        return self.brier_times, self.brier_survival

    def hazard_steps(self, curve: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Cumulative hazard of the curve; 0 before.

        A fall of the survival from S to S' adds 1 − S'/S, as in the Nelson–Aalen estimate, so that
        it stays finite where the survival ends at 0.
        """
        if curve == "kaplan-meier":
            return self.event_times, self.nelson_aalen
        times, survival = self.survival_steps(curve)
        before = np.concatenate([[1.0], survival[:-1]])
        return times, np.cumsum(1 - survival / before)


def hazard_ratio(events: float, hazard: float, prior: float = 0.0) -> float:
    """θ of a leaf; LeBlanc and Crowley (1992, p. 416) put half an event in a leaf without.

    A prior of so many pseudo-events draws it towards one. Of no rows nothing is known: 1.
    """
    if hazard == 0:
        return 1.0
    if prior > 0:
        return (events + prior) / (hazard + prior)
    return (events if events > 0 else 0.5) / hazard


def baseline_hazard(data: TrainingData) -> Baseline:
    """Baseline of the training rows; O(n log n)."""
    table = _core.risk_table(data.time, data.event, data.weight, data.entry)
    return Baseline(table["time"], table["time"][table["events"] > 0], table["nelson_aalen"])


def row_hazard(
    data: TrainingData, baseline: Baseline, place: NDArray[np.integer] | None = None
) -> NDArray[np.float64]:
    """Baseline hazard of every row between its entry and its time, shape (n,).

    Where that is zero it is 1/(W + 1), W the total weight, so that no hazard sum is zero and
    every logarithm finite; the engine's search has the same floor. If no row has an event, as may
    be with one of several causes, nothing is known of the hazard, and all are 0. ``place`` is that
    of every row's time among the unique ones, where it is known.
    """
    if not baseline.event_times.size:
        return np.zeros(len(data.time))
    if data.entry is not None:
        # A late entry leaves little of the hazard, which is to have all its digits.
        return _core.row_hazard(data.time, data.event, data.weight, data.entry)
    if place is None:
        cumulative = StepFunction(baseline.unique_times, baseline.cumulative_hazard, before=0.0)
        hazard = np.asarray(cumulative(data.time))
    else:
        hazard = baseline.cumulative_hazard[place]
    total = len(hazard) if data.weight is None else np.sum(data.weight)
    return np.where(hazard > 0, hazard, 1 / (total + 1))


class SurvivalRows:
    """Training rows with their baseline, and the leaves that trees over them have in common.

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
    order : array of int, shape (n,)
        Puts rows in the order of time, ties in one that follows from their outcomes and weights.
    ordered : TrainingData
        Outcomes and weights in this order (``X`` is as given).
    baseline : Baseline
        Of all rows.
    """

    def __init__(
        self, data: TrainingData, prior: float = 0.0, count: NDArray[np.int64] | None = None
    ) -> None:
        self.data = data
        self.prior = prior
        ranks, distinct = _core.rank_values(data.time)
        ranks = ranks.astype(np.min_scalar_type(len(distinct)))
        keys = [x for x in (data.entry, data.event, data.weight, ranks) if x is not None]
        # In the order of time the engine has nothing to sort; ties matter to sums of weights only.
        weighted = data.weight is not None
        self.order = np.lexsort(keys) if weighted else np.argsort(ranks, kind="stable")
        weight, entry = (None if x is None else x[self.order] for x in (data.weight, data.entry))
        self.ordered = data._replace(
            time=data.time[self.order], event=data.event[self.order], weight=weight, entry=entry
        )
        self.baseline = baseline_hazard(self.ordered)
        hazards = row_hazard(self.ordered, self.baseline, ranks[self.order])
        self._hazards = hazards if weight is None or count is not None else hazards * weight
        self._count = None if count is None else count[self.order]
        self._known: dict[frozenset[tuple[int, float, bool]], LeafStatistics] = {}

    def statistics(self, tree: Tree, leaf: NDArray[np.int64]) -> tuple[LeafStatistics, ...]:
        """Statistics of every leaf, left to right; ``leaf`` is the node id of every row's leaf.

        No sum depends on the order of the rows. Leaves of the same answers, in any tree over the
        same features, are computed once.
        """
        leaves = []
        for answers, (node, rows) in zip(
            tree.leaf_answers(), self._by_leaf(tree.leaves, leaf), strict=True
        ):
            known = self._known.get(answers)
            if known is None:
                known = self._known[answers] = self._statistics(node, rows)
            leaves.append(known if known.node == node else replace(known, node=node))
        return tuple(leaves)

    def every(
        self, nodes: NDArray[np.int64], leaf: NDArray[np.int64]
    ) -> tuple[LeafStatistics, ...]:
        """Statistics of leaves with these node ids; ``leaf`` is that of every row."""
        return tuple(self._statistics(node, rows) for node, rows in self._by_leaf(nodes, leaf))

    def _by_leaf(
        self, nodes: NDArray[np.int64], leaf: NDArray[np.int64]
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Leaves with these node ids and their ordered rows; ``leaf`` is that of every row."""
        # Numbers of few bits are sorted in O(n).
        leaf = leaf.astype(np.min_scalar_type(nodes.max()))[self.order]
        rows = np.argsort(leaf, kind="stable")
        leaf = leaf[rows]
        for node in nodes.tolist():
            begin, end = leaf.searchsorted(node), leaf.searchsorted(node, side="right")
            yield node, rows[begin:end]

    def _statistics(self, node: int, rows: NDArray[np.int64]) -> LeafStatistics:
        data = self.ordered
        event = data.event[rows]
        weight, entry = (None if x is None else x[rows] for x in (data.weight, data.entry))
        count = None if self._count is None else self._count[rows]
        table = risk_table(data.time[rows], event, weight, entry, count)
        # The sum is rounded once, whatever the order.
        hazards, events = self._hazards[rows], float(table["events"].sum())
        if count is None or weight is None:
            hazard = math.fsum(hazards.tolist())
        else:
            hazard = product_sum(hazards, weight)
        happened = table["events"] > 0
        if weight is None:  # then the table has counted them
            died, censored = (table[name].astype(np.int64) for name in ("events", "censored"))
            entered = None if entry is None else np.sort(entry)
            follow_up = FollowUp(table["time"], died, censored, entered)
        else:
            follow_up = FollowUp.of(event, data.time[rows], entry, count)
        return LeafStatistics(
            node=node,
            n_samples=rows.size if count is None else int(count.sum()),
            n_events=int(np.count_nonzero(event) if count is None else count[event].sum()),
            weight=float((table["events"] + table["censored"]).sum()),
            events=events,
            hazard=hazard,
            theta=hazard_ratio(events, hazard, self.prior),
            event_times=table["time"][happened],
            kaplan_meier=table["kaplan_meier"][happened],
            nelson_aalen=table["nelson_aalen"][happened],
            at_risk=table["effective_at_risk"][happened],
            follow_up=follow_up,
        )


def statistics_of(
    nodes: NDArray[np.int64], follow_up: Sequence[FollowUp], prior: float = 0.0
) -> tuple[SurvivalRows, NDArray[np.int64], tuple[LeafStatistics, ...]]:
    """Rows of weight one, the leaf of each, and the statistics of leaves, from counts of rows."""
    outcomes = [one.rows() for one in follow_up]
    event = np.concatenate([event for event, _ in outcomes])
    time = np.concatenate([time for _, time in outcomes])
    leaf = nodes.repeat([one.n_rows for one in follow_up])
    rows = SurvivalRows(TrainingData(None, event, time, None), prior)
    return rows, leaf, rows.every(nodes, leaf)


def with_best_curves(
    statistics: tuple[LeafStatistics, ...], leaf: NDArray[np.int64], data: TrainingData
) -> tuple[LeafStatistics, ...]:
    """Statistics with the curve of least Brier score; ``leaf`` is the leaf of every row."""
    score = brier_score_of(data.time, data.event, data.weight)
    finished = []
    for one in statistics:
        rows = np.flatnonzero(leaf == one.node)
        weight = None if data.weight is None else data.weight[rows]
        times, survival = score.best_curve(data.time[rows], data.event[rows], weight)
        finished.append(replace(one, brier_times=times, brier_survival=survival))
    return tuple(finished)
