"""Leaves of a custom task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from bristlecone._data.texts import number
from bristlecone._leaves.base import Columns, Leaves, Output
from bristlecone._leaves.labels import as_plain
from bristlecone._leaves.shown import Fact, LeafShown, Shown
from bristlecone._types import Floats, Integers


@dataclass(frozen=True, eq=False)
class OwnLeaves(Leaves):
    """Sums, cost and prediction of every leaf.

    Parameters
    ----------
    sums : array of float, shape (n_leaves, k)
        Statistics of the rows, summed.
    cost : array of float, shape (n_leaves,)
        Cost of these sums, computed by the task.
    value : array, shape (n_leaves,) or (n_leaves, p), or None
        Predictions of the task; None if it predicts nothing.
    """

    sums: Floats
    cost: Floats
    value: NDArray[Any] | None

    @property
    def order(self) -> NDArray[Any]:
        value = self.value
        is_number = value is not None and value.ndim == 1 and value.dtype.kind in "fiub"
        return self.cost if value is None or not is_number else value

    def shown(self, confidence: float, time_label: str) -> Shown:
        leaves = []
        for fact in self.facts():
            facts = [Fact("cost", number(fact["cost"], 6))]
            if "value" in fact:
                facts.insert(0, Fact("value", _value_text(fact["value"])))
            headline = facts[0].text if "value" in fact else f"cost {facts[0].text}"
            leaves.append(LeafShown(headline, None, tuple(facts)))
        return Shown(tuple(leaves))

    def outputs(self, times: Mapping[str, float]) -> list[Output]:
        if self.value is None:
            return []
        value = as_plain(self.value)
        width = value.shape[1] if value.ndim > 1 else 0
        return [("value", value, tuple(map(str, range(width))))]

    def predict(self, rows: Integers) -> NDArray[Any]:
        """Prediction of every row, shape (n,) or (n, p)."""
        assert self.value is not None
        return self.value[rows]

    def facts(self) -> list[dict[str, Any]]:
        facts: list[dict[str, Any]] = [{"cost": cost} for cost in self.cost.tolist()]
        if self.value is not None:
            for fact, value in zip(facts, as_plain(self.value).tolist(), strict=True):
                fact["value"] = value
        return facts

    def text(self, facts: Mapping[str, Any]) -> str:
        cost = f"cost={facts['cost']:.6g}"
        if "value" not in facts:
            return cost
        return f"value={_value_text(facts['value'])}, {cost}"

    def table(self, times: Sequence[float], confidence: float) -> Columns:
        columns: Columns = [("cost", self.cost)]
        if self.value is None:
            return columns
        if self.value.ndim == 1:
            return [*columns, ("value", self.value)]
        return [*columns, *((f"value_{k}", column) for k, column in enumerate(self.value.T))]


def _value_text(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value_text, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
