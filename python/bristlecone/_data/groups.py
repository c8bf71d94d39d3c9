"""Groups of rows: their codes, the column with them, and rates of positive predictions by group."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from bristlecone._data.arrays import as_array, check_none_missing, listed, missing_objects, unmasked
from bristlecone._data.rows import check_column, check_finite, check_row_labels, row_count
from bristlecone._types import Bools, Floats, Integers
from bristlecone.exceptions import InvalidParameterError

# Constraints on the rates of groups, by their names in the engine.
PARITY, EQUAL_OPPORTUNITY = "demographic-parity", "equality-of-opportunity"
EQUAL_ODDS = "equalized-odds"

# Class of the rows of every rate that a constraint compares; None for all rows.
COMPARED: dict[str, tuple[int | None, ...]] = {
    PARITY: (None,),
    EQUAL_OPPORTUNITY: (1,),
    EQUAL_ODDS: (1, 0),
}


class Groups(NamedTuple):
    """Groups: ``values`` in sorted order, and ``codes`` int64 (n,), every row's position in them.

    ``name`` is their name in messages.
    """

    values: NDArray[Any]
    codes: Integers
    name: str


def codes_of(
    values: Any, n_samples: int, name: str, rows_of: str = "X"
) -> tuple[NDArray[Any], Integers]:
    """Distinct values in sorted order, and the position of every row's value among them.

    Raises
    ------
    ValueError
        If there is not one value per row, or values are missing, of several types, or
        continuous. In messages, ``name`` is the name of the values and ``rows_of`` that of the
        rows.
    """
    array = check_column(values, name, n_samples, of=rows_of)
    if array.dtype.kind == "T":
        # NumPy's text of variable length, which scikit-learn does not support.
        array = np.array(array.tolist())
    if array.dtype.kind in "mM":
        check_none_missing(np.isnat(array), name)
    elif array.dtype.kind == "f":
        check_finite(array, name)
    elif array.dtype == object:
        check_none_missing(missing_objects(array.tolist()), name)
        # Texts of NumPy are texts.
        kinds = {str if isinstance(value, str) else type(value) for value in array.tolist()}
        if len(kinds) > 1:
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise ValueError(f"{name} mixes labels of several types: {names}")
    if array.dtype.kind not in "biuUS":
        try:
            check_classification_targets(array)
        except ValueError:
            if name == "y":
                raise
            raise ValueError(
                f"{name} holds {listed(array.tolist(), 3)}; expected labels, such as texts or "
                "whole numbers"
            ) from None
    # Searched, because np.unique's inverse would sort all rows.
    classes = np.unique(array)
    return classes, np.searchsorted(classes, array).astype(np.int64)


def column_of(X: Any, column: Any, parameter: str) -> NDArray[Any]:
    """One column of a data frame or array, by name or position.

    Raises
    ------
    InvalidParameterError
        If there is no such column; ``parameter`` is the name of the parameter.
    """
    table = nw.from_native(X, eager_only=True, pass_through=True)
    names = list(table.columns) if hasattr(table, "columns") else []
    if column in names:
        # Brackets would take a name that is a number for the position of a row.
        return as_array(table.get_column(column), f"column {column!r}")
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
        if names:
            if 0 <= column < len(names):
                return as_array(table.get_column(names[column]), f"column {names[column]!r}")
        else:
            array = np.asarray(unmasked(X, "X"))
            if 0 <= column < array.shape[1]:
                return array[:, column]
    raise InvalidParameterError(f"{parameter}={column!r} is not a column of X")


def check_groups(
    X: Any,
    sensitive_features: Any,
    sensitive_feature: Any,
    kept: Bools | None,
    why: str,
    most: int = 2,
) -> Groups | None:
    """Groups of the rows that are kept (None: all), either given or a column of ``X``.

    None if there is neither. Groups without any row that is kept do not count.

    Raises
    ------
    InvalidParameterError
        If ``sensitive_feature`` is not a column of ``X``.
    ValueError
        If the kept rows are of one group or of more than ``most`` (``why`` says what they are
        for), and all of ``codes_of``.
    """
    name, given = "sensitive_features", sensitive_features
    if given is None and sensitive_feature is not None:
        name = f"fairness.sensitive_feature {sensitive_feature!r}"
        given = column_of(X, sensitive_feature, "fairness.sensitive_feature")
    if given is None:
        return None
    check_row_labels(X, **{name: given})
    values, codes = codes_of(given, row_count(X), name)
    if kept is not None:
        codes = codes[kept]
    present = np.unique(codes)
    if not 2 <= len(present) <= most:
        found = values[present].tolist()
        raise ValueError(
            f"{name} has {'one value' if len(found) == 1 else f'{len(found)} values'}, "
            f"[{listed(found)}]; {why} compares {'two' if most == 2 else f'2 to {most}'} groups"
            + ("; merge the smallest ones" if len(found) > most > 2 else "")
        )
    return Groups(values[present], np.searchsorted(present, codes).astype(np.int64), name)


def group_confusion(
    group: Integers,
    labels: Integers,
    predicted: Integers,
    weight: Floats | None,
    n_groups: int,
) -> Floats:
    """Weight of the rows by group, true and predicted class, shape (n_groups, 2, 2).

    Each sum is rounded once, so rates and their differences are off by less than 2^-50.
    """
    cell = (2 * group + labels) * 2 + predicted
    if weight is None:
        counts = np.bincount(cell, minlength=4 * n_groups).astype(np.float64)
    else:
        counts = np.array([math.fsum(weight[cell == k]) for k in range(4 * n_groups)])
    return counts.reshape(n_groups, 2, 2)


def group_rates(constraint: str, confusion: Floats) -> Floats:
    """Rates of positive predictions that a constraint compares.

    Shape (n_groups,), or (n_groups, 2) if there are two rates per group; NaN without a row.
    """
    rates = []
    for of_class in COMPARED[constraint]:
        counts = confusion.sum(axis=1) if of_class is None else confusion[:, of_class]
        with np.errstate(invalid="ignore"):
            rates.append(counts[:, 1] / counts.sum(axis=1))
    return rates[0] if len(rates) == 1 else np.stack(rates, axis=1)
