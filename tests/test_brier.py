"""``OptimalSurvivalTree(objective="brier")``: the objective, its curves and its certificate."""

import json
import logging

import brier_plainly as plain
import numpy as np
import osst_data
import pytest
from papers import PAPERS
from survival_rows import hazard, sample, survival

from bristlecone import curves, metrics
from bristlecone._estimators.survival import OptimalSurvivalTree
from bristlecone._model.registry import ModelFormatError, dumps, loads
from bristlecone._objectives.parity import RmstParity
from bristlecone.datasets import load
from bristlecone.exceptions import SearchLimitWarning
from bristlecone.trust import near_optimal_trees, verify

LEAF_CURVES = ("kaplan-meier", "brier-optimal")
WEIGHT = np.random.default_rng(0).uniform(0.5, 2.0, size=150)
GRID = [5.0, 10.0, 20.0, 90.0]


def brier(**parameters):
    return OptimalSurvivalTree(**{"objective": "brier", "max_depth": 2, **PAPERS, **parameters})


# From the specification of the Brier objective: single leaves, and optima of the published program,
# which computes in single precision and divides by y_max − y_min.
SINGLE_LEAF = {
    "veterans": (0.076400, 0.076476),
    "gbsg2": (0.194216, 0.194802),
    "maintenance": (0.062036, 0.062710),
    "aids": (0.060726, 0.060894),
    "whas500": (0.226144, 0.226240),
}
OPTIMUM = {
    ("veterans", 0.01): (0.086476, 1),
    ("veterans", 0.0025): (0.074017, 4),
    ("gbsg2", 0.01): (0.204802, 1),
    ("gbsg2", 0.0025): (0.186438, 5),
    ("maintenance", 0.01): (0.050612, 3),
    ("maintenance", 0.0025): (0.021586, 7),
    ("aids", 0.01): (0.070894, 1),
    ("aids", 0.0025): (0.063394, 1),
    ("whas500", 0.01): (0.201557, 4),
    ("whas500", 0.0025): (0.165429, 8),
    ("churn", 0.01): (0.167139, 5),
    ("churn", 0.0025): (0.122162, 7),
}


@pytest.mark.parametrize("name", SINGLE_LEAF)
def test_score_of_a_single_leaf_is_the_published_one(name):
    X, event, time = osst_data.load(name)
    model = brier(max_depth=0).fit(X, (event, time))
    ours, published = SINGLE_LEAF[name]
    assert model.objective_value_ == pytest.approx(ours, abs=6e-7)
    scaled = model.objective_value_ * osst_data.published_scale(time)
    assert scaled == pytest.approx(published, abs=6e-7)


@pytest.mark.parametrize(("name", "penalty"), OPTIMUM)
def test_optimum_is_that_of_the_published_program(name, penalty):
    check_optimum(*osst_data.load(name), penalty, *OPTIMUM[name, penalty])


def test_optimum_of_a_set_too_large_to_keep():
    try:
        data = osst_data.load_elsewhere("employee")
    except FileNotFoundError:
        pytest.skip("employee.csv of the OSST study is not there")
    check_optimum(*data, 0.01, 0.153377, 5)


def check_optimum(X, event, time, penalty, published, leaves):
    scale = osst_data.published_scale(time)
    model = brier(max_depth=4, leaf_penalty=penalty / scale, min_samples_leaf=7)
    model.fit(X, (event, time))
    assert model.status_ == "optimal"
    assert model.n_leaves_ == leaves
    assert model.objective_value_ * scale == pytest.approx(published, abs=1e-5)


@pytest.mark.parametrize("grid", [None, GRID])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unweighted", "weighted"])
@pytest.mark.parametrize("leaf_curve", LEAF_CURVES)
def test_objective_is_the_score_of_the_predicted_curves(leaf_curve, weight, grid):
    X, y = sample()
    model = brier(leaf_curve=leaf_curve, leaf_penalty=0.001, time_grid=grid)
    model.fit(X, y, sample_weight=weight)
    predicted = model.predict_survival_function(X)
    losses = plain.row_losses(y["months"], y["dead"], predicted, weight, grid)
    assert model.n_leaves_ > 2
    expected = np.average(losses, weights=weight) + 0.001 * model.n_leaves_
    assert model.objective_value_ == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("leaf_curve", LEAF_CURVES)
def test_the_metric_of_the_paper_agrees(leaf_curve):
    data = load("gbsg2")
    model = brier(leaf_curve=leaf_curve).fit(data.X, data.y)
    predicted = model.predict_survival_function(data.X)
    score = metrics.integrated_brier_score(data.y, data.y, predicted, ties="paper", method="step")
    assert model.objective_value_ == pytest.approx(score, abs=1e-12)
    single = brier(max_depth=0).fit(data.X, data.y)
    ratio = metrics.ibs_ratio(data.y, data.y, predicted, ties="paper", method="step")
    assert ratio == pytest.approx(1 - score / single.objective_value_, abs=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_no_tree_is_better(seed):
    rng = np.random.default_rng(seed)
    n = 14
    X = rng.random((n, 3)) < 0.5
    time = rng.integers(0 if seed % 2 else 1, 9, size=n).astype(float)
    event = rng.random(n) < 0.6
    event[0] = True
    weight = None if seed < 3 else rng.uniform(0.2, 3.0, size=n)
    grid = [1.5, 3.0, 4.0] if seed in (2, 5) else None
    penalty, fewest = (0.0, 1) if seed % 3 else (0.01, 2)
    model = brier(leaf_penalty=penalty, min_samples_leaf=fewest, time_grid=grid)
    model.fit(X, (event, time), sample_weight=weight)
    expected = plain.best(X, time, event, 2, penalty, weight, grid, fewest)
    assert model.objective_value_ == pytest.approx(expected, abs=1e-12)
    assert model.lower_bound_ == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("grid", [None, GRID])
def test_no_falling_curve_is_better_than_the_fitted_one(grid):
    X, y = sample(n=40)
    model = brier(max_depth=0, leaf_curve="brier-optimal", time_grid=grid).fit(X, y)
    times, steps = model.unique_times_, model.predict_survival_function(X)[0]
    rng = np.random.default_rng(0)

    def score(values):
        curve = curves.StepFunction(times, values, before=1.0)
        return plain.row_losses(y["months"], y["dead"], [curve] * 40, grid=grid).mean()

    least = score(steps(times))
    assert model.objective_value_ == pytest.approx(least, abs=1e-12)
    kaplan_meier = brier(max_depth=0, time_grid=grid).fit(X, y)
    assert least < kaplan_meier.objective_value_ - 1e-6
    for scale in (1e-3, 1e-2, 0.1):
        for _ in range(20):
            bent = steps(times) + scale * rng.normal(size=len(times))
            bent = np.clip(np.minimum.accumulate(bent), 0, 1)
            assert score(bent) >= least - 1e-12


def test_fitted_curves_fall_within_zero_and_one_at_training_times():
    X, y = sample()
    model = brier(leaf_curve="brier-optimal").fit(X, y)
    assert model.n_leaves_ > 2
    for leaf in model.leaf_statistics_:
        assert (np.diff(leaf.brier_survival, prepend=1.0) < 0).all()
        assert leaf.brier_survival.min() >= 0
        assert np.isin(leaf.brier_times, model.unique_times_).all()
    H, S = hazard(model, X), survival(model, X)
    assert np.isfinite(H).all()
    # S is the product integral of the hazard, as for Kaplan–Meier and Nelson–Aalen.
    product = np.cumprod(1 - np.diff(H, axis=1, prepend=0.0), axis=1)
    np.testing.assert_allclose(product, S, atol=1e-12)


def test_more_splits_never_hurt_with_fitted_curves():
    X, y = sample()
    found = [brier(max_depth=d, leaf_curve="brier-optimal").fit(X, y) for d in range(3)]
    values = [model.objective_value_ for model in found]
    assert values[0] > values[1] > values[2]
    for model, depth in zip(found, range(3), strict=True):
        assert model.objective_value_ <= brier(max_depth=depth).fit(X, y).objective_value_


@pytest.mark.parametrize("leaf_curve", LEAF_CURVES)
def test_risk_is_the_hazard_summed_over_the_event_times(leaf_curve):
    X, y = sample()
    model = brier(leaf_curve=leaf_curve).fit(X, y)
    expected = hazard(model, X, times=model.event_times_).sum(axis=1)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-14)
    assert len(np.unique(model.predict(X))) == model.n_leaves_


def test_auto_is_kaplan_meier():
    X, y = sample()
    model = brier().fit(X, y)
    same = brier(leaf_curve="kaplan-meier").fit(X, y)
    np.testing.assert_array_equal(survival(model, X), survival(same, X))
    assert model.objective_value_ == same.objective_value_


def test_outcomes_that_cannot_be_scored_are_refused():
    X, y = sample(n=20)
    late = np.empty(20, dtype=[("dead", bool), ("months", float), ("entry", float)])
    late["dead"], late["months"], late["entry"] = y["dead"], y["months"], 0.5
    with pytest.raises(ValueError, match=r"does not support delayed entry, because its weights"):
        brier().fit(X, late)
    y["months"] = 0.0
    with pytest.raises(ValueError, match="no time after 0"):
        brier().fit(X, y)


def test_what_goes_only_with_one_objective_is_refused_with_the_other():
    X, y = sample(n=20)
    for model, message in (
        (OptimalSurvivalTree(leaf_curve="brier-optimal"), "objective='likelihood', which supports"),
        (
            brier(leaf_curve="proportional"),
            "objective='brier', which supports 'kaplan-meier' and 'b",
        ),
        (OptimalSurvivalTree(time_grid=[1.0]), "time_grid needs objective='brier'"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
    with pytest.raises(ValueError, match="reference_loss needs objective='brier'"):
        OptimalSurvivalTree(**PAPERS).fit(X, y, reference_loss=np.zeros(20))


# A time grid


def test_a_grid_of_all_times_is_none():
    X, y = sample()
    model = brier(time_grid=np.unique(y["months"])).fit(X, y)
    assert model.objective_value_ == pytest.approx(brier().fit(X, y).objective_value_, abs=1e-12)


def test_a_grid_changes_the_objective_and_says_so(caplog):
    X, y = sample()
    with caplog.at_level(logging.INFO, logger="bristlecone"):
        model = brier(time_grid=GRID, verbose=1).fit(X, y)
    assert "integrated Brier score over a time grid of 4 (5 to 90)" in caplog.text
    assert abs(model.objective_value_ - brier().fit(X, y).objective_value_) > 1e-3


def test_rows_are_moved_to_the_grid_and_censored_at_its_end():
    X, y = sample()
    model = brier(time_grid=[5.0, 10.0, 20.0]).fit(X, y)
    moved = y.copy()
    moved["months"], moved["dead"] = plain.on_grid(y["months"], y["dead"], [5.0, 10.0, 20.0])
    assert (moved["dead"] != y["dead"]).any()
    same = brier().fit(X, moved)
    assert model.objective_value_ == same.objective_value_
    np.testing.assert_array_equal(survival(model, X), survival(same, X))
    np.testing.assert_array_equal(model.unique_times_, [5.0, 10.0, 20.0])
    longer = brier(time_grid=[5.0, 10.0, 20.0, 90.0, 1e4]).fit(X, y)
    assert longer.unique_times_[-1] == 90.0
    with pytest.raises(ValueError, match=r"time_grid ends at 0\.5, before the first event"):
        brier(time_grid=[0.1, 0.5]).fit(X, y)


def test_times_on_the_grid_stay_and_those_between_move_up():
    X = np.arange(6)[:, None] < 3
    event = np.array([True, True, False, True, True, True])
    model = brier(time_grid=[1.0, 2.0, 3.0]).fit(X, (event, [0.5, 1.0, 1.5, 2.0, 2.5, 9.0]))
    event[-1] = False
    same = brier().fit(X, (event, [1.0, 1.0, 2.0, 2.0, 3.0, 3.0]))
    assert model.objective_value_ == same.objective_value_
    np.testing.assert_array_equal(survival(model, X), survival(same, X))


def test_grids_are_stored_untouched_and_saved():
    X, y = sample()
    grid = np.array(GRID)
    model = brier(max_depth=1, time_grid=grid).fit(X, y)
    assert model.time_grid is grid
    again = loads(dumps(model))
    assert again.time_grid == GRID
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert dumps(again) == dumps(model)


# Limits, sizes, saving


def test_limits_keep_a_tree_and_a_bound():
    data = load("whas500")
    proven = brier(leaf_penalty=0.002).fit(data.X, data.y)
    with pytest.warns(SearchLimitWarning, match="time_limit"):
        stopped = brier(leaf_penalty=0.002, time_limit=0).fit(data.X, data.y)
    assert stopped.status_ == "time_limit"
    assert stopped.lower_bound_ <= proven.objective_value_ <= stopped.objective_value_ + 1e-12
    assert stopped.guarantee_ == stopped.gap_ > 0
    assert stopped.predict(data.X).shape == (500,)


@pytest.mark.parametrize("leaf_curve", LEAF_CURVES)
def test_the_size_path_has_the_best_tree_of_every_size(leaf_curve):
    X, y = sample(n=80)
    model = brier(leaf_curve=leaf_curve, min_samples_leaf=5)
    path = model.size_path(X, y)
    assert len(path) == 4
    for leaves, tree in enumerate(path, start=1):
        alone = brier(**{**model.get_params(), "max_leaf_nodes": leaves}).fit(X, y)
        assert tree.n_leaves_ <= leaves
        assert tree.status_ == alone.status_ == "optimal"
        assert tree.objective_value_ == pytest.approx(alone.objective_value_, abs=1e-12)


def test_progress_is_reported():
    X, y = sample()
    seen = []
    model = brier().fit(X, y, callback=seen.append)
    assert seen[-1].objective == pytest.approx(model.objective_value_, abs=1e-9)
    assert all(point.lower_bound <= model.objective_value_ + 1e-12 for point in seen)
    assert model.trace_[-1][1] == pytest.approx(model.objective_value_, abs=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda leaf: leaf.pop("brier_times"), r"leaves\[0\].brier_times is missing"),
        (lambda leaf: leaf["brier_survival"].pop(), "does not have one value per time"),
        (lambda leaf: leaf["brier_survival"].__setitem__(0, 1.0), "a step without a fall"),
        (lambda leaf: leaf["brier_survival"].__setitem__(0, 1.5), "outside"),
        (lambda leaf: leaf["brier_times"].__setitem__(0, 0.25), "not part of the training times"),
    ],
)
def test_a_saved_curve_is_checked(change, message):
    X, y = sample()
    model = brier(max_depth=1, leaf_curve="brier-optimal")
    document = json.loads(dumps(model.fit(X, y, sample_weight=1 + np.arange(len(X)) % 3)))
    change(document["leaves"]["estimates"]["leaves"][0])
    with pytest.raises(ModelFormatError, match=message):
        loads(json.dumps(document))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_weights_of_very_different_size_lose_no_digits(n_jobs):
    X = np.array([[1, 0], [1, 1], [0, 1], [0, 0], [0, 0]], dtype=bool)
    time = np.array([3.5999999999999996, 25.76, 5.45, 0.86, 3.4699999999999998])
    event = np.array([False, False, True, True, False])
    weight = np.array([1.07e6, 15.2, 0.22, 30200.0, 0.126])
    model = brier(n_jobs=n_jobs).fit(X, (event, time), weight)
    assert model.status_ == "optimal"
    expected = plain.best(X, time, event, 2, weight=weight)
    assert model.objective_value_ == pytest.approx(expected, abs=1e-11)


@pytest.mark.parametrize("heavy", [1e9, 1e90])
def test_a_heavy_row_censored_before_light_ones_is_proven_leaf_by_leaf(heavy):
    X, event, time = [[0], [0], [1], [1]], np.array([False, True, True, True]), np.arange(1.0, 5)
    weight = np.array([heavy, 1.0, 1.0, 1.0])
    model = brier().fit(X, (event, time), weight)
    assert model.status_ == "optimal"
    assert verify(model, X, (event, time), sample_weight=weight).ok
    expected = plain.best(np.array(X), time, event, 2, weight=weight)
    assert model.objective_value_ == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("weight", [[1e9, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0, 1e9]])
def test_fair_trees_of_wide_weights_are_proven(weight):
    X, event, time = [[0], [0], [1], [1]], np.array([False, True, True, True]), np.arange(1.0, 5)
    fair = brier(fairness=RmstParity(1.0, sensitive_feature=0)).fit(X, (event, time), weight)
    assert fair.status_ == "optimal"
    assert verify(fair, X, (event, time), sample_weight=weight).ok


def test_fair_trees_are_proven_where_weights_leave_no_digits():
    X, event, time = [[0], [0], [1], [1]], np.array([False, True, True, True]), np.arange(1.0, 5)
    weight = np.array([1e90, 1.0, 1.0, 1.0])
    fair = brier(fairness=RmstParity(1.0, sensitive_feature=0)).fit(X, (event, time), weight)
    value = plain.score_of_partition(time, event, fair.apply(X), weight)
    assert fair.status_ == "optimal"
    assert fair.objective_value_ == pytest.approx(value, rel=1e-9)
    assert verify(fair, X, (event, time), sample_weight=weight).ok


def test_no_tree_that_is_worse_is_listed_for_wide_weights():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X, event = rng.random((8, 3)) < 0.5, np.arange(8) % 3 > 0
        X[:2] = [[True], [False]]
        time, weight = rng.exponential(size=8), 10 ** rng.uniform(-8, 8, size=8)
        tree = brier().fit(X, (event, time), weight)
        trees = near_optimal_trees(tree, X, (event, time), weight, epsilon=0)
        for tree in trees:
            value = plain.score_of_partition(time, event, tree.apply(X), weight)
            assert value == pytest.approx(trees[0].objective_value_, rel=1.1e-9)


def test_many_distinct_rows_do_not_blur_the_certificate():
    # The error of equal costs counts the leaves that a tree can have, not the groups of rows.
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(4000, 14)).astype(bool)
    time = np.ceil(20 * rng.exponential(np.where(X[:, 0], 1.0, 2.0)))
    tree = OptimalSurvivalTree(objective="brier", max_depth=2)
    tree.fit(X, (rng.uniform(size=4000) < 0.8, time))
    assert tree.objective_value_ - tree.lower_bound_ < 1e-10 * tree.objective_value_
