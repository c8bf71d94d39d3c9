"""The compact form of the page, which notebooks show."""

from __future__ import annotations

from bristlecone._view.fitted import FittedTree
from bristlecone.report._drawing import draw
from bristlecone.report._page import kind_of
from bristlecone.report._panels import panels
from bristlecone.report._proof import proof
from bristlecone.report._rendering import rendered, source
from bristlecone.report._table import leaf_table

__all__ = ["notebook_html"]

_CONFIDENCE = 0.95


def notebook_html(tree: FittedTree) -> str:
    """Diagram, leaf table and proof of a fitted tree, without script and without ids.

    Raises
    ------
    ImportError
        Without Jinja2.
    """
    shown = panels(tree, "time", _CONFIDENCE)
    table = leaf_table(tree, [], _CONFIDENCE, "time")
    count = int(tree.tree_.n_node_samples[0])
    leaves = tree.tree_.n_leaves
    return rendered(
        "notebook.html.j2",
        title=" ".join(repr(tree).split()),
        kind=kind_of(tree),
        size=f"{count} rows, {leaves} {'leaf' if leaves == 1 else 'leaves'}",
        drawn=source("drawn.css"),
        style=source("notebook.css"),
        drawing=draw(tree, shown, table),
        table=table,
        legend=shown.legend,
        proof=proof(tree),
    )
