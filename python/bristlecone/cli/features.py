"""The columns of a saved tree, read from new data."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone.cli.tables import check_column, spells
from bristlecone.data.frame import Frame
from bristlecone.data.reading import CsvFile, ParquetFile
from bristlecone.data.reading.columns import NUMBER, TEXT
from bristlecone.encoder.schema import ColumnSchema

__all__ = ["known_columns"]


def known_columns(
    estimator: Any,
    table: CsvFile | ParquetFile,
    model: str,
    missing: list[str],
    needed: list[str] | None = None,
) -> Frame:
    """The columns that the tree knows, of the kinds they had in training.

    Those that are ``needed`` must be there, by default those that it asks about; ``model`` is the
    file of the tree, and ``missing`` are cells that stand for no value.
    """
    names = getattr(estimator, "feature_names_in_", None)
    if names is None:
        raise ValueError(f"{model}: the tree was fitted without column names; use it in Python")
    found = table.columns
    for name in estimator.features_used_ if needed is None else needed:
        check_column(name, found, model)
    schemas = {
        schema.name: schema
        for schema in getattr(estimator.encoder_, "columns_", [])
        if isinstance(schema, ColumnSchema)
    }
    wanted = [name for name in names if name in found]
    kinds = {name: _kind(schemas[name]) for name in wanted if name in schemas}
    frame = table.read(wanted, kinds=kinds, missing=missing)
    return Frame(
        (name, _levels(values, schemas[name]) if kinds.get(name) == TEXT else values)
        for name, values in frame.items()
    )


def _kind(schema: ColumnSchema) -> str:
    return NUMBER if schema.kind in ("flag", "number") else TEXT


def _levels(values: NDArray[Any], schema: ColumnSchema) -> NDArray[Any]:
    """Texts of a categorical column as the levels of training, which may be numbers."""
    if all(isinstance(level, str) for level in schema.levels):
        return values
    known: dict[Any, Any] = {None: None}
    for text in set(values.tolist()) - {None}:
        known[text] = next((level for level in schema.levels if spells(text, level)), text)
    result = np.empty(len(values), dtype=object)
    result[:] = [known[text] for text in values.tolist()]
    return result
