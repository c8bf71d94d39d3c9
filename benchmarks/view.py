"""Seconds and bytes of what is made of a fitted tree: table, picture, page, file.

``python -m benchmarks.view`` fits 50,000 rows to sixteen leaves, makes each of them several times
and prints medians; ``--out benchmarks/records`` writes a dated record. The limits are those that
the documentation promises: five seconds for table, picture and page together, a page below 1 MB, a
model of eight leaves over 500 times below 100 kB.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.machine import machine
from bristlecone import OptimalSurvivalTree
from bristlecone.plot import plot_tree
from bristlecone.report import html_report

SECONDS, PAGE, MODEL = 5.0, 1_000_000, 100_000


def survival_rows(n_rows: int, n_times: int | None = None) -> tuple[pd.DataFrame, np.ndarray]:
    """Rows whose hazard depends on four of eight columns; times are distinct unless rounded."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(n_rows, 8)), columns=[f"measurement {k}" for k in range(8)])
    rate = np.exp(X.to_numpy()[:, :4].sum(axis=1) * 0.5)
    lived, followed = rng.exponential(size=n_rows) / rate, rng.uniform(0, 3, n_rows)
    y = np.empty(n_rows, dtype=[("event", bool), ("time", float)])
    y["event"], y["time"] = lived <= followed, np.minimum(lived, followed)
    if n_times is not None:
        y["time"] = np.ceil(y["time"] / y["time"].max() * n_times)
    return X, y


def median_seconds(make: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Median seconds, and what was made last."""
    seconds, made = [], None
    for _ in range(repeats):
        start = time.perf_counter()
        made = make()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds), made


def draw(tree: Any) -> None:
    """Picture of a tree, drawn to the last point."""
    from matplotlib import pyplot

    ax = plot_tree(tree)
    ax.figure.canvas.draw()
    pyplot.close(ax.figure)


def measure(n_rows: int, repeats: int) -> dict[str, Any]:
    """Seconds and bytes."""
    X, y = survival_rows(n_rows)
    tree = OptimalSurvivalTree(max_depth=4).fit(X, y)
    table, _ = median_seconds(lambda: tree.leaf_table(times=[0.5, 1.0, 2.0]), repeats)
    picture, _ = median_seconds(lambda: draw(tree), repeats)
    page, text = median_seconds(lambda: html_report(tree), repeats)
    found = {
        "rows": n_rows,
        "leaves": tree.n_leaves_,
        "leaf_table_seconds": table,
        "plot_tree_seconds": picture,
        "html_report_seconds": page,
        "together_seconds": table + picture + page,
        "page_bytes": len(text.encode()),
        "models": [],
    }
    for objective in ("likelihood", "brier"):
        X, y = survival_rows(2000, 500)
        small = OptimalSurvivalTree(max_depth=3, objective=objective).fit(X, y)
        document = small.to_json()
        leaf = small.apply(X)
        own = sum(len(np.unique(y["time"][leaf == node])) for node in small.tree_.leaves)
        rows = json.dumps(json.loads(document)["leaves"], separators=(",", ":"))
        found["models"].append(
            {
                "objective": objective,
                "leaves": small.n_leaves_,
                "times": len(np.unique(y["time"])),
                "model_bytes": len(document.encode()),
                "bytes_per_leaf_and_time": len(rows) / own,
            }
        )
    return found


def report(found: dict[str, Any]) -> str:
    """The numbers as Markdown."""
    lines = [
        "| | |",
        "|---|---|",
        f"| rows, leaves | {found['rows']:,}, {found['leaves']} |",
        f"| `leaf_table(times=…)` | {found['leaf_table_seconds']:.2f} s |",
        f"| `plot_tree`, drawn | {found['plot_tree_seconds']:.2f} s |",
        f"| `html_report` | {found['html_report_seconds']:.2f} s |",
        f"| together | {found['together_seconds']:.2f} s (at most {SECONDS:g}) |",
        f"| page | {found['page_bytes'] / 1e6:.2f} MB (below {PAGE / 1e6:g}) |",
    ]
    for model in found["models"]:
        lines.append(
            f"| model by {model['objective']}, {model['leaves']} leaves, {model['times']} times | "
            f"{model['model_bytes'] / 1e3:.1f} kB (below {MODEL / 1e3:g}), leaves "
            f"{model['bytes_per_leaf_and_time']:.1f} bytes per leaf and own time |"
        )
    return "\n".join(lines) + "\n"


def kept(found: dict[str, Any]) -> bool:
    """Whether all limits are."""
    small = all(model["model_bytes"] < MODEL for model in found["models"])
    return found["together_seconds"] <= SECONDS and found["page_bytes"] < PAGE and small


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args(argv)
    import matplotlib

    matplotlib.use("Agg")
    found = {"machine": machine(), **measure(arguments.rows, arguments.repeats)}
    text = report(found)
    print(text)
    if arguments.out is not None:
        path = arguments.out / f"{date.today()}-view"
        path.with_suffix(".json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
        path.with_suffix(".md").write_text(f"# view, {date.today()}\n\n{text}", encoding="utf-8")
    return 0 if kept(found) else 1


if __name__ == "__main__":
    sys.exit(main())
