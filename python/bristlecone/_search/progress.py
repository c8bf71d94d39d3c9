"""Forecast and progress of a search."""

from __future__ import annotations

import math
from dataclasses import dataclass

_YEAR = 365.25 * 86400


def relative_gap(objective: float, lower_bound: float) -> float:
    """``objective - lower_bound`` as a share of ``|objective|``; inf of an objective of 0."""
    gap = objective - lower_bound
    if gap == 0:
        return 0.0
    if math.isinf(gap):
        return math.inf
    return gap / abs(objective) if objective else math.inf


@dataclass(frozen=True)
class SearchProgress:
    """Progress of a search.

    Parameters
    ----------
    seconds : float
        Time since the start of the search.
    objective : float
        Objective of the best tree so far; infinite while models are fitted, before the search.
    lower_bound : float
        No tree over the binary features is below this; -inf while models are fitted.
    n_nodes_explored : int
        Number of nodes visited so far.
    share : float or None
        Share of the search that is done, by the forecast; None without one.
    seconds_left : float or None
        Forecast of the remaining time, if nothing more can be pruned.

    See Also
    --------
    SearchCost : Forecast of a search before it starts.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> seen = []
    >>> tree = OptimalTreeRegressor().fit([[1.0], [2.0]], [1.0, 3.0], callback=seen.append)
    >>> seen[-1].objective, seen[-1].gap
    (0.0, 0.0)
    """

    seconds: float
    objective: float
    lower_bound: float
    n_nodes_explored: int
    share: float | None = None
    seconds_left: float | None = None

    @property
    def gap(self) -> float:
        """Distance of the objective from the lower bound."""
        return self.objective - self.lower_bound

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the objective."""
        return relative_gap(self.objective, self.lower_bound)


@dataclass(frozen=True)
class SearchCost:
    """Forecast of the time and memory of a complete search that prunes nothing.

    Parameters
    ----------
    seconds : float
        Time on this machine, including reading and encoding the rows. It is usually accurate to a
        factor of three if little can be pruned.
    memory : int
        Memory that the tables of the search need, in bytes. The search also remembers results in
        the rest of ``memory_limit``.
    n_features : int
        Number of binary features, without those that equal another one or its complement.
    n_distinct_rows : int
        Number of training rows that differ in the binary features.
    max_depth : int
        Largest depth that the parameters, the features and the rows allow.
    row_seconds : float
        The part of ``seconds`` that is proportional to the number of rows.
    suggestion : str or None
        Parameters with which the search would stay within its limits. None if it does already, or
        if no smaller setting was found.

    See Also
    --------
    SearchProgress : Progress of a search while it runs.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> cost = OptimalTreeRegressor(max_depth=3).estimate_cost([[1.0], [2.0]], [1.0, 3.0])
    >>> cost.n_features, cost.n_distinct_rows, cost.max_depth
    (1, 2, 1)
    """

    seconds: float
    memory: int
    n_features: int
    n_distinct_rows: int
    max_depth: int
    row_seconds: float = 0.0
    suggestion: str | None = None

    def __str__(self) -> str:
        return f"{readable_seconds(self.seconds)}, {readable_bytes(self.memory)}"


def readable_seconds(seconds: float) -> str:
    """A span of time in the unit that suits it, to two digits: "0.52 s", "16 min"."""
    if seconds > 1000 * _YEAR:
        return "more than 1000 years"
    units = ((_YEAR, "years"), (86400, "days"), (3600, "h"), (60, "min"))
    size, unit = next(((size, unit) for size, unit in units if seconds >= 2 * size), (1, "s"))
    return f"{_two_digits(seconds / size)} {unit}"


def readable_bytes(count: float) -> str:
    """A number of bytes in the unit that suits it, to two digits: "71 MB"."""
    units = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))
    size, unit = next(((size, unit) for size, unit in units if count >= size), (1, "bytes"))
    return f"{_two_digits(count / size)} {unit}"


def _two_digits(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
