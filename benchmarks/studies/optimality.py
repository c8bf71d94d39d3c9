"""What optimality buys on new rows: comparisons of the cells of ``benchmarks.generalise``."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.studies import page as pages
from benchmarks.studies.cells import Cells, Key

TITLE = "What optimality buys on new rows"
SOURCE = (
    "Out-of-sample scores over the 55 sets of SurvSet that every model accepts, with the tests of "
    "the papers."
)
NAME = "generalise-optimality"
# Shared by all trees of at most eight leaves; soft trees have four.
TREES = {
    "default": "optimal, likelihood",
    "greedy": "greedy",
    "Brier score, depth 3": "optimal, Brier score",
    "taught, depth 3": "optimal, taught",
    "sksurv tree, depth 3": "scikit-survival",
    "soft, depth 2": "soft, four leaves",
}
MODELS = {"Cox, ridge": "Cox, ridge", "random survival forest": "random survival forest"}
METRICS = {
    "c": ("Harrell's C", True),
    "ibs": ("Integrated Brier score", False),
    "nll": ("Likelihood of held-out rows (mean loss)", False),
    "calibration": ("Calibration error", False),
}
COMMAND = (
    "python -m benchmarks.generalise A B C --repeats 1 --name generalise-optimality "
    "--models default greedy 'taught, depth 3' 'sksurv tree, depth 3' 'Cox, ridge' "
    "'random survival forest' --add "
    """'Brier score, depth 3={"objective": "brier", "time_limit": 5}' """
    """'soft, depth 2={"estimator": "soft", "depth": 2, "n_restarts": 2, "random_state": 0}'"""
)
DIFFERENCES = [
    "The neutral comparison of Burk et al. (arXiv 2406.04098) has 18 models on 32 sets. Those of "
    "its sets that are in SurvSet are included here; its models, which it tunes, are not. The "
    "models here have fixed parameters, the same on every set.",
    "The trees have at most eight leaves (depth three), with the package's defaults: a minimum of "
    "events in a leaf and shrinkage. They were chosen on group A of the sets. Group C, whose table "
    "comes last, had no part in these choices except one: the rule by which "
    '`min_events_leaf="auto"` sets no minimum if a binary feature isolates event-free rows was '
    "added after group C had been seen once. The penalty of soft trees was chosen on A and B.",
    "At most 2,500 rows of each set; five folds, one division.",
    'The method “optimal, taught” is the optimal tree with [`teacher="auto"`]'
    "(../guide/teacher.md).",
    "Soft trees have four leaves; the [page of soft trees](soft.md) compares them with hard trees "
    "on fifteen other sets.",
    "A search by Brier score ends after 5 seconds, proven or not; the table of cost "
    "says how many were proven.",
    "Tests are of the means of the sets. Sets are not independent samples of all data sets, so the "
    "p values describe these sets.",
]


def cells(quick: bool) -> Cells:
    """One cell per set and model: the means of a record, which ``generalise`` computes."""
    record = json.loads(
        sorted(pages.RECORDS.glob(f"*-{NAME}.json"))[-1].read_text(encoding="utf-8")
    )
    found: Cells = {}
    for group, names in record["catalogue"]["groups"].items():
        for name in names[:2] if quick else names:
            for model in (*TREES, *MODELS):
                divisions = record["results"].get(f"{name} {model}")
                if divisions:
                    key = Key(group, name, model, 3)
                    found[key] = lambda of=divisions: {
                        metric: statistics.fmean(d[metric] for d in of) for metric in of[0]
                    }
    return found


def frame_of(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    """Sets by models, under the names of the page."""
    own = rows[rows["metric"] == metric]
    wide = own.pivot_table(index="set", columns="method", values="value", sort=False)
    names = {m: n for m, n in (TREES | MODELS).items() if m in wide}
    wide = wide[list(names)].rename(columns=names)
    # A model with few sets would leave few sets to compare the others on.
    return wide.loc[:, wide.notna().mean() >= 0.8]


def scores_section(rows: pd.DataFrame, folder: Path) -> tuple[str, list[str]]:
    """Comparisons by metric."""
    lines, headlines = [], []
    for metric, (name, better) in METRICS.items():
        frame = frame_of(rows, metric)
        lines += [f"### {name}", *pages.compared(frame, greater_is_better=better)]
        if metric in ("c", "ibs"):
            headlines.append(f"{name}: {verdict(frame, better)}")
    names = ["leaves", "stability", "proven", "seconds"]
    costs = pd.concat([frame_of(rows, m).mean() for m in names], axis=1).set_axis(names, axis=1)
    lines += ["### Leaves, stability, proven searches and CPU seconds", *pages.grid(costs)]
    return " ".join(headlines), lines


def all_sets(rows: pd.DataFrame, folder: Path) -> tuple[str, list[str]]:
    """The comparisons, and mean ranks."""
    headline, lines = scores_section(rows, folder)
    draw_ranks(rows, folder)
    lines += [
        "### Mean ranks",
        "",
        "Rank 1 is the best model of a set. The bar is the critical difference of the Nemenyi test "
        "at 5%: models whose mean ranks differ by less are not significantly different.",
        "",
        "![Mean ranks by metric](optimality-ranks.png)",
        "",
    ]
    return headline, lines


def group_c(rows: pd.DataFrame, folder: Path) -> tuple[str, list[str]]:
    """The comparisons without a headline."""
    return "", scores_section(rows, folder)[1]


def verdict(frame: pd.DataFrame, greater_is_better: bool) -> str:
    """Where the optimal likelihood tree wins, and where it does not."""
    whole = frame.dropna()
    first, texts = whole.columns[0], []
    p = pages.holm({m: pages.signed_rank(whole[first], whole[m]) for m in whole.columns[1:]})
    for model in whole.columns[1:]:
        gain = (whole[first] - whole[model]).mean() * (1 if greater_is_better else -1)
        if p[model] < 0.05:
            texts.append(f"{'better' if gain > 0 else 'worse'} than “{model}”")
    rest = [m for m in whole.columns[1:] if p[m] >= 0.05]
    if rest:
        texts.append(f"not significantly different from {', '.join(f'“{m}”' for m in rest)}")
    return f"the optimal likelihood tree is {'; '.join(texts)} ({len(whole)} sets)."


def draw_ranks(rows: pd.DataFrame, folder: Path) -> None:
    """Mean ranks of the models, one panel per metric."""
    from scipy.stats import studentized_range

    def draw(axes: Any) -> None:
        for ax, metric in zip(axes, ("c", "ibs", "nll"), strict=True):
            title, better = METRICS[metric]
            whole = frame_of(rows, metric).dropna()
            ranks = whole.rank(axis=1, ascending=not better).mean().sort_values(ascending=False)
            k, n = len(ranks), len(whole)
            critical = studentized_range.ppf(0.95, k, np.inf) / np.sqrt(2)
            critical *= np.sqrt(k * (k + 1) / (6 * n))
            label = "critical difference"
            ax.plot(ranks.values, range(k), "o", markersize=4)
            ax.plot([1, 1 + critical], [k - 0.4] * 2, "k-", linewidth=2, label=label)
            ax.set(title=title.partition(" (")[0], xlabel="mean rank", ylim=(-0.5, k))
            ax.set_yticks(range(k), ranks.index, fontsize=6)

    pages.picture(folder / "optimality-ranks.png", 3, draw)


ABOUT = ["The scores are those of this command, which resumes:", "", "```sh", COMMAND, "```", ""]
SECTIONS = {
    "A B C": ("All sets", all_sets),
    "C": ("Group C, which was kept apart", group_c),
}
