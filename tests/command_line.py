"""Fixtures and functions that the tests of the command line share."""

import re
import subprocess
import sys

from bristlecone._cli import main

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
# Six rows cannot be split with five events per leaf, so these are the settings of the papers.
PAPERS = ("--min-events-leaf", "none", "--prior", "0", "--shrinkage", "0")
FIT = ("--time", "days", "--event", "status", *PAPERS)


def study_folder(tmp_path, monkeypatch):
    """Working directory of the commands, with ``study.csv``."""
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
    """Message of an error; asserts its form, and that no file of the folder has changed."""
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
    return dict(
        re.split(r"\s{2,}|(?<=binary features|false positives|false negatives)\s", line, maxsplit=1)
        for line in lines
    )
