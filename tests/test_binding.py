"""The binding agrees with its stub."""

from __future__ import annotations

import ast
import inspect
import pickle
from pathlib import Path

import numpy as np
import pytest
from engine_settings import SETTINGS

import bristlecone
from bristlecone import _core
from bristlecone._core import BinaryMatrix
from bristlecone._tree import Tree

STUB = ast.parse(Path(bristlecone.__file__).with_name("_core.pyi").read_text(encoding="utf-8"))
# Names that only type checkers need.
TYPES = {"Limits", "Progress", "TreeArrays", "Alternatives"}


def public(names) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def parameters(function: ast.FunctionDef) -> list[str]:
    """Names in order, with "*" before keyword-only parameters and "**" before the last."""
    given = [argument.arg for argument in function.args.args]
    keywords = [argument.arg for argument in function.args.kwonlyargs]
    rest = [f"**{function.args.kwarg.arg}"] if function.args.kwarg else []
    return given + (["*", *keywords] if keywords else []) + rest


def signature(function) -> list[str]:
    names: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and "*" not in names:
            names.append("*")
        rest = parameter.kind is inspect.Parameter.VAR_KEYWORD
        names.append(f"**{parameter.name}" if rest else parameter.name)
    return names


def test_the_stub_lists_the_functions_of_the_binding_and_their_parameters() -> None:
    functions = {node.name: node for node in STUB.body if isinstance(node, ast.FunctionDef)}
    built = {name: getattr(_core, name) for name in public(dir(_core))}
    built = {name: value for name, value in built.items() if inspect.isbuiltin(value)}
    assert set(functions) == set(built)
    for name, function in functions.items():
        assert parameters(function) == signature(built[name]), name


def test_the_stub_lists_the_classes_of_the_binding_and_their_attributes() -> None:
    classes = {node.name: node for node in STUB.body if isinstance(node, ast.ClassDef)}
    for name in TYPES:
        classes.pop(name, None)
    assert set(classes) == {n for n in public(dir(_core)) if inspect.isclass(getattr(_core, n))}
    for name, node in classes.items():
        listed = {item.target.id for item in node.body if isinstance(item, ast.AnnAssign)}
        listed |= {item.name for item in node.body if isinstance(item, ast.FunctionDef)}
        assert public(listed) == public(dir(getattr(_core, name))), name


def test_every_task_has_a_search_and_its_functions_exist() -> None:
    tasks = {name: functions for name, functions, _ in _core.tasks()}
    assert {"likelihood", "brier", "gini", "fair-brier", "own"} <= set(tasks)
    for task, functions in tasks.items():
        assert "solve" in functions or functions == ["front"], task
        assert set(functions) <= set(dir(_core)), task


def test_what_a_task_has_not_is_refused_by_name() -> None:
    limits = {**SETTINGS, "max_depth": 1}
    features = np.eye(2, dtype=np.uint8)
    survival = {
        "time": np.array([1.0, 2.0]),
        "event": np.array([True, True]),
        "leaf_curve": "kaplan-meier",
    }
    with pytest.raises(ValueError, match="has no forecast"):
        _core.forecast("brier", survival, features, **limits)
    unread = {**limits, "options": {"precision": "single"}}
    with pytest.raises(ValueError, match='options: "precision" is no switch of this search'):
        _core.solve("brier", survival, features, **unread)
    with pytest.raises(ValueError, match='"mood" is not one of'):
        _core.solve("mood", survival, features, **limits)


@pytest.mark.parametrize("name", ["solve", "path", "forecast", "greedy_cuts"])
def test_a_tree_without_leaves_is_refused_before_anything_is_done(name) -> None:
    features = np.array([[0, 1]] * 4, dtype=np.uint8)
    if name == "greedy_cuts":
        features = features.T.astype(np.uint32).copy()
    # No task has this column, so the first error shows which check came first.
    with pytest.raises(ValueError, match="max_leaf_nodes must be at least 1"):
        getattr(_core, name)("regression", {}, features, **SETTINGS | {"max_leaf_nodes": 0})
    if name == "greedy_cuts":
        time, event = np.arange(4.0), np.ones(4, dtype=bool)
        limits = {"max_depth": 2, "max_leaf_nodes": 0, "min_samples_leaf": 1}
        with pytest.raises(ValueError, match="max_leaf_nodes must be at least 1"):
            _core.grow_greedy(features, time, event, criterion="logrank", **limits)


@pytest.mark.parametrize("n", [2**40, 2**63, 2**64 - 1])
def test_more_thresholds_or_groups_than_memory_are_an_error(n) -> None:
    with pytest.raises(MemoryError):
        _core.quantile_gaps(np.arange(3.0), np.ones(3), n, 1.0)
    rows = np.arange(2.0), np.ones(2, dtype=bool)
    with pytest.raises(MemoryError):
        _core.RiskTable.by_group(np.zeros(2, dtype=np.uint32), n, *rows)


def test_packed_features_answer_as_the_array_they_were_made_of() -> None:
    rng = np.random.default_rng(0)
    for n_rows, n_features in ((0, 3), (5, 0), (7, 64), (300, 130)):
        rows = (rng.random((n_rows, n_features)) < 0.4).view(np.uint8)
        packed = BinaryMatrix(rows)
        assert packed.shape == rows.shape and len(packed) == n_rows
        np.testing.assert_array_equal(np.asarray(packed), rows)
        np.testing.assert_array_equal(np.asarray(pickle.loads(pickle.dumps(packed))), rows)
        bits = np.unpackbits(packed.words().view(np.uint8), axis=1, bitorder="little")
        np.testing.assert_array_equal(bits[:, :n_features], rows)
        assert not bits[:, n_features:].any()
        among = rng.random(n_rows) < 0.5
        np.testing.assert_array_equal(packed.count_true(), rows.sum(axis=0))
        np.testing.assert_array_equal(packed.count_true(among), rows[among].sum(axis=0))
        drawn = rng.integers(n_rows, size=2 * n_rows) if n_rows else np.zeros(0, np.int64)
        np.testing.assert_array_equal(np.asarray(packed.take(drawn)), rows[drawn])
        for feature in range(n_features):
            np.testing.assert_array_equal(packed.column(feature), rows[:, feature] == 1)
        with pytest.raises(IndexError, match="feature"):
            packed.column(n_features)
        with pytest.raises(IndexError, match="rows"):
            packed.take(np.array([n_rows]))
        with pytest.raises(ValueError, match="among"):
            packed.count_true(np.ones(n_rows + 1, dtype=bool))


def test_packed_rows_fall_into_the_leaves_of_the_array() -> None:
    rng = np.random.default_rng(1)
    rows = (rng.random((200, 70)) < 0.5).view(np.uint8)
    packed = BinaryMatrix(rows)
    left, right = np.array([1, 2, -1, -1, -1]), np.array([4, 3, -1, -1, -1])
    tree = Tree.bare(left, right, np.array([69, 3, -2, -2, -2]))
    expected = np.where(rows[:, 69] == 0, 2, np.where(rows[:, 3] == 1, 0, 1))
    np.testing.assert_array_equal(tree.leaf_index(packed), expected)
    np.testing.assert_array_equal(tree.leaf_index(rows), expected)
    np.testing.assert_array_equal(tree.apply(packed), tree.apply(rows))
    with pytest.raises(IndexError):
        packed.leaf_index((np.array([70, -2, -2]), np.array([1, -1, -1]), np.array([2, -1, -1])))


def test_sums_that_changed_since_the_search_are_not_certified():
    limits = SETTINGS | {"max_depth": 1}
    count = np.array([2, 2], dtype=np.int64)
    data = {"labels": np.array([0, 1], dtype=np.int64), "n_classes": 2.0, "count": count}
    one, two = (_core.PartialSums("accuracy", data, np.zeros(2, bool), **limits) for _ in range(2))
    one.add(np.array([[0, 0], [0, 1], [1, 0], [1, 1]], np.uint8), np.array([0, 0, 1, 1], np.uint32))
    two.add(np.array([[1, 0], [1, 0], [0, 1], [0, 1]], np.uint8), np.array([0, 0, 1, 1], np.uint32))
    one.search(**limits)
    assert one.certify(None, **limits).status == "optimal"
    one.merge(two)
    with pytest.raises(ValueError, match="no tree was searched for yet"):
        one.certify(None, **limits)
