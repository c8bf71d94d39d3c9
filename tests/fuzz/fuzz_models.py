"""Damaged model files give a ModelFormatError or a tree that works."""

import contextlib
import json
import resource
import warnings
from copy import deepcopy
from functools import cache

import numpy as np
import pandas as pd
from pandas.errors import OutOfBoundsDatetime, OutOfBoundsTimedelta
from tampering import sealed
from write_golden import golden_files

from bristlecone._model.registry import loads
from bristlecone.exceptions import BristleconeWarning, ModelFormatError

# No changed golden file needs this much memory. In kilobytes.
MOST_MEMORY = 200_000

ODD = (
    *(0, 1, -1, 2, 3, 0.5, -0.0, 1e308, -1e308, 5e-324, 1e-300, 2**31, 2**53, 2**63 - 1, -(2**63)),
    *(10**30, True, False, None, "", "0", "NaN", "\0", "\ud800", "ö" * 300, "leaf", "optimal"),
    *([], {}, [None], [0], [[]], [1e308] * 5, {"type": "nothing"}, {"": 0}),
)


@cache
def golden():
    """Text, document, and rows by column of every golden file."""
    found = []
    for path in golden_files():
        beside = json.loads(path.with_suffix(".numbers").read_text(encoding="utf-8"))
        rows = pd.DataFrame(beside["rows"]["data"], columns=beside["rows"]["columns"])
        found.append((path.read_text(encoding="utf-8"), rows))
    return found


def places(value):
    """Every place of a document, as a container and a key in it."""
    items = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, one in items:
        yield value, key
        yield from places(one)


def with_other_structure(rng, text):
    """One or a few values replaced, removed, doubled, exchanged or changed slightly."""
    document = json.loads(text)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        every = list(places(document))
        # Most of a file are long curves, whose numbers are all alike.
        few = [one for one in every if not isinstance(one[1], int) or one[1] < 3]
        above, key = few[rng.integers(len(few))]
        value, kind = above[key], rng.integers(8)
        if kind == 0 and isinstance(above, dict):
            del above[key]
        elif kind == 1 and isinstance(value, list):
            above[key] = value * int(rng.choice([0, 2, 50]))
        elif kind == 2 and isinstance(value, list) and value:
            above[key] = value[: rng.integers(len(value))]
        elif kind == 3:
            # A value from another place.
            other, at = every[rng.integers(len(every))]
            above[key] = json.loads(json.dumps(other[at]))
        elif kind == 4 and isinstance(above, list):
            rng.shuffle(above)
        elif kind in (5, 6) and isinstance(value, (int, float)) and not isinstance(value, bool):
            steps = -1, 1, 1e-9, 0.5, value, -2 * value, -value
            above[key] = value + steps[rng.integers(len(steps))]
        else:
            above[key] = deepcopy(ODD[rng.integers(len(ODD))])
    return document


def with_other_bytes(rng, text):
    """A few bytes changed, removed, doubled or inserted."""
    content = bytearray(text.encode())
    for _ in range(rng.choice([1, 1, 2, 8])):
        at, size = int(rng.integers(len(content))), int(rng.choice([1, 1, 4, 100]))
        kind = rng.integers(5)
        if kind == 0:
            content[at] ^= 1 << rng.integers(8)
        elif kind == 1:
            del content[at : at + size]
        elif kind == 2:
            content[at:at] = content[at : at + size]
        elif kind == 3:
            content[at : at + 1] = rng.choice([b"[", b"]", b"{", b'"', b"\\", b"\0", b"9" * 400])
        else:
            del content[at:]
            break
        if not content:
            break
    return bytes(content)


def model_files(rng):
    """A changed golden file is rejected, or gives a model that predicts."""
    text, rows = golden()[rng.integers(len(golden()))]
    if rng.random() < 0.3:
        try:
            changed = with_other_bytes(rng, text).decode()
        except UnicodeDecodeError:
            return "not text"
    else:
        document = with_other_structure(rng, text)
        try:
            # Documents that can be written receive a new checksum, so that more checks run.
            changed = sealed(document)
        except (ValueError, OverflowError, TypeError):
            changed = json.dumps(document)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        model = loads(changed)
    except ModelFormatError as error:
        assert str(error)
        result = "refused"
    else:
        predicts(model, rows)
        result = "loaded"
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < MOST_MEMORY, f"{grown} kB for a file of {len(changed)}"
    return result


def predicts(model, rows):
    """All predictions for rows with the columns of the model."""
    table = rows.to_numpy()
    names = getattr(model, "feature_names_in_", None)
    width = model.n_features_in_
    table = np.resize(table, (len(rows), width)) if table.shape[1] != width else table
    if names is not None:
        table = pd.DataFrame(table, columns=names).infer_objects()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        # For shapes and times that no fit has.
        warnings.simplefilter("ignore", BristleconeWarning)
        try:
            leaf = model.apply(table)
        except (ValueError, TypeError) as error:
            # A column may not have the type that the changed file declares; the error names the
            # column.
            assert "column" in str(error) or "categor" in str(error), error
            return
        assert len(leaf) == len(rows)
        model.predict(table)
        for name in ("predict_proba", "predict_median", "predict_outcomes"):
            if hasattr(model, name):
                assert len(getattr(model, name)(table)) == len(rows)
        if hasattr(model, "predict_survival_function"):
            survival = model.predict_survival_function(table, times=[0.0, 3.0, 10.0])
            assert survival.shape == (len(rows), 3) and not np.isnan(survival).any()
        model.describe()
        # Labels may be times that NumPy supports and pandas does not.
        with contextlib.suppress(OutOfBoundsTimedelta, OutOfBoundsDatetime):
            model.leaf_table()
