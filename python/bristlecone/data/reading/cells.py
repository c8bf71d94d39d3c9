"""Where the cells of a CSV file begin and end."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PADDING", "Cells", "first_record", "split"]

PADDING = 64
"""Bytes behind the last cell of a buffer, so that a window of this width fits at any cell."""

_BLOCK = 1 << 18
_NEWLINE, _RETURN, _QUOTE = b'\n\r"'


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of one column, in UTF-8.

    Attributes
    ----------
    buffer : bytes
        Holds every cell, and ``PADDING`` bytes more.
    starts, ends : int array, shape (n_rows,)
        Cell k is ``buffer[starts[k]:ends[k]]``.
    """

    buffer: bytes
    starts: NDArray[Any]
    ends: NDArray[Any]

    def __len__(self) -> int:
        return len(self.starts)

    def take(self, rows: slice | NDArray[np.bool_]) -> Cells:
        """Only some of the rows."""
        return Cells(self.buffer, self.starts[rows], self.ends[rows])

    def blocks(self, size: int) -> Iterator[tuple[slice, Cells]]:
        """Blocks of so many rows."""
        for start in range(0, len(self), size):
            rows = slice(start, start + size)
            yield rows, self.take(rows)

    def padded(self) -> NDArray[np.uint8]:
        """Bytes of every cell and zeros behind them, shape (n_rows, width).

        The width is that of the longest cell, and ``PADDING`` at most.
        """
        length = self.ends - self.starts
        width = int(min(max(length.max(initial=0), 1), PADDING))
        every = np.ndarray(
            len(self.buffer) - width + 1, np.dtype((np.void, width)), self.buffer, strides=(1,)
        )
        bytes_ = every[self.starts].view(np.uint8).reshape(-1, width)
        bytes_ *= np.arange(width) < length[:, np.newaxis]
        return bytes_

    def tolist(self) -> list[bytes]:
        """Every cell by itself."""
        if (self.ends - self.starts).max(initial=0) <= PADDING:
            padded = self.padded()
            found: list[bytes] = padded.view(f"S{padded.shape[1]}").ravel().tolist()
            return found
        buffer = self.buffer
        return [
            buffer[start:end]
            for start, end in zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        ]


def first_record(text: bytes, delimiter: str) -> tuple[list[str], int]:
    """Cells of the first line that is not empty, and where the next one begins.

    ``text`` ends with a line end and ``PADDING`` bytes.

    Raises
    ------
    csv.Error
        For a broken quotation; the line is named.
    """
    end = 0

    def lines() -> Iterator[str]:
        nonlocal end
        while end < len(text) - PADDING:
            start, end = end, text.index(b"\n", end) + 1
            yield text[start:end].decode()

    reader, begins = csv.reader(lines(), delimiter=delimiter, strict=True), 1
    try:
        for record in reader:
            if record:
                return record, end
            begins = reader.line_num + 1
    except csv.Error as error:
        raise csv.Error(f"line {begins}: {error}") from None
    return [], end


def split(text: bytes, start: int, delimiter: str, n_columns: int) -> list[Cells]:
    """Cells below the header by column; the text is UTF-8, with ``PADDING`` bytes behind it.

    ``start`` is where the first line below the header begins. Empty lines are left out.

    Raises
    ------
    csv.Error
        For a line with another number of cells and for a broken quotation; the line is named.
    """
    found = _split_at_marks(text, start, delimiter, n_columns)
    return _split_by_rules(text, start, delimiter, n_columns) if found is None else found


def _split_at_marks(text: bytes, start: int, delimiter: str, n_columns: int) -> list[Cells] | None:
    """The cells of a file where every mark is what it seems; None when some may not be.

    That is: quotation marks enclose whole cells and do not occur in them, no line is empty, and
    there is no carriage return but before a line end.
    """
    stop = len(text) - PADDING
    while stop > start and text[stop - 1] in b"\r\n":
        stop -= 1
    if stop == start:
        return None
    stop = text.index(b"\n", stop) + 1
    returns = text.count(b"\r", start, stop)
    if text.find(b"\0", start, stop) >= 0 or returns != text.count(b"\r\n", start, stop):
        return None
    quotes = text.count(b'"', start, stop)
    marks = _marks(text, start, stop, ord(delimiter), quotes > 0)
    if not len(marks) or len(marks) % n_columns:
        return None
    buffer = np.frombuffer(text, np.uint8)
    ends = marks.reshape(-1, n_columns)
    if not (buffer[ends[:, -1]] == _NEWLINE).all() or _n_newlines(buffer, marks) != len(ends):
        return None
    starts = np.empty_like(ends)
    starts.flat[0] = start
    starts.reshape(-1)[1:] = marks[:-1] + 1
    if returns:
        last = ends[:, -1]
        last -= (last > starts[:, -1]) & (buffer[last - 1] == _RETURN)
    if n_columns == 1 and (ends == starts).any():
        return None
    if quotes:
        longer = ends > starts + 1
        enclosed = longer & (buffer[starts] == _QUOTE) & (buffer[ends - 1] == _QUOTE)
        if 2 * np.count_nonzero(enclosed) != quotes:
            return None
        starts += enclosed
        ends -= enclosed
    return [Cells(text, starts[:, j], ends[:, j]) for j in range(n_columns)]


def _n_newlines(buffer: NDArray[np.uint8], marks: NDArray[Any]) -> int:
    return sum(
        int(np.count_nonzero(buffer[marks[k : k + _BLOCK]] == _NEWLINE))
        for k in range(0, len(marks), _BLOCK)
    )


def _marks(text: bytes, start: int, stop: int, delimiter: int, quoted: bool) -> NDArray[Any]:
    """Positions of the delimiters and line ends outside of quotations."""
    dtype = np.int32 if len(text) < 2**31 else np.int64
    buffer = np.frombuffer(text, np.uint8)
    found, inside = [], np.uint8(0)
    for begin in range(start, stop, _BLOCK):
        block = buffer[begin : min(begin + _BLOCK, stop)]
        is_mark = (block == delimiter) | (block == _NEWLINE)
        if quoted:
            # 1 within a quotation
            state = np.bitwise_xor.accumulate((block == _QUOTE).view(np.uint8)) ^ inside
            is_mark &= state == 0
            inside = state[-1]
        found.append((np.flatnonzero(is_mark) + begin).astype(dtype))
    return np.concatenate(found)


def _split_by_rules(text: bytes, start: int, delimiter: str, n_columns: int) -> list[Cells]:
    """The cells of any file, by the rules of quotation."""
    above = text.count(b"\n", 0, start)
    body = io.StringIO(text[start : -PADDING - 1].decode(), newline="")
    reader = csv.reader(body, delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    try:
        for cells in reader:
            if len(cells) == n_columns:
                rows.append(cells)
            elif cells:
                raise csv.Error(f"{len(cells)} cells where the header has {n_columns} columns")
    except csv.Error as error:
        raise csv.Error(f"line {above + reader.line_num}: {error}") from None
    return [_packed(column) for column in zip(*rows, strict=True)] if rows else []


def _packed(column: Sequence[str]) -> Cells:
    """Cells that stand one behind the other."""
    encoded = [cell.encode() for cell in column]
    ends = np.cumsum([len(cell) for cell in encoded])
    return Cells(b"".join(encoded) + bytes(PADDING), np.concatenate([[0], ends[:-1]]), ends)
