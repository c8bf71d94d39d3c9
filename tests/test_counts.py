"""Counts of values and exact sums of parts add up to those of all rows."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from pace import slow_but

from bristlecone import BinaryEncoder
from bristlecone._core import BinaryMatrix
from bristlecone._data.exact import ExactSums, ExactValues, product_sum
from bristlecone._encoder.columns import CategoricalColumn, training_columns
from bristlecone._encoder.counts import ValueCounts
from bristlecone._encoder.partitions import ColumnCounts, RowsDivided, fit_counts, part_answers
from bristlecone._encoder.table import read_table
from bristlecone._search.row_sums import RowSums, outcome_digests


def weights(rng, n):
    """Weights of very different sizes, with many digits."""
    return rng.random(n) * 10.0 ** rng.integers(-12, 12, n)


@pytest.mark.parametrize("seed", range(5))
def test_exact_sums_are_exact_in_any_order_and_parts(seed):
    rng = np.random.default_rng(seed)
    place, values = rng.integers(0, 5, 200), weights(rng, 200)
    values[rng.random(200) < 0.1] = 0.0
    whole = ExactValues(values).sums(place, 5)
    for k in range(5):
        exact = sum(map(Fraction, values[place == k].tolist()), Fraction(0))
        digits = sum((int(d[k]) * Fraction(2) ** (26 * j) for j, d in whole.digits.items()), 0)
        assert digits == exact
        # Every one of the few digits is added once.
        assert whole.totals()[k] == pytest.approx(float(exact), rel=1e-15)
    order = rng.permutation(200)
    parts = ExactSums(5)
    for part in np.array_split(order, 7):
        parts = parts.plus(ExactValues(values[part]).sums(place[part], 5), np.arange(5))
    assert np.array_equal(parts.totals(), whole.totals())


def test_whole_weights_are_counts():
    place = np.array([0, 1, 1, 1])
    sums = ExactValues(np.array([3.0, 1.0, 2.0**40, 7.0])).sums(place, 3)
    assert sums.totals().tolist() == [3.0, 2.0**40 + 8.0, 0.0]


@pytest.mark.parametrize("seed", range(5))
def test_product_sum_is_the_sum_of_repeated_values(seed):
    rng = np.random.default_rng(seed)
    values, count = rng.normal(size=50) * 10.0 ** rng.integers(-8, 8, 50), rng.integers(0, 90, 50)
    assert product_sum(values, count) == math.fsum(values.repeat(count).tolist())
    assert product_sum(np.array([1e300]), [1.0]) == 1e300


def frame(seed):
    rng = np.random.default_rng(seed)
    n = 150
    few = rng.integers(0, 4, n).astype(float)
    few[rng.random(n) < 0.2] = np.nan
    text = rng.choice(["b", "a", "10", "x"], n).astype(object)
    text[rng.random(n) < 0.1] = None
    flag = rng.random(n) < 0.5
    return pd.DataFrame(
        {
            "number": np.round(rng.normal(size=n), 1),
            "few": few,
            "whole": rng.integers(-3, 50, n),
            "flag": flag,
            "same": ~flag,
            "zero or one": rng.integers(0, 2, n),
            "floats": rng.integers(0, 2, n).astype(float),
            "text": text,
            "ordered": pd.Categorical(text, ["x", "b", "a", "10", "none"], ordered=True),
            "nullable": pd.array(np.where(flag, 1, 0), dtype="Int8"),
            "empty": np.nan,
            "constant": 3,
        }
    )


def cut(rng, table):
    ends = np.sort(rng.integers(0, len(table) + 1, 4))
    pieces = [table[a:b] for a, b in zip([0, *ends], [*ends, len(table)], strict=True)]
    return [pieces[k] for k in rng.permutation(len(pieces)) if len(pieces[k])]


ENCODERS = {
    "default": BinaryEncoder(),
    "few": BinaryEncoder(n_thresholds=2, max_features=6),
    "kmeans": BinaryEncoder(thresholds="kmeans", n_thresholds=3, missing="branch"),
    "midpoints": BinaryEncoder(thresholds="midpoints", min_support=0.0),
    "merged": BinaryEncoder(max_categories=2, categories="levels", min_support=0.2),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ENCODERS)
@pytest.mark.parametrize("seed", slow_but([0], range(4)))
def test_encoder_of_parts_is_that_of_the_whole(seed, name, weighted):
    rng = np.random.default_rng(seed)
    table = frame(seed)
    weight = rng.choice([0.0, 0.1, 1.0, 1e-9, 1 / 3], len(table)) if weighted else None
    whole = ENCODERS[name].fit(table, sample_weight=weight)
    states = []
    for part in cut(rng, table):
        own = None if weight is None else weight[part.index]
        present = None if own is None or own.all() else own > 0
        state = ColumnCounts(table.columns, weighted)
        state.add(part, own if present is None else own[present], present)
        states.append(pickle.loads(pickle.dumps(state)))
    total = states[0]
    for state in states[1:]:
        total.merge(state)

    def divided(draft, features):
        sums = RowsDivided(features)
        for number, part in enumerate(cut(rng, table)):
            own = None if weight is None else weight[part.index] > 0
            sums.add(part_answers(draft, part, features)[0], number, own)
        return sums.keys()

    got = fit_counts(ENCODERS[name], total.counts(), total.least_weight, divided)
    assert got.to_dict() == whole.to_dict()
    assert np.array_equal(got.transform(table), whole.transform(table))


def test_merging_leaves_the_other_counts_as_they_are():
    table = frame(0)
    first, second = ColumnCounts(table.columns, False), ColumnCounts(table.columns, False)
    first.add(table[:70], None, None)
    second.add(table[70:], None, None)
    before = [(one.rows.tolist(), one.weight.tolist()) for one in second.counts()]
    first.merge(second)
    first.merge(second)
    assert [(one.rows.tolist(), one.weight.tolist()) for one in second.counts()] == before
    assert all(one.n_rows == 70 + 2 * 80 for one in first.counts())


@pytest.mark.parametrize("weighted", [False, True])
def test_value_counts_of_a_column(weighted):
    rng = np.random.default_rng(1)
    table = frame(1)
    weight = weights(rng, len(table)) if weighted else None
    exact = ExactValues(weight) if weighted else None
    for column in training_columns(read_table(table, "test").columns, None):
        counts = ValueCounts.of(column, exact)
        name = column.name
        missing = table[name].isna().to_numpy()
        assert counts.n_rows == len(table)
        assert counts.n_missing == missing.sum()
        distinct, total = counts.observed
        values = table[name].to_numpy()
        if isinstance(column, CategoricalColumn):
            distinct = [column.levels[code] for code in distinct]
        for value, got in zip(list(distinct), total, strict=True):
            own = (values == value) & ~missing
            expected = own.sum() if weight is None else math.fsum(weight[own])
            assert got == pytest.approx(expected, rel=1e-14)


def test_features_of_other_rows_have_other_sums():
    rng = np.random.default_rng(0)
    answers = rng.random((40, 60)) < 0.5
    answers[20:] = ~answers[:20]
    sums = RowsDivided([None] * 40)
    sums.add(answers[:, :25], 0, None)
    sums.add(answers[:, 25:], 1, None)
    keys = sums.keys()
    assert keys[:20] == keys[20:]
    assert len(set(keys)) == 20


def test_row_sums_notice_every_change():
    rng = np.random.default_rng(0)
    features = (rng.random((30, 70)) < 0.5).view(np.uint8)
    time, event = rng.random(30), rng.random(30) < 0.5

    class Data(dict):
        def _asdict(self):
            return self

    def fingerprint(features, time, event, order):
        data = Data(time=time[order], event=event[order], X=None, weight=None)
        sums = RowSums(70)
        half = RowSums(70)
        digests = outcome_digests(data)
        rows = BinaryMatrix(features)
        sums.add(rows.take(order[:11]), digests[:11])
        half.add(rows.take(order[11:]), digests[11:])
        sums.merge(half)
        return sums.fingerprint(data)

    order = np.arange(30)
    known = fingerprint(features, time, event, order)
    assert fingerprint(features, time, event, rng.permutation(30)) == known
    flipped = features.copy()
    flipped[3, 65] ^= 1
    later = time.copy()
    later[[0, 1]] = time[[1, 0]]
    for changed in (
        fingerprint(flipped, time, event, order),
        fingerprint(features, later, event, order),
        fingerprint(features, time, ~event, order),
        fingerprint(features, time, event, order[:-1]),
    ):
        assert changed != known
