"""Fitted trees as text and dictionaries."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

from bristlecone.export import export_dict, export_text
from bristlecone.optimal import OptimalSurvivalTree

# Event times of rows with and without the gene; within the latter age decides.
X = pd.DataFrame(
    {"gene": [True] * 4 + [False] * 8, "age": [50.0, 60.0] * 2 + [50.0] * 4 + [60.0] * 4}
)
TIME = np.array([30.0, 31.0, 32.0, 33.0, 10.0, 11.0, 12.0, 13.0, 1.0, 2.0, 3.0, 4.0])
EVENT = np.array([False] * 3 + [True] * 9)


@pytest.fixture
def model():
    shape = OptimalSurvivalTree(max_depth=2, min_samples_leaf=4, leaf_curve="kaplan-meier")
    return shape.fit(X, (EVENT, TIME))


def test_text_shows_questions_and_leaves_in_the_names_of_the_user(model):
    theta = [f"theta={leaf.theta:.4g}" for leaf in model.leaf_statistics_]
    assert export_text(model) == (
        f"gene\n"
        f"|-- yes: n=4, events=1, {theta[0]}, median=33\n"
        f"`-- no:  age <= 55\n"
        f"    |-- yes: n=4, events=4, {theta[1]}, median=11\n"
        f"    `-- no:  n=4, events=4, {theta[2]}, median=2\n"
    )


def test_text_of_an_inner_yes_branch_is_connected():
    flipped = X.assign(gene=~X["gene"])
    model = OptimalSurvivalTree(max_depth=2, min_samples_leaf=4).fit(flipped, (EVENT, TIME))
    lines = export_text(model).splitlines()
    assert [line.split("n=")[0].rstrip() for line in lines] == [
        "gene",
        "|-- yes: age <= 55",
        "|   |-- yes:",
        "|   `-- no:",
        "`-- no:",
    ]


def test_median_that_is_not_reached_says_so():
    model = OptimalSurvivalTree(max_depth=0).fit(X, (TIME == 4.0, TIME))
    assert export_text(model).endswith("median=not reached\n")
    assert export_dict(model)["median"] is None


def test_dictionary_is_plain_and_holds_the_tree(model):
    described = export_dict(model)
    assert json.loads(json.dumps(described, allow_nan=False)) == described
    assert described["question"] == "gene"
    assert (described["node"], described["n_samples"], described["weight"]) == (0, 12, 12.0)
    leaf = described["no"]["yes"]
    of_leaf = model.leaf_statistics_[1]
    assert leaf == {
        "node": of_leaf.node,
        "n_samples": 4,
        "weight": 4.0,
        "n_events": 4,
        "theta": of_leaf.theta,
        "median": 11.0,
    }


def test_unfitted_trees_cannot_be_exported():
    for export in (export_dict, export_text):
        with pytest.raises(NotFittedError):
            export(OptimalSurvivalTree())
