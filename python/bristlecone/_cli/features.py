"""The columns of a saved tree, read from new data."""

from __future__ import annotations

from typing import Any

from bristlecone._cli.columns import NUMBER, TEXT
from bristlecone._cli.tables import DataFile, check_column, spells
from bristlecone._encoder.schema import ColumnSchema


def known_columns(
    estimator: Any,
    table: DataFile,
    model: str,
    missing: list[str],
    needed: list[str] | None = None,
) -> Any:
    """The columns that the tree uses, with the kinds they had in training.

    The ``needed`` columns must exist, by default those of the splits. ``model`` is the file of the
    tree, and ``missing`` are cells that stand for no value.
    """
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        raise ValueError(f"{model}: the tree was fitted without column names; use it in Python")
    found = table.columns
    for name in estimator.features_used_ if needed is None else needed:
        check_column(name, found, table.name)
    schemas = {
        schema.name: schema
        for schema in getattr(estimator.encoder_, "columns_", [])
        if isinstance(schema, ColumnSchema)
    }
    wanted = [name for name in names if name in found]
    kinds = {name: _kind(schemas[name]) for name in wanted if name in schemas}
    frame = table.read(wanted, kinds=kinds, missing=missing)
    texts = [name for name in wanted if kinds.get(name) == TEXT]
    return frame.assign(**{name: _levels(frame[name], schemas[name]) for name in texts})


def _kind(schema: ColumnSchema) -> str:
    return NUMBER if schema.kind in ("flag", "number") else TEXT


def _levels(column: Any, schema: ColumnSchema) -> Any:
    """Texts of a categorical column as the levels of training, which may be numbers."""
    if all(isinstance(level, str) for level in schema.levels):
        return column
    import pandas as pd

    known = {
        text: next((level for level in schema.levels if spells(text, level)), text)
        for text in column.dropna().unique().tolist()
    }
    # Not column.map, which would turn numbers into a numeric column.
    return pd.Series([known.get(text) for text in column.tolist()], dtype=object)
