"""Columns as ranks for a search over every threshold, and the thresholds that it finds."""

from __future__ import annotations

from collections import defaultdict
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.features import ROUNDING, Feature
from bristlecone._encoder.ranks import RankedColumns
from bristlecone._encoder.thresholds import midway, threshold
from bristlecone._types import Floats, Integers


def awaits_search(encoder: Any) -> bool:
    """Whether a fitted encoder leaves the thresholds of some columns to the search."""
    return isinstance(encoder, BinaryEncoder) and encoder._awaits_search


class RankedFeatures:
    """Features of a search over every threshold, which are never written out.

    Question r of a column is ``rank <= r``. Questions are numbered column by column.

    Parameters
    ----------
    columns : RankedColumns
    weight : float64 ndarray of shape (n,) or None
        Weights of the rows.
    min_support : float
        Thresholds with a smaller share of the weight on one side are left out.

    Attributes
    ----------
    ranks : uint32 ndarray of shape (k, n), C-contiguous
        Ranks by column, without the thresholds that are left out. A binary feature is a column of
        rank 0 where it is true and 1 elsewhere.
    shape : (int, int)
        Rows and questions.
    n_side : int
        Fewest rows on a side of any threshold.
    """

    def __init__(self, columns: RankedColumns, weight: Floats | None, min_support: float) -> None:
        self._columns = columns
        self.ranks = np.zeros((len(columns.ranks), columns.n_rows), dtype=np.uint32)
        # The threshold of question 0 of every column.
        self._offset = np.zeros(len(columns.ranks), dtype=np.int64)
        sides = []
        for k, (values, ranks) in enumerate(zip(columns.values, columns.ranks, strict=True)):
            if values is None:
                self.ranks[k] = ~ranks.astype(bool)
                continue
            # Rows without a value are above every threshold, like those of the largest value.
            place = np.minimum(ranks, np.uint32(len(values) - 1))
            below = np.cumsum(np.bincount(place, weight, len(values)))
            share = below[:-1] / below[-1]
            allowed = np.flatnonzero(np.minimum(share, 1 - share) >= min_support - ROUNDING)
            if not len(allowed):
                continue
            first, last = int(allowed[0]), int(allowed[-1])
            self._offset[k] = first
            self.ranks[k] = np.clip(place, first, last + 1) - np.uint32(first)
            rows = np.cumsum(np.bincount(place, minlength=len(values)))
            sides += [int(rows[first]), int(columns.n_rows - rows[last])]
        most = self.ranks.max(axis=1, initial=0).astype(np.int64)
        self._first = np.append(0, np.cumsum(most))
        self.shape = columns.n_rows, int(self._first[-1])
        self.n_side = min(sides, default=1)

    def __len__(self) -> int:
        return self.shape[0]

    def count_distinct(self, most: int) -> int:
        """Number of distinct rows, or ``most`` if there are that many or more."""
        if not len(self.ranks):
            return min(1, most)
        return min(len(np.unique(self.ranks, axis=1).T), most)

    def questions(self, column: Integers, below: NDArray[np.uint32]) -> Integers:
        """Question of every node, -2 at leaves; ranks of its column up to ``below`` go left."""
        split = column >= 0
        found = column.copy()
        found[split] = self._first[column[split]] + below[split]
        return found

    def settle(
        self, encoder: BinaryEncoder, left: Any, right: Any, question: Integers
    ) -> tuple[BinaryEncoder, Integers]:
        """The encoder with the thresholds of a tree, and the feature of every node.

        ``left``, ``right`` and ``question`` are the arrays of the tree in preorder. A threshold
        lies midway between the values that the rows of the node have on both sides.
        """
        asked = self._asked(left, right, question)
        # By column and threshold: the nearest values on both sides, over all nodes with this
        # threshold.
        cuts: dict[str, dict[float, tuple[float, float]]] = defaultdict(dict)
        for _, cut in asked.values():
            if cut is not None:
                name, value, low, high = cut
                known = cuts[name].get(value, (low, high))
                cuts[name][value] = max(low, known[0]), min(high, known[1])
        others = defaultdict(list)
        for feature in encoder.features_:
            others[feature.column].append(feature)
        features: list[Feature] = []
        place: dict[tuple[str, float], int] = {}
        plain: list[int] = []  # places of the features that are no thresholds
        for schema in encoder.columns_:
            for value, (low, high) in sorted(cuts[schema.name].items()):
                place[schema.name, value] = len(features)
                features.append(threshold(schema.name, value, low, high, schema.fill))
            for feature in others[schema.name]:
                plain.append(len(features))
                features.append(feature)
        chosen = copy(encoder)
        chosen._replace_features(features)
        chosen._awaits_search = False
        feature_of = question.copy()
        for node, (column, cut) in asked.items():
            if cut is None:
                number = sum(self._columns.values[k] is None for k in range(column))
                feature_of[node] = plain[number]
            else:
                feature_of[node] = place[cut[0], cut[1]]
        return chosen, feature_of

    def _asked(
        self, left: Any, right: Any, question: Integers
    ) -> dict[int, tuple[int, tuple[str, float, float, float] | None]]:
        """Column of every split, and the name, value and neighbours of its threshold."""
        asked: dict[int, tuple[int, tuple[str, float, float, float] | None]] = {}
        waiting = [(0, np.arange(len(self)))]
        while waiting:
            node, rows = waiting.pop()
            if question[node] < 0:
                continue
            column = int(np.searchsorted(self._first, question[node], side="right")) - 1
            gap = int(question[node] - self._first[column] + self._offset[column])
            values, ranks = self._columns.values[column], self._columns.ranks[column][rows]
            cut = None
            if values is None:
                yes = ranks.astype(bool)
            else:
                yes = ranks <= gap
                low, above = int(ranks[yes].max()), ranks[~yes]
                above = above[above < len(values)]
                high = int(above.min()) if len(above) else gap + 1
                ends = float(values[low]), float(values[high])
                cut = self._columns.names[column], float(midway(*ends)), *ends
            asked[node] = column, cut
            waiting += [(int(left[node]), rows[yes]), (int(right[node]), rows[~yes])]
        return asked
