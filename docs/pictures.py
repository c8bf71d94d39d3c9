"""Pictures of the guide: each is what the Python lines above it draw. And a page about a tree.

``python docs/pictures.py`` runs the pages and writes the pictures whose drawing has changed to
``docs/pictures``, with what is drawn in ``drawn.json``, and ``docs/report.html``, which the README
links to; ``tests/test_pictures.py`` checks that they are current. Pixels differ between versions of
matplotlib, texts and data do not.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

GUIDE = Path(__file__).resolve().parent / "guide"
FOLDER = Path(__file__).resolve().parent / "pictures"
DRAWN = FOLDER / "drawn.json"
REPORT = FOLDER.parent / "report.html"

# A block of code, what it prints, and the picture of the ``ax`` that it leaves.
_STEP = re.compile(
    r"^```python\n(.*?)^```\n(?:\n```text\n.*?^```\n)?"
    r"(?:\n!\[[^\]]*\]\(\.\./pictures/([\w-]+)\.png\)\n)?",
    re.MULTILINE | re.DOTALL,
)
# Pictures with the seconds of a search, or numbers of an optimiser: what is drawn varies.
_VARYING = ("soft-tree", "trace", "soft-curves")
_DIGITS = 6
_PIXELS = 1200
_COLOURS = 96


def pages() -> list[Path]:
    """Pages of the guide that make pictures."""
    return [page for page in sorted(GUIDE.glob("*.md")) if any(name for _, name in steps(page))]


def steps(page: Path) -> list[tuple[str, str]]:
    """Code, and the name of the picture that it makes or "", up to the last picture."""
    steps = _STEP.findall(page.read_text(encoding="utf-8"))
    while steps and not steps[-1][1]:
        steps.pop()
    return steps


def drawings(page: Path) -> Iterator[tuple[str, Any]]:
    """Names and axes of the pictures of a page."""
    namespace: dict[str, Any] = {"__name__": page.stem}
    last = None
    for code, name in steps(page):
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(code, page.name, "exec"), namespace)
        if name:
            if namespace.get("ax") is last:
                raise ValueError(f"{page.name}: the code above {name} draws nothing as ax")
            last = namespace["ax"]
            yield name, last


def drawn(name: str, ax: Any) -> dict[str, Any]:
    """Texts of a picture, and a digest of its data; of one that varies the axes alone."""
    every = list(ax.figure.axes)
    for one in every:
        every += [child for child in one.child_axes if child not in every]
    labels = [text for one in every for text in (one.get_xlabel(), one.get_ylabel()) if text]
    if name in _VARYING:
        return {"axes": len(every), "labels": labels}
    texts = [text.get_text() for one in every for text in one.texts]
    legends = [one.get_legend() for one in every if one.get_legend() is not None]
    texts += [text.get_text() for legend in legends for text in legend.get_texts()]
    digest = sha256()
    for one in every:
        # Lines on the sheet of a tree are in inches, which follow from fonts.
        if one.axison:
            for line in one.lines:
                digest.update(_rounded(np.asarray(line.get_xydata(), dtype=np.float64)))
    titles = [one.get_title("left") for one in every if one.get_title("left")]
    return {"labels": labels, "texts": [*titles, *texts], "lines": digest.hexdigest()}


def _rounded(values: np.ndarray) -> bytes:
    return " ".join(f"{value:.{_DIGITS}g}" for value in values.ravel()).encode()


def save(ax: Any, file: Path) -> None:
    """A small PNG file: few colours, no date."""
    from PIL import Image

    raw = io.BytesIO()
    width = ax.figure.get_size_inches()[0]
    ax.figure.savefig(raw, dpi=min(170, int(_PIXELS / width)), format="png")
    picture = Image.open(raw).convert("RGB")
    picture.quantize(_COLOURS, dither=Image.Dither.NONE).save(file, optimize=True)


def report() -> str:
    """Page about the tree of the README, with its size path."""
    from bristlecone import OptimalSurvivalTree
    from bristlecone.datasets import load
    from bristlecone.report import html_report

    gbsg2 = load("gbsg2")
    tree = OptimalSurvivalTree(max_depth=3).fit(gbsg2.X, gbsg2.y)
    return html_report(
        tree,
        title="Recurrence of breast cancer",
        about="German Breast Cancer Study Group 2, 686 women",
        time_label="days from surgery",
        size_path=tree.size_path(gbsg2.X, gbsg2.y),
    )


def lasting(page: str) -> str:
    """A page without what differs from one run to the next: the seconds of the search."""
    return re.sub(r"(seconds</dt><dd>)[^<]*", r"\1", page)


def main() -> None:
    """Write the pictures that have changed, and remove those that no page makes."""
    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("Agg")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # pages write files
        _write(pyplot)
        os.chdir(FOLDER)
    page = report()
    if not REPORT.exists() or lasting(REPORT.read_text(encoding="utf-8")) != lasting(page):
        REPORT.write_text(page, encoding="utf-8")


def _write(pyplot: Any) -> None:
    known = json.loads(DRAWN.read_text(encoding="utf-8")) if DRAWN.exists() else {}
    found = {}
    for page in pages():
        for name, ax in drawings(page):
            if name in found:
                raise ValueError(f"two pages make the picture {name}")
            found[name] = drawn(name, ax)
            file = FOLDER / f"{name}.png"
            if found[name] != known.get(name) or not file.exists():
                save(ax, file)
        pyplot.close("all")
    for file in FOLDER.glob("*.png"):
        if file.stem not in found:
            file.unlink()
    text = json.dumps(found, indent=1, ensure_ascii=False, sort_keys=True)
    DRAWN.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
