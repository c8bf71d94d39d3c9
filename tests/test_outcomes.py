"""Outcomes have one reader: metrics, curves and reference models accept the same y as ``fit``."""

import inspect
from datetime import date, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from command_line import refused, run
from pace import slow_but
from pyarrow import parquet
from sklearn.model_selection import KFold, cross_val_score

from bristlecone import (
    CompetingRisksTree,
    GreedySurvivalTree,
    OptimalSurvivalTree,
    SoftSurvivalTree,
    curves,
    metrics,
    outcome,
)
from bristlecone._model.registry import load_model
from bristlecone.reference import brier_losses

N = 60
RNG = np.random.default_rng(0)
X = pd.DataFrame(RNG.integers(0, 2, size=(N, 3)), columns=list("abc"))
TIME = RNG.integers(1, 40, N).astype(float)
EVENT = RNG.random(N) < 0.6
TIMES = np.array([5.0, 12.0, 25.0, 33.0])
SURVIVAL = np.sort(RNG.random((N, 4)), axis=1)[:, ::-1].copy()
FIRST = np.datetime64("2020-01-01") + RNG.integers(0, 300, N).astype("m8[D]")
LAST = FIRST + TIME.astype("m8[D]")
Y = outcome(EVENT, TIME)


def renamed(y, *names):
    return np.rec.fromarrays([y["time"], y["event"]], names=list(names))


FORMS = {
    "structured, other names": renamed(Y, "weeks", "died"),
    "pandas": pd.DataFrame(Y),
    "pandas, other names": pd.DataFrame({"died": EVENT.astype(int), "days": TIME}),
    "pandas, nullable": pd.DataFrame(Y).convert_dtypes(),
    "pandas, other index": pd.DataFrame(Y).set_axis(range(N, 2 * N)),
    "polars": pl.DataFrame({"event": EVENT, "time": TIME}),
    "arrow": pa.table({"event": EVENT, "time": TIME}),
    "pair": (EVENT, TIME),
    "pair of lists": (EVENT.tolist(), TIME.tolist()),
    "list of series": [pd.Series(EVENT), pl.Series(TIME)],
    "start at 0 and stop": pd.DataFrame({"start": 0, "stop": TIME, "died": EVENT}),
    "durations": pd.DataFrame({"event": EVENT, "time": pd.to_timedelta(TIME, unit="D")}),
    "dates of entry and exit": pd.DataFrame({"event": EVENT, "entry": FIRST, "exit": LAST}),
    "dates of start and stop": pl.DataFrame({"event": EVENT, "start": FIRST, "stop": LAST}),
    "outcome of series": outcome(pl.Series(EVENT), pd.Series(TIME)),
    "outcome of dates": outcome(EVENT, LAST, entry=FIRST),
    "outcome of lists": outcome(EVENT.tolist(), TIME.tolist(), entry=[0] * N),
}
LATE = outcome(EVENT, TIME, np.where(np.arange(N) % 3, 0, TIME / 2))


# Arguments for the parameters of metrics. A new metric is called with these.
VALUES = {
    "survival_train": Y,
    "survival": SURVIVAL,
    "survival_at": SURVIVAL[:, 2],
    "times": TIMES,
    "at": TIMES[2],
    "group": X["a"].to_numpy() + 2 * X["b"].to_numpy(),
}
BY_ROW = ("estimate", "survival", "survival_at", "group")


def parameters(function):
    return inspect.signature(function).parameters


OF_COLUMNS = [name for name in metrics.__all__ if "event" in parameters(getattr(metrics, name))]
OF_SAMPLES = [
    name for name in metrics.__all__ if "survival_test" in parameters(getattr(metrics, name))
]
WITH_ENTRY = ["concordance_index_censored", "concordance_index_td"]
CURVES = [name for name in curves.__all__ if "y" in list(parameters(getattr(curves, name)))[:1]]


def given(name, **changed):
    """Arguments of a metric by name, except the outcome."""
    known = {**VALUES, "estimate": SURVIVAL if "times" in parameters(getattr(metrics, name)) else X}
    if known["estimate"] is X:
        known["estimate"] = SURVIVAL[:, 0]
    known |= changed
    return {
        parameter.name: known[parameter.name]
        for parameter in parameters(getattr(metrics, name)).values()
        if parameter.name in known or parameter.default is parameter.empty
        if parameter.name not in ("event", "time", "survival_test")
    }


def score(name, y, **changed):
    arguments = given(name, **changed)
    if name in OF_COLUMNS:
        return getattr(metrics, name)(y, **arguments)
    return getattr(metrics, name)(survival_test=y, **arguments)


def test_every_metric_is_covered():
    assert {"logrank_test", "d_calibration", "concordance_index_td"} <= set(OF_COLUMNS)
    assert {"brier_score", "ibs_ratio", "cumulative_dynamic_auc"} <= set(OF_SAMPLES)
    assert set(CURVES) == {"kaplan_meier", "nelson_aalen", "censoring_survival", "numbers_at_risk"}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", [*OF_COLUMNS, *OF_SAMPLES])
def test_metrics_take_every_form(name, form):
    expected = score(name, Y)
    np.testing.assert_equal(score(name, FORMS[form]), expected)
    if name in OF_SAMPLES:
        np.testing.assert_equal(score(name, Y, survival_train=FORMS[form]), expected)


@pytest.mark.parametrize("name", OF_COLUMNS)
def test_metrics_of_two_columns_take_one_outcome_in_their_place(name):
    metric, arguments = getattr(metrics, name), given(name)
    expected = metric(EVENT, TIME, **arguments)
    by_position = list(arguments.values())
    for found in (
        metric(Y, *by_position),
        metric(event=Y, **arguments),
        metric(EVENT, TIME, *by_position),
        metric(event=EVENT.tolist(), time=pl.Series(TIME), **arguments),
        metric(EVENT, TIME.astype("m8[D]"), **arguments),
    ):
        np.testing.assert_equal(found, expected)
    with pytest.raises(TypeError, match="an outcome includes times and entries"):
        metric(Y, time=TIME, **arguments)
    with pytest.raises(ValueError, match="event has 60 rows but time has 59"):
        metric(EVENT, TIME[:-1], **arguments)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", CURVES)
def test_curves_take_every_form(name, form):
    curve = getattr(curves, name)
    if name == "numbers_at_risk":
        np.testing.assert_array_equal(curve(FORMS[form], TIMES), curve(Y, TIMES))
        return
    weight = RNG.random(N)
    found, expected = curve(FORMS[form], weight), curve(Y, weight)
    np.testing.assert_array_equal(found.x, expected.x)
    np.testing.assert_array_equal(found.y, expected.y)


@pytest.mark.parametrize("form", FORMS)
def test_losses_of_a_reference_take_every_form(form):
    found, expected = (brier_losses(y, SURVIVAL, TIMES) for y in (FORMS[form], Y))
    np.testing.assert_array_equal(found, expected)


TREES = {
    "likelihood": OptimalSurvivalTree(max_depth=2),
    "brier": OptimalSurvivalTree(max_depth=1, objective="brier"),
    "greedy": GreedySurvivalTree(max_depth=2),
    "soft": SoftSurvivalTree(depth=1, random_state=0, n_restarts=1, solver_options={"max_iter": 5}),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", slow_but({"likelihood", "soft"}, TREES))
@pytest.mark.filterwarnings("ignore::bristlecone.exceptions.FitConvergenceWarning")
@pytest.mark.filterwarnings("ignore::bristlecone.exceptions.EmptyLeafWarning")
def test_fit_and_score_take_every_form(name, form):
    tree, y = TREES[name], FORMS[form]
    rows = X.set_axis(range(N, 2 * N)) if form == "pandas, other index" else X
    risk = tree.fit(rows, Y).predict(rows)
    expected = tree.score(rows, Y)
    np.testing.assert_array_equal(tree.fit(rows, y).predict(rows), risk)
    assert tree.score(rows, y) == expected


@pytest.mark.parametrize("name", [*OF_COLUMNS, *OF_SAMPLES])
def test_delayed_entry_is_refused_where_a_metric_has_none(name):
    if name in WITH_ENTRY:
        expected = getattr(metrics, name)(EVENT, TIME, entry=LATE["entry"], **given(name))
        assert score(name, LATE) == expected != score(name, Y)
        return
    reported = "survival_test has delayed entry, for which censoring weights are not defined"
    if name in OF_COLUMNS:
        reported = f"y has delayed entry, which is not supported by {name}"
    with pytest.raises(ValueError, match=f"^{reported}"):
        score(name, LATE)


@pytest.mark.parametrize("name", OF_SAMPLES)
def test_censoring_of_the_training_rows_knows_delayed_entry(name):
    late = score(name, Y, survival_train=LATE)
    frame = pd.DataFrame(LATE).rename(columns={"entry": "start", "time": "stop"})
    np.testing.assert_equal(score(name, Y, survival_train=frame), late)
    with pytest.raises(AssertionError):
        np.testing.assert_equal(score(name, Y), late)


@pytest.mark.parametrize("name", [*OF_COLUMNS, *OF_SAMPLES])
def test_outcomes_that_are_none_are_named(name):
    called = "y" if name in OF_COLUMNS else "survival_test"
    frame = pd.DataFrame({"event": EVENT + 1, "time": TIME})
    with pytest.raises(ValueError, match=f"column 'event' of {called} holds 1, 2; expected"):
        score(name, frame)
    with pytest.raises(ValueError, match=f"column 'time' of {called} is missing in row 3"):
        score(name, frame.assign(event=EVENT, time=np.where(np.arange(N) == 3, np.nan, TIME)))
    if name in OF_SAMPLES:
        with pytest.raises(ValueError, match="column 'event' of survival_train holds 1, 2"):
            score(name, Y, survival_train=frame)


@pytest.mark.parametrize("name", [*OF_COLUMNS, *OF_SAMPLES])
def test_predictions_whose_index_has_another_order_are_refused(name):
    (label,) = (label for label in BY_ROW if label in given(name))
    values = given(name)[label]
    kind = pd.Series if values.ndim == 1 else pd.DataFrame
    same = kind(values)
    np.testing.assert_equal(score(name, pd.DataFrame(Y), **{label: same}), score(name, Y))
    message = f"{label} have the same index in another order"
    with pytest.raises(ValueError, match=message):
        score(name, pd.DataFrame(Y), **{label: same[::-1]})
    if name in OF_COLUMNS:
        arguments = given(name, **{label: same[::-1]})
        for columns in ((pd.Series(EVENT), TIME), (EVENT, pd.Series(TIME))):
            with pytest.raises(ValueError, match=message):
                getattr(metrics, name)(*columns, **arguments)
        with pytest.raises(ValueError, match="event and time have the same index in another"):
            getattr(metrics, name)(pd.Series(EVENT), pd.Series(TIME)[::-1], **given(name))


# bristlecone.outcome


def test_outcome_has_the_fields_that_were_given():
    assert Y.dtype == np.dtype([("event", bool), ("time", float)])
    assert LATE.dtype == np.dtype([("event", bool), ("time", float), ("entry", float)])
    assert outcome([1, 0], [3, 5], entry=[0, 0]).dtype.names == ("event", "time", "entry")
    durations = outcome([1, 0], [timedelta(3), timedelta(5)], entry=[timedelta(1), timedelta(0)])
    assert durations.tolist() == [(True, 3.0, 1.0), (False, 5.0, 0.0)]
    dates = outcome([1, 0], [date(2020, 3, 1), date(2021, 1, 1)], [date(2020, 2, 1)] * 2)
    assert dates.tolist() == [(True, 29.0), (False, 335.0)]
    causes = outcome([1, 2.0, 0], [3, 5, 7], entry=[0, 1, 2])
    assert causes.dtype == np.dtype([("event", int), ("time", float), ("entry", float)])
    assert causes.tolist() == [(1, 3.0, 0.0), (2, 5.0, 1.0), (0, 7.0, 2.0)]


def test_several_causes_are_for_trees_of_competing_risks():
    cause = np.where(EVENT, 1 + np.arange(N) % 2, 0)
    one, other = (
        CompetingRisksTree(max_depth=1).fit(X, y)
        for y in (outcome(cause, TIME), pd.DataFrame({"event": cause, "time": TIME}))
    )
    assert one.objective_value_ == other.objective_value_
    for fit in (OptimalSurvivalTree().fit, lambda _, y: curves.kaplan_meier(y)):
        with pytest.raises(ValueError, match="Competing risks need a CompetingRisksTree"):
            fit(X, outcome(cause, TIME))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1, 2.5], [1, 2, 3]), r"^event is 2\.5 in row 2; expected the number of the cause"),
        (([0, 1, -2], [1, 2, 3]), "^event is -2 in row 2; expected the number of the cause"),
        (([0, 1], [1, -2]), "^time is -2.0 in row 1; times must be finite and not negative"),
        (([0, 1], [1, 2], [0, 2]), "^entry is 2.0 in row 1, but the time is 2.0"),
        (([0, 1], [1, 2, 3]), "^event has 2 rows but time has 3"),
        (([0, 1], [1, 2], [0]), "^time has 2 rows but entry has 1"),
        (([0, 1], [date(2020, 1, 1)] * 2), r"^time holds dates.*outcome\(event, exit, entry\)"),
        (
            ([1], [datetime(2020, 1, 1)], [datetime(2020, 2, 1, 12)]),
            "^time is 2020-01-01 in row 0, before entry, 2020-02-01T12:00",
        ),
        (([0, 1], [1, 2], [date(2020, 1, 1)] * 2), "^entry and time must both be dates"),
        ((["yes", "no"], [1, 2]), "^event has dtype .*'yes', 'no'; expected True/False or 0/1"),
        (([0, 1], ["1", "x"]), "^time has dtype .* expected numbers"),
        ((pd.Series([0, 1]), pd.Series([1, 2])[::-1]), "^event and time have the same index"),
        ((pd.Series([0, 1]), [1, 2], pd.Series([0, 0])[::-1]), "^event and entry have the same"),
        (([], []), "^event has no rows"),
        (([[0, 1]], [1, 2]), r"^event has shape \(1, 2\)"),
    ],
)
def test_outcome_names_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        outcome(*arguments)


def test_texts_as_events_are_refused_with_advice_that_helps():
    """Factors of R become texts."""
    factor = pd.Series(["censored", "relapse", "death", "relapse"] * 3, dtype="category")
    advice = r"pandas.Categorical\(event, \['censored', ...\]\).codes$"
    with pytest.raises(ValueError, match=advice):
        outcome(factor, TIME[:12])
    cause = pd.Categorical(factor, ["censored", "relapse", "death"]).codes
    assert outcome(cause, TIME[:12])["event"].tolist() == [0, 1, 2, 1] * 3
    status = np.where(EVENT, "dead", "alive")
    for y in ((status, TIME), pd.DataFrame({"status": status, "time": TIME})):
        with pytest.raises(ValueError, match=r"text of an event, as in event == 'dead'$"):
            OptimalSurvivalTree().fit(X, y)
    np.testing.assert_array_equal(outcome(status == "dead", TIME), Y)
    with pytest.raises(ValueError, match=r"holds 'dead'; expected True/False or 0/1$"):
        outcome(["dead"] * 2, [1.0, 2.0])


def test_the_error_about_a_triple_names_outcome():
    with pytest.raises(ValueError, match=r"y is a tuple of three.*bristlecone.outcome\(event, "):
        OptimalSurvivalTree().fit(X, (EVENT, TIME, TIME / 2))


def test_outcomes_are_divided_in_cross_validation_and_read_by_scikit_survival():
    folds = KFold(3, shuffle=True, random_state=0)
    tree = OptimalSurvivalTree(max_depth=1)
    expected = cross_val_score(tree, X, Y, cv=folds, error_score="raise")
    frame = FORMS["dates of entry and exit"]
    np.testing.assert_array_equal(cross_val_score(tree, X, frame, cv=folds), expected)
    check_y_survival = pytest.importorskip("sksurv.util").check_array_survival
    event, time = check_y_survival(X, Y)
    np.testing.assert_array_equal(event, EVENT)
    np.testing.assert_array_equal(time, TIME)


# Integrated Brier score at the times of step functions


@pytest.mark.parametrize("ties", ["sksurv", "paper"])
@pytest.mark.parametrize("name", ["integrated_brier_score", "ibs_ratio"])
def test_step_functions_bring_their_times(name, ties):
    tree = GreedySurvivalTree(max_depth=2, leaf_curve="kaplan-meier").fit(X[:40], Y[:40])
    functions = tree.predict_survival_function(X[40:])
    test = Y[40:]
    steps = np.unique(np.concatenate([function.x for function in functions]))
    last = test["time"].max()
    inside = (steps >= test["time"].min()) & (steps < last) if ties == "sksurv" else steps <= last
    assert 2 < inside.sum() < steps.size
    metric = getattr(metrics, name)
    found = metric(Y[:40], test, functions, ties=ties)
    assert found == metric(Y[:40], test, functions, steps[inside], ties=ties)
    with pytest.raises(ValueError, match="times is needed when estimate is an array"):
        metric(Y[:40], test, np.ones((20, 3)), ties=ties)
    early = [curves.StepFunction([0.25, 0.5], [0.9, 0.8], before=1.0)] * 20
    if ties == "sksurv":
        with pytest.raises(ValueError, match="at least two times within the follow-up"):
            metric(Y[:40], test, early)


# Other arguments with one value per row


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda tree, y, wrong: tree.score(X, y[::-1]), "y"),
        (lambda tree, y, wrong: curves.kaplan_meier(y, wrong), "sample_weight"),
        (lambda tree, y, wrong: brier_losses(y, SURVIVAL, TIMES, sample_weight=wrong), "sample_w"),
        (lambda tree, y, wrong: tree.fit(X, y, reference_loss=wrong), "reference_loss"),
    ],
)
def test_an_index_in_another_order_is_refused_by_name(call, name):
    tree = OptimalSurvivalTree(objective="brier", max_depth=1).fit(X, Y)
    wrong = pd.Series(np.ones(N))[::-1]
    with pytest.raises(ValueError, match=f"and {name}.* the same index in another order"):
        call(tree, pd.DataFrame(Y), wrong)


# Command line


def study(folder, monkeypatch, y):
    monkeypatch.chdir(folder)
    frame = pd.concat([X, pd.DataFrame(y)], axis=1)
    frame.to_csv("study.csv", index=False)
    parquet.write_table(pa.Table.from_pandas(frame, preserve_index=False), "study.parquet")


DATES = {"event": EVENT.astype(int), "entry": FIRST, "exit": LAST}
COMMANDS = {
    "dates": (DATES, ()),
    "dates named": (
        {"died": EVENT, "from": FIRST, "until": LAST},
        ("--event", "died", "--entry", "from", "--time", "until"),
    ),
    "dates with hours": (DATES | {"entry": FIRST + np.timedelta64(0, "s")}, ()),
    "start and stop": ({"event": EVENT, "start": 0, "stop": TIME}, ()),
}


@pytest.mark.parametrize("kind", ["csv", "parquet"])
@pytest.mark.parametrize("form", COMMANDS)
def test_the_command_line_reads_dates_and_intervals(form, kind, capsys, tmp_path, monkeypatch):
    columns, options = COMMANDS[form]
    study(tmp_path, monkeypatch, columns)
    status, _, err = run(capsys, "fit", f"study.{kind}", *options, "--model", "m.json")
    assert (status, err) == (0, "")
    model = load_model("m.json")
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    expected = OptimalSurvivalTree(max_depth=3).fit(X, Y)
    np.testing.assert_array_equal(model.unique_times_, expected.unique_times_)
    np.testing.assert_array_equal(model.predict(X), expected.predict(X))


def test_the_command_line_takes_entries_by_name(capsys, tmp_path, monkeypatch):
    study(tmp_path, monkeypatch, LATE)
    assert run(capsys, "fit", "study.csv", "--model", "m.json")[0] == 0
    expected = OptimalSurvivalTree(max_depth=3).fit(X, LATE).objective_value_
    assert load_model("m.json").objective_value_ == expected
    assert run(capsys, "fit", "study.csv", "--drop", "entry", "--model", "m.json")[0] == 0
    expected = OptimalSurvivalTree(max_depth=3).fit(X, Y).objective_value_
    assert load_model("m.json").objective_value_ == expected


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"entry": LAST, "exit": FIRST}, "column 'exit' is 2020-"),
        (
            {"entry": FIRST.astype(str).astype(object), "exit": TIME},
            "column 'entry' and column 'exit' must both be dates",
        ),
        (
            {"exit": ["2020-31-01", *LAST[1:].astype(str)]},
            "column 'exit': '2020-31-01' is not a date, but other cells are, such as",
        ),
        ({"exit": [None, *LAST[1:].astype(str)]}, "column 'exit' has no value"),
        ({"exit": ["soon"] * N}, "column 'exit': 'soon' is not a number"),
    ],
)
def test_dates_that_cannot_be_are_refused(changed, message, capsys, tmp_path, monkeypatch):
    study(tmp_path, monkeypatch, DATES | changed)
    for data in ("study.csv", "study.parquet"):
        assert message in refused(capsys, tmp_path, "fit", data)


def test_a_missing_date_is_named_by_its_line_or_its_row(capsys, tmp_path, monkeypatch):
    study(tmp_path, monkeypatch, DATES | {"exit": [None, *LAST[1:].astype(str)]})
    message = refused(capsys, tmp_path, "fit", "study.csv")
    assert "study.csv, line 2: column 'exit' has no value" in message
    message = refused(capsys, tmp_path, "fit", "study.parquet")
    assert "column 'exit' has no value in row 0" in message


def test_dates_without_a_beginning_ask_for_it(capsys, tmp_path, monkeypatch):
    study(tmp_path, monkeypatch, {"event": EVENT, "time": LAST})
    for data in ("study.csv", "study.parquet"):
        assert "name the column of the start dates with --entry" in refused(
            capsys, tmp_path, "fit", data
        )


DURATIONS = {
    "pandas": pd.to_timedelta(TIMES, unit="D"),
    "numpy, hours": (24 * TIMES).astype("m8[h]"),
    "objects": [timedelta(days) for days in TIMES],
    "polars": pl.Series([timedelta(days) for days in TIMES]),
}


@pytest.mark.parametrize("form", DURATIONS)
def test_durations_in_times_are_days(form):
    times = DURATIONS[form]
    tree = OptimalSurvivalTree(max_depth=1).fit(X, Y)
    for predict in (tree.predict_survival_function, tree.predict_cumulative_hazard_function):
        np.testing.assert_array_equal(predict(X, times=times), predict(X, times=TIMES))
    assert list(tree.leaf_table(times=times)) == list(tree.leaf_table(times=TIMES))
    curve = curves.kaplan_meier(Y)
    np.testing.assert_array_equal(curve(times), curve(TIMES))
    at_risk = curves.numbers_at_risk(Y, times).tolist()
    assert at_risk == curves.numbers_at_risk(Y, TIMES).tolist()
    of_days = metrics.brier_score(Y, Y, SURVIVAL, TIMES)
    np.testing.assert_array_equal(metrics.brier_score(Y, Y, SURVIVAL, times), of_days)
    on_grid = brier_losses(Y, SURVIVAL, times=TIMES, time_grid=TIMES)
    found = brier_losses(Y, SURVIVAL, times=times, time_grid=times)
    np.testing.assert_array_equal(found, on_grid)


def test_dates_are_no_times_of_predictions():
    tree = OptimalSurvivalTree(max_depth=1).fit(X, Y)
    with pytest.raises(ValueError, match=r"^times holds dates; expected numbers or durations$"):
        tree.predict_survival_function(X, times=LAST[:3])
    with pytest.raises(
        ValueError, match=r"^times has dtype timedelta64\[M\], which is not a fixed"
    ):
        tree.predict_survival_function(X, times=np.array([1, 2], dtype="m8[M]"))
    with pytest.raises(ValueError, match=r"^t holds dates; expected"):
        curves.kaplan_meier(Y)(LAST[0])


@pytest.mark.parametrize(
    "event", [[True, None, False], pd.array([True, None, False], dtype="boolean")]
)
def test_a_missing_event_is_named_by_its_row(event):
    with pytest.raises(ValueError, match="event is missing in row 1"):
        outcome(event, [1.0, 2.0, 3.0])


def test_events_may_be_bytes_that_only_numpy_takes_for_true():
    event, time = np.array([1, 2, 0, 255, 1, 0] * 4, dtype=np.uint8), 1 + np.arange(24.0)
    tree = OptimalSurvivalTree(max_depth=1, min_events_leaf=None)
    seen, plain = (
        tree.fit(time[:, None], (given, time)).objective_value_
        for given in (event.view(bool), event > 0)
    )
    assert seen == plain
