"""Feature costs: of columns, of groups of columns, and of their binary features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from bristlecone._data.arrays import unmasked
from bristlecone._data.frame import by_label
from bristlecone._data.targets import check_amounts
from bristlecone._tree import Tree
from bristlecone._types import Floats, Integers
from bristlecone.exceptions import InvalidParameterError

_NO_GROUP = -1

# Keys of an entry of ``feature_costs``.
_KEYS = ("cost", "discounted_cost", "group", "origin")

# Smaller costs have too few digits to be averaged over rows.
_LEAST = 1e-290


class Prices(NamedTuple):
    """Feature costs of binary features, or of columns, every array of shape (n_features,).

    A node that asks for feature f costs nothing for every row that reaches it if a feature of the
    same ``origin`` was asked for above, ``discount`` if one of the same ``group`` was (-1: no
    group), and ``cost`` otherwise.
    """

    cost: Floats
    discount: Floats
    origin: Integers
    group: Integers

    def of(self, places: Integers) -> Prices:
        """Prices of the features at these positions."""
        cost, discount = self.cost[places], self.discount[places]
        return Prices(cost, discount, self.origin[places], self.group[places])


def binary_prices(encoder: Any, costs: Any) -> Prices | None:
    """Costs of the binary features of a fitted encoder; None without costs.

    Parameters
    ----------
    encoder : fitted encoder
        A BinaryEncoder, or one that makes one feature of every column and keeps its name.
    costs : mapping, series, sequence or None
        From the name (or position) of a column, or one entry per column: its cost, or a mapping
        with "cost" and perhaps "discounted_cost", "group" and "origin".

    Raises
    ------
    InvalidParameterError
        For an encoder that does not keep the columns, names of no column, another number of
        entries, unknown keys, and amounts that are negative or a discounted cost above the cost.
    """
    if costs is None:
        return None
    names, asks = _columns_of(encoder)
    return column_prices(names, costs).of(asks)


def column_prices(names: list[str], costs: Any) -> Prices:
    """Prices of the columns with these names; as ``binary_prices``."""
    entries = [
        _entry(name, given) for name, given in zip(names, _by_column(costs, names), strict=True)
    ]
    cost = np.array([entry["cost"] for entry in entries])
    discount = np.array([entry.get("discounted_cost", entry["cost"]) for entry in entries])
    for name, *values in zip(names, cost.tolist(), discount.tolist(), strict=True):
        tiny = [value for value in values if 0 < value < _LEAST]
        if tiny:
            raise InvalidParameterError(
                f"feature_costs: {tiny[0]:g} of column {name!r} is less than {_LEAST:g}; make it "
                "0, or change the unit"
            )
    above = discount > cost
    if above.any():
        column = int(np.argmax(above))
        raise InvalidParameterError(
            f"feature_costs: the discounted cost of column {names[column]!r} is "
            f"{discount[column]:g}, more than its cost of {cost[column]:g}"
        )
    group = _codes([entry.get("group") for entry in entries])
    # A column without an origin has its own, whatever the other origins are called.
    own = [entry.get("origin") for entry in entries]
    origin = _codes([(k,) if label is None else label for k, label in enumerate(own)])
    return Prices(cost, discount, origin, group)


def _entry(name: str, given: Any) -> Mapping[str, Any]:
    """Costs of a column, by key."""
    label = f"feature_costs[{name!r}]"
    if not isinstance(given, Mapping):
        return {"cost": check_amounts(label, given, ())}
    unknown = [key for key in given if key not in _KEYS]
    if unknown or "cost" not in given:
        problem = f"an unknown key {unknown[0]!r}" if unknown else "no 'cost'"
        raise InvalidParameterError(
            f"feature_costs has {problem} for column {name!r}; an entry is a cost or a mapping "
            f"with 'cost' and perhaps {', '.join(map(repr, _KEYS[1:]))}"
        )
    entry = {key: value for key, value in given.items() if value is not None or key == "cost"}
    amounts = [key for key in ("cost", "discounted_cost") if key in entry]
    return entry | {key: check_amounts(f"{label}[{key!r}]", entry[key], ()) for key in amounts}


def _columns_of(encoder: Any) -> tuple[list[str], Integers]:
    """Names of the columns, and the position of the column of every binary feature."""
    if hasattr(encoder, "columns_") and hasattr(encoder, "features_"):
        names = [column.name for column in encoder.columns_]
        position = {name: k for k, name in enumerate(names)}
        asks = [position[feature.column] for feature in encoder.features_]
        return names, np.array(asks, dtype=np.int64)
    made = [str(name) for name in encoder.get_feature_names_out()]
    given = getattr(encoder, "feature_names_in_", [f"x{k}" for k in range(encoder.n_features_in_)])
    if made != [str(name) for name in given]:
        raise InvalidParameterError(
            f"feature_costs needs the column of every binary feature: use a BinaryEncoder, or an "
            f"encoder that keeps the columns and their names; {type(encoder).__name__} is neither"
        )
    return made, np.arange(len(made))


def _by_column(costs: Any, names: list[str]) -> list[Any]:
    """One entry per column; columns that a mapping does not name are free."""
    costs = by_label(costs, "feature_costs")
    if isinstance(costs, Mapping):
        entries: list[Any] = [0.0] * len(names)
        for key, entry in costs.items():
            place = names.index(key) if key in names else key
            if isinstance(place, bool) or not isinstance(place, (int, np.integer)):
                raise InvalidParameterError(
                    f"feature_costs names {key!r}, which is not a column of X"
                )
            if not 0 <= place < len(names):
                raise InvalidParameterError(
                    f"feature_costs names column {key!r} of the {len(names)} columns of X"
                )
            entries[place] = entry
        return entries
    if isinstance(costs, str) or not isinstance(costs, Iterable) or not getattr(costs, "ndim", 1):
        raise InvalidParameterError(
            "feature_costs must be a mapping from columns or a sequence with one entry per column; "
            f"got {costs!r}"
        )
    entries = list(unmasked(costs, "feature_costs"))
    if len(entries) != len(names):
        raise InvalidParameterError(
            f"feature_costs has {len(entries)} entries for {len(names)} columns of X"
        )
    return entries


def _codes(labels: list[Any]) -> Integers:
    """Number of every label, in order of first appearance; -1 for None."""
    code: dict[Any, int] = {}
    numbers = [
        _NO_GROUP if label is None else code.setdefault(label, len(code)) for label in labels
    ]
    return np.array(numbers, dtype=np.int64)


def path_prices(tree: Tree, prices: Prices | None) -> Floats:
    """Sum of the feature costs on the path to every leaf, per row, shape (n_leaves,)."""
    total = np.zeros(tree.node_count)
    if prices is None:
        return total[tree.leaves]
    asked: list[list[int]] = [[]] * tree.node_count
    for node in np.flatnonzero(~tree.is_leaf).tolist():
        feature, above = int(tree.feature[node]), asked[node]
        price = prices.cost[feature]
        if prices.group[feature] != _NO_GROUP and prices.group[feature] in prices.group[above]:
            price = prices.discount[feature]
        if prices.origin[feature] in prices.origin[above]:
            price = 0.0
        for child in (int(tree.children_left[node]), int(tree.children_right[node])):
            asked[child] = [*above, feature]
            total[child] = total[node] + price
    return total[tree.leaves]
