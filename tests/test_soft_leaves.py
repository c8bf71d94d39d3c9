"""Leaf models of the soft tree: derivatives, curves, limits, fits of a single leaf."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize

from bristlecone import SoftSurvivalTree
from bristlecone._soft.models import MODELS, Sample
from bristlecone._soft.models.spline import SplineHazards, spline_knots
from bristlecone.datasets import load

LEAVES = sorted(MODELS)


def outcomes(n=80, seed=0):
    random = np.random.default_rng(seed)
    y = random.normal(size=n)
    return Sample(y, random.random(n) < 0.6, np.full(n, 1 / n))


def prepared(leaf, seed=0):
    """A model with random parameters for three curves, and its training outcomes."""
    random = np.random.default_rng(seed)
    sample = outcomes()
    model = MODELS[leaf].prepare(sample, 2)
    return model, sample, random.normal(size=(3, 1)), 0.5 * random.normal(size=(3, model.n_shape))


def difference(function, at, step=1e-6):
    """Central differences of a function by every entry of ``at``, on the first axis."""
    moves = step * np.eye(at.size).reshape(at.size, *at.shape)
    return np.stack([(function(at + move) - function(at - move)) / (2 * step) for move in moves])


@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("quantity", ["loss", "survival"])
def test_derivatives_are_those_of_finite_differences(leaf, quantity):
    model, sample, linear, shape = prepared(leaf)
    clock = model.clock(sample.y)
    event = (sample.event.astype(float),) if quantity == "loss" else ()

    def value(linear, shape):
        return getattr(model, quantity)(linear, shape, clock, *event).value

    found = getattr(model, quantity)(linear, shape, clock, *event)
    by_linear = difference(lambda x: value(x, shape), linear).sum(axis=0)
    np.testing.assert_allclose(found.linear, by_linear, atol=1e-7)
    assert found.shape.shape == (model.n_shape, 3, len(sample.y))
    if model.n_shape:
        by_shape = difference(lambda x: value(linear, x), shape)
        by_shape = by_shape.reshape(3, model.n_shape, 3, -1).sum(axis=0)
        np.testing.assert_allclose(found.shape, by_shape, atol=1e-7)


@pytest.mark.parametrize("leaf", LEAVES)
def test_hazard_density_and_survival_belong_together(leaf):
    model, _sample, linear, shape = prepared(leaf)
    y = np.linspace(-3, 3, 41)
    clock = model.clock(y)
    died, alive = (model.loss(linear, shape, clock, np.full(41, c)).value for c in (1.0, 0.0))
    hazard = np.exp(alive - died)
    step = 1e-5
    by_log_time = (
        model.cumulative_hazard(linear, shape, model.clock(y + step))
        - model.cumulative_hazard(linear, shape, model.clock(y - step))
    ) / (2 * step)
    np.testing.assert_allclose(hazard, by_log_time / np.exp(y), rtol=1e-6)
    cumulative = model.cumulative_hazard(linear, shape, clock)
    survival = model.survival(linear, shape, clock).value
    np.testing.assert_allclose(survival, np.exp(-cumulative), rtol=1e-12)
    assert (np.diff(survival, axis=1) < 0).all()
    np.testing.assert_allclose(alive, cumulative, rtol=1e-12)


@pytest.mark.parametrize("leaf", LEAVES)
def test_quantiles_invert_the_curves_also_outside_of_the_knots(leaf):
    model, _, linear, shape = prepared(leaf)
    share = np.array([1e-6, 0.1, 0.5, 0.9, 1 - 1e-6])
    y = model.log_time(share, linear, shape)
    for curve in range(3):
        at = linear[[curve]], shape[[curve]], model.clock(y[curve])
        died = -np.expm1(-model.cumulative_hazard(*at))[0]
        np.testing.assert_allclose(died, share, rtol=1e-9)


@pytest.mark.parametrize("leaf", LEAVES)
def test_nothing_overflows(leaf):
    model, _sample, _, _ = prepared(leaf)
    y = np.array([-700.0, -30.0, 0.0, 30.0, 700.0])
    low, high = model.shape_bounds
    for u in (-1e3, 0.0, 1e3):
        for bound in (low, 0.0, high):
            at = np.full((1, 1), u), np.full((1, model.n_shape), bound), model.clock(y)
            for event in (0.0, 1.0):
                for part in model.loss(*at, np.full(5, event)):
                    assert np.isfinite(part).all()
            for part in model.survival(*at):
                assert np.isfinite(part).all()
            assert np.isfinite(model.cumulative_hazard(*at)).all()


@pytest.mark.parametrize("leaf", ["spline-ph", "spline-po"])
def test_splines_rise_everywhere_whatever_their_parameters(leaf):
    model, _, linear, _ = prepared(leaf)
    shape = np.random.default_rng(1).uniform(*model.shape_bounds, size=(200, model.n_shape))
    y = np.linspace(-10, 10, 501)
    slope = np.exp(model.index(linear[:1], shape, model.clock(y)).log_slope)
    assert (slope > 0).all()
    z = model.index(linear[:1], shape, model.clock(y)).z
    assert (np.diff(z, axis=1) > 0).all()


def natural_basis(y, knots):
    """Royston & Parmar's basis 1, y, v_1 … v_m and its derivative."""
    low, high = knots[0], knots[-1]

    def plus(k, power):
        return np.maximum(y - k, 0.0) ** power

    value, slope = [np.ones_like(y), y], [np.zeros_like(y), np.ones_like(y)]
    for k in knots[1:-1]:
        share = (high - k) / (high - low)
        parts = [(k, 1.0), (low, -share), (high, share - 1)]
        value.append(sum(c * plus(k, 3) for k, c in parts))
        slope.append(sum(3 * c * plus(k, 2) for k, c in parts))
    return np.stack(value), np.stack(slope)


def test_splines_span_the_natural_cubic_splines_of_the_paper():
    model, _, _, _ = prepared("spline-ph")
    y = np.linspace(model.knots[0] - 1, model.knots[-1] + 1, 300)
    clock = model.clock(y)
    ours = np.vstack([np.ones_like(y), clock[1 : 1 + model.n_shape]])
    theirs, _ = natural_basis(y, model.knots)
    for one, other in ((ours, theirs), (theirs, ours)):
        found, *_ = np.linalg.lstsq(one.T, other.T, rcond=None)
        np.testing.assert_allclose(one.T @ found, other.T, atol=1e-9)
    assert len(ours) == len(theirs) == len(model.knots)


def test_knots_are_percentiles_of_the_uncensored_times():
    y = np.linspace(0, 1, 101)
    event = np.ones(101, dtype=bool)
    knots = spline_knots(Sample(y, event, np.full(101, 1 / 101)), 3)
    np.testing.assert_allclose(knots, [0, 0.25, 0.5, 0.75, 1], atol=0.01)
    later = np.concatenate([y, np.full(50, 9.0)])
    censored = np.concatenate([event, np.zeros(50, dtype=bool)])
    again = spline_knots(Sample(later, censored, np.full(151, 1 / 151)), 3)
    np.testing.assert_allclose(again, knots, rtol=1e-12)


def test_tied_times_leave_fewer_knots_and_one_time_none():
    y = np.repeat([0.0, 1.0], 30)
    event, weight = np.ones(60, dtype=bool), np.full(60, 1 / 60)
    assert spline_knots(Sample(y, event, weight), 4)[[0, -1]].tolist() == [0.0, 1.0]
    alone = SplineHazards.prepare(Sample(np.zeros(60), event, weight), 4)
    assert alone.n_shape == 1
    assert np.isfinite(
        alone.loss(np.zeros((1, 1)), np.zeros((1, 1)), alone.clock(y), y).value
    ).all()


# Single-leaf fits against other programs


def gbsg2():
    data = load("gbsg2")
    X = data.X[["age", "pnodes", "progrec"]].astype(float) / [10, 10, 1000]
    event, time = (data.y[name] for name in data.y.dtype.names)
    return X, event, time.astype(float)


def single(leaf, X, event, time, **parameters):
    model = SoftSurvivalTree(
        depth=0, leaf=leaf, l2=0.0, solver_options={"tol": 1e-8, "max_iter": 5000}, **parameters
    )
    return model.fit(X, (event, time))


# lifelines 0.30.3 on these rows: WeibullAFTFitter, LogLogisticAFTFitter, and a
# ParametricRegressionFitter with cumulative hazard t / exp(lambda_ · x).
LIFELINES = {
    "weibull": {
        "coef": [0.02156974622391399, -0.4481293721109454, 1.9906585062358098],
        "intercept": 7.619259440792058,
        "log alpha": 0.30902922701848784,
        "log likelihood": -2592.8650415592138,
    },
    # lifelines ends 2e-5 below the maximum; BFGS goes on from there to these values.
    "log-logistic": {
        "coef": [0.0653007511041948, -0.602098262871497, 1.8956542350179328],
        "intercept": 7.161154427440091,
        "log alpha": 0.5287396214816691,
        "log likelihood": -2580.7423177786736,
    },
    "exponential": {
        "coef": [0.029010686374697586, -0.541693942481959, 2.4574103681067805],
        "intercept": 7.755892213070807,
        "log likelihood": -2610.2313213353264,
    },
}


@pytest.mark.parametrize("leaf", LIFELINES)
def test_a_single_leaf_is_an_accelerated_failure_time_model(leaf):
    X, event, time = gbsg2()
    model, expected = single(leaf, X, event, time), LIFELINES[leaf]
    sign = -1 if leaf == "exponential" else 1  # a rate; lifelines has a scale
    np.testing.assert_allclose(sign * model.leaf_coef_[0], expected["coef"], atol=1e-4)
    np.testing.assert_allclose(sign * model.leaf_intercept_[0], expected["intercept"], atol=1e-4)
    if "log alpha" in expected:
        alpha = model.leaf_parameters_["alpha"][0]
        assert np.log(alpha) == pytest.approx(expected["log alpha"], abs=1e-4)
    assert -len(X) * model.objective_value_ == pytest.approx(expected["log likelihood"], rel=1e-8)


@pytest.mark.parametrize("leaf", ["spline-ph", "spline-po"])
def test_a_single_spline_leaf_is_a_flexible_parametric_fit(leaf):
    """Royston & Parmar's likelihood in their own basis, maximised by SciPy."""
    X, event, time = gbsg2()
    model = single(leaf, X, event, time)
    y = np.log(time) - model.leaves_.log_unit
    basis, slope = natural_basis(y, model.leaves_.model.knots)
    design = np.vstack([basis, (X - X.mean()).to_numpy().T])
    by_time = np.vstack([slope, np.zeros((3, len(y)))])
    # Equal steps in each variable are equal steps in the curve.
    scale = design.std(axis=1, keepdims=True)
    scale[0] = 1.0
    design, by_time = design / scale, by_time / scale

    def negative(beta):
        z, steep = beta @ design, beta @ by_time
        if (steep[event] <= 0).any():
            return np.inf
        if leaf == "spline-ph":
            hazard, log_slope = np.exp(z), z
        else:
            hazard = np.logaddexp(0, z)
            log_slope = z - hazard
        log_density = np.log(steep[event]) + log_slope[event] - np.log(time[event])
        return (hazard.sum() - log_density.sum()) / len(y)

    start = np.zeros(len(design))
    start[1] = scale[1, 0]
    found = minimize(negative, start, method="Nelder-Mead", options={"maxiter": 4000})
    for _ in range(3):
        found = minimize(negative, found.x, method="BFGS", options={"gtol": 1e-9})
    assert model.objective_value_ == pytest.approx(found.fun, abs=1e-7)
    coef = (found.x / scale[:, 0])[len(basis) :]
    np.testing.assert_allclose(model.leaf_coef_[0], coef, atol=1e-4)
    at = np.array([100.0, 400.0, 900.0, 1800.0, 2600.0])
    z0 = (found.x / scale[:, 0])[: len(basis)] @ natural_basis(
        np.log(at) - model.leaves_.log_unit, model.leaves_.model.knots
    )[0]
    z = z0 + ((X - X.mean()).to_numpy() @ coef)[:, np.newaxis]
    expected = np.exp(-np.exp(z)) if leaf == "spline-ph" else 1 / (1 + np.exp(z))
    np.testing.assert_allclose(model.predict_survival_function(X, times=at), expected, atol=1e-4)


@pytest.mark.parametrize("leaf", LEAVES)
def test_quantiles_and_means_are_those_of_the_curve(leaf):
    X, event, time = gbsg2()
    model = single(leaf, X, event, time)
    few = X.iloc[:4]
    curves = model.predict_survival_function(few)
    for row, curve in enumerate(curves):
        assert curve(model.predict_quantile(few, 0.3)[row]) == pytest.approx(0.7, abs=1e-9)
        mean = quad(curve, 0, 2000, limit=300)[0]
        assert model.predict_rmst(few, 2000.0)[row] == pytest.approx(mean, rel=1e-5)
    assert model.predict_quantile(few, [0.1, 0.9]).shape == (4, 2)
    np.testing.assert_array_equal(model.predict_median(few), model.predict_quantile(few, 0.5))
    for wrong in (0.0, 1.0, np.nan):
        with pytest.raises(ValueError, match="q must"):
            model.predict_quantile(few, wrong)
    for wrong in (-1.0, np.inf):
        with pytest.raises(ValueError, match="tau"):
            model.predict_rmst(few, wrong)
