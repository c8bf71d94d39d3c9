"""The study of soft survival trees (Consolo, Amaldi, Carrizosa 2026) and how the fit scales.

    python -m benchmarks.soft study --data ../shared/data/raw --out benchmarks/records
    python -m benchmarks.soft scaling --out benchmarks/records

Sets, settings and the paper's published values are in soft.json. The study writes its record
after every cell (set, leaf model, depth, initialisation) and goes on where it stopped when it is
started again on the same day with the same revision of the settings; `--seconds` limits a sitting.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
import warnings
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from benchmarks.machine import machine
from bristlecone import SoftSurvivalTree
from bristlecone._data.frame import correctly_rounded
from bristlecone.curves import censoring_survival
from bristlecone.exceptions import BristleconeWarning
from bristlecone.metrics import (
    concordance_index_td,
    concordance_index_td_ipcw,
    cumulative_dynamic_auc,
    integrated_brier_score,
)

CATALOGUE = Path(__file__).with_name("soft.json")
METRICS = ("harrell", "uno", "auc", "ibs")
TITLES = {"harrell": "C (Harrell)", "uno": "C (Uno)", "auc": "CD-AUC", "ibs": "IBS"}
# Times of the integrals over time; concordance uses every event time.
AUC_TIMES, BRIER_TIMES = 30, 100
# "Within": what the issue asks of the log-logistic tree of depth two.
NEAR = 0.02

Arrays = tuple[pd.DataFrame, np.ndarray, np.ndarray]


def load(definition: dict[str, Any], folder: Path) -> Arrays:
    """Features, event and time of a set."""
    if definition["source"] == "survset":
        from SurvSet.data import SurvLoader

        table = SurvLoader().load_dataset(definition["name"])["df"]
        features = table.drop(columns=["pid", "event", "time", "time2"], errors="ignore")
        X = pd.DataFrame({name: _plain(features[name]) for name in features.columns})
        return X, table["event"].to_numpy() == 1, table["time"].to_numpy(float)
    separator = definition.get("separator", ",")
    frame = pd.read_csv(folder / definition["file"], sep=separator, **correctly_rounded())
    if definition.get("distinct_rows"):
        frame = frame.drop_duplicates(ignore_index=True)
    event, when = definition["event"], definition["time"]
    X = frame.drop(columns=[event, when])
    return X, frame[event].to_numpy() == 1, frame[when].to_numpy(float)


def _plain(series: Any) -> np.ndarray:
    if series.dtype.kind in "biuf" if hasattr(series.dtype, "kind") else False:
        return series.to_numpy()
    return np.array([None if value != value else str(value) for value in series], dtype=object)


def completed(train: pd.DataFrame, test: pd.DataFrame) -> pd.DataFrame:
    """Test rows with a value missing in no training row filled in, as the paper does.

    The mean of the training rows for numbers, the most frequent level for categories.
    """
    fill = {
        name: known.astype(str).mode()[0] if known.dtype.kind == "O" else known.mean()
        for name, known in train.items()
        if test[name].isna().any() and not known.isna().any()
    }
    return test.fillna(fill)


def scores(model: SoftSurvivalTree, X: pd.DataFrame, train: tuple, test: tuple) -> dict[str, float]:
    """The four metrics of the paper on test rows."""
    event, when = test
    happened = np.unique(when[event])
    survival = model.predict_survival_function(X, times=happened)
    result = {"harrell": concordance_index_td(event, when, survival, happened).cindex}
    censoring = censoring_survival(train)
    positive = censoring.x[censoring.y > 0]
    tau = float(positive[-1]) if positive.size else float(when.max())
    result["uno"] = concordance_index_td_ipcw(train, test, survival, happened, tau).cindex
    inner = happened[(happened < when.max()) & (happened <= tau)]
    at = np.unique(inner[np.linspace(0, inner.size - 1, AUC_TIMES).round().astype(int)])
    risk = 1 - survival[:, np.searchsorted(happened, at)]
    result["auc"] = cumulative_dynamic_auc(train, test, risk, at, tied_tol=0.0)[1]
    last = min(float(when.max()), float(train[1].max()))
    grid = np.linspace(0.0, last, BRIER_TIMES + 1)[1:]
    values = model.predict_survival_function(X, times=grid)
    result["ibs"] = integrated_brier_score(
        train, test, values, grid, method="step", limits=(0.0, last)
    )
    return {name: float(value) for name, value in result.items()}


def run_cell(data: Arrays, cell: dict[str, Any], folds: int, seed: int) -> dict[str, Any]:
    """Every fold and start of a cell: metrics of each, and of the start of least objective."""
    X, event, when = data
    splitter = KFold(folds, shuffle=True, random_state=seed)
    per_start: list[dict[str, float]] = []
    selected: list[dict[str, float]] = []
    seconds: list[float] = []
    settled = 0
    for fold, (rows, held) in enumerate(splitter.split(when)):
        train, test = (event[rows], when[rows]), (event[held], when[held])
        X_train = X.iloc[rows]
        X_test = completed(X_train, X.iloc[held])
        found = []
        for start in range(cell["starts"]):
            model = SoftSurvivalTree(
                leaf=cell["leaf"],
                depth=cell["depth"],
                solver_options={"init": cell.get("init", "kmeans")},
                n_restarts=1,
                max_categories=None,
                random_state=1000 * fold + start,
            )
            begun = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", BristleconeWarning)
                model.fit(X_train, train)
            seconds.append(time.process_time() - begun)
            settled += model.converged_
            found.append((model.objective_value_, scores(model, X_test, train, test)))
        per_start += [score for _, score in found]
        selected.append(min(found, key=lambda pair: pair[0])[1])
    return {
        "mean": {name: statistics.fmean(s[name] for s in per_start) for name in METRICS},
        "selected": {name: statistics.fmean(s[name] for s in selected) for name in METRICS},
        "spread": {name: statistics.pstdev(s[name] for s in per_start) for name in METRICS},
        "starts": cell["starts"],
        "converged": settled / len(per_start),
        "seconds_per_start": statistics.fmean(seconds),
    }


def key(name: str, cell: dict[str, Any]) -> str:
    """Name of a result in the record."""
    init = cell.get("init", "kmeans")
    return f"{name} {cell['leaf']}{' (random)' if init == 'random' else ''} depth {cell['depth']}"


def study(chosen: argparse.Namespace) -> int:
    """Run what the record lacks, cell after cell, and write it each time."""
    catalogue = json.loads(CATALOGUE.read_text(encoding="utf-8"))
    names = chosen.sets or list(catalogue["sets"])
    path = chosen.out / f"{chosen.date or date.today().isoformat()}-soft.json"
    record = _opened(path, "soft")
    begun = time.perf_counter()
    cache: dict[str, Arrays] = {}
    for cell in catalogue["cells"][: chosen.cells]:
        if chosen.starts is not None:
            cell = {**cell, "starts": min(cell["starts"], chosen.starts)}
        for name in names:
            if key(name, cell) in record["results"]:
                continue
            if chosen.seconds is not None and time.perf_counter() - begun > chosen.seconds:
                print("out of time; start again to go on", file=sys.stderr)
                return 0
            if name not in cache:
                cache[name] = load(catalogue["sets"][name], chosen.data)
            started = time.perf_counter()
            result = run_cell(cache[name], cell, catalogue["folds"], catalogue["seed"])
            result["seconds"] = time.perf_counter() - started
            record["results"][key(name, cell)] = result
            _write(path, record, study_report(record, catalogue))
            print(
                f"{key(name, cell)}: C {result['mean']['harrell']:.3f}, {result['seconds']:.1f} s",
                file=sys.stderr,
                flush=True,
            )
    print(study_report(record, catalogue))
    return 0


def study_report(record: dict[str, Any], catalogue: dict[str, Any]) -> str:
    """Tables of ours beside the paper's, one per metric and depth, and the issue's count."""
    results, sets = record["results"], catalogue["sets"]
    lines = [f"# Soft survival trees, {record['date']}", "", _about(record), ""]
    lines += [
        f"{catalogue['folds']} folds. Each cell: mean over folds and starts (the paper's way) / "
        "mean over folds of the start of least training objective (what one `fit` with so many "
        "restarts gives) / published. All with the default penalties, the same for every set. "
        "`log-logistic` starts from clusters, the paper's Llog-init; `(random)` is its Llog.",
        "",
    ]
    lines += list(_count(results, sets))
    lines += ["", "## What differs from the paper", ""]
    lines += [f"* {note}" for note in catalogue["notes"]]
    columns = list(dict.fromkeys(key("", cell).strip() for cell in catalogue["cells"]))
    for metric in METRICS:
        for depth in (2, 1):
            shown = [c for c in columns if c.endswith(f"depth {depth}")]
            heads = [c.removesuffix(f" depth {depth}") for c in shown]
            lines += ["", f"## {TITLES[metric]}, depth {depth}", ""]
            lines += ["| set | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
            for name, definition in sets.items():
                cells = []
                for head, column in zip(heads, shown, strict=True):
                    found = results.get(f"{name} {column}")
                    paper = definition["published"][str(depth)][head][metric]
                    ours = "– / –"
                    if found:
                        ours = f"{found['mean'][metric]:.3f} / {found['selected'][metric]:.3f}"
                    cells.append(f"{ours} / {paper:.3f}")
                lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "## Seconds per start (one core), and share of starts that ended at a minimum",
        "",
    ]
    lines += ["| set | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name in sets:
        found = [results.get(f"{name} {column}") for column in columns]
        texts = [
            "–" if f is None else f"{f['seconds_per_start']:.2f} ({f['converged']:.0%})"
            for f in found
        ]
        lines.append(f"| {name} | " + " | ".join(texts) + " |")
    return "\n".join(lines) + "\n"


def _count(results: dict[str, Any], sets: dict[str, Any]) -> Iterator[str]:
    done = [name for name in sets if f"{name} log-logistic depth 2" in results]
    for published in ("log-logistic (random)", "log-logistic"):
        near = [
            name
            for name in done
            if results[f"{name} log-logistic depth 2"]["mean"]["harrell"]
            >= sets[name]["published"]["2"][published]["harrell"] - NEAR
        ]
        paper = "Llog" if published.endswith("(random)") else "Llog-init"
        yield (
            f"* log-logistic, depth 2: C within {NEAR} of the published {paper} or better on "
            f"{len(near)} of {len(done)} sets"
            + (f"; not on {', '.join(n for n in done if n not in near)}." if done != near else ".")
        )


def scaling(chosen: argparse.Namespace) -> int:
    """Seconds of one start for growing numbers of rows."""
    setting = json.loads(CATALOGUE.read_text(encoding="utf-8"))["scaling"]
    record = _opened(chosen.out / "none", "soft-scaling")
    for n in chosen.rows or setting["rows"]:
        random = np.random.default_rng(setting["seed"])
        X = random.normal(size=(n, setting["features"]))
        scale = np.exp(np.where(X[:, 0] > 0, 0.8 * X[:, 1], -0.5 - 0.4 * X[:, 2]))
        lived = scale * np.exp(0.5 * random.logistic(size=n))
        followed = random.exponential(3.0, size=n)
        y = lived <= followed, np.minimum(lived, followed)
        model = SoftSurvivalTree(
            leaf=setting["leaf"], depth=setting["depth"], n_restarts=1, random_state=0
        )
        taken = []
        for _ in range(3 if n <= 10_000 else 1):
            begun = time.process_time()
            model.fit(X, y)
            taken.append(time.process_time() - begun)
        record["results"][str(n)] = {
            "seconds": statistics.median(taken),
            "steps": len(model.trace_),
            "converged": bool(model.converged_),
            "score": model.score(X, y),
        }
        print(n, record["results"][str(n)], file=sys.stderr, flush=True)
    path = chosen.out / f"{chosen.date or record['date']}-soft-scaling.json"
    _write(path, record, scaling_report(record, setting))
    print(scaling_report(record, setting))
    return 0


def scaling_report(record: dict[str, Any], setting: dict[str, Any]) -> str:
    """Seconds by rows."""
    lines = [f"# Soft trees: seconds by rows, {record['date']}", "", _about(record), ""]
    lines += [
        f"One start of `nodec`, {setting['leaf']}, depth {setting['depth']}, "
        f"{setting['features']} normal features, simulated; processor seconds of `fit`, one core.",
        "",
        "| rows | seconds | microseconds per row | accepted steps | minimum | score |",
        "|---|---|---|---|---|---|",
    ]
    for rows, found in record["results"].items():
        lines.append(
            f"| {rows} | {found['seconds']:.3f} | {found['seconds'] / int(rows) * 1e6:.0f} "
            f"| {found['steps']} | {'yes' if found['converged'] else 'no'} | {found['score']:.3f} |"
        )
    return "\n".join(lines) + "\n"


def _opened(path: Path, name: str) -> dict[str, Any]:
    if path.exists():
        return json.loads(path.read_text(encoding="utf-8"))
    return {
        "study": name,
        "date": date.today().isoformat(),
        "machine": machine(),
        "defaults": {
            key: value
            for key, value in SoftSurvivalTree().get_params().items()
            if isinstance(value, (int, float, str))
        },
        "results": {},
    }


def _about(record: dict[str, Any]) -> str:
    found = record["machine"]
    return (
        f"{found['cpu']}, {found['cores']} cores, {found['memory_gb']} GB; {found['system']}; "
        f"Python {found['python']}, {', '.join(f'{k} {v}' for k, v in found['packages'].items())}; "
        f"revision {found['revision']}."
    )


def _write(path: Path, record: dict[str, Any], report: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    path.with_suffix(".md").write_text(report, encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    """Run a study; see the module."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.soft", description=__doc__)
    parser.add_argument("study", choices=("study", "scaling"))
    parser.add_argument("--data", type=Path, default=Path("../shared/data/raw"))
    parser.add_argument("--out", type=Path, default=Path("benchmarks/records"))
    parser.add_argument("--date", help="of the record to go on with (default: today)")
    parser.add_argument("--sets", nargs="+", metavar="NAME")
    parser.add_argument("--cells", type=int, metavar="K", help="only the first cells of soft.json")
    parser.add_argument("--starts", type=int, metavar="N", help="at most so many starts per cell")
    parser.add_argument("--seconds", type=float, help="start no further cell after so long")
    parser.add_argument("--rows", nargs="+", type=int, metavar="N", help="of the scaling study")
    chosen = parser.parse_args(arguments)
    # One thread, as in the other studies.
    with threadpool_limits(limits=1):
        return study(chosen) if chosen.study == "study" else scaling(chosen)


if __name__ == "__main__":
    sys.exit(main())
