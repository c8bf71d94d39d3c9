"""Seconds of second opinions: stability, alternatives, near-optimal trees, verify.

``python -m benchmarks.trust`` prints them, ``--out benchmarks/records`` writes a dated record.
Promised are 200 resamples of GBSG2 at depth three within five seconds, and a verification of every
bundled set within one.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import date
from pathlib import Path
from typing import Any

from benchmarks.machine import machine
from benchmarks.view import median_seconds
from bristlecone import OptimalSurvivalTree
from bristlecone.datasets import list_datasets, load
from bristlecone.trust import alternatives, near_optimal_trees, stability, verify

STABILITY, VERIFY = 5.0, 1.0
EPSILON = 0.002


def measure(repeats: int) -> dict[str, Any]:
    """Median seconds of each."""
    gbsg2 = load("gbsg2")
    rows = gbsg2.X, gbsg2.y
    tree = OptimalSurvivalTree(max_depth=3).fit(*rows)
    resampled, _ = median_seconds(lambda: stability(tree, *rows, random_state=0), repeats)
    others, table = median_seconds(lambda: alternatives(tree, *rows), repeats)
    near, trees = median_seconds(lambda: near_optimal_trees(tree, *rows, epsilon=EPSILON), repeats)
    verified = {}
    for name in list_datasets():
        data = load(name)
        fitted = OptimalSurvivalTree(max_depth=2).fit(data.X, data.y)
        seconds, found = median_seconds(
            lambda fitted=fitted, data=data: verify(fitted, data.X, data.y), repeats
        )
        verified[name] = {"seconds": seconds, "holds": found.ok}
    return {
        "stability_seconds": resampled,
        "alternatives": len(table),
        "alternatives_seconds": others,
        "near_optimal_trees": len(trees),
        "near_optimal_seconds": near,
        "verify": verified,
    }


def report(found: dict[str, Any]) -> str:
    """The numbers as Markdown."""
    lines = [
        "| gbsg2, depth 3 | s |",
        "|---|---|",
        f"| `stability`, 200 resamples (at most {STABILITY:g}) "
        f"| {found['stability_seconds']:.2f} |",
        f"| `alternatives`: {found['alternatives']} | {found['alternatives_seconds']:.2f} |",
        f"| `near_optimal_trees(epsilon={EPSILON})`: {found['near_optimal_trees']} "
        f"| {found['near_optimal_seconds']:.2f} |",
        "",
        f"| `verify`, depth 2 (at most {VERIFY:g}) | s | holds |",
        "|---|---|---|",
    ]
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
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args(argv)
    found = {"machine": machine(), **measure(arguments.repeats)}
    text = report(found)
    print(text)
    if arguments.out is not None:
        path = arguments.out / f"{date.today()}-trust"
        path.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        path.with_suffix(".md").write_text(f"# trust, {date.today()}\n\n{text}", encoding="utf-8")
    return 0 if kept(found) else 1


if __name__ == "__main__":
    sys.exit(main())
