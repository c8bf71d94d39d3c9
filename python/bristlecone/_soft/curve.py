"""A row's fitted curve as a function of time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from bristlecone._soft.models import LeafModel
from bristlecone._types import Floats


def cumulative_hazard(
    model: LeafModel, linear: Floats, shape: Floats, times: Floats, log_unit: float
) -> Floats:
    """H of every row at ``times`` in the user's unit, shape (n, n_times); 0 at time 0.

    ``linear`` (n,), ``shape`` (n, q); ``times`` (n_times,), or (n, n_times) for different times.
    """
    started = times > 0
    y = np.log(np.where(started, times, 1.0)) - log_unit
    clock = model.clock(y.ravel())
    clock = clock.reshape(len(clock), *y.shape)
    hazard = model.cumulative_hazard(linear[:, np.newaxis], shape, clock)
    return np.where(started, hazard, 0.0)


@dataclass(frozen=True, eq=False, repr=False)
class SmoothCurve:
    """Smooth function of time with the attributes of scikit-survival's step functions.

    Attributes
    ----------
    x : array, shape (n_times,)
        Training times, at which ``y`` lists the values.
    y : array, shape (n_times,)
    domain : (float, float)
        Times at which it may be called: from 0, without end.
    smooth : bool
        True: metrics evaluate it between the times in ``x``, too.
    """

    x: Floats
    _model: LeafModel
    _linear: float
    _shape: Floats
    _log_unit: float
    _survival: bool

    domain: ClassVar = (0.0, np.inf)
    smooth: ClassVar = True

    @property
    def y(self) -> Floats:
        """Values at ``x``."""
        return np.asarray(self(self.x))

    def __call__(self, t: ArrayLike) -> float | Floats:
        """Evaluate at times within ``domain``; ValueError for others."""
        t = np.asarray(t, dtype=np.float64)
        inside = t >= 0
        if not inside.all():
            raise ValueError(f"times must lie within [0, inf], got {t[~inside].flat[0]:g}")
        hazard = cumulative_hazard(
            self._model,
            np.array([self._linear]),
            self._shape[np.newaxis],
            t.ravel(),
            self._log_unit,
        )
        values = np.exp(-hazard) if self._survival else hazard
        return float(values[0, 0]) if t.ndim == 0 else values.reshape(t.shape)

    def __repr__(self) -> str:
        kind = "survival" if self._survival else "cumulative hazard"
        return f"SmoothCurve({kind}, {self._model.name})"
