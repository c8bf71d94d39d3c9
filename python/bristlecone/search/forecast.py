"""When a search is forecast to exceed its limits, and which smaller settings would not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from sklearn.base import clone

from bristlecone.encoder import BinaryEncoder
from bristlecone.search.progress import SearchCost

__all__ = ["affordable", "allowance", "smaller_setting"]

# Without limits, a search that is forecast to take more is called hopeless. The bytes are the
# engine's own limit.
_MOST_SECONDS, _MOST_BYTES = 600.0, 600 << 20

# Least numbers of rows and features that are suggested.
_FEWEST_ROWS, _FEWEST_FEATURES = 500, 10


def allowance(estimator: Any) -> tuple[float, int]:
    """Seconds and bytes a search may take before it is called hopeless."""
    seconds = _MOST_SECONDS if estimator.time_limit is None else estimator.time_limit
    return seconds, _MOST_BYTES if estimator.memory_limit is None else estimator.memory_limit


def affordable(estimator: Any, cost: SearchCost) -> bool:
    """Whether a search is not hopeless."""
    seconds, memory = allowance(estimator)
    return cost.seconds <= seconds and cost.memory <= memory


def smaller_setting(estimator: Any, problem: Any, cost: SearchCost) -> str | None:
    """Settings within the limits, of each kind the nearest, joined by "or".

    Parameters
    ----------
    estimator : estimator with ``forecast(problem, max_depth)`` and ``encoded(data)``
    problem : what ``encoded`` returns
    cost : SearchCost
        Forecast of the estimator as it is, not affordable.
    """
    kinds = (_less_depth, _fewer_features, _fewer_rows)
    found = [setting for kind in kinds for setting in kind(estimator, problem, cost)]
    return " or ".join(found) if found else None


def _less_depth(estimator: Any, problem: Any, cost: SearchCost) -> Iterator[str]:
    """The most depth, from two on."""
    suggestion = None
    for depth in range(2, cost.max_depth):
        smaller = estimator.forecast(problem, depth)
        if not affordable(estimator, smaller):
            break
        suggestion = f"max_depth={depth} ({smaller})"
    if suggestion is not None:
        yield suggestion


def _fewer_features(estimator: Any, problem: Any, cost: SearchCost) -> Iterator[str]:
    """Fewer features, as the forecast grows with their number; with depth 2 if too few remain."""
    encoder = BinaryEncoder() if isinstance(estimator.encoder, str) else clone(estimator.encoder)
    if not isinstance(encoder, BinaryEncoder):
        return
    fewer = clone(estimator).set_params(encoder=encoder)
    seconds, memory = allowance(estimator)
    for depth in dict.fromkeys((cost.max_depth, min(2, cost.max_depth))):
        fewer.set_params(max_depth=depth)
        whole = cost if depth == cost.max_depth else estimator.forecast(problem, depth)
        share = min(seconds / max(whole.seconds, 1e-9), memory / max(whole.memory, 1))
        count = int(cost.n_features * min(share, 1.0) ** (1 / max(depth, 1)))
        count = min(count, cost.n_features - 1)
        while count >= (_FEWEST_FEATURES if depth > 2 else 1):
            encoder.set_params(max_features=count)
            smaller = fewer.forecast(fewer.encoded(problem.data))
            if affordable(estimator, smaller):
                limits = "" if depth == cost.max_depth else f"max_depth={depth}, "
                yield f"{limits}encoder={encoder!r} ({smaller})"
                return
            count = min(count - 1, 3 * count // 4)


def _fewer_rows(estimator: Any, problem: Any, cost: SearchCost) -> Iterator[str]:
    """A sample of the rows, where it is their number that costs."""
    n_rows = problem.features.shape[0]
    seconds, memory = allowance(estimator)
    rest = cost.seconds - cost.row_seconds
    if not math.isfinite(rest) or rest >= seconds or cost.memory > memory:
        return
    share = (seconds - rest) / cost.row_seconds
    # Two digits, rounded down.
    digits = max(0, math.floor(math.log10(share * n_rows)) - 1) if share * n_rows >= 1 else 0
    rows = int(share * n_rows // 10**digits * 10**digits)
    if _FEWEST_ROWS <= rows < n_rows:
        yield f"a sample of {rows:,} rows"
