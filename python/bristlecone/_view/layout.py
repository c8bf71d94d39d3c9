"""Positions of the nodes of a drawn tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bristlecone._types import Floats, Integers

Place = tuple[float, float]


@dataclass(frozen=True, eq=False)
class Layout:
    """Places of the nodes of a tree, in preorder.

    Parameters
    ----------
    x : array of float, shape (node_count,)
        Middle of the node: leaves side by side, a split above the middle of its children.
    parent : array of int, shape (node_count,)
        -1 at the root.
    width : float
        Of the whole tree.
    """

    x: Floats
    parent: Integers
    width: float


def place(tree: Any, leaf_width: float = 1.0) -> Layout:
    """Places of the nodes of a tree whose leaves are so wide; O(nodes).

    Parameters
    ----------
    tree : Tree or SoftTree
        The ``tree_`` of an estimator.
    leaf_width : float, default=1.0
        Distance between the middles of two neighbouring leaves.
    """
    x = np.empty(tree.node_count)
    x[tree.leaves] = (np.arange(tree.n_leaves) + 0.5) * leaf_width
    parent = np.full(tree.node_count, -1, dtype=np.int64)
    # In preorder children come after their parent: from the last split up, both are placed.
    for node in np.flatnonzero(~tree.is_leaf)[::-1].tolist():
        children = [int(tree.children_left[node]), int(tree.children_right[node])]
        parent[children] = node
        x[node] = x[children].mean()
    return Layout(x, parent, tree.n_leaves * leaf_width)


def edge(start: Place, end: Place, turn: float) -> list[Place]:
    """Corners of the line from a split to its child, in a tree that grows along the first number.

    ``start`` is the middle of the end of the split's box, ``end`` that of the child's beginning;
    the line turns so far behind the split.
    """
    return [start, (start[0] + turn, start[1]), (start[0] + turn, end[1]), end]
