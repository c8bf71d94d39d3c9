"""SurTree: out-of-sample scores, synthetic sets, time by depth, training loss of greedy trees."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import GridSearchCV, StratifiedKFold

from benchmarks.adapters.bristlecone_estimator import PAPERS
from benchmarks.objectives import likelihood
from benchmarks.problems import Problem, build
from benchmarks.soft import load
from benchmarks.studies import page as pages
from benchmarks.studies.cells import Cells, Key, Scores, installed, timed
from bristlecone import BinaryEncoder, GreedySurvivalTree, OptimalSurvivalTree
from bristlecone.curves import kaplan_meier
from bristlecone.exceptions import BristleconeWarning
from bristlecone.metrics import concordance_index_censored, integrated_brier_score
from bristlecone.tune import TreeSizeCV

TITLE = "SurTree: survival trees by likelihood"
SOURCE = (
    "The experiments of the paper by Huisman, van der Linden and Demirović, “Optimal Survival "
    "Trees: A Dynamic Programming Approach” (AAAI-24, arXiv 2401.04489)."
)
DIFFERENCES = [
    "The headline compares two methods over all sets, the tables all methods over the sets that "
    "every one of them completed.",
    "OST and CTree, the paper's other methods, were not run: OST needs Julia. "
    "Greedy trees take their place: `GreedySurvivalTree` and scikit-survival's `SurvivalTree`, "
    "both by the log-rank statistic, tuned on the same folds and on the same 0/1 features.",
    "The paper tunes depth and node budget of SurTree on ten inner folds, by a score that it does "
    "not name. We tune the number of leaves at the depth limit by Harrell's C, on ten inner folds.",
    "The thresholds are learned from the training rows of each fold. The paper says ten quantiles "
    "but not of which rows, and nine of its fifteen numbers of binary features differ from what "
    "its rule gives.",
    "The paper normalises the Brier score by the Kaplan–Meier curve of “the whole dataset”; here "
    "it is that of the training rows, which a prediction could have used. The censoring weights "
    "are of the test rows, and the limits are their 10% and 90% quantiles, as in the paper.",
    "The folds are ours: stratified by event, seed 0. The paper's are not published. SurvSet's "
    "version of Framingham has 4,699 rows (paper: 4,658), and of flchain 7,874 (6,524).",
    "csl and oldmort are start–stop data, and both studies ignore the start. Do not analyse them "
    "like this.",
    "Synthetic sets: the thresholds of the true tree are uniform, and a categorical split asks for "
    "one level; the paper does not describe either. Three sets per setting; "
    "the paper has five.",
    "A time limit ends the slow searches of figure 4; the paper's is ten minutes.",
    "“bristlecone, defaults” is not in the paper: it has the minimum of events in a leaf and the "
    "shrinkage that `OptimalSurvivalTree` has by default, and orders levels by risk where the "
    "paper merges all but the ten most frequent ones.",
    "The greedy trees of figure 5 keep three rows in a leaf, the default of scikit-survival.",
]

SETS = (
    *("Aids2", "Dialysis", "Framingham", "UnempDur", "acath", "csl", "dataDIVAT1", "dataDIVAT3"),
    *("divorce", "flchain", "hdfail", "nwtco", "oldmort", "prostateSurvival", "rott2"),
)
METHODS = ("bristlecone", "greedy", "scikit-survival", "bristlecone, defaults")
# scikit-survival's tree takes a minute for one fit of its 42,000 training rows.
LEFT_OUT = {("hdfail", "scikit-survival")}
ROWS, CENSORED = (100, 200, 500, 1000, 2000, 5000), (0.1, 0.5, 0.8)
PROGRAMS = (
    *("bristlecone", "pystreed", "pystreed:general", "bristlecone-greedy:likelihood"),
    *("bristlecone-greedy:logrank", "sksurv"),
)
NAMES = {
    "pystreed": "pystreed (SurTree)",
    "pystreed:general": "pystreed without its solver of depth two",
    "bristlecone-greedy:likelihood": "GreedySurvivalTree, likelihood",
    "bristlecone-greedy:logrank": "GreedySurvivalTree, log-rank",
    "sksurv": "scikit-survival (log-rank)",
}
TIMES = 100
# Appendix C of the paper: rates, then shape and scale, mean and variance, shape and scale.
RATES = (0.3, 0.4, 0.6, 0.8, 0.9, 1.15, 1.5, 1.8)
WEIBULL = ((0.8, 0.4), (0.9, 0.5), (0.9, 0.7), (0.9, 1.1))
WEIBULL += ((0.9, 1.5), (1.0, 1.1), (1.0, 1.9), (1.3, 0.5))
LOGNORMAL = ((0.1, 1.0), (0.2, 0.75), (0.3, 0.3), (0.3, 0.5))
LOGNORMAL += ((0.3, 0.8), (0.4, 0.32), (0.5, 0.3), (0.5, 0.7))
GAMMA = ((0.2, 0.75), (0.3, 1.3), (0.3, 2.0), (0.5, 1.5))
GAMMA += ((0.8, 1.0), (0.9, 1.3), (1.3, 0.9), (1.5, 0.7))

Outcome = tuple[np.ndarray, np.ndarray]
Rows = tuple[pd.DataFrame, np.ndarray, np.ndarray]


# Synthetic sets


def synthetic(n: int, censored: float, copies: int, seed: int, n_test: int = 0) -> tuple[Rows, ...]:
    """Training rows, and test rows of the same tree (Bertsimas et al. 2022, as in the paper)."""
    rng = np.random.default_rng([seed, n, int(100 * censored), copies])
    kinds = [*[0] * 3 * copies, *[2] * copies, *[3] * copies, *[5] * copies]
    # Splits of the true tree of depth five, breadth first, and a distribution for each leaf.
    features = rng.integers(len(kinds), size=31)
    levels = [rng.integers(kinds[f]) if kinds[f] else rng.random() for f in features]
    leaves = rng.integers(4, size=32), rng.integers(8, size=32)
    return tuple(_rows(rng, m, censored, kinds, features, levels, leaves) for m in (n, n_test) if m)


def _rows(
    rng: np.random.Generator,
    n: int,
    censored: float,
    kinds: list[int],
    features: np.ndarray,
    levels: list[float],
    leaves: tuple[np.ndarray, np.ndarray],
) -> Rows:
    columns = [rng.integers(kind, size=n) if kind else rng.random(n) for kind in kinds]
    node = np.zeros(n, dtype=int)
    for _ in range(5):
        right = np.zeros(n, dtype=bool)
        for k in np.unique(node):
            rows, f = node == k, features[k]
            x = columns[f][rows]
            right[rows] = x == levels[k] if kinds[f] else x > levels[k]
        node = 2 * node + 1 + right
    lived = np.empty(n)
    for leaf in np.unique(node):
        rows = node == leaf
        lived[rows] = _times(rng, leaves[0][leaf - 31], leaves[1][leaf - 31], int(rows.sum()))
    # The smallest k such that at most this share of the rows has k (1 − u²) < t.
    followed = 1 - rng.random(n) ** 2
    k = np.sort(lived / followed)[::-1][int(censored * n)]
    event = lived <= k * followed
    names = [f"x{i}" for i in range(len(kinds))]
    frame = pd.DataFrame(
        {
            name: [f"level {value}" for value in column] if kind > 2 else column
            for name, kind, column in zip(names, kinds, columns, strict=True)
        }
    )
    return frame, event, np.where(event, lived, k * followed)


def _times(rng: np.random.Generator, family: int, place: int, n: int) -> np.ndarray:
    if family == 0:
        return rng.exponential(1 / RATES[place], n)
    if family == 1:
        shape, scale = WEIBULL[place]
        return scale * rng.weibull(shape, n)
    if family == 2:
        mean, variance = LOGNORMAL[place]
        return rng.lognormal(mean, np.sqrt(variance), n)
    shape, scale = GAMMA[place]
    return rng.gamma(shape, scale, n)


# Tuned trees and their scores on new rows


def tuned(method: str, depth: int, X: pd.DataFrame, y: Outcome, folds: int) -> Any:
    """A fitted tree whose size was chosen on inner folds: predicts risks and curves."""
    splits = list(StratifiedKFold(folds, shuffle=True, random_state=0).split(y[1], y[0]))
    if method != "scikit-survival":
        given: dict[str, Any] = {"max_depth": depth, "encoder": BinaryEncoder()}
        if method != "bristlecone, defaults":
            given |= {"encoder": encoder(), **PAPERS}
        if method == "greedy":
            tree: Any = GreedySurvivalTree(criterion="logrank", **given)
        else:
            tree = OptimalSurvivalTree(n_jobs=1, **given)
        return TreeSizeCV(tree, cv=splits, scoring="concordance").fit(X, y).best_estimator_
    return SksurvTree(depth, splits).fit(X, y)


def encoder() -> BinaryEncoder:
    """Ten quantiles, and the ten most frequent levels, as in the paper."""
    return BinaryEncoder(categories="levels")


class SksurvTree:
    """scikit-survival's tree on the same 0/1 features, its size by a grid."""

    def __init__(self, depth: int, splits: list[Any]) -> None:
        from sksurv.tree import SurvivalTree

        self._encoder = encoder()
        self._search = GridSearchCV(
            SurvivalTree(max_depth=depth, random_state=0),
            {"max_leaf_nodes": [k for k in (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16) if k <= 2**depth]},
            cv=splits,
            scoring=lambda tree, X, y: (
                concordance_index_censored(
                    y["event"], y["time"], tree.predict(X, check_input=False)
                ).cindex
            ),
            error_score="raise",
        )

    def fit(self, X: pd.DataFrame, y: Outcome) -> SksurvTree:
        """Learn thresholds, size and tree."""
        from sksurv.util import Surv

        columns = self._columns(X, fit=True)
        self._tree = self._search.fit(columns, Surv.from_arrays(*y)).best_estimator_
        self.n_leaves_ = int((self._tree.tree_.children_left < 0).sum())
        return self

    def _columns(self, X: pd.DataFrame, *, fit: bool = False) -> np.ndarray:
        encode = self._encoder.fit_transform if fit else self._encoder.transform
        return np.asarray(encode(X), dtype=np.float32)

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Risk of each row."""
        return self._tree.predict(self._columns(X))

    def predict_survival_function(self, X: pd.DataFrame, times: np.ndarray) -> np.ndarray:
        """Curves at the times."""
        return leaf_curves(self._tree, self._columns(X), times)


def leaf_curves(tree: Any, X: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Curves of scikit-survival's tree; one row per leaf is predicted, since many share a curve."""
    _, first, leaf = np.unique(tree.apply(X), return_index=True, return_inverse=True)
    curves = tree.predict_survival_function(X[first])
    return np.array([f(np.clip(times, *f.domain)) for f in curves])[leaf]


def scored(
    method: str, depth: int, train: Rows, test: Rows, folds: int, repeat: int | None = None
) -> Scores:
    """Harrell's C and 1 − IBS / IBS of Kaplan–Meier on the test rows, leaves, and seconds."""
    (X, *y), (held, *seen) = train, test
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BristleconeWarning)
        tree = tuned(method, depth, X, tuple(y), folds)
    seconds = time.perf_counter() - begun
    low, high = np.quantile(seen[1], (0.1, 0.9))
    grid = np.linspace(low, high, TIMES + 1)[1:]

    def brier(curves: np.ndarray) -> float:
        at = {"times": grid, "method": "step", "limits": (low, high)}
        return integrated_brier_score(tuple(seen), tuple(seen), curves, **at)

    curve = kaplan_meier(tuple(y))
    alone = np.append(1.0, curve.y)[np.searchsorted(curve.x, grid, side="right")]
    own = brier(tree.predict_survival_function(held, times=grid))
    return {
        "c": float(concordance_index_censored(*seen, tree.predict(held)).cindex),
        "ibs": 1 - own / brier(np.tile(alone, (len(held), 1))),
        "leaves": tree.n_leaves_,
        "seconds": seconds,
    }


@lru_cache(maxsize=1)
def _set(name: str, most: int | None) -> Rows:
    X, event, when = load({"source": "survset", "name": name}, Path())
    return X.iloc[:most], event[:most], when[:most]


def fold_scores(method: str, depth: int, name: str, fold: int, inner: int, most: Any) -> Scores:
    """Scores of one of five outer folds."""
    X, event, when = _set(name, most)
    splitter = StratifiedKFold(5, shuffle=True, random_state=0)
    rows, held = list(splitter.split(when, event))[fold]
    train, test = ((X.iloc[k], event[k], when[k]) for k in (rows, held))
    return scored(method, depth, train, test, inner)


def synthetic_scores(
    method: str, n: int, censored: float, seed: int, inner: int, n_test: int
) -> Scores:
    """Scores on the test rows of a synthetic set."""
    train, test = synthetic(n, censored, 1, seed, n_test)
    return scored(method, 4, train, test, inner)


# Fits in processes of their own


def encoded(copies: int, seed: int, n: int) -> Problem:
    """A synthetic training set with half of the rows censored, as 0/1 features."""
    ((X, event, when),) = synthetic(n, 0.5, copies, seed)
    return Problem(
        f"synthetic-{copies}-{seed}",
        np.ascontiguousarray(BinaryEncoder().fit_transform(X), dtype=np.uint8),
        {"event": event, "time": when},
    )


def fitted(make: Callable[[], Problem], program: str, depth: int, timeout: float) -> Scores:
    """Seconds and loss of a program, and the loss of a single leaf."""
    problem = make()
    alone = likelihood(problem, np.zeros(len(problem.X), dtype=int))
    scores = timed(problem, program, "likelihood", depth, timeout=timeout)
    return scores | {"loss of one leaf": alone, "features": problem.X.shape[1]}


def cells(quick: bool) -> Cells:
    """All cells; ``x`` is the number of rows of a synthetic set, or the copies of its columns."""
    found: Cells = {}
    sets, inner, most, n_test = SETS, 10, None, 50_000
    depths, rows, folds, repeats, timeout = (3, 4), ROWS, 5, 3, 20.0
    if quick:
        sets, inner, most, n_test = ("veteran", "divorce"), 2, 150, 200
        depths, rows, folds, repeats, timeout = (2,), (100, 150), 2, 1, 20.0
    for depth in depths:
        for name in sets:
            for method in installed(METHODS):
                if (name, method) in LEFT_OUT:
                    continue
                for fold in range(folds):
                    key = Key("table", name, method, depth, fold=fold)
                    run = partial(fold_scores, method, depth, name, fold, inner, most)
                    found[key] = run
            for program in installed(("bristlecone", "pystreed")):
                if quick and name != "veteran":
                    continue
                make = partial(build, name)
                found[Key("objective", name, program, depth)] = partial(
                    fitted, make, program, depth, timeout
                )
    for censored in CENSORED[: len(rows)]:
        for n in rows:
            for method in installed(METHODS):
                for seed in range(repeats):
                    key = Key("synthetic", f"{censored:.0%} censored", method, 4, n, seed)
                    found[key] = partial(synthetic_scores, method, n, censored, seed, inner, n_test)
    programs = PROGRAMS[:1] + PROGRAMS[-1:] if quick else PROGRAMS
    for copies in (1,) if quick else (1, 2):
        for depth in (2,) if quick else range(1, 6):
            for seed in range(1 if quick else 3):
                for program in installed(programs):
                    # Beyond, the search without its solver of depth two takes minutes.
                    if program == "pystreed:general" and depth + copies > 5:
                        continue
                    make = partial(encoded, copies, seed, 300 if quick else 5000)
                    key = Key("depth", f"f = {copies}", program, depth, copies, seed)
                    found[key] = partial(fitted, make, program, depth, timeout)
    return found


# The page


def scores_section(rows: pd.DataFrame, folder: Path) -> tuple[str, list[str]]:
    """Tables 1 and 2 of the paper, and comparisons over the sets."""
    lines = [
        "Means over five folds. Ours and the greedy trees are tuned on ten inner folds. IBS is "
        "1 − IBS / IBS of Kaplan–Meier, so greater is better for both scores.",
        "",
    ]
    headlines = []
    for depth, own in rows.groupby("depth"):
        paper = pages.published("surtree", {4: "table 2"}.get(depth, "table 1"))
        paper = paper.assign(value=pd.to_numeric(paper["value"]))
        near = []
        for metric, title in (("c", "Harrell's C"), ("ibs", "IBS")):
            frame = pages.wide(own, metric)
            theirs = paper[paper["metric"] == metric].pivot(
                index="set", columns="method", values="value"
            )[["SurTree", "OST", "CTree"]]
            both = frame.join(theirs.add_suffix(", published"))
            near += list((both["bristlecone"] - both["SurTree, published"]).dropna() >= -0.02)
            lines += [f"### {title}, depth {depth}", *pages.grid(both, 2)]
            lines += pages.compared(frame, greater_is_better=True)
            headlines.append(f"{title} at depth {depth}: {pages.versus(frame)}.")
        lines += [f"Of {len(near)} published scores of SurTree, ours is at most 0.02 lower in "
                  f"{sum(near)}. Seconds of tuning and fitting a fold, and leaves:"]  # fmt: skip
        costs = pd.concat([pages.wide(own, m).mean() for m in ("seconds", "leaves")], axis=1)
        lines += pages.grid(costs.set_axis(["seconds", "leaves"], axis=1))
    return " ".join(headlines), lines


def objective_section(rows: pd.DataFrame, folder: Path) -> tuple[str, list[str]]:
    """The same objective as pystreed, and the ratio of the times."""
    lines = [
        "All rows of each set, no limit on the number of leaves, the same 0/1 features. The loss "
        "is calculated again from the leaf of each row.",
        "",
    ]
    loss = pages.wide(rows, "loss", ["set", "depth"]).dropna()
    if "pystreed" in loss:
        equal = (loss["bristlecone"] - loss["pystreed"]).abs() <= 1e-9
        lines += [f"The losses are equal (to 1e-9) in {equal.sum()} of {len(loss)} searches.", ""]
        worse = loss[~equal]
        if len(worse):
            lines += ["The others, where pystreed stops at its relative gap of 1e-4:"]
            lines += pages.grid(worse, 9)
    lines += pages.times(rows, ["set", "depth"], list(loss.columns), ["set", "depth"])
    return "", lines


def synthetic_section(rows: pd.DataFrame, folder: Path) -> tuple[str, list[str]]:
    """Figure 3."""
    lines = ["Depth four, tuned; test sets of 50,000 rows; means over the sets of a setting.", ""]
    for metric, title in (("c", "Harrell's C"), ("ibs", "normalised IBS")):
        own = rows[rows["metric"] == metric]
        path = folder / f"surtree-synthetic-{metric}.png"
        lines += pages.curves(path, own, "x", ("training rows", title), log="x")
        lines += [
            f"{title}:",
            *pages.grid(pages.wide(own, metric, ["set", "x"]).rename_axis(["set", "rows"]), 3),
        ]
    return "", lines


def depth_section(rows: pd.DataFrame, folder: Path) -> tuple[str, list[str]]:
    """Figures 4 and 5."""
    ratios = pages.ratios(rows[rows["depth"] >= 3], "pystreed")
    rows = rows.assign(method=rows["method"].map(lambda m: NAMES.get(m, m)))
    programs = list(dict.fromkeys(rows["method"]))
    seconds = rows[rows["metric"] == "seconds"]
    lines = [
        "5,000 rows, half of them censored; 39 features (f = 1) or 78; mean over three sets.",
        "",
    ]
    lines += pages.curves(
        folder / "surtree-depth.png", seconds, "depth", ("depth", "seconds"), log="y"
    )
    lines += pages.times(rows, ["set", "depth"], programs, ["set", "depth"])
    lines += ["### Training score of greedy trees (figure 5)", ""]
    lines += [
        "Normalised: 0 is the loss of a single leaf, 1 is no loss. All get the same features."
    ]
    keys = ["set", "method", "depth", "x", "fold"]
    losses = rows[rows["metric"] == "loss"].set_index(keys)["value"]
    alone = rows[rows["metric"] == "loss of one leaf"].set_index(keys)["value"]
    score = (1 - losses / alone).dropna().rename("value").reset_index()
    score = score[~score["method"].str.startswith("pystreed")].assign(metric="score")
    path = folder / "surtree-training.png"
    lines += ["", *pages.curves(path, score, "depth", ("depth", "normalised training score"))]
    lines += pages.grid(pages.wide(score, "score", ["set", "depth"]), 4)
    headline = ""
    if ratios:
        headline = (
            f"{pages.geometric_mean(ratios):.0f} times as fast as pystreed on synthetic sets at "
            f"depth 3 and more (geometric mean of {len(ratios)} searches)."
        )
    return headline, lines


SECTIONS = {
    "table": ("Scores on new rows (tables 1 and 2)", scores_section),
    "objective": ("The same optimum as pystreed", objective_section),
    "synthetic": ("Synthetic sets (figure 3)", synthetic_section),
    "depth": ("Time by depth (figures 4 and 5)", depth_section),
}
