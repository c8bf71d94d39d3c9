"""Outcomes of treatments: estimates from historical data, and the policy of greatest mean."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bristlecone._data.arrays import unmasked
from bristlecone._data.targets import PolicyData, check_amounts, check_numbers
from bristlecone._leaves.labels import LabelLeaves
from bristlecone._objectives.base import TaskObjective
from bristlecone._search.engine import Engine, Problem, Task, engine_of
from bristlecone._tree import Tree

REWARD_ESTIMATES = ("direct", "inverse-propensity", "doubly-robust")

# Rewards of which none is larger lose digits when they are averaged.
_LEAST = 1e-290


@dataclass(frozen=True, kw_only=True)
class Rewards(TaskObjective[PolicyData, LabelLeaves]):
    """Mean outcome of the treatments that a policy prescribes; the objective is its negative.

    Parameters
    ----------
    reward : str
        How the rewards were estimated.
    capacities : mapping or None
        Largest share of the rows that may be given a treatment.
    """

    reward: str
    capacities: Mapping[Any, float] | None

    def target(self, data: PolicyData) -> NDArray[np.float64]:
        """How much better each treatment is than their mean: what a policy divides rows by."""
        return data.rewards - data.rewards.mean(axis=1, keepdims=True)

    def task(self, data: PolicyData) -> Task:
        return Task("policy", {"rewards": data.rewards, "weight": data.weight})

    @property
    def chooses_labels(self) -> bool:
        return bool(self.capacities)

    def engine(self, problem: Problem[PolicyData]) -> Engine:
        data = problem.data
        task = self.task(data)
        if not self.capacities:
            return engine_of(task, problem.features)
        weight = data.weight
        total = float(len(data.rewards)) if weight is None else math.fsum(weight)
        limited = {**task.data, "capacity": self.capacity(data.treatments, total)}
        return engine_of(Task("capacity", limited), problem.features)

    def capacity(self, treatments: NDArray[Any], total: float) -> NDArray[np.float64]:
        """Largest weight of every treatment, of this total.

        Raises
        ------
        ValueError
            For a treatment that was never observed.
        """
        capacity = np.full(len(treatments), np.inf)
        names = treatments.tolist()
        for name, share in (self.capacities or {}).items():
            if name not in names:
                raise ValueError(
                    f"capacities names {name!r}, a treatment that was never observed; there are "
                    f"{names}"
                )
            capacity[names.index(name)] = share * total
        return capacity

    def leaves(self, tree: Tree, problem: Problem[PolicyData], solution: Any) -> LabelLeaves:
        data, leaf = problem.data, problem.leaf_index(tree)
        values, best = _by_leaf(leaf, tree.n_leaves, data.rewards, data.weight)
        labels = solution.labels[tree.leaves] if hasattr(solution, "labels") else best
        return LabelLeaves(data.treatments, np.asarray(labels, dtype=np.int64), values)

    def losses(
        self, tree: Tree, problem: Problem[PolicyData], leaves: LabelLeaves
    ) -> NDArray[np.float64]:
        weight = tree.weighted_n_node_samples
        values = tree.node_sums(leaves.values * (weight[tree.leaves] / weight[0])[:, None])
        return -values.max(axis=1)

    def value(self, tree: Tree, problem: Problem[PolicyData], leaves: LabelLeaves) -> float:
        return -mean_reward(tree, leaves)

    def aim(self, problem: Problem[PolicyData], leaves: LabelLeaves) -> str:
        given = (self.capacities or {}).items()
        limits = ", ".join(f"{name} for at most {share:g}" for name, share in given)
        return (
            "the greatest mean outcome of the treatments it prescribes, estimated by the "
            f"{self.reward} method (van der Linden, de Weerdt and Demirović, NeurIPS 2023); "
            "the objective is its negative"
            + (f"; of all rows it may prescribe {limits}" if limits else "")
        )


def mean_reward(tree: Tree, leaves: Any) -> float:
    """Mean outcome of what the LabelLeaves of a tree prescribe, over its rows."""
    given = np.take_along_axis(leaves.values, leaves.label[:, None], axis=1)[:, 0]
    weight = tree.weighted_n_node_samples
    return math.fsum(given * (weight[tree.leaves] / weight[0]))


def policy_rewards(
    y: ArrayLike,
    treatment: NDArray[np.int64],
    n_treatments: int,
    reward: str,
    *,
    propensity: ArrayLike | None = None,
    predicted_outcomes: ArrayLike | None = None,
) -> NDArray[np.float64]:
    """Estimated outcome of every row under every treatment, shape (n, n_treatments).

    With y the outcome of a row, k its treatment, counted from 0, μ(k) its propensity score and v(j)
    its predicted outcome under treatment j (van der Linden et al., NeurIPS 2023, eqs. 61–63; eq. 62
    as printed leaves out y):

    * "direct": v(j);
    * "inverse-propensity": y / μ(k) for j = k, else 0;
    * "doubly-robust": v(j), plus (y − v(k)) / μ(k) for j = k.

    The mean over the rows of the entry of the prescribed treatment estimates the value of a policy.
    Propensity scores are those of the treatments each row had, shape (n,), or of all treatments.

    Raises
    ------
    ValueError
        When an estimate that ``reward`` needs is absent, of another shape, not finite, or a
        propensity score is outside (0, 1]; the row is named.
    """
    n_samples = len(treatment)
    outcome = check_numbers("y", y, n_samples)
    rows = np.arange(n_samples)
    rewards = np.zeros((n_samples, n_treatments))
    if reward != "inverse-propensity":
        rewards = _predicted(predicted_outcomes, (n_samples, n_treatments), reward).copy()
    if reward != "direct":
        share = _of_the_taken(propensity, treatment, n_treatments, reward)
        with np.errstate(over="ignore", invalid="ignore"):
            rewards[rows, treatment] += (outcome - rewards[rows, treatment]) / share
        beyond = ~np.isfinite(rewards).all(axis=1)
        if beyond.any():
            raise ValueError(
                f"the reward of row {int(beyond.argmax())} is beyond the largest number; change "
                "the unit of the outcomes"
            )
    most = np.abs(rewards).max(initial=0.0)
    if 0.0 < most < _LEAST:
        raise ValueError(
            f"no reward of a row is larger than {most:.3g}, less than {_LEAST:g}; change the unit "
            "of the outcomes"
        )
    return rewards


def _by_leaf(
    leaf: NDArray[np.int64],
    n_leaves: int,
    rewards: NDArray[np.float64],
    weight: NDArray[np.float64] | None,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Mean reward of every treatment in every leaf, and the first of the best ones.

    Sums are rounded once: as in the search, where they may be far smaller than their terms.
    """
    unit = _unit(rewards)
    terms = [np.ldexp(rewards, -unit)]
    size = np.ones(len(rewards)) if weight is None else np.ldexp(weight, -_unit(weight))
    if weight is not None:
        terms = _products(terms[0], size[:, None])
    order = np.argsort(leaf, kind="stable")
    ends = np.cumsum(np.bincount(leaf, minlength=n_leaves))[:-1]
    sums = np.empty((n_leaves, rewards.shape[1]))
    for k in range(rewards.shape[1]):
        parts = zip(*(np.split(part[order, k], ends) for part in terms), strict=True)
        sums[:, k] = [math.fsum(np.concatenate(of_leaf).tolist()) for of_leaf in parts]
    total = np.bincount(leaf, weights=size, minlength=n_leaves)
    return np.ldexp(sums / total[:, None], unit), sums.argmax(axis=1)


def _unit(values: NDArray[np.float64]) -> int:
    """Binary exponent of the largest of the numbers."""
    return int(np.frexp(np.abs(values).max(initial=0.0))[1])


def _products(a: NDArray[np.float64], b: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """Products of numbers up to 1, and what these leave out (Dekker 1971)."""
    b = np.broadcast_to(b, a.shape)
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    product = a * b
    return [product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2]


def _halves(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Numbers as sums of two whose products are exact."""
    wide = values * (2.0**27 + 1.0)
    high = wide - (wide - values)
    return high, values - high


def propensity_of(
    value: Any, treatment: NDArray[np.int64], treatments: NDArray[Any]
) -> ArrayLike | None:
    """Propensity scores of a trial, one for all or one per treatment, for every row.

    What is given by row stays as it is.

    Raises
    ------
    ValueError
        When a mapping lacks a treatment that was observed; it is named.
    """
    if isinstance(value, Mapping):
        lacking = [name for name in treatments.tolist() if name not in value]
        if lacking:
            raise ValueError(f"propensity has no entry for the treatment {lacking[0]!r}")
        return np.array([value[name] for name in treatments.tolist()])[treatment]
    if isinstance(value, Real) and not isinstance(value, bool):
        return np.full(len(treatment), float(value))
    return value


def _predicted(values: Any, shape: tuple[int, int], reward: str) -> NDArray[np.float64]:
    if values is None:
        raise ValueError(
            f"reward={reward!r} needs predicted_outcomes; reward='inverse-propensity' does not"
        )
    why = "one column per treatment that was observed; one that never was cannot be judged"
    return check_amounts("predicted_outcomes", values, shape, minimum=-np.inf, why=why)


def _of_the_taken(
    values: Any, treatment: NDArray[np.int64], n_treatments: int, reward: str
) -> NDArray[np.float64]:
    """Propensity score of the treatment that every row had."""
    if values is None:
        raise ValueError(f"reward={reward!r} needs propensity")
    n_samples = len(treatment)
    share = np.asarray(unmasked(values, "propensity"))
    if share.shape != (n_samples,):
        why = "or one value per row; one column per treatment that was observed"
        share = check_amounts("propensity", share, (n_samples, n_treatments), why=why)
        share = share[np.arange(n_samples), treatment]
    share = share.astype(np.float64)
    wrong = ~((share > 0) & (share <= 1))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise ValueError(
            f"propensity is {share[row]} in row {row} for the treatment it had; probabilities "
            "must lie in (0, 1]"
        )
    return share
