"""The tree as a diagram and as an outline: nodes with their positions, texts and panels."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from bristlecone._data.texts import counted, percent
from bristlecone._encoder.rules import leaf_rules, rule_text
from bristlecone._view.layout import edge, place
from bristlecone._view.ruler import Ruler, shortened
from bristlecone._view.view import BarRow, View, bar_rows, split_weights
from bristlecone.report._panels import LARGE, ROW, SMALL, Panel, height_of, panel_of
from bristlecone.report._table import Table

# With more leaves than this, the tree is drawn from left to right, with one row per leaf.
_MOST_DOWN = 8
# Largest width of a split's box, in either direction.
_WIDEST, _WIDEST_ROW = 200.0, 156.0
# Font sizes of questions, headlines and counts, as in drawn.css.
_QUESTION, _TITLE, _FAINT = 13.0, 12.5, 11.5
_MOST_LINES = 4
_LINE = 16.0
_WEIGHTS = 4


@dataclass(frozen=True)
class Shape:
    """Measures of the diagram, which the script also uses when subtrees are folded.

    Parameters
    ----------
    down : bool
        Whether the tree grows downwards; else to the right.
    slot : float
        Distance of neighbouring leaves.
    level : float
        Distance of levels.
    split_width, split_height, leaf_width, leaf_height : float
        Sizes of the boxes.
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

    def box(self, *, is_leaf: bool) -> tuple[float, float]:
        """Width and height."""
        if is_leaf:
            return self.leaf_width, self.leaf_height
        return self.split_width, self.split_height


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node of the tree.

    Parameters
    ----------
    node, parent : int
    answer : str
        Answer of the rows at the split above; "" at the root.
    x, y : float
        Upper left corner of its box.
    edge : str
        Path from the parent's box.
    answer_at : tuple of (float, float)
        Position of the text of the answer.
    rows, share : str
        Training rows, and their share of all.
    question : str
        Question of a split; "" for a leaf.
    lines : list of str
        Text of the box.
    drop : float
        Distance of the text from the top of a box that has room for more lines.
    bars : list of BarRow
        Largest weights of a soft split.
    children : tuple of Node
        Children of a split: yes, then no.
    colour, rule : str
        Colour and rule of a leaf.
    small, row, large : Panel
        Panels of a leaf in the diagram, in the outline, and by itself.
    facts : list of (str, str)
        Row of a leaf in the leaf table.
    leaves : tuple of int
        Node ids of the leaves below, or its own.
    """

    node: int
    parent: int
    answer: str
    x: float
    y: float
    edge: str
    answer_at: tuple[float, float]
    rows: str
    share: str
    lines: list[str]
    leaves: tuple[int, ...]
    question: str = ""
    drop: float = 0.0
    bars: list[BarRow] | None = None
    children: tuple[Node, ...] = ()
    colour: str = ""
    rule: str = ""
    small: Panel | None = None
    row: Panel | None = None
    large: Panel | None = None
    facts: list[tuple[str, str]] | None = None

    @property
    def is_leaf(self) -> bool:
        """Whether it has no children."""
        return not self.children


@dataclass(frozen=True)
class Drawing:
    """The tree, its measures, and its nodes in preorder."""

    nodes: tuple[Node, ...]
    shape: Shape
    width: float
    height: float

    @property
    def root(self) -> Node:
        """Node 0."""
        return self.nodes[0]

    @property
    def measures(self) -> dict[str, Any]:
        """The shape for the script."""
        return asdict(self.shape)

    @property
    def leaves(self) -> list[Node]:
        """Leaves, left to right."""
        return [node for node in self.nodes if node.is_leaf]


def draw(view: View, table: Table) -> Drawing:
    """Diagram and outline of a fitted tree."""
    structure, tree, ruler = view.structure, view.tree, Ruler()
    questions = tree.splits_
    shape, texts = _shape(view, questions, ruler)
    layout = place(structure, shape.slot)
    across = shape.margin + layout.x
    # Leaves are in one line.
    end = shape.margin + structure.max_depth * shape.level
    along = np.where(structure.is_leaf, end, shape.margin + structure.node_depth * shape.level)
    rules = [""] * len(view.n) if view.is_soft else list(map(rule_text, leaf_rules(tree)))
    weights = split_weights(tree, _WEIGHTS) if view.is_soft else {}
    most = max(map(len, texts.values()), default=0)
    found: dict[int, Node] = {}
    # From the last node up, so that children come before their parents.
    for node in range(structure.node_count - 1, -1, -1):
        parent, is_leaf = int(layout.parent[node]), bool(structure.is_leaf[node])
        width, height = shape.box(is_leaf=is_leaf)
        start, middle = float(along[node]), float(across[node])
        corner = (middle - width / 2, start) if shape.down else (start, middle - height / 2)
        path, answer, answer_at = "", "", (0.0, 0.0)
        if parent >= 0:
            answer = "yes" if structure.children_left[parent] == node else "no"
            box = shape.split_height if shape.down else shape.split_width
            above = float(along[parent]) + box, float(across[parent])
            path, answer_at = _edge(shape.down, above, (start, middle), answer)
        n = int(structure.n_node_samples[node])
        common: dict[str, Any] = {
            "node": node,
            "parent": parent,
            "answer": answer,
            "x": round(corner[0], 1),
            "y": round(corner[1], 1),
            "edge": path,
            "answer_at": answer_at,
            "rows": counted(n, "row"),
            "share": percent(n / max(int(structure.n_node_samples[0]), 1)),
        }
        if is_leaf:
            k = view.nodes.index(node)
            found[node] = Node(
                **common,
                lines=[view.leaves[k].headline, view.rows[k].words],
                colour=view.colours[k],
                rule=rules[k],
                small=panel_of(view, k, SMALL if shape.down else ROW),
                row=panel_of(view, k, ROW),
                large=panel_of(view, k, LARGE),
                facts=[(column.head, column.cells[k].whole) for column in table.columns],
                leaves=(node,),
            )
            continue
        left = found[int(structure.children_left[node])]
        right = found[int(structure.children_right[node])]
        bars = weights[node][0] if view.is_soft else []
        found[node] = Node(
            **common,
            question=questions[node],
            lines=texts[node],
            drop=0.0 if view.is_soft else (most - len(texts[node])) * _LINE / 2,
            bars=bar_rows(bars, (-1.0, 1.0), shape.split_width - 12, ruler, 10.5)[0],
            children=(left, right),
            leaves=(*left.leaves, *right.leaves),
        )
    wide = layout.width + 2 * shape.margin
    deep = end + shape.margin + (shape.leaf_height if shape.down else shape.leaf_width)
    nodes = tuple(found[node] for node in range(structure.node_count))
    return Drawing(nodes, shape, *((wide, deep) if shape.down else (deep, wide)))


def _shape(
    view: View, questions: dict[int, str], ruler: Ruler
) -> tuple[Shape, dict[int, list[str]]]:
    """Measures of the diagram, and the questions in lines that fit its boxes."""
    down = len(view.n) <= _MOST_DOWN
    width = _WIDEST if down else _WIDEST_ROW
    texts: dict[int, list[str]] = {node: [] for node in questions}
    if not view.is_soft:
        for node, text in questions.items():
            texts[node] = ruler.wrap(text, width - 20, _QUESTION, bold=True, most=_MOST_LINES)
        lines = [line for text in texts.values() for line in text]
        width = round(min(width, max(84.0, ruler.widest(lines, _QUESTION, bold=True) + 22)))
    most = max((len(text) for text in texts.values()), default=1)
    height = (most + 1) * _LINE + 10 + (_WEIGHTS * _LINE if view.is_soft else 0.0)
    # Boxes of leaves have room for their counts, and for headlines up to a limit.
    headlines = [shortened(leaf.headline) for leaf in view.leaves]
    titles = ruler.widest(headlines, _TITLE, bold=True)
    counts = [
        rows.words if down else f"leaf {node}, {rows.words}"
        for node, rows in zip(view.nodes, view.rows, strict=True)
    ]
    room = round(max(ruler.widest(counts, _FAINT), min(titles, 180.0)))
    leaf = max(146.0, room + 10.0) if down else room + 24.0 + ROW.width
    return Shape(
        down=down,
        slot=leaf + 8 if down else 50.0,
        level=height + 36 if down else width + 42,
        split_width=width,
        split_height=height,
        leaf_width=leaf,
        leaf_height=61.0 + height_of(view) if down else 44.0,
    ), texts


def _edge(
    down: bool, above: tuple[float, float], below: tuple[float, float], answer: str
) -> tuple[str, tuple[float, float]]:
    """Path from the box of a split to its child, and the position of the answer next to it.

    Positions are (along, across). The script draws the same when subtrees are folded.
    """
    points = edge(above, below, 10 if down else 12)
    turn, at = points[2]
    if not down:
        path = "L".join(f"{along:g} {across:g}" for along, across in points)
        return f"M{path}", (turn + 4, at - 4)
    path = "L".join(f"{across:g} {along:g}" for along, across in points)
    return f"M{path}", (at - 5 if answer == "yes" else at + 5, turn + 14)
