"""What a fit found and proved, and under which conditions: the certificate of a tree."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bristlecone._core import __version__
from bristlecone._log import log, warn
from bristlecone._search.progress import SearchProgress, relative_gap
from bristlecone.exceptions import InvalidParameterError, SearchLimitWarning

__all__ = [
    "STATUSES",
    "Certificate",
    "GroupValues",
    "TracePoint",
    "fingerprint",
    "report",
    "reporter",
]

# Statuses of searches. Greedy and soft trees, and trees whose leaves are of other rows than their
# questions, of which nothing is proved, have one of UNPROVEN.
STATUSES = (
    "optimal",
    "reference_optimal",
    "time_limit",
    "memory_limit",
    "interrupted",
    "infeasible",
)
UNPROVEN = ("grown", "trained", "reestimated")

# Facts of a re-estimated tree about the rows that its questions are from, and what they were.
_STRUCTURE = {
    "structure_status": "status",
    "structure_objective": "objective_value",
    "structure_lower_bound": "lower_bound",
    "structure_reference_loss": "reference_loss",
    "structure_samples": "n_samples",
    "structure_fingerprint": "fingerprint",
}


class TracePoint(NamedTuple):
    """An improvement on the way of a fit.

    Attributes
    ----------
    seconds : float
        Time since the beginning of the fit; NaN for soft trees, whose steps are not timed.
    objective, lower_bound : float
        Known at that time. The bound is -inf where nothing is proven.
    """

    seconds: float
    objective: float
    lower_bound: float


@dataclass(frozen=True, eq=False)
class GroupValues:
    """Quantity whose difference between two groups is limited.

    Parameters
    ----------
    groups : array, shape (2,)
        The groups in sorted order.
    values : array of float, shape (2,)
        Its value on the training rows of each.
    """

    groups: NDArray[Any]
    values: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Certificate:
    """What was searched for, over which questions and under which limits, and what was proved.

    Parameters
    ----------
    aim : str
        What the tree is to have least or most of, with its source.
    status : str
        "optimal": optimal among trees over the ``binary_features``. "reference_optimal": the search
        ended, but left out trees on which a reference model is better. "time_limit",
        "memory_limit", "interrupted": it stopped before its end. "infeasible": no tree satisfies
        the constraints. "grown", "trained": the tree was not searched for. "reestimated": the
        leaves are from other rows than the splits; see ``structure``.
    objective_value, lower_bound : float
        Objective of the tree, and a bound below which no tree is; -inf where nothing is proved.
    binary_features : tuple of str
        The binary features, or the columns of a tree that cuts them itself.
    parameters : mapping
        Constructor parameters of the fit.
    settings : mapping
        Values of those that depend on the data: shares of rows, ``min_events_leaf="auto"``.
    trace : tuple of (float, float, float)
        Seconds, objective and lower bound at each improvement.
    n_nodes_explored : int
        Nodes that the search looked at.
    seconds : float
        Duration of the fit.
    n_samples : int
        Training rows of positive weight.
    fingerprint : str
        SHA-256 of the training rows as the search saw them: binary features (or numbers), outcomes
        and weights, in the order of the rows.
    remarks : tuple of (str, str)
        Notes on the numbers, as names and texts.
    reference_loss : float or None
        Mean loss of the reference model.
    groups : GroupValues or None
        Two groups and what the tree predicts for them, where their difference is limited.
    facts : mapping
        Further results of the fit, such as the objectives of all restarts.
    version : str
        Of the package that fitted the tree.
    """

    aim: str
    status: str
    objective_value: float
    lower_bound: float
    binary_features: tuple[str, ...]
    parameters: Mapping[str, Any]
    settings: Mapping[str, Any]
    trace: tuple[tuple[float, ...], ...]
    n_nodes_explored: int
    seconds: float
    n_samples: int
    fingerprint: str
    remarks: tuple[tuple[str, str], ...] = ()
    reference_loss: float | None = None
    groups: GroupValues | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    version: str = __version__

    @property
    def is_searched(self) -> bool:
        """Whether the tree was searched for, so that there is something to prove."""
        return self.status not in UNPROVEN

    @property
    def is_infeasible(self) -> bool:
        """Whether it is proved that no tree satisfies the constraints."""
        return self.status == "infeasible"

    @property
    def is_treeless(self) -> bool:
        """Whether no tree satisfies the constraints, or none was met before the search stopped."""
        return math.isinf(self.objective_value)

    @property
    def is_proved(self) -> bool:
        """Whether the search ended by itself."""
        return self.status in ("optimal", "reference_optimal", "infeasible")

    @property
    def gap(self) -> float:
        """Distance of the objective from the bound; 0 if infeasible, inf when no tree was met."""
        return 0.0 if self.is_infeasible else self.objective_value - self.lower_bound

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the objective; 0 if infeasible, inf when no tree was met."""
        if self.is_infeasible:
            return 0.0
        if self.is_treeless:
            return math.inf
        return relative_gap(self.objective_value, self.lower_bound)

    @property
    def guarantee(self) -> float:
        """How much better than this tree another one can be at most.

        The gap; or, after a complete search with a reference model, the mean loss of the reference
        if that is less (Zhang et al., AISTATS 2024, theorem 2.7, without the unknown optimum).
        """
        if self.status == "reference_optimal" and self.reference_loss is not None:
            return min(self.gap, self.reference_loss)
        return self.gap

    @property
    def structure(self) -> Certificate | None:
        """What was proved of the questions, on the rows they are from; None unless re-estimated."""
        if self.status != "reestimated":
            return None
        known = {name: self.facts[fact] for fact, name in _STRUCTURE.items()}
        if known["lower_bound"] is None:
            known["lower_bound"] = -math.inf
        return replace(self, **known, facts={}, groups=None)

    def reestimated(self, **anew: Any) -> Certificate:
        """Certificate of the same questions with leaves of other rows, of which ``anew`` tells.

        Nothing is proved there: there is no bound. Facts keep what was, for ``structure``.
        """
        first = self if self.structure is None else self.structure
        facts = {fact: getattr(first, name) for fact, name in _STRUCTURE.items()}
        if math.isinf(first.lower_bound):
            facts["structure_lower_bound"] = None
        nothing = {"lower_bound": -math.inf, "trace": (), "n_nodes_explored": 0}
        same = {"reference_loss": None, "version": __version__, "facts": facts}
        return replace(self, status="reestimated", **{**nothing, **same, **anew})

    @property
    def sentence(self) -> str:
        """What was proved, in words."""
        if self.structure is not None:
            first = self.structure
            return (
                "reestimated: the leaves are of other rows than the questions, nothing is proved "
                f"on them; the questions, of {first.n_samples} rows: {first.sentence}"
            )
        if not self.is_searched:
            return f"{self.status}, not searched for: nothing is proved"
        over = f"optimal among trees over these {len(self.binary_features)} binary features"
        if self.status == "optimal":
            return over
        if self.status == "reference_optimal":
            return f"best with respect to the reference model, not proven {over}"
        return f"{self.status}: the best tree found, not proven {over}"

    @property
    def numbers(self) -> list[tuple[str, str]]:
        """The numbers behind it, as (name, value) pairs."""
        return [
            ("objective", f"{self.objective_value:.10g}"),
            ("lower bound", f"{self.lower_bound:.10g}"),
            ("gap", self.gap_text),
            ("binary features", str(len(self.binary_features))),
            ("seconds", f"{self.seconds:.3g}"),
            *self.told,
        ]

    @property
    def gap_text(self) -> str:
        """The gap as users read it: 0 where it is no more than optimal allows."""
        if self.status == "optimal":
            return "0 (0 %)"
        return f"{self.gap:.3g} ({100 * self.relative_gap:.3g} %)"

    @property
    def told(self) -> list[tuple[str, str]]:
        """The remarks, and the guarantee where it is not the gap."""
        told = list(self.remarks)
        if self.status == "reference_optimal":
            told.append(("guarantee", f"no tree is better by more than {self.guarantee:.6g}"))
        return told


def fingerprint(features: NDArray[Any], data: tuple[Any, ...]) -> str:
    """SHA-256 of training rows: the features, and the arrays of ``data``, in their order."""
    told = sha256()
    binary = features.dtype != np.float64
    told.update(repr((features.shape, binary)).encode())
    rows = np.packbits(features) if binary else features
    for array in (np.ascontiguousarray(rows), *data):
        if not isinstance(array, np.ndarray):
            continue
        if array.dtype == object:
            told.update(repr(array.tolist()).encode())
        else:
            told.update(repr((array.dtype.str, array.shape)).encode())
            told.update(np.ascontiguousarray(array).view(np.uint8).data)
    return told.hexdigest()


def reporter(
    callback: Callable[[SearchProgress], object] | None,
) -> Callable[..., object] | None:
    """Callback of the engine for a callback of the user."""
    if callback is None:
        return None
    if not callable(callback):
        raise InvalidParameterError(f"callback must be callable or None; got {callback!r}")
    return lambda *point: callback(SearchProgress(*point))


def report(fits: Sequence[tuple[Certificate, int, int]], verbose: Any) -> None:
    """Log searches (certificate, leaves, depth) and warn when a limit stopped them."""
    for found, n_leaves, depth in fits:
        log(
            verbose,
            "%s: objective %.6g, lower bound %.6g, %d leaves, depth %d, %d binary features, "
            "%.3f s%s",
            found.status,
            found.objective_value,
            found.lower_bound,
            n_leaves,
            depth,
            len(found.binary_features),
            found.seconds,
            "".join(f"; {name}: {text}" for name, text in found.told),
        )
    _warn_of_limits([found for found, *_ in fits])


def _warn_of_limits(found: Sequence[Certificate]) -> None:
    unproven = [one for one in found if not one.is_proved]
    if unproven:
        worst = max(unproven, key=lambda one: one.gap)
        warn(
            f"the search stopped ({worst.status}) with objective {worst.objective_value:.6g} "
            f"and lower bound {worst.lower_bound:.6g}: gap {worst.gap:.3g}"
            + (f"; {len(unproven)} of {len(found)} trees are not proven" if found[1:] else ""),
            SearchLimitWarning,
        )
