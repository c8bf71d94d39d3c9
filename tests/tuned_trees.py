"""Trees whose size is chosen, their rows, and plain folds and scores."""

import numpy as np
import pandas as pd
from sklearn.model_selection import (
    KFold,
    StratifiedKFold,
)
from survival_rows import sample

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
    Task,
)

PLAIN = {"max_depth": 2, "encoder": BinaryEncoder(n_thresholds=4)}


class Poisson(Task):
    """Scores the deviance of counts, for predictions of the rate."""

    def statistics(self, X, y):
        return np.column_stack([y, np.ones(len(y))])

    def leaf_cost(self, sums):
        events, rows = sums.T
        return np.where(events > 0, -events * np.log(np.maximum(events, 1) / rows), 0.0)

    def leaf_value(self, sums):
        return sums[:, 0] / sums[:, 1]

    def score(self, y, predicted, sample_weight):
        return -np.average(np.abs(y - predicted), weights=sample_weight)


def numbers(n=120, seed=0):
    """Columns with a label, a number, a treatment, and other values per row."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    score = X[:, 0] + (X[:, 1] > 0) * X[:, 2] + rng.normal(size=n)
    return X, score, rng


def survival_case():
    X, y = sample(120)
    weight = np.random.default_rng(0).uniform(0.5, 2, 120)
    return OptimalSurvivalTree(**PLAIN), X, y, {"sample_weight": weight}, y["dead"]


def greedy_case():
    _, X, y, more, strata = survival_case()
    return GreedySurvivalTree(**PLAIN), X, y, more, strata


def classifier_case():
    X, score, _ = numbers()
    y = np.where(score > 1, "high", np.where(score < -1, "low", "mid"))
    return OptimalTreeClassifier(**PLAIN), X, y, {}, y


def costly_case():
    X, score, rng = numbers()
    y = (score > 0).astype(int)
    costs = rng.uniform(0, 3, size=(120, 2)) * (1 - np.eye(2))[y]
    return CostSensitiveTreeClassifier(**PLAIN), X, y, {"costs": costs}, y


def fair_case():
    X, score, rng = numbers()
    y = score > 0
    tree = FairTreeClassifier(fairness=DemographicParity(0.2), **PLAIN)
    return tree, X, y, {"sensitive_features": rng.integers(0, 2, 120)}, y


def policy_case():
    X, score, rng = numbers()
    treatment = rng.choice(["a", "b"], 120)
    gain = np.where(treatment == "a", score, -score) + rng.normal(size=120)
    more = {"treatment": treatment, "propensity": rng.uniform(0.3, 0.7, 120)}
    return PolicyTree(reward="inverse-propensity", **PLAIN), X, gain, more, treatment


def regressor_case():
    X, score, rng = numbers()
    return OptimalTreeRegressor(**PLAIN), X, score, {"sample_weight": rng.uniform(1, 2, 120)}, None


def own_case():
    X, score, rng = numbers()
    counts = rng.poisson(np.exp(score / 2)).astype(float)
    return OptimalTree(task=Poisson(), **PLAIN), X, counts, {}, None


CASES = [
    survival_case,
    greedy_case,
    classifier_case,
    costly_case,
    fair_case,
    policy_case,
    regressor_case,
    own_case,
]


def taken(X, rows):
    return X.iloc[rows] if isinstance(X, pd.DataFrame) else X[rows]


def plain_folds(strata, n, k=3, seed=0):
    kind = KFold if strata is None else StratifiedKFold
    return list(kind(k, shuffle=True, random_state=seed).split(np.zeros(n), strata))


def plain_score(tree, X, y, more):
    if isinstance(tree, CostSensitiveTreeClassifier):
        return -tree.mean_cost(X, y, **more)
    more = {name: values for name, values in more.items() if name != "sensitive_features"}
    return tree.score(X, y, **more)
