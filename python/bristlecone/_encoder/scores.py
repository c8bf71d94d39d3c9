"""Outcomes as numbers for boosting by least squares, from which thresholds are guessed."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from bristlecone._data.arrays import as_array, unmasked
from bristlecone._data.groups import codes_of
from bristlecone._data.outcomes import Survival, either_outcome, is_outcome
from bristlecone._data.rows import check_length
from bristlecone._data.targets import check_amounts, check_numbers
from bristlecone._types import Floats
from bristlecone.curves import nelson_aalen

# Whole numbers with more values than this are numbers, not labels. Beyond this number of classes,
# the rarest have no column.
_MOST_CLASSES = 20


class Ratios(NamedTuple):
    """Outcomes of rows whose risk is Σ amount / Σ size: shapes (n_rows, k) and (n_rows,)."""

    amount: Floats
    size: Floats


def outcome_ratios(
    y: Any, n_rows: int, weight: Floats | None, exposure: Floats | None = None
) -> Ratios:
    """Terms from which the risk of groups of rows follows.

    For survival outcomes, events, and the expected events without features, Λ(time) − Λ(entry); for
    rates with an exposure, counts, and the expected counts for the exposure; for others, the
    numbers of ``outcome_scores``, and 1 for every row.

    Raises
    ------
    ValueError
        As ``outcome_scores``.
    """
    y = _unframed(y)
    if is_outcome(y):
        survival = _survival(y, n_rows)
        return Ratios(survival.event.astype(np.float64)[:, None], _hazard(survival, weight))
    scores = outcome_scores(y, n_rows, weight)
    if exposure is None:
        return Ratios(scores, np.ones(n_rows))
    counts = scores * exposure[:, None]
    own = np.ones(n_rows) if weight is None else weight
    # fsum does not depend on the order of the rows.
    rate = math.fsum(own * counts[:, 0]) / math.fsum(own * exposure)
    return Ratios(counts, exposure * rate)


def outcome_scores(y: Any, n_rows: int, weight: Floats | None) -> Floats:
    """One or more numbers per row that thresholds should separate, shape (n_rows, k).

    * Survival outcomes (structured array, DataFrame, pair): martingale residuals of the model
      without features, event − (Λ(time) − Λ(entry)) with the Nelson–Aalen estimate Λ.
    * Labels (text, booleans, categories, whole numbers of integer type with at most 20 values): an
      indicator for each of the 20 most frequent classes; for two classes, that of the second.
    * Other numbers: unchanged; a table of shape (n_rows, k) has one number per column.

    Raises
    ------
    ValueError
        If there is not one outcome per row, or one is missing, infinite or of an unknown form.
    """
    y = _unframed(y)
    if is_outcome(y):
        survival = _survival(y, n_rows)
        return (survival.event - _hazard(survival, weight))[:, None]
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


def _unframed(y: Any) -> Any:
    """The only column of a data frame as an array; anything else unchanged."""
    if not nw.dependencies.is_into_dataframe(y):
        return y
    frame = nw.from_native(y, eager_only=True)
    return frame.to_numpy()[:, 0] if frame.shape[1] == 1 else y


def _survival(y: Any, n_rows: int) -> Survival:
    """Survival outcomes, with an event if there was one of any cause."""
    survival = either_outcome(y)
    check_length(survival.time, "y", n_rows)
    return survival._replace(event=survival.event > 0)


def _hazard(survival: Survival, weight: Floats | None) -> Floats:
    cumulative = nelson_aalen(survival, weight)
    hazard: Floats = np.asarray(cumulative(survival.time))
    if survival.entry is not None:
        hazard = hazard - np.asarray(cumulative(survival.entry))
    return hazard
