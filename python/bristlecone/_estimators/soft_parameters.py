"""Checks of the parameters of ``SoftSurvivalTree``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bristlecone._estimators.parameters import Check, check_parameters, choice, integer, number
from bristlecone._objectives.parity import CurveParity
from bristlecone._soft.models import MODELS
from bristlecone.exceptions import InvalidParameterError

# 2^10 leaves; a larger tree would have hardly any rows per leaf.
_MOST_DEPTH = 10

# Checks of the options of the solver.
OPTIONS: dict[str, Check] = {
    "init": choice("kmeans", "random"),
    "n_macro": integer(0),
    "max_iter": integer(1),
    "tol": number(0.0),
}


def check_soft_parameters(tree: Any) -> None:
    """Check the type and the range of every parameter of a soft tree."""
    free = dict.fromkeys(
        ("l2", "split_l2", "l1", "balance", "min_leaf_share"),
        number(0.0),
    )
    check_parameters(
        tree,
        depth=integer(0, _MOST_DEPTH),
        leaf=choice(*MODELS),
        n_knots=integer(0),
        solver=choice("nodec", "joint"),
        solver_options=_check_options,
        n_restarts=integer(1),
        pooling=number(0.0, optional=True),
        fairness=_check_fairness,
        max_categories=integer(1, optional=True),
        handle_unknown=choice("ignore", "error"),
        **free,
    )


def _check_options(name: str, value: Any) -> None:
    if value is None:
        return
    known = ", ".join(map(repr, OPTIONS))
    if not isinstance(value, Mapping):
        raise InvalidParameterError(
            f"{name} must be None or a mapping with keys among {known}; got {value!r}"
        )
    for key, given in value.items():
        if key not in OPTIONS:
            raise InvalidParameterError(f"{name} has an unknown key {key!r}; known are {known}")
        OPTIONS[key](f"{name}[{key!r}]", given)


def _check_fairness(name: str, value: Any) -> None:
    if value is None:
        return
    if not isinstance(value, CurveParity):
        raise InvalidParameterError(f"{name} must be None or CurveParity(penalty); got {value!r}")
    value._check_parameters()
