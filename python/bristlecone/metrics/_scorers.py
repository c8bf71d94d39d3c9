"""Metrics as scorers for ``scoring=``, in scikit-learn and in this package.

A fitted tree stores when its training rows were censored (``leaves_.follow_up``), so a scorer needs
only the rows to score. Call it with ``(estimator, X, y, sample_weight=None)``. The estimator is a
fitted survival tree, or a pipeline or search that ends in one. Greater is better.

The censoring distribution G is estimated from the training rows. Each row counts once, whatever its
weight in the fit, and delayed entry is respected. If a tree was saved with thinned curves, G is
thinned, too. If training or test rows were not followed long enough for a metric to be defined, its
time window ends earlier: a fold whose last row lived longer than all others raises no error.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metadata_routing import MetadataRequest

from bristlecone._data.checks import check_times
from bristlecone._data.outcomes import Survival
from bristlecone._data.rows import check_row_labels, check_sample_weight
from bristlecone.curves import StepFunction, censoring_survival
from bristlecone.metrics._auc import cumulative_dynamic_auc
from bristlecone.metrics._brier import integrated_brier_score
from bristlecone.metrics._concordance import concordance_index_censored, concordance_index_ipcw
from bristlecone.metrics._inputs import ScoredRows, check_test_rows

__all__ = [
    "SCORERS",
    "Scorer",
    "auc_scorer",
    "concordance_scorer",
    "ibs_scorer",
    "likelihood_scorer",
    "uno_scorer",
]

Floats: TypeAlias = NDArray[np.float64]

# Metrics that accept delayed entry, for messages.
_INSTEAD = "the metric concordance or likelihood"

# Event times at which the AUC is taken, at most.
_AUC_TIMES = 100
# Pieces on which a smooth curve counts as constant.
_PIECES = 256


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
def concordance_scorer(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Harrell's concordance index of the predicted risks, the same as ``score``.

    It also accepts estimators of other packages.

    Parameters
    ----------
    estimator : fitted survival tree, or any estimator whose ``predict`` returns risks
        Or a pipeline or search that ends in one.
    X : DataFrame or array, shape (n, n_features_in_)
        Rows to score.
    y : structured array or DataFrame, n rows
        Outcomes; delayed entry is allowed.
    sample_weight : array-like of float, shape (n,), optional
        Row weights; a pair counts the product of its two weights.

    Returns
    -------
    float
        Between 0 and 1; 0.5 for a constant prediction.

    Raises
    ------
    ValueError
        If no two rows can be compared.

    See Also
    --------
    concordance_index_censored : The metric.

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
    model, X = _final(estimator, X)
    if _is_survival_tree(model):
        return float(model.score(X, y, sample_weight))
    risk = model.predict(X)
    return concordance_index_censored(y, risk, sample_weight=sample_weight).cindex


@Scorer
def uno_scorer(
    estimator: Any, X: Any, y: Any, sample_weight: Any = None, *, tau: float | None = None
) -> float:
    """Uno's concordance index of the predicted risks, with the censoring of the training rows.

    Parameters
    ----------
    estimator : fitted survival tree
        Or a pipeline or search that ends in one.
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

    Returns
    -------
    float
        Between 0 and 1; 0.5 for a constant prediction.

    Raises
    ------
    TypeError
        If the estimator is not a fitted survival tree.
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
    tree, X, train = _trained(estimator, X, "uno_scorer")
    check_test_rows(y, sample_weight, name="y", instead=_INSTEAD)
    end = _end_of_weights(train)
    end = end if tau is None else min(tau, end)
    risk = tree.predict(X)
    return concordance_index_ipcw(train, y, risk, end, sample_weight=sample_weight).cindex


@Scorer
def ibs_scorer(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    times: ArrayLike | None = None,
) -> float:
    """Integrated Brier score of the predicted curves, negated: greater is better.

    Parameters
    ----------
    estimator : fitted survival tree
        Or a pipeline or search that ends in one.
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
        tree is then taken as constant on each of 256 pieces of this interval.

    Returns
    -------
    float
        Minus the mean Brier score over the time window; 0 is perfect.

    Raises
    ------
    TypeError
        If the estimator is not a fitted survival tree.
    ValueError
        If fewer than two of ``times`` are within the window, or ``y`` has delayed entry.

    See Also
    --------
    integrated_brier_score : The metric.

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
    tree, X, train = _trained(estimator, X, "ibs_scorer")
    rows = check_test_rows(y, sample_weight, name="y", instead=_INSTEAD)
    more: dict[str, Any] = {"sample_weight": sample_weight}
    if times is not None:
        at = check_times(np.atleast_1d(np.asarray(times)), ascending=True)
        at = at[(at >= rows.time.min()) & (at < min(rows.time.max(), _end_of_weights(train)))]
        if at.size < 2:
            raise ValueError(
                "fewer than two of times are within the follow-up of test and training rows"
            )
        survival = tree.predict_survival_function(X, times=at)
        return -integrated_brier_score(train, y, survival, at, **more)
    end = float(min(rows.time.max(), train.time.max()))
    more |= {"method": "step", "limits": (0.0, end)}
    curves = tree.predict_survival_function(X)
    if isinstance(curves[0], StepFunction):
        return -integrated_brier_score(train, y, curves, **more)
    edges = np.linspace(0.0, end, _PIECES + 1)
    survival = tree.predict_survival_function(X, times=(edges[1:] + edges[:-1]) / 2)
    return -integrated_brier_score(train, y, survival, edges[:-1], **more)


@Scorer
def auc_scorer(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    times: ArrayLike | None = None,
) -> float:
    """Mean cumulative/dynamic AUC of the predicted risks, with G from the training rows.

    Parameters
    ----------
    estimator : fitted survival tree
        Or a pipeline or search that ends in one.
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

    Returns
    -------
    float
        Mean of the areas, weighted by the decrease of the survival of the test rows; 0.5 for a
        constant prediction.

    Raises
    ------
    TypeError
        If the estimator is not a fitted survival tree.
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
    tree, X, train = _trained(estimator, X, "auc_scorer")
    rows = check_test_rows(y, sample_weight, name="y", instead=_INSTEAD)
    at = _auc_times(rows, _end_of_weights(train), times)
    risk = tree.predict(X)
    return cumulative_dynamic_auc(train, y, risk, at, sample_weight=sample_weight)[1]


@Scorer
def likelihood_scorer(estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
    """Mean log-likelihood of the outcomes under the predicted curves.

    For step curves it is minus the loss of the likelihood objective on the rows to score, with the
    baseline of the training rows. For smooth curves it is the logarithm of the density. The two
    kinds cannot be compared with each other.

    Parameters
    ----------
    estimator : fitted survival tree
        Or a pipeline or search that ends in one.
    X : DataFrame or array, shape (n, n_features_in_)
        Rows to score.
    y : structured array or DataFrame, n rows
        Outcomes; delayed entry is allowed.
    sample_weight : array-like of float, shape (n,), optional
        Row weights.

    Returns
    -------
    float
        Mean of ``estimator.log_likelihood(X, y)``, where the definition is given.

    Raises
    ------
    TypeError
        If the estimator is not a fitted survival tree.

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
    tree, X, _ = _trained(estimator, X, "likelihood_scorer")
    check_row_labels(X, sample_weight=sample_weight)
    found = tree.log_likelihood(X, y)
    return float(np.average(found, weights=check_sample_weight(sample_weight, len(found))))


SCORERS = {
    "concordance": concordance_scorer,
    "uno": uno_scorer,
    "ibs": ibs_scorer,
    "auc": auc_scorer,
    "likelihood": likelihood_scorer,
}
"""The scorers, by their names in ``TreeSizeCV``, ``evaluate`` and the command line."""


def _final(estimator: Any, X: Any) -> tuple[Any, Any]:
    """Estimator at the end of searches and pipelines, and the rows as it takes them."""
    while True:
        if hasattr(estimator, "best_estimator_"):
            estimator = estimator.best_estimator_
        elif hasattr(estimator, "named_steps"):
            if len(estimator.steps) > 1:
                X = estimator[:-1].transform(X)
            estimator = estimator[-1]
        else:
            return estimator, X


def _is_survival_tree(model: Any) -> bool:
    return hasattr(getattr(model, "leaves_", None), "follow_up")


def _trained(estimator: Any, X: Any, what: str) -> tuple[Any, Any, Survival]:
    """Fitted survival tree, the rows as it takes them, and the outcomes of its training rows.

    With delayed entry, the risk sets are known, but not which row entered when. Entries and times
    are paired in their order, which gives the same risk sets.
    """
    tree, X = _final(estimator, X)
    if callable(getattr(tree, "_check_fitted", None)):
        tree._check_fitted()
    if not _is_survival_tree(tree):
        raise TypeError(
            f"{what} needs a fitted survival tree of bristlecone, which stores the follow-up of "
            f"its training rows; got a {type(tree).__name__}"
        )
    follow_up = tree.leaves_.follow_up
    rows = [leaf.rows() for leaf in follow_up]
    event, time = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    order = np.argsort(time, kind="stable")
    late = [leaf.entry_times for leaf in follow_up if leaf.entry_times is not None]
    entry = np.sort(np.concatenate(late)) if late else None
    return tree, X, Survival(event[order], time[order], entry)


def _end_of_weights(train: Survival) -> float:
    """First time at which 1/G is not defined: G is 0, or every training row has left."""
    censoring = censoring_survival(train)
    zero = censoring.x[censoring.y <= 0]
    return float(zero[0] if zero.size else np.nextafter(censoring.x[-1], np.inf))


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
