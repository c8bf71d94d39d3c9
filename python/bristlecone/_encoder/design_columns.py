"""Numeric columns of the design of soft trees, each with its record in a file."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from bristlecone._data.records import Finite, Record
from bristlecone._encoder.features import Level, Missing, Other
from bristlecone._types import Floats

# Design values are clipped here, so that weighted sums stay finite.
_FARTHEST = 1e100


class DesignColumn(Record, frozen=True, kw_only=True):
    """One numeric column of the design: (value − low) / (high − low).

    Attributes
    ----------
    column : str
        Name of the column it is made of.
    question : Level, Other, Missing or None
        What a categorical column is asked; None for numbers and flags as they are.
    low, high : float
        Least and greatest training value; 0 and 1 for flags and questions.
    fill : float
        Value where the column is missing.
    """

    column: str
    question: Level | Other | Missing | None
    low: Finite
    high: Finite
    fill: Finite

    @property
    def name(self) -> str:
        """Readable name, such as "age" or "stage = II"."""
        return self.column if self.question is None else self.question.name

    @property
    def scale(self) -> tuple[int, float, float]:
        """A power of two, and the least and the greatest value after multiplication by it.

        The difference of large numbers may overflow, and that of tiny numbers has no reciprocal.
        """
        shift = -math.frexp(max(abs(self.low), abs(self.high)))[1] - 1
        return shift, math.ldexp(self.low, shift), math.ldexp(self.high, shift)

    def evaluate(self, column: Any) -> Floats:
        """Scaled values of the rows, shape (n,)."""
        if self.question is not None:
            return self.question.evaluate(column).astype(np.float64)
        values = column.values.astype(np.float64)
        if column.missing is not None:
            values = np.where(column.missing, self.fill, values)
        return self.scaled(values)

    def scaled(self, values: Any) -> Floats:
        """Numbers in units of the design."""
        shift, low, high = self.scale
        with np.errstate(over="ignore"):
            found = (np.ldexp(values, shift) - low) / (high - low)
        # −0 becomes 0, so that the fingerprint does not depend on the sign of a zero.
        return np.clip(found, -_FARTHEST, _FARTHEST) + 0.0
