"""Trees for events with several causes."""

import json
import math
from itertools import product

import numpy as np
import pandas as pd
import pytest

from bristlecone import CompetingRisksTree, OptimalSurvivalTree, load_model, save_model
from bristlecone.exceptions import InvalidParameterError, ModelFormatError
from bristlecone.export import export_text
from bristlecone.metrics import brier_score_cause, concordance_index_cause
from bristlecone.trust import alternatives, near_optimal_trees, stability, verify
from bristlecone.tune import TreeSizeCV

TIMES = [0.0, 0.2, 1.0, 3.0, 50.0]


def study(n=150, seed=0, n_causes=2, entry=False):
    """Rows with tied times and binary features; each affects the hazard of one cause."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.integers(0, 2, (n, 4)), columns=list("abcd"))
    rates = np.exp(np.stack([1.5 * X.iloc[:, k] for k in range(n_causes)]) - 1)
    lived = rng.exponential(1 / rates)
    followed = rng.exponential(2.0, n)
    time = np.ceil(20 * np.minimum(lived.min(axis=0), followed)) / 20
    cause = np.where(lived.min(axis=0) <= followed, 1 + lived.argmin(axis=0), 0)
    y = pd.DataFrame({"event": cause, "time": time})
    if entry:
        y["entry"] = np.where(rng.random(n) < 0.5, np.round(time * rng.random(n), 2) * 0.9, 0.0)
    return X, y


def weights(n=150, seed=1):
    return np.random.default_rng(seed).uniform(0.2, 3.0, n)


def plain_incidence(y, weight, cause, at):
    """Aalen–Johansen estimate, by its definition."""
    time, event = y["time"].to_numpy(), y["event"].to_numpy()
    entry = y["entry"].to_numpy() if "entry" in y else np.full(len(y), -1.0)
    survival, incidence = 1.0, 0.0
    for t in np.unique(time[event > 0]):
        if t > at:
            break
        at_risk = weight[(entry < t) & (time >= t)].sum()
        here = time == t
        incidence += survival * weight[here & (event == cause)].sum() / at_risk
        survival *= 1 - weight[here & (event > 0)].sum() / at_risk
    return incidence


@pytest.mark.parametrize("entry", [False, True])
@pytest.mark.parametrize("prior", [0, 10])
def test_with_one_cause_it_is_the_survival_tree_to_the_last_digit(entry, prior):
    X, y = study(entry=entry)
    y["event"] = y["event"].clip(upper=1)
    common = {"max_depth": 2, "prior": prior, "leaf_penalty": 0.001}
    tree = CompetingRisksTree(leaf_curve="proportional", **common).fit(X, y, weights())
    other = OptimalSurvivalTree(**common).fit(X, y, weights())
    assert tree.objective_value_ == other.objective_value_
    assert tree.lower_bound_ == other.lower_bound_
    assert tree.splits_ == other.splits_
    np.testing.assert_array_equal(tree.predict(X), other.predict(X))
    np.testing.assert_array_equal(
        tree.predict_survival_function(X, times=TIMES),
        other.predict_survival_function(X, times=TIMES),
    )
    plain = CompetingRisksTree(**common).fit(X, y, weights())
    by_rows = OptimalSurvivalTree(leaf_curve="kaplan-meier", **common).fit(X, y, weights())
    np.testing.assert_array_equal(
        plain.predict_survival_function(X, return_array=True),
        by_rows.predict_survival_function(X, return_array=True),
    )


@pytest.mark.parametrize("curve", ["aalen-johansen", "proportional"])
@pytest.mark.parametrize("entry", [False, True])
def test_incidences_and_survival_sum_to_one(curve, entry):
    X, y = study(n_causes=3, entry=entry)
    tree = CompetingRisksTree(max_depth=2, leaf_curve=curve).fit(X, y, weights())
    total = tree.predict_survival_function(X, return_array=True)
    for cause in (1, 2, 3):
        incidence = tree.predict_cumulative_incidence(X, cause)
        assert (np.diff(incidence, axis=1) >= 0).all()
        assert incidence[:, -1].max() > 0.1
        total = total + incidence
    np.testing.assert_allclose(total, 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("entry", [False, True])
def test_curves_of_leaves_are_those_of_aalen_and_johansen(entry):
    X, y = study(entry=entry)
    weight = weights()
    tree = CompetingRisksTree(max_depth=2).fit(X, y, weight)
    leaf = tree.apply(X)
    for node, cause in product(np.unique(leaf), (1, 2)):
        inside = leaf == node
        expected = [plain_incidence(y[inside], weight[inside], cause, at) for at in TIMES]
        found = tree.predict_cumulative_incidence(X[inside][:1], cause, times=TIMES)[0]
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_curves_are_those_of_scikit_survival():
    peer = pytest.importorskip("sksurv.nonparametric")
    X, y = study()
    tree = CompetingRisksTree(max_depth=1).fit(X, y)
    leaf = tree.apply(X)
    for node in np.unique(leaf):
        inside = (leaf == node) & (y["time"] > 0)
        times, incidence = peer.cumulative_incidence_competing_risks(
            y["event"][inside].to_numpy(), y["time"][inside].to_numpy()
        )
        for cause in (1, 2):
            found = tree.predict_cumulative_incidence(X[inside][:1], cause, times=times)[0]
            np.testing.assert_allclose(found, incidence[cause], rtol=0, atol=1e-12)


def plain_loss(X, y, weight, leaf, cause_weights, prior):
    """The objective without penalty, from its definition."""
    time, event = y["time"].to_numpy(), y["event"].to_numpy()
    loss = 0.0
    for cause, importance in enumerate(cause_weights, start=1):
        died = event == cause
        steps = {
            t: weight[died & (time == t)].sum() / weight[time >= t].sum()
            for t in np.unique(time[died])
        }
        hazard = np.array([sum(h for u, h in steps.items() if u <= t) for t in time])
        hazard = np.where(hazard > 0, hazard, 1 / (weight.sum() + 1))
        for node in np.unique(leaf):
            own = leaf == node
            events, total = weight[own & died].sum(), (weight * hazard)[own].sum()
            theta = (events + prior) / (total + prior)
            if not theta:
                continue
            found = -(weight * np.log(hazard))[own & died].sum() - events * math.log(theta)
            found += theta * total - events + prior * (theta - 1 - math.log(theta))
            loss += importance * found
    return loss / weight.sum()


@pytest.mark.parametrize("prior", [0, 4.0])
@pytest.mark.parametrize("cause_weights", [None, [1.0, 0.25], [0.0, 2.0]])
def test_the_tree_is_the_best_of_depth_one(prior, cause_weights):
    X, y = study(60, seed=3)
    weight = weights(60)
    tree = CompetingRisksTree(
        max_depth=1, prior=prior, cause_weights=cause_weights, min_events_leaf=None
    ).fit(X, y, weight)
    of_causes = cause_weights or [1.0, 1.0]
    losses = [
        plain_loss(X, y, weight, leaf, of_causes, prior)
        for leaf in (np.zeros(60), *(X[name].to_numpy() for name in X))
    ]
    assert tree.status_ == "optimal"
    assert tree.objective_value_ == pytest.approx(min(losses), rel=1e-9)
    assert np.argmin(losses) == 1 + list(X).index(tree.features_used_[0])


def test_a_series_of_cause_weights_is_read_by_the_causes():
    X, y = study()
    expected = CompetingRisksTree(max_depth=1, cause_weights=[3.0, 0.5]).fit(X, y)
    by_cause = pd.Series({2: 0.5, 1: 3.0})
    for weights in (by_cause, by_cause.sort_index(), pd.Series([3.0, 0.5])):
        tree = CompetingRisksTree(max_depth=1, cause_weights=weights).fit(X, y)
        assert tree.objective_value_ == expected.objective_value_
        assert verify(tree, X, y).ok


def test_a_cause_of_weight_zero_only_censors():
    X, y = study()
    tree = CompetingRisksTree(max_depth=2, cause_weights=[1, 0], min_events_leaf=None).fit(X, y)
    alone = OptimalSurvivalTree(max_depth=2, min_events_leaf=None).fit(
        X, (y["event"] == 1, y["time"])
    )
    assert tree.objective_value_ == pytest.approx(alone.objective_value_, rel=1e-12)
    np.testing.assert_array_equal(tree.predict(X), alone.predict(X))
    assert tree.predict_cumulative_incidence(X, 2).max() > 0


def test_shrinkage_is_that_of_the_survival_tree_of_each_cause():
    X, y = study()
    common = {"max_depth": 2, "prior": 0, "shrinkage": 7.0, "leaf_curve": "proportional"}
    tree = CompetingRisksTree(**common).fit(X, y)
    assert tree.shrinkage_ == 7.0
    plain = CompetingRisksTree(**{**common, "shrinkage": 0}).fit(X, y)
    assert plain.splits_ == tree.splits_
    pulled = np.abs(np.log(tree.theta_)).max(axis=1) < np.abs(np.log(plain.theta_)).max(axis=1)
    assert pulled.all()
    shrunk = ", ".join(f"{theta:.4g}" for theta in tree.theta_[:, 0])
    assert f"(shrunk {shrunk})" in export_text(tree).splitlines()[2]


def test_integer_weights_are_repeated_rows():
    X, y = study()
    times = np.random.default_rng(2).integers(0, 3, len(X))
    rows = np.repeat(np.arange(len(X)), times)
    common = {"max_depth": 2, "min_events_leaf": None}
    weighted = CompetingRisksTree(**common).fit(X, y, times)
    repeated = CompetingRisksTree(**common).fit(X.iloc[rows], y.iloc[rows])
    assert weighted.objective_value_ == pytest.approx(repeated.objective_value_, rel=1e-12)
    np.testing.assert_allclose(
        weighted.predict_cumulative_incidence(X, 2, times=TIMES),
        repeated.predict_cumulative_incidence(X, 2, times=TIMES),
        atol=1e-12,
    )


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        ([1, -1, 0, 2], "'event' of y is -1 in row 1"),
        ([1, 0.5, 0, 2], r"'event' of y is 0\.5 in row 1"),
        ([1, np.nan, 0, 2], "'event' of y is missing in row 1"),
        ([0, 0, 0, 0], "no event"),
        ([1, 3, 0, 1], "no event of cause 2"),
        ([1, 1e300, 0, 1], "in row 1"),
        (["a", "b", "a", "b"], "number of the cause"),
    ],
)
def test_wrong_causes_are_named(cause, message):
    y = pd.DataFrame({"event": cause, "time": [1.0, 2.0, 3.0, 4.0]})
    with pytest.raises(ValueError, match=message):
        CompetingRisksTree().fit(np.eye(4), y)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "int64"])
def test_one_row_may_have_an_event_of_any_cause(dtype):
    X, y = study()
    tree = CompetingRisksTree(max_depth=1).fit(X, y)
    rows = np.flatnonzero(y["event"] == 2)
    alone = [tree.log_likelihood(X.iloc[[i]], y.iloc[[i]].astype({"event": dtype})) for i in rows]
    np.testing.assert_array_equal(np.concatenate(alone), tree.log_likelihood(X, y)[rows])


def test_wrong_numbers_of_causes_are_named():
    X, y = study()
    with pytest.raises(InvalidParameterError, match="3 values, but the number of causes is 2"):
        CompetingRisksTree(cause_weights=[1, 1, 1]).fit(X, y)
    many = pd.DataFrame({"event": np.arange(1, 11), "time": np.ones(10)})
    with pytest.raises(ValueError, match="10 causes; at most 8"):
        CompetingRisksTree().fit(np.eye(10), many)
    weight = np.where(y["event"] == 2, 0.0, 1.0)
    with pytest.raises(ValueError, match="cause 2 in a row of positive weight"):
        CompetingRisksTree().fit(X, y, weight)
    tree = CompetingRisksTree(max_depth=1).fit(X, y)
    for wrong in (0, 3, 1.5):
        with pytest.raises(ValueError, match="cause"):
            tree.predict(X, cause=wrong)


def test_two_columns_of_integers_are_distinguished_by_name():
    X, y = study()
    whole = y.assign(time=(20 * y["time"]).astype(int))
    records = whole.to_records(index=False)
    array = np.array(records.tolist(), dtype=[("status", int), ("days", int)])
    one, other = (CompetingRisksTree(max_depth=2).fit(X, given) for given in (whole, array))
    assert one.objective_value_ == other.objective_value_


# Metrics


def plain_concordance(y, risk, cause, weight):
    time, event = y["time"].to_numpy(), y["event"].to_numpy()

    def censoring(t):
        """G just before t; at equal times, events come before censorings."""
        value = 1.0
        for u in np.unique(time[(event == 0) & (time < t)]):
            here = (time == u) & (event == 0)
            value *= 1 - weight[here].sum() / weight[(time > u) | here].sum()
        return value

    concordant = total = 0.0
    for i, j in product(range(len(time)), repeat=2):
        if event[i] != cause or i == j:
            continue
        before = event[j] not in (0, cause) and time[j] <= time[i]
        after = time[j] > time[i] or (time[j] == time[i] and event[j] == 0)
        if not (before or after):
            continue
        own = censoring(time[i])
        pair = weight[i] * weight[j] / (own * (own if after else censoring(time[j])))
        total += pair
        concordant += pair * (0.5 if risk[i] == risk[j] else float(risk[i] > risk[j]))
    return concordant / total


@pytest.mark.parametrize("cause", [1, 2])
@pytest.mark.parametrize("levels", [5, 10**6])
@pytest.mark.parametrize("weighted", [False, True])
def test_concordance_is_that_over_all_pairs(cause, weighted, levels):
    _, y = study(70, n_causes=3)
    risk = np.random.default_rng(0).integers(0, levels, 70).astype(float)
    weight = weights(70) if weighted else None
    expected = plain_concordance(y, risk, cause, np.ones(70) if weight is None else weight)
    found = concordance_index_cause(y, risk, cause, sample_weight=weight)
    assert found == pytest.approx(expected, rel=1e-12)


def test_the_brier_score_is_that_of_the_definition():
    X, y = study(70)
    tree = CompetingRisksTree(max_depth=2).fit(X, y)
    at = [0.1, 0.5, 1.0]
    incidence = tree.predict_cumulative_incidence(X, 2, times=at)
    time, event = y["time"].to_numpy(), y["event"].to_numpy()

    def censoring(t, strictly):
        value = 1.0
        for u in np.unique(time[event == 0]):
            if u < t or (u == t and not strictly):
                here = ((time == u) & (event == 0)).sum()
                value *= 1 - here / ((time > u).sum() + here)
        return value

    for k, t in enumerate(at):
        total = 0.0
        for i in range(70):
            if time[i] <= t and event[i] > 0:
                error = (event[i] == 2) - incidence[i, k]
                total += error**2 / censoring(time[i], strictly=True)
            elif time[i] > t:
                total += incidence[i, k] ** 2 / censoring(t, strictly=False)
        found = brier_score_cause(y, y, incidence, at, cause=2)[k]
        assert found == pytest.approx(total / 70, rel=1e-12)


def test_wrong_arguments_of_the_metrics_are_named():
    _, y = study(20)
    with pytest.raises(ValueError, match="no pair is comparable"):
        concordance_index_cause(y.assign(event=0), np.arange(20.0))
    with pytest.raises(ValueError, match=r"not supported by concordance_index_cause; use log_like"):
        concordance_index_cause(y.assign(entry=y["time"] / 2), np.arange(20.0))
    with pytest.raises(ValueError, match=r"incidence has shape \(20, 2\).*\(20, 1\)"):
        brier_score_cause(y, y, np.zeros((20, 2)), [0.1])
    with pytest.raises(ValueError, match=r"outside \[0, 1\] in row 3"):
        brier_score_cause(y, y, np.where(np.arange(20) == 3, 2.0, 0.0)[:, None], [0.1])


# What the tree shares with all trees


@pytest.mark.parametrize("curve", ["aalen-johansen", "proportional"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_saved_tree_predicts_the_same(tmp_path, curve, weighted):
    X, y = study(entry=weighted)
    shrinkage = 3.0 if curve == "proportional" else 0.0
    tree = CompetingRisksTree(max_depth=2, leaf_curve=curve, shrinkage=shrinkage)
    tree.fit(X, y, weights() if weighted else None)
    save_model(tree, tmp_path / "tree.json")
    loaded = load_model(tmp_path / "tree.json")
    for cause in (1, 2):
        np.testing.assert_array_equal(loaded.predict(X, cause), tree.predict(X, cause))
        np.testing.assert_array_equal(
            loaded.predict_cumulative_incidence(X, cause),
            tree.predict_cumulative_incidence(X, cause),
        )
    assert loaded.describe() == tree.describe()


def test_contradictions_in_a_file_are_found():
    X, y = study()
    given = json.loads(CompetingRisksTree(max_depth=1).fit(X, y).to_json())
    causes = given["leaves"]["of_cause"]
    causes[0], causes[1] = causes[1], causes[1]
    with pytest.raises(ModelFormatError, match="not those of any cause"):
        CompetingRisksTree.from_json(json.dumps(given))


@pytest.mark.parametrize(
    ("parameters", "change", "message"),
    [
        (
            {"n_causes": 3},
            lambda leaves: leaves["of_cause"].append(leaves["of_cause"][2]),
            "of_cause has 4 entries, which is not the parameter n_causes",
        ),
        (
            {"n_causes": 3, "cause_weights": [1, 1, 2]},
            lambda leaves: leaves["of_cause"].pop(),
            "of_cause has 2 entries, which is not the parameter n_causes",
        ),
        (
            {"cause_weights": [1, 2]},
            lambda leaves: leaves["of_cause"].append(leaves["of_cause"][1]),
            "of_cause has 3 entries, which is not the parameter cause_weights",
        ),
        (
            {},
            lambda leaves: leaves["of_cause"][1].update(prior=3.0),
            r"of_cause\[1\]\.prior is not that of the other causes",
        ),
        (
            {"leaf_curve": "proportional"},
            lambda leaves: leaves["of_cause"][1].update(shrinkage=3.0),
            r"of_cause\[1\]\.shrinkage is not that of the other causes",
        ),
        (
            {"prior": 2},
            lambda leaves: [one.update(prior=3.0) for one in leaves["of_cause"]],
            r"of_cause\[0\]\.prior is not the parameter",
        ),
    ],
)
def test_causes_of_a_file_agree_with_each_other_and_the_parameters(parameters, change, message):
    X, y = study()
    given = json.loads(CompetingRisksTree(max_depth=1, **parameters).fit(X, y).to_json())
    CompetingRisksTree.from_json(json.dumps(given))
    change(given["leaves"])
    with pytest.raises(ModelFormatError, match=rf"^leaves\.{message}"):
        CompetingRisksTree.from_json(json.dumps(given))


@pytest.mark.parametrize("changed", ["any_cause", "of_cause"])
@pytest.mark.parametrize("change", [lambda entry: None, lambda entry: [0.0] * len(entry)])
def test_rows_in_a_file_enter_at_the_same_times_for_every_cause(change, changed):
    X, y = study(entry=True)
    given = json.loads(CompetingRisksTree(max_depth=1).fit(X, y).to_json())
    part = given["leaves"][changed]
    leaf = (part[1] if changed == "of_cause" else part)["rows"]["leaves"][0]
    leaf["entry_times"] = change(leaf["entry_times"])
    with pytest.raises(ModelFormatError, match=r"of_cause\[[01]\]\.rows\.leaves: entry_times"):
        CompetingRisksTree.from_json(json.dumps(given))


def test_survival_in_a_file_goes_with_the_incidences():
    X, y = study(entry=True)
    given = json.loads(CompetingRisksTree(max_depth=1).fit(X, y).to_json())
    curves = given["leaves"]["any_cause"]["estimates"]["leaves"][0]
    # A step that moves to another time at which an event of the leaves happened.
    own, every = curves["event_times"], given["leaves"]["any_cause"]["estimates"]["baseline"]
    between = [
        (k, t)
        for t in every["event_times"]
        for k in range(1, len(own) - 1)
        if own[k - 1] < t < own[k]
    ]
    place, time = between[0]
    own[place] = time
    with pytest.raises(ModelFormatError, match="survival and incidences do not sum to 1"):
        CompetingRisksTree.from_json(json.dumps(given))


@pytest.mark.parametrize("curve", ["aalen-johansen", "proportional"])
def test_verify_recomputes_the_tree_and_finds_changes(curve):
    X, y = study(entry=True)
    tree = CompetingRisksTree(max_depth=2, leaf_curve=curve, cause_weights=[1, 0.5])
    tree.fit(X, y, weights())
    found = verify(tree, X, y, sample_weight=weights())
    assert found.ok, found
    assert {check.name for check in found.checks} >= {"incidences", "objective value"}
    object.__setattr__(tree.leaves_.of_cause[1], "theta", tree.theta_[1] * 1.001)
    again = verify(tree, X, y, sample_weight=weights())
    failed = {check.name for check in again.checks if check.result == "failed"}
    assert "predictions, cause 2" in failed


def test_sizes_neighbours_and_stability_are_those_of_any_searched_tree():
    X, y = study()
    tree = CompetingRisksTree(max_depth=2).fit(X, y)
    path = tree.size_path(X, y)
    assert [one.n_leaves_ for one in path] == [1, 2, 3, 4]
    assert path[-1].objective_value_ == pytest.approx(tree.objective_value_, rel=1e-12)
    assert (alternatives(tree, X, y)["difference"] >= -1e-12).all()
    near = near_optimal_trees(tree, X, y, epsilon=0.001)
    assert tree.objective_value_ == pytest.approx(near[0].objective_value_, rel=1e-12)
    assert stability(tree, X, y, n_resamples=3).columns["root"].sum() == pytest.approx(1.0)
    search = TreeSizeCV(CompetingRisksTree(max_depth=2), cv=3, random_state=0).fit(X, y)
    scores = [
        one.score(X.iloc[test], y.iloc[test]) for one, test in [(path[1], np.arange(0, 150, 3))]
    ]
    assert 0.5 < scores[0] <= 1
    assert 0.5 < search.best_score_ <= 1


def test_the_leaf_table_has_events_and_incidences_of_every_cause():
    X, y = study()
    tree = CompetingRisksTree(max_depth=1).fit(X, y)
    table = tree.leaf_table(times=[1.0])
    assert (table["n_events_1"] + table["n_events_2"] == table["n_events"]).all()
    assert table["n_events"].sum() == (y["event"] > 0).sum()
    total = table["incidence_1_1"] + table["incidence_2_1"] + table["event_free_1"]
    np.testing.assert_allclose(total, 1.0, atol=1e-12)
