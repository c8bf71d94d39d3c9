"""L-BFGS-B on a combined value and gradient, with an optional l1 penalty."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from bristlecone._types import Floats

Fused = Callable[[Floats], tuple[float, Floats]]

_MEMORY = 20


class Minimum(NamedTuple):
    """End of a minimisation; ``trace`` has the objective after each accepted step."""

    x: Floats
    value: float
    converged: bool
    trace: list[float]


def minimise(
    fused: Fused,
    x: Floats,
    *,
    max_iter: int,
    tol: float,
    bounds: tuple[Floats, Floats] | None = None,
    l1: Floats | None = None,
) -> Minimum:
    """Minimise ``fused(x) + Σ l1 |x|``, where ``fused`` returns a finite value and gradient.

    Stops if no component of the (projected) gradient is larger than ``tol``, if steps gain less
    than ``tol`` times 1e-4 of the value, or after ``max_iter`` accepted steps. Variables with a
    positive ``l1`` are written as a difference of two non-negative ones, so that zeros are exact.
    """
    if l1 is None or not l1.any():
        limits = None if bounds is None else np.stack(bounds, axis=1)
        return _run(fused, x, limits, max_iter, tol)
    split = np.flatnonzero(l1)
    cost = l1[split]
    m = len(x)

    def wide(z: Floats) -> tuple[float, Floats]:
        point = z[:m].copy()
        point[split] -= z[m:]
        value, slope = fused(point)
        value += float(cost @ (z[split] + z[m:]))
        slope = np.concatenate([slope, -slope[split] + cost])
        slope[split] += cost
        return value, slope

    start = np.concatenate([x, np.maximum(-x[split], 0.0)])
    start[split] = np.maximum(x[split], 0.0)
    limits = np.stack([np.full(len(start), -np.inf), np.full(len(start), np.inf)], axis=1)
    if bounds is not None:
        limits[:m] = np.stack(bounds, axis=1)
    limits[split, 0] = 0.0
    limits[m:, 0] = 0.0
    found = _run(wide, start, limits, max_iter, tol)
    point = found.x[:m].copy()
    point[split] -= found.x[m:]
    return found._replace(x=point)


def _run(fused: Fused, x: Floats, limits: Floats | None, max_iter: int, tol: float) -> Minimum:
    trace: list[float] = []
    latest = np.inf

    def remember(point: Floats) -> tuple[float, Floats]:
        nonlocal latest
        latest, slope = fused(point)
        return latest, slope

    found = minimize(
        remember,
        x,
        jac=True,
        method="L-BFGS-B",
        bounds=limits,
        # The last evaluated point is the one that a line search accepts.
        callback=lambda _: trace.append(float(latest)),
        options={
            "maxiter": max_iter,
            "maxfun": 20 * max_iter,
            "gtol": tol,
            "ftol": 1e-4 * tol,
            "maxcor": _MEMORY,
        },
    )
    # A line search that finds nothing better (status 2) has reached the precision of float64.
    return Minimum(found.x, float(found.fun), found.status != 1, trace)
