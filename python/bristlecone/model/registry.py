"""Fitted models as versioned JSON, never pickle: a file is data, checked field by field.

Numbers are written so that they read back to the same float, hence a loaded model predicts
bit for bit what the saved one does. Reading trusts nothing: unknown, missing, mistyped and
contradictory fields raise :class:`~bristlecone.errors.ModelFormatError`, which names the field; a
checksum over all of them finds what was changed without a contradiction.

An estimator takes part by the decorator :func:`register` and two pairs of methods:
``_saved_fields()`` returns what it keeps besides tree and leaves, as plain JSON types, and
``_read_fields(fields)`` checks and sets these on an instance with its parameters set;
``_saved_leaves()`` and ``_read_leaves(fields)`` do the same for the leaves of its tree.
"""

from __future__ import annotations

import json
import os
from dataclasses import fields as dataclass_fields
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

import bristlecone
from bristlecone import _core
from bristlecone.encoder import BinaryEncoder
from bristlecone.errors import ModelFormatError
from bristlecone.leaves.survival import Baseline, LeafStatistics, hazard_ratio
from bristlecone.model.files import write_files
from bristlecone.objectives.parity import RmstParity
from bristlecone.tree import Tree

if TYPE_CHECKING:
    from bristlecone.estimators.base import TreeMixin
    from bristlecone.estimators.survival_predictions import SurvivalTreeMixin

__all__ = ["FORMAT", "VERSION", "Fields", "dumps", "load_model", "loads", "register", "save_model"]

FORMAT = "bristlecone model"
VERSION = 1

# Objects that parameters may be.
_OBJECTS = (BinaryEncoder, RmstParity)

# Parameters that may be lists, arrays or mappings.
_CONTAINERS = (
    "capacities",
    "class_weight",
    "cost_matrix",
    "feature_costs",
    "feature_discounts",
    "feature_groups",
    "feature_origins",
    "time_grid",
)

Model = TypeVar("Model", bound="TreeMixin")

_ESTIMATORS: dict[str, type[TreeMixin]] = {}


def register(cls: type[Model]) -> type[Model]:
    """Class decorator: models of this class can be saved and loaded."""
    _ESTIMATORS[cls.__name__] = cls
    return cls


def _estimators() -> dict[str, type[TreeMixin]]:
    """Every class that can be saved; a class registers when its module is imported."""
    for name in bristlecone.__all__:
        getattr(bristlecone, name)
    return _ESTIMATORS


def save_model(estimator: TreeMixin, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to a JSON file, completely or not at all.

    Parameters
    ----------
    estimator : fitted tree
        Holds no training rows, nor does the file. The parameters in the file are those of the fit,
        whatever was set since.
    path : path
        File to write; an existing one is replaced.

    Raises
    ------
    NotFittedError
        When the estimator is not fitted.
    TypeError
        When a parameter (named) has no JSON form, such as an encoder of one's own.
    OSError, ValueError
        When the file cannot be written.
    """
    write_files({path: dumps(estimator)})


def load_model(path: str | os.PathLike[str]) -> TreeMixin:
    """Read an estimator written by :func:`save_model`.

    Parameters
    ----------
    path : path
        File to read.

    Returns
    -------
    fitted estimator
        Of the class that was saved.

    Raises
    ------
    ModelFormatError
        When the file is truncated, of another version, or inconsistent; the field is named.
    OSError
        When the file cannot be read.
    """
    try:
        text = Path(path).read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelFormatError(f"{path} is not UTF-8 text: {error}") from None
    try:
        return loads(text)
    except ModelFormatError as error:
        raise ModelFormatError(f"{path}: {error}") from None


def dumps(estimator: TreeMixin) -> str:
    """JSON text of a fitted estimator; see :func:`save_model`."""
    estimator._check_fitted()
    name = type(estimator).__name__
    if _ESTIMATORS.get(name) is not type(estimator):
        raise TypeError(f"{name} cannot be saved; only {', '.join(sorted(_estimators()))}")
    document = {
        "format": FORMAT,
        "version": VERSION,
        "bristlecone": _core.__version__,
        "estimator": name,
        "parameters": {
            key: _plain_parameter(key, value)
            for key, value in estimator._fitted_parameters().items()
        },
        **estimator._saved_fields(),
        "tree": estimator._saved_tree(),
        **estimator._saved_leaves(),
    }
    document["checksum"] = _checksum(document)
    lines = [
        f"{json.dumps(key)}: {json.dumps(value, allow_nan=False)}"
        for key, value in document.items()
    ]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def loads(text: str, expected: type[Model] | None = None) -> Any:
    """Estimator from the text of :func:`dumps`; see :func:`load_model`.

    Parameters
    ----------
    text : str
        JSON.
    expected : class, optional
        The class the model must be of.
    """
    document = _parse(text)
    fields = Fields(document, "")
    if fields.text("format") != FORMAT:
        raise ModelFormatError(f"format is not {FORMAT!r}")
    version = fields.integer("version")
    if version != VERSION:
        raise ModelFormatError(f"version is {version}; this release reads version {VERSION}")
    fields.text("bristlecone")
    estimators = _estimators()
    cls = estimators[fields.text("estimator", tuple(sorted(estimators)))]
    if expected is not None and cls is not expected:
        raise ModelFormatError(f"estimator is {cls.__name__}; expected {expected.__name__}")
    try:
        return _read_estimator(cls, document, fields)
    except OverflowError:
        raise ModelFormatError("a whole number is beyond the range of its field") from None


def _read_estimator(cls: type[Model], document: dict[str, Any], fields: Fields) -> Model:
    estimator = cls(**_read_parameters(cls, fields.object("parameters")))
    try:
        estimator._check_parameters()
    except ValueError as error:
        raise ModelFormatError(f"parameters: {error}") from None
    estimator._remember_parameters()
    estimator._read_fields(fields)
    estimator.tree_ = estimator._read_tree(fields.object("tree"))
    estimator._read_leaves(fields)
    checksum = fields.text("checksum")
    fields.finish()
    if checksum != _checksum(document):
        raise ModelFormatError("checksum does not match: the file was changed since it was saved")
    return estimator


class Fields:
    """One JSON object, read field by field; a field nobody asked for is an error.

    Every method raises ModelFormatError with the full name of the field when it is absent, of
    another type or out of range.
    """

    def __init__(self, value: Any, name: str) -> None:
        if not isinstance(value, dict):
            raise ModelFormatError(f"{name or 'the file'} is not a JSON object")
        self._values = dict(value)
        self._name = name

    def full_name(self, name: str) -> str:
        """Name of a field with those of the objects around it."""
        return f"{self._name}.{name}" if self._name else name

    def take(self, name: str) -> Any:
        """Value as parsed."""
        if name not in self._values:
            raise ModelFormatError(f"{self.full_name(name)} is missing")
        return self._values.pop(name)

    def names(self) -> list[str]:
        """Names of the fields not read yet."""
        return list(self._values)

    def finish(self) -> None:
        """Raise if a field was not read."""
        if self._values:
            raise ModelFormatError(f"{self.full_name(next(iter(self._values)))} is not known")

    def fail(self, name: str, what: str) -> ModelFormatError:
        """Error about a field."""
        return ModelFormatError(f"{self.full_name(name)} {what}")

    def object(self, name: str) -> Fields:
        """Nested object."""
        return Fields(self.take(name), self.full_name(name))

    def objects(self, name: str) -> list[Fields]:
        """List of objects."""
        values = self._list(name)
        return [Fields(value, f"{self.full_name(name)}[{k}]") for k, value in enumerate(values)]

    def text(self, name: str, choices: tuple[str, ...] | None = None) -> str:
        """String, one of ``choices`` if given."""
        value = self.take(name)
        if not isinstance(value, str):
            raise self.fail(name, "is not a string")
        if choices is not None and value not in choices:
            raise self.fail(name, f"is {value!r}; expected one of {', '.join(choices)}")
        return value

    def texts(self, name: str) -> list[str]:
        """List of strings."""
        values = self._list(name)
        if not all(isinstance(value, str) for value in values):
            raise self.fail(name, "is not a list of strings")
        return values

    def integer(self, name: str, minimum: int = 0) -> int:
        """Integer of at least ``minimum``."""
        value = self.take(name)
        if not _is_integer(value) or value < minimum:
            raise self.fail(name, f"is not an integer of at least {minimum}")
        return value

    def number(self, name: str, minimum: float = 0.0) -> float:
        """Finite number of at least ``minimum``."""
        value = self.take(name)
        if not _is_number(value) or value < minimum:
            raise self.fail(name, f"is not a finite number of at least {minimum:g}")
        return float(value)

    def integers(self, name: str) -> NDArray[np.int64]:
        """List of integers."""
        values = self._list(name)
        for k, value in enumerate(values):
            if not _is_integer(value):
                raise self.fail(f"{name}[{k}]", "is not an integer")
        return np.array(values, dtype=np.int64)

    def numbers(self, name: str, *, null: float | None = None) -> NDArray[np.float64]:
        """List of finite numbers; JSON null stands for ``null`` if given."""
        values = self._list(name)
        for k, value in enumerate(values):
            if not (_is_number(value) or (value is None and null is not None)):
                raise self.fail(f"{name}[{k}]", "is not a finite number")
        return np.array([null if value is None else value for value in values], dtype=np.float64)

    def monotone(self, name: str, *, low: float, high: float, sign: int) -> NDArray[np.float64]:
        """Numbers within [low, high] that never fall (``sign`` 1) or never rise (-1)."""
        values = self.numbers(name)
        wrong = (values < low) | (values > high)
        if wrong.any():
            k = int(np.argmax(wrong))
            raise self.fail(f"{name}[{k}]", f"is {values[k]}, outside [{low:g}, {high:g}]")
        turns = sign * np.diff(values) < 0
        if turns.any():
            raise self.fail(f"{name}[{int(np.argmax(turns)) + 1}]", "is not monotone")
        return values

    def times(self, name: str) -> NDArray[np.float64]:
        """Strictly ascending times, none negative."""
        values = self.monotone(name, low=0.0, high=np.inf, sign=1)
        ties = np.diff(values) == 0
        if ties.any():
            raise self.fail(f"{name}[{int(np.argmax(ties)) + 1}]", "repeats a time")
        return values

    def rows(self, name: str, width: int, null: float | None = None) -> list[tuple[float, ...]]:
        """List of rows of ``width`` finite numbers each, or of nulls that stand for ``null``."""

        def fits(value: Any) -> bool:
            return _is_number(value) or (value is None and null is not None)

        values = self._list(name)
        for k, row in enumerate(values):
            if not (isinstance(row, list) and len(row) == width and all(map(fits, row))):
                raise self.fail(f"{name}[{k}]", f"is not {width} finite numbers")
        numbers: list[list[Any]] = [[null if v is None else v for v in row] for row in values]
        return [tuple(map(float, row)) for row in numbers]

    def _list(self, name: str) -> list[Any]:
        values = self.take(name)
        if not isinstance(values, list):
            raise self.fail(name, "is not a list")
        return values


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _is_number(value: Any) -> bool:
    return _is_integer(value) or (isinstance(value, float) and bool(np.isfinite(value)))


def _parse(text: str) -> Any:
    def reject_constant(name: str) -> None:
        raise ModelFormatError(f"the file holds {name}, which is not JSON")

    def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            names = [name for name, _ in pairs]
            repeated = next(name for name in names if names.count(name) > 1)
            raise ModelFormatError(f"{repeated} occurs twice in one object")
        return fields

    try:
        return json.loads(text, parse_constant=reject_constant, object_pairs_hook=unique_keys)
    except ModelFormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise ModelFormatError(f"the file is truncated or not JSON: {error}") from None


def _checksum(document: dict[str, Any]) -> str:
    """SHA-256 of every other field; neither white space nor the order of names matters."""
    content = {name: value for name, value in document.items() if name != "checksum"}
    return sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Containers of arrays and NumPy scalars in the types of JSON."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def _plain_parameter(name: str, value: Any) -> Any:
    value = _plain(value)
    for kind in _OBJECTS:
        if type(value) is kind:
            return {kind.__name__: value.get_params()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if name in _CONTAINERS and isinstance(value, dict):
        # As pairs: the keys of a JSON object are texts only.
        return {"dict": [[_plain_parameter(name, x) for x in pair] for pair in value.items()]}
    if name in _CONTAINERS and isinstance(value, (list, tuple)):
        return [_plain_parameter(name, item) for item in value]
    raise TypeError(f"parameter {name} is a {type(value).__name__}, which cannot be saved as JSON")


def _read_parameters(cls: type[TreeMixin], fields: Fields) -> dict[str, Any]:
    parameters = {}
    for name in cls._get_param_names():  # type: ignore[attr-defined]
        value = fields.take(name)
        if isinstance(value, dict) and "dict" in value and name in _CONTAINERS:
            inner = Fields(value, fields.full_name(name))
            value = _read_dict(inner)
            inner.finish()
        elif isinstance(value, dict):
            kind = next((kind for kind in _OBJECTS if kind.__name__ in value), BinaryEncoder)
            inner = Fields(value, fields.full_name(name)).object(kind.__name__)
            value = kind(**{key: inner.take(key) for key in kind._get_param_names()})
            inner.finish()
        elif isinstance(value, list) and name not in _CONTAINERS:
            raise fields.fail(name, "is a list")
        parameters[name] = value
    fields.finish()
    return parameters


def _read_dict(fields: Fields) -> dict[Any, Any]:
    pairs = fields.take("dict")
    if not isinstance(pairs, list) or not all(isinstance(p, list) and len(p) == 2 for p in pairs):
        raise fields.fail("dict", "is not a list of pairs")
    for key, _ in pairs:
        if not isinstance(key, (bool, int, float, str)):
            raise fields.fail("dict", f"has the key {key!r}")
    return dict(pairs)


def survival_leaves(estimator: SurvivalTreeMixin) -> dict[str, Any]:
    """Baseline and leaves of a survival tree, as plain JSON types."""
    return {
        "baseline": baseline_fields(estimator.baseline_),
        "leaves": [_leaf_fields(leaf) for leaf in estimator.leaf_statistics_],
    }


def baseline_fields(baseline: Baseline) -> dict[str, Any]:
    """Baseline as plain JSON types."""
    return _plain(vars(baseline))


def read_baseline(fields: Fields) -> Baseline:
    """Baseline from ``survival_leaves``."""
    unique_times = fields.times("unique_times")
    event_times = fields.times("event_times")
    hazard = fields.monotone("cumulative_hazard", low=0.0, high=np.inf, sign=1)
    if not event_times.size or not np.isin(event_times, unique_times).all():
        raise fields.fail("event_times", "is empty or not part of unique_times")
    if hazard.shape != unique_times.shape:
        raise fields.fail("cumulative_hazard", "does not have one value per time")
    # An event of tiny weight may be too little to be seen in the sum.
    if (np.diff(hazard, prepend=0.0) > 0)[~np.isin(unique_times, event_times)].any():
        raise fields.fail("cumulative_hazard", "rises where there is no event")
    fields.finish()
    return Baseline(unique_times, event_times, hazard)


def tree_fields(tree: Tree) -> dict[str, Any]:
    """Tree of yes-no questions as plain JSON types."""
    fields = {
        "children_left": tree.children_left.tolist(),
        "children_right": tree.children_right.tolist(),
        "feature": tree.feature.tolist(),
        "n_node_samples": tree.n_node_samples.tolist(),
        "weighted_n_node_samples": tree.weighted_n_node_samples.tolist(),
    }
    if tree.threshold is not None:
        fields["threshold"] = [None if np.isnan(x) else x for x in tree.threshold.tolist()]
    return fields


def read_tree(fields: Fields, n_columns: int) -> Tree:
    """Tree from ``tree_fields``."""
    arrays = (
        fields.integers("children_left"),
        fields.integers("children_right"),
        fields.integers("feature"),
        fields.integers("n_node_samples"),
        fields.numbers("weighted_n_node_samples"),
    )
    threshold = None
    if "threshold" in fields.names():
        threshold = fields.numbers("threshold", null=np.nan)
    fields.finish()
    try:
        tree = Tree(*arrays, threshold)
    except ValueError as error:
        raise ModelFormatError(f"tree.{error}") from None
    if tree.feature.max() >= n_columns:
        node = int(np.argmax(tree.feature))
        raise fields.fail(f"feature[{node}]", f"is {tree.feature[node]} of {n_columns} columns")
    for name in ("n_node_samples", "weighted_n_node_samples"):
        amount = getattr(tree, name)
        inner = ~tree.is_leaf
        children = amount[tree.children_left[inner]] + amount[tree.children_right[inner]]
        if (amount <= 0).any() or not np.allclose(amount[inner], children, rtol=1e-9, atol=0.0):
            raise fields.fail(name, "of a node is not that of its children together")
    return tree


def _leaf_fields(leaf: LeafStatistics) -> dict[str, Any]:
    values = ((field.name, getattr(leaf, field.name)) for field in dataclass_fields(leaf))
    return {name: _plain(value) for name, value in values if value is not None}


def read_leaves(
    document: Fields, tree: Tree, baseline: Baseline, curve: str, prior: float = 0.0
) -> tuple[LeafStatistics, ...]:
    """Leaves from ``survival_leaves``."""
    objects = document.objects("leaves")
    if len(objects) != tree.n_leaves:
        raise ModelFormatError(f"leaves has {len(objects)} entries for {tree.n_leaves} leaves")
    leaves = tuple(
        _read_leaf(fields, int(node), tree, baseline, curve, prior)
        for fields, node in zip(objects, tree.leaves, strict=True)
    )
    happened = np.unique(np.concatenate([leaf.event_times for leaf in leaves]))
    if not np.array_equal(happened, baseline.event_times):
        raise ModelFormatError("baseline.event_times are not the event times of the leaves")
    return leaves


def _read_leaf(
    fields: Fields, node: int, tree: Tree, baseline: Baseline, curve: str, prior: float
) -> LeafStatistics:
    fitted: dict[str, NDArray[np.float64]] = {}
    if curve == "brier-optimal" or "brier_times" in fields.names():
        fitted["brier_times"] = fields.times("brier_times")
        fitted["brier_survival"] = fields.monotone("brier_survival", low=0.0, high=1.0, sign=-1)
        if fitted["brier_times"].shape != fitted["brier_survival"].shape:
            raise fields.fail("brier_survival", "does not have one value per time")
        if not np.isin(fitted["brier_times"], baseline.unique_times).all():
            raise fields.fail("brier_times", "are not part of the training times")
        if (np.diff(fitted["brier_survival"], prepend=1.0) == 0).any():
            raise fields.fail("brier_survival", "has a step without a fall")
    leaf = LeafStatistics(
        node=fields.integer("node"),
        n_samples=fields.integer("n_samples", minimum=1),
        n_events=fields.integer("n_events"),
        weight=fields.number("weight"),
        events=fields.number("events"),
        hazard=fields.number("hazard"),
        theta=fields.number("theta"),
        event_times=fields.times("event_times"),
        kaplan_meier=fields.monotone("kaplan_meier", low=0.0, high=1.0, sign=-1),
        nelson_aalen=fields.monotone("nelson_aalen", low=0.0, high=np.inf, sign=1),
        at_risk=fields.numbers("at_risk"),
        **fitted,
    )
    fields.finish()
    expected = {
        "node": leaf.node == node,
        "n_samples": leaf.n_samples == tree.n_node_samples[node],
        "n_events": leaf.n_events <= leaf.n_samples,
        "weight": bool(np.isclose(leaf.weight, tree.weighted_n_node_samples[node], atol=0.0)),
        "events": leaf.events <= leaf.weight and (leaf.events > 0) == (leaf.n_events > 0),
        "hazard": leaf.hazard > 0,
        "event_times": bool(np.isin(leaf.event_times, baseline.event_times).all())
        and (leaf.event_times.size > 0) == (leaf.n_events > 0),
        "kaplan_meier": leaf.kaplan_meier.shape == leaf.event_times.shape,
        "nelson_aalen": leaf.nelson_aalen.shape == leaf.event_times.shape,
        "at_risk": leaf.at_risk.shape == leaf.event_times.shape
        and bool(((leaf.at_risk >= 1) & (leaf.at_risk <= leaf.n_samples)).all()),
    }
    for name, holds in expected.items():
        if not holds:
            raise fields.fail(name, "contradicts the tree or the other fields")
    # Both have a factor or term per event time: 1 − d/n and d/n.
    product = np.cumprod(1 - np.diff(leaf.nelson_aalen, prepend=0.0))
    if not np.allclose(leaf.kaplan_meier, product, rtol=0.0, atol=1e-9):
        raise fields.fail("kaplan_meier", "does not go with nelson_aalen")
    if leaf.theta != hazard_ratio(leaf.events, leaf.hazard, prior):
        raise fields.fail("theta", "is not events / hazard" + ", with the prior" * (prior > 0))
    return leaf
