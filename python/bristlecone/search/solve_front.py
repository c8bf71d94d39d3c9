"""Fronts and constrained searches of the engine, for the estimators."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone import _core
from bristlecone.search.front import ParetoFront, ParetoPoint
from bristlecone.tree import Tree

__all__ = ["FrontSolution", "pareto_front", "solve_front"]


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
        positives and false negatives, cost and rows per limited treatment.
    objective, lower_bound, status, n_nodes_explored, trace
        As in ``Solution``; the objective of a measure is 1 - measure.
    """

    feature: NDArray[np.int64]
    children_left: NDArray[np.int64]
    children_right: NDArray[np.int64]
    labels: NDArray[np.int64]
    costs: list[float]

    def __init__(self, front: _core.Front) -> None:
        self.front = front
        self.objective = front.objective
        self.lower_bound = front.lower_bound
        self.status = front.status
        self.n_nodes_explored = front.n_nodes_explored
        self.n_distinct_rows = front.n_distinct_rows
        self.n_active_features = front.n_active_features
        self.trace = front.trace
        if front.best is not None:
            best = front.points[front.best]
            for name in ("feature", "children_left", "children_right", "labels", "costs"):
                setattr(self, name, getattr(best, name))


def solve_front(
    task: str, data: dict[str, Any], features: NDArray[np.uint8], **settings: Any
) -> FrontSolution:
    """Best tree of a task that is searched for over fronts.

    Parameters
    ----------
    task : str
        "f-measure" (data: labels, beta), "matthews" (labels), "demographic-parity" and
        "equality-of-opportunity" (labels, group, delta), "label-costs" (costs (n, K), capacity
        (K,): largest weight of the rows a label may be given, inf where unlimited),
        "fair-survival" (time, event, group, delta, tau). Labels and groups are int64 arrays of
        0 and 1; all take weight, an array or None.
    data : dict
        Arrays and numbers of the task.
    features : array of uint8, shape (n, n_features)
        Binary features, C-contiguous.
    **settings
        Limits of the search, and ``callback``, as of every function of the engine.

    Returns
    -------
    FrontSolution

    Raises
    ------
    ValueError
        For data that do not fit the task; the array or parameter is named.
    """
    return FrontSolution(_core.solve_front(task, data, features, **settings))


def pareto_front(
    labels: NDArray[np.int64],
    features: NDArray[np.uint8],
    weight: NDArray[np.float64] | None = None,
    **settings: Any,
) -> ParetoFront:
    """All trees that are not dominated in false positives and false negatives.

    Parameters
    ----------
    labels : array of int64, shape (n,)
        0 and 1, the positive class.
    features : array of uint8, shape (n, n_features)
        Binary features, C-contiguous.
    weight : array of float, shape (n,), optional
        Row weights.
    **settings
        Limits of the search, as in ``solve_front``.

    Returns
    -------
    ParetoFront
        The costs are weights of rows.
    """
    data = {"labels": labels, "weight": weight}
    front = _core.solve_front("confusion", data, features, **settings)
    return public_front(front, features, weight, ("false positives", "false negatives"))


def public_front(
    front: _core.Front,
    features: NDArray[np.uint8],
    weight: NDArray[np.float64] | None,
    cost_names: tuple[str, ...],
) -> ParetoFront:
    """The engine's front with fitted trees."""
    points = []
    for point in front.points:
        children = point.children_left, point.children_right
        tree = Tree.grown(*children, point.feature, features, weight)
        points.append(ParetoPoint(tuple(point.costs), tree, point.labels[tree.leaves]))
    return ParetoFront(points, cost_names, front.status)
