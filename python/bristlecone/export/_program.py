"""The content of every export: the decisions of a tree, and the predictions of its leaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from numpy.typing import ArrayLike, NDArray

from bristlecone._data.arrays import type_name
from bristlecone._data.checks import check_times
from bristlecone._encoder.columns import Category
from bristlecone._encoder.decisions import Decision, tree_decisions
from bristlecone._tree import Tree
from bristlecone._view.fitted import check_tree

Value = str | bool | int | float

# The first whole number that float64 does not distinguish from the next one.
_FIRST_SHARED = 2**53


@dataclass(frozen=True, eq=False)
class Output:
    """One named prediction.

    Parameters
    ----------
    name : str
        "leaf", "risk", "survival", "label", "probability", "treatment", "outcome" or "value".
    values : array, shape (n_leaves,) or (n_leaves, n_keys)
        Values by leaf, left to right.
    keys : tuple of str
        Names of the columns of a matrix, such as times or classes.
    """

    name: str
    values: NDArray[Any]
    keys: tuple[str, ...] = ()

    def columns(self) -> dict[str, NDArray[Any]]:
        """Names and values, one by leaf, of every single number or label."""
        if self.values.ndim == 1:
            return {self.name: self.values}
        names = [f"{self.name}_{key}" for key in self.keys]
        return dict(zip(names, self.values.T, strict=True))


@dataclass(frozen=True, eq=False)
class Program:
    """A tree as a program: decisions on the path to a leaf, and the values there.

    Parameters
    ----------
    tree : Tree
        Structure of the tree.
    decisions : dict of int to Decision
        By node id.
    outputs : tuple of Output
        Outputs of the leaves; the first is the leaf number.
    levels : dict of str to tuple
        Every category in training, by categorical column.
    names : tuple of str
        Names of all columns of ``X``. A tree of a single leaf uses none of them.
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
        """Names and plain values by leaf of all outputs."""
        return [
            (name, list(map(plain_text, column.tolist())))
            for output in self.outputs
            for name, column in output.columns().items()
        ]

    @property
    def used(self) -> list[str]:
        """Columns that the tree uses."""
        return list(dict.fromkeys(decision.column for decision in self.decisions.values()))


def program_of(tree: Any, what: str, times: ArrayLike | None = None) -> Program:
    """The program of a fitted tree; ``what`` names the export in messages.

    Raises
    ------
    TypeError
        If ``tree`` is not a fitted tree, is a soft tree or has a custom encoder, or if a task
        predicts anything but numbers, texts, booleans and dates.
    NotFittedError, InfeasibleError
        If there is no tree.
    ValueError
        If ``times`` are negative, not finite or repeated, or the tree does not predict survival.
    """
    fitted = check_tree(tree, what)
    if not isinstance(fitted.tree_, Tree):
        raise TypeError(
            f"{what} needs splits on single columns and one prediction per leaf; "
            f"{type_name(tree)} has neither"
        )
    try:
        decisions = tree_decisions(fitted.encoder_, fitted.tree_)
    except TypeError as error:
        raise TypeError(f"{what}: {error}") from None
    if times is not None and not fitted.leaves_.has_curves:
        raise ValueError(
            f"{what}: times needs a tree that predicts survival; got {type_name(tree)}"
        )
    outputs = [Output(*one) for one in fitted.leaves_.outputs(named_times(times))]
    for value in (value for output in outputs for value in output.values.ravel().tolist()):
        if not isinstance(value, Value | None):
            raise TypeError(
                f"{what}: the leaves predict {value!r}; programs return numbers, texts or booleans"
            )
    names = getattr(tree, "feature_names_in_", None)
    if names is None:
        names = [f"x{k}" for k in range(tree.n_features_in_)]
    asked = {decision.column for decision in decisions.values() if not decision.numeric}
    columns = getattr(fitted.encoder_, "columns_", [])
    return Program(
        tree=fitted.tree_,
        decisions=decisions,
        outputs=(Output("leaf", fitted.tree_.leaves), *outputs),
        levels={schema.name: schema.levels for schema in columns if schema.name in asked},
        names=tuple(map(str, names)),
        first_is_text=any(
            isinstance(level, str) for schema in columns[:1] for level in schema.levels
        ),
    )


def plain_text(value: Any) -> Any:
    """A text of a subclass, such as NumPy's or an enumeration, as plain text; others unchanged."""
    return str.__str__(value) if isinstance(value, str) else value


def unlike(
    names: Iterable[str], taken: Iterable[str], read: Callable[[str], str] = str
) -> tuple[str, ...]:
    """Names made different from ``taken`` and from each other by appending ``_``.

    ``read`` converts a name as the language reads it, for example ignoring case.
    """
    known = set(map(read, taken))
    found = []
    for name in names:
        while read(name) in known:
            name += "_"
        known.add(read(name))
        found.append(name)
    return tuple(found)


def named_times(times: ArrayLike | None) -> dict[str, float]:
    """Times with the fewest digits that keep them distinct."""
    named: dict[str, float] = {}
    for time in check_times([] if times is None else times).tolist():
        name = repr(time).removesuffix(".0")
        if name in named:
            raise ValueError(f"times has {name} twice")
        named[name] = time
    return named


def level_texts(program: Program, what: str) -> dict[str, dict[Category, str]]:
    """Texts of the levels of every text column, for languages whose columns have a type.

    Columns whose categories are all numbers are left out. If a column has both kinds, its numbers
    are written as in Python, and True and False as 1 and 0.

    Raises
    ------
    ValueError
        If a number and a text would read alike; ``what`` names the export in the message.
    """
    found = {}
    for column, levels in program.levels.items():
        if not any(isinstance(level, str) for level in levels):
            continue
        texts = {level: _text(level) for level in levels}
        if len(set(texts.values())) < len(texts):
            raise ValueError(
                f"{what}: column {column!r} has a number and a text as categories that read "
                "alike; rename one of them"
            )
        found[column] = texts
    return found


def exact(number: Value, what: str) -> Value:
    """The number, if no other whole number has its float64; ``what`` names the export in messages.

    Raises
    ------
    ValueError
        For a whole number of 2**53 or more.
    """
    if isinstance(number, int) and abs(number) >= _FIRST_SHARED:
        raise ValueError(
            f"{what}: the category or label {number} has the same float64 as other whole numbers; "
            "use text instead"
        )
    return number


def _text(level: Category) -> str:
    if isinstance(level, str):
        return level
    return repr(int(level) if isinstance(level, bool) else level)
