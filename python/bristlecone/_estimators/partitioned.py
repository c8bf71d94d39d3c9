"""Methods of an estimator that a fit over partitions calls."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bristlecone._data.targets import balanced_weights
from bristlecone._estimators.causes import CompetingRisksTree
from bristlecone._estimators.classifier import OptimalTreeClassifier
from bristlecone._estimators.cost_sensitive import CostSensitiveTreeClassifier
from bristlecone._estimators.policy import PolicyTree
from bristlecone._estimators.regressor import OptimalTreeRegressor
from bristlecone._estimators.searched import SearchedTree
from bristlecone._estimators.survival import OptimalSurvivalTree
from bristlecone._fit.assemble import announce, assemble, unmet
from bristlecone._fit.search import Search
from bristlecone._search.engine import Problem
from bristlecone._types import Floats, Integers
from bristlecone.exceptions import InvalidParameterError

SURVIVAL = (OptimalSurvivalTree, CompetingRisksTree)
POLICIES = (PolicyTree,)
_OTHERS = (OptimalTreeClassifier, CostSensitiveTreeClassifier, OptimalTreeRegressor)
_KINDS = (*SURVIVAL, *_OTHERS, *POLICIES)
# Parameters that partitions do not support, and why.
_ROWS_NEEDED = {
    "teacher": "a teacher is fitted to all rows at once",
    "fairness": "the search under a limit on groups needs the rows themselves, not their sums",
    "capacities": "limits on the whole tree need the rows themselves, not their sums",
}


def check_supported(estimator: Any) -> None:
    """Check an estimator and its parameters, before any partition is read.

    Raises
    ------
    InvalidParameterError
        If its objective is no sum over rows, if it learns from single rows, or if a parameter is
        invalid; the reason is named.
    """
    if not isinstance(estimator, _KINDS):
        names = ", ".join(kind.__name__ for kind in _KINDS)
        raise InvalidParameterError(
            f"estimator must be one of {names}, whose objectives are sums over rows; got "
            f"{type(estimator).__name__}"
        )
    estimator._check_parameters()
    for name, why in _ROWS_NEEDED.items():
        if getattr(estimator, name, None) not in (None, {}):
            raise InvalidParameterError(f"{name} must be None with partitions: {why}")
    objective = getattr(estimator, "objective", None)
    if objective == "brier":
        raise InvalidParameterError(
            "objective='brier' needs the rows of every node in the order of time, not their sums; "
            "with partitions use objective='likelihood'"
        )
    if objective in ("f1", "mcc"):
        raise InvalidParameterError(
            f"objective={objective!r} is chosen from a front of trees, which needs the rows "
            "themselves; with partitions use 'accuracy', 'balanced-accuracy', 'gini' or 'entropy'"
        )
    for name in ("horizon", "min_samples_treatment"):
        if getattr(estimator, name, None):
            raise InvalidParameterError(
                f"{name} cannot be used with partitions, which have sums in place of rows"
            )
    if isinstance(estimator, PolicyTree) and estimator.reward != "inverse-propensity":
        raise InvalidParameterError(
            f"reward={estimator.reward!r} needs predicted outcomes; with partitions use "
            "reward='inverse-propensity'"
        )


def search_of(estimator: SearchedTree) -> Search:
    """The search of an estimator's parameters."""
    return estimator._search()


def checked_outcomes(
    estimator: Any, y: Any, weight: Floats | None, count: Integers, **more: Any
) -> Any:
    """Training rows of distinct outcomes; each stands for ``count`` rows.

    Raises
    ------
    ValueError
        As ``fit`` of the estimator.
    """
    copy = clone(estimator)
    if isinstance(getattr(estimator, "class_weight", None), str):
        copy.class_weight = _balanced(y, weight, count)
    if isinstance(estimator, PolicyTree):
        more["count"] = count
    X: Floats = np.broadcast_to(np.zeros(1), (len(count), 1))
    return copy._training_data(X, y, weight, **more)


def _balanced(y: NDArray[Any], weight: Floats | None, count: Integers) -> dict[Any, float]:
    """Weights of the classes for "balanced"."""
    own = np.ones(len(y)) if weight is None else weight
    shown = own > 0
    classes, code = np.unique(y[shown], return_inverse=True)
    factors = balanced_weights(code, own[shown], count[shown])
    return dict(zip(classes.tolist(), factors.tolist(), strict=True))


def keep(
    estimator: SearchedTree,
    search: Search,
    problem: Problem,
    solution: Any,
    n_missing: Integers | None,
    n_parts: int,
    start: float,
) -> None:
    """Set the results of a search over partitions, and issue warnings.

    ``n_missing`` belongs to the tree's nodes, ``n_parts`` is the number of partitions.

    Raises
    ------
    InfeasibleError
        If a limit stopped the search before it found a tree.
    """
    fitted = assemble(search, problem, solution, estimator._parameters(), start)
    if fitted.tree is None or fitted.leaves is None:
        assert math.isinf(solution.objective)
        raise unmet(fitted.certificate)
    tree = fitted.tree if n_missing is None else fitted.tree.with_missing_counts(n_missing)
    text = f"{n_parts}, read one by one"
    if isinstance(estimator.encoder, str):
        text += "; encoder='auto' means thresholds at quantiles"
    remarks = (*fitted.certificate.remarks, ("partitions", text))
    certificate = replace(fitted.certificate, remarks=remarks)
    estimator._set_fitted(
        tree, fitted.leaves, problem.encoder, certificate, None, with_missing=False
    )
    announce(search, problem, [fitted])
