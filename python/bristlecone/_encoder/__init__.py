"""Binarisation: from columns of numbers and categories to yes-no features with readable names."""

from bristlecone._encoder.binary import BinaryEncoder
from bristlecone._encoder.features import (
    AtMost,
    Feature,
    Flag,
    Level,
    Missing,
    OneOf,
    Other,
    Threshold,
)

__all__ = [
    "AtMost",
    "BinaryEncoder",
    "Feature",
    "Flag",
    "Level",
    "Missing",
    "OneOf",
    "Other",
    "Threshold",
]
