"""The recipe for a new objective works step by step."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CRATES = ("core", "oracle")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (ROOT / "crates").exists(), reason="needs the repository"),
    pytest.mark.skipif(shutil.which("cargo") is None, reason="needs cargo"),
]


def steps() -> list[tuple[str, str | None, str]]:
    """File, preceding line, and text of every step."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```rust\n// (.*?)\n(.*?)```", text, re.DOTALL)
    found = []
    for place, code in blocks:
        file, _, after = place.partition(", after ")
        found.append((file, after.strip("`") or None, code))
    return found


def test_an_objective_made_by_the_recipe_equals_its_oracle(tmp_path: Path) -> None:
    for crate in CRATES:
        shutil.copytree(ROOT / "crates" / crate, tmp_path / "crates" / crate)
    workspace = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    members = ", ".join(f'"crates/{crate}"' for crate in CRATES)
    workspace = re.sub(r"members = \[.*?\]", f"members = [{members}]", workspace, flags=re.DOTALL)
    (tmp_path / "Cargo.toml").write_text(workspace, encoding="utf-8")
    shutil.copy(ROOT / "Cargo.lock", tmp_path)
    for file, after, code in steps():
        path = tmp_path / file
        if after is None:
            assert not path.exists()
            path.write_text(code, encoding="utf-8")
            continue
        text = path.read_text(encoding="utf-8")
        assert text.count(f"{after}\n") == 1, (file, after)
        path.write_text(text.replace(f"{after}\n", f"{after}\n{code}"), encoding="utf-8")
    tests = "every_task_obeys_the_laws", "optimum::optimum_equals_the_oracle"
    done = subprocess.run(
        ["cargo", "test", "-q", "-p", "bristlecone-core", "--test", "against_oracle", "--", *tests],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"ok\. [2-9] passed", done.stdout), done.stdout
