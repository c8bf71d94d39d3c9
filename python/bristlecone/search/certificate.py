"""What every estimator keeps of its search: objective, bound, status, and how it reports them."""

from __future__ import annotations

import logging
import math
import time
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from bristlecone import _core
from bristlecone.errors import InvalidParameterError, SearchLimitWarning
from bristlecone.model.registry import Fields
from bristlecone.search.progress import SearchProgress, relative_gap

__all__ = ["STATUSES", "SearchedTreeMixin", "report", "reporter"]

STATUSES = ("optimal", "reference_optimal", "time_limit", "memory_limit", "interrupted")


class SearchedTreeMixin:
    """Certificate of a searched tree."""

    objective_value_: float
    lower_bound_: float
    status_: str
    n_nodes_explored_: int
    trace_: list[tuple[float, ...]]
    fit_time_: float
    reference_loss_: float | None

    @property
    def gap_(self) -> float:
        """Distance of the objective from the lower bound.

        0 when proven infeasible, inf when no tree was met.
        """
        return 0.0 if self._is_infeasible() else self.objective_value_ - self.lower_bound_

    @property
    def relative_gap_(self) -> float:
        """The gap as a share of the objective.

        0 when proven infeasible, inf when no tree was met.
        """
        if self._is_infeasible():
            return 0.0
        if self._is_treeless():
            return math.inf
        return relative_gap(self.objective_value_, self.lower_bound_)

    @property
    def guarantee_(self) -> float:
        """How much better than this tree another one can be at most.

        The gap; or, after a complete search with a reference model, the mean loss of the reference
        if that is less (Zhang et al., AISTATS 2024, theorem 2.7, without the unknown optimum).
        """
        if self.status_ == "reference_optimal" and self.reference_loss_ is not None:
            return min(self.gap_, self.reference_loss_)
        return self.gap_

    def _is_infeasible(self) -> bool:
        return getattr(self, "status_", None) == "infeasible"

    def _is_treeless(self) -> bool:
        """Whether no tree satisfies the constraints, or none was met before the search stopped."""
        return math.isinf(getattr(self, "objective_value_", 0.0))

    def _remarks(self) -> list[tuple[str, str]]:
        """What the numbers of the certificate do not say by themselves, as (name, text) pairs."""
        if self.status_ != "reference_optimal":
            return []
        return [("guarantee", f"no tree is better by more than {self.guarantee_:.6g}")]

    def _set_search(self, solution: _core.Solution, start: float) -> None:
        self.objective_value_ = solution.objective
        self.lower_bound_ = solution.lower_bound
        self.status_ = solution.status
        self.n_nodes_explored_ = solution.n_nodes_explored
        self.trace_ = [tuple(entry) for entry in solution.trace]
        self.reference_loss_ = None
        self.fit_time_ = time.perf_counter() - start

    def _search_fields(self) -> dict[str, Any]:
        fields = {
            "objective_value": self.objective_value_,
            "lower_bound": self.lower_bound_,
            "status": self.status_,
            "n_nodes_explored": self.n_nodes_explored_,
            # JSON has no inf, the objective before a tree that keeps the constraints was met.
            "trace": [
                (at, None if math.isinf(value) else value, bound)
                for at, value, bound in self.trace_
            ],
            "fit_time": self.fit_time_,
        }
        if self.reference_loss_ is not None:
            fields["reference_loss"] = self.reference_loss_
        return fields

    def _read_search(self, search: Fields) -> None:
        # A loss of zero may be rounded to either side.
        self.objective_value_ = search.number("objective_value", minimum=-math.inf)
        self.lower_bound_ = search.number("lower_bound", minimum=-math.inf)
        self.status_ = search.text("status", STATUSES)
        self.n_nodes_explored_ = search.integer("n_nodes_explored")
        self.trace_ = search.rows("trace", 3, null=math.inf)
        self.fit_time_ = search.number("fit_time")
        self.reference_loss_ = None
        if "reference_loss" in search.names():
            self.reference_loss_ = search.number("reference_loss")
        search.finish()
        closed = self.gap_ <= 1e-9 * max(1.0, abs(self.objective_value_))
        if self.gap_ < 0 or (self.status_ == "optimal" and not closed):
            raise search.fail("lower_bound", "contradicts objective_value or status")
        if self.status_ == "reference_optimal" and self.reference_loss_ is None:
            raise search.fail("status", "needs a reference_loss")


def reporter(
    callback: Callable[[SearchProgress], object] | None,
) -> Callable[..., object] | None:
    """Callback of the engine for a callback of the user."""
    if callback is None:
        return None
    if not callable(callback):
        raise InvalidParameterError(f"callback must be callable or None; got {callback!r}")
    return lambda *point: callback(SearchProgress(*point))


def report(trees: Sequence[Any], logger: logging.Logger, stacklevel: int) -> None:
    """Log fits and warn when a limit stopped them; called by the method of the user's call."""
    for tree in trees:
        level = logging.INFO if tree.verbose else logging.DEBUG
        if not logger.isEnabledFor(level):
            continue
        logger.log(
            level,
            "%s: objective %.6g, lower bound %.6g, %d leaves, depth %d, %d binary features, "
            "%.3f s%s",
            tree.status_,
            tree.objective_value_,
            tree.lower_bound_,
            tree.n_leaves_,
            tree.depth_,
            tree.n_binary_features_,
            tree.fit_time_,
            "".join(f"; {name}: {text}" for name, text in tree._remarks()),
        )
    unproven = [tree for tree in trees if tree.status_ not in ("optimal", "reference_optimal")]
    if unproven:
        worst = max(unproven, key=lambda tree: tree.gap_)
        warnings.warn(
            f"the search stopped ({worst.status_}) with objective {worst.objective_value_:.6g} "
            f"and lower bound {worst.lower_bound_:.6g}: gap {worst.gap_:.3g}"
            + (f"; {len(unproven)} of {len(trees)} trees are not proven" if trees[1:] else ""),
            SearchLimitWarning,
            stacklevel=stacklevel,
        )
