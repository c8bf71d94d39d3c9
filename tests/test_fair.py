"""``FairTreeClassifier``: the constraint holds, no fair tree is better, and bad input."""

import itertools
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest
from pace import slow_but

from bristlecone import (
    DemographicParity,
    EqualityOfOpportunity,
    EqualizedOdds,
    FairTreeClassifier,
    OptimalTreeClassifier,
    load_model,
    save_model,
)
from bristlecone._search.front import ParetoPoint, add_point
from bristlecone.exceptions import InvalidParameterError, SearchCostWarning, SearchLimitWarning
from bristlecone.export import export_text
from bristlecone.metrics import (
    demographic_parity_difference,
    equal_opportunity_difference,
    equalized_odds_difference,
)
from bristlecone.plot import plot_front
from bristlecone.report import html_report
from bristlecone.trust import verify

PARITY = {
    "demographic-parity": DemographicParity,
    "equality-of-opportunity": EqualityOfOpportunity,
    "equalized-odds": EqualizedOdds,
}
CONSTRAINTS = list(PARITY)
LOOSE = DemographicParity(0.05)
SMALL = {"max_depth": 2, "min_samples_leaf": 1}


def sample(n=60, n_features=4, seed=0, n_groups=2):
    rng = np.random.default_rng(seed)
    group = rng.integers(0, n_groups, size=n)
    X = rng.integers(0, 2, size=(n, n_features)).astype(bool)
    X[:, 0] = np.where(rng.random(n) < 0.7, group % 2, X[:, 0])
    y = (X[:, 0] | (X[:, 1] & X[:, 2])).astype(int)
    flipped = rng.random(n) < 0.2
    return X, np.where(flipped, 1 - y, y), group, rng.integers(1, 4, size=n) / 2.0


def rates(predicted, y, group, weight, constraint):
    """Rates that a constraint compares, by their definition, with one row per group."""
    of_classes = {"demographic-parity": [y >= 0], "equality-of-opportunity": [y == 1]}
    found = []
    for g in np.unique(group):
        rows = [(group == g) & r for r in of_classes.get(constraint, [y == 1, y == 0])]
        found.append([np.average(predicted[r], weights=weight[r]) for r in rows])
    return np.array(found)


def difference(*of):
    return np.ptp(rates(*of), axis=0).max()


def all_trees(X):
    """Predictions of all trees of depth two with all labels of leaves."""
    features = range(X.shape[1])
    for root, yes, no in itertools.product(features, features, features):
        leaf = np.where(X[:, root], X[:, yes] * 1, 2 + X[:, no])
        for labels in itertools.product((0, 1), repeat=4):
            yield np.array(labels)[leaf]


def least_fair_error(X, y, group, weight, constraint, delta, errors=None):
    """Error of the best tree; ``errors`` are the weights of errors if these differ."""
    errors = weight if errors is None else errors
    fair = (p for p in all_trees(X) if difference(p, y, group, weight, constraint) <= delta + 1e-9)
    return min(np.average(p != y, weights=errors) for p in fair)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("delta", slow_but([0.05, 0.2], [0.0, 0.05, 0.2, 1.0]))
@pytest.mark.parametrize("n_groups", slow_but([2, 3], [2, 3, 4]))
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_no_fair_tree_is_better(constraint, n_groups, delta, weighted):
    X, y, group, weight = sample(n_features=3, n_groups=n_groups)
    if not weighted:
        weight = np.ones(len(y))
    model = FairTreeClassifier(fairness=PARITY[constraint](delta), **SMALL)
    model.fit(X, y, weight if weighted else None, sensitive_features=group)
    assert model.status_ == "optimal"
    predicted = model.predict(X)
    error = np.average(predicted != y, weights=weight)
    assert model.objective_value_ == pytest.approx(error, abs=1e-9)
    best = least_fair_error(X, y, group, weight, constraint, delta)
    assert model.objective_value_ == pytest.approx(best, abs=1e-9)
    reached = rates(predicted, y, group, weight, constraint)
    assert model.group_difference_ <= delta + 1e-9
    assert model.group_difference_ == pytest.approx(np.ptp(reached, axis=0).max(), abs=1e-12)
    shape = (n_groups, 2) if constraint == "equalized-odds" else (n_groups,)
    np.testing.assert_allclose(model.group_rates_, reached.reshape(shape), atol=1e-12)


def test_six_groups_are_compared_and_seven_rejected():
    X, y, group, weight = sample(120, 3, n_groups=6)
    model = FairTreeClassifier(fairness=DemographicParity(0.3), **SMALL)
    model.fit(X, y, weight, sensitive_features=group)
    best = least_fair_error(X, y, group, weight, "demographic-parity", 0.3)
    assert (model.status_, len(model.groups_)) == ("optimal", 6)
    assert model.objective_value_ == pytest.approx(best, abs=1e-9)
    with pytest.raises(ValueError, match=r"has 7 values.*compares 2 to 6 groups; merge"):
        model.fit(X, y, sensitive_features=np.arange(120) % 7)
    with pytest.raises(ValueError, match=r"has 5 values.*EqualizedOdds compares 2 to 4 groups"):
        model.set_params(fairness=EqualizedOdds(0.1)).fit(
            X, y, sensitive_features=np.arange(120) % 5
        )


@pytest.mark.parametrize("class_weight", ["balanced", {1: 3.5}])
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_class_weights_count_in_errors_and_not_in_rates(constraint, class_weight):
    X, y, group, weight = sample(n_features=3, seed=3)
    model = FairTreeClassifier(
        fairness=PARITY[constraint](0.15), class_weight=class_weight, **SMALL
    )
    model.fit(X, y, weight, sensitive_features=group)
    if class_weight == "balanced":
        of_class = np.bincount(y, weight)
        errors = weight * (of_class.sum() / (2 * of_class))[y]
    else:
        errors = weight * np.where(y == 1, 3.5, 1.0)
    best = least_fair_error(X, y, group, weight, constraint, 0.15, errors)
    assert model.objective_value_ == pytest.approx(best, abs=1e-9)
    assert difference(model.predict(X), y, group, weight, constraint) <= 0.15 + 1e-12
    assert model.group_confusion_.sum() == pytest.approx(weight.sum())
    result = verify(model, X, y, sample_weight=weight, sensitive_features=group)
    assert result.ok, result


def test_balanced_class_weights_give_balanced_accuracy():
    from sklearn.metrics import balanced_accuracy_score

    X, y, group, _ = sample(200, 5, seed=1)
    keep = (y == 0) | (np.arange(200) % 3 == 0)
    X, y, group = X[keep], y[keep], group[keep]
    model = FairTreeClassifier(fairness=LOOSE, class_weight="balanced", max_depth=2)
    model.fit(X, y, sensitive_features=group)
    balanced = balanced_accuracy_score(y, model.predict(X))
    assert model.objective_value_ == pytest.approx(1 - balanced, abs=1e-12)


def test_the_constraint_costs_accuracy_and_a_loose_one_nothing():
    X, y, group, _ = sample()
    free = OptimalTreeClassifier(max_depth=2).fit(X, y)
    loose, tight = (
        FairTreeClassifier(fairness=DemographicParity(limit), **SMALL).fit(
            X, y, sensitive_features=group
        )
        for limit in (1.0, 0.0)
    )
    assert loose.objective_value_ == pytest.approx(free.objective_value_, abs=1e-12)
    assert tight.objective_value_ > free.objective_value_ + 0.01


def test_leaves_have_five_rows_by_default():
    X, y, group, _ = sample(80, 8, seed=3)
    leaves = []
    for least in ({}, {"min_samples_leaf": 1}):
        tree = FairTreeClassifier(fairness=DemographicParity(0.0), **least)
        tree.fit(X, y, sensitive_features=group)
        leaves.append(tree.tree_.n_node_samples[tree.tree_.leaves].min())
    assert leaves[0] >= 5 > leaves[1]


def test_the_group_may_be_named_in_any_table():
    X, y, group, _ = sample()
    frame = pd.DataFrame(X, columns=list("abcd")).assign(sex=np.where(group, "m", "f"))
    passed = FairTreeClassifier(fairness=DemographicParity(0.05), max_depth=2).fit(
        frame, y, sensitive_features=frame["sex"]
    )
    parity = DemographicParity(0.05, sensitive_feature="sex")
    named = FairTreeClassifier(fairness=parity, max_depth=2)
    for table in (frame, pl.from_pandas(frame)):
        named.fit(table, y)
        assert named.objective_value_ == passed.objective_value_
        assert named.groups_.tolist() == ["f", "m"]
    array = np.column_stack([X, group])
    parity = DemographicParity(0.05, sensitive_feature=4)
    by_position = FairTreeClassifier(fairness=parity, max_depth=2).fit(array, y)
    assert by_position.objective_value_ == pytest.approx(passed.objective_value_, abs=1e-12)


@pytest.mark.parametrize("names", [[7, 3, 5], [1, 2, 0]])
def test_the_group_may_be_named_by_a_number(names):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(60, 3)), columns=names)
    X[names[2]] = rng.integers(0, 2, 60)
    y = X[names[0]] > 0
    expected = FairTreeClassifier(fairness=DemographicParity(0.1)).fit(
        X, y, sensitive_features=X[names[2]]
    )
    by_name = DemographicParity(0.1, sensitive_feature=names[2])
    tree = FairTreeClassifier(fairness=by_name).fit(X, y)
    assert tree.group_difference_ == expected.group_difference_
    assert verify(tree, X, y).ok


def test_a_column_named_in_the_constraint_stays_a_feature():
    X, y, group, _ = sample()
    y = group ^ (np.arange(60) % 10 == 0)
    frame = pd.DataFrame(X, columns=list("abcd")).assign(sex=np.where(group, "m", "f"))
    parity = DemographicParity(1.0, sensitive_feature="sex")
    tree = FairTreeClassifier(fairness=parity, max_depth=1).fit(frame, y)
    assert tree.features_used_ == ["sex"]
    without = FairTreeClassifier(fairness=DemographicParity(1.0), max_depth=1)
    without.fit(frame.drop(columns="sex"), y, sensitive_features=frame["sex"])
    assert "sex" not in without.feature_names_in_


def test_groups_without_weight_do_not_count():
    X, y, group, _ = sample(n_groups=3)
    weight = np.where(group == 2, 0.0, 1.0)
    tree = FairTreeClassifier(fairness=LOOSE, max_depth=2)
    tree.fit(X, y, weight, sensitive_features=group)
    assert tree.groups_.tolist() == [0, 1]


def fair_front(X, y, group, weight, constraint):
    """Pairs of error and difference that no tree dominates."""
    pairs = {
        (
            round(np.average(p != y, weights=weight), 12),
            round(difference(p, y, group, weight, constraint), 12),
        )
        for p in all_trees(X)
    }
    front, least = [], np.inf
    for error, gap in sorted(pairs):
        if gap < least:
            front.append((error, gap))
            least = gap
    return front


@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_the_front_is_that_of_all_trees(constraint, n_groups):
    X, y, group, weight = sample(n_features=3, seed=2, n_groups=n_groups)
    model = FairTreeClassifier(fairness=PARITY[constraint](1.0), **SMALL)
    front = model.pareto_front(X, y, weight, sensitive_features=group)
    assert front.status == "optimal" and len(front) > 2
    expected = fair_front(X, y, group, weight, constraint)
    np.testing.assert_allclose(front.costs, expected, atol=1e-11)
    # Each point has the tree that a fit with its difference as the limit returns.
    error, gap = front[1].costs
    model.set_params(fairness=PARITY[constraint](gap)).fit(X, y, weight, sensitive_features=group)
    assert model.objective_value_ == pytest.approx(error, abs=1e-12)
    assert model.fairness == front[1].estimator.fairness
    # The front ends at the limit of the constraint.
    part = model.pareto_front(X, y, weight, sensitive_features=group)
    np.testing.assert_allclose(part.costs, front.costs[1:], atol=1e-12)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_every_tree_of_a_front_is_a_fit_that_is_verified_and_saved(constraint):
    X, y, group, _ = sample(n_features=4, seed=3)
    model = FairTreeClassifier(
        fairness=PARITY[constraint](0.5), max_depth=2, class_weight="balanced"
    )
    front = model.pareto_front(X, y, sensitive_features=group)
    assert len(front) > 2
    for point in front:
        tree = point.estimator
        assert tree.status_ == "optimal" and tree.fairness.limit == point.costs[1]
        assert point.costs == (tree.objective_value_, tree.group_difference_)
        assert verify(tree, X, y, sensitive_features=group).ok
        again = FairTreeClassifier.from_json(tree.to_json())
        np.testing.assert_array_equal(again.predict(X), point.predict(X))
        np.testing.assert_array_equal(point.labels, tree.leaves_.label)
    assert not hasattr(model, "tree_") and model.fairness.limit == 0.5


def test_a_front_is_drawn_and_may_be_stopped():
    import matplotlib

    matplotlib.use("Agg")
    X, y, group, _ = sample(200, 8)
    model = FairTreeClassifier(fairness=EqualizedOdds(1.0), max_depth=2)
    front = model.pareto_front(X, y, sensitive_features=group)
    ax = plot_front(front)
    assert ax.get_xlabel() == "misclassified share"
    label = ax.get_ylabel().replace("\n", " ")
    assert label.startswith("larger difference of the true and the false positive")
    model.set_params(time_limit=0.0)
    with pytest.warns(SearchLimitWarning, match=r"stopped \(time_limit\) with \d+ trees; the"):
        stopped = model.pareto_front(X, y, sensitive_features=group)
    assert stopped.status == "time_limit" and len(stopped) < len(front)
    with pytest.raises(InvalidParameterError, match="leaf_penalty=0"):
        model.set_params(leaf_penalty=0.1).pareto_front(X, y, sensitive_features=group)


def test_confusion_by_group_is_that_of_scikit_learn_and_shown(tmp_path):
    from sklearn.metrics import confusion_matrix

    X, y, group, weight = sample(n_groups=3)
    names = np.array(["ash", "elm", "oak"])[group]
    model = FairTreeClassifier(fairness=EqualizedOdds(0.3), max_depth=2)
    model.fit(X, y, weight, sensitive_features=names)
    predicted = model.predict(X)
    for g, table in zip(model.groups_, model.group_confusion_, strict=True):
        rows = names == g
        true = confusion_matrix(y[rows], predicted[rows], sample_weight=weight[rows], labels=[0, 1])
        np.testing.assert_allclose(table, true, atol=1e-12)
    text = model.describe()
    largest = f"The largest difference between groups is {model.group_difference_:.6g}."
    assert largest in text
    heading, *rows = text[text.index("group  ") :].splitlines()[:9]
    assert heading.split() == ["group", "ash", "elm", "oak"]
    assert [float(cell) for cell in rows[0].split()[2:]] == pytest.approx(
        model.group_confusion_[:, 1, 1]
    )
    assert rows[5].split()[:3] == ["true", "positive", "rate"]
    assert [float(cell) for cell in rows[5].split()[3:]] == pytest.approx(
        model.group_rates_[:, 0], abs=6e-4
    )
    page = html_report(model)
    assert "Training rows by group" in page and "false negatives" in page
    save_model(model, tmp_path / "fair.json")
    loaded = load_model(tmp_path / "fair.json")
    np.testing.assert_array_equal(loaded.group_confusion_, model.group_confusion_)
    np.testing.assert_array_equal(loaded.group_rates_, model.group_rates_)
    assert export_text(loaded) == export_text(model)


@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_verify_checks_limit_rates_and_table(constraint):
    X, y, group, weight = sample(n_features=3, n_groups=3)
    model = FairTreeClassifier(fairness=PARITY[constraint](0.2), **SMALL)
    model.fit(X, y, weight, sensitive_features=group)
    result = verify(model, X, y, sample_weight=weight, sensitive_features=group)
    assert result.ok, result
    assert "every tree" in str(result)
    model.certificate_.groups.confusion[0, 0, 0] += 1
    assert not verify(model, X, y, sample_weight=weight, sensitive_features=group).ok


def test_a_stopped_search_keeps_the_limit():
    X, y, group, _ = sample(400, 20, n_groups=4)
    model = FairTreeClassifier(fairness=EqualizedOdds(0.02), max_depth=4, time_limit=0.05)
    with pytest.warns((SearchLimitWarning, SearchCostWarning)) as reported:
        model.fit(X, y, sensitive_features=group)
    assert {one.category for one in reported} == {SearchLimitWarning, SearchCostWarning}
    assert model.group_difference_ <= 0.02 + 1e-12
    assert model.lower_bound_ <= model.objective_value_


def test_more_limits_are_forecast_to_take_longer():
    X, y, group, _ = sample(400, 20, n_groups=4)
    cost = [
        FairTreeClassifier(fairness=fairness, max_depth=4)
        .estimate_cost(X, y, sensitive_features=groups)
        .row_seconds
        for fairness, groups in (
            (DemographicParity(0.1), group % 2),
            (EqualizedOdds(0.1), group % 2),
            (EqualizedOdds(0.1), group),
        )
    ]
    assert cost[0] < cost[1] < cost[2]


def test_reestimated_leaves_have_their_own_table():
    X, y, group, _ = sample(120)
    half = np.arange(120) % 2 == 0
    tree = FairTreeClassifier(fairness=EqualizedOdds(0.2), max_depth=2)
    tree.fit(X[half], y[half], sensitive_features=group[half])
    honest = tree.reestimate(X[~half], y[~half], sensitive_features=group[~half])
    predicted = tree.predict(X[~half])
    weight = np.ones(60)
    expected = rates(predicted, y[~half], group[~half], weight, "equalized-odds")
    np.testing.assert_allclose(honest.group_rates_, expected, atol=1e-12)


@pytest.mark.parametrize(
    ("fairness", "changed", "message"),
    [
        (None, {}, "^fairness must be DemographicParity.* got None"),
        ("demographic-parity", {}, "^fairness must be DemographicParity"),
        (DemographicParity(-0.1), {}, "^fairness.limit must be"),
        (EqualizedOdds(1.5), {}, "^fairness.limit must be at most 1"),
        (
            DemographicParity(0.1, sensitive_feature="sex"),
            {"sensitive_features": None},
            "fairness.sensitive_feature='sex' is not a column",
        ),
        (
            DemographicParity(0.1, sensitive_feature=9),
            {"sensitive_features": None},
            "fairness.sensitive_feature=9 is not a column",
        ),
        (DemographicParity(0.1), {"sensitive_features": None}, "^fairness needs groups"),
        (
            DemographicParity(0.05),
            {"sensitive_features": np.zeros(60, int)},
            r"sensitive_features has one value, \[0\]; DemographicParity compares 2 to 6 groups$",
        ),
        (
            DemographicParity(0.05),
            {"sensitive_features": np.zeros(59, int)},
            "X has 60 rows but sensitive_features has 59",
        ),
        (
            DemographicParity(0.05),
            {"sensitive_features": ["a", pd.NA] * 30},
            "sensitive_features is missing in row 1",
        ),
        (
            DemographicParity(0.05),
            {"sensitive_features": np.arange(60) % 7},
            r"has 7 values, \[0, 1, 2, 3, 4, \.\.\.\]; .* 2 to 6 groups; merge the smallest ones",
        ),
        (
            DemographicParity(0.05),
            {"y": np.arange(60) % 3},
            "Only binary classification is supported",
        ),
        (
            EqualityOfOpportunity(0.1),
            {"sensitive_features": np.repeat(["a", "b"], 30), "y": np.repeat([1, 0], 30)},
            "group 'b' has no row of the positive class 1, so its true positive rate",
        ),
        (
            EqualizedOdds(0.1),
            {"sensitive_features": np.repeat(["a", "b"], 30), "y": np.arange(60) < 45},
            "group 'a' has no row of the negative class False, so its false positive rate",
        ),
        (EqualizedOdds(0.1), {"y": np.zeros(60, int)}, "no row of the positive class, so"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_input_is_named(fairness, changed, message):
    X, y, group, _ = sample()
    given = {"y": y, "sensitive_features": group, **changed}
    with pytest.raises(ValueError, match=message):
        FairTreeClassifier(fairness=fairness).fit(X, **given)


@pytest.mark.parametrize(
    ("class_weight", "message"),
    [
        ({1: 0.0}, "^class_weight must be positive"),
        ({1: -1.0}, "^class_weight"),
        ({2: 1.0}, "class_weight names 2"),
        ("even", "class_weight must be a dict"),
    ],
)
def test_bad_class_weights_are_named(class_weight, message):
    X, y, group, _ = sample()
    tree = FairTreeClassifier(fairness=LOOSE, class_weight=class_weight)
    with pytest.raises(ValueError, match=message):
        tree.fit(X, y, sensitive_features=group)


METRICS = {
    "demographic-parity": demographic_parity_difference,
    "equality-of-opportunity": equal_opportunity_difference,
    "equalized-odds": equalized_odds_difference,
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_groups", [1, 2, 5])
@pytest.mark.parametrize("constraint", CONSTRAINTS)
def test_metrics_are_those_of_fairlearn(constraint, n_groups, weighted):
    fairlearn = pytest.importorskip("fairlearn.metrics")
    X, y, group, weight = sample(150, seed=4, n_groups=n_groups)
    given = weight if weighted else None
    predicted = X[:, 1] | X[:, 2]
    metric = METRICS[constraint]
    found = metric(y, predicted.astype(int), sensitive_features=group, sample_weight=given)
    theirs = getattr(fairlearn, metric.__name__)
    expected = theirs(y, predicted, sensitive_features=group, sample_weight=given)
    assert found == pytest.approx(expected, abs=1e-12)
    own = np.ones(len(y)) if given is None else weight
    assert found == pytest.approx(difference(predicted, y, group, own, constraint), abs=1e-12)
    if n_groups == 1:
        return
    model = FairTreeClassifier(fairness=PARITY[constraint](0.1), max_depth=2)
    model.set_params(fairness=DemographicParity(0.1) if n_groups == 5 else model.fairness)
    model.fit(X, y, given, sensitive_features=group)
    said = model.predict(X)
    if n_groups == 2:
        expected = theirs(y, said, sensitive_features=group, sample_weight=given)
        assert model.group_difference_ == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS.values())
def test_metrics_take_labels_of_any_type(metric):
    X, y, group, weight = sample(n_groups=3)
    predicted = X[:, 0].astype(int)
    expected = metric(y, predicted, sensitive_features=group, sample_weight=weight)
    names = np.array(["no", "yes"])
    arguments = {"sensitive_features": pd.Series(group).map(str), "sample_weight": weight}
    assert metric(names[y], names[predicted], **arguments) == expected
    with_none = {**arguments, "sample_weight": np.where(group == 2, 0.0, weight)}
    two = metric(y[group < 2], predicted[group < 2], sensitive_features=group[group < 2],
                 sample_weight=weight[group < 2])  # fmt: skip
    assert metric(y, predicted, **with_none) == two
    swapped = metric(names[y], names[predicted], pos_label="no", **arguments)
    if metric is not equal_opportunity_difference:
        assert swapped == pytest.approx(expected, abs=1e-12)
    else:
        assert swapped != pytest.approx(expected, abs=1e-6)
    with pytest.raises(ValueError, match="have 3 labels"):
        metric(np.arange(60) % 3, predicted, **arguments)
    with pytest.raises(ValueError, match="one label, 1; pass pos_label"):
        metric(np.ones(60, int), np.ones(60, int), **arguments)
    with pytest.raises(ValueError, match="pos_label='maybe'"):
        metric(names[y], names[predicted], pos_label="maybe", **arguments)
    with pytest.raises(ValueError, match="y_true has 60 rows but y_pred has 59"):
        metric(y, predicted[:-1], **arguments)
    with pytest.raises(ValueError, match="y_true holds 0, 1 and y_pred '0', '1'; expected labels"):
        metric(y, predicted.astype(str), **arguments)


def test_messages_about_groups_name_them_and_a_single_column_is_one():
    X, y, group, _ = sample()
    tree = FairTreeClassifier(fairness=LOOSE)
    for use in (partial(tree.fit, X), partial(demographic_parity_difference, y)):
        for wrong, message in (
            (group + 0.5, "^sensitive_features holds .*; expected labels"),
            (np.column_stack([group, group]), r"^sensitive_features has shape \(60, 2\)"),
            (pd.DataFrame({"a": group, "b": group}), r"^sensitive_features has shape \(60, 2\)"),
        ):
            with pytest.raises(ValueError, match=message):
                use(y, sensitive_features=wrong)
        use(y, sensitive_features=pd.DataFrame({"a": group}))  # without a warning about y


def test_rates_without_rows_are_named():
    y, group = np.array([1, 1, 0, 0]), ["a", "a", "b", "b"]
    with pytest.raises(ValueError, match="group 'b' has no row of the positive class"):
        equal_opportunity_difference(y, y, sensitive_features=group)
    y[3] = 1
    with pytest.raises(ValueError, match="group 'a' has no row of the negative class"):
        equalized_odds_difference(y, y, sensitive_features=group)


def test_a_front_drops_every_tree_that_a_later_one_dominates():
    # Errors within the tolerance of the proof may fall as the difference does.
    costs = [(0.2, 0.3), (0.2 + 3e-12, 0.2), (0.2 - 1e-12, 0.1), (0.4, 0.0)]
    points = []
    for pair in costs:
        add_point(points, ParetoPoint(pair, None))
    assert [point.costs for point in points] == costs[2:]
