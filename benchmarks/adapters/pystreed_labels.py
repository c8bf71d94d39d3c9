"""STreeD (van der Linden et al., NeurIPS 2023) for labels, numbers, costs, policies and fairness.

Its classes print nothing and stop at their defaults; the time limit is the caller's. Penalties are
its `cost_complexity`, per split where ours is per leaf: the difference is one constant. Its
fairness tasks take the first feature as the sensitive one and do not split on it; our trees may.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np
import pystreed

from benchmarks.adapters import Outcome, Setting
from benchmarks.problems import Problem

# Ends a search long after the caller's timeout.
NEVER = 1e6


class Adapter:
    """The task of the objective at pystreed's defaults."""

    version = version("pystreed")

    def __init__(self, problem: Problem, setting: Setting, variant: str) -> None:
        if variant:
            raise ValueError(f"pystreed has no variant {variant!r}")
        if setting.leaf_penalty and setting.objective != "accuracy":
            raise ValueError("pystreed has a penalty for accuracy only")
        # int32 is the type it searches on, so that it need not convert.
        self._X = problem.X.astype(np.intc)
        self._make, self._arguments = TASKS[setting.objective](problem, setting)
        self._common = {
            "max_depth": setting.max_depth,
            "min_leaf_node_size": setting.min_samples_leaf,
            "time_limit": NEVER,
        }

    def fit(self) -> None:
        """Search with a fresh solver; the caller's timeout is the only limit."""
        self._model = self._make(**self._common).fit(self._X, *self._arguments)

    def outcome(self) -> Outcome:
        """Send the rows down the tree: the right child holds the rows with a 1."""
        leaves = np.zeros(len(self._X), dtype=np.int64)
        labels = np.zeros(len(self._X), dtype=self._arguments[0].dtype)
        asked: dict[int, tuple[int, ...]] = {}
        stack: list[Any] = [(self._model.get_tree(), np.arange(len(self._X)), ())]
        while stack:
            node, rows, above = stack.pop()
            if node.is_leaf_node():
                leaves[rows], labels[rows] = len(asked), node.label
                asked[len(asked)] = above
                continue
            is_true = self._X[rows, node.feature] == 1
            below = (*above, node.feature)
            stack.append((node.left_child, rows[~is_true], below))
            stack.append((node.right_child, rows[is_true], below))
        result = self._model.fit_result
        return Outcome(
            leaves=leaves,
            status="optimal" if result.is_optimal() else "feasible",
            objective=result.score(),
            labels=labels,
            asked=asked,
        )


def _accuracy(problem: Problem, setting: Setting) -> Any:
    def make(**common: Any) -> Any:
        if not setting.leaf_penalty:
            return pystreed.STreeDClassifier("accuracy", **common)
        return pystreed.STreeDClassifier(
            "cost-complex-accuracy", cost_complexity=setting.leaf_penalty, **common
        )

    return make, (problem.target["y"],)


def _regression(problem: Problem, setting: Setting) -> Any:
    return lambda **common: pystreed.STreeDRegressor("regression", **common), (problem.target["y"],)


def _f1(problem: Problem, setting: Setting) -> Any:
    return lambda **common: pystreed.STreeDClassifier("f1-score", **common), (problem.target["y"],)


def _cost_sensitive(problem: Problem, setting: Setting) -> Any:
    target = problem.target
    features = []
    for origin in np.unique(target["feature_origin"]):
        columns = np.flatnonzero(target["feature_origin"] == origin)
        first, last = int(columns[0]), int(columns[-1])
        group = int(target["feature_group"][first])
        features.append(
            pystreed.FeatureCostSpecifier(
                target["feature_cost"][first],
                target["feature_discount"][first],
                "x" if group < 0 else f"group {group}",
                first,
                last,
            )
        )
    costs = pystreed.CostSpecifier(target["cost_matrix"].tolist(), features)
    return pystreed.STreeDCostSensitiveClassifier, (target["y"], costs)


def _policy(problem: Problem, setting: Setting) -> Any:
    target = problem.target
    known = [target["treatment"], target["outcome"], target["propensity"]]
    y = np.column_stack([*known, target["predicted"]])
    return pystreed.STreeDPrescriptivePolicyGenerator, (y,)


def _fair(task: str) -> Any:
    def prepare(problem: Problem, setting: Setting) -> Any:
        def make(**common: Any) -> Any:
            return pystreed.STreeDGroupFairnessClassifier(
                task,
                sensitive_feature=0,
                discrimination_limit=float(problem.target["delta"][0]),
                **common,
            )

        return make, (problem.target["y"],)

    return prepare


TASKS = {
    "accuracy": _accuracy,
    "regression": _regression,
    "f1": _f1,
    "cost-sensitive": _cost_sensitive,
    "policy": _policy,
    "demographic-parity": _fair("group-fairness"),
    "equality-of-opportunity": _fair("equality-of-opportunity"),
}
