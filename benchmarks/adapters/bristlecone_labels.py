"""The trees that predict labels, as a user calls them: validation, search, leaves in the clock."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.preprocessing import FunctionTransformer

import bristlecone
from benchmarks.adapters import Outcome, Setting
from benchmarks.problems import Problem


class Adapter:
    """The estimator of the objective on a boolean matrix, one thread."""

    version = bristlecone.__version__

    def __init__(self, problem: Problem, setting: Setting, variant: str) -> None:
        if variant:
            raise ValueError(f"the estimators have no variants, got {variant!r}")
        self._X = problem.X.astype(bool)
        make, self._y, self._extra = ESTIMATORS[setting.objective](problem)
        # The features are binary and as all libraries get them.
        encoder = FunctionTransformer(feature_names_out="one-to-one")
        self._blank = make(
            max_depth=setting.max_depth,
            leaf_penalty=setting.leaf_penalty,
            min_samples_leaf=setting.min_samples_leaf,
            time_limit=setting.time_limit,
            encoder=encoder,
            n_jobs=1,
        )

    def fit(self) -> None:
        """Train a fresh estimator."""
        from sklearn.base import clone

        with warnings.catch_warnings():
            # A limit is in the status.
            warnings.simplefilter("ignore", bristlecone.SearchLimitWarning)
            self._model = clone(self._blank).fit(self._X, self._y, **self._extra)

    def outcome(self) -> Outcome:
        """Return the certificate of the last fit."""
        model, tree = self._model, self._model.tree_
        asked: list[tuple[int, ...]] = [()] * tree.node_count
        for node in np.flatnonzero(~tree.is_leaf):
            for child in (tree.children_left[node], tree.children_right[node]):
                asked[child] = (*asked[node], int(tree.feature[node]))
        return Outcome(
            leaves=model.apply(self._X),
            status=model.status_,
            objective=model.objective_value_,
            lower_bound=model.lower_bound_,
            nodes=model.n_nodes_explored_,
            trace=[tuple(point) for point in model.trace_],
            labels=np.asarray(model.predict(self._X)),
            asked={int(leaf): asked[leaf] for leaf in tree.leaves},
        )


def _accuracy(problem: Problem) -> Any:
    return bristlecone.OptimalTreeClassifier, problem.target["y"], {}


def _cost_sensitive(problem: Problem) -> Any:
    target = problem.target
    groups = [None if group < 0 else int(group) for group in target["feature_group"]]

    def make(**parameters: Any) -> Any:
        return bristlecone.CostSensitiveTreeClassifier(
            cost_matrix=target["cost_matrix"],
            feature_costs=target["feature_cost"],
            feature_discounts=target["feature_discount"],
            feature_origins=target["feature_origin"].tolist(),
            feature_groups=groups,
            **parameters,
        )

    return make, target["y"], {}


def _policy(problem: Problem) -> Any:
    target = problem.target
    known = {
        "treatment": target["treatment"],
        "propensity": target["propensity"],
        "predicted_outcomes": target["predicted"],
    }
    return bristlecone.PolicyTree, target["outcome"], known


ESTIMATORS = {
    "accuracy": _accuracy,
    "cost-sensitive": _cost_sensitive,
    "policy": _policy,
}
