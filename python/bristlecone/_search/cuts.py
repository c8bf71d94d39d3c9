"""Greedy trees over every threshold, whose cuts ``encoder="auto"`` adds to its features."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from bristlecone import _core
from bristlecone._encoder.cuts import Cut
from bristlecone._encoder.ranks import RankedColumns
from bristlecone._types import Floats, Integers

Costs = Callable[[Floats], Floats]

# Down to this depth a split is kept though it gains nothing by itself, as in the engine.
_PATIENCE = 8

# Most nodes whose costs are asked of a task in one call.
_MOST_SUMS = 1 << 14

# A difference of costs this small, as a share of them, is rounding.
_ROUNDING = 1e-12


class Growth(NamedTuple):
    """Limits on the size of the trees and on the ``seconds`` they take, None for no limit."""

    max_depth: int
    max_leaf_nodes: int | None
    leaf_penalty: float
    seconds: float | None
    min_samples_leaf: int
    min_events_leaf: int = 0

    def after(self, start: float) -> Growth:
        """The same limits, without the seconds that have passed since ``start``."""
        if self.seconds is None:
            return self
        return self._replace(seconds=max(self.seconds - (time.perf_counter() - start), 0.0))


def cuts_of_task(
    task: str, data: dict[str, Any], columns: RankedColumns, growth: Growth
) -> list[Cut]:
    """Cuts of the engine's greedy tree for a task, pruned exactly."""
    cuts, _ = _grow(task, data, columns, growth)
    return [cut for cut in cuts if cut is not None]


def _grow(
    task: str, data: dict[str, Any], columns: RankedColumns, growth: Growth
) -> tuple[list[Cut | None], list[list[int]]]:
    """Cut (None at a leaf) and children of every node of the engine's greedy tree for a task."""
    limits = growth._asdict()
    limits |= {"time_limit": limits.pop("seconds"), "memory_limit": None}
    grown = _core.greedy_cuts(task, data, columns.ranks, **limits, n_threads=1, options=None)
    parts = (grown[name].tolist() for name in ("column", "below", "above"))
    cuts = [Cut(*cut) if cut[0] >= 0 else None for cut in zip(*parts, strict=True)]
    return cuts, np.column_stack([grown["children_left"], grown["children_right"]]).tolist()


def cuts_by_gini(data: dict[str, Any], columns: RankedColumns, growth: Growth) -> list[Cut]:
    """Cuts of the greedy tree by Gini impurity, after pruning by errors and the leaf penalty.

    ``data`` are those of the task "gini": labels and weights.
    """
    labels, weight = data["labels"], data["weight"]
    cuts, children = _grow("gini", data, columns, growth._replace(leaf_penalty=0.0))
    costs = [0.0] * len(cuts)
    total = float(columns.n_rows if weight is None else weight.sum())
    waiting = [(0, np.arange(columns.n_rows))]
    while waiting:
        node, rows = waiting.pop()
        of_class = np.bincount(labels[rows], None if weight is None else weight[rows])
        costs[node] = float(of_class.sum() - of_class.max())
        cut = cuts[node]
        if cut is not None:
            left = columns.ranks[cut.column][rows] <= cut.below
            waiting += zip(children[node], (rows[left], rows[~left]), strict=True)
    kept = _worthwhile(costs, [growth.leaf_penalty * total] * len(costs), children, None)
    return [cut for node, cut in enumerate(cuts) if node in kept and cut is not None]


def cuts_by_costs(
    statistics: Floats,
    leaf_cost: Costs,
    split_cost: Costs | None,
    total_weight: float,
    columns: RankedColumns,
    growth: Growth,
) -> list[Cut]:
    """Cuts of the greedy tree of a user's own task, pruned exactly, as the engine does for its own.

    ``statistics`` are those of every row, shape (n, k). O(columns · n log n) per level.
    """
    until = math.inf if growth.seconds is None else time.perf_counter() + growth.seconds
    penalty = growth.leaf_penalty * total_weight
    deepest = growth.max_depth
    if growth.max_leaf_nodes is not None:
        deepest = min(deepest, growth.max_leaf_nodes - 1)
    costs: list[float] = []
    prices: list[float] = []
    children: list[list[int]] = []
    cuts: list[Cut | None] = []

    def create(rows: Integers) -> int:
        sums = np.asfortranarray(statistics[rows].sum(axis=0, keepdims=True))
        costs.append(float(leaf_cost(sums)[0]))
        own = 0.0 if split_cost is None else float(split_cost(sums)[0])
        prices.append(own + penalty)
        children.append([-1, -1])
        cuts.append(None)
        return len(costs) - 1

    everything = np.arange(len(statistics))
    waiting = [(create(everything), everything, 0)]
    while waiting and time.perf_counter() < until:
        node, rows, depth = waiting.pop(0)
        if depth == deepest:
            continue
        found = _best_cut(statistics, rows, leaf_cost, columns, growth.min_samples_leaf)
        if found is None:
            continue
        total, cut = found
        patient = depth < _PATIENCE and depth + 1 < deepest
        pays = total + prices[node] - penalty < costs[node]
        if not (pays or patient):
            continue
        left = columns.ranks[cut.column][rows] <= cut.below
        sides = rows[left], rows[~left]
        cuts[node] = cut
        children[node] = [create(side) for side in sides]
        waiting += [
            (child, side, depth + 1) for child, side in zip(children[node], sides, strict=True)
        ]
    kept = _worthwhile(costs, prices, children, growth.max_leaf_nodes)
    return [cut for node, cut in enumerate(cuts) if node in kept and cut is not None]


def _best_cut(
    statistics: Floats,
    rows: Integers,
    leaf_cost: Costs,
    columns: RankedColumns,
    least: int,
) -> tuple[float, Cut] | None:
    """The first cut of least cost of a node's rows."""
    best: tuple[float, Cut] | None = None
    for column, ranks in enumerate(columns.ranks):
        order = rows[np.argsort(ranks[rows], kind="stable")]
        rank = ranks[order]
        ends = np.flatnonzero(rank[:-1] != rank[1:]) + 1
        ends = ends[(ends >= least) & (len(rows) - ends >= least)]
        if not len(ends):
            continue
        own = statistics[order]
        left = own.cumsum(axis=0)[ends - 1]
        # Summed from either end: a difference of sums could cancel, and fall below zero.
        right = own[::-1].cumsum(axis=0)[::-1][ends]
        total = _in_parts(leaf_cost, left) + _in_parts(leaf_cost, right)
        at = int(np.argmin(total))
        if best is None or total[at] < best[0]:
            end = ends[at]
            best = float(total[at]), Cut(column, int(rank[end - 1]), int(rank[end]))
    return best


def _in_parts(leaf_cost: Costs, sums: Floats) -> Floats:
    parts = range(0, len(sums), _MOST_SUMS)
    return np.concatenate([leaf_cost(sums[start : start + _MOST_SUMS]) for start in parts])


def _worthwhile(
    costs: list[float], prices: list[float], children: list[list[int]], most: int | None
) -> set[int]:
    """Splits of the cheapest subtree with at most ``most`` leaves; children follow their parent.

    ``costs`` are those of every node as a leaf, ``prices`` those of its split.
    """
    leaves = sum(left < 0 for left, _ in children)
    limited = most is not None and most < leaves
    # Place k of a node is its best with k + 1 leaves at most, or the only one its best of all:
    # the cost and the places of the two sides.
    best: list[list[tuple[float, tuple[int, int] | None]]] = [[] for _ in costs]
    for node in reversed(range(len(costs))):
        left, right = children[node]
        places: list[tuple[float, tuple[int, int] | None]] = [(costs[node], None)]
        if left >= 0:
            if limited and most is not None:
                places *= min(len(best[left]) + len(best[right]), most)
            for a, (one, _) in enumerate(best[left]):
                for b, (other, _) in enumerate(best[right]):
                    place = a + b + 1 if limited else 0
                    if place >= len(places):
                        break
                    cost, old = one + other + prices[node], places[place][0]
                    if cost < old - (_ROUNDING * abs(old) if math.isfinite(old) else 0.0):
                        places[place] = cost, (a, b)
            for place in range(1, len(places)):
                if places[place][0] >= places[place - 1][0]:
                    places[place] = places[place - 1]
        best[node] = places
    kept, waiting = set(), [(0, len(best[0]) - 1)]
    while waiting:
        node, place = waiting.pop()
        shares = best[node][place][1]
        if shares is not None:
            kept.add(node)
            waiting += zip(children[node], shares, strict=True)
    return kept
