"""``fit_partitions``: the same tree, objective, bound and leaves as with one frame."""

import warnings

import numpy as np
import pandas as pd
import pytest
from pace import slow_but

from bristlecone import (
    BinaryEncoder,
    CompetingRisksTree,
    CostSensitiveTreeClassifier,
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    PolicyTree,
    load_model,
    outcome,
    save_model,
)
from bristlecone.exceptions import (
    ConstantFeatureWarning,
    EventFreeWarning,
    InvalidParameterError,
    OverlapWarning,
    SearchLimitWarning,
    SmallSampleWarning,
)
from bristlecone.scale import PassProgress, fit_partitions, predict_partitions
from bristlecone.trust import alternatives, verify


def random_table(seed, n_rows=300):
    rng = np.random.default_rng(seed)
    age = np.round(rng.normal(60, 12, n_rows), rng.integers(0, 3))
    dose = rng.integers(0, 40, n_rows).astype(float)
    dose[rng.random(n_rows) < 0.1] = np.nan
    stage = rng.choice(["I", "II", "III", "IV"], n_rows).astype(object)
    stage[rng.random(n_rows) < 0.05] = None
    flag = rng.random(n_rows) < 0.3
    grade = pd.Categorical(
        rng.choice(["a", "b", "c"], n_rows), categories=["c", "a", "b", "z"], ordered=True
    )
    risk = 0.03 * (age - 60) + flag + (stage == "IV")
    time = np.ceil(rng.exponential(100 * np.exp(-risk)))
    return pd.DataFrame(
        {
            "age": age,
            "dose": dose,
            "stage": stage,
            "flag": flag,
            "same": ~flag,
            "grade": grade,
            "constant": 1.5,
            "time": time,
            "event": rng.random(n_rows) < 0.7,
            "cause": rng.integers(0, 3, n_rows),
            "entry": np.floor(time * rng.random(n_rows) * 0.5),
            "weight": rng.choice([0.0, 0.5, 1.0, 2.25, 0.1], n_rows),
            "label": rng.choice(["no", "yes", "maybe"], n_rows, p=[0.5, 0.3, 0.2]),
            "count": rng.poisson(np.exp(0.02 * (age - 60))),
            "exposure": rng.choice([0.5, 1.0, 3.0], n_rows),
            "value": np.round(age + rng.normal(0, 5, n_rows), 1),
            "arm": rng.choice(["A", "B"], n_rows),
            "propensity": rng.choice([0.25, 0.5, 0.75], n_rows),
            "cost 0": np.round(rng.random(n_rows), 1),
            "cost 1": np.round(rng.random(n_rows), 1),
            "cost 2": np.round(rng.random(n_rows), 1),
        }
    )


CLASSES = ["maybe", "no", "yes"]
FEATURES = ["age", "dose", "stage", "flag", "same", "grade", "constant"]


def cut(table, seed, columns):
    """A table in random pieces, in any order; a piece may be empty."""
    rng = np.random.default_rng(seed)
    ends = np.sort(rng.integers(0, len(table) + 1, 5))
    bounds = zip([0, *ends], [*ends, len(table)], strict=True)
    pieces = [table[columns].iloc[start:end] for start, end in bounds]
    # The first piece has rows, because an empty table is another error.
    pieces = [pieces[k] for k in rng.permutation(len(pieces))]
    return sorted(pieces, key=lambda piece: not len(piece))


def same(got, whole, table, *, exact=True):
    """Assert that all results of two fits are the same."""
    assert got.encoder_.to_dict() == whole.encoder_.to_dict()
    assert got.status_ == whole.status_ == "optimal"
    # The order of rows may change the last digits of sums of weights and so the bound,
    # which allows for these digits.
    objective, bound = (0.0, 0.0) if exact else (1e-13, 1e-11)
    assert got.objective_value_ == pytest.approx(whole.objective_value_, rel=objective, abs=0)
    assert got.lower_bound_ == pytest.approx(whole.lower_bound_, rel=bound, abs=0)
    for name in ("children_left", "feature", "n_node_samples", "n_missing", "column"):
        assert np.array_equal(getattr(got.tree_, name), getattr(whole.tree_, name)), name
    close = {"rtol": 0, "atol": 0} if exact else {"rtol": 1e-11, "atol": 1e-13}
    for name in ("weighted_n_node_samples", "threshold"):
        left, right = getattr(got.tree_, name), getattr(whole.tree_, name)
        np.testing.assert_allclose(left, right, **close)
    np.testing.assert_allclose(
        got.tree_.improvement, whole.tree_.improvement, rtol=1e-9, atol=1e-12
    )
    pd.testing.assert_frame_equal(
        got.leaf_table(), whole.leaf_table(), check_exact=exact, rtol=1e-11
    )
    assert got.certificate_.n_samples == whole.certificate_.n_samples
    assert got.certificate_.aim == whole.certificate_.aim
    assert got.certificate_.settings == whole.certificate_.settings
    X = table[FEATURES]
    assert np.array_equal(got.apply(X), whole.apply(X))
    if hasattr(whole, "predict_survival_function") and not hasattr(whole, "n_causes_"):
        curves = [one.predict_survival_function(X, times=[10.0, 60.0]) for one in (got, whole)]
        np.testing.assert_allclose(*curves, **close)


@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("entry", [None, "entry"])
@pytest.mark.parametrize("seed", slow_but({0}, range(3)))
def test_survival_tree_is_that_of_one_frame(seed, entry, weight):
    table = random_table(seed)
    tree = OptimalSurvivalTree(max_depth=2, encoder=BinaryEncoder(n_thresholds=4))
    columns = [*FEATURES, "time", "event", *filter(None, (entry, weight))]
    whole = tree.fit(
        table[FEATURES],
        outcome(table["event"], table["time"], None if entry is None else table[entry]),
        None if weight is None else table[weight],
    )
    got = fit_partitions(
        OptimalSurvivalTree(max_depth=2, encoder=BinaryEncoder(n_thresholds=4)),
        cut(table, seed, columns),
        entry=entry,
        weight=weight,
        n_jobs=1 + seed % 2,
    )
    same(got, whole, table, exact=weight is None)


CASES = {
    "classifier": (OptimalTreeClassifier, {}, {"target": "label"}, {}),
    "balanced": (
        OptimalTreeClassifier,
        {"objective": "balanced-accuracy"},
        {"target": "label", "weight": "weight"},
        {},
    ),
    "class weight": (
        OptimalTreeClassifier,
        {"objective": "gini", "class_weight": "balanced"},
        {"target": "label"},
        {},
    ),
    "no class": (
        OptimalTreeClassifier,
        {"objective": "entropy", "class_weight": {"maybe": 0.0, "no": 1.0, "yes": 2.0}},
        {"target": "label"},
        {},
    ),
    "squares": (OptimalTreeRegressor, {}, {"target": "value"}, {}),
    "weighted squares": (OptimalTreeRegressor, {}, {"target": "value", "weight": "weight"}, {}),
    "rates": (
        OptimalTreeRegressor,
        {"objective": "poisson"},
        {"target": "count", "exposure": "exposure"},
        {"exposure": "exposure"},
    ),
    "causes": (CompetingRisksTree, {"cause_weights": [1.0, 0.5]}, {"event": "cause"}, {}),
    "costs": (
        CostSensitiveTreeClassifier,
        {"feature_costs": {"age": 0.01}},
        {"target": "label", "costs": ["cost 0", "cost 1", "cost 2"]},
        {"costs": ["cost 0", "cost 1", "cost 2"]},
    ),
    "policy": (
        PolicyTree,
        {"reward": "inverse-propensity"},
        {"target": "value", "treatment": "arm", "propensity": "propensity"},
        {"treatment": "arm", "propensity": "propensity"},
    ),
}


@pytest.mark.parametrize("seed", slow_but([0], range(2)))
@pytest.mark.parametrize("case", CASES)
def test_other_trees_are_those_of_one_frame(case, seed):
    kind, parameters, roles, more = CASES[case]
    table = random_table(seed + 10)
    parameters = {"max_depth": 2, "encoder": BinaryEncoder(n_thresholds=3), **parameters}
    y = table[roles["target"]] if "target" in roles else outcome_of_causes(table)
    given = {name: table[column] for name, column in more.items()}
    weight = table[roles["weight"]] if "weight" in roles else None
    whole = kind(**parameters).fit(table[FEATURES], y, sample_weight=weight, **given)
    asked = [
        name for value in roles.values() for name in ([value] if isinstance(value, str) else value)
    ]
    columns = [*FEATURES, *asked, *(["time"] if "target" not in roles else [])]
    got = fit_partitions(kind(**parameters), cut(table, seed, columns), **roles)
    same(got, whole, table, exact=False)
    order = np.random.default_rng(seed).permutation(len(table))
    given = {name: values.iloc[order] for name, values in given.items()}
    if weight is not None:
        given["sample_weight"] = weight.iloc[order]
    shuffled = y[order] if isinstance(y, np.ndarray) else y.iloc[order]
    checks = verify(got, table[FEATURES].iloc[order], shuffled, **given)
    assert checks.ok, str(checks)


def outcome_of_causes(table):
    y = np.empty(len(table), dtype=[("event", int), ("time", float)])
    y["event"], y["time"] = table["cause"], table["time"]
    return y


def test_fitted_tree_is_verified_saved_and_described(tmp_path):
    table = random_table(1)
    columns = [*FEATURES, "time", "event"]
    tree = fit_partitions(OptimalSurvivalTree(max_depth=2), cut(table, 0, columns))
    shuffled = table.sample(frac=1.0, random_state=0)
    checks = verify(tree, shuffled[FEATURES], outcome(shuffled["event"], shuffled["time"]))
    assert checks.ok, str(checks)
    other = table.assign(time=table["time"] + 1.0)
    assert verify(tree, other[FEATURES], outcome(other["event"], other["time"]))["rows"].result == (
        "failed"
    )
    save_model(tree, tmp_path / "tree.json")
    loaded = load_model(tmp_path / "tree.json")
    assert np.array_equal(loaded.predict(table[FEATURES]), tree.predict(table[FEATURES]))
    assert loaded.certificate_.fingerprint == tree.certificate_.fingerprint
    words = " ".join(tree.describe().split())
    assert "Partitions: 6, read one by one; encoder='auto' means thresholds" in words
    assert "greedy" not in words


def test_fingerprint_does_not_depend_on_the_partitions():
    table = random_table(2)
    columns = [*FEATURES, "time", "event"]
    trees = [
        fit_partitions(OptimalSurvivalTree(max_depth=1), cut(table, seed, columns))
        for seed in range(3)
    ]
    assert len({tree.certificate_.fingerprint for tree in trees}) == 1


def test_event_free_side_is_found():
    table = random_table(3)
    table.loc[table["flag"], "event"] = False
    columns = [*FEATURES, "time", "event"]
    with pytest.warns(EventFreeWarning) as seen:
        whole = OptimalSurvivalTree(max_depth=2, encoder=BinaryEncoder()).fit(
            table[FEATURES], outcome(table["event"], table["time"])
        )
        got = fit_partitions(OptimalSurvivalTree(max_depth=2), cut(table, 0, columns))
    same(got, whole, table)
    assert len({str(warning.message) for warning in seen}) == 1
    found = verify(got, table[FEATURES], outcome(table["event"], table["time"]))
    assert found.ok, found
    assert found["events of a leaf"].expected == "at least 0"


def test_alternatives_take_the_rows_in_any_order():
    table = random_table(2)
    tree = fit_partitions(
        OptimalSurvivalTree(max_depth=2), cut(table, 0, [*FEATURES, "time", "event"])
    )
    shuffled = table.sample(frac=1, random_state=0)
    found, again = (
        alternatives(tree, rows[FEATURES], outcome(rows["event"], rows["time"]))
        for rows in (table, shuffled)
    )
    pd.testing.assert_frame_equal(found, again)
    with pytest.raises(ValueError, match="not the rows of the fit"):
        alternatives(tree, table[FEATURES], outcome(table["event"], 2 * table["time"]))


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        (OptimalSurvivalTree(objective="brier"), "order of time"),
        (OptimalSurvivalTree(teacher="auto"), "teacher"),
        (OptimalSurvivalTree(encoder=None), "encoder must be"),
        (OptimalSurvivalTree(encoder=BinaryEncoder(thresholds="ensemble")), "all rows at once"),
        (OptimalTreeClassifier(objective="f1"), "front"),
        (PolicyTree(reward="direct"), "predicted outcomes"),
        (PolicyTree(horizon=5), "horizon cannot be used with partitions"),
        (PolicyTree(min_samples_treatment=2), "min_samples_treatment cannot be used"),
        (object(), "estimator must be one of"),
    ],
)
def test_what_needs_all_rows_is_refused(tree, reason):
    def never():
        raise AssertionError("read")

    with pytest.raises(InvalidParameterError, match=reason):
        fit_partitions(tree, never)


def test_rows_without_overlap_are_counted_over_partitions():
    table = random_table(3).assign(arm=[0, 1] * 150, value=1.0)
    table["p0"] = np.where(np.arange(300) < 30, 0.001, 0.5)
    table["p1"] = 1.0 - table["p0"]
    parts = cut(table, 0, [*FEATURES, "arm", "value", "p0", "p1"])
    tree = PolicyTree(reward="inverse-propensity", max_depth=1, min_propensity=0.01)
    roles = {"target": "value", "treatment": "arm", "propensity": ["p0", "p1"]}
    with pytest.warns(OverlapWarning, match=r"^10% of the rows \(30 of 300\).*30 of treatment 0"):
        fit_partitions(tree, parts, **roles)


def test_columns_called_after_classes_or_treatments_may_be_in_any_order():
    table = random_table(3).rename(columns={f"cost {k}": name for k, name in enumerate(CLASSES)})
    table["A"] = 0.2 + 0.6 * (table["age"] > 60)
    table["B"] = 1.0 - table["A"]
    costly = CostSensitiveTreeClassifier(max_depth=1, encoder=BinaryEncoder())
    policy = PolicyTree(reward="inverse-propensity", max_depth=1, encoder=BinaryEncoder())
    for tree, role, names, more in (
        (costly, "costs", CLASSES, {"target": "label"}),
        (policy, "propensity", ["A", "B"], {"target": "value", "treatment": "arm"}),
    ):
        parts = cut(table, 0, [*FEATURES, *names, *more.values()])
        expected = fit_partitions(tree, parts, **more, **{role: names}).objective_value_
        assert fit_partitions(tree, parts, **more, **{role: names[::-1]}).objective_value_ == (
            expected
        )


def test_order_of_levels_by_outcome_is_refused():
    table = random_table(4).assign(site=[f"s{k % 15}" for k in range(300)])
    parts = cut(table, 0, ["site", "time", "event"])
    with pytest.raises(InvalidParameterError, match="'site' has 15 levels"):
        fit_partitions(OptimalSurvivalTree(), parts)
    encoder = BinaryEncoder(categories="levels")
    got = fit_partitions(OptimalSurvivalTree(max_depth=1, encoder=encoder), parts)
    whole = OptimalSurvivalTree(max_depth=1, encoder=encoder).fit(
        table[["site"]], outcome(table["event"], table["time"])
    )
    assert got.encoder_.to_dict() == whole.encoder_.to_dict()


def test_progress_is_reported():
    table = random_table(5)
    seen = []
    fit_partitions(
        OptimalSurvivalTree(max_depth=1),
        cut(table, 0, [*FEATURES, "time", "event"]),
        callback=seen.append,
    )
    passes = [one for one in seen if isinstance(one, PassProgress)]
    assert list(dict.fromkeys(one.name for one in passes)) == [
        "outcomes",
        "columns",
        "repeated features",
        "sums",
        "leaves",
    ]
    assert passes[-1].n_parts == passes[-1].n_parts_total and passes[-1].n_rows == 300
    assert passes[-1].seconds_left == 0.0


def test_progress_is_logged(caplog):
    table = random_table(5)
    parts = cut(table, 0, [*FEATURES, "time", "event"])
    with caplog.at_level("INFO", logger="bristlecone"):
        fit_partitions(OptimalSurvivalTree(max_depth=1, verbose=1), parts)
    text = caplog.text
    assert "quantiles of all rows" in text
    assert "missing values: dose in" in text
    for name in ("outcomes", "columns", "sums", "leaves"):
        assert f"{name}: 6 of 6 partitions, 300 rows, " in text


def test_interrupt_keeps_the_earlier_fit():
    table = random_table(6)
    parts = cut(table, 0, [*FEATURES, "time", "event"])
    tree = fit_partitions(OptimalSurvivalTree(max_depth=1), parts)
    before = tree.certificate_

    def stop(progress):
        if getattr(progress, "name", "") == "sums":
            raise KeyboardInterrupt

    for n_jobs in (1, 2):
        with pytest.raises(KeyboardInterrupt):
            fit_partitions(tree, parts, callback=stop, n_jobs=n_jobs)
        assert tree.certificate_ is before


def test_shares_that_rule_out_every_split():
    table = random_table(7)[["flag", "time", "event"]]
    y = outcome(table["event"], table["time"])
    for parameters in ({"min_samples_leaf": 0.49}, {"min_events_leaf": 0.49}):
        parameters["encoder"] = BinaryEncoder()
        with pytest.warns(SmallSampleWarning) as seen:
            whole = OptimalSurvivalTree(**parameters).fit(table[["flag"]], y)
            got = fit_partitions(OptimalSurvivalTree(**parameters), [table[:100], table[100:]])
        assert len({str(warning.message) for warning in seen}) == 1 and len(seen) == 2
        assert got.n_leaves_ == whole.n_leaves_ == 1


def test_tables_without_splits():
    """Constant columns, one distinct outcome, a single leaf."""
    table = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "time": 2.0, "event": True})
    neutral = {"min_events_leaf": None, "encoder": BinaryEncoder()}
    y = outcome(table["event"], table["time"])
    for given in (table, table.assign(x=1.0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConstantFeatureWarning)
            whole = OptimalSurvivalTree(**neutral).fit(given[["x"]], y)
            got = fit_partitions(OptimalSurvivalTree(**neutral), [given[:1], given[1:]])
        assert got.objective_value_ == whole.objective_value_
        assert got.n_leaves_ == whole.n_leaves_ and got.status_ == "optimal"
    stump = fit_partitions(OptimalSurvivalTree(max_depth=0, **neutral), [table[:1], table[1:]])
    assert stump.n_leaves_ == 1
    with pytest.raises(InvalidParameterError, match="max_depth=4 or less"):
        fit_partitions(
            OptimalSurvivalTree(max_depth=5, encoder=BinaryEncoder(thresholds="midpoints")),
            [random_table(8)[["age", "time", "event"]]],
        )


def test_sums_that_exceed_the_memory_limit():
    table = random_table(9)
    tree = OptimalSurvivalTree(max_depth=3, memory_limit=20_000)
    with pytest.raises(ValueError, match="max_depth=2 fits"):
        fit_partitions(tree, [table[[*FEATURES, "time", "event"]]])


def test_time_limit_gives_a_tree_with_a_bound():
    table = random_table(11)
    tree = OptimalSurvivalTree(max_depth=4, time_limit=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchLimitWarning)
        fit_partitions(tree, [table[[*FEATURES, "time", "event"]]])
    assert tree.status_ in ("time_limit", "optimal")
    assert tree.lower_bound_ <= tree.objective_value_ + 1e-12


@pytest.mark.parametrize("method", [None, "_check_fitted", "n_leaves_", "forecast"])
def test_predictions_need_the_name_of_a_method(method):
    X = pd.DataFrame({"x": [0.0, 1.0] * 20})
    tree = OptimalTreeRegressor(max_depth=1).fit(X, X["x"])
    with pytest.raises(
        InvalidParameterError, match=f"OptimalTreeRegressor has no method {method!r}"
    ):
        predict_partitions(tree, [X], method)
