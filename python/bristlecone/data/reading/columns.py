"""What type a column of cells has, and its values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass
from datetime import datetime
from shlex import quote
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from bristlecone.data.reading.cells import Cells
from bristlecone.data.reading.numbers import DECIMAL_MARKS, parse_number, parse_numbers

__all__ = ["MISSING", "NUMBER", "TEXT", "TIME", "Values", "as_dates", "read_cells"]

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "NULL", "null"})
"""Cells of a CSV file that stand for a missing value."""

TEXT, NUMBER, TIME = "text", "number", "time"

_BOOLEAN = {"true": True, "false": False}
_BLANK = ord(" ")
_BLOCK = 8192
_INT64_DIGITS = 18
# A column is a broken column of numbers when so many of its cells are numbers, and when they are
# too many different ones for codes.
_NUMBER_SHARE = 0.9
_CODES = 10
_FEWEST = 4


@dataclass(frozen=True, eq=False)
class Values:
    """A column that was read.

    Attributes
    ----------
    values : array, shape (n_rows,)
        bool, int64, float64 (NaN where missing) or object (str, datetime, or bool with missing
        values; None where missing).
    mark : str or None
        Decimal mark that its numbers have; None when there is none in the column.
    marked_row : int
        First row with a decimal mark.
    """

    values: NDArray[Any]
    mark: str | None = None
    marked_row: int = 0


def read_cells(
    cells: Cells,
    name: str,
    *,
    kind: str | None = None,
    missing: Collection[str] = MISSING,
    marks: Sequence[str] = (".",),
) -> Generator[None, None, Values]:
    """Values of the narrowest type that all cells of a column have.

    Yields after every block of rows: the columns of a file are read in step, so that the lines
    they stand in are still at hand. A time (``kind``) is a number or a date; None finds out the
    kind. Blanks around a cell do not count. A column has one of the decimal ``marks``.

    Raises
    ------
    ValueError
        When a cell (named with its row) keeps a column of numbers from being one, and for a cell
        that is not a number when ``kind`` is "number".
    """
    if kind != TEXT:
        for mark in marks:
            found = yield from _numbers(cells, missing, mark)
            if found is not None:
                return found
    texts = yield from _texts(cells, missing)
    if kind != TEXT:
        if all(text is None or text.lower() in _BOOLEAN for text in set(texts)):
            flags = [None if text is None else _BOOLEAN[text.lower()] for text in texts]
            return Values(np.array(flags, dtype=object if None in flags else bool))
        if kind == TIME and (dates := as_dates(texts, name)) is not None:
            return Values(dates)
        if kind in (NUMBER, TIME):
            _refuse_text(texts, name, marks)
        _refuse_nearly_numbers(texts, name)
    values = np.empty(len(texts), dtype=object)
    values[:] = texts
    return Values(values)


def as_dates(texts: Sequence[str | None], name: str) -> NDArray[Any] | None:
    """Dates (datetime objects, None where missing) from ISO 8601; None when no text is one.

    Raises
    ------
    ValueError
        When some are dates and one is not; the row is named.
    """
    dates = np.empty(len(texts), dtype=object)
    wrong = None
    for row, text in enumerate(texts):
        try:
            # Python 3.10 does not know the Z of UTC.
            dates[row] = (
                None if text is None else datetime.fromisoformat(text.replace("Z", "+00:00"))
            )
        except ValueError:
            wrong = row if wrong is None else wrong
    if wrong is None:
        return dates
    if any(date is not None for date in dates):
        raise ValueError(
            f"column {name!r} holds {texts[wrong]!r} in row {wrong}, and dates such as "
            f"{next(date for date in dates if date is not None):%Y-%m-%d} elsewhere"
        )
    return None


def _trimmed(cells: Cells) -> Cells:
    """The cells without the blanks around them."""
    buffer = np.frombuffer(cells.buffer, np.uint8)
    while (blank := (cells.starts < cells.ends) & (buffer[cells.starts] == _BLANK)).any():
        cells = Cells(cells.buffer, cells.starts + blank, cells.ends)
    while (blank := (cells.starts < cells.ends) & (buffer[cells.ends - 1] == _BLANK)).any():
        cells = Cells(cells.buffer, cells.starts, cells.ends - blank)
    return cells


def _numbers(
    cells: Cells, missing: Collection[str], mark: str
) -> Generator[None, None, Values | None]:
    """The column as numbers, None when a cell is neither a number nor missing."""
    values = np.empty(len(cells))
    whole, complete, n_digits, marked_row = True, True, 0, None
    known: dict[bytes, float] = {}
    codes = [value for text in missing if (value := parse_number(text, mark)) is not None]
    for rows, block in cells.blocks(_BLOCK):
        numbers = parse_numbers(block, mark)
        if not numbers.plain.all() and (trimmed := _trimmed(block)) is not block:
            block, numbers = trimmed, parse_numbers(trimmed, mark)
        values[rows] = numbers.values
        if codes and (absent := numbers.plain & np.isin(numbers.values, codes)).any():
            values[rows][absent] = np.nan
            complete = False
        n_digits = max(n_digits, numbers.n_digits)
        if numbers.marked:
            whole = False
            if marked_row is None:
                has_mark = (block.padded() == ord(mark)).any(axis=1) & numbers.plain
                marked_row = rows.start + int(np.argmax(has_mark))
        other = ~numbers.plain
        if other.any():
            odd = block.take(other).tolist()
            for cell in set(odd).difference(known):
                text = cell.decode().strip()
                value = np.nan if text in missing else parse_number(text, mark)
                if value is None:
                    return None
                known[cell] = value
            values[rows][other] = [known[cell] for cell in odd]
        yield
    if known:
        complete &= not np.isnan(list(known.values())).any()
        whole &= all(np.isnan(value) for value in known.values())
    if whole and complete and n_digits <= _INT64_DIGITS:
        exact = values.astype(np.int64) if n_digits <= 15 else _integers(cells)
        return Values(exact)
    return Values(values, None if marked_row is None else mark, marked_row or 0)


def _integers(cells: Cells) -> NDArray[np.int64]:
    return np.array([int(cell) for cell in cells.tolist()], dtype=np.int64)


def _texts(cells: Cells, missing: Collection[str]) -> Generator[None, None, list[str | None]]:
    """The cells as text, None where missing; equal texts are one object."""
    known: dict[bytes, str | None] = {}
    texts: list[str | None] = []
    for _, block in cells.blocks(_BLOCK):
        found = block.tolist()
        for cell in set(found).difference(known):
            text = cell.decode().strip()
            known[cell] = None if text in missing else text
        texts += map(known.__getitem__, found)
        yield
    return texts


def _is_number(text: str, *marks: str) -> bool:
    return any(parse_number(text, mark) is not None for mark in marks)


def _refuse_text(texts: Sequence[str | None], name: str, marks: Sequence[str]) -> NoReturn:
    """Raise for the first cell that is no number, or has the wrong decimal mark."""
    for allowed in (marks, marks[:1]):
        for row, text in enumerate(texts):
            if text is not None and not _is_number(text, *allowed):
                raise ValueError(f"column {name!r} is not numeric; row {row} holds {text}")
    raise AssertionError("a column of numbers is not text")


def _refuse_nearly_numbers(texts: list[str | None], name: str) -> None:
    """Raise when a few cells keep a column from being one of numbers."""
    numbers = {text for text in set(texts) if text and _is_number(text, *DECIMAL_MARKS)}
    if not numbers:
        return
    count = Counter(texts)
    n_missing = count.pop(None, 0)
    n_numbers = sum(count[text] for text in numbers)
    n_odd = sum(count.values()) - n_numbers
    if n_numbers < _FEWEST or n_odd > max(1, (1 - _NUMBER_SHARE) * (len(texts) - n_missing)):
        return
    if len(numbers) <= min(_CODES, n_numbers // 2):
        return
    way_out = f"take the column as text (--categorical {quote(name)})"
    odd = next((text for text in texts if text is not None and text not in numbers), None)
    if odd is not None:
        raise ValueError(
            f"column {name!r} holds {odd!r} in row {texts.index(odd)}, and nearly all its other "
            f"cells are numbers; correct it, take it for missing (--na {quote(odd)}) or {way_out}"
        )
    comma = next(text for text in texts if text is not None and not _is_number(text, "."))
    raise ValueError(
        f"column {name!r} holds {comma!r} in row {texts.index(comma)}; decimal commas are read "
        "where no cell of the column has a decimal point and the cells are separated by "
        f"semicolons or tabs; write a point, or {way_out}"
    )
