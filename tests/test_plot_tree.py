"""The picture of a tree: its texts and curves, which do not overlap."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from pace import slow_but
from sklearn.datasets import load_iris
from survival_rows import sample

from bristlecone import (
    GreedySurvivalTree,
    OptimalSurvivalTree,
    OptimalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    PolicyTree,
    SoftSurvivalTree,
    Task,
)
from bristlecone.curves import kaplan_meier, numbers_at_risk
from bristlecone.plot import plot_tree

pytest.importorskip("matplotlib")
from matplotlib import pyplot
from matplotlib.patches import FancyBboxPatch

LONG = [
    "progesterone_receptor_concentration_fmol_per_mg",
    "number of positive lymph nodes at surgery",
    "Überlebenszeitrelevanter_Laborwert",
    "x$y^2$_{z}",
]


def texts(ax):
    return [text.get_text() for text in ax.texts]


def boxes(ax):
    """Extents of texts, boxes of splits and panels, in points."""
    figure = ax.figure
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    unit = 72 / figure.dpi
    reported = [
        (text.get_text(), text.get_window_extent(renderer).extents * unit)
        for text in ax.texts
        if text.get_text()
    ]
    splits = [
        patch.get_window_extent(renderer).extents * unit
        for patch in ax.patches
        if isinstance(patch, FancyBboxPatch)
    ]
    panels = [panel.get_window_extent(renderer).extents * unit for panel in ax.child_axes]
    paper = ax.get_window_extent(renderer).extents * unit
    return reported, splits, panels, paper


def overlap(one, other, slack=0.3):
    """Whether two extents overlap by more than a sliver, in points."""
    return (np.minimum(one[2:], other[2:]) - np.maximum(one[:2], other[:2]) > slack).all()


def inside(one, other, slack=0.3):
    return (one[:2] >= other[:2] - slack).all() and (one[2:] <= other[2:] + slack).all()


def assert_tidy(ax):
    reported, splits, panels, paper = boxes(ax)
    for k, (text, extent) in enumerate(reported):
        assert inside(extent, paper), text
        for other, beside in reported[:k]:
            assert not overlap(extent, beside), (text, other)
        for panel in panels:
            assert not overlap(extent, panel), text
        for split in splits:
            assert inside(extent, split) or not overlap(extent, split), text
    for solid in (splits, panels):
        for k, extent in enumerate(solid):
            assert inside(extent, paper)
            assert not any(overlap(extent, other) for other in solid[:k])


@pytest.fixture(scope="module")
def rows():
    X, y = sample(4000)
    X.columns = LONG
    return X, y


@pytest.fixture(scope="module")
def trees(rows):
    """Trees with 2, 8, 16 and 32 leaves over columns with long names."""
    found = {}
    for leaves in (2, 8, 16, 32):
        tree = GreedySurvivalTree(max_depth=8, max_leaf_nodes=leaves).fit(*rows)
        assert tree.n_leaves_ == leaves
        found[leaves] = tree
    return found


@pytest.mark.parametrize("width", [3.35, 7.0])
@pytest.mark.parametrize("leaves", slow_but({2, 8}, [2, 8, 16, 32]))
def test_no_text_meets_another_or_leaves_its_box(trees, leaves, width):
    ax = plot_tree(trees[leaves], width=width)
    assert ax.figure.get_figwidth() == width
    assert_tidy(ax)


@pytest.mark.slow
def test_32_leaves_fit_on_a_page():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(2000, 5)), columns=list("abcde"))
    y = (X.to_numpy() > 0) @ 2.0 ** np.arange(5)
    tree = OptimalTreeRegressor(max_depth=5, encoder="auto").fit(X.gt(0).astype(int), y)
    assert tree.n_leaves_ == 32
    ax = plot_tree(tree)
    assert tuple(ax.figure.get_size_inches()) <= (7.0, 9.7)
    assert_tidy(ax)


@pytest.mark.parametrize("direction", ["down", "across"])
def test_both_directions_are_tidy_and_tell_every_question_and_leaf(trees, direction):
    tree = trees[8]
    ax = plot_tree(tree, direction=direction, width=7.0)
    assert_tidy(ax)
    reported = texts(ax)
    assert [f"leaf {node}" in reported for node in tree.tree_.leaves] == [True] * 8
    drawn = "".join(reported).replace(" ", "")
    for question in tree.splits_.values():
        assert question.replace(" ", "") in drawn


def test_panels_show_kaplan_meier_with_its_band_and_the_curve_of_the_model():
    X, y = sample()
    tree = OptimalSurvivalTree(max_depth=1).fit(X, y)
    ax = plot_tree(tree, confidence=0.9, direction="down")
    leaf = tree.apply(X)
    for node, panel in zip(tree.tree_.leaves, ax.child_axes, strict=True):
        own = y[leaf == node]
        curve = kaplan_meier(own)
        solid, marks, dashed = panel.lines
        x, values = solid.get_xdata(), solid.get_ydata()
        assert solid.get_drawstyle() == "steps-post"
        assert_allclose(values, curve(x), rtol=1e-12)
        fallen = curve.x[np.diff(np.append(1.0, curve.y)) != 0]
        assert np.isin(fallen, x).all() and x[-1] == own["months"].max()
        censored = np.unique(own["months"][~own["dead"]])
        assert_array_equal(marks.get_xdata(), censored)
        assert_allclose(marks.get_ydata(), curve(censored), rtol=1e-12)
        times = dashed.get_xdata()
        model = tree.predict_survival_function(X[leaf == node][:1], times=times)[0]
        assert_allclose(dashed.get_ydata(), model, rtol=1e-12)
        # The band consists of the limits at the steps.
        (band,) = panel.collections
        lower, upper = curve.confidence_interval(0.9)
        edge = band.get_paths()[0].vertices[:, 1]
        assert_allclose(edge.min(), lower.min(), rtol=1e-9)
        assert np.isin(np.round(upper, 9), np.round(edge, 9)).all()


def test_facts_are_those_of_the_rows_and_medians_say_that_they_are_kaplan_meier():
    X, y = sample()
    tree = OptimalSurvivalTree(max_depth=1).fit(X, y)
    leaf = tree.apply(X)
    reported = texts(plot_tree(tree, direction="down"))
    table = texts(plot_tree(tree, direction="across", width=7.0))
    for node in tree.tree_.leaves:
        own = y[leaf == node]
        curve = kaplan_meier(own)
        assert f"n = {len(own)}, events {own['dead'].sum()}" in reported
        assert f"KM median {curve.median:g}" in reported
        low, high = curve.median_interval()
        interval = f"({low:g} to {high:g})".replace("inf", "–")
        assert interval in reported
        assert f"{curve.median:g} {interval}" in table
    assert any("(KM)" in text for text in reported)
    assert "KM median (95% CI)" in " ".join(table)


@pytest.mark.parametrize("direction", ["down", "across"])
def test_numbers_at_risk_are_counted_ones(direction):
    X, y = sample()
    tree = OptimalSurvivalTree(max_depth=1).fit(X, y)
    ax = plot_tree(tree, direction=direction, width=7.0)
    leaf = tree.apply(X)
    ticks = ax.child_axes[0].get_xticks()
    wanted = {
        str(count)
        for node in tree.tree_.leaves
        for count in numbers_at_risk(y[leaf == node], ticks)
    }
    assert len(wanted) > 4 and wanted <= set(texts(ax))


def test_rows_that_enter_late_are_not_at_risk_before():
    X, y = sample()
    late = pd.DataFrame({"event": y["dead"], "time": y["months"] + 5, "entry": 5.0})
    ax = plot_tree(OptimalSurvivalTree(max_depth=0).fit(X, late))
    reported = texts(ax)
    assert reported[reported.index("0") + 1] == "0"


def test_a_curve_that_is_kaplan_meier_is_drawn_once():
    X, y = sample()
    tree = OptimalSurvivalTree(max_depth=1, leaf_curve="kaplan-meier").fit(X, y)
    ax = plot_tree(tree)
    assert all(len(panel.lines) == 2 for panel in ax.child_axes)
    assert not any("Dashed" in text for text in texts(ax))


def test_weights_stand_beside_the_rows():
    X, y = sample()
    weight = np.where(np.arange(len(X)) % 2, 2.0, 1.0)
    tree = OptimalSurvivalTree(max_depth=1).fit(X, y, sample_weight=weight)
    reported = " ".join(texts(plot_tree(tree, direction="down")))
    for node in tree.tree_.leaves:
        assert f"(weight {tree.tree_.weighted_n_node_samples[node]:g})" in reported


def test_classes_have_bars_of_their_shares():
    iris = load_iris(as_frame=True)
    tree = OptimalTreeClassifier(max_depth=2).fit(iris.data, iris.target_names[iris.target])
    ax = plot_tree(tree)
    assert_tidy(ax)
    reported = texts(ax)
    for node, label, shares in zip(
        tree.tree_.leaves, tree.leaf_labels_, tree.leaves_.shares, strict=True
    ):
        assert f"leaf {node}: {tree.classes_[label]}" in reported
        assert all(f"{share:.2f}" in reported for share in shares)
    widths = [patch.get_width() for patch in ax.patches if not isinstance(patch, FancyBboxPatch)]
    assert_allclose(np.array(widths) / max(widths), tree.leaves_.shares.ravel(), atol=1e-12)
    assert_tidy(plot_tree(tree, direction="across"))


def test_many_classes_are_summed_up():
    X = np.arange(20)[:, None]
    tree = OptimalTreeClassifier(max_depth=1).fit(X, np.arange(20) % 10)
    reported = texts(plot_tree(tree))
    assert reported.count("5 others") == 2
    # The first letters of "5 others" would look like class 5.
    narrow = texts(plot_tree(tree, direction="down", width=1.6))
    assert narrow.count("…") == 2


def test_treatments_have_bars_of_their_values():
    X, outcome = [[1], [1], [0], [0]], [1.0, -2.0, -1.0, 3.0]
    tree = PolicyTree(reward="inverse-propensity", max_depth=1)
    tree.fit(X, outcome, treatment=["a", "b", "a", "b"], propensity=[0.5] * 4)
    ax = plot_tree(tree, direction="down")
    assert_tidy(ax)
    reported = texts(ax)
    assert {"leaf 1: a", "leaf 2: b"} == {text for text in reported if text.startswith("leaf")}
    for value in tree.leaf_values_.ravel():
        assert f"{value:.3g}" in reported
    assert_tidy(plot_tree(tree, direction="across"))


def test_numbers_have_box_plots_on_one_axis():
    X, _ = sample()
    y = X["x0"].to_numpy() ** 3
    tree = OptimalTreeRegressor(max_depth=2).fit(X, y)
    ax = plot_tree(tree, direction="down")
    assert_tidy(ax)
    assert len({panel.get_ylim() for panel in ax.child_axes}) == 1
    for panel, levels, mean in zip(
        ax.child_axes, tree.leaves_.quantiles, tree.leaves_.mean, strict=True
    ):
        drawn = np.concatenate([np.ravel(line.get_ydata()) for line in panel.lines])
        for value in [*levels[[0, 1, 3, 5, 6]], mean]:
            assert np.isclose(drawn, value, rtol=1e-12).any()
        assert f"mean {mean:.4g}" in texts(ax)
    across = plot_tree(tree, direction="across")
    assert_tidy(across)
    assert len({panel.get_xlim() for panel in across.child_axes}) == 1


def test_tasks_of_ones_own_are_reported_in_words():
    class SquaredError(Task):
        def statistics(self, X, y):
            return np.column_stack([np.ones(len(y)), y, y**2])

        def leaf_cost(self, sums):
            return sums[:, 2] - sums[:, 1] ** 2 / sums[:, 0]

        def leaf_value(self, sums):
            return sums[:, 1] / sums[:, 0]

    tree = OptimalTree(task=SquaredError(), max_depth=1).fit(
        [[1], [2], [8]], np.array([1.0, 3.0, 11.0])
    )
    for direction in ("down", "across"):
        ax = plot_tree(tree, direction=direction)
        assert_tidy(ax)
        drawn = " ".join(texts(ax))
        if direction == "down":
            assert "value 2" in drawn and "cost 2" in drawn and "value 11" in drawn
        else:
            assert {"value", "cost", "2", "11"} <= set(texts(ax))


@pytest.mark.slow
def test_soft_splits_show_their_largest_weights():
    X, y = sample()
    X.columns = LONG
    tree = SoftSurvivalTree(depth=2, n_restarts=1, split_l2=0.0, random_state=0).fit(X, y)
    ax = plot_tree(tree, width=7.0)
    assert_tidy(ax)
    assert_tidy(plot_tree(tree, width=7.0, direction="across"))
    assert_tidy(plot_tree(tree, width=3.35))
    bars = [patch for patch in ax.patches if not isinstance(patch, FancyBboxPatch)]
    drawn = np.sort([bar.get_width() for bar in bars])
    weights = np.sort(np.abs(tree.tree_.weights).ravel())
    assert_allclose(drawn / drawn[-1], weights / weights[-1], rtol=1e-9)
    assert {"left", "right"} <= set(texts(ax))


def test_a_single_leaf_is_a_picture_too():
    X, y = sample()
    ax = plot_tree(OptimalSurvivalTree(max_depth=0).fit(X, y))
    assert "leaf 0" in texts(ax) and len(ax.child_axes) == 1
    assert_tidy(ax)


@pytest.mark.parametrize("leaves", slow_but({2}, [2, 32]))
def test_axes_of_the_user_are_used_whatever_their_size(trees, leaves):
    _, (mine, other) = pyplot.subplots(1, 2, figsize=(8, 4), dpi=300)
    assert plot_tree(trees[leaves], ax=mine) is mine
    assert not other.texts and len(pyplot.get_fignums()) == 1
    assert_tidy(mine)


@pytest.mark.slow
@pytest.mark.parametrize("kind", slow_but({"svg"}, ["svg", "pdf"]))
def test_vector_files_hold_text(trees, kind, tmp_path):
    ax = plot_tree(trees[8])
    file = tmp_path / f"tree.{kind}"
    with pyplot.rc_context({"svg.fonttype": "none"}):
        ax.figure.savefig(file)
    content = file.read_bytes()
    assert content
    if kind == "svg":
        assert b"KM median" in content and "Kaplan–Meier".encode() in content


def test_settings_of_matplotlib_stay(trees):
    before = dict(pyplot.rcParams)
    plot_tree(trees[2])
    assert dict(pyplot.rcParams) == before


def test_bad_input_is_reported(trees):
    with pytest.raises(TypeError, match=r"plot_tree takes the fitted trees.*; got a list"):
        plot_tree([1])
    with pytest.raises(ValueError, match="direction must be one of"):
        plot_tree(trees[2], direction="up")
    with pytest.raises(ValueError, match="width"):
        plot_tree(trees[2], width=0.5)
    with pytest.raises(ValueError, match="confidence"):
        plot_tree(trees[2], confidence=1.0)
    with pytest.raises(ValueError, match="does not go with ax"):
        plot_tree(trees[2], width=7.0, ax=pyplot.figure().add_subplot())
    with pytest.raises(TypeError, match="ax must be a matplotlib Axes or None; got an int"):
        plot_tree(trees[2], ax=3)


def test_many_steps_are_thinned_by_less_than_a_line_is_wide():
    rng = np.random.default_rng(0)
    X, time = rng.normal(size=(6000, 2)), rng.exponential(size=6000)
    y = np.ones(6000, dtype=bool), time
    tree = OptimalSurvivalTree(max_depth=0).fit(X, y)
    (panel,) = plot_tree(tree).child_axes
    curve = kaplan_meier(y)
    x, drawn = panel.lines[0].get_data()
    assert len(x) <= 502
    shown = drawn[np.searchsorted(x, curve.x, side="right") - 1]
    assert np.abs(shown - curve.y).max() <= 1 / 250


@pytest.mark.slow
def test_equal_numbers_and_names_with_line_breaks_can_be_drawn():
    X = pd.DataFrame({"two\nlines": np.arange(40.0), "x" * 150: np.arange(40.0)[::-1] ** 2})
    ax = plot_tree(OptimalTreeRegressor(max_depth=1).fit(X, np.ones(40)))
    assert_tidy(ax)
    assert len(set(ax.child_axes[0].get_yticks())) > 1
    for name in X:
        tree = OptimalTreeRegressor(max_depth=1).fit(X[[name]], X.iloc[:, 0] > 20)
        for width in (3.35, 7.0):
            assert_tidy(plot_tree(tree, width=width))


@pytest.mark.parametrize("direction", slow_but({"down"}, ["down", "across"]))
def test_labels_treatments_and_soft_columns_with_line_breaks_can_be_drawn(direction):
    # A line break that is measured gives a warning about a missing glyph, which is an error here.
    X = pd.DataFrame({"two\nlines": np.arange(60.0), "a\ttab": np.arange(60.0)[::-1] ** 2})
    label = np.array(["one\ntwo", "three\r\nfour", "five"])[np.arange(60) // 20]
    outcomes = np.where(label[:, None] == np.unique(label), 1.0, 0.0)
    policy = PolicyTree(max_depth=2).fit(
        X,
        np.zeros(60),
        treatment=np.roll(label, 7),
        propensity=np.full(60, 1 / 3),
        predicted_outcomes=outcomes,
    )
    soft = SoftSurvivalTree(depth=1, n_restarts=1, random_state=0)
    soft.fit(X, (np.ones(60, dtype=bool), 1 + np.arange(60.0)))
    for tree in (OptimalTreeClassifier(max_depth=2).fit(X, label), policy, soft):
        ax = plot_tree(tree, direction=direction)
        assert_tidy(ax)
        assert not any(sign in text for text in texts(ax) for sign in "\n\r\t")


@pytest.mark.slow
def test_the_work_for_a_long_label_is_bounded(monkeypatch):
    from matplotlib.textpath import text_to_path

    measure, measured = text_to_path.get_text_width_height_descent, []
    monkeypatch.setattr(
        text_to_path,
        "get_text_width_height_descent",
        lambda text, *font, **style: measured.append(text) or measure(text, *font, **style),
    )

    def work(length):
        site = "site " + "n" * length
        labels = ["x" * length, "some words " * (length // 11) + "b", "c_" * (length // 2)]
        X = pd.DataFrame({site: labels * 20})
        measured.clear()
        plot_tree(OptimalTreeRegressor(max_depth=2).fit(X, np.tile([0.0, 1.0, 5.0], 20)))
        ax = plot_tree(OptimalTreeClassifier(max_depth=2).fit(X, X[site]))
        reported = "".join(texts(ax))
        assert "…" in reported and len(reported) < 2000
        return len(measured)

    assert work(5000) <= 1.1 * work(500)


def test_leaves_without_rows_say_so():
    X, y = sample()
    tree = SoftSurvivalTree(depth=1, n_restarts=1, random_state=0).fit(X, y)
    counts = np.array([150, 150, 0])
    tree.tree_ = replace(tree.tree_, n_node_samples=counts, weighted_n_node_samples=counts * 1.0)
    full, empty = tree.leaves_.statistics
    tree.leaves_ = replace(tree.leaves_, statistics=(full, replace(empty, n_samples=0)))
    ax = plot_tree(tree, direction="down")
    assert_tidy(ax)
    assert "no rows" in texts(ax)
    # Only the curve of the model.
    assert len(ax.child_axes[1].lines) == 1 and not ax.child_axes[1].collections
    assert_tidy(plot_tree(tree, direction="across"))
