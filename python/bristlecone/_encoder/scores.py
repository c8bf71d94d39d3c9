"""Outcomes as numbers that least squares can be boosted on: what thresholds are guessed from."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from bristlecone._data.arrays import as_array, unmasked
from bristlecone._data.groups import codes_of
from bristlecone._data.outcomes import Survival, check_survival, is_outcome
from bristlecone._data.targets import check_amounts, check_numbers
from bristlecone.curves import nelson_aalen

__all__ = ["outcome_scores"]

Floats = NDArray[np.float64]

# Whole numbers with more values than this are numbers, not labels; of more classes the rarest get
# no column of their own.
_MOST_CLASSES = 20


def outcome_scores(y: Any, n_rows: int, weight: Floats | None) -> Floats:
    """One or more numbers per row that say what is to be told apart, shape (n_rows, k).

    * Survival outcomes (structured array, DataFrame, pair): martingale residuals of the model
      without features, event − (Λ(time) − Λ(entry)) with the Nelson–Aalen estimate Λ.
    * Labels (text, booleans, categories, whole numbers of integer type with at most 20 values): an
      indicator of each of the 20 most frequent classes; of two classes that of the second.
    * Other numbers: as they are; a table of shape (n_rows, k) has one of them per column.

    Raises
    ------
    ValueError
        When there is not one outcome per row, or one is missing, infinite or of an unknown form.
    """
    if _is_column_of_frame(y):
        y = nw.from_native(y, eager_only=True).to_numpy()[:, 0]
    if is_outcome(y):
        survival = check_survival(y)
        if len(survival.time) != n_rows:
            raise ValueError(f"X has {n_rows} rows but y has {len(survival.time)}")
        return _martingale(survival, weight)[:, None]
    array = as_array(unmasked(y, "y"), "y")
    if array.ndim == 2 and array.shape[1] != 1:
        return check_amounts("y", array, (n_rows, array.shape[1]), minimum=-np.inf)
    kind = array.dtype.kind
    few = kind in "iu" and len(np.unique(array)) <= _MOST_CLASSES
    if kind in "fiu" and not few:
        return check_numbers("y", array, n_rows)[:, None]
    classes, labels = codes_of(array, n_rows, "y")
    count = np.bincount(labels, weights=weight, minlength=len(classes))
    shown = np.sort(np.argsort(-count, kind="stable")[:_MOST_CLASSES])
    if len(shown) == 2:
        shown = shown[1:]
    return (labels[:, None] == shown).astype(np.float64)


def _is_column_of_frame(y: Any) -> bool:
    if not nw.dependencies.is_into_dataframe(y):
        return False
    return nw.from_native(y, eager_only=True).shape[1] == 1


def _martingale(survival: Survival, weight: Floats | None) -> Floats:
    cumulative = nelson_aalen(survival, weight)
    hazard = np.asarray(cumulative(survival.time))
    if survival.entry is not None:
        hazard = hazard - np.asarray(cumulative(survival.entry))
    return survival.event - hazard
