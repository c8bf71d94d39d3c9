"""A fitted soft tree in the units of ``X``: weights, memberships, texts of its splits."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit

from bristlecone._encoder.design import DesignEncoder
from bristlecone._estimators.base import BaseTree
from bristlecone._leaves.base import view
from bristlecone._leaves.smooth import SmoothLeaves
from bristlecone._soft.tree import SoftTree
from bristlecone._types import Floats, Integers

# Number of terms of a split that its text shows.
_TERMS = 4


class SoftViews(BaseTree):
    """Parameters and soft memberships of a fitted soft tree."""

    tree_: SoftTree  # type: ignore[assignment]
    leaves_: SmoothLeaves
    encoder_: DesignEncoder

    leaf_shares_ = view("leaves_", "share", "Share of the training weight in every leaf.", Floats)

    def _rows(self, X: Any) -> Floats:
        self._check_fitted()
        weighed = (self.tree_.weights != 0).any(axis=0) | self.leaves_.weighed
        return self.encoder_.transform(X, weighed)

    @property
    def n_effective_leaves_(self) -> float:
        """Effective number of leaves: the exponential of the entropy of their shares."""
        shares = self.leaf_shares_[self.leaf_shares_ > 0]
        return float(np.exp(-(shares @ np.log(shares))))

    @property
    def design_names_(self) -> list[str]:
        """Names of the design columns, such as "age" and "stage = II"."""
        self._check_fitted()
        return self.encoder_.names

    @property
    def coef_(self) -> Floats:
        """Weights of the splits in the units of ``X``, shape (n_splits, n_design), in preorder.

        A row goes left with probability 1/(1 + exp(−(coef · x + intercept))).
        """
        self._check_fitted()
        return self.encoder_.per_unit(self.tree_.weights[self._split_order])

    @property
    def intercept_(self) -> Floats:
        """Intercepts of the splits in the units of ``X``, shape (n_splits,); −ω₀ of the paper."""
        self._check_fitted()
        at_zero = self.tree_.intercepts + self.tree_.weights @ self.encoder_.zero
        return at_zero[self._split_order]

    @property
    def leaf_coef_(self) -> Floats:
        """Weights of the leaves' linear predictors in the units of ``X``, (n_leaves, n_design)."""
        self._check_fitted()
        return self.encoder_.per_unit(self.leaves_.linear[:, :-1])

    @property
    def leaf_intercept_(self) -> Floats:
        """Intercepts of the leaves' linear predictors in the units of ``X``, shape (n_leaves,)."""
        self._check_fitted()
        at_zero = self.leaves_.linear[:, -1] + self.leaves_.linear[:, :-1] @ self.encoder_.zero
        return self.leaves_.model.in_unit(at_zero, self.leaves_.log_unit)

    @property
    def leaf_parameters_(self) -> dict[str, Floats]:
        """Further parameters of the leaves, such as "alpha", each of shape (n_leaves,)."""
        self._check_fitted()
        return self.leaves_.model.parameters(self.leaves_.shape)

    @property
    def n_features_used_(self) -> int:
        """Number of columns with a weight other than 0 in a split."""
        return len(self.features_used_)

    def predict_proba_leaf(self, X: Any) -> Floats:
        """Soft memberships: probability of every leaf; they sum to 1.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.

        Returns
        -------
        array of float, shape (n, n_leaves_)
            Leaves from left to right, as in ``tree_.leaves``. The leaf of ``apply`` is at the end
            of the more probable branches; another leaf may have a larger probability.
        """
        rows = self._rows(X)
        return self.tree_.probabilities(rows)

    def predict_proba_branch(self, X: Any) -> Floats:
        """Probability of going left at every split.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.

        Returns
        -------
        array of float, shape (n, n_splits)
            Splits in preorder; the row goes left if the probability is at least 0.5.
        """
        rows = self._rows(X)
        logit = self.tree_.logits(rows)
        return np.ascontiguousarray(expit(logit[self._split_order]).T)

    @property
    def _split_order(self) -> Integers:
        """Splits in preorder, as positions level by level."""
        return np.argsort(self.tree_.splits)

    @property
    def splits_(self) -> dict[int, str]:
        """Largest terms of every split, by node id.

        Each weight is multiplied by the range of its column in training, which makes weights
        comparable; the largest come first. A row goes left if the sum is at least 0. ``coef_`` has
        the weights per unit.
        """
        self._check_fitted()
        nodes = self.tree_.splits.tolist()
        return {node: self._question(place) for place, node in enumerate(nodes)}

    def _question(self, place: int) -> str:
        weights = self.tree_.weights[place]
        order = np.argsort(-np.abs(weights), kind="stable")
        shown = [j for j in order[:_TERMS].tolist() if weights[j] != 0]
        terms = " ".join(f"{weights[j]:+.3g} [{self.encoder_.names[j]}]" for j in shown)
        hidden = int((weights != 0).sum()) - len(shown)
        more = f" and {hidden} more" if hidden else ""
        return f"{self.tree_.intercepts[place]:+.3g} {terms}{more} >= 0"
