"""``bristlecone fit``."""

from __future__ import annotations

import argparse
import os
import warnings
from pathlib import Path
from shlex import quote
from typing import Any

from bristlecone import datasets
from bristlecone.cli.arguments import ENCODER, SEARCH, TREE
from bristlecone.cli.outcome import default_columns, survival
from bristlecone.cli.progress import progress_line
from bristlecone.cli.tables import (
    check_column,
    identifiers,
    is_bundled,
    listed,
    open_table,
    output,
)
from bristlecone.cli.text import size, tree_text
from bristlecone.data.reading.columns import TEXT, TIME
from bristlecone.encoder import BinaryEncoder
from bristlecone.errors import BristleconeWarning
from bristlecone.estimators.survival import OptimalSurvivalTree
from bristlecone.model.files import write_files
from bristlecone.report import html_report
from bristlecone.search.progress import SearchCost, readable_bytes, readable_seconds

__all__ = ["run"]

_INTERRUPTED = 130
_ROLES = ("time", "event", "entry")


def run(arguments: argparse.Namespace) -> int:
    """Fit a tree, print it, and write the files asked for."""
    estimator = _estimator(arguments)
    targets = _targets(arguments)
    table = open_table(arguments.data)
    roles, features = _columns(arguments, table.columns, table.name)
    kinds = {roles[role]: TIME for role in ("time", "entry") if role in roles}
    kinds |= dict.fromkeys(arguments.categorical, TEXT)
    frame = table.read([*features, *roles.values()], kinds=kinds, missing=arguments.na)
    X = frame.select(features)
    y = survival(
        frame, roles["time"], roles["event"], roles.get("entry"), event_value=arguments.event_value
    )
    if table.has_row_names:
        _warn(f"{table.name}: column 1 has no name; it is taken for row names and left out")
    for name in [] if is_bundled(arguments.data) else identifiers(X):
        _warn(
            f"{table.name}: column {name!r} has a different value in every row; if it identifies "
            f"the rows, leave it out with --drop {quote(name)}"
        )
    if arguments.estimate:
        print(_forecast(estimator.estimate_cost(X, y)), end="")
        return 0
    with progress_line(arguments.progress) as callback:
        estimator.fit(X, y, callback=callback)
    _warn_of_constants(estimator)

    print(tree_text(estimator, table.name), end="")
    documents: dict[str | os.PathLike[str], str] = {}
    if "--model" in targets:
        documents[targets["--model"]] = estimator.to_json()
    if "--report" in targets:
        documents[targets["--report"]] = html_report(
            estimator,
            title=arguments.title or f"Survival tree of {Path(table.name).name}",
            about=size(estimator),
            time_label=arguments.time_label or _time_label(arguments.data, roles["time"]),
        )
    write_files(documents)
    return _INTERRUPTED if estimator.status_ == "interrupted" else 0


def _estimator(arguments: argparse.Namespace) -> OptimalSurvivalTree:
    """Estimator with its parameters checked."""
    given = vars(arguments)

    def chosen(options: tuple[Any, ...]) -> dict[str, Any]:
        names = [option.name for option in options]
        return {name: given[name] for name in names if name in given}

    parameters = chosen((*TREE, *SEARCH))
    encoding = chosen(ENCODER)
    if encoding:
        encoder = BinaryEncoder(**encoding)
        encoder.check_parameters()
        parameters["encoder"] = encoder
    estimator = OptimalSurvivalTree(**parameters)
    estimator.check_parameters()
    return estimator


def _targets(arguments: argparse.Namespace) -> dict[str, Path]:
    """Files to write by their options."""
    for option in ("title", "time_label"):
        if getattr(arguments, option) is not None and arguments.report is None:
            raise ValueError(f"--{option.replace('_', '-')} needs --report")
    targets = {
        option: output(option, path, arguments.data)
        for option, path in (("--model", arguments.model), ("--report", arguments.report))
        if path is not None
    }
    if len(set(targets.values())) < len(targets):
        raise ValueError("--model and --report are the same file")
    return targets


def _columns(
    arguments: argparse.Namespace, columns: list[str], source: str
) -> tuple[dict[str, str], list[str]]:
    """Columns of the outcome by their roles, and the features."""
    roles: dict[str, str] = {}
    defaults = {"event": "event"}
    if arguments.time is None:
        defaults |= default_columns([name for name in columns if name not in arguments.drop])
    for role in _ROLES:
        name = getattr(arguments, role)
        if name is None:
            name = defaults.get(role)
            if name is None:
                continue
            if name not in columns:
                raise ValueError(
                    f"--{role} is needed: which column holds the {role}s? There are "
                    f"{listed(columns)}"
                )
        check_column(name, columns, f"--{role}")
        roles[role] = name
    outcome = list(roles.values())
    if roles["time"] == roles["event"]:
        raise ValueError(f"--time and --event are the same column {roles['time']!r}")
    if outcome.index(outcome[-1]) < len(outcome) - 1:
        raise ValueError(f"--entry: {outcome[-1]!r} is the column of --time or --event")
    for option in ("drop", "categorical"):
        for name in getattr(arguments, option):
            check_column(name, columns, f"--{option}")
            if name in outcome:
                raise ValueError(
                    f"--{option}: {name!r} is the column of --time, --event or --entry"
                )
    features = [name for name in columns if name not in {*outcome, *arguments.drop}]
    if not features:
        raise ValueError(f"{source} has no columns besides {listed(outcome)}")
    return roles, features


def _warn(message: str) -> None:
    warnings.warn(message, BristleconeWarning, stacklevel=2)


def _warn_of_constants(estimator: OptimalSurvivalTree) -> None:
    """Warn of columns of one value; where nothing else is left, the fit has done so."""
    constant = estimator.encoder_.constant_features_in_
    if estimator.n_binary_features_ and constant:
        _warn(f"constant columns give no split: {', '.join(map(repr, constant))}")


def _forecast(cost: SearchCost) -> str:
    rows = {
        "binary features": cost.n_features,
        "distinct rows": cost.n_distinct_rows,
        "depth": cost.max_depth,
        "time": readable_seconds(cost.seconds),
        "memory": readable_bytes(cost.memory),
    }
    return "".join(f"{name:16}{value}\n" for name, value in rows.items())


def _time_label(data: str, column: str) -> str:
    return datasets.describe(data).time if is_bundled(data) else column
