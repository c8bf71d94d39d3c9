"""Labels, numbers, costs and groups that a tree is fitted to: checked here, once."""

from __future__ import annotations

from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_sample_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from bristlecone.data.arrays import as_array, check_row_labels, unmasked
from bristlecone.data.checks import check_sample_weight, row_count, take_rows
from bristlecone.errors import InvalidParameterError

__all__ = [
    "Groups",
    "LabelledData",
    "NumericData",
    "check_amounts",
    "check_labelled_data",
    "check_numbers",
    "check_numeric_data",
    "check_two_classes",
    "check_two_groups",
    "codes_of",
    "column_of",
]


class LabelledData(NamedTuple):
    """Checked rows of a fit to labels, all of positive weight.

    ``labels`` int64 (n,) counts in ``classes``; ``kept`` bool tells which of the given rows these
    are, for whatever else was given by row.
    """

    X: Any
    labels: NDArray[np.int64]
    classes: NDArray[Any]
    weight: NDArray[np.float64] | None
    kept: NDArray[np.bool_]


class NumericData(NamedTuple):
    """Checked rows of a fit to numbers, all of positive weight; ``kept`` as in LabelledData."""

    X: Any
    target: NDArray[np.float64]
    weight: NDArray[np.float64] | None
    kept: NDArray[np.bool_]


class Groups(NamedTuple):
    """Two groups: ``values`` in sorted order, ``codes`` int64 (n,) with every row's place in them.

    ``name`` is what messages call them.
    """

    values: NDArray[Any]
    codes: NDArray[np.int64]
    name: str


def codes_of(values: Any, n_samples: int, name: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Distinct values in sorted order, and the position of every row's value among them.

    Raises
    ------
    ValueError
        When there is not one value per row, or values are missing, of several types, or
        continuous; ``name`` says what they are.
    """
    if values is None:
        raise ValueError(
            f"This estimator requires {name} to be passed, but the target {name} is None"
        )
    array = column_or_1d(as_array(values, name), warn=True)
    if len(array) != n_samples:
        raise ValueError(f"X has {n_samples} rows but {name} has {len(array)}")
    if array.dtype.kind == "T":
        # NumPy's text of variable length, which scikit-learn does not know.
        array = np.array(array.tolist())
    if array.dtype.kind in "mM" and np.isnat(array).any():
        raise ValueError(f"{name} is missing in row {int(np.argmax(np.isnat(array)))}")
    if array.dtype.kind == "f":
        wrong = ~np.isfinite(array)
        if wrong.any():
            raise ValueError(
                f"Input {name} contains NaN or infinity: {array[wrong][0]} in row "
                f"{int(np.argmax(wrong))}"
            )
    elif array.dtype == object:
        missing = np.array([value is None or value != value for value in array.tolist()], bool)
        if missing.any():
            raise ValueError(f"{name} is missing in row {int(np.argmax(missing))}")
        kinds = {type(value) for value in array.tolist()}
        if len(kinds) > 1:
            told = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise ValueError(f"{name} mixes labels of several types: {told}")
    if array.dtype.kind not in "biuUS":
        check_classification_targets(array)
    # Looked up, not np.unique's inverse, which sorts all rows.
    classes = np.unique(array)
    return classes, np.searchsorted(classes, array).astype(np.int64)


def check_labelled_data(
    X: Any, y: Any, sample_weight: Any, class_weight: Any = None, *, name: str = "y"
) -> LabelledData:
    """Check the rows of a fit to labels and leave out those of weight zero.

    The classes are those of the rows whose ``sample_weight`` is positive; the weight of a row is
    that of the row times that of its class.

    Raises
    ------
    ValueError
        For no rows, lengths that differ, labels that are missing or continuous, pandas indices
        that hold the same labels in another order, and all of ``check_sample_weight``.
    """
    n_samples = row_count(X)
    check_row_labels(X, y, name)
    check_row_labels(X, sample_weight, "sample_weight")
    classes, labels = codes_of(y, n_samples, name)
    weight = check_sample_weight(sample_weight, n_samples)
    kept = np.ones(n_samples, dtype=bool)
    if weight is not None:
        kept = weight > 0
        present, codes = np.unique(labels[kept], return_inverse=True)
        classes = classes[present]
        labels = np.zeros(n_samples, dtype=np.int64)
        labels[kept] = codes
    if class_weight is not None:
        weight = _weighted_by_class(class_weight, classes, labels, kept, weight)
        kept = weight > 0
    if not kept.all() and weight is not None:
        X, labels, weight = take_rows(X, kept), labels[kept], weight[kept]
    _check_some(len(labels))
    return LabelledData(X, labels, classes, weight, kept)


def _weighted_by_class(
    class_weight: Any,
    classes: NDArray[Any],
    labels: NDArray[np.int64],
    kept: NDArray[np.bool_],
    weight: NDArray[np.float64] | None,
) -> NDArray[np.float64]:
    """Weight of every row times that of its class; 0 where the row's own is."""
    balanced = isinstance(class_weight, str) and class_weight == "balanced"
    if not isinstance(class_weight, dict) and not balanced:
        raise InvalidParameterError(
            f"class_weight must be a dict, 'balanced' or None; got {class_weight!r}"
        )
    if isinstance(class_weight, dict):
        check_amounts("class_weight", np.array(list(class_weight.values())))
        unknown = [label for label in class_weight if label not in classes.tolist()]
        if unknown:
            raise ValueError(
                f"class_weight names {unknown[0]!r}, which is not among the classes "
                f"{classes.tolist()}"
            )
    factor = np.zeros(len(labels))
    factor[kept] = compute_sample_weight(class_weight, classes[labels[kept]])
    weighted = check_sample_weight(factor if weight is None else factor * weight, len(labels))
    assert weighted is not None
    return weighted


def check_two_classes(classes: NDArray[Any]) -> None:
    """Raise ValueError for more than two classes."""
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: y has "
            f"{len(classes)} classes"
        )


def column_of(X: Any, column: Any, parameter: str) -> NDArray[Any]:
    """One column of a data frame or array, by name or position.

    Raises
    ------
    InvalidParameterError
        When there is no such column; ``parameter`` is what names it.
    """
    table = nw.from_native(X, eager_only=True, pass_through=True)
    names = list(table.columns) if hasattr(table, "columns") else []
    if column in names:
        return as_array(table[column], f"column {column!r}")
    if isinstance(column, (int, np.integer)) and not isinstance(column, bool):
        if names and 0 <= column < len(names):
            return as_array(table[names[column]], f"column {names[column]!r}")
        array = np.asarray(unmasked(X, "X")) if not names else np.empty((0, 0))
        if 0 <= column < array.shape[1]:
            return array[:, column]
    raise InvalidParameterError(f"{parameter}={column!r} is no column of X")


def check_two_groups(
    X: Any,
    sensitive: Any,
    sensitive_feature: Any,
    kept: NDArray[np.bool_] | None,
    why: str,
    parameter: str = "sensitive_feature",
) -> Groups | None:
    """Groups of the rows that are kept (None: all), from ``sensitive`` or else a column of ``X``.

    None when there is neither. ``parameter`` is what messages call ``sensitive_feature``.

    Raises
    ------
    InvalidParameterError
        When ``sensitive_feature`` is no column of ``X``.
    ValueError
        When the kept rows are not of two groups (``why`` tells what they are for), and all of
        ``codes_of``.
    """
    name = "sensitive"
    if sensitive is None and sensitive_feature is not None:
        name = f"{parameter} {sensitive_feature!r}"
        sensitive = column_of(X, sensitive_feature, parameter)
    if sensitive is None:
        return None
    check_row_labels(X, sensitive, name)
    values, codes = codes_of(sensitive, row_count(X), name)
    if kept is not None:
        codes = codes[kept]
    present = np.unique(codes)
    if len(values) != 2 or len(present) != 2:
        told = values[present].tolist()
        raise ValueError(
            f"{name} has {'one value' if len(told) == 1 else f'{len(told)} values'}, "
            f"{told[:5]}; {why} compares two groups"
        )
    return Groups(values, codes, name)


def check_numeric_data(X: Any, y: Any, sample_weight: Any, *, name: str = "y") -> NumericData:
    """Check the rows of a fit to numbers and leave out those of weight zero.

    Raises
    ------
    ValueError
        For no rows, lengths that differ, values that are no finite numbers (the row is named),
        pandas indices that hold the same labels in another order, and all of
        ``check_sample_weight``.
    """
    n_samples = row_count(X)
    check_row_labels(X, y, name)
    check_row_labels(X, sample_weight, "sample_weight")
    target = check_numbers(name, y, n_samples)
    weight = check_sample_weight(sample_weight, n_samples)
    kept = np.ones(n_samples, dtype=bool)
    if weight is not None and not weight.all():
        kept = weight > 0
        X, target, weight = take_rows(X, kept), target[kept], weight[kept]
    _check_some(len(target))
    return NumericData(X, target, weight, kept)


def check_numbers(name: str, values: Any, n_samples: int) -> NDArray[np.float64]:
    """One finite number per row, float64 (n_samples,).

    Raises
    ------
    ValueError
        Otherwise; ``name`` says what they are.
    """
    if values is None:
        raise ValueError(
            f"This estimator requires {name} to be passed, but the target {name} is None"
        )
    array = column_or_1d(as_array(values, name), warn=True)
    if array.dtype.kind in "mM":
        raise ValueError(f"{name} has dtype {array.dtype}; expected numbers")
    if array.dtype.kind not in "biuf":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{name} has dtype {array.dtype}; expected numbers") from None
    if len(array) != n_samples:
        raise ValueError(f"X has {n_samples} rows but {name} has {len(array)}")
    numbers = np.ascontiguousarray(array, dtype=np.float64)
    wrong = ~np.isfinite(numbers)
    if wrong.any():
        raise ValueError(
            f"Input {name} contains NaN or infinity: {numbers[wrong][0]} in row "
            f"{int(np.argmax(wrong))}"
        )
    return numbers


def check_amounts(
    name: str,
    values: Any,
    shape: tuple[int, ...] | None = None,
    *,
    minimum: float = 0.0,
    why: str = "",
) -> NDArray[np.float64]:
    """Array of finite numbers of at least ``minimum``.

    Raises
    ------
    InvalidParameterError
        For another shape (``why`` tells what it should be) or a number that is none, infinite or
        too small; its place is named.
    """
    values = unmasked(values, name)
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameterError(f"{name} holds something else than numbers") from None
    if shape is not None and array.shape != shape:
        raise InvalidParameterError(
            f"{name} has shape {array.shape}; expected {shape}{f', {why}' if why else ''}"
        )
    wrong = ~(np.isfinite(array) & (array >= minimum))
    if wrong.any():
        place = tuple(int(k) for k in np.argwhere(wrong)[0])
        told = f"[{', '.join(map(str, place))}]" if place else ""
        least = "not negative" if minimum == 0 else f"at least {minimum:g}"
        raise InvalidParameterError(
            f"{name}{told} is {array[place]}; expected finite numbers"
            + (f", {least}" if np.isfinite(minimum) else "")
        )
    return array


def _check_some(n_samples: int) -> None:
    if n_samples == 0:
        raise ValueError("n_samples=0: a tree needs at least one row of positive weight")
