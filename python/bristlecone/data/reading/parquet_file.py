"""Parquet files, by pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import date, timedelta
from os import PathLike, fspath
from pathlib import Path
from typing import Any, BinaryIO

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from bristlecone.data.frame import Frame, check_names
from bristlecone.data.reading.columns import NUMBER, TEXT, TIME, as_dates

__all__ = ["ParquetFile", "read_parquet"]


class ParquetFile:
    """A Parquet file; reading it needs the extra ``bristlecone[parquet]``.

    Parameters
    ----------
    name : str
        Of the file, for the messages.
    open_bytes : callable
        Opens the file for reading.
    """

    has_row_names = False

    def __init__(self, name: str, open_bytes: Callable[[], BinaryIO]) -> None:
        self.name = name
        self._open = open_bytes

    @property
    def columns(self) -> list[str]:
        """Names of the columns.

        Raises
        ------
        ImportError
            When pyarrow is not installed.
        OSError
            When the file cannot be read.
        ValueError
            When it is not a Parquet file, and for empty or repeated names.
        """
        names: list[str] = self._ask(lambda parquet, file: parquet.read_schema(file).names)
        check_names(names, self.name)
        return names

    def read(
        self,
        columns: Iterable[str] | None = None,
        *,
        kinds: Mapping[str, str] | None = None,
        missing: Collection[str] = (),
    ) -> Frame:
        """Read the rows; parameters and Frame are those of :meth:`CsvFile.read`.

        Numbers of a column that has to be text are turned into it. Dates and nested values are kept
        as objects, for whoever uses the column to accept or refuse.

        Raises
        ------
        ImportError, OSError, ValueError
            As ``columns``; for a file without rows, and for a text in a column of numbers.
        """
        wanted = self.columns if columns is None else list(columns)
        table = self._ask(lambda parquet, file: parquet.read_table(file, columns=wanted))
        if not table.num_rows:
            raise ValueError(f"{self.name}: no rows")
        frame = nw.from_native(table, eager_only=True)
        kinds = kinds or {}
        return Frame(
            (
                (name, _of_kind(_values(frame[name], missing), kinds.get(name), name))
                for name in wanted
            ),
            self.name,
        )

    def _ask(self, question: Callable[[Any, BinaryIO], Any]) -> Any:
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise ImportError(
                "reading Parquet needs pyarrow: python -m pip install 'bristlecone[parquet]'"
            ) from None
        with self._open() as file:
            try:
                return question(parquet, file)
            except pyarrow.ArrowInvalid as error:
                raise ValueError(f"{self.name}: {' '.join(str(error).split())}") from None


def read_parquet(path: str | PathLike[str]) -> Frame:
    """All rows and columns of a Parquet file; see :class:`ParquetFile`."""
    return ParquetFile(fspath(path), lambda: Path(path).open("rb")).read()


def _values(series: nw.Series[Any], missing: Collection[str]) -> NDArray[Any]:
    complete = not series.is_null().any()
    if complete and series.dtype == nw.Boolean:
        return series.to_numpy().astype(bool)
    if complete and series.dtype.is_integer():
        return series.to_numpy()
    if series.dtype.is_numeric():
        return series.cast(nw.Float64).to_numpy()
    values = np.fromiter(series.to_list(), dtype=object, count=len(series))
    if missing and series.dtype == nw.String:
        values[np.isin(values, list(missing))] = None
    return values


def _of_kind(values: NDArray[Any], kind: str | None, name: str) -> NDArray[Any]:
    if kind == TEXT and values.dtype.kind in "iufb":
        texts = [None if value != value else _shown(value) for value in values.tolist()]
        return np.array(texts, dtype=object)
    if kind == TIME and values.dtype == object:
        cells = values.tolist()
        if all(cell is None or isinstance(cell, (date, timedelta)) for cell in cells):
            return values
        if all(cell is None or isinstance(cell, str) for cell in cells):
            dates = as_dates(cells, name)
            if dates is not None:
                return dates
    if kind in (NUMBER, TIME) and values.dtype == object:
        for row, value in enumerate(values.tolist()):
            if not (value is None or isinstance(value, bool)):
                raise ValueError(f"column {name!r} is not numeric; row {row} holds {value}")
    return values


def _shown(value: Any) -> str:
    """A value as it would stand in a CSV file."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
