"""What is drawn of a leaf: one class per kind of leaves, for both arrangements of a tree."""

from __future__ import annotations

from collections.abc import Sequence

from bristlecone._leaves.base import SurvivalLeaves
from bristlecone._leaves.labels import LabelLeaves
from bristlecone._leaves.means import MeanLeaves
from bristlecone._view.fitted import FittedTree
from bristlecone.plot._panels.base import Axis, Panels, Place
from bristlecone.plot._panels.labels import LabelPanels
from bristlecone.plot._panels.means import MeanPanels
from bristlecone.plot._panels.survival import SurvivalPanels

__all__ = ["Axis", "Panels", "Place", "panels_of"]


class OwnPanels(Panels):
    """Cost and value as text."""

    def _facts(self, k: int) -> Sequence[str]:
        told: str = self.leaves.text(self.leaves.facts()[k])
        return [part.replace("=", " ", 1) for part in told.rsplit(", ", 1)]

    def lines(self, k: int) -> list[str]:
        return [self.rows(k), *self._facts(k)]

    def columns(self, *, narrow: bool) -> list[tuple[str, list[str]]]:
        facts = [", ".join(self._facts(k)) for k in range(len(self.n))]
        return [*super().columns(narrow=narrow), ("", facts)]


def panels_of(tree: FittedTree, confidence: float, time_label: str) -> Panels:
    """Panels that fit the leaves of a tree."""
    if isinstance(tree.leaves_, SurvivalLeaves):
        return SurvivalPanels(tree, confidence, time_label)
    if isinstance(tree.leaves_, LabelLeaves):
        return LabelPanels(tree)
    if isinstance(tree.leaves_, MeanLeaves):
        return MeanPanels(tree)
    return OwnPanels(tree)
