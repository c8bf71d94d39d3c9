"""Leaves with competing risks: the cumulative incidence of every cause."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._data.checks import check_integer
from bristlecone._data.texts import number, percent
from bristlecone._leaves.base import Columns, Leaves, Output, hazard_ratios, median_text
from bristlecone._leaves.shown import Fact, Incidences, LeafShown, Shown
from bristlecone._leaves.shrinkage import step_functions, steps_at
from bristlecone._leaves.survival import StepLeaves
from bristlecone._types import Floats, Integers
from bristlecone.exceptions import InvalidParameterError


@dataclass(frozen=True, eq=False)
class IncidenceLeaves(Leaves):
    """Training rows of every leaf, by the cause of their events.

    Every curve is a right-continuous step function with steps at the distinct training times.

    Parameters
    ----------
    any_cause : StepLeaves
        With an event of any cause, by Kaplan–Meier: survival is freedom from all of them.
    of_cause : tuple of StepLeaves
        With events of one cause, by proportional hazards; other events censor a row.
    curve : {"aalen-johansen", "proportional"}
        "aalen-johansen" is the estimate from the rows of the leaf, "proportional" has the hazard
        θ_k λ_k(t) with the baseline hazard λ_k of the cause.
    """

    any_cause: StepLeaves
    of_cause: tuple[StepLeaves, ...]
    curve: str

    tree_kind, score_name = "Competing risks tree", "concordance index of cause 1"
    compared = "incidences"
    has_curves, has_steps = True, True

    @property
    def n_causes(self) -> int:
        """Number of causes."""
        return len(self.of_cause)

    @property
    def unique_times(self) -> Floats:
        """Distinct training times, ascending."""
        return self.any_cause.unique_times

    @property
    def shrinkage(self) -> float:
        """λ of the predicted θ."""
        return self.of_cause[0].shrinkage

    def check_cause(self, cause: int) -> None:
        """Raise InvalidParameterError unless there is a cause with this number."""
        check_integer("cause", cause, 1)
        if cause > self.n_causes:
            raise InvalidParameterError(
                f"cause is {cause}, but the tree was fitted to {self.n_causes} causes"
            )

    @cached_property
    def theta(self) -> Floats:
        """The predicted θ, shape (n_causes, n_leaves)."""
        return np.stack([leaves.theta for leaves in self.of_cause])

    @cached_property
    def curves(self) -> tuple[Floats, Floats]:
        """S, shape (n_leaves, n_times), and F of every cause, shape (n_causes, n_leaves, n_times).

        F_k increases by S(t−) times the hazard of the cause at t. With proportional hazards, all
        causes share the decrease of S at t in proportion to their hazards.
        """
        times, of_cause = self.unique_times, self.of_cause
        is_proportional = self.curve == "proportional"
        if not is_proportional:
            # The hazards are then the Nelson–Aalen estimates of the rows of each leaf.
            of_cause = tuple(replace(leaves, curve="kaplan-meier") for leaves in of_cause)
        cumulative = np.stack([leaves.hazard_at(times) for leaves in of_cause])
        hazard = np.diff(cumulative, axis=2, prepend=0.0)
        if is_proportional:
            survival = np.exp(-cumulative.sum(axis=0))
            total = hazard.sum(axis=0)
            share = np.divide(hazard, total, out=np.zeros_like(hazard), where=total > 0)
            hazard = -np.expm1(-total) * share
        else:
            survival = self.any_cause.survival_at(times)
        before = np.concatenate([np.ones((len(survival), 1)), survival[:, :-1]], axis=1)
        # Rounding must not exceed all rows.
        return survival, np.minimum(np.cumsum(before * hazard, axis=2), 1.0)

    def survival_at(self, times: Floats) -> Floats:
        """Probability of no event of any cause in every leaf, shape (n_leaves, n_times)."""
        return steps_at(self.unique_times, self.curves[0], times, before=1.0)

    def incidence_at(self, cause: int, times: Floats) -> Floats:
        """F of a cause (from 1), of every leaf, shape (n_leaves, n_times)."""
        return steps_at(self.unique_times, self.curves[1][cause - 1], times, before=0.0)

    def functions(self, rows: Integers) -> NDArray[np.object_]:
        """Probability of no event for every row as a function of time, shape (n,)."""
        return step_functions(self.unique_times, self.curves[0], 1.0)[rows]

    @property
    def order(self) -> NDArray[Any]:
        return self.theta[0]

    @property
    def _causes(self) -> list[tuple[int, StepLeaves]]:
        return list(enumerate(self.of_cause, start=1))

    def shown(self, confidence: float, time_label: str) -> Shown:
        times, until = self.unique_times, self.any_cause.common_follow_up
        by_then = [self.incidence_at(k, np.array([until]))[:, 0].tolist() for k, _ in self._causes]
        leaves = []
        for place, leaf in enumerate(self.any_cause.statistics):
            facts = [
                Fact(f"cause {k} by {number(until)}", percent(incidence[place]))
                for k, incidence in enumerate(by_then, start=1)
            ]
            facts += [
                Fact(f"θ of cause {k}", number(float(own.theta[place]))) for k, own in self._causes
            ]
            panel = Incidences(times, np.cumsum(self.curves[1][:, place], axis=0))
            headline = f"cause 1 {percent(by_then[0][place])}"
            leaves.append(LeafShown(headline, panel, tuple(facts), n_events=leaf.n_events))
        causes = ", ".join(f"cause {k}" for k, _ in self._causes)
        caption = (
            f"Areas: cumulative incidence (0 to 1) over {time_label} of {causes}, stacked in this "
            "order from below; the rest is the probability of no event. Numbers: incidences by the "
            "last time until which all leaves were observed."
        )
        return Shown(tuple(leaves), (0.0, float(times[-1]) or 1.0), caption)

    def outputs(self, times: Mapping[str, float]) -> list[Output]:
        found: list[Output] = [("risk", self.theta.T, tuple(str(k) for k, _ in self._causes))]
        if times:
            at, names = np.array(list(times.values())), tuple(times)
            found.append(("survival", self.survival_at(at), names))
            found += [(f"incidence_{k}", self.incidence_at(k, at), names) for k, _ in self._causes]
        return found

    def heading(self, column: str, time_label: str) -> str:
        for start, words in _HEADINGS.items():
            if not column.startswith(f"{start}_"):
                continue
            cause, _, rest = column.removeprefix(f"{start}_").partition("_")
            if cause.isdigit():
                return words.format(cause=cause, rest=rest)
        if column.startswith("event_free_"):
            return f"event-free at {number(float(column.removeprefix('event_free_')))}"
        if column == "median":
            return "median until any event"
        return super().heading(column, time_label)

    def facts(self) -> list[dict[str, Any]]:
        facts = self.any_cause.facts()
        for place, fact in enumerate(facts):
            del fact["model_median"], fact["theta"]
            fact["causes"] = []
            for k, leaves in self._causes:
                leaf, theta = leaves.statistics[place], float(leaves.theta[place])
                of_cause = {"cause": k, "n_events": leaf.n_events, "theta": leaf.theta}
                if self.shrinkage > 0:
                    of_cause["shrunk_theta"] = theta
                fact["causes"].append(of_cause)
        return facts

    def text(self, facts: Mapping[str, Any]) -> str:
        events = ", ".join(f"{one['n_events']} of cause {one['cause']}" for one in facts["causes"])
        theta = ", ".join(f"{one['theta']:.4g}" for one in facts["causes"])
        text = f"events={facts['n_events']} ({events}), theta={theta}"
        if self.shrinkage > 0:
            shrunk = ", ".join(f"{one['shrunk_theta']:.4g}" for one in facts["causes"])
            text += f" (shrunk {shrunk})"
        return f"{text}, median={median_text(facts)}"

    def table(self, times: Sequence[float], confidence: float) -> Columns:
        overall, at = self.any_cause.statistics, np.asarray(times, dtype=np.float64)
        columns: Columns = [
            ("n_events", np.array([leaf.n_events for leaf in overall])),
            ("median", np.array([leaf.curve.median for leaf in overall])),
        ]
        for k, leaves in self._causes:
            own = leaves.statistics
            columns += [
                (f"n_events_{k}", np.array([leaf.n_events for leaf in own])),
                (f"theta_{k}", np.array([leaf.theta for leaf in own])),
                (f"risk_{k}", leaves.theta),
                *hazard_ratios(f"hazard_ratio_{k}", own, confidence),
            ]
        names = [f"{time:.15g}" for time in times]
        free = self.survival_at(at).T
        columns += [(f"event_free_{name}", x) for name, x in zip(names, free, strict=True)]
        for k, _ in self._causes:
            incidence = self.incidence_at(k, at).T
            columns += [
                (f"incidence_{k}_{name}", x) for name, x in zip(names, incidence, strict=True)
            ]
        return columns


_HEADINGS = {
    "n_events": "events of cause {cause}",
    "theta": "relative hazard θ of cause {cause}",
    "risk": "predicted θ of cause {cause}",
    "hazard_ratio": "hazard ratio of cause {cause} to all rows",
    "incidence": "incidence of cause {cause} by {rest}",
}
