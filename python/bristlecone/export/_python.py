"""Trees as a Python function without dependencies."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from numpy.typing import ArrayLike

from bristlecone._core import __version__
from bristlecone._encoder.decisions import Decision
from bristlecone.export._program import plain_text, program_of

_HEAD = '''"""A fitted tree, written by bristlecone {version}; it needs no package.

``predict`` takes one row, a mapping from the names of the columns to their values.
"""

from math import inf, nan
'''

_HELPERS = {
    "is_missing": '''def is_missing(value):
    """None and NaN, and NA and NaT of pandas."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value
''',
    "at_most": """def at_most(value, bound, missing):
    return missing if is_missing(value) else float(value) <= bound
""",
    "is_true": """def is_true(value, missing):
    return missing if is_missing(value) else float(value) > 0.5
""",
    "one_of": """def one_of(value, levels, missing):
    return missing if is_missing(value) else value in levels
""",
}

_PREDICT = '''def predict(row):
    """Leaf and predictions of a row; values may be None or NaN; every column must be present."""
    node = 0
{splits}    return {{"leaf": node, **LEAVES[node]}}
'''


def export_python(tree: Any, *, times: ArrayLike | None = None) -> str:
    """Return a fitted tree as Python source that needs neither this package nor any other.

    Parameters
    ----------
    tree : fitted tree
        Any tree except a soft tree.
    times : sequence of float, shape (n_times,), optional
        Times at which a survival tree predicts survival.

    Returns
    -------
    str
        A module with a function ``predict(row)``. It takes a mapping from column names to values
        and returns a dictionary with ``leaf`` (as from ``apply``); for survival trees ``risk`` and
        ``survival_T`` for every time T; for classifiers ``label`` and ``probability_CLASS``; for
        policies ``treatment`` and ``outcome_TREATMENT``; for other trees ``value``. All are equal
        to the predictions of the tree, to the last bit. Columns that the tree does not use may be
        absent.

    Raises
    ------
    TypeError
        If ``tree`` is a soft tree, whose splits use many columns, or has a custom encoder.
    NotFittedError, InfeasibleError
        If there is no tree.
    ValueError
        If ``times`` are negative, not finite or repeated, or the tree does not predict survival.

    See Also
    --------
    export_sql : SQL that predicts inside a database.
    export_dict : The tree as data.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> from bristlecone.export import export_python
    >>> tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])
    >>> module = {}
    >>> exec(export_python(tree), module)
    >>> module["predict"]({"x0": 1.5}), module["predict"]({"x0": None})
    ({'leaf': 1, 'value': 2.0}, {'leaf': 1, 'value': 2.0})
    """
    program = program_of(tree, "export_python", times)
    structure, splits_of = program.tree, tree.splits_
    calls = {node: _call(decision) for node, decision in program.decisions.items()}
    splits = ""
    for node, call in calls.items():
        yes, no = structure.children_left[node], structure.children_right[node]
        splits += f"    if node == {node}:  # {_comment(splits_of[node])}\n"
        splits += f"        node = {yes} if {call} else {no}\n"
    names, columns = zip(*program.columns, strict=True)
    leaves = "".join(
        f"    {leaf}: {dict(zip(names[1:], values, strict=True))!r},\n"
        for leaf, *values in zip(*columns, strict=True)
    )
    parts = [
        _HEAD.format(version=__version__),
        f"LEAVES = {{\n{leaves}}}\n",
        *_needed(calls.values()),
        _PREDICT.format(splits=splits),
    ]
    return "\n\n".join(part.rstrip("\n") + "\n" for part in parts)


def _call(decision: Decision) -> str:
    """A call of one of the helpers."""
    value, missing = f"row[{decision.column!r}]", decision.missing
    if decision.kind == "missing":
        return f"is_missing({value})"
    if decision.kind == "flag":
        return f"is_true({value}, missing={missing})"
    if decision.kind == "level":
        levels = tuple(map(plain_text, decision.levels))
        return f"one_of({value}, {levels!r}, missing={missing})"
    return f"at_most({value}, {decision.bound!r}, missing={missing})"


def _needed(calls: Collection[str]) -> list[str]:
    """Source of the helpers that are called; all of them call ``is_missing``."""
    called = {call.partition("(")[0] for call in calls}
    called |= {"is_missing"} if called else set()
    return [source for name, source in _HELPERS.items() if name in called]


def _comment(text: str) -> str:
    """Text without line breaks."""
    return "".join(sign if sign.isprintable() else " " for sign in text)
