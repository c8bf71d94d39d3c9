"""The leaf table as cells that can be sorted."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw

from bristlecone._data.texts import number, percent
from bristlecone._leaves.shown import interval
from bristlecone._view.fitted import FittedTree

# Suffixes of the names of an interval's ends and of a standard error.
_LOWER, _UPPER, _ERROR = "_lower", "_upper", "_error"


@dataclass(frozen=True)
class Cell:
    """Text with its limits or error, and the value it is sorted by; None comes last."""

    text: str
    limits: str
    key: float | str | None

    @property
    def whole(self) -> str:
        """Text and limits in one."""
        return f"{self.text} {self.limits}" if self.limits else self.text


@dataclass(frozen=True)
class Column:
    """A column of the leaf table.

    Parameters
    ----------
    head : str
        Its name as it is shown.
    cells : tuple of Cell
        One per leaf, left to right.
    is_number : bool
    """

    head: str
    cells: tuple[Cell, ...]
    is_number: bool


@dataclass(frozen=True)
class Table:
    """Columns of all leaves, and their rules."""

    columns: tuple[Column, ...]
    rules: tuple[str, ...]
    note: str


def leaf_table(
    tree: FittedTree, times: Sequence[float], confidence: float, time_label: str
) -> Table:
    """The table that the page shows: intervals next to their values, without repetitions."""
    frame = nw.from_native(tree.leaf_table(times=times, confidence=confidence), eager_only=True)
    values = {name: frame.get_column(name).to_list() for name in frame.columns}
    leaves = values.pop("leaf")
    rules = tuple(map(str, values.pop("rule", [""] * len(leaves))))
    if not tree.tree_.is_weighted:
        values.pop("weight", None)
    for name, same in (("risk", "theta"), ("model_median", "median"), ("prediction", "mean")):
        if name in values and values[name] == values.get(same):
            del values[name]
    for name in [name for name in values if name.startswith("survival_")]:
        if values[name] == values.get(name.replace("survival", "kaplan_meier", 1)):
            del values[name]
    values.pop("tau", None)
    columns = []
    for name, column in values.items():
        if name.endswith((_LOWER, _UPPER, _ERROR)) and name.rpartition("_")[0] in values:
            continue
        limits = _limits(name, values) or [""] * len(column)
        cells = tuple(
            Cell(_text(name, value), limit, _key(value))
            for value, limit in zip(column, limits, strict=True)
        )
        is_number = all(isinstance(cell.key, float) or cell.key is None for cell in cells)
        head = tree.leaves_.heading(name, time_label)
        head += " ± standard error" if f"{name}{_ERROR}" in values else ""
        columns.append(Column(head, cells, is_number))
    return Table(tuple(columns), rules, _note(values, confidence))


def _limits(name: str, values: dict[str, list[Any]]) -> list[str]:
    """Text about the intervals or standard errors of a column; empty if it has none."""
    lower, upper = values.get(f"{name}{_LOWER}"), values.get(f"{name}{_UPPER}")
    if lower is not None and upper is not None:
        return [interval(*limits, 3) for limits in zip(lower, upper, strict=True)]
    error = values.get(f"{name}{_ERROR}")
    return [] if error is None else [f"± {number(of, 3)}" if of and of > 0 else "" for of in error]


def _text(name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    if name.startswith(("median", "model_median")):
        return "not reached" if math.isinf(value) else number(value)
    if name.endswith("_p"):
        if math.isnan(value):
            return "–"
        return "< 0.001" if value < 0.001 else f"{value:.3f}"
    return number(value, 3 if name.startswith(("survival_", "kaplan_meier_")) else 4)


def _key(value: Any) -> float | str | None:
    if isinstance(value, (bool, int, float)):
        # Without the last digits, in which processors differ.
        return None if math.isnan(value) else float(f"{min(max(value, -1e308), 1e308):.13g}")
    return None if value is None else str(value)


def _note(values: dict[str, list[Any]], confidence: float) -> str:
    """Note that intervals and tests ignore the selection of the splits."""
    intervals = any(name.endswith(_LOWER) for name in values)
    tests = any(name.endswith("_p") for name in values)
    if not intervals and not tests:
        return ""
    note = (
        f"In brackets: {percent(confidence)} confidence limits; – marks a limit that is not "
        "reached. "
    )
    what = "Limits and p-values" if intervals and tests else "Limits" if intervals else "P-values"
    return (
        f"{note * intervals}{what} treat the leaves as fixed. The splits were chosen to separate "
        "these same rows, so differences look larger and more certain than they are."
    )
