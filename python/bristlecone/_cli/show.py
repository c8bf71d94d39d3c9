"""``bristlecone show``."""

from __future__ import annotations

import argparse
from pathlib import Path

from bristlecone._cli.build import check_needs
from bristlecone._cli.tables import output
from bristlecone._cli.text import size, tree_text
from bristlecone._model.files import write_files
from bristlecone._model.registry import load_model
from bristlecone.report import html_report
from bristlecone.report._rendering import check_engine


def run(arguments: argparse.Namespace) -> int:
    """Print a saved tree, and write the requested report."""
    check_needs(vars(arguments))
    target = output("--report", arguments.report, arguments.model)
    if target is not None:
        check_engine()
    tree = load_model(arguments.model)
    print(tree_text(tree, arguments.model), end="")
    if target is not None:
        title = arguments.title or f"{tree.leaves_.tree_kind} of {Path(arguments.model).name}"
        label = {} if arguments.time_label is None else {"time_label": arguments.time_label}
        write_files({target: html_report(tree, title=title, about=size(tree), **label)})
    return 0
