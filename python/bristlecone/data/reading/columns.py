"""What type a column of cells has, and its values."""

from __future__ import annotations

from collections.abc import Collection, Generator, Sequence
from dataclasses import dataclass
from datetime import datetime
from shlex import quote
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from bristlecone.data.reading.cells import Cells
from bristlecone.data.reading.numbers import (
    DECIMAL_MARKS,
    parse_number,
    parse_numbers,
    read_integers,
)

__all__ = ["MISSING", "NUMBER", "TEXT", "TIME", "Values", "as_dates", "read_cells"]

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "NULL", "null"})
"""Cells of a CSV file that stand for a missing value."""

TEXT, NUMBER, TIME = "text", "number", "time"

_BOOLEAN = {"true": True, "false": False}
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

    Yields after every block of numbers: the columns of a file are read in step, so that the lines
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
    texts = _texts(cells, missing)
    if kind == TEXT:
        return Values(texts.values())
    if all(text is None or text.lower() in _BOOLEAN for text in texts.distinct):
        flags = [None if text is None else _BOOLEAN[text.lower()] for text in texts.distinct]
        return Values(np.array(flags, dtype=object if None in flags else bool)[texts.codes])
    if kind == TIME and (dates := as_dates(texts.values().tolist(), name)) is not None:
        return Values(dates)
    if kind in (NUMBER, TIME):
        _refuse_text(texts, name, marks)
    _refuse_nearly_numbers(texts, name)
    return Values(texts.values())


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


def _numbers(
    cells: Cells, missing: Collection[str], mark: str
) -> Generator[None, None, Values | None]:
    """The column as numbers, None when a cell is neither a number nor missing."""
    values = np.empty(len(cells))
    whole, complete, n_digits, marked_row = True, True, 0, None
    absent = [value for text in missing if (value := parse_number(text, mark)) is not None]
    for rows, block in cells.blocks(_BLOCK):
        numbers = parse_numbers(block, mark)
        values[rows] = numbers.values
        if absent and (coded := np.isin(numbers.values, absent)).any():
            values[rows][coded] = np.nan
            complete = False
        complete &= not numbers.blank
        whole &= numbers.whole
        n_digits = max(n_digits, numbers.n_digits)
        if numbers.marked is not None and marked_row is None:
            marked_row = rows.start + numbers.marked
        if len(numbers.odd):
            codes, odd = block.take(numbers.odd).levels()
            meant = [_odd_number(cell, missing, mark) for cell in odd]
            if None in meant:
                return None
            is_missing = np.isnan(read := np.array(meant, dtype=float))
            complete &= not is_missing.any()
            whole &= bool(is_missing.all())
            values[rows][numbers.odd] = read[codes]
        yield
    if whole and complete and n_digits <= _INT64_DIGITS:
        exact = values.astype(np.int64) if n_digits <= 15 else read_integers(cells)
        return Values(exact)
    return Values(values, None if marked_row is None else mark, marked_row or 0)


def _odd_number(cell: str, missing: Collection[str], mark: str) -> float | None:
    """NaN for a missing value, None for what is no number."""
    text = cell.strip()
    return np.nan if text in missing else parse_number(text, mark)


class _Texts(NamedTuple):
    """The cells of a column as text.

    Attributes
    ----------
    distinct : list of str or None
        As they occur, None where missing.
    codes : int array, shape (n_rows,)
        Which of them every row has.
    """

    distinct: list[str | None]
    codes: NDArray[Any]

    def values(self) -> NDArray[Any]:
        """Text of every row, None where missing; equal texts are one object."""
        distinct = np.empty(len(self.distinct), dtype=object)
        distinct[:] = self.distinct
        values: NDArray[Any] = distinct[self.codes]
        return values

    def first_row(self, text: str) -> int:
        return int(np.argmax(self.codes == self.distinct.index(text)))


def _texts(cells: Cells, missing: Collection[str]) -> _Texts:
    codes, found = cells.levels()
    texts = [None if (text := cell.strip()) in missing else text for cell in found]
    distinct = list(dict.fromkeys(texts))
    if len(distinct) < len(texts):
        code_of = {text: code for code, text in enumerate(distinct)}
        codes = np.array([code_of[text] for text in texts])[codes]
    return _Texts(distinct, codes)


def _is_number(text: str, *marks: str) -> bool:
    return any(parse_number(text, mark) is not None for mark in marks)


def _refuse_text(texts: _Texts, name: str, marks: Sequence[str]) -> NoReturn:
    """Raise for the first cell that is no number, or has the wrong decimal mark."""
    for allowed in (marks, marks[:1]):
        for text in texts.distinct:
            if text is not None and not _is_number(text, *allowed):
                row = texts.first_row(text)
                raise ValueError(f"column {name!r} is not numeric; row {row} holds {text}")
    raise AssertionError("a column of numbers is not text")


def _refuse_nearly_numbers(texts: _Texts, name: str) -> None:
    """Raise when a few cells keep a column from being one of numbers."""
    counts = np.bincount(texts.codes).tolist()
    n_missing = counts[texts.distinct.index(None)] if None in texts.distinct else 0
    n_present = len(texts.codes) - n_missing
    most_odd, n_odd, numbers = max(1, (1 - _NUMBER_SHARE) * n_present), 0, set()
    for text, count in zip(texts.distinct, counts, strict=True):
        if text is None:
            continue
        if _is_number(text, *DECIMAL_MARKS):
            numbers.add(text)
        elif (n_odd := n_odd + count) > most_odd:
            return
    n_numbers = n_present - n_odd
    if n_numbers < _FEWEST:
        return
    if len(numbers) <= min(_CODES, n_numbers // 2):
        return
    way_out = f"take the column as text (--categorical {quote(name)})"
    present = [text for text in texts.distinct if text is not None]
    odd = next((text for text in present if text not in numbers), None)
    if odd is not None:
        raise ValueError(
            f"column {name!r} holds {odd!r} in row {texts.first_row(odd)}, and nearly all its "
            f"other cells are numbers; correct it, take it for missing (--na {quote(odd)}) or "
            f"{way_out}"
        )
    comma = next(text for text in present if not _is_number(text, "."))
    raise ValueError(
        f"column {name!r} holds {comma!r} in row {texts.first_row(comma)}; decimal commas are read "
        "where no cell of the column has a decimal point and the cells are separated by "
        f"semicolons or tabs; write a point, or {way_out}"
    )
