"""What the random problems of all estimators share: rows, weights, parameters, the truth."""

import math
from copy import deepcopy
from dataclasses import dataclass, field, replace

import exhaustive as plain
import numpy as np
from sklearn.preprocessing import FunctionTransformer

# A limit is kept by what is below it by no more than rounding, and never by what is above it by
# more than estimators allow.
EXACT, ALLOWED = 1e-12, 2e-9


def one_of(rng, *values):
    return values[rng.integers(len(values))]


def as_given():
    """An encoder that leaves boolean columns as they are, equal and constant ones among them."""
    return FunctionTransformer(feature_names_out="one-to-one")


def shared_parameters(rng):
    """What every estimator takes."""
    parameters = {
        "max_depth": one_of(rng, 0, 1, 2, 2, 3, 3, None),
        "max_leaf_nodes": one_of(rng, None, None, 1, 2, 3, 4, 6),
        "min_samples_leaf": one_of(rng, 1, 1, 1, 2, 3, 0.1, 0.3),
        "leaf_penalty": one_of(rng, 0, 0.0, 0.0, 0.0, 1e-12, 1e-6, 0.005, 0.02, 0.1, 1, 1000.0),
        "time_limit": one_of(rng, None, 1000.0),
        "memory_limit": one_of(rng, None, 1 << 28),
        "n_jobs": one_of(rng, None, None, 1, 1, 2, -1),
        "encoder": one_of(rng, "auto", as_given()),
        "random_state": one_of(rng, None, 7, np.random.RandomState(0)),
        "verbose": one_of(rng, 0, 1, True),
    }
    unlimited = parameters["max_depth"] is None and parameters["max_leaf_nodes"] is None
    if unlimited and not parameters["leaf_penalty"]:
        parameters["leaf_penalty"] = 0.03
    return parameters


def shrinkage(rng, *more):
    """λ, mostly some; what else is drawn does not depend on it."""
    return one_of(rng.spawn(1)[0], 0, 0.0, 1e-3, 0.5, 3, 20.0, 1e9, *more)


def at_least(minimum, total):
    """Number that a number, or a share of the total, asks for."""
    return minimum if isinstance(minimum, int) else math.ceil(minimum * total)


def rows(rng, most_columns=5):
    """Boolean rows, often repeated, with columns that may be equal, contrary or constant."""
    n, columns = int(rng.integers(4, 25)), int(rng.integers(1, most_columns + 1))
    X = rng.random((n, columns)) < one_of(rng, 0.5, 0.5, 0.3)
    if rng.random() < 0.4:
        X = X[rng.integers(0, one_of(rng, 3, 6), n) % n]
    if columns > 1 and rng.random() < 0.3:
        X[:, rng.integers(columns)] = one_of(rng, X[:, 0], ~X[:, 0], np.ones(n, dtype=bool))
    return X


def weights(rng, n):
    """Row weights as they are given, and the rows that are kept."""
    given = one_of(
        rng,
        *[None] * 6,
        np.ones(n),
        rng.integers(1, 4, n).astype(float),
        rng.integers(0, 3, n).astype(float),
        rng.uniform(0.1, 3.0, n),
        np.exp(rng.normal(0, 2, n)),
    )
    if given is not None and (given > 0).sum() < 4:
        given = None
    given = parts(rng, given)
    kept = np.ones(n, dtype=bool) if given is None else given > 0
    return given, kept


def parts(rng, given):
    """Weights, or parts of them whose sums tie but for rounding; all else is drawn as without."""
    unit = one_of(deepcopy(rng).spawn(2)[1], 1.0, 1.0, 0.1, 0.3, 1 / 7)
    return None if given is None else given * unit


def balanced(rng, n, n_classes=2):
    """Classes that are all there, about equally often or not."""
    labels = np.arange(n) % n_classes if rng.random() < 0.5 else rng.integers(0, n_classes, n)
    labels[:n_classes] = np.arange(n_classes)
    return rng.permutation(labels)


def related(rng, X, n_classes=2):
    """Labels that follow the columns more or less."""
    if rng.random() < 0.5:
        return balanced(rng, len(X), n_classes)
    clean = (X[:, 0].astype(int) + (X[:, -1] & X[:, 0])) % n_classes
    return np.where(rng.random(len(X)) < 0.25, balanced(rng, len(X), n_classes), clean)


def numbers(rng, shape, least=0):
    """Whole numbers or fractions, with ties."""
    return one_of(
        rng,
        rng.integers(least, 3, shape).astype(float),
        rng.integers(least, 2, shape).astype(float),
        np.round(rng.uniform(least, 2, shape), 1),
        rng.uniform(least, 3, shape),
        1000 * rng.uniform(least, 3, shape),
    )


@dataclass
class Problem:
    """A problem whose objective is a sum over the leaves, divided by the total weight."""

    estimator: type
    parameters: dict
    X: np.ndarray
    fit: dict
    kept: np.ndarray
    weight: np.ndarray  # of the kept rows
    leaf_cost: object = None
    split_cost: object = None
    total: float = 1.0
    base: float = 0.0
    saved: bool = True
    features: np.ndarray = None
    reference: float | None = None
    # What else a fitted tree tells of its rows, as pairs of what is told and what is true.
    also: object = lambda model: []
    # What ``fit`` says where it takes no such rows.
    refused: str | None = None
    # Size of the amounts that rounding is relative to, where that is not the objective's.
    scale: float = 0.0
    # Parameters, and arguments of ``fit``, that another kind of problem draws.
    constant: frozenset = frozenset()
    elsewhere: frozenset = frozenset()
    cache: dict = field(default_factory=dict)

    def __post_init__(self):
        if self.features is None:
            self.features = self.X[self.kept]
        n = len(self.features)
        self.depth = self.parameters["max_depth"]
        self.depth = self.features.shape[1] if self.depth is None else self.depth
        self.min_rows = at_least(self.parameters["min_samples_leaf"], n)
        self.most_leaves = min(n, 2**self.depth, self.parameters["max_leaf_nodes"] or n)
        self.penalty = float(self.parameters.get("leaf_penalty", 0.0))

    def make(self, **changes):
        return self.estimator(**{**self.parameters, **changes})

    def without_reference(self):
        """The same problem without a reference model, where a search takes none."""
        if "reference_loss" not in self.fit:
            return self
        fit = {name: value for name, value in self.fit.items() if name != "reference_loss"}
        return replace(self, fit=fit, reference=None, cache={})

    def best(self, sizes, most):
        values = [cost / self.total + self.penalty * k for k, cost in sizes.items() if k <= most]
        return min(values, default=math.inf) - self.base

    def optimum(self, most_leaves):
        """Least objective: of trees that keep all limits exactly, and as the estimator may."""
        if "sizes" not in self.cache:
            self.cache["sizes"] = plain.least_costs(
                self.features, self.leaf_cost, self.depth, self.min_rows, self.split_cost
            )
        least = self.best(self.cache["sizes"], most_leaves)
        return least, least

    def leaves(self, model):
        node = model.apply(self.X)[self.kept]
        return [np.flatnonzero(node == leaf) for leaf in np.unique(node)]

    def value(self, model):
        """Objective of a fitted tree, from its rows."""
        parts = [self.leaf_cost(rows) for rows in self.leaves(model)]
        return sum(parts) / self.total + self.penalty * len(parts) - self.base


@dataclass
class Chosen(Problem):
    """A problem whose trees are chosen by what their leaves add up to, among labels of leaves."""

    leaf_outcomes: object = None  # rows -> list of outcomes
    score: object = None  # array of outcomes, tolerance -> objectives without penalty, inf: not
    row_outcome: object = None  # fitted model -> outcome of its tree
    costs_of: object = None  # labels of the rows -> outcome

    def optimum(self, most_leaves):
        if "outcomes" not in self.cache:
            self.cache["outcomes"] = plain.all_outcomes(
                self.features, self.leaf_outcomes, self.depth, self.min_rows, self.most_leaves
            )
        outcomes = self.cache["outcomes"]
        outcomes = outcomes[outcomes[:, 0] <= most_leaves]
        found = []
        for tolerance in (EXACT, ALLOWED):
            values = self.score(outcomes[:, 1:], tolerance) + self.penalty * outcomes[:, 0]
            found.append(values.min(initial=math.inf) - self.base)
        return tuple(found)

    def value(self, model):
        outcome = np.array([self.row_outcome(model)], dtype=float)
        value = self.score(outcome, ALLOWED)[0]
        return value + self.penalty * len(self.leaves(model)) - self.base


def front_size(rng, parameters, counted):
    """Columns that keep the list of all outcomes short; ``counted`` when many of them are equal."""
    if not counted:
        parameters["max_depth"] = one_of(rng, 0, 1, 2, 2, 2)
        return 4
    return 4 if parameters["max_depth"] is None else 5


def few_weights(rng, X):
    """Weights that leave few different sums: mostly none."""
    n = len(X)
    given = one_of(rng, *[None] * 3, rng.integers(0, 3, n).astype(float)) if n <= 12 else None
    given = None if given is None or (given > 0).sum() < 4 else parts(rng, given)
    return given, np.ones(n, dtype=bool) if given is None else given > 0


def remembering(function):
    """The function of a set of rows, asked once for each."""
    known = {}

    def asked(rows):
        key = rows.tobytes()
        if key not in known:
            known[key] = function(rows)
        return known[key]

    return asked


def prepared(rng, parameters, X, given):
    """Weights of the kept rows; leaves that hold at least that many rows are possible."""
    kept = np.ones(len(X), dtype=bool) if given is None else given > 0
    weight = np.ones(kept.sum()) if given is None else given[kept]
    parameters["min_samples_leaf"] = min(parameters["min_samples_leaf"], int(kept.sum()))
    return kept, weight
