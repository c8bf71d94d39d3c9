"""The command line: ``predict``, ``show`` and ``datasets``."""

import csv
import re

import numpy as np
import pandas as pd
import pytest
from command_line import FIT, refused, run, run_process, study_folder
from papers import PAPERS

from bristlecone import datasets
from bristlecone._estimators.classifier import OptimalTreeClassifier
from bristlecone._estimators.greedy import GreedySurvivalTree
from bristlecone._estimators.soft import SoftSurvivalTree
from bristlecone._estimators.survival import OptimalSurvivalTree
from bristlecone._model.registry import load_model, save_model
from bristlecone.export import export_text


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return study_folder(tmp_path, monkeypatch)


@pytest.mark.slow
def test_saved_model_predicts_in_a_new_process_what_the_fitted_one_does(capsys, folder):
    run(capsys, "fit", "veterans", "--max-depth", 2, "--model", "m.json")
    dataset = datasets.load("veterans")
    fitted = OptimalSurvivalTree(max_depth=2).fit(dataset.X, dataset.y)
    command = ("predict", "m.json", "veterans", "--times", "30", "90.5", "--out", "out.csv")
    done = run_process("-m", "bristlecone", *command)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with open("out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["leaf", "risk", "model_median", "survival_30", "survival_90.5"]
    survival = fitted.predict_survival_function(dataset.X, times=[30, 90.5])
    expected = {
        "leaf": fitted.apply(dataset.X),
        "risk": fitted.predict(dataset.X),
        "model_median": fitted.predict_median(dataset.X),
        "survival_30": survival[:, 0],
        "survival_90.5": survival[:, 1],
    }
    for name, values in expected.items():
        np.testing.assert_array_equal([float(row[name]) for row in rows], values)


def test_predict_writes_to_standard_output_and_ignores_other_columns(capsys, folder):
    run(capsys, "fit", "study.csv", *FIT, "--model", "m.json")
    status, out, err = run(capsys, "predict", "m.json", "study.csv")
    assert (status, err) == (0, "")
    assert out.startswith("leaf,risk,model_median\n")
    assert out.count("\n") == 7


def test_columns_named_by_id_are_copied_as_they_are_written(capsys, folder):
    run(capsys, "fit", "study.csv", *FIT, "--model", "m.json")
    (folder / "new.csv").write_text("pid,age,drug,risk\n007,50,a,1\n08.0,60,b,2\n")
    status, out, err = run(capsys, "predict", "m.json", "new.csv", "--id", "pid", "age")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "pid,age,leaf,risk,model_median"
    assert [line.split(",")[:2] for line in lines[1:]] == [["007", "50"], ["08.0", "60"]]
    assert "--id: the output has a column 'risk'" in refused(
        capsys, folder, "predict", "m.json", "new.csv", "--id", "risk"
    )
    assert "--id: the data have no column 'pidd'; did you mean 'pid'?" in refused(
        capsys, folder, "predict", "m.json", "new.csv", "--id", "pidd"
    )
    assert "--id: 'pid' is given twice" in refused(
        capsys, folder, "predict", "m.json", "new.csv", "--id", "pid", "pid"
    )


def test_every_time_has_a_column_of_its_own(capsys, folder):
    run(capsys, "fit", "study.csv", *FIT, "--model", "m.json")
    times = (1234567, 1234568, "0.1", "1e3")
    _, out, _ = run(capsys, "predict", "m.json", "study.csv", "--times", *times)
    assert out.splitlines()[0].split(",")[3:] == [
        "survival_1234567", "survival_1234568", "survival_0.1", "survival_1000",
    ]  # fmt: skip
    for wrong, message in (
        (("5", "5.0"), "times has 5 twice"),
        (("-1",), "times must be finite and not negative; got -1"),
        (("inf",), "times must be finite and not negative; got inf"),
    ):
        reported = refused(capsys, folder, "predict", "m.json", "none.csv", "--times", *wrong)
        assert message in reported


@pytest.mark.parametrize("codes", [("1", "2", "A"), ("01", "02", "A"), ("1", "2.5", "A")])
def test_columns_have_the_kinds_they_had_in_training(capsys, folder, codes):
    rows = [(codes[k % 3], (5, 30, 9)[k % 3] + k, 1) for k in range(12)]
    lines = "".join(f"{code},{days},{status}\n" for code, days, status in rows)
    (folder / "codes.csv").write_text("grade,days,status\n" + lines)
    status, _, _ = run(capsys, "fit", "codes.csv", *FIT, "--max-depth", 2, "--model", "m.json")
    assert status == 0
    _, whole, _ = run(capsys, "predict", "m.json", "codes.csv")
    expected = {rows[k][0]: line for k, line in enumerate(whole.splitlines()[1:])}
    for some in (codes[:1], codes[:2], codes[2:]):
        (folder / "new.csv").write_text("grade\n" + "".join(f"{code}\n" for code in some))
        status, out, err = run(capsys, "predict", "m.json", "new.csv")
        assert (status, err) == (0, "")
        assert out.splitlines()[1:] == [expected[code] for code in some]


def test_levels_that_were_numbers_or_booleans_in_python_are_found_by_their_spelling(capsys, folder):
    X = pd.DataFrame(
        {
            "grade": pd.Categorical([1, 2, 3, 1, 2, 3]),
            "flag": [True, False, True, True, False, False],
        }
    )
    tree = OptimalSurvivalTree(max_depth=2, **PAPERS)
    tree.fit(X, ([True] * 6, [1.0, 5, 9, 2, 6, 8]))
    (folder / "m.json").write_text(tree.to_json())
    (folder / "new.csv").write_text("grade,flag\n2.0,false\n3,true\n1,true\n")
    _, out, err = run(capsys, "predict", "m.json", "new.csv")
    assert err == ""
    assert [int(line.split(",")[0]) for line in out.splitlines()[1:]] == tree.apply(
        X.iloc[[1, 2, 0]]
    ).tolist()


def test_levels_that_are_large_integers_are_told_apart(capsys, folder):
    sites = [2**53, 2**53 + 1, 7]
    X = pd.DataFrame({"site": pd.Categorical(sites * 10)})
    save_model(OptimalTreeClassifier(max_depth=2).fit(X, ["a", "b", "c"] * 10), "m.json")
    (folder / "new.csv").write_text(f"site\n{2**53}\n{2**53 + 1}\n7.0\n")
    _, out, _ = run(capsys, "predict", "m.json", "new.csv")
    assert [row["prediction"] for row in csv.DictReader(out.splitlines())] == ["a", "b", "c"]


def test_a_cell_that_is_no_number_is_named(capsys, folder):
    run(capsys, "fit", "study.csv", *FIT, "--drop", "drug", "--model", "m.json")
    (folder / "new.csv").write_text("age\n50\n5'0\n")
    message = refused(capsys, folder, "predict", "m.json", "new.csv")
    assert "new.csv, line 3, column 'age': \"5'0\" is not a number" in message


def test_a_soft_tree_is_shown_and_predicts_in_full(capsys, folder):
    veterans = datasets.load("veterans")
    tree = SoftSurvivalTree(depth=1, random_state=0).fit(veterans.X, veterans.y)
    save_model(tree, "soft.json")
    _, out, _ = run(capsys, "show", "soft.json")
    assert out.startswith("soft.json: 137 rows, 128 events, 6 columns\n")
    status, out, err = run(capsys, "predict", "soft.json", "veterans", "--times", 60, 90)
    assert (status, err) == (0, "")
    rows = list(csv.DictReader(out.splitlines()))
    survival = tree.predict_survival_function(veterans.X, times=[60, 90])
    expected = {
        "leaf": tree.apply(veterans.X),
        "risk": tree.predict(veterans.X),
        "model_median": tree.predict_median(veterans.X),
        "survival_60": survival[:, 0],
        "survival_90": survival[:, 1],
    }
    assert list(rows[0]) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal([float(row[name]) for row in rows], values)


def test_predict_names_what_new_rows_lack(capsys, folder):
    run(capsys, "fit", "study.csv", *FIT, "--model", "m.json", "--max-depth", 2)
    (folder / "short.csv").write_text("agee,drug\n50,a\n")
    message = refused(capsys, folder, "predict", "m.json", "short.csv", "--out", "out.csv")
    assert "no column 'age'; did you mean 'agee'?" in message


def test_predict_needs_only_the_columns_that_the_tree_asks(capsys, folder):
    run(capsys, "fit", "study.csv", *FIT, "--model", "m.json", "--max-depth", 1)
    asked = load_model(folder / "m.json").features_used_
    assert len(asked) == 1
    lines = {"age": 'age\n40\n""\n', "drug": "drug\na\nNA\n"}
    (folder / "few.csv").write_text(lines[asked[0]])
    status, out, _ = run(capsys, "predict", "m.json", "few.csv")
    assert status == 0
    assert out.count("\n") == 3


def test_predict_needs_column_names(capsys, folder):
    X = np.array([[0], [0], [1], [1]], dtype=bool)
    tree = OptimalSurvivalTree(max_depth=1, **PAPERS)
    tree.fit(X, ([True, True, True, False], [1.0, 2, 5, 6]))
    (folder / "m.json").write_text(tree.to_json())
    message = refused(capsys, folder, "predict", "m.json", "study.csv")
    assert "without column names" in message


def test_show_prints_what_fit_printed(capsys, folder):
    _, fitted, _ = run(capsys, "fit", "rossi", "--max-depth", 2, "--model", "m.json")
    status, shown, _ = run(capsys, "show", "m.json")
    assert status == 0
    assert shown == fitted.replace("rossi:", "m.json:")


def test_a_greedy_tree_can_be_shown_and_applied_too(capsys, folder):
    rossi = datasets.load("rossi")
    tree = GreedySurvivalTree(max_depth=1).fit(rossi.X, rossi.y)
    (folder / "m.json").write_text(tree.to_json())
    status, out, _ = run(capsys, "show", "m.json")
    assert status == 0
    assert out.startswith(f"m.json: 432 rows, 114 events, 7 columns\n\n{export_text(tree)}\n")
    assert "status          grown greedily, one split at a time: nothing is proven " in out
    status, out, _ = run(capsys, "predict", "m.json", "rossi")
    assert status == 0
    risks = [float(line.split(",")[1]) for line in out.splitlines()[1:]]
    np.testing.assert_array_equal(risks, tree.predict(rossi.X))


def test_datasets_lists_and_describes(capsys):
    status, out, _ = run(capsys, "datasets")
    assert status == 0
    lines = out.splitlines()
    assert len(lines) == 1 + len(datasets.list_datasets())
    assert re.search(r"^gbsg2 +686 +299 +8  German Breast", out, re.MULTILINE)
    status, out, _ = run(capsys, "datasets", "lung")
    assert status == 0
    info = datasets.describe("lung")
    for text in (info.source, info.licence, info.citation, *info.columns, *info.columns.values()):
        assert text in out


def test_models_of_other_kinds_are_shown_and_predict(capsys, folder):
    X = pd.DataFrame({"age": [30, 40, 50, 60]})
    save_model(OptimalTreeClassifier(max_depth=1).fit(X, ["no", "no", "yes", "yes"]), "m.json")
    X.to_csv("new.csv", index=False)
    status, out, _ = run(capsys, "show", "m.json")
    assert status == 0
    assert out.startswith(
        "m.json: 4 rows, 1 column\n\nage <= 45\n|-- yes: [1] n=2, no (no: 2, yes: 0)"
    )
    status, out, _ = run(capsys, "predict", "m.json", "new.csv")
    assert out == (
        "leaf,prediction,probability_no,probability_yes\n"
        "1,no,1.0,0.0\n1,no,1.0,0.0\n2,yes,0.0,1.0\n2,yes,0.0,1.0\n"
    )
    status, _, err = run(capsys, "predict", "m.json", "new.csv", "--times", "3")
    assert status == 2
    assert "does not predict survival" in err


def test_numbers_of_parquet_are_text_where_training_had_text(capsys, folder):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = "".join(f"{'12A'[k % 3]},{(5, 30, 9)[k % 3] + k},1\n" for k in range(12))
    (folder / "codes.csv").write_text("grade,days,status\n" + rows)
    run(capsys, "fit", "codes.csv", *FIT, "--max-depth", 2, "--model", "m.json")
    (folder / "new.csv").write_text("grade\n1\n2\n")
    _, expected, _ = run(capsys, "predict", "m.json", "new.csv")
    for values in ([1, 2], [1.0, 2.0], ["1", "2"]):
        parquet.write_table(pa.table({"grade": values}), "new.parquet")
        assert run(capsys, "predict", "m.json", "new.parquet") == (0, expected, "")
