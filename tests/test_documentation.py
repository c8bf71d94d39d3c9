"""Every example of README.md, docs/guide and docstrings runs and prints what is written."""

import ast
import contextlib
import doctest
import importlib
import inspect
import io
import json
import pkgutil
import re
import shlex
import subprocess
import warnings
from pathlib import Path

import pytest
from joblib.externals.loky import get_reusable_executor
from pace import slow_but

import bristlecone
from bristlecone._cli import main
from bristlecone._tree import Tree

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "docs" / "index.md"]
PAGES += sorted((ROOT / "docs" / "guide").glob("*.md"))
# The examples of these run with the quick tests, those of others with all tests and `just docs`.
QUICK_PAGES = "README.md", "first-tree.md", "fitted-tree.md", "trust.md", "command-line.md"
# Importing __main__ would run it.
MODULES = ["bristlecone"] + [
    module.name
    for module in pkgutil.walk_packages(bristlecone.__path__, "bristlecone.")
    if not module.name.endswith("__main__")
]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.MULTILINE | re.DOTALL)

# The file in the page on the command line.
STUDY = "id;age;days;status\n" + "".join(
    f"{i};{age};{days};{status}\n"
    for i, (age, days, status) in enumerate(
        [(50, 10, "dead"), (60, 4, "dead"), (55, 20, "alive"), (70, 2, "dead"), (40, 30, "lost")]
    )
)

# The same with a typing error in a cell.
SPOILT = "age,time,event\n" + "".join(
    f"{age},{time},1\n" for time, age in enumerate(("50", "60", '5"0', "70", "40", "45"), start=1)
)

# A trial from which a policy is learned.
TRIAL = "age,arm,p,gain\n" + "".join(
    f"{age},{arm},0.5,{gain}\n"
    for age, arm, gain in [(50, "drug", 3), (60, "drug", 8), (45, "none", 5), (65, "none", 2)]
)


def printed(run, *arguments):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        run(*arguments)
    return out.getvalue()


def same(expected, got):
    """Whether a text is the expected one, except for empty lines at its end; "..." is any text."""
    checker = doctest.OutputChecker()
    return checker.check_output(expected.rstrip("\n"), got.rstrip("\n"), doctest.ELLIPSIS)


def without_seconds(text):
    return re.sub(r"^(seconds +)[\d.e-]+$", r"\1...", text, flags=re.MULTILINE)


def run(page):
    """Run the blocks of a page in the working directory, and compare their output."""
    Path("study.csv").write_text(STUDY)
    Path("spoilt.csv").write_text(SPOILT)
    Path("trial.csv").write_text(TRIAL)
    namespace = {"__name__": page.stem}
    executed = 0
    for kind, content, expected in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind == "python":
            code = compile(content, page.name, "exec")
            got = printed(exec, code, namespace)
            assert same(expected, got), f"{content}\nprinted\n{got}"
            executed += 1
        elif kind == "console":
            for session in re.split(r"^\$ ", content, flags=re.MULTILINE)[1:]:
                command, _, written = session.partition("\n")
                program, *arguments = shlex.split(command)
                assert program == "bristlecone"
                got = printed(main, arguments)
                assert same(without_seconds(written), without_seconds(got)), f"{command}\n{got}"
                executed += 1
        elif kind == "r":
            run = subprocess.run(["Rscript", "-"], input=content, capture_output=True, text=True)
            got = re.sub(r" +$", "", run.stdout, flags=re.MULTILINE)
            assert run.returncode == 0 and same(expected, got), f"{content}\n{run.stderr}{got}"
            executed += 1
    assert executed


@pytest.mark.parametrize(
    "page",
    slow_but([page for page in PAGES if page.name in QUICK_PAGES], PAGES),
    ids=lambda page: page.name,
)
def test_examples_run_and_print_what_is_written(page, tmp_path, monkeypatch):
    if "import SurvLoader" in page.read_text(encoding="utf-8"):
        pytest.importorskip("SurvSet")
        # Its data are pickles of an older NumPy.
        warnings.filterwarnings("ignore", "numpy.core", DeprecationWarning)
    # Processes of an earlier test would read files of the folder in which they were started.
    get_reusable_executor().shutdown()
    monkeypatch.chdir(tmp_path)
    run(page)


def test_the_notebook_runs_and_prints_what_it_shows(tmp_path, monkeypatch):
    """Run the notebook in this process. The site runs it with a Jupyter kernel and its pictures."""
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.chdir(tmp_path)
    cells = json.loads((ROOT / "docs" / "tutorial.ipynb").read_text(encoding="utf-8"))["cells"]
    codes = [cell for cell in cells if cell["cell_type"] == "code"]
    namespace = {}
    for cell in codes:
        got = printed(interactively, "".join(cell["source"]), namespace)
        shown = ["".join(output.get("text", "")) for output in cell["outputs"]]
        shown += [
            "".join(output.get("data", {}).get("text/plain", "")) for output in cell["outputs"]
        ]
        pictures = [text for text in shown if text.startswith("<Figure")]
        assert len(pictures) == any("image/png" in o.get("data", {}) for o in cell["outputs"])
        expected = "".join(text for text in shown if text not in pictures)
        assert same(expected, got), f"{cell['source']}\nprinted\n{got}"
    assert len(codes) > 5


def interactively(source, namespace):
    """Run a cell and, like a notebook, print the value of an expression at its end."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "cell", "exec"), namespace)
    if last is not None:
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), namespace)
        if value is not None:
            print(value)


def public_objects():
    """Qualified name and object of every public function and class, except exception classes."""
    found = {"Tree": Tree}
    rooms = (getattr(bristlecone, name) for name in bristlecone.__all__)
    for module in (bristlecone, *filter(inspect.ismodule, rooms)):
        found |= {f"{module.__name__}.{name}": getattr(module, name) for name in module.__all__}
    return {
        name: item
        for name, item in found.items()
        if callable(item) and not (isinstance(item, type) and issubclass(item, Exception))
    }


PUBLIC = public_objects()


@pytest.mark.parametrize("name", PUBLIC)
def test_public_objects_have_an_example_that_runs_by_itself(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (test,) = doctest.DocTestFinder(recurse=False).find(PUBLIC[name], name, module=False, globs={})
    assert re.search(r"^ *Examples\n *-{8}$", test.docstring, re.MULTILINE)
    report = io.StringIO()
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    assert not runner.run(test, out=report.write).failed, report.getvalue()
    assert test.examples


def docstring_examples(module):
    """Examples of a module, without those of public objects, which are run above."""
    public = {f"{item.__module__}.{item.__qualname__}" for item in PUBLIC.values()}
    found = doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(module))
    return [test for test in found if test.examples and test.name not in public]


@pytest.mark.parametrize("module", MODULES)
def test_docstring_examples_print_what_is_written(module, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for test in docstring_examples(module):
        report = io.StringIO()
        assert not runner.run(test, out=report.write).failed, report.getvalue()


@pytest.mark.parametrize("name", PUBLIC)
def test_public_objects_say_what_is_akin(name):
    """One to three entries, each with public names and their purpose."""
    text = inspect.getdoc(PUBLIC[name])
    section = re.search(r"^See Also\n-{8}\n((?:.+\n?)+)", text, re.MULTILINE)
    assert section, text
    entries = [line for line in section[1].splitlines() if not line.startswith(" ")]
    assert 1 <= len(entries) <= 3
    known = {public.removeprefix("bristlecone.") for public in PUBLIC}
    known |= {public.rpartition(".")[2] for public in PUBLIC}
    for entry in entries:
        names, separator, _ = entry.partition(" : ")
        assert separator, entry
        for akin in names.split(", "):
            assert akin.removeprefix("bristlecone.") in known, entry


def test_readme_has_exactly_the_two_set_up_commands():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [content for kind, content, _ in BLOCK.findall(readme) if kind == "sh"] == [
        "python -m pip install . && bristlecone fit gbsg2 --max-depth 3\n",
        "python -m pip install '.[test]' && python -m pytest -m \"not slow\" -n auto\n",
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        # The site generates these: see docs/site_pages.py.
        made = target.startswith(("gallery/", "api/", "benchmarks/"))
        assert made or (page.parent / target).exists(), target
