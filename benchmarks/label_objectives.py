"""Objectives of trees that predict labels or numbers, again and plainly; see objectives.py."""

from __future__ import annotations

import numpy as np

from benchmarks.adapters import Outcome
from benchmarks.problems import Problem

# What rounding may add to a difference of rates.
ROUNDING = 1e-9


def accuracy(problem: Problem, outcome: Outcome) -> float:
    """Return the share of the rows that differ from the most frequent class of their leaf."""
    y = problem.target["y"]
    right = 0
    for leaf in np.unique(outcome.leaves):
        right += np.bincount(y[outcome.leaves == leaf]).max()
    return 1 - right / len(y)


def regression(problem: Problem, outcome: Outcome) -> float:
    """Return the mean squared distance to the mean of the leaf."""
    y = problem.target["y"]
    total = 0.0
    for leaf in np.unique(outcome.leaves):
        own = y[outcome.leaves == leaf]
        total += np.square(own - own.mean()).sum()
    return total / len(y)


def cost_sensitive(problem: Problem, outcome: Outcome) -> float:
    """Return the mean cost of the cheapest label of each leaf and of the questions before it.

    van der Linden et al. (NeurIPS 2023), eq. 9.
    """
    target = problem.target
    total = 0.0
    for leaf in np.unique(outcome.leaves):
        rows = outcome.leaves == leaf
        total += target["cost_matrix"][target["y"][rows]].sum(axis=0).min()
        total += rows.sum() * _questions(target, outcome.asked[leaf])
    return total / len(outcome.leaves)


def _questions(target: dict[str, np.ndarray], asked: tuple[int, ...]) -> float:
    """Return what the questions cost a row that is asked them in this order."""
    total = 0.0
    for place, feature in enumerate(asked):
        above = list(asked[:place])
        group = target["feature_group"][feature]
        if target["feature_origin"][feature] in target["feature_origin"][above]:
            continue
        discounted = group >= 0 and group in target["feature_group"][above]
        total += target["feature_discount" if discounted else "feature_cost"][feature]
    return total


def policy(problem: Problem, outcome: Outcome) -> float:
    """Return minus the doubly robust estimate of the best treatment of each leaf.

    van der Linden et al. (NeurIPS 2023), eq. 63.
    """
    of_rows = rewards(problem)
    value = 0.0
    for leaf in np.unique(outcome.leaves):
        value += of_rows[outcome.leaves == leaf].sum(axis=0).max()
    return -value / len(of_rows)


def rewards(problem: Problem) -> np.ndarray:
    """Return the doubly robust reward of each treatment for each row, of shape (n, treatments)."""
    target = problem.target
    rows = np.arange(len(problem.X))
    given = target["treatment"]
    of_rows = target["predicted"].copy()
    of_rows[rows, given] += (target["outcome"] - of_rows[rows, given]) / target["propensity"]
    return of_rows


def f1(problem: Problem, outcome: Outcome) -> float:
    """Return 1 - F1 of the labels for class 1."""
    y, predicted = problem.target["y"], outcome.labels
    both = np.sum(y & predicted)
    return 1 - 2 * both / (y.sum() + predicted.sum())


def demographic_parity(problem: Problem, outcome: Outcome) -> float:
    """Return the share of wrong labels, inf where the groups' rates of label 1 differ too much."""
    return _limited(problem, outcome, np.ones(len(problem.X), dtype=bool))


def equality_of_opportunity(problem: Problem, outcome: Outcome) -> float:
    """Return the share of wrong labels, inf where the true positive rates differ too much."""
    return _limited(problem, outcome, problem.target["y"] == 1)


def _limited(problem: Problem, outcome: Outcome, compared: np.ndarray) -> float:
    group, delta = problem.target["group"], problem.target["delta"][0]
    rates = [outcome.labels[compared & (group == side)].mean() for side in (0, 1)]
    if abs(rates[1] - rates[0]) > delta + ROUNDING:
        return float("inf")
    return float(np.mean(outcome.labels != problem.target["y"]))


OBJECTIVES = {
    "accuracy": accuracy,
    "regression": regression,
    "cost-sensitive": cost_sensitive,
    "policy": policy,
    "f1": f1,
    "demographic-parity": demographic_parity,
    "equality-of-opportunity": equality_of_opportunity,
}
