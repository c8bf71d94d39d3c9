"""Trees that predict labels or numbers, as a user calls them; validation and leaves count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.preprocessing import FunctionTransformer

import bristlecone
from benchmarks import label_objectives
from benchmarks.adapters import Outcome, Setting, bristlecone_estimator
from benchmarks.problems import Problem


class Adapter(bristlecone_estimator.Adapter):
    """The estimator of the objective on a boolean matrix."""

    def _prepare(self, problem: Problem, setting: Setting) -> None:
        make, self._y, self._extra = ESTIMATORS[setting.objective](problem)
        # The features are binary and as all libraries get them.
        encoder = FunctionTransformer(feature_names_out="one-to-one")
        self._blank = make(
            max_depth=setting.max_depth,
            leaf_penalty=setting.leaf_penalty,
            min_samples_leaf=setting.min_samples_leaf,
            time_limit=setting.time_limit,
            encoder=encoder,
            n_jobs=self._n_jobs,
        )

    def outcome(self) -> Outcome:
        """Return the certificate of the last fit, the labels and the questions above each leaf."""
        tree = self._model.tree_
        asked: list[tuple[int, ...]] = [()] * tree.node_count
        for node in np.flatnonzero(~tree.is_leaf):
            for child in (tree.children_left[node], tree.children_right[node]):
                asked[child] = (*asked[node], int(tree.feature[node]))
        return replace(
            super().outcome(),
            labels=np.asarray(self._model.predict(self._X)),
            asked={int(leaf): asked[leaf] for leaf in tree.leaves},
        )


def _accuracy(problem: Problem) -> Any:
    return bristlecone.OptimalTreeClassifier, problem.target["y"], {}


def _regression(problem: Problem) -> Any:
    return bristlecone.OptimalTreeRegressor, problem.target["y"], {}


def _cost_sensitive(problem: Problem) -> Any:
    target = problem.target
    groups = [None if group < 0 else int(group) for group in target["feature_group"]]

    make = partial(
        bristlecone.CostSensitiveTreeClassifier,
        # By class, since a fold may lack one.
        cost_matrix=dict(enumerate(target["cost_matrix"].tolist())),
        feature_costs=[
            {"cost": cost, "discounted_cost": discount, "origin": origin, "group": group}
            for cost, discount, origin, group in zip(
                target["feature_cost"].tolist(),
                target["feature_discount"].tolist(),
                target["feature_origin"].tolist(),
                groups,
                strict=True,
            )
        ],
    )
    return make, target["y"], {}


def _policy(problem: Problem) -> Any:
    """Rewards of eq. 63 as predicted outcomes: warfarin has propensities of 1, which `fit` rejects.

    The policy of greatest mean reward is the same.
    """
    target = problem.target
    known = {
        "treatment": target["treatment"],
        "predicted_outcomes": label_objectives.rewards(problem),
    }
    make = partial(bristlecone.PolicyTree, reward="direct")
    return make, target["outcome"], known


def _f1(problem: Problem) -> Any:
    make = partial(bristlecone.OptimalTreeClassifier, objective="f1")
    return make, problem.target["y"], {}


def _fair(constraint: Callable[[float], Any]) -> Callable[[Problem], Any]:
    def prepare(problem: Problem) -> Any:
        target = problem.target
        fairness = constraint(float(target["delta"][0]))
        make = partial(bristlecone.FairTreeClassifier, fairness=fairness)
        return make, target["y"], {"sensitive_features": target["group"]}

    return prepare


ESTIMATORS = {
    "accuracy": _accuracy,
    "regression": _regression,
    "f1": _f1,
    "demographic-parity": _fair(bristlecone.DemographicParity),
    "equality-of-opportunity": _fair(bristlecone.EqualityOfOpportunity),
    "cost-sensitive": _cost_sensitive,
    "policy": _policy,
}
