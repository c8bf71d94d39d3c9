"""Files of every class that can be saved, written once: they load for ever and predict the same."""

import json

import numpy as np
import pandas as pd
import pytest
from write_golden import GOLDEN, VARIANTS, numbers, table_of

from bristlecone.model.document import ESTIMATORS, parse
from bristlecone.model.registry import dumps, load_model

FILES = sorted(GOLDEN.glob("*.json"))


def test_every_class_and_variant_has_a_file():
    names = {path.stem for path in FILES}
    assert set(VARIANTS) <= names
    assert {name.split("-")[0] for name in names} == set(ESTIMATORS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
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


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_golden_file_is_small_and_written_again_as_it_is(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.encode()) < 30_000
    ours, theirs = (json.loads(x) for x in (dumps(load_model(path)), text))
    for document in (ours, theirs):
        del document["bristlecone"], document["checksum"]
    assert ours == theirs
    assert parse(text).certificate.version == theirs["certificate"]["version"]
