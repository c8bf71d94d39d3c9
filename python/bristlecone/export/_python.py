"""Trees as a Python function that needs nothing but Python."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from numpy.typing import ArrayLike

from bristlecone._core import __version__
from bristlecone._encoder.decisions import Decision
from bristlecone.export._program import program_of

__all__ = ["export_python"]

_HEAD = '''"""A fitted tree, written by bristlecone {version}; it needs nothing but Python.

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
    """Leaf and predictions of a row; a value may be None or NaN, but no column may be absent."""
    node = 0
{splits}    return {{"leaf": node, **LEAVES[node]}}
'''


def export_python(tree: Any, *, times: ArrayLike | None = None) -> str:
    """Fitted tree as Python source that needs neither this package nor any other.

    Parameters
    ----------
    tree : fitted tree
        Any but a soft one.
    times : sequence of float, shape (n_times,), optional
        Times at which a survival tree tells survival.

    Returns
    -------
    str
        A module with a function ``predict(row)``: from a mapping of column names to values to a
        dictionary with ``leaf`` (as from ``apply``); of survival trees ``risk`` and ``survival_T``
        for every time T; of classifiers ``label`` and ``probability_CLASS``; of policies
        ``treatment`` and ``outcome_TREATMENT``; else ``value``. All are equal, to the last bit, to
        what the tree predicts. Columns that the tree does not ask about may be absent.

    Raises
    ------
    TypeError
        For soft trees, whose splits weigh many columns, and for features of an encoder of the
        user's own.
    NotFittedError, InfeasibleError
        When there is no tree.
    ValueError
        For times that are negative, not finite, given twice or of a tree without survival.

    See Also
    --------
    export_sql : The same where the rows are.
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
    structure, questions = program.tree, tree.splits_
    splits = []
    for node, decision in program.decisions.items():
        yes, no = structure.children_left[node], structure.children_right[node]
        splits.append(
            f"    if node == {node}:  # {_comment(questions[node])}\n"
            f"        node = {yes} if {_asked(decision)} else {no}\n"
        )
    names, columns = zip(*program.columns, strict=True)
    leaves = "".join(
        f"    {leaf}: {dict(zip(names[1:], values, strict=True))!r},\n"
        for leaf, *values in zip(*columns, strict=True)
    )
    parts = [
        _HEAD.format(version=__version__),
        f"LEAVES = {{\n{leaves}}}\n",
        *_needed(program.decisions.values()),
        _PREDICT.format(splits="".join(splits)),
    ]
    return "\n\n".join(part.rstrip("\n") + "\n" for part in parts)


def _asked(decision: Decision) -> str:
    """A call of one of the helpers."""
    value, missing = f"row[{decision.column!r}]", decision.missing
    if decision.kind == "missing":
        return f"is_missing({value})"
    if decision.kind == "flag":
        return f"is_true({value}, missing={missing})"
    if decision.kind == "level":
        return f"one_of({value}, {decision.levels!r}, missing={missing})"
    return f"at_most({value}, {decision.bound!r}, missing={missing})"


def _needed(decisions: Collection[Decision]) -> list[str]:
    """Source of the helpers that the decisions call."""
    helpers = {"at most": "at_most", "flag": "is_true", "level": "one_of"}
    called = {helpers[decision.kind] for decision in decisions if decision.kind in helpers}
    needed = ["is_missing"] if decisions else []
    return [_HELPERS[name] for name in [*needed, *sorted(called)]]


def _comment(text: str) -> str:
    """Text that stays on its line."""
    return "".join(sign if sign.isprintable() else " " for sign in text)
