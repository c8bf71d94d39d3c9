"""``FairTreeClassifier``: the provably best tree that treats two groups alike."""

from __future__ import annotations

import time
import warnings
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import Tags

from bristlecone.data.checks import check_choice, check_real
from bristlecone.data.targets import check_labelled_data, check_two_classes, check_two_groups
from bristlecone.encoder.cuts import RankedColumns
from bristlecone.errors import BristleconeWarning, InvalidParameterError
from bristlecone.estimators.labels import ClassTreeMixin, read_labels, saved_labels
from bristlecone.estimators.searched import Callback, Engine, Problem, task_engine
from bristlecone.model.registry import Fields, register
from bristlecone.search.cuts import SklearnTree
from bristlecone.search.solve_front import solve_front
from bristlecone.tree import Tree

__all__ = ["FairTreeClassifier"]

_CONSTRAINTS = ("demographic-parity", "equality-of-opportunity")


class GroupedData(NamedTuple):
    """Checked rows with the group of each, int64 (n,) of 0 and 1; None when there are none."""

    X: Any
    labels: NDArray[np.int64]
    classes: NDArray[Any]
    weight: NDArray[np.float64] | None
    group: NDArray[np.int64] | None
    groups: NDArray[Any]


@register
class FairTreeClassifier(ClassTreeMixin, ClassifierMixin, BaseEstimator):
    """Classification tree of fewest errors among those that treat two groups alike.

    Two classes; the positive one is the second of ``classes_``. The rates of positive predictions
    of the two groups differ by at most ``delta`` on the training rows [1]_ (eqs. 66–70).

    Parameters
    ----------
    constraint : {"demographic-parity", "equality-of-opportunity"}, default="demographic-parity"
        Over which rows the rates are taken: all of a group, or those of its positive class.
    delta : float, default=0.05
        Largest difference of the two rates, between 0 and 1.
    sensitive_feature : str, int or None, default=None
        Column of ``X``, by name or position, that takes one value per group. None: the groups are
        passed to ``fit``. The column stays a feature; to keep the tree from asking about it, leave
        it out of ``X`` and pass it to ``fit``.
    max_depth : int or None, default=3
        Most questions from the root to a leaf; 0 is a single leaf. None is no limit and needs
        ``leaf_penalty > 0`` or ``max_leaf_nodes``.
    max_leaf_nodes : int or None, default=None
        Most leaves.
    min_samples_leaf : int or float, default=1
        Fewest training rows in a leaf, whatever their weights; a float between 0 and 1 is a share
        of the training rows, rounded up.
    leaf_penalty : float, default=0.0
        Added to the share of misclassified rows per leaf.
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
        training rows. Any transformer will do whose output is two-dimensional and holds nothing
        but 0 and 1, and which has ``get_feature_names_out``.
    random_state : int, RandomState or None, default=None
        Accepted for uniformity; the search is deterministic and does not use it.
    verbose : int, default=0
        1 or more reports a fit at level INFO of the logger "bristlecone", else DEBUG.

    Attributes
    ----------
    classes_ : array, shape (2,)
        Labels in sorted order; the second is the positive one.
    groups_ : array, shape (2,)
        Groups in sorted order; empty when none were given.
    group_rates_ : array of float, shape (2,)
        Share of either group that is predicted to be positive, among the training rows that
        ``constraint`` compares; empty when no groups were given.
    objective_value_ : float
        Share of the training weight that is misclassified plus ``leaf_penalty`` times the number
        of leaves; inf when infeasible.
    lower_bound_ : float
        No tree over the binary features that satisfies the constraint is below this.
    gap_, relative_gap_ : float
        ``objective_value_ - lower_bound_``, and the same as a share of ``objective_value_``.
    status_ : {"optimal", "time_limit", "memory_limit", "interrupted", "infeasible"}
        "optimal" means optimal among trees over the ``n_binary_features_`` binary features.
        "infeasible": none satisfies the constraint; there is no ``tree_``, and predictions raise
        InfeasibleError.
    tree_ : Tree
        Structure as parallel arrays in preorder; ``feature`` counts binary features.
    leaf_labels_ : array of int, shape (n_leaves,)
        Position in ``classes_`` of what every leaf predicts, left to right: not always the more
        frequent class.
    leaf_values_ : array of float, shape (n_leaves, 2)
        Training weight of either class in every leaf.
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
    >>> from bristlecone import FairTreeClassifier
    >>> X, y = [[0], [0], [1], [1]], [0, 1, 1, 1]
    >>> tree = FairTreeClassifier(delta=0.0).fit(X, y, sensitive=["a", "b", "a", "b"])
    >>> tree.predict(X).tolist(), tree.group_rates_.tolist(), tree.objective_value_
    ([1, 1, 1, 1], [1.0, 1.0], 0.25)
    """

    def __init__(
        self,
        *,
        constraint: str = "demographic-parity",
        delta: float = 0.05,
        sensitive_feature: str | int | None = None,
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
        self.constraint = constraint
        self.delta = delta
        self.sensitive_feature = sensitive_feature
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
        sensitive: ArrayLike | None = None,
        callback: Callback | None = None,
    ) -> FairTreeClassifier:
        """Find the best tree.

        Parameters
        ----------
        X : DataFrame (pandas, polars, ...) or array, shape (n, n_features)
            Numbers, booleans, categories; missing values as the encoder allows.
        y : array-like, shape (n,)
            Labels of at most two classes: numbers, texts or booleans.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative; rows of weight zero are left out. Integer
            weights equal repetition of rows (with ``min_samples_leaf=1``).
        sensitive : array-like, shape (n,), optional
            Group of every row, of two values; in place of ``sensitive_feature``. Without either,
            nothing constrains the tree, and a warning says so.
        callback : callable, optional
            Called with a :class:`~bristlecone.SearchProgress` whenever the best tree or
            the lower bound may have improved, and every quarter of a second, on the thread of
            ``fit``. An exception it raises ends the search and ``fit``.

        Returns
        -------
        FairTreeClassifier
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            For unknown values of parameters, more than two classes, groups that are not two or
            that have no row to compare, rows that do not fit together, and columns that cannot be
            read; parameter, column or row is named, and an earlier fit is kept.
        InfeasibleError
            When a limit or Ctrl-C, which ``status_`` names, stopped the search before a tree that
            satisfies the constraint was met.
        KeyboardInterrupt
            At a second Ctrl-C within a second; an earlier fit is kept.

        Warns
        -----
        BristleconeWarning
            When no groups are given.
        SearchLimitWarning
            When a limit or Ctrl-C stopped the search; the gap is given.
        SearchCostWarning
            At the start of a search without ``time_limit`` that is forecast to take more than ten
            minutes.
        InfeasibleWarning
            When no tree satisfies the constraint.
        ConstantFeatureWarning
            When every column of ``X`` takes a single value.
        """
        start = time.perf_counter()
        problem = self._problem(X, y, sample_weight, sensitive=sensitive)
        self._search(problem, start, callback)
        self._announce([self])
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _warn_of_data(self, stacklevel: int) -> None:
        super()._warn_of_data(stacklevel + 1)
        if not self._is_treeless() and not self.groups_.size:
            warnings.warn(
                "no groups are given (sensitive_feature, or sensitive of fit): nothing "
                f"constrains the tree, {self.constraint!r} may not hold",
                BristleconeWarning,
                stacklevel=stacklevel,
            )

    def _check_parameters(self) -> None:
        check_choice("constraint", self.constraint, _CONSTRAINTS)
        check_real("delta", self.delta, 0.0)
        if self.delta > 1:
            raise InvalidParameterError(f"delta must be at most 1; got {self.delta!r}")
        super()._check_parameters()

    def _training_data(
        self, X: Any, y: Any, sample_weight: Any, *, sensitive: Any = None
    ) -> GroupedData:
        data = check_labelled_data(X, y, sample_weight)
        check_two_classes(data.classes)
        groups = check_two_groups(X, sensitive, self.sensitive_feature, data.kept, "a constraint")
        if groups is None:
            return GroupedData(data.X, *data[1:4], None, np.array([]))
        if self.constraint == "equality-of-opportunity":
            positive = np.unique(groups.codes[data.labels == len(data.classes) - 1])
            if len(positive) < 2:
                absent = [side for side in (0, 1) if side not in positive]
                raise ValueError(
                    f"{groups.name}: group {groups.values.tolist()[absent[0]]!r} has no row of the "
                    f"positive class {data.classes.tolist()[-1]!r}, whose rates are to be compared"
                )
        return GroupedData(data.X, *data[1:4], groups.codes, groups.values)

    def _engine(self, problem: Problem) -> Engine:
        data = problem.data
        if data.group is None:
            return task_engine(*self._sum_task(data), problem.features)
        task = {"labels": data.labels, "weight": data.weight}
        task |= {"group": data.group, "delta": float(self.delta)}
        return Engine(partial(solve_front, self.constraint, task, problem.features))

    def _sum_task(
        self, data: GroupedData, columns: RankedColumns | None = None
    ) -> tuple[str, dict[str, Any]]:
        n_classes = len(data.classes)
        task = {"labels": data.labels, "n_classes": n_classes, "weight": data.weight}
        return "accuracy", task

    def _sklearn_tree(self, data: GroupedData) -> SklearnTree:
        return SklearnTree(DecisionTreeClassifier(), data.labels, data.weight, by_label=True)

    def _set_found(self, tree: Tree, problem: Problem, solution: Any) -> None:
        super()._set_found(tree, problem, solution)
        data = problem.data
        self.groups_ = data.groups
        self.group_rates_ = np.array([])
        if data.group is None:
            return
        leaf = tree.leaf_index(problem.features)
        predicted = self.leaf_labels_[leaf]
        compared = np.ones(len(leaf), dtype=bool)
        if self.constraint == "equality-of-opportunity":
            compared = data.labels == 1
        rates = []
        for side in (0, 1):
            rows = compared & (data.group == side)
            weight = None if data.weight is None else data.weight[rows]
            rates.append(np.average(predicted[rows], weights=weight))
        self.group_rates_ = np.array(rates)

    def _aim(self) -> str:
        aim = "the least share of misclassified weight"
        if not self.groups_.size:
            return aim
        fitted = self._fitted_parameters()
        one, other = self.groups_.tolist()
        rows = {
            "demographic-parity": "the rows",
            "equality-of-opportunity": "the rows of the positive class",
        }[fitted["constraint"]]
        return (
            f"{aim}, among trees for which the shares of {rows} of {one} and of {other} that are "
            f"predicted to be positive differ by at most {fitted['delta']:g} (van der Linden, de "
            "Weerdt and Demirović, NeurIPS 2023)"
        )

    def _saved_leaves(self) -> dict[str, Any]:
        saved = super()._saved_leaves()
        saved["leaves"]["rates"] = self.group_rates_.tolist()
        saved["leaves"]["groups"] = saved_labels(self.groups_)
        return saved

    def _read_more(self, leaves: Fields) -> None:
        self.group_rates_ = leaves.numbers("rates")
        self.groups_ = read_labels(leaves.object("groups"), empty=True)
        if self.group_rates_.shape != self.groups_.shape or len(self.groups_) not in (0, 2):
            raise leaves.fail("rates", "are not those of two groups")
