"""The layout and the colours of all pictures."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from survival_rows import sample

from bristlecone import (
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    SoftSurvivalTree,
)
from bristlecone._data.texts import counted, number, round_numbers
from bristlecone._leaves.shown import Bar
from bristlecone._view.fitted import check_tree
from bristlecone._view.layout import place
from bristlecone._view.palette import LABELS, PAPER, leaf_colours, ramp
from bristlecone._view.ruler import Ruler
from bristlecone._view.view import View, bar_rows


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
    assert layout.width == 2.0 * tree.n_leaves
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
    with pytest.raises(TypeError, match="got an OptimalTreeRegressor"):
        check_tree(OptimalTreeRegressor, "plot_tree")


def test_no_bar_meets_its_value_or_its_name():
    names, values = ("a", "a treatment with a very long name"), (-1234.5, 0.001234, 988.7)
    bars = [Bar(name, value, f"{value:g}", 0, True) for name in names for value in values]
    for width in (120.0, 300.0):
        ruler = Ruler()
        rows, zero = bar_rows(bars, (-1234.5, 988.7), width, ruler, 10.0)
        for row in rows:
            text = ruler.width(row.text, 10.0, bold=True)
            assert row.start == zero
            assert row.name_end < min(row.start, row.end)
            assert max(row.start, row.end) < width - text
            assert ruler.width(row.name, 10.0, bold=True) <= row.name_end
        lengths = [(row.end - row.start) / bar.value for row, bar in zip(rows, bars, strict=True)]
        np.testing.assert_allclose(lengths, lengths[0], rtol=1e-6)


def test_numbers_of_an_axis_fit_side_by_side():
    ruler = Ruler()
    for low, high in ((0.0, 1.0), (0.0, 2.6e7), (999_997.4, 1_000_001.7), (-1e6, 3.2e6)):
        for width in (30.0, 80.0, 200.0, 600.0):
            ticks = ruler.ticks(low, high, width, 10.0)
            assert ticks == round_numbers(low, high, len(ticks)) or len(ticks) <= 2
            if len(ticks) > 2:
                apart = width * (ticks[1] - ticks[0]) / (high - low)
                assert ruler.widest(map(number, ticks), 10.0) < apart
        assert ruler.ticks(low, high, 2000.0, 10.0) == round_numbers(low, high, 6)


def test_a_number_is_broken_only_where_it_must_be():
    ruler = Ruler()
    assert ruler.wrap("tiny <= -1.54965e-08", 80.0, 10.0) == ["tiny", "<=", "-1.54965e-08"]
    assert ruler.wrap("8.05239e-09", 80.0, 10.0) == ["8.05239e-09"]
    assert len(ruler.wrap("8.05239e-09", 40.0, 10.0)) > 1


def test_numbers_and_counts_are_written_for_people():
    assert [number(x) for x in (113164.0, 12.0, 0.123456, 1234.5, np.nan, np.inf, None)] == [
        "113,164",
        "12",
        "0.1235",
        "1,234",
        "–",
        "–",
        "–",
    ]
    assert counted(1, "leaf") == "1 leaf" and counted(2440, "row") == "2,440 rows"


@pytest.mark.parametrize("soft", [False, True])
def test_a_view_has_the_numbers_of_the_leaf_table(soft):
    X, y = sample()
    model = (
        SoftSurvivalTree(depth=1, n_restarts=1, random_state=0)
        if soft
        else OptimalSurvivalTree(max_depth=2)
    )
    tree = model.fit(X, y)
    view, table = View(tree, 0.9, "months"), tree.leaf_table(confidence=0.9)
    columns = dict(view.columns(narrow=False))
    assert columns["n"] == [str(n) for n in table["n_samples"]]
    assert columns["events"] == [str(n) for n in table["n_events"]]
    expected = [
        f"{number(median).replace('–', 'not reached')} ({number(low)} to {number(high)})"
        for median, low, high in table[["median", "median_lower", "median_upper"]].to_numpy()
    ]
    assert columns["KM\xa0median (90%\xa0CI)"] == expected
    for leaf in view.leaves:
        values = tree.leaves_.typical_survival(leaf.panel.times)
        assert any(np.array_equal(leaf.panel.survival, one) for one in values)
