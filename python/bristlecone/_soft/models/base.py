"""Leaf models: families of survival curves whose location is linear in the features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Sample(NamedTuple):
    """Outcomes from which a model places its knots and chooses its first parameters.

    ``y`` float64 (n,) is log time, ``event`` bool (n,), ``weight`` float64 (n,) of sum 1.
    """

    y: Floats
    event: NDArray[np.bool_]
    weight: Floats


class Loss(NamedTuple):
    """Negative log-likelihood −c log h(t) + H(t) per curve and row, and its derivatives.

    ``value`` and ``linear`` (by the linear predictor) have shape (k, n), ``shape`` (q, k, n).
    """

    value: Floats
    linear: Floats
    shape: Floats


class SurvivalSlopes(NamedTuple):
    """Survival per curve and time, and its derivatives; shapes as in ``Loss``."""

    value: Floats
    linear: Floats
    shape: Floats


class LeafModel(ABC):
    """A family of survival curves with linear predictor u and q further shape parameters.

    Everything broadcasts over k curves and n times: ``linear`` has shape (k, n) or (k, 1),
    ``shape`` (k, q), and ``clock`` (c, n) contains what the model needs about the times. Times are
    logarithms y = log t in a unit near the event times. A new model is one file that defines the
    abstract methods, and its name in ``MODELS``.
    """

    name: ClassVar[str]
    n_shape: int
    shape_bounds: tuple[float, float]

    @classmethod
    @abstractmethod
    def prepare(cls, sample: Sample, n_knots: int) -> LeafModel:
        """The model with everything that depends on the training outcomes, such as knots."""

    @abstractmethod
    def clock(self, y: Floats) -> Floats:
        """Functions of the log times that the other methods need, shape (c, n)."""

    @abstractmethod
    def start(self, sample: Sample) -> tuple[float, Floats]:
        """Linear predictor and shape (q,) near the optimum without features."""

    @abstractmethod
    def loss(self, linear: Floats, shape: Floats, clock: Floats, event: Floats) -> Loss:
        """Negative log-likelihood; ``event`` is 0.0 or 1.0, shape (n,). Finite everywhere."""

    @abstractmethod
    def survival(self, linear: Floats, shape: Floats, clock: Floats) -> SurvivalSlopes:
        """Survival with its derivatives."""

    @abstractmethod
    def cumulative_hazard(self, linear: Floats, shape: Floats, clock: Floats) -> Floats:
        """H, shape (k, n); finite."""

    @abstractmethod
    def hazard(self, linear: Floats, shape: Floats, clock: Floats) -> Floats:
        """h, per unit of time, shape (k, n)."""

    @abstractmethod
    def log_time(self, share: Floats, linear: Floats, shape: Floats) -> Floats:
        """Log time at which a ``share`` (m,) of a curve has had the event, shape (k, m).

        ``linear`` has shape (k, 1).
        """

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
