"""Metrics of weighted rows: their definitions, and integer weights as repetitions."""

import numpy as np
import pytest
from metrics_plainly import (
    TIES,
    naive_auc,
    naive_brier,
    naive_censoring,
    naive_concordance,
    sample,
    step_value,
    survival_matrix,
)

import bristlecone
from bristlecone import metrics
from bristlecone.curves import kaplan_meier

SEEDS = range(4)
EXACT = {"rel": 1e-12, "abs": 1e-12}


def rows(seed):
    """Training and test outcomes, risks, curves with their times, and weights (some are 0)."""
    event, time, risk = sample(seed)
    weight = np.random.default_rng(seed).uniform(0.2, 3.0, 40)
    weight[3:7] = 0.0
    return sample(seed + 1, n=60)[:2], (event, time), risk, *survival_matrix(seed), weight


def uno_weights(train, event, time, ties):
    rows = zip(event, time, strict=True)
    return [naive_censoring(*train, t, ties) ** -2.0 if happened else 0 for happened, t in rows]


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("seed", SEEDS)
def test_concordance_weighs_pairs_by_both_rows_and_by_g(seed, ties):
    train, (event, time), risk, _, _, own = rows(seed)
    g = uno_weights(train, event, time, ties)
    expected = naive_concordance(
        event,
        time,
        lambda i, j: risk[i] > risk[j],
        lambda i, j: abs(risk[i] - risk[j]) <= 1e-8,
        g,
        ties,
        own,
    )
    found = metrics.concordance_index_ipcw(train, (event, time), risk, ties=ties, sample_weight=own)
    assert found.cindex == pytest.approx(expected[0], **EXACT)
    assert found[1:] == expected[1:]


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("block", [None, 130, "by step"])
@pytest.mark.parametrize("seed", SEEDS)
def test_time_dependent_concordance_weighs_pairs_by_both_rows(seed, block, ties, monkeypatch):
    if block == "by step":
        monkeypatch.setattr("bristlecone.metrics._concordance._STEP_COST", -40)
    elif block:
        monkeypatch.setattr("bristlecone.metrics._concordance.BLOCK_CELLS", block)
    train, (event, time), _, survival, times, own = rows(seed)
    at = np.array([[step_value(survival[j], times, t) for t in time] for j in range(40)])
    g = uno_weights(train, event, time, ties)
    options = {"ties": ties, "sample_weight": own}
    plain = metrics.concordance_index_td(event, time, survival, times, **options)
    uno = metrics.concordance_index_td_ipcw(train, (event, time), survival, times, **options)
    for found, weight in ((plain, np.ones(40)), (uno, g)):
        expected = naive_concordance(
            event,
            time,
            lambda i, j: at[i, i] < at[j, i],
            lambda i, j: at[i, i] == at[j, i],
            weight,
            ties,
            own,
        )
        assert found.cindex == pytest.approx(expected[0], **EXACT)
        assert found[1:] == expected[1:]


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("block", [130, "by step"])
@pytest.mark.parametrize("seed", SEEDS)
def test_time_dependent_concordance_compares_rows_under_observation(
    seed, block, weighted, ties, monkeypatch
):
    if block == "by step":
        monkeypatch.setattr("bristlecone.metrics._concordance._STEP_COST", -40)
    else:
        monkeypatch.setattr("bristlecone.metrics._concordance.BLOCK_CELLS", block)
    _, (event, time), _, survival, times, own = rows(seed)
    survival = survival[np.arange(40) % 7]
    entry = np.random.default_rng(seed).integers(0, time.astype(int)).astype(float)
    own = own if weighted else None
    at = np.array([[step_value(survival[j], times, t) for t in time] for j in range(40)])
    y = bristlecone.outcome(event, time, entry=entry)
    found = metrics.concordance_index_td(y, survival, times, ties=ties, sample_weight=own)
    expected = naive_concordance(
        event,
        time,
        lambda i, j: at[i, i] < at[j, i],
        lambda i, j: at[i, i] == at[j, i],
        np.ones(40),
        ties,
        own,
        entry,
    )
    assert found.cindex == pytest.approx(expected[0], **EXACT)
    assert found[1:] == expected[1:]


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("seed", SEEDS)
def test_brier_score_is_the_weighted_mean_over_rows(seed, ties):
    train, (event, time), _, survival, times, own = rows(seed)
    at = np.array([2.0, 4.0, 7.5])
    values = np.array([[step_value(c, times, t) for t in at] for c in survival])
    expected = [
        naive_brier(event, time, values[:, k], t, ties, train, own) for k, t in enumerate(at)
    ]
    found = metrics.brier_score(train, (event, time), values, at, ties=ties, sample_weight=own)
    np.testing.assert_allclose(found[1], expected, rtol=1e-12)


@pytest.mark.parametrize("ties", TIES)
@pytest.mark.parametrize("seed", SEEDS)
def test_auc_weighs_cases_and_controls(seed, ties):
    train, (event, time), risk, _, _, own = rows(seed)
    at = np.array([2.5, 4.0, 6.0])
    found, mean = metrics.cumulative_dynamic_auc(
        train, (event, time), risk, at, ties=ties, sample_weight=own
    )
    expected = [naive_auc(event, time, risk, t, ties, train, own) for t in at]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    survival = kaplan_meier((event, time), own)(at)
    start = 1.0 if ties == "sksurv" else survival[0]
    decrease = -np.diff(survival, prepend=start)
    assert mean == pytest.approx(expected @ decrease / (start - survival[-1]), **EXACT)


def scores(train, test, risk, survival, times, weight=None):
    options = {} if weight is None else {"sample_weight": weight}
    return [
        metrics.concordance_index_censored(test, risk, **options).cindex,
        metrics.concordance_index_ipcw(train, test, risk, **options).cindex,
        metrics.concordance_index_td(test, survival, times, **options).cindex,
        metrics.concordance_index_td_ipcw(train, test, survival, times, **options).cindex,
        metrics.cumulative_dynamic_auc(train, test, risk, [3.0, 5.0], **options)[1],
        *metrics.brier_score(train, test, survival, times, ties="paper", **options)[1],
        metrics.integrated_brier_score(train, test, survival, times, ties="paper", **options),
        metrics.integrated_brier_score(train, test, survival, times, method="step", **options),
        metrics.ibs_ratio(train, test, survival, times, method="step", **options),
    ]


@pytest.mark.parametrize("seed", SEEDS)
def test_integer_weights_are_repetition(seed):
    train, (event, time), risk, survival, times, _ = rows(seed)
    weight = np.random.default_rng(seed).integers(0, 4, 40)
    weight[-1] = 1
    many = np.repeat(np.arange(40), weight)
    np.testing.assert_allclose(
        scores(train, (event, time), risk, survival, times, weight),
        scores(train, (event[many], time[many]), risk[many], survival[many], times),
        rtol=1e-12,
    )


def test_rows_of_weight_zero_do_not_end_the_follow_up():
    y, survival = ([True, True, False, False], [1.0, 2.0, 3.0, 9.0]), [[0.5]] * 4
    with pytest.raises(ValueError, match=r"within \[1, 3\), the follow-up of the test"):
        metrics.brier_score(y, y, survival, [5.0], sample_weight=[1, 1, 1, 0])


@pytest.mark.parametrize(
    "call",
    [
        lambda train, test: metrics.concordance_index_ipcw(train, test, [1.0, 2.0]),
        lambda train, test: metrics.cumulative_dynamic_auc(train, test, [1.0, 2.0], [3.0]),
        lambda train, test: metrics.brier_score(train, test, [0.5, 0.5], [3.0]),
        lambda train, test: metrics.integrated_brier_score(train, test, [[0.5]] * 2, [3.0]),
    ],
)
def test_censoring_weights_are_not_defined_for_rows_that_enter_late(call):
    late = bristlecone.outcome([True, False], [2.0, 4.0], entry=[1.0, 0.0])
    with pytest.raises(ValueError, match="delayed entry, for which censoring weights are not"):
        call(([True, False], [2.0, 4.0]), late)


@pytest.mark.parametrize(("weight", "reported"), [([1.0], "shape"), ([-1.0, 1.0], "row 0")])
def test_wrong_weights_are_refused(weight, reported):
    y = [True, False], [2.0, 4.0]
    with pytest.raises(ValueError, match=rf"sample_weight .*{reported}"):
        metrics.brier_score(y, y, [0.5, 0.5], [3.0], sample_weight=weight)
