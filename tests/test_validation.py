"""Outcomes, weights and parameters as they come from users."""

import os

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bristlecone import validation
from bristlecone.errors import InvalidParameterError
from bristlecone.validation import check_sample_weight, check_survival, check_training_data

EVENT = np.array([True, False, True, False])
TIME = np.array([3.0, 0.0, 2.0, 8.0])


def structured(*fields):
    y = np.empty(len(fields[0][1]), dtype=[(name, dtype) for name, _, dtype in fields])
    for name, values, _ in fields:
        y[name] = values
    return y


def columns(event=EVENT, time=TIME, names=("event", "time")):
    return dict(zip(names, (event, time), strict=True))


OUTCOMES = {
    "structured": structured(("event", EVENT, bool), ("time", TIME, float)),
    "any field names": structured(("t", TIME, float), ("cens", EVENT, bool)),
    "integer time field": structured(("e", EVENT, bool), ("t", TIME, int)),
    "record array": structured(("e", EVENT, bool), ("t", TIME, float)).view(np.recarray),
    "pandas": pd.DataFrame(columns()),
    "pandas, other index": pd.DataFrame(columns(), index=[7, 5, 5, 1]),
    "pandas, time first": pd.DataFrame(columns())[["time", "event"]],
    "pandas nullable": pd.DataFrame(columns()).convert_dtypes(),
    "polars": pl.DataFrame(columns()),
    "arrow": pa.table(columns()),
    "0/1 event column": pd.DataFrame(columns(event=EVENT.astype(int))),
    "0.0/1.0 event column": pd.DataFrame(columns(event=EVENT.astype(float))),
    "other names": pd.DataFrame(columns(names=("status", "days"))),
    "other names, 0/1": pl.DataFrame(columns(event=EVENT.astype(int), names=("status", "days"))),
    "pair": (EVENT, TIME),
    "pair of lists": ([1, 0, 1, 0], [3, 0, 2, 8]),
    "pair as list": [EVENT, TIME],
    "objects": pd.DataFrame(columns()).astype(object),
    "pair of objects": (EVENT.astype(object), TIME.astype(object)),
    "pair of pandas series": (pd.Series(EVENT), pd.Series(TIME)),
    "pair of polars series": (pl.Series(EVENT), pl.Series(TIME)),
}


@pytest.mark.parametrize("form", OUTCOMES)
def test_every_form_of_outcomes_reads_the_same(form):
    event, time, entry = check_survival(OUTCOMES[form])
    assert entry is None
    np.testing.assert_array_equal(event, EVENT)
    np.testing.assert_array_equal(time, TIME)
    assert event.dtype == np.bool_ and time.dtype == np.float64
    assert event.flags.c_contiguous and time.flags.c_contiguous


def test_all_events_need_no_second_value_where_the_event_is_named():
    observed = np.ones(4)
    for y in (pd.DataFrame(columns(event=observed)), (observed, TIME)):
        assert check_survival(y).event.all()
    flag = pd.DataFrame(columns(event=observed.astype(bool), names=("status", "days")))
    assert check_survival(flag).event.all()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "y is a NoneType; expected a structured array"),
        (TIME, r"y is a ndarray of shape \(4,\)"),
        (np.stack([EVENT, TIME], axis=1), r"y is a ndarray of shape \(4, 2\)"),
        ([(True, 3.0), (False, 1.0), (True, 2.0)], "y is a list"),
        ([(True, 3.0), (False, 1.0)], "y is a list"),
        ([True, False], "y is a list"),
        (("event", "time"), "y is a tuple"),
        (pd.Series(TIME), "y is a Series"),
        (structured(("t", TIME, float), ("u", TIME, float)), "fields 't' .*one boolean field"),
        (
            structured(("e", EVENT, bool), ("f", EVENT, bool), ("t", TIME, float)),
            "fields 'e' .bool.*one boolean field",
        ),
        (
            structured(("e", EVENT, bool), ("t", TIME, float), ("since", 0 * TIME, float)),
            "'since' .*and at most 'entry' besides",
        ),
        (pd.DataFrame(columns() | {"age": TIME}), "columns 'event', 'time', 'age'; expected"),
        (pd.DataFrame({"time": TIME}), "columns 'time'; expected 'event' and 'time'"),
        (pd.DataFrame(columns(event=TIME + 1, names=("a", "b"))), "'a', 'b'.*exactly one two-v"),
        (pd.DataFrame({"a": EVENT, "b": EVENT}), "'a', 'b'.*exactly one two-valued"),
        (pd.DataFrame({"a": EVENT, "b": list("wxyz")}), "'a', 'b'.*one numeric column"),
    ],
)
def test_outcomes_of_unknown_form_say_what_was_expected(y, message):
    with pytest.raises(ValueError, match=message):
        check_survival(y)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ([1, 2, 1, 2], "holds 1, 2; expected True/False or 0/1"),
        ([0, 1, 2, 3], "holds 0, 1, 2, 3; expected"),
        (["dead", "alive", "dead", "alive"], "holds 'dead', 'alive'; expected"),
        ([1.0, np.nan, 0.0, 1.0], "missing in row 1"),
        ([True, False, None, True], "row 2|None"),
    ],
)
def test_events_that_are_not_two_valued_show_their_values(event, message):
    with pytest.raises(ValueError, match=f"column 'event' of y .*({message})"):
        check_survival(pd.DataFrame({"event": event, "time": TIME}))
    with pytest.raises(ValueError, match=f"event, the first of the pair y, .*({message})"):
        check_survival((event, TIME))


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, -0.5])
def test_impossible_times_name_column_and_row(wrong):
    time = TIME.copy()
    time[2] = wrong
    for y, label in (
        (structured(("e", EVENT, bool), ("t", time, float)), "field 't' of y"),
        (pd.DataFrame(columns(time=time)), "column 'time' of y"),
        (pl.DataFrame(columns(time=time)), "column 'time' of y"),
        ((EVENT, time), "time, the second of the pair y,"),
    ):
        with pytest.raises(ValueError, match=f"{label} is .*in row 2"):
            check_survival(y)


@pytest.mark.parametrize(
    ("time", "message"),
    [
        (list("abcd"), "expected numbers"),
        ([3.0, None, 2.0, 8.0], "holds None in row 1; expected numbers"),
        (pd.Series([3.0, None, 2.0, 8.0], dtype="Float64"), "time, .* is missing in row 1"),
        (pd.to_datetime(["2020-01-01"] * 4), "expected numbers"),
        (TIME.reshape(4, 1), r"shape \(4, 1\)"),
        (EVENT, "dtype bool; expected numbers"),
        (TIME[:3], "event has 4 rows but time has 3"),
    ],
)
def test_times_must_be_one_number_per_row(time, message):
    with pytest.raises(ValueError, match=message):
        check_survival((EVENT, time))


def test_missing_cells_of_a_frame_name_the_row():
    with pytest.raises(ValueError, match="column 'event' of y is missing in row 3"):
        check_survival(pl.DataFrame({"event": [True, False, True, None], "time": TIME}))
    with pytest.raises(ValueError, match="column 'time' of y is missing in row 0"):
        check_survival(pl.DataFrame({"event": EVENT, "time": [None, 1.0, 2.0, 3.0]}))


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1, 2, 3], r"shape \(3,\); expected \(4,\)"),
        (2.0, r"shape \(\); expected \(4,\)"),
        (np.ones((4, 1)), r"shape \(4, 1\)"),
        ([1, -2, 3, 4], "is -2.0 in row 1"),
        ([1, 2, np.nan, 4], "is nan in row 2"),
        ([1, 2, 3, np.inf], "is inf in row 3"),
        ([1, 1e-101, 3, 4], "is 1e-101 in row 1; weights must be zero or lie between"),
        ([1, 2, 3, 1.5e100], r"is 1.5e\+100 in row 3; weights must be zero or lie between"),
        ([0, 0, 0, 0], "zero in every row"),
        (list("abcd"), "expected numbers"),
    ],
)
def test_weights_that_do_not_fit_name_the_row(weight, message):
    with pytest.raises(ValueError, match=f"^sample_weight .*{message}"):
        check_sample_weight(weight, 4)


def test_no_weights_stay_none_and_series_become_floats():
    assert check_sample_weight(None, 4) is None
    weight = check_sample_weight(pd.Series([1, 2, 0, 4]), 4)
    assert weight.dtype == np.float64
    np.testing.assert_array_equal(weight, [1, 2, 0, 4])


@pytest.mark.parametrize(
    "X",
    [
        np.arange(8).reshape(4, 2),
        np.arange(8).reshape(4, 2).tolist(),
        pd.DataFrame(np.arange(8).reshape(4, 2), index=[3, 3, 1, 0], columns=["a", "b"]),
        pl.DataFrame(np.arange(8).reshape(4, 2)),
    ],
    ids=["numpy", "list", "pandas", "polars"],
)
def test_rows_of_weight_zero_are_left_out(X):
    data = check_training_data(X, (EVENT, TIME), [1, 0, 2, 0])
    assert data.entry is None
    np.testing.assert_array_equal(np.asarray(data.X), [[0, 1], [4, 5]])
    assert type(data.X) is type(X)
    np.testing.assert_array_equal(data.event, [True, True])
    np.testing.assert_array_equal(data.time, [3.0, 2.0])
    np.testing.assert_array_equal(data.weight, [1.0, 2.0])
    np.testing.assert_array_equal(data.kept, [True, False, True, False])


def test_weights_must_leave_two_rows_and_an_event():
    X = np.zeros((4, 1))
    with pytest.raises(ValueError, match=r"n_samples=1: .*positive weight"):
        check_training_data(X, (EVENT, TIME), [1, 0, 0, 0])
    with pytest.raises(ValueError, match="no event"):
        check_training_data(X, (EVENT, TIME), [0, 1, 0, 1])


@pytest.mark.parametrize("X", [np.zeros(4), [1, 2, 3, 4], "text", None, pl.LazyFrame({"a": TIME})])
def test_rows_must_come_as_a_table(X):
    with pytest.raises(TypeError, match=r"^X is a"):
        check_training_data(X, (EVENT, TIME))


def test_rows_of_different_lengths_are_no_table():
    with pytest.raises(ValueError, match="rows of X differ in length"):
        check_training_data([[1, 2], [3], [4, 5], [6, 7]], (EVENT, TIME))


def test_threads_follow_the_convention_of_n_jobs():
    cores = os.cpu_count()
    assert validation.thread_count(None) == 1
    assert validation.thread_count(np.int64(3)) == 3
    assert validation.thread_count(-1) == cores
    assert validation.thread_count(-cores - 5) == 1


def test_parameter_errors_are_both_value_and_type_errors():
    for kind in (ValueError, TypeError):
        with pytest.raises(kind, match="max_depth must be an integer of at least 0; got 'deep'"):
            validation.check_integer("max_depth", "deep", 0)
    assert issubclass(InvalidParameterError, ValueError)
