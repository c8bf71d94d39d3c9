"""Metrics as scorers for ``scoring=``, in scikit-learn and in this package.

Call a scorer with ``(estimator, X, y, sample_weight=None)``. The estimator is a fitted survival
model, or a pipeline or search that ends in one. Greater is better.

Most scorers need the outcomes of the training rows, too. A fitted survival tree of this package
stores when its training rows were censored (``leaves_.follow_up``). For models of other packages,
pass ``survival_train``; ``bristlecone.tune.evaluate`` does so in every fold.

The censoring distribution G is estimated from the training rows. Each row counts once, whatever its
weight in the fit, and delayed entry is respected. If a tree was saved with thinned curves, G is
thinned, too. If training or test rows were not followed long enough for a metric to be defined, its
time window ends earlier: a fold whose last row lived longer than all others raises no error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metadata_routing import MetadataRequest

from bristlecone._data.checks import check_times
from bristlecone._data.outcomes import Survival, check_survival
from bristlecone._data.rows import check_length, check_row_labels, check_sample_weight
from bristlecone._foreign import hazard_of, predicts_survival, risk_of, survival_of
from bristlecone._types import Floats
from bristlecone.curves import censoring_survival, kaplan_meier
from bristlecone.metrics._auc import cumulative_dynamic_auc
from bristlecone.metrics._brier import integrated_brier_score
from bristlecone.metrics._causes import brier_score_of_tree
from bristlecone.metrics._concordance import (
    check_tau,
    concordance_index_censored,
    concordance_index_ipcw,
)
from bristlecone.metrics._foreign_likelihood import log_likelihood
from bristlecone.metrics._inputs import (
    ScoredRows,
    check_end,
    check_test_rows,
    end_of_weights,
    times_followed,
)
from bristlecone.metrics._scored_models import (
    check_cause,
    event_times,
    final_of,
    has_causes,
    is_survival_tree,
    predicted_risk,
    predicted_survival,
    trained,
    trained_causes,
)

# Metrics that accept delayed entry, for messages.
_INSTEAD = "the metric concordance or likelihood"

# Most event times at which the AUC is computed.
_AUC_TIMES = 100
# Most groups of similar prediction whose survival is compared.
_GROUPS = 5


class Scorer:
    """A function of a fitted estimator and rows, as scikit-learn's model selection calls it.

    With scikit-learn's metadata routing, ``set_score_request(sample_weight=True)`` returns a scorer
    that requests the weights.
    """

    __name__: str

    def __init__(self, function: Callable[..., float], request: bool | str | None = None) -> None:
        update_wrapper(self, function)
        self.function = function
        self.request = request

    def __call__(
        self, estimator: Any, X: Any, y: Any, sample_weight: Any = None, **options: Any
    ) -> float:
        """Score of the rows; greater is better."""
        check_row_labels(X, y=y, sample_weight=sample_weight)
        return self.function(estimator, X, y, sample_weight, **options)

    def set_score_request(self, *, sample_weight: bool | str | None) -> Scorer:
        """Return a scorer that requests weights (True, or their name), or does not (False)."""
        return Scorer(self.function, sample_weight)

    def get_metadata_routing(self) -> MetadataRequest:
        """Request for metadata, in the form that scikit-learn reads."""
        routing = MetadataRequest(owner=self)
        routing.score.add_request(param="sample_weight", alias=self.request)
        return routing

    def __reduce__(self) -> str | tuple[Any, ...]:
        # In the module, this name is the scorer, not its function.
        if self.request is None:
            return self.__name__
        return _requesting, (self.__name__, self.request)

    def __repr__(self) -> str:
        request = f".set_score_request(sample_weight={self.request})"
        return f"bristlecone.metrics.{self.__name__}{'' if self.request is None else request}"


def _requesting(name: str, request: bool | str) -> Scorer:
    plain: Scorer = globals()[name]
    return plain.set_score_request(sample_weight=request)


@Scorer
def concordance_scorer(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, *, cause: int = 1
) -> float:
    """Harrell's concordance index of the predicted risks, the same as ``score``.

    It also accepts estimators of other packages. For a ``CompetingRisksTree``, it is Wolbers'
    concordance index of a cause.

    Parameters
    ----------
    estimator : fitted survival model, or any estimator whose ``predict`` returns risks
        Or a pipeline or search that ends in one.
    X : DataFrame or array, shape (n, n_features_in_)
        Rows to score.
    y : structured array or DataFrame, n rows
        Outcomes; delayed entry is allowed.
    sample_weight : array-like of float, shape (n,), optional
        Row weights; a pair counts the product of its two weights.
    cause : int, default=1
        Number of the cause, for a ``CompetingRisksTree``.

    Returns
    -------
    float
        Between 0 and 1; 0.5 for a constant prediction.

    Raises
    ------
    TypeError
        If ``cause`` is not 1 and the estimator has no causes.
    ValueError
        If no two rows can be compared.

    See Also
    --------
    concordance_index_censored, concordance_index_cause : The metrics.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from bristlecone import OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.metrics import concordance_scorer
    >>> data, tree = load("veterans"), OptimalSurvivalTree(max_depth=2)
    >>> cross_val_score(tree, data.X, data.y, cv=3, scoring=concordance_scorer).round(2).tolist()
    [0.63, 0.64, 0.69]
    """
    model, X = final_of(estimator, X)
    check_cause(model, cause, "concordance_scorer")
    if has_causes(model):
        return float(model.score(X, y, sample_weight, cause=cause))
    if is_survival_tree(model):
        return float(model.score(X, y, sample_weight))
    test = check_survival(y)
    if predicts_survival(model):
        risk = risk_of(model, X, event_times(test), "concordance_scorer")
    else:
        risk = model.predict(X)
    return concordance_index_censored(y, risk, sample_weight=sample_weight).cindex


@Scorer
def uno_scorer(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    tau: float | None = None,
    survival_train: Any = None,
) -> float:
    """Uno's concordance index of the predicted risks, with the censoring of the training rows.

    Parameters
    ----------
    estimator : fitted survival model
        Tree of this package or model of another, or a pipeline or search that ends in one.
    X : DataFrame or array, shape (n, n_features_in_)
        Rows to score.
    y : structured array or DataFrame, n rows
        Outcomes, without delayed entry.
    sample_weight : array-like of float, shape (n,), optional
        Row weights; a pair counts the product of its two weights.
    tau : float, optional
        Pairs whose earlier time is ``tau`` or later are ignored. By default, ``tau`` is the first
        time at which G is 0 or that lies beyond the last training time; later values of ``tau``
        have the same effect.
    survival_train : structured array, DataFrame or pair (event, time), optional
        Outcomes of the training rows. Models of other packages need them; a tree of this package
        stores its own, which are the default.

    Returns
    -------
    float
        Between 0 and 1; 0.5 for a constant prediction.

    Raises
    ------
    TypeError
        If the estimator is not a survival model or does not predict what is scored, or if
        ``survival_train`` is needed.
    ValueError
        If no pair is comparable before ``tau``, or ``y`` has delayed entry.

    See Also
    --------
    concordance_index_ipcw : The metric.

    Examples
    --------
    >>> from bristlecone import OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.metrics import uno_scorer
    >>> data = load("veterans")
    >>> tree = OptimalSurvivalTree(max_depth=2).fit(data.X[:100], data.y[:100])
    >>> round(uno_scorer(tree, data.X[100:], data.y[100:]), 3)
    0.641
    """
    model, X, train = trained(estimator, X, "uno_scorer", survival_train)
    check_test_rows(y, sample_weight, name="y", instead=_INSTEAD)
    end = end_of_weights(censoring_survival(train))
    check_tau(tau)
    end = end if tau is None else min(tau, end)
    risk = predicted_risk(model, X, train, "uno_scorer")
    return concordance_index_ipcw(train, y, risk, end, sample_weight=sample_weight).cindex


@Scorer
def ibs_scorer(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    times: ArrayLike | None = None,
    cause: int = 1,
    survival_train: Any = None,
) -> float:
    """Integrated Brier score of the predicted curves, negated: greater is better.

    For a ``CompetingRisksTree``, it is that of the incidence of a cause (``brier_score_cause``).

    Parameters
    ----------
    estimator : fitted survival model
        Tree of this package or model of another, or a pipeline or search that ends in one.
    X : DataFrame or array, shape (n, n_features_in_)
        Rows to score.
    y : structured array or DataFrame, n rows
        Outcomes, without delayed entry.
    sample_weight : array-like of float, shape (n,), optional
        Row weights.
    times : array-like of float, optional
        Strictly ascending. The trapezoid rule runs over those within the follow-up of both test and
        training rows, as in scikit-survival. The default is the exact integral (``method="step"``)
        from 0 to the last test or training time, whichever is earlier. The smooth curve of a soft
        tree is then taken as constant on each of 256 pieces of this interval. The curves of other
        packages count as step functions: 1 before their first time, constant after the last.
    cause : int, default=1
        Number of the cause, for a ``CompetingRisksTree``.
    survival_train : structured array, DataFrame or pair (event, time), optional
        Outcomes of the training rows. Models of other packages need them; a tree of this package
        stores its own, which are the default.

    Returns
    -------
    float
        Minus the mean Brier score over the time window; 0 is perfect.

    Raises
    ------
    TypeError
        If the estimator is not a survival model or does not predict what is scored, or if
        ``survival_train`` is needed.
    ValueError
        If fewer than two of ``times`` are within the window, or ``y`` has delayed entry.

    See Also
    --------
    integrated_brier_score, brier_score_cause : The metrics.

    Examples
    --------
    >>> from bristlecone import OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.metrics import ibs_scorer
    >>> data = load("veterans")
    >>> tree = OptimalSurvivalTree(max_depth=2).fit(data.X[:100], data.y[:100])
    >>> round(ibs_scorer(tree, data.X[100:], data.y[100:]), 3)
    -0.126
    """
    model, own = final_of(estimator, X)
    check_cause(model, cause, "ibs_scorer")
    if has_causes(model):
        train = trained_causes(model, survival_train)
        return -brier_score_of_tree(model, own, train, y, cause, times, sample_weight)
    model, X, train = trained(estimator, X, "ibs_scorer", survival_train)
    rows = check_test_rows(y, sample_weight, name="y", instead=_INSTEAD)
    more: dict[str, Any] = {"sample_weight": sample_weight}
    if times is not None:
        at = times_followed(times, rows.time, censoring_survival(train))
        survival = predicted_survival(model, X, train, "ibs_scorer", at)
        return -integrated_brier_score(train, y, survival, at, **more)
    end = float(min(rows.time.max(), train.time.max()))
    check_end(end)
    more |= {"method": "step", "limits": (0.0, end)}
    if not is_survival_tree(model):
        steps = survival_of(model, X, event_times(train), "ibs_scorer")
        return -integrated_brier_score(train, y, steps.y, steps.x, **more)
    return -integrated_brier_score(train, y, model.predict_survival_function(X), **more)


@Scorer
def auc_scorer(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    times: ArrayLike | None = None,
    survival_train: Any = None,
) -> float:
    """Mean cumulative/dynamic AUC of the predicted risks, with G from the training rows.

    Parameters
    ----------
    estimator : fitted survival model
        Tree of this package or model of another, or a pipeline or search that ends in one.
    X : DataFrame or array, shape (n, n_features_in_)
        Rows to score.
    y : structured array or DataFrame, n rows
        Outcomes, without delayed entry.
    sample_weight : array-like of float, shape (n,), optional
        Row weights.
    times : array-like of float, optional
        Strictly ascending. The default is the event times of the test rows, at most 100 of them,
        evenly spread by rank. Times at which the area is not defined are ignored: a test row must
        have had an event, another must still be observed, and G must be known and positive.
    survival_train : structured array, DataFrame or pair (event, time), optional
        Outcomes of the training rows. Models of other packages need them; a tree of this package
        stores its own, which are the default.

    Returns
    -------
    float
        Mean of the areas, weighted by the decrease of the survival of the test rows; 0.5 for a
        constant prediction.

    Raises
    ------
    TypeError
        If the estimator is not a survival model or does not predict what is scored, or if
        ``survival_train`` is needed.
    ValueError
        If the area is defined at no time, or ``y`` has delayed entry.

    See Also
    --------
    cumulative_dynamic_auc : The metric.

    Examples
    --------
    >>> from bristlecone import OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.metrics import auc_scorer
    >>> data = load("veterans")
    >>> tree = OptimalSurvivalTree(max_depth=2).fit(data.X[:100], data.y[:100])
    >>> round(auc_scorer(tree, data.X[100:], data.y[100:], times=[60, 180]), 3)
    0.684
    """
    model, X, train = trained(estimator, X, "auc_scorer", survival_train)
    rows = check_test_rows(y, sample_weight, name="y", instead=_INSTEAD)
    at = _auc_times(rows, end_of_weights(censoring_survival(train)), times)
    risk = predicted_risk(model, X, train, "auc_scorer")
    return cumulative_dynamic_auc(train, y, risk, at, sample_weight=sample_weight)[1]


@Scorer
def likelihood_scorer(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    cause: int | None = None,
    survival_train: Any = None,
) -> float:
    """Mean log-likelihood of the outcomes under the predicted curves.

    For step curves it is minus the loss of the likelihood objective on the rows to score, with the
    baseline of the training rows. For smooth curves it is the logarithm of the density. The two
    kinds cannot be compared with each other.

    For models of other packages, the cumulative hazard is read at the ends of at most ten intervals
    with at least 20 training events each, and its rate relative to the baseline hazard of the
    training rows is taken as constant within each interval. This gives a density, comparable with
    that of trees with proportional curves, for which it is the same value.

    Parameters
    ----------
    estimator : fitted survival model
        Tree of this package or model of another, or a pipeline or search that ends in one.
    X : DataFrame or array, shape (n, n_features_in_)
        Rows to score.
    y : structured array or DataFrame, n rows
        Outcomes; delayed entry is allowed.
    sample_weight : array-like of float, shape (n,), optional
        Row weights.
    cause : int, optional
        Number of a cause, for a ``CompetingRisksTree``; by default the sum over all causes.
    survival_train : structured array, DataFrame or pair (event, time), optional
        Outcomes of the training rows. Models of other packages need them; a tree of this package
        stores its own, which are the default.

    Returns
    -------
    float
        For a tree the mean of ``estimator.log_likelihood(X, y)``, where the definition is given.

    Raises
    ------
    TypeError
        If the estimator is not a survival model or does not predict what is scored, or if
        ``survival_train`` is needed.
    ValueError
        If a row outlives the curve that a model of another package predicts.

    See Also
    --------
    ibs_scorer : Can compare survival trees of every kind.

    Examples
    --------
    >>> from bristlecone import OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.metrics import likelihood_scorer
    >>> data = load("veterans")
    >>> tree = OptimalSurvivalTree(max_depth=2).fit(data.X[:100], data.y[:100])
    >>> round(likelihood_scorer(tree, data.X[100:], data.y[100:]), 3)
    -0.293
    """
    model, own = final_of(estimator, X)
    check_cause(model, cause, "likelihood_scorer")
    if has_causes(model):
        found = model.log_likelihood(own, y, cause)
    elif is_survival_tree(model):
        found = model.log_likelihood(own, y)
    else:
        model, X, train = trained(estimator, X, "likelihood_scorer", survival_train)
        hazard = hazard_of(model, X, event_times(train), "likelihood_scorer")
        test = check_survival(y)
        check_length(test.time, "y", len(hazard.y))
        found = log_likelihood(train, test, hazard, type(model).__name__)
    return float(np.average(found, weights=check_sample_weight(sample_weight, len(found))))


@Scorer
def calibration_scorer(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    time: float | None = None,
    survival_train: Any = None,
) -> float:
    """Mean difference between predicted and observed survival at one time, negated.

    The rows are divided into at most five groups of similar prediction, and the mean prediction of
    each is compared with its Kaplan–Meier survival.

    Parameters
    ----------
    estimator : fitted survival model
        Tree of this package or model of another, or a pipeline or search that ends in one.
    X : DataFrame or array, shape (n, n_features_in_)
        Rows to score.
    y : structured array or DataFrame, n rows
        Outcomes; delayed entry is allowed.
    sample_weight : array-like of float, shape (n,), optional
        Row weights.
    time : float, optional
        The time; by default the middle of the follow-up, half of the last test or training time,
        whichever is earlier.
    survival_train : structured array, DataFrame or pair (event, time), optional
        Outcomes of the training rows. Models of other packages need them; a tree of this package
        stores its own, which are the default.

    Returns
    -------
    float
        Minus the mean absolute difference, weighted by the rows of the groups; 0 is perfect.

    Raises
    ------
    TypeError
        If the estimator is not a survival model or does not predict what is scored, or if
        ``survival_train`` is needed.
    ValueError
        If ``time`` is negative, not finite, or after the last test time.

    See Also
    --------
    one_time_calibration : A test of the same comparison.

    Examples
    --------
    >>> from bristlecone import OptimalSurvivalTree
    >>> from bristlecone.datasets import load
    >>> from bristlecone.metrics import calibration_scorer
    >>> data = load("veterans")
    >>> tree = OptimalSurvivalTree(max_depth=2).fit(data.X[:100], data.y[:100])
    >>> round(calibration_scorer(tree, data.X[100:], data.y[100:], time=90), 3)
    -0.238
    """
    model, X, train = trained(estimator, X, "calibration_scorer", survival_train)
    test = check_survival(y)
    if time is None:
        at = np.array([min(test.time.max(), train.time.max()) / 2])
    else:
        at = check_times(np.atleast_1d(time))
        if at[0] > test.time.max():
            raise ValueError(
                f"time {at[0]:g} is after the last test time, {test.time.max():g}; what survives "
                "until then is unknown"
            )
    predicted = predicted_survival(model, X, train, "calibration_scorer", at)[:, 0]
    check_length(test.time, "y", len(predicted))
    given = check_sample_weight(sample_weight, len(predicted))
    weight = np.ones(len(predicted)) if given is None else given
    # Equal predictions stay together, in the group of their middle rank.
    value = np.unique(predicted, return_inverse=True)[1]
    total = np.bincount(value, weight)
    middle = (np.cumsum(total) - total / 2)[value] / total.sum()
    group = np.minimum((_GROUPS * middle).astype(np.int64), _GROUPS - 1)
    error = 0.0
    for own in range(_GROUPS):
        rows = (group == own) & (weight > 0)
        if rows.any():
            entry = None if test.entry is None else test.entry[rows]
            observed: Any = kaplan_meier(
                Survival(test.event[rows], test.time[rows], entry), weight[rows]
            )
            mean = np.average(predicted[rows], weights=weight[rows])
            error += weight[rows].sum() * abs(float(mean - observed(at)[0]))
    return -float(error / weight.sum())


SCORERS = {
    "concordance": concordance_scorer,
    "uno": uno_scorer,
    "ibs": ibs_scorer,
    "auc": auc_scorer,
    "likelihood": likelihood_scorer,
    "calibration": calibration_scorer,
}
"""The scorers, by their names in ``TreeSizeCV``, ``evaluate`` and the command line."""


def _auc_times(rows: ScoredRows, end: float, times: ArrayLike | None) -> Floats:
    """Times at which there are cases, controls and weights."""
    happened = np.unique(rows.time[rows.event])
    if times is None:
        at = happened
    else:
        at = check_times(np.atleast_1d(np.asarray(times)), ascending=True)
    first = happened[0] if happened.size else np.inf
    at = at[(at >= first) & (at < min(rows.time.max(), end))]
    if not at.size:
        raise ValueError(
            "the AUC is not defined at any time: within the follow-up of training and test rows, "
            "no time has both an event before it and a row observed after it"
        )
    if times is None and at.size > _AUC_TIMES:
        at = at[np.linspace(0, at.size - 1, _AUC_TIMES).round().astype(np.int64)]
    return at
