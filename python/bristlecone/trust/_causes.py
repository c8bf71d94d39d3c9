"""Trees for events of several causes: each cause is checked like a survival tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.frame import by_cause
from bristlecone._data.outcomes import read_causes
from bristlecone._model.survival import CURVE_ERROR
from bristlecone._types import Bools, Floats
from bristlecone.trust import _survival_leaves
from bristlecone.trust._columns import Table
from bristlecone.trust._compare import Checks, Pairs
from bristlecone.trust._rows import Rows
from bristlecone.trust._statement import Statement, like
from bristlecone.trust._survival import Likelihood, lifetimes, prior_of


def read_rows(tree: Any, table: Table, y: Any, weight: Any, more: Mapping[str, Any]) -> Rows:
    """Lifetimes until an event of any cause, with the cause of each."""
    causes = read_causes(y)
    cause: NDArray[Any] = causes.event
    rows = _survival_leaves.read_lifetimes(
        tree, table, causes._replace(event=cause > 0), weight, {}
    )
    kept = cause if rows.outcomes[4] is None else cause[rows.outcomes[4]]
    return replace(rows, outcomes=(*rows.outcomes, kept), facts={**rows.facts, "cause": kept})


def _of_cause(rows: Rows, cause: int) -> Rows:
    """The rows with events of one cause, which those of other causes censor."""
    return replace(rows, facts={**rows.facts, "event": rows.facts["cause"] == cause})


def objective(tree: Any, rows: Rows) -> Statement:
    """Objective of a ``CompetingRisksTree``."""
    parameters = tree.certificate_.parameters
    weights = by_cause(parameters["cause_weights"], "cause_weights")
    if weights is None:
        weights = [1.0] * tree.leaves_.n_causes
    found = set(rows.facts["cause"].tolist())
    # A cause without an event adds nothing to the loss.
    counted = {k: float(x) for k, x in enumerate(weights, start=1) if k in found}
    return _CompetingRisks(rows, prior_of(parameters["prior"]), counted or {1: 1.0})


class _CompetingRisks(Statement):
    """Losses of proportional hazards of every cause, times the weights of the causes."""

    is_concave = True

    def __init__(self, rows: Rows, prior: float, weights: Mapping[int, float]) -> None:
        self.parts = [Likelihood(_of_cause(rows, k), prior) for k in weights]
        self.weights = [Fraction(weight) for weight in weights.values()]
        self.columns = [column for part in self.parts for column in part.columns]
        self.total = self.parts[0].total

    def _summed(self, sums: Any, of_part: Callable[[Likelihood, Any], Any]) -> Any:
        found = 0.0
        for k, (weight, part) in enumerate(zip(self.weights, self.parts, strict=True)):
            own = sums[:, 3 * k : 3 * k + 3]
            found = found + like(weight, own) * of_part(part, own)
        return found

    def candidates(self, sums: Any) -> Any:
        return self._summed(sums, Likelihood.candidates)

    def magnitudes(self, sums: Any, members: Bools) -> Any:
        return self._summed(sums, lambda part, own: part.magnitudes(own, members))

    def least(self, sums: Sequence[Floats], errors: Sequence[float]) -> Floats:
        bounds = [
            float(weight) * part.least(sums[3 * k : 3 * k + 3], errors[3 * k : 3 * k + 3])
            for k, (weight, part) in enumerate(zip(self.weights, self.parts, strict=True))
        ]
        return np.asarray(sum(bounds))


def check_leaves(tree: Any, rows: Rows, reached: Bools, checks: Checks) -> None:
    """Check the leaves like those of survival trees, one per cause, and the incidences."""
    leaves, found = tree.leaves_, tree.certificate_.parameters
    parts = [(rows, leaves.any_cause, "kaplan-meier", 0.0, "any cause")]
    for k, one in enumerate(leaves.of_cause, start=1):
        parts.append((_of_cause(rows, k), one, "proportional", found["shrinkage"], f"cause {k}"))
    for own, part, curve, shrinkage, which in parts:
        parameters = {"leaf_curve": curve, "shrinkage": shrinkage, "prior": found["prior"]}
        alone = Checks()
        _survival_leaves.check_one_cause(tree, part, parameters, own, reached, alone)
        checks.made += [replace(check, name=f"{check.name}, {which}") for check in alone.made]
    if CURVE_ERROR in tree.certificate_.facts:
        why = "the file keeps thinned curves: " + dict(tree.certificate_.remarks)["curves"]
        checks.skip("incidences", "", why)
        return
    times = np.unique(rows.facts["time"])
    pairs: Pairs = [("curve", found["leaf_curve"], leaves.curve)]
    for place, node in enumerate(tree.tree_.leaves.tolist()):
        if leaves.curve == "proportional":
            own_hazard = [
                float(one.theta[place]) * np.diff(lifetimes(own).nelson_aalen, prepend=0.0)
                for (own, *_), one in zip(parts[1:], leaves.of_cause, strict=True)
            ]
            total = np.sum(own_hazard, axis=0)
            survival = np.exp(-total.cumsum())
            falls = -np.diff(survival, prepend=1.0)
            share = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
            rises = [hazard * share * falls for hazard in own_hazard]
        else:
            inside = [lifetimes(own).of(reached[:, node]) for own, *_ in parts]
            survival = inside[0].kaplan_meier
            before = np.append(1.0, survival[:-1])
            rises = [_spread(one.times, before * one.hazard, times) for one in inside[1:]]
        for k, rise in enumerate(rises, start=1):
            expected = rise.cumsum()
            pairs.append(
                (f"cause {k} in leaf {node}:", expected, leaves.incidence_at(k, times)[place])
            )
    checks.same("incidences", f"{leaves.curve} curves", pairs, scale=1.0)


def _spread(times: Floats, values: Floats, among: Floats) -> Floats:
    """Values at some of the times, 0 at the others."""
    found = np.zeros(among.size)
    found[np.searchsorted(among, times)] = values
    return found
