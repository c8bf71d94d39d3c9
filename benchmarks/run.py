"""Run a study of problems.json: `python -m benchmarks.run likelihood`. See README.md."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import report
from benchmarks.machine import machine
from benchmarks.problems import build, catalogue

ROOT = Path(__file__).parent.parent


def main(arguments: list[str] | None = None) -> int:
    """Run the study, print its report, write its record; 1 if a check of the report fails."""
    studies = catalogue()["studies"]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("study", choices=sorted(studies))
    parser.add_argument("--problems", nargs="+", metavar="NAME", help="default: the study's")
    parser.add_argument(
        "--libraries", nargs="+", metavar="LIBRARY[:VARIANT]", help="the first is compared to each"
    )
    parser.add_argument("--depths", nargs="+", type=_depth, metavar="D", help="or none")
    parser.add_argument("--penalties", nargs="+", type=float, metavar="LOSS")
    parser.add_argument("--repeats", type=int, default=7, help="fits per process (median taken)")
    parser.add_argument("--timeout", type=float, help="seconds a process may take")
    parser.add_argument("--out", type=Path, help="folder for YYYY-MM-DD-STUDY.json and .md")
    chosen = parser.parse_args(arguments)

    study = dict(studies[chosen.study])
    for key in ("problems", "libraries", "depths", "penalties", "timeout"):
        if getattr(chosen, key) is not None:
            study[key] = getattr(chosen, key)
    record = {
        "study": chosen.study,
        "date": date.today().isoformat(),
        "exact": study["exact"],
        "objective": study["objective"],
        "timeout": study["timeout"],
        **{key: study[key] for key in ("slow", "noticeable", "time_limit") if key in study},
        "machine": machine(),
        "runs": list(runs(study, chosen.repeats)),
    }
    if chosen.out is not None:
        chosen.out.mkdir(parents=True, exist_ok=True)
        stem = chosen.out / f"{record['date']}-{chosen.study}"
        stem.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        stem.with_suffix(".md").write_text(report.markdown(record), encoding="utf-8")
    print(report.markdown(record))
    return 1 if report.failures(record) else 0


def _depth(text: str) -> int | None:
    return None if text == "none" else int(text)


def runs(study: dict[str, Any], repeats: int) -> Iterator[dict[str, Any]]:
    """Yield one measurement per problem, depth, penalty and library, the libraries back to back."""
    with tempfile.TemporaryDirectory(prefix="bristlecone-benchmarks-") as folder:
        for name in study["problems"]:
            problem = build(name)
            path = Path(folder) / f"{name}.npz"
            problem.save(path)
            about = {
                "problem": name,
                "rows": problem.X.shape[0],
                "distinct_rows": len(np.unique(problem.X, axis=0)),
                "features": problem.X.shape[1],
                "fingerprint": problem.fingerprint,
            }
            # Free before the workers start: the largest problem would otherwise be held twice.
            del problem
            settings = product(study["depths"], study.get("penalties", [0.0]))
            for (depth, penalty), label in product(settings, study["libraries"]):
                library, _, variant = label.partition(":")
                asked = {"max_depth": depth, "leaf_penalty": penalty}
                job = {
                    **asked,
                    "path": str(path),
                    "library": library,
                    "variant": variant,
                    "cpus": int(variant.split("-")[0]) if variant.endswith("-threads") else 1,
                    "objective": study["objective"],
                    "min_samples_leaf": study.get("min_samples_leaf", 1),
                    "time_limit": study.get("time_limit"),
                    "repeats": repeats,
                    "seconds": study["timeout"] / 10,
                }
                run = {**about, "library": label, **asked, **measure(job, study["timeout"])}
                print(progress(run), file=sys.stderr, flush=True)
                yield run


def measure(job: dict[str, Any], timeout: float, checkout: Path | None = None) -> dict[str, Any]:
    """Run a job in a process of its own; a timeout or a crash is a result, too.

    With ``checkout`` by its worker, and with the package that is built in it.
    """
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "RAYON")}
    package = {} if checkout is None else {"PYTHONPATH": str(checkout / "python")}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.worker"],
            input=json.dumps(job),
            capture_output=True,
            text=True,
            timeout=timeout,
            cwd=ROOT if checkout is None else checkout,
            env={**os.environ, **threads, **package},
        )
    except subprocess.TimeoutExpired:
        return {"status": "timeout", "seconds": []}
    if done.returncode != 0:
        message = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return {"status": "failed", "seconds": [], "message": message}
    return json.loads(done.stdout)


def progress(run: dict[str, Any]) -> str:
    """Return one line for the person who waits."""
    start = f"{run['problem']} depth {report.setting(run)} {run['library']}: "
    if not run["seconds"]:
        return f"{start}{run['status']} {run.get('message', '')}"
    return f"{start}{report.median(run):.4f} s, loss {run['loss']:.12g}"


if __name__ == "__main__":
    sys.exit(main())
