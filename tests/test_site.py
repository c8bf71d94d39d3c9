"""Sources of the site, without Sphinx: examples of the gallery, links and generated pages."""

import importlib.util
import inspect
import re
from pathlib import Path

import pytest
from pace import slow_but

import bristlecone

DOCS = Path(__file__).parents[1] / "docs"
spec = importlib.util.spec_from_file_location("site_pages", DOCS / "site_pages.py")
site_pages = importlib.util.module_from_spec(spec)
spec.loader.exec_module(site_pages)

EXAMPLES = sorted((DOCS / "examples").glob("*.py"))


@pytest.mark.parametrize("example", slow_but(EXAMPLES[:1], EXAMPLES), ids=lambda file: file.stem)
def test_examples_of_the_gallery_run_and_draw(example, capsys):
    pyplot = pytest.importorskip("matplotlib.pyplot")
    exec(compile(example.read_text(encoding="utf-8"), example.name, "exec"), {})
    # The code after every text, except the last, prints or draws something.
    assert pyplot.get_fignums()
    for number in pyplot.get_fignums():
        assert all(ax.has_data() or ax.texts for ax in pyplot.figure(number).axes)


def test_the_gallery_has_every_topic():
    topics = "clinical_trial churn maintenance insurance_claims policies fairness competing_risks"
    topics += " taught_trees"
    assert [re.sub(r"plot_\d_", "", file.stem) for file in EXAMPLES] == topics.split()


def test_every_page_of_guide_and_maths_is_in_one_table_of_contents():
    listed = [
        line
        for text in site_pages.contents()
        for line in text.splitlines()
        if line.startswith(("guide/", "maths/"))
    ]
    pages = [*DOCS.glob("guide/*.md"), *DOCS.glob("maths/*.md")]
    assert sorted(listed) == sorted(f"{page.parent.name}/{page.stem}" for page in pages)


def test_links_lead_to_pages_or_to_the_repository():
    lead = site_pages.relink
    assert lead("[a](brier.md#x)", "docs/guide/metrics.md") == "[a](/guide/brier.md#x)"
    assert lead("[a](../../CONTRIBUTING.md)", "docs/guide/a.md") == "[a](/project/contributing.md)"
    code = f"[a]({site_pages.REPOSITORY}/blob/main/LICENSE)"
    assert lead("[a](LICENSE)", "README.md") == code
    assert lead("[a](#x) [b](https://a.b/c)", "README.md") == "[a](#x) [b](https://a.b/c)"
    assert lead("```\n[a](b.md)\n```", "README.md") == "```\n[a](b.md)\n```"
    with pytest.raises(ValueError, match=r"README\.md links to nowhere\.md"):
        lead("[a](nowhere.md)", "README.md")


def test_the_readme_of_a_release_has_absolute_links_only():
    targets = re.findall(r"\]\(([^)]+)\)", site_pages.readme())
    assert len(targets) > 30
    assert all(target.startswith("https://") for target in targets)
    assert f"{site_pages.SITE}guide/first-tree.html#minimum-leaf-size-and-shrinkage" in targets
    picture = "https://raw.githubusercontent.com/bristlecone-trees/bristlecone/main/docs/pictures/tree.png"
    assert picture in targets


@pytest.mark.parametrize("source", site_pages.COPIES)
def test_files_of_the_repository_that_are_pages_have_links_that_exist(source):
    text = (DOCS.parent / source).read_text(encoding="utf-8")
    assert site_pages.relink(text, source).startswith("# ")


def test_benchmarks_are_those_of_the_newest_record_of_each_study():
    shown = site_pages._records()
    page = site_pages.benchmarks(shown)
    stems = sorted(record.stem for record in site_pages.RECORDS.glob("*-likelihood.md"))
    newest = next(stem for stem in reversed(stems) if stem[11:] == "likelihood")
    rows = re.findall(
        rf"^\| \[likelihood\]\(records/{newest}\.md\) \| pystreed \| (\d) \| (.*) \|$", page, re.M
    )
    record = (site_pages.RECORDS / f"{newest}.md").read_text(encoding="utf-8")
    assert [depth for depth, _ in rows] == ["2", "3", "4"]
    for depth, numbers in rows:
        assert f"| {depth} | bristlecone : pystreed | {numbers} |" in record


def test_the_reference_lists_every_public_name():
    text = site_pages.api()
    for line in (DOCS / "api.txt").read_text(encoding="utf-8").splitlines():
        if re.match(r"  [A-Za-z]", line):
            name = re.match(r"  (\w+)", line)[1]
            module = inspect.ismodule(getattr(bristlecone, name, None))
            assert module or f"\n   {name}\n" in text or name == "__version__", name
