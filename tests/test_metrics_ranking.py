"""Concordance and AUC, compared with their definitions over pairs of rows."""

import numpy as np
import pytest
from metrics_plainly import (
    SEEDS,
    TIES,
    naive_censoring,
    naive_concordance,
    sample,
    step_value,
    survival_matrix,
)
from pace import slow_but

from bristlecone.curves import StepFunction, kaplan_meier
from bristlecone.metrics import (
    brier_score,
    concordance_index_censored,
    concordance_index_ipcw,
    concordance_index_td,
    concordance_index_td_ipcw,
    cumulative_dynamic_auc,
    integrated_brier_score,
)


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
@pytest.mark.parametrize("block", [None, 130, 7, "by step"])
@pytest.mark.parametrize("seed", slow_but([SEEDS[0]], SEEDS))
def test_time_dependent_concordance_compares_survival_at_the_earlier_time(
    seed, block, n_curves, ties, monkeypatch
):
    if block == "by step":
        # A negative cost per step selects this algorithm even with 40 curves.
        monkeypatch.setattr("bristlecone.metrics._concordance._STEP_COST", -40)
    elif block:
        monkeypatch.setattr("bristlecone.metrics._concordance.BLOCK_CELLS", block)
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


@pytest.mark.parametrize("ties", TIES)
def test_time_dependent_concordance_of_a_curve_per_row(ties):
    rng = np.random.default_rng(5)
    n, times = 600, np.array([2.0, 4.0, 7.0])
    event, time = rng.random(n) < 0.6, rng.integers(0, 40, n) / 4
    survival = np.sort(rng.integers(1, 12, (n, 3)) / 12 - rng.random((n, 3)) / 1e14)[:, ::-1]
    step = np.searchsorted(times, time, side="right")
    at = np.column_stack([np.ones(n), survival])[:, step].T  # [i, j] is curve j at time i
    later = time > time[:, None]
    if ties == "sksurv":
        later |= (time == time[:, None]) & ~event
    later &= event[:, None]
    above = at - np.diag(at)[:, None]
    result = concordance_index_td(event, time, survival, times, ties=ties)
    assert result.concordant == (later & (above > 1e-12)).sum()
    assert result.tied_risk == (later & (np.abs(above) <= 1e-12)).sum()
    assert result.discordant == (later & (above < -1e-12)).sum()


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
    # The curves have different steps; repeated steps do not change a curve.
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


@pytest.mark.slow
def test_concordance_of_a_large_sample_has_every_pair():
    n = 100_000
    time = np.random.default_rng(0).permutation(n) + 1.0
    pairs = n * (n - 1) // 2
    everyone = np.ones(n, bool)
    assert concordance_index_censored(everyone, time, -time) == (1.0, pairs, 0, 0, 0)
    assert concordance_index_censored(everyone, time, time) == (0.0, 0, pairs, 0, 0)
    assert concordance_index_censored(everyone, time, np.zeros(n)) == (0.5, 0, 0, pairs, 0)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("seed", slow_but([SEEDS[0]], SEEDS))
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
