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
from numpy.typing import NDArray

from bristlecone._types import Floats, Integers

Place = tuple[int, int]

_ROUNDS, _DEPTH, _RATE = 40, 1, 0.1


class _Rows(NamedTuple):
    """Ranks (n, p), scores (n, k) of mean 0 and weights (n,) of distinct rows."""

    ranks: NDArray[np.float32]
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
    # Trees ignore splits whose gain is tiny in the unit of the scores.
    largest = np.abs(own).max(initial=0.0)
    matrix = np.column_stack([column[kept] for column in ranks]).astype(np.float32)
    return _Rows(matrix, own / largest if largest > 0 else own, total)


def _gains(rows: _Rows, min_support: float) -> dict[Place, float]:
    """Total reduction of the squared error by every cut (column, gap) in boosting."""
    # Imported here, because the import takes long and few encoders grow trees.
    from sklearn.tree import DecisionTreeRegressor

    residual = rows.scores
    gains: dict[Place, float] = defaultdict(float)
    for _ in range(_ROUNDS):
        tree = DecisionTreeRegressor(
            max_depth=_DEPTH, min_weight_fraction_leaf=min_support, random_state=0
        ).fit(rows.ranks, residual, sample_weight=rows.weight)
        residual = residual - _RATE * tree.predict(rows.ranks).reshape(residual.shape)
        nodes = tree.tree_
        error = nodes.weighted_n_node_samples * nodes.impurity
        split = np.flatnonzero(nodes.children_left >= 0)
        gain = error[split] - error[nodes.children_left[split]] - error[nodes.children_right[split]]
        gaps = np.floor(nodes.threshold[split]).astype(np.int64)
        for column, gap, amount in zip(nodes.feature[split], gaps, gain, strict=True):
            gains[int(column), int(gap)] += float(amount)
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
