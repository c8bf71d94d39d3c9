"""Predictions of trees that give labels: classes or treatments."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from bristlecone._leaves.base import view

__all__ = ["ClassPredictions", "LabelPredictions"]


class LabelPredictions:
    """What a fitted tree with label leaves predicts."""

    _located: Any

    leaf_labels_ = view("leaves_", "label", "Position of the label of every leaf.")
    leaf_values_ = view("leaves_", "values", "Value of every label in every leaf.")

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
        leaves, rows = self._located(X)
        return leaves.predict(rows)


class ClassPredictions(LabelPredictions, ClassifierMixin):
    """What a fitted classifier predicts."""

    classes_ = view("leaves_", "labels", "Labels in sorted order.")
    shrinkage_ = view("leaves_", "shrinkage", "Pseudo-rows of the fit.")

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
        leaves, rows = self._located(X)
        return leaves.predict_proba(rows)
