"""``tree_.improvement`` is in the unit of the objective; it sums to the gain of all splits."""

import numpy as np
import pytest

from bristlecone import (
    DemographicParity,
    FairTreeClassifier,
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
)


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    X = random.integers(0, 4, (120, 3)).astype(float)
    time = np.ceil(random.exponential(5 + 4 * X[:, 0]))
    return {
        "X": X,
        "time": time,
        "event": random.random(120) < 0.7,
        "label": np.where(random.random(120) < 0.2 + 0.2 * X[:, 1], "b", "a"),
        "weight": random.integers(0, 3, 120).astype(float),
    }


def falls_by_its_splits(make, *data, weight):
    tree = make(max_depth=3, leaf_penalty=0.001).fit(*data, sample_weight=weight)
    leaf = make(max_depth=0).fit(*data, sample_weight=weight)
    gained = leaf.objective_value_ - (tree.objective_value_ - 0.001 * tree.n_leaves_)
    assert gained > 0.01
    assert tree.tree_.improvement.sum() == pytest.approx(gained, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("class_weight", [None, "balanced", {"a": 3.0, "b": 1.0}])
@pytest.mark.parametrize("objective", ["accuracy", "balanced-accuracy", "gini", "entropy"])
def test_of_a_classifier(rows, objective, class_weight, weighted):
    def make(**more):
        return OptimalTreeClassifier(objective=objective, class_weight=class_weight, **more)

    weight = rows["weight"] if weighted else None
    falls_by_its_splits(make, rows["X"], rows["label"], weight=weight)


@pytest.mark.parametrize("weighted", [False, True])
def test_of_a_regressor(rows, weighted):
    weight = rows["weight"] if weighted else None
    falls_by_its_splits(OptimalTreeRegressor, rows["X"], rows["time"], weight=weight)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("time_grid", [None, [2.0, 4.0, 8.0, 16.0]])
@pytest.mark.parametrize("leaf_curve", ["kaplan-meier", "brier-optimal"])
def test_of_the_brier_score(rows, leaf_curve, time_grid, weighted):
    def make(**more):
        return OptimalSurvivalTree(
            objective="brier", leaf_curve=leaf_curve, time_grid=time_grid, **more
        )

    weight = rows["weight"] if weighted else None
    falls_by_its_splits(make, rows["X"], (rows["event"], rows["time"]), weight=weight)


def test_every_search_reports_its_guarantee(rows):
    fair = FairTreeClassifier(fairness=DemographicParity(0.5)).fit(
        rows["X"], rows["label"], sensitive_features=rows["X"][:, 2] > 1
    )
    for tree in (fair, OptimalTreeRegressor().fit(rows["X"], rows["time"])):
        assert tree.guarantee_ == tree.gap_ <= 1e-9 * tree.objective_value_
        assert tree.reference_loss_ is None
