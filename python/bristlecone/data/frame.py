"""Named columns without any data frame library: what :mod:`bristlecone.data.reading` returns."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

__all__ = ["Frame", "check_names", "frame_backend", "native_frame"]


class Frame(Mapping[str, NDArray[Any]]):
    """Named columns of equal length.

    Every estimator accepts it in place of a data frame.

    Parameters
    ----------
    columns : iterable of (str, array)
        Name and values, shape (n_rows,), of every column. Missing values are NaN in float
        columns and None in object columns.
    source : str
        What the columns come from, for the messages.

    Raises
    ------
    ValueError
        For an empty or repeated name, or columns of different lengths.
    """

    def __init__(
        self, columns: Iterable[tuple[str, NDArray[Any]]], source: str = "the frame"
    ) -> None:
        named = list(columns)
        check_names([name for name, _ in named], source)
        self._columns = dict(named)
        self._n_rows = len(named[0][1]) if named else 0
        for name, values in named:
            if len(values) != self._n_rows:
                raise ValueError(
                    f"{source}: column {name!r} has {len(values)} rows but "
                    f"{named[0][0]!r} has {self._n_rows}"
                )

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self._columns)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and number of columns."""
        return self._n_rows, len(self._columns)

    def __getitem__(self, key: Any) -> Any:
        """Return the column of that name, or the rows of a boolean mask or of an index array."""
        if isinstance(key, str):
            return self._columns[key]
        return Frame((name, values[key]) for name, values in self._columns.items())

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return f"Frame({self.shape[0]} rows, columns {', '.join(map(repr, self._columns))})"

    def select(self, names: Iterable[str]) -> Frame:
        """Only the named columns, in this order."""
        return Frame((name, self._columns[name]) for name in names)

    def drop(self, names: Iterable[str]) -> Frame:
        """Every column but the named ones."""
        dropped = set(names)
        return self.select(name for name in self._columns if name not in dropped)


def check_names(names: Sequence[str], source: str) -> None:
    """Raise ValueError for an empty or repeated name."""
    first: dict[str, int] = {}
    for position, name in enumerate(names, start=1):
        if not name.strip():
            raise ValueError(f"{source}: column {position} has an empty name")
        if name in first:
            raise ValueError(
                f"{source}: duplicate column name {name!r} (columns {first[name]} and {position})"
            )
        first[name] = position


def frame_backend(X: Any) -> str | None:
    """Name of the library of a data frame, such as "pandas"; None for anything else."""
    if isinstance(X, (np.ndarray, list)) or not nw.dependencies.is_into_dataframe(X):
        return None
    return str(nw.get_native_namespace(X).__name__)


def native_frame(columns: Sequence[tuple[str, NDArray[Any]]], backend: str | None) -> Any:
    """Columns as a data frame of this library (as from ``frame_backend``); None: a ``Frame``."""
    if backend is None:
        return Frame(columns)
    return nw.from_dict(dict(columns), backend=cast(Any, backend)).to_native()
