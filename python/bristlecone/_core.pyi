"""Types of the Rust engine's binding."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__version__: str

class Solution:
    """Result of a search; arrays describe the tree in preorder, left = feature true."""

    feature: NDArray[np.int64]
    children_left: NDArray[np.int64]
    children_right: NDArray[np.int64]
    objective: float
    lower_bound: float
    status: str
    n_nodes_explored: int
    n_distinct_rows: int
    n_active_features: int
    kernel: str
    trace: list[tuple[float, float, float]]

def backends() -> list[str]: ...
def risk_table(
    time: NDArray[np.float64],
    event: NDArray[np.bool_],
    weight: NDArray[np.float64] | None = None,
    entry: NDArray[np.float64] | None = None,
) -> dict[str, NDArray[np.float64]]: ...
def solve_likelihood(
    features: NDArray[np.uint8],
    time: NDArray[np.float64],
    event: NDArray[np.bool_],
    weight: NDArray[np.float64] | None = None,
    *,
    entry: NDArray[np.float64] | None = None,
    callback: Callable[[float, float, float, int], object] | None = None,
    max_depth: int,
    max_leaf_nodes: int | None,
    min_samples_leaf: int,
    leaf_penalty: float,
    n_threads: int,
    time_limit: float | None,
    memory_limit: int | None,
    options: Mapping[str, Any] | None,
) -> Solution: ...
def path_likelihood(
    features: NDArray[np.uint8],
    time: NDArray[np.float64],
    event: NDArray[np.bool_],
    weight: NDArray[np.float64] | None = None,
    *,
    entry: NDArray[np.float64] | None = None,
    max_depth: int,
    max_leaf_nodes: int | None,
    min_samples_leaf: int,
    leaf_penalty: float,
    n_threads: int,
    time_limit: float | None,
    memory_limit: int | None,
    options: Mapping[str, Any] | None,
) -> list[Solution]: ...
def forecast_likelihood(
    features: NDArray[np.uint8],
    time: NDArray[np.float64],
    event: NDArray[np.bool_],
    weight: NDArray[np.float64] | None = None,
    *,
    entry: NDArray[np.float64] | None = None,
    max_depth: int,
    max_leaf_nodes: int | None,
    min_samples_leaf: int,
    leaf_penalty: float,
    n_threads: int,
    time_limit: float | None,
    memory_limit: int | None,
    options: Mapping[str, Any] | None,
) -> dict[str, float]: ...
def all_optimal_likelihood(
    features: NDArray[np.uint8],
    time: NDArray[np.float64],
    event: NDArray[np.bool_],
    weight: NDArray[np.float64] | None = None,
    entry: NDArray[np.float64] | None = None,
    *,
    limit: int,
    max_depth: int,
    max_leaf_nodes: int | None,
    min_samples_leaf: int,
    leaf_penalty: float,
    n_threads: int,
    time_limit: float | None,
    memory_limit: int | None,
    options: Mapping[str, Any] | None,
) -> list[Solution]: ...
def solve_brier(
    features: NDArray[np.uint8],
    time: NDArray[np.float64],
    event: NDArray[np.bool_],
    weight: NDArray[np.float64] | None = None,
    callback: Callable[[float, float, float, int], object] | None = None,
    *,
    leaf_curve: str = "kaplan-meier",
    time_grid: NDArray[np.float64] | None = None,
    reference_loss: NDArray[np.float64] | None = None,
    max_depth: int,
    max_leaf_nodes: int | None,
    min_samples_leaf: int,
    leaf_penalty: float,
    n_threads: int,
    time_limit: float | None,
    memory_limit: int | None,
    options: Mapping[str, Any] | None,
) -> Solution: ...
def path_brier(
    features: NDArray[np.uint8],
    time: NDArray[np.float64],
    event: NDArray[np.bool_],
    weight: NDArray[np.float64] | None = None,
    callback: Callable[[float, float, float, int], object] | None = None,
    *,
    leaf_curve: str = "kaplan-meier",
    time_grid: NDArray[np.float64] | None = None,
    reference_loss: NDArray[np.float64] | None = None,
    max_depth: int,
    max_leaf_nodes: int | None,
    min_samples_leaf: int,
    leaf_penalty: float,
    n_threads: int,
    time_limit: float | None,
    memory_limit: int | None,
    options: Mapping[str, Any] | None,
) -> list[Solution]: ...
def all_optimal_brier(
    features: NDArray[np.uint8],
    time: NDArray[np.float64],
    event: NDArray[np.bool_],
    weight: NDArray[np.float64] | None = None,
    callback: Callable[[float, float, float, int], object] | None = None,
    *,
    limit: int,
    leaf_curve: str = "kaplan-meier",
    time_grid: NDArray[np.float64] | None = None,
    reference_loss: NDArray[np.float64] | None = None,
    max_depth: int,
    max_leaf_nodes: int | None,
    min_samples_leaf: int,
    leaf_penalty: float,
    n_threads: int,
    time_limit: float | None,
    memory_limit: int | None,
    options: Mapping[str, Any] | None,
) -> list[Solution]: ...
def solve(
    task: str,
    data: dict[str, Any],
    features: NDArray[np.uint8],
    callback: Callable[[float, float, float, int], None] | None = None,
    *,
    max_depth: int,
    max_leaf_nodes: int | None,
    min_samples_leaf: int,
    leaf_penalty: float,
    n_threads: int,
    time_limit: float | None,
    memory_limit: int | None,
    options: Mapping[str, Any] | None,
) -> Solution: ...
def solve_path(
    task: str,
    data: dict[str, Any],
    features: NDArray[np.uint8],
    *,
    max_depth: int,
    max_leaf_nodes: int | None,
    min_samples_leaf: int,
    leaf_penalty: float,
    n_threads: int,
    time_limit: float | None,
    memory_limit: int | None,
    options: Mapping[str, Any] | None,
) -> list[Solution]: ...
def forecast(
    task: str,
    data: dict[str, Any],
    features: NDArray[np.uint8],
    *,
    max_depth: int,
    max_leaf_nodes: int | None,
    min_samples_leaf: int,
    leaf_penalty: float,
    n_threads: int,
    time_limit: float | None,
    memory_limit: int | None,
    options: Mapping[str, Any] | None,
) -> dict[str, float]: ...

class FrontPoint:
    """One tree of a front in preorder; labels are -1 at splits."""

    feature: NDArray[np.int64]
    children_left: NDArray[np.int64]
    children_right: NDArray[np.int64]
    labels: NDArray[np.int64]
    costs: list[float]

class Front:
    """Result of a search for a front or for the best tree under limits."""

    points: list[FrontPoint]
    best: int | None
    objective: float
    lower_bound: float
    status: str
    n_nodes_explored: int
    n_distinct_rows: int
    n_active_features: int
    trace: list[tuple[float, float, float]]

def solve_front(
    task: str,
    data: Mapping[str, Any],
    features: NDArray[np.uint8],
    callback: Callable[[float, float, float, int], object] | None = None,
    *,
    max_depth: int,
    max_leaf_nodes: int | None,
    min_samples_leaf: int,
    leaf_penalty: float,
    n_threads: int,
    time_limit: float | None,
    memory_limit: int | None,
    options: Mapping[str, Any] | None,
) -> Front: ...
def grow_greedy(
    features: NDArray[np.uint8] | NDArray[np.float64],
    time: NDArray[np.float64],
    event: NDArray[np.bool_],
    weight: NDArray[np.float64] | None = None,
    *,
    criterion: str,
    max_depth: int | None,
    max_leaf_nodes: int | None,
    min_samples_leaf: int,
) -> dict[str, Any]: ...
