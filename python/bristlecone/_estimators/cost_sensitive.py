"""``CostSensitiveTreeClassifier``: the tree of least cost of errors and features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._data.arrays import as_array
from bristlecone._data.frame import columns_by_name, costs_by_class
from bristlecone._data.rows import check_row_labels, check_sample_weight, row_count
from bristlecone._data.targets import (
    CostlyData,
    check_amounts,
    check_labelled_data,
    check_some,
    known_codes,
)
from bristlecone._estimators.base import Taught
from bristlecone._estimators.label_predictions import ClassPredictions
from bristlecone._estimators.reestimate import Reestimation
from bristlecone._estimators.searched import Callback, SearchedTree
from bristlecone._leaves.base import view
from bristlecone._objectives.costs import LabelCosts
from bristlecone._types import Floats
from bristlecone.exceptions import InvalidParameterError


@dataclass(kw_only=True, eq=False, repr=False)
class CostSensitiveTreeClassifier(ClassPredictions, Reestimation, Taught, SearchedTree):
    """Classification tree of least expected cost over the binary features of the encoder.

    The cost of a row is the cost of its predicted label plus the costs of the features on the way
    to its leaf [Linden2023]_ (eq. 9).

    Parameters
    ----------
    cost_matrix : array-like, shape (n_classes, n_classes), DataFrame, mapping or None, default=None
        Entry (i, j) is the cost, not negative, of predicting class j for a row of class i, with the
        classes in sorted order, unless the rows or the columns of a DataFrame name them. A mapping
        from every class to its row names the classes, too, with the columns in the order of its
        keys. If the classes are named, there may be some that the training rows lack, as in a fold
        of a cross-validation. None costs 1 per misclassified row.
    feature_costs : mapping, sequence or None, default=None
        Cost, not negative, of measuring a column of ``X`` for a row; it is paid at the first split
        on the column. Pass a mapping or a series from names or positions of columns, or one entry
        per column.
        Columns that a mapping does not name are free. An entry is a number, or a mapping with
        "cost" and any of these:

        * "group": label of a group of columns, such as blood tests that share one sample;
        * "discounted_cost": cost of the column after another one of its group, at most "cost";
        * "origin": name of the measurement behind a column, if ``X`` is already binary. After one
          column of a measurement has been used, its other columns are free. By default every column
          is its own measurement, and all its binary features are free after the first.

        Needs a ``BinaryEncoder``, or an encoder that keeps the columns and their names.
    max_depth : int or None, default=3
        Maximum number of splits from the root to a leaf; 0 is a single leaf. None means no
        limit and needs ``leaf_penalty > 0`` or ``max_leaf_nodes``.
    max_leaf_nodes : int or None, default=None
        Maximum number of leaves.
    min_samples_leaf : int or float, default=1
        Minimum number of training rows in a leaf, regardless of their weights. A float
        between 0 and 1 is a share of the training rows, rounded up.
    leaf_penalty : float, default=0.0
        Penalty for each leaf: the objective is the mean cost plus this times the number of leaves.
    shrinkage : float, default=0.0
        Strength λ >= 0 of the hierarchical shrinkage of ``predict_proba`` [Agarwal2022]_: from the
        root down, each node adds λ pseudo-rows with the shares of its parent. The tree, its labels,
        objective and bound do not change.
    teacher : "auto", estimator or None, default=None
        Model that smooths the outcomes before the search: its cross-fitted predictions are mixed
        into them, so the tree fits less noise. Statistics and predictions of the leaves use the
        real outcomes (docs/guide/teacher.md). "auto" combines ridge regression, a forest and
        boosting. An estimator is a regressor of the costs, shape (n, n_classes).
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
        Turns ``X`` into binary features. "auto" is ``BinaryEncoder()`` plus the thresholds of
        greedy trees over all thresholds (docs/guide/encoder.md). A clone is fitted to the training
        rows, and to their outcomes if its ``fit`` takes ``y``. Any transformer works whose output
        is two-dimensional and contains only 0 and 1, and which has ``get_feature_names_out``. With
        ``feature_costs``, the column of every binary feature must be known. If two binary features
        are equal, the first is kept, even if the other is cheaper.
    random_state : int, RandomState or None, default=None
        Seed of the teacher's folds and models; None is 0. Nothing else is random.
    verbose : int, default=0
        If positive, fits are logged at level INFO of the logger "bristlecone", otherwise at DEBUG.

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
        Labels in sorted order.
    objective_value_ : float
        Mean cost per unit of weight plus ``leaf_penalty`` times the number of leaves.
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
        classes are equally cheap, it is the first.
    leaf_values_ : array of float, shape (n_leaves, n_classes)
        Training weight of every class in every leaf.
    leaf_prices_ : array of float, shape (n_leaves,)
        Cost per row of the features on the path to each leaf.
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
    OptimalTreeClassifier : All errors cost the same, and features are free.

    References
    ----------
    .. [Linden2023] van der Linden, de Weerdt, Demirović, "Necessary and Sufficient Conditions for
        Optimal Decision Trees using Dynamic Programming", NeurIPS 2023.
    .. [Agarwal2022] Agarwal, Tan, Ronen, Singh, Yu, "Hierarchical shrinkage: improving the accuracy
        and interpretability of tree-based methods", ICML 2022.

    Examples
    --------
    >>> from bristlecone import CostSensitiveTreeClassifier
    >>> X, y = [[0], [0], [0], [1]], ["ill", "well", "well", "well"]
    >>> tree = CostSensitiveTreeClassifier(cost_matrix=[[0, 10], [1, 0]]).fit(X, y)
    >>> tree.predict([[0], [1]]).tolist(), tree.objective_value_
    (['ill', 'well'], 0.5)
    """

    cost_matrix: ArrayLike | Mapping[Any, Any] | None = None
    feature_costs: Any = None
    max_depth: int | None = 3
    max_leaf_nodes: int | None = None
    min_samples_leaf: int | float = 1
    leaf_penalty: float = 0.0
    shrinkage: float = 0.0
    teacher: Any = None
    teacher_weight: float = 0.5
    time_limit: float | None = None
    memory_limit: int | None = None
    n_jobs: int | None = None
    encoder: Any = "auto"
    random_state: int | np.random.RandomState | None = None
    verbose: int = 0

    leaf_prices_ = view("leaves_", "prices", "Feature costs on the path to every leaf.", Floats)

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        costs: ArrayLike | None = None,
        callback: Callback | None = None,
    ) -> CostSensitiveTreeClassifier:
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
        costs : array-like of float, shape (n, n_classes), optional
            Cost, not negative, of every label for every row: a DataFrame with a column per label,
            or an array with the labels in sorted order. It replaces ``cost_matrix``.
        callback : callable, optional
            Called as ``callback(progress)`` whenever the best tree or the lower bound improves, and
            every quarter of a second, in the thread of ``fit``. The attributes of ``progress`` are
            seconds, objective, lower_bound, gap, n_nodes_explored and, if there is a forecast,
            share and seconds_left. An exception that it raises ends the search and ``fit``.

        Returns
        -------
        CostSensitiveTreeClassifier
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            If a parameter is invalid, costs are negative or have another shape, the numbers of rows
            differ, or a column cannot be read. The message names the parameter, column or row. An
            earlier fit is kept.
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
        return self._fit(X, y, sample_weight, callback, costs=costs)

    def mean_cost(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        costs: ArrayLike | None = None,
    ) -> float:
        """Mean cost of the predictions for rows, including the feature costs.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        y : array-like, shape (n,)
            Their labels, all among ``classes_`` or, if it is a mapping, in ``cost_matrix``.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative.
        costs : array-like of float, shape (n, n_classes), optional
            Cost of every label for every row. It replaces ``cost_matrix``.

        Returns
        -------
        float
            Mean per unit of weight; on the training rows, ``objective_value_`` without the penalty.

        Raises
        ------
        ValueError
            If there are no rows, a label has no costs, and as in ``fit``.
        """
        check_row_labels(X, y=y, sample_weight=sample_weight, costs=costs)
        leaves, leaf = self._located(X)
        check_some(len(leaf))
        matrix = costs_by_class(self.certificate_.parameters["cost_matrix"])
        known = leaves.labels
        if costs is None and isinstance(matrix, Mapping):
            known = np.sort(as_array(list(matrix), "cost_matrix"))
        codes = known_codes("y", y, known, len(leaf))
        if costs is None:
            table = _costs_of_errors(matrix, known, leaves.labels)[codes]
        else:
            costs = columns_by_name(costs, leaves.labels.tolist(), "costs")
            table = check_amounts("costs", costs, (len(leaf), len(leaves.labels)))
        weight = check_sample_weight(sample_weight, len(leaf))
        return leaves.mean_cost(leaf, table, weight)

    def score(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        costs: ArrayLike | None = None,
    ) -> float:
        """Minus the mean cost, so that greater is better; see ``mean_cost``.

        Parameters
        ----------
        X, y, sample_weight, costs
            As for ``mean_cost``.

        Returns
        -------
        float
            At most 0.

        Raises
        ------
        ValueError
            As ``mean_cost``.
        """
        return -self.mean_cost(X, y, sample_weight, costs=costs)

    @property
    def _score_name(self) -> str:
        return "minus the mean cost"

    def _training_data(
        self, X: Any, y: Any, sample_weight: Any, *, costs: Any = None
    ) -> CostlyData:
        check_row_labels(X, costs=costs)
        data = check_labelled_data(X, y, sample_weight)
        if costs is not None:
            shape = row_count(X), len(data.classes)
            classes = data.classes.tolist()
            why = f"one row per row of X, one column per class of {classes}"
            costs = columns_by_name(costs, classes, "costs")
            costs = check_amounts("costs", costs, shape, why=why)[data.kept]
        else:
            matrix = costs_by_class(self.cost_matrix)
            costs = _costs_of_errors(matrix, data.classes, data.classes)[data.labels]
        return CostlyData(data.X, data.labels, data.classes, data.weight, costs)

    def _objective(self) -> LabelCosts:
        return LabelCosts(shrinkage=float(self.shrinkage), feature_costs=self.feature_costs)


def _costs_of_errors(matrix: Any, true: NDArray[Any], predicted: NDArray[Any]) -> Floats:
    """Cost of predicting each of these classes for a row of each true class.

    If the matrix does not name its classes, they are the same.
    """
    n = len(predicted)
    if matrix is None:
        return 1 - np.eye(n)
    if not isinstance(matrix, Mapping):
        why = f"a row and a column per class of {predicted.tolist()}"
        return check_amounts("cost_matrix", matrix, (n, n), why=why)
    shape, place = (len(matrix), len(matrix)), {name: at for at, name in enumerate(matrix)}
    table = check_amounts("cost_matrix", list(matrix.values()), shape, why="a cost per class")
    for name in true.tolist():
        if name not in place:
            raise InvalidParameterError(f"cost_matrix lacks {name!r}, which is a class of y")
    return table[np.ix_(*([place[name] for name in of.tolist()] for of in (true, predicted)))]
