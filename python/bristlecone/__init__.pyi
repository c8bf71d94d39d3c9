"""Optimal and soft survival trees."""

from bristlecone._core import __version__
from bristlecone.classify import OptimalTreeClassifier
from bristlecone.cost_sensitive import CostSensitiveTreeClassifier
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
from bristlecone.fair import FairTreeClassifier
from bristlecone.fairness import RmstParity
from bristlecone.greedy import GreedySurvivalTree
from bristlecone.optimal import OptimalSurvivalTree
from bristlecone.pareto import ParetoFront, ParetoPoint
from bristlecone.policy import PolicyTree
from bristlecone.regress import OptimalTreeRegressor
from bristlecone.search import SearchCost, SearchProgress
from bristlecone.serialise import load_model, save_model
from bristlecone.soft.estimator import SoftSurvivalTree
from bristlecone.user_task import OptimalTree, Task

__all__ = [
    "BinaryEncoder",
    "BristleconeWarning",
    "ColumnWarning",
    "ConstantFeatureWarning",
    "CostSensitiveTreeClassifier",
    "EmptyLeafWarning",
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
    "save_model",
]
