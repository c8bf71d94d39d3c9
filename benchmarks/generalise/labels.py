"""Trees of classes, numbers and counts beside scikit-learn's.

The name of a set starts with its source. uci and osdt are binarised sets of published studies,
continuous ones have numeric columns; all three lie beside the repository, in ../shared/data.
sklearn comes with scikit-learn. friedman/1 to 3 are its generators, friedman-counts/1 to 3 draw
Poisson counts from them. survset/set/column and counts/set/column predict a numeric column of a
survival set from the others.
"""

from __future__ import annotations

import math
import time
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.base import clone
from sklearn.metrics import d2_tweedie_score, r2_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

import bristlecone
from benchmarks import label_data
from benchmarks.generalise.frames import (
    PEERS,
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
from bristlecone.exceptions import BristleconeWarning

TREES = {
    ("optimal", True): bristlecone.OptimalTreeClassifier,
    ("optimal", False): bristlecone.OptimalTreeRegressor,
    ("cart", True): DecisionTreeClassifier,
    ("cart", False): DecisionTreeRegressor,
}
OF_TREES = {"stability": "stability", "leaves": "leaves", "proven": "proven", "seconds": "s"}
CLASS_SCORES = {"accuracy": "accuracy", "log_loss": "log-loss", "brier": "Brier"} | OF_TREES
NUMBER_SCORES = {"r2": "R²", "d2": "D² (Poisson)"} | OF_TREES
CLASS_ABOUT = (
    "log-loss and Brier score (sum over the classes) of the shares of the training rows of a leaf, "
    "(n_k + 1) / (n + number of classes) for every tree. Models without leaves have n times their "
    "probability in place of n_k, where n is the number of training rows."
)
NUMBER_ABOUT = (
    "Every model minimises squared errors; on sets of counts, the Poisson deviance. D² (Poisson): "
    "the share of that deviance explained, by predictions of at least 1 / (training rows + 1)."
)


class Rows(NamedTuple):
    """Columns and outcome of a set; the task is "classes", "numbers" or "counts"."""

    X: pd.DataFrame
    y: np.ndarray
    task: str


def load(name: str, most_rows: int, seed: int) -> Rows:
    """Rows of a set, at most so many."""
    source, _, rest = name.partition("/")
    task = "classes"
    if source in ("uci", "osdt"):
        matrix, target = (label_data.classification if source == "uci" else label_data.osdt)(rest)
        X, y = matrix, target["y"]
    elif source == "continuous":
        values = np.loadtxt(label_data.DATA / "continuous" / f"{rest}.txt.gz")
        X, y = values[:, 1:], values[:, 0]
    elif source == "sklearn":
        X, y = getattr(datasets, f"load_{rest}")(return_X_y=True, as_frame=True)
        task = "numbers" if rest == "diabetes" else "classes"
    elif source in ("friedman", "friedman-counts"):
        X, y = getattr(datasets, f"make_friedman{rest}")(1000, random_state=seed)
        task, rng = "numbers", np.random.default_rng(seed)
        if source == "friedman":
            y = y + rng.normal(0, y.std() / 2, len(y))
        else:
            task, y = "counts", rng.poisson(np.exp(1 + 0.7 * (y - y.mean()) / y.std()))
    else:
        table, column = rest.split("/")
        X, _, _ = load_rows({"source": "survset", "name": table}, Path())
        X = X[X[column].notna()]
        y = X.pop(column)
        task = "counts" if source == "counts" else "numbers"
    frame = pd.DataFrame(X).rename(columns=str).reset_index(drop=True)
    rows = drawn(len(frame), most_rows, seed)
    y = np.asarray(y, np.float64)[rows]
    if task == "classes":
        y = np.unique(y, return_inverse=True)[1]
    return Rows(frame.iloc[rows].reset_index(drop=True), y, task)


class Fitted(NamedTuple):
    """Of all rows: predictions, probabilities of classes, leaves; the latter None if not known."""

    predicted: np.ndarray
    probabilities: np.ndarray | None
    leaves: np.ndarray | None
    n_leaves: float
    proven: float


def fitted(
    parameters: dict[str, Any], train: pd.DataFrame, y: np.ndarray, rows: pd.DataFrame, task: str
) -> Fitted:
    """Fit a model and predict rows; a tree of ours takes text, all others one column per level."""
    kind, classes = parameters["estimator"], task == "classes"
    given = keywords(parameters, task)
    if task == "counts" and kind in ("optimal", "cart"):
        given["objective" if kind == "optimal" else "criterion"] = "poisson"
    if kind == "optimal":
        tree = TREES[kind, classes](**given).fit(train, y)
        leaves, n_leaves = tree.apply(rows), tree.n_leaves_
        return Fitted(tree.predict(rows), None, leaves, n_leaves, proven(tree))
    if kind == "cart":
        train, rows = one_hot(train, train), one_hot(train, rows)
        tree = TREES[kind, classes](random_state=0, **given).fit(train, y)
        return Fitted(tree.predict(rows), None, tree.apply(rows), tree.get_n_leaves(), math.nan)
    model = clone(PEERS[task][kind]).fit(train, y)
    shares = None
    if classes:
        shares = np.zeros((len(rows), int(y.max()) + 1))
        shares[:, model.classes_] = model.predict_proba(rows)
    return Fitted(model.predict(rows), shares, None, math.nan, math.nan)


def run_cell(data: Rows, parameters: dict[str, Any], folds: int, seed: int) -> dict[str, float]:
    """Mean scores over the folds of one division."""
    X, y, task = data
    classes = task == "classes"
    found: dict[str, list[float]] = {k: [] for k in (CLASS_SCORES if classes else NUMBER_SCORES)}
    leaves = []
    with warnings.catch_warnings():
        # Rare classes have fewer rows than there are folds, for example.
        warnings.simplefilter("ignore")
        warnings.simplefilter("ignore", BristleconeWarning)
        splitter = (StratifiedKFold if classes else KFold)(folds, shuffle=True, random_state=seed)
        for rows, held in splitter.split(X, y):
            learned = fewer(rows, parameters.get("train_rows"), seed, None)
            train, everything = filled(X.iloc[learned], X)
            begun = time.process_time()
            model = fitted(parameters, train, y[learned], everything, task)
            found["seconds"].append(time.process_time() - begun)
            found["leaves"].append(float(model.n_leaves))
            found["proven"].append(model.proven)
            if model.leaves is not None:
                leaves.append(np.asarray(model.leaves))
            if classes:
                scores = class_scores(model, y, learned, held)
            else:
                scores = number_scores(model.predicted[held], y[held], len(learned), task)
            for name, value in scores.items():
                found[name].append(value)
    found["stability"] = [agreement(leaves)]
    return means(found)


def class_scores(
    model: Fitted, y: np.ndarray, learned: np.ndarray, held: np.ndarray
) -> dict[str, float]:
    """Accuracy, log-loss and Brier score; the shares are smoothed, so that no loss is infinite."""
    n_classes = int(y.max()) + 1
    if model.leaves is not None:
        of_row = np.unique(model.leaves, return_inverse=True)[1]
        counts = np.zeros((of_row.max() + 1, n_classes))
        np.add.at(counts, (of_row[learned], y[learned]), 1)
        counts = counts[of_row[held]]
    else:
        probabilities = model.probabilities[held]
        # A class that the training rows lack has no column.
        counts = np.zeros((len(held), n_classes))
        counts[:, : probabilities.shape[1]] = len(learned) * probabilities
    shares = (counts + 1) / (counts.sum(axis=1, keepdims=True) + n_classes)
    truth = np.eye(n_classes)[y[held]]
    return {
        "accuracy": float((model.predicted[held] == y[held]).mean()),
        "log_loss": float(-np.log(shares[truth == 1]).mean()),
        "brier": float(((shares - truth) ** 2).sum(axis=1).mean()),
    }


def number_scores(
    predicted: np.ndarray, truth: np.ndarray, n_train: int, task: str
) -> dict[str, float]:
    """R², and of counts the share of the deviance explained."""
    scores = {"r2": float(r2_score(truth, predicted)), "d2": math.nan}
    if task == "counts":
        rate = np.maximum(predicted, 1 / (n_train + 1))
        scores["d2"] = float(d2_tweedie_score(truth, rate, power=1))
    return scores
