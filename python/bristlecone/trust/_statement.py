"""Definition of an objective as a function of sums over the rows of a leaf."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._types import Bools, Floats, Integers
from bristlecone.trust._exact import Column

# Rounding of a cost in float64, relative to the size of its terms: about thirty operations.
ROUNDING = 2.0**-47


class Statement(ABC):
    """An objective over rows.

    Attributes
    ----------
    columns : list of Column
        Values of each row that are summed over a leaf, exactly.
    sizes : list of Column
        Absolute values of terms that may have either sign; empty if no term is negative.
    least_term : float
        Size to which "optimal" is relative if all costs of a tree are 0.
    total : Fraction
        Weight of all rows, by which costs are divided.
    factor : Fraction
        Power of two that multiplies costs and brings outcomes of any unit to about 1.
    price : float
        Work of one leaf, in units of a sum of one statistic.
    is_sum : bool
        Whether the objective is a sum over leaves.
    is_limited : bool
        Whether the total cost of a tree is limited.
    room : tuple of float
        Two allowances on a limit, as shares of the whole. A tree that a search returns may exceed
        the limit by the first. A search must not leave out a tree that exceeds it by at most the
        second. They are twice and half the allowance of searches, which covers the rounding of the
        limit and the weights to doubles.
    is_linear : bool
        Whether cost vectors are linear in the sums.
    units : list of Fraction
        Of linear ones: what the components of the vectors are multiples of.
    is_concave : bool
        Whether ``least`` bounds the cost of a leaf whose sums are known up to an error.
    rounding : float
        Largest relative error of costs in float64.
    """

    columns: list[Column]
    units: list[Fraction]
    sizes: Sequence[Column] = ()
    least_term = 0.0
    total: Fraction
    factor = Fraction(1)
    price = 1.0
    is_sum = True
    is_limited = False
    room = 2.0**-50, 2.0**-52
    is_linear = False
    is_concave = False
    rounding = 0.0

    @property
    def is_scalar(self) -> bool:
        """Whether the best label of a leaf, and its cost, depend only on its own rows."""
        return self.is_sum and not self.is_limited

    @cached_property
    def statistics(self) -> Any:
        """The columns in float64, shape (n, k); a sparse matrix of objectives over all times."""
        return np.stack([column.floats() for column in self.columns], axis=1)

    @cached_property
    def root(self) -> Floats:
        """Cost vectors of all rows as one leaf, by its labels, (n_labels, n_components)."""
        every = np.ones((1, self.statistics.shape[0]))
        costs: Floats = self.candidates(np.asarray(every @ self.statistics))[0]
        return costs

    def sums(self, members: Bools) -> NDArray[Any]:
        """Exact sums over groups of rows (m, n), as fractions (m, k)."""
        return sums_of(self.columns, members)

    @abstractmethod
    def candidates(self, sums: Any) -> Any:
        """Cost vectors of leaves by their labels, shape (m, n_labels, n_components)."""

    def magnitudes(self, sums: Any, members: Bools) -> Any:
        """Size of the terms of each leaf by its labels, shape (m, n_labels)."""
        return np.abs(self.candidates(sums)[:, :, 0])

    def doubt(self, sums: Any) -> float:
        """Largest error of the costs of leaves that comes from rounded sums in float64."""
        return 0.0

    def value(self, costs: Any, allowed: float) -> Any:
        """Objective without penalty for summed cost vectors (m, n_components).

        Infinite if a limit is exceeded by more than ``allowed``, which ``room`` interprets.
        """
        return costs[:, 0] * (like(self.factor / self.total, costs))

    def least(self, sums: Sequence[Floats], errors: Sequence[float]) -> Floats:
        """Lower bound on the cost of leaves whose sums have these errors, one array each."""
        raise NotImplementedError

    def split_costs(self, sums: Any, asked: tuple[int, ...], n_features: int) -> Any:
        """Cost of each feature at a node with these sums, below other splits (n_features,).

        Added to the first component.
        """
        return np.zeros(n_features)


def sums_of(columns: Sequence[Column], members: Bools) -> NDArray[Any]:
    """Exact sums of columns over groups of rows (m, n), as fractions (m, k)."""
    found = np.empty((len(members), len(columns)), dtype=object)
    for k, group in enumerate(members):
        found[k] = [column.sum(group) for column in columns]
    return found


def like(number: Fraction, values: Any) -> Any:
    """A fraction if others are fractions, a float if they are floats."""
    return number if values.dtype == object else float(number)


def within(value: Any, limit: float, allowed: float) -> Any:
    """Whether a limit on a share is kept, up to an allowance relative to the whole."""
    if allowed == np.inf:
        return np.ones(value.shape, dtype=bool)
    most = Fraction(limit) + Fraction(allowed)
    return value <= like(most, value)


def differences(weight: Floats, group: Integers, pair: tuple[int, int] = (0, 1)) -> Column:
    """Share of each row in its group's weight, negative in the first group, 0 in no group."""
    of_row = Column.of(weight)
    one, other = (int(of_row.whole[group == side].sum()) for side in pair)
    by_group = {pair[0]: -other, pair[1]: one}
    factor = np.array([by_group.get(side, 0) for side in group.tolist()], dtype=object)
    return Column.fitting(of_row.whole.astype(object) * factor, Fraction(1, one * other))
