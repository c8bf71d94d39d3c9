"""Thresholds that a greedy tree chose, as features of a fitted encoder."""

from __future__ import annotations

import math
from bisect import insort
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.features import Feature, sides
from bristlecone._encoder.ranks import Questions, RankedColumns
from bristlecone._encoder.thresholds import midway, threshold
from bristlecone._types import Bools, Integers

# Largest number of cuts that are added before others are replaced: this number, or one per that
# many features. A search to depth five takes about two and a half times as long with a fifth more
# features.
_LEAST_ROOM, _SHARE = 8, 5


class Cut(NamedTuple):
    """A split of a node into its rows of rank ``below`` or less, and those of ``above`` or more.

    ``column`` is a position in the RankedColumns. The node has no rows with a rank in between.
    """

    column: int
    below: int
    above: int


def add_cuts(
    encoder: BinaryEncoder,
    columns: RankedColumns,
    questions: Questions,
    holds: Integers,
    cuts: Iterable[Cut],
) -> Questions | None:
    """Give the encoder features that split the rows of every node in the same way as its cut.

    ``questions`` are those of its previous features, and ``holds`` their numbers of true rows.
    Returns the questions of its new features, or None if there is no new one.

    The first cuts are added: eight, or a fifth of the previous features. Every further cut replaces
    the nearest threshold of its column (by the number of rows in between), unless another cut needs
    that threshold; then the cut is added, too. A cut that divides the training rows in the same way
    as an existing feature is not added. ``min_support`` does not apply.
    """
    chosen = _Thresholds(columns, questions, holds)
    room = max(_LEAST_ROOM, len(encoder.features_) // _SHARE)
    waiting = [cut for cut in cuts if not chosen.has(cut)]
    for cut in waiting:
        if not chosen.has(cut):
            chosen.put(cut, replaces=len(chosen.added) >= room)
    if not waiting:
        return None
    fills = {schema.name: schema.fill for schema in encoder.columns_}
    kept, names = chosen.kept(), columns.names
    # The features with their questions.
    asked = zip(encoder.features_, *questions, strict=True)
    every: list[tuple[Feature, int, int]]
    every = [one for index, one in enumerate(asked) if index in kept]
    # Further features of numbers come after their thresholds.
    place = {name: place for place, name in enumerate(fills)}

    def order(one: tuple[Feature, int, int]) -> tuple[int, float]:
        return place[one[0].column], getattr(one[0], "value", math.inf)

    for column, gap in chosen.added:
        name, values = names[column], columns.values[column]
        assert values is not None
        ends = float(values[gap]), float(values[gap + 1])
        value = float(midway(*ends))
        insort(every, (threshold(name, value, *ends, fills[name]), column, gap), key=order)
    features, places, gaps = (list(of) for of in zip(*every, strict=True))
    encoder._replace_features(features)
    return places, gaps


class _Thresholds:
    """Features as gaps between the ranks of a column, and how they change."""

    def __init__(
        self,
        columns: RankedColumns,
        questions: Questions,
        holds: Integers,
    ) -> None:
        self._columns = columns
        self.added: list[tuple[int, int]] = []
        self._needed: set[tuple[int, int]] = set()
        # Feature at every gap of a column; -1 for one that was added.
        self._at: dict[int, dict[int, int]] = defaultdict(dict)
        # Positions of the features by their number of rows on the smaller side.
        self._of_size: dict[int, list[tuple[int, int]]] = defaultdict(list)
        smaller = np.minimum(holds, columns.n_rows - holds).tolist()
        for index, place in enumerate(zip(*questions, strict=True)):
            self._at[place[0]][place[1]] = index
            self._of_size[smaller[index]].append(place)

    def has(self, cut: Cut) -> bool:
        """Whether a feature already splits the rows of the node in this way; it is then needed."""
        inside = [gap for gap in self._at[cut.column] if cut.below <= gap < cut.above]
        middle = self._middle(cut)
        if inside:
            self._needed.add((cut.column, min(inside, key=lambda gap: abs(gap - middle))))
            return True
        own = self._side(cut.column, middle)
        for place in self._of_size[_smaller(own)]:
            if np.array_equal(own, self._side(*place)):
                self._needed.add(place)
                return True
        return False

    def put(self, cut: Cut, replaces: bool) -> None:
        """Add a feature for the cut, or let it replace another one if possible."""
        gap = self._middle(cut)
        upto = np.cumsum(np.bincount(self._columns.ranks[cut.column]))
        own = self._at[cut.column]
        nearest = min(own, key=lambda other: abs(int(upto[other]) - int(upto[gap])), default=None)
        if replaces and nearest is not None and (cut.column, nearest) not in self._needed:
            del own[nearest]
            size = _smaller(self._side(cut.column, nearest))
            self._of_size[size].remove((cut.column, nearest))
        place = cut.column, gap
        self.added.append(place)
        self._needed.add(place)
        own[gap] = -1
        self._of_size[_smaller(self._side(*place))].append(place)

    def kept(self) -> set[int]:
        """Positions of the features that were not replaced."""
        return {index for own in self._at.values() for index in own.values()}

    def _middle(self, cut: Cut) -> int:
        """The gap midway between the values of the node on both sides of the cut."""
        values = self._columns.values[cut.column]
        if values is None:
            return 0
        middle = values[cut.below] / 2 + values[cut.above] / 2
        gap = int(np.searchsorted(values, middle, side="right")) - 1
        return min(max(gap, cut.below), cut.above - 1)

    def _side(self, column: int, gap: int) -> Bools:
        """The rows on one side, which are the same for a feature and its complement."""
        return sides(self._columns.ranks[column] <= gap)


def _smaller(side: Bools) -> int:
    """Number of rows on the smaller side."""
    n_rows = int(np.count_nonzero(side))
    return min(n_rows, len(side) - n_rows)
