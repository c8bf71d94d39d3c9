"""Columns as Python values, and the binary features of an encoder."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import compress
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.decisions import Decision, feature_decisions
from bristlecone._encoder.design import DesignEncoder
from bristlecone._types import Bools, Floats


@dataclass(frozen=True, eq=False)
class Values:
    """One column.

    Parameters
    ----------
    numbers : array of float, shape (n,), or None
        NaN where missing; None for a column with text.
    objects : list
        The values as they are, None where missing.
    """

    numbers: Floats | None
    objects: list[Any]

    @property
    def missing(self) -> Bools:
        """Whether there is no value."""
        if self.numbers is not None:
            return np.isnan(self.numbers)
        return np.array([value is None for value in self.objects], dtype=bool)

    def of(self, rows: Bools) -> Values:
        """Some of the rows."""
        numbers = None if self.numbers is None else self.numbers[rows]
        return Values(numbers, list(compress(self.objects, rows.tolist())))


class Table:
    """Columns of X by their position in the fit."""

    def __init__(self, encoder: Any, X: Any) -> None:
        self.X, self.encoder = X, encoder
        table: Any = nw.from_native(X, eager_only=True, pass_through=True)
        self.named = isinstance(table, nw.DataFrame)
        if not self.named and not isinstance(table, np.ndarray):
            table = np.array(X, dtype=object)
        if len(table.shape) != 2:
            raise ValueError(f"X has {len(table.shape)} dimensions; expected rows and columns")
        self.table = table
        self.n_rows, self.n_columns = (int(size) for size in table.shape)

    def column(self, key: Any) -> Any:
        """Column with this name or position."""
        names = self.table.columns if self.named else []
        return self.at(names.index(key) if key in names else key)

    def at(self, place: int) -> Any:
        """Column at this position."""
        if not self.named:
            return self.table[:, place]
        # Names of pandas may be numbers, which narwhals takes for positions in brackets.
        column = self.table.get_column(self.table.columns[place])
        return column.to_numpy() if column.dtype.is_numeric() else column.to_list()

    def columns(self, places: set[int]) -> list[Values]:
        """All columns of the fit; those at other positions have empty values."""
        names: Any = getattr(self.encoder, "feature_names_in_", None)
        count = int(self.encoder.n_features_in_)
        named = names is not None and self.named
        if not named and self.n_columns != count:
            raise ValueError(f"X has {self.n_columns} columns; the tree was fitted with {count}")
        if named:
            absent = [repr(str(names[at])) for at in places if names[at] not in self.table.columns]
            if absent:
                raise ValueError(f"X lacks columns of the tree: {', '.join(sorted(absent))}")
        nothing = Values(np.full(self.n_rows, np.nan), [None] * self.n_rows)
        return [
            _values(self.column(str(names[at])) if named else self.at(at))
            if at in places
            else nothing
            for at in range(count)
        ]


def _values(column: Any) -> Values:
    """A column as numbers if all its values are numbers, and as objects."""
    from pandas import isna

    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        numbers = column.astype(np.float64)
        return Values(numbers, [])
    listed = column.tolist() if isinstance(column, np.ndarray) else column
    objects = [None if isna(value) else value for value in listed]
    if any(isinstance(value, str) for value in objects):
        return Values(None, objects)
    numbers = np.array([np.nan if value is None else float(value) for value in objects])
    return Values(numbers, objects)


def _answer(decision: Decision, column: Values) -> Bools:
    """Values of one binary feature for all rows."""
    missing = column.missing
    if decision.kind == "missing":
        return missing
    if decision.kind == "level":
        objects = column.objects
        if not objects and column.numbers is not None:
            objects = column.numbers.tolist()
        wanted = set(decision.levels)
        answer = np.array([value in wanted for value in objects], dtype=bool)
    else:
        if column.numbers is None:
            raise ValueError(f"column {decision.column!r} holds text; it had numbers in the fit")
        limit = 0.5 if decision.bound is None else decision.bound
        with np.errstate(invalid="ignore"):
            low = column.numbers <= limit
        answer = low if decision.kind == "at most" else ~low
    return np.where(missing, decision.missing, answer)


def answers_of(tree: Any, table: Table) -> tuple[NDArray[Any], list[Values]]:
    """Rows in the form of the tree, and the columns."""
    encoder = tree.encoder_
    if isinstance(encoder, DesignEncoder):
        # The design defines what the splits of a soft tree weight.
        return np.asarray(encoder.transform(table.X), dtype=np.float64), []
    if not isinstance(encoder, BinaryEncoder):
        # Only a custom encoder itself defines its features.
        features = encoder.transform(table.X)
        features = np.asarray(features.toarray() if issparse(features) else features)
        return features.astype(bool), []
    places = set(range(encoder.n_features_in_))
    decisions = feature_decisions(encoder)
    used = set(range(len(decisions)))
    if tree.certificate_.status == "reestimated":
        # Features that the tree does not use were not computed for these rows.
        used = set(tree.tree_.feature[~tree.tree_.is_leaf].tolist())
        places = {decisions[feature].place for feature in used}
    columns = table.columns(places)
    answers = np.zeros((table.n_rows, len(decisions)), dtype=bool)
    for feature in used:
        answers[:, feature] = _answer(decisions[feature], columns[decisions[feature].place])
    return answers, columns


def midpoint(low: float, high: float) -> float:
    """Midpoint of two values; the lower one if it rounds up."""
    middle = low / 2 + high / 2
    return middle if middle < high else low
