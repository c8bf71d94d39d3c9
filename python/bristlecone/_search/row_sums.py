"""A fingerprint of training rows that does not depend on their order or on how they are divided."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._core import BinaryMatrix
from bristlecone._data.mixing import mixed

Bits = NDArray[np.uint64]

PREFIX = "rows-"
"""Prefix of such fingerprints."""

# Random numbers of a row: two of 64 bits.
_LANES = 2

OF_ALL = "classes", "groups", "treatments"
"""Fields of training rows that are about all rows together."""

# Fields that do not count.
_OTHER = "X", "place", "smoothed", "rewards", "kept", "event_free"


class RowSums:
    """Sums of random numbers, one for every row, which follow from its features and outcome.

    Parameters
    ----------
    n_features : int
        Number of binary features.
    """

    def __init__(self, n_features: int) -> None:
        self.n_features, self.n_rows = n_features, 0
        self.sums: Bits = np.zeros(_LANES, dtype=np.uint64)

    def add(self, features: BinaryMatrix, digests: Bits) -> None:
        """Add rows: their features, and ``outcome_digests`` of each, shape (n, 2)."""
        words = features.words()
        for lane in range(_LANES):
            number = digests[:, lane]
            for word in words.T:
                number = mixed(number ^ word)
            # Sums of arrays wrap around silently; those of scalars warn.
            self.sums[lane : lane + 1] += number.sum(dtype=np.uint64, keepdims=True)
        self.n_rows += len(features)

    def merge(self, other: RowSums) -> None:
        """Add the rows of ``other``."""
        self.sums = self.sums + other.sums
        self.n_rows += other.n_rows

    def fingerprint(self, data: Any) -> str:
        """Fingerprint of the rows, whose outcomes are those of ``data``."""
        of_all = [getattr(data, name, None) for name in OF_ALL]
        shown = [None if values is None else values.tolist() for values in of_all]
        facts = self.n_rows, self.n_features, self.sums.tolist(), shown
        return PREFIX + sha256(repr(facts).encode()).hexdigest()


def outcome_digests(data: Any) -> Bits:
    """Random numbers of every outcome of training rows, a named tuple, shape (n, 2)."""
    columns: list[Bits] = []
    for name, values in data._asdict().items():
        if name not in _OTHER and name not in OF_ALL and isinstance(values, np.ndarray):
            whole = values.astype(np.float64) + 0.0  # -0.0 is 0.0
            columns += list(whole.reshape(len(whole), -1).T.copy().view(np.uint64))
    digests: Bits = np.zeros((len(columns[0]), _LANES), dtype=np.uint64)
    for lane in range(_LANES):
        number = np.full(len(columns[0]), lane, dtype=np.uint64)
        for column in columns:
            number = mixed(number ^ column)
        digests[:, lane] = number
    return digests


def unordered_fingerprint(features: BinaryMatrix, data: Any) -> str:
    """Fingerprint of training rows; every entry of ``data`` is a row."""
    sums = RowSums(features.shape[1])
    sums.add(features, outcome_digests(data))
    return sums.fingerprint(data)
