"""Columns with many rows are read in other ways than short ones, with the same result."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bristlecone import BinaryEncoder
from bristlecone._encoder import columns
from bristlecone._encoder import table as reading


def frame(seed):
    rng = np.random.default_rng(seed)
    n = 200
    text = rng.choice(["b", "a", "c", "A"], n).astype(object)
    text[rng.random(n) < 0.1] = None
    few = rng.integers(-3, 4, n) / 2.0
    few[rng.random(n) < 0.1] = np.nan
    few[few == 0.0] *= rng.choice([-1.0, 1.0], int((few == 0.0).sum()))
    return pd.DataFrame(
        {
            "text": text,
            "category": pd.Categorical(text, categories=["unused", "c", "b", "A", "a"]),
            "ordered": pd.Categorical(text, ["c", "b", "A", "a", "last"], ordered=True),
            "numbered": pd.Categorical(rng.integers(0, 4, n), categories=[3, 2, 1, 0]),
            "empty": np.full(n, None, dtype=object),
            "few": few,
            "many": rng.normal(size=n),
            "whole": rng.integers(0, 9, n),
        }
    )


FORMS = {
    "pandas": lambda table: table,
    "pandas text": lambda table: table.astype({"text": "string"}),
    "polars": lambda table: pl.from_pandas(table.drop(columns=["numbered"])),
    "arrow": lambda table: pa.Table.from_pandas(table.drop(columns=["numbered"])),
    "arrow in chunks": lambda table: pa.concat_tables(
        [pa.Table.from_pandas(table.drop(columns=["numbered"])[k : k + 70]) for k in (0, 70, 140)]
    ),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("form", FORMS)
def test_many_rows_are_read_as_few_are(form, seed, monkeypatch):
    X = FORMS[form](frame(seed))
    short = BinaryEncoder(min_support=0.0).fit(X)
    few = short.transform(X)
    for module in (columns, reading):
        monkeypatch.setattr(module, "FEW_ROWS", 1)
    monkeypatch.setattr(columns, "_SAMPLE", 150)
    long = BinaryEncoder(min_support=0.0).fit(X)
    assert long.to_dict() == short.to_dict()
    assert np.array_equal(short.transform(X), few)
    table, again = reading.read_table(X, "test"), []
    again = table.columns
    monkeypatch.undo()
    for old, new in zip(table.columns, again, strict=True):
        assert type(old) is type(new)
        if isinstance(old, columns.CategoricalColumn):
            assert (old.levels, old.declared, old.ordered) == (
                new.levels,
                new.declared,
                new.ordered,
            )
            assert np.array_equal(old.codes, new.codes)
        else:
            assert np.array_equal(old.values, new.values, equal_nan=True)


def test_ranks_of_few_values_are_those_of_all():
    values = np.repeat([2.0, np.nan, -0.0, 1.0, 0.0], 9000)
    few = columns._ranks_of_few(values)
    assert few is not None
    for got, expected in zip(few, columns._core.rank_values(values), strict=True):
        assert got.dtype == expected.dtype and np.array_equal(got, expected)
    assert not np.signbit(few[1]).any()
    assert columns._ranks_of_few(np.random.default_rng(0).normal(size=50_000)) is None
