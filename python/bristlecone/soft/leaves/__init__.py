"""Leaf models of the soft survival tree, one file each."""

from bristlecone.soft.leaves.base import LeafModel, Sample
from bristlecone.soft.leaves.exponential import Exponential
from bristlecone.soft.leaves.log_logistic import LogLogistic
from bristlecone.soft.leaves.spline import SplineHazards, SplineOdds
from bristlecone.soft.leaves.weibull import Weibull

__all__ = ["MODELS", "LeafModel", "Sample"]

MODELS: dict[str, type[LeafModel]] = {
    model.name: model for model in (LogLogistic, Exponential, Weibull, SplineHazards, SplineOdds)
}
