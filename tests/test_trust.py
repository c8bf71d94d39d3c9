"""Alternatives to splits, near-optimal trees and stability, compared with enumerations."""

import itertools
import os
import signal
import threading
from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression
from survival_rows import sample

from bristlecone import (
    CompetingRisksTree,
    CostSensitiveTreeClassifier,
    DemographicParity,
    EqualityOfOpportunity,
    EqualizedOdds,
    FairTreeClassifier,
    GreedySurvivalTree,
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    PolicyTree,
    RmstParity,
)
from bristlecone.exceptions import SearchCostWarning, SearchLimitWarning
from bristlecone.report import html_report
from bristlecone.trust import (
    alternatives,
    near_optimal_trees,
    stability,
    threshold_gap,
    verify,
)
from bristlecone.tune import TreeSizeCV


def binary(seed=0, n=40, p=5):
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.random((n, p)) < 0.5, columns=[f"b{k}" for k in range(p)])
    signal = (X["b0"] ^ X["b1"]) | X["b2"]
    return X, signal.to_numpy() ^ (rng.random(n) < 0.2), rng.normal(size=n) + 2 * signal


def losses(y, penalty):
    """Loss of rows as one leaf: errors of classes, or squared errors of numbers."""
    y = np.asarray(y)

    def loss(rows):
        own = y[rows]
        wrong = min(own.sum(), (~own).sum()) if y.dtype == bool else ((own - own.mean()) ** 2).sum()
        return wrong / len(y) + penalty

    return loss


def trees(X, rows, depth, loss, leaves=99):
    """(splits in preorder, loss) of every tree; equal partitions count once."""
    yield (None,), loss(rows)
    if depth == 0 or leaves < 2:
        return
    seen = set()
    for column in X:
        yes = X[column].to_numpy()[rows]
        division = (yes ^ yes[0]).tobytes()
        if yes.all() or not yes.any() or division in seen:
            continue
        seen.add(division)
        left = list(trees(X, rows[yes], depth - 1, loss, leaves - 1))
        right = list(trees(X, rows[~yes], depth - 1, loss, leaves - 1))
        for (a, x), (b, z) in itertools.product(left, right):
            if (a + b).count(None) <= leaves:
                yield (column, *a, *b), x + z


CASES = {
    "classes": (OptimalTreeClassifier, 1, {"max_depth": 2}),
    "penalty": (OptimalTreeClassifier, 1, {"max_depth": 2, "leaf_penalty": 0.01}),
    "leaves": (OptimalTreeClassifier, 1, {"max_depth": 3, "max_leaf_nodes": 3}),
    "numbers": (OptimalTreeRegressor, 2, {"max_depth": 2}),
}


@pytest.mark.parametrize("case", CASES)
def test_alternatives_are_the_best_trees_with_other_questions(case):
    kind, of, parameters = CASES[case]
    data = binary()
    X, y = data[0], np.asarray(data[of])
    tree = kind(**parameters).fit(X, y)
    table = alternatives(tree, X, y)
    assert isinstance(table, pd.DataFrame)
    loss = losses(y, parameters.get("leaf_penalty", 0.0))
    most = parameters.get("max_leaf_nodes", 99)
    best = {}
    for questions, value in trees(X, np.arange(len(X)), parameters["max_depth"], loss, most):
        if questions[0] is not None:
            best[questions[0]] = min(best.get(questions[0], np.inf), value)
    root = table[table["node"] == 0].set_index("alternative")
    assert set(root.index) == set(best)
    for question, value in best.items():
        assert root.loc[question, "objective"] == pytest.approx(value, abs=1e-9)
    assert (table["difference"] >= -1e-9).all()
    asked = table[table["is_chosen"]]
    np.testing.assert_allclose(asked["difference"], 0.0, atol=1e-9)
    assert set(asked["node"]) == set(tree.splits_)
    assert ((table["split"] == table["alternative"]) <= table["is_chosen"]).all()


def test_alternatives_of_a_survival_tree_are_its_fits_with_one_question():
    X, y = sample()
    X = X > 0
    for objective in ("likelihood", "brier"):
        tree = OptimalSurvivalTree(objective=objective, max_depth=1).fit(X, y)
        table = alternatives(tree, X, y).set_index("alternative")
        for column in X:
            alone = OptimalSurvivalTree(objective=objective, max_depth=1).fit(X[[column]], y)
            if alone.n_leaves_ == 2:
                found = table.loc[column, "objective"]
                assert found == pytest.approx(alone.objective_value_, abs=1e-9)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("epsilon", [0.0, 0.08])
def test_near_optimal_trees_are_all_there_are(case, epsilon):
    kind, of, parameters = CASES[case]
    data = binary(1, n=24, p=4)
    X, y = data[0], np.asarray(data[of])
    tree = kind(**parameters).fit(X, y)
    near = near_optimal_trees(tree, X, y, epsilon=epsilon, limit=10_000)
    assert near.complete
    loss = losses(y, parameters.get("leaf_penalty", 0.0))
    most = parameters.get("max_leaf_nodes", 99)
    every = list(trees(X, np.arange(len(X)), parameters["max_depth"], loss, most))
    least = min(value for _, value in every)
    expected = sorted(value for _, value in every if value <= least + epsilon + 1e-9)
    np.testing.assert_allclose(np.sort(near.objective_values), expected, atol=1e-9)
    sizes = [one.n_leaves_ for one in near]
    assert sizes == sorted(sizes)
    for one in list(near)[:20]:
        predicted = one.predict(X)
        own = (predicted != y).mean() if y.dtype == bool else ((predicted - y) ** 2).mean()
        penalty = parameters.get("leaf_penalty", 0.0) * one.n_leaves_
        assert one.objective_value_ == pytest.approx(own + penalty, abs=1e-9)
        assert one.lower_bound_ <= tree.objective_value_ + 1e-9


def test_only_trees_at_the_optimum_say_that_they_are_optimal():
    X, y = sample()
    tree = OptimalSurvivalTree(max_depth=2).fit(X, y)
    near = near_optimal_trees(tree, X, y, epsilon=0.01)
    worse = [one for one in near if one.gap_ > 1e-9]
    assert {one.status_ for one in worse} == {"near_optimal"}
    assert {one.status_ for one in near if one not in worse} == {"optimal"}
    one = worse[0]
    assert one.lower_bound_ == tree.lower_bound_
    assert f"gap {one.gap_:.3g} (" in one.describe()
    assert one.certificate_.sentence.startswith("nearly optimal among trees over these")
    assert OptimalSurvivalTree.from_json(one.to_json()).status_ == "near_optimal"
    assert verify(one, X, y).ok
    assert "Nearly optimal among trees" in html_report(one)


def test_of_too_many_trees_those_of_few_leaves_are_kept():
    X, y, _ = binary(1, n=24, p=4)
    tree = OptimalTreeClassifier(max_depth=2).fit(X, y)
    every = near_optimal_trees(tree, X, y, epsilon=0.2, limit=10_000)
    with pytest.warns(SearchLimitWarning, match="more than limit=7 trees are within 0.2"):
        few = near_optimal_trees(tree, X, y, epsilon=0.2, limit=7)
    assert len(few) == 7 < len(every) and not few.complete and every.complete
    assert [one.n_leaves_ for one in few] == [one.n_leaves_ for one in every][:7]
    # A better tree without a column may be among those that are left out.
    assert few.columns()["best_objective_without"].isna().all()
    assert every.columns()["best_objective_without"].notna().any()


def test_trees_of_few_leaves_are_within_epsilon_of_the_best():
    X, y, _ = binary(0, n=24, p=4)
    tree = OptimalTreeClassifier(max_depth=2).fit(X, y)
    every = near_optimal_trees(tree, X, y, epsilon=0.1, limit=10_000)
    for limit in range(1, len(every)):
        with pytest.warns(SearchLimitWarning, match=f"more than limit={limit} trees"):
            few = near_optimal_trees(tree, X, y, epsilon=0.1, limit=limit)
        assert len(few) == limit
        assert few.objective_values.max() <= tree.objective_value_ + 0.1 + 1e-9


def test_trees_of_few_leaves_have_the_bound_of_all_trees():
    X, y, _ = binary(1, n=24, p=4)
    tree = OptimalTreeClassifier(max_depth=2).fit(X, y)
    with pytest.warns(SearchLimitWarning, match="more than limit=1"):
        (one,) = near_optimal_trees(tree, X, y, epsilon=0.5, limit=1)
    assert one.n_leaves_ == 1 and one.objective_value_ > tree.objective_value_
    assert one.lower_bound_ == tree.objective_value_
    assert one.trace_[-1][1:] == (tree.objective_value_, tree.objective_value_)


def test_columns_count_the_trees_that_ask():
    X, y = sample()
    tree = OptimalSurvivalTree(max_depth=2).fit(X, y)
    near = near_optimal_trees(tree, X, y, epsilon=0.01, limit=500)
    table = near.columns()
    for row in table.itertuples():
        asks = [row.column in one.features_used_ for one in near]
        assert row.n_trees == sum(asks) and row.share == pytest.approx(np.mean(asks))
        without = near.objective_values[~np.array(asks)]
        assert np.isnan(row.best_objective_without) == (without.size == 0)
        if without.size:
            assert row.best_objective_without == without.min()


def test_other_rows_and_other_trees_are_refused():
    X, y = sample()
    tree = OptimalSurvivalTree(max_depth=1).fit(X, y)
    for ask in (alternatives, stability):
        with pytest.raises(ValueError, match="not the rows of the fit"):
            ask(tree, X, y[::-1])
        with pytest.raises(TypeError, match="got a LinearRegression"):
            ask(LinearRegression(), X, y)
        with pytest.raises(TypeError, match="got a GreedySurvivalTree"):
            ask(GreedySurvivalTree().fit(X, y), X, y)
        search = TreeSizeCV(OptimalSurvivalTree(max_depth=1), cv=2).fit(X, y)
        with pytest.raises(TypeError, match="got a TreeSizeCV; pass its best_estimator_"):
            ask(search, X, y)
    honest = tree.reestimate(X, y)
    for ask in (alternatives, stability, threshold_gap, partial(near_optimal_trees, epsilon=0.1)):
        with pytest.raises(TypeError, match="was re-estimated: pass the tree of its search"):
            ask(honest, X, y)
    with pytest.raises(ValueError, match="random_state must be an integer, a RandomState or None"):
        stability(tree, X, y, random_state="a")
    with pytest.raises(ValueError, match="epsilon"):
        near_optimal_trees(tree, X, y, epsilon=-1)
    X, y, _ = binary()
    fair = FairTreeClassifier(fairness=DemographicParity(0.9), max_depth=1).fit(
        X, y, sensitive_features=X["b4"]
    )
    priced = CostSensitiveTreeClassifier(
        cost_matrix=[[0, 1], [1, 0]], feature_costs={"b0": 0.1}, max_depth=1
    ).fit(X, y)
    for refused, more in ((fair, {"sensitive_features": X["b4"]}), (priced, {})):
        with pytest.raises(
            TypeError, match="sum over leaves, without constraints or feature costs"
        ):
            alternatives(refused, X, y, **more)


def test_arguments_of_the_search_are_refused_by_name():
    X, y = sample(60)
    tree = OptimalSurvivalTree(max_depth=1).fit(X, y)
    for use in (alternatives, stability, partial(near_optimal_trees, epsilon=0.1)):
        with pytest.raises(
            TypeError, match=r"^'reference_loss' is no argument .* by X, y, sample_"
        ):
            use(tree, X, y, reference_loss=np.ones(60))


def test_stability_with_several_causes():
    X, y = sample(120)
    time = y["months"]
    cause = np.where(y["dead"], 1 + (np.arange(120) % 3 == 0), 0)
    tree = CompetingRisksTree(max_depth=2).fit(X, (cause, time))
    found = stability(tree, X, (cause, time), n_resamples=10, random_state=0)
    assert found.score == pytest.approx(tree.score(X, (cause, time)))
    assert found.leaves.notna().all(axis=None) and found.optimism > 0
    assert found.leaves["predicted"].between(0, 1).all()
    late = pd.DataFrame({"event": cause, "time": time, "entry": time / 2})
    tree.fit(X, late)
    assert np.isnan(stability(tree, X, late, n_resamples=3, random_state=0).score)


def test_rows_count_by_class_weight_in_the_score_of_stability():
    X, label, _ = binary(n=60)
    tree = OptimalTreeClassifier(max_depth=1, class_weight={0: 1.0, 1: 3.0}).fit(X, label)
    found = stability(tree, X, label, n_resamples=1, random_state=0)
    weight = np.where(label == 1, 3.0, 1.0)
    assert found.score == pytest.approx(tree.score(X, label, weight))
    assert found.score != pytest.approx(tree.score(X, label))


def test_resamples_without_a_pair_to_compare_are_left_out_of_the_optimism():
    # The event of the last row alone comes after all other times.
    X, y = [[0.0], [0.0], [1.0], [1.0]], ([True, False, False, True], [1.0, 2.0, 3.0, 4.0])
    tree = OptimalSurvivalTree(max_depth=1, min_events_leaf=None).fit(X, y)
    found = stability(tree, X, y, n_resamples=20, random_state=0)
    assert np.isfinite(found.optimism)


def test_resamples_without_a_row_of_a_group_are_left_out():
    X, label, _ = binary(n=60)
    group = np.repeat(["a", "b"], [57, 3])
    given = {"sensitive_features": group, "n_resamples": 40, "random_state": 0}
    label[-3:] = True, False, False
    for fairness in (DemographicParity(0.5), EqualityOfOpportunity(0.5), EqualizedOdds(0.5)):
        tree = FairTreeClassifier(max_depth=1, fairness=fairness)
        tree.fit(X, label, sensitive_features=group)
        assert 0 < stability(tree, X, label, **given).n_resamples < 40
    survival = OptimalSurvivalTree(max_depth=1, fairness=RmstParity(100.0))
    _, y = sample(60)
    survival.fit(X, y, sensitive_features=group)
    assert 0 < stability(survival, X, y, **given).n_resamples < 40


def test_parameters_set_after_the_fit_do_not_matter():
    X, y = sample()
    tree = OptimalSurvivalTree(max_depth=1).fit(X, y)
    table = alternatives(tree, X, y)
    tree.set_params(max_depth=3, objective="brier")
    pd.testing.assert_frame_equal(alternatives(tree, X, y), table)


def test_a_limit_leaves_what_was_done():
    X, y = sample(n=400)
    tree = OptimalSurvivalTree(max_depth=3, time_limit=60).fit(X, y)
    tree.certificate_.parameters["time_limit"] = 1e-9
    with pytest.warns(SearchLimitWarning, match="stopped"):
        table = alternatives(tree, X, y)
    assert len(table) < 10


def test_a_stopped_search_returns_only_trees_that_are_known_to_be_near_the_optimum():
    X, y = sample(n=400)
    model = OptimalSurvivalTree(max_depth=3, time_limit=0)
    with pytest.warns(SearchLimitWarning):
        stopped = model.fit(X, y)
    with pytest.warns(SearchLimitWarning, match=r"\(time_limit\); no tree is known to be within"):
        near = near_optimal_trees(stopped, X, y, epsilon=1e-3)
    assert len(near) == len(near.columns()) == 0 and not near.complete
    # A difference as large as the gap is known.
    wide = stopped.gap_ * 1.01
    with pytest.warns(SearchLimitWarning, match=r"\(time_limit\); others are left out"):
        assert len(near_optimal_trees(stopped, X, y, epsilon=wide)) == 1
    # The bound of the fit may be the larger one.
    bound = stopped.objective_value_ - 5e-4
    stopped.certificate_ = replace(stopped.certificate_, lower_bound=bound)
    with pytest.warns(SearchLimitWarning, match=r"\(time_limit\); others are left out"):
        assert len(near_optimal_trees(stopped, X, y, epsilon=1e-3)) == 1


def test_stability_warns_of_searches_that_stopped_at_a_limit():
    X, y, _ = binary()
    with pytest.warns(SearchLimitWarning):
        tree = OptimalTreeClassifier(max_depth=3, time_limit=0).fit(X, y)
    with pytest.warns(SearchLimitWarning, match=r"5 of 5 searches stopped \(time_limit\)"):
        found = stability(tree, X, y, n_resamples=5, random_state=0)
    assert found.n_resamples == 5


@pytest.mark.usefixtures("lone_ctrl_c")
def test_ctrl_c_ends_stability():
    X, _, y = binary(n=400, p=60)
    with pytest.warns(SearchCostWarning), pytest.warns(SearchLimitWarning):
        tree = OptimalTreeRegressor(max_depth=6, time_limit=0.5).fit(X, y)
    timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        stability(tree, X, y, n_resamples=10, random_state=0)
    timer.join()


def test_stability_of_a_clear_split_and_of_noise():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.random((200, 6)) < 0.5, columns=list("abcdef"))
    y = np.where(X["a"], 3.0, 0.0) + rng.normal(size=200)
    tree = OptimalTreeRegressor(max_depth=3).fit(X, y)
    found = stability(tree, X, y, n_resamples=40, random_state=1)
    again = stability(tree, X, y, n_resamples=40, random_state=1)
    pd.testing.assert_frame_equal(found.columns, again.columns)
    assert found.n_resamples == 40
    columns = found.columns.set_index("column")
    assert columns.loc["a", "root"] == columns.loc["a", "anywhere"] == 1
    assert columns["root"].sum() == pytest.approx(1.0)
    splits = found.splits.set_index("node")
    assert splits.loc[0, "n_reached"] == 40 and splits.loc[0, "same_split"] == 1
    assert (splits.drop(index=0)["same_split"] < 0.9).any()
    assert 0 < found.optimism < 0.2
    assert found.corrected == found.score - found.optimism
    np.testing.assert_array_equal(found.together, found.together.T)
    np.testing.assert_array_equal(np.diag(found.together), 1.0)
    apart = found.together[np.ix_(X["a"], ~X["a"])]
    assert apart.max() == 0
    leaves = found.leaves
    # Extreme leaves predict less extreme values for rows that were left out.
    ends = leaves.sort_values("predicted").iloc[[0, -1]]
    assert ends["expected"].iloc[0] > ends["predicted"].iloc[0]
    assert ends["expected"].iloc[1] < ends["predicted"].iloc[1]


def test_stability_names_the_columns_of_an_array_that_the_tree_uses():
    rng = np.random.default_rng(0)
    X = rng.random((60, 3))
    y = np.where(X[:, 2] > 0.5, 3.0, 0.0) + 0.1 * rng.normal(size=60)
    tree = OptimalTreeRegressor(max_depth=1).fit(X, y)
    columns = stability(tree, X, y, n_resamples=5, random_state=0).columns.set_index("column")
    assert tree.features_used_ == [2]
    assert columns["is_used"].to_dict() == {"x0": False, "x1": False, "x2": True}


def test_stability_of_every_kind_of_leaf():
    X, y = sample()
    weight = 1 + np.arange(len(X)) % 3
    for tree in (
        OptimalSurvivalTree(max_depth=2),
        OptimalSurvivalTree(max_depth=2, objective="brier"),
    ):
        found = stability(tree.fit(X, y, weight), X, y, weight, n_resamples=10, random_state=0)
        assert found.leaves.notna().all(axis=None) and found.optimism > 0
    X, labels, _ = binary()
    tree = OptimalTreeClassifier(max_depth=2).fit(X, labels)
    found = stability(tree, X, labels, n_resamples=10, random_state=0)
    assert found.score == pytest.approx(tree.score(X, labels))
    counts, exposure = labels * 3 + np.arange(40) % 2, 1.0 + np.arange(40) % 3
    tree = OptimalTreeRegressor(objective="poisson", max_depth=1)
    for more in ({}, {"exposure": exposure}):
        tree.fit(X, counts, **more)
        found = stability(tree, X, counts, **more, n_resamples=10, random_state=0)
        assert found.score == pytest.approx(tree.score(X, counts, **more))
        assert found.leaves.notna().all(axis=None) and found.optimism > 0
    known = {"treatment": labels.astype(int), "predicted_outcomes": np.eye(40)[:, :2]}
    outcome = np.arange(40.0)
    policy = PolicyTree(reward="direct", max_depth=1).fit(X, outcome, **known)
    found = stability(policy, X, outcome, **known, n_resamples=5, random_state=0)
    assert np.isnan(found.score) and found.n_resamples == 5
