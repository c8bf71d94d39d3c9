"""Values of policies with their errors: training rows, held-out rows, cross-fitted, by leaf."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from pace import slow_but
from sklearn.linear_model import LinearRegression, LogisticRegression

from bristlecone import PolicyTree, load_model, save_model
from bristlecone.exceptions import InfeasibleError
from bristlecone.export import export_text
from bristlecone.report import html_report
from bristlecone.trust import alternatives, verify

SHARE = {"a": 0.5, "b": 0.5}


def trial(n=400, seed=0):
    """A trial in which b helps half of the rows and harms the others."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 3)), columns=["x", "y", "z"])
    arm = rng.choice(["a", "b"], n)
    better = np.where(X["x"] > 0, 0.5, -0.5)
    outcome = X["y"].to_numpy() + better * (arm == "b") + rng.normal(size=n)
    return X, outcome, arm


@pytest.fixture(scope="module")
def fitted():
    X, y, arm = trial()
    tree = PolicyTree(max_depth=1).fit(X, y, treatment=arm, propensity=SHARE)
    return tree, X, y, arm


def by_policy(table):
    return table.set_index("policy")


def plainly(rewards, prescribed, weight=None, level=1.959963984540054):
    """Values, gains and errors of four policies, row by row."""
    n = len(rewards)
    weight = np.ones(n) if weight is None else weight
    own = rewards[np.arange(n), prescribed]
    policies = {
        "policy": own,
        "always a": rewards[:, 0],
        "always b": rewards[:, 1],
        "at random": rewards.mean(axis=1),
    }
    found = {}
    for name, values in policies.items():
        row = []
        for of_row in (values, own - values):
            mean = (weight * of_row).sum() / weight.sum()
            square = (weight**2 * (of_row - mean) ** 2).sum() / weight.sum() ** 2
            error = np.sqrt(square * n / (n - 1))
            row += [mean, error, mean - level * error, mean + level * error]
        found[name] = row
    return found


def compare(table, expected):
    table = by_policy(table)
    names = [
        f"{kind}{end}" for kind in ("value", "gain") for end in ("", "_error", "_lower", "_upper")
    ]
    for policy, values in expected.items():
        of_row = table.loc[policy, names].to_numpy(dtype=float)
        if policy == "policy":
            assert np.isnan(of_row[4:]).all()
            of_row, values = of_row[:4], values[:4]
        np.testing.assert_allclose(of_row, values, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_values_on_the_training_rows_are_means_over_the_rows(weighted):
    X, y, arm = trial(200)
    weight = np.random.default_rng(2).uniform(0.5, 2.0, 200) if weighted else None
    tree = PolicyTree(max_depth=2).fit(X, y, weight, treatment=arm, propensity=SHARE)
    rewards = tree.estimate_rewards(X, y, weight, treatment=arm, propensity=SHARE).rewards
    prescribed = np.searchsorted(["a", "b"], tree.predict(X))
    table = tree.policy_table()
    compare(table, plainly(rewards, prescribed, weight))
    assert set(table["rows"]) == {"training rows, optimistic"}
    assert by_policy(table).loc["policy", "value"] == pytest.approx(tree.policy_value_, rel=1e-12)


@pytest.mark.slow
def test_values_on_other_rows_are_those_of_score(fitted):
    tree, *_ = fitted
    X, y, arm = trial(300, seed=9)
    given = {"treatment": arm, "propensity": SHARE}
    rewards = tree.estimate_rewards(X, y, **given).rewards
    prescribed = np.searchsorted(["a", "b"], tree.predict(X))
    table = tree.policy_table(X, y, confidence=0.8, **given)
    compare(table, plainly(rewards, prescribed, level=1.2815515655446004))
    score = tree.score(X, y, **given)
    assert by_policy(table).loc["policy", "value"] == pytest.approx(score, rel=1e-12)
    assert set(table["rows"]) == {"rows that were passed"}


def test_cross_fitted_values_are_not_those_of_rows_that_chose_the_policy():
    # The outcomes are noise, so no policy has a gain.
    values = []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y, arm = rng.normal(size=(300, 5)), rng.normal(size=300), rng.choice(["a", "b"], 300)
        given = {"treatment": arm, "propensity": SHARE, "predicted_outcomes": np.zeros((300, 2))}
        tree = PolicyTree(max_depth=3).fit(X, y, **given)
        rosy = by_policy(tree.policy_table())
        honest = by_policy(tree.policy_table(X, y, cross_fit=True, **given))
        assert rosy.loc["policy", "value_lower"] > 0
        assert set(honest["rows"]) == {"cross-fitted"}
        pd.testing.assert_series_equal(honest["value"][1:], rosy["value"][1:])
        values.append((rosy["value"].iloc[0], honest["value"].iloc[0]))
    on_training_rows, cross_fitted = np.mean(values, axis=0)
    assert on_training_rows > 0.3
    # The error of a mean over 1,200 rows is about 0.06.
    assert abs(cross_fitted) < 0.15


@pytest.mark.parametrize("unit", slow_but({1e-12}, [1.0, 1e-12]))
def test_cross_fitted_values_do_not_depend_on_the_unit_of_outcomes(unit):
    rng = np.random.default_rng(0)
    X, arm = rng.integers(0, 2, (200, 1)), rng.integers(0, 2, 200)
    y = unit * (rng.normal(size=200) + (X[:, 0] == arm))
    tree = PolicyTree(max_depth=1, random_state=0).fit(X, y, treatment=arm)
    table = tree.policy_table(X, y, treatment=arm, cross_fit=True)
    assert table["value"][0] / unit == pytest.approx(0.78, abs=0.02)


def test_cross_fitted_policies_read_frames_by_the_names_of_their_columns():
    X, y, arm = trial()
    tree = PolicyTree(reward="direct", max_depth=1)
    better = np.where(X["x"] > 0, 1.0, -1.0)
    predicted = pd.DataFrame({"b": better, "a": -better})
    tree = tree.fit(X, y, treatment=arm, predicted_outcomes=predicted)
    for outcomes in (predicted, predicted[["a", "b"]].to_numpy()):
        given = {"treatment": arm, "predicted_outcomes": outcomes}
        values = by_policy(tree.policy_table(X, y, cross_fit=True, **given))["value"]
        assert values["policy"] > 0.9


@pytest.mark.slow
def test_cross_fitted_policies_have_not_seen_their_rows(fitted, monkeypatch):
    tree, X, y, arm = fitted
    seen = []
    original = PolicyTree.fit

    def kept(self, X, *given, **more):
        seen.append(X.index)
        return original(self, X, *given, **more)

    monkeypatch.setattr(PolicyTree, "fit", kept)
    asked = []
    monkeypatch.setattr(
        PolicyTree, "predict", lambda self, X: asked.append(X.index) or np.repeat("a", len(X))
    )
    table = tree.policy_table(X, y, treatment=arm, propensity=SHARE, cross_fit=True)
    assert len(seen) == len(asked) == 5
    for training, held in zip(seen, asked, strict=True):
        assert sorted([*training, *held]) == list(range(len(X)))
    assert sorted(np.concatenate(asked)) == list(range(len(X)))
    values = by_policy(table)["value"]
    assert values["policy"] == values["always a"]


def test_leaves_know_rows_of_every_treatment_and_how_sure_their_gain_is(fitted):
    tree, X, y, arm = fitted
    rewards = tree.estimate_rewards(X, y, treatment=arm, propensity=SHARE).rewards
    table = tree.leaf_table()
    leaf = tree.apply(X)
    for _, row in table.iterrows():
        inside = leaf == row["leaf"]
        own = rewards[inside]
        assert row["rows_a"] == (arm[inside] == "a").sum()
        assert row["rows_b"] == (arm[inside] == "b").sum()
        best, other = ("a", "b") if row["label"] == "a" else ("b", "a")
        assert (row["rival"], row["label"]) == (other, best)
        sign = 1 if best == "a" else -1
        difference = sign * (own[:, 0] - own[:, 1])
        error = difference.std(ddof=1) / np.sqrt(inside.sum())
        assert row["gain"] == pytest.approx(difference.mean(), rel=1e-9)
        assert row["gain_error"] == pytest.approx(error, rel=1e-9)
        assert row["gain_upper"] - row["gain"] == pytest.approx(1.959963984540054 * error)
        deviation = own.std(axis=0, ddof=1) / np.sqrt(inside.sum())
        found = [row["value_a_error"], row["value_b_error"]]
        np.testing.assert_allclose(found, deviation, rtol=1e-9)
    assert "events_a" not in table


def test_text_page_and_file_tell_of_rows_and_gains(fitted, tmp_path):
    tree, *_ = fitted
    row = tree.leaf_table().iloc[0]
    said = f"gain {row['gain']:.3g} ± {row['gain_error']:.2g} over {row['rival']}"
    page, text = html_report(tree), tree.describe()
    assert said in export_text(tree)
    assert f"rows a: {row['rows_a']}, b: {row['rows_b']}" in export_text(tree)
    assert "gain over it" in page and "rows of a" in page
    assert "too optimistic" in text and "do not show" in text
    save_model(tree, tmp_path / "m.json")
    again = load_model(tmp_path / "m.json")
    pd.testing.assert_frame_equal(again.policy_table(), tree.policy_table())
    pd.testing.assert_frame_equal(again.leaf_table(), tree.leaf_table())


def test_texts_write_large_outcomes_without_exponents():
    X, treatment = np.arange(8.0)[:, None], list("abababab")
    outcome = np.array([52_000, 40_000, 48_000, 41_000, 53_000, 30_000, 47_000, 49_000.0])
    tree = PolicyTree(max_depth=0, reward="inverse-propensity")
    tree.fit(X, outcome, treatment=treatment, propensity=0.5)
    row = tree.leaf_table().iloc[0]
    text = export_text(tree)
    assert "a (a: 50000, b: 40000); gain 10000 ± " in text
    assert f" ± {row['gain_error']:.0f} over b" in text
    assert "the policy is 50,000 (standard error " in " ".join(tree.describe().split())
    assert "e+0" not in text + tree.describe()


def test_models_that_a_file_does_not_contain_can_be_set_again():
    X, y, arm = trial(120, seed=4)
    models = {"outcome_model": LinearRegression(), "propensity_model": LogisticRegression()}
    tree = PolicyTree(max_depth=1, **models).fit(X, y, treatment=arm)
    again = PolicyTree.from_json(tree.to_json())
    for use in (again.score, again.reestimate, partial(verify, again)):
        with pytest.raises(ValueError, match=r"propensity_model is None .*set it with set_params"):
            use(X, y, treatment=arm)
    again.set_params(**models)
    assert again.score(X, y, treatment=arm) == tree.score(X, y, treatment=arm)
    assert again.reestimate(X, y, treatment=arm).policy_value_ == tree.policy_value_
    assert verify(again, X, y, treatment=arm).ok
    assert len(alternatives(again, X, y, treatment=arm))
    assert len(again.policy_table(X, y, treatment=arm, cross_fit=True)) == 4


def test_leaves_of_other_rows_give_honest_values(fitted):
    tree, *_ = fitted
    X, y, arm = trial(300, seed=9)
    honest = tree.reestimate(X, y, treatment=arm, propensity=SHARE)
    table = honest.policy_table()
    assert set(table["rows"]) == {"rows of the leaves"}
    assert honest.leaf_table()["rows_a"].sum() == (arm == "a").sum()


def test_one_row_has_no_error():
    X, y = [[0.0], [1.0], [1.0]], [1.0, 1.0, 0.5]
    given = {"treatment": ["b", "a", "a"], "propensity": [0.5] * 3}
    tree = PolicyTree(reward="inverse-propensity", max_depth=1).fit(X, y, **given)
    alone = (tree.leaf_table()["n_samples"] == 1).tolist()
    assert alone == [False, True] or alone == [True, False]
    assert tree.leaf_table()["gain_error"].isna().tolist() == alone
    table = tree.policy_table(X[:1], y[:1], treatment=["a"], propensity=SHARE)
    assert table["value_error"].isna().all()


def test_what_lacks_is_named(fitted):
    tree, X, y, arm = fitted
    with pytest.raises(ValueError, match="treatment is missing"):
        tree.policy_table(X, y)
    with pytest.raises(ValueError, match="need rows; pass X, y and treatment"):
        tree.policy_table(cross_fit=True)
    with pytest.raises(ValueError, match="need rows; pass X, y and treatment"):
        tree.policy_table(predicted_outcomes=np.zeros((len(X), 2)))
    with pytest.raises(ValueError, match="confidence"):
        tree.policy_table(confidence=2)
    with pytest.raises(ValueError, match="treatment holds 'c'"):
        tree.policy_table(X, y, treatment=np.where(arm == "a", "c", "b"), propensity=SHARE)
    once = {"treatment": np.where(np.arange(len(X)) == 0, "a", "b"), "propensity": SHARE}
    with pytest.raises(ValueError, match=r"fold 1 of 5 of cross_fit: treatment has one value, 'b'"):
        tree.policy_table(X, y, **once, predicted_outcomes=np.zeros((len(X), 2)), cross_fit=True)
    with pytest.warns(UserWarning, match="no tree satisfies"):
        none = PolicyTree(capacities={"a": 0.1, "b": 0.1}, max_depth=1)
        none.fit(X, y, treatment=arm, propensity=SHARE)
    with pytest.raises(InfeasibleError):
        none.policy_table()
