"""When a forecast search is hopeless, and which smaller setting is not."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from bristlecone.encoder import BinaryEncoder
from bristlecone.search import SearchCost

__all__ = ["affordable", "allowance", "smaller_setting"]

# What a search may take before it is called hopeless, when no limit is set. The bytes are what the
# engine allows itself.
_MOST_SECONDS, _MOST_BYTES = 3600.0, 600 << 20


def allowance(estimator: Any) -> tuple[float, int]:
    """Seconds and bytes a search may take before it is called hopeless."""
    seconds = _MOST_SECONDS if estimator.time_limit is None else estimator.time_limit
    return seconds, _MOST_BYTES if estimator.memory_limit is None else estimator.memory_limit


def affordable(estimator: Any, cost: SearchCost) -> bool:
    """Whether a search is not hopeless."""
    seconds, memory = allowance(estimator)
    return cost.seconds <= seconds and cost.memory <= memory


def smaller_setting(estimator: Any, problem: Any, cost: SearchCost) -> str | None:
    """The most depth that can be afforded, or fewer features if not even depth 2 can.

    Parameters
    ----------
    estimator : estimator with ``_forecast(problem, max_depth)`` and ``_encoded(data)``
    problem : what ``_encoded`` returns
    cost : SearchCost
        Forecast of the estimator as it is, not affordable.
    """
    suggestion = None
    for depth in range(2, cost.max_depth):
        smaller = estimator._forecast(problem, depth)
        if not affordable(estimator, smaller):
            break
        suggestion = f"max_depth={depth} ({smaller})"
    if suggestion is not None:
        return suggestion
    automatic = isinstance(estimator.encoder, str)
    encoder = BinaryEncoder() if automatic else clone(estimator.encoder)
    if not isinstance(encoder, BinaryEncoder):
        return None
    fewer = clone(estimator).set_params(max_depth=min(2, cost.max_depth), encoder=encoder)
    count = cost.n_features // 2
    while count > 0:
        encoder.set_params(max_features=count)
        smaller = fewer._forecast(fewer._encoded(problem.data))
        if affordable(estimator, smaller):
            return f"max_depth={fewer.max_depth}, encoder={encoder!r} ({smaller})"
        count //= 2
    return None
