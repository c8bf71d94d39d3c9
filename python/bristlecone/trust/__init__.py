"""Second opinions on fitted trees."""

from bristlecone.trust.alternatives import alternatives
from bristlecone.trust.near_optimal import NearOptimalTrees, near_optimal_trees
from bristlecone.trust.stability import Stability, stability
from bristlecone.trust.verification import Check, Verification
from bristlecone.trust.verify import verify

__all__ = [
    "Check",
    "NearOptimalTrees",
    "Stability",
    "Verification",
    "alternatives",
    "near_optimal_trees",
    "stability",
    "verify",
]
