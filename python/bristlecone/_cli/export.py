"""``bristlecone export``."""

from __future__ import annotations

import argparse
import json
from typing import Any

from bristlecone import export
from bristlecone._cli.tables import csv_text, output, write_output
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
    given = {name: getattr(arguments, name) for name in _FOR}
    # An empty text is a value: a table without a name is refused.
    options = {name: value for name, value in given.items() if value not in (None, [])}
    for name in options:
        if form not in _FOR[name]:
            raise ValueError(
                f"--{name} can be used only with --to {', '.join(_FOR[name])}, not {form}"
            )
    if form == "onnx" and arguments.out is None:
        raise ValueError("--to onnx writes a binary file: name it with --out")
    target = output("--out", arguments.out, arguments.model)
    write_output(_content(load_model(arguments.model), form, options), target)
    return 0


def _content(tree: Any, form: str, options: dict[str, Any]) -> Any:
    """Text, or bytes, of the export."""
    if form == "json":
        return json.dumps(export.export_dict(tree), ensure_ascii=False, indent=2) + "\n"
    if form == "rules":
        # The rules of a saved tree come as a pandas DataFrame.
        rules = export.export_rules(tree, **options)
        return csv_text({name: rules[name] for name in rules.columns})
    content = getattr(export, f"export_{form}")(tree, **options)
    return content if isinstance(content, bytes) or content.endswith("\n") else f"{content}\n"
