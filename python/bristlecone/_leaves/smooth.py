"""Leaves of soft trees: a survival model in which every row has its own curve."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.outcomes import Survival
from bristlecone._leaves.base import Columns, SurvivalLeaves, median_text
from bristlecone._leaves.statistics import Baseline, LeafStatistics, SurvivalRows
from bristlecone._soft.curve import SmoothCurve, cumulative_hazard
from bristlecone._soft.models import LeafModel
from bristlecone._soft.tree import SoftTree, linear_predictor
from bristlecone._types import Bools, Floats, Integers

# Most event times over which the risk is summed.
_RISK_TIMES = 200
# Most cells of a table of curves that are computed at once.
_CELLS = 1 << 20
# Nodes between two quantiles, and the shares of these quantiles.
_RMST_NODES = 16
_RMST_SHARES = np.array([1e-4, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 0.999, 0.9999, 1 - 1e-6])


class SmoothRows(NamedTuple):
    """Leaf of every row, and its linear predictor there, both of shape (n,)."""

    leaf: Integers
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
    statistics : tuple of LeafStatistics
        Of the rows on the most probable path to each leaf; θ is about these.
    typical_linear : array of float, shape (n_leaves,)
        Mean linear predictor of these rows; of all rows where there are none.
    share : array of float, shape (n_leaves,)
        Share of the training weight.
    """

    model: LeafModel
    linear: Floats
    shape: Floats
    log_unit: float
    baseline: Baseline
    statistics: tuple[LeafStatistics, ...]
    typical_linear: Floats
    share: Floats

    tree_kind, has_steps = "Soft survival tree", False

    @classmethod
    def grown(
        cls,
        tree: SoftTree,
        model: LeafModel,
        linear: Floats,
        shape: Floats,
        log_unit: float,
        rows: SurvivalRows,
        design: Floats,
    ) -> SmoothLeaves:
        """Leaves of a tree; ``design`` is the design of the training rows."""
        leaf = tree.leaf_index(design)
        own = linear_predictor(design, linear[:, :-1], linear[:, -1])
        weight = np.ones(len(leaf)) if rows.data.weight is None else rows.data.weight
        typical = [
            np.average(values, weights=weight * at if at.any() else weight)
            for values, at in ((own[k], leaf == k) for k in range(tree.n_leaves))
        ]
        return cls(
            model=model,
            linear=linear,
            shape=shape,
            log_unit=log_unit,
            baseline=rows.baseline,
            statistics=rows.every(tree.leaves, tree.leaves[leaf]),
            typical_linear=np.array(typical),
            share=leaf_shares(tree),
        )

    @property
    def typical(self) -> SmoothRows:
        return SmoothRows(np.arange(len(self.typical_linear)), self.typical_linear)

    @property
    def weighed(self) -> Bools:
        """Design columns that any leaf weights, shape (n_design,)."""
        return (self.linear[:, :-1] != 0).any(axis=0)

    def locate(self, leaf: Integers, design: NDArray[Any]) -> SmoothRows:
        predictors = linear_predictor(design, self.linear[:, :-1], self.linear[:, -1])
        return SmoothRows(leaf, predictors[leaf, np.arange(len(leaf))])

    @property
    def risk_times(self) -> Floats:
        """Event times over which the risk is summed: at most 200, evenly spread by rank."""
        times = self.event_times
        if times.size > _RISK_TIMES:
            times = times[np.linspace(0, times.size - 1, _RISK_TIMES).round().astype(np.int64)]
        return times

    def _hazards(self, rows: SmoothRows, times: Floats) -> Floats:
        shape = self.shape[rows.leaf]
        return cumulative_hazard(self.model, rows.linear, shape, times, self.log_unit)

    def risk(self, rows: SmoothRows) -> Floats:
        times = self.risk_times
        result = np.empty(len(rows.leaf))
        for part, own in _blocks(rows, times.size):
            result[part] = self._hazards(own, times).sum(axis=1)
        return result

    def ranks(self, rows: SmoothRows) -> Integers:
        # Small risks may differ by less than the tolerance of the concordance index.
        return np.unique(self.risk(rows), return_inverse=True)[1]

    def survival(self, rows: SmoothRows, times: Floats) -> Floats:
        values = self.cumulative_hazard(rows, times)
        return np.exp(np.negative(values, out=values), out=values)

    def cumulative_hazard(self, rows: SmoothRows, times: Floats) -> Floats:
        values = np.empty((len(rows.leaf), times.size))
        for part, own in _blocks(rows, times.size):
            values[part] = self._hazards(own, times)
        return values

    def functions(self, rows: SmoothRows, *, survival: bool) -> NDArray[np.object_]:
        functions = np.empty(len(rows.leaf), dtype=object)
        functions[:] = [
            SmoothCurve(
                self.unique_times, self.model, predictor, self.shape[k], self.log_unit, survival
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
        for part, own in _blocks(rows, _RMST_NODES * (_RMST_SHARES.size + 1)):
            cuts = np.minimum(self.quantiles(own, _RMST_SHARES), tau)
            edges = np.hstack([np.zeros((len(cuts), 1)), cuts, np.full((len(cuts), 1), tau)])
            half = np.diff(edges)[:, :, np.newaxis] / 2
            times = edges[:, :-1, np.newaxis] + half * (node + 1)
            hazard = self._hazards(own, times.reshape(len(cuts), -1))
            steps = (half * weight).reshape(len(cuts), -1)
            result[part] = (np.exp(-hazard) * steps).sum(axis=1)
        return result

    def log_likelihood(self, rows: SmoothRows, outcomes: Survival) -> Floats:
        """δ ln h − H per row, with h per unit of time; for late entry, H counts from the entry.

        A time of 0, which has no logarithm, is replaced by the smallest training time. If training
        rows had the time 0, that is the time which replaced it in the fit.
        """
        event, time, entry = outcomes
        positive = np.where(time > 0, time, self.unique_times[0])
        y = np.log(positive[:, np.newaxis]) - self.log_unit
        clock = self.model.clock(y.ravel())
        losses = self.model.loss(
            rows.linear[:, np.newaxis],
            self.shape[rows.leaf],
            clock.reshape(len(clock), *y.shape),
            event[:, np.newaxis].astype(np.float64),
        )
        found = -losses.value[:, 0] - event * self.log_unit
        if entry is None:
            return found
        return found + self._hazards(rows, entry[:, np.newaxis])[:, 0]

    def facts(self) -> list[dict[str, Any]]:
        facts = super().facts()
        for fact, share in zip(facts, self.share.tolist(), strict=True):
            fact["share"] = share
        return facts

    def text(self, facts: Mapping[str, Any]) -> str:
        if facts["share"] == 0:
            return "empty"
        return f"events={facts['n_events']}, median={median_text(facts)}"

    def own_columns(self) -> Columns:
        return [("share", self.share)]


def leaf_shares(tree: SoftTree) -> Floats:
    """Share of the training weight in every leaf, by the most probable paths."""
    weight = tree.weighted_n_node_samples
    return weight[tree.leaves] / weight[0]


def _blocks(rows: SmoothRows, n_times: int) -> Iterator[tuple[slice, SmoothRows]]:
    """Blocks of rows whose curves at this many times fit in memory: places and rows."""
    size = max(1, _CELLS // max(1, n_times))
    for start in range(0, len(rows.leaf), size):
        part = slice(start, start + size)
        yield part, SmoothRows(rows.leaf[part], rows.linear[part])
