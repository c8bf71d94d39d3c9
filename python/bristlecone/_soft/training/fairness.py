"""Distance between the survival curves of two groups (paper, eq. 3), in O(n · grid).

Σ_{i∈G} Σ_{j∉G} ∫ (S_i − S_j)² dt needs no pairs: with sums over each group it is
∫ (|Ḡ| Σ_G S² + |G| Σ_Ḡ S² − 2 Σ_G S · Σ_Ḡ S) dt. See docs/maths/soft.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bristlecone._soft import routing
from bristlecone._soft.models import LeafModel, Slopes
from bristlecone._types import Bools, Floats, Integers

# Intervals of the integral, and nodes of the Gauss–Legendre rule in each.
N_INTERVALS, N_NODES = 6, 8


def quadrature(times: Floats) -> tuple[Floats, Floats]:
    """Times and weights of an integral between the least and the greatest of some times.

    Between quantiles of the distinct times, so that a long follow-up of few rows leaves nodes for
    the others. The curves are smooth functions of log t, so that is the variable, except in the
    first interval, which may begin almost at 0.
    """
    edges = np.quantile(np.unique(times), np.linspace(0, 1, N_INTERVALS + 1))[:, np.newaxis]
    node, weight = np.polynomial.legendre.leggauss(N_NODES)
    share, low, width = (node + 1) / 2, edges[:-1], np.diff(edges, axis=0)
    logarithm = np.log(edges[1:] / low)
    at = low * np.exp(share * logarithm)
    step = at * logarithm * weight / 2
    at[0], step[0] = low[0] + share * width[0], width[0] * weight / 2
    return at.ravel(), step.ravel()


def pair_distance(
    survival: Floats, inside: Floats, outside: Floats, step: Floats
) -> tuple[float, Floats]:
    """Eq. 3 and its derivative by every survival.

    Parameters
    ----------
    survival : array, shape (n, n_grid)
    inside, outside : array, shape (n,)
        Weights of the rows in G and in its complement, 0 for the others.
    step : array, shape (n_grid,)
        Weights of the integral.
    """
    n_inside, n_outside = float(inside.sum()), float(outside.sum())
    sum_inside, sum_outside = inside @ survival, outside @ survival
    square = survival**2
    value = step @ (
        n_outside * (inside @ square) + n_inside * (outside @ square) - 2 * sum_inside * sum_outside
    )
    slope = inside[:, np.newaxis] * (n_outside * survival - sum_outside)
    slope += outside[:, np.newaxis] * (n_inside * survival - sum_inside)
    return float(value), 2 * step * slope


def gini_mix(leaf: Integers, group: Bools, weight: Floats) -> tuple[float, float]:
    """Gini mix of the non-empty leaves: plain mean, and weighted by the leaves' weight.

    For a leaf with share q of the group it is 4q(1 − q): 1 if evenly mixed, 0 if pure.
    """
    total = np.bincount(leaf, weight)
    inside = np.bincount(leaf, weight * group)
    filled = total > 0
    share = inside[filled] / total[filled]
    mix = 4 * share * (1 - share)
    return float(mix.mean()), float(np.average(mix, weights=total[filled]))


@dataclass(frozen=True, eq=False)
class Fairness:
    """The penalty ρ · eq. 3 on the training rows.

    Parameters
    ----------
    rho : float
        ρ.
    model : LeafModel
        Family of the leaves' curves.
    design : array, shape (p + 1, n)
        Training rows, one per column, as in ``Rows``.
    inside, outside : array, shape (n,)
        Row weights of the group and of its complement.
    clock : array, shape (c, n_grid)
        Times of the integral as the leaf model wants them.
    step : array, shape (n_grid,)
        Weights of the integral, in the user's unit of time.
    mixture : bool
        Whether a row's curve is Σ_ℓ P_ℓ S_ℓ (the joint trainer) or that of its leaf alone.
    """

    rho: float
    model: LeafModel
    design: Floats
    inside: Floats
    outside: Floats
    clock: Floats
    step: Floats
    mixture: bool

    def of_paths(
        self, path: Integers, linear: Floats, shape: Floats
    ) -> tuple[float, Floats, Floats]:
        """Penalty of one-leaf curves, and its derivatives by ``linear`` and ``shape``."""
        survival = np.empty((len(path), self.step.size))
        slopes = {}
        for leaf in range(len(linear)):
            rows = np.flatnonzero(path == leaf)
            if rows.size:
                own = self._survival(linear[leaf] @ self.design[:, rows], shape[leaf])
                slopes[leaf], survival[rows] = (rows, own), own.value
        value, by_survival = pair_distance(survival, self.inside, self.outside, self.step)
        by_linear, by_shape = np.zeros_like(linear), np.zeros_like(shape)
        for leaf, (rows, slope) in slopes.items():
            part = by_survival[rows]
            by_linear[leaf] = self.design[:, rows] @ (part * slope.linear).sum(axis=1)
            by_shape[leaf] = np.einsum("ng,qng->q", part, slope.shape)
        return self.rho * value, self.rho * by_linear, self.rho * by_shape

    def _survival(self, predictor: Floats, shape: Floats) -> Slopes:
        """Curves of rows with these linear predictors (n,) in a leaf, with their derivatives."""
        return self.model.survival(predictor[:, np.newaxis], shape[np.newaxis], self.clock)

    def of_mixture(
        self, logit: Floats, linear: Floats, shape: Floats
    ) -> tuple[float, Floats, Floats, Floats]:
        """Penalty of the soft mixtures, and derivatives by logits, ``linear`` and ``shape``."""
        member = routing.leaf_probabilities(logit)
        predictor = linear @ self.design
        slopes = [self._survival(*of_leaf) for of_leaf in zip(predictor, shape, strict=True)]
        survival = sum(p[:, np.newaxis] * s.value for p, s in zip(member, slopes, strict=True))
        value, by_survival = pair_distance(
            np.asarray(survival), self.inside, self.outside, self.step
        )
        by_member = np.stack([(by_survival * s.value).sum(axis=1) for s in slopes])
        by_logit = routing.expected(logit, by_member)[1]
        by_linear, by_shape = np.empty_like(linear), np.empty_like(shape)
        for leaf, slope in enumerate(slopes):
            part = by_survival * member[leaf][:, np.newaxis]
            by_linear[leaf] = self.design @ (part * slope.linear).sum(axis=1)
            by_shape[leaf] = np.einsum("ng,qng->q", part, slope.shape)
        rho = self.rho
        return rho * value, rho * by_logit, rho * by_linear, rho * by_shape
