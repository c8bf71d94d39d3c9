"""The pictures of the guide show what the code next to them draws now."""

import importlib.util
import json
import re
from pathlib import Path

import pytest
from pace import slow_but

pytest.importorskip("matplotlib")

DOCS = Path(__file__).parents[1] / "docs"
spec = importlib.util.spec_from_file_location("pictures", DOCS / "pictures.py")
pictures = importlib.util.module_from_spec(spec)
spec.loader.exec_module(pictures)

PAGES = {page.stem: page for page in pictures.pages()}
QUICK = {"classification", "encoder", "first-tree", "metrics", "regression"}
KNOWN = json.loads(pictures.DRAWN.read_text(encoding="utf-8"))
MADE = {name: page for page in pictures.pages() for _, name in pictures.steps(page) if name}


# Those that are drawn quickly. test_documentation.py runs the code of the others.
@pytest.mark.parametrize("page", slow_but(QUICK, PAGES))
def test_pictures_are_current(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, ax in pictures.drawings(PAGES[page]):
        # "python docs/pictures.py" draws them again.
        assert pictures.drawn(name, ax) == KNOWN[name], name


def test_every_picture_is_made_shown_and_small():
    files = {file.stem: file for file in pictures.FOLDER.glob("*.png")}
    assert files.keys() == KNOWN.keys() == MADE.keys()
    for file in files.values():
        assert file.stat().st_size < 60_000, file
    text = (DOCS / "guide" / "pictures.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\.\./pictures/([\w-]+)\.png", text)) == files.keys()


def test_the_page_of_the_readme_is_current_and_linked():
    pytest.importorskip("jinja2")
    page = pictures.REPORT.read_text(encoding="utf-8")
    # "python docs/pictures.py" writes it again.
    assert pictures.lasting(page) == pictures.lasting(pictures.report())
    assert pictures.lasting(page) != page and len(page) < 300_000
    assert "](docs/report.html)" in (DOCS.parent / "README.md").read_text(encoding="utf-8")


def test_a_picture_that_draws_something_else_is_noticed():
    from matplotlib import pyplot

    _, ax = pyplot.subplots()
    ax.plot([1, 2], [3.0, 4.0])
    before = pictures.drawn("any", ax)
    ax.lines[0].set_ydata([3.0, 4.1])
    assert pictures.drawn("any", ax) != before
