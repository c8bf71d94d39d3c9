"""What comes from the user is checked here, once; everything behind relies on it."""

from __future__ import annotations

import math
import os
from numbers import Integral, Real
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from bristlecone.data.arrays import as_array, check_not_negative, check_row_labels, listed
from bristlecone.data.outcomes import Survival, check_survival
from bristlecone.errors import InvalidParameterError

__all__ = [
    "Survival",
    "TrainingData",
    "as_array",
    "check_choice",
    "check_integer",
    "check_real",
    "check_row_losses",
    "check_sample_weight",
    "check_seed",
    "check_survival",
    "check_training_data",
    "row_count",
    "take_rows",
    "thread_count",
]

# Between these no sum, product or ratio of weights overflows or vanishes.
_LEAST_WEIGHT, _MOST_WEIGHT = 1e-100, 1e100


class TrainingData(NamedTuple):
    """Checked rows of a fit: all of positive weight, at least two, at least one event.

    ``kept`` (one boolean per row given) says which those are; None when all are. ``group`` is 0
    or 1 per row, of the two values ``groups``, where trees are to be fair to two groups.
    ``event_free`` says which question tells rows apart that have no event, if one does.
    """

    X: Any
    event: NDArray[np.bool_]
    time: NDArray[np.float64]
    weight: NDArray[np.float64] | None
    entry: NDArray[np.float64] | None = None
    kept: NDArray[np.bool_] | None = None
    group: NDArray[np.int64] | None = None
    groups: NDArray[Any] | None = None
    event_free: str = ""


def check_sample_weight(sample_weight: Any, n_samples: int) -> NDArray[np.float64] | None:
    """Row weights as float64 (n_samples,), or None when none are given.

    Raises
    ------
    ValueError
        When the length differs, or a weight is missing, infinite, negative or positive but
        outside [1e-100, 1e100] (the row is named), or no weight is positive.
    """
    if sample_weight is None:
        return None
    values = as_array(sample_weight, "sample_weight")
    if values.shape != (n_samples,):
        raise ValueError(
            f"sample_weight has shape {values.shape}; expected ({n_samples},), one per row"
        )
    if values.dtype.kind not in "biuf":
        raise ValueError(f"sample_weight has dtype {values.dtype}; expected numbers")
    weight = np.ascontiguousarray(values, dtype=np.float64)
    check_not_negative(weight, "sample_weight", "weights")
    extreme = (weight > _MOST_WEIGHT) | ((weight < _LEAST_WEIGHT) & (weight > 0))
    if extreme.any():
        row = int(np.argmax(extreme))
        raise ValueError(
            f"sample_weight is {weight[row]} in row {row}; weights must be zero or lie between "
            f"{_LEAST_WEIGHT} and {_MOST_WEIGHT}"
        )
    if not weight.any():
        raise ValueError("sample_weight is zero in every row")
    return weight


def check_training_data(X: Any, y: Any, sample_weight: Any = None) -> TrainingData:
    """Check the rows of a survival fit and leave out those of weight zero.

    The columns of ``X`` are checked by whoever reads them (encoder or estimator).

    Raises
    ------
    ValueError
        For no rows, one row, lengths that differ, no event, pandas indices that hold the same
        labels in another order, and all of ``check_survival`` and ``check_sample_weight``.
    """
    n_samples = row_count(X)
    check_row_labels(X, y, "y")
    check_row_labels(X, sample_weight, "sample_weight")
    event, time, entry = check_survival(y)
    if len(event) != n_samples:
        raise ValueError(f"X has {n_samples} rows but y has {len(event)}")
    weight = check_sample_weight(sample_weight, n_samples)
    kept = None
    if weight is not None and not weight.all():
        kept = weight > 0
        X, event, time, weight = take_rows(X, kept), event[kept], time[kept], weight[kept]
        entry = None if entry is None else entry[kept]
    if len(event) < 2:
        raise ValueError(
            f"n_samples={len(event)}: a survival tree needs at least two rows of positive weight"
        )
    if not event.any():
        raise ValueError("y has no event: every row is censored")
    return TrainingData(X, event, time, weight, entry, kept)


def check_row_losses(name: str, losses: Any, data: TrainingData) -> NDArray[np.float64]:
    """Losses per row as float64, those of the rows kept for the fit.

    Raises
    ------
    ValueError
        When the number differs from that of the rows given, or one is not a finite number >= 0.
    """
    values = as_array(losses, name)
    expected = (len(data.time) if data.kept is None else len(data.kept),)
    if values.shape != expected:
        raise ValueError(f"{name} has shape {values.shape}; expected {expected}, one per row")
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{name} has dtype {values.dtype}; expected numbers")
    values = np.ascontiguousarray(values, dtype=np.float64)
    check_not_negative(values, name, "losses")
    return values if data.kept is None else values[data.kept]


def row_count(X: Any) -> int:
    """Number of rows of a data frame or of a two-dimensional array-like."""
    shape: tuple[int, ...] = getattr(X, "shape", ())
    if isinstance(X, (list, tuple)):
        try:
            shape = np.shape(X)
        except ValueError:
            raise ValueError("the rows of X differ in length or hold lists") from None
    elif _is_only_array_like(X):
        shape = np.asarray(X).shape
    if len(shape) != 2:
        raise InvalidParameterError(
            f"X is a {type(X).__name__}{f' of shape {shape}' if shape else ''}; expected a "
            "DataFrame or an array of rows and columns"
        )
    return int(shape[0])


def take_rows(X: Any, kept: NDArray[np.bool_]) -> Any:
    """Only the rows where the mask is true, in the container they came in."""
    if nw.dependencies.is_into_dataframe(X):
        return nw.from_native(X, eager_only=True).filter(kept.tolist()).to_native()
    if isinstance(X, (list, tuple)):
        return [row for row, keep in zip(X, kept, strict=True) if keep]
    return np.asarray(X)[kept] if _is_only_array_like(X) else X[kept]


def _is_only_array_like(X: Any) -> bool:
    """Whether ``X`` turns into an array but has nothing else of one."""
    return hasattr(X, "__array__") and not hasattr(X, "shape")


def check_integer(name: str, value: Any, minimum: int, *, optional: bool = False) -> None:
    """Raise InvalidParameterError unless ``value`` is an int64 >= minimum (or None)."""
    if optional and value is None:
        return
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral) or value < minimum:
        raise InvalidParameterError(
            f"{name} must be an integer of at least {minimum}{' or None' if optional else ''}; "
            f"got {value!r}"
        )
    if int(value) >= 2**63:
        raise InvalidParameterError(f"{name} must be less than 2**63; got {value!r}")


def check_real(name: str, value: Any, minimum: float, *, optional: bool = False) -> None:
    """Raise InvalidParameterError unless ``value`` is a finite number >= minimum (or None)."""
    if optional and value is None:
        return
    try:
        number = float(value) if isinstance(value, Real) else math.nan
    except OverflowError:
        number = math.inf
    if isinstance(value, (bool, np.bool_)) or not math.isfinite(number) or number < minimum:
        raise InvalidParameterError(
            f"{name} must be a finite number of at least {minimum}"
            f"{' or None' if optional else ''}; got {value!r}"
        )


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise InvalidParameterError unless ``value`` is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidParameterError(f"{name} must be one of {listed(choices)}; got {value!r}")


def check_seed(name: str, value: Any) -> None:
    """Raise InvalidParameterError unless scikit-learn accepts ``value`` as a random state."""
    try:
        check_random_state(value)
    except ValueError as error:
        raise InvalidParameterError(f"{name} must be an integer or None: {error}") from None


def thread_count(n_jobs: int | None) -> int:
    """Threads that ``n_jobs`` asks for: None is one, -1 all, -2 all but one.

    Raises
    ------
    InvalidParameterError
        When ``n_jobs`` is 0 or not an integer.
    """
    if n_jobs is None:
        return 1
    if isinstance(n_jobs, (bool, np.bool_)) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise InvalidParameterError(
            f"n_jobs must be an integer other than 0 or None; got {n_jobs!r}"
        )
    check_integer("n_jobs", n_jobs, -(2**63))
    if n_jobs > 0:
        return int(n_jobs)
    return max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))
