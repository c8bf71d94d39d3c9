"""F1 and Matthews correlation: the best of all trees, and the front that contains it."""

import itertools

import numpy as np
import pytest
from sklearn.metrics import f1_score, matthews_corrcoef

from bristlecone import OptimalTreeClassifier
from bristlecone._search.front import FrontSolution
from bristlecone.exceptions import InvalidParameterError

SCORES = {"f1": f1_score, "mcc": matthews_corrcoef}


def sample(n=60, n_features=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, size=(n, n_features)).astype(bool)
    y = (X[:, 0] & (X[:, 1] | X[:, 2])).astype(int)
    flipped = rng.random(n) < 0.2
    return X, np.where(flipped, 1 - y, y), rng.integers(1, 4, size=n) / 2.0


def predictions(X):
    """Predictions of every tree of depth two with every labelling of its leaves."""
    features = range(X.shape[1])
    for root, yes, no in itertools.product(features, features, features):
        leaf = np.where(X[:, root], X[:, yes] * 1, 2 + X[:, no])
        for labels in itertools.product((0, 1), repeat=4):
            yield np.array(labels)[leaf]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("objective", SCORES)
@pytest.mark.filterwarnings("ignore:.*ill-defined")
def test_no_tree_has_a_better_measure(objective, weighted):
    X, y, weight = sample()
    if not weighted:
        weight = np.ones(len(y))
    model = OptimalTreeClassifier(objective=objective, max_depth=2)
    model.fit(X, y, weight if weighted else None)
    score = SCORES[objective]
    own = score(y, model.predict(X), sample_weight=weight)
    # Equal predictions are scored once, because the scores are slow.
    distinct = {p.tobytes(): p for p in predictions(X)}.values()
    best = max(score(y, p, sample_weight=weight) for p in distinct)
    assert model.status_ == "optimal"
    assert model.objective_value_ == pytest.approx(1 - own, abs=1e-9)
    assert model.objective_value_ == pytest.approx(1 - best, abs=1e-9)
    assert model.lower_bound_ == pytest.approx(1 - best, abs=1e-9)


def test_the_front_is_that_of_all_trees():
    X, y, weight = sample()
    front = OptimalTreeClassifier(max_depth=2).pareto_front(X, y, weight)
    for point in front:
        wrong = point.predict(X) != y
        kinds = [weight[wrong & (y == label)].sum() for label in np.unique(y)]
        np.testing.assert_allclose(kinds, point.costs, rtol=1e-12)
    pairs = {(weight @ (p & (1 - y)), weight @ (y & (1 - p))) for p in predictions(X)}
    expected = sorted(
        a for a in pairs if not any(b != a and b[0] <= a[0] and b[1] <= a[1] for b in pairs)
    )
    assert front.status == "optimal"
    np.testing.assert_allclose(front.costs, expected, atol=1e-9)


@pytest.mark.parametrize("objective", SCORES)
def test_a_fit_keeps_the_points_it_met_with_their_trees(objective):
    X, y, _ = sample()
    model = OptimalTreeClassifier(objective=objective, max_depth=2).fit(X, y)
    for point in model.pareto_front_:
        predicted = point.labels[point.tree.leaf_index(X)]
        assert point.costs == (sum(predicted & (1 - y)), sum(y & (1 - predicted)))
    predicted = model.predict(X)
    own = sum(predicted & (1 - y)), sum(y & (1 - predicted))
    assert own in [point.costs for point in model.pareto_front_]
    assert not hasattr(OptimalTreeClassifier().fit(X, y), "pareto_front_")


def test_ctrl_c_while_the_trees_of_a_front_are_built_keeps_the_earlier_fit(monkeypatch):
    rng = np.random.default_rng(0)
    X, y = rng.random((60, 4)), rng.random(60) < 0.5
    model = OptimalTreeClassifier(max_depth=1, objective="f1").fit(X, y)
    before, front = model.to_json(), model.pareto_front_

    def interrupted(solution, point):
        raise KeyboardInterrupt

    monkeypatch.setattr(FrontSolution, "of", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:30], y[:30])
    assert model.to_json() == before
    assert model.pareto_front_ is front


def test_penalties_sizes_names_and_files():
    X, y, _ = sample()
    named = np.where(y, "yes", "no")
    path = OptimalTreeClassifier(objective="f1", max_depth=2).size_path(X, named)
    assert [tree.n_leaves_ <= k for k, tree in enumerate(path, start=1)] == [True] * 4
    best = [1 - f1_score(named, tree.predict(X), pos_label="yes") for tree in path]
    np.testing.assert_allclose([tree.objective_value_ for tree in path], best, atol=1e-9)
    penalised = OptimalTreeClassifier(objective="f1", max_depth=2, leaf_penalty=0.03).fit(X, named)
    expected = min(value + 0.03 * k for k, value in enumerate(best, start=1))
    assert penalised.objective_value_ == pytest.approx(expected, abs=1e-9)
    loaded = OptimalTreeClassifier.from_json(path[-1].to_json())
    np.testing.assert_array_equal(loaded.predict(X), path[-1].predict(X))


@pytest.mark.parametrize("y", [np.zeros(60, int), np.arange(60) % 3])
@pytest.mark.parametrize("objective", SCORES)
def test_two_classes_are_needed(objective, y):
    X, _, _ = sample()
    with pytest.raises(ValueError, match="needs two classes"):
        OptimalTreeClassifier(objective=objective).fit(X, y)
    with pytest.raises(ValueError, match="a front needs two classes"):
        OptimalTreeClassifier().pareto_front(X, y)


def test_a_front_has_no_penalty():
    X, y, _ = sample()
    with pytest.raises(InvalidParameterError, match="pareto_front needs leaf_penalty=0"):
        OptimalTreeClassifier(leaf_penalty=0.1).pareto_front(X, y)
