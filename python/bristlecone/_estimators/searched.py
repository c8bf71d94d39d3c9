"""Trees found by search: fit, size path and forecast."""

from __future__ import annotations

import time
from abc import abstractmethod
from copy import deepcopy
from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from sklearn.base import clone

from bristlecone._data.rows import CheckedRows
from bristlecone._encoder.ranked import RankedFeatures
from bristlecone._estimators.base import BaseTree, in_order_of_fit, training_rows, unfitted
from bristlecone._fit.assemble import Fitted, announce, assemble, settle, unmet
from bristlecone._fit.encode import encode, encode_again, warn_of_shares
from bristlecone._fit.forecast import estimate
from bristlecone._fit.search import Limits, Search
from bristlecone._fit.solve import Callback, solve, solve_sizes
from bristlecone._leaves.base import view
from bristlecone._objectives.base import Objective
from bristlecone._search.certificate import TracePoint
from bristlecone._search.engine import Problem
from bristlecone._search.progress import SearchCost
from bristlecone._teacher.lesson import teach, teach_again, teacher_of
from bristlecone.exceptions import InfeasibleError

Estimator = TypeVar("Estimator", bound="SearchedTree")


class SearchedTree(BaseTree):
    """A tree of least objective over the binary features of the encoder.

    An estimator defines how its training rows are read and the objective of the search. Its
    ``fit`` passes its arguments to ``_fit``.
    """

    max_leaf_nodes: int | None
    encoder: Any

    lower_bound_ = view("certificate_", "lower_bound", "Lower bound on the objective.", float)
    status_ = view("certificate_", "status", "How the search ended.", str)
    gap_ = view("certificate_", "gap", "Objective minus the lower bound.", float)
    relative_gap_ = view("certificate_", "relative_gap", "Gap divided by the objective.", float)
    guarantee_ = view(
        "certificate_", "guarantee", "Largest amount by which another tree can be better.", float
    )
    reference_loss_ = view(
        "certificate_", "reference_loss", "Mean loss of the reference model, or None.", float
    )
    n_nodes_explored_ = view(
        "certificate_", "n_nodes_explored", "Number of nodes that the search visited.", int
    )

    @property
    def trace_(self) -> list[TracePoint]:
        """Seconds, objective and lower bound at each improvement."""
        return [TracePoint(*point) for point in self.certificate_.trace]

    @property
    def n_binary_features_(self) -> int:
        """Number of binary features the tree was searched over."""
        return len(self.certificate_.binary_features)

    @abstractmethod
    def _training_data(self, *args: Any, **kwargs: Any) -> CheckedRows:
        """Checked training rows from the arguments of ``fit``.

        Takes ``X``, ``y``, ``sample_weight`` and others by name.
        """

    @abstractmethod
    def _objective(self) -> Objective:
        """Objective of the parameters."""

    def _fit(
        self: Estimator, X: Any, y: Any, sample_weight: Any, callback: Callback | None, **more: Any
    ) -> Estimator:
        """Find the best tree; called by ``fit`` with its arguments."""
        start = time.perf_counter()
        search, problem = self._asked(X, y, sample_weight, callback, **more)
        return self._found(search, problem, start, callback)

    def _found(
        self: Estimator, search: Search, problem: Problem, start: float, callback: Callback | None
    ) -> Estimator:
        """Search, store the result and issue warnings."""
        fitted = self._keep(search, problem, solve(search, problem, callback), start)
        if self.certificate_.is_treeless and not self.certificate_.is_infeasible:
            raise unmet(self.certificate_)
        announce(search, problem, [fitted])
        return self

    def size_path(
        self: Estimator, X: Any, y: Any, sample_weight: Any = None, **data: Any
    ) -> list[Estimator]:
        """Find the best tree of every size.

        Parameters
        ----------
        X, y, sample_weight, **data
            As in ``fit``, except ``callback`` and ``reference_loss``.

        Returns
        -------
        list of fitted estimators
            Entry k is a best tree with at most k + 1 leaves, with its objective, bound and status.
            Its objective is that of ``fit`` with ``max_leaf_nodes=k + 1`` over the same binary
            features; if several trees are equally good, it may be another one. With
            ``encoder="auto"``, the thresholds come from the greedy tree of the largest size, while
            ``fit`` uses a greedy tree of its own size. Every entry is at least as good as the
            subtrees of its size of that greedy tree.

            The sizes end at ``max_leaf_nodes``, at the largest size that ``max_depth`` allows, or
            at the number of distinct rows. One search finds all trees, and the limits and
            ``fit_time_`` refer to this search. If trees are chosen from a Pareto front, or among
            every threshold, each size has its own search, and the searches share ``time_limit``.
            The trees have the parameters of this estimator, which is not changed, and share the
            fitted encoder.

        Raises
        ------
        ValueError, TypeError, KeyboardInterrupt
            As in ``fit``.

        Warns
        -----
        SearchLimitWarning
            Once, if a limit or Ctrl-C stopped a search before every tree was proven optimal.
        BristleconeWarning
            The other warnings of ``fit``, except SearchCostWarning.
        """
        start = time.perf_counter()
        search, problem = self._asked(X, y, sample_weight, **data)
        plain, path, fits = clone(self), [], []
        for leaves, solution in enumerate(solve_sizes(search, problem), start=1):
            tree = deepcopy(plain)  # scikit-learn's clone takes longer than a small search
            tree.max_leaf_nodes = leaves
            fits.append(tree._keep(search, problem, solution, start))
            path.append(tree)
        announce(search, problem, fits)
        return path

    def estimate_cost(self, X: Any, y: Any, sample_weight: Any = None, **data: Any) -> SearchCost:
        """Forecast the time and memory of ``fit`` without running the search.

        The rows are encoded and counted. The forecast assumes that the search cannot prune
        anything, so it is often too high, especially with a ``leaf_penalty``.

        Parameters
        ----------
        X, y, sample_weight, **data
            As in ``fit``, except ``callback`` and ``reference_loss``.

        Returns
        -------
        SearchCost
            Seconds, bytes and the numbers that they depend on.

        Raises
        ------
        ValueError, TypeError
            As in ``fit``.

        Warns
        -----
        SearchCostWarning
            If the forecast exceeds ``time_limit`` (ten minutes without one) or ``memory_limit``
            (600 MiB without one). The message suggests smaller settings, if there are any: less
            depth, fewer binary features, a sample of the rows.
        ColumnWarning, SmallSampleWarning, OverlapWarning
            As in ``fit``.
        """
        return estimate(*self._asked(X, y, sample_weight, **data))

    def _check_fitted(self) -> None:
        """Raise NotFittedError, or InfeasibleError, when there is no tree."""
        found = getattr(self, "certificate_", None)
        if found is not None and found.is_infeasible:
            raise InfeasibleError(
                f"this {type(self).__name__} cannot predict: no tree satisfies its constraints "
                "(status_ is 'infeasible')"
            )
        if found is not None and found.is_treeless:
            raise unmet(found)
        super()._check_fitted()

    def _search(self) -> Search:
        """Search of the parameters."""
        return Search(self._objective(), self.encoder, Limits.of(self), self.verbose)

    def _asked(
        self, X: Any, y: Any, sample_weight: Any, callback: Callback | None = None, /, **more: Any
    ) -> tuple[Search, Problem]:
        """The search, and the rows and features it runs on.

        ``more`` are arguments of the user, who gets an error for a callback that nothing calls.
        """
        start = time.perf_counter()
        self._check_parameters()
        search, data = self._search(), training_rows(self, X, y, sample_weight, more)
        data, teaching = teach(self, search.objective, data, callback)
        problem = encode(search, data, start)
        warn_of_shares(search.limits, problem)
        return search, replace(problem, seconds=time.perf_counter() - start, teaching=teaching)

    def _keep(self, search: Search, problem: Problem, solution: Any, start: float) -> Fitted:
        """Set tree, leaves, encoder and certificate."""
        problem, solution = settle(problem, solution)
        fitted = assemble(search, problem, solution, self._parameters(), start)
        if fitted.tree is None or fitted.leaves is None:
            for name in ("tree_", "leaves_"):
                self.__dict__.pop(name, None)
            self.encoder_, self.certificate_ = problem.encoder, fitted.certificate
        else:
            rows = problem.data.X
            values = fitted.tree, fitted.leaves, problem.encoder, fitted.certificate
            # Resamples have features only, and their missing values are not needed.
            missing = rows is not problem.features and np.any(
                getattr(problem.encoder, "n_missing_", False)
            )
            self._set_fitted(*values, rows, with_missing=bool(missing))
        return fitted


class Again(NamedTuple):
    """The search of a fitted tree, prepared to run again.

    Attributes
    ----------
    search, problem
        They have the parameters, the encoder and the smallest leaf of the fit.
    searched : Problem
        The problem that the search solved: over every threshold if ``thresholds="all"``, otherwise
        ``problem``.
    copy : estimator
        Estimator that is not fitted, with the parameters of the fit.
    """

    search: Search
    problem: Problem
    searched: Problem
    copy: SearchedTree

    def tree(self, solution: Any, problem: Problem, start: float) -> Any:
        """The fitted tree of a solution, whose search began at ``start``."""
        tree = deepcopy(self.copy)
        tree._keep(self.search, problem, solution, start)
        return tree


def again(tree: SearchedTree, X: Any, y: Any, sample_weight: Any = None, **data: Any) -> Again:
    """The search of a fitted tree; pass the arguments of its ``fit``.

    Raises
    ------
    ValueError, TypeError
        As in ``fit``, and if these are not the rows of the fit.
    NotFittedError, InfeasibleError
        If there is no tree.
    """
    tree._check_fitted()
    taught = tree.certificate_.teacher is not None
    copy = unfitted(tree, **({"teacher": teacher_of(tree)} if taught else {}))
    copy._check_parameters()
    start = time.perf_counter()
    X = in_order_of_fit(tree, X)
    search, rows = copy._search(), training_rows(copy, X, y, sample_weight, data)
    rows, teaching = teach_again(tree, search.objective, rows)
    problem = encode_again(tree.encoder_, tree.certificate_, rows, start)
    problem = replace(problem, teaching=teaching)
    searched = problem
    if "thresholds" in tree.certificate_.facts:
        given = tree.encoder_, rows.X, rows.weight, tree.encoder_.min_support
        encoder, ranked = RankedFeatures.again(*given)
        searched = replace(problem, encoder=encoder, features=ranked, memo={})
    return Again(search, problem, searched, copy)
