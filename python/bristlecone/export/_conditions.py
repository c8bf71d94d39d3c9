"""The conditions that the rows of a leaf satisfy, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bristlecone._encoder.columns import Category
from bristlecone._encoder.decisions import Decision
from bristlecone.export._program import Program


@dataclass(frozen=True, kw_only=True)
class Condition:
    """Conditions of the path to a leaf on one column; all of them must hold.

    Parameters
    ----------
    column : str
        Name of the column.
    missing : bool
        Whether rows without a value take the path.
    present : bool
        Whether rows with a value may take the path.
    above, at_most : float or None
        Bounds of the value: above < value <= at_most.
    flag : bool or None
        Required value of a boolean.
    within : tuple or None
        Categories that are allowed.
    without : tuple
        Categories that are excluded.
    """

    column: str
    missing: bool
    present: bool = True
    above: float | None = None
    at_most: float | None = None
    flag: bool | None = None
    within: tuple[Category, ...] | None = None
    without: tuple[Category, ...] = ()


def leaf_conditions(program: Program) -> list[list[Condition]]:
    """Conditions of every leaf, left to right, in the order in which columns are first used."""
    tree, decisions = program.tree, program.decisions
    paths = ([(decisions[node], yes) for node, yes in path] for path in tree.paths())
    return [_merged(path) for path in paths]


def _merged(path: Sequence[tuple[Decision, bool]]) -> list[Condition]:
    by_column: dict[str, list[tuple[Decision, bool]]] = {}
    for decision, yes in path:
        by_column.setdefault(decision.column, []).append((decision, yes))
    return [_condition(answers) for answers in by_column.values()]


def _condition(answers: Sequence[tuple[Decision, bool]]) -> Condition:
    bounds = [(decision.bound, yes) for decision, yes in answers if decision.bound is not None]
    flags = {yes for decision, yes in answers if decision.kind == "flag"}
    named = [(decision.levels, yes) for decision, yes in answers if decision.kind == "level"]
    excluded = dict.fromkeys(level for levels, yes in named if not yes for level in levels)
    within: tuple[Category, ...] | None = None
    for levels, yes in named:
        if yes:
            within = tuple(
                x for x in levels if x not in excluded and (within is None or x in within)
            )
    return Condition(
        column=answers[0][0].column,
        missing=all(decision.missing is yes for decision, yes in answers),
        # No value can satisfy these: a flag both true and false, or no category left.
        present=len(flags) < 2
        and within != ()
        and not any(decision.kind == "missing" and yes for decision, yes in answers),
        above=max((bound for bound, yes in bounds if not yes), default=None),
        at_most=min((bound for bound, yes in bounds if yes), default=None),
        flag=next(iter(flags)) if len(flags) == 1 else None,
        within=within,
        without=() if within is not None else tuple(excluded),
    )


def plain_condition(condition: Condition) -> dict[str, Any]:
    """A condition as plain JSON types, without the parts that do not apply."""
    found: dict[str, Any] = {"column": condition.column}
    for name in ("above", "at_most", "flag", "within"):
        value = getattr(condition, name)
        if value is not None:
            found[name] = list(value) if isinstance(value, tuple) else value
    if condition.without:
        found["without"] = list(condition.without)
    return found | {"present": condition.present, "missing": condition.missing}
