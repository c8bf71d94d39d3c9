"""``OptimalSurvivalTree``: the provably best survival tree over a set of binary features."""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone

from bristlecone import _core
from bristlecone._cost import affordable, allowance, smaller_setting
from bristlecone._encoded import EncodedTreeMixin, binary_features
from bristlecone._objectives import LEAF_CURVES, OBJECTIVES, Objective
from bristlecone._searched import SearchedTreeMixin, report, reporter
from bristlecone._survival import SurvivalTreeMixin
from bristlecone.encoder import BinaryEncoder
from bristlecone.errors import InvalidParameterError, SearchCostWarning, SearchLimitWarning
from bristlecone.search import SearchCost, SearchProgress, readable_bytes, readable_seconds
from bristlecone.serialise import Fields, register
from bristlecone.tree import Tree
from bristlecone.validation import (
    TrainingData,
    check_choice,
    check_integer,
    check_real,
    check_row_losses,
    check_seed,
    check_training_data,
    thread_count,
)

__all__ = ["OptimalSurvivalTree"]

logger = logging.getLogger(__name__)

Found = TypeVar("Found")


class _Problem(NamedTuple):
    """Training rows with the fitted encoder and the binary features it made of them."""

    data: TrainingData
    encoder: Any
    features: NDArray[np.uint8]


@register
class OptimalSurvivalTree(EncodedTreeMixin, SearchedTreeMixin, SurvivalTreeMixin, BaseEstimator):
    """Survival tree of least loss among all trees over the binary features of the encoder.

    Parameters
    ----------
    objective : {"likelihood", "brier"}, default="likelihood"
        Loss of a leaf. "likelihood": saturated minus fitted log-likelihood of a proportional
        hazards model with one relative hazard θ per leaf and the Nelson–Aalen estimate of the
        training rows as the baseline [1]_ (eq. 20), [2]_. "brier": integrated Brier score of the
        leaf's survival curve over [0, last time], weighted by the inverse probability of
        censoring [3]_ (eqs. 1–2).
    max_depth : int or None, default=3
        Most questions from the root to a leaf; 0 is a single leaf. None is no limit and needs
        ``leaf_penalty > 0`` or ``max_leaf_nodes``.
    max_leaf_nodes : int or None, default=None
        Most leaves.
    min_samples_leaf : int, default=1
        Fewest training rows in a leaf, whatever their weights.
    leaf_penalty : float, default=0.0
        Added to the mean loss per leaf.
    leaf_curve : {"auto", "proportional", "kaplan-meier", "brier-optimal"}, default="auto"
        Curve of a leaf. With "likelihood" it is for predictions only: "proportional" (which is
        "auto") is exp(−θΛ) with the baseline Λ, "kaplan-meier" the leaf's own estimate. With
        "brier" it is what is scored: "kaplan-meier" (which is "auto"), or "brier-optimal", the
        non-increasing step function of least Brier score on the leaf, never worse.
    time_grid : array-like of float, shape (n_times,), or None, default=None
        Coarser times for "brier", strictly ascending: the time of a training row is moved up to the
        next one of the grid, and a row beyond the last is censored there. This changes the
        objective: the optimum, its value, its bound and the curves are those of the grid.
    time_limit : float or None, default=None
        Seconds after which the search stops with the best tree so far.
    memory_limit : int or None, default=None
        Bytes the tables of the search may take; None is 600 MiB. With less it is slower, and with
        too little for any table it stops likewise.
    n_jobs : int or None, default=None
        Threads: None is one, -1 all. The tree of a completed search does not depend on it.
    encoder : "auto" or transformer, default="auto"
        Turns ``X`` into binary features; "auto" is ``BinaryEncoder()``. A clone is fitted to the
        training rows. Any transformer will do whose output is two-dimensional and holds nothing
        but 0 and 1, and which has ``get_feature_names_out``.
    random_state : int, RandomState or None, default=None
        Accepted for uniformity; the search is deterministic and does not use it.
    verbose : int, default=0
        1 or more reports a fit at level INFO of the logger "bristlecone.optimal", else DEBUG.

    Attributes
    ----------
    objective_value_ : float
        Mean loss per unit of weight plus ``leaf_penalty`` times the number of leaves.
    lower_bound_ : float
        No tree over the binary features is below this.
    gap_, relative_gap_ : float
        ``objective_value_ - lower_bound_``, and the same as a share of ``objective_value_``.
    guarantee_ : float
        How much better than this tree another one can be at most: ``gap_`` or, when ``status_`` is
        "reference_optimal", ``reference_loss_`` if that is less.
    status_ : {"optimal", "reference_optimal", "time_limit", "memory_limit", "interrupted"}
        "optimal" means optimal among trees over the ``n_binary_features_`` binary features;
        "reference_optimal" that the search ended, but left out what a reference model does worse.
    reference_loss_ : float or None
        Mean of ``reference_loss``, None for a fit without.
    tree_ : Tree
        Structure as parallel arrays in preorder; ``feature`` counts binary features.
    leaf_statistics_ : tuple of LeafStatistics
        Rows, events, θ and curves of every leaf, left to right.
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
    unique_times_, event_times_ : array of float
        Distinct training times, and those with an event.
    baseline_ : Baseline
        Both of them with the baseline cumulative hazard Λ.

    References
    ----------
    .. [1] Huisman, van der Linden, Demirović, "Optimal Survival Trees: A Dynamic Programming
       Approach", AAAI 2024.
    .. [2] LeBlanc, Crowley, "Relative risk trees for censored survival data", Biometrics 48 (1992).
    .. [3] Zhang, Xin, Seltzer, Rudin, "Optimal Sparse Survival Trees", AISTATS 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from bristlecone import OptimalSurvivalTree
    >>> X = np.array([[0], [0], [1], [1]], dtype=bool)
    >>> event, time = np.array([True, True, True, False]), np.array([1.0, 2.0, 5.0, 6.0])
    >>> tree = OptimalSurvivalTree(max_depth=1).fit(X, (event, time))
    >>> tree.status_, tree.n_leaves_
    ('optimal', 2)
    """

    def __init__(
        self,
        *,
        objective: str = "likelihood",
        max_depth: int | None = 3,
        max_leaf_nodes: int | None = None,
        min_samples_leaf: int = 1,
        leaf_penalty: float = 0.0,
        leaf_curve: str = "auto",
        time_grid: ArrayLike | None = None,
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
        self.leaf_curve = leaf_curve
        self.time_grid = time_grid
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
        reference_loss: ArrayLike | None = None,
        callback: Callable[[SearchProgress], object] | None = None,
    ) -> OptimalSurvivalTree:
        """Find the best tree.

        Parameters
        ----------
        X : DataFrame (pandas, polars, ...) or array, shape (n, n_features)
            Numbers, booleans, categories; missing values as the encoder allows.
        y : structured array, DataFrame or pair
            A structured array of one boolean (event) and one float field (time), a DataFrame with
            columns ``event`` and ``time`` (or exactly one two-valued and one numeric column), or
            a pair ``(event, time)``. A further field or column ``entry`` is the time from which
            a row was observed (delayed entry, left truncation): the row is at risk at t when
            ``entry < t <= time``. Refused by "brier".
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative; rows of weight zero are left out. Integer
            weights equal repetition of rows (with ``min_samples_leaf=1``).
        reference_loss : array-like of float, shape (n,), optional
            What each row adds to the integrated Brier score of a reference model, from
            :func:`bristlecone.reference.brier_reference_loss`. The search leaves out subtrees that
            would have to be better than the reference. It is faster and proves less: ``status_``
            is "reference_optimal", and ``guarantee_`` says what is certain.
        callback : callable, optional
            Called with a :class:`~bristlecone.search.SearchProgress` whenever the best tree or
            the lower bound may have improved, from a thread of the search, which waits for it.
            An exception it raises ends the search and ``fit``.

        Returns
        -------
        OptimalSurvivalTree
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
        ConstantFeatureWarning
            When a column of ``X`` takes a single value.
        """
        start = time.perf_counter()
        problem = self._problem(X, y, sample_weight)
        reference = self._reference(reference_loss, problem.data)
        options = {} if reference is None else {"reference_loss": reference}
        solution = self._run(
            self._objective().solve, problem, callback=reporter(callback), **options
        )
        self._set_solution(solution, problem, start, reference)
        self._warn_of_constants()
        report([self], logger)
        return self

    def size_path(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None
    ) -> list[OptimalSurvivalTree]:
        """Best tree of every size, from one search.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``.

        Returns
        -------
        list of OptimalSurvivalTree
            Entry k is what ``fit`` with ``max_leaf_nodes=k + 1`` finds: the best tree with at
            most k + 1 leaves, with its own objective, bound and status. The parameters are
            those of this estimator, which is left as it is; the fitted encoder is shared. The
            sizes end at ``max_leaf_nodes``, at what ``max_depth`` allows, or at the number of
            distinct rows. The limits hold for the search as a whole, and so does ``fit_time_``.

        Raises
        ------
        ValueError, TypeError, KeyboardInterrupt
            As in ``fit``.

        Warns
        -----
        SearchLimitWarning
            Once, when a limit or Ctrl-C stopped the search before every tree was proven.
        ConstantFeatureWarning
            As in ``fit``.
        """
        start = time.perf_counter()
        problem = self._problem(X, y, sample_weight)
        path = []
        for leaves, solution in enumerate(self._run(self._objective().size_path, problem), start=1):
            tree = clone(self).set_params(max_leaf_nodes=leaves)
            tree._set_solution(solution, problem, start)
            path.append(tree)
        path[0]._warn_of_constants()
        report(path, logger)
        return path

    def all_optimal_trees(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, limit: int = 100
    ) -> list[OptimalSurvivalTree]:
        """Every tree that reaches the optimum, to within 1e-9, from one search.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``.
        limit : int, default=100
            Most trees to return.

        Returns
        -------
        list of OptimalSurvivalTree
            Fitted trees with the parameters of this estimator, which is left as it is; the fitted
            encoder is shared. The first is what ``fit`` finds. Trees that differ only by a
            feature that equals another one, or its complement, on the training rows count once.

        Raises
        ------
        ValueError, TypeError, KeyboardInterrupt
            As in ``fit``.

        Warns
        -----
        SearchLimitWarning
            When there are more trees than ``limit``, or a limit or Ctrl-C stopped the search.
        ConstantFeatureWarning
            As in ``fit``.
        """
        start = time.perf_counter()
        check_integer("limit", limit, 1)
        problem = self._problem(X, y, sample_weight)
        # One more tells whether there are more.
        found = self._run(self._objective().all_optimal, problem, limit=limit + 1)
        trees = []
        for solution in found[:limit]:
            tree = clone(self)
            tree._set_solution(solution, problem, start)
            trees.append(tree)
        trees[0]._warn_of_constants()
        report(trees, logger)
        if len(found) > limit:
            warnings.warn(
                f"more than limit={limit} trees reach the optimum; the others are left out",
                SearchLimitWarning,
                stacklevel=2,
            )
        return trees

    def estimate_cost(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> SearchCost:
        """Forecast what ``fit`` would take, without the search.

        Encodes the rows and counts; for a search that cannot leave anything out, hence often too
        much, above all with a ``leaf_penalty``.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``.

        Returns
        -------
        SearchCost
            Seconds, bytes and what they follow from.

        Raises
        ------
        ValueError, TypeError
            As in ``fit``; and for ``objective="brier"``, whose search takes what its bounds leave,
            which cannot be told before.

        Warns
        -----
        SearchCostWarning
            When the forecast is beyond ``time_limit`` (an hour without one) or ``memory_limit``
            (600 MiB without one); a smaller setting that fits is given, if there is one.
        """
        problem = self._problem(X, y, sample_weight)
        cost = self._forecast(problem)
        if affordable(self, cost):
            return cost
        suggestion = smaller_setting(self, problem, cost)
        seconds, memory = allowance(self)
        warnings.warn(
            f"the search is forecast to take {cost}, where {readable_seconds(seconds)}, "
            f"{readable_bytes(memory)} are allowed"
            + (f"; smaller is {suggestion}" if suggestion else ""),
            SearchCostWarning,
            stacklevel=2,
        )
        return replace(cost, suggestion=suggestion)

    def _problem(self, X: Any, y: Any, sample_weight: ArrayLike | None) -> _Problem:
        self._check_parameters()
        data = check_training_data(X, y, sample_weight)
        return self._encoded(self._objective().prepare(self, data))

    def _encoded(self, data: TrainingData) -> _Problem:
        encoder = self._fitted_encoder(data.X, data.weight)
        return _Problem(data, encoder, binary_features(encoder, data.X))

    def _run(self, search: Callable[..., Found], problem: _Problem, **options: Any) -> Found:
        """Call a function of the engine with the problem and the parameters."""
        data, features = problem.data, problem.features
        settings = {
            **self._objective().engine_options(self, data),
            "max_depth": self._depth_limit(features),
            "max_leaf_nodes": self._leaf_limit(features),
            "min_samples_leaf": self.min_samples_leaf,
            "leaf_penalty": float(self.leaf_penalty),
            "n_threads": thread_count(self.n_jobs),
            "time_limit": None if self.time_limit is None else float(self.time_limit),
            "memory_limit": self.memory_limit,
            "options": None,
        }
        return search(features, data.time, data.event, data.weight, **{**settings, **options})

    def _reference(
        self, reference_loss: ArrayLike | None, data: TrainingData
    ) -> NDArray[np.float64] | None:
        """Reference losses of the rows of the fit."""
        if reference_loss is None:
            return None
        if self.objective != "brier":
            raise InvalidParameterError("reference_loss needs objective='brier'")
        return check_row_losses("reference_loss", reference_loss, data)

    def _set_solution(
        self,
        solution: _core.Solution,
        problem: _Problem,
        start: float,
        reference: NDArray[np.float64] | None = None,
    ) -> None:
        data = problem.data
        tree = Tree.grown(
            solution.children_left,
            solution.children_right,
            solution.feature,
            problem.features,
            data.weight,
        )
        self._set_leaves(tree, problem.features, data)
        self.encoder_ = problem.encoder
        mean = None if reference is None else float(np.average(reference, weights=data.weight))
        self._set_search(solution, start, mean)

    def _set_leaves(self, tree: Tree, rows: NDArray[Any], data: TrainingData) -> None:
        super()._set_leaves(tree, rows, data)
        self.leaf_statistics_ = self._objective().finish_leaves(
            self, self.leaf_statistics_, tree.apply(rows), data
        )

    def _forecast(self, problem: _Problem, max_depth: int | None = None) -> SearchCost:
        function = self._objective().forecast
        if function is None:
            raise InvalidParameterError(
                f"objective={self.objective!r} has no forecast: what its search takes depends on "
                "what its bounds leave out; set time_limit and memory_limit instead"
            )
        depth = self._depth_limit(problem.features) if max_depth is None else max_depth
        forecast = self._run(function, problem, max_depth=depth)
        seconds = forecast["seconds"]
        return SearchCost(
            # Counts beyond all numbers divide into NaN.
            seconds=math.inf if math.isnan(seconds) else seconds,
            memory=int(forecast["bytes"]),
            n_features=int(forecast["n_active_features"]),
            n_distinct_rows=int(forecast["n_distinct_rows"]),
            max_depth=depth,
        )

    @property
    def n_binary_features_(self) -> int:
        """Number of binary features the tree was searched over."""
        return len(self._split_names())

    def _check_parameters(self) -> None:
        check_choice("objective", self.objective, tuple(OBJECTIVES))
        check_integer("max_depth", self.max_depth, 0, optional=True)
        check_integer("max_leaf_nodes", self.max_leaf_nodes, 1, optional=True)
        check_integer("min_samples_leaf", self.min_samples_leaf, 1)
        check_real("leaf_penalty", self.leaf_penalty, 0.0)
        check_choice("leaf_curve", self.leaf_curve, LEAF_CURVES)
        allowed = self._objective().leaf_curves
        if self.leaf_curve not in ("auto", *allowed):
            raise InvalidParameterError(
                f"leaf_curve={self.leaf_curve!r} does not go with objective={self.objective!r}, "
                f"which has {' and '.join(map(repr, allowed))}"
            )
        self._objective().check_parameters(self)
        check_real("time_limit", self.time_limit, 0.0, optional=True)
        check_integer("memory_limit", self.memory_limit, 1, optional=True)
        check_seed("random_state", self.random_state)
        if not isinstance(self.verbose, bool):
            check_integer("verbose", self.verbose, 0)
        self._check_encoder()
        thread_count(self.n_jobs)
        if self.max_depth is None and self.max_leaf_nodes is None and self.leaf_penalty == 0:
            raise InvalidParameterError(
                "max_depth=None means unlimited depth and needs leaf_penalty > 0 or max_leaf_nodes"
            )

    def _objective(self) -> type[Objective]:
        return OBJECTIVES[self.objective]

    def _curve(self) -> str:
        return self._objective().curve(self.leaf_curve)

    def _leaf_risk(self) -> NDArray[np.float64]:
        return self._objective().leaf_risk(self)

    def _remarks(self) -> list[tuple[str, str]]:
        return self._objective().remarks(self) + super()._remarks()

    def _depth_limit(self, features: NDArray[np.uint8]) -> int:
        # No path asks a question twice, and every split leaves a row behind.
        most = min(features.shape[1], features.shape[0] - 1)
        if self.max_leaf_nodes is not None:
            most = min(most, self.max_leaf_nodes - 1)
        return most if self.max_depth is None else min(self.max_depth, most)

    def _leaf_limit(self, features: NDArray[np.uint8]) -> int | None:
        return None if self.max_leaf_nodes is None else min(self.max_leaf_nodes, features.shape[0])

    def _saved_fields(self) -> dict[str, Any]:
        return {"encoder": self.encoder_.to_dict(), "search": self._search_fields()}

    def _read_fields(self, fields: Fields) -> None:
        self.encoder_ = BinaryEncoder.from_dict(fields.take("encoder"))
        self._read_search(fields.object("search"))
