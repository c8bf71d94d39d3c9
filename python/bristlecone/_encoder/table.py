"""Reading: data frames and arrays become numeric and categorical columns, checked once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.dependencies import is_into_dataframe, is_pandas_dataframe
from numpy.typing import NDArray
from scipy.sparse import issparse

from bristlecone._data.arrays import (
    check_in_memory,
    check_names,
    missing_objects,
    transposed,
    type_name,
)
from bristlecone._encoder.columns import (
    FEW_ROWS,
    CategoricalColumn,
    Category,
    Column,
    NumericColumn,
    mask_if_any,
)

# Bytes of a row of an array that are read at once: one cache line.
_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length, read when they are asked for.

    Attributes
    ----------
    names : list of str
    named : bool
        Whether the names came from the input.
    n_rows : int
    read : callable
        Columns at the given positions, checked.
    at_once : int
        Neighbouring columns that are best read together.
    """

    names: list[str]
    named: bool
    n_rows: int
    read: Callable[[Sequence[int]], list[Column]]
    at_once: int = 1

    @property
    def columns(self) -> list[Column]:
        """Every column, read again."""
        return self.read(range(len(self.names)))

    def one_by_one(self) -> Iterator[Column]:
        """The same, but with no more than a few columns in memory at a time."""
        for start in range(0, len(self.names), self.at_once):
            yield from self.read(range(start, min(start + self.at_once, len(self.names))))

    def aligned(
        self, names: Sequence[str], named: bool, reader: str, needed: Iterable[str] | None = None
    ) -> dict[str, Column]:
        """Columns by their names in ``fit``, matched by name if both tables have names.

        Other columns of a table with names are ignored; a table without names must have as many
        columns as in ``fit``. ``named`` says whether these names came from the input of ``fit``,
        ``reader`` what was fitted, and ``needed`` which columns to read (all by default).

        Raises
        ------
        ValueError
            If a needed column is missing, or the number of columns differs.
        """
        wanted = list(names if needed is None else needed)
        if not (named and self.named):
            if len(self.names) != len(names):
                raise ValueError(
                    f"X has {len(self.names)} features, but {reader} is expecting {len(names)} "
                    "features as input"
                )
            place = {name: position for position, name in enumerate(names)}
        else:
            place = {name: position for position, name in enumerate(self.names)}
            absent = [repr(name) for name in wanted if name not in place]
            if absent:
                message = f"X lacks columns that {reader} needs; missing: {', '.join(absent)}"
                extra = [repr(name) for name in self.names if name not in set(names)]
                raise ValueError(
                    message + (f"; not seen in training: {', '.join(extra)}" if extra else "")
                )
        columns = self.read([place[name] for name in wanted])
        return dict(zip(wanted, columns, strict=True))


def read_table(X: Any, reader: str, *, empty: bool = False) -> Table:
    """Read a data frame or a two-dimensional array; ``reader`` names the caller in messages.

    Columns without string names are called x0, x1, ... If ``empty``, there may be no rows.

    Raises
    ------
    TypeError
        For sparse or masked arrays, lazy frames, and, once they are read, columns of dates, nested
        or other values that are neither numbers, booleans nor text; the column is named.
    ValueError
        For no rows (unless ``empty``), no columns, another number of dimensions, duplicate or
        empty column names, and, once they are read, complex or infinite numbers; column and row
        are named.
    """
    if issparse(X):
        raise TypeError(f"{reader} does not accept sparse input; pass X.toarray()")
    if isinstance(X, np.ma.MaskedArray):
        raise TypeError(f"{reader} does not accept masked arrays; pass X.filled(numpy.nan)")
    if not isinstance(X, np.ndarray):  # the checks below would take longer than reading an array
        X = nw.to_native(X, pass_through=True)
        if is_into_dataframe(X):
            names, named = _frame_names(X)
            numbers = _numpy_columns(X)
            alike = len(numbers) == len(names) and len(set(numbers.values())) == 1
            if alike and 0 < len(X) < FEW_ROWS:  # one array is read faster than its columns
                return _table_of(X.to_numpy(), names, named)
            frame = nw.from_native(X, eager_only=True)
            _check_shape(frame.shape, reader, empty)
            keys = frame.columns

            def read_columns(at: Sequence[int]) -> list[Column]:
                return [
                    _from_array(names[j], X[keys[j]].to_numpy())
                    if j in numbers
                    else _from_series(names[j], frame.get_column(keys[j]))
                    for j in at
                ]

            return Table(names, named, frame.shape[0], read_columns)
        check_in_memory(X, "X")
    array = np.asarray(X)
    if array.dtype.kind in "US" and not isinstance(X, np.ndarray):
        # numpy turns the numbers of a mixed list into text
        array = np.asarray(X, dtype=object)
    if array.ndim < 2 and not isinstance(X, (np.ndarray, list, tuple)):
        raise ValueError(
            f"Expected 2D array, got {type_name(X)}; for one row pass a DataFrame, as "
            "frame.iloc[[0]] or pandas.DataFrame([values]) gives"
        )
    _check_shape(array.shape, reader, empty)
    return _table_of(array, [f"x{j}" for j in range(array.shape[1])], False)


def _table_of(array: NDArray[Any], names: list[str], named: bool) -> Table:
    def read(at: Sequence[int]) -> list[Column]:
        part = array[:, at.start : at.stop] if isinstance(at, range) else array[:, at]
        return _from_matrix([names[j] for j in at], part)

    return Table(names, named, array.shape[0], read, max(1, _AT_ONCE // array.itemsize))


def _check_shape(shape: tuple[int, ...], reader: str, empty: bool) -> None:
    if len(shape) != 2:
        raise ValueError(
            f"Expected 2D array, got {len(shape)}D array instead. Reshape your data: "
            "X.reshape(-1, 1) for one column, X.reshape(1, -1) for one row"
        )
    for size, what in zip(shape, ("sample", "feature"), strict=True):
        if size == 0 and not (empty and what == "sample"):
            raise ValueError(
                f"Found array with 0 {what}(s) (shape={tuple(shape)}) while a minimum of 1 is "
                f"required by {reader}."
            )


def _frame_names(X: Any) -> tuple[list[str], bool]:
    names = check_names(X, "X")
    text = [isinstance(name, str) for name in names]
    if not any(text):
        return [f"x{j}" for j in range(len(names))], False
    if not all(text):
        odd = names[text.index(False)]
        raise TypeError(f"column names must all be strings; got {odd!r} ({type(odd).__name__})")
    for position, name in enumerate(names):
        if not name.strip():
            raise ValueError(f"column {position} has an empty name")
    return [str(name) for name in names], True


def _numpy_columns(X: Any) -> dict[int, Any]:
    """Dtypes of the columns of a pandas frame that are NumPy arrays of numbers, by position.

    Narwhals reads them three times slower.
    """
    if not is_pandas_dataframe(X):
        return {}
    return {
        place: dtype
        for place, dtype in enumerate(X.dtypes)
        if isinstance(dtype, np.dtype) and dtype.kind in "biuf"
    }


def _from_series(name: str, series: nw.Series[Any]) -> Column:
    dtype = series.dtype
    if dtype in (nw.Int128, nw.UInt128):  # NumPy does not have these types.
        return _from_objects(name, series.to_list())
    if dtype == nw.Boolean or dtype.is_integer():
        whole = series.to_numpy()
        if whole.dtype.kind in "biu":  # nothing is missing
            return NumericColumn.of_integers(name, whole, None)
        missing = mask_if_any(series.is_null().to_numpy())
        absent = False if dtype == nw.Boolean else 0
        values = (series if missing is None else series.fill_null(absent)).to_numpy()
        if dtype == nw.Boolean:
            values = values.astype(bool)
        return NumericColumn.of_integers(name, values, missing)
    if dtype.is_numeric():
        numbers = (series if dtype == nw.Float64 else series.cast(nw.Float64)).to_numpy()
        if numbers.dtype == object:  # pandas 2.0: Arrow's missing values stay objects
            numbers = np.where(series.is_null().to_numpy(), np.nan, series.fill_null(0).to_numpy())
        return _from_floats(name, numbers)
    if dtype == nw.String:
        return _from_texts(name, series)
    if dtype in (nw.Categorical, nw.Enum):
        column = _from_texts(name, series, as_levels=True)
        categories: Iterable[Any] | None
        if isinstance(dtype, nw.Enum):
            categories = dtype.categories
        else:
            categories = _categories_of_arrow(series.to_native())
        if categories is not None and isinstance(column, CategoricalColumn):
            return _in_order(column, categories)
        return column
    if dtype in (nw.Object, nw.Unknown):
        return _from_array(name, series.to_numpy())
    # The dtype as the user's own library writes it; a column of Arrow has a type instead.
    raise _unsupported(name, getattr(series.to_native(), "dtype", dtype))


def _from_matrix(names: Sequence[str], matrix: NDArray[Any]) -> list[Column]:
    """Columns of one dtype, so that checks run on all of them at once."""
    kind = matrix.dtype.kind
    if kind in "iu" and matrix.size and matrix.min() >= 0 and matrix.max() <= 1:
        matrix, kind = matrix > 0, "b"
    if kind == "f":
        matrix = matrix.astype(np.float64, copy=False)
    finite = kind == "f" and bool(np.isfinite(matrix).all())
    columns = zip(names, transposed(matrix), strict=True)
    if kind == "b" or finite:
        return [NumericColumn(name, values, None, kind == "b") for name, values in columns]
    return [_from_array(name, values) for name, values in columns]


def _from_array(name: str, values: NDArray[Any]) -> Column:
    kind = values.dtype.kind
    if kind in "biu":
        return NumericColumn.of_integers(name, values, None)
    if kind == "f":
        return _from_floats(name, values)
    if kind in "OUT":
        return _from_objects(name, values.tolist())
    if kind == "c":
        raise ValueError(f"Complex data not supported: column {name!r} is {values.dtype}")
    raise _unsupported(name, values.dtype)


def _unsupported(name: str, dtype: Any) -> TypeError:
    return TypeError(
        f"column {name!r} has dtype {dtype}; expected numbers, booleans or text. Convert dates to "
        "numbers (days since a start) and nested values to separate columns"
    )


def _from_floats(name: str, values: NDArray[Any]) -> NumericColumn:
    numbers = np.ascontiguousarray(values, dtype=np.float64)
    if np.isfinite(numbers).all():
        return NumericColumn(name, numbers, None, integral=False)
    infinite = np.isinf(numbers)
    if infinite.any():
        row = int(np.argmax(infinite))
        raise _infinite(name, row, numbers[row])
    return NumericColumn(name, numbers, np.isnan(numbers), integral=False)


def _from_texts(name: str, series: nw.Series[Any], as_levels: bool = False) -> Column:
    """As ``_from_objects``, but only looks at the distinct values."""
    from pandas import factorize

    if len(series) < FEW_ROWS:
        return _from_objects(name, series.to_list(), as_levels)
    native = series.to_native()
    codes: NDArray[Any]
    if hasattr(native, "dictionary_encode"):  # Arrow
        encoded = native.combine_chunks() if hasattr(native, "combine_chunks") else native
        if not hasattr(encoded, "indices"):
            encoded = encoded.dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        found = encoded.dictionary.to_pylist()
    elif nw.dependencies.is_pandas_series(native) and hasattr(native, "cat"):
        codes, found = native.cat.codes.to_numpy(), native.cat.categories.tolist()
    elif nw.dependencies.is_polars_series(native):
        text = series.cast(nw.String)
        found = text.drop_nulls().unique(maintain_order=True).to_list()
        numbers = range(len(found))
        codes = text.replace_strict(found, numbers, default=-1, return_dtype=nw.Int64).to_numpy()
    else:
        codes, distinct = factorize(np.asarray(series.to_numpy(), dtype=object))
        found = distinct.tolist()
    # Levels are in the order of their first row; missing values are not levels.
    place, first = factorize(codes)
    missing = np.flatnonzero(first < 0)
    levels = [found[code] for code in first[first >= 0].tolist()]
    if len(missing):
        place = np.where(place == missing[0], -1, place - (place > missing[0]))
    column = _from_objects(name, levels, as_levels)
    if not isinstance(column, CategoricalColumn):
        return _from_objects(name, [None if p < 0 else levels[p] for p in place], as_levels)
    own = column.codes  # equal levels have one code
    return replace(column, codes=np.append(own, -1)[place])


def _from_objects(name: str, values: Sequence[Any], as_levels: bool = False) -> Column:
    """Python objects: booleans or numbers if all of them are, else levels."""
    try:
        first = {value: place for place, value in enumerate(dict.fromkeys(values))}
    except TypeError:
        row = next(row for row, value in enumerate(values) if not _is_hashable(value))
        raise _unsupported_value(name, row, values[row]) from None
    codes = np.fromiter(map(first.__getitem__, values), np.int64, len(values))
    found = [value.item() if isinstance(value, np.generic) else value for value in first]
    absent = missing_objects(found)
    codes = np.where(absent, -1, np.cumsum(~absent) - 1)[codes]
    levels = [value for value, is_absent in zip(found, absent, strict=True) if not is_absent]
    for index, value in enumerate(levels):
        if not _is_category(value):
            raise _unsupported_value(name, int(np.argmax(codes == index)), value)
        if not isinstance(value, str) and not _is_finite(value):
            raise _infinite(name, int(np.argmax(codes == index)), value)
    if levels and (as_levels or any(isinstance(value, str) for value in levels)):
        return CategoricalColumn(name, codes, tuple(map(_plain, levels)), declared=as_levels)
    # the last entry serves code -1
    numbers = np.array([*(float(value) for value in levels), np.nan])[codes]
    missing = mask_if_any(codes < 0)
    if levels and all(isinstance(value, Integral) for value in levels):
        column = NumericColumn.of_integers(name, numbers, missing)
        if any(value != float(value) for value in levels):
            return replace(column, integers=np.array([*levels, 0], dtype=object)[codes])
        return column
    return NumericColumn(name, numbers, missing, integral=False)


def _categories_of_arrow(native: Any) -> list[Any] | None:
    """The categories of an ordered dictionary of Arrow, in their order; None for other types."""
    in_pandas = nw.dependencies.is_pandas_series(native)
    kind = (
        getattr(native.dtype, "pyarrow_dtype", None) if in_pandas else getattr(native, "type", None)
    )
    if not getattr(kind, "ordered", False):
        return None
    if in_pandas:
        native = native.array.__arrow_array__()
    whole = native.combine_chunks() if hasattr(native, "combine_chunks") else native
    found: list[Any] = whole.dictionary.to_pylist()
    return found


def _in_order(column: CategoricalColumn, categories: Iterable[Any]) -> CategoricalColumn:
    """The same column, with all the categories of its type as levels, in their order."""
    declared = tuple(_plain(value) for value in categories if _is_category(value))
    place = {level: index for index, level in enumerate(declared)}
    # the last entry serves code -1
    codes = np.array([*(place[level] for level in column.levels), -1])[column.codes]
    return replace(column, codes=codes, levels=declared, ordered=True)


def _is_category(value: Any) -> bool:
    return isinstance(value, (str, Real, Decimal))


def _plain(value: Any) -> Category:
    """A category as one of the types that JSON distinguishes."""
    plain = value.item() if isinstance(value, np.generic) else value
    return plain if isinstance(plain, (str, bool, int)) else float(plain)


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer beyond the range of float64
        return False


def _infinite(name: str, row: int, value: Any) -> ValueError:
    return ValueError(f"column {name!r} is infinite or too large ({value}) in row {row}")


def _unsupported_value(name: str, row: int, value: Any) -> TypeError:
    return TypeError(
        f"column {name!r} holds {type_name(value)} in row {row}; expected numbers, booleans "
        "or text (convert other values to one of these first)"
    )
