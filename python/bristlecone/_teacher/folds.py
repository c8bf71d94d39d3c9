"""Folds of rows: equal rows share a fold, and folds do not depend on the order of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from bristlecone._types import Floats, Integers

MOST_FOLDS = 5
"""Folds of a teacher, where there are as many different rows."""

# Digits of the values that decide whether rows are equal. Sums of weighted columns, from which
# missing values are filled, depend on the order of the rows in their last digits.
_DIGITS = 9


def folds_of(
    numbers: Floats, outcomes: Floats, strata: Integers, seed: int
) -> tuple[Integers, Integers]:
    """Fold of every row, and an order of the rows, each of shape (n,).

    There are at most ``MOST_FOLDS`` folds, and each stratum is spread over all. Rows are equal
    where all ``numbers`` are, shape (n, k), which have a spread of about 1, and all ``outcomes``,
    shape (n,) or (n, k), in any unit. The different rows of each stratum are dealt out in an order
    that follows from their values and the seed, not from how the rows are ordered.
    """
    import pandas as pd  # imported here because it loads slowly

    # Zero has one sign, and the seed is a column with the same value in all rows. Outcomes are not
    # rounded: in a large unit, rows with different outcomes would become equal.
    columns = np.column_stack([np.round(numbers, _DIGITS), outcomes]) + 0.0
    table = pd.DataFrame(columns).assign(seed=seed)
    value = pd.util.hash_pandas_object(table, index=False).to_numpy()
    # Sorted by stratum, and within a stratum by hash.
    order = np.lexsort((value, strata))
    value, stratum = value[order], strata[order]
    first = np.ones(len(value), dtype=bool)
    first[1:] = (value[1:] != value[:-1]) | (stratum[1:] != stratum[:-1])
    different = np.cumsum(first) - 1
    fold = np.empty(len(value), dtype=np.int64)
    fold[order] = different % MOST_FOLDS
    return fold, order


@contextmanager
def naming(fold: str) -> Iterator[None]:
    """Errors of fits and metrics begin with the name of the fold."""
    try:
        yield
    except ValueError as error:
        if len(error.args) == 1:
            error.args = (f"{fold}: {error}",)
        raise
