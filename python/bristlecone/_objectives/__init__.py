"""Objectives of the searches, one file each."""

from bristlecone._objectives.brier import Brier
from bristlecone._objectives.likelihood import Likelihood
from bristlecone._objectives.survival import SurvivalObjective

__all__ = ["LEAF_CURVES", "SURVIVAL"]

SURVIVAL: dict[str, type[SurvivalObjective]] = {"likelihood": Likelihood, "brier": Brier}

# Every curve that some objective permits.
LEAF_CURVES = tuple(
    dict.fromkeys(["auto", *(curve for cls in SURVIVAL.values() for curve in cls.curves)])
)
