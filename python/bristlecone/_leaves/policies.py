"""Leaves that prescribe a treatment: rewards with standard errors, and rows by treatment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from bristlecone._data.texts import number, one_line, percent, plain_number
from bristlecone._leaves.base import Columns
from bristlecone._leaves.labels import LabelLeaves, plain_labels
from bristlecone._leaves.shown import Fact, Shown, interval
from bristlecone._tree import Tree
from bristlecone._types import Floats, Integers


@dataclass(frozen=True, eq=False)
class PolicyLeaves(LabelLeaves):
    """Leaves of a policy; ``values`` are the mean rewards of the treatments.

    Parameters
    ----------
    labels, label, values
        As in LabelLeaves.
    covariance : array of float, shape (n_leaves, n_treatments, n_treatments)
        Of the errors of ``values``: Σ w² (Γ − mean)(Γ − mean)ᵀ / (Σ w)².
    treated : array of int, shape (n_leaves, n_treatments)
        Rows that had every treatment.
    events : array of int, shape (n_leaves, n_treatments), or None
        Rows with an event by the horizon, of censored outcomes.
    whole : array of float, shape (n_treatments + 1, n_treatments + 1)
        Covariance of the errors of the value of the policy, and of those of every treatment for
        all rows.
    """

    covariance: Floats
    treated: Integers
    events: Integers | None
    whole: Floats

    @property
    def errors(self) -> Floats:
        """Standard errors of the mean rewards, shape (n_leaves, n_treatments)."""
        variance = np.diagonal(self.covariance, axis1=1, axis2=2)
        return np.sqrt(variance * self._correction[:, None])

    @property
    def _correction(self) -> Floats:
        """N / (n − 1) for every leaf; NaN for a single row."""
        n = self.treated.sum(axis=1).astype(np.float64)
        return np.where(n > 1, n / np.maximum(n - 1, 1), np.nan)

    @property
    def rivals(self) -> Integers:
        """The best treatment that each leaf does not prescribe, shape (n_leaves,)."""
        others = self.values.copy()
        others[np.arange(len(others)), self.label] = -np.inf
        return others.argmax(axis=1)

    @property
    def advantages(self) -> tuple[Floats, Floats]:
        """Difference between the prescribed treatment and its rival, and its standard error."""
        at, own, other = np.arange(len(self.label)), self.label, self.rivals
        if len(self.labels) < 2:
            none = np.full(len(at), np.nan)
            return none, none
        variance = (
            self.covariance[at, own, own]
            + self.covariance[at, other, other]
            - 2 * self.covariance[at, own, other]
        )
        error = np.sqrt(np.maximum(variance, 0.0) * self._correction)
        return self.values[at, own] - self.values[at, other], error

    def shown(self, confidence: float, time_label: str) -> Shown:
        plain = super().shown(confidence, time_label)
        names = list(map(one_line, self.names))
        difference, error = self.advantages
        reach = ndtri((1 + confidence) / 2) * error
        leaves = []
        for k, leaf in enumerate(plain.leaves):
            facts = [*leaf.facts]
            if len(names) > 1:
                limits = interval(difference[k] - reach[k], difference[k] + reach[k], 3)
                over = f"over {names[self.rivals[k]]}"
                facts.append(Fact("gain", f"{number(difference[k], 3)} {over}", limits))
            facts.append(Fact("rows", self._counts(self.treated[k])))
            if self.events is not None:
                facts.append(Fact("events", self._counts(self.events[k])))
            leaves.append(replace(leaf, facts=tuple(facts)))
        caption = plain.caption
        if len(names) > 1:
            caption += (
                f" Gain: over the best other treatment, with {percent(confidence)} confidence "
                "limits."
            )
        return replace(plain, leaves=tuple(leaves), caption=caption)

    def _counts(self, counts: Integers) -> str:
        return one_line(_counted(dict(zip(self.names, counts.tolist(), strict=True))))

    def facts(self) -> list[dict[str, Any]]:
        names, facts = self.names, super().facts()
        difference, error = self.advantages
        for k, fact in enumerate(facts):
            fact["rows"] = dict(zip(names, self.treated[k].tolist(), strict=True))
            if self.events is not None:
                fact["events"] = dict(zip(names, self.events[k].tolist(), strict=True))
            if len(names) > 1:
                fact["rival"] = plain_labels(self.labels)[self.rivals[k]]
                fact["gain"] = float(difference[k])
                fact["gain_error"] = float(error[k]) if np.isfinite(error[k]) else None
        return facts

    def text(self, facts: Mapping[str, Any]) -> str:
        text = super().text(facts)
        if "gain" in facts:
            error = facts["gain_error"]
            spread = "" if error is None else f" ± {plain_number(error, 2)}"
            text += f"; gain {plain_number(facts['gain'], 3)}{spread} over {facts['rival']}"
        text += f"; rows {_counted(facts['rows'])}"
        if "events" in facts:
            text += f"; events {_counted(facts['events'])}"
        return text

    def table(self, times: Sequence[float], confidence: float) -> Columns:
        names, errors = self.names, self.errors
        columns = super().table(times, confidence)
        columns += [(f"value_{name}_error", errors[:, k]) for k, name in enumerate(names)]
        columns += [(f"rows_{name}", self.treated[:, k]) for k, name in enumerate(names)]
        if self.events is not None:
            columns += [(f"events_{name}", self.events[:, k]) for k, name in enumerate(names)]
        if len(names) < 2:
            return columns
        columns.append(("rival", self.labels[self.rivals]))
        return columns + _with_limits("gain", *self.advantages, confidence)

    def heading(self, column: str, time_label: str) -> str:
        start, _, name = column.partition("_")
        if start in ("rows", "events") and name:
            return f"{start} of {name}"
        known = {"rival": "best other treatment", "gain": "gain over it"}
        return known.get(column) or super().heading(column, time_label)

    def sentences(self, tree: Any, *, own_rows: bool) -> list[str]:
        n = int(tree.n_node_samples[0])
        table = dict(
            comparison(self.labels, self.values_of_policies(tree), self.whole, n, 0.95, "")
        )
        best = 1 + int(table["value"][1:-1].argmax())
        rows = "On the training rows" if own_rows else "On the rows of the leaves"
        text = f"{rows}, the estimated value of the policy is {_with_error(table, 'value', 0)}"
        if len(self.labels) > 1:
            name = self.names[best - 1]
            text += (
                f". That is {_with_error(table, 'gain', best)} more than if everyone had {name}, "
                f"the best single treatment, and {_with_error(table, 'gain', -1)} more than with "
                "treatments drawn at random"
            )
        if own_rows:
            text += (
                ". These values are too optimistic, because the policy was chosen to be good on "
                "the same rows"
            )
        text += (
            ". These estimates alone do not show that a treatment causes the outcome: this needs a "
            "randomised trial, or data in which all common causes of treatment and outcome are "
            "columns"
        )
        return [f"{text}."]

    def values_of_policies(self, tree: Tree) -> Floats:
        """Value of the policy, then that of every treatment for all rows, (n_treatments + 1,)."""
        weight = tree.weighted_n_node_samples
        share = weight[tree.leaves] / weight[0]
        given = np.take_along_axis(self.values, self.label[:, None], axis=1)[:, 0]
        return np.append(share @ given, share @ self.values)


def _counted(counts: Mapping[str, int]) -> str:
    """Counts by treatment as text: "drug: 12, none: 30"."""
    return ", ".join(f"{name}: {count:,}" for name, count in counts.items())


def covariance_of_mean(
    values: Floats, weight: Floats | None, count: Integers | None = None
) -> Floats:
    """Covariance of the errors of the mean: Σ w² (v − mean)(v − mean)ᵀ / (Σ w)², values (n, k).

    With ``count``, an entry stands for this many equal rows, whose total weight is its weight.
    """
    share = np.full(len(values), 1.0 / len(values)) if weight is None else weight / weight.sum()
    unit = float(np.abs(values).max(initial=0.0)) or 1.0
    scaled = values / unit
    off = (scaled - share @ scaled) * share[:, None]
    if count is not None:
        off = off / np.sqrt(count)[:, None]
    # For rewards beyond 1e154 it overflows; their errors are left out.
    with np.errstate(over="ignore", invalid="ignore"):
        found = (off.T @ off) * unit * unit
    return np.asarray(found / 2 + found.T / 2)


def comparison(
    labels: NDArray[Any], values: Floats, covariance: Floats, n: int, confidence: float, rows: str
) -> Columns:
    """Columns of the table of policies: the tree's, every treatment for all, and a random one.

    Parameters
    ----------
    labels : array, shape (n_treatments,)
    values : array, shape (n_treatments + 1,)
        Estimated value of the policy, and of every treatment for all rows.
    covariance : array, shape (n_treatments + 1, n_treatments + 1)
        Of their errors, before the correction n / (n − 1).
    n : int
        Number of rows.
    confidence : float
    rows : str
        Name of the rows, such as "cross-fitted".
    """
    k = len(labels)
    names = ["policy", *(f"always {name}" for name in plain_labels(labels)), "at random"]
    # Every policy as weights of the tree's policy and of the treatments.
    policies = np.vstack([np.eye(k + 1), np.append(0.0, np.full(k, 1.0 / k))])
    differences = policies[0] - policies
    correction = n / (n - 1) if n > 1 else np.nan

    def errors(weights: Floats) -> Floats:
        variance = np.einsum("ij,jk,ik->i", weights, covariance, weights)
        return np.sqrt(np.maximum(variance, 0.0) * correction)

    gain, gain_error = differences @ values, errors(differences)
    # The policy does not differ from itself.
    gain[0] = gain_error[0] = np.nan
    return [
        ("policy", np.array(names, dtype=object)),
        *_with_limits("value", policies @ values, errors(policies), confidence),
        *_with_limits("gain", gain, gain_error, confidence),
        ("rows", np.array([rows] * len(names), dtype=object)),
    ]


def _with_limits(name: str, values: Floats, errors: Floats, confidence: float) -> Columns:
    """Columns of values with their standard errors and confidence limits."""
    reach = ndtri((1 + confidence) / 2) * errors
    return [
        (name, values),
        (f"{name}_error", errors),
        (f"{name}_lower", values - reach),
        (f"{name}_upper", values + reach),
    ]


def _with_error(table: Mapping[str, Any], name: str, place: int) -> str:
    """A value of a policy with its standard error."""
    value, error = table[name][place], table[f"{name}_error"][place]
    return number(value) + (f" (standard error {number(error, 2)})" if np.isfinite(error) else "")
