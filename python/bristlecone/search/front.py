"""``ParetoFront``: trees of which none is better than another in every cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from bristlecone.tree import Tree

__all__ = ["ParetoFront", "ParetoPoint"]


@dataclass(frozen=True, eq=False)
class ParetoPoint:
    """One tree of a front.

    Parameters
    ----------
    costs : tuple of float
        Its costs, in the order of ``ParetoFront.cost_names``; smaller is better.
    tree : Tree
        The tree, over the binary features of the encoder.
    labels : array of int, shape (tree.n_leaves,)
        Place of the class that every leaf predicts, left to right.
    """

    costs: tuple[float, ...]
    tree: Tree = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)


class ParetoFront(Sequence[ParetoPoint]):
    """Trees that do not dominate one another: each is better than any other in some cost.

    A front is a sequence of :class:`ParetoPoint` by ascending first cost. When it is complete,
    every tree within the limits of the search has a point of the front that is at least as good
    in every cost; any measure that falls when a cost rises is largest at one of the points.

    Parameters
    ----------
    points : sequence of ParetoPoint
        The points.
    cost_names : sequence of str
        What the costs are, such as "false positives".
    status : {"optimal", "time_limit", "memory_limit", "interrupted"}
        "optimal" when the front is complete; otherwise these are the points found so far.

    Attributes
    ----------
    costs : array of float, shape (n_points, n_costs)
        The costs of all points.
    """

    def __init__(
        self, points: Sequence[ParetoPoint], cost_names: Sequence[str], status: str
    ) -> None:
        self.points = tuple(points)
        self.cost_names = tuple(cost_names)
        self.status = status

    @property
    def costs(self) -> NDArray[np.float64]:
        """Costs of all points, shape (n_points, n_costs)."""
        costs = [point.costs for point in self.points]
        return np.array(costs, dtype=np.float64).reshape(len(costs), len(self.cost_names))

    def best(self, measure: Callable[..., float]) -> ParetoPoint:
        """The point with the largest measure; of equal ones the first.

        Parameters
        ----------
        measure : callable
            Called with the costs of a point, one argument each; must not rise with any of them.

        Raises
        ------
        ValueError
            When the front has no points, or a measure is NaN.
        """
        if not self.points:
            raise ValueError("the front has no points")
        values = np.array([float(measure(*point.costs)) for point in self.points])
        if np.isnan(values).any():
            raise ValueError(f"measure of {self.points[int(np.isnan(values).argmax())]} is NaN")
        return self.points[int(values.argmax())]

    @overload
    def __getitem__(self, place: int) -> ParetoPoint: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[ParetoPoint, ...]: ...

    def __getitem__(self, place: Any) -> Any:
        return self.points[place]

    def __len__(self) -> int:
        return len(self.points)

    def __repr__(self) -> str:
        costs = ", ".join(self.cost_names)
        return f"ParetoFront({len(self)} trees by {costs}; {self.status})"
