"""Leaves that assign one of a set of labels: classes or treatments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.texts import number, one_line, plain_number
from bristlecone._leaves.base import Columns, Leaves, Output
from bristlecone._leaves.shown import Bar, Bars, Fact, LeafShown, Shown
from bristlecone._leaves.shrinkage import shrunk_means
from bristlecone._tree import Tree
from bristlecone._types import Floats, Integers

# Types of labels in a file, as NumPy writes them. The length of a text has at most six digits.
_LABEL_TYPE = re.compile(
    r"\|b1|\|O|\|[iu]1|[<>][iu][248]|[<>]f[248]|[<>]U\d{1,6}|[<>][mM]8\[(s|ms|us|ns|m|h|D|W|M|Y)\]"
)
# NumPy types of dates and durations, by their form in JSON.
PLAIN_TYPES = {"M": "U", "m": "<i8"}
_MOST_LABEL_BYTES = 1 << 26


@dataclass(frozen=True, eq=False)
class LabelLeaves(Leaves):
    """One label per leaf, and a value for every label from the training rows of the leaf.

    Parameters
    ----------
    labels : array, shape (n_labels,)
        All labels in sorted order.
    label : array of int, shape (n_leaves,)
        Position in ``labels`` of the label of every leaf.
    values : array of float, shape (n_leaves, n_labels)
        Value of every label in every leaf.
    """

    labels: NDArray[Any]
    label: Integers
    values: Floats

    tree_kind, has_labels = "Policy tree", True
    _column, _caption = "value", "Bars: estimated mean outcome of every treatment."
    _headings = ("treatment", "value")

    @property
    def order(self) -> NDArray[Any]:
        return self.label

    @property
    def _shown_values(self) -> Floats:
        return self.values

    @property
    def _span(self) -> tuple[float, float]:
        known = self.values[np.isfinite(self.values)]
        return min(0.0, float(known.min(initial=0.0))), max(0.0, float(known.max(initial=0.0)))

    def _value_text(self, value: float) -> str:
        return number(value, 3)

    @cached_property
    def names(self) -> list[str]:
        """The labels as text."""
        return [str(name) for name in plain_labels(self.labels)]

    def shown(self, confidence: float, time_label: str) -> Shown:
        names, leaves = list(map(one_line, self.names)), []
        for label, values in zip(self.label.tolist(), self._shown_values.tolist(), strict=True):
            texts = list(map(self._value_text, values))
            bars = Bars(
                Bar(names[k], values[k], texts[k], k, k == label) for k in range(len(names))
            )
            fact = Fact(self._column, texts[label], is_drawn=True)
            leaves.append(LeafShown(names[label], bars, (fact,), name=names[label]))
        return Shown(tuple(leaves), self._span, self._caption)

    @property
    def _keys(self) -> tuple[str, ...]:
        """Names of the labels in programs."""
        names = plain_labels(self.labels)
        return tuple(str(name).lower() if isinstance(name, bool) else str(name) for name in names)

    def _given(self) -> NDArray[Any]:
        return as_plain(self.labels)[self.label]

    def outputs(self, times: Mapping[str, float]) -> list[Output]:
        return [("treatment", self._given(), ()), ("outcome", self.values, self._keys)]

    def heading(self, column: str, time_label: str) -> str:
        start, _, name = column.partition("_")
        if column == "label":
            return self._headings[0]
        if start in ("value", "share") and name:
            return f"{self._headings[1] if start == 'value' else start} of {name}"
        return super().heading(column, time_label)

    def predict(self, rows: Integers) -> NDArray[Any]:
        """Label of every row, shape (n,)."""
        return self.labels[self.label[rows]]

    def facts(self) -> list[dict[str, Any]]:
        given = plain_labels(self.labels)
        return [
            {"label": given[label], "values": dict(zip(self.names, values, strict=True))}
            for label, values in zip(self.label.tolist(), self.values.tolist(), strict=True)
        ]

    def text(self, facts: Mapping[str, Any]) -> str:
        values = ", ".join(
            f"{name}: {plain_number(value)}" for name, value in facts["values"].items()
        )
        return f"{facts['label']} ({values})"

    def table(self, times: Sequence[float], confidence: float) -> Columns:
        values = zip(self.names, self.values.T, strict=True)
        return [
            ("label", self.labels[self.label]),
            *((f"value_{name}", column) for name, column in values),
        ]


@dataclass(frozen=True, eq=False)
class ClassLeaves(LabelLeaves):
    """Leaves of a classifier; ``values`` are the weights of the classes.

    Parameters
    ----------
    labels, label, values
        As in LabelLeaves.
    shrinkage : float
        λ of the shares.
    shares : array of float, shape (n_leaves, n_classes)
        Result of ``predict_proba``; rows sum to 1.
    price : array of float, shape (n_leaves,), or None
        Cost of the features on the path to every leaf; None if features are free.
    """

    shrinkage: float
    shares: Floats
    price: Floats | None = None

    tree_kind, score_name, compared = "Classification tree", "accuracy", "shares"
    _column, _caption, _span = "share", "Bars: share of every class.", (0.0, 1.0)
    _headings = ("class", "weight")

    @property
    def _shown_values(self) -> Floats:
        return self.shares

    def _value_text(self, value: float) -> str:
        return f"{value:.2f}"

    def outputs(self, times: Mapping[str, float]) -> list[Output]:
        return [("label", self._given(), ()), ("probability", self.shares, self._keys)]

    @staticmethod
    def shares_of(tree: Tree, values: Floats, shrinkage: float, *, balanced: bool) -> Floats:
        """Shares of the classes, shrunk along the path.

        ``balanced`` says that values are shares of the classes' weights. Every class then counts
        the same, and all rows together have their total weight.
        """
        if shrinkage == 0:
            return values / values.sum(axis=1, keepdims=True)
        if balanced:
            values = values * (tree.weighted_n_node_samples[0] / values.sum())
        return shrunk_means(tree, values, values.sum(axis=1), shrinkage)

    def predict_proba(self, rows: Integers) -> Floats:
        """Share of every class, shape (n, n_classes)."""
        return self.shares[rows]

    def facts(self) -> list[dict[str, Any]]:
        facts = super().facts()
        if self.shrinkage > 0:
            for fact, shares in zip(facts, self.shares.tolist(), strict=True):
                fact["shrunk_shares"] = dict(zip(self.names, shares, strict=True))
        if self._is_priced:
            for fact, price in zip(facts, self.prices.tolist(), strict=True):
                fact["price"] = price
        return facts

    @property
    def prices(self) -> Floats:
        """Feature costs along the path to every leaf, shape (n_leaves,)."""
        return np.zeros(len(self.label)) if self.price is None else self.price

    def mean_cost(self, rows: Integers, costs: Floats, weight: Floats | None) -> float:
        """Mean cost of the labels and questions of rows in these leaves.

        ``costs`` are those of every label for every row, shape (n, n_classes).
        """
        paid = costs[np.arange(len(rows)), self.label[rows]] + self.prices[rows]
        return float(np.average(paid, weights=weight))

    @cached_property
    def _is_priced(self) -> bool:
        return bool(self.prices.any())

    def text(self, facts: Mapping[str, Any]) -> str:
        text = super().text(facts)
        if "shrunk_shares" in facts:
            shares = (f"{name}: {share:.3g}" for name, share in facts["shrunk_shares"].items())
            text += f", shrunk shares {', '.join(shares)}"
        return text + (f", price {plain_number(facts['price'], 6)}" if "price" in facts else "")

    def table(self, times: Sequence[float], confidence: float) -> Columns:
        columns = super().table(times, confidence)
        shares = zip(self.names, self.shares.T, strict=True)
        columns += [(f"share_{name}", column) for name, column in shares]
        return [*columns, ("price", self.prices)] if self._is_priced else columns


def sum_by_leaf(
    leaf: Integers, n_leaves: int, amounts: NDArray[Any], weight: NDArray[Any] | None
) -> Floats:
    """Weighted sums of the rows of every leaf, shape (n_leaves, n_columns)."""
    weighted = amounts if weight is None else amounts * weight[:, None]
    sums = [np.bincount(leaf, weights=column, minlength=n_leaves) for column in weighted.T]
    return np.stack(sums, axis=1)


def as_plain(values: NDArray[Any]) -> NDArray[Any]:
    """Values that become plain JSON types: dates as text, durations as whole numbers."""
    return values.astype(PLAIN_TYPES.get(values.dtype.kind, values.dtype))


def plain_labels(labels: NDArray[Any]) -> list[Any]:
    """Labels as plain JSON types; dates as text, durations as whole numbers."""
    return as_plain(labels).tolist()


def check_label_type(kind: str, n_labels: int) -> None:
    """Raise ValueError unless labels in a file may have this type, and it is small."""
    if not _LABEL_TYPE.fullmatch(kind):
        raise ValueError("they must be numbers, booleans, text, dates or durations")
    if np.dtype(kind).itemsize * n_labels > _MOST_LABEL_BYTES:
        raise ValueError("they are too long")
