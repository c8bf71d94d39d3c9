"""Every tree there is, for small problems: the least objective, found without any bound.

A tree is a leaf, or a question with a tree on either side. Nothing is left out but rows that are
equal to others and questions that do not part the rows; sets of rows are remembered.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from bristlecone.trust.losses import Statement

__all__ = ["Limits", "distinct_questions", "estimated_work", "least_objectives"]

Floats = NDArray[np.float64]

# Measured: work of a leaf of few statistics in units of 10 ns, rows that double it, and work of
# a pair of cost vectors.
_PER_LEAF, _ROWS, _PER_PAIR = 40.0, 1000.0, 100.0


@dataclass(frozen=True)
class Limits:
    """What trees are allowed.

    Parameters
    ----------
    depth : int
        Most questions on a path.
    leaves : int
        Most leaves.
    rows, events : int
        Fewest of a leaf.
    penalty : float
        Added per leaf.
    """

    depth: int
    leaves: int
    rows: int
    events: int
    penalty: float


def distinct_questions(answers: NDArray[np.bool_]) -> list[int]:
    """Features that part the rows, one of those that part them alike."""
    seen: dict[bytes, int] = {}
    for feature, column in enumerate(answers.T):
        if column.all() or not column.any():
            continue
        side = ~column if column[0] else column
        seen.setdefault(np.packbits(side).tobytes(), feature)
    return list(seen.values())


def estimated_work(statement: Statement, n_features: int, n_rows: int, limits: Limits) -> float:
    """Work of the search, in units of about 10 ns; infinite where there is no end.

    With F features and depth d it looks at (2F)^d leaves. Where costs are vectors every pair of
    them counts: c labels of a leaf give at most c + F c² sums at depth 1, all pairs of these for
    every feature at depth 2, and so on.
    """
    if n_features == 0 or limits.depth == 0:
        return 0.0
    if limits.depth * math.log(2 * n_features) > 60:
        return math.inf
    width = statement.statistics.shape[1]
    each = max(_PER_LEAF, width * statement.price) * (1 + n_rows / _ROWS)
    work = (2.0 * n_features) ** limits.depth * each
    if not statement.is_scalar:
        labels = len(statement.root)
        front = float(labels)
        for _ in range(limits.depth):
            if front > 1e15:
                return math.inf
            front = labels + n_features * front**2
        work += front * _PER_PAIR
    return work


def least_objectives(
    statement: Statement,
    answers: NDArray[np.bool_],
    event: NDArray[np.bool_] | None,
    limits: Limits,
    allowed: tuple[float, ...],
) -> list[float]:
    """Least objective of all trees, by the allowance of limits; inf where none keeps them."""
    counts = np.ones((answers.shape[0], 2))
    counts[:, 1] = 0.0 if event is None else event
    # Rows of the same answers stay together in every tree: their sums are all that counts.
    distinct, place = np.unique(np.packbits(answers, axis=1), axis=0, return_inverse=True)
    places = place.ravel(), np.arange(len(answers))
    merge = csr_matrix((np.ones(len(answers)), places), (len(distinct), len(answers)))
    _, first = np.unique(place.ravel(), return_index=True)
    kept = answers[first]
    sides = np.concatenate([kept, ~kept], axis=1).T.astype(np.float64)
    search = _Sums if statement.is_scalar else _Vectors
    found = search(statement, merge @ statement.statistics, sides, merge @ counts, limits)
    every = np.ones(len(distinct), dtype=bool)
    costs = found.of(every, min(limits.depth, answers.shape[1]), ())
    least = []
    for slack in allowed:
        values = found.values(costs, slack)
        least.append(float(values.min(initial=math.inf)))
    return least


class _Search(ABC):
    """What both kinds of search share: sums of the sides of all questions at a node."""

    def __init__(
        self,
        statement: Statement,
        statistics: Any,
        sides: Floats,
        counts: Floats,
        limits: Limits,
    ) -> None:
        self.statement, self.statistics = statement, statistics
        self.sides, self.counts, self.limits = sides, counts, limits
        self.n_features = len(sides) // 2
        self.known: dict[Any, Any] = {}

    def leaf_sums(self, rows: NDArray[np.bool_], members: Floats) -> tuple[Floats, Any]:
        """Sums of groups of the rows, and which groups are large enough for a leaf."""
        places = np.flatnonzero(rows)
        sums = np.asarray(members @ self.statistics[places])
        counts = members @ self.counts[places]
        large = (counts[:, 0] >= max(1, self.limits.rows)) & (counts[:, 1] >= self.limits.events)
        return sums, large

    def key(self, rows: NDArray[np.bool_], depth: int, asked: tuple[int, ...]) -> Any:
        prices = getattr(self.statement, "prices", None)
        return np.packbits(rows).tobytes(), depth, frozenset(asked) if prices is not None else None

    def of(self, rows: NDArray[np.bool_], depth: int, asked: tuple[int, ...]) -> Any:
        """Costs of the trees of this depth on these rows."""
        key = self.key(rows, depth, asked)
        if key not in self.known:
            self.known[key] = self.found(rows, depth, asked)
        return self.known[key]

    @abstractmethod
    def found(self, rows: NDArray[np.bool_], depth: int, asked: tuple[int, ...]) -> Any:
        """The same, not remembered."""

    def parts(self, rows: NDArray[np.bool_]) -> Any:
        """Questions that part the rows, with the rows of either side."""
        for feature in range(self.n_features):
            yes = rows & (self.sides[feature] > 0)
            if yes.any() and (yes != rows).any():
                yield feature, yes, rows & ~yes


class _Sums(_Search):
    """Costs are numbers: the least for every number of leaves, shape (most leaves + 1,)."""

    def found(self, rows: NDArray[np.bool_], depth: int, asked: tuple[int, ...]) -> Floats:
        most = min(self.limits.leaves, 2 ** min(depth, 30))
        least = np.full(most + 1, math.inf)
        one = np.ones((1, int(rows.sum())))
        sums, large = self.leaf_sums(rows, one)
        if large[0]:
            least[1] = self.statement.candidates(sums)[0, :, 0].min()
        if depth == 0 or most == 1:
            return least
        prices = self.statement.split_costs(sums[0], asked, self.n_features)
        if depth == 1:
            members = self.sides[:, rows]
            parts, large = self.leaf_sums(rows, members)
            costs = np.full(len(members), math.inf)
            if large.any():
                costs[large] = self.statement.candidates(parts[large])[:, :, 0].min(axis=1)
            both = costs[: self.n_features] + costs[self.n_features :] + prices
            least[2] = both.min(initial=math.inf)
            return least
        for feature, yes, no in self.parts(rows):
            below = (*asked, feature)
            left, right = self.of(yes, depth - 1, below), self.of(no, depth - 1, below)
            for n_leaves in range(1, min(len(left), most)):
                end = min(most - n_leaves, len(right) - 1)
                sums_of = left[n_leaves] + right[1 : end + 1] + prices[feature]
                place = slice(n_leaves + 1, n_leaves + 1 + end)
                least[place] = np.minimum(least[place], sums_of)
        return least

    def values(self, least: Floats, allowed: float) -> Floats:
        """Objectives by the number of leaves."""
        leaves = np.arange(1, len(least))
        finite = np.isfinite(least[1:])
        costs, leaves = least[1:][finite], leaves[finite]
        return self.statement.value(costs[:, None], allowed) + self.limits.penalty * leaves


class _Vectors(_Search):
    """Costs are vectors: all that trees add up to, with the number of leaves before them."""

    def found(self, rows: NDArray[np.bool_], depth: int, asked: tuple[int, ...]) -> Floats:
        sums, large = self.leaf_sums(rows, np.ones((1, int(rows.sum()))))
        candidates = self.statement.candidates(sums)[0]
        alone = np.column_stack([np.ones(len(candidates)), candidates])
        found = [alone if large[0] else alone[:0]]
        if depth > 0 and self.limits.leaves > 1:
            prices = self.statement.split_costs(sums[0], asked, self.n_features)
            for feature, yes, no in self.parts(rows):
                below = (*asked, feature)
                left, right = self.of(yes, depth - 1, below), self.of(no, depth - 1, below)
                both = (left[:, None, :] + right[None, :, :]).reshape(-1, alone.shape[1])
                both[:, 1] += prices[feature]
                found.append(_distinct(both[both[:, 0] <= self.limits.leaves]))
        return _distinct(np.concatenate(found))

    def values(self, costs: Floats, allowed: float) -> Floats:
        """Objectives of all sums."""
        penalty = self.limits.penalty * costs[:, 0]
        return self.statement.value(costs[:, 1:], allowed) + penalty


def _distinct(costs: Floats) -> Floats:
    """One of those that are equal but for rounding."""
    if len(costs) < 2:
        return costs
    scale = np.abs(costs).max(axis=0)
    digits = np.round(costs / np.where(scale > 0, scale, 1.0), 13)
    _, first = np.unique(digits, axis=0, return_index=True)
    return costs[first]
