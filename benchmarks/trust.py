"""Seconds of second opinions: stability, alternatives, near-optimal trees, verify.

``python -m benchmarks.trust`` prints them, ``--out benchmarks/records`` writes a dated record.
Promised are 200 resamples of GBSG2 at depth three within five seconds, and a verification of every
bundled set within one.
"""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import machine
from benchmarks.view import median_seconds
from bristlecone import OptimalSurvivalTree, OptimalTreeClassifier
from bristlecone.datasets import list_datasets, load
from bristlecone.exceptions import SearchLimitWarning
from bristlecone.trust import alternatives, near_optimal_trees, stability, verify

STABILITY, VERIFY = 5.0, 1.0
EPSILON, LIMIT = 0.002, 200


def simulated(rows: int, objective: str) -> tuple[Any, Any]:
    """Random survival times or classes, which three of twenty columns predict."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, 20))
    signal = X[:, 0] + X[:, 1] * X[:, 2]
    if objective == "accuracy":
        return X, (signal + rng.normal(size=rows) > 0).astype(int)
    time, limit = rng.exponential(np.exp(-signal / 2)), rng.exponential(2, size=rows)
    return X, (time <= limit, np.minimum(time, limit))


def neighbours(name: str, tree: Any, X: Any, y: Any, repeats: int) -> dict[str, Any]:
    """Median seconds of the fit, of other splits and of near-optimal trees."""
    fit, tree = median_seconds(lambda: tree.fit(X, y), repeats)
    others, table = median_seconds(lambda: alternatives(tree, X, y), repeats)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SearchLimitWarning)  # more trees than the limit
        near, trees = median_seconds(
            lambda: near_optimal_trees(tree, X, y, epsilon=EPSILON, limit=LIMIT), repeats
        )
    return {
        "name": name,
        "rows": len(X),
        "binary_features": len(tree.certificate_.binary_features),
        "fit_seconds": fit,
        "alternatives": len(table),
        "alternatives_seconds": others,
        "near_optimal_trees": len(trees),
        "near_optimal_seconds": near,
    }


def measure(repeats: int, rows_of_large: int) -> dict[str, Any]:
    """Median seconds of each."""
    gbsg2 = load("gbsg2")
    rows = gbsg2.X, gbsg2.y
    tree = OptimalSurvivalTree(max_depth=3).fit(*rows)
    resampled, _ = median_seconds(lambda: stability(tree, *rows, random_state=0), repeats)
    around = [neighbours("gbsg2", tree, *rows, repeats)]
    for n in (1000, rows_of_large):
        label, survival = OptimalTreeClassifier(max_depth=3), OptimalSurvivalTree(max_depth=3)
        for name, one in (("accuracy", label), ("likelihood", survival)):
            around.append(neighbours(name, one, *simulated(n, name), repeats))
    verified = {}
    for name in list_datasets():
        data = load(name)
        fitted = OptimalSurvivalTree(max_depth=2).fit(data.X, data.y)
        seconds, found = median_seconds(
            lambda fitted=fitted, data=data: verify(fitted, data.X, data.y), repeats
        )
        verified[name] = {"seconds": seconds, "holds": found.ok}
    return {"stability_seconds": resampled, "around": around, "verify": verified}


def report(found: dict[str, Any]) -> str:
    """The numbers as Markdown."""
    lines = [
        f"`stability` of gbsg2 at depth 3, 200 resamples: {found['stability_seconds']:.2f} s "
        f"(at most {STABILITY:g}).",
        "",
        f"Trees of depth 3; near-optimal are at most {LIMIT} trees within {EPSILON}.",
        "",
        "| problem | rows | features | fit, s | alternatives | s | near-optimal trees | s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for one in found["around"]:
        lines.append(
            f"| {one['name']} | {one['rows']} | {one['binary_features']} "
            f"| {one['fit_seconds']:.2f} "
            f"| {one['alternatives']} | {one['alternatives_seconds']:.2f} "
            f"| {one['near_optimal_trees']} | {one['near_optimal_seconds']:.2f} |"
        )
    lines += ["", f"| `verify`, depth 2 (at most {VERIFY:g}) | s | holds |", "|---|---|---|"]
    for name, one in found["verify"].items():
        lines.append(f"| {name} | {one['seconds']:.2f} | {'yes' if one['holds'] else 'no'} |")
    return "\n".join(lines) + "\n"


def kept(found: dict[str, Any]) -> bool:
    """Whether what is promised holds."""
    verified = found["verify"].values()
    quick = all(one["holds"] and one["seconds"] <= VERIFY for one in verified)
    return quick and found["stability_seconds"] <= STABILITY


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=100_000, help="of the largest problem")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args(argv)
    found = {"machine": machine(), **measure(arguments.repeats, arguments.rows)}
    text = report(found)
    print(text)
    if arguments.out is not None:
        path = arguments.out / f"{date.today()}-trust"
        path.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        path.with_suffix(".md").write_text(f"# trust, {date.today()}\n\n{text}", encoding="utf-8")
    return 0 if kept(found) else 1


if __name__ == "__main__":
    sys.exit(main())
