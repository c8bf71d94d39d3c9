"""`OptimalSurvivalTree` as a user calls it: validation, search and leaf curves in the clock.

The variant is a number of threads, as in "2-threads".
"""

from __future__ import annotations

import warnings
from typing import Any

import bristlecone
from benchmarks.adapters import Outcome, Setting
from benchmarks.problems import Problem

# The objectives of the papers, whatever the defaults.
PAPERS = {"min_events_leaf": None, "prior": 0.0, "shrinkage": 0.0}


class Adapter:
    """The estimator on a boolean matrix."""

    version = bristlecone.__version__

    def __init__(self, problem: Problem, setting: Setting, variant: str) -> None:
        threads, _, unit = variant.partition("-")
        if variant and unit != "threads":
            raise ValueError(f"variants of the estimators are threads, got {variant!r}")
        self._n_jobs = int(threads or 1)
        self._X = problem.X.astype(bool)
        self._prepare(problem, setting)

    def _prepare(self, problem: Problem, setting: Setting) -> None:
        target = problem.target
        given = vars(setting) | {"objective": setting.objective.removeprefix("fair-")}
        self._extra: dict[str, Any] = {}
        if "limit" in target:
            given["fairness"] = bristlecone.RmstParity(float(target["limit"][0]))
            self._extra["sensitive_features"] = target["group"]
        self._blank: Any = bristlecone.OptimalSurvivalTree(n_jobs=self._n_jobs, **PAPERS, **given)
        self._y: Any = (target["event"], target["time"])

    def fit(self) -> None:
        """Train; what an earlier fit left is not used."""
        with warnings.catch_warnings():
            # A limit is in the status.
            warnings.simplefilter("ignore", bristlecone.exceptions.SearchLimitWarning)
            self._model = self._blank.fit(self._X, self._y, **self._extra)

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
