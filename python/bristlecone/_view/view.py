"""A fitted tree as pictures and pages show it: texts, colours and places, laid out once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bristlecone._data.checks import check_confidence
from bristlecone._data.texts import counted, number, one_line, percent, round_numbers
from bristlecone._leaves.shown import Bar, Bars, Curve, Fact
from bristlecone._tree import Tree
from bristlecone._view.fitted import FittedTree
from bristlecone._view.palette import FAINT, label_colour, leaf_colours
from bristlecone._view.ruler import Ruler, shortened


@dataclass(frozen=True)
class Rows:
    """Training rows of a node."""

    n: int
    weight: float | None
    n_events: int | None

    @property
    def words(self) -> str:
        """Such as "47 rows, 11 events"."""
        rows = counted(self.n, "row")
        return rows if self.n_events is None else f"{rows}, {counted(self.n_events, 'event')}"

    @property
    def short(self) -> str:
        """Such as "n = 239 (weight 401), events 11"; what belongs together is joined."""
        weight = "" if self.weight is None else f" (weight {number(self.weight, 5)})"
        count = f"n = {self.n:,}{weight}".replace(" ", "\xa0")
        has_events = self.n and self.n_events is not None
        return f"{count}, events\xa0{self.n_events:,}" if has_events else count


class View:
    """Leaves of a fitted tree, left to right.

    Parameters
    ----------
    tree : FittedTree
    confidence : float
        Confidence level of intervals and bands.
    time_label : str
        Label of the time axis.
    """

    def __init__(
        self, tree: FittedTree, confidence: float = 0.95, time_label: str = "time"
    ) -> None:
        check_confidence(confidence)
        structure = tree.tree_
        self.tree, self.structure = tree, structure
        self.confidence, self.time_label = confidence, time_label
        self.shown = tree.leaves_.shown(confidence, time_label)
        self.leaves = self.shown.leaves
        self.nodes: list[int] = structure.leaves.tolist()
        self.n: list[int] = structure.n_node_samples[structure.leaves].tolist()
        weights = structure.weighted_n_node_samples[structure.leaves].tolist()
        self.rows = [
            Rows(n, weight if structure.is_weighted else None, leaf.n_events)
            for n, weight, leaf in zip(self.n, weights, self.leaves, strict=True)
        ]
        self.colours = list(leaf_colours(tree).values())
        self.is_soft = not isinstance(structure, Tree)

    @property
    def has_curves(self) -> bool:
        """Whether panels are survival curves."""
        return isinstance(self.leaves[0].panel, Curve)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the labels, where the leaves give labels."""
        panel = self.leaves[0].panel
        return tuple(bar.name for bar in panel) if isinstance(panel, Bars) else ()

    def title(self, k: int) -> str:
        """Headline of a leaf."""
        name = shortened(self.leaves[k].name)
        return f"leaf {self.nodes[k]}{f': {name}' if name else ''}"

    def columns(self, *, narrow: bool) -> list[tuple[str, list[str]]]:
        """Facts as columns of a table: headings and texts by leaf, the important ones first."""
        columns = [("n", [f"{rows.n:,}" for rows in self.rows])]
        if self.rows[0].weight is not None:
            columns.append(("weight", [number(rows.weight, 5) for rows in self.rows]))
        if self.rows[0].n_events is not None:
            events = [f"{rows.n_events:,}" for rows in self.rows]
            if narrow:
                pairs = zip(events, columns[0][1], strict=True)
                columns[0] = "events\xa0/\xa0n", [f"{count} / {n}" for count, n in pairs]
            else:
                columns.append(("events", events))
        # Leaves without rows have no facts.
        facts: tuple[Fact, ...] = next((leaf.facts for leaf in self.leaves if leaf.facts), ())
        for place, fact in enumerate(facts):
            own = [leaf.facts[place] if leaf.facts else None for leaf in self.leaves]
            texts = ["–" if one is None else f"{one.text} {one.interval}".strip() for one in own]
            level = ""
            if any(one is not None and one.interval for one in own):
                level = f" ({percent(self.confidence)}\xa0CI)"
            columns.append((fact.name.replace(" ", "\xa0") + level, texts))
        return columns

    def lines(self, k: int) -> list[str]:
        """Facts of a leaf below its headline; those that its panel shows are left out."""
        if not self.n[k]:
            return ["no rows"]
        lines = [self.rows[k].short]
        for fact in self.leaves[k].facts:
            if not fact.is_drawn:
                # Lists of numbers are broken between their entries only.
                lines.append(fact.line.replace(" ", "\xa0").replace(",\xa0", ", "))
                lines += [fact.interval] * bool(fact.interval)
        return lines

    def ticks(self, most: int) -> list[float]:
        """Round numbers of the axis that the panels share."""
        return round_numbers(*self.shown.span, most)

    def at_risk(self, times: list[float]) -> list[list[int]]:
        """Numbers at risk by leaf; none unless panels are survival curves."""
        return [
            panel.follow_up.at_risk(np.array(times)).tolist()
            if panel.estimate is not None
            else [0] * len(times)
            for panel in (leaf.panel for leaf in self.leaves)
            if isinstance(panel, Curve)
        ]

    def default_times(self) -> list[float]:
        """Two round times at which tables give the survival, where there are as many."""
        ticks = [time for time in self.ticks(6) if time > 0]
        return [ticks[len(ticks) // 3], ticks[2 * len(ticks) // 3]] if len(ticks) > 2 else ticks

    def bars(self, k: int, most: int) -> list[Bar]:
        """Bars of a leaf, at most ``most``: of its label, the longest others, and the rest."""
        bars = self.leaves[k].panel
        assert isinstance(bars, Bars)
        if len(bars) <= most:
            return list(bars)
        order = sorted(bars, key=lambda bar: (not bar.is_chosen, -np.nan_to_num(bar.value)))
        kept, rest = order[: most - 1], order[most - 1 :]
        is_share = self.tree.leaves_.compared == "shares"
        total = sum(bar.value for bar in rest) if is_share else np.nan
        text = f"{total:.2f}" if is_share else ""
        others = Bar(f"{len(rest)} others", total, text, -1, False)
        return [*(bar for bar in bars if bar in kept), others]


class BarRow(NamedTuple):
    """A bar with the places of its ends and of the end of its name."""

    name: str
    text: str
    name_end: float
    start: float
    end: float
    colour: str
    is_chosen: bool


def bar_rows(
    bars: list[Bar], span: tuple[float, float], width: float, ruler: Ruler, size: float
) -> tuple[list[BarRow], float]:
    """Bars beside their names and before their values, and the place of 0; from 0 to ``width``."""
    gap = 0.8 * ruler.width("n", size)
    is_bold = any(bar.is_chosen for bar in bars)
    side = ruler.widest([bar.text for bar in bars], size, bold=is_bold) + gap
    names = ruler.widest([shortened(bar.name) for bar in bars], size, bold=is_bold)
    names = min(names, max(0.7 * width - side, 0.1 * width))
    low, high = span
    left, right = names + gap, max(width - side, names + 2 * gap)
    unit = (right - left) / ((high - low) or 1.0)
    zero = left - low * unit

    def name_of(bar: Bar) -> str:
        name = ruler.cut(bar.name, names, size, bold=bar.is_chosen)
        # The beginning of "5 others" would look like the label 5.
        return "…" if bar.place < 0 and name != bar.name else name

    rows = [
        BarRow(
            name_of(bar),
            bar.text,
            names,
            zero,
            zero + (bar.value * unit if np.isfinite(bar.value) else 0.0),
            label_colour(bar.place) if bar.place >= 0 else FAINT,
            bar.is_chosen,
        )
        for bar in bars
    ]
    return rows, zero


def split_weights(tree: Any, most: int) -> dict[int, tuple[list[Bar], int]]:
    """Largest weights of every soft split, by node id, and how many more there are.

    They are those of the scaled columns. A positive weight sends larger values to the left: its bar
    points there, from 0 to -1 for the largest weight of the tree.
    """
    weights, names = tree.tree_.weights, [one_line(str(name)) for name in tree.encoder_.names]
    greatest = float(np.abs(weights).max(initial=0.0)) or 1.0
    found = {}
    for node, own in zip(tree.tree_.splits.tolist(), weights.tolist(), strict=True):
        order = [j for j in np.argsort(-np.abs(own), kind="stable").tolist() if own[j] != 0]
        bars = [
            Bar(names[j], -own[j] / greatest, f"{own[j]:+.3g}", int(own[j] < 0), False)
            for j in order[:most]
        ]
        found[node] = bars, len(order) - len(bars)
    return found
