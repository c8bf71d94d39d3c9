"""Checks of a custom task: shapes and numbers always, and the required properties on samples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from bristlecone._data.arrays import as_array, unmasked
from bristlecone._types import Bools, Floats

Costs = Callable[[Floats], Floats]

# Costs of equal sums may differ by this share of the largest: functions such as the logarithm round
# differently in vector registers and in the remainder of an array.
_ROUNDING = 1e-9

# Number of pairs of disjoint sets of rows on which the properties are checked.
_PAIRS = 16


def check_statistics(values: Any, n_samples: int, kept: Bools | None) -> Floats:
    """Statistics of the kept rows as float64, shape (n, k).

    Raises
    ------
    ValueError
        For another shape, and values that are missing, infinite or too large (row and column are
        named).
    TypeError
        For anything but numbers.
    """
    array = as_array(values, "task.statistics")
    if array.ndim != 2 or len(array) != n_samples or array.shape[1] == 0:
        raise ValueError(
            f"task.statistics returned an array of shape {array.shape}; expected "
            f"({n_samples}, k), the statistics of one row in each row"
        )
    if array.dtype.kind not in "biuf":
        raise TypeError(f"task.statistics returned dtype {array.dtype}; expected numbers")
    wrong = ~(np.abs(array.astype(np.float64)) < 1e100)
    if kept is not None:
        wrong &= kept[:, np.newaxis]
    if wrong.any():
        row, column = np.argwhere(wrong)[0]
        raise ValueError(
            f"task.statistics returned {array[row, column]} in row {row}, column {column}; "
            "expected finite numbers, less than 1e100"
        )
    return array.astype(np.float64) if kept is None else array[kept].astype(np.float64)


def optional_costs_of(task: Any, name: str) -> Costs | None:
    """As ``costs_of``, or None if the task does not have the method."""
    return None if getattr(task, name, None) is None else costs_of(task, name)


def costs_of(task: Any, name: str) -> Costs:
    """A method of the task with checks of what it returns.

    Raises
    ------
    ValueError, TypeError
        From the function returned: for another shape or type, NaN, and numbers that ``name`` may
        not be (the sums are named).
    """
    method = getattr(task, name)

    def checked(sums: Floats) -> Floats:
        # Sums and answer are copied, because the task may change or reuse its arrays.
        values = np.asarray(unmasked(method(sums.copy(order="F")), f"task.{name}"))
        if values.shape != (len(sums),):
            raise ValueError(
                f"task.{name} returned an array of shape {values.shape} for sums of shape "
                f"{sums.shape}; expected ({len(sums)},), a number for each row of the sums"
            )
        if values.dtype.kind not in "biuf":
            raise TypeError(f"task.{name} returned dtype {values.dtype}; expected numbers")
        values = np.array(values, dtype=np.float64, order="C")
        # Comparisons with NaN are false.
        if name == "split_cost":
            good = (values >= 0) & (values < np.inf)
            expected = "finite numbers, not negative"
        elif name == "leaf_cost":
            good, expected = values > -np.inf, "finite numbers, or inf if it may not be a leaf"
        else:
            good, expected = values == values, "numbers"
        if not good.all():
            first = int(np.argmin(good))
            reason = ""
            if not sums[first].all():
                reason = "; statistics below 2**-60 of their column's total are rounded to 0"
            raise ValueError(
                f"task.{name} returned {values[first]} for the sums {sums[first].tolist()}; "
                f"expected {expected}{reason}"
            )
        return values

    return checked


def check_task(task: Any, statistics: Floats, total_weight: float, min_rows: int) -> None:
    """Check separability on a few random sets of rows.

    Costs must be functions of the sums: the same if computed again, alone, or among others. A lower
    bound must not exceed the cost of the node, or of two parts of it, as leaves. Rounding errors
    are allowed: 1e-9 of a cost, or of 1 per unit of weight, as objectives are compared.

    Raises
    ------
    ValueError
        If a check fails; the message gives the sums. A task that passes may still be wrong.
    """
    sums = statistics.sum(axis=0, keepdims=True)
    least, n_samples = max(min_rows, 1), len(statistics)
    if n_samples < least:
        return
    pairs = n_samples >= 2 * least
    if pairs:
        one, other = _disjoint_sums(statistics, least)
        both = one + other
        sums = np.concatenate([sums, one, other, both])
    for name in ("leaf_cost", "split_cost", "lower_bound"):
        costs = optional_costs_of(task, name)
        if costs is not None:
            _check_function(name, costs, sums, total_weight)
    bound, cost = optional_costs_of(task, "lower_bound"), costs_of(task, "leaf_cost")
    if bound is not None:
        _check_bound(bound(sums), cost(sums), sums, total_weight)
        if pairs:
            of_parts = cost(one) + cost(other)
            _check_bound(bound(both), of_parts, both, total_weight)


def _disjoint_sums(statistics: Floats, least: int) -> tuple[Floats, Floats]:
    """Sums over random pairs of disjoint sets of at least this many rows."""
    rng, n_samples = np.random.default_rng(0), len(statistics)
    pairs = []
    for _ in range(_PAIRS):
        size = int(rng.integers(2 * least, n_samples + 1))
        cut = int(rng.integers(least, size - least + 1))
        rows = rng.permutation(n_samples)
        pairs.append([statistics[rows[:cut]].sum(axis=0), statistics[rows[cut:size]].sum(axis=0)])
    one, other = np.array(pairs).transpose(1, 0, 2)
    return one, other


def _check_function(name: str, costs: Costs, sums: Floats, total_weight: float) -> None:
    """Raise unless the cost of a node is independent of other nodes in the same call."""
    expected = costs(sums)
    finite = np.abs(expected[np.isfinite(expected)])
    tolerance = _ROUNDING * finite.max(initial=total_weight)
    middle = len(sums) // 2
    again = {
        "when computed again": costs(sums),
        "in another order": costs(sums[::-1])[::-1],
        "among fewer": np.concatenate(
            [costs(part) for part in (sums[:middle], sums[middle:]) if len(part)]
        ),
    }
    for when, values in again.items():
        with np.errstate(invalid="ignore"):
            same = (values == expected) | (np.abs(values - expected) <= tolerance)
        if not same.all():
            first = int(np.argmin(same))
            raise ValueError(
                f"task.{name} is not a function of the sums: for {sums[first].tolist()} it "
                f"returned {expected[first]}, and {when} {values[first]}"
            )


def _check_bound(bound: Floats, costs: Floats, sums: Floats, total_weight: float) -> None:
    """Raise unless the bounds hold for these costs of leaves."""
    wrong = bound > costs + _ROUNDING * np.maximum(np.abs(costs), total_weight)
    if wrong.any():
        first = int(np.argmax(wrong))
        raise ValueError(
            f"task.lower_bound returned {bound[first]} for the sums {sums[first].tolist()}, but "
            f"leaves of these rows cost {costs[first]}"
        )
