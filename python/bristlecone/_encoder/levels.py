"""Features of a categorical column without an order: one per frequent level, one for the others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from bristlecone._encoder.columns import CategoricalColumn
from bristlecone._encoder.features import Level, Other, level_text
from bristlecone._encoder.schema import sort_key

__all__ = ["level_features"]


def level_features(
    column: CategoricalColumn,
    code: NDArray[np.int64],
    total: NDArray[np.float64],
    max_categories: int | None,
) -> Iterator[Level | Other]:
    """Levels that occur, in sorted order; those beyond the most frequent are merged into "other".

    ``code`` has the distinct codes of the rows, ``total`` their weights. Of equally frequent levels
    the first in sorted order is kept; None keeps all.
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
