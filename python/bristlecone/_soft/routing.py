"""A complete binary tree of fixed depth: node numbers, path probabilities, their derivatives.

Inside the trainers the nodes are numbered level by level: the children of s are 2s + 1 (left) and
2s + 2. The splits come first, then the leaves from left to right.
"""

from __future__ import annotations

import numpy as np

from bristlecone._types import Bools, Floats, Integers


def n_splits(depth: int) -> int:
    """Splits of the complete tree."""
    return 2**depth - 1


def n_leaves(depth: int) -> int:
    """Leaves of the complete tree."""
    return int(2**depth)


def preorder(depth: int) -> Integers:
    """Preorder number of every node, by its number level by level."""
    number = np.zeros(2 ** (depth + 1) - 1, dtype=np.int64)
    for split in range(n_splits(depth)):
        level = (split + 1).bit_length() - 1
        below = 2 ** (depth - level) - 1  # nodes of a child's subtree
        number[2 * split + 1] = number[split] + 1
        number[2 * split + 2] = number[split] + 1 + below
    return number


def subtree(depth: int, split: int) -> tuple[Integers, Integers]:
    """Splits under a split (itself first, level by level) and its leaves, counted from 0."""
    nodes = np.array([split])
    splits = []
    while nodes[0] < n_splits(depth):
        splits.append(nodes)
        nodes = np.concatenate([[2 * node + 1, 2 * node + 2] for node in nodes])
    return np.concatenate(splits), nodes - n_splits(depth)


def _branches(logit: Floats) -> tuple[Floats, Floats]:
    """Probabilities to go left and right, each exact to the last digit however small."""
    e = np.exp(-np.abs(logit))
    large = 1 / (1 + e)
    small = e * large
    goes_left = logit >= 0
    return np.where(goes_left, large, small), np.where(goes_left, small, large)


def leaf_probabilities(logit: Floats) -> Floats:
    """Probability of every leaf, shape (n_leaves, n), from the splits' logits (n_splits, n)."""
    return _reached(*_branches(logit))[len(logit) :]


def _reached(left: Floats, right: Floats) -> Floats:
    """Probability to reach every node, level by level, shape (n_splits + n_leaves, n)."""
    reach = np.ones((2 * len(left) + 1, left.shape[1]))
    first, width = 0, 1
    while first < len(left):
        splits = slice(first, first + width)
        first, width = first + width, 2 * width
        reach[first : first + width : 2] = reach[splits] * left[splits]
        reach[first + 1 : first + width : 2] = reach[splits] * right[splits]
    return reach


def expected(logit: Floats, loss: Floats) -> tuple[Floats, Floats]:
    """Expected loss Σ_ℓ P_ℓ L_ℓ of every row, (n,), and derivative by the logits, (n_splits, n).

    ``logit`` has shape (n_splits, n), ``loss`` (n_leaves, n).
    """
    left, right = _branches(logit)
    slope = np.empty_like(logit)
    value = loss
    first = len(logit)
    while first > 0:
        width = len(value) // 2
        first -= width
        splits = slice(first, first + width)
        from_left, from_right = value[0::2], value[1::2]
        value = left[splits] * from_left + right[splits] * from_right
        slope[splits] = left[splits] * right[splits] * (from_left - from_right)
    # Until now by the subtree's own value; times the probability to reach it.
    slope *= _reached(left, right)[: len(logit)]
    return value[0], slope


def hard_leaf(logit: Floats) -> Integers:
    """Leaf at the end of the more probable branches, counted from 0; p = 1/2 goes left."""
    node = np.zeros(logit.shape[1], dtype=np.int64)
    rows = np.arange(logit.shape[1])
    depth = (len(logit) + 1).bit_length() - 1
    for _ in range(depth):
        node = 2 * node + np.where(logit[node, rows] >= 0, 1, 2)
    return node - len(logit)


def passes(leaf: Integers, depth: int, split: int) -> Bools:
    """Whether the path to each leaf contains the split."""
    leaves = subtree(depth, split)[1]
    return (leaf >= leaves[0]) & (leaf <= leaves[-1])
