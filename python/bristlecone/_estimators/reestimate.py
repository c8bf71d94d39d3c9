"""``reestimate``: the same splits, with leaves estimated from other rows."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any, TypeVar

import numpy as np

from bristlecone._encoder.rules import leaf_rules, rule_text
from bristlecone._encoder.use import packed
from bristlecone._estimators.base import BaseTree, training_rows, unfitted
from bristlecone._fit.assemble import with_leaves
from bristlecone._search.certificate import ERRORS, fingerprint
from bristlecone._search.engine import Problem
from bristlecone._tree import Tree

Estimator = TypeVar("Estimator", bound="Reestimation")


class Reestimation(BaseTree):
    """A tree of binary splits whose leaves can be estimated from other rows."""

    # Returns the objective of the parameters.
    _objective: Any

    def reestimate(
        self: Estimator, X: Any, y: Any, sample_weight: Any = None, **data: Any
    ) -> Estimator:
        """Return a copy of this tree with the same splits and leaves estimated from other rows.

        A search chooses the splits that best separate its own rows. On these rows the leaves
        therefore look more different than they are. Rows that had no part in the choice give
        honest estimates: for them the leaves are groups that were fixed beforehand, so curves,
        relative hazards, shares and means, intervals and p-values are valid (honest estimation;
        Athey and Imbens, PNAS 113, 2016).

        Parameters
        ----------
        X, y, sample_weight, **data
            As in ``fit``, with the other rows, except ``callback`` and ``reference_loss``. Only the
            columns that the tree uses are needed.

        Returns
        -------
        fitted estimator
            Of the same class, with the parameters of the fit; this tree is not changed. ``tree_``
            has the same splits, with counts of the new rows. All values in ``leaves_`` come from
            the new rows, including the baseline. ``status_`` is "reestimated", and
            ``objective_value_`` is the objective of the tree on the new rows. No lower bound is
            proven for them: ``lower_bound_`` is -inf. ``certificate_.structure`` holds what was
            proven for the splits on the rows of their search.

        Raises
        ------
        NotFittedError, InfeasibleError
            If there is no tree.
        ValueError
            If no row falls in a leaf (the message gives its rule), if classes or treatments are not
            those of the fit, and as in ``fit``.

        Notes
        -----
        The limits of ``fit`` on leaves and groups hold for the rows of the fit, not for the new
        ones. A leaf without events has θ = 0.5 / (expected events) or the θ of the prior, and
        proportional curves follow from this θ; its Kaplan–Meier survival is 1. If the search chose
        the labels (F1, Matthews correlation, limits on groups, capacities, trees of a Pareto
        front), they stay the same; otherwise they follow from the new rows, as in ``fit``.

        Examples
        --------
        >>> from bristlecone import OptimalTreeRegressor
        >>> tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])
        >>> honest = tree.reestimate([[0.0], [1.5], [9.0], [9.0]], [2.0, 3.0, 9.0, 10.0])
        >>> honest.leaf_means_.tolist(), honest.certificate_.status
        ([2.5, 9.5], 'reestimated')
        """
        self._check_fitted()
        start = time.perf_counter()
        copy = unfitted(self)
        copy._check_parameters()
        rows = training_rows(copy, X, y, sample_weight, data)
        self._check_labels(rows)
        features = packed(self._rows(rows.X))
        problem = Problem(rows, self.encoder_, features, {}, 0.0, {})
        tree = self._grown_anew(problem)
        objective = copy._objective()
        solution: Any = None
        of_front = ERRORS in self.certificate_.facts
        if objective.chooses_labels or of_front:
            labels = np.full(tree.node_count, -1)
            labels[tree.leaves] = getattr(self.leaves_, "label", -1)
            solution = SimpleNamespace(labels=labels)
        tree, leaves = with_leaves(objective, tree, problem, solution)
        penalty = float(self.certificate_.parameters.get("leaf_penalty", 0.0))
        certificate = self.certificate_.reestimated(
            facts={ERRORS: objective.errors(tree, problem, leaves)} if of_front else {},
            objective_value=objective.value(tree, problem, leaves) + penalty * tree.n_leaves,
            aim=self.certificate_.aim,
            remarks=objective.remarks(),
            groups=objective.groups(tree, problem, leaves),
            n_samples=len(features),
            fingerprint=fingerprint(features, rows),
            seconds=time.perf_counter() - start,
        )
        copy._set_fitted(tree, leaves, self.encoder_, certificate, rows.X)
        return copy

    def _grown_anew(self, problem: Problem) -> Tree:
        """The same splits with counts of these rows; every leaf must have some."""
        old = self.tree_
        tree = Tree.grown(
            old.children_left,
            old.children_right,
            old.feature,
            problem.features,
            problem.data.weight,
            threshold=old.threshold,
            column=old.column,
        )
        empty = np.flatnonzero(tree.n_node_samples[tree.leaves] == 0)
        if empty.size:
            place = int(empty[0])
            raise ValueError(
                f"no row of X falls in leaf {tree.leaves[place]} "
                f"({rule_text(leaf_rules(self)[place])}), so it cannot be estimated; use more "
                "rows or a tree with fewer leaves (max_leaf_nodes, min_samples_leaf)"
            )
        return tree

    def _check_labels(self, rows: Any) -> None:
        """Raise ValueError for classes or treatments that are not those of the fit."""
        known = getattr(self.leaves_, "labels", None)
        if known is None:
            return
        what = "classes" if hasattr(rows, "classes") else "treatments"
        found = getattr(rows, what)
        if len(found) != len(known) or (found != known).any():
            raise ValueError(
                f"{what} of these rows are {found.tolist()}, but those of the fit are "
                f"{known.tolist()}; reestimate needs rows of each"
            )
