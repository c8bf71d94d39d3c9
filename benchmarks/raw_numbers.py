"""Seconds from raw numbers to a tree: everything around the search, and the search beside it.

``python -m benchmarks.raw_numbers`` fits ``OptimalSurvivalTree`` at its defaults to a data frame
of twenty float columns, each fit in a process of its own; ``--before PYTHON`` names an interpreter
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
PACKAGE = Path(__file__).parents[1] / "python"


def main(arguments: list[str] | None = None) -> int:
    """Run all cases and print the table; 1 where the two versions found other trees."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.raw_numbers", description=__doc__)
    parser.add_argument("--before", help="interpreter with another version of bristlecone")
    parser.add_argument("--repeats", type=int, default=3, help="fits of every case and version")
    parser.add_argument("--out", type=Path, help="folder for YYYY-MM-DD-raw-numbers.json and .md")
    parser.add_argument("--case", nargs=2, type=int, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.case is not None:
        print(json.dumps(fitted(*chosen.case)))
        return 0
    versions = {"before": chosen.before} if chosen.before else {}
    runs = []
    for (rows, depth), _, (version, python) in itertools.product(
        itertools.product(ROWS, DEPTHS),
        range(chosen.repeats),
        [*versions.items(), ("after", sys.executable)],
    ):
        path = str(PACKAGE) if version == "after" else ""
        command = [python, str(Path(__file__)), "--case", str(rows), str(depth)]
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
    found = {(run["rows"], run["depth"]): set() for run in runs}
    for run in runs:
        found[run["rows"], run["depth"]].add((run["tree"], run["objective"]))
    return int(any(len(trees) > 1 for trees in found.values()))


def fitted(n_rows: int, depth: int) -> dict[str, Any]:
    """CPU seconds of a fit without its search, and of the search; its memory and its tree."""
    import pandas as pd

    from bristlecone import OptimalSurvivalTree

    class Timed(OptimalSurvivalTree):
        searching = 0.0

        def run(self, search: Any, problem: Any, **options: Any) -> Any:
            began = time.process_time()
            peaks.append(0)
            try:
                return super().run(search, problem, **options)
            finally:
                self.searching += time.process_time() - began
                peaks.append(0)

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, COLUMNS))
    risk = 0.8 * (X[:, 0] > 0.3) + 0.6 * X[:, 1] * (X[:, 2] > -0.5) + 0.3 * X[:, 3]
    lives = 100 * rng.weibull(1.5, n_rows) * np.exp(-0.5 * risk)
    censored = rng.exponential(np.quantile(lives, 0.8), n_rows)
    y = lives <= censored, np.minimum(lives, censored)
    frame = pd.DataFrame(X, columns=[f"c{place}" for place in range(COLUMNS)])
    tree = Timed(max_depth=depth)
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
    return {
        "rows": n_rows,
        "depth": depth,
        "search": round(tree.searching, 3),
        "else": round(seconds - tree.searching, 3),
        "memory": round((peaks[0] - before) / X.nbytes, 2),
        "memory_of_search": round((peaks[1] - before) / X.nbytes, 2),
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
        f"`OptimalSurvivalTree` at its defaults on a data frame of {COLUMNS} float columns, all "
        "values distinct. CPU seconds of one thread (median), and the largest memory beyond that "
        "before the fit as a multiple of the bytes of the columns: before the search, and in it. "
        "The search includes packing the features and merging equal rows. Same tree: thresholds, "
        "features and objective are the same in every fit.",
        "",
        "| rows | depth | version | fits | without the search | search | memory before "
        "| in the search | same tree |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (rows, depth), cases in itertools.groupby(runs, lambda run: (run["rows"], run["depth"])):
        own = list(cases)
        same = len({(run["tree"], run["objective"]) for run in own}) == 1
        for version in dict.fromkeys(run["version"] for run in own):
            fits = [run for run in own if run["version"] == version]
            middle = {
                name: statistics.median(run[name] for run in fits)
                for name in ("else", "search", "memory", "memory_of_search")
            }
            lines.append(
                f"| {rows:,} | {depth} | {version} | {len(fits)} | {middle['else']:.2f} "
                f"| {middle['search']:.2f} | {middle['memory']:.2f} "
                f"| {middle['memory_of_search']:.2f} | {'yes' if same else 'no'} |"
            )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
