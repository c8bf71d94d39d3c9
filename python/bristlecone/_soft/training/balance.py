"""How evenly the rows share the leaves: divergence of the masses of the leaves from equal shares.

B = −(1/k) Σ_ℓ log(k m_ℓ) is at least 0. It is 0 if every leaf has the same mass, and grows without
bound as a leaf empties. Up to a constant it is the penalty of Frosst and Hinton, "Distilling a
neural network into a soft decision tree" (2017), whose weights halve with every level. The masses
are those of splits scaled to one steepness, so that they follow the most probable paths and a flat
split does not count as an even one. See docs/maths/soft.md.
"""

from __future__ import annotations

import numpy as np

from bristlecone._soft import routing
from bristlecone._types import Floats

# Steepness in units of one over the standard deviation of a split's logits.
_STEEPNESS = 4.0
# Added to the squared deviation; keeps the gradient of a split without weights finite.
_LEVEL = 0.1
# Least mass of a leaf, so that the logarithm is finite.
_LEAST = 1e-200


def imbalance(logit: Floats, weight: Floats) -> tuple[float, Floats]:
    """B and its derivative by the logits.

    Parameters
    ----------
    logit : array, shape (n_splits, n)
        Of a complete tree, level by level.
    weight : array, shape (n,)
        Weights of the rows, of sum 1.
    """
    if not len(logit):
        return 0.0, np.zeros_like(logit)
    centred = logit - (logit @ weight)[:, np.newaxis]
    square = (centred**2 @ weight + _LEVEL**2)[:, np.newaxis]
    factor = _STEEPNESS / np.sqrt(square)
    steep = factor * logit
    mass = np.maximum(routing.leaf_probabilities(steep) @ weight, _LEAST)
    k = len(mass)
    by_member = np.broadcast_to((-1 / (k * mass))[:, np.newaxis], (k, logit.shape[1]))
    by_steep = routing.expected(steep, by_member)[1] * weight
    # The factor depends on the logits, too, through their deviation.
    shrinks = (by_steep * steep).sum(axis=1, keepdims=True) / square
    return -float(np.log(k * mass).mean()), factor * by_steep - shrinks * weight * centred


def leaf_shares(logit: Floats, weight: Floats) -> Floats:
    """Share of the weight at the end of the most probable paths to each leaf, shape (k,)."""
    total = np.bincount(routing.hard_leaf(logit), weight, len(logit) + 1)
    return total / total.sum()
