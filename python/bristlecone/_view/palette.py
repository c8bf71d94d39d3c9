"""Colours: one ramp ordered by risk, one set for labels, greys; all safe for the colour-blind.

The lightness of the ramp falls from its first colour to its last, so that the order is seen
without hues, too, and in print. Every colour has a contrast of at least 3 to white paper, which
lines need (WCAG 2.2, 1.4.11).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

# Colours of text, of lesser text, of lines between things, and of the ground.
INK, FAINT, RULE, PAPER = "#1c2733", "#55636f", "#c3ccd4", "#ffffff"

# After Okabe and Ito, without yellow and the light blue; those too light for lines darkened.
LABELS = ("#0072b2", "#d55e00", "#3c3c3c", "#b8609a", "#00856b", "#6b4f00", "#4a90c2", "#8b1a1a")

_MARKERS = "osD^"

# From the lowest risk to the highest.
_RAMP = ("#2aa198", "#3f88c5", "#7560cf", "#9c2f86", "#8f1146", "#5c0012")
# Place on the ramp of a leaf that is the only one.
_ALONE = 0.25


def ramp(shares: Iterable[float]) -> list[str]:
    """Colours of the ramp at places between 0 (lowest risk) and 1."""
    anchors = np.array([[int(colour[k : k + 2], 16) for k in (1, 3, 5)] for colour in _RAMP])
    at = np.linspace(0, 1, len(_RAMP))
    found = []
    for share in shares:
        channels = (round(float(np.interp(share, at, channel))) for channel in anchors.T)
        found.append("#" + "".join(f"{channel:02x}" for channel in channels))
    return found


def label_colour(place: int) -> str:
    """Colour of a label; from the ninth on they repeat."""
    return LABELS[place % len(LABELS)]


def label_marker(place: int) -> str:
    """Marker of a label for matplotlib; labels of the same colour have different ones."""
    return _MARKERS[place // len(LABELS) % len(_MARKERS)]


def leaf_colours(tree: Any) -> dict[int, str]:
    """Colour of every leaf of a fitted tree, by node id.

    Leaves of labels have the colour of their label, others are ordered: survival trees by risk,
    regressors by the prediction, custom tasks by what they predict, or their cost. Equal leaves
    have equal colours.
    """
    leaves, nodes = tree.leaves_, tree.tree_.leaves.tolist()
    if leaves.has_labels:
        return dict(zip(nodes, map(label_colour, leaves.order.tolist()), strict=True))
    rank = np.unique(leaves.order, return_inverse=True)[1].ravel()
    most = int(rank.max())
    shares = rank / most if most else np.full(len(nodes), _ALONE)
    return dict(zip(nodes, ramp(shares.tolist()), strict=True))
