"""Trees that assign labels by the weights of the classes, including fair ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np

from bristlecone._search.certificate import ERRORS
from bristlecone._types import Bools, Floats
from bristlecone.trust._columns import Table
from bristlecone.trust._compare import Checks, Pairs
from bristlecone.trust._exact import Column, fractions, log_ratio
from bristlecone.trust._rows import Rows, check_groups, down, groups_of, labelled, rows_of
from bristlecone.trust._statement import ROUNDING, Statement, differences, like, within


def read_rows(tree: Any, table: Table, y: Any, weight: Any, more: Mapping[str, Any]) -> Rows:
    """Labels, with weights by class if the tree has any."""
    classes, codes, kept = labelled(y, weight, table)
    asked = tree.certificate_.parameters["class_weight"]
    if asked is not None:
        weight = _weighted_by_class(asked, classes, codes, kept, weight)
        kept = weight > 0
    codes = codes[kept]
    own = None if weight is None else weight[kept]
    facts = {"labels": codes, "classes": classes}
    return rows_of(tree, table, weight, kept, (codes, classes, own, kept), facts)


def _weighted_by_class(
    asked: Any, classes: Any, codes: Any, kept: Bools, weight: Floats | None
) -> Floats:
    """Weight of each row times that of its class; 0 for rows that are not kept."""
    factor = np.zeros(len(codes))
    if isinstance(asked, Mapping):
        by_class = np.array([asked.get(label, 1.0) for label in classes.tolist()])
    else:
        own = np.ones(len(codes)) if weight is None else weight
        in_classes = (kept & (codes == k) for k in range(len(classes)))
        totals = np.array([math.fsum(own[rows]) for rows in in_classes])
        by_class = totals.sum() / (len(classes) * totals)
    factor[kept] = by_class[codes[kept]]
    return factor if weight is None else factor * weight


def read_fair_rows(tree: Any, table: Table, y: Any, weight: Any, more: Mapping[str, Any]) -> Rows:
    """Labels, with the group of each row."""
    classes, codes, kept = labelled(y, weight, table)
    column = tree.certificate_.parameters["fairness"].sensitive_feature
    groups, group = groups_of(table, more, column, kept)
    in_groups = np.ones(int(kept.sum())) if weight is None else weight[kept]
    arrays = [group, groups]
    asked = tree.certificate_.parameters.get("class_weight")
    if asked is not None:
        weight = _weighted_by_class(asked, classes, codes, kept, weight)
        arrays.append(in_groups)
    own = None if weight is None else weight[kept]
    facts = {
        "labels": codes[kept],
        "classes": classes,
        "groups": groups,
        "group": group,
        "group weight": in_groups,
    }
    return rows_of(tree, table, weight, kept, (codes[kept], classes, own, *arrays), facts)


def objective(tree: Any, rows: Rows) -> Statement:
    """Objective of an ``OptimalTreeClassifier``."""
    name = tree.certificate_.parameters["objective"]
    return _Measure(rows, name) if name in ("f1", "mcc") else _Classes(rows, name)


def fair_objective(tree: Any, rows: Rows) -> Statement:
    """Objective of a ``FairTreeClassifier``."""
    return _FairLabels(rows, *fair_limit(tree.certificate_.parameters))


class _Classes(Statement):
    """Misclassified weight, or the impurity of the leaves."""

    is_concave = True

    def __init__(self, rows: Rows, name: str) -> None:
        real = _by_class(rows)
        self.columns, self.name = real, name
        if "smoothed" in rows.facts:
            weight = Column.of(rows.weight)
            self.columns = [weight * Column.of(share) for share in rows.facts["smoothed"].T]
        self.unit = [Fraction(1)] * len(real)
        self.total = sum((column.sum() for column in real), Fraction(0))
        if name == "balanced-accuracy":
            self.unit = [1 / column.sum() for column in real]
            self.total = Fraction(len(real))

    def candidates(self, sums: Any) -> Any:
        sums = sums * np.array(self.unit, dtype=sums.dtype)
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
        # More weight of any class never costs less.
        terms = zip(sums, errors, map(float, self.unit), strict=True)
        low = np.array([np.maximum(one - error, 0.0) * unit for one, error, unit in terms])
        # Without subtracting nearly equal sums.
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
        # The correlation is 0 if every leaf predicts the same.
        one_sided = (said <= 0) | (not_said <= 0)
        scale = np.where(one_sided, positive * negative, said * not_said) * positive * negative
        squared = product * product / scale
        if costs.dtype == object:
            root = fractions([math.sqrt(one) for one in squared.tolist()])
        else:
            root = np.sqrt(squared)
        # 1 − r without subtracting nearly equal numbers.
        above = (1 - squared) / (1 + root)
        return np.where(one_sided, 1, np.where(product >= 0, above, 1 + root))


class _FairLabels(Statement):
    """Misclassified weight of two classes under a limit on the differences between groups.

    A cost vector contains the errors and, for each compared rate and each pair of groups, the
    difference of the rates.
    """

    is_limited = True
    is_linear = True

    def __init__(self, rows: Rows, constraint: str, limit: float) -> None:
        weight, group = rows.facts["group weight"], rows.facts["group"]
        pairs = list(combinations(range(len(rows.facts["groups"])), 2))
        compared = _compared(constraint, rows.facts["labels"])
        differ = [differences(weight * of, group, pair) for of in compared for pair in pairs]
        self.columns = [*_by_class(rows, 2), *differ]
        self.units = [self.columns[0].unit, *(column.unit for column in differ)]
        self.total, self.limit = Column.of(rows.weight).sum(), limit

    def candidates(self, sums: Any) -> Any:
        no = np.concatenate([sums[:, 1:2], 0 * sums[:, 2:]], axis=1)
        yes = np.concatenate([sums[:, 0:1], sums[:, 2:]], axis=1)
        return np.stack([no, yes], axis=1)

    def value(self, costs: Any, allowed: float) -> Any:
        kept = within(np.abs(costs[:, 1:]).max(axis=1), self.limit, allowed)
        return np.where(kept, super().value(costs, allowed), np.inf)


def _by_class(rows: Rows, n_classes: int | None = None) -> list[Column]:
    """Weight of each class; the real ones, even if a teacher has smoothed them."""
    codes, weight = rows.facts["labels"], Column.of(rows.weight)
    n_classes = len(rows.facts["classes"]) if n_classes is None else n_classes
    return [weight.where(codes == k) for k in range(n_classes)]


def fair_limit(parameters: Mapping[str, Any]) -> tuple[str, float]:
    """The rates that a fair classifier compares, and the limit on their differences."""
    fairness = parameters["fairness"]
    return type(fairness).__name__, float(fairness.limit)


def _compared(constraint: str, codes: Any) -> list[Bools]:
    """Rows of each compared rate."""
    return {
        "DemographicParity": [codes >= 0],
        "EqualityOfOpportunity": [codes == 1],
        "EqualizedOdds": [codes == 1, codes == 0],
    }[constraint]


def check_leaves(
    tree: Any, rows: Rows, reached: Bools, checks: Checks, prices: Floats | None = None
) -> None:
    """Shares of the classes, with the prices of the leaves if there are any, and labels."""
    leaves, parameters = tree.leaves_, tree.certificate_.parameters
    codes, n_classes = rows.facts["labels"], len(rows.facts["classes"])
    nodes = tree.tree_
    weights = (reached * rows.weight[:, None]).T @ (codes[:, None] == np.arange(n_classes))
    errors = tree.certificate_.facts.get(ERRORS)
    if errors is not None:
        of_leaf, yes = weights[nodes.leaves], leaves.label == 1
        own = float(of_leaf[yes, 0].sum()), float(of_leaf[~yes, 1].sum())
        text = "{:.10g} false positives, {:.10g} false negatives".format(*own)
        checks.same("labels", text, [("errors of both kinds", own, errors)])
    balanced = parameters.get("objective") == "balanced-accuracy"
    if balanced:
        weights = weights / np.where(weights[0] > 0, weights[0], 1.0)
    size = weights.sum(axis=1, keepdims=True)
    shrinkage = float(parameters["shrinkage"])
    share = weights / size
    if shrinkage > 0:
        unit = rows.total / size[0] if balanced else 1.0

        def value(node: int, parent: Floats) -> Floats:
            count = size[node] * unit + shrinkage
            return np.asarray(weights[node] * unit / count + shrinkage / count * parent)

        share = np.array(down(tree, share[0], value))
    else:
        share = share[nodes.leaves]
    pairs: Pairs = [
        ("weight of [leaf, class]", weights[nodes.leaves], leaves.values),
        ("shrinkage", shrinkage, float(leaves.shrinkage)),
        ("share of [leaf, class]", share, leaves.shares),
    ]
    if prices is not None:
        pairs.append(("price of leaf", prices, leaves.prices))
    checks.same("shares of classes", f"{n_classes} classes", pairs)
    objective = parameters.get("objective")
    if objective in ("gini", "entropy"):
        # Other objectives follow from the labels.
        best = weights[nodes.leaves].max(axis=1)
        given = weights[nodes.leaves, leaves.label]
        checks.same("labels", "the most frequent class", [("weight of its label", best, given)])
    groups = tree.certificate_.groups
    if groups is not None:
        predicted = reached[:, nodes.leaves] @ leaves.label.astype(np.float64)
        compared = _compared(fair_limit(parameters)[0], codes)
        check_groups(rows, predicted, compared, groups, checks)
        if groups.confusion is not None:
            counts = np.zeros((len(rows.facts["groups"]), 2, 2))
            cells = rows.facts["group"], codes, predicted.astype(np.int64)
            np.add.at(counts, cells, rows.facts["group weight"])
            pair = ("weight of [group, class, prediction]", counts, groups.confusion)
            checks.same("confusion by group", f"{len(counts)} groups", [pair])
