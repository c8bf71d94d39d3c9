"""Leaves of soft trees: a survival model in which every row has a curve of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bristlecone import curves
from bristlecone.leaves.base import Columns, SurvivalLeaves
from bristlecone.leaves.statistics import Baseline
from bristlecone.soft.curve import SmoothCurve, cumulative_hazard
from bristlecone.soft.models import LeafModel
from bristlecone.soft.tree import SoftTree, linear_predictor

__all__ = ["SmoothLeaves", "SmoothRows"]

Floats = NDArray[np.float64]

# Event times over which the risk is summed, at most.
_RISK_TIMES = 200
# Cells of a table of curves worked on at once.
_CELLS = 1 << 20
# Nodes between two quantiles, and the shares of the quantiles.
_RMST_NODES = 16
_RMST_SHARES = np.array([1e-4, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 0.9999, 1 - 1e-6])


class SmoothRows(NamedTuple):
    """Leaf of every row and its linear predictor there, both of shape (n,)."""

    leaf: NDArray[np.int64]
    linear: Floats


@dataclass(frozen=True, eq=False)
class SmoothLeaves(SurvivalLeaves):
    """Parameters of the survival model of every leaf, and its training rows.

    Parameters
    ----------
    model : LeafModel
        The family of curves.
    linear : array of float, shape (n_leaves, n_design + 1)
        Weights of the linear predictors over the design and ones.
    shape : array of float, shape (n_leaves, q)
        Further parameters.
    log_unit : float
        Logarithm of the unit of time of the parameters, in the user's.
    baseline : Baseline
        Of all training rows.
    n_events : array of int, shape (n_leaves,)
        Events of the rows on the most probable path to each leaf.
    median : array of float, shape (n_leaves,)
        Kaplan–Meier median of these rows: inf where it is not reached, NaN without rows.
    share : array of float, shape (n_leaves,)
        Share of the training weight.
    """

    model: LeafModel
    linear: Floats
    shape: Floats
    log_unit: float
    baseline: Baseline
    n_events: NDArray[np.int64]
    median: Floats
    share: Floats

    @classmethod
    def grown(
        cls,
        tree: SoftTree,
        model: LeafModel,
        linear: Floats,
        shape: Floats,
        log_unit: float,
        baseline: Baseline,
        rows: tuple[NDArray[np.int64], NDArray[np.bool_], Floats, Floats],
    ) -> SmoothLeaves:
        """Leaves of a tree; ``rows`` are leaf, event, time and weight of the training rows."""
        leaf, event, time, weight = rows
        medians = np.full(tree.n_leaves, np.nan)
        for k in range(tree.n_leaves):
            own = leaf == k
            if own.any():
                survival = curves.kaplan_meier((event[own], time[own]), weight[own])
                medians[k] = curves.median(survival.x, survival.y)
        events = np.bincount(leaf, event, tree.n_leaves).astype(np.int64)
        share = leaf_shares(tree)
        return cls(model, linear, shape, log_unit, baseline, events, medians, share)

    @property
    def unique_times(self) -> Floats:
        return self.baseline.unique_times

    @property
    def event_times(self) -> Floats:
        return self.baseline.event_times

    @property
    def weighed(self) -> NDArray[np.bool_]:
        """Design columns that a leaf weighs, shape (n_design,)."""
        return (self.linear[:, :-1] != 0).any(axis=0)

    def locate(self, leaf: NDArray[np.int64], design: NDArray[Any]) -> SmoothRows:
        predictors = linear_predictor(design, self.linear[:, :-1], self.linear[:, -1])
        return SmoothRows(leaf, predictors[leaf, np.arange(len(leaf))])

    @property
    def risk_times(self) -> Floats:
        """Event times over which the risk is summed: at most 200, evenly spread by rank."""
        times = self.event_times
        if times.size > _RISK_TIMES:
            times = times[np.linspace(0, times.size - 1, _RISK_TIMES).round().astype(np.int64)]
        return times

    def _hazards(self, rows: SmoothRows, times: Floats, part: slice) -> Floats:
        shape = self.shape[rows.leaf[part]]
        return cumulative_hazard(self.model, rows.linear[part], shape, times, self.log_unit)

    def risk(self, rows: SmoothRows) -> Floats:
        times = self.risk_times
        result = np.empty(len(rows.leaf))
        for part in _blocks(len(result), times.size):
            result[part] = self._hazards(rows, times, part).sum(axis=1)
        return result

    def ranks(self, rows: SmoothRows) -> NDArray[np.int64]:
        # Small risks may differ by less than the concordance index takes for a tie.
        return np.unique(self.risk(rows), return_inverse=True)[1]

    def survival(self, rows: SmoothRows, times: Floats) -> Floats:
        values = self.cumulative_hazard(rows, times)
        return np.exp(np.negative(values, out=values), out=values)

    def cumulative_hazard(self, rows: SmoothRows, times: Floats) -> Floats:
        values = np.empty((len(rows.leaf), times.size))
        for part in _blocks(len(values), times.size):
            values[part] = self._hazards(rows, times, part)
        return values

    def functions(self, rows: SmoothRows, *, survival: bool) -> NDArray[np.object_]:
        functions = np.empty(len(rows.leaf), dtype=object)
        functions[:] = [
            SmoothCurve(
                self.unique_times,
                self.model,
                predictor,
                self.shape[k],
                self.log_unit,
                survival=survival,
            )
            for k, predictor in zip(rows.leaf, rows.linear.tolist(), strict=True)
        ]
        return functions

    def quantiles(self, rows: SmoothRows, levels: Floats) -> Floats:
        found = self.model.log_time(levels, rows.linear[:, np.newaxis], self.shape[rows.leaf])
        with np.errstate(over="ignore"):
            return np.exp(found + self.log_unit)

    def rmst(self, rows: SmoothRows, tau: float) -> Floats:
        # Gauss–Legendre between quantiles of the row's own curve.
        result = np.empty(len(rows.leaf))
        node, weight = np.polynomial.legendre.leggauss(_RMST_NODES)
        for part in _blocks(len(result), _RMST_NODES * (_RMST_SHARES.size + 1)):
            own = SmoothRows(rows.leaf[part], rows.linear[part])
            cuts = np.minimum(self.quantiles(own, _RMST_SHARES), tau)
            edges = np.hstack([np.zeros((len(cuts), 1)), cuts, np.full((len(cuts), 1), tau)])
            half = np.diff(edges)[:, :, np.newaxis] / 2
            times = edges[:, :-1, np.newaxis] + half * (node + 1)
            hazard = self._hazards(own, times.reshape(len(cuts), -1), slice(None))
            steps = (half * weight).reshape(len(cuts), -1)
            result[part] = (np.exp(-hazard) * steps).sum(axis=1)
        return result

    def facts(self) -> list[dict[str, Any]]:
        return [
            {
                "n_events": int(events),
                "median": float(median) if np.isfinite(median) else None,
                "share": float(share),
            }
            for events, median, share in zip(self.n_events, self.median, self.share, strict=True)
        ]

    def text(self, facts: Mapping[str, Any]) -> str:
        if facts["share"] == 0:
            return "empty"
        median = "not reached" if facts["median"] is None else f"{facts['median']:g}"
        return f"events={facts['n_events']}, median={median}"

    def table(self, times: Sequence[float], confidence: float) -> Columns:
        return [("n_events", self.n_events), ("median", self.median), ("share", self.share)]


def leaf_shares(tree: SoftTree) -> Floats:
    """Share of the training weight in every leaf, by the most probable paths."""
    weight = tree.weighted_n_node_samples
    return weight[tree.leaves] / weight[0]


def _blocks(n_rows: int, n_times: int) -> Iterator[slice]:
    size = max(1, _CELLS // max(1, n_times))
    for start in range(0, n_rows, size):
        yield slice(start, start + size)
