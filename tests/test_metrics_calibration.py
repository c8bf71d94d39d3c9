"""D-calibration and one-time calibration, compared with their definitions."""

import math

import numpy as np
import pytest
from metrics_plainly import SEEDS, sample, step_value, survival_matrix

from bristlecone.curves import StepFunction
from bristlecone.metrics import d_calibration, one_time_calibration


@pytest.mark.parametrize("seed", SEEDS)
def test_d_calibration_shares_out_censored_rows(seed):
    event, time, _ = sample(seed)
    survival, times = survival_matrix(seed)
    bins = np.zeros(5)
    for i in range(40):
        s = step_value(survival[i], times, time[i])
        own = min(np.flatnonzero(np.linspace(0, 1, 6) <= s)[-1], 4)
        if event[i] or s == 0:
            bins[own] += 1
            continue
        bins[own] += (s - np.linspace(0, 1, 6)[own]) / s
        bins[:own] += 0.2 / s
    result = d_calibration(event, time, survival, times, n_bins=5)
    np.testing.assert_allclose(result.bins, bins, atol=1e-12)
    assert result.bins.sum() == pytest.approx(40, abs=1e-12)
    assert result.statistic == pytest.approx(((bins - 8) ** 2 / 8).sum(), abs=1e-12)


def test_d_calibration_of_curves_without_a_step():
    event, time = np.array([True, False, True, True]), np.arange(1.0, 5.0)
    flat = [StepFunction([], [], before=1.0)] * 4
    assert d_calibration(event, time, flat, n_bins=2).bins.tolist() == [0.5, 3.5]


def test_d_calibration_separates_the_true_model_from_a_wrong_one():
    rng = np.random.default_rng(0)
    n = 1000
    rate = rng.uniform(0.5, 2, n)
    life, censoring = rng.exponential(1 / rate), rng.exponential(1, n)
    event, time = life <= censoring, np.minimum(life, censoring)
    times = np.linspace(0, 10, 2000)
    survival = np.exp(-np.outer(rate, times))
    assert d_calibration(event, time, survival, times).p_value > 0.05
    assert d_calibration(event, time, survival**1.5, times).p_value < 1e-6


def test_one_time_calibration_of_a_hand_worked_sample():
    event = [True, False, True, True, True, False, True, False]
    time = [1.0, 2.0, 3.0, 9.0, 1.0, 9.0, 9.0, 9.0]
    low, high = [0.4, 0.4, 0.4, 0.4], [0.9, 0.9, 0.9, 0.9]
    result = one_time_calibration(event, time, low + high, 5.0)
    np.testing.assert_array_equal(result.n_rows, [4, 4])
    np.testing.assert_allclose(result.predicted, [0.4, 0.9], rtol=1e-15)
    np.testing.assert_allclose(result.observed, [0.75 * 0.5, 0.75], rtol=1e-15)
    expected = 4 * 0.025**2 / 0.24 + 4 * 0.15**2 / 0.09
    assert result.statistic == pytest.approx(expected, abs=1e-12)
    one_degree_of_freedom = math.erfc(math.sqrt(expected / 2))
    assert result.p_value == pytest.approx(one_degree_of_freedom, abs=1e-12)


def test_one_time_calibration_cuts_at_quantiles_and_keeps_equal_predictions_together():
    n = 100
    event, time = np.ones(n, bool), np.arange(1.0, n + 1)
    distinct = one_time_calibration(event, time, (np.arange(n) + 0.5) / n, 50.0)
    np.testing.assert_array_equal(distinct.n_rows, np.full(10, 10))
    np.testing.assert_array_equal(distinct.observed, np.repeat([0.0, 1.0], 5))
    leaves = one_time_calibration(event, time, np.repeat([0.1, 0.5, 0.9], [55, 5, 40]), 50.0)
    np.testing.assert_array_equal(leaves.n_rows, [55, 5, 40])


def test_one_time_calibration_of_certain_predictions():
    event, time = np.ones(4, bool), [1.0, 1.0, 9.0, 9.0]
    right = one_time_calibration(event, time, [0.0, 0.0, 1.0, 1.0], 5.0)
    assert (right.statistic, right.p_value) == (0.0, 1.0)
    wrong = one_time_calibration(event, time, [1.0, 1.0, 0.0, 0.0], 5.0)
    assert (wrong.statistic, wrong.p_value) == (np.inf, 0.0)
