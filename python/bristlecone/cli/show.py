"""``bristlecone show``."""

from __future__ import annotations

import argparse

from bristlecone.cli.text import tree_text
from bristlecone.model.registry import load_model

__all__ = ["run"]


def run(arguments: argparse.Namespace) -> int:
    """Print a saved tree."""
    print(tree_text(load_model(arguments.model), arguments.model), end="")
    return 0
