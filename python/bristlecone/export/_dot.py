"""Trees for Graphviz."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bristlecone._data.texts import plain_number
from bristlecone._view.fitted import check_tree
from bristlecone._view.palette import FAINT, INK, PAPER, RULE, leaf_colours

_HEAD = f"""digraph tree {{
  node [shape=box, style="rounded", color="{RULE}", fontcolor="{INK}", fontname="sans-serif",
    margin="0.2,0.1"]
  edge [color="{FAINT}", fontcolor="{FAINT}", fontname="sans-serif"]
"""


def export_dot(tree: Any) -> str:
    r"""Return a fitted tree in the DOT language of Graphviz.

    Parameters
    ----------
    tree : fitted tree

    Returns
    -------
    str
        A graph for programs such as ``dot -Tsvg``. Splits have "yes" to the left and "no" to the
        right. Leaves show their number as from ``apply``, their training rows and their prediction,
        in the colours of the other pictures. Special characters in names are escaped.

    Raises
    ------
    TypeError
        If ``tree`` is not a fitted tree.
    NotFittedError, InfeasibleError
        If there is no tree.

    See Also
    --------
    export_text : The tree as plain text.
    bristlecone.plot.plot_tree : The tree as a picture, with a panel in every leaf.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> from bristlecone.export import export_dot
    >>> tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])
    >>> for line in export_dot(tree).splitlines()[4:-1]:
    ...     print(line.split(" [")[0], line.partition("label=")[2])
      0 "x0 <= 5"]
      1 "leaf 1, n=2\n2 (variance 1)"]
      2 "leaf 2, n=1\n11 (variance 0)"]
      0 -> 1 " yes "]
      0 -> 2 " no "]
    """
    return "".join([_HEAD, *_statements(check_tree(tree, "export_dot")), "}\n"])


def _statements(tree: Any) -> Iterator[str]:
    structure, splits, colours = tree.tree_, tree.splits_, leaf_colours(tree)
    facts = dict(zip(structure.leaves.tolist(), tree.leaves_.facts(), strict=True))
    edges = []
    for node in range(structure.node_count):
        if node in splits:
            yield f"  {node} [label={_quoted(splits[node])}]\n"
            left, right = structure.children_left[node], structure.children_right[node]
            edges.append(f'  {node} -> {left} [label=" yes "]\n')
            edges.append(f'  {node} -> {right} [label=" no "]\n')
            continue
        weight = structure.weighted_n_node_samples[node]
        weighed = f" (weight {plain_number(weight, 6)})" if structure.is_weighted else ""
        head = f"leaf {node}, n={structure.n_node_samples[node]}{weighed}"
        label = _quoted(head, tree.leaves_.text(facts[node]))
        fill = f'style="rounded,filled", color="{colours[node]}", fillcolor="{colours[node]}"'
        yield f'  {node} [{fill}, fontcolor="{PAPER}", label={label}]\n'
    yield from edges


def _quoted(*lines: str) -> str:
    """A label of these lines; Graphviz reads escapes, and entities of HTML, in every label."""
    return '"' + r"\n".join(map(_escaped, lines)) + '"'


def _escaped(text: str) -> str:
    printable = "".join(sign if sign.isprintable() else " " for sign in text)
    return printable.replace("&", "&amp;").replace("\\", "\\\\").replace('"', '\\"')
