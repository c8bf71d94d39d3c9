"""CSV files. pandas reads them; this module checks what pandas would lose silently."""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from bristlecone._cli.columns import TEXT, CellError, has_commas, have_commas, typed
from bristlecone._data.frame import correctly_rounded

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "NULL", "null"})
"""Cells that stand for a missing value."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"
# In order of preference, if two of them divide all lines evenly.
_DELIMITERS = ("\t", ";", ",")
_SAMPLED_LINES = 20
_SAMPLED_ROWS = 1000
_BLOCK = 1 << 18


class CsvFile:
    """A CSV file with a header line, in UTF-8, plain or compressed by gzip.

    Comma, semicolon or tab separate the cells: the one that divides the first lines most evenly. If
    they are not separated by commas, all numbers may have decimal commas. A first column without a
    name holds row names and is left out (``has_row_names``).

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
            If the file cannot be read.
        ValueError
            For undecodable bytes, empty or repeated names, and an empty file.
        """
        return [name for name in self._header if name]

    @property
    def has_row_names(self) -> bool:
        """Whether the first column has no name and is therefore left out."""
        return not self._header[0]

    def read(
        self,
        columns: Iterable[str] | None = None,
        *,
        kinds: Mapping[str, str] | None = None,
        missing: Collection[str] = (),
    ) -> Any:
        """Read the rows of these columns (all by default) into a pandas DataFrame.

        ``kinds`` says what a column is: "text", "number" or "time" (a number or a date); other
        columns are detected. Cells in ``missing`` stand for a missing value, in addition to
        ``MISSING``.

        Raises
        ------
        OSError
            If the file cannot be read.
        ValueError
            For undecodable bytes, a broken quotation, lines with too many or too few cells, a file
            without rows, and a cell that keeps a column from being numbers.
        """
        import pandas as pd

        wanted = self.columns if columns is None else list(columns)
        kinds, absent = kinds or {}, MISSING.union(missing)
        inferred = [name for name in wanted if kinds.get(name) != TEXT]
        n_rows = self._count_rows() if self._is_odd() else None
        mark = self._decimal_mark(inferred, absent)
        frame = self._parsed(kinds, absent, mark)
        if mark == "." and self._delimiter != "," and has_commas(frame[inferred]):
            mark = ","
            frame = self._parsed(kinds, absent, mark)
        if n_rows is None and not self._is_even(
            len(frame), complete=not frame[self._header[-1]].hasnans
        ):
            n_rows = self._count_rows()
        if n_rows is not None and n_rows != len(frame):
            raise ValueError(
                f"{self.name}: there are {n_rows} rows below the header, but pandas reads "
                f"{len(frame)} of them; remove lines that contain only blanks"
            )
        if frame.empty:
            raise ValueError(f"{self.name}: no rows below the header")
        try:
            found = {name: typed(frame[name], kinds.get(name), mark) for name in wanted}
        except CellError as error:
            place = f"{self.name}, line {self._line(error.row)}, column {error.column!r}"
            raise ValueError(f"{place}: {error.problem}") from None
        # The content is not needed during the search.
        del self._content
        return pd.DataFrame(found, copy=False)

    def located(self, error: ValueError) -> ValueError:
        """The error with the line of the file in place of the row that it names."""
        text = str(error)
        # The names of columns are in quotes.
        plain = re.sub(r"'[^']*'", lambda quoted: "'" * len(quoted[0]), text)
        named = re.search(r" in row (\d+)", plain)
        if named is None:
            return error
        text = text[: named.start()] + text[named.end() :]
        return ValueError(f"{self.name}, line {self._line(int(named[1]))}: {text}")

    def _line(self, row: int) -> int:
        """Line where a row begins."""
        return next(islice(self._records(), row + 1, None))[0]

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
        if b"\0" in content:
            # Text in UTF-16 has many; pandas 2.0 drops everything after one in a cell.
            raise self._undecodable(content, content.index(b"\0"))
        if not content.isascii():
            try:
                content.decode()
            except UnicodeDecodeError as error:
                raise self._undecodable(content, error.start) from None
        return content if content.endswith(b"\n") else content + b"\n"

    def _undecodable(self, content: bytes, at: int) -> ValueError:
        line, byte = content.count(b"\n", 0, at) + 1, f"byte 0x{content[at]:02x}"
        problem = f"{byte} is not text in UTF-8; save the file in UTF-8"
        if not content[at]:
            problem = f"{byte} is not text; if it is a file in UTF-16, save it in UTF-8"
        return ValueError(f"{self.name}, line {line}: {problem}")

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
        # Row names have no heading; what is found here is not the name of a column.
        nameless = not names[0] and len(names) > 1
        check_header(["\0", *names[1:]] if nameless else names, self.name)
        return names

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Line where each record begins, and its cells; the header is the first one."""
        # Carriage returns inside lines are rejected, because pandas loses cells after them.
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

    def _is_odd(self) -> bool:
        """Whether the file must be checked before pandas reads it.

        pandas ignores blank lines in a single column and accepts a first row that is too long.
        After a carriage return inside a line it loses cells, and pandas 2.0 may never end.
        """
        _, first = next(islice(self._records(), 1, None), (0, self._header))
        if len(self._header) == 1 or len(first) != len(self._header):
            return True
        return b"\r" in self._content and any(
            ((block[:-1] == ord("\r")) & (block[1:] != ord("\n"))).any()
            for block in _blocks(self._content, 1)
        )

    def _is_even(self, n_rows: int, *, complete: bool) -> bool:
        """Whether all lines surely have a cell for every column; False needs a closer look.

        pandas has rejected longer lines and filled shorter ones with missing values. There are no
        shorter lines if the last column is ``complete``, or if the file has the expected number of
        delimiters and no quotation marks.
        """
        delimiter, n_columns = self._delimiter, len(self._header)
        if b'"' in self._content:
            return complete or _are_even(self._content, delimiter, n_columns)
        found = sum(np.count_nonzero(block == ord(delimiter)) for block in _blocks(self._content))
        return int(found) == (n_rows + 1) * (n_columns - 1)

    def _count_rows(self) -> int:
        """Number of rows below the header; each must have a cell for every column."""
        found, n_columns = -1, len(self._header)
        for line, cells in self._records():
            found += 1
            if len(cells) != n_columns:
                raise ValueError(
                    f"{self.name}, line {line}: {len(cells)} cells where the header has "
                    f"{n_columns} columns"
                )
        return found

    def _decimal_mark(self, columns: list[str], missing: Collection[str]) -> str:
        """A comma if the first numbers of any column have one."""
        if self._delimiter == ",":
            return "."
        rows = [cells for _, cells in islice(self._records(), 1, _SAMPLED_ROWS)]
        for at in map(self._header.index, columns):
            cells = [row[at].strip() for row in rows if len(row) > at]
            if have_commas([cell for cell in cells if cell not in missing]):
                return ","
        return "."

    def _parsed(self, kinds: Mapping[str, str], missing: Collection[str], mark: str) -> Any:
        import pandas as pd

        try:
            with warnings.catch_warnings():
                # About cells beyond those of the header.
                warnings.simplefilter("error", pd.errors.ParserWarning)
                # Without usecols, with which pandas accepts longer lines.
                return pd.read_csv(
                    io.BytesIO(self._content),
                    sep=self._delimiter,
                    header=0,
                    names=self._header,
                    index_col=False,
                    dtype={name: str for name, kind in kinds.items() if kind == TEXT},
                    keep_default_na=False,
                    na_values=sorted(missing),
                    decimal=mark,
                    skipinitialspace=True,
                    low_memory=False,
                    engine="c",
                    **correctly_rounded(),
                )
        except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
            # Names the line.
            self._count_rows()
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
    """Number of lines with as many cells as the first, and this number; zeros if it is one."""
    try:
        counts = [len(cells) for cells in csv.reader(lines, delimiter=delimiter)]
    except csv.Error:
        return 0, 0
    if not counts or counts[0] < 2:
        return 0, 0
    return counts.count(counts[0]), counts[0]


def _blocks(text: bytes, more: int = 0) -> Iterator[NDArray[np.uint8]]:
    """The bytes in blocks that fit into a cache; each may include some bytes of the next."""
    marks = np.frombuffer(text, dtype=np.uint8)
    for start in range(0, len(marks), _BLOCK):
        yield marks[start : start + _BLOCK + more]


def _are_even(text: bytes, delimiter: str, n_columns: int) -> bool:
    """Whether every line surely has a cell for every column; False needs a closer look.

    The text ends with a line end.
    """
    within, begins, n_cells = False, True, 0
    for block in _blocks(text):
        quoting, ends = block == ord('"'), block == ord("\n")
        borders = ends | (block == ord(delimiter))
        inside = np.logical_xor.accumulate(quoting) ^ within
        # A mark inside a cell does not start a quotation. A doubled one ends and restarts it.
        may_begin = np.append(begins, (borders | quoting)[:-1])
        if (quoting & inside & ~may_begin).any():
            return False
        is_last = ends[borders & ~inside]
        should_be = np.zeros(len(is_last), dtype=bool)
        should_be[(-n_cells - 1) % n_columns :: n_columns] = True
        if (is_last != should_be).any():
            return False
        n_cells += len(is_last)
        within, begins = bool(inside[-1]), bool(borders[-1] | quoting[-1])
    return not within
