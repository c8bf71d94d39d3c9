"""How sure each split is: what another question in its place would cost."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.frame import native_frame
from bristlecone._estimators.searched import Again, SearchedTree, again
from bristlecone._log import warn
from bristlecone.exceptions import CertificateError, SearchLimitWarning
from bristlecone.trust._optimality import assert_not_below
from bristlecone.trust._proof import slack_of

__all__ = ["alternatives"]


def alternatives(tree: Any, X: Any, y: Any, sample_weight: Any = None, **data: Any) -> Any:
    """For every split, the best tree with another question in its place.

    The nodes above and beside the split stay as they are; below it everything may change. The
    difference to the tree's own objective says how sure the split is: many questions of nearly the
    same objective mean that another sample may well lead to another one.

    Parameters
    ----------
    tree : fitted tree
        One that was searched for, other than from a Pareto front or with prices of features.
    X, y, sample_weight, **data
        What ``fit`` was given: the same rows.

    Returns
    -------
    DataFrame
        Of the kind that ``X`` had in ``fit``, one row per split and question that may stand there,
        by split (preorder) and objective: ``node``, ``split`` (the question of the tree),
        ``alternative`` (the other), ``objective`` (of the whole tree, as ``objective_value_``),
        ``difference`` to the tree's own, ``n_leaves``, and ``is_chosen``, whether the tree asks
        this question or one that divides the rows of the node in the same way.

    Raises
    ------
    TypeError
        For a tree that was not searched for, or whose search cannot tell.
    ValueError
        When the rows are not those of the fit.
    NotFittedError, InfeasibleError
        When there is no tree.
    CertificateError
        When an alternative is better than the tree says any tree can be.

    Warns
    -----
    SearchLimitWarning
        When a limit or Ctrl-C stopped the searches: the table holds what was done.

    See Also
    --------
    near_optimal_trees : All trees that are nearly as good.

    Notes
    -----
    Every entry takes two searches of less depth over the rows of the node, together less than a
    search of the whole tree without bounds. The objective of an entry is exact, not an estimate.

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
    search, problem, _ = search_again(tree, "alternatives", X, y, sample_weight, data)
    engine = search.engine(problem)
    if engine.alternatives is None:
        raise TypeError(refusal(tree, "alternatives"))
    nodes = tree.tree_
    arrays = nodes.feature, nodes.children_left, nodes.children_right
    found = engine.alternatives(**search.limits.settings(problem, tree=arrays))
    node, feature, objective, n_leaves, stop = found
    if stop is not None:
        warn(f"the searches stopped ({stop}): alternatives are missing", SearchLimitWarning)
    rows: list[tuple[Any, ...]] = []
    reaches = tree.tree_.decision_path(problem.features).tocsc()
    names = tree.certificate_.binary_features
    own, questions = tree.objective_value_, tree.splits_
    off = slack_of(tree, X, y, sample_weight=sample_weight, **data)
    for at in np.unique(node).tolist():
        here = node == at
        members = reaches.indices[slice(*reaches.indptr[at : at + 2])]
        of_node = problem.features[members]
        totals = objective[here].tolist()
        value = dict(
            zip(
                feature[here].tolist(),
                zip(totals, n_leaves[here].tolist(), strict=True),
                strict=True,
            )
        )
        for column, first in representatives(of_node, list(value)).items():
            total, leaves = value[first]
            asked = same_division(of_node[:, column], of_node[:, nodes.feature[at]])
            asks = questions[at], names[column]
            which = f"the tree that asks {names[column]!r} at node {at}"
            assert_not_below(tree, total, off, which)
            if asked and total > own + off:
                raise CertificateError(
                    f"{which}, as the fitted {type(tree).__name__} does, has objective at least "
                    f"{total:.17g}; the fitted tree says {own:.17g}"
                )
            rows.append((at, *asks, total, total - own, leaves, asked))
    rows.sort(key=lambda row: (row[0], row[3], not row[6]))
    columns = "node", "split", "alternative", "objective", "difference", "n_leaves", "is_chosen"
    values = zip(*rows, strict=True) if rows else ([] for _ in columns)
    return native_frame(
        [(name, np.array(list(column))) for name, column in zip(columns, values, strict=True)],
        tree._frame_kind,
    )


def search_again(
    tree: Any, what: str, X: Any, y: Any, sample_weight: Any, data: dict[str, Any]
) -> Again:
    """The search of a tree that was searched for; TypeError for any other."""
    if not isinstance(tree, SearchedTree):
        raise TypeError(
            f"{what} takes the trees of bristlecone that are searched for; got a "
            f"{type(tree).__name__}"
        )
    return again(tree, X, y, sample_weight, **data)


def refusal(tree: Any, what: str) -> str:
    """Why the search of a tree cannot tell."""
    return (
        f"{what} needs an objective that is a sum over leaves, without prices of features: "
        f"{type(tree).__name__} with these parameters has none"
    )


def representatives(features: NDArray[np.uint8], searched: list[int]) -> dict[int, int]:
    """Of every column that divides the rows as one of ``searched`` does, that one."""
    keys = {key(features[:, column]): column for column in searched}
    found = {column: keys.get(key(features[:, column])) for column in range(features.shape[1])}
    return {column: first for column, first in found.items() if first is not None}


def same_division(one: NDArray[np.uint8], other: NDArray[np.uint8]) -> bool:
    """Whether two columns divide the rows in the same way."""
    return key(one) == key(other)


def key(column: NDArray[np.uint8]) -> bytes:
    """The same for columns that divide the rows in the same way."""
    flipped = column ^ column[0] if column.size else column
    return np.packbits(flipped).tobytes()
