"""Trees that the engine searches for: parameters, limits, progress, sizes and forecasts."""

from __future__ import annotations

import logging
import math
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bristlecone import _core
from bristlecone._encoded import EncodedTreeMixin, binary_features
from bristlecone.encoder import BinaryEncoder
from bristlecone.errors import (
    InfeasibleError,
    InfeasibleWarning,
    InvalidParameterError,
    SearchCostWarning,
    SearchLimitWarning,
)
from bristlecone.search import (
    SearchCost,
    SearchProgress,
    readable_bytes,
    readable_seconds,
    relative_gap,
)
from bristlecone.serialise import Fields
from bristlecone.tree import Tree
from bristlecone.validation import (
    check_integer,
    check_real,
    check_seed,
    thread_count,
)

__all__ = ["Callback", "Engine", "Problem", "SolverMixin", "task_engine"]

_STATUSES = ("optimal", "time_limit", "memory_limit", "interrupted", "reference_optimal")

# What a search may take before ``estimate_cost`` calls it hopeless, when no limit is set. The
# bytes are what the engine allows itself.
_MOST_SECONDS, _MOST_BYTES = 3600.0, 600 << 20

# "Optimal" promises a gap of no more than this, of max(1, |objective|).
_CLOSED = 1e-9

Callback = Callable[[SearchProgress], object]
Estimator = TypeVar("Estimator", bound="SolverMixin")


class Problem(NamedTuple):
    """Training rows (checked, with ``X`` and ``weight``), the fitted encoder, binary features.

    ``start`` is the time at which the user's call began.
    """

    start: float
    data: Any
    encoder: Any
    features: NDArray[np.uint8]


class Engine(NamedTuple):
    """Functions of the engine with the data of a problem; they take the settings of a search.

    ``path`` is None when the best tree of every size takes a search of its own. ``offset`` is what
    the objective of the estimator lies below that of the engine.
    """

    solve: Callable[..., Any]
    path: Callable[..., list[Any]] | None
    forecast: Callable[..., dict[str, float]]
    offset: float = 0.0


def task_engine(
    task: str, data: dict[str, Any], features: NDArray[np.uint8], offset: float = 0.0
) -> Engine:
    """Engine for a task of the core's registry."""
    arguments = task, data, features
    return Engine(
        partial(_core.solve, *arguments),
        partial(_core.solve_path, *arguments),
        partial(_core.forecast, *arguments),
        offset,
    )


class SolverMixin(EncodedTreeMixin):
    """A tree of least objective over the binary features of the encoder.

    An estimator defines ``_training_data``, ``_engine`` and ``_set_leaves``, and its ``fit`` is
    ``_problem``, ``_search``, ``_announce``.
    """

    max_depth: int | None
    max_leaf_nodes: int | None
    min_samples_leaf: int
    leaf_penalty: float
    time_limit: float | None
    memory_limit: int | None
    n_jobs: int | None
    random_state: Any
    verbose: int

    objective_value_: float
    lower_bound_: float
    status_: str
    n_nodes_explored_: int
    trace_: list[tuple[float, ...]]
    fit_time_: float

    @abstractmethod
    def _training_data(self, X: Any, y: Any, sample_weight: Any, **more: Any) -> Any:
        """Checked training rows; attributes ``X`` and ``weight`` (or None) at least."""

    @abstractmethod
    def _engine(self, problem: Problem) -> Engine:
        """What searches for the tree of this problem."""

    @abstractmethod
    def _set_leaves(self, tree: Tree, problem: Problem, solution: Any) -> None:
        """Set the tree and what follows from it and its training rows."""

    def size_path(
        self: Estimator, X: Any, y: Any, sample_weight: Any = None, **data: Any
    ) -> list[Estimator]:
        """Best tree of every size.

        Parameters
        ----------
        X, y, sample_weight, **data
            As in ``fit``.

        Returns
        -------
        list of fitted estimators
            Entry k is what ``fit`` with ``max_leaf_nodes=k + 1`` finds: the best tree with at
            most k + 1 leaves, with its own objective, bound and status. The parameters are
            those of this estimator, which is left as it is; the fitted encoder is shared. The
            sizes end at ``max_leaf_nodes``, at what ``max_depth`` allows, or at the number of
            distinct rows. One search finds them all, and the limits and ``fit_time_`` are those
            of this search; only where trees are chosen from a Pareto front, every size is
            searched for within the limits.

        Raises
        ------
        ValueError, TypeError, KeyboardInterrupt
            As in ``fit``.

        Warns
        -----
        SearchLimitWarning
            Once, when a limit or Ctrl-C stopped a search before every tree was proven.
        ConstantFeatureWarning, InfeasibleWarning
            As in ``fit``.
        """
        problem = self._problem(X, y, sample_weight, **data)
        engine = self._engine(problem)
        sizes = range(1, self._most_leaves(problem) + 1)
        path = [clone(self).set_params(max_leaf_nodes=leaves) for leaves in sizes]
        if engine.path is None:
            for tree in path:
                tree._set_solution(tree._run(engine.solve, problem), problem, engine.offset)
        else:
            solutions = self._run(engine.path, problem)
            path = path[: len(solutions)]
            for tree, solution in zip(path, solutions, strict=True):
                tree._set_solution(solution, problem, engine.offset)
        path[0]._announce(path)
        return path

    def estimate_cost(self, X: Any, y: Any, sample_weight: Any = None, **data: Any) -> SearchCost:
        """Forecast what ``fit`` would take, without the search.

        Encodes the rows and counts; for a search that cannot leave anything out, hence often too
        much, above all with a ``leaf_penalty``.

        Parameters
        ----------
        X, y, sample_weight, **data
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
        problem = self._problem(X, y, sample_weight, **data)
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

    @property
    def gap_(self) -> float:
        """Distance of the objective from the lower bound."""
        return 0.0 if self._is_infeasible() else self.objective_value_ - self.lower_bound_

    @property
    def relative_gap_(self) -> float:
        """The gap as a share of the objective."""
        if self._is_infeasible():
            return 0.0
        return relative_gap(self.objective_value_, self.lower_bound_)

    @property
    def n_binary_features_(self) -> int:
        """Number of binary features the tree was searched over."""
        return len(self._split_names())

    def _is_infeasible(self) -> bool:
        return getattr(self, "status_", None) == "infeasible"

    def _check_fitted(self) -> None:
        if self._is_infeasible():
            raise InfeasibleError(
                f"no tree of this {type(self).__name__} satisfies its constraints (status_ "
                "'infeasible'): there is nothing to predict with"
            )
        super()._check_fitted()

    def _check_parameters(self) -> None:
        check_integer("max_depth", self.max_depth, 0, optional=True)
        check_integer("max_leaf_nodes", self.max_leaf_nodes, 1, optional=True)
        check_integer("min_samples_leaf", self.min_samples_leaf, 1)
        check_real("leaf_penalty", self.leaf_penalty, 0.0)
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

    def _problem(self, X: Any, y: Any, sample_weight: Any, **more: Any) -> Problem:
        start = time.perf_counter()
        self._check_parameters()
        return self._encoded(start, self._training_data(X, y, sample_weight, **more))

    def _encoded(self, start: float, data: Any) -> Problem:
        encoder = self._fitted_encoder(data.X, data.weight)
        return Problem(start, data, encoder, binary_features(encoder, data.X))

    def _search(self, problem: Problem, callback: Callback | None) -> None:
        """Find the best tree and set what was found."""
        engine = self._engine(problem)
        report = _reporter(callback, engine.offset)
        solution = self._run(engine.solve, problem, callback=report)
        self._set_solution(solution, problem, engine.offset)

    def _run(self, search: Callable[..., Any], problem: Problem, **options: Any) -> Any:
        """Call a function of the engine with the parameters."""
        settings = {
            "max_depth": self._depth_limit(problem.features),
            "max_leaf_nodes": self._leaf_limit(problem.features),
            "min_samples_leaf": self.min_samples_leaf,
            "leaf_penalty": float(self.leaf_penalty),
            "n_threads": thread_count(self.n_jobs),
            "time_limit": None if self.time_limit is None else float(self.time_limit),
            "memory_limit": self.memory_limit,
            "options": None,
        }
        return search(**{**settings, **options})

    def _set_solution(self, solution: Any, problem: Problem, offset: float) -> None:
        if solution.status == "infeasible":
            self.__dict__.pop("tree_", None)
        else:
            tree = Tree.grown(
                solution.children_left,
                solution.children_right,
                solution.feature,
                problem.features,
                problem.data.weight,
            )
            self._set_leaves(tree, problem, solution)
            self.tree_ = tree
        self.encoder_ = problem.encoder
        self.objective_value_ = solution.objective - offset
        self.lower_bound_ = solution.lower_bound - offset
        self.status_ = solution.status
        self.n_nodes_explored_ = solution.n_nodes_explored
        self.trace_ = [
            (seconds, objective - offset, bound - offset)
            for seconds, objective, bound in solution.trace
        ]
        self.fit_time_ = time.perf_counter() - problem.start

    def _announce(self, trees: Sequence[SolverMixin]) -> None:
        """Log fits and warn of what their user must know; called by the method of the call."""
        self._warn_of_constants(stacklevel=4)
        for tree in trees:
            _log(tree)
        infeasible = [tree for tree in trees if tree.status_ == "infeasible"]
        if infeasible:
            warnings.warn(
                "no tree satisfies the constraints"
                + (f" in {len(infeasible)} of {len(trees)} searches" if trees[1:] else ""),
                InfeasibleWarning,
                stacklevel=3,
            )
        unproven = [tree for tree in trees if tree.status_ not in ("optimal", "infeasible")]
        if unproven:
            worst = max(unproven, key=lambda tree: tree.gap_)
            warnings.warn(
                f"the search stopped ({worst.status_}) with objective "
                f"{worst.objective_value_:.6g} and lower bound {worst.lower_bound_:.6g}: gap "
                f"{worst.gap_:.3g}"
                + (f"; {len(unproven)} of {len(trees)} trees are not proven" if trees[1:] else ""),
                SearchLimitWarning,
                stacklevel=3,
            )

    def _forecast(self, problem: Problem, max_depth: int | None = None) -> SearchCost:
        depth = self._depth_limit(problem.features) if max_depth is None else max_depth
        forecast = self._run(self._engine(problem).forecast, problem, max_depth=depth)
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

    def _smaller_setting(self, problem: Problem, cost: SearchCost) -> str | None:
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
            smaller = fewer._forecast(fewer._encoded(problem.start, problem.data))
            if self._affordable(smaller):
                return f"max_depth={fewer.max_depth}, encoder={encoder!r} ({smaller})"
            count //= 2
        return None

    def _depth_limit(self, features: NDArray[np.uint8]) -> int:
        # No path asks a question twice, and every split leaves a row behind.
        most = min(features.shape[1], features.shape[0] - 1)
        if self.max_leaf_nodes is not None:
            most = min(most, self.max_leaf_nodes - 1)
        return most if self.max_depth is None else min(self.max_depth, most)

    def _leaf_limit(self, features: NDArray[np.uint8]) -> int | None:
        return None if self.max_leaf_nodes is None else min(self.max_leaf_nodes, features.shape[0])

    def _most_leaves(self, problem: Problem) -> int:
        """Leaves a tree can have at most."""
        most = len(np.unique(problem.features, axis=0)) if problem.features.shape[1] else 1
        if self.max_leaf_nodes is not None:
            most = min(most, self.max_leaf_nodes)
        depth = self._depth_limit(problem.features)
        return most if depth >= most.bit_length() else min(most, 1 << depth)

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
        closed = self.gap_ <= _CLOSED * max(1.0, abs(self.objective_value_))
        if self.gap_ < 0 or (self.status_ == "optimal" and not closed):
            raise search.fail("lower_bound", "contradicts objective_value or status")


def _reporter(
    callback: Callback | None, offset: float
) -> Callable[[float, float, float, int], object] | None:
    if callback is None:
        return None
    if not callable(callback):
        raise InvalidParameterError(f"callback must be callable or None; got {callback!r}")

    def report(seconds: float, objective: float, bound: float, nodes: int) -> object:
        return callback(SearchProgress(seconds, objective - offset, bound - offset, nodes))

    return report


def _log(tree: SolverMixin) -> None:
    size = "no tree" if tree._is_infeasible() else f"{tree.n_leaves_} leaves, depth {tree.depth_}"
    logging.getLogger(type(tree).__module__).log(
        logging.INFO if tree.verbose else logging.DEBUG,
        "%s: objective %.6g, lower bound %.6g, %s, %d binary features, %.3f s",
        tree.status_,
        tree.objective_value_,
        tree.lower_bound_,
        size,
        tree.n_binary_features_,
        tree.fit_time_,
    )
