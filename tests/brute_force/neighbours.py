"""Other trees than the best: with another split, nearly as good, or equally good."""

import itertools
import warnings
from fractions import Fraction

import exhaustive as plain
import numpy as np
import pytest
from checks import (
    PROOF,
    check_certificate,
    check_tree,
    fitted,
    is_at_most,
    is_near,
    nest_of,
    shown,
)
from drawing import Amount, Chosen, one_of
from fits import limits

from bristlecone import OptimalTree
from bristlecone.exceptions import BristleconeWarning
from bristlecone.trust import alternatives, near_optimal_trees


def lists_trees(problem):
    """Whether the engine can list other trees."""
    priced = problem.parameters.get("feature_costs") is not None
    own = problem.estimator is OptimalTree
    return not (isinstance(problem, Chosen) or priced or own)


def is_small(problem):
    """Whether the problem is small enough to list all trees."""
    return problem.features.shape[1] <= 3 or problem.depth <= 2


def refused(model, problem):
    """Searches that cannot list them raise an error."""
    for ask, more in ((alternatives, {}), (near_optimal_trees, {"epsilon": 0.1})):
        with pytest.raises(
            TypeError, match=r"sum over leaves, without constraints or feature costs|custom tasks"
        ):
            ask(model, problem.X, **problem.fit, **more)


def an_alternative_is_the_best_tree_with_another_question(problem, rng):
    problem = problem.without_reference()
    model = fitted(problem)
    if model.status_ == "infeasible":
        return
    if not lists_trees(problem):
        # Without groups, a fair tree is an ordinary classification tree.
        if model.certificate_.groups is not None or not isinstance(problem, Chosen):
            refused(model, problem)
        return
    truth = best_alternatives(problem, model)
    stopped = rng.random() < 0.2
    if stopped:
        model.certificate_.parameters.update(limits(rng))
    table = alternatives(model, problem.X, **problem.fit)
    names = model.certificate_.binary_features
    assert len(set(names)) == len(names)
    split = [model.splits_[node] for node in table["node"]]
    assert split == list(table["split"])
    columns = table["node"], table["alternative"], table["objective"], table["n_leaves"]
    found = {}
    for node, question, value, leaves in zip(*columns, strict=True):
        found[(node, names.index(question))] = value, leaves
    assert found.keys() == truth.keys() or (stopped and found.keys() <= truth.keys())
    for place, (value, leaves) in found.items():
        values = truth[place]
        best = min(values.values(), key=lambda one: one.value)
        for one in (Fraction(value), values[leaves].value):
            assert is_near(one, best), (place, value, leaves, shown(*values.values()))
    difference = np.asarray(table["objective"]) - model.objective_value_
    assert np.array_equal(table["difference"], difference)
    for node, question, asked in zip(
        table["node"], table["alternative"], table["is_chosen"], strict=True
    ):
        of_node = divisions(problem, model)[node]
        assert asked == (of_node[names.index(question)] == of_node[model.tree_.feature[node]])
    order = list(zip(table["node"], table["objective"], strict=True))
    assert order == sorted(order)


def divisions(problem, model):
    """How every split divides the rows of every node."""
    features = np.asarray(model.encoder_.transform(problem.X))[problem.kept].astype(bool)
    reach = model.decision_path(problem.X)[problem.kept].toarray().astype(bool)
    return [
        [(column ^ column[0]).tobytes() for column in features[reach[:, node]].T]
        for node in range(reach.shape[1])
    ]


def best_alternatives(problem, model):
    """By node and feature, the least objective of whole trees, by number of leaves."""
    features = np.asarray(model.encoder_.transform(problem.X))[problem.kept].astype(bool)
    tree = model.tree_
    reach = model.decision_path(problem.X)[problem.kept].toarray().astype(bool)
    leaves = np.flatnonzero(tree.children_left < 0)
    own = {leaf: problem.leaf_cost(np.flatnonzero(reach[:, leaf])) for leaf in leaves.tolist()}
    terms = problem.leaf_terms or (lambda rows: abs(problem.leaf_cost(rows)))
    sizes = {leaf: terms(np.flatnonzero(reach[:, leaf])) for leaf in leaves.tolist()}
    found = {}

    def visit(node, depth):
        if tree.children_left[node] < 0:
            return
        rows = np.flatnonzero(reach[:, node])
        others = [leaf for leaf in own if not reach[rows, leaf].any()]
        outside, outside_terms = (sum(of[leaf] for leaf in others) for of in (own, sizes))
        for column, yes, no in plain.splits(features, rows):
            sides = [
                plain.least_costs(
                    features, problem.leaf_cost, problem.depth - depth - 1, problem.min_rows,
                    rows=side, leaf_terms=problem.leaf_terms,
                )
                for side in (yes, no)
            ]  # fmt: skip
            values = {}
            for (k, one), (m, other) in itertools.product(*(side.items() for side in sides)):
                size = k + m + len(others)
                if size <= problem.most_leaves:
                    both = [x + y + z for x, y, z in zip(
                        one, other, (outside, outside_terms), strict=True
                    )]  # fmt: skip
                    value = Amount(*(problem.objective(part, size) for part in both))
                    if size not in values or value.value < values[size].value:
                        values[size] = value
            if values:
                found[(node, column)] = values
        visit(tree.children_left[node], depth + 1)
        visit(tree.children_right[node], depth + 1)

    visit(0, 0)
    return found


def listed_values(problem):
    """Every tree by its nest: its objective, as the nearest double, and its leaves."""
    trees = plain.all_trees(
        problem.features, problem.leaf_cost, problem.depth, problem.min_rows, problem.most_leaves
    )
    return {nest: (float(problem.objective(cost, leaves)), leaves) for cost, leaves, nest in trees}


def tie_size(problem, model):
    """Scale for ties of objectives: the terms of the best tree."""
    return float(min(problem.value(model).terms, 10**300))


def near_optimal_trees_are_all_and_near(problem, rng):
    if not lists_trees(problem) or not is_small(problem):
        return
    problem = problem.without_reference()
    model = fitted(problem)
    truth = listed_values(problem)
    values = np.sort([value for value, _ in truth.values()])
    best = values[0]
    tie = 1e-9 * tie_size(problem, model)
    steps = np.flatnonzero(np.diff(values) > 10 * tie)
    near = steps[steps < 60]
    if not near.size:
        near = np.array([min(len(values), 60) - 1])
    # Between two existing values, or 0.
    k = int(one_of(rng, *near))
    above = values[k + 1] if k + 1 < len(values) else values[k] + 0.1
    epsilon = one_of(rng, 0.0, (values[k] + above) / 2 - best, (values[k] + above) / 2 - best)
    within = {n: one for n, one in truth.items() if one[0] <= best + epsilon + 1.5 * tie}
    surely = {n for n, one in truth.items() if one[0] <= best + epsilon + 0.5 * tie}
    limit = one_of(rng, 1, 3, 100, 100, 100)
    stopped = rng.random() < 0.15
    if stopped:
        model.certificate_.parameters.update(limits(rng))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BristleconeWarning)
        trees = near_optimal_trees(model, problem.X, **problem.fit, epsilon=epsilon, limit=limit)
    assert 1 <= len(trees) <= limit
    found = [nest_of(problem, tree) for tree in trees]
    assert len(set(found)) == len(found)
    for tree in trees:
        check_tree(problem, tree)
        assert is_at_most(tree.lower_bound_, problem.optimum(problem.most_leaves)[0], PROOF)
    if stopped and trees[0].status_ not in ("optimal", "near_optimal"):
        assert len(trees) == 1 and not trees.complete
        return
    if problem.wide:
        # Ties and slacks are relative to the size of the values.
        if trees.complete:
            least = min(tree.objective_value_ for tree in trees)
            assert is_near(least, problem.optimum(problem.most_leaves)[0])
        return
    assert set(found) <= set(within)
    sizes = [tree.n_leaves_ for tree in trees]
    assert sizes == sorted(sizes)
    if trees.complete:
        assert not surely - set(found)
    else:
        assert len(within) >= len(found)
        least = sorted(truth[nest][1] for nest in surely)
        if len(surely) == len(within):
            assert len(within) > limit == len(found)
            assert sizes == least[:limit], (sizes, least)


def near_optimal_trees_of_no_slack_are_all_and_optimal(problem, rng):
    given = {"epsilon": 0, "limit": 1_000_000}
    models = near_optimal_trees(fitted(problem), problem.X, **problem.fit, **given)
    found = []
    for model in models:
        check_certificate(problem, model, is_first=False)
        assert is_near(model.trace_[-1][1], problem.value(model))
        found.append(nest_of(problem, model))
    if problem.wide:
        return
    value = {nest: one for nest, (one, _) in listed_values(problem).items()}
    best = min(value.values())
    tie = 1e-9 * tie_size(problem, models[0])
    assert len(set(found)) == len(found)
    assert max(value[nest] for nest in found) <= best + 1.5 * tie
    missing = {nest for nest in value if value[nest] <= best + 0.5 * tie} - set(found)
    assert not missing, f"{len(missing)} of {len(value)} are missing"
    assert [model.n_leaves_ for model in models] == sorted(m.n_leaves_ for m in models)
