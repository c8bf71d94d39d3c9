"""Sum tasks of the engine by name: objectives, prices of features, and bad input."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from engine_settings import SETTINGS

from bristlecone import _core

LIMITS = {**SETTINGS, "leaf_penalty": 0.01}


def sample(seed: int = 0, n: int = 60, n_classes: int = 3) -> tuple[np.ndarray, dict[str, Any]]:
    """Features and the data of all tasks."""
    rng = np.random.default_rng(seed)
    features = rng.integers(0, 2, (n, 5)).astype(np.uint8)
    labels = (features[:, 0] + features[:, 1] * features[:, 2] + (rng.random(n) < 0.2)) % n_classes
    return features, {
        "labels": labels.astype(np.int64),
        "n_classes": n_classes,
        "costs": rng.random((n, n_classes)) * (1 + features[:, :1]),
        "target": 2.0 * features[:, 3] + rng.random(n) - 50.0,
        "weight": rng.integers(1, 4, n) * 0.5,
    }


def leaves(solution: _core.Solution, features: np.ndarray) -> np.ndarray:
    """Leaf of every row."""
    node = np.zeros(len(features), dtype=np.int64)
    for _ in range(len(solution.feature)):
        feature = solution.feature[node]
        yes = features[np.arange(len(features)), np.maximum(feature, 0)] == 1
        below = np.where(yes, solution.children_left[node], solution.children_right[node])
        node = np.where(feature >= 0, below, node)
    return node


def loss(task: str, data: dict[str, Any], rows: np.ndarray) -> float:
    """Loss of a leaf, by its definition."""
    weight = data["weight"][rows]
    if task == "label-costs":
        return float((weight[:, None] * data["costs"][rows]).sum(axis=0).min())
    if task == "regression":
        target = data["target"][rows]
        return float(weight @ (target - np.average(target, weights=weight)) ** 2)
    one_hot = data["labels"][:, None] == np.arange(data["n_classes"])
    if task == "balanced-accuracy":
        of_class = data["weight"] @ one_hot
        weight = weight / (data["n_classes"] * of_class)[data["labels"][rows]]
    of_class = weight @ one_hot[rows]
    share = of_class[of_class > 0] / weight.sum()
    if task == "gini":
        return float(weight.sum() * (share * (1 - share)).sum())
    if task == "entropy":
        return float(-weight.sum() * (share * np.log(share)).sum())
    return float(weight.sum() - of_class.max())


def needs(task: str, data: dict[str, Any]) -> dict[str, Any]:
    """The data that a task takes."""
    keys = {"label-costs": ["costs"], "regression": ["target"]}.get(task, ["labels", "n_classes"])
    return {key: data[key] for key in [*keys, "weight"]}


TASKS = ["accuracy", "balanced-accuracy", "gini", "entropy", "label-costs", "regression"]


@pytest.mark.parametrize("task", TASKS)
def test_objective_is_the_summed_loss_of_the_leaves(task: str) -> None:
    features, data = sample()
    solution = _core.solve(task, needs(task, data), features, **LIMITS)
    node = leaves(solution, features)
    parts = [np.flatnonzero(node == leaf) for leaf in np.unique(node)]
    total = 1.0 if task == "balanced-accuracy" else data["weight"].sum()
    expected = sum(loss(task, data, rows) for rows in parts) / total + 0.01 * len(parts)
    assert solution.status == "optimal"
    assert solution.objective == pytest.approx(expected, rel=1e-12)
    assert solution.lower_bound == pytest.approx(solution.objective, rel=1e-9)


@pytest.mark.parametrize("task", TASKS)
def test_no_tree_of_depth_two_is_better(task: str) -> None:
    features, data = sample(1)
    total = 1.0 if task == "balanced-accuracy" else data["weight"].sum()

    def best(rows: np.ndarray, depth: int) -> float:
        values = [loss(task, data, rows) / total + 0.01]
        for f in range(features.shape[1] if depth else 0):
            yes = features[rows, f] == 1
            if 0 < yes.sum() < len(rows):
                values.append(best(rows[yes], depth - 1) + best(rows[~yes], depth - 1))
        return min(values)

    solution = _core.solve(task, needs(task, data), features, **LIMITS)
    assert solution.objective == pytest.approx(best(np.arange(len(features)), 2), rel=1e-9)


@pytest.mark.parametrize("task", TASKS)
def test_size_path_ends_at_the_optimum_and_the_forecast_counts(task: str) -> None:
    features, data = sample(2)
    limits = LIMITS | {"leaf_penalty": 0.0}
    path = _core.path(task, needs(task, data), features, **limits)
    solution = _core.solve(task, needs(task, data), features, **limits)
    assert path[-1].objective == pytest.approx(solution.objective, rel=1e-12)
    forecast = _core.forecast(task, needs(task, data), features, **limits)
    assert forecast["n_distinct_rows"] == len(np.unique(features, axis=0))


def test_features_of_one_origin_are_paid_once_and_groups_discounted() -> None:
    features = np.array(list(product([0, 1], repeat=3)), dtype=np.uint8)
    costs = np.stack([features.sum(axis=1) % 2, 1 - features.sum(axis=1) % 2], axis=1) * 1.0
    prices = {
        "feature_cost": np.array([0.1, 0.1, 0.2]),
        "feature_discount": np.array([0.1, 0.1, 0.05]),
        "feature_origin": np.array([7, 7, -1]),
        "feature_group": np.array([0, 0, 0]),
    }
    limits = LIMITS | {"max_depth": 3, "leaf_penalty": 0.0}
    solution = _core.solve("priced-costs", {"costs": costs} | prices, features, **limits)
    # Parity needs all three: the first of the pair, the second for free, and the third discounted.
    assert solution.objective == pytest.approx(0.1 + 0.05, rel=1e-12)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": np.array([0, 1, 5])}, "y: the label of row 2 is out of range"),
        ({"labels": np.array([0, -1, 0])}, "y: row 1 has label -1"),
        ({"labels": np.array([0, 1])}, "labels has 2 rows, X has 3"),
        ({"labels": np.array(["a", "b", "c"])}, "labels must be a float64, int64 or bool array"),
        ({"weight": np.array([1.0, np.nan, 1.0])}, "sample_weight: row 1"),
        ({"weight": np.zeros(3)}, "sample_weight: all weights are zero"),
        ({"n_classes": 33}, "has 33 classes; at most 32 are supported"),
        ({"colour": 1}, '"colour" is not a column of the task'),
        ({"feature_cost": np.ones(2)}, '"feature_cost" is not a column of the task'),
    ],
)
def test_bad_labels_are_named(change: dict[str, Any], message: str) -> None:
    data = {"labels": np.array([0, 1, 1]), "n_classes": 2} | change
    with pytest.raises(ValueError, match=message):
        _core.solve("accuracy", data, np.eye(3, 2, dtype=np.uint8), **LIMITS)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"costs": np.array([[0.0, 1.0], [2.0, -3.0]])}, "costs: row 1"),
        ({"costs": np.zeros((2, 40))}, "costs: 40 labels"),
        ({"costs": None}, "costs is missing"),
        ({"feature_cost": np.ones(3)}, "feature_cost has 3 entries, X has 2 columns"),
        ({"feature_cost": np.array([1.0, -1.0])}, "feature_cost: feature 1"),
        ({"feature_discount": np.ones(2)}, "feature_cost is missing"),
        (
            {"feature_cost": np.ones(2), "feature_discount": np.array([1.0, 2.0])},
            "feature_discount: feature 1",
        ),
    ],
)
def test_bad_costs_are_named(change: dict[str, Any], message: str) -> None:
    data = {"costs": np.ones((2, 2))} | change
    task = "priced-costs" if any(name.startswith("feature") for name in data) else "label-costs"
    with pytest.raises(ValueError, match=message):
        _core.solve(task, data, np.eye(2, dtype=np.uint8), **LIMITS)


def test_an_unknown_task_and_an_outcome_of_another_kind_are_refused() -> None:
    features = np.eye(2, dtype=np.uint8)
    with pytest.raises(ValueError, match="f1"):
        _core.solve("f1", {"target": np.ones(2)}, features, **LIMITS)
    with pytest.raises(ValueError, match="labels is missing"):
        _core.solve("gini", {"target": np.ones(2)}, features, **LIMITS)
    with pytest.raises(ValueError, match="y: row 1 is not finite"):
        _core.solve("regression", {"target": np.array([1.0, np.inf])}, features, **LIMITS)
