"""Binarisation: from columns of numbers and categories to yes-no features with readable names."""

from bristlecone.encoder.binary import BinaryEncoder
from bristlecone.encoder.features import AtMost, Feature, Flag, Level, Missing, Other, Threshold

__all__ = ["AtMost", "BinaryEncoder", "Feature", "Flag", "Level", "Missing", "Other", "Threshold"]
