"""Survival rows that several tests share, and predictions for them."""

import numpy as np
import pandas as pd


def sample(n=150, seed=0):
    """Numeric frame X and structured y with ties, early censorings and an effect of x0 and x1."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame(rng.normal(size=(n, 4)), columns=["x0", "x1", "x2", "x3"])
    rate = np.exp(1.2 * (X["x0"] > 0.2) - 0.9 * (X["x1"] > -0.4) + 0.3 * X["x2"])
    lived = np.ceil(20 * rng.exponential(size=n) / rate)
    followed = np.ceil(rng.uniform(0, 60, size=n))
    y = np.empty(n, dtype=[("dead", bool), ("months", float)])
    y["dead"], y["months"] = lived <= followed, np.minimum(lived, followed)
    return X, y


def survival(model, X, **options):
    return model.predict_survival_function(X, return_array=True, **options)


def hazard(model, X, **options):
    return model.predict_cumulative_hazard_function(X, return_array=True, **options)


def assert_same_predictions(one, other, X, Z=None, rtol=0.0):
    Z = X if Z is None else Z
    np.testing.assert_array_equal(one.apply(X), other.apply(Z))
    np.testing.assert_allclose(one.predict(X), other.predict(Z), rtol=rtol)
    times = np.linspace(0, 100, 37)
    for curve in ("predict_survival_function", "predict_cumulative_hazard_function"):
        ours, theirs = getattr(one, curve)(X, times=times), getattr(other, curve)(Z, times=times)
        np.testing.assert_allclose(ours, theirs, rtol=rtol)
