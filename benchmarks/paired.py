"""Before and after in pairs: `python -m benchmarks.paired OTHER_CHECKOUT likelihood deep brier`.

Each problem of a study is fitted by the package of this checkout and by that of another one, in
turn and each in a process of its own, both with their extension built in place. What is compared is
the median of the pairs' ratios, this one's seconds over the other's.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from datetime import date
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.machine import machine
from benchmarks.problems import build, catalogue
from benchmarks.run import ROOT, measure

# Seconds of one process.
_TIMEOUT = 600.0


def main(arguments: list[str] | None = None) -> int:
    """Time the studies and print the table; 1 if an optimum got worse."""
    studies = catalogue()["studies"]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paired", description=__doc__)
    parser.add_argument("other", type=Path, help="the other checkout")
    parser.add_argument("studies", nargs="+", choices=sorted(studies))
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--depths", nargs="+", type=int)
    parser.add_argument("--penalties", nargs="+", type=float)
    parser.add_argument(
        "--least", type=float, default=0.005, help="seconds a fit must take to count"
    )
    parser.add_argument(
        "--most", type=float, default=20.0, help="seconds for the pairs of a problem"
    )
    parser.add_argument("--out", type=Path, help="folder for YYYY-MM-DD-paired.json and .md")
    chosen = parser.parse_args(arguments)
    rows = [row for name in chosen.studies for row in compare(name, studies[name], chosen)]
    text = markdown(rows, chosen.least)
    if chosen.out is not None:
        stem = chosen.out / f"{date.today().isoformat()}-paired"
        record = {"machine": machine(), "runs": rows}
        stem.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        stem.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)
    return int(any(row["loss"] > row["other_loss"] + 1e-9 for row in rows))


def compare(name: str, study: dict[str, Any], chosen: argparse.Namespace) -> list[dict[str, Any]]:
    """One row per problem, depth and penalty."""
    rows = []
    # On one thread, whatever the study compares.
    library, _, _ = study["libraries"][0].partition(":")
    with tempfile.TemporaryDirectory(prefix="bristlecone-paired-") as folder:
        for problem in study["problems"]:
            path = Path(folder) / f"{problem}.npz"
            build(problem).save(path)
            penalties = chosen.penalties or study.get("penalties", [0.0])
            settings = product(chosen.depths or study["depths"], penalties)
            for depth, penalty in settings:
                job = {
                    "path": str(path),
                    "library": library,
                    "variant": "",
                    "cpus": 1,
                    "objective": study["objective"],
                    "max_depth": depth,
                    "leaf_penalty": penalty,
                    "min_samples_leaf": study.get("min_samples_leaf", 1),
                    "time_limit": study.get("time_limit"),
                    "repeats": 25,
                    "seconds": 1.0,
                }
                row = {"study": name, "problem": problem, "depth": depth, "penalty": penalty}
                rows.append(row | pairs(job, chosen))
                print(line(rows[-1]), file=sys.stderr, flush=True)
    return rows


def pairs(job: dict[str, Any], chosen: argparse.Namespace) -> dict[str, Any]:
    """Seconds of both in turn; the first to run alternates."""
    seconds: dict[Path, list[float]] = {ROOT: [], chosen.other.resolve(): []}
    loss: dict[Path, float] = {}
    sides = list(seconds)
    for turn in range(chosen.pairs):
        for side in sides if turn % 2 == 0 else reversed(sides):
            found = measure(job, _TIMEOUT, side)
            if not found["seconds"]:
                raise RuntimeError(f"{side}: {found['status']} {found.get('message', '')}")
            seconds[side].append(min(found["seconds"]))
            loss[side] = found["loss"]
        if sum(map(sum, seconds.values())) > chosen.most:
            break
    here, there = (seconds[side] for side in sides)
    return {
        "seconds": here,
        "other_seconds": there,
        "ratio": median(a / b for a, b in zip(here, there, strict=True)),
        "loss": loss[sides[0]],
        "other_loss": loss[sides[1]],
    }


def line(row: dict[str, Any]) -> str:
    """One row of the table."""
    names = f"| {row['study']} | {row['problem']} | {row['depth']} | {row['penalty']:g} "
    here, there = median(row["seconds"]), median(row["other_seconds"])
    return f"{names}| {here:.4f} | {there:.4f} | {row['ratio']:.3f} |"


def markdown(rows: list[dict[str, Any]], least: float) -> str:
    """The table and the geometric mean of every study."""
    head = "| study | problem | depth | penalty | seconds | before | ratio |\n" + "|---" * 7 + "|\n"
    text = "# Before and after, in pairs\n\n" + head + "".join(line(row) + "\n" for row in rows)
    text += f"\nGeometric means of the ratios where a fit took {least:g} s or more before:\n\n"
    for study in dict.fromkeys(row["study"] for row in rows):
        long = [r for r in rows if r["study"] == study and median(r["other_seconds"]) >= least]
        if long:
            mean = math.exp(sum(math.log(row["ratio"]) for row in long) / len(long))
            worst = max(long, key=lambda row: row["ratio"])
            text += f"* {study}: {mean:.3f} over {len(long)}; largest {worst['ratio']:.3f} "
            text += f"({worst['problem']}, depth {worst['depth']})\n"
    return text


if __name__ == "__main__":
    sys.exit(main())
