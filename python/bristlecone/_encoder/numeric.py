"""Complete numeric columns without changes, for trees that choose their own thresholds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._encoder.columns import CategoricalColumn, Column
from bristlecone._encoder.records import NumericRecord
from bristlecone._encoder.schema import ColumnSchema, describe
from bristlecone._encoder.table import read_table
from bristlecone._types import Floats

_READER = "encoder=None"


class NumericColumns:
    """Encoder that does not change numbers.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : array of str, shape (n_features_in_,)
        Their names; only when ``X`` had names.
    constant_features_in_ : list of str
        Names of columns with a single value.
    columns_ : list of ColumnSchema
        The columns as they were in ``fit``.
    """

    def fit(self, X: Any) -> NumericColumns:
        """Remember the columns.

        Raises
        ------
        ValueError, TypeError
            For a column that is not numeric or not complete (column and row are named), and for
            anything that is not a table of columns with distinct names.
        """
        table = read_table(X, _READER)
        columns = table.columns
        values = _matrix(dict(enumerate(columns)), table.n_rows, len(columns))
        constant = values.min(axis=0) == values.max(axis=0)
        names = [column.name for column in columns]
        self.constant_features_in_ = [names[place] for place in np.flatnonzero(constant)]
        self._remember([describe(column) for column in columns], table.named)
        return self

    def transform(self, X: Any) -> Floats:
        """Numbers of every row, shape (n, n_features_in_); columns are found by name.

        Raises
        ------
        ValueError, TypeError
            As in ``fit``, and for missing columns.
        """
        return self._evaluate(X, range(self.n_features_in_), "the tree")

    def _evaluate(self, X: Any, asked: Sequence[int], reader: str) -> Floats:
        """As ``transform`` for the columns at these positions; the others are 0.

        Messages name the ``reader``.
        """
        table = read_table(X, reader, empty=True)
        named = hasattr(self, "feature_names_in_")
        names = [column.name for column in self.columns_]
        needed = [names[position] for position in asked]
        columns = table.aligned(names, named, reader, needed)
        placed = dict(zip(asked, columns.values(), strict=True))
        return _matrix(placed, table.n_rows, self.n_features_in_)

    def get_feature_names_out(self) -> NDArray[np.object_]:
        """Names of the columns; x0, x1, ... when ``X`` had no names."""
        return np.array([column.name for column in self.columns_], dtype=object)

    def _to_record(self) -> NumericRecord:
        """The columns in the form of a model file."""
        return NumericRecord(
            columns=self.columns_,
            named=hasattr(self, "feature_names_in_"),
            constant=self.constant_features_in_,
        )

    @classmethod
    def _from_record(cls, record: NumericRecord) -> NumericColumns:
        """Columns from ``_to_record``; ModelFormatError describes what is wrong."""
        record.check()
        columns = cls()
        columns._remember(record.columns, record.named)
        columns.constant_features_in_ = record.constant
        return columns

    def _remember(self, columns: list[ColumnSchema], named: bool) -> None:
        self.columns_ = columns
        self.n_features_in_ = len(columns)
        if named:
            self.feature_names_in_ = self.get_feature_names_out()


def _matrix(columns: Mapping[int, Column], n_rows: int, width: int) -> Floats:
    """The columns at their positions, column-major; all must be complete numbers."""
    matrix = np.zeros((n_rows, width), order="F")
    for position, column in columns.items():
        if isinstance(column, CategoricalColumn):
            row, level = column.first_text()
            raise TypeError(
                f"column {column.name!r} contains {level!r} in row {row}; {_READER} accepts only "
                "numbers (encoder='auto' also accepts categories)"
            )
        if column.missing is not None:
            row = int(np.argmax(column.missing))
            raise ValueError(
                f"column {column.name!r} is missing in row {row}; {_READER} accepts only complete "
                "columns (encoder='auto' also accepts missing values)"
            )
        matrix[:, position] = column.values
    return matrix
