"""Losses of a reference model, for ``OptimalSurvivalTree.fit(..., reference_loss=...)``.

A model that predicts better than trees of the wanted size, such as a random survival forest,
indicates how much loss no such tree can avoid. A search that trusts this indication is faster, but
proves less: no tree is better than the one found by more than the score of the reference (Zhang,
Xin, Seltzer, Rudin, "Optimal Sparse Survival Trees", AISTATS 2024, section 2.3).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bristlecone._data.outcomes import check_survival
from bristlecone._data.rows import check_row_labels, check_sample_weight
from bristlecone._leaves.brier import brier_score_of, check_time_grid, on_time_grid
from bristlecone._types import Floats
from bristlecone.metrics._inputs import as_curves

__all__ = ["brier_losses", "brier_reference_loss"]


def brier_reference_loss(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: ArrayLike | None = None,
    *,
    time_grid: ArrayLike | None = None,
) -> Floats:
    """Contribution of each row to the integrated Brier score of a fitted survival model.

    Parameters
    ----------
    model : fitted survival model
        Its ``predict_survival_function(X)`` must return one callable per row, as in
        scikit-survival and in this package.
    X : any input of the model, n rows
        Features of the training rows, in the form of the model's own fit.
    y, sample_weight, time_grid
        As in :func:`brier_losses`.

    Returns
    -------
    array of float, shape (n,)
        One loss per row.

    Raises
    ------
    TypeError
        If the model has no ``predict_survival_function``.
    ValueError
        As in :func:`brier_losses`.

    See Also
    --------
    brier_losses : The same from predicted curves.

    Examples
    --------
    >>> from bristlecone import GreedySurvivalTree, OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.reference import brier_reference_loss
    >>> data = load("veterans")
    >>> deep = GreedySurvivalTree(max_depth=6, leaf_curve="kaplan-meier").fit(data.X, data.y)
    >>> losses = brier_reference_loss(deep, data.X, data.y)
    >>> tree = OptimalSurvivalTree(objective="brier", max_depth=2, leaf_penalty=0.01)
    >>> tree.fit(data.X, data.y, reference_loss=losses).status_
    'reference_optimal'
    """
    predict = getattr(model, "predict_survival_function", None)
    if not callable(predict):
        raise TypeError(
            f"{type(model).__name__} has no method predict_survival_function; for curves from "
            "elsewhere use brier_losses"
        )
    check_row_labels(X, y=y, sample_weight=sample_weight)
    return brier_losses(y, predict(X), sample_weight=sample_weight, time_grid=time_grid)


def brier_losses(
    y: Any,
    survival: Any,
    times: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    time_grid: ArrayLike | None = None,
) -> Floats:
    """Contribution of each row to the integrated Brier score of its survival curve.

    The score, its censoring weights and its times are those of
    ``OptimalSurvivalTree(objective="brier")`` fitted to the same rows. You can compare the weighted
    mean of the losses with ``objective_value_`` minus the penalty. O(n · n_times).

    Parameters
    ----------
    y : structured array, DataFrame or pair, n rows
        Outcomes of the training rows, as in ``fit``; without delayed entry.
    survival : array-like of shape (n, n_times), or sequence of n callables
        Survival probabilities at ``times``, each constant up to the next time and 1 before the
        first; or functions of time. Functions with steps ``.x`` are evaluated at these.
    times : array-like of float, shape (n_times,), optional
        Strictly ascending; needed for an array.
    sample_weight : array-like of float, shape (n,), optional
        Row weights as in ``fit``; a row of weight zero gets the loss 0.
    time_grid : array-like of float, optional
        As in ``OptimalSurvivalTree``.

    Returns
    -------
    array of float, shape (n,)
        One loss per row.

    Raises
    ------
    ValueError
        If the numbers of rows differ, a value is not a probability, or ``y`` has delayed entry or
        no time after 0.

    See Also
    --------
    brier_reference_loss : The same from a fitted model.

    Examples
    --------
    >>> from bristlecone.reference import brier_losses
    >>> y = [True, True], [1.0, 2.0]
    >>> brier_losses(y, [[0.5], [1.0]], times=[0.5]).tolist()
    [0.125, 0.0]
    """
    check_row_labels(y, of="y", survival=survival, sample_weight=sample_weight)
    event, time, _ = check_survival(y, without_entry="brier_losses")
    weight = check_sample_weight(sample_weight, time.size)
    kept = np.ones(time.size, dtype=bool) if weight is None else weight > 0
    grid = check_time_grid(time_grid)
    if grid is not None:
        time, event = on_time_grid(time, event, grid)
    if not time[kept].max(initial=0.0) > 0:
        raise ValueError("y has no time after 0")
    score = brier_score_of(time[kept], event[kept], None if weight is None else weight[kept])
    curves = as_curves(survival, times, time.size, "survival", score.times)
    return np.where(kept, score.row_losses(curves, time, event), 0.0)
