"""The command line: input and output of ``fit``."""

import gzip
import io
import re
import sys

import pandas as pd
import pytest
from command_line import FIT, PAPERS, ROWS, refused, run, study_folder, table_of

from bristlecone import datasets
from bristlecone._model.registry import load_model


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return study_folder(tmp_path, monkeypatch)


def test_fit_prints_tree_leaves_and_proof_of_a_bundled_set(capsys):
    status, out, err = run(capsys, "fit", "gbsg2", "--max-depth", 1, *PAPERS)
    assert (status, err) == (0, "")
    assert out.startswith("gbsg2: 686 rows, 299 events, 8 columns\n\npnodes <= 3\n")
    leaf = r"\[\d\] n=\d+, events=\d+, theta=[\d.]+, median=(\d+|not reached) \(\d+ to [-\d]+\)\n"
    assert re.search(rf"\|-- yes: {leaf}`-- no:  {leaf}", out)
    assert "n=376, events=119" in out
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


def test_options_reach_estimator_and_encoder(capsys, folder):
    status, _, _ = run(
        capsys, "fit", "gbsg2", "--model", "m.json", "--max-depth", "none", "--max-leaf-nodes", 3,
        "--min-samples-leaf", 20, "--leaf-penalty", 0.001, "--leaf-curve", "kaplan-meier",
        "--shrinkage", 2.5,
        "--time-limit", 60, "--memory-limit", 10**9, "--n-jobs", 2, "--objective", "likelihood",
        "--thresholds", "kmeans", "--n-thresholds", 4, "--max-categories", "none",
        "--missing", "branch", "--min-support", 0.05, "--max-features", 12,
    )  # fmt: skip
    assert status == 0
    saved = load_model("m.json").get_params()
    expected = {
        "max_depth": None, "max_leaf_nodes": 3, "min_samples_leaf": 20, "leaf_penalty": 0.001,
        "leaf_curve": "kaplan-meier", "shrinkage": 2.5, "time_limit": 60.0, "n_jobs": 2,
        "memory_limit": 10**9, "objective": "likelihood",
        "encoder__thresholds": "kmeans", "encoder__n_thresholds": 4,
        "encoder__max_categories": None, "encoder__missing": "branch",
        "encoder__min_support": 0.05, "encoder__max_features": 12,
    }  # fmt: skip
    assert {name: saved[name] for name in expected} == expected


def test_the_brier_objective_is_reported_in_proof_report_and_model(capsys, folder):
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
    assert out.startswith("leaf,risk,model_median,survival_90\n")


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


def test_several_causes_of_events_lead_to_their_estimator(capsys, folder):
    (folder / "causes.csv").write_text(ROWS.replace(",1\n", ",2\n", 1))
    message = refused(capsys, folder, "fit", "causes.csv", *FIT)
    assert "--event-value; for several causes, pass --estimator competing-risks" in message


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
    assert table["status"].startswith("stopped at the time limit: the best tree found so far")
    assert float(table["lower bound"]) < float(table["objective"])
    assert err.startswith("bristlecone: warning: ")


def test_columns_called_time_and_event_need_not_be_named(capsys, folder):
    (folder / "plain.csv").write_text(ROWS.replace("days,status", "time,event"))
    _, named, _ = run(capsys, "fit", "study.csv", *FIT)
    status, out, err = run(capsys, "fit", "plain.csv", *PAPERS)
    assert (status, err) == (0, "")
    assert (
        out.partition("\n\n")[2].partition("\n\n")[0]
        == (named.partition("\n\n")[2].partition("\n\n")[0])
    )


def test_semicolons_and_decimal_commas_give_the_same_tree(capsys, folder):
    (folder / "points.csv").write_text(ROWS.replace("0,", "0.5,"))
    text = (folder / "points.csv").read_text().replace(",", ";").replace(".", ",")
    (folder / "commas.csv").write_text("\ufeff" + text.replace("\n", "\r\n"), newline="")
    _, points, _ = run(capsys, "fit", "points.csv", *FIT)
    status, commas, err = run(capsys, "fit", "commas.csv", *FIT)
    assert (status, err) == (0, "")
    tree = commas.partition("\n\n")[2].partition("\n\n")[0]
    assert tree == points.partition("\n\n")[2].partition("\n\n")[0]
    assert "age <= " in tree


def test_standard_input_and_gzip_give_the_tree_of_the_file(capsys, folder, monkeypatch):
    _, plain, _ = run(capsys, "fit", "study.csv", *FIT)
    packed = gzip.compress(ROWS.encode())
    (folder / "study.csv.gz").write_bytes(packed)
    for data, piped in (("study.csv.gz", b""), ("-", ROWS.encode()), ("-", packed)):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(piped)))
        status, out, err = run(capsys, "fit", data, *FIT, "--report", "r.html")
        assert (status, err) == (0, "")
        name = "standard input" if data == "-" else data
        assert table_of(out)["objective"] == table_of(plain)["objective"]
        assert out.startswith(f"{name}: 6 rows, 3 events, 2 columns\n")
        assert f"Survival tree of {name}" in (folder / "r.html").read_text()


@pytest.mark.parametrize(
    ("columns", "warned"),
    [
        ({"pid": range(30)}, ["pid"]),
        ({"code": [f"P{k}" for k in range(30)]}, ["code"]),
        ({"patient": range(1000, 30000, 1000)}, []),
        ({"ticket": range(1000, 31000, 1000)}, ["ticket"]),
        ({"size": [k + 0.5 for k in range(30)]}, []),
        ({"id": [5, 9, 2, 7]}, ["id"]),
        ({"age": [50, 60, 40, 70]}, []),
        ({"row": [3, 1, 2, 4], "n": [11, 12, 10, 13]}, ["row", "n"]),
        ({"pid": [1, 2, 3, 3]}, []),
    ],
)
def test_columns_that_identify_the_rows_are_warned_of(capsys, folder, columns, warned):
    n = len(next(iter(columns.values())))
    n += n == 29  # one value occurs twice
    table = pd.DataFrame({name: [*values, *values][:n] for name, values in columns.items()})
    table = table.assign(days=[k % 5 + 1 for k in range(n)], status=1, kind=["a", "b"] * (n // 2))
    table.to_csv("rows.csv", index=False)
    _, _, err = run(capsys, "fit", "rows.csv", *FIT, "--max-depth", 1)
    assert re.findall(r"column '(\w+)' has a different value in every row; .*--drop \1\n", err) == (
        warned
    )
    if warned:
        _, _, err = run(capsys, "fit", "rows.csv", *FIT, "--max-depth", 1, "--drop", *warned)
        assert "different value" not in err


def test_report_has_the_title_and_the_time_label_asked_for(capsys, folder):
    report = ("--report", "r.html")
    run(capsys, "fit", "veterans", "--max-depth", 1, *report)
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "Survival tree of veterans" in page
    assert f">{datasets.describe('veterans').time}<" in page
    labels = ("--title", "Lung <trial>", "--time-label", "days of life")
    run(capsys, "fit", "veterans", "--max-depth", 1, *report, *labels)
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "<h1>Lung &lt;trial&gt;</h1>" in page
    assert ">days of life<" in page


def test_row_names_are_left_out_with_a_warning(capsys, folder):
    pd.read_csv("study.csv").to_csv("names.csv")
    _, _, err = run(capsys, "fit", "names.csv", *FIT, "--model", "m.json")
    assert err == (
        "bristlecone: warning: names.csv: column 1 has no name; it is treated as row names and "
        "left "
        "out\n"
    )
    assert run(capsys, "predict", "m.json", "names.csv")[2] == ""


@pytest.mark.parametrize("form", ["csv", "parquet", "parts"])
def test_columns_that_are_named_as_categories_are_not_doubted(form, capsys, folder):
    n = 60
    site = [k % 3 for k in range(n)]
    days = [1 + k % 7 + 20 * (k % 3 == 1) for k in range(n)]
    table = pd.DataFrame({"site": site, "days": days, "status": 1})
    if form == "csv":
        table.to_csv("sites.csv", index=False)
    else:
        pytest.importorskip("pyarrow")
        (folder / "parts").mkdir()
        table[: n // 2].to_parquet("parts/0.parquet", index=False)
        table[n // 2 :].to_parquet("parts/1.parquet", index=False)
        table.to_parquet("sites.parquet", index=False)
    data = form if form == "parts" else f"sites.{form}"
    options = (*FIT, "--thresholds", "quantiles", "--categorical", "site")
    status, out, err = run(capsys, "fit", data, *options)
    assert (status, err) == (0, "")
    assert "site = " in out
    status, *_ = run(capsys, "fit", data, *options, "--drop", "site")
    assert status == 2  # no column is left, whatever its type
