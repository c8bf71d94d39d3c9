"""Survival curves with fewer steps that are as close as possible to the full curves.

A curve is divided into pieces with one value each. For a given largest error ε, every piece extends
as far as some value is within ε of all values in the piece. No other division has fewer pieces, so
bisection over ε finds the smallest error for a given number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from bristlecone._leaves.causes import IncidenceLeaves
from bristlecone._leaves.shrinkage import LeafCurves, hazards_of
from bristlecone._leaves.smooth import SmoothLeaves
from bristlecone._leaves.statistics import Baseline, LeafStatistics
from bristlecone._leaves.survival import StepLeaves
from bristlecone._types import Floats, Integers
from bristlecone.curves import StepFunction

Kind = TypeVar("Kind")
# For an error, the first position after the piece that begins at a position (-1: before all steps).
Reach = Callable[[int, float], int]

_BISECTIONS = 40
# Most cells of a table of curves that are compared at once.
_CELLS = 1 << 22


def thinned(leaves: Kind, points: int) -> tuple[Kind, float]:
    """Leaves with at most ``points`` steps per curve, and the largest error in a survival.

    With competing risks it is also the largest error of an incidence. Leaves without curves, or
    with few steps, are returned unchanged. Rows that left between two kept times are counted at the
    earlier one. Smooth leaves keep exactly the times over which their risk is summed.
    """
    if isinstance(leaves, StepLeaves):
        return _thinned_steps(leaves, points)  # type: ignore[return-value]
    if isinstance(leaves, SmoothLeaves):
        return _thinned_smooth(leaves, points), 0.0  # type: ignore[return-value]
    if isinstance(leaves, IncidenceLeaves):
        return _thinned_causes(leaves, points)  # type: ignore[return-value]
    return leaves, 0.0


def _thinned_smooth(leaves: SmoothLeaves, points: int) -> SmoothLeaves:
    """Smooth leaves, whose predicted curves are formulas; the statistics get fewer steps.

    The event times of the result must be those over which the risk is summed, otherwise the risk
    would change.
    """
    times = leaves.risk_times
    is_short = all(leaf.event_times.size <= points for leaf in leaves.statistics)
    if is_short or times.size == leaves.event_times.size:
        return leaves
    statistics = [_at_times(leaf, times) for leaf in leaves.statistics]
    every = np.union1d(times, leaves.baseline.unique_times[[0, -1]])
    place = np.searchsorted(leaves.baseline.unique_times, every)
    baseline = Baseline(every, times, leaves.baseline.cumulative_hazard[place])
    return replace(leaves, statistics=_counted(statistics, baseline), baseline=baseline)


def _at_times(leaf: LeafStatistics, times: Floats) -> LeafStatistics:
    """Statistics with steps at these times only; no event is later than the last of them."""
    if not leaf.event_times.size:
        return leaf
    place = np.searchsorted(leaf.event_times, times, side="right") - 1
    hazard = hazards_of(np.where(place < 0, 1.0, leaf.kaplan_meier[place]))
    own = hazard > 0
    place = place[own]
    at_risk = _at_risk(leaf, place, leaf.curve.log_variance[place], hazard[own])
    return _with_steps(leaf, times[own], leaf.kaplan_meier[place], hazard[own], at_risk)


def _with_steps(
    leaf: LeafStatistics, times: Floats, survival: Floats, hazard: Floats, at_risk: Floats
) -> LeafStatistics:
    """Statistics whose curves have these steps."""
    return replace(
        leaf,
        event_times=times,
        kaplan_meier=survival,
        nelson_aalen=np.cumsum(hazard),
        at_risk=np.clip(at_risk, 1, leaf.n_samples),
    )


def _counted(statistics: Sequence[LeafStatistics], baseline: Baseline) -> tuple[Any, ...]:
    """Leaves whose rows are counted at the times of the baseline."""
    times = baseline.unique_times
    return tuple(replace(leaf, follow_up=leaf.follow_up.thinned(times)) for leaf in statistics)


def _thinned_steps(leaves: StepLeaves, points: int) -> tuple[StepLeaves, float]:
    steps = [leaves.event_times, *(leaf.brier_times for leaf in leaves.statistics)]
    steps.append(None if leaves.shrunk is None else leaves.shrunk.times)
    if all(times is None or times.size <= points for times in steps):
        return leaves, 0.0
    statistics = tuple(_thinned_leaf(leaf, points) for leaf in leaves.statistics)
    hazard, rises = _thinned_hazard(leaves.baseline, leaves.theta, points)
    shrunk = None if leaves.shrunk is None else _thinned_curves(leaves.shrunk, points)
    kept = [leaf.event_times for leaf in statistics] + [rises]
    kept += [leaf.brier_times for leaf in statistics if leaf.brier_times is not None]
    if shrunk is not None:
        kept.append(shrunk.times)
    every = np.union1d(np.concatenate(kept), leaves.baseline.unique_times[[0, -1]])
    events = np.intersect1d(every, leaves.baseline.event_times, assume_unique=True)
    baseline = Baseline(every, events, np.asarray(hazard(every)))
    counted = _counted(statistics, baseline)
    result = replace(leaves, statistics=counted, baseline=baseline, shrunk=shrunk)
    times, worst = leaves.unique_times, 0.0
    step = max(1, _CELLS // len(statistics))
    for start in range(0, times.size, step):
        at = times[start : start + step]
        worst = max(worst, float(np.abs(leaves.survival_at(at) - result.survival_at(at)).max()))
    return result, worst


def _thinned_causes(leaves: IncidenceLeaves, points: int) -> tuple[IncidenceLeaves, float]:
    """Thins curves of all causes at the same times, so survival and incidences still sum to 1.

    In a leaf, S and the Aalen–Johansen incidences are divided together. The baselines are divided
    together with the proportional curves of all leaves, and take middle values.
    """
    parts = (leaves.any_cause, *leaves.of_cause)
    if leaves.any_cause.event_times.size <= points:
        return leaves, 0.0
    of_leaves = [_thinned_incidences(parts, k, points) for k in range(len(parts[0].statistics))]
    times = leaves.unique_times
    survival, incidence = replace(leaves, curve="proportional").curves
    falls = np.concatenate([1 - survival, *incidence])
    # Only where something happens, because the curves are constant in between.
    rising = np.flatnonzero(np.isin(times, leaves.any_cause.event_times))
    kept, _ = _divided(falls[:, rising], points)
    starts, ends = rising[kept], rising[np.append(kept[1:], rising.size) - 1]
    happened = [leaf.event_times for statistics in of_leaves for leaf in statistics]
    every = np.union1d(np.concatenate([*happened, times[starts]]), times[[0, -1]])
    thinner = []
    for part, statistics in zip(parts, zip(*of_leaves, strict=True), strict=True):
        hazard = part.baseline.cumulative_hazard
        values = (hazard[starts] + hazard[ends]) / 2
        rises = times[starts][np.diff(values, prepend=0.0) > 0]
        events = np.unique(np.concatenate([rises, *(leaf.event_times for leaf in statistics)]))
        at_every = StepFunction(times[starts], values, before=0.0)(every)
        baseline = Baseline(every, events, np.asarray(at_every))
        counted = _counted(statistics, baseline)
        thinner.append(replace(part, statistics=counted, baseline=baseline))
    result = IncidenceLeaves(thinner[0], tuple(thinner[1:]), leaves.curve)
    worst = np.abs(leaves.survival_at(times) - result.survival_at(times)).max()
    for k in range(1, len(parts)):
        off = np.abs(leaves.incidence_at(k, times) - result.incidence_at(k, times)).max()
        worst = max(worst, off)
    return result, float(worst)


def _thinned_incidences(
    parts: Sequence[StepLeaves], place: int, points: int
) -> tuple[LeafStatistics, ...]:
    """Statistics of a leaf for events of any cause and of each cause, at the same times."""
    leaf, *of_cause = (part.statistics[place] for part in parts)
    times = leaf.event_times
    if times.size <= points:
        return (leaf, *of_cause)
    before = np.append(1.0, leaf.kaplan_meier[:-1])
    falls = [1 - leaf.kaplan_meier]
    for one in of_cause:
        hazard = StepFunction(one.event_times, one.nelson_aalen, before=0.0)(times)
        falls.append(np.cumsum(before * np.diff(hazard, prepend=0.0)))
    kept, (fall, *incidences) = _divided(np.stack(falls), points)
    hazard = hazards_of(1 - fall)
    at_risk = _effective(leaf, kept, hazard)
    found = [_with_hazard(leaf, times[kept], hazard, at_risk)]
    before = np.append(1.0, 1 - fall[:-1])
    for one, incidence in zip(of_cause, incidences, strict=True):
        hazard = np.clip(np.diff(incidence, prepend=0.0) / before, 0.0, 1.0)
        found.append(_with_hazard(one, times[kept], hazard, at_risk))
    return tuple(found)


def _with_hazard(
    leaf: LeafStatistics, times: Floats, hazard: Floats, at_risk: Floats
) -> LeafStatistics:
    """Statistics with these steps of the hazard, if there are any."""
    own = hazard > 0
    survival = np.asarray(np.cumprod(1 - hazard[own]), dtype=np.float64)
    return _with_steps(leaf, times[own], survival, hazard[own], at_risk[own])


def _pieces(size: int, points: int, reach: Reach) -> tuple[Integers, float]:
    """Starts of the pieces, at most ``points``, and the smallest error with that number."""

    def begin(error: float) -> list[int] | None:
        starts: list[int] = []
        place = reach(-1, error)
        while place < size:
            if len(starts) == points:
                return None
            starts.append(place)
            place = reach(place, error)
        return starts

    low, high = 0.0, 1.0
    found = begin(high) or []
    for _ in range(_BISECTIONS):
        error = (low + high) / 2
        starts = begin(error)
        if starts is None:
            low = error
        else:
            high, found = error, starts
    # If no decrease exceeds the error, only the last step is kept.
    return np.array(found or [size - 1], dtype=np.int64), high


def _divided(falls: Floats, points: int) -> tuple[Integers, Floats]:
    """Kept steps of curves that share their times, and the middle value of each piece.

    ``falls`` is 1 − S, shape (n_curves, n_times), and so are the returned values.
    """

    def reach(place: int, error: float) -> int:
        ends = (
            np.searchsorted(fall, error if place < 0 else fall[place] + 2 * error, side="right")
            for fall in falls
        )
        return max(place + 1, int(min(ends)))

    starts, _ = _pieces(falls.shape[1], points, reach)
    ends = np.append(starts[1:], falls.shape[1]) - 1
    return starts, (falls[:, starts] + falls[:, ends]) / 2


def _thinned_leaf(leaf: LeafStatistics, points: int) -> LeafStatistics:
    if leaf.brier_times is not None and leaf.brier_times.size > points:
        assert leaf.brier_survival is not None
        kept, falls = _divided(1 - leaf.brier_survival[np.newaxis], points)
        times = leaf.brier_times[kept]
        leaf = replace(leaf, brier_times=times, brier_survival=1 - falls[0])
    if leaf.event_times.size <= points:
        return leaf
    kept, falls = _divided(1 - leaf.kaplan_meier[np.newaxis], points)
    survival = 1 - falls[0]
    hazard = hazards_of(survival)
    at_risk = _effective(leaf, kept, hazard)
    return _with_steps(leaf, leaf.event_times[kept], survival, hazard, at_risk)


def _effective(leaf: LeafStatistics, kept: Integers, hazard: Floats) -> Floats:
    """Number at risk that keeps Greenwood's variance of log S at each kept step."""
    variance = leaf.curve.log_variance
    ends = np.append(kept[1:], variance.size) - 1
    middle = (variance[kept] + variance[ends]) / 2
    middle = np.where(np.isfinite(middle), middle, variance[kept])
    return _at_risk(leaf, kept, middle, hazard)


def _at_risk(leaf: LeafStatistics, place: Integers, variance: Floats, hazard: Floats) -> Floats:
    """Number at risk, for steps of this hazard, that gives log S this variance after each."""
    with np.errstate(invalid="ignore", divide="ignore"):
        found = hazard / ((1 - hazard) * np.diff(variance, prepend=0.0))
    return np.where(np.isfinite(found), found, leaf.at_risk[place])


def _thinned_curves(curves: LeafCurves, points: int) -> LeafCurves:
    """Shrunk curves, whose steps remain in common."""
    if curves.times.size <= points:
        return curves
    kept, falls = _divided(1 - (1 - curves.hazard).cumprod(axis=1), points)
    return LeafCurves(curves.times[kept], hazards_of(1 - falls))


def _thinned_hazard(baseline: Baseline, theta: Floats, points: int) -> tuple[StepFunction, Floats]:
    """Baseline hazard where it rises; close if exp(−θΛ) is close for every leaf."""
    rising = np.isin(baseline.unique_times, baseline.event_times)
    times, hazard = baseline.unique_times[rising], baseline.cumulative_hazard[rising]
    if times.size > points:

        def highest(value: float, error: float) -> float:
            """Largest Λ within the error of another, for every leaf."""
            with np.errstate(divide="ignore"):
                return float((-np.log(np.maximum(np.exp(-theta * value) - error, 0)) / theta).min())

        def lowest(value: float, error: float) -> float:
            return float((-np.log(np.minimum(np.exp(-theta * value) + error, 1)) / theta).max())

        def reach(place: int, error: float) -> int:
            value = 0.0 if place < 0 else highest(hazard[place], error)
            end = int(np.searchsorted(hazard, highest(value, error), side="right"))
            return max(place + 1, end)

        starts, error = _pieces(times.size, points, reach)
        ends = np.append(starts[1:], times.size) - 1
        values = []
        for start, end in zip(hazard[starts].tolist(), hazard[ends].tolist(), strict=True):
            low, high = lowest(end, error), min(highest(start, error), end)
            values.append((max(low, start) + high) / 2)
        times, hazard = times[starts], np.maximum.accumulate(np.array(values))
    return StepFunction(times, hazard, before=0.0), times
