"""``OptimalTreeClassifier``: the provably best classification tree over binary features."""

from __future__ import annotations

import math
import time
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from bristlecone._data.targets import LabelledData, check_labelled_data
from bristlecone._estimators.base import Taught
from bristlecone._estimators.label_predictions import ClassPredictions
from bristlecone._estimators.parameters import check_parameters, choice
from bristlecone._estimators.reestimate import Reestimation
from bristlecone._estimators.searched import Callback, SearchedTree
from bristlecone._fit.assemble import Fitted
from bristlecone._fit.search import Search
from bristlecone._objectives.labels import AIMS, ClassObjective, LabelSums, Measure
from bristlecone._search.certificate import ERRORS
from bristlecone._search.engine import Problem, Task, engine_of
from bristlecone._search.front import (
    FrontSolution,
    ParetoFront,
    ParetoPoint,
    warn_of_incomplete,
)
from bristlecone.exceptions import InvalidParameterError

# Objectives chosen from the front of false positives and false negatives, and those that ignore
# the labels of leaves.
_MEASURES, _IMPURITIES = ("f1", "mcc"), ("gini", "entropy")


@dataclass(kw_only=True, eq=False, repr=False)
class OptimalTreeClassifier(ClassPredictions, Reestimation, Taught, SearchedTree):
    """Classification tree with the least loss of all trees over the binary features of the encoder.

    Parameters
    ----------
    objective : str, default="accuracy"
        Loss to minimise, per unit of weight. With p_k the share of class k in a leaf:

        * "accuracy": share of the rows that are misclassified;
        * "balanced-accuracy": mean over the classes of the share of their rows that is
          misclassified;
        * "gini": Σ_k p_k (1 − p_k), weighted by the leaf;
        * "entropy": −Σ_k p_k ln p_k, weighted by the leaf;
        * "f1": 1 − F1 of the second of two classes, 2 TP / (2 TP + FP + FN) [Linden2023]_;
        * "mcc": 1 − Matthews correlation of two classes.
    max_depth : int or None, default=3
        Maximum number of splits from the root to a leaf; 0 is a single leaf. None means no
        limit and needs ``leaf_penalty > 0`` or ``max_leaf_nodes``.
        Without a limit, with a penalty and "accuracy" this is the optimal sparse tree of Hu, Rudin
        and Seltzer [Hu2019]_.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves.
    min_samples_leaf : int or float, default=1
        Minimum number of training rows in a leaf, regardless of their weights. A float
        between 0 and 1 is a share of the training rows, rounded up.
    leaf_penalty : float, default=0.0
        Penalty for each leaf: the objective is the loss plus this times the number of leaves.
    shrinkage : float, default=0.0
        Strength λ >= 0 of the hierarchical shrinkage of ``predict_proba`` [Agarwal2022]_: from the
        root down, each node adds λ pseudo-rows with the shares of its parent. The tree, its labels,
        objective and bound do not change.
    class_weight : dict, "balanced" or None, default=None
        Factor by which the weight of each row is multiplied, by class (1 for a class that is not
        named); "balanced" gives every class the same total weight, ``sample_weight`` included.
        scikit-learn balances the number of rows instead.
    teacher : "auto", estimator or None, default=None
        Model that smooths the outcomes before the search: its cross-fitted predictions are mixed
        into them, so the tree fits less noise. Statistics and predictions of the leaves use the
        real outcomes (docs/guide/teacher.md). "auto" combines ridge regression, a forest and
        boosting. An estimator needs ``predict_proba``. Not with "f1" and "mcc".
    teacher_weight : float, default=0.5
        Share of the teacher's predictions in the smoothed outcomes, between 0 and 1.
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
    random_state : int, RandomState or None, default=None
        Seed of the teacher's folds and models; None is 0. Nothing else is random.
    verbose : int, default=0
        If positive, fits are logged at level INFO of the logger "bristlecone", otherwise at DEBUG.

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
        Labels in sorted order.
    objective_value_ : float
        Loss of the tree plus ``leaf_penalty`` times the number of leaves.
    lower_bound_ : float
        No tree over the binary features has a smaller objective.
    gap_, relative_gap_ : float
        ``objective_value_ - lower_bound_``, and the same divided by ``abs(objective_value_)``.
    status_ : {"optimal", "time_limit", "memory_limit", "interrupted"}
        "optimal" means optimal among trees over the ``n_binary_features_`` binary features.
    training_loss_ : float
        Loss of the tree on the real outcomes, without ``leaf_penalty``.
    tree_ : Tree
        Structure as parallel arrays in preorder; ``feature`` is the index of a binary feature.
    leaf_labels_ : array of int, shape (n_leaves,)
        Position in ``classes_`` of the prediction of every leaf, left to right. If several
        classes are equally good, it is the first. With "f1" and "mcc" it may be the less frequent
        class of a leaf.
    leaf_values_ : array of float, shape (n_leaves, n_classes)
        Training weight of every class in every leaf; with "balanced-accuracy" as a share of the
        weight of the class.
    pareto_front_ : ParetoFront
        Only with "f1" and "mcc": Pareto-optimal trees that the search found, by false positives and
        false negatives (and, with a ``leaf_penalty``, leaves). The best tree is one of them.
        ``pareto_front`` finds all. Trees from a JSON file, of ``pareto_front`` and of
        ``reestimate`` have no such attribute.
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
    CostSensitiveTreeClassifier : Takes costs of errors and of features.
    FairTreeClassifier : Limits the differences between groups.

    References
    ----------
    .. [Linden2023] van der Linden, de Weerdt, Demirović, "Necessary and Sufficient Conditions for
        Optimal Decision Trees using Dynamic Programming", NeurIPS 2023.
    .. [Hu2019] Hu, Rudin, Seltzer, "Optimal Sparse Decision Trees", NeurIPS 2019.
    .. [Agarwal2022] Agarwal, Tan, Ronen, Singh, Yu, "Hierarchical shrinkage: improving the accuracy
        and interpretability of tree-based methods", ICML 2022.

    Examples
    --------
    >>> from bristlecone import OptimalTreeClassifier
    >>> X, y = [[0, 0], [0, 1], [1, 0], [1, 1]], ["a", "b", "b", "a"]
    >>> tree = OptimalTreeClassifier(max_depth=2).fit(X, y)
    >>> tree.status_, tree.objective_value_, tree.predict([[1, 0]]).tolist()
    ('optimal', 0.0, ['b'])
    """

    objective: Literal["accuracy", "balanced-accuracy", "gini", "entropy", "f1", "mcc"] = "accuracy"
    max_depth: int | None = 3
    max_leaf_nodes: int | None = None
    min_samples_leaf: int | float = 1
    leaf_penalty: float = 0.0
    shrinkage: float = 0.0
    class_weight: Any = None
    teacher: Any = None
    teacher_weight: float = 0.5
    time_limit: float | None = None
    memory_limit: int | None = None
    n_jobs: int | None = None
    encoder: Any = "auto"
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

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
            Numeric, boolean or categorical columns; convert dates to numbers first. The default
            encoder accepts missing values; a custom encoder may not.
        y : array-like, shape (n,)
            Labels: numbers, texts or booleans; at most 32 classes.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative. Rows with weight zero are left out. A row with an
            integer weight k has the effect of k copies, except that minimum numbers of rows count
            it once, and that a teacher may treat it differently.
        callback : callable, optional
            Called as ``callback(progress)`` whenever the best tree or the lower bound improves, and
            every quarter of a second, in the thread of ``fit``. The attributes of ``progress`` are
            seconds, objective, lower_bound, gap, n_nodes_explored and, if there is a forecast,
            share and seconds_left. An exception that it raises ends the search and ``fit``.

        Returns
        -------
        OptimalTreeClassifier
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            If a parameter is invalid, the numbers of rows differ, or a column cannot be read.
            The message names the parameter, column or row. An earlier fit is kept.
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
        ConstantFeatureWarning
            If every column of ``X`` is constant.
        SmallSampleWarning
            If ``min_samples_leaf`` is too large for any split, so the tree is a single leaf, or if
            a fold of the teacher has few rows.
        ColumnWarning
            If a column has no values, or may be read differently from what you meant, such as
            numbers stored as text.
        """
        return self._fit(X, y, sample_weight, callback)

    def pareto_front(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> ParetoFront:
        """Find the Pareto front of false positives and false negatives.

        The front includes the best tree by any measure that gets worse with more errors of either
        kind. It may be long, and takes much longer than a fit.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``, with two classes; the second is the positive one. The objective does not
            change the front, and this estimator is not changed.

        Returns
        -------
        ParetoFront
            Each point has ``costs``, the weights of false positives and of false negatives, and
            ``estimator``, a fitted tree with the parameters of this one ("gini" and "entropy"
            become "accuracy"). Its ``status_`` is "near_optimal" if another tree of the front has a
            lower objective.

        Raises
        ------
        ValueError, TypeError, KeyboardInterrupt
            As in ``fit``; also if ``leaf_penalty`` is above 0 or there is a ``teacher``, which a
            front does not support.

        Warns
        -----
        SearchLimitWarning
            If a limit or Ctrl-C stopped the search; the front is then not complete.
        """
        if self.teacher is not None:
            raise InvalidParameterError("pareto_front counts real outcomes: it needs teacher=None")
        start, tree = time.perf_counter(), clone(self)
        if self.objective in _IMPURITIES:
            tree.objective = "accuracy"
        search, problem = tree._asked(X, y, sample_weight)
        data = problem.data
        _check_both(data.classes, "a front")
        if self.leaf_penalty > 0:
            raise InvalidParameterError("pareto_front needs leaf_penalty=0")
        arrays = {"labels": data.labels, "weight": data.weight}
        settings = search.limits.settings(problem)
        engine = engine_of(Task("confusion", arrays), problem.features)
        solution = engine.solve(**settings)
        front = tree._front(search, problem, solution, start)
        warn_of_incomplete(front.status, len(front))
        return front

    def _check_parameters(self) -> None:
        check_parameters(self, objective=choice(*AIMS))
        if self.teacher is not None and self.objective in _MEASURES:
            raise InvalidParameterError(
                f"teacher cannot be used with objective={self.objective!r}, which is not a sum "
                "over rows"
            )

    def _training_data(self, X: Any, y: Any, sample_weight: Any) -> LabelledData:
        data = check_labelled_data(X, y, sample_weight, self.class_weight)
        if self.objective in _MEASURES:
            _check_both(data.classes, f"objective={self.objective!r}")
        return data

    def _objective(self) -> ClassObjective:
        kind = Measure if self.objective in _MEASURES else LabelSums
        return kind(shrinkage=float(self.shrinkage), name=self.objective)

    def _keep(self, search: Search, problem: Problem, solution: Any, start: float) -> Fitted:
        # A long front takes time, and what ends it early must not leave the tree without it.
        front = None
        if hasattr(solution, "front"):
            front = self._front(search, problem, solution, start)
        fitted = super()._keep(search, problem, solution, start)
        self.__dict__.pop("pareto_front_", None)
        if front is not None:
            self.pareto_front_ = front
        return fitted

    def _front(
        self, search: Search, problem: Problem, solution: FrontSolution, start: float
    ) -> ParetoFront:
        """The front of a solution, whose trees have the parameters of this one."""
        points, values, status = [], [], solution.status
        for found in solution.front.points:
            tree = copy(self)
            tree.__dict__.pop("pareto_front_", None)
            SearchedTree._keep(tree, search, problem, solution.of(found), start)
            points.append(ParetoPoint(tuple(found.costs), tree))
            value = search.objective.value(tree.tree_, problem, tree.leaves_)
            values.append(value + search.limits.leaf_penalty * tree.n_leaves_)
        least, bound = min(values, default=0.0), solution.lower_bound
        if math.isnan(bound):  # the search was for the whole front, not for an objective
            bound = least if status == "optimal" else 0.0
        for point, value in zip(points, values, strict=True):
            tree = point.estimator
            tree.certificate_ = replace(
                tree.certificate_,
                status="near_optimal" if status == "optimal" and value > least else status,
                objective_value=value,
                lower_bound=bound,
                trace=(),
                facts={**tree.certificate_.facts, ERRORS: list(point.costs)},
            )
        return ParetoFront(points, ("false positives", "false negatives"), status)


def _check_both(classes: NDArray[Any], who: str) -> None:
    """Raise ValueError unless there are two classes."""
    if len(classes) != 2:
        raise ValueError(f"{who} needs two classes; y has {len(classes)}: {classes.tolist()[:5]}")
