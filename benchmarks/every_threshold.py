"""Trees over every threshold: how long a proof takes, beside pycontree on labels.

    python -m benchmarks.every_threshold                        # all parts
    python -m benchmarks.every_threshold survival normal --out benchmarks/records
    python -m benchmarks.every_threshold labels --limit 60      # needs pycontree and ../shared/data
    python -m benchmarks.every_threshold threads

Every fit is a process of its own on one processor, with the settings of the papers (no prior, no
least number of events, every threshold). Seconds are of a whole `fit` from numbers, the median of
three where one takes less than ten seconds. A fit that stops at the limit shows its gap.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.label_data import DATA
from benchmarks.machine import machine
from bristlecone.exceptions import BristleconeWarning

SURVIVAL = ("veteran", "cancer", "pbc", "whas500", "uis", "GBSG2", "LeukSurv", "rott2", "UnempDur")
SURVIVAL += ("acath", "nwtco", "Framingham", "dataDIVAT1", "oldmort", "Dialysis", "flchain")
LABELS = ("bank", "raisin", "rice", "wilt", "page", "bidding", "fault", "occupancy", "htru")
# Kind, rows, depths.
NORMAL = (
    ("signal", 1_000, (2, 3)),
    ("signal", 5_000, (3,)),
    ("signal", 100_000, (2,)),
    ("noise", 1_000, (2, 3)),
)
REPEATS, QUICK = 3, 10.0


def survival(name: str) -> tuple[Any, Any]:
    """Return the columns of a set of SurvSet and (event, time)."""
    from SurvSet.data import SurvLoader

    frame = SurvLoader().load_dataset(name)["df"]
    X = frame.drop(columns=["pid", "event", "time", "time2"], errors="ignore")
    return X, (frame["event"].to_numpy() > 0, frame["time"].to_numpy(float))


def normal(kind: str, n: int) -> tuple[Any, Any]:
    """Return ten normal columns, all values distinct, and (event, time); 45 % are censored."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 10))
    risk = X[:, 0] + 0.5 * X[:, 1] * X[:, 2] if kind == "signal" else np.zeros(n)
    lived, followed = rng.exponential(np.exp(-risk)), rng.exponential(1.0, n)
    return X, (lived <= followed, np.minimum(lived, followed))


def labels(name: str) -> tuple[Any, Any]:
    """Return a set of the study of all thresholds and its classes."""
    values = np.loadtxt(next((DATA / "continuous").glob(f"{name}.txt*")))
    return values[:, 1:], values[:, 0].astype(int)


def fit(job: dict[str, Any]) -> dict[str, Any]:
    """Fit once: seconds, objective, gap, status."""
    warnings.simplefilter("ignore", BristleconeWarning)
    from bristlecone import BinaryEncoder, OptimalSurvivalTree, OptimalTreeClassifier

    sources = {"survival": survival, "normal": normal, "labels": labels}
    X, y = sources[job["part"]](*job["data"])
    depth, limit = job["depth"], job["limit"]
    if job["program"] == "pycontree":
        from pycontree import ConTree  # type: ignore[import-untyped]

        tree = ConTree(max_depth=depth, time_limit=limit)
        start = time.perf_counter()
        tree.fit(X, y)
        seconds = time.perf_counter() - start
        errors = int((np.asarray(tree.predict(X)) != y).sum())
        status = "optimal" if seconds < limit else "time_limit"
        return {"seconds": seconds, "errors": errors, "status": status}
    settings = {
        "max_depth": depth,
        "encoder": BinaryEncoder(thresholds="all", min_support=0),
        "time_limit": limit,
        "n_jobs": job["threads"],
    }
    if job["part"] == "labels":
        model: Any = OptimalTreeClassifier(min_samples_leaf=1, **settings)
    else:
        model = OptimalSurvivalTree(prior=0, min_events_leaf=None, shrinkage=0, **settings)
    # What the first fit of a process loads is no part of the search.
    warm = clone(model).set_params(max_depth=1)
    warm.fit(X[:50], y[:50] if job["part"] == "labels" else (y[0][:50], y[1][:50]))
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    found = {"seconds": seconds, "objective": model.objective_value_, "status": model.status_}
    found["gap"] = (
        1 - model.lower_bound_ / model.objective_value_ if model.objective_value_ else 0.0
    )
    found["thresholds"] = model.certificate_.facts["thresholds"]
    if job["part"] == "labels":
        found["errors"] = int((model.predict(X) != y).sum())
    return found


def apart(job: dict[str, Any], processors: str) -> dict[str, Any]:
    """Fit in processes of their own, and return the median run."""
    runs = []
    for _ in range(REPEATS):
        command = ["taskset", "-c", processors, sys.executable, "-m", "benchmarks.every_threshold"]
        done = subprocess.run(
            [*command, "--job", json.dumps(job)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            return {"status": "failed", "error": done.stderr.strip().splitlines()[-1]}
        runs.append(json.loads(done.stdout))
        if runs[-1]["seconds"] > QUICK:
            break
    return sorted(runs, key=lambda run: run["seconds"])[(len(runs) - 1) // 2]


def jobs(parts: Sequence[str], limit: float) -> Iterable[dict[str, Any]]:
    """Yield what is to be fitted."""
    plain = {"program": "bristlecone", "threads": 1, "limit": limit}
    if "survival" in parts:
        for name in SURVIVAL:
            for depth in (2, 3):
                yield {**plain, "part": "survival", "data": [name], "depth": depth}
        for name in ("GBSG2", "whas500"):
            yield {**plain, "part": "survival", "data": [name], "depth": 4}
    if "normal" in parts:
        for kind, n, depths in NORMAL:
            for depth in depths:
                yield {**plain, "part": "normal", "data": [kind, n], "depth": depth}
    if "labels" in parts:
        for name in LABELS:
            for depth in (2, 3):
                for program in ("bristlecone", "pycontree"):
                    one = {**plain, "program": program, "part": "labels", "data": [name]}
                    yield {**one, "depth": depth}
    if "threads" in parts:
        for name in ("GBSG2", "LeukSurv", "oldmort", "dataDIVAT1"):
            for threads in (1, 2):
                one = {**plain, "threads": threads, "part": "survival", "data": [name]}
                yield {**one, "depth": 3}


def shown(run: dict[str, Any]) -> str:
    """Return seconds, and the gap where the limit ended the fit."""
    if run["status"] == "failed":
        return f"failed: {run['error']}"
    gap = (
        ""
        if run["status"] == "optimal"
        else f" (gap {run['gap']:.1%})"
        if "gap" in run
        else " (limit)"
    )
    return f"{run['seconds']:.3f}{gap}"


def report(runs: list[dict[str, Any]]) -> str:
    """Return the tables of a record."""
    lines = []
    for part, title in (("survival", "Survival sets"), ("normal", "Ten normal columns")):
        of_part = [run for run in runs if run["part"] == part and not run.get("of_threads")]
        if of_part:
            lines += [
                f"## {title}",
                "",
                "| data | thresholds | depth | seconds |",
                "|---|---|---|---|",
            ]
            for run in of_part:
                data = " ".join(map(str, run["data"]))
                cells = (data, run.get("thresholds", ""), run["depth"], shown(run))
                lines.append("| " + " | ".join(map(str, cells)) + " |")
            lines.append("")
    of_labels = [run for run in runs if run["part"] == "labels"]
    if of_labels:
        lines += ["## Labels, beside pycontree", ""]
        lines += ["| data | depth | errors | seconds | pycontree: errors | seconds | ratio |"]
        lines += ["|---|---|---|---|---|---|---|"]
        ratios: dict[int, list[float]] = {}
        for ours, other in zip(of_labels[::2], of_labels[1::2], strict=True):
            ratio = other["seconds"] / ours["seconds"]
            ratios.setdefault(ours["depth"], []).append(ratio)
            cells = [ours["data"][0], ours["depth"], ours["errors"], shown(ours)]
            cells += [other["errors"], shown(other), f"{ratio:.1f}"]
            lines.append("| " + " | ".join(map(str, cells)) + " |")
        medians = (
            f"depth {depth}: {statistics.median(all_):.1f}" for depth, all_ in ratios.items()
        )
        lines += ["", "Median ratio, " + ", ".join(medians) + ".", ""]
    of_threads = [run for run in runs if run.get("of_threads")]
    if of_threads:
        lines += ["## Two threads", "", "| data | one | two | ratio |", "|---|---|---|---|"]
        for one, two in zip(of_threads[::2], of_threads[1::2], strict=True):
            ratio = one["seconds"] / two["seconds"]
            lines.append(f"| {one['data'][0]} | {shown(one)} | {shown(two)} | {ratio:.2f} |")
        lines.append("")
    return "\n".join(lines)


def main() -> int:
    """Run what is asked for, and print or write the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parts = ("survival", "normal", "labels", "threads")
    parser.add_argument("parts", nargs="*", default=list(parts))
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of a fit")
    parser.add_argument("--processor", default=str(max(os.sched_getaffinity(0))))
    parser.add_argument("--out", type=Path)
    parser.add_argument("--job", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.job:
        print(json.dumps(fit(json.loads(given.job))))
        return 0
    runs = []
    for job in jobs(given.parts, given.limit):
        of_threads = job["part"] == "survival" and given.parts == ["threads"]
        two = job["threads"] > 1
        run = {**job, **apart(job, "0,1" if two else given.processor), "of_threads": of_threads}
        print(job["program"], *job["data"], f"depth {job['depth']}", shown(run), flush=True)
        runs.append(run)
    text = report(runs)
    print(text)
    if given.out:
        name = f"{date.today()}-every-threshold" + (
            "-threads" if given.parts == ["threads"] else ""
        )
        record = {"machine": machine(), "limit": given.limit, "runs": runs}
        (given.out / f"{name}.json").write_text(
            json.dumps(record, indent=1) + "\n", encoding="utf-8"
        )
        heading = f"# Trees over every threshold, {date.today()}\n\n"
        about = f"{record['machine']['cpu']}, revision {record['machine']['revision']}. "
        about += (__doc__ or "").split("\n\n")[-1].replace("\n", " ").strip()
        (given.out / f"{name}.md").write_text(f"{heading}{about}\n\n{text}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
