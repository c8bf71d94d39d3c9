"""Layout and colours that all pictures share."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from survival_rows import sample

from bristlecone import OptimalSurvivalTree, OptimalTreeClassifier, OptimalTreeRegressor
from bristlecone._view.fitted import check_tree
from bristlecone._view.layout import place
from bristlecone._view.palette import LABELS, PAPER, leaf_colours, ramp


def luminance(colour):
    """Relative luminance, WCAG 2.2."""
    channels = np.array([int(colour[k : k + 2], 16) for k in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_every_colour_is_dark_enough_for_lines_and_the_ramp_darkens():
    colours = ramp(np.linspace(0, 1, 50))
    for colour in (*colours, *LABELS):
        assert (luminance(PAPER) + 0.05) / (luminance(colour) + 0.05) >= 3
    assert (np.diff([luminance(colour) for colour in colours]) < 0).all()
    assert len(set(ramp(np.linspace(0, 1, 32)))) == 32


def test_leaves_stand_side_by_side_and_splits_above_the_middle_of_their_children():
    X, y = sample()
    tree = OptimalSurvivalTree(max_depth=3).fit(X, y).tree_
    layout = place(tree, 2.0)
    assert layout.x[tree.leaves].tolist() == [2.0 * k + 1 for k in range(tree.n_leaves)]
    assert layout.width == 2.0 * tree.n_leaves and layout.levels == tree.max_depth + 1
    for node in np.flatnonzero(~tree.is_leaf):
        left, right = tree.children_left[node], tree.children_right[node]
        assert layout.parent[left] == layout.parent[right] == node
        assert layout.x[left] < layout.x[node] < layout.x[right]
        assert layout.x[node] == (layout.x[left] + layout.x[right]) / 2
    assert layout.parent[0] == -1


def test_colours_follow_the_risk():
    X, y = sample()
    tree = OptimalSurvivalTree(max_depth=3).fit(X, y)
    colours = leaf_colours(tree)
    assert list(colours) == tree.tree_.leaves.tolist()
    risk = dict(zip(tree.apply(X).tolist(), tree.predict(X).tolist(), strict=True))
    by_risk = sorted(colours, key=risk.__getitem__)
    light = [luminance(colours[node]) for node in by_risk]
    assert light == sorted(light, reverse=True)


def test_leaves_of_one_label_have_one_colour():
    X = np.arange(12)[:, None]
    tree = OptimalTreeClassifier(max_depth=2).fit(X, np.array(["a", "b", "a"]).repeat(4))
    colours = leaf_colours(tree)
    labels = dict(zip(tree.apply(X).tolist(), tree.predict(X).tolist(), strict=True))
    assert len(colours) == 3
    assert {colours[node]: label for node, label in labels.items()} == {
        LABELS[0]: "a",
        LABELS[1]: "b",
    }


def test_a_single_leaf_and_equal_leaves_have_a_colour():
    tree = OptimalTreeRegressor(max_depth=0).fit([[1.0], [2.0]], [1.0, 3.0])
    assert list(leaf_colours(tree)) == [0]


def test_other_estimators_and_classes_are_refused_by_name():
    with pytest.raises(TypeError, match=r"plot_tree takes the fitted trees .* LinearRegression"):
        check_tree(LinearRegression(), "plot_tree")
    with pytest.raises(TypeError, match="got a OptimalTreeRegressor"):
        check_tree(OptimalTreeRegressor, "plot_tree")
