"""The harness of the soft-tree studies runs and resumes. Neither times nor scores are checked."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bristlecone.datasets import load

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parent.parent


@pytest.fixture
def soft(monkeypatch):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks import soft

    return soft


@pytest.fixture
def folder(tmp_path):
    """A folder with veterans.csv in the form that the study reads."""
    data = load("veterans")
    event, time = (data.y[name] for name in data.y.dtype.names)
    data.X.assign(event=event.astype(int), time=time).to_csv(tmp_path / "veterans.csv", index=False)
    return tmp_path


def test_study_writes_every_cell_and_goes_on_where_it_stopped(soft, folder, capsys):
    arguments = ["study", "--data", str(folder), "--out", str(folder), "--sets", "veterans"]
    arguments += ["--starts", "1", "--date", "2000-01-01"]
    assert soft.main([*arguments, "--cells", "1"]) == 0
    path = folder / "2000-01-01-soft.json"
    first = json.loads(path.read_text())["results"]
    assert list(first) == ["veterans log-logistic depth 2"]
    assert soft.main([*arguments, "--cells", "2", "--seconds", "0"]) == 0
    assert json.loads(path.read_text())["results"] == first
    assert soft.main([*arguments, "--cells", "2"]) == 0
    results = json.loads(path.read_text())["results"]
    assert results["veterans log-logistic depth 2"] == first["veterans log-logistic depth 2"]
    assert len(results) == 2
    for result in results.values():
        assert set(result["mean"]) == {"harrell", "uno", "auc", "ibs"}
        assert all(0 < value < 1 for value in result["mean"].values())
    report = path.with_suffix(".md").read_text()
    assert report in capsys.readouterr().out
    assert "within 0.02 of the published Llog or better on 1 of 1 sets" in report


def test_scaling_reports_every_size(soft, tmp_path):
    assert soft.main(["scaling", "--rows", "150", "300", "--out", str(tmp_path)]) == 0
    (path,) = tmp_path.glob("*-soft-scaling.json")
    assert list(json.loads(path.read_text())["results"]) == ["150", "300"]


def test_values_missing_in_test_rows_only_are_filled_in(soft):
    train = pd.DataFrame({"a": [1.0, 3.0], "b": ["x", "x"]})
    test = pd.DataFrame({"a": [np.nan, 5.0], "b": [None, "y"]})
    filled = soft.completed(train, test)
    assert filled["a"].tolist() == [2.0, 5.0] and filled["b"].tolist() == ["x", "y"]


def test_leaves_reports_shares_and_concordance_of_every_set(monkeypatch, tmp_path, folder):
    monkeypatch.syspath_prepend(ROOT)
    from benchmarks import soft, soft_leaves

    veterans = soft.load(
        {"source": "file", "file": "veterans.csv", "event": "event", "time": "time"}, folder
    )
    monkeypatch.setattr(soft_leaves, "drawn", lambda name: veterans)
    arguments = ["--sets", "veteran", "--set", "depth=1", "n_restarts=1", "--out", str(tmp_path)]
    assert soft_leaves.main(arguments) == 0
    (path,) = tmp_path.glob("*-soft-leaves.json")
    found = json.loads(path.read_text())
    assert found["parameters"] == {"depth": 1, "n_restarts": 1}
    assert sum(found["results"]["veteran"]["shares"]) == pytest.approx(1)
    assert 0.5 < found["results"]["veteran"]["concordance"] < 1
    assert "Sets chosen on: " in path.with_suffix(".md").read_text()
