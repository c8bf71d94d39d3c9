"""Parquet files, by pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import date, timedelta
from typing import Any, BinaryIO

from bristlecone._cli.columns import NUMBER, TEXT, TIME, CellError, dates, not_a_number
from bristlecone._cli.csv_file import check_header

NEEDS_PYARROW = "reading Parquet needs pyarrow: python -m pip install 'bristlecone[parquet]'"


class ParquetFile:
    """A Parquet file; reading it needs the extra ``bristlecone[parquet]``.

    Parameters
    ----------
    name : str
        Of the file, for the messages.
    open_bytes : callable
        Opens the file for reading.
    """

    has_row_names = False

    def __init__(self, name: str, open_bytes: Callable[[], BinaryIO]) -> None:
        self.name = name
        self._open = open_bytes

    @property
    def columns(self) -> list[str]:
        """Names of the columns.

        Raises
        ------
        ImportError
            If pyarrow is not installed.
        OSError
            If the file cannot be read.
        ValueError
            If it is not a Parquet file, and for empty or repeated names.
        """
        names: list[str] = self._ask(lambda parquet, file: parquet.read_schema(file).names)
        check_header(names, self.name)
        return names

    def located(self, error: ValueError) -> ValueError:
        """The error as it is: there are no lines."""
        return error

    def read(
        self,
        columns: Iterable[str] | None = None,
        *,
        kinds: Mapping[str, str] | None = None,
        missing: Collection[str] = (),
    ) -> Any:
        """Read the rows; parameters and result are those of :meth:`CsvFile.read`.

        Numbers of a column that must be text are converted. Dates are kept as objects; the code
        that uses the column accepts or rejects them.

        Raises
        ------
        ImportError, OSError, ValueError
            As ``columns``; for a file without rows, a text in a column of numbers, and a column of
            lists, structs or maps.
        """
        wanted = self.columns if columns is None else list(columns)
        # A process that ends while the threads of pyarrow still start is aborted.
        one_thread = {"use_threads": False, "pre_buffer": False}
        table = self._ask(
            lambda parquet, file: parquet.read_table(file, columns=wanted, **one_thread)
        )
        if not table.num_rows:
            raise ValueError(f"{self.name}: no rows")
        kinds = kinds or {}
        plain = _plain(table, self.name, kinds)
        frame = plain.to_pandas(ignore_metadata=True, use_threads=False)[wanted]
        try:
            found = {name: _of_kind(frame[name], kinds.get(name), missing) for name in wanted}
        except CellError as error:
            raise ValueError(
                f"{self.name}, row {error.row}, column {error.column!r}: {error.problem}"
            ) from None
        return frame.assign(**found)

    def _ask(self, question: Callable[[Any, BinaryIO], Any]) -> Any:
        try:
            import pyarrow
            from pyarrow import parquet
        except ImportError:
            raise ImportError(NEEDS_PYARROW) from None
        with self._open() as file:
            try:
                return question(parquet, file)
            except (pyarrow.ArrowInvalid, OSError) as error:  # OSError for a damaged page
                raise ValueError(f"{self.name}: {' '.join(str(error).split())}") from None


def _plain(table: Any, name: str, kinds: Mapping[str, str]) -> Any:
    """The table with categories as text and decimals as floats; ValueError for nested columns.

    Whole numbers that must be text become text here, because pandas would read those of a column
    with missing values as floats.
    """
    import pyarrow
    from pyarrow import types

    fields = []
    for field in table.schema:
        if types.is_nested(field.type):
            raise ValueError(
                f"{name}: column {field.name!r} holds nested values ({field.type}); expected "
                "numbers, booleans or text"
            )
        kind = field.type.value_type if types.is_dictionary(field.type) else field.type
        if types.is_decimal(kind):
            kind = pyarrow.float64()
        elif types.is_integer(kind) and kinds.get(field.name) == TEXT:
            kind = pyarrow.string()
        fields.append(field.with_type(kind))
    return table.cast(pyarrow.schema(fields))


def _of_kind(column: Any, kind: str | None, missing: Collection[str]) -> Any:
    """The column as the requested kind; None leaves it unchanged."""
    if column.dtype.kind != "O":
        return column.map(_shown, na_action="ignore").astype(object) if kind == TEXT else column
    values = column.dropna().tolist()
    is_text = all(isinstance(value, str) for value in values)
    if is_text and missing:
        column = column.mask(column.isin(list(missing)))
    if kind == TIME:
        if values and all(isinstance(value, (date, timedelta)) for value in values):
            return column
        if is_text and (moments := dates(column)) is not None:
            return moments
    if kind in (NUMBER, TIME):
        for row, value in enumerate(column):
            if not (isinstance(value, bool) or value is None or value != value):
                raise CellError(row, str(column.name), not_a_number(str(value)))
    return column


def _shown(value: Any) -> str:
    """A value in the form of a CSV file."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
