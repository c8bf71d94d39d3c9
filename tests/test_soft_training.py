"""Training of soft trees: gradients, descent, and shares of leaves."""

import copy
import dataclasses
import itertools

import numpy as np
import pytest
from scipy.integrate import trapezoid
from threadpoolctl import threadpool_limits

from bristlecone._soft import routing
from bristlecone._soft.models import MODELS, Sample
from bristlecone._soft.training.balance import imbalance, leaf_shares
from bristlecone._soft.training.fairness import Fairness, gini_mix, pair_distance, quadrature
from bristlecone._soft.training.initialise import initial
from bristlecone._soft.training.joint import Trained
from bristlecone._soft.training.nodec import _step, fit_nodec
from bristlecone._soft.training.problem import Parameters, Problem, Rows
from bristlecone._soft.training.train import chosen

LEAVES = sorted(MODELS)


def problem(leaf, *, depth=2, fair=None, n=50, p=3, seed=0, l1=0.0, pooling=3.0, balance=0.3):
    """A small problem with every penalty; ``fair`` is "mixture" or "one leaf"."""
    random = np.random.default_rng(seed)
    y, event = random.normal(size=n), random.random(n) < 0.6
    weight = random.uniform(0.5, 1.5, size=n)
    weight /= weight.sum()
    model = MODELS[leaf].prepare(Sample(y, event, weight), 2)
    rows = Rows(
        np.vstack([random.normal(size=(p, n)), np.ones(n)]),
        model.clock(y),
        event.astype(float),
        weight,
    )
    fairness = None
    if fair:
        at, step = quadrature(np.linspace(0.1, 4.0))
        group = random.random(n) < 0.4
        sides, clock = (1.0 * group, 1.0 * ~group), model.clock(np.log(at))
        fairness = Fairness(0.02, model, rows.design, *sides, clock, step, fair == "mixture")
    scale = np.full(p, 0.3)
    return Problem(rows, scale, model, depth, 0.1, 0.2, l1, fairness, pooling, balance)


def anywhere(of, seed=1):
    random = np.random.default_rng(seed)
    splits = 0.7 * random.normal(size=(routing.n_splits(of.depth), of.width))
    leaves = routing.n_leaves(of.depth)
    linear = 0.5 * random.normal(size=(leaves, of.width))
    return Parameters(splits, linear, 0.5 * random.normal(size=(leaves, of.model.n_shape)))


@pytest.mark.parametrize("last", [10.0, 200.0, 20_000.0])
@pytest.mark.parametrize(("one", "other"), [(0.7, 1.5), (1.5, 6.0)])
def test_the_integral_is_close_however_long_few_rows_are_followed(last, one, other):
    times = np.append(2 * np.random.default_rng(0).weibull(1.5, 400), [last, last])

    def difference(t):
        return (np.exp(-((t / 0.8) ** one)) - 1 / (1 + (t / 2) ** other)) ** 2

    at, step = quadrature(times)
    fine = np.geomspace(times.min(), last, 200_001)
    assert step @ difference(at) == pytest.approx(trapezoid(difference(fine), fine), rel=0.02)


def assert_gradient(fused, x, atol=2e-8):
    _value, slope = fused(x)
    steps = 1e-6 * np.eye(len(x))
    expected = [(fused(x + s)[0] - fused(x - s)[0]) / 2e-6 for s in steps]
    np.testing.assert_allclose(slope, expected, atol=atol)
    assert np.abs(slope).max() > 1e-3


@pytest.mark.parametrize("fair", [None, "mixture"])
@pytest.mark.parametrize("leaf", LEAVES)
def test_gradient_of_all_parameters(leaf, fair):
    of = problem(leaf, fair=fair)
    x = of.vector(anywhere(of))
    assert_gradient(of.joint, x)
    assert of.joint(x)[0] == pytest.approx(of.objective(of.parameters(x)), rel=1e-13)


@pytest.mark.parametrize("fair", [None, "one leaf"])
@pytest.mark.parametrize("leaf", LEAVES)
def test_gradient_of_the_leaves_with_fixed_splits(leaf, fair):
    of = problem(leaf, fair=fair)
    at = anywhere(of)
    logit = at.splits @ of.rows.design
    member = routing.leaf_probabilities(logit) * of.rows.weight
    path = routing.hard_leaf(logit)
    packed = of.pack(at.linear, at.shape)
    assert_gradient(lambda x: of.leaves_alone(x, member, path), packed)
    only_splits = of.split_penalty(at.splits.ravel())[0]
    only_splits += of.balance * imbalance(logit, of.rows.weight)[0]
    value = of.leaves_alone(packed, member, path)[0] + only_splits
    assert value == pytest.approx(of.objective(at), rel=1e-12)


def test_gradient_of_the_splits_of_a_subtree():
    of = problem("weibull", depth=3)
    at = anywhere(of)
    below, leaves = routing.subtree(3, 2)
    losses = of.loss(at.linear[leaves], at.shape[leaves], of.rows).value
    assert below.tolist() == [2, 5, 6] and leaves.tolist() == [4, 5, 6, 7]
    assert_gradient(
        lambda x: of.split_objective(x, of.rows, losses, 0.7, 0.5), at.splits[below].ravel()
    )


def test_probabilities_are_products_along_the_paths():
    logit = np.random.default_rng(0).normal(size=(7, 20))
    p = 1 / (1 + np.exp(-logit))
    found = routing.leaf_probabilities(logit)
    for leaf, turns in enumerate(itertools.product((0, 1), repeat=3)):
        expected, node = np.ones(20), 0
        for turn in turns:
            expected *= 1 - p[node] if turn else p[node]
            node = 2 * node + 1 + turn
        np.testing.assert_allclose(found[leaf], expected, rtol=1e-13)
    losses = np.random.default_rng(1).normal(size=(8, 20))
    value, _ = routing.expected(logit, losses)
    np.testing.assert_allclose(value, (found * losses).sum(axis=0), rtol=1e-12)
    far = routing.leaf_probabilities(np.full((1, 1), 800.0))
    assert far.tolist() == [[1.0], [0.0]]


def test_distance_of_groups_is_the_sum_over_all_pairs():
    random = np.random.default_rng(0)
    survival, step = random.random((30, 5)), random.random(5)
    weight, group = random.uniform(0, 2, size=30), random.random(30) < 0.3
    value, slope = pair_distance(survival, weight * group, weight * ~group, step)
    expected = sum(
        weight[i] * weight[j] * step @ (survival[i] - survival[j]) ** 2
        for i in np.flatnonzero(group)
        for j in np.flatnonzero(~group)
    )
    assert value == pytest.approx(expected, rel=1e-12)
    nudged = survival.copy()
    nudged[3, 2] += 1e-6
    more = pair_distance(nudged, weight * group, weight * ~group, step)[0]
    assert slope[3, 2] == pytest.approx((more - value) / 1e-6, rel=1e-4)


def test_gini_mix_is_one_for_even_leaves_and_zero_for_pure_ones():
    leaf = np.array([0, 0, 1, 1, 1, 1, 3])
    group = np.array([True, False, True, True, True, True, False])
    plain, weighted = gini_mix(leaf, group, np.ones(7))
    assert plain == pytest.approx(1 / 3) and weighted == pytest.approx(2 / 7)


def test_imbalance_is_that_of_even_shares_and_its_gradient_that_of_finite_differences():
    random = np.random.default_rng(0)
    weight = random.uniform(0.5, 1.5, size=40)
    weight /= weight.sum()
    logit = random.normal([[0.5], [-1.0], [0.2]], size=(3, 40))
    assert_gradient(
        lambda x: (
            (found := imbalance(x.reshape(logit.shape), weight))[0],
            found[1].ravel(),
        ),
        logit.ravel(),
    )
    # Two crossing splits through the middle of a square give four even leaves.
    side = np.repeat([-1.0, 1.0], 2), np.tile([-1.0, 1.0], 2)
    even = np.stack([side[0], side[1], side[1]])
    assert imbalance(even, np.full(4, 0.25))[0] == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(leaf_shares(even, np.full(4, 0.25)), 0.25)
    # One of two leaves has 1, 10 or 30 of 100 rows: fewer rows cost more, and level splits
    # (all probabilities near 1/2) cost more than even ones.
    along = np.linspace(-1, 1, 100)[np.newaxis]
    for scale in (0.5, 1.0, 100.0):
        cost = [
            imbalance(scale * (along - along[0, k]), np.full(100, 0.01))[0] for k in (1, 10, 30, 50)
        ]
        assert cost[0] > 0.5 and cost[0] > cost[1] > cost[2] > cost[3] and cost[3] < 0.01


def test_leaves_that_are_alike_pay_as_one_and_the_paper_has_a_penalty_for_each():
    of = problem("weibull", pooling=3.0)
    leaf = np.random.default_rng(0).normal(size=of.n_leaf_parameters)
    alone = of.penalty_alone(leaf)[0]
    assert of.penalty(np.tile(leaf, 4))[0] == pytest.approx(alone)
    plain = dataclasses.replace(of, pooling=None)
    assert plain.penalty(np.tile(leaf, 4))[0] == pytest.approx(4 * alone)
    # Deviations of ±d from the mean: π times the penalty of each.
    apart = np.random.default_rng(1).normal(size=of.n_leaf_parameters)
    both = np.concatenate([leaf + apart, leaf - apart])
    expected = alone + 3.0 * 2 * of.penalty_alone(apart)[0]
    assert of.penalty(both)[0] == pytest.approx(expected)


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_decomposition_improves_its_start_at_every_depth(depth):
    of = problem("log-logistic", depth=depth, n=200)
    start = initial(of, "random", np.random.RandomState(0))
    with threadpool_limits(limits=1):
        found = fit_nodec(of, start, n_macro=5, max_iter=300, tol=1e-5)
    assert found.value == pytest.approx(of.objective(found.parameters), rel=1e-12)
    assert found.value < of.objective(start) - 0.01
    assert found.converged and of.steepness(found.parameters).max() < 1e-3


@pytest.mark.parametrize(("share", "flips"), [(0.0, True), (0.2, False)])
def test_rows_are_reassigned_where_a_split_is_unbalanced(share, flips):
    of = problem("weibull", depth=1, n=400)
    at = anywhere(of)
    at.linear[0, :2] = 2.0, 0.0  # the left leaf has large errors if the first feature is low
    along = at.splits[0, :-1] @ of.rows.design[:-1]
    at.splits[0, -1] = -np.quantile(along, share) + (1e-9 if share else 1.0)
    before = routing.hard_leaf(at.splits @ of.rows.design)
    assert (before == 1).mean() == pytest.approx(share, abs=0.01)
    after = routing.hard_leaf(_step(of, at, 0, np.array([0.3, 0.1, 0.4])).splits @ of.rows.design)
    if flips:
        # All rows were in one leaf; those with the largest errors had to move.
        assert 0.05 < (after == 1).mean() < 0.95
        loss = of.loss(at.linear, at.shape, of.rows).value[0]
        assert loss[after == 1].mean() > loss[after == 0].mean()
    else:
        # With even weights the smaller side keeps its rows.
        assert (after == before).mean() > 0.9


def test_halves_of_a_tree_are_the_subtrees_of_the_root():
    halves = [routing.subtree(3, child)[0] for child in (1, 2)]
    assert [half.tolist() for half in halves] == [[1, 3, 4], [2, 5, 6]]
    of = problem("weibull", depth=3)
    at = anywhere(of)
    losses = of.loss(at.linear, at.shape, of.rows).value
    logit = at.splits @ of.rows.design
    whole, _ = routing.expected(logit, losses)
    sides = [
        routing.expected(logit[half], losses[4 * side : 4 * side + 4])[0]
        for side, half in enumerate(halves)
    ]
    above, _ = routing.expected(logit[:1], np.stack(sides))
    np.testing.assert_allclose(above, whole, rtol=1e-12)


# Recovery of known trees


def test_restarts_that_hold_the_share_come_before_better_ones_that_do_not():
    of = problem("weibull", depth=1)
    at = anywhere(of)
    even, empty = copy.deepcopy(at), copy.deepcopy(at)
    even.splits[0, -1] -= np.median(even.splits[0] @ of.rows.design)
    empty.splits[0, -1] = 100.0
    worse, better = Trained(even, 2.0, [2.0], True), Trained(empty, 1.0, [1.0], True)
    assert chosen(of, [better, worse], 0.05) is worse
    assert chosen(of, [better, worse], 0.0) is better
    assert chosen(of, [better._replace(value=3.0), better], 0.05) is better
