"""Write THIRD-PARTY-LICENCES.txt: the licences of the crates that the extension contains.

``python .ci/licences.py`` after a change of Cargo.lock; ``tests/test_licences.py`` checks the file.
Crates under a choice of licences that includes MIT are used under MIT.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILE = ROOT / "THIRD-PARTY-LICENCES.txt"
HEAD = """The compiled extension of bristlecone contains the Rust crates below, each with its
licence. It also contains the Rust standard library, which is copyright (c) The Rust Project
Contributors and is used under the MIT licence, whose terms are those below.
"""


def crates() -> list[tuple[str, str]]:
    """Name and version of every crate that is linked, on any platform, without our own."""
    tree = subprocess.run(
        [
            *("cargo", "tree", "--locked", "--package", "bristlecone-py", "--target", "all"),
            *("--edges", "normal,no-proc-macro", "--prefix", "none", "--format", "{p}"),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    found = {tuple(line.split()[:2]) for line in tree.stdout.splitlines() if line.strip()}
    return sorted((name, version[1:]) for name, version in found if "bristlecone" not in name)


def text() -> str:
    """Return the crates with their licences; equal texts are printed once."""
    metadata = subprocess.run(
        ["cargo", "metadata", "--locked", "--format-version", "1"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    packages = {
        (package["name"], package["version"]): package
        for package in json.loads(metadata.stdout)["packages"]
    }
    groups: dict[str, list[str]] = {}
    for crate in crates():
        package = packages[crate]
        folder = Path(package["manifest_path"]).parent
        licence = _licence(folder)
        title = f"{crate[0]} {crate[1]} ({package['license'].replace('/', ' OR ')})"
        groups.setdefault(licence, []).append(title)
    rule = "=" * 80
    blocks = [HEAD]
    blocks += [f"{rule}\n{chr(10).join(titles)}\n\n{text}\n" for text, titles in groups.items()]
    return "\n".join(blocks)


def _licence(folder: Path) -> str:
    files = [file for file in folder.iterdir() if file.name.upper().startswith("LICEN")]
    if not files:
        raise ValueError(f"{folder.name} has no licence file")
    chosen = next((file for file in files if "MIT" in file.name.upper()), min(files))
    lines = chosen.read_text(encoding="utf-8").strip().splitlines()
    return "\n".join(line.rstrip() for line in lines)


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
