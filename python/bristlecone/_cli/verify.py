"""``bristlecone verify``."""

from __future__ import annotations

import argparse
from typing import Any

from bristlecone._cli.features import known_columns
from bristlecone._cli.kinds import KINDS, Kind, flag
from bristlecone._cli.roles import assigned, read_rows
from bristlecone._cli.tables import open_table
from bristlecone._data.arrays import with_article
from bristlecone._model.registry import load_model
from bristlecone.trust import verify

_FAILED = 1


def run(arguments: argparse.Namespace) -> int:
    """Print the checks of a saved tree on the rows of its fit; 1 if one of them fails."""
    tree = load_model(arguments.model)
    kind = _kind(tree, arguments)
    table = open_table(arguments.data)
    names = [str(name) for name in getattr(tree, "feature_names_in_", [])]
    asked = tree.features_used_ if tree.certificate_.status == "reestimated" else names
    X = known_columns(tree, table, arguments.model, arguments.na, asked)
    columns = assigned(kind, arguments, table.columns, table.name)
    rows = read_rows(kind, arguments, table, columns._replace(features=[]))
    found = verify(tree, X, rows.y, most_work=arguments.most_work, **rows.more)
    text = str(found).replace("pass its sample_weight", "pass its --weight")
    print(f"{arguments.model} on {table.name}: {text}")
    return 0 if found.ok else _FAILED


def _kind(tree: Any, arguments: argparse.Namespace) -> Kind:
    """Kind of the model on the command line, with the columns it needs."""
    cls = type(tree).__name__
    kind = next(kind for kind in KINDS.values() if kind.cls == cls)
    roles = {role.name for role in kind.roles}
    for other in KINDS.values():
        for role in other.roles:
            if role.name not in roles and getattr(arguments, role.name) is not None:
                raise ValueError(
                    f"{arguments.model} is {with_article(cls)}, which does not use {flag(role)}"
                )
    parameters = tree.certificate_.parameters
    kind = kind.narrowed(parameters.get("horizon") is not None)
    if getattr(parameters.get("fairness"), "sensitive_feature", None) is None:
        return kind
    # The groups are a column of X.
    return kind._replace(roles=tuple(role for role in kind.roles if role.name != "sensitive"))
