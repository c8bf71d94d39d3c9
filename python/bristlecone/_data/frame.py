"""Data frames: the library of a user's frame, and frames of this library and of pandas."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import Any, cast

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from bristlecone._data.arrays import check_names, listed
from bristlecone.exceptions import InvalidParameterError


def frame_backend(X: Any) -> str:
    """Name of the library of a data frame, such as "polars"; "pandas" for anything else."""
    if isinstance(X, (np.ndarray, list)) or not nw.dependencies.is_into_dataframe(X):
        return "pandas"
    return str(nw.get_native_namespace(X).__name__)


def native_frame(columns: Sequence[tuple[str, NDArray[Any]]], backend: str) -> Any:
    """Columns as a data frame of this library (as from ``frame_backend``)."""
    return nw.from_dict(dict(columns), backend=cast(Any, backend)).to_native()


def correctly_rounded() -> dict[str, str]:
    """Options with which ``pandas.read_csv`` rounds numbers correctly.

    From 3.1 on this is the default of pandas, which warns of the option.
    """
    import pandas as pd

    major, minor = pd.__version__.split(".")[:2]
    return {} if (int(major), int(minor)) >= (3, 1) else {"float_precision": "round_trip"}


def in_order(X: Any, names: Sequence[str]) -> Any:
    """A data frame with these columns first, in this order; anything else unchanged."""
    if isinstance(X, np.ndarray) or not nw.dependencies.is_into_dataframe(X):
        return X
    frame = nw.from_native(X, eager_only=True)
    columns, wanted = frame.columns, list(names)
    is_known = len(set(columns)) == len(columns) and set(wanted) <= set(columns)
    if not is_known or columns[: len(wanted)] == wanted:
        return X
    others = [column for column in columns if column not in set(wanted)]
    return frame.select([*wanted, *others]).to_native()


def columns_by_name(values: Any, names: Sequence[Any], label: str) -> Any:
    """Columns of a data frame in the order of these names, as an array; other values unchanged.

    A frame in which no column has one of the names is read by position.

    Raises
    ------
    ValueError
        If only some of the columns have one of the names.
    """
    if isinstance(values, (np.ndarray, list)) or not nw.dependencies.is_into_dataframe(values):
        return values
    frame = nw.from_native(values, eager_only=True)
    columns = check_names(values, label)
    array = frame.to_numpy()
    if _are_numbers(columns):
        return array
    # In some libraries all names of columns are text, and 1 may be written as 1.0 or True.
    for spelled in (str, _as_number):
        place = {spelled(column): at for at, column in enumerate(columns)}
        wanted = [spelled(name) for name in names]
        if not place.keys() & set(wanted):
            continue
        if place.keys() == set(wanted) and len(columns) == len(names):
            return array[:, [place[name] for name in wanted]]
        raise ValueError(
            f"{label} has the columns {listed(columns)}; expected {listed(names)} in any order, or "
            "an array with these columns in this order"
        )
    return array


def costs_by_class(matrix: Any) -> Any:
    """Matrix of costs as a mapping if it is a data frame whose rows or columns name the classes.

    If only the rows or only the columns have names, the others are in the same order.

    Raises
    ------
    InvalidParameterError
        If the rows and the columns have different names, or only some of them have the names
        0, 1, 2, ... in another order, which may be those of classes or of no meaning.
    """
    if isinstance(matrix, (np.ndarray, list)) or not nw.dependencies.is_into_dataframe(matrix):
        return matrix
    columns = check_names(matrix, "cost_matrix")
    rows = list(getattr(matrix, "index", range(len(columns))))
    if _are_numbers(rows) and _are_numbers(columns):
        return matrix
    unclear = False
    if set(rows) == set(columns):
        # A range from 0 is what pandas writes where the user gave no names.
        ranges = (hasattr(getattr(matrix, name, None), "step") for name in ("index", "columns"))
        unclear = any(map(_are_numbers, compress((rows, columns), ranges)))
    else:
        rows, columns = (
            columns if _are_numbers(rows) else rows,
            rows if _are_numbers(columns) else columns,
        )
    if unclear or len(rows) != len(columns) or set(rows) != set(columns):
        raise InvalidParameterError(
            f"cost_matrix has the rows {listed(rows)} and the columns {listed(columns)}; name both "
            "by the classes, or neither"
        )
    table = nw.from_native(matrix, eager_only=True).to_numpy()
    return dict(zip(rows, table[:, [columns.index(name) for name in rows]].tolist(), strict=True))


def by_label(values: Any, name: str) -> Any:
    """Values of a pandas series as a mapping from its labels; anything else unchanged.

    A series with the labels 0, 1, 2, ... has no names, so it is unchanged, too.

    Raises
    ------
    InvalidParameterError
        If a label occurs twice; ``name`` is the name of the series in the message.
    """
    if not nw.dependencies.is_pandas_series(values) or _are_numbers(values.index):
        return values
    if not values.index.is_unique:
        repeated = values.index[values.index.duplicated()].tolist()
        raise InvalidParameterError(f"{name} has duplicate labels: {listed(repeated)}")
    return dict(zip(values.index.tolist(), values.tolist(), strict=True))


def by_cause(values: Any, name: str) -> Any:
    """Values of a pandas series with the labels 1, 2, ... in this order; others unchanged."""
    labelled = by_label(values, name)
    if isinstance(labelled, dict) and labelled.keys() == {*range(1, len(labelled) + 1)}:
        return [labelled[cause] for cause in sorted(labelled)]
    return values


def _as_number(name: Any) -> Any:
    """A number that a name is or spells, as a float; other names unchanged."""
    try:
        return float(name)
    except (TypeError, ValueError):
        return name


def _are_numbers(names: Sequence[Any]) -> bool:
    """Whether these are the names that a library gives to columns or rows without names."""
    count = range(len(names))
    return list(names) in (list(count), [f"column_{at}" for at in count])
