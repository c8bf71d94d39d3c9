"""Survival trees and their peers on the sets of SurvSet."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.optimize import brentq
from sklearn.model_selection import StratifiedKFold

import bristlecone
from benchmarks.generalise.frames import (
    agreement,
    drawn,
    fewer,
    filled,
    keywords,
    means,
    one_hot,
    proven,
)
from benchmarks.soft import load as load_rows
from bristlecone.curves import censoring_survival, kaplan_meier
from bristlecone.exceptions import BristleconeWarning
from bristlecone.metrics import concordance_index_censored, integrated_brier_score

OURS = {
    "optimal": bristlecone.OptimalSurvivalTree,
    "greedy": bristlecone.GreedySurvivalTree,
    "soft": bristlecone.SoftSurvivalTree,
}
# Name and title.
SCORES = {
    "c": "C",
    "ibs": "IBS",
    "nll": "nll",
    "calibration": "calibration",
    "stability": "stability",
    "leaves": "leaves",
    "proven": "proven",
    "seconds": "s",
}
ABOUT = (
    "C: Harrell's concordance. IBS: integrated Brier score. nll: Λ(t) − e ln Λ(t) per held-out row,"
    " where Λ is the predicted cumulative hazard. calibration: mean |predicted − Kaplan–Meier| "
    "survival of at most five groups."
)
BRIER_TIMES = 50

Outcome = tuple[np.ndarray, np.ndarray]
Data = tuple[pd.DataFrame, np.ndarray, np.ndarray]
Leaves = Callable[[pd.DataFrame], np.ndarray]


class Predictions(NamedTuple):
    """Of rows: risk (n,), survival (n, n_times), own cumulative hazard (n,); leaves of the tree.

    ``apply`` returns the leaf of each row of a frame, None if the model is not a tree.
    """

    risk: np.ndarray
    survival: np.ndarray
    hazard: np.ndarray
    n_leaves: float = math.nan
    proven: float = math.nan
    apply: Leaves | None = None


Model = Callable[[pd.DataFrame, Outcome, pd.DataFrame, np.ndarray, np.ndarray], Predictions]


def load(name: str, most_rows: int, seed: int) -> Data:
    """Rows of a set, at most so many."""
    X, event, when = load_rows({"source": "survset", "name": name}, Path())
    rows = drawn(len(event), most_rows, seed)
    return X.iloc[rows], event[rows], when[rows]


def ours(parameters: dict[str, Any]) -> Model:
    """One of the package's trees."""
    kind, given = OURS[parameters.get("estimator", "optimal")], keywords(parameters, "counts")

    def predict(
        X: pd.DataFrame, y: Outcome, held: pd.DataFrame, own: np.ndarray, times: np.ndarray
    ) -> Predictions:
        def columns(frame: pd.DataFrame) -> pd.DataFrame:
            return one_hot(X, frame) if given.get("encoder", "auto") is None else frame

        tree = kind(**given).fit(columns(X), y)
        at, where = np.unique(own, return_inverse=True)
        test = columns(held)
        return Predictions(
            tree.predict(test),
            tree.predict_survival_function(test, times=times),
            tree.predict_cumulative_hazard_function(test, times=at)[np.arange(len(own)), where],
            tree.n_leaves_,
            proven(tree),
            lambda frame: tree.apply(columns(frame)),
        )

    return predict


def peer(parameters: dict[str, Any]) -> Model:
    """A model of scikit-survival, on numbers and one column per category."""
    given = keywords(parameters, "counts")
    kind = parameters["estimator"]

    def predict(
        X: pd.DataFrame, y: Outcome, held: pd.DataFrame, own: np.ndarray, times: np.ndarray
    ) -> Predictions:
        from sksurv.ensemble import RandomSurvivalForest
        from sksurv.linear_model import CoxPHSurvivalAnalysis
        from sksurv.tree import SurvivalTree
        from sksurv.util import Surv

        train, test = (one_hot(X, frame).to_numpy(float) for frame in (X, held))
        if kind == "sksurv-tree":
            model = SurvivalTree(random_state=0, **given)
        elif kind == "forest":
            model = RandomSurvivalForest(
                100, min_samples_leaf=15, max_features="sqrt", random_state=0, **given
            )
        elif kind == "cox":
            scale = np.where(train.std(axis=0) > 0, train.std(axis=0), 1.0)
            train, test = ((x - train.mean(axis=0)) / scale for x in (train, test))
            model = CoxPHSurvivalAnalysis(alpha=1.0, **given)
        else:
            raise ValueError(f"unknown estimator {kind!r}")
        model.fit(train, Surv.from_arrays(*y))
        hazard, survival = (
            np.array([f(np.clip(at, *f.domain)) for f, at in zip(functions, places, strict=True)])
            for functions, places in (
                (model.predict_cumulative_hazard_function(test), own),
                (model.predict_survival_function(test), [times] * len(own)),
            )
        )
        predicted = Predictions(model.predict(test), survival, hazard)
        if kind != "sksurv-tree":
            return predicted
        return predicted._replace(
            n_leaves=int((model.tree_.children_left < 0).sum()),
            apply=lambda frame: model.apply(one_hot(X, frame).to_numpy(np.float32)),
        )

    return predict


def fitted(
    parameters: dict[str, Any],
    X: pd.DataFrame,
    y: Outcome,
    held: pd.DataFrame,
    own: np.ndarray,
    times: np.ndarray,
) -> tuple[Predictions, float]:
    """Predictions, and CPU seconds of fit and predictions."""
    make = ours if parameters.get("estimator", "optimal") in OURS else peer
    begun = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("ignore", BristleconeWarning)
        predicted = make(parameters)(X, y, held, own, times)
    return predicted, time.process_time() - begun


def run_cell(data: Data, parameters: dict[str, Any], folds: int, seed: int) -> dict[str, float]:
    """Mean scores over the folds of one division.

    ``train_rows`` and ``censor`` of the parameters change the rows that the model learns from. The
    held-out rows and the censoring weights of the Brier score stay as they are, but the Brier score
    ends at the last time of the learned rows at the latest.
    """
    X, event, when = data
    found: dict[str, list[float]] = {name: [] for name in SCORES}
    leaves = []
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    for rows, held in splitter.split(when, event):
        learned = fewer(rows, parameters.get("train_rows"), seed, event[rows])
        train, test = (event[rows], when[rows]), (event[held], when[held])
        seen = censored((event[learned], when[learned]), parameters.get("censor", 0.0), seed)
        X_train, X_all = filled(X.iloc[learned], X)
        last = min(horizon(train, test), float(seen[1].max()))
        times = np.linspace(0.0, last, BRIER_TIMES + 1)[1:]
        predicted, seconds = fitted(parameters, X_train, seen, X_all.iloc[held], when[held], times)
        found["seconds"].append(seconds)
        found["leaves"].append(float(predicted.n_leaves))
        found["proven"].append(predicted.proven)
        found["c"].append(float(concordance_index_censored(*test, predicted.risk).cindex))
        found["ibs"].append(
            integrated_brier_score(
                train, test, predicted.survival, times, method="step", limits=(0.0, last)
            )
        )
        # No model is ruined by one event before its first step.
        hazard = np.maximum(predicted.hazard, 1 / (len(learned) + 1))
        found["nll"].append(float(np.mean(hazard - event[held] * np.log(hazard))))
        found["calibration"].append(calibration_error(test, predicted.survival, times))
        if predicted.apply is not None:
            leaves.append(predicted.apply(X_all))
    found["stability"] = [agreement(leaves)]
    return means(found)


def censored(y: Outcome, share: float, seed: int) -> Outcome:
    """The outcome after further censoring, which removes this share of the events on average.

    The additional censoring times are exponential and do not depend on the columns.
    """
    event, when = y
    if share == 0:
        return y
    happened = when[event] / when.max()
    rate = brentq(lambda r: 1 - np.exp(-r * happened).mean() - share, 0.0, 1e9)
    left = np.random.default_rng(seed).exponential(when.max() / rate, len(when))
    return event & (when <= left), np.minimum(when, left)


def horizon(train: Outcome, test: Outcome) -> float:
    """End of the Brier score: where either sample ends, or the censoring weights do."""
    censoring = censoring_survival(train)
    positive = censoring.x[censoring.y > 0.05]
    follow_up = float(positive[-1]) if positive.size else math.inf
    return min(float(train[1].max()), float(test[1].max()), follow_up)


def calibration_error(test: Outcome, survival: np.ndarray, times: np.ndarray) -> float:
    """Mean absolute difference of predicted and observed survival, by groups of like predictions.

    At the median of the horizon; groups of rows with the lowest predictions first, at most five.
    """
    middle = len(times) // 2
    at, (event, when) = survival[:, middle], test
    of_value = np.unique(at, return_inverse=True)[1]
    # Rows that are predicted alike stay together.
    middle_rank = np.cumsum(np.bincount(of_value)) - np.bincount(of_value) / 2
    group = np.minimum((5 * middle_rank / len(at)).astype(int), 4)[of_value]
    error = 0.0
    for k in np.unique(group):
        rows = group == k
        curve = kaplan_meier((event[rows], when[rows]))
        observed = np.append(1.0, curve.y)[np.searchsorted(curve.x, times[middle], side="right")]
        error += rows.mean() * abs(at[rows].mean() - observed)
    return float(error)
