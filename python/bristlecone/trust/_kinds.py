"""How the trees of each estimator are verified: one entry for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

from bristlecone._data.arrays import type_name
from bristlecone._data.rows import check_length, check_sample_weight
from bristlecone._types import Bools
from bristlecone.trust import (
    _causes,
    _costs,
    _labels,
    _numbers,
    _own,
    _policy,
    _survival,
    _survival_leaves,
)
from bristlecone.trust._columns import Table
from bristlecone.trust._compare import Checks
from bristlecone.trust._rows import Rows
from bristlecone.trust._statement import Statement


@dataclass(frozen=True)
class Kind:
    """How the trees of an estimator are verified.

    Parameters
    ----------
    read_rows : callable
        Rows with the facts of their outcomes, from (tree, table, y, weight, other arguments).
    objective : callable or None
        The objective over such rows, from (tree, rows). A teacher's smoothed outcomes are the fact
        "smoothed". None if the objective is not a function of leaves and rows.
    check_leaves : callable
        Makes the checks of the leaves, from (tree, rows, rows of each node, checks).
    arguments : tuple of str
        Arguments of ``fit`` with one entry per row, besides ``sample_weight``.
    """

    read_rows: Callable[[Any, Table, Any, Any, Mapping[str, Any]], Rows]
    objective: Callable[[Any, Rows], Statement] | None
    check_leaves: Callable[[Any, Rows, Bools, Checks], None]
    arguments: tuple[str, ...] = ()


_KINDS = {
    "OptimalSurvivalTree": Kind(
        _survival_leaves.read_rows,
        _survival.objective,
        _survival_leaves.check_leaves,
        ("sensitive_features", "reference_loss"),
    ),
    "GreedySurvivalTree": Kind(
        _survival_leaves.read_rows, _survival.greedy_objective, _survival_leaves.check_leaves
    ),
    "SoftSurvivalTree": Kind(
        _survival_leaves.read_soft_rows,
        None,
        _survival_leaves.check_leaves,
        ("sensitive_features",),
    ),
    "CompetingRisksTree": Kind(_causes.read_rows, _causes.objective, _causes.check_leaves),
    "OptimalTreeClassifier": Kind(_labels.read_rows, _labels.objective, _labels.check_leaves),
    "CostSensitiveTreeClassifier": Kind(
        _costs.read_rows, _costs.Costs, _costs.check_leaves, ("costs",)
    ),
    "FairTreeClassifier": Kind(
        _labels.read_fair_rows,
        _labels.fair_objective,
        _labels.check_leaves,
        ("sensitive_features",),
    ),
    "OptimalTreeRegressor": Kind(
        _numbers.read_rows, _numbers.objective, _numbers.check_leaves, ("exposure",)
    ),
    "PolicyTree": Kind(
        _policy.read_rows,
        _policy.Rewards,
        _policy.check_leaves,
        ("treatment", "propensity", "predicted_outcomes"),
    ),
    "OptimalTree": Kind(_own.read_rows, _own.Own, _own.check_leaves),
}


def kind_of(tree: Any) -> Kind:
    """How a tree is verified; one of a subclass, such as those for Dask, as its base."""
    return next(_KINDS[one.__name__] for one in type(tree).__mro__ if one.__name__ in _KINDS)


def read_rows(tree: Any, X: Any, y: Any, given: Mapping[str, Any]) -> Rows:
    """Rows of a fit, from its arguments.

    Raises
    ------
    TypeError
        For an argument that the ``fit`` of this class does not take.
    ValueError
        If rows or columns do not fit together, or a weight is invalid.
    """
    kind = kind_of(tree)
    more = {name: value for name, value in given.items() if value is not None}
    for name in more:
        if name not in (*kind.arguments, "sample_weight"):
            raise TypeError(f"verify of {type_name(tree)} takes no argument {name!r}")
    table = Table(tree.encoder_, X)
    weight = check_sample_weight(more.get("sample_weight"), table.n_rows)
    for name, value in more.items():
        if not isinstance(value, (Real, Mapping)):
            check_length(value, name, table.n_rows)
    return kind.read_rows(tree, table, y, weight, more)


def statement_of(tree: Any, rows: Rows) -> Statement | None:
    """The objective that the certificate names; None if it is not one of rows (soft trees)."""
    objective = kind_of(tree).objective
    return None if objective is None else objective(tree, rows)
