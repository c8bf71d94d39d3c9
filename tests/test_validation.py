"""Outcomes, weights and parameters as users pass them."""

import datetime
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bristlecone import CostSensitiveTreeClassifier, OptimalSurvivalTree
from bristlecone._data import checks, groups, outcome_names, targets
from bristlecone._data.outcomes import check_survival
from bristlecone._data.rows import check_sample_weight
from bristlecone._data.survival import check_training_data
from bristlecone.curves import kaplan_meier
from bristlecone.exceptions import BristleconeWarning, InvalidParameterError
from bristlecone.metrics import concordance_index_censored, concordance_index_td, logrank_test

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
    "polars, 128 bits": pl.DataFrame(columns()).cast({"time": pl.Int128, "event": pl.Int128}),
    "polars decimals": pl.DataFrame(columns()).cast({"time": pl.Decimal(10, 2)}),
    "durations": pd.DataFrame(columns(time=pd.to_timedelta(TIME, unit="D"))),
    "pair with durations": (EVENT, (TIME * 24).astype("timedelta64[h]")),
    "polars durations": pl.DataFrame(columns()).with_columns(
        pl.duration(days="time").alias("time")
    ),
    "objects of durations": (EVENT, [datetime.timedelta(days) for days in TIME]),
    "durations of other names": pd.DataFrame({"dead": EVENT, "t": pd.to_timedelta(TIME, unit="D")}),
    "field of durations": structured(("e", EVENT, bool), ("t", TIME.astype("m8[D]"), "m8[D]")),
    "masked arrays without a mask": (np.ma.array(EVENT), np.ma.array(TIME, mask=[0, 0, 0, 0])),
}


# A row that ends on its first day has time 0; noon of the last day adds half a day.
DATES = np.datetime64("2020-02-27") + (TIME * 24).astype("timedelta64[h]")
FIRST = np.full(4, np.datetime64("2020-02-27T00"))


def dates(start="entry", stop="exit"):
    return pd.DataFrame({"event": EVENT, start: FIRST, stop: DATES})


OUTCOMES |= {
    "dates of entry and exit": dates(),
    "dates of start and stop": dates("start", "stop"),
    "date of entry and of the time": dates("entry", "time"),
    "event of any name": dates().rename(columns={"event": "died"}),
    "dates in polars": pl.DataFrame(dates()),
    "dates in arrow": pa.table(dates().to_dict("list")),
    "days in polars": pl.DataFrame(dates()).cast({"entry": pl.Date, "exit": pl.Date}),
    "dates with time zones": dates().assign(
        entry=pd.Series(FIRST).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"),
        exit=pd.Series(DATES).dt.tz_localize("UTC"),
    ),
    "objects of dates": dates().astype({"entry": object, "exit": object}),
    "fields of dates": structured(
        ("e", EVENT, bool), ("entry", FIRST, "M8[D]"), ("exit", DATES, "M8[h]")
    ),
}


@pytest.mark.parametrize("form", OUTCOMES)
def test_every_form_of_outcomes_reads_the_same(form):
    event, time, entry = check_survival(OUTCOMES[form])
    assert entry is None
    np.testing.assert_array_equal(event, EVENT)
    np.testing.assert_array_equal(time, TIME)
    assert event.dtype == np.bool_ and time.dtype == np.float64
    assert event.flags.c_contiguous and time.flags.c_contiguous


@pytest.mark.parametrize(
    "y",
    [
        pd.DataFrame({"event": EVENT, "start": TIME, "stop": TIME + 2}),
        pd.DataFrame({"stop": TIME + 2, "died": EVENT, "start": TIME}),
        pl.DataFrame({"event": EVENT, "entry": TIME, "exit": TIME + 2}),
        pd.DataFrame({"event": EVENT, "entry": TIME, "time": TIME + 2}),
        pd.DataFrame({"entry": TIME, "days": TIME + 2, "dead": EVENT.astype(int)}),
        pd.DataFrame(
            {
                "event": EVENT,
                "start": pd.to_timedelta(TIME, unit="D"),
                "stop": pd.to_timedelta(TIME + 2, unit="D"),
            }
        ),
    ],
)
def test_numbers_and_durations_of_start_and_stop_are_delayed_entry(y):
    event, time, entry = check_survival(y)
    np.testing.assert_array_equal(event, EVENT)
    np.testing.assert_array_equal(time, TIME + 2)
    np.testing.assert_array_equal(entry, TIME)


def test_dates_count_in_days_with_their_fractions():
    y = dates().assign(exit=DATES + np.timedelta64(12, "h"))
    np.testing.assert_array_equal(check_survival(y).time, TIME + 0.5)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (
            dates().assign(exit=FIRST - np.timedelta64(1, "D")),
            "'exit' .*2020-02-26.* in row 0, bef",
        ),
        (dates().assign(exit=[pd.NaT, *DATES[1:]]), "column 'exit' of y is missing in row 0"),
        (
            dates().drop(columns="entry"),
            "columns 'event', 'exit'|'exit' of y holds dates; expected",
        ),
        (
            pd.DataFrame(columns(time=DATES)),
            "'time' of y holds dates; expected numbers or durations",
        ),
        (
            dates().assign(entry=TIME),
            "'entry' of y and column 'exit' of y must both be dates, both be durations, or both be",
        ),
        (
            dates().assign(exit=pd.to_timedelta(TIME + 1, unit="D"), entry=TIME),
            "must both be dates, both be durations, or both be numbers",
        ),
        (pd.DataFrame(columns(time=["2020-01-01"] * 4)), "'2020-01-01'.* expected numbers"),
        ((EVENT, np.array(["2020-01-01"] * 4)), "such as .*'2020-01-01'.* expected numbers"),
        ((EVENT, TIME.astype("timedelta64[M]")), "not a fixed number of days"),
        ((EVENT, np.array([1, 2, "NaT", 3], dtype="m8[D]")), "missing in row 2"),
        ((EVENT, TIME, TIME), "three; expected a pair .*columns 'event', 'entry' and 'time'"),
        (pd.DataFrame(np.ones((4, 2)), columns=["time", "time"]), "duplicate column names: 'time'"),
        (pd.DataFrame([[2, 3], [4, 5]]), "y has the columns 0, 1; expected"),
        (
            pl.DataFrame(
                {"event": EVENT, "time": [2**64] * 4}, schema_overrides={"time": pl.Int128}
            ),
            "column 'time' of y holds whole numbers beyond 64 bits",
        ),
    ],
)
def test_times_that_are_no_durations_say_what_to_do(y, message):
    with pytest.raises(ValueError, match=message):
        check_survival(y)


COMPETING = "Competing risks need a CompetingRisksTree.*cause-specific analysis.*pass event == 1"


@pytest.mark.parametrize(
    ("y", "label"),
    [
        (pd.DataFrame(columns(event=[0, 1, 2, 1])), "column 'event' of y holds 0, 1, 2;"),
        (pd.DataFrame(columns(event=[0.0, 1, 2, 1], names=("event", "time"))), "column 'event'"),
        (
            pd.DataFrame(columns(event=[0, 1, 2, 1], names=("status", "days"))),
            "column 'status' of y",
        ),
        (([0, 1, 2, 1], TIME), "first of the pair y, holds 0, 1, 2;"),
        (structured(("cause", [0, 1, 2, 1], int), ("t", TIME, float)), "fields 'cause'"),
    ],
)
def test_competing_risks_tell_the_cause_specific_way(y, label):
    with pytest.raises(ValueError, match=f"{label}.*{COMPETING}"):
        check_survival(y)


def test_two_other_codes_ask_which_is_the_event():
    with pytest.raises(ValueError, match=r"holds 1, 2; .*If 2 marks an event, pass event == 2"):
        check_survival(([1, 2, 1, 2], TIME))
    with pytest.raises(ValueError, match=r"holds 0\.5, 2\.0; expected True/False or 0/1$"):
        check_survival(([0.5, 2, 0.5, 2], TIME))


MASK = [False, False, True, False]


@pytest.mark.parametrize(
    ("check", "name"),
    [
        (lambda x: check_survival((EVENT, x)), "time, the second of the pair y,"),
        (lambda x: check_survival((x > 1, TIME)), "event, the first of the pair y,"),
        (lambda x: check_survival(np.ma.array(OUTCOMES["structured"], mask=MASK)), "y"),
        (lambda x: check_sample_weight(x, 4), "sample_weight"),
        (lambda x: groups.codes_of(x, 4, "labels"), "labels"),
        (lambda x: targets.check_numbers("y", x, 4), "y"),
        (lambda x: targets.check_amounts("costs", x), "costs"),
        (lambda x: kaplan_meier((EVENT, x)), "time, the second of the pair y,"),
        (lambda x: kaplan_meier((x > 1, TIME)), "event, the first of the pair y,"),
        (lambda x: concordance_index_censored(EVENT, TIME, x), "estimate"),
        (lambda x: logrank_test(EVENT, TIME, x), "group"),
        (lambda x: concordance_index_td(EVENT, TIME, x, [1.0]), "survival"),
    ],
)
def test_masked_values_are_refused_by_name(check, name):
    with pytest.raises(ValueError, match=f"^{name} is masked in row 2"):
        check(np.ma.array(TIME + 1, mask=MASK))


def test_an_index_in_another_order_is_refused():
    X = pd.DataFrame({"a": [1, 2, 3, 4]}, index=[3, 1, 0, 2])
    y = pd.DataFrame(columns())
    for other in (y, (y["event"], y["time"]), y.sort_index(ascending=False)):
        with pytest.raises(ValueError, match=r"X and y have the same index in another order.*loc"):
            check_training_data(X, other)
    with pytest.raises(ValueError, match="X and sample_weight have the same index"):
        check_training_data(X, y.loc[X.index], pd.Series(np.ones(4)))
    for check in (targets.check_labelled_data, targets.check_numeric_data):
        with pytest.raises(ValueError, match="X and y have the same index in another order"):
            check(X, y["time"], None)
    with pytest.raises(ValueError, match="X and sensitive_features have the same index"):
        groups.check_groups(X, y["event"], None, None, "fairness")
    many = pd.DataFrame({"a": range(8), "event": [0, 1] * 4, "time": range(1, 9)})
    for part in (many[2:6], many.loc[[2, 3, 4, 7]]):
        own = many[["a"]][:4] if part.index[-1] == 5 else many[["a"]].loc[[1, 3, 4, 6]]
        # A mistake, or the rows of shuffled outcomes.
        with pytest.warns(BristleconeWarning, match="indices with only some labels in common"):
            check_training_data(own, part[["event", "time"]])
    # One of the two was selected from more rows, and the other one has its index reset.
    selected, numbered = many.loc[[2, 3, 4, 7]], many[:4]
    check_training_data(selected[["a"]], numbered[["event", "time"]])
    check_training_data(numbered[["a"]], selected[["event", "time"]])
    # Rows are matched by position if the index has no information.
    for fine in (y.loc[X.index], y.set_axis([5, 6, 7, 8]), OUTCOMES["structured"], (EVENT, TIME)):
        check_training_data(X, fine)
    check_training_data(X.set_axis(list("abcd")), y)
    check_training_data(X.set_axis([1, 1, 2, 2]), y.set_axis([1, 1, 2, 2]))


def test_class_weights_and_prices_of_a_wrong_kind_are_named():
    with pytest.raises(ValueError, match="class_weight must be a dict, 'balanced' or None"):
        targets.check_labelled_data(np.zeros((4, 1)), EVENT, None, np.ones(4))
    X = pd.DataFrame({"a": EVENT})
    for costs in (3, np.array(3)):
        model = CostSensitiveTreeClassifier(max_depth=1, feature_costs=costs)
        with pytest.raises(ValueError, match=r"feature_costs must be a mapping .*; got .*3"):
            model.fit(X, EVENT)


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
        (TIME, r"y is an ndarray of shape \(4,\)"),
        (np.stack([EVENT, TIME], axis=1), r"y is an ndarray of shape \(4, 2\)"),
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
        (pd.DataFrame(columns() | {"age": TIME}), "columns 'event', 'time', 'age'; .*drop 'age'"),
        (pd.DataFrame({"time": TIME}), "columns 'time'; .*rename the column of the event to 'eve"),
        (pd.DataFrame(columns(names=(0, 1))), "columns 0, 1; .*event to 'event'; .*time to 'time'"),
        (pd.DataFrame(columns(names=("event", "age"))), "'age'; .*column of the time to 'time'"),
        (pd.DataFrame(columns(names=("sex", "time"))), "'sex', 'time'; .*event to 'event'"),
        (
            pd.DataFrame(columns() | {"status": EVENT}),
            "'event', 'status' are all names of the event, drop all except one",
        ),
        (
            pd.DataFrame(columns() | {"censored": ~EVENT}),
            "'event', 'time', 'censored'; .*drop 'censored'",
        ),
        (
            pd.DataFrame(columns() | {"entry": 0 * TIME, "start": 0 * TIME}),
            "'entry', 'start' are all names of the entry",
        ),
        (
            pd.DataFrame({"start": TIME, "event": EVENT, "duration": TIME}),
            "not clear that 'start' and 'duration' start at the same moment",
        ),
    ],
)
def test_outcomes_of_unknown_form_say_what_was_expected(y, message):
    with pytest.raises(ValueError, match=message):
        check_survival(y)


@pytest.mark.parametrize(
    "name",
    ["censored", "Censoring", "cens", "alive", "survived", "is_censored", "event_censored"],
)
def test_columns_of_the_opposite_of_an_event_are_rejected_with_the_way_out(name):
    for frame in (pd.DataFrame, pl.DataFrame):
        with pytest.raises(ValueError, match=rf"'{name}' of y reads as .*event = ~{name} as a"):
            check_survival(frame({name: ~EVENT, "time": TIME}))
        with pytest.raises(ValueError, match=rf"'{name}' of y reads as .*event = 1 - {name} as a"):
            check_survival(frame({name: 1 - EVENT, "time": TIME}))


def test_outcomes_that_could_be_turned_around_do_not_fit():
    X = pd.DataFrame({"a": [0, 0, 1, 1]})
    for name in ("censored", "alive", "sex", "event_free", "survival_status", "vital_status"):
        y = pd.DataFrame({name: ~EVENT, "time": TIME})
        with pytest.raises(ValueError, match=f"'{name}'.*'event'"):
            OptimalSurvivalTree(max_depth=1).fit(X, y)


@pytest.mark.parametrize(
    ("event", "time"),
    [
        ("Event", "TIME"),
        ("eventObserved", "survival_time"),
        ("death_event", "follow_up"),
        ("is_dead", "Follow-up days"),
        ("Status", "days_to_death"),
        ("E", "T"),
        ("delta", "event time"),
        ("fustat", "futime"),
        ("churned", "tenure in months"),
    ],
)
def test_names_that_mean_one_thing_are_known(event, time):
    found = check_survival(pd.DataFrame({time: TIME, event: EVENT.astype(int)}))
    np.testing.assert_array_equal(found.event, EVENT)
    np.testing.assert_array_equal(found.time, TIME)


@pytest.mark.parametrize("entry", ["entry", "Entry time", "tstart", "start_time"])
def test_names_of_delayed_entry_are_known(entry):
    found = check_survival(pd.DataFrame({"died": EVENT, entry: TIME, "tstop": TIME + 2}))
    np.testing.assert_array_equal(found.entry, TIME)
    np.testing.assert_array_equal(found.time, TIME + 2)


def test_the_guide_and_the_docstring_list_every_known_name():
    words = outcome_names
    guide = (Path(__file__).parents[1] / "docs/guide/first-tree.md").read_text(encoding="utf-8")
    docstring = OptimalSurvivalTree.fit.__doc__
    for role, known in (("event", words.EVENTS), ("time", words.TIMES), ("entry", words.ENTRIES)):
        known = known | {letter for letter, of in words.LETTERS.items() if of == role}
        row = re.search(rf"^\| {role} \|(.*)\|$", guide, re.MULTILINE)[1]
        listed = re.search(rf"\* {role}:([^;.]*)[;.]", docstring)[1]
        if role == "entry":
            assert known <= set(re.findall(r"\w+", row)) & set(re.findall(r"\w+", listed))
        else:
            assert known == set(re.findall(r"\w+", row)) == set(re.findall(r"\w+", listed))
    assert words.REVERSED - {"censor"} <= set(re.findall(r"`(\w+)`", guide))


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
        (TIME[:3], "event, .* has 4 rows but time, .* has 3"),
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
        ([1, 2, None, 4], "holds None in row 2; expected numbers"),
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
    assert checks.thread_count(None) == 1
    assert checks.thread_count(np.int64(3)) == 3
    assert checks.thread_count(-1) == cores
    assert checks.thread_count(-cores - 5) == 1


def test_parameter_errors_are_both_value_and_type_errors():
    for kind in (ValueError, TypeError):
        with pytest.raises(kind, match="max_depth must be an integer of at least 0; got 'deep'"):
            checks.check_integer("max_depth", "deep", 0)
    assert issubclass(InvalidParameterError, ValueError)


def test_dates_are_labels_but_no_numbers():
    classes, codes = groups.codes_of(FIRST, 4, "y")
    assert classes.dtype == FIRST.dtype and codes.tolist() == [0] * 4
    with pytest.raises(ValueError, match="y is missing in row 1"):
        groups.codes_of(np.array(["2020-01-01", "NaT"], dtype="M8[D]"), 2, "y")
    for values in (FIRST, FIRST - FIRST):
        with pytest.raises(ValueError, match=r"y has dtype .*; expected numbers"):
            targets.check_numbers("y", values, 4)


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.0.0", reason="needs NumPy 2")
def test_text_of_variable_length_becomes_text():
    classes, codes = groups.codes_of(np.array(list("abab"), np.dtypes.StringDType()), 4, "y")
    assert classes.dtype == "<U1" and codes.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("wrong", [0, 1, np.nan, None, "a", [0.9]], ids=str)
def test_wrong_levels_are_named(wrong):
    X = np.arange(1.0, 9.0)[:, np.newaxis]
    tree = OptimalSurvivalTree(max_depth=0).fit(X, ([True] * 8, X[:, 0]))
    with pytest.raises(InvalidParameterError, match="confidence must lie in"):
        tree.leaf_table(confidence=wrong)
    if not isinstance(wrong, list):  # quantiles may be several
        with pytest.raises(ValueError, match=r"^q must "):
            tree.predict_quantile(X, wrong)
