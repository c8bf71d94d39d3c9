"""Folds, and standard errors of means over folds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from warnings import catch_warnings, filterwarnings

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.model_selection import RepeatedKFold, RepeatedStratifiedKFold

from bristlecone._data.checks import check_integer, check_seed
from bristlecone._data.groups import codes_of
from bristlecone._data.outcomes import either_outcome, is_outcome
from bristlecone._foreign import takes_columns
from bristlecone._types import Floats
from bristlecone.exceptions import InvalidParameterError
from bristlecone.tune._rows import GivenRows

Folds = list[tuple[NDArray[np.intp], NDArray[np.intp]]]


def folds_of(
    cv: Any, rows: GivenRows, estimator: Any, *, n_repeats: int, random_state: Any
) -> Folds:
    """Training and test rows of every fold.

    A number means shuffled folds, stratified by event, class or treatment if there are any. A
    splitter gets the strata instead of y. Otherwise ``cv`` contains the folds.
    """
    check_integer("n_repeats", n_repeats, 1)
    check_seed("random_state", random_state)
    strata = _strata(rows, estimator)
    groups = rows.by_row.get("groups")
    if hasattr(cv, "split") or not isinstance(cv, (int, np.integer)) or isinstance(cv, bool):
        if n_repeats > 1:
            raise InvalidParameterError(
                "n_repeats needs a number of folds as cv; to repeat a splitter, use one such as "
                "RepeatedStratifiedKFold"
            )
        y = rows.y if strata is None else strata
        wrong = InvalidParameterError(
            "cv must be a number of folds, a splitter, or pairs of training and test rows; got "
            f"{cv!r}"
        )
        if isinstance(cv, (str, bytes, type)) or not getattr(cv, "ndim", 1):
            raise wrong
        if not (hasattr(cv, "split") or isinstance(cv, Iterable)):
            raise wrong
        pairs = list(cv.split(rows.X, y, groups) if hasattr(cv, "split") else cv)
        if not pairs:
            raise InvalidParameterError(f"cv={cv!r} yields no folds")
        try:
            found = [(np.asarray(train), np.asarray(test)) for train, test in pairs]
        except (TypeError, ValueError):
            raise wrong from None
        return [
            (
                _positions(train, f"training rows of fold {place}", rows.n_rows),
                _positions(test, f"test rows of fold {place}", rows.n_rows),
            )
            for place, (train, test) in enumerate(found, start=1)
        ]
    check_integer("cv", cv, 2)
    if groups is not None:
        raise InvalidParameterError("groups need a splitter as cv, such as GroupKFold()")
    kind = RepeatedKFold if strata is None else RepeatedStratifiedKFold
    splitter = kind(n_splits=cv, n_repeats=n_repeats, random_state=random_state)
    with catch_warnings():
        # Rows of a rare stratum are still spread as evenly as possible.
        filterwarnings("ignore", "The least populated class in y", UserWarning)
        try:
            return list(splitter.split(np.zeros((rows.n_rows, 1)), strata))
        except ValueError as error:
            raise InvalidParameterError(f"cv={cv} yields no folds: {error}") from None


def _positions(part: NDArray[Any], name: str, n_rows: int) -> NDArray[np.intp]:
    """Positions of the rows of a part of a fold, which may be a mask.

    Raises
    ------
    InvalidParameterError
        If it has no rows, or is no such part.
    """
    if part.dtype == np.bool_ and part.shape == (n_rows,):
        part = np.flatnonzero(part)
    if part.size == 0:
        raise InvalidParameterError(f"cv: there are no {name}")
    if part.ndim != 1 or part.dtype.kind not in "iu":
        raise InvalidParameterError(f"cv: the {name} must be positions of rows or a mask of X")
    wrong = (part < -n_rows) | (part >= n_rows)
    if wrong.any():
        raise InvalidParameterError(
            f"cv: the {name} include row {part[wrong][0]}, but X has {n_rows} rows"
        )
    return part


def _strata(rows: GivenRows, estimator: Any) -> NDArray[Any] | None:
    """Labels whose shares should be equal in every fold; None if there are none."""
    if "treatment" in rows.by_row:
        return codes_of(rows.by_row["treatment"], rows.n_rows, "treatment", rows_of="X")[1]
    # Models of lifelines have none of the tags of scikit-learn.
    if not takes_columns(estimator) and is_classifier(estimator):
        return codes_of(rows.y, rows.n_rows, "y", rows_of="X")[1]
    if is_outcome(rows.y):
        return either_outcome(rows.y).event.astype(np.int64)
    return None


def _repeats(folds: Folds, n_rows: int) -> list[list[int]]:
    """Positions of the folds of every repeat: consecutive ones whose test rows do not overlap.

    If all overlap, as in random splits, they count as one repeat.
    """
    repeats: list[list[int]] = []
    seen = np.ones(n_rows, dtype=bool)
    for place, (_, test) in enumerate(folds):
        if seen[test].any():
            repeats.append([])
            seen[:] = False
        seen[test] = True
        repeats[-1].append(place)
    return repeats if any(len(folds) > 1 for folds in repeats) else [[*range(len(folds))]]


@np.errstate(invalid="ignore")
def standard_error(scores: Floats, folds: Folds, n_rows: int) -> Floats:
    """Standard error of the mean over the folds (the first axis).

    NaN for a single fold, and where a score is infinite.

    For one repeat, it is the standard deviation over the folds divided by the square root of their
    number. For several repeats, the variances are averaged: more repeats make the mean more stable,
    but add no information about further rows.
    """
    repeats = [scores[places] for places in _repeats(folds, n_rows) if len(places) > 1]
    if not repeats:
        return np.full(scores.shape[1:], np.nan)
    variance = np.mean([of.var(axis=0, ddof=1) / len(of) for of in repeats], axis=0)
    return np.asarray(np.sqrt(variance))


@np.errstate(invalid="ignore")
def corrected_error(differences: Floats, folds: Folds) -> float:
    """Corrected resampled standard error of a mean difference.

    NaN for a single fold, and where a difference is infinite.

    Nadeau and Bengio, "Inference for the generalization error", Machine Learning 52 (2003). The
    variance over J folds is multiplied by 1/J + n_test/n_train, because the folds share training
    rows.
    """
    if len(folds) < 2:
        return float("nan")
    share = np.mean([len(test) / len(train) for train, test in folds])
    return float(np.sqrt((1 / len(folds) + share) * differences.var(ddof=1)))
