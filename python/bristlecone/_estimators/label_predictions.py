"""Predictions of trees that give labels: classes or treatments."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.metrics import accuracy_score

from bristlecone._data.groups import codes_of
from bristlecone._data.rows import check_row_labels, check_sample_weight
from bristlecone._leaves.base import view
from bristlecone._types import Floats, Integers


class LabelPredictions:
    """Predictions of a fitted tree with label leaves."""

    _located: Any

    leaf_labels_ = view("leaves_", "label", "Position of the label of every leaf.", Integers)
    leaf_values_ = view("leaves_", "values", "Value of every label in every leaf.", Floats)

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the label of every row.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.

        Returns
        -------
        array, shape (n,)
            Labels, of the same type as in ``fit``.

        Raises
        ------
        InfeasibleError
            If ``fit`` found that no tree satisfies the constraints.
        """
        leaves, rows = self._located(X)
        return leaves.predict(rows)


class ClassPredictions(LabelPredictions, ClassifierMixin):
    """Predictions of a fitted classifier."""

    classes_ = view("leaves_", "labels", "Labels in sorted order.", NDArray[Any])
    shrinkage_ = view("leaves_", "shrinkage", "Strength λ of the shrinkage.", float)

    def predict_proba(self, X: Any) -> Floats:
        """Predict class probabilities: the shares of the classes in the leaf, by training weight.

        With ``shrinkage`` λ, the share p of a node is replaced by (n p + λ p') / (n + λ), from the
        root down, with n its weight and p' the shrunk share of its parent. The labels of
        ``predict`` do not change.

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
            If ``fit`` found that no tree satisfies the constraints.
        """
        leaves, rows = self._located(X)
        return leaves.predict_proba(rows)

    def score(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> float:
        """Accuracy: the share of the rows, by weight, whose label is predicted.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        y : array-like, shape (n,)
            Their labels. A label that is not among ``classes_`` is never predicted.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative.

        Returns
        -------
        float
            Between 0 and 1; 1 is best.

        Raises
        ------
        ValueError
            If labels are missing or of another type than those of the fit, a weight is invalid, or
            the numbers of rows differ.
        InfeasibleError
            If ``fit`` found that no tree satisfies the constraints.
        """
        predicted = self.predict(X)
        check_row_labels(X, y=y, sample_weight=sample_weight)
        found, codes = codes_of(y, len(predicted), "y")
        weight = check_sample_weight(sample_weight, len(predicted))
        return float(accuracy_score(found[codes], predicted, sample_weight=weight))
