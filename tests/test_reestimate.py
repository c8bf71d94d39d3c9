"""``reestimate``: the same splits with leaves from other rows."""

import numpy as np
import pytest
from contract.subjects import BRIER, F1, SUBJECTS, THRESHOLDS
from survival_rows import sample
from tampering import changed

from bristlecone import (
    OptimalSurvivalTree,
    OptimalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    SoftSurvivalTree,
)
from bristlecone._cli.text import tree_text
from bristlecone._model.registry import dumps, loads
from bristlecone.datasets import load
from bristlecone.exceptions import ModelFormatError
from bristlecone.report import html_report
from bristlecone.trust import verify

WITHOUT = ("SoftSurvivalTree", "OptimalTree")
EVERY = {name: one for name, one in SUBJECTS.items() if name not in WITHOUT}
EVERY |= {"brier": BRIER, "f1": F1, "greedy over thresholds": THRESHOLDS}
SEARCHED = [name for name, subject in EVERY.items() if subject.searched]

every = pytest.mark.parametrize("name", EVERY)


def halves(name):
    """A tree of the first rows, and the other rows; every large leaf has some of them."""
    subject = EVERY[name]
    study = subject.study(n=160)
    first, other = study.take(np.arange(80)), study.take(np.arange(80, 160))
    return first.fit(subject.make(min_samples_leaf=12)), first, other


@every
def test_the_rows_of_the_fit_give_the_same_leaves(name):
    tree, first, _ = halves(name)
    again = tree.reestimate(first.X, first.y, **first.rows)
    assert again.objective_value_ == pytest.approx(tree.objective_value_, rel=1e-12, abs=1e-14)
    assert again.leaves_.facts() == tree.leaves_.facts()
    for array in ("feature", "n_node_samples", "threshold", "column", "improvement"):
        np.testing.assert_array_equal(getattr(again.tree_, array), getattr(tree.tree_, array))
    assert again.certificate_.structure.fingerprint == tree.certificate_.fingerprint


@every
def test_other_rows_give_leaves_that_verify(name):
    tree, first, other = halves(name)
    before = dumps(tree)
    honest = tree.reestimate(other.X, other.y, **other.rows)
    assert dumps(tree) == before
    assert type(honest) is type(tree)
    assert honest.splits_ == tree.splits_
    np.testing.assert_array_equal(honest.apply(first.X), tree.apply(first.X))
    assert honest.tree_.n_node_samples[0] == 80
    found = verify(honest, other.X, other.y, **other.rows)
    assert found.ok, found
    assert not verify(honest, first.X, first.y, **first.rows).ok
    assert not verify(tree, other.X, other.y, **other.rows).ok


@every
def test_nothing_is_claimed_of_the_other_rows(name):
    tree, _, other = halves(name)
    honest = tree.reestimate(other.X, other.y, **other.rows)
    found, first = honest.certificate_, tree.certificate_
    assert found.status == "reestimated" and not found.is_searched and not found.is_proved
    assert found.lower_bound == -np.inf and found.gap == np.inf and found.trace == ()
    structure = found.structure
    assert (structure.status, structure.objective_value, structure.lower_bound) == (
        first.status,
        first.objective_value,
        first.lower_bound,
    )
    assert structure.n_samples == first.n_samples and structure.scope == first.scope
    reported = honest.describe()
    assert "honest estimation" in reported
    assert f"on {first.n_samples} other rows" in " ".join(reported.split())
    assert first.sentence in " ".join(reported.split())
    assert "for which nothing is proven" in tree_text(honest, "rows")


@every
def test_it_is_saved_and_loaded(name):
    tree, _, other = halves(name)
    honest = tree.reestimate(other.X, other.y, **other.rows)
    text = dumps(honest)
    again = loads(text)
    assert dumps(again) == text
    assert again.describe() == honest.describe()
    assert verify(again, other.X, other.y, **other.rows).ok


@pytest.mark.parametrize("name", SEARCHED)
def test_once_more_keeps_what_was_proven_of_the_questions(name):
    tree, first, other = halves(name)
    once = tree.reestimate(other.X, other.y, **other.rows)
    twice = once.reestimate(first.X, first.y, **first.rows)
    assert twice.certificate_.structure.objective_value == tree.objective_value_
    assert twice.certificate_.structure.status == tree.status_


def test_predictions_are_those_of_the_other_rows():
    tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])
    honest = tree.reestimate([[0.0], [1.0], [9.0]], [2.0, 4.0, 7.0], sample_weight=[1.0, 3.0, 1.0])
    assert honest.predict([[1.0], [8.0]]).tolist() == [3.5, 7.0]
    assert tree.predict([[1.0], [8.0]]).tolist() == [2.0, 11.0]


def test_the_curves_and_the_baseline_are_those_of_the_other_rows():
    data = load("gbsg2")
    first = np.random.default_rng(0).random(len(data.y)) < 0.5
    tree = OptimalSurvivalTree(max_depth=2).fit(data.X[first], data.y[first])
    rows = data.X[~first][tree.features_used_], data.y[~first]
    honest = tree.reestimate(*rows)
    times = np.unique(rows[1]["time"])
    np.testing.assert_array_equal(honest.unique_times_, times)
    leaf = honest.leaves_.statistics[0]
    inside = honest.apply(rows[0]) == leaf.node
    assert leaf.n_events == rows[1]["event"][inside].sum()


def test_labels_that_the_search_chose_stay():
    X = [[0], [0], [0], [1], [1], [1]]
    tree = OptimalTreeClassifier(objective="f1", max_depth=1).fit(X, [0, 0, 0, 1, 1, 1])
    other = [1, 1, 0, 0, 0, 1]
    assert tree.reestimate(X, other).predict([[0], [1]]).tolist() == [0, 1]
    free = OptimalTreeClassifier(max_depth=1).fit(X, [0, 0, 0, 1, 1, 1])
    assert free.reestimate(X, other).predict([[0], [1]]).tolist() == [1, 0]


def test_a_leaf_without_events_is_estimated_without():
    X = np.array([[0], [0], [0], [1], [1], [1]])
    y = ([True] * 3 + [False, True, False], [1.0, 2, 3, 4, 5, 6])
    tree = OptimalSurvivalTree(max_depth=1, min_events_leaf=None, prior=0).fit(X, y)
    assert tree.n_leaves_ == 2
    rows = ([True, True, True, False, False, False], [1.0, 2, 3, 4, 5, 6])
    honest = tree.reestimate(X, rows)
    left, right = honest.leaves_.statistics
    without = left if left.n_events == 0 else right
    assert without.theta == 0.5 / without.hazard
    survival = honest.predict_survival_function(X, times=[6.0])
    assert verify(honest, X, rows).ok and (survival > 0).all()
    hazard = without.theta * honest.baseline_.cumulative_hazard[-1]
    assert survival.max() == np.exp(-hazard) < 1


def test_a_leaf_without_rows_is_refused_with_its_rule():
    tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])
    with pytest.raises(ValueError, match=r"no row of X falls in leaf 2 \(x0 >= 6\)"):
        tree.reestimate([[1.0], [2.0]], [1.0, 2.0])


def test_other_classes_are_refused():
    tree = OptimalTreeClassifier(max_depth=1).fit([[0], [0], [1]], ["a", "a", "b"])
    with pytest.raises(ValueError, match=r"classes of these rows are \['a', 'c'\]"):
        tree.reestimate([[0], [0], [1]], ["a", "a", "c"])
    with pytest.raises(ValueError, match=r"\['a'\], but those of the fit are \['a', 'b'\]"):
        tree.reestimate([[0], [0], [1]], ["a", "a", "a"])


def test_parameters_that_were_set_since_do_not_matter():
    name = "OptimalSurvivalTree"
    tree, _, other = halves(name)
    expected = tree.reestimate(other.X, other.y)
    tree.set_params(prior=3.0, leaf_curve="kaplan-meier", leaf_penalty=0.5)
    honest = tree.reestimate(other.X, other.y)
    assert honest.get_params()["prior"] == "auto"
    assert honest.objective_value_ == expected.objective_value_


def test_trees_without_yes_no_questions_or_with_tasks_of_code_have_none():
    assert not hasattr(SoftSurvivalTree, "reestimate")
    assert not hasattr(OptimalTree, "reestimate")


@pytest.mark.parametrize(
    ("fact", "value", "reported"),
    [
        ("structure_status", "trained", "structure_status is 'trained'"),
        ("structure_objective", "low", "structure_objective is not a number"),
    ],
)
def test_a_file_without_a_valid_structure_is_refused(fact, value, reported):
    tree, first, _ = halves("OptimalTreeRegressor")
    text = dumps(tree.reestimate(first.X, first.y))
    with pytest.raises(ModelFormatError, match=reported):
        loads(changed(text, {("certificate", "facts", fact): value}))
    bare = {"structure_status": "optimal"}
    with pytest.raises(ModelFormatError, match="structure_objective is missing"):
        loads(changed(text, {("certificate", "facts"): bare}))


def test_the_page_says_of_which_rows_the_leaves_are():
    pytest.importorskip("jinja2")
    X, y = sample()
    tree = OptimalSurvivalTree(max_depth=1).fit(X, y)
    page = html_report(tree.reestimate(X[::2], y[::2]))
    assert "The leaves were estimated again on other rows, for which nothing is proven." in page
    assert "found on 150 rows: optimal among trees over these" in page
    assert "Trained from several starts" not in page
