"""CSV files."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Collection, Generator, Iterable, Mapping
from functools import cached_property
from os import PathLike, fspath
from pathlib import Path
from shlex import quote
from typing import BinaryIO

from bristlecone.data.frame import Frame, check_names
from bristlecone.data.reading.cells import first_record, split
from bristlecone.data.reading.columns import MISSING, Values, read_cells

__all__ = ["CsvFile", "read_csv"]

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"
# In order of preference where two of them divide all lines evenly.
_DELIMITERS = ("\t", ";", ",")
_HEAD = 1 << 16
_SAMPLED_LINES = 20


class CsvFile:
    """A CSV file with a header line, in UTF-8, compressed by gzip or not.

    Comma, semicolon or tab separate the cells: the one that divides the first lines most evenly.
    Lines that are empty are skipped. A first column without a name holds row names and is left
    out (``has_row_names``).

    A column is boolean if all its values are true or false, integer or float if all are numbers,
    else text. Where commas do not separate the cells, numbers may have decimal commas, but not in
    one column of the file and decimal points in another. A column whose cells are numbers but for
    a few is refused.

    Parameters
    ----------
    name : str
        Of the file, for the messages.
    open_bytes : callable
        Opens the file for reading; called once for the header and once for the rows.
    """

    def __init__(self, name: str, open_bytes: Callable[[], BinaryIO]) -> None:
        self.name = name
        self._open = open_bytes

    @property
    def columns(self) -> list[str]:
        """Names of the columns, without those of the row names.

        Raises
        ------
        OSError
            When the file cannot be read.
        ValueError
            For undecodable bytes, empty or repeated names, and an empty file.
        """
        return [name for name in self._header if name]

    @property
    def has_row_names(self) -> bool:
        """Whether the first column has no name, hence is left out."""
        return not self._header[0]

    def read(
        self,
        columns: Iterable[str] | None = None,
        *,
        kinds: Mapping[str, str] | None = None,
        missing: Collection[str] = (),
    ) -> Frame:
        """Read the rows of these columns (all by default).

        ``kinds`` says what a column is, "text", "number" or "time" (a number or a date); found out
        for those not named. Cells in ``missing`` stand for a missing value besides ``MISSING``.
        Columns of the Frame have dtype bool, int64 or float64, or object (str, datetime, or bool
        with missing values) with None where missing.

        Raises
        ------
        OSError
            When the file cannot be read.
        ValueError
            For undecodable bytes, a broken quotation, lines with too many or too few cells (the
            line is named), a file without rows, and a cell that keeps a column of numbers from
            being one (column and row are named).
        """
        wanted = self.columns if columns is None else list(columns)
        text = self._text(-1)
        try:
            _, start = first_record(text, self._delimiter)
            cells = split(text, start, self._delimiter, len(self._header))
        except csv.Error as error:
            raise ValueError(f"{self.name}, {error}") from None
        if not cells:
            raise ValueError(f"{self.name}: no rows below the header")
        kinds = kinds or {}
        absent = MISSING.union(missing)
        marks = (".",) if self._delimiter == "," else (".", ",")
        found = _in_step(
            {
                name: read_cells(
                    cells[self._header.index(name)],
                    name,
                    kind=kinds.get(name),
                    missing=absent,
                    marks=marks,
                )
                for name in wanted
            }
        )
        _check_marks(found, self.name)
        return Frame(((name, column.values) for name, column in found.items()), self.name)

    @cached_property
    def _head(self) -> bytes:
        """First lines."""
        head = self._text(_HEAD)
        if len(head) < _HEAD - len(_BYTE_ORDER_MARK):
            return head
        # The last line may have been cut off.
        stop = head.rfind(b"\n", 0, len(head) - 1) + 1
        return head[:stop] if stop else self._text(-1)

    @cached_property
    def _delimiter(self) -> str:
        lines = self._head.decode().splitlines()[: _SAMPLED_LINES + 1]
        even = {mark: _evenness([line for line in lines if line], mark) for mark in _DELIMITERS}
        best = max(_DELIMITERS, key=lambda mark: even[mark])
        return best if even[best] > (0, 0) else ","

    @cached_property
    def _header(self) -> list[str]:
        try:
            record, _ = first_record(self._head, self._delimiter)
        except csv.Error as error:
            raise ValueError(f"{self.name}, {error}") from None
        if not record:
            raise ValueError(f"{self.name}: the file is empty")
        names = [name.strip() for name in record]
        # Row names have none; what stands in its place here is no name of a column.
        nameless = not names[0] and len(names) > 1
        check_names(["\0", *names[1:]] if nameless else names, self.name)
        return names

    def _text(self, size: int) -> bytes:
        """That many bytes of the file, and a line end where they have none at their end."""
        with self._open() as file:
            start = file.read(len(_GZIP))
            file.seek(0)
            if start == _GZIP:
                content = self._unpacked(file, size)
            else:
                content = file.read(size)
        is_whole = size < 0 or len(content) < size
        content = content.removeprefix(_BYTE_ORDER_MARK)
        if b"\n" not in content:
            content = content.replace(b"\r", b"\n")
        if not content.isascii():
            # What was read may end within a character.
            end = len(content) if is_whole else content.rfind(b"\n") + 1
            _check_encoding(content[:end], self.name)
        return content if content.endswith(b"\n") else content + b"\n"

    def _unpacked(self, file: BinaryIO, size: int) -> bytes:
        try:
            with gzip.open(file) as unpacked:
                return unpacked.read(size)
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            raise ValueError(f"{self.name}: the compressed file is damaged ({error})") from None


def read_csv(path: str | PathLike[str]) -> Frame:
    """All rows and columns of a CSV file; see :class:`CsvFile`."""
    return CsvFile(fspath(path), lambda: Path(path).open("rb")).read()


def _in_step(columns: Mapping[str, Generator[None, None, Values]]) -> dict[str, Values]:
    """What the generators return, each advanced by one step in turn."""
    found: dict[str, Values] = {}
    while len(found) < len(columns):
        for name, column in columns.items():
            if name not in found:
                try:
                    next(column)
                except StopIteration as stop:
                    found[name] = stop.value
    return {name: found[name] for name in columns}


def _check_encoding(content: bytes, name: str) -> None:
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{name}, line {line}: byte 0x{content[error.start]:02x} is not UTF-8; save the file "
            "in UTF-8"
        ) from None


def _evenness(lines: list[str], delimiter: str) -> tuple[int, int]:
    """Lines with as many cells as the first, and its cells; zeros where it has only one."""
    try:
        counts = [len(cells) for cells in csv.reader(lines, delimiter=delimiter)]
    except csv.Error:
        return 0, 0
    if not counts or counts[0] < 2:
        return 0, 0
    return counts.count(counts[0]), counts[0]


def _check_marks(columns: Mapping[str, Values], source: str) -> None:
    """Raise when one column has decimal commas and another decimal points."""
    first: dict[str | None, tuple[str, Values]] = {}
    for name, column in columns.items():
        first.setdefault(column.mark, (name, column))
    if "." in first and "," in first:
        (with_point, point), (with_comma, comma) = first["."], first[","]
        raise ValueError(
            f"{source}: numbers have a decimal point in column {with_point!r} (row "
            f"{point.marked_row}) and a decimal comma in column {with_comma!r} (row "
            f"{comma.marked_row}); write them alike, or take the "
            f"first as text (--categorical {quote(with_point)})"
        )
