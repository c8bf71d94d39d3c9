"""Step functions, nonparametric curves and their summaries."""

import pickle

import numpy as np
import pytest

from bristlecone import curves
from bristlecone.curves import (
    StepFunction,
    censoring_survival,
    kaplan_meier,
    median,
    nelson_aalen,
    quantile,
    rmst,
)

EVENT = np.array([True, True, False, True, True])
TIME = np.array([2.0, 1.0, 2.0, 3.0, 2.0])


def structured(event, time, **entry):
    columns = {"dead": np.asarray(event, bool), "days": np.asarray(time, float)} | entry
    y = np.empty(len(columns["dead"]), dtype=[(name, c.dtype) for name, c in columns.items()])
    for name, column in columns.items():
        y[name] = column
    return y


def test_step_function_is_right_continuous_and_constant_after_the_last_step():
    f = StepFunction([1.0, 2.0, 4.0], [0.9, 0.5, 0.2], before=1.0)
    times = [0.0, 0.999, 1.0, 1.5, 2.0, 3.999, 4.0, 1e9, np.inf]
    np.testing.assert_array_equal(f(times), [1.0, 1.0, 0.9, 0.9, 0.5, 0.5, 0.2, 0.2, 0.2])
    assert f(np.reshape(times, (3, 3))).shape == (3, 3)
    value = f(2)
    assert isinstance(value, float)
    assert value == 0.5
    assert f.domain == (0.0, np.inf)


def test_step_function_without_steps_is_constant():
    np.testing.assert_array_equal(StepFunction([], [], before=0.0)([0.0, 5.0]), [0.0, 0.0])


def test_step_function_survives_pickling_and_guards_its_steps():
    f = pickle.loads(pickle.dumps(StepFunction([1.0], [0.5], domain=(0, 3), before=1.0)))
    assert f(0.5) == 1.0
    assert f.domain == (0.0, 3.0)
    given = np.array([1.0])
    g = StepFunction(given, given, before=1.0)
    with pytest.raises(ValueError, match="read-only"):
        g.y[0] = 2
    given[0] = 3.0  # the caller's own array stays writable


@pytest.mark.parametrize("bad", [-1e-9, np.nan, [1.0, -2.0], 3.5])
def test_step_function_refuses_times_outside_its_domain(bad):
    f = StepFunction([1.0], [0.5], domain=(0.0, 3.0), before=1.0)
    with pytest.raises(ValueError, match="times must lie within"):
        f(bad)


@pytest.mark.parametrize(
    ("x", "y", "domain", "message"),
    [
        ([1, 2], [1], (0, None), "equal length"),
        ([1, 1], [1, 1], (0, None), "strictly ascending"),
        ([2, 1], [1, 1], (0, None), "strictly ascending"),
        ([1, np.nan], [1, 1], (0, None), "finite"),
        ([1, 2], [1, np.inf], (0, None), "finite"),
        ([1, 2], [1, 1], (3, 2), "domain"),
    ],
)
def test_step_function_refuses_bad_steps(x, y, domain, message):
    with pytest.raises(ValueError, match=message):
        StepFunction(x, y, domain=domain, before=1.0)


def test_estimators_of_a_hand_worked_sample():
    y = (EVENT, TIME)
    np.testing.assert_array_equal(kaplan_meier(y).x, [1.0, 2.0, 3.0])
    np.testing.assert_allclose(kaplan_meier(y).y, [0.8, 0.4, 0.0], rtol=1e-15)
    np.testing.assert_allclose(nelson_aalen(y).y, [0.2, 0.7, 1.7], rtol=1e-15)
    np.testing.assert_array_equal(censoring_survival(y).y, [1.0, 0.5, 0.5])
    np.testing.assert_array_equal(censoring_survival(y, ties="paper").y, [1.0, 0.75, 0.75])
    assert (kaplan_meier(y)(0.5), nelson_aalen(y)(0.5), censoring_survival(y)(0.5)) == (1, 0, 1)


@pytest.mark.parametrize("estimator", [kaplan_meier, nelson_aalen, censoring_survival])
def test_outcome_may_be_structured_or_a_pair_of_any_dtype(estimator):
    expected = estimator((EVENT, TIME))
    for y in [
        structured(EVENT, TIME),
        (EVENT.astype(int), TIME.astype(int)),
        (list(EVENT), list(TIME)),
        (EVENT.astype(object), np.repeat(TIME, 2)[::2]),  # not contiguous
    ]:
        np.testing.assert_array_equal(estimator(y).y, expected.y)


@pytest.mark.parametrize("estimator", [kaplan_meier, nelson_aalen, censoring_survival])
def test_weights_count_as_repetition_and_zero_weights_as_absence(estimator):
    weight = np.array([2, 0, 3, 1, 0])
    repeated = estimator((np.repeat(EVENT, weight), np.repeat(TIME, weight)))
    weighted = estimator((EVENT, TIME), weight)
    np.testing.assert_array_equal(weighted.x, repeated.x)
    np.testing.assert_allclose(weighted.y, repeated.y, rtol=1e-15)


def test_a_single_row_of_a_packed_array_will_do():
    np.testing.assert_array_equal(kaplan_meier(structured([True], [2.0])).y, [0.0])


def test_delayed_entry_leaves_rows_out_of_earlier_risk_sets():
    y = structured([True] * 3, [1.0, 2.0, 3.0], entry=np.array([0.0, 1.0, 0.0]))
    np.testing.assert_allclose(nelson_aalen(y).y, [0.5, 1.0, 2.0], rtol=1e-15)


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (([], []), ValueError, "y: time must be one-dimensional and not empty"),
        (([True], [1.0, 2.0]), ValueError, "y: event and time differ in shape"),
        (([True, True], [1.0, np.nan]), ValueError, "y: time is nan in row 1"),
        (([True, True], [1.0, np.inf]), ValueError, "y: time is inf in row 1"),
        (([True, True], [1.0, -1.0]), ValueError, "y: time is negative in row 1"),
        (([1, 2], [1.0, 2.0]), ValueError, "y: event must be boolean or 0/1"),
        ((["a", "b"], [1.0, 2.0]), ValueError, "y: event must be numeric"),
        (np.ones((3, 2)), TypeError, "y must be a structured array"),
        ([[True], [1.0]], TypeError, "y must be a structured array"),
        (structured([True], [1.0], other=np.array([1.0])), ValueError, "dead, days, other"),
        (structured([True], [1.0], entry=np.array([1.0])), ValueError, "entry is not before time"),
    ],
)
def test_bad_outcomes_are_named(y, error, message):
    with pytest.raises(error, match=message):
        kaplan_meier(y)


@pytest.mark.parametrize(
    ("weight", "message"),
    [
        ([1.0], r"sample_weight has shape \(1,\); expected \(5,\)"),
        ([1, 1, 1, -1, 1], "sample_weight is -1.0 in row 3"),
        ([1, 1, np.nan, 1, 1], "sample_weight is nan in row 2"),
        ([1, 1, 1e308, 1, 1], r"sample_weight is 1e\+308 in row 2"),
        ([0, 0, 0, 0, 0], "sample_weight is zero in every row"),
    ],
)
def test_bad_weights_are_named(weight, message):
    with pytest.raises(ValueError, match=message):
        kaplan_meier((EVENT, TIME), weight)


def test_unknown_ties_are_refused():
    with pytest.raises(ValueError, match="ties must be 'sksurv' or 'paper', got 'efron'"):
        censoring_survival((EVENT, TIME), ties="efron")


def test_quantile_is_the_first_time_at_or_below_the_level():
    times = [1.0, 2.0, 4.0]
    survival = np.array([[0.9, 0.5, 0.1], [0.7, 0.6, 0.6], [0.5, 0.2, 0.0], [1.0, 1.0, 1.0]])
    np.testing.assert_array_equal(median(times, survival), [2.0, np.inf, 1.0, np.inf])
    np.testing.assert_array_equal(quantile(times, survival, 0.25), [2.0, 1.0, 1.0, np.inf])
    assert quantile(times, survival[0], 0.9) == 4.0
    assert isinstance(median(times, survival[0]), float)


@pytest.mark.parametrize("n", [2, 6, 10, 14, 22, 98])
def test_median_of_uncensored_rows_is_the_lower_middle_one_despite_rounding(n):
    curve = kaplan_meier((np.ones(n, bool), np.arange(1.0, n + 1)))
    assert median(curve.x, curve.y) == n / 2


def test_rmst_is_the_area_under_the_curve():
    times, survival = [1.0, 3.0], np.array([[0.5, 0.25], [1.0, 0.0]])
    for tau, expected in [
        (0.0, [0.0, 0.0]),
        (0.5, [0.5, 0.5]),
        (2.0, [1.5, 2.0]),
        (3.0, [2.0, 3.0]),
        (7.0, [3.0, 3.0]),
    ]:
        np.testing.assert_allclose(rmst(times, survival, tau), expected, rtol=1e-15)
    assert rmst(times, survival[0], 7.0) == 3.0
    assert rmst([], [], 2.0) == 2.0


def test_rmst_without_censoring_is_the_mean_of_the_truncated_times():
    time = np.random.default_rng(0).exponential(size=50)
    curve = kaplan_meier((np.ones(50, bool), time))
    for tau in (0.3, 1.0, 10.0):
        assert rmst(curve.x, curve.y, tau) == pytest.approx(np.minimum(time, tau).mean(), abs=1e-13)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: quantile([1.0], [0.5], 0.0), "q must lie strictly between 0 and 1"),
        (lambda: quantile([1.0], [0.5], np.nan), "q must lie strictly between 0 and 1"),
        (lambda: rmst([1.0], [0.5], np.inf), "tau must be finite and non-negative"),
        (lambda: rmst([1.0], [0.5], -1.0), "tau must be finite and non-negative"),
        (lambda: median([1.0, 2.0], [[0.5]]), "survival must have shape"),
    ],
)
def test_bad_arguments_of_summaries_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_public_names_exist():
    assert all(hasattr(curves, name) for name in curves.__all__)
