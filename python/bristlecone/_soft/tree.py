"""The fitted soft tree: oblique splits, path probabilities, the most probable path."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bristlecone._soft import routing
from bristlecone._tree import NO_CHILD, NO_FEATURE, BinaryTree
from bristlecone._types import Floats, Integers


def linear_predictor(design: Floats, weights: Floats, intercepts: Floats) -> Floats:
    """``weights @ row + intercepts`` of every row, shape (m, n).

    Summed column by column, so that the result for a row does not depend on the other rows, which a
    matrix product does not guarantee.
    """
    result = np.repeat(intercepts[:, np.newaxis], len(design), axis=1)
    for j in range(design.shape[1]):
        result += weights[:, j : j + 1] * design[:, j]
    return result


@dataclass(frozen=True, eq=False)
class SoftTree(BinaryTree):
    """Complete binary tree of soft splits; node 0 is the root and the nodes are in preorder.

    A split sends a row left with probability 1/(1 + exp(−(w·x + b))), x being the design
    (features scaled to [0, 1]).

    Parameters
    ----------
    depth : int
        Splits from the root to a leaf.
    weights : array, shape (n_splits, n_design)
        w of every split, level by level from left to right.
    intercepts : array, shape (n_splits,)
        b of every split.
    n_node_samples : array of int, shape (node_count,)
        Training rows whose most probable path passes through the node; may be 0.
    weighted_n_node_samples : array of float, shape (node_count,)
        Weight of these rows.
    """

    depth: int
    weights: Floats
    intercepts: Floats
    n_node_samples: Integers
    weighted_n_node_samples: Floats

    @classmethod
    def grown(
        cls, depth: int, weights: Floats, intercepts: Floats, design: Floats, weight: Floats
    ) -> SoftTree:
        """Tree with these splits, and the training rows counted in every node."""
        nodes = 2 ** (depth + 1) - 1
        bare = cls(depth, weights, intercepts, np.zeros(nodes, dtype=np.int64), np.zeros(nodes))
        path = bare.decision_path(design)
        count = np.asarray(path.sum(axis=0)).ravel().astype(np.int64)
        return cls(depth, weights, intercepts, count, np.asarray(weight @ path).ravel())

    @cached_property
    def number(self) -> Integers:
        """Node id, in preorder, of the nodes level by level."""
        return routing.preorder(self.depth)

    @cached_property
    def splits(self) -> Integers:
        """Node ids of the splits, in the order of ``weights``."""
        return self.number[: len(self.weights)]

    def _child(self, side: int) -> Integers:
        child = np.full(self.node_count, NO_CHILD, dtype=np.int64)
        child[self.splits] = self.number[2 * np.arange(len(self.weights)) + side]
        return child

    @cached_property
    def children_left(self) -> Integers:  # type: ignore[override]
        """Left child of every node, -1 at a leaf."""
        return self._child(1)

    @cached_property
    def children_right(self) -> Integers:  # type: ignore[override]
        """Right child of every node, -1 at a leaf."""
        return self._child(2)

    @cached_property
    def column(self) -> Integers:
        """-2 everywhere, because a split uses many columns."""
        return np.full(self.node_count, NO_FEATURE)

    @cached_property
    def threshold(self) -> Floats:
        """NaN everywhere: a split has no threshold."""
        return np.full(self.node_count, np.nan)

    def logits(self, design: Floats) -> Floats:
        """w·x + b of every split and row, shape (n_splits, n)."""
        return linear_predictor(design, self.weights, self.intercepts)

    def leaf_index(self, design: Floats) -> Integers:
        """Leaf at the end of each row's most probable path, counted from the left."""
        return routing.hard_leaf(self.logits(design))

    def probabilities(self, design: Floats) -> Floats:
        """Probability of every leaf, shape (n, n_leaves)."""
        return np.ascontiguousarray(routing.leaf_probabilities(self.logits(design)).T)
