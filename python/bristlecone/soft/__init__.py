"""Soft survival trees: :class:`~bristlecone.soft.estimator.SoftSurvivalTree` and its parts."""

from bristlecone.soft.estimator import SoftSurvivalTree

__all__ = ["SoftSurvivalTree"]
