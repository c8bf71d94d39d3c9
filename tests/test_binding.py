"""The binding, as its stub describes it."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest
from engine_settings import SETTINGS

import bristlecone
from bristlecone import _core

STUB = ast.parse(Path(bristlecone.__file__).with_name("_core.pyi").read_text(encoding="utf-8"))
# Names that only type checkers see.
TYPES = {"Limits", "Progress", "TreeArrays", "Alternatives"}


def public(names) -> set[str]:
    return {name for name in names if not name.startswith("_")}


def parameters(function: ast.FunctionDef) -> list[str]:
    """Names in order, with "*" where only keywords follow and "**" before what takes the rest."""
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
        listed.discard("__init__")
        assert listed == public(dir(getattr(_core, name))), name


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
    # Of no column of the task: what is refused first was looked at first.
    with pytest.raises(ValueError, match="max_leaf_nodes: must be at least 1"):
        getattr(_core, name)("regression", {}, features, **SETTINGS | {"max_leaf_nodes": 0})
    if name == "greedy_cuts":
        time, event = np.arange(4.0), np.ones(4, dtype=bool)
        limits = {"max_depth": 2, "max_leaf_nodes": 0, "min_samples_leaf": 1}
        with pytest.raises(ValueError, match="max_leaf_nodes: must be at least 1"):
            _core.grow_greedy(features.T.astype(float), time, event, criterion="logrank", **limits)
