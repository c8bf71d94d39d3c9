"""Metrics by their definitions, in loops, and samples for comparisons."""

import numpy as np

TIES = ["sksurv", "paper"]
SEEDS = range(10)


def sample(seed, n=40, n_times=8):
    """Outcome with many ties, and risk scores with ties."""
    rng = np.random.default_rng(seed)
    time = rng.integers(1, n_times + 1, n).astype(float)
    # Only the last row has the last time and is censored, so G is positive before it.
    time[-1] = n_times + 1
    event = rng.random(n) < 0.6
    event[0], event[-1] = True, False
    return event, time, np.round(rng.normal(size=n), 1)


def survival_matrix(seed, n=40, n_times=5, n_curves=None):
    """Non-increasing curves at unevenly spaced times; several rows may share one."""
    rng = np.random.default_rng(seed + 1000)
    curves = np.sort(np.round(rng.random((n_curves or n, n_times)), 1))[:, ::-1]
    times = np.sort(rng.choice(np.arange(1, 33), n_times, replace=False)) / 4
    return curves[np.arange(n) % len(curves)], times


def naive_censoring(event, time, t, ties):
    value = 1.0
    for u in sorted(set(time)):
        if u <= t:
            at_risk = sum(time >= u) - (sum((time == u) & event) if ties == "sksurv" else 0)
            censored = sum((time == u) & ~event)
            value *= 1 - censored / at_risk if censored else 1
    return value


def naive_concordance(event, time, lower, equal, weight, ties, own=None, entry=None):
    """``lower(i, j)`` and ``equal(i, j)`` compare the predicted survival of i with that of j.

    ``weight`` are the weights of events and ``own`` those of rows, which enter at ``entry``.
    """
    own = np.ones(len(time)) if own is None else own
    score = pairs = concordant = discordant = tied = tied_time = 0
    for i in range(len(time)):
        for j in range(len(time)):
            same = time[i] == time[j] and event[i] and not event[j] and ties == "sksurv"
            if (not (event[i] and time[i] < time[j]) and not same) or not own[i] * own[j]:
                continue
            if entry is not None and entry[j] >= time[i]:
                continue
            pair = weight[i] * own[i] * own[j]
            tied_time += same
            pairs += pair
            if equal(i, j):
                tied += 1
                score += pair / 2
            elif lower(i, j):
                concordant += 1
                score += pair
            else:
                discordant += 1
    return score / pairs, concordant, discordant, tied, tied_time


def step_value(curve, times, t):
    values = [s for s, u in zip(curve, times, strict=True) if u <= t]
    return values[-1] if values else 1.0


def naive_brier(event, time, survival_at, t, ties, train, own=None):
    own = np.ones(len(time)) if own is None else own
    total = 0.0
    for i in range(len(time)):
        if time[i] <= t:
            g = naive_censoring(*train, time[i], ties)
            total += own[i] * event[i] * survival_at[i] ** 2 / g if g else 0
        else:
            g = naive_censoring(*train, t, ties)
            total += own[i] * (1 - survival_at[i]) ** 2 / g if g else 0
    return total / sum(own)


def naive_auc(event, time, risk, t, ties, train, own):
    """Share of pairs in which the case ranks above the control, by the weights of both."""
    score = pairs = 0.0
    for i in range(len(time)):
        for j in range(len(time)):
            if not (event[i] and time[i] <= t < time[j]):
                continue
            pair = own[i] * own[j] / naive_censoring(*train, time[i], ties)
            pairs += pair
            if abs(risk[i] - risk[j]) <= 1e-8:
                score += pair / 2 if ties == "sksurv" else 0.0
            elif risk[i] > risk[j]:
                score += pair
    return score / pairs
