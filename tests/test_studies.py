"""The studies of the papers run on tiny data sets, resume, and write pages. Nothing is timed."""

import importlib
import json
import logging
import math
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pace import slow_but

# The pickles of SurvSet are older than NumPy 2.
pytestmark = pytest.mark.filterwarnings("ignore:numpy.core:DeprecationWarning")

ROOT = Path(__file__).parent.parent
STUDIES = ("surtree", "osst", "osdt", "streed", "soft", "growth", "optimality")
QUICK = ("optimality", "streed")


@pytest.fixture(scope="module", autouse=True)
def path():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT)
        pytest.importorskip("SurvSet")
        yield


@pytest.fixture
def study():
    return lambda name: importlib.import_module(f"benchmarks.studies.{name}")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Run a study once for all tests that use its record."""
    known = {}

    def make(name):
        if name not in known:
            folder = tmp_path_factory.mktemp(name)
            assert run(name, folder) == 0
            known[name] = folder
        return known[name]

    return make


def run(name, folder):
    main = importlib.import_module("benchmarks.studies.__main__").main
    return main([name, "--quick", "--out", str(folder)])


@pytest.mark.parametrize("name", slow_but(QUICK, STUDIES))
def test_every_study_computes_its_cells_and_writes_a_page(name, made, study):
    folder, module = made(name), study(name)
    rows = study("cells").read(folder / f"{name}.csv")
    keys = rows[list(study("cells").Key._fields)].drop_duplicates()
    assert {tuple(key) for key in keys.itertuples(index=False)} == set(module.cells(True))
    page = (folder / f"{name}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {module.TITLE}\n") and "its numbers mean nothing" in page
    begun = set(rows["experiment"])
    for experiments, (title, _) in module.SECTIONS.items():
        assert (f"## {title}\n" in page) == bool(begun & set(experiments.split()))
    for picture in re.findall(r"!\[.*?\]\((.*?)\)", page):
        assert 1_000 < (folder / picture).stat().st_size < 100_000
    assert all(f"* {text}\n" in page for text in module.DIFFERENCES)
    record = json.loads((folder / f"{name}.json").read_text(encoding="utf-8"))
    assert record["cells"] == len(keys) and record["machine"]["cpu"]
    assert f"[{module.TITLE}]({name}.md)" in (folder / "index.md").read_text(encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_but(["optimality"], STUDIES))
def test_an_interrupted_study_computes_only_what_is_missing(
    name, made, study, tmp_path, caplog, monkeypatch
):
    whole = (made(name) / f"{name}.csv").read_text(encoding="utf-8")
    lines = whole.splitlines(keepends=True)
    first = max(k for k, line in enumerate(lines[:-1]) if ",took," in line or k == 0) + 1
    # The last line of the record is truncated, so its cell is computed again.
    (tmp_path / f"{name}.csv").write_text("".join(lines[:-1]) + lines[-1][:-3], encoding="utf-8")
    monkeypatch.setattr(study("cells").log, "propagate", True)
    caplog.clear()  # the whole study may have been run recently
    with caplog.at_level(logging.INFO, "benchmarks.studies"):
        assert run(name, tmp_path) == 0
    assert [message.split()[0] for message in caplog.messages if " took " in message] == ["1/1"]
    again = (tmp_path / f"{name}.csv").read_text(encoding="utf-8").splitlines(keepends=True)
    assert again[:first] == lines[:first]
    assert [line.rpartition(",")[0] for line in again] == [
        line.rpartition(",")[0] for line in lines
    ]


def test_a_cell_that_fails_is_reported_and_tried_again(study, tmp_path, caplog, monkeypatch):
    cells = study("cells")
    monkeypatch.setattr(cells.log, "propagate", True)
    good, bad = (cells.Key("e", name, "m", 1) for name in ("good", "bad"))
    answers = iter([ZeroDivisionError("no"), {"seconds": 2.0}])

    def second():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    wanted = {bad: second, good: lambda: {"seconds": 1.0, "unknown": math.nan}}
    path = tmp_path / "study.csv"
    with caplog.at_level(logging.INFO, "benchmarks.studies"):
        assert cells.run(wanted, path) == 1
    assert "e bad m depth 1 x 0 0 failed" in caplog.text
    assert set(cells.read(path)["set"]) == {"good"}
    assert cells.run(wanted, path) == 0
    rows = cells.read(path).set_index(["set", "metric"])["value"]
    assert rows["good", "seconds"] == 1.0 and rows["bad", "seconds"] == 2.0
    assert np.isnan(rows["good", "unknown"])
    # Other programs may write numbers differently.
    path.write_text(path.read_text().replace(",1,0.0,0,", ",1,0,0,"))
    assert ",1,0,0," in path.read_text()
    assert cells.run(wanted, path) == 0, "a finished cell was computed again"


def losses(study, folder, name, experiment, metric="loss"):
    rows = study("cells").read(folder / f"{name}.csv")
    return study("page").wide(rows[rows["experiment"] == experiment], metric)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "experiment", "peer", "tolerance"),
    [("surtree", "objective", "pystreed", 1e-9), ("osst", "time", "osst", 1e-5)],
)
def test_the_other_program_finds_the_same_loss(name, experiment, peer, tolerance, made, study):
    pytest.importorskip(peer)
    found = losses(study, made(name), name, experiment)
    assert found["bristlecone"].to_numpy() == pytest.approx(found[peer].to_numpy(), abs=tolerance)


@pytest.mark.slow
def test_no_greedy_tree_has_a_smaller_training_loss(made, study):
    pytest.importorskip("sksurv")
    found = losses(study, made("surtree"), "surtree", "depth")
    assert (found["bristlecone"] < found["sksurv"]).all()


def test_both_programs_find_policies_of_equal_value(made, study):
    pytest.importorskip("pystreed")
    found = losses(study, made("streed"), "streed", "policy", "value")
    assert found.shape == (3, 2)
    assert found.iloc[:, 0].to_numpy() == pytest.approx(found.iloc[:, 1].to_numpy(), abs=1e-9)


# The parts


@pytest.mark.parametrize("censored", [0.1, 0.5, 0.8])
def test_synthetic_sets_are_censored_as_asked(study, censored):
    train, test = study("surtree").synthetic(400, censored, 2, 0, 300)
    for (X, event, when), n in ((train, 400), (test, 300)):
        assert X.shape == (n, 12) and (when > 0).all()
        # The smallest k censors at most this share. A smaller k would censor one more row.
        assert 1 - event.mean() == pytest.approx(censored, abs=1e-12)
    (again,) = study("surtree").synthetic(400, censored, 2, 0)
    assert again[2].tolist() == train[2].tolist()


def test_costs_of_errors_follow_equation_59(study):
    y = np.array([0, 0, 0, 1])
    found = study("streed").matrix(y, 2, 12.0, "middle")
    assert found == pytest.approx(np.array([[0, 4 / (0.75 * 2)], [4 / (0.25 * 2), 0]]))


def test_cost_of_a_tree_counts_errors_and_each_question_once(study):
    target = {
        "y": np.array([0, 1, 1]),
        "cost_matrix": np.array([[0.0, 5.0], [7.0, 0.0]]),
        "feature_cost": np.array([1.0, 2.0]),
        "feature_discount": np.array([1.0, 0.5]),
        "feature_origin": np.array([0, 1]),
        "feature_group": np.array([0, 0]),
    }
    X = np.array([[0, 0], [1, 0], [1, 1]])
    # Row 0 stops after feature 0; the others pay the discounted price of feature 1.
    root = (0, 1, (1, 0, 1))
    assert study("streed").cost_on(X, target, root) == pytest.approx((5 + 7 + 3 * 1 + 2 * 0.5) / 3)


def test_comparison_of_methods(study):
    page = study("page")
    assert page.holm({"a": 0.01, "b": 0.04, "c": 0.03}) == pytest.approx(
        {"a": 0.03, "c": 0.06, "b": 0.06}
    )
    same = pd.Series([0.5, 0.6, 0.7])
    assert page.signed_rank(same, same) == 1.0
    frame = pd.DataFrame({"one": [0.9, 0.8, 0.7, np.nan], "two": [0.8, 0.9, 0.6, 0.5]})
    text = "\n".join(page.compared(frame, greater_is_better=True))
    assert "| one | 0.8000 | 1.33 | 2 | – | – | – |" in text
    assert "| two | 0.7667 | 1.67 | 1 | 2 : 1 | +0.0333 | " in text
    assert "3 sets have a score of every method" in text
    text = "\n".join(page.compared(frame, greater_is_better=False))
    assert "| two | 0.7667 | 1.33 | 2 | 1 : 2 | +0.0333 | " in text


def test_ratios_and_tables_of_seconds_leave_out_what_did_not_end(study):
    cells, page = study("cells"), study("page")
    rows = [
        (*cells.Key("time", "a", "bristlecone", 3), "seconds", 0.5),
        (*cells.Key("time", "a", "peer", 3), "seconds", 2.0),
        (*cells.Key("time", "b", "bristlecone", 3), "seconds", 0.001),
        (*cells.Key("time", "b", "peer", 3), "timeout", 60.0),
    ]
    frame = pd.DataFrame(rows, columns=cells.COLUMNS)
    assert page.ratios(frame, "peer") == [4.0]
    text = page.times(frame, ["set"], ["bristlecone", "peer", "other"], ["set"])
    assert "| a | 0.500 | 2.00 | – |" in text and "| b | 0.00100 | > 60 | – |" in text


def test_exponents_are_those_of_the_last_points(study):
    seconds = pd.Series({10: 0.001, 100: 0.1, 1000: 10.0})
    assert study("growth").exponent(seconds, exponential=False) == pytest.approx(2.0)
    by_level = pd.Series({1: 0.1, 2: 0.3, 3: 0.9})
    assert np.exp(study("growth").exponent(by_level, exponential=True)) == pytest.approx(3.0)
    assert np.isnan(study("growth").exponent(seconds[:2], exponential=False))


def test_published_numbers_are_unique_and_those_of_the_papers(study):
    rows = pd.read_csv(study("page").PUBLISHED, dtype=str, keep_default_na=False)
    assert not rows.duplicated(["study", "place", "set", "method", "setting", "metric"]).any()
    found = study("page").published("surtree", "table 1").set_index(["set", "method", "metric"])
    assert float(found.loc[("flchain", "SurTree", "ibs"), "value"]) == 0.66
    assert float(found.loc[("csl", "CTree", "c"), "value"]) == 0.78
    assert len(study("page").published("streed", "table 10")) == 14 * 6
    assert len(study("page").published("streed", "table 8")) == 5 * 8


def test_pages_of_the_site_are_those_of_the_records(study, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "docs")
    import site_pages

    pages, records = ROOT / "docs" / "studies", ROOT / "benchmarks" / "records" / "studies"
    names = [path.stem for path in records.glob("*.csv")]
    assert set(names) <= set(STUDIES)
    for name in [*names, "index"]:
        text = (pages / f"{name}.md").read_text(encoding="utf-8")
        # Raises an error for a dead link.
        assert site_pages.relink(text, f"docs/studies/{name}.md").startswith("# ")
        assert "mean nothing" not in text
        assert name == "index" or f"\n{name}\n" in (pages / "index.md").read_text("utf-8")
    assert all(path.stat().st_size < 100_000 for path in pages.iterdir())
