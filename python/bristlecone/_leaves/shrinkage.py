"""Hierarchical shrinkage: predictions of a leaf are pulled towards those of the nodes above it.

From the root down, every node counts λ pseudo-rows that are distributed like the prediction of its
parent. This follows Agarwal, Tan, Ronen, Singh, Yu, "Hierarchical shrinkage" (ICML 2022), where the
weight of the parent depends on its own rows instead. See docs/maths/shrinkage.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from bristlecone import _core
from bristlecone._data.survival import TrainingData
from bristlecone._leaves.brier import antitonic, brier_score_of
from bristlecone._tree import Tree
from bristlecone._types import Floats, Integers
from bristlecone.curves import StepFunction

Value = TypeVar("Value")


def shrunk_means(
    tree: Tree, sums: Floats, sizes: Floats, shrinkage: float, above: float | None = None
) -> Floats:
    """(sum + λ · value of the parent) / (size + λ) for every leaf, from the root down.

    ``sums`` over the rows of every leaf, shape (n_leaves,) or (n_leaves, k), are divided by the
    positive ``sizes`` (n_leaves,); both add up along the tree. ``above`` is the value above the
    root; None leaves the root unchanged.
    """
    total, size = tree.node_sums(sums), tree.node_sums(sizes)

    def value(node: int, parent: Any) -> Any:
        # Divide before multiplying, because λ may be as large as numbers get.
        count = size[node] + shrinkage
        return total[node] / count + shrinkage / count * parent

    root = total[0] / size[0] if above is None else value(0, above)
    return np.array(_down(tree, root, value))


@dataclass(frozen=True, eq=False)
class LeafCurves:
    """Shrunk step curves of all leaves.

    Parameters
    ----------
    times : array of float, shape (n_times,)
        Ascending.
    hazard : array of float, shape (n_leaves, n_times)
        Share of those left that has the event at each time, in [0, 1].
    """

    times: Floats
    hazard: Floats

    def survival_at(self, times: Floats) -> Floats:
        """Survival, shape (n_leaves, len(times)): Π (1 − hazard)."""
        return steps_at(self.times, (1 - self.hazard).cumprod(axis=1), times, before=1.0)

    def cumulative_hazard_at(self, times: Floats) -> Floats:
        """Cumulative hazard, shape (n_leaves, len(times)): Σ hazard."""
        return steps_at(self.times, self.hazard.cumsum(axis=1), times, before=0.0)


def steps_at(times: Floats, values: Floats, at: Floats, before: float) -> Floats:
    """Step functions of every leaf, (n_leaves, n_times), at some times."""
    padded = np.concatenate([np.full((len(values), 1), before), values], axis=1)
    return padded[:, np.searchsorted(times, at, side="right")]


def step_functions(times: Floats, values: Floats, before: float) -> NDArray[np.object_]:
    """The step function of every row of values, (n_leaves, n_times), shape (n_leaves,)."""
    functions = np.empty(len(values), dtype=object)
    functions[:] = [StepFunction(times, own, before=before) for own in values]
    return functions


def hazards_of(survival: Floats) -> Floats:
    """Discrete hazards of survival curves over their last axis; 0 once nothing survives."""
    before = np.concatenate([np.ones_like(survival[..., :1]), survival[..., :-1]], axis=-1)
    hazard = np.zeros_like(survival)
    np.divide(before - survival, before, out=hazard, where=before > 0)
    return hazard


def shrunk_curves(
    curve: str, tree: Tree, leaf: Integers, data: TrainingData, shrinkage: float
) -> LeafCurves:
    """Shrunk curves "kaplan-meier" or "brier-optimal"; O(n log n + nodes · times).

    ``leaf`` is the node id of the leaf of every row of ``data``.
    """
    position = np.searchsorted(tree.leaves, leaf)
    shrink = _shrunk_kaplan_meier if curve == "kaplan-meier" else _shrunk_brier_optimal
    return shrink(tree, position, data, shrinkage)


def _shrunk_kaplan_meier(
    tree: Tree, position: Integers, data: TrainingData, shrinkage: float
) -> LeafCurves:
    """Hazards (d + λ S_p(t−) h_p) / (n + λ S_p(t−)) at event times; d / n for the root."""
    times = np.unique(data.time[data.event])
    died, at_risk = (tree.node_sums(x) for x in _risk_sets(tree.n_leaves, position, data, times))

    def hazard(node: int, parent: Floats | None) -> Floats:
        d, n = died[node], at_risk[node]
        if parent is not None:
            pseudo = shrinkage * np.concatenate([[1.0], np.cumprod(1 - parent)[:-1]])
            d, n = d + pseudo * parent, n + pseudo
        share = np.zeros_like(d)
        np.divide(d, n, out=share, where=d > 0)
        return np.minimum(share, 1.0)

    return LeafCurves(times, np.array(_down(tree, hazard(0, None), hazard)))


def _risk_sets(
    n_leaves: int, position: Integers, data: TrainingData, times: Floats
) -> tuple[Floats, Floats]:
    """Weight of events and of rows at risk of every leaf at event times, (n_leaves, n_times)."""
    died, at_risk = np.zeros((2, n_leaves, len(times)))
    group = position.astype(np.uint32)
    rows: tuple[Any, ...] = data.time, data.event, data.weight, data.entry, data.place
    if data.entry is not None:
        # With late entry the rows at risk change, so rows without weight add all times to every
        # leaf.
        asked = np.tile(times, n_leaves)
        nobody, weight = np.zeros(len(asked)), data.weight
        group = np.append(group, np.arange(n_leaves, dtype=np.uint32).repeat(len(times)))
        rows = (
            np.append(data.time, asked),
            np.append(data.event, nobody.astype(bool)),
            np.append(np.ones(len(data.time)) if weight is None else weight, nobody),
            np.append(data.entry, nobody),
        )
    tables = _core.RiskTable.by_group(group, n_leaves, *rows)
    for leaf, table in enumerate(tables):
        # The weight at risk at a time is that at the leaf's next time.
        at_risk[leaf] = np.append(table.at_risk, 0.0)[np.searchsorted(table.time, times)]
        own = table.events > 0
        died[leaf, np.searchsorted(times, table.time[own])] = table.events[own]
    return died, at_risk


def _shrunk_brier_optimal(
    tree: Tree, position: Integers, data: TrainingData, shrinkage: float
) -> LeafCurves:
    """Non-increasing curves of least Brier score plus λ times the squared distance to the parent's.

    A pseudo-row whose death follows the parent's curve S_p adds S² (1 − S_p) + (1 − S)² S_p, which
    is (S − S_p)² plus a constant.
    """
    score = brier_score_of(data.time, data.event, data.weight)
    weight = data.weight
    if weight is not None:
        # No sum of weights depends on the order of the rows.
        order = np.lexsort((data.event, weight, data.time))
        position, weight = position[order], weight[order]
        data = data._replace(time=data.time[order], event=data.event[order])
    terms = score.leaf_terms(position, tree.n_leaves, data.time, data.event, weight)
    dead, alive = (tree.node_sums(x) for x in terms)

    def survival(node: int, parent: Floats | None) -> Floats:
        A, B = dead[node], alive[node]
        if parent is not None:
            A, B = A + shrinkage * (1 - parent), B + shrinkage * parent
        return antitonic(A, B, score.share)

    curves = np.array(_down(tree, survival(0, None), survival))
    return LeafCurves(score.times, hazards_of(curves))


def _down(tree: Tree, root: Value, below: Callable[[int, Value], Value]) -> list[Value]:
    """Values of the leaves, left to right: ``below(node, value of its parent)`` from the root."""
    values = {0: root}
    for node in np.flatnonzero(~tree.is_leaf).tolist():
        parent = values.pop(node)
        for child in (int(tree.children_left[node]), int(tree.children_right[node])):
            values[child] = below(child, parent)
    return [values[node] for node in tree.leaves.tolist()]
