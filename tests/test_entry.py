"""Delayed entry: outcomes with ``entry`` in the estimators, the score and the command line."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from pace import slow_but
from papers import PAPERS
from survival_rows import assert_same_predictions, sample

from bristlecone import curves
from bristlecone._cli import main
from bristlecone._data.outcomes import check_survival
from bristlecone._data.survival import check_training_data
from bristlecone._estimators.greedy import GreedySurvivalTree
from bristlecone._estimators.survival import OptimalSurvivalTree
from bristlecone._model.registry import dumps, load_model, loads
from bristlecone.metrics import concordance_index_censored


def with_entry(y, entry):
    late = np.empty(len(y), dtype=[("dead", bool), ("months", float), ("entry", float)])
    late["dead"], late["months"] = y["dead"], y["months"]
    late["entry"] = entry
    return late


def late_sample(n=60, seed=0):
    """Rows as in ``sample``; most enter after time 0."""
    X, y = sample(n, seed)
    y = y[kept := y["months"] > 0]
    share = np.random.default_rng(seed).uniform(-0.3, 0.9, size=len(y)).clip(0)
    return X[kept], with_entry(y, np.floor(share * y["months"]))


def direct_hazard(event, time, entry, weight):
    """Λ at any time, row by row, by its definition."""

    def hazard(t):
        return sum(
            weight[event & (time == u)].sum() / weight[(entry < u) & (u <= time)].sum()
            for u in np.unique(time[event])
            if u <= t
        )

    return hazard


def direct_loss(groups, y, weight):
    """Loss of Huisman et al. (AAAI-24), eq. 20, with the hazard between entry and time."""
    event, time, entry = y["dead"], y["months"], y["entry"]
    at = direct_hazard(event, time, entry, weight)
    hazard = np.array([at(t) - at(v) for t, v in zip(time, entry, strict=True)])
    hazard[hazard <= 0] = 1 / (weight.sum() + 1)
    loss = 0.0
    for group in groups:
        events = weight[group & event].sum()
        if events:
            loss -= (weight * np.log(hazard))[group & event].sum()
            loss -= events * np.log(events / (weight * hazard)[group].sum())
    return loss / weight.sum()


@pytest.mark.parametrize("weighted", slow_but({True}, [False, True]))
def test_optimum_is_the_best_of_all_trees_evaluated_directly(weighted):
    X, y = late_sample()
    B = np.hstack([X.to_numpy() > 0, X.to_numpy()[:, :2] > 0.7])
    weight = np.random.default_rng(1).uniform(0.2, 3.0, len(y)) if weighted else np.ones(len(y))
    model = OptimalSurvivalTree(max_depth=2, max_leaf_nodes=3, **PAPERS)
    model.fit(B, y, sample_weight=weight if weighted else None)
    columns = range(B.shape[1])
    every = np.ones(len(y), dtype=bool)
    trees = [[every], *([B[:, c], ~B[:, c]] for c in columns)]
    for one, other in itertools.product(columns, columns):
        for side in (B[:, one], ~B[:, one]):
            trees.append([~side, side & B[:, other], side & ~B[:, other]])
    best = min(direct_loss(groups, y, weight) for groups in trees)
    assert model.status_ == "optimal"
    assert model.objective_value_ == pytest.approx(best, rel=1e-12)
    found = [model.apply(B) == leaf.node for leaf in model.leaf_statistics_]
    assert direct_loss(found, y, weight) == pytest.approx(best, rel=1e-12)


def test_leaves_and_baseline_follow_the_risk_sets():
    X, y = late_sample()
    model = OptimalSurvivalTree(max_depth=2, **PAPERS).fit(X, y)
    at = direct_hazard(y["dead"], y["months"], y["entry"], np.ones(len(y)))
    expected = [at(t) for t in model.unique_times_]
    np.testing.assert_allclose(model.baseline_.cumulative_hazard, expected, rtol=1e-12)
    hazard = np.array([at(t) - at(v) for t, v in zip(y["months"], y["entry"], strict=True)])
    floored = np.where(hazard > 0, hazard, 1 / (len(y) + 1))
    assert (hazard == 0).any()
    assert model.n_leaves_ > 2
    for leaf in model.leaf_statistics_:
        rows = model.apply(X) == leaf.node
        assert leaf.hazard == pytest.approx(floored[rows].sum(), rel=1e-12)
        assert leaf.theta == (leaf.events or 0.5) / leaf.hazard
        own = curves.kaplan_meier(y[rows]), curves.nelson_aalen(y[rows])
        np.testing.assert_array_equal(leaf.kaplan_meier, own[0](leaf.event_times))
        np.testing.assert_array_equal(leaf.nelson_aalen, own[1](leaf.event_times))


def test_entry_at_zero_is_no_entry():
    X, y = late_sample()
    plain = y[["dead", "months"]]
    model = OptimalSurvivalTree(max_depth=2).fit(X, plain)
    same = OptimalSurvivalTree(max_depth=2).fit(X, with_entry(plain, 0.0))
    assert_same_predictions(model, same, X)
    assert same.objective_value_ == model.objective_value_
    assert same.score(X, with_entry(plain, 0.0)) == model.score(X, plain)
    late = OptimalSurvivalTree(max_depth=2).fit(X, y)
    assert abs(late.objective_value_ - model.objective_value_) > 1e-3


def test_a_fit_whose_late_rows_weigh_nothing_is_the_fit_without_them():
    X, y = sample(40)
    late = np.arange(len(y)) % 5 == 0
    tree = OptimalSurvivalTree(max_depth=2)
    given = tree.fit(X, with_entry(y, np.where(late, y["months"] / 2, 0.0)), ~late)
    entered = given.certificate_.fingerprint
    assert entered == tree.fit(X, y, ~late).certificate_.fingerprint


def test_rows_cut_in_two_at_a_time_have_the_same_curves():
    X, y = late_sample()
    y["entry"] = 0.0
    cut = y["months"] > 5
    before, after = y.copy(), y[cut]
    before["dead"] &= ~cut
    before["months"] = np.minimum(before["months"], 5)
    after["entry"] = 5.0
    model = OptimalSurvivalTree(max_depth=0)
    (whole,) = model.fit(X, y).leaf_statistics_
    (parts,) = model.fit(pd.concat([X, X[cut]]), np.concatenate([before, after])).leaf_statistics_
    assert parts.n_samples > whole.n_samples
    np.testing.assert_array_equal(parts.event_times, whole.event_times)
    np.testing.assert_allclose(parts.kaplan_meier, whole.kaplan_meier, rtol=1e-12)
    np.testing.assert_allclose(parts.nelson_aalen, whole.nelson_aalen, rtol=1e-12)


def test_integer_weights_equal_repetition_and_the_order_of_rows_does_not_matter():
    X, y = late_sample()
    times = np.random.default_rng(1).integers(0, 4, size=len(X))
    model = OptimalSurvivalTree(max_depth=2, **PAPERS)
    weighted = model.fit(X, y, sample_weight=times)
    repeated = OptimalSurvivalTree(max_depth=2, **PAPERS).fit(
        X.iloc[np.repeat(np.arange(len(X)), times)], np.repeat(y, times)
    )
    assert_same_predictions(weighted, repeated, X, rtol=1e-12)
    order = np.random.default_rng(3).permutation(len(X))
    one = OptimalSurvivalTree(max_depth=2).fit(X, y)
    other = OptimalSurvivalTree(max_depth=2).fit(X.iloc[order], y[order])
    assert_same_predictions(one, other, X, rtol=1e-12)


def test_every_size_is_the_fit_of_that_size():
    X, y = late_sample()
    for tree in OptimalSurvivalTree(max_depth=2).size_path(X, y):
        alone = OptimalSurvivalTree(max_depth=2, max_leaf_nodes=tree.max_leaf_nodes).fit(X, y)
        assert tree.objective_value_ == pytest.approx(alone.objective_value_, rel=1e-12)


def test_every_form_of_outcomes_takes_an_entry():
    X, y = late_sample(n=20)
    columns = {"event": y["dead"], "time": y["months"], "entry": y["entry"]}
    renamed = {"status": y["dead"].astype(int), "entry": y["entry"], "days": y["months"]}
    for form in (y, pd.DataFrame(columns), pl.DataFrame(columns), pd.DataFrame(renamed)):
        event, time, entry = check_survival(form)
        np.testing.assert_array_equal(event, y["dead"])
        np.testing.assert_array_equal(time, y["months"])
        np.testing.assert_array_equal(entry, y["entry"])
        assert entry.dtype == np.float64 and entry.flags.c_contiguous
    kept = np.arange(len(y)) % 3 > 0
    data = check_training_data(X, y, kept.astype(float))
    np.testing.assert_array_equal(data.entry, y["entry"][kept])


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (-1.0, "entry' of y is -1.0 in row 7; times must be finite and not negative"),
        (np.nan, "entry' of y is (nan|missing) in row 7"),
        (np.inf, "entry' of y is inf in row 7"),
        (9.0, "entry' of y is 9.0 in row 7, but the time is 9.0; a row must enter before"),
        (10.0, "is 10.0 in row 7, but the time is 9.0"),
    ],
)
def test_impossible_entries_name_field_and_row(wrong, message):
    X, y = late_sample(n=20)
    y["months"][7], y["entry"][7] = 9.0, wrong
    with pytest.raises(ValueError, match=message):
        OptimalSurvivalTree().fit(X, y)
    frame = pd.DataFrame({"event": y["dead"], "time": y["months"], "entry": y["entry"]})
    with pytest.raises(ValueError, match=f"column '.*{message}"):
        OptimalSurvivalTree().fit(X, frame)


def test_a_greedy_tree_refuses_entries_and_scores_with_them():
    X, y = late_sample()
    with pytest.raises(
        ValueError, match=r"delayed entry, which GreedySurvivalTree .*OptimalSurvivalTree"
    ):
        GreedySurvivalTree().fit(X, y)
    model = GreedySurvivalTree(max_depth=2).fit(X, y[["dead", "months"]])
    assert model.score(X, y) != model.score(X, y[["dead", "months"]])


@pytest.mark.parametrize("ties", ["sksurv", "paper"])
def test_concordance_compares_an_event_with_the_rows_under_observation(ties):
    _, y = late_sample()
    event, time, entry = y["dead"], y["months"], y["entry"]
    risk = np.random.default_rng(2).integers(0, 6, size=len(y))
    concordant = discordant = tied = same_time = 0
    for i, j in itertools.permutations(range(len(y)), 2):
        at_once = time[i] == time[j] and not event[j] and ties == "sksurv"
        if event[i] and (time[i] < time[j] or at_once) and entry[j] < time[i]:
            concordant += risk[i] > risk[j]
            discordant += risk[i] < risk[j]
            tied += risk[i] == risk[j]
            same_time += at_once
    found = concordance_index_censored(event, time, risk, ties=ties, entry=entry)
    pairs = concordant + discordant + tied
    assert found[1:] == (concordant, discordant, tied, same_time)
    assert found.cindex == pytest.approx((concordant + 0.5 * tied) / pairs, rel=1e-14)
    assert found.discordant < concordance_index_censored(event, time, risk, ties=ties).discordant
    with pytest.raises(ValueError, match=r"entry is 99\.0 in row 3, but the time is"):
        concordance_index_censored(event, time, risk, entry=np.where(np.arange(len(y)) == 3, 99, 0))
    with pytest.raises(ValueError, match="no pair is comparable"):
        concordance_index_censored([True, False], [1.0, 2.0], [0, 1], entry=[0.0, 1.0])


def test_score_is_the_concordance_with_entries():
    X, y = late_sample()
    model = OptimalSurvivalTree(max_depth=2).fit(X, y)
    event, time, entry = y["dead"], y["months"], y["entry"]
    expected = concordance_index_censored(event, time, model.predict(X), entry=entry).cindex
    assert model.score(X, y) == expected
    assert expected != model.score(X, y[["dead", "months"]])


@pytest.mark.parametrize("leaf_curve", ["proportional", "kaplan-meier"])
def test_saved_models_predict_the_same(leaf_curve):
    X, y = late_sample()
    weight = np.random.default_rng(5).uniform(0.1, 1.0, size=len(X))
    model = OptimalSurvivalTree(max_depth=2, leaf_curve=leaf_curve).fit(X, y, sample_weight=weight)
    assert_same_predictions(model, loads(dumps(model)), X)


# Command line


@pytest.fixture
def study(tmp_path, monkeypatch):
    X, y = late_sample()
    monkeypatch.chdir(tmp_path)
    X.assign(dead=y["dead"].astype(int), months=y["months"], since=y["entry"]).to_csv(
        "study.csv", index=False
    )
    return X, y


FIT = ("fit", "study.csv", "--time", "months", "--event", "dead")


def test_the_command_line_takes_a_column_of_entries(study, capsys):
    X, y = study
    assert main([*FIT, "--entry", "since", "--max-depth", "2", "--model", "m.json"]) == 0
    assert capsys.readouterr().out.startswith("study.csv: ")
    model = load_model("m.json")
    assert model.feature_names_in_.tolist() == X.columns.tolist()
    read = pd.read_csv("study.csv")[X.columns]
    assert_same_predictions(OptimalSurvivalTree(max_depth=2).fit(read, y), model, read)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--entry", "sinse"), "--entry: the data have no column 'sinse'; did you mean 'since'?"),
        (("--entry", "months"), "--time and --entry are the same column 'months'"),
        (("--entry", "since", "--drop", "since"), "--drop: 'since' is the column of --entry"),
        (("--entry", "x0"), "column 'x0' is -"),
        (("--entry", "text"), "study.csv, line 2, column 'text': 'a' is not a number"),
        (("--entry", "late"), "study.csv, line 2: column 'late' is 60.0, but the time"),
    ],
)
def test_impossible_columns_of_entries_are_refused(study, capsys, options, message):
    pd.read_csv("study.csv").assign(text="a", late=60).to_csv("study.csv", index=False)
    assert main([*FIT, *options]) == 2
    assert message in capsys.readouterr().err
