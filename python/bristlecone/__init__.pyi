"""Optimal and soft survival trees."""

from bristlecone._core import __version__
from bristlecone.data.outcomes import outcome
from bristlecone.encoder import BinaryEncoder
from bristlecone.errors import (
    BristleconeWarning,
    ColumnWarning,
    ConstantFeatureWarning,
    EmptyLeafWarning,
    EventFreeWarning,
    FitConvergenceWarning,
    InfeasibleError,
    InfeasibleWarning,
    InvalidParameterError,
    ModelFormatError,
    SearchCostWarning,
    SearchLimitWarning,
    SmallSampleWarning,
)
from bristlecone.estimators.classifier import OptimalTreeClassifier
from bristlecone.estimators.cost_sensitive import CostSensitiveTreeClassifier
from bristlecone.estimators.fair import FairTreeClassifier
from bristlecone.estimators.greedy import GreedySurvivalTree
from bristlecone.estimators.own import OptimalTree
from bristlecone.estimators.policy import PolicyTree
from bristlecone.estimators.regressor import OptimalTreeRegressor
from bristlecone.estimators.soft import SoftSurvivalTree
from bristlecone.estimators.survival import OptimalSurvivalTree
from bristlecone.model.registry import load_model, save_model
from bristlecone.objectives.own import Task
from bristlecone.objectives.parity import DemographicParity, EqualityOfOpportunity, RmstParity
from bristlecone.search.front import ParetoFront, ParetoPoint
from bristlecone.search.progress import SearchCost, SearchProgress

__all__ = [
    "BinaryEncoder",
    "BristleconeWarning",
    "ColumnWarning",
    "ConstantFeatureWarning",
    "CostSensitiveTreeClassifier",
    "DemographicParity",
    "EmptyLeafWarning",
    "EqualityOfOpportunity",
    "EventFreeWarning",
    "FairTreeClassifier",
    "FitConvergenceWarning",
    "GreedySurvivalTree",
    "InfeasibleError",
    "InfeasibleWarning",
    "InvalidParameterError",
    "ModelFormatError",
    "OptimalSurvivalTree",
    "OptimalTree",
    "OptimalTreeClassifier",
    "OptimalTreeRegressor",
    "ParetoFront",
    "ParetoPoint",
    "PolicyTree",
    "RmstParity",
    "SearchCost",
    "SearchCostWarning",
    "SearchLimitWarning",
    "SearchProgress",
    "SmallSampleWarning",
    "SoftSurvivalTree",
    "Task",
    "__version__",
    "load_model",
    "outcome",
    "save_model",
]
