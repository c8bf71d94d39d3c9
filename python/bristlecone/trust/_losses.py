"""Every objective as it is defined, over sums of what the rows of a leaf are.

A leaf has a cost, or one for each label it could give; costs are vectors that add up over the
leaves of a tree, and the objective is a function of their sum. Definitions: docs/maths. Sums are
exact (:mod:`bristlecone.trust._exact`); the same formulas take float64 and fractions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone.trust._exact import Column, fractions, log_ratio
from bristlecone.trust._rows import Rows
from bristlecone.trust._statement import ROUNDING, Statement, differences, like, sums_of, within
from bristlecone.trust._survival import Counted, competing_risks, likelihood, survival

Floats = NDArray[np.float64]
Prices = list[tuple[float, float, Any, Any]]


class _Classes(Statement):
    """Misclassified weight, or the impurity of the leaves."""

    is_concave = True

    def __init__(self, rows: Rows, name: str) -> None:
        real = _by_class(rows)
        self.columns, self.name = real, name
        if "shares" in rows.facts:
            weight = Column.of(rows.weight)
            self.columns = [weight * Column.of(share) for share in rows.facts["shares"].T]
        self.unit: list[Fraction] | None = None
        self.total = sum((column.sum() for column in real), Fraction(0))
        if name == "balanced-accuracy":
            self.unit = [1 / column.sum() for column in real]
            self.total = Fraction(len(real))

    def _shares(self, sums: Any) -> Any:
        if self.unit is None:
            return sums
        return sums * np.array(self.unit, dtype=sums.dtype)

    def candidates(self, sums: Any) -> Any:
        sums = self._shares(sums)
        size = sums.sum(axis=1, keepdims=True)
        if self.name in ("accuracy", "balanced-accuracy"):
            return (size - sums)[:, :, None]
        share = sums / np.where(size > 0, size, 1)
        if self.name == "gini":
            impure = sums * (1 - share)
        else:
            some = sums > 0
            impure = -sums * log_ratio(np.where(some, sums, 1), np.where(some, size, 1))
        return impure.sum(axis=1)[:, None, None]

    def least(self, sums: Sequence[Floats], errors: Sequence[float]) -> Floats:
        # More weight of any class costs no less, whichever class it is.
        units = [1.0] * len(sums) if self.unit is None else list(map(float, self.unit))
        low = np.array(
            [
                np.maximum(one - error, 0.0) * unit
                for one, error, unit in zip(sums, errors, units, strict=True)
            ]
        )
        # Without differences of nearly equal sums.
        others = np.array([np.delete(low, k, axis=0).sum(axis=0) for k in range(len(low))])
        some = low > 0
        if self.name in ("accuracy", "balanced-accuracy"):
            cost = others.min(axis=0)
        elif self.name == "gini":
            cost = (low * others / np.where(some, low + others, 1.0)).sum(axis=0)
        else:
            ratio = np.where(some, others, 0.0) / np.where(some, low, 1.0)
            cost = (low * np.log1p(ratio)).sum(axis=0)
        return np.asarray(cost * (1 - ROUNDING))


class _Measure(Statement):
    """1 − F1 or 1 − Matthews correlation, from false positives and false negatives."""

    is_sum = False
    is_linear = True

    def __init__(self, rows: Rows, name: str) -> None:
        self.columns, self.name = _by_class(rows, 2), name
        self.units = [column.unit for column in self.columns]
        self.negative, self.positive = (column.sum() for column in self.columns)
        self.total = self.negative + self.positive

    def candidates(self, sums: Any) -> Any:
        zero = 0 * sums[:, 0]
        missed = np.stack([zero, sums[:, 1]], axis=1)
        alarmed = np.stack([sums[:, 0], zero], axis=1)
        return np.stack([missed, alarmed], axis=1)

    def value(self, costs: Any, allowed: float) -> Any:
        positive, negative = like(self.positive, costs), like(self.negative, costs)
        false_positive, false_negative = costs.T
        true_positive = positive - false_negative
        if self.name == "f1":
            wrong = false_positive + false_negative
            return wrong / (2 * true_positive + wrong)
        true_negative = negative - false_positive
        said, not_said = true_positive + false_positive, true_negative + false_negative
        product = true_positive * true_negative - false_positive * false_negative
        # Where every leaf says the same the correlation is 0.
        one_sided = (said <= 0) | (not_said <= 0)
        scale = np.where(one_sided, positive * negative, said * not_said) * positive * negative
        squared = product * product / scale
        if costs.dtype == object:
            root = fractions([math.sqrt(one) for one in squared.tolist()])
        else:
            root = np.sqrt(squared)
        # 1 − r without a difference of equal numbers.
        above = (1 - squared) / (1 + root)
        return np.where(one_sided, 1, np.where(product >= 0, above, 1 + root))


class _FairLabels(Statement):
    """Misclassified weight of two classes under a limit on the difference of two groups."""

    is_limited = True
    is_linear = True

    def __init__(self, rows: Rows, constraint: str, limit: float) -> None:
        codes = rows.facts["labels"]
        compared = codes == 1 if constraint == "equality-of-opportunity" else codes >= 0
        differ = differences(rows.weight * compared, rows.facts["group"])
        self.columns = [*_by_class(rows, 2), differ]
        self.units = [self.columns[0].unit, differ.unit]
        self.total, self.limit = Column.of(rows.weight).sum(), limit

    def candidates(self, sums: Any) -> Any:
        zero = 0 * sums[:, 0]
        no = np.stack([sums[:, 1], zero], axis=1)
        yes = np.stack([sums[:, 0], sums[:, 2]], axis=1)
        return np.stack([no, yes], axis=1)

    def value(self, costs: Any, allowed: float) -> Any:
        kept = within(np.abs(costs[:, 1]), self.limit, allowed)
        return np.where(kept, super().value(costs, allowed), np.inf)


class _Costs(Statement):
    """Costs of labels, and of the splits on the way to a leaf."""

    is_concave = True

    def __init__(self, rows: Rows, tree: Any) -> None:
        weight = Column.of(rows.weight)
        self.columns, self.factor = _weighted(rows.facts["costs"], weight)
        self.columns.append(weight)
        self.total = weight.sum()
        self.prices = _prices(tree)

    def candidates(self, sums: Any) -> Any:
        return sums[:, :-1, None]

    def least(self, sums: Sequence[Floats], errors: Sequence[float]) -> Floats:
        low = [one - error for one, error in zip(sums[:-1], errors, strict=False)]
        # No label costs less than nothing.
        return np.maximum(np.min(low, axis=0), 0.0) * (1 - ROUNDING)

    def split_costs(self, sums: Any, asked: tuple[int, ...], n_features: int) -> Any:
        if self.prices is None:
            return np.zeros(n_features)
        prices = np.array([_price(self.prices, feature, asked) for feature in range(n_features)])
        if sums.dtype == object:
            return fractions(prices) / self.factor * sums[-1]
        return prices / float(self.factor) * sums[-1]


class _Rewards(Statement):
    """Minus the outcomes of the treatments given, some of which may have capacities."""

    is_linear = True

    def __init__(self, rows: Rows, capacities: Mapping[Any, float] | None) -> None:
        weight = Column.of(rows.weight)
        self.columns, self.factor = _weighted(rows.facts["rewards"], weight)
        self.sizes = [Column(np.abs(one.whole), one.unit) for one in self.columns]
        sizes = np.abs(rows.facts["rewards"])
        self.least_term = float(sizes.min(where=sizes > 0, initial=sizes.max()))
        self.columns.append(weight)
        self.total = weight.sum()
        names = rows.facts["classes"].tolist()
        limits = {names.index(name): share for name, share in (capacities or {}).items()}
        self.limited = list(limits)
        self.limits = list(limits.values())
        self.is_limited = bool(limits)
        self.is_concave = not limits
        self.units = [self.columns[0].unit, *(weight.unit for _ in limits)]

    def candidates(self, sums: Any) -> Any:
        nothing = 0 * sums[:, 0]
        labels = []
        for label in range(sums.shape[1] - 1):
            given = [sums[:, -1] if label == one else nothing for one in self.limited]
            labels.append(np.stack([-sums[:, label], *given], axis=1))
        return np.stack(labels, axis=1)

    def magnitudes(self, sums: Any, members: NDArray[np.bool_]) -> Any:
        return sums_of(self.sizes, members)

    def least(self, sums: Sequence[Floats], errors: Sequence[float]) -> Floats:
        high = [one + error for one, error in zip(sums[:-1], errors, strict=False)]
        cost = -np.max(high, axis=0)
        return cost - ROUNDING * np.abs(cost)

    def value(self, costs: Any, allowed: float) -> Any:
        kept = np.ones(len(costs), dtype=bool)
        for k, limit in enumerate(self.limits):
            given = costs[:, 1 + k] / like(self.total, costs)
            kept &= np.asarray(within(given, limit, allowed), dtype=bool)
        return np.where(kept, super().value(costs, allowed), np.inf)


class _SquaredError(Statement):
    """Squared distance from the mean of a leaf."""

    is_concave = True

    def __init__(self, rows: Rows) -> None:
        weight, target = Column.of(rows.weight), Column.of(rows.facts["target"])
        # Squares about any value cost the same; about the median few of them cancel.
        middle = float(np.sort(rows.facts["target"])[len(rows.weight) // 2])
        centred, self.factor = _of_size_one(target.minus(middle))
        self.factor **= 2
        first = weight * centred
        self.columns = [weight, first, first * centred]
        self.total = weight.sum()

    def candidates(self, sums: Any) -> Any:
        size, first, second = sums.T
        return np.asarray(second - first**2 / np.where(size > 0, size, 1))[:, None, None]

    def least(self, sums: Sequence[Floats], errors: Sequence[float]) -> Floats:
        size, first = sums[0] - errors[0], np.abs(sums[1]) + errors[1]
        some = size > 0
        mean = np.where(some, first**2 / np.where(some, size, 1.0), np.inf)
        return np.maximum(sums[2] * (1 - ROUNDING) - errors[2] - mean * (1 + ROUNDING), 0.0)


class _Own(Statement):
    """Costs by a task of the user's own."""

    price = 5.0

    def __init__(self, rows: Rows, task: Any) -> None:
        self.task, given = task, rows.facts["statistics"]
        self.columns = [Column.of(column) for column in given.T]
        self.off = 2.0**-50 * np.abs(given).sum(axis=0)
        self.total = Column.of(rows.weight).sum()

    def sums(self, members: NDArray[np.bool_]) -> NDArray[Any]:
        return super().sums(members).astype(np.float64)

    def candidates(self, sums: Any) -> Any:
        costs = np.asarray(self.task.leaf_cost(np.asfortranarray(sums)), dtype=np.float64)
        return costs[:, None, None]

    def doubt(self, sums: Any) -> float:
        # Code of the user's own may magnify the rounding of its sums.
        exact, found = self.candidates(sums), 0.0
        for k, off in enumerate(self.off.tolist()):
            for sign in (-off, off):
                moved = sums.copy()
                moved[:, k] += sign
                differ = np.abs(self.candidates(moved) - exact)
                found += float(differ[np.isfinite(differ)].sum())
        return found

    def split_costs(self, sums: Any, asked: tuple[int, ...], n_features: int) -> Any:
        split_cost = getattr(self.task, "split_cost", None)
        if split_cost is None:
            return np.zeros(n_features)
        cost = float(np.asarray(split_cost(np.asfortranarray(sums[None, :])))[0])
        return np.full(n_features, cost)


def _by_class(rows: Rows, n_classes: int | None = None) -> list[Column]:
    """Weight of each class; the real ones, also where a teacher has smoothed them."""
    codes, weight = rows.facts["labels"], Column.of(rows.weight)
    n_classes = len(rows.facts["classes"]) if n_classes is None else n_classes
    return [weight.where(codes == k) for k in range(n_classes)]


def _of_size_one(column: Column) -> tuple[Column, Fraction]:
    """A column over a power of two that makes its numbers about 1, and that power."""
    largest = column.largest
    power = largest.numerator.bit_length() - largest.denominator.bit_length() if largest else 0
    factor = Fraction(2) ** power
    return column.scaled(1 / factor), factor


def _weighted(values: Floats, weight: Column) -> tuple[list[Column], Fraction]:
    """Columns of values times the weight, over one power of two, and that power."""
    _, factor = _of_size_one(Column.of([np.abs(values).max(initial=0.0)]))
    # All in one unit: what is summed may be of any of them.
    every = Column.of(values.T).scaled(1 / factor)
    parts = np.split(every.whole, values.shape[1])
    return [weight * Column(part, every.unit) for part in parts], factor


def statement_of(tree: Any, rows: Rows) -> Statement | None:
    """The objective that the certificate names; None where it is none of rows (soft trees)."""
    kind, parameters = type(tree).__name__, tree.certificate_.parameters
    if kind == "SoftSurvivalTree":
        return None
    if kind == "GreedySurvivalTree":
        return likelihood(rows, parameters["prior"])
    if kind == "OptimalSurvivalTree":
        return survival(parameters, rows)
    if kind == "CompetingRisksTree":
        return competing_risks(parameters, rows)
    if kind == "OptimalTreeClassifier":
        name = parameters["objective"]
        return _Measure(rows, name) if name in ("f1", "mcc") else _Classes(rows, name)
    if kind == "CostSensitiveTreeClassifier":
        return _Costs(rows, tree)
    if kind == "FairTreeClassifier":
        return _FairLabels(rows, *fair_limit(parameters))
    if kind == "OptimalTreeRegressor" and parameters["objective"] == "poisson":
        counts, exposure = (Column.of(rows.facts[name]) for name in ("counts", "exposure"))
        return Counted(counts, exposure, Column.of(rows.weight), 0.0)
    if kind == "OptimalTreeRegressor":
        return _SquaredError(rows)
    if kind == "PolicyTree":
        return _Rewards(rows, parameters["capacities"])
    return _Own(rows, parameters["task"])


def fair_limit(parameters: Mapping[str, Any]) -> tuple[str, float]:
    """Which rows a fair classifier compares, and the limit on the difference."""
    fairness = parameters["fairness"]
    parity = type(fairness).__name__ == "DemographicParity"
    name = "demographic-parity" if parity else "equality-of-opportunity"
    return name, float(fairness.limit)


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
    costs = _by_column(parameters["feature_costs"], names)
    whole = []
    for at in range(len(names)):
        given = costs.get(at, 0.0)
        entry = given if isinstance(given, Mapping) else {"cost": given}
        full, less, origin = entry["cost"], entry.get("discounted_cost"), entry.get("origin")
        # A column without an origin is a measurement of its own.
        own = (at,) if origin is None else origin
        whole.append((float(full), float(full if less is None else less), own, entry.get("group")))
    return [whole[at] for at in of_feature]


def _price(prices: Prices, feature: int, asked: tuple[int, ...]) -> float:
    """Cost of a feature for a row that has passed the splits ``asked`` before."""
    cost, discount, origin, group = prices[feature]
    above = [prices[one] for one in asked]
    if any(origin == one[2] for one in above):
        return 0.0
    return discount if group is not None and any(group == one[3] for one in above) else cost


def path_prices(tree: Any) -> Floats:
    """Cost of the splits on the way to every leaf, for one row."""
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
    if isinstance(given, Mapping):
        return {names.index(key) if key in names else int(key): x for key, x in given.items()}
    return dict(enumerate(given))
