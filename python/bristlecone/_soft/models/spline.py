"""Leaves with a natural cubic spline of log time (Royston & Parmar 2002), monotone by design.

The derivative s' of a natural cubic spline with m internal knots is a quadratic spline that is
constant outside the boundary knots. In the B-splines N_j of that space (m + 1 of them, which add up
to 1) it is s' = Σ c_j N_j with c_j = exp(φ_j) > 0. It is positive everywhere, so no row has a
negative hazard. φ = 0 means s' = 1, a constant hazard (or odds in proportion to time).
"""

from __future__ import annotations

import numpy as np
from scipy.interpolate import BSpline
from scipy.optimize import nnls

from bristlecone import _core
from bristlecone._soft.models.base import HazardLink, Index, LeafModel, OddsLink, Sample
from bristlecone._types import Floats

_DEGREE = 2
# Slopes of the start. The least squares line may be flat or fall if there are few events.
_LEAST_SLOPE, _MOST_SLOPE = 0.1, 10.0
_BISECTIONS = 80


def spline_knots(sample: Sample, n_knots: int) -> Floats:
    """Boundary and internal knots: extremes and percentiles of the uncensored log times.

    Tied times may leave fewer than ``n_knots`` distinct internal knots. If all events are at one
    time there is none, and the slope is constant.
    """
    y = np.sort(sample.y[sample.event])
    low, high = y[0], y[-1]
    if not high - low > 1e-9 * max(1.0, abs(low), abs(high)):
        return np.array([low, low + 1.0])
    weight = sample.weight[sample.event][np.argsort(sample.y[sample.event], kind="stable")]
    middle = np.cumsum(weight) - weight / 2
    inner = np.interp(np.arange(1, n_knots + 1) / (n_knots + 1) * weight.sum(), middle, y)
    gap = 1e-6 * (high - low)
    knots = [low]
    for knot in inner:
        if knot - knots[-1] > gap and high - knot > gap:
            knots.append(knot)
    return np.array([*knots, high])


class SplineModel(LeafModel):
    """z = s(y) + u, s(0) = 0 at the typical event time.

    Parameters
    ----------
    knots : array of float, shape (m + 2,)
        Log times, ascending; the first and last are the boundary knots.
    """

    shape_bounds = (-np.log(1e4), np.log(1e4))

    def __init__(self, knots: Floats) -> None:
        self.knots = np.asarray(knots, dtype=np.float64)
        self.n_shape = len(self.knots) - 1
        padded = np.concatenate(
            [np.repeat(self.knots[0], _DEGREE), self.knots, np.repeat(self.knots[-1], _DEGREE)]
        )
        # Flat ends: the first two coefficients are equal, and so are the last two.
        rows = np.arange(len(self.knots) + 1)
        column = np.clip(rows - 1, 0, self.n_shape - 1)
        self._slope = BSpline(padded, np.eye(self.n_shape)[column], _DEGREE)
        self._integral = self._slope.antiderivative()
        self._at_zero = self._area(np.zeros(1))

    @classmethod
    def prepare(cls, sample: Sample, n_knots: int) -> LeafModel:
        """Place the knots."""
        return cls(spline_knots(sample, n_knots))

    def to_dict(self) -> dict[str, list[float]]:
        """The knots."""
        return {"knots": self.knots.tolist()}

    @classmethod
    def from_dict(cls, data: dict[str, list[float]]) -> LeafModel:
        """Model with these knots."""
        knots = np.asarray(data.get("knots", []), dtype=np.float64)
        if set(data) != {"knots"} or knots.size < 2 or not (np.diff(knots) > 0).all():
            raise ValueError("knots must be two or more ascending numbers")
        return cls(knots)

    def _area(self, y: Floats) -> Floats:
        """∫ N_j from the first knot to y, shape (m + 1, n)."""
        inside = np.clip(y, self.knots[0], self.knots[-1])
        area = np.ascontiguousarray(self._integral(inside).T)
        area[0] += np.minimum(y - self.knots[0], 0.0)
        area[-1] += np.maximum(y - self.knots[-1], 0.0)
        return area

    def clock(self, y: Floats) -> Floats:
        """Rows y, ∫N_1 … ∫N_{m+1} (from 0), N_1 … N_{m+1}."""
        inside = np.clip(y, self.knots[0], self.knots[-1])
        return np.concatenate([y[np.newaxis], self._area(y) - self._at_zero, self._slope(inside).T])

    def start(self, sample: Sample) -> tuple[float, Floats]:
        """Least squares on the Nelson–Aalen estimate at the events (Royston & Parmar, 3.2)."""
        y = sample.y
        table = _core.RiskTable(np.exp(y), sample.event, sample.weight, None)
        happened = table.events > 0
        hazard = table.nelson_aalen()[happened]
        z = self.link.level(-np.expm1(-hazard))
        clock = self.clock(np.log(table.time[happened]))
        basis = clock[1 : 1 + self.n_shape].T
        # The intercept is free: a column of each sign.
        ones = np.ones((len(z), 1))
        found = nnls(np.hstack([basis, ones, -ones]), z)[0]
        slope = np.clip(found[: self.n_shape], _LEAST_SLOPE, _MOST_SLOPE)
        intercept = float(np.mean(z - basis @ slope))
        return intercept, np.log(slope)

    def index(self, linear: Floats, shape: Floats, clock: Floats) -> Index:
        """Z = u + Σ c_j ∫N_j, z' = Σ c_j N_j."""
        c = np.exp(shape)
        q = self.n_shape
        area = np.array([c[:, j : j + 1] * clock[1 + j] for j in range(q)])
        basis = np.array([c[:, j : j + 1] * clock[1 + q + j] for j in range(q)])
        # Sums in a fixed order, so that a row's curve does not depend on the other rows.
        slope = sum(basis[1:], basis[0])
        z = linear + sum(area[1:], area[0])
        return Index(z, np.log(slope), np.ones((1, 1)), area, basis / slope)

    def log_time_at(self, z: Floats, linear: Floats, shape: Floats) -> Floats:
        """By bisection between the boundary knots, on the straight line outside of them."""
        k, m = len(shape), np.shape(z)[-1]
        c = np.exp(shape)
        ends = linear + c @ (self._area(self.knots[[0, -1]]) - self._at_zero)
        low = np.full((k, m), self.knots[0])
        high = np.full((k, m), self.knots[-1])
        for _ in range(_BISECTIONS):
            middle = low + (high - low) / 2
            area = self._area(middle.ravel()) - self._at_zero
            reached = linear + np.einsum("kj,jkm->km", c, area.reshape(-1, k, m)) >= z
            low, high = np.where(reached, low, middle), np.where(reached, middle, high)
        below = self.knots[0] + (z - ends[:, :1]) / c[:, :1]
        above = self.knots[-1] + (z - ends[:, 1:]) / c[:, -1:]
        return np.where(z < ends[:, :1], below, np.where(z > ends[:, 1:], above, high))

    def in_unit(self, intercept: Floats, shift: float) -> Floats:
        """The spline is counted from the typical event time in any unit."""
        return intercept

    def parameters(self, shape: Floats) -> dict[str, Floats]:
        """Slopes c_j of the spline."""
        return {f"slope_{j + 1}": np.exp(shape[:, j]) for j in range(self.n_shape)}


class SplineHazards(SplineModel):
    """Proportional hazards: S(t) = exp(−e^z)."""

    name = "spline-ph"
    link = HazardLink


class SplineOdds(SplineModel):
    """Proportional odds: S(t) = 1/(1 + e^z)."""

    name = "spline-po"
    link = OddsLink
