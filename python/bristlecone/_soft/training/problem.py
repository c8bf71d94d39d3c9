"""The training problem: scaled rows, the objective of the paper with extensions, its gradient.

E(ω, β) = Σ_i w_i Σ_ℓ P_ℓ(x_i) L_ℓ(x_i, t_i, c_i; β_ℓ) + R(β) + κ/2 ‖ω‖² + τ ‖ω‖₁ + b B(ω) with Σ
w_i = 1. R = λ/2 (‖β̄‖² + π Σ_ℓ ‖β_ℓ − β̄‖²), where β̄ is the mean of the leaves, or λ/2 Σ_ℓ ‖β_ℓ‖²
without pooling; B is that of balance.py. Intercepts are not penalised. Consolo, Amaldi and
Carrizosa (EJOR 2026, eq. 5) have the second R, and κ = τ = b = 0. See docs/maths/soft.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bristlecone._soft import routing
from bristlecone._soft.models import LeafModel, Slopes
from bristlecone._soft.training.balance import imbalance
from bristlecone._soft.training.fairness import Fairness
from bristlecone._types import Bools, Floats, Integers


class Rows(NamedTuple):
    """Training rows, one per column.

    Attributes
    ----------
    design : array, shape (p + 1, n)
        Centred features in units of their standard deviation; the last row is ones.
    clock : array, shape (c, n)
        Log times as the leaf model wants them.
    event, weight : array of float, shape (n,)
        Events as 0 and 1; weights, of sum 1 over all training rows.
    """

    design: Floats
    clock: Floats
    event: Floats
    weight: Floats

    def take(self, rows: Bools) -> Rows:
        """Only these rows."""
        if rows.all():
            return self
        return Rows(self.design[:, rows], self.clock[:, rows], self.event[rows], self.weight[rows])


class Parameters(NamedTuple):
    """Parameters over the columns of ``Rows.design``.

    Attributes
    ----------
    splits : array, shape (n_splits, p + 1)
        Weights and intercept of every split's logit.
    linear : array, shape (n_leaves, p + 1)
        The same of every leaf's linear predictor.
    shape : array, shape (n_leaves, q)
        Shape parameters of every leaf.
    """

    splits: Floats
    linear: Floats
    shape: Floats


@dataclass(frozen=True, eq=False)
class Problem:
    """Objective that a trainer minimises.

    Parameters
    ----------
    rows : Rows
        Training rows.
    scale : array, shape (p,)
        Standard deviation of every feature when scaled to [0, 1].
    model : LeafModel
        Family of the leaves' curves.
    depth : int
        Depth of the tree.
    l2, split_l2, l1 : float
        λ, κ and τ.
    fairness : Fairness, optional
        A further penalty.
    pooling : float, optional
        π; None is no pooling.
    balance : float
        b.
    """

    rows: Rows
    scale: Floats
    model: LeafModel
    depth: int
    l2: float
    split_l2: float
    l1: float
    fairness: Fairness | None = None
    pooling: float | None = None
    balance: float = 0.0

    @property
    def width(self) -> int:
        """Number of features, plus one for the intercept."""
        return len(self.rows.design)

    @property
    def n_leaf_parameters(self) -> int:
        """Number of parameters of a leaf."""
        return self.width + self.model.n_shape

    @property
    def ridge(self) -> Floats:
        """λ of each parameter of a leaf; intercepts are not penalised."""
        ridge = np.full(self.n_leaf_parameters, self.l2)
        ridge[self.width - 1] = 0.0
        return ridge

    def split_penalty(self, splits: Floats) -> tuple[float, Floats]:
        """κ/2 ‖ω‖² of packed splits, and its gradient."""
        slope = self.split_l2 * splits
        slope[self.width - 1 :: self.width] = 0.0
        return 0.5 * float(splits @ slope), slope

    def lasso(self, n_splits: int) -> Floats:
        """τ of each weight of ``n_splits`` splits, one split after the other."""
        cost = np.full(n_splits * self.width, self.l1)
        cost[self.width - 1 :: self.width] = 0.0
        return cost

    def leaf_bounds(self, n_leaves: int) -> tuple[Floats, Floats]:
        """Smallest and largest value of each parameter of ``n_leaves`` leaves."""
        low, high = self.model.shape_bounds
        free = np.full(self.width, np.inf)
        most = np.tile(np.append(free, np.full(self.model.n_shape, high)), n_leaves)
        least = np.tile(np.append(-free, np.full(self.model.n_shape, low)), n_leaves)
        return least, most

    def pack(self, linear: Floats, shape: Floats) -> Floats:
        """Parameters of leaves in one vector, leaf by leaf."""
        return np.hstack([linear, shape]).ravel()

    def unpack(self, vector: Floats) -> tuple[Floats, Floats]:
        """Inverse of ``pack``."""
        leaves = vector.reshape(-1, self.n_leaf_parameters)
        return leaves[:, : self.width], leaves[:, self.width :]

    def loss(self, linear: Floats, shape: Floats, rows: Rows) -> Slopes:
        """L of every leaf and row, with its derivatives."""
        return self.model.loss(linear @ rows.design, shape, rows.clock, rows.event)

    def penalty(self, leaves: Floats) -> tuple[float, Floats]:
        """R of the packed leaves of the whole tree, and its gradient."""
        each = leaves.reshape(-1, self.n_leaf_parameters)
        mean = each.mean(axis=0)
        if self.pooling is None:
            slope = self.ridge * each
        else:
            slope = self.ridge * (mean / len(each) + self.pooling * (each - mean))
        # A quadratic form is half of the product of its gradient and the leaves.
        return 0.5 * float(np.vdot(each, slope)), slope.ravel()

    def penalty_alone(self, leaf: Floats) -> tuple[float, Floats]:
        """λ/2 ‖β‖² of one leaf, and its gradient."""
        slope = self.ridge * leaf
        return 0.5 * float(leaf @ slope), slope

    def leaf_loss(self, leaves: Floats, rows: Rows, member: Floats) -> tuple[float, Floats]:
        """Σ member · L of packed leaves with given weights (k, n), and its gradient."""
        loss = self.loss(*self.unpack(leaves), rows)
        return float(np.vdot(member, loss.value)), self._by_leaves(loss, rows, member)

    def _by_leaves(self, loss: Slopes, rows: Rows, member: Floats) -> Floats:
        """Gradient of Σ member · L by the packed leaves."""
        by_linear = (member * loss.linear) @ rows.design.T
        return self.pack(by_linear, np.einsum("kn,qkn->kq", member, loss.shape))

    def split_objective(
        self, splits: Floats, rows: Rows, losses: Floats, total: float, part: float
    ) -> tuple[float, Floats]:
        """The part of E that a subtree's splits change, and its gradient.

        The rows have weights of sum 1, which is ``total`` in E; ``part`` is the share of the tree's
        leaves that are below.
        """
        logit = splits.reshape(-1, self.width) @ rows.design
        value, slope = routing.expected(logit, losses)
        slope *= total * rows.weight
        penalty, by_splits = self.split_penalty(splits)
        if self.balance > 0:
            uneven, by_logit = imbalance(logit, rows.weight)
            penalty += part * self.balance * uneven
            slope += part * self.balance * by_logit
        return (
            total * float(rows.weight @ value) + penalty,
            by_splits + (slope @ rows.design.T).ravel(),
        )

    def joint(self, vector: Floats) -> tuple[float, Floats]:
        """Smooth part of E at packed splits followed by packed leaves, and its gradient."""
        rows = self.rows
        cut = routing.n_splits(self.depth) * self.width
        linear, shape = self.unpack(vector[cut:])
        loss = self.loss(linear, shape, rows)
        logit = vector[:cut].reshape(-1, self.width) @ rows.design
        value, slope = routing.expected(logit, loss.value)
        slope *= rows.weight
        member = routing.leaf_probabilities(logit) * rows.weight
        penalty, by_leaves = self.penalty(vector[cut:])
        split_penalty, by_splits = self.split_penalty(vector[:cut])
        penalty += split_penalty
        by_members = self._by_leaves(loss, rows, member)
        if self.balance > 0:
            uneven, by_logit = imbalance(logit, rows.weight)
            penalty += self.balance * uneven
            slope += self.balance * by_logit
        if self.fairness is not None:
            unfair, by_logit, *more = self.fairness.of_mixture(logit, linear, shape)
            penalty += unfair
            slope += by_logit
            by_members += self.pack(*more)
        by_leaves += by_members
        by_splits += (slope @ rows.design.T).ravel()
        return float(rows.weight @ value) + penalty, np.concatenate([by_splits, by_leaves])

    def leaves_alone(self, vector: Floats, member: Floats, path: Integers) -> tuple[float, Floats]:
        """The part of E that the packed leaves change with fixed splits, and its gradient.

        The fairness penalty is that of one-leaf curves: ``path`` is the leaf of every row.
        """
        value, slope = self.leaf_loss(vector, self.rows, member)
        penalty, by_penalty = self.penalty(vector)
        value, slope = value + penalty, slope + by_penalty
        if self.fairness is not None:
            unfair, *more = self.fairness.of_paths(path, *self.unpack(vector))
            value += unfair
            slope += self.pack(*more)
        return value, slope

    def vector(self, at: Parameters) -> Floats:
        """Packed splits and leaves."""
        return np.concatenate([at.splits.ravel(), self.pack(at.linear, at.shape)])

    def parameters(self, vector: Floats) -> Parameters:
        """Inverse of ``vector``."""
        cut = routing.n_splits(self.depth) * self.width
        splits = vector[:cut].reshape(-1, self.width)
        return Parameters(splits, *self.unpack(vector[cut:]))

    def objective(self, at: Parameters) -> float:
        """E, including the l1 penalty."""
        losses = self.loss(at.linear, at.shape, self.rows).value
        logit = at.splits @ self.rows.design
        value = routing.expected(logit, losses)[0]
        penalty = self.penalty(self.pack(at.linear, at.shape))[0]
        penalty += self.split_penalty(at.splits.ravel())[0]
        if self.balance > 0:
            penalty += self.balance * imbalance(logit, self.rows.weight)[0]
        if self.fairness is not None:
            if self.fairness.mixture:
                penalty += self.fairness.of_mixture(logit, at.linear, at.shape)[0]
            else:
                path = routing.hard_leaf(logit)
                penalty += self.fairness.of_paths(path, at.linear, at.shape)[0]
        lasso = float(self.lasso(len(at.splits)) @ np.abs(at.splits.ravel()))
        return float(self.rows.weight @ value) + penalty + lasso

    def steepness(self, at: Parameters) -> Floats:
        """Largest component of the gradient of E in every split, then in every leaf.

        Components that push a variable against its bound, or a zero weight against the lasso,
        do not count.
        """
        logit = at.splits @ self.rows.design
        n_splits = len(at.splits)
        leaves = self.pack(at.linear, at.shape)
        if self.fairness is not None and not self.fairness.mixture:
            # The penalty of one-leaf curves is discontinuous in the splits, which are not
            # minimised.
            member = routing.leaf_probabilities(logit) * self.rows.weight
            by_leaves = self.leaves_alone(leaves, member, routing.hard_leaf(logit))[1]
            by_splits = np.zeros(at.splits.size)
        else:
            gradient = self.joint(self.vector(at))[1]
            by_splits, by_leaves = np.split(gradient, [at.splits.size])
        splits = at.splits.ravel()
        cost = self.lasso(n_splits)
        by_splits = np.where(
            (splits == 0) & (cost > 0),
            np.maximum(np.abs(by_splits) - cost, 0.0),
            by_splits + cost * np.sign(splits),
        )
        low, high = self.leaf_bounds(len(at.linear))
        outward = ((leaves <= low) & (by_leaves > 0)) | ((leaves >= high) & (by_leaves < 0))
        by_leaves = np.where(outward, 0.0, by_leaves)
        sizes = [
            np.abs(part.reshape(count, -1)).max(axis=1, initial=0.0)
            for part, count in ((by_splits, n_splits), (by_leaves, len(at.linear)))
            if count
        ]
        return np.concatenate(sizes)
