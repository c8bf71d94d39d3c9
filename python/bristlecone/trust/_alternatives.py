"""How stable each split is: the objective of the best tree with another split in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.arrays import type_name
from bristlecone._data.frame import native_frame
from bristlecone._encoder.ranked import RankedFeatures
from bristlecone._estimators.searched import Again, SearchedTree, again
from bristlecone._log import warn
from bristlecone._types import Bools
from bristlecone.exceptions import CertificateError, SearchLimitWarning
from bristlecone.trust._optimality import assert_not_below
from bristlecone.trust._proof import slack_of


def alternatives(tree: Any, X: Any, y: Any, sample_weight: Any = None, **data: Any) -> Any:
    """For every split, find the best tree with another binary feature in its place.

    Only the subtree below the split may change; the rest of the tree is kept. A large difference
    from the tree's objective means that the split is well determined. If many binary features reach
    nearly the same objective, another sample may lead to another split.

    The teacher of a tree is fitted again, from its parameters and its seed, and all objectives are
    those of the smoothed outcomes. If a tree with a custom teacher comes from a file, call
    ``set_params(teacher=...)`` first.

    Parameters
    ----------
    tree : fitted tree
        A tree found by search whose objective is a sum over leaves: no ``OptimalTree``, no F1 or
        Matthews correlation, no limits on groups or treatments, no feature costs.
    X, y, sample_weight, **data
        The arguments of ``fit``, with the same rows, except ``callback`` and ``reference_loss``.

    Returns
    -------
    DataFrame
        From the same library as ``X`` in ``fit``. One row per split and binary feature that could
        replace it, sorted by node (preorder) and objective, with the columns ``node``, ``split``
        (the split of the tree), ``alternative`` (the binary feature in its place), ``objective``
        (of the whole tree, as ``objective_value_``), ``difference`` to the tree's own objective,
        ``n_leaves``, and ``is_chosen``: whether the tree uses this binary feature, or one that
        divides the rows of the node in the same way.

    Raises
    ------
    TypeError
        If the tree was not found by search, or its objective is not supported.
    ValueError
        If the rows are not those of the fit, or its teacher is unknown.
    NotFittedError, InfeasibleError
        If there is no tree.
    CertificateError
        If an alternative has a lower objective than the tree's certificate allows.

    Warns
    -----
    SearchLimitWarning
        If a limit or Ctrl-C stopped the searches. The table then holds the results so far.

    See Also
    --------
    near_optimal_trees : All trees that are nearly as good.

    Notes
    -----
    The objectives are exact, not estimates. With many rows all entries of a node come from one
    pass over its rows. Otherwise each entry takes two shallower searches; together they take less
    time than a search for the whole tree without bounds.

    Examples
    --------
    >>> from bristlecone import OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.trust import alternatives
    >>> veterans = load("veterans")
    >>> tree = OptimalSurvivalTree(max_depth=1).fit(veterans.X, veterans.y)
    >>> table = alternatives(tree, veterans.X, veterans.y)
    >>> table[["alternative", "difference"]].head(2).round(4).values.tolist()
    [['Karnofsky_score <= 45', 0.0], ['Karnofsky_score <= 55', 0.0112]]
    """
    search, problem, searched, _ = search_again(tree, "alternatives", X, y, sample_weight, data)
    engine = search.engine(searched)
    if engine.alternatives is None:
        raise TypeError(refusal(tree, "alternatives"))
    nodes, of_search = tree.tree_, searched.features
    every = isinstance(of_search, RankedFeatures)
    used = nodes.feature.copy()
    if every:  # features are the questions of the search
        used[used >= 0] = of_search.questions_of(problem.encoder.features_)[used[used >= 0]]
    arrays = used, nodes.children_left, nodes.children_right
    found = engine.alternatives(**search.limits.settings(searched, tree=arrays))
    node, feature, objective, n_leaves, stop = found
    if stop is not None:
        warn(f"the searches stopped ({stop}): alternatives are missing", SearchLimitWarning)
    rows: list[tuple[Any, ...]] = []
    reaches = tree.tree_.decision_path(problem.features).tocsc()
    features = np.asarray(of_search.written() if every else of_search)
    names = tree.certificate_.binary_features
    own, splits = tree.objective_value_, tree.splits_
    off = slack_of(tree, X, y, problem, sample_weight=sample_weight, **data)
    for at in np.unique(node).tolist():
        here = node == at
        members = reaches.indices[slice(*reaches.indptr[at : at + 2])]
        of_node = features[members]
        entry = dict(zip(feature[here].tolist(), np.flatnonzero(here).tolist(), strict=True))
        alike = representatives(of_node, list(entry))
        if every:  # thresholds with the same rows on either side are one
            alike = {first: first for first in alike.values()}
        for column, first in alike.items():
            total, leaves = float(objective[entry[first]]), int(n_leaves[entry[first]])
            chosen = key(of_node[:, column]) == key(of_node[:, used[at]])
            name = of_search.text(searched.encoder, column, members) if every else names[column]
            which = f"the tree with the split {name!r} at node {at}"
            assert_not_below(tree, total, off, which)
            if chosen and total > own + off:
                raise CertificateError(
                    f"{which}, the same as in the fitted {type(tree).__name__}, has an objective "
                    f"of at least {total:.17g}; the fitted tree reports {own:.17g}"
                )
            difference = total - own
            rows.append((at, splits[at], name, total, difference, leaves, chosen))
    rows.sort(key=lambda row: (row[0], row[3], not row[6]))
    columns = "node", "split", "alternative", "objective", "difference", "n_leaves", "is_chosen"
    return table_of(columns, rows, tree._frame_kind)


def table_of(columns: Sequence[str], rows: Sequence[tuple[Any, ...]], frame_kind: Any) -> Any:
    """Rows as a data frame of this kind."""
    values = zip(*rows, strict=True) if rows else ([] for _ in columns)
    named = [(name, np.array(column)) for name, column in zip(columns, values, strict=True)]
    return native_frame(named, frame_kind)


def search_again(
    tree: Any, what: str, X: Any, y: Any, sample_weight: Any, data: dict[str, Any]
) -> Again:
    """The search of a tree that was searched for; TypeError for any other."""
    if not isinstance(tree, SearchedTree):
        advice = "; pass its best_estimator_" if hasattr(tree, "best_estimator_") else ""
        raise TypeError(
            f"{what} accepts only trees of bristlecone that are found by search; got "
            f"{type_name(tree)}{advice}"
        )
    certificate = getattr(tree, "certificate_", None)
    if certificate is not None and certificate.status == "reestimated":
        raise TypeError(
            f"{what} runs the search of a tree again, but this {type(tree).__name__} was "
            "re-estimated: pass the tree of its search, with the rows of that fit"
        )
    return again(tree, X, y, sample_weight, **data)


def refusal(
    tree: Any,
    what: str,
    needed: str = "that is a sum over leaves, without constraints or feature costs",
) -> str:
    """Message for a tree whose objective is not supported; ``needed`` is what it lacks."""
    if "task" in tree.certificate_.parameters:
        return f"{what} does not support custom tasks, as in this {type(tree).__name__}"
    return (
        f"{what} needs an objective {needed}; {type(tree).__name__} with these parameters has no "
        "such objective"
    )


def representatives(features: NDArray[np.uint8], searched: list[int]) -> dict[int, int]:
    """Map each column to the one in ``searched`` that divides the rows in the same way."""
    keys = {key(features[:, column]): column for column in searched}
    found = {column: keys.get(key(features[:, column])) for column in range(features.shape[1])}
    return {column: first for column, first in found.items() if first is not None}


def key(column: NDArray[np.uint8] | Bools) -> bytes:
    """Key of a column; columns that divide the rows in the same way share it."""
    flipped = column ^ column[0] if column.size else column
    return np.packbits(flipped).tobytes()
