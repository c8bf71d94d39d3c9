"""Trees that the engine searches for: parameters, limits, progress, sizes and forecasts."""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from bristlecone import _core
from bristlecone._data.checks import thread_count
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.cuts import RankedColumns, add_cuts, rank_columns
from bristlecone._encoder.rules import question_names
from bristlecone._encoder.use import (
    Answers,
    binary_features,
    count_answers,
    count_distinct,
    fit_encoder,
    split_columns,
    warn_of_constants,
)
from bristlecone._estimators.base import BaseTree
from bristlecone._leaves.base import view
from bristlecone._leaves.minimum import (
    event_free_rows,
    smallest_leaf,
    warn_of_event_free_rows,
    warn_of_small_sample,
)
from bristlecone._log import warn
from bristlecone._objectives.base import Objective
from bristlecone._search.certificate import Certificate, TracePoint, fingerprint, report, reporter
from bristlecone._search.cuts import Growth
from bristlecone._search.engine import Engine, Problem
from bristlecone._search.forecast import CostWarner, affordable, warn_of_cost
from bristlecone._search.progress import SearchCost, SearchProgress
from bristlecone._tree import Tree
from bristlecone.exceptions import (
    BristleconeWarning,
    InfeasibleError,
    InfeasibleWarning,
    SearchLimitWarning,
)

__all__ = ["Callback", "SearchedTree"]

Callback = Callable[[SearchProgress], object]
Estimator = TypeVar("Estimator", bound="SearchedTree")

# Largest share of the remaining time that the choice of cuts may take, and how much longer than
# reading the rows ranking them, cutting and encoding them anew may take.
_SHARE_FOR_CUTS, _CUTS_BY_READING = 0.5, 5.0

# Share of a time limit that the search has in any case: a tree must be grown, too.
_SHARE_FOR_SEARCH = 0.05

# Among the facts of a certificate without a tree: what the search was to meet.
_UNMET = "unmet"

# Longer time limits are none; the engine's clock might overflow.
_MOST_SECONDS = 1e9


class SearchedTree(BaseTree):
    """A tree of least objective over the binary features of the encoder.

    An estimator says how its training rows are read and what they are searched for; its ``fit``
    is ``_fit`` with its arguments.
    """

    max_depth: int | None
    max_leaf_nodes: int | None
    min_samples_leaf: int | float
    leaf_penalty: float
    time_limit: float | None
    memory_limit: int | None
    n_jobs: int | None
    encoder: Any
    random_state: Any

    lower_bound_ = view("certificate_", "lower_bound", "No tree over the features is below this.")
    status_ = view("certificate_", "status", "How the search ended.")
    gap_ = view("certificate_", "gap", "Distance of the objective from the lower bound.")
    relative_gap_ = view("certificate_", "relative_gap", "The gap as a share of the objective.")
    guarantee_ = view("certificate_", "guarantee", "How much better another tree can be at most.")
    reference_loss_ = view("certificate_", "reference_loss", "Mean loss of the reference model.")
    n_nodes_explored_ = view("certificate_", "n_nodes_explored", "Work of the search.")

    @property
    def trace_(self) -> list[TracePoint]:
        """Seconds, objective and lower bound at each improvement."""
        return [TracePoint(*point) for point in self.certificate_.trace]

    @property
    def n_binary_features_(self) -> int:
        """Number of binary features the tree was searched over."""
        return len(self.certificate_.questions)

    @abstractmethod
    def _training_data(self, *args: Any, **kwargs: Any) -> Any:
        """Training rows from what ``fit`` was given, checked.

        ``X``, ``y``, ``sample_weight`` and more by name; what is returned is a named tuple that
        begins with ``X`` and has ``weight`` (an array or None).
        """

    @abstractmethod
    def _objective(self) -> Objective:
        """What the parameters ask for."""

    def _fit(
        self: Estimator,
        X: Any,
        y: Any,
        sample_weight: Any,
        callback: Callback | None,
        **more: Any,
    ) -> Estimator:
        """Find the best tree; called by ``fit`` with its arguments."""
        start = time.perf_counter()
        problem = self._problem(X, y, sample_weight, **more)
        self._search(problem, start, callback)
        self._announce([self], problem)
        return self

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
        engine = self._objective().engine(problem)
        sizes = range(1, self._most_leaves(problem) + 1)
        plain = clone(self)
        path = [_of_size(plain, leaves) for leaves in sizes]
        if engine.path is None:
            for tree in path:
                solution = tree.run(engine.solve, problem)
                tree._set_solution(solution, problem, start)
        else:
            solutions = self.run(engine.path, problem)
            path = path[: len(solutions)]
            for tree, solution in zip(path, solutions, strict=True):
                tree._set_solution(solution, problem, start)
        path[0]._announce(path, problem)
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
            When the forecast is beyond ``time_limit`` (ten minutes without one) or
            ``memory_limit`` (600 MiB without one); smaller settings that fit are given, if there
            are any: less depth, fewer features, a sample of the rows.
        """
        problem = self._problem(X, y, sample_weight, **data)
        cost = self.forecast(problem)
        if affordable(self, cost):
            return cost
        return replace(cost, suggestion=warn_of_cost(self, problem, cost))

    def check_fitted(self) -> None:
        """Raise NotFittedError, or InfeasibleError, when there is no tree."""
        found = getattr(self, "certificate_", None)
        if found is not None and found.is_infeasible:
            raise InfeasibleError(
                f"no tree of this {type(self).__name__} satisfies its constraints (status_ "
                "'infeasible'): there is nothing to predict with"
            )
        if found is not None and found.is_treeless:
            raise self._unmet()
        super().check_fitted()

    def _unmet(self) -> InfeasibleError:
        return InfeasibleError(
            f"the search stopped ({self.status_}) before it met {self.certificate_.facts[_UNMET]}: "
            "there may be one that takes longer to find"
        )

    def _problem(self, X: Any, y: Any, sample_weight: Any, **more: Any) -> Problem:
        start = time.perf_counter()
        self.check_parameters()
        problem = self.encoded(self._training_data(X, y, sample_weight, **more), start)
        if self._depth_limit(problem.features):
            self._warn_of_small_sample(problem)
        return problem._replace(seconds=time.perf_counter() - start)

    def _warn_of_small_sample(self, problem: Problem) -> None:
        """Warn where shares of the data as smallest leaves rule out every split."""
        least, events = problem.least, None
        if hasattr(self, "min_events_leaf"):
            events = self.min_events_leaf, least["min_events_leaf"], problem.data.event
        rows = self.min_samples_leaf, least["min_samples_leaf"]
        warn_of_small_sample(problem.features, rows, events)

    def encoded(self, data: Any, start: float | None = None) -> Problem:
        """The problem of these training rows, whose preparation began at ``start``."""
        start = time.perf_counter() if start is None else start
        encoder, read = fit_encoder(
            self.encoder,
            data.X,
            partial(self._objective().target, data),
            data.weight,
            self.verbose,
        )
        # What "auto" means follows from the features.
        follows = getattr(self, "min_events_leaf", None) == "auto"
        if read is None:
            features = binary_features(encoder, data.X)
            answers = count_answers(features, data.event) if follows else None
            data, least = self._smallest_leaf(encoder, data, answers)
        else:
            # The columns are sorted once: thresholds, greedy trees and features are by their ranks.
            columns = rank_columns(encoder, data.X, read)
            del read
            answers = columns.answers(encoder, data.event) if follows else None
            data, least = self._smallest_leaf(encoder, data, answers)
            del answers
            if isinstance(self.encoder, str):
                self._add_cuts(encoder, columns, data, least, start)
            asked = columns.ranks, *columns.questions(encoder), columns.n_rows
            del columns  # and the distinct values with it
            features = _core.encode_ranks(*asked)
        return Problem(data, encoder, features, least, time.perf_counter() - start, {})

    def _smallest_leaf(
        self, encoder: Any, data: Any, answers: Answers | None
    ) -> tuple[Any, dict[str, int]]:
        """The smallest leaf, and the training rows with what it follows from."""
        if answers is not None:
            data = data._replace(event_free=event_free_rows(encoder, answers, data))
        return data, smallest_leaf(self, data)

    def _add_cuts(
        self,
        encoder: BinaryEncoder,
        columns: RankedColumns,
        data: Any,
        least: dict[str, int],
        start: float,
    ) -> None:
        """Add the cuts of greedy trees over every threshold to the features."""
        if all(values is None for values in columns.values):
            return
        seconds = None
        if self.time_limit is not None:
            read = time.perf_counter() - start
            left = self.time_limit - (1.0 + _CUTS_BY_READING) * read
            seconds = min(_SHARE_FOR_CUTS * left, _MOST_SECONDS)
        if (
            self.max_depth == 0
            or self.max_leaf_nodes == 1
            or (seconds is not None and seconds <= 0.0)
        ):
            return
        most = columns.n_rows
        growth = Growth(
            max_depth=most if self.max_depth is None else min(self.max_depth, most),
            max_leaf_nodes=None if self.max_leaf_nodes is None else min(self.max_leaf_nodes, most),
            leaf_penalty=float(self.leaf_penalty),
            seconds=seconds,
            **least,
        )
        add_cuts(encoder, columns, self._objective().cuts(data, columns, growth))

    def _search(
        self,
        problem: Problem,
        start: float,
        callback: Callback | None,
        reference_loss: float | None = None,
    ) -> None:
        """Find the best tree and set what was found; ``reference_loss`` is that of all rows."""
        engine = self._objective().engine(problem)
        warner = CostWarner(self, problem, reporter(callback))
        solution = self.run(engine.solve, problem, callback=warner)
        warner.end(solution.status)
        self._set_solution(solution, problem, start, reference_loss)
        if self.certificate_.is_treeless and not self.certificate_.is_infeasible:
            raise self._unmet()

    def run(self, search: Callable[..., Any], problem: Problem, **options: Any) -> Any:
        """Call a function of the engine with the parameters as they are.

        The time limit counts from the beginning of ``fit``.
        """
        limit = self.time_limit
        if limit is not None:
            limit = max(_SHARE_FOR_SEARCH * limit, limit - problem.seconds)
        settings = {
            "max_depth": self._depth_limit(problem.features),
            "max_leaf_nodes": self._leaf_limit(problem.features),
            **problem.least,
            "leaf_penalty": float(self.leaf_penalty),
            "n_threads": thread_count(self.n_jobs),
            "time_limit": limit,
            "memory_limit": self.memory_limit,
            "options": None,
        }
        return search(**{**settings, **options})

    def _set_solution(
        self,
        solution: Any,
        problem: Problem,
        start: float,
        reference_loss: float | None = None,
    ) -> None:
        """Set tree, leaves, encoder and certificate."""
        objective, memo = self._objective(), problem.memo
        if "fingerprint" not in memo:
            memo["questions"] = question_names(problem.encoder)
            memo["fingerprint"] = fingerprint(problem.features, problem.data[1:])
        treeless = math.isinf(solution.objective)
        tree = leaves = groups = None
        aim = ""
        if not treeless:
            tree = self._grown(solution, problem)
            leaves = objective.leaves(tree, problem, solution)
            if tree.n_leaves > 1:
                tree = tree.with_losses(objective.losses(tree, problem, leaves))
            groups, aim = objective.groups(tree, problem, leaves), objective.aim(problem, leaves)
        certificate = Certificate(
            aim=aim,
            status=solution.status,
            objective_value=solution.objective,
            lower_bound=solution.lower_bound,
            questions=memo["questions"],
            parameters=self._parameters(),
            settings=dict(problem.least),
            trace=tuple(solution.trace),
            n_nodes_explored=solution.n_nodes_explored,
            seconds=time.perf_counter() - start,
            n_samples=len(problem.features),
            fingerprint=memo["fingerprint"],
            remarks=objective.remarks(),
            reference_loss=reference_loss,
            groups=groups,
            facts={_UNMET: objective.admissible} if treeless else {},
        )
        if tree is None or leaves is None:
            for name in ("tree_", "leaves_"):
                self.__dict__.pop(name, None)
            self.encoder_, self.certificate_ = problem.encoder, certificate
        else:
            self._set_fitted(tree, leaves, problem.encoder, certificate, problem.data.X)

    def found(self: Estimator, solution: Any, problem: Problem, start: float) -> Estimator:
        """A fitted tree with these parameters; its fit began at ``start``."""
        tree = clone(self)
        tree._set_solution(solution, problem, start)
        return tree

    def again(
        self: Estimator, X: Any, y: Any, sample_weight: Any = None, **data: Any
    ) -> tuple[Estimator, Problem, Engine]:
        """An unfitted copy with the parameters of the fit, its problem and its engine.

        The encoder and the smallest leaf are those of the fit.

        Parameters
        ----------
        X, y, sample_weight, **data
            What ``fit`` was given.

        Raises
        ------
        ValueError, TypeError
            As in ``fit``, and when these are not the rows of the fit.
        NotFittedError, InfeasibleError
            When there is no tree.
        """
        self.check_fitted()
        copy = clone(self).set_params(**self.certificate_.parameters)
        copy.check_parameters()
        start = time.perf_counter()
        rows = copy._training_data(X, y, sample_weight, **data)
        features = binary_features(self.encoder_, rows.X)
        settings, seconds = dict(self.certificate_.settings), time.perf_counter() - start
        problem = Problem(rows, self.encoder_, features, settings, seconds, {})
        if fingerprint(problem.features, problem.data[1:]) != self.certificate_.fingerprint:
            raise ValueError(
                "X and y are not the rows of the fit: outcomes, weights, their order, or the "
                "features made of X differ (certificate_.fingerprint)"
            )
        return copy, problem, copy.engine_of(problem)

    def engine_of(self, problem: Problem) -> Engine:
        """Functions of the engine for a problem, by the parameters as they are."""
        return self._objective().engine(problem)

    def _grown(self, solution: Any, problem: Problem) -> Tree:
        column, threshold = split_columns(problem.encoder, solution.feature)
        return Tree.grown(
            solution.children_left,
            solution.children_right,
            solution.feature,
            problem.features,
            problem.data.weight,
            threshold=threshold,
            column=column,
        )

    def _announce(self, trees: Sequence[SearchedTree], problem: Problem) -> None:
        """Log fits and warn of what their user must know; called by ``fit`` through ``_fit``."""
        warn_of_constants(problem.encoder)
        warn_of_event_free_rows(getattr(problem.data, "event_free", ""))
        found = [
            (tree.certificate_, tree.tree_.n_leaves, tree.tree_.max_depth)
            for tree in trees
            if not tree.certificate_.is_treeless
        ]
        report(found, self.verbose)
        if found:
            for doubt in self._objective().doubts(problem):
                warn(doubt, BristleconeWarning)
        infeasible = sum(tree.certificate_.is_infeasible for tree in trees)
        if infeasible:
            searches = f" in {infeasible} of {len(trees)} searches"
            warn(
                self._objective().infeasible + (searches if trees[1:] else ""),
                InfeasibleWarning,
            )
        stopped = [
            tree
            for tree in trees
            if tree.certificate_.is_treeless and not tree.certificate_.is_infeasible
        ]
        if stopped:
            warn(
                f"in {len(stopped)} of {len(trees)} searches: {stopped[0]._unmet()}",
                SearchLimitWarning,
            )

    def forecast(self, problem: Problem, max_depth: int | None = None) -> SearchCost:
        """Forecast of the search of a problem; see ``estimate_cost``."""
        function = self._objective().engine(problem).forecast
        depth = self._depth_limit(problem.features) if max_depth is None else max_depth
        forecast = self.run(function, problem, max_depth=depth)
        # Infinite counts would divide into NaN.
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


def _of_size(tree: Estimator, max_leaf_nodes: int) -> Estimator:
    """Copy of an unfitted tree; scikit-learn's clone takes longer than a small search."""
    other = deepcopy(tree)
    other.max_leaf_nodes = max_leaf_nodes
    return other
