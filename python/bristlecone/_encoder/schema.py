"""Summaries of training columns, and checks of new columns against them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from bristlecone._data.records import Count, Finite, Record
from bristlecone._encoder.columns import (
    CategoricalColumn,
    Category,
    Column,
    NumericColumn,
    RankedColumn,
    TrainingColumn,
)
from bristlecone._encoder.table import Table
from bristlecone._log import warn
from bristlecone.exceptions import BristleconeWarning


class ColumnSchema(Record, frozen=True, kw_only=True):
    """Summary of a column in ``fit``, and its record in a file.

    Attributes
    ----------
    name : str
    kind : {"flag", "number", "categorical", "empty"}
        "flag" for booleans and 0/1 integers, "empty" if every value was missing.
    n_missing : int
        Number of rows without a value.
    fill : bool, float or None
        Replacement for missing values; None if there is none.
    levels : tuple of str, bool, int or float
        Every level of a categorical column in sorted order, or in its own if it is ordered;
        otherwise empty.
    ordered : bool
        Whether the column is of an ordered categorical type.
    whole : bool
        Whether the column is of kind "number" and every value was a whole number.
    low, high : float or None
        Least and greatest value of a column of kind "number".
    """

    name: str
    kind: Literal["flag", "number", "categorical", "empty"]
    n_missing: Count
    fill: bool | Finite | None
    levels: tuple[Category, ...]
    ordered: bool
    whole: bool
    low: Finite | None
    high: Finite | None

    @property
    def has_missing(self) -> bool:
        """Whether the column had a row without a value."""
        return self.n_missing > 0

    @property
    def n_imputed(self) -> int:
        """Number of rows without a value that are replaced by ``fill``."""
        return 0 if self.fill is None else self.n_missing


def sort_key(level: Category) -> tuple[bool, Category]:
    """Order of levels: numbers by value, then text."""
    return isinstance(level, str), level


def describe(column: TrainingColumn, fill: float | None = None) -> ColumnSchema:
    """Schema of a training column in which ``fill`` replaces missing values."""
    missing = column.missing
    levels: tuple[Category, ...] = ()
    kind: Literal["flag", "number", "categorical", "empty"]
    ordered = whole = False
    low = high = None
    if missing is not None and missing.all():
        kind = "empty"
    elif isinstance(column, CategoricalColumn):
        kind, ordered = "categorical", column.ordered
        levels = column.levels if ordered else tuple(sorted(column.levels, key=sort_key))
    else:
        kind = "flag" if column.is_flag else "number"
        fill = bool(fill) if column.is_flag and fill is not None else fill
        if isinstance(column, RankedColumn):
            values = column.distinct
            low, high = float(values[0]), float(values[-1])
        elif kind == "number":
            values = column.values if missing is None else column.values[~missing]
            low, high = float(values.min()), float(values.max())
        if low is not None:
            whole = low.is_integer() and bool((values == np.floor(values)).all())
    return ColumnSchema(
        name=column.name,
        kind=kind,
        n_missing=0 if missing is None else int(np.count_nonzero(missing)),
        fill=fill,
        levels=levels,
        ordered=ordered,
        whole=whole,
        low=low,
        high=high,
    )


def conform(
    table: Table,
    schemas: Sequence[ColumnSchema],
    named: bool,
    handle_unknown: str,
    reader: str,
    needed: Iterable[str] | None = None,
) -> dict[str, Column]:
    """Columns of a new table by their names in ``fit``, in the form that their features expect.

    ``named`` says whether the names came from the input of ``fit``, ``reader`` what was fitted, and
    ``needed`` which columns to read (all by default); other columns may contain anything.

    Raises
    ------
    ValueError
        If a needed column is missing, for another number of columns without names and, with
        ``handle_unknown="error"``, for an unknown category; column and row are named.
    TypeError
        For text where training had numbers and the reverse.

    Warns
    -----
    BristleconeWarning
        If only one of the tables has names.
    """
    columns = table.aligned([schema.name for schema in schemas], named, reader, needed)
    if named != table.named:
        text = (
            f"X does not have valid feature names, but {reader} was fitted with feature names"
            if named
            else f"X has feature names, but {reader} was fitted without feature names"
        )
        warn(text, BristleconeWarning)
    return {
        schema.name: _conform_column(columns[schema.name], schema, handle_unknown)
        for schema in schemas
        if schema.name in columns
    }


def _conform_column(column: Column, schema: ColumnSchema, handle_unknown: str) -> Column:
    if schema.kind == "categorical":
        return _conform_levels(column, schema, handle_unknown)
    if isinstance(column, CategoricalColumn) and schema.kind != "empty":
        row, level = column.first_text()
        raise TypeError(
            f"column {schema.name!r} held numbers in training, but it holds the category {level!r} "
            f"in row {row}"
        )
    return column


def _conform_levels(column: Column, schema: ColumnSchema, handle_unknown: str) -> CategoricalColumn:
    if isinstance(column, NumericColumn):
        column = column.as_categorical()
    were_text, are_text = (
        {isinstance(level, str) for level in levels} for levels in (schema.levels, column.levels)
    )
    if were_text == {True} and are_text == {False}:
        raise TypeError(f"column {schema.name!r} held text in training, but it holds numbers now")
    if were_text == {False} and are_text == {True}:
        row, level = column.first_text()
        raise TypeError(
            f"column {schema.name!r} held categories that are numbers in training, but it "
            f"holds the text {level!r} in row {row}"
        )
    if handle_unknown == "error":
        known = frozenset(schema.levels)
        unknown = np.array([*(level not in known for level in column.levels), False])
        rows = unknown[column.codes]  # the last entry serves code -1
        if rows.any():
            row = int(np.argmax(rows))
            raise ValueError(
                f"column {schema.name!r} holds the unknown category "
                f"{column.levels[column.codes[row]]!r} in row {row}"
            )
    return column
