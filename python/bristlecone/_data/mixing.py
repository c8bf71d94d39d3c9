"""Random numbers that follow from numbers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.uint64]


def mixed(values: Bits) -> Bits:
    """Random numbers that depend on the values (the finalizer of SplitMix64).

    Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014.
    """
    bits = values + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed_bits: Bits = bits ^ (bits >> np.uint64(31))
    return mixed_bits
