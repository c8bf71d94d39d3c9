"""``OptimalTreeClassifier``: the provably best classification tree over binary features."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier

from bristlecone.data.checks import check_choice
from bristlecone.data.targets import LabelledData, check_labelled_data
from bristlecone.encoder.cuts import RankedColumns
from bristlecone.errors import InvalidParameterError
from bristlecone.estimators.labels import ClassTreeMixin
from bristlecone.estimators.searched import Callback, Engine, Problem, task_engine
from bristlecone.model.registry import register
from bristlecone.search.cuts import SklearnTree
from bristlecone.search.front import ParetoFront
from bristlecone.search.solve_front import pareto_front, public_front, solve_front
from bristlecone.tree import Tree

__all__ = ["OptimalTreeClassifier"]

_SUMS = ("accuracy", "balanced-accuracy", "gini", "entropy")
# Objectives chosen from the front of false positives and false negatives, with the engine's task.
_MEASURES: dict[str, dict[str, Any]] = {
    "f1": {"task": "f-measure", "beta": 1.0},
    "mcc": {"task": "matthews"},
}

_AIMS = {
    "accuracy": "the least share of misclassified weight",
    "balanced-accuracy": "the least mean, over the classes, of the share that is misclassified",
    "gini": "the least Gini impurity of the leaves, weighted by leaf",
    "entropy": "the least entropy of the leaves, weighted by leaf",
    "f1": "the greatest F1 score of the second class; the objective is 1 less that (van der "
    "Linden, de Weerdt and Demirović, NeurIPS 2023)",
    "mcc": "the greatest Matthews correlation; the objective is 1 less that",
}


@register
class OptimalTreeClassifier(ClassTreeMixin, ClassifierMixin, BaseEstimator):
    """Classification tree of least loss among all trees over the binary features of the encoder.

    Parameters
    ----------
    objective : str, default="accuracy"
        What is minimised, per unit of weight. With p_k the share of class k in a leaf:

        * "accuracy": share of the rows that are misclassified;
        * "balanced-accuracy": mean over the classes of the share of their rows that is
          misclassified;
        * "gini": Σ_k p_k (1 − p_k), weighted by the leaf;
        * "entropy": −Σ_k p_k ln p_k, weighted by the leaf;
        * "f1": 1 − F1 of the second of two classes, 2 TP / (2 TP + FP + FN) [1]_;
        * "mcc": 1 − Matthews correlation of two classes.
    max_depth : int or None, default=3
        Most questions from the root to a leaf; 0 is a single leaf. None is no limit and needs
        ``leaf_penalty > 0`` or ``max_leaf_nodes``; with a penalty and "accuracy" this is the
        optimal sparse tree of Hu, Rudin and Seltzer [2]_.
    max_leaf_nodes : int or None, default=None
        Most leaves.
    min_samples_leaf : int or float, default=1
        Fewest training rows in a leaf, whatever their weights; a float between 0 and 1 is a share
        of the training rows, rounded up.
    leaf_penalty : float, default=0.0
        Added to the objective per leaf.
    shrinkage : float, default=0.0
        λ >= 0 of hierarchical shrinkage of ``predict_proba``, after [3]_: from the root down, every
        node counts λ pseudo-rows with the shares of its parent. Tree, labels, objective and bound
        do not depend on it.
    class_weight : dict, "balanced" or None, default=None
        Factor of the weight of every row by its class (1 for a class that is not named);
        "balanced" gives every class the same total.
    time_limit : float or None, default=None
        Seconds after which the search stops with the best tree so far.
    memory_limit : int or None, default=None
        Bytes the tables of the search may take; None is 600 MiB. With less it is slower, and with
        too little for any table it stops likewise.
    n_jobs : int or None, default=None
        Threads: None is one, -1 all. The tree of a completed search does not depend on it.
    encoder : "auto" or transformer, default="auto"
        Turns ``X`` into binary features; "auto" is ``BinaryEncoder()`` with the cuts of
        greedy trees over every threshold (docs/guide/encoder.md). A clone is fitted to the
        training rows. Any transformer will do whose output is two-dimensional and holds nothing
        but 0 and 1, and which has ``get_feature_names_out``.
    random_state : int, RandomState or None, default=None
        Accepted for uniformity; the search is deterministic and does not use it.
    verbose : int, default=0
        1 or more reports a fit at level INFO of the logger "bristlecone", else DEBUG.

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
        Labels in sorted order.
    objective_value_ : float
        The objective plus ``leaf_penalty`` times the number of leaves.
    lower_bound_ : float
        No tree over the binary features is below this.
    gap_, relative_gap_ : float
        ``objective_value_ - lower_bound_``, and the same as a share of ``objective_value_``.
    status_ : {"optimal", "time_limit", "memory_limit", "interrupted"}
        "optimal" means optimal among trees over the ``n_binary_features_`` binary features.
    tree_ : Tree
        Structure as parallel arrays in preorder; ``feature`` counts binary features.
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
    shrinkage_ : float
        λ of the fit.
    n_leaves_, depth_ : int
        Size of the tree.
    n_binary_features_ : int
        Binary features the encoder made.
    n_nodes_explored_ : int
        Work of the search.
    trace_ : list of (float, float, float)
        Seconds, objective and lower bound at each improvement.
    fit_time_ : float
        Seconds ``fit`` took.
    encoder_ : transformer
        The fitted encoder.
    n_features_in_ : int
        Columns of ``X``.
    feature_names_in_ : array of str
        Their names; only when ``X`` had names.
    features_used_ : list of str or int
        The columns that the tree asks about; no others are needed at prediction.

    References
    ----------
    .. [1] van der Linden, de Weerdt, Demirović, "Necessary and Sufficient Conditions for Optimal
       Decision Trees using Dynamic Programming", NeurIPS 2023.
    .. [2] Hu, Rudin, Seltzer, "Optimal Sparse Decision Trees", NeurIPS 2019.
    .. [3] Agarwal, Tan, Ronen, Singh, Yu, "Hierarchical shrinkage: improving the accuracy and
       interpretability of tree-based methods", ICML 2022.

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
        X : DataFrame (pandas, polars, ...) or array, shape (n, n_features)
            Numbers, booleans, categories; missing values as the encoder allows.
        y : array-like, shape (n,)
            Labels: numbers, texts or booleans; at most 32 classes.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative; rows of weight zero are left out. Integer
            weights equal repetition of rows (with ``min_samples_leaf=1``).
        callback : callable, optional
            Called with a :class:`~bristlecone.SearchProgress` whenever the best tree or
            the lower bound may have improved, and every quarter of a second, on the thread of
            ``fit``. An exception it raises ends the search and ``fit``.

        Returns
        -------
        OptimalTreeClassifier
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            For unknown values of parameters, rows that do not fit together, and columns that
            cannot be read; parameter, column or row is named, and an earlier fit is kept.
        KeyboardInterrupt
            At a second Ctrl-C within a second; an earlier fit is kept.

        Warns
        -----
        SearchLimitWarning
            When a limit or Ctrl-C stopped the search; the gap is given.
        SearchCostWarning
            At the start of a search without ``time_limit`` that is forecast to take more than ten
            minutes.
        ConstantFeatureWarning
            When every column of ``X`` takes a single value.
        """
        start = time.perf_counter()
        problem = self._problem(X, y, sample_weight)
        self._search(problem, start, callback)
        self._announce([self])
        return self

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
        problem = self._problem(X, y, sample_weight)
        data = problem.data
        _check_both(data.classes, "a front")
        if self.leaf_penalty > 0:
            raise InvalidParameterError("leaf_penalty must be 0 for a front")
        search = partial(pareto_front, data.labels, problem.features, data.weight)
        return self._run(search, problem)

    def _check_parameters(self) -> None:
        check_choice("objective", self.objective, (*_SUMS, *_MEASURES))
        super()._check_parameters()

    def _training_data(self, X: Any, y: Any, sample_weight: Any) -> LabelledData:
        data = check_labelled_data(X, y, sample_weight, self.class_weight)
        if self.objective in _MEASURES:
            _check_both(data.classes, f"objective={self.objective!r}")
        return data

    def _engine(self, problem: Problem) -> Engine:
        data = problem.data
        if self.objective in _MEASURES:
            measure = {"labels": data.labels, "weight": data.weight, **_MEASURES[self.objective]}
            return Engine(partial(solve_front, measure.pop("task"), measure, problem.features))
        return task_engine(*self._sum_task(data), problem.features)

    def _sum_task(
        self, data: LabelledData, columns: RankedColumns | None = None
    ) -> tuple[str, dict[str, Any]]:
        labels, n_classes = data.labels, len(data.classes)
        if self.class_weight is not None:
            # A class of weight zero is none for the engine.
            present, labels = np.unique(data.labels, return_inverse=True)
            labels, n_classes = labels.astype(np.int64), len(present)
        task = {"labels": labels, "n_classes": n_classes, "weight": data.weight}
        return "accuracy" if self.objective in _MEASURES else self.objective, task

    def _sklearn_tree(self, data: LabelledData) -> SklearnTree:
        weight = data.weight
        if self.objective == "balanced-accuracy":
            own = np.ones(len(data.labels)) if weight is None else weight
            weight = own / np.bincount(data.labels, weights=own)[data.labels]
        criterion = "entropy" if self.objective == "entropy" else "gini"
        by_label = self.objective not in ("gini", "entropy")
        tree = DecisionTreeClassifier(criterion=criterion)
        return SklearnTree(tree, data.labels, weight, by_label)

    def _set_found(self, tree: Tree, problem: Problem, solution: Any) -> None:
        super()._set_found(tree, problem, solution)
        self.__dict__.pop("pareto_front_", None)
        if self.objective in _MEASURES:
            self.pareto_front_ = public_front(
                solution.front,
                problem.features,
                problem.data.weight,
                ("false positives", "false negatives"),
            )

    def _aim(self) -> str:
        return _AIMS[self._fitted_parameters()["objective"]]

    def _values(self, leaf: NDArray[np.int64], n_leaves: int, problem: Problem) -> NDArray[Any]:
        weight = super()._values(leaf, n_leaves, problem)
        if self.objective != "balanced-accuracy":
            return weight
        total = weight.sum(axis=0)
        return weight / np.where(total > 0, total, 1.0)

    def _class_weights(self) -> NDArray[np.float64]:
        values = super()._class_weights()
        if self._fitted_parameters()["objective"] != "balanced-accuracy":
            return values
        # Every class counts the same, and all rows together what they weigh.
        return values * (self.tree_.weighted_n_node_samples[0] / values.sum())


def _check_both(classes: NDArray[Any], who: str) -> None:
    """Raise ValueError unless there are two classes."""
    if len(classes) != 2:
        raise ValueError(f"{who} needs two classes; y has {len(classes)}: {classes.tolist()[:5]}")
