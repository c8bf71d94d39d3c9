"""What causes cost: ``CompetingRisksTree`` beside the survival tree of the same rows.

    python -m benchmarks.causes
    python -m benchmarks.causes --rows 2000 --depths 3 --out benchmarks/records

Simulated rows with binary features, of which a few move the hazard of each cause. The survival tree
(``objective="likelihood"``) has events of any cause, so both have the same rows, times and events.
With one cause the two searches are the same, and so must be objective and splits. CPU seconds of
the process, one thread, neutral settings (no prior, no minimum of events); the fits take turns.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import sys
import time
import warnings
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.machine import machine
from bristlecone import CompetingRisksTree, OptimalSurvivalTree
from bristlecone.exceptions import BristleconeWarning

ROWS, DEPTHS, CAUSES, FEATURES = (500, 2000, 10_000, 50_000), (3, 4, 5), (1, 2, 4), 40
NEUTRAL = {"min_events_leaf": None, "prior": 0}


def study(n: int, n_causes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, causes and times; about a third of the rows is censored."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n, FEATURES)).astype(np.uint8)
    effects = np.where(rng.random((FEATURES, n_causes)) < 0.15, rng.normal(size=n_causes), 0.0)
    # Centred, so that every cause is about as frequent.
    lived = rng.exponential(n_causes / np.exp((X - 0.5) @ effects))
    followed = rng.exponential(2 * np.median(lived.min(axis=1)), n)
    time = np.minimum(lived.min(axis=1), followed)
    cause = np.where(lived.min(axis=1) <= followed, 1 + lived.argmin(axis=1), 0)
    # The same times whatever the unit: 500 distinct ones at most.
    return X, cause, np.ceil(500 * time / time.max())


def compare(n: int, depth: int, causes: Sequence[int], repeats: int) -> list[dict[str, Any]]:
    """CPU seconds of both trees by number of causes."""
    runs = []
    for n_causes in causes:
        X, cause, lived = study(n, n_causes)
        trees: dict[str, Any] = {
            "causes": (CompetingRisksTree(max_depth=depth, **NEUTRAL), (cause, lived)),
            "survival": (OptimalSurvivalTree(max_depth=depth, **NEUTRAL), (cause > 0, lived)),
        }
        seconds: dict[str, list[float]] = {name: [] for name in trees}
        for _, (name, (tree, y)) in itertools.product(range(repeats), trees.items()):
            begun = time.process_time()
            tree.fit(X, y)
            seconds[name].append(time.process_time() - begun)
        ours, other = trees["causes"][0], trees["survival"][0]
        same = ours.splits_ == other.splits_ and ours.objective_value_ == other.objective_value_
        run = {"rows": n, "depth": depth, "causes": n_causes, "repeats": repeats}
        run |= {f"{name}_seconds": statistics.median(one) for name, one in seconds.items()}
        run |= {f"{name}_nodes": trees[name][0].n_nodes_explored_ for name in trees}
        run |= {"status": [ours.status_, other.status_], "events": int((cause > 0).sum())}
        runs.append(run | {"wrong": n_causes == 1 and not same})
    return runs


def report(record: dict[str, Any]) -> str:
    """The table of a record."""
    lines = [
        f"# Competing risks, {record['date']}",
        "",
        f"{FEATURES} binary features, simulated rows. CPU seconds of a whole fit (median), one "
        "thread, and nodes of the search: `CompetingRisksTree` beside the `OptimalSurvivalTree` "
        "with events of any cause. With one cause both are the same tree"
        + (", except where it says wrong." if any(r["wrong"] for r in record["runs"]) else "."),
        "",
        "| rows | events | depth | causes | fits | s | survival s | ratio | nodes | of survival |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for run in record["runs"]:
        ours, other = run["causes_seconds"], run["survival_seconds"]
        lines.append(
            f"| {run['rows']:,} | {run['events']:,} | {run['depth']} | {run['causes']}"
            f"{' (wrong)' if run['wrong'] else ''} | {run['repeats']} | {ours:.3f} | {other:.3f} | "
            f"{ours / other:.1f} | {run['causes_nodes']:,} | {run['survival_nodes']:,} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run all sizes and print the table; 1 if trees with one cause differ or a search stopped."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.causes", description=__doc__)
    parser.add_argument("--rows", nargs="+", type=int, default=list(ROWS))
    parser.add_argument("--depths", nargs="+", type=int, default=list(DEPTHS))
    parser.add_argument("--causes", nargs="+", type=int, default=list(CAUSES))
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--out", type=Path, help="folder for YYYY-MM-DD-causes.json and .md")
    chosen = parser.parse_args(arguments)
    runs = []
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", BristleconeWarning)
        for n, depth in itertools.product(chosen.rows, chosen.depths):
            runs += compare(n, depth, chosen.causes, chosen.repeats)
    record = {"date": date.today().isoformat(), "machine": machine(), "runs": runs}
    text = report(record)
    if chosen.out is not None:
        stem = chosen.out / f"{record['date']}-causes"
        stem.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        stem.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)
    return int(any(run["wrong"] or set(run["status"]) != {"optimal"} for run in runs))


if __name__ == "__main__":
    sys.exit(main())
