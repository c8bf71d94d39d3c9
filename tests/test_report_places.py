"""The report from the command line, in notebooks, and without Jinja2."""

import re
import sys

import pytest
from html_page import Page
from sklearn import config_context

from bristlecone import BinaryEncoder, OptimalSurvivalTree, datasets
from bristlecone._cli import main
from bristlecone._encoder.rules import leaf_rules, rule_text
from bristlecone.report import _rendering as rendering
from bristlecone.report import html_report
from bristlecone.trust import verify
from bristlecone.tune import TreeSizeCV


@pytest.fixture(scope="module")
def tree():
    veterans = datasets.load("veterans")
    model = OptimalSurvivalTree(max_depth=2, encoder=BinaryEncoder())
    return model.fit(veterans.X, veterans.y)


# Without Jinja2


@pytest.fixture
def no_engine(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    rendering._environment.cache_clear()
    yield
    rendering._environment.cache_clear()


def test_without_jinja_the_extra_is_named(tree, no_engine):
    with pytest.raises(ImportError, match=r"pip install 'bristlecone\[report\]'"):
        html_report(tree)


def test_the_command_line_says_so_before_the_fit(no_engine, capsys, monkeypatch, tmp_path):
    def fit(*_, **__):
        raise AssertionError("was fitted")

    monkeypatch.setattr(OptimalSurvivalTree, "fit", fit)
    assert main(["fit", "veterans", "--report", str(tmp_path / "r.html")]) == 2
    assert "bristlecone[report]" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


# The command line


def test_the_command_line_writes_the_report(tmp_path, capsys):
    path = tmp_path / "r.html"
    command = ["fit", "veterans", "--max-depth", "2", "--report", str(path)]
    assert main(command) == 0
    words = Page(path.read_text(encoding="utf-8")).words
    assert "Survival tree of veterans" in words
    assert "137 rows, 128 events, 6 columns" in words
    assert " ".join(["bristlecone", *command]) in words
    capsys.readouterr()


def test_a_saved_tree_is_shown_as_a_page(tmp_path, capsys, tree):
    model, path = tmp_path / "m.json", tmp_path / "r.html"
    model.write_text(tree.to_json(), encoding="utf-8")
    show = ["show", str(model), "--report", str(path)]
    assert main(show) == 0
    words = Page(path.read_text(encoding="utf-8")).words
    assert "Survival tree of m.json" in words and "137 rows, 128 events, 6 columns" in words
    assert main([*show, "--title", "A tree", "--time-label", "days"]) == 0
    words = Page(path.read_text(encoding="utf-8")).words
    assert words.startswith("A tree") and "median (days)" in words
    assert main(["show", str(model), "--title", "A tree"]) == 2
    assert "--title needs --report" in capsys.readouterr().err
    assert main(["show", str(model), "--report", str(model)]) == 2
    assert "is the file that is read" in capsys.readouterr().err


# Notebooks


def test_notebooks_show_the_tree_its_leaves_and_the_proof(tree):
    html = tree._repr_mimebundle_()["text/html"]
    assert html == tree._repr_html_()
    page = Page(html)
    assert page.having("diagram")
    assert "Optimal among trees over these 30 binary features." in page.words
    for rule in leaf_rules(tree):
        assert rule_text(rule) in page.text
    # Two outputs on one page do not conflict, and nothing needs a script.
    assert not [attrs for _, attrs in page.tags if "id" in attrs]
    assert "script" not in {tag for tag, _ in page.tags}
    styles = re.sub(r"/\*.*?\*/", "", "".join(page.raw), flags=re.DOTALL)
    for selectors in re.findall(r"([^{}]+)\{", styles):
        for selector in re.split(r",(?![^(]*\))", selectors):
            assert selector.strip().startswith((".bristlecone", ":where(.bristlecone)")), selector


def test_notebooks_show_the_parameters_where_there_is_no_tree(tree, no_engine):
    for model in (OptimalSurvivalTree(max_depth=7), tree):
        html = model._repr_mimebundle_()["text/html"]
        assert "sk-top-container" in html
        assert "bristlecone notebook" not in html


def test_notebooks_that_want_text_get_it(tree):
    with config_context(display="text"):
        assert list(tree._repr_mimebundle_()) == ["text/plain"]
        assert not hasattr(tree, "_repr_html_")


def test_notebooks_show_the_best_tree_of_a_fitted_search():
    veterans = datasets.load("veterans")
    search = TreeSizeCV(OptimalSurvivalTree(max_depth=1), cv=2)
    assert "sk-top-container" in search._repr_mimebundle_()["text/html"]
    search.fit(veterans.X, veterans.y)
    bundle = search._repr_mimebundle_()
    assert bundle["text/html"] == search.best_estimator_._repr_html_() == search._repr_html_()
    assert bundle["text/plain"].startswith("TreeSizeCV(")


def test_results_and_data_sets_have_short_texts(tree):
    veterans = datasets.load("veterans")
    assert repr(veterans).startswith("<veterans: ")
    assert "137 rows, 128 events, 6 columns" in repr(veterans) and "Karnofsky" in repr(veterans)
    leaf = tree.leaf_statistics_[0]
    assert repr(leaf).startswith(f"LeafStatistics(node={leaf.node}, n_samples={leaf.n_samples}")
    assert len(repr(veterans)) < 500 and len(repr(leaf)) < 100
    found = verify(tree, veterans.X, veterans.y)
    page = Page(found._repr_html_())
    assert [tag for tag, _ in page.tags].count("tr") == len(found.checks) + 1
    assert {check.name for check in found.checks} <= set(page.text)
    assert repr(found) == str(found)
