"""What a limit leaves of searches that are too large for it, against trees that cost little.

``python -m benchmarks.fallback`` prints, for every problem and limit, the objective beside that of
the greedy tree over the same features and of the greedy tree whose last two levels are searched
exactly, both in plain NumPy; ``--out benchmarks/records`` writes a dated record.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer

from benchmarks.machine import machine
from bristlecone import (
    BinaryEncoder,
    OptimalSurvivalTree,
    OptimalTreeClassifier,
    OptimalTreeRegressor,
)
from bristlecone._estimators.searched import again
from bristlecone.exceptions import SearchCostWarning, SearchLimitWarning

Floats = NDArray[np.float64]
LEAF = -1


class Sums(NamedTuple):
    """Statistics of every row, shape (n, k), and the cost of sums of them, inf where no leaf."""

    rows: Floats
    cost: Callable[[Floats], Floats]


def of_labels(labels: NDArray[np.int64], gini: bool) -> Sums:
    """Errors, or the Gini impurity times the rows, of two classes."""

    def cost(sums: Floats) -> Floats:
        size = sums.sum(axis=-1)
        loss = size - (sums**2).sum(axis=-1) / np.maximum(size, 1) if gini else sums.min(axis=-1)
        return np.where(size > 0.5, loss, np.inf)

    return Sums(np.column_stack([labels == 0, labels == 1]).astype(float), cost)


def of_numbers(y: Floats) -> Sums:
    """Squares around the mean."""
    y = y - y.mean()

    def cost(sums: Floats) -> Floats:
        size = np.maximum(sums[..., 0], 1)
        return np.where(sums[..., 0] > 0.5, sums[..., 2] - sums[..., 1] ** 2 / size, np.inf)

    return Sums(np.column_stack([np.ones(len(y)), y, y**2]), cost)


def of_lifetimes(event: NDArray[np.bool_], at: Floats, prior: float, least: int) -> Sums:
    """Minus the log-likelihood with Nelson–Aalen's baseline of all rows, and the prior."""
    times, place = np.unique(at, return_inverse=True)
    events = np.bincount(place, weights=event, minlength=len(times))
    at_risk = np.bincount(place)[::-1].cumsum()[::-1]
    hazard = np.cumsum(events / at_risk)[place]

    def cost(sums: Floats) -> Floats:
        d, h = sums[..., 0] + prior, sums[..., 1] + prior
        with np.errstate(divide="ignore", invalid="ignore"):
            loss = -d * np.log(d / h)
        return np.where((sums[..., 0] > least - 0.5) & (sums[..., 2] > 0.5), loss, np.inf)

    return Sums(np.column_stack([event, hazard, np.ones(len(at))]).astype(float), cost)


def cheap_tree(sums: Sums, bits: Floats, rows: NDArray[np.intp], depth: int, exact: bool) -> Any:
    """A tree of best single splits, pruned, as (cost, column, without, with)."""
    if exact and depth == 2:
        return best_of_two_levels(sums, bits, rows)
    own = sums.rows[rows]
    total, having = own.sum(axis=0), bits[rows].T @ own
    leaf = (float(sums.cost(total)), LEAF)
    if depth == 0:
        return leaf
    both = sums.cost(having) + sums.cost(total - having)
    column = int(both.argmin())
    if not np.isfinite(both[column]):
        return leaf
    holds = bits[rows, column] == 1
    sides = [cheap_tree(sums, bits, rows[side], depth - 1, exact) for side in (~holds, holds)]
    cost = sides[0][0] + sides[1][0]
    return (cost, column, *sides) if cost < leaf[0] else leaf


def best_of_two_levels(sums: Sums, bits: Floats, rows: NDArray[np.intp]) -> Any:
    """The best tree of depth two, from the sums over every pair of columns."""
    own, part = sums.rows[rows], bits[rows]
    total = own.sum(axis=0)
    pairs = np.stack([(part * own[:, [k]]).T @ part for k in range(own.shape[1])], axis=-1)
    one = pairs[np.arange(len(pairs)), np.arange(len(pairs))]
    having = sums.cost(pairs) + sums.cost(one[:, None] - pairs)
    without = sums.cost(one[None] - pairs) + sums.cost(total - one[:, None] - one[None] + pairs)
    leaves = sums.cost(total - one), sums.cost(one)
    values = [np.minimum(s.min(axis=1), v) for s, v in zip((without, having), leaves, strict=True)]
    column = int((values[0] + values[1]).argmin())
    leaf = (float(sums.cost(total)), LEAF)
    if not values[0][column] + values[1][column] < leaf[0]:
        return leaf

    def side(splits: Floats, leaf: float) -> Any:
        second = int(splits.argmin())
        if not splits[second] < leaf:
            return (float(leaf), LEAF)
        return (float(splits[second]), second, (0.0, LEAF), (0.0, LEAF))

    sides = side(without[column], leaves[0][column]), side(having[column], leaves[1][column])
    return (sides[0][0] + sides[1][0], column, *sides)


def objective_of(estimator: Any, problem: Any, tree: Any) -> float:
    """The estimator's objective of a tree over its features."""
    left: list[int] = []
    right: list[int] = []
    feature: list[int] = []

    def add(node: Any) -> int:
        at = len(feature)
        feature.append(-2 if node[1] == LEAF else node[1])
        left.append(-1)
        right.append(-1)
        if node[1] != LEAF:
            left[at], right[at] = add(node[3]), add(node[2])
        return at

    add(tree)
    arrays = {"feature": feature, "children_left": left, "children_right": right}
    found = SimpleNamespace(**{name: np.array(array) for name, array in arrays.items()})
    grown, objective = estimator._grown(found, problem), estimator._objective()
    return float(objective.value(grown, problem, objective.leaves(grown, problem, found)))


class Case(NamedTuple):
    """A problem with its estimator, and the sums of its checked rows."""

    estimator: Any
    X: Any
    y: Any
    sums: Callable[[Any], Sums]


def cases(n: int, p: int, depth: int) -> dict[str, Case]:
    """Synthetic rows with interactions, and breast cancer with many thresholds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p)).round(3)
    X[:, ::5] = rng.integers(0, 6, size=(n, len(range(0, p, 5))))
    pairs = 1.2 * (X[:, 1] > 0) * (X[:, 2] > 0.3) - (X[:, 3] < -0.5) * (X[:, 4] > 0)
    effect = (X[:, 0] > 2) + pairs + 0.5 * np.sin(2 * X[:, 6]) - 0.4 * (X[:, 11] > 0)
    at, end = rng.exponential(10 * np.exp(-effect)), rng.exponential(15, n)
    lifetimes = at <= end, np.minimum(at, end).round(2) + 0.01
    labels = (rng.random(n) < 1 / (1 + np.exp(0.8 - 2 * effect))).astype(int)
    numbers = effect + rng.normal(0, 0.7, n)
    survival = OptimalSurvivalTree(max_depth=depth, min_events_leaf=5, prior=10.0)
    cancer, many = load_breast_cancer(), BinaryEncoder(n_thresholds=30)
    name = f"{n:,} × {p}, depth {depth}, "
    return {
        name + "likelihood": Case(
            survival, X, lifetimes, lambda d: of_lifetimes(d.event, d.time, 10.0, 5)
        ),
        name + "accuracy": Case(
            OptimalTreeClassifier(max_depth=depth), X, labels, lambda d: of_labels(d.labels, False)
        ),
        name + "Gini": Case(
            OptimalTreeClassifier(objective="gini", max_depth=depth),
            X,
            labels,
            lambda d: of_labels(d.labels, True),
        ),
        name + "squares": Case(
            OptimalTreeRegressor(max_depth=depth), X, numbers, lambda _: of_numbers(numbers)
        ),
        f"breast cancer, 30 thresholds, depth {depth}, Gini": Case(
            OptimalTreeClassifier(objective="gini", max_depth=depth, encoder=many),
            cancer.data,
            cancer.target,
            lambda d: of_labels(d.labels, True),
        ),
    }


def measure(limits: list[float], n: int, p: int, depth: int) -> list[dict[str, Any]]:
    """One row per problem and limit."""
    found = []
    for name, case in cases(n, p, depth).items():
        cheap: dict[str, float] | None = None
        for limit in limits:
            model = case.estimator.set_params(time_limit=limit)
            start = time.perf_counter()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model.fit(case.X, case.y)
            seconds = time.perf_counter() - start
            categories = [warning.category for warning in caught]
            if cheap is None:
                problem = again(model, case.X, case.y).problem
                bits, rows = problem.features.astype(float), np.arange(len(problem.features))
                sums = case.sums(problem.data)
                cheap = {
                    kind: objective_of(
                        model, problem, cheap_tree(sums, bits, rows, depth, kind == "exact below")
                    )
                    for kind in ("greedy", "exact below")
                }
            found.append(
                {
                    "problem": name,
                    "limit": limit,
                    "seconds": seconds,
                    "status": model.status_,
                    "objective": model.objective_value_,
                    "lower_bound": model.lower_bound_,
                    "features": model.n_binary_features_,
                    "told": SearchCostWarning in categories,
                    "stopped": SearchLimitWarning in categories,
                    **cheap,
                }
            )
            print(report(found[-1:]).splitlines()[-1], file=sys.stderr, flush=True)
    return found


def report(found: list[dict[str, Any]]) -> str:
    """The numbers as Markdown."""
    lines = [
        "| problem | features | limit, s | took, s | at the limit | greedy | exact below | bound |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in found:
        values = (row[k] for k in ("objective", "greedy", "exact below", "lower_bound"))
        numbers = " | ".join(f"{value:.4f}" for value in values)
        lines.append(
            f"| {row['problem']} | {row['features']} | {row['limit']:g} | {row['seconds']:.1f} "
            f"| {numbers} |"
        )
    return "\n".join(lines) + "\n"


def main(argv: list[str] | None = None) -> int:
    """Measure, print, and write a record."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--limits", type=float, nargs="+", default=[0.5, 2.0, 10.0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--depth", type=int, default=5)
    parser.add_argument("--out", type=Path, help="folder of the record")
    args = parser.parse_args(argv)
    rows = measure(args.limits, args.rows, args.columns, args.depth)
    text = report(rows)
    print(text)
    if args.out:
        stem = args.out / f"{date.today()}-fallback"
        record = {"machine": machine(), "rows": rows}
        stem.with_suffix(".json").write_text(json.dumps(record, indent=1) + "\n")
        stem.with_suffix(".md").write_text(f"# What a limit leaves\n\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
