"""Common parts of random problems: rows, weights, parameters, and the true optimum."""

import math
from copy import deepcopy
from dataclasses import dataclass, field, replace
from fractions import Fraction

import exhaustive as plain
import numpy as np
from sklearn.preprocessing import FunctionTransformer

# By how many rounding errors a limit may be exceeded: by trees that an estimator must
# consider, and by trees that it may return.
EXACT, ALLOWED = 0, 3


def one_of(rng, *values):
    return values[rng.integers(len(values))]


def as_given():
    """An encoder that keeps all boolean columns, including equal and constant ones."""
    return FunctionTransformer(feature_names_out="one-to-one")


def shared_parameters(rng, seeded=True):
    """Parameters of all estimators, and a seed if there is one."""
    parameters = {
        "max_depth": one_of(rng, 0, 1, 2, 2, 3, 3, None),
        "max_leaf_nodes": one_of(rng, None, None, 1, 2, 3, 4, 6),
        "min_samples_leaf": one_of(rng, 1, 1, 1, 2, 3, 0.1, 0.3),
        "leaf_penalty": one_of(rng, 0, 0.0, 0.0, 0.0, 1e-12, 1e-6, 0.005, 0.02, 0.1, 1, 1000.0),
        "time_limit": one_of(rng, None, 1000.0),
        "memory_limit": one_of(rng, None, 1 << 28),
        "n_jobs": one_of(rng, None, None, 1, 1, 2, -1),
        "encoder": one_of(rng, "auto", as_given()),
        "verbose": one_of(rng, 0, 1, True),
    }
    if seeded:
        parameters["random_state"] = one_of(rng, None, 7, np.random.RandomState(0))
        # test_teacher_trust.py has the brute-force tests for smoothed outcomes.
        parameters |= {"teacher": None, "teacher_weight": one_of(rng.spawn(1)[0], 0.0, 0.5, 1)}
    unlimited = parameters["max_depth"] is None and parameters["max_leaf_nodes"] is None
    if unlimited and not parameters["leaf_penalty"]:
        parameters["leaf_penalty"] = 0.03
    return parameters


def shrinkage(rng, *more):
    """λ, mostly positive; other draws do not depend on it."""
    return one_of(rng.spawn(1)[0], 0, 0.0, 1e-3, 0.5, 3, 20.0, 1e9, *more)


def at_least(minimum, total):
    """The count that a number, or a share of the total, means."""
    return minimum if isinstance(minimum, int) else math.ceil(minimum * total)


def rows(rng, most_columns=5):
    """Boolean rows, often repeated, with columns that may be equal, opposite or constant."""
    n, columns = int(rng.integers(4, 25)), int(rng.integers(1, most_columns + 1))
    X = rng.random((n, columns)) < one_of(rng, 0.5, 0.5, 0.3)
    if rng.random() < 0.4:
        X = X[rng.integers(0, one_of(rng, 3, 6), n) % n]
    if columns > 1 and rng.random() < 0.3:
        X[:, rng.integers(columns)] = one_of(rng, X[:, 0], ~X[:, 0], np.ones(n, dtype=bool))
    return X


def distinct_columns(X):
    """Columns that are not constant, and neither equal nor opposite to an earlier one."""
    found = []
    for column in range(X.shape[1]):
        own = X[:, column]
        earlier = any((X[:, c] == own).all() or (X[:, c] != own).all() for c in found)
        if own.any() and not own.all() and not earlier:
            found.append(column)
    return found


def weights(rng, n):
    """Weights of rows as given, and the rows that are kept."""
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
    """Weights, or parts whose sums are equal except for rounding; other draws stay the same."""
    unit = one_of(deepcopy(rng).spawn(2)[1], 1.0, 1.0, 0.1, 0.3, 1 / 7)
    return None if given is None else given * unit


def balanced(rng, n, n_classes=2):
    """Labels in which all classes occur, with equal or unequal frequencies."""
    labels = np.arange(n) % n_classes if rng.random() < 0.5 else rng.integers(0, n_classes, n)
    labels[:n_classes] = np.arange(n_classes)
    return rng.permutation(labels)


def related(rng, X, n_classes=2):
    """Labels that depend more or less on the columns."""
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


class Ranges:
    """Wide ranges of values for some problems; other draws do not depend on them.

    ``values`` and ``weights`` do not change ordinary problems.
    """

    def __init__(self, rng, share=0.25):
        self.rng = deepcopy(rng).spawn(3)[2]
        self.wide = bool(self.rng.random() < share)

    def values(self, values, offset=True):
        """A few huge or tiny values, an offset, another unit, or denormals; signs stay the same."""
        values = np.array(values, dtype=float)
        if not self.wide or not values.size:
            return values
        rng = self.rng
        kind = one_of(rng, "as they are", "huge", "huge", "tiny", "offset", "unit", "any", "least")
        some = rng.random(values.shape) < one_of(rng, 0.1, 0.5)
        some.flat[rng.integers(values.size)] = True
        if kind == "huge":
            values[some] = (values[some] + 1) * 10.0 ** rng.integers(2, 13)
        elif kind == "tiny":
            values[some] *= 10.0 ** -rng.integers(2, 13)
        elif kind == "offset" and offset:
            values += 10.0 ** rng.integers(3, 14)
        elif kind == "unit":
            values *= 10.0 ** rng.integers(-300, 301)
        elif kind == "any":
            values *= 10.0 ** rng.integers(-12, 13, values.shape)
        elif kind == "least":
            values[some] = np.sign(values[some]) * rng.integers(1, 9, values.shape)[some] * 5e-324
        return values

    def weights(self, given, n, few=False):
        """Weights from 1e-12 to 1e12, in some unit; weights of 0 stay 0.

        With ``few``, all weights except one have the same unit, so there are few different sums.
        """
        rng = self.rng
        if not self.wide or rng.random() < 0.3:
            return given
        kind = one_of(rng, "one", "unit") if few else one_of(rng, "one", "any", "any", "unit")
        powers = rng.integers(-12, 13, n)
        if kind == "unit":
            powers = powers[0]
        elif kind == "one":
            powers = np.where(np.arange(n) == rng.integers(n), powers, 0)
        return (np.ones(n) if given is None else given) * 10.0**powers


@dataclass
class Amount:
    """A number, and the sum of its absolute terms, to which rounding is relative."""

    value: Fraction | float
    terms: Fraction | float


@dataclass
class Problem:
    """A problem whose objective is a sum over the leaves, divided by the total weight.

    Costs are whole numbers in the units of ``exhaustive``; amounts are fractions.
    """

    estimator: type
    parameters: dict
    X: np.ndarray
    fit: dict
    kept: np.ndarray
    weight: np.ndarray  # of the kept rows
    leaf_cost: object = None
    split_cost: object = None
    total: Fraction = Fraction(1)
    saved: bool = True
    features: np.ndarray = None
    reference: float | None = None
    # Other statements of a fitted tree about its rows, as pairs of reported and true values.
    also: object = lambda model: []
    # The error of ``fit`` if it does not accept such rows.
    # Whether the range of values or weights is so wide that ``fit`` may reject them.
    wide: bool = False
    # For rows: the absolute terms of a leaf's cost; by default the cost itself.
    leaf_terms: object = None
    # For a fitted tree: cost and terms of its predictions; by default those of its rows as leaves.
    said_cost: object = None
    # Scale of the certificate if all costs of a tree are 0.
    least_term: Fraction = Fraction(0)
    # Parameters and arguments of ``fit`` that another kind of problem draws.
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
        self.penalty = Fraction(self.parameters.get("leaf_penalty", 0.0))

    def make(self, **changes):
        return self.estimator(**{**self.parameters, **changes})

    def without_reference(self):
        """The same problem without a reference model, for searches that do not accept one."""
        if "reference_loss" not in self.fit:
            return self
        fit = {name: value for name, value in self.fit.items() if name != "reference_loss"}
        return replace(self, fit=fit, reference=None, cache={})

    def objective(self, cost, leaves):
        """Objective of a tree with this many leaves, from its cost in units."""
        return plain.amount(cost) / self.total + self.penalty * leaves

    def size(self, terms, leaves):
        """Scale of the certificate: the terms of a tree with this many leaves, in units."""
        return (plain.amount(terms) / self.total or self.least_term) + self.penalty * leaves

    def least(self, sizes, most):
        """The least objective, from least costs by number of leaves."""
        found = [
            Amount(self.objective(cost, k), self.size(terms, k))
            for k, (cost, terms) in sizes.items()
            if k <= most
        ]
        return min(found, key=lambda one: one.value, default=Amount(math.inf, 0))

    def optimum(self, most_leaves):
        """Least objectives: of trees that keep all limits, and of those that ``fit`` may return."""
        if "sizes" not in self.cache:
            self.cache["sizes"] = plain.least_costs(
                self.features, self.leaf_cost, self.depth, self.min_rows, self.split_cost,
                leaf_terms=self.leaf_terms,
            )  # fmt: skip
        if most_leaves not in self.cache:
            self.cache[most_leaves] = self.least(self.cache["sizes"], most_leaves)
        return self.cache[most_leaves], self.cache[most_leaves]

    def leaves(self, model):
        node = model.apply(self.X)[self.kept]
        return [np.flatnonzero(node == leaf) for leaf in np.unique(node)]

    def value(self, model):
        """Objective of a fitted tree, from its rows."""
        leaves, tree = self.leaves(model), model.tree_
        terms = self.leaf_terms or (lambda rows: abs(self.leaf_cost(rows)))
        if self.said_cost:
            cost, size = self.said_cost(model)
        else:
            cost, size = (sum(map(of, leaves)) for of in (self.leaf_cost, terms))

        def asking(node, rows, asked):
            if tree.children_left[node] < 0:
                return 0
            column = int(tree.feature[node])
            yes = self.features[rows, column]
            paid = self.split_cost(rows, asked, column)
            for child, side in ((tree.children_left, yes), (tree.children_right, ~yes)):
                paid += asking(child[node], rows[side], asked | {column})
            return paid

        paid = asking(0, np.arange(len(self.features)), frozenset()) if self.split_cost else 0
        leaves = len(leaves)
        return Amount(self.objective(cost + paid, leaves), self.size(size + paid, leaves))


@dataclass
class Chosen(Problem):
    """A problem in which leaves have labels and trees are compared by sums over their leaves.

    Outcomes are tuples of whole numbers.
    """

    leaf_outcomes: object = None  # rows -> list of (outcome, terms in the unit of the first)
    score: object = None  # outcome, tolerance -> objective without penalty, inf: not allowed
    row_outcome: object = None  # fitted model -> outcome of its tree, its terms
    costs_of: object = None  # labels of the rows -> outcome
    unit: Fraction | None = None  # scale of the terms; None if the objective has only one sign
    count: Fraction = Fraction(1)  # unit of all components, if they have one

    def numbers(self, outcome):
        return [float(part * self.count) for part in outcome]

    def scored(self, leaves, outcome, terms, tolerance):
        value = self.score(outcome, tolerance)
        if value == math.inf:
            return Amount(math.inf, 0)
        terms = value if self.unit is None else terms * self.unit / self.total
        terms = (abs(terms) or self.least_term) + self.penalty * leaves
        return Amount(value + self.penalty * leaves, terms)

    def optimum(self, most_leaves):
        if "outcomes" not in self.cache:
            self.cache["outcomes"] = plain.all_outcomes(
                self.features, self.leaf_outcomes, self.depth, self.min_rows, self.most_leaves
            )
        if most_leaves not in self.cache:
            self.cache[most_leaves] = tuple(
                min(
                    (
                        self.scored(leaves, outcome, terms, tolerance)
                        for (leaves, *outcome), terms in self.cache["outcomes"].items()
                        if leaves <= most_leaves
                    ),
                    key=lambda one: one.value,
                    default=Amount(math.inf, 0),
                )
                for tolerance in (EXACT, ALLOWED)
            )
        return self.cache[most_leaves]

    def value(self, model):
        return self.scored(len(self.leaves(model)), *self.row_outcome(model), ALLOWED)


def front_size(rng, parameters, counted):
    """Columns with a short list of all outcomes; ``counted`` if many outcomes are equal."""
    if not counted:
        parameters["max_depth"] = one_of(rng, 0, 1, 2, 2, 2)
        return 4
    return 4 if parameters["max_depth"] is None else 5


def few_weights(rng, X):
    """Weights with few different sums; mostly None."""
    n = len(X)
    given = one_of(rng, *[None] * 3, rng.integers(0, 3, n).astype(float)) if n <= 12 else None
    given = None if given is None or (given > 0).sum() < 4 else parts(rng, given)
    return given, np.ones(n, dtype=bool) if given is None else given > 0


def remembering(function):
    """The same function of a set of rows, which is called once per set."""
    known = {}

    def asked(rows):
        key = rows.tobytes()
        if key not in known:
            known[key] = function(rows)
        return known[key]

    return asked


def prepared(rng, parameters, X, given):
    """Weights of the kept rows, for which leaves with the minimum of rows are possible."""
    kept = np.ones(len(X), dtype=bool) if given is None else given > 0
    weight = np.ones(kept.sum()) if given is None else given[kept]
    parameters["min_samples_leaf"] = min(parameters["min_samples_leaf"], int(kept.sum()))
    return kept, weight
