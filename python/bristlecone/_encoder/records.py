"""Fitted encoders in the form of a model file; features and columns are records themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from msgspec import Meta

from bristlecone._data.records import Record
from bristlecone._encoder.design_columns import DesignColumn
from bristlecone._encoder.features import Feature
from bristlecone._encoder.schema import ColumnSchema
from bristlecone.exceptions import ModelFormatError

# The kinds of column that a feature can ask about.
_KINDS = {
    "at most": ("number",),
    "flag": ("flag",),
    "level": ("categorical",),
    "missing": ("flag", "number", "categorical"),
}


class BinaryParameters(Record, frozen=True):
    """Constructor parameters of a ``BinaryEncoder``."""

    thresholds: str
    n_thresholds: int
    max_categories: int | None
    categories: str
    missing: str
    min_support: int | float
    max_features: int | None
    handle_unknown: str


class BinaryRecord(Record, frozen=True, tag="binary"):
    """A fitted ``BinaryEncoder``."""

    parameters: BinaryParameters
    named: bool
    columns: list[ColumnSchema]
    constant: list[str]
    features: list[Feature]

    def check(self) -> None:
        """Raise ModelFormatError if fields contradict each other."""
        _check_columns(self.columns, self.constant)
        kinds = {column.name: column.kind for column in self.columns}
        for index, feature in enumerate(self.features):
            _check_asked(feature, kinds, f"features[{index}]")
        if len({feature.name for feature in self.features}) < len(self.features):
            raise ModelFormatError("features: two have the same name")


class DesignRecord(Record, frozen=True, tag="design"):
    """A fitted ``DesignEncoder``."""

    max_categories: Annotated[int, Meta(ge=1)] | None
    handle_unknown: str
    named: bool
    columns: list[ColumnSchema]
    constant: list[str]
    design: list[DesignColumn]

    def check(self) -> None:
        """Raise ModelFormatError if fields contradict each other."""
        _check_columns(self.columns, self.constant)
        if self.handle_unknown not in ("ignore", "error"):
            raise ModelFormatError(f"handle_unknown is {self.handle_unknown!r}")
        kinds = {column.name: column.kind for column in self.columns}
        for index, one in enumerate(self.design):
            kind, question = kinds.get(one.column), one.question
            if question is None:
                fits = kind in ("flag", "number")
            else:
                _check_asked(question, kinds, f"design[{index}].question")
                fits = kind == "categorical" and question.column == one.column
            if not fits:
                raise ModelFormatError(f"design[{index}] does not fit column {one.column!r}")
            if not one.low < one.high:
                raise ModelFormatError(f"design[{index}].high is not above low")
        if len({one.name for one in self.design}) < len(self.design):
            raise ModelFormatError("design: two have the same name")


def _check_asked(feature: Feature, kinds: Mapping[str, str], where: str) -> None:
    """Raise ModelFormatError unless the kind of the column, by name, fits the feature."""
    if kinds.get(feature.column) not in _KINDS[feature.asks]:
        what: Any = feature.__struct_config__.tag
        raise ModelFormatError(f"{where} asks for a {what} of column {feature.column!r}")


def _check_columns(columns: Sequence[ColumnSchema], constant: Sequence[str]) -> None:
    names = [column.name for column in columns]
    if not names or len(set(names)) < len(names) or not all(names):
        raise ModelFormatError("columns must have distinct names and be at least one")
    if not set(constant) <= set(names):
        raise ModelFormatError("constant names a column that does not exist")
