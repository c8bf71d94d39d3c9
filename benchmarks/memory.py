"""What searches take of the memory that they are limited to, each in a process of its own.

``python -m benchmarks.memory`` prints, for every family of searches, limit and number of threads,
the largest memory of the process beyond what it had before the search; ``--out benchmarks/records``
writes a dated record. What is read from files, such as the program's own code, is shared and not
counted. Linux only: memory is read from /proc.
"""

from __future__ import annotations

import argparse
import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.machine import machine

MIB = 1 << 20
LIMITS = (16, 32, 128)
THREADS = (1, 2)
SECONDS = 5.0

# Task, rows, features, depth and leaves (0: as many as the depth allows): large enough that all of
# the limit is of use.
CASES = (
    ("likelihood", 300, 60, 7, 0),
    ("likelihood", 3000, 60, 7, 20),
    ("likelihood", 3000, 100, 5, 0),
    ("likelihood", 20_000, 100, 7, 0),
    ("accuracy", 3000, 60, 7, 0),
    ("brier", 3000, 60, 7, 0),
    ("brier", 400, 25, 8, 0),
    ("confusion", 3000, 60, 7, 0),
    ("confusion", 600, 40, 5, 0),
    ("f-measure", 3000, 60, 7, 0),
    ("demographic-parity", 3000, 60, 7, 0),
    ("demographic-parity", 600, 40, 5, 0),
    ("fair-likelihood", 3000, 100, 5, 0),
    ("fair-brier", 1000, 40, 5, 0),
)


def main(arguments: list[str] | None = None) -> int:
    """Run all cases and print the table; 1 where a limit was exceeded by more than a tenth."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--out", type=Path, help="folder for YYYY-MM-DD-memory.json and .md")
    parser.add_argument("--case", nargs=7, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.case is not None:
        name, *numbers = chosen.case
        print(json.dumps(used(name, *map(int, numbers))))
        return 0
    rows = []
    for case, limit, n_threads in itertools.product(CASES, LIMITS, THREADS):
        given = [str(value) for value in (*case, limit, n_threads)]
        command = [sys.executable, "-m", "benchmarks.memory", "--case", *given]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
        rows.append(json.loads(done.stdout))
    text = markdown(rows)
    if chosen.out is not None:
        stem = chosen.out / f"{date.today().isoformat()}-memory"
        record = {"machine": machine(), "runs": rows}
        stem.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
        stem.with_suffix(".md").write_text(text)
    print(text)
    return int(any(row["mib"] > 1.1 * row["limit"] for row in rows))


def used(
    name: str, n_rows: int, n_features: int, depth: int, leaves: int, limit: int, n_threads: int
) -> dict[str, Any]:
    """Largest memory of a search beyond what was in use before it."""
    from bristlecone import _core

    rng = np.random.default_rng(0)
    X = (rng.random((n_rows, n_features)) < 0.4).astype(np.uint8)
    search: Callable[..., Any] = _core.solve
    if not any(task == name and "solve" in asks for task, asks, _ in _core.tasks()):
        search = _core.front
    settings = {
        "max_depth": depth,
        "max_leaf_nodes": leaves or None,
        "min_samples_leaf": 1,
        "min_events_leaf": 0,
        "leaf_penalty": 0.0,
        "n_threads": n_threads,
        "time_limit": SECONDS,
        "memory_limit": limit * MIB,
        "options": None,
    }
    data = outcome(name, rng, X)
    before, peak = resident(), [0]
    ended = threading.Event()

    def watch() -> None:
        while not ended.is_set():
            peak[0] = max(peak[0], resident())
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        status = search(name, data, X, **settings).status
    finally:
        ended.set()
        watcher.join()
    problem = f"{n_rows:,} × {n_features}, depth {depth}" + (f", {leaves} leaves" if leaves else "")
    return {
        "task": name,
        "problem": problem,
        "threads": n_threads,
        "limit": limit,
        "mib": round((peak[0] - before) / MIB, 1),
        "status": status,
    }


def outcome(name: str, rng: np.random.Generator, X: NDArray[np.uint8]) -> dict[str, Any]:
    """Outcomes that depend on the first features, by the names that the task has for them."""
    n = len(X)
    labels = (X[:, 0] & X[:, 1] ^ X[:, 2] ^ (rng.random(n) < 0.2)).astype(np.int64)
    groups = (rng.random(n) < 0.5).astype(np.int64)
    hazard = np.exp(X[:, 0] - 1.0 * X[:, 1])
    lives = {"time": rng.exponential(1 / hazard), "event": rng.random(n) < 0.6}
    return {
        "likelihood": {**lives, "prior": 0.0},
        "brier": {**lives, "leaf_curve": "kaplan-meier"},
        "accuracy": {"labels": labels, "n_classes": 2},
        "confusion": {"labels": labels},
        "f-measure": {"labels": labels, "beta": 1.0},
        "demographic-parity": {"labels": labels, "group": groups, "delta": 0.05},
        "fair-brier": {**lives, "group": groups, "delta": 0.05, "tau": 1.0},
        "fair-likelihood": {**lives, "group": groups, "delta": 0.05, "prior": 0.0, "tau": 1.0},
    }[name]


def resident() -> int:
    """Bytes of this process that are in memory and come from no file."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(status.split("RssAnon:")[1].split()[0])


def markdown(rows: list[dict[str, Any]]) -> str:
    """The table of a record."""
    lines = [
        "# Memory of searches under a memory limit",
        "",
        f"Largest memory of the process beyond that before the search, {SECONDS:g} seconds each.",
        "",
        "| task | problem | threads | limit, MiB | used, MiB | of the limit | status |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for row in rows:
        share = row["mib"] / row["limit"]
        numbers = f"{row['threads']} | {row['limit']} | {row['mib']} | {share:.0%}"
        lines.append(f"| {row['task']} | {row['problem']} | {numbers} | {row['status']} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
