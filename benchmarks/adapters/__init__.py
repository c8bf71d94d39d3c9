"""One module per library, each with a class named `Adapter`.

An adapter is built from a problem, a setting and a variant (outside the clock: conversions belong
there), trains in `fit` (inside the clock) and answers `outcome` afterwards.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from benchmarks.problems import Problem

MODULES = {
    "bristlecone": "bristlecone_estimator",
    "bristlecone-core": "bristlecone_core",
    "bristlecone-greedy": "bristlecone_greedy",
    "bristlecone-labels": "bristlecone_labels",
    "gosdt": "gosdt_sparse",
    "osst": "osst_brier",
    "pydl85": "pydl85_accuracy",
    "pystreed": "pystreed_survival",
    "pystreed-labels": "pystreed_labels",
    "sklearn": "sklearn_regression",
    "sksurv": "sksurv_tree",
}


@dataclass(frozen=True)
class Setting:
    """What is asked of every library alike.

    Parameters
    ----------
    objective : str
        Key of `benchmarks.objectives.OBJECTIVES`.
    max_depth : int or None
        None is no limit.
    leaf_penalty : float
        In the unit of the objective as scored here.
    min_samples_leaf : int
        Rows.
    time_limit : float or None
        Seconds for libraries that stop by themselves with a bound; None leaves it to the timeout.
    """

    objective: str
    max_depth: int | None
    leaf_penalty: float = 0.0
    min_samples_leaf: int = 1
    time_limit: float | None = None


@dataclass(frozen=True)
class Outcome:
    """What a library says about its last fit; None where it does not say.

    Parameters
    ----------
    leaves : ndarray of shape (n,)
        Leaf of each training row, from which the objective is scored again.
    status : str
        "optimal" only if the library claims a proof.
    objective, lower_bound : float or None
        In the library's own accounting.
    nodes : int or None
        Search nodes.
    trace : list of (seconds, objective, lower_bound)
        Improvements during the search; empty where the library keeps none.
    labels : ndarray of shape (n,), optional
        Label of each training row, where it does not follow from its leaf.
    asked : dict of int to tuple of int
        By leaf, the features asked about on the way to it, where they have a price.
    """

    leaves: np.ndarray
    status: str
    objective: float | None = None
    lower_bound: float | None = None
    nodes: int | None = None
    trace: list[tuple[float, float, float]] = field(default_factory=list)
    labels: np.ndarray | None = None
    asked: dict[int, tuple[int, ...]] = field(default_factory=dict)


def leaves_of(
    n_rows: int, root: Any, split: Callable[[Any, np.ndarray], list[tuple[Any, np.ndarray]]]
) -> np.ndarray:
    """Leaf of each row, for libraries that give their tree as nodes.

    `split(node, rows)` answers the children with their rows, none at a leaf.
    """
    leaves = np.zeros(n_rows, dtype=np.int64)
    stack = [(root, np.arange(n_rows))]
    n_leaves = 0
    while stack:
        node, rows = stack.pop()
        children = split(node, rows)
        if not children:
            leaves[rows] = n_leaves
            n_leaves += 1
        stack += children
    return leaves


class Adapter(Protocol):
    """What a library's module provides.

    An adapter with a true attribute ``one_fit`` is asked for one fit per process.
    """

    version: str

    def __init__(self, problem: Problem, setting: Setting, variant: str) -> None: ...

    def fit(self) -> None: ...

    def outcome(self) -> Outcome: ...


def adapter(library: str) -> type[Adapter]:
    """Import and return the adapter of a library; only that library is imported."""
    module = importlib.import_module(f"benchmarks.adapters.{MODULES[library]}")
    return module.Adapter
