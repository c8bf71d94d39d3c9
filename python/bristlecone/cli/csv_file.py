"""CSV files. pandas reads them; what it would lose silently is checked here."""

from __future__ import annotations

import csv
import gzip
import io
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any, BinaryIO

import numpy as np

from bristlecone.cli.columns import TEXT, CellError, typed
from bristlecone.data.frame import correctly_rounded
from bristlecone.data.numbers import parse_number

__all__ = ["CsvFile", "check_header"]

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "NULL", "null"})
"""Cells that stand for a missing value."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"
# In order of preference if two of them divide all lines evenly.
_DELIMITERS = ("\t", ";", ",")
_SAMPLED_LINES = 20
_SAMPLED_ROWS = 1000


class CsvFile:
    """A CSV file with a header line, in UTF-8, compressed by gzip or not.

    Comma, semicolon or tab separate the cells: the one that divides the first lines most evenly.
    If they are not separated by commas, all numbers may have decimal commas. A first column
    without a name holds row names and is left out (``has_row_names``).

    Parameters
    ----------
    name : str
        Of the file, for the messages.
    open_bytes : callable
        Opens the file for reading.
    """

    def __init__(self, name: str, open_bytes: Callable[[], BinaryIO]) -> None:
        self.name = name
        self._open = open_bytes

    @property
    def columns(self) -> list[str]:
        """Names of the columns, without that of the row names.

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
    ) -> Any:
        """Read the rows of these columns (all by default) into a pandas DataFrame.

        ``kinds`` says what a column is, "text", "number" or "time" (a number or a date); found out
        for those not named. Cells in ``missing`` stand for a missing value besides ``MISSING``.

        Raises
        ------
        OSError
            When the file cannot be read.
        ValueError
            For undecodable bytes, a broken quotation, lines with too many or too few cells, a file
            without rows, and a cell that keeps a column from being numbers.
        """
        wanted = self.columns if columns is None else list(columns)
        kinds, absent = kinds or {}, MISSING.union(missing)
        n_rows = self._count_rows()
        if not n_rows:
            raise ValueError(f"{self.name}: no rows below the header")
        open_kinds = [name for name in wanted if kinds.get(name) != TEXT]
        mark = self._decimal_mark(open_kinds, absent)
        frame = self._parsed(wanted, kinds, absent, mark)
        if mark == "." and self._delimiter != "," and _has_commas(frame[open_kinds]):
            mark = ","
            frame = self._parsed(wanted, kinds, absent, mark)
        if len(frame) != n_rows:
            raise ValueError(
                f"{self.name}: there are {n_rows} rows below the header, and pandas reads "
                f"{len(frame)} of them; blanks alone in a line are no row"
            )
        try:
            found = {name: typed(frame[name], kinds.get(name), absent, mark) for name in wanted}
        except CellError as error:
            line = next(islice(self._records(), error.row + 1, None))[0]
            raise ValueError(
                f"{self.name}, line {line}, column {error.column!r}: {error.problem}"
            ) from None
        # The content is not needed while a tree is searched for.
        del self._content
        return frame.assign(**found)

    @cached_property
    def _content(self) -> bytes:
        """The text in UTF-8, ending with a line end."""
        with self._open() as file:
            content = file.read()
        if content.startswith(_GZIP):
            try:
                content = gzip.decompress(content)
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise ValueError(f"{self.name}: the compressed file is damaged ({error})") from None
        content = content.removeprefix(_BYTE_ORDER_MARK)
        if b"\n" not in content:
            content = content.replace(b"\r", b"\n")
        if not content.isascii():
            try:
                content.decode()
            except UnicodeDecodeError as error:
                line = content.count(b"\n", 0, error.start) + 1
                raise ValueError(
                    f"{self.name}, line {line}: byte 0x{content[error.start]:02x} is not UTF-8; "
                    "save the file in UTF-8"
                ) from None
        return content if content.endswith(b"\n") else content + b"\n"

    @cached_property
    def _delimiter(self) -> str:
        text = io.TextIOWrapper(io.BytesIO(self._content), "utf-8")
        lines = list(islice((line for line in text if line.strip()), _SAMPLED_LINES + 1))
        even = {mark: _evenness(lines, mark) for mark in _DELIMITERS}
        best = max(_DELIMITERS, key=lambda mark: even[mark])
        return best if even[best] > (0, 0) else ","

    @cached_property
    def _header(self) -> list[str]:
        _, cells = next(self._records(), (0, []))
        if not cells:
            raise ValueError(f"{self.name}: the file is empty")
        names = [name.strip() for name in cells]
        # Row names have none; what stands in its place here is no name of a column.
        nameless = not names[0] and len(names) > 1
        check_header(["\0", *names[1:]] if nameless else names, self.name)
        return names

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Line where each record begins, and its cells; the header is the first one."""
        # Carriage returns apart from line ends are refused: pandas loses cells behind them.
        text = io.TextIOWrapper(io.BytesIO(self._content), "utf-8", newline="\n")
        reader = csv.reader(text, delimiter=self._delimiter, skipinitialspace=True, strict=True)
        begins = 1
        try:
            for cells in reader:
                if cells:
                    yield begins, cells
                begins = reader.line_num + 1
        except csv.Error as error:
            raise ValueError(f"{self.name}, line {begins}: {error}") from None

    def _count_rows(self) -> int:
        """Rows below the header, each of which has a cell for every column."""
        n_columns = len(self._header)
        found = _count_lines(self._content, self._delimiter, n_columns)
        if found is None:
            found = 0
            for line, cells in self._records():
                found += 1
                if len(cells) != n_columns:
                    raise ValueError(
                        f"{self.name}, line {line}: {len(cells)} cells where the header has "
                        f"{n_columns} columns"
                    )
        return found - 1

    def _decimal_mark(self, columns: list[str], missing: Collection[str]) -> str:
        """A comma if the first numbers of one of the columns have one."""
        if self._delimiter == ",":
            return "."
        rows = [cells for _, cells in islice(self._records(), 1, _SAMPLED_ROWS)]
        for at in map(self._header.index, columns):
            cells = [row[at].strip() for row in rows if len(row) > at]
            if _have_commas([cell for cell in cells if cell not in missing]):
                return ","
        return "."

    def _parsed(
        self, columns: list[str], kinds: Mapping[str, str], missing: Collection[str], mark: str
    ) -> Any:
        import pandas as pd

        try:
            return pd.read_csv(
                io.BytesIO(self._content),
                sep=self._delimiter,
                header=0,
                names=self._header,
                usecols=columns,
                index_col=False,
                dtype={name: str for name in columns if kinds.get(name) == TEXT},
                keep_default_na=False,
                na_values=sorted(missing),
                decimal=mark,
                skipinitialspace=True,
                low_memory=False,
                engine="c",
                **correctly_rounded(),
            )[columns]
        except pd.errors.ParserError as error:
            raise ValueError(f"{self.name}: {error}") from None


def check_header(names: list[str], source: str) -> None:
    """Raise ValueError for an empty or repeated name."""
    first: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise ValueError(f"{source}: column {position} has an empty name")
        if name in first:
            raise ValueError(
                f"{source}: duplicate column name {name!r} (columns {first[name]} and {position})"
            )
        first[name] = position


def _evenness(lines: list[str], delimiter: str) -> tuple[int, int]:
    """Lines with as many cells as the first, and its cells; zeros if it has only one."""
    try:
        counts = [len(cells) for cells in csv.reader(lines, delimiter=delimiter)]
    except csv.Error:
        return 0, 0
    if not counts or counts[0] < 2:
        return 0, 0
    return counts.count(counts[0]), counts[0]


def _count_lines(text: bytes, delimiter: str, n_columns: int) -> int | None:
    """Lines of a regular file that are not blank, each with a cell for every column.

    None if the rules of quotation have to be looked at cell by cell: a line has another number of
    cells, a quotation mark stands within a cell, or a carriage return before no line end.
    """
    if n_columns == 1:
        return None
    mark, line_end, carriage, quotation = (ord(each) for each in (delimiter, "\n", "\r", '"'))
    marks = np.frombuffer(text, dtype=np.uint8)
    ends, cuts = marks == line_end, marks == mark
    if b"\r" in text and (marks[np.flatnonzero(marks == carriage) + 1] != line_end).any():
        return None
    if b'"' in text:
        quoting = marks == quotation
        places = np.flatnonzero(quoting)
        if len(places) % 2:
            return None
        # Doubled marks close and open again. The text ends with a line end, which is also what
        # stands before the first byte.
        before, behind = marks[places[::2] - 1], marks[places[1::2] + 1]
        if not np.isin(before, (mark, line_end, quotation)).all():
            return None
        if not np.isin(behind, (mark, line_end, carriage, quotation)).all():
            return None
        outside = np.cumsum(quoting, dtype=np.uint8) % 2 == 0
        ends &= outside
        cuts &= outside
    last = np.flatnonzero(ends)
    cells = np.diff(np.searchsorted(np.flatnonzero(cuts), last), prepend=0) + 1
    odd = np.flatnonzero(cells != n_columns)
    for line in odd.tolist():
        if text[last[line - 1] + 1 if line else 0 : last[line]].strip(b" \t\r"):
            return None
    return len(last) - len(odd)


def _has_commas(frame: Any) -> bool:
    """Whether a column of text is numbers with decimal commas."""
    texts = (frame[name] for name in frame.columns if frame[name].dtype.kind == "O")
    return any(_have_commas(column.dropna().unique().tolist()) for column in texts)


def _have_commas(cells: Iterable[Any]) -> bool:
    """Whether all cells are numbers, and some have decimal commas."""
    has_comma = False
    for cell in cells:
        if not isinstance(cell, str) or parse_number(cell, ",") is None:
            return False
        has_comma |= parse_number(cell) is None
    return has_comma
