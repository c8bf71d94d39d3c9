"""All calls of the search engine: problems, tasks, and the functions that solve them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bristlecone import _core
from bristlecone.search.front import solve_front

__all__ = ["Engine", "Problem", "Task", "front_engine", "task_engine"]


class Problem(NamedTuple):
    """Training rows (checked, with ``X`` and ``weight``), the fitted encoder, features.

    These are binary, but numbers for a greedy tree that cuts columns itself. ``least`` has the
    settings of the search for the smallest leaf, ``seconds`` is the time for reading and encoding
    the rows, ``memo`` a cache of what the trees of one problem have in common.
    """

    data: Any
    encoder: Any
    features: NDArray[Any]
    least: dict[str, int]
    seconds: float
    memo: dict[str, Any]


class Task(NamedTuple):
    """Name of a task in the engine's registry, and its data by their names there."""

    name: str
    data: dict[str, Any]


class Engine(NamedTuple):
    """Functions of the engine with the data of a problem; they take the settings of a search.

    ``path`` is None when the best tree of every size takes a search of its own, ``forecast`` when
    nothing useful can be told before the search, ``near_optimal`` and ``alternatives`` when only
    one best tree is found. The estimator's objective is that of the engine minus ``offset``.
    """

    solve: Callable[..., Any]
    path: Callable[..., list[Any]] | None = None
    forecast: Callable[..., dict[str, float]] | None = None
    near_optimal: Callable[..., tuple[list[Any], bool]] | None = None
    alternatives: Callable[..., tuple[Any, ...]] | None = None
    offset: float = 0.0


def task_engine(task: Task, features: NDArray[np.uint8], offset: float = 0.0) -> Engine:
    """Engine for a task whose costs are a function of sums over the rows of a leaf."""
    arguments = *task, features
    # Prices of features depend on what was asked above.
    priced = task.data.get("feature_cost") is not None
    return Engine(
        partial(_core.solve, *arguments),
        partial(_core.solve_path, *arguments),
        partial(_core.forecast, *arguments),
        None if priced else partial(_core.near_optimal, *arguments),
        None if priced else partial(_core.alternatives, *arguments),
        offset=offset,
    )


def front_engine(task: Task, features: NDArray[np.uint8], offset: float = 0.0) -> Engine:
    """Engine for a task whose best tree is chosen from a Pareto front."""
    return Engine(partial(solve_front, *task, features), offset=offset)
