"""Leaf models of the soft survival tree, one file each."""

from bristlecone._soft.models.base import LeafModel, Sample
from bristlecone._soft.models.exponential import Exponential
from bristlecone._soft.models.log_logistic import LogLogistic
from bristlecone._soft.models.spline import SplineHazards, SplineOdds
from bristlecone._soft.models.weibull import Weibull

__all__ = ["MODELS", "LeafModel", "Sample"]

MODELS: dict[str, type[LeafModel]] = {
    model.name: model for model in (LogLogistic, Exponential, Weibull, SplineHazards, SplineOdds)
}
