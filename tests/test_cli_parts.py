"""``bristlecone fit`` on several Parquet files."""

import io

import pandas as pd
import pytest
from command_line import FIT, ROWS, refused, run, study_folder


@pytest.fixture
def folder(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    path = study_folder(tmp_path, monkeypatch)
    table = pd.read_csv(io.StringIO(ROWS))
    (path / "parts").mkdir()
    for number, start in enumerate(range(0, 6, 2)):
        table[start : start + 2].to_parquet(path / "parts" / f"{number}.parquet", index=False)
    return path


def body(out):
    """The printed tree and its proof, without the name of the file and the seconds."""
    lines = out.splitlines()[1:]
    return [line for line in lines if not line.startswith(("seconds", "partitions"))]


@pytest.mark.parametrize("data", ["parts", "parts/*.parquet", "parts/[0-9].parquet"])
def test_parts_give_the_tree_of_one_file(capsys, folder, data):
    quantiles = ("--thresholds", "quantiles")
    _, of_csv, _ = run(capsys, "fit", "study.csv", *FIT, *quantiles)
    status, of_parts, err = run(capsys, "fit", data, *FIT, *quantiles, "--model", "m.json")
    assert (status, err) == (0, "")
    assert of_parts.startswith(f"{data}: 6 rows")
    assert body(of_parts) == body(of_csv)
    assert run(capsys, "show", "m.json")[1].splitlines()[2:-1] == of_parts.splitlines()[2:-1]


def test_columns_of_parts_are_changed(capsys, folder):
    options = ("--time", "days", "--event", "status", *FIT[4:], "--thresholds", "quantiles")
    table = pd.read_csv("study.csv")
    for number, start in enumerate(range(0, 6, 2)):
        part = table[start : start + 2].assign(status=lambda x: x["status"].map({1: "d", 0: "c"}))
        part["drug"] = part["drug"].map({"a": 7, "b": 12})
        part.to_parquet(folder / "parts" / f"{number}.parquet", index=False)
    more = ("--event-value", "d", "--categorical", "drug", "--drop", "age", "--n-jobs", "2")
    status, out, err = run(capsys, "fit", "parts", *options, *more)
    assert (status, err) == (0, "")
    assert "drug = 12" in out and "3 events" in out
    message = refused(capsys, folder, "fit", "parts", *options, "--event-value", "x")
    assert "--event-value: x does not occur in column 'status', which holds d, c" in message


def test_progress_of_parts(capsys, folder):
    _, _, err = run(capsys, "fit", "parts", *FIT, "--progress")
    assert "outcomes: " in err and "rows per second" in err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("parts", "--tune"), "--tune needs a single file; parts is read in parts"),
        (("parts", "--estimate"), "--estimate needs a single file"),
        (("parts", "--na", "-1"), "--na needs a single file"),
        (("parts", "--objective", "brier"), "--objective brier needs the rows"),
        (("parts", "--max-depth", "5", "--min-support", "0"), "--max-depth 4 or less"),
        (("none/*.parquet",), "none/*.parquet: no such file, and no file matches"),
        (("parts", "--estimator", "soft"), "estimator must be one of OptimalSurvivalTree"),
    ],
)
def test_refusals(capsys, folder, arguments, message):
    neutral = [] if "soft" in arguments else FIT[4:] if "brier" not in arguments else FIT[4:6]
    given = ("--time", "days", "--event", "status", *neutral)
    if "--max-depth" in arguments:
        arguments = (*arguments, "--thresholds", "midpoints")
    assert message in refused(capsys, folder, "fit", *arguments, *given)
