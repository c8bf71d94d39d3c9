"""Trees that predict means of numbers, or rates of counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bristlecone._data.targets import check_numbers
from bristlecone._leaves.means import LEVELS
from bristlecone._types import Bools, Floats
from bristlecone.trust._columns import Table
from bristlecone.trust._compare import Checks, Pairs
from bristlecone.trust._exact import Column, exact_means, of_size_one
from bristlecone.trust._rows import Rows, down, kept_rows, rows_of
from bristlecone.trust._statement import ROUNDING, Statement
from bristlecone.trust._survival import Counted


def read_rows(tree: Any, table: Table, y: Any, weight: Any, more: Mapping[str, Any]) -> Rows:
    """Numbers, or counts with their exposures."""
    target, kept = check_numbers("y", y, table.n_rows), kept_rows(table, weight)
    own, target = None if weight is None else weight[kept], target[kept]
    outcomes: tuple[Any, ...] = target, own, kept
    facts = {"target": target}
    if tree.certificate_.parameters["objective"] == "poisson":
        exposure = np.ones(len(target))
        if more.get("exposure") is not None:
            exposure = check_numbers("exposure", more["exposure"], table.n_rows)[kept]
            outcomes = *outcomes, exposure
        facts = {"counts": target, "exposure": exposure, "target": target / exposure}
    return rows_of(tree, table, weight, kept, outcomes, facts)


def objective(tree: Any, rows: Rows) -> Statement:
    """Objective of an ``OptimalTreeRegressor``."""
    sought = rows.facts.get("smoothed", rows.facts.get("counts", rows.facts["target"]))
    if tree.certificate_.parameters["objective"] == "poisson":
        exposure = Column.of(rows.facts["exposure"])
        return Counted(Column.of(sought), exposure, Column.of(rows.weight), 0.0)
    return _SquaredError(sought, rows.weight)


class _SquaredError(Statement):
    """Squared distance from the mean of a leaf."""

    is_concave = True

    def __init__(self, values: Floats, weights: Floats) -> None:
        weight, target = Column.of(weights), Column.of(values)
        # Squares about any value have the same cost; about the median few of them cancel.
        middle = float(np.sort(values)[len(values) // 2])
        centred, self.factor = of_size_one(target.minus(middle))
        self.factor **= 2
        first = weight * centred
        self.columns = [weight, first, first * centred]
        self.total = weight.sum()

    def candidates(self, sums: Any) -> Any:
        size, first, second = sums.T
        return np.asarray(second - first**2 / np.where(size > 0, size, 1))[:, None, None]

    def least(self, sums: Sequence[Floats], errors: Sequence[float]) -> Floats:
        size, first = sums[0] - errors[0], np.abs(sums[1]) + errors[1]
        some = size > 0
        mean = np.where(some, first**2 / np.where(some, size, 1.0), np.inf)
        return np.maximum(sums[2] * (1 - ROUNDING) - errors[2] - mean * (1 + ROUNDING), 0.0)


def check_leaves(tree: Any, rows: Rows, reached: Bools, checks: Checks) -> None:
    """Means, variances, quantiles and predictions."""
    leaves, nodes, target = tree.leaves_, tree.tree_, rows.facts["target"]
    shrinkage = float(tree.certificate_.parameters["shrinkage"])
    # Rates are weighted by their exposures.
    weight = rows.weight * rows.facts.get("exposure", 1.0)
    means, sizes = exact_means(target, weight, reached.T)
    size = weight @ reached
    if "exposure" in rows.facts:
        # λ is a number of counts at the rate of all rows.
        size = size * means[0]
    variance = _variances(target, weight, reached[:, nodes.leaves].T)
    predicted, scale = means[nodes.leaves], sizes[nodes.leaves]
    if shrinkage > 0 and means.any():

        def value(node: int, parent: float) -> float:
            count = size[node] + shrinkage
            return float(means[node] * size[node] / count + shrinkage / count * parent)

        predicted = np.array(down(tree, means[0], value))
        scale = np.maximum(scale, sizes[0])
    quantiles = [_quantiles(target[inside], weight[inside]) for inside in reached.T]
    pairs: Pairs = [
        ("mean of leaf", means[nodes.leaves], leaves.mean, sizes[nodes.leaves]),
        ("shrinkage", shrinkage, float(leaves.shrinkage)),
        ("prediction of leaf", predicted, leaves.predicted, scale),
        ("quantile of [leaf, level]", np.array(quantiles)[nodes.leaves], leaves.quantiles),
    ]
    if "exposure" in rows.facts:
        inside = reached[:, nodes.leaves]
        for name, own in (("count", rows.facts["counts"]), ("exposure", rows.facts["exposure"])):
            pairs.append((f"{name} of leaf", own @ inside, getattr(leaves, name)))
        if leaves.size is not None:
            pairs.append(("size of leaf", size[nodes.leaves], leaves.size))
    checks.same("means", f"of {nodes.n_leaves} leaves", pairs)
    pairs = [("of leaf", variance, leaves.variance)]
    checks.same("variances", f"of {nodes.n_leaves} leaves", pairs)


def _variances(values: Floats, weight: Floats, members: Bools) -> Floats:
    """Weighted variance of values in groups of rows (m, n), summed exactly."""
    mass, own = Column.of(weight), Column.of(values)
    first = mass * own
    second, found = first * own, []
    for group in members:
        total = mass.sum(group)
        found.append(float(second.sum(group) / total - (first.sum(group) / total) ** 2))
    return np.array(found)


def _quantiles(values: Floats, weight: Floats) -> list[float]:
    """Smallest value such that each share of the weight is at or below it."""
    order = np.argsort(values, kind="stable")
    values, reached = values[order], np.cumsum(weight[order])
    found = []
    for level in LEVELS:
        wanted = level * reached[-1] * (1 - 1e-12)
        found.append(float(values[reached >= wanted][0]))
    return found
