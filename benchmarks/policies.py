"""Seconds of policies that estimate their rewards: the models, and the whole fit.

    python -m benchmarks.policies
    python -m benchmarks.policies --rows 2000 --repeats 1 --out benchmarks/records

Simulated rows with 20 columns and three treatments, confounded by two columns; depth three,
``encoder="auto"``. Four fits: of numbers, of numbers with at least 20 rows of every treatment in a
leaf, and of the restricted mean of censored lifetimes with few and with many distinct times. The
clock is processor time, of one thread: of the models of propensity scores and outcomes alone, and
of the whole fit with the search and its proof.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.machine import machine
from bristlecone import PolicyTree
from bristlecone.exceptions import BristleconeWarning

N_COLUMNS, N_TREATMENTS, DEPTH, HORIZON = 20, 3, 3, 5.0


def simulated(n: int, seed: int = 0) -> tuple[Any, Any, Any, Any]:
    """Features, treatments, and the expected outcome and hazard under each treatment."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, N_COLUMNS))
    odds = np.exp(np.column_stack([0 * X[:, 0], 0.5 * X[:, 0], -0.5 * X[:, 1]]))
    share = (odds / odds.sum(axis=1, keepdims=True)).cumsum(axis=1)
    arm = np.minimum((rng.random(n)[:, None] > share).sum(axis=1), N_TREATMENTS - 1)
    gain = [0 * X[:, 0], 0.5 * X[:, 0] * (X[:, 1] > 0), 0.4 * (X[:, 2] > 0) - 0.2]
    mean = np.column_stack(gain) + X[:, [3]]
    return X, arm, mean, 0.2 * np.exp(-mean)


def outcomes(kind: str, arm: Any, mean: Any, rate: Any, seed: int = 1) -> Any:
    """Observed outcomes of one kind."""
    rng, rows = np.random.default_rng(seed), np.arange(len(arm))
    if kind.startswith("numbers"):
        return mean[rows, arm] + rng.normal(size=len(arm))
    lived, left = rng.exponential(1 / rate[rows, arm]), rng.exponential(10.0, len(arm))
    time = np.minimum(lived, left)
    return lived <= left, np.ceil(20 * time) / 20 if "few" in kind else time


def fits(n: int, repeats: int) -> list[dict[str, Any]]:
    """Median seconds of the rewards and of the fit, for each kind of outcome."""
    X, arm, mean, rate = simulated(n)
    found = []
    for kind in ("numbers", "numbers, 20 rows", "lifetimes, few times", "lifetimes, many times"):
        y = outcomes(kind, arm, mean, rate)
        parameters: dict[str, Any] = {"max_depth": DEPTH}
        parameters["min_samples_treatment"] = 20 if "20 rows" in kind else 0
        parameters["horizon"] = HORIZON if kind.startswith("lifetimes") else None
        models, whole = [], []
        for _ in range(repeats):
            begun = time.process_time()
            PolicyTree(**parameters).estimate_rewards(X, y, treatment=arm)
            models.append(time.process_time() - begun)
            begun = time.process_time()
            told: list[Any] = []
            tree = PolicyTree(**parameters).fit(X, y, treatment=arm, callback=told.append)
            whole.append(time.process_time() - begun)
        found.append(
            {
                "kind": kind,
                "rows": n,
                "models": float(np.median(models)),
                "fit": float(np.median(whole)),
                "status": tree.status_,
                "binary_features": tree.n_binary_features_,
                "fewest_rows": int(tree.leaves_.treated.min()),
                "reports": len(told),
                "value": tree.policy_value_,
            }
        )
    return found


def report(record: dict[str, Any]) -> str:
    """The table of a record."""
    lines = [
        f"# Policies with estimated rewards, {record['date']}",
        "",
        f"{N_COLUMNS} columns, {N_TREATMENTS} treatments, depth {DEPTH}; median processor seconds "
        "of one thread, of the models alone and of the whole fit with the search and its proof. "
        "fewest: rows of a treatment in a leaf. reports: calls of the callback.",
        "",
        "| outcomes | rows | models s | fit s | status | binary features | fewest | reports |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in record["runs"]:
        lines.append(
            f"| {row['kind']} | {row['rows']} | {row['models']:.2f} | {row['fit']:.2f} | "
            f"{row['status']} | {row['binary_features']} | {row['fewest_rows']} | "
            f"{row['reports']} |"
        )
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run the fits and print the table; 1 if a tree is not proven optimal."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.policies", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, help="folder for YYYY-MM-DD-policies.json and .md")
    chosen = parser.parse_args(arguments)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore", BristleconeWarning)
        runs = fits(chosen.rows, chosen.repeats)
    record = {"date": date.today().isoformat(), "machine": machine(), "runs": runs}
    text = report(record)
    if chosen.out is not None:
        stem = chosen.out / f"{record['date']}-policies"
        stem.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        stem.with_suffix(".md").write_text(text, encoding="utf-8")
    print(text)
    return int(any(row["status"] != "optimal" for row in runs))


if __name__ == "__main__":
    sys.exit(main())
