"""Fits, stopped fits, sizes and fronts of random problems, compared with all trees."""

import math
from fractions import Fraction

import exhaustive as plain
import numpy as np
from checks import (
    PROOF,
    TIE,
    check_bounds,
    check_certificate,
    check_front,
    check_saved,
    check_tree,
    fitted,
    is_at_least,
    is_at_most,
    is_near,
    shown,
    writer,
)
from drawing import Amount, Chosen, one_of

from bristlecone._core import backends, tasks
from bristlecone._estimators.searched import again
from bristlecone.exceptions import InfeasibleError
from bristlecone.trust import verify


def a_fit_finds_the_best_tree_and_says_nothing_false(problem, rng):
    seen = []
    model = fitted(problem, callback=writer(seen))
    check_certificate(problem, model)
    check_bounds(problem, seen)
    check_saved(problem, model)
    if hasattr(model, "pareto_front_"):
        check_front(problem, model.pareto_front_)
        features = problem.features.astype(np.uint8)
        of_points = [
            problem.scored(
                point.tree.n_leaves,
                problem.costs_of(point.labels[point.tree.leaf_index(features)]),
                0, 0,
            )
            for point in model.pareto_front_
        ]  # fmt: skip
        assert is_near(model.objective_value_, min(of_points, key=lambda one: one.value))
    # Neither threads nor a callback change the tree.
    again = fitted(problem, problem.make(n_jobs=one_of(rng, 1, 2, 3)))
    assert again.objective_value_ == model.objective_value_
    if model.status_ != "infeasible":
        assert np.array_equal(again.tree_.feature, model.tree_.feature)


def limits(rng):
    """A limit that stops most searches, some, or none."""
    return [
        {"time_limit": 0},
        {"time_limit": float(10 ** rng.uniform(-6, -3))},
        {"memory_limit": int(10 ** rng.uniform(0, 5))},
    ][rng.integers(3)]


def check_stopped(problem, model, name, most_leaves=None):
    """All statements about a search are true, even if it was stopped; returns whether it was."""
    if model.status_ != name:
        check_certificate(problem, model, most_leaves)
        return False
    kept, allowed = problem.optimum(most_leaves or problem.most_leaves)
    assert is_at_most(model.lower_bound_, kept, PROOF)
    assert is_at_least(model.objective_value_, allowed)
    check_bounds(problem, model.trace_, model, most_leaves)
    if math.isfinite(model.objective_value_):
        assert model.gap_ >= 0
        check_tree(problem, model, most_leaves)
    return True


def a_stopped_search_says_nothing_false(problem, rng):
    limit = limits(rng)
    model, seen = problem.make(**limit), []
    name = next(iter(limit))
    try:
        fitted(problem, model, callback=writer(seen))
    except InfeasibleError as error:
        # No tree that keeps the constraints was found.
        assert name in str(error) and model.status_ == name
        assert math.isinf(model.objective_value_)
        check_bounds(problem, model.trace_, model)
    else:
        if check_stopped(problem, model, name):
            check_saved(problem, model)
    check_bounds(problem, seen)


class Enough(Exception):
    pass


def a_callback_ends_the_search_and_the_fit(problem, rng):
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


def the_size_path_has_the_best_value_of_every_size(problem, rng):
    problem = problem.without_reference()
    limit = limits(rng.spawn(1)[0]) if rng.random() < 0.2 else {}
    path = problem.make(**limit).size_path(problem.X, **problem.fit)
    sizes = min(problem.most_leaves, len(np.unique(problem.features, axis=0)))
    assert len(path) == sizes
    for leaves, model in enumerate(path, start=1):
        assert model.max_leaf_nodes == leaves
        if limit:
            check_stopped(problem, model, next(iter(limit)), leaves)
        else:
            check_certificate(problem, model, leaves)


def check_a_point(problem, points, rng):
    """One of the trees verifies, and a file of it predicts the same."""
    if len(points):
        tree = points[int(rng.integers(len(points)))].estimator
        found = verify(tree, problem.X, **problem.fit)
        assert found.ok, found
        check_saved(problem, tree)


def a_front_has_all_trees_that_are_not_dominated_and_no_other(problem, rng):
    limit = {"time_limit": 0} if rng.random() < 0.2 else {}
    given = problem.fit["sample_weight"]
    points = problem.make(**limit).pareto_front(problem.X, problem.fit["y"], given)
    check_front(problem, points)
    check_a_point(problem, points, rng)
    if limit and points.status == "time_limit":
        return
    assert points.status == "optimal"
    problem.optimum(problem.most_leaves)
    outcomes = [problem.numbers(outcome) for _, *outcome in problem.cache["outcomes"]]
    outcomes = np.array(outcomes, dtype=float)
    tie = TIE * problem.weight.sum()
    assert not plain.dominated(points.costs, outcomes, tie).any(), points.costs
    as_good = (points.costs[:, None] <= outcomes[None] + tie).all(axis=2).any(axis=0)
    assert as_good.all(), (points.costs, outcomes[~as_good])


def a_front_of_fair_trees_is_that_of_all_trees_within_the_limit(problem, rng):
    limit = {"time_limit": 0} if rng.random() < 0.2 else {}
    points = problem.make(**limit).pareto_front(problem.X, **problem.fit)
    check_a_point(problem, points, rng)
    problem.optimum(problem.most_leaves)
    within = [
        problem.costs_of(outcome)
        for leaves, *outcome in problem.cache["outcomes"]
        if leaves <= problem.most_leaves and problem.score(outcome, 0) < math.inf
    ]
    if not within:
        assert not len(points), points
        return
    within = np.array(within)
    assert (np.diff(points.costs[:, 0]) > 0).all() and (np.diff(points.costs[:, 1]) < 0).all()
    # The proof is relative to the objective (1e-9); differences are rates.
    tie = (points.costs * [1e-9, 0.0] + [0.0, 1e-12])[:, None]
    is_tree = (np.abs(points.costs[:, None] - within) <= tie).all(axis=2).any(axis=1)
    assert is_tree.all(), (points.costs, within)
    if limit and points.status == "time_limit":
        return
    assert points.status == "optimal"
    rounding = (points.costs * [1e-12, 0.0] + [0.0, 1e-12])[:, None]
    as_low = (within <= points.costs[:, None] + rounding).all(axis=2)
    dominated = as_low & (within < points.costs[:, None] - tie).any(axis=2)
    assert not dominated.any(), (points.costs, within)
    as_good = (points.costs[:, None] <= within[None] + tie).all(axis=2).any(axis=0)
    assert as_good.all(), (points.costs, within[~as_good])


# Switches of the searches for a task.
READ = {name: frozenset(switches) for name, _, switches in tasks()}

# Further settings, besides the random parameters.
SWITCHES = {
    "backend": tuple(backends()),
    "precision": ("short", "single", "double", "exact"),
    "equivalent_points": (False,),
    "lattice_depth": (0, 1, 2, 3, 4),
    "implied": (True, False),
    "relax_leaves": (True,),
    "look_ahead": (False,),
    "cache": (False,),
    "trivial_bound": (False,),
    "cells_per_thread": (1,),
}


def no_switch_changes_what_is_found(problem, rng):
    problem = problem.without_reference()
    model = fitted(problem)
    if model.status_ == "infeasible":
        return []
    asked = again(model, problem.X, **problem.fit)
    engine = asked.search.engine(asked.problem)

    def run(function, **others):
        return function(**asked.search.limits.settings(asked.problem, **others))

    read = READ[engine.solve.args[0]]
    drawn = {
        name: one_of(rng, *values)
        for name, values in SWITCHES.items()
        if name in read and rng.random() < 0.4
    }
    threads = one_of(rng, 1, 1, 2, 3)
    reported = model.objective_value_
    planted = {} if isinstance(problem, Chosen) else {"planted": reported}
    settings = {"options": {**drawn, **planted}, "n_threads": threads}

    terms = problem.optimum(problem.most_leaves)[0].terms

    def check(found, best):
        assert found.status == "optimal", (drawn, found.status)
        best = Amount(Fraction(best), terms + abs(Fraction(best)))
        assert is_near(found.objective, best), (drawn, found.objective, shown(best))
        assert found.lower_bound <= found.objective, drawn

    found = run(engine.solve, **settings)
    check(found, reported)
    tree = asked.tree(found, asked.problem, 0.0)
    check_tree(problem, tree)
    # The same switches must give the same tree again.
    repeated = run(engine.solve, **settings)
    assert repeated.objective == found.objective, drawn
    assert np.array_equal(repeated.feature, found.feature), drawn
    if engine.path is not None:
        plainly = run(engine.path)
        otherwise = run(engine.path, options=drawn, n_threads=threads)
        for one, other in zip(plainly, otherwise, strict=True):
            check(other, one.objective)
    if engine.near_optimal is not None:
        near = {"slack": 0.0, "limit": 200}
        plainly = run(engine.near_optimal, **near)
        otherwise = run(engine.near_optimal, options=drawn, n_threads=threads, **near)
        assert plainly[1] == otherwise[1], drawn
        if plainly[1]:
            assert parted(plainly[0]) == parted(otherwise[0]), drawn
    if engine.alternatives is not None and model.n_leaves_ > 1:
        nodes = model.tree_
        arrays = {"tree": (nodes.feature, nodes.children_left, nodes.children_right)}
        plainly = run(engine.alternatives, **arrays)
        otherwise = run(engine.alternatives, options=drawn, **arrays)
        for one, other in zip(plainly[:2], otherwise[:2], strict=True):
            assert np.array_equal(one, other), drawn
        for one, other in zip(plainly[2], otherwise[2], strict=True):
            assert is_near(one, Amount(Fraction(other), max(terms, abs(Fraction(other))))), drawn
    return [*(f"switch {name}={value}" for name, value in drawn.items()), f"{threads} threads"]


def parted(solutions):
    """The trees as a set of their arrays."""
    return {(tuple(one.feature.tolist()), tuple(one.children_left.tolist())) for one in solutions}
