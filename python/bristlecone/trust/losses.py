"""Every objective as it is defined, over sums of what the rows of a leaf are.

A leaf has a cost, or one for each label it could give; costs are vectors that add up over the
leaves of a tree, and the objective is a function of their sum. Definitions: docs/maths.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack

from bristlecone.trust.plain import Lifetimes, antitonic_curve, restricted_mean, step_values
from bristlecone.trust.rows import Rows

__all__ = [
    "ALLOWED",
    "Statement",
    "brier_terms",
    "fair_limit",
    "lifetimes",
    "path_prices",
    "prior_of",
    "rounded_squares",
    "row_hazards",
    "statement_of",
]

Floats = NDArray[np.float64]
Prices = list[tuple[float, float, Any, Any]]

# By how much a limit may be exceeded: the searches round what it is about.
ALLOWED = 2e-9


class Statement(ABC):
    """An objective over rows.

    Attributes
    ----------
    statistics : array or sparse matrix, shape (n, k)
        What of each row is summed over a leaf.
    total : float
        Weight of all rows, by which costs are divided.
    unit : float
        Size of the loss, for rounding: 1 of shares and of losses without a unit; 0 where the loss
        of all rows as one leaf tells.
    summed : float
        Size of what losses are summed from, where what is left of it may be less than rounding.
    price : float
        Work of one leaf, in that of a sum of one statistic.
    is_sum : bool
        Whether the objective is a sum over leaves.
    is_limited : bool
        Whether there are limits on what the costs of a tree add up to.
    """

    statistics: Any
    total: float
    unit = 0.0
    summed = 0.0
    price = 1.0
    is_sum = True
    is_limited = False

    @property
    def is_scalar(self) -> bool:
        """Whether the best label of a leaf, and its cost, follow from its own rows alone."""
        return self.is_sum and not self.is_limited

    @property
    def root(self) -> Floats:
        """Cost vectors of all rows as one leaf, by its labels, (n_labels, n_components)."""
        every = np.ones((1, self.statistics.shape[0]))
        costs: Floats = self.candidates(np.asarray(every @ self.statistics))[0]
        return costs

    @abstractmethod
    def candidates(self, sums: Floats) -> Floats:
        """Cost vectors of leaves by their labels, shape (m, n_labels, n_components)."""

    def value(self, costs: Floats, allowed: float) -> Floats:
        """Objective without penalty of summed cost vectors (m, n_components).

        Infinite where a limit is exceeded by more than ``allowed``, relative to its kind.
        """
        return costs[:, 0] / self.total

    def split_costs(self, sums: Floats, asked: tuple[int, ...], n_features: int) -> Floats:
        """What it costs to ask each feature at a node with these sums, below others (n_features,).

        Added to the first component.
        """
        return np.zeros(n_features)


class _Likelihood(Statement):
    """Loss of proportional hazards (Huisman et al., AAAI-24, eq. 20), with the prior."""

    unit = 1.0

    def __init__(self, lives: Lifetimes, prior: float) -> None:
        hazard = row_hazards(lives)
        events = lives.weight * lives.event
        self.statistics = np.stack(
            [events, lives.weight * hazard, -events * np.log(hazard)], axis=1
        )
        self.total, self.prior, self.lives = float(lives.weight.sum()), prior, lives

    def theta(self, sums: Floats) -> Floats:
        """Relative hazard of leaves; half an event where there is none and no prior."""
        events, hazard = sums[:, 0] + self.prior, sums[:, 1] + self.prior
        return np.where(events > 0, events, 0.5) / hazard

    def candidates(self, sums: Floats) -> Floats:
        events, hazard = sums[:, 0] + self.prior, sums[:, 1] + self.prior
        ratio = np.divide(events, hazard, out=np.ones_like(events), where=events > 0)
        # A large prior leaves the last digits of both to their difference alone.
        beyond = np.divide(sums[:, 0] - sums[:, 1], hazard, out=ratio - 1, where=events > 0)
        logs = np.where(ratio < 0.5, np.log(ratio), np.log1p(np.maximum(beyond, -0.75)))
        return np.asarray(sums[:, 2] - events * logs)[:, None, None]

    def means(self, sums: Floats, tau: float) -> Floats:
        """Restricted mean of the curves of leaves."""
        theta = self.theta(sums)
        curves = np.exp(-theta[:, None] * self.lives.nelson_aalen)
        return restricted_mean(self.lives.times, curves, tau)


class _Brier(Statement):
    """Integrated Brier score (Zhang et al., AISTATS 2024, eqs. 1–2)."""

    unit = 1.0

    def __init__(self, lives: Lifetimes, curve: str) -> None:
        times = lives.times
        place = np.searchsorted(times, lives.time)
        shape = lives.time.size, times.size
        rows = np.arange(shape[0])
        left = csr_matrix((lives.weight, (rows, place)), shape)
        died = csr_matrix((lives.weight * lives.event, (rows, place)), shape)
        self.statistics = hstack([left, died]).tocsr()
        self.total, self.curve, self.times = float(lives.weight.sum()), curve, times
        self.share, self.inverse = brier_terms(lives)
        self.price = 40.0 if curve == "brier-optimal" else 5.0

    def terms(self, sums: Floats) -> tuple[Floats, Floats]:
        """Weights V of S² and N of (1 − S)² at all times."""
        left, died = np.split(sums, 2, axis=1)
        at_risk = left[:, ::-1].cumsum(axis=1)[:, ::-1]
        later = np.append(at_risk[:, 1:], np.zeros((len(sums), 1)), axis=1)
        return (died * self.inverse).cumsum(axis=1), later * self.inverse

    def curves(self, sums: Floats) -> Floats:
        """Curves of leaves at all times."""
        if self.curve == "brier-optimal":
            pairs = zip(*self.terms(sums), strict=True)
            return np.array([antitonic_curve(*pair, self.share) for pair in pairs])
        left, died = np.split(sums, 2, axis=1)
        at_risk = left[:, ::-1].cumsum(axis=1)[:, ::-1]
        hazard = np.divide(died, at_risk, out=np.zeros_like(died), where=died > 0)
        return (1 - np.minimum(hazard, 1.0)).cumprod(axis=1)

    def candidates(self, sums: Floats) -> Floats:
        dead, alive = self.terms(sums)
        S = self.curves(sums)
        return np.asarray((S**2 * dead + (1 - S) ** 2 * alive) @ self.share)[:, None, None]

    def means(self, sums: Floats, tau: float) -> Floats:
        """Restricted mean of the curves of leaves."""
        return restricted_mean(self.times, self.curves(sums), tau)


class _FairSurvival(Statement):
    """A survival loss with a limit on the difference of two groups' restricted means."""

    unit = 1.0
    is_limited = True

    def __init__(self, inner: Any, rows: Rows, limit: float, tau: float) -> None:
        differ = _differences(rows.weight, rows.facts["group"])[:, None]
        both = [inner.statistics, differ]
        sparse = isinstance(inner, _Brier)
        self.statistics = hstack(both).tocsr() if sparse else np.hstack(both)
        self.inner, self.limit, self.tau, self.total = inner, limit, tau, inner.total
        self.price = 2 * inner.price

    def candidates(self, sums: Floats) -> Floats:
        own = sums[:, :-1]
        difference = self.inner.means(own, self.tau) * sums[:, -1]
        return np.stack([self.inner.candidates(own)[:, 0, 0], difference], axis=1)[:, None, :]

    def value(self, costs: Floats, allowed: float) -> Floats:
        kept = np.abs(costs[:, 1]) <= self.limit + allowed * max(1.0, self.tau)
        return np.where(kept, costs[:, 0] / self.total, np.inf)


class _Classes(Statement):
    """Misclassified weight, or the impurity of the leaves."""

    unit = 1.0

    def __init__(self, rows: Rows, name: str) -> None:
        codes, n_classes = rows.facts["labels"], len(rows.facts["classes"])
        weight = rows.weight
        if name == "balanced-accuracy":
            of_class = np.bincount(codes, weight, n_classes)
            weight = weight / of_class[codes]
        self.statistics = (codes[:, None] == np.arange(n_classes)) * weight[:, None]
        self.total, self.name = float(weight.sum()), name

    def candidates(self, sums: Floats) -> Floats:
        size = sums.sum(axis=1, keepdims=True)
        if self.name in ("accuracy", "balanced-accuracy"):
            return (size - sums)[:, :, None]
        share = sums / size
        if self.name == "gini":
            impure = sums * (1 - share)
        else:
            impure = -sums * np.log(share, out=np.zeros_like(share), where=share > 0)
        return impure.sum(axis=1)[:, None, None]


class _Measure(Statement):
    """1 − F1 or 1 − Matthews correlation, from false positives and false negatives."""

    unit = 1.0
    is_sum = False

    def __init__(self, rows: Rows, name: str) -> None:
        codes = rows.facts["labels"]
        self.statistics = (codes[:, None] == np.arange(2)) * rows.weight[:, None]
        self.name, self.total = name, rows.total
        self.negative, self.positive = self.statistics.sum(axis=0).tolist()

    def candidates(self, sums: Floats) -> Floats:
        zero = np.zeros(len(sums))
        missed = np.stack([zero, sums[:, 1]], axis=1)
        alarmed = np.stack([sums[:, 0], zero], axis=1)
        return np.stack([missed, alarmed], axis=1)

    def value(self, costs: Floats, allowed: float) -> Floats:
        false_positive, false_negative = costs.T
        true_positive = self.positive - false_negative
        if self.name == "f1":
            return 1 - 2 * true_positive / (2 * true_positive + false_positive + false_negative)
        true_negative = self.negative - false_positive
        said = true_positive + false_positive
        not_said = true_negative + false_negative
        scale = np.sqrt(self.positive * self.negative) * np.sqrt(np.maximum(said * not_said, 0))
        product = true_positive * true_negative - false_positive * false_negative
        # Where every leaf says the same the correlation is 0.
        tiny = 1e-12 * self.total
        one_sided = (said <= tiny) | (not_said <= tiny)
        return 1 - np.where(one_sided, 0.0, product / np.where(one_sided, 1.0, scale))


class _FairLabels(Statement):
    """Misclassified weight of two classes under a limit on the difference of two groups."""

    unit = 1.0
    is_limited = True

    def __init__(self, rows: Rows, constraint: str, limit: float) -> None:
        codes = rows.facts["labels"]
        compared = codes == 1 if constraint == "equality-of-opportunity" else codes >= 0
        differ = _differences(rows.weight * compared, rows.facts["group"])
        weights = (codes[:, None] == np.arange(2)) * rows.weight[:, None]
        self.statistics = np.column_stack([weights, differ])
        self.total, self.limit = rows.total, limit

    def candidates(self, sums: Floats) -> Floats:
        zero = np.zeros(len(sums))
        no = np.stack([sums[:, 1], zero], axis=1)
        yes = np.stack([sums[:, 0], sums[:, 2]], axis=1)
        return np.stack([no, yes], axis=1)

    def value(self, costs: Floats, allowed: float) -> Floats:
        kept = np.abs(costs[:, 1]) <= self.limit + allowed
        return np.where(kept, costs[:, 0] / self.total, np.inf)


class _Costs(Statement):
    """Costs of labels, and of the questions asked on the way."""

    def __init__(self, rows: Rows, tree: Any) -> None:
        costs = rows.facts["costs"] * rows.weight[:, None]
        self.statistics = np.column_stack([costs, rows.weight])
        self.total = rows.total
        self.prices = _prices(tree)

    def candidates(self, sums: Floats) -> Floats:
        return sums[:, :-1, None]

    def split_costs(self, sums: Floats, asked: tuple[int, ...], n_features: int) -> Floats:
        if self.prices is None:
            return np.zeros(n_features)
        prices = [_price(self.prices, feature, asked) for feature in range(n_features)]
        return np.array(prices) * sums[-1]


class _Rewards(Statement):
    """Minus the outcomes of the treatments given, some of which may have capacities."""

    def __init__(self, rows: Rows, capacities: Mapping[Any, float] | None) -> None:
        outcomes = rows.facts["rewards"] * rows.weight[:, None]
        self.statistics = np.column_stack([outcomes, rows.weight])
        self.total = rows.total
        # Outcomes of both signs may cancel.
        self.unit = float(np.abs(outcomes).sum(axis=0).max()) / self.total
        names = rows.facts["classes"].tolist()
        limits = {names.index(name): share for name, share in (capacities or {}).items()}
        self.limited = list(limits)
        self.limits = np.array(list(limits.values()), dtype=np.float64)
        self.is_limited = bool(limits)

    def candidates(self, sums: Floats) -> Floats:
        m, n_labels = len(sums), sums.shape[1] - 1
        costs = np.zeros((m, n_labels, 1 + len(self.limited)))
        costs[:, :, 0] = -sums[:, :-1]
        for k, label in enumerate(self.limited):
            costs[:, label, 1 + k] = sums[:, -1]
        return costs

    def value(self, costs: Floats, allowed: float) -> Floats:
        given = costs[:, 1:] / self.total
        kept = (given <= self.limits + allowed).all(axis=1)
        return np.where(kept, costs[:, 0] / self.total, np.inf)


def rounded_squares(values: Floats, variance: float) -> float:
    """Size of the numbers whose rounding, 1e-12 of them, is that of a mean square of deviations.

    Deviations are off by d, about 1e-13 of the values, and squares by 2d of the deviation, and d².
    """
    off = 1e-13 * float(np.abs(values).max())
    return (2 * off * math.sqrt(variance) + off**2) / 1e-12


class _SquaredError(Statement):
    """Squared distance from the mean of a leaf."""

    def __init__(self, rows: Rows) -> None:
        weight, target = rows.weight, rows.facts["target"]
        centred = target - np.average(target, weights=weight)
        self.statistics = np.stack([weight, weight * centred, weight * centred**2], axis=1)
        self.total = rows.total
        self.summed = rounded_squares(target, weight @ centred**2 / self.total)

    def candidates(self, sums: Floats) -> Floats:
        size, first, second = sums.T
        return np.asarray(second - first**2 / size)[:, None, None]


class _Own(Statement):
    """Costs by a task of the user's own."""

    price = 5.0

    def __init__(self, rows: Rows, task: Any) -> None:
        self.statistics, self.task = rows.facts["statistics"], task
        self.total = rows.total
        self.summed = float(np.abs(self.statistics).sum(axis=0).max()) / self.total

    def candidates(self, sums: Floats) -> Floats:
        costs = np.asarray(self.task.leaf_cost(np.asfortranarray(sums)), dtype=np.float64)
        return costs[:, None, None]

    def split_costs(self, sums: Floats, asked: tuple[int, ...], n_features: int) -> Floats:
        split_cost = getattr(self.task, "split_cost", None)
        if split_cost is None:
            return np.zeros(n_features)
        cost = float(np.asarray(split_cost(np.asfortranarray(sums[None, :])))[0])
        return np.full(n_features, cost)


def statement_of(tree: Any, rows: Rows) -> Statement | None:
    """The objective that the certificate names; None where it is none of rows (soft trees)."""
    kind, parameters = type(tree).__name__, tree.certificate_.parameters
    if kind == "SoftSurvivalTree":
        return None
    if kind == "GreedySurvivalTree":
        return _Likelihood(lifetimes(rows), prior_of(parameters["prior"]))
    if kind == "OptimalSurvivalTree":
        return _survival(parameters, rows)
    if kind == "OptimalTreeClassifier":
        name = parameters["objective"]
        return _Measure(rows, name) if name in ("f1", "mcc") else _Classes(rows, name)
    if kind == "CostSensitiveTreeClassifier":
        return _Costs(rows, tree)
    if kind == "FairTreeClassifier":
        if rows.facts["groups"] is None:
            return _Classes(rows, "accuracy")
        return _FairLabels(rows, *fair_limit(parameters))
    if kind == "OptimalTreeRegressor":
        return _SquaredError(rows)
    if kind == "PolicyTree":
        return _Rewards(rows, parameters["capacities"])
    return _Own(rows, parameters["task"])


def fair_limit(parameters: Mapping[str, Any]) -> tuple[str, float]:
    """Which rows a fair classifier compares, and the limit on the difference."""
    fairness = parameters["fairness"]
    if fairness is None:
        return parameters["constraint"], float(parameters["delta"])
    parity = type(fairness).__name__ == "DemographicParity"
    name = "demographic-parity" if parity else "equality-of-opportunity"
    return name, float(fairness.limit)


def lifetimes(rows: Rows) -> Lifetimes:
    """The outcomes of survival rows."""
    facts = rows.facts
    return Lifetimes(facts["time"], facts["event"], rows.weight, facts["entry"])


def row_hazards(lives: Lifetimes) -> Floats:
    """Λ of every row between entry and time; 1/(W + 1) where that is 0."""
    total = lives.nelson_aalen
    hazard = step_values(lives.times, total, lives.time, 0.0)
    if lives.entry is not None:
        hazard = hazard - step_values(lives.times, total, lives.entry, 0.0)
    return np.where(hazard > 0, hazard, 1 / (lives.weight.sum() + 1))


def brier_terms(lives: Lifetimes) -> tuple[Floats, Floats]:
    """Shares of [0, last time] after each time, and 1/G, which is 0 where G is."""
    times, survival = lives.times, lives.censoring
    inverse = np.divide(1.0, survival, out=np.zeros(times.size), where=survival > 0)
    return np.diff(times, append=times[-1]) / times[-1], inverse


def _survival(parameters: Mapping[str, Any], rows: Rows) -> Statement:
    lives = lifetimes(rows)
    likelihood = parameters["objective"] == "likelihood"
    curve = parameters["leaf_curve"]
    if likelihood:
        inner: Statement = _Likelihood(lives, prior_of(parameters["prior"]))
    else:
        inner = _Brier(lives, "kaplan-meier" if curve == "auto" else curve)
    fairness = parameters["fairness"]
    if fairness is None:
        return inner
    tau = float(lives.time.max() if fairness.tau is None else fairness.tau)
    return _FairSurvival(inner, rows, float(fairness.limit), tau)


def prior_of(value: Any) -> float:
    """Pseudo-events that a value of the parameter means."""
    return 10.0 if isinstance(value, str) else float(value)


def _differences(weight: Floats, group: NDArray[np.int64]) -> Floats:
    """Share of each row in its group's weight, negative in the first group."""
    total = np.bincount(group, weight, 2)
    return weight * np.where(group == 1, 1 / total[1], -1 / total[0])


def _prices(tree: Any) -> Prices | None:
    """Cost, discounted cost, origin and group of every feature."""
    parameters = tree.certificate_.parameters
    if parameters["feature_costs"] is None:
        return None
    encoder = tree.encoder_
    if hasattr(encoder, "columns_"):
        names = [column.name for column in encoder.columns_]
        of_feature = [names.index(feature.column) for feature in encoder.features_]
    else:
        names = [str(name) for name in encoder.get_feature_names_out()]
        of_feature = list(range(len(names)))
    cost, discount, group, origin = (
        _by_column(parameters[f"feature_{what}"], names)
        for what in ("costs", "discounts", "groups", "origins")
    )
    whole = []
    for at in range(len(names)):
        full = float(cost.get(at) or 0.0)
        less = full if discount.get(at) is None else float(discount[at])
        # A column without an origin is a measurement of its own.
        own = (at,) if origin.get(at) is None else origin[at]
        whole.append((full, less, own, group.get(at)))
    return [whole[at] for at in of_feature]


def _price(prices: Prices, feature: int, asked: tuple[int, ...]) -> float:
    """What a question costs a row that was asked these before."""
    cost, discount, origin, group = prices[feature]
    above = [prices[one] for one in asked]
    if any(origin == one[2] for one in above):
        return 0.0
    return discount if group is not None and any(group == one[3] for one in above) else cost


def path_prices(tree: Any) -> Floats:
    """What the questions on the way to every leaf cost a row."""
    nodes, prices = tree.tree_, _prices(tree)
    paths: dict[int, tuple[float, tuple[int, ...]]] = {0: (0.0, ())}
    for node in np.flatnonzero(~nodes.is_leaf).tolist():
        paid, asked = paths[node]
        feature = int(nodes.feature[node])
        paid += 0.0 if prices is None else _price(prices, feature, asked)
        for child in (int(nodes.children_left[node]), int(nodes.children_right[node])):
            paths[child] = paid, (*asked, feature)
    return np.array([paths[node][0] for node in nodes.leaves.tolist()])


def _by_column(given: Any, names: list[str]) -> dict[int, Any]:
    """Entries by the place of their column."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return {names.index(key) if key in names else int(key): x for key, x in given.items()}
    return dict(enumerate(given))
