"""The proof of a tree in the report: result, settings and binary features."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bristlecone._data.texts import number
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.rules import list_questions, questions
from bristlecone._soft.tree import SoftTree
from bristlecone._view.fitted import FittedTree, check_tree

# Neither changes the tree.
_UNTOLD = ("verbose", "n_jobs")


def certificate(estimator: Any) -> tuple[str, list[tuple[str, str]]]:
    """Proof of the search: a sentence, and the numbers behind it as (name, value) pairs.

    Parameters
    ----------
    estimator : fitted tree

    Raises
    ------
    TypeError
        If it is not a tree of this package.
    NotFittedError, InfeasibleError
        If it has no tree.

    See Also
    --------
    html_report : A page that contains it.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> from bristlecone.report import certificate
    >>> tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])
    >>> certificate(tree)[0]
    'optimal among trees over these 2 binary features'
    """
    found = check_tree(estimator, "certificate").certificate_
    return found.sentence, found.numbers


@dataclass(frozen=True)
class Proof:
    """Statement of the proof.

    Parameters
    ----------
    headline, aim : str
        Result of the search, and its objective, in words.
    is_proven : bool
        Whether the tree was proven to be optimal.
    numbers : list of (str, str)
        The numbers behind the result.
    questions : list of str
        Binary features, or columns, that trees were searched over, in few lines.
    missing : str
        Missing values of the columns that the tree uses.
    groups : list of (str, str)
        Predicted rates or means by group, if differences between groups are limited.
    group_table : list of list of str
        Confusion table of a classifier by group: a heading, then the rows; empty without one.
    """

    headline: str
    aim: str
    is_proven: bool
    numbers: list[tuple[str, str]]
    questions: list[str]
    missing: str
    groups: list[tuple[str, str]]
    group_table: list[list[str]]


def proof(tree: FittedTree) -> Proof:
    """Proof of a fitted tree."""
    found = tree.certificate_
    asked = [] if isinstance(tree.tree_, SoftTree) else questions(tree.encoder_)
    numbers = found.numbers
    if not found.is_searched:
        kept = ("objective", "seconds")
        numbers = [(name, value) for name, value in numbers if name in kept] + found.notes
    aim = found.aim[:1].upper() + found.aim[1:]
    aim = f"Aim: {aim}" if aim.endswith(".") else f"Aim: {aim}."
    return Proof(
        headline=f"{found.sentence[:1].upper()}{found.sentence[1:]}.",
        aim=aim if found.teacher is None else f"{aim} {found.teacher.sentences}",
        is_proven=found.status == "optimal",
        numbers=numbers,
        questions=list_questions(asked),
        missing=tree._missing_text(),
        groups=[] if found.groups is None else found.groups.lines,
        group_table=[] if found.groups is None else found.groups.table,
    )


@dataclass(frozen=True)
class Setting:
    """A parameter, its value and its meaning; whether it was left at its default."""

    name: str
    value: str
    meant: str
    is_default: bool

    @property
    def is_quiet(self) -> bool:
        """Whether there is nothing to report about it."""
        return self.is_default and not self.meant


def settings(tree: FittedTree) -> tuple[list[Setting], list[Setting]]:
    """Parameters of the fit, and those of the fitted encoder."""
    found = tree.certificate_
    own = _settings(found.parameters, type(tree), {**_of_leaves(tree), **found.settings})
    encoder = tree.encoder_
    of_encoder: list[Setting] = []
    if isinstance(encoder, BinaryEncoder):
        parameters = encoder.get_params(deep=False)
        of_encoder = _settings(parameters, BinaryEncoder, {})
    return own, of_encoder


def _of_leaves(tree: FittedTree) -> dict[str, Any]:
    """Values that "auto" stood for, if the leaves contain them."""
    known = {"prior": "prior", "shrinkage": "shrinkage", "leaf_curve": "curve"}
    parameters = tree.certificate_.parameters
    return {
        name: getattr(tree.leaves_, attribute)
        for name, attribute in known.items()
        if parameters.get(name) == "auto" and hasattr(tree.leaves_, attribute)
    }


def _settings(parameters: Mapping[str, Any], kind: type, meant: Mapping[str, Any]) -> list[Setting]:
    defaults = inspect.signature(kind).parameters
    rows = []
    for name, value in parameters.items():
        if name in _UNTOLD:
            continue
        default = defaults[name].default if name in defaults else inspect.Parameter.empty
        expected = meant.get(name, value)
        rows.append(
            Setting(
                name=name,
                value=_shown(value),
                meant="" if _same(expected, value) else _shown(expected),
                is_default=_same(default, value),
            )
        )
    extra = (name for name in meant if name not in parameters)
    rows += [Setting(name, _shown(meant[name]), "", False) for name in extra]
    return rows


def _same(one: Any, other: Any) -> bool:
    plain = type(one) is type(other) and isinstance(one, (str, int, float, bool))
    return one is other or (plain and bool(one == other))


def _shown(value: Any) -> str:
    """A value on one line; an object with its parameters."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return number(value, 6)
    text = " ".join(str(value).split())
    return text if len(text) <= 400 else f"{text[:400]}…"
