"""Leaf models: families of survival curves whose location is linear in the features.

The log cumulative hazard, or the log cumulative odds, is a known function z of log time. With the
slope z' = dz/dy in log time y = log t, z is

* the log cumulative hazard: H = e^z, h = z' e^z / t;
* the log cumulative odds (1 − S)/S: H = log(1 + e^z), h = z' e^z / (1 + e^z) / t.

See docs/maths/soft.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np

from bristlecone._types import Bools, Floats

# Above this, e^z is continued by its tangent, so that values and slopes stay finite in a line
# search. Fitted curves stay far below.
_STEEP = 100.0
# Above this, e^z overflows; a cumulative hazard of 1e304 is as good as infinite.
_MOST = 700.0


class Sample(NamedTuple):
    """Outcomes from which a model places its knots and chooses its first parameters.

    ``y`` float64 (n,) is log time, ``event`` bool (n,), ``weight`` float64 (n,) of sum 1.
    """

    y: Floats
    event: Bools
    weight: Floats


class Slopes(NamedTuple):
    """A function of every curve and row, and its derivatives.

    ``value`` and ``linear`` (by the linear predictor) have shape (k, n), ``shape`` (q, k, n).
    """

    value: Floats
    linear: Floats
    shape: Floats


class Index(NamedTuple):
    """z, log z', and their derivatives by linear predictor (z only) and shape.

    ``z`` (k, n); ``log_slope`` and ``by_linear`` broadcast to it; ``by_shape`` and
    ``log_slope_by_shape`` broadcast to (q, k, n).
    """

    z: Floats
    log_slope: Floats
    by_linear: Floats
    by_shape: Floats
    log_slope_by_shape: Floats


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


class LeafModel(ABC):
    """A family of survival curves with linear predictor u and q further shape parameters.

    Everything broadcasts over k curves and n times: ``linear`` has shape (k, n) or (k, 1),
    ``shape`` (k, q), and ``clock`` (c, n) contains what the model needs about the times. Times are
    logarithms y = log t in a unit near the event times. A new model is a class that defines the
    abstract methods, its link and its name, and an entry of ``MODELS``.
    """

    name: ClassVar[str]
    link: ClassVar[type[HazardLink] | type[OddsLink]]
    n_shape: int
    shape_bounds: tuple[float, float]

    @classmethod
    def prepare(cls, sample: Sample, n_knots: int) -> LeafModel:
        """The model with everything that depends on the training outcomes, such as knots."""
        return cls()

    def clock(self, y: Floats) -> Floats:
        """Functions of the log times that the other methods need, shape (c, n), the first is y."""
        return y[np.newaxis]

    @abstractmethod
    def start(self, sample: Sample) -> tuple[float, Floats]:
        """Linear predictor and shape (q,) near the optimum without features."""

    @abstractmethod
    def index(self, linear: Floats, shape: Floats, clock: Floats) -> Index:
        """Index z, its slope and their derivatives."""

    @abstractmethod
    def log_time_at(self, z: Floats, linear: Floats, shape: Floats) -> Floats:
        """Log time at which the index of each curve is z (m,), shape (k, m)."""

    def loss(self, linear: Floats, shape: Floats, clock: Floats, event: Floats) -> Slopes:
        """Negative log-likelihood −c log h(t) + H(t), finite everywhere.

        ``event``, shape (n,), is c, 0.0 or 1.0.
        """
        at = self.index(linear, shape, clock)
        value, slope = self.link.loss(at.z, event)
        value = value - event * (at.log_slope - clock[0])
        by_shape = slope * at.by_shape - event * at.log_slope_by_shape
        return Slopes(value, slope * at.by_linear, by_shape)

    def survival(self, linear: Floats, shape: Floats, clock: Floats) -> Slopes:
        """Survival with its derivatives."""
        at = self.index(linear, shape, clock)
        value = np.exp(-self.link.cumulative_hazard(at.z))
        # −S dH/dz, with the exponents added first: a product of 0 and inf has no value
        slope = -np.exp(self.link.log_hazard_slope(at.z) - self.link.cumulative_hazard(at.z))
        return Slopes(value, slope * at.by_linear, slope * at.by_shape)

    def cumulative_hazard(self, linear: Floats, shape: Floats, clock: Floats) -> Floats:
        """H, shape (k, n); finite."""
        return self.link.cumulative_hazard(self.index(linear, shape, clock).z)

    def log_time(self, share: Floats, linear: Floats, shape: Floats) -> Floats:
        """Log time at which a ``share`` (m,) of a curve has had the event, shape (k, m).

        ``linear`` has shape (k, 1).
        """
        return self.log_time_at(self.link.level(share), linear, shape)

    @abstractmethod
    def in_unit(self, intercept: Floats, shift: float) -> Floats:
        """Intercept of the linear predictor when log times grow by ``shift``; any shape."""

    @abstractmethod
    def parameters(self, shape: Floats) -> dict[str, Floats]:
        """Shape (k, q) in the parameters of the literature, by name, each of shape (k,)."""

    def to_dict(self) -> dict[str, list[float]]:
        """Result of ``prepare`` as plain values."""
        return {}

    @classmethod
    def from_dict(cls, data: dict[str, list[float]]) -> LeafModel:
        """Model from ``to_dict``; ValueError if it is invalid."""
        if data:
            raise ValueError(f"{cls.name} has nothing to remember")
        return cls()


def log_rate(sample: Sample) -> float:
    """Log of events per unit of time, half an event at least in a sample of one."""
    exposure = float(sample.weight @ np.exp(sample.y))
    events = float(sample.weight @ sample.event)
    least = 0.5 * float(sample.weight.min()) if sample.weight.size else 0.5
    return float(np.log(max(events, least) / exposure))
