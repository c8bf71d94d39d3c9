"""``describe`` states what was searched and proven, for every kind of tree."""

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import KBinsDiscretizer

from bristlecone import (
    BinaryEncoder,
    CostSensitiveTreeClassifier,
    DemographicParity,
    FairTreeClassifier,
    GreedySurvivalTree,
    OptimalSurvivalTree,
    OptimalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
    PolicyTree,
    RmstParity,
    SoftSurvivalTree,
    Task,
    __version__,
)
from bristlecone.datasets import load
from bristlecone.exceptions import (
    InfeasibleError,
    InfeasibleWarning,
    SearchLimitWarning,
    SmallSampleWarning,
)

GBSG2 = load("gbsg2")


def reported(model):
    """The description on one line, after a check of its width."""
    text = model.describe()
    assert max(map(len, text.splitlines())) <= 88
    assert text.startswith(f"bristlecone {__version__} ({type(model).__name__})")
    return " ".join(text.split())


def test_the_unit_of_the_shrinkage_is_that_of_the_objective():
    X, y = [[0.0], [0.0], [1.0], [1.0]], [1.0, 2.0, 4.0, 8.0]
    for objective, unit in (
        ("squared-error", "5 pseudo-rows at the prediction of its parent"),
        ("poisson", "5 pseudo-counts at the rate of its parent"),
    ):
        model = OptimalTreeRegressor(objective=objective, shrinkage=5).fit(X, y)
        assert unit in reported(model)
        assert unit in reported(OptimalTreeRegressor.from_json(model.to_json()))
    survival = OptimalSurvivalTree(max_depth=1, shrinkage=5).fit(GBSG2.X, GBSG2.y)
    assert "5 pseudo-events at the relative hazard of its parent" in reported(survival)


def test_a_soft_tree_names_the_columns_of_an_array_as_its_splits_do():
    rng = np.random.default_rng(0)
    X, time = rng.normal(size=(80, 2)), rng.exponential(size=80)
    model = SoftSurvivalTree(depth=1, n_restarts=1, random_state=0)
    model.fit(X, (np.ones(80, dtype=bool), time))
    assert all(f"[{name}]" in model.splits_[0] for name in ("x0", "x1"))
    assert "The splits use x0, x1." in reported(model)


def test_a_survival_tree_says_what_was_searched_and_what_was_proven():
    model = OptimalSurvivalTree(max_depth=2, min_samples_leaf=20, leaf_penalty=0.01)
    model.fit(GBSG2.X, GBSG2.y)
    text = reported(model)
    # A greedy tree of depth two adds at most three thresholds to the 52 quantiles and levels.
    features = model.n_binary_features_
    assert 52 < features <= 55
    for part in (
        "searched all trees of depth at most 2",
        "at least 20 training rows in each leaf",
        f"at least 5 training events in each leaf over {features} binary features",
        "with a prior of 10 pseudo-events at the baseline hazard in every leaf",
        "mean likelihood loss",
        "Every leaf adds a penalty of 0.01.",
        "Training data: 686 rows, 299 events, 8 columns.",
        f"optimal among trees over these {features} binary features",
        f"objective {model.objective_value_:.10g}, lower bound {model.lower_bound_:.10g}, gap 0",
        "The thresholds of numeric columns are at most 10 quantiles of each, plus those of greedy "
        "trees over all thresholds. No value was missing.",
        "it splits on pnodes",
    ):
        assert part in text, part


def test_every_question_is_listed():
    model = OptimalSurvivalTree(max_depth=1).fit(GBSG2.X, GBSG2.y)
    text = reported(model)
    listed = 0
    for column in GBSG2.X.columns:
        after = text.rpartition("binary features:")[2].partition(f" {column} ")[2]
        words = after.removeprefix("<= ").removeprefix("= ").split(" ")
        while words and words[0].endswith(","):
            listed += 1
            words.pop(0)
        listed += 1
    assert listed == model.n_binary_features_


def test_weights_missing_values_and_unproven_searches_are_reported():
    X = pd.DataFrame({"age": [50.0, np.nan, 61.0, 70.0] * 10, "male": [True, False] * 20})
    y = np.ones(40, bool), np.arange(1.0, 41.0)
    for encoder, part in (
        ("auto", "replaced by the mean"),
        (BinaryEncoder(missing="branch"), "marks missing values"),
    ):
        model = OptimalSurvivalTree(max_depth=1, encoder=encoder)
        text = reported(model.fit(X, y, sample_weight=np.full(40, 2.5)))
        assert "40 rows of total weight 100, 40 events" in text
        assert "Values were missing in age: " in text
        assert part in text
    with pytest.warns(SearchLimitWarning):
        model = OptimalSurvivalTree(time_limit=0.0).fit(GBSG2.X, GBSG2.y)
    assert "stopped at the time limit: the best tree found so far" in reported(model)
    single = OptimalSurvivalTree(max_depth=0).fit(GBSG2.X, GBSG2.y)
    assert "The tree is a single leaf." in reported(single)


class Squares(Task):
    def statistics(self, X, y):
        return np.stack([np.ones(len(y)), y, y**2], axis=1)

    def leaf_cost(self, sums):
        return sums[:, 2] - sums[:, 1] ** 2 / sums[:, 0]


X = pd.DataFrame({"age": np.arange(40) % 13, "male": np.arange(40) % 2 == 0})
LABEL = np.arange(40) % 3 == 0
GROUP = np.where(np.arange(40) % 5 < 2, "a", "b")
OUTCOME = np.ones(40, bool), np.arange(1.0, 41.0)


@pytest.mark.parametrize(
    ("model", "y", "options", "parts"),
    [
        (OptimalTreeClassifier(), LABEL, {}, ["the least share of misclassified weight"]),
        (OptimalTreeClassifier(objective="f1"), LABEL, {}, ["the greatest F1 score"]),
        (
            CostSensitiveTreeClassifier(feature_costs={"age": 0.01}),
            LABEL,
            {},
            ["the least mean cost of the predicted labels"],
        ),
        (
            FairTreeClassifier(fairness=DemographicParity(0.3)),
            LABEL,
            {"sensitive_features": GROUP},
            ["the shares of the rows of a and of b that are predicted to be positive differ by"],
        ),
        (
            PolicyTree(reward="direct", capacities={1: 0.5}),
            np.arange(40.0),
            {"treatment": np.arange(40) % 2, "predicted_outcomes": np.eye(40)[:, :2]},
            ["estimated by the direct method", "it may prescribe 1 to at most 50% of the rows"],
        ),
        (OptimalTreeRegressor(max_leaf_nodes=3), OUTCOME[1], {}, ["at most 3 leaves"]),
        (OptimalTree(task=Squares()), OUTCOME[1], {}, ["mean cost by the task Squares"]),
        (
            OptimalSurvivalTree(objective="brier", time_grid=[10.0, 20.0, 40.0]),
            OUTCOME,
            {},
            ["integrated Brier score of the Kaplan–Meier curve", "over a time grid of 3"],
        ),
        (
            OptimalSurvivalTree(fairness=RmstParity(5.0, tau=30)),
            OUTCOME,
            {"sensitive_features": GROUP},
            ["up to 30 that is predicted for a and for b differs by at most 5"],
        ),
        (GreedySurvivalTree(criterion="logrank"), OUTCOME, {}, ["log-rank", "Nothing is proven"]),
        (
            GreedySurvivalTree(encoder=None),
            OUTCOME,
            {},
            ["The thresholds of numeric columns were chosen among all of them."],
        ),
        (
            SoftSurvivalTree(depth=1, n_restarts=1, random_state=0),
            OUTCOME,
            {},
            ["log-logistic model", "is not proven to be optimal"],
        ),
        (
            OptimalTreeRegressor(encoder=KBinsDiscretizer(3, encode="onehot", strategy="uniform")),
            OUTCOME[1],
            {},
            ["KBinsDiscretizer computed the binary features.", "age_"],
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_kind_of_tree_describes_itself(model, y, options, parts):
    if not isinstance(model, SoftSurvivalTree):
        model.set_params(max_depth=2)
    text = reported(model.fit(X, y, **options))
    for part in parts:
        assert part in text, text


def test_without_a_tree_there_is_nothing_to_describe():
    with pytest.raises(NotFittedError):
        OptimalSurvivalTree().describe()
    capacities = {0: 0.1, 1: 0.1}
    model = PolicyTree(reward="direct", capacities=capacities, max_depth=1)
    known = {"treatment": [0, 1, 0, 1], "predicted_outcomes": np.eye(4)[:, :2]}
    with pytest.warns(InfeasibleWarning):
        model.fit([[0], [1], [0], [1]], np.zeros(4), **known)
    with pytest.raises(InfeasibleError):
        model.describe()


def test_a_minimum_above_the_number_of_rows_is_that_number():
    with pytest.warns(SmallSampleWarning):
        tree = OptimalTreeClassifier(min_samples_leaf=50).fit([[0], [1], [1]], [0, 1, 1])
    assert "with at least 3 training rows in each leaf over" in " ".join(tree.describe().split())
