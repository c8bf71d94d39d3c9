"""Brier scores, their integral and their ratio, compared with the definitions."""

import itertools

import numpy as np
import pytest
from metrics_plainly import SEEDS, TIES, naive_brier, sample, step_value, survival_matrix
from pace import slow_but

from bristlecone import CompetingRisksTree, OptimalSurvivalTree, outcome
from bristlecone.curves import kaplan_meier
from bristlecone.metrics import (
    brier_score,
    brier_score_cause,
    ibs_ratio,
    ibs_scorer,
    integrated_brier_score,
)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("seed", slow_but([SEEDS[0]], SEEDS))
def test_brier_score_and_its_exact_integral_follow_the_definition(seed, ties, monkeypatch):
    event, time, _ = sample(seed)
    train = sample(seed + 1, n=60)[:2]
    survival, times = survival_matrix(seed)
    at = np.array([1.0, 2.5, 4.0, 8.5])
    values = np.array([[step_value(c, times, t) for t in at] for c in survival])
    expected = [naive_brier(event, time, values[:, k], t, ties, train) for k, t in enumerate(at)]
    returned, scores = brier_score(train, (event, time), values, at, ties=ties)
    np.testing.assert_array_equal(returned, at)
    np.testing.assert_allclose(scores, expected, rtol=1e-12)

    for limits in [None, (0.5, 6.3), (3.0, 4.0), (0.0, 0.7)]:
        lower, upper = limits or (0.0, time.max())
        # The score is constant between neighbouring times of this grid.
        grid = np.unique(np.concatenate([[lower, upper], times, time, train[1]]))
        grid = grid[(grid >= lower) & (grid <= upper)]
        area = 0.0
        for start, end in itertools.pairwise(grid):
            s = [step_value(c, times, start) for c in survival]
            area += (end - start) * naive_brier(event, time, s, start, ties, train)
        with monkeypatch.context() as patch:
            for cells in (1 << 20, 7):
                patch.setattr("bristlecone.metrics._inputs.BLOCK_CELLS", cells)
                result = integrated_brier_score(
                    train,
                    (event, time),
                    survival,
                    times,
                    ties=ties,
                    method="step",
                    limits=limits,
                )
                assert result == pytest.approx(area / (upper - lower), abs=1e-13)


def test_trapezoid_joins_the_scores_by_straight_lines():
    y = sample(1)[:2]
    survival, times = survival_matrix(1)
    scores = brier_score(y, y, survival, times, ties="paper")[1]
    area = sum((times[k + 1] - times[k]) * (scores[k] + scores[k + 1]) / 2 for k in range(4))
    result = integrated_brier_score(y, y, survival, times, ties="paper")
    assert result == pytest.approx(area / (times[4] - times[0]), abs=1e-15)


def test_brier_score_of_certain_and_right_predictions_is_zero():
    event, time = np.ones(5, bool), np.arange(1.0, 6.0)
    right = (time[:, np.newaxis] > time).astype(float)
    y = (event, time)
    np.testing.assert_array_equal(brier_score(y, y, right, time, ties="paper")[1], np.zeros(5))
    assert integrated_brier_score(y, y, right, time, method="step") == 0.0


@pytest.mark.parametrize("unit", [1e-300, 1e300])
def test_the_exact_integral_does_not_depend_on_the_unit_of_time(unit):
    survival, times = survival_matrix(3, n_times=6)
    (event, time), (known, since) = sample(3)[:2], sample(2, n=60)[:2]
    scores = [
        integrated_brier_score(
            (known, since * scale), (event, time * scale), survival, times * scale, method="step"
        )
        for scale in (1.0, unit)
    ]
    assert scores[0] == pytest.approx(scores[1], rel=1e-12)


def test_rows_that_all_leave_at_time_zero_give_no_integral():
    y = (np.array([True, False, True]), np.array([1.0, 2.0, 3.0]))
    at_once, X = (y[0], np.zeros(3)), np.arange(3.0)[:, np.newaxis]
    curves, refused = [kaplan_meier(y)] * 3, pytest.raises(ValueError, match="leaves at time 0")
    for metric in (integrated_brier_score, ibs_ratio):
        with refused:
            metric(y, at_once, curves, method="step")
    for tree in (OptimalSurvivalTree(max_depth=0), CompetingRisksTree(max_depth=0)):
        with refused:
            ibs_scorer(tree.fit(X, outcome(*y)), X, outcome(*at_once))


@pytest.mark.parametrize("method", ["trapezoid", "step"])
def test_ibs_ratio_is_relative_to_the_kaplan_meier_curve_of_the_training_data(method):
    train, test = sample(2, n=60)[:2], sample(3)[:2]
    survival, times = survival_matrix(3, n_times=6)
    options = {"method": method, "ties": "paper"}
    curve = kaplan_meier(train)
    own_times = times if method == "trapezoid" else curve.x
    baseline = integrated_brier_score(
        train, test, np.tile(curve(own_times), (40, 1)), own_times, **options
    )
    score = integrated_brier_score(train, test, survival, times, **options)
    ratio = ibs_ratio(train, test, survival, times, **options)
    assert ratio == pytest.approx(1 - score / baseline, abs=1e-13)
    own = ibs_ratio(train, test, [curve] * 40, own_times, **options)
    assert own == pytest.approx(0, abs=1e-13)


def test_a_censoring_distribution_that_is_zero_too_early_is_an_error():
    """With delayed entry all rows at risk may be censored before the last training time."""
    train = outcome([1, 0, 1, 0, 1, 1], [1.0, 2, 5, 6, 7, 8], [0.0, 0, 3, 3, 3, 3])
    test = outcome([1, 0, 1, 1], [4.0, 6, 7, 9])
    survival = [[0.99, 0.0]] * 4
    with pytest.raises(ValueError, match=r"zero at the test event time 4"):
        brier_score(train, test, survival, [5.0, 6.5])
    with pytest.raises(ValueError, match=r"zero at the time at risk 6"):
        integrated_brier_score(
            train, ([False] * 4, test["time"][[1] * 4]), survival, [5.0, 6.5], method="step"
        )
    causes = [1, 0, 1, 2], test["time"]
    with pytest.raises(ValueError, match=r"zero at the time just before 4"):
        brier_score_cause(train, causes, survival, [5.0, 6.5])
    scored = outcome([1, 0], [1.0, 2.0])
    assert brier_score(train, scored, [[0.4], [0.4]], [1.0])[1] == pytest.approx(
        [(0.16 + 0.36) / 2]
    )
