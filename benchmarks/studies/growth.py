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
    "The features are independent fair coins, three of which affect the outcome. Almost all rows "
    "are distinct and noise features allow little pruning, so fits to real data of the same size "
    "are usually faster. The objectives are those of the papers, without the defaults' shrinkage.",
    "Seconds are those of `fit` on a boolean matrix, the median of up to three fits in a process "
    "of its own. Megabytes are the growth of the largest memory of the process during the fit: 0 "
    "if the data and the forecast took more before.",
    "A fit that reaches its limit of 20 seconds is shown as “> 20”, as is pystreed's process.",
    "The exponent is the slope of log seconds over log size through the last three sizes that take "
    "at least 0.02 seconds; below, the fixed costs of a fit dominate.",
    "The forecast is that of `estimate_cost`. It assumes that nothing can be pruned.",
]
KINDS = ("likelihood", "brier", "accuracy")
LIMIT = 20.0
# By experiment: what x is, the other sizes, and the sizes.
SIZES: dict[str, tuple[str, str, tuple[int, ...]]] = {
    "rows": ("rows", "20 features, depth 4", (1000, 10_000, 100_000, 10**6, 10**7)),
    "features": ("features", "2,000 rows, depth 3", (10, 20, 50, 100, 200, 400)),
    "depth": ("depth", "2,000 rows, 20 features", (1, 2, 3, 4, 5, 6, 7)),
    "leaves": ("leaves at most", "2,000 rows, 20 features, depth 5", (2, 4, 8, 16, 32)),
    "times": (
        "distinct times",
        "10,000 rows, 20 features, depth 3",
        (10, 100, 1000, 10_000),
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
        before = peak_memory()
        seconds: list[float] = []
        while len(seconds) < 3 and sum(seconds) < 2:
            begun = time.perf_counter()
            tree.fit(X, y)
            seconds.append(time.perf_counter() - begun)
        after = peak_memory()
        forecast = tree.estimate_cost(X, y)
    found = {"forecast": forecast.seconds, "forecast megabytes": forecast.memory / 1e6}
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
        "times": {"rows": 10_000, "features": 20, "depth": 3},
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


def section(rows: pd.DataFrame, folder: Path) -> tuple[str, list[str]]:
    """Pictures and table of what grows."""
    experiment = rows["experiment"].iloc[0]
    title, others, _ = SIZES[experiment]
    lines = [f"{others[0].upper()}{others[1:]}.", ""]
    shown = rows[rows["metric"].isin(["seconds", "megabytes"]) & (rows["value"] > 0)]
    log = "y" if experiment == "depth" else "xy"
    path = folder / f"growth-{experiment}.png"
    lines += pages.curves(path, shown, "x", (title, ""), panels="metric", log=log)
    methods = list(dict.fromkeys(rows["method"]))
    lines += ["Seconds of a fit:", *pages.times(rows, ["x"], methods, [title])]
    lines += ["Seconds of the forecast:"]
    lines += pages.grid(pages.wide(rows, "forecast", ["x"]).rename_axis(title))
    lines += ["Megabytes:", *pages.grid(pages.wide(rows, "megabytes", ["x"]).rename_axis(title), 1)]
    texts, headline = [], ""
    seconds = pages.wide(rows, "seconds", ["x"])
    for method, series in seconds.items():
        slope = exponent(series.dropna(), exponential=experiment == "depth")
        if np.isnan(slope) or slope <= 0:
            continue
        words = f"to the power of {slope:.1f}"
        if experiment == "depth":
            words = f"by a factor of {np.exp(slope):.0f} per level"
        texts.append(f"{method} {words}")
        if method == "likelihood" and experiment in ("rows", "features", "depth"):
            headline = f"Likelihood: seconds grow with {title} {words}."
    if texts:
        lines += [f"Seconds grow with {title}: {', '.join(texts)}.", ""]
    return headline, lines


def exponent(seconds: pd.Series, *, exponential: bool) -> float:
    """Slope through the last three points that are not overhead; NaN of fewer than two."""
    counted = seconds[seconds >= 0.02].iloc[-3:]
    if len(counted) < 2:
        return float("nan")
    sizes = counted.index.to_numpy(float)
    return float(np.polyfit(sizes if exponential else np.log(sizes), np.log(counted), 1)[0])


def forecast_section(rows: pd.DataFrame, folder: Path) -> tuple[str, list[str]]:
    """How near ``estimate_cost`` comes."""
    by = ["experiment", "method", "x"]
    frame = rows.pivot_table(index=by, columns="metric", values="value", sort=False)
    own = frame.dropna(subset=["forecast", "seconds"])
    own = own[own["seconds"] >= 0.05]
    if own.empty:
        return "", ["No fit took 0.05 seconds.", ""]
    ratio = own["forecast"] / own["seconds"]
    far = ratio[(ratio > 3) | (ratio < 1 / 3)]
    agreement = (
        f"The forecast of `estimate_cost` is within a factor of three for {len(ratio) - len(far)} "
        f"of {len(ratio)} fits of at least 0.05 seconds."
    )
    lines = [agreement, "", "Forecast divided by measured seconds:"]
    groups = ratio.groupby(level=["experiment", "method"], sort=False)
    lines += pages.grid(groups.agg(["size", "min", "median", "max"]))
    texts = [f"{e} {x:,.0f}, {m}: {pages.number(r, 2)}" for (e, m, x), r in far.items()]
    lines += [f"Outside the factor: {'; '.join(texts) or 'none'}.", ""]
    if "timeout" in frame:
        limit = frame.dropna(subset=["forecast", "timeout"])
        texts = [f"{e} {x:,.0f}, {m}: {pages.number(f, 2)} s"
                 for (e, m, x), f in limit["forecast"].items()]  # fmt: skip
        lines += [f"Forecasts of the fits that reached 20 seconds: {'; '.join(texts) or 'none'}."]
    return agreement, [*lines, ""]


def threads_section(rows: pd.DataFrame, folder: Path) -> tuple[str, list[str]]:
    """Ratios of the newest records of two threads; the machine of this page need not have two."""
    lines = ["Searches of at least 0.5 seconds on one thread, from the records of"]
    lines += ["`python -m benchmarks.run threads` and `threads-deep` (two cores)."]
    body = []
    for study in ("threads", "threads-deep"):
        record = json.loads(
            sorted(pages.RECORDS.glob(f"????-??-??-{study}.json"))[-1].read_text("utf-8")
        )
        runs = {(r["problem"], r["max_depth"], r["library"]): r["seconds"] for r in record["runs"]}
        for (problem, depth, library), seconds in runs.items():
            two = runs.get((problem, depth, f"{library}:2-threads"))
            if seconds and two and statistics.median(seconds) >= 0.5:
                one, both = statistics.median(seconds), statistics.median(two)
                body.append([problem, str(depth), one, both, one / both])
    return "", lines + pages.table(["set", "depth", "one thread", "two threads", "ratio"], body)


SECTIONS = {experiment: (of[0].capitalize(), section) for experiment, of in SIZES.items()}
SECTIONS["rows depth"] = ("Threads", threads_section)
SECTIONS[" ".join(SIZES)] = ("Agreement with `estimate_cost`", forecast_section)
