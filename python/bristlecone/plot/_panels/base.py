"""What panels of leaves have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from bristlecone._view.fitted import FittedTree
from bristlecone._view.palette import leaf_colours
from bristlecone.plot._sheet import Ruler, Sheet

__all__ = ["Axis", "Panels", "Place", "number_text"]


@dataclass(frozen=True)
class Place:
    """Where a panel stands on the sheet, in inches, and its font size."""

    left: float
    top: float
    width: float
    height: float
    size: float


@dataclass(frozen=True)
class Axis:
    """The axis that all panels share."""

    low: float
    high: float
    ticks: tuple[float, ...]

    @classmethod
    def over(cls, low: float, high: float, most: int, *, inside: bool) -> Axis:
        """Axis over a range with at most so many round ticks; ``inside`` the range as it is."""
        from matplotlib.ticker import MaxNLocator

        if not high > low:
            pad = 0.1 * abs(low) or 0.5
            low, high = low - pad, high + pad
        locator = MaxNLocator(nbins=most - 1, steps=[1, 2, 2.5, 5, 10])
        ticks = [float(tick) for tick in locator.tick_values(low, high)]
        if not inside:
            low, high = min(low, *ticks), max(high, *ticks)
        slack = 1e-9 * (high - low)
        return cls(low, high, tuple(t for t in ticks if low - slack <= t <= high + slack))

    @property
    def texts(self) -> list[str]:
        """Ticks in words."""
        return [f"{tick:.10g}" for tick in self.ticks]

    def at(self, value: float) -> float:
        """Place of a value, from 0 to 1."""
        return (value - self.low) / ((self.high - self.low) or 1.0)


class Panels(ABC):
    """Panels of the leaves of a tree, left to right."""

    #: Height of a panel above one another and in a row, in inches; 0 for none.
    tall, low = 0.0, 0.0
    #: Narrowest panel that can be read, in inches.
    narrowest = 0.7
    #: Whether panels share a vertical axis where they stand side by side.
    has_vertical_axis = False

    def __init__(self, tree: FittedTree) -> None:
        self.tree, self.leaves = tree, tree.leaves_
        structure = tree.tree_
        self.nodes = structure.leaves.tolist()
        self.n = structure.n_node_samples[structure.leaves].tolist()
        self.weight = structure.weighted_n_node_samples[structure.leaves].tolist()
        self.is_weighted = bool(structure.is_weighted)
        self.colours = [leaf_colours(tree)[node] for node in self.nodes]

    def title(self, k: int) -> str:
        """Headline of a leaf."""
        return f"leaf {self.nodes[k]}"

    def rows(self, k: int) -> str:
        """Rows of a leaf, such as "n = 239 (weight 401)"."""
        weight = f" (weight\xa0{self.weight[k]:.5g})" if self.is_weighted else ""
        return f"n = {self.n[k]}{weight}"

    @abstractmethod
    def lines(self, k: int) -> list[str]:
        """Facts below the headline, one per line."""

    def columns(self, *, narrow: bool) -> list[tuple[str, list[str]]]:
        """Facts as columns of a table: headings and texts by leaf, the important ones first."""
        columns = [("n", [str(n) for n in self.n])]
        if self.is_weighted:
            columns.append(("weight", [f"{weight:.5g}" for weight in self.weight]))
        return columns

    def draw(self, sheet: Sheet, ruler: Ruler, k: int, place: Place) -> None:  # noqa: B027
        """Draw a panel that stands among others side by side."""

    def draw_in_row(self, sheet: Sheet, ruler: Ruler, k: int, place: Place) -> None:
        """Draw a panel in a row of a table."""
        self.draw(sheet, ruler, k, place)

    @property
    def axis(self) -> Axis | None:
        """Horizontal axis of the panels, if they have one."""
        return None

    def at_risk(self, axis: Axis) -> list[list[int]]:
        """Numbers at risk at the ticks, by leaf; none but of survival."""
        return []

    @property
    def key(self) -> list[tuple[str, str]]:
        """Colours and what they mean, where that is not written beside them."""
        return []

    @property
    def caption(self) -> str:
        """What lines and numbers are."""
        return ""


def number_text(value: float) -> str:
    """Four digits, or all before the point."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.4g}"
