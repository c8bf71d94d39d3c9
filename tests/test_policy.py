"""``PolicyTree``: estimated rewards, the best of all policies, and bad input."""

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from trees_plainly import least_objective

from bristlecone import BinaryEncoder, PolicyTree
from bristlecone._rewards.formulas import policy_rewards, propensity_of_own
from bristlecone.exceptions import InfeasibleError, InfeasibleWarning
from bristlecone.trust import verify

REWARD_ESTIMATES = ["direct", "inverse-propensity", "doubly-robust"]


def trial(n=60, n_features=5, n_treatments=3, seed=0):
    """Features, outcomes, and data of the treatments."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(n, n_features)).astype(bool)
    treatment = rng.integers(0, n_treatments, size=n)
    effect = np.stack([X[:, 0] * 1.0, X[:, 1] * 0.8, 0.4 + 0.0 * X[:, 0]], axis=1)
    y = effect[np.arange(n), treatment] + rng.normal(scale=0.3, size=n)
    share = rng.dirichlet(np.full(n_treatments, 5.0), size=n)
    predicted = effect + rng.normal(scale=0.1, size=effect.shape)
    known = {"treatment": treatment, "propensity": share, "predicted_outcomes": predicted}
    return X, y, known


def rewards_by_row(y, known, reward):
    """Rewards by their formulas, row by row."""
    rows = []
    for i, k in enumerate(known["treatment"]):
        v, mu = known["predicted_outcomes"][i], known["propensity"][i]
        if reward == "direct":
            rows.append(list(v))
        elif reward == "inverse-propensity":
            rows.append([y[i] / mu[k] if j == k else 0.0 for j in range(3)])
        else:
            rows.append([v[j] + ((y[i] - v[k]) / mu[k] if j == k else 0.0) for j in range(3)])
    return np.array(rows)


@pytest.mark.parametrize("reward", REWARD_ESTIMATES)
def test_rewards_are_those_of_the_formulas(reward):
    _, y, known = trial()
    rewards = policy_rewards(
        y,
        known["treatment"],
        3,
        reward,
        propensity=propensity_of_own(known["propensity"], known["treatment"]),
        predicted_outcomes=known["predicted_outcomes"],
    )
    np.testing.assert_allclose(rewards, rewards_by_row(y, known, reward), atol=1e-12)


@pytest.mark.parametrize("reward", REWARD_ESTIMATES)
@pytest.mark.parametrize(
    "parameters",
    [
        {"max_depth": 2},
        {"max_depth": 2, "leaf_penalty": 0.05},
        {"max_depth": 3, "min_samples_leaf": 6},
    ],
    ids=str,
)
def test_the_policy_is_the_best_of_all_trees(reward, parameters):
    X, y, known = trial()
    weight = np.random.default_rng(5).integers(1, 4, size=60) / 2.0
    model = PolicyTree(reward=reward, **parameters).fit(X, y, weight, **known)
    rewards = rewards_by_row(y, known, reward)
    best = least_objective(
        X, lambda rows: -(weight[rows] @ rewards[rows]).max() / weight.sum(), **parameters
    )
    assert model.status_ == "optimal"
    assert model.objective_value_ == pytest.approx(best, abs=1e-9)
    assert model.lower_bound_ == pytest.approx(best, abs=1e-9)
    assert model.trace_[-1][1] == pytest.approx(best, abs=1e-9)
    prescribed = rewards[np.arange(60), model.predict(X)]
    assert model.policy_value_ == pytest.approx(np.average(prescribed, weights=weight), abs=1e-9)


def test_treatments_of_any_kind_come_back():
    X, y, known = trial()
    names = np.array(["control", "pill", "surgery"])
    model = PolicyTree().fit(X, y, **{**known, "treatment": names[known["treatment"]]})
    same = PolicyTree().fit(X, y, **known)
    assert model.treatments_.tolist() == names.tolist()
    np.testing.assert_array_equal(model.predict(X), names[same.predict(X)])


def test_the_probability_of_the_given_treatment_is_enough():
    X, y, known = trial()
    taken = known["propensity"][np.arange(60), known["treatment"]]
    one = PolicyTree().fit(X, y, **known)
    other = PolicyTree().fit(X, y, **{**known, "propensity": taken})
    assert one.objective_value_ == other.objective_value_


def test_outcomes_are_predicted_by_leaf():
    X, y, known = trial()
    model = PolicyTree(reward="direct", max_depth=1).fit(X, y, **known)
    leaf, predicted = model.apply(X), model.predict_outcomes(X)
    for node in np.unique(leaf):
        mean = known["predicted_outcomes"][leaf == node].mean(axis=0)
        np.testing.assert_allclose(predicted[leaf == node], mean[None].repeat(sum(leaf == node), 0))
    np.testing.assert_array_equal(model.predict(X), predicted.argmax(axis=1))


@pytest.mark.parametrize("least", [1, 4, 7])
def test_every_leaf_has_rows_of_every_treatment_and_no_such_tree_is_better(least):
    X, y, known = trial(80, n_features=4)
    given = {**known, "propensity": np.full((80, 3), 1 / 3)}
    model = PolicyTree(max_depth=2, min_samples_treatment=least).fit(X, y, **given)
    rewards = model.estimate_rewards(X, y, **given).rewards

    def cost(rows):
        if np.bincount(known["treatment"][rows], minlength=3).min() < least:
            return np.inf
        return -rewards[rows].sum(axis=0).max() / 80

    best = least_objective(X, cost, max_depth=2)
    assert model.status_ == "optimal"
    assert model.objective_value_ == pytest.approx(best, abs=1e-9)
    assert model.leaves_.treated.min() >= least
    free = PolicyTree(max_depth=2).fit(X, y, **given)
    assert free.objective_value_ <= model.objective_value_
    if least == 7:
        assert free.leaves_.treated.min() < least
    assert verify(model, X, y, **given).ok
    assert f"at least {least} training row" in " ".join(model.describe().split())
    path = PolicyTree(max_depth=2, min_samples_treatment=least).size_path(X, y, **given)
    assert path[-1].objective_value_ == pytest.approx(best, abs=1e-9)


def test_a_minimum_of_every_treatment_holds_over_every_threshold():
    rng = np.random.default_rng(3)
    X, treatment = rng.normal(size=(70, 3)).round(1), rng.integers(0, 2, 70)
    given = {"treatment": treatment, "predicted_outcomes": rng.normal(size=(70, 2))}
    found = [
        PolicyTree(
            max_depth=2,
            min_samples_treatment=9,
            reward="direct",
            encoder=BinaryEncoder(thresholds=thresholds, min_support=0.0),
        ).fit(X, rng.normal(size=70), **given)
        for thresholds in ("all", "midpoints")
    ]
    one, other = found
    assert one.status_ == other.status_ == "optimal"
    assert one.objective_value_ == pytest.approx(other.objective_value_, abs=1e-12)
    assert min(model.leaves_.treated.min() for model in found) >= 9
    free = PolicyTree(max_depth=2, reward="direct", encoder=other.encoder).fit(
        X, rng.normal(size=70), **given
    )
    assert free.objective_value_ < one.objective_value_ - 1e-6


@pytest.mark.parametrize(
    ("limit", "noise"),
    [
        ({}, 0.0),
        ({}, 1e-17),
        ({"min_samples_treatment": 3}, 0.0),
        ({"min_samples_treatment": 3}, 1e-17),
        ({"capacities": {1: 0.5}}, 0.0),
    ],
)
def test_to_give_no_row_a_harmful_treatment_is_certified(limit, noise):
    rng = np.random.default_rng(0)
    X, treatment = rng.random((60, 4)) < 0.5, np.repeat([0, 1], 30)
    rewards = np.column_stack([noise * rng.normal(size=60), rng.normal(-2.0, 1.0, 60)])
    rewards[0, 1] = 1.0  # one row with a gain is not enough
    model = PolicyTree(max_depth=2, min_samples_leaf=8, reward="direct", **limit)
    given = {"treatment": treatment, "predicted_outcomes": rewards}
    model.fit(X, rng.normal(size=60), **given)
    assert model.status_ == "optimal"
    assert not model.leaves_.label.any()
    assert abs(model.objective_value_) <= noise


def test_a_minimum_that_no_leaf_can_have_names_the_treatment():
    X, y, known = trial()
    counts = np.bincount(known["treatment"])
    rarest = int(counts.argmin())
    model = PolicyTree(min_samples_treatment=int(counts.min()) + 1)
    with pytest.raises(
        ValueError, match=f"more than the {counts.min()} rows of treatment {rarest}"
    ):
        model.fit(X, y, **known)
    with pytest.raises(ValueError, match="min_samples_treatment cannot be used with capacities"):
        PolicyTree(min_samples_treatment=1, capacities={0: 0.5}).fit(X, y, **known)


def test_the_smallest_policy_is_the_best_treatment_for_all():
    X, y, known = trial()
    path = PolicyTree(max_depth=2).size_path(X, y, **known)
    assert path[0].policy_value_ == pytest.approx(
        rewards_by_row(y, known, "doubly-robust").mean(axis=0).max(), abs=1e-12
    )
    assert PolicyTree(max_depth=2).estimate_cost(X, y, **known).max_depth == 2


def best_within(X, rewards, shares):
    """Value of the best policy of depth two that assigns treatment k to at most ``shares[k]``."""
    found = -np.inf
    features = range(X.shape[1])
    for root, yes, no in itertools.product(features, features, features):
        leaf = np.where(X[:, root], X[:, yes] * 1, 2 + X[:, no])
        for treatments in itertools.product(range(3), repeat=4):
            given = np.array(treatments)[leaf]
            if (np.bincount(given, minlength=3) <= np.array(shares) * len(X) + 1e-6).all():
                found = max(found, rewards[np.arange(len(X)), given].mean())
    return found


@pytest.mark.parametrize("shares", [(1, 1, 0.2), (0.3, 1, 0.5), (0.4, 0.4, 0.4)])
def test_capacities_are_kept_and_no_policy_within_is_better(shares):
    X, y, known = trial(n_features=4)
    limits = {k: share for k, share in enumerate(shares) if share < 1}
    model = PolicyTree(reward="direct", max_depth=2, capacities=limits).fit(X, y, **known)
    given = np.bincount(model.predict(X), minlength=3) / 60
    assert model.status_ == "optimal"
    assert (given <= np.array(shares) + 1e-9).all()
    best = best_within(X, known["predicted_outcomes"], shares)
    assert model.policy_value_ == pytest.approx(best, abs=1e-9)


def test_capacities_of_many_rows_of_real_rewards_are_certified():
    X, y, known = trial(n_features=4)
    tree = PolicyTree(reward="direct", max_depth=2, capacities={0: 0.5, 2: 0.4})
    few = tree.fit(X, y, **known).policy_value_
    X, y = np.repeat(X, 1000, axis=0), np.repeat(y, 1000)
    known = {name: np.repeat(values, 1000, axis=0) for name, values in known.items()}
    tree.fit(X, y, **known)
    assert tree.status_ == "optimal"
    assert tree.policy_value_ == pytest.approx(few, rel=1e-9)


def test_capacities_that_no_tree_keeps_are_infeasible():
    X, y, known = trial()
    model = PolicyTree(reward="direct", capacities={0: 0.3, 1: 0.3, 2: 0.3})
    with pytest.warns(InfeasibleWarning, match="no tree satisfies") as caught:
        model.fit(X, y, **known)
    assert [warning.filename for warning in caught] == [__file__]
    assert model.status_ == "infeasible"
    assert model.objective_value_ == np.inf
    assert (model.gap_, model.relative_gap_) == (0, 0)
    assert not hasattr(model, "tree_")
    for ask in (model.predict, model.apply, model.decision_path, model.predict_outcomes):
        with pytest.raises(InfeasibleError, match="cannot predict: no tree satisfies"):
            ask(X)
    with pytest.raises(InfeasibleError):
        model.to_json()
    model.set_params(capacities=None).fit(X, y, **known)
    assert model.predict(X).shape == (60,)


@pytest.mark.parametrize(
    ("parameters", "changed", "message"),
    [
        ({"reward": "oracle"}, {}, "^reward must be one of"),
        ({"capacities": [0.5, 0.5]}, {}, "^capacities must be a mapping"),
        ({"capacities": {0: -0.5}}, {}, r"^capacities\[0\] must be"),
        ({"capacities": {0: 30}}, {}, r"^capacities\[0\] must be a share of the rows"),
        ({"capacities": {"pill": 0.5}}, {}, "names 'pill', a treatment that was never observed"),
        (
            {"propensity_model": None},
            {"propensity": None},
            "reward='doubly-robust' needs propensity, or propensity_model",
        ),
        ({"outcome_model": None}, {"predicted_outcomes": None}, "needs predicted_outcomes, or"),
        (
            {"reward": "direct", "outcome_model": None},
            {"predicted_outcomes": None},
            "needs predicted_outcomes, or outcome_model",
        ),
        ({"outcome_model": "forest"}, {}, "outcome_model must be None, 'auto' or an estimator"),
        ({"propensity_model": Ridge()}, {}, "propensity_model must .* with predict_proba"),
        ({"min_propensity": 0.0}, {}, "min_propensity must be greater than 0"),
        ({"min_propensity": 0.6}, {}, "min_propensity must be at most 0.5"),
        ({"horizon": 0.0}, {}, "horizon must be greater than 0"),
        ({"horizon": -1}, {}, "horizon must be greater than 0; got -1"),
        ({"estimand": "median"}, {}, "estimand must be one of"),
        ({}, {"propensity": np.zeros(60)}, r"propensity is 0.0 in row 0 for .*\(0, 1\)"),
        ({}, {"propensity": np.ones(60)}, "propensity is 1.0 in row 0 for treatment"),
        ({}, {"propensity": np.full((60, 3), 0.4)}, "entries of row 0 sum to 1.2"),
        ({}, {"propensity": 0.5}, "sum to 1.5"),
        ({}, {"propensity": {0: 0.5, 1: 0.25, 2: 0.5}}, "sum to 1.25"),
        ({}, {"propensity": np.full(60, 1.5)}, "propensity is 1.5 in row 0"),
        ({}, {"propensity": np.full(60, np.nan)}, "propensity is nan in row 0"),
        ({}, {"propensity": ["half"] * 60}, "propensity holds something else than numbers"),
        ({}, {"propensity": np.ones((60, 4))}, r"propensity has shape \(60, 4\)"),
        ({}, {"propensity": np.ones(59)}, r"propensity has shape \(59,\) for 60 rows"),
        (
            {},
            {"predicted_outcomes": np.ones((60, 4))},
            r"predicted_outcomes has shape \(60, 4\); expected \(60, 3\).*cannot be evaluated",
        ),
        (
            {},
            {"predicted_outcomes": np.full((60, 3), np.inf)},
            r"predicted_outcomes\[0, 0\] is inf",
        ),
        ({}, {"treatment": None}, "treatment"),
        ({}, {"treatment": ["pill"] * 60}, "treatment has one value, .pill."),
        ({}, {"treatment": range(60)}, "treatment has 60 values; at most 32 are supported"),
        ({}, {"treatment": [0] * 59}, "X has 60 rows but treatment has 59"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bad_input_is_named(parameters, changed, message):
    X, y, known = trial()
    with pytest.raises(ValueError, match=message):
        PolicyTree(**parameters).fit(X, y, **{**known, **changed})


def test_rows_are_counted_with_those_of_weight_zero():
    X, y, known = trial()
    weight, predicted = np.ones(60), known["predicted_outcomes"]
    weight[:2], predicted[:2] = 0.0, np.nan
    assert PolicyTree().fit(X, y, weight, **known).status_ == "optimal"
    predicted[5, 1] = np.nan
    with pytest.raises(ValueError, match=r"predicted_outcomes\[5, 1\] is nan"):
        PolicyTree().fit(X, y, weight, **known)
    predicted[5, 1], y[5] = 0.0, 1.7e308
    with pytest.raises(ValueError, match="reward of row 5 is beyond the largest number"):
        PolicyTree(reward="inverse-propensity").fit(X, y, weight, **known)


def test_propensity_scores_of_a_trial_need_no_array():
    random = np.random.default_rng(0)
    X, y = random.normal(size=(60, 2)), random.normal(size=60)
    treatment = np.array(["low", "high"])[random.integers(2, size=60)]
    by_row = np.where(treatment == "low", 0.75, 0.25)
    tree = PolicyTree(reward="inverse-propensity", max_depth=1)
    expected = tree.fit(X, y, treatment=treatment, propensity=by_row).policy_value_
    shares = {"low": 0.75, "high": 0.25}
    assert tree.fit(X, y, treatment=treatment, propensity=shares).policy_value_ == expected
    score = tree.score(X, y, treatment=treatment, propensity=shares)
    assert score == pytest.approx(expected, abs=1e-12)
    even = tree.fit(X, y, treatment=treatment, propensity=np.full(60, 0.5)).policy_value_
    assert tree.fit(X, y, treatment=treatment, propensity=0.5).policy_value_ == even
    with pytest.raises(ValueError, match="no entry for the treatment 'high'"):
        tree.fit(X, y, treatment=treatment, propensity={"low": 0.5})
    with pytest.raises(ValueError, match=r"propensity is 0\.0 for treatment 'high'"):
        tree.fit(X, y, treatment=treatment, propensity=0.0)


@pytest.mark.parametrize("capacities", [None, {2: 0.0}], ids=str)
@pytest.mark.parametrize("unit", [1.0, 1e12, 1e290, 1e-280])
def test_values_keep_their_digits_beside_far_better_treatments(capacities, unit):
    # For some rows the last treatment is far better than any policy, so shortfalls hide other rows.
    # With capacities they have 46 bits.
    far = 1e3 if capacities else 1e12
    X = [[0], [0], [1], [1]]
    rewards = np.array(
        [[0.1, 0.2, far], [0.3, 0.1, -2 * far], [0.7, 0.2, far], [0.1, 0.4, -2 * far]]
    )
    rewards = np.ldexp(rewards, int(np.log2(unit)))
    known = {"treatment": [0, 1, 2, 0], "predicted_outcomes": rewards}
    model = PolicyTree(reward="direct", max_depth=1, capacities=capacities)
    model.fit(X, np.zeros(4), **known)
    best = -float(sum(map(Fraction, rewards[[0, 1, 2, 3], 0].tolist())) / 4)
    assert model.status_ == "optimal" and model.predict(X).tolist() == [0] * 4
    assert model.objective_value_ == pytest.approx(best, rel=1e-15)
    assert model.policy_value_ == pytest.approx(-best, rel=1e-15)
    assert 0 <= model.gap_ <= 1e-9 * abs(best)
    assert model.trace_[-1][1:] == (model.objective_value_, model.lower_bound_)


def test_a_policy_of_rewards_of_nothing_is_proven_by_those_it_does_not_take():
    # Without the second treatment, every policy has a loss; with it, no policy has a gain.
    X, y, treatment = [[0], [0], [1], [1]], [0.1, -0.7, 0.0, 0.0], [0, 0, 1, 1]
    model = PolicyTree(reward="inverse-propensity", max_depth=1, leaf_penalty=0.0)
    model.fit(X, y, treatment=treatment, propensity=[0.3] * 4)
    assert (model.objective_value_, model.status_) == (0.0, "optimal")
    assert 0 <= model.gap_ <= 1e-9 * 0.1 / 0.3
    scarce = PolicyTree(reward="inverse-propensity", max_depth=1, capacities={0: 0.0})
    scarce.fit(X, [0.1, 0.7, 0.0, 0.0], treatment=treatment, propensity=[0.3] * 4)
    assert scarce.predict(X).tolist() == [1] * 4
    assert (scarce.objective_value_, scarce.status_) == (0.0, "optimal")
    assert 0 <= scarce.gap_ <= 1e-9 * 0.1 / 0.3


def test_a_policy_of_no_reward_is_not_optimal_beside_rewards_of_light_rows():
    # All rewards are of rows with almost no weight, and are far above the mean.
    X = [[0, 1], [0, 0], [0, 1], [0, 0], [0, 1], [0, 0], [1, 1], [0, 1]]
    rewards = np.zeros((8, 2))
    rewards[[0, 2, 6], 0] = 2e38
    weight = [1.0, 1.0, 1.0, 1.0, 1.0, 1e10, 1.0, 1.0]
    model = PolicyTree(reward="direct", max_depth=1, leaf_penalty=1.0, capacities={0: 0.75})
    known = {"treatment": [0, 1] * 4, "predicted_outcomes": rewards, "sample_weight": weight}
    model.fit(X, np.zeros(8), **known)
    assert model.status_ == "optimal" and model.predict(X).tolist() == [0, 1, 0, 1, 0, 1, 0, 0]
    assert model.objective_value_ == pytest.approx(-6e38 / (1e10 + 7), rel=1e-12)


def test_a_reward_that_vanishes_by_its_weight_is_not_nothing():
    # The light row's reward times its weight is less than the smallest number.
    X, rewards = [[0], [1], [0], [1]], np.array([[0, 0], [0, 0], [5e-323, 0], [0, 2]])
    model = PolicyTree(reward="direct", max_depth=1, leaf_penalty=1e-6, capacities={1: 0.0})
    known = {"treatment": [0, 1, 0, 1], "predicted_outcomes": rewards}
    with pytest.raises(ValueError, match="the values span too wide a range"):
        model.fit(X, np.zeros(4), sample_weight=[1.0, 1.0, 1e-6, 1.0], **known)


def test_rewards_near_the_largest_number_give_a_policy_and_those_beyond_name_their_row():
    X, known = [[0], [0], [1], [1]], {"treatment": ["a", "b", "a", "b"], "propensity": [0.5] * 4}
    model = PolicyTree(reward="inverse-propensity", max_depth=1)
    model.fit(X, [5e307, -8e307, -8e307, 4e307], **known)
    assert model.status_ == "optimal" and model.predict([[0], [1]]).tolist() == ["a", "b"]
    assert model.policy_value_ == pytest.approx(4.5e307, rel=1e-15)
    with pytest.raises(ValueError, match="reward of row 1 is beyond the largest number"):
        model.fit(X, [0.0, 1e308, 0.0, 0.0], **known)
    with pytest.raises(ValueError, match="no reward of a row is larger than 2e-300"):
        model.fit(X, [0.0, 1e-300, 0.0, 0.0], **known)


def test_wide_rewards_with_capacities_are_an_error_that_names_rows():
    random = np.random.default_rng(0)
    X, rewards = random.random((40, 3)) < 0.5, random.random((40, 2))
    rewards[:, 1] = 1e13 * random.choice([-1, 1], 40)
    model = PolicyTree(reward="direct", max_depth=2, capacities={1: 0.05})
    with pytest.raises(ValueError, match=r"rewards: the values span .* row \d+ to"):
        model.fit(X, np.zeros(40), treatment=[0, 1] * 20, predicted_outcomes=rewards)


def test_tables_of_treatments_are_read_by_their_names():
    X, y, known = trial()
    names = np.array(["a", "b", "c"])
    treatment = names[known["treatment"]]
    tables = {
        name: pd.DataFrame(known[name], columns=names)[["c", "a", "b"]]
        for name in ("propensity", "predicted_outcomes")
    }
    tree = PolicyTree(max_depth=1, reward="doubly-robust")
    expected = tree.fit(X, y, **known | {"treatment": treatment}).policy_value_
    assert tree.fit(X, y, treatment=treatment, **tables).policy_value_ == expected
    assert tree.score(X, y, treatment=treatment, **tables) == pytest.approx(expected)
    assert verify(tree, X, y, treatment=treatment, **tables).ok
    for name in tables:
        others = tables | {name: tables[name].set_axis(["c", "a", "d"], axis=1)}
        with pytest.raises(ValueError, match=f"^{name} has the columns 'c', 'a', 'd'; expected"):
            tree.fit(X, y, treatment=treatment, **others)


@pytest.mark.parametrize("treatments", [[0, 1], [0.0, 1.0], [False, True], ["0", "1"]])
@pytest.mark.parametrize("columns", [[1, 0], [1.0, 0.0], [True, False], ["1", "0"]])
def test_names_of_columns_may_be_treatments_of_another_type(treatments, columns):
    X, y = [[0], [0], [1], [1]], [1.0, 0.0, 0.0, 1.0]
    treatment = np.array(treatments)[[0, 1, 0, 1]]
    predicted, share = np.array([[3.0, 1.0]] * 4), np.array([[0.8, 0.2]] * 4)
    tables = {
        "propensity": pd.DataFrame(share[:, ::-1], columns=columns),
        "predicted_outcomes": pd.DataFrame(predicted[:, ::-1], columns=columns),
    }
    found = PolicyTree().estimate_rewards(X, y, treatment=treatment, **tables)
    np.testing.assert_array_equal(found.propensity, share)
    np.testing.assert_array_equal(found.predicted_outcomes, predicted)
