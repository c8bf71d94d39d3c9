"""STreeD's survival trees (van der Linden et al., NeurIPS 2023; Huisman et al., AAAI-24).

Two habits of pystreed 1.4.0 decide how it is called. Its survival `fit` uses the event indicator
as a list index, which NumPy's booleans refuse, while scikit-survival's check before it demands
booleans; so the `fit` of its base class, which does the search, is called with integers. What is
left out of the clock is a Python loop for the baseline curve, which only predictions need: this
favours pystreed. And its reported score charges a leaf without events 0.5 though the search
charged it 0: the tree is therefore scored again by `benchmarks.objectives`.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np
from pystreed import STreeDSurvivalAnalysis
from pystreed.base import BaseSTreeDSolver

from benchmarks.adapters import Outcome, Setting, leaves_of
from benchmarks.problems import Problem


class Adapter:
    """The search at pystreed's defaults; it stops at a relative gap of 1e-4.

    The variant "general" is without its special solver of depth two.
    """

    version = version("pystreed")

    def __init__(self, problem: Problem, setting: Setting, variant: str) -> None:
        if setting.objective != "likelihood" or variant not in ("", "general"):
            raise ValueError(f"no pystreed survival task for {setting.objective!r} {variant!r}")
        self._depth = setting.max_depth
        self._special = variant != "general"
        # int32 is the type it searches on, so that it need not convert.
        self._X = problem.X.astype(np.intc)
        self._time = problem.target["time"]
        self._event = problem.target["event"].astype(int)

    def fit(self) -> None:
        """Search with a fresh solver; the caller's timeout is the only limit."""
        self._model = STreeDSurvivalAnalysis(
            max_depth=self._depth, use_terminal_solver=self._special, time_limit=1e6
        )
        BaseSTreeDSolver.fit(self._model, self._X, self._time, self._event)

    def _split(self, node: Any, rows: np.ndarray) -> list[Any]:
        """The right child holds the rows with a 1."""
        if node.is_leaf_node():
            return []
        is_true = self._X[rows, node.feature] == 1
        return [(node.left_child, rows[~is_true]), (node.right_child, rows[is_true])]

    def outcome(self) -> Outcome:
        """Send the rows down the tree."""
        result = self._model.fit_result
        return Outcome(
            leaves=leaves_of(len(self._X), self._model.get_tree(), self._split),
            status="optimal" if result.is_optimal() else "feasible",
            objective=result.score(),
        )
