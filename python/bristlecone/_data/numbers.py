"""Numbers in the form in which people write them."""

from __future__ import annotations

import re

DECIMAL_MARKS = (".", ",")

_NUMBER = {
    mark: re.compile(
        rf"[+-]?([0-9]+{re.escape(mark)}?[0-9]*|{re.escape(mark)}[0-9]+)([eE][+-]?[0-9]+)?"
        r"|[+-]?inf(inity)?",
        re.IGNORECASE,
    )
    for mark in DECIMAL_MARKS
}


def parse_number(text: str, mark: str = ".") -> float | None:
    """The number that the whole text represents; None if it is not a number."""
    return float(text.replace(mark, ".")) if _NUMBER[mark].fullmatch(text) else None
