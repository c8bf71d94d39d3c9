"""Fits of soft trees: known trees, even leaves, units, awkward data, groups, penalties."""

import warnings

import numpy as np
import pandas as pd
import pytest
from pace import slow_but
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_validate

from bristlecone import SoftSurvivalTree
from bristlecone._objectives.parity import CurveParity
from bristlecone._soft.models import MODELS
from bristlecone._soft.training.fairness import quadrature
from bristlecone.exceptions import BristleconeWarning, EmptyLeafWarning, FitConvergenceWarning
from bristlecone.metrics import concordance_index_td
from bristlecone.trust import verify

LEAVES = sorted(MODELS)


def simulated(leaf, n=1500, seed=0):
    """Rows of a tree of depth one with leaves of the given model, and a random group."""
    random = np.random.default_rng(seed)
    X = random.uniform(-1, 1, size=(n, 4))
    left = 3 * X[:, 0] + 2 * X[:, 1] > 0.2
    predictor = np.where(left, 0.4 + 1.0 * X[:, 2], -0.6 - 1.2 * X[:, 2])
    alpha = np.where(left, 2.5, 1.2)
    share = random.random(n)
    z = (
        np.log(-np.log(share))
        if leaf in ("weibull", "exponential", "spline-ph")
        else np.log(1 / share - 1)
    )
    if leaf == "exponential":
        lived = np.exp(z + predictor)
    elif leaf.startswith("spline"):
        # z = s(y) − predictor, with a bend that no power of time has
        y = np.linspace(-8, 8, 4001)
        bend = 1.6 * y - 0.8 * np.logaddexp(0, 2 * y) / 2
        lived = np.exp(np.interp(z + predictor, bend, y))
    else:
        lived = np.exp(z / alpha + predictor)
    followed = random.exponential(6.0, size=n)
    time = np.minimum(lived, followed)
    group = random.random(n) < 0.5
    return X, (lived <= followed, time), group


@pytest.mark.slow
@pytest.mark.parametrize("solver", ["nodec", "joint"])
@pytest.mark.parametrize("fair", [False, True])
@pytest.mark.parametrize("l1", [0.0, 0.01])
def test_the_objective_never_rises_between_accepted_steps(solver, fair, l1):
    X, y, group = simulated("weibull", n=100)
    groups = {"sensitive_features": group} if fair else {}
    for init in ("kmeans", "random"):
        model = SoftSurvivalTree(
            solver=solver,
            l1=l1,
            n_restarts=2,
            random_state=0,
            solver_options={"init": init, "tol": 1e-3},
            min_leaf_share=0.0,
            fairness=CurveParity(0.001) if fair else None,
        ).fit(X, y, **groups)
        trace = np.array([point.objective for point in model.trace_])
        assert len(trace) > 3 and (np.diff(trace) <= 0).all()
        assert trace[-1] == pytest.approx(model.objective_value_, rel=1e-9)
        assert model.objective_value_ == model.restart_objectives_.min()


@pytest.mark.parametrize("solver", ["nodec", "joint"])
@pytest.mark.parametrize("leaf", slow_but({"weibull"}, LEAVES))
def test_a_known_tree_is_recovered(leaf, solver):
    X, y, _ = simulated(leaf)
    model = SoftSurvivalTree(
        depth=1,
        leaf=leaf,
        solver=solver,
        l2=0.001,
        split_l2=1e-5,
        solver_options={"init": "random"},
        n_restarts=4,
        random_state=0,
    ).fit(X, y)
    left = 3 * X[:, 0] + 2 * X[:, 1] > 0.2
    agree = (model.apply(X) == model.tree_.leaves[0]) == left
    assert max(agree.mean(), 1 - agree.mean()) > 0.93
    weights = model.coef_[0] / np.linalg.norm(model.coef_[0])
    assert abs(weights @ np.array([3, 2, 0, 0])) / np.sqrt(13) > 0.97
    # The leaf with the rows of the true left leaf may be first or last.
    first = 0 if agree.mean() > 0.5 else 1
    sign = -1 if leaf in ("exponential", "spline-ph", "spline-po") else 1
    effects = sign * model.leaf_coef_[[first, 1 - first], 2]
    np.testing.assert_allclose(effects, [1.0, -1.2], atol=0.35)
    if "alpha" in model.leaf_parameters_:
        found = model.leaf_parameters_["alpha"][[first, 1 - first]]
        np.testing.assert_allclose(found, [2.5, 1.2], rtol=0.15)


# Shares of leaves


def one_line(n=400, seed=0):
    """Rows whose log time is linear in the features, so no split is needed."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n, 4))
    time = np.exp(X[:, 0] + 0.5 * X[:, 1] + 0.7 * random.logistic(size=n))
    return X, (random.random(n) < 0.7, time)


PAPER = {"pooling": None, "balance": 0.0}


@pytest.mark.slow
def test_leaves_hold_their_share_where_the_papers_objective_empties_them():
    X, y = one_line()
    model = SoftSurvivalTree(random_state=0).fit(X, y)
    assert model.leaf_shares_.min() >= 0.05 and model.leaf_shares_.sum() == pytest.approx(1)
    assert 3 < model.n_effective_leaves_ <= 4
    with pytest.warns(EmptyLeafWarning, match=r"of 4 leaves .*use depth=1"):
        bare = SoftSurvivalTree(random_state=0, **PAPER).fit(X, y)
    assert bare.leaf_shares_.min() == 0 and bare.n_effective_leaves_ < 2
    SoftSurvivalTree(n_restarts=1, min_leaf_share=0.0, random_state=0, **PAPER).fit(X, y)


def test_shares_are_those_of_the_weights():
    X, y = one_line(n=150)
    weight = np.random.default_rng(1).uniform(0.1, 2.0, size=150)
    model = SoftSurvivalTree(n_restarts=2, random_state=0, min_leaf_share=0.0)
    model.fit(X, y, sample_weight=weight)
    leaf = np.searchsorted(model.tree_.leaves, model.apply(X))
    expected = np.bincount(leaf, weight, 4) / weight.sum()
    np.testing.assert_allclose(model.leaf_shares_, expected)
    held = expected[expected > 0]
    assert model.n_effective_leaves_ == pytest.approx(np.exp(-(held * np.log(held)).sum()))


# Reproducibility and units


def fitted(X, y, *, sensitive_features=None, **parameters):
    few = {"n_restarts": 2, "random_state": 0, "min_leaf_share": 0.0}
    model = SoftSurvivalTree(**{**few, **parameters})
    return model.fit(X, y, sensitive_features=sensitive_features)


@pytest.mark.slow
def test_restarts_reproduce_and_do_not_depend_on_the_processes():
    X, y, _ = simulated("weibull", n=200)
    one, again, other = (fitted(X, y, n_restarts=3, n_jobs=jobs) for jobs in (None, None, 2))
    for model in (again, other):
        np.testing.assert_array_equal(model.coef_, one.coef_)
        np.testing.assert_array_equal(model.restart_objectives_, one.restart_objectives_)
    assert len(set(one.restart_objectives_)) > 1
    least = min(fitted(X, y, n_restarts=k).objective_value_ for k in (1, 2))
    assert one.objective_value_ <= least


@pytest.mark.parametrize(
    ("leaf", "unit"),
    [
        ("log-logistic", 1e-6),
        ("weibull", 1e6),
        *(pytest.param(leaf, 1e6, marks=pytest.mark.slow) for leaf in LEAVES if leaf != "weibull"),
    ],
)
def test_the_unit_of_time_does_not_matter(leaf, unit):
    X, (event, time), _ = simulated("weibull", n=200)
    one, other = (
        fitted(
            X,
            (event, scale * time),
            leaf=leaf,
            l2=0.1,
            solver_options={"tol": 1e-8, "max_iter": 5000},
            n_restarts=1,
        )
        for scale in (1.0, unit)
    )
    np.testing.assert_array_equal(one.apply(X), other.apply(X))
    np.testing.assert_allclose(unit * one.predict_median(X), other.predict_median(X), rtol=2e-4)
    shift = event.mean() * np.log(unit)
    assert other.objective_value_ == pytest.approx(one.objective_value_ + shift, abs=1e-8)


@pytest.mark.slow
def test_the_units_of_the_features_do_not_matter_and_coefficients_are_in_them():
    X, y, _ = simulated("weibull", n=200)
    unit, origin = np.array([1e6, 1e-6, 1.0, 37.0]), np.array([0.0, 0.0, 1e3, -5.0])
    Z = X * unit + origin
    one, other = (
        fitted(W, y, solver_options={"tol": 1e-8, "max_iter": 5000}, n_restarts=1) for W in (X, Z)
    )
    np.testing.assert_array_equal(one.apply(X), other.apply(Z))
    np.testing.assert_allclose(other.coef_ * unit, one.coef_, rtol=1e-3, atol=1e-4)
    logit = Z @ other.coef_.T + other.intercept_
    p = 1 / (1 + np.exp(-logit))
    np.testing.assert_allclose(other.predict_proba_branch(Z), p, rtol=1e-6)
    leaf = np.searchsorted(other.tree_.leaves, other.apply(Z))
    scale = np.exp((Z * other.leaf_coef_[leaf]).sum(axis=1) + other.leaf_intercept_[leaf])
    # The scale of the log-logistic distribution is its median.
    np.testing.assert_allclose(other.predict_median(Z), scale, rtol=1e-6)


# Awkward data


@pytest.mark.parametrize("leaf", slow_but({"weibull"}, LEAVES))
@pytest.mark.parametrize(
    "kind", ["ties", "few events", "separable", "one event time", "huge times", "constant"]
)
def test_awkward_data_give_finite_curves(leaf, kind):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 2))
    event, time = random.random(60) < 0.7, random.exponential(size=60) + 0.01
    if kind == "ties":
        time = np.ceil(2 * time)
    elif kind == "few events":
        event = np.arange(60) < 2
    elif kind == "separable":
        time = np.where(X[:, 0] > 0, 1e-3, 1e3) * (1 + 1e-3 * time)
    elif kind == "one event time":
        event, time = np.ones(60, dtype=bool), np.full(60, 3.0)
    elif kind == "huge times":
        time = time * 1e200
    elif kind == "constant":
        X = np.zeros((60, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BristleconeWarning)
        model = fitted(
            X,
            (event, time),
            leaf=leaf,
            l2=0.0,
            split_l2=0.0,
            solver_options={"max_iter": 200},
            n_restarts=1,
        )
    assert np.isfinite(model.objective_value_)
    at = np.array([0.0, time.min() / 10, *np.quantile(time, [0.1, 0.5, 0.9]), 10 * time.max()])
    survival = model.predict_survival_function(X, times=at)
    assert np.isfinite(survival).all() and (np.diff(survival, axis=1) <= 0).all()
    assert (survival[:, 0] == 1).all()
    assert np.isfinite(model.predict(X)).all()
    assert not np.isnan(model.predict_quantile(X, [0.01, 0.99])).any()
    assert np.isfinite(model.predict_rmst(X)).all()
    for table in (model.coef_, model.leaf_coef_, model.leaf_intercept_):
        assert np.isfinite(table).all()


@pytest.mark.parametrize(
    "values",
    slow_but([(-1.7e308, 1.7e308)], [(0.0, 5e-324), (-1.7e308, 1.7e308), (1e-310, 3e-310)]),
)
def test_columns_of_extreme_numbers_count_like_others(values):
    random = np.random.default_rng(0)
    X, y, _ = simulated("weibull", n=100)
    low = random.random(100) < 0.5
    plain, extreme = (np.column_stack([X, np.where(low, *pair)]) for pair in ((0.0, 1.0), values))
    one, other = fitted(plain, y), fitted(extreme, y)
    np.testing.assert_array_equal(other.predict(extreme), one.predict(plain))
    at_zero = -values[0] / (values[1] / 2 - values[0] / 2) / 2 if values[0] else 0.0
    np.testing.assert_allclose(
        other.intercept_, one.intercept_ + one.coef_[:, -1] * at_zero, rtol=1e-9
    )
    far = other.predict_proba_leaf(np.where(np.arange(5) == 4, 1e308, extreme[:3]))
    assert np.isfinite(far).all()
    assert not np.isnan(other.leaf_coef_).any() and np.isfinite(other.leaf_intercept_).all()


def test_zeros_may_have_either_sign():
    X, y = simulated("weibull", 60)[:2]
    weight = np.ones(len(X))
    weight[0] = 0.0
    flags = np.where(X[:, 0] > 0, 1.0, 0.0)
    flags[0] = -0.0
    X = pd.DataFrame({"flag": flags.astype(object), "x": X[:, 2]})
    tree = SoftSurvivalTree(depth=1, n_restarts=1, random_state=0).fit(X, y, weight)
    assert verify(tree, X, y, sample_weight=weight).ok


def test_times_of_zero_become_half_the_least_positive_one():
    X, (event, time), _ = simulated("weibull", n=100)
    time[:3] = 0.0
    with pytest.warns(BristleconeWarning, match="3 of the times are 0"):
        model = fitted(X, (event, time))
    time[:3] = time[3:].min() / 2
    np.testing.assert_array_equal(fitted(X, (event, time)).coef_, model.coef_)
    with pytest.raises(ValueError, match="every time is 0"):
        fitted(X, (event, np.zeros(100)))


def test_a_fit_that_does_not_converge_names_the_parts():
    X, y, _ = simulated("weibull", n=200)
    with pytest.warns(FitConvergenceWarning, match=r"max_iter=2 .*split 0 .*leaf 2"):
        model = fitted(X, y, solver="joint", solver_options={"max_iter": 2}, n_restarts=1)
    assert not model.converged_
    with pytest.warns(FitConvergenceWarning, match=r"gradient.* in leaf \d"):
        fitted(X, y, depth=0, solver_options={"max_iter": 1, "tol": 1e-12})


# Sparsity


def test_lasso_leaves_features_out_and_counts_those_used():
    random = np.random.default_rng(0)
    X, y, _ = simulated("weibull", n=600)
    frame = pd.DataFrame(X, columns=list("abcd"))
    for k in range(6):
        frame[f"noise{k}"] = random.normal(size=600)
    counts = []
    for l1 in (0.0, 0.003, 0.01, 10.0):
        model = fitted(frame, y, depth=1, split_l2=1e-5, l1=l1, solver_options={"init": "random"})
        counts.append(model.n_features_used_)
        used = (model.coef_ != 0).any(axis=0)
        assert model.features_used_ == [n for n, u in zip(frame, used, strict=True) if u]
    assert counts[0] == 10 and counts[-1] == 0
    assert sorted(counts, reverse=True) == counts and counts[2] < counts[0]
    sparse = fitted(frame, y, depth=1, split_l2=1e-5, l1=0.01, solver_options={"init": "random"})
    assert set(sparse.features_used_) >= {"a", "b"}


# Fairness


@pytest.mark.slow
def test_a_larger_penalty_brings_the_groups_together():
    random = np.random.default_rng(0)
    X, (event, time), group = simulated("weibull", n=150)
    time = np.where(group, 2.0, 1.0) * time
    X[:, 3] = group + 0.3 * random.normal(size=150)
    pairs = group.sum() * (~group).sum()
    for solver in ("nodec", "joint"):
        distance = [
            fitted(
                X,
                (event, time),
                solver=solver,
                sensitive_features=group,
                fairness=CurveParity(rho / pairs),
                n_restarts=1,
                solver_options={"tol": 1e-3},
            ).fairness_distance_
            for rho in (0, 1, 100)
        ]
        assert distance[0] > distance[1] > distance[2]
        assert distance[2] < 0.3 * distance[0]


@pytest.mark.slow
def test_the_group_may_be_a_column_which_stays_a_feature():
    X, y, group = simulated("weibull", n=200)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(
        sex=np.where(group, "male", "female"), e=X[:, 0] ** 2
    )
    pairs = group.sum() * (~group).sum()
    parity = CurveParity(5 / pairs, sensitive_feature="sex")
    by_name = fitted(frame, y, fairness=parity)
    by_array = fitted(frame, y, sensitive_features=group, fairness=CurveParity(5 / pairs))
    np.testing.assert_array_equal(by_name.coef_, by_array.coef_)
    assert by_name.feature_names_in_.tolist() == ["a", "b", "c", "d", "sex", "e"]
    report = by_name.compare_groups(frame, frame["sex"])
    assert report["distance"] == pytest.approx(by_name.fairness_distance_, rel=1e-12)
    assert (report["gini"], report["gini_weighted"]) == by_name.leaf_gini_
    with pytest.raises(ValueError, match="X and sample_weight have the same index in another"):
        by_name.compare_groups(frame, frame["sex"], frame["a"].abs()[::-1])
    times, step = quadrature(by_name.unique_times_)
    S = by_name.predict_survival_function(frame, times=times)
    total = sum(
        step @ (S[i] - S[j]) ** 2 for i in np.flatnonzero(group) for j in np.flatnonzero(~group)
    )
    assert report["distance"] == pytest.approx(total / pairs, rel=1e-10)


def test_groups_are_compared_without_the_rows_of_weight_zero():
    X, y, group = simulated("weibull", n=50)
    tree = fitted(X, y, depth=1, n_restarts=1)
    named = np.where(group, "male", "female").astype(object)
    weight = np.where(np.arange(50) < 5, 0.0, 1.0)
    expected = tree.compare_groups(X[5:], group[5:])
    assert tree.compare_groups(X, group, weight) == expected
    # No other row is in their group.
    named[:5] = "unknown"
    assert tree.compare_groups(X, named, weight) == expected
    with pytest.raises(ValueError, match="sensitive_features has one value"):
        tree.compare_groups(X, group, group * 1.0)


def test_bad_groups_raise():
    X, y, group = simulated("weibull", n=50)
    frame = pd.DataFrame(X, columns=list("abcd"))
    fair = {"fairness": CurveParity(0.0)}
    named = {"fairness": CurveParity(0.0, sensitive_feature="sex")}
    for X_or_frame, message, arguments in (
        (X, "fairness needs groups", {"fairness": CurveParity(1.0)}),
        (X, "sensitive_features needs fairness", {"sensitive_features": group}),
        (
            X,
            "sensitive_features has one value",
            {**fair, "sensitive_features": np.zeros(50, dtype=int)},
        ),
        (
            X,
            "X has 50 rows but sensitive_features has 10",
            {**fair, "sensitive_features": group[:10]},
        ),
        (X, "fairness.sensitive_feature='sex' is not a column of X", named),
        (frame, "fairness.sensitive_feature='sex' is not a column of X", named),
        (frame.assign(sex="f"), "'sex' has one value", named),
        (X, "fairness must be None or CurveParity", {"fairness": 0.1}),
    ):
        with pytest.raises(ValueError, match=message):
            fitted(X_or_frame, y, **arguments)


@pytest.mark.slow
def test_groups_are_cut_with_the_rows_in_cross_validation():
    X, y, group = simulated("weibull", n=120)
    outcomes = pd.DataFrame({"event": y[0], "time": y[1]})
    pairs = group.sum() * (~group).sum()
    model = SoftSurvivalTree(depth=1, n_restarts=1, random_state=0, fairness=CurveParity(1 / pairs))
    folds = KFold(3, shuffle=True, random_state=0)
    found = cross_validate(
        model,
        X,
        outcomes,
        cv=folds,
        params={"sensitive_features": group},
        error_score="raise",
        return_estimator=True,
    )
    for (rows, _), fold in zip(folds.split(X), found["estimator"], strict=True):
        alone = clone(model).fit(X[rows], outcomes.iloc[rows], sensitive_features=group[rows])
        assert fold.fairness_distance_ == alone.fairness_distance_


# Quality of the predictions


def test_leaves_with_covariates_rank_better_than_chance_on_new_rows():
    X, y, _ = simulated("log-logistic", n=800)
    Z, (event, time), _ = simulated("log-logistic", n=400, seed=1)
    model = fitted(X, y, depth=1)
    at = np.unique(time[event])
    survival = model.predict_survival_function(Z, times=at)
    assert concordance_index_td(event, time, survival, at).cindex > 0.7
