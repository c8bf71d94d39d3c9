"""OSST (Zhang, Xin, Seltzer, Rudin, AISTATS 2024), the published program for the Brier objective.

Four habits of osst 0.1.8 decide how it is called. It takes the data as CSV text and its Python
class scores the training rows one by one after the search: the text is made outside the clock and
the extension is called directly, which favours osst. It divides by y_max − y_min where the
objective here divides by y_max, so its penalty is scaled back. It counts the root as depth 1, and 0
is no limit. And a second fit in one process aborts it: ``one_fit``.
"""

from __future__ import annotations

import io
import json
from importlib.metadata import version
from typing import Any

import numpy as np
from osst import libosst

from benchmarks.adapters import Outcome, Setting, leaves_of
from benchmarks.objectives import published_penalty
from benchmarks.problems import Problem


class Adapter:
    """The search without a reference model, at the program's defaults but for the setting."""

    version = version("osst")
    one_fit = True

    def __init__(self, problem: Problem, setting: Setting, variant: str) -> None:
        if setting.objective != "brier" or variant:
            raise ValueError(f"osst has no {setting.objective!r} {variant!r}")
        self._X = problem.X
        event, time = problem.target["event"], problem.target["time"]
        text = io.StringIO()
        columns = [f"x{feature}" for feature in range(problem.X.shape[1])]
        text.write(",".join([*columns, "event", "time"]) + "\n")
        for row, e, t in zip(problem.X.tolist(), event.tolist(), time.tolist(), strict=True):
            text.write(",".join([*map(str, row), str(int(e)), repr(t)]) + "\n")
        self._csv = text.getvalue()
        self._configuration = json.dumps(
            {
                "regularization": published_penalty(problem, setting.leaf_penalty),
                "depth_budget": 0 if setting.max_depth is None else setting.max_depth + 1,
                "minimum_captured_points": setting.min_samples_leaf,
                "uncertainty_tolerance": 0.0,
                "upperbound": 0.0,
                "look_ahead": True,
                "model_limit": 1,
                "worker_limit": 1,
                "time_limit": 0,
                "diagnostics": False,
                "verbose": False,
            }
        )

    def fit(self) -> None:
        """Search; the caller's timeout is the only limit."""
        libosst.configure(self._configuration)
        self._answer = libosst.fit(self._csv)
        self._status = libosst.status()

    def _split(self, node: dict[str, Any], rows: np.ndarray) -> list[Any]:
        if "prediction" in node:
            return []
        if node["relation"] not in ("==", ">="):
            raise ValueError(f"unknown relation {node['relation']!r} in osst's tree")
        values, reference = self._X[rows, node["feature"]], float(node["reference"])
        true = values == reference if node["relation"] == "==" else values >= reference
        return [(node["true"], rows[true]), (node["false"], rows[~true])]

    def outcome(self) -> Outcome:
        """Send the rows down the first tree of the answer."""
        lower, upper = libosst.lower_bound(), libosst.upper_bound()
        return Outcome(
            leaves=leaves_of(len(self._X), json.loads(self._answer)[0], self._split),
            status="optimal" if self._status == 0 and lower == upper else "feasible",
            objective=upper,
            lower_bound=lower,
            nodes=libosst.size(),
        )
