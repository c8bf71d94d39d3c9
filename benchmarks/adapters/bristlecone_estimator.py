"""`OptimalSurvivalTree` as a user calls it: validation, search and leaf curves in the clock."""

from __future__ import annotations

import warnings

import bristlecone
from benchmarks.adapters import Outcome, Setting
from benchmarks.problems import Problem


class Adapter:
    """The estimator on a boolean matrix, one thread."""

    version = bristlecone.__version__

    def __init__(self, problem: Problem, setting: Setting, variant: str) -> None:
        if variant:
            raise ValueError(f"the estimator has no variants, got {variant!r}")
        self._setting = setting
        self._X = problem.X.astype(bool)
        self._y = (problem.target["event"], problem.target["time"])

    def fit(self) -> None:
        """Train a fresh estimator."""
        model = bristlecone.OptimalSurvivalTree(n_jobs=1, **vars(self._setting))
        with warnings.catch_warnings():
            # A limit is in the status.
            warnings.simplefilter("ignore", bristlecone.SearchLimitWarning)
            self._model = model.fit(self._X, self._y)

    def outcome(self) -> Outcome:
        """Return the certificate of the last fit."""
        model = self._model
        return Outcome(
            leaves=model.apply(self._X),
            status=model.status_,
            objective=model.objective_value_,
            lower_bound=model.lower_bound_,
            nodes=model.n_nodes_explored_,
            trace=[tuple(point) for point in model.trace_],
        )
