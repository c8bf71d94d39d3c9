"""Trees that prescribe treatments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.arrays import as_array
from bristlecone.trust._columns import Table
from bristlecone.trust._compare import Checks, Pairs
from bristlecone.trust._exact import Bools, Column, Floats, exact_means, weighted
from bristlecone.trust._rows import Rows, labelled, rows_of
from bristlecone.trust._statement import ROUNDING, Statement, like, sums_of, within


def read_rows(tree: Any, table: Table, y: Any, weight: Any, more: Mapping[str, Any]) -> Rows:
    """Treatments, with the estimated outcome of each in every row."""
    if "treatment" not in more:
        raise TypeError("verify needs treatment for a PolicyTree")
    treatments, codes, kept = labelled(more["treatment"], weight, table.n_rows, "treatment")
    outcome = np.ravel(as_array(y, "y")).astype(np.float64)
    if len(outcome) != table.n_rows:
        raise ValueError(f"X has {table.n_rows} rows but y has {len(outcome)}")
    codes, outcome = codes[kept], outcome[kept]
    taken = np.arange(len(codes)), codes
    reward = tree.certificate_.parameters["reward"]
    rewards = np.zeros((len(codes), len(treatments)))
    if reward != "inverse-propensity":
        if "predicted_outcomes" not in more:
            raise TypeError(f"reward={reward!r} needs predicted_outcomes")
        rewards = np.array(more["predicted_outcomes"], dtype=np.float64)[kept]
    if reward != "direct":
        share = _propensity(more.get("propensity"), codes, treatments, kept, reward)
        rewards[taken] += (outcome - rewards[taken]) / share
    own = None if weight is None else weight[kept]
    facts = {"labels": codes, "classes": treatments, "rewards": rewards}
    return rows_of(tree, table, weight, kept, (rewards, treatments, own), facts)


def _propensity(
    given: Any,
    codes: NDArray[np.int64],
    treatments: NDArray[Any],
    kept: NDArray[np.bool_],
    reward: str,
) -> Floats:
    """Probability of the treatment that each row had."""
    if given is None:
        raise TypeError(f"reward={reward!r} needs propensity")
    if isinstance(given, Mapping):
        return np.array([given[name] for name in treatments.tolist()], dtype=np.float64)[codes]
    if isinstance(given, Real):
        return np.full(len(codes), float(given))
    shares = np.array(given, dtype=np.float64)[kept]
    return shares if shares.ndim == 1 else shares[np.arange(len(codes)), codes]


class Rewards(Statement):
    """Minus the outcomes of the treatments given, some of which may have capacities."""

    is_linear = True

    def __init__(self, tree: Any, rows: Rows) -> None:
        capacities = tree.certificate_.parameters["capacities"] or {}
        weight = Column.of(rows.weight)
        self.columns, self.factor = weighted(rows.facts["rewards"], weight)
        self.sizes = [Column(np.abs(one.whole), one.unit) for one in self.columns]
        sizes = np.abs(rows.facts["rewards"])
        self.least_term = float(sizes.min(where=sizes > 0, initial=sizes.max()))
        self.columns.append(weight)
        self.total = weight.sum()
        names = rows.facts["classes"].tolist()
        limits = {names.index(name): share for name, share in capacities.items()}
        self.limited = list(limits)
        self.limits = list(limits.values())
        self.is_limited = bool(limits)
        self.is_concave = not limits
        self.units = [self.columns[0].unit, *(weight.unit for _ in limits)]

    def candidates(self, sums: Any) -> Any:
        nothing = 0 * sums[:, 0]
        labels = []
        for label in range(sums.shape[1] - 1):
            given = [sums[:, -1] if label == one else nothing for one in self.limited]
            labels.append(np.stack([-sums[:, label], *given], axis=1))
        return np.stack(labels, axis=1)

    def magnitudes(self, sums: Any, members: NDArray[np.bool_]) -> Any:
        return sums_of(self.sizes, members)

    def least(self, sums: Sequence[Floats], errors: Sequence[float]) -> Floats:
        high = [one + error for one, error in zip(sums[:-1], errors, strict=False)]
        cost = -np.max(high, axis=0)
        return cost - ROUNDING * np.abs(cost)

    def value(self, costs: Any, allowed: float) -> Any:
        kept = np.ones(len(costs), dtype=bool)
        for k, limit in enumerate(self.limits):
            given = costs[:, 1 + k] / like(self.total, costs)
            kept &= np.asarray(within(given, limit, allowed), dtype=bool)
        return np.where(kept, super().value(costs, allowed), np.inf)


def check_leaves(tree: Any, rows: Rows, reached: Bools, checks: Checks) -> None:
    """Mean outcomes of the treatments."""
    inside, rewards = reached[:, tree.tree_.leaves].T, rows.facts["rewards"]
    found = [exact_means(one, rows.weight, inside) for one in rewards.T]
    values, sizes = (np.stack(of_treatment, axis=1) for of_treatment in zip(*found, strict=True))
    pairs: Pairs = [("mean outcome of [leaf, treatment]", values, tree.leaves_.values, sizes)]
    checks.same("mean outcomes", f"{values.shape[1]} treatments", pairs)
