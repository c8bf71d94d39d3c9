"""The command line: what it prints, what it writes, and how it refuses."""

import csv
import os
import re
import subprocess
import sys
from datetime import date

import numpy as np
import pandas as pd
import pytest

from bristlecone import _core, datasets
from bristlecone.classify import OptimalTreeClassifier
from bristlecone.cli import main
from bristlecone.export import export_text
from bristlecone.greedy import GreedySurvivalTree
from bristlecone.optimal import OptimalSurvivalTree
from bristlecone.serialise import load_model, save_model

ROWS = "age,drug,days,status\n" + "".join(
    f"{age},{drug},{days},{status}\n"
    for age, drug, days, status in [
        (50, "a", 10, 1),
        (60, "a", 4, 1),
        (55, "b", 20, 0),
        (70, "b", 2, 1),
        (65, "a", 12, 0),
        (40, "b", 30, 0),
    ]
)
FIT = ("--time", "days", "--event", "status")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.csv").write_text(ROWS)
    return tmp_path


def run(capsys, *arguments):
    status = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def run_process(*arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, timeout=120, **options
    )


def refused(capsys, folder, *arguments):
    """Message of a refusal; asserts its form and that the folder is untouched."""
    before = sorted(path.name for path in folder.iterdir())
    status, out, err = run(capsys, *arguments)
    assert status == 2
    assert out == ""
    assert err.startswith("bristlecone: error: ")
    assert err.count("\n") == 1
    assert sorted(path.name for path in folder.iterdir()) == before
    return err


def table_of(out):
    """The lines "name   value" at the end of the output of fit and show."""
    lines = out.rstrip("\n").rpartition("\n\n")[2].splitlines()
    return dict(re.split(r"\s{2,}|(?<=binary features)\s", line, maxsplit=1) for line in lines)


def test_fit_prints_tree_leaves_and_proof_of_a_bundled_set(capsys):
    status, out, err = run(capsys, "fit", "gbsg2", "--max-depth", 1)
    assert (status, err) == (0, "")
    assert out.startswith("gbsg2: 686 rows, 299 events, 8 columns\n\npnodes <= 3\n")
    leaf = r"\[\d+\] n=\d+, events=\d+, theta=[\d.]+, median=(\d+|not reached)[^\n]*\n"
    assert re.search(rf"\|-- yes: {leaf}`-- no:  {leaf}", out)
    assert "[1] n=376, events=119" in out
    table = table_of(out)
    assert list(table) == [
        "objective",
        "lower bound",
        "gap",
        "status",
        "binary features",
        "seconds",
    ]
    assert float(table["objective"]) == pytest.approx(0.6497759197081168, abs=1e-10)
    assert float(table["lower bound"]) == pytest.approx(0.6497759197081168, abs=1e-9)
    assert table["status"] == "optimal among trees over these 52 binary features"
    assert table["binary features"] == "52"
    assert float(table["seconds"]) >= 0


def test_fit_reads_a_file_in_its_own_column_names(capsys, folder):
    status, out, _ = run(capsys, "fit", "study.csv", *FIT, "--max-depth", 1)
    assert status == 0
    assert re.match(r"study\.csv: 6 rows, 3 events, 2 columns\n\nage <= \d\d\n", out)


def test_dropped_columns_are_not_asked_about(capsys, folder):
    _, out, _ = run(capsys, "fit", "study.csv", *FIT, "--drop", "age", "--max-depth", 2)
    assert "1 column\n" in out
    assert "drug = a" in out
    assert "age" not in out


def test_parquet_gives_the_tree_of_the_same_csv(capsys, folder):
    pytest.importorskip("pyarrow")
    from pyarrow import csv as arrow_csv
    from pyarrow import parquet

    parquet.write_table(arrow_csv.read_csv("study.csv"), "study.parquet")
    _, from_csv, _ = run(capsys, "fit", "study.csv", *FIT)
    _, from_parquet, _ = run(capsys, "fit", "study.parquet", *FIT)
    tree = from_csv.partition("\n\n")[2].partition("\n\n")[0]
    assert tree == from_parquet.partition("\n\n")[2].partition("\n\n")[0]
    assert "age" in tree


def test_a_column_of_dates_is_refused_by_name(capsys, folder):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table({"born": [date(1950, 1, 2)] * 3, "days": [1, 2, 3], "status": [1, 0, 1]})
    parquet.write_table(table, "study.parquet")
    message = refused(capsys, folder, "fit", "study.parquet", *FIT)
    assert "column 'born' holds a date in row 0" in message


def test_options_reach_estimator_and_encoder(capsys, folder):
    status, _, _ = run(
        capsys, "fit", "gbsg2", "--model", "m.json", "--max-depth", "none", "--max-leaf-nodes", 3,
        "--min-samples-leaf", 20, "--leaf-penalty", 0.001, "--leaf-curve", "kaplan-meier",
        "--time-limit", 60, "--memory-limit", 10**9, "--n-jobs", 2, "--objective", "likelihood",
        "--thresholds", "kmeans", "--n-thresholds", 4, "--max-categories", "none",
        "--missing", "branch", "--min-support", 0.05, "--max-features", 12,
    )  # fmt: skip
    assert status == 0
    saved = load_model("m.json").get_params()
    expected = {
        "max_depth": None, "max_leaf_nodes": 3, "min_samples_leaf": 20, "leaf_penalty": 0.001,
        "leaf_curve": "kaplan-meier", "time_limit": 60.0, "memory_limit": 10**9, "n_jobs": 2,
        "objective": "likelihood", "encoder__thresholds": "kmeans", "encoder__n_thresholds": 4,
        "encoder__max_categories": None, "encoder__missing": "branch",
        "encoder__min_support": 0.05, "encoder__max_features": 12,
    }  # fmt: skip
    assert {name: saved[name] for name in expected} == expected


def test_the_brier_objective_is_told_in_proof_report_and_model(capsys, folder):
    command = (
        "fit", "veterans", "--objective", "brier", "--leaf-curve", "brier-optimal",
        "--max-depth", 1, "--leaf-penalty", 0.002, "--time-grid", 30, 90, 365,
        "--model", "m.json", "--report", "r.html",
    )  # fmt: skip
    status, out, err = run(capsys, *command)
    assert (status, err) == (0, "")
    loss = "integrated Brier score over a time grid of 3 (30 to 365)"
    assert table_of(out)["loss"] == loss
    assert loss in (folder / "r.html").read_text(encoding="utf-8")
    model = load_model("m.json")
    assert (model.objective, model.leaf_curve) == ("brier", "brier-optimal")
    assert model.time_grid == [30.0, 90.0, 365.0]
    assert table_of(run(capsys, "show", "m.json")[1]) == table_of(out)
    _, out, _ = run(capsys, "predict", "m.json", "veterans", "--times", 90)
    assert out.startswith("leaf,risk,median,survival_90\n")


def test_what_brier_has_not_is_refused(capsys, folder):
    brier = ("fit", "veterans", "--objective", "brier")
    message = refused(capsys, folder, *brier, "--estimate")
    assert "objective='brier' has no forecast" in message
    message = refused(capsys, folder, *brier, "--leaf-curve", "proportional")
    assert "leaf_curve='proportional' does not go with objective='brier'" in message
    message = refused(capsys, folder, "fit", "veterans", "--time-grid", 30)
    assert "time_grid needs objective='brier'" in message


@pytest.mark.parametrize(
    ("cells", "value"),
    [
        (("dead", "alive"), "dead"),
        (("2", "1"), "2"),
        (("2.0", "1.5"), "2"),
        (("true", "false"), "True"),
        (("dead", "alive"), None),
    ],
)
def test_event_value_says_which_value_is_the_event(capsys, folder, cells, value):
    event, none = cells
    rows = ROWS.replace(",1\n", f",{event}\n").replace(",0\n", f",{none}\n")
    (folder / "coded.csv").write_text(rows)
    if value is None:
        message = refused(capsys, folder, "fit", "coded.csv", *FIT)
        assert "column 'status' holds dead, alive" in message
        assert "--event-value" in message
    else:
        status, out, _ = run(capsys, "fit", "coded.csv", *FIT, "--event-value", value)
        assert status == 0
        assert "6 rows, 3 events" in out


def test_saved_model_predicts_in_a_new_process_what_the_fitted_one_does(capsys, folder):
    run(capsys, "fit", "veterans", "--max-depth", 2, "--model", "m.json")
    dataset = datasets.load("veterans", as_frame="plain")
    fitted = OptimalSurvivalTree(max_depth=2).fit(dataset.X, dataset.y)
    command = ("predict", "m.json", "veterans", "--times", "30", "90.5", "--out", "out.csv")
    done = run_process("-m", "bristlecone", *command)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    with open("out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["leaf", "risk", "median", "survival_30", "survival_90.5"]
    survival = fitted.predict_survival_function(dataset.X, times=[30, 90.5])
    expected = {
        "leaf": fitted.apply(dataset.X),
        "risk": fitted.predict(dataset.X),
        "median": fitted.predict_median(dataset.X),
        "survival_30": survival[:, 0],
        "survival_90.5": survival[:, 1],
    }
    for name, values in expected.items():
        np.testing.assert_array_equal([float(row[name]) for row in rows], values)


def test_predict_writes_to_standard_output_and_tells_of_unused_columns(capsys, folder):
    run(capsys, "fit", "study.csv", *FIT, "--model", "m.json")
    status, out, err = run(capsys, "predict", "m.json", "study.csv")
    assert status == 0
    assert out.startswith("leaf,risk,median\n")
    assert out.count("\n") == 7
    assert err == (
        "bristlecone: warning: study.csv: columns the tree was not fitted with are ignored: "
        "'days', 'status'\n"
    )


def test_predict_names_what_new_rows_lack(capsys, folder):
    run(capsys, "fit", "study.csv", *FIT, "--model", "m.json", "--max-depth", 2)
    (folder / "short.csv").write_text("agee,drug\n50,a\n")
    message = refused(capsys, folder, "predict", "m.json", "short.csv", "--out", "out.csv")
    assert "no column 'age'; did you mean 'agee'?" in message
    (folder / "holes.csv").write_text("age,drug\n50,a\n,b\n")
    message = refused(capsys, folder, "predict", "m.json", "holes.csv", "--out", "out.csv")
    assert "'age'" in message
    assert "row 1" in message


def test_predict_needs_column_names(capsys, folder):
    X = np.array([[0], [0], [1], [1]], dtype=bool)
    tree = OptimalSurvivalTree(max_depth=1).fit(X, ([True, True, True, False], [1.0, 2, 5, 6]))
    (folder / "m.json").write_text(tree.to_json())
    message = refused(capsys, folder, "predict", "m.json", "study.csv")
    assert "without column names" in message


def test_show_prints_what_fit_printed(capsys, folder):
    _, fitted, _ = run(capsys, "fit", "rossi", "--max-depth", 2, "--model", "m.json")
    status, shown, _ = run(capsys, "show", "m.json")
    assert status == 0
    assert shown == fitted.replace("rossi:", "m.json:")


def test_a_greedy_tree_can_be_shown_and_applied_too(capsys, folder):
    rossi = datasets.load("rossi", as_frame="plain")
    tree = GreedySurvivalTree(max_depth=1).fit(rossi.X, rossi.y)
    (folder / "m.json").write_text(tree.to_json())
    status, out, _ = run(capsys, "show", "m.json")
    assert status == 0
    assert out == f"m.json: 432 rows, 114 events, 7 columns\n\n{export_text(tree)}"
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "arguments are required: COMMAND"),
        (("grow",), "invalid choice: 'grow'"),
        (("fit",), "arguments are required: DATA"),
        (("fit", "gbsg2", "--depth", "3"), "unrecognized arguments: --depth 3"),
        (("fit", "gbsg2", "--max-d", "3"), "unrecognized arguments: --max-d 3"),
        (("fit", "gbsg2", "--max-depth", "deep"), "--max-depth: invalid integer value: 'deep'"),
        (("fit", "gbsg2", "--max-depth", "-1"), "max_depth must be"),
        (("fit", "gbsg2", "--max-depth", "none"), "max_depth"),
        (("fit", "gbsg2", "--min-samples-leaf", "0"), "min_samples_leaf must be"),
        (("fit", "gbsg2", "--leaf-penalty", "nan"), "leaf_penalty must be"),
        (("fit", "gbsg2", "--time-limit", "-1"), "time_limit must be"),
        (("fit", "gbsg2", "--n-jobs", "0"), "n_jobs must be"),
        (("fit", "gbsg2", "--objective", "luck"), "objective must be"),
        (("fit", "gbsg2", "--thresholds", "all"), "thresholds must be"),
        (("fit", "gbsg2", "--n-thresholds", "0"), "n_thresholds must be"),
        (("fit", "gbsg2", "--drop", "agee"), "no column 'agee'; did you mean 'age'?"),
        (("fit", "gbsg2", "--drop", "time"), "--drop: 'time' is the column of --time"),
        (("fit", "gbsg"), "gbsg: no such file, and no bundled set of that name; did you mean"),
        (("fit", "study.csv"), "--time is needed"),
        (("fit", "study.csv", "--time", "days"), "--event is needed"),
        (("fit", "study.csv", "--time", "day", "--event", "status"), "did you mean 'days'?"),
        (("fit", "study.csv", "--time", "days", "--event", "days"), "are the same column 'days'"),
        (("fit", "study.csv", "--time", "drug", "--event", "status"), "row 0 holds a"),
        (("fit", "study.csv", "--time", "days", "--event", "drug"), "column 'drug' holds a, b"),
        (("fit", "study.csv", *FIT, "--event-value", "9"), "9 does not occur in column 'status'"),
        (("fit", "study.csv", *FIT, "--drop", "age", "drug"), "no columns besides"),
        (("fit", ".", *FIT), "Is a directory"),
        (("show", "none.json"), "none.json: No such file"),
        (("show", "study.csv"), "study.csv: "),
        (("predict", "none.json", "gbsg2"), "none.json: No such file"),
        (("datasets", "gbsg"), "did you mean 'gbsg2'?"),
    ],
)
def test_bad_arguments_get_one_line_that_names_them(capsys, folder, arguments, message):
    assert message in refused(capsys, folder, *arguments)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("50,a,-3,1", "column 'days' is -3 in row 6"),
        ("50,a,inf,1", "column 'days' is inf in row 6"),
        ("50,a,,1", "column 'days' has no value in row 6"),
        ("50,a,soon,1", "column 'days' is not numeric; row 6 holds soon"),
        ("50,a,3,", "column 'status' has no value in row 6"),
        ("50,a,3,2", "column 'status' holds 1, 0, 2"),
        ("inf,a,3,1", "column 'age' is infinite"),
        ("50,a,3", "line 8: 3 cells where the header has 4 columns"),
    ],
)
def test_bad_rows_are_named_and_nothing_is_written(capsys, folder, line, message):
    (folder / "bad.csv").write_text(ROWS + line + "\n")
    options = ("--model", "m.json", "--report", "r.html")
    assert message in refused(capsys, folder, "fit", "bad.csv", *FIT, *options)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("age,drug,days,status\n", "no rows"),
        ("age,drug,days,status\n50,a,3,1\n", "at least two rows"),
        (ROWS.replace(",1\n", ",0\n"), "no event"),
    ],
)
def test_too_few_rows_or_events_are_refused(capsys, folder, content, message):
    (folder / "bad.csv").write_text(content)
    assert message in refused(capsys, folder, "fit", "bad.csv", *FIT)


def test_a_model_that_was_cut_off_is_refused(capsys, folder):
    run(capsys, "fit", "study.csv", *FIT, "--model", "m.json")
    (folder / "m.json").write_text((folder / "m.json").read_text()[:-20])
    assert "m.json: the file is truncated" in refused(capsys, folder, "show", "m.json")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--model", "no/m.json"), "--model: cannot write no/m.json: there is no folder"),
        (("--report", "."), "--report: cannot write .: it is not a regular file"),
        (("--model", "study.csv"), "--model: study.csv is the file that is read"),
        (("--model", "out", "--report", "./out"), "--model and --report are the same file"),
    ],
)
def test_output_files_are_checked_before_the_search(capsys, folder, monkeypatch, options, message):
    monkeypatch.setattr(_core, "solve_likelihood", None)
    assert message in refused(capsys, folder, "fit", "study.csv", *FIT, *options)


def test_existing_files_stay_when_one_of_them_cannot_be_written(capsys, folder, monkeypatch):
    (folder / "m.json").write_text("old")
    (folder / "r.html").write_text("old")
    monkeypatch.setattr("bristlecone.cli.html_report", lambda *_, **__: "\ud800")
    status, _, err = run(
        capsys, "fit", "study.csv", *FIT, "--model", "m.json", "--report", "r.html"
    )
    assert status == 2
    assert err.startswith("bristlecone: error: ")
    assert (folder / "m.json").read_text() == (folder / "r.html").read_text() == "old"
    assert sorted(path.name for path in folder.iterdir()) == ["m.json", "r.html", "study.csv"]


def test_a_warning_is_one_line_on_standard_error(capsys, folder):
    (folder / "flat.csv").write_text(
        ROWS.replace("age,", "age,flat,").replace(",a,", ",7,a,").replace(",b,", ",7,b,")
    )
    status, out, err = run(capsys, "fit", "flat.csv", *FIT)
    assert status == 0
    assert err.startswith("bristlecone: warning: ")
    assert "'flat'" in err
    assert err.count("\n") == 1
    assert "flat" not in out.partition("\n")[2]


def test_a_time_limit_is_reported_as_a_warning_and_an_open_gap(capsys):
    status, out, err = run(capsys, "fit", "churn", "--max-depth", 4, "--time-limit", 0)
    assert status == 0
    table = table_of(out)
    assert table["status"].startswith("time_limit: the best tree found, not proven optimal")
    assert float(table["lower bound"]) < float(table["objective"])
    assert err.startswith("bristlecone: warning: ")


def test_everything_works_without_any_optional_library(folder):
    blocked = ("pandas", "polars", "pyarrow", "matplotlib", "sksurv")
    program = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({blocked!r}))\n"
        "from bristlecone.cli import main\n"
        "status = main(sys.argv[1:])\n"
        "sys.exit(status)\n"
    )
    fit = ("fit", "study.csv", *FIT, "--model", "m.json", "--report", "r.html")
    done = run_process("-c", program, *fit)
    assert (done.returncode, done.stderr) == (0, "")
    done = run_process("-c", program, "predict", "m.json", "study.csv", "--out", "p.csv")
    assert done.returncode == 0
    assert len((folder / "p.csv").read_text().splitlines()) == 7
    (folder / "study.parquet").write_bytes(b"")
    done = run_process("-c", program, "fit", "study.parquet", *FIT)
    assert done.returncode == 2
    assert done.stderr == (
        "bristlecone: error: reading Parquet needs pyarrow: python -m pip install "
        "'bristlecone[parquet]'\n"
    )


def test_a_closed_pipe_ends_quietly():
    read, write = os.pipe()
    os.close(read)
    process = subprocess.Popen(
        [sys.executable, "-m", "bristlecone", "datasets"],
        stdout=write,
        stderr=subprocess.PIPE,
    )
    os.close(write)
    _, err = process.communicate(timeout=120)
    assert err == b""


def test_ctrl_c_during_the_search_gives_the_best_tree_so_far(folder):
    program = (
        "import os, signal, sys, threading\n"
        "from bristlecone import _core, cli\n"
        "solve = _core.solve_likelihood\n"
        "def interrupted(*arguments, **options):\n"
        "    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "    return solve(*arguments, **options)\n"
        "_core.solve_likelihood = interrupted\n"
        "sys.exit(cli.main(sys.argv[1:]))\n"
    )
    # 2950 binary features at depth 4: hours without the interrupt.
    fit = ("fit", "maintenance", "--thresholds", "midpoints", "--max-depth", "4")
    done = run_process("-c", program, *fit, "--model", "m.json")
    assert done.returncode == 130
    assert table_of(done.stdout)["status"].startswith("interrupted: the best tree found, not")
    assert done.stderr.startswith("bristlecone: warning: ")
    assert load_model("m.json").status_ == "interrupted"


def test_ctrl_c_outside_the_search_ends_with_130(capsys, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(_core, "solve_likelihood", interrupt)
    status, out, _ = run(capsys, "fit", "gbsg2")
    assert (status, out) == (130, "")


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
    assert out == "leaf,prediction\n1,no\n1,no\n2,yes\n2,yes\n"
    status, _, err = run(capsys, "predict", "m.json", "new.csv", "--times", "3")
    assert status == 2
    assert "predicts no survival" in err
