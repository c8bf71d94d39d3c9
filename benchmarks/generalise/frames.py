"""What every part of the study needs: filled frames, teachers by name, stability of the leaves."""

from __future__ import annotations

import itertools
import statistics
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import bristlecone

# Parameters of a model that change the training rows. Models are compared under equal conditions.
CONDITIONS = ("most_rows", "train_rows", "censor")


def drawn(n_rows: int, most_rows: int, seed: int) -> np.ndarray:
    """At most so many of the rows, in their order."""
    if n_rows <= most_rows:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, most_rows, replace=False))


def fewer(
    rows: np.ndarray, most_rows: int | None, seed: int, strata: np.ndarray | None
) -> np.ndarray:
    """At most so many of the training rows; with strata, in the proportions of all of them."""
    if most_rows is None or most_rows >= len(rows):
        return rows
    kept, _ = train_test_split(rows, train_size=most_rows, stratify=strata, random_state=seed)
    return np.sort(kept)


def filled(train: pd.DataFrame, other: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Gaps of numbers filled with the training median; a missing category is one of its own."""
    fill: dict[str, Any] = {}
    for name, known in train.items():
        if known.dtype.kind == "O":
            fill[name] = "missing"
        else:
            fill[name] = 0.0 if known.isna().all() else float(known.median())
    whole = {name: float for name, known in train.items() if known.dtype.kind != "O"}
    return train.fillna(fill).astype(whole), other.fillna(fill).astype(whole)


def one_hot(train: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """Numbers as they are, one column per category of the training rows but the first."""
    columns = {}
    for name, known in train.items():
        if known.dtype.kind != "O":
            columns[name] = frame[name]
            continue
        for level in np.unique(known.astype(str))[1:]:
            columns[f"{name} = {level}"] = (frame[name].astype(str) == level).astype(float)
    return pd.DataFrame(columns, index=frame.index)


class _Encoded(BaseEstimator):
    """A model on standardised numbers and one column per category.

    A pipeline would not do, since its ``fit`` takes no ``sample_weight``.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        self.train_ = pd.DataFrame(X).reset_index(drop=True)
        self.n_features_in_ = self.train_.shape[1]
        self.scaler_ = StandardScaler().fit(one_hot(self.train_, self.train_).to_numpy(float))
        self.estimator_ = clone(self.estimator).fit(self._numbers(X), y, sample_weight)
        return self

    def predict(self, X: Any) -> np.ndarray:
        return self.estimator_.predict(self._numbers(X))

    def _numbers(self, X: Any) -> np.ndarray:
        return self.scaler_.transform(one_hot(self.train_, pd.DataFrame(X)).to_numpy(float))


class EncodedRegressor(RegressorMixin, _Encoded):
    """A regression on standardised numbers and one column per category."""


class EncodedClassifier(ClassifierMixin, _Encoded):
    """A classification on standardised numbers and one column per category."""

    @property
    def classes_(self) -> np.ndarray:
        return self.estimator_.classes_

    def predict_proba(self, X: Any) -> np.ndarray:
        return self.estimator_.predict_proba(self._numbers(X))


BOOSTING = {"max_iter": 100, "max_depth": 3, "random_state": 0}
FOREST = {"n_estimators": 100, "min_samples_leaf": 5, "random_state": 0}
PEERS: dict[str, dict[str, Any]] = {
    # Also of survival, where the number is a rate and its weight the hazard.
    "counts": {
        # The penalty is that of about 100 events of average risk.
        "ridge": EncodedRegressor(PoissonRegressor(alpha=0.01, max_iter=1000)),
        "boosting": EncodedRegressor(HistGradientBoostingRegressor(loss="poisson", **BOOSTING)),
        "forest": EncodedRegressor(RandomForestRegressor(criterion="poisson", **FOREST)),
    },
    "numbers": {
        "ridge": EncodedRegressor(Ridge(alpha=1.0)),
        "boosting": EncodedRegressor(HistGradientBoostingRegressor(**BOOSTING)),
        "forest": EncodedRegressor(RandomForestRegressor(**FOREST)),
    },
    "classes": {
        "ridge": EncodedClassifier(LogisticRegression(max_iter=1000)),
        "boosting": EncodedClassifier(HistGradientBoostingClassifier(**BOOSTING)),
        "forest": EncodedClassifier(RandomForestClassifier(**FOREST)),
    },
}


def keywords(parameters: dict[str, Any], task: str) -> dict[str, Any]:
    """Parameters of one of the package's trees: encoder and teacher are named in the JSON."""
    given = {k: v for k, v in parameters.items() if k not in (*CONDITIONS, "estimator")}
    if given.get("encoder") == "quantiles":
        given["encoder"] = bristlecone.BinaryEncoder()
    elif given.get("encoder") == "every threshold":
        given["encoder"] = None
    if given.get("teacher", "auto") not in ("auto", None):
        given["teacher"] = clone(PEERS[task][given["teacher"]])
    return given


def proven(tree: Any) -> float:
    """Whether the search ended with a proof; NaN if the tree was not searched for."""
    status = tree.certificate_.status
    return float("nan") if status in ("grown", "trained") else float(status == "optimal")


def agreement(leaves: list[np.ndarray]) -> float:
    """Mean Jaccard index, over all pairs of trees, of the pairs of rows that share a leaf.

    Every tree is a vector with the leaf of each row.
    """
    if len(leaves) < 2:
        return float("nan")
    return statistics.fmean(jaccard(a, b) for a, b in itertools.combinations(leaves, 2))


def jaccard(one: np.ndarray, other: np.ndarray) -> float:
    """Pairs of rows that share a leaf in both trees, divided by those that do in at least one."""
    a, b = (np.unique(leaves, return_inverse=True)[1] for leaves in (one, other))
    both, first, second = (
        float((n * (n - 1.0) / 2).sum())
        for n in (np.bincount(a * (b.max() + 1) + b), np.bincount(a), np.bincount(b))
    )
    return both / (first + second - both)


def means(found: dict[str, list[float]]) -> dict[str, float]:
    """Of every score over the folds; NaN for a score that the model does not have."""
    return {k: statistics.fmean(v) if v else float("nan") for k, v in found.items()}
