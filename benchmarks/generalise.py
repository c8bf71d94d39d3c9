"""Do the trees predict new rows? Cross-validation over the sets of SurvSet, ours beside others.

    python -m benchmarks.generalise A B --models default greedy --against greedy
    python -m benchmarks.generalise C --out benchmarks/records

Groups of sets, and models with their parameters, are in generalise.json: defaults were chosen on
group A, compared on B while that went on, and reported on C once. Stratified folds, repeated with
other seeds; at most 2,500 rows of a set; categories as text, gaps in numbers filled with the median
of the training rows. The record is written after every cell (set, model) and goes on where it
stopped. Sets whose rows are intervals of one subject (time-dependent columns) are left out: not all
models take them.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

import bristlecone
from benchmarks.machine import machine
from benchmarks.soft import _about, _write, load
from bristlecone.curves import censoring_survival, kaplan_meier
from bristlecone.exceptions import BristleconeWarning
from bristlecone.metrics import (
    concordance_index_censored,
    integrated_brier_score,
)

CATALOGUE = Path(__file__).with_name("generalise.json")
OURS = {
    "optimal": bristlecone.OptimalSurvivalTree,
    "greedy": bristlecone.GreedySurvivalTree,
    "soft": bristlecone.SoftSurvivalTree,
}
# Name, title, and whether less is better.
SCORES = {
    "c": ("C", False),
    "ibs": ("IBS", True),
    "nll": ("nll", True),
    "calibration": ("calibration", True),
    "leaves": ("leaves", True),
    "seconds": ("s", True),
}
BRIER_TIMES = 50

Outcome = tuple[np.ndarray, np.ndarray]


class Predictions(NamedTuple):
    """Of held-out rows: risk (n,), survival (n, n_times), own cumulative hazard (n,), leaves."""

    risk: np.ndarray
    survival: np.ndarray
    hazard: np.ndarray
    leaves: float


Model = Callable[[pd.DataFrame, Outcome, pd.DataFrame, np.ndarray, np.ndarray], Predictions]


def drawn(name: str, most_rows: int, seed: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Rows of a set, at most so many."""
    X, event, when = load({"source": "survset", "name": name}, Path())
    if len(event) > most_rows:
        rows = np.sort(np.random.default_rng(seed).choice(len(event), most_rows, replace=False))
        X, event, when = X.iloc[rows], event[rows], when[rows]
    return X, event, when


def filled(train: pd.DataFrame, test: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Gaps of numbers filled with the training median; a missing category is one of its own."""
    fill: dict[str, Any] = {}
    for name, known in train.items():
        if known.dtype.kind == "O":
            fill[name] = "missing"
        else:
            fill[name] = 0.0 if known.isna().all() else float(known.median())
    whole = {name: float for name, known in train.items() if known.dtype.kind != "O"}
    return train.fillna(fill).astype(whole), test.fillna(fill).astype(whole)


def ours(parameters: dict[str, Any]) -> Model:
    """One of the package's trees."""
    given = dict(parameters)
    kind = OURS[given.pop("estimator", "optimal")]
    if given.get("encoder") == "quantiles":
        given["encoder"] = bristlecone.BinaryEncoder()
    elif given.get("encoder") == "every threshold":
        given["encoder"] = None

    def predict(
        X: pd.DataFrame, y: Outcome, held: pd.DataFrame, own: np.ndarray, times: np.ndarray
    ) -> Predictions:
        if "encoder" in given and given["encoder"] is None:
            X, held = (one_hot(X, other) for other in (X, held))
        tree = kind(**given).fit(X, y)
        at, where = np.unique(own, return_inverse=True)
        hazard = tree.predict_cumulative_hazard_function(held, times=at)
        survival = tree.predict_survival_function(held, times=times)
        rows = np.arange(len(own))
        return Predictions(tree.predict(held), survival, hazard[rows, where], tree.n_leaves_)

    return predict


def one_hot(train: pd.DataFrame, frame: pd.DataFrame) -> pd.DataFrame:
    """Numbers as they are, one column per category of the training rows but the first."""
    columns = {}
    for name, known in train.items():
        if known.dtype.kind != "O":
            columns[name] = frame[name]
            continue
        for level in np.unique(known.astype(str))[1:]:
            columns[f"{name} = {level}"] = (frame[name].astype(str) == level).astype(float)
    return pd.DataFrame(columns)


def peer(parameters: dict[str, Any]) -> Model:
    """A model of scikit-survival, on numbers and one column per category."""
    given = dict(parameters)
    kind = given.pop("estimator")

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
        else:
            scale = np.where(train.std(axis=0) > 0, train.std(axis=0), 1.0)
            train, test = ((x - train.mean(axis=0)) / scale for x in (train, test))
            model = CoxPHSurvivalAnalysis(alpha=1.0, **given)
        model.fit(train, Surv.from_arrays(*y))
        curves = [
            [f(np.clip(at, *f.domain)) for f, at in zip(functions, places, strict=True)]
            for functions, places in (
                (model.predict_cumulative_hazard_function(test), own),
                (model.predict_survival_function(test), [times] * len(own)),
            )
        ]
        leaves = math.nan
        if kind == "sksurv-tree":
            leaves = int((model.tree_.children_left < 0).sum())
        return Predictions(model.predict(test), np.array(curves[1]), np.array(curves[0]), leaves)

    return predict


def model_of(parameters: dict[str, Any]) -> Model:
    """What fits and predicts."""
    return (ours if parameters.get("estimator", "optimal") in OURS else peer)(parameters)


def run_cell(
    data: tuple[pd.DataFrame, np.ndarray, np.ndarray],
    parameters: dict[str, Any],
    folds: int,
    seed: int,
) -> dict[str, float]:
    """Mean scores over the folds of one division."""
    X, event, when = data
    found: dict[str, list[float]] = {name: [] for name in SCORES}
    splitter = StratifiedKFold(folds, shuffle=True, random_state=seed)
    for rows, held in splitter.split(when, event):
        train, test = (event[rows], when[rows]), (event[held], when[held])
        X_train, X_test = filled(X.iloc[rows], X.iloc[held])
        last = horizon(train, test)
        times = np.linspace(0.0, last, BRIER_TIMES + 1)[1:]
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("ignore", BristleconeWarning)
            predicted = model_of(parameters)(X_train, train, X_test, when[held], times)
        found["seconds"].append(time.process_time() - begun)
        found["leaves"].append(float(predicted.leaves))
        found["c"].append(float(concordance_index_censored(*test, predicted.risk).cindex))
        found["ibs"].append(
            integrated_brier_score(
                train, test, predicted.survival, times, method="step", limits=(0.0, last)
            )
        )
        # No model is ruined by one event before its first step.
        hazard = np.maximum(predicted.hazard, 1 / (len(rows) + 1))
        found["nll"].append(float(np.mean(hazard - event[held] * np.log(hazard))))
        found["calibration"].append(calibration_error(test, predicted.survival, times))
    return {name: statistics.fmean(values) for name, values in found.items()}


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


def report(record: dict[str, Any], against: str) -> str:
    """Mean scores of every model by group, and paired differences with their standard errors."""
    catalogue, results = record["catalogue"], record["results"]
    lines = [f"# Trees on new rows, {record['date']}", "", _about(record), ""]
    lines += [
        f"{catalogue['folds']} stratified folds, at most {catalogue['most_rows']} rows per set. C:"
        " Harrell. IBS: integrated Brier score. nll: Λ(t) − e ln Λ(t) per held-out row, Λ the "
        "predicted cumulative hazard. calibration: mean |predicted − Kaplan–Meier| survival of at "
        f"most five groups. ± is a standard error over sets of the difference from `{against}`.",
    ]
    for group, names in catalogue["groups"].items():
        models = [m for m in record["models"] if all(f"{n} {m}" in results for n in names)]
        if not models:
            continue
        repeats = len(results[f"{names[0]} {models[0]}"])
        lines += ["", f"## Group {group}: {len(names)} sets, {repeats} divisions", ""]
        lines += ["| model | " + " | ".join(title for title, _ in SCORES.values()) + " |"]
        lines += ["|---" * (len(SCORES) + 1) + "|"]
        for model in models:
            cells = []
            for score in SCORES:
                own = of_sets(results, names, model, score)
                text = (
                    f"{statistics.fmean(own):.4g}"
                    if score != "c"
                    else f"{statistics.fmean(own):.4f}"
                )
                if model != against and against in models and score not in ("leaves", "seconds"):
                    other = of_sets(results, names, against, score)
                    differences = [a - b for a, b in zip(own, other, strict=True)]
                    error = statistics.stdev(differences) / math.sqrt(len(differences))
                    text += f" ({statistics.fmean(differences):+.4f} ± {error:.4f})"
                cells.append(text)
            lines.append(f"| {model} | " + " | ".join(cells) + " |")
    lines += ["", "## Models", ""]
    lines += [f"* {m}: `{json.dumps(p)}`" for m, p in record["models"].items()]
    return "\n".join(lines) + "\n"


def of_sets(
    results: dict[str, list[dict[str, float]]], names: list[str], model: str, score: str
) -> list[float]:
    """Mean over the divisions, set by set."""
    return [statistics.fmean(r[score] for r in results[f"{name} {model}"]) for name in names]


def main(arguments: list[str] | None = None) -> int:
    """Run what the record lacks."""
    catalogue = json.loads(CATALOGUE.read_text(encoding="utf-8"))
    parser = argparse.ArgumentParser(prog="python -m benchmarks.generalise", description=__doc__)
    parser.add_argument("groups", nargs="+", choices=sorted(catalogue["groups"]))
    parser.add_argument("--models", nargs="+", metavar="NAME", help="default: all")
    parser.add_argument(
        "--add", nargs="+", metavar="NAME=JSON", default=[], help="models to try beside them"
    )
    parser.add_argument("--sets", nargs="+", metavar="NAME")
    parser.add_argument("--repeats", type=int, default=3, help="divisions into folds")
    parser.add_argument("--against", default="default")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/records"))
    parser.add_argument("--name", default="generalise", help="of the record")
    parser.add_argument("--date", help="of the record to go on with (default: today)")
    chosen = parser.parse_args(arguments)
    models = {name: catalogue["models"][name] for name in chosen.models or catalogue["models"]}
    for pair in chosen.add:
        name, _, parameters = pair.partition("=")
        models[name] = json.loads(parameters)
    path = chosen.out / f"{chosen.date or date.today().isoformat()}-{chosen.name}.json"
    record: dict[str, Any] = {"date": date.today().isoformat(), "results": {}, "models": {}}
    if path.exists():
        record = json.loads(path.read_text(encoding="utf-8"))
    record |= {"catalogue": {k: v for k, v in catalogue.items() if k != "models"}}
    record |= {"machine": machine(), "models": record["models"] | models}
    with threadpool_limits(limits=1):
        for name in (n for group in chosen.groups for n in catalogue["groups"][group]):
            if chosen.sets and name not in chosen.sets:
                continue
            data = None
            for model, parameters in models.items():
                done = record["results"].setdefault(f"{name} {model}", [])
                while len(done) < chosen.repeats:
                    data = data or drawn(name, catalogue["most_rows"], catalogue["seed"])
                    seed = catalogue["seed"] + len(done)
                    done.append(run_cell(data, parameters, catalogue["folds"], seed))
                    told = {k: round(v, 4) for k, v in done[-1].items()}
                    print(f"{name}, {model}: {told}", file=sys.stderr, flush=True)
            _write(path, record, report(record, chosen.against))
    print(report(record, chosen.against))
    return 0


if __name__ == "__main__":
    sys.exit(main())
