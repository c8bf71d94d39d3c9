"""``DesignEncoder``: columns as numbers between 0 and 1, for linear predictors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from bristlecone._data.records import plain
from bristlecone._encoder.columns import CategoricalColumn, Column, NumericColumn
from bristlecone._encoder.design_columns import DesignColumn
from bristlecone._encoder.doubts import rounded_integers
from bristlecone._encoder.features import Level, Missing, Other, with_distinct_names
from bristlecone._encoder.levels import level_features
from bristlecone._encoder.records import DesignRecord
from bristlecone._encoder.schema import ColumnSchema, conform, describe
from bristlecone._encoder.table import read_table
from bristlecone._encoder.thresholds import weighted_distinct, weighted_mean
from bristlecone._log import warn
from bristlecone._types import Bools, Floats
from bristlecone.exceptions import ColumnWarning

_READER = "SoftSurvivalTree"


class DesignEncoder:
    """Numeric design of a table: scaled numbers, one column per level of a category.

    Missing numbers are replaced by the mean, and missing flags by the more frequent value; a
    missing category is a separate level. Levels beyond the ``max_categories`` most frequent are
    merged into "other". Constant columns, and columns that equal an earlier one or its complement,
    are left out. ``BinaryEncoder`` does the same, apart from its thresholds.
    """

    columns_: list[ColumnSchema]
    design_: list[DesignColumn]
    constant_: list[str]
    named_: bool

    def __init__(self, max_categories: int | None = 100, handle_unknown: str = "ignore") -> None:
        self.max_categories = max_categories
        self.handle_unknown = handle_unknown

    def fit(self, X: Any, weight: Floats | None) -> DesignEncoder:
        """Choose the design columns from rows of positive weight."""
        table = read_table(X, _READER)
        columns = table.columns
        self.named_ = table.named
        self.design_, self.constant_ = [], []
        seen: set[bytes] = set()
        fill: dict[str, float] = {}
        for column in columns:
            if isinstance(column, NumericColumn) and column.rounded:
                warn(rounded_integers(column.name), ColumnWarning)
            varies = False
            for design in self._candidates(column, weight):
                values = design.evaluate(column)
                if (values == values[0]).all():
                    continue
                varies = True
                if design.question is None:
                    fill[column.name] = design.fill
                # Equal for a 0/1 column and its complement.
                key = values if set(np.unique(values)) - {0.0, 1.0} else np.abs(values - values[0])
                if key.tobytes() not in seen:
                    seen.add(key.tobytes())
                    self.design_.append(design)
            if not varies:
                self.constant_.append(column.name)
        self.design_ = _with_unique_names(self.design_)
        self.columns_ = [describe(column, fill.get(column.name)) for column in columns]
        return self

    def transform(self, X: Any, weighed: Bools | None = None) -> Floats:
        """Design of the rows, shape (n, n_design), C-contiguous.

        Only the ``weighed`` columns of the design (all by default) are computed, and only the
        columns of ``X`` that they need are read; the other columns are 0.

        Raises
        ------
        ValueError, TypeError
            As ``BinaryEncoder.transform``: column and row are named.
        """
        table = read_table(X, _READER, empty=True)
        parts = [(j, part) for j, part in enumerate(self.design_) if weighed is None or weighed[j]]
        needed = dict.fromkeys(part.column for _, part in parts)
        columns = conform(table, self.columns_, self.named_, self.handle_unknown, _READER, needed)
        design = np.zeros((table.n_rows, len(self.design_)))
        for j, part in parts:
            design[:, j] = part.evaluate(columns[part.column])
        return design

    @property
    def n_features_in_(self) -> int:
        """Number of columns of ``X``."""
        return len(self.columns_)

    @property
    def feature_names_in_(self) -> NDArray[np.object_]:
        """Names of these columns, if they had names."""
        if not self.named_:
            raise AttributeError("the columns of X had no names")
        return np.array([schema.name for schema in self.columns_], dtype=object)

    @property
    def names(self) -> list[str]:
        """Names of the design columns."""
        return [column.name for column in self.design_]

    @property
    def zero(self) -> Floats:
        """Values of the design for the user's 0, shape (n_design,)."""
        return np.array([float(column.scaled(0.0)) for column in self.design_])

    @property
    def span(self) -> Floats:
        """Length of the design's unit in the user's unit, shape (n_design,)."""
        return np.array([column.high - column.low for column in self.design_])

    def per_unit(self, weights: Floats) -> Floats:
        """Weights over the design, shape (..., n_design), as weights of the user's numbers.

        Infinite if a column's span is too small for float64.
        """
        with np.errstate(over="ignore"):
            return weights / self.span

    def _candidates(self, column: Column, weight: Floats | None) -> Iterator[DesignColumn]:
        if column.missing is not None and column.missing.all():
            return
        if isinstance(column, CategoricalColumn):
            for question in self._questions(column, weight):
                yield DesignColumn(
                    column=column.name, question=question, low=0.0, high=1.0, fill=0.0
                )
            return
        shown = slice(None) if column.missing is None else ~column.missing
        values = column.values[shown].astype(np.float64)
        distinct, total = weighted_distinct(values, None if weight is None else weight[shown])
        if distinct[0] == distinct[-1]:
            return
        if column.is_flag:
            low, high, fill = 0.0, 1.0, float(total[-1] > total[0])
        else:
            low, high, fill = distinct[0], distinct[-1], weighted_mean(distinct, total)
        yield DesignColumn(
            column=column.name, question=None, low=float(low), high=float(high), fill=fill
        )

    def _questions(
        self, column: CategoricalColumn, weight: Floats | None
    ) -> Iterator[Level | Other | Missing]:
        shown = column.codes >= 0
        code, total = weighted_distinct(
            column.codes[shown], None if weight is None else weight[shown]
        )
        yield from level_features(column, code, total, self.max_categories)
        if not shown.all():
            yield Missing(column=column.name, condition="is missing")

    def _to_record(self) -> DesignRecord:
        """The fitted encoder in the form of a model file."""
        return DesignRecord(
            **plain({"max_categories": self.max_categories}),
            handle_unknown=self.handle_unknown,
            named=self.named_,
            columns=self.columns_,
            constant=list(self.constant_),
            design=self.design_,
        )

    @classmethod
    def _from_record(cls, record: DesignRecord) -> DesignEncoder:
        """Fitted encoder from ``_to_record``; ModelFormatError describes what is wrong."""
        record.check()
        encoder = cls(record.max_categories, record.handle_unknown)
        encoder.named_ = record.named
        encoder.columns_ = record.columns
        encoder.constant_ = record.constant
        encoder.design_ = record.design
        return encoder


def _with_unique_names(design: list[DesignColumn]) -> list[DesignColumn]:
    """The same columns, renamed if two would have the same name."""
    numbers = [one.name for one in design if one.question is None]
    asked = [one.question for one in design if one.question is not None]
    questions: Iterator[Any] = iter(with_distinct_names(asked, numbers))
    return [
        one if one.question is None else replace(one, question=next(questions)) for one in design
    ]
