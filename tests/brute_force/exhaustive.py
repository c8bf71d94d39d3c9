"""Optimal small trees, by trying all trees in exact arithmetic, without the package.

Everything here follows the definitions in ``docs/maths`` in the simplest way, however slow.
Input is exact, because a double is a whole number times a power of two. Sums and products are
exact. Costs of leaves are whole numbers of 2**-2600 (``units``), which is less than the square of
any double; logarithms, roots and Brier scores are decimal numbers of 100 digits.
"""

import decimal
import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np

UNIT = 1 << 2600
# Enough digits for terms that cancel, and no overflow.
DIGITS = decimal.Context(prec=100, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)
decimal.setcontext(DIGITS)
# Differences below this share of their terms are 0; differences of doubles are larger.
NOTHING = Decimal(10) ** -80


def units(value):
    """A fraction or a decimal number in units of 2**-2600."""
    above, below = value.as_integer_ratio()
    return above * UNIT // below


def amount(whole):
    """A number of units as a fraction."""
    return Fraction(whole, UNIT)


def decimal_of(value):
    """A fraction, a whole number or a double as a decimal number."""
    above, below = value.as_integer_ratio()
    return Decimal(above) / Decimal(below)


def whole(values):
    """Doubles as whole numbers of a common unit, and the unit; exact."""
    values = np.asarray(values, dtype=float)
    ratios = [value.as_integer_ratio() for value in values.ravel().tolist()]
    below = max((ratio[1] for ratio in ratios), default=1)
    found = np.empty(len(ratios), dtype=object)
    found[:] = [above * (below // under) for above, under in ratios]
    return found.reshape(values.shape), Fraction(1, below)


# --- trees -------------------------------------------------------------------------------------


def splits(X, rows):
    """Columns that divide the rows, with the rows in which they are true and false."""
    for column in range(X.shape[1]):
        yes = X[rows, column]
        if yes.any() and not yes.all():
            yield column, rows[yes], rows[~yes]


def least_costs(X, leaf_cost, depth, min_rows, split_cost=None, rows=None, leaf_terms=None):
    """Least sum of costs by number of leaves, with the sum of its absolute terms.

    For trees of all rows, or of these. Sizes that no tree has are absent.

    ``leaf_cost(rows)`` is the cost of a leaf (inf if it is not allowed), ``split_cost(rows,
    asked, column)`` that of a split below splits on the columns ``asked``, ``leaf_terms(rows)`` the
    absolute terms of a leaf's cost; by default the cost has one sign.
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
                found[1] = cost, leaf_terms(rows) if leaf_terms else abs(cost)
            for column, yes, no in splits(X, rows) if depth else ():
                paid = split_cost(rows, asked, column) if split_cost else 0
                after = asked | {column} if split_cost else asked
                sides = least(yes, depth - 1, after), least(no, depth - 1, after)
                for (k, one), (m, other) in itertools.product(*(side.items() for side in sides)):
                    both = one[0] + other[0] + paid, one[1] + other[1] + paid
                    if k + m not in found or both < found[k + m]:
                        found[k + m] = both
        known[key] = found
        return found

    return least(np.arange(len(X)) if rows is None else rows, depth, frozenset())


def all_outcomes(X, leaf_outcomes, depth, min_rows, most_leaves):
    """All outcomes of trees, summed over leaves: (leaves, outcome...) with the terms.

    ``leaf_outcomes(rows)`` lists the possible contributions of a leaf, one for each label that it
    may have: the outcome and its absolute terms. If several trees have the same outcome, the least
    terms are kept.
    """
    known = {}

    def outcomes(rows, depth, most):
        key = rows.tobytes(), depth, most
        if key in known:
            return known[key]
        found = {}
        if len(rows) >= min_rows:
            found = {(1, *outcome): terms for outcome, terms in leaf_outcomes(rows)}
        for _, yes, no in splits(X, rows) if depth and most > 1 else ():
            one, other = (outcomes(side, depth - 1, most - 1) for side in (yes, no))
            for a, x in one.items():
                for b, y in other.items():
                    both = tuple(map(int.__add__, a, b))
                    if both[0] <= most and found.get(both, math.inf) > x + y:
                        found[both] = x + y
        known[key] = found
        return found

    return outcomes(np.arange(len(X)), depth, most_leaves)


def all_trees(X, leaf_cost, depth, min_rows, most_leaves):
    """Every tree as (cost, leaves, nest); the nest has the rows of leaves, nested like the tree.

    Splits that divide the rows of a node in the same way give the same nest.
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


# --- numbers -----------------------------------------------------------------------------------


def squared_errors(target, weight):
    """Cost of a leaf: weighted squared distances from the weighted mean."""
    (y, unit), (w, weight_unit) = whole(target), whole(weight)
    unit = unit**2 * weight_unit

    def cost(rows):
        total, sums = w[rows].sum(), (w[rows] * y[rows]).sum()
        squares = (w[rows] * y[rows] ** 2).sum()
        return units(unit * Fraction(squares * total - sums**2, total))

    return cost


# --- survival ----------------------------------------------------------------------------------


def hazards(time, event, entry, weight):
    """Baseline hazard of every row between entry and time; 1 / (W + 1) if it is zero."""
    w, unit = whole(weight)
    steps = {
        t: Fraction(w[event & (time == t)].sum(), w[(entry < t) & (t <= time)].sum())
        for t in np.unique(time[event])
    }
    total = [
        sum((step for t, step in steps.items() if before < t <= until), Fraction(0))
        for before, until in zip(entry, time, strict=True)
    ]
    return [hazard or 1 / (w.sum() * unit + 1) for hazard in total], steps


class Likelihood:
    """Saturated minus fitted log-likelihood, Huisman et al. (AAAI-24), eq. 20.

    A prior of a events at θ = 1 adds a(θ − 1 − ln θ), and θ minimises the sum.
    """

    def __init__(self, hazard, event, weight, prior=0.0):
        self.event, self.prior = event, Decimal(prior)
        w = np.array([Decimal(value) for value in weight.tolist()], dtype=object)
        h = np.array([decimal_of(value) for value in hazard], dtype=object)
        self.weight, self.hazard = w, w * h
        self.logarithm = w * np.array([value.ln() for value in h], dtype=object)

    def sums(self, rows):
        """Weight of the events, and sum of the hazards."""
        return self.weight[rows][self.event[rows]].sum() + Decimal(0), self.hazard[rows].sum()

    def theta(self, rows):
        events, sums = self.sums(rows)
        if self.prior > 0:
            return (events + self.prior) / (sums + self.prior)
        return (events or Decimal("0.5")) / sums

    def parts(self, rows):
        """The terms of the loss."""
        (events, sums), theta, a = self.sums(rows), self.theta(rows), self.prior
        if events == 0 and a == 0:
            return []
        of_rows = [-value for value in self.logarithm[rows][self.event[rows]]]
        fitted = [-events * theta.ln(), theta * sums - events]
        return [*of_rows, *fitted, *([a * (theta - 1), -a * theta.ln()] if a > 0 else [])]

    def cost(self, rows):
        value = sum(self.parts(rows), Decimal(0))
        size = sum(map(abs, self.parts(rows)), Decimal(0))
        return 0 if abs(value) <= NOTHING * size else units(value)

    def terms(self, rows):
        """Sizes of the terms. One is θ times the hazard, which equals the events."""
        return units(sum(map(abs, self.parts(rows)), self.sums(rows)[0]))


class HalfDeviance(Likelihood):
    """Half the Poisson deviance of counts with exposure, for the rate of a leaf."""

    def __init__(self, count, exposure, weight):
        w, y, m = (
            np.array([Decimal(value) for value in values.tolist()], dtype=object)
            for values in (weight, count, exposure)
        )
        self.prior, self.counted, self.exposed = Decimal(0), w * y, w * m
        logs = [(a / b).ln() if a else Decimal(0) for a, b in zip(y, m, strict=True)]
        self.logarithm = self.counted * np.array(logs, dtype=object)

    def sums(self, rows):
        return self.counted[rows].sum(), self.exposed[rows].sum()

    def parts(self, rows):
        counted, exposed = self.sums(rows)
        if counted == 0:
            return []
        return [*self.logarithm[rows], -counted * (counted / exposed).ln()]


class Brier:
    """Integrated Brier score with the censoring weights of all rows (docs/maths/brier.md)."""

    def __init__(self, time, event, weight):
        self.time, self.event = time, event
        self.weight = np.array([Decimal(value) for value in weight.tolist()], dtype=object)
        self.times = np.unique(time)
        ends = [Decimal(value) for value in self.times.tolist()]
        self.share = np.array(
            [(after - before) / ends[-1] for before, after in itertools.pairwise(ends)],
            dtype=object,
        )
        value, survival = Decimal(1), []
        for t in self.times:
            # The remaining rows are summed separately, so nothing cancels.
            staying = (time > t) | (event & (time == t))
            value *= self.weight[staying].sum() / self.weight[time >= t].sum()
            survival.append(value)
        self.inverse = np.array([1 / g if g > 0 else Decimal(0) for g in survival], dtype=object)

    def terms(self, rows):
        """V and N of the leaf at every time except the last."""
        time, event, weight = self.time[rows], self.event[rows], self.weight[rows]
        own = weight * self.inverse[np.searchsorted(self.times, time)]
        dead, alive = [], []
        for t, g in zip(self.times[:-1], self.inverse, strict=False):
            dead.append(own[(time <= t) & event].sum() + Decimal(0))
            alive.append(weight[time > t].sum() * g)
        return np.array(dead, dtype=object), np.array(alive, dtype=object)

    def kaplan_meier(self, rows):
        """Kaplan–Meier estimate of the rows at all times."""
        time, event, weight = self.time[rows], self.event[rows], self.weight[rows]
        value, curve = Decimal(1), []
        for t in self.times:
            if (event & (time == t)).any():
                staying = weight[(time > t) | (~event & (time == t))].sum()
                value *= staying / weight[time >= t].sum()
            curve.append(value)
        return np.array(curve, dtype=object)

    def best_curve(self, rows):
        """Non-increasing curve of least loss, by pooling neighbours that rise."""
        V, N = self.terms(rows)
        pools = []
        for p, q in zip(self.share * V, self.share * N, strict=True):
            # The curve stays constant at times without loss.
            pools.append([p, q, 1])
            while len(pools) > 1 and rises(pools[-2], pools[-1]):
                p, q, n = pools.pop()
                pools[-1] = [pools[-1][0] + p, pools[-1][1] + q, pools[-1][2] + n]
        curve = [q / (p + q) if p + q > 0 else Decimal(1) for p, q, n in pools for _ in range(n)]
        return np.array([*curve, Decimal(0)], dtype=object)

    def loss(self, rows, curve):
        V, N = self.terms(rows)
        S = curve[:-1]
        return units((self.share * (S**2 * V + (1 - S) ** 2 * N)).sum() + Decimal(0))


def rises(before, after):
    """Whether q/(p + q) of one pool exceeds that of the previous one, or is undefined."""
    (p, q, _), (v, n, _) = before, after
    return v + n == 0 or (p + q > 0 and n * (p + q) > q * (v + n))


def restricted_mean(times, survival, tau):
    """∫₀^τ S of a step function that is 1 before its first time; decimal numbers."""
    inside = int((times < tau).sum())
    edges = [Decimal(0), *(Decimal(t) for t in times[:inside].tolist()), Decimal(float(tau))]
    values = [Decimal(1), *survival[:inside]]
    return sum(
        (value * (after - before))
        for value, (before, after) in zip(values, itertools.pairwise(edges), strict=True)
    )


# --- labels ------------------------------------------------------------------------------------


def f1(wrong_positives, wrong_negatives, positives, negatives):
    """1 − F1 of the positive class, from misclassified weights."""
    right = positives - wrong_negatives
    return Fraction(wrong_positives + wrong_negatives) / (
        2 * right + wrong_positives + wrong_negatives
    )


def matthews(wrong_positives, wrong_negatives, positives, negatives):
    """1 − Matthews correlation; 1 if only one class is predicted."""
    tp, tn = positives - wrong_negatives, negatives - wrong_positives
    above = decimal_of(tp * tn - wrong_positives * wrong_negatives)
    square = positives * negatives * (tp + wrong_positives) * (tn + wrong_negatives)
    if square == 0:
        return Fraction(1)
    below = decimal_of(square).sqrt()
    if above <= 0:
        return Fraction(1 - above / below)
    left = square - (tp * tn - wrong_positives * wrong_negatives) ** 2
    return Fraction(decimal_of(left) / (below * (below + above)))


def signed_shares(weight, group, masses, pair=(0, 1)):
    """Contribution of rows to the weight of the second group minus that of the first.

    In units of 1 over the product of both masses.
    """
    of_group = {pair[0]: -masses[1], pair[1]: masses[0]}
    return weight * np.array([of_group.get(g, 0) for g in group.tolist()], dtype=object)


def dominated(costs, by, tie):
    """Which costs are dominated: another is lower by more than a tie in one, and higher in none."""
    costs, by = costs[:, None], by[None]
    return ((by <= costs + tie).all(axis=2) & (by < costs - tie).any(axis=2)).any(axis=1)
