"""Files of every class that can be saved must always load and predict the same.

Every version of the format has a folder. ``tests/golden/v4`` is the first: versions 1 to 3 were
never released and are not read.
"""

import json

import numpy as np
import pandas as pd
import pytest
from write_golden import GOLDEN, VARIANTS, golden_files, numbers, table_of

from bristlecone._model.document import ESTIMATORS, VERSION, parse
from bristlecone._model.registry import dumps, load_model, loads
from bristlecone.exceptions import ModelFormatError

FILES = golden_files()

# Versions with files. A version that a release has written must stay in this list.
VERSIONS = [4]


def named(path):
    return f"{path.parent.name}-{path.stem}"


def test_every_version_has_a_folder_and_nothing_lies_beside_them():
    assert sorted(path.name for path in GOLDEN.iterdir()) == [f"v{k}" for k in VERSIONS]
    assert VERSIONS[-1] == VERSION, "write them: python tests/write_golden.py golden"
    for version in VERSIONS:
        assert golden_files(version)
        for path in golden_files(version):
            assert json.loads(path.read_text(encoding="utf-8"))["version"] == version
            assert path.with_suffix(".numbers").exists()


def test_every_class_and_variant_has_a_file_of_this_version():
    names = {path.stem for path in golden_files(VERSION)}
    assert set(VARIANTS) <= names
    assert {name.split("-")[0] for name in names} == set(ESTIMATORS)


@pytest.mark.parametrize("version", [1, 2, VERSION + 1, VERSION + 100])
def test_versions_that_are_older_or_newer_than_what_is_read_are_refused_with_a_sentence(version):
    text = golden_files(VERSION)[0].read_text(encoding="utf-8")
    changed = text.replace(f'"version": {VERSION}', f'"version": {version}')
    with pytest.raises(ModelFormatError) as error:
        loads(changed)
    assert str(error.value) == f"version is {version}; this release reads version {VERSION}" + (
        ": a newer bristlecone wrote it" if version > VERSION else ""
    )


@pytest.mark.parametrize("path", FILES, ids=named)
def test_a_golden_file_predicts_the_numbers_beside_it(path):
    model = load_model(path)
    assert type(model).__name__ == path.stem.split("-")[0]
    beside = json.loads(path.with_suffix(".numbers").read_text(encoding="utf-8"))
    assert hasattr(model, "feature_names_in_") == beside["named"]
    table = pd.DataFrame(beside["rows"]["data"], columns=beside["rows"]["columns"])
    found = numbers(model, table_of(table, model))
    assert set(found) == set(beside["numbers"])
    for name, expected in beside["numbers"].items():
        ours, theirs = np.array(found[name]), np.array(expected)
        if theirs.dtype.kind == "f":
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, err_msg=name)
        else:
            np.testing.assert_array_equal(ours, theirs, err_msg=name)


@pytest.mark.parametrize("path", FILES, ids=named)
def test_a_golden_file_describes_its_leaves(path):
    model = load_model(path)
    assert len(model.leaf_table()["leaf"]) == model.tree_.n_leaves
    assert model.describe()


@pytest.mark.parametrize("path", golden_files(VERSION), ids=named)
def test_a_golden_file_is_small_and_written_again_as_it_is(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) < 30_000
    ours, theirs = (json.loads(x) for x in (dumps(load_model(path)), text))
    for document in (ours, theirs):
        del document["bristlecone"], document["checksum"]
    assert ours == theirs
    assert parse(text).certificate.version == theirs["certificate"]["version"]
