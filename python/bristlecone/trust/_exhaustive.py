"""Searches every tree of small problems for the least objective, without any bound.

A tree is a leaf, or a split with a tree on either side. Only duplicate rows and binary features
that do not divide the rows are left out; results for sets of rows are stored.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from bristlecone._types import Bools, Floats
from bristlecone.trust._cells import Cells, Search
from bristlecone.trust._exact import Column
from bristlecone.trust._statement import Statement

# Bits of a digit of exact vectors, and the least precision of float64 compared with them.
_DIGIT = 40
_MASK = (1 << _DIGIT) - 1
_NEAR = 1e-12

# Measured: work of a leaf with few statistics in units of 10 ns, the number of rows that doubles
# it, and the work of a pair of cost vectors.
_PER_LEAF, _ROWS, _PER_PAIR = 40.0, 1000.0, 100.0
# Work of the cost of a cell, and of one row and statistic in its sum.
_PER_CELL, _PER_PRODUCT = 4.0, 0.01
# Most cells of all statistics that are stored at once: half a gigabyte.
_MOST_CELLS = 5e6


@dataclass(frozen=True)
class Limits:
    """Limits on the size of trees and leaves.

    Parameters
    ----------
    depth : int
        Largest number of splits on a path.
    leaves : int
        Largest number of leaves.
    rows, events : int
        Fewest rows and events of a leaf.
    penalty : float
        Added per leaf.
    """

    depth: int
    leaves: int
    rows: int
    events: int
    penalty: float


def distinct_features(answers: Bools) -> list[int]:
    """Features that divide the rows; of features that divide them in the same way, only one."""
    seen: dict[bytes, int] = {}
    for feature, column in enumerate(answers.T):
        if column.all() or not column.any():
            continue
        side = ~column if column[0] else column
        seen.setdefault(np.packbits(side).tobytes(), feature)
    return list(seen.values())


def estimated_work(statement: Statement, n_features: int, n_rows: int, limits: Limits) -> float:
    """Work of the search, in units of about 10 ns; infinite if it would not end.

    With F features and depth d it looks at (2F)^d leaves. If costs are concave, their sums take a
    product of matrices of n rows. If costs are vectors, every pair of them counts: c labels of a
    leaf give at most c + F c² sums at depth 1, all pairs of these for every feature at depth 2, and
    so on.
    """
    if n_features == 0 or limits.depth == 0:
        return 0.0
    if limits.depth * math.log(2 * n_features) > 60:
        return math.inf
    leaves = (2.0 * n_features) ** limits.depth
    if statement.is_concave:
        if limits.depth > 1 and len(statement.columns) * n_features**2 > _MOST_CELLS:
            return math.inf
        share = n_rows / 2 ** max(limits.depth - 2, 0)
        return leaves * (_PER_CELL + len(statement.columns) * _PER_PRODUCT * share)
    width = statement.statistics.shape[1]
    each = max(_PER_LEAF, width * statement.price) * (1 + n_rows / _ROWS)
    work = leaves * each
    if not statement.is_scalar:
        labels = len(statement.root)
        front = float(labels)
        for _ in range(limits.depth):
            if front > 1e15:
                return math.inf
            front = labels + n_features * front**2
        work += front * _PER_PAIR
    return work


@np.errstate(all="ignore")
def better_tree(
    statement: Statement,
    answers: Bools,
    event: Bools | None,
    limits: Limits,
    value: Fraction,
    allowed: float,
) -> float | None:
    """Least objective of all trees if it is below ``value``, else None.

    Trees that exceed a limit by at most ``allowed`` count. Raises ``TooManyTies`` if rounding
    decides.
    """
    counts = np.ones((answers.shape[0], 2))
    counts[:, 1] = 0.0 if event is None else event
    # Rows with the same answers stay together in every tree, so only their sums matter.
    packed = np.packbits(answers, axis=1)
    _, first, place = np.unique(packed, axis=0, return_index=True, return_inverse=True)
    place, n = place.ravel(), len(first)
    merge = csr_matrix((np.ones(len(answers)), (place, np.arange(len(answers)))), (n, len(answers)))
    distinct = answers[first], merge @ counts, limits
    if statement.is_concave or statement.is_linear:
        columns = [column.by_group(place, n) for column in statement.columns]
        if not statement.is_concave:
            exact = _Exact(statement, columns, *distinct)
            return exact.below(exact.all(), value, allowed)
        cells = Cells(statement, columns, *distinct)
        found = cells.prove(value * statement.total / statement.factor)
        return None if found is None else float(found * statement.factor / statement.total)
    search: type[Any] = _Sums if statement.is_scalar else _Vectors
    trees = search(statement, merge @ statement.statistics, *distinct)
    values = trees.values(trees.all(), allowed)
    least = float(values.min(initial=math.inf))
    return least if least - statement.rounding * abs(least) < value else None


class _Search(Search):
    """The common part of both searches: sums of groups of the rows at a node."""

    def leaf_sums(self, rows: Bools, members: Floats) -> tuple[Floats, Any]:
        """Sums of groups of the rows, and which groups are large enough for a leaf."""
        places = np.flatnonzero(rows)
        sums = np.asarray(members @ self.statistics[places])
        return sums, self.are_large(members @ self.counts[places])


class _Sums(_Search):
    """Costs are numbers: the least cost for every number of leaves, shape (most leaves + 1,)."""

    def found(self, rows: Bools, depth: int, asked: tuple[int, ...]) -> Floats:
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
            yes = self.answers[rows].T
            members = np.concatenate([yes, ~yes]).astype(np.float64)
            parts, large = self.leaf_sums(rows, members)
            costs = np.full(len(members), math.inf)
            if large.any():
                costs[large] = self.statement.candidates(parts[large])[:, :, 0].min(axis=1)
            both = costs[: self.n_features] + costs[self.n_features :] + prices
            least[2] = both.min(initial=math.inf)
            return least
        self.split(least, rows, depth, asked, prices)
        return least

    def values(self, least: Floats, allowed: float) -> Floats:
        """Objectives by the number of leaves."""
        leaves = np.arange(1, len(least))
        finite = np.isfinite(least[1:])
        costs, leaves = least[1:][finite], leaves[finite]
        return self.statement.value(costs[:, None], allowed) + self.limits.penalty * leaves


class _Vectors(_Search):
    """Costs are vectors: the total costs of all trees, each preceded by its number of leaves."""

    def alone(self, rows: Bools) -> NDArray[Any]:
        """Vectors of these rows as one leaf, by its labels."""
        sums, large = self.leaf_sums(rows, np.ones((1, int(rows.sum())), self.statistics.dtype))
        candidates = self.leaf_vectors(sums)
        found = np.column_stack([np.ones(len(candidates), candidates.dtype), candidates])
        return found if large[0] else found[:0]

    def leaf_vectors(self, sums: Floats) -> NDArray[Any]:
        """Cost vectors of a leaf by its labels."""
        vectors: Floats = self.statement.candidates(sums)[0]
        return vectors

    def found(self, rows: Bools, depth: int, asked: tuple[int, ...]) -> NDArray[Any]:
        found = [self.alone(rows)]
        if depth > 0 and self.limits.leaves > 1:
            for _, yes, no in self.divided(rows):
                left, right = self.of(yes, depth - 1, asked), self.of(no, depth - 1, asked)
                both = (left[:, None, :] + right[None, :, :]).reshape(-1, found[0].shape[1])
                found.append(self.distinct(both[both[:, 0] <= self.limits.leaves]))
        return self.distinct(np.concatenate(found))

    def distinct(self, costs: NDArray[Any]) -> NDArray[Any]:
        """One of each group of vectors that differ only by rounding."""
        if len(costs) < 2:
            return costs
        scale = np.abs(costs).max(axis=0)
        digits = np.round(costs / np.where(scale > 0, scale, 1.0), 13)
        _, first = np.unique(digits, axis=0, return_index=True)
        return np.asarray(costs[first])

    def values(self, costs: Floats, allowed: float) -> Floats:
        """Objectives of all sums."""
        penalty = self.limits.penalty * costs[:, 0]
        return np.asarray(self.statement.value(costs[:, 1:], allowed) + penalty)


class _Exact(_Vectors):
    """Exact vectors that are linear in the sums.

    Every number is a whole number in base 2^40, with a signed last digit; digits of the same
    position are adjacent.
    """

    def __init__(
        self,
        statement: Statement,
        columns: list[Column],
        answers: Bools,
        counts: Floats,
        limits: Limits,
    ) -> None:
        rows = [column.whole.tolist() for column in columns]
        most = max(sum(map(abs, column)) for column in rows)
        self.n_digits = max(1, -(-(most.bit_length() + 2) // _DIGIT))
        digits, rest = [], np.array(rows, dtype=object)
        for _ in range(self.n_digits - 1):
            digits.append(rest & _MASK)
            rest = rest >> _DIGIT
        statistics = np.concatenate([*digits, rest]).astype(np.int64).T
        # Sums of digits over so many rows stay below 2^53; otherwise 64 bits hold them.
        if len(statistics) < 2 ** (52 - _DIGIT):
            statistics = statistics.astype(np.float64)
        super().__init__(statement, statistics, answers, counts, limits)

    def leaf_vectors(self, sums: Floats) -> NDArray[Any]:
        whole = sums.astype(np.int64).reshape(self.n_digits, -1)
        labels = self.statement.candidates(whole).transpose(1, 0, 2)
        return np.asarray(labels.reshape(len(labels), -1))

    def distinct(self, costs: NDArray[Any]) -> NDArray[Any]:
        width = (costs.shape[1] - 1) // self.n_digits
        for k in range(self.n_digits - 1):
            here, above = (slice(1 + at * width, 1 + (at + 1) * width) for at in (k, k + 1))
            costs[:, above] += costs[:, here] >> _DIGIT
            costs[:, here] &= _MASK
        if len(costs) < 2:
            return costs
        # If their ranges allow it, each vector is packed into one number, which sorts faster.
        low, high = costs.min(axis=0).tolist(), costs.max(axis=0).tolist()
        spans = [above - below + 1 for below, above in zip(low, high, strict=True)]
        if math.prod(spans) >= 2**62:
            return np.unique(costs, axis=0)
        key = np.zeros(len(costs), dtype=np.int64)
        for column, below, span in zip(costs.T, low, spans, strict=True):
            key = key * span + (column - below)
        return np.asarray(costs[np.unique(key, return_index=True)[1]])

    def below(self, costs: NDArray[Any], value: Fraction, allowed: float) -> float | None:
        """Least objective below a value, in fractions."""
        units = self.statement.units
        parts = costs[:, 1:].reshape(len(costs), self.n_digits, -1)
        if self.statement.is_sum or self.n_digits == 1:
            scale = 2.0 ** (_DIGIT * np.arange(self.n_digits))
            near = (parts * scale[:, None]).sum(axis=1) * np.array([float(u) for u in units])
            values = self.values(np.column_stack([costs[:, 0], near]), allowed + _NEAR)
            # Differences of measures between 0 and 1 cancel; sums have a relative error.
            margin = _NEAR * (np.abs(values) + abs(float(value)) + (not self.statement.is_sum))
            low = values - margin < float(value)
            costs, parts = costs[low], parts[low]
        penalty, best = Fraction(self.limits.penalty), value
        for leaves, digits in zip(costs[:, 0].tolist(), parts.tolist(), strict=True):
            whole = sum(np.array(own, dtype=object) << _DIGIT * k for k, own in enumerate(digits))
            vector = np.array(units, dtype=object) * whole
            best = min(
                best, self.statement.value(vector[np.newaxis], allowed)[0] + leaves * penalty
            )
        return float(best) if best < value else None
