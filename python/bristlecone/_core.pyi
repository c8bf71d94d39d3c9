"""Types of the Rust engine's binding."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray
from typing_extensions import NotRequired, Unpack

__version__: str

class Limits(TypedDict):
    """Keyword arguments common to all searches; for type checkers, not in the module."""

    max_depth: int
    max_leaf_nodes: int | None
    min_samples_leaf: int
    min_events_leaf: NotRequired[int]
    leaf_penalty: float
    n_threads: int
    time_limit: float | None
    memory_limit: int | None
    options: Mapping[str, Any] | None

# Told of seconds, objective, lower bound, nodes, share done and seconds left.
Progress = Callable[[float, float, float, int, float | None, float | None], object]
# Feature, left and right child of every node, in preorder.
TreeArrays = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
# Nodes, features, objectives and numbers of leaves of trees; what ended the search, or None.
Alternatives = tuple[
    NDArray[np.int64], NDArray[np.int64], NDArray[np.float64], NDArray[np.int64], str | None
]

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

class BinaryMatrix:
    """Binary features of rows, a bit each; ``numpy.asarray`` makes an array of a byte each."""

    shape: tuple[int, int]
    def __init__(self, values: NDArray[np.uint8]) -> None: ...
    @staticmethod
    def of_ranks(
        columns: Sequence[NDArray[np.uint32] | NDArray[np.uint8] | NDArray[np.bool_]],
        place: Sequence[int],
        gap: Sequence[int],
        n_rows: int,
    ) -> BinaryMatrix: ...
    def __len__(self) -> int: ...
    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]: ...
    def words(self) -> NDArray[np.uint64]: ...
    def column(self, feature: int) -> NDArray[np.bool_]: ...
    def take(self, rows: NDArray[np.int64]) -> BinaryMatrix: ...
    def count_true(self, among: NDArray[np.bool_] | None = None) -> NDArray[np.int64]: ...
    def first_alike(self) -> list[int]: ...
    def leaf_index(
        self, tree: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
    ) -> NDArray[np.int64]: ...

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
def tasks() -> list[tuple[str, list[str], list[str]]]: ...
def solve(
    task: str,
    data: Mapping[str, Any],
    features: BinaryMatrix | NDArray[np.uint8],
    callback: Progress | None = None,
    **limits: Unpack[Limits],
) -> Solution: ...
def over_thresholds(
    task: str,
    data: Mapping[str, Any],
    ranks: NDArray[np.uint32],
    callback: Progress | None = None,
    **limits: Unpack[Limits],
) -> Solution: ...
def path(
    task: str,
    data: Mapping[str, Any],
    features: BinaryMatrix | NDArray[np.uint8],
    **limits: Unpack[Limits],
) -> list[Solution]: ...
def forecast(
    task: str,
    data: Mapping[str, Any],
    features: BinaryMatrix | NDArray[np.uint8],
    **limits: Unpack[Limits],
) -> dict[str, float]: ...
def near_optimal(
    task: str,
    data: Mapping[str, Any],
    features: BinaryMatrix | NDArray[np.uint8],
    *,
    limit: int,
    slack: float = 0.0,
    **limits: Unpack[Limits],
) -> tuple[list[Solution], bool]: ...
def alternatives(
    task: str,
    data: Mapping[str, Any],
    features: BinaryMatrix | NDArray[np.uint8],
    *,
    tree: TreeArrays,
    **limits: Unpack[Limits],
) -> Alternatives: ...
def front(
    task: str,
    data: Mapping[str, Any],
    features: BinaryMatrix | NDArray[np.uint8],
    callback: Progress | None = None,
    **limits: Unpack[Limits],
) -> Front: ...

class PartialSums:
    """Sums of a task over the rows added so far; `data` has an entry per outcome, and "count"."""

    n_rows: int
    def __init__(
        self,
        task: str,
        data: Mapping[str, Any],
        flipped: NDArray[np.bool_],
        **limits: Unpack[Limits],
    ) -> None: ...
    def add(
        self, features: BinaryMatrix | NDArray[np.uint8], outcome: NDArray[np.uint32]
    ) -> None: ...
    def merge(self, other: PartialSums) -> None: ...
    def merge_bytes(self, bytes: bytes) -> None: ...
    def to_bytes(self) -> bytes: ...
    def smallest_cell(self) -> tuple[int, list[tuple[int, bool]]] | None: ...
    def search(self, callback: Progress | None = None, **limits: Unpack[Limits]) -> TreeArrays: ...
    def certify(
        self,
        leaves: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]] | None = None,
        **limits: Unpack[Limits],
    ) -> Solution: ...

class RiskTable:
    time: NDArray[np.float64]
    at_risk: NDArray[np.float64]
    events: NDArray[np.float64]
    censored: NDArray[np.float64]
    def __init__(
        self,
        time: NDArray[np.float64],
        event: NDArray[np.bool_],
        weight: NDArray[np.float64] | None = None,
        entry: NDArray[np.float64] | None = None,
        place: NDArray[np.int64] | None = None,
    ) -> None: ...
    @staticmethod
    def by_group(
        group: NDArray[np.uint32],
        n_groups: int,
        time: NDArray[np.float64],
        event: NDArray[np.bool_],
        weight: NDArray[np.float64] | None = None,
        entry: NDArray[np.float64] | None = None,
        place: NDArray[np.int64] | None = None,
    ) -> list[RiskTable]: ...
    def counts(self) -> list[NDArray[np.int64]]: ...
    def at_events(self) -> list[NDArray[np.float64]]: ...
    def nelson_aalen(self) -> NDArray[np.float64]: ...
    def kaplan_meier(self) -> NDArray[np.float64]: ...
    def censoring(self, events_leave_first: bool) -> NDArray[np.float64]: ...
    def sum_of(self, values: NDArray[np.float64]) -> float: ...

def row_hazard(
    time: NDArray[np.float64],
    event: NDArray[np.bool_],
    weight: NDArray[np.float64] | None,
    entry: NDArray[np.float64] | None,
    place: NDArray[np.int64] | None = None,
) -> NDArray[np.float64]: ...
def grow_greedy(
    features: BinaryMatrix | NDArray[np.uint8] | NDArray[np.uint32],
    time: NDArray[np.float64],
    event: NDArray[np.bool_],
    weight: NDArray[np.float64] | None = None,
    *,
    criterion: str,
    max_depth: int | None,
    max_leaf_nodes: int | None,
    min_samples_leaf: int,
    min_events_leaf: int = 0,
    prior: float = 0.0,
    smoothed: NDArray[np.float64] | None = None,
) -> dict[str, Any]: ...
def rank_values(
    values: NDArray[np.float64],
) -> tuple[NDArray[np.uint32], NDArray[np.float64]]: ...
def quantile_gaps(
    distinct: NDArray[np.float64], total: NDArray[np.float64], n: int, unit: float
) -> NDArray[np.int64]: ...
def greedy_cuts(
    task: str,
    data: Mapping[str, Any],
    columns: Sequence[NDArray[np.uint32] | NDArray[np.uint8] | NDArray[np.bool_]],
    **limits: Unpack[Limits],
) -> dict[str, NDArray[Any]]: ...
