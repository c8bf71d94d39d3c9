"""Trees that give every leaf one of a set of labels: classes or treatments."""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone.estimators.searched import Problem, SolverMixin
from bristlecone.leaves.shrinkage import ShrinkageMixin, shrunk_means
from bristlecone.model.registry import Fields
from bristlecone.tree import Tree

__all__ = ["ClassTreeMixin", "LabelTreeMixin", "read_labels", "saved_labels", "sum_by_leaf"]

# Types of labels in a file, as NumPy writes them; of text at most six digits of characters.
_LABEL_TYPE = re.compile(
    r"\|b1|\|O|\|[iu]1|[<>][iu][248]|[<>]f[248]|[<>]U\d{1,6}|[<>][mM]8\[(s|ms|us|ns|m|h|D|W|M|Y)\]"
)
# What dates and durations are in JSON.
_PLAIN_TYPES = {"M": "U", "m": "<i8"}
_MOST_LABEL_BYTES = 1 << 26


class LabelTreeMixin(SolverMixin):
    """One label per leaf, and what the training rows of the leaf say of every label.

    ``leaf_labels_`` int64 (n_leaves,) counts in the labels; ``leaf_values_`` float64
    (n_leaves, n_labels) is their value in the leaf. Both are in the order of the leaves, left to
    right.
    """

    leaf_labels_: NDArray[np.int64]
    leaf_values_: NDArray[np.float64]

    @abstractmethod
    def _labels(self) -> NDArray[Any]:
        """What there is to choose from."""

    @abstractmethod
    def _set_labels(self, labels: NDArray[Any]) -> None:
        """Set what there is to choose from."""

    @abstractmethod
    def _values(self, leaf: NDArray[np.int64], n_leaves: int, problem: Problem) -> NDArray[Any]:
        """``leaf_values_`` of the training rows; ``leaf`` is the position of each row's leaf."""

    def _best_labels(
        self, leaf: NDArray[np.int64], values: NDArray[Any], problem: Problem
    ) -> NDArray[Any]:
        """Best label of every leaf where the search does not say which it took.

        That of the largest value; the first of several.
        """
        return values.argmax(axis=1)

    def _set_found(self, tree: Tree, problem: Problem, solution: Any) -> None:
        leaf = tree.leaf_index(problem.features)
        values = self._values(leaf, tree.n_leaves, problem)
        if hasattr(solution, "labels"):
            labels = solution.labels[tree.leaves]
        else:
            labels = self._best_labels(leaf, values, problem)
        self.leaf_labels_ = np.asarray(labels, dtype=np.int64)
        self.leaf_values_ = values

    def predict(self, X: Any) -> NDArray[Any]:
        """Label of every row: that of its leaf.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.

        Returns
        -------
        array, shape (n,)
            Of the type of the labels of ``fit``.

        Raises
        ------
        InfeasibleError
            When ``fit`` found that no tree satisfies the constraints.
        """
        leaf = self._leaf_of(X)
        return self._labels()[self.leaf_labels_[leaf]]

    def _leaf_facts(self) -> list[dict[str, Any]]:
        labels = _plain_labels(self._labels())
        return [
            {
                "label": labels[label],
                "values": {str(name): value for name, value in zip(labels, values, strict=True)},
            }
            for label, values in zip(
                self.leaf_labels_.tolist(), self.leaf_values_.tolist(), strict=True
            )
        ]

    def _leaf_text(self, facts: dict[str, Any]) -> str:
        values = ", ".join(f"{name}: {value:.4g}" for name, value in facts["values"].items())
        return f"{facts['label']} ({values})"

    def _saved_leaves(self) -> dict[str, Any]:
        return {
            "labels": saved_labels(self._labels()),
            "leaves": {
                "label": self.leaf_labels_.tolist(),
                "values": self.leaf_values_.tolist(),
            },
        }

    def _read_leaves(self, fields: Fields) -> None:
        labels = read_labels(fields.object("labels"))
        leaves = fields.object("leaves")
        self.leaf_labels_ = leaves.integers("label")
        self.leaf_values_ = np.array(leaves.rows("values", len(labels)))
        self._read_more(leaves)
        leaves.finish()
        expected = self.tree_.n_leaves
        if self.leaf_labels_.shape != (expected,) or len(self.leaf_values_) != expected:
            raise leaves.fail("label", f"and values are not those of {expected} leaves")
        if not ((self.leaf_labels_ >= 0) & (self.leaf_labels_ < len(labels))).all():
            raise leaves.fail("label", f"counts beyond {len(labels)} labels")
        self._set_labels(labels)

    def _read_more(self, leaves: Fields) -> None:
        """Read what an estimator added to the leaves."""


class ClassTreeMixin(ShrinkageMixin, LabelTreeMixin):
    """A classifier whose ``leaf_values_`` are the weights of the classes in the leaf."""

    classes_: NDArray[Any]

    def _labels(self) -> NDArray[Any]:
        return self.classes_

    def _set_labels(self, labels: NDArray[Any]) -> None:
        self.classes_ = labels

    def _values(self, leaf: NDArray[np.int64], n_leaves: int, problem: Problem) -> NDArray[Any]:
        data = problem.data
        shape = n_leaves, len(data.classes)
        flat = np.bincount(
            leaf * shape[1] + data.labels, weights=data.weight, minlength=shape[0] * shape[1]
        )
        return flat.astype(np.float64).reshape(shape)

    def _set_found(self, tree: Tree, problem: Problem, solution: Any) -> None:
        super()._set_found(tree, problem, solution)
        self.classes_ = problem.data.classes

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Share of every class in the leaf of every row, by training weight.

        With ``shrinkage`` λ the share p of a node, from the root down, is (n p + λ p') / (n + λ), n
        its weight and p' the shrunk share of its parent. The label that ``predict`` gives stays.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.

        Returns
        -------
        array of float, shape (n, n_classes)
            In the order of ``classes_``; rows sum to 1.

        Raises
        ------
        InfeasibleError
            When ``fit`` found that no tree satisfies the constraints.
        """
        leaf = self._leaf_of(X)
        return self._leaf_shares()[leaf]

    def _leaf_shares(self) -> NDArray[np.float64]:
        """What ``predict_proba`` gives in every leaf."""
        if self.shrinkage_ == 0:
            return self.leaf_values_ / self.leaf_values_.sum(axis=1, keepdims=True)
        weights = self._class_weights()
        return shrunk_means(self.tree_, weights, weights.sum(axis=1), self.shrinkage_)

    def _class_weights(self) -> NDArray[np.float64]:
        """Weight of every class in every leaf, in units of a row."""
        return self.leaf_values_

    def _leaf_facts(self) -> list[dict[str, Any]]:
        facts = super()._leaf_facts()
        if self.shrinkage_ > 0:
            names = [str(name) for name in _plain_labels(self.classes_)]
            for fact, shares in zip(facts, self._leaf_shares().tolist(), strict=True):
                fact["shrunk_shares"] = dict(zip(names, shares, strict=True))
        return facts

    def _leaf_text(self, facts: dict[str, Any]) -> str:
        text = super()._leaf_text(facts)
        if "shrunk_shares" not in facts:
            return text
        shares = (f"{name}: {share:.3g}" for name, share in facts["shrunk_shares"].items())
        return f"{text}, shrunk shares {', '.join(shares)}"


def sum_by_leaf(
    leaf: NDArray[np.int64], n_leaves: int, amounts: NDArray[Any], weight: NDArray[Any] | None
) -> NDArray[np.float64]:
    """Weighted sums of the rows of every leaf, shape (n_leaves, n_columns)."""
    weighted = amounts if weight is None else amounts * weight[:, None]
    sums = [np.bincount(leaf, weights=column, minlength=n_leaves) for column in weighted.T]
    return np.stack(sums, axis=1)


def saved_labels(labels: NDArray[Any]) -> dict[str, Any]:
    """Labels as plain JSON types; dates as text, durations as whole numbers.

    Raises
    ------
    TypeError
        For labels of another type than those that can be read again.
    """
    kind = labels.dtype.str
    try:
        _check_type(kind, len(labels))
    except ValueError as error:
        raise TypeError(f"labels of type {labels.dtype} cannot be saved: {error}") from None
    return {"type": kind, "values": _plain_labels(labels)}


def _plain_labels(labels: NDArray[Any]) -> list[Any]:
    return labels.astype(_PLAIN_TYPES.get(labels.dtype.kind, labels.dtype)).tolist()


def _check_type(kind: str, n_labels: int) -> None:
    """Raise ValueError unless the type is one that labels may have, and small."""
    if not _LABEL_TYPE.fullmatch(kind):
        raise ValueError("they must be numbers, booleans, text, dates or durations")
    if np.dtype(kind).itemsize * n_labels > _MOST_LABEL_BYTES:
        raise ValueError("they are too long")


def read_labels(fields: Fields, *, empty: bool = False) -> NDArray[Any]:
    """Labels from ``saved_labels``: distinct, and at least one unless ``empty``."""
    kind = fields.text("type")
    values = fields.take("values")
    fields.finish()
    if (not isinstance(values, list) or (not values and not empty)) or any(
        not isinstance(value, (bool, int, float, str)) for value in values
    ):
        raise fields.fail("values", "are no labels")
    try:
        # Before NumPy sees it: a type may be of any size.
        _check_type(kind, len(values))
    except ValueError as error:
        raise fields.fail("type", f"is {kind[:40]!r}: {error}") from None
    try:
        # An array of text would be as wide as the longest of the values.
        between = object if np.dtype(kind).kind in _PLAIN_TYPES else kind
        with np.errstate(over="ignore"):  # infinity is not what was written
            labels = np.array(values, dtype=between).astype(kind)
    except (TypeError, ValueError, OverflowError) as error:
        raise fields.fail("values", f"cannot be read: {error}") from None
    if _plain_labels(labels) != values:
        raise fields.fail("values", f"are no labels of type {kind!r}")
    if len(set(values)) < len(values):
        raise fields.fail("values", "repeat a label")
    return labels
