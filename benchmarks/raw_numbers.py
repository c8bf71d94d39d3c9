"""Seconds from raw numbers to a tree: everything around the search, and the search beside it.

``python -m benchmarks.raw_numbers`` fits ``OptimalSurvivalTree`` to a data frame of twenty float
columns, at its defaults and with five thresholds of every column, each fit in a process of its own;
``--before PYTHON`` names an interpreter
whose bristlecone is measured in turn with this checkout, ``--out benchmarks/records`` writes a
dated record. CPU seconds of one thread, and the largest memory beyond that before the fit. Linux
only.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from datetime import date
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

ROWS = (200_000, 1_000_000)
DEPTHS = (2, 3)
COLUMNS = 20

# Thresholds of every column; None for the defaults, which look at every threshold.
ENCODERS = (None, 5)

# Bytes that a search needs for every row besides its features: time, event, sums, reals.
STATISTICS = 8 + 1 + 2 * 8 + 3 * 8
PACKAGE = Path(__file__).parents[1] / "python"


def main(arguments: list[str] | None = None) -> int:
    """Run all cases and print the table; 1 where the two versions found other trees."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.raw_numbers", description=__doc__)
    parser.add_argument("--before", help="interpreter with another version of bristlecone")
    parser.add_argument("--repeats", type=int, default=3, help="fits of every case and version")
    parser.add_argument("--out", type=Path, help="folder for YYYY-MM-DD-raw-numbers.json and .md")
    parser.add_argument("--case", nargs=3, type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.case is not None:
        print(json.dumps(fitted(*chosen.case)))
        return 0
    versions = {"before": chosen.before} if chosen.before else {}
    runs = []
    for (thresholds, rows, depth), _, (version, python) in itertools.product(
        itertools.product(ENCODERS, ROWS, DEPTHS),
        range(chosen.repeats),
        [*versions.items(), ("after", sys.executable)],
    ):
        path = str(PACKAGE) if version == "after" else ""
        case = [str(number or 0) for number in (rows, depth, thresholds)]
        command = [python, str(Path(__file__)), "--case", *case]
        done = subprocess.run(
            command,
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=True,
            timeout=600,
        )
        runs.append({"version": version, **json.loads(done.stdout)})
    text = markdown(runs)
    if chosen.out is not None:
        from benchmarks.machine import machine

        stem = chosen.out / f"{date.today().isoformat()}-raw-numbers"
        record = {"machine": machine(), "runs": runs}
        stem.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
        stem.with_suffix(".md").write_text(text)
    print(text)
    found = {case_of(run): set() for run in runs}
    for run in runs:
        found[case_of(run)].add((run["tree"], run["objective"]))
    return int(any(len(trees) > 1 for trees in found.values()))


def case_of(run: dict[str, Any]) -> tuple[int, ...]:
    """What a run fits: thresholds of every column, rows and depth."""
    return run["thresholds"], run["rows"], run["depth"]


def fitted(n_rows: int, depth: int, thresholds: int) -> dict[str, Any]:
    """CPU seconds of a fit without its search, and of the search; its memory and its tree.

    With 0 ``thresholds`` the encoder is that of the defaults.
    """
    import pandas as pd

    from bristlecone import BinaryEncoder, OptimalSurvivalTree
    from bristlecone._estimators import searched

    solve, searching = searched.solve, []

    def timed(*given: Any) -> Any:
        began = time.process_time()
        peaks.append(0)
        try:
            return solve(*given)
        finally:
            searching.append(time.process_time() - began)
            peaks.append(0)

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, COLUMNS))
    risk = 0.8 * (X[:, 0] > 0.3) + 0.6 * X[:, 1] * (X[:, 2] > -0.5) + 0.3 * X[:, 3]
    lives = 100 * rng.weibull(1.5, n_rows) * np.exp(-0.5 * risk)
    censored = rng.exponential(np.quantile(lives, 0.8), n_rows)
    y = lives <= censored, np.minimum(lives, censored)
    frame = pd.DataFrame(X, columns=[f"c{place}" for place in range(COLUMNS)])
    encoder = BinaryEncoder(n_thresholds=thresholds) if thresholds else "auto"
    tree = OptimalSurvivalTree(max_depth=depth, encoder=encoder)
    # What a first fit imports is none of its memory.
    OptimalSurvivalTree(max_depth=1, encoder=encoder).fit(frame[:200], (y[0][:200], y[1][:200]))
    searched.solve = timed
    # Before the search, in it, and after it.
    before, peaks, ended = resident(), [0], threading.Event()

    def watch() -> None:
        while not ended.wait(0.005):
            peaks[-1] = max(peaks[-1], resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    began = time.process_time()
    try:
        tree.fit(frame, y)
    finally:
        seconds = time.process_time() - began
        ended.set()
        watcher.join()
    questions = "\n".join(tree.certificate_.binary_features) + repr(tree.tree_.threshold.tolist())
    needed = n_rows * (8 * -(-tree.n_binary_features_ // 64) + STATISTICS)
    return {
        "thresholds": thresholds,
        "rows": n_rows,
        "depth": depth,
        "search": round(sum(searching), 3),
        "else": round(seconds - sum(searching), 3),
        "memory": round((peaks[0] - before) / X.nbytes, 2),
        "memory_of_search": round((peaks[1] - before) / X.nbytes, 2),
        "memory_by_need": round((max(peaks[:2]) - before) / needed, 2),
        "objective": tree.objective_value_,
        "tree": sha256(questions.encode()).hexdigest()[:16],
    }


def resident() -> int:
    """Bytes of this process that are in memory and come from no file."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return 1024 * int(status.split("RssAnon:")[1].split()[0])


def markdown(runs: list[dict[str, Any]]) -> str:
    """The table of a record."""
    lines = [
        "# From raw numbers to a tree",
        "",
        f"`OptimalSurvivalTree` on a data frame of {COLUMNS} float columns, all values distinct: "
        "at its defaults, which look at every threshold, and with some thresholds of every column "
        "(`BinaryEncoder(n_thresholds=...)`). CPU seconds of one thread (median), and the largest "
        "memory beyond that before the fit as a multiple of the bytes of the columns: before the "
        "search, and in it; and the larger as a multiple of what a search needs, the features as "
        f"bits and {STATISTICS} bytes of statistics per row. The search includes "
        "merging equal rows. Same tree: thresholds, features and objective are the same in every "
        "fit.",
        "",
        "| thresholds | rows | depth | version | fits | without the search | search "
        "| memory before | in the search | of what it needs | same tree |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (thresholds, rows, depth), cases in itertools.groupby(runs, case_of):
        own = list(cases)
        same = len({(run["tree"], run["objective"]) for run in own}) == 1
        for version in dict.fromkeys(run["version"] for run in own):
            fits = [run for run in own if run["version"] == version]
            middle = {
                name: statistics.median(run[name] for run in fits)
                for name in ("else", "search", "memory", "memory_of_search", "memory_by_need")
            }
            lines.append(
                f"| {thresholds or 'defaults'} | {rows:,} | {depth} | {version} | {len(fits)} "
                f"| {middle['else']:.2f} "
                f"| {middle['search']:.2f} | {middle['memory']:.2f} "
                f"| {middle['memory_of_search']:.2f} | {middle['memory_by_need']:.2f} "
                f"| {'yes' if same else 'no'} |"
            )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
