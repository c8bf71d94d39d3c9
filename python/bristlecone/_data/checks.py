"""Checks of parameters; those of arguments by row are in :mod:`bristlecone._data.rows`."""

from __future__ import annotations

import math
import os
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_random_state

from bristlecone._data.arrays import as_array, listed
from bristlecone._data.days import as_times
from bristlecone._types import Floats
from bristlecone.exceptions import InvalidParameterError


def is_real(value: Any) -> bool:
    """Whether a value is a real number, and neither a boolean nor a duration."""
    # NumPy's durations are a subclass of its integers.
    return isinstance(value, Real) and not isinstance(value, (bool, np.timedelta64))


def is_integer(value: Any) -> bool:
    """Whether a value is an integer, and neither a boolean nor a duration."""
    return isinstance(value, Integral) and is_real(value)


def check_integer(name: str, value: Any, minimum: int, *, optional: bool = False) -> None:
    """Raise InvalidParameterError unless ``value`` is an int64 >= minimum (or None)."""
    if optional and value is None:
        return
    if not is_integer(value) or value < minimum:
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
        number = float(value) if is_real(value) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number < minimum:
        raise InvalidParameterError(
            f"{name} must be a finite number of at least {minimum:g}"
            f"{' or None' if optional else ''}; got {value!r}"
        )


def check_confidence(confidence: float) -> None:
    """Raise InvalidParameterError unless a level of confidence lies between 0 and 1."""
    if not (isinstance(confidence, Real) and 0 < confidence < 1):
        raise InvalidParameterError(f"confidence must lie in (0, 1); got {confidence!r}")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise InvalidParameterError unless ``value`` is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        raise InvalidParameterError(
            f"{name} must be one of {listed(choices, len(choices))}; got {value!r}"
        )


def check_times(times: ArrayLike, *, ascending: bool = False) -> Floats:
    """Times as float64 (n_times,), finite and not negative; strictly ascending on request.

    Durations become days, as in outcomes.

    Raises
    ------
    ValueError
        If they are not, or if they must ascend and there is none.
    """
    array = as_times(as_array(times, "times"), "times")
    if array.ndim != 1:
        raise ValueError(f"times has shape {array.shape}; expected one dimension")
    wrong = ~(np.isfinite(array) & (array >= 0))
    if wrong.any():
        raise ValueError(f"times must be finite and not negative; got {array[wrong][0]}")
    if ascending and not (array.size and (np.diff(array) > 0).all()):
        raise ValueError("times must be strictly ascending, and at least one")
    return array


def is_number(value: Any) -> bool:
    """Whether a value from a file is a finite number (and not a boolean)."""
    try:
        return type(value) in (int, float) and math.isfinite(value)
    except OverflowError:  # a whole number beyond the range of float64
        return False


def check_seed(name: str, value: Any) -> None:
    """Raise InvalidParameterError unless scikit-learn accepts ``value`` as a random state."""
    try:
        check_random_state(value)
    except (ValueError, TypeError) as error:
        raise InvalidParameterError(
            f"{name} must be an integer, a RandomState or None: {error}"
        ) from None


def thread_count(n_jobs: int | None) -> int:
    """Number of threads for ``n_jobs``: None is one, -1 all, -2 all but one.

    Raises
    ------
    InvalidParameterError
        If ``n_jobs`` is 0 or not an integer.
    """
    if n_jobs is None:
        return 1
    if not is_integer(n_jobs) or n_jobs == 0:
        raise InvalidParameterError(
            f"n_jobs must be an integer other than 0 or None; got {n_jobs!r}"
        )
    check_integer("n_jobs", n_jobs, -(2**63))
    if n_jobs > 0:
        return int(n_jobs)
    return max(1, (os.cpu_count() or 1) + 1 + int(n_jobs))
