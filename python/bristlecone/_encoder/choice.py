"""Choice of binary features in ``BinaryEncoder.fit``: candidates of a column, and those kept."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from bristlecone._data.exact import ExactValues
from bristlecone._encoder.columns import (
    BinnedColumn,
    CategoricalColumn,
    EncodedColumn,
    NumericColumn,
    RankedColumn,
    TrainingColumn,
)
from bristlecone._encoder.counts import ValueCounts
from bristlecone._encoder.doubts import column_doubts
from bristlecone._encoder.ensemble import guess_gaps
from bristlecone._encoder.features import (
    ROUNDING,
    Feature,
    Flag,
    Missing,
    Other,
    Threshold,
    most_balanced,
    sides,
    tell_apart,
)
from bristlecone._encoder.levels import level_features, step_features
from bristlecone._encoder.records import BinaryParameters
from bristlecone._encoder.risk import LevelRisks, subset_features
from bristlecone._encoder.schema import ColumnSchema, describe
from bristlecone._encoder.thresholds import (
    choose_gaps,
    midway,
    ranks_with_fill,
    threshold,
    weighted_mean,
)

Floats = NDArray[np.float64]


class Chosen(NamedTuple):
    """Result of a fit of the encoder: its attributes, and warnings about columns."""

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
        Its answers for the distinct values of its column, likewise; of a threshold its gap between
        two of them.
    support : float
        Share of the weight on the lighter side.
    """

    feature: Feature
    n_smaller: int
    own: Hashable
    support: float


def _cuts(
    counts: ValueCounts, gaps: NDArray[np.int64], fill: float | None, least: float
) -> list[Candidate]:
    """Thresholds of a column of numbers at ``gaps``, if their support is at least ``least``."""
    distinct = counts.observed[0]
    low, high = distinct[gaps], distinct[gaps + 1]
    values = midway(low, high)
    missing = values >= (math.inf if fill is None else fill)
    rows, weight = counts.up_to(gaps, missing)
    n_smaller = np.minimum(rows, counts.n_rows - rows)
    support = np.minimum(weight, counts.total_weight - weight) / counts.total_weight
    found = (array.tolist() for array in (values, low, high, n_smaller, gaps, support))
    return [
        Candidate(threshold(counts.name, value, low, high, fill), smaller, gap, share)
        for value, low, high, smaller, gap, share in zip(*found, strict=True)
        if share >= least
    ]


def _others(features: Iterable[Feature], counts: ValueCounts) -> list[Candidate]:
    """The features, without those that hold for all rows or for none."""
    n_rows, total, found = counts.n_rows, counts.total_weight, []
    for feature in features:
        answer = feature.evaluate(counts.column)
        n_true, true = int(counts.rows[answer].sum()), float(counts.weight[answer].sum())
        if n_true not in (0, n_rows):
            n_smaller, support = min(n_true, n_rows - n_true), min(true, total - true) / total
            own = np.packbits(sides(answer)).tobytes()
            found.append(Candidate(feature, n_smaller, own, support))
    return found


class ColumnChoice(NamedTuple):
    """Result of a fit of the encoder for one column.

    Attributes
    ----------
    schema : ColumnSchema
    candidates : list of Candidate
    varies : bool
        Whether it could part the rows.
    doubts : list of str
        Warnings.
    """

    schema: ColumnSchema
    candidates: list[Candidate]
    varies: bool
    doubts: list[str]

    def binned(self, column: TrainingColumn) -> EncodedColumn:
        """Numbers as bins between the thresholds, if these are few; other columns as they are."""
        if not isinstance(column, RankedColumn):
            return column
        features = [one.feature for one in self.candidates]
        cuts = [feature.value for feature in features if isinstance(feature, Threshold)]
        if len(cuts) > BinnedColumn.MOST:
            return column
        return BinnedColumn.of(column, np.array(cuts), self.schema.fill)


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


def choose_of_column(
    parameters: BinaryParameters,
    counts: ValueCounts,
    unit: float,
    gaps: NDArray[np.int64] | None = None,
    risks: LevelRisks | None = None,
    *,
    tried: bool = False,
) -> ColumnChoice:
    """Choose the features of a column from its counts.

    ``unit`` is the least weight of a row, or 1. ``gaps`` are those of a numeric column, where
    they are chosen already, and ``risks`` those of its levels, if it was ``tried`` to find any.
    """
    column, (distinct, total) = counts.column, counts.observed
    fill = replacement(column, parameters.missing, distinct, total)
    schema = replace(describe(column, fill), n_missing=counts.n_missing)
    least = parameters.min_support - ROUNDING
    candidates: list[Candidate] = []
    # Columns of numbers without thresholds (an ensemble may have none) may vary.
    varies = isinstance(column, RankedColumn) and len(distinct) > 1
    if varies:
        if gaps is None:
            method = parameters.thresholds, parameters.n_thresholds
            gaps = choose_gaps(distinct, total, *method, unit)
        candidates += _cuts(counts, gaps, fill, least)
    frequent = False
    for other in _others(_features(parameters, column, fill, distinct, total, unit, risks), counts):
        varies = True
        if other.support >= least or isinstance(other.feature, Flag):
            frequent |= not isinstance(other.feature, (Other, Missing))
            candidates.append(other)
    doubts: list[str] = []
    if varies and isinstance(column, CategoricalColumn):
        doubts = column_doubts(
            column,
            frequent=frequent,
            min_support=parameters.min_support,
            n_rare=0 if risks is None else risks.n_rare,
            merged=parameters.categories == "risk"
            and risks is None
            and has_many_levels(column, parameters.max_categories),
            tried=tried,
        )
    return ColumnChoice(schema, candidates, varies, doubts)


def choose_of_flag(column: NumericColumn) -> ColumnChoice:
    """As ``choose_of_column`` of a flag without missing values in rows without weights.

    Matrices of flags have many columns and little else to do.
    """
    n, n_true = column.n_rows, int(np.count_nonzero(column.values))
    n_smaller = min(n_true, n - n_true)
    fill = n_true > n - n_true
    schema = describe(column, fill)
    if n_smaller == 0:
        return ColumnChoice(schema, [], False, [])
    flag = Flag(column=column.name, condition="", missing=fill)
    return ColumnChoice(schema, [Candidate(flag, n_smaller, b"", n_smaller / n)], True, [])


def choose(
    choices: Sequence[ColumnChoice],
    divided: Callable[[Sequence[Feature]], Sequence[Hashable]],
    max_features: int | None,
) -> Chosen:
    """Choose among the candidates of all columns, at most ``max_features``.

    ``divided`` is asked only for features that may divide the rows alike; it gives the same
    value for those that do.
    """
    kept = without_repeats([one for choice in choices for one in choice.candidates], divided)
    features = [candidate.feature for candidate in kept]
    balance = [candidate.support for candidate in kept]
    return Chosen(
        columns=[choice.schema for choice in choices],
        features=tell_apart(most_balanced(features, balance, max_features)),
        constant=[choice.schema.name for choice in choices if not choice.varies],
        doubts=[doubt for choice in choices for doubt in choice.doubts],
    )


def guess(
    parameters: BinaryParameters,
    columns: list[TrainingColumn],
    scores: Floats,
    weight: Floats | None,
    unit: float,
    risks: Mapping[str, LevelRisks | None],
) -> dict[str, NDArray[np.int64]]:
    """Gaps of every numeric column with a threshold of boosted trees over all features."""
    exact = None if weight is None else ExactValues(weight)
    names: list[str | None] = []
    ranks: list[NDArray[np.int64]] = []
    n_gaps: list[int] = []
    for column in columns:
        observed = ValueCounts.of(column, exact).observed
        fill = replacement(column, parameters.missing, *observed)
        if isinstance(column, RankedColumn):
            names.append(column.name)
            ranks.append(ranks_with_fill(column, fill).astype(np.int64))
            n_gaps.append(max(len(observed[0]) - 1, 0))
        own = risks.get(column.name)
        for feature in _features(parameters, column, fill, *observed, unit, own):
            names.append(None)
            ranks.append(feature.evaluate(column).astype(np.int64))
            n_gaps.append(0)
    gaps = guess_gaps(
        ranks,
        n_gaps,
        scores,
        weight,
        most=parameters.n_thresholds,
        min_support=parameters.min_support,
    )
    return {name: own for name, own in zip(names, gaps, strict=True) if name is not None}


def _features(
    parameters: BinaryParameters,
    column: TrainingColumn,
    fill: bool | float | None,
    distinct: NDArray[Any],
    total: Floats,
    unit: float,
    risks: LevelRisks | None,
) -> Iterator[Feature]:
    """Every feature the column could give, except the thresholds of numbers."""
    if not len(distinct):
        return
    if isinstance(column, CategoricalColumn):
        method = parameters.thresholds, parameters.n_thresholds, unit
        if column.ordered:
            yield from step_features(column, distinct, total, *method)
        elif risks is not None:
            yield from subset_features(column, risks.risk, distinct, total, *method)
        else:
            yield from level_features(column, distinct, total, parameters.max_categories)
    elif column.is_flag:
        yield Flag(column=column.name, condition="", missing=bool(fill))
    if isinstance(column, CategoricalColumn) or parameters.missing == "branch":
        yield Missing(column=column.name, condition="is missing")
