"""Trees for a custom task."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._objectives.own_checks import check_statistics
from bristlecone._types import Bools, Floats
from bristlecone.trust._columns import Table
from bristlecone.trust._compare import Checks, Pairs
from bristlecone.trust._exact import Column
from bristlecone.trust._rows import Rows, kept_rows, rows_of
from bristlecone.trust._statement import Statement


def read_rows(tree: Any, table: Table, y: Any, weight: Any, more: Mapping[str, Any]) -> Rows:
    """Statistics by the task."""
    task = tree.certificate_.parameters["task"]
    kept, own = kept_rows(table, weight), None
    statistics = check_statistics(task.statistics(table.X, y), table.n_rows, kept)
    if weight is not None:
        own = weight[kept]
        statistics = statistics * own[:, None]
    return rows_of(tree, table, weight, kept, (statistics, own), {"statistics": statistics})


def _answer(
    method: Callable[[Floats], ArrayLike], sums: Floats, kind: type | None = np.float64
) -> NDArray[Any]:
    """What a method of the task returns. It may change or reuse its arrays, so they are copied."""
    return np.array(method(np.array(sums, order="F")), dtype=kind)


class Own(Statement):
    """Costs by a custom task."""

    price = 5.0

    def __init__(self, tree: Any, rows: Rows) -> None:
        self.task, given = tree.certificate_.parameters["task"], rows.facts["statistics"]
        self.columns = [Column.of(column) for column in given.T]
        self.off = 2.0**-50 * np.abs(given).sum(axis=0)
        self.total = Column.of(rows.weight).sum()

    def sums(self, members: Bools) -> NDArray[Any]:
        return super().sums(members).astype(np.float64)

    def candidates(self, sums: Any) -> Any:
        return _answer(self.task.leaf_cost, sums)[:, None, None]

    def doubt(self, sums: Any) -> float:
        # Custom code may amplify the rounding of its sums.
        exact, found = self.candidates(sums), 0.0
        for k, off in enumerate(self.off.tolist()):
            for sign in (-off, off):
                moved = sums.copy()
                moved[:, k] += sign
                differ = np.abs(self.candidates(moved) - exact)
                found += float(differ[np.isfinite(differ)].sum())
        return found

    def split_costs(self, sums: Any, asked: tuple[int, ...], n_features: int) -> Any:
        split_cost = getattr(self.task, "split_cost", None)
        if split_cost is None:
            return np.zeros(n_features)
        return np.full(n_features, _answer(split_cost, sums[None, :])[0])


def check_leaves(tree: Any, rows: Rows, reached: Bools, checks: Checks) -> None:
    """Sums, costs and values by the task."""
    leaves, task = tree.leaves_, tree.certificate_.parameters["task"]
    statistics = rows.facts["statistics"]
    sums = reached[:, tree.tree_.leaves].T @ statistics
    cost = _answer(task.leaf_cost, sums)
    # Custom code may amplify the rounding of its sums.
    scale = np.abs(statistics).sum(axis=0)
    pairs: Pairs = [
        ("sum of [leaf, statistic]", sums, leaves.sums, scale),
        ("cost", cost, leaves.cost),
    ]
    if leaves.value is not None:
        pairs.append(("value of leaf", _answer(task.leaf_value, sums, None), leaves.value))
    checks.same("leaves of the task", f"{len(cost)} leaves", pairs, scale=float(scale.max()))
