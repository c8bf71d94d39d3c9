"""Checks of a tree that is fitted to any random problem."""

import itertools
import math
import pickle
from fractions import Fraction

import exhaustive as plain
import numpy as np

from bristlecone import OptimalTree
from bristlecone._model.registry import dumps, loads

# Guaranteed accuracy of an objective and of a bound, relative to their terms.
NEAR, PROOF = Fraction(1, 10**9), Fraction(1, 10**12)
# Sums of weights that differ by less than this share of all weights may be equal.
TIE = 1e-15
# Largest relative error of rounding to a double.
TINY = Fraction(5e-324)


def proof_of(problem):
    """How much a bound may exceed the optimum, as a share of its terms."""
    # Sums of a user's statistics are rounded before the task receives them.
    return NEAR if problem.estimator is OptimalTree else PROOF


def exact(number):
    return number if math.isinf(number) else Fraction(number)


def close(one, other, size=0.0):
    """Equal to within 1e-9, relative to the larger one or to the terms of their differences."""
    if math.isinf(one) or math.isinf(other):
        return one == other
    return abs(one - other) <= 1e-9 * max(size, abs(one), abs(other))


def is_near(reported, true):
    """Whether a number equals the true one, which has the size of its terms."""
    if math.isinf(reported) or math.isinf(true.value):
        return reported == true.value
    return abs(Fraction(reported) - true.value) <= NEAR * true.terms + TINY


def is_at_most(reported, true, share=NEAR):
    """Whether a number is at most the true one, up to a share of its terms."""
    if math.isinf(reported) or math.isinf(true.value):
        return reported <= true.value
    return Fraction(reported) - true.value <= share * true.terms + TINY


def is_at_least(reported, true):
    return is_near(reported, true) or reported >= true.value


def is_proven(objective, bound, terms=0):
    """Whether bound and objective meet, relative to the terms of the tree if these cancel."""
    objective, bound = exact(objective), exact(bound)
    return 0 <= objective - bound <= NEAR * max(abs(objective), terms)


def shown(*amounts):
    """Amounts as readable numbers."""
    return [f"{float(one.value)!r} of terms {float(one.terms)!r}" for one in amounts]


def fitted(problem, model=None, **more):
    model = problem.make() if model is None else model
    return model.fit(problem.X, **problem.fit, **more)


def writer(points):
    """A callback that records the reports of a search."""
    return lambda progress: points.append(
        (progress.seconds, progress.objective, progress.lower_bound)
    )


def check_tree(problem, model, most_leaves=None):
    """The tree keeps all limits and has the reported cost."""
    tree, leaves = model.tree_, problem.leaves(model)
    assert model.depth_ <= problem.depth
    assert model.n_leaves_ == len(leaves) <= (most_leaves or problem.most_leaves)
    assert min(map(len, leaves)) >= problem.min_rows
    assert sorted(tree.n_node_samples[tree.children_left < 0]) == sorted(map(len, leaves))
    value = problem.value(model)
    assert is_near(model.objective_value_, value), (model.objective_value_, shown(value))
    # Predictions are rounded as the doubles are that they are compared with.
    for said, true, *size in () if problem.wide else problem.also(model):
        assert close(said, true, *size), (said, true, *size)


def check_bounds(problem, points, final=None, most_leaves=None):
    """No bound is above the optimum, no objective is below it, and neither ever gets worse."""
    kept, allowed = problem.optimum(most_leaves or problem.most_leaves)
    # Before the tree is returned, its costs come from sums in which heavy rows hide light ones.
    rounded = problem.wide and problem.estimator is OptimalTree
    for seconds, objective, bound in points:
        assert seconds >= 0
        assert is_at_most(bound, kept, proof_of(problem)), ("bound", bound, shown(kept))
        if not rounded or (final is not None and objective == final.objective_value_):
            assert is_at_least(objective, allowed), ("objective", objective, shown(allowed))
        assert bound <= objective
    for before, after in itertools.pairwise(points):
        assert before[0] <= after[0]
        # If both have met, the last point belongs to the returned tree, summed over its rows.
        if after is not points[-1] or after[1] != after[2]:
            assert before[2] <= after[2], ("bounds fall", before, after)
            assert after[1] <= before[1], ("objectives rise", before, after)
    if final is not None:
        assert points[-1][1:] == (final.objective_value_, final.lower_bound_)


def check_certificate(problem, model, most_leaves=None, is_first=True):
    """All statements about a completed search are true.

    If several trees are equally good, the trace belongs to the first.
    """
    kept, allowed = problem.optimum(most_leaves or problem.most_leaves)
    assert is_at_most(model.lower_bound_, kept, proof_of(problem)), (
        model.lower_bound_,
        shown(kept),
    )
    assert is_at_least(model.objective_value_, allowed), (model.objective_value_, shown(allowed))
    check_bounds(problem, model.trace_, model if is_first else None, most_leaves)
    if math.isinf(model.objective_value_):
        assert model.status_ == "infeasible" and math.isinf(allowed.value)
        return
    check_tree(problem, model, most_leaves)
    assert model.gap_ >= 0
    if problem.reference is not None:
        # A tree without loss is optimal for any reference model.
        met = is_proven(model.objective_value_, model.lower_bound_)
        assert model.status_ == ("optimal" if met else "reference_optimal")
        assert close(model.reference_loss_, problem.reference)
        assert Fraction(model.objective_value_) - kept.value <= model.guarantee_ + NEAR * kept.terms
        return
    assert model.status_ == "optimal"
    assert is_at_most(model.objective_value_, kept), (model.objective_value_, shown(kept))
    terms = problem.value(model).terms
    first = model.objective_value_ if is_first else model.trace_[-1][1]
    assert is_proven(first, model.lower_bound_, terms), (first, model.lower_bound_)
    # Any other one is as good as the first.
    apart = abs(exact(model.objective_value_) - exact(first))
    assert apart <= NEAR * max(abs(exact(first)), terms), (model.objective_value_, first)


def check_saved(problem, model):
    """A file contains the same as the estimator, or the error says that it cannot be saved."""
    others = [pickle.loads(pickle.dumps(model))]
    found = model.status_ != "infeasible"
    # Custom encoders and random states are objects, which files do not contain.
    plain_parameters = problem.parameters["encoder"] == "auto" and not isinstance(
        problem.parameters.get("random_state"), np.random.RandomState
    )
    if problem.saved and found and plain_parameters:
        others.append(loads(dumps(model), type(model)))
        assert dumps(others[-1]) == dumps(model)
    for other in others:
        for name in ("objective_value_", "lower_bound_", "status_", "trace_", "gap_"):
            assert getattr(other, name) == getattr(model, name), name
        for method in ("apply", "predict") if found else ():
            if hasattr(model, method):
                expected = getattr(model, method)(problem.X)
                assert np.array_equal(getattr(other, method)(problem.X), expected)


def check_front(problem, front):
    """Every point is a tree within the limits with these costs, and no tree is better in both."""
    tie = TIE * problem.weight.sum()
    for point in front:
        leaf = point.tree.leaf_index(problem.features.astype(np.uint8))
        costs = problem.numbers(problem.costs_of(point.labels[leaf]))
        assert np.abs(np.array(costs) - point.costs).max() <= tie
        assert point.tree.n_leaves <= problem.most_leaves
        assert np.bincount(leaf).min() >= problem.min_rows
    costs = front.costs
    if problem.penalty:
        costs = np.column_stack([costs, [point.tree.n_leaves for point in front]])
    assert not plain.dominated(costs, costs, tie).any(), costs
    assert len(np.unique(np.round(costs / tie), axis=0)) == len(front)


def nest_of(problem, model):
    """The rows of the leaves of a fitted tree, nested like the tree."""
    tree = model.tree_
    reach = model.decision_path(problem.X)[problem.kept].toarray().astype(bool)

    def nest(node):
        if tree.children_left[node] < 0:
            return frozenset(np.flatnonzero(reach[:, node]).tolist())
        return frozenset(nest(child[node]) for child in (tree.children_left, tree.children_right))

    return nest(0)
