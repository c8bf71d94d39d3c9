"""Leaves of a task of the user's own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._leaves.base import Columns, Leaves

__all__ = ["OwnLeaves"]


@dataclass(frozen=True, eq=False)
class OwnLeaves(Leaves):
    """Sums, cost and prediction of every leaf.

    Parameters
    ----------
    sums : array of float, shape (n_leaves, k)
        Statistics of the rows, summed.
    cost : array of float, shape (n_leaves,)
        What the task says that these cost.
    value : array, shape (n_leaves,) or (n_leaves, p), or None
        What it predicts; None for a task that predicts nothing.
    """

    sums: NDArray[np.float64]
    cost: NDArray[np.float64]
    value: NDArray[Any] | None

    def predict(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """What is predicted of every row, shape (n,) or (n, p)."""
        assert self.value is not None
        return self.value[rows]

    def facts(self) -> list[dict[str, Any]]:
        facts: list[dict[str, Any]] = [{"cost": cost} for cost in self.cost.tolist()]
        if self.value is not None:
            for fact, value in zip(facts, self.value.tolist(), strict=True):
                fact["value"] = value
        return facts

    def text(self, facts: Mapping[str, Any]) -> str:
        cost = f"cost={facts['cost']:.6g}"
        if "value" not in facts:
            return cost
        value = facts["value"]
        values = value if isinstance(value, list) else [value]
        shown = ", ".join(f"{v:.6g}" if isinstance(v, float) else str(v) for v in values)
        return f"value={f'[{shown}]' if isinstance(value, list) else shown}, {cost}"

    def table(self, times: Sequence[float], confidence: float) -> Columns:
        columns: Columns = [("cost", self.cost)]
        if self.value is None:
            return columns
        if self.value.ndim == 1:
            return [*columns, ("value", self.value)]
        return [*columns, *((f"value_{k}", column) for k, column in enumerate(self.value.T))]
