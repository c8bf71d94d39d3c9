"""Descriptions of leaves that are independent of a picture; plot and report draw them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bristlecone._data.texts import number
from bristlecone._leaves.follow_up import FollowUp
from bristlecone._types import Floats
from bristlecone.curves import KaplanMeier


class Fact(NamedTuple):
    """A number of a leaf as text; ``is_drawn`` if the panel of the leaf also shows it."""

    name: str
    text: str
    interval: str = ""
    is_drawn: bool = False

    @property
    def line(self) -> str:
        """Name and text; a colon stands between two numbers."""
        return f"{self.name}{':' * self.name[-1].isdigit()} {self.text}"


@dataclass(frozen=True, eq=False)
class Curve:
    """Survival of one leaf.

    Parameters
    ----------
    times, survival : array of float, shape (n_times,)
        The curve that the tree predicts; for leaves with a curve per row, that of a typical row.
    is_step : bool
        Whether it is a step function, which falls at ``times``; otherwise it is smooth.
    estimate : KaplanMeier or None
        Of the training rows of the leaf; None if it has none.
    lower, upper : array of float
        Confidence limits at the times of ``estimate``.
    follow_up : FollowUp
        The training rows of the leaf, counted by the times at which they left.
    """

    times: Floats
    survival: Floats
    is_step: bool
    estimate: KaplanMeier | None
    lower: Floats
    upper: Floats
    follow_up: FollowUp

    @property
    def end(self) -> float:
        """Last time of the rows of the leaf; 0 without rows."""
        return float(self.follow_up.times[-1]) if self.estimate is not None else 0.0

    @property
    def censored(self) -> Floats:
        """Distinct times at which rows were censored."""
        return self.follow_up.times[self.follow_up.censored > 0]

    @property
    def is_estimate(self) -> bool:
        """Whether the predicted curve is the Kaplan–Meier estimate, as far as there are rows."""
        if self.estimate is None:
            return True
        within = self.times <= self.end
        observed = np.asarray(self.estimate(self.times[within]))
        return bool(np.allclose(observed, self.survival[within], rtol=0, atol=1e-9))


@dataclass(frozen=True, eq=False)
class Incidences:
    """Probabilities of an event of each cause in one leaf, stacked.

    Parameters
    ----------
    times : array of float, shape (n_times,)
        Times at which they rise.
    stacked : array of float, shape (n_causes, n_times)
        Incidence of each cause and of those before it.
    """

    times: Floats
    stacked: Floats

    @property
    def layers(self) -> list[tuple[Floats, Floats]]:
        """Lower and upper edge of every cause."""
        edges = np.concatenate([np.zeros((1, self.times.size)), self.stacked])
        return list(pairwise(edges))


class Bar(NamedTuple):
    """A label with its value; ``place`` is the position of its colour."""

    name: str
    value: float
    text: str
    place: int
    is_chosen: bool


class Bars(tuple[Bar, ...]):
    """The labels of one leaf with their values."""


@dataclass(frozen=True, eq=False)
class Box:
    """Training values of one leaf.

    Parameters
    ----------
    levels : list of float
        Minimum, 5%, 25%, 50%, 75% and 95% quantile, maximum.
    predicted : float
    """

    levels: list[float]
    predicted: float


@dataclass(frozen=True, eq=False)
class LeafShown:
    """One leaf.

    Parameters
    ----------
    headline : str
        The prediction in a few words.
    panel : Curve, Incidences, Bars, Box or None
        Picture of the leaf; None for text only.
    facts : sequence of Fact
    name : str
        The label of the leaf; empty if leaves have no labels.
    n_events : int or None
        Rows with an event; None if the tree does not predict survival.
    """

    headline: str
    panel: Curve | Incidences | Bars | Box | None
    facts: tuple[Fact, ...] = ()
    name: str = ""
    n_events: int | None = None


@dataclass(frozen=True, eq=False)
class Shown:
    """All leaves, left to right.

    Parameters
    ----------
    leaves : tuple of LeafShown
    span : tuple of (float, float)
        Ends of the axis that all panels share.
    caption : str
        Explanation of the panels.
    has_model : bool
        Whether the predicted curves differ from the Kaplan–Meier estimates, so both are drawn.
    """

    leaves: tuple[LeafShown, ...]
    span: tuple[float, float] = (0.0, 1.0)
    caption: str = ""
    has_model: bool = False


def interval(low: float | None, high: float | None, digits: int = 4) -> str:
    """Confidence limits as text; empty if neither is known or reached."""
    texts = number(low, digits), number(high, digits)
    return "" if texts == ("–", "–") else f"({texts[0]} to {texts[1]})"
