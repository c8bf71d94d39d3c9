"""Warns if a search is forecast to exceed its limits, and suggests smaller settings."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from sklearn.base import clone

from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._fit.encode import encode
from bristlecone._fit.search import Limits, Search
from bristlecone._log import warn
from bristlecone._search.engine import Problem
from bristlecone._search.progress import SearchCost, readable_bytes, readable_seconds
from bristlecone.exceptions import SearchCostWarning

# Without limits, a search with a longer forecast is called hopeless. The bytes are the engine's own
# limit.
_MOST_SECONDS, _MOST_BYTES = 600.0, 600 << 20

# Seconds after which a forecast is made for a search that reports no outlook. With a leaf penalty,
# which may prune most of the search, an outlook only counts after this share of the limit, or these
# seconds.
_PATIENCE, _PRICED, _MOST_PATIENCE = 0.2, 0.1, 5.0

# Smallest numbers of rows and features that are suggested.
_FEWEST_ROWS, _FEWEST_FEATURES = 500, 10

# Largest share of the features that is suggested.
_CLEARLY_FEWER = 0.9

# Most encodings that are tried at one depth, and the total time that they may take: seconds, or
# this share of the time of the search.
_TRIES, _SECONDS_OF_TRIES, _SHARE_OF_TRIES = 8, 1.0, 0.25

# Share of the time limit, and seconds, by which suggestions may exceed it.
_OVERRUN_SHARE, _OVERRUN = 0.05, 0.1

# If preparing the data took more than this share of the time that is allowed, fewer columns help.
_SHARE_OF_PREPARATION = 0.5


class CostWarner:
    """Callback of a search, with one warning as soon as it is forecast to exceed its limits.

    With ``time_limit=0``, which means only a first tree, there is no warning.

    Parameters
    ----------
    search, problem
        What is searched for.
    callback : callable or None
        Called with the same arguments.
    """

    def __init__(
        self, search: Search, problem: Problem, callback: Callable[..., object] | None
    ) -> None:
        self._search, self._problem, self._callback = search, problem, callback
        limit = search.limits.time_limit
        self._open = limit is None or limit > 0
        self._until = math.inf
        if limit is not None:
            began = time.perf_counter() - problem.seconds
            self._until = began + (1.0 + _OVERRUN_SHARE) * limit + _OVERRUN

    def __call__(
        self, at: float, value: float, bound: float, nodes: int, *outlook: float | None
    ) -> None:
        """Pass on the report of the engine, and warn."""
        left = outlook[1]
        seconds, _ = _allowance(self._search.limits)
        if self._search.limits.leaf_penalty > 0:
            patience = max(_PATIENCE, min(_PRICED * seconds, _MOST_PATIENCE))
        else:
            patience = _PATIENCE if left is None else 0.0
        hopeless = left is None or self._problem.seconds + at + left > seconds
        doubtful = hopeless and at >= patience
        if self._open and doubtful:
            self._look()
        if self._callback is not None:
            self._callback(at, value, bound, nodes, *outlook)

    def end(self, status: str) -> None:
        """Called at the end of the search, which the clock may have stopped before any report."""
        if self._open and status == "time_limit":
            self._look()

    def _look(self) -> None:
        self._open = False
        cost = forecast(self._search, self._problem)
        # With less memory a search is slower, but may still end.
        if cost.seconds > _allowance(self._search.limits)[0]:
            _warn_of_cost(self._search, self._problem, cost, self._until)


def forecast(search: Search, problem: Problem, max_depth: int | None = None) -> SearchCost:
    """Forecast of a search that prunes nothing, optionally of less depth."""
    limits = search.limits
    depth = limits.depth(problem.features.shape) if max_depth is None else max_depth
    counts = search.engine(problem).forecast(**limits.settings(problem, max_depth=depth))
    # Infinite counts would give NaN.
    seconds, rows = (
        math.inf if math.isnan(value) else value
        for value in (counts["seconds"], counts["row_seconds"])
    )
    return SearchCost(
        seconds=seconds + problem.seconds,
        row_seconds=rows + problem.seconds,
        memory=int(counts["bytes"]),
        n_features=int(counts["n_active_features"]),
        n_distinct_rows=int(counts["n_distinct_rows"]),
        max_depth=depth,
    )


def estimate(search: Search, problem: Problem) -> SearchCost:
    """The forecast; if it exceeds the limits, warn and suggest smaller settings."""
    cost = forecast(search, problem)
    if _affordable(search.limits, cost):
        return cost
    return replace(cost, suggestion=_warn_of_cost(search, problem, cost))


def _warn_of_cost(
    search: Search, problem: Problem, cost: SearchCost, until: float = math.inf
) -> str | None:
    """Warn of a hopeless search and return the suggested settings.

    ``cost`` is its forecast, and ``until`` the reading of ``time.perf_counter`` at which to stop
    looking. Of each kind of setting the nearest is suggested, joined by "or".
    """
    kinds = (_less_depth, _fewer_features, _fewer_rows)
    found = [setting for kind in kinds for setting in kind(search, problem, cost, until)]
    suggestion = " or ".join(found) if found else None
    seconds, memory = _allowance(search.limits)
    if search.limits.time_limit is None:
        limit = (
            f" (the warning threshold is {readable_seconds(seconds)} and {readable_bytes(memory)})"
        )
    else:
        limit = f", but only {readable_seconds(seconds)} and {readable_bytes(memory)} are allowed"
    advice = f"; to make it smaller, use {suggestion}" if suggestion else ""
    if not suggestion and problem.seconds > _SHARE_OF_PREPARATION * seconds:
        taken = readable_seconds(problem.seconds)
        advice = f"; the data took {taken} to prepare, less with fewer columns"
    warn(f"the search is forecast to take {cost}{limit}{advice}", SearchCostWarning)
    return suggestion


def _allowance(limits: Limits) -> tuple[float, int]:
    """Seconds and bytes that a search may take before it is called hopeless."""
    seconds = _MOST_SECONDS if limits.time_limit is None else limits.time_limit
    return seconds, _MOST_BYTES if limits.memory_limit is None else limits.memory_limit


def _affordable(limits: Limits, cost: SearchCost) -> bool:
    """Whether a search is not hopeless."""
    seconds, memory = _allowance(limits)
    return cost.seconds <= seconds and cost.memory <= memory


def _less_depth(search: Search, problem: Problem, cost: SearchCost, until: float) -> Iterator[str]:
    """The largest depth, from two on."""
    suggestion = None
    for depth in range(2, cost.max_depth):
        if time.perf_counter() > until:
            break
        smaller = forecast(search, problem, depth)
        if not _affordable(search.limits, smaller):
            break
        suggestion = f"max_depth={depth} ({smaller})"
    if suggestion is not None:
        yield suggestion


def _fewer_features(
    search: Search, problem: Problem, cost: SearchCost, until: float
) -> Iterator[str]:
    """Fewer features, because the forecast grows with their number; depth 2 if too few remain.

    Nothing if depth 2 is enough by itself.

    A number that changes almost nothing is not suggested, because the forecast is too rough. In
    place of every threshold, quantiles are suggested.
    """
    encoder = BinaryEncoder() if isinstance(search.encoder, str) else clone(search.encoder)
    if not isinstance(encoder, BinaryEncoder):
        return
    seconds, memory = _allowance(search.limits)
    if encoder.thresholds == "all":
        search = replace(search, encoder=encoder.set_params(thresholds="quantiles"))
        problem = encode(search, problem.data)
        cost = forecast(search, problem)
        if _affordable(search.limits, cost):
            yield f"encoder={encoder!r} ({cost})"
            return
    began, took = time.perf_counter(), problem.seconds
    last = began + max(_SECONDS_OF_TRIES, _SHARE_OF_TRIES * seconds)
    if began + took > until:
        return
    for depth in dict.fromkeys((cost.max_depth, min(2, cost.max_depth))):
        limits = replace(search.limits, max_depth=depth)
        fewer = replace(search, encoder=encoder, limits=limits)
        whole = cost if depth == cost.max_depth else forecast(search, problem, depth)
        if depth < cost.max_depth and _affordable(limits, whole):
            return
        count, tried = cost.n_features, whole
        for _ in range(_TRIES):
            # Each try takes an encoding, so the next one extrapolates from the last.
            share = min(seconds / max(tried.seconds, 1e-9), memory / max(tried.memory, 1))
            count = int(count * min(share ** (1 / max(depth, 1)), 0.95))
            too_few = count < (_FEWEST_FEATURES if depth > 2 else 1)
            began = time.perf_counter()
            if too_few or began > last or began + took > until:
                break
            count = min(count, int(_CLEARLY_FEWER * cost.n_features))
            encoder.set_params(max_features=count)
            tried = forecast(fewer, encode(fewer, problem.data))
            took = time.perf_counter() - began
            if _affordable(limits, tried):
                less = "" if depth == cost.max_depth else f"max_depth={depth}, "
                yield f"{less}encoder={encoder!r} ({tried})"
                return


def _fewer_rows(search: Search, problem: Problem, cost: SearchCost, until: float) -> Iterator[str]:
    """A sample of the rows, if their number causes the cost."""
    n_rows = problem.features.shape[0]
    seconds, memory = _allowance(search.limits)
    rest = cost.seconds - cost.row_seconds
    if not math.isfinite(rest) or rest >= seconds or cost.memory > memory:
        return
    share = (seconds - rest) / cost.row_seconds
    # Two digits, rounded down.
    digits = max(0, math.floor(math.log10(share * n_rows)) - 1) if share * n_rows >= 1 else 0
    rows = int(share * n_rows // 10**digits * 10**digits)
    if _FEWEST_ROWS <= rows < n_rows:
        yield f"a sample of {rows:,} rows"
