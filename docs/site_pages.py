"""Pages of the site that are made of something else, and links that leave the folder.

The API reference is a list of the public names, the page on benchmarks is made of the newest record
of each study, and files of the repository outside ``docs`` are copied. All of these are written to
folders that git ignores. For a release, ``python docs/site_pages.py --readme`` makes the links of
README.md absolute.
"""

from __future__ import annotations

import inspect
import json
import posixpath
import re
import sys
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
RECORDS = ROOT / "benchmarks" / "records"
REPOSITORY = "https://github.com/bristlecone-trees/bristlecone"
SITE = "https://bristlecone-trees.github.io/bristlecone/"

# Files of the repository that are pages of the site.
COPIES = {
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "CODE_OF_CONDUCT.md": "project/conduct.md",
    "benchmarks/README.md": "benchmarks/method.md",
    "python/bristlecone/datasets/README.md": "project/datasets.md",
}
_LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?(?=\))")
_FENCE = re.compile(r"^(```|~~~).*?^\1 *$", re.MULTILINE | re.DOTALL)


def write() -> None:
    """Write every page that is made of something else."""
    shown = _records()
    for source, page in COPIES.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        if source == "benchmarks/README.md":
            text = "# How the studies are made\n" + text.partition("\n")[2]
        _page(page, relink(text, source))
    for record in shown:
        source = f"benchmarks/records/{record.name}"
        text = relink(record.read_text(encoding="utf-8"), source)
        _page(f"benchmarks/records/{record.name}", "---\norphan: true\n---\n" + text)
    _page("benchmarks/index.md", benchmarks(shown))
    _page("api/index.md", api())
    _page("project/index.md", project())


def _page(name: str, text: str) -> None:
    file = DOCS / name
    file.parent.mkdir(parents=True, exist_ok=True)
    # A file that stays as it is is not read again by the next build.
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


def project() -> str:
    """Page with the table of contents of the copied files."""
    pages = [page.removeprefix("project/") for page in COPIES.values() if "project/" in page]
    lines = ["# Project", "", f"The source is at <{REPOSITORY}>.", "", "```{toctree}"]
    return "\n".join([*lines, ":maxdepth: 1", "", *pages, "```", ""])


# Links


def relink(text: str, source: str) -> str:
    """Lead the links of a file of the repository to pages of the site, or to the repository."""
    pieces, end = [], 0
    for fence in _FENCE.finditer(text):
        pieces += [_relinked(text[end : fence.start()], source), fence[0]]
        end = fence.end()
    return "".join([*pieces, _relinked(text[end:], source)])


def _relinked(text: str, source: str) -> str:
    folder = posixpath.dirname(source)

    def target(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link[1]))
        if not (ROOT / path).exists():
            raise ValueError(f"{source} links to {link[1]}, which does not exist")
        return place(path) + (link[2] or "")

    return _LINK.sub(target, text)


def place(path: str) -> str:
    """Where the site has a file of the repository: a page of it, or the file in the repository."""
    if path in COPIES:
        return "/" + COPIES[path]
    if path == "docs/report.html":
        return f"{SITE}report.html"
    if path.startswith("docs/") and (ROOT / path).is_file():
        return path.removeprefix("docs")
    if path.startswith("benchmarks/records/") and (ROOT / path) in _records():
        return "/" + path
    kind = "tree" if (ROOT / path).is_dir() else "blob"
    return f"{REPOSITORY}/{kind}/main/{path}"


def readme() -> str:
    """README.md for a place without the files beside it, as PyPI: every link is absolute."""
    text = relink((ROOT / "README.md").read_text(encoding="utf-8"), "README.md")
    text = re.sub(r"\]\(/([^)#]+)\.(?:md|ipynb)(?=[)#])", rf"]({SITE}\1.html", text)
    raw = REPOSITORY.replace("github.com", "raw.githubusercontent.com") + "/main/docs"
    return re.sub(r"\]\((?=/)", f"]({raw}", text)


def on_read(app: Any, docname: str, source: list[str]) -> None:
    """Lead links of a page elsewhere, and list the pages below the two tables of contents."""
    file = Path(app.env.doc2path(docname))
    generated = ("api/", "benchmarks/", "gallery/", "project/")
    if file.suffix != ".md" or docname.startswith(generated):
        return
    text = relink(source[0], f"docs/{docname}.md")
    if docname == "README":
        text = text.replace("# Documentation", "# Guide", 1).replace("\n## Guide\n", "\n", 1)
        text += "".join(contents())
    elif docname == "decisions/README":
        text += _toctree("", ["[0-9]*"], glob=True)
    source[0] = text


def contents() -> list[str]:
    """Tables of contents of the sections of docs/README.md, and of the pages that it lacks."""
    text = (DOCS / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"\]\(((?:guide|maths)/[\w-]+)\.md\)", text)
    every = [f"{f.parent.name}/{f.stem}" for f in sorted(DOCS.glob("guide/*.md"))]
    every += [f"{f.parent.name}/{f.stem}" for f in sorted(DOCS.glob("maths/*.md"))]
    first = text.partition("\nOther trees and objectives:\n")[0]
    groups: dict[str, list[str]] = {"Guide": [], "Other trees and objectives": [], "Maths": []}
    for page in dict.fromkeys([*listed, *every]):
        if page.startswith("maths/"):
            groups["Maths"].append(page)
        elif f"({page}.md)" in first:
            groups["Guide"].append(page)
        else:
            groups["Other trees and objectives"].append(page)
    groups["Decisions"] = ["decisions/README"]
    return [_toctree(caption, pages) for caption, pages in groups.items()]


def _toctree(caption: str, entries: list[str], *, glob: bool = False) -> str:
    options = [f":caption: {caption}"] if caption else []
    options += [":hidden:", ":maxdepth: 1", *([":glob:"] if glob else [])]
    return "\n".join(["", "```{toctree}", *options, "", *entries, "```", ""])


# API reference


def api() -> str:
    """List the public names of every public module, each with a page of its own."""
    import bristlecone

    lines = ["# API reference", ""]
    lines += ["Import only from the modules below. All other modules have an underscore.", ""]
    homes = {"bristlecone": bristlecone}
    for name in bristlecone.__all__:
        if inspect.ismodule(module := getattr(bristlecone, name)):
            homes[f"bristlecone.{name}"] = module
    for title, module in homes.items():
        summary = (inspect.getdoc(module) or "").partition("\n\n")[0].replace("\n", " ")
        lines += [f"## {title}", "", summary, "", "```{eval-rst}"]
        lines += [f".. currentmodule:: {title}", "", ".. autosummary::", "   :toctree:", ""]
        for name in sorted(module.__all__, key=str.lower):
            value = getattr(module, name)
            if not inspect.ismodule(value) and callable(value):
                lines.append(f"   {name}")
        lines += ["```", ""]
    return "\n".join(lines)


def on_docstring(
    app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]
) -> None:
    """Make links of pages that a docstring names, and no links of names that end with "_"."""
    for number, line in enumerate(lines):
        line = re.sub(r"docs/((?:guide|maths)/[\w-]+)\.md", r":doc:`/\1`", line)
        if not line.lstrip().startswith((">>>", "...")):
            literals = re.split("(``[^`]+``|`[^`]+`_?)", line)
            literals[::2] = [re.sub(r"\b([A-Za-z]\w*)_(?!\w)", r"\1\\_", t) for t in literals[::2]]
            line = "".join(literals)
        lines[number] = line


def on_member(app: Any, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leave out scikit-learn's methods of routing and output, whose texts link to its guide."""
    foreign = r"set_\w+_request|get_metadata_routing|set_output"
    return True if re.fullmatch(foreign, name) else None


# Benchmarks


def _records() -> list[Path]:
    """Newest record of each study, and those that a page links to."""
    newest: dict[str, Path] = {}
    for record in sorted(RECORDS.glob("*.md")):
        newest[record.stem[11:]] = record
    linked = set()
    for page in [ROOT / "CHANGELOG.md", *DOCS.glob("guide/*.md"), *DOCS.glob("decisions/*.md")]:
        linked |= set(re.findall(r"benchmarks/records/([\w.-]+\.md)", page.read_text("utf-8")))
    return sorted({*newest.values(), *(RECORDS / name for name in linked)})


def benchmarks(shown: list[Path]) -> str:
    """Overview of the records: speed-ups over other programs, and a list of all studies."""
    sys.path.insert(0, str(ROOT))
    from benchmarks import report

    lines = [
        "# Benchmarks",
        "",
        "This page is made of the newest record of each study. A record names the machine, the",
        "versions and every single run. [How the studies are made](method.md) describes what is",
        "measured, and how to repeat a study. [The papers' experiments](/studies/index.md) are a",
        "section of their own, as are [how cost grows](/studies/growth.md) and",
        "[what optimality buys](/studies/optimality.md).",
        "",
        "## Speed compared with other programs",
        "",
        "The time of the other program divided by the time of bristlecone: geometric mean over the",
        "problems that take the other program more than 0.1 s (their number in parentheses).",
        "Both programs run on one thread, read the same 0/1 features and find a tree of the same",
        "loss, which is computed again from the rows.",
        "The smallest ratio and its problem are beside it. λ is the penalty per leaf.",
        "",
        "| study | other program | depth | problems | geometric mean | smallest |",
        "|---|---|---|---|---|---|",
    ]
    studies = {record.stem[11:]: record for record in shown}
    for study, record in sorted(studies.items()):
        file = record.with_suffix(".json")
        if not file.exists():
            continue
        found = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(found, dict) or not found.get("exact"):
            continue
        programs = {re.split("[-:]", run["library"])[0] for run in found["runs"]}
        if len(programs) > 1:
            link = f"[{study}](records/{record.name})"
            for line in report.summary(found):
                depth, programs, *rest = (cell.strip() for cell in line.strip("|").split("|"))
                other = programs.partition(" : ")[2].removesuffix("-labels")
                lines.append(f"| {' | '.join([link, other, depth, *rest[:-1]])} |")
    lines += ["", "## All records", "", "| study | date |", "|---|---|"]
    for study, record in sorted(studies.items()):
        title = record.read_text(encoding="utf-8").partition("\n")[0].lstrip("# ")
        title = title.removesuffix(f", {record.stem[:10]}")
        lines.append(f"| [{study}](records/{record.name}): {title} | {record.stem[:10]} |")
    return "\n".join([*lines, _toctree("", ["/studies/index", "method"])])


if __name__ == "__main__":
    if sys.argv[1:] != ["--readme"]:
        raise SystemExit("usage: python docs/site_pages.py --readme, to make its links absolute")
    (ROOT / "README.md").write_text(readme(), encoding="utf-8")
