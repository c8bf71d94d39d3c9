"""The certificate of a tree: the result of a fit, its proof and the conditions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bristlecone._core import BinaryMatrix, __version__
from bristlecone._log import log, warn
from bristlecone._search.progress import SearchProgress, relative_gap
from bristlecone._search.row_sums import PREFIX
from bristlecone._types import Floats
from bristlecone.exceptions import InvalidParameterError, SearchLimitWarning

# How searches end, in words.
STATUSES = {
    "optimal": "optimal",
    "near_optimal": "nearly optimal",
    "reference_optimal": "best with respect to the reference model",
    "time_limit": "stopped at the time limit",
    "memory_limit": "stopped at the memory limit",
    "interrupted": "interrupted",
    "infeasible": "infeasible",
}
# Statuses of greedy and soft trees, and of trees whose leaves were estimated from other rows than
# their splits.
UNPROVEN = ("grown", "trained", "reestimated")

# Facts of a search over every threshold.
_SCOPE = "thresholds", "rows_per_side"

ERRORS = "errors"
"""Fact of a tree from a front: the weights of its false positives and of its false negatives."""

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
    """An improvement during a fit.

    Attributes
    ----------
    seconds : float
        Time since the start of the fit; NaN for soft trees, whose steps are not timed.
    objective, lower_bound : float
        Best values at that time. The bound is -inf if nothing is proven.
    """

    seconds: float
    objective: float
    lower_bound: float


@dataclass(frozen=True, eq=False)
class GroupValues:
    """Quantities whose differences between groups are limited.

    Parameters
    ----------
    groups : array, shape (n_groups,)
        The groups in sorted order.
    values : array of float, shape (n_groups,) or (n_groups, n_quantities)
        Values of the quantities on the training rows of each group.
    confusion : array of float, shape (n_groups, 2, 2), or None
        For two classes, the weight of the training rows of each group by true and by predicted
        class.
    """

    groups: NDArray[Any]
    values: Floats
    confusion: Floats | None = None

    @property
    def difference(self) -> float:
        """Largest difference between two groups; of several quantities the largest of all."""
        return float(np.ptp(self.values, axis=0).max())

    @property
    def lines(self) -> list[tuple[str, str]]:
        """The values of every group, as (group, values) pairs."""
        values = self.values.reshape(len(self.groups), -1).tolist()
        texts = ["/".join(f"{value:.6g}" for value in own) for own in values]
        return list(zip(map(str, self.groups.tolist()), texts, strict=True))

    @property
    def table(self) -> list[list[str]]:
        """Confusion table with a column per group: a heading and rows; empty without counts."""
        if self.confusion is None:
            return []
        counts = self.confusion.transpose(1, 2, 0)
        (tn, fp), (fn, tp) = counts
        of = {
            "predicted positive": (tp + fp, counts.sum(axis=(0, 1))),
            "true positive rate": (tp, tp + fn),
            "false positive rate": (fp, fp + tn),
            "misclassified": (fp + fn, counts.sum(axis=(0, 1))),
        }
        numbers = {
            "true positives": tp,
            "false positives": fp,
            "false negatives": fn,
            "true negatives": tn,
        }
        return [
            ["group", *map(str, self.groups.tolist())],
            *([name, *(f"{n:.6g}" for n in own.tolist())] for name, own in numbers.items()),
            *(
                [name, *("–" if n == 0 else f"{k / n:.3f}" for k, n in zip(*pair, strict=True))]
                for name, pair in of.items()
            ),
        ]


@dataclass(frozen=True)
class Teaching:
    """How the outcomes of a fit were smoothed by a teacher.

    Parameters
    ----------
    name : str
        "auto", or the teacher's class and parameters.
    weight : float
        Share of the teacher's predictions in the smoothed outcomes.
    n_folds, seed : int
        Every row was predicted by a model that was fitted to the other folds.
    members : tuple of str
        Models that "auto" combined.
    score : float
        Share of the deviance of the real outcomes that the cross-fitted predictions explain.
    moments : tuple of 4 floats
        Weighted mean and root mean square of the smoothed outcomes, the least and the greatest.
    training_loss : float
        Loss of the tree on the real outcomes, without penalties.
    """

    name: str
    weight: float
    n_folds: int
    seed: int
    members: tuple[str, ...]
    score: float
    moments: tuple[float, float, float, float]
    training_loss: float

    @property
    def source(self) -> str:
        """The teacher in words."""
        if self.members[1:]:
            *first, last = self.members
            return f"a combination of {', '.join(first)} and {last}"
        return self.members[0] if self.members else self.name

    @property
    def outcomes(self) -> str:
        """The outcomes of the search in words."""
        return (
            f"outcomes smoothed by a teacher ({self.source}; weight {self.weight:g}, "
            f"{self.n_folds} folds, seed {self.seed})"
        )

    @property
    def sentences(self) -> str:
        """Sentence about the teacher for readers of the tree."""
        return (
            "Before the splits were chosen, the outcome of every training row was replaced by a "
            f"mixture: {100 * self.weight:.3g}% is the prediction of a teacher ({self.source}) "
            f"that was fitted to other rows ({self.n_folds} folds, seed {self.seed}), and the rest "
            "is the real outcome. The splits, the objective and its bound are those of the "
            "smoothed outcomes; all statistics and predictions of the leaves come from the real "
            f"outcomes, on which the loss of the tree is {self.training_loss:.10g}. The teacher's "
            f"own predictions explain {100 * self.score:.3g}% of the deviance of the real "
            "outcomes, and predictions of the tree do not need it."
        )


@dataclass(frozen=True, eq=False)
class Certificate:
    """Record of a fit: the objective, the binary features, the limits and the proven bound.

    Parameters
    ----------
    aim : str
        The objective in words, with its source.
    status : str
        "optimal": optimal among trees over the ``binary_features``. "near_optimal": nearly as
        good as the optimal tree, whose objective is the bound. "reference_optimal": the search
        ended, but skipped trees that would have to be better than a reference model. "time_limit",
        "memory_limit", "interrupted": the search stopped early. "infeasible": no tree satisfies the
        constraints. "grown", "trained": the tree was not found by search. "reestimated": the leaves
        were estimated from other rows than the splits; see ``structure``.
    objective_value, lower_bound : float
        Objective of the tree, and a lower bound of all trees; -inf if nothing is proven.
    binary_features : tuple of str
        The binary features; for a tree with numeric thresholds, the columns.
    parameters : mapping
        Constructor parameters of the fit.
    settings : mapping
        Resolved values of parameters that depend on the data: shares of rows,
        ``min_events_leaf="auto"``.
    trace : tuple of (float, float, float)
        Seconds, objective and lower bound at each improvement.
    n_nodes_explored : int
        Number of nodes that the search visited.
    seconds : float
        Duration of the fit.
    n_samples : int
        Training rows of positive weight.
    fingerprint : str
        SHA-256 of the training rows of the search: binary features (or numbers), outcomes and
        weights, in the order of the rows.
    remarks : tuple of (str, str)
        Notes on the numbers, as names and texts.
    reference_loss : float or None
        Mean loss of the reference model.
    groups : GroupValues or None
        The groups and the predictions for them, if their differences are limited.
    teacher : Teaching or None
        How the outcomes were smoothed before the search; None if they were not.
    facts : mapping
        Further results of the fit, such as the objectives of all restarts.
    version : str
        Version of the package that fitted the tree.
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
    teacher: Teaching | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    version: str = __version__

    @property
    def is_searched(self) -> bool:
        """Whether the tree was found by search, so it has a lower bound."""
        return self.status not in UNPROVEN

    @property
    def is_infeasible(self) -> bool:
        """Whether it is proven that no tree satisfies the constraints."""
        return self.status == "infeasible"

    @property
    def is_of_partitions(self) -> bool:
        """Whether the rows of the fit were read in partitions."""
        return self.fingerprint.startswith(PREFIX)

    @property
    def is_taught(self) -> bool:
        """Whether objective and bound are those of outcomes that a teacher smoothed."""
        return self.teacher is not None and self.status != "reestimated"

    @property
    def is_treeless(self) -> bool:
        """Whether there is no tree: none is allowed, or the search stopped before finding one."""
        return math.isinf(self.objective_value)

    @property
    def is_proved(self) -> bool:
        """Whether the search ran to its end."""
        return self.status in ("optimal", "near_optimal", "reference_optimal", "infeasible")

    @property
    def gap(self) -> float:
        """Distance of the objective from the bound; 0 if infeasible, inf if no tree was found."""
        return 0.0 if self.is_infeasible else self.objective_value - self.lower_bound

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the objective; 0 if infeasible, inf if no tree was found."""
        return 0.0 if self.is_infeasible else relative_gap(self.objective_value, self.lower_bound)

    @property
    def guarantee(self) -> float:
        """Largest amount by which another tree can be better than this one.

        This is the gap. After a complete search with a reference model, it is the mean loss of the
        reference if that is smaller (Zhang et al., AISTATS 2024, theorem 2.7, without the unknown
        optimum).
        """
        if self.status == "reference_optimal" and self.reference_loss is not None:
            return min(self.gap, self.reference_loss)
        return self.gap

    @property
    def structure(self) -> Certificate | None:
        """Certificate of the splits on the rows of their search; None unless re-estimated."""
        if self.status != "reestimated":
            return None
        known = {name: self.facts[fact] for fact, name in _STRUCTURE.items()}
        if known["lower_bound"] is None:
            known["lower_bound"] = -math.inf
        return replace(self, **known, facts=self._facts_of_scope, groups=None)

    def reestimated(self, facts: Mapping[str, Any], **anew: Any) -> Certificate:
        """Certificate of the same splits with leaves of other rows, described by ``anew``.

        There is no lower bound for these rows. Beside the ``facts`` of these leaves, it keeps what
        ``structure`` needs of the first certificate.
        """
        first = self if self.structure is None else self.structure
        kept = {fact: getattr(first, name) for fact, name in _STRUCTURE.items()}
        if math.isinf(first.lower_bound):
            kept["structure_lower_bound"] = None
        nothing = {"lower_bound": -math.inf, "trace": (), "n_nodes_explored": 0}
        every = {**kept, **self._facts_of_scope, **facts}
        same = {"reference_loss": None, "version": __version__, "facts": every}
        return replace(self, status="reestimated", **{**nothing, **same, **anew})

    @property
    def _facts_of_scope(self) -> dict[str, Any]:
        return {name: self.facts[name] for name in _SCOPE if name in self.facts}

    @property
    def scope(self) -> str:
        """The trees that the proof is about, in words."""
        if "thresholds" not in self.facts:
            n_features = len(self.binary_features)
            these = "this binary" if n_features == 1 else f"these {n_features} binary"
            return f"among trees over {these} feature{'s' * (n_features != 1)}"
        depth, side = self.parameters.get("max_depth"), self.facts["rows_per_side"]
        trees = "all trees" if depth is None else f"all trees of depth {depth}"
        return (
            f"among {trees} over every threshold of the numeric columns and the categories as "
            f"encoded (at least {side} row{'s' * (side != 1)} a side)"
        )

    @property
    def sentence(self) -> str:
        """The proof in words."""
        if self.structure is not None:
            return (
                "the leaves were estimated again on other rows, for which nothing is proven. The "
                f"splits, found on {self.structure.n_samples:,} rows: {self.structure.sentence}"
            )
        if self.status == "grown":
            return "grown greedily, one split at a time: nothing is proven about other trees"
        if not self.is_searched:
            return "trained from several starting points: nothing is proven about other trees"
        over = f"optimal {self.scope}"
        if self.teacher is not None:
            over += f", for {self.teacher.outcomes}"
        if self.status == "optimal":
            return over
        if self.status == "near_optimal":
            return (
                f"nearly {over}: the objective exceeds that of the optimal tree by {self.gap:.3g}"
            )
        ended = STATUSES[self.status]
        best = ";" if self.is_proved else ": the best tree found so far,"
        return f"{ended}{best} not proven {over}"

    @property
    def numbers(self) -> list[tuple[str, str]]:
        """The numbers of the proof, as (name, value) pairs."""
        return [
            ("objective", f"{self.objective_value:.10g}"),
            ("lower bound", f"{self.lower_bound:.10g}"),
            ("gap", self.gap_text),
            self._counted,
            ("seconds", f"{self.seconds:.3g}"),
            *self.notes,
        ]

    @property
    def min_events_leaf(self) -> int:
        """Minimum number of events per leaf; 0 for no minimum."""
        return int(self.settings.get("min_events_leaf", 0))

    @property
    def _counted(self) -> tuple[str, str]:
        """Number of the questions that were searched."""
        if "thresholds" in self.facts:
            return "thresholds", str(self.facts["thresholds"])
        return "binary features", str(len(self.binary_features))

    @property
    def gap_text(self) -> str:
        """The gap as shown to users: 0 if the tree counts as optimal."""
        if self.status == "optimal":
            return "0 (0%)"
        return f"{self.gap:.3g} ({100 * self.relative_gap:.3g}%)"

    @property
    def notes(self) -> list[tuple[str, str]]:
        """The remarks, and the guarantee if it is not the gap."""
        shown = list(self.remarks)
        if ERRORS in self.facts:
            names = "false positives", "false negatives"
            shown += zip(names, map("{:.10g}".format, self.facts[ERRORS]), strict=True)
        if self.status == "reference_optimal":
            shown.append(("guarantee", f"no tree is better by more than {self.guarantee:.6g}"))
        return shown


def fingerprint(features: Floats | BinaryMatrix, data: Any) -> str:
    """SHA-256 of training rows: the features, and the arrays of ``data``, in their order.

    Labels count by their values, whatever the type in which the user's library holds them.
    ``data`` is a named tuple; its ``X``, the places of its times, and smoothed outcomes and
    rewards, which need not be the same to the last digit on another machine, do not count.
    """
    digest = sha256()
    binary = isinstance(features, BinaryMatrix)
    digest.update(repr((features.shape, binary)).encode())
    rows = features.words() if isinstance(features, BinaryMatrix) else features
    others = ("X", "place", "smoothed", "rewards")
    own = [x for name, x in data._asdict().items() if name not in others]
    for array in (np.ascontiguousarray(rows), *own):
        if not isinstance(array, np.ndarray):
            continue
        array = _of_plain_type(array)
        if array.dtype == object:
            digest.update(repr(array.tolist()).encode())
        else:
            digest.update(repr((array.dtype.str, array.shape)).encode())
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
    return digest.hexdigest()


def _of_plain_type(array: NDArray[Any]) -> NDArray[Any]:
    """Texts as text of their own length, and numbers in 64 bits."""
    if array.dtype.kind in "OU" and array.size and all(isinstance(x, str) for x in array.flat):
        return np.array(array.tolist())
    if array.dtype.kind in "iu" and array.dtype != np.uint64:
        return array.astype(np.int64, copy=False)
    return array.astype(np.float64, copy=False) if array.dtype.kind == "f" else array


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
            "".join(f"; {name}: {text}" for name, text in found.notes),
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
