"""Columns read by pandas: dates, and checks of text that should be numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from shlex import quote
from typing import Any

from bristlecone._data.numbers import DECIMAL_MARKS, parse_number

TEXT, NUMBER, TIME = "text", "number", "time"
# A text column is considered a broken column of numbers if this share of its cells are numbers,
# with too many different values for codes.
_NUMBER_SHARE = 0.9
_CODES = 10
_FEWEST = 4
# Dates that ISO 8601 does not allow: 31.12.2020, 31/12/2020, 12-31-2020.
_OTHER_DATE = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})")
# Numbers with a separator of thousands or a percent sign: 7,012.00, 1'234, 70%.
_DECORATED = re.compile(r"[+-]?(\d{1,3}([,.' \u00a0]\d{3})+([.,]\d+)?|\d+([.,]\d+)?) ?%?")
_SAMPLE = 200


class CellError(Exception):
    """A cell that cannot be read.

    Attributes
    ----------
    row : int
    column : str
    problem : str
        What is wrong, as the end of a sentence that names the file, the place and the column.
    """

    def __init__(self, row: int, column: str, problem: str) -> None:
        super().__init__(problem)
        self.row, self.column, self.problem = row, column, problem


def _cell_error(column: Any, value: Any, problem: str) -> CellError:
    """The error about the first cell with this value."""
    return CellError(int((column == value).to_numpy().argmax()), str(column.name), problem)


def typed(column: Any, kind: str | None, mark: str) -> Any:
    """Convert a column of a CSV file to a kind; None detects the kind.

    pandas has already read numbers and booleans. A time is a number or a date in ISO 8601.

    Raises
    ------
    CellError
        For a cell that is not of the kind, and for one of a few cells that keep a column from
        being numbers.
    """
    if kind == TEXT or column.dtype.kind != "O" or (kind is None and _is_text(column)):
        return column
    levels = column.dropna().unique().tolist()
    if all(isinstance(level, bool) for level in levels):
        return column
    if all(_is_number(level, mark) for level in levels):
        # Whole numbers beyond 64 bits.
        return column.map({level: parse_number(str(level), mark) for level in levels})
    if mark == "," and all(_is_number(level, ".") for level in levels):
        raise _wrong_mark(column, levels, mark)
    if kind == TIME and (moments := dates(column)) is not None:
        return moments
    if kind in (NUMBER, TIME):
        odd = next(level for level in levels if not _is_number(level, mark))
        raise _cell_error(column, odd, not_a_number(str(odd)))
    _refuse_nearly_numbers(column, levels, mark)
    _refuse_decorated(column, levels)
    return column


def not_a_number(text: str) -> str:
    """Message about a text where a number is expected; for a date, it shows how to write one."""
    date = _OTHER_DATE.fullmatch(text.strip())
    if date is None:
        return f"{text!r} is not a number"
    day, mark, month, year = date.groups()
    message = f"{text!r} is not a number; write dates as year-month-day"
    # With other separators, the month may come first.
    if mark == "." and int(day) <= 31 and int(month) <= 12:
        message += f", here {year}-{int(month):02}-{int(day):02}"
    return message


def are_dates(column: Any) -> bool:
    """Whether a column of text holds only dates, in any common form."""
    if column.dtype.kind != "O":
        return False
    levels = column.dropna().unique().tolist()
    return bool(levels) and all(
        isinstance(level, str)
        and (_date(level) is not None or _OTHER_DATE.fullmatch(level.strip()) is not None)
        for level in levels
    )


def dates(column: Any) -> Any:
    """Dates of texts in ISO 8601; None if none of them is a date.

    Raises
    ------
    CellError
        If some texts are dates and one is not.
    """
    levels = column.dropna().unique().tolist()
    found = {level: date for level in levels if (date := _date(level)) is not None}
    if not found:
        return None
    if len(found) < len(levels):
        odd = next(level for level in levels if level not in found)
        example = next(iter(found))
        problem = f"{odd!r} is not a date, but other cells are, such as {example!r}"
        raise _cell_error(column, odd, problem)
    return column.map(found)


def _date(text: str) -> datetime | None:
    try:
        # Python 3.10 does not accept the Z of UTC.
        return datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None


def has_commas(frame: Any) -> bool:
    """Whether a column of text contains numbers with decimal commas."""
    texts = [frame[name] for name in frame.columns if frame[name].dtype.kind == "O"]
    return any(
        have_commas(column.dropna().unique().tolist()) for column in texts if not _is_text(column)
    )


def have_commas(cells: Iterable[Any]) -> bool:
    """Whether all cells are numbers, and some have decimal commas."""
    has_comma = False
    for cell in cells:
        if not isinstance(cell, str) or parse_number(cell, ",") is None:
            return False
        has_comma |= parse_number(cell) is None
    return has_comma


def _is_text(column: Any) -> bool:
    """Whether most cells, sampled evenly, are neither numbers nor missing.

    If so, the column is not a broken column of numbers, which need not be checked further.
    """
    cells = column.iloc[:: len(column) // _SAMPLE + 1].dropna().tolist()
    odd = [
        isinstance(cell, str)
        and not (_is_number(cell, *DECIMAL_MARKS) or _DECORATED.fullmatch(cell.strip()))
        for cell in cells
    ]
    return 2 * sum(odd) > len(cells)


def _is_number(level: Any, *marks: str) -> bool:
    return any(parse_number(str(level), mark) is not None for mark in marks)


def _refuse_nearly_numbers(column: Any, levels: list[Any], mark: str) -> None:
    """Raise CellError if only a few cells keep a column from being numeric."""
    n_present = int(column.notna().sum())
    most_odd = max(1, (1 - _NUMBER_SHARE) * n_present)
    odd: list[Any] = []
    for level in levels:
        if not _is_number(level, *DECIMAL_MARKS):
            odd.append(level)
            if len(odd) > most_odd:
                return
    n_odd = int(column.isin(odd).sum())
    n_numbers = n_present - n_odd
    if n_odd > most_odd or n_numbers < _FEWEST:
        return
    if len(levels) - len(odd) <= min(_CODES, n_numbers // 2):
        return
    if not odd:
        raise _wrong_mark(column, levels, mark)
    raise _cell_error(
        column,
        odd[0],
        f"{odd[0]!r} is not a number, but nearly all other cells are; correct it, read it as "
        f"missing (--na {quote(odd[0])}) or {_as_text(column)}",
    )


def _refuse_decorated(column: Any, levels: list[Any]) -> None:
    """Raise CellError for numbers with separators of thousands or percent signs."""
    if len(levels) <= _CODES or not all(_DECORATED.fullmatch(str(one).strip()) for one in levels):
        return
    odd = next(level for level in levels if not _is_number(level, *DECIMAL_MARKS))
    raise _cell_error(
        column,
        odd,
        f"{odd!r} has a separator of thousands or a percent sign; write plain numbers, or "
        f"{_as_text(column)}",
    )


def _wrong_mark(column: Any, levels: list[Any], mark: str) -> CellError:
    """The error about a column in which some numbers have the other decimal mark."""
    wrong = next(level for level in levels if not _is_number(level, mark))
    return _cell_error(
        column,
        wrong,
        f"{wrong!r} has a decimal {'comma' if mark == '.' else 'point'}; the numbers of a file "
        "must have points, or commas in all columns if semicolons or tabs separate the cells. "
        f"Write them alike, or {_as_text(column)}",
    )


def _as_text(column: Any) -> str:
    return f"read the column as text (--categorical {quote(str(column.name))})"
