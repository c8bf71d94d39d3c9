"""Features of levels: one per frequent level and one for the others, or thresholds of an order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bristlecone._encoder.columns import CategoricalColumn
from bristlecone._encoder.features import AtMost, Level, Other, level_text
from bristlecone._encoder.schema import sort_key
from bristlecone._encoder.thresholds import choose_gaps
from bristlecone._types import Floats, Integers


def level_features(
    column: CategoricalColumn,
    code: Integers,
    total: Floats,
    max_categories: int | None,
) -> Iterator[Level | Other]:
    """Features of the levels in sorted order; the less frequent are merged into "other".

    ``code`` contains the distinct codes of the rows, ``total`` their weights. Of equally frequent
    levels the first in sorted order is kept; None keeps all.
    """
    frequency = {column.levels[c]: t for c, t in zip(code, total, strict=True)}
    levels = sorted(frequency, key=sort_key)
    # sorted() is stable: equally frequent levels keep their order
    ranked = sorted(levels, key=lambda level: -frequency[level])
    rare = set() if max_categories is None else set(ranked[max_categories:])
    for level in levels:
        if level not in rare:
            yield Level(column=column.name, condition=f"= {level_text(level)}", level=level)
    if rare:
        merged = tuple(level for level in levels if level in rare)
        yield Other(column=column.name, condition="= other", levels=merged)


def step_features(
    column: CategoricalColumn,
    code: Integers,
    total: Floats,
    method: str,
    n_thresholds: int,
    unit: float,
) -> Iterator[AtMost]:
    """Thresholds between ordered levels, chosen as for numbers from the ranks that occur."""
    rank = np.arange(len(code), dtype=np.float64)
    for gap in choose_gaps(rank, total, method, n_thresholds, unit):
        levels = column.levels[: code[gap] + 1]
        condition = f"<= {level_text(levels[-1])}"
        yield AtMost(column=column.name, condition=condition, levels=levels)
