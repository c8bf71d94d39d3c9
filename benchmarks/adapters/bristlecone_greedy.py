"""`GreedySurvivalTree`; the variant names the splitting criterion."""

from __future__ import annotations

from sklearn.base import clone

import bristlecone
from benchmarks.adapters import Outcome, Setting
from benchmarks.adapters.bristlecone_estimator import PAPERS
from benchmarks.problems import Problem


class Adapter:
    """The greedy baseline on numeric features."""

    version = bristlecone.__version__

    def __init__(self, problem: Problem, setting: Setting, variant: str) -> None:
        # As scikit-survival's defaults: every threshold of a column, three rows in a leaf.
        self._blank = bristlecone.GreedySurvivalTree(
            criterion=variant,
            max_depth=setting.max_depth,
            min_samples_leaf=3,
            encoder=None,
            **PAPERS,
        )
        self._X = problem.X
        self._y = (problem.target["event"], problem.target["time"])

    def fit(self) -> None:
        """Train a fresh estimator."""
        self._model = clone(self._blank).fit(self._X, self._y)

    def outcome(self) -> Outcome:
        """Return the leaves; a greedy tree proves nothing."""
        return Outcome(leaves=self._model.apply(self._X), status="heuristic")
