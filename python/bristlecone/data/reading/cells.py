"""Where the cells of a CSV file begin and end."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone import _core

__all__ = ["Cells", "first_record", "split"]


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of one column, in UTF-8.

    Attributes
    ----------
    buffer : bytes
        Holds every cell.
    bounds : int array, shape (n_rows, 2)
        Where each begins and ends in the buffer; uint32, or uint64 from 4 GiB on.
    """

    buffer: bytes
    bounds: NDArray[Any]

    def __len__(self) -> int:
        return len(self.bounds)

    def take(self, rows: slice | NDArray[Any]) -> Cells:
        """Only some of the rows."""
        return Cells(self.buffer, self.bounds[rows])

    def blocks(self, size: int) -> Iterator[tuple[slice, Cells]]:
        """Blocks of so many rows."""
        for start in range(0, len(self), size):
            rows = slice(start, start + size)
            yield rows, self.take(rows)

    def tolist(self) -> list[bytes]:
        """Every cell by itself."""
        return [self.buffer[start:end] for start, end in self.bounds.tolist()]

    def levels(self) -> tuple[NDArray[np.uint32], list[str]]:
        """Codes of the cells among the distinct ones, and these as they occur."""
        return _core.find_levels(self.buffer, self.bounds)


def first_record(text: bytes, delimiter: str) -> tuple[list[str], int]:
    """Cells of the first line that is not empty, and where the next one begins.

    ``text`` ends with a line end.

    Raises
    ------
    csv.Error
        For a broken quotation; the line is named.
    """
    end = 0

    def lines() -> Iterator[str]:
        nonlocal end
        while end < len(text):
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
    """Cells below the header by column; the text is UTF-8 and ends with a line end.

    ``start`` is where the first line below the header begins. Empty lines are left out.

    Raises
    ------
    csv.Error
        For a line with another number of cells and for a broken quotation; the line is named.
    """
    found = _split_at_marks(text, start, delimiter, n_columns)
    return _split_by_rules(text, start, delimiter, n_columns) if found is None else found


def _split_at_marks(text: bytes, start: int, delimiter: str, n_columns: int) -> list[Cells] | None:
    """The cells of a file where every mark is what it seems; None when some may not be."""
    bounds = _core.split_cells(text, start, delimiter, n_columns)
    return None if bounds is None else [Cells(text, bounds[:, j]) for j in range(n_columns)]


def _split_by_rules(text: bytes, start: int, delimiter: str, n_columns: int) -> list[Cells]:
    """The cells of any file, by the rules of quotation."""
    above = text.count(b"\n", 0, start)
    body = io.StringIO(text[start:].decode(), newline="")
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
    ends = np.cumsum([len(cell) for cell in encoded], dtype=np.uint64)
    starts = np.concatenate([np.zeros(1, np.uint64), ends[:-1]])
    return Cells(b"".join(encoded), np.column_stack([starts, ends]))
