"""Fitted trees as text and dictionaries."""

import json

import numpy as np
import pandas as pd
import pytest
from papers import PAPERS

from bristlecone import OptimalTreeClassifier, OptimalTreeRegressor
from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._estimators.survival import OptimalSurvivalTree
from bristlecone.curves import kaplan_meier
from bristlecone.datasets import load
from bristlecone.export import export_dict, export_dot, export_text

# Event times of rows with and without the gene; without it, they depend on age.
X = pd.DataFrame(
    {"gene": [True] * 4 + [False] * 8, "age": [50.0, 60.0] * 2 + [50.0] * 4 + [60.0] * 4}
)
TIME = np.array([30.0, 31.0, 32.0, 33.0, 10.0, 11.0, 12.0, 13.0, 1.0, 2.0, 3.0, 4.0])
EVENT = np.array([False] * 3 + [True] * 9)


@pytest.fixture
def model():
    shape = OptimalSurvivalTree(
        max_depth=2, min_samples_leaf=4, leaf_curve="kaplan-meier", **PAPERS
    )
    return shape.fit(X, (EVENT, TIME))


def test_text_shows_questions_and_leaves_in_the_names_of_the_user(model):
    theta = [f"theta={leaf.theta:.4g}" for leaf in model.leaf_statistics_]
    assert export_text(model) == (
        f"gene\n"
        f"|-- yes: [1] n=4, events=1, {theta[0]}, median=33 (33 to -)\n"
        f"`-- no:  age <= 55\n"
        f"    |-- yes: [3] n=4, events=4, {theta[1]}, median=11 (10 to -)\n"
        f"    `-- no:  [4] n=4, events=4, {theta[2]}, median=2 (1 to -)\n"
    )


def test_weighted_fits_show_weights_beside_counts():
    weight = np.where(X["gene"], 2.5, 0.5)
    model = OptimalSurvivalTree(max_depth=1, **PAPERS)
    model.fit(X, (EVENT, TIME), sample_weight=weight)
    first, *_ = model.leaf_statistics_
    assert (
        export_text(model)
        .splitlines()[1]
        .startswith(
            f"|-- yes: [1] n=4 (weight 10), events=1 (weight 2.5), theta={first.theta:.4g}, "
        )
    )
    assert export_dict(model)["yes"]["event_weight"] == 2.5
    model.fit(X, (EVENT, TIME), sample_weight=1e6 * weight)
    for text in (export_text(model), export_dot(model)):
        assert "n=4 (weight 10000000), events=1 (weight 2500000)" in text.replace("\\n", ", ")
    assert "weight" not in export_text(model.fit(X, (EVENT, TIME)))


def test_the_median_is_that_of_kaplan_meier_and_the_models_own_is_called_so():
    gbsg2 = load("gbsg2")
    model = OptimalSurvivalTree(max_depth=3, encoder=BinaryEncoder(), **PAPERS)
    model.fit(gbsg2.X, gbsg2.y)
    leaf = export_dict(model)["yes"]["yes"]["yes"]
    rows = model.apply(gbsg2.X) == leaf["node"]
    own = kaplan_meier(gbsg2.y[rows])
    lower, upper = own.median_interval()
    assert leaf["median"] == own.median == 2030
    assert (leaf["median_interval"], upper) == ([lower, None], np.inf)
    assert leaf["model_median"] == model.predict_median(gbsg2.X)[rows][0] == 2286


def test_a_median_that_rests_on_the_last_row_has_an_open_interval():
    # Nine of ten rows are censored before the last one has its event, so S falls from 1 to 0.
    event, time = np.arange(10) == 9, np.arange(1.0, 11.0)
    model = OptimalSurvivalTree(max_depth=0, objective="brier", **PAPERS)
    assert "median=10 (10 to -)" in export_text(model.fit(time[:, None], (event, time)))


def test_line_breaks_in_levels_do_not_break_lines():
    X = pd.DataFrame({"c": ["one\ntwo", "three"] * 4})
    text = export_text(OptimalTreeRegressor(max_depth=1).fit(X, [1.0, 2.0] * 4))
    assert text.splitlines()[0] == r"c = one\ntwo"


def test_no_sign_of_a_name_breaks_lines_or_controls_the_terminal():
    signs = "\r\x0b\x0c\x1b\x1e\x85\u2028"
    X = pd.DataFrame({f"a{signs}b": ["c\r\nd", "e\x1b[2Jf"] * 4})
    tree = OptimalTreeClassifier(max_depth=1).fit(X, ["g\rh", "i"] * 4)
    text = export_text(tree)
    assert not any(sign in text for sign in signs)
    assert len(text.splitlines()) == 3
    assert r"= c\r\nd" in text and r"a\r\x0b\x0c\x1b\x1e\x85\u2028b" in text
    # A last line lists the columns with missing values.
    X = pd.DataFrame({"a\nb": [1.0, None, 3.0, 4.0] * 4, "c": [0.0, 1.0] * 8})
    text = export_text(OptimalTreeClassifier(max_depth=1).fit(X, [0, 0, 1, 1] * 4))
    assert text.splitlines()[-1].startswith(r"missing in training: a\nb in 4 rows")
    # Letters stay as they are.
    X = pd.DataFrame({"größe 身長": [1.0, 2.0] * 4})
    assert "größe 身長 <= " in export_text(OptimalTreeRegressor(max_depth=1).fit(X, [1.0, 2.0] * 4))


def test_text_of_an_inner_yes_branch_is_connected():
    flipped = X.assign(gene=~X["gene"])
    model = OptimalSurvivalTree(max_depth=2, min_samples_leaf=4, **PAPERS)
    model.fit(flipped, (EVENT, TIME))
    lines = export_text(model).splitlines()
    assert [line.split("[")[0].rstrip() for line in lines] == [
        "gene",
        "|-- yes: age <= 55",
        "|   |-- yes:",
        "|   `-- no:",
        "`-- no:",
    ]


def test_median_that_is_not_reached_says_so():
    model = OptimalSurvivalTree(max_depth=0, **PAPERS).fit(X, (TIME == 4.0, TIME))
    assert export_text(model).endswith("median=not reached (4 to -)\n")
    described = export_dict(model)
    assert (described["median"], described["median_interval"]) == (None, [4.0, None])


def test_dictionary_is_plain_and_holds_the_tree(model):
    described = export_dict(model)
    assert json.loads(json.dumps(described, allow_nan=False)) == described
    assert described["split"] == "gene"
    assert (described["node"], described["n_samples"], described["weight"]) == (0, 12, 12.0)
    leaf = described["no"]["yes"]
    of_leaf = model.leaf_statistics_[1]
    assert leaf == {
        "node": of_leaf.node,
        "n_samples": 4,
        "weight": 4.0,
        "n_events": 4,
        "event_weight": 4.0,
        "theta": of_leaf.theta,
        "median": 11.0,
        "median_interval": [10.0, None],
        "model_median": 11.0,
    }
