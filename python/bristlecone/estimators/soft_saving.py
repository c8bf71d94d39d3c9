"""The fields of a saved soft tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bristlecone.encoder.design import DesignEncoder
from bristlecone.errors import ModelFormatError
from bristlecone.model import registry as serialise
from bristlecone.model.registry import Fields
from bristlecone.soft import routing
from bristlecone.soft.models import MODELS
from bristlecone.soft.tree import SoftTree

if TYPE_CHECKING:
    from bristlecone.estimators.soft import SoftSurvivalTree

__all__ = ["fields", "leaves", "read_fields", "read_leaves", "read_tree", "tree_fields"]

Floats = NDArray[np.float64]


def fields(estimator: SoftSurvivalTree) -> dict[str, Any]:
    """What is neither tree nor leaves."""
    saved = {
        "design": estimator.encoder_.to_dict(),
        "model": estimator._model.to_dict(),
        "log_unit": estimator._log_unit,
        "fit": {
            "objective_value": estimator.objective_value_,
            "trace": list(estimator.trace_),
            "restart_objectives": estimator.restart_objectives_.tolist(),
            "converged": bool(estimator.converged_),
            "fit_time": estimator.fit_time_,
        },
    }
    if hasattr(estimator, "fairness_distance_"):
        saved["fairness"] = {
            "distance": estimator.fairness_distance_,
            "gini": list(estimator.leaf_gini_),
        }
    return saved


def read_fields(estimator: SoftSurvivalTree, document: Fields) -> None:
    """Check and set what ``fields`` returned."""
    encoder = DesignEncoder(estimator.max_categories, estimator.handle_unknown)
    estimator.encoder_ = encoder.read_dict(document.take("design"))
    model = document.object("model")
    data = {name: model.numbers(name).tolist() for name in model.names()}
    try:
        estimator._model = MODELS[estimator.leaf].from_dict(data)
    except ValueError as error:
        raise ModelFormatError(f"model: {error}") from None
    estimator._log_unit = document.number("log_unit", minimum=-np.inf)
    fit = document.object("fit")
    estimator.objective_value_ = fit.number("objective_value", minimum=-np.inf)
    estimator.trace_ = fit.numbers("trace").tolist()
    estimator.restart_objectives_ = fit.numbers("restart_objectives")
    converged = fit.take("converged")
    if not isinstance(converged, bool):
        raise fit.fail("converged", "is not true or false")
    estimator.converged_ = converged
    estimator.fit_time_ = fit.number("fit_time")
    fit.finish()
    if (np.diff(estimator.trace_) > 0).any():
        raise fit.fail("trace", "rises")
    if "fairness" in document.names():
        fairness = document.object("fairness")
        estimator.fairness_distance_ = fairness.number("distance")
        plain, weighted = _sized(fairness, "gini", (2,))
        estimator.leaf_gini_ = float(plain), float(weighted)
        fairness.finish()


def tree_fields(tree: SoftTree) -> dict[str, Any]:
    """The splits, and the training rows in every node."""
    return {
        "weights": tree.weights.ravel().tolist(),
        "intercepts": tree.intercepts.tolist(),
        "n_node_samples": tree.n_node_samples.tolist(),
        "weighted_n_node_samples": tree.weighted_n_node_samples.tolist(),
    }


def read_tree(document: Fields, depth: int, n_design: int) -> SoftTree:
    """Tree from ``tree_fields``."""
    n_splits = routing.n_splits(depth)
    nodes = 2 * n_splits + 1
    tree = SoftTree(
        depth,
        _sized(document, "weights", (n_splits, n_design)),
        _sized(document, "intercepts", (n_splits,)),
        _counts(document, "n_node_samples", nodes),
        _sized(document, "weighted_n_node_samples", (nodes,)),
    )
    document.finish()
    for name in ("n_node_samples", "weighted_n_node_samples"):
        amount = getattr(tree, name)
        inner = ~tree.is_leaf
        below = amount[tree.children_left[inner]] + amount[tree.children_right[inner]]
        if (amount < 0).any() or not np.allclose(amount[inner], below, rtol=1e-9, atol=0.0):
            raise document.fail(name, "of a node is not that of its children together")
    return tree


def leaves(estimator: SoftSurvivalTree) -> dict[str, Any]:
    """Parameters of the leaves, their training rows, and the training times."""
    return {
        "baseline": serialise.baseline_fields(estimator.baseline_),
        "leaves": {
            "linear": estimator._linear.ravel().tolist(),
            "shape": estimator._shape.ravel().tolist(),
            "n_events": estimator._leaf_events.tolist(),
            "median": [_plain_median(median) for median in estimator._leaf_medians],
        },
    }


def read_leaves(estimator: SoftSurvivalTree, document: Fields) -> None:
    """Check and set what ``leaves`` returned."""
    tree = estimator.tree_
    estimator.baseline_ = serialise.read_baseline(document.object("baseline"))
    found = document.object("leaves")
    shape = (tree.n_leaves, estimator._model.n_shape)
    estimator._linear = _sized(found, "linear", (tree.n_leaves, tree.weights.shape[1] + 1))
    estimator._shape = _sized(found, "shape", shape)
    estimator._leaf_events = _counts(found, "n_events", tree.n_leaves)
    medians = found.take("median")
    rows = tree.n_node_samples[tree.leaves]
    if (estimator._leaf_events > rows).any():
        raise found.fail("n_events", "is more than the rows of a leaf")
    if not isinstance(medians, list) or len(medians) != tree.n_leaves:
        raise found.fail("median", "is not one value per leaf")
    read = [_read_median(value) for value in medians]
    if any(value is None for value in read):
        raise found.fail("median", "is neither a number nor 'not reached'")
    estimator._leaf_medians = np.array(read, dtype=np.float64)
    if (np.isnan(estimator._leaf_medians) != (rows == 0)).any():
        raise found.fail("median", "contradicts the rows of a leaf")
    found.finish()


def _plain_median(median: float) -> float | str | None:
    if np.isnan(median):
        return None
    return float(median) if np.isfinite(median) else "not reached"


def _read_median(value: Any) -> float | None:
    if value is None:
        return np.nan
    if value == "not reached":
        return np.inf
    good = isinstance(value, (int, float)) and not isinstance(value, bool) and value >= 0
    return float(value) if good else None


def _sized(document: Fields, name: str, shape: tuple[int, ...]) -> Floats:
    values = document.numbers(name)
    if values.size != np.prod(shape, dtype=np.int64):
        raise document.fail(name, f"has {values.size} numbers; expected {shape}")
    return values.reshape(shape)


def _counts(document: Fields, name: str, size: int) -> NDArray[np.int64]:
    values = document.integers(name)
    if values.shape != (size,) or (values < 0).any():
        raise document.fail(name, f"is not {size} counts")
    return values
