"""Pareto fronts: trees that are not worse than another tree in every cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from bristlecone import _core
from bristlecone._core import BinaryMatrix
from bristlecone._log import warn
from bristlecone._tree import Tree
from bristlecone._types import Floats, Integers
from bristlecone.exceptions import SearchLimitWarning


@dataclass(frozen=True, eq=False)
class ParetoPoint:
    """One tree of a Pareto front.

    Parameters
    ----------
    costs : tuple of float
        Costs of the tree, in the order of ``ParetoFront.cost_names``; smaller is better.
    estimator : OptimalTreeClassifier or FairTreeClassifier
        The fitted tree, which can be saved, drawn, exported and verified.

    Attributes
    ----------
    tree : Tree
        Its structure over the binary features of the encoder.
    labels : array of int, shape (tree.n_leaves,)
        Position of the class that every leaf predicts, left to right.

    See Also
    --------
    ParetoFront : The sequence of these points.

    Examples
    --------
    >>> from bristlecone import OptimalTreeClassifier
    >>> front = OptimalTreeClassifier(max_depth=1).pareto_front([[0], [1], [1]], [0, 1, 0])
    >>> front[0].costs, front[0].tree.n_leaves, front[0].labels.tolist()
    ((0.0, 1.0), 1, [0])
    >>> front[1].predict([[0], [1]]).tolist()
    [0, 1]
    """

    costs: tuple[float, ...]
    estimator: Any = field(repr=False)

    @property
    def tree(self) -> Tree:
        """Structure of the tree over the binary features of the encoder."""
        tree: Tree = self.estimator.tree_
        return tree

    @property
    def labels(self) -> Integers:
        """Position of the class that every leaf predicts, shape (tree.n_leaves,)."""
        label: Integers = self.estimator.leaves_.label
        return label

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of every row.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features)
            Rows with the columns of the training rows.

        Returns
        -------
        array, shape (n,)
            Classes.
        """
        predicted: NDArray[Any] = self.estimator.predict(X)
        return predicted


class ParetoFront(Sequence[ParetoPoint]):
    """Pareto front: trees that do not dominate each other.

    Each tree is better than any other one in some cost. A front is a sequence of
    :class:`ParetoPoint`, sorted by the first cost. If it is complete, then for every tree within
    the limits of the search, some point is at least as good in every cost. Any measure that
    decreases with every cost is therefore largest at one of the points.

    Parameters
    ----------
    points : sequence of ParetoPoint
        The points.
    cost_names : sequence of str
        Names of the costs, such as "false positives".
    status : {"optimal", "time_limit", "memory_limit", "interrupted"}
        "optimal" if the front is complete; otherwise these are the points found so far.

    Attributes
    ----------
    costs : array of float, shape (n_points, n_costs)
        The costs of all points.

    See Also
    --------
    ParetoPoint : One of the trees.

    Examples
    --------
    >>> from bristlecone import OptimalTreeClassifier
    >>> front = OptimalTreeClassifier(max_depth=1).pareto_front([[0], [1], [1]], [0, 1, 0])
    >>> front.cost_names, front.costs.tolist()
    (('false positives', 'false negatives'), [[0.0, 1.0], [1.0, 0.0]])
    """

    def __init__(
        self, points: Sequence[ParetoPoint], cost_names: Sequence[str], status: str
    ) -> None:
        self.points = tuple(points)
        self.cost_names = tuple(cost_names)
        self.status = status

    @property
    def costs(self) -> Floats:
        """Costs of all points, shape (n_points, n_costs)."""
        costs = [point.costs for point in self.points]
        return np.array(costs, dtype=np.float64).reshape(len(costs), len(self.cost_names))

    def best(self, measure: Callable[..., float]) -> ParetoPoint:
        """Return the point with the largest measure; the first if several are equal.

        Parameters
        ----------
        measure : callable
            Called with the costs of a point, one argument each; must not increase with any of them.

        Raises
        ------
        ValueError
            If the front has no points, or a measure is NaN.
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


class FrontSolution:
    """The best tree of a search over fronts, as the engine's ``Solution`` describes a tree.

    Without the arrays of the tree when no tree satisfies the constraints.

    Parameters
    ----------
    front : _core.Front
        What the engine found; ``front`` keeps it.

    Attributes
    ----------
    feature, children_left, children_right : array of int, shape (node_count,)
        The tree in preorder.
    labels : array of int, shape (node_count,)
        Place of the class every leaf predicts, -1 at splits.
    costs : list of float
        Components of the cost: misclassified share and difference between the groups, false
        positives and false negatives, what rewards fall short of the best ones and rows per limited
        treatment.
    objective, lower_bound, status, n_nodes_explored, trace
        As in ``Solution``; the objective of a measure is 1 - measure.
    """

    feature: Integers
    children_left: Integers
    children_right: Integers
    labels: Integers
    costs: list[float]

    def __init__(self, front: _core.Front) -> None:
        self.front = front
        self.objective = front.objective
        self.lower_bound = front.lower_bound
        self.status = front.status
        self.n_nodes_explored = front.n_nodes_explored
        self.trace = front.trace
        if front.best is not None:
            self._take(front.points[front.best])

    def of(self, point: _core.FrontPoint) -> FrontSolution:
        """The solution with the tree of another point, and otherwise the same."""
        found = copy(self)
        found._take(point)
        return found

    def _take(self, point: _core.FrontPoint) -> None:
        for name in ("feature", "children_left", "children_right", "labels", "costs"):
            setattr(self, name, getattr(point, name))


def solve_front(
    task: str, data: dict[str, Any], features: BinaryMatrix, **settings: Any
) -> FrontSolution:
    """Best tree of a task that is searched for over fronts.

    Tasks and their data: "f-measure" (labels, beta), "matthews" (labels), "demographic-parity",
    "equality-of-opportunity" and "equalized-odds" (labels, group, delta; group_weight for rates
    whose weights are not those of the errors), "capacity" (rewards (n, K), capacity (K,): largest
    weight of the rows a label may be given, inf where unlimited), "fair-likelihood" and
    "fair-brier" (time, event, group, delta, tau). Labels are int64 arrays of 0 and 1, and so are
    groups, from 0 on for labels; all take weight, an array or None. Features are uint8,
    C-contiguous; ``settings`` as of all engine functions.

    Raises
    ------
    ValueError
        For data that do not fit the task; the array or parameter is named.
    """
    return FrontSolution(_core.front(task, data, features, **settings))


# Costs that are closer, as a share of themselves, are equal but for rounding.
_ROUNDING = 1e-12


def add_point(points: list[ParetoPoint], point: ParetoPoint) -> None:
    """Append a point whose second cost is lower, and drop those that it dominates.

    Its first cost may be lower, too, because proofs allow for a relative error of 1e-9.
    """
    while points and point.costs[0] <= points[-1].costs[0] * (1.0 + _ROUNDING):
        points.pop()
    points.append(point)


def warn_of_incomplete(status: str, n_trees: int) -> None:
    """Warn if the search for a front was stopped."""
    if status != "optimal":
        warn(
            f"the search stopped ({status}) with {n_trees} trees; the front may have further "
            "trees, or better ones",
            SearchLimitWarning,
        )
