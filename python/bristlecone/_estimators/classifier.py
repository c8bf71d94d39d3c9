"""``OptimalTreeClassifier``: the provably best classification tree over binary features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._data.targets import LabelledData, check_labelled_data
from bristlecone._estimators.docstrings import documented
from bristlecone._estimators.label_predictions import ClassPredictions
from bristlecone._estimators.parameters import check_parameters, choice
from bristlecone._estimators.reestimate import Reestimation
from bristlecone._estimators.searched import Callback, SearchedTree
from bristlecone._fit.assemble import Fitted
from bristlecone._fit.search import Search
from bristlecone._objectives.labels import AIMS, ClassObjective, LabelSums, Measure
from bristlecone._search.engine import Problem
from bristlecone._search.front import ParetoFront, pareto_front, public_front
from bristlecone.exceptions import InvalidParameterError

__all__ = ["OptimalTreeClassifier"]

# Objectives chosen from the front of false positives and false negatives.
_MEASURES = ("f1", "mcc")


@documented
class OptimalTreeClassifier(ClassPredictions, Reestimation, SearchedTree):
    """Classification tree of least loss among all trees over the binary features of the encoder.

    Parameters
    ----------
    objective : str
        What is minimised, per unit of weight. With p_k the share of class k in a leaf:

        * "accuracy": share of the rows that are misclassified;
        * "balanced-accuracy": mean over the classes of the share of their rows that is
          misclassified;
        * "gini": Σ_k p_k (1 − p_k), weighted by the leaf;
        * "entropy": −Σ_k p_k ln p_k, weighted by the leaf;
        * "f1": 1 − F1 of the second of two classes, 2 TP / (2 TP + FP + FN) [Linden2023]_;
        * "mcc": 1 − Matthews correlation of two classes.
    {max_depth}
        Without a limit, with a penalty and "accuracy" this is the optimal sparse tree of Hu, Rudin
        and Seltzer [Hu2019]_.
    {max_leaf_nodes, min_samples_leaf}
    leaf_penalty : float
        Added to the objective per leaf.
    {shrinkage}
    class_weight : dict, "balanced" or None
        Factor of the weight of every row by its class (1 for a class that is not named);
        "balanced" gives every class the same total.
    {time_limit, memory_limit, n_jobs, encoder, random_state, verbose}

    Attributes
    ----------
    {classes_}
    objective_value_ : float
        The objective plus ``leaf_penalty`` times the number of leaves.
    {lower_bound_, gap_, status_, tree_}
    leaf_labels_ : array of int, shape (n_leaves,)
        Position in ``classes_`` of what every leaf predicts, left to right. Of equally good
        classes it is the first. With "f1" and "mcc" it may be the less frequent class of a leaf.
    leaf_values_ : array of float, shape (n_leaves, n_classes)
        Training weight of every class in every leaf; with "balanced-accuracy" as a share of the
        weight of the class.
    pareto_front_ : ParetoFront
        Only with "f1" and "mcc": trees that are not dominated in false positives and false
        negatives (nor, with a ``leaf_penalty``, in leaves) and that the search met on its way, the
        best one among them. ``pareto_front`` finds all.
    {shrinkage_, n_leaves_, n_binary_features_, n_nodes_explored_, trace_, fit_time_, encoder_}
    {n_features_in_, feature_names_in_, features_used_}
    {questions_, feature_importances_, leaves_, certificate_}

    See Also
    --------
    CostSensitiveTreeClassifier : Costs of errors and of features.
    FairTreeClassifier : Limits the difference between two groups.

    References
    ----------
    {Linden2023}
    .. [Hu2019] Hu, Rudin, Seltzer, "Optimal Sparse Decision Trees", NeurIPS 2019.
    {Agarwal2022}

    Examples
    --------
    >>> from bristlecone import OptimalTreeClassifier
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], ["a", "b", "b", "a"]
    >>> tree = OptimalTreeClassifier(max_depth=2).fit(X, y)
    >>> tree.status_, tree.objective_value_, tree.predict([[1, 0]]).tolist()
    ('optimal', 0.0, ['b'])
    """

    def __init__(
        self,
        *,
        objective: str = "accuracy",
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int | float = 1,
        leaf_penalty: float = 0.0,
        shrinkage: float = 0.0,
        class_weight: Any = None,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        n_jobs: int | None = None,
        encoder: Any = "auto",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.objective = objective
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.leaf_penalty = leaf_penalty
        self.shrinkage = shrinkage
        self.class_weight = class_weight
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
        callback: Callback | None = None,
    ) -> OptimalTreeClassifier:
        """Find the best tree.

        Parameters
        ----------
        {X}
        y : array-like, shape (n,)
            Labels: numbers, texts or booleans; at most 32 classes.
        {sample_weight, callback}

        Returns
        -------
        {self}

        Raises
        ------
        {ValueError, KeyboardInterrupt}

        Warns
        -----
        {SearchLimitWarning, SearchCostWarning, ConstantFeatureWarning}
        """
        return self._fit(X, y, sample_weight, callback)

    def pareto_front(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> ParetoFront:
        """All trees that are not dominated in false positives and false negatives.

        The best tree by any measure that falls with both is among them. A front may be long, and
        takes much longer than a fit.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``; two classes, the second of which is the positive one. The objective does
            not matter, and this estimator is left as it is.

        Returns
        -------
        ParetoFront
            Points with their costs (weights of false positives and of false negatives), tree and
            labels of the leaves.

        Raises
        ------
        ValueError, TypeError, KeyboardInterrupt
            As in ``fit``; and for ``leaf_penalty`` above 0, which a front has not.
        """
        search, problem = self._asked(X, y, sample_weight)
        data = problem.data
        _check_both(data.classes, "a front")
        if self.leaf_penalty > 0:
            raise InvalidParameterError("leaf_penalty must be 0 for a front")
        settings = search.limits.settings(problem)
        return pareto_front(data.labels, problem.features, data.weight, **settings)

    def _check_parameters(self) -> None:
        check_parameters(self, objective=choice(*AIMS))

    def _training_data(self, X: Any, y: Any, sample_weight: Any) -> LabelledData:
        data = check_labelled_data(X, y, sample_weight, self.class_weight)
        if self.objective in _MEASURES:
            _check_both(data.classes, f"objective={self.objective!r}")
        return data

    def _objective(self) -> ClassObjective:
        kind = Measure if self.objective in _MEASURES else LabelSums
        return kind(shrinkage=float(self.shrinkage), name=self.objective)

    def _keep(self, search: Search, problem: Problem, solution: Any, start: float) -> Fitted:
        fitted = super()._keep(search, problem, solution, start)
        self.__dict__.pop("pareto_front_", None)
        if self.objective in _MEASURES:
            names = "false positives", "false negatives"
            rows = problem.features, problem.data.weight
            self.pareto_front_ = public_front(solution.front, *rows, names)
        return fitted


def _check_both(classes: NDArray[Any], who: str) -> None:
    """Raise ValueError unless there are two classes."""
    if len(classes) != 2:
        raise ValueError(f"{who} needs two classes; y has {len(classes)}: {classes.tolist()[:5]}")
