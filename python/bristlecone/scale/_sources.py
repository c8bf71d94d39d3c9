"""Partitions of a table, from any of the usual forms."""

from __future__ import annotations

import glob
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import narwhals as nw
import numpy as np

from bristlecone._data.arrays import check_names, listed, type_name
from bristlecone.exceptions import InvalidParameterError

# Number of rows of a frame or table in memory that are read as one partition.
_ROWS = 1 << 18
# Number of differences between the columns of two partitions that a message lists.
_MOST_SHOWN = 5

_FORMS = (
    "Parquet paths, a glob or a folder, a pyarrow dataset, an object with __arrow_c_stream__, a "
    "function that returns frames, a list of frames, or a Dask DataFrame"
)


class Part(NamedTuple):
    """One partition.

    Attributes
    ----------
    number : int
        Position of the partition, the same in every pass.
    name : str
        Name of the partition in messages.
    load : callable
        Returns its rows as a frame. It can be sent to another process, except with ``delayed``.
    delayed : object
        The frame of Dask that ``load`` computes here, if it is one.
    """

    number: int
    name: str
    load: Callable[[], Any]
    delayed: Any = None


Parts: TypeAlias = Callable[[Sequence[str]], Iterator[Part]]


class Source(NamedTuple):
    """A table that can be read several times, partition by partition.

    Attributes
    ----------
    columns : list of str
        Names of all columns.
    parts : callable
        Partitions with the given columns, read anew by every call.
    n_parts : int or None
        Their number; None if it is not known before they are read.
    is_dask : bool
        Whether the partitions belong to Dask.
    """

    columns: list[str]
    parts: Parts
    n_parts: int | None
    is_dask: bool = False


def open_source(partitions: Any) -> Source:
    """Partitions as the user passed them, not yet read.

    Raises
    ------
    InvalidParameterError
        If it is in no known form, can be read only once, or has no partitions.
    ImportError
        If pyarrow is needed but not installed.
    OSError, ValueError
        If a file does not exist or is not a Parquet file.
    """
    if isinstance(partitions, (str, os.PathLike)):
        return _of_dataset(_dataset([partitions]))
    if hasattr(partitions, "npartitions") and hasattr(partitions, "columns"):
        return _of_dask(partitions)
    if hasattr(partitions, "get_fragments"):
        return _of_dataset(partitions)
    if nw.dependencies.is_into_dataframe(partitions):
        return _of_frame(partitions)
    if hasattr(partitions, "read_next_batch"):
        raise InvalidParameterError(
            f"partitions is {type_name(partitions)}, which can be read only once; a fit "
            "reads the rows several times: pass a function that returns a new reader"
        )
    if hasattr(partitions, "__arrow_c_stream__"):
        return _of_frames(lambda: _batches(partitions), "batch")
    if callable(partitions):
        return _of_frames(partitions, "frame")
    elements = ""
    if isinstance(partitions, Sequence):
        if partitions and all(isinstance(one, (str, os.PathLike)) for one in partitions):
            return _of_dataset(_dataset(partitions))
        if partitions and all(nw.dependencies.is_into_dataframe(one) for one in partitions):
            return _of_list(list(partitions))
        kinds = dict.fromkeys(type(one).__name__ for one in partitions)
        elements = f" of {' and '.join(kinds)}" if kinds else " without elements"
    if isinstance(partitions, Iterator):
        raise InvalidParameterError(
            "partitions is an iterator, which can be read only once; a fit reads the rows several "
            "times: pass the function that makes it"
        )
    raise InvalidParameterError(
        f"partitions must be {_FORMS}; got {type(partitions).__name__}{elements}"
    )


def select(frame: Any, columns: Sequence[str]) -> Any:
    """Some columns of a frame, in this order.

    Raises
    ------
    ValueError
        If one does not exist.
    """
    found = check_names(frame, "the partition")
    absent = [name for name in columns if name not in found]
    if absent:
        raise ValueError(f"no column {absent[0]!r}; there are {listed(found, 12)}")
    return nw.from_native(frame, eager_only=True).select(list(columns)).to_native()


def _select_of_same(frame: Any, columns: Sequence[str], every: Sequence[str], first: str) -> Any:
    """As ``select``; a ValueError unless ``every`` column is there, as in the ``first``."""
    found = check_names(frame, "the partition")
    check_same_columns(dict.fromkeys(found), dict.fromkeys(every), first)
    return select(frame, columns)


def _names(frame: Any) -> list[str]:
    names = check_names(frame, "the first partition")
    odd = [name for name in names if not isinstance(name, str)]
    if odd:
        raise InvalidParameterError(f"column names must be strings; got {odd[0]!r}")
    return names


def _dataset(paths: Sequence[Any]) -> Any:
    """A dataset of Parquet files; for a glob, the matching files in sorted order."""
    from pyarrow import dataset

    files: list[str] = []
    for path in map(os.fspath, paths):
        if Path(path).is_dir():
            inside = sorted(str(found) for found in Path(path).rglob("*.parquet"))
            if not inside:
                raise InvalidParameterError(f"{path}: no Parquet file (*.parquet) in this folder")
            levels = {one for file in inside for one in Path(file).relative_to(path).parent.parts}
            hive = sorted(one for one in levels if "=" in one)
            if hive:
                raise InvalidParameterError(
                    f"{path}: the folder {hive[0]!r} has values of a column in its name; pass "
                    "pyarrow.dataset.dataset(..., partitioning='hive') to read them, or a glob to "
                    "read the files alone"
                )
            files += inside
        elif Path(path).exists():
            files.append(path)
        else:
            found = sorted(glob.glob(path, recursive=True))
            if not found:
                raise FileNotFoundError(2, "no such file, and no file matches", path)
            files += found
    for file, number in Counter(map(os.path.abspath, files)).items():
        if number > 1:
            raise InvalidParameterError(f"partitions names {file} {number} times, not once")
    return dataset.dataset(files, schema=_schema(files), format="parquet")


def _schema(files: Sequence[str]) -> Any:
    """The columns of Parquet files; a ValueError names a file that has others than the first.

    Without this check, a column of another type would be cast or read as missing.
    """
    import pyarrow
    from pyarrow import parquet

    known: dict[str, Any] = {}
    for file in files:
        try:
            schema = parquet.read_schema(file)
        except pyarrow.ArrowInvalid as error:
            raise ValueError(f"{file}: {' '.join(str(error).split())}") from None
        own = dict(zip(schema.names, schema.types, strict=True))
        known = known or own
        for column in own.keys() & known.keys():
            common = _common_type(own[column], known[column])
            if common is not None:
                own[column] = known[column] = common
        try:
            check_names(schema.empty_table(), "it")
            check_same_columns(own, known, files[0])
        except ValueError as error:
            raise ValueError(f"{file}: {error}") from None
    return pyarrow.schema(list(known.items()))


def _common_type(one: Any, other: Any) -> Any:
    """Type of a column that has no value in one file, or missing integers; None for others."""
    from pyarrow import types

    for kind, rest in ((one, other), (other, one)):
        if types.is_null(kind):
            return rest
        # Writers make integers with a missing value floating; reading checks that they are exact.
        if types.is_integer(kind) and types.is_float64(rest):
            return rest
    return None


def check_same_columns(own: dict[str, Any], known: dict[str, Any], first: str) -> None:
    """Raise ValueError unless a partition has the columns and types of the first."""
    absent = [column for column in known if column not in own]
    extra = [column for column in own if column not in known]
    if absent or extra:
        wrong = [f"lacks {column!r}" for column in absent] + [f"also has {c!r}" for c in extra]
        shown = " and ".join(wrong[:_MOST_SHOWN] + ["more"] * (len(wrong) > _MOST_SHOWN))
        raise ValueError(f"it has other columns than {first}: it {shown}")
    for column, kind in known.items():
        if own[column] != kind:
            raise ValueError(
                f"column {column!r} has type {own[column]}, but {kind} in {first}; write it with "
                "one type"
            )


def _of_dataset(data: Any) -> Source:
    def pieces() -> Iterator[tuple[str, Any]]:
        for fragment in data.get_fragments():
            yield from _pieces(fragment)

    def parts(columns: Sequence[str]) -> Iterator[Part]:
        for index, (name, piece) in enumerate(pieces()):
            yield Part(index, name, partial(_read_piece, piece, data.schema, list(columns)))

    names = [str(name) for name in data.schema.names]
    n_parts = sum(1 for _ in pieces())
    if not n_parts:
        raise InvalidParameterError("partitions has no rows: the data set has no files")
    return Source(names, parts, n_parts)


def _pieces(fragment: Any) -> Iterator[tuple[str, Any]]:
    """Row groups of a Parquet file with their names; any other file as a whole."""
    path = str(getattr(fragment, "path", "") or "part of the data set")
    if not hasattr(fragment, "split_by_row_group"):
        yield path, fragment
        return
    groups = fragment.split_by_row_group()
    for number, group in enumerate(groups):
        yield f"{path}, row group {number}" if len(groups) > 1 else path, group


def _read_piece(piece: Any, schema: Any, columns: list[str]) -> Any:
    from pyarrow import ArrowInvalid

    try:
        return piece.to_table(schema=schema, columns=columns, use_threads=False)
    except ArrowInvalid as error:
        # Columns that come from the names of folders are not in the file.
        own = set(piece.physical_schema.names)
        kinds = {name: schema.field(name).type for name in columns if name in own}
        cast = [n for n, kind in kinds.items() if piece.physical_schema.field(n).type != kind]
        raise ValueError(
            f"{error}; other files have another type of {listed(cast)}: write it with one type"
            if cast
            else str(error)
        ) from None


def _of_dask(frame: Any) -> Source:
    def parts(columns: Sequence[str]) -> Iterator[Part]:
        for index, one in enumerate(delayed_parts(frame[list(columns)])):
            load = partial(one.compute, scheduler="synchronous")
            yield Part(index, f"Dask partition {index}", load, one)

    return Source(_names(frame), parts, int(frame.npartitions), is_dask=True)


def delayed_parts(values: Any) -> list[Any]:
    """The partitions of a Dask collection.

    Dask joins partitions if only a few columns of their files are read. A fit reads different
    columns in each pass and needs the same partitions, so this is switched off.
    """
    import dask

    with dask.config.set({"optimization.tune.active": False}):
        parts = np.ravel(np.array(values.to_delayed(), dtype=object)).tolist()
    if len(parts) == values.npartitions:
        return parts
    # Of a frame joined to a selection of its own rows, Dask's optimiser keeps only one.
    return values.to_delayed(optimize_graph=False)


def _of_frame(frame: Any) -> Source:
    """Slices of one frame."""
    table = nw.from_native(frame, eager_only=True)
    starts = range(0, max(table.shape[0], 1), _ROWS)

    def parts(columns: Sequence[str]) -> Iterator[Part]:
        for index, start in enumerate(starts):
            own = table.select(list(columns))[start : start + _ROWS].to_native()
            yield Part(index, f"rows from {start} on", partial(itself, own))

    return Source(_names(frame), parts, len(starts))


def _of_list(frames: list[Any]) -> Source:
    names = _names(frames[0])

    def parts(columns: Sequence[str]) -> Iterator[Part]:
        for index, frame in enumerate(frames):
            load = partial(_select_of_same, frame, list(columns), names, "frame 0")
            yield Part(index, f"frame {index}", load)

    return Source(names, parts, len(frames))


def _of_frames(make: Callable[[], Iterable[Any]], kind: str) -> Source:
    """Frames that are made again for every pass, one after the other."""

    def named_frames(frames: Iterator[Any]) -> Iterator[tuple[str, Any]]:
        for index in itertools.count():
            name = f"{kind} {index}"
            try:
                frame = next(frames)
            except StopIteration:
                return
            except Exception as error:
                raise named(error, name) from error
            yield name, frame

    def parts(columns: Sequence[str]) -> Iterator[Part]:
        for index, (name, frame) in enumerate(named_frames(iter(make()))):
            load = partial(_select_of_same, _frame(frame), list(columns), names, f"{kind} 0")
            yield Part(index, name, load)

    frames = iter(make())
    try:
        _, first = next(named_frames(frames))
    except StopIteration:
        raise InvalidParameterError("partitions has none: the first pass found no frame") from None
    if frames is iter(make()):
        raise InvalidParameterError(
            "partitions returned the same iterator twice, which can be read only once; return a "
            "new one from every call"
        )
    close = getattr(frames, "close", None)
    if close is not None:
        close()
    names = _names(_frame(first))
    return Source(names, parts, None)


def named(error: Exception, name: str) -> Exception:
    """The same error, with the name of a partition in front of its message."""
    text = f"{name}: {error}"
    if type(error) in (ValueError, TypeError, ImportError, MemoryError, RuntimeError):
        return type(error)(text)
    if isinstance(error, OSError):
        return OSError(error.errno, text) if error.errno else OSError(text)
    for kind in (ValueError, TypeError):
        if isinstance(error, kind):
            return kind(text)
    return RuntimeError(f"{name}: {type(error).__name__}: {error}")


def _frame(values: Any) -> Any:
    """A frame that narwhals can read; a batch of Arrow becomes a table."""
    if nw.dependencies.is_into_dataframe(values):
        return values
    if hasattr(values, "__arrow_c_stream__") or hasattr(values, "__arrow_c_array__"):
        import pyarrow

        if hasattr(values, "__arrow_c_array__"):
            return pyarrow.Table.from_batches([pyarrow.record_batch(values)])
        return pyarrow.table(values)
    raise InvalidParameterError(f"a partition is {type_name(values)}; expected a frame")


def _batches(stream: Any) -> Iterator[Any]:
    import pyarrow

    for batch in pyarrow.RecordBatchReader.from_stream(stream):
        yield pyarrow.Table.from_batches([batch])


def itself(value: Any) -> Any:
    """The value; as a function it can be sent to another process."""
    return value


def schema_of(frame: Any) -> dict[str, Any]:
    """Types of the columns, in the form in which partitions are compared."""
    kinds = nw.from_native(frame, eager_only=True).schema
    # The type of pandas' objects follows from the values, which are checked when counted. Whole
    # numbers may be floating in some partitions, as they are with a missing value.
    plain = {nw.String(): "text", nw.Object(): "text", nw.Unknown(): "text"}
    return {
        name: "number" if kind.is_numeric() else plain.get(kind, kind)
        for name, kind in kinds.items()
    }


def n_rows_of(frame: Any) -> int:
    """Number of rows of a frame."""
    return int(nw.from_native(frame, eager_only=True).shape[0])
