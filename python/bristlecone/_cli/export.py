"""``bristlecone export``."""

from __future__ import annotations

import argparse
import csv
import io
import json
from typing import Any

from bristlecone import export
from bristlecone._cli.tables import output, shown
from bristlecone._model.files import write_files
from bristlecone._model.registry import load_model

# For every option, the format that it belongs to.
_FOR = {
    "times": ("sql", "python", "r", "onnx", "rules"),
    "table": ("sql",),
    "dialect": ("sql",),
}


def run(arguments: argparse.Namespace) -> int:
    """Write a saved tree in another form."""
    form = arguments.to
    options = {name: getattr(arguments, name) for name in _FOR if getattr(arguments, name)}
    for name in options:
        if form not in _FOR[name]:
            raise ValueError(
                f"--{name} can be used only with --to {', '.join(_FOR[name])}, not {form}"
            )
    if form == "onnx" and arguments.out is None:
        raise ValueError("--to onnx writes a binary file: name it with --out")
    target = None
    if arguments.out is not None:
        target = output("--out", arguments.out, arguments.model)
    content = _content(load_model(arguments.model), form, options)
    if target is not None:
        write_files({target: content})
    else:
        print(content, end="")
    return 0


def _content(tree: Any, form: str, options: dict[str, Any]) -> Any:
    """Text, or bytes, of the export."""
    if form == "json":
        return json.dumps(export.export_dict(tree), ensure_ascii=False, indent=2) + "\n"
    if form == "rules":
        return _csv(export.export_rules(tree, **options))
    content = getattr(export, f"export_{form}")(tree, **options)
    return content if isinstance(content, bytes) or content.endswith("\n") else f"{content}\n"


def _csv(rules: Any) -> str:
    """One line per leaf; the rules of a saved tree come as a pandas DataFrame."""
    columns = [[shown(value) for value in rules[name].tolist()] for name in rules.columns]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rules.columns)
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue()
