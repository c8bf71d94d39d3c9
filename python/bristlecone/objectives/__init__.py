"""Objectives of ``OptimalSurvivalTree``, one file each."""

from bristlecone.objectives.base import Objective
from bristlecone.objectives.brier import Brier
from bristlecone.objectives.likelihood import Likelihood

__all__ = ["LEAF_CURVES", "OBJECTIVES", "Likelihood", "Objective"]

OBJECTIVES: dict[str, type[Objective]] = {cls.name: cls for cls in (Likelihood, Brier)}

# Every curve that some objective permits.
LEAF_CURVES = tuple(
    dict.fromkeys(["auto", *(curve for cls in OBJECTIVES.values() for curve in cls.leaf_curves)])
)
