"""BinaryEncoder: the features that it chooses, and their names."""

import itertools
import json
import math
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace
from sklearn.base import clone

from bristlecone import _core, datasets
from bristlecone._encoder import choice
from bristlecone._encoder import thresholds as cutting
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.columns import NumericColumn
from bristlecone._encoder.counts import ValueCounts
from bristlecone._encoder.features import Flag, Level, Missing, Other, Threshold
from bristlecone.exceptions import ColumnWarning


def names(encoder):
    return encoder.get_feature_names_out().tolist()


def fitted_names(X, sample_weight=None, **parameters):
    return names(BinaryEncoder(**parameters).fit(X, sample_weight=sample_weight))


# --- the published binarisation -----------------------------------------------------------------


def spec_features(frame):
    """The binarisation of the SurTree study by its definition; the features without names.

    With one exception: the mean that replaces missing values does not create a threshold.
    """
    answers = []
    for name in frame.columns:
        column = frame[name]
        if pd.api.types.is_numeric_dtype(column):
            values = column.fillna(column.mean()).to_numpy(dtype=float)
            observed = column.dropna().to_numpy(dtype=float)
            distinct = sorted(set(observed))
            mids = [(a + b) / 2 for a, b in itertools.pairwise(distinct)]
            if len(mids) > 10:
                quantiles = [np.quantile(observed, i / 11) for i in range(1, 11)]
                mids = [next((m for m in mids if m >= q), mids[-1]) for q in quantiles]
            answers += [values <= threshold for threshold in mids]
        else:
            count = column.value_counts()
            ranked = sorted(count.index, key=lambda level: (-count[level], level))
            answers += [(column == level).to_numpy() for level in sorted(ranked[:10])]
            answers += [column.isin(ranked[10:]).to_numpy(), column.isna().to_numpy()]
    kept = []
    for answer in answers:
        if 0.01 <= answer.mean() <= 0.99 and not any(
            (answer == earlier).all() or (answer != earlier).all() for earlier in kept
        ):
            kept.append(answer)
    return np.column_stack(kept)


@pytest.mark.parametrize("seed", range(10))
def test_default_settings_follow_the_published_rule(seed):
    rng = np.random.default_rng(seed)
    n = 250
    frame = pd.DataFrame(
        {
            "skewed": rng.exponential(size=n).round(2),
            "few": rng.integers(3, 3 + rng.integers(1, 14), n),
            "rare": (rng.random(n) < rng.choice([0.002, 0.02])).astype(float),
            "holes": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
            "site": rng.choice(list("abcdefghijklmnopqr"), n, p=rng.dirichlet(np.ones(18))),
            "sex": rng.choice(["f", "m", None], n),
        }
    )
    frame["again"] = -frame["few"]
    assert np.array_equal(
        BinaryEncoder(categories="levels").fit_transform(frame), spec_features(frame)
    )


def stump_losses(features, time, event):
    """Likelihood loss per row of the single leaf and of the best split (spec 1)."""
    time, event = np.ascontiguousarray(time), np.ascontiguousarray(event)
    table = _core.RiskTable(time, event)
    hazard = np.append(1 / (len(time) + 1), table.nelson_aalen())
    hazard[1:] = np.where(hazard[1:] > 0, hazard[1:], hazard[0])
    hazard = hazard[np.searchsorted(table.time, time, side="right")]

    def leaf(rows):
        events = event[rows].sum()
        return 0.0 if events == 0 else -events * math.log(events / hazard[rows].sum())

    constant = -np.log(hazard[event]).sum()
    whole = leaf(np.ones(len(time), dtype=bool))
    split = min(leaf(feature) + leaf(~feature) for feature in features.T)
    return (constant + whole) / len(time), (constant + split) / len(time)


@pytest.mark.parametrize(
    ("name", "count", "expected"),
    [
        ("gbsg2", 52, (0.6965823489590519, 0.6497759197081168)),
        ("veterans", 30, (0.5748456947359405, 0.4639605931766774)),
    ],
)
def test_reference_losses_of_the_published_implementation(name, count, expected):
    data = datasets.load(name)
    features = BinaryEncoder().fit_transform(data.X)
    assert features.shape[1] == count
    assert stump_losses(features, data.y["time"], data.y["event"]) == pytest.approx(
        expected, abs=1e-12
    )


@pytest.mark.filterwarnings("ignore:numpy.core:DeprecationWarning")  # old pickles
def test_reference_losses_on_whas500_of_survset():
    # 461 of the 500 bundled rows, with two more columns
    loader = pytest.importorskip("SurvSet.data").SurvLoader()
    frame = loader.load_dataset(ds_name="whas500")["df"]
    features = BinaryEncoder().fit_transform(frame.drop(columns=["pid", "event", "time"]))
    time, event = frame["time"].to_numpy(dtype=float), frame["event"].to_numpy(dtype=bool)
    expected = (0.6709323799384523, 0.5724761387512098)
    assert stump_losses(features, time, event) == pytest.approx(expected, abs=1e-12)


# --- numeric columns ----------------------------------------------------------------------------


def test_few_distinct_numbers_are_cut_at_every_midpoint():
    X = pd.DataFrame({"age": [50, 55, 61, 50]})
    encoder = BinaryEncoder().fit(X)
    assert names(encoder) == ["age <= 52.5", "age <= 58"]
    assert encoder.features_[0] == Threshold(
        column="age", condition="<= 52.5", value=52.5, missing=False
    )
    assert encoder.transform(X).tolist() == [[1, 1], [0, 1], [0, 0], [1, 1]]


def test_quantile_thresholds_take_the_first_midpoint_not_below():
    X = np.arange(12.0)[:, np.newaxis]
    # the i/5 quantiles of 0..11 are 2.2, 4.4, 6.6, 8.8
    assert fitted_names(X, n_thresholds=4) == ["x0 <= 2.5", "x0 <= 4.5", "x0 <= 7.5", "x0 <= 9.5"]
    # a quantile that equals a midpoint is the threshold
    assert fitted_names(X, n_thresholds=1) == ["x0 <= 5.5"]


def test_quantile_beyond_the_last_midpoint_takes_the_last():
    X = np.repeat([0.0, 1.0, 2.0, 3.0], [1, 1, 1, 97])[:, np.newaxis]
    assert fitted_names(X, n_thresholds=2, min_support=0) == ["x0 <= 2.5"]


def test_midpoints_method_cuts_everywhere():
    X = np.arange(40.0)[:, np.newaxis]
    assert fitted_names(X, thresholds="midpoints") == [f"x0 <= {i + 0.5}" for i in range(39)]


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        # Neighbours that differ by less than the rounding error of their distance to the others.
        ([0.0, 1.67e-27, 2e-27, 1.0], ["x0 <= 8.35e-28", "x0 <= 0.5"]),
        ([1e9, 1e9 + 1e-6, 2e9, 3e9], None),
        ([0.0, 5e-324, 1e-323, 1.5e-323], None),
        ([-1.7e308, 0.0, 1.0, 1.7e308], None),
    ],
)
def test_kmeans_of_values_that_nearly_coincide(values, shown):
    X = np.array(values)[:, np.newaxis]
    found = fitted_names(X, thresholds="kmeans", n_thresholds=2, min_support=0)
    assert len(found) == 2
    assert shown is None or found == shown


def test_kmeans_cuts_between_clusters():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(centre, 0.1, 50) for centre in (0, 5, 20)])[:, np.newaxis]
    encoder = BinaryEncoder(thresholds="kmeans", n_thresholds=2).fit(X)
    first, second = (feature.value for feature in encoder.features_)
    assert X[49, 0] < 1 < first < 4
    assert 6 < second < 19


def test_neighbouring_floats_are_separated():
    low = 1.0
    high = np.nextafter(low, 2)
    X = np.array([[low], [high]])
    assert BinaryEncoder().fit_transform(X).tolist() == [[True], [False]]


def test_very_large_numbers_do_not_overflow():
    X = np.array([[1.6e308], [1.7e308], [np.nan], [1.5e308]])
    encoder = BinaryEncoder().fit(X)
    assert all(1.5e308 < feature.value < 1.7e308 for feature in encoder.features_)


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ([0.1, 0.2], "0.15"),
        ([-3, 3], "0"),
        ([10**7, 10**7 + 1], "10000000"),
        ([1.0, 1.0 + 3e-9], "1"),
        ([0.0, 2e-9], "1e-09"),
        ([2e20, 4e20], "3e+20"),
        ([0.3, 0.4 - 1 / 30], "0.333333"),
    ],
)
def test_thresholds_print_short(values, shown):
    X = np.array(values, dtype=float)[:, np.newaxis]
    assert fitted_names(X) == [f"x0 <= {shown}"]


@pytest.mark.slow
@given(
    st.lists(
        st.floats(-1e300, 1e300) | st.floats(1.0, 1.000001), min_size=2, max_size=30, unique=True
    )
)
def test_printed_thresholds_differ_and_separate_the_training_values(values):
    X = np.array(values)[:, np.newaxis]
    encoder = BinaryEncoder(thresholds="midpoints", min_support=0).fit(X)
    shown = [float(name.removeprefix("x0 <= ")) for name in names(encoder)]
    assert len(set(shown)) == len(set(X[:, 0])) - 1
    assert np.array_equal(encoder.transform(X), np.array(shown) >= X)


@given(
    st.lists(st.integers(-5, 5) | st.floats(-1e6, 1e6), min_size=1, max_size=50),
    st.integers(1, 20),
)
def test_columns_are_cut_at_the_quantiles_of_numpy(values, k):
    distinct, total = cutting.weighted_distinct(np.array(values, dtype=float), None)
    k = min(k, len(distinct) - 2)
    assume(k > 0)
    cuts = cutting.midpoints(distinct)
    quantiles = np.quantile(np.array(values, dtype=float), np.arange(1, k + 1) / (k + 1))
    # If a midpoint equals a quantile, the last digits decide.
    spare = 1e-9 + 1e-12 * np.abs(quantiles)
    first, last = (np.searchsorted(cuts, quantiles + side * spare) for side in (-1, 1))
    found = set(cutting.choose_gaps(distinct, total, "quantiles", k, 1.0).tolist())
    low, high = np.minimum(first, len(cuts) - 1), np.minimum(last, len(cuts) - 1)
    assert all(found & set(range(a, b + 1)) for a, b in zip(low, high, strict=True))
    assert found <= {gap for a, b in zip(low, high, strict=True) for gap in range(a, b + 1)}


def test_columns_of_equal_small_weights_are_cut_as_without():
    values = np.random.default_rng(0).normal(size=31)
    plain = cutting.weighted_distinct(values, None)
    light = cutting.weighted_distinct(values, np.full(31, 0.125))
    expected = cutting.choose_gaps(*plain, "quantiles", 10, 1.0).tolist()
    assert cutting.choose_gaps(*light, "quantiles", 10, 0.125).tolist() == expected


# --- flags, categories, missing values ----------------------------------------------------------


@pytest.mark.parametrize(
    "values",
    [
        np.array([True, False, True]),
        np.array([1, 0, 1]),
        np.array([1, 0, 1], dtype=np.uint8),
        np.array([True, False, True], dtype=object),
    ],
)
def test_boolean_and_binary_integer_columns_are_used_as_they_are(values):
    for X in (pd.DataFrame({"treated": values}), pl.DataFrame({"treated": values.tolist()})):
        encoder = BinaryEncoder().fit(X)
        # missing values would be the most frequent ones
        assert encoder.features_ == [Flag(column="treated", condition="", missing=True)]
        assert names(encoder) == ["treated"]
        assert encoder.transform(X)[:, 0].tolist() == [True, False, True]


def test_float_columns_of_zero_and_one_are_cut():
    assert fitted_names(np.array([[0.0], [1.0]])) == ["x0 <= 0.5"]


def test_rare_flags_stay_and_other_rare_features_go():
    n = 1000
    rare = np.arange(n) < 9
    X = pd.DataFrame({"flag": rare, "number": rare * 1.5, "level": np.where(rare, "a", "b")})
    assert fitted_names(X) == ["flag"]
    # the number and the level repeat the flag; without the flag, the first of them is kept
    assert fitted_names(X.drop(columns="flag"), min_support=0.009) == ["number <= 0.75"]
    assert fitted_names(X.drop(columns="flag"), min_support=0.00901) == []


def test_flag_of_a_larger_integer_at_prediction_is_true():
    encoder = BinaryEncoder().fit(np.array([[0], [1]]))
    assert encoder.transform(np.array([[0], [1], [3]]))[:, 0].tolist() == [False, True, True]


def test_boolean_array_passes_unchanged():
    X = np.random.default_rng(0).random((60, 7)) < 0.5
    encoded = BinaryEncoder().fit_transform(X)
    assert np.array_equal(encoded, X)
    assert encoded.flags.c_contiguous


def test_features_equal_or_complementary_to_an_earlier_one_are_dropped():
    a = np.array([True, True, False, False, True])
    X = pd.DataFrame({"a": a, "not_a": ~a, "same": a, "text": np.where(a, "u", "v")})
    assert fitted_names(X) == ["a"]


@pytest.mark.parametrize("dtype", ["object", "string", "category"])
def test_text_columns_give_one_feature_per_level(dtype):
    X = pd.DataFrame({"stage": pd.Series(["II", "I", "III", "I"], dtype=dtype)})
    encoder = BinaryEncoder().fit(X)
    assert names(encoder) == ["stage = I", "stage = II", "stage = III"]
    assert encoder.features_[0] == Level(column="stage", condition="= I", level="I")
    assert encoder.transform(X).sum(axis=1).tolist() == [1, 1, 1, 1]


def test_numbers_of_categorical_dtype_are_levels():
    X = pd.DataFrame({"grade": pd.Categorical([1, 2, 3, 1])})
    encoder = BinaryEncoder().fit(X)
    assert names(encoder) == ["grade = 1", "grade = 2", "grade = 3"]
    plain = pd.DataFrame({"grade": [3, 1, 9]})
    assert encoder.transform(plain).tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 0]]


def test_rare_levels_are_merged_and_ties_go_to_the_first_in_order():
    X = pd.DataFrame({"site": list("ddbbbcccae")})
    encoder = BinaryEncoder(max_categories=3, categories="levels").fit(X)
    assert names(encoder) == ["site = b", "site = c", "site = d", "site = other"]
    assert encoder.features_[-1] == Other(column="site", condition="= other", levels=("a", "e"))
    assert encoder.transform(X)[:, 3].tolist() == [False] * 8 + [True] * 2
    assert len(fitted_names(X, max_categories=None)) == 5


def test_unknown_category_matches_no_level():
    X = pd.DataFrame({"site": list("aaabbbcd")})
    new = pd.DataFrame({"site": ["z", "c", "a"]})
    encoder = BinaryEncoder(max_categories=2, categories="levels").fit(X)
    assert encoder.transform(new).tolist() == [[0, 0, 0], [0, 0, 1], [1, 0, 0]]
    strict = BinaryEncoder(max_categories=2, categories="levels", handle_unknown="error").fit(X)
    assert strict.transform(new[1:]).tolist() == [[0, 0, 1], [1, 0, 0]]
    with pytest.raises(ValueError, match="column 'site' holds the unknown category 'z' in row 0"):
        strict.transform(new)


def test_integers_that_floats_do_not_tell_apart_give_a_warning():
    X = pd.DataFrame({"id": 2**60 + np.arange(8), "age": np.arange(8)})
    with pytest.warns(ColumnWarning, match=r"column 'id' contains integers beyond 2\*\*53"):
        assert BinaryEncoder().fit(X).constant_features_in_ == ["id"]
    X["id"] = X["id"].astype(object)
    X.loc[[2, 3], "id"] = None, 5
    with pytest.warns(ColumnWarning, match=r"column 'id' contains integers beyond 2\*\*53"):
        BinaryEncoder().fit(X)
    encoder = BinaryEncoder().fit(X.assign(id=2**60 + 2**10 * np.arange(8)))
    with pytest.raises(ColumnWarning):  # as all warnings in these tests are errors
        encoder.fit(X[["id"]])
    assert encoder.n_features_in_ == 2


@pytest.mark.filterwarnings("ignore::bristlecone.exceptions.ColumnWarning")
def test_missing_numbers_are_replaced_by_the_mean_which_is_no_place_to_cut():
    X = pd.DataFrame({"a": [1.0, 2.0, np.nan, 6.0], "b": [5.0, np.nan, 5.0, 5.0]})
    encoder = BinaryEncoder().fit(X)
    filled = pd.DataFrame({"a": [1.0, 2.0, 3.0, 6.0], "b": [5.0] * 4})
    assert names(encoder) == fitted_names(X[["a"]].dropna()) == ["a <= 1.5", "a <= 4"]
    assert np.array_equal(encoder.transform(X), encoder.transform(filled))
    assert encoder.constant_features_in_ == ["b"]


@pytest.mark.filterwarnings("ignore::bristlecone.exceptions.ColumnWarning")
def test_mean_of_a_constant_column_is_the_constant():
    X = np.array([[0.1], [0.1], [0.1], [np.nan]])
    assert BinaryEncoder().fit(X).n_features_out_ == 0


def test_missing_flags_take_the_more_frequent_value():
    X = pd.DataFrame({"flag": pd.array([True, True, False, None], dtype="boolean")})
    assert BinaryEncoder().fit_transform(X)[:, 0].tolist() == [True, True, False, True]
    tied = X[1:]
    assert BinaryEncoder().fit_transform(tied)[:, 0].tolist() == [True, False, False]


def test_missing_values_as_their_own_branch():
    X = pd.DataFrame(
        {
            "age": [1.0, np.nan, 3.0, 3.0, 1.0],
            "flag": pd.array([None, True, False, False, True], dtype="boolean"),
            "text": ["u", "v", "v", None, "v"],
        }
    )
    encoder = BinaryEncoder(missing="branch").fit(X)
    assert names(encoder) == [
        "age <= 2",
        "age is missing",
        "flag",
        "flag is missing",
        "text = v",
        "text is missing",
    ]
    assert encoder.features_[1] == Missing(column="age", condition="is missing")
    assert encoder.transform(X).astype(int).tolist() == [
        [1, 0, 0, 1, 0, 0],
        [0, 1, 1, 0, 1, 0],
        [0, 0, 0, 0, 1, 0],
        [0, 0, 0, 0, 0, 1],
        [1, 0, 1, 0, 1, 0],
    ]


def test_columns_without_any_value_are_constant():
    X = pd.DataFrame(
        {
            "number": [np.nan, np.nan],
            "text": [None, None],
            "flag": pd.array([None, None], dtype="boolean"),
            "level": pd.Categorical([None, None], categories=["u"]),
            "useful": [0, 1],
        }
    )
    for missing in ("impute", "branch"):
        encoder = BinaryEncoder(missing=missing).fit(X)
        assert encoder.constant_features_in_ == ["number", "text", "flag", "level"]
        assert names(encoder) == ["useful"]
        later = X.assign(number=1.0, text="a", flag=True, level="u")
        assert encoder.transform(later)[:, 0].tolist() == [False, True]


def test_column_that_is_all_missing_at_prediction():
    X = pd.DataFrame({"age": [1.0, None, 3.0], "text": ["u", "v", None]})
    encoder = BinaryEncoder().fit(X)
    empty = pd.DataFrame({"age": [None], "text": [None]})
    assert (
        encoder.transform(empty).tolist()
        == encoder.transform(pd.DataFrame({"age": [2.0], "text": [None]})).tolist()
    )


# --- any frame and any parameters ----------------------------------------------------------------


@st.composite
def training_frames(draw):
    n = draw(st.integers(2, 25))

    def column(element):
        return draw(st.lists(element, min_size=n, max_size=n))

    frame = pd.DataFrame(
        {
            "number": column(st.none() | st.floats(-100, 100) | st.integers(-3, 3)),
            "count": column(st.integers(0, 4)),
            "flag": column(st.booleans()),
            "text": column(st.none() | st.sampled_from("abcdefg")),
        }
    )
    return frame.astype({"number": float, "text": object})


parameter_sets = st.fixed_dictionaries(
    {
        "thresholds": st.sampled_from(["quantiles", "midpoints", "kmeans"]),
        "n_thresholds": st.integers(1, 4),
        "max_categories": st.none() | st.integers(1, 5),
        "categories": st.just("levels"),
        "missing": st.sampled_from(["impute", "branch"]),
        "min_support": st.sampled_from([0.0, 0.1, 0.3]),
        "max_features": st.none() | st.integers(1, 6),
    }
)


def same_encoding(encoder, other):
    """Everything except the numbers of rows is equal."""
    one, two = (
        {**fitted.to_dict(), "columns": [replace(c, n_missing=0) for c in fitted.columns_]}
        for fitted in (encoder, other)
    )
    return one == two


@pytest.mark.filterwarnings("ignore::bristlecone.exceptions.ColumnWarning")
@given(training_frames(), parameter_sets, st.data())
def test_integer_weights_equal_repeated_rows(frame, parameters, data):
    n = len(frame)
    weight = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    weight[data.draw(st.integers(0, n - 1))] += 1
    repeated = frame.loc[frame.index.repeat(weight)].reset_index(drop=True)
    weighted = BinaryEncoder(**parameters).fit(frame, sample_weight=weight)
    assert same_encoding(weighted, BinaryEncoder(**parameters).fit(repeated))


@pytest.mark.filterwarnings("ignore::bristlecone.exceptions.ColumnWarning")
@given(training_frames(), parameter_sets, st.randoms(use_true_random=False))
def test_order_of_the_rows_does_not_matter(frame, parameters, random):
    order = list(range(len(frame)))
    random.shuffle(order)
    weight = np.array([random.uniform(0.1, 3) for _ in order])
    encoder = BinaryEncoder(**parameters)
    first = encoder.fit(frame, sample_weight=weight).to_dict()
    shuffled = frame.iloc[order].reset_index(drop=True)
    assert encoder.fit(shuffled, sample_weight=weight[order]).to_dict() == first


def test_features_of_equal_balance_tie_in_every_order_of_the_rows():
    # Both thresholds have the weight of one row on a side; sums of floats depend on their order.
    values, weight = np.array([0.0, 1, 1, 1, 2]), np.array([0.7, 0.1, 0.2, 0.3, 0.7])
    found = {
        tuple(fitted_names(values[list(order), None], weight[list(order)], max_features=1))
        for order in itertools.permutations(range(5))
    }
    assert found == {("x0 <= 0.5",)}


@pytest.mark.filterwarnings("ignore::bristlecone.exceptions.ColumnWarning")
@given(training_frames(), parameter_sets)
def test_no_feature_is_constant_or_repeated_and_fit_transform_is_both(frame, parameters):
    encoder = BinaryEncoder(**parameters).fit(frame)
    encoded = encoder.transform(frame)
    flipped = {tuple(column ^ column[0]) for column in encoded.T}
    assert len(flipped) == encoder.n_features_out_ == encoded.shape[1] == len(set(names(encoder)))
    assert (False,) * len(frame) not in flipped
    assert encoded.shape[1] <= (parameters["max_features"] or encoded.shape[1])
    assert np.array_equal(clone(encoder).fit_transform(frame), encoded)


def test_weights_decide_support_and_frequency():
    X = pd.DataFrame({"a": ["u"] + ["v"] * 98 + ["w"]})
    assert fitted_names(X, min_support=0.05) == []
    weight = np.ones(100)
    weight[0] = 50
    assert fitted_names(X, weight, min_support=0.05) == ["a = u", "a = v"]
    assert fitted_names(X, weight, max_categories=1, categories="levels", min_support=0) == [
        "a = v"
    ]


def test_cap_lets_columns_take_turns_from_the_most_balanced():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        {
            "wide": rng.permutation(100) * 1.0,
            "narrow": np.repeat(["u", "v"], [90, 10]),
            "flag": np.arange(100) % 2 == 0,
        }
    )
    full = names(BinaryEncoder().fit(X))
    assert fitted_names(X, max_features=3) == ["wide <= 45.5", "narrow = u", "flag"]
    assert fitted_names(X, max_features=1) == ["flag"]
    assert fitted_names(X, max_features=len(full)) == full


@pytest.mark.filterwarnings("ignore::bristlecone.exceptions.ColumnWarning")
@given(training_frames(), parameter_sets)
def test_json_and_pickle_round_trips(frame, parameters):
    encoder = BinaryEncoder(**parameters).fit(frame)
    encoded = encoder.transform(frame)
    text = json.dumps(encoder.to_dict(), allow_nan=False)
    restored = BinaryEncoder.from_dict(json.loads(text))
    assert json.dumps(restored.to_dict()) == text
    assert restored.get_params() == encoder.get_params()
    assert restored.feature_names_in_.tolist() == list(frame.columns)
    for copy in (restored, pickle.loads(pickle.dumps(encoder))):
        assert copy.features_ == encoder.features_
        assert copy.columns_ == encoder.columns_
        assert np.array_equal(copy.transform(frame), encoded)


def test_columns_that_divide_the_rows_alike_give_features_once():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(60, 3))
    X = np.column_stack([X, -X[:, 1], np.exp(X[:, 2]), rng.normal(size=60)])
    found = names(BinaryEncoder(thresholds="midpoints", min_support=0).fit(X))
    assert {name.split()[0] for name in found} == {"x0", "x1", "x2", "x5"}


def test_flags_are_chosen_as_other_columns_are():
    rng = np.random.default_rng(0)
    for share in (0.0, 0.004, 0.5, 0.7, 1.0):
        column = NumericColumn("flag", rng.random(250) < share, None, integral=True)
        own, counts = choice.choose_of_flag(column), ValueCounts.of(column, None)
        parameters = BinaryEncoder()._parameters()
        assert [own] == choice.choose_of_columns(parameters, [counts], 1.0, {}, {})
