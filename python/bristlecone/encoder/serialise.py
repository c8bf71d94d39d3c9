"""Fitted encoders as plain JSON values and back, checked on the way in."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, fields
from typing import Any

from bristlecone.encoder.features import AtMost, Feature, Flag, Level, Missing, Other, Threshold
from bristlecone.encoder.schema import KINDS, ColumnSchema
from bristlecone.errors import ModelFormatError

__all__ = ["columns_from_json", "features_from_json", "read_fields", "to_json"]

_FEATURES: dict[str, type[Feature]] = {
    "threshold": Threshold,
    "flag": Flag,
    "level": Level,
    "other": Other,
    "at most": AtMost,
    "missing": Missing,
}
_TYPES = {cls: name for name, cls in _FEATURES.items()}
# the kinds of column that a feature can ask about
_KINDS: dict[type[Feature], tuple[str, ...]] = {
    Threshold: ("number",),
    Flag: ("flag",),
    Level: ("categorical",),
    Other: ("categorical",),
    AtMost: ("categorical",),
    Missing: ("flag", "number", "categorical"),
}


def to_json(record: Feature | ColumnSchema) -> dict[str, Any]:
    """A feature or column as a dictionary of plain values."""
    plain = {
        key: list(value) if isinstance(value, tuple) else value
        for key, value in asdict(record).items()
    }
    return plain if isinstance(record, ColumnSchema) else {"type": _TYPES[type(record)], **plain}


def columns_from_json(data: list[Any]) -> list[ColumnSchema]:
    """Columns from their dictionaries; ModelFormatError names what is wrong."""
    columns = []
    for index, entry in enumerate(data):
        where = f"columns[{index}]"
        column = ColumnSchema(**_read_record(entry, ColumnSchema, where))
        if column.kind not in KINDS:
            raise ModelFormatError(f"encoder: {where}.kind is {column.kind!r}")
        columns.append(column)
    names = [column.name for column in columns]
    if not names or len(set(names)) < len(names) or not all(names):
        raise ModelFormatError("encoder: columns must have distinct names and be at least one")
    return columns


def features_from_json(data: list[Any], columns: list[ColumnSchema]) -> list[Feature]:
    """Features of the given columns; ModelFormatError names what is wrong."""
    kinds = {column.name: column.kind for column in columns}
    features: list[Feature] = []
    for index, entry in enumerate(data):
        where = f"features[{index}]"
        if not isinstance(entry, dict) or entry.get("type") not in list(_FEATURES):
            raise ModelFormatError(f"encoder: {where} is not a feature of a known type")
        cls = _FEATURES[entry["type"]]
        plain = {key: value for key, value in entry.items() if key != "type"}
        feature = cls(**_read_record(plain, cls, where))
        if kinds.get(feature.column) not in _KINDS[cls]:
            raise ModelFormatError(
                f"encoder: {where} asks for a {entry['type']} of column {feature.column!r}"
            )
        features.append(feature)
    if len({feature.name for feature in features}) < len(features):
        raise ModelFormatError("encoder: two features have the same name")
    return features


def read_fields(data: Any, types: dict[str, Callable[[Any], bool]], where: str) -> dict[str, Any]:
    """The dictionary, if it has just these keys and each value passes its test."""
    if not isinstance(data, dict) or set(data) != set(types):
        found = sorted(map(str, data)) if isinstance(data, dict) else type(data).__name__
        raise ModelFormatError(f"encoder: {where} must hold {sorted(types)}; got {found}")
    for key, is_valid in types.items():
        if not is_valid(data[key]):
            raise ModelFormatError(f"encoder: {where}.{key} is {data[key]!r}")
    return data


def _is_number(value: Any) -> bool:
    try:
        return type(value) in (int, float) and math.isfinite(value)
    except OverflowError:  # a whole number beyond the range of float64
        return False


def _is_category(value: Any) -> bool:
    return isinstance(value, (str, bool)) or _is_number(value)


_TESTS: dict[str, Callable[[Any], bool]] = {
    "name": lambda value: isinstance(value, str),
    "kind": lambda value: isinstance(value, str),
    "column": lambda value: isinstance(value, str),
    "condition": lambda value: isinstance(value, str),
    "n_missing": lambda value: (
        isinstance(value, int) and not isinstance(value, bool) and value >= 0
    ),
    "fill": lambda value: value is None or isinstance(value, bool) or _is_number(value),
    "ordered": lambda value: isinstance(value, bool),
    "missing": lambda value: isinstance(value, bool),
    "whole": lambda value: isinstance(value, bool),
    "value": _is_number,
    "level": _is_category,
    "levels": lambda value: isinstance(value, list) and all(map(_is_category, value)),
}


def _read_record(data: Any, cls: type[Feature] | type[ColumnSchema], where: str) -> dict[str, Any]:
    checked = read_fields(data, {field.name: _TESTS[field.name] for field in fields(cls)}, where)
    return {
        key: tuple(value) if isinstance(value, list) else value for key, value in checked.items()
    }
