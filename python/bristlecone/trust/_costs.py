"""Trees that assign labels by the costs of errors, and pay for the features they ask."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bristlecone._data.frame import by_label, columns_by_name, costs_by_class
from bristlecone._data.targets import check_amounts
from bristlecone._types import Bools, Floats
from bristlecone.trust import _labels
from bristlecone.trust._columns import Table
from bristlecone.trust._compare import Checks
from bristlecone.trust._exact import Column, fractions, weighted
from bristlecone.trust._rows import Rows, asked_above, labelled, rows_of
from bristlecone.trust._statement import ROUNDING, Statement

Prices = list[tuple[float, float, Any, Any]]


def read_rows(tree: Any, table: Table, y: Any, weight: Any, more: Mapping[str, Any]) -> Rows:
    """Labels, with the cost of each in every row."""
    classes, codes, kept = labelled(y, weight, table)
    codes, matrix = codes[kept], costs_by_class(tree.certificate_.parameters["cost_matrix"])
    if "costs" in more:
        costs = columns_by_name(more["costs"], classes.tolist(), "costs")
        costs = check_amounts("costs", costs, (table.n_rows, len(tree.classes_)))[kept]
    elif matrix is None:
        costs = (np.arange(len(classes)) != codes[:, None]).astype(np.float64)
    elif isinstance(matrix, Mapping):
        names = list(matrix)
        place = [names.index(name) for name in classes.tolist()]
        costs = np.array(list(matrix.values()), dtype=np.float64)[np.ix_(place, place)][codes]
    else:
        costs = np.array(matrix, dtype=np.float64)[codes]
    own = None if weight is None else weight[kept]
    facts = {"labels": codes, "classes": classes, "costs": costs}
    return rows_of(tree, table, weight, kept, (codes, classes, own, costs), facts)


def check_leaves(tree: Any, rows: Rows, reached: Bools, checks: Checks) -> None:
    """Shares of the classes, and the prices of the leaves."""
    _labels.check_leaves(tree, rows, reached, checks, path_prices(tree))


class Costs(Statement):
    """Costs of labels, and of the splits on the path to a leaf."""

    is_concave = True

    def __init__(self, tree: Any, rows: Rows) -> None:
        weight = Column.of(rows.weight)
        self.columns, self.factor = weighted(
            rows.facts.get("smoothed", rows.facts["costs"]), weight
        )
        self.columns.append(weight)
        self.total = weight.sum()
        self.prices = _prices(tree)

    def candidates(self, sums: Any) -> Any:
        return sums[:, :-1, None]

    def least(self, sums: Sequence[Floats], errors: Sequence[float]) -> Floats:
        low = [one - error for one, error in zip(sums[:-1], errors, strict=False)]
        # No label has a negative cost.
        return np.maximum(np.min(low, axis=0), 0.0) * (1 - ROUNDING)

    def split_costs(self, sums: Any, asked: tuple[int, ...], n_features: int) -> Any:
        if self.prices is None:
            return np.zeros(n_features)
        prices = np.array([_price(self.prices, feature, asked) for feature in range(n_features)])
        if sums.dtype == object:
            return fractions(prices) / self.factor * sums[-1]
        return prices / float(self.factor) * sums[-1]


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
        # A column without an origin is a separate measurement.
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
    """Cost of the splits on the path to every leaf, for one row."""
    nodes, prices, above = tree.tree_, _prices(tree), asked_above(tree)
    paid = np.zeros(nodes.n_leaves)
    if prices is not None:
        for place, path in enumerate(above[leaf] for leaf in nodes.leaves):
            paid[place] = sum(_price(prices, one, path[:k]) for k, one in enumerate(path))
    return paid


def _by_column(given: Any, names: list[str]) -> dict[int, Any]:
    """Entries by the place of their column."""
    given = by_label(given, "feature_costs")
    if isinstance(given, Mapping):
        return {names.index(key) if key in names else int(key): x for key, x in given.items()}
    return dict(enumerate(given))
