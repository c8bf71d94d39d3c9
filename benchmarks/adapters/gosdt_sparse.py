"""GOSDT (Lin et al., ICML 2020; McTavish et al., AAAI 2022), the published sparse trees.

`predict` of gosdt 1.0.4 fails with current scikit-learn, its fit and result work: the tree is read
from the JSON of the result. Its `depth_budget` counts as the depth here. Bounds are single
precision, and it takes a DataFrame, made outside the clock.
"""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

import numpy as np
import pandas as pd
from gosdt import GOSDTClassifier, Status

from benchmarks.adapters import Outcome, Setting, leaves_of
from benchmarks.problems import Problem


class Adapter:
    """The search at the program's defaults but for the setting."""

    version = version("gosdt")

    def __init__(self, problem: Problem, setting: Setting, variant: str) -> None:
        if setting.objective != "accuracy" or variant or setting.min_samples_leaf != 1:
            raise ValueError(f"gosdt has no {setting.objective!r} {variant!r}")
        self._X = problem.X
        self._frame = pd.DataFrame(problem.X.astype(bool))
        self._y = problem.target["y"]
        self._setting = setting

    def fit(self) -> None:
        """Search; the caller's timeout is the only limit."""
        self._model = GOSDTClassifier(
            regularization=self._setting.leaf_penalty, depth_budget=self._setting.max_depth
        ).fit(self._frame, self._y)

    def _split(self, node: dict[str, Any], rows: np.ndarray) -> list[Any]:
        if "feature" not in node:
            return []
        is_true = self._X[rows, node["feature"]] == 1
        return [(node["false"], rows[~is_true]), (node["true"], rows[is_true])]

    def outcome(self) -> Outcome:
        """Send the rows down the first tree of the result."""
        result = self._model.result_
        converged = result.status == Status.CONVERGED
        return Outcome(
            leaves=leaves_of(len(self._X), json.loads(result.model)[0], self._split),
            status="optimal" if converged else "feasible",
            objective=result.upperbound,
            lower_bound=result.lowerbound,
            nodes=result.graph_size,
        )
