"""Custom tasks, and small problems for them."""

from dataclasses import dataclass

import numpy as np

from bristlecone import Task


@dataclass
class SquaredError(Task):
    """Squared error, from number of rows, sum and sum of squares."""

    def statistics(self, X, y):
        return np.column_stack([np.ones(len(y)), y, y**2])

    def leaf_cost(self, sums):
        n, total, squares = sums.T
        return squares - total**2 / n

    def leaf_value(self, sums):
        return sums[:, 1] / sums[:, 0]


def masked(values):
    """The values with the second row masked."""
    mask = np.zeros(values.shape, dtype=bool)
    mask[1] = True
    return np.ma.masked_array(values, mask)


class BoundedSquaredError(SquaredError):
    def lower_bound(self, sums):
        return np.zeros(len(sums))


class PricedSquaredError(BoundedSquaredError):
    def split_cost(self, sums):
        return 0.1 * sums[:, 0]


class Odd(SquaredError):
    """A cost of either sign, which a split may increase."""

    def leaf_cost(self, sums):
        return np.sin(3 * sums[:, 1]) * np.sqrt(sums[:, 0]) - 0.2 * sums[:, 2]


class AtLeastTwo(SquaredError):
    """Sums below two must not be leaves."""

    def leaf_cost(self, sums):
        return np.where(sums[:, 1] < 2, np.inf, super().leaf_cost(sums))


def instance(seed, n=24, columns=4):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, columns)).astype(bool)
    y = rng.integers(0, 9, n) / 4 + X[:, 0] * X[:, 1]
    return X, y, rng.integers(1, 4, n).astype(float)
