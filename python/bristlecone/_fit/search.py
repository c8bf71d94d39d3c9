"""Aim and limits of a search: the parameters of an estimator as values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bristlecone._core import BinaryMatrix
from bristlecone._data.checks import thread_count
from bristlecone._encoder.ranked import RankedFeatures
from bristlecone._encoder.use import count_distinct
from bristlecone._objectives.base import Objective
from bristlecone._search.engine import Engine, Problem

# A search gets at least this share of a time limit, even if reading the rows took all of it,
# because a tree must be grown, too.
_SHARE_FOR_SEARCH = 0.05


@dataclass(frozen=True)
class Limits:
    """Limits on a tree and its search, named like the parameters.

    ``min_events_leaf`` is also None for estimators without this parameter.
    """

    max_depth: int | None
    max_leaf_nodes: int | None
    min_samples_leaf: int | float
    min_events_leaf: int | float | str | None
    leaf_penalty: float
    time_limit: float | None
    memory_limit: int | None
    n_jobs: int | None

    @classmethod
    def of(cls, estimator: Any) -> Limits:
        """Limits of an estimator."""
        given: Any = {name: getattr(estimator, name, None) for name in cls.__dataclass_fields__}
        return cls(**given)

    def depth(self, shape: tuple[int, int]) -> int:
        """Largest depth a tree over features of this shape, (n, n_features), can have."""
        # No path asks a question twice, and every split separates at least one row.
        most = min(shape[1], shape[0] - 1)
        if self.max_leaf_nodes is not None:
            most = min(most, self.max_leaf_nodes - 1)
        return most if self.max_depth is None else min(self.max_depth, most)

    def most_leaves(self, features: BinaryMatrix | RankedFeatures) -> int:
        """Largest number of leaves a tree over these features can have."""
        most = len(features)
        if self.max_leaf_nodes is not None:
            most = min(most, self.max_leaf_nodes)
        depth = self.depth(features.shape)
        if depth < most.bit_length():
            most = min(most, 1 << depth)
        if isinstance(features, RankedFeatures):
            return features.count_distinct(most)
        return count_distinct(features, most)

    def settings(self, problem: Problem, **others: Any) -> dict[str, Any]:
        """Arguments of a function of the engine; ``others`` replace or extend them.

        The time limit counts from the beginning of the fit.
        """
        left, leaves = self.time_limit, self.max_leaf_nodes
        if left is not None:
            left = max(_SHARE_FOR_SEARCH * left, left - problem.seconds)
        return {
            "max_depth": self.depth(problem.features.shape),
            "max_leaf_nodes": None if leaves is None else min(leaves, len(problem.features)),
            **problem.least,
            "leaf_penalty": float(self.leaf_penalty),
            "n_threads": thread_count(self.n_jobs),
            "time_limit": left,
            "memory_limit": self.memory_limit,
            "options": None,
            **others,
        }


@dataclass(frozen=True)
class Search:
    """Aim, features and limits of a search.

    Parameters
    ----------
    objective : Objective
    encoder : "auto" or transformer
        The parameter, not fitted.
    limits : Limits
    verbose : int
    """

    objective: Objective
    encoder: Any
    limits: Limits
    verbose: int = 0

    def engine(self, problem: Problem) -> Engine:
        """Functions of the engine for a problem."""
        return self.objective.engine(problem)
