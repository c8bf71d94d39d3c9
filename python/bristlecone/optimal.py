"""``OptimalSurvivalTree``: the provably best survival tree over a set of binary features."""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone

from bristlecone import _core
from bristlecone._encoded import EncodedTreeMixin, binary_features
from bristlecone._survival import LEAF_CURVES, SurvivalTreeMixin
from bristlecone.encoder import BinaryEncoder
from bristlecone.errors import InvalidParameterError, SearchCostWarning, SearchLimitWarning
from bristlecone.search import (
    SearchCost,
    SearchProgress,
    readable_bytes,
    readable_seconds,
    relative_gap,
)
from bristlecone.serialise import Fields, register
from bristlecone.tree import Tree
from bristlecone.validation import (
    TrainingData,
    check_choice,
    check_integer,
    check_real,
    check_seed,
    check_training_data,
    thread_count,
)

__all__ = ["OptimalSurvivalTree"]

logger = logging.getLogger(__name__)

_STATUSES = ("optimal", "time_limit", "memory_limit", "interrupted")

# What a search may take before ``estimate_cost`` calls it hopeless, when no limit is set. The
# bytes are what the engine allows itself.
_MOST_SECONDS, _MOST_BYTES = 3600.0, 600 << 20

Found = TypeVar("Found")


class _Problem(NamedTuple):
    """Training rows with the fitted encoder and the binary features it made of them."""

    data: TrainingData
    encoder: Any
    features: NDArray[np.uint8]


@register
class OptimalSurvivalTree(EncodedTreeMixin, SurvivalTreeMixin, BaseEstimator):
    """Survival tree of least loss among all trees over the binary features of the encoder.

    The loss is that of Huisman, van der Linden and Demirović, "Optimal Survival Trees: A Dynamic
    Programming Approach" (AAAI-24), eq. 20, after LeBlanc and Crowley (1992): the saturated minus
    the fitted log-likelihood of a proportional hazards model with one relative hazard θ per
    leaf and the Nelson–Aalen estimate of the training rows as the baseline.

    Parameters
    ----------
    objective : {"likelihood"}, default="likelihood"
        Loss of a leaf.
    max_depth : int or None, default=3
        Most questions from the root to a leaf; 0 is a single leaf. None is no limit and needs
        ``leaf_penalty > 0`` or ``max_leaf_nodes``.
    max_leaf_nodes : int or None, default=None
        Most leaves.
    min_samples_leaf : int, default=1
        Fewest training rows in a leaf, whatever their weights.
    leaf_penalty : float, default=0.0
        Added to the mean loss per leaf.
    leaf_curve : {"auto", "proportional", "kaplan-meier"}, default="auto"
        Curve of a leaf: exp(−θΛ) with the baseline Λ, or the leaf's own Kaplan–Meier estimate.
        "auto" is "proportional".
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
    status_ : {"optimal", "time_limit", "memory_limit", "interrupted"}
        "optimal" means optimal among trees over the ``n_binary_features_`` binary features.
    tree_ : Tree
        Structure as parallel arrays in preorder; ``feature`` counts binary features.
    leaf_statistics_ : tuple of LeafStatistics
        Rows, events, θ, Kaplan–Meier and Nelson–Aalen curve of every leaf, left to right.
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
            ``entry < t <= time``.
        sample_weight : array-like of float, shape (n,), optional
            Row weights, finite and not negative; rows of weight zero are left out. Integer
            weights equal repetition of rows (with ``min_samples_leaf=1``).
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
        solution = self._run(_core.solve_likelihood, problem, callback=_reporter(callback))
        self._set_solution(solution, problem, start)
        self._warn_of_constants()
        _report([self])
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
        for leaves, solution in enumerate(self._run(_core.path_likelihood, problem), start=1):
            tree = clone(self).set_params(max_leaf_nodes=leaves)
            tree._set_solution(solution, problem, start)
            path.append(tree)
        path[0]._warn_of_constants()
        _report(path)
        return path

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
            As in ``fit``.

        Warns
        -----
        SearchCostWarning
            When the forecast is beyond ``time_limit`` (an hour without one) or ``memory_limit``
            (600 MiB without one); a smaller setting that fits is given, if there is one.
        """
        problem = self._problem(X, y, sample_weight)
        cost = self._forecast(problem)
        if self._affordable(cost):
            return cost
        suggestion = self._smaller_setting(problem, cost)
        seconds, memory = self._allowance()
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
        return self._encoded(check_training_data(X, y, sample_weight))

    def _encoded(self, data: TrainingData) -> _Problem:
        encoder = self._fitted_encoder(data.X, data.weight)
        return _Problem(data, encoder, binary_features(encoder, data.X))

    def _run(self, search: Callable[..., Found], problem: _Problem, **options: Any) -> Found:
        """Call a function of the engine with the problem and the parameters."""
        data, features = problem.data, problem.features
        settings = {
            "entry": data.entry,
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

    def _set_solution(self, solution: _core.Solution, problem: _Problem, start: float) -> None:
        tree = Tree.grown(
            solution.children_left,
            solution.children_right,
            solution.feature,
            problem.features,
            problem.data.weight,
        )
        self._set_leaves(tree, problem.features, problem.data)
        self.encoder_ = problem.encoder
        self.objective_value_ = solution.objective
        self.lower_bound_ = solution.lower_bound
        self.status_ = solution.status
        self.n_nodes_explored_ = solution.n_nodes_explored
        self.trace_ = [tuple(entry) for entry in solution.trace]
        self.fit_time_ = time.perf_counter() - start

    def _forecast(self, problem: _Problem, max_depth: int | None = None) -> SearchCost:
        depth = self._depth_limit(problem.features) if max_depth is None else max_depth
        forecast = self._run(_core.forecast_likelihood, problem, max_depth=depth)
        seconds = forecast["seconds"]
        return SearchCost(
            # Counts beyond all numbers divide into NaN.
            seconds=math.inf if math.isnan(seconds) else seconds,
            memory=int(forecast["bytes"]),
            n_features=int(forecast["n_active_features"]),
            n_distinct_rows=int(forecast["n_distinct_rows"]),
            max_depth=depth,
        )

    def _allowance(self) -> tuple[float, int]:
        """Seconds and bytes a search may take before it is called hopeless."""
        seconds = _MOST_SECONDS if self.time_limit is None else self.time_limit
        return seconds, _MOST_BYTES if self.memory_limit is None else self.memory_limit

    def _affordable(self, cost: SearchCost) -> bool:
        seconds, memory = self._allowance()
        return cost.seconds <= seconds and cost.memory <= memory

    def _smaller_setting(self, problem: _Problem, cost: SearchCost) -> str | None:
        """The most depth that can be afforded, or fewer features if not even depth 2 can."""
        suggestion = None
        for depth in range(2, cost.max_depth):
            smaller = self._forecast(problem, depth)
            if not self._affordable(smaller):
                break
            suggestion = f"max_depth={depth} ({smaller})"
        if suggestion is not None:
            return suggestion
        encoder = BinaryEncoder() if isinstance(self.encoder, str) else clone(self.encoder)
        if not isinstance(encoder, BinaryEncoder):
            return None
        fewer = clone(self).set_params(max_depth=min(2, cost.max_depth), encoder=encoder)
        count = cost.n_features // 2
        while count > 0:
            encoder.set_params(max_features=count)
            smaller = fewer._forecast(fewer._encoded(problem.data))
            if self._affordable(smaller):
                return f"max_depth={fewer.max_depth}, encoder={encoder!r} ({smaller})"
            count //= 2
        return None

    @property
    def gap_(self) -> float:
        """Distance of the objective from the lower bound."""
        return self.objective_value_ - self.lower_bound_

    @property
    def relative_gap_(self) -> float:
        """The gap as a share of the objective."""
        return relative_gap(self.objective_value_, self.lower_bound_)

    @property
    def n_binary_features_(self) -> int:
        """Number of binary features the tree was searched over."""
        return len(self._split_names())

    def _check_parameters(self) -> None:
        check_choice("objective", self.objective, ("likelihood",))
        check_integer("max_depth", self.max_depth, 0, optional=True)
        check_integer("max_leaf_nodes", self.max_leaf_nodes, 1, optional=True)
        check_integer("min_samples_leaf", self.min_samples_leaf, 1)
        check_real("leaf_penalty", self.leaf_penalty, 0.0)
        check_choice("leaf_curve", self.leaf_curve, LEAF_CURVES)
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

    def _depth_limit(self, features: NDArray[np.uint8]) -> int:
        # No path asks a question twice, and every split leaves a row behind.
        most = min(features.shape[1], features.shape[0] - 1)
        if self.max_leaf_nodes is not None:
            most = min(most, self.max_leaf_nodes - 1)
        return most if self.max_depth is None else min(self.max_depth, most)

    def _leaf_limit(self, features: NDArray[np.uint8]) -> int | None:
        return None if self.max_leaf_nodes is None else min(self.max_leaf_nodes, features.shape[0])

    def _saved_fields(self) -> dict[str, Any]:
        return {
            "encoder": self.encoder_.to_dict(),
            "search": {
                "objective_value": self.objective_value_,
                "lower_bound": self.lower_bound_,
                "status": self.status_,
                "n_nodes_explored": self.n_nodes_explored_,
                "trace": self.trace_,
                "fit_time": self.fit_time_,
            },
        }

    def _read_fields(self, fields: Fields) -> None:
        self.encoder_ = BinaryEncoder.from_dict(fields.take("encoder"))
        search = fields.object("search")
        # A loss of zero may be rounded to either side.
        self.objective_value_ = search.number("objective_value", minimum=-math.inf)
        self.lower_bound_ = search.number("lower_bound", minimum=-math.inf)
        self.status_ = search.text("status", _STATUSES)
        self.n_nodes_explored_ = search.integer("n_nodes_explored")
        self.trace_ = search.rows("trace", 3)
        self.fit_time_ = search.number("fit_time")
        search.finish()
        if self.gap_ < 0 or (self.status_ == "optimal" and self.gap_ > 1e-9):
            raise search.fail("lower_bound", "contradicts objective_value or status")


def _reporter(
    callback: Callable[[SearchProgress], object] | None,
) -> Callable[[float, float, float, int], object] | None:
    if callback is None:
        return None
    if not callable(callback):
        raise InvalidParameterError(f"callback must be callable or None; got {callback!r}")
    return lambda *point: callback(SearchProgress(*point))


def _report(trees: Sequence[OptimalSurvivalTree]) -> None:
    """Log fits and warn when a limit stopped them; called by the method of the user's call."""
    for tree in trees:
        logger.log(
            logging.INFO if tree.verbose else logging.DEBUG,
            "%s: objective %.6g, lower bound %.6g, %d leaves, depth %d, %d binary features, %.3f s",
            tree.status_,
            tree.objective_value_,
            tree.lower_bound_,
            tree.n_leaves_,
            tree.depth_,
            tree.n_binary_features_,
            tree.fit_time_,
        )
    unproven = [tree for tree in trees if tree.status_ != "optimal"]
    if unproven:
        worst = max(unproven, key=lambda tree: tree.gap_)
        warnings.warn(
            f"the search stopped ({worst.status_}) with objective {worst.objective_value_:.6g} "
            f"and lower bound {worst.lower_bound_:.6g}: gap {worst.gap_:.3g}"
            + (f"; {len(unproven)} of {len(trees)} trees are not proven" if trees[1:] else ""),
            SearchLimitWarning,
            stacklevel=3,
        )
