"""A fitted tree as pictures, reports and exports see it: by its attributes, not its class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from numpy.typing import NDArray

from bristlecone._data.arrays import with_article
from bristlecone._leaves.base import Leaves
from bristlecone._search.certificate import Certificate


class FittedTree(Protocol):
    """Attributes that the estimators of this package have after ``fit``.

    Other rooms may use the names with an underscore, too; users should not.
    """

    # The structure: a Tree, or a SoftTree, which has no questions about single columns.
    tree_: Any
    leaves_: Leaves
    encoder_: Any
    certificate_: Certificate

    @property
    def _frame_kind(self) -> str:
        """Library of the data frames of its tables."""

    @property
    def _score_name(self) -> str:
        """Name of ``score`` in texts."""

    @property
    def splits_(self) -> dict[int, str]:
        """Splits in words, by node id."""

    @property
    def features_used_(self) -> list[Any]:
        """Columns that the tree asks about: names, or positions if they had no names."""

    def _check_fitted(self) -> None:
        """Raise NotFittedError, or InfeasibleError, when there is no tree."""

    def _check_parameters(self) -> None:
        """Raise InvalidParameterError for a parameter of wrong type or value."""

    def apply(self, X: Any) -> NDArray[Any]:
        """Leaf of every row."""

    def leaf_table(self, times: Sequence[float] | None = None, confidence: float = 0.95) -> Any:
        """Leaves as a table."""

    def describe(self) -> str:
        """Methods section in plain text."""

    def _missing_text(self) -> str:
        """Missing values that the columns asked about had in training."""


def check_tree(tree: Any, what: str) -> FittedTree:
    """The tree itself.

    Raises
    ------
    TypeError
        Unless it is an estimator of this package; ``what`` is the function that was called.
    NotFittedError, InfeasibleError
        If it has no tree.
    """
    if isinstance(tree, type) or not callable(getattr(tree, "_check_fitted", None)):
        name = tree.__name__ if isinstance(tree, type) else type(tree).__name__
        raise TypeError(f"{what} takes the fitted trees of bristlecone; got {with_article(name)}")
    tree._check_fitted()
    return tree
