"""scikit-survival's log-rank `SurvivalTree`."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np
from sksurv.tree import SurvivalTree
from sksurv.util import Surv

from benchmarks.adapters import Outcome, Setting
from benchmarks.problems import Problem


class Adapter:
    """The tree at scikit-survival's defaults except for the depth."""

    version = version("scikit-survival")

    def __init__(self, problem: Problem, setting: Setting, variant: str) -> None:
        if variant:
            raise ValueError(f"scikit-survival's tree has no variants, got {variant!r}")
        self._depth = setting.max_depth
        # Its `apply` takes float32 only, and `fit` converts to it.
        self._X = problem.X.astype(np.float32)
        self._y = Surv.from_arrays(problem.target["event"], problem.target["time"])

    def fit(self) -> None:
        """Train a fresh estimator."""
        self._model = SurvivalTree(max_depth=self._depth, random_state=0).fit(self._X, self._y)

    def outcome(self) -> Outcome:
        """Return the leaves; a greedy tree proves nothing."""
        return Outcome(leaves=self._model.apply(self._X), status="heuristic")
