"""The tree as a diagram and as an outline: nodes with their places, texts and panels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bristlecone._encoder.rules import leaf_rules, rule_text
from bristlecone._leaves.base import SurvivalLeaves
from bristlecone._leaves.labels import LabelLeaves
from bristlecone._leaves.means import MeanLeaves
from bristlecone._soft.tree import SoftTree
from bristlecone._view.fitted import FittedTree
from bristlecone._view.layout import place
from bristlecone._view.palette import LABELS, leaf_colours
from bristlecone.report._charts import number, text_width, wrapped
from bristlecone.report._panels import LARGE, ROW, SMALL, Bar, Panel, Panels
from bristlecone.report._table import Table

__all__ = ["Drawing", "Node", "Shape", "draw"]

# More leaves than this are drawn from left to right, each in a row of its own.
_MOST_DOWN = 8
# Of the box of a split, in either direction.
_WIDEST, _WIDEST_ROW = 200.0, 156.0
# Of questions, as wide as bold type of size 13.
_FONT = 13.8
_MOST_LINES = 4
_LINE = 16.0
_TERMS = 4


@dataclass(frozen=True)
class Shape:
    """Measures of the diagram, which the script uses too when subtrees are folded.

    Parameters
    ----------
    down : bool
        Whether the tree grows downwards; else to the right.
    slot : float
        Distance of neighbouring leaves.
    level : float
        Distance of levels.
    split_width, split_height, leaf_width, leaf_height : float
        Of the boxes.
    margin : float
    """

    down: bool
    slot: float
    level: float
    split_width: float
    split_height: float
    leaf_width: float
    leaf_height: float
    margin: float = 10.0


@dataclass(frozen=True)
class Node:
    """A node of the tree.

    Parameters
    ----------
    node, parent, depth : int
    answer : str
        What rows answered to get here; "" at the root.
    x, y : float
        Upper left corner of its box.
    edge : str
        Path from the parent's box.
    answer_at : tuple of (float, float)
        Where the answer is written.
    rows, share : str
        Training rows, and their share of all.
    question : str
        Of a split; "" of a leaf.
    lines : tuple of str
        What the box says.
    drop : float
        How far they stand below the top, in a box for more lines.
    bars : tuple of Bar
        Largest weights of a soft split.
    children : tuple of Node
        Of a split those that answer yes, and no.
    colour, rule : str
        Of a leaf.
    small, row, large : Panel
        Of a leaf: in the diagram, in the outline, and by itself.
    facts : tuple of (str, str)
        Of a leaf: its row of the leaf table.
    leaves : tuple of int
        Node ids of the leaves below, or its own.
    """

    node: int
    parent: int
    depth: int
    answer: str
    x: float
    y: float
    edge: str
    answer_at: tuple[float, float]
    rows: str
    share: str
    question: str = ""
    lines: tuple[str, ...] = ()
    drop: float = 0.0
    bars: tuple[Bar, ...] = ()
    children: tuple[Node, ...] = ()
    colour: str = ""
    rule: str = ""
    small: Panel | None = None
    row: Panel | None = None
    large: Panel | None = None
    facts: tuple[tuple[str, str], ...] = ()
    leaves: tuple[int, ...] = ()

    @property
    def is_leaf(self) -> bool:
        """Whether it has no children."""
        return not self.children


@dataclass(frozen=True)
class Drawing:
    """The tree, its measures, and its nodes in preorder."""

    root: Node
    nodes: tuple[Node, ...]
    shape: Shape
    width: float
    height: float

    @property
    def measures(self) -> dict[str, Any]:
        """The shape for the script."""
        return asdict(self.shape)

    @property
    def leaves(self) -> list[Node]:
        """Leaves, left to right."""
        return [node for node in self.nodes if node.is_leaf]


def draw(tree: FittedTree, shown: Panels, table: Table) -> Drawing:
    """Diagram and outline of a fitted tree."""
    structure = tree.tree_
    questions = tree.splits_
    shape, texts = _shape(structure, questions, shown.height)
    layout = place(structure, shape.slot)
    across = shape.margin + layout.x
    # Leaves stand in one line.
    end = shape.margin + (layout.levels - 1) * shape.level
    along = np.where(structure.is_leaf, end, shape.margin + layout.depth * shape.level)
    colours = leaf_colours(tree)
    soft = isinstance(structure, SoftTree)
    rules = [""] * structure.n_leaves if soft else list(map(rule_text, leaf_rules(tree)))
    order = {node: k for k, node in enumerate(structure.leaves.tolist())}
    facts = tree.leaves_.facts()
    terms = _terms(structure, tree.encoder_) if soft else {}
    most = max(map(len, texts.values()), default=0)
    found: dict[int, Node] = {}
    # From the last node up: children before their parents.
    for node in range(structure.node_count - 1, -1, -1):
        parent = int(layout.parent[node])
        answer = "" if parent < 0 else "no"
        if parent >= 0 and structure.children_left[parent] == node:
            answer = "yes"
        is_leaf = node in order
        width = shape.leaf_width if is_leaf else shape.split_width
        height = shape.leaf_height if is_leaf else shape.split_height
        start, middle = float(along[node]), float(across[node])
        corner = (middle - width / 2, start) if shape.down else (start, middle - height / 2)
        edge, answer_at = "", (0.0, 0.0)
        if parent >= 0:
            above = float(along[parent]), float(across[parent])
            edge, answer_at = _edge(shape, above, (start, middle), answer)
        count = int(structure.n_node_samples[node])
        common: dict[str, Any] = {
            "node": node,
            "parent": parent,
            "depth": int(layout.depth[node]),
            "answer": answer,
            "x": round(corner[0], 1),
            "y": round(corner[1], 1),
            "edge": edge,
            "answer_at": answer_at,
            "rows": f"{count} row{'' if count == 1 else 's'}",
            "share": _percent(count, int(structure.n_node_samples[0])),
        }
        if is_leaf:
            k = order[node]
            found[node] = Node(
                **common,
                lines=_leaf_lines(tree, facts[k], k, count),
                colour=colours[node],
                rule=rules[k],
                small=shown.make(k, SMALL if shape.down else ROW),
                row=shown.make(k, ROW),
                large=shown.make(k, LARGE),
                facts=tuple((column.head, column.cells[k].whole) for column in table.columns),
                leaves=(node,),
            )
        else:
            left = found[int(structure.children_left[node])]
            right = found[int(structure.children_right[node])]
            found[node] = Node(
                **common,
                question=questions[node],
                lines=tuple(texts[node]),
                drop=0.0 if soft else (most - len(texts[node])) * _LINE / 2,
                bars=terms.get(node, ()),
                children=(left, right),
                leaves=(*left.leaves, *right.leaves),
            )
    wide = layout.width + 2 * shape.margin
    deep = end + shape.margin + (shape.leaf_height if shape.down else shape.leaf_width)
    nodes = tuple(found[node] for node in range(structure.node_count))
    return Drawing(found[0], nodes, shape, *((wide, deep) if shape.down else (deep, wide)))


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:.3g} %" if whole else "0 %"


def _shape(
    structure: Any, questions: dict[int, str], panel: float
) -> tuple[Shape, dict[int, list[str]]]:
    """Measures of the diagram, and the questions in lines that fit its boxes."""
    down = structure.n_leaves <= _MOST_DOWN
    width = _WIDEST if down else _WIDEST_ROW
    bars = 0.0
    if isinstance(structure, SoftTree):
        texts: dict[int, list[str]] = {node: [] for node in questions}
        bars = _TERMS * _LINE
    else:
        texts = {
            node: wrapped(text, width - 20, _FONT, _MOST_LINES) for node, text in questions.items()
        }
        lines = (line for text in texts.values() for line in text)
        widest = max((text_width(line, _FONT) for line in lines), default=0.0)
        width = round(min(width, max(84.0, widest + 22)))
    most = max((len(text) for text in texts.values()), default=1)
    height = (most + 1) * _LINE + 10 + bars
    return Shape(
        down=down,
        slot=154.0 if down else 50.0,
        level=height + 36 if down else width + 42,
        split_width=width,
        split_height=height,
        leaf_width=146.0 if down else 336.0,
        leaf_height=61.0 + panel if down else 44.0,
    ), texts


def _edge(
    shape: Shape, above: tuple[float, float], below: tuple[float, float], answer: str
) -> tuple[str, tuple[float, float]]:
    """Path from a split to its child, and the place of the answer beside it.

    Places are (along, across): top and middle of a box, or its left edge and middle. The script
    draws the same when subtrees are folded.
    """
    (start, middle), (end, at) = above, below
    if shape.down:
        start += shape.split_height
        turn = start + 10
        beside = at - 5 if answer == "yes" else at + 5
        return f"M{middle:g} {start:g}V{turn:g}H{at:g}V{end:g}", (beside, turn + 14)
    start += shape.split_width
    turn = start + 12
    return f"M{start:g} {middle:g}H{turn:g}V{at:g}H{end:g}", (turn + 4, at - 4)


def _leaf_lines(
    tree: FittedTree, fact: Mapping[str, Any], place: int, count: int
) -> tuple[str, ...]:
    """The two lines of a leaf's box: what is predicted, and of how many rows."""
    leaves: Any = tree.leaves_
    rows = f"{count} row{'' if count == 1 else 's'}"
    if isinstance(leaves, SurvivalLeaves):
        events = fact["n_events"]
        median = (
            "median not reached" if fact["median"] is None else f"median {number(fact['median'])}"
        )
        return median, f"{rows}, {events} event{'' if events == 1 else 's'}"
    if isinstance(leaves, LabelLeaves):
        return str(fact["label"]), rows
    if isinstance(leaves, MeanLeaves):
        return number(float(leaves.predicted[place])), rows
    value = fact.get("value")
    if isinstance(value, (int, float)):
        return number(value), rows
    return leaves.text(fact) if value is None else str(value), rows


def _terms(tree: SoftTree, encoder: Any) -> dict[int, tuple[Bar, ...]]:
    """Largest weights of every soft split, in units of the scaled columns; towards yes or no."""
    largest = float(np.abs(tree.weights).max(initial=0.0)) or 1.0
    found = {}
    for node, weights in zip(tree.splits.tolist(), tree.weights, strict=True):
        order = np.argsort(-np.abs(weights), kind="stable")[:_TERMS]
        found[node] = tuple(
            Bar(
                name=encoder.names[j],
                value=f"{weights[j]:+.3g}",
                start=round(0.5 + min(0.0, weights[j] / largest) / 2, 4),
                width=round(abs(weights[j]) / largest / 2, 4),
                colour=LABELS[0] if weights[j] > 0 else LABELS[1],
            )
            for j in order.tolist()
            if weights[j] != 0
        )
    return found
