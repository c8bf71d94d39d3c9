"""Competing risks: calibration on new rows, curves of rows, and the report."""

import re

import numpy as np
import pytest
from scipy.special import ndtri
from test_competing_risks import plain_incidence, study

from bristlecone import CompetingRisksTree, OptimalSurvivalTree
from bristlecone._data.outcomes import read_causes
from bristlecone._view.calibration import aalen_johansen, calibrations
from bristlecone.plot import plot_auc, plot_calibration, plot_leaf_curves, plot_survival
from bristlecone.report import html_report

pytest.importorskip("matplotlib").use("Agg")
TRAIN, TEST = slice(0, 250), slice(250, None)


def fitted(entry=False):
    X, y = study(500, n_causes=3, entry=entry)
    return CompetingRisksTree(max_depth=1).fit(X[TRAIN], y[TRAIN]), X[TEST], y[TEST]


@pytest.mark.parametrize("entry", [False, True])
def test_observed_incidences_are_those_of_aalen_and_johansen(entry):
    tree, X, y = fitted(entry)
    found = calibrations(tree, X, y, times=[0.3, 0.8])
    assert [one.quantity for one in found][1::2] == [
        "incidence of cause 2 by 0.3",
        "incidence of cause 1 by 0.8",
        "incidence of cause 3 by 0.8",
    ]
    assert [one.label for one in found] == [0, 1, 2] * 2
    leaf = tree.apply(X)
    for one, (t, cause) in zip(found, [(t, k) for t in (0.3, 0.8) for k in (1, 2, 3)], strict=True):
        predicted = tree.predict_cumulative_incidence(X, cause, times=[t])[:, 0]
        for point, node in zip(one.points, tree.tree_.leaves, strict=True):
            inside = leaf == node
            expected = plain_incidence(y[inside], np.ones(inside.sum()), cause, t)
            assert point.observed == pytest.approx(expected, rel=1e-12)
            assert point.predicted == pytest.approx(predicted[inside][0], rel=1e-12)
            assert point.lower < point.observed < point.upper


def test_limits_are_those_of_kaplan_and_meier_with_one_cause():
    X, y = study(300, entry=True)
    y["event"] = y["event"].clip(upper=1)
    tree = CompetingRisksTree(max_depth=2, leaf_curve="proportional").fit(X[:150], y[:150])
    other = OptimalSurvivalTree(max_depth=2).fit(X[:150], y[:150])
    ours = calibrations(tree, X[150:], y[150:], times=[0.4], confidence=0.9)[0].points
    theirs = calibrations(other, X[150:], y[150:], times=[0.4], confidence=0.9)[0].points
    for one, two in zip(ours, theirs, strict=True):
        assert one.n == two.n
        expected = [1 - two.predicted, 1 - two.observed, 1 - two.upper, 1 - two.lower]
        np.testing.assert_allclose(one[2:6], expected, rtol=1e-9)


def test_the_variance_is_that_of_scikit_survival():
    sksurv = pytest.importorskip("sksurv.nonparametric")
    _, y = study(200, n_causes=3)
    # They divide by the number of rows that remain after an event.
    y.loc[y["time"] == y["time"].max(), "event"] = 0
    times, _, limits = sksurv.cumulative_incidence_competing_risks(
        y["event"].to_numpy(), y["time"].to_numpy(), conf_type="log-log", var_type="Dinse_Approx"
    )
    _, incidence = sksurv.cumulative_incidence_competing_risks(
        y["event"].to_numpy(), y["time"].to_numpy()
    )
    z, outcomes = ndtri(0.975), read_causes(y)
    for k in (1, 2, 3):
        for place in np.flatnonzero((incidence[k] > 0) & (times < times[-1]))[::4]:
            F = incidence[k][place]
            theirs = abs(np.log(np.log(limits[k][1][place]) / np.log(F)) * F * np.log(F)) / z
            found, low, _ = aalen_johansen(outcomes, k, times[place], 0.95)
            ours = np.log(np.log1p(-low) / np.log1p(-F)) * (1 - F) * np.log1p(-F) / z
            assert found == pytest.approx(F, rel=1e-12)
            assert ours == pytest.approx(theirs, rel=1e-6)


def test_what_is_not_observed_has_no_incidence_and_no_limits():
    y = read_causes(([1, 2, 0], [1.0, 2.0, 3.0]))
    assert np.isnan(aalen_johansen(y, 1, 3.5, 0.95)).all()
    assert aalen_johansen(y, 1, 0.5, 0.95)[0] == 0
    assert np.isnan(aalen_johansen(y, 1, 0.5, 0.95)[1:]).all()
    dead = read_causes(([1, 2, 2], [1.0, 2.0, 3.0]))
    found = aalen_johansen(dead, 2, 9.0, 0.95)
    assert found[0] == pytest.approx(2 / 3, rel=1e-12)
    # Without censoring, the incidence is a share of rows and has the variance of a share.
    low = 1 - (1 / 3) ** np.exp(-ndtri(0.975) * np.sqrt(2 / 27) * 3 / np.log(3))
    assert found[1] == pytest.approx(low, rel=1e-9)


def test_the_picture_shows_every_cause_of_every_leaf():
    tree, X, y = fitted()
    ax = plot_calibration(tree, X, y, time=0.5)
    assert ax.get_xlabel() == "predicted incidence by 0.5"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        " cause 1",
        " cause 2",
        " cause 3",
    ]
    points = [line for line in ax.lines if line.get_marker() == "o" and len(line.get_xdata())]
    expected = calibrations(tree, X, y, times=[0.5])
    drawn = [(line.get_xdata()[0], line.get_ydata()[0], line.get_color()) for line in points]
    assert drawn == [(p.predicted, p.observed, p.colour) for one in expected for p in one.points]
    assert len({colour for *_, colour in drawn}) == 3
    with pytest.raises(ValueError, match="needs time=, at which to compare incidences"):
        plot_calibration(tree, X, y)
    late = y.assign(event=np.where(y["time"] == y["time"].max(), 0, y["event"]))
    with pytest.raises(ValueError, match=r"no row that is observed up to 1e\+06"):
        plot_calibration(CompetingRisksTree(max_depth=0).fit(X, late), X, late, time=1e6)


def test_curves_of_rows_are_incidences_of_a_cause_or_freedom_from_all():
    tree, X, _ = fitted()
    rows = X[:4]
    for cause, label in [(None, "probability of no event"), (2, "incidence of cause 2")]:
        ax = plot_survival(tree, rows, cause=cause)
        assert ax.get_ylabel() == f"predicted {label}"
        leaf = tree.apply(rows)
        assert len(ax.lines) == np.unique(leaf).size
        for line, node in zip(ax.lines, np.unique(leaf), strict=True):
            row = rows[leaf == node][:1]
            x, drawn = line.get_data()
            values = tree.predict_survival_function(row, times=x)
            if cause is not None:
                values = tree.predict_cumulative_incidence(row, cause, times=x)
            np.testing.assert_allclose(drawn, values[0], atol=1e-12)
    with pytest.raises(ValueError, match="cause is 4"):
        plot_survival(tree, rows, cause=4)
    X, y = study(100)
    single = OptimalSurvivalTree(max_depth=1).fit(X, y.assign(event=y["event"] > 0))
    with pytest.raises(ValueError, match="cause=1 is given, but an OptimalSurvivalTree has no"):
        plot_survival(single, X[:2], cause=1)


def test_other_pictures_name_what_to_call():
    tree, X, y = fitted()
    with pytest.raises(TypeError, match=r"plot_leaf_curves draws survival trees.*plot_tree"):
        plot_leaf_curves(tree)
    with pytest.raises(TypeError, match=r"plot_auc draws survival trees.*plot_calibration"):
        plot_auc({"tree": tree}, y, X, y)


@pytest.mark.parametrize("entry", [False, True])
def test_the_report_compares_incidences_on_held_out_rows(entry):
    tree, X, y = fitted(entry)
    page = html_report(tree, X=X, y=y, times=[0.5])
    section = page[page.index("Calibration on held-out rows") :]
    text = re.sub(r"<[^>]*>", " ", section[: section.index("</section>")])
    for one in calibrations(tree, X, y, times=[0.5]):
        assert f"predicted {one.quantity}" in text
        for point in one.points:
            assert f"{point.predicted:.3g}" in text
            assert f"{point.observed:.3g}" in text
    if entry:
        assert f"mean log-likelihood: {tree.log_likelihood(X, y).mean():.3f}" in text
    else:
        assert f"concordance index of cause 1: {tree.score(X, y):.3f}" in text
