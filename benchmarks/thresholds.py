"""Are thresholds guessed from boosted trees worth it? Beside quantiles, "auto" and midpoints.

    python -m benchmarks.thresholds
    python -m benchmarks.thresholds --sets GBSG2 wine --depths 3 --out benchmarks/records

Trees of depth three and four over the features of ``BinaryEncoder(thresholds="ensemble")``, of
``BinaryEncoder()`` (ten quantiles), of ``encoder="auto"`` (those and the cuts of greedy trees) and
of ``BinaryEncoder(thresholds="midpoints")``, on sets of SurvSet (likelihood) and scikit-learn
(accuracy). Five stratified folds. Where the forecast for the training rows is beyond
``--most-seconds``, nothing is searched, and the forecast is what is told. CPU seconds of a whole
fit, one thread.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from benchmarks.machine import machine
from benchmarks.soft import load
from bristlecone import BinaryEncoder, OptimalSurvivalTree, OptimalTreeClassifier
from bristlecone._data.outcomes import outcome
from bristlecone.exceptions import BristleconeWarning
from bristlecone.metrics import likelihood_scorer

SURVIVAL = ("GBSG2", "whas500", "flchain")
LABELS = {
    "breast cancer": datasets.load_breast_cancer,
    "wine": datasets.load_wine,
    "digits": datasets.load_digits,
}
ENCODERS: dict[str, Any] = {
    "quantiles": BinaryEncoder(),
    "auto": "auto",
    "ensemble": BinaryEncoder(thresholds="ensemble"),
    "midpoints": BinaryEncoder(thresholds="midpoints"),
}
FOLDS = 5


def rows_of(name: str) -> tuple[Any, Any, Any]:
    """Columns, outcomes, and what folds are stratified by."""
    if name in LABELS:
        data = LABELS[name]()
        return data.data, data.target, data.target
    X, event, when = load({"source": "survset", "name": name}, Path())
    return X, outcome(event, when), event


def run(name: str, encoder: str, depth: int, most_seconds: float) -> dict[str, Any]:
    """Means over the folds; only the forecast where a search would take too long."""
    X, y, strata = rows_of(name)
    kind = OptimalTreeClassifier if name in LABELS else OptimalSurvivalTree
    tree = kind(max_depth=depth, encoder=ENCODERS[encoder], n_jobs=1)
    row: dict[str, Any] = {"set": name, "rows": len(y), "depth": depth, "encoder": encoder}
    cost = tree.estimate_cost(X, y)
    if cost.seconds > most_seconds:
        return {**row, "features": cost.n_features, "forecast": cost.seconds}
    found, rows = [], pd.DataFrame(X)
    for train, held in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(strata, strata):
        begun = time.process_time()
        tree.fit(rows.iloc[train], y[train])
        seconds = time.process_time() - begun
        score = tree.score(rows.iloc[held], y[held])
        own = [tree.n_binary_features_, seconds, tree.objective_value_, score]
        if name not in LABELS:
            own.append(likelihood_scorer(tree, rows.iloc[held], y[held]))
        found.append(own)
        if tree.status_ != "optimal":
            raise RuntimeError(f"{name}, depth {depth}, {encoder}: {tree.status_}")
    names = ("features", "seconds", "objective", "score", "likelihood")[: len(found[0])]
    return {**row, **dict(zip(names, np.mean(found, axis=0).tolist(), strict=True))}


def report(record: dict[str, Any]) -> str:
    """The table of a record."""
    lines = [
        f"# Thresholds, {record['date']}",
        "",
        f"Means of {FOLDS} folds; CPU seconds of a fit, encoder included. objective: on the "
        "training rows (likelihood loss, or share of errors). On held-out rows: Harrell's C or "
        "accuracy, and the log-likelihood of `likelihood_scorer`. (…): not searched, seconds are a "
        "forecast.",
        "",
        "| set | rows | depth | encoder | features | s | objective | score | log-likelihood |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in record["runs"]:
        start = (
            f"| {row['set']} | {row['rows']} | {row['depth']} | {row['encoder']} | "
            f"{row['features']:.0f} | "
        )
        if "forecast" in row:
            lines.append(start + f"({row['forecast']:.3g}) | | | |")
            continue
        likelihood = f"{row['likelihood']:.4f}" if "likelihood" in row else ""
        lines.append(
            f"{start}{row['seconds']:.2f} | {row['objective']:.4f} | {row['score']:.4f} | "
            f"{likelihood} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run the sets and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.thresholds", description=__doc__)
    parser.add_argument("--sets", nargs="+", default=[*SURVIVAL, *LABELS])
    parser.add_argument("--depths", nargs="+", type=int, default=[3, 4])
    parser.add_argument("--encoders", nargs="+", default=list(ENCODERS))
    parser.add_argument("--most-seconds", type=float, default=8.0)
    parser.add_argument("--out", type=Path, help="folder for YYYY-MM-DD-thresholds.json and .md")
    chosen = parser.parse_args(arguments)
    runs = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", BristleconeWarning)
        for name in chosen.sets:
            for depth in chosen.depths:
                for encoder in chosen.encoders:
                    runs.append(run(name, encoder, depth, chosen.most_seconds))
                    print(runs[-1], file=sys.stderr)
    record = {"date": date.today().isoformat(), "machine": machine(), "runs": runs}
    text = report(record)
    if chosen.out is not None:
        stem = chosen.out / f"{record['date']}-thresholds"
        stem.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        stem.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
