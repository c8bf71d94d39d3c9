"""Curves with fewer steps: the number of steps, and their errors."""

import itertools

import numpy as np
import pandas as pd
import pytest
from model_values import model_of, soft, step

from bristlecone import CompetingRisksTree
from bristlecone._data.survival import TrainingData
from bristlecone._leaves.statistics import SurvivalRows
from bristlecone._leaves.survival import StepLeaves
from bristlecone._leaves.thinning import thinned
from bristlecone._model import document
from bristlecone._model.registry import dumps, loads

MANY = 400
KINDS = [
    ("proportional", 0.0),
    ("kaplan-meier", 0.0),
    ("kaplan-meier", 20.0),
    ("brier-optimal", 0.0),
    ("brier-optimal", 20.0),
]


def steps(leaves):
    """Largest number of steps of a predicted curve."""
    values = leaves.survival_at(leaves.unique_times)
    return int((np.diff(values, axis=1, prepend=1.0) < 0).sum(axis=1).max())


def true_error(one, other):
    times = np.union1d(one.unique_times, other.unique_times)
    times = np.concatenate([times, times + 1e-6, np.nextafter(times, 0)])
    return np.abs(one.survival_at(times) - other.survival_at(times)).max()


@pytest.mark.parametrize(("curve", "shrinkage"), KINDS)
@pytest.mark.parametrize("points", [1, 3, 7, 20])
def test_the_stated_error_is_the_largest_one(curve, shrinkage, points):
    leaves = step(curve, shrinkage=shrinkage, n=MANY)[0][2]
    thinner, error = thinned(leaves, points)
    assert steps(leaves) > 20 >= points >= steps(thinner)
    assert error == pytest.approx(true_error(leaves, thinner), rel=1e-12)
    assert 0 < error < 1 / points
    for leaf in thinner.statistics:
        assert leaf.event_times.size <= points
    assert thinner.unique_times[-1] == leaves.unique_times[-1]


@pytest.mark.parametrize(("curve", "shrinkage"), KINDS)
def test_thinned_leaves_are_saved_and_read(curve, shrinkage):
    parts, _ = step(curve, shrinkage=shrinkage, n=MANY, weighted=True)
    estimator, tree, leaves, encoder, proof = parts
    thinner, error = thinned(leaves, 9)
    proof.facts["curve_error"] = error
    text = document.write(model_of(estimator, tree, thinner, encoder, proof))
    whole = document.write(model_of(estimator, tree, leaves, encoder, proof))
    assert len(text) < 0.7 * len(whole)
    again = document.parse(text).leaves.value(tree, proof)
    np.testing.assert_array_equal(
        again.survival_at(leaves.unique_times), thinner.survival_at(leaves.unique_times)
    )


def test_theta_and_the_risk_of_a_likelihood_tree_do_not_change():
    leaves = step(prior=10.0, shrinkage=3.0, n=MANY)[0][2]
    thinner, _ = thinned(leaves, 5)
    every = np.arange(len(leaves.statistics))
    np.testing.assert_array_equal(leaves.risk(every), thinner.risk(every))
    for one, other in zip(leaves.statistics, thinner.statistics, strict=True):
        assert (one.theta, one.events, one.hazard) == (other.theta, other.events, other.hazard)


def test_curves_of_few_steps_stay_as_they_are():
    leaves = step("kaplan-meier")[0][2]
    thinner, error = thinned(leaves, 1000)
    assert error == 0 and thinner is leaves


@pytest.mark.parametrize("points", [1, 2, 3])
def test_no_choice_of_as_many_steps_is_nearer(points):
    """Least error over all partitions of a short curve, each piece in the middle of its values."""
    leaves = step("kaplan-meier", n=26)[0][2]
    _, error = thinned(leaves, points)
    worst = 0.0
    for leaf in leaves.statistics:
        falls = 1 - leaf.kaplan_meier
        if falls.size <= points:
            continue
        best = np.inf
        for starts in itertools.combinations(range(falls.size), points):
            ends = [*starts[1:], falls.size]
            # Before the first piece, the curve is 1.
            off = [falls[starts[0] - 1] if starts[0] else 0.0]
            off += [(falls[b - 1] - falls[a]) / 2 for a, b in zip(starts, ends, strict=True)]
            best = min(best, max(off))
        worst = max(worst, best)
    assert error == pytest.approx(worst, abs=1e-9)


@pytest.mark.parametrize("points", [1, 2, 3])
def test_no_baseline_of_as_many_steps_is_nearer(points):
    """Least error over all partitions of a short baseline, each piece at its best value."""
    leaves = step(n=26)[0][2]
    _, error = thinned(leaves, points)
    hazard = np.unique(leaves.baseline.cumulative_hazard)
    hazard = hazard[hazard > 0]
    assert hazard.size > points
    theta = leaves.theta[:, np.newaxis]

    def piece(low, high):
        grid = np.linspace(low, high, 4001)
        middle = np.exp(-theta * grid)
        below, above = np.exp(-theta * high), np.exp(-theta * low)
        return np.maximum(middle - below, above - middle).max(axis=0).min()

    best = np.inf
    for starts in itertools.combinations(range(hazard.size), points):
        ends = [*starts[1:], hazard.size]
        off = [(1 - np.exp(-theta * hazard[starts[0] - 1])).max() if starts[0] else 0.0]
        off += [piece(hazard[a], hazard[b - 1]) for a, b in zip(starts, ends, strict=True)]
        best = min(best, max(off))
    assert error == pytest.approx(best, abs=1e-3)
    assert error <= best + 1e-9


@pytest.mark.parametrize("weighted", [False, True])
def test_medians_and_intervals_stay_near(weighted):
    leaves = step("kaplan-meier", weighted=weighted, n=4000)[0][2]
    thinner, _ = thinned(leaves, 60)
    for one, other in zip(leaves.statistics, thinner.statistics, strict=True):
        times = np.quantile(one.event_times, [0.2, 0.4, 0.6, 0.8])
        for level in (0.5, 0.95):
            for ours, theirs in zip(
                one.curve.confidence_interval(level),
                other.curve.confidence_interval(level),
                strict=True,
            ):
                at = [
                    values[np.searchsorted(curve.x, times, side="right") - 1]
                    for curve, values in ((one.curve, ours), (other.curve, theirs))
                ]
                np.testing.assert_allclose(at[0], at[1], atol=0.01)


def test_numbers_at_risk_are_those_of_the_times_that_are_kept():
    leaves = step("kaplan-meier", n=MANY)[0][2]
    thinner, _ = thinned(leaves, 7)
    for one, other in zip(leaves.follow_up, thinner.follow_up, strict=True):
        assert other.times.size < one.times.size and other.n_rows == one.n_rows
        assert np.isin(other.times, thinner.unique_times).all()
        kept = thinner.unique_times
        np.testing.assert_array_equal(one.at_risk(kept), other.at_risk(kept))


def test_soft_trees_predict_the_same():
    (_, tree, leaves, _, _), design = soft("spline-ph")
    thinner, error = thinned(leaves, 3)
    assert error == 0
    rows = leaves.locate(tree.leaf_index(design), design)
    np.testing.assert_array_equal(leaves.risk(rows), thinner.risk(rows))
    assert thinner.unique_times[-1] == leaves.unique_times[-1]


@pytest.mark.slow
def test_a_large_model_is_small():
    rng = np.random.default_rng(0)
    n = 500_000
    (estimator, tree, _, encoder, proof), _ = step()
    data = TrainingData(None, rng.random(n) < 0.7, rng.exponential(size=n), None)
    leaf = rng.choice(tree.leaves, size=n)
    big = SurvivalRows(data)
    found = StepLeaves.grown(
        tree,
        leaf,
        big,
        big.statistics(tree, leaf),
        curve="proportional",
        by_theta=True,
        shrinkage=0.0,
    )
    thinner, error = thinned(found, 200)
    assert error < 0.004
    proof.facts["curve_error"] = error
    assert len(document.write(model_of(estimator, tree, thinner, encoder, proof))) < 300_000


@pytest.mark.parametrize("points", [1, 2, 3])
@pytest.mark.parametrize("curve", ["aalen-johansen", "proportional"])
def test_a_cause_whose_events_all_follow_the_fall_of_survival_to_zero_is_read(curve, points):
    # With delayed entry nobody is at risk after time 2, and cause 2 first happens at time 5.
    y = {"event": [1, 1, 1, 2, 2, 0], "time": [1.0, 2, 4, 5, 6, 7], "entry": [0.0, 0, 3, 3, 3, 3]}
    tree = CompetingRisksTree(max_depth=0, min_events_leaf=1, leaf_curve=curve)
    tree.fit(np.arange(6.0)[:, None], pd.DataFrame(y))
    loaded = loads(dumps(tree, points))
    error = loaded.certificate_.facts["curve_error"]
    times = tree.unique_times_
    for cause in (1, 2):
        expected = tree.predict_cumulative_incidence([[0.0]], cause)
        found = loaded.predict_cumulative_incidence([[0.0]], cause, times=times)
        assert np.abs(found - expected).max() <= error + 1e-12
    assert loads(dumps(loaded)).leaves_.n_causes == 2
