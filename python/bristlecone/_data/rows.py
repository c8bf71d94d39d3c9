"""Arguments with one entry per row: their number, weights, labels, and subsets of them."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from bristlecone._data.arrays import (
    as_array,
    check_in_memory,
    check_names,
    check_no_objects,
    check_not_negative,
    refuse,
    type_name,
)
from bristlecone._log import warn
from bristlecone._types import Bools, Floats
from bristlecone.exceptions import BristleconeWarning, InvalidParameterError

# Within these limits, no sum, product or ratio of weights overflows or underflows.
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-100, 1e100


class CheckedRows(Protocol):
    """Rows of a fit, all of positive weight: a named tuple, to which subclasses add outcomes."""

    @property
    def X(self) -> Any:
        """The features, as the user passed them, without rows of weight zero."""

    @property
    def weight(self) -> Floats | None:
        """Row weights; None for one each."""


RowsT = TypeVar("RowsT", bound=CheckedRows)


def check_sample_weight(sample_weight: Any, n_samples: int) -> Floats | None:
    """Row weights as float64 (n_samples,), or None when none are given.

    Raises
    ------
    ValueError
        If the length differs, or a weight is missing, infinite, negative or positive but
        outside [1e-100, 1e100] (the row is named), or no weight is positive.
    """
    if sample_weight is None:
        return None
    weight = check_weights(sample_weight, "sample_weight", n_samples)
    if not weight.any():
        raise ValueError("sample_weight is zero in every row")
    return weight


def check_weights(values: Any, name: str, n_samples: int) -> Floats:
    """As ``check_sample_weight`` for some rows of a fit, whose weights may all be zero."""
    weight = row_numbers(values, name, n_samples)
    check_not_negative(weight, name, "weights")
    extreme = (weight > _MOST_WEIGHT) | ((weight < _LEAST_WEIGHT) & (weight > 0))
    expected = f"weights must be zero or lie between {_LEAST_WEIGHT} and {_MOST_WEIGHT}"
    refuse(extreme, weight, name, expected)
    return weight


def check_length(values: Any, name: str, n_samples: int, *, of: str = "X") -> None:
    """Raise ValueError unless there is one entry per row; messages call the rows ``of``."""
    if len(values) != n_samples:
        raise ValueError(f"{of} has {n_samples} rows but {name} has {len(values)}")


def check_column(values: Any, name: str, n_samples: int, *, of: str = "X") -> NDArray[Any]:
    """One value per row, shape (n_samples,); messages call the rows ``of``.

    Raises
    ------
    ValueError
        If there is not one value per row, or no values at all; ``name`` is their name in messages.
    """
    if values is None:
        raise ValueError(
            f"This estimator requires {name} to be passed, but the target {name} is None"
        )
    array = as_array(values, name)
    if name == "y":
        array = np.asarray(column_or_1d(array, warn=True))  # the messages of scikit-learn are of y
    elif array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    elif array.ndim != 1:
        raise ValueError(f"{name} has shape {array.shape}; expected one value per row")
    check_length(array, name, n_samples, of=of)
    return array


def check_finite(values: NDArray[Any], name: str) -> None:
    """Raise ValueError, with the row, unless all numbers of a column are finite."""
    wrong = ~np.isfinite(values)
    if wrong.any():
        raise ValueError(
            f"Input {name} contains NaN or infinity: {values[wrong][0]} in row "
            f"{int(np.argmax(wrong))}"
        )


def row_numbers(values: Any, name: str, n_samples: int) -> Floats:
    """One number per row, float64 (n_samples,), which may be NaN or infinite.

    Raises
    ------
    ValueError
        If there is not one number per row; ``name`` is their name in messages.
    """
    array = as_array(values, name)
    if array.shape != (n_samples,):
        raise ValueError(f"{name} has shape {array.shape}; expected ({n_samples},), one per row")
    check_no_objects(array, name)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} has dtype {array.dtype}; expected numbers")
    return np.ascontiguousarray(array, dtype=np.float64)


def check_row_labels(rows: Any, *, of: str = "X", **by_row: Any) -> None:
    """Reject pandas objects whose indices contradict that rows are matched by position.

    Rows are matched by position, as everywhere in scikit-learn, so an index with the same labels in
    another order is a mistake. One that shares only some of them may be a mistake, or rows of
    shuffled outcomes, as in a permutation test. Accepted are indices without a common label, and
    0, 1, 2, ... beside the labels of a selection or another order, as after ``reset_index`` of one
    of the two. ``rows``, which messages call ``of``, and the values of ``by_row`` may have any
    type, including pairs of columns.

    Raises
    ------
    ValueError
        If the labels are in another order.

    Warns
    -----
    BristleconeWarning
        If only some of the labels are the same.
    """
    own = _indices(rows)
    for name, values in by_row.items() if own else ():
        for index in _indices(values):
            if len(index) != len(own[0]) or index.equals(own[0]):
                continue
            common = index.isin(own[0])
            if common.all() and own[0].isin(index).all():
                raise ValueError(
                    f"{of} and {name} have the same index in another order, but rows are matched "
                    f"by position: reorder one of them, as in {name}.loc[{of}.index], or pass "
                    f"{name} without its index"
                )
            if common.any() and not (_is_reset(index, own[0]) or _is_reset(own[0], index)):
                warn(
                    f"{of} and {name} have indices with only some labels in common; rows are "
                    "matched by position",
                    BristleconeWarning,
                )


def _is_reset(index: Any, other: Any) -> bool:
    """Whether an index may come from ``reset_index``, and the other one is not a range."""
    return not hasattr(other, "step") and np.array_equal(index, np.arange(len(index)))


def _indices(values: Any) -> list[Any]:
    """Index of a pandas object, or the indices of both if it is a pair."""
    if isinstance(values, np.ndarray):
        return []
    if isinstance(values, (tuple, list)):
        return [index for part in values[:2] for index in _indices(part)]
    values = nw.to_native(values, pass_through=True)
    pandas = nw.dependencies.is_pandas_dataframe(values) or nw.dependencies.is_pandas_series(values)
    return [values.index] if pandas else []


def row_count(X: Any) -> int:
    """Number of rows of a data frame or of a two-dimensional array-like."""
    if not isinstance(X, np.ndarray):
        check_in_memory(X, "X")
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if isinstance(X, (list, tuple)):
        try:
            shape = np.shape(X)
        except ValueError:
            raise ValueError("the rows of X differ in length or hold lists") from None
    elif is_only_array_like(X):
        shape = np.asarray(X).shape
    if len(shape) != 2:
        raise InvalidParameterError(
            f"X is {type_name(X)}{f' of shape {shape}' if shape else ''}; expected a "
            "DataFrame or an array of rows and columns"
        )
    return int(shape[0])


def take_rows(X: Any, kept: Bools, name: str = "X") -> Any:
    """Only the rows where the mask is true, in the original container; messages have the name."""
    if nw.dependencies.is_into_dataframe(X):
        check_names(X, name)
        return nw.from_native(X, eager_only=True).filter(kept.tolist()).to_native()
    if isinstance(X, (list, tuple)):
        return [row for row, keep in zip(X, kept, strict=True) if keep]
    return np.asarray(X)[kept] if is_only_array_like(X) else X[kept]


def is_only_array_like(X: Any) -> bool:
    """Whether ``X`` can be turned into an array but has no other property of one."""
    return hasattr(X, "__array__") and not hasattr(X, "shape")
