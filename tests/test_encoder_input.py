"""BinaryEncoder: accepted forms of input, rejected input, and scikit-learn's conventions."""

import doctest
import json
import math
import re
from decimal import Decimal

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_array
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from bristlecone import GreedySurvivalTree, OptimalTreeClassifier
from bristlecone._encoder import binary, missing
from bristlecone._encoder import thresholds as cutting
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone.exceptions import (
    BristleconeWarning,
    ColumnWarning,
    InvalidParameterError,
    ModelFormatError,
)


def names(encoder):
    return encoder.get_feature_names_out().tolist()


def fitted_names(X, sample_weight=None, **parameters):
    return names(BinaryEncoder(**parameters).fit(X, sample_weight=sample_weight))


# --- input forms --------------------------------------------------------------------------------


def mixed_columns():
    return {
        "age": [31.5, None, 62.0, 44.0, 31.5, 70.0],
        "nodes": [0, 3, 7, 3, 12, 0],
        "treated": [1, 0, 0, 1, 1, 0],
        "smoker": [True, None, False, True, False, False],
        "stage": ["I", "II", None, "I", "III", "II"],
    }


@pytest.mark.parametrize("missing", ["impute", "branch"])
def test_pandas_polars_arrow_and_object_arrays_encode_alike(missing):
    data = mixed_columns()
    frames = [
        pd.DataFrame(data),
        pd.DataFrame(data).convert_dtypes(),
        pd.DataFrame(data).convert_dtypes(dtype_backend="pyarrow"),
        pl.DataFrame(data),
        pl.DataFrame(data).with_columns(pl.col("stage").cast(pl.Categorical)),
        pl.DataFrame(data).with_columns(pl.col("age").cast(pl.Decimal(10, 2))),
        pa.table(data),
    ]
    first = BinaryEncoder(missing=missing).fit(frames[0])
    expected = first.transform(frames[0])
    for frame in frames:
        encoder = BinaryEncoder(missing=missing).fit(frame)
        assert encoder.to_dict() == first.to_dict()
        assert np.array_equal(encoder.transform(frame), expected)
        assert np.array_equal(first.transform(frame), expected)
    array = np.array(list(zip(*data.values(), strict=True)), dtype=object)
    encoder = BinaryEncoder(missing=missing).fit(array)
    assert np.array_equal(encoder.transform(array.tolist()), expected)
    assert encoder.get_feature_names_out(list(data)).tolist() == names(first)


@pytest.mark.filterwarnings("error")
def test_frames_of_narwhals_are_read_as_those_they_wrap():
    X = pd.DataFrame(mixed_columns())
    y = pd.DataFrame({"event": True, "time": range(1, len(X) + 1)})
    plain = GreedySurvivalTree(max_depth=1, min_events_leaf=1).fit(X, y)
    wrapped, outcomes = nw.from_native(X), nw.from_native(y)
    tree = GreedySurvivalTree(max_depth=1, min_events_leaf=1).fit(wrapped, outcomes)
    assert tree.score(wrapped, outcomes) == plain.score(X, y)
    assert tree.feature_names_in_.tolist() == list(X)


def test_whole_numbers_of_128_bits_are_integers():
    X = pl.DataFrame({"age": [30, None, 50, 2**100]}, schema={"age": pl.Int128})
    same = X.cast({"age": pl.Float64})
    assert (BinaryEncoder().fit_transform(X) == BinaryEncoder().fit_transform(same)).all()
    flags = pl.DataFrame({"dead": [0, 1, None, 1]}, schema={"dead": pl.Int128})
    assert fitted_names(flags) == ["dead"]
    with pytest.warns(ColumnWarning, match=r"'dead' contains integers beyond 2\*\*53"):
        BinaryEncoder().fit(flags * 2**60 + 1)


@pytest.mark.filterwarnings("error")
def test_a_missing_value_rounds_no_integer():
    assert len(fitted_names(np.array([[2**60], [None], [3]], dtype=object))) == 1


def test_numbers_in_object_columns_are_numbers():
    X = np.array([[1, Decimal("0.5")], [2.5, 3], [None, np.float32(4)]], dtype=object)
    assert fitted_names(X) == ["x0 <= 1.75", "x1 <= 1.75", "x1 <= 3.5"]


def test_categories_that_are_large_integers_are_told_apart_in_columns_of_integers():
    # Identifiers of 64 bits, which are not all a float64.
    sites = [2**53, 2**53 + 1, 2**63 - 1]
    X = pd.DataFrame({"site": pd.Categorical(sites * 10)})
    tree = OptimalTreeClassifier(max_depth=2).fit(X, ["a", "b", "c"] * 10)
    frames = [
        pd.DataFrame({"site": sites}),
        pd.DataFrame({"site": pd.Series([*sites, None], dtype="Int64")}),
        pd.DataFrame({"site": pd.Series([*sites, None], dtype=object)}),
        pl.DataFrame({"site": sites}),
        pa.table({"site": [*sites, None]}),
    ]
    for new in frames:
        assert tree.predict(new)[:3].tolist() == ["a", "b", "c"]


def test_levels_that_read_alike_have_distinct_names():
    X = np.array([[1], ["1"], [2], ["a b "], [1]], dtype=object)
    assert fitted_names(X) == ["x0 = 1", "x0 = 2", "x0 = '1'", "x0 = 'a b '"]
    X = np.array([[level] for level in ["other", "other", "b", "b", "c", "d"]])
    assert fitted_names(X, max_categories=2, categories="levels") == [
        "x0 = b",
        "x0 = 'other'",
        "x0 = other",
    ]


def test_names_that_clash_across_columns_are_made_distinct():
    X = pd.DataFrame({"a": ["b", "c", "c", "d"], "a = b": [0, 1, 0, 1]})
    assert fitted_names(X) == ["a = 'b'", "a = c", "a = d", "a = b"]
    X = pd.DataFrame({"x": [1, 2, 2, 2], "x <= 1.5": [0, 1, 0, 1]})
    assert fitted_names(X) == ["x <= 1.5", "x <= 1.5 (2)"]


def test_columns_of_a_frame_may_come_in_any_order():
    X = pd.DataFrame(mixed_columns())
    encoder = BinaryEncoder().fit(X)
    assert np.array_equal(encoder.transform(X[X.columns[::-1]]), encoder.transform(X))


def test_features_of_an_array_may_come_in_any_order():
    X = np.array([[1.0, 7.0], [2.0, 9.0], [3.0, 8.0]])
    encoder = BinaryEncoder().fit(X)
    data = encoder.to_dict()
    data["features"].reverse()
    reverse = BinaryEncoder.from_dict(data)
    assert np.array_equal(reverse.transform(X), encoder.transform(X)[:, ::-1])


def test_frames_with_integer_names_count_as_arrays():
    X = pd.DataFrame([[1.0, 0.0], [2.0, 5.0]])
    encoder = BinaryEncoder().fit(X)
    assert not hasattr(encoder, "feature_names_in_")
    assert encoder.n_features_in_ == 2
    assert names(encoder) == ["x0 <= 1.5"]
    assert encoder.get_feature_names_out(["u", "v"]).tolist() == ["u <= 1.5"]


def test_feature_names_out_accepts_only_the_columns():
    encoder = BinaryEncoder().fit(pd.DataFrame({"a": [1, 2]}))
    assert encoder.get_feature_names_out(["a"]).tolist() == ["a <= 1.5"]
    with pytest.raises(ValueError, match="not equal to feature_names_in_"):
        encoder.get_feature_names_out(["b"])
    with pytest.raises(ValueError, match="length equal to number of features \\(1\\), got 2"):
        encoder.get_feature_names_out(["a", "b"])


def test_no_rows_have_no_features_to_evaluate():
    X = pd.DataFrame(mixed_columns())
    encoder = BinaryEncoder().fit(X)
    for empty in (X[:0], pd.DataFrame(columns=list(X)), pl.DataFrame(mixed_columns())[:0]):
        features = encoder.transform(empty)
        assert features.shape == (0, encoder.n_features_out_)
        assert features.dtype == bool


def test_names_given_on_one_side_only_warn():
    frame = pd.DataFrame({"a": [1, 2], "b": [1, 2]})
    with pytest.warns(BristleconeWarning, match="X does not have valid feature names"):
        BinaryEncoder().fit(frame).transform(frame.to_numpy())
    with pytest.warns(BristleconeWarning, match="fitted without feature names"):
        BinaryEncoder().fit(frame.to_numpy()).transform(frame)


def test_set_output_gives_frames():
    data = {"age": [1.0, 2.0, 3.0], "stage": ["I", "II", "II"]}
    frame = pd.DataFrame(data, index=[7, 8, 9])
    encoder = BinaryEncoder().set_output(transform="pandas").fit(frame)
    encoded = encoder.transform(frame)
    assert list(encoded.columns) == names(encoder)
    assert encoded.index.tolist() == [7, 8, 9]
    assert set(encoded.dtypes) == {np.dtype(bool)}
    encoded = BinaryEncoder().set_output(transform="polars").fit_transform(pl.DataFrame(data))
    assert encoded.columns == names(encoder)
    assert set(encoded.dtypes) == {pl.Boolean}


# --- scikit-learn manners -----------------------------------------------------------------------


@parametrize_with_checks(
    [BinaryEncoder(), BinaryEncoder(missing="branch"), BinaryEncoder(thresholds="ensemble")]
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_pipeline_fits_on_the_training_fold_only():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.normal(size=80), "b": rng.choice(["u", "v"], 80)})
    y = (X["a"] > 0).to_numpy()
    model = make_pipeline(BinaryEncoder(), DecisionTreeClassifier(max_depth=1))
    assert cross_val_score(model, X, y).mean() > 0.8
    train, test = X[:40], X[40:]
    model.fit(train, y[:40])
    before = model[0].to_dict()
    model.predict(test)
    assert model[0].to_dict() == before == BinaryEncoder().fit(train).to_dict()


def test_failed_fit_leaves_the_encoder_as_it_was():
    encoder = BinaryEncoder().fit(pd.DataFrame({"a": [1, 2]}))
    before = encoder.to_dict()
    with pytest.raises(ValueError, match="infinite"):
        encoder.fit(pd.DataFrame({"a": [1.0, np.inf]}))
    assert encoder.to_dict() == before


def test_numpy_parameters_survive_json():
    encoder = BinaryEncoder(n_thresholds=np.int64(3)).fit(np.arange(9.0)[:, np.newaxis])
    restored = BinaryEncoder.from_dict(json.loads(json.dumps(encoder.to_dict())))
    assert restored.n_thresholds == 3
    assert not hasattr(restored, "feature_names_in_")


def test_docstring_examples():
    for module in (binary, cutting, missing):
        result = doctest.testmod(module)
        assert result.attempted > 0
        assert result.failed == 0


# --- bad input ----------------------------------------------------------------------------------


def test_duplicate_names_are_refused_where_rows_have_no_weight():
    X = pd.DataFrame([[1, 2], [3, 4], [5, 6]], columns=["age", "age"])
    with pytest.raises(ValueError, match="X has duplicate column names: 'age'"):
        OptimalTreeClassifier().fit(X, [0, 1, 1], sample_weight=[1, 1, 0])


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (pd.DataFrame({"a": []}), ValueError, "0 sample\\(s\\) \\(shape=\\(0, 1\\)\\)"),
        (np.zeros((3, 0)), ValueError, "0 feature\\(s\\) \\(shape=\\(3, 0\\)\\)"),
        (np.zeros(3), ValueError, "Expected 2D array, got 1D"),
        (pd.Series([1.0]), ValueError, "2D array, got a Series; for one row pass a DataFrame"),
        ({"age": 50}, ValueError, "Expected 2D array, got a dict; for one row"),
        (np.zeros((2, 2, 2)), ValueError, "Expected 2D array, got 3D"),
        (
            pd.DataFrame([[1, 2]], columns=["age", "age"]),
            ValueError,
            "duplicate column names: 'age'",
        ),
        (
            pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["b", "b"]),
            ValueError,
            "duplicate column names: 'b'",
        ),
        (pd.DataFrame({"a": [1], " ": [2]}), ValueError, "column 1 has an empty name"),
        (pd.DataFrame({"a": [1], 3: [2]}), TypeError, "column names must all be strings; got 3"),
        (pd.DataFrame({"a": [1.0, np.inf]}), ValueError, "column 'a' is infinite .* in row 1"),
        (np.array([[0.0, 1.0], [2.0, -np.inf]]), ValueError, "column 'x1' is infinite .* in row 1"),
        (pl.DataFrame({"a": [1.0, np.inf]}), ValueError, "column 'a' is infinite .* in row 1"),
        (np.array([[1], [np.inf]], dtype=object), ValueError, "'x0' is infinite .* in row 1"),
        (np.array([["a"], [10**400]], dtype=object), ValueError, "too large .* in row 1"),
        (
            pd.DataFrame({"day": pd.to_datetime(["2020-01-01"])}),
            TypeError,
            "column 'day' has dtype datetime64",
        ),
        (pl.DataFrame({"a": [[1, 2]]}), TypeError, "column 'a' has dtype List"),
        (pd.DataFrame({"a": [1, [2]]}), TypeError, "column 'a' holds a list in row 1"),
        (
            pd.DataFrame({"a": pd.Series(["u", pd.Timestamp("2020")], dtype=object)}),
            TypeError,
            "column 'a' holds a Timestamp in row 1",
        ),
        (
            pd.DataFrame({"a": pd.cut([1, 2], [0, 1, 2])}),
            TypeError,
            "column 'a' holds an Interval in row 0",
        ),
        (np.array([["2020-01-01"]], dtype="M8[D]"), TypeError, "column 'x0' has dtype datetime64"),
        (np.array([[1j]]), ValueError, "Complex data not supported: column 'x0'"),
        (csr_array(np.eye(2)), TypeError, "does not accept sparse input"),
        (np.ma.masked_array([[1.0]], mask=[[True]]), TypeError, "does not accept masked arrays"),
        (pl.LazyFrame({"a": [1]}), TypeError, "X is a polars LazyFrame.* call collect"),
        (pa.record_batch({"a": [1]}), TypeError, r"X is a pyarrow RecordBatch; pass .*\(\[X\]\)"),
    ],
)
def test_unusable_input_is_refused(X, error, message):
    with pytest.raises(error, match=message):
        BinaryEncoder().fit(X)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda X: X.drop(columns="age"), ValueError, "missing: 'age'$"),
        (
            lambda X: X.rename(columns={"age": "years"}),
            ValueError,
            "missing: 'age'; not seen in training: 'years'",
        ),
        (lambda X: X.assign(age="old", new=1), TypeError, "'age' held numbers"),
        (lambda X: X.assign(age=math.inf), ValueError, "column 'age' is infinite .* in row 0"),
        (lambda X: X.assign(age="old"), TypeError, "'age' held numbers .* category 'old' in row 0"),
        (
            lambda X: X.assign(age=[1.5, None, "old", 2, 3, 4]),
            TypeError,
            "'age' held numbers .* category 'old' in row 2",
        ),
        (lambda X: X.assign(treated="no"), TypeError, "'treated' held numbers"),
        (lambda X: X.assign(stage=3), TypeError, "'stage' held text .* holds numbers"),
        (
            lambda X: X.assign(stage=pd.Categorical([3] * 6)),
            TypeError,
            "'stage' held text .* holds numbers",
        ),
        (
            lambda X: X.assign(site=["1", "2"] * 3),
            TypeError,
            "'site' held categories that are numbers in training, .* text '1' in row 0",
        ),
        (lambda X: X.to_numpy()[:, :4], ValueError, "X has 4 features, but BinaryEncoder is expec"),
    ],
)
def test_columns_that_differ_from_training_are_refused(change, error, message):
    X = pd.DataFrame(mixed_columns()).assign(site=pd.Categorical([1, 2, 1, 2, 1, 2]))
    encoder = BinaryEncoder().fit(X)
    with pytest.raises(error, match=message):
        encoder.transform(change(X))


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("thresholds", "deciles"),
        ("n_thresholds", 0),
        ("n_thresholds", 2.5),
        ("max_categories", 0),
        ("missing", "drop"),
        ("min_support", 0.5),
        ("min_support", -0.1),
        ("max_features", 0),
        ("handle_unknown", None),
    ],
)
def test_unknown_parameter_values_are_refused(parameter, value):
    with pytest.raises(
        InvalidParameterError, match=f"^{parameter} must be .*{re.escape(repr(value))}"
    ):
        BinaryEncoder(**{parameter: value}).fit(np.eye(3))


def test_weights_are_checked():
    with pytest.raises(ValueError, match=r"sample_weight has shape \(2,\); expected \(3,\)"):
        BinaryEncoder().fit(np.eye(3), sample_weight=[1, 2])


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["columns"], None, "columns is null; expected array"),
        (["columns"], [], "at least one"),
        (["columns", 0, "name"], "stage", "distinct names"),
        (["columns", 0, "kind"], "colour", r"columns\[0\].kind is 'colour'"),
        (["columns", 0, "kind"], "flag", "asks for a threshold of column 'age'"),
        (["columns", 4, "levels"], [None], r"columns\[4\].levels"),
        (["features", 0, "value"], math.nan, r"features\[0\].value is not float"),
        (["features", 0, "column"], "weight", "of column 'weight'"),
        (["features", 0, "type"], "split", r"features\[0\].type is 'split'"),
        (["features", 0, "extra"], 1, r"features\[0\].extra is not known"),
        (["features", 1, "condition"], "<= 37.75", "features: two have the same name"),
        (["constant"], ["weight"], "constant names a column that does not exist"),
        (["parameters", "n_thresholds"], 0, "parameters: n_thresholds must be"),
        (["parameters", "depth"], 1, "parameters.depth is not known"),
    ],
)
def test_tampered_dictionaries_are_refused(path, value, message):
    data = json.loads(json.dumps(BinaryEncoder().fit(pd.DataFrame(mixed_columns())).to_dict()))
    place = data
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    with pytest.raises(ModelFormatError, match=message):
        BinaryEncoder.from_dict(data)


@pytest.mark.parametrize("key", ["parameters", "named", "columns", "constant", "features"])
def test_truncated_dictionaries_are_refused(key):
    data = BinaryEncoder().fit(pd.DataFrame(mixed_columns())).to_dict()
    del data[key]
    with pytest.raises(ModelFormatError, match=f"^{key} is missing"):
        BinaryEncoder.from_dict(data)


@pytest.mark.skipif(
    np.finfo(np.longdouble).max == np.finfo(np.float64).max, reason="longdouble is float64 here"
)
@pytest.mark.filterwarnings("ignore:overflow encountered in cast:RuntimeWarning")
def test_numbers_beyond_float64_are_infinite():
    X = np.array([[1.0, 2.0], [3.0, 4.0]], dtype=np.longdouble)
    X[1, 0] = np.finfo(np.longdouble).max
    with pytest.raises(ValueError, match=r"column 'x0' is infinite or too large \(inf\) in row 1"):
        BinaryEncoder().fit(X)
