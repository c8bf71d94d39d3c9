"""Estimated rewards: cross-fitting, scores of censored outcomes, overlap, and bad input."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from pace import slow_but
from sklearn.base import BaseEstimator
from sklearn.dummy import DummyClassifier, DummyRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sksurv.linear_model import CoxPHSurvivalAnalysis

from bristlecone import PolicyTree, SoftSurvivalTree, outcome
from bristlecone._rewards.censored import Estimand, Lives, residuals
from bristlecone.curves import kaplan_meier
from bristlecone.exceptions import OverlapWarning
from bristlecone.trust import verify

TAU = 5.0


def observed(n, seed):
    """Rows whose treatment depends on x0, with expected outcomes for three treatments."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    odds = np.exp(np.column_stack([0 * X[:, 0], 0.8 * X[:, 0], -0.5 * X[:, 1]]))
    share = odds / odds.sum(axis=1, keepdims=True)
    arm = (rng.random(n)[:, None] > share.cumsum(axis=1)).sum(axis=1)
    return rng, X, share, arm


def study(n=2000, seed=0):
    """Confounded numeric outcomes."""
    rng, X, share, arm = observed(n, seed)
    mean = X[:, [0]] + np.column_stack([0 * X[:, 0], 1.0 * (X[:, 1] > 0), 0.4 + 0 * X[:, 0]])
    return X, mean[np.arange(n), arm] + rng.normal(size=n), arm, mean, share


def trial(n=2000, seed=0):
    """Confounded lifetimes with more censoring of short ones, with their means and survival."""
    rng, X, _, arm = observed(n, seed)
    effect = np.column_stack([0 * X[:, 0], -0.5 + 1.0 * (X[:, 1] > 0), -0.3 + 0 * X[:, 0]])
    rate = 0.2 * np.exp(0.7 * X[:, [0]] + effect)
    lived = rng.exponential(1 / rate[np.arange(n), arm])
    left = rng.exponential(1 / (0.1 * np.exp(0.8 * X[:, 0] - 0.3 * (arm == 1))))
    y = outcome(lived <= left, np.minimum(lived, left))
    return X, y, arm, (1 - np.exp(-rate * TAU)) / rate, np.exp(-rate * TAU)


def off(rewards, true):
    """Errors of the mean rewards, in units of their standard errors."""
    difference = rewards - true
    return difference.mean(axis=0) / (difference.std(axis=0) / np.sqrt(len(true)))


def test_estimated_rewards_find_the_effects_that_a_simulation_has():
    X, y, arm, mean, share = study()
    found = PolicyTree().estimate_rewards(X, y, treatment=arm)
    assert np.abs(off(found.rewards, mean)).max() < 3
    naive = [y[arm == k].mean() - mean[:, k].mean() for k in range(3)]
    assert np.abs(naive).max() > 0.2 > 0.15 > np.abs((found.rewards - mean).mean(axis=0)).max()
    np.testing.assert_allclose(found.propensity.sum(axis=1), 1.0, rtol=1e-12)
    assert np.abs(found.propensity - share).mean() < 0.05
    assert np.abs(found.predicted_outcomes - mean).mean() < 0.2
    assert not found.lacks_overlap.any()


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrong",
    [
        {"outcome_model": DummyRegressor()},
        # The means of every treatment are linear in these columns.
        {"propensity_model": DummyClassifier(), "outcome_model": LinearRegression()},
    ],
    ids=["outcomes", "propensity"],
)
def test_one_model_may_be_wrong_but_not_both(wrong):
    X, y, arm, mean, _ = study()
    X = np.column_stack([X, X[:, 1] > 0])
    found = PolicyTree(**wrong).estimate_rewards(X, y, treatment=arm).rewards
    assert np.abs(off(found, mean)).max() < 3
    both = PolicyTree(outcome_model=DummyRegressor(), propensity_model=DummyClassifier())
    found = both.estimate_rewards(X, y, treatment=arm).rewards
    assert np.abs(off(found, mean)).max() > 5


def plainly(model_of, X, target, fold, rows_of, predict):
    """Cross-fitted predictions, one fold after the other."""
    found = None
    for k in range(fold.max() + 1):
        rows = (fold != k) & rows_of
        values = predict(model_of().fit(X[rows], target[rows]), X[fold == k])
        found = np.zeros((len(X), *values.shape[1:])) if found is None else found
        found[fold == k] = values
    return found


def test_cross_fitting_is_what_a_loop_over_the_folds_does(monkeypatch):
    from bristlecone._rewards import nuisance

    X, y, arm, _, _ = study(200)
    folds = []
    original = nuisance.folds_of

    def kept(*given):
        folds.append(original(*given))
        return folds[-1]

    monkeypatch.setattr(nuisance, "folds_of", kept)
    tree = PolicyTree(outcome_model=LinearRegression(), propensity_model=LogisticRegression())
    found = tree.estimate_rewards(X, y, treatment=arm)
    ((fold, _),) = folds
    assert np.bincount(fold).min() > 30
    everyone = np.ones(200, dtype=bool)
    share = plainly(
        LogisticRegression, X, arm, fold, everyone, lambda model, Z: model.predict_proba(Z)
    )
    np.testing.assert_allclose(found.propensity, share, rtol=1e-6)
    rewards = np.zeros((200, 3))
    for k in range(3):
        predicted = plainly(
            LinearRegression, X, y, fold, arm == k, lambda model, Z: model.predict(Z)
        )
        rewards[:, k] = predicted + (arm == k) * (y - predicted) / share[:, k]
    np.testing.assert_allclose(found.rewards, rewards, rtol=1e-6, atol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("horizon", [None, 4.0])
def test_rewards_do_not_depend_on_the_order_or_the_container_of_the_rows(horizon):
    X, y, arm, _, _ = trial(120) if horizon else study(120)
    tree = PolicyTree(horizon=horizon)
    found = tree.estimate_rewards(X, y, treatment=arm).rewards
    order = np.random.default_rng(1).permutation(120)
    again = tree.estimate_rewards(X[order], y[order], treatment=arm[order]).rewards
    np.testing.assert_allclose(again, found[order], rtol=1e-6, atol=1e-7)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    np.testing.assert_allclose(tree.estimate_rewards(frame, y, treatment=arm).rewards, found)
    lazy = pl.DataFrame(frame.to_dict("list"))
    treatment = pl.Series(arm)
    np.testing.assert_allclose(tree.estimate_rewards(lazy, y, treatment=treatment).rewards, found)


@pytest.mark.parametrize("unit", slow_but({2.0**1000}, [1.0, 2.0**-300, 2.0**300, 2.0**1000]))
def test_outcomes_in_any_unit_are_predicted_equally_well(unit):
    X, y, arm, mean, _ = study(500)
    found = PolicyTree(reward="direct").estimate_rewards(X, y * unit, treatment=arm)
    assert np.abs(found.rewards / unit - mean).mean() < 0.32


@pytest.mark.slow
@pytest.mark.parametrize("horizon", [None, 4.0])
def test_rows_of_weight_zero_are_as_if_they_were_not_there(horizon):
    X, y, arm, _, _ = trial(200) if horizon else study(200)
    weight = np.repeat([1.0, 0.0], 100)
    tree = PolicyTree(horizon=horizon)
    found = tree.estimate_rewards(X, y, weight, treatment=arm)
    fewer = tree.estimate_rewards(X[:100], y[:100], np.ones(100), treatment=arm[:100])
    np.testing.assert_array_equal(found.rewards[:100], fewer.rewards)
    assert np.isnan(found.rewards[100:]).all() and (found.treatment[100:] == -1).all()


def test_classifiers_of_zero_and_one_predict_their_share():
    X, y, arm, _, _ = study(400)
    event = (y > 0).astype(float)
    tree = PolicyTree(reward="direct", outcome_model=LogisticRegression())
    found = tree.estimate_rewards(X, event, treatment=arm).rewards
    assert 0 < found.min() < 0.3 and 0.7 < found.max() < 1


def slowly(lives, grid, survival, uncensored, estimand, horizon):
    """The residual of every row, in loops over the times, by its definition."""
    found = []
    for event, time, S, G in zip(lives.event, lives.time, survival, uncensored, strict=True):
        total = []
        for t in range(len(grid)):
            martingale = 0.0
            for u in range(t + 1):
                hazard = 1 - S[u] / (S[u - 1] if u else 1.0)
                surprise = float(event and time == grid[u]) - float(time >= grid[u]) * hazard
                martingale += surprise / (S[u] * G[u])
            total.append(-S[t] * martingale)
        width = np.diff(np.append(grid, horizon))
        found.append(np.dot(total, width) if estimand == "restricted-mean" else total[-1])
    return np.array(found)


@pytest.mark.parametrize("estimand", ["restricted-mean", "survival"])
def test_residuals_are_those_of_the_definition(estimand):
    rng = np.random.default_rng(0)
    time, event = rng.integers(1, 9, 40) / 2.0, rng.random(40) < 0.6
    lives = Lives.until(event, time, 3.25)
    of = Estimand.of(lives, estimand)
    m = len(of.grid)
    survival = np.cumprod(rng.uniform(0.6, 0.98, (40, m)), axis=1)
    uncensored = np.cumprod(rng.uniform(0.8, 1.0, (40, m)), axis=1)
    found = residuals(lives, of, survival, uncensored)
    expected = slowly(lives, of.grid, survival, uncensored, estimand, 3.25)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    # The estimand of a step curve: its area or its value.
    area = [0.5 * 1.0]
    steps = np.concatenate([[0.0], of.grid, [3.25]])
    heights = np.column_stack([np.ones(40), survival])
    area = (heights * np.diff(steps)).sum(axis=1)
    value = area if estimand == "restricted-mean" else survival[:, -1]
    np.testing.assert_allclose(of.of_curves(survival), value, rtol=1e-12)


@pytest.mark.parametrize("estimand", ["restricted-mean", "survival"])
def test_without_covariates_the_scores_are_those_of_kaplan_and_meier(estimand):
    # With one treatment and Kaplan-Meier curves for all rows, the mean of the scores is the
    # Kaplan-Meier estimate itself, because residuals sum to zero.
    rng = np.random.default_rng(3)
    time, event = rng.integers(1, 12, 200).astype(float), rng.random(200) < 0.5
    lives = Lives.until(event, time, 8.0)
    of = Estimand.of(lives, estimand)
    curve = kaplan_meier((event, time))
    # At equal times, events come before censoring.
    at_risk = np.array([(time > t).sum() + (~event & (time == t)).sum() for t in range(12)])
    left = np.cumprod([1 - (~event & (time == t)).sum() / max(at_risk[t], 1) for t in range(12)])
    before = np.array([left[int(t) - 1] for t in of.grid])
    survival = np.tile(curve(of.grid), (200, 1))
    found = residuals(lives, of, survival, np.tile(before, (200, 1)))
    assert abs(found.mean()) < 1e-12 < np.abs(found).max()


@pytest.mark.slow
@pytest.mark.parametrize(("estimand", "place"), [("restricted-mean", 3), ("survival", 4)])
def test_scores_of_survival_find_the_effects_that_a_simulation_has(estimand, place):
    X, y, arm, *true = trial()
    true = true[place - 3]
    found = PolicyTree(horizon=TAU, estimand=estimand).estimate_rewards(X, y, treatment=arm)
    assert np.abs(off(found.rewards, true)).max() < 3
    naive = []
    for k in range(3):
        curve = kaplan_meier(y[arm == k])
        value = curve.restricted_mean(TAU)[0] if place == 3 else curve(TAU)
        naive.append(value - true[:, k].mean())
    error = np.abs((found.rewards - true).mean(axis=0)).max()
    assert np.abs(naive).max() > 2 * error
    assert found.uncensored.min() > 0 and found.uncensored.max() <= 1


@pytest.mark.slow
@pytest.mark.parametrize("reward", ["direct", "inverse-propensity"])
def test_each_part_of_the_scores_alone_is_an_estimate_too(reward):
    X, y, arm, true, _ = trial(4000, seed=1)
    tree = PolicyTree(horizon=TAU, reward=reward)
    found = tree.estimate_rewards(X, y, treatment=arm).rewards
    naive = kaplan_meier(y[arm == 1]).restricted_mean(TAU)[0] - true[:, 1].mean()
    assert np.abs((found - true).mean(axis=0)).max() < 0.75 * abs(naive)
    if reward == "inverse-propensity":
        other = np.arange(3) != arm[:, None]
        assert not found[other].any() and (found[y["time"] >= TAU].max(axis=1) > TAU).all()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::bristlecone.exceptions.OverlapWarning")
def test_a_survival_model_of_the_users_own_predicts_the_curves():
    X, y, arm, true, _ = trial(1000)
    own = PolicyTree(horizon=TAU, outcome_model=CoxPHSurvivalAnalysis(alpha=0.1))
    found = own.estimate_rewards(X, y, treatment=arm)
    assert np.abs(off(found.rewards, true)).max() < 3
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    again = own.estimate_rewards(frame, y, treatment=arm)
    np.testing.assert_allclose(again.rewards, found.rewards, rtol=1e-6)
    with pytest.raises(ValueError, match="outcome_model must predict survival curves"):
        PolicyTree(horizon=TAU, outcome_model=LinearRegression()).fit(X, y, treatment=arm)


@pytest.mark.slow
class Exponential(BaseEstimator):
    """Predicts a hazard of 1/10 for all rows."""

    def fit(self, X, y):
        return self

    def predict_survival_function(self, X):
        return [lambda t: np.exp(-np.asarray(t) / 10)] * len(X)


@pytest.mark.parametrize(
    ("estimand", "exact"), [("restricted-mean", 10 - 10 * np.exp(-2)), ("survival", np.exp(-2))]
)
def test_smooth_curves_are_read_between_the_event_times(estimand, exact):
    rng = np.random.default_rng(0)
    X, arm = rng.random((80, 2)), rng.integers(0, 2, 80)
    y = rng.random(80) < 0.4, np.minimum(rng.exponential(30, 80), 60)
    tree = PolicyTree(reward="direct", horizon=20, estimand=estimand, outcome_model=Exponential())
    found = tree.estimate_rewards(X, y, treatment=arm, propensity=np.full(80, 0.5))
    np.testing.assert_allclose(found.rewards, exact, rtol=5e-3)


def test_curves_of_soft_trees_are_not_constant_between_the_times_of_the_rows():
    rng = np.random.default_rng(0)
    X, arm = rng.random((60, 1)), np.arange(60) % 2
    event, time = rng.random(60) < 0.7, rng.exponential(5, 60) + 0.1
    soft = SoftSurvivalTree(depth=0, leaf="exponential", l2=1e9, n_restarts=1, random_state=0)
    tree = PolicyTree(reward="direct", horizon=6.0, outcome_model=soft)
    found = tree.estimate_rewards(X, (event, time), treatment=arm, propensity=0.5).rewards
    survival = tree.set_params(estimand="survival")
    survival = survival.estimate_rewards(X, (event, time), treatment=arm, propensity=0.5).rewards
    # The curve is exponential, and so its mean follows from its end.
    np.testing.assert_allclose(found, 6.0 * (1 - survival) / -np.log(survival), rtol=5e-3)


@pytest.mark.parametrize("estimand", slow_but({"survival"}, ["restricted-mean", "survival"]))
def test_smooth_curves_give_the_rewards_of_the_definition(estimand):
    rng = np.random.default_rng(0)
    X, arm, rows = rng.random((80, 2)), rng.integers(0, 2, 80), np.arange(80)
    event, time = rng.random(80) < 0.4, np.minimum(rng.exponential(30, 80), 60)
    lives = Lives.until(event, time, 20.0)

    def rewards(reward):
        tree = PolicyTree(reward=reward, horizon=20, estimand=estimand, outcome_model=Exponential())
        return tree.estimate_rewards(X, (event, time), treatment=arm, propensity=0.5).rewards

    # The curve of the model is that of the events and that of the censoring.
    lasted = lives.time if estimand == "restricted-mean" else (~lives.event).astype(float)
    weighted = np.where(lives.censored, 0.0, lasted / np.exp(-lives.time / 10) / 0.5)
    found = rewards("inverse-propensity")
    np.testing.assert_allclose(found[rows, arm], weighted, rtol=1e-12)
    assert not found[rows, 1 - arm].any()
    grid = Estimand.of(lives, estimand, 256).grid
    curves, some = np.tile(np.exp(-grid / 10), (20, 1)), rows[:20]
    change = (rewards("doubly-robust") - rewards("direct"))[some, arm[some]]
    expected = slowly(lives.of(some), grid, curves, curves, estimand, 20.0) / 0.5
    np.testing.assert_allclose(change, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.slow
def test_an_optimal_tree_over_scores_of_survival_is_proven_and_verified():
    X, y, arm, _, _ = trial(200)
    X = pd.DataFrame(X).rename(columns=str)
    tree = PolicyTree(horizon=TAU, max_depth=2).fit(X, y, treatment=arm)
    assert tree.status_ == "optimal"
    assert verify(tree, X, y, treatment=arm).ok
    assert verify(tree, X[X.columns[::-1]], y, treatment=arm).ok
    assert tree.leaves_.events.sum() == (y["event"] & (y["time"] <= TAU)).sum()
    assert tree.score(X, y, treatment=arm) == pytest.approx(tree.policy_value_, rel=1e-9)
    assert "restricted mean survival time up to 5" in tree.describe()


def test_rows_without_overlap_are_counted_in_a_warning():
    rng, X, _, _ = observed(400, 0)
    arm = (X[:, 0] + 0.05 * rng.normal(size=400) > 0).astype(int)
    y = rng.normal(size=400)
    tree = PolicyTree(min_propensity=0.05)
    with pytest.warns(OverlapWarning, match=r"% of the rows \(\d+ of 400\) have no overlap") as one:
        found = tree.estimate_rewards(X, y, treatment=arm)
    count = int(found.lacks_overlap.sum())
    assert f"({count} of 400)" in str(one[0].message) and count > 30
    assert [warning.filename for warning in one] == [__file__]
    own = np.maximum(found.propensity[np.arange(400), arm], 0.05)
    predicted = found.predicted_outcomes[np.arange(400), arm]
    expected = predicted + (y - predicted) / own
    np.testing.assert_allclose(found.rewards[np.arange(400), arm], expected, rtol=1e-12)


def test_rows_that_never_had_a_treatment_lack_overlap_although_models_smooth_their_scores():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"site": rng.choice(list("abc"), 500), "age": rng.normal(size=500)})
    arm = (rng.random(500) < np.where(X["site"] == "a", 0.0, 0.4)).astype(int)
    y = rng.normal(size=500)
    message = r"^treatment 1 has a probability below 0.1 in \d+ rows, of which 0 had it \(\d+ exp"
    with pytest.warns(OverlapWarning, match=message):
        found = PolicyTree().estimate_rewards(X, y, treatment=arm)
    assert not found.lacks_overlap.any()
    # A rare treatment is not one without overlap.
    rare = (rng.random(500) < 0.08).astype(int)
    PolicyTree(min_propensity=0.001).estimate_rewards(X, y, treatment=rare)


def test_progress_is_reported_while_models_are_fitted():
    X, y, arm, _, _ = study(200)
    points = []
    PolicyTree(max_depth=1).fit(X, y, treatment=arm, callback=points.append)
    fits = [point for point in points if np.isinf(point.objective)]
    assert len(fits) >= 5 * (2 + 3 * 2)
    with pytest.raises(RuntimeError, match="enough"):
        PolicyTree().fit(X, y, treatment=arm, callback=lambda point: stop())


def stop():
    raise RuntimeError("enough")


@pytest.mark.parametrize(
    ("parameters", "changed", "message"),
    [
        ({}, {"treatment": np.r_[[9], np.zeros(99)]}, "treatment 9.0 has no two different rows"),
        (
            {"reward": "inverse-propensity"},
            {"treatment": np.array([None, *"ab" * 49, "a"], dtype=object)},
            "treatment is missing in row 0",
        ),
        ({"horizon": 3.0}, {}, "y is an ndarray of shape"),
        ({"outcome_model": LogisticRegression()}, {}, "^outcome_model=.*Unknown label type"),
    ],
    ids=str,
)
def test_bad_rows_are_named(parameters, changed, message):
    X, y, arm, _, _ = study(100)
    given = {"treatment": arm, **changed}
    with pytest.raises(ValueError, match=message):
        PolicyTree(**parameters).fit(X, y, **given)


def test_horizons_beyond_what_was_observed_are_refused():
    X, y, arm, _, _ = trial(200)
    last = y["time"][y["event"]].max()
    with pytest.raises(ValueError, match=r"horizon=1000 is beyond the last event of y, at"):
        PolicyTree(horizon=1000).fit(X, y, treatment=arm)
    with pytest.raises(ValueError, match="y has no event by horizon=1e-09"):
        PolicyTree(horizon=1e-9).fit(X, y, treatment=arm)
    short = y.copy()
    short["time"][arm == 2] = np.minimum(short["time"][arm == 2], last / 8)
    with pytest.raises(ValueError, match="beyond the last time of treatment 2"):
        PolicyTree(horizon=last / 4).fit(X, short, treatment=arm)
    with pytest.raises(ValueError, match="predicted_outcomes cannot be used with horizon"):
        PolicyTree(horizon=2.0).fit(X, y, treatment=arm, predicted_outcomes=np.ones((200, 3)))
    late = outcome(y["event"], y["time"], y["time"] / 2)
    with pytest.raises(ValueError, match=r"y has delayed entry, .* by PolicyTree; leave out"):
        PolicyTree(horizon=2.0).fit(X, late, treatment=arm)
    for given in (y, (y["event"], y["time"]), pd.DataFrame(y)):
        with pytest.raises(ValueError, match="needs the parameter horizon"):
            PolicyTree().fit(X, given, treatment=arm)


@pytest.mark.slow
def test_rows_that_judge_need_no_event_after_the_horizon():
    X, y, arm, _, _ = trial(400)
    given = {"propensity": np.full((400, 3), 1 / 3)}
    tree = PolicyTree(horizon=TAU, max_depth=1).fit(X, y, treatment=arm, **given)
    few = y.copy()
    few["event"] &= few["time"] < TAU / 2
    with pytest.raises(ValueError, match="beyond the last event"):
        PolicyTree(horizon=TAU).fit(X, few, treatment=arm, **given)
    assert 0 < tree.score(X, few, treatment=arm, **given) <= 1.2 * TAU


def test_a_treatment_without_rows_among_those_that_judge_is_named():
    X, y, arm, _, _ = study(200)
    tree = PolicyTree(max_depth=1).fit(X, y, treatment=arm)
    some = arm < 2
    with pytest.raises(ValueError, match="treatment 2 has no row, so its propensity cannot"):
        tree.score(X[some], y[some], treatment=arm[some])
    with pytest.raises(ValueError, match="treatment 2 has no row, so its outcome cannot"):
        tree.score(X[some], y[some], treatment=arm[some], propensity={0: 0.4, 1: 0.3, 2: 0.3})
