"""Fit one library on one problem in a process of its own: a job on stdin, a measurement on stdout.

A process of its own makes the peak memory that library's alone, and lets a timeout end it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.adapters import Setting, adapter
from benchmarks.objectives import OBJECTIVES, own_penalty
from benchmarks.problems import Problem


def measure(job: dict[str, Any]) -> dict[str, Any]:
    """Return seconds of each fit, memory, and the objective with its penalty, scored from the rows.

    The fit is repeated `repeats` times, or until `seconds` are spent.
    """
    problem = Problem.load(Path(job["path"]))
    objective = job["objective"]
    setting = Setting(
        objective,
        job["max_depth"],
        own_penalty(objective, problem, job["leaf_penalty"]),
        job["min_samples_leaf"],
        job["time_limit"],
    )
    trained = adapter(job["library"])(problem, setting, job["variant"])
    before = peak_memory()
    repeats = 1 if getattr(trained, "one_fit", False) else job["repeats"]
    seconds: list[float] = []
    while len(seconds) < repeats and sum(seconds) < job["seconds"]:
        start = time.perf_counter()
        trained.fit()
        seconds.append(time.perf_counter() - start)
    peak = peak_memory()
    outcome = trained.outcome()
    leaves = len(set(outcome.leaves.tolist()))
    return {
        "status": outcome.status,
        "seconds": seconds,
        "loss": OBJECTIVES[objective](problem, outcome) + setting.leaf_penalty * leaves,
        "reported_objective": outcome.objective,
        "lower_bound": outcome.lower_bound,
        "nodes": outcome.nodes,
        "near_after": near_after(outcome.trace, seconds[-1]),
        "leaves": leaves,
        "memory_before_mb": before,
        "memory_peak_mb": peak,
        "version": trained.version,
    }


def near_after(trace: list[tuple[float, float, float]], total: float) -> float | None:
    """Return the share of the last fit's time after which its tree was within 1 % of the final."""
    if not trace:
        return None
    near = trace[-1][1] * 1.01
    return next(seconds for seconds, objective, _ in trace if objective <= near) / total


def peak_memory() -> float | None:
    """Return this process's peak resident memory in MB (10^6 bytes), None where unknown.

    VmHWM, because ru_maxrss starts from the peak of the process that forked this one.
    """
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024 / 1e6


def pin(cpus: int) -> None:
    """Hold the whole process to so many CPUs, so that "one thread" needs no trust."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-cpus:])


if __name__ == "__main__":
    job = json.load(sys.stdin)
    pin(job["cpus"])
    # A library that prints must not spoil the answer.
    answer = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    json.dump(measure(job), answer)
    answer.close()
