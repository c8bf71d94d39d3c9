"""Leaves that predict the mean of their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone.leaves.base import Columns, Leaves
from bristlecone.leaves.shrinkage import shrunk_means
from bristlecone.tree import Tree

__all__ = ["MeanLeaves"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MeanLeaves(Leaves):
    """Mean and variance of the training rows of every leaf.

    Parameters
    ----------
    mean, variance : array of float, shape (n_leaves,)
        Weighted.
    shrinkage : float
        λ of the predictions.
    predicted : array of float, shape (n_leaves,)
        The means, shrunk along the path.
    """

    mean: Floats
    variance: Floats
    shrinkage: float
    predicted: Floats

    @staticmethod
    def shrunk(tree: Tree, mean: Floats, shrinkage: float) -> Floats:
        """What is predicted in place of the means."""
        if shrinkage == 0:
            return mean
        weight = tree.weighted_n_node_samples[tree.leaves]
        return shrunk_means(tree, mean * weight, weight, shrinkage)

    def predict(self, rows: NDArray[np.int64]) -> Floats:
        """What is predicted of every row, shape (n,)."""
        return self.predicted[rows]

    def facts(self) -> list[dict[str, Any]]:
        pairs = zip(self.mean.tolist(), self.variance.tolist(), strict=True)
        facts = [{"value": mean, "variance": variance} for mean, variance in pairs]
        if self.shrinkage > 0:
            for fact, shrunk in zip(facts, self.predicted.tolist(), strict=True):
                fact["shrunk_value"] = shrunk
        return facts

    def text(self, facts: Mapping[str, Any]) -> str:
        text = f"{facts['value']:.6g} (variance {facts['variance']:.4g})"
        return text + (f", shrunk {facts['shrunk_value']:.6g}" if "shrunk_value" in facts else "")

    def table(self, times: Sequence[float], confidence: float) -> Columns:
        columns = [("mean", self.mean), ("variance", self.variance)]
        return [*columns, ("prediction", self.predicted)] if self.shrinkage > 0 else columns
