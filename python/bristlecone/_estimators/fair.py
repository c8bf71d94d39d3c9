"""``FairTreeClassifier``: the provably best tree that treats two groups alike."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags

from bristlecone._data.targets import check_labelled_data, check_two_classes
from bristlecone._estimators.docstrings import documented
from bristlecone._estimators.label_predictions import ClassPredictions
from bristlecone._estimators.parameters import check_parameters
from bristlecone._estimators.reestimate import Reestimation
from bristlecone._estimators.searched import Callback, SearchedTree
from bristlecone._objectives.fair import EQUAL_OPPORTUNITY, PARITY, FairLabels
from bristlecone._objectives.parity import DemographicParity, EqualityOfOpportunity
from bristlecone.exceptions import InvalidParameterError

__all__ = ["FairTreeClassifier"]


class GroupedData(NamedTuple):
    """Checked rows with the group of each, int64 (n,) of 0 and 1."""

    X: Any
    labels: NDArray[np.int64]
    classes: NDArray[Any]
    weight: NDArray[np.float64] | None
    group: NDArray[np.int64]
    groups: NDArray[Any]


@documented
class FairTreeClassifier(ClassPredictions, Reestimation, SearchedTree):
    """Classification tree of fewest errors among those that treat two groups alike.

    Two classes; the positive one is the second of ``classes_``. The rates of positive predictions
    of the two groups differ by no more than a limit on the training rows [Linden2023]_ (eqs.
    66–70).

    Parameters
    ----------
    fairness : DemographicParity or EqualityOfOpportunity
        Limit on the difference between the groups. Required.
    {max_depth, max_leaf_nodes, min_samples_leaf}
    leaf_penalty : float
        Added to the share of misclassified rows per leaf.
    {shrinkage, time_limit, memory_limit, n_jobs, encoder, random_state, verbose}

    Attributes
    ----------
    classes_ : array, shape (2,)
        Labels in sorted order; the second is the positive one.
    groups_ : array, shape (2,)
        Groups in sorted order; empty when infeasible.
    group_rates_ : array of float, shape (2,)
        Share of each group that is predicted to be positive, among the training rows that
        ``fairness`` compares; empty when infeasible.
    objective_value_ : float
        Share of the training weight that is misclassified plus ``leaf_penalty`` times the number
        of leaves; inf when infeasible.
    lower_bound_ : float
        No tree over the binary features that satisfies the constraint is below this.
    {gap_}
    status_ : {"optimal", "time_limit", "memory_limit", "interrupted", "infeasible"}
        "optimal" means optimal among trees over the ``n_binary_features_`` binary features.
        "infeasible": none satisfies the constraint; there is no ``tree_``, and predictions raise
        InfeasibleError.
    {tree_}
    leaf_labels_ : array of int, shape (n_leaves,)
        Position in ``classes_`` of what every leaf predicts, left to right: not always the more
        frequent class.
    leaf_values_ : array of float, shape (n_leaves, 2)
        Training weight of either class in every leaf.
    {shrinkage_, n_leaves_, n_binary_features_, n_nodes_explored_, trace_, fit_time_, encoder_}
    {n_features_in_, feature_names_in_, features_used_}
    {questions_, feature_importances_, leaves_, certificate_}

    See Also
    --------
    DemographicParity, EqualityOfOpportunity : The constraints.
    OptimalTreeClassifier : Without a constraint.

    References
    ----------
    {Linden2023, Agarwal2022}

    Examples
    --------
    >>> from bristlecone import DemographicParity, FairTreeClassifier
    >>> X, y = [[0], [0], [1], [1]], [0, 1, 1, 1]
    >>> tree = FairTreeClassifier(fairness=DemographicParity(0.0))
    >>> tree = tree.fit(X, y, sensitive_features=["a", "b", "a", "b"])
    >>> tree.predict(X).tolist(), tree.group_rates_.tolist(), tree.objective_value_
    ([1, 1, 1, 1], [1.0, 1.0], 0.25)
    """

    def __init__(
        self,
        *,
        fairness: DemographicParity | EqualityOfOpportunity | None = None,
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int | float = 1,
        leaf_penalty: float = 0.0,
        shrinkage: float = 0.0,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        n_jobs: int | None = None,
        encoder: Any = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.fairness = fairness
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.leaf_penalty = leaf_penalty
        self.shrinkage = shrinkage
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.encoder = encoder
        self.random_state = random_state
        self.verbose = verbose

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
        {X}
        y : array-like, shape (n,)
            Labels of at most two classes: numbers, texts or booleans.
        {sample_weight}
        sensitive_features : array-like, shape (n,), optional
            Group of every row, of two values. Required unless ``fairness`` names a column of
            ``X``; takes the place of that column.
        {callback}

        Returns
        -------
        {self}

        Raises
        ------
        ValueError, TypeError
            For unknown values of parameters, more than two classes, groups that are absent, not
            two, or without a row to compare, rows that do not fit together, and columns that
            cannot be read; parameter, column or row is named, and an earlier fit is kept.
        InfeasibleError
            When a limit or Ctrl-C, which ``status_`` names, stopped the search before a tree that
            satisfies the constraint was met.
        {KeyboardInterrupt}

        Warns
        -----
        {SearchLimitWarning, SearchCostWarning}
        InfeasibleWarning
            When no tree satisfies the constraint.
        {ConstantFeatureWarning}
        """
        return self._fit(X, y, sample_weight, callback, sensitive_features=sensitive_features)

    @property
    def groups_(self) -> NDArray[Any]:
        """The two groups in sorted order; empty when infeasible."""
        groups = self.certificate_.groups
        return np.array([]) if groups is None else groups.groups

    @property
    def group_rates_(self) -> NDArray[np.float64]:
        """Share of the compared rows of each group that is predicted to be positive."""
        groups = self.certificate_.groups
        return np.array([]) if groups is None else groups.values

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _check_parameters(self) -> None:
        check_parameters(self, fairness=_check_fairness)

    def _training_data(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        *,
        sensitive_features: Any = None,
    ) -> GroupedData:
        assert self.fairness is not None
        data = check_labelled_data(X, y, sample_weight)
        check_two_classes(data.classes)
        groups = self.fairness.groups_of(X, sensitive_features, data.kept)
        if isinstance(self.fairness, EqualityOfOpportunity):
            positive = np.unique(groups.codes[data.labels == len(data.classes) - 1])
            if len(positive) < 2:
                absent = [side for side in (0, 1) if side not in positive]
                raise ValueError(
                    f"{groups.name}: group {groups.values.tolist()[absent[0]]!r} has no row of the "
                    f"positive class {data.classes.tolist()[-1]!r}, whose rates are to be compared"
                )
        return GroupedData(data.X, *data[1:4], groups.codes, groups.values)

    def _objective(self) -> FairLabels:
        fairness = self.fairness
        assert fairness is not None
        parity = isinstance(fairness, DemographicParity)
        return FairLabels(
            shrinkage=float(self.shrinkage),
            constraint=PARITY if parity else EQUAL_OPPORTUNITY,
            limit=float(fairness.limit),
        )


def _check_fairness(name: str, value: Any) -> None:
    if not isinstance(value, (DemographicParity, EqualityOfOpportunity)):
        raise InvalidParameterError(
            f"{name} must be DemographicParity(limit) or EqualityOfOpportunity(limit); got "
            f"{value!r}"
        )
    value.check()
