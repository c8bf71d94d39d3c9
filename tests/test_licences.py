"""The licences of the crates match Cargo.lock, and the wheel contains them."""

import importlib.util
import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
spec = importlib.util.spec_from_file_location("licences", ROOT / ".ci" / "licences.py")
licences = importlib.util.module_from_spec(spec)
spec.loader.exec_module(licences)

TEXT = licences.FILE.read_text(encoding="utf-8")


def test_every_listed_crate_is_in_the_lock_file():
    lock = (ROOT / "Cargo.lock").read_text(encoding="utf-8")
    known = set(re.findall(r'name = "(.*)"\nversion = "(.*)"', lock))
    listed = re.findall(r"^([\w-]+) ([\d.]+\S*) \(", TEXT, re.MULTILINE)
    assert len(listed) > 5
    assert set(listed) <= known


def test_every_crate_of_the_extension_is_listed():
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    # "python .ci/licences.py" rewrites the file.
    for name, version in licences.crates():
        assert f"\n{name} {version} (" in TEXT, name


def test_the_file_goes_into_the_wheel():
    assert '"THIRD-PARTY-LICENCES.txt"' in (ROOT / "pyproject.toml").read_text(encoding="utf-8")
