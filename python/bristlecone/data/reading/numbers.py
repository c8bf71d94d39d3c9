"""Decimal numbers from bytes, a block of cells at a time."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bristlecone import _core
from bristlecone.data.reading.cells import Cells

__all__ = ["DECIMAL_MARKS", "Numbers", "parse_number", "parse_numbers", "read_integers"]

DECIMAL_MARKS = (".", ",")

_NUMBER = {
    mark: re.compile(
        rf"[+-]?([0-9]+{re.escape(mark)}?[0-9]*|{re.escape(mark)}[0-9]+)([eE][+-]?[0-9]+)?"
        r"|[+-]?inf(inity)?",
        re.IGNORECASE,
    )
    for mark in DECIMAL_MARKS
}


class Numbers(NamedTuple):
    """What a block of cells holds.

    Attributes
    ----------
    values : float array, shape (n_rows,)
        Correctly rounded; NaN where the cell is blank or odd.
    odd : int array
        Rows of the cells that are neither blank nor a number (infinity is odd).
    blank : bool
        Whether a cell is blank.
    marked : int or None
        Row of the first number with a decimal mark.
    whole : bool
        Whether no number has a decimal mark or an exponent.
    n_digits : int
        Most digits of a number, those of exponents apart.
    """

    values: NDArray[np.float64]
    odd: NDArray[np.uint64]
    blank: bool
    marked: int | None
    whole: bool
    n_digits: int


def parse_number(text: str, mark: str) -> float | None:
    """A number as it is written, None when it is none."""
    return float(text.replace(mark, ".")) if _NUMBER[mark].fullmatch(text) else None


def parse_numbers(cells: Cells, mark: str) -> Numbers:
    """Values of the cells that are numbers with this decimal mark, with spaces around or not."""
    return Numbers(**_core.read_numbers(cells.buffer, cells.bounds, mark))


def read_integers(cells: Cells) -> NDArray[np.int64]:
    """Values of cells that are whole numbers of at most 18 digits, exactly."""
    return _core.read_integers(cells.buffer, cells.bounds)
