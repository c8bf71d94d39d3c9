"""Labels, numbers and costs that a tree is fitted to: checked here, once."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.arrays import refuse, unmasked
from bristlecone._data.exact import product_sum
from bristlecone._data.groups import codes_of
from bristlecone._data.rows import (
    check_column,
    check_finite,
    check_row_labels,
    check_sample_weight,
    check_weights,
    row_count,
    take_rows,
)
from bristlecone._types import Bools, Floats, Integers
from bristlecone.exceptions import InvalidParameterError

# Weighted exposures below this share of the largest, or of 1, lose digits in doubles. So do counts
# if all of them are below it.
_LEAST_EXPOSURE = 2.0**-960

# The engine has no more labels.
_MOST_LABELS = 32

# Leaves report the variance of numbers and rates, and the squares of larger ones overflow.
_MOST = 2.0**510


class LabelledData(NamedTuple):
    """Checked rows of a fit to labels, all of positive weight.

    ``labels`` int64 (n,) are positions in ``classes``. ``kept`` bool says which of the given rows
    these are, for other arguments with one entry per row. ``smoothed`` (n, n_classes) are the
    shares of the classes that the search uses, if a teacher has smoothed them.
    """

    X: Any
    labels: Integers
    classes: NDArray[Any]
    weight: Floats | None
    kept: Bools
    smoothed: Floats | None = None


class NumericData(NamedTuple):
    """Checked rows of a fit to numbers, all of positive weight; ``kept`` as in LabelledData.

    Counts have an ``exposure`` each, or 1. ``smoothed`` (n,) are the targets that the search uses,
    if a teacher has smoothed them.
    """

    X: Any
    target: Floats
    weight: Floats | None
    kept: Bools
    exposure: Floats | None = None
    smoothed: Floats | None = None

    @property
    def sought(self) -> NumericData:
        """The rows with the targets that the search uses."""
        return self if self.smoothed is None else self._replace(target=self.smoothed, smoothed=None)

    @property
    def rates(self) -> Floats:
        """Counts per unit of exposure."""
        return self.target if self.exposure is None else self.target / self.exposure

    @property
    def rate_weight(self) -> Floats | None:
        """Weights of the rates: the weighted exposures; None for one each."""
        if self.exposure is None or self.weight is None:
            return self.weight if self.exposure is None else self.exposure
        return self.weight * self.exposure


class CostlyData(NamedTuple):
    """Checked rows with the cost of every label, float64 (n, n_classes).

    ``smoothed`` are the costs that the search uses, if a teacher has smoothed them.
    """

    X: Any
    labels: Integers
    classes: NDArray[Any]
    weight: Floats | None
    costs: Floats
    smoothed: Floats | None = None


class GroupedData(NamedTuple):
    """Checked rows with the group of each, int64 (n,).

    ``weight`` includes that of the class; ``group_weight`` is the weight of a row in the rate of
    its group, None if it equals ``weight``.
    """

    X: Any
    labels: Integers
    classes: NDArray[Any]
    weight: Floats | None
    group: Integers
    groups: NDArray[Any]
    group_weight: Floats | None = None


class PolicyData(NamedTuple):
    """Checked rows with the estimated outcome of every treatment, float64 (n, n_treatments).

    ``treatment`` int64 (n,) are positions in ``treatments``. ``outcome`` float64 (n,) is the
    observed outcome; if it is censored, it is the time, and ``happened`` says whether it is that of
    an event. ``propensity`` (n,), of the treatment that the row had, and ``predicted_outcomes`` are
    those that the user gave, if any, and if the rewards depend on them.
    """

    X: Any
    rewards: Floats
    treatments: NDArray[Any]
    weight: Floats | None
    treatment: Integers
    outcome: Floats
    happened: Bools | None = None
    propensity: Floats | None = None
    predicted_outcomes: Floats | None = None


class OwnData(NamedTuple):
    """Checked rows of a fit, all of positive weight; ``statistics`` float64 (n, k), weighted."""

    X: Any
    statistics: Floats
    weight: Floats | None

    @property
    def total_weight(self) -> float:
        """Weight of all rows."""
        return float(len(self.statistics)) if self.weight is None else math.fsum(self.weight)


def check_labelled_data(
    X: Any, y: Any, sample_weight: Any, class_weight: Any = None, *, name: str = "y"
) -> LabelledData:
    """Check the rows of a fit to labels and leave out those of weight zero.

    The classes are those of the rows with a positive ``sample_weight``. The weight of a row is its
    own times that of its class.

    Raises
    ------
    ValueError
        For no rows, lengths that differ, labels that are missing, continuous or more than 32,
        pandas indices as in ``check_row_labels``, and all of ``check_sample_weight``.
    """
    n_samples = row_count(X)
    check_row_labels(X, **{name: y}, sample_weight=sample_weight)
    classes, labels = codes_of(y, n_samples, name)
    weight = check_sample_weight(sample_weight, n_samples)
    kept = np.ones(n_samples, dtype=bool)
    if weight is not None:
        kept = weight > 0
        present, codes = np.unique(labels[kept], return_inverse=True)
        classes = classes[present]
        labels = np.zeros(n_samples, dtype=np.int64)
        labels[kept] = codes
    if class_weight is not None:
        weight = _weighted_by_class(class_weight, classes, labels, kept, weight)
        kept = weight > 0
    if not kept.all() and weight is not None:
        X, labels, weight = take_rows(X, kept), labels[kept], weight[kept]
    check_some(len(labels))
    if len(classes) > _MOST_LABELS:
        raise ValueError(f"{name} has {len(classes)} values; at most {_MOST_LABELS} are supported")
    return LabelledData(X, labels, classes, weight, kept)


def _weighted_by_class(
    class_weight: Any,
    classes: NDArray[Any],
    labels: Integers,
    kept: Bools,
    weight: Floats | None,
) -> Floats:
    """Weight of every row times that of its class; 0 if the row's own weight is 0."""
    own = kept.astype(np.float64) if weight is None else weight
    if isinstance(class_weight, str) and class_weight == "balanced":
        factors = balanced_weights(labels[kept], own[kept], np.ones(kept.sum(), dtype=np.int64))
    elif isinstance(class_weight, dict):
        for label, factor in class_weight.items():
            check_amounts(f"class_weight[{label!r}]", factor, ())
        unknown = [label for label in class_weight if label not in classes.tolist()]
        if unknown:
            raise ValueError(
                f"class_weight names {unknown[0]!r}, which is not among the classes "
                f"{classes.tolist()}"
            )
        factors = np.array([class_weight.get(label, 1.0) for label in classes.tolist()])
    else:
        raise InvalidParameterError(
            f"class_weight must be a dict, 'balanced' or None; got {class_weight!r}"
        )
    weighted = factors[labels] * own
    if not weighted.any():
        raise ValueError("class_weight leaves no row of positive weight")
    return check_weights(weighted, "the weight by class_weight", len(labels))


def balanced_weights(labels: Integers, weight: Floats, count: Integers) -> Floats:
    """Factors that give every class the same total weight, and all rows theirs.

    Each row stands for ``count`` rows. Sums are rounded once, whatever the order of the rows.
    """
    classes = [labels == k for k in range(int(labels.max()) + 1)]
    of_class = np.array([product_sum(weight[own], count[own]) for own in classes])
    factors: Floats = of_class.sum() / (len(of_class) * of_class)
    return factors


def known_codes(name: str, values: Any, known: NDArray[Any], n_samples: int) -> Integers:
    """Position of every value among the sorted labels of a fit.

    Raises
    ------
    ValueError
        If there is not one per row, or one was not known to the fit.
    """
    array = check_column(values, name, n_samples)
    if array.dtype.kind == "T":
        array = np.array(array.tolist())  # text of variable length cannot be sought
    try:
        codes = np.minimum(np.searchsorted(known, array), len(known) - 1)
        unknown = known[codes] != array
    except TypeError:  # a number and a text have no order
        labels = known.tolist()
        unknown = np.array([label not in labels for label in array.tolist()])
    if unknown.any():
        raise ValueError(
            f"{name} holds {array[unknown].tolist()[0]!r}, which is not among those of the fit, "
            f"{known.tolist()}"
        )
    return codes


def check_two_classes(classes: NDArray[Any]) -> None:
    """Raise ValueError for more than two classes."""
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is multiclass: y has "
            f"{len(classes)} classes"
        )


def check_numeric_data(X: Any, y: Any, sample_weight: Any) -> NumericData:
    """Check the rows of a fit to numbers and leave out those of weight zero.

    Raises
    ------
    ValueError
        For no rows, lengths that differ, values that are too large or not finite numbers (the row
        is named), pandas indices as in ``check_row_labels``, and all of ``check_sample_weight``.
    """
    n_samples = row_count(X)
    check_row_labels(X, y=y, sample_weight=sample_weight)
    target = check_numbers("y", y, n_samples)
    weight = check_sample_weight(sample_weight, n_samples)
    kept = np.ones(n_samples, dtype=bool) if weight is None else weight > 0
    refuse(kept & (np.abs(target) > _MOST), target, "y", "change its unit")
    if weight is not None and not kept.all():
        X, target, weight = take_rows(X, kept), target[kept], weight[kept]
    check_some(len(target))
    return NumericData(X, target, weight, kept)


def check_counts(X: Any, y: Any, sample_weight: Any, exposure: Any = None) -> NumericData:
    """Check the rows of a fit to counts, which may have an exposure each.

    Raises
    ------
    ValueError
        For a negative count, counts that are all too small, an exposure that is not positive, too
        large, or too small beside the others (the row is named), and as in ``check_numeric_data``.
    """
    data = check_numeric_data(X, y, sample_weight)
    counts = check_numbers("y", y, len(data.kept))
    if (counts < 0).any():
        row = int(np.argmax(counts < 0))
        raise ValueError(f"y has the negative count {counts[row]:g} in row {row}")
    if 0 < data.target.max() < _LEAST_EXPOSURE:
        raise ValueError(f"y has no count above {data.target.max():g}; change its unit")
    if exposure is None:
        return data
    check_row_labels(X, exposure=exposure)
    exposed = check_numbers("exposure", exposure, len(data.kept))
    if not (exposed > 0).all():
        row = int(np.argmin(exposed > 0))
        raise ValueError(f"exposure must be positive; it is {exposed[row]:g} in row {row}")
    data = data._replace(exposure=exposed[data.kept])
    with np.errstate(over="ignore"):
        weighted = data.rate_weight
    assert weighted is not None  # there are exposures
    rows, wrong = np.flatnonzero(data.kept), ""
    if np.isinf(weighted).any():
        row = rows[np.argmax(weighted)]
        wrong = f"large, {exposed[row]:g} times its weight"
    elif weighted.min() < _LEAST_EXPOSURE * max(1.0, weighted.max()):
        row = rows[np.argmin(weighted)]
        wrong = f"small, {exposed[row]:g} beside its weight and the other rows"
    elif data.rates.max() > _MOST:
        row = rows[np.argmax(data.rates)]
        wrong = f"small, {exposed[row]:g} for a count of {counts[row]:g}"
    if wrong:
        raise ValueError(f"exposure in row {row} is too {wrong}; change its unit")
    return data


def check_numbers(name: str, values: Any, n_samples: int) -> Floats:
    """One finite number per row, float64 (n_samples,).

    Raises
    ------
    ValueError
        If there is not one finite number per row; ``name`` is their name in messages.
    """
    array = check_column(values, name, n_samples)
    if array.dtype.kind in "mM":
        raise ValueError(f"{name} has dtype {array.dtype}; expected numbers")
    if array.dtype.kind not in "biuf":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{name} has dtype {array.dtype}; expected numbers") from None
    numbers = np.ascontiguousarray(array, dtype=np.float64)
    check_finite(numbers, name)
    return numbers


def check_amounts(
    name: str,
    values: Any,
    shape: tuple[int, ...] | None = None,
    *,
    minimum: float = 0.0,
    why: str = "",
) -> Floats:
    """Array of finite numbers of at least ``minimum``.

    Raises
    ------
    InvalidParameterError
        For another shape (``why`` says what it should be) or a number that is none, infinite or
        too small; its place is named.
    """
    array = as_numbers(name, unmasked(values, name))
    if shape is not None and array.shape != shape:
        raise InvalidParameterError(
            f"{name} has shape {array.shape}; expected {shape}{f', {why}' if why else ''}"
        )
    wrong = ~(np.isfinite(array) & (array >= minimum))
    if wrong.any():
        place = tuple(int(k) for k in np.argwhere(wrong)[0])
        where = f"[{', '.join(map(str, place))}]" if place else ""
        least = "not negative" if minimum == 0 else f"at least {minimum:g}"
        raise InvalidParameterError(
            f"{name}{where} is {array[place]}; expected finite numbers"
            + (f", {least}" if np.isfinite(minimum) else "")
        )
    return array


def as_numbers(name: str, values: Any) -> Floats:
    """Array of numbers; InvalidParameterError if there is something else."""
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InvalidParameterError(f"{name} holds something else than numbers") from None


def check_some(n_samples: int) -> None:
    """Raise ValueError if there are no rows."""
    if n_samples == 0:
        raise ValueError("n_samples=0: at least one row of positive weight is needed")
