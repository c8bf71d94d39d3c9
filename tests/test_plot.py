"""Plots: what is drawn, without looking at it."""

import sys

import numpy as np
import pytest
from survival_rows import sample

from bristlecone import OptimalSurvivalTree, OptimalTreeClassifier, SoftSurvivalTree
from bristlecone.plot import plot_leaf_curves

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")


@pytest.fixture
def model():
    X, y = sample()
    return SoftSurvivalTree(n_restarts=1, split_l2=0.0, random_state=0).fit(X, y), X


def test_every_leaf_has_a_bundle_and_its_median(model, tmp_path):
    from matplotlib import pyplot

    tree, X = model
    ax = plot_leaf_curves(tree, X, max_curves=10)
    leaf, labels = tree.apply(X), ax.get_legend_handles_labels()[1]
    counts = {node: int((leaf == node).sum()) for node in np.unique(leaf)}
    assert labels == [f"leaf {node} ({count} rows)" for node, count in counts.items()]
    assert len(ax.lines) == sum(min(10, count) + 1 for count in counts.values())
    thick = [line for line in ax.lines if line.get_linewidth() > 2]
    for line, node in zip(thick, counts, strict=True):
        survival = tree.predict_survival_function(X[leaf == node], times=line.get_xdata())
        np.testing.assert_allclose(line.get_ydata(), np.median(survival, axis=0), rtol=1e-12)
    ax.figure.savefig(tmp_path / "curves.png")
    pyplot.close(ax.figure)


def test_times_and_axes_of_the_user_are_used(model):
    from matplotlib import pyplot

    tree, X = model
    figure, mine = pyplot.subplots()
    ax = plot_leaf_curves(tree, X, times=[30.0, 10.0], ax=mine)
    assert ax is mine and ax.get_xlim() == (0.0, 30.0)
    assert all(line.get_xdata().tolist() == [10.0, 30.0] for line in ax.lines)
    with pytest.raises(ValueError, match="max_curves"):
        plot_leaf_curves(tree, X, max_curves=0)
    pyplot.close(figure)


def test_a_tree_without_survival_is_refused_by_name():
    model = OptimalTreeClassifier(max_depth=1).fit([[0], [1]], [0, 1])
    with pytest.raises(TypeError, match="a OptimalTreeClassifier does not predict"):
        plot_leaf_curves(model, [[0]])


def test_a_tree_of_yes_no_questions_has_one_curve_per_leaf():
    from matplotlib import pyplot

    X, y = sample()
    tree = OptimalSurvivalTree(max_depth=1).fit(X, y)
    ax = plot_leaf_curves(tree, X, max_curves=1)
    assert len(ax.lines) == 2 * tree.n_leaves_
    pyplot.close(ax.figure)


def test_without_matplotlib_the_extra_is_named(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"bristlecone\[plot\]"):
        plot_leaf_curves(*model)
