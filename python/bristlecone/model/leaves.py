"""Leaves as they are in a file; what follows from the tree is computed again, bit for bit."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta
from msgspec.structs import asdict
from numpy.typing import NDArray

from bristlecone.data.records import (
    Count,
    NotNegative,
    Record,
    floats,
    integers,
    matrix,
    monotone,
    plain,
    times,
    within,
)
from bristlecone.errors import ModelFormatError
from bristlecone.leaves.labels import (
    PLAIN_TYPES,
    ClassLeaves,
    LabelLeaves,
    check_label_type,
    plain_labels,
)
from bristlecone.leaves.means import MeanLeaves
from bristlecone.leaves.shrinkage import LeafCurves
from bristlecone.leaves.smooth import SmoothLeaves, leaf_shares
from bristlecone.leaves.statistics import Baseline, LeafStatistics, hazard_ratio
from bristlecone.leaves.survival import StepLeaves, predicted_theta
from bristlecone.search.certificate import Certificate
from bristlecone.soft.models import MODELS
from bristlecone.soft.tree import SoftTree
from bristlecone.tree import Tree

__all__ = [
    "CURVE_ERROR",
    "ClassLeavesRecord",
    "LabelLeavesRecord",
    "LabelsRecord",
    "MeanLeavesRecord",
    "SmoothLeavesRecord",
    "StepLeavesRecord",
]

# Fact of a certificate: the largest error of survival on thinned curves.
CURVE_ERROR = "curve_error"


class BaselineRecord(Record, frozen=True):
    """Nelson–Aalen estimate of all training rows."""

    unique_times: list[float]
    event_times: list[float]
    cumulative_hazard: list[float]

    def value(self) -> Baseline:
        """The baseline, checked."""
        unique_times = times(self.unique_times, "unique_times")
        event_times = times(self.event_times, "event_times")
        hazard = monotone(self.cumulative_hazard, "cumulative_hazard", low=0.0, high=np.inf, sign=1)
        if not event_times.size or not np.isin(event_times, unique_times).all():
            raise ModelFormatError("event_times is empty or not part of unique_times")
        if hazard.shape != unique_times.shape:
            raise ModelFormatError("cumulative_hazard does not have one value per time")
        # An event of tiny weight may be too little to be seen in the sum.
        if (np.diff(hazard, prepend=0.0) > 0)[~np.isin(unique_times, event_times)].any():
            raise ModelFormatError("cumulative_hazard rises where there is no event")
        return Baseline(unique_times, event_times, hazard)


class LeafRecord(Record, frozen=True):
    """Training rows of a leaf of step curves."""

    node: Count
    n_samples: Annotated[int, Meta(ge=1, le=2**63 - 1)]
    n_events: Count
    weight: NotNegative
    events: NotNegative
    hazard: NotNegative
    theta: NotNegative
    event_times: list[float]
    kaplan_meier: list[float]
    nelson_aalen: list[float]
    at_risk: list[float]
    brier_times: list[float] | None
    brier_survival: list[float] | None

    def value(
        self, node: int, tree: Tree, baseline: Baseline, curve: str, prior: float
    ) -> LeafStatistics:
        """The statistics, checked."""
        arrays = {
            "event_times": times(self.event_times, "event_times"),
            "kaplan_meier": monotone(self.kaplan_meier, "kaplan_meier", low=0.0, high=1.0, sign=-1),
            "nelson_aalen": monotone(
                self.nelson_aalen, "nelson_aalen", low=0.0, high=np.inf, sign=1
            ),
            "at_risk": floats(self.at_risk, "at_risk"),
            **self._brier_curve(baseline, curve),
        }
        leaf = LeafStatistics(**asdict(self) | arrays)
        risks, shape = leaf.at_risk, leaf.event_times.shape
        expected = {
            "node": leaf.node == node,
            "n_samples": leaf.n_samples == tree.n_node_samples[node],
            "n_events": leaf.n_events <= leaf.n_samples,
            "weight": bool(np.isclose(leaf.weight, tree.weighted_n_node_samples[node], atol=0.0)),
            "events": leaf.events <= leaf.weight and (leaf.events > 0) == (leaf.n_events > 0),
            "hazard": leaf.hazard > 0,
            "event_times": bool(np.isin(leaf.event_times, baseline.event_times).all())
            and (leaf.event_times.size > 0) == (leaf.n_events > 0),
            "kaplan_meier": leaf.kaplan_meier.shape == shape,
            "nelson_aalen": leaf.nelson_aalen.shape == shape,
            "at_risk": risks.shape == shape
            and bool(((risks >= 1) & (risks <= leaf.n_samples)).all()),
        }
        for name, holds in expected.items():
            if not holds:
                raise ModelFormatError(f"{name} contradicts the tree or the other fields")
        # Both have a factor or term per event time: 1 − d/n and d/n.
        product = np.cumprod(1 - np.diff(leaf.nelson_aalen, prepend=0.0))
        if not np.allclose(leaf.kaplan_meier, product, rtol=0.0, atol=1e-9):
            raise ModelFormatError("kaplan_meier does not go with nelson_aalen")
        if leaf.theta != hazard_ratio(leaf.events, leaf.hazard, prior):
            raise ModelFormatError(
                "theta is not events / hazard" + ", with the prior" * (prior > 0)
            )
        return leaf

    def _brier_curve(self, baseline: Baseline, curve: str) -> dict[str, Any]:
        if (self.brier_times is None) != (curve != "brier-optimal"):
            raise ModelFormatError(f"brier_times contradicts the curve {curve!r}")
        if (self.brier_survival is None) != (self.brier_times is None):
            raise ModelFormatError("brier_survival does not go with brier_times")
        if self.brier_times is None or self.brier_survival is None:
            return {}
        falls = times(self.brier_times, "brier_times")
        survival = monotone(self.brier_survival, "brier_survival", low=0.0, high=1.0, sign=-1)
        if falls.shape != survival.shape:
            raise ModelFormatError("brier_survival does not have one value per time")
        if not np.isin(falls, baseline.unique_times).all():
            raise ModelFormatError("brier_times are not part of the training times")
        if (np.diff(survival, prepend=1.0) == 0).any():
            raise ModelFormatError("brier_survival has a step without a fall")
        return {"brier_times": falls, "brier_survival": survival}


class CurvesRecord(Record, frozen=True):
    """Shrunk step curves: one row of hazards per leaf."""

    times: list[float]
    hazard: list[list[float]]


class StepLeavesRecord(Record, frozen=True, tag="step survival"):
    """Leaves with one step curve each."""

    statistics: list[LeafRecord]
    baseline: BaselineRecord
    curve: Literal["proportional", "kaplan-meier", "brier-optimal"]
    by_theta: bool
    prior: NotNegative
    shrinkage: NotNegative
    shrunk: CurvesRecord | None

    @classmethod
    def of(cls, leaves: StepLeaves) -> StepLeavesRecord:  # type: ignore[override]
        """The record of leaves."""
        return super().of(
            leaves,
            statistics=[LeafRecord.of(leaf) for leaf in leaves.statistics],
            baseline=BaselineRecord.of(leaves.baseline),
            shrunk=None if leaves.shrunk is None else CurvesRecord.of(leaves.shrunk),
        )

    def value(self, tree: Tree, certificate: Certificate) -> StepLeaves:
        """The leaves, checked."""
        with within("baseline"):
            baseline = self.baseline.value()
        _check_number(self.statistics, "statistics", tree)
        statistics = []
        for k, node in enumerate(tree.leaves.tolist()):
            with within(f"statistics[{k}]"):
                leaf = self.statistics[k].value(node, tree, baseline, self.curve, self.prior)
                statistics.append(leaf)
        happened = np.unique(np.concatenate([leaf.event_times for leaf in statistics]))
        # Thinned curves keep different times; those of a leaf are among the baseline's anyway.
        thinned = CURVE_ERROR in certificate.facts
        if not thinned and not np.array_equal(happened, baseline.event_times):
            raise ModelFormatError("baseline.event_times are not the event times of the leaves")
        shrinkage = certificate.parameters.get("shrinkage", "auto")
        if shrinkage != "auto" and shrinkage != self.shrinkage:
            raise ModelFormatError("shrinkage is not the parameter")
        theta = predicted_theta(tree, tuple(statistics), self.shrinkage if self.by_theta else 0.0)
        return StepLeaves(
            statistics=tuple(statistics),
            baseline=baseline,
            curve=self.curve,
            by_theta=self.by_theta,
            prior=self.prior,
            shrinkage=self.shrinkage,
            theta=theta,
            shrunk=self._curves(tree, baseline, thinned),
        )

    def _curves(self, tree: Tree, baseline: Baseline, thinned: bool) -> LeafCurves | None:
        if (self.shrunk is None) != (self.shrinkage == 0 or self.curve == "proportional"):
            raise ModelFormatError("shrunk contradicts curve and shrinkage")
        if self.shrunk is None:
            return None
        with within("shrunk"):
            at = times(self.shrunk.times, "times")
            hazard = matrix(self.shrunk.hazard, "hazard", (tree.n_leaves, at.size))
            by_event = self.curve == "kaplan-meier"
            known = baseline.event_times if by_event else baseline.unique_times
            if not (np.isin(at, known).all() if thinned else np.array_equal(at, known)):
                raise ModelFormatError("times are not those of the baseline")
            if (hazard < 0).any() or (hazard > 1).any():
                raise ModelFormatError("hazard is outside [0, 1]")
        return LeafCurves(at, hazard)


class SmoothLeavesRecord(Record, frozen=True, tag="smooth survival"):
    """Leaves with a survival model each."""

    model: Annotated[str, Meta(extra_json_schema={"enum": sorted(MODELS)})]
    prepared: dict[str, list[float]]
    linear: list[list[float]]
    shape: list[list[float]]
    log_unit: float
    baseline: BaselineRecord
    n_events: list[Count]
    median: list[float | Literal["not reached"] | None]

    @classmethod
    def of(cls, leaves: SmoothLeaves) -> SmoothLeavesRecord:  # type: ignore[override]
        """The record of leaves."""
        return super().of(
            leaves,
            model=leaves.model.name,
            prepared=leaves.model.to_dict(),
            baseline=BaselineRecord.of(leaves.baseline),
            median=[
                None if np.isnan(median) else median if np.isfinite(median) else "not reached"
                for median in leaves.median.tolist()
            ],
        )

    def value(self, tree: SoftTree, certificate: Certificate) -> SmoothLeaves:
        """The leaves, checked."""
        if self.model != certificate.parameters.get("leaf", self.model) or self.model not in MODELS:
            raise ModelFormatError(f"model is {self.model!r}, not the parameter leaf")
        try:
            model = MODELS[self.model].from_dict(self.prepared)
        except ValueError as error:
            raise ModelFormatError(f"prepared: {error}") from None
        with within("baseline"):
            baseline = self.baseline.value()
        count, rows = tree.n_leaves, tree.n_node_samples[tree.leaves]
        events = integers(self.n_events, "n_events", count)
        if (events > rows).any():
            raise ModelFormatError("n_events is more than the rows of a leaf")
        told = {None: np.nan, "not reached": np.inf}
        median = floats(
            [told.get(x, x) for x in self.median],  # type: ignore[misc,arg-type]
            "median",
            count,
        )
        if (median < 0).any() or (np.isnan(median) != (rows == 0)).any():
            raise ModelFormatError("median is negative or contradicts the rows of a leaf")
        return SmoothLeaves(
            model=model,
            linear=matrix(self.linear, "linear", (count, tree.weights.shape[1] + 1)),
            shape=matrix(self.shape, "shape", (count, model.n_shape)),
            log_unit=self.log_unit,
            baseline=baseline,
            n_events=events,
            median=median,
            share=leaf_shares(tree),
        )


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
    def of(cls, leaves: LabelLeaves) -> LabelLeavesRecord:  # type: ignore[override]
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
    def of(cls, leaves: ClassLeaves) -> ClassLeavesRecord:  # type: ignore[override]
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
    shrinkage: NotNegative

    def value(self, tree: Tree, certificate: Certificate) -> MeanLeaves:
        """The leaves, checked."""
        mean = floats(self.mean, "mean", tree.n_leaves)
        variance = floats(self.variance, "variance", tree.n_leaves)
        if self.shrinkage != certificate.parameters.get("shrinkage", self.shrinkage):
            raise ModelFormatError("shrinkage is not the parameter")
        predicted = MeanLeaves.shrunk(tree, mean, self.shrinkage)
        return MeanLeaves(mean, variance, self.shrinkage, predicted)


def _check_number(values: list[Any], name: str, tree: Tree) -> None:
    if len(values) != tree.n_leaves:
        raise ModelFormatError(f"{name} has {len(values)} entries for {tree.n_leaves} leaves")
