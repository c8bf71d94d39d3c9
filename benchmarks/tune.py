"""Is one search per fold worth it? ``TreeSizeCV`` beside a grid of single fits.

    python -m benchmarks.tune
    python -m benchmarks.tune --repeats 2 --sets GBSG2 --out benchmarks/records

On GBSG2, whas500 and flchain of SurvSet: five folds, stratified by event, ten times, trees up to
depth four. The grid is scikit-learn's ``GridSearchCV`` over ``max_leaf_nodes`` on the same folds;
since it takes long, of ``--grid-repeats`` of the repeats only, and the ratio is of seconds per
repeat. Both search the quantiles (``BinaryEncoder()``), so that the trees of a size are the same,
and so must the scores of every fold and size be. One thread.
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
from sklearn.model_selection import GridSearchCV, RepeatedStratifiedKFold
from threadpoolctl import threadpool_limits

from benchmarks.machine import machine
from benchmarks.soft import load
from bristlecone import BinaryEncoder, OptimalSurvivalTree
from bristlecone._data.outcomes import outcome
from bristlecone.exceptions import BristleconeWarning
from bristlecone.tune import TreeSizeCV

SETS = ("GBSG2", "whas500", "flchain")
FOLDS, DEPTH = 5, 4

Folds = list[tuple[np.ndarray, np.ndarray]]


def compare(name: str, repeats: int, grid_repeats: int, depth: int = DEPTH) -> dict[str, Any]:
    """Seconds of both on one set, and the largest difference of their mean scores."""
    X, event, when = load({"source": "survset", "name": name}, Path())
    y = outcome(event, when)
    splitter = RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=repeats, random_state=0)
    folds = list(splitter.split(when, event))
    tree = OptimalSurvivalTree(max_depth=depth, encoder=BinaryEncoder())

    begun = time.perf_counter()
    search = TreeSizeCV(tree, cv=folds).fit(X, y)
    seconds = time.perf_counter() - begun

    sizes = search.cv_results_["n_leaves"].tolist()
    shared = folds[: FOLDS * grid_repeats]
    begun = time.perf_counter()
    grid = GridSearchCV(tree, {"max_leaf_nodes": sizes}, cv=shared, error_score="raise")
    grid.fit(X, y)
    grid_seconds = time.perf_counter() - begun

    ours = np.array([search.cv_results_[f"split{k}_test_score"] for k in range(len(shared))])
    theirs = np.array([grid.cv_results_[f"split{k}_test_score"] for k in range(len(shared))])
    return {
        "set": name,
        "rows": len(event),
        "sizes": len(sizes),
        "chosen": search.best_n_leaves_,
        "repeats": repeats,
        "seconds": seconds,
        "grid_repeats": grid_repeats,
        "grid_seconds": grid_seconds,
        "ratio": (grid_seconds / grid_repeats) / (seconds / repeats),
        "largest_difference": float(np.abs(ours - theirs).max()),
    }


def report(record: dict[str, Any]) -> str:
    """The table of a record."""
    lines = [
        f"# Size by cross-validation, {record['date']}",
        "",
        f"{FOLDS} folds, depth {DEPTH}; seconds of `TreeSizeCV` with all repeats, of a grid of "
        "single fits with its own, and the ratio per repeat. difference: largest of the scores of "
        "a fold and size.",
        "",
        "| set | rows | sizes | chosen | repeats | s | of grid | grid s | ratio | difference |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in record["runs"]:
        lines.append(
            f"| {row['set']} | {row['rows']} | {row['sizes']} | {row['chosen']} | "
            f"{row['repeats']} | {row['seconds']:.2f} | {row['grid_repeats']} | "
            f"{row['grid_seconds']:.2f} | {row['ratio']:.1f} | {row['largest_difference']:.1g} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run the sets and print the table; 1 if a score differs by more than rounding."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tune", description=__doc__)
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--grid-repeats", type=int, default=1)
    parser.add_argument("--depth", type=int, default=DEPTH)
    parser.add_argument("--out", type=Path, help="folder for YYYY-MM-DD-tune.json and .md")
    chosen = parser.parse_args(arguments)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", BristleconeWarning)
        runs = [
            compare(name, chosen.repeats, min(chosen.grid_repeats, chosen.repeats), chosen.depth)
            for name in chosen.sets
        ]
    record = {"date": date.today().isoformat(), "machine": machine(), "runs": runs}
    text = report(record)
    if chosen.out is not None:
        stem = chosen.out / f"{record['date']}-tune"
        stem.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        stem.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)
    return int(any(row["largest_difference"] > 1e-12 for row in runs))


if __name__ == "__main__":
    sys.exit(main())
