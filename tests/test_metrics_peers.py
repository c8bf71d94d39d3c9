"""Curves and metrics, compared with scikit-survival and with published scores of single leaves."""

import numpy as np
import pytest

from bristlecone import curves, metrics

sksurv_metrics = pytest.importorskip("sksurv.metrics")
compare = pytest.importorskip("sksurv.compare")
datasets = pytest.importorskip("sksurv.datasets")
nonparametric = pytest.importorskip("sksurv.nonparametric")
Surv = pytest.importorskip("sksurv.util").Surv

EXACT = {"rtol": 1e-9, "atol": 1e-9}


def random_outcome(seed, n=80):
    """Many ties, one event before all rows, and one censoring after them, so G stays positive."""
    rng = np.random.default_rng(seed)
    time = rng.integers(2, 14, n).astype(float)
    event = rng.random(n) < rng.uniform(0.2, 0.9)
    time[[0, -1]], event[[0, -1]] = (1.0, 14.0), (True, False)
    return Surv.from_arrays(event, time)


OUTCOMES = {
    "whas500": lambda: datasets.load_whas500()[1],
    "gbsg2": lambda: datasets.load_gbsg2()[1],
    "veterans": lambda: datasets.load_veterans_lung_cancer()[1],
} | {f"random {seed}": lambda seed=seed: random_outcome(seed) for seed in range(12)}


@pytest.fixture(params=OUTCOMES)
def outcome(request):
    return OUTCOMES[request.param]()


@pytest.fixture
def split(outcome):
    """Training rows, including the longest time, and test rows; the last test row is censored."""
    event, time = (outcome[name] for name in outcome.dtype.names)
    order = np.lexsort((event, -time))
    return outcome[order[::2]], outcome[order[1::2]]


def risks(y, seed=0):
    """Scores that are distinct, tied, or tied up to the tolerance."""
    event, time = (y[name] for name in y.dtype.names)
    rng = np.random.default_rng(seed)
    risk = rng.normal(size=time.size) - np.argsort(np.argsort(time)) / time.size + 0.2 * event
    near = np.round(risk, 1) + rng.choice([-4e-9, 0, 4e-9], time.size)
    return {"distinct": risk, "tied": np.round(risk), "nearly tied": near}


def inner_times(train, test):
    """Times at which both samples are at risk, including some event times."""
    event, time = (test[name] for name in test.dtype.names)
    last = min(time.max(), train[train.dtype.names[1]].max())
    known = np.unique(np.concatenate([time[event], np.linspace(time.min(), last, 9)]))
    known = known[(known >= time[event].min()) & (known < last)]
    return known[:: max(1, known.size // 12)]


def survival_at(times, risk):
    return np.exp(-np.outer(np.exp(risk), times / times.max()))


def test_nonparametric_estimators_agree(outcome):
    event, time = (outcome[name] for name in outcome.dtype.names)
    x, survival = nonparametric.kaplan_meier_estimator(event, time)
    np.testing.assert_array_equal(curves.kaplan_meier(outcome).x, x)
    np.testing.assert_allclose(curves.kaplan_meier(outcome).y, survival, **EXACT)
    hazard = nonparametric.nelson_aalen_estimator(event, time)[1]
    np.testing.assert_allclose(curves.nelson_aalen(outcome).y, hazard, **EXACT)
    censoring = nonparametric.kaplan_meier_estimator(event, time, reverse=True)[1]
    np.testing.assert_allclose(curves.censoring_survival(outcome).y, censoring, **EXACT)


@pytest.mark.parametrize("kind", ["distinct", "tied", "nearly tied"])
def test_harrell_concordance_agrees(outcome, kind):
    event, time = (outcome[name] for name in outcome.dtype.names)
    estimate = risks(outcome)[kind]
    ours = metrics.concordance_index_censored(event, time, estimate)
    theirs = sksurv_metrics.concordance_index_censored(event, time, estimate)
    assert ours[1:] == theirs[1:]
    assert ours.cindex == pytest.approx(theirs[0], abs=1e-9)


@pytest.mark.parametrize("kind", ["distinct", "tied", "nearly tied"])
@pytest.mark.parametrize("level", [None, 0.3, 0.8])
def test_uno_concordance_agrees(split, kind, level):
    train, test = split
    estimate = risks(test)[kind]
    tau = None if level is None else np.quantile(test[test.dtype.names[1]], level)
    ours = metrics.concordance_index_ipcw(train, test, estimate, tau)
    theirs = sksurv_metrics.concordance_index_ipcw(train, test, estimate, tau)
    assert ours[1:] == theirs[1:]
    assert ours.cindex == pytest.approx(theirs[0], abs=1e-9)


def test_brier_scores_agree(split):
    train, test = split
    times = inner_times(train, test)
    estimate = survival_at(times, risks(test)["distinct"])
    ours = metrics.brier_score(train, test, estimate, times)
    theirs = sksurv_metrics.brier_score(train, test, estimate, times)
    np.testing.assert_array_equal(ours[0], theirs[0])
    np.testing.assert_allclose(ours[1], theirs[1], **EXACT)
    assert metrics.integrated_brier_score(train, test, estimate, times) == pytest.approx(
        sksurv_metrics.integrated_brier_score(train, test, estimate, times), abs=1e-9
    )
    single = metrics.brier_score(train, test, estimate[:, 0], times[0])[1]
    np.testing.assert_allclose(single, ours[1][:1], rtol=1e-14)


@pytest.mark.parametrize("kind", ["distinct", "tied", "nearly tied"])
def test_auc_agrees(split, kind):
    train, test = split
    times = inner_times(train, test)
    risk = risks(test)[kind]
    # The ranks change over time.
    moving = np.outer(risk, np.linspace(-1, 2, times.size))
    for estimate in (risk, moving):
        ours = metrics.cumulative_dynamic_auc(train, test, estimate, times)
        theirs = sksurv_metrics.cumulative_dynamic_auc(train, test, estimate, times)
        np.testing.assert_allclose(ours[0], theirs[0], **EXACT)
        assert ours[1] == pytest.approx(theirs[1], abs=1e-9)


@pytest.mark.parametrize("n_groups", [2, 3, 5])
def test_logrank_agrees(outcome, n_groups):
    event, time = (outcome[name] for name in outcome.dtype.names)
    risk = risks(outcome)["distinct"]
    group = np.digitize(risk, np.quantile(risk, np.arange(1, n_groups) / n_groups))
    group[np.argsort(-time, kind="stable")[:n_groups]] = np.arange(n_groups)
    ours = metrics.logrank_test(event, time, group)
    statistic, p_value, stats, _ = compare.compare_survival(outcome, group, return_stats=True)
    assert ours.statistic == pytest.approx(statistic, rel=1e-9)
    assert ours.p_value == pytest.approx(p_value, rel=1e-9)
    assert ours.degrees_of_freedom == n_groups - 1
    np.testing.assert_array_equal(ours.groups, stats.index)
    np.testing.assert_array_equal(ours.observed, stats["observed"])
    np.testing.assert_allclose(ours.expected, stats["expected"], **EXACT)


@pytest.mark.parametrize("seed", range(40))
def test_concordance_is_refused_where_scikit_survival_refuses(seed):
    rng = np.random.default_rng(seed)
    train, test = (
        Surv.from_arrays(np.append(rng.random(3) < 0.6, first), rng.integers(1, 5, 4).astype(float))
        for first in (True, seed % 2 == 0)
    )
    estimate = rng.integers(0, 3, 4).astype(float)
    try:
        theirs = sksurv_metrics.concordance_index_ipcw(train, test, estimate)
    except ValueError:
        with pytest.raises(ValueError, match=r"no pair|after the last|is zero"):
            metrics.concordance_index_ipcw(train, test, estimate)
    else:
        assert metrics.concordance_index_ipcw(train, test, estimate) == pytest.approx(
            theirs, abs=1e-9
        )


@pytest.mark.parametrize(
    ("name", "score"), [("veterans", 0.076400), ("gbsg2", 0.194216), ("whas500", 0.226144)]
)
def test_exact_integral_of_a_single_leaf_is_the_published_one(name, score):
    # Objective of OSST for a single leaf, by its reference implementation, rescaled to [0, last
    # time].
    y = OUTCOMES[name]()
    curve = curves.kaplan_meier(y)
    ours = metrics.integrated_brier_score(y, y, [curve] * len(y), method="step", ties="paper")
    assert ours == pytest.approx(score, abs=5e-7)
