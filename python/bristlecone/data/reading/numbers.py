"""Decimal numbers from bytes, a block of cells at a time."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bristlecone.data.reading.cells import Cells

__all__ = ["DECIMAL_MARKS", "Numbers", "parse_number", "parse_numbers"]

DECIMAL_MARKS = (".", ",")

# Fewer digits than this are an integer below 2**53, which a power of ten divides exactly rounded.
_EXACT = 15
_POWERS = 10.0 ** np.arange(_EXACT + 1)
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
        Correctly rounded; anything where the cell is no plain number.
    plain : bool array, shape (n_rows,)
        Whether the cell is digits with at most one sign before and one decimal mark among them.
    marked : bool
        Whether a plain number has a decimal mark.
    n_digits : int
        Most digits of a plain number.
    """

    values: NDArray[np.float64]
    plain: NDArray[np.bool_]
    marked: bool
    n_digits: int


def parse_number(text: str, mark: str) -> float | None:
    """A number as it is written, None when it is none."""
    return float(text.replace(mark, ".")) if _NUMBER[mark].fullmatch(text) else None


def parse_numbers(cells: Cells, mark: str) -> Numbers:
    """Values of the cells that are plain numbers.

    Parameters
    ----------
    cells : Cells
        Without blanks around the numbers.
    mark : {".", ","}
        Decimal mark.
    """
    padded = cells.padded()
    length = cells.ends - cells.starts
    text = np.ascontiguousarray(padded.T)
    digit = text - np.uint8(ord("0"))
    is_digit = digit < 10
    is_mark = text == ord(mark)
    negative = text[0] == ord("-")
    signed = negative | (text[0] == ord("+"))
    n_digits = np.add.reduce(is_digit, axis=0, dtype=np.uint8)
    n_marks = np.add.reduce(is_mark, axis=0, dtype=np.uint8)
    plain = (n_digits + n_marks + signed == length) & (n_marks <= 1) & (n_digits > 0)

    # Times ten and plus the digit where there is one, times one and plus nothing elsewhere.
    factor = 1 + 9 * is_digit.view(np.uint8)
    digit *= is_digit
    values = digit[0].astype(np.float64)
    for k in range(1, len(digit)):
        values *= factor[k]
        values += digit[k]
    marked = bool((n_marks[plain] > 0).any())
    if marked:
        place = np.arange(len(text), dtype=np.uint8)[:, np.newaxis]
        at = np.add.reduce(is_mark * place, axis=0, dtype=np.uint8)
        decimals = np.where(plain & (n_marks == 1), length - at - 1, 0)
        values /= _POWERS[np.minimum(decimals, _EXACT)]
    np.negative(values, out=values, where=negative)
    long = plain & (n_digits > _EXACT)
    if long.any():
        written = np.where(padded[long] == ord(mark), np.uint8(ord(".")), padded[long])
        values[long] = written.view(f"S{written.shape[1]}").ravel().astype(np.float64)
    return Numbers(values, plain, marked, int(n_digits[plain].max(initial=0)))
