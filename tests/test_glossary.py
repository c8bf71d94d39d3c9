"""The names in the glossary of the maths pages exist in the code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
GLOSSARY = ROOT / "docs" / "maths" / "glossary.md"

pytestmark = pytest.mark.skipif(not GLOSSARY.exists(), reason="needs the repository")


def code_of(cell: str) -> list[str]:
    """Names and files in a cell, with those in braces separately."""
    names: list[str] = []
    for text in re.findall(r"`([^`]+)`", cell):
        before, _, inside = text.partition("{")
        names += [before.rstrip(":"), *inside.rstrip("}").split(", ")] if inside else [text]
    return [name for name in names if name]


def rows() -> list[list[str]]:
    lines = GLOSSARY.read_text(encoding="utf-8").splitlines()
    tables = [line.strip("|").split(" | ") for line in lines if line.startswith("|")]
    return [cells for cells in tables if not set("".join(cells)) <= set("-| ")]


def test_every_name_of_the_glossary_is_in_the_code() -> None:
    core = ROOT / "crates" / "core" / "src"
    package = ROOT / "python" / "bristlecone"
    sources = [*core.rglob("*.rs"), *package.rglob("*.py")]
    everything = "\n".join(path.read_text(encoding="utf-8") for path in sources)
    named = [name for cells in rows() for cell in cells for name in code_of(cell)]
    assert len(named) > 50
    for name in named:
        if "/" in name:
            assert (core / name).exists() or (core / "search" / name).exists(), name
            continue
        for part in name.split("::"):
            assert re.search(rf"\b{part}\b", everything), name
