"""Levels of a categorical column in the order of their risk, and subsets of them as features.

See docs/maths/encoder.md#categories-by-risk and docs/decisions/0033-categories-by-risk.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from bristlecone._encoder.columns import CategoricalColumn
from bristlecone._encoder.features import OneOf, subset_text
from bristlecone._encoder.schema import sort_key
from bristlecone._encoder.scores import Ratios
from bristlecone._encoder.thresholds import choose_gaps
from bristlecone._types import Bools, Floats, Integers

# Number of rows with the mean risk that are added to every level.
_PRIOR = 10.0

# Number of standard errors by which the order must predict better than no order.
_CLEARLY = 2.0

FEWEST = 10
"""Levels with fewer rows count as average: the order would only repeat their own outcomes."""

# The last digits of sums depend on the order of the rows. Risks that differ by less are equal.
_DIGITS = 10


class LevelRisks(NamedTuple):
    """Shrunk risk of every level minus that of all rows, shape (n_levels,), in a safe unit.

    It is 0 for the ``n_rare`` levels with few rows.
    """

    risk: Floats
    n_rare: int


def level_risks(
    column: CategoricalColumn,
    ratios: Ratios,
    weight: Floats | None,
    present: Bools | None,
) -> LevelRisks | None:
    """Risks of the levels of a column; ``present`` says which of the rows have a level.

    None if the levels, estimated from the other rows, predict the outcome of a row no better than
    chance.
    """
    rows = np.arange(len(ratios.size)) if present is None else np.flatnonzero(present)
    n_levels, shown = len(column.levels), column.codes >= 0
    code, rows = column.codes[shown], rows[shown]
    amount, size = ratios.amount[rows], ratios.size[rows]
    # Units in which sums and squares do not overflow; a power of two changes no digit.
    amount = np.ldexp(amount, -math.frexp(np.abs(amount).max(initial=0.0))[1])
    weight = np.ones(len(code)) if weight is None else weight[rows]
    # Whole weights are repeated rows; weights that sum to less than the rows are scaled up.
    weight = weight * max(1.0, len(weight) / weight.sum())
    # Sorted, so that the sums do not depend on the order of the rows.
    order = np.lexsort((weight, size, *amount.T, code))
    code, amount, size, weight = code[order], amount[order], size[order], weight[order]
    start = np.searchsorted(code, np.arange(n_levels))
    sums = np.column_stack([weight[:, None] * amount, weight * size, weight])
    total = np.zeros((n_levels, sums.shape[1]))
    occurs = np.append(start[1:], len(code)) > start
    total[occurs] = np.add.reduceat(sums, start[occurs])
    expected = total[:, -2].sum()
    if not expected > 0.0:
        return None  # No row had an event.
    mean = total[:, :-2].sum(axis=0) / expected
    # Amounts beyond the mean, scaled such that the largest is 1.
    excess = total[:, :-2] - total[:, -2:-1] * mean
    amount = amount - size[:, None] * mean
    unit = np.abs(amount).max()
    if not unit > 0.0:
        return None
    excess, amount = excess / unit, amount / unit
    rare = total[:, -1] < FEWEST
    excess[rare] = 0.0
    risk = excess / (total[:, -2:-1] + _PRIOR)
    # Compare the squared error of the risks, each without one unit of the row itself, with that of
    # no risks.
    own = np.minimum(weight, 1.0)
    without = (excess[code] - own[:, None] * amount) / (
        total[code, -2:-1] - (own * size)[:, None] + _PRIOR
    )
    without[rare[code]] = 0.0
    gain = (2.0 * without * amount - size[:, None] * without**2).sum(axis=1)
    if not weight @ gain > _CLEARLY * np.sqrt(weight @ gain**2):
        return None
    if risk.shape[1] > 1:
        spread = (risk * total[:, -2:-1]).T @ risk
        axis = np.linalg.eigh(spread)[1][:, -1]
        risk = risk @ axis[:, None] * np.sign(axis[np.argmax(np.abs(np.round(axis, _DIGITS)))])
    largest = np.abs(risk).max()
    return LevelRisks(np.round(risk[:, 0] / largest, _DIGITS), int(np.count_nonzero(rare)))


def subset_features(
    column: CategoricalColumn,
    risk: Floats,
    code: Integers,
    total: Floats,
    method: str,
    n_thresholds: int,
    unit: float,
) -> Iterator[OneOf]:
    """Levels on one side of thresholds of the risk, which are chosen like those of numbers.

    Each feature lists the levels on the side without average rows, most extreme first. ``code``
    contains the distinct codes of the rows, ``total`` their weights.
    """
    distinct, place = np.unique(risk[code], return_inverse=True)
    weights: Floats = np.bincount(place, weights=total).astype(np.float64)
    levels = sorted((column.levels[c] for c in code), key=sort_key)
    of_level = {column.levels[c]: float(risk[c]) for c in code}
    for gap in choose_gaps(distinct, weights, method, n_thresholds, unit):
        low = distinct[gap + 1] <= 0.0 or (
            distinct[gap] < 0.0 and -distinct[gap] >= distinct[gap + 1]
        )
        chosen = [one for one in levels if (of_level[one] <= distinct[gap]) == low]
        chosen.sort(key=lambda one: of_level[one], reverse=not low)
        condition = f"in {subset_text(chosen)}"
        yield OneOf(column=column.name, condition=condition, levels=tuple(chosen))
