"""The engine alone, without the estimator.

The variant names the kernel (default: the fastest), or a number of threads as in "2-threads".
"""

from __future__ import annotations

import numpy as np

import bristlecone
from benchmarks.adapters import Outcome, Setting
from benchmarks.problems import Problem
from bristlecone import _core


class Adapter:
    """One call of the binding."""

    version = bristlecone.__version__

    def __init__(self, problem: Problem, setting: Setting, variant: str) -> None:
        self._task, self._X = setting.objective, problem.X
        self._data = {name: problem.target[name] for name in ("time", "event")}
        most = min(problem.X.shape[1], len(problem.X) - 1)
        self._depth = most if setting.max_depth is None else min(setting.max_depth, most)
        threads, _, unit = variant.partition("-")
        backend = None if unit == "threads" else variant
        self._keywords = {
            "max_depth": self._depth,
            "max_leaf_nodes": None,
            "min_samples_leaf": setting.min_samples_leaf,
            "leaf_penalty": setting.leaf_penalty,
            "n_threads": int(threads) if unit == "threads" else 1,
            "time_limit": setting.time_limit,
            "memory_limit": None,
            "options": {"backend": backend} if backend else None,
        }
        if setting.objective == "brier":
            self._data["leaf_curve"] = "kaplan-meier"

    def fit(self) -> None:
        """Search."""
        self._solution = _core.solve(self._task, self._data, self._X, **self._keywords)

    def outcome(self) -> Outcome:
        """Return the solution's certificate, with the rows sent down its tree."""
        solution = self._solution
        node = np.zeros(len(self._X), dtype=np.int64)
        rows = np.arange(len(self._X))
        for _ in range(self._depth):
            inner = solution.feature[node] >= 0
            at = node[inner]
            is_true = self._X[rows[inner], solution.feature[at]] == 1
            node[inner] = np.where(is_true, solution.children_left[at], solution.children_right[at])
        return Outcome(
            leaves=node,
            status=solution.status,
            objective=solution.objective,
            lower_bound=solution.lower_bound,
            nodes=solution.n_nodes_explored,
            trace=[tuple(point[:3]) for point in solution.trace],
        )
