"""Fits over Parquet files larger than memory: rows per second, share of each pass, memory.

``python -m benchmarks.scale --rows 1000000 5000000`` makes the files (once) and fits a tree
of depth three, and of depth four, to each; ``--workers 1 2`` fits on Dask as well, and
``--out benchmarks/records`` writes a dated record. Each fit runs in a process of its own, whose
largest resident memory is recorded (with Dask without that of the workers). ``--check`` compares
with ``fit`` of one frame, which needs the memory for it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import machine

ROWS_OF_FILE, ROWS_OF_GROUP = 1_000_000, 250_000
MIB = 1 << 20
THRESHOLDS = 5


def main(arguments: list[str] | None = None) -> int:
    """Make the files, run all fits and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path("scale-data"), help="of the files")
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--depths", type=int, nargs="+", default=[3, 4])
    parser.add_argument("--jobs", type=int, nargs="+", default=[1], help="threads")
    parser.add_argument("--workers", type=int, nargs="*", default=[], help="workers of Dask")
    parser.add_argument("--check", action="store_true", help="compare with one frame")
    parser.add_argument("--out", type=Path, help="folder for YYYY-MM-DD-scale.json and .md")
    parser.add_argument("--case", nargs=5, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.case is not None:
        folder, *numbers = chosen.case
        print(json.dumps(run(Path(folder), *map(int, numbers))))
        return 0
    cases = []
    for n_rows in chosen.rows:
        folder = chosen.folder / str(n_rows)
        generate(folder, n_rows)
        for depth in chosen.depths:
            ways = [(jobs, 0) for jobs in chosen.jobs] + [(1, k) for k in chosen.workers]
            for jobs, workers in ways:
                case = [str(x) for x in (folder, depth, jobs, workers, int(chosen.check))]
                command = [sys.executable, "-m", "benchmarks.scale", "--case", *case]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                cases.append(json.loads(done.stdout.splitlines()[-1]))
                print(line(cases[-1]), flush=True)
    if chosen.out is not None:
        stem = chosen.out / f"{date.today()}-scale"
        record = {"machine": machine(), "cases": cases}
        stem.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
        stem.with_suffix(".md").write_text(report(record))
    return 0 if all(case["same"] is not False for case in cases) else 1


def generate(folder: Path, n_rows: int) -> None:
    """Write the table, unless it is there: fifteen columns, a time in days and an event."""
    import pandas as pd

    done = folder / "_done"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, n_rows, ROWS_OF_FILE)):
        rng = np.random.default_rng(number)
        n = min(ROWS_OF_FILE, n_rows - start)
        columns: dict[str, Any] = {
            "age": np.round(rng.normal(62, 11, n), 1),
            "bmi": np.round(rng.normal(27, 5, n), 1),
            "pressure": np.round(rng.normal(130, 18, n)),
            "glucose": np.round(rng.lognormal(4.6, 0.25, n)),
            "ldl": np.round(rng.normal(120, 35, n)),
            "hdl": np.round(rng.normal(52, 15, n)),
            "creatinine": np.round(rng.lognormal(0, 0.3, n), 2),
            "haemoglobin": np.round(rng.normal(13.8, 1.6, n), 1),
            "score": np.round(rng.random(n), 3),
            "visits": rng.poisson(3, n),
            "stage": rng.choice(["I", "II", "III", "IV"], n, p=[0.4, 0.3, 0.2, 0.1]),
            "region": rng.choice(["north", "south", "east", "west", "centre"], n),
            "arm": rng.choice(["a", "b"], n),
            "smoker": rng.random(n) < 0.22,
            "diabetes": rng.random(n) < 0.11,
        }
        columns["glucose"][rng.random(n) < 0.03] = np.nan
        risk = 0.04 * (columns["age"] - 62) + 0.5 * columns["smoker"]
        risk += 0.6 * (columns["stage"] == "IV") + 0.3 * (columns["creatinine"] > 1.3)
        until = np.ceil(rng.exponential(2000 * np.exp(-risk)))
        end = rng.integers(200, 3650, n)
        columns |= {"time": np.minimum(until, end), "event": until <= end}
        path = folder / f"part-{number:04}.parquet"
        frame = pd.DataFrame(columns)
        frame.to_parquet(path, index=False, row_group_size=ROWS_OF_GROUP, compression="zstd")
    done.write_text("")


def run(folder: Path, depth: int, jobs: int, workers: int, check: int) -> dict[str, Any]:
    """Fit a tree in this process."""
    from bristlecone import BinaryEncoder, OptimalSurvivalTree
    from bristlecone.scale import PassProgress, fit_partitions

    passes: dict[str, dict[str, float]] = {}
    begun = {}

    def note(progress: Any) -> None:
        if isinstance(progress, PassProgress):
            now = time.process_time()
            first = begun.setdefault(progress.name, max(begun.values(), default=started))
            begun["last"] = now
            passes[progress.name] = {"seconds": progress.seconds, "cpu": now - first}

    def tree() -> OptimalSurvivalTree:
        encoder = BinaryEncoder(n_thresholds=THRESHOLDS)
        return OptimalSurvivalTree(max_depth=depth, encoder=encoder, memory_limit=2 << 30)

    before, started = peak_bytes(), time.process_time()
    start = time.perf_counter()
    paths = str(folder / "*.parquet")
    if workers:
        from distributed import Client, LocalCluster

        options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            client.wait_for_workers(workers)
            start = time.perf_counter()
            fitted = fit_partitions(tree(), paths, client=client, callback=note)
            seconds = time.perf_counter() - start
    else:
        fitted = fit_partitions(tree(), paths, n_jobs=jobs, callback=note)
        seconds = time.perf_counter() - start
    cpu, peak, same = time.process_time() - started, peak_bytes(), None
    if check:
        import pandas as pd

        table = pd.read_parquet(folder)
        y = table[["event", "time"]]
        whole = tree().fit(table.drop(columns=["event", "time"]), y)
        same = whole.objective_value_ == fitted.objective_value_
        same &= whole.encoder_.to_dict() == fitted.encoder_.to_dict()
    return {
        "rows": fitted.certificate_.n_samples,
        "features": fitted.n_binary_features_,
        "depth": depth,
        "jobs": jobs,
        "workers": workers,
        "seconds": seconds,
        "cpu seconds": cpu,
        "passes": passes,
        "predicted": predict(fitted, folder),
        "peak": peak,
        "before": before,
        "objective": fitted.objective_value_,
        "status": fitted.status_,
        "same": same,
    }


def predict(tree: Any, folder: Path) -> dict[str, float]:
    """Survival at five times of the rows of the first file, in memory."""
    import pandas as pd

    table = pd.read_parquet(sorted(folder.glob("*.parquet"))[0])
    start, cpu = time.perf_counter(), time.process_time()
    tree.predict_survival_function(table, times=[180, 365, 730, 1460, 2920])
    seconds = time.perf_counter() - start
    return {"rows": len(table), "seconds": seconds, "cpu": time.process_time() - cpu}


def peak_bytes() -> int:
    """Largest resident memory of this process so far; not that of its parent, as from getrusage."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(next(x.split()[1] for x in status.splitlines() if x.startswith("VmHWM")))


def line(case: dict[str, Any]) -> str:
    """One case in words."""
    passes = ", ".join(
        f"{name} {one['seconds']:.1f} s ({rate(case, name)} million rows per core second)"
        for name, one in case["passes"].items()
    )
    how = f"{case['workers']} workers" if case["workers"] else f"{case['jobs']} threads"
    return (
        f"{case['rows']:,} rows, {case['features']} features, depth {case['depth']}, {how}: "
        f"{case['seconds']:.1f} s ({case['cpu seconds']:.1f} s of CPU), {case['peak'] / MIB:.0f} "
        f"MiB ({case['status']}); {passes}; survival of {case['predicted']['rows']:,} rows in "
        f"{case['predicted']['seconds']:.2f} s ({case['predicted']['cpu']:.2f} s of CPU)"
    )


def rate(case: dict[str, Any], name: str) -> str:
    """Million rows per second of a core in a pass; of Dask, whose CPU is elsewhere, by clock."""
    one = case["passes"].get(name)
    if one is None:
        return ""
    used = one["seconds"] * case["workers"] if case["workers"] else one["cpu"]
    return f"{case['rows'] / used / 1e6:.2f}"


def report(record: dict[str, Any]) -> str:
    """The table in Markdown."""
    names = list(dict.fromkeys(name for case in record["cases"] for name in case["passes"]))
    head = [
        "rows",
        "features",
        "depth",
        "cores",
        "seconds",
        "CPU seconds",
        "peak MiB",
        *names,
        "predict",
    ]
    lines = [
        "# Fits over Parquet files",
        "",
        "`python -m benchmarks.scale`: likelihood over 15 columns, five thresholds",
        "per numeric column. Passes: million rows per second of CPU (Dask: by clock and worker).",
        "Predict: CPU seconds for survival at five times of the million rows of a frame.",
        "",
        f"{record['machine']['cpu']}, {record['machine']['cores']} cores.",
        "",
        "| " + " | ".join(head) + " |",
        "|" + "---|" * len(head),
    ]
    for case in record["cases"]:
        rates = [rate(case, name) for name in names]
        how = f"{case['workers']} (Dask)" if case["workers"] else str(case["jobs"])
        cells = [f"{case['rows']:,}", case["features"], case["depth"], how]
        cells += [f"{case[name]:.1f}" for name in ("seconds", "cpu seconds")]
        cells += [f"{case['peak'] / MIB:.0f}", *rates, f"{case['predicted']['cpu']:.2f}"]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
