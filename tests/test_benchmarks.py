"""The benchmark harness runs, and its checks detect wrong results. Nothing is timed."""

import copy
import json
import subprocess
import sys
import warnings
from pathlib import Path

import brier_plainly as plain
import numpy as np
import pandas as pd
import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    folder = tmp_path_factory.mktemp("records")
    command = [sys.executable, "-m", "benchmarks.run", "smoke", "--repeats", "2", "--out", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.glob("*-smoke.json")
    assert path.with_suffix(".md").read_text(encoding="utf-8") in done.stdout
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def failures(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.report import failures

    return failures


def test_record_holds_every_depth_and_library_with_the_same_loss(record):
    runs = {(run["max_depth"], run["library"]): run for run in record["runs"]}
    libraries = {library for _, library in runs}
    assert libraries == {"bristlecone", "bristlecone-core:portable"}
    for depth in (1, 2):
        estimator, engine = (runs[depth, library] for library in sorted(libraries))
        assert len(estimator["seconds"]) == len(engine["seconds"]) == 2
        assert estimator["loss"] == pytest.approx(engine["loss"], abs=1e-12)
        assert estimator["fingerprint"] == engine["fingerprint"]
    assert runs[2, "bristlecone"]["loss"] < runs[1, "bristlecone"]["loss"]


def test_loss_of_depth_one_is_the_smallest_over_all_features(record, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.objectives import likelihood
    from benchmarks.problems import build

    problem = build("bernoulli-300x6")
    best = min(likelihood(problem, column) for column in problem.X.T)
    found = [run["loss"] for run in record["runs"] if run["max_depth"] == 1]
    assert found == pytest.approx([best, best], abs=1e-12)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"status": "time_limit"}, "status time_limit"),
        ({"status": "timeout", "seconds": []}, "timeout"),
        ({"reported_objective": 0.0}, "reports 0.0"),
        ({"lower_bound": 0.0}, "lower bound 0.0"),
    ],
)
def test_a_run_without_a_valid_certificate_is_a_failure(record, failures, change, complaint):
    assert failures(record) == []
    spoiled = copy.deepcopy(record)
    spoiled["runs"][0].update(change)
    (found,) = failures(spoiled)
    assert complaint in found


def test_a_better_tree_of_another_library_is_a_failure(record, failures):
    spoiled = copy.deepcopy(record)
    spoiled["runs"][1].update(library="peer", loss=spoiled["runs"][1]["loss"] - 1e-8)
    (found,) = failures(spoiled)
    assert "peer" in found


def test_brier_loss_is_that_of_the_definition(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.objectives import brier
    from benchmarks.problems import Problem, build

    problem = build("bernoulli-300x6")
    leaves = problem.X[:, 0] + 2 * problem.X[:, 1]
    event, time = problem.target["event"], problem.target["time"]
    # With ties and a censored last time.
    time = np.ceil(8 * time)
    tied = Problem(problem.name, problem.X, {"event": event, "time": time})
    for one in (problem, tied):
        expected = plain.score_of_partition(one.target["time"], event, leaves)
        assert brier(one, leaves) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("objective", ["fair-likelihood", "fair-brier"])
def test_fair_trees_are_scored_by_their_leaves_and_curves(objective, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.adapters import Setting, adapter
    from benchmarks.objectives import OBJECTIVES
    from benchmarks.problems import Problem, build

    problem = build("fair-lung-20")
    trained = adapter("bristlecone")(problem, Setting(objective, 2), "2-threads")
    trained.fit()
    outcome = trained.outcome()
    assert OBJECTIVES[objective](problem, outcome) == pytest.approx(outcome.objective, abs=1e-9)
    strict = Problem("strict", problem.X, problem.target | {"limit": np.array([1e-6])})
    assert OBJECTIVES[objective](strict, outcome) == np.inf


def test_penalties_are_those_of_the_paper(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.objectives import own_penalty, published_penalty
    from benchmarks.problems import build

    problem = build("bernoulli-300x6")
    time = problem.target["time"]
    ours = own_penalty("brier", problem, 0.01)
    assert ours == pytest.approx(0.01 * (time.max() - time.min()) / time.max(), rel=1e-12)
    assert published_penalty(problem, ours) == pytest.approx(0.01, rel=1e-12)
    assert own_penalty("likelihood", problem, 0.01) == 0.01


def test_a_worker_measures_estimator_and_engine_alike(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.problems import build
    from benchmarks.worker import measure

    problem = build("bernoulli-300x6")
    problem.save(tmp_path / "small.npz")
    asked = {
        "path": str(tmp_path / "small.npz"), "variant": "", "repeats": 1, "seconds": 9,
        "objective": "brier", "max_depth": 2, "leaf_penalty": 0.002, "min_samples_leaf": 7,
        "time_limit": None,
    }  # fmt: skip
    runs = [measure({**asked, "library": name}) for name in ("bristlecone", "bristlecone-core")]
    for run in runs:
        assert run["status"] == "optimal"
        assert run["leaves"] > 1
        assert run["reported_objective"] == pytest.approx(run["loss"], abs=1e-12)
    assert runs[0]["loss"] == pytest.approx(runs[1]["loss"], abs=1e-12)


def test_a_stopped_run_passes_only_in_a_study_with_a_limit(record, failures):
    stopped = copy.deepcopy(record)
    run = stopped["runs"][0]
    run.update(status="time_limit", lower_bound=run["loss"] - 0.1)
    assert any("status time_limit" in found for found in failures(stopped))
    stopped["time_limit"] = 10
    assert failures(stopped) == []
    run["lower_bound"] = run["loss"] + 0.1
    (found,) = failures(stopped)
    assert "lower bound" in found


def test_household_rows_are_censored_as_asked(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.problems import household

    for share in (0.2, 0.5, 0.8):
        X, event, time = household(rows=20_000, features=15, censored=share, seed=0)
        assert X.shape == (20_000, 15) and set(np.unique(X)) == {0, 1}
        assert 1 - event.mean() == pytest.approx(share, abs=0.02)
        assert len(np.unique(time)) == 20_000


@pytest.mark.parametrize(
    ("objective", "problem"),
    [
        ("accuracy", "labels-300x6"),
        ("cost-sensitive", "labels-300x6"),
        ("policy", "labels-300x6"),
        ("f1", "labels-binary-300x6"),
        ("demographic-parity", "labels-binary-300x6"),
        ("equality-of-opportunity", "labels-binary-300x6"),
        ("regression", "targets-300x6"),
    ],
)
def test_label_objectives_score_what_the_estimators_report(
    objective, problem, monkeypatch, tmp_path
):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.problems import build
    from benchmarks.worker import measure

    path = tmp_path / f"{problem}.npz"
    build(problem).save(path)
    penalty = 0.01 if objective == "accuracy" else 0.0
    job = {"objective": objective, "max_depth": 2, "leaf_penalty": penalty, "path": str(path)}
    common = {"library": "bristlecone-labels", "variant": "", "repeats": 1, "seconds": 60}
    run = measure({**job, **common, "min_samples_leaf": 1, "time_limit": None})
    assert run["status"] == "optimal"
    assert run["loss"] == pytest.approx(run["reported_objective"], abs=1e-9)
    assert run["loss"] == pytest.approx(run["lower_bound"], abs=1e-9)


def two_risks():
    rng = np.random.default_rng(0)
    sick = rng.random(300) < 0.5
    died = rng.exponential(np.where(sick, 1.0, 10.0))
    left = rng.exponential(10.0, 300)
    frame = pd.DataFrame({"sick": np.where(sick, "yes", "no"), "noise": rng.random(300)})
    return frame, died <= left, np.minimum(died, left)


def test_scores_on_new_rows_know_a_good_tree_from_none(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.generalise.survival import run_cell

    tree, single = (run_cell(two_risks(), {"max_depth": depth}, 5, 0) for depth in (1, 0))
    assert tree["c"] > 0.65 and single["c"] == 0.5
    assert tree["nll"] < single["nll"] - 0.2 and tree["ibs"] < single["ibs"] - 0.01
    assert tree["calibration"] < 0.1
    assert (tree["leaves"], single["leaves"]) == (2, 1)
    assert tree["stability"] == single["stability"] == tree["proven"] == 1


def test_stability_is_the_share_of_pairs_of_rows_that_stay_together(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.generalise.frames import agreement, jaccard

    rng = np.random.default_rng(0)
    trees = [rng.integers(0, 3, 20), rng.integers(5, 9, 20), rng.permutation(20) // 4]
    pairs = [
        {(i, j) for i in range(20) for j in range(i) if leaves[i] == leaves[j]} for leaves in trees
    ]
    expected = [len(pairs[a] & pairs[b]) / len(pairs[a] | pairs[b]) for a, b in ((0, 1), (0, 2))]
    assert [jaccard(trees[0], trees[1]), jaccard(trees[0], trees[2])] == pytest.approx(expected)
    assert agreement([trees[0], trees[0] + 1, trees[0]]) == 1


def test_fewer_training_rows_and_more_censoring_are_as_asked(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.generalise.frames import fewer
    from benchmarks.generalise.survival import censored, run_cell

    _, event, when = two_risks()
    kept, left = censored((event, when), 0.5, 0)
    assert kept.sum() == pytest.approx(event.sum() / 2, rel=0.15)
    assert not (kept & ~event).any() and (left <= when).all() and (left[kept] == when[kept]).all()
    rows = fewer(np.arange(300), 60, 0, event)
    assert len(rows) == 60 and event[rows].sum() == pytest.approx(0.2 * event.sum(), abs=1)
    whole, part = (run_cell(two_risks(), {"max_depth": 1} | c, 5, 0) for c in ({}, {"censor": 0.6}))
    assert part["nll"] != whole["nll"] and part["c"] > 0.6


@pytest.mark.parametrize("truth", ["tree", "linear", "interactions"])
def test_simulated_samples_are_censored_as_named_and_the_truth_is_unbeaten(truth, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.generalise.simulated import load, run_cell, sample

    setting = load(f"{truth}-5000-70", 0, 0)
    X, (event, _) = sample(setting, [0, 0])
    assert X.shape == (5000, 12) and 1 - event.mean() == pytest.approx(0.7, abs=0.03)
    setting = load(f"{truth}-200-30", 0, 0)
    known, tree = (
        run_cell(setting, {"estimator": name, **rest}, 2, 0)
        for name, rest in (("truth", {}), ("greedy", {"max_depth": 2}))
    )
    assert known["ise"] == 0 < tree["ise"] and tree["c"] < known["c"] - 0.01
    assert 0.68 < known["c"] < 0.78 and 0 < tree["stability"] <= 1


@pytest.mark.parametrize("estimator", ["optimal", "cart", "ridge"])
def test_classes_numbers_and_counts_are_scored_for_every_kind_of_model(estimator, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.generalise.labels import load, run_cell

    depth = {} if estimator == "ridge" else {"max_depth": 2}
    scores = [
        run_cell(load(name, 300, 0), {"estimator": estimator} | depth, 3, 0)
        for name in ("sklearn/wine", "friedman/1", "friedman-counts/1")
    ]
    classes, numbers, counts = scores
    assert classes["accuracy"] > 0.8 and classes["log_loss"] < 0.7 and classes["brier"] < 0.4
    assert numbers["r2"] > 0.2 and np.isnan(numbers["d2"]) and counts["d2"] > 0.15
    for score in scores:
        if estimator == "ridge":
            assert np.isnan(score["leaves"]) and np.isnan(score["stability"])
        else:
            assert 3 < score["leaves"] <= 4 and 0.2 < score["stability"] <= 1


def test_leaf_shares_are_smoothed_so_that_every_loss_is_finite(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.generalise.labels import Fitted, class_scores

    y, leaves = np.array([0, 0, 0, 1, 1]), np.array([7, 7, 7, 9, 7])
    model = Fitted(np.zeros(5, int), None, leaves, 2, 1.0)
    found = class_scores(model, y, np.arange(4), np.array([4]))
    # The leaf has three rows of class 0, so its shares are 4/5 and 1/5.
    assert found["log_loss"] == pytest.approx(np.log(5))
    assert found["brier"] == pytest.approx(2 * 0.8**2) and found["accuracy"] == 0


def test_teachers_by_name_take_text_and_weights(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from sklearn.base import clone

    from benchmarks.generalise.frames import PEERS, keywords

    frame, event, when = two_risks()
    for name in PEERS["counts"]:
        teacher = keywords({"estimator": "greedy", "teacher": name}, "counts")["teacher"]
        rate = clone(teacher).fit(frame, event / when, sample_weight=when).predict(frame)
        sick = frame["sick"] == "yes"
        assert rate[sick].mean() == pytest.approx(event[sick].sum() / when[sick].sum(), rel=0.2)
    assert keywords({"teacher": "auto", "train_rows": 9}, "counts") == {"teacher": "auto"}


def test_models_are_varied_under_every_condition_and_named_after_it(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.generalise.cells import chosen_models, with_conditions

    models = {"a": {"max_depth": 1}, "b, 50 training rows": {"train_rows": 50}}
    assert with_conditions(models) == models
    assert with_conditions(models, train_rows=[80], censor=[0.0, 0.5]) == {
        "a, 80 training rows": {"max_depth": 1, "train_rows": 80},
        "b, 80 training rows": {"train_rows": 80},
        "a, 80 training rows, 50% of events censored": {
            "max_depth": 1, "train_rows": 80, "censor": 0.5
        },
        "b, 80 training rows, 50% of events censored": {"train_rows": 80, "censor": 0.5},
    }  # fmt: skip
    assert list(chosen_models(models, ["b*", "a"])) == ["b, 50 training rows", "a"]
    with pytest.raises(ValueError, match="no model matches 'c'"):
        chosen_models(models, ["c"])


def test_a_study_goes_on_where_its_record_ended(monkeypatch, tmp_path, capsys):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.generalise.__main__ import main

    asked = ["classification", "--sets", "sklearn/wine", "sklearn/iris", "--out", str(tmp_path)]
    asked += ["--models", "CART*leaves", "CART", "--train-rows", "50", "90"]
    assert main([*asked, "--repeats", "1"]) == 0
    assert (
        main([*asked, "--repeats", "2", "--together", "classification-A", "classification-B"]) == 0
    )
    shown = capsys.readouterr()
    assert shown.err.count("sklearn/") == 16
    (path,) = tmp_path.glob("*.json")
    text, record = path.with_suffix(".md").read_text("utf-8"), json.loads(path.read_text("utf-8"))
    assert all(len(found) == 2 for found in record["results"].values())
    both = (
        "## Group classification-A and classification-B (sets: 2, divisions: 2, 50 training rows)"
    )
    table = text[text.index(both) :].split("\n")
    assert table[4].startswith("| CART, depth 4, 8 leaves |") and "±" in table[4]
    of_set = [
        [np.mean([d["accuracy"] for d in record["results"][f"sklearn/{name} {model}"]])
         for name in ("wine", "iris")]
        for model in ("CART, depth 4, 8 leaves, 50 training rows", "CART, 50 training rows")
    ]  # fmt: skip
    first, second = np.subtract(*of_set)
    assert f"({(first + second) / 2:+.4f} ± {abs(first - second) / 2:.4f})" in table[4]
    with pytest.raises(SystemExit):
        main([*asked, "--add", 'CART={"estimator": "cart"}'])
    assert "other parameters of 'CART, 50 training rows'" in capsys.readouterr().err


def test_sizes_by_one_search_per_fold_have_the_scores_of_a_grid(monkeypatch, capsys):
    pytest.importorskip("SurvSet")
    warnings.filterwarnings("ignore", "numpy.core", DeprecationWarning)
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.tune import main

    assert main(["--sets", "veteran", "--repeats", "2", "--depth", "1"]) == 0
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "veteran" in line]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[:3] + cells[4:5] + cells[-1:] == ["veteran", "137", "2", "2", "0"]


@pytest.mark.slow
def test_what_is_made_of_a_tree_is_measured(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    pytest.importorskip("jinja2")
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.view import kept, main, report

    main(["--rows", "400", "--repeats", "1", "--out", str(tmp_path)])
    (written,) = tmp_path.glob("*.json")
    found = json.loads(written.read_text(encoding="utf-8"))
    assert found["page_bytes"] < 1_000_000 and "together" in report(found)
    assert not kept(found | {"page_bytes": 2_000_000})


@pytest.mark.slow
def test_second_opinions_are_measured(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.trust import kept, main

    main(["--repeats", "1", "--rows", "2000", "--out", str(tmp_path)])
    (written,) = tmp_path.glob("*.json")
    found = json.loads(written.read_text(encoding="utf-8"))
    assert all(one["holds"] for one in found["verify"].values())
    assert not kept(found | {"stability_seconds": 6.0})


def test_thresholds_are_compared_on_held_out_rows_or_forecast(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.thresholds import report, run

    found = run("wine", "ensemble", 1, most_seconds=60)
    assert found["features"] < 30 and 0.5 < found["score"] < 1 and found["objective"] < 0.5
    reported = run("wine", "midpoints", 3, most_seconds=0)
    assert reported["features"] > 1000 and "objective" not in reported
    assert "| wine | 178 | 1 | ensemble |" in report({"date": "today", "runs": [found, reported]})


def test_files_that_are_timed_are_read_as_pandas_reads_them(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks import reading

    # The frames are compared in the function that reads them.
    found = reading.measure(300, 1)
    assert [one["file"] for one in found] == list(reading.KINDS)
    record = {"date": "2000-01-01", "rows": 300, "repeats": 1, "pandas": "3", "files": found}
    assert "| commas | 0 |" in reading.report(record)


def test_causes_are_measured_beside_the_survival_tree_of_the_same_rows():
    from benchmarks.causes import compare, report

    runs = compare(120, 2, [1, 2], repeats=1)
    assert [run["causes"] for run in runs] == [1, 2]
    assert not any(run["wrong"] for run in runs)
    text = report({"date": "2026-01-01", "runs": runs})
    assert "| 120 |" in text
    assert "wrong" not in text
