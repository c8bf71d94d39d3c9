"""Reference models: their losses, and what a search that uses them proves."""

import logging
import re

import brier_plainly as plain
import numpy as np
import pandas as pd
import pytest
from papers import PAPERS
from survival_rows import sample

from bristlecone import curves
from bristlecone._estimators.greedy import GreedySurvivalTree
from bristlecone._estimators.survival import OptimalSurvivalTree
from bristlecone._model.registry import ModelFormatError, dumps, loads
from bristlecone.reference import brier_losses, brier_reference_loss
from bristlecone.report import certificate, html_report

X, Y = sample()
TIMES = np.unique(Y["months"])
WEIGHT = np.where(np.arange(150) % 10 == 0, 0.0, np.random.default_rng(1).uniform(0.5, 2, 150))


def brier(**parameters):
    return OptimalSurvivalTree(
        **{"objective": "brier", "leaf_penalty": 0.004, **PAPERS, **parameters}
    )


@pytest.fixture(scope="module")
def forest():
    ensemble = pytest.importorskip("sksurv.ensemble", reason="scikit-survival is not installed")
    model = ensemble.RandomSurvivalForest(n_estimators=30, max_depth=4, random_state=0)
    return model.fit(X.to_numpy(), Y)


def test_losses_of_a_forest_are_those_of_the_definition(forest):
    losses = brier_reference_loss(forest, X.to_numpy(), Y)
    functions = forest.predict_survival_function(X.to_numpy())
    expected = plain.row_losses(Y["months"], Y["dead"], functions)
    np.testing.assert_allclose(losses, expected, atol=1e-12)


@pytest.mark.parametrize("grid", [None, [3.0, 8.0, 30.0]])
def test_their_mean_is_the_objective_of_a_tree(grid):
    model = brier(max_depth=2, time_grid=grid).fit(X, Y, sample_weight=WEIGHT)
    losses = brier_reference_loss(model, X, Y, WEIGHT, time_grid=grid)
    mean = np.average(losses, weights=WEIGHT)
    expected = model.objective_value_ - 0.004 * model.n_leaves_
    assert mean == pytest.approx(expected, abs=1e-12)
    assert (losses[WEIGHT == 0] == 0).all()


def test_curves_may_be_functions_or_arrays():
    model = GreedySurvivalTree(leaf_curve="kaplan-meier").fit(X, Y)
    losses = brier_reference_loss(model, X, Y)
    values = model.predict_survival_function(X, return_array=True)
    np.testing.assert_allclose(brier_losses(Y, values, TIMES), losses, atol=1e-15)
    functions = model.predict_survival_function(X)
    bare = [lambda t, function=function: function(t) for function in functions]
    np.testing.assert_allclose(brier_losses(Y, bare), losses, atol=1e-15)
    outcomes = pd.DataFrame({"event": Y["dead"], "time": Y["months"]})
    np.testing.assert_array_equal(brier_losses(outcomes, functions), losses)


def test_curves_hold_before_and_after_their_steps():
    half = curves.StepFunction([10.0, 12.0], [0.5, 0.25], before=1.0)
    losses = brier_losses(Y, [half] * 150)
    np.testing.assert_allclose(
        losses, plain.row_losses(Y["months"], Y["dead"], [half] * 150), atol=1e-12
    )


def test_what_gives_no_losses_says_why():
    late = np.empty(2, dtype=[("dead", bool), ("months", float), ("entry", float)])
    late["dead"], late["months"], late["entry"] = True, [2.0, 3.0], 1.0
    values = np.full((150, len(TIMES)), 0.5)
    tree = GreedySurvivalTree(max_depth=1).fit(X, Y)
    for message, call in (
        ("no method predict_survival_function", lambda: brier_reference_loss("forest", X, Y)),
        ("150 rows, the outcome has 149", lambda: brier_losses(Y[:-1], values, TIMES)),
        ("times is needed", lambda: brier_losses(Y, values)),
        ("row 0 is not a probability", lambda: brier_losses(Y, 3 * values, TIMES)),
        ("in another order", lambda: brier_reference_loss(tree, X, pd.DataFrame(Y)[::-1])),
        ("y has delayed entry, which", lambda: brier_losses(late, values[:2], TIMES)),
        ("no time after 0", lambda: brier_losses(([True], [0.0]), values[:1], TIMES)),
        ("must return one value per time", lambda: brier_losses(Y, [lambda times: 0.5] * 150)),
    ):
        with pytest.raises((ValueError, TypeError), match=message):
            call()


@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["unweighted", "weighted"])
def test_a_search_with_a_forest_keeps_its_guarantee(forest, weight):
    losses = brier_reference_loss(forest, X.to_numpy(), Y, weight)
    best = brier(max_depth=3).fit(X, Y, sample_weight=weight)
    model = brier(max_depth=3).fit(X, Y, sample_weight=weight, reference_loss=losses)
    assert model.status_ == "reference_optimal"
    assert model.reference_loss_ == pytest.approx(np.average(losses, weights=weight), rel=1e-12)
    excess = model.objective_value_ - best.objective_value_
    assert -1e-12 <= excess <= model.guarantee_ <= model.reference_loss_
    assert model.guarantee_ == min(model.gap_, model.reference_loss_)
    # The bound does not depend on the reference model.
    assert model.lower_bound_ <= best.objective_value_ + 1e-12
    assert best.reference_loss_ is None and best.guarantee_ == best.gap_


def test_a_reference_without_loss_leaves_nothing_out():
    best = brier(max_depth=2).fit(X, Y)
    model = brier(max_depth=2).fit(X, Y, reference_loss=np.zeros(150))
    assert model.status_ == "reference_optimal"
    assert model.objective_value_ == pytest.approx(best.objective_value_, abs=1e-12)
    assert model.guarantee_ == 0


def test_a_reference_worse_than_every_tree_stops_the_search_at_once():
    model = brier(max_depth=3).fit(X, Y, reference_loss=np.full(150, 10.0))
    assert model.status_ == "reference_optimal"
    assert model.n_nodes_explored_ < brier(max_depth=3).fit(X, Y).n_nodes_explored_
    assert model.guarantee_ == model.gap_ < 10.0


@pytest.mark.parametrize(
    ("losses", "message"),
    [
        (np.zeros(149), r"reference_loss has shape \(149,\); expected \(150,\)"),
        (np.full(150, np.nan), "reference_loss is nan in row 0"),
        (np.where(np.arange(150) == 7, -0.5, 0.0), "reference_loss is -0.5 in row 7"),
        (["low"] * 150, "reference_loss has dtype"),
    ],
)
def test_bad_losses_are_named(losses, message):
    with pytest.raises(ValueError, match=message):
        brier().fit(X, Y, reference_loss=losses)


def test_no_report_calls_such_a_tree_optimal(caplog):
    losses = np.full(150, 0.05)
    with caplog.at_level(logging.INFO, logger="bristlecone"):
        model = brier(max_depth=2, verbose=1).fit(X, Y, reference_loss=losses)
    assert "guarantee: no tree is better by more than" in caplog.text
    sentence, numbers = certificate(model)
    assert sentence.startswith("best with respect to the reference model; not proven optimal")
    assert dict(numbers)["guarantee"] == f"no tree is better by more than {model.guarantee_:.6g}"
    page = html_report(model)
    assert 'class="proof open"' in page
    assert re.search("Best with respect to the reference model", page)


def test_models_keep_their_reference_when_saved():
    model = brier(max_depth=1).fit(X, Y, reference_loss=np.full(150, 0.05))
    again = loads(dumps(model))
    assert again.status_ == "reference_optimal"
    assert (again.reference_loss_, again.guarantee_) == (model.reference_loss_, model.guarantee_)
    text = dumps(model).replace(
        f'"reference_loss":{model.reference_loss_}', '"reference_loss":null'
    )
    assert text != dumps(model)
    with pytest.raises(ModelFormatError, match="status needs a reference_loss"):
        loads(text)
