"""What every fitted tree does, whatever its leaves predict."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from bristlecone.encoder.rules import Question
from bristlecone.model import registry as serialise
from bristlecone.tree import Tree

__all__ = ["TreeMixin"]

Estimator = TypeVar("Estimator", bound="TreeMixin")


class TreeMixin(ABC):
    """Traversal and saving of a fitted ``tree_``; an estimator defines the abstract methods."""

    tree_: Tree

    @abstractmethod
    def _tree_rows(self, X: Any) -> NDArray[Any]:
        """Rows of ``X`` in the columns the tree asks about."""

    @abstractmethod
    def _split_names(self) -> list[str]:
        """Names of these columns."""

    @abstractmethod
    def _used_columns(self) -> list[int]:
        """Positions of the columns of ``X`` that the splits are about, ascending."""

    @abstractmethod
    def _missing_text(self) -> str:
        """Missing values these columns had in training; empty when there were none."""

    @abstractmethod
    def _check_parameters(self) -> None:
        """Raise InvalidParameterError for a parameter of wrong type or value."""

    @abstractmethod
    def _saved_fields(self) -> dict[str, Any]:
        """What a saved model keeps besides tree and leaves, as plain JSON types."""

    @abstractmethod
    def _read_fields(self, fields: serialise.Fields) -> None:
        """Check and set what ``_saved_fields`` returned."""

    @abstractmethod
    def _saved_leaves(self) -> dict[str, Any]:
        """What a saved model keeps of the leaves, as plain JSON types."""

    @abstractmethod
    def _read_leaves(self, fields: serialise.Fields) -> None:
        """Check and set what ``_saved_leaves`` returned; ``tree_`` is set before."""

    @abstractmethod
    def _leaf_facts(self) -> list[dict[str, Any]]:
        """What to tell of every leaf, left to right, as plain JSON types."""

    @abstractmethod
    def _leaf_text(self, facts: dict[str, Any]) -> str:
        """One entry of ``_leaf_facts`` in a few words."""

    def _saved_tree(self) -> dict[str, Any]:
        """The tree as plain JSON types."""
        return serialise.tree_fields(self.tree_)

    def _read_tree(self, fields: serialise.Fields) -> Tree:
        """Tree from what ``_saved_tree`` returned; ``_read_fields`` was called before."""
        return serialise.read_tree(fields, len(self._split_names()))

    def _questions(self) -> list[Question]:
        """What the columns of ``_split_names`` ask; of a column to be cut, all but the cut."""
        return [Question(kind="own", column=name) for name in self._split_names()]

    def _asked(self, node: int, questions: Sequence[Question]) -> Question:
        """What a split asks, of ``_questions``."""
        question = questions[self.tree_.feature[node]]
        if self.tree_.threshold is None:
            return question
        cut = float(self.tree_.threshold[node])
        return replace(question, text=f"{cut:.10g}", value=cut)

    def _split_texts(self) -> dict[int, str]:
        """What every split asks, in words."""
        questions = self._questions()
        splits = np.flatnonzero(~self.tree_.is_leaf).tolist()
        return {node: self._asked(node, questions).name for node in splits}

    @property
    def _is_weighted(self) -> bool:
        """Whether weights and counts of the training rows differ."""
        tree = self.tree_
        return bool((tree.weighted_n_node_samples != tree.n_node_samples).any())

    @abstractmethod
    def _described(self) -> str:
        """What ``describe`` returns of a fitted tree."""

    def describe(self) -> str:
        """Methods section of the fitted tree, in plain text.

        Returns
        -------
        str
            What was searched or trained, for what and over which rows and questions (all of them
            are listed), what was proven, the size of the tree, the treatment of missing values and
            the version of this package. It tells of the fit, whatever parameters were set since.

        Raises
        ------
        NotFittedError, InfeasibleError
            When there is no tree.
        """
        self._check_fitted()
        return self._described()

    def _remember_parameters(self) -> None:
        """Keep the parameters of the fit: setting others later must not change what it says."""
        self._parameters = self.get_params(deep=False)  # type: ignore[attr-defined]

    def _fitted_parameters(self) -> dict[str, Any]:
        """Parameters of the fit, or those set now if it did not keep its own."""
        parameters: dict[str, Any] = vars(self).get("_parameters") or self.get_params(deep=False)  # type: ignore[attr-defined]
        return parameters

    def _check_fitted(self) -> None:
        """Raise NotFittedError when there is no tree."""
        check_is_fitted(self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "tree_")

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.required = True
        # What reads X takes data frames as they are.
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    @property
    def n_leaves_(self) -> int:
        """Number of leaves of the tree."""
        self._check_fitted()
        return self.tree_.n_leaves

    @property
    def depth_(self) -> int:
        """Depth of the tree; 0 for a single leaf."""
        self._check_fitted()
        return self.tree_.max_depth

    @property
    def features_used_(self) -> list[Any]:
        """Columns of ``X`` that the tree asks about: names, or positions if they had no names.

        No others are needed at prediction. Of a transformer of one's own, all of them; of a soft
        tree those that a split weighs, while its leaves may weigh, and need, others.
        """
        self._check_fitted()
        names = getattr(self, "feature_names_in_", None)
        used = self._used_columns()
        return used if names is None else [str(names[place]) for place in used]

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Leaf of every row.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.

        Returns
        -------
        array of int, shape (n,)
            Node ids, preorder, as in ``tree_``.
        """
        self._check_fitted()
        return self.tree_.apply(self._tree_rows(X))

    def decision_path(self, X: Any) -> csr_matrix:
        """Nodes that every row passes through.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.

        Returns
        -------
        scipy.sparse.csr_matrix, shape (n, tree_.node_count)
            1 where the row passes through the node, its leaf included.
        """
        self._check_fitted()
        return self.tree_.decision_path(self._tree_rows(X))

    def to_json(self) -> str:
        """Fitted model as versioned JSON; see :mod:`bristlecone.model.registry`."""
        return serialise.dumps(self)

    @classmethod
    def from_json(cls: type[Estimator], text: str) -> Estimator:
        """Model of this class from the text of ``to_json``.

        Raises
        ------
        ModelFormatError
            When the text is not a complete, consistent model of this class.
        """
        return serialise.loads(text, cls)

    def _leaf_of(self, X: Any) -> NDArray[np.int64]:
        """Position of the leaf of every row among the leaves, left to right."""
        self._check_fitted()
        return self.tree_.leaf_index(self._tree_rows(X))
