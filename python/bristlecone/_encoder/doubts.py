"""Warnings about text or categories that may be encoded in an unintended way."""

from __future__ import annotations

from bristlecone._data.checks import is_number
from bristlecone._data.numbers import parse_number
from bristlecone._encoder.columns import CategoricalColumn
from bristlecone._encoder.risk import FEWEST

# A column with more levels than this, none of them frequent enough, gives a warning.
_MANY_LEVELS = 20


def rounded_integers(name: str) -> str:
    """Warning about a column whose integers float64 does not represent."""
    return (
        f"column {name!r} contains integers beyond 2**53, which are rounded: different ones may "
        "count as equal"
    )


def lost_missing(name: str, value: bool | float, n_missing: int) -> str:
    """Warning about a column with a single value that also replaces its missing ones."""
    shown = value if isinstance(value, bool) else f"{value:g}"
    return (
        f"column {name!r} has the single value {shown}, which also replaces the missing value of "
        f"{n_missing} row{'s' if n_missing > 1 else ''}, so it gives no feature; pass "
        "BinaryEncoder(missing='branch') to split on whether it is missing"
    )


def column_doubts(
    column: CategoricalColumn,
    *,
    frequent: bool,
    min_support: float,
    n_rare: int,
    merged: bool,
    tried: bool,
) -> list[str]:
    """Warnings about a column.

    ``frequent`` says whether it gives a feature, and ``n_rare`` how many levels count as average.
    ``merged`` says whether rare levels share a feature although they were to be ordered by risk,
    and ``tried`` whether there were outcomes to order them by.
    """
    found = []
    levels = column.levels
    texts = [level.strip() for level in levels if isinstance(level, str)]
    numbers = [text for text in texts if is_number(parse_number(text))]
    if not column.declared and len(levels) > 2 and len(numbers) == len(levels):
        found.append(
            f"column {column.name!r} contains only numbers stored as text, such as {levels[0]!r}, "
            "and is treated as a category; convert it to numbers to split it at thresholds, or to "
            "a categorical type if you mean categories"
        )
    if len(levels) > _MANY_LEVELS and not frequent:
        found.append(
            f"column {column.name!r} has {len(levels)} levels, and none of them reaches the share "
            f"min_support={min_support:g} of the rows, so it gives hardly any feature; group its "
            "levels, lower min_support, or drop the column if it identifies rows"
        )
    elif merged:
        reason = (
            "the outcomes do not show that the risk differs between its levels"
            if tried
            else "they are ordered by risk only if y is passed"
        )
        found.append(
            f"column {column.name!r} has {len(levels)} levels, and the rarest are merged into "
            f'"{column.name} = other": {reason}; raise max_categories to keep them apart'
        )
    elif n_rare:
        found.append(
            f"column {column.name!r}: {n_rare} of its {len(levels)} levels have fewer than "
            f"{FEWEST} rows and count as average; group them if they matter"
        )
    return found
