"""Splits as programs can evaluate them: one comparison with one column, without text to parse."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.columns import Category
from bristlecone._encoder.features import Feature, Level, Levels, Threshold
from bristlecone._tree import Tree


@dataclass(frozen=True, kw_only=True)
class Decision:
    """The question of a split about a row; rows that answer yes go left.

    Parameters
    ----------
    column : str
        Name of the column.
    place : int
        Its position among the columns of ``X``.
    kind : {"at most", "flag", "level", "missing"}
        "at most": the number, as float64, is at most ``bound``. "flag": the boolean is true, a
        number above a half. "level": the category is one of ``levels``; one that was not seen in
        training is in none. "missing": there is no value.
    numeric : bool
        Whether the column holds numbers or booleans; else categories.
    missing : bool
        The answer where there is no value.
    bound : float or None
        Of "at most".
    levels : tuple of str, bool, int or float
        Of "level": one level, the rare ones that were merged, the first ones of an ordered
        column, or those of least or greatest risk. They compare as Python does: True is 1 is 1.0,
        and "1" is neither.
    """

    column: str
    place: int
    kind: Literal["at most", "flag", "level", "missing"]
    numeric: bool
    missing: bool
    bound: float | None = None
    levels: tuple[Category, ...] = ()


def tree_decisions(encoder: Any, tree: Any) -> dict[int, Decision]:
    """Decision of every split of a fitted tree, by node id.

    Raises
    ------
    TypeError
        For a soft tree, whose splits weigh many columns at once, and for features of a custom
        encoder, which does not report what they ask.
    """
    if not isinstance(tree, Tree):
        raise TypeError(
            "a soft tree has no splits on single columns: its splits use many columns at once"
        )
    if not isinstance(encoder, BinaryEncoder):
        raise TypeError(
            f"{type(encoder).__name__} does not report the conditions of its features; a tree "
            "over a BinaryEncoder is needed"
        )
    decisions = feature_decisions(encoder)
    nodes = np.flatnonzero(~tree.is_leaf).tolist()
    return {node: decisions[tree.feature[node]] for node in nodes}


def feature_decisions(encoder: BinaryEncoder) -> list[Decision]:
    """Decision of every binary feature of a fitted encoder, in their order."""
    places = {schema.name: place for place, schema in enumerate(encoder.columns_)}
    numeric = {schema.name: schema.kind != "categorical" for schema in encoder.columns_}
    return [
        _decision(feature, places[feature.column], numeric[feature.column])
        for feature in encoder.features_
    ]


def _decision(feature: Feature, place: int, numeric: bool) -> Decision:
    levels: tuple[Category, ...] = ()
    if isinstance(feature, Level):
        levels = (feature.level,)
    elif isinstance(feature, Levels):
        levels = feature.levels
    return Decision(
        column=feature.column,
        place=place,
        kind=feature.asks,
        numeric=numeric,
        missing=feature.missing,
        bound=float(feature.value) if isinstance(feature, Threshold) else None,
        levels=levels,
    )
