"""Random small problems of every estimator, each with its truth from ``exhaustive``.

``DRAWS`` maps a name to a function of a random generator. A problem says how the estimator is made
and fitted (``parameters``, ``fit``), what the best objective is for a number of leaves
(``optimum``), and what a fitted tree costs by its rows (``value``).
"""

import math
from dataclasses import dataclass, field, replace

import exhaustive as plain
import numpy as np
from scipy.special import xlogy
from sklearn.preprocessing import FunctionTransformer

from bristlecone import (
    CostSensitiveTreeClassifier,
    FairTreeClassifier,
    OptimalSurvivalTree,
    OptimalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    PolicyTree,
    RmstParity,
    Task,
)

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
        "min_samples_leaf": one_of(rng, 1, 1, 1, 2, 3),
        "leaf_penalty": one_of(rng, 0, 0.0, 0.0, 0.0, 1e-12, 1e-6, 0.005, 0.02, 0.1, 1, 1000.0),
        "time_limit": one_of(rng, None, 1000.0),
        "memory_limit": one_of(rng, None, 1 << 28),
        "n_jobs": one_of(rng, None, 1, 2, -1),
        "encoder": one_of(rng, "auto", as_given()),
        "random_state": one_of(rng, None, 7, np.random.RandomState(0)),
        "verbose": one_of(rng, 0, 1, True),
    }
    unlimited = parameters["max_depth"] is None and parameters["max_leaf_nodes"] is None
    if unlimited and not parameters["leaf_penalty"]:
        parameters["leaf_penalty"] = 0.03
    return parameters


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
    kept = np.ones(n, dtype=bool) if given is None else given > 0
    return given, kept


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
        self.min_rows = self.parameters["min_samples_leaf"]
        self.most_leaves = min(n, 2**self.depth, self.parameters["max_leaf_nodes"] or n)
        self.penalty = float(self.parameters["leaf_penalty"])

    def make(self, **changes):
        return self.estimator(**{**self.parameters, **changes})

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
    given = None if given is None or (given > 0).sum() < 4 else given
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


# --- survival ----------------------------------------------------------------------------------


def survival(rng, objective=None):
    objective = objective or one_of(rng, "likelihood", "brier")
    fair = rng.random() < 0.25
    parameters = shared_parameters(rng)
    X = rows(rng, front_size(rng, parameters, False) if fair else 5)
    n = len(X)
    given, kept = weights(rng, n)
    kept, weight = prepared(rng, parameters, X, given)
    time = one_of(
        rng,
        rng.integers(1, 5, n).astype(float),
        rng.integers(0, 9, n).astype(float),
        rng.exponential(10.0, n),
        np.round(rng.exponential(2.0, n), 1) + 0.1,
    )
    event = rng.random(n) < one_of(rng, 0.3, 0.7, 1.0)
    first = int(np.flatnonzero(kept)[0])
    event[first], time[first] = True, max(time[first], 1.0)
    fit = {"y": (event, time), "sample_weight": given}
    entry = np.full(n, -1.0)
    if objective == "likelihood" and rng.random() < 0.4:
        entry = np.floor(time * rng.uniform(0, 0.9, n))
        entry = np.where(entry < time, entry, 0.0)
        time = np.where(time > entry, time, entry + 1)
        y = np.empty(n, dtype=[("dead", bool), ("until", float), ("entry", float)])
        y["dead"], y["until"], y["entry"] = event, time, entry
        fit["y"] = y
    grid = None
    t, e, v = time[kept], event[kept], entry[kept]
    if objective == "brier" and rng.random() < 0.3:
        grid = np.unique(rng.choice(np.concatenate([time[kept] + 0.5, time[kept]]), 3))
        grid = np.append(grid[grid < time[first]], np.unique([time[first], time[first] + 2.0]))
        above = np.searchsorted(grid, t)
        e = e & (above < len(grid))
        t = grid[np.minimum(above, len(grid) - 1)]
    curves = {"likelihood": ("auto", "proportional", "kaplan-meier"),
              "brier": ("auto", "kaplan-meier", "brier-optimal")}[objective]  # fmt: skip
    curve = one_of(rng, *(curves[:2] if fair else curves))
    group, fairness = None, None
    if fair:
        fairness, group = parity(rng, X, kept, fit, t)
    parameters |= {
        "objective": objective,
        "leaf_curve": curve,
        "time_grid": grid if grid is None or rng.random() < 0.5 else grid.tolist(),
        "fairness": fairness,
    }
    if objective == "likelihood":
        hazard, steps = plain.hazards(t, e, v, weight)

        def leaf_cost(rows):
            return plain.likelihood_leaf(rows, e, hazard, weight)[0]

        def mean(rows, tau):
            theta = plain.likelihood_leaf(rows, e, hazard, weight)[1]
            total = np.cumsum(list(steps.values()))
            return plain.restricted_mean(np.array(list(steps)), np.exp(-theta * total), tau)
    else:
        brier = plain.Brier(t, e, weight)
        best = curve == "brier-optimal"

        def leaf_cost(rows):
            return brier.loss(rows, brier.best_curve(rows) if best else brier.kaplan_meier(rows))

        def mean(rows, tau):
            return plain.restricted_mean(brier.times, brier.kaplan_meier(rows), tau)

    cost_of = remembering(leaf_cost)
    likelihood = objective == "likelihood"
    common = dict(
        constant=frozenset(["objective", "time_grid"] if likelihood else ["objective"]),
        elsewhere=frozenset(["reference_loss"] if likelihood else []),
        estimator=OptimalSurvivalTree, parameters=parameters, X=X, fit=fit, kept=kept,
        weight=weight, leaf_cost=cost_of, total=weight.sum(),
    )  # fmt: skip
    if fairness is None:
        problem = Problem(**common)
        if objective == "brier" and rng.random() < 0.2:
            loss = np.zeros(n)
            loss[kept] = rng.uniform(0, 0.3, kept.sum())
            fit["reference_loss"] = loss
            problem.reference = float(np.average(loss[kept], weights=weight))
        return problem
    tau = float(t.max()) if fairness.tau is None else fairness.tau
    side = group[kept]
    share = [weight * (side == g) / weight[side == g].sum() for g in (0, 1)]

    def outcome(rows):
        differ = share[1][rows].sum() - share[0][rows].sum()
        return (cost_of(rows), mean(rows, tau) * differ)

    def score(outcomes, tolerance):
        # The limit is kept to within rounding of the curves (docs/maths/fair-survival.md).
        fine = np.abs(outcomes[:, 1]) <= fairness.limit + tolerance * max(1.0, tau)
        return np.where(fine, outcomes[:, 0] / weight.sum(), np.inf)

    def row_outcome(model):
        node = model.apply(X)[kept]
        return sum(np.array(outcome(np.flatnonzero(node == leaf))) for leaf in np.unique(node))

    def also(model):
        return [(model.group_rmst_[1] - model.group_rmst_[0], row_outcome(model)[1])]

    return Chosen(
        **common,
        leaf_outcomes=lambda rows: [outcome(rows)],
        score=score,
        row_outcome=row_outcome,
        also=also,
    )


def listed(rng, objective):
    """A problem of few trees, for ``all_optimal_trees``."""
    while True:
        problem = survival(rng, objective)
        columns = problem.features.shape[1]
        few = columns <= 3 or problem.depth <= 2
        if few and problem.parameters["fairness"] is None and "reference_loss" not in problem.fit:
            return problem


def parity(rng, X, kept, fit, time):
    """A limit with its groups, 0 and 1 by row."""
    named, group = None, None
    for column in rng.permutation(X.shape[1]):
        if rng.random() < 0.4 and len(np.unique(X[kept, column])) == 2:
            named, group = int(column), X[:, column].astype(int)
            break
    if group is None:
        group = balanced(rng, len(X))
        group[np.flatnonzero(kept)[:2]] = [0, 1]
        fit["sensitive"] = np.array(["a", "b"])[group]
    tau = one_of(rng, None, float(time.max()) / 2, float(time.max()) * 1.5)
    limit = one_of(rng, 0.0, 0, 0.05, 0.2, 1.0, 100.0) * one_of(rng, 1, float(time.max()))
    return RmstParity(limit, tau=tau, sensitive_feature=named), group


# --- classification ----------------------------------------------------------------------------

NAMES = (
    lambda labels: labels,
    lambda labels: np.array(["a", "b", "c", "d"])[labels],
    lambda labels: labels * 2 - 1,
)


def classes_kept(rng, X, given, n_classes):
    """Labels of which every class has a kept row, or weights are left out."""
    y = related(rng, X, n_classes)
    kept = np.ones(len(X), dtype=bool) if given is None else given > 0
    y[np.flatnonzero(kept)[:n_classes]] = np.arange(n_classes)
    return y


def classification(rng, objectives):
    objective = one_of(rng, *objectives)
    parameters = shared_parameters(rng)
    by_front = objective in ("f1", "mcc")
    n_classes = 2 if by_front else one_of(rng, 2, 2, 3)
    # As many of one class as of the other, and nothing else that breaks a tie.
    even = rng.random() < 0.5
    counted = even or rng.random() < 0.6
    X = rows(rng, front_size(rng, parameters, counted) if by_front else 5)
    given, kept = few_weights(rng, X) if by_front and counted else weights(rng, len(X))
    if even:
        X = X[len(X) % 2 :]
        given, parameters["leaf_penalty"] = None, one_of(rng, 0.0, 0.0, 0.02)
        parameters["max_depth"] = 2 if parameters["max_depth"] is None else parameters["max_depth"]
    kept, weight = prepared(rng, parameters, X, given)
    labels = classes_kept(rng, X, given, n_classes)
    if even:
        labels = rng.permutation(np.arange(len(X)) % n_classes)
    y = one_of(rng, *NAMES)(labels)
    classes = np.unique(y).tolist()
    chosen = {classes[0]: 2.0} if counted else {classes[0]: 0.7, classes[1]: 1.9}
    class_weight = one_of(rng, None, None, None, "balanced", chosen)
    class_weight = None if even else class_weight
    parameters |= {"objective": objective, "class_weight": class_weight}
    labels = labels[kept]
    if class_weight == "balanced":
        weight = weight * (len(labels) / (n_classes * np.bincount(labels)))[labels]
    elif class_weight:
        weight = weight * np.array([class_weight.get(name, 1.0) for name in classes])[labels]
    mass = np.array([weight[labels == k].sum() for k in range(n_classes)])

    def inside(rows):
        return np.bincount(labels[rows], weight[rows], n_classes)

    def leaf_cost(rows):
        of_class = inside(rows)
        if objective == "balanced-accuracy":
            of_class = of_class / mass
            return (of_class.sum() - of_class.max()) / n_classes
        if objective == "gini":
            return of_class.sum() - (of_class**2).sum() / of_class.sum()
        if objective == "entropy":
            return -xlogy(of_class, of_class / of_class.sum()).sum()
        return of_class.sum() - of_class.max()

    total = 1.0 if objective == "balanced-accuracy" else weight.sum()
    fit = {"y": y, "sample_weight": given}
    features = X[kept]
    if parameters["encoder"] == "auto":
        features = features[:, distinct_columns(features)]
    common = dict(
        features=features, estimator=OptimalTreeClassifier, parameters=parameters, X=X, fit=fit,
        kept=kept, weight=weight, leaf_cost=leaf_cost, total=total,
    )  # fmt: skip
    if not by_front:
        return Problem(**common)
    measure = plain.f1 if objective == "f1" else plain.matthews

    def score(outcomes, tolerance):
        return 1 - measure(outcomes[:, 0], outcomes[:, 1], mass[1], mass[0])

    def costs_of(said):
        wrong = [(said == 1) & (labels == 0), (said == 0) & (labels == 1)]
        return [weight[rows].sum() for rows in wrong]

    def leaf_outcomes(rows):
        negative, positive = inside(rows)
        return [(negative, 0.0), (0.0, positive)]

    return Chosen(
        **common,
        leaf_outcomes=leaf_outcomes,
        score=score,
        row_outcome=lambda m: costs_of(np.searchsorted(m.classes_, m.predict(X)[kept])),
        costs_of=costs_of,
    )


def front(rng):
    """Two classes for ``pareto_front``, of which the objective does not matter."""
    while True:
        problem = classification(rng, ("f1", "mcc"))
        if rng.random() < 0.1 or (problem.features.shape[1] > 2 and problem.depth > 1):
            break
    changes = {"leaf_penalty": 0.0}
    if problem.parameters["max_depth"] is None or rng.random() < 0.7:
        changes["max_leaf_nodes"] = one_of(rng, 3, 4, 5, 6)
    return replace(problem, parameters={**problem.parameters, **changes}, cache={})


def costs(rng):
    parameters = shared_parameters(rng)
    X = rows(rng)
    n, columns = X.shape
    n_classes = one_of(rng, 2, 3)
    given, kept = weights(rng, n)
    kept, weight = prepared(rng, parameters, X, given)
    labels = classes_kept(rng, X, given, n_classes)
    fit = {"y": one_of(rng, *NAMES)(labels), "sample_weight": given}
    labels = labels[kept]
    matrix = one_of(rng, None, numbers(rng, (n_classes, n_classes)))
    table = (1 - np.eye(n_classes) if matrix is None else matrix)[labels]
    if rng.random() < 0.3:
        fit["costs"] = numbers(rng, (n, n_classes))
        table = fit["costs"][kept]
    features, asks = X[kept], list(range(columns))
    if parameters["encoder"] == "auto":
        asks = distinct_columns(features)
        features = features[:, asks]
    paid, price = prices(rng, columns)
    parameters |= {"cost_matrix": matrix, **paid}

    def leaf_cost(rows):
        return (table[rows] * weight[rows, None]).sum(axis=0).min()

    def split_cost(rows, asked, column):
        return weight[rows].sum() * price({asks[c] for c in asked}, asks[column])

    def also(model):
        paid = model.objective_value_ - parameters["leaf_penalty"] * model.n_leaves_
        known = model.mean_cost(X[kept], fit["y"][kept], weight, costs=table)
        return [(known, paid)]

    class Costs(Problem):
        def value(self, model):
            said = np.searchsorted(model.classes_, model.predict(X)[kept])
            total = (table[np.arange(len(said)), said] * weight).sum()
            tree = model.tree_

            def asking(node, rows, asked):
                if tree.children_left[node] < 0:
                    return 0.0
                column = int(tree.feature[node])
                yes = features[rows, column]
                paid = split_cost(rows, asked, column)
                for child, side in ((tree.children_left, yes), (tree.children_right, ~yes)):
                    paid += asking(child[node], rows[side], asked | {column})
                return paid

            total += asking(0, np.arange(len(features)), frozenset())
            return total / self.total + self.penalty * len(self.leaves(model))

    return Costs(
        CostSensitiveTreeClassifier, parameters, X, fit, kept, weight, leaf_cost,
        split_cost if paid["feature_costs"] is not None else None, weight.sum(), features=features,
        also=also,
    )  # fmt: skip


def distinct_columns(X):
    """Columns that are not constant, and not equal or contrary to an earlier one."""
    found = []
    for column in range(X.shape[1]):
        own = X[:, column]
        earlier = any((X[:, c] == own).all() or (X[:, c] != own).all() for c in found)
        if own.any() and not own.all() and not earlier:
            found.append(column)
    return found


def prices(rng, columns):
    """Parameters of the feature prices, and the price of a column after those asked before."""
    paid = dict.fromkeys(
        ("feature_costs", "feature_discounts", "feature_groups", "feature_origins")
    )
    if rng.random() < 0.3:
        return paid, lambda asked, column: 0.0
    scale = one_of(rng, 0.02, 0.2, 1.0)
    cost = scale * numbers(rng, columns)
    discount, group, origin = cost.copy(), [None] * columns, [None] * columns
    paid["feature_costs"] = by_column(rng, cost.tolist(), 0.0)
    if rng.random() < 0.7:
        group = [one_of(rng, None, "blood", "urine") for _ in range(columns)]
        paid["feature_groups"] = by_column(rng, group, None)
        if rng.random() < 0.8:
            discount = cost * one_of(rng, 0.0, 0.5, rng.random(columns))
            paid["feature_discounts"] = discount.tolist()
    if rng.random() < 0.4:
        origin = [one_of(rng, None, "x", "y") for _ in range(columns)]
        paid["feature_origins"] = by_column(rng, origin, None)

    def price(asked, column):
        same = origin[column] is not None and origin[column] in {origin[c] for c in asked}
        if column in asked or same:
            return 0.0
        if group[column] is not None and group[column] in {group[c] for c in asked}:
            return discount[column]
        return cost[column]

    return paid, price


def by_column(rng, values, absent):
    """One entry per column, or a mapping from names or places without the absent ones."""
    named = {k: value for k, value in enumerate(values) if value != absent}
    return one_of(rng, values, named, {f"x{k}": value for k, value in named.items()})


def fair_labels(rng):
    parameters = shared_parameters(rng)
    counted = rng.random() < 0.6
    X = rows(rng, front_size(rng, parameters, counted))
    n = len(X)
    given, kept = few_weights(rng, X) if counted else weights(rng, n)
    kept, weight = prepared(rng, parameters, X, given)
    labels = classes_kept(rng, X, given, 2)
    constraint = one_of(rng, "demographic-parity", "equality-of-opportunity")
    delta = one_of(rng, 0.0, 0, 0.05, 0.1, 0.25, 1 / 3, 0.5, 1)
    fit, named, group = {}, None, None
    if rng.random() < 0.3:
        column = int(rng.integers(X.shape[1]))
        if len(np.unique(X[kept & (labels == 1), column])) == 2:
            named, group = column, X[:, column].astype(int)
    if group is None and rng.random() < 0.95:
        group = balanced(rng, n)
        first = np.flatnonzero(kept)
        labels[first[:3]], group[first[:3]] = [1, 1, 0], [0, 1, 0]
        fit["sensitive"] = one_of(rng, group, group == 1, np.array(["a", "b"])[group])
    parameters |= {"constraint": constraint, "delta": delta, "sensitive_feature": named}
    fit |= {"y": one_of(rng, *NAMES)(labels), "sample_weight": given}
    labels = labels[kept]
    total = weight.sum()
    if group is None:
        share = np.zeros(len(labels))
    else:
        group = group[kept]
        compared = np.ones(len(labels)) if constraint == "demographic-parity" else labels == 1
        masses = [(weight * compared)[group == g].sum() for g in (0, 1)]
        share = weight * compared * np.where(group == 1, 1 / masses[1], -1 / masses[0])

    def outcome(rows, said):
        wrong = weight[rows][labels[rows] != said].sum()
        return wrong, share[rows].sum() if said else 0.0

    def score(outcomes, tolerance):
        fine = np.abs(outcomes[:, 1]) <= delta + tolerance
        return np.where(fine, outcomes[:, 0] / total, np.inf)

    def row_outcome(model):
        said = np.searchsorted(model.classes_, model.predict(X)[kept])
        return (weight * (said != labels)).sum(), (share * said).sum()

    def also(model):
        rates = model.group_rates_
        return [(rates[1] - rates[0], row_outcome(model)[1])] if group is not None else []

    return Chosen(
        FairTreeClassifier, parameters, X, fit, kept, weight,
        leaf_outcomes=lambda rows: [outcome(rows, 0), outcome(rows, 1)],
        score=score, row_outcome=row_outcome, also=also,
    )  # fmt: skip


def policy(rng):
    parameters = shared_parameters(rng)
    limited = rng.random() < 0.8
    n_arms = one_of(rng, 2, 2, 3)
    # Rewards that are whole numbers, as of outcomes that are 0 or 1.
    counted = rng.random() < 0.6
    X = rows(rng, front_size(rng, parameters, counted and n_arms == 2) if limited else 5)
    n = len(X)
    given, kept = few_weights(rng, X) if counted else weights(rng, n)
    kept, weight = prepared(rng, parameters, X, given)
    arm = classes_kept(rng, X, given, n_arms)
    teacher = one_of(rng, "direct", "inverse-propensity", "doubly-robust")
    outcome, predicted = numbers(rng, n, least=-1), numbers(rng, (n, n_arms), least=-1)
    share = rng.uniform(0.2, 1.0, (n, n_arms))
    if counted:
        outcome = rng.integers(0, one_of(rng, 2, 2, 3), n).astype(float)
        predicted = rng.integers(0, 2, (n, n_arms)).astype(float)
        share = np.full((n, n_arms), one_of(rng, 0.5, 1.0))
        if rng.random() < 0.5:
            parameters["leaf_penalty"] = one_of(rng, 0.003, 0.01, 0.02, 0.04)
    own = share[np.arange(n), arm]
    fit = {"y": outcome, "sample_weight": given, "treatment": one_of(rng, *NAMES)(arm)}
    if teacher != "inverse-propensity" or rng.random() < 0.3:
        fit["predicted_outcomes"] = predicted
    if teacher != "direct" or rng.random() < 0.3:
        fit["propensity"] = one_of(rng, own, share)
    rewards = np.zeros((n, n_arms)) if teacher == "inverse-propensity" else predicted.copy()
    if teacher != "direct":
        rewards[np.arange(n), arm] += (outcome - rewards[np.arange(n), arm]) / own
    rewards = rewards[kept]
    names = np.unique(fit["treatment"]).tolist()
    capacity = np.full(n_arms, np.inf)
    capacities = one_of(rng, None, {})
    if limited:
        for k in rng.permutation(n_arms)[: rng.integers(1, n_arms + 1)]:
            capacity[k] = one_of(rng, 0, 0.25, 1 / 3, 0.5, 0.5, 0.75, 1.0, 1)
        capacities = {names[k]: float(c) for k, c in enumerate(capacity) if c <= 1}
    parameters |= {"teacher": teacher, "capacities": capacities}
    total = weight.sum()

    def leaf_outcomes(rows):
        values = (rewards[rows] * weight[rows, None]).sum(axis=0)
        given_to = weight[rows].sum()
        return [(-values[k], *(given_to * (np.arange(n_arms) == k))) for k in range(n_arms)]

    def score(outcomes, tolerance):
        fine = (outcomes[:, 1:] / total <= capacity + tolerance).all(axis=1)
        return np.where(fine, outcomes[:, 0] / total, np.inf)

    def row_outcome(model):
        said = np.searchsorted(model.treatments_, model.predict(X)[kept])
        value = (rewards[np.arange(len(said)), said] * weight).sum()
        return [-value, *np.bincount(said, weight, n_arms)]

    common = dict(
        estimator=PolicyTree, parameters=parameters, X=X, fit=fit, kept=kept, weight=weight,
        total=total, also=lambda model: [(model.policy_value_, -row_outcome(model)[0] / total)],
    )  # fmt: skip
    if limited:
        return Chosen(**common, leaf_outcomes=leaf_outcomes, score=score, row_outcome=row_outcome)
    return Problem(**common, leaf_cost=lambda rows: min(out[0] for out in leaf_outcomes(rows)))


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

    def also(model):
        error = np.average((target - model.predict(X)[kept]) ** 2, weights=weight)
        return [(model.objective_value_ - parameters["leaf_penalty"] * model.n_leaves_, error)]

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


DRAWS = {
    "likelihood": lambda rng: survival(rng, "likelihood"),
    "brier": lambda rng: survival(rng, "brier"),
    "classes": lambda rng: classification(
        rng, ("accuracy", "balanced-accuracy", "gini", "entropy")
    ),
    "measure of classes": lambda rng: classification(rng, ("f1", "mcc")),
    "costs": costs,
    "fair": fair_labels,
    "policy": policy,
    "regression": regression,
    "own task": own_task,
}
