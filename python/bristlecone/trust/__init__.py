"""Verify fitted trees, and check how stable they are."""

from bristlecone.trust._alternatives import alternatives
from bristlecone.trust._near_optimal import NearOptimalTrees, near_optimal_trees
from bristlecone.trust._stability import Stability, stability
from bristlecone.trust._thresholds import ThresholdGap, threshold_gap
from bristlecone.trust._verification import Check, Verification
from bristlecone.trust._verify import verify

__all__ = [
    "Check",
    "NearOptimalTrees",
    "Stability",
    "ThresholdGap",
    "Verification",
    "alternatives",
    "near_optimal_trees",
    "stability",
    "threshold_gap",
    "verify",
]
