"""Which column of the data has which role, and the rows that a fit gets."""

from __future__ import annotations

import argparse
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bristlecone._cli.columns import TEXT
from bristlecone._cli.kinds import Kind, Role, flag
from bristlecone._cli.outcome import check_present, default_columns, survival
from bristlecone._cli.tables import DataFile, check_column, listed


class Columns(NamedTuple):
    """Columns by the names of their roles, and the features."""

    roles: dict[str, list[str]]
    features: list[str]

    @property
    def names(self) -> list[str]:
        """Names of all of them."""
        return [*self.features, *(name for names in self.roles.values() for name in names)]


class Rows(NamedTuple):
    """Arguments of ``fit``: X (a pandas DataFrame), y and the rest by keyword."""

    X: Any
    y: NDArray[Any]
    more: dict[str, Any]


def assigned(kind: Kind, arguments: argparse.Namespace, columns: list[str], source: str) -> Columns:
    """Columns of the roles and the features, from the options and the existing names."""
    if kind.predicts_survival and getattr(arguments, "target", None) is not None:
        raise ValueError("--target cannot be used with --horizon; pass --time and --event")
    roles: dict[str, list[str]] = {}
    taken: dict[str, str] = {}
    defaults = {role.name: role.name for role in kind.roles if role.is_needed}
    if kind.predicts_survival and arguments.time is None:
        defaults |= default_columns([name for name in columns if name not in arguments.drop])
    for role in kind.roles:
        names = _named(role, getattr(arguments, role.name), defaults.get(role.name), columns)
        for name in names:
            check_column(name, columns, flag(role))
            if name in taken:
                raise ValueError(f"{taken[name]} and {flag(role)} are the same column {name!r}")
            taken[name] = flag(role)
        if names:
            roles[role.name] = names
    for option in ("drop", "categorical"):
        for name in getattr(arguments, option):
            check_column(name, columns, f"--{option}")
            if name in taken:
                raise ValueError(f"--{option}: {name!r} is the column of {taken[name]}")
    features = [name for name in columns if name not in {*taken, *arguments.drop}]
    if not features:
        raise ValueError(f"{source} has no columns besides {listed(taken)}")
    return Columns(roles, features)


def _named(
    role: Role, given: str | list[str] | None, default: str | None, columns: list[str]
) -> list[str]:
    """Columns that the option names, or else the default."""
    if given is not None:
        return [given] if isinstance(given, str) else given
    if default is None:
        return []
    if default not in columns:
        raise ValueError(
            f"{flag(role)} is needed: which column holds the {role.holds}? The columns are "
            f"{listed(columns)}"
        )
    return [default]


def read_rows(
    kind: Kind,
    arguments: argparse.Namespace,
    table: DataFile,
    columns: Columns,
) -> Rows:
    """Read the columns, each as its role requires."""
    roles = [role for role in kind.roles if role.name in columns.roles]
    kinds = {name: role.reads for role in roles for name in columns.roles[role.name] if role.reads}
    kinds |= dict.fromkeys(arguments.categorical, TEXT)
    frame = table.read(columns.names, kinds=kinds, missing=arguments.na)
    try:
        return _rows(kind, arguments, frame, columns, roles)
    except ValueError as error:
        raise table.located(error) from None


def _rows(
    kind: Kind, arguments: argparse.Namespace, frame: Any, columns: Columns, roles: list[Role]
) -> Rows:
    if kind.predicts_survival:
        names = {role: name for role, (name, *_) in columns.roles.items()}
        y = survival(
            frame,
            names["time"],
            names["event"],
            names.get("entry"),
            event_value=getattr(arguments, "event_value", None),
            has_causes=kind.has_causes,
        )
    else:
        y = _values(frame, columns.roles["target"])
    more = {
        role.argument: _values(frame, columns.roles[role.name]) for role in roles if role.argument
    }
    X = frame[columns.features]
    if named := [name for name in arguments.categorical if name in columns.features]:
        # Of a categorical type, so levels that look like numbers are not taken for a mistake.
        X = X.astype(dict.fromkeys(named, "category"))
    return Rows(X, y, more)


def _values(frame: Any, names: list[str]) -> Any:
    """One column, or several side by side, with their names."""
    for name in names:
        check_present(frame[name], name)
    return frame[names] if len(names) > 1 else np.asarray(frame[names[0]])
