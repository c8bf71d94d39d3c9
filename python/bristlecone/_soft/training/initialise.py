"""Starting points of restarts: random hyperplanes, or clusters of the features (paper, C.0.1)."""

from __future__ import annotations

import numpy as np
from scipy.special import expit
from sklearn.cluster import KMeans
from sklearn.metrics import davies_bouldin_score

from bristlecone._soft import routing
from bristlecone._soft.models import Sample
from bristlecone._soft.training.optimise import minimise
from bristlecone._soft.training.problem import Parameters, Problem, Rows
from bristlecone._types import Floats, Integers

# Number of clusterings to choose from.
_CLUSTERINGS = 3
# Penalty of a logistic regression, as scikit-learn's default C = 1 per row.
_RIDGE = 1.0
_STEEPNESS = 2.0
_ITERATIONS = 30
_TOL = 1e-3


def initial(problem: Problem, method: str, random: np.random.RandomState) -> Parameters:
    """First parameters of a restart.

    Parameters
    ----------
    problem : Problem
    method : {"kmeans", "random"}
    random : RandomState
    """
    if method == "kmeans":
        splits = _clustered(problem, random)
        leaf = routing.hard_leaf(splits @ problem.rows.design)
        every = np.arange(routing.n_leaves(problem.depth))
        member = (every[:, np.newaxis] == leaf).astype(np.float64)
    else:
        splits = _random(problem, random)
        member = routing.leaf_probabilities(splits @ problem.rows.design)
    linear, shape = fit_leaves(problem, problem.rows, member * problem.rows.weight)
    return Parameters(splits, linear, shape)


def fit_leaves(problem: Problem, rows: Rows, member: Floats) -> tuple[Floats, Floats]:
    """Parameters of every leaf near the maximum likelihood of its rows.

    ``member`` (k, n) are the weights of the rows in each leaf. They start from the curve of all
    rows, so that a leaf without an event has parameters, too.
    """
    sample = Sample(problem.rows.clock[0], problem.rows.event > 0, problem.rows.weight)
    intercept, shape = problem.model.start(sample)
    first = np.concatenate([np.zeros(problem.width - 1), [intercept], shape])
    bounds = problem.leaf_bounds(1)
    leaves = []
    for weight in member:

        def fused(leaf: Floats, own: Floats = weight[np.newaxis]) -> tuple[float, Floats]:
            value, slope = problem.leaf_loss(leaf, rows, own)
            penalty, by_penalty = problem.penalty_alone(leaf)
            return value + penalty, slope + by_penalty

        tol = _TOL * max(float(weight.sum()), 1e-6)
        found = minimise(fused, first, max_iter=_ITERATIONS, tol=tol, bounds=bounds)
        leaves.append(found.x)
    return problem.unpack(np.concatenate(leaves))


def _random(problem: Problem, random: np.random.RandomState) -> Floats:
    """Hyperplanes of random direction through the middle of the rows that reach them."""
    rows = problem.rows
    splits = np.zeros((routing.n_splits(problem.depth), problem.width))
    node = np.zeros(len(rows.event), dtype=np.int64)
    for split in range(len(splits)):
        direction = random.standard_normal(problem.width - 1)
        direction *= _STEEPNESS / max(float(np.linalg.norm(direction)), 1e-12)
        along = direction @ rows.design[:-1]
        here = node == split
        middle = float(np.median(along[here])) if here.any() else 0.0
        splits[split, :-1], splits[split, -1] = direction, -middle
        left = splits[split] @ rows.design >= 0
        node[here] = 2 * split + np.where(left[here], 1, 2)
    return splits


def _clustered(problem: Problem, random: np.random.RandomState) -> Floats:
    """Recursive two-means down the tree, the best of several by the Davies–Bouldin index."""
    rows = problem.rows
    # Distances between features scaled to [0, 1].
    points = np.ascontiguousarray((rows.design[:-1] * problem.scale[:, np.newaxis]).T)

    def index(node: Integers) -> float:
        distinct = np.unique(node).size
        return davies_bouldin_score(points, node) if 1 < distinct < len(points) else np.inf

    trials = [_two_means(points, rows.weight, problem.depth, random) for _ in range(_CLUSTERINGS)]
    best = min(trials, key=index)
    splits = np.zeros((routing.n_splits(problem.depth), problem.width))
    for split in range(len(splits)):
        leaves = routing.subtree(problem.depth, split)[1] + len(splits)
        here = (best >= leaves[0]) & (best <= leaves[-1])
        left = best < leaves[len(leaves) // 2]
        inside = rows.take(here)
        splits[split] = weighted_logistic(inside, left[here].astype(np.float64), inside.weight)
    return splits


def _two_means(
    points: Floats, weight: Floats, depth: int, random: np.random.RandomState
) -> Integers:
    """Node of every row after 2-means at each split; a cluster of one point is not split."""
    node = np.zeros(len(points), dtype=np.int64)
    for split in range(routing.n_splits(depth)):
        here = np.flatnonzero(node == split)
        label = np.zeros(len(here), dtype=np.int64)
        if len(here) > 1 and (points[here] != points[here[0]]).any():
            clusters = KMeans(2, n_init=1, random_state=random, max_iter=30)
            label = clusters.fit(points[here], sample_weight=weight[here]).labels_
        node[here] = 2 * split + 1 + label
    return node


def weighted_logistic(
    rows: Rows, label: Floats, weight: Floats, first: Floats | None = None
) -> Floats:
    """Logit (p + 1,) of a weighted logistic regression of ``label`` (0 or 1), lightly penalised."""
    total = float(weight.sum())
    start = np.zeros(len(rows.design)) if first is None else first
    if not total > 0:
        return start
    ridge = np.append(np.full(len(rows.design) - 1, _RIDGE / max(len(label), 1)), 0.0)
    # Without both classes the intercept would diverge.
    if not 0 < weight @ label < total:
        ridge[-1] = ridge[0] if len(ridge) > 1 else _RIDGE
    share = weight / total

    def fused(logit: Floats) -> tuple[float, Floats]:
        v = logit @ rows.design
        value = float(share @ (np.logaddexp(0.0, v) - label * v))
        slope = rows.design @ (share * (expit(v) - label))
        return value + 0.5 * float(logit @ (ridge * logit)), slope + ridge * logit

    return minimise(fused, start, max_iter=50, tol=1e-4).x
