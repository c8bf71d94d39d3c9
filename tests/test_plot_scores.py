"""Pictures of searches and scores show the numbers of the package."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from survival_rows import sample

from bristlecone import (
    BinaryEncoder,
    GreedySurvivalTree,
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    PolicyTree,
    SoftSurvivalTree,
    metrics,
)
from bristlecone._search.front import ParetoFront, ParetoPoint
from bristlecone.curves import kaplan_meier
from bristlecone.exceptions import SearchLimitWarning
from bristlecone.plot import (
    plot_auc,
    plot_brier,
    plot_calibration,
    plot_front,
    plot_size_path,
    plot_survival,
    plot_thresholds,
    plot_trace,
)

pytest.importorskip("matplotlib")
from matplotlib import pyplot


@pytest.fixture(scope="module")
def fitted():
    """Training rows, other rows, and a tree."""
    X, y = sample(300)
    tree = OptimalSurvivalTree(max_depth=2).fit(X[:200], y[:200])
    return tree, X, y


def legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def dots(ax):
    """Places of the drawn points."""
    drawn = (line.get_xydata() for line in ax.lines if line.get_marker() == "o")
    return [place[0] for place in drawn if len(place)]


# Searches


def test_trace_shows_objective_and_bound_and_reports_the_status(fitted):
    tree = fitted[0]
    ax = plot_trace(tree)
    objective, bound = ax.lines
    assert legend(ax) == ["objective", "lower bound"]
    assert objective.get_drawstyle() == bound.get_drawstyle() == "steps-post"
    trace = np.array(tree.trace_)
    assert set(trace[np.isfinite(trace[:, 1]), 1]) <= set(objective.get_ydata())
    assert objective.get_ydata()[-1] == tree.objective_value_
    assert bound.get_ydata()[-1] == tree.lower_bound_
    assert bound.get_xdata()[-1] == tree.fit_time_
    assert ax.get_title("left") == tree.certificate_.sentence


def test_trace_of_a_stopped_search_has_a_gap():
    X, y = sample()
    with pytest.warns(SearchLimitWarning):
        tree = OptimalSurvivalTree(max_depth=4, time_limit=0).fit(X, y)
    ax = plot_trace(tree)
    reported = ax.get_title("left").replace("\n", " ")
    assert (
        reported.startswith("stopped at the time limit: the best tree found so far")
        and "gap" in reported
    )
    assert ax.collections[0].get_paths()


def test_trees_that_were_not_searched_for_have_no_trace():
    X, y = sample()
    for tree, how in (
        (GreedySurvivalTree(max_depth=1), "grown"),
        (SoftSurvivalTree(depth=1, n_restarts=1, random_state=0), "trained"),
    ):
        with pytest.raises(TypeError, match=f"{type(tree).__name__} was {how}"):
            plot_trace(tree.fit(X, y))


def test_size_path_shows_objectives_and_scores(fitted):
    _, X, y = fitted
    path = OptimalSurvivalTree(max_depth=2).size_path(X[:200], y[:200])
    ax = plot_size_path(path)
    assert ax.lines[0].get_xdata().tolist() == [1, 2, 3, 4]
    assert_allclose(ax.lines[0].get_ydata(), [tree.objective_value_ for tree in path])
    assert len(ax.lines) == 1
    ax = plot_size_path(path, X[200:], y[200:])
    (right,) = [other for other in ax.figure.axes if other is not ax]
    assert right.get_ylabel() == "concordance index of the given rows"
    assert_allclose(
        right.lines[0].get_ydata(), [tree.score(X[200:], y[200:]) for tree in path], rtol=1e-12
    )


def test_size_path_of_a_stopped_search_shows_bounds():
    X, y = sample()
    with pytest.warns(SearchLimitWarning):
        path = OptimalSurvivalTree(max_depth=3, time_limit=0).size_path(X, y)
    ax = plot_size_path(path)
    assert_allclose(ax.lines[1].get_ydata(), [tree.lower_bound_ for tree in path])
    assert legend(ax) == ["objective", "lower bound"]


def test_size_paths_that_are_none_are_refused(fitted):
    tree, X, y = fitted
    with pytest.raises(TypeError, match=r"the list that size_path returns, .*; got an Optimal"):
        plot_size_path(tree)
    with pytest.raises(ValueError, match="has no tree"):
        plot_size_path([])
    with pytest.raises(ValueError, match="both X and y"):
        plot_size_path([tree], X)
    with pytest.raises(TypeError, match="entry 0 is a GreedySurvivalTree"):
        plot_size_path([GreedySurvivalTree(max_depth=1).fit(X, y)])


def front_of(costs, names=("a", "b"), status="optimal"):
    tree = OptimalTreeClassifier(max_depth=1).fit([[0], [1]], [0, 1])
    points = [ParetoPoint(tuple(cost), tree) for cost in costs]
    return ParetoFront(points, names, status)


def test_front_is_a_staircase_over_its_points():
    costs = [(0.0, 5.0), (1.0, 2.0), (4.0, 0.0)]
    ax = plot_front(front_of(costs))
    stairs, points = ax.lines
    assert stairs.get_drawstyle() == "steps-post" and stairs.get_linestyle() == "-"
    assert points.get_xydata().tolist() == [list(cost) for cost in costs]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("a", "b")
    assert ax.get_title("left").startswith("3 trees")


def test_an_incomplete_front_says_so():
    ax = plot_front(front_of([(0.0, 1.0)], status="time_limit"))
    assert ax.get_title("left") == "incomplete (time_limit): the 1 tree found so far"
    assert ax.lines[0].get_linestyle() == "--"


def test_a_third_cost_is_a_colour():
    ax = plot_front(front_of([(0.0, 5.0, 2.0), (1.0, 2.0, 3.0)], ("a", "b", "c")))
    (points,) = ax.collections
    assert points.get_offsets().tolist() == [[0.0, 5.0], [1.0, 2.0]]
    assert points.get_array().tolist() == [2.0, 3.0]
    assert [other.get_ylabel() for other in ax.figure.axes] == ["b", "c"]


def test_other_fronts_are_refused():
    with pytest.raises(TypeError, match="takes a ParetoFront; got a list"):
        plot_front([(0, 1)])
    with pytest.raises(ValueError, match="no points"):
        plot_front(front_of([]))
    with pytest.raises(ValueError, match="has 4"):
        plot_front(front_of([(0.0, 1.0, 2.0, 3.0)], ("a", "b", "c", "d")))


# Scores over time


def test_brier_scores_are_those_of_the_metrics_beside_kaplan_meier(fitted):
    tree, X, y = fitted
    train, test, rows = y[:200], y[200:], X[200:]
    times = np.linspace(3, 20, 30)
    soft = SoftSurvivalTree(depth=1, n_restarts=1, random_state=0).fit(X[:200], train)
    ax = plot_brier({"hard": tree, "_soft $x$": soft}, train, rows, test, times=times)
    reference = np.tile(kaplan_meier(train)(times), (100, 1))
    estimates = [reference, *(m.predict_survival_function(rows, times=times) for m in (tree, soft))]
    for line, survival in zip(ax.lines, estimates, strict=True):
        scores = metrics.brier_score(train, test, survival, times)[1]
        assert_allclose(line.get_ydata(), scores, rtol=1e-12)
    for label, survival in zip(legend(ax), estimates, strict=True):
        integrated = metrics.integrated_brier_score(train, test, survival, times)
        assert f"(integrated {integrated:.3f})" in label
    assert legend(ax)[0].startswith("Kaplan–Meier") and "soft" in legend(ax)[2]


def test_areas_are_those_of_the_metrics(fitted):
    tree, X, y = fitted
    train, test, rows = y[:200], y[200:], X[200:]
    times = np.linspace(3, 20, 30)
    ax = plot_auc(tree, train, rows, test, times=times, time_label="months")
    estimate = 1 - tree.predict_survival_function(rows, times=times)
    auc, mean = metrics.cumulative_dynamic_auc(train, test, estimate, times)
    assert_allclose(ax.lines[1].get_ydata(), auc, rtol=1e-12)
    assert legend(ax) == [f"OptimalSurvivalTree (mean {mean:.3f})"]
    assert ax.get_xlabel() == "months"


@pytest.mark.parametrize("plot", [plot_brier, plot_auc])
def test_scores_over_time_choose_times_and_refuse_other_trees(plot, fitted):
    tree, X, y = fitted
    ax = plot(tree, y[:200], X[200:], y[200:])
    times = ax.lines[-1].get_xdata()
    assert_allclose(times[[0, -1]], np.quantile(y["months"][200:], [0.1, 0.9]))
    labels = OptimalTreeClassifier(max_depth=1).fit([[0], [1]], [0, 1])
    with pytest.raises(TypeError, match="an OptimalTreeClassifier does not predict"):
        plot({"tree": tree, "labels": labels}, y, X, y)
    with pytest.raises(ValueError, match="the mapping is empty"):
        plot({}, y, X, y)


# Calibration


def test_calibration_of_a_hard_tree_compares_its_leaves(fitted):
    tree, X, y = fitted
    rows, test = X[200:], y[200:]
    ax = plot_calibration(tree, rows, test, time=10.0, confidence=0.9)
    leaf = tree.apply(rows)
    bars = [line.get_ydata() for line in ax.lines[1:] if line.get_marker() == "None"]
    nodes = np.unique(leaf)
    for node, dot, bar in zip(nodes, dots(ax), bars, strict=True):
        curve = kaplan_meier(test[leaf == node])
        predicted = tree.predict_survival_function(rows[leaf == node][:1], times=[10.0])[0, 0]
        assert_allclose(dot, [predicted, curve(10.0)], rtol=1e-12)
        lower, upper = curve.confidence_interval(0.9)
        at = np.searchsorted(curve.x, 10.0, side="right") - 1
        assert_allclose(bar, [lower[at], upper[at]], rtol=1e-12)
    assert [text.get_text() for text in ax.texts] == [str(node) for node in nodes]


def test_calibration_of_a_soft_tree_compares_groups_as_the_test_does():
    X, y = sample(300)
    tree = SoftSurvivalTree(depth=1, n_restarts=1, random_state=0).fit(X, y)
    for options, n_groups in (({}, 10), ({"n_groups": 4}, 4)):
        ax = plot_calibration(tree, X, y, time=10.0, **options)
        predicted = tree.predict_survival_function(X, times=[10.0])[:, 0]
        found = metrics.one_time_calibration(y, predicted, at=10.0, n_groups=n_groups)
        drawn = np.array(dots(ax))
        assert_allclose(drawn, np.transpose([found.predicted, found.observed]), rtol=1e-12)


def test_calibration_of_classes_compares_shares_with_frequencies():
    X, _ = sample(300)
    label = np.where(X["x0"] + X["x1"] > 0.5, "ill", "well")
    tree = OptimalTreeClassifier(max_depth=2).fit(X[:200], label[:200])
    rows, test = X[200:], label[200:]
    ax = plot_calibration(tree, rows, test)
    assert ax.get_xlabel() == "predicted share of well"
    leaf, share = tree.apply(rows), tree.predict_proba(rows)[:, 1]
    expected = [
        (share[leaf == node][0], (test[leaf == node] == "well").mean()) for node in np.unique(leaf)
    ]
    assert_allclose(dots(ax), expected, rtol=1e-12)
    three = np.where(X["x0"] > 1, "dead", label)
    tree = OptimalTreeClassifier(max_depth=2).fit(X, three)
    ax = plot_calibration(tree, X, three)
    # On the training rows, shares are frequencies.
    drawn = np.array(dots(ax))
    assert_allclose(drawn[:, 0], drawn[:, 1], rtol=1e-12)
    assert [text.strip() for text in legend(ax)] == ["dead", "ill", "well"]


def test_classes_of_the_same_colour_have_different_markers():
    X = np.arange(40)[:, None]
    tree = OptimalTreeClassifier(max_depth=2).fit(X, np.arange(40) // 4)
    handles = plot_calibration(tree, X, np.arange(40) // 4).get_legend().get_lines()
    looks = {(line.get_color(), line.get_marker()) for line in handles}
    assert len(looks) == len(handles) == 10


def test_calibration_of_numbers_compares_means():
    X, _ = sample(300)
    y = X["x0"].to_numpy() + 2 * (X["x1"].to_numpy() > 0)
    tree = OptimalTreeRegressor(max_depth=2).fit(X[:200], y[:200])
    rows, test = X[200:], y[200:]
    ax = plot_calibration(tree, rows, test)
    leaf, predicted = tree.apply(rows), tree.predict(rows)
    expected = [(predicted[leaf == node][0], test[leaf == node].mean()) for node in np.unique(leaf)]
    assert_allclose(dots(ax), expected, rtol=1e-12)


def test_outcomes_in_another_order_than_the_rows_are_refused(fitted):
    tree, X, y = fitted
    turned = pd.DataFrame(y)[::-1]
    for draw in (
        lambda: plot_calibration(tree, X, turned, time=10.0),
        lambda: plot_brier(tree, y, X, turned),
        lambda: plot_auc(tree, y, X, turned),
    ):
        with pytest.raises(ValueError, match="X and y have the same index in another order"):
            draw()


def test_calibration_refuses_what_it_cannot_compare(fitted):
    tree, X, y = fitted
    with pytest.raises(ValueError, match="OptimalSurvivalTree needs time="):
        plot_calibration(tree, X, y)
    with pytest.raises(ValueError, match=r"leaf \d+ has no row that is observed up to 1000"):
        plot_calibration(tree, X, y, time=1000.0)
    with pytest.raises(ValueError, match="X has 300 rows but y has 299"):
        plot_calibration(tree, X, y[:-1], time=10.0)
    ill = np.where(y["dead"], "ill", "well")
    classes = OptimalTreeClassifier(max_depth=1).fit(X, ill)
    for wrong, message in (
        ([np.nan, *ill[1:]], "y is missing in row 0"),
        (y["dead"], "y holds False, True, none of which is among the classes of the tree, .'ill'"),
        (ill[1:], "X has 300 rows but y has 299"),
    ):
        with pytest.raises(ValueError, match=message):
            plot_calibration(classes, X, wrong)
    numbers = OptimalTreeRegressor(max_depth=1).fit([[0], [1]], [0.0, 1.0])
    with pytest.raises(ValueError, match="OptimalTreeRegressor takes no time"):
        plot_calibration(numbers, [[0]], [0.0], time=1.0)
    policy = PolicyTree(reward="inverse-propensity", max_depth=1).fit(
        [[0], [1]], [1.0, 0.0], treatment=["a", "b"], propensity=0.5
    )
    with pytest.raises(TypeError, match="a PolicyTree predicts none"):
        plot_calibration(policy, [[0]], ["a"])


# Thresholds


def verticals(ax):
    return [line for line in ax.lines if len(set(line.get_xdata())) == 1]


def test_thresholds_are_those_of_encoder_and_tree():
    X, y = sample()
    tree = OptimalSurvivalTree(max_depth=2, encoder=BinaryEncoder()).fit(X, y)
    used = int(tree.tree_.column[0])
    name = X.columns[used]
    for column in (None, name, used):
        ax = plot_thresholds(tree, X, column)
        assert ax.get_xlabel() == name
        asked = np.unique(tree.tree_.threshold[tree.tree_.column == used])
        offered = [f.value for f in tree.encoder_.features_ if f.column == name]
        strong = [line.get_xdata()[0] for line in verticals(ax) if line.get_linewidth() > 1]
        faint = [line.get_xdata()[0] for line in verticals(ax) if line.get_linewidth() < 1]
        assert sorted(strong) == asked.tolist() and sorted(faint) == sorted(offered)
        assert sum(bar.get_height() for bar in ax.patches) == len(X)
        assert legend(ax)[1] == f"offered by the encoder ({len(offered)})"


def test_far_values_are_left_out_and_counted():
    x = np.concatenate([np.arange(500.0), [1e6]])
    tree = OptimalTreeRegressor(max_depth=1).fit(x[:, None], x > 250)
    ax = plot_thresholds(tree, x[:, None])
    assert sum(bar.get_height() for bar in ax.patches) == 500
    assert ax.get_xlabel().startswith("x0 (not shown: 1 above ")


def test_thresholds_of_trees_over_every_threshold_are_theirs_alone():
    X, y = sample()
    tree = GreedySurvivalTree(max_depth=1, encoder=None).fit(X, y)
    ax = plot_thresholds(tree, X)
    (line,) = verticals(ax)
    assert line.get_xdata()[0] == tree.tree_.threshold[0]


@pytest.mark.parametrize("column", [[1, 1 + 2**-52, 1 + 2**-51], [0, 5e-324], [1e16, 1e16 + 2]])
def test_thresholds_between_neighbouring_numbers_are_drawn(column):
    X = np.repeat(column, 50)[:, None]
    ax = plot_thresholds(OptimalTreeRegressor(max_depth=1).fit(X, X[:, 0] > column[0]), X)
    heights = [bar.get_height() for bar in ax.patches]
    assert sum(heights) == len(X) and len(heights) == len(column) - 1


def test_what_has_no_thresholds_is_refused():
    X = pd.DataFrame({"grade": ["I", "II", "III", "I"] * 5, "age": np.arange(20.0)})
    y = X["grade"] == "II"
    tree = OptimalTreeClassifier(max_depth=1).fit(X, y)
    with pytest.raises(ValueError, match="splits on no numeric column"):
        plot_thresholds(tree, X)
    with pytest.raises(ValueError, match="'grade' holds categories"):
        plot_thresholds(tree, X, "grade")
    with pytest.raises(ValueError, match="no column 'size'; the columns are grade, age"):
        plot_thresholds(tree, X, "size")
    with pytest.raises(ValueError, match="between 0 and 1; got 2"):
        plot_thresholds(tree, X, 2)
    rows, outcome = sample()
    soft = SoftSurvivalTree(depth=1, n_restarts=1, random_state=0).fit(rows, outcome)
    with pytest.raises(TypeError, match="a SoftSurvivalTree has no thresholds"):
        plot_thresholds(soft, rows)


def test_all_draw_on_the_axes_they_are_given(fitted):
    tree, X, y = fitted
    path = OptimalSurvivalTree(max_depth=1).size_path(X, y)
    for draw in (
        lambda ax: plot_trace(tree, ax=ax),
        lambda ax: plot_size_path(path, ax=ax),
        lambda ax: plot_front(front_of([(0.0, 1.0)]), ax=ax),
        lambda ax: plot_brier(tree, y, X, y, ax=ax),
        lambda ax: plot_auc(tree, y, X, y, ax=ax),
        lambda ax: plot_calibration(tree, X, y, time=10.0, ax=ax),
        lambda ax: plot_thresholds(tree, X, ax=ax),
    ):
        figure, mine = pyplot.subplots()
        assert draw(mine) is mine
        assert pyplot.get_fignums() == [figure.number]
        figure.canvas.draw()
        pyplot.close(figure)


def test_long_names_and_lists_stay_on_the_paper(fitted):
    from matplotlib.text import Text

    tree, X, y = fitted
    long = "W" * 300
    values = pd.DataFrame({long: np.arange(200.0)})
    greedy = GreedySurvivalTree(max_depth=4, min_events_leaf=None).fit(
        values, (np.ones(200, dtype=bool), 1 + (values[long] * 7919) % 200)
    )
    label = np.array([long, "b" * 200, "c"])[np.arange(200) // 10 % 3]
    classes = OptimalTreeClassifier(max_depth=1).fit(values, label)
    for ax in (
        plot_auc({long: tree}, y, X, y),
        plot_brier({f"{k}{long}": tree for k in range(3)}, y, X, y, time_label="days\n(log)"),
        plot_calibration(classes, values, label),
        plot_thresholds(greedy, values),
        plot_survival(greedy, values, time_label=long),
    ):
        ax.figure.canvas.draw()  # without room for the axes there is a warning, an error here
        paper = ax.figure.bbox
        shown = [ax.xaxis.label, ax.title, *ax.get_legend().findobj(Text)]
        for extent in (text.get_window_extent() for text in shown if text.get_text()):
            assert extent.x0 >= 0 and extent.x1 <= paper.x1 and extent.y1 <= paper.y1
        assert not ax.xaxis.label.get_window_extent().overlaps(ax.get_legend().get_window_extent())


def test_names_of_leaves_that_lie_close_together_do_not_meet():
    rng = np.random.default_rng(0)
    X, survival = rng.normal(size=(400, 4)), (rng.random(400) < 0.7, rng.exponential(size=400))
    tree = GreedySurvivalTree(max_depth=5, max_leaf_nodes=8, min_events_leaf=1).fit(X, survival)
    ax = plot_calibration(tree, X, survival, time=0.2)
    ax.figure.canvas.draw()
    extents = [text.get_window_extent() for text in ax.texts]
    assert len(extents) == tree.n_leaves_ == 8
    for k, extent in enumerate(extents):
        assert not any(extent.overlaps(other) for other in extents[:k])


def test_scores_that_are_not_defined_leave_no_figure_behind(fitted):
    tree, X, y = fitted
    before = pyplot.get_fignums()
    late = {"times": [1e9, 2e9]}
    for plot in (plot_auc, plot_brier):
        with pytest.raises(ValueError, match="time"):
            plot(tree, y, X, y, **late)
    with pytest.raises(ValueError, match="rows"):
        plot_size_path([tree], X, y[:-1])
    assert pyplot.get_fignums() == before
