"""Random problems with several causes of events."""

import math
from fractions import Fraction

import exhaustive as plain
import numpy as np
import shrunk_plainly
from drawing import (
    Problem,
    Ranges,
    one_of,
    prepared,
    remembering,
    rows,
    shared_parameters,
    shrinkage,
    weights,
)
from number_problems import exact_sum
from survival_problems import minimum_of_events

from bristlecone import CompetingRisksTree


def causes(rng):
    parameters = shared_parameters(rng, seeded=False)
    X = rows(rng)
    n = len(X)
    given, kept = weights(rng, n)
    ranges = Ranges(rng)
    given = ranges.weights(given, n)
    kept, weight = prepared(rng, parameters, X, given)
    n_causes = min(int(rng.integers(1, 4)), int(kept.sum()))
    time = one_of(rng, rng.integers(1, 5, n).astype(float), rng.exponential(10.0, n))
    time = ranges.values(time)
    cause = rng.integers(0, n_causes + 1, n)
    first = np.flatnonzero(kept)[:n_causes]
    cause[first], time[first] = np.arange(1, len(first) + 1), np.maximum(time[first], 1.0)
    number = one_of(rng, None, n_causes)
    if number is not None and n_causes > 1 and rng.random() < 0.5:
        cause[cause == rng.integers(1, n_causes + 1)] = 0
        cause[first[0]] = max(cause[first[0]], cause[first[1]])
    fit = {"y": (cause, time), "sample_weight": given}
    entry = np.full(n, -1.0)
    if rng.random() < 0.4:
        entry = np.floor(time * rng.uniform(0, 0.9, n))
        entry = np.where(entry < time, entry, 0.0)
        time = np.where(time > entry, time, entry + 1)
        y = np.empty(n, dtype=[("cause", int), ("until", float), ("entry", float)])
        y["cause"], y["until"], y["entry"] = cause, time, entry
        fit["y"] = y
    t, c, v = time[kept], cause[kept], entry[kept]
    min_events, least = minimum_of_events(rng, int((c > 0).sum()))
    prior = one_of(rng, 0.0, 0.5, 3, 20.0, "auto")
    pseudo = 10.0 if prior == "auto" else float(prior)
    curve = one_of(rng, "aalen-johansen", "proportional")
    amount = shrinkage(rng, "auto") if curve == "proportional" else one_of(rng, 0, "auto")
    importance = one_of(rng, None, rng.choice([0.0, 0.5, 1.0, 3.0], n_causes))
    # A cause without events contributes nothing.
    occurs = np.isin(np.arange(n_causes) + 1, c)
    if importance is not None and not importance[occurs].any():
        importance = None
    of_causes = np.ones(n_causes) if importance is None else importance
    counted = [Fraction(u) for u in of_causes[occurs]]
    parameters |= {
        "min_events_leaf": min_events,
        "prior": prior,
        "shrinkage": amount,
        "leaf_curve": curve,
        "cause_weights": importance,
        "n_causes": number,
    }
    amount = 0.0 if amount == "auto" else float(amount)
    losses, sums = [], []
    for k in range(1, n_causes + 1):
        hazard, _ = plain.hazards(t, c == k, v, weight)
        if not (c == k).any():
            hazard = [0 * one for one in hazard]
        losses.append(plain.Likelihood(hazard, c == k, weight, pseudo))
        sums.append((weight * (c == k), weight * np.array([float(one) for one in hazard])))

    def total(parts):
        return plain.units(
            sum(plain.amount(one) * u for one, u in zip(parts, counted, strict=True))
        )

    def leaf_cost(inside):
        if (c[inside] > 0).sum() < least:
            return math.inf
        return total(losses[k].cost(inside) for k in np.flatnonzero(occurs))

    def predictions(model):
        """Predictions in every leaf, true values, and terms; both are differences of terms."""
        times, near_one = np.unique(t), 1e-6
        pairs = [(model.shrinkage_, amount, near_one), (model.prior_, pseudo, near_one)]
        for path in shrunk_plainly.paths(model, X[kept]):
            row, survival = X[kept][path[-1][:1]], 1.0
            for k, (events, hazard) in enumerate(sums):
                expected = float(losses[k].theta(path[-1])) if occurs[k] else 1.0
                if amount:
                    expected = shrunk_plainly.mean(
                        path,
                        lambda r, events=events: events[r].sum(),
                        lambda r, hazard=hazard: hazard[r].sum(),
                        amount,
                        above=1.0,
                    )
                pairs.append((model.predict(row, k + 1)[0], expected, near_one))
                survival = survival - model.predict_cumulative_incidence(row, k + 1, times)[0]
            said = model.predict_survival_function(row, times=times)[0]
            pairs += [(one, rest, near_one) for one, rest in zip(said, survival, strict=True)]
        return pairs

    return Problem(
        CompetingRisksTree, parameters, X, fit, kept, weight, remembering(leaf_cost),
        total=exact_sum(weight), also=predictions, wide=ranges.wide,
        leaf_terms=lambda inside: total(losses[k].terms(inside) for k in np.flatnonzero(occurs)),
    )  # fmt: skip
