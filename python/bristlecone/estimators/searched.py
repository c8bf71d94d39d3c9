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
from bristlecone.data.checks import (
    check_integer,
    check_real,
    check_seed,
    thread_count,
)
from bristlecone.encoder import BinaryEncoder
from bristlecone.encoder.cuts import Cut, RankedColumns, add_cuts, rank_columns
from bristlecone.errors import (
    InfeasibleError,
    InfeasibleWarning,
    InvalidParameterError,
    SearchCostWarning,
    SearchLimitWarning,
)
from bristlecone.estimators.describe import describe_search
from bristlecone.estimators.encoded import EncodedTreeMixin, binary_features, count_distinct
from bristlecone.leaves.minimum import check_min_samples, least_rows, warn_of_small_sample
from bristlecone.model.registry import Fields
from bristlecone.search.certificate import SearchedTreeMixin, report, reporter
from bristlecone.search.cuts import Growth, SklearnTree, cuts_of_sklearn, cuts_of_task
from bristlecone.search.forecast import affordable, allowance, smaller_setting
from bristlecone.search.progress import SearchCost, SearchProgress, readable_bytes, readable_seconds
from bristlecone.tree import Tree

__all__ = ["Callback", "Engine", "Problem", "SolverMixin", "task_engine"]

Callback = Callable[[SearchProgress], object]
Estimator = TypeVar("Estimator", bound="SolverMixin")

# Of the time that is left after reading the rows, what the choice of cuts may take.
_SHARE_FOR_CUTS = 0.5

# More is no limit, and may be beyond what the clock of the engine counts.
_MOST_SECONDS = 1e9


class Problem(NamedTuple):
    """Training rows (checked, with ``X`` and ``weight``), the fitted encoder, binary features.

    ``seconds`` is what reading and encoding the rows took, ``memo`` what the trees of the problem
    share.
    """

    data: Any
    encoder: Any
    features: NDArray[np.uint8]
    seconds: float
    memo: dict[str, Any]


class Engine(NamedTuple):
    """Functions of the engine with the data of a problem; they take the settings of a search.

    ``path`` is None when the best tree of every size takes a search of its own, ``forecast`` when
    nothing useful can be told before the search. ``offset`` is what the objective of the estimator
    lies below that of the engine.
    """

    solve: Callable[..., Any]
    path: Callable[..., list[Any]] | None = None
    forecast: Callable[..., dict[str, float]] | None = None
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


class SolverMixin(EncodedTreeMixin, SearchedTreeMixin):
    """A tree of least objective over the binary features of the encoder.

    An estimator defines ``_training_data``, ``_engine`` and ``_set_found``, and its ``fit`` is
    ``_problem``, ``_search``, ``_announce``.
    """

    max_depth: int | None
    max_leaf_nodes: int | None
    min_samples_leaf: int | float
    leaf_penalty: float
    time_limit: float | None
    memory_limit: int | None
    n_jobs: int | None
    random_state: Any
    verbose: int

    # What a search must meet, for messages.
    _admissible = "a tree that satisfies the constraints"

    @abstractmethod
    def _training_data(self, *args: Any, **kwargs: Any) -> Any:
        """Training rows from what ``fit`` was given, checked.

        ``X``, ``y``, ``sample_weight`` and more by name; what is returned has ``X`` and ``weight``
        (an array or None) at least.
        """

    @abstractmethod
    def _engine(self, problem: Problem) -> Engine:
        """What searches for the tree of this problem."""

    @abstractmethod
    def _aim(self) -> str:
        """What was searched for, with its source: "the least mean cost (...)"."""

    @abstractmethod
    def _set_found(self, tree: Tree, problem: Problem, solution: Any) -> None:
        """Set what follows from it and its training rows."""

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
            Entry k is a best tree with at most k + 1 leaves, with its own objective, bound and
            status. Its objective is that of ``fit`` with ``max_leaf_nodes=k + 1`` over the same
            features; of trees that are equally good it may be another one. With ``encoder="auto"``
            the features hold the cuts of the greedy tree of the largest size, where ``fit`` has
            those of its own size: every entry is at least as good as the subtrees of its size of
            that tree. The parameters are
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
        start = time.perf_counter()
        problem = self._problem(X, y, sample_weight, **data)
        engine = self._engine(problem)
        sizes = range(1, self._most_leaves(problem) + 1)
        path = [clone(self).set_params(max_leaf_nodes=leaves) for leaves in sizes]
        if engine.path is None:
            for tree in path:
                solution = tree._run(engine.solve, problem)
                tree._set_solution(solution, problem, start, engine.offset)
        else:
            solutions = self._run(engine.path, problem)
            path = path[: len(solutions)]
            for tree, solution in zip(path, solutions, strict=True):
                tree._set_solution(solution, problem, start, engine.offset)
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
            As in ``fit``; and where the search takes what its bounds leave, which cannot be told
            before: for the Brier objective, and where trees are chosen from a Pareto front.

        Warns
        -----
        SearchCostWarning
            When the forecast is beyond ``time_limit`` (ten minutes without one) or
            ``memory_limit`` (600 MiB without one); smaller settings that fit are given, if there
            are any: less depth, fewer features, a sample of the rows.
        """
        problem = self._problem(X, y, sample_weight, **data)
        cost = self._forecast(problem)
        if affordable(self, cost):
            return cost
        suggestion = self._warn_of_cost(problem, cost, stacklevel=3)
        return replace(cost, suggestion=suggestion)

    def _described(self) -> str:
        return describe_search(self)

    @property
    def n_binary_features_(self) -> int:
        """Number of binary features the tree was searched over."""
        return len(self._split_names())

    def _check_fitted(self) -> None:
        if self._is_treeless() and not self._is_infeasible():
            raise self._unmet()
        if self._is_infeasible():
            raise InfeasibleError(
                f"no tree of this {type(self).__name__} satisfies its constraints (status_ "
                "'infeasible'): there is nothing to predict with"
            )
        super()._check_fitted()

    def _unmet(self) -> InfeasibleError:
        return InfeasibleError(
            f"the search stopped ({self.status_}) before it met {self._admissible}: there may be "
            "one that takes longer to find"
        )

    def _check_parameters(self) -> None:
        check_integer("max_depth", self.max_depth, 0, optional=True)
        check_integer("max_leaf_nodes", self.max_leaf_nodes, 1, optional=True)
        check_min_samples(self.min_samples_leaf)
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
        problem = self._encoded(self._training_data(X, y, sample_weight, **more), start)
        if self._depth_limit(problem.features):
            self._warn_of_small_sample(problem, stacklevel=4)
        return problem._replace(seconds=time.perf_counter() - start)

    def _smallest_leaf(self, data: Any, n_rows: int) -> dict[str, int]:
        """Settings of the search for the smallest leaf, of so many training rows."""
        return {"min_samples_leaf": least_rows(self.min_samples_leaf, n_rows)}

    def _warn_of_small_sample(self, problem: Problem, stacklevel: int) -> None:
        """Warn where shares of the data as smallest leaves rule out every split."""
        fewest = self._smallest_leaf(problem.data, len(problem.features))["min_samples_leaf"]
        rows = self.min_samples_leaf, fewest
        warn_of_small_sample(problem.features, rows, stacklevel=stacklevel)

    def _encoded(self, data: Any, start: float | None = None) -> Problem:
        """The problem of these rows, whose preparation began at ``start``."""
        start = time.perf_counter() if start is None else start
        encoder = self._fitted_encoder(data.X, data.weight)
        data, features = self._examined(data, encoder)
        added = isinstance(self.encoder, str) and self._add_cuts(encoder, data, start)
        if features is None or added:
            features = binary_features(encoder, data.X)
        return Problem(data, encoder, features, time.perf_counter() - start, {})

    def _examined(self, data: Any, encoder: Any) -> tuple[Any, NDArray[np.uint8] | None]:
        """The rows with what parameters need to know that follow from the data.

        And the binary features, where those were needed for it.
        """
        return data, None

    def _add_cuts(self, encoder: BinaryEncoder, data: Any, start: float) -> bool:
        """Add the cuts of greedy trees over every threshold to the features; whether there are."""
        if not any(schema.kind == "number" for schema in encoder.columns_):
            return False
        seconds = None
        if self.time_limit is not None:
            left = self.time_limit - (time.perf_counter() - start)
            seconds = min(_SHARE_FOR_CUTS * left, _MOST_SECONDS)
        if (
            self.max_depth == 0
            or self.max_leaf_nodes == 1
            or (seconds is not None and seconds <= 0.0)
        ):
            return False
        columns = rank_columns(encoder, data.X)
        if all(values is None for values in columns.values):
            return False
        most = columns.ranks.shape[1]
        growth = Growth(
            max_depth=most if self.max_depth is None else min(self.max_depth, most),
            max_leaf_nodes=None if self.max_leaf_nodes is None else min(self.max_leaf_nodes, most),
            leaf_penalty=float(self.leaf_penalty),
            seconds=seconds,
            **self._smallest_leaf(data, most),
        )
        cuts = self._greedy_cuts(data, columns, growth)
        other = self._sklearn_tree(data)
        if other is not None:
            cuts += cuts_of_sklearn(other, columns, growth)
        return add_cuts(encoder, columns, cuts)

    def _greedy_cuts(self, data: Any, columns: RankedColumns, growth: Growth) -> list[Cut]:
        """Cuts of the greedy tree of the objective, without what constrains whole trees."""
        return cuts_of_task(*self._sum_task(data, columns), columns, growth)

    def _sum_task(self, data: Any, columns: RankedColumns) -> tuple[str, dict[str, Any]]:
        """Name and data of the engine's task for the greedy tree."""
        raise NotImplementedError

    def _sklearn_tree(self, data: Any) -> SklearnTree | None:
        """Tree of scikit-learn whose cuts are added, too."""
        return None

    def _search(
        self, problem: Problem, start: float, callback: Callback | None, **options: Any
    ) -> None:
        """Find the best tree and set what was found; ``options`` go to the engine."""
        engine = self._engine(problem)
        told = reporter(callback)
        if told is not None and engine.offset:
            told = _shifted(told, engine.offset)
        if self.time_limit is None:
            told = self._warning_of_cost(told, problem)
        solution = self._run(engine.solve, problem, callback=told, **options)
        self._set_solution(solution, problem, start, engine.offset)
        if self._is_treeless() and not self._is_infeasible():
            raise self._unmet()

    def _warning_of_cost(
        self, told: Callable[..., object] | None, problem: Problem
    ) -> Callable[..., object]:
        """The engine's callback that warns once, at the start, of a search without an end."""
        warned = False

        def tell(at: float, value: float, bound: float, nodes: int, *outlook: float | None) -> None:
            nonlocal warned
            left = outlook[1]
            if not warned and left is not None and left > allowance(self)[0]:
                warned = True
                self._warn_of_cost(problem, self._forecast(problem), stacklevel=6)
            if told is not None:
                told(at, value, bound, nodes, *outlook)

        return tell

    def _warn_of_cost(self, problem: Problem, cost: SearchCost, stacklevel: int) -> str | None:
        """Warn of a hopeless search and return what is suggested in its place."""
        suggestion = smaller_setting(self, problem, cost)
        seconds, memory = allowance(self)
        limit = f"where {readable_seconds(seconds)}, {readable_bytes(memory)} are "
        limit += "reasonable" if self.time_limit is None else "allowed"
        warnings.warn(
            f"the search is forecast to take {cost}, {limit}"
            + (f"; smaller is {suggestion}" if suggestion else ""),
            SearchCostWarning,
            stacklevel=stacklevel,
        )
        return suggestion

    def _run(self, search: Callable[..., Any], problem: Problem, **options: Any) -> Any:
        """Call a function of the engine with the parameters.

        The time limit counts from the beginning of ``fit``.
        """
        limit = None if self.time_limit is None else max(0.0, self.time_limit - problem.seconds)
        settings = {
            "max_depth": self._depth_limit(problem.features),
            "max_leaf_nodes": self._leaf_limit(problem.features),
            **self._smallest_leaf(problem.data, len(problem.features)),
            "leaf_penalty": float(self.leaf_penalty),
            "n_threads": thread_count(self.n_jobs),
            "time_limit": limit,
            "memory_limit": self.memory_limit,
            "options": None,
        }
        return search(**{**settings, **options})

    def _set_solution(
        self, solution: Any, problem: Problem, start: float, offset: float = 0.0
    ) -> None:
        if math.isinf(solution.objective):
            self.__dict__.pop("tree_", None)
        else:
            tree = Tree.grown(
                solution.children_left,
                solution.children_right,
                solution.feature,
                problem.features,
                problem.data.weight,
            )
            self._set_found(tree, problem, solution)
            self.tree_ = tree
        self.encoder_ = problem.encoder
        self._remember_parameters()
        self._set_search(solution, start)
        if offset:
            self.objective_value_ -= offset
            self.lower_bound_ -= offset
            self.trace_ = [(at, value - offset, bound - offset) for at, value, bound in self.trace_]

    def _announce(self, trees: Sequence[SolverMixin]) -> None:
        """Log fits and warn of what their user must know; called by the method of the call."""
        self._warn_of_data(stacklevel=4)
        found = [tree for tree in trees if not tree._is_treeless()]
        report(found, logging.getLogger("bristlecone"), stacklevel=4)
        infeasible = sum(tree._is_infeasible() for tree in trees)
        if infeasible:
            searches = f" in {infeasible} of {len(trees)} searches"
            warnings.warn(
                "no tree satisfies the constraints" + (searches if trees[1:] else ""),
                InfeasibleWarning,
                stacklevel=3,
            )
        stopped = [tree for tree in trees if tree._is_treeless() and not tree._is_infeasible()]
        if stopped:
            warnings.warn(
                f"in {len(stopped)} of {len(trees)} searches: {stopped[0]._unmet()}",
                SearchLimitWarning,
                stacklevel=3,
            )

    def _warn_of_data(self, stacklevel: int) -> None:
        """Warn of what the training data lack."""
        self._warn_of_constants(stacklevel=stacklevel + 1)

    def _forecast(self, problem: Problem, max_depth: int | None = None) -> SearchCost:
        function = self._engine(problem).forecast
        if function is None:
            raise InvalidParameterError(
                f"objective={getattr(self, 'objective', None)!r} has no forecast: what its search "
                "takes depends on what its bounds leave out; set time_limit and memory_limit "
                "instead"
            )
        depth = self._depth_limit(problem.features) if max_depth is None else max_depth
        forecast = self._run(function, problem, max_depth=depth)
        # Counts beyond all numbers divide into NaN.
        seconds, rows = (
            math.inf if math.isnan(value) else value
            for value in (forecast["seconds"], forecast["row_seconds"])
        )
        return SearchCost(
            seconds=seconds + problem.seconds,
            row_seconds=rows + problem.seconds,
            memory=int(forecast["bytes"]),
            n_features=int(forecast["n_active_features"]),
            n_distinct_rows=int(forecast["n_distinct_rows"]),
            max_depth=depth,
        )

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
        most = len(problem.features)
        if self.max_leaf_nodes is not None:
            most = min(most, self.max_leaf_nodes)
        depth = self._depth_limit(problem.features)
        if depth < most.bit_length():
            most = min(most, 1 << depth)
        return count_distinct(problem.features, most)

    def _saved_fields(self) -> dict[str, Any]:
        return {"encoder": self.encoder_.to_dict(), "search": self._search_fields()}

    def _read_fields(self, fields: Fields) -> None:
        self.encoder_ = BinaryEncoder.from_dict(fields.take("encoder"))
        self._read_search(fields.object("search"))


def _shifted(told: Callable[..., object], offset: float) -> Callable[..., object]:
    """The engine's callback for an estimator whose objective lies ``offset`` below."""
    return lambda at, value, bound, *more: told(at, value - offset, bound - offset, *more)
