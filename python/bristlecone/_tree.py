"""The fitted binary tree: parallel arrays in preorder, with the names of scikit-learn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from bristlecone._core import BinaryMatrix
from bristlecone._types import Bools, Floats, Integers

NO_CHILD = -1
NO_FEATURE = -2


class BinaryTree(ABC):
    """Nodes of a binary tree in preorder, node 0 is the root; what follows from their children."""

    children_left: Integers
    children_right: Integers
    n_node_samples: Integers
    weighted_n_node_samples: Floats

    @abstractmethod
    def leaf_index(self, rows: Any) -> Integers:
        """Position in ``leaves`` of the leaf every row falls in."""

    def apply(self, rows: Any) -> Integers:
        """Node id of the leaf every row falls in, shape (n,)."""
        return self.leaves[self.leaf_index(rows)]

    @property
    def is_weighted(self) -> bool:
        """Whether weights and counts of the training rows differ."""
        return bool((self.weighted_n_node_samples != self.n_node_samples).any())

    @property
    def node_count(self) -> int:
        """Number of nodes."""
        return self.n_node_samples.size

    @cached_property
    def is_leaf(self) -> Bools:
        """Whether the node is a leaf, shape (node_count,)."""
        return self.children_left == NO_CHILD

    @cached_property
    def leaves(self) -> Integers:
        """Node ids of the leaves, left to right."""
        return np.flatnonzero(self.is_leaf)

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return self.leaves.size

    @cached_property
    def node_depth(self) -> Integers:
        """Depth of every node, 0 at the root, shape (node_count,)."""
        depth = [0] * self.node_count
        children = zip(self.children_left.tolist(), self.children_right.tolist(), strict=True)
        for node, below in enumerate(children):
            if below[0] != NO_CHILD:
                for child in below:
                    depth[child] = depth[node] + 1
        return np.array(depth)

    @property
    def max_depth(self) -> int:
        """Depth of the deepest leaf; 0 for a single leaf."""
        return int(self.node_depth.max())

    def node_sums(self, of_leaves: NDArray[Any]) -> NDArray[Any]:
        """Sums over the leaves below every node, shape (node_count, ...), from (n_leaves, ...)."""
        # Python's own numbers are faster to add than the entries of an array.
        own: list[Any] = of_leaves.tolist() if of_leaves.ndim == 1 else list(of_leaves)
        sums: list[Any] = [None] * self.node_count
        for leaf, value in zip(self.leaves.tolist(), own, strict=True):
            sums[leaf] = value
        for node, left, right in self._upward:
            sums[node] = sums[left] + sums[right]
        return np.array(sums, dtype=of_leaves.dtype)

    @cached_property
    def _upward(self) -> list[tuple[int, int, int]]:
        """Every split and its children, those below first."""
        splits = np.flatnonzero(~self.is_leaf)[::-1]
        nodes = splits, self.children_left[splits], self.children_right[splits]
        return list(zip(*(of.tolist() for of in nodes), strict=True))

    def paths(self) -> list[list[tuple[int, bool]]]:
        """Splits above every leaf, from the root, and its answers; leaves from left to right."""
        above: list[list[tuple[int, bool]]] = [[]] * self.node_count
        for node, left, right in reversed(self._upward):
            above[left] = [*above[node], (node, True)]
            above[right] = [*above[node], (node, False)]
        return [above[leaf] for leaf in self.leaves.tolist()]

    def decision_path(self, rows: NDArray[Any] | BinaryMatrix) -> csr_matrix:
        """Nodes every row passes through, its leaf included.

        Returns
        -------
        scipy.sparse.csr_matrix of int, shape (n, node_count)
            1 where the row passes through the node.
        """
        nodes, ends = [], [0]
        for path, leaf in zip(self.paths(), self.leaves.tolist(), strict=True):
            nodes += [*(node for node, _ in path), leaf]
            ends.append(len(nodes))
        passes = np.ones(len(nodes), dtype=np.int64), nodes, ends
        of_leaves = csr_matrix(passes, shape=(self.n_leaves, self.node_count))
        return of_leaves[self.leaf_index(rows)]


@dataclass(frozen=True, eq=False)
class Tree(BinaryTree):
    """Immutable binary tree; node 0 is the root and the nodes are in preorder.

    A row goes left if the binary feature of the node is true, otherwise right.

    Parameters
    ----------
    children_left, children_right : array of int, shape (node_count,)
        Node ids of the children, -1 at a leaf.
    feature : array of int, shape (node_count,)
        Binary feature on which the node splits, -2 at a leaf.
    n_node_samples : array of int, shape (node_count,)
        Training rows that reach the node.
    weighted_n_node_samples : array of float, shape (node_count,)
        Weight of these rows.
    threshold : array of float, shape (node_count,), optional
        Threshold of each split on a number, NaN at leaves and other splits.
    column : array of int, shape (node_count,), optional
        Position of the split's column among the columns of ``X``; -2 at leaves, and if a custom
        encoder does not report the column.
    improvement : array of float, shape (node_count,), optional
        Decrease of the mean loss when the node is split into two leaves; 0 at leaves, and NaN if
        the objective is not a sum over leaves.
    n_missing : array of int, shape (node_count,), optional
        For a split, the number of training rows of the node without a value in its column. For a
        leaf, the number of its rows without a value in the column of at least one split above it.
        Splits on whether a value is missing do not count.

    Raises
    ------
    ValueError
        If the arrays do not describe one tree in preorder. The message names the array and node.

    See Also
    --------
    bristlecone.export.export_text : The tree in words.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0]).tree_
    >>> tree.children_left.tolist(), tree.column.tolist(), tree.threshold.tolist()
    ([1, -1, -1], [0, -2, -2], [5.0, nan, nan])
    """

    children_left: Integers
    children_right: Integers
    feature: Integers
    n_node_samples: Integers
    weighted_n_node_samples: Floats
    threshold: Floats = None  # type: ignore[assignment]
    column: Integers = None  # type: ignore[assignment]
    improvement: Floats = None  # type: ignore[assignment]
    n_missing: Integers = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        nodes = np.shape(self.children_left)
        given = {
            "threshold": np.full(nodes, np.nan),
            "column": np.full(nodes, NO_FEATURE),
            "improvement": np.zeros(nodes),
            "n_missing": np.zeros(nodes, dtype=np.int64),
        }
        for name, value in given.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        whole = ("children_left", "children_right", "feature", "n_node_samples", "column")
        for name in (*whole, "n_missing"):
            self._freeze(name, np.int64)
        for name in ("weighted_n_node_samples", "threshold", "improvement"):
            self._freeze(name, np.float64)
        self._check_structure()

    def _freeze(self, name: str, dtype: type) -> None:
        array: NDArray[Any] = np.array(getattr(self, name), dtype=dtype)
        if array.shape != np.shape(self.children_left) or array.ndim != 1 or not array.size:
            raise ValueError(
                f"{name} has shape {array.shape}; expected one value per node, as in "
                f"children_left of shape {np.shape(self.children_left)}"
            )
        array.setflags(write=False)
        object.__setattr__(self, name, array)

    def _check_structure(self) -> None:
        count = self.node_count
        size = [1] * count
        children = list(zip(self.children_left.tolist(), self.children_right.tolist(), strict=True))
        features, bare = self.feature.tolist(), np.isnan(self.threshold).tolist()
        for node in range(count - 1, -1, -1):
            left, right = children[node]
            leaf = left == NO_CHILD
            if not leaf:
                if left != node + 1 or left >= count:
                    raise ValueError(f"children_left[{node}] is {left}; preorder needs {node + 1}")
                after_left = left + size[left]
                if right != after_left or right >= count:
                    raise ValueError(
                        f"children_right[{node}] is {right}; preorder needs {after_left} "
                        f"in a tree of {count} nodes"
                    )
                size[node] = 1 + size[left] + size[right]
            elif right != NO_CHILD:
                raise ValueError(f"children_right[{node}] is {right} but children_left is -1")
            feature = features[node]
            if feature != NO_FEATURE if leaf else feature < 0:
                raise ValueError(f"feature[{node}] is {feature} at a {'leaf' if leaf else 'split'}")
            if leaf and not bare[node]:
                raise ValueError(f"threshold[{node}] is {self.threshold[node]}")
        if size[0] != count:
            raise ValueError(f"children_left: only {size[0]} of {count} nodes hang from the root")

    @classmethod
    def grown(
        cls,
        children_left: Integers,
        children_right: Integers,
        feature: Integers,
        rows: NDArray[Any] | BinaryMatrix,
        weight: Floats | None = None,
        **more: Any,
    ) -> Tree:
        """Tree of the given structure with the training rows counted in every node.

        ``rows`` are binary features, shape (n, n_features); ``weight`` of None means one each;
        ``more`` are further arrays of the class.
        """
        bare = cls.bare(children_left, children_right, feature, **more)
        return bare.counted(bare.leaf_index(rows), weight)

    @classmethod
    def bare(
        cls, children_left: Integers, children_right: Integers, feature: Integers, **more: Any
    ) -> Tree:
        """Tree of the given structure without counts of rows; ``more`` as in ``grown``."""
        nothing = np.zeros(len(feature), dtype=np.int64), np.zeros(len(feature))
        return cls(children_left, children_right, feature, *nothing, **more)

    def counted(self, leaf: Integers, weight: Floats | None, count: Integers | None = None) -> Tree:
        """The tree with rows counted in its nodes; ``leaf`` is the position of every row's leaf.

        With ``count``, an entry stands for this many rows, whose total weight is ``weight``.
        """
        rows, total = (np.bincount(leaf, w, self.n_leaves) for w in (count, weight))
        sums = self.node_sums(rows.astype(np.int64)), self.node_sums(total)
        return self._with(n_node_samples=sums[0], weighted_n_node_samples=sums[1])

    def _with(self, **arrays: NDArray[Any]) -> Tree:
        """The same structure, which is not checked again, with other arrays."""
        tree = object.__new__(Tree)
        tree.__dict__.update(self.__dict__)
        for name, array in arrays.items():
            object.__setattr__(tree, name, array)
            tree._freeze(name, getattr(self, name).dtype.type)
        return tree

    def with_losses(self, loss: Floats | None) -> Tree:
        """The tree with improvements from these losses of its nodes; NaN where there are none."""
        if loss is None:
            return self._with(improvement=np.full(self.node_count, np.nan))
        gain = np.zeros(self.node_count)
        split = ~self.is_leaf
        left, right = self.children_left[split], self.children_right[split]
        gain[split] = loss[split] - (loss[left] + loss[right])
        return self._with(improvement=gain)

    def with_missing_counts(self, count: Integers) -> Tree:
        """The tree with these ``n_missing``."""
        return self._with(n_missing=count)

    def missing_counts(
        self, rows: NDArray[Any] | BinaryMatrix, missing: dict[int, Bools]
    ) -> Integers:
        """``n_missing`` of these rows, shape (node_count,); ``missing`` marks them by feature."""
        leaf, paths = self.leaf_index(rows), self.paths()
        count = np.zeros(self.node_count, dtype=np.int64)
        lacking = np.zeros(len(rows), dtype=bool)  # at some split above their leaf
        for feature, own in missing.items():
            asks = self.feature == feature
            reached = self.node_sums(np.bincount(leaf[own], minlength=self.n_leaves))
            count[asks] = reached[asks]
            below = np.array([any(asks[node] for node, _ in path) for path in paths])
            lacking |= own & below[leaf]
        count[self.leaves] = np.bincount(leaf[lacking], minlength=self.n_leaves)
        return count

    def __reduce__(self) -> tuple[Any, ...]:
        # Rebuilding through the constructor keeps the arrays read-only and drops caches.
        return Tree, tuple(getattr(self, field.name) for field in fields(self))

    def leaf_answers(self) -> list[frozenset[tuple[int, bool]]]:
        """Answers on the path to every leaf, left to right: (feature, yes).

        Leaves with the same answers contain the same rows, in whatever order the questions are
        asked.
        """
        asked = self.feature.tolist()
        return [frozenset((asked[node], yes) for node, yes in path) for path in self.paths()]

    def leaf_index(self, rows: NDArray[Any] | BinaryMatrix) -> Integers:
        """Position in ``leaves`` of the leaf every row falls in; O(n · depth).

        Parameters
        ----------
        rows : array or BinaryMatrix, shape (n, n_columns)
            Binary features.

        Returns
        -------
        array of int, shape (n,)
            From 0 to ``n_leaves - 1``, left to right.
        """
        if isinstance(rows, BinaryMatrix):
            arrays = self.feature, self.children_left, self.children_right
            return rows.leaf_index(arrays)
        node = np.zeros(len(rows), dtype=np.int64)
        for _ in range(self.max_depth):
            moving = np.flatnonzero(~self.is_leaf[node])
            at = node[moving]
            yes = rows[moving, self.feature[at]]
            node[moving] = np.where(yes, self.children_left[at], self.children_right[at])
        return np.searchsorted(self.leaves, node)
