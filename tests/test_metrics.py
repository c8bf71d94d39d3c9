"""Metrics against their definitions, written out as loops, and their invariants."""

import itertools
import math

import numpy as np
import pytest

from bristlecone import metrics
from bristlecone.curves import StepFunction, kaplan_meier
from bristlecone.metrics import (
    brier_score,
    concordance_index_censored,
    concordance_index_ipcw,
    concordance_index_td,
    concordance_index_td_ipcw,
    cumulative_dynamic_auc,
    d_calibration,
    ibs_ratio,
    integrated_brier_score,
    logrank_test,
    one_time_calibration,
)

TIES = ["sksurv", "paper"]
SEEDS = range(10)


def sample(seed, n=40, n_times=8):
    """Outcome full of ties, and risk scores with ties."""
    rng = np.random.default_rng(seed)
    time = rng.integers(1, n_times + 1, n).astype(float)
    # The last row is censored alone: G is positive before it and known everywhere.
    time[-1] = n_times + 1
    event = rng.random(n) < 0.6
    event[0], event[-1] = True, False
    return event, time, np.round(rng.normal(size=n), 1)


def survival_matrix(seed, n=40, n_times=5, n_curves=None):
    """Non-increasing curves at unevenly spaced times, each taken by one row or by several."""
    rng = np.random.default_rng(seed + 1000)
    curves = np.sort(np.round(rng.random((n_curves or n, n_times)), 1))[:, ::-1]
    times = np.sort(rng.choice(np.arange(1, 33), n_times, replace=False)) / 4
    return curves[np.arange(n) % len(curves)], times


def naive_censoring(event, time, t, ties):
    value = 1.0
    for u in sorted(set(time)):
        if u <= t:
            at_risk = sum(time >= u) - (sum((time == u) & event) if ties == "sksurv" else 0)
            censored = sum((time == u) & ~event)
            value *= 1 - censored / at_risk if censored else 1
    return value


def naive_concordance(event, time, lower, equal, weight, ties):
    """``lower(i, j)`` and ``equal(i, j)`` compare the chances of i to survive with those of j."""
    score = pairs = concordant = discordant = tied = tied_time = 0
    for i in range(len(time)):
        for j in range(len(time)):
            same = time[i] == time[j] and event[i] and not event[j] and ties == "sksurv"
            if not (event[i] and time[i] < time[j]) and not same:
                continue
            tied_time += same
            pairs += weight[i]
            if equal(i, j):
                tied += 1
                score += weight[i] / 2
            elif lower(i, j):
                concordant += 1
                score += weight[i]
            else:
                discordant += 1
    return score / pairs, concordant, discordant, tied, tied_time


def step_value(curve, times, t):
    values = [s for s, u in zip(curve, times, strict=True) if u <= t]
    return values[-1] if values else 1.0


def naive_brier(event, time, survival_at, t, ties, train):
    total = 0.0
    for i in range(len(time)):
        if time[i] <= t:
            g = naive_censoring(*train, time[i], ties)
            total += event[i] * survival_at[i] ** 2 / g if g else 0
        else:
            g = naive_censoring(*train, t, ties)
            total += (1 - survival_at[i]) ** 2 / g if g else 0
    return total / len(time)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("seed", SEEDS)
def test_concordance_is_the_share_of_concordant_pairs(seed, ties):
    event, time, risk = sample(seed)
    result = concordance_index_censored(event, time, risk, ties=ties)
    expected = naive_concordance(
        event,
        time,
        lambda i, j: risk[i] > risk[j],
        lambda i, j: abs(risk[i] - risk[j]) <= 1e-8,
        np.ones(40),
        ties,
    )
    assert result[1:] == expected[1:]
    assert result.cindex == pytest.approx(expected[0], abs=1e-12)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("tau", [None, 6.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_uno_concordance_weighs_pairs_by_the_squared_inverse_of_g(seed, tau, ties):
    event, time, risk = sample(seed)
    train = sample(seed + 1, n=60)[:2]
    weight = [
        event[i] * (tau is None or time[i] < tau) / naive_censoring(*train, time[i], ties) ** 2
        if event[i]
        else 0
        for i in range(40)
    ]
    expected = naive_concordance(
        event,
        time,
        lambda i, j: risk[i] > risk[j],
        lambda i, j: abs(risk[i] - risk[j]) <= 1e-8,
        weight,
        ties,
    )
    result = concordance_index_ipcw(train, (event, time), risk, tau, ties=ties)
    assert result[1:] == expected[1:]
    assert result.cindex == pytest.approx(expected[0], abs=1e-12)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("n_curves", [4, 40])
@pytest.mark.parametrize("block", [None, 130, 7])
@pytest.mark.parametrize("seed", SEEDS)
def test_time_dependent_concordance_compares_survival_at_the_earlier_time(
    seed, block, n_curves, ties, monkeypatch
):
    if block:
        monkeypatch.setattr("bristlecone.metrics.concordance.BLOCK_CELLS", block)
    event, time, _ = sample(seed)
    train = sample(seed + 1, n=60)[:2]
    survival, times = survival_matrix(seed, n_curves=n_curves)
    at = np.array([[step_value(survival[j], times, t) for t in time] for j in range(40)])
    weight = [naive_censoring(*train, time[i], ties) ** -2.0 if event[i] else 0 for i in range(40)]
    for result, w in [
        (concordance_index_td(event, time, survival, times, ties=ties), np.ones(40)),
        (
            concordance_index_td_ipcw(train, (event, time), survival, times, ties=ties),
            weight,
        ),
    ]:
        expected = naive_concordance(
            event,
            time,
            lambda i, j: at[i, i] < at[j, i],
            lambda i, j: at[i, i] == at[j, i],
            w,
            ties,
        )
        assert result[1:] == expected[1:]
        assert result.cindex == pytest.approx(expected[0], abs=1e-12)


def test_time_dependent_concordance_of_proportional_curves_is_that_of_the_risks():
    event, time, risk = sample(3)
    times = np.unique(time)
    survival = np.exp(-np.outer(np.exp(risk), np.arange(1, times.size + 1)) / 100)
    expected = concordance_index_censored(event, time, risk, tied_tol=0)
    assert concordance_index_td(event, time, survival, times) == expected


def test_curves_may_be_shared_callables():
    event, time, _ = sample(5)
    survival, times = survival_matrix(5, n_curves=3)
    shared = [StepFunction(times, survival[c], before=1.0) for c in range(3)]
    # Not all at the same steps: repeated steps change no curve.
    shared[1] = StepFunction([0.1, *times], [1.0, *survival[1]], before=1.0)
    curves = [shared[i % 3] for i in range(40)]
    y = (event, time)
    assert concordance_index_td(event, time, curves) == concordance_index_td(
        event, time, survival, times
    )
    assert integrated_brier_score(y, y, curves, method="step") == pytest.approx(
        integrated_brier_score(y, y, survival, times, method="step"), abs=1e-15
    )
    at = [2.0, 5.5]
    np.testing.assert_allclose(
        brier_score(y, y, curves, at)[1],
        brier_score(y, y, np.stack([c(at) for c in curves]), at)[1],
        rtol=1e-15,
    )


def test_concordance_of_a_large_sample_has_every_pair():
    n = 100_000
    time = np.random.default_rng(0).permutation(n) + 1.0
    pairs = n * (n - 1) // 2
    everyone = np.ones(n, bool)
    assert concordance_index_censored(everyone, time, -time) == (1.0, pairs, 0, 0, 0)
    assert concordance_index_censored(everyone, time, time) == (0.0, 0, pairs, 0, 0)
    assert concordance_index_censored(everyone, time, np.zeros(n)) == (0.5, 0, 0, pairs, 0)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("seed", SEEDS)
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
        # The score is constant between two neighbours of this grid.
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


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("seed", SEEDS)
def test_auc_is_the_weighted_share_of_case_control_pairs(seed, ties):
    event, time, risk = sample(seed)
    train = sample(seed + 1, n=60)[:2]
    times = np.unique(time[event])[1:]
    moving = np.round(np.outer(risk, np.linspace(-1, 1, times.size)), 1)
    for estimate in (np.tile(risk[:, np.newaxis], times.size), moving):
        expected = []
        for k, t in enumerate(times):
            score = pairs = 0.0
            for i in np.flatnonzero(event & (time <= t)):
                for j in np.flatnonzero(time > t):
                    w = 1 / naive_censoring(*train, time[i], ties)
                    pairs += w
                    difference = estimate[i, k] - estimate[j, k]
                    tied_worth = 0.5 if ties == "sksurv" else 0
                    tied = abs(difference) <= 1e-8
                    score += w * (tied_worth if tied else difference > 0)
            expected.append(score / pairs)
        one_column = (estimate == estimate[:, :1]).all()
        auc, mean = cumulative_dynamic_auc(
            train, (event, time), estimate[:, 0] if one_column else estimate, times, ties=ties
        )
        np.testing.assert_allclose(auc, expected, rtol=1e-12)
        s = kaplan_meier((event, time))(times)
        if ties == "sksurv":
            weighted = expected[0] * (1 - s[0]) + expected[1:] @ (s[:-1] - s[1:])
            assert mean == pytest.approx(weighted / (1 - s[-1]), abs=1e-12)
        else:
            weighted = expected[1:] @ (s[:-1] - s[1:])
            assert mean == pytest.approx(weighted / (s[0] - s[-1]), abs=1e-12)


def test_auc_of_a_single_time_is_its_own_mean():
    event, time, risk = sample(4)
    auc, mean = cumulative_dynamic_auc((event, time), (event, time), risk, 5.0)
    assert auc.tolist() == [mean]


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


def test_d_calibration_tells_the_true_model_from_a_wrong_one():
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


@pytest.mark.parametrize("seed", SEEDS)
def test_logrank_of_two_groups_is_the_squared_standardised_excess(seed):
    event, time, risk = sample(seed)
    group = np.where(risk > 0, "high", "low")
    excess = variance = expected_high = 0.0
    for t in np.unique(time[event]):
        n, n_high = sum(time >= t), sum((time >= t) & (risk > 0))
        d = sum(event & (time == t))
        expected_high += d * n_high / n
        excess += sum(event & (time == t) & (risk > 0)) - d * n_high / n
        variance += d * (n_high / n) * (1 - n_high / n) * (n - d) / max(n - 1, 1)
    result = logrank_test(event, time, group)
    assert result.statistic == pytest.approx(excess**2 / variance, abs=1e-12)
    assert result.degrees_of_freedom == 1
    assert result.groups.tolist() == ["high", "low"]
    assert result.expected[0] == pytest.approx(expected_high, abs=1e-12)
    np.testing.assert_array_equal(
        result.observed, [sum(event & (risk > 0)), sum(event & (risk <= 0))]
    )


def test_logrank_does_not_count_groups_that_left_before_the_first_event():
    event, time, risk = sample(7)
    group = np.where(risk > 0, 1, 0)
    alone = logrank_test(event, time, group)
    more = logrank_test(
        np.append(event, [False, False]), np.append(time, [0.5, 0.5]), np.append(group, [2, 2])
    )
    assert more.degrees_of_freedom == 1
    assert more.statistic == pytest.approx(alone.statistic, abs=1e-12)
    assert more.p_value == pytest.approx(alone.p_value, abs=1e-12)


def every_metric(event, time, risk, survival, times):
    y = (event, time)
    return {
        "harrell": concordance_index_censored(event, time, risk, 0)[0],
        "uno": concordance_index_ipcw(y, y, risk, None, 0)[0],
        "harrell_td": concordance_index_td(event, time, survival, times)[0],
        "uno_td": concordance_index_td_ipcw(y, y, survival, times)[0],
        "auc": cumulative_dynamic_auc(y, y, risk, times[1:], 0)[1],
        "brier": brier_score(y, y, survival, times)[1].sum(),
        "trapezoid": integrated_brier_score(y, y, survival, times),
        "step": integrated_brier_score(y, y, survival, times, method="step"),
        "ratio": ibs_ratio(y, y, survival, times, method="step"),
        "d_calibration": d_calibration(event, time, survival, times)[0],
        "one_time": one_time_calibration(event, time, survival[:, 2], times[2], n_groups=3)[0],
        "logrank": logrank_test(event, time, risk > 0)[0],
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_metrics_do_not_depend_on_the_order_of_rows_or_the_unit_of_time(seed):
    event, time, risk = sample(seed)
    survival, _ = survival_matrix(seed)
    times = np.array([1.0, 2.5, 4.0, 5.25, 7.0])
    expected = every_metric(event, time, risk, survival, times)
    p = np.random.default_rng(seed).permutation(40)
    shuffled = every_metric(event[p], time[p], risk[p], survival[p], times)
    assert shuffled == pytest.approx(expected, abs=1e-12, rel=1e-12)
    rescaled = every_metric(event, 7 * time, risk, survival, 7 * times)
    assert rescaled == pytest.approx(expected, abs=1e-12, rel=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_ranking_metrics_depend_on_the_order_of_the_estimates_alone(seed):
    event, time, risk = sample(seed)
    y = (event, time)
    times = [2.0, 4.0, 6.0]
    for transformed in (np.exp(risk), 1e6 * risk + 3, risk**3):
        for metric in (
            lambda r: concordance_index_censored(event, time, r, 0),
            lambda r: concordance_index_ipcw(y, y, r, None, 0),
        ):
            assert metric(transformed) == metric(risk)
        np.testing.assert_array_equal(
            cumulative_dynamic_auc(y, y, transformed, times, 0)[0],
            cumulative_dynamic_auc(y, y, risk, times, 0)[0],
        )
    result, reversed_result = (concordance_index_censored(event, time, r) for r in (risk, -risk))
    assert reversed_result[1:4] == (result.discordant, result.concordant, result.tied_risk)
    assert reversed_result.cindex == pytest.approx(1 - result.cindex, abs=1e-15)


def test_public_names_exist():
    assert all(callable(getattr(metrics, name)) for name in metrics.__all__)


Y = (np.array([True, False, True, True]), np.array([1.0, 2.0, 3.0, 4.0]))
RISK = np.array([4.0, 3.0, 2.0, 1.0])
CURVES = np.full((4, 2), 0.5)
AT = [1.0, 2.0]
LATER = (np.array([True, True]), np.array([1.0, 9.0]))
ALL_CENSORED_LAST = (np.array([True, False]), np.array([1.0, 4.0]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: concordance_index_censored([0, 0], [1, 2], [1, 2]), "no pair is comparable"),
        (lambda: concordance_index_censored([0, 1], [1, 2], [1, 2]), "no pair is comparable"),
        (lambda: concordance_index_censored([1], [1], [1]), "no pair is comparable"),
        (
            lambda: concordance_index_censored([1, 0], [1, 1], [1, 2], ties="paper"),
            "no pair is comparable",
        ),
        (lambda: concordance_index_td([0, 1], [1, 2], CURVES[:2], AT), "no pair is comparable"),
        (lambda: concordance_index_ipcw(Y, Y, RISK, tau=1.0), "no pair is comparable"),
        (lambda: concordance_index_censored(*Y, RISK[:3]), "estimate has 3 values for 4 rows"),
        (lambda: concordance_index_censored(*Y, [1, 2, np.nan, 4]), "estimate is nan in row 2"),
        (lambda: concordance_index_censored(*Y, [1, 2, np.inf, 4]), "estimate is inf in row 2"),
        (lambda: concordance_index_censored(*Y, RISK, ties="both"), "ties must be"),
        (lambda: concordance_index_censored(*Y, RISK, tied_tol=np.nan), "tied_tol must be"),
        (lambda: concordance_index_td(*Y, CURVES, AT, tied_tol=-1.0), "tied_tol must be"),
        (lambda: cumulative_dynamic_auc(Y, Y, RISK, AT, tied_tol=np.nan), "tied_tol must be"),
        (lambda: concordance_index_ipcw(Y, LATER, [1, 2]), "test event time 9 is after the last"),
        (
            lambda: concordance_index_ipcw(ALL_CENSORED_LAST, LATER, [1, 2]),
            "zero at the test event time 9",
        ),
        (lambda: concordance_index_td(*Y, CURVES), "times is needed when survival is an array"),
        (lambda: concordance_index_td(*Y, CURVES, [2, 1]), "strictly ascending"),
        (lambda: concordance_index_td(*Y, CURVES, [1, 2, 3]), r"shape \(4, 3\), got \(4, 2\)"),
        (lambda: concordance_index_td(*Y, CURVES[:3], AT), "survival has 3 rows"),
        (lambda: concordance_index_td(*Y, CURVES * 3, AT), "row 0 is not a probability"),
        (lambda: concordance_index_td(*Y, [np.exp] * 4), "have no steps .x"),
        (lambda: brier_score(Y, Y, CURVES, [0.5, 2]), r"times must lie within \[1, 4\)"),
        (lambda: brier_score(Y, Y, CURVES, [1, 4]), r"times must lie within \[1, 4\)"),
        (lambda: brier_score(Y, Y, CURVES, [1, 5], ties="paper"), "must not exceed the last"),
        (lambda: brier_score(Y, Y, CURVES, [1, np.nan]), "times is NaN or infinite"),
        (lambda: brier_score(Y, Y, CURVES[:, :1], [-1]), "times must be non-negative"),
        (lambda: brier_score(Y, LATER, CURVES[:2], [2, 5]), "time 5 is after the last training"),
        (lambda: integrated_brier_score(Y, Y, CURVES[:, 0], [2]), "at least two times"),
        (lambda: integrated_brier_score(Y, Y, CURVES), "times is needed"),
        (lambda: integrated_brier_score(Y, Y, CURVES, AT, method="simpson"), "method must be"),
        (lambda: integrated_brier_score(Y, Y, CURVES, AT, limits=(1, 2)), "need method='step'"),
        (
            lambda: integrated_brier_score(Y, Y, CURVES, AT, method="step", limits=(2, 2)),
            "lower < upper",
        ),
        (
            lambda: integrated_brier_score(Y, LATER, CURVES[:2], AT, method="step"),
            "time 9 is after the last training",
        ),
        (
            lambda: ibs_ratio(Y, ([1, 1], [5, 6]), CURVES[:2], AT, method="step", limits=(0, 0.5)),
            "scores zero",
        ),
        (lambda: cumulative_dynamic_auc(Y, Y, RISK, [0.5, 2]), "no case .* at time 0.5"),
        (lambda: cumulative_dynamic_auc(Y, Y, RISK, [1, 4]), "no control .* at time 4"),
        (lambda: cumulative_dynamic_auc(Y, Y, CURVES[:3], AT), r"or \(4, 2\), got \(3, 2\)"),
        (lambda: cumulative_dynamic_auc(Y, Y, RISK, AT, ties="paper"), "no mean AUC"),
        (
            lambda: cumulative_dynamic_auc(Y, ([1, 1, 0], [1, 9, 10]), RISK[:3], [1, 9]),
            "test event time 9 is after the last",
        ),
        (lambda: d_calibration(*Y, CURVES, AT, n_bins=1), "n_bins must be an integer"),
        (lambda: one_time_calibration(*Y, [0.5] * 4, 2.0), "all predictions fall into one group"),
        (lambda: one_time_calibration(*Y, [0.5] * 3 + [2], 2.0), "within"),
        (lambda: one_time_calibration(*Y, RISK / 4, np.nan), "at must be finite"),
        (
            lambda: one_time_calibration(*Y, [0.1, 0.1, 0.9, 0.9], 3.0),
            "group 0 is followed up to 2 only",
        ),
        (lambda: logrank_test([0, 0], [1, 2], [0, 1]), "there is no event"),
        (lambda: logrank_test([1, 1], [1, 2], [0, 0]), "rows of two groups"),
        (lambda: logrank_test([1, 1], [1, 1], [0, 1]), "a survivor"),
        (lambda: logrank_test([1, 1], [1, 2], [0.0, np.nan]), "group is NaN in row 1"),
        (lambda: logrank_test([1, 1], [1, 2], [0]), "group has shape"),
    ],
)
def test_what_is_not_defined_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_delayed_entry_of_the_test_sample_is_refused():
    y = np.array([(True, 2.0, 1.0)], dtype=[("event", bool), ("time", float), ("entry", float)])
    with pytest.raises(ValueError, match="delayed entry is not supported here"):
        brier_score(Y, y, CURVES[:1], AT)


def test_one_curve_for_all_rows_is_refused():
    with pytest.raises(TypeError, match="one curve per row"):
        concordance_index_td(*Y, kaplan_meier(Y))


def test_rows_censored_after_the_training_range_need_no_weight_of_their_own():
    test = (np.array([True, True, False]), np.array([1.0, 2.0, 99.0]))
    score = brier_score(Y, test, np.full((3, 1), 0.5), [2.0])[1]
    g = 1 - 1 / 3
    assert score == pytest.approx((0.25 + 0.25 / g + 0.25 / g) / 3, abs=1e-15)


def test_g_is_not_needed_after_the_last_row_at_risk_or_the_last_time_asked_for():
    train = (np.array([True, True]), np.array([1.0, 4.0]))
    test = (np.array([True, False, True]), np.array([1.0, 2.0, 9.0]))
    gone = tuple(column[:2] for column in test)
    options = {"method": "step", "limits": (5.0, 6.0)}
    assert integrated_brier_score(train, gone, [[0.5], [0.3]], [1.0], **options) == 0.125
    assert cumulative_dynamic_auc(train, test, [3, 2, 1], [1.0])[0] == 1.0


def test_weights_are_zero_where_g_is():
    # G drops to 0 at 4; the rows at risk after it and the event at 5 have no weight.
    test = (np.array([True, True, False]), np.array([1.0, 5.0, 6.0]))
    score = brier_score(ALL_CENSORED_LAST, test, np.full((3, 1), 0.5), [5.0])[1]
    assert score == pytest.approx(0.25 / 3, abs=1e-15)


def test_predictions_that_differ_by_rounding_are_tied():
    event, time = np.array([True, True, False]), np.array([1.0, 2.0, 3.0])
    third = 1.0 - 2.0 / 3.0
    assert third != 1.0 / 3.0
    survival = np.array([[third], [1.0 / 3.0], [0.9]])
    for function, first in (
        (concordance_index_td, ()),
        (concordance_index_td_ipcw, (1,)),
    ):
        arguments = ((event, time), (event, time)) if first else (event, time)
        found = function(*arguments, survival, [0.5])
        assert (found.concordant, found.tied_risk) == (2, 1)
