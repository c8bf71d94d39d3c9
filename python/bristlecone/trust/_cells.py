"""Searches every tree, if costs are numbers that follow from sums, by products of matrices.

The rows with the same values of two features are a cell. The sums of all cells for one statistic
are one product of matrices, BᵀSB, so the best trees of depth two over some rows are found at once,
and deeper ones by trying every feature at the root. Nothing is left out.

The products are exact: statistics are rounded to whole numbers whose sums fit into float64, and the
rounding is subtracted from the bound. If that is too much, the numbers are divided into several
parts, and each part is exact. Trees that may still be better are summed in fractions.
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from bristlecone._types import Bools, Floats
from bristlecone.trust._exact import Column, fractions
from bristlecone.trust._statement import ROUNDING, Statement, sums_of

# Bits of the sums of one part, and the most parts: about 250 bits.
_BITS, _MOST_PARTS = 51, 6
# Most leaves that are summed in fractions, in bits of rows: a second or two.
_MOST_EXACT = 20_000
# A fee so large that no tree with a finite cost pays it twice.
_MOST_FEE = Fraction(2**1000)


class TooManyTies(Exception):
    """More trees than can be summed in fractions differ only by rounding."""


class _Parts:
    """A column as whole numbers in float64, in parts of decreasing size."""

    def __init__(self, column: Column, most: int) -> None:
        whole = column.whole.tolist()
        shift = max(0, sum(map(abs, whole)).bit_length() - _BITS)
        # Remainders are at most half of what was cut off.
        step = _BITS - len(whole).bit_length()
        parts, scales = [], []
        while True:
            half = (1 << shift) >> 1
            part = [(one + half) >> shift for one in whole]
            whole = [one - (two << shift) for one, two in zip(whole, part, strict=True)]
            parts.append(np.array(part, dtype=np.float64))
            scales.append(float(column.unit * (1 << shift)))
            if shift == 0 or len(parts) == most:
                break
            shift = max(0, shift - step)
        self.parts, self.scales = parts, scales
        self.error = float(column.unit * ((1 << shift) >> 1))


class Search(ABC):
    """A search of every tree over some rows, which remembers the results for sets of rows.

    Parameters
    ----------
    statement : Statement
    statistics : list of Column, or array or sparse matrix of shape (m, k)
        Sums of the statistics over the rows that each of the distinct rows stands for.
    answers : array of bool, shape (m, n_features)
        Distinct rows.
    counts : array of float, shape (m, 2)
        Rows and events of the distinct rows.
    limits : Limits
    """

    def __init__(
        self, statement: Statement, statistics: Any, answers: Bools, counts: Floats, limits: Any
    ) -> None:
        self.statement, self.statistics, self.limits = statement, statistics, limits
        self.answers, self.counts = answers, counts
        self.n_features = answers.shape[1]
        self.every = np.ones(len(answers), dtype=bool), min(limits.depth, self.n_features), ()
        self.prices = getattr(statement, "prices", None)
        self.known: dict[Any, Any] = {}

    def all(self) -> Any:
        """Costs of the trees on all rows."""
        return self.of(*self.every)

    def of(self, rows: Bools, depth: int, asked: tuple[int, ...]) -> Any:
        """Costs of the trees of this depth on these rows, below the splits ``asked``."""
        own = np.packbits(rows).tobytes(), depth, frozenset(asked) if self.prices else None
        if own not in self.known:
            self.known[own] = self.found(rows, depth, asked)
        return self.known[own]

    @abstractmethod
    def found(self, rows: Bools, depth: int, asked: tuple[int, ...]) -> Any:
        """The same without the memo."""

    def are_large(self, counts: Floats) -> Any:
        """Whether numbers of rows and events (..., 2) are enough for a leaf."""
        rows, events = counts[..., 0], counts[..., 1]
        return (rows >= max(1, self.limits.rows)) & (events >= self.limits.events)

    def divided(self, rows: Bools) -> Iterator[tuple[int, Bools, Bools]]:
        """Features that divide the rows, with the rows of either side."""
        for feature in range(self.n_features):
            yes = rows & self.answers[:, feature]
            if yes.any() and (yes != rows).any():
                yield feature, yes, rows & ~yes

    def split(
        self, least: Floats, rows: Bools, depth: int, asked: tuple[int, ...], price: Floats
    ) -> None:
        """Lower the least costs by the number of leaves to those of trees with a split."""
        most = len(least) - 1
        for feature, yes, no in self.divided(rows):
            below = (*asked, feature)
            left, right = self.of(yes, depth - 1, below), self.of(no, depth - 1, below)
            for n_leaves in range(1, min(len(left), most)):
                end = min(most - n_leaves, len(right) - 1)
                place = slice(n_leaves + 1, n_leaves + 1 + end)
                both = left[n_leaves] + right[1 : end + 1] + price[feature]
                least[place] = np.minimum(least[place], both)


class Cells(Search):
    """The least costs of trees over some rows, for costs that are concave in the sums."""

    def __init__(
        self,
        statement: Statement,
        statistics: list[Column],
        answers: Bools,
        counts: Floats,
        limits: Any,
    ) -> None:
        super().__init__(statement, statistics, answers, counts, limits)
        self.yes = answers.astype(np.float64)
        self.fee = Fraction(limits.penalty) * statement.total / statement.factor
        self.n_exact = 0
        self.leaves: dict[bytes, Any] = {}
        self.cut(1)

    def cut(self, most: int) -> None:
        """Statistics in at most this many parts."""
        self.parts = [_Parts(column, most) for column in self.statistics]
        fewest = self.limits.rows if self.limits.rows > 1 else 0, self.limits.events
        self.fewest = [(k, least) for k, least in enumerate(fewest) if least > 0]
        channels = [part for parts in self.parts for part in parts.parts]
        self.channels = np.array(channels + [self.counts[:, k] for k, _ in self.fewest])
        self.known.clear()

    @property
    def is_rounded(self) -> bool:
        """Whether more parts would be more precise."""
        return any(part.error > 0 for part in self.parts)

    def prove(self, value: Fraction) -> Fraction | None:
        """Cost of the best tree below ``value``, including penalties; None if there is none."""
        if not self.may_be_below(value):
            return None
        if self.is_rounded:
            self.cut(_MOST_PARTS)
            if not self.may_be_below(value):
                return None
        return self.below(*self.every, self.limits.leaves, value)

    def may_be_below(self, value: Fraction) -> bool:
        """Whether the bounds allow a tree whose cost with penalties is below a value."""
        return any(one < value for one in self.with_fees(self.all()).tolist())

    def with_fees(self, least: Floats) -> Floats:
        """Bounds by the number of leaves, with the penalty of each leaf."""
        # A smaller fee keeps the bounds valid, and this one keeps them finite.
        fees = float(min(self.fee, _MOST_FEE)) * np.arange(len(least))
        known = np.isfinite(least)
        rounding = ROUNDING * (np.abs(least, where=known, out=np.zeros(len(least))) + fees)
        return np.asarray(least + fees - rounding)

    def found(self, rows: Bools, depth: int, asked: tuple[int, ...]) -> Floats:
        """Lower bounds on the costs, by the number of leaves; infinite if there is no tree."""
        most = min(self.limits.leaves, 2 ** min(depth, 30), max(1, int(rows.sum())))
        if depth <= 2 or most == 1:
            return self.pairs(rows, depth, asked, most)
        least = np.full(most + 1, math.inf)
        least[1] = self.pairs(rows, 0, asked, 1)[1]
        self.split(least, rows, depth, asked, self.price(rows, asked))
        return least

    def pairs(self, rows: Bools, depth: int, asked: tuple[int, ...], most: int) -> Floats:
        """Trees of depth at most two, from the sums of all cells."""
        places = np.flatnonzero(rows)
        values, yes = self.channels[:, places], self.yes[places]
        n = len(places)
        least = np.full(most + 1, math.inf)
        whole = values.sum(axis=1)
        least[1] = self.costs(whole[:, None], n)[0]
        if depth == 0 or most == 1:
            return least
        ones = values @ yes
        price = self.price(rows, asked)
        one, none = self.costs(ones, n), self.costs(whole[:, None] - ones, n)
        least[2] = (one + none + price).min(initial=math.inf)
        if depth == 1 or most == 2:
            return least
        both = np.matmul(yes.T * values[:, None, :], yes)
        mixed = ones[:, :, None] - both
        neither = whole[:, None, None] - ones[:, None, :] - mixed
        differ = self.costs(mixed, n)
        left = self.costs(both, n) + differ
        right = differ.T + self.costs(neither, n)
        if self.prices is not None:
            for feature in range(self.n_features):
                side, below = self.answers[:, feature], (*asked, feature)
                left[feature] += self.price(rows & side, below)
                right[feature] += self.price(rows & ~side, below)
        left, right = left.min(axis=1), right.min(axis=1)
        if most >= 3:
            either = np.minimum(left + none, one + right) + price
            least[3] = either.min(initial=math.inf)
        if most >= 4:
            least[4] = (left + right + price).min(initial=math.inf)
        return least

    def costs(self, sums: Floats, n: int) -> Floats:
        """Lower bound on the costs of groups of n rows; infinite if they cannot be a leaf."""
        found, at = [], 0
        for part in self.parts:
            scales = part.scales
            parts = (sums[at + k] * scale for k, scale in enumerate(scales))
            found.append(sum(parts, np.zeros(sums.shape[1:])))
            at += len(scales)
        costs = self.statement.least(found, [part.error * n for part in self.parts])
        for (_, fewest), counts in zip(self.fewest, sums[at:], strict=True):
            costs = np.where(counts >= fewest, costs, np.inf)
        return costs

    def price(self, rows: Bools, asked: tuple[int, ...]) -> Any:
        """Lower bound on the cost of each feature for these rows, below other splits."""
        if self.prices is None:
            return np.zeros(self.n_features)
        sums = np.array([float(self.statistics[-1].sum(rows))])
        return self.statement.split_costs(sums, asked, self.n_features) * (1 - ROUNDING)

    def leaf(self, rows: Bools) -> Any:
        """Cost of some rows as one leaf in fractions; None if they cannot be a leaf."""
        own = np.packbits(rows).tobytes()
        if own not in self.leaves:
            self.n_exact += 1
            if self.n_exact > _MOST_EXACT:
                raise TooManyTies
            cost = None
            if self.are_large(self.counts[rows].sum(axis=0)):
                sums = sums_of(self.statistics, rows[np.newaxis])
                cost = min(self.statement.candidates(sums)[0, :, 0].tolist()) + self.fee
            self.leaves[own] = cost
        return self.leaves[own]

    def below(self, rows: Bools, depth: int, asked: tuple[int, ...], most: int, value: Any) -> Any:
        """Cost of the best tree of these rows below a value, summed in fractions."""
        best, alone = value, self.leaf(rows)
        if alone is not None and alone < best:
            best = alone
        if depth > 0 and most > 1:
            best = self._split(rows, depth, asked, most, best)
        return best if best < value else None

    def _split(self, rows: Bools, depth: int, asked: tuple[int, ...], most: int, best: Any) -> Any:
        sums = np.array([self.statistics[-1].sum(rows)], dtype=object)
        prices = fractions(self.statement.split_costs(sums, asked, self.n_features))
        todo = []
        for feature, *sides in self.divided(rows):
            lows = []
            for side in sides:
                least = self.of(side, depth - 1, (*asked, feature))
                # Bounds for at most this many leaves.
                lows.append(np.minimum.accumulate(self.with_fees(least)))
            low = lows[0][-1] + lows[1][-1]
            low += float(prices[feature]) - ROUNDING * (abs(low) + float(prices[feature]))
            if low < best:
                todo.append((low, feature, lows))
        for low, feature, (_, right) in sorted(todo, key=lambda one: one[:2]):
            if low >= best:
                break
            yes, below = rows & self.answers[:, feature], (*asked, feature)
            sizes = range(1, most) if most < 2**depth else [2 ** (depth - 1)]
            for n_left in sizes:
                n_right = most - n_left if most < 2**depth else n_left
                lowest = right[min(n_right, len(right) - 1)]
                most_left = math.inf
                if lowest > -math.inf:
                    most_left = best - prices[feature] - Fraction(min(lowest, sys.float_info.max))
                one = self.below(yes, depth - 1, below, n_left, most_left)
                if one is None:
                    continue
                rest = best - prices[feature] - one
                other = self.below(rows & ~yes, depth - 1, below, n_right, rest)
                if other is not None:
                    best = one + other + prices[feature]
        return best
