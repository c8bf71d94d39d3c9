"""The pages for users of other programs run, and both programs find the same tree.

Each program runs in its own process, because osst aborts at a second fit. Programs that are not
installed are skipped (``pip install '.[peers]'``; rpart and partykit from R).
"""

import importlib.util
import multiprocessing
import os
import re
import shutil
import subprocess
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import test_documentation

from benchmarks.adapters import Setting, adapter
from benchmarks.problems import Problem
from bristlecone import BinaryEncoder, OptimalSurvivalTree, OptimalTreeClassifier
from bristlecone.datasets import load

FOLDER = Path(__file__).parents[1] / "docs" / "coming-from"
PAGES = sorted(set(FOLDER.glob("*.md")) - {FOLDER / "index.md"})
PROGRAMS = ("gosdt", "lifelines", "osst", "pydl85", "pystreed", "sksurv")
PAPERS = {"min_events_leaf": None, "prior": 0, "shrinkage": 0}


def apart(function, *arguments):
    """Result of a function that runs in its own process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result(timeout=120)


def needs(program):
    if importlib.util.find_spec(program) is None:
        pytest.skip(f"{program} is not installed")


def needs_r(package):
    rscript = shutil.which("Rscript")
    command = [rscript, "-e", f"library({package})"]
    if rscript is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip(f"{package} of R is not installed")


def run_page(page, folder):
    os.chdir(folder)
    test_documentation.run(page)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_run_and_print_what_is_written(page, tmp_path):
    text = page.read_text(encoding="utf-8")
    for program in re.findall(r"^(?:from|import) (\w+)", text, re.MULTILINE):
        if program in PROGRAMS:
            needs(program)
    for package in re.findall(r"library\((\w+)\)", text):
        needs_r(package)
    apart(run_page, page, tmp_path)


def test_every_page_is_listed_and_has_a_table_of_parameters():
    listed = re.findall(r"^\| \[.*\]\((.*)\)", (FOLDER / "index.md").read_text("utf-8"), re.M)
    assert sorted(listed) == [page.name for page in PAGES]
    for page in PAGES:
        rows = re.findall(r"^\|.*\|$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(rows) > 8, page


# The same tree


def leaves_of_program(name, problem, setting):
    """Leaf of each row, and the objective that the program reports."""
    model = adapter(name)(problem, setting, "")
    model.fit()
    outcome = model.outcome()
    return outcome.leaves, outcome.objective


def same_partition(left, right):
    """Whether two labellings group the rows in the same way."""
    pairs = len(set(zip(left.tolist(), right.tolist(), strict=True)))
    return pairs == len(np.unique(left)) == len(np.unique(right))


def survival(name, **options):
    data = load(name)
    X = np.asarray(BinaryEncoder(**options).fit(data.X).transform(data.X), dtype=np.uint8)
    target = {"event": data.y["event"], "time": data.y["time"].astype(float)}
    return Problem(name, X, target), data.y


@pytest.mark.slow
@pytest.mark.parametrize(("name", "depth"), [("whas500", 3), ("gbsg2", 3), ("lung", 2)])
def test_pystreed_finds_the_same_tree_and_charges_leaves_without_events(name, depth):
    needs("pystreed")
    problem, y = survival(name)
    setting = Setting("likelihood", depth)
    tree = OptimalSurvivalTree(max_depth=depth, **PAPERS).fit(problem.X.astype(bool), y)
    leaves, score = apart(leaves_of_program, "pystreed", problem, setting)
    assert same_partition(leaves, tree.apply(problem.X.astype(bool)))
    free = (tree.leaf_table()["n_events"] == 0).sum()
    assert score == pytest.approx(tree.objective_value_ + 0.5 * free / len(y), abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["whas500", "maintenance"])
def test_osst_finds_the_same_tree_and_divides_by_the_span_of_times(name):
    needs("osst")
    problem, y = survival(name, n_thresholds=3)
    span = (y["time"].max() - y["time"].min()) / y["time"].max()
    tree = OptimalSurvivalTree(
        objective="brier",
        max_depth=3,
        min_samples_leaf=5,
        leaf_penalty=0.005 * span,
        min_events_leaf=None,
        shrinkage=0,
    ).fit(problem.X.astype(bool), y)
    assert tree.n_leaves_ > 2
    setting = Setting("brier", 3, leaf_penalty=0.005 * span, min_samples_leaf=5)
    leaves, score = apart(leaves_of_program, "osst", problem, setting)
    assert same_partition(leaves, tree.apply(problem.X.astype(bool)))
    # osst computes in single precision.
    assert score == pytest.approx(tree.objective_value_ / span, rel=1e-5)


@pytest.fixture(scope="module")
def labels():
    data = load("gbsg2")
    X = np.asarray(BinaryEncoder(n_thresholds=4).fit(data.X).transform(data.X), dtype=np.uint8)
    return Problem("labels", X, {"y": data.y["event"].astype(np.int64)})


@pytest.mark.slow
def test_gosdt_finds_the_same_tree(labels):
    needs("gosdt")
    setting = Setting("accuracy", 3, leaf_penalty=0.01)
    X, y = labels.X.astype(bool), labels.target["y"]
    tree = OptimalTreeClassifier(max_depth=3, leaf_penalty=0.01).fit(X, y)
    assert tree.n_leaves_ > 2
    leaves, score = apart(leaves_of_program, "gosdt", labels, setting)
    assert same_partition(leaves, tree.apply(X))
    assert score == pytest.approx(tree.objective_value_, rel=1e-5)


@pytest.mark.slow
def test_pydl85_finds_a_tree_with_as_few_errors(labels):
    """Many trees have equally few errors, so only the errors are compared."""
    needs("pydl85")
    setting = Setting("accuracy", 3, min_samples_leaf=10)
    X, y = labels.X.astype(bool), labels.target["y"]
    tree = OptimalTreeClassifier(max_depth=3, min_samples_leaf=10).fit(X, y)
    leaves, score = apart(leaves_of_program, "pydl85", labels, setting)
    groups = pd.Series(y).groupby(leaves)
    errors = sum(len(group) - group.value_counts().iloc[0] for _, group in groups)
    assert errors == (tree.predict(X) != y).sum() == round(score * len(y))
