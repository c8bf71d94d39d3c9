"""Models of every estimator on the command line.

``show`` and ``predict`` read any saved model. Tests of ``fit`` for every estimator belong here;
its arguments are in ``Subject``.
"""

import csv

import numpy as np
import pytest

from bristlecone import save_model
from bristlecone._cli import main
from bristlecone.export import export_text


@pytest.fixture
def saved(subject, tmp_path):
    """A fitted model, its rows, and the files of both."""
    if "files" in subject.cannot:
        pytest.skip("cannot be saved")
    model, study = subject.fitted(mixed="categories" not in subject.cannot)
    save_model(model, tmp_path / "model.json")
    study.X.to_csv(tmp_path / "rows.csv", index=False)
    return model, study, tmp_path


def test_show_prints_the_tree(saved, capsys):
    model, _, folder = saved
    assert main(["show", str(folder / "model.json")]) == 0
    printed = capsys.readouterr().out
    assert "80 rows" in printed
    assert export_text(model).strip() in printed


def test_predict_writes_leaves_and_predictions(saved):
    model, study, folder = saved
    arguments = [str(folder / name) for name in ("model.json", "rows.csv", "out.csv")]
    assert main(["predict", arguments[0], arguments[1], "--out", arguments[2]]) == 0
    with open(arguments[2], encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file))
    assert [int(row["leaf"]) for row in table] == model.apply(study.X).tolist()
    (name,) = {"risk", "prediction"} & set(table[0])
    expected = model.predict(study.X)
    found = np.array([row[name] for row in table]).astype(expected.dtype)
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    else:
        np.testing.assert_array_equal(found, expected)
