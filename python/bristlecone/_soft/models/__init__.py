"""Leaf models of the soft survival tree, one file for each kind of index."""

from bristlecone._soft.models.base import LeafModel, Sample, Slopes
from bristlecone._soft.models.exponential import Exponential
from bristlecone._soft.models.scale import LogLogistic, Weibull
from bristlecone._soft.models.spline import SplineHazards, SplineOdds

__all__ = ["MODELS", "LeafModel", "Sample", "Slopes"]

MODELS: dict[str, type[LeafModel]] = {
    model.name: model for model in (LogLogistic, Exponential, Weibull, SplineHazards, SplineOdds)
}
