"""The fitted soft tree: oblique splits, path probabilities, the most probable path."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from bristlecone._soft import routing
from bristlecone._tree import NO_CHILD, NO_FEATURE

Floats = NDArray[np.float64]


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
class SoftTree:
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
    n_node_samples: NDArray[np.int64]
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

    @property
    def is_weighted(self) -> bool:
        """Whether weights and counts of the training rows differ."""
        return bool((self.weighted_n_node_samples != self.n_node_samples).any())

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return int(2 ** (self.depth + 1) - 1)

    @property
    def max_depth(self) -> int:
        """Depth of the leaves."""
        return self.depth

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return routing.n_leaves(self.depth)

    @cached_property
    def number(self) -> NDArray[np.int64]:
        """Node id, in preorder, of the nodes level by level."""
        return routing.preorder(self.depth)

    @cached_property
    def splits(self) -> NDArray[np.int64]:
        """Node ids of the splits, in the order of ``weights``."""
        return self.number[: len(self.weights)]

    @cached_property
    def leaves(self) -> NDArray[np.int64]:
        """Node ids of the leaves, left to right."""
        return self.number[len(self.weights) :]

    @cached_property
    def is_leaf(self) -> NDArray[np.bool_]:
        """Whether the node is a leaf, shape (node_count,)."""
        return np.isin(np.arange(self.node_count), self.leaves)

    def _child(self, side: int) -> NDArray[np.int64]:
        child = np.full(self.node_count, NO_CHILD, dtype=np.int64)
        child[self.splits] = self.number[2 * np.arange(len(self.weights)) + side]
        return child

    @cached_property
    def children_left(self) -> NDArray[np.int64]:
        """Left child of every node, -1 at a leaf."""
        return self._child(1)

    @cached_property
    def children_right(self) -> NDArray[np.int64]:
        """Right child of every node, -1 at a leaf."""
        return self._child(2)

    @cached_property
    def column(self) -> NDArray[np.int64]:
        """-2 everywhere, because a split uses many columns."""
        return np.full(self.node_count, NO_FEATURE)

    @cached_property
    def threshold(self) -> NDArray[np.float64]:
        """NaN everywhere: a split has no threshold."""
        return np.full(self.node_count, np.nan)

    @cached_property
    def node_depth(self) -> NDArray[np.int64]:
        """Depth of every node, 0 at the root."""
        level = np.array([(node + 1).bit_length() - 1 for node in range(self.node_count)])
        depth = np.empty(self.node_count, dtype=np.int64)
        depth[self.number] = level
        return depth

    def logits(self, design: Floats) -> Floats:
        """w·x + b of every split and row, shape (n_splits, n)."""
        return linear_predictor(design, self.weights, self.intercepts)

    def leaf_index(self, design: Floats) -> NDArray[np.int64]:
        """Leaf at the end of each row's most probable path, counted from the left."""
        return routing.hard_leaf(self.logits(design))

    def apply(self, design: Floats) -> NDArray[np.int64]:
        """Node id of that leaf, shape (n,)."""
        return self.leaves[self.leaf_index(design)]

    def probabilities(self, design: Floats) -> Floats:
        """Probability of every leaf, shape (n, n_leaves)."""
        return np.ascontiguousarray(routing.leaf_probabilities(self.logits(design)).T)

    def decision_path(self, design: Floats) -> csr_matrix:
        """Nodes on the most probable path of every row, its leaf included."""
        paths = np.empty((self.n_leaves, self.depth + 1), dtype=np.int64)
        level = np.arange(self.n_leaves) + len(self.weights)
        for step in range(self.depth, -1, -1):
            paths[:, step] = self.number[level]
            level = (level - 1) // 2
        nodes = paths[self.leaf_index(design)]
        ends = np.arange(len(nodes) + 1) * (self.depth + 1)
        ones = np.ones(nodes.size, dtype=np.int64)
        return csr_matrix((ones, nodes.ravel(), ends), shape=(len(nodes), self.node_count))
