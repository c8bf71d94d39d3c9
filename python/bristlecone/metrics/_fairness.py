"""Differences between groups in how a classifier treats them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bristlecone._data.arrays import listed
from bristlecone._data.groups import (
    EQUAL_ODDS,
    EQUAL_OPPORTUNITY,
    PARITY,
    codes_of,
    group_confusion,
    group_rates,
)
from bristlecone._data.rows import check_row_labels, check_sample_weight


def demographic_parity_difference(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Largest difference between groups in the share of rows predicted to be positive.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n,)
        True and predicted labels of two classes.
    sensitive_features : array-like of shape (n,)
        Group of each row; any number of groups.
    sample_weight : array-like of float, shape (n,), optional
        Row weights. Rows of weight zero are left out.
    pos_label : label, optional
        Positive class; by default the second of the two labels in sorted order.

    Returns
    -------
    float
        Between 0 and 1; 0 with a single group. Equal to the function of this name in fairlearn.

    Raises
    ------
    ValueError
        If the numbers of rows differ, labels or groups are missing, there are more than two labels,
        or only one and no ``pos_label``.

    See Also
    --------
    equal_opportunity_difference, equalized_odds_difference : Compare rows of the same class.
    bristlecone.DemographicParity : Limits the difference on the training rows.

    Examples
    --------
    >>> from bristlecone.metrics import demographic_parity_difference
    >>> true, predicted, group = [0, 1, 0, 1], [1, 1, 0, 1], ["a", "a", "b", "b"]
    >>> demographic_parity_difference(true, predicted, sensitive_features=group)
    0.5
    """
    return _difference(PARITY, y_true, y_pred, sensitive_features, sample_weight, pos_label)


def equal_opportunity_difference(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Largest difference between groups in the true positive rate.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, sample_weight, pos_label
        As in :func:`demographic_parity_difference`.

    Returns
    -------
    float
        Between 0 and 1; 0 with a single group. Equal to the function of this name in fairlearn.

    Raises
    ------
    ValueError
        As in :func:`demographic_parity_difference`, and if a group has no row of the positive
        class.

    See Also
    --------
    equalized_odds_difference : Compares the false positive rates, too.
    bristlecone.EqualityOfOpportunity : Limits the difference on the training rows.

    Examples
    --------
    >>> from bristlecone.metrics import equal_opportunity_difference
    >>> true, predicted, group = [1, 1, 1, 1], [1, 1, 0, 1], ["a", "a", "b", "b"]
    >>> equal_opportunity_difference(true, predicted, sensitive_features=group, pos_label=1)
    0.5
    """
    return _difference(
        EQUAL_OPPORTUNITY, y_true, y_pred, sensitive_features, sample_weight, pos_label
    )


def equalized_odds_difference(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Largest difference between groups in the true or the false positive rate.

    Parameters
    ----------
    y_true, y_pred, sensitive_features, sample_weight, pos_label
        As in :func:`demographic_parity_difference`.

    Returns
    -------
    float
        The larger of the two differences, between 0 and 1; 0 with a single group. Equal to the
        function of this name in fairlearn.

    Raises
    ------
    ValueError
        As in :func:`demographic_parity_difference`, and if a group has no row of either class.

    See Also
    --------
    equal_opportunity_difference : Compares the true positive rates only.
    bristlecone.EqualizedOdds : Limits the difference on the training rows.

    Examples
    --------
    >>> from bristlecone.metrics import equalized_odds_difference
    >>> true, predicted, group = [0, 1, 0, 1], [1, 1, 0, 1], ["a", "a", "b", "b"]
    >>> equalized_odds_difference(true, predicted, sensitive_features=group)
    1.0
    """
    return _difference(EQUAL_ODDS, y_true, y_pred, sensitive_features, sample_weight, pos_label)


def _difference(
    constraint: str,
    y_true: Any,
    y_pred: Any,
    sensitive_features: Any,
    sample_weight: Any,
    pos_label: Any,
) -> float:
    """Largest difference between groups in the rates that a constraint compares."""
    n = len(y_true)
    by_row = {"y_pred": y_pred, "sensitive_features": sensitive_features}
    check_row_labels(y_true, of="y_true", sample_weight=sample_weight, **by_row)
    labels, true = codes_of(y_true, n, "y_true")
    said, predicted = codes_of(y_pred, n, "y_pred", rows_of="y_true")
    groups, group = codes_of(sensitive_features, n, "sensitive_features", rows_of="y_true")
    weight = check_sample_weight(sample_weight, n)
    known, predictions = labels.tolist(), said.tolist()
    try:
        classes = sorted({*known, *predictions})
    except TypeError:
        raise ValueError(
            f"y_true holds {listed(known)} and y_pred {listed(predictions)}; expected labels of "
            "one type"
        ) from None
    if len(classes) > 2:
        raise ValueError(f"y_true and y_pred have {len(classes)} labels, {classes[:5]}; expected 2")
    if pos_label is None and len(classes) < 2:
        raise ValueError(
            f"y_true and y_pred have one label, {classes[0]!r}; pass pos_label to say whether it "
            "is the positive class"
        )
    if pos_label is None:
        pos_label = classes[-1]
    elif len(classes) == 2 and pos_label not in classes:
        raise ValueError(f"pos_label={pos_label!r} is not one of the labels {classes}")
    true, predicted = (
        np.array([label == pos_label for label in names.tolist()], dtype=np.int64)[codes]
        for names, codes in ((labels, true), (said, predicted))
    )
    counts = group_confusion(group, true, predicted, weight, len(groups))
    # Groups of rows without weight do not count.
    present = counts.sum(axis=(1, 2)) > 0
    rates = group_rates(constraint, counts[present])
    undefined = np.isnan(rates)
    if undefined.any():
        place = np.argwhere(undefined)[0]
        which = "negative" if len(place) > 1 and place[1] == 1 else "positive"
        raise ValueError(
            f"group {groups[present].tolist()[place[0]]!r} has no row of the {which} class, so its "
            f"{'false' if which == 'negative' else 'true'} positive rate is not defined"
        )
    return float(np.ptp(rates, axis=0).max())
