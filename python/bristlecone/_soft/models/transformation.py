"""Models whose log cumulative hazard, or log cumulative odds, is a known function z of log time.

With the slope z' = dz/dy in log time y = log t, z is

* the log cumulative hazard: H = e^z, h = z' e^z / t;
* the log cumulative odds (1 − S)/S: H = log(1 + e^z), h = z' e^z / (1 + e^z) / t.

See docs/maths/soft.md.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from bristlecone._soft.models.base import Floats, LeafModel, Loss, Sample, SurvivalSlopes

# Above this, e^z is continued by its tangent, so that values and slopes stay finite in a line
# search. Fitted curves stay far below.
_STEEP = 100.0
# Above this, e^z overflows; a cumulative hazard of 1e304 is as good as infinite.
_MOST = 700.0


class Index(NamedTuple):
    """z, log z', and their derivatives by linear predictor (z only) and shape.

    ``z`` (k, n); ``log_slope`` and ``by_linear`` broadcast to it; ``by_shape`` and
    ``log_slope_by_shape`` are lists of q arrays that do.
    """

    z: Floats
    log_slope: Floats
    by_linear: Floats
    by_shape: list[Floats]
    log_slope_by_shape: list[Floats]


class HazardLink:
    """z is the log cumulative hazard."""

    @staticmethod
    def loss(z: Floats, event: Floats) -> tuple[Floats, Floats]:
        """H − c log(dH/dz) and its derivative."""
        e = np.exp(np.minimum(z, _STEEP))
        value = e - event * z
        if (z > _STEEP).any():
            value += e * np.maximum(z - _STEEP, 0.0)
        return value, e - event

    @staticmethod
    def cumulative_hazard(z: Floats) -> Floats:
        """H = e^z."""
        return np.exp(np.minimum(z, _MOST))

    @staticmethod
    def log_hazard_slope(z: Floats) -> Floats:
        """Logarithm of dH/dz."""
        return z

    @staticmethod
    def level(share: Floats) -> Floats:
        """Index at which this share has had the event."""
        return np.log(-np.log1p(-share))


class OddsLink:
    """z is the log cumulative odds."""

    @staticmethod
    def loss(z: Floats, event: Floats) -> tuple[Floats, Floats]:
        """H − c log(dH/dz) and its derivative."""
        more = 1 + event
        # log(1 + e^z) and its slope from one exponential that cannot overflow.
        e = np.exp(-np.abs(z))
        large = 1 / (1 + e)
        value = more * (np.maximum(z, 0.0) + np.log1p(e)) - event * z
        return value, more * np.where(z >= 0, large, e * large) - event

    @staticmethod
    def cumulative_hazard(z: Floats) -> Floats:
        """H = log(1 + e^z)."""
        return np.logaddexp(0.0, z)

    @staticmethod
    def log_hazard_slope(z: Floats) -> Floats:
        """Logarithm of dH/dz."""
        return z - np.logaddexp(0.0, z)

    @staticmethod
    def level(share: Floats) -> Floats:
        """Index at which this share has had the event."""
        return np.log(share) - np.log1p(-share)


class TransformationModel(LeafModel):
    """Likelihood and curves from ``index`` and the link."""

    link: ClassVar[type[HazardLink] | type[OddsLink]]

    @abstractmethod
    def index(self, linear: Floats, shape: Floats, clock: Floats) -> Index:
        """Index z, its slope and their derivatives; ``clock[0]`` is y."""

    @abstractmethod
    def log_time_at(self, z: Floats, linear: Floats, shape: Floats) -> Floats:
        """Log time at which the index of each curve is z (m,), shape (k, m)."""

    def loss(self, linear: Floats, shape: Floats, clock: Floats, event: Floats) -> Loss:
        """Negative log-likelihood; see the base class."""
        at = self.index(linear, shape, clock)
        value, slope = self.link.loss(at.z, event)
        value = value - event * (at.log_slope - clock[0])
        by_shape = np.empty((self.n_shape, *value.shape))
        for j, (z, log_slope) in enumerate(zip(at.by_shape, at.log_slope_by_shape, strict=True)):
            by_shape[j] = slope * z - event * log_slope
        return Loss(value, slope * at.by_linear, by_shape)

    def survival(self, linear: Floats, shape: Floats, clock: Floats) -> SurvivalSlopes:
        """Survival with its derivatives; see the base class."""
        at = self.index(linear, shape, clock)
        value = np.exp(-self.link.cumulative_hazard(at.z))
        # −S dH/dz, with the exponents added first: a product of 0 and inf has no value
        slope = -np.exp(self.link.log_hazard_slope(at.z) - self.link.cumulative_hazard(at.z))
        by_shape = np.empty((self.n_shape, *value.shape))
        for j, z in enumerate(at.by_shape):
            by_shape[j] = slope * z
        return SurvivalSlopes(value, slope * at.by_linear, by_shape)

    def cumulative_hazard(self, linear: Floats, shape: Floats, clock: Floats) -> Floats:
        """H; see the base class."""
        return self.link.cumulative_hazard(self.index(linear, shape, clock).z)

    def hazard(self, linear: Floats, shape: Floats, clock: Floats) -> Floats:
        """h; see the base class."""
        at = self.index(linear, shape, clock)
        return np.exp(np.minimum(at.log_slope + self.link.log_hazard_slope(at.z) - clock[0], _MOST))

    def log_time(self, share: Floats, linear: Floats, shape: Floats) -> Floats:
        """Quantiles; see the base class."""
        return self.log_time_at(self.link.level(share), linear, shape)


def log_rate(sample: Sample) -> float:
    """Log of events per unit of time, half an event at least in a sample of one."""
    exposure = float(sample.weight @ np.exp(sample.y))
    events = float(sample.weight @ sample.event)
    least = 0.5 * float(sample.weight.min()) if sample.weight.size else 0.5
    return float(np.log(max(events, least) / exposure))
