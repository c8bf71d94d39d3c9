"""``CostSensitiveTreeClassifier``: the tree of least cost of errors and of questions."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from bristlecone.data.arrays import as_array
from bristlecone.data.checks import check_sample_weight, row_count
from bristlecone.data.targets import check_amounts, check_labelled_data
from bristlecone.encoder.cuts import RankedColumns
from bristlecone.estimators.labels import ClassTreeMixin, sum_by_leaf
from bristlecone.estimators.searched import Callback, Engine, Problem, task_engine
from bristlecone.model.registry import Fields, register
from bristlecone.objectives.prices import Prices, binary_prices, column_prices, path_prices
from bristlecone.tree import Tree

__all__ = ["CostSensitiveTreeClassifier"]


class CostlyData(NamedTuple):
    """Checked rows with what every label costs them, float64 (n, n_classes)."""

    X: Any
    labels: NDArray[np.int64]
    classes: NDArray[Any]
    weight: NDArray[np.float64] | None
    costs: NDArray[np.float64]


@register
class CostSensitiveTreeClassifier(ClassTreeMixin, ClassifierMixin, BaseEstimator):
    """Classification tree of least expected cost over the binary features of the encoder.

    The cost of a row is that of the label it is given plus, with ``feature_costs``, that of the
    questions it is asked on the way to its leaf [1]_ (eq. 9).

    Parameters
    ----------
    cost_matrix : array-like of float, shape (n_classes, n_classes), or None, default=None
        Cost, not negative, of giving a row of the class of the matrix row the label of the matrix
        column, both in sorted order of the labels. None costs 1 per misclassified row.
    feature_costs : mapping, sequence or None, default=None
        What it costs to ask a row about a column of ``X`` for the first time, not negative: from
        the name or position of a column, or one entry per column. Columns that a mapping does not
        name are free. Needs a ``BinaryEncoder``, or an encoder that keeps the columns and their
        names.
    feature_discounts : mapping, sequence or None, default=None
        What a column costs in place of its ``feature_costs`` once another one of its group was
        asked about, not more than that. None, and columns not named: no discount.
    feature_groups : mapping, sequence or None, default=None
        Label of the group of a column, such as blood tests that share one sample; None for none.
    feature_origins : mapping, sequence or None, default=None
        Label of the measurement a column was made from, for ``X`` that is binary already: when one
        column of a measurement was asked about, the others are free. By default every column is a
        measurement of its own, and all its binary features are free after the first.
    max_depth : int or None, default=3
        Most questions from the root to a leaf; 0 is a single leaf. None is no limit and needs
        ``leaf_penalty > 0`` or ``max_leaf_nodes``.
    max_leaf_nodes : int or None, default=None
        Most leaves.
    min_samples_leaf : int or float, default=1
        Fewest training rows in a leaf, whatever their weights; a float between 0 and 1 is a share
        of the training rows, rounded up.
    leaf_penalty : float, default=0.0
        Added to the mean cost per leaf.
    shrinkage : float, default=0.0
        λ >= 0 of hierarchical shrinkage of ``predict_proba``, after [2]_: from the root down, every
        node counts λ pseudo-rows with the shares of its parent. Tree, labels, objective and bound
        do not depend on it.
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
        training rows. Of two equal binary features it keeps the first, whatever they cost.
    random_state : int, RandomState or None, default=None
        Accepted for uniformity; the search is deterministic and does not use it.
    verbose : int, default=0
        1 or more reports a fit at level INFO of the logger "bristlecone", else
        DEBUG.

    Attributes
    ----------
    classes_ : array, shape (n_classes,)
        Labels in sorted order.
    objective_value_ : float
        Mean cost per unit of weight plus ``leaf_penalty`` times the number of leaves.
    lower_bound_ : float
        No tree over the binary features is below this.
    gap_, relative_gap_ : float
        ``objective_value_ - lower_bound_``, and the same as a share of ``objective_value_``.
    status_ : {"optimal", "time_limit", "memory_limit", "interrupted"}
        "optimal" means optimal among trees over the ``n_binary_features_`` binary features.
    tree_ : Tree
        Structure as parallel arrays in preorder; ``feature`` counts binary features.
    leaf_labels_ : array of int, shape (n_leaves,)
        Position in ``classes_`` of what every leaf predicts, left to right. Of equally cheap
        classes it is the first.
    leaf_values_ : array of float, shape (n_leaves, n_classes)
        Training weight of every class in every leaf.
    leaf_prices_ : array of float, shape (n_leaves,)
        What the questions on the way to every leaf cost a row.
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
    .. [2] Agarwal, Tan, Ronen, Singh, Yu, "Hierarchical shrinkage: improving the accuracy and
       interpretability of tree-based methods", ICML 2022.

    Examples
    --------
    >>> from bristlecone import CostSensitiveTreeClassifier
    >>> X, y = [[0], [0], [0], [1]], ["ill", "well", "well", "well"]
    >>> tree = CostSensitiveTreeClassifier(cost_matrix=[[0, 10], [1, 0]]).fit(X, y)
    >>> tree.predict([[0], [1]]).tolist(), tree.objective_value_
    (['ill', 'well'], 0.5)
    """

    def __init__(
        self,
        *,
        cost_matrix: ArrayLike | None = None,
        feature_costs: Any = None,
        feature_discounts: Any = None,
        feature_groups: Any = None,
        feature_origins: Any = None,
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
        self.cost_matrix = cost_matrix
        self.feature_costs = feature_costs
        self.feature_discounts = feature_discounts
        self.feature_groups = feature_groups
        self.feature_origins = feature_origins
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
        costs: ArrayLike | None = None,
        callback: Callback | None = None,
    ) -> CostSensitiveTreeClassifier:
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
        costs : array-like of float, shape (n, n_classes), optional
            Cost, not negative, of giving every row every label, in sorted order of the labels; in
            place of ``cost_matrix``.
        callback : callable, optional
            Called with a :class:`~bristlecone.SearchProgress` whenever the best tree or
            the lower bound may have improved, and every quarter of a second, on the thread of
            ``fit``. An exception it raises ends the search and ``fit``.

        Returns
        -------
        CostSensitiveTreeClassifier
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            For unknown values of parameters, costs of another shape or negative, rows that do not
            fit together, and columns that cannot be read; parameter, column or row is named, and
            an earlier fit is kept.
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
        problem = self._problem(X, y, sample_weight, costs=costs)
        self._search(problem, start, callback)
        self._announce([self])
        return self

    def mean_cost(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        costs: ArrayLike | None = None,
    ) -> float:
        """Mean cost of the predictions for rows, that of the questions included.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        y : array-like, shape (n,)
            Their labels, all known from the fit.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative.
        costs : array-like of float, shape (n, n_classes), optional
            Cost of giving every row every label, in place of ``cost_matrix``.

        Returns
        -------
        float
            Per unit of weight; on the training rows ``objective_value_`` without the penalty.

        Raises
        ------
        ValueError
            For a label that is not among ``classes_``, and as in ``fit``.
        """
        leaf = self._leaf_of(X)
        values = as_array(y, "y")
        labels = np.minimum(np.searchsorted(self.classes_, values), len(self.classes_) - 1)
        unknown = self.classes_[labels] != values
        if unknown.any():
            raise ValueError(
                f"y holds {values[unknown].tolist()[0]!r}, which is not among the classes "
                f"{self.classes_.tolist()}"
            )
        table = self._costs(costs, labels, len(self.classes_))
        weight = check_sample_weight(sample_weight, len(leaf))
        paid = table[np.arange(len(leaf)), self.leaf_labels_[leaf]] + self.leaf_prices_[leaf]
        return float(np.average(paid, weights=weight))

    def _training_data(
        self, X: Any, y: Any, sample_weight: Any, *, costs: Any = None
    ) -> CostlyData:
        data = check_labelled_data(X, y, sample_weight)
        if costs is not None:
            shape = row_count(X), len(data.classes)
            why = f"one row per row of X, one column per class of {data.classes.tolist()}"
            costs = check_amounts("costs", costs, shape, why=why)[data.kept]
        paid = self._costs(costs, data.labels, len(data.classes))
        return CostlyData(data.X, data.labels, data.classes, data.weight, paid)

    def _costs(self, given: Any, labels: NDArray[np.int64], n_classes: int) -> NDArray[np.float64]:
        """Cost of every label for every row."""
        if given is not None:
            return check_amounts("costs", given, (len(labels), n_classes))
        if self.cost_matrix is None:
            return (1 - np.eye(n_classes))[labels]
        why = f"a row and a column for each of {n_classes} classes"
        return check_amounts("cost_matrix", self.cost_matrix, (n_classes, n_classes), why=why)[
            labels
        ]

    def _prices(self, encoder: Any) -> Prices | None:
        return binary_prices(
            encoder,
            self.feature_costs,
            self.feature_discounts,
            self.feature_groups,
            self.feature_origins,
        )

    def _engine(self, problem: Problem) -> Engine:
        name, task = self._priced(problem.data, self._prices(problem.encoder))
        engine = task_engine(name, task, problem.features)
        if self.feature_costs is None:
            return engine
        # What a question costs depends on those above it, which one search by sizes cannot know.
        return engine._replace(path=None)

    def _sum_task(self, data: CostlyData, columns: RankedColumns) -> tuple[str, dict[str, Any]]:
        if self.feature_costs is None:
            return self._priced(data, None)
        given = self.feature_discounts, self.feature_groups, self.feature_origins
        prices = column_prices(columns.columns, self.feature_costs, *given)
        return self._priced(data, prices.of(np.array(columns.places)))

    def _priced(self, data: CostlyData, prices: Prices | None) -> tuple[str, dict[str, Any]]:
        """The task of the engine."""
        task = {"costs": np.ascontiguousarray(data.costs), "weight": data.weight}
        if prices is not None:
            task |= {f"feature_{name}": array for name, array in prices._asdict().items()}
        return "label-costs", task

    def _set_found(self, tree: Tree, problem: Problem, solution: Any) -> None:
        super()._set_found(tree, problem, solution)
        self.leaf_prices_ = path_prices(tree, self._prices(problem.encoder))

    def _aim(self) -> str:
        asked = ", the prices of the questions asked included" if self.leaf_prices_.any() else ""
        return (
            f"the least mean cost of the labels given{asked} (van der Linden, de Weerdt and "
            "Demirović, NeurIPS 2023)"
        )

    def _best_labels(
        self, leaf: NDArray[np.int64], values: NDArray[Any], problem: Problem
    ) -> NDArray[Any]:
        data = problem.data
        return sum_by_leaf(leaf, len(values), data.costs, data.weight).argmin(axis=1)

    def _leaf_facts(self) -> list[dict[str, Any]]:
        facts = super()._leaf_facts()
        if self.leaf_prices_.any():
            for fact, price in zip(facts, self.leaf_prices_.tolist(), strict=True):
                fact["price"] = price
        return facts

    def _leaf_text(self, facts: Mapping[str, Any]) -> str:
        text = super()._leaf_text(dict(facts))
        return text + (f", price {facts['price']:.6g}" if "price" in facts else "")

    def _saved_leaves(self) -> dict[str, Any]:
        saved = super()._saved_leaves()
        saved["leaves"]["price"] = self.leaf_prices_.tolist()
        return saved

    def _read_more(self, leaves: Fields) -> None:
        self.leaf_prices_ = leaves.numbers("price")
        if self.leaf_prices_.shape != self.leaf_labels_.shape or (self.leaf_prices_ < 0).any():
            raise leaves.fail("price", "is not one amount per leaf")
