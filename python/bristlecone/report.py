"""A fitted tree as one HTML page that needs nothing else: no script, font or network.

The page of a survival tree holds the tree with the survival curve of every leaf, all curves in one
plot, the leaves as a table, what the search proved and over which questions, and the settings;
that of any other tree has the tree as text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bristlecone._core import __version__
from bristlecone.encoder.rules import leaf_rules, rule_text
from bristlecone.estimators.base import BaseTree
from bristlecone.export import export_dict, export_text
from bristlecone.leaves.base import median_text, median_texts, model_median_text
from bristlecone.leaves.survival import StepLeaves
from bristlecone.search.certificate import Certificate

__all__ = ["certificate", "html_report"]

_LEAF_WIDTH = 192
_LEAF_HEIGHT = 184
_LEVEL = 96
_MARGIN = 12
_PLOT = (720, 320)

_STYLE = """
:root { color-scheme: light; }
body { margin: 2rem auto; max-width: 72rem; padding: 0 1.5rem; color: #1c2733; background: #fff;
  font: 16px/1.5 system-ui, "Segoe UI", Helvetica, Arial, sans-serif; }
h1 { font-size: 1.6rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2.2rem 0 .6rem; }
.about { color: #55636f; margin: .2rem 0 0; }
.proof { border-left: 4px solid #2f7d5b; background: #f1f8f4; padding: .8rem 1.1rem; }
.proof.open { border-color: #b7791f; background: #fdf7ea; }
.proof p { margin: 0 0 .5rem; font-weight: 600; }
.tree { overflow-x: auto; } svg { height: auto; }
table { border-collapse: collapse; font-size: .92rem; }
th, td { text-align: left; padding: .3rem .9rem .3rem 0; border-bottom: 1px solid #dfe5ea;
  vertical-align: top; }
th { font-weight: 600; color: #55636f; } td.number, th.number { text-align: right; }
pre { font: .86rem/1.45 ui-monospace, Menlo, Consolas, monospace; white-space: pre-wrap; }
.proof table { font-size: .9rem; } .proof td, .proof th { border: 0; padding: .05rem 1.2rem 0 0; }
.swatch { display: inline-block; width: .8em; height: .8em; border-radius: 2px; }
svg text { font-family: inherit; fill: #1c2733; } svg .faint { fill: #55636f; }
footer { margin-top: 2.5rem; color: #55636f; font-size: .85rem; }
@media print { body { margin: 0; max-width: none; font-size: 11pt; } h2 { break-after: avoid; }
  .tree { overflow: visible; } svg { min-width: 0 !important; }
  svg, table, .proof { break-inside: avoid; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } }
"""


def html_report(
    estimator: BaseTree,
    *,
    title: str | None = None,
    about: str = "",
    time_label: str = "time",
    settings: Mapping[str, Any] | None = None,
) -> str:
    """HTML page about a fitted tree.

    A survival tree with yes-no questions is drawn, with the curve of every leaf; any other tree of
    this package is shown as text. Both come with what was proven, the questions, and the settings.

    Parameters
    ----------
    estimator : fitted tree
    title, about : str
        Headline (by default the kind of tree), and a line below it.
    time_label : str
        Label of the time axes.
    settings : mapping, optional
        Rows of the table of settings; the parameters of the fit by default.

    Returns
    -------
    str
        Complete document. All text from outside is escaped.

    Raises
    ------
    TypeError
        When the estimator is no tree of this package.
    NotFittedError, InfeasibleError
        When it has no tree.

    See Also
    --------
    bristlecone.export.export_text : The tree as text.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> from bristlecone.report import html_report
    >>> tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])
    >>> html_report(tree)[:15]
    '<!DOCTYPE html>'
    """
    if not isinstance(estimator, BaseTree):
        raise TypeError(
            f"html_report shows the fitted trees of bristlecone; got a {type(estimator).__name__}"
        )
    estimator.check_fitted()
    leaves = estimator.leaves_
    if title is None:
        title = "Survival tree" if isinstance(leaves, StepLeaves) else type(estimator).__name__
    if settings is None:
        settings = estimator.certificate_.parameters
    proof = _proof(estimator.certificate_) if estimator.certificate_.is_searched else []
    if isinstance(leaves, StepLeaves):
        sections = _survival_sections(estimator, time_label, proof)
        shrunk = f"""
It is predicted as shrunk along the path by {leaves.shrinkage:g} pseudo-events.""" * (
            leaves.shrinkage > 0 and leaves.by_theta
        )
        note = f""" θ is the hazard of a leaf relative to all rows: above 1,
events come earlier.{shrunk} The median is the Kaplan–Meier median of the leaf with its 95 %
confidence interval (Brookmeyer and Crowley, log-log scale), "-" where a limit is not reached."""
    else:
        sections = [("Tree", f"<pre>{escape(export_text(estimator))}</pre>"), *proof]
        note = ""
    sections += [
        ("Methods", f"<pre>{escape(estimator.describe())}</pre>"),
        ("Settings", _pairs((str(name), str(value)) for name, value in settings.items())),
    ]
    body = "\n".join(f"<h2>{heading}</h2>\n{content}" for heading, content in sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>{escape(title)}</h1>
<p class="about">{escape(about)}</p>
{body}
<footer>bristlecone {escape(__version__)}.{note}</footer>
</body>
</html>
"""


def certificate(estimator: BaseTree) -> tuple[str, list[tuple[str, str]]]:
    """What the search proved: a sentence, and the numbers behind it as (name, value) pairs.

    Parameters
    ----------
    estimator : fitted tree that was searched for

    See Also
    --------
    html_report : A page that contains it.

    Examples
    --------
    >>> from bristlecone import OptimalTreeRegressor
    >>> from bristlecone.report import certificate
    >>> tree = OptimalTreeRegressor(max_depth=1).fit([[1.0], [2.0], [8.0]], [1.0, 3.0, 11.0])
    >>> certificate(tree)[0]
    'optimal among trees over these 2 binary features'
    """
    found = estimator.certificate_
    return found.sentence, found.numbers


def _proof(found: Certificate) -> list[tuple[str, str]]:
    """Section about what the search proved."""
    sentence = found.sentence
    proven = "" if found.status == "optimal" else " open"
    return [
        (
            "What was proved",
            f'<div class="proof{proven}"><p>{escape(sentence[0].upper() + sentence[1:])}.</p>\n'
            f"{_pairs(found.numbers)}</div>",
        )
    ]


def _survival_sections(
    estimator: BaseTree, time_label: str, proof: list[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Tree, proof, curves and leaves of a survival tree."""
    leaves = _leaves(estimator)
    root = _layout(export_dict(estimator), leaves)
    told = "Solid: survival curve the tree predicts."
    step: Any = estimator.leaves_
    if step.curve != "kaplan-meier" or step.shrinkage > 0:
        told += " Dashed: Kaplan–Meier estimate of the leaf's own rows."
    tree = f'<div class="tree">{_tree_svg(root, leaves)}</div>\n<p class="about">{told}</p>'
    return [
        ("Tree", tree + _missing(estimator)),
        *proof,
        ("Survival by leaf", _plot_svg(leaves, time_label)),
        ("Leaves", _leaf_table(leaves)),
    ]


def _missing(estimator: BaseTree) -> str:
    text = estimator.missing_text()
    return f'<p class="about">Missing in training: {escape(text)}.</p>\n' if text else ""


@dataclass
class _Leaf:
    """A leaf as it is drawn; curves are values on ``_grid`` times, all in [0, 1]."""

    node: int
    colour: str
    predicted: NDArray[np.float64]
    kaplan_meier: NDArray[np.float64]
    times: NDArray[np.float64]
    where: str
    weighted: bool
    facts: dict[str, Any] = field(default_factory=dict)


@dataclass
class _Node:
    """A node with the middle of its top edge; leaves have no children."""

    node: dict[str, Any]
    x: float
    depth: int
    children: list[_Node] = field(default_factory=list)


def _leaves(estimator: BaseTree) -> dict[int, _Leaf]:
    # One value per half pixel is all a plot can show, however many event times there are.
    step: Any = estimator.leaves_
    times = np.linspace(0.0, float(step.unique_times[-1]), 2 * _LEAF_WIDTH)
    predicted = step.survival_at(times)
    statistics, weighted = step.statistics, estimator.tree_.is_weighted
    order = np.argsort(np.argsort([leaf.theta for leaf in statistics], kind="stable"))
    leaves = {}
    where = map(rule_text, leaf_rules(estimator))
    for leaf, curve, rank, rule in zip(statistics, predicted, order, where, strict=True):
        share = rank / max(1, len(statistics) - 1)
        km = np.asarray(leaf.curve(times))
        colour = f"hsl({215 - 205 * share:.0f} 62% 42%)"
        leaves[leaf.node] = _Leaf(leaf.node, colour, curve, km, times, rule, weighted)
    return leaves


def _layout(tree: dict[str, Any], leaves: dict[int, _Leaf]) -> _Node:
    """Leaves side by side, every split above the middle of its children."""
    placed = 0

    def place(node: dict[str, Any], depth: int) -> _Node:
        nonlocal placed
        if "question" not in node:
            leaves[node["node"]].facts = node
            placed += 1
            return _Node(node, _MARGIN + (placed - 0.5) * _LEAF_WIDTH, depth)
        children = [place(node[answer], depth + 1) for answer in ("yes", "no")]
        return _Node(node, (children[0].x + children[1].x) / 2, depth, children)

    return place(tree, 0)


def _tree_svg(root: _Node, leaves: dict[int, _Leaf]) -> str:
    drawn: list[str] = []
    depth = 0

    def draw(node: _Node) -> None:
        nonlocal depth
        depth = max(depth, node.depth)
        top = _MARGIN + node.depth * _LEVEL
        for child, answer in zip(node.children, ("yes", "no"), strict=bool(node.children)):
            below = top + _LEVEL
            middle = (top + 46 + below) / 2
            drawn.append(
                f'<path d="M{node.x:.1f} {top + 46}V{middle:.1f}H{child.x:.1f}V{below}" '
                'fill="none" stroke="#9aa7b2"/>'
                + _text(
                    child.x + (-6 if answer == "yes" else 6),
                    below - 8,
                    answer,
                    12,
                    "end" if answer == "yes" else "start",
                    faint=True,
                )
            )
            draw(child)
        if node.children:
            drawn.append(_split_box(node, top))
        else:
            drawn.append(_leaf_box(node, top, leaves[node.node["node"]]))

    draw(root)
    width = 2 * _MARGIN + len(leaves) * _LEAF_WIDTH
    height = 2 * _MARGIN + depth * _LEVEL + _LEAF_HEIGHT
    return _svg(width, height, "The tree", drawn)


def _split_box(node: _Node, top: float) -> str:
    question = _shortened(node.node["question"])
    # 8.2 units per character are enough for bold text of size 14 in every font asked for.
    width = max(90.0, 8.2 * len(question) + 24)
    box = f'<rect x="{node.x - width / 2:.1f}" y="{top}" width="{width:.1f}" height="46" rx="6" '
    return (
        box
        + 'fill="#f3f6f9" stroke="#9aa7b2"/>'
        + _text(node.x, top + 20, question, 14, bold=True)
        + _text(node.x, top + 37, f"{node.node['n_samples']} rows", 12, faint=True)
    )


def _shortened(question: str, most: int = 38) -> str:
    """The question, or both its ends: boxes side by side must not touch."""
    half = (most - 1) // 2
    return question if len(question) <= most else f"{question[:half]}…{question[-half:]}"


def _leaf_box(node: _Node, top: float, leaf: _Leaf) -> str:
    width = _LEAF_WIDTH - 12
    left = node.x - width / 2
    facts = leaf.facts
    lines = [f"{facts['n_samples']} rows, {facts['n_events']} events"]
    if leaf.weighted:
        lines.append(f"weight {facts['weight']:.6g}, events {facts['event_weight']:.6g}")
    median, *interval = median_texts(facts)
    lines += [f"median {median}", *(f"95 % CI {limits}" for limits in interval)]
    below = 62 + 16 * (len(lines) - 2)
    area = (left + 12, top + below, width - 24, _LEAF_HEIGHT - 14 - below)
    return (
        f'<rect x="{left:.1f}" y="{top}" width="{width}" height="{_LEAF_HEIGHT}" rx="6" '
        f'fill="#fff" stroke="{leaf.colour}" stroke-width="1.5"/>'
        + _text(node.x, top + 19, f"leaf {leaf.node}: {_theta(facts)}", 13, bold=True)
        + "".join(_text(node.x, top + 36 + 16 * k, line, 12) for k, line in enumerate(lines))
        + _axes(area)
        + _curves(leaf, area)
    )


def _theta(facts: dict[str, Any]) -> str:
    """θ of the rows of a leaf, and as it is predicted where that differs."""
    shrunk = f" → {facts['shrunk_theta']:.3g}" if "shrunk_theta" in facts else ""
    return f"θ = {facts['theta']:.4g}{shrunk}"


def _plot_svg(leaves: dict[int, _Leaf], time_label: str) -> str:
    width, height = _PLOT
    area = (48.0, 14.0, width - 62.0, height - 62.0)
    left, top, across, down = area
    last = float(next(iter(leaves.values())).times[-1])
    drawn = [_axes(area)]
    for survival in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = top + (1 - survival) * down
        drawn.append(f'<path d="M{left} {y:.1f}h{across}" stroke="#e6ebef"/>')
        drawn.append(_text(left - 6, y + 4, f"{survival:g}", 12, "end", faint=True))
    for time in _ticks(last):
        drawn.append(
            _text(left + across * time / last, top + down + 18, f"{time:g}", 12, faint=True)
        )
    drawn.append(_text(left + across / 2, height - 8, time_label, 13))
    drawn += [_curves(leaf, area) for leaf in leaves.values()]
    return _svg(width, height, "Survival by leaf", drawn)


def _ticks(last: float) -> list[float]:
    """Round numbers from 0 to at most ``last``, four to ten of them."""
    if last <= 0:
        return []
    decade = 10.0 ** np.floor(np.log10(last))
    step = decade * next(part for part in (0.2, 0.5, 1.0, 2.0) if last / (part * decade) < 10)
    return [float(k * step) for k in range(int(last / step) + 1)]


def _axes(area: tuple[float, float, float, float]) -> str:
    left, top, across, down = area
    return f'<path d="M{left:.1f} {top:.1f}v{down:.1f}h{across:.1f}" fill="none" stroke="#9aa7b2"/>'


def _curves(leaf: _Leaf, area: tuple[float, float, float, float]) -> str:
    dashed = _curve(leaf.kaplan_meier, area)
    solid = _curve(leaf.predicted, area)
    return (
        f'<path d="{dashed}" fill="none" stroke="{leaf.colour}" stroke-opacity=".55" '
        f'stroke-dasharray="3 3"/><path d="{solid}" fill="none" stroke="{leaf.colour}" '
        'stroke-width="1.8"/>'
    )


def _curve(values: NDArray[np.float64], area: tuple[float, float, float, float]) -> str:
    """Path of a step function given on an even grid, drawn where it changes."""
    left, top, across, down = area
    x = left + np.linspace(0.0, across, len(values))
    y = top + (1 - values) * down
    path = [f"M{x[0]:.1f} {y[0]:.1f}"]
    for k in np.flatnonzero(np.diff(values)) + 1:
        path.append(f"H{x[k]:.1f}V{y[k]:.1f}")
    return "".join([*path, f"H{x[-1]:.1f}"])


def _leaf_table(leaves: dict[int, _Leaf]) -> str:
    weighted = any(leaf.weighted for leaf in leaves.values())
    weights = [("weight", "number"), ("of events", "number")] if weighted else []
    shrunk = any("shrunk_theta" in leaf.facts for leaf in leaves.values())
    head = "".join(
        f'<th class="{kind}">{name}</th>'
        for name, kind in (
            ("", ""),
            ("leaf", "number"),
            ("rows", "number"),
            ("events", "number"),
            *weights,
            ("θ", "number"),
            *[("shrunk θ", "number")] * shrunk,
            ("median", "number"),
            ("model median", "number"),
            ("where", ""),
        )
    )
    rows = []
    for leaf in leaves.values():
        facts = leaf.facts
        numbers = [
            leaf.node,
            facts["n_samples"],
            facts["n_events"],
            *(f"{facts[name]:.6g}" for name in ("weight", "event_weight") if weighted),
            *(f"{facts[name]:.4g}" for name in ("theta", "shrunk_theta") if name in facts),
            median_text(facts),
            model_median_text(facts),
        ]
        rows.append(
            f'<tr><td><span class="swatch" style="background: {leaf.colour}"></span></td>'
            + "".join(f'<td class="number">{value}</td>' for value in numbers)
            + f"<td>{escape(leaf.where)}</td></tr>"
        )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table>"


def _pairs(pairs: Iterable[tuple[str, str]]) -> str:
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in pairs
    )
    return f"<table>{rows}</table>"


def _text(
    x: float,
    y: float,
    content: str,
    size: int,
    anchor: str = "middle",
    *,
    bold: bool = False,
    faint: bool = False,
) -> str:
    weight = ' font-weight="600"' if bold else ""
    shade = ' class="faint"' if faint else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}"{weight}{shade}>'
        f"{escape(content)}</text>"
    )


def _svg(width: float, height: float, label: str, drawn: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" '
        # Shrinks to the page, but only as far as it can be read.
        f'style="width: {width:.0f}px; max-width: 100%; min-width: {0.7 * width:.0f}px">'
        f"{''.join(drawn)}</svg>"
    )
