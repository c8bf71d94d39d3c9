"""DATA: what is read, which columns there are, and files that are written."""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Iterable, Mapping
from decimal import Decimal
from difflib import get_close_matches
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

from bristlecone import datasets
from bristlecone._cli.csv_file import CsvFile
from bristlecone._cli.parquet_file import ParquetFile
from bristlecone._data.numbers import parse_number
from bristlecone._model.files import check_target, write_files

DataFile: TypeAlias = CsvFile | ParquetFile

_STANDARD_INPUT = "-"
_PARQUET = b"PAR1"
# From this number of rows on, a column of distinct values is considered an identifier regardless of
# its name.
_FEW = 20
# Number of first rows in which all values differ in an identifier; in other columns two are mostly
# equal.
_HEAD = 1000
_IDENTIFIER = re.compile(r"(.*[^a-z])?(id|pid|nr|no|number|key|index|row|uuid)", re.IGNORECASE)


def is_bundled(data: str) -> bool:
    """Whether DATA is the name of a bundled set."""
    return data in datasets.list_datasets()


def open_table(data: str) -> DataFile:
    """The table that DATA names, not yet read.

    Raises
    ------
    ValueError
        If there is neither a file nor a bundled set of that name.
    """
    if is_bundled(data):
        file = resources.files(datasets) / f"{data}.csv"
        return CsvFile(data, lambda: file.open("rb"))  # type: ignore[arg-type, return-value]
    path = Path(data)
    if data == _STANDARD_INPUT:
        if sys.stdin is None:
            raise ValueError("standard input is closed")
        return _from_bytes("standard input", sys.stdin.buffer.read())
    if not path.exists():
        close = get_close_matches(data, datasets.list_datasets(), n=1)
        hint = f"; did you mean the bundled set {close[0]}?" if close else ""
        raise ValueError(f"{data}: no such file, and no bundled set of that name{hint}")
    if not (path.is_file() or path.is_dir()):
        # A pipe can be read only once.
        return _from_bytes(data, path.read_bytes())
    kind = ParquetFile if path.suffix.lower() in (".parquet", ".pq") else CsvFile
    return kind(data, lambda: path.open("rb"))


def _from_bytes(name: str, content: bytes) -> DataFile:
    kind = ParquetFile if content.startswith(_PARQUET) else CsvFile
    return kind(name, lambda: io.BytesIO(content))


def output(option: str, path: str | None, *inputs: str) -> Path | None:
    """Path of a file to write, checked before the work begins; None for the standard output."""
    if path is None:
        return None
    try:
        target = check_target(path)
    except ValueError as error:
        raise ValueError(f"{option}: {error}") from None
    if target in [Path(name).resolve() for name in inputs]:
        raise ValueError(f"{option}: {path} is the file that is read")
    return target


def write_output(content: str | bytes, target: Path | None) -> None:
    """Write to a file, or print a text."""
    if target is None:
        print(content, end="")
    else:
        write_files({target: content})


def csv_text(columns: Mapping[str, Any]) -> str:
    """A table as a CSV file; true and false keep the spelling that they have in files."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*map(_cells, columns.values()), strict=True))
    return text.getvalue()


def _cells(column: Any) -> list[Any]:
    return [shown(value) if isinstance(value, bool) else value for value in column.tolist()]


def check_column(name: str, columns: list[str], asker: str) -> None:
    """Raise ValueError if the data have no such column."""
    if name not in columns:
        close = get_close_matches(name, columns, n=1)
        hint = f"did you mean {close[0]!r}? The" if close else "the"
        raise ValueError(
            f"{asker}: the data have no column {name!r}; {hint} columns are {listed(columns)}"
        )


def identifiers(frame: Any) -> list[str]:
    """Columns of whole numbers or text with a different value in every row.

    In a small table this may be chance: there the numbers must be consecutive, or the name must be
    that of an identifier.
    """
    return [name for name, values in frame.items() if _identifies(name, values)]


def _identifies(name: str, values: Any) -> bool:
    if values.dtype.kind not in "iuO":
        return False
    n_rows = len(values)
    if n_rows < 2 or not values[:_HEAD].is_unique or not values.is_unique or values.hasnans:
        return False
    if n_rows >= _FEW or _IDENTIFIER.fullmatch(name):
        return True
    whole = values.dtype.kind != "O"
    return whole and n_rows > 2 and int(values.max()) - int(values.min()) == n_rows - 1


def shown(value: Any) -> str:
    """A value in the form of a file."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def spells(text: str, value: Any) -> bool:
    """Whether the text stands for the value: 1 and 1.0 are the same number."""
    if isinstance(value, bool):
        return text.lower() == shown(value)
    if isinstance(value, str):
        return text == value
    if isinstance(value, int):
        # Not as float64, which some integers share.
        return parse_number(text) is not None and Decimal(text) == value
    return bool(parse_number(text) == value)


def absent(option: str, text: str, name: str | None, values: Iterable[Any]) -> ValueError:
    """The error about an option whose text stands for none of the values of a column."""
    return ValueError(
        f"{option}: {text} does not occur in column {name!r}, which holds {listed(values)}"
    )


def listed(values: Iterable[Any], most: int = 12) -> str:
    """The first values, with commas."""
    texts = [shown(value) for value in values]
    return ", ".join(texts[:most]) + (", ..." if len(texts) > most else "")
