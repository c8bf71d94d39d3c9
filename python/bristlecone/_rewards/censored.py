"""Doubly robust scores of the restricted mean survival time, or of survival, at a horizon.

docs/maths/policy.md, "Censored outcomes", has the definition, its source and the argument.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from bristlecone._data.outcomes import Survival, as_structured
from bristlecone._data.rows import take_rows
from bristlecone._foreign import survival_of
from bristlecone._rewards.nuisance import Rows, members, quiet
from bristlecone._teacher.outcomes import Rates, fitted_to_survival
from bristlecone._types import Bools, Floats, Integers

ESTIMANDS = ("restricted-mean", "survival")

# With fewer events, the hazards of "auto" are Nelson–Aalen hazards, equal for all rows.
_FEWEST_EVENTS = 10

# Relative hazards of "auto" are within this factor of their mean.
_MOST_HAZARD = 100.0

# Rows that leave before the first event get this exposure, so that they have a rate.
_NO_EXPOSURE = 1e-9

# Ratios of survival curves that reach zero.
_LEAST_SURVIVAL = 1e-12

# Times between the event times at which the curves of custom models, which may be smooth, are read.
_N_BETWEEN = 256

# Most entries (rows times grid) of a matrix of curves.
_MOST_CELLS = 1_000_000


class Lives(NamedTuple):
    """Lifetimes up to the horizon: ``event`` and ``censored`` by then, and ``time`` at most it."""

    event: Bools
    censored: Bools
    time: Floats
    horizon: float

    @classmethod
    def until(cls, event: Bools, time: Floats, horizon: float) -> Lives:
        """Lives of rows whose fate after the horizon does not matter."""
        by_then = event & (time <= horizon)
        return cls(by_then, ~event & (time < horizon), np.minimum(time, horizon), horizon)

    def of(self, places: Integers) -> Lives:
        """The lifetimes of some rows."""
        event, censored, time, horizon = self
        return Lives(event[places], censored[places], time[places], horizon)


class Estimand(NamedTuple):
    """A linear functional of a survival curve: ``constant`` + Σ ``weights`` · S(``grid``)."""

    grid: Floats
    weights: Floats
    constant: float

    @classmethod
    def of(cls, lives: Lives, name: str, between: int = 0) -> Estimand:
        """The restricted mean, or the survival, at the horizon.

        The grid are the event times, and ``between`` others up to the horizon, evenly spaced.
        """
        others = np.linspace(0, lives.horizon, between + 1)[1:]
        grid = np.unique(np.append(lives.time[lives.event], others))
        if name == "survival":
            weights = np.zeros(len(grid))
            weights[-1] = 1.0
            return cls(grid, weights, 0.0)
        return cls(grid, np.diff(np.append(grid, lives.horizon)), float(grid[0]))

    def of_curves(self, survival: Floats) -> Floats:
        """Its value for curves on the grid, shape (n,)."""
        return np.asarray(self.constant + survival @ self.weights)


def residuals(lives: Lives, estimand: Estimand, survival: Floats, uncensored: Floats) -> Floats:
    """Correction of the estimand of expected curves by the observed lifetimes.

    −Σ_t w(t) S(t) Σ_{u ≤ t} (1{T = u, event} − 1{T ≥ u} h(u)) / (S(u) G(u−)) with the hazards h(u)
    = 1 − S(u) / S(u−) (Westling, Luedtke, Gilbert and Carone, JASA 119, 2024, eq. 3).

    Parameters
    ----------
    lives : Lives, n rows
    estimand : Estimand
    survival, uncensored : array, shape (n, n_grid)
        S at the grid, and G immediately before it.
    """
    survival = np.maximum(survival, _LEAST_SURVIVAL)
    inverse = 1.0 / survival
    # The inner sum is Σ_{t ≥ u} w(t) S(t) / G(u−), and h(u) / S(u) is 1/S(u) − 1/S(u−).
    later = (survival * estimand.weights)[:, ::-1].cumsum(axis=1)[:, ::-1] / uncensored
    expected = np.diff(inverse, axis=1, prepend=1.0) * later
    expected[lives.time[:, None] < estimand.grid] = 0.0
    own = np.flatnonzero(lives.event)
    place = np.searchsorted(estimand.grid, lives.time[own])
    change: Floats = expected.sum(axis=1)
    change[own] -= inverse[own, place] * later[own, place]
    return change


class Curves(Protocol):
    """Survival curves of the rows of a fold."""

    def at(self, places: Integers, times: Floats, *, before: bool = False) -> Floats:
        """Values at the times, or immediately before them, shape (n_places, n_times)."""


@dataclass(frozen=True, eq=False)
class _Proportional:
    """exp(−θ H(t)): relative hazards of all rows, and a cumulative hazard with its steps."""

    relative: Floats
    steps: Floats
    hazard: Floats

    def at(self, places: Integers, times: Floats, *, before: bool = False) -> Floats:
        place = np.searchsorted(self.steps, times, side="left" if before else "right")
        hazard = np.append(0.0, self.hazard)[place]
        return np.asarray(np.exp(-np.outer(self.relative[places], hazard)))


@dataclass(frozen=True, eq=False)
class _Foreign:
    """Curves of a custom model."""

    model: Any
    X: Any

    def at(self, places: Integers, times: Floats, *, before: bool = False) -> Floats:
        mask = np.zeros(len(self.X), dtype=bool)
        mask[places] = True
        moments = np.nextafter(times, -np.inf) if before else times
        # Functions without steps are evaluated at these moments, but never before 0.
        read_at = np.unique(np.maximum(moments, 0.0))
        found = survival_of(self.model, take_rows(self.X, mask), read_at, "outcome_model")
        values = found.at(moments)
        if not np.isfinite(values).all() or (values < 0).any() or (values > 1 + 1e-9).any():
            raise ValueError(f"outcome_model={self.model!r} predicted survival outside [0, 1]")
        return values


def _curves(
    rows: Rows, own: Integers, flags: Bools, others: Bools, time: Floats, model: Any
) -> Curves:
    """Curves of the time to a flag, from the rows ``own``.

    ``others`` marks rows that leave for the other reason, before a flag of the same time: events,
    if the flag is censoring.
    """
    if not flags[own].any():
        return _Proportional(np.ones(len(flags)), np.empty(0), np.empty(0))
    if isinstance(model, str):
        return _automatic(rows, own, flags, others, time)
    y, at = as_structured(Survival(flags, time)), rows.selected(own)
    fitted = fitted_to_survival(model, rows.X, y, rows.weight, at, "outcome_model")
    return _Foreign(fitted, rows.X)


def _automatic(
    rows: Rows, own: Integers, flags: Bools, others: Bools, time: Floats
) -> _Proportional:
    """Proportional hazards: relative hazards by Poisson models, and Breslow's estimate."""
    flag, other, at = flags[own], others[own], time[own]
    weight = np.ones(len(own)) if rows.weight is None else rows.weight[own]
    relative = np.ones(len(flags))
    if flag.sum() >= _FEWEST_EVENTS:
        _, increments, until = _breslow(flag, other, at, weight)
        exposure = np.append(0.0, np.cumsum(increments))[until]
        outcomes = Rates(weight, flag.astype(np.float64), np.maximum(exposure, _NO_EXPOSURE))
        everyone, found = np.arange(len(own)), []
        with quiet():
            for name, one in members(outcomes, rows).items():
                design = rows.design.read_by(name)
                fitted = outcomes.fitted(one, design[own], everyone)
                found.append(np.asarray(fitted.predict(design), dtype=np.float64))
                rows.report()
        relative = np.mean(found, axis=0)
        mean = np.average(relative[own], weights=outcomes.importance)
        relative = np.clip(relative / mean, 1 / _MOST_HAZARD, _MOST_HAZARD)
    steps, increments, _ = _breslow(flag, other, at, weight, relative[own])
    return _Proportional(relative, steps, np.cumsum(increments))


def _breslow(
    flag: Bools, other: Bools, time: Floats, weight: Floats, relative: Any = 1.0
) -> tuple[Floats, Floats, Integers]:
    """Distinct times of flags, and the increments of the cumulative hazard of a row with θ = 1.

    Then the number of these times to which every row is exposed: up to its own time, but not to
    flags of the same time if it leaves before them.
    """
    steps = np.unique(time[flag])
    place = np.searchsorted(steps, time[flag])
    count = np.bincount(place, weight[flag], len(steps))
    until = np.where(
        other, np.searchsorted(steps, time, "left"), np.searchsorted(steps, time, "right")
    )
    leaves_at = np.bincount(until, weight * relative, len(steps) + 1)
    at_risk = leaves_at[::-1].cumsum()[::-1][1:]
    return steps, count / at_risk, until


class Scores(NamedTuple):
    """Scores of survival: expected values of the estimand, what is observed, and follow-up.

    Attributes
    ----------
    predicted : array, shape (n, n_treatments)
        Estimand of the predicted curves, by treatment.
    correction : array, shape (n,)
        Residual of the treatment that the row had, before division by its propensity.
    weighted : array, shape (n,)
        The observed estimand over the probability of being observed; 0 if censored.
    uncensored : array, shape (n,)
        Probability of being under observation until the event or the horizon.
    """

    predicted: Floats
    correction: Floats
    weighted: Floats
    uncensored: Floats


def survival_scores(
    rows: Rows, lives: Lives, name: str, model: Any, least: float, needs: str
) -> Scores:
    """Cross-fitted scores of every row; ``needs`` is the estimate that they are for.

    Probabilities of being under observation are at least ``least``.
    """
    rows.check_treatments("survival", "")
    estimand = Estimand.of(lives, name, 0 if isinstance(model, str) else _N_BETWEEN)
    n, n_treatments = len(lives.time), len(rows.treatments)
    predicted = np.zeros((n, n_treatments))
    correction = np.zeros(n)
    until = np.append(estimand.grid, lives.horizon)
    with_events, with_censoring = needs != "inverse-propensity", needs != "direct"
    # Position of the row's own event in the grid, or of the horizon.
    own_place = np.where(lives.event, np.searchsorted(estimand.grid, lives.time), len(until) - 1)
    follow_up = np.ones(n)
    for held, others in rows.folds():
        for k in range(n_treatments):
            own = others[rows.treatment[others] == k]
            if with_events:
                none = np.zeros(n, dtype=bool)
                lived = _curves(rows, own, lives.event, none, lives.time, model)
            if with_censoring:
                left = _curves(rows, own, lives.censored, lives.event, lives.time, model)
            for places in _chunks(np.flatnonzero(held), len(until)):
                mine = rows.treatment[places] == k
                if with_events:
                    survival = lived.at(places, estimand.grid)
                    predicted[places, k] = estimand.of_curves(survival)
                if not with_censoring or not mine.any():
                    continue
                places = places[mine]
                uncensored = left.at(places, until, before=True)
                follow_up[places] = uncensored[np.arange(len(places)), own_place[places]]
                uncensored = np.maximum(uncensored, least)
                if with_events:
                    part = lives.of(places)
                    correction[places] = residuals(
                        part, estimand, survival[mine], uncensored[:, :-1]
                    )
    lasted = lives.time if name == "restricted-mean" else (~lives.event).astype(np.float64)
    observed = np.where(lives.censored, 0.0, lasted / np.maximum(follow_up, least))
    return Scores(predicted, correction, observed, follow_up)


def _chunks(places: Integers, width: int) -> list[Integers]:
    each = max(1, _MOST_CELLS // width)
    return [places[start : start + each] for start in range(0, len(places), each)]
