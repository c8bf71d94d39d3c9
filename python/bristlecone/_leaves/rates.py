"""Leaves that predict the rate of their rows: counts per unit of exposure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bristlecone._data.texts import number, percent, plain_number
from bristlecone._leaves.base import Columns, garwood_limits, limit_columns
from bristlecone._leaves.means import MeanLeaves
from bristlecone._leaves.shown import Box, Fact, LeafShown, Shown, interval
from bristlecone._types import Floats


@dataclass(frozen=True, eq=False)
class RateLeaves(MeanLeaves):
    """Means of rates, with the exposures as weights, and what the rates were computed from.

    Parameters
    ----------
    count, exposure : array of float, shape (n_leaves,)
        Sums over the training rows, without their weights.
    size : array of float, shape (n_leaves,), or None
        Number that λ is compared with: the weighted count that the rate of all rows predicts. None
        without shrinkage.
    """

    count: Floats
    exposure: Floats
    size: Floats | None

    score_name = "D²"

    def shown(self, confidence: float, time_label: str) -> Shown:
        limits = self.limits(confidence)
        of_leaves = self.mean, self.predicted, *limits.T, self.count, self.exposure
        leaves = []
        for mean, predicted, low, high, count, exposure in np.column_stack(of_leaves).tolist():
            facts = [Fact("rate", number(mean), interval(low, high))]
            if self.shrinkage > 0:
                facts.append(Fact("predicted", number(predicted)))
            facts += [Fact("count", number(count, 6)), Fact("exposure", number(exposure, 6))]
            # Quartiles of the rows' rates would mostly be 0.
            box = Box([low, low, low, mean, high, high, high], predicted)
            leaves.append(LeafShown(number(predicted), box, tuple(facts)))
        caption = (
            f"Boxes: {percent(confidence)} confidence intervals of the rates, if counts are "
            "Poisson; diamond: prediction."
        )
        end = float(max(limits.max(), self.predicted.max()))
        return Shown(tuple(leaves), (0.0, end), caption)

    def heading(self, column: str, time_label: str) -> str:
        return super().heading(column.replace("mean", "rate"), time_label)

    def limits(self, confidence: float) -> Floats:
        """Confidence limits of the rates for Poisson counts, shape (n_leaves, 2)."""
        some = self.count > 0
        # With weights, a count of one counts as the mean weight of the counts.
        unit = np.where(some, self.mean, 1.0) / np.where(some, self.count, self.exposure)
        return np.column_stack(garwood_limits(self.count, confidence)) * unit[:, None]

    def facts(self) -> list[dict[str, Any]]:
        sums = zip(self.count.tolist(), self.exposure.tolist(), strict=True)
        return [
            {**facts, "count": count, "exposure": exposure}
            for facts, (count, exposure) in zip(super().facts(), sums, strict=True)
        ]

    def text(self, facts: Mapping[str, Any]) -> str:
        count, exposure = (plain_number(facts[name], 6) for name in ("count", "exposure"))
        text = f"{plain_number(facts['value'], 6)} (count {count}, exposure {exposure})"
        return text + self.shrunk_text(facts)

    def table(self, times: Sequence[float], confidence: float) -> Columns:
        mean, *columns = super().table(times, confidence)
        of_rows = [("count", self.count), ("exposure", self.exposure)]
        return [mean, *limit_columns("mean", self.limits(confidence)), *of_rows, *columns]
