"""``PartialSums``: parts of the rows give the same tree as all rows."""

import numpy as np
import pytest

from bristlecone import OptimalSurvivalTree, OptimalTreeClassifier
from bristlecone.exceptions import InvalidParameterError
from bristlecone.scale import PartialSums

NEUTRAL = {"min_events_leaf": None, "prior": 0, "shrinkage": 0}


def rows(seed, n=200, n_features=8):
    rng = np.random.default_rng(seed)
    features = rng.random((n, n_features)) < rng.random(n_features)
    time = np.ceil(rng.exponential(10 * np.exp(-1.0 * features[:, 0])))
    return features, time, rng.random(n) < 0.6


def in_parts(objective, columns, counts, features, place, **settings):
    """Sums of three parts, two of which are sent as bytes."""
    found = None
    for part in np.array_split(np.arange(len(place)), 3):
        sums = PartialSums(objective, columns, counts, n_features=features.shape[1], **settings)
        sums.add(features[part], place[part])
        if found is None:
            found = sums
        else:
            found.merge(PartialSums.from_bytes(sums.to_bytes()))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_parts_of_a_survival_study_give_its_tree(seed):
    features, time, event = rows(seed)
    key, place, counts = np.unique(
        np.c_[time, event], axis=0, return_inverse=True, return_counts=True
    )
    columns = {"time": key[:, 0].copy(), "event": key[:, 1] > 0}
    depth, settings = 1 + seed % 4, {"min_samples_leaf": 1 + seed, "leaf_penalty": 0.002 * seed}
    place = place.ravel()
    sums = in_parts("likelihood", columns, counts, features, place, max_depth=depth, **settings)
    found = sums.solve()
    whole = OptimalSurvivalTree(max_depth=depth, **settings, **NEUTRAL).fit(features, (event, time))
    assert sums.n_rows == 200
    assert found.status == whole.status_ == "optimal"
    assert abs(found.objective_value - whole.objective_value_) < 1e-12
    assert found.lower_bound <= whole.objective_value_
    np.testing.assert_array_equal(found.children_left, whole.tree_.children_left)


def test_parts_of_classes_give_the_tree_whatever_features_are_negated():
    features, _, label = rows(3)
    settings = {"max_depth": 2, "max_leaf_nodes": 3, "flipped": features.mean(axis=0) > 0.5}
    columns = {"labels": np.array([0, 1]), "n_classes": 2}
    counts = np.bincount(label.astype(int))
    sums = in_parts("accuracy", columns, counts, features, label.astype(int), **settings)
    whole = OptimalTreeClassifier(max_depth=2, max_leaf_nodes=3).fit(features, label)
    assert sums.solve().objective_value == whole.objective_value_


def small():
    columns = {"labels": np.array([0, 1]), "n_classes": 2}
    return PartialSums("accuracy", columns, [2, 1], n_features=2, max_depth=2)


def test_what_is_wrong_is_named():
    with pytest.raises(InvalidParameterError, match=r"objective must be one of .*; got 'brier'"):
        PartialSums("brier", {}, [1], n_features=1)
    with pytest.raises(InvalidParameterError, match="max_depth must be at most 4"):
        PartialSums("accuracy", {}, [1], n_features=1, max_depth=5)
    sums = small()
    with pytest.raises(ValueError, match="outcome of row 1 is -1, not a position"):
        sums.add(np.zeros((2, 2)), [0, -1])
    with pytest.raises(ValueError, match="row 0 has outcome 2 of 2"):
        sums.add(np.zeros((1, 2)), [2])
    for wrong in (0.5, 2, -1, np.nan):
        with pytest.raises(ValueError, match=f"feature 1 of row 1 is {wrong}; expected 0 or 1"):
            sums.add(np.array([[0, 1], [0, wrong]]), [0, 0])
    with pytest.raises(ValueError, match="outcome must hold whole numbers; its dtype is float64"):
        sums.add(np.zeros((1, 2)), [0.5])
    with pytest.raises(ValueError, match=r"^sums hold 0 rows, the outcomes are those of 3$"):
        sums.solve()
    other = PartialSums(
        "accuracy", {"labels": np.array([0, 1]), "n_classes": 2}, [2, 1], n_features=3
    )
    with pytest.raises(ValueError, match=r"^sums are of depth 3, not 2$"):
        sums.merge(other)
    for columns, message in (
        ({"time": np.ones(2)}, "^event is missing$"),
        ({"time": np.ones(2), "event": np.ones(3, bool)}, "^event has 3 rows, X has 2$"),
    ):
        with pytest.raises(ValueError, match=message):
            PartialSums("likelihood", columns, [1, 1], n_features=1)
    with pytest.raises(ValueError, match=r"^features has shape \(2, 2\); expected \(1, 2\)$"):
        sums.add(np.zeros((2, 2)), [0])
    with pytest.raises(ValueError, match=r"^flipped has shape \(1,\); expected \(2,\)$"):
        PartialSums("accuracy", {}, [1], n_features=2, flipped=[True])
    with pytest.raises(ValueError, match="max_depth=3 fits"):
        columns = {"labels": np.array([0, 1]), "n_classes": 2}
        PartialSums(
            "accuracy", columns, [1, 1], n_features=150, max_depth=4, memory_limit=200_000_000
        )


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("counts", [2.5, 1.0], r"has shape \(2,\) and dtype float64; expected one whole number"),
        ("counts", [[2, 1]], r"has shape \(1, 2\) and dtype int64; expected one whole number"),
        ("outcomes", None, "must be a mapping; got a NoneType"),
        ("max_leaf_nodes", 2.5, "must be an integer of at least 1 or None; got 2.5"),
        ("min_samples_leaf", None, "must be an integer of at least 1; got None"),
        ("min_events_leaf", "auto", "must be an integer of at least 0; got 'auto'"),
        ("leaf_penalty", "small", "must be a finite number of at least 0; got 'small'"),
        ("memory_limit", "1GB", "must be an integer of at least 1 or None; got '1GB'"),
        ("flipped", [0.5, 1.0], "must hold True or False only"),
    ],
)
def test_a_wrong_parameter_is_named(name, value, message):
    given = {"outcomes": {"labels": np.array([0, 1]), "n_classes": 2}, "counts": [2, 1]}
    with pytest.raises(ValueError, match=f"^{name} {message}"):
        PartialSums("accuracy", **{**given, "n_features": 2, name: value})


def test_what_are_no_other_sums_or_rows_is_refused_and_adds_nothing():
    sums = small()
    sums.add([[0, 1]], [0])
    for other in (None, sums.to_bytes()):
        with pytest.raises(TypeError, match=r"^other must be PartialSums; got"):
            sums.merge(other)
    with pytest.raises(ValueError, match=r"^other is this object itself"):
        sums.merge(sums)
    for outcome in (0, [[0]]):
        with pytest.raises(ValueError, match=r"^outcome has shape .*; expected one dimension$"):
            sums.add([[0, 1]], outcome)
    with pytest.raises(InvalidParameterError, match=r"^time_limit must be a finite number"):
        sums.solve(time_limit="short")
    assert sums.n_rows == 1


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"time": np.array([30.0, 60.0, 90.0])}, "time"),
        ({"entry": np.array([0.5, 0.5, 0.5])}, "entry"),
        ({"prior": 2.0}, "prior"),
    ],
)
def test_sums_of_other_outcomes_are_not_merged_even_if_their_statistics_are_equal(change, name):
    """Times in months at one site and in days at the other have the same ranks."""
    columns = {"time": np.array([1.0, 2.0, 3.0]), "event": np.array([True, False, True])}

    def site(**more):
        return PartialSums("likelihood", {**columns, **more}, [2, 1, 1], n_features=2, max_depth=1)

    own, other = site(), site(**change)
    own.add(np.eye(2), [0, 1])
    other.add(np.eye(2), [0, 2])
    for sums, theirs in ((own, other), (other, PartialSums.from_bytes(own.to_bytes()))):
        with pytest.raises(ValueError, match=f"^sums are of other outcomes: {name!r} differs$"):
            sums.merge(theirs)
        assert sums.n_rows == 2
    same = site(weight=np.ones(3))
    same.add(np.eye(2), [0, 2])
    own.merge(same)
    assert own.n_rows == 4


def test_damaged_bytes_are_refused():
    sums = small()
    sums.add([[0, 1], [1, 0], [1, 1]], [0, 0, 1])
    content = sums.to_bytes()
    assert PartialSums.from_bytes(content).n_rows == 3
    for wrong in (b"", b"something else", content[:-40]):
        with pytest.raises(ValueError, match="are not partial sums, or are damaged"):
            PartialSums.from_bytes(wrong)


def test_cells_of_few_rows_are_not_written():
    sums = small()
    sums.add([[0, 1], [1, 0], [1, 1]], [0, 0, 1])
    with pytest.raises(ValueError, match=r"1 rows have feature . = . and feature . = ., fewer"):
        sums.to_bytes(min_cell_count=2)
    assert sums.to_bytes(min_cell_count=1)


@pytest.mark.parametrize("objective", ["accuracy", "gini", "label-costs", "priced-costs", "policy"])
def test_three_million_rows_of_real_weights_and_costs_are_certified(objective):
    rng = np.random.default_rng(0)
    features, counts = rng.random((64, 3)) < 0.5, np.full(64, 50_000)
    place = np.repeat(np.arange(64), counts)
    columns = {"weight": rng.uniform(0.5, 2.0, 64)}
    if objective in ("accuracy", "gini"):
        columns |= {"labels": rng.integers(0, 2, 64), "n_classes": 2}
    else:
        name = "rewards" if objective == "policy" else "costs"
        columns |= {name: rng.exponential(size=(64, 3)) + features}
    if objective == "priced-costs":
        columns["feature_cost"] = np.array([0.01, 0.02, 0.03])
    settings = {"n_features": 3, "max_depth": 2}
    sums = PartialSums(objective, columns, counts, **settings)
    sums.add(features[place], place)
    found = sums.solve()
    few = PartialSums(objective, columns, np.ones(64, int), **settings)
    few.add(features, np.arange(64))
    assert found.status == "optimal"
    assert found.objective_value == pytest.approx(few.solve().objective_value, rel=1e-9)


def test_sums_alone_do_not_certify_a_perfect_tree_whose_loss_they_do_not_resolve():
    target = np.array([51.0, 51.0 + 2e-9, 52.0])
    sums = PartialSums(
        "regression", {"target": target}, [1, 1, 2], n_features=1, max_depth=1, leaf_penalty=1e-12
    )
    sums.add(np.array([[False], [False], [True], [True]]), np.array([0, 1, 2, 2]))
    # The loss of the best tree is 5e-19, which is more than 1e-9 of its two penalties.
    with pytest.raises(ValueError, match=r"^sums give the objective .* to within"):
        sums.solve()
