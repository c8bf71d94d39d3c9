"""Random problems of regression trees and of custom tasks."""

import math
from decimal import Decimal
from fractions import Fraction

import exhaustive as plain
import numpy as np
import shrunk_plainly
from drawing import (
    Problem,
    Ranges,
    distinct_columns,
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


def exact_sum(values):
    whole, unit = plain.whole(values)
    return whole.sum() * unit


def regression(rng):
    parameters = shared_parameters(rng)
    X = rows(rng)
    given, kept = weights(rng, len(X))
    ranges = Ranges(rng)
    given = ranges.weights(given, len(X))
    kept, weight = prepared(rng, parameters, X, given)
    y = ranges.values(numbers(rng, len(X), least=-2) + one_of(rng, 0.0, 0.0, 50.0))
    target = y[kept]
    amount = parameters["shrinkage"] = shrinkage(rng)

    def also(model):
        means = model.leaf_means_[model.tree_.leaf_index(model.encoder_.transform(X[kept]))]
        error = np.average((target - means) ** 2, weights=weight)
        own = model.objective_value_ - parameters["leaf_penalty"] * model.n_leaves_
        # Means are rounded, so a perfect fit has a small error relative to the squares.
        reported = (own, error, max(model.objective_value_, 1e-12 * (target**2).max()))
        return [(model.shrinkage_, amount), reported, *predictions(model)]

    def predictions(model):
        for path in shrunk_plainly.paths(model, X[kept]):
            yield (
                model.predict(X[kept][path[-1][:1]])[0],
                shrunk_plainly.mean(
                    path, lambda r: weight[r] @ target[r], lambda r: weight[r].sum(), amount
                ),
                np.abs(target).max(),
            )

    parameters["objective"] = "squared-error"
    return Problem(
        OptimalTreeRegressor, parameters, X, {"y": y, "sample_weight": given}, kept, weight,
        plain.squared_errors(target, weight), total=exact_sum(weight), also=also,
        wide=ranges.wide, constant=frozenset({"objective"}), elsewhere=frozenset({"exposure"}),
    )  # fmt: skip


def counts(rng):
    parameters = {**shared_parameters(rng), "objective": "poisson"}
    amount = parameters["shrinkage"] = shrinkage(rng)
    X = rows(rng)
    given, kept = weights(rng, len(X))
    ranges = Ranges(rng)
    given = ranges.weights(given, len(X))
    kept, weight = prepared(rng, parameters, X, given)
    y = ranges.values(numbers(rng, len(X)), offset=False)
    exposure = one_of(rng, None, np.ones(len(X)), 0.1 + 3 * rng.random(len(X)))
    if exposure is not None and rng.random() < 0.5:
        exposure = np.maximum(ranges.values(exposure, offset=False), 1e-300)
    exposed = (np.ones(len(X)) if exposure is None else exposure)[kept]
    deviance = plain.HalfDeviance(y[kept], exposed, weight)

    def also(model):
        for place, node in enumerate(model.tree_.leaves):
            inside = np.flatnonzero(model.apply(X[kept]) == node)
            counted, total = deviance.sums(inside)
            yield model.leaf_means_[place], float(counted / total)
        counted, total = deviance.sums(np.arange(len(weight)))
        pseudo = Decimal(amount) * total / counted if counted else Decimal(0)
        for path in shrunk_plainly.paths(model, X[kept]):
            rate = shrunk_plainly.mean(
                path, lambda r: deviance.sums(r)[0], lambda r: deviance.sums(r)[1], pseudo
            )
            yield model.predict(X[kept][path[-1][:1]])[0], float(rate)

    return Problem(
        OptimalTreeRegressor, parameters, X,
        {"y": y, "sample_weight": given, "exposure": exposure}, kept, weight, deviance.cost,
        total=exact_sum(weight), also=also, wide=ranges.wide, leaf_terms=deviance.terms,
        constant=frozenset({"objective"}),
    )  # fmt: skip


# --- custom tasks ------------------------------------------------------------------------------


class PoissonDeviance(Task):
    """From the guide: by rounding, costs are slightly below their bound of 0."""

    def statistics(self, X, y):
        events, exposure = y.T
        return np.column_stack([events, exposure, xlogy(events, events / exposure)])

    def leaf_cost(self, sums):
        events, exposure, saturated = sums.T
        # Next to heavy rows, the exposure of light ones may be rounded to 0.
        with np.errstate(invalid="ignore", divide="ignore"):
            return 2 * (saturated - xlogy(events, events / exposure))

    def lower_bound(self, sums):
        return np.zeros(len(sums))

    def leaf_value(self, sums):
        return sums[:, 0] / sums[:, 1]


class Transport(Task):
    """The cost of a leaf is its imbalance, its weight is limited, and splits have prices."""

    def __init__(self, most, price):
        self.most, self.price = most, price

    def statistics(self, X, y):
        return np.column_stack([np.ones(len(y)), y])

    def leaf_cost(self, sums):
        return np.where(np.abs(sums[:, 1]) > self.most, np.inf, -np.abs(sums[:, 1]))

    def split_cost(self, sums):
        return self.price * sums[:, 0]


def own_task(rng):
    parameters = shared_parameters(rng, seeded=False)
    X = rows(rng)
    n = len(X)
    given, kept = weights(rng, n)
    ranges = Ranges(rng)
    given = ranges.weights(given, n)
    kept, weight = prepared(rng, parameters, X, given)
    split_cost, leaf_terms, features = None, None, X[kept]
    if parameters["encoder"] == "auto":
        features = features[:, distinct_columns(features)]
    if rng.random() < 0.5:
        exposure = one_of(rng, np.ones(n), rng.uniform(0.5, 2.0, n))
        events = rng.integers(0, 3, n) * exposure if rng.random() < 0.2 else rng.integers(0, 3, n)
        y, task = np.column_stack([events, exposure]), PoissonDeviance()
        w, e, t = (decimals(values) for values in (weight, *y[kept].T))
        # The task sums doubles; each is a rounded share of the logarithm.
        logarithm = np.array([a * (a / b).ln() if a else a for a, b in zip(e, t, strict=True)])

        def parts(rows):
            events = (w * e)[rows].sum()
            rate = events / (w * t)[rows].sum()
            return [*(w * logarithm)[rows], -events * rate.ln() if events else events]

        def size(rows):
            # The error is relative to the events if the logarithm is that of a ratio of 1.
            return sum(map(abs, parts(rows))) + 2 * (w * e)[rows].sum()

        def leaf_cost(rows):
            cost = sum(parts(rows))
            return 0 if abs(cost) <= plain.NOTHING * size(rows) else plain.units(2 * cost)

        def leaf_terms(rows):
            return plain.units(2 * size(rows))
    else:
        y = ranges.values(numbers(rng, n, least=-2))
        # Between existing sums, so rounding does not matter.
        most, price = one_of(rng, 1e9, 3.0123456), one_of(rng, 0.0, 0.1)
        task = Transport(math.inf if ranges.wide else most, price)
        (target, unit), (w, weight_unit) = plain.whole(y[kept]), plain.whole(weight)

        def leaf_cost(rows):
            carried = abs((w[rows] * target[rows]).sum()) * unit * weight_unit
            return math.inf if carried > task.most else -plain.units(carried)

        # Sums are rounded relative to their terms.
        def leaf_terms(rows):
            return plain.units(abs(w[rows] * target[rows]).sum() * unit * weight_unit)

        def split_cost(rows, asked, column):
            return plain.units(Fraction(price) * w[rows].sum() * weight_unit)

    return Problem(
        OptimalTree, {**parameters, "task": task}, X, {"y": y, "sample_weight": given}, kept,
        weight, leaf_cost, split_cost, exact_sum(weight), saved=False, wide=ranges.wide,
        leaf_terms=leaf_terms, features=features,
    )  # fmt: skip


def decimals(values):
    return np.array([Decimal(value) for value in values.tolist()], dtype=object)
