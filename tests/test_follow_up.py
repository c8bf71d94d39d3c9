"""Follow-up of the rows in leaves, and the columns of tables that show it."""

import numpy as np
import pytest
from scipy.stats import poisson
from survival_rows import sample

from bristlecone import OptimalSurvivalTree, SoftSurvivalTree
from bristlecone._leaves.follow_up import FollowUp
from bristlecone._leaves.means import LEVELS, weighted_quantiles
from bristlecone.curves import kaplan_meier, numbers_at_risk, rmst
from bristlecone.metrics import logrank_test


@pytest.fixture(scope="module")
def fitted():
    X, y = sample()
    return OptimalSurvivalTree(max_depth=2).fit(X, y), X, y


@pytest.mark.parametrize("entry", [False, True])
def test_numbers_at_risk_are_counted(entry):
    rng = np.random.default_rng(0)
    time = rng.integers(1, 30, 200) / 2
    event = rng.random(200) < 0.6
    entered = np.floor(time * rng.random(200)) - 0.25 if entry else None
    found = FollowUp.of(event, time, entered)
    at = np.arange(-1, 20, 0.25)
    for t, n in zip(at, found.at_risk(at), strict=True):
        assert n == ((time >= t) & (True if entered is None else entered < t)).sum()
    assert found.n_rows == 200
    events, times = found.rows()
    assert sorted(zip(times, events, strict=True)) == sorted(zip(time, event, strict=True))


def test_leaves_count_their_rows(fitted):
    tree, X, y = fitted
    leaf = tree.apply(X)
    at = np.linspace(0, y["months"].max(), 7)
    for node, follow_up in zip(tree.tree_.leaves, tree.leaves_.follow_up, strict=True):
        own = y[leaf == node]
        np.testing.assert_array_equal(follow_up.at_risk(at), numbers_at_risk(own, at))


def test_weights_do_not_change_the_counts(fitted):
    _, X, y = fitted
    weighted = OptimalSurvivalTree(max_depth=2).fit(X, y, sample_weight=1 + np.arange(len(X)) % 3)
    leaf = weighted.apply(X)
    for node, follow_up in zip(weighted.tree_.leaves, weighted.leaves_.follow_up, strict=True):
        np.testing.assert_array_equal(follow_up.at_risk([0.0]), [(leaf == node).sum()])


def test_restricted_means_have_greenwoods_error():
    rng = np.random.default_rng(1)
    y = rng.random(80) < 0.7, rng.integers(1, 40, 80) / 4
    curve = kaplan_meier(y)
    tau = 7.1
    mean, error = curve.restricted_mean(tau)
    assert mean == pytest.approx(rmst(curve.x, curve.y, tau), rel=1e-14)
    variance = 0.0
    for t in curve.x[curve.x <= tau]:
        d = ((y[1] == t) & y[0]).sum()
        n = (y[1] >= t).sum()
        grid = np.concatenate([[t], curve.x[(curve.x > t) & (curve.x < tau)], [tau]])
        area = (np.diff(grid) * curve(grid[:-1])).sum()
        variance += area**2 * d / (n * (n - d)) if n > d else 0.0
    assert error == pytest.approx(variance**0.5, rel=1e-12)


def test_where_the_curve_ends_at_zero_the_error_is_finite():
    mean, error = kaplan_meier(([True, True, True], [1.0, 2.0, 3.0])).restricted_mean(3.0)
    assert mean == pytest.approx(2.0) and 0 < error < 1


def test_the_error_of_the_restricted_mean_is_that_of_repeated_samples():
    rng = np.random.default_rng(2)
    means, errors = [], []
    for _ in range(400):
        lived, followed = rng.exponential(2.0, 60), rng.uniform(1.0, 8.0, 60)
        y = lived <= followed, np.minimum(lived, followed)
        mean, error = kaplan_meier(y).restricted_mean(3.0)
        means.append(mean)
        errors.append(error)
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.1)


def test_where_nothing_has_happened_the_table_has_no_interval():
    X = np.array([0, 0, 0, 1, 1, 1])[:, None]
    y = np.arange(6) < 3, np.arange(1.0, 7.0)
    tree = OptimalSurvivalTree(max_depth=1, min_events_leaf=None, prior=0).fit(X, y)
    table = tree.leaf_table(times=[0.5, 2.0])
    early = [[f"kaplan_meier_0.5_{end}"] for end in ("lower", "upper")]
    assert all(table[names].isna().all(axis=None) for names in early)
    assert table["kaplan_meier_2_lower"].isna().tolist() == [True, False]
    assert table["rmst_error"].isna().tolist() == [True, False]


def test_the_observed_curve_of_the_table_ends_with_the_follow_up_of_its_leaf():
    X = np.array([0, 0, 0, 1, 1, 1])[:, None]
    y = np.arange(6) != 2, np.arange(1.0, 7.0)
    tree = OptimalSurvivalTree(max_depth=1, min_events_leaf=None, prior=0).fit(X, y)
    assert [leaf.times[-1] for leaf in tree.leaves_.follow_up] == [6, 3]
    table = tree.leaf_table(times=[3.0, 3.1, 9.0])
    for end in ("", "_lower", "_upper"):
        after = table[[f"kaplan_meier_3.1{end}", f"kaplan_meier_9{end}"]]
        assert after.iloc[1].isna().all() and not np.isnan(table[f"kaplan_meier_3{end}"][1])
        assert not np.isnan(table[f"kaplan_meier_9{end}"][0])  # no row of this leaf survived


def test_the_table_compares_every_leaf_with_the_others(fitted):
    tree, X, y = fitted
    leaf, table = tree.apply(X), tree.leaf_table(times=[2.0], confidence=0.9)
    tau = min(y["months"][leaf == node].max() for node in tree.tree_.leaves)
    for k, node in enumerate(tree.tree_.leaves.tolist()):
        curve = kaplan_meier(y[leaf == node])
        lower, upper = curve.confidence_interval(0.9)
        place = np.searchsorted(curve.x, 2.0, side="right") - 1
        found = [table[f"kaplan_meier_2{end}"][k] for end in ("", "_lower", "_upper")]
        np.testing.assert_allclose(found, [curve.y[place], lower[place], upper[place]], rtol=1e-12)
        p = logrank_test(y, leaf == node).p_value
        assert table["logrank_p"][k] == pytest.approx(p, rel=1e-9)
        assert table["tau"][k] == tau
        expected = curve.restricted_mean(tau)
        np.testing.assert_allclose([table["rmst"][k], table["rmst_error"][k]], expected, rtol=1e-12)
        statistic = tree.leaf_statistics_[k]
        d, ratio = statistic.n_events, statistic.n_events / statistic.hazard
        assert table["hazard_ratio"][k] == pytest.approx(ratio, rel=1e-12)
        low, high = (
            table[f"hazard_ratio_{end}"][k] * statistic.hazard for end in ("lower", "upper")
        )
        # Garwood: at the limits, so few or so many events have a probability of 5%.
        assert poisson.cdf(d, high) == pytest.approx(0.05, rel=1e-6)
        assert low == 0 if d == 0 else poisson.sf(d - 1, low) == pytest.approx(0.05, rel=1e-6)


def test_soft_leaves_tell_the_same_of_their_rows():
    X, y = sample()
    tree = SoftSurvivalTree(depth=2, n_restarts=1, split_l2=0.0, random_state=0).fit(X, y)
    leaf, table = tree.apply(X), tree.leaf_table(times=[2.0])
    curves = tree.leaves_.typical_survival(np.array([2.0]))[:, 0]
    np.testing.assert_array_equal(np.asarray(table["survival_2"]), curves)
    for k, node in enumerate(tree.tree_.leaves.tolist()):
        own = leaf == node
        assert table["n_events"][k] == y["dead"][own].sum()
        if not own.any():
            assert np.isnan(table["hazard_ratio"][k]) and np.isnan(table["logrank_p"][k])
            continue
        assert table["kaplan_meier_2"][k] == pytest.approx(kaplan_meier(y[own])(2.0), rel=1e-12)
        linear = tree.leaves_.locate(np.full(own.sum(), k), tree.encoder_.transform(X)[own]).linear
        assert tree.leaves_.typical_linear[k] == pytest.approx(linear.mean(), rel=1e-12)


def test_quantiles_are_values_of_the_rows():
    rng = np.random.default_rng(3)
    values, weight = rng.normal(size=101), rng.integers(1, 5, 101)
    found = weighted_quantiles(values, weight.astype(float))
    expected = np.quantile(values.repeat(weight), LEVELS, method="inverted_cdf")
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(
        weighted_quantiles(values, None), np.quantile(values, LEVELS, method="inverted_cdf")
    )
