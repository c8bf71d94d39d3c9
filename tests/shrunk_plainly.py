"""Hierarchical shrinkage by its definition (docs/maths/shrinkage.md), row by row."""

import numpy as np


def paths(model, X):
    """Rows of every node from the root to each leaf, left to right."""
    tree = model.tree_
    reach = model.decision_path(X).toarray().astype(bool)

    def below(node, above):
        here = [*above, np.flatnonzero(reach[:, node])]
        if tree.children_left[node] < 0:
            return [here]
        children = tree.children_left[node], tree.children_right[node]
        return [path for child in children for path in below(child, here)]

    return below(0, [])


def mean(path, total, size, amount, above=None):
    """(total + λ · parent) / (size + λ) down a path; with ``above=None`` the root is not shrunk."""
    value = above
    for rows in path:
        if value is None:
            value = total(rows) / size(rows)
        else:
            value = (total(rows) + amount * value) / (size(rows) + amount)
    return value


def kaplan_meier(path, time, event, entry, weight, times, amount):
    """Survival and cumulative hazard at ``times``, which must include every event time."""
    hazard = None
    for rows in path:
        own, before = [], 1.0
        for k, t in enumerate(times):
            died = sum(weight[i] for i in rows if event[i] and time[i] == t)
            at_risk = sum(weight[i] for i in rows if entry[i] < t <= time[i])
            if hazard is not None:
                died += amount * before * hazard[k]
                at_risk += amount * before
                before *= 1 - hazard[k]
            own.append(died / at_risk if died > 0 else 0.0)
        hazard = own
    return np.cumprod(1 - np.array(hazard)), np.cumsum(hazard)


def brier_optimal(path, terms, share, amount):
    """Survival at all times, including the last; ``terms(rows)`` are A and B at the other times."""
    curve = None
    for rows in path:
        A, B = terms(rows)
        if curve is not None:
            A, B = A + amount * (1 - curve), B + amount * curve
        curve = antitonic(A * share, B * share)
    return np.append(curve, curve[-1] if len(curve) else 1.0)


def antitonic(A, B):
    """Non-increasing S of least Σ S² A + (1 − S)² B, by the min-max formula; S starts at 1."""
    n = len(A)

    def mean(first, last):
        p, q = A[first : last + 1].sum(), B[first : last + 1].sum()
        return q / (p + q) if p + q > 0 else np.nan

    curve = []
    for k in range(n):
        if A[k] + B[k] == 0:
            curve.append(curve[-1] if curve else 1.0)
            continue
        highest = [np.fmax.reduce([mean(s, t) for t in range(k, n)]) for s in range(k + 1)]
        curve.append(np.fmin.reduce(highest))
    return np.array(curve)
