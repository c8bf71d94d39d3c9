"""Leaves in the form of a model file; what follows from the tree is recomputed exactly."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.records import (
    Count,
    NotNegative,
    Record,
    Written,
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
from bristlecone._leaves.policies import PolicyLeaves
from bristlecone._leaves.rates import RateLeaves
from bristlecone._search.certificate import Certificate
from bristlecone._tree import Tree
from bristlecone._types import Floats, Integers
from bristlecone.exceptions import ModelFormatError


class LabelsRecord(Record, frozen=True):
    """Labels with their NumPy type; dates as text, durations as whole numbers."""

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
            # Checked before NumPy sees it, because a type may be of any size.
            check_label_type(self.type, len(values))
        except ValueError as error:
            raise ModelFormatError(f"type is {self.type[:40]!r}: {error}") from None
        try:
            # An array of text would be as wide as the longest of the values.
            between = object if np.dtype(self.type).kind in PLAIN_TYPES else self.type
            # Numbers that overflow and times with a time zone are rejected below.
            with np.errstate(over="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                labels = np.array(values, dtype=between).astype(self.type)
        except (TypeError, ValueError, OverflowError) as error:
            raise ModelFormatError(f"values cannot be read: {error}") from None
        if plain_labels(labels) != values:
            raise ModelFormatError(f"values are not labels of type {self.type!r}")
        if not values or len(set(values)) < len(values):
            raise ModelFormatError("values are empty or repeat a label")
        return labels


# Rewards beyond 1e154 have covariances beyond the largest number.
Matrix = list[list[float | None]]


class LabelLeavesRecord(Record, frozen=True):
    """Leaves with one of a set of labels each; a subclass adds their ``values``."""

    labels: LabelsRecord
    label: list[Count]

    @classmethod
    def of(cls: type[Written], leaves: LabelLeaves, tree: Tree) -> Written:  # type: ignore[override]
        """The record of leaves."""
        return super().of(leaves, labels=LabelsRecord.of(leaves.labels))

    def _checked(
        self, values: list[list[float]], tree: Tree
    ) -> tuple[NDArray[Any], Integers, Floats]:
        """Labels, position of the label of every leaf, and the values."""
        with within("labels"):
            labels = self.labels.value()
        label = integers(self.label, "label", tree.n_leaves)
        if (label >= len(labels)).any():
            raise ModelFormatError(f"label counts beyond {len(labels)} labels")
        return labels, label, matrix(values, "values", (tree.n_leaves, len(labels)))


class PolicyLeavesRecord(LabelLeavesRecord, frozen=True, tag="policy"):
    """Leaves that prescribe a treatment each."""

    values: list[list[float]]
    covariance: list[Matrix]
    treated: list[list[Count]]
    events: list[list[Count]] | None
    whole: Matrix

    def value(self, tree: Tree, certificate: Certificate) -> PolicyLeaves:
        """The leaves, checked."""
        labels, label, values = self._checked(self.values, tree)
        k = len(labels)
        if len(self.covariance) != tree.n_leaves:
            raise ModelFormatError(
                f"covariance has {len(self.covariance)} matrices, not one a leaf"
            )
        covariance = [_covariance(one, "covariance", k) for one in self.covariance]
        treated = matrix(self.treated, "treated", (tree.n_leaves, k), np.int64)
        if (treated.sum(axis=1) != tree.n_node_samples[tree.leaves]).any():
            raise ModelFormatError("treated does not add up to the rows of the leaves")
        events = None
        if self.events is not None:
            events = matrix(self.events, "events", (tree.n_leaves, k), np.int64)
            if (events > treated).any():
                raise ModelFormatError("events are more than the rows of a treatment in a leaf")
        if (events is None) != (certificate.parameters.get("horizon") is None):
            raise ModelFormatError("events contradict the parameter horizon")
        whole = _covariance(self.whole, "whole", k + 1)
        return PolicyLeaves(labels, label, values, np.array(covariance), treated, events, whole)


def _covariance(values: Matrix, name: str, size: int) -> Floats:
    """A covariance, whose variances are not negative."""
    known = [[math.inf if entry is None else entry for entry in row] for row in values]
    if any(len(row) != size for row in known) or len(known) != size:
        raise ModelFormatError(f"{name} is not a matrix of shape ({size}, {size})")
    found = np.array(known, dtype=np.float64)
    if (np.diag(found) < 0).any() or (found != found.T).any():
        raise ModelFormatError(f"{name} is not a covariance matrix")
    return found


class ClassLeavesRecord(LabelLeavesRecord, frozen=True, tag="classes"):
    """Leaves of a classifier."""

    values: list[list[NotNegative]]
    shrinkage: NotNegative
    price: list[NotNegative] | None

    def value(self, tree: Tree, certificate: Certificate) -> ClassLeaves:
        """The leaves, checked."""
        labels, label, values = self._checked(self.values, tree)
        if not (values.sum(axis=1) > 0).all():
            raise ModelFormatError("values of a leaf are all zero")
        if self.shrinkage != certificate.parameters.get("shrinkage", self.shrinkage):
            raise ModelFormatError("shrinkage is not the parameter")
        balanced = certificate.parameters.get("objective") == "balanced-accuracy"
        shares = ClassLeaves.shares_of(tree, values, self.shrinkage, balanced=balanced)
        price = None if self.price is None else floats(self.price, "price", tree.n_leaves)
        return ClassLeaves(labels, label, values, self.shrinkage, shares, price)


class RatesRecord(Record, frozen=True):
    """Counts and exposures of the leaves, and the size with which λ is compared."""

    count: list[NotNegative]
    exposure: list[NotNegative]
    size: list[NotNegative] | None

    def value(self, n_leaves: int, shrinkage: float) -> dict[str, Floats | None]:
        """The attributes of ``RateLeaves``, checked."""
        count = floats(self.count, "count", n_leaves)
        exposure = floats(self.exposure, "exposure", n_leaves)
        if not (exposure > 0).all():
            raise ModelFormatError("exposure of a leaf is zero")
        if (self.size is None) != (shrinkage == 0):
            raise ModelFormatError("size does not match the shrinkage")
        size = None if self.size is None else floats(self.size, "size", n_leaves)
        return {"count": count, "exposure": exposure, "size": size}


class MeanLeavesRecord(Record, frozen=True, tag="means", omit_defaults=True):
    """Leaves that predict the mean of their rows."""

    mean: list[float]
    variance: list[NotNegative]
    quantiles: list[list[float]]
    shrinkage: NotNegative
    rates: RatesRecord | None = None

    @classmethod
    def of(cls, leaves: MeanLeaves, tree: Tree) -> MeanLeavesRecord:  # type: ignore[override]
        """The record of leaves."""
        rates = RatesRecord.of(leaves) if isinstance(leaves, RateLeaves) else None
        return super().of(leaves, rates=rates)

    def value(self, tree: Tree, certificate: Certificate) -> MeanLeaves:
        """The leaves, checked."""
        mean = floats(self.mean, "mean", tree.n_leaves)
        variance = floats(self.variance, "variance", tree.n_leaves)
        if self.shrinkage != certificate.parameters.get("shrinkage", self.shrinkage):
            raise ModelFormatError("shrinkage is not the parameter")
        quantiles = matrix(self.quantiles, "quantiles", (tree.n_leaves, len(LEVELS)))
        if (np.diff(quantiles, axis=1) < 0).any():
            raise ModelFormatError("quantiles of a leaf fall")
        if (self.rates is None) == (certificate.parameters.get("objective") == "poisson"):
            raise ModelFormatError("rates do not match the objective")
        rates: dict[str, Any] = {}
        if self.rates is not None:
            with within("rates"):
                rates = self.rates.value(tree.n_leaves, self.shrinkage)
        predicted = MeanLeaves.shrunk(tree, mean, self.shrinkage, rates.get("size"))
        kind = RateLeaves if rates else MeanLeaves
        return kind(mean, variance, quantiles, self.shrinkage, predicted, **rates)
