"""Pareto fronts: trees that are not worse than another tree in every cost."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from bristlecone import _core
from bristlecone._core import BinaryMatrix
from bristlecone._encoder.use import binary_features
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
    tree : Tree
        The tree, over the binary features of the encoder.
    labels : array of int, shape (tree.n_leaves,)
        Position of the class that every leaf predicts, left to right.
    encoder : transformer
        The fitted encoder.
    classes : array, shape (2,)
        The classes.

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
    tree: Tree = field(repr=False)
    labels: Integers = field(repr=False)
    encoder: Any = field(repr=False, default=None)
    classes: Any = field(repr=False, default=None)

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
        leaf = self.tree.leaf_index(binary_features(self.encoder, X))
        predicted: NDArray[Any] = self.classes[self.labels[leaf]]
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

    def of(self, encoder: Any, classes: NDArray[Any]) -> ParetoFront:
        """The same front for these classes and features of the encoder."""
        points = [replace(point, encoder=encoder, classes=classes) for point in self.points]
        return ParetoFront(points, self.cost_names, self.status)

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
            best = front.points[front.best]
            for name in ("feature", "children_left", "children_right", "labels", "costs"):
                setattr(self, name, getattr(best, name))


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


def pareto_front(
    labels: Integers,
    features: BinaryMatrix,
    weight: Floats | None = None,
    **settings: Any,
) -> ParetoFront:
    """All trees that are not dominated in false positives and false negatives, by weight.

    ``labels`` are int64 of 0 and 1, the positive class; the rest is as in ``solve_front``.
    """
    data = {"labels": labels, "weight": weight}
    front = _core.front("confusion", data, features, **settings)
    _warn_of_limits(front.status, len(front.points))
    return public_front(front, features, weight, ("false positives", "false negatives"))


def _warn_of_limits(status: str, n_trees: int) -> None:
    if status != "optimal":
        warn(
            f"the search stopped ({status}) with {n_trees} trees; others of the front may be "
            "missing, or better than these",
            SearchLimitWarning,
        )


# Differences of rates that are closer count as equal. That is far more than limits have room for,
# 2^-51, and than the rounding of rates.
_ALIKE = 1e-12
# Errors that are closer, as a share of themselves, are equal but for rounding.
_ROUNDING = 1e-12


def fair_front(
    task: str,
    data: dict[str, Any],
    features: BinaryMatrix,
    costs_of: Callable[[Tree, Integers], tuple[float, float]],
    cost_names: tuple[str, str],
    settings: dict[str, Any],
) -> ParetoFront:
    """All trees that are not dominated in error and largest difference between groups.

    Every search finds the fewest errors under a limit just below the difference of the last tree,
    so no tree lies below the staircase of the points. ``costs_of`` gives error and difference of a
    tree with these labels of its leaves; the rest is as in ``solve_front``.
    """
    limit, time_limit = data["delta"], settings["time_limit"]
    start = time.perf_counter()
    points: list[ParetoPoint] = []
    while True:
        if time_limit is not None:
            left = max(0.0, time_limit - (time.perf_counter() - start))
            settings = {**settings, "time_limit": left}
        found = solve_front(task, {**data, "delta": limit}, features, **settings)
        if found.front.best is None:
            break
        children = found.children_left, found.children_right
        tree = Tree.grown(*children, found.feature, features, data["weight"])
        labels = found.labels[tree.leaves]
        costs = costs_of(tree, labels)
        # Equal errors at a smaller difference, or fewer: proofs allow for a relative error of 1e-9.
        while points and costs[0] <= points[-1].costs[0] * (1.0 + _ROUNDING):
            points.pop()
        points.append(ParetoPoint(costs, tree, labels))
        limit = costs[1] - _ALIKE
        if found.status != "optimal" or limit < 0:
            break
    _warn_of_limits(found.status, len(points))
    return ParetoFront(points, cost_names, found.status)


def public_front(
    front: _core.Front,
    features: BinaryMatrix,
    weight: Floats | None,
    cost_names: tuple[str, ...],
) -> ParetoFront:
    """The engine's front with fitted trees."""
    points = []
    for point in front.points:
        children = point.children_left, point.children_right
        tree = Tree.grown(*children, point.feature, features, weight)
        points.append(ParetoPoint(tuple(point.costs), tree, point.labels[tree.leaves]))
    return ParetoFront(points, cost_names, front.status)
