"""What ``scoring`` means: metrics by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sklearn.metrics import get_scorer

from bristlecone.exceptions import InvalidParameterError
from bristlecone.metrics._scorers import SCORERS
from bristlecone.tune._rows import GivenRows, accepted

__all__ = ["DEFAULT", "Metrics", "metrics_of", "score_of"]

Metric = Callable[..., float]
Metrics = dict[str, Metric | None]
"""Scorers by name; None is the method ``score``, of costs less the mean cost."""

DEFAULT = "score"


def metrics_of(scoring: Any) -> Metrics:
    """Scorers by name: of one, of a name, of several names, or of a mapping.

    Raises
    ------
    InvalidParameterError
        For anything else, and for unknown names.
    """
    if scoring is None:
        return {DEFAULT: None}
    if isinstance(scoring, str) or callable(scoring):
        return {_name(scoring): _metric(scoring)}
    if isinstance(scoring, Mapping):
        found: Metrics = {str(name): _metric(one) for name, one in scoring.items()}
    elif isinstance(scoring, (list, tuple)):
        found = {_name(one): _metric(one) for one in scoring}
    else:
        found = {}
    if not found:
        raise InvalidParameterError(
            "scoring must be None, the name of a metric, a callable, a list of these, or a mapping "
            f"from names to them; got {scoring!r}"
        )
    return found


def _name(scoring: Any) -> str:
    """Name of a metric in tables."""
    if scoring is None:
        return DEFAULT
    if isinstance(scoring, str):
        return scoring
    known = {id(scorer): name for name, scorer in SCORERS.items()}
    return known.get(id(scoring), getattr(scoring, "__name__", DEFAULT))


def _metric(scoring: Any) -> Metric | None:
    if scoring is None or (callable(scoring) and not isinstance(scoring, type)):
        return scoring
    if isinstance(scoring, str) and scoring in SCORERS:
        return SCORERS[scoring]
    try:
        scorer: Metric = get_scorer(scoring)
    except (ValueError, TypeError):
        raise InvalidParameterError(
            f"scoring {scoring!r} is no metric: neither one of {', '.join(SCORERS)} nor a scorer "
            "of scikit-learn"
        ) from None
    return scorer


def score_of(metric: Metric | None, estimator: Any, rows: GivenRows) -> float:
    """Score of a fitted estimator, greater is better.

    A metric is given what its signature names of the rows' weights, treatments and so on.
    """
    if metric is not None:
        return float(metric(estimator, rows.X, rows.y, **accepted(metric, rows.more)))
    # A search scores by a metric of its own.
    model = getattr(estimator, "best_estimator_", estimator)
    if hasattr(model, "mean_cost"):
        return -float(model.mean_cost(rows.X, rows.y, **accepted(model.mean_cost, rows.more)))
    return float(model.score(rows.X, rows.y, **accepted(model.score, rows.more)))
