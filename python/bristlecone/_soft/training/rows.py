"""Rows of a fit before training: times that have a logarithm, equal rows merged."""

from __future__ import annotations

import numpy as np

from bristlecone._types import Floats, Integers


def positive_times(times: Floats) -> tuple[Floats, str]:
    """Times in which half the smallest positive one replaces 0, and a message about them."""
    zero = times == 0
    if not zero.any():
        return times, ""
    if zero.all():
        raise ValueError("y: every time is 0")
    half = float(times[~zero].min() / 2)
    message = (
        f"{int(zero.sum())} of the times are 0, whose logarithm is not defined; they are replaced "
        f"by half the smallest positive time, {half:g}"
    )
    return np.where(zero, half, times), message


def distinct_rows(keys: list[Floats], weight: Floats) -> tuple[Integers, Floats]:
    """First row of each group of equal ones, in the order of the keys, and the groups' weights."""
    order = np.lexsort([weight, *keys])
    new = np.zeros(len(order), dtype=bool)
    new[0] = True
    for key in keys:
        new[1:] |= np.diff(key[order]) != 0
    first = np.flatnonzero(new)
    return order[first], np.add.reduceat(weight[order], first)
