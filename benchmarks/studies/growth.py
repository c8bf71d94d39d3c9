"""How seconds and memory grow with rows, features, depth, leaves, distinct times and threads."""

from __future__ import annotations

import json
import multiprocessing
import statistics
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bristlecone
from benchmarks.adapters.bristlecone_estimator import PAPERS
from benchmarks.label_data import labels
from benchmarks.problems import Problem, bernoulli
from benchmarks.studies import page as pages
from benchmarks.studies.cells import Cells, Key, Scores, installed, timed
from benchmarks.worker import peak_memory
from bristlecone.exceptions import BristleconeWarning

TITLE = "How cost grows"
SOURCE = "What to expect from a fit: seconds and memory by the size of the problem, on one thread."
DIFFERENCES = [
    "The features are independent fair coins, three of which act on the outcome. Hardly any row "
    "equals another one, and noise features prune badly: real data of the same size is usually "
    "faster. The objectives are those of the papers, without the defaults' shrinkage.",
    "Seconds are those of `fit` on a boolean matrix, the median of up to three fits in a process "
    "of its own. Megabytes are what the process grew by during the fit, above the data.",
    "A fit that reaches its limit of 60 seconds is shown as “> 60”, as is pystreed's process.",
    "The exponent is the slope of log seconds over log size through the last three sizes that take "
    "at least 0.02 seconds; below, the fixed costs of a fit dominate.",
    "The forecast is that of `estimate_cost`. It assumes that nothing can be pruned.",
]
KINDS = ("likelihood", "brier", "accuracy")
LIMIT = 60.0
RECORDS = Path(__file__).parents[1] / "records"
# By experiment: what x is, the other sizes, and the sizes.
SIZES: dict[str, tuple[str, str, tuple[int, ...]]] = {
    "rows": ("rows", "20 features, depth 4", (1000, 10_000, 100_000, 10**6, 10**7)),
    "features": ("features", "2,000 rows, depth 3", (10, 20, 50, 100, 200, 400)),
    "depth": ("depth", "2,000 rows, 20 features", (1, 2, 3, 4, 5, 6, 7)),
    "leaves": ("leaves at most", "2,000 rows, 20 features, depth 5", (2, 4, 8, 16, 32)),
    "times": (
        "distinct times",
        "100,000 rows, 20 features, depth 3",
        (10, 100, 1000, 10_000, 100_000),
    ),
}
# Ten million rows have likelihood and accuracy only: the Brier score reaches the limit before.
TEN_MILLION = 10**7


def data(kind: str, rows: int, features: int, times: int | None) -> tuple[np.ndarray, Any]:
    """Features as booleans, and the outcome; ``times`` distinct times at most."""
    if kind == "accuracy":
        X, target = labels(rows, features, 2, 0)
        return X.astype(bool), target["y"]
    X, event, when = bernoulli(rows, features, 0)
    if times is not None:
        # Ranks from 1, in groups of equal size.
        rank = np.argsort(np.argsort(when))
        when = 1.0 + rank * times // rows
    return X.astype(bool), (event, when)


def estimator(kind: str, depth: int, leaves: int | None) -> Any:
    """The tree of a kind, on one thread."""
    given: dict[str, Any] = {"max_depth": depth, "max_leaf_nodes": leaves, "n_jobs": 1}
    given["time_limit"] = LIMIT
    if kind == "accuracy":
        return bristlecone.OptimalTreeClassifier(min_samples_leaf=1, **given)
    return bristlecone.OptimalSurvivalTree(objective=kind, **PAPERS, **given)


def fit(kind: str, sizes: dict[str, Any]) -> Scores:
    """Forecast, seconds and memory of a fit, in this process."""
    X, y = data(kind, sizes["rows"], sizes["features"], sizes.get("times"))
    tree = estimator(kind, sizes["depth"], sizes.get("leaves"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BristleconeWarning)
        forecast = tree.estimate_cost(X, y)
        before = peak_memory()
        seconds: list[float] = []
        while len(seconds) < 3 and sum(seconds) < 2:
            begun = time.perf_counter()
            tree.fit(X, y)
            seconds.append(time.perf_counter() - begun)
    found = {"forecast": forecast.seconds, "forecast megabytes": forecast.memory / 1e6}
    after = peak_memory()
    if before is not None and after is not None:
        found["megabytes"] = after - before
    if tree.status_ == "optimal":
        return found | {"seconds": statistics.median(seconds), "leaves": tree.n_leaves_}
    return found | {"timeout": LIMIT}


def fresh(kind: str, sizes: dict[str, Any]) -> Scores:
    """The same in a process of its own, whose peak memory is that of this fit."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(fit, kind, sizes).result()


def peer(sizes: dict[str, Any]) -> Scores:
    """pystreed on the same matrix, by likelihood."""
    X, event, when = bernoulli(sizes["rows"], sizes["features"], 0)
    problem = Problem("growth", X, {"event": event, "time": when})
    scores = timed(problem, "pystreed", "likelihood", sizes["depth"], timeout=LIMIT)
    return {k: v for k, v in scores.items() if k not in ("loss", "proven")}


def cells(quick: bool) -> Cells:
    """All cells; ``x`` is the size that grows."""
    found: Cells = {}
    common = {
        "rows": {"features": 20, "depth": 4},
        "features": {"rows": 2000, "depth": 3},
        "depth": {"rows": 2000, "features": 20},
        "leaves": {"rows": 2000, "features": 20, "depth": 5},
        "times": {"rows": 100_000, "features": 20, "depth": 3},
    }
    for experiment, (_, _, grid) in SIZES.items():
        for x in grid[:2] if quick else grid:
            sizes = common[experiment] | {experiment: x}
            if quick:
                sizes |= {"rows": min(sizes["rows"], 200), "features": min(sizes["features"], 12)}
            for kind in KINDS:
                if (kind == "accuracy" and experiment == "times") or (
                    kind == "brier" and x == TEN_MILLION
                ):
                    continue
                key = Key(experiment, "fair coins", kind, sizes["depth"], x)
                found[key] = partial(fit if quick else fresh, kind, sizes)
            other = experiment in ("rows", "features", "depth") and x != TEN_MILLION
            if installed(["pystreed"]) and other and not (quick and experiment != "rows"):
                key = Key(experiment, "fair coins", "pystreed", sizes["depth"], x)
                found[key] = partial(peer, sizes)
    return found


def exponent(sizes: np.ndarray, seconds: np.ndarray) -> float:
    """Slope through the last three points that are not overhead; NaN of fewer than two."""
    counted = seconds >= 0.02
    sizes, seconds = sizes[counted][-3:], seconds[counted][-3:]
    if len(sizes) < 2:
        return float("nan")
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def page(rows: pd.DataFrame, folder: Path) -> tuple[str, list[str]]:
    """Headline and sections."""
    lines: list[str] = []
    exponents: dict[tuple[str, str], float] = {}
    wide = rows.pivot_table(
        index=["experiment", "x", "method"], columns="metric", values="value"
    ).reindex(columns=["seconds", "timeout", "megabytes", "forecast", "forecast megabytes"])
    for experiment, (title, others, _) in SIZES.items():
        if experiment not in wide.index.get_level_values(0):
            continue
        own = wide.loc[experiment]
        methods = [m for m in (*KINDS, "pystreed") if m in own.index.get_level_values(1)]
        lines += [f"## {title.capitalize()}", "", f"{others[0].upper()}{others[1:]}.", ""]
        lines += [f"![Seconds and megabytes by {title}](growth-{experiment}.png)", ""]

        def draw(axes: Any, own: Any = own, methods: Any = methods, title: str = title) -> None:
            for ax, metric in zip(axes, ("seconds", "megabytes"), strict=True):
                shown = own[metric].rename("value").reset_index()
                pages.lines_by_method(ax, shown.dropna(), "x", methods)
                log = "linear" if title == "depth" else "log"
                ax.set(xscale=log, yscale="log", xlabel=title, ylabel=metric)

        pages.picture(folder / f"growth-{experiment}.png", 2, draw, 3.0)
        body = []
        for x in sorted(set(own.index.get_level_values(0))):
            row: list[Any] = [f"{x:,.0f}"]
            for method in methods:
                if (x, method) not in own.index:
                    row.append("–")
                    continue
                at = own.loc[x, method]
                limit = f"> {at['timeout']:g}"
                text = limit if at["timeout"] > 0 else pages.number(at["seconds"], 2)
                text += f" s, {pages.number(max(at['megabytes'], 0.0), 2)} MB"
                if not np.isnan(at["forecast"]):
                    text += f" (forecast {pages.number(at['forecast'], 2)} s)"
                row.append(text)
            body.append(row)
        lines += pages.table([title, *methods], body)
        for method in methods:
            series = own.xs(method, level="method")["seconds"].dropna()
            if experiment == "depth":
                steps = series[series >= 0.02].to_numpy()
                grown = (steps[-1] / steps[0]) ** (1 / (len(steps) - 1)) if len(steps) > 1 else None
                if grown is not None:
                    lines += [f"* {method}: {grown:.1f} times as long per level.", ""]
                continue
            slope = exponent(series.index.to_numpy(float), series.to_numpy())
            exponents[experiment, method] = slope
            if not np.isnan(slope):
                lines += [f"* {method}: seconds grow like {title} to the power of {slope:.2f}.", ""]
    lines += threads_section()
    section, agreement = forecast_section(wide)
    shown = [
        f"{e} to the power of {v:.1f}"
        for (e, m), v in exponents.items()
        if m == "likelihood" and e in ("rows", "features") and not np.isnan(v)
    ]
    headline = f"Likelihood: seconds grow like {' and '.join(shown)}. " if shown else ""
    return headline + agreement, lines + section


def forecast_section(wide: pd.DataFrame) -> tuple[list[str], str]:
    """How near ``estimate_cost`` comes."""
    ours = wide.dropna(subset=["forecast", "seconds"])
    ours = ours[ours["seconds"] >= 0.05]
    lines = ["## Agreement with `estimate_cost`", ""]
    if ours.empty:
        return [*lines, "No fit took 0.05 seconds.", ""], ""
    ratio = ours["forecast"] / ours["seconds"]
    within = (ratio <= 3) & (ratio >= 1 / 3)
    agreement = (
        f"The forecast of `estimate_cost` is within a factor of three for {within.sum()} of "
        f"{len(ratio)} fits of at least 0.05 seconds."
    )
    lines += [agreement, "Forecast divided by measured seconds:", ""]
    body = []
    for (experiment, method), own in ratio.groupby(level=["experiment", "method"]):
        body.append([experiment, method, str(len(own)), own.min(), own.median(), own.max()])
    lines += pages.table(["growing", "method", "fits", "least", "median", "greatest"], body)
    outside = [
        f"{e} {x:,.0f}, {m}: {pages.number(r, 2)}" for (e, x, m), r in ratio[~within].items()
    ]
    if outside:
        lines += [f"Outside the factor: {'; '.join(outside)}.", ""]
    return lines, agreement


def threads_section() -> list[str]:
    """Ratios of the newest records of two threads; the machine of this page need not have two."""
    lines = [
        "## Threads",
        "",
        "Searches of at least 0.5 seconds on one thread, from the records of",
    ]
    lines += ["`python -m benchmarks.run threads` and `threads-deep` (two cores).", ""]
    body = []
    for study in ("threads", "threads-deep"):
        record = json.loads(sorted(RECORDS.glob(f"*-{study}.json"))[-1].read_text("utf-8"))
        runs = {(r["problem"], r["max_depth"], r["library"]): r for r in record["runs"]}
        for (problem, depth, library), run in runs.items():
            two = runs.get((problem, depth, f"{library}:2-threads"))
            if two is None or not (run["seconds"] and two["seconds"]):
                continue
            one, both = (statistics.median(r["seconds"]) for r in (run, two))
            if one >= 0.5:
                body.append([problem, str(depth), one, both, one / both])
    return lines + pages.table(["set", "depth", "one thread, s", "two threads, s", "ratio"], body)
