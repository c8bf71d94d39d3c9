"""``near_optimal_trees`` with no slack: all optimal trees, under both objectives."""

import itertools

import brier_plainly as plain
import numpy as np
import pytest
from papers import PAPERS
from sklearn.base import clone
from survival_rows import sample

from bristlecone._estimators.survival import OptimalSurvivalTree
from bristlecone._model.registry import dumps, loads
from bristlecone.exceptions import SearchLimitWarning
from bristlecone.trust import near_optimal_trees

OBJECTIVES = ("likelihood", "brier")


def optimal_trees(model, X, y, **limit):
    """All optimal trees for the parameters of a model."""
    return near_optimal_trees(clone(model).fit(X, y), X, y, epsilon=0, **limit)


def rows_with_ties(seed, n=12, n_features=4):
    """Few rows and times, so many trees are equally good."""
    rng = np.random.default_rng(seed)
    X = rng.random((n, n_features)) < 0.5
    X[: 2**2, :2] = list(itertools.product([False, True], repeat=2))
    time = rng.integers(1, 4, size=n).astype(float)
    event = rng.random(n) < 0.7
    event[0] = True
    return X, event, time


def likelihood_loss(event, time, leaf):
    """Huisman et al. (AAAI-24), eq. 20, per row."""
    hazard = np.array(
        [sum((event & (time == t)).sum() / (time >= t).sum() for t in set(time[time <= u]))
         for u in time]
    )  # fmt: skip
    hazard = np.where(hazard > 0, hazard, 1 / (len(time) + 1))
    total = -np.log(hazard[event]).sum()
    for name in set(leaf):
        d, h = event[leaf == name].sum(), hazard[leaf == name].sum()
        total -= d * np.log(d / h) if d else 0.0
    return total / len(time)


def trees(X, rows, depth):
    """Every tree of at most this depth, as tuples (feature, yes, no) and the rows of leaves."""
    yield tuple(rows)
    for feature in range(X.shape[1]) if depth else ():
        yes = X[rows, feature]
        if yes.all() or not yes.any():
            continue
        for one in trees(X, rows[yes], depth - 1):
            for other in trees(X, rows[~yes], depth - 1):
                yield (f"x{feature}", one, other)


def leaves_of(tree):
    return [*leaves_of(tree[1]), *leaves_of(tree[2])] if isinstance(tree[0], str) else [tree]


def as_tuples(model, X):
    """A fitted tree in the form that ``trees`` returns."""
    tree, leaf = model.tree_, model.apply(X)

    def walk(node):
        if tree.children_left[node] < 0:
            return tuple(np.flatnonzero(leaf == node))
        below = walk(tree.children_left[node]), walk(tree.children_right[node])
        return (f"x{tree.feature[node]}", *below)

    return walk(0)


def without_names(tree):
    """A tree as the rows of its nodes; features that divide a node in the same way are equal."""
    if not isinstance(tree[0], str):
        return frozenset(tree)
    return frozenset([without_names(tree[1]), without_names(tree[2])])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_they_are_all_of_them(objective, seed):
    X, event, time = rows_with_ties(seed)
    penalty = 0.01 if seed % 2 else 0.05
    best, found = np.inf, []
    for tree in trees(X, np.arange(len(X)), 2):
        leaf = np.empty(len(X), dtype=int)
        for k, rows in enumerate(leaves_of(tree)):
            leaf[list(rows)] = k
        if objective == "brier":
            loss = plain.score_of_partition(time, event, leaf)
        else:
            loss = likelihood_loss(event, time, leaf)
        loss += penalty * len(leaves_of(tree))
        found.append((loss, tree))
        best = min(best, loss)
    expected = {without_names(tree) for loss, tree in found if loss <= best + 1e-10}
    model = OptimalSurvivalTree(objective=objective, max_depth=2, leaf_penalty=penalty, **PAPERS)
    optimal = optimal_trees(model, X, (event, time), limit=10_000)
    assert {without_names(as_tuples(tree, X)) for tree in optimal} == expected
    assert len(optimal) == len(expected)
    for tree in optimal:
        assert tree.status_ == "optimal"
        assert tree.objective_value_ == pytest.approx(best, abs=1e-10)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_the_first_is_the_tree_of_fit(objective):
    X, event, time = rows_with_ties(0)
    model = OptimalSurvivalTree(objective=objective, max_depth=2, leaf_penalty=0.01, **PAPERS)
    first = optimal_trees(model, X, (event, time), limit=10_000)[0]
    fitted = clone(model).fit(X, (event, time))
    assert as_tuples(first, X) == as_tuples(fitted, X)
    assert first.objective_value_ == pytest.approx(fitted.objective_value_, abs=1e-12)


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_fitted_trees_share_the_encoder_and_are_saved(objective):
    X, y = sample()
    model = OptimalSurvivalTree(objective=objective, max_depth=1)
    optimal = optimal_trees(model, X, y)
    assert len(optimal) == 1
    assert optimal[0].get_params() == model.get_params()
    again = loads(dumps(optimal[0]))
    np.testing.assert_array_equal(again.predict(X), optimal[0].predict(X))


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_more_than_the_limit_is_reported(objective):
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=bool)
    y = ([True] * 4, [1.0, 2.0, 2.0, 3.0])  # symmetric in the two features
    model = OptimalSurvivalTree(objective=objective, max_depth=1, **PAPERS)
    assert len(optimal_trees(model, X, y, limit=2)) == 2
    fitted = clone(model).fit(X, y)
    with pytest.warns(SearchLimitWarning, match="more than limit=1 trees") as caught:
        assert len(near_optimal_trees(fitted, X, y, epsilon=0, limit=1)) == 1
    assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_bad_input_is_named(objective):
    X, y = sample()
    fitted = OptimalSurvivalTree(objective=objective, max_depth=1).fit(X, y)
    with pytest.raises(ValueError, match="limit must be an integer of at least 1"):
        near_optimal_trees(fitted, X, y, epsilon=0, limit=0)
    with pytest.raises(ValueError, match="X has 150 rows but y has 149"):
        near_optimal_trees(fitted, X, y[:-1], epsilon=0)
