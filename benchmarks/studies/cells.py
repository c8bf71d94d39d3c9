"""Cells of a study, and the CSV file that every finished cell is appended to.

``benchmarks.generalise`` has cells, too, but rewrites a JSON record of means after each of them.
Here every number keeps a row of its own.
"""

from __future__ import annotations

import csv
import importlib.util
import logging
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from benchmarks.problems import Problem
from benchmarks.run import measure

log = logging.getLogger("benchmarks.studies")

# Written last, so that a cell without it was interrupted.
END = "took"
# The package that a library of benchmarks.adapters needs.
PACKAGES = {
    "pystreed": "pystreed",
    "pystreed-labels": "pystreed",
    "osst": "osst",
    "gosdt": "gosdt",
    "pydl85": "pydl85",
    "sksurv": "sksurv",
    "scikit-survival": "sksurv",
}


class Key(NamedTuple):
    """What a cell measures. A depth of 0 is no limit; each study says what ``x`` is."""

    experiment: str
    set: str
    method: str
    depth: int
    x: float = 0.0
    fold: int = 0


Scores = dict[str, float]
Cells = dict[Key, Callable[[], Scores]]
COLUMNS = [*Key._fields, "metric", "value"]
TYPES = {"depth": int, "x": float, "fold": int, "value": float}


def installed(methods: Iterable[str]) -> list[str]:
    """Those of the methods whose package is installed; a variant follows a colon."""
    needed = {method: PACKAGES.get(method.partition(":")[0], "bristlecone") for method in methods}
    return [m for m, package in needed.items() if importlib.util.find_spec(package)]


def finished(path: Path) -> list[list[str]]:
    """Rows of the finished cells as they stand in the file."""
    if not path.exists():
        return []
    # A line without its end was cut off.
    whole = path.read_text(encoding="utf-8").rpartition("\n")[0]
    rows = list(csv.reader(whole.splitlines()))[1:]
    ended = {tuple(row[:-2]) for row in rows if row[-2] == END}
    return [row for row in rows if tuple(row[:-2]) in ended]


def read(path: Path) -> pd.DataFrame:
    """Rows of the finished cells."""
    return pd.DataFrame(finished(path), columns=COLUMNS).astype(TYPES)


def run(cells: Cells, path: Path) -> int:
    """Compute the cells that the file lacks, and return how many failed.

    A cell that fails is logged and left out; the next run tries it again.
    """
    have = finished(path)
    done = {key_of(row) for row in have}
    missing = [key for key in cells if key not in done]
    failed = 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        # Without what an interrupted run left of a cell.
        writer.writerows([COLUMNS, *have])
        file.flush()
        for count, key in enumerate(missing, 1):
            begun = time.perf_counter()
            try:
                scores = cells[key]()
            except Exception:
                log.exception("%d/%d %s failed", count, len(missing), describe(key))
                failed += 1
                continue
            scores = scores | {END: round(time.perf_counter() - begun, 3)}
            writer.writerows([*text_of(key), metric, shortened(v)] for metric, v in scores.items())
            file.flush()
            shown = ", ".join(f"{metric} {value:.4g}" for metric, value in scores.items())
            log.info("%d/%d %s: %s", count, len(missing), describe(key), shown)
    return failed


def text_of(key: Key) -> tuple[str, ...]:
    """A key as it stands in the file."""
    return tuple(map(str, key._replace(x=float(key.x))))


def key_of(row: list[str]) -> Key:
    """The key of a row of the file, however its numbers are written."""
    experiment, name, method, depth, x, fold = row[:-2]
    return Key(experiment, name, method, int(depth), float(x), int(fold))


def shortened(value: float) -> str:
    """Twelve digits, which the checks of objectives need; the file stays small."""
    return "nan" if math.isnan(value) else f"{value:.12g}"


def describe(key: Key) -> str:
    """A cell in a few words."""
    return f"{key.experiment} {key.set} {key.method} depth {key.depth} x {key.x:g} {key.fold}"


def timed(
    problem: Problem,
    library: str,
    objective: str,
    depth: int | None,
    *,
    penalty: float = 0.0,
    min_samples_leaf: int = 1,
    repeats: int = 3,
    timeout: float = 60.0,
) -> Scores:
    """Fit a library of ``benchmarks.adapters`` in a process of its own.

    Returns the median seconds of the fits, the loss of the tree scored from the rows and with its
    penalty, leaves, whether the library claims a proof, and the megabytes that the fit added.
    """
    name, _, variant = library.partition(":")
    with tempfile.TemporaryDirectory(prefix="bristlecone-studies-") as folder:
        path = Path(folder) / f"{problem.name}.npz"
        problem.save(path)
        job = {
            "path": str(path),
            "library": name,
            "variant": variant,
            "cpus": 1,
            "objective": objective,
            "max_depth": depth,
            "leaf_penalty": penalty,
            "min_samples_leaf": min_samples_leaf,
            "time_limit": None,
            "repeats": repeats,
            # No second fit after a slow one.
            "seconds": timeout / 20,
        }
        found = measure(job, timeout)
    if found["status"] == "timeout":
        return {"timeout": timeout}
    if found["status"] == "failed":
        raise RuntimeError(f"{library} on {problem.name}: {found['message']}")
    scores = {
        "seconds": statistics.median(found["seconds"]),
        "loss": found["loss"],
        "leaves": found["leaves"],
        "proven": float(found["status"] == "optimal"),
    }
    if found["memory_peak_mb"] is not None:
        scores["megabytes"] = found["memory_peak_mb"] - found["memory_before_mb"]
    return scores
