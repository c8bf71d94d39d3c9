"""The truth about small trees, by trying every one: plain NumPy, nothing of the package.

Everything here follows the definitions in ``docs/maths``, by the slowest way that is easy to read.
"""

import itertools
import math

import numpy as np

# --- trees -------------------------------------------------------------------------------------


def splits(X, rows):
    """Columns that part the rows, with the rows where they are true and where they are false."""
    for column in range(X.shape[1]):
        yes = X[rows, column]
        if yes.any() and not yes.all():
            yield column, rows[yes], rows[~yes]


def least_costs(X, leaf_cost, depth, min_rows, split_cost=None, rows=None):
    """Least sum of costs by the number of leaves, as a dict; a size that no tree has is absent.

    Of trees of all rows, or of these.

    ``leaf_cost(rows)`` is the cost of a leaf (inf where it may not be one), ``split_cost(rows,
    asked, column)`` that of a question after the questions ``asked``.
    """
    known = {}

    def least(rows, depth, asked):
        key = rows.tobytes(), depth, asked
        if key in known:
            return known[key]
        found = {}
        if len(rows) >= min_rows:
            cost = leaf_cost(rows)
            if cost < math.inf:
                found[1] = cost
            for column, yes, no in splits(X, rows) if depth else ():
                paid = split_cost(rows, asked, column) if split_cost else 0.0
                after = asked | {column} if split_cost else asked
                sides = least(yes, depth - 1, after), least(no, depth - 1, after)
                for (k, one), (m, other) in itertools.product(*(side.items() for side in sides)):
                    cost = one + other + paid
                    found[k + m] = min(cost, found.get(k + m, math.inf))
        known[key] = found
        return found

    return least(np.arange(len(X)) if rows is None else rows, depth, frozenset())


def all_outcomes(X, leaf_outcomes, depth, min_rows, most_leaves):
    """Every outcome of a tree, summed over its leaves, as rows (leaves, outcome...).

    ``leaf_outcomes(rows)`` lists what the leaf may add: one row for each label it may be given.
    """
    known = {}

    def outcomes(rows, depth, most):
        key = rows.tobytes(), depth, most
        if key in known:
            return known[key]
        leaf = np.array(leaf_outcomes(rows), dtype=float)
        found = [np.column_stack([np.ones(len(leaf)), leaf])]
        if len(rows) < min_rows:
            found = [found[0][:0]]
        for _, yes, no in splits(X, rows) if depth and most > 1 else ():
            one, other = (outcomes(side, depth - 1, most - 1) for side in (yes, no))
            both = (one[:, None] + other[None]).reshape(-1, one.shape[1])
            found.append(both[both[:, 0] <= most])
        # Equal sums in another order are the same outcome, and lose no digits.
        found = np.concatenate(found)
        _, first = np.unique(np.round(found, 12), axis=0, return_index=True)
        known[key] = found[first]
        return known[key]

    return outcomes(np.arange(len(X)), depth, most_leaves)


def all_trees(X, leaf_cost, depth, min_rows, most_leaves):
    """Every tree as (cost, leaves, nest); the nest is its rows, parted as the tree parts them.

    Questions that part the rows of a node alike make the same nest.
    """

    def trees(rows, depth, most):
        if len(rows) < min_rows:
            return {}
        cost = leaf_cost(rows)
        found = {frozenset(rows.tolist()): (cost, 1)} if cost < math.inf else {}
        for _, yes, no in splits(X, rows) if depth and most > 1 else ():
            one, other = trees(yes, depth - 1, most - 1), trees(no, depth - 1, most - 1)
            for (a, (x, k)), (b, (y, m)) in itertools.product(one.items(), other.items()):
                if k + m <= most:
                    found[frozenset([a, b])] = (x + y, k + m)
        return found

    everything = trees(np.arange(len(X)), depth, most_leaves)
    return [(cost, leaves, nest) for nest, (cost, leaves) in everything.items()]


# --- survival ----------------------------------------------------------------------------------


def hazards(time, event, entry, weight):
    """Baseline hazard of every row between entry and time, 1 / (W + 1) where it is zero."""
    steps = {
        t: weight[event & (time == t)].sum() / weight[(entry < t) & (t <= time)].sum()
        for t in np.unique(time[event])
    }
    total = [
        sum(step for t, step in steps.items() if before < t <= until)
        for before, until in zip(entry, time, strict=True)
    ]
    return np.where(np.array(total) > 0, total, 1 / (weight.sum() + 1)), steps


def likelihood_leaf(rows, event, hazard, weight, prior=0.0):
    """Saturated less fitted log-likelihood, Huisman et al. (AAAI-24) eq. 20; and θ.

    A prior of a events at θ = 1 adds a(θ − 1 − ln θ), and θ is the least point of the sum.
    """
    events = weight[rows][event[rows]].sum()
    sums = (weight * hazard)[rows].sum()
    saturated = -(weight * np.log(hazard))[rows][event[rows]].sum()
    if prior > 0:
        theta = (events + prior) / (sums + prior)
        fitted = events * (1 + math.log(theta)) - theta * sums
        return saturated - fitted + prior * (theta - 1 - math.log(theta)), theta
    if events == 0:
        return 0.0, 0.5 / sums
    return saturated - events * math.log(events / sums), events / sums


class Brier:
    """Integrated Brier score with the censoring weights of all rows (docs/maths/brier.md)."""

    def __init__(self, time, event, weight):
        self.time, self.event, self.weight = time, event, weight
        self.times = np.unique(time)
        self.share = np.diff(self.times) / self.times[-1]
        value, survival = 1.0, []
        for t in self.times:
            # Those who stay as a sum of their own: nothing cancels.
            staying = (time > t) | (event & (time == t))
            value *= weight[staying].sum() / weight[time >= t].sum()
            survival.append(value)
        self.inverse = np.array([1 / g if g > 0 else 0.0 for g in survival])

    def leaves_no_digits(self):
        """Whether the mean of 1/G makes sums too inexact (docs/maths/brier.md)."""
        rows = len(self.weight)
        whole = (self.weight == np.floor(self.weight)).all()
        rounded = 1.0 if whole else min(rows, 4 * math.sqrt(rows))
        mean = (self.share * self.inverse[:-1]).sum()
        return 2 * np.finfo(float).eps * mean * rounded > 2.5e-10

    def terms(self, rows):
        """V and N of the leaf at every time but the last."""
        time, event, weight = self.time[rows], self.event[rows], self.weight[rows]
        own = self.inverse[np.searchsorted(self.times, time)]
        dead = [(weight * own)[(time <= t) & event].sum() for t in self.times[:-1]]
        alive = [weight[time > t].sum() * g for t, g in zip(self.times, self.inverse, strict=True)]
        return np.array(dead), np.array(alive[:-1])

    def kaplan_meier(self, rows):
        """Kaplan–Meier estimate of the rows at all times."""
        time, event, weight = self.time[rows], self.event[rows], self.weight[rows]
        value, curve = 1.0, []
        for t in self.times:
            at_risk = weight[time >= t].sum()
            if at_risk > 0 and (event & (time == t)).any():
                value *= weight[(time > t) | (~event & (time == t))].sum() / at_risk
            curve.append(value)
        return np.array(curve)

    def best_curve(self, rows):
        """Non-increasing curve of least loss, by the min-max formula of antitonic regression."""
        V, N = (self.share * term for term in self.terms(rows))
        n = len(V)

        def mean(first, last):
            p, q = V[first : last + 1].sum(), N[first : last + 1].sum()
            return q / (p + q) if p + q > 0 else math.nan

        curve = []
        for k in range(n):
            highest = [np.fmax.reduce([mean(s, t) for t in range(k, n)]) for s in range(k + 1)]
            least = np.fmin.reduce(highest)
            curve.append(1.0 if math.isnan(least) else least)
        return np.append(curve, 0.0)

    def loss(self, rows, curve):
        V, N = self.terms(rows)
        S = curve[:-1]
        return float((self.share * (S**2 * V + (1 - S) ** 2 * N)).sum())


def restricted_mean(times, survival, tau):
    """∫₀^τ S of a step function that is 1 before its first time."""
    ends = np.append(times[times < tau], tau)
    starts = np.concatenate([[0.0], ends[:-1]])
    values = np.concatenate([[1.0], survival[times < tau]])
    return float((values * (ends - starts)).sum())


# --- labels ------------------------------------------------------------------------------------


def f1(wrong_positives, wrong_negatives, positives, negatives):
    """F1 of the positive class; arrays of misclassified weights."""
    right = positives - wrong_negatives
    return 2 * right / (2 * right + wrong_positives + wrong_negatives)


def matthews(wrong_positives, wrong_negatives, positives, negatives):
    """Matthews correlation; 0 where a single class is predicted."""
    tp, tn = positives - wrong_negatives, negatives - wrong_positives
    above = tp * tn - wrong_positives * wrong_negatives
    total = positives + negatives
    called = tp + wrong_positives
    # What rounding of sums leaves is less than any row, but its root may not be.
    single = np.minimum(called, total - called) <= 1e-11 * max(1.0, total)
    below = np.where(single, np.inf, positives * negatives * called * (total - called))
    return above / np.sqrt(below)


def dominated(costs, by, tie):
    """Which costs another one undercuts by more than a tie in one, and exceeds in none."""
    costs, by = costs[:, None], by[None]
    return ((by <= costs + tie).all(axis=2) & (by < costs - tie).any(axis=2)).any(axis=1)
