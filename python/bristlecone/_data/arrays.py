"""Conversion of series, lists, masked arrays and objects to one array."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from numbers import Real
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from bristlecone._types import Bools, Floats

# Rows that are transposed at once.
_BLOCK = 256


def check_in_memory(values: Any, label: str) -> None:
    """Raise TypeError for a lazy frame, a Dask collection or a batch of Arrow.

    ``label`` is their name in the message.
    """
    if nw.dependencies.is_into_dataframe(values):
        return
    if hasattr(values, "column_names"):  # As an array, a batch would lose its names.
        advice = f"; pass pyarrow.Table.from_batches([{label}])"
    elif hasattr(values, "npartitions"):
        advice = ", which is lazy; call compute() first"
    elif isinstance(nw.from_native(values, pass_through=True), nw.LazyFrame):
        call = "call collect()" if hasattr(values, "collect") else "turn it into a data frame"
        advice = f", which is lazy; {call} first"
    else:
        return
    kind = f"{type(values).__module__.partition('.')[0]} {type(values).__name__}"
    raise TypeError(f"{label} is a {kind}{advice}")


def as_array(values: Any, label: str) -> NDArray[Any]:
    """Array of a series or array-like; objects that are all numbers become numbers.

    Raises
    ------
    ValueError
        If a value of a series is missing or one of a masked array is masked.
    """
    if not isinstance(values, np.ndarray):  # the checks below take a while
        if nw.dependencies.is_into_series(values):
            values = nw.from_native(values, series_only=True)
        if isinstance(values, nw.Series):
            values = _from_series(values, label)
    array = np.asarray(unmasked(values, label))
    if array.dtype.kind == "U" and isinstance(values, (list, tuple)):
        # NumPy writes other values in a list of texts as text, as in "nan" and "1".
        objects = np.array(values, dtype=object)
        if not all(isinstance(x, str) for x in objects.flat):
            return objects
    if array.dtype == object and all(isinstance(x, (Real, np.bool_)) for x in array.flat):
        return np.array(array.tolist())
    return array


def as_flags(values: Bools) -> Bools:
    """Booleans with bytes of 0 and 1, contiguous.

    For numpy every other byte is true as well, such as one of ``uint8`` seen as bool, but for the
    engine no boolean may have it.
    """
    return np.ascontiguousarray(values).view(np.uint8) != 0


def as_floats(values: Any, label: str) -> Floats:
    """Numbers as floats; a view of an array of them.

    Raises
    ------
    ValueError
        If they are no numbers, and as ``as_array``.
    """
    array = as_array(values, label)
    if array.dtype.kind not in "biufO":
        raise ValueError(f"{label} must be numeric; got dtype {array.dtype}")
    try:
        return np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"{label} must be numeric: {error}") from None


def _from_series(series: nw.Series[Any], label: str) -> NDArray[Any]:
    check_none_missing(series.is_null().to_numpy(), label)
    dtype = series.dtype
    if isinstance(dtype, nw.Datetime) and dtype.time_zone is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    elif isinstance(dtype, (nw.Int128, nw.UInt128)):
        # Integers beyond 64 bits do not fit in an array.
        least, greatest = series.min(), series.max()
        if len(series) and not -(2**63) <= least <= greatest < 2**63:
            raise ValueError(f"{label} holds whole numbers beyond 64 bits")
        series = series.cast(nw.Int64)
    elif isinstance(dtype, nw.Decimal):
        series = series.cast(nw.Float64)
    array: NDArray[Any] = series.to_numpy()
    return array


def check_none_missing(missing: Bools, label: str) -> None:
    """Raise ValueError, with the row, if a value is marked as missing."""
    if missing.any():
        raise ValueError(f"{label} is missing in row {int(np.argmax(missing))}")


def is_missing(value: Any) -> bool:
    """Whether a value is None, NaN, or NA or NaT of pandas.

    The latter are found by name, because pandas may not be installed.
    """
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, (Real, Decimal)) and value != value


def missing_objects(values: Iterable[Any]) -> Bools:
    """Whether each value is missing (see ``is_missing``)."""
    return np.array([is_missing(value) for value in values], dtype=bool)


def check_no_objects(values: NDArray[Any], label: str) -> None:
    """Raise ValueError, with the row, if an array of objects holds one that is not a number."""
    if values.dtype == object:
        row = next((row for row, x in enumerate(values) if not isinstance(x, Real)), 0)
        raise ValueError(f"{label} holds {values[row]!r} in row {row}; expected numbers")


def check_not_negative(values: Floats, label: str, kind: str) -> None:
    """Raise ValueError, with the row, unless all values are finite and not negative."""
    wrong = ~(np.isfinite(values) & (values >= 0))
    refuse(wrong, values, label, f"{kind} must be finite and not negative")


def refuse(wrong: Bools, values: NDArray[Any], label: str, expected: str) -> None:
    """Raise ValueError, with the row, if a value is wrong; ``expected`` describes a right one."""
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(f"{label} is {values[row]} in row {row}; {expected}")


def unmasked(values: Any, label: str) -> Any:
    """The given array, without its mask if it had one.

    Raises
    ------
    ValueError
        If something is masked; the row is named.
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    mask: Any = np.ma.getmaskarray(values)
    fields = mask.dtype.names
    masked = mask if fields is None else np.any([mask[name] for name in fields], axis=0)
    if masked.any():
        place = np.argwhere(masked)[0].tolist()
        raise ValueError(f"{label} is masked in row {place[0] if place else 0} and has no value")
    return values.data


def transposed(matrix: NDArray[Any]) -> NDArray[Any]:
    """Transpose in C order, by blocks of rows; a large array at once would miss every cache."""
    result = np.empty(matrix.shape[::-1], dtype=matrix.dtype)
    for start in range(0, len(matrix), _BLOCK):
        result[:, start : start + _BLOCK] = matrix[start : start + _BLOCK].T
    return result


def check_names(frame: Any, label: str) -> list[Any]:
    """Names of the columns of a data frame.

    Raises
    ------
    ValueError
        If one occurs twice.
    """
    # Checked on the frame itself, because narwhals has its own error for duplicate names.
    names = list(frame.column_names if hasattr(frame, "column_names") else frame.columns)
    repeated = [repr(name) for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise ValueError(f"{label} has duplicate column names: {', '.join(repeated)}")
    return names


def with_article(name: str) -> str:
    """A name with its article: "a list", "an int", "an ndarray"."""
    return f"{'an' if name.startswith((*'aeioAEIO', 'nd')) else 'a'} {name}"


def type_name(value: Any) -> str:
    """Name of the type of a value with its article."""
    return with_article(type(value).__name__)


def listed(values: Iterable[Any], most: int = 5) -> str:
    """The first values as text."""
    shown = [repr(value) for value in values]
    return ", ".join(shown[:most]) + (", ..." if len(shown) > most else "")
