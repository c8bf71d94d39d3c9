"""Base classes of the leaves of a fitted tree, which are one value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri
from sklearn.utils.validation import check_is_fitted

from bristlecone._data.outcomes import Survival
from bristlecone._leaves.follow_up import FollowUp, logrank_p_values
from bristlecone._leaves.statistics import Baseline, LeafStatistics
from bristlecone.curves import KaplanMeier

__all__ = [
    "Leaves",
    "SurvivalLeaves",
    "median_text",
    "median_texts",
    "model_median_text",
    "view",
]

Floats = NDArray[np.float64]
Columns = list[tuple[str, NDArray[Any]]]


def view(of: str, name: str, text: str) -> Any:
    """Attribute of a fitted tree that stands for one of its ``leaves_`` or ``certificate_``."""

    def get(tree: Any) -> Any:
        if not hasattr(tree, of):
            check_is_fitted(tree)
        return getattr(getattr(tree, of), name)

    return property(get, doc=text)


class Leaves(ABC):
    """Leaves of a fitted tree, left to right: all that is known and predicted of their rows.

    A value: nothing in it changes after the fit, and no prediction depends on anything else.
    """

    def locate(self, leaf: NDArray[np.int64], design: NDArray[Any]) -> Any:
        """Argument ``rows`` of the predictions, from the rows' leaf and features.

        Leaves that treat all their rows alike need the position only.
        """
        return leaf

    @abstractmethod
    def facts(self) -> list[dict[str, Any]]:
        """What to tell of every leaf, as plain JSON types."""

    @abstractmethod
    def text(self, facts: Mapping[str, Any]) -> str:
        """One entry of ``facts`` in a few words."""

    @abstractmethod
    def table(self, times: Sequence[float], confidence: float) -> Columns:
        """Columns of a table with one row per leaf.

        Survival leaves add what they predict at ``times``, with intervals of this confidence.
        """


class SurvivalLeaves(Leaves):
    """Leaves that predict survival; ``rows`` are what ``locate`` returns."""

    # Training rows of the leaves, left to right, and the hazard of all of them.
    statistics: tuple[LeafStatistics, ...]
    baseline: Baseline

    @property
    def unique_times(self) -> Floats:
        """Distinct training times, ascending."""
        return self.baseline.unique_times

    @property
    def event_times(self) -> Floats:
        """Distinct training times at which an event happened, ascending."""
        return self.baseline.event_times

    @property
    def kaplan_meier(self) -> tuple[KaplanMeier, ...]:
        """Kaplan–Meier estimate of the rows of every leaf."""
        return tuple(leaf.curve for leaf in self.statistics)

    @property
    def follow_up(self) -> tuple[FollowUp, ...]:
        """Rows of every leaf by the times at which they left."""
        return tuple(leaf.follow_up for leaf in self.statistics)

    @property
    @abstractmethod
    def typical(self) -> Any:
        """One row per leaf that is typical of it, as an argument of the predictions."""

    @property
    def typical_risk(self) -> Floats:
        """Risk of the typical row of every leaf, shape (n_leaves,)."""
        return self.risk(self.typical)

    def typical_survival(self, times: Floats) -> Floats:
        """S of the typical row of every leaf at ``times``, shape (n_leaves, n_times)."""
        return self.survival(self.typical, times)

    @abstractmethod
    def risk(self, rows: Any) -> Floats:
        """Risk score of every row, shape (n,); higher means an earlier event."""

    @abstractmethod
    def survival(self, rows: Any, times: Floats) -> Floats:
        """S of every row at ``times``, shape (n, n_times)."""

    @abstractmethod
    def cumulative_hazard(self, rows: Any, times: Floats) -> Floats:
        """H of every row at ``times``, shape (n, n_times)."""

    @abstractmethod
    def functions(self, rows: Any, *, survival: bool) -> NDArray[np.object_]:
        """S, or H, of every row as a function of time, shape (n,)."""

    @abstractmethod
    def quantiles(self, rows: Any, levels: Floats) -> Floats:
        """First times by which shares ``levels`` have had the event, shape (n, n_levels)."""

    @abstractmethod
    def rmst(self, rows: Any, tau: float) -> Floats:
        """∫ S from 0 to ``tau`` of every row, shape (n,)."""

    @abstractmethod
    def log_likelihood(self, rows: Any, outcomes: Survival) -> Floats:
        """Log-likelihood of the outcome of every row under its curve, shape (n,)."""

    @abstractmethod
    def ranks(self, rows: Any) -> NDArray[Any]:
        """Numbers in the order of the risk, further apart than the tolerance of concordance."""

    def facts(self) -> list[dict[str, Any]]:
        medians = self.quantiles(self.typical, np.array([0.5]))[:, 0]
        return [
            {
                "n_events": leaf.n_events,
                "event_weight": leaf.events,
                "median": _or_none(leaf.curve.median),
                "median_interval": [_or_none(limit) for limit in leaf.curve.median_interval()],
                "model_median": _or_none(median),
            }
            for leaf, median in zip(self.statistics, medians.tolist(), strict=True)
        ]

    def table(self, times: Sequence[float], confidence: float) -> Columns:
        curves = self.kaplan_meier
        columns: Columns = [
            ("n_events", np.array([leaf.n_events for leaf in self.statistics])),
            *self.own_columns(),
            ("risk", self.typical_risk),
            ("median", np.array([curve.median for curve in curves])),
            *_limits("median", [curve.median_interval(confidence) for curve in curves]),
            ("model_median", self.quantiles(self.typical, np.array([0.5]))[:, 0]),
        ]
        at = np.asarray(times, dtype=np.float64)
        observed = [_at_times(curve, at, confidence) for curve in curves]
        predicted = self.typical_survival(at).T
        for k, (time, survival) in enumerate(zip(times, predicted, strict=True)):
            name = f"kaplan_meier_{time:.15g}"
            columns += [
                (f"survival_{time:.15g}", survival),
                (name, np.array([values[0, k] for values in observed])),
                *_limits(name, [values[1:, k] for values in observed]),
            ]
        tau = self.common_follow_up
        means = np.array([curve.restricted_mean(tau) for curve in curves])
        ratios = [_hazard_ratio(leaf, confidence) for leaf in self.statistics]
        return [
            *columns,
            ("tau", np.full(len(curves), tau)),
            ("rmst", means[:, 0]),
            ("rmst_error", means[:, 1]),
            ("hazard_ratio", np.array([ratio for ratio, *_ in ratios])),
            *_limits("hazard_ratio", [limits for _, *limits in ratios]),
            ("logrank_p", logrank_p_values(self.follow_up)),
        ]

    @property
    def common_follow_up(self) -> float:
        """Latest time up to which every leaf that has rows was observed."""
        return float(min(f.times[-1] for f in self.follow_up if f.times.size))

    def own_columns(self) -> Columns:
        """Columns of the table that only leaves of this kind have."""
        return []


def _or_none(time: float) -> float | None:
    """A time, or None where it is not reached or not known."""
    return time if np.isfinite(time) else None


def _limits(name: str, intervals: Sequence[Any]) -> Columns:
    limits = np.array(intervals, dtype=np.float64).reshape(len(intervals), 2)
    return [(f"{name}_lower", limits[:, 0]), (f"{name}_upper", limits[:, 1])]


def _at_times(curve: KaplanMeier, times: Floats, confidence: float) -> Floats:
    """S and its limits, shape (3, n_times)."""
    values = np.stack([curve.y, *curve.confidence_interval(confidence)])
    ones = np.ones((3, 1))
    return np.hstack([ones, values])[:, np.searchsorted(curve.x, times, side="right")]


def _hazard_ratio(leaf: LeafStatistics, confidence: float) -> tuple[float, float, float]:
    """Events over those expected at the hazard of all rows, with limits.

    Garwood's limits of a Poisson mean, "Fiducial limits for the Poisson distribution", Biometrika
    28 (1936), for the number of events.
    """
    if leaf.hazard == 0:
        return np.nan, np.nan, np.nan
    ratio, d, tail = leaf.events / leaf.hazard, leaf.n_events, (1 - confidence) / 2
    lower = chdtri(2 * d, 1 - tail) / 2 if d else 0.0
    upper = chdtri(2 * d + 2, tail) / 2
    # With weights an event counts the mean weight of those that happened.
    unit = (leaf.events / d if d else leaf.weight / leaf.n_samples) / leaf.hazard
    return ratio, float(lower * unit), float(upper * unit)


def median_texts(facts: Mapping[str, Any]) -> list[str]:
    """Kaplan–Meier median, and its confidence interval unless neither limit is reached."""
    median = "not reached" if facts["median"] is None else f"{facts['median']:g}"
    limits = ["-" if limit is None else f"{limit:g}" for limit in facts["median_interval"]]
    return [median] if limits == ["-", "-"] else [median, f"{limits[0]} to {limits[1]}"]


def median_text(facts: Mapping[str, Any]) -> str:
    """Both in one: "1036 (679 to 1388)"."""
    median, *interval = median_texts(facts)
    return f"{median} ({interval[0]})" if interval else median


def model_median_text(facts: Mapping[str, Any]) -> str:
    """Median of the curve that the tree predicts."""
    return "not reached" if facts["model_median"] is None else f"{facts['model_median']:g}"
