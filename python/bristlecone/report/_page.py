"""The page, and its compact form in notebooks: what their sections show, rendered."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from bristlecone._data.texts import counted
from bristlecone._model.files import write_files
from bristlecone._view.fitted import FittedTree, check_tree
from bristlecone._view.view import View
from bristlecone.report._case import case
from bristlecone.report._drawing import draw
from bristlecone.report._extras import held_out
from bristlecone.report._extras import size_path as path_section
from bristlecone.report._panels import overview
from bristlecone.report._proof import proof, settings
from bristlecone.report._rendering import check_engine, rendered, source
from bristlecone.report._table import leaf_table

_SOFT = (
    "Every split weighs many columns. Its bars are the largest weights, for columns scaled to [0, "
    "1]: a bar to the left means that larger values make yes more probable, a bar to the right no."
)


def html_report(
    tree: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    title: str | None = None,
    about: str = "",
    time_label: str = "time",
    times: Sequence[float] | None = None,
    confidence: float = 0.95,
    size_path: Sequence[Any] | None = None,
    X: Any = None,
    y: Any = None,
    command: str = "",
) -> str:
    """Write a self-contained HTML report about a fitted tree.

    It has the tree with the prediction of every leaf, a form that finds the leaf of a case, the
    curves and a table of the leaves, what was proven and under which settings, and a text for a
    methods section. The page can be read without JavaScript, printed, and viewed on a phone. With
    JavaScript, you can collapse subtrees, highlight leaves, sort the table and look up a case.

    Parameters
    ----------
    tree : fitted tree
        Of any estimator of this package.
    path : str or path-like, optional
        File that the page is also written to. It is replaced only when the page is complete.
    title, about : str
        Headline (by default the kind of tree), and a line below it.
    time_label : str
        Label of the time axes, with the unit: "days from surgery".
    times : sequence of float, optional
        Times at which the leaf table shows survival, and at which survival is compared with ``y``;
        two round ones by default.
    confidence : float, default=0.95
        Level of intervals and bands.
    size_path : sequence of fitted trees, or a fitted TreeSizeCV, optional
        Adds a section: objective and status by number of leaves for what ``tree.size_path``
        returned, the mean scores over the folds for a ``TreeSizeCV``.
    X, y : optional
        Held-out rows with their outcomes. Adds a section that compares predictions with
        observations, for trees that predict survival, incidences, classes or numbers.
    command : str
        Command line that made the tree, which the page shows.

    Returns
    -------
    str
        Complete document. All text from outside is escaped. Equal trees give equal pages.

    Raises
    ------
    TypeError
        If ``tree`` is not a tree of this package, or its predictions cannot be compared with ``y``.
    NotFittedError, InfeasibleError
        If it has no tree.
    InvalidParameterError
        For a confidence outside (0, 1), and for held-out rows without outcomes.
    ImportError
        Without Jinja2, which the extra ``report`` has.
    OSError, ValueError
        If the file cannot be written.

    See Also
    --------
    bristlecone.export.export_text : The tree as text.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> from bristlecone.report import html_report
    >>> tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])
    >>> html_report(tree)[:15]
    '<!DOCTYPE html>'
    """
    check_engine()
    check_tree(tree, "html_report")
    view = View(tree, confidence, time_label)
    if times is None:
        times = view.default_times() if tree.leaves_.has_curves else []
    extras = [] if size_path is None else [path_section(size_path, tree)]
    if X is not None or y is not None:
        extras.append(held_out(tree, X, y, times, confidence))
    table = leaf_table(tree, times, confidence, time_label)
    drawing = draw(view, table)
    form = case(tree)
    own, of_encoder = settings(tree)
    page = rendered(
        "page.html.j2",
        title=tree.leaves_.tree_kind if title is None else title,
        about=about,
        drawn=source("drawn.css"),
        style=source("page.css"),
        script=source("page.js"),
        drawing=drawing,
        legend=view.shown.caption,
        note=_SOFT if view.is_soft else "",
        case=form,
        overview=overview(view) if view.has_curves else None,
        table=table,
        proof=proof(tree),
        extras=extras,
        settings=own,
        encoder=of_encoder,
        command=command,
        methods=tree.describe(),
        footer=f"bristlecone {tree.certificate_.version}",
        data={"case": form.data, "questions": {str(k): v for k, v in tree.splits_.items()}},
    )
    if path is not None:
        write_files({path: page})
    return page


def notebook_html(tree: FittedTree) -> str:
    """Diagram, leaf table and proof of a fitted tree, without script and without ids.

    Raises
    ------
    ImportError
        Without Jinja2.
    """
    view = View(tree)
    table = leaf_table(tree, [], view.confidence, view.time_label)
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
