"""Survival leaves in the form of a model file: rows counted by the times at which they left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta
from msgspec.structs import asdict, replace

from bristlecone._data.records import (
    Count,
    NotNegative,
    Record,
    convert,
    floats,
    integers,
    matrix,
    monotone,
    times,
    within,
)
from bristlecone._leaves.base import SurvivalLeaves
from bristlecone._leaves.causes import IncidenceLeaves
from bristlecone._leaves.follow_up import FollowUp
from bristlecone._leaves.shrinkage import LeafCurves
from bristlecone._leaves.smooth import SmoothLeaves, leaf_shares
from bristlecone._leaves.statistics import Baseline, LeafStatistics, hazard_ratio, statistics_of
from bristlecone._leaves.survival import StepLeaves, predicted_theta
from bristlecone._search.certificate import Certificate
from bristlecone._soft.models import MODELS
from bristlecone._soft.tree import SoftTree
from bristlecone._tree import Tree
from bristlecone._types import Floats
from bristlecone.exceptions import ModelFormatError

# Name of a fact in a certificate: the largest error of survival on thinned curves.
CURVE_ERROR = "curve_error"
# Most rows that are counted one by one when a file is read; a small file may claim more.
_MOST_ROWS = 10_000_000
# Largest time that is written as an integer; files contain none of more than 64 bits.
_MOST_WHOLE = 2.0**53


class BaselineRecord(Record, frozen=True):
    """Nelson–Aalen estimate of all training rows."""

    event_times: list[float]
    cumulative_hazard: list[float]

    def value(self, unique_times: Floats, needs_event: bool) -> Baseline:
        """The baseline at these times, checked."""
        event_times = times(self.event_times, "event_times")
        hazard = monotone(self.cumulative_hazard, "cumulative_hazard", high=np.inf, sign=1)
        is_empty = needs_event and not event_times.size
        if is_empty or not np.isin(event_times, unique_times).all():
            raise ModelFormatError("event_times is empty or not part of rows.times")
        if hazard.shape != unique_times.shape:
            raise ModelFormatError("cumulative_hazard does not have one value per time")
        # An event of tiny weight may be too small to change the sum.
        if (np.diff(hazard, prepend=0.0) > 0)[~np.isin(unique_times, event_times)].any():
            raise ModelFormatError("cumulative_hazard rises where there is no event")
        return Baseline(unique_times, event_times, hazard)


class LeafRecord(Record, frozen=True):
    """Training rows of a leaf of step curves."""

    node: Count
    n_samples: Count
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
        self,
        follow_up: FollowUp,
        node: int,
        tree: Any,
        baseline: Baseline,
        curve: str,
        prior: float,
        thinned: bool,
    ) -> LeafStatistics:
        """The statistics, checked."""
        arrays = {
            "event_times": times(self.event_times, "event_times"),
            "kaplan_meier": monotone(self.kaplan_meier, "kaplan_meier", high=1.0, sign=-1),
            "nelson_aalen": monotone(self.nelson_aalen, "nelson_aalen", high=np.inf, sign=1),
            "at_risk": floats(self.at_risk, "at_risk"),
            **self._brier_curve(baseline, curve),
        }
        leaf = LeafStatistics(**asdict(self) | arrays, follow_up=follow_up)
        risks, shape = leaf.at_risk, leaf.event_times.shape
        # With delayed entry, all events of a cause may follow the time at which survival falls to
        # 0; a thinned curve has no steps then.
        may_be_flat = thinned or leaf.n_events == 0
        expected = {
            "node": leaf.node == node,
            "n_samples": leaf.n_samples == tree.n_node_samples[node],
            "n_events": leaf.n_events <= leaf.n_samples,
            "weight": bool(np.isclose(leaf.weight, tree.weighted_n_node_samples[node], atol=0.0)),
            "events": leaf.events <= leaf.weight and (leaf.events > 0) == (leaf.n_events > 0),
            "hazard": (leaf.hazard > 0) == (leaf.n_samples > 0 and baseline.event_times.size > 0),
            "event_times": bool(np.isin(leaf.event_times, baseline.event_times).all())
            and (leaf.n_events > 0 if leaf.event_times.size else may_be_flat),
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
        survival = monotone(self.brier_survival, "brier_survival", high=1.0, sign=-1)
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


class FollowUpRecord(Record, frozen=True):
    """Rows of a leaf by the times at which they left.

    ``times`` are steps forward in the list of all times; the first starts before the list.
    """

    times: list[Annotated[int, Meta(ge=1)]]
    events: list[Count]
    censored: list[Count]
    entry_times: list[NotNegative] | None

    @classmethod
    def of(cls, follow_up: FollowUp, unique_times: Floats) -> FollowUpRecord:  # type: ignore[override]
        """The record of the rows of a leaf."""
        places = np.searchsorted(unique_times, follow_up.times)
        return super().of(follow_up, times=np.diff(places, prepend=-1).tolist())

    def value(self, unique_times: Floats, n_samples: int) -> FollowUp:
        """The rows, checked against their number."""
        # A step this long leads nowhere, and short ones cannot overflow.
        steps = np.minimum(integers(self.times, "times"), unique_times.size + 1)
        places = steps.cumsum() - 1
        if places.size and places[-1] >= unique_times.size:
            raise ModelFormatError("times goes beyond the list of times")
        events = integers(self.events, "events", places.size)
        censored = integers(self.censored, "censored", places.size)
        # One by one in Python, where no sum overflows.
        counts = [sum(both) for both in zip(self.events, self.censored, strict=True)]
        if sum(counts) != n_samples or 0 in counts:
            raise ModelFormatError("events and censored are not the rows of the node")
        entry = None
        if self.entry_times is not None:
            entry = floats(self.entry_times, "entry_times", n_samples)
            if (np.diff(entry) < 0).any():
                raise ModelFormatError("entry_times do not ascend")
        return FollowUp(unique_times[places], events, censored, entry)


class RowsRecord(Record, frozen=True):
    """Rows of all leaves; ``times`` are those at which a row left."""

    times: list[int | float]
    leaves: list[FollowUpRecord]

    @classmethod
    def of(cls, leaves: SurvivalLeaves) -> RowsRecord:  # type: ignore[override]
        """The record of the rows of leaves."""
        times = leaves.unique_times
        of_leaves = [FollowUpRecord.of(one, times) for one in leaves.follow_up]
        # Whole numbers without ".0".
        short = [
            int(time) if time.is_integer() and time <= _MOST_WHOLE else time
            for time in times.tolist()
        ]
        return convert(cls, {"times": short, "leaves": of_leaves})

    def value(self, tree: Any) -> tuple[Floats, tuple[FollowUp, ...]]:
        """The times and the rows, checked."""
        unique_times = times(self.times, "times")
        _check_number(self.leaves, "leaves", tree)
        found = []
        for k, node in enumerate(tree.leaves.tolist()):
            with within(f"leaves[{k}]"):
                n_samples = int(tree.n_node_samples[node])
                found.append(self.leaves[k].value(unique_times, n_samples))
        left = np.unique(np.concatenate([one.times for one in found]))
        if not np.array_equal(left, unique_times):
            raise ModelFormatError("times are not those of the leaves")
        return unique_times, tuple(found)


class EstimatesRecord(Record, frozen=True):
    """Estimates that do not follow from counts of rows: weighted, late or thinned ones."""

    baseline: BaselineRecord
    leaves: list[LeafRecord]

    @classmethod
    def of(cls, leaves: SurvivalLeaves) -> EstimatesRecord:  # type: ignore[override]
        """The record of baseline and statistics."""
        statistics = [LeafRecord.of(leaf) for leaf in leaves.statistics]
        return cls(BaselineRecord.of(leaves.baseline), statistics)

    def value(
        self,
        tree: Any,
        certificate: Certificate,
        rows: tuple[Floats, tuple[FollowUp, ...]],
        curve: str,
        prior: float,
        needs_event: bool = True,
    ) -> tuple[Baseline, tuple[LeafStatistics, ...]]:
        """Baseline and statistics, checked."""
        with within("baseline"):
            baseline = self.baseline.value(rows[0], needs_event)
        _check_number(self.leaves, "leaves", tree)
        statistics, thinned = [], CURVE_ERROR in certificate.facts
        for k, (node, follow_up) in enumerate(zip(tree.leaves.tolist(), rows[1], strict=True)):
            with within(f"leaves[{k}]"):
                leaf = self.leaves[k].value(follow_up, node, tree, baseline, curve, prior, thinned)
                statistics.append(leaf)
        happened = np.unique(np.concatenate([leaf.event_times for leaf in statistics]))
        # Thinned curves keep different times; those of a leaf are among the baseline's anyway.
        if not thinned and not np.array_equal(happened, baseline.event_times):
            raise ModelFormatError("baseline.event_times are not the event times of the leaves")
        return baseline, tuple(statistics)


class StepLeavesRecord(Record, frozen=True, tag="step survival"):
    """Leaves with one step curve each.

    Without ``estimates`` and ``shrunk`` these follow from the rows, each of weight one.
    """

    rows: RowsRecord
    estimates: EstimatesRecord | None
    curve: Literal["proportional", "kaplan-meier", "brier-optimal"]
    by_theta: bool
    prior: NotNegative
    shrinkage: NotNegative
    shrunk: CurvesRecord | None

    @classmethod
    def of(cls, leaves: StepLeaves, tree: Tree) -> StepLeavesRecord:  # type: ignore[override]
        """The record of leaves."""
        record = super().of(leaves, rows=RowsRecord.of(leaves), estimates=None, shrunk=None)
        if _follows(leaves.follow_up) and _same(leaves, record._follows(tree, leaves.follow_up)):
            return record
        shrunk = None if leaves.shrunk is None else CurvesRecord.of(leaves.shrunk)
        return replace(record, estimates=EstimatesRecord.of(leaves), shrunk=shrunk)

    def value(self, tree: Tree, certificate: Certificate, needs_event: bool = True) -> StepLeaves:
        """The leaves, checked."""
        shrinkage = certificate.parameters.get("shrinkage", "auto")
        if shrinkage != "auto" and shrinkage != self.shrinkage:
            raise ModelFormatError("shrinkage is not the parameter")
        return self.leaves(tree, certificate, needs_event)

    def leaves(self, tree: Tree, certificate: Certificate, needs_event: bool = True) -> StepLeaves:
        """The leaves, checked, of any shrinkage."""
        prior = certificate.parameters.get("prior", "auto")
        if prior != "auto" and float(prior) != self.prior:
            raise ModelFormatError("prior is not the parameter")
        with within("rows"):
            rows = self.rows.value(tree)
        if self.estimates is None:
            if self.shrunk is not None:
                raise ModelFormatError("shrunk needs estimates")
            _check_followed(rows[1], needs_event)
            if not np.allclose(tree.weighted_n_node_samples, tree.n_node_samples, atol=0.0):
                raise ModelFormatError("estimates are missing: rows have weights")
            return self._follows(tree, rows[1])
        with within("estimates"):
            baseline, statistics = self.estimates.value(
                tree, certificate, rows, self.curve, self.prior, needs_event
            )
        return StepLeaves(
            statistics=statistics,
            baseline=baseline,
            curve=self.curve,
            by_theta=self.by_theta,
            prior=self.prior,
            shrinkage=self.shrinkage,
            theta=predicted_theta(tree, statistics, self.shrinkage if self.by_theta else 0.0),
            shrunk=self._curves(tree, baseline, CURVE_ERROR in certificate.facts),
        )

    def _follows(self, tree: Tree, follow_up: Sequence[FollowUp]) -> StepLeaves:
        """The leaves that follow from their rows."""
        rows, leaf, statistics = statistics_of(tree.leaves, follow_up, self.prior)
        how: Any = {"curve": self.curve, "by_theta": self.by_theta, "shrinkage": self.shrinkage}
        return StepLeaves.grown(tree, leaf, rows, statistics, **how)

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


class IncidenceLeavesRecord(Record, frozen=True, tag="incidences"):
    """Leaves with competing risks: those of every cause, from which those of any cause follow."""

    any_cause: StepLeavesRecord
    of_cause: Annotated[list[StepLeavesRecord], Meta(min_length=1)]
    curve: Literal["aalen-johansen", "proportional"]

    @classmethod
    def of(cls, leaves: IncidenceLeaves, tree: Tree) -> IncidenceLeavesRecord:  # type: ignore[override]
        """The record of leaves."""
        any_cause = StepLeavesRecord.of(leaves.any_cause, tree)
        of_cause = [StepLeavesRecord.of(one, tree) for one in leaves.of_cause]
        return cls(any_cause, of_cause, leaves.curve)  # type: ignore[arg-type]

    def value(self, tree: Tree, certificate: Certificate) -> IncidenceLeaves:
        """The leaves, checked."""
        if self.curve != certificate.parameters.get("leaf_curve", self.curve):
            raise ModelFormatError("curve is not the parameter leaf_curve")
        with within("any_cause"):
            record = self.any_cause
            if (record.curve, record.shrinkage, record.by_theta) != ("kaplan-meier", 0, True):
                raise ModelFormatError("curve is not 'kaplan-meier', without shrinkage")
            whole = self.any_cause.leaves(tree, certificate)
        n_causes = certificate.parameters.get("n_causes")
        weights = certificate.parameters.get("cause_weights")
        for name, count in (("n_causes", n_causes), ("cause_weights", weights and len(weights))):
            if count not in (None, len(self.of_cause)):
                raise ModelFormatError(
                    f"of_cause has {len(self.of_cause)} entries, which is not the parameter {name}"
                )
        # If the number of causes was given, some may have no event.
        of_cause, needs_event = [], n_causes is None
        for k, record in enumerate(self.of_cause):
            with within(f"of_cause[{k}]"):
                if record.curve != "proportional" or not record.by_theta:
                    raise ModelFormatError("curve is not 'proportional', with a risk by theta")
                for name in ("prior", "shrinkage"):
                    if getattr(record, name) != getattr(self.of_cause[0], name):
                        raise ModelFormatError(f"{name} is not that of the other causes")
                if _entries(record) != _entries(self.any_cause):
                    raise ModelFormatError("rows.leaves: entry_times are not those of any cause")
                of_cause.append(record.value(tree, certificate, needs_event))
        for place, follow_up in enumerate(whole.follow_up):
            each = [one.follow_up[place] for one in of_cause]
            same = all(
                np.array_equal(one.times, follow_up.times)
                and np.array_equal(one.events + one.censored, follow_up.events + follow_up.censored)
                for one in each
            )
            if not same or not np.array_equal(sum(one.events for one in each), follow_up.events):
                raise ModelFormatError("the rows of the causes are not those of any cause")
        found = IncidenceLeaves(whole, tuple(of_cause), self.curve)
        survival, incidence = found.curves
        if not np.allclose(survival + incidence.sum(axis=0), 1.0, rtol=0.0, atol=1e-9):
            raise ModelFormatError(
                "any_cause does not go with of_cause: survival and incidences do not sum to 1"
            )
        return found


class SmoothLeavesRecord(Record, frozen=True, tag="smooth survival"):
    """Leaves with a survival model each; without ``estimates`` these follow from the rows."""

    rows: RowsRecord
    estimates: EstimatesRecord | None
    model: Annotated[str, Meta(extra_json_schema={"enum": sorted(MODELS)})]
    prepared: dict[str, list[float]]
    linear: list[list[float]]
    shape: list[list[float]]
    log_unit: float
    typical_linear: list[float]

    @classmethod
    def of(cls, leaves: SmoothLeaves, tree: SoftTree) -> SmoothLeavesRecord:  # type: ignore[override]
        """The record of leaves."""
        follows = False
        if _follows(leaves.follow_up):
            found, _, statistics = statistics_of(tree.leaves, leaves.follow_up)
            follows = _same((leaves.baseline, leaves.statistics), (found.baseline, statistics))
        return super().of(
            leaves,
            rows=RowsRecord.of(leaves),
            estimates=None if follows else EstimatesRecord.of(leaves),
            model=leaves.model.name,
            prepared=leaves.model.to_dict(),
        )

    def value(self, tree: SoftTree, certificate: Certificate) -> SmoothLeaves:
        """The leaves, checked."""
        if self.model != certificate.parameters.get("leaf", self.model) or self.model not in MODELS:
            raise ModelFormatError(f"model is {self.model!r}, not the parameter leaf")
        try:
            model = MODELS[self.model].from_dict(self.prepared)
        except ValueError as error:
            raise ModelFormatError(f"prepared: {error}") from None
        with within("rows"):
            rows = self.rows.value(tree)
        if self.estimates is None:
            _check_followed(rows[1])
            found, _, statistics = statistics_of(tree.leaves, rows[1])
            baseline = found.baseline
        else:
            with within("estimates"):
                baseline, statistics = self.estimates.value(tree, certificate, rows, "", 0.0)
        count = tree.n_leaves
        return SmoothLeaves(
            model=model,
            linear=matrix(self.linear, "linear", (count, tree.weights.shape[1] + 1)),
            shape=matrix(self.shape, "shape", (count, model.n_shape)),
            log_unit=self.log_unit,
            baseline=baseline,
            statistics=statistics,
            typical_linear=floats(self.typical_linear, "typical_linear", count),
            share=leaf_shares(tree),
        )


def _entries(record: StepLeavesRecord) -> list[list[float] | None]:
    """Entry times of the rows of every leaf."""
    return [leaf.entry_times for leaf in record.rows.leaves]


def _follows(follow_up: Sequence[FollowUp]) -> bool:
    """Whether counts of rows determine everything else about them."""
    few = sum(one.n_rows for one in follow_up) <= _MOST_ROWS
    return few and all(one.entry_times is None for one in follow_up)


def _check_followed(follow_up: Sequence[FollowUp], needs_event: bool = True) -> None:
    if not _follows(follow_up):
        raise ModelFormatError("estimates are missing: rows have entry times, or are too many")
    if needs_event and not any(one.events.any() for one in follow_up):
        raise ModelFormatError("rows have no event")


def _same(one: Any, other: Any) -> bool:
    """Whether two values are equal to the last bit."""
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and np.array_equal(one, other)
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    if is_dataclass(one) and type(one) is type(other):
        names = [field.name for field in fields(one)]
        return all(_same(getattr(one, name), getattr(other, name)) for name in names)
    return bool(one == other)


def _check_number(values: Sequence[Any], name: str, tree: Any) -> None:
    if len(values) != tree.n_leaves:
        raise ModelFormatError(f"{name} has {len(values)} entries for {tree.n_leaves} leaves")
