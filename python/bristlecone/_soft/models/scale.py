"""Leaves with a scale μ and a power α of time: z = α(y − u), log μ = u.

Weibull: S(t) = exp(−(t/μ)^α). Log-logistic: S(t) = 1/(1 + (t/μ)^α).
"""

from __future__ import annotations

import numpy as np

from bristlecone._soft.models.base import (
    Floats,
    HazardLink,
    Index,
    LeafModel,
    OddsLink,
    Sample,
    log_rate,
)


class ScaleModel(LeafModel):
    """Weibull or log-logistic by the link; the shape parameter is log α."""

    n_shape = 1
    # α from 0.001 to 1000. Beyond, all events are at one time or spread over hundreds of orders of
    # magnitude, and the likelihood has no maximum.
    shape_bounds = (-np.log(1e3), np.log(1e3))

    def start(self, sample: Sample) -> tuple[float, Floats]:
        """The exponential model: α = 1 and the mean time per event."""
        return -log_rate(sample), np.zeros(1)

    def index(self, linear: Floats, shape: Floats, clock: Floats) -> Index:
        """Z = α(y − u), z' = α."""
        alpha = np.exp(shape[:, :1])
        z = alpha * (clock[0] - linear)
        return Index(z, shape[:, :1], -alpha, z[np.newaxis], np.ones((1, 1, 1)))

    def log_time_at(self, z: Floats, linear: Floats, shape: Floats) -> Floats:
        """Y = u + z / α."""
        return linear + z * np.exp(-shape[:, :1])

    def in_unit(self, intercept: Floats, shift: float) -> Floats:
        """A scale is a time."""
        return intercept + shift

    def parameters(self, shape: Floats) -> dict[str, Floats]:
        """The power α."""
        return {"alpha": np.exp(shape[:, 0])}


class Weibull(ScaleModel):
    """Hazard (α/μ)(t/μ)^(α−1): rising, constant or falling."""

    name = "weibull"
    link = HazardLink


class LogLogistic(ScaleModel):
    """Hazard (α/μ)(t/μ)^(α−1)/(1 + (t/μ)^α): falling, or rising and then falling."""

    name = "log-logistic"
    link = OddsLink
