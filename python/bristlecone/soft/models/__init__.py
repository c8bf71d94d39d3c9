"""Leaf models of the soft survival tree, one file each."""

from bristlecone.soft.models.base import LeafModel, Sample
from bristlecone.soft.models.exponential import Exponential
from bristlecone.soft.models.log_logistic import LogLogistic
from bristlecone.soft.models.spline import SplineHazards, SplineOdds
from bristlecone.soft.models.weibull import Weibull

__all__ = ["MODELS", "LeafModel", "Sample"]

MODELS: dict[str, type[LeafModel]] = {
    model.name: model for model in (LogLogistic, Exponential, Weibull, SplineHazards, SplineOdds)
}
