"""Pictures of policies: overlap of propensity scores, and curves by treatment in every leaf."""

import numpy as np
import pandas as pd
import pytest

from bristlecone import OptimalSurvivalTree, PolicyTree, outcome
from bristlecone.curves import kaplan_meier
from bristlecone.datasets import load
from bristlecone.plot import plot_overlap, plot_treatment_curves

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def trial():
    aids = load("aids")
    X = aids.X[["age", "cd4", "priorzdv"]]
    arm = np.where(aids.X["tx"] == 1, "IDV", "control")
    given = {"treatment": arm, "propensity": 0.5}
    tree = PolicyTree(horizon=270, max_depth=1, reward="inverse-propensity", min_samples_leaf=200)
    return tree.fit(X, aids.y, **given), X, aids.y, arm


def test_every_leaf_has_the_curve_of_every_treatment(trial):
    tree, X, y, arm = trial
    ax = plot_treatment_curves(tree, X, y, treatment=arm, time_label="days")
    leaf = tree.apply(X)
    assert len(ax.child_axes) == tree.n_leaves_ == 2
    for node, label, inset in zip(
        tree.tree_.leaves, tree.leaf_table()["label"], ax.child_axes, strict=True
    ):
        assert inset.get_title("left").endswith(f"leaf {node}: {label}")
        curves = {line.get_label(): line for line in inset.lines if ":" in line.get_label()}
        assert len(curves) == 2
        for name in ("IDV", "control"):
            rows = (leaf == node) & (arm == name)
            events = y["event"][rows].sum()
            line = curves[f"{name}: {rows.sum():,} rows, {events:,} events"]
            x, height = line.get_data()
            np.testing.assert_allclose(height, kaplan_meier(y[rows])(x), atol=1e-12)
            assert (line.get_linewidth() > 2) == (name == label)
        assert inset.get_xlabel() == "days"
    with pytest.raises(TypeError, match="an OptimalSurvivalTree prescribes no treatment"):
        plot_treatment_curves(OptimalSurvivalTree(max_depth=1).fit(X, y), X, y, treatment=arm)
    with pytest.raises(ValueError, match="y is an ndarray"):
        plot_treatment_curves(tree, X, y["time"], treatment=arm)
    with pytest.raises(ValueError, match="treatment holds 'x'"):
        plot_treatment_curves(tree, X, y, treatment=np.repeat("x", len(X)))
    with pytest.raises(ValueError, match="treatment holds 0, which is not among those of the fit"):
        plot_treatment_curves(tree, X, y, treatment=X["age"] * 0)
    with pytest.raises(ValueError, match="X and treatment have the same index in another order"):
        plot_treatment_curves(tree, X, y, treatment=pd.Series(arm, X.index)[::-1])


@pytest.mark.slow
def test_overlap_has_a_band_for_every_treatment():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    arm = np.where(X[:, 0] + rng.normal(size=300) > 0, "a", "b")
    found = PolicyTree().estimate_rewards(X, X[:, 1], treatment=arm)
    ax = plot_overlap(found)
    assert [text.get_text() for text in ax.get_yticklabels()] == ["a", "b"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "rows with a",
        "rows with b",
    ]
    # The shares of each histogram, in the unit of its band.
    edges = np.linspace(0, 1, 26)
    for band, base in ((0, 1.0), (1, 0.0)):
        lines = [line for line in ax.lines if len(line.get_xdata()) == 26]
        of_band = lines[2 * band : 2 * band + 2]
        shares = [
            np.histogram(found.propensity[arm == name, band], edges)[0] / (arm == name).sum()
            for name in "ab"
        ]
        unit = 0.85 / np.max(shares)
        for line, share in zip(of_band, shares, strict=True):
            np.testing.assert_allclose(line.get_ydata()[:-1], base + unit * share, atol=1e-12)
    known = {"treatment": arm, "propensity": np.full(300, 0.5)}
    given = PolicyTree().estimate_rewards(X, X[:, 1], **known)
    with pytest.raises(ValueError, match="the propensity score of every treatment"):
        plot_overlap(given)
    with pytest.raises(TypeError, match="estimate_rewards returns; got an ndarray"):
        plot_overlap(X)


def test_names_of_treatments_are_shown_as_they_are():
    rng = np.random.default_rng(0)
    X, arm = rng.normal(size=(120, 2)), np.array(["_old", "$x_{$"])[np.arange(120) % 2]
    y = outcome(np.ones(120, dtype=bool), 1 + rng.exponential(size=120))
    given = {"treatment": arm, "propensity": np.full((120, 2), 0.5)}
    tree = PolicyTree(horizon=2.0, max_depth=0, reward="inverse-propensity").fit(X, y, **given)
    pictures = [
        (plot_overlap(tree.estimate_rewards(X, y, **given)), ["rows with {}", "rows with {}"]),
        (plot_treatment_curves(tree, X, y, treatment=arm).child_axes[0], ["{}: ", " {}: "]),
    ]
    for ax, starts in pictures:
        ax.figure.canvas.draw()  # a formula that is not one raises an error
        labels = [text.get_text() for text in ax.get_legend().get_texts()]
        names = [r"\$x_{\$", "_old"]
        for label, start, name in zip(labels, starts, names, strict=True):
            assert label.startswith(start.format(name))
