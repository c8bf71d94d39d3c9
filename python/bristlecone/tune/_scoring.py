"""Metrics of the parameter ``scoring``, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.metrics import get_scorer

from bristlecone._data.arrays import type_name
from bristlecone._foreign import takes_columns
from bristlecone.exceptions import InvalidParameterError
from bristlecone.metrics._scorers import SCORERS
from bristlecone.tune._rows import GivenRows, accepted

Metric = Callable[..., float]
Metrics = dict[str, Metric | None]
"""Scorers by name; None is the method ``score`` or, for costs, minus the mean cost."""

DEFAULT = "score"


@dataclass(frozen=True)
class _OfSklearn:
    """A scorer of scikit-learn, whose errors name the metric and the estimator."""

    name: str
    scorer: Metric

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        try:
            return self.scorer(estimator, X, y, sample_weight=sample_weight)
        except (AttributeError, TypeError, ValueError) as error:
            raise InvalidParameterError(
                f"scoring={self.name!r} cannot score {type_name(estimator)} on these rows: {error}"
            ) from error


def metrics_of(scoring: Any) -> Metrics:
    """Scorers by name, from a scorer, a name, a list of these or a mapping.

    Raises
    ------
    InvalidParameterError
        For any other value, for unknown names, and if two metrics have the same name.
    """
    if scoring is None:
        return {DEFAULT: None}
    if isinstance(scoring, str) or callable(scoring):
        return {_name(scoring): _metric(scoring)}
    named: list[tuple[str, Any]] = []
    if isinstance(scoring, Mapping):
        named = [(str(name), one) for name, one in scoring.items()]
    elif isinstance(scoring, (list, tuple)):
        named = [(_name(one), one) for one in scoring]
    found: Metrics = {name: _metric(one) for name, one in named}
    if len(found) < len(named):
        names = [name for name, _ in named]
        raise InvalidParameterError(
            f"scoring has several metrics of the same name: {names}; pass a mapping from names"
        )
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
        return _OfSklearn(scoring, get_scorer(scoring))
    except (ValueError, TypeError):
        raise InvalidParameterError(
            f"scoring {scoring!r} is not a metric; pass one of {', '.join(SCORERS)} or the name "
            "of a scorer of scikit-learn"
        ) from None


def check_scored(estimator: Any, metrics: Metrics) -> None:
    """Raise InvalidParameterError if the metric is ``score`` and the estimator has none."""
    if None not in metrics.values() or takes_columns(estimator):
        return
    try:
        estimator.score  # noqa: B018
    except AttributeError as error:
        why = error.__cause__ or error
        raise InvalidParameterError(
            f"scoring=None needs an estimator with the method score ({why}); pass scoring"
        ) from error


def score_of(
    metric: Metric | None, estimator: Any, rows: GivenRows, survival_train: Any = None
) -> float:
    """Score of a fitted estimator, greater is better.

    The weights, treatments and so on of the rows, and the outcomes of the training rows, are passed
    if the signature of the metric has them.
    """
    if metric is None and takes_columns(estimator):
        # The own score of such a model takes the outcomes as columns.
        metric = SCORERS["concordance"]
    if metric is not None:
        # A scorer of scikit-learn takes weights even if the function that it calls does not.
        function = getattr(getattr(metric, "scorer", metric), "_score_func", metric)
        more = accepted(metric, {**rows.more, "survival_train": survival_train})
        more = accepted(function, more)
        score = metric(estimator, rows.X, rows.y, **more)
        try:
            return float(score)
        except (TypeError, ValueError):
            raise TypeError(
                f"scoring: a metric must return a number; got {type_name(score)}"
            ) from None
    # A search has its own metric.
    model = getattr(estimator, "best_estimator_", estimator)
    return float(model.score(rows.X, rows.y, **accepted(model.score, rows.more)))
