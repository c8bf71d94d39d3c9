"""Integrated Brier score of the training rows, and the leaf curve that minimises it.

Zhang, Xin, Seltzer, Rudin, "Optimal Sparse Survival Trees" (AISTATS 2024), eqs. 1–2: with G the
Kaplan–Meier estimate of the censoring distribution, every row with time >= t at risk at t,

    IBS = 1/y_max Σ_k Δ_k mean_i [S_i(u_k)² 1{y_i <= u_k, c_i} / G(y_i)
                                  + (1 − S_i(u_k))² 1{y_i > u_k} / G(u_k)],

where u_k are the distinct training times, Δ_k = u_{k+1} − u_k, and 1/G is 0 where G is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from bristlecone._data.checks import check_times
from bristlecone._tree import Tree
from bristlecone._types import Bools, Floats, Integers
from bristlecone.curves import StepFunction, censoring_survival
from bristlecone.exceptions import InvalidParameterError
from bristlecone.metrics._inputs import (
    Curves,
    inverse_or_zero,
    sums_after,
    sums_before,
    sums_by_cell,
)


@dataclass(frozen=True, eq=False)
class BrierScore:
    """The score as a sum over times, as shares of [0, y_max]; see :func:`brier_score_of`.

    Parameters
    ----------
    censoring : StepFunction
        G.
    times : array of float, shape (n_times,)
        Times u_k at which curves are compared with the rows.
    share : array of float, shape (n_times,)
        Δ_k / y_max.
    """

    censoring: StepFunction
    times: Floats
    share: Floats

    def row_losses(self, curves: Curves, time: Floats, event: Bools) -> Floats:
        """Contribution of every row to the score, shape (n,); O(n · n_times).

        Their mean (by weight) is the score of the curves.
        """
        weight = np.where(event, self._inverse(time), 0.0)
        alive_share = self.share * self._inverse(self.times)
        first = np.searchsorted(self.times, time, side="left")  # of u_k >= y_i
        step = np.searchsorted(curves.x, self.times, side="right")
        losses = np.empty(time.size)
        for rows, index, survival in curves.blocks():
            S = np.concatenate([np.ones((len(survival), 1)), survival], axis=1)[:, step]
            dead = sums_before(S**2 * self.share)
            alive = sums_before((1 - S) ** 2 * alive_share)
            died = dead[index, -1] - dead[index, first[rows]]
            losses[rows] = weight[rows] * died + alive[index, first[rows]]
        return losses

    def best_curve(
        self, time: Floats, event: Bools, weight: Floats | None
    ) -> tuple[Floats, Floats]:
        """Steps of the non-increasing curve that minimises the score of some of its rows.

        At u_k the score is S² A + (1 − S)² B with A = Σ 1{y_i <= u_k, c_i}/G(y_i) and B = #{y_i >
        u_k}/G(u_k). It is least at B/(A + B), so the curve is the antitonic regression of these
        values. Between the times of these rows they never fall and the regression is constant, so
        one value per time of a row suffices. O(n log n_times).

        Returns
        -------
        times, survival : array of float, shape (n_steps,)
            Times at which the curve falls, and its value from each on; it is 1 before.
        """
        own, position = np.unique(time, return_inverse=True)
        ones = np.ones(time.size) if weight is None else weight
        died = np.where(event, ones * self._inverse(time), 0.0)
        # The score has every time of the rows, and others between them.
        first = np.searchsorted(self.times, own)
        A = np.cumsum(np.bincount(position, died)) * np.add.reduceat(self.share, first)
        alive_share = self.share * self._inverse(self.times)
        B = sums_after(np.bincount(position, ones)) * np.add.reduceat(alive_share, first)
        # No row has weight at this time, so any value is optimal: keep the previous one.
        counts = A + B > 0
        own, A, B = own[counts], A[counts], B[counts]
        survival = _antitonic_regression(B / (A + B), A + B)
        falls = np.diff(survival, prepend=1.0) < 0
        return own[falls], survival[falls]

    def leaf_terms(
        self, position: Integers, n_leaves: int, time: Floats, event: Bools, weight: Floats | None
    ) -> tuple[Floats, Floats]:
        """A and B of :meth:`best_curve` for every leaf at all times, shape (n_leaves, n_times).

        Parameters
        ----------
        position : array of int, shape (n,)
            Leaf of every row, from 0 to n_leaves − 1.
        n_leaves : int
        time, event, weight
            Of the rows.
        """
        place, shape = np.searchsorted(self.times, time), (n_leaves, self.times.size)
        ones = np.ones(time.size) if weight is None else weight
        died = np.where(event, ones * self._inverse(time), 0.0)
        A: Floats = sums_by_cell(position, place, died, shape).cumsum(axis=1)
        left = sums_by_cell(position, place, ones, shape)
        return A, sums_after(left) * self._inverse(self.times)

    def node_losses(
        self,
        tree: Tree,
        leaf: Integers,
        time: Floats,
        event: Bools,
        weight: Floats | None,
        curve: str,
    ) -> Floats:
        """Score of every node as a leaf with this curve, summed over its rows, (node_count,).

        O(n log n + n · depth); ``leaf`` is the node id of every row's leaf.
        """
        order = np.argsort(time)
        ones = np.ones(time.size) if weight is None else weight[order]
        died, censored = (np.where(own, ones, 0.0) for own in (event[order], ~event[order]))
        inverse = self._inverse(self.times)
        losses = np.empty(tree.node_count)
        rows = leaf[order], np.searchsorted(self.times, time[order]), died, censored
        below = [(0, rows)]
        while below:
            node, rows = below.pop()
            losses[node] = _loss(*rows[1:], inverse, self.share, curve)
            if not tree.is_leaf[node]:
                right = rows[0] >= tree.children_right[node]
                for child, of_child in (
                    (tree.children_left[node], ~right),
                    (tree.children_right[node], right),
                ):
                    below.append((child, tuple(array[of_child] for array in rows)))
        return losses

    def _inverse(self, times: Floats) -> Floats:
        """1/G at times."""
        return inverse_or_zero(np.asarray(self.censoring(times)))


def _loss(
    at: Integers, died: Floats, censored: Floats, inverse: Floats, share: Floats, curve: str
) -> float:
    """Score of rows that share a curve; ``at`` are the positions of their times, ascending.

    Between their own times nothing changes: A and B of ``best_curve`` are summed over these.
    """
    first = np.flatnonzero(np.diff(at, prepend=-1))
    if first.size < at.size:
        died, censored = np.add.reduceat(died, first), np.add.reduceat(censored, first)
        at = at[first]
    later = sums_after(died + censored)
    A = np.cumsum(died * inverse[at]) * np.add.reduceat(share, at)
    B = later * np.add.reduceat(share * inverse, at)
    if curve == "kaplan-meier":
        # What stays is a sum, because differences cancel if weights differ in size.
        stay = censored + later
        S = np.divide(stay, stay + died, out=np.ones_like(died), where=died > 0).cumprod()
    else:
        counts = A + B > 0
        A, B = A[counts], B[counts]
        S = _antitonic_regression(B / (A + B), A + B)
    return float(S**2 @ A + (1 - S) ** 2 @ B)


def antitonic(A: Floats, B: Floats, share: Floats) -> Floats:
    """Non-increasing S with the least Σ share (S² A + (1 − S)² B), all of shape (n_times,).

    If both terms are zero at a time, S keeps its previous value, which is 1 at first.
    """
    weight = (A + B) * share
    counts = weight > 0
    values = _antitonic_regression(B[counts] / (A + B)[counts], weight[counts])
    return np.concatenate([[1.0], values])[np.cumsum(counts)]


def _antitonic_regression(values: Floats, weight: Floats) -> Floats:
    """Non-increasing values in [0, 1] nearest to the given ones in weighted squares."""
    from sklearn.isotonic import isotonic_regression  # imported here because it takes long

    if not values.size:
        return values
    return np.asarray(
        isotonic_regression(values, sample_weight=weight, y_min=0.0, y_max=1.0, increasing=False)
    )


def brier_score_of(time: Floats, event: Bools, weight: Floats | None = None) -> BrierScore:
    """Score of rows, which may not all have the time 0."""
    times = np.unique(time)
    share = np.diff(times, append=times[-1]) / times[-1]
    return BrierScore(censoring_survival((event, time), weight, ties="paper"), times, share)


def check_time_grid(time_grid: Any) -> Floats | None:
    """Grid as float64, or None.

    Raises
    ------
    InvalidParameterError
        If it is not a list of finite times, strictly ascending from 0 or later.
    """
    if time_grid is None:
        return None
    try:
        return check_times(time_grid, ascending=True)
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameterError(
            f"time_grid must hold finite times, not negative, in ascending order; got {time_grid!r}"
        ) from None


def on_time_grid(time: Floats, event: Bools, grid: Floats) -> tuple[Floats, Bools]:
    """Times and events as observed at the times of a grid.

    A time is moved up to the next one of the grid; a row beyond the last is censored there.

    Raises
    ------
    ValueError
        If there is no event up to the last time of the grid.
    """
    next_one = np.searchsorted(grid, time, side="left")
    event = event & (next_one < grid.size)
    if not event.any():
        raise ValueError(f"time_grid ends at {grid[-1]:g}, before the first event")
    return grid[np.minimum(next_one, grid.size - 1)], event
