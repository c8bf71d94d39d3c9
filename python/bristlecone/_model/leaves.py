"""Leaves as they are in a file; what follows from the tree is computed again, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.records import (
    Count,
    NotNegative,
    Record,
    floats,
    integers,
    matrix,
    plain,
    within,
)
from bristlecone._leaves.labels import (
    PLAIN_TYPES,
    ClassLeaves,
    LabelLeaves,
    check_label_type,
    plain_labels,
)
from bristlecone._leaves.means import LEVELS, MeanLeaves
from bristlecone._search.certificate import Certificate
from bristlecone._tree import Tree
from bristlecone.exceptions import ModelFormatError


class LabelsRecord(Record, frozen=True):
    """Labels with their type as NumPy writes it; dates as text, durations as whole numbers."""

    type: str
    values: list[bool | int | float | str]

    @classmethod
    def of(cls, labels: NDArray[Any]) -> LabelsRecord:  # type: ignore[override]
        """The record of labels; TypeError for those that cannot be read again."""
        kind = labels.dtype.str
        try:
            check_label_type(kind, len(labels))
        except ValueError as error:
            raise TypeError(f"labels of type {labels.dtype} cannot be saved: {error}") from None
        values = [plain(label) for label in plain_labels(labels)]
        for label in values:
            if not isinstance(label, (bool, int, float, str)):
                raise TypeError(f"labels of type {type(label).__name__} cannot be saved")
        return cls(type=kind, values=values)

    def value(self) -> NDArray[Any]:
        """The labels: distinct, and at least one."""
        values: list[Any] = self.values
        try:
            # Before NumPy sees it: a type may be of any size.
            check_label_type(self.type, len(values))
        except ValueError as error:
            raise ModelFormatError(f"type is {self.type[:40]!r}: {error}") from None
        try:
            # An array of text would be as wide as the longest of the values.
            between = object if np.dtype(self.type).kind in PLAIN_TYPES else self.type
            with np.errstate(over="ignore"):  # infinity is not what was written
                labels = np.array(values, dtype=between).astype(self.type)
        except (TypeError, ValueError, OverflowError) as error:
            raise ModelFormatError(f"values cannot be read: {error}") from None
        if plain_labels(labels) != values:
            raise ModelFormatError(f"values are no labels of type {self.type!r}")
        if not values or len(set(values)) < len(values):
            raise ModelFormatError("values are none or repeat a label")
        return labels


class LabelLeavesRecord(Record, frozen=True, tag="labels"):
    """Leaves that give a label each."""

    labels: LabelsRecord
    label: list[Count]
    values: list[list[float]]

    @classmethod
    def of(cls, leaves: LabelLeaves, tree: Tree) -> LabelLeavesRecord:  # type: ignore[override]
        """The record of leaves."""
        return super().of(leaves, labels=LabelsRecord.of(leaves.labels))

    def value(self, tree: Tree, certificate: Certificate) -> LabelLeaves:
        """The leaves, checked."""
        return LabelLeaves(*_labels_of(self, tree))


class ClassLeavesRecord(Record, frozen=True, tag="classes"):
    """Leaves of a classifier."""

    labels: LabelsRecord
    label: list[Count]
    values: list[list[NotNegative]]
    shrinkage: NotNegative
    price: list[NotNegative] | None

    @classmethod
    def of(cls, leaves: ClassLeaves, tree: Tree) -> ClassLeavesRecord:  # type: ignore[override]
        """The record of leaves."""
        return super().of(leaves, labels=LabelsRecord.of(leaves.labels))

    def value(self, tree: Tree, certificate: Certificate) -> ClassLeaves:
        """The leaves, checked."""
        labels, label, values = _labels_of(self, tree)
        if not (values.sum(axis=1) > 0).all():
            raise ModelFormatError("values of a leaf are all zero")
        if self.shrinkage != certificate.parameters.get("shrinkage", self.shrinkage):
            raise ModelFormatError("shrinkage is not the parameter")
        balanced = certificate.parameters.get("objective") == "balanced-accuracy"
        shares = ClassLeaves.shares_of(tree, values, self.shrinkage, balanced=balanced)
        price = None if self.price is None else floats(self.price, "price", tree.n_leaves)
        return ClassLeaves(labels, label, values, self.shrinkage, shares, price)


def _labels_of(
    record: LabelLeavesRecord | ClassLeavesRecord, tree: Tree
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.float64]]:
    with within("labels"):
        labels = record.labels.value()
    label = integers(record.label, "label", tree.n_leaves)
    if (label >= len(labels)).any():
        raise ModelFormatError(f"label counts beyond {len(labels)} labels")
    return labels, label, matrix(record.values, "values", (tree.n_leaves, len(labels)))


class MeanLeavesRecord(Record, frozen=True, tag="means"):
    """Leaves that predict the mean of their rows."""

    mean: list[float]
    variance: list[NotNegative]
    quantiles: list[list[float]]
    shrinkage: NotNegative

    @classmethod
    def of(cls, leaves: MeanLeaves, tree: Tree) -> MeanLeavesRecord:  # type: ignore[override]
        """The record of leaves."""
        return super().of(leaves)

    def value(self, tree: Tree, certificate: Certificate) -> MeanLeaves:
        """The leaves, checked."""
        mean = floats(self.mean, "mean", tree.n_leaves)
        variance = floats(self.variance, "variance", tree.n_leaves)
        if self.shrinkage != certificate.parameters.get("shrinkage", self.shrinkage):
            raise ModelFormatError("shrinkage is not the parameter")
        quantiles = matrix(self.quantiles, "quantiles", (tree.n_leaves, len(LEVELS)))
        if (np.diff(quantiles, axis=1) < 0).any():
            raise ModelFormatError("quantiles of a leaf fall")
        predicted = MeanLeaves.shrunk(tree, mean, self.shrinkage)
        return MeanLeaves(mean, variance, quantiles, self.shrinkage, predicted)
