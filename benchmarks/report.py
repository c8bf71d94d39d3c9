"""Turn a record into a table, a summary and a list of failed checks.

`python -m benchmarks.report RECORD.json` prints the report of a committed record again.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

# Below these a ratio says more about the clock and the interpreter than about the search.
SLOW = 0.100  # seconds of the peer: problems of the geometric mean
NOTICEABLE = 0.020  # seconds of either: problems of the smallest ratio
EQUAL = 1e-9  # of max(1, loss): what `optimal` promises

Record = dict[str, Any]
Run = dict[str, Any]


def median(run: Run) -> float:
    """Return the median seconds of a run's fits."""
    return statistics.median(run["seconds"])


def setting(run: Run) -> str:
    """Return depth and, if there is one, penalty of a run."""
    depth = "any" if run["max_depth"] is None else str(run["max_depth"])
    penalty = run.get("leaf_penalty")
    return f"{depth}, λ {penalty:g}" if penalty else depth


def comparisons(record: Record) -> list[tuple[Run, Run]]:
    """Return (ours, peer) for each problem and setting that both finished; ours is listed first."""
    cells: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in record["runs"]:
        cells[run["problem"], setting(run)].append(run)
    pairs = []
    for ours, *peers in cells.values():
        pairs += [(ours, peer) for peer in peers if ours["seconds"] and peer["seconds"]]
    return pairs


def failures(record: Record) -> list[str]:
    """Return what a reader must not overlook; empty when every check holds.

    Nothing may fail, and our runs must finish; a peer may time out. In an exact study our tree
    must be claimed optimal, with the objective that the rows give and a lower bound equal to it,
    and be no worse than any other library's. With a time limit it may be stopped, with a lower
    bound that is no higher.
    """
    found = []
    for run in record["runs"]:
        where = f"{run['problem']} depth {setting(run)} {run['library']}"
        ours = run["library"].startswith("bristlecone")
        if run["status"] == "failed" or (ours and not run["seconds"]):
            found.append(f"{where}: {run['status']} {run.get('message', '')}".rstrip())
        elif record["exact"] and ours:
            limited = record.get("time_limit") is not None
            found += [f"{where}: {text}" for text in _certificate(run, limited)]
    if record["exact"]:
        for ours, peer in comparisons(record):
            if ours["loss"] - peer["loss"] > _tolerance(peer):
                found.append(
                    f"{ours['problem']} depth {setting(ours)}: {ours['library']} has loss "
                    f"{ours['loss']}, {peer['library']} {peer['loss']}"
                )
    return found


def _certificate(run: Run, limited: bool) -> list[str]:
    loss, reported, bound = run["loss"], run["reported_objective"], run["lower_bound"]
    stopped = limited and run["status"] == "time_limit"
    excess = bound - loss if stopped else abs(bound - loss)
    checks = {
        f"status {run['status']}": run["status"] == "optimal" or stopped,
        f"reports {reported}, the rows say {loss}": abs(reported - loss) <= _tolerance(run),
        f"lower bound {bound}, loss {loss}": excess <= _tolerance(run),
    }
    return [text for text, holds in checks.items() if not holds]


def _tolerance(run: Run) -> float:
    """Return the promised accuracy, doubled because both sides of a comparison may use it up."""
    return 2 * EQUAL * max(1.0, abs(run["loss"]))


def _excess(ours: Run, peer: Run) -> float:
    """Return how much worse our loss is, relative to the peer's; negative when better."""
    return (ours["loss"] - peer["loss"]) / (abs(peer["loss"]) or 1.0)


def summary(record: Record) -> list[str]:
    """Return one row per setting and peer: geometric mean and smallest speed-up, largest excess.

    With penalties, which make many settings, also one row for all of them together.
    """
    slow_from, noticeable = _thresholds(record)
    groups: dict[tuple[str, str, str], list[tuple[Run, Run]]] = defaultdict(list)
    for ours, peer in comparisons(record):
        names = ours["library"], peer["library"]
        groups[(setting(ours), *names)].append((ours, peer))
        if ours.get("leaf_penalty"):
            groups[("together", *names)].append((ours, peer))
    lines = []
    for (depth, ours_name, peer_name), pairs in sorted(groups.items()):
        ratios = [(median(peer) / median(ours), ours, peer) for ours, peer in pairs]
        slow = [ratio for ratio, _, peer in ratios if median(peer) > slow_from]
        seen = [
            (ratio, ours["problem"])
            for ratio, ours, peer in ratios
            if max(median(ours), median(peer)) > noticeable
        ]
        mean = f"{math.exp(statistics.fmean(map(math.log, slow))):.1f}" if slow else "–"
        worst = "{:.1f} ({})".format(*min(seen)) if seen else "–"
        excess = max(_excess(ours, peer) for ours, peer in pairs)
        lines.append(
            f"| {depth} | {ours_name} : {peer_name} | {len(pairs)} | {mean} ({len(slow)}) "
            f"| {worst} | {excess:+.1e} |"
        )
    return lines


def _thresholds(record: Record) -> tuple[float, float]:
    """Return the seconds from which a problem counts for the mean, and for the smallest ratio."""
    return record.get("slow", SLOW), record.get("noticeable", NOTICEABLE)


def markdown(record: Record) -> str:
    """Return the report: machine, checks, summary and every run."""
    machine = record["machine"]
    slow_from, noticeable = _thresholds(record)
    penalised = any(run.get("leaf_penalty") for run in record["runs"])
    lines = [
        f"# {record['study']}, {record['date']}",
        "",
        f"{machine['cpu']} (family, model, stepping {machine['cpu_family_model_stepping']}), "
        f"{machine['cores']} cores, {machine['memory_gb']} GB, {', '.join(machine['isa'])}; "
        f"kernels {', '.join(machine['kernels'])}; {machine['system']}; "
        f"Python {machine['python']}, {_versions(record)}; revision {machine['revision']}.",
        "",
        f"Seconds: median wall time of `fit` alone, the process held to one CPU. Loss: "
        f"{record['objective']} per row{' plus λ per leaf' if penalised else ''}, scored from the "
        "rows by `benchmarks/objectives.py` for "
        f"every library alike. Within 1 %: share of our time until the tree was that near. "
        "Memory: peak of the whole process, in parentheses before the fit.",
        "",
    ]
    found = failures(record)
    lines += ["## Checks", ""]
    lines += [f"* {text}" for text in found] if found else ["All hold."]
    if comparisons(record):
        lines += [
            "",
            "## Speed-up",
            "",
            f"Geometric mean over the problems (their number in parentheses) where the second "
            f"library needs more than {slow_from * 1e3:.0f} ms; smallest over those where either "
            f"needs more than {noticeable * 1e3:.0f} ms. Largest excess: (first − second) / second "
            "of the losses.",
            "",
            "| depth | libraries | problems | geometric mean | smallest | largest excess |",
            "|---|---|---|---|---|---|",
            *summary(record),
        ]
    lines += [
        "",
        "## Runs",
        "",
        "| problem | rows (distinct) | features | depth | library | seconds | fits | loss | status "
        "| leaves | nodes | within 1 % after | MB |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
        *(_row(run) for run in record["runs"]),
    ]
    return "\n".join(lines) + "\n"


def _versions(record: Record) -> str:
    """Return the version of every package that a run or the harness used."""
    used = {run["library"].partition(":")[0]: run.get("version") for run in record["runs"]}
    peers = {name: number for name, number in used.items() if not name.startswith("bristlecone")}
    versions = {**record["machine"]["packages"], **peers}
    return ", ".join(f"{name} {number}" for name, number in versions.items())


def _row(run: Run) -> str:
    start = (
        f"| {run['problem']} | {run['rows']} ({run['distinct_rows']}) | {run['features']} "
        f"| {setting(run)} | {run['library']} "
    )
    if not run["seconds"]:
        return start + f"| – | 0 | – | {run['status']} | – | – | – | – |"
    status = run["status"]
    if status == "time_limit":
        status += f", gap {(run['loss'] - run['lower_bound']) / run['loss']:.1%}"
    nodes = "–" if run["nodes"] is None else run["nodes"]
    near = run.get("near_after")
    near = "–" if near is None else f"{near:.0%}"
    memory = "–"
    if run["memory_peak_mb"] is not None:
        memory = f"{run['memory_peak_mb']:.0f} ({run['memory_before_mb']:.0f})"
    return start + (
        f"| {median(run):.4g} | {len(run['seconds'])} | {run['loss']:.12f} | {status} "
        f"| {run['leaves']} | {nodes} | {near} | {memory} |"
    )


if __name__ == "__main__":
    print(markdown(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
