"""The compact form of the page, which notebooks show."""

from __future__ import annotations

from bristlecone._data.texts import counted
from bristlecone._view.fitted import FittedTree
from bristlecone._view.view import View
from bristlecone.report._drawing import draw
from bristlecone.report._proof import proof
from bristlecone.report._rendering import rendered, source
from bristlecone.report._table import leaf_table

_CONFIDENCE = 0.95


def notebook_html(tree: FittedTree) -> str:
    """Diagram, leaf table and proof of a fitted tree, without script and without ids.

    Raises
    ------
    ImportError
        Without Jinja2.
    """
    view = View(tree, _CONFIDENCE, "time")
    table = leaf_table(tree, [], _CONFIDENCE, "time")
    n, leaves = int(tree.tree_.n_node_samples[0]), tree.tree_.n_leaves
    return rendered(
        "notebook.html.j2",
        title=" ".join(repr(tree).split()),
        kind=tree.leaves_.tree_kind,
        size=f"{counted(n, 'row')}, {counted(leaves, 'leaf')}",
        drawn=source("drawn.css"),
        style=source("notebook.css"),
        drawing=draw(view, table),
        table=table,
        legend=view.shown.caption,
        proof=proof(tree),
    )
