"""Trees that prescribe treatments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bristlecone._data.outcomes import check_survival
from bristlecone._data.rows import check_length
from bristlecone._data.targets import check_numbers
from bristlecone._rewards.formulas import given_predictions, given_propensity
from bristlecone._types import Bools, Floats
from bristlecone.trust._columns import Table
from bristlecone.trust._compare import Checks, Pairs
from bristlecone.trust._exact import Column, exact_means, weighted
from bristlecone.trust._rows import Rows, labelled, rows_of
from bristlecone.trust._statement import ROUNDING, Statement, like, sums_of, within
from bristlecone.trust._teacher import estimated_again


def read_rows(tree: Any, table: Table, y: Any, weight: Any, more: Mapping[str, Any]) -> Rows:
    """Treatments, with the estimated outcome of each in every row.

    Models that estimated propensity scores or outcomes are fitted again. What follows from them is
    computed here, except the scores of censored outcomes, which come with the models.
    """
    if "treatment" not in more:
        raise TypeError("verify needs treatment for a PolicyTree")
    treatments, codes, kept = labelled(more["treatment"], weight, table, "treatment")
    parameters = tree.certificate_.parameters
    codes, horizon = codes[kept], parameters["horizon"]
    taken = np.arange(len(codes)), codes
    event: Any = None
    if horizon is None:
        outcome = check_numbers("y", y, table.n_rows)
    else:
        event, outcome, _ = check_survival(y)
        check_length(outcome, "y", table.n_rows)
    outcome, event = outcome[kept], None if event is None else event[kept]
    weighs = parameters["reward"] != "direct"
    predicts = parameters["reward"] != "inverse-propensity"
    share = known = None
    found: Any = None
    if weighs and "propensity" in more:
        share = given_propensity(more["propensity"], codes, treatments, kept)
        share = share if share.ndim == 1 else share[taken]
    if predicts and "predicted_outcomes" in more:
        known = given_predictions(more["predicted_outcomes"], treatments, kept)
    lacks_a_model = (weighs and share is None) or (predicts and known is None)
    if horizon is not None or lacks_a_model:
        found = estimated_again(tree, table.X, y, weight, more)
    if horizon is not None:
        rewards = found.rewards[kept]
    else:
        rewards = np.zeros((len(codes), len(treatments)))
        if predicts:
            rewards = found.predicted_outcomes[kept] if known is None else known.copy()
        if weighs:
            own: Any = share
            if own is None:
                own = np.maximum(found.propensity[kept][taken], parameters["min_propensity"])
            rewards[taken] += (outcome - rewards[taken]) / own
    weights = None if weight is None else weight[kept]
    outcomes = (treatments, weights, codes, outcome, event, share, known)
    facts = {"labels": codes, "classes": treatments, "rewards": rewards}
    if event is not None:
        facts["by then"] = event & (outcome <= horizon)
    return rows_of(tree, table, weight, kept, outcomes, facts)


class Rewards(Statement):
    """Negative outcomes of the assigned treatments; treatments may have capacities.

    A leaf without enough rows of every treatment costs infinity.
    """

    def __init__(self, tree: Any, rows: Rows) -> None:
        parameters = tree.certificate_.parameters
        capacities = parameters["capacities"] or {}
        self.fewest = int(parameters["min_samples_treatment"])
        if self.fewest and tree.certificate_.status == "reestimated":
            # Leaves that were estimated from other rows than their splits may have any number of
            # rows.
            self.fewest = 0
        weight = Column.of(rows.weight)
        self.columns, self.factor = weighted(rows.facts["rewards"], weight)
        self.n_labels = len(self.columns)
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
        self.is_linear = not self.fewest
        self.is_concave = not limits and not self.fewest
        self.units = [self.columns[0].unit, *(weight.unit for _ in limits)]
        if self.fewest:
            had = rows.facts["labels"][:, None] == np.arange(self.n_labels)
            self.columns += [Column.of(of_one.astype(np.float64)) for of_one in had.T]

    def candidates(self, sums: Any) -> Any:
        nothing = 0 * sums[:, 0]
        labels = []
        for label in range(self.n_labels):
            given = [sums[:, self.n_labels] if label == one else nothing for one in self.limited]
            labels.append(np.stack([-sums[:, label], *given], axis=1))
        costs = np.stack(labels, axis=1)
        if self.fewest:
            costs[(sums[:, self.n_labels + 1 :] < self.fewest).any(axis=1)] = np.inf
        return costs

    def magnitudes(self, sums: Any, members: Bools) -> Any:
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
    """Mean outcomes of the treatments, their errors, and the rows of each in every leaf."""
    inside, rewards = reached[:, tree.tree_.leaves].T, rows.facts["rewards"]
    leaves = tree.leaves_
    found = [exact_means(one, rows.weight, inside) for one in rewards.T]
    values, sizes = (np.stack(of_treatment, axis=1) for of_treatment in zip(*found, strict=True))
    pairs: Pairs = [("mean outcome of [leaf, treatment]", values, leaves.values, sizes)]
    checks.same("mean outcomes", f"{values.shape[1]} treatments", pairs)
    had = np.arange(len(leaves.labels)) == rows.facts["labels"][:, None]
    counts: Pairs = [("rows of [leaf, treatment]", inside.astype(int) @ had, leaves.treated)]
    if "by then" in rows.facts:
        events = inside.astype(int) @ (had & rows.facts["by then"][:, None])
        counts.append(("events of [leaf, treatment]", events, leaves.events))
    checks.same("rows of the treatments", f"{values.shape[1]} treatments", counts)
    fewest, least = int(leaves.treated.min()), tree.certificate_.parameters["min_samples_treatment"]
    if tree.certificate_.status != "reestimated":
        holds = int((inside.astype(int) @ had).min()) >= least
        checks.holds("rows of a treatment in a leaf", holds, f"at least {least}", fewest)
    of_row = leaves.label[inside.argmax(axis=0)]
    prescribed = rewards[np.arange(len(rewards)), of_row]
    whole = np.column_stack([prescribed, rewards])
    pairs = [
        (f"of leaf {node}", *_covariance(rewards[own], rows.weight[own], leaves.covariance[k]))
        for k, (node, own) in enumerate(zip(tree.tree_.leaves.tolist(), inside, strict=True))
    ]
    pairs.append(
        ("of the policy and the treatments", *_covariance(whole, rows.weight, leaves.whole))
    )
    checks.same("errors of mean outcomes", f"{values.shape[1]} treatments", pairs)


def _covariance(values: Floats, weight: Floats, stated: Floats) -> tuple[Floats, Floats, Any]:
    """Covariance of the errors of means, the stated covariance, and the size of its terms."""
    share = weight / weight.sum()
    unit = np.abs(values).max(initial=0.0) or 1.0
    scaled = values / unit
    low = scaled - share @ scaled
    off = (low - share @ low) * share[:, None]
    size = ((np.abs(scaled) * share[:, None]).max(axis=0, initial=0.0) ** 2).sum()
    # Squares of rewards beyond 1e154 are infinite, with the sign that rounding gave them.
    with np.errstate(over="ignore"):
        found = np.einsum("ij,ik->jk", off, off) * unit * unit
        stated = np.where(np.isinf(found) & np.isinf(stated), found, stated)
        return found, stated, len(values) * size * unit * unit
