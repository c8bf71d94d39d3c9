"""Survival objectives straight from their definitions (docs/maths), and their parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cache, cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, hstack

from bristlecone._types import Bools, Floats
from bristlecone.trust._exact import Column, fractions, log_of, log_ratio
from bristlecone.trust._plain import Lifetimes, antitonic_curve, restricted_mean
from bristlecone.trust._rows import Rows
from bristlecone.trust._statement import ROUNDING, Statement, differences, like, sums_of


class Counted(Statement):
    """Half the Poisson deviance of counts given their exposure.

    With hazards as exposures and events as counts, this is the loss of proportional hazards
    (Huisman et al., AAAI-24, eq. 20), with the prior.
    """

    is_concave = True

    def __init__(self, counts: Column, exposure: Column, weight: Column, prior: float) -> None:
        # Many rows have the same count and exposure.
        log = cache(lambda count, exposed: log_of(count * counts.unit, exposed * exposure.unit))
        rows = zip(counts.whole.tolist(), exposure.whole.tolist(), strict=True)
        logs = [log(count, exposed) if count else 0.0 for count, exposed in rows]
        events = weight * counts
        own = events * Column.of(logs)
        self.columns = [events, weight * exposure, own]
        self.sizes = [Column(np.abs(own.whole), own.unit)]
        self.total, self.prior = weight.sum(), prior

    def _fitted(self, sums: Any) -> Any:
        """Amount by which the leaves' relative hazards lower their loss."""
        prior = like(Fraction(self.prior), sums)
        events, hazard = sums[:, 0] + prior, sums[:, 1] + prior
        some = events > 0
        ratio = log_ratio(np.where(some, events, hazard), hazard)
        if ratio.dtype != object:
            # Next to a large prior both have lost the last digits of the sums, but not their
            # difference.
            excess = np.where(some, (sums[:, 0] - sums[:, 1]) / hazard, 0.0)
            near = np.abs(excess) < 0.5
            ratio = np.where(near, np.log1p(np.where(near, excess, 0.0)), ratio)
        return events * ratio

    def candidates(self, sums: Any) -> Any:
        return (sums[:, 2] - self._fitted(sums))[:, None, None]

    def magnitudes(self, sums: Any, members: Bools) -> Any:
        # θ times the hazard of a leaf, a term of its log-likelihood, equals its events.
        size = sums_of(self.sizes, members)[:, 0] + np.abs(self._fitted(sums)) + sums[:, 0]
        return size[:, None]

    def least(self, sums: Sequence[Floats], errors: Sequence[float]) -> Floats:
        # Concave in the events, so least at an end; increasing in the two other sums.
        ends = (-errors[0], errors[0]) if errors[0] > 0 else (0.0,)
        hazard = np.maximum(sums[1] - errors[1], 0.0) + self.prior
        found = None
        for end in ends:
            events = np.maximum(sums[0] + end, 0.0) + self.prior
            some = events > 0
            ratio = np.log(np.where(some, events, 1.0) / np.where(some, hazard, 1.0))
            fitted = np.where(some, events * ratio, 0.0)
            size = np.abs(sums[2]) + np.abs(fitted) + events
            cost = sums[2] - errors[2] - fitted - ROUNDING * size
            found = cost if found is None else np.minimum(found, cost)
        assert found is not None
        # Without hazard or time at risk, an infinite ratio bounds nothing.
        return np.where(np.isnan(found), -np.inf, found)


class Likelihood(Counted):
    """Loss of proportional hazards, with the prior."""

    def __init__(self, rows: Rows, prior: float) -> None:
        lives = lifetimes(rows)
        # Hazards are always those of the real events.
        events = Column.of(rows.facts.get("smoothed", lives.event))
        super().__init__(events, exact_hazards(lives), Column.of(lives.weight), prior)
        self.lives = lives

    def means(self, sums: Floats, tau: float) -> Floats:
        """Restricted mean of the curves of leaves."""
        events, hazard, _ = np.asarray(sums, dtype=np.float64).T
        theta = thetas(events, hazard, self.prior)
        curves = np.exp(-theta[:, None] * self.lives.nelson_aalen)
        return restricted_mean(self.lives.times, curves, tau)


class Brier(Statement):
    """Integrated Brier score (Zhang et al., AISTATS 2024, eqs. 1–2).

    Every term is positive, so sums in float64 are off by at most the roundings on the way.
    """

    def __init__(self, lives: Lifetimes, curve: str) -> None:
        times = lives.times
        shape = lives.time.size, times.size
        cells = np.arange(shape[0]), lives.place
        censored = csr_matrix((lives.weight * ~lives.event, cells), shape)
        died = csr_matrix((lives.weight * lives.event, cells), shape)
        self.statistics = hstack([censored, died]).tocsr()
        self.total, self.curve, self.times = Column.of(lives.weight).sum(), curve, times
        self.share, self.inverse = brier_terms(lives)
        self.price = 40.0 if curve == "brier-optimal" else 5.0
        self.rounding = 8 * (shape[0] + shape[1]) * 2.0**-53

    def sums(self, members: Bools) -> NDArray[Any]:
        return np.asarray(members.astype(np.float64) @ self.statistics)

    def terms(self, sums: Floats) -> tuple[Floats, Floats]:
        """Weights V of S² and N of (1 − S)² at all times."""
        censored, died = np.split(sums, 2, axis=1)
        return (died * self.inverse).cumsum(axis=1), _later(censored + died) * self.inverse

    def curves(self, sums: Floats) -> Floats:
        """Curves of leaves at all times."""
        if self.curve == "brier-optimal":
            pairs = zip(*self.terms(sums), strict=True)
            return np.array([antitonic_curve(*pair, self.share) for pair in pairs])
        censored, died = np.split(sums, 2, axis=1)
        # What stays is a sum, so nothing cancels if weights differ in size.
        stay = censored + _later(censored + died)
        share = np.divide(stay, stay + died, out=np.ones_like(died), where=died > 0)
        return np.asarray(share.cumprod(axis=1))

    def candidates(self, sums: Any) -> Any:
        dead, alive = self.terms(sums)
        S = self.curves(sums)
        return np.asarray((S**2 * dead + (1 - S) ** 2 * alive) @ self.share)[:, None, None]

    def means(self, sums: Floats, tau: float) -> Floats:
        """Restricted mean of the curves of leaves."""
        return restricted_mean(self.times, self.curves(sums), tau)


def _later(sums: Floats) -> Floats:
    """Sums over the times after each."""
    return np.append(sums[:, :0:-1].cumsum(axis=1)[:, ::-1], np.zeros((len(sums), 1)), axis=1)


class _FairSurvival(Statement):
    """A survival loss with a limit on the difference of two groups' restricted means."""

    is_limited = True

    def __init__(self, inner: Any, rows: Rows, limit: float, tau: float) -> None:
        self.differ = differences(rows.weight, rows.facts["group"])
        self.inner, self.limit, self.tau, self.total = inner, limit, tau, inner.total
        self.price = 2 * inner.price
        self.rounding = max(inner.rounding, 1e-12)
        # Allowance of the engine for curves with this many steps (docs/maths/fair-survival.md), and
        # the rounding of a difference that it accepts, on either side.
        self.room = 3 * (8 * np.unique(rows.facts["time"]).size + 128) * 2.0**-53, 0.0

    @cached_property
    def statistics(self) -> Any:
        both = [self.inner.statistics, self.differ.floats()[:, None]]
        return hstack(both).tocsr() if isinstance(self.inner, Brier) else np.hstack(both)

    def sums(self, members: Bools) -> NDArray[Any]:
        differ = sums_of([self.differ], members)
        own = self.inner.sums(members)
        return np.hstack([own, differ if own.dtype == object else differ.astype(np.float64)])

    def candidates(self, sums: Any) -> Any:
        own = sums[:, :-1]
        means = self.inner.means(own, self.tau)
        difference = (fractions(means) if sums.dtype == object else means) * sums[:, -1]
        return np.stack([self.inner.candidates(own)[:, 0, 0], difference], axis=1)[:, None, :]

    def magnitudes(self, sums: Any, members: Bools) -> Any:
        return self.inner.magnitudes(sums[:, :-1], members)

    def value(self, costs: Any, allowed: float) -> Any:
        # Differences of means between 0 and tau: their terms cancel.
        kept = np.abs(costs[:, 1]) <= self.limit + allowed * self.tau
        return np.where(kept, super().value(costs, allowed), np.inf)


def lifetimes(rows: Rows) -> Lifetimes:
    """The outcomes of survival rows."""
    facts = rows.facts
    return Lifetimes(facts["time"], facts["event"], rows.weight, facts["entry"])


def exact_hazards(lives: Lifetimes) -> Column:
    """Λ of every row between entry and time, to 2^-128 of any share; 1/(W + 1) if that is 0.

    Without any event, all are 0.
    """
    weight = Column.of(lives.weight)
    n = lives.times.size
    left = weight.by_group(lives.place, n).whole.tolist()
    died = weight.where(lives.event).by_group(lives.place, n).whole.tolist()
    late = weight.by_group(lives.start, n + 1).whole.tolist()
    # A row is at risk at the times after its entry up to its own.
    bits = 128 + int(weight.whole.sum()).bit_length()
    at_risk, total, reached = 0, 0, [0]
    for gone, dead, come in zip([0, *left], [*died, 0], late, strict=True):
        at_risk += come - gone
        if dead:
            total += (dead << bits) // at_risk
        reached.append(total)
    alone = (1 << bits) / (weight.sum() + 1) if total else Fraction(0)
    whole = [
        reached[at + 1] - reached[start] or int(alone)
        for at, start in zip(lives.place.tolist(), lives.start.tolist(), strict=True)
    ]
    return Column(np.array(whole, dtype=object), Fraction(1, 1 << bits))


def row_hazards(lives: Lifetimes) -> Floats:
    """Λ of every row between entry and time; 1/(W + 1) if that is 0."""
    return exact_hazards(lives).floats()


def thetas(events: Any, hazard: Any, prior: float) -> Floats:
    """Relative hazards of nodes; half an event if there is none and no prior, 1 without hazard."""
    above, below = np.add(events, prior), np.add(hazard, prior)
    some = below > 0
    return np.where(some, np.where(above > 0, above, 0.5) / np.where(some, below, 1.0), 1.0)


def brier_terms(lives: Lifetimes) -> tuple[Floats, Floats]:
    """Shares of [0, last time] after each time, and 1/G, which is 0 where G is 0."""
    times, survival = lives.times, lives.censoring
    inverse = np.divide(1.0, survival, out=np.zeros(times.size), where=survival > 0)
    return np.diff(times, append=times[-1]) / times[-1], inverse


def prior_of(value: Any) -> float:
    """Pseudo-events for a value of the parameter."""
    return 10.0 if isinstance(value, str) else float(value)


def greedy_objective(tree: Any, rows: Rows) -> Statement:
    """Objective that a ``GreedySurvivalTree`` reports, for any criterion."""
    return _likelihood(rows, tree.certificate_.parameters)


def _likelihood(rows: Rows, parameters: Mapping[str, Any]) -> Statement:
    return Likelihood(rows, prior_of(parameters["prior"]))


def _brier(rows: Rows, parameters: Mapping[str, Any]) -> Statement:
    curve = parameters["leaf_curve"]
    return Brier(lifetimes(rows), "kaplan-meier" if curve == "auto" else curve)


OBJECTIVES = {"likelihood": _likelihood, "brier": _brier}
"""Statements for the values of the parameter ``objective`` of an ``OptimalSurvivalTree``."""


def objective(tree: Any, rows: Rows) -> Statement:
    """Objective of an ``OptimalSurvivalTree``."""
    parameters = tree.certificate_.parameters
    inner = OBJECTIVES[parameters["objective"]](rows, parameters)
    fairness = parameters["fairness"]
    if fairness is None:
        return inner
    tau = float(lifetimes(rows).time.max() if fairness.tau is None else fairness.tau)
    return _FairSurvival(inner, rows, float(fairness.limit), tau)
