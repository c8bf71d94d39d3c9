"""Exponential leaves: S(t) = exp(−μt), log μ = u."""

from __future__ import annotations

import numpy as np

from bristlecone._soft.models.base import HazardLink, Index, LeafModel, Sample, log_rate
from bristlecone._types import Floats


class Exponential(LeafModel):
    """Constant hazard μ; z = y + u."""

    name = "exponential"
    link = HazardLink
    n_shape = 0
    shape_bounds = (0.0, 0.0)

    def start(self, sample: Sample) -> tuple[float, Floats]:
        """The rate, which is the maximum of the likelihood."""
        return log_rate(sample), np.empty(0)

    def index(self, linear: Floats, shape: Floats, clock: Floats) -> Index:
        """Z = y + u."""
        none = np.empty((0, 1, 1))
        return Index(clock[0] + linear, np.zeros((1, 1)), np.ones((1, 1)), none, none)

    def log_time_at(self, z: Floats, linear: Floats, shape: Floats) -> Floats:
        """Y = z − u."""
        return z - linear

    def in_unit(self, intercept: Floats, shift: float) -> Floats:
        """A rate per longer unit of time is larger."""
        return intercept - shift

    def parameters(self, shape: Floats) -> dict[str, Floats]:
        """None."""
        return {}
