"""Base classes of the leaves of a fitted tree, which are one value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from bristlecone._data.outcomes import Survival
from bristlecone._data.texts import number, percent, plain_number
from bristlecone._leaves.follow_up import FollowUp, logrank_p_values
from bristlecone._leaves.shown import Curve, Fact, LeafShown, Shown, interval
from bristlecone._leaves.statistics import Baseline, LeafStatistics
from bristlecone._types import Floats, Integers
from bristlecone.curves import KaplanMeier

_T = TypeVar("_T")

Columns = list[tuple[str, NDArray[Any]]]
# Name, values by leaf, and the meaning of the columns of a matrix of values.
Output = tuple[str, NDArray[Any], tuple[str, ...]]


# Number of points with which a smooth curve is drawn.
_SMOOTH_TIMES = 513


def view(of: str, name: str, text: str, kind: type[_T]) -> _T:
    """Attribute of a fitted tree that is one of its leaves, certificate or encoder."""

    def get(tree: Any) -> Any:
        if not hasattr(tree, of):
            tree._check_fitted()
        value = getattr(getattr(tree, of), name)
        if isinstance(value, np.ndarray):
            # Predictions read the same array, so the user must not write to it.
            value = value.view()
            value.setflags(write=False)
        return value

    return cast(_T, property(get, doc=text))


class Leaves(ABC):
    """Leaves of a fitted tree, left to right: what is known and predicted for their rows.

    Nothing in it changes after the fit, and predictions depend on nothing else.
    """

    #: What a tree with such leaves is called.
    tree_kind = "Decision tree"
    #: What the ``score`` of such a tree is.
    score_name = "score"
    #: What can be compared with outcomes: "survival", "incidences", "shares", "means" or nothing.
    compared = ""
    #: Whether predictions are curves over time.
    has_curves = False
    #: Whether every leaf assigns one of a set of labels; ``order`` then contains their positions.
    has_labels = False

    @property
    @abstractmethod
    def order(self) -> NDArray[Any]:
        """Values that order the leaves in pictures, shape (n_leaves,)."""

    @abstractmethod
    def shown(self, confidence: float, time_label: str) -> Shown:
        """Description of every leaf for pictures and pages."""

    @abstractmethod
    def outputs(self, times: Mapping[str, float]) -> list[Output]:
        """Predictions of every leaf for exported programs, by name; survival at ``times``."""

    def heading(self, column: str, time_label: str) -> str:
        """Plain heading for a column of ``table``."""
        known = {
            "n_samples": "rows",
            "n_missing": "rows with missing values",
            "n_events": "events",
            "price": "price of the features",
        }
        return known.get(column, column.replace("_", " "))

    def locate(self, leaf: Integers, design: Any) -> Any:
        """The argument ``rows`` of the predictions, from the rows' leaf and features.

        Leaves that treat all their rows alike only need the position.
        """
        return leaf

    @abstractmethod
    def facts(self) -> list[dict[str, Any]]:
        """Facts about every leaf as plain JSON types."""

    @abstractmethod
    def text(self, facts: Mapping[str, Any]) -> str:
        """Short text for one entry of ``facts``."""

    def sentences(self, tree: Any, *, own_rows: bool) -> list[str]:
        """Text about the leaves of a tree for a methods section, one paragraph each.

        ``own_rows`` says that the splits were chosen on the rows of the leaves.
        """
        return []

    @abstractmethod
    def table(self, times: Sequence[float], confidence: float) -> Columns:
        """Columns of a table with one row per leaf.

        Survival leaves add their predictions at ``times``, with intervals of this confidence.
        """


class SurvivalLeaves(Leaves):
    """Leaves that predict survival; ``rows`` are what ``locate`` returns."""

    tree_kind, score_name, compared = "Survival tree", "concordance index", "survival"
    has_curves = True
    #: Whether predicted curves are step functions.
    has_steps = True
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
        """Rows of every leaf, by the times at which they left."""
        return tuple(leaf.follow_up for leaf in self.statistics)

    @property
    @abstractmethod
    def typical(self) -> Any:
        """One typical row per leaf, as an argument of the predictions."""

    @property
    def typical_risk(self) -> Floats:
        """Risk of the typical row of every leaf, shape (n_leaves,)."""
        return self.risk(self.typical)

    def typical_survival(self, times: Floats) -> Floats:
        """S of the typical row of every leaf at ``times``, shape (n_leaves, n_times)."""
        return self.survival(self.typical, times)

    @property
    def order(self) -> NDArray[Any]:
        return self.typical_risk

    def shown(self, confidence: float, time_label: str) -> Shown:
        end = float(self.unique_times[-1]) or 1.0
        times = self.unique_times if self.has_steps else np.linspace(0.0, end, _SMOOTH_TIMES)
        level, leaves, has_model = percent(confidence), [], False
        for leaf, survival in zip(self.statistics, self.typical_survival(times), strict=True):
            estimate, low, high = leaf.curve, *leaf.curve.median_interval(confidence)
            lower, upper = estimate.confidence_interval(confidence)
            is_reached = np.isfinite(estimate.median)
            median = number(estimate.median) if is_reached else "not reached"
            has_rows = leaf.n_samples > 0
            curve = Curve(
                times=times,
                survival=survival,
                is_step=self.has_steps,
                estimate=estimate if has_rows else None,
                lower=lower,
                upper=upper,
                follow_up=leaf.follow_up,
            )
            has_model = has_model or not curve.is_estimate
            headline = f"median {median}" if has_rows else "no rows"
            facts = (Fact("KM median", median, interval(low, high)),) if has_rows else ()
            leaves.append(LeafShown(headline, curve, facts, n_events=leaf.n_events))
        typical = "" if self.has_steps else " for a typical row"
        model = f" Dashed: survival that the tree predicts{typical}." if has_model else ""
        caption = (
            f"Survival (0 to 1) over {time_label}. Solid: Kaplan–Meier estimate (KM) of the rows "
            f"of the leaf with {level} confidence band; ticks: censored rows.{model}"
        )
        return Shown(tuple(leaves), (0.0, end), caption, has_model)

    def outputs(self, times: Mapping[str, float]) -> list[Output]:
        rows = np.arange(len(self.statistics))
        found: list[Output] = [("risk", self.risk(rows), ())]
        if times:
            survival = self.survival(rows, np.array(list(times.values())))
            found.append(("survival", survival, tuple(times)))
        return found

    def heading(self, column: str, time_label: str) -> str:
        start, _, time = column.rpartition("_")
        if start in ("survival", "kaplan_meier"):
            what = "predicted survival" if start == "survival" else "Kaplan–Meier survival"
            return f"{what} at {number(float(time))}"
        known = {
            "theta": "relative hazard θ",
            "hazard_ratio": "hazard ratio to all rows",
            "logrank_p": "log-rank p",
            "median": "median" if time_label == "time" else f"median ({time_label})",
            "model_median": "predicted median",
            "rmst": f"mean survival time up to {number(self.common_follow_up)}",
        }
        return known.get(column) or super().heading(column, time_label)

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
        """First times at which a share ``levels`` has had the event, shape (n, n_levels)."""

    @abstractmethod
    def rmst(self, rows: Any, tau: float) -> Floats:
        """∫ S from 0 to ``tau`` of every row, shape (n,)."""

    @abstractmethod
    def log_likelihood(self, rows: Any, outcomes: Survival) -> Floats:
        """Log-likelihood of the outcome of every row under its curve, shape (n,)."""

    @abstractmethod
    def ranks(self, rows: Any) -> NDArray[Any]:
        """Numbers in the order of the risk, more than the tolerance of concordance apart."""

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
        # Nothing is known of leaves without rows, as a soft tree may have.
        has_rows = np.array([leaf.n_samples > 0 for leaf in self.statistics])
        medians = np.array([(curve.median, *curve.median_interval(confidence)) for curve in curves])
        medians[~has_rows] = np.nan
        columns: Columns = [
            ("n_events", np.array([leaf.n_events for leaf in self.statistics])),
            *self.own_columns(),
            ("risk", self.typical_risk),
            ("median", medians[:, 0]),
            *limit_columns("median", medians[:, 1:]),
            ("model_median", self.quantiles(self.typical, np.array([0.5]))[:, 0]),
        ]
        at = np.asarray(times, dtype=np.float64)
        ends = [leaf.times.max(initial=-np.inf) for leaf in self.follow_up]
        observed = np.stack(
            [_at_times(curve, at, confidence, end) for curve, end in zip(curves, ends, strict=True)]
        )
        predicted = self.typical_survival(at).T
        for k, (time, survival) in enumerate(zip(times, predicted, strict=True)):
            name = f"kaplan_meier_{time:.15g}"
            columns += [
                (f"survival_{time:.15g}", survival),
                (name, observed[:, 0, k]),
                *limit_columns(name, observed[:, 1:, k]),
            ]
        tau = self.common_follow_up
        means = np.array([curve.restricted_mean(tau) for curve in curves])
        return [
            *columns,
            ("tau", np.full(len(curves), tau)),
            ("rmst", np.where(has_rows, means[:, 0], np.nan)),
            ("rmst_error", np.where(means[:, 1] > 0, means[:, 1], np.nan)),
            *hazard_ratios("hazard_ratio", self.statistics, confidence),
            ("logrank_p", logrank_p_values(self.follow_up)),
        ]

    @property
    def common_follow_up(self) -> float:
        """Latest time until which every non-empty leaf was observed."""
        return float(min(f.times[-1] for f in self.follow_up if f.times.size))

    def own_columns(self) -> Columns:
        """Columns of the table that only this kind of leaf has."""
        return []


def _or_none(time: float) -> float | None:
    """A time, or None if it is not reached or unknown."""
    return time if np.isfinite(time) else None


def limit_columns(name: str, intervals: Floats) -> Columns:
    """Columns of intervals, shape (n_leaves, 2)."""
    return [(f"{name}_lower", intervals[:, 0]), (f"{name}_upper", intervals[:, 1])]


def _at_times(curve: KaplanMeier, times: Floats, confidence: float, end: float) -> Floats:
    """S and its limits, shape (3, n_times); NaN after the ``end`` of the follow-up if S > 0."""
    limits = np.where(curve.y < 1, curve.confidence_interval(confidence), np.nan)
    # Before the first event, the variance of S is unknown.
    first = np.array([[1.0], [np.nan], [np.nan]])
    values = np.hstack([first, np.vstack([curve.y, limits])])
    found = values[:, np.searchsorted(curve.x, times, side="right")]
    found[:, (times > end) & (found[0] > 0)] = np.nan
    return found


def hazard_ratios(name: str, leaves: Sequence[LeafStatistics], confidence: float) -> Columns:
    """Columns of the hazard ratios of leaves to all rows, with limits."""
    ratios = np.array([_hazard_ratio(leaf, confidence) for leaf in leaves])
    return [(name, ratios[:, 0]), *limit_columns(name, ratios[:, 1:])]


def _hazard_ratio(leaf: LeafStatistics, confidence: float) -> tuple[float, float, float]:
    """Events divided by those expected at the hazard of all rows, with limits."""
    if leaf.hazard == 0:
        return np.nan, np.nan, np.nan
    ratio, d = leaf.events / leaf.hazard, leaf.n_events
    lower, upper = garwood_limits(d, confidence)
    # With weights, an event counts as the mean weight of the events.
    unit = (leaf.events / d if d else leaf.weight / leaf.n_samples) / leaf.hazard
    return ratio, float(lower * unit), float(upper * unit)


def garwood_limits(count: Any, confidence: float) -> tuple[Any, Any]:
    """Confidence limits of the means of Poisson counts, of the shape of these counts.

    Garwood, "Fiducial limits for the Poisson distribution", Biometrika 28 (1936).
    """
    tail = (1 - confidence) / 2
    lower = np.where(count > 0, chdtri(2 * count, 1 - tail) / 2, 0.0)
    return lower, chdtri(2 * count + 2, tail) / 2


def time_text(time: float | None) -> str:
    """A time of ``facts``, which may not be reached."""
    return "not reached" if time is None else plain_number(time, 6)


def median_text(facts: Mapping[str, Any]) -> str:
    """Kaplan–Meier median with its interval, unless it has no limit: "1036 (679 to 1388)"."""
    median = time_text(facts["median"])
    limits = [
        "-" if limit is None else plain_number(limit, 6) for limit in facts["median_interval"]
    ]
    return median if limits == ["-", "-"] else f"{median} ({limits[0]} to {limits[1]})"
