"""Share of the rows in every leaf of a soft tree, and concordance on new rows, by public set.

    python -m benchmarks.soft_leaves --out benchmarks/records
    python -m benchmarks.soft_leaves --set pooling=null balance=0 min_leaf_share=0 --name soft-bare

Sets of SurvSet, at most 2,500 rows of each (drawn without replacement, seed 0); five folds,
stratified by event, seed 0. ``--set`` gives parameters as JSON; without it they are the defaults.
The constants of decision 0015 were chosen on ``CHOSEN_ON``; ``CHECKED_ON`` are the others.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import warnings
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from benchmarks.soft import Arrays, _about, _opened, _write, completed, load
from bristlecone import SoftSurvivalTree
from bristlecone.exceptions import BristleconeWarning

CHOSEN_ON = ("rott2", "pbc", "Aids2", "actg", "whas500", "veteran")
CHECKED_ON = ("GBSG2", "TRACE", "colon", "support2", "Framingham")
MOST_ROWS, FOLDS, SEED, HELD = 2500, 5, 0, 0.05


def drawn(name: str) -> Arrays:
    """At most ``MOST_ROWS`` rows of a set."""
    X, event, when = load({"source": "survset", "name": name}, Path())
    if len(event) > MOST_ROWS:
        random = np.random.default_rng(SEED)
        rows = np.sort(random.choice(len(event), MOST_ROWS, replace=False))
        return X.iloc[rows], event[rows], when[rows]
    return X, event, when


def run_set(data: Arrays, parameters: dict[str, Any]) -> dict[str, Any]:
    """Shares on all rows and on every fold's training rows; concordance on the rows held out."""
    X, event, when = data

    def fitted(rows: np.ndarray) -> SoftSurvivalTree:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", BristleconeWarning)
            model = SoftSurvivalTree(**{"random_state": SEED, **parameters})
            return model.fit(X.iloc[rows], (event[rows], when[rows]))

    scores, least, seconds = [], [], []
    splitter = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)
    for rows, held in splitter.split(when, event):
        begun = time.process_time()
        model = fitted(rows)
        seconds.append(time.process_time() - begun)
        least.append(float(model.leaf_shares_.min()))
        scores.append(model.score(completed(X.iloc[rows], X.iloc[held]), (event[held], when[held])))
    whole = fitted(np.arange(len(event)))
    return {
        "rows": len(event),
        "concordance": statistics.fmean(scores),
        "shares": np.sort(whole.leaf_shares_).tolist(),
        "memberships": np.sort(whole.predict_proba_leaf(X).mean(axis=0)).tolist(),
        "least_share_of_folds": least,
        "seconds": statistics.fmean(seconds),
    }


def report(record: dict[str, Any]) -> str:
    """One row per set, and the count of sets whose leaves all hold 5 %."""
    results = record["results"]
    lines = [f"# Leaves of soft trees, {record['date']}", "", _about(record), ""]
    lines += [f"Parameters other than the defaults: {record['parameters'] or 'none'}.", ""]
    lines += ["| set | rows | shares, % | memberships, % | least, of folds, % | C | s |"]
    lines += ["|---" * 7 + "|"]
    for name, found in results.items():
        shares, soft = (
            " / ".join(f"{100 * share:.1f}" for share in found[kind])
            for kind in ("shares", "memberships")
        )
        lines.append(
            f"| {name} | {found['rows']} | {shares} | {soft} "
            f"| {100 * min(found['least_share_of_folds']):.1f} "
            f"| {found['concordance']:.4f} | {found['seconds']:.2f} |"
        )
    for title, names in (("chosen on", CHOSEN_ON), ("checked on", CHECKED_ON)):
        done = [results[name] for name in names if name in results]
        if done:
            hold = sum(found["shares"][0] >= HELD for found in done)
            mean = statistics.fmean(found["concordance"] for found in done)
            lines += ["", f"Sets {title}: {hold} of {len(done)} hold 5 %; mean C {mean:.4f}."]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Run what the record lacks."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soft_leaves", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/records"))
    parser.add_argument("--name", default="soft-leaves", help="of the record")
    parser.add_argument("--sets", nargs="+", metavar="NAME", default=[*CHOSEN_ON, *CHECKED_ON])
    parser.add_argument("--set", nargs="+", metavar="PARAMETER=JSON", default=[])
    chosen = parser.parse_args(arguments)
    parameters = {
        key: json.loads(value) for key, value in (pair.split("=", 1) for pair in chosen.set)
    }
    path = chosen.out / f"{date.today().isoformat()}-{chosen.name}.json"
    record = {**_opened(path, "soft-leaves"), "parameters": parameters}
    with threadpool_limits(limits=1):
        for name in chosen.sets:
            if name not in record["results"]:
                record["results"][name] = run_set(drawn(name), parameters)
                _write(path, record, report(record))
                print(name, record["results"][name]["concordance"], file=sys.stderr, flush=True)
    print(report(record))
    return 0


if __name__ == "__main__":
    sys.exit(main())
