"""The benchmark harness runs, and its checks notice what they are there for. Nothing is timed."""

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
    # Ties, and a last time that is censored.
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


def test_scores_on_new_rows_know_a_good_tree_from_none(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.generalise.survival import run_cell

    rng = np.random.default_rng(0)
    sick = rng.random(300) < 0.5
    died = rng.exponential(np.where(sick, 1.0, 10.0))
    left = rng.exponential(10.0, 300)
    frame = pd.DataFrame({"sick": np.where(sick, "yes", "no"), "noise": rng.random(300)})
    data = frame, died <= left, np.minimum(died, left)
    tree, single = (run_cell(data, {"max_depth": depth}, 5, 0) for depth in (1, 0))
    assert tree["c"] > 0.65 and single["c"] == 0.5
    assert tree["nll"] < single["nll"] - 0.2 and tree["ibs"] < single["ibs"] - 0.01
    assert tree["calibration"] < 0.1
    assert (tree["leaves"], single["leaves"]) == (2, 1)


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

    main(["--repeats", "1", "--out", str(tmp_path)])
    (written,) = tmp_path.glob("*.json")
    found = json.loads(written.read_text(encoding="utf-8"))
    assert all(one["holds"] for one in found["verify"].values())
    assert not kept(found | {"stability_seconds": 6.0})


def test_thresholds_are_compared_on_held_out_rows_or_forecast(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks.thresholds import report, run

    found = run("wine", "ensemble", 1, most_seconds=60)
    assert found["features"] < 30 and 0.5 < found["score"] < 1 and found["objective"] < 0.5
    told = run("wine", "midpoints", 3, most_seconds=0)
    assert told["features"] > 1000 and "objective" not in told
    assert "| wine | 178 | 1 | ensemble |" in report({"date": "today", "runs": [found, told]})


def test_files_that_are_timed_are_read_as_pandas_reads_them(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks import reading

    # The frames are compared where they are read.
    found = reading.measure(300, 1)
    assert [one["file"] for one in found] == list(reading.KINDS)
    record = {"date": "2000-01-01", "rows": 300, "repeats": 1, "pandas": "3", "files": found}
    assert "| commas | 0 |" in reading.report(record)
