"""Choice of binary features in ``BinaryEncoder.fit``: candidates of a column, and those kept."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
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
from bristlecone._encoder.doubts import column_doubts, lost_missing
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
    with_distinct_names,
)
from bristlecone._encoder.levels import level_features, step_features
from bristlecone._encoder.records import BinaryParameters
from bristlecone._encoder.risk import LevelRisks, subset_features
from bristlecone._encoder.schema import ColumnSchema, describe
from bristlecone._encoder.thresholds import (
    choose_gaps,
    midpoints,
    midway,
    ranks_with_fill,
    threshold,
    weighted_mean,
)
from bristlecone._types import Floats, Integers


class Chosen(NamedTuple):
    """Result of a fit of the encoder: its attributes, and warnings about columns."""

    columns: list[ColumnSchema]
    features: list[Feature]
    constant: list[str]
    doubts: list[str]


class Candidate(NamedTuple):
    """A feature that varies, and what is known about it from the counts of its column.

    Attributes
    ----------
    feature : Feature
    n_smaller : int
        Rows on the smaller side, the same for a feature and its complement.
    support : float
        Share of the weight on the lighter side.
    """

    feature: Feature
    n_smaller: int
    support: float


class _Gaps(NamedTuple):
    """Gaps between the distinct numbers of a column; ``fill`` replaces missing values."""

    counts: ValueCounts
    distinct: Floats
    gaps: Integers
    fill: float | None

    def up_to(self) -> tuple[Integers, Floats]:
        """Rows and weight up to each of the distinct numbers; the last entry is the total."""
        rows, weight = self.counts.rows, self.counts.weight
        if self.fill is not None and self.counts.column.missing is not None:
            at = np.count_nonzero(midpoints(self.distinct) < self.fill)
            rows, weight = np.delete(rows, -1), np.delete(weight, -1)
            rows[at] += self.counts.rows[-1]
            weight[at] += self.counts.weight[-1]
        return rows.cumsum(), weight.cumsum()


def _thresholds(columns: Sequence[_Gaps], least: float) -> list[list[Candidate]]:
    """Thresholds of every column at its gaps, if their support is at least ``least``.

    All columns are computed at once, because most have few thresholds.
    """
    if not columns:
        return []
    low = np.concatenate([own.distinct[own.gaps] for own in columns])
    high = np.concatenate([own.distinct[own.gaps + 1] for own in columns])
    values = midway(low, high)
    sizes, sums = [own.gaps.size for own in columns], [own.up_to() for own in columns]
    rows, weight = (
        np.concatenate([sum_[own.gaps] for own, sum_ in zip(columns, of, strict=True)])
        for of in zip(*sums, strict=True)
    )
    n_rows, total = (np.repeat([own[k][-1] for own in sums], sizes) for k in (0, 1))
    smaller, support = np.minimum(rows, n_rows - rows), np.minimum(weight, total - weight) / total
    at = zip(*(array.tolist() for array in (values, low, high, smaller, support)), strict=True)
    return [
        [
            Candidate(threshold(own.counts.name, value, low, high, own.fill), smaller, share)
            for value, low, high, smaller, share in islice(at, size)
            if share >= least
        ]
        for own, size in zip(columns, sizes, strict=True)
    ]


def _others(features: Iterable[Feature], counts: ValueCounts) -> list[Candidate]:
    """The features, without those true for all rows or for none, or equal to an earlier one."""
    found: dict[bytes, Candidate] = {}
    for feature in features:
        n_rows, total = counts.n_rows, counts.total_weight
        answer = feature.evaluate(counts.column)
        n_true, true = int(counts.rows[answer].sum()), float(counts.weight[answer].sum())
        if n_true not in (0, n_rows):
            n_smaller, support = min(n_true, n_rows - n_true), min(true, total - true) / total
            own = np.packbits(sides(answer)).tobytes()
            found.setdefault(own, Candidate(feature, n_smaller, support))
    return list(found.values())


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
        """Numbers as bins between the thresholds, if there are few; other columns unchanged."""
        if not isinstance(column, RankedColumn):
            return column
        features = [one.feature for one in self.candidates]
        cuts = [feature.value for feature in features if isinstance(feature, Threshold)]
        if len(cuts) > BinnedColumn.FEW:
            return column
        return BinnedColumn.of(column, np.array(cuts), self.schema.fill)


def has_many_levels(column: TrainingColumn, most: int | None) -> TypeGuard[CategoricalColumn]:
    """Whether a column is unordered and has more than ``most`` levels; False if that is None."""
    if not isinstance(column, CategoricalColumn) or column.ordered:
        return False
    return most is not None and len(column.levels) > most


def replacement(
    column: TrainingColumn, missing: str, distinct: NDArray[Any], total: Floats
) -> bool | float | None:
    """Replacement for missing values, even if none is missing in training.

    ``missing`` is the parameter of the encoder; ``distinct`` and ``total`` are the observed values
    and their weights.
    """
    branches = missing == "branch" and column.missing is not None
    if isinstance(column, CategoricalColumn) or branches or not len(distinct):
        return None
    if column.is_flag:  # the distinct values rise: False, True
        return bool(distinct[np.argmax(total)])
    return weighted_mean(distinct, total)


def without_repeats(
    candidates: Sequence[Candidate], divided: Callable[[Sequence[Feature]], Sequence[Hashable]]
) -> list[Candidate]:
    """Candidates without those that divide the rows in the same way as an earlier one.

    ``divided`` returns the same value for features that divide the rows in the same way. It is only
    called if two of them could: if they have the same number of rows on the smaller side.
    """
    if len({one.n_smaller for one in candidates}) == len(candidates):
        return list(candidates)
    first: dict[Hashable, Candidate] = {}
    keys = divided([one.feature for one in candidates])
    for key, candidate in zip(keys, candidates, strict=True):
        first.setdefault(key, candidate)
    return list(first.values())


def choose_of_columns(
    parameters: BinaryParameters,
    columns: Sequence[ValueCounts],
    unit: float,
    gaps: Mapping[str, Integers],
    risks: Mapping[str, LevelRisks | None],
) -> list[ColumnChoice]:
    """Choose the features of columns from their counts.

    ``unit`` is the smallest weight of a row, or 1. ``gaps`` are those of numeric columns, if they
    were chosen already. ``risks`` are those of levels; None if there are none.
    """
    fills = [replacement(one.column, parameters.missing, *one.observed) for one in columns]
    least = parameters.min_support - ROUNDING
    numeric = {}
    for place, (counts, fill) in enumerate(zip(columns, fills, strict=True)):
        distinct, total = counts.observed
        # Columns of numbers without thresholds (as an ensemble may choose) may vary.
        if isinstance(counts.column, RankedColumn) and len(distinct) > 1:
            own = gaps.get(counts.name)
            if own is None:
                method = parameters.thresholds, parameters.n_thresholds
                own = choose_gaps(distinct, total, *method, unit)
            numeric[place] = _Gaps(counts, distinct, own, fill)
    thresholds = dict(zip(numeric, _thresholds(list(numeric.values()), least), strict=True))
    return [
        _choose(parameters, counts, fill, unit, thresholds.get(place), risks)
        for place, (counts, fill) in enumerate(zip(columns, fills, strict=True))
    ]


def _choose(
    parameters: BinaryParameters,
    counts: ValueCounts,
    fill: bool | float | None,
    unit: float,
    thresholds: list[Candidate] | None,
    risks: Mapping[str, LevelRisks | None],
) -> ColumnChoice:
    """The features of a column; if it is numeric and varies, its ``thresholds`` are known."""
    column, own_risks = counts.column, risks.get(counts.name)
    schema = replace(describe(column, fill), n_missing=counts.n_missing)
    varies, candidates = thresholds is not None, thresholds or []
    frequent = False
    features = _features(parameters, column, fill, *counts.observed, unit, own_risks)
    for other in _others(features, counts):
        varies = True
        enough = other.support >= parameters.min_support - ROUNDING
        if enough or isinstance(other.feature, Flag):
            frequent |= not isinstance(other.feature, (Other, Missing))
            candidates.append(other)
    doubts: list[str] = []
    if not varies and fill is not None and counts.n_missing:
        lacking = float(counts.weight[-1]) / counts.total_weight
        if parameters.min_support <= lacking <= 1 - parameters.min_support:
            doubts = [lost_missing(counts.name, fill, counts.n_missing)]
    if varies and isinstance(column, CategoricalColumn):
        doubts = column_doubts(
            column,
            frequent=frequent,
            min_support=parameters.min_support,
            n_rare=0 if own_risks is None else own_risks.n_rare,
            merged=parameters.categories == "risk"
            and own_risks is None
            and has_many_levels(column, parameters.max_categories),
            tried=counts.name in risks,
        )
    return ColumnChoice(schema, candidates, varies, doubts)


def choose_of_flag(column: NumericColumn) -> ColumnChoice:
    """As ``choose_of_columns`` for a flag without missing values in rows without weights.

    Matrices of flags have many such columns and little else.
    """
    n, n_true = column.n_rows, int(np.count_nonzero(column.values))
    n_smaller = min(n_true, n - n_true)
    fill = n_true > n - n_true
    schema = describe(column, fill)
    if n_smaller == 0:
        return ColumnChoice(schema, [], False, [])
    flag = Flag(column=column.name, condition="", missing=fill)
    return ColumnChoice(schema, [Candidate(flag, n_smaller, n_smaller / n)], True, [])


def choose(
    choices: Sequence[ColumnChoice],
    divided: Callable[[Sequence[Feature]], Sequence[Hashable]],
    max_features: int | None,
) -> Chosen:
    """Choose among the candidates of all columns, at most ``max_features``.

    ``divided`` returns the same value for features that divide the rows in the same way. It is only
    called if two features may do so.
    """
    kept = without_repeats([one for choice in choices for one in choice.candidates], divided)
    features = [candidate.feature for candidate in kept]
    balance = [candidate.support for candidate in kept]
    return Chosen(
        columns=[choice.schema for choice in choices],
        features=with_distinct_names(most_balanced(features, balance, max_features)),
        constant=[choice.schema.name for choice in choices if not choice.varies],
        doubts=[doubt for choice in choices for doubt in choice.doubts],
    )


def guess(
    parameters: BinaryParameters,
    columns: list[TrainingColumn],
    scores: Floats,
    weight: ExactValues | None,
    unit: float,
    risks: Mapping[str, LevelRisks | None],
) -> dict[str, Integers]:
    """Gaps of every numeric column with a threshold of boosted trees over all features."""
    names: list[str | None] = []
    ranks: list[Integers] = []
    n_gaps: list[int] = []
    for column in columns:
        observed = ValueCounts.of(column, weight).observed
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
        None if weight is None else weight.values,
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
    """Every feature that the column could give, except thresholds of numbers."""
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
