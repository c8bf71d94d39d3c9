"""Outcomes of treatments: estimates from historical data, and the policy of greatest mean."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.exact import product_sum
from bristlecone._data.targets import PolicyData
from bristlecone._data.texts import percent
from bristlecone._leaves.policies import PolicyLeaves, covariance_of_mean
from bristlecone._objectives.base import TaskObjective
from bristlecone._search.engine import Problem, Task
from bristlecone._tree import Tree
from bristlecone._types import Bools, Floats, Integers
from bristlecone.metrics._inputs import sums_by_cell


@dataclass(frozen=True, kw_only=True)
class Rewards(TaskObjective[PolicyData, PolicyLeaves]):
    """Mean outcome of the treatments that a policy prescribes; the objective is its negative.

    Parameters
    ----------
    reward : str
        How the rewards were estimated.
    capacities : mapping or None
        Largest share of the rows to which each treatment may be prescribed.
    horizon : float or None
        For censored outcomes, the time up to which they count.
    estimand : str
        With a horizon, the quantity that the rewards estimate.
    min_samples_treatment : int
        Fewest rows of every treatment in a leaf.
    models : tuple
        Models of the propensity scores and of the outcomes, used if these are not passed.
    """

    reward: str
    capacities: Mapping[Any, float] | None
    horizon: float | None = None
    estimand: str = "restricted-mean"
    min_samples_treatment: int = 0
    models: tuple[Any, Any] = (None, None)

    def target(self, data: PolicyData) -> Floats:
        """How much better each treatment is than their mean, by which a policy divides rows."""
        return data.rewards - data.rewards.mean(axis=1, keepdims=True)

    def task(self, data: PolicyData) -> Task:
        rows: dict[str, Any] = {"rewards": data.rewards, "weight": data.weight}
        if self.min_samples_treatment:
            rows |= {"group": data.treatment, "fewest": self.min_samples_treatment}
        return Task("policy", rows)

    @property
    def chooses_labels(self) -> bool:
        return bool(self.capacities)

    def task_of(self, problem: Problem[PolicyData]) -> Task:
        data = problem.data
        task = self.task(data)
        if not self.capacities:
            return task
        total = float(len(data.rewards)) if data.weight is None else math.fsum(data.weight)
        limited = {**task.data, "capacity": self.capacity(data.treatments, total)}
        return Task("capacity", limited)

    def _estimated(self, data: PolicyData) -> str:
        """Sentence about the estimates behind the rewards and their models."""
        scores, outcomes = (
            "auto" if isinstance(model, str) else type(model).__name__ for model in self.models
        )
        parts = []
        if self.reward != "direct" and data.propensity is None:
            parts.append(f"the propensity scores ({scores})")
        if self.horizon is not None:
            parts.append(f"survival and censoring ({outcomes})")
        elif self.reward != "inverse-propensity" and data.predicted_outcomes is None:
            parts.append(f"the outcomes ({outcomes})")
        return f", with cross-fitted models of {' and of '.join(parts)}" if parts else ""

    def check_minimum(self, data: PolicyData) -> None:
        """Raise ValueError if a treatment has fewer rows than every leaf must have."""
        counts = np.bincount(data.treatment, minlength=len(data.treatments))
        if counts.min() < self.min_samples_treatment:
            place = int(counts.argmin())
            raise ValueError(
                f"min_samples_treatment={self.min_samples_treatment} is more than the "
                f"{counts[place]} rows of treatment {data.treatments.tolist()[place]!r}"
            )

    def capacity(self, treatments: NDArray[Any], total: float) -> Floats:
        """Largest weight of every treatment, for this total.

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

    def leaves(self, tree: Tree, problem: Problem[PolicyData], solution: Any) -> PolicyLeaves:
        data, leaf = problem.data, problem.leaf_index(tree)
        values, best = _by_leaf(leaf, tree.n_leaves, data.rewards, data.weight)
        labels = solution.labels[tree.leaves] if hasattr(solution, "labels") else best
        label = np.asarray(labels, dtype=np.int64)
        count = problem.count

        def counted(rows: Bools | slice) -> Integers:
            own = None if count is None else count[rows]
            shape = tree.n_leaves, len(data.treatments)
            return sums_by_cell(leaf[rows], data.treatment[rows], own, shape).astype(np.int64)

        events = None
        if data.happened is not None:
            # Those by the horizon, up to which outcomes count.
            assert self.horizon is not None
            events = counted(data.happened & (data.outcome <= self.horizon))
        prescribed = data.rewards[np.arange(len(leaf)), label[leaf]]
        return PolicyLeaves(
            labels=data.treatments,
            label=label,
            values=values,
            covariance=_covariances(leaf, tree.n_leaves, data, count),
            treated=counted(slice(None)),
            events=events,
            whole=covariance_of_mean(
                np.column_stack([prescribed, data.rewards]), data.weight, count
            ),
        )

    def losses(self, tree: Tree, problem: Problem[PolicyData], leaves: PolicyLeaves) -> Floats:
        weight = tree.weighted_n_node_samples
        values = tree.node_sums(leaves.values * (weight[tree.leaves] / weight[0])[:, None])
        return -values.max(axis=1)

    def value(self, tree: Tree, problem: Problem[PolicyData], leaves: PolicyLeaves) -> float:
        return -mean_reward(tree, leaves)

    def aim(self, problem: Problem[PolicyData], leaves: PolicyLeaves) -> str:
        given = (self.capacities or {}).items()
        limits = " and ".join(f"{name} to at most {percent(share)}" for name, share in given)
        what, source = "mean outcome", "van der Linden, de Weerdt and Demirović, NeurIPS 2023"
        if self.horizon is not None:
            means = self.estimand == "restricted-mean"
            what = "restricted mean survival time" if means else "survival"
            what += f" {'up to' if means else 'at'} {float(self.horizon):g}"
            source += "; Westling, Luedtke, Gilbert and Carone, JASA 2024"
        return (
            f"the greatest {what} of the treatments it prescribes, estimated by the "
            f"{self.reward} method ({source}){self._estimated(problem.data)}; "
            "the objective is its negative"
            + (f"; it may prescribe {limits} of the rows" if limits else "")
        )


def mean_reward(tree: Tree, leaves: Any) -> float:
    """Mean outcome under the PolicyLeaves of a tree, over its rows."""
    given = np.take_along_axis(leaves.values, leaves.label[:, None], axis=1)[:, 0]
    weight = tree.weighted_n_node_samples
    return math.fsum(given * (weight[tree.leaves] / weight[0]))


def _by_leaf(
    leaf: Integers, n_leaves: int, rewards: Floats, weight: Floats | None
) -> tuple[Floats, Integers]:
    """Mean reward of every treatment in every leaf, and the first of the best ones.

    Sums are rounded once, as in the search, where they may be far smaller than their terms.
    """
    unit = _unit(rewards)
    scaled = np.ldexp(rewards, -unit)
    size = np.ones(len(rewards)) if weight is None else np.ldexp(weight, -_unit(weight))

    def summed(rows: Integers, k: int) -> float:
        own = scaled[rows, k]
        return math.fsum(own.tolist()) if weight is None else product_sum(own, size[rows])

    ends = np.cumsum(np.bincount(leaf, minlength=n_leaves))[:-1]
    of_leaves = np.split(np.argsort(leaf, kind="stable"), ends)
    sums = np.array([[summed(rows, k) for k in range(rewards.shape[1])] for rows in of_leaves])
    total = np.bincount(leaf, weights=size, minlength=n_leaves)
    return np.ldexp(sums / total[:, None], unit), sums.argmax(axis=1)


def _covariances(leaf: Integers, n_leaves: int, data: PolicyData, count: Integers | None) -> Floats:
    """Covariances of the errors of the mean rewards of every leaf."""
    n_treatments = data.rewards.shape[1]
    found = np.empty((n_leaves, n_treatments, n_treatments))
    for k in range(n_leaves):
        inside = leaf == k
        weight, own = (None if one is None else one[inside] for one in (data.weight, count))
        found[k] = covariance_of_mean(data.rewards[inside], weight, own)
    return found


def _unit(values: Floats) -> int:
    """Binary exponent of the largest of the numbers."""
    return int(np.frexp(np.abs(values).max(initial=0.0))[1])
