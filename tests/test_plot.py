"""Plots: the drawn elements, without looking at pictures."""

import colorsys
import sys

import numpy as np
import pandas as pd
import pytest
from survival_rows import sample

from bristlecone import OptimalSurvivalTree, OptimalTreeClassifier, SoftSurvivalTree
from bristlecone._encoder.rules import leaf_rules, rule_text
from bristlecone._leaves.follow_up import FollowUp, hazard_ratios
from bristlecone._view.palette import leaf_colours
from bristlecone.curves import kaplan_meier, numbers_at_risk
from bristlecone.datasets import load
from bristlecone.plot import (
    plot_leaf_curves,
    plot_size_path,
    plot_stability,
    plot_survival,
    plot_thresholds,
    plot_trace,
    plot_tree,
)
from bristlecone.trust import stability
from bristlecone.tune import TreeSizeCV

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
    with pytest.raises(TypeError, match="an OptimalTreeClassifier does not predict"):
        plot_leaf_curves(model, [[0]])


def test_step_curves_are_drawn_as_steps_one_per_leaf():
    X, y = sample()
    tree = OptimalSurvivalTree(max_depth=1).fit(X, y)
    ax = plot_leaf_curves(tree, X, time_label="months")
    assert ax.get_xlabel() == "months"
    leaf = tree.apply(X)
    for line, node in zip(ax.lines, tree.tree_.leaves, strict=True):
        assert line.get_drawstyle() == "steps-post"
        curve = tree.predict_survival_function(X[leaf == node][:1])[0]
        x = line.get_xdata()
        np.testing.assert_allclose(line.get_ydata(), curve(x), rtol=1e-12)
        # No step is missing.
        fallen = curve.x[np.diff(np.append(1.0, curve.y)) != 0]
        assert np.isin(fallen, x).all()


def test_kaplan_meier_is_drawn_where_it_is_asked_for():
    X, y = sample()
    tree = OptimalSurvivalTree(max_depth=1).fit(X, y)
    ax = plot_leaf_curves(tree, X, kaplan_meier=True)
    leaf = tree.apply(X)
    dotted = [line for line in ax.lines if line.get_linestyle() == ":" and len(line.get_xdata())]
    for line, node in zip(dotted, tree.tree_.leaves, strict=True):
        curve = kaplan_meier(y[leaf == node])
        np.testing.assert_allclose(line.get_ydata(), curve(line.get_xdata()), rtol=1e-12)
    assert ax.get_legend().get_texts()[-1].get_text() == "Kaplan–Meier"


def test_legends_lie_beside_or_below_the_lines(model):
    tree, X = model
    for ax in (plot_leaf_curves(tree, X), plot_survival(tree, X[:3])):
        ax.figure.canvas.draw()
        legend, inner = ax.get_legend().get_window_extent(), ax.get_window_extent()
        assert legend.x0 >= inner.x1 or legend.y1 <= inner.y0
        paper = ax.figure.bbox
        assert legend.x1 <= paper.x1 and legend.y0 >= paper.y0


def test_rows_of_a_leaf_share_a_line_that_shows_their_rule():
    X, y = sample()
    tree = OptimalSurvivalTree(max_depth=1).fit(X, y)
    leaf = tree.apply(X)
    rows = np.concatenate([np.flatnonzero(leaf == 1)[:3], np.flatnonzero(leaf == 2)[:1]])
    ax = plot_survival(tree, X.iloc[rows])
    rules = [rule_text(rule) for rule in leaf_rules(tree)]
    reported = [text.get_text() for text in ax.get_legend().get_texts()]
    assert reported == [f"rows 0–2: leaf 1, {rules[0]}", f"row 3: leaf 2, {rules[1]}"]
    for line, row in zip(ax.lines, (0, 3), strict=True):
        times = line.get_xdata()
        survival = tree.predict_survival_function(X.iloc[rows[[row]]], times=times)[0]
        np.testing.assert_allclose(line.get_ydata(), survival, rtol=1e-12)


def test_many_rows_of_a_leaf_are_counted():
    X, y = sample()
    tree = OptimalSurvivalTree(max_depth=0).fit(X, y)
    ax = plot_survival(tree, X)
    assert ax.get_legend().get_texts()[0].get_text() == "rows 0–149: leaf 0, every row"
    tree = OptimalSurvivalTree(max_depth=1).fit(X, y)
    reported = [text.get_text() for text in plot_survival(tree, X).get_legend().get_texts()]
    assert reported[0].startswith(f"{tree.tree_.n_node_samples[1]} rows: leaf 1")


def test_rows_of_soft_trees_have_a_line_each_with_their_branches(model):
    tree, X = model
    ax = plot_survival(tree, X[:2], times=[5.0, 10.0, 20.0])
    left = tree.predict_proba_branch(X[:2])[:, 0]
    for row, line in enumerate(ax.lines):
        times = line.get_xdata()
        survival = tree.predict_survival_function(X[row : row + 1], times=times)[0]
        np.testing.assert_allclose(line.get_ydata(), survival, rtol=1e-12)
        reported = line.get_label()
        share = left[row]
        way = f"left {share:.2f}" if share >= 0.5 else f"right {1 - share:.2f}"
        assert reported.startswith(f"row {row}: {way}")
        assert reported.endswith(f"leaf {tree.apply(X[row : row + 1])[0]}")


def test_too_many_rows_of_a_soft_tree_none_and_other_trees_are_refused(model):
    tree, X = model
    with pytest.raises(ValueError, match="at most 20; X has 150 rows"):
        plot_survival(tree, X)
    with pytest.raises(ValueError, match="X has none"):
        plot_survival(tree, X[:0])
    labels = OptimalTreeClassifier(max_depth=1).fit([[0], [1]], [0, 1])
    with pytest.raises(TypeError, match="an OptimalTreeClassifier does not predict"):
        plot_survival(labels, [[0]])


def test_without_matplotlib_the_extra_is_named(model, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"bristlecone\[plot\]"):
        plot_leaf_curves(*model)


def test_the_score_of_every_size_is_drawn_with_its_error_and_the_choice():
    X, y = sample()
    search = TreeSizeCV(
        OptimalSurvivalTree(max_depth=2), scoring=["concordance", "ibs"], refit="ibs"
    )
    search.fit(X, y)
    ax = plot_size_path(search)
    (bars,) = ax.containers
    np.testing.assert_allclose(bars.lines[0].get_ydata(), search.cv_results_["mean_test_ibs"])
    ends = np.array([segment[:, 1] for segment in bars.lines[2][0].get_segments()])
    np.testing.assert_allclose(np.diff(ends)[:, 0] / 2, search.cv_results_["se_test_ibs"])
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert f"chosen: {search.best_n_leaves_} leaves" in texts
    with pytest.raises(ValueError, match="needs no X and y"):
        plot_size_path(search, X, y)


def test_shares_of_resamples_are_bars_and_columns_of_the_tree_bold():
    X, y = sample()
    tree = OptimalSurvivalTree(max_depth=2).fit(X, y)
    found = stability(tree, X, y, n_resamples=10, random_state=0)
    ax = plot_stability(found)
    anywhere, root = ([bar.get_width() for bar in bars] for bars in ax.containers)
    columns = found.columns[found.columns["anywhere"] > 0]
    np.testing.assert_allclose(anywhere, columns["anywhere"])
    np.testing.assert_allclose(root, columns["root"])
    bold = {one.get_text() for one in ax.get_yticklabels() if one.get_fontweight() == "bold"}
    assert bold == set(tree.features_used_)
    with pytest.raises(TypeError, match="got an OptimalSurvivalTree"):
        plot_stability(tree)


def test_kaplan_meier_of_all_leaves_with_bands_and_numbers_at_risk():
    X, y = sample()
    tree = OptimalSurvivalTree(max_depth=1).fit(X, y)
    ax = plot_leaf_curves(tree, at_risk=True, confidence=0.9, time_label="months")
    leaf = tree.apply(X)
    solid = [line for line in ax.lines if line.get_drawstyle() == "steps-post"]
    ticks = [tick for tick in ax.get_xticks() if tick <= ax.get_xlim()[1]]
    reported = [text.get_text() for text in ax.texts]
    assert reported[0] == "At risk" and len(reported) == 1 + 2 * (1 + len(ticks))
    for k, (line, node) in enumerate(zip(solid, tree.tree_.leaves, strict=True)):
        own = y[leaf == node]
        curve = kaplan_meier(own)
        np.testing.assert_allclose(line.get_ydata(), curve(line.get_xdata()), rtol=1e-12)
        lower, _ = curve.confidence_interval(0.9)
        edge = ax.collections[k].get_paths()[0].vertices[:, 1]
        np.testing.assert_allclose(edge.min(), lower.min(), rtol=1e-9)
        start = 1 + k * (1 + len(ticks))
        counts = [str(n) for n in numbers_at_risk(own, ticks)]
        assert reported[start : start + 1 + len(ticks)] == [f"leaf {node}", *counts]
    rules = [rule_text(rule) for rule in leaf_rules(tree)]
    names = [text.get_text().replace("\n", " ") for text in ax.get_legend().get_texts()]
    expected = [f"leaf {n}: {r}" for n, r in zip(tree.tree_.leaves, rules, strict=True)]
    assert names == expected


def test_hazard_ratios_are_those_of_coxs_model():
    sksurv = pytest.importorskip("sksurv.linear_model")
    X, y = sample(400)
    y["months"] = np.ceil(y["months"])  # ties
    tree = OptimalSurvivalTree(max_depth=2).fit(X, y)
    leaves, leaf = tree.tree_.leaves, tree.apply(X)
    ratios = hazard_ratios(tree.leaves_.follow_up, 1, 0.95)
    others = np.delete(leaves, 1)
    design = (leaf[:, None] == others).astype(float)
    cox = sksurv.CoxPHSurvivalAnalysis(ties="efron", tol=1e-12).fit(design, y)
    np.testing.assert_allclose(np.delete(ratios[:, 0], 1), np.exp(cox.coef_), rtol=1e-6)
    assert ratios[1, 0] == 1 and np.isnan(ratios[1, 1:]).all()
    assert (np.delete(ratios, 1, 0)[:, 1] < np.delete(ratios, 1, 0)[:, 2]).all()
    ax = plot_leaf_curves(tree, reference=int(leaves[1]))
    reported = [text.get_text().replace("\n", " ") for text in ax.get_legend().get_texts()]
    assert reported[1].startswith(f"leaf {leaves[1]}, reference: ")
    assert reported[0].startswith(f"leaf {leaves[0]}, hazard ratio {ratios[0, 0]:.3g} (")
    with pytest.raises(ValueError, match=r"reference must be a leaf .*; got 0"):
        plot_leaf_curves(tree, reference=0)


def test_the_interval_of_a_hazard_ratio_follows_from_the_likelihood():
    rng = np.random.default_rng(0)
    time, group = rng.exponential(size=60), np.arange(60) % 2
    event = rng.random(60) < 0.8
    pair = [FollowUp.of(event[group == k], time[group == k]) for k in (0, 1)]
    ratio, low, high = hazard_ratios(pair, 0, 0.9)[1]

    def likelihood(beta):
        risk = np.exp(beta * group)
        return sum(
            beta * group[i] - np.log(risk[time >= time[i]].sum()) for i in np.flatnonzero(event)
        )

    beta, h = np.log(ratio), 1e-4
    values = [likelihood(beta + step) for step in (-h, 0.0, h)]
    assert abs(values[2] - values[0]) / (2 * h) < 1e-6
    error = (-(values[0] - 2 * values[1] + values[2]) / h**2) ** -0.5
    np.testing.assert_allclose(
        np.log([high, low]) - beta, [1.644854 * error, -1.644854 * error], rtol=1e-4
    )


def test_a_leaf_without_events_has_no_hazard_ratio():
    some = FollowUp.of(np.array([True, False]), np.array([1.0, 2.0]))
    none = FollowUp.of(np.array([False, False]), np.array([1.0, 3.0]))
    assert np.isnan(hazard_ratios([some, none], 0, 0.95)[1]).all()
    assert np.isnan(hazard_ratios([some, none], 1, 0.95)).all()


def test_leaves_whose_events_do_not_overlap_in_time_have_no_hazard_ratio():
    def leaf(*times):
        return FollowUp.of(np.ones(len(times), bool), np.array(times))

    early, late, between = leaf(1.0, 2.0, 3.0), leaf(7.0, 8.0, 9.0), leaf(2.0, 4.0, 6.0)
    for pair in ([early, late], [late, early]):
        np.testing.assert_array_equal(hazard_ratios(pair, 0, 0.95)[:, 0], [1.0, np.nan])
        assert np.isnan(hazard_ratios(pair, 0, 0.95)[:, 1:]).all()
    # All rows of the third leaf outlive the others, whose ratio does not depend on it.
    found = hazard_ratios([early, late, between], 0, 0.95)
    assert np.isnan(found[1]).all()
    np.testing.assert_allclose(found[[0, 2]], hazard_ratios([early, between], 0, 0.95), rtol=1e-9)
    linking = leaf(2.0, 4.0, 8.0)
    assert np.isfinite(hazard_ratios([early, late, linking], 0, 0.95)[:, 0]).all()
    X = np.repeat([[0.0], [1.0]], 20, axis=0)
    time = np.concatenate([np.arange(1.0, 21.0), np.arange(30.0, 50.0)])
    tree = OptimalSurvivalTree(max_depth=1).fit(X, (np.ones(40, bool), time))
    ax = plot_leaf_curves(tree, reference=1)
    reported = [text.get_text() for text in ax.get_legend().get_texts()]
    assert reported[1].startswith("leaf 2, hazard ratio –: ")


def test_ticks_of_many_censored_rows_do_not_hide_the_curve():
    X, y = sample(3000)
    y["dead"] &= np.arange(3000) % 2 == 0
    ax = plot_leaf_curves(OptimalSurvivalTree(max_depth=0).fit(X, y))
    marks = [line for line in ax.lines if line.get_marker() == "|"]
    inches = ax.get_window_extent().width / ax.figure.dpi
    assert 10 < len(marks[0].get_xdata()) <= 25 * inches + 1


def test_pictures_can_be_read_on_dark_figures():
    from matplotlib import pyplot
    from matplotlib.colors import to_rgb
    from matplotlib.patches import FancyBboxPatch
    from matplotlib.text import Text

    def lightness(colour):
        return colorsys.rgb_to_hls(*to_rgb(colour))[1]

    data = load("veterans")
    tree = OptimalSurvivalTree(max_depth=2).fit(data.X, data.y)
    with pyplot.style.context("dark_background"):
        _, given = pyplot.subplots()
        (mine,) = given.plot([0, 1], [0, 1], color="#101010")
        for ax in (plot_trace(tree), plot_trace(tree, ax=given), plot_leaf_curves(tree)):
            texts = [text for text in ax.findobj(Text) if text.get_text()]
            lines = [line for line in ax.lines if line is not mine]
            assert all(lightness(drawn.get_color()) >= 0.5 for drawn in (*texts, *lines))
            assert to_rgb(ax.get_facecolor()) == to_rgb(pyplot.rcParams["axes.facecolor"])
        assert mine.get_color() == "#101010"
        boxes = [box for box in plot_tree(tree).patches if isinstance(box, FancyBboxPatch)]
        assert boxes and all(lightness(box.get_facecolor()) < 0.1 for box in boxes)
    (line,) = plot_leaf_curves(tree).lines[:1]
    assert line.get_color() in leaf_colours(tree).values()


def test_signs_that_no_font_has_or_that_turn_the_text_are_left_out():
    from matplotlib.text import Text

    X = pd.DataFrame({"bell\x07 turned\u202e": np.arange(40.0)})
    tree = OptimalSurvivalTree(max_depth=1).fit(X, (np.ones(40, dtype=bool), 1 + np.arange(40.0)))
    for ax in (plot_tree(tree), plot_leaf_curves(tree), plot_thresholds(tree, X)):
        ax.figure.canvas.draw()  # a missing glyph is a warning, which is an error here
        shown = "".join(text.get_text() for text in ax.findobj(Text))
        assert "bell turned" in shown and "\u202e" not in shown
