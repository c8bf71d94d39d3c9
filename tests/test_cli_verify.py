"""``bristlecone verify``: exit status, table, columns, changed files and other data."""

import numpy as np
import pandas as pd
import pytest
from command_line import refused, run
from pace import slow_but
from tampering import changed
from test_cli_estimators import CASES, TABLE

from bristlecone import load_model
from bristlecone._cli.kinds import KINDS, flag
from bristlecone.datasets import list_datasets


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    TABLE.to_csv("t.csv", index=False)
    return tmp_path


def columns(case):
    """Those arguments of a fit that name columns."""
    flags = {flag(role) for role in KINDS[case.kind].roles}
    named, taken = [], False
    for one in map(str, case.arguments):
        taken = one in flags if one.startswith("--") else taken
        named += [one] if taken else []
    return [*named, "--weight", "w"]


@pytest.mark.parametrize("name", list_datasets())
def test_every_bundled_set_verifies(capsys, folder, name):
    run(capsys, "fit", name, "--max-depth", 2, "--model", "m.json")
    status, out, err = run(capsys, "verify", "m.json", name)
    assert (status, err) == (0, "")
    assert out.startswith(f"m.json on {name}: OptimalSurvivalTree, ")
    assert out.endswith(" checks passed\n")


@pytest.mark.parametrize("name", slow_but({"survival, fair", "policy"}, CASES))
def test_every_estimator_verifies_with_the_columns_of_its_fit(capsys, folder, name):
    case = CASES[name]
    run(capsys, *case.command, "--model", "m.json")
    status, out, err = run(capsys, "verify", "m.json", "t.csv", *columns(case))
    assert (status, err) == (0, ""), out
    assert "failed" not in out


def test_a_changed_file_fails_with_the_name_of_the_check(capsys, folder):
    run(capsys, "fit", "gbsg2", "--max-depth", 2, "--model", "m.json")
    path = folder / "m.json"
    feature = {("tree", "improvement", 0): lambda value: value * 1.5}
    path.write_text(changed(path.read_text(encoding="utf-8"), feature), encoding="utf-8")
    status, out, err = run(capsys, "verify", "m.json", "gbsg2")
    assert (status, err) == (1, "")
    failed = [line for line in out.splitlines() if "failed " in line]
    assert len(failed) == 1 and failed[0].startswith("improvements")
    assert out.endswith("16 checks passed, 1 failed\n")


def test_other_data_fail(capsys, folder):
    case = CASES["regressor"]
    run(capsys, *case.command, "--model", "m.json")
    other = TABLE.copy()
    other.loc[7, "price"] += 0.5
    other.to_csv("other.csv", index=False)
    status, out, _ = run(capsys, "verify", "m.json", "other.csv", *columns(case))
    assert status == 1
    assert out.splitlines()[2].startswith("rows              failed")


def test_without_the_weights_of_the_fit_it_fails(capsys, folder):
    case = CASES["regressor"]
    run(capsys, *case.command, "--model", "m.json")
    status, _, _ = run(capsys, "verify", "m.json", "t.csv", *columns(case)[:-2])
    assert status == 1


def test_a_tree_with_leaves_of_other_rows_verifies_on_these(capsys, folder):
    case = CASES["regressor"]
    run(capsys, *case.command, "--model", "m.json")
    other = TABLE.sample(50, random_state=0)
    other.to_csv("other.csv", index=False)
    tree = load_model("m.json").reestimate(other, other["price"])
    (folder / "honest.json").write_text(tree.to_json(), encoding="utf-8")
    status, out, _ = run(capsys, "verify", "honest.json", "other.csv", "--target", "price")
    assert status == 0, out
    assert "a reestimated tree has no lower bound" in out


def test_what_cannot_be_proven_again_is_reported(capsys, folder):
    run(capsys, "fit", "rossi", "--max-depth", 2, "--model", "m.json")
    status, out, _ = run(capsys, "verify", "m.json", "rossi", "--most-work", 1)
    assert status == 0
    assert "lower bound       not checked" in out and "not proven again: trying every" in out


def test_what_does_not_fit_together_is_refused(capsys, folder):
    run(capsys, "fit", "rossi", "--max-depth", 1, "--model", "m.json")
    reported = refused(capsys, folder, "verify", "m.json", "gbsg2")
    assert "gbsg2: the data have no column 'fin'" in reported
    reported = refused(capsys, folder, "verify", "m.json", "rossi", "--target", "race")
    assert "m.json is an OptimalSurvivalTree, which does not use --target" in reported
    reported = refused(capsys, folder, "verify", "m.json", "rossi", "--weight", "heft")
    assert "--weight: the data have no column 'heft'" in reported
    reported = refused(capsys, folder, "verify", "other.json", "rossi")
    assert "other.json" in reported


def test_missing_cells_and_event_values_are_read_as_in_the_fit(capsys, folder):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "age": rng.integers(40, 80, 70).astype(str),
            "stage": rng.choice(["1", "2", "3"], 70),
            "days": rng.integers(1, 90, 70),
            "state": rng.choice(["dead", "alive"], 70),
        }
    )
    table.loc[[3, 8], "age"] = "?"
    table.to_csv("s.csv", index=False)
    named = ("--time", "days", "--event", "state", "--event-value", "dead", "--na", "?")
    run(capsys, "fit", "s.csv", *named, "--categorical", "stage", "--model", "m.json")
    status, out, _ = run(capsys, "verify", "m.json", "s.csv", *named)
    assert status == 0, out
