"""Columns read from a file, without any data frame library.

Only the command line and the bundled data sets need this: who has pandas or polars passes its data
frames to the estimators directly.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike, fspath
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

__all__ = ["MISSING", "Frame", "read_csv", "read_parquet"]

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "NULL", "null"})
"""Cells of a CSV file that stand for a missing value."""

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf(inity)?", re.I)
_BOOLEAN = {"true": True, "false": False}
_DELIMITERS = (",", ";", "\t")


class Frame(Mapping[str, NDArray[Any]]):
    """Named columns of equal length.

    Every estimator accepts it in place of a data frame.

    Parameters
    ----------
    columns : iterable of (str, array)
        Name and values, shape (n_rows,), of every column. Missing values are NaN in float
        columns and None in object columns.
    source : str
        What the columns come from, for the messages.

    Raises
    ------
    ValueError
        For an empty or repeated name, or columns of different lengths.
    """

    def __init__(
        self, columns: Iterable[tuple[str, NDArray[Any]]], source: str = "the frame"
    ) -> None:
        named = list(columns)
        _check_names([name for name, _ in named], source)
        self._columns = dict(named)
        self._n_rows = len(named[0][1]) if named else 0
        for name, values in named:
            if len(values) != self._n_rows:
                raise ValueError(
                    f"{source}: column {name!r} has {len(values)} rows but "
                    f"{named[0][0]!r} has {self._n_rows}"
                )

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and number of columns."""
        return self._n_rows, len(self._columns)

    def __getitem__(self, key: Any) -> Any:
        """Return the column of that name, or the rows of a boolean mask or of an index array."""
        if isinstance(key, str):
            return self._columns[key]
        return Frame((name, values[key]) for name, values in self._columns.items())

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return f"Frame({self.shape[0]} rows, columns {', '.join(map(repr, self._columns))})"

    def select(self, names: Iterable[str]) -> Frame:
        """Only the named columns, in this order."""
        return Frame((name, self._columns[name]) for name in names)

    def drop(self, names: Iterable[str]) -> Frame:
        """Every column but the named ones."""
        dropped = set(names)
        return self.select(name for name in self._columns if name not in dropped)


def _check_names(names: Sequence[str], source: str) -> None:
    first: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise ValueError(f"{source}: column {position} has an empty name")
        if name in first:
            raise ValueError(
                f"{source}: duplicate column name {name!r} (columns {first[name]} and {position})"
            )
        first[name] = position


def read_csv(path: str | PathLike[str]) -> Frame:
    """Read a CSV file with a header line.

    Comma, semicolon or tab separate the cells: the first of them that the header contains. A
    column is boolean if all its values are true or false, integer or float if all are numbers,
    else text. See ``MISSING`` for what counts as missing. Lines that are empty are skipped.

    Parameters
    ----------
    path : str or path-like
        File in UTF-8, with or without byte order mark.

    Returns
    -------
    Frame
        Columns of dtype bool, int64 or float64, or of dtype object (str, or bool with missing
        values) with None where missing.

    Raises
    ------
    OSError
        When the file cannot be read.
    ValueError
        For undecodable bytes, a broken quotation, lines with too many or too few cells (the line
        is named), empty or repeated column names, and a file without rows.
    """
    source = fspath(path)
    with open(path, "rb") as file:
        content = file.read()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{source}, line {line}: byte 0x{content[error.start]:02x} is not UTF-8; save the "
            "file in UTF-8"
        ) from None
    return _parse(text, source)


def _parse(text: str, source: str) -> Frame:
    header = text.lstrip("\r\n").partition("\n")[0]
    delimiter = next((mark for mark in _DELIMITERS if mark in header), ",")
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    names: list[str] | None = None
    rows: list[list[str]] = []
    try:
        for cells in reader:
            if not cells:
                continue
            if names is None:
                names = [cell.strip() for cell in cells]
                _check_names(names, source)
            elif len(cells) == len(names):
                rows.append(cells)
            else:
                raise ValueError(
                    f"{source}, line {reader.line_num}: {len(cells)} cells where the header has "
                    f"{len(names)} columns"
                )
    except csv.Error as error:
        raise ValueError(f"{source}, line {reader.line_num}: {error}") from None
    if names is None:
        raise ValueError(f"{source}: the file is empty")
    if not rows:
        raise ValueError(f"{source}: no rows below the header")
    columns = zip(*rows, strict=True)
    return Frame(
        ((name, _typed(values)) for name, values in zip(names, columns, strict=True)), source
    )


def _typed(cells: Sequence[str]) -> NDArray[Any]:
    """Values of the narrowest type that all cells have; every distinct text is parsed once."""
    stripped = {cell: cell.strip() for cell in set(cells)}
    present = {text for text in stripped.values() if text not in MISSING}
    complete = len(present) == len(set(stripped.values()))

    def convert(parse: Callable[[str], Any], missing: Any, dtype: Any) -> NDArray[Any]:
        value = {cell: parse(t) if t in present else missing for cell, t in stripped.items()}
        return np.array([value[cell] for cell in cells], dtype=dtype)

    if present and all(text.lower() in _BOOLEAN for text in present):
        return convert(lambda text: _BOOLEAN[text.lower()], None, bool if complete else object)
    if complete and all(_INTEGER.fullmatch(text) for text in present):
        return convert(int, None, np.int64)
    if all(_NUMBER.fullmatch(text) for text in present):
        return convert(float, np.nan, np.float64)
    return convert(str, None, object)


def read_parquet(path: str | PathLike[str]) -> Frame:
    """Read a Parquet file; needs the extra ``bristlecone[parquet]``.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    Frame
        As from ``read_csv``; dates and nested values are kept as objects, for whoever uses the
        column to accept or refuse.

    Raises
    ------
    ImportError
        When pyarrow is not installed.
    OSError
        When the file cannot be read.
    ValueError
        When it is not a Parquet file, for empty or repeated column names, and a file without
        rows.
    """
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError:
        raise ImportError(
            "reading Parquet needs pyarrow: python -m pip install 'bristlecone[parquet]'"
        ) from None
    source = fspath(path)
    try:
        table = parquet.read_table(path)
    except pyarrow.ArrowInvalid as error:
        raise ValueError(f"{source}: {' '.join(str(error).split())}") from None
    _check_names(table.column_names, source)
    if not table.num_rows:
        raise ValueError(f"{source}: no rows")
    frame = nw.from_native(table, eager_only=True)
    return Frame(((series.name, _from_series(series)) for series in frame.iter_columns()), source)


def _from_series(series: nw.Series[Any]) -> NDArray[Any]:
    complete = not series.is_null().any()
    if complete and series.dtype == nw.Boolean:
        return series.to_numpy().astype(bool)
    if complete and series.dtype.is_integer():
        return series.to_numpy()
    if series.dtype.is_numeric():
        return series.cast(nw.Float64).to_numpy()
    return np.fromiter(series.to_list(), dtype=object, count=len(series))
