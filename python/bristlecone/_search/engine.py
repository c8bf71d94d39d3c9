"""All calls of the search engine: problems, tasks, and the functions that solve them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bristlecone import _core
from bristlecone._core import BinaryMatrix
from bristlecone._data.rows import RowsT
from bristlecone._encoder.ranked import RankedFeatures
from bristlecone._search.certificate import Teaching
from bristlecone._search.counts import (
    curve_forecast,
    limited_forecast,
    measure_forecast,
    ranked_forecast,
)
from bristlecone._search.front import solve_front
from bristlecone._tree import Tree
from bristlecone._types import Bools, Floats, Integers
from bristlecone.exceptions import InvalidParameterError

# Names of the functions that take each task.
_FUNCTIONS = {name: frozenset(functions) for name, functions, _ in _core.tasks()}

# If the largest weight is this many times the smallest, errors about wide ranges name the weights.
_WIDE = 1e9


@dataclass(frozen=True, eq=False)
class Problem(Generic[RowsT]):
    """Training rows, the fitted encoder, and the features.

    These are a ``BinaryMatrix``, or ``RankedFeatures`` for a search over every threshold.
    ``least`` has the settings of the search for the smallest leaf, ``seconds`` is the time for
    reading and encoding the rows, ``memo`` a cache of what the trees of one problem have in
    common; ``reference_loss`` is that of a reference model on each row, where there is one, and
    ``teaching`` says how the smoothed outcomes of ``data`` were made, where there are some. With
    ``count`` an entry of ``data`` stands for so many rows, whose weight together is its weight;
    ``leaf`` is then the position of the leaf of each in the tree that was found, and ``features``
    have no values.
    """

    data: RowsT
    encoder: Any
    features: Any
    least: dict[str, int]
    seconds: float
    memo: dict[str, Any]
    reference_loss: Floats | None = None
    teaching: Teaching | None = None
    count: Integers | None = None
    leaf: Integers | None = None

    def leaf_index(self, tree: Tree) -> Integers:
        """Position of the leaf of every row, as ``tree.leaf_index``.

        It is kept for the last tree, since statistics, losses and the certificate all ask for it.
        """
        if self.leaf is not None:
            return self.leaf
        known = self.memo.get("leaf_index")
        if known is None or known[0] is not tree.feature:
            known = self.memo["leaf_index"] = tree.feature, tree.leaf_index(self.features)
        leaf: Integers = known[1]
        return leaf


class Changed:
    """A solution of the engine with other values of some attributes."""

    def __init__(self, solution: Any, **values: Any) -> None:
        self._solution = solution
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._solution, name)


class Task(NamedTuple):
    """Name of a task in the engine's registry, and its data by their names there."""

    name: str
    data: dict[str, Any]


class Engine(NamedTuple):
    """Functions of the engine with the data of a problem; they take the settings of a search.

    ``path`` is None when the best tree of every size takes a search of its own, ``near_optimal``
    and ``alternatives`` when only one best tree is found.
    """

    solve: Callable[..., Any]
    forecast: Callable[..., dict[str, float]]
    path: Callable[..., list[Any]] | None = None
    near_optimal: Callable[..., tuple[list[Any], bool]] | None = None
    alternatives: Callable[..., tuple[Any, ...]] | None = None


MOST_DEPTH = 4
"""Largest depth of sums over partitions."""


def sum_tasks() -> list[str]:
    """Names of the tasks whose costs are functions of sums."""
    return [name for name, known in _FUNCTIONS.items() if {"path", "forecast"} <= known]


class Sums:
    """Sums over sets of features, to which partitions are added; they travel as bytes.

    Parameters
    ----------
    task : Task
        Its data are those of distinct outcomes.
    count : array of int, shape (n_outcomes,)
        Rows with each outcome in all partitions.
    flipped : array of bool, shape (n_features,)
        Features that are summed negated: those that hold for most rows, which saves work.
    settings : mapping
        Settings of the search, with the depth of the sums.
    """

    def __init__(
        self,
        task: Task,
        count: Integers,
        flipped: Bools,
        settings: dict[str, Any],
    ) -> None:
        self._given = task, count, flipped, settings
        data = {**task.data, "count": count}
        self._sums = _core.PartialSums(task.name, data, flipped, **settings)

    def add(self, features: BinaryMatrix, outcome: NDArray[np.uint32]) -> None:
        """Add rows: features of shape (n, n_features), and the place of each outcome."""
        self._sums.add(features, outcome)

    def merge(self, other: Sums) -> None:
        """Add the sums of other rows."""
        self._sums.merge(other._sums)

    @property
    def n_rows(self) -> int:
        """Number of rows added so far."""
        return self._sums.n_rows

    def to_bytes(self) -> bytes:
        """The sums, with a version and a checksum."""
        return self._sums.to_bytes()

    def merge_bytes(self, content: bytes) -> None:
        """Add sums that were turned into bytes."""
        self._sums.merge_bytes(content)

    def smallest_cell(self) -> tuple[int, list[tuple[int, bool]]] | None:
        """Rows of the smallest cell that is not empty, and its features with their values."""
        return self._sums.smallest_cell()

    def search(
        self, callback: Callable[..., object] | None, **settings: Any
    ) -> tuple[Integers, ...]:
        """Feature and children of the nodes of the best tree, in preorder."""
        return self._sums.search(callback, **settings)

    def certify(
        self,
        outcome: Integers,
        leaf: Integers,
        count: Integers,
        **settings: Any,
    ) -> _core.Solution:
        """Certified solution, from the number of rows of each leaf with each outcome."""
        arrays = tuple(map(np.ascontiguousarray, (outcome, leaf, count)))
        return self._sums.certify(arrays, **settings)  # type: ignore[arg-type]

    def certify_by_sums(self, **settings: Any) -> _core.Solution:
        """Certified solution, with the objective of the sums."""
        return self._sums.certify(None, **settings)

    def __getstate__(self) -> tuple[Any, ...]:
        return *self._given, self.to_bytes()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        *given, content = state
        Sums.__init__(self, *given)
        self.merge_bytes(content)


def engine_of(task: Task, features: BinaryMatrix | RankedFeatures) -> Engine:
    """Engine for a task of the registry, with the functions that take it.

    Raises
    ------
    InvalidParameterError
        For a search over every threshold, if the task has none.
    """
    known = _FUNCTIONS[task.name]
    if isinstance(features, RankedFeatures):
        return _over_thresholds(task, features)
    optional: tuple[Any, ...] = _core.path, _core.near_optimal, _core.alternatives
    offered: dict[str, Any] = {
        function.__name__: partial(_named(function), *task, features)
        for function in optional
        if function.__name__ in known
    }
    solve = _core.solve if "solve" in known else solve_front
    forecast = _forecast(task, features)
    return Engine(partial(_named(solve), *task, features), forecast, **offered)


def _named(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the engine, whose errors name the weights if their range is to blame.

    The engine sees outcomes that contain the weights.
    """

    def call(name: str, data: dict[str, Any], *args: Any, **settings: Any) -> Any:
        try:
            return function(name, data, *args, **settings)
        except ValueError as error:
            weight = data.get("weight")
            wide = str(error).startswith("y: the values span too wide a range")
            if not wide or weight is None or weight.max() < _WIDE * weight.min():
                raise
            objective = str(error).rpartition(": ")[2]
            raise ValueError(
                "sample_weight: the values span too wide a range for a certificate (from "
                f"{weight.min():g} to {weight.max():g}): {objective}"
            ) from None

    return call


# Why a task has no search over every threshold.
_NO_THRESHOLDS = {
    "brier": "the Brier score of a leaf is not a function of sums over its rows",
    "priced-costs": "features have prices",
    "own": "custom tasks are not supported",
}


def _over_thresholds(task: Task, ranked: RankedFeatures) -> Engine:
    if "over_thresholds" not in _FUNCTIONS[task.name]:
        reason = _NO_THRESHOLDS.get(task.name, "it weighs several objectives or has constraints")
        raise InvalidParameterError(
            f"BinaryEncoder(thresholds='all') cannot be used with this objective: {reason}; "
            "choose other thresholds, such as 'midpoints'"
        )

    def written(search: Callable[..., Any]) -> Callable[..., Any]:
        return lambda **settings: _named(search)(*task, ranked.written(), **settings)

    solve = partial(_named(_core.over_thresholds), *task, ranked.ranks)
    forecast = partial(ranked_forecast, solve, ranked)
    neighbours = written(_core.near_optimal), written(_core.alternatives)
    return Engine(solve, forecast, None, *neighbours)


def _forecast(task: Task, features: BinaryMatrix) -> Callable[..., dict[str, float]]:
    """Forecast of the engine where it has one, else from counts."""
    if "forecast" in _FUNCTIONS[task.name]:
        return partial(_core.forecast, *task, features)
    if "solve" in _FUNCTIONS[task.name]:
        return partial(curve_forecast, task.data, features)
    if task.name in ("f-measure", "matthews"):
        return partial(measure_forecast, task.data["labels"], task.data["weight"], features)
    is_linear = task.name not in ("fair-likelihood", "fair-brier")
    return partial(limited_forecast, features, n_limits=_limits_of(task), is_linear=is_linear)


def _limits_of(task: Task) -> int:
    """Differences between groups that a task for labels limits; else 1."""
    if task.name not in ("demographic-parity", "equality-of-opportunity", "equalized-odds"):
        return 1
    n_groups = int(task.data["group"].max()) + 1
    return (2 if task.name == "equalized-odds" else 1) * n_groups * (n_groups - 1) // 2
