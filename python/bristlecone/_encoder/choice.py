"""Candidates of the encoder: how many rows they hold for, and which of them repeat another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from bristlecone._encoder.columns import CategoricalColumn, RankedColumn, TrainingColumn
from bristlecone._encoder.counts import ValueCounts
from bristlecone._encoder.features import Feature, Threshold
from bristlecone._encoder.schema import ColumnSchema
from bristlecone._encoder.thresholds import weighted_mean


class Chosen(NamedTuple):
    """What a fit of the encoder chose: its attributes, and warnings about columns."""

    columns: list[ColumnSchema]
    features: list[Feature]
    constant: list[str]
    doubts: list[str]


class Candidate(NamedTuple):
    """A feature that varies, and what is known of it from the counts of its column.

    Attributes
    ----------
    feature : Feature
    n_smaller : int
        Rows on the smaller side, the same for a feature and its complement.
    own : hashable
        Its answers for the distinct values of its column, likewise; of a threshold the number of
        values that are not above it.
    support : float
        Share of the weight on the lighter side.
    """

    feature: Feature
    n_smaller: int
    own: Hashable
    support: float

    @classmethod
    def of(cls, feature: Feature, counts: ValueCounts) -> Candidate | None:
        """The candidate; None where the feature is true for all rows or for none."""
        own: Hashable
        if isinstance(feature, Threshold) and isinstance(counts.column, RankedColumn):
            own = int(counts.column.distinct.searchsorted(feature.value, side="right"))
            n_true, true = counts.up_to(own, feature.missing)
        else:
            answer = feature.evaluate(counts.column)
            own = rows_divided(answer)
            n_true, true = int(counts.rows[answer].sum()), float(counts.weight[answer].sum())
        n_rows, total = counts.n_rows, counts.total_weight
        if n_true in (0, n_rows):
            return None
        n_smaller, support = min(n_true, n_rows - n_true), min(true, total - true) / total
        return cls(feature, n_smaller, own, support)


def has_many_levels(column: TrainingColumn, most: int | None) -> TypeGuard[CategoricalColumn]:
    """Whether a column has no order and more than ``most`` levels; None means that none has."""
    if not isinstance(column, CategoricalColumn) or column.ordered:
        return False
    return most is not None and len(column.levels) > most


def replacement(
    column: TrainingColumn, missing: str, distinct: NDArray[Any], total: NDArray[np.float64]
) -> bool | float | None:
    """Replacement for missing values, even if none is missing in training.

    ``missing`` is the parameter of the encoder; ``distinct`` and ``total`` are the observed values
    and their weights.
    """
    if isinstance(column, CategoricalColumn) or missing == "branch" or not len(distinct):
        return None
    if column.is_flag:  # the distinct values rise: False, True
        return bool(distinct[np.argmax(total)])
    return weighted_mean(distinct, total)


def without_repeats(
    candidates: Sequence[Candidate], divided: Callable[[Sequence[Feature]], Sequence[Hashable]]
) -> list[Candidate]:
    """Candidates without those that divide the rows as an earlier one does.

    Features of one column are compared by its values. For others ``divided`` gives the same value
    if they divide the rows alike; it is asked for features that could: those that have as many rows
    on the smaller side as another.
    """
    first = {(one.feature.column, one.own): one for one in reversed(candidates)}
    candidates = [one for one in candidates if first[one.feature.column, one.own] is one]
    alike = Counter(candidate.n_smaller for candidate in candidates)
    doubtful = [one.feature for one in candidates if alike[one.n_smaller] > 1]
    keys = iter(divided(doubtful) if doubtful else ())
    seen: set[Hashable] = set()
    kept = []
    for candidate in candidates:
        if alike[candidate.n_smaller] > 1:
            key = next(keys)
            if key in seen:
                continue
            seen.add(key)
        kept.append(candidate)
    return kept


def rows_divided(answer: NDArray[Any]) -> bytes:
    """The answers of all rows, equal for a feature and its complement."""
    return np.packbits(~answer if answer[0] else answer).tobytes()
