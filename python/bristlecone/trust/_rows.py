"""Raw rows: the values of every binary feature, and the outcomes of each task.

The readers of ``_data`` extract the values from data frames and arrays; everything computed from
them is computed here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.arrays import as_array
from bristlecone._data.outcomes import check_survival, read_causes
from bristlecone._tree import Tree
from bristlecone.trust._columns import Table, Values, answers_of

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of positive weight, with the outcomes of the task.

    Parameters
    ----------
    answers : array, shape (n, n_features)
        Binary features as booleans; for a tree with numeric thresholds, the numbers; for a soft
        tree, the design matrix.
    weight : array of float, shape (n,)
        Row weights; 1 without weights.
    columns : list of Values
        The columns of the fit, in their order; empty if a custom encoder read them.
    outcomes : tuple
        Outcomes, weights and groups in the form that the search took, for the fingerprint.
    facts : mapping
        Values that the task needs, by name: "time", "event", "labels", "target", "rewards", ...
    """

    answers: NDArray[Any]
    weight: Floats
    columns: list[Values]
    outcomes: tuple[Any, ...]
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.weight.sum())


def fingerprint(rows: Rows) -> str:
    """SHA-256 of features, outcomes and weights in the order of the rows, as certificates define.

    Features are packed to bits, or stand as float64; then every array with its type and shape.
    """
    binary = rows.answers.dtype == np.bool_
    digest = sha256(repr((rows.answers.shape, binary)).encode())
    features = np.packbits(rows.answers.ravel()) if binary else rows.answers
    for array in (features, *rows.outcomes):
        if isinstance(array, np.ndarray) and array.dtype == object:
            digest.update(repr(array.tolist()).encode())
        elif isinstance(array, np.ndarray):
            whole = np.ascontiguousarray(array)
            digest.update(repr((whole.dtype.str, whole.shape)).encode())
            digest.update(whole.tobytes())
    return digest.hexdigest()


def reached_nodes(tree: Any, answers: NDArray[Any]) -> NDArray[np.bool_]:
    """Whether each row passes through each node, shape (n, n_nodes)."""
    nodes = tree.tree_
    reached = np.zeros((len(answers), nodes.node_count), dtype=bool)
    reached[:, 0] = True
    soft = not isinstance(nodes, Tree)
    places = {int(node): k for k, node in enumerate(nodes.splits)} if soft else {}
    for node in range(nodes.node_count):
        left, right = int(nodes.children_left[node]), int(nodes.children_right[node])
        if left < 0:
            continue
        if soft:
            k = places[node]
            yes = answers @ nodes.weights[k] + nodes.intercepts[k] >= 0
        else:
            value = answers[:, nodes.feature[node]]
            yes = value <= nodes.threshold[node] if nodes.numeric else value
        reached[:, left] = reached[:, node] & yes
        reached[:, right] = reached[:, node] & ~yes
    return reached


def read_rows(tree: Any, X: Any, y: Any, given: Mapping[str, Any]) -> Rows:
    """Rows of a fit, from its arguments.

    Raises
    ------
    TypeError
        For an argument that the ``fit`` of this class does not take.
    ValueError
        When rows or columns do not fit together.
    """
    kind = type(tree).__name__
    read, known = _READERS[kind]
    more = {name: value for name, value in given.items() if value is not None}
    for name in more:
        if name not in (*known, "sample_weight"):
            raise TypeError(f"verify of a {kind} takes no argument {name!r}")
    weight = None
    if "sample_weight" in more:
        weight = as_array(more["sample_weight"], "sample_weight").astype(np.float64)
    table = Table(tree.encoder_, X)
    if weight is not None and weight.shape != (table.n_rows,):
        raise ValueError(f"sample_weight has shape {weight.shape} for {table.n_rows} rows of X")
    found: Rows = read(tree, table, y, weight, more)
    return found


def _taken(columns: list[Values], kept: NDArray[np.bool_]) -> list[Values]:
    places = np.flatnonzero(kept).tolist()
    return [
        Values(
            None if column.numbers is None else column.numbers[kept],
            [column.objects[at] for at in places] if column.objects else [],
        )
        for column in columns
    ]


def _kept(weight: Floats | None, n: int) -> NDArray[np.bool_]:
    return np.ones(n, dtype=bool) if weight is None else weight > 0


def _made(
    tree: Any,
    table: Table,
    weight: Floats | None,
    kept: NDArray[np.bool_],
    outcomes: Any,
    facts: Any,
) -> Rows:
    """Rows of which some are kept."""
    answers, columns = answers_of(tree, table)
    if len(answers) != len(kept):
        raise ValueError(f"X has {len(answers)} rows, the outcomes have {len(kept)}")
    own = np.ones(int(kept.sum())) if weight is None else weight[kept]
    return Rows(np.ascontiguousarray(answers[kept]), own, _taken(columns, kept), outcomes, facts)


def _survival(tree: Any, table: Table, y: Any, weight: Any, more: Mapping[str, Any]) -> Rows:
    event, time, entry = check_survival(y)
    parameters = tree.certificate_.parameters
    if len(time) != table.n_rows:
        raise ValueError(f"X has {table.n_rows} rows but y has {len(time)}")
    kept = _kept(weight, len(time))
    some = None if kept.all() else kept
    event, time = event[kept], time[kept]
    entry = None if entry is None else entry[kept]
    grid = parameters.get("time_grid")
    if grid is not None:
        grid = np.asarray(grid, dtype=np.float64)
        above = [int((grid < t).sum()) for t in time.tolist()]
        event = event & (np.array(above) < grid.size)
        time = grid[np.minimum(above, grid.size - 1)]
    facts: dict[str, Any] = {"event": event, "time": time, "entry": entry}
    if "reference_loss" in more:
        facts["reference_loss"] = as_array(more["reference_loss"], "reference_loss")[kept]
    groups = codes = None
    # A soft tree penalises the distance between the groups; it has no limit to check.
    if type(tree).__name__ == "OptimalSurvivalTree" and parameters["fairness"] is not None:
        groups, codes = _groups(table, more, parameters["fairness"].sensitive_feature, kept)
        facts |= {"groups": groups, "group": codes}
    own = None if weight is None else weight[kept]
    outcomes = (event, time, own, entry, some, codes, groups)
    return _made(tree, table, weight, kept, outcomes, facts)


def _causes(tree: Any, table: Table, y: Any, weight: Any, more: Mapping[str, Any]) -> Rows:
    causes = read_causes(y)
    cause: NDArray[Any] = causes.event
    rows = _survival(tree, table, causes._replace(event=cause > 0), weight, {})
    kept = cause if rows.outcomes[4] is None else cause[rows.outcomes[4]]
    return replace(rows, outcomes=(*rows.outcomes, kept), facts={**rows.facts, "cause": kept})


def _soft(tree: Any, table: Table, y: Any, weight: Any, more: Mapping[str, Any]) -> Rows:
    rows = _survival(tree, table, y, weight, {})
    time = rows.facts["time"]
    # A time of 0 has no logarithm: half the least positive one takes its place.
    rows.facts["time"] = np.where(time > 0, time, time[time > 0].min() / 2)
    return rows


def _groups(
    table: Table, more: Mapping[str, Any], column: Any, kept: NDArray[np.bool_]
) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """The two groups in sorted order, and the place of every kept row's."""
    values = more.get("sensitive_features")
    if values is None and column is None:
        raise ValueError("verify needs the groups: pass sensitive_features")
    values = as_array(table.column(column) if values is None else values, "groups").ravel()
    distinct = np.unique(values)
    return distinct, np.searchsorted(distinct, values)[kept].astype(np.int64)


def _labelled(
    values: Any, weight: Floats | None, n: int, name: str = "y"
) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.bool_]]:
    """Classes among the rows of positive weight, codes of all rows, and which are kept."""
    array = np.ravel(as_array(values, name))
    if array.dtype.kind == "T":
        array = np.array(array.tolist())
    if len(array) != n:
        raise ValueError(f"X has {n} rows but {name} has {len(array)}")
    kept = _kept(weight, n)
    classes = np.unique(array[kept])
    codes = np.zeros(n, dtype=np.int64)
    codes[kept] = np.searchsorted(classes, array[kept])
    return classes, codes, kept


def _classes(tree: Any, table: Table, y: Any, weight: Any, more: Mapping[str, Any]) -> Rows:
    classes, codes, kept = _labelled(y, weight, table.n_rows)
    asked = tree.certificate_.parameters["class_weight"]
    if asked is not None:
        factor = np.zeros(len(codes))
        if isinstance(asked, Mapping):
            by_class = np.array([asked.get(label, 1.0) for label in classes.tolist()])
        else:
            by_class = kept.sum() / (len(classes) * np.bincount(codes[kept]))
        factor[kept] = by_class[codes[kept]]
        weight = factor if weight is None else factor * weight
        kept = weight > 0
    codes = codes[kept]
    own = None if weight is None else weight[kept]
    facts = {"labels": codes, "classes": classes}
    return _made(tree, table, weight, kept, (codes, classes, own, kept), facts)


def _costs(tree: Any, table: Table, y: Any, weight: Any, more: Mapping[str, Any]) -> Rows:
    classes, codes, kept = _labelled(y, weight, table.n_rows)
    codes, matrix = codes[kept], tree.certificate_.parameters["cost_matrix"]
    if "costs" in more:
        costs = np.array(more["costs"], dtype=np.float64)[kept]
    elif matrix is None:
        costs = (np.arange(len(classes)) != codes[:, None]).astype(np.float64)
    else:
        costs = np.array(matrix, dtype=np.float64)[codes]
    own = None if weight is None else weight[kept]
    facts = {"labels": codes, "classes": classes, "costs": costs}
    return _made(tree, table, weight, kept, (codes, classes, own, costs), facts)


def _fair(tree: Any, table: Table, y: Any, weight: Any, more: Mapping[str, Any]) -> Rows:
    classes, codes, kept = _labelled(y, weight, table.n_rows)
    column = tree.certificate_.parameters["fairness"].sensitive_feature
    groups, group = _groups(table, more, column, kept)
    own = None if weight is None else weight[kept]
    facts = {"labels": codes[kept], "classes": classes, "groups": groups, "group": group}
    return _made(tree, table, weight, kept, (codes[kept], classes, own, group, groups), facts)


def _numbers(tree: Any, table: Table, y: Any, weight: Any, more: Mapping[str, Any]) -> Rows:
    target = np.ravel(as_array(y, "y")).astype(np.float64)
    if len(target) != table.n_rows:
        raise ValueError(f"X has {table.n_rows} rows but y has {len(target)}")
    kept = _kept(weight, len(target))
    own, target = None if weight is None else weight[kept], target[kept]
    outcomes: tuple[Any, ...] = target, own, kept
    facts = {"target": target}
    if tree.certificate_.parameters["objective"] == "poisson":
        exposure = np.ones(len(target))
        if more.get("exposure") is not None:
            exposure = as_array(more["exposure"], "exposure").astype(np.float64)[kept]
            outcomes = *outcomes, exposure
        facts = {"counts": target, "exposure": exposure, "target": target / exposure}
    return _made(tree, table, weight, kept, outcomes, facts)


def _policy(tree: Any, table: Table, y: Any, weight: Any, more: Mapping[str, Any]) -> Rows:
    if "treatment" not in more:
        raise TypeError("verify needs treatment for a PolicyTree")
    treatments, codes, kept = _labelled(more["treatment"], weight, table.n_rows, "treatment")
    outcome = np.ravel(as_array(y, "y")).astype(np.float64)
    if len(outcome) != table.n_rows:
        raise ValueError(f"X has {table.n_rows} rows but y has {len(outcome)}")
    codes, outcome = codes[kept], outcome[kept]
    taken = np.arange(len(codes)), codes
    reward = tree.certificate_.parameters["reward"]
    rewards = np.zeros((len(codes), len(treatments)))
    if reward != "inverse-propensity":
        if "predicted_outcomes" not in more:
            raise TypeError(f"reward={reward!r} needs predicted_outcomes")
        rewards = np.array(more["predicted_outcomes"], dtype=np.float64)[kept]
    if reward != "direct":
        share = _propensity(more.get("propensity"), codes, treatments, kept, reward)
        rewards[taken] += (outcome - rewards[taken]) / share
    own = None if weight is None else weight[kept]
    facts = {"labels": codes, "classes": treatments, "rewards": rewards}
    return _made(tree, table, weight, kept, (rewards, treatments, own), facts)


def _propensity(
    given: Any,
    codes: NDArray[np.int64],
    treatments: NDArray[Any],
    kept: NDArray[np.bool_],
    reward: str,
) -> Floats:
    """Probability of the treatment that each row had."""
    if given is None:
        raise TypeError(f"reward={reward!r} needs propensity")
    if isinstance(given, Mapping):
        return np.array([given[name] for name in treatments.tolist()], dtype=np.float64)[codes]
    if isinstance(given, Real):
        return np.full(len(codes), float(given))
    shares = np.array(given, dtype=np.float64)[kept]
    return shares if shares.ndim == 1 else shares[np.arange(len(codes)), codes]


def _own(tree: Any, table: Table, y: Any, weight: Any, more: Mapping[str, Any]) -> Rows:
    task = tree.certificate_.parameters["task"]
    statistics = np.array(task.statistics(table.X, y), dtype=np.float64)
    if len(statistics) != table.n_rows:
        raise ValueError(f"X has {table.n_rows} rows, the statistics have {len(statistics)}")
    kept = _kept(weight, len(statistics))
    statistics, own = statistics[kept], None
    if weight is not None:
        own = weight[kept]
        statistics = statistics * own[:, None]
    return _made(tree, table, weight, kept, (statistics, own), {"statistics": statistics})


_READERS: dict[str, tuple[Callable[..., Rows], tuple[str, ...]]] = {
    "CompetingRisksTree": (_causes, ()),
    "OptimalSurvivalTree": (_survival, ("sensitive_features", "reference_loss")),
    "GreedySurvivalTree": (_survival, ()),
    "SoftSurvivalTree": (_soft, ("sensitive_features",)),
    "OptimalTreeClassifier": (_classes, ()),
    "CostSensitiveTreeClassifier": (_costs, ("costs",)),
    "FairTreeClassifier": (_fair, ("sensitive_features",)),
    "OptimalTreeRegressor": (_numbers, ("exposure",)),
    "PolicyTree": (_policy, ("treatment", "propensity", "predicted_outcomes")),
    "OptimalTree": (_own, ()),
}
