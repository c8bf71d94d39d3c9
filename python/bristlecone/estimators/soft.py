"""``SoftSurvivalTree``: soft oblique splits, a full survival model in every leaf."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from bristlecone.data.checks import (
    TrainingData,
    check_choice,
    check_integer,
    check_real,
    check_sample_weight,
    check_seed,
    check_training_data,
    thread_count,
)
from bristlecone.data.groups import without_group
from bristlecone.data.targets import check_two_groups
from bristlecone.encoder.design import DesignEncoder
from bristlecone.errors import InvalidParameterError
from bristlecone.estimators import soft_saving as saving
from bristlecone.estimators.soft_announce import announce
from bristlecone.estimators.soft_predictions import SoftPredictions
from bristlecone.leaves.survival import baseline_hazard
from bristlecone.model.registry import Fields, register
from bristlecone.soft import routing
from bristlecone.soft.curve import cumulative_hazard
from bristlecone.soft.models import MODELS, LeafModel, Sample
from bristlecone.soft.training.balance import leaf_shares
from bristlecone.soft.training.fairness import Fairness, gini_mix, pair_distance, quadrature
from bristlecone.soft.training.initialise import initial
from bristlecone.soft.training.joint import Trained, fit_joint
from bristlecone.soft.training.nodec import fit_nodec
from bristlecone.soft.training.problem import Problem, Rows
from bristlecone.soft.training.rows import distinct_rows, positive_times
from bristlecone.soft.tree import SoftTree

__all__ = ["SoftSurvivalTree"]

Floats = NDArray[np.float64]

# 2^10 leaves are more than any data fill.
_MOST_DEPTH = 10


class _Training(NamedTuple):
    """The problem, what turns its parameters into the user's, and the rows as they came."""

    problem: Problem
    columns: NDArray[np.int64]  # place in the problem of every design column
    centre: Floats
    spread: Floats
    log_unit: float
    mean_event: float
    design: Floats
    weight: Floats


@register
class SoftSurvivalTree(SoftPredictions, BaseEstimator):
    """Survival tree with soft multivariate splits and a survival model in every leaf.

    Consolo, Amaldi and Carrizosa, "Soft decision trees for survival analysis", EJOR 331(3), 2026:
    at every split a row goes left with a probability that is logistic in its features; in
    every leaf its survival curve depends on them, too. A prediction is the curve of one leaf, the
    one at the end of the more probable branches.

    Parameters
    ----------
    depth : int, default=2
        Splits from the root to each leaf; 0 is a single leaf.
    leaf : str, default="log-logistic"
        Survival model of the leaves: "log-logistic", "exponential", "weibull", "spline-ph" or
        "spline-po" (natural cubic splines of log time under proportional hazards or odds, kept
        monotone).
    n_knots : int, default=2
        Internal knots of the splines, at percentiles of the uncensored log times.
    init : {"kmeans", "random"}, default="kmeans"
        How a restart begins: clusters of the rows, or random hyperplanes.
    solver : {"nodec", "joint"}, default="nodec"
        "nodec" trains one subtree at a time and reassigns rows where a split is unbalanced,
        then refines all parameters; "joint" does only the last.
    n_restarts : int, default=5
        Restarts; of those whose leaves hold ``min_leaf_share``, or else of all, the one of least
        objective is kept.
    l2 : float, default=0.1
        Ridge penalty λ of the leaves' weights and shapes: λ/2 of the square of their mean, plus
        ``pooling`` times λ/2 of the squares of the leaves' departures from it.
    pooling : float or None, default=3.0
        How much leaves are drawn together. Leaves that are alike cost no more than a single one:
        it does not pay to empty them. None: every leaf has a penalty λ/2 ‖β‖² of its own.
    split_l2 : float, default=0.002
        Ridge penalty of the splits' weights. Without it splits grow steep and follow single
        rows; with much of it they stay level and all rows share a leaf.
    l1 : float, default=0.0
        Lasso penalty of the splits' weights; see ``n_features_used_``.
    balance : float, default=0.01
        Weight of the penalty on uneven leaves, which is 0 where all hold the same weight and
        grows without bound as one empties [1]_.
    min_leaf_share : float, default=0.05
        Share of the training weight that every leaf should hold, at most half of an even share
        (1/(2 · leaves)): restarts that do so come first, and a fit without one warns.
    fairness_penalty : float, default=0.0
        ρ of the distance between the groups' curves, a sum over pairs of rows: a multiple of one
        over the product of the groups' sizes is a good measure. Needs groups.
    fairness_group : str or None, default=None
        Name of a two-valued column of ``X``, which is then no feature and may be absent at
        prediction. None: the groups, if any, are passed to ``fit``.
    max_categories : int or None, default=100
        Most levels per categorical column that get a weight of their own; the rest are merged.
    handle_unknown : {"ignore", "error"}, default="ignore"
        What a prediction does with a category not seen in training: it matches no level, or
        it raises.
    n_macro : int, default=10
        Most passes of "nodec" over the splits.
    max_iter : int, default=1000
        Most steps of L-BFGS over all parameters.
    tol : float, default=1e-4
        Largest component of the gradient where that L-BFGS may stop.
    n_jobs : int or None, default=None
        Processes that share the restarts: None is one, -1 all. The fit does not depend on it.
    random_state : int, RandomState or None, default=None
        Seeds the restarts.
    verbose : int, default=0
        1 or more reports a fit at level INFO of the logger "bristlecone".

    Attributes
    ----------
    objective_value_ : float
        Mean negative log-likelihood under the soft memberships (per unit of weight, time in the
        user's unit) plus penalties.
    trace_ : list of float
        Objective after every accepted step of the restart that was kept; it never rises.
    restart_objectives_ : array of float, shape (n_restarts,)
        Objective of every restart.
    converged_ : bool
        Whether the kept restart ended at a minimum.
    tree_ : SoftTree
        Nodes in preorder; weights over features scaled to [0, 1].
    leaf_shares_ : array of float, shape (n_leaves,)
        Share of the training weight at the end of the most probable paths to each leaf.
    n_effective_leaves_ : float
        Number of equal leaves of the same entropy: exp(−Σ share log share).
    coef_, intercept_, leaf_coef_, leaf_intercept_, leaf_parameters_
        The parameters in the user's units; ``design_names_`` names the columns.
    n_leaves_, depth_ : int
        Size of the tree.
    features_used_, n_features_used_
        Columns that a split weighs; at prediction those that a leaf weighs are needed too.
    fairness_distance_ : float
        Mean distance ∫ (S_i − S_j)² dt of two training rows of different groups; only with a
        group. ``leaf_gini_`` is the Gini mix of the leaves, plain and weighted.
    encoder_ : DesignEncoder
        Makes the design.
    n_features_in_, feature_names_in_
        Columns of ``X`` without the group, and their names if they had names.
    unique_times_, event_times_ : array of float
        Distinct training times, and those with an event.
    fit_time_ : float
        Seconds ``fit`` took.

    Notes
    -----
    Features are scaled to [0, 1] for the tree and standardised for training; the penalties
    are on the weights of standardised features, intercepts are free. Numbers that are missing
    become the mean. A fit takes O(n · (p + leaves)) per step. The paper's objective is that of
    ``pooling=None, balance=0, split_l2=0, min_leaf_share=0``.

    References
    ----------
    .. [1] Frosst and Hinton, "Distilling a neural network into a soft decision tree", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from bristlecone import SoftSurvivalTree
    >>> random = np.random.default_rng(0)
    >>> X = random.normal(size=(200, 2))
    >>> time = random.weibull(2.0, size=200) * np.exp(X[:, 0] * (X[:, 1] > 0))
    >>> tree = SoftSurvivalTree(depth=1, random_state=0).fit(X, (np.ones(200, bool), time))
    >>> tree.n_leaves_, tree.predict_median(X).shape
    (2, (200,))
    """

    def __init__(
        self,
        *,
        depth: int = 2,
        leaf: str = "log-logistic",
        n_knots: int = 2,
        init: str = "kmeans",
        solver: str = "nodec",
        n_restarts: int = 5,
        l2: float = 0.1,
        pooling: float | None = 3.0,
        split_l2: float = 0.002,
        l1: float = 0.0,
        balance: float = 0.01,
        min_leaf_share: float = 0.05,
        fairness_penalty: float = 0.0,
        fairness_group: str | None = None,
        max_categories: int | None = 100,
        handle_unknown: str = "ignore",
        n_macro: int = 10,
        max_iter: int = 1000,
        tol: float = 1e-4,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.depth = depth
        self.leaf = leaf
        self.n_knots = n_knots
        self.init = init
        self.solver = solver
        self.n_restarts = n_restarts
        self.l2 = l2
        self.pooling = pooling
        self.split_l2 = split_l2
        self.l1 = l1
        self.balance = balance
        self.min_leaf_share = min_leaf_share
        self.fairness_penalty = fairness_penalty
        self.fairness_group = fairness_group
        self.max_categories = max_categories
        self.handle_unknown = handle_unknown
        self.n_macro = n_macro
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any,
        sample_weight: ArrayLike | None = None,
        *,
        sensitive: ArrayLike | None = None,
    ) -> SoftSurvivalTree:
        """Train the tree.

        Parameters
        ----------
        X : DataFrame (pandas, polars, ...) or array, shape (n, n_features)
            Numbers, booleans, categories; missing values.
        y : structured array, DataFrame or pair
            A structured array of one boolean (event) and one float field (time), a DataFrame with
            columns ``event`` and ``time`` (or exactly one two-valued and one numeric column), or
            a pair ``(event, time)``. Durations count in days; where a DataFrame has dates
            ``start`` and ``stop``, or ``entry`` and ``exit``, the time is the days between them.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative; rows of weight zero are left out. Integer
            weights equal repetition of rows.
        sensitive : array-like, shape (n,), optional
            Group of every row, of two values; in place of ``fairness_group``.

        Returns
        -------
        SoftSurvivalTree
            The estimator itself.

        Raises
        ------
        ValueError, TypeError
            For unknown values of parameters, groups that are missing or not two, rows that do
            not fit together, delayed entry, and columns that cannot be read; parameter, column
            or row is named, and an earlier fit is kept.

        Warns
        -----
        FitConvergenceWarning
            When the minimisation ended before a minimum; the parts are named.
        EmptyLeafWarning
            When a leaf holds less of the training weight than ``min_leaf_share``.
        ConstantFeatureWarning
            When a column of ``X`` takes a single value.
        BristleconeWarning
            When a time is 0: half the least positive time takes its place.
        """
        start = time.perf_counter()
        self._check_parameters()
        data = check_training_data(without_group(X, self.fairness_group), y, sample_weight)
        if data.entry is not None:
            raise ValueError("y has delayed entry, which the soft tree does not support")
        group = self._groups(X, sensitive, data.kept)
        times, replaced = positive_times(data.time)
        encoder = DesignEncoder(self.max_categories, self.handle_unknown).fit(data.X, data.weight)
        training = self._training(encoder, data, times, group)
        trained = self._restarts(training.problem)
        best = self._chosen(training.problem, trained)
        self._set_solution(training, best, encoder, data, times)
        shift = training.mean_event * training.log_unit
        self.objective_value_ = best.value + shift
        self.trace_ = [value + shift for value in best.trace]
        self.restart_objectives_ = np.array([restart.value for restart in trained]) + shift
        self.converged_ = best.converged
        self._set_fairness(training.design, group, training.weight)
        self.fit_time_ = time.perf_counter() - start
        announce(self, training.problem, best, replaced, self._floor)
        return self

    @property
    def _floor(self) -> float:
        """Share of the weight that every leaf should hold."""
        return min(float(self.min_leaf_share), 1 / (2 * routing.n_leaves(self.depth)))

    def _chosen(self, problem: Problem, trained: list[Trained]) -> Trained:
        """Restart of least objective, first among those whose leaves hold their share."""

        def rank(restart: Trained) -> tuple[bool, float]:
            logit = restart.parameters.splits @ problem.rows.design
            shares = leaf_shares(logit, problem.rows.weight)
            return bool(shares.min() < self._floor), restart.value

        return min(trained, key=rank)

    def _groups(
        self, X: Any, sensitive: ArrayLike | None, kept: NDArray[np.bool_] | None
    ) -> NDArray[np.bool_] | None:
        """Whether each kept row is of the greater of the two groups; None without groups."""
        groups = check_two_groups(
            X, sensitive, self.fairness_group, kept, "fairness", "fairness_group"
        )
        if groups is not None:
            return groups.codes == 1
        if self.fairness_penalty > 0:
            raise ValueError("fairness_penalty needs groups: fairness_group, or sensitive of fit")
        return None

    def fairness(
        self, X: Any, sensitive: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> dict[str, float]:
        """How differently two groups are treated.

        Parameters
        ----------
        X : DataFrame or array, shape (n, n_features_in_)
            Rows with the columns of the fit.
        sensitive : array-like, shape (n,)
            Group of every row; two values.
        sample_weight : array-like of float, shape (n,), optional
            Row weights.

        Returns
        -------
        dict
            ``distance``: mean of ∫ (S_i − S_j)² dt over pairs of rows of different groups, from
            the first to the last training time. ``gini`` and ``gini_weighted``: Gini mix of the
            leaves, 1 where the groups are evenly mixed, 0 where every leaf is of one group.

        Raises
        ------
        ValueError
            When ``sensitive`` has not two values or another length than ``X``.
        """
        design = self._checked_rows(X)
        groups = check_two_groups(X, sensitive, None, None, "fairness")
        if groups is None:
            raise ValueError("fairness compares two groups; sensitive is None")
        inside = groups.codes == 1
        weight = check_sample_weight(sample_weight, len(design))
        return self._fairness_of(design, inside, np.ones(len(design)) if weight is None else weight)

    def _fairness_of(
        self, design: Floats, group: NDArray[np.bool_], weight: Floats
    ) -> dict[str, float]:
        leaf, linear = self._located_rows(design)
        at, step = quadrature(self.unique_times_[0], self.unique_times_[-1])
        survival = np.exp(
            -cumulative_hazard(self._model, linear, self._shape[leaf], at, self._log_unit)
        )
        inside, outside = weight * group, weight * ~group
        total = pair_distance(survival, inside, outside, step)[0]
        plain, weighted = gini_mix(leaf, group, weight)
        return {
            "distance": total / float(inside.sum() * outside.sum()),
            "gini": plain,
            "gini_weighted": weighted,
        }

    def _training(
        self,
        encoder: DesignEncoder,
        data: TrainingData,
        times: Floats,
        group: NDArray[np.bool_] | None,
    ) -> _Training:
        """The problem over distinct rows in an order of their own.

        Neither the order of the rows nor that of named columns can matter then, and whole
        weights equal repetition.
        """
        design = encoder.transform(data.X)
        weight = np.ones(len(times)) if data.weight is None else data.weight
        columns = np.arange(design.shape[1])
        if encoder.named_:
            columns = np.argsort(np.array(encoder.names, dtype=object), kind="stable")
        keys = [*design.T[columns], data.event.astype(np.float64), times]
        if group is not None:
            keys.append(group.astype(np.float64))
        rows, total = distinct_rows(keys, weight)
        scaled, event = design[rows][:, columns], data.event[rows]
        share = total / total.sum()
        centre = share @ scaled
        spread = np.sqrt(share @ (scaled - centre) ** 2)
        spread[spread == 0] = 1.0
        y = np.log(times[rows])
        log_unit = float(share[event] @ y[event] / share[event].sum())
        sample = Sample(y - log_unit, event, share)
        model = MODELS[self.leaf].prepare(sample, self.n_knots)
        matrix = np.vstack([((scaled - centre) / spread).T, np.ones(len(rows))])
        problem = Problem(
            rows=Rows(matrix, model.clock(sample.y), event.astype(np.float64), share),
            scale=spread,
            model=model,
            depth=self.depth,
            l2=float(self.l2),
            split_l2=float(self.split_l2),
            l1=float(self.l1),
            fairness=self._fairness_term(model, times, log_unit, group, rows, total),
            pooling=None if self.pooling is None else float(self.pooling),
            balance=float(self.balance),
        )
        place = np.empty(len(columns), dtype=np.int64)
        place[columns] = np.arange(len(columns))
        return _Training(
            problem, place, centre, spread, log_unit, float(share @ event), design, weight
        )

    def _fairness_term(
        self,
        model: LeafModel,
        times: Floats,
        log_unit: float,
        group: NDArray[np.bool_] | None,
        rows: NDArray[np.int64],
        weight: Floats,
    ) -> Fairness | None:
        if group is None or self.fairness_penalty == 0:
            return None
        at, step = quadrature(float(times.min()), float(times.max()))
        return Fairness(
            rho=float(self.fairness_penalty),
            inside=weight * group[rows],
            outside=weight * ~group[rows],
            clock=model.clock(np.log(at) - log_unit),
            step=step,
            mixture=self.solver == "joint",
        )

    def _restarts(self, problem: Problem) -> list[Trained]:
        random = check_random_state(self.random_state)
        seeds = random.randint(np.iinfo(np.int32).max, size=self.n_restarts)
        if self.depth == 0 or problem.width == 1:
            seeds = seeds[:1]  # nothing to be random about
        return list(
            Parallel(n_jobs=self.n_jobs)(
                delayed(_restart)(
                    problem,
                    self.init,
                    self.solver,
                    int(seed),
                    self.n_macro,
                    self.max_iter,
                    self.tol,
                )
                for seed in seeds
            )
        )

    def _set_solution(
        self,
        training: _Training,
        best: Trained,
        encoder: DesignEncoder,
        data: TrainingData,
        times: Floats,
    ) -> None:
        at, place = best.parameters, training.columns

        def in_design(weights: Floats) -> Floats:
            scaled = weights[:, :-1] / training.spread
            intercept = weights[:, -1] - scaled @ training.centre
            return np.ascontiguousarray(np.column_stack([scaled[:, place], intercept]))

        splits = in_design(at.splits)
        tree = SoftTree.grown(
            self.depth,
            np.ascontiguousarray(splits[:, :-1]),
            np.ascontiguousarray(splits[:, -1]),
            training.design,
            training.weight,
        )
        self.baseline_ = baseline_hazard(data._replace(time=times))
        self.encoder_ = encoder
        self._model = training.problem.model
        self._linear = in_design(at.linear)
        self._shape = np.ascontiguousarray(at.shape)
        self._log_unit = training.log_unit
        self.tree_ = tree
        leaf = tree.leaf_index(training.design)
        self._set_leaf_facts(leaf, data.event, times, training.weight)

    def _set_fairness(
        self, design: Floats, group: NDArray[np.bool_] | None, weight: Floats
    ) -> None:
        for name in ("fairness_distance_", "leaf_gini_"):
            self.__dict__.pop(name, None)
        if group is not None:
            found = self._fairness_of(design, group, weight)
            self.fairness_distance_ = found["distance"]
            self.leaf_gini_ = found["gini"], found["gini_weighted"]

    def _tree_rows(self, X: Any) -> Floats:
        weighed = (self.tree_.weights != 0).any(axis=0) | (self._linear[:, :-1] != 0).any(axis=0)
        return self.encoder_.transform(without_group(X, self.fairness_group), weighed)

    def _checked_rows(self, X: Any) -> Floats:
        self._check_fitted()
        return self._tree_rows(X)

    def _check_parameters(self) -> None:
        check_integer("depth", self.depth, 0)
        if self.depth > _MOST_DEPTH:
            raise InvalidParameterError(f"depth must be at most {_MOST_DEPTH}; got {self.depth!r}")
        check_choice("leaf", self.leaf, tuple(MODELS))
        check_integer("n_knots", self.n_knots, 0)
        check_choice("init", self.init, ("kmeans", "random"))
        check_choice("solver", self.solver, ("nodec", "joint"))
        check_integer("n_restarts", self.n_restarts, 1)
        for name in ("l2", "split_l2", "l1", "balance", "fairness_penalty", "tol"):
            check_real(name, getattr(self, name), 0.0)
        check_real("pooling", self.pooling, 0.0, optional=True)
        check_real("min_leaf_share", self.min_leaf_share, 0.0)
        check_integer("max_categories", self.max_categories, 1, optional=True)
        check_choice("handle_unknown", self.handle_unknown, ("ignore", "error"))
        check_integer("n_macro", self.n_macro, 0)
        check_integer("max_iter", self.max_iter, 1)
        check_seed("random_state", self.random_state)
        if not isinstance(self.verbose, bool):
            check_integer("verbose", self.verbose, 0)
        thread_count(self.n_jobs)
        if not isinstance(self.fairness_group, str | None):
            raise InvalidParameterError(
                "fairness_group must be the name of a column of X or None; got a "
                f"{type(self.fairness_group).__name__}: groups of rows are passed to fit, as "
                "sensitive"
            )

    def _saved_fields(self) -> dict[str, Any]:
        return saving.fields(self)

    def _read_fields(self, fields: Fields) -> None:
        saving.read_fields(self, fields)

    def _saved_tree(self) -> dict[str, Any]:
        return saving.tree_fields(self.tree_)

    def _read_tree(self, fields: Fields) -> SoftTree:  # type: ignore[override]
        return saving.read_tree(fields, self.depth, len(self.encoder_.design_))

    def _saved_leaves(self) -> dict[str, Any]:
        return saving.leaves(self)

    def _read_leaves(self, fields: Fields) -> None:
        saving.read_leaves(self, fields)


def _restart(
    problem: Problem, init: str, solver: str, seed: int, n_macro: int, max_iter: int, tol: float
) -> Trained:
    """One restart; a function of its arguments, whichever process runs it."""
    # One thread: the matrices are narrow, and its sums are the same on every machine load.
    with threadpool_limits(limits=1):
        start = initial(problem, init, np.random.RandomState(seed))
        if solver == "joint" or problem.depth == 0:
            return fit_joint(problem, start, max_iter=max_iter, tol=tol)
        return fit_nodec(problem, start, n_macro=n_macro, max_iter=max_iter, tol=tol)
