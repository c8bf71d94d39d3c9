"""Schema of the file of a fitted model, from which all else is read."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from hashlib import sha256
from numbers import Real
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import Meta
from msgspec.structs import asdict, replace

from bristlecone._data.arrays import type_name
from bristlecone._data.frame import by_cause, by_label, costs_by_class
from bristlecone._data.records import (
    Count,
    NotNegative,
    Record,
    convert,
    floats,
    integers,
    matrix,
    plain,
    read,
    within,
)
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.design import DesignEncoder
from bristlecone._encoder.records import BinaryParameters, BinaryRecord, DesignRecord
from bristlecone._encoder.rules import question_names
from bristlecone._encoder.use import split_columns
from bristlecone._model.leaves import (
    ClassLeavesRecord,
    LabelsRecord,
    MeanLeavesRecord,
    PolicyLeavesRecord,
)
from bristlecone._model.survival import IncidenceLeavesRecord, SmoothLeavesRecord, StepLeavesRecord
from bristlecone._search.certificate import STATUSES, Certificate, GroupValues, Teaching
from bristlecone._soft.tree import SoftTree
from bristlecone._tree import Tree
from bristlecone.exceptions import ModelFormatError

FORMAT = "bristlecone model"
VERSION: Final = 4

# The classes that can be saved, and the leaves of their trees.
ESTIMATORS: dict[str, type[Record]] = {
    "CompetingRisksTree": IncidenceLeavesRecord,
    "CostSensitiveTreeClassifier": ClassLeavesRecord,
    "FairTreeClassifier": ClassLeavesRecord,
    "GreedySurvivalTree": StepLeavesRecord,
    "OptimalSurvivalTree": StepLeavesRecord,
    "OptimalTreeClassifier": ClassLeavesRecord,
    "OptimalTreeRegressor": MeanLeavesRecord,
    "PolicyTree": PolicyLeavesRecord,
    "SoftSurvivalTree": SmoothLeavesRecord,
}

Scalar: TypeAlias = bool | int | float | str | None


class MappingRecord(Record, frozen=True, tag="mapping"):
    """A dictionary as pairs: the keys of a JSON object are texts only."""

    pairs: list[tuple[bool | int | float | str, Scalar | list[Scalar] | dict[str, Scalar]]]


class DemographicParityRecord(Record, frozen=True, tag="DemographicParity"):
    """Parameters of a ``DemographicParity``."""

    limit: int | float
    sensitive_feature: str | int | None


class EqualityOfOpportunityRecord(
    DemographicParityRecord, frozen=True, tag="EqualityOfOpportunity"
):
    """Parameters of an ``EqualityOfOpportunity``."""


class EqualizedOddsRecord(DemographicParityRecord, frozen=True, tag="EqualizedOdds"):
    """Parameters of an ``EqualizedOdds``."""


class RmstParityRecord(Record, frozen=True, tag="RmstParity"):
    """Parameters of an ``RmstParity``."""

    limit: int | float
    tau: int | float | None
    sensitive_feature: str | int | None


class CurveParityRecord(Record, frozen=True, tag="CurveParity"):
    """Parameters of a ``CurveParity``."""

    penalty: int | float
    sensitive_feature: str | int | None


class BinaryEncoderRecord(BinaryParameters, frozen=True, tag="BinaryEncoder"):
    """Parameters of a ``BinaryEncoder`` that is itself a parameter."""


Parameter: TypeAlias = (
    Scalar
    | list[Scalar | list[Scalar] | dict[str, Scalar]]
    | MappingRecord
    | BinaryEncoderRecord
    | CurveParityRecord
    | DemographicParityRecord
    | EqualityOfOpportunityRecord
    | EqualizedOddsRecord
    | RmstParityRecord
)
# Parameters that are objects, by the names of their classes.
OBJECTS: dict[str, type[Record]] = {
    "BinaryEncoder": BinaryEncoderRecord,
    "CurveParity": CurveParityRecord,
    "DemographicParity": DemographicParityRecord,
    "EqualityOfOpportunity": EqualityOfOpportunityRecord,
    "EqualizedOdds": EqualizedOddsRecord,
    "RmstParity": RmstParityRecord,
}


class TreeRecord(Record, frozen=True, tag="hard"):
    """A tree of yes-no questions, nodes in preorder."""

    children_left: list[int]
    children_right: list[int]
    feature: list[int]
    n_node_samples: list[Count]
    weighted_n_node_samples: list[NotNegative]
    improvement: list[float | None]
    n_missing: list[Count]

    def value(self, encoder: BinaryEncoder) -> Tree:
        """The tree over the features of an encoder, checked."""
        feature, width = integers(self.feature, "feature"), len(encoder.get_feature_names_out())
        if feature.size and feature.max() >= width:
            node = int(np.argmax(feature))
            raise ModelFormatError(f"feature[{node}] is {feature[node]} of {width} columns")
        column, threshold = split_columns(encoder, feature)
        try:
            tree = Tree(
                integers(self.children_left, "children_left"),
                integers(self.children_right, "children_right"),
                feature,
                integers(self.n_node_samples, "n_node_samples"),
                floats(self.weighted_n_node_samples, "weighted_n_node_samples"),
                threshold,
                column,
                np.array(self.improvement, dtype=np.float64),
                integers(self.n_missing, "n_missing"),
            )
        except ValueError as error:
            raise ModelFormatError(str(error)) from None
        _check_amounts(tree, least=1)
        if (tree.n_missing > tree.n_node_samples).any():
            raise ModelFormatError("n_missing of a node is more than its rows")
        return tree


class SoftTreeRecord(Record, frozen=True, tag="soft"):
    """A complete tree of soft splits."""

    depth: Annotated[int, Meta(ge=0, le=30)]
    weights: list[list[float]]
    intercepts: list[float]
    n_node_samples: list[Count]
    weighted_n_node_samples: list[NotNegative]

    def value(self, encoder: DesignEncoder) -> SoftTree:
        """The tree over the design of an encoder, checked."""
        n_splits = 2**self.depth - 1
        nodes = 2 * n_splits + 1
        tree = SoftTree(
            self.depth,
            matrix(self.weights, "weights", (n_splits, len(encoder.names))),
            floats(self.intercepts, "intercepts", n_splits),
            integers(self.n_node_samples, "n_node_samples", nodes),
            floats(self.weighted_n_node_samples, "weighted_n_node_samples", nodes),
        )
        _check_amounts(tree, least=0)
        return tree


def _check_amounts(tree: Tree | SoftTree, least: int) -> None:
    if (tree.n_node_samples < least).any() or tree.n_node_samples[0] < 1:
        raise ModelFormatError("n_node_samples of a node are too few")
    if least and (tree.weighted_n_node_samples <= 0).any():
        raise ModelFormatError("weighted_n_node_samples of a node is 0")
    split = ~tree.is_leaf
    for name in ("n_node_samples", "weighted_n_node_samples"):
        amount = getattr(tree, name)
        below = amount[tree.children_left[split]] + amount[tree.children_right[split]]
        if not np.allclose(amount[split], below, rtol=1e-9, atol=0.0):
            raise ModelFormatError(f"{name} of a node is not that of its children together")


class GroupsRecord(Record, frozen=True):
    """Groups, and what the tree predicts for them: arrays of one row per group, row after row."""

    groups: LabelsRecord
    values: list[float]
    confusion: list[float] | None

    @classmethod
    def of(cls, groups: GroupValues) -> GroupsRecord:  # type: ignore[override]
        """The record of groups."""
        counts = None if groups.confusion is None else groups.confusion.ravel().tolist()
        flat = {"values": groups.values.ravel().tolist(), "confusion": counts}
        return super().of(groups, groups=LabelsRecord.of(groups.groups), **flat)

    def value(self) -> GroupValues:
        """The groups, checked."""
        with within("groups"):
            labels = self.groups.value()
        n = len(labels)
        if n < 2:
            raise ModelFormatError("groups are fewer than two")
        if self.confusion is None:
            return GroupValues(labels, floats(self.values, "values", n))
        confusion = floats(self.confusion, "confusion", 4 * n).reshape(n, 2, 2)
        if (confusion < 0).any():
            raise ModelFormatError("confusion of a group is negative")
        width = 1 if len(self.values) == n else 2
        values = floats(self.values, "values", width * n)
        return GroupValues(labels, values if width == 1 else values.reshape(n, 2), confusion)


class TeachingRecord(Record, frozen=True):
    """How the outcomes were smoothed by a teacher, which itself is not in the file."""

    name: str
    weight: Annotated[float, Meta(ge=0, le=1)]
    n_folds: Annotated[int, Meta(ge=2)]
    seed: int
    members: list[str]
    score: float
    moments: list[float]
    training_loss: float

    def value(self) -> Teaching:
        """The record of the teacher, checked."""
        moments = floats(self.moments, "moments", 4).tolist()
        return Teaching(
            **asdict(self) | {"members": tuple(self.members), "moments": tuple(moments)}
        )


class CertificateRecord(Record, frozen=True):
    """Aim and proof of the search; null stands for an unknown number."""

    aim: str
    status: Literal[
        "optimal",
        "near_optimal",
        "reference_optimal",
        "time_limit",
        "memory_limit",
        "interrupted",
        "grown",
        "trained",
        "reestimated",
    ]
    objective_value: float
    lower_bound: float | None
    settings: dict[str, Scalar | list[float]]
    trace: list[list[float | None]]
    n_nodes_explored: Count
    seconds: NotNegative
    n_samples: Count
    fingerprint: str
    remarks: list[tuple[str, str]]
    reference_loss: NotNegative | None
    groups: GroupsRecord | None
    teacher: TeachingRecord | None
    facts: dict[str, Scalar | list[float]]
    version: str

    @classmethod
    def of(cls, certificate: Certificate) -> CertificateRecord:  # type: ignore[override]
        """The record of a certificate."""
        groups = None if certificate.groups is None else GroupsRecord.of(certificate.groups)
        teacher = None if certificate.teacher is None else TeachingRecord.of(certificate.teacher)
        return super().of(certificate, groups=groups, teacher=teacher)

    def value(self, parameters: dict[str, Any], encoder: Any) -> Certificate:
        """The certificate of a fit with these parameters and this encoder, checked."""
        with within("groups"):
            groups = None if self.groups is None else self.groups.value()
        with within("teacher"):
            teacher = None if self.teacher is None else self.teacher.value()
        _check_teacher(teacher, parameters)
        with within("settings"):
            convert(_Settings, self.settings)
        with within("facts"):
            convert(_Facts, self.facts)
        found = Certificate(
            **asdict(self)
            | {
                "lower_bound": -math.inf if self.lower_bound is None else self.lower_bound,
                "binary_features": ()
                if isinstance(encoder, DesignEncoder)
                else question_names(encoder),
                "parameters": parameters,
                "trace": tuple(_point(point) for point in self.trace),
                "remarks": tuple(self.remarks),
                "groups": groups,
                "teacher": teacher,
            }
        )
        # Coarse: optimal is relative to the terms of the objective, which only the rows give. Those
        # of policies and of counts cancel, so that no gap is too large for them.
        cancels = "reward" in parameters or parameters.get("objective") == "poisson"
        most = math.inf if cancels else 1e-3 * max(1.0, abs(found.objective_value))
        closed = found.gap <= most
        if found.gap < 0 or (found.status == "optimal" and not closed):
            raise ModelFormatError("lower_bound contradicts objective_value or status")
        if found.status == "reference_optimal" and found.reference_loss is None:
            raise ModelFormatError("status needs a reference_loss")
        if not found.is_searched and self.lower_bound is not None:
            raise ModelFormatError("lower_bound is of a tree that was not searched for")
        if len({len(point) for point in found.trace}) > 1:
            raise ModelFormatError("trace has points of different length")
        try:
            first = found.structure
        except KeyError as error:
            raise ModelFormatError(f"facts.{error.args[0]} is missing") from None
        if first is not None and first.status not in (*STATUSES, "grown"):
            raise ModelFormatError(f"facts.structure_status is {first.status!r}")
        if first is not None and not isinstance(first.objective_value, float):
            raise ModelFormatError("facts.structure_objective is not a number")
        if found.status == "trained":
            _check_trained(found)
        if found.is_searched and found.trace and len(found.trace[0]) != 3:
            raise ModelFormatError("trace is not 3 numbers per point")
        return found


class _Settings(msgspec.Struct):
    """Settings that are read as numbers."""

    min_samples_leaf: Count = 0
    min_events_leaf: Count = 0


class _Facts(msgspec.Struct):
    """Facts that are read as numbers."""

    curve_error: NotNegative = 0.0
    errors: tuple[float, float] = (0.0, 0.0)
    thresholds: Count = 0
    rows_per_side: Count = 0
    restart_objectives: list[float] = []
    converged: bool = True
    distance: float = 0.0
    gini: float = 0.0
    gini_weighted: float = 0.0


def _check_trained(found: Certificate) -> None:
    """Raise ModelFormatError for the certificate of a soft tree that contradicts itself."""
    if (np.diff(np.array(found.trace), axis=0) > 0).any():
        raise ModelFormatError("trace rises")
    for name in ("restart_objectives", "converged"):
        if name not in found.facts:
            raise ModelFormatError(f"facts.{name} is missing")
    l2, asked = found.settings.get("l2"), found.parameters["l2"]
    if isinstance(l2, bool) or not isinstance(l2, int | float) or not 0 <= l2 < math.inf:
        raise ModelFormatError("settings.l2 is not a number of at least 0")
    if asked not in ("auto", l2):
        raise ModelFormatError("settings.l2 is not the parameter")


def _check_teacher(teacher: Teaching | None, parameters: dict[str, Any]) -> None:
    """Raise ModelFormatError where the record of a teacher contradicts the parameters."""
    given = parameters.get("teacher")
    if teacher is None:
        if given is not None:
            raise ModelFormatError(f"teacher is missing, but parameters.teacher is {given!r}")
        return
    if "teacher" not in parameters:
        raise ModelFormatError("teacher is of an estimator that has no such parameter")
    automatic = teacher.name == "auto"
    if automatic != (given == "auto"):
        raise ModelFormatError(
            f"teacher.name is {teacher.name!r}, but parameters.teacher {given!r}"
        )
    if automatic != bool(teacher.members):
        raise ModelFormatError("teacher.members are the models of 'auto', and of no other")


def _point(point: list[float | None]) -> tuple[float, ...]:
    """Point of a trace: before the first tree the objective is inf, the bound may be -inf."""
    unknown = (math.nan, math.inf, -math.inf)
    return tuple(
        unknown[min(place, 2)] if value is None else value for place, value in enumerate(point)
    )


class Model(Record, frozen=True):
    """A fitted model."""

    format: Literal["bristlecone model"]
    version: Literal[4]
    bristlecone: str
    estimator: Annotated[str, Meta(extra_json_schema={"enum": sorted(ESTIMATORS)})]
    parameters: dict[str, Parameter]
    tree: TreeRecord | SoftTreeRecord
    leaves: (
        StepLeavesRecord
        | SmoothLeavesRecord
        | IncidenceLeavesRecord
        | PolicyLeavesRecord
        | ClassLeavesRecord
        | MeanLeavesRecord
    )
    encoder: BinaryRecord | DesignRecord
    certificate: CertificateRecord
    checksum: str


def plain_parameter(name: str, value: Any) -> Any:
    """Parameter of an estimator as it is in a file; TypeError for one that has no JSON form."""
    value = plain(_by_name(name, value))
    kind = OBJECTS.get(type(value).__name__)
    if kind is not None and type(value).__module__.startswith("bristlecone."):
        parameters = value.get_params(deep=False)
        return kind(**{key: _number(f"{name}.{key}", plain(x)) for key, x in parameters.items()})
    if isinstance(value, dict):
        pairs = [(_number(name, plain(key)), _number(name, plain(x))) for key, x in value.items()]
        return MappingRecord(pairs=pairs)
    return _number(name, value)


def _by_name(name: str, value: Any) -> Any:
    """A parameter in which classes, columns or causes have names, as a mapping or in their order.

    A list of its values would lose the names.
    """
    if name == "cost_matrix":
        return costs_by_class(value)
    if name == "feature_costs":
        return by_label(value, name)
    return by_cause(value, name) if name == "cause_weights" else value


def _number(name: str, value: Any) -> Any:
    """A scalar, or lists and mappings of them; TypeError for anything else."""
    if isinstance(value, Mapping):
        return {str(key): _number(name, plain(item)) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_number(name, plain(item)) for item in value]
    if isinstance(value, Real) and not isinstance(value, (bool, int)):
        value = float(value)  # also a fraction
    if isinstance(value, float) and not math.isfinite(value):
        raise TypeError(f"parameter {name} is {value}, which cannot be saved as JSON")
    if not isinstance(value, (bool, int, float, str, type(None))):
        raise TypeError(f"parameter {name} is {type_name(value)}, which cannot be saved as JSON")
    return value


def seal(model: Model) -> Model:
    """The model with the checksum of everything else in it.

    It is the SHA-256 of the MessagePack form, with the fields in the order of the schema and the
    names of mappings sorted: neither white space, order nor the spelling of numbers matters.

    Raises
    ------
    ValueError
        For an integer of more than 64 bits.
    """
    content = replace(model, checksum="")
    try:
        packed = msgspec.msgpack.encode(content, order="deterministic", enc_hook=_encodable)
    except OverflowError:
        raise ValueError("an integer of more than 64 bits cannot be saved") from None
    return replace(model, checksum=sha256(packed).hexdigest())


def write(model: Model) -> str:
    """JSON text, one field of the model per line."""
    lines = [
        msgspec.json.encode(name) + b": " + msgspec.json.encode(value, enc_hook=_encodable)
        for name, value in asdict(model).items()
    ]
    return "{\n" + b",\n".join(lines).decode() + "\n}\n"


def _encodable(value: Any) -> Any:
    """A value that msgspec cannot encode, such as a text of NumPy, in the types of JSON."""
    found = plain(value)
    if found is value:
        raise TypeError(f"{type_name(value)} cannot be saved as JSON")
    return found


class _Header(msgspec.Struct):
    format: Any = msgspec.UNSET
    version: Any = msgspec.UNSET


def parse(text: str) -> Model:
    """Model from its JSON text.

    Raises
    ------
    ModelFormatError
        If a field is missing, unknown or of another type (it is named), when a name occurs
        twice, and when the checksum does not match.
    """
    header = read(_Header, text)
    for name, value in asdict(header).items():
        if value is msgspec.UNSET:
            raise ModelFormatError(f"{name} is missing")
    if header.format != FORMAT:
        raise ModelFormatError(f"format is not {FORMAT!r}")
    if type(header.version) is not int or header.version != VERSION:
        newer = type(header.version) is int and header.version > VERSION
        raise ModelFormatError(
            f"version is {header.version!r}; this release reads version {VERSION}"
            + (": a newer bristlecone wrote it" if newer else "")
        )
    try:
        model = read(Model, text)
    except ModelFormatError as error:
        raise _named(error, text) from None
    if model.estimator not in ESTIMATORS:
        raise ModelFormatError(
            f"estimator is {model.estimator!r}; expected one of {', '.join(sorted(ESTIMATORS))}"
        )
    _check_names(text)
    return model


def _named(error: ModelFormatError, text: str) -> ModelFormatError:
    """The error with the name of a parameter, which msgspec leaves out."""
    if str(error).startswith("parameters[...]"):
        for name, value in json.loads(text)["parameters"].items():
            try:
                msgspec.convert(value, Parameter)
            except msgspec.ValidationError:
                return ModelFormatError(str(error).replace("[...]", f".{name}", 1))
    return error


def check_sum(model: Model) -> None:
    """Raise ModelFormatError unless the checksum is that of the rest."""
    try:
        expected = seal(model).checksum
    except ValueError as error:
        raise ModelFormatError(str(error)) from None
    if model.checksum != expected:
        raise ModelFormatError("checksum does not match: the file was changed since it was saved")


def _check_names(text: str) -> None:
    """Raise ModelFormatError if a name occurs twice in an object; msgspec accepts that."""

    def unique(pairs: list[tuple[str, Any]]) -> None:
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise ModelFormatError(f"{name} occurs twice in one object")
            seen.add(name)

    # Numbers are not converted, because only the names matter.
    json.loads(text, object_pairs_hook=unique, parse_int=str, parse_float=str)
