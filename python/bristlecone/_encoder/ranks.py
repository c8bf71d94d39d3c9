"""Training columns as ranks: binary features of their rows, and trees over every threshold."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bristlecone._core import BinaryMatrix
from bristlecone._encoder.columns import BinnedColumn, EncodedColumn, RankedColumn
from bristlecone._encoder.features import Feature, Threshold
from bristlecone._encoder.schema import ColumnSchema
from bristlecone._encoder.thresholds import ranks_with_fill
from bristlecone._types import Bools, Floats

Questions = tuple[list[int], list[int]]
"""Column and gap of every feature."""


class RankedColumns(NamedTuple):
    """Training columns as ranks, for trees over every threshold.

    A numeric column is one column of ranks; every other feature of the encoder is a separate
    column.

    Attributes
    ----------
    columns : list of str
        Names of the columns of ``X``.
    places : list of int, length k
        Which of them each comes from.
    values : list of float64 ndarray or None, length k
        The distinct observed values of a numeric column, or, once they are chosen, its thresholds,
        ascending.
    ranks : list of uint32, uint8 or bool ndarray of shape (n,), length k
        Place of each row's value among them; rows without one are with those that every cut puts
        on the side of what stands for a missing value, so that they place no cut. Of another
        feature, whether it holds.
    n_rows : int
        n, where there are no columns, too.
    """

    columns: list[str]
    places: list[int]
    values: list[Floats | None]
    ranks: list[NDArray[np.uint32] | NDArray[np.uint8] | Bools]
    n_rows: int

    @property
    def names(self) -> list[str]:
        """Name of the column of ``X`` that each comes from."""
        return [self.columns[place] for place in self.places]

    @classmethod
    def of(
        cls,
        columns: Sequence[EncodedColumn],
        schemas: Sequence[ColumnSchema],
        features: Sequence[Feature],
        n_rows: int,
    ) -> RankedColumns:
        """Columns of ``n_rows`` rows, with their schemas, for these features."""
        others: dict[str, list[Feature]] = defaultdict(list)
        for feature in features:
            if not isinstance(feature, Threshold):
                others[feature.column].append(feature)
        found: list[tuple[int, Floats | None, Any]] = []
        for place, (column, schema) in enumerate(zip(columns, schemas, strict=True)):
            if isinstance(column, RankedColumn) and len(column.distinct) > 1:
                found.append((place, column.distinct, ranks_with_fill(column, schema.fill)))
            elif isinstance(column, BinnedColumn) and len(column.cuts):
                found.append((place, column.cuts, column.ranks))
            for feature in others[schema.name]:
                found.append((place, None, feature.evaluate(column)))
        return cls(
            columns=[schema.name for schema in schemas],
            places=[place for place, _, _ in found],
            values=[values for _, values, _ in found],
            ranks=[ranks for _, _, ranks in found],
            n_rows=n_rows,
        )

    def questions(self, features: Sequence[Feature]) -> Questions:
        """Column and gap of every feature: true if the rank is at most the gap, or the answer."""
        others = iter([k for k, values in enumerate(self.values) if values is None])
        cut = {n: k for k, n in enumerate(self.names) if self.values[k] is not None}
        place: list[int] = []
        gap: list[int] = []
        for name, group in groupby(features, attrgetter("column")):
            own = list(group)
            cuts = [feature.value for feature in own if isinstance(feature, Threshold)]
            if cuts:
                values: Any = self.values[cut[name]]
                place += [cut[name]] * len(cuts)
                gap += (values.searchsorted(cuts, side="right") - 1).tolist()
            for _ in own[len(cuts) :]:
                place.append(next(others))
                gap.append(0)
        return place, gap

    def features(self, questions: Questions) -> BinaryMatrix:
        """Binary features of the rows."""
        return BinaryMatrix.of_ranks(self.ranks, *questions, self.n_rows)


class Encoded(NamedTuple):
    """Training rows: their columns as ranks, the question of every feature, and the answers."""

    columns: RankedColumns
    questions: Questions
    features: BinaryMatrix
