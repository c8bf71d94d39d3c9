"""``bristlecone fit --tune``: the number of leaves by cross-validation."""

import re
import warnings

import numpy as np
import pytest
from command_line import refused, run, study_folder, table_of
from survival_rows import sample

from bristlecone import OptimalSurvivalTree
from bristlecone._model.registry import load_model
from bristlecone.datasets import load
from bristlecone.tune import TreeSizeCV


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return study_folder(tmp_path, monkeypatch)


def sizes_of(out):
    """Title and rows of the table, and the chosen number of leaves."""
    table = out.partition("\n\n")[0].splitlines()
    rows = [line.split() for line in table[1:]]
    (chosen,) = [int(row[0]) for row in rows if row[-1] == "chosen"]
    return table[0], np.array([row[:3] for row in rows], dtype=float), chosen


def test_scores_by_size_are_printed_above_the_chosen_tree_which_is_saved(capsys, folder):
    status, out, err = run(capsys, "fit", "gbsg2", "--tune", "--max-depth", 2, "--model", "m.json")
    assert (status, err) == (0, "")
    data = load("gbsg2")
    search = TreeSizeCV(OptimalSurvivalTree(max_depth=2)).fit(data.X, data.y)
    title, rows, chosen = sizes_of(out)
    assert title == "leaves        score  standard error"
    results = search.cv_results_
    assert rows[:, 0].tolist() == results["n_leaves"].tolist()
    np.testing.assert_allclose(rows[:, 1], results["mean_test_score"], atol=5e-5)
    np.testing.assert_allclose(rows[:, 2], results["se_test_score"], atol=5e-5)
    assert chosen == search.best_n_leaves_
    assert "\n\ngbsg2: 686 rows, 299 events, 8 columns\n\n" in out
    saved = load_model("m.json")
    np.testing.assert_array_equal(saved.predict(data.X), search.predict(data.X))
    assert saved.max_leaf_nodes == chosen
    assert float(table_of(out)["objective"]) == pytest.approx(saved.objective_value_, rel=1e-9)


def test_options_are_those_of_the_search(capsys):
    data = load("veterans")
    for options, parameters in [
        (("--rule", "best"), {"rule": "best"}),
        (("--folds", 3, "--repeats", 2, "--scoring", "likelihood"), {"cv": 3, "n_repeats": 2}),
    ]:
        _, out, _ = run(capsys, "fit", "veterans", "--tune", "--max-depth", 2, *options)
        if "cv" in parameters:
            parameters["scoring"] = "likelihood"
        search = TreeSizeCV(OptimalSurvivalTree(max_depth=2), **parameters).fit(data.X, data.y)
        title, rows, chosen = sizes_of(out)
        assert ("likelihood" in title) == ("scoring" in parameters)
        np.testing.assert_allclose(rows[:, 1], search.cv_results_["mean_test_score"], atol=5e-5)
        assert chosen == search.best_n_leaves_


@pytest.mark.parametrize("estimator", ["greedy", "classifier", "regressor", "policy", "fair"])
def test_every_tree_with_sizes_can_be_tuned(capsys, folder, estimator):
    X, y = sample(90)
    X["dead"], X["time"] = y["dead"].astype(int), y["months"]
    X["arm"], X["p"] = np.arange(90) % 2, 0.5
    X.to_csv(folder / "rows.csv", index=False)
    roles = {
        "greedy": ("--event", "dead", "--time", "time", "--drop", "arm", "p"),
        "classifier": ("--target", "dead", "--drop", "time", "arm", "p"),
        "regressor": ("--target", "time", "--drop", "dead", "arm", "p"),
        "fair": (
            "--target",
            "dead",
            "--sensitive",
            "arm",
            "--fairness-limit",
            "0.05",
            "--drop",
            "time",
            "p",
        ),
        "policy": (
            *("--target", "time", "--treatment", "arm", "--propensity", "p"),
            *("--reward", "inverse-propensity", "--drop", "dead"),
        ),
    }
    command = ("fit", "rows.csv", "--estimator", estimator, *roles[estimator])
    status, out, err = run(capsys, *command, "--tune", "--folds", 3, "--max-depth", 2)
    assert (status, err) == (0, "")
    assert sizes_of(out)[1].shape[1] == 3


def test_progress_counts_the_searches(capsys):
    _, _, err = run(
        capsys, "fit", "veterans", "--tune", "--folds", 2, "--max-depth", 1, "--progress"
    )
    shown = [line.rstrip() for line in err.split("\r")[1:]]
    # The callback is called at most every tenth of a second.
    assert re.fullmatch(r"[\d.]+ s: 1 of 3 searches, about \S+ \S+ left", shown[0])
    assert all(re.match(r"[\d.]+ s: \d of 3 searches", text) for text in shown)
    assert err.endswith("\n")


def test_a_warning_of_every_fold_is_printed_once(capsys, folder):
    X, y = sample(60)
    X["event"], X["time"], X["x0"] = y["dead"].astype(int), y["months"], 1
    X[["x0", "event", "time"]].to_csv(folder / "flat.csv", index=False)
    with warnings.catch_warnings():
        status, out, err = run(capsys, "fit", "flat.csv", "--tune", "--folds", 3)
    assert status == 0
    assert sizes_of(out)[2] == 1
    assert len(err.splitlines()) == len(set(err.splitlines())) == 1


def test_ctrl_c_in_a_fold_ends_the_command_without_a_file(capsys, folder, monkeypatch):
    def interrupted(tree, *_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(OptimalSurvivalTree, "size_path", interrupted)
    status, out, _ = run(capsys, "fit", "veterans", "--tune", "--model", "m.json")
    assert (status, out) == (130, "")
    assert not (folder / "m.json").exists()


@pytest.mark.parametrize(
    ("options", "reported"),
    [
        (("--folds", 3), "--folds needs --tune"),
        (("--rule", "best"), "--rule needs --tune"),
        (("--tune", "--folds", 1), "argument --folds: must be at least 2; got 1"),
        (("--tune", "--repeats", 0), "argument --repeats: must be at least 1; got 0"),
        (("--tune", "--rule", "least"), "argument --rule: invalid choice: 'least'"),
        (("--tune", "--estimate"), "--estimate cannot be used with --tune"),
        (("--tune", "--scoring", "speed"), "'speed' is not a metric"),
        (
            ("--tune", "--scoring", "roc_auc"),
            "--scoring roc_auc cannot score an OptimalSurvivalTree",
        ),
        (
            ("--estimator", "soft", "--tune"),
            "--estimator soft has no option --tune; it is an option of survival",
        ),
    ],
)
def test_wrong_options_are_refused(capsys, folder, options, reported):
    assert reported in refused(capsys, folder, "fit", "veterans", *options)


def test_metrics_without_delayed_entry_name_those_that_accept_it(capsys, folder):
    rows = "\n".join(f"{k % 3},{5 + k},{k % 2},{k % 7}" for k in range(30))
    (folder / "late.csv").write_text(f"entry,time,event,x\n{rows}\n")
    options = "--tune", "--scoring", "ibs", "--entry", "entry"
    error = refused(capsys, folder, "fit", "late.csv", *options)
    assert "y has delayed entry" in error and "use the metric concordance or likelihood" in error
