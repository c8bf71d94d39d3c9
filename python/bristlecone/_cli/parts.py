"""DATA that names several Parquet files: a glob or a folder, read part by part."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from bristlecone._cli.csv_file import check_header
from bristlecone._cli.parquet_file import NEEDS_PYARROW
from bristlecone._cli.roles import Columns
from bristlecone._cli.tables import absent, spells
from bristlecone.scale import fit_partitions
from bristlecone.scale._sources import Source, open_source

_MARKS = "*?["


def names_parts(data: str) -> bool:
    """Whether DATA is a glob or a folder."""
    path = Path(data)
    return path.is_dir() or (any(mark in data for mark in _MARKS) and not path.exists())


class PartFiles:
    """Parquet files with the same columns; a few row groups are in memory at a time.

    Parameters
    ----------
    name : str
        The glob or folder.
    """

    has_row_names = False

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def _source(self) -> Source:
        try:
            return open_source(self.name)
        except ImportError:
            raise ImportError(NEEDS_PYARROW) from None

    @property
    def columns(self) -> list[str]:
        """Names of the columns; raises as ``ParquetFile.columns``."""
        names = self._source.columns
        check_header(names, self.name)
        return names

    def fit(
        self,
        estimator: Any,
        columns: Columns,
        arguments: argparse.Namespace,
        callback: Callable[[Any], None] | None,
    ) -> None:
        """Fit an estimator; options that need all rows at once are rejected."""
        of_single_files = {
            "--tune": arguments.tune,
            "--estimate": arguments.estimate,
            "--na": arguments.na,
            "--sensitive": columns.roles.get("sensitive"),
            "--predicted-outcomes": columns.roles.get("predicted_outcomes"),
        }
        for option, given in of_single_files.items():
            if given:
                raise ValueError(f"{option} needs a single file; {self.name} is read in parts")
        roles: dict[str, Any] = {
            name: found if name == "propensity" and found[1:] else found[0]
            for name, found in columns.roles.items()
        }
        event_value = getattr(arguments, "event_value", None)
        partitions: Any = self.name
        if event_value is not None or arguments.categorical:
            partitions = self._changed(roles.get("event"), event_value, arguments.categorical)
        fit_partitions(
            estimator,
            partitions,
            **{"time": None, "event": None, **roles},
            drop=[name for name in self.columns if name not in columns.names],
            n_jobs=estimator.n_jobs,
            callback=callback,
        )

    def _changed(
        self, event: str | None, event_value: str | None, categorical: list[str]
    ) -> Callable[[], Iterator[Any]]:
        """Frames in which the event is true or false, and categories have a type of their own."""
        import pyarrow

        def changed(table: Any, name: str, values: Any) -> Any:
            return table.set_column(table.column_names.index(name), name, values)

        def frames() -> Iterator[Any]:
            seen: dict[Any, bool | None] = {}
            for part in self._source.parts(self.columns):
                assert part.load is not None
                table = part.load()
                for name in categorical:
                    # Of a categorical type, as for a single file.
                    texts = table.column(name).cast(pyarrow.string())
                    table = changed(table, name, texts.dictionary_encode())
                if event is not None and event_value is not None:
                    values = table.column(event).to_pylist()
                    meant = {
                        value: None if value is None else spells(event_value, value)
                        for value in dict.fromkeys(values)
                    }
                    seen |= meant
                    own = pyarrow.array([meant[value] for value in values], pyarrow.bool_())
                    table = changed(table, event, own)
                yield table
            if event_value is not None and not any(seen.values()):
                raise absent("--event-value", event_value, event, seen)

        return frames
