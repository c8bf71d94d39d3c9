"""The command line: its errors."""

import re
import shlex
from datetime import date
from pathlib import Path

import pytest
from command_line import FIT, ROWS, refused, run, study_folder

from bristlecone import _core
from bristlecone._model.files import write_files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return study_folder(tmp_path, monkeypatch)


def test_a_column_of_dates_is_refused_by_name(capsys, folder):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table({"born": [date(1950, 1, 2)] * 3, "days": [1, 2, 3], "status": [1, 0, 1]})
    parquet.write_table(table, "study.parquet")
    message = refused(capsys, folder, "fit", "study.parquet", *FIT)
    assert "column 'born' holds a date in row 0" in message


def test_what_brier_has_not_is_refused(capsys, folder):
    brier = ("fit", "veterans", "--objective", "brier")
    message = refused(capsys, folder, *brier, "--leaf-curve", "proportional")
    assert "--leaf-curve proportional cannot be used with --objective brier" in message
    message = refused(capsys, folder, "fit", "veterans", "--time-grid", 30)
    assert "--time-grid needs --objective brier" in message


def test_names_of_columns_are_no_parameters_and_no_rows(capsys, folder):
    study = "max_depth,sample_weight,t in row 99,event\n1,2,3,1\n2,1,-1,1\n3,1,5,0\n"
    (folder / "odd.csv").write_text(study)
    message = refused(capsys, folder, "fit", "odd.csv", "--time", "time", "--event", "event")
    assert "max_depth, sample_weight, t in row 99" in message
    of_time = "--time", "t in row 99", "--event", "event"
    message = refused(capsys, folder, "fit", "odd.csv", *of_time)
    assert message.startswith("bristlecone: error: odd.csv, line 3: column 't in row 99' is -1.0;")
    assert "max_depth: no such file" in refused(capsys, folder, "fit", "max_depth", *of_time)


def test_forecasts_suggest_options(capsys, folder):
    options = "--max-depth", 5, "--thresholds", "midpoints", "--estimate"
    _, _, warned = run(capsys, "fit", "gbsg2", *options)
    suggested = r"use --max-depth \d \(.*\) or --max-features \d+ --thresholds midpoints \("
    assert re.search(suggested, warned), warned


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--depth",), "unrecognized arguments: --depth (see bristlecone --help)"),
        (("grow",), "invalid choice: 'grow'"),
        (("fit",), "arguments are required: DATA (see bristlecone fit --help)"),
        (
            ("fit", "gbsg2", "--depth", "3"),
            "--estimator survival has no option --depth; it is an option of soft; did you mean "
            "--max-depth? (see "
            "bristlecone fit --help)",
        ),
        (
            ("fit", "study.csv", *FIT, "--entry", "status"),
            "--event and --entry are the same column",
        ),
        (("fit", "study.csv", *FIT, "--categorical", "days"), "--categorical: 'days' is the"),
        (("fit", "gbsg2", "--title", "A tree"), "--title needs --report"),
        (("fit", "gbsg2", "--teacher-weight", "0.3"), "--teacher-weight needs --teacher"),
        (("fit", "gbsg2", "--random-state", "3"), "--random-state needs --teacher"),
        (("fit", "gbsg2", "--max-d", "3"), "unrecognized arguments: --max-d 3"),
        (("fit", "gbsg2", "--max-depth", "deep"), "--max-depth: invalid integer value: 'deep'"),
        (("fit", "gbsg2", "--max-depth", "-1"), "--max-depth must be"),
        (("fit", "gbsg2", "--max-depth", "none"), "--max-depth none means unlimited"),
        (("fit", "gbsg2", "--min-samples-leaf", "0"), "--min-samples-leaf must be"),
        (("fit", "gbsg2", "--leaf-penalty", "nan"), "--leaf-penalty must be"),
        (("fit", "gbsg2", "--time-limit", "-1"), "--time-limit must be"),
        (("fit", "gbsg2", "--n-jobs", "0"), "--n-jobs must be"),
        (("fit", "gbsg2", "--objective", "luck"), "--objective must be"),
        (("fit", "gbsg2", "--thresholds", "any"), "--thresholds must be"),
        (("fit", "gbsg2", "--n-thresholds", "0"), "--n-thresholds must be"),
        (("fit", "gbsg2", "--drop", "agee"), "no column 'agee'; did you mean 'age'?"),
        (("fit", "gbsg2", "--drop", "time"), "--drop: 'time' is the column of --time"),
        (("fit", "gbsg"), "gbsg: no such file, and no bundled set of that name; did you mean"),
        (("fit", "study.csv"), "--time is needed"),
        (("fit", "study.csv", "--time", "days"), "--event is needed"),
        (("fit", "study.csv", "--time", "day", "--event", "status"), "did you mean 'days'?"),
        (("fit", "study.csv", "--time", "days", "--event", "days"), "are the same column 'days'"),
        (
            ("fit", "study.csv", "--time", "drug", "--event", "status"),
            "study.csv, line 2, column 'drug': 'a' is not a number",
        ),
        (("fit", "study.csv", "--time", "days", "--event", "drug"), "column 'drug' holds a, b"),
        (("fit", "study.csv", *FIT, "--event-value", "9"), "9 does not occur in column 'status'"),
        (("fit", "study.csv", *FIT, "--drop", "age", "drug"), "no columns besides"),
        (("fit", ".", *FIT), "no Parquet file (*.parquet) in this folder"),
        (("show", "none.json"), "none.json: No such file"),
        (("show", "study.csv"), "study.csv: "),
        (("predict", "none.json", "gbsg2"), "none.json: No such file"),
        (("datasets", "gbsg"), "did you mean 'gbsg2'?"),
        (("fit", "study.csv", *FIT, "--tune", "--folds", "99"), "--folds 99 yields no folds"),
        (
            ("fit", "rossi", "--sensitive", "prio", "--fairness-limit", "1"),
            "--sensitive has ",
        ),
    ],
)
def test_bad_arguments_get_one_line_that_names_them(capsys, folder, arguments, message):
    assert message in refused(capsys, folder, *arguments)


def test_a_closed_standard_input_is_refused(capsys, folder, monkeypatch):
    monkeypatch.setattr("sys.stdin", None)
    assert "standard input is closed" in refused(capsys, folder, "fit", "-", *FIT)


def test_a_file_that_cannot_be_written_is_named_as_the_user_does(tmp_path):
    place = Path("/proc/self/tree.json")
    if not place.parent.is_dir():
        pytest.skip("needs a folder in which nothing can be written")
    with pytest.raises(OSError, match=r"'/proc/self/tree\.json'"):
        write_files({tmp_path / "one.json": "{}", str(place): "{}"})
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("50,a,-3,1", "bad.csv, line 8: column 'days' is -3.0; times must be"),
        ("50,a,inf,1", "bad.csv, line 8: column 'days' is inf; times must be"),
        ("50,a,,1", "bad.csv, line 8: column 'days' has no value"),
        ("50,a,soon,1", "bad.csv, line 8, column 'days': 'soon' is not a number"),
        ("50,a,3,", "bad.csv, line 8: column 'status' has no value"),
        ("50,a,3,2", "column 'status' holds 1, 0, 2"),
        ("inf,a,3,1", "bad.csv, line 8: column 'age' is infinite"),
        ("50,a,3", "line 8: 3 cells where the header has 4 columns"),
    ],
)
def test_bad_rows_are_named_and_nothing_is_written(capsys, folder, line, message):
    (folder / "bad.csv").write_text(ROWS + line + "\n")
    options = ("--model", "m.json", "--report", "r.html")
    said = refused(capsys, folder, "fit", "bad.csv", *FIT, *options)
    assert message in said
    assert " row " not in said


def test_bad_weights_are_named_by_their_line(capsys, folder):
    header, *rows = ROWS.splitlines()
    lines = [f"{header},copies", *(f"{row},{k - 2}" for k, row in enumerate(rows))]
    (folder / "bad.csv").write_text("\n".join(lines) + "\n")
    for more in ((), ("--estimate",)):
        said = refused(capsys, folder, "fit", "bad.csv", *FIT, "--weight", "copies", *more)
        assert "bad.csv, line 2: --weight is -2.0" in said


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
    monkeypatch.setattr(_core, "solve", None)
    assert message in refused(capsys, folder, "fit", "study.csv", *FIT, *options)


def test_existing_files_stay_when_one_of_them_cannot_be_written(capsys, folder, monkeypatch):
    (folder / "m.json").write_text("old")
    (folder / "r.html").write_text("old")
    monkeypatch.setattr("bristlecone._cli.fit.html_report", lambda *_, **__: "\ud800")
    status, _, err = run(
        capsys, "fit", "study.csv", *FIT, "--model", "m.json", "--report", "r.html"
    )
    assert status == 2
    assert err.startswith("bristlecone: error: ")
    assert (folder / "m.json").read_text() == (folder / "r.html").read_text() == "old"
    assert sorted(path.name for path in folder.iterdir()) == ["m.json", "r.html", "study.csv"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--max-depth", "-1"), "--max-depth must be"),
        (("--missing", "guess"), "missing must be"),
        (
            ("--leaf-curve", "brier-optimal"),
            "--leaf-curve brier-optimal cannot be used with --objective likelihood",
        ),
        (("--time", "dayz"), "did you mean 'days'?"),
        (("--event", "status", "--time", "days", "--drop", "agee"), "did you mean 'age'?"),
        ((), "--time is needed"),
        (("--model", "no/m.json", *FIT), "--model: cannot write"),
    ],
)
def test_options_are_checked_before_the_rows_are_read(capsys, folder, options, message):
    # The rows are not read first.
    (folder / "late.csv").write_text(ROWS + "1,2\n")
    assert message in refused(capsys, folder, "fit", "late.csv", *options)


def test_a_cell_that_spoils_a_column_of_numbers_is_refused_with_the_ways_out(capsys, folder):
    rows = "".join(f"{k}.5,{k % 7 + 1},{k % 2}\n" for k in range(30))
    for cell in ('5"0', "50%", "2020-01-02", "soon"):
        (folder / "bad.csv").write_text("size,days,status\n" + rows + f"{cell},3,1\n")
        message = refused(capsys, folder, "fit", "bad.csv", *FIT)
        assert f"bad.csv, line 32, column 'size': {cell!r} is not a number" in message
        assert f"(--na {shlex.quote(cell)})" in message
        assert "(--categorical size)" in message
        _, as_missing, _ = run(capsys, "fit", "bad.csv", *FIT, "--na", cell, "--max-depth", 1)
        assert "size <= " in as_missing
        _, as_text, _ = run(capsys, "fit", "bad.csv", *FIT, "--categorical", "size")
        assert "size <= " not in as_text
