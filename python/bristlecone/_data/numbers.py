"""Numbers as they are written."""

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
    """The number that the whole text is, None if it is none."""
    return float(text.replace(mark, ".")) if _NUMBER[mark].fullmatch(text) else None
