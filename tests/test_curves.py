"""Step functions, nonparametric curves and their summaries."""

import pickle
import warnings
from functools import partial

import numpy as np
import pytest

from bristlecone import curves
from bristlecone.curves import (
    KaplanMeier,
    StepFunction,
    censoring_survival,
    kaplan_meier,
    median,
    nelson_aalen,
    numbers_at_risk,
    quantile,
    rmst,
)
from bristlecone.datasets import load

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
    given[0] = 3.0  # the caller's array remains writable


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
        ([1, 2], ["1", "0"], (0, None), "y must be numeric; got dtype <U1"),
        ([1, 2], ["a", 1], (0, None), "y must be numeric: .*'a'"),
    ],
)
def test_step_function_refuses_bad_steps(x, y, domain, message):
    with pytest.raises(ValueError, match=message):
        StepFunction(x, y, domain=domain, before=1.0)


def test_kaplan_meier_refuses_values_of_other_lengths():
    with pytest.raises(ValueError, match=r"at_risk has shape \(1,\), but x has \(2,\)"):
        KaplanMeier([1.0, 2.0], [0.75, 0.5], hazard=[0.25, 0.3], at_risk=[4])


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


def test_rows_that_come_after_all_others_have_died_leave_the_mean_as_it_is():
    # S is 0 from time 1 on; dividing 0 by 0 gives no warning.
    y = structured([True] * 3, [1.0, 3.0, 4.0], entry=np.array([0.0, 2.0, 2.0]))
    curve = kaplan_meier(y)
    assert curve.y.tolist() == [0.0, 0.0, 0.0]
    assert curve.restricted_mean(3.5) == (1.0, 0.0)


@pytest.mark.parametrize("unit", [1e-200, 1e300])
def test_the_error_of_a_mean_has_any_unit_of_time(unit):
    time = np.array([1.0, 2.0, 5.0])
    mean, error = kaplan_meier(([True] * 3, time)).restricted_mean(4.0)
    found = kaplan_meier(([True] * 3, time * unit)).restricted_mean(4.0 * unit)
    np.testing.assert_allclose(found, [mean * unit, error * unit], rtol=1e-14)


@pytest.mark.parametrize("tau", [5.0, 1e150, 1e300])
def test_the_error_of_a_mean_does_not_depend_on_an_end_after_all_events(tau):
    curve = kaplan_meier(([True, False, True, True], [1.0, 2.0, 3.0, 4.0]))
    assert curve.restricted_mean(tau) == curve.restricted_mean(4.0)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (([], []), "event, the first of the pair y, has no rows"),
        (([True], [1.0, 2.0]), "event, the first of the pair y, has 1 rows but time"),
        (([True, True], [1.0, np.nan]), "time, .* is nan in row 1"),
        (([True, True], [1.0, -1.0]), "time, .* is -1.0 in row 1"),
        (([1, 2], [1.0, 2.0]), "event, .* holds 1, 2; expected True/False or 0/1"),
        ((["a", "b"], [1.0, 2.0]), "event, .* holds 'a', 'b'"),
        (np.ones((3, 2)), "y is an ndarray of shape .3, 2.; expected a structured array"),
        (structured([True], [1.0], other=np.array([1.0])), "'dead' .*'days' .*'other'"),
        (structured([True], [1.0], entry=np.array([1.0])), "'entry' of y is 1.0 in row 0, but"),
    ],
)
def test_bad_outcomes_are_named(y, message):
    with pytest.raises(ValueError, match=message):
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
    with pytest.raises(ValueError, match="ties must be one of 'sksurv', 'paper'; got 'efron'"):
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
        (lambda: rmst([1.0], [0.5], np.inf), "tau must be a finite number of at least 0"),
        (lambda: rmst([1.0], [0.5], -1.0), "tau must be a finite number of at least 0"),
        (lambda: rmst([1.0], [0.5], [1, 2]), "tau must be a finite number of at least 0"),
        (lambda: rmst([1.0], [0.5], np.timedelta64(2, "D")), "tau must be a finite number"),
        (lambda: quantile([1.0], [0.5], [0.1, 0.2]), "q must lie strictly between 0 and 1"),
        (lambda: median([1.0, 2.0], [[0.5]]), "survival must have shape"),
        *[
            (lambda use=use, given=given: use(*given), message)
            for use in (median, partial(quantile, q=0.2), partial(rmst, tau=4.0))
            for given, message in [
                (([3, 1], [0.5, 0.25]), "times must be strictly ascending"),
                (([1, 1], [0.5, 0.25]), "times must be strictly ascending"),
                (([1, np.nan], [0.5, 0.25]), "times must be finite"),
                (([-1, 3], [0.5, 0.25]), "times must be finite and not negative"),
                (([1, 3], [0.5, np.nan]), "survival must lie between 0 and 1, without missing"),
                (([1, 3], [[0.5, 0.2], [2.0, 0.2]]), "survival must lie between 0 and 1"),
                (([1, 3], [0.25, 0.5]), "survival must not rise with time"),
                (([1, 3], ["a", 0.5]), "survival must be numeric: .*'a'"),
            ]
        ],
    ],
)
def test_bad_arguments_of_summaries_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_public_names_exist():
    assert all(hasattr(curves, name) for name in curves.__all__)


# Kaplan–Meier with its variance, for the sample of many textbooks: the 6-MP arm of Freireich et
# al. (1963), 21 children, with the survival and standard errors printed there.
REMISSION = np.array([6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35])
RELAPSED = np.array([1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0], bool)


def test_variance_of_a_published_sample():
    curve = kaplan_meier((RELAPSED, REMISSION))
    at = np.searchsorted(curve.x, [6, 7, 10, 13, 16, 22, 23])
    np.testing.assert_allclose(
        curve.y[at], [0.857, 0.807, 0.753, 0.690, 0.627, 0.538, 0.448], atol=5e-4
    )
    np.testing.assert_allclose(
        np.sqrt(curve.variance[at]),
        [0.0764, 0.0869, 0.0963, 0.1068, 0.1141, 0.1282, 0.1346],
        atol=5e-5,
    )
    np.testing.assert_array_equal(curve.at_risk[at], [21, 17, 15, 12, 11, 7, 6])
    assert curve.median == 23.0
    assert curve.median_interval() == (13.0, np.inf)


def trial(seed, n=60, late=False):
    rng = np.random.default_rng(seed)
    entry = np.floor(rng.uniform(1, 5, n)) if late else np.zeros(n)
    time = entry + np.ceil(20 * rng.exponential(size=n))
    event = rng.random(n) < 0.7
    return event, time, entry


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_limits_are_those_of_scikit_survival(seed, confidence):
    nonparametric = pytest.importorskip("sksurv.nonparametric")
    event, time, _ = trial(seed)
    curve = kaplan_meier((event, time))
    lower, upper = curve.confidence_interval(confidence)
    x, survival, limits = nonparametric.kaplan_meier_estimator(
        event, time, conf_level=confidence, conf_type="log-log"
    )
    np.testing.assert_array_equal(curve.x, x)
    np.testing.assert_allclose(curve.y, survival, rtol=1e-12)
    known = curve.y > 0
    np.testing.assert_allclose(lower[known], limits[0][known], rtol=1e-12)
    np.testing.assert_allclose(upper[known], limits[1][known], rtol=1e-12)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("late", [False, True])
def test_median_limits_and_numbers_at_risk_are_those_of_lifelines(seed, late):
    lifelines = pytest.importorskip("lifelines")
    utils = pytest.importorskip("lifelines.utils")
    event, time, entry = trial(seed, late=late)
    y = structured(event, time, entry=entry) if late else (event, time)
    curve = kaplan_meier(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = lifelines.KaplanMeierFitter().fit(time, event, entry=entry if late else None)
        interval = theirs.confidence_interval_
        known = (curve.y > 0) & (curve.y < 1)
        ours = np.stack(curve.confidence_interval(), axis=1)[known]
        np.testing.assert_allclose(ours, interval.loc[curve.x[known]].to_numpy(), rtol=1e-9)
        medians = utils.median_survival_times(interval).to_numpy().ravel()
    assert curve.median == theirs.median_survival_time_
    assert curve.median_interval() == tuple(medians)
    # The table also counts the rows that enter.
    table = theirs.event_table.loc[curve.x]
    at_risk = table["at_risk"] - (table["entrance"] if late else 0)
    np.testing.assert_array_equal(numbers_at_risk(y, curve.x), at_risk.to_numpy())
    np.testing.assert_array_equal(curve.at_risk, at_risk.to_numpy())


def test_plain_limits_lie_around_the_estimate_and_within_0_and_1():
    curve = kaplan_meier((RELAPSED, REMISSION))
    lower, upper = curve.confidence_interval(method="plain")
    error = 1.959963984540054 * np.sqrt(curve.variance)
    np.testing.assert_allclose(lower, np.maximum(curve.y - error, 0), rtol=1e-12)
    np.testing.assert_allclose(upper, np.minimum(curve.y + error, 1), rtol=1e-12)
    assert upper[0] == 1.0  # 0.857 plus twice 0.0764 exceeds 1


def test_log_limits_are_those_of_survfit():
    """Printed by survfit(Surv(time, status) ~ 1, lung) of R with its default, conf.type = "log"."""
    lung = load("lung")
    curve = kaplan_meier(lung.y)
    lower, upper = curve.confidence_interval(method="log")
    at = np.searchsorted(curve.x, [100.0, 365.0, 700.0], side="right") - 1
    np.testing.assert_allclose(lower[at], [0.820584892, 0.344721582, 0.093779281], rtol=1e-8)
    np.testing.assert_allclose(upper[at], [0.90964675, 0.48583760, 0.216202777], rtol=1e-8)
    assert curve.median_interval(method="log") == (285.0, 363.0)
    assert curve.quantile_interval(0.25, method="log") == (145.0, 197.0)


def test_log_limits_are_clipped_at_1_and_at_the_ends_as_others():
    lower, upper = kaplan_meier((RELAPSED, REMISSION)).confidence_interval(method="log")
    assert upper[0] == 1.0 and (lower <= upper).all()
    lower, upper = kaplan_meier(([False, True, True], [1.0, 2.0, 3.0])).confidence_interval(
        method="log"
    )
    assert (lower[0], upper[0]) == (1.0, 1.0)  # no event yet
    assert (lower[2], upper[2]) == (0.0, upper[1])  # no row left


def test_limits_at_the_ends_of_the_curve():
    curve = kaplan_meier(([False, True, True], [1.0, 2.0, 3.0]))
    lower, upper = curve.confidence_interval()
    assert (lower[0], upper[0]) == (1.0, 1.0)  # no event yet
    assert 0 < lower[1] < 0.5 < upper[1] < 1
    assert (lower[2], upper[2]) == (0.0, upper[1])  # no row left
    np.testing.assert_array_equal(np.isnan(curve.variance), [False, False, True])
    alone = kaplan_meier(([True], [2.0]))
    assert [limit.tolist() for limit in alone.confidence_interval()] == [[0.0], [1.0]]
    assert (alone.median, alone.median_interval()) == (2.0, (2.0, np.inf))


def test_with_weights_the_number_at_risk_is_the_effective_one():
    event, time, _ = trial(0)
    plain, weight = kaplan_meier((event, time)), np.random.default_rng(1).uniform(0.2, 3, 60)
    weighted = kaplan_meier((event, time), weight)
    # Xie and Liu (2005), by their formula.
    h, n = [], []
    for t in weighted.x:
        at_risk = weight[time >= t]
        h.append(weight[(time == t) & event].sum() / at_risk.sum())
        n.append(at_risk.sum() ** 2 / (at_risk**2).sum())
    np.testing.assert_allclose(weighted.at_risk, n, rtol=1e-12)
    h, n = np.array(h), np.array(n)
    known = weighted.y > 0
    expected = weighted.y[known] ** 2 * np.cumsum((h / (1 - h) / n)[known])
    np.testing.assert_allclose(weighted.variance[known], expected, rtol=1e-12)
    # The unit of the weights does not matter; equal weights have no effect.
    for scale in (1e-60, 7.0):
        scaled = kaplan_meier((event, time), scale * weight)
        np.testing.assert_allclose(scaled.log_variance[known], weighted.log_variance[known])
        equal = kaplan_meier((event, time), np.full(60, scale))
        np.testing.assert_allclose(equal.variance, plain.variance, rtol=1e-12)


def test_numbers_at_risk_count_rows_at_any_time():
    y = structured([True, False, True], [1.0, 2.0, 3.0], entry=np.array([0.0, 1.0, 0.5]))
    times = [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 9.0]
    assert numbers_at_risk(y, times).tolist() == [0, 1, 2, 2, 2, 1, 1, 0]
    assert numbers_at_risk((EVENT, TIME), [0.0, 2.0]).tolist() == [5, 4]
    with pytest.raises(ValueError, match="times must be"):
        numbers_at_risk((EVENT, TIME), [np.nan])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        *[({"confidence": wrong}, "confidence must lie") for wrong in (1.0, None, "a", [0.9])],
        ({"method": "arcsin"}, "method must be"),
    ],
)
def test_bad_arguments_of_intervals_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        kaplan_meier((EVENT, TIME)).confidence_interval(**options)


@pytest.mark.parametrize(
    "options",
    [
        *[{"before": wrong} for wrong in (None, "x", np.nan, [1.0], 10**400)],
        *[{"domain": wrong} for wrong in (None, 5, (1.0,), ("a", None), (None, 1.0), (2.0, 1.0))],
    ],
)
def test_bad_arguments_of_step_functions_are_named(options):
    with pytest.raises(ValueError, match=f"{min(options)} must be"):
        StepFunction([1.0], [0.5], **{"before": 1.0} | options)


@pytest.mark.parametrize("wrong", [{"hazard": [np.nan]}, {"at_risk": [0]}, {"at_risk": [-1]}])
def test_bad_hazards_and_numbers_at_risk_are_refused(wrong):
    with pytest.raises(ValueError, match="hazard must not be NaN, and at_risk must be positive"):
        KaplanMeier([1.0], [0.5], **{"hazard": [0.5], "at_risk": [2]} | wrong)
