"""Second opinions on trees with a teacher, and their files."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from pace import slow_but
from scipy.special import xlogy
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from tampering import changed, numbers
from trees_plainly import least_objective

from bristlecone import (
    CostSensitiveTreeClassifier,
    DemographicParity,
    FairTreeClassifier,
    GreedySurvivalTree,
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    load_model,
    save_model,
)
from bristlecone._estimators.searched import again
from bristlecone._model.registry import dumps, loads
from bristlecone.exceptions import ModelFormatError, SmallSampleWarning
from bristlecone.trust import alternatives, near_optimal_trees, stability, verify

N = 120
RNG = np.random.default_rng(5)
X = pd.DataFrame(RNG.random((N, 5)) < 0.5, columns=[f"b{k}" for k in range(5)])
RISK = X["b0"].to_numpy() + (X["b1"] & X["b2"]).to_numpy() + 0.4 * X["b3"].to_numpy()
CLASS = np.digitize(RISK + 0.7 * RNG.normal(size=N), [0.4, 1.2])
NUMBER = RISK + RNG.normal(size=N)
COUNT, EXPOSURE = RNG.poisson(0.3 + RISK), RNG.integers(1, 5, N) / 2
WEIGHT = RNG.integers(1, 4, N) / 2 * (np.arange(N) > 3)
DIED, CENSORED = np.ceil(30 * RNG.exponential(size=N) / (0.5 + RISK)), RNG.uniform(5, 90, N)
LIVED = np.empty(N, dtype=[("event", bool), ("time", float)])
LIVED["event"], LIVED["time"] = DIED <= CENSORED, np.minimum(DIED, np.ceil(CENSORED))
COSTS = RNG.integers(0, 4, (N, 3)) + 2.0 * (np.arange(3) != CLASS[:, None])

SURVIVAL = {"min_events_leaf": None, "max_depth": 2}
# By name: the tree without a teacher, y, other arguments of ``fit``, and a fast teacher.
CASES = {
    "likelihood": (OptimalSurvivalTree(prior=0, **SURVIVAL), LIVED, {}, PoissonRegressor()),
    "prior": (OptimalSurvivalTree(prior=7, **SURVIVAL), LIVED, {}, PoissonRegressor()),
    **{
        name: (OptimalTreeClassifier(objective=name, max_depth=2), CLASS, {}, LogisticRegression())
        for name in ("accuracy", "balanced-accuracy", "gini", "entropy")
    },
    "costs": (CostSensitiveTreeClassifier(max_depth=2), CLASS, {"costs": COSTS}, Ridge()),
    "squared-error": (OptimalTreeRegressor(max_depth=2), NUMBER, {}, Ridge()),
    "poisson": (
        OptimalTreeRegressor(objective="poisson", max_depth=2),
        COUNT,
        {"exposure": EXPOSURE},
        PoissonRegressor(),
    ),
}
GREEDY = GreedySurvivalTree(max_depth=2), LIVED, {}, PoissonRegressor()
EVERY = {**CASES, "greedy": GREEDY}


def fitted(name, **parameters):
    """The tree with a teacher, y, and the other arguments of its fit."""
    model, y, rows, teacher = EVERY[name]
    parameters = {"teacher": teacher, **parameters}
    made = type(model)(**{**model.get_params(deep=False), **parameters})
    return made.fit(X, y, **rows), y, rows


def failed(found):
    return [check.name for check in found.failed]


def plain_hazards():
    """Nelson–Aalen estimate of all rows, at the time of each."""
    event, time = LIVED["event"], LIVED["time"]
    steps = [event[time == t].sum() / (time >= t).sum() for t in np.unique(time)]
    hazard = np.cumsum(steps)[np.searchsorted(np.unique(time), time)]
    return np.where(hazard > 0, hazard, 1 / (N + 1))


def leaf_loss(name, smoothed):
    """Contribution of rows as one leaf to the smoothed objective."""

    def counted(exposure, prior):
        own = xlogy(smoothed, smoothed / exposure)

        def loss(rows):
            events, total = smoothed[rows].sum() + prior, exposure[rows].sum() + prior
            return (own[rows].sum() - xlogy(events, events / total)) / N

        return loss

    def labelled(rows):
        sums = smoothed[rows].sum(axis=0)
        if name == "gini":
            return (sums.sum() - (sums**2).sum() / sums.sum()) / N
        if name == "entropy":
            return -xlogy(sums, sums / sums.sum()).sum() / N
        if name == "balanced-accuracy":
            sums = sums / np.bincount(CLASS) * N / 3
        return (sums.sum() - sums.max()) / N

    if name in ("likelihood", "prior"):
        return counted(plain_hazards(), 7 if name == "prior" else 0)
    if name == "poisson":
        return counted(EXPOSURE, 0)
    if name == "costs":
        return lambda rows: smoothed[rows].sum(axis=0).min() / N
    if name == "squared-error":
        return lambda rows: ((smoothed[rows] - smoothed[rows].mean()) ** 2).sum() / N
    return labelled


@pytest.mark.parametrize("name", CASES)
def test_the_objective_is_the_least_smoothed_loss_of_all_trees(name):
    tree, y, rows = fitted(name, teacher_weight=0.6)
    smoothed = again(tree, X, y, **rows).problem.data.smoothed
    least = least_objective(X.to_numpy(), leaf_loss(name, smoothed), max_depth=2)
    assert tree.objective_value_ == pytest.approx(least, rel=1e-9)
    real, _, _ = fitted(name, teacher=None)
    assert tree.training_loss_ >= real.objective_value_ * (1 - 1e-9)
    assert tree.objective_value_ != pytest.approx(real.objective_value_, rel=1e-3)


@pytest.mark.parametrize("name", slow_but({"prior"}, EVERY))
def test_taught_trees_verify_and_their_bounds_are_proven_again(name):
    model, y, rows, _ = EVERY[name]
    parameters = model.get_params(deep=False) | {"teacher": "auto", "random_state": 3}
    if name != "greedy":
        parameters["leaf_penalty"] = 0.001
    tree = type(model)(**parameters).fit(X, y, sample_weight=WEIGHT, **rows)
    found = verify(tree, X, y, sample_weight=WEIGHT, **rows)
    assert found.ok, found
    # The draws of a forest depend on the order of the columns.
    assert verify(tree, X[X.columns[::-1]], y, sample_weight=WEIGHT, **rows).ok
    for check in ("teacher", "objective value", "training loss", "improvements"):
        assert found[check].result == "passed"
    assert found["lower bound"].result == ("not checked" if name == "greedy" else "passed")
    assert tree.n_leaves_ > 2


@pytest.mark.slow
def test_neighbours_and_stability_accept_columns_in_another_order():
    tree, y, rows = fitted("likelihood", teacher="auto")
    other = X[X.columns[::-1]]
    near = [near_optimal_trees(tree, some, y, epsilon=0.0, **rows) for some in (X, other)]
    assert [one.splits_ for one in near[0]] == [one.splits_ for one in near[1]]
    found = [stability(tree, some, y, n_resamples=2, random_state=0, **rows) for some in (X, other)]
    pd.testing.assert_frame_equal(found[0].columns, found[1].columns)


@pytest.mark.parametrize("name", EVERY)
def test_rows_have_the_same_fingerprint_with_and_without_a_teacher(name):
    prints = {
        fitted(name, teacher=teacher)[0].certificate_.fingerprint
        for teacher in (None, EVERY[name][3])
    }
    assert len(prints) == 1


class Contrary(ClassifierMixin, BaseEstimator):
    """A teacher that always predicts the wrong class; ``fits`` counts its fits."""

    fits = 0

    def fit(self, X, y, sample_weight=None):
        Contrary.fits += 1
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        share = 0.9 - 0.8 * np.asarray(X, dtype=float)[:, 0]
        return np.column_stack([1 - share, share])


def test_leaves_give_the_labels_of_the_real_rows_whatever_the_teacher_says():
    y = X["b0"].to_numpy().astype(int)
    tree = OptimalTreeClassifier(max_depth=1, teacher=Contrary(), teacher_weight=0.9).fit(X, y)
    assert tree.score(X, y) == 1.0 and tree.training_loss_ == 0.0
    assert tree.objective_value_ == pytest.approx(0.19)
    found = verify(tree, X, y)
    assert found.ok, found
    wrong = replace(tree.leaves_, label=1 - tree.leaves_.label)
    tree.leaves_ = wrong
    assert {"labels", "training loss"} <= set(failed(verify(tree, X, y)))


def test_the_teacher_is_fitted_once_for_a_second_opinion():
    y = (RISK > 0.9).astype(int)
    tree = OptimalTreeClassifier(max_depth=2, teacher=Contrary()).fit(X, y)
    for ask in (
        verify,
        alternatives,
        lambda *rows: near_optimal_trees(*rows, epsilon=0.01),
        lambda *rows: stability(*rows, n_resamples=4, random_state=0),
    ):
        Contrary.fits = 0
        ask(tree, X, y)
        assert Contrary.fits == tree.certificate_.teacher.n_folds


@pytest.mark.parametrize("name", slow_but({"likelihood", "costs", "gini", "poisson"}, CASES))
def test_no_other_tree_is_below_a_taught_optimum(name):
    tree, y, rows = fitted(name)
    table = alternatives(tree, X, y, **rows)
    assert table["is_chosen"].any()
    assert table["difference"].min() >= -1e-9 * tree.objective_value_
    near = near_optimal_trees(tree, X, y, epsilon=0.0, **rows)
    np.testing.assert_allclose(near.objective_values, tree.objective_value_, rtol=1e-9)
    more = near_optimal_trees(tree, X, y, epsilon=0.2 * tree.objective_value_, **rows)
    assert len(more) > len(near) and more.complete
    worst = max(more, key=lambda one: one.objective_value_)
    assert worst.status_ == "near_optimal" and verify(worst, X, y, **rows).ok
    worst.certificate_ = replace(worst.certificate_, status="optimal")
    assert failed(verify(worst, X, y, **rows)) == ["lower bound"]


@pytest.mark.parametrize("name", CASES)
def test_stability_reports_on_the_real_outcomes(name):
    tree, y, rows = fitted(name)
    found = stability(tree, X, y, n_resamples=5, random_state=0, **rows)
    assert found.n_resamples == 5
    if name != "poisson":
        own = rows if name == "costs" else {}
        assert found.score == pytest.approx(tree.score(X, y, **own))
    if name in ("accuracy", "squared-error"):
        own = [y[tree.apply(X) == leaf] for leaf in found.leaves["leaf"]]
        if name == "accuracy":
            expected = [np.bincount(one).max() / len(one) for one in own]
        else:
            expected = [one.mean() for one in own]
        np.testing.assert_allclose(found.leaves["predicted"], expected)


@pytest.mark.parametrize("name", slow_but({"likelihood"}, EVERY))
def test_every_number_of_the_record_is_checked(name):
    tree, y, rows = fitted(name)
    text = dumps(tree)

    def verified(changes):
        model = loads(changed(text, changes)).set_params(teacher=EVERY[name][3])
        return verify(model, X, y, **rows)

    places = dict(numbers(json.loads(text)["certificate"]["teacher"]))
    assert len(places) == 9
    for place, value in places.items():
        new = value + 1 if isinstance(value, int) else value - 1e-3
        found = verified({("certificate", "teacher", *place): new})
        if place == ("training_loss",):
            assert failed(found) == ["training loss"]
            continue
        assert failed(found) == ["teacher"], place
        assert "does not give the smoothed outcomes" in found["teacher"].reason
        for check in ("objective value", "improvements", "lower bound"):
            assert found[check].result == "not checked" and "teacher" in found[check].reason
    for changes in ({"teacher_weight": 0.25}, {"random_state": 1}):
        found = verified({("parameters", key): value for key, value in changes.items()})
        assert failed(found) == ["teacher"]


@pytest.mark.slow
@pytest.mark.parametrize("names", slow_but({"oracle"}, ["forest", "oracle", "ridge forest oracle"]))
def test_the_models_of_the_record_are_fitted_again(names):
    tree, y, _ = fitted("squared-error", teacher="auto")
    assert tree.certificate_.teacher.members == ("ridge", "forest", "boosting")
    other = loads(changed(dumps(tree), {("certificate", "teacher", "members"): names.split()}))
    assert failed(verify(other, X, y)) == ["teacher"]


def test_false_claims_over_smoothed_outcomes_are_found_out():
    tree, y, _ = fitted("likelihood")
    found, right = tree.certificate_, tree.objective_value_
    tree.certificate_ = replace(found, objective_value=right * (1 + 1e-6))
    assert failed(verify(tree, X, y)) == ["objective value"]
    real = found.teacher.training_loss
    tree.certificate_ = replace(found, objective_value=real, lower_bound=real)
    assert failed(verify(tree, X, y)) == ["objective value", "lower bound"]
    shallow, _, _ = fitted("likelihood", max_depth=1)
    found = shallow.certificate_
    claimed = {**found.parameters, "max_depth": 2}
    shallow.certificate_ = replace(found, parameters=claimed)
    assert failed(verify(shallow, X, y)) == ["lower bound"]


def test_last_digits_of_another_machine_are_allowed_for():
    tree, y, _ = fitted("squared-error")
    found, teacher = tree.certificate_, tree.certificate_.teacher
    moments = tuple(one * (1 + 1e-7) for one in teacher.moments)
    for factor, wrong in ((1 + 2e-7, []), (1 - 2e-7, []), (1 + 1e-5, ["objective value"])):
        value = found.objective_value * factor
        tree.certificate_ = replace(
            found,
            objective_value=value,
            lower_bound=min(value, found.lower_bound),
            teacher=replace(teacher, moments=moments),
        )
        assert failed(verify(tree, X, y)) == wrong
    value = found.objective_value * (1 + 2e-7)
    tree.certificate_ = replace(found, objective_value=value)
    assert failed(verify(tree, X, y)) == ["objective value"]


def test_few_rows_are_warned_of_once():
    few, y = X[:20], NUMBER[:20]
    tree = OptimalTreeRegressor(max_depth=1, teacher=Ridge())
    with pytest.warns(SmallSampleWarning, match="fold of the teacher"):
        tree.fit(few, y)
    assert verify(tree, few, y).ok
    assert len(near_optimal_trees(tree, few, y, epsilon=0.0)) >= 1


@pytest.mark.parametrize("name", slow_but({"likelihood", "costs", "poisson"}, EVERY))
def test_a_teacher_of_the_users_own_stays_out_of_files(name, tmp_path):
    tree, y, rows = fitted(name)
    save_model(tree, tmp_path / "model.json")
    document = json.loads((tmp_path / "model.json").read_text())
    assert document["parameters"]["teacher"] is None
    assert document["certificate"]["teacher"]["name"] == repr(EVERY[name][3])
    model = load_model(tmp_path / "model.json")
    assert model.certificate_.teacher == tree.certificate_.teacher
    assert dumps(model) == dumps(tree)
    np.testing.assert_array_equal(model.predict(X), tree.predict(X))
    assert (model.teacher, model.training_loss_) == (None, tree.training_loss_)
    found = verify(model, X, y, **rows)
    assert found.ok and found["teacher"].result == "not checked"
    assert "set_params(teacher=...)" in found["teacher"].reason
    assert found["training loss"].result == "passed"
    for check in ("objective value", "improvements", "lower bound"):
        assert found[check].result == "not checked"
    model.set_params(teacher=EVERY[name][3])
    found = verify(model, X, y, **rows)
    assert found.ok and found["objective value"].result == "passed"
    assert dumps(model) == dumps(tree)


@pytest.mark.slow
def test_a_tree_from_a_file_needs_its_own_teacher():
    tree, y, _ = fitted("squared-error")
    model = loads(dumps(tree))
    for ask in (
        lambda _, *rows: model.fit(*rows),
        lambda _, *rows: model.size_path(*rows),
        alternatives,
        lambda *rows: near_optimal_trees(*rows, epsilon=0.0),
        lambda *rows: stability(*rows, n_resamples=2),
    ):
        with pytest.raises(ValueError, match=r"Ridge\(\), is not in its file; set it with set_par"):
            ask(model, X, y)
    for other in (Ridge(alpha=900.0), "auto"):
        model.set_params(teacher=other)
        assert failed(verify(model, X, y)) == ["teacher"]
        with pytest.raises(ValueError, match="does not give the smoothed outcomes"):
            alternatives(model, X, y)
    model.set_params(teacher=Ridge())
    near = near_optimal_trees(model, X, y, epsilon=0.0)
    assert verify(near[0], X, y).ok
    assert loads(dumps(near[0])).certificate_.teacher.name == "Ridge()"
    assert len(alternatives(model, X, y)) == len(alternatives(tree, X, y))


@pytest.mark.parametrize("name", EVERY)
def test_reestimated_leaves_are_of_real_outcomes_and_come_back_from_files(name):
    tree, y, rows = fitted(name)
    half = np.arange(N) % 2 == 0
    part = {key: values[half] for key, values in rows.items()}
    other = tree.reestimate(X[half], y[half], **part)
    penalty = other.certificate_.parameters.get("leaf_penalty", 0.0)
    assert other.training_loss_ == other.objective_value_ - penalty * other.n_leaves_
    model = loads(dumps(other))
    assert dumps(model) == dumps(other)
    assert model.certificate_.teacher == tree.certificate_.teacher
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    for one in (other, model):
        found = verify(one, X[half], y[half], **part)
        assert found.ok, found
        assert found["objective value"].result == "passed"
        assert "teacher" not in [check.name for check in found.checks]


RECORD = ("certificate", "teacher")


@pytest.fixture(scope="module")
def text_of_auto():
    return dumps(fitted("accuracy", teacher="auto")[0])


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ((*RECORD, "weight"), 1.5, r"^certificate\.teacher\.weight is not float <= 1"),
        ((*RECORD, "weight"), -0.1, r"^certificate\.teacher\.weight is not float >= 0"),
        ((*RECORD, "n_folds"), 1, r"^certificate\.teacher\.n_folds is not int >= 2"),
        ((*RECORD, "seed"), 0.5, r"^certificate\.teacher\.seed is float; expected int"),
        ((*RECORD, "members", 0), 3, r"^certificate\.teacher\.members\[0\] is int; expected str"),
        ((*RECORD, "members"), [], r"^certificate\.teacher\.members are the models of 'auto'"),
        ((*RECORD, "moments"), [0.0], r"^certificate\.teacher\.moments has 1 numbers; expected 4"),
        ((*RECORD, "score"), None, r"^certificate\.teacher\.score is null; expected float"),
        ((*RECORD, "name"), "Ridge()", r"^certificate\.teacher\.name is 'Ridge\(\)', but"),
        (RECORD, None, r"^certificate\.teacher is missing, but parameters\.teacher is 'auto'"),
        (("parameters", "teacher"), None, r"^certificate\.teacher\.name is 'auto', but"),
        (("parameters", "teacher"), "oracle", r"^parameters: teacher must be None, 'auto' or"),
        (("parameters", "teacher_weight"), 2.0, r"^parameters: teacher_weight must be"),
    ],
)
def test_tampered_records_are_refused_by_name(place, value, message, text_of_auto):
    document = json.loads(text_of_auto)
    inner = document
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(ModelFormatError, match=message):
        loads(json.dumps(document))


def test_a_record_of_a_class_without_teachers_is_refused():
    taught = fitted("likelihood")[0]
    record = json.loads(dumps(taught))["certificate"]["teacher"]
    labels = (RISK > 0.9).astype(int)
    fair = FairTreeClassifier(fairness=DemographicParity(0.5), max_depth=1)
    fair.fit(X, labels, sensitive_features=X["b4"])
    document = json.loads(dumps(fair))
    document["certificate"]["teacher"] = record
    with pytest.raises(ModelFormatError, match=r"^certificate\.teacher is of an estimator that"):
        loads(json.dumps(document))
