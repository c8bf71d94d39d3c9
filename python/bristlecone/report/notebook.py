"""The compact form of the page, which notebooks show."""

from __future__ import annotations

from bristlecone.report.drawing import draw
from bristlecone.report.page import kind_of
from bristlecone.report.panels import panels
from bristlecone.report.proof import proof
from bristlecone.report.rendering import rendered, source
from bristlecone.report.table import leaf_table
from bristlecone.view.fitted import FittedTree

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
