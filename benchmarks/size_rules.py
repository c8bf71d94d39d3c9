"""What does choosing the size of a survival tree cost? Rules of TreeSizeCV beside no choice.

    python -m benchmarks.size_rules A B --divisions 2

The sets, folds and scores are those of ``benchmarks.generalise``. In every fold one TreeSizeCV of
the default tree is fitted to the training rows, and the tree that each rule would choose is scored
on the held-out rows, beside the tree without a choice. Prints a table per group: differences from
no choice, as means over the sets with their standard errors.
"""

from __future__ import annotations

import argparse
import json
import warnings
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from benchmarks.generalise import survival
from benchmarks.generalise.__main__ import CATALOGUE
from benchmarks.generalise.frames import filled
from bristlecone import OptimalSurvivalTree
from bristlecone.metrics import concordance_index_censored, integrated_brier_score
from bristlecone.tune import TreeSizeCV

# Standard errors that a rule gives away for a smaller tree, and the metrics that choose.
RULES = (0.0, 0.25, 0.5, 1.0)
METRICS = ("concordance", "likelihood", "ibs")


def scores(tree: Any, X: Any, train: Any, test: Any, times: np.ndarray) -> list[float]:
    """C, IBS, nll and leaves of a tree on held-out rows."""
    event, when = test
    at, where = np.unique(when, return_inverse=True)
    hazard = tree.predict_cumulative_hazard_function(X, times=at)[np.arange(len(when)), where]
    hazard = np.maximum(hazard, 1 / (len(train[1]) + 1))
    curves = tree.predict_survival_function(X, times=times)
    limits = 0.0, float(times[-1])
    ibs = integrated_brier_score(train, test, curves, times, method="step", limits=limits)
    c = concordance_index_censored(event, when, tree.predict(X)).cindex
    return [c, ibs, float(np.mean(hazard - event * np.log(hazard))), float(tree.n_leaves_)]


def chosen(search: Any, metric: str, rule: float) -> int:
    """Position of the size that a rule chooses."""
    mean, error = (search.cv_results_[f"{what}_test_{metric}"] for what in ("mean", "se"))
    best = int(np.argmax(mean))
    return int(np.argmax(mean >= mean[best] - rule * error[best]))


def differences(name: str, divisions: int, most_rows: int) -> np.ndarray:
    """Mean differences of a set, shape (n_metrics, n_rules, 4); the last are leaves as they are."""
    X, event, when = survival.load(name, most_rows, 0)
    found = []
    for seed in range(divisions):
        splitter = StratifiedKFold(5, shuffle=True, random_state=seed)
        for rows, held in splitter.split(when, event):
            train, test = (event[rows], when[rows]), (event[held], when[held])
            times = np.linspace(0.0, survival.horizon(train, test), survival.BRIER_TIMES + 1)[1:]
            known, everything = filled(X.iloc[rows], X)
            search = TreeSizeCV(OptimalSurvivalTree(), scoring=list(METRICS)).fit(known, train)
            other = everything.iloc[held]
            path = np.array([scores(t, other, train, test, times) for t in search.size_path_])
            # The largest tree of the path is the one without a choice.
            path[:, :3] -= path[-1, :3]
            found.append([[path[chosen(search, m, r)] for r in RULES] for m in METRICS])
    return np.mean(found, axis=0)


def main() -> None:
    """Print the tables."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("groups", nargs="+")
    options.add_argument("--divisions", type=int, default=2)
    options.add_argument("--most-rows", type=int, default=2500)
    given = options.parse_args()
    groups = json.loads(CATALOGUE.read_text(encoding="utf-8"))["parts"]["survival"]["groups"]
    warnings.simplefilter("ignore")
    for group in given.groups:
        with threadpool_limits(limits=1):
            sets = [differences(name, given.divisions, given.most_rows) for name in groups[group]]
        mean = np.mean(sets, axis=0)
        error = np.std(sets, axis=0, ddof=1) / np.sqrt(len(sets))
        print(f"\nGroup {group}, {len(sets)} sets\n")
        print("| chosen by | standard errors | C | IBS | nll | leaves |\n|---|---|---|---|---|---|")
        for m, metric in enumerate(METRICS):
            for r, rule in enumerate(RULES):
                cells = [
                    f"{value:+.4f} ± {own:.4f}"
                    for value, own in zip(mean[m, r, :3], error[m, r, :3], strict=True)
                ]
                print(f"| {metric} | {rule:g} | {' | '.join(cells)} | {mean[m, r, 3]:.1f} |")


if __name__ == "__main__":
    main()
