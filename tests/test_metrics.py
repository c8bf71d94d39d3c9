"""All metrics: invariants and errors."""

from functools import partial

import numpy as np
import pandas as pd
import pytest
from metrics_plainly import SEEDS, sample, survival_matrix

from bristlecone import metrics, outcome
from bristlecone.curves import kaplan_meier
from bristlecone.metrics import (
    brier_score,
    brier_score_cause,
    concordance_index_censored,
    concordance_index_ipcw,
    concordance_index_td,
    concordance_index_td_ipcw,
    cumulative_dynamic_auc,
    d_calibration,
    ibs_ratio,
    integrated_brier_score,
    logrank_test,
    one_time_calibration,
)
from bristlecone.reference import brier_losses


def every_metric(event, time, risk, survival, times):
    y = (event, time)
    return {
        "harrell": concordance_index_censored(event, time, risk, 0)[0],
        "uno": concordance_index_ipcw(y, y, risk, None, 0)[0],
        "harrell_td": concordance_index_td(event, time, survival, times)[0],
        "uno_td": concordance_index_td_ipcw(y, y, survival, times)[0],
        "auc": cumulative_dynamic_auc(y, y, risk, times[1:], 0)[1],
        "brier": brier_score(y, y, survival, times)[1].sum(),
        "trapezoid": integrated_brier_score(y, y, survival, times),
        "step": integrated_brier_score(y, y, survival, times, method="step"),
        "ratio": ibs_ratio(y, y, survival, times, method="step"),
        "d_calibration": d_calibration(event, time, survival, times)[0],
        "one_time": one_time_calibration(event, time, survival[:, 2], times[2], n_groups=3)[0],
        "logrank": logrank_test(event, time, risk > 0)[0],
    }


@pytest.mark.parametrize("seed", SEEDS)
def test_metrics_do_not_depend_on_the_order_of_rows_or_the_unit_of_time(seed):
    event, time, risk = sample(seed)
    survival, _ = survival_matrix(seed)
    times = np.array([1.0, 2.5, 4.0, 5.25, 7.0])
    expected = every_metric(event, time, risk, survival, times)
    p = np.random.default_rng(seed).permutation(40)
    shuffled = every_metric(event[p], time[p], risk[p], survival[p], times)
    assert shuffled == pytest.approx(expected, abs=1e-12, rel=1e-12)
    rescaled = every_metric(event, 7 * time, risk, survival, 7 * times)
    assert rescaled == pytest.approx(expected, abs=1e-12, rel=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_ranking_metrics_depend_on_the_order_of_the_estimates_alone(seed):
    event, time, risk = sample(seed)
    y = (event, time)
    times = [2.0, 4.0, 6.0]
    for transformed in (np.exp(risk), 1e6 * risk + 3, risk**3):
        for metric in (
            lambda r: concordance_index_censored(event, time, r, 0),
            lambda r: concordance_index_ipcw(y, y, r, None, 0),
        ):
            assert metric(transformed) == metric(risk)
        np.testing.assert_array_equal(
            cumulative_dynamic_auc(y, y, transformed, times, 0)[0],
            cumulative_dynamic_auc(y, y, risk, times, 0)[0],
        )
    result, reversed_result = (concordance_index_censored(event, time, r) for r in (risk, -risk))
    assert reversed_result[1:4] == (result.discordant, result.concordant, result.tied_risk)
    assert reversed_result.cindex == pytest.approx(1 - result.cindex, abs=1e-15)


def test_public_names_exist():
    assert all(callable(getattr(metrics, name)) for name in metrics.__all__)


Y = (np.array([True, False, True, True]), np.array([1.0, 2.0, 3.0, 4.0]))
RISK = np.array([4.0, 3.0, 2.0, 1.0])
CURVES = np.full((4, 2), 0.5)
AT = [1.0, 2.0]
LATER = (np.array([True, True]), np.array([1.0, 9.0]))
ALL_CENSORED_LAST = (np.array([True, False]), np.array([1.0, 4.0]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: concordance_index_censored([0, 0], [1, 2], [1, 2]), "no pair is comparable"),
        (lambda: concordance_index_censored([0, 1], [1, 2], [1, 2]), "no pair is comparable"),
        (lambda: concordance_index_censored([1], [1], [1]), "no pair is comparable"),
        (
            lambda: concordance_index_censored([1, 0], [1, 1], [1, 2], ties="paper"),
            "no pair is comparable",
        ),
        (lambda: concordance_index_td([0, 1], [1, 2], CURVES[:2], AT), "no pair is comparable"),
        (lambda: concordance_index_ipcw(Y, Y, RISK, tau=1.0), "no pair is comparable"),
        (lambda: concordance_index_ipcw(Y, Y, RISK, tau=-3), "tau must be a number greater than"),
        (
            lambda: concordance_index_censored(*Y, RISK[:3]),
            r"estimate has shape \(3,\); expected \(4,\)",
        ),
        (
            lambda: concordance_index_censored(*Y, [1, 2, np.nan, 4]),
            "estimate is NaN or infinite in row 2",
        ),
        (
            lambda: concordance_index_censored(*Y, [1, 2, np.inf, 4]),
            "estimate is NaN or infinite in row 2",
        ),
        (lambda: concordance_index_censored(*Y, RISK, ties="both"), "ties must be"),
        (lambda: concordance_index_censored(*Y, RISK, tied_tol=np.nan), "tied_tol must be"),
        (lambda: concordance_index_td(*Y, CURVES, AT, tied_tol=-1.0), "tied_tol must be"),
        (lambda: cumulative_dynamic_auc(Y, Y, RISK, AT, tied_tol=np.nan), "tied_tol must be"),
        (lambda: concordance_index_ipcw(Y, LATER, [1, 2]), "test event time 9 is after the last"),
        (
            lambda: concordance_index_ipcw(ALL_CENSORED_LAST, LATER, [1, 2]),
            "zero at the test event time 9",
        ),
        (lambda: concordance_index_td(*Y, CURVES), "times is needed when survival is an array"),
        (lambda: concordance_index_td(*Y, CURVES, [2, 1]), "strictly ascending"),
        (lambda: concordance_index_td(*Y, CURVES, [1, 2, 3]), r"shape \(4, 3\), got \(4, 2\)"),
        (lambda: concordance_index_td(*Y, CURVES[:3], AT), "survival has 3 rows"),
        (lambda: concordance_index_td(*Y, CURVES * 3, AT), "row 0 is not a probability"),
        (lambda: concordance_index_td(*Y, [np.exp] * 4), "row 0 is not a probability"),
        (
            lambda: brier_score(Y, Y, CURVES, ["a", "b"]),
            r"times must be numbers or durations; got \['a', 'b'\]",
        ),
        (lambda: brier_score(Y, Y, CURVES, [0.5, 2]), r"times must lie within \[1, 4\)"),
        (lambda: brier_score(Y, Y, CURVES, [1, 4]), r"times must lie within \[1, 4\)"),
        (lambda: brier_score(Y, Y, CURVES, [1, 5], ties="paper"), "must not exceed the last"),
        (
            lambda: brier_score(Y, Y, CURVES, [1, np.nan]),
            "times must be finite and not negative; got nan",
        ),
        (
            lambda: brier_score(Y, Y, CURVES[:, :1], [-1]),
            "times must be finite and not negative; got -1",
        ),
        (lambda: brier_score(Y, LATER, CURVES[:2], [2, 5]), "time 5 is after the last training"),
        (lambda: integrated_brier_score(Y, Y, CURVES[:, 0], [2]), "at least two times"),
        (lambda: integrated_brier_score(Y, Y, CURVES), "times is needed"),
        (lambda: integrated_brier_score(Y, Y, CURVES, AT, method="simpson"), "method must be"),
        (
            lambda: integrated_brier_score(Y, Y, CURVES, AT, limits=(1, 2)),
            "limits needs method='step'",
        ),
        (
            lambda: integrated_brier_score(Y, Y, CURVES, AT, method="step", limits=(2, 2)),
            "lower < upper",
        ),
        (
            lambda: integrated_brier_score(Y, LATER, CURVES[:2], AT, method="step"),
            "time 9 is after the last training",
        ),
        (
            lambda: ibs_ratio(Y, ([1, 1], [5, 6]), CURVES[:2], AT, method="step", limits=(0, 0.5)),
            "scores zero",
        ),
        (lambda: cumulative_dynamic_auc(Y, Y, RISK, [0.5, 2]), "no case .* at time 0.5"),
        (lambda: cumulative_dynamic_auc(Y, Y, RISK, [1, 4]), "no control .* at time 4"),
        (lambda: cumulative_dynamic_auc(Y, Y, CURVES[:3], AT), r"or \(4, 2\), got \(3, 2\)"),
        (
            lambda: cumulative_dynamic_auc(Y, Y, RISK, AT, ties="paper"),
            "the mean AUC is not defined",
        ),
        (
            lambda: cumulative_dynamic_auc(Y, ([1, 1, 0], [1, 9, 10]), RISK[:3], [1, 9]),
            "test event time 9 is after the last",
        ),
        (lambda: d_calibration(*Y, CURVES, AT, n_bins=1), "n_bins must be an integer"),
        (lambda: one_time_calibration(*Y, [0.5] * 4, 2.0), "all predictions fall into one group"),
        (lambda: one_time_calibration(*Y, [0.5] * 3 + [2], 2.0), "within"),
        *[
            (lambda at=at: one_time_calibration(*Y, RISK / 4, at), "at must be finite")
            for at in (np.nan, None, "a", [1.0])
        ],
        *[
            (
                lambda given=given, measure=measure: measure(given),
                "estimate must have one value per row",
            )
            for given in (None, np.nan, 1.0)
            for measure in (
                partial(concordance_index_censored, *Y),
                partial(concordance_index_ipcw, Y, Y),
            )
        ],
        (
            lambda: one_time_calibration(*Y, [0.1, 0.1, 0.9, 0.9], 3.0),
            "group 0 is followed up only until 2",
        ),
        (lambda: logrank_test([0, 0], [1, 2], [0, 1]), "there is no event"),
        (lambda: logrank_test([1, 1], [1, 2], [0, 0]), "group holds only 0"),
        (lambda: logrank_test([0, 1, 1], [1, 2, 3], [0, 1, 1]), "rows of two groups"),
        (lambda: logrank_test([1, 1], [1, 1], [0, 1]), "a survivor"),
        (
            lambda: logrank_test([1, 1], [1, 2], [0.0, np.nan]),
            "group contains NaN or infinity: nan in row 1",
        ),
        (lambda: logrank_test([1, 1], [1, 2], [0]), "the outcome has 2 rows but group has 1"),
    ],
)
def test_what_is_not_defined_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_delayed_entry_of_the_test_sample_is_refused():
    y = np.array([(True, 2.0, 1.0)], dtype=[("event", bool), ("time", float), ("entry", float)])
    with pytest.raises(ValueError, match="survival_test has delayed entry, for which"):
        brier_score(Y, y, CURVES[:1], AT)


@pytest.mark.parametrize("given", [kaplan_meier(Y), None, 1.0], ids=str)
def test_one_curve_for_all_rows_is_refused(given):
    with pytest.raises(TypeError, match="survival must hold one curve per row"):
        concordance_index_td(*Y, given)


def test_rows_censored_after_the_training_range_need_no_weight_of_their_own():
    test = (np.array([True, True, False]), np.array([1.0, 2.0, 99.0]))
    score = brier_score(Y, test, np.full((3, 1), 0.5), [2.0])[1]
    g = 1 - 1 / 3
    assert score == pytest.approx((0.25 + 0.25 / g + 0.25 / g) / 3, abs=1e-15)


def test_g_is_not_needed_after_the_last_row_at_risk_or_the_last_time_asked_for():
    train = (np.array([True, True]), np.array([1.0, 4.0]))
    test = (np.array([True, False, True]), np.array([1.0, 2.0, 9.0]))
    gone = tuple(column[:2] for column in test)
    options = {"method": "step", "limits": (5.0, 6.0)}
    assert integrated_brier_score(train, gone, [[0.5], [0.3]], [1.0], **options) == 0.125
    assert cumulative_dynamic_auc(train, test, [3, 2, 1], [1.0])[0] == 1.0


def test_weights_are_zero_where_g_is():
    # G falls to 0 at time 4. The rows at risk after it and the event at 5 have no weight.
    test = (np.array([True, True, False]), np.array([1.0, 5.0, 6.0]))
    score = brier_score(ALL_CENSORED_LAST, test, np.full((3, 1), 0.5), [5.0])[1]
    assert score == pytest.approx(0.25 / 3, abs=1e-15)


def test_predictions_that_differ_by_rounding_are_tied():
    event, time = np.array([True, True, False]), np.array([1.0, 2.0, 3.0])
    third = 1.0 - 2.0 / 3.0
    assert third != 1.0 / 3.0
    survival = np.array([[third], [1.0 / 3.0], [0.9]])
    for function, first in (
        (concordance_index_td, ()),
        (concordance_index_td_ipcw, (1,)),
    ):
        arguments = ((event, time), (event, time)) if first else (event, time)
        found = function(*arguments, survival, [0.5])
        assert (found.concordant, found.tied_risk) == (2, 1)


@pytest.mark.parametrize(
    "metric",
    [
        lambda y, survival, times: brier_score(y, y, survival, times)[1],
        lambda y, survival, times: integrated_brier_score(y, y, survival, times),
        lambda y, survival, times: cumulative_dynamic_auc(y, y, 1 - survival, times)[0],
        lambda y, survival, times: concordance_index_td(y, survival, times).cindex,
        lambda y, survival, times: d_calibration(y, survival, times).statistic,
        lambda y, survival, times: brier_score_cause(y, y, 1 - survival, times),
        lambda y, survival, times: brier_losses(y, survival, times),
    ],
)
def test_columns_called_after_the_times_may_be_in_any_order(metric):
    rng = np.random.default_rng(0)
    y, times = outcome(rng.random(60) < 0.7, rng.integers(1, 40, 60)), [3.0, 8.0, 15.0, 25.0]
    survival = np.sort(rng.random((60, 4)), axis=1)[:, ::-1]
    expected = metric(y, survival, times)
    for names in (times, ["3", "8", "15", "25"]):
        frame = pd.DataFrame(survival, columns=names)[names[::-1]]
        np.testing.assert_array_equal(metric(y, frame, times), expected)
    for names in (range(4), list("abcd")):  # these are no times
        frame = pd.DataFrame(survival, columns=names)
        np.testing.assert_array_equal(metric(y, frame, times), expected)
    other = pd.DataFrame(survival, columns=[3.0, 8.0, 16.0, 25.0])
    with pytest.raises(ValueError, match=r"has the columns 3.0, 8.0, 16.0, 25.0; expected 3.0, 8"):
        metric(y, other, times)
