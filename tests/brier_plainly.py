"""The Brier objective by its definition, in loops, as a reference for fast code."""

import itertools

import numpy as np


def kaplan_meier(time, event, weight, at):
    """S at the times ``at``, or G if ``event`` is negated. Rows with time >= t are at risk at t."""
    value = np.ones(len(at))
    for t in np.unique(time[event]):
        # The remaining rows are summed separately, so nothing cancels.
        stays = (time > t) | (~event & (time == t))
        value[at >= t] *= weight[stays].sum() / weight[time >= t].sum()
    return value


def inverse(values):
    return np.array([1 / v if v > 0 else 0.0 for v in values])


def on_grid(time, event, grid):
    """Outcomes as observed at the times of a grid."""
    if grid is None:
        return time, event
    later = [[g for g in grid if g >= t] for t in time]
    moved = np.array([above[0] if above else grid[-1] for above in later])
    return moved, event & np.array([len(above) > 0 for above in later])


def row_losses(time, event, curves, weight=None, grid=None):
    """Contribution of each row to the integrated Brier score; ``curves[i](times)`` is S_i."""
    weight = np.ones(len(time)) if weight is None else weight
    time, event = on_grid(time, event, grid)
    times = np.unique(time)
    share = (np.append(times[1:], times[-1]) - times) / times[-1]
    g_time = inverse(kaplan_meier(time, ~event, weight, times))
    g_row = inverse(kaplan_meier(time, ~event, weight, time))
    losses = np.zeros(len(time))
    for i in range(len(time)):
        S = curves[i](times)
        for k, t in enumerate(times):
            if time[i] <= t:
                losses[i] += share[k] * S[k] ** 2 * g_row[i] * event[i]
            else:
                losses[i] += share[k] * (1 - S[k]) ** 2 * g_time[k]
    return losses


def score_of_partition(time, event, leaf, weight=None, grid=None):
    """Integrated Brier score of the Kaplan–Meier curves of the leaves."""
    weight = np.ones(len(time)) if weight is None else weight
    time, event = on_grid(time, event, grid)
    curves = [None] * len(time)
    for name in np.unique(leaf):
        rows = leaf == name
        of_leaf = time[rows], event[rows], weight[rows]
        for i in np.flatnonzero(rows):
            curves[i] = lambda at, of_leaf=of_leaf: kaplan_meier(*of_leaf, at)
    return np.average(row_losses(time, event, curves, weight), weights=weight)


def partitions(X, depth, rows=None, min_samples=1):
    """Every partition of the rows by a tree of at most this depth, as lists of row sets."""
    rows = np.arange(len(X)) if rows is None else rows
    yield [rows]
    if depth == 0:
        return
    for feature in range(X.shape[1]):
        yes = X[rows, feature].astype(bool)
        if min(yes.sum(), (~yes).sum()) < min_samples:
            continue
        left = list(partitions(X, depth - 1, rows[yes], min_samples))
        right = list(partitions(X, depth - 1, rows[~yes], min_samples))
        for one, other in itertools.product(left, right):
            yield one + other


def best(X, time, event, depth, penalty=0.0, weight=None, grid=None, min_samples=1):
    """Least score plus penalty of any tree."""
    least = np.inf
    for leaves in partitions(X, depth, min_samples=min_samples):
        leaf = np.empty(len(X), dtype=int)
        for k, rows in enumerate(leaves):
            leaf[rows] = k
        value = score_of_partition(time, event, leaf, weight, grid) + penalty * len(leaves)
        least = min(least, value)
    return least
