"""Columns as ranks give the same results as comparisons of the numbers."""

import numpy as np
import pandas as pd
import pytest

from bristlecone import _core
from bristlecone._encoder import binary
from bristlecone._encoder import thresholds as cutting
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._estimators.classifier import OptimalTreeClassifier
from bristlecone._estimators.survival import OptimalSurvivalTree

TINY = float(np.finfo(float).smallest_subnormal)


def numbers(seed, n):
    """Numeric columns of every kind, without missing values."""
    rng = np.random.default_rng(seed)
    normal = rng.normal(size=n)
    return {
        "distinct": normal,
        "tied": np.round(normal, 1),
        "zeros": rng.choice([0.0, -0.0, 1.5], n),
        "subnormal": rng.choice([TINY, -TINY, 0.0, 3 * TINY], n),
        "huge": normal * 10.0 ** rng.integers(-300, 300, n),
        "ends": rng.choice([np.finfo(float).max, np.finfo(float).min, 1.0], n),
        "neighbours": 1.0 + np.finfo(float).eps * rng.integers(0, n, n),
        "constant": np.full(n, 7.25),
        "levels": rng.integers(0, 4, n).astype(float),
    }


def frame(seed, n):
    """The same columns, some with missing values, and columns of all other kinds."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(numbers(seed, n))
    X["holes"] = np.where(rng.random(n) < 0.3, np.nan, X["distinct"])
    X["tied_holes"] = np.where(rng.random(n) < 0.1, np.nan, X["tied"])
    X["whole"] = rng.integers(0, 2 + seed % 3, n)
    X["flag"] = rng.random(n) < 0.5
    X["text"] = rng.choice(["a", "b", None], n)
    X["grade"] = pd.Categorical(rng.choice(["I", "II", "III"], n), ordered=True)
    return X


@pytest.mark.parametrize("n", [1, 2, 25, 400, 5000])
@pytest.mark.parametrize("seed", range(3))
def test_ranks_are_those_of_unique(seed, n):
    for name, values in numbers(seed, n).items():
        ranks, distinct = _core.rank_values(values)
        expected = np.unique(values, return_inverse=True)
        for found, plain in zip((distinct, ranks), expected, strict=True):
            np.testing.assert_array_equal(found, plain, err_msg=name)
        assert not np.signbit(distinct[distinct == 0]).any()


def test_strided_and_missing_numbers_are_ranked():
    values = np.array([[3.0, 0.0], [np.nan, 0.0], [1.0, 0.0], [3.0, 0.0]])[:, 0]
    ranks, distinct = _core.rank_values(values)
    assert ranks.tolist() == [1, 2, 0, 1]
    assert distinct.tolist() == [1.0, 3.0]


def linear_quantiles(distinct, count, probability):
    """As ``numpy.quantile`` of the repeated values, to the last digit."""
    end = np.cumsum(count)
    position = (end[-1] - 1) * probability
    index = np.minimum(np.searchsorted(end, position, side="right"), len(end) - 1)
    low, high = distinct[index], distinct[np.minimum(index + 1, len(end) - 1)]
    share_low = np.minimum(end[index] - position, 1.0)
    share_high = 1.0 - share_low
    # Halve first if the distance of the two values would overflow.
    scale = np.where(np.isfinite(high - low), 1.0, 0.5)
    step = high * scale - low * scale
    near = np.where(
        share_high < 0.5, low * scale + step * share_high, high * scale - step * share_low
    )
    return near / scale


@pytest.mark.parametrize("seed", range(6))
def test_quantiles_are_the_first_midpoints_not_below(seed):
    for name, values in numbers(seed, [30, 200, 2000][seed % 3]).items():
        distinct, count = np.unique(values, return_counts=True)
        if len(distinct) < 2:
            continue
        for most in (1, 3, 10):
            found = cutting.choose_gaps(distinct, count.astype(float), "quantiles", most, 1.0)
            cuts = cutting.midpoints(distinct)
            if len(cuts) <= most:
                expected = np.arange(len(cuts))
            else:
                probability = np.arange(1, most + 1) / (most + 1)
                with np.errstate(over="ignore", invalid="ignore"):
                    quantile = linear_quantiles(distinct, count, probability)
                expected = np.unique(
                    np.minimum(np.searchsorted(cuts, quantile, side="left"), len(cuts) - 1)
                )
            np.testing.assert_array_equal(found, expected, err_msg=name)


@pytest.mark.parametrize("missing", ["impute", "branch"])
@pytest.mark.parametrize("thresholds", ["quantiles", "midpoints", "kmeans"])
@pytest.mark.parametrize("weighted", [False, True])
def test_features_by_ranks_are_those_of_transform(missing, thresholds, weighted, monkeypatch):
    X = frame(3, 180).drop(columns=["huge", "ends"] if thresholds == "kmeans" else [])
    rng = np.random.default_rng(1)
    weight = rng.uniform(0.1, 2.0, len(X)) if weighted else None
    encoder = BinaryEncoder(thresholds=thresholds, missing=missing)
    monkeypatch.setattr(binary, "_MANY_ROWS", 1)
    whole = encoder._fit_columns(X, sample_weight=weight, whole=True)()
    names = encoder.get_feature_names_out().tolist()
    binned = encoder._fit_columns(X, sample_weight=weight)()
    assert encoder.get_feature_names_out().tolist() == names
    for encoded, is_binned in ((whole, False), (binned, True)):
        assert any(ranks.dtype == np.uint8 for ranks in encoded.columns.ranks) == is_binned
        np.testing.assert_array_equal(encoded.features, encoder.transform(X))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    "encoder",
    [
        "auto",
        BinaryEncoder(n_thresholds=4, missing="branch"),
        BinaryEncoder(thresholds="kmeans", max_categories=2, max_features=12),
        BinaryEncoder(thresholds="ensemble"),
        BinaryEncoder(thresholds="all"),
        BinaryEncoder(thresholds="midpoints", min_support=0.0),
    ],
    ids=str,
)
def test_columns_that_are_read_one_by_one_give_the_same_tree(encoder, weighted, monkeypatch):
    X = frame(5, 300).drop(columns=["huge", "ends"])
    rng = np.random.default_rng(2)
    y = rng.random(len(X)) < 0.7, rng.exponential(np.exp(-X["tied"]))
    weight = rng.integers(0, 3, len(X)).astype(float) if weighted else None
    fits = []
    for many in (binary._MANY_ROWS, 1):
        monkeypatch.setattr(binary, "_MANY_ROWS", many)
        tree = OptimalSurvivalTree(max_depth=2, encoder=encoder).fit(X, y, sample_weight=weight)
        found = tree.certificate_
        fits.append((found.fingerprint, found.binary_features, found.objective_value))
    assert fits[0] == fits[1]


def test_rows_of_weight_zero_leave_the_columns_to_be_read_again():
    X = frame(0, 60)
    weight = np.ones(len(X))
    weight[:7] = 0.0
    assert BinaryEncoder()._fit_columns(X, sample_weight=weight) is None


@pytest.mark.parametrize("seed", range(4))
def test_trees_of_arrays_frames_and_transposed_arrays_are_the_same(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 19)).round(2 + seed % 2)
    time = rng.exponential(np.exp(X[:, 0] - X[:, 1] * (X[:, 2] > 0.3)))
    y = rng.random(300) < 0.7, time
    fits = [
        OptimalSurvivalTree(max_depth=2).fit(rows, y)
        for rows in (X, np.asfortranarray(X), pd.DataFrame(X).rename(columns=lambda j: f"x{j}"))
    ]
    for other in fits[1:]:
        assert other.objective_value_ == fits[0].objective_value_
        assert other.splits_ == fits[0].splits_
        assert other.certificate_.binary_features == fits[0].certificate_.binary_features
    assert fits[0].certificate_.fingerprint == fits[1].certificate_.fingerprint


def test_values_of_the_caller_are_not_changed():
    X = np.asfortranarray(np.random.default_rng(0).normal(size=(80, 3)))
    X[::9, 1] = np.nan
    given = X.copy()
    OptimalTreeClassifier(max_depth=1).fit(X, np.nan_to_num(X[:, 1]) > 0)
    np.testing.assert_array_equal(X, given)


@pytest.mark.parametrize("infinite", [np.inf, -np.inf])
def test_infinite_numbers_are_refused_with_column_and_row(infinite):
    X = np.random.default_rng(0).normal(size=(40, 12))
    X[17, 9] = infinite
    with pytest.raises(ValueError, match=r"column 'x9' is infinite .* in row 17"):
        OptimalSurvivalTree(max_depth=1).fit(X, (np.ones(40, bool), np.arange(1.0, 41.0)))
