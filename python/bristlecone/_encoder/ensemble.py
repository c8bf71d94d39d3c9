"""Thresholds of numeric columns from boosted trees that are fitted to the outcome.

After McTavish et al., "Fast sparse decision tree optimization via reference ensembles" (AAAI 2022),
with trees of one split that minimise the squared error of all numbers of a row
(docs/decisions/0021-guessed-thresholds.md).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bristlecone._encoder.features import ROUNDING
from bristlecone._types import Floats, Integers

Place = tuple[int, int]

_ROUNDS, _RATE = 40, 0.1


class _Rows(NamedTuple):
    """Ranks (n,) of every column, scores (k, n) of mean 0 and weights (n,) of distinct rows."""

    ranks: list[Integers]
    scores: Floats
    weight: Floats


def guess_gaps(
    ranks: Sequence[Integers],
    n_gaps: Sequence[int],
    scores: Floats,
    weight: Floats | None,
    *,
    most: int,
    min_support: float,
) -> list[Integers]:
    """Gaps between the values of each column at which boosted trees cut it, ascending.

    Parameters
    ----------
    ranks : sequence of p int ndarrays of shape (n,)
        Every row's place among the distinct values of a column.
    n_gaps : sequence of p int
        How many gaps there are to choose from in a column, from the first one on; none where 0.
    scores : array of float, shape (n, k)
        Targets of the boosting.
    weight : array of float, shape (n,), or None
        Positive weights; whole ones count as repeated rows, to the last bit.
    most : int
        Largest number of gaps per column.
    min_support : float
        Least share of the weight in every leaf of the trees.

    Returns
    -------
    list of p int ndarrays
        They do not depend on the order of the rows.
    """
    rows = _distinct_rows(ranks, scores, weight)
    by_column: list[list[int]] = [[] for _ in n_gaps]
    if rows.scores.any():
        gains = _gains(rows, min_support)
        own = {place: gain for place, gain in gains.items() if place[1] < n_gaps[place[0]]}
        for column, gap in _most_important(own, most):
            by_column[column].append(gap)
    return [np.array(sorted(gaps), dtype=np.int64) for gaps in by_column]


def _distinct_rows(ranks: Sequence[Integers], scores: Floats, weight: Floats | None) -> _Rows:
    """Equal rows merged into one with the sum of their weights, sorted."""
    weight = np.ones(len(scores)) if weight is None else weight
    columns = [*ranks, *scores.T]
    order = np.lexsort((weight, *columns))
    new = np.zeros(len(order), dtype=bool)
    new[0] = True
    for column in columns:
        new[1:] |= column[order[1:]] != column[order[:-1]]
    start = np.flatnonzero(new)
    total, kept = np.add.reduceat(weight[order], start), order[start]
    total = total / total.mean()
    own = scores[kept] - scores[kept[0]]
    own -= np.average(own, axis=0, weights=total)
    largest = np.abs(own).max(initial=0.0)
    own = own.T / largest if largest > 0 else own.T
    return _Rows([column[kept] for column in ranks], own, total)


def _gains(rows: _Rows, min_support: float) -> dict[Place, float]:
    """Total reduction of the squared error by every cut (column, gap) in boosting with stumps."""
    weight, residual = rows.weight, rows.scores
    total = weight.sum()
    least = (min_support - ROUNDING) * total
    # The sums of the residuals are 0, so a cut reduces the error by sum² / below + sum² / above,
    # where sum is that of the residuals below, and below and above are the weights.
    below = [np.bincount(ranks, weight).cumsum()[:-1] for ranks in rows.ranks]
    factor = [
        np.where((low >= least) & (total - low >= least), total / (low * (total - low)), 0.0)
        for low in below
    ]
    gains: dict[Place, float] = defaultdict(float)
    for _ in range(_ROUNDS):
        weighted = weight * residual
        best, cut = 0.0, None
        for column, ranks in enumerate(rows.ranks):
            if not factor[column].any():
                continue
            sums = np.stack([np.bincount(ranks, own).cumsum()[:-1] for own in weighted])
            gain = factor[column] * (sums * sums).sum(axis=0)
            gap = int(gain.argmax())
            if gain[gap] > best:
                best, cut = float(gain[gap]), (column, gap, sums[:, gap, None])
        if cut is None:
            break
        column, gap, sums = cut
        gains[column, gap] += best
        low = below[column][gap]
        step = np.where(rows.ranks[column] <= gap, sums / low, -sums / (total - low))
        residual = residual - _RATE * step
    return gains


def _most_important(gains: dict[Place, float], most: int) -> list[Place]:
    """Cuts in order of decreasing importance, at most ``most`` per column."""
    turn: Counter[int] = Counter()
    chosen = []
    for place in sorted(gains, key=lambda place: (-gains[place], place)):
        turn[place[0]] += 1
        if turn[place[0]] <= most:
            chosen.append(place)
    return chosen
