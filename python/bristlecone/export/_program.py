"""What every export writes down: the decisions of a tree, and what its leaves predict."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike, NDArray

from bristlecone._data.checks import check_times
from bristlecone._encoder.columns import Category
from bristlecone._encoder.decisions import Decision, tree_decisions
from bristlecone._tree import Tree
from bristlecone._view.fitted import FittedTree, check_tree

__all__ = ["Output", "Program", "level_texts", "program_of", "unlike"]

Value = str | bool | int | float


@dataclass(frozen=True, eq=False)
class Output:
    """What is predicted under one name.

    Parameters
    ----------
    name : str
        "leaf", "risk", "survival", "label", "probability", "treatment", "outcome" or "value".
    values : array, shape (n_leaves,) or (n_leaves, n_keys)
        By leaf, left to right.
    keys : tuple of str
        What the columns of a matrix are for, such as times or classes.
    """

    name: str
    values: NDArray[Any]
    keys: tuple[str, ...] = ()

    def columns(self) -> list[tuple[str, list[Value]]]:
        """Names and plain values, one by leaf, of every single number or label."""
        if self.values.ndim == 1:
            return [(self.name, self.values.tolist())]
        return [
            (f"{self.name}_{key}", column.tolist())
            for key, column in zip(self.keys, self.values.T, strict=True)
        ]


@dataclass(frozen=True, eq=False)
class Program:
    """A tree as a program: decisions on the way to a leaf, and what is known there.

    Parameters
    ----------
    tree : Tree
        Its structure.
    decisions : dict of int to Decision
        By node id.
    outputs : tuple of Output
        Of the leaves, their number first.
    levels : dict of str to tuple
        Every category that the columns of categories had in training.
    names : tuple of str
        Names of all columns of ``X``. A tree of a single leaf asks about none of them.
    first_is_text : bool
        Whether the first column holds text.
    """

    tree: Tree
    decisions: dict[int, Decision]
    outputs: tuple[Output, ...]
    levels: dict[str, tuple[Category, ...]]
    names: tuple[str, ...]
    first_is_text: bool

    @property
    def columns(self) -> list[tuple[str, list[Value]]]:
        """Names and values by leaf of all outputs."""
        return [column for output in self.outputs for column in output.columns()]

    @property
    def asked(self) -> list[str]:
        """Columns that are asked about."""
        return list(dict.fromkeys(decision.column for decision in self.decisions.values()))


def program_of(tree: Any, what: str, times: ArrayLike | None = None) -> Program:
    """The program of a fitted tree; ``what`` is the export that asks for it.

    Raises
    ------
    TypeError
        For anything but a fitted tree, for soft trees, and for features of an encoder of the
        user's own.
    NotFittedError, InfeasibleError
        When there is no tree.
    ValueError
        For times that are negative, not finite or given twice, and for times of a tree that does
        not predict survival.
    """
    fitted = check_tree(tree, what)
    if not isinstance(fitted.tree_, Tree):
        raise TypeError(
            f"{what} writes splits about single columns, and leaves that predict the same for all "
            f"their rows; a {type(tree).__name__} has neither"
        )
    try:
        decisions = tree_decisions(fitted.encoder_, fitted.tree_)
    except TypeError as error:
        raise TypeError(f"{what}: {error}") from None
    leaf = Output("leaf", fitted.tree_.leaves)
    asked = {decision.column for decision in decisions.values() if not decision.numeric}
    columns = getattr(fitted.encoder_, "columns_", [])
    return Program(
        tree=fitted.tree_,
        decisions=decisions,
        outputs=(leaf, *_outputs(fitted, what, times)),
        levels={schema.name: schema.levels for schema in columns if schema.name in asked},
        names=_column_names(tree),
        first_is_text=any(
            isinstance(level, str) for schema in columns[:1] for level in schema.levels
        ),
    )


def _column_names(tree: Any) -> tuple[str, ...]:
    names = getattr(tree, "feature_names_in_", None)
    return tuple(
        map(str, [f"x{k}" for k in range(tree.n_features_in_)] if names is None else names)
    )


def unlike(
    names: Iterable[str], taken: Iterable[str], read: Callable[[str], str] = str
) -> tuple[str, ...]:
    """Names that differ from those that are taken and from each other, by ``_`` at their ends.

    ``read`` is how the language reads a name, such as without regard to case.
    """
    known = set(map(read, taken))
    found = []
    for name in names:
        while read(name) in known:
            name += "_"
        known.add(read(name))
        found.append(name)
    return tuple(found)


def _outputs(tree: FittedTree, what: str, times: ArrayLike | None) -> list[Output]:
    if times is not None and tree.leaves_.compared != "survival":
        raise ValueError(f"{what}: a {type(tree).__name__} predicts no survival at times")
    return [Output(*one) for one in tree.leaves_.outputs(_named_times(times))]


def _named_times(times: ArrayLike | None) -> dict[str, float]:
    """Times by the fewest digits that keep them apart."""
    named: dict[str, float] = {}
    for time in check_times([] if times is None else times).tolist():
        name = repr(time).removesuffix(".0")
        if name in named:
            raise ValueError(f"times has {name} twice")
        named[name] = time
    return named


def level_texts(program: Program, what: str) -> dict[str, dict[Category, str]]:
    """Texts of the levels of every column that holds text, for languages whose columns have a type.

    A column whose categories are all numbers is not in it. Where there are both kinds, its numbers
    are written as Python does, and True and False as the numbers that they equal, 1 and 0.

    Raises
    ------
    ValueError
        When a number and a text would read alike; ``what`` is the export that asks.
    """
    found = {}
    for column, levels in program.levels.items():
        if not any(isinstance(level, str) for level in levels):
            continue
        texts = {level: _text(level) for level in levels}
        if len(set(texts.values())) < len(texts):
            raise ValueError(
                f"{what}: column {column!r} has a number and a text among its categories that read "
                "alike; rename one of them"
            )
        found[column] = texts
    return found


def _text(level: Category) -> str:
    if isinstance(level, str):
        return level
    return repr(int(level) if isinstance(level, bool) else level)
