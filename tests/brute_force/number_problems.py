"""Random problems of regression trees and of tasks of one's own."""

import math

import numpy as np
import shrunk_plainly
from drawing import (
    Problem,
    numbers,
    one_of,
    prepared,
    rows,
    shared_parameters,
    shrinkage,
    weights,
)
from scipy.special import xlogy

from bristlecone import (
    OptimalTree,
    OptimalTreeRegressor,
    Task,
)


def regression(rng):
    parameters = shared_parameters(rng)
    X = rows(rng)
    given, kept = weights(rng, len(X))
    kept, weight = prepared(rng, parameters, X, given)
    y = numbers(rng, len(X), least=-2) + one_of(rng, 0.0, 0.0, 50.0)
    target = y[kept]

    def leaf_cost(rows):
        mean = np.average(target[rows], weights=weight[rows])
        return (weight[rows] * (target[rows] - mean) ** 2).sum()

    amount = parameters["shrinkage"] = shrinkage(rng)

    def also(model):
        means = model.leaf_means_[model.tree_.leaf_index(model.encoder_.transform(X[kept]))]
        error = np.average((target - means) ** 2, weights=weight)
        told = (model.objective_value_ - parameters["leaf_penalty"] * model.n_leaves_, error)
        return [(model.shrinkage_, amount), told, *predictions(model)]

    def predictions(model):
        for path in shrunk_plainly.paths(model, X[kept]):
            yield (
                model.predict(X[kept][path[-1][:1]])[0],
                shrunk_plainly.mean(
                    path, lambda r: weight[r] @ target[r], lambda r: weight[r].sum(), amount
                ),
            )

    return Problem(
        OptimalTreeRegressor, parameters, X, {"y": y, "sample_weight": given}, kept, weight,
        leaf_cost, total=weight.sum(), also=also,
    )  # fmt: skip


# --- tasks of one's own ------------------------------------------------------------------------


class PoissonDeviance(Task):
    """Of the guide: rounding makes costs a little less than the zero they are bounded by."""

    def statistics(self, X, y):
        events, exposure = y.T
        return np.column_stack([events, exposure, xlogy(events, events / exposure)])

    def leaf_cost(self, sums):
        events, exposure, saturated = sums.T
        return 2 * (saturated - xlogy(events, events / exposure))

    def lower_bound(self, sums):
        return np.zeros(len(sums))

    def leaf_value(self, sums):
        return sums[:, 0] / sums[:, 1]


class Transport(Task):
    """A leaf costs its imbalance, any sign, and may not carry more than it may; splits cost too."""

    def __init__(self, most, price):
        self.most, self.price = most, price

    def statistics(self, X, y):
        return np.column_stack([np.ones(len(y)), y])

    def leaf_cost(self, sums):
        return np.where(np.abs(sums[:, 1]) > self.most, np.inf, -np.abs(sums[:, 1]))

    def split_cost(self, sums):
        return self.price * sums[:, 0]


def own_task(rng):
    parameters = shared_parameters(rng)
    X = rows(rng)
    n = len(X)
    given, kept = weights(rng, n)
    kept, weight = prepared(rng, parameters, X, given)
    split_cost = None
    if rng.random() < 0.5:
        exposure = one_of(rng, np.ones(n), rng.uniform(0.5, 2.0, n))
        events = rng.integers(0, 3, n) * exposure if rng.random() < 0.2 else rng.integers(0, 3, n)
        y, task = np.column_stack([events, exposure]), PoissonDeviance()
        events, exposure = y[kept].T

        def leaf_cost(rows):
            w, e, t = weight[rows], events[rows], exposure[rows]
            rate = (w * e).sum() / (w * t).sum()
            return 2 * (w * (xlogy(e, e) - xlogy(e, rate * t) - e + rate * t)).sum()
    else:
        y = numbers(rng, n, least=-2)
        # Between the sums that there are, so that no rounding matters.
        task = Transport(one_of(rng, 1e9, 3.0123456), one_of(rng, 0.0, 0.1))
        target = y[kept]

        def leaf_cost(rows):
            carried = abs((weight[rows] * target[rows]).sum())
            return math.inf if carried > task.most else -carried

        def split_cost(rows, asked, column):
            return task.price * weight[rows].sum()

    class Own(Problem):
        def value(self, model):
            value = super().value(model)
            if split_cost is None:
                return value
            node = model.decision_path(self.X)[self.kept].toarray().astype(bool)
            inner = np.flatnonzero(model.tree_.children_left >= 0)
            reach = [np.flatnonzero(node[:, k]) for k in inner]
            return value + sum(split_cost(rows, (), None) for rows in reach) / self.total

    return Own(
        OptimalTree, {**parameters, "task": task}, X, {"y": y, "sample_weight": given}, kept,
        weight, leaf_cost, split_cost, weight.sum(), saved=False,
    )  # fmt: skip
