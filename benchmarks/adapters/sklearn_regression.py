"""scikit-learn's greedy regression tree, with pruning off."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np
from sklearn.tree import DecisionTreeRegressor

from benchmarks.adapters import Outcome, Setting
from benchmarks.problems import Problem


class Adapter:
    """The tree at scikit-learn's defaults except for the depth."""

    version = version("scikit-learn")

    def __init__(self, problem: Problem, setting: Setting, variant: str) -> None:
        if variant:
            raise ValueError(f"scikit-learn's tree has no variants, got {variant!r}")
        self._depth = setting.max_depth
        # The type that it converts to.
        self._X, self._y = problem.X.astype(np.float32), problem.target["y"]

    def fit(self) -> None:
        """Train a fresh estimator."""
        tree = DecisionTreeRegressor(max_depth=self._depth, random_state=0)
        self._model = tree.fit(self._X, self._y)

    def outcome(self) -> Outcome:
        """Return the leaves; a greedy tree proves nothing."""
        return Outcome(leaves=self._model.apply(self._X), status="heuristic")
