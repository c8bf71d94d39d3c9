"""The benchmark harness runs, and its checks notice what they are there for. Nothing is timed."""

import copy
import json
import subprocess
import sys
from pathlib import Path

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
