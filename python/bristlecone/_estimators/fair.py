"""``FairTreeClassifier``: the provably best tree under a limit on differences between groups."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import Tags

from bristlecone._data.groups import COMPARED, EQUAL_ODDS, EQUAL_OPPORTUNITY, PARITY
from bristlecone._data.rows import check_sample_weight, row_count
from bristlecone._data.targets import GroupedData, check_labelled_data, check_two_classes
from bristlecone._estimators.label_predictions import ClassPredictions
from bristlecone._estimators.parameters import check_parameters
from bristlecone._estimators.reestimate import Reestimation
from bristlecone._estimators.searched import Callback, SearchedTree
from bristlecone._fit.search import Search
from bristlecone._objectives.fair import FairLabels
from bristlecone._objectives.parity import (
    DemographicParity,
    EqualityOfOpportunity,
    EqualizedOdds,
    groups_of,
)
from bristlecone._search.front import ParetoFront, ParetoPoint, add_point, warn_of_incomplete
from bristlecone._types import Floats
from bristlecone.exceptions import InvalidParameterError

# Names in the engine, the most groups whose differences it can limit (15 differences for two groups
# each), and the name of the second cost of a front.
_CONSTRAINTS = {
    DemographicParity: (PARITY, 6, "difference of the positive prediction rates"),
    EqualityOfOpportunity: (EQUAL_OPPORTUNITY, 6, "difference of the true positive rates"),
    EqualizedOdds: (EQUAL_ODDS, 4, "larger difference of the true and the false positive rates"),
}

# Differences of rates that are closer count as equal. That is far more than limits have room for,
# 2^-51, and than the rounding of rates.
_ALIKE = 1e-12


@dataclass(kw_only=True, eq=False, repr=False)
class FairTreeClassifier(ClassPredictions, Reestimation, SearchedTree):
    """Classification tree with the fewest errors, within a limit on differences between groups.

    On the training rows, the rates of positive predictions in any two groups differ by at most a
    limit [Linden2023]_ (eqs. 66–70). There are two classes; the positive one is the second of
    ``classes_``.

    Parameters
    ----------
    fairness : DemographicParity, EqualityOfOpportunity or EqualizedOdds, default=None
        Limit on the differences between the groups. You must set it; None raises an error.
    max_depth : int or None, default=3
        Maximum number of splits from the root to a leaf; 0 is a single leaf. None means no
        limit and needs ``leaf_penalty > 0`` or ``max_leaf_nodes``.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves.
    min_samples_leaf : int or float, default=5
        Minimum number of training rows in a leaf, regardless of their weights. A float
        between 0 and 1 is a share of the training rows, rounded up. With 1, a tight limit can
        produce leaves of single rows that only serve to meet it.
    leaf_penalty : float, default=0.0
        Penalty for each leaf: the objective is the share of misclassified rows plus this times the
        number of leaves.
    shrinkage : float, default=0.0
        Strength λ >= 0 of the hierarchical shrinkage of ``predict_proba`` [Agarwal2022]_: from the
        root down, each node adds λ pseudo-rows with the shares of its parent. The tree, its labels,
        objective and bound do not change.
    class_weight : dict, "balanced" or None, default=None
        Positive factor by which the weight of each row is multiplied in the objective, by class (1
        for a class that is not named). "balanced" gives both classes the same total weight, so the
        loss is 1 minus the balanced accuracy. The rates of the groups do not depend on it.
    time_limit : float or None, default=None
        Seconds after which the search stops with the best tree so far.
    memory_limit : int or None, default=None
        Bytes that the tables of the search may take; None is 600 MiB. With less memory the
        search is slower; if no table fits, it stops with the best tree so far.
    n_jobs : int or None, default=None
        Number of threads; None is one, -1 all cores. The tree of a completed search does
        not depend on it.
    encoder : "auto" or transformer, default="auto"
        Turns ``X`` into binary features. "auto" is ``BinaryEncoder()`` plus the thresholds
        of greedy trees over all thresholds (docs/guide/encoder.md). A clone is fitted to
        the training rows, and to their outcomes if its ``fit`` takes ``y``. Any transformer
        works whose output is two-dimensional and contains only 0 and 1, and which has
        ``get_feature_names_out``.
    verbose : int, default=0
        If positive, fits are logged at level INFO of the logger "bristlecone", otherwise at DEBUG.

    Attributes
    ----------
    classes_ : array, shape (2,)
        Labels in sorted order; the second is the positive one.
    groups_ : array, shape (n_groups,)
        Groups in sorted order; empty if infeasible.
    group_rates_ : array of float, shape (n_groups,) or (n_groups, 2)
        Share of each group that is predicted to be positive, among the training rows that
        ``fairness`` compares; empty if infeasible. Under equalized odds the columns are the true
        and the false positive rate.
    group_difference_ : float
        Largest difference in rates between two groups; NaN if infeasible.
    group_confusion_ : array of float, shape (n_groups, 2, 2)
        Weight of the training rows of each group by true and by predicted class, in the order of
        ``classes_`` as in ``sklearn.metrics.confusion_matrix``; without ``class_weight``. Empty
        when infeasible.
    objective_value_ : float
        Share of the training weight (including ``class_weight``) that is misclassified plus
        ``leaf_penalty`` times the number of leaves; inf if infeasible.
    lower_bound_ : float
        No tree over the binary features that satisfies the constraint has a smaller objective.
    gap_, relative_gap_ : float
        ``objective_value_ - lower_bound_``, and the same divided by ``abs(objective_value_)``.
    status_ : {"optimal", "time_limit", "memory_limit", "interrupted", "infeasible"}
        "optimal" means optimal among trees over the ``n_binary_features_`` binary features.
        "infeasible" means that none satisfies the constraint; there is no ``tree_``, and
        predictions raise InfeasibleError.
    tree_ : Tree
        Structure as parallel arrays in preorder; ``feature`` is the index of a binary feature.
    leaf_labels_ : array of int, shape (n_leaves,)
        Position in ``classes_`` of the prediction of every leaf, left to right. It is not always
        the more frequent class.
    leaf_values_ : array of float, shape (n_leaves, 2)
        Training weight of each class in every leaf, including ``class_weight``.
    shrinkage_ : float
        Strength of the shrinkage, as set in ``shrinkage``.
    n_leaves_, depth_ : int
        Size of the tree.
    n_binary_features_ : int
        Number of binary features that were searched.
    n_nodes_explored_ : int
        Number of nodes that the search visited.
    trace_ : list of TracePoint
        Named tuples (seconds, objective, lower_bound), one per improvement.
    fit_time_ : float
        Seconds that ``fit`` took.
    encoder_ : transformer
        The fitted encoder.
    n_features_in_ : int
        Number of columns of ``X``.
    feature_names_in_ : array of str
        Their names; only if ``X`` had names.
    features_used_ : list of str or int
        Columns in the splits of the tree. Predictions need no others.
    splits_ : dict
        Splits in words, by node id.
    feature_importances_ : array of float, shape (n_features_in_,)
        Share of each column in the improvement of the loss; see the property.
    leaves_ : Leaves
        Object with the statistics and predictions of all leaves.
    certificate_ : Certificate
        Record of the fit: the binary features and parameters, the result, the time, the version,
        and a fingerprint of the training rows. It includes the lower bound that proves the result.

    See Also
    --------
    DemographicParity, EqualityOfOpportunity, EqualizedOdds : The constraints.
    bristlecone.plot.plot_front : Draws the front of error and difference.
    OptimalTreeClassifier : Classification without a constraint.

    References
    ----------
    .. [Linden2023] van der Linden, de Weerdt, Demirović, "Necessary and Sufficient Conditions for
        Optimal Decision Trees using Dynamic Programming", NeurIPS 2023.
    .. [Agarwal2022] Agarwal, Tan, Ronen, Singh, Yu, "Hierarchical shrinkage: improving the accuracy
        and interpretability of tree-based methods", ICML 2022.

    Examples
    --------
    >>> from bristlecone import DemographicParity, FairTreeClassifier
    >>> X, y = [[0], [0], [1], [1]], [0, 1, 1, 1]
    >>> tree = FairTreeClassifier(fairness=DemographicParity(0.0), min_samples_leaf=1)
    >>> tree = tree.fit(X, y, sensitive_features=["a", "b", "a", "b"])
    >>> tree.predict(X).tolist(), tree.group_rates_.tolist(), tree.objective_value_
    ([1, 1, 1, 1], [1.0, 1.0], 0.25)
    """

    fairness: DemographicParity | EqualityOfOpportunity | EqualizedOdds | None = None
    max_depth: int | None = 3
    max_leaf_nodes: int | None = None
    min_samples_leaf: int | float = 5
    leaf_penalty: float = 0.0
    shrinkage: float = 0.0
    class_weight: Any = None
    time_limit: float | None = None
    memory_limit: int | None = None
    n_jobs: int | None = None
    encoder: Any = "auto"
    verbose: int = 0

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
        callback: Callback | None = None,
    ) -> FairTreeClassifier:
        """Find the best tree.

        Parameters
        ----------
        X : DataFrame (pandas, polars, ...) or array, shape (n, n_features)
            Numeric, boolean or categorical columns; convert dates to numbers first. The default
            encoder accepts missing values; a custom encoder may not.
        y : array-like, shape (n,)
            Labels of at most two classes: numbers, texts or booleans.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative. Rows with weight zero are left out. A row with an
            integer weight k has the effect of k copies, except that minimum numbers of rows count
            it once.
        sensitive_features : array-like, shape (n,), optional
            Group of every row: 2 to 6 groups, or 2 to 4 for ``EqualizedOdds``. Required unless
            ``fairness.sensitive_feature`` names a column; if you pass both, this argument is used.
        callback : callable, optional
            Called as ``callback(progress)`` whenever the best tree or the lower bound improves, and
            every quarter of a second, in the thread of ``fit``. The attributes of ``progress`` are
            seconds, objective, lower_bound, gap, n_nodes_explored and, if there is a forecast,
            share and seconds_left. An exception that it raises ends the search and ``fit``.

        Returns
        -------
        FairTreeClassifier
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            If a parameter is invalid, there are more than two classes, the groups are missing, too
            many, only one, or without a row to compare, the numbers of rows differ, or a column
            cannot be read. The message names the parameter, group, column or row. An earlier fit
            is kept.
        InfeasibleError
            If a limit or Ctrl-C stopped the search before it found a tree that satisfies the
            constraint. ``status_`` has the reason.
        KeyboardInterrupt
            If Ctrl-C is pressed twice within a second; an earlier fit is kept. A single Ctrl-C
            stops the search and keeps the best tree so far.

        Warns
        -----
        SearchLimitWarning
            If a limit or Ctrl-C stopped the search. The message reports the gap.
        SearchCostWarning
            As soon as the search is forecast to exceed ``time_limit`` (ten minutes without one).
            The message suggests smaller settings. Never with ``time_limit=0``.
        InfeasibleWarning
            If no tree satisfies the constraint.
        ConstantFeatureWarning
            If every column of ``X`` is constant.
        SmallSampleWarning
            If ``min_samples_leaf`` is too large for any split, so the tree is a single leaf.
        ColumnWarning
            If a column has no values, or may be read differently from what you meant, such as
            numbers stored as text.
        """
        return self._fit(X, y, sample_weight, callback, sensitive_features=sensitive_features)

    @property
    def groups_(self) -> NDArray[Any]:
        """The groups in sorted order; empty when infeasible."""
        groups = self.certificate_.groups
        return np.array([]) if groups is None else groups.groups.copy()

    @property
    def group_rates_(self) -> Floats:
        """Share of the compared rows of each group that is predicted to be positive."""
        groups = self.certificate_.groups
        return np.array([]) if groups is None else groups.values.copy()

    @property
    def group_difference_(self) -> float:
        """Largest difference in rates between two groups; NaN if infeasible."""
        groups = self.certificate_.groups
        return float("nan") if groups is None else groups.difference

    @property
    def group_confusion_(self) -> Floats:
        """Weight of the training rows of each group by true and by predicted class."""
        groups = self.certificate_.groups
        if groups is None or groups.confusion is None:
            return np.empty((0, 2, 2))
        return groups.confusion.copy()

    def pareto_front(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive_features: ArrayLike | None = None,
    ) -> ParetoFront:
        """Find the Pareto front of classification error and difference between groups.

        The search is repeated, each time with a limit just below the previous difference. Each
        search is exact, so no tree of the allowed size has fewer errors at the same difference.
        Differences that agree to 1e-12 count as equal.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features
            As in ``fit``. The limit of ``fairness`` is the largest difference of the front; 1
            includes all. This estimator is not changed.

        Returns
        -------
        ParetoFront
            Each point has ``costs``, the share of the weight that is misclassified and the largest
            difference between two groups, and ``estimator``, a fitted tree with this difference as
            its limit. ``time_limit`` applies to all searches together. If the search is stopped,
            the front has the points found so far; it is complete for differences down to the
            smallest of them.

        Raises
        ------
        ValueError, TypeError, KeyboardInterrupt
            As in ``fit``; also if ``leaf_penalty`` is above 0, which a front does not support.

        Warns
        -----
        SearchLimitWarning
            If a limit or Ctrl-C stopped the search; the front is then not complete.
        """
        if self.leaf_penalty > 0:
            raise InvalidParameterError("pareto_front needs leaf_penalty=0")
        start, tree = time.perf_counter(), clone(self)
        search, problem = tree._asked(X, y, sample_weight, sensitive_features=sensitive_features)
        settings, begun = search.limits.settings(problem), time.perf_counter()
        limit = settings["time_limit"]
        points: list[ParetoPoint] = []
        while True:
            if limit is not None:
                left = limit - (time.perf_counter() - begun)
                settings["time_limit"] = max(left, 0.0)
            solution = search.engine(problem).solve(**settings)
            if not hasattr(solution, "feature"):
                break
            tree._keep(search, problem, solution, start)
            # No tree with at most the difference of this one has fewer errors, either.
            aim = tree._limit(tree.group_difference_).objective.aim(problem, tree.leaves_)
            proof = replace(tree.certificate_, aim=aim, parameters=tree._parameters())
            tree.certificate_ = proof
            error, difference = tree.objective_value_, tree.group_difference_
            add_point(points, ParetoPoint((error, difference), tree))
            if solution.status != "optimal" or difference < _ALIKE:
                break
            tree = clone(tree)
            search = tree._limit(difference - _ALIKE)
        warn_of_incomplete(solution.status, len(points))
        names = "misclassified share", self._constraint[2]
        return ParetoFront(points, names, solution.status)

    def _limit(self, limit: float) -> Search:
        """Set the limit of the constraint, and return the search under it."""
        assert self.fairness is not None
        self.fairness = clone(self.fairness).set_params(limit=limit)
        return self._search()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _check_parameters(self) -> None:
        check_parameters(self, fairness=_check_fairness)

    def _training_data(
        self, X: Any, y: Any, sample_weight: Any, *, sensitive_features: Any = None
    ) -> GroupedData:
        assert self.fairness is not None
        data = check_labelled_data(X, y, sample_weight, self.class_weight)
        check_two_classes(data.classes)
        constraint, most, _ = self._constraint
        groups = groups_of(self.fairness, X, sensitive_features, data.kept, most)
        for of_class in COMPARED[constraint]:
            if of_class is None:
                continue
            present = np.unique(groups.codes[data.labels == of_class])
            absent = np.setdiff1d(np.arange(len(groups.values)), present)
            if len(absent):
                which = "positive" if of_class == 1 else "negative"
                label = data.classes.tolist()[of_class:]
                raise ValueError(
                    f"{groups.name}: group {groups.values.tolist()[absent[0]]!r} has no row of the "
                    f"{which} class{f' {label[0]!r}' if label else ''}, so its "
                    f"{'true' if of_class == 1 else 'false'} positive rate is not defined"
                )
        group_weight = None
        if self.class_weight is not None:
            own = check_sample_weight(sample_weight, row_count(X))
            if not (data.kept if own is None else data.kept == (own > 0)).all():
                raise InvalidParameterError(
                    "class_weight must be positive: rows of weight 0 would not count in the rates "
                    "of their groups"
                )
            group_weight = np.ones(len(data.labels)) if own is None else own[data.kept]
        return GroupedData(data.X, *data[1:4], groups.codes, groups.values, group_weight)

    def _objective(self) -> FairLabels:
        fairness = self.fairness
        assert fairness is not None
        return FairLabels(
            shrinkage=float(self.shrinkage),
            constraint=self._constraint[0],
            limit=float(fairness.limit),
        )

    @property
    def _constraint(self) -> tuple[str, int, str]:
        """Name of the constraint in the engine, its most groups, and what it limits."""
        return _CONSTRAINTS[type(self.fairness)]  # type: ignore[index]


def _check_fairness(name: str, value: Any) -> None:
    if type(value) not in _CONSTRAINTS:
        raise InvalidParameterError(
            f"{name} must be DemographicParity(limit), EqualityOfOpportunity(limit) or "
            f"EqualizedOdds(limit); got {value!r}"
        )
    value._check_parameters()
