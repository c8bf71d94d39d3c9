"""Raw rows: the values of every binary feature, and the outcomes.

The readers of ``_data`` extract the values from data frames and arrays; everything computed from
them is computed here, and for each kind of outcome in the file of that kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.groups import codes_of, column_of
from bristlecone._tree import Tree
from bristlecone._types import Bools, Floats, Integers
from bristlecone.trust._columns import Table, Values, answers_of
from bristlecone.trust._compare import Checks, Pairs


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

    Features are words of 64 bits by row, or float64; then every array with its type and shape.
    Texts are as long as the longest, and numbers have 64 bits.
    """
    binary = rows.answers.dtype == np.bool_
    digest = sha256(repr((rows.answers.shape, binary)).encode())
    features = _words(rows.answers) if binary else rows.answers
    for array in (features, *rows.outcomes):
        if not isinstance(array, np.ndarray):
            continue
        values = array.tolist() if array.dtype.kind in "OU" else []
        if values and all(isinstance(value, str) for value in values):
            array = np.array(values)
        if array.dtype == object:
            digest.update(repr(values).encode())
        else:
            kind = "words" if array.dtype == np.uint64 else array.dtype.kind
            wide = {"i": np.int64, "u": np.int64, "f": np.float64}.get(kind, array.dtype)
            whole = np.ascontiguousarray(array, dtype=wide)
            digest.update(repr((whole.dtype.str, whole.shape)).encode())
            digest.update(whole.tobytes())
    return digest.hexdigest()


def unordered_fingerprint(rows: Rows) -> str:
    """Fingerprint of rows in any order, as certificates of fits over partitions define it.

    A row has two random numbers: the last of h ← mix(h ^ word) from 0 and from 1, over its outcome
    and weight as float64 and its features as words of 64 bits. Their sums are hashed.
    """
    facts = rows.facts
    labels = None, facts.get("classes")
    treatments, classes = labels[::-1] if "rewards" in facts else labels
    of_all = classes, facts.get("groups"), treatments
    words = []
    for array in rows.outcomes:
        masks = isinstance(array, np.ndarray) and array.dtype == np.bool_
        masks = masks and array is not facts.get("event")
        if isinstance(array, np.ndarray) and not masks and not any(array is x for x in of_all):
            numbers = np.asarray(array, dtype=np.float64).reshape(len(array), -1)
            words += [column.copy().view(np.uint64) for column in (numbers + 0.0).T]
    n_rows, n_features = rows.answers.shape
    words += list(_words(rows.answers).T)
    sums = []
    for start in (0, 1):
        number = np.full(n_rows, start, dtype=np.uint64)
        for word in words:
            number = _mixed(number ^ word)
        sums.append(sum(number.tolist()) % 2**64)
    shown = [None if one is None else one.tolist() for one in of_all]
    return "rows-" + sha256(repr((n_rows, n_features, sums, shown)).encode()).hexdigest()


def _words(answers: Bools) -> NDArray[np.uint64]:
    """Answers of every row as words of 64 bits, at least one, the first feature lowest."""
    n_rows, n_features = answers.shape
    bits = np.zeros((n_rows, 64 * max(1, -(-n_features // 64))), dtype=bool)
    bits[:, :n_features] = answers
    return np.packbits(bits, axis=1, bitorder="little").view("<u8")


def _mixed(number: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The last steps of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)."""
    z = number + np.uint64(11400714819323198485)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(13787848793156543929)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(10723151780598845931)
    return np.asarray(z ^ (z >> np.uint64(31)))


def reached_nodes(tree: Any, answers: NDArray[Any]) -> Bools:
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
            # Rows may be on the boundary, so terms are added in the order that the format defines.
            score = np.full(len(answers), nodes.intercepts[k])
            for weight, column in zip(nodes.weights[k], answers.T, strict=True):
                score += weight * column
            yes = score >= 0
        else:
            yes = answers[:, nodes.feature[node]]
        reached[:, left] = reached[:, node] & yes
        reached[:, right] = reached[:, node] & ~yes
    return reached


def down(tree: Any, root: Any, value: Callable[[int, Any], Any]) -> list[Any]:
    """Values of the leaves: ``value(node, value of the parent)`` from the root down."""
    nodes, of_node = tree.tree_, {0: root}
    for node in np.flatnonzero(~nodes.is_leaf).tolist():
        for child in (int(nodes.children_left[node]), int(nodes.children_right[node])):
            of_node[child] = value(child, of_node[node])
    return [of_node[node] for node in nodes.leaves.tolist()]


def asked_above(tree: Any) -> list[tuple[int, ...]]:
    """Features of the splits above every node, from the root down."""
    nodes = tree.tree_
    above: list[tuple[int, ...]] = [()] * nodes.node_count
    for node in np.flatnonzero(~nodes.is_leaf).tolist():
        for child in (nodes.children_left[node], nodes.children_right[node]):
            above[child] = (*above[node], int(nodes.feature[node]))
    return above


def rows_of(
    tree: Any,
    table: Table,
    weight: Floats | None,
    kept: Bools,
    outcomes: Any,
    facts: Any,
) -> Rows:
    """The kept ones of a set of rows."""
    answers, columns = answers_of(tree, table)
    if len(answers) != len(kept):
        raise ValueError(f"X has {len(answers)} rows, the outcomes have {len(kept)}")
    own = np.ones(int(kept.sum())) if weight is None else weight[kept]
    columns = [column.of(kept) for column in columns]
    return Rows(np.ascontiguousarray(answers[kept]), own, columns, outcomes, facts)


def kept_rows(table: Table, weight: Floats | None) -> Bools:
    """Whether each row has a positive weight."""
    return np.ones(table.n_rows, dtype=bool) if weight is None else weight > 0


def groups_of(
    table: Table, more: Mapping[str, Any], column: Any, kept: Bools
) -> tuple[NDArray[Any], Integers]:
    """The groups of kept rows in sorted order, and the position of every kept row's group."""
    values, name = more.get("sensitive_features"), "sensitive_features"
    if values is None and column is None:
        raise ValueError("verify needs the groups: pass sensitive_features")
    if values is None:
        values = column_of(table.X, column, "fairness.sensitive_feature")
        name = f"fairness.sensitive_feature {column!r}"
    return _labels(values, name, table, kept)


def labelled(
    values: Any, weight: Floats | None, table: Table, name: str = "y"
) -> tuple[NDArray[Any], Integers, Bools]:
    """Classes among the rows of positive weight, codes of all rows, and which are kept."""
    kept = kept_rows(table, weight)
    codes = np.zeros(table.n_rows, dtype=np.int64)
    classes, codes[kept] = _labels(values, name, table, kept)
    return classes, codes, kept


def _labels(values: Any, name: str, table: Table, kept: Bools) -> tuple[NDArray[Any], Integers]:
    """Distinct labels of the kept rows, and the position of every kept row's label."""
    every, codes = codes_of(values, table.n_rows, name)
    present, codes = np.unique(codes[kept], return_inverse=True)
    return every[present], codes.astype(np.int64)


def check_groups(
    rows: Rows, of_row: Floats, compared: Sequence[Bools], groups: Any, checks: Checks
) -> None:
    """Check the means of a value over the rows of each group, for each compared set."""
    weight = rows.facts.get("group weight", rows.weight)
    means = np.empty((len(rows.facts["groups"]), len(compared)))
    for (k, rate), _ in np.ndenumerate(means):
        own = weight * (compared[rate] & (rows.facts["group"] == k))
        means[k, rate] = of_row @ own / own.sum()
    pairs: Pairs = [("", rows.facts["groups"], groups.groups)]
    pairs.append(("value of group", means.reshape(groups.values.shape), groups.values))
    checks.same("groups", ", ".join(map(str, rows.facts["groups"].tolist())), pairs)
