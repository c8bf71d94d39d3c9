"""Random combinations of all parameters of every estimator, against every tree there is.

``BRISTLECONE_CASES`` is the number of problems of every kind, ``BRISTLECONE_SEED`` the first seed;
``just explore`` takes many from a fresh one. A failure names its seed: alone it is
``BRISTLECONE_SEED=... BRISTLECONE_CASES=1``.
"""

import contextlib
import inspect
import itertools
import math
import os
import pickle
import warnings

import exhaustive as plain
import numpy as np
import pytest
from drawing import one_of
from problems import DRAWS, front, listed

from bristlecone.errors import BristleconeWarning, InfeasibleError
from bristlecone.model.registry import dumps, loads

CASES = int(os.environ.get("BRISTLECONE_CASES", "50"))
SEED = int(os.environ.get("BRISTLECONE_SEED", "0"))

# Of a loss of zero, which may come out on either side.
ROUNDING = 1e-15

kinds = pytest.mark.parametrize("kind", DRAWS)


def for_each(draw, check, share=1.0):
    """Check problems of consecutive seeds; an error tells the seed and what was drawn."""
    for seed in range(SEED, SEED + math.ceil(CASES * share)):
        problem = draw(np.random.default_rng(seed))
        # Small data are constant, constrained and stopped: what is said of them is meant.
        with told(seed, problem), warnings.catch_warnings():
            warnings.simplefilter("ignore", BristleconeWarning)
            check(problem, np.random.default_rng(seed))


@contextlib.contextmanager
def told(seed, problem):
    try:
        yield
    except Exception as error:
        raise AssertionError(
            f"BRISTLECONE_SEED={seed}: {problem.estimator.__name__} {problem.parameters}"
        ) from error


def close(one, other, scale=0.0):
    """Equal to within 1e-9 of the larger of 1 and either."""
    if math.isinf(one) or math.isinf(other):
        return one == other
    return abs(one - other) <= 1e-9 * max(1.0, abs(one), abs(other), scale)


def at_most(one, other, scale=0.0):
    return one <= other or close(one, other, scale)


def fitted(problem, model=None, **more):
    model = problem.make() if model is None else model
    return model.fit(problem.X, **problem.fit, **more)


def writer(points):
    """A callback that writes down what it is told."""
    return lambda told: points.append((told.seconds, told.objective, told.lower_bound))


def check_tree(problem, model, most_leaves=None):
    """The tree keeps all limits, and costs what it is said to cost."""
    tree, leaves = model.tree_, problem.leaves(model)
    assert model.depth_ <= problem.depth
    assert model.n_leaves_ == len(leaves) <= (most_leaves or problem.most_leaves)
    assert min(map(len, leaves)) >= problem.min_rows
    assert sorted(tree.n_node_samples[tree.children_left < 0]) == sorted(map(len, leaves))
    value = problem.value(model)
    assert close(model.objective_value_, value, problem.scale), (model.objective_value_, value)
    for said, true in problem.also(model):
        assert close(said, true, problem.scale), (said, true)


def check_bounds(problem, points, final=None, most_leaves=None):
    """No bound above the optimum, no objective below it, neither ever worse than before."""
    kept, allowed = problem.optimum(most_leaves or problem.most_leaves)
    for seconds, objective, bound in points:
        assert seconds >= 0
        assert at_most(bound, kept, problem.scale), ("bound", bound, kept)
        assert at_most(allowed, objective, problem.scale), ("objective", objective, allowed)
        assert bound <= objective
    for before, after in itertools.pairwise(points):
        assert before[0] <= after[0]
        assert before[2] <= after[2] + ROUNDING, ("bounds fall", before, after)
        assert after[1] <= before[1] + ROUNDING, ("objectives rise", before, after)
    if final is not None:
        assert points[-1][1:] == (final.objective_value_, final.lower_bound_)


def check_certificate(problem, model, most_leaves=None):
    """What is said of a completed search holds."""
    kept, allowed = problem.optimum(most_leaves or problem.most_leaves)
    assert at_most(model.lower_bound_, kept, problem.scale), (model.lower_bound_, kept)
    assert at_most(allowed, model.objective_value_, problem.scale)
    check_bounds(problem, model.trace_, model, most_leaves)
    if math.isinf(model.objective_value_):
        assert model.status_ == "infeasible" and math.isinf(allowed)
        return
    check_tree(problem, model, most_leaves)
    assert model.gap_ >= 0
    if problem.reference is not None:
        assert model.status_ == "reference_optimal"
        assert close(model.reference_loss_, problem.reference)
        assert at_most(model.objective_value_ - kept, model.guarantee_)
        return
    assert model.status_ == "optimal"
    assert at_most(model.objective_value_, kept, problem.scale), (model.objective_value_, kept)
    assert model.gap_ <= 1e-9 * max(1.0, abs(model.objective_value_))


def check_saved(problem, model):
    """A file tells the same as the estimator, or says that there is none."""
    others = [pickle.loads(pickle.dumps(model))]
    found = model.status_ != "infeasible"
    # Other encoders and random states are objects that no file has.
    plain_parameters = problem.parameters["encoder"] == "auto" and not isinstance(
        problem.parameters["random_state"], np.random.RandomState
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


@kinds
def test_a_fit_finds_the_best_tree_and_says_nothing_false(kind):
    def check(problem, rng):
        seen = []
        model = fitted(problem, callback=writer(seen))
        check_certificate(problem, model)
        check_bounds(problem, seen)
        check_saved(problem, model)
        if hasattr(model, "pareto_front_"):
            check_front(problem, model.pareto_front_)
            leaves = np.array([point.tree.n_leaves for point in model.pareto_front_])
            values = problem.score(model.pareto_front_.costs, 0) + problem.penalty * leaves
            assert close(values.min(), model.objective_value_)
        # Neither threads nor a callback change the tree.
        again = fitted(problem, problem.make(n_jobs=one_of(rng, 1, 2, 3)))
        assert again.objective_value_ == model.objective_value_
        if model.status_ != "infeasible":
            assert np.array_equal(again.tree_.feature, model.tree_.feature)

    for_each(DRAWS[kind], check)


class Enough(Exception):
    pass


@kinds
def test_a_stopped_search_says_nothing_false(kind):
    def check(problem, rng):
        limit = [
            {"time_limit": 0},
            {"time_limit": float(10 ** rng.uniform(-6, -3))},
            {"memory_limit": int(10 ** rng.uniform(0, 5))},
        ][rng.integers(3)]
        model, seen = problem.make(**limit), []
        name = next(iter(limit))
        try:
            fitted(
                problem,
                model,
                callback=writer(seen),
            )
        except InfeasibleError as error:
            # No tree that keeps the constraints was met.
            assert name in str(error) and model.status_ == name
            assert math.isinf(model.objective_value_)
            check_bounds(problem, model.trace_, model)
        else:
            kept, allowed = problem.optimum(problem.most_leaves)
            if model.status_ == name:
                assert at_most(model.lower_bound_, kept, problem.scale)
                assert at_most(allowed, model.objective_value_, problem.scale)
                assert model.gap_ >= 0
                check_tree(problem, model)
                check_bounds(problem, model.trace_, model)
                check_saved(problem, model)
            else:
                check_certificate(problem, model)
        check_bounds(problem, seen)

    for_each(DRAWS[kind], check)


@kinds
def test_a_callback_ends_the_search_and_the_fit(kind):
    def check(problem, rng):
        model, seen = problem.make(), []

        def callback(progress):
            writer(seen)(progress)
            if len(seen) > 1:
                raise Enough

        try:
            fitted(problem, model, callback=callback)
            assert len(seen) < 2
        except Enough:
            assert len(seen) >= 2 and not hasattr(model, "objective_value_")
        check_bounds(problem, seen)

    for_each(DRAWS[kind], check, share=0.5)


@kinds
def test_the_size_path_has_the_best_value_of_every_size(kind):
    def check(problem, rng):
        fit = {name: value for name, value in problem.fit.items() if name != "reference_loss"}
        problem.reference = None
        path = problem.make().size_path(problem.X, **fit)
        sizes = min(problem.most_leaves, len(np.unique(problem.features, axis=0)))
        assert len(path) == sizes
        for leaves, model in enumerate(path, start=1):
            assert model.max_leaf_nodes == leaves
            check_certificate(problem, model, leaves)

    for_each(DRAWS[kind], check, share=0.5)


def check_front(problem, front):
    """Every point is a tree within the limits with these costs, and none is better in both."""
    tie = 1e-9 * max(1.0, problem.weight.sum())
    for point in front:
        leaf = point.tree.leaf_index(problem.features.astype(np.uint8))
        costs = problem.costs_of(point.labels[leaf])
        assert np.abs(np.array(costs) - point.costs).max() <= tie
        assert point.tree.n_leaves <= problem.most_leaves
        assert np.bincount(leaf).min() >= problem.min_rows
    costs = front.costs
    if problem.penalty:
        costs = np.column_stack([costs, [point.tree.n_leaves for point in front]])
    assert not plain.dominated(costs, costs, tie).any(), costs
    assert len(np.unique(np.round(costs / tie), axis=0)) == len(front)


def test_a_front_has_all_trees_that_are_not_dominated_and_no_other():
    def check(problem, rng):
        limit = {"time_limit": 0} if rng.random() < 0.2 else {}
        given = problem.fit["sample_weight"]
        points = problem.make(**limit).pareto_front(problem.X, problem.fit["y"], given)
        check_front(problem, points)
        if limit and points.status == "time_limit":
            return
        assert points.status == "optimal"
        problem.optimum(problem.most_leaves)
        outcomes = problem.cache["outcomes"][:, 1:]
        tie = 1e-9 * max(1.0, problem.weight.sum())
        assert not plain.dominated(points.costs, outcomes, tie).any(), points.costs
        as_good = (points.costs[:, None] <= outcomes[None] + tie).all(axis=2).any(axis=0)
        assert as_good.all(), (points.costs, outcomes[~as_good])

    for_each(front, check)


@pytest.mark.parametrize("objective", ["likelihood", "brier"])
def test_all_optimal_trees_are_all_and_optimal(objective):
    def check(problem, rng):
        given = problem.fit["sample_weight"]
        models = problem.make().all_optimal_trees(
            problem.X, problem.fit["y"], given, limit=1_000_000
        )
        found = []
        for model in models:
            check_certificate(problem, model)
            found.append(nest_of(problem, model))
        trees = plain.all_trees(
            problem.features, problem.leaf_cost, problem.depth, problem.min_rows,
            problem.most_leaves,
        )  # fmt: skip
        value = {
            nest: cost / problem.total + problem.penalty * leaves for cost, leaves, nest in trees
        }
        best = min(value.values())
        tie = 1e-9 * max(1.0, abs(best))
        assert len(set(found)) == len(found)
        assert max(value[nest] for nest in found) <= best + 1.5 * tie
        missing = {nest for nest in value if value[nest] <= best + 0.5 * tie} - set(found)
        assert not missing, f"{len(missing)} of {len(value)} are missing"
        assert [model.n_leaves_ for model in models] == sorted(m.n_leaves_ for m in models)

    for_each(lambda rng: listed(rng, objective), check)


def nest_of(problem, model):
    """The rows of a fitted tree, parted as it parts them."""
    tree = model.tree_
    reach = model.decision_path(problem.X)[problem.kept].toarray().astype(bool)

    def nest(node):
        if tree.children_left[node] < 0:
            return frozenset(np.flatnonzero(reach[:, node]).tolist())
        return frozenset(nest(child[node]) for child in (tree.children_left, tree.children_right))

    return nest(0)


@kinds
def test_every_parameter_takes_part(kind):
    """A new parameter must be drawn: every one is named, and none is always the same."""
    problems = [DRAWS[kind](np.random.default_rng(seed)) for seed in range(150)]
    estimator = problems[0].estimator
    parameters = set(inspect.signature(estimator).parameters)
    assert all(set(problem.parameters) == parameters for problem in problems)
    for name in parameters - problems[0].constant:
        values = {repr(problem.parameters[name]) for problem in problems}
        assert len(values) > 1, f"{name} is always {values}"
    arguments = set(inspect.signature(estimator.fit).parameters) - {"self", "X", "callback"}
    drawn = {name for problem in problems for name in problem.fit if problem.fit[name] is not None}
    assert drawn == arguments - problems[0].elsewhere
