"""Columns as ranks for a search over every threshold, and the thresholds that it finds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._core import BinaryMatrix
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.columns import EncodedColumn, RankedColumn
from bristlecone._encoder.features import ROUNDING, Feature, Threshold
from bristlecone._encoder.ranks import RankedColumns
from bristlecone._encoder.rules import question_names
from bristlecone._encoder.thresholds import midway, threshold
from bristlecone._types import Bools, Floats, Integers


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
        self._number()
        self.n_side = min(sides, default=1)

    @classmethod
    def again(
        cls, encoder: BinaryEncoder, X: Any, weight: Floats | None, min_support: float
    ) -> tuple[BinaryEncoder, RankedFeatures]:
        """The encoder of a fit without its thresholds, and all thresholds of the rows of the fit.

        Levels, flags and missing values are encoded as in the fit.
        """
        features = [one for one in encoder.features_ if not isinstance(one, Threshold)]
        used = {feature.column for feature in features}
        schemas = [one for one in encoder.columns_ if one.kind == "number" or one.name in used]
        n_rows, found = encoder._columns_of(X, (schema.name for schema in schemas))
        columns: list[EncodedColumn] = []
        for schema in schemas:
            column: Any = found[schema.name]
            columns.append(RankedColumn.of(column) if schema.kind == "number" else column)
        ranked = RankedColumns.of(columns, schemas, features, n_rows)
        unsettled = copy(encoder)
        unsettled._replace_features(features, awaits_search=True)
        return unsettled, cls(ranked, weight, min_support)

    def _number(self) -> None:
        """Number the questions, column by column."""
        most = self.ranks.max(axis=1, initial=0).astype(np.int64)
        self._first = np.append(0, np.cumsum(most))
        self.shape = self._columns.n_rows, int(self._first[-1])

    def __len__(self) -> int:
        return self.shape[0]

    def count_distinct(self, most: int) -> int:
        """Number of distinct rows, or ``most`` if there are that many or more."""
        if not len(self.ranks):
            return min(1, most)
        return min(len(np.unique(self.ranks, axis=1).T), most)

    def take(self, rows: Integers) -> RankedFeatures:
        """Features of these rows; thresholds above all their values have no question."""
        taken = copy(self)
        ranks = [of_column[rows] for of_column in self._columns.ranks]
        taken._columns = self._columns._replace(ranks=ranks, n_rows=len(rows))
        taken.ranks = np.ascontiguousarray(self.ranks[:, rows])
        taken._number()
        return taken

    def written(self) -> BinaryMatrix:
        """All questions as binary features; MemoryError if there is no room for them."""
        column = np.repeat(np.arange(len(self.ranks)), np.diff(self._first))
        rank = np.arange(self.shape[1]) - self._first[column]
        questions = column.tolist(), rank.tolist()
        try:
            return BinaryMatrix.of_ranks(list(self.ranks), *questions, self.shape[0])
        except MemoryError as error:
            raise MemoryError(
                f"{error} for a binary feature of each of {self.shape[1]:,} thresholds"
            ) from None

    def questions_of(self, features: Sequence[Feature]) -> Integers:
        """A question for each feature of a settled tree, with the same answers in its nodes."""
        column, gap = (np.array(of, dtype=np.int64) for of in self._columns.questions(features))
        rank = np.clip(gap - self._offset[column], 0, np.diff(self._first)[column] - 1)
        return self._first[column] + rank

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
        feature_of = question.copy()
        for node, (column, cut) in asked.items():
            if cut is None:
                feature_of[node] = plain[self._place_of_plain(column)]
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
            column, yes, cut = self._cut(int(question[node]), rows)
            asked[node] = column, cut
            waiting += [(int(left[node]), rows[yes]), (int(right[node]), rows[~yes])]
        return asked

    def _cut(
        self, question: int, rows: Integers
    ) -> tuple[int, Bools, tuple[str, float, float, float] | None]:
        """Column of a question, its answers for these rows, and its threshold as in ``_asked``."""
        column = int(np.searchsorted(self._first, question, side="right")) - 1
        gap = int(question - self._first[column] + self._offset[column])
        values, ranks = self._columns.values[column], self._columns.ranks[column][rows]
        if values is None:
            return column, ranks.astype(bool), None
        yes = ranks <= gap
        low, above = int(ranks[yes].max()), ranks[~yes]
        above = above[above < len(values)]
        high = int(above.min()) if len(above) else gap + 1
        ends = float(values[low]), float(values[high])
        return column, yes, (self._columns.names[column], float(midway(*ends)), *ends)

    def text(self, encoder: BinaryEncoder, question: int, rows: Integers) -> str:
        """The feature that a split of these rows by a question would have, in words."""
        column, _, cut = self._cut(question, rows)
        if cut is None:
            feature = encoder.features_[self._place_of_plain(column)]
        else:
            fills = {schema.name: schema.fill for schema in encoder.columns_}
            feature = threshold(*cut, fills[cut[0]])
        alone = copy(encoder)
        alone._replace_features([feature])
        return question_names(alone)[0]

    def _place_of_plain(self, column: int) -> int:
        """Place of a feature that is no threshold among all such features of the encoder."""
        return sum(self._columns.values[k] is None for k in range(column))
