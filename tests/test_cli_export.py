"""The command line: ``export``."""

import csv
import io
import json

import numpy as np
import pytest
from command_line import refused, run, run_process, study_folder

from bristlecone import datasets
from bristlecone._model.registry import load_model
from bristlecone.export import export_dict, export_dot, export_python, export_r, export_sql


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    folder = study_folder(tmp_path, monkeypatch)
    run(capsys, "fit", "veterans", "--max-depth", 2, "--model", "m.json")
    return folder


def exported(capsys, *arguments):
    status, out, err = run(capsys, "export", "m.json", *arguments)
    assert (status, err) == (0, "")
    return out


def test_texts_are_those_of_the_functions(capsys, folder):
    tree = load_model("m.json")
    times = ("--times", "30", "90.5")
    assert exported(capsys, "--to", "python", *times) == export_python(tree, times=[30, 90.5])
    assert exported(capsys, "--to", "r", *times) == export_r(tree, times=[30, 90.5])
    assert exported(capsys, "--to", "dot") == export_dot(tree)
    assert json.loads(exported(capsys, "--to", "json")) == export_dict(tree)
    assert exported(capsys, "--to", "sql") == export_sql(tree) + "\n"
    text = exported(capsys, "--to", "text")
    assert text in run(capsys, "show", "m.json")[1]


@pytest.mark.slow
def test_sql_of_a_saved_tree_runs_in_a_database(capsys, folder, connection):
    command = ("export", "m.json", "--to", "sql", "--table", "veterans", "--times", "30")
    done = run_process("-m", "bristlecone", *command, "--dialect", "sqlite", "--out", "m.sql")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    dataset = datasets.load("veterans")
    dataset.X.to_sql("veterans", connection, index=False)
    query = (folder / "m.sql").read_text()
    tree = load_model("m.json")
    rows = connection.execute(f"SELECT leaf, risk, survival_30 FROM ({query})").fetchall()
    leaf, risk, survival = zip(*rows, strict=True)
    np.testing.assert_array_equal(leaf, tree.apply(dataset.X))
    np.testing.assert_array_equal(risk, tree.predict(dataset.X))
    expected = tree.predict_survival_function(dataset.X, times=[30])[:, 0]
    np.testing.assert_array_equal(survival, expected)


def test_rules_are_a_table(capsys, folder):
    out = exported(capsys, "--to", "rules", "--times", 30)
    rows = list(csv.DictReader(io.StringIO(out)))
    tree = load_model("m.json")
    assert [int(row["leaf"]) for row in rows] == tree.tree_.leaves.tolist()
    assert [row["rule"] for row in rows] == list(tree.leaf_table()["rule"])
    assert "survival_30" in rows[0] and json.loads(rows[0]["conditions"])


def test_onnx_is_written_to_a_file(capsys, folder):
    runtime = pytest.importorskip("onnxruntime")
    assert exported(capsys, "--to", "onnx", "--times", 30, "--out", "m.onnx") == ""
    session = runtime.InferenceSession((folder / "m.onnx").read_bytes())
    outputs = [output.name for output in session.get_outputs()]
    assert outputs == ["leaf", "risk", "survival"]
    err = refused(capsys, folder, "export", "m.json", "--to", "onnx")
    assert "--to onnx writes a binary file: name it with --out" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("export", "m.json"), "the following arguments are required: --to"),
        (("export", "m.json", "--to", "pmml"), "invalid choice: 'pmml'"),
        (
            ("export", "m.json", "--to", "dot", "--times", 3),
            "--times can be used only with --to sql, python, r, ",
        ),
        (
            ("export", "m.json", "--to", "r", "--table", "x"),
            "--table can be used only with --to sql, not r",
        ),
        (
            ("export", "m.json", "--to", "json", "--dialect", "ansi"),
            "--dialect can be used only with --to sql",
        ),
        (("export", "m.json", "--to", "sql", "--times", -1), "times must be finite and not neg"),
        (("export", "m.json", "--to", "sql", "--times", 1, 1.0), "times has 1 twice"),
        (("export", "m.json", "--to", "sql", "--out", "m.json"), "m.json is the file that is read"),
        (("export", "none.json", "--to", "sql"), "none.json"),
        (("export", "m.json", "--to", "sql", "--tabel", "x"), "did you mean --table?"),
    ],
)
def test_what_is_refused(capsys, folder, arguments, message):
    assert message in refused(capsys, folder, *arguments)


def test_soft_trees_have_pictures_and_data_but_no_rules(capsys, folder):
    soft = ("--estimator", "soft", "--depth", 1, "--n-restarts", 1, "--random-state", 0)
    run(capsys, "fit", "veterans", *soft, "--model", "m.json")
    assert exported(capsys, "--to", "dot").startswith("digraph")
    assert json.loads(exported(capsys, "--to", "json"))["kind"] == "soft"
    for form in ("sql", "python", "r", "rules"):
        err = refused(capsys, folder, "export", "m.json", "--to", form)
        assert f"export_{form} needs splits on single columns" in err


def test_an_empty_name_of_a_table_is_refused(capsys, folder):
    # As from a variable of the shell that is not set.
    message = refused(capsys, folder, "export", "m.json", "--to", "sql", "--table", "")
    assert "table must be a name" in message
    message = refused(capsys, folder, "export", "m.json", "--to", "python", "--table", "")
    assert "--table can be used only with --to sql" in message
