"""Optimal and soft survival trees."""

from bristlecone._core import __version__
from bristlecone.encoder import BinaryEncoder
from bristlecone.errors import (
    BristleconeWarning,
    ConstantFeatureWarning,
    FitConvergenceWarning,
    InvalidParameterError,
    ModelFormatError,
    SearchCostWarning,
    SearchLimitWarning,
)
from bristlecone.greedy import GreedySurvivalTree
from bristlecone.optimal import OptimalSurvivalTree
from bristlecone.search import SearchCost, SearchProgress
from bristlecone.serialise import load_model, save_model
from bristlecone.soft.estimator import SoftSurvivalTree

__all__ = [
    "BinaryEncoder",
    "BristleconeWarning",
    "ConstantFeatureWarning",
    "FitConvergenceWarning",
    "GreedySurvivalTree",
    "InvalidParameterError",
    "ModelFormatError",
    "OptimalSurvivalTree",
    "SearchCost",
    "SearchCostWarning",
    "SearchLimitWarning",
    "SearchProgress",
    "SoftSurvivalTree",
    "__version__",
    "load_model",
    "save_model",
]
