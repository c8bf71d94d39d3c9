"""Leaves that predict the mean of their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.texts import number, plain_number
from bristlecone._leaves.base import Columns, Leaves, Output
from bristlecone._leaves.shown import Box, Fact, LeafShown, Shown
from bristlecone._leaves.shrinkage import shrunk_means
from bristlecone._tree import Tree
from bristlecone._types import Floats, Integers

# Quantiles that every leaf stores: all that a box plot shows.
LEVELS = (0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0)
_NAMES = ("minimum", "quantile_05", "quartile_1", "median", "quartile_3", "quantile_95", "maximum")


@dataclass(frozen=True, eq=False)
class MeanLeaves(Leaves):
    """Mean and variance of the training rows of every leaf.

    Parameters
    ----------
    mean, variance : array of float, shape (n_leaves,)
        Weighted.
    quantiles : array of float, shape (n_leaves, 7)
        Training values of every leaf in their order, at the shares ``LEVELS`` of its weight.
    shrinkage : float
        λ of the predictions.
    predicted : array of float, shape (n_leaves,)
        The means, shrunk along the path.
    """

    mean: Floats
    variance: Floats
    quantiles: Floats
    shrinkage: float
    predicted: Floats

    tree_kind, score_name, compared = "Regression tree", "R²", "means"

    @property
    def order(self) -> NDArray[Any]:
        return self.predicted

    def shown(self, confidence: float, time_label: str) -> Shown:
        leaves = []
        for mean, predicted, levels in zip(
            self.mean.tolist(), self.predicted.tolist(), self.quantiles.tolist(), strict=True
        ):
            facts = [Fact("mean", number(mean))]
            if self.shrinkage > 0:
                facts.append(Fact("predicted", number(predicted)))
            leaves.append(LeafShown(number(predicted), Box(levels, predicted), tuple(facts)))
        caption = (
            "Boxes: quartiles of the training values; whiskers: 5% and 95%; dots: minimum and "
            "maximum; diamond: prediction."
        )
        ends = float(self.quantiles.min()), float(self.quantiles.max())
        return Shown(tuple(leaves), ends, caption)

    def outputs(self, times: Mapping[str, float]) -> list[Output]:
        return [("value", self.predicted, ())]

    def heading(self, column: str, time_label: str) -> str:
        known = {
            "quantile_05": "5% quantile",
            "quartile_1": "lower quartile",
            "quartile_3": "upper quartile",
            "quantile_95": "95% quantile",
        }
        return known.get(column) or super().heading(column, time_label)

    @staticmethod
    def shrunk(tree: Tree, mean: Floats, shrinkage: float, size: Floats | None = None) -> Floats:
        """Predictions that replace the means; λ is compared with ``size``, or with weights."""
        if shrinkage == 0 or not mean.any():
            return mean
        if size is None:
            size = tree.weighted_n_node_samples[tree.leaves]
        # A power of two keeps the products within range and changes no digit.
        exponent = np.frexp(np.abs(mean).max())[1]
        scaled = shrunk_means(tree, np.ldexp(mean, -exponent) * size, size, shrinkage)
        return np.ldexp(scaled, exponent)

    def predict(self, rows: Integers) -> Floats:
        """Prediction of every row, shape (n,)."""
        return self.predicted[rows]

    def facts(self) -> list[dict[str, Any]]:
        pairs = zip(self.mean.tolist(), self.variance.tolist(), strict=True)
        facts = [{"value": mean, "variance": variance} for mean, variance in pairs]
        if self.shrinkage > 0:
            for fact, shrunk in zip(facts, self.predicted.tolist(), strict=True):
                fact["shrunk_value"] = shrunk
        return facts

    def text(self, facts: Mapping[str, Any]) -> str:
        text = f"{plain_number(facts['value'], 6)} (variance {facts['variance']:.4g})"
        return text + self.shrunk_text(facts)

    @staticmethod
    def shrunk_text(facts: Mapping[str, Any]) -> str:
        """The end of ``text``: the prediction, if it differs from the mean."""
        if "shrunk_value" not in facts:
            return ""
        return f", shrunk {plain_number(facts['shrunk_value'], 6)}"

    def table(self, times: Sequence[float], confidence: float) -> Columns:
        columns = [("mean", self.mean), ("variance", self.variance)]
        if self.shrinkage > 0:
            columns.append(("prediction", self.predicted))
        return [*columns, *zip(_NAMES, self.quantiles.T, strict=True)]


def weighted_quantiles(values: Floats, weight: Floats | None) -> Floats:
    """Smallest values such that the shares ``LEVELS`` of the weight are at or below them."""
    # Rounding may put a share just above the sum that it is meant to equal.
    share = np.array(LEVELS) * (1 - 1e-12)
    if weight is None:
        place = np.ceil(share * values.size).astype(np.intp) - 1
        return np.sort(values)[np.maximum(place, 0)]
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order])
    return values[order][np.searchsorted(total, share * total[-1])]
