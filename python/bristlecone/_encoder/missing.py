"""Describes missing values of the training rows."""

from __future__ import annotations

from collections.abc import Sequence

from bristlecone._encoder.schema import ColumnSchema
from bristlecone._tree import Tree

_MOST = 12


def missing_text(columns: Sequence[ColumnSchema]) -> str:
    """Which columns had missing values in training, and how these are replaced.

    Empty if there were none. ASCII except for the names of the columns.

    Examples
    --------
    >>> schema = {"levels": (), "ordered": False, "whole": True, "low": 21.0, "high": 80.0}
    >>> age = ColumnSchema(name="age", kind="number", n_missing=3, fill=52.25, **schema)
    >>> missing_text([age])
    'age in 3 rows (imputed: 52.25)'
    """
    parts = []
    for column in columns:
        if column.n_missing:
            rows = f"{column.name} in {column.n_missing} row{'s' if column.n_missing > 1 else ''}"
            parts.append(rows + ("" if column.fill is None else f" (imputed: {_shown(column)})"))
    shown = ", ".join(parts[:_MOST])
    return shown + (f" and {len(parts) - _MOST} more columns" if parts[_MOST:] else "")


def missing_by_leaf(tree: Tree) -> str:
    """For each leaf, the number of rows that got there without a value that a split needs.

    Such as "185 of 628 rows of leaf 5"; empty if no row lacked a value.
    """
    counts = [(node, tree.n_missing[node], tree.n_node_samples[node]) for node in tree.leaves]
    parts = [f"{few} of {rows} rows of leaf {node}" for node, few, rows in counts if few]
    return ", ".join(parts)


def _shown(column: ColumnSchema) -> str:
    if isinstance(column.fill, bool):
        return "yes" if column.fill else "no"
    return f"{column.fill:.6g}"
