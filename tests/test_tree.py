"""The tree as parallel arrays: traversal, counts, and errors."""

import pickle

import numpy as np
import pytest

from bristlecone._tree import Tree

#        0: x1?
#   1: x0?    4: leaf
# 2    3
STRUCTURE = {
    "children_left": np.array([1, 2, -1, -1, -1]),
    "children_right": np.array([4, 3, -1, -1, -1]),
    "feature": np.array([1, 0, -2, -2, -2]),
}
ROWS = np.array([[1, 1], [0, 1], [1, 0], [0, 0], [1, 1]], dtype=bool)


def test_yes_goes_left_and_every_node_is_counted():
    weight = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    tree = Tree.grown(**STRUCTURE, rows=ROWS, weight=weight)
    np.testing.assert_array_equal(tree.apply(ROWS), [2, 3, 4, 4, 2])
    np.testing.assert_array_equal(tree.leaf_index(ROWS), [0, 1, 2, 2, 0])
    np.testing.assert_array_equal(tree.n_node_samples, [5, 3, 2, 1, 2])
    np.testing.assert_array_equal(tree.weighted_n_node_samples, [15, 8, 6, 2, 7])
    np.testing.assert_array_equal(tree.leaves, [2, 3, 4])
    np.testing.assert_array_equal(tree.node_depth, [0, 1, 2, 2, 1])
    assert (tree.node_count, tree.n_leaves, tree.max_depth) == (5, 3, 2)
    np.testing.assert_array_equal(
        tree.decision_path(ROWS[:3]).toarray(),
        [[1, 1, 1, 0, 0], [1, 1, 0, 1, 0], [1, 0, 0, 0, 1]],
    )


def test_a_single_leaf_takes_every_row():
    tree = Tree.grown(np.array([-1]), np.array([-1]), np.array([-2]), rows=ROWS)
    np.testing.assert_array_equal(tree.apply(ROWS), 0)
    np.testing.assert_array_equal(tree.leaf_index(ROWS), 0)
    assert (tree.n_leaves, tree.max_depth) == (1, 0)
    np.testing.assert_array_equal(tree.decision_path(ROWS).toarray(), np.ones((5, 1)))


def test_arrays_are_read_only_also_after_pickling():
    tree = Tree.grown(**STRUCTURE, rows=ROWS)
    for one in (tree, pickle.loads(pickle.dumps(tree))):
        np.testing.assert_array_equal(one.apply(ROWS), tree.apply(ROWS))
        with pytest.raises(ValueError, match="read-only"):
            one.feature[0] = 0
        with pytest.raises(AttributeError):
            one.feature = None


@pytest.mark.parametrize(
    ("array", "node", "value", "message"),
    [
        ("children_left", 0, 2, r"children_left\[0\] is 2; preorder needs 1"),
        ("children_left", 1, 0, r"children_left\[1\] is 0"),
        ("children_left", 4, 5, r"children_left\[4\] is 5"),
        ("children_right", 0, 3, r"children_right\[0\] is 3; preorder needs 4"),
        ("children_right", 1, 9, r"children_right\[1\] is 9"),
        ("children_right", 2, 0, r"children_right\[2\] is 0 but children_left is -1"),
        ("children_left", 0, -1, r"children_right\[0\] is 4 but children_left is -1"),
        ("feature", 0, -2, r"feature\[0\] is -2 at a split"),
        ("feature", 2, 1, r"feature\[2\] is 1 at a leaf"),
    ],
)
def test_arrays_that_are_no_tree_name_array_and_node(array, node, value, message):
    arrays = {name: values.copy() for name, values in STRUCTURE.items()}
    arrays[array][node] = value
    with pytest.raises(ValueError, match=message):
        Tree(**arrays, n_node_samples=np.ones(5), weighted_n_node_samples=np.ones(5))


def test_nodes_that_do_not_hang_from_the_root_are_refused():
    leaf = np.array([-1, -1])
    with pytest.raises(ValueError, match="only 1 of 2 nodes"):
        Tree(leaf, leaf, np.array([-2, -2]), np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match=r"feature has shape \(1,\)"):
        Tree(leaf, leaf, np.array([-2]), np.ones(2), np.ones(2))
    with pytest.raises(ValueError, match=r"threshold\[0\] is 0.5"):
        Tree(leaf[:1], leaf[:1], np.array([-2]), np.ones(1), np.ones(1), np.array([0.5]))
