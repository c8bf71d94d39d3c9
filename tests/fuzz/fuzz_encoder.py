"""Columns of any kind: features are the same after saving and loading, and by their decisions."""

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
from decisions_plainly import decide
from odd_columns import MIXED, NAMES, TEXTS

from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.decisions import feature_decisions
from bristlecone.exceptions import BristleconeWarning, ModelFormatError

TINY = np.nextafter(0, 1)
NEAR = 1 + np.finfo(float).eps * np.arange(4)
NUMBERS = (
    NEAR, -NEAR, TINY * np.arange(-2, 3), np.array([-1.7e308, -1.0, 0.0, 1.0, 1.7e308]),
    np.array([0.0, -0.0, 1.0]), np.array([2.0**53, 2.0**53 + 2, 2.0**53 + 4]), np.array([0.1, 0.3]),
    np.array([1e-300, 1e300]), np.array([7.0]), np.linspace(-1, 1, 40), np.array([0.0, 1.0]),
)  # fmt: skip


def numbers(rng, n):
    pool = NUMBERS[rng.integers(len(NUMBERS))]
    values = rng.choice(pool, n) if rng.random() < 0.8 else rng.uniform(-1, 1, n) * pool.max()
    kind = rng.integers(5)
    if kind == 0:
        small = np.abs(values).max() < 1e30
        return values.astype(np.float32) if small else values
    if kind == 1:
        return np.clip(values, -120, 120).astype([np.int8, np.int16, np.int64][rng.integers(3)])
    if kind == 2:
        return np.clip(np.abs(values), 0, 2**62).astype(np.uint64)
    return values


def texts(rng, n):
    pool = [TEXTS, MIXED, ["I", "II", "III"], [f"s{k}" for k in range(30)], ["", " ", "other"]]
    pool = pool[rng.integers(len(pool))]
    values = np.empty(n, dtype=object)
    values[:] = [pool[k] for k in rng.integers(len(pool), size=n)]
    return values


def column(rng, n):
    """A column, and whether it may have missing values."""
    kind = rng.integers(6)
    if kind <= 1:
        return pd.Series(numbers(rng, n))
    if kind == 2:
        return pd.Series(rng.random(n) < rng.choice([0.0, 0.1, 0.5, 1.0]))
    if kind == 3:
        return pd.Series(texts(rng, n), dtype=object)
    values = texts(rng, n)
    if kind == 4 and all(isinstance(value, str) for value in values):
        levels = sorted(set(values), key=lambda level: rng.random())
        return pd.Series(pd.Categorical(values, [*levels, "no row"], ordered=rng.random() < 0.5))
    values = numbers(rng, n).astype(object)
    return pd.Series(values, dtype=object)


def table(rng, n):
    """Columns of all kinds under odd names, with missing values."""
    found = {}
    for name in rng.permutation(NAMES)[: rng.integers(1, 5)]:
        values = column(rng, n)
        if rng.random() < 0.5:
            absent = rng.random(n) < rng.choice([0.1, 0.6, 1.0])
            if values.dtype.kind in "iu" or values.dtype == bool:
                values = values.astype(object)
            values[absent] = np.nan if values.dtype.kind == "f" else None
        found[str(name)] = values
    return pd.DataFrame(found)


def encoders(rng):
    def one_of(*values):
        return values[rng.integers(len(values))]

    return BinaryEncoder(
        thresholds=one_of("quantiles", "midpoints", "kmeans"),
        n_thresholds=one_of(1, 2, 3, 10),
        max_categories=one_of(None, 1, 2, 10),
        categories="levels",
        missing=one_of("impute", "branch"),
        min_support=one_of(0.0, 0.01, 0.2),
        max_features=one_of(None, 1, 4),
        handle_unknown=one_of("ignore", "ignore", "error"),
    )


def encodings(rng):
    """Features agree with their decisions, before and after saving."""
    n = int(rng.integers(1, 40))
    X = table(rng, n)
    weight = None
    if rng.random() < 0.3:
        weight = rng.choice([0.0, 0.5, 1.0, 3.0], n)
        weight[0] = 1.0
    encoder = encoders(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BristleconeWarning)
        try:
            encoder.fit(X, sample_weight=weight)
        except ValueError as error:
            assert "column" in str(error), error
            return "refused"
        if weight is not None:
            # A level whose rows have no weight may be unknown.
            X = X[weight > 0].reset_index(drop=True)
        new = table_like(rng, X)
        for rows in (X, new):
            try:
                one = encoder.transform(rows)
            except ValueError as error:
                # A level that occurs in no training row.
                assert encoder.handle_unknown == "error", error
                continue
            check(encoder, rows, one)
        try:
            text = json.dumps(encoder.to_dict(), allow_nan=False)
        except ModelFormatError as error:
            assert "column" in str(error) or "level" in str(error), error
            return "not saved"
        loaded = BinaryEncoder.from_dict(json.loads(text))
        assert json.dumps(loaded.to_dict()) == text
        for copy in (loaded, pickle.loads(pickle.dumps(encoder))):
            assert copy.get_feature_names_out().tolist() == encoder.get_feature_names_out().tolist()
            assert np.array_equal(copy.transform(X), encoder.transform(X))
    return "encoded"


def table_like(rng, X):
    """Other rows with the same columns: values between and beyond, and new levels."""
    new = X.iloc[rng.integers(len(X), size=10)].reset_index(drop=True)
    for name in new.columns:
        values = new[name]
        if values.dtype.kind == "f" and rng.random() < 0.5:
            moved = np.nextafter(values.to_numpy(), rng.choice([-np.inf, np.inf], len(new)))
            finite = np.isfinite(moved)
            new[name] = np.where(finite, moved, values).astype(values.dtype)
        elif values.dtype == object and rng.random() < 0.3:
            values = values.copy()
            if any(isinstance(value, str) for value in values):
                values[0] = "never seen"
                new[name] = values
    return new


def check(encoder, X, features):
    """Every feature of every row agrees with its decision, and with its name."""
    features = np.asarray(features)
    decisions = feature_decisions(encoder)
    assert features.shape == (len(X), len(decisions))
    for decision, answers in zip(decisions, features.T, strict=True):
        values = X[decision.column].tolist()
        said = [decide(decision, value) for value in values]
        assert said == answers.astype(bool).tolist(), (decision, values, answers.tolist())
    names = encoder.get_feature_names_out().tolist()
    assert len(set(names)) == len(names)
    if all(is_plain(X[name]) for name in X.columns):
        other = pl.DataFrame({name: pl.Series(name, X[name].tolist()) for name in X.columns})
        assert np.array_equal(np.asarray(encoder.transform(other)), features)


def is_plain(values):
    """Whether polars stores the column as pandas does."""
    return values.dtype.kind in "fb"
