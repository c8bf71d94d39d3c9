"""``bristlecone fit``."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from shlex import quote
from typing import Any

from bristlecone import datasets
from bristlecone._cli.build import build, check_names, name_values
from bristlecone._cli.columns import are_dates
from bristlecone._cli.kinds import KINDS, OF_TUNING, Kind
from bristlecone._cli.parts import PartFiles, names_parts
from bristlecone._cli.progress import progress_line, searches_line
from bristlecone._cli.roles import Columns, Rows, assigned, read_rows
from bristlecone._cli.tables import DataFile, identifiers, is_bundled, open_table, output
from bristlecone._cli.text import size, size_text, tree_text
from bristlecone._log import warn
from bristlecone._model.files import write_files
from bristlecone._search.progress import SearchCost, readable_bytes, readable_seconds
from bristlecone.exceptions import BristleconeWarning
from bristlecone.report import html_report
from bristlecone.report._rendering import check_engine

_INTERRUPTED = 130


def run(arguments: argparse.Namespace) -> int:
    """Fit a tree, print it, and write the requested files."""
    kind = KINDS[arguments.estimator]
    estimator = build(kind, vars(arguments))
    kind = kind.narrowed(getattr(estimator, "horizon", None) is not None)
    targets = _targets(arguments)
    if "--report" in targets:
        check_engine()
    table = PartFiles(arguments.data) if names_parts(arguments.data) else open_table(arguments.data)
    columns = assigned(kind, arguments, table.columns, table.name)
    check_names(kind, estimator, columns)
    if isinstance(table, PartFiles):
        with progress_line(arguments.progress) as callback:
            table.fit(estimator, columns, arguments, callback)
    else:
        rows = read_rows(kind, arguments, table, columns)
        name_values(kind, estimator, columns, rows)
        _warn_of_columns(arguments, table, rows)
        if arguments.estimate:
            if arguments.tune:
                message = "--estimate cannot be used with --tune: it forecasts a single search"
                raise ValueError(message)
            with _located(table):
                cost = estimator.estimate_cost(rows.X, rows.y, **rows.more)
            print(_forecast(cost), end="")
            return 0
        if arguments.tune:
            estimator = _tuned(estimator, rows, arguments)
        else:
            with _located(table):
                _fit(kind, estimator, rows, progress=arguments.progress)
    tree = estimator.best_estimator_ if arguments.tune else estimator
    _warn_of_constants(tree)
    print(tree_text(tree, table.name), end="")
    documents: dict[str | os.PathLike[str], str] = {}
    if "--model" in targets:
        documents[targets["--model"]] = tree.to_json()
    if "--report" in targets:
        documents[targets["--report"]] = _report(kind, estimator, arguments, table.name, columns)
    write_files(documents)
    return _INTERRUPTED if tree.certificate_.status == "interrupted" else 0


@contextmanager
def _located(table: DataFile) -> Iterator[None]:
    """Name the line of the file in errors that name a row.

    Not for cross-validation, whose errors count rows within a fold.
    """
    try:
        yield
    except ValueError as error:
        error.args = table.located(error).args
        raise


def _fit(kind: Kind, estimator: Any, rows: Rows, *, progress: bool) -> None:
    with progress_line(progress) if kind.is_searched else nullcontext() as callback:
        options = {} if callback is None else {"callback": callback}
        estimator.fit(rows.X, rows.y, **rows.more, **options)


def _tuned(estimator: Any, rows: Rows, arguments: argparse.Namespace) -> Any:
    """Search for the best size, after which its scores are printed."""
    # Imports much of scikit-learn, which other fits do not need.
    from bristlecone.tune import TreeSizeCV

    options = {name: getattr(arguments, option) for name, option in OF_TUNING.items()}
    search = TreeSizeCV(
        estimator, **{name: value for name, value in options.items() if value is not None}
    )
    with searches_line(arguments.progress) as callback:
        search.fit(rows.X, rows.y, **rows.more, callback=callback)
    print(size_text(search.cv_results_, search.best_index_, arguments.scoring or "score"))
    return search


def _warn_of_constants(estimator: Any) -> None:
    # If no feature is left, the fit itself has warned.
    constant = getattr(estimator.encoder_, "constant_features_in_", [])
    if constant and estimator.certificate_.binary_features:
        names = ", ".join(map(repr, constant))
        warn(f"constant columns give no split: {names}", BristleconeWarning)


def _report(
    kind: Kind, estimator: Any, arguments: argparse.Namespace, source: str, columns: Columns
) -> str:
    label = arguments.time_label
    if label is None and kind.predicts_survival:
        data, (time,) = arguments.data, columns.roles["time"]
        label = datasets.describe(data).time if is_bundled(data) else time
    return html_report(
        estimator,
        title=arguments.title or f"{kind.headline} of {Path(source).name}",
        about=size(estimator),
        command=arguments.line,
        **({} if label is None else {"time_label": label}),
    )


def _targets(arguments: argparse.Namespace) -> dict[str, Path]:
    """Files to write by their options."""
    targets = {
        option: target
        for option, path in (("--model", arguments.model), ("--report", arguments.report))
        if (target := output(option, path, arguments.data)) is not None
    }
    if len(set(targets.values())) < len(targets):
        raise ValueError("--model and --report are the same file")
    return targets


def _warn_of_columns(arguments: argparse.Namespace, table: DataFile, rows: Rows) -> None:
    if table.has_row_names:
        warn(
            f"{table.name}: column 1 has no name; it is treated as row names and left out",
            BristleconeWarning,
        )
    if is_bundled(arguments.data):
        return
    moments = [name for name in rows.X.columns if are_dates(rows.X[name])]
    for name in moments:
        warn(
            f"{table.name}: column {name!r} contains dates, which are treated as categories; "
            "replace them with numbers, such as days since a start, or leave the column out with "
            f"--drop {quote(name)}",
            BristleconeWarning,
        )
    for name in identifiers(rows.X):
        if name not in moments:
            warn(
                f"{table.name}: column {name!r} has a different value in every row; if it "
                f"identifies the rows, leave it out with --drop {quote(name)}",
                BristleconeWarning,
            )


def _forecast(cost: SearchCost) -> str:
    rows = {
        "binary features": cost.n_features,
        "distinct rows": cost.n_distinct_rows,
        "depth": cost.max_depth,
        "time": readable_seconds(cost.seconds),
        "memory": readable_bytes(cost.memory),
    }
    return "".join(f"{name:16}{value}\n" for name, value in rows.items())
