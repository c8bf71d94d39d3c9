"""DL8.5 (Aglin, Nijssen, Schaus, AAAI 2020), in the published package pydl8.5."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np
from pydl85 import DL85Classifier

from benchmarks.adapters import Outcome, Setting, leaves_of
from benchmarks.problems import Problem


class Adapter:
    """The search at the program's defaults but for the setting."""

    version = version("pydl8.5")

    def __init__(self, problem: Problem, setting: Setting, variant: str) -> None:
        if setting.objective != "accuracy" or setting.leaf_penalty or variant:
            raise ValueError(f"pydl8.5 has no {setting.objective!r} {variant!r} with a penalty")
        self._setting = setting
        self._X = problem.X.astype(np.int64)
        self._y = problem.target["y"]

    def fit(self) -> None:
        """Search; the caller's timeout is the only limit."""
        self._model = DL85Classifier(
            max_depth=self._setting.max_depth, min_sup=self._setting.min_samples_leaf
        ).fit(self._X, self._y)

    def _split(self, node: dict[str, Any], rows: np.ndarray) -> list[Any]:
        """The left child holds the rows with a 1."""
        if "feat" not in node:
            return []
        is_true = self._X[rows, node["feat"]] == 1
        return [(node["left"], rows[is_true]), (node["right"], rows[~is_true])]

    def outcome(self) -> Outcome:
        """Send the rows down the tree."""
        return Outcome(
            leaves=leaves_of(len(self._X), self._model.tree_, self._split),
            status="feasible" if self._model.timeout_ else "optimal",
            objective=self._model.error_ / len(self._X),
            nodes=self._model.lattice_size_,
        )
